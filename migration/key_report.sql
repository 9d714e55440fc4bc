-- The keys of a database: where their values come from, what refers to them, and the statements
-- that give them Snowflake IDs, in order.
--
--   psql -f migration/key_report.sql                        all schemas
--   psql -v schema='app|shop' -f migration/key_report.sql   the schemas whose names match a regular
--                                                          expression
--   psql -v adopt=on -f migration/key_report.sql            first runs the statements that need no
--                                                          decision, each in its own transaction
--
-- Only temporary objects are created.  The table key_report has a row for each column that has a
-- sequence or an identity, for each column of a unique index that has a computed default, and for
-- each primary key of one column that is no foreign key.  Partitions and children are reported with
-- their parent.  referred_to_by lists the columns with a foreign key and, with "?", columns of the
-- same schema without one that are named after the table and the key, such as order_id, or whose
-- values stand in the key, and in at most three others.  This includes elements of arrays, fields
-- of composite types, and numbers of other types.  rows is the number at the last ANALYZE.
-- greatest_key is empty if no index begins with the key.
--
-- For the values, about 10 blocks of a table are read for each column without a foreign key, which
-- takes milliseconds, and up to 20 values are looked up in each key with an index.
--
-- The table key_sequences lists the sequences that no default uses.
--
-- The table key_statements contains the statements.  Those with a needs_decision can be run after
-- the decision, as in
--   SELECT statement FROM key_statements WHERE needs_decision LIKE 'GENERATED ALWAYS%'
--   ORDER BY step \gexec
-- Programs that use a sequence by its name are not detected: see docs/migration.md.

\if :{?quiet_before} \else
	\set quiet_before :QUIET
\endif
\set QUIET on
\if :{?schema} \else
	\set schema '.*'
\endif
SELECT extnamespace::regnamespace AS extension FROM pg_extension WHERE extname = 'snowflake' \gset
\if :{?extension} \else
	\echo 'Run CREATE EXTENSION snowflake first.'
	\q
\endif
SELECT CASE WHEN to_regclass('pg_catalog.pg_dist_partition') IS NULL
		THEN 'SELECT 0::oid WHERE false'
	ELSE 'SELECT logicalrelid::oid FROM pg_catalog.pg_dist_partition' END AS distributed \gset
SELECT current_setting('search_path') AS search_path \gset
SET search_path = pg_catalog, pg_temp;
SET jit = off;
SET client_min_messages = warning;
DROP TABLE IF EXISTS pg_temp.key_family, pg_temp.key_candidates, pg_temp.key_foreign,
	pg_temp.key_published, pg_temp.key_columns, pg_temp.key_related, pg_temp.key_parts,
	pg_temp.key_polymorphic, pg_temp.key_guesses, pg_temp.key_samples, pg_temp.key_narrow,
	pg_temp.key_tried, pg_temp.key_functions, pg_temp.key_sequences, pg_temp.key_report,
	pg_temp.key_statements;
RESET client_min_messages;

-- The greatest key that meets a condition.  Null if the table cannot be read, for example by
-- another role or from a foreign server.
CREATE OR REPLACE FUNCTION pg_temp.greatest_key(relation text, attribute name, condition text)
RETURNS text
LANGUAGE plpgsql SET row_security = off
AS $$
DECLARE
	greatest_key text;
BEGIN
	EXECUTE format('SELECT %1$I FROM %2$s WHERE %1$I %3$s ORDER BY %1$I DESC LIMIT 1',
		attribute, relation, condition) INTO greatest_key;
	RETURN greatest_key;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END
$$;

-- At most 20 different values of an expression, from about 10 blocks of a table and its partitions
-- and children.  Null if the table cannot be read.
CREATE OR REPLACE FUNCTION pg_temp.sample(relation regclass, expression text) RETURNS text[]
LANGUAGE plpgsql SET row_security = off
AS $$
DECLARE
	percent CONSTANT numeric := (
		SELECT least(100, 1000.0 / greatest(sum(pg_relation_size(member)) / 8192, 1))
		FROM pg_temp.key_family f WHERE f.relation = $1);
	found_values text[];
BEGIN
	EXECUTE format('SELECT array_agg(v) FROM (SELECT DISTINCT v, hashtext(v)'
		' FROM (SELECT (%s)::text AS v FROM %s TABLESAMPLE SYSTEM (%s) REPEATABLE (0)) s'
		' WHERE v IS NOT NULL ORDER BY hashtext(v) LIMIT 20) s', expression, relation, percent)
	INTO found_values;
	RETURN found_values;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END
$$;

-- The columns of key_samples whose values all stand in a key, by lookups in its index: uuids, or at
-- least ten numbers.  Any numbers stand in a key without gaps.  So either the greatest of them is
-- in the upper half of the keys, or most numbers next to them do not stand in the key.  Numbers of
-- 32 bits are compared with the keys of 32 bits.
CREATE OR REPLACE FUNCTION pg_temp.standing_in(k record) RETURNS SETOF text
LANGUAGE plpgsql SET row_security = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
	is_number CONSTANT boolean := k.kind IN ('bigint', 'narrow');
	is_key CONSTANT text := format('EXISTS (SELECT FROM %s k WHERE k.%I = v::%s', k.table_name,
		k.name, CASE WHEN is_number THEN 'bigint' ELSE k.type END);
BEGIN
	RETURN QUERY EXECUTE format('SELECT s.part FROM pg_temp.key_samples s, LATERAL ('
		'	SELECT CASE WHEN s.greatest <= 2147483647 THEN $2 ELSE $3 END AS key) AS greatest'
		' WHERE s.nspname = $1 AND CASE'
		' WHEN (CASE WHEN $5 THEN cardinality(s.found_values) >= 10'
		'		AND s.greatest <= greatest.key'
		'		AND (s.greatest >= greatest.key / 2 OR $4 < greatest.key / 2)'
		'	ELSE s.kind = $6 END) IS NOT TRUE THEN false'
		' WHEN EXISTS (SELECT FROM unnest(s.found_values) v WHERE NOT %1$s)) THEN false'
		' ELSE NOT $5 OR s.greatest >= greatest.key / 2 OR cardinality(s.found_values)'
		'	> 2 * (SELECT count(*) FROM unnest(s.found_values) v WHERE %1$s %2$s)) END', is_key,
		CASE WHEN is_number THEN '+ 1' END)
	USING k.nspname, k.greatest_narrow_key::bigint, CASE WHEN is_number
		THEN k.greatest_key::bigint END, k.rows, is_number, k.kind;
EXCEPTION WHEN OTHERS THEN
	RETURN;
END
$$;

-- Changes the type of columns in an empty copy of a table, which is dropped again.  Returns the
-- error, such as that of an index or a CHECK with a function that takes no bigint; null if there
-- is none, or if the table cannot be copied.
CREATE OR REPLACE FUNCTION pg_temp.tried(relation text, changes text) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	is_copied boolean := false;
BEGIN
	EXECUTE format('CREATE TEMP TABLE key_copy (LIKE %s INCLUDING CONSTRAINTS INCLUDING GENERATED'
		' INCLUDING INDEXES INCLUDING STATISTICS)', relation);
	is_copied := true;
	EXECUTE 'ALTER TABLE pg_temp.key_copy ' || changes;
	RAISE SQLSTATE 'SF002';
EXCEPTION
	WHEN SQLSTATE 'SF002' THEN
		RETURN NULL;
	WHEN OTHERS THEN
		RETURN CASE WHEN is_copied THEN SQLERRM END;
END
$$;

-- Inserts an ID into an empty copy of a table, which is dropped again.  Returns the error if an
-- index or a CHECK does not accept the ID, as one that converts it to an integer.
CREATE OR REPLACE FUNCTION pg_temp.refused(relation text, key name, id text) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
	EXECUTE format('CREATE TEMP TABLE key_copy (LIKE %s INCLUDING CONSTRAINTS INCLUDING GENERATED'
		' INCLUDING INDEXES)', relation);
	ALTER TABLE pg_temp.key_copy DROP CONSTRAINT IF EXISTS key_copy_pkey;
	EXECUTE (
		SELECT 'ALTER TABLE pg_temp.key_copy '
			|| string_agg(format('ALTER %I DROP NOT NULL', attname), ', ')
		FROM pg_attribute WHERE attrelid = to_regclass('pg_temp.key_copy') AND attnum > 0);
	EXECUTE format('INSERT INTO pg_temp.key_copy (%I) VALUES (%L)', key, id);
	RAISE SQLSTATE 'SF002';
EXCEPTION
	WHEN numeric_value_out_of_range OR check_violation THEN
		RETURN replace(SQLERRM, '"key_copy"', relation);
	WHEN OTHERS THEN
		RETURN NULL;
END
$$;

-- each table with itself, its partitions and its children
CREATE TEMP TABLE key_family AS
WITH RECURSIVE family (relation, member) AS (
	SELECT oid, oid FROM pg_class WHERE relkind IN ('r', 'p', 'f') AND relpersistence <> 't'
	UNION SELECT relation, inhrelid FROM family JOIN pg_inherits ON inhparent = member)
SELECT * FROM family;
CREATE INDEX ON key_family (relation);

-- all columns, with the kind of the type, below any domains, and the default
CREATE TEMP TABLE key_candidates AS
WITH RECURSIVE types (type, base) AS (
	SELECT oid, oid FROM pg_type WHERE typtype <> 'd'
	UNION ALL SELECT t.oid, base FROM types
		JOIN pg_type t ON t.typbasetype = type AND t.typtype = 'd')
SELECT c.oid AS relation, a.attnum AS number, n.nspname, c.relname, a.attname AS name, c.relkind,
	c.relowner, t.table_name, format('%s.%I', t.table_name, a.attname) AS column_name,
	format_type(a.atttypid, a.atttypmod) AS type, y.typtype = 'd' AS is_of_domain,
	CASE WHEN base IN ('smallint'::regtype, 'integer'::regtype) THEN 'narrow'
		WHEN base = 'bigint'::regtype THEN 'bigint'
		WHEN base = 'uuid'::regtype THEN 'uuid'
		WHEN base = to_regtype(:'extension' || '.sno') THEN 'sno' ELSE 'other' END AS kind,
	a.attidentity AS identity, a.attinhcount > 0 AS is_inherited, d.oid AS default_oid,
	coalesce(pg_get_expr(d.adbin, d.adrelid), y.typdefault) AS expression,
	CASE WHEN a.attidentity <> '' THEN pg_get_serial_sequence(t.table_name, a.attname)::regclass
		ELSE (SELECT s.oid::regclass
			FROM pg_depend p JOIN pg_class s ON s.oid = p.refobjid AND s.relkind = 'S'
			WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
				AND p.refclassid = 'pg_class'::regclass LIMIT 1) END AS sequence,
	EXISTS (SELECT FROM pg_depend p
			JOIN pg_depend m ON m.classid = p.refclassid AND m.objid = p.refobjid
				AND m.deptype = 'e'
			JOIN pg_extension x ON x.oid = m.refobjid AND x.extname = 'snowflake'
		WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
			AND p.refclassid = 'pg_proc'::regclass) AS is_snowflake
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	CROSS JOIN LATERAL format('%I.%I', n.nspname, c.relname) AS t (table_name)
	JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		AND a.attgenerated = ''
	JOIN pg_type y ON y.oid = a.atttypid JOIN types ON types.type = a.atttypid
	LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't'
	AND n.nspname !~ '^(pg_.*|information_schema)$'
	AND NOT EXISTS (SELECT FROM pg_depend
		WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e');
CREATE INDEX ON key_candidates (relation, number);
CREATE INDEX ON key_candidates (sequence);

-- pairs of columns of foreign keys
CREATE TEMP TABLE key_foreign AS
SELECT confrelid AS relation, pair.referred AS number, conrelid AS referring,
	pair.referring AS referring_number
FROM pg_constraint CROSS JOIN unnest(conkey, confkey) AS pair (referring, referred)
WHERE contype = 'f';
CREATE INDEX ON key_foreign (relation, number);
CREATE INDEX ON key_foreign (referring);
CREATE TEMP TABLE key_published AS
SELECT schemaname AS nspname, tablename AS relname,
	string_agg(pubname, ', ' ORDER BY pubname) AS names
FROM pg_publication_tables GROUP BY 1, 2;
CREATE INDEX ON key_published (relname);
ANALYZE key_family, key_candidates, key_foreign, key_published;

CREATE TEMP TABLE key_columns AS
SELECT *, CASE
		WHEN is_snowflake AND NOT EXISTS (
			SELECT FROM key_family f
				JOIN key_candidates m ON m.relation = f.member AND m.name = k.name
			WHERE f.relation = k.relation AND NOT m.is_snowflake) THEN 'snowflake'
		WHEN is_snowflake OR identity <> ''
			OR expression = format('nextval(%L::regclass)', sequence::text) THEN 'sequence'
		WHEN expression IS NULL THEN 'none' ELSE 'other' END AS origin,
	CASE WHEN has_index AND relkind <> 'f'
		THEN pg_temp.greatest_key(table_name, name, 'IS NOT NULL') END AS greatest_key,
	CASE WHEN has_index AND relkind <> 'f' AND kind = 'bigint'
		THEN pg_temp.greatest_key(table_name, name, '<= 2147483647')
	WHEN kind = 'narrow' THEN pg_temp.greatest_key(table_name, name, 'IS NOT NULL') END
		AS greatest_narrow_key,
	(SELECT sum(nullif(c.reltuples, -1)) FILTER (WHERE c.relkind <> 'p')::bigint
		FROM key_family f JOIN pg_class c ON c.oid = f.member WHERE f.relation = k.relation) AS rows
FROM (SELECT *,
		EXISTS (SELECT FROM pg_index
			WHERE indrelid = relation AND indisunique AND number = ANY (indkey)) AS is_unique,
		EXISTS (SELECT FROM pg_index
			WHERE indrelid = relation AND indkey[0] = number AND indisvalid AND indpred IS NULL)
			AS has_index
	FROM key_candidates) k
WHERE NOT is_inherited AND nspname ~ ('^(' || :'schema' || ')$')
	AND (sequence IS NOT NULL OR is_snowflake
		OR is_unique AND kind <> 'other' AND expression ~ '\('
		OR EXISTS (SELECT FROM pg_index WHERE indrelid = relation AND indisprimary
				AND indnkeyatts = 1 AND indkey[0] = number)
			AND NOT EXISTS (SELECT FROM key_foreign f
				WHERE f.referring = k.relation AND f.referring_number = k.number));

ANALYZE key_columns;

-- each key, and the columns that refer to it by foreign keys, directly or not
CREATE TEMP TABLE key_related AS
WITH RECURSIVE related (relation, number, other, other_number) AS (
	SELECT relation, number, relation, number FROM key_columns
	UNION
	SELECT r.relation, r.number, next.relation, next.number
	FROM related r CROSS JOIN LATERAL (
		SELECT referring, referring_number FROM key_foreign f
		WHERE f.relation = r.other AND f.number = r.other_number
		UNION ALL
		SELECT a.attrelid, a.attnum FROM pg_attribute h
			JOIN (SELECT inhparent, inhrelid FROM pg_inherits
				UNION ALL SELECT inhrelid, inhparent FROM pg_inherits) AS i (one, other)
				ON i.one = h.attrelid
			JOIN pg_attribute a ON a.attrelid = i.other AND a.attname = h.attname
		WHERE h.attrelid = r.other AND h.attnum = r.other_number) AS next (relation, number))
SELECT * FROM related;
CREATE INDEX ON key_related (relation, number);
ANALYZE key_related;

-- all columns, elements of arrays, and fields of composite types, with the kind of the values, and
-- the type that they need to hold IDs if they cannot, or if they round them
CREATE TEMP TABLE key_parts AS
WITH RECURSIVE parts AS (
	SELECT c.relation, c.number, a.atttypid AS type, a.atttypmod AS modifier, c.name,
		quote_ident(c.name) AS expression, c.column_name AS part, false AS is_array,
		false AS is_field
	FROM key_candidates c JOIN pg_attribute a ON a.attrelid = c.relation AND a.attnum = c.number
	WHERE NOT c.is_inherited
	UNION ALL
	SELECT p.relation, p.number, next.*
	FROM parts p JOIN pg_type t ON t.oid = p.type CROSS JOIN LATERAL (
		SELECT t.typbasetype, greatest(t.typtypmod, p.modifier), p.name, p.expression, p.part,
			p.is_array, p.is_field
		WHERE t.typtype = 'd'
		UNION ALL
		SELECT t.typelem, p.modifier, p.name, format('unnest(%s)', p.expression), p.part, true,
			p.is_field
		WHERE t.typtype = 'b' AND t.typcategory = 'A'
		UNION ALL
		SELECT f.atttypid, f.atttypmod, f.attname, format('(%s).%I', p.expression, f.attname),
			format('%s.%I', p.part, f.attname), p.is_array, true
		FROM pg_attribute f
		WHERE t.typtype = 'c' AND f.attrelid = t.typrelid AND f.attnum > 0
			AND NOT f.attisdropped) AS next)
SELECT p.relation, p.number, p.type, c.name, lower(replace(p.name, '_', '')) AS short, p.part,
	p.is_field, p.is_array, c.nspname, c.table_name, v.kind,
	CASE WHEN p.type IN ('real'::regtype, 'double precision'::regtype, 'numeric'::regtype)
		THEN format('trim_scale((%s)::numeric)', p.expression) ELSE p.expression END AS expression,
	CASE WHEN p.type IN ('smallint'::regtype, 'integer'::regtype, 'oid'::regtype, 'real'::regtype,
			'double precision'::regtype)
		OR p.type = 'numeric'::regtype AND p.modifier >= 4 AND ((p.modifier - 4 & 1024) > 0
			OR (p.modifier - 4 >> 16) - (p.modifier - 4 & 1023) < 19) THEN 'bigint'
		WHEN v.kind = 'text' AND p.modifier BETWEEN 4 AND 22 THEN 'text' END
		|| CASE WHEN p.is_array THEN '[]' ELSE '' END AS wider,
	p.type <> 'varchar'::regtype OR p.is_array AS rewrites,
	c.sequence IS NOT NULL OR EXISTS (SELECT FROM key_columns k
			WHERE k.relation = p.relation AND k.number = p.number)
		OR EXISTS (SELECT FROM key_foreign f
			WHERE f.referring = p.relation AND f.referring_number = p.number) AS is_known
FROM parts p JOIN key_candidates c USING (relation, number)
	CROSS JOIN LATERAL (SELECT CASE
			WHEN p.type IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype,
				'oid'::regtype, 'real'::regtype, 'double precision'::regtype, 'numeric'::regtype)
				THEN 'number'
			WHEN p.type IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype) THEN 'text'
			WHEN p.type = 'uuid'::regtype THEN 'uuid'
			WHEN p.type = to_regtype(:'extension' || '.sno') THEN 'sno' END AS kind) AS v;
ANALYZE key_parts;

-- columns of 32 bits that can refer to any table of the schema, which a column beside them names,
-- as commentable_id and commentable_type of Rails, and object_id and content_type_id of Django; and
-- the tables whose names are found there, or null if a name is of no table
CREATE TEMP TABLE key_polymorphic AS
SELECT DISTINCT i.nspname, i.relation, i.number, i.table_name, i.column_name, i.name,
	c.oid AS target
FROM (SELECT *, lower(replace(name, '_', '')) AS short FROM key_candidates
		WHERE kind = 'narrow' AND NOT is_inherited AND nspname ~ ('^(' || :'schema' || ')$')) i
	JOIN key_candidates t ON t.relation = i.relation AND lower(replace(t.name, '_', ''))
		IN (regexp_replace(i.short, 'id$', 'type'),
			CASE i.short WHEN 'objectid' THEN 'contenttypeid' END)
	LEFT JOIN LATERAL unnest(pg_temp.sample(i.relation, quote_ident(t.name))) AS v ON true
	LEFT JOIN pg_class c ON c.relkind IN ('r', 'p')
		AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = i.relation)
		AND EXISTS (SELECT FROM unnest(ARRAY['::|_', '.*::|_']) AS prefix
			CROSS JOIN LATERAL lower(regexp_replace(v, prefix, '', 'g')) AS called
			WHERE lower(replace(c.relname, '_', ''))
				IN (called, called || 's', called || 'es', regexp_replace(called, 'y$', 'ies')))
WHERE short ~ '.id$'
	AND NOT EXISTS (SELECT FROM key_foreign f
		WHERE f.referring = i.relation AND f.referring_number = i.number);

-- columns that perhaps refer to a key, without a foreign key: by their name
CREATE TEMP TABLE key_guesses AS
SELECT DISTINCT k.relation, k.number, p.relation AS other, p.table_name, p.name, p.part, p.wider,
	p.rewrites, p.is_field
FROM (SELECT r.relation, r.number, o.kind, c.nspname, lower(replace(c.name, '_', '')) AS short,
		lower(replace(c.relname, '_', '')) AS called
	FROM key_related r JOIN key_columns o USING (relation, number)
		JOIN key_candidates c ON c.relation = r.other AND c.number = r.other_number
	WHERE (r.other, r.other_number) = (r.relation, r.number)
		OR EXISTS (SELECT FROM pg_index WHERE indrelid = r.other AND indisprimary
			AND indnkeyatts = 1 AND indkey[0] = r.other_number)) k
	CROSS JOIN unnest(ARRAY[nullif(k.short, 'id'), called || k.short,
		regexp_replace(regexp_replace(called, 'ies$', 'y'), 's$', '') || k.short]) AS guess
	CROSS JOIN unnest(ARRAY['', 's']) AS plural
	JOIN key_parts p ON p.nspname = k.nspname AND p.short = guess || plural
		AND (plural = '' OR p.is_array) AND NOT p.is_known AND (p.kind = k.kind
			OR p.kind IN ('number', 'text') AND k.kind IN ('bigint', 'narrow'));

-- values of other columns that could be keys of their schema
CREATE TEMP TABLE key_samples AS
SELECT *, CASE WHEN kind IN ('number', 'text')
		AND (SELECT bool_and(v ~ '^\d{1,18}$') FROM unnest(found_values) AS v)
		THEN (SELECT max(v::bigint) FROM unnest(found_values) AS v) END AS greatest
FROM (SELECT p.*, pg_temp.sample(p.relation, p.expression) AS found_values
	FROM key_parts p
	WHERE NOT p.is_known AND (p.kind <> 'text' OR p.wider LIKE 'text%')
		AND p.nspname IN (SELECT nspname FROM key_columns)
		AND p.part NOT IN (SELECT part FROM key_guesses)
		AND (p.relation, p.number) NOT IN (SELECT relation, number FROM key_polymorphic)) s
WHERE found_values IS NOT NULL;

-- and by their values, unless these stand in more than four keys, which proves nothing, and would
-- take long for each of many keys
DO $$
DECLARE
	k record;
	crowded text[];
BEGIN
	CREATE TEMP TABLE key_found (relation oid, number smallint, part text);
	FOR k IN SELECT * FROM key_columns
		WHERE has_index AND relkind <> 'f' AND kind <> 'other'
	LOOP
		INSERT INTO key_found SELECT k.relation, k.number, pg_temp.standing_in(k);
		crowded := ARRAY(SELECT part FROM key_found GROUP BY part HAVING count(*) > 4);
		DELETE FROM key_found WHERE part = ANY (crowded);
		DELETE FROM key_samples WHERE part = ANY (crowded);
	END LOOP;
	INSERT INTO key_guesses
	SELECT f.relation, f.number, s.relation, s.table_name, s.name, s.part, s.wider, s.rewrites,
		s.is_field
	FROM key_found f JOIN key_samples s USING (part);
	DROP TABLE key_found;
END
$$;
CREATE INDEX ON key_guesses (relation, number);

-- for each key, the columns of 32 bits that have to become bigint: the key, and the columns that
-- refer to it; and the objects that use such a column or the row type of its table, and so prevent
-- the change
CREATE TEMP TABLE key_narrow AS
SELECT r.relation, r.number, c.relation AS other, c.table_name, c.column_name, c.name,
	CASE WHEN c.is_of_domain THEN format('%s (domain %s)', c.column_name, c.type) END AS domain, (
	SELECT string_agg(DISTINCT u.name, ', ')
	FROM key_family f JOIN key_candidates m ON m.relation = f.member AND m.name = c.name
		CROSS JOIN LATERAL (
			SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
			WHERE refclassid = 'pg_class'::regclass AND refobjid = m.relation
				AND refobjsubid = m.number AND objid IS DISTINCT FROM m.default_oid
				AND classid IN ('pg_rewrite'::regclass, 'pg_trigger'::regclass,
					'pg_policy'::regclass, 'pg_publication_rel'::regclass, 'pg_proc'::regclass,
					'pg_attrdef'::regclass)
			UNION ALL
			SELECT 'the partition key of ' || m.table_name FROM pg_partitioned_table
			WHERE partrelid = m.relation AND m.number = ANY (partattrs)
			UNION ALL
			SELECT 'the row type in ' || p.part FROM key_parts p JOIN pg_type t ON t.oid = p.type
			WHERE t.typrelid = m.relation
			UNION ALL
			SELECT 'the type of the typed table ' || m.table_name FROM pg_class
			WHERE oid = m.relation AND reloftype <> 0) AS u (name)
	WHERE f.relation = c.relation) AS used_by
FROM key_related r JOIN key_columns k USING (relation, number)
	JOIN key_candidates c ON c.relation = r.other AND c.number = r.other_number
		AND c.kind = 'narrow' AND NOT c.is_inherited
WHERE k.origin = 'sequence' OR k.kind = 'bigint';

CREATE INDEX ON key_narrow (relation);

-- for each table with such columns, the errors of the change
CREATE TEMP TABLE key_tried AS
SELECT c.other, string_agg(DISTINCT tried.error, ', ') AS error
FROM (SELECT other,
			string_agg(DISTINCT format('ALTER COLUMN %I TYPE bigint', name), ', ') AS changes
		FROM key_narrow GROUP BY other) c
	JOIN key_family f ON f.relation = c.other
	CROSS JOIN LATERAL pg_temp.tried(f.member::regclass::text, c.changes) AS tried (error)
GROUP BY c.other;
ANALYZE key_guesses, key_narrow;

-- for each key, the functions that have a type of 32 bits in their arguments, results or sources,
-- and that name its table or one that refers to it, have its row type, or are called by its
-- triggers
CREATE TEMP TABLE key_functions AS
WITH functions AS (
	SELECT p.oid, s.source,
		coalesce(p.proallargtypes, p.proargtypes::oid[]) || p.prorettype AS types
	FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang AND l.lanname NOT IN ('internal', 'c')
		CROSS JOIN LATERAL (SELECT lower(regexp_replace(regexp_replace(
			CASE WHEN p.prosqlbody IS NULL THEN p.prosrc ELSE pg_get_functiondef(p.oid) END,
			'--[^\n]*', '', 'g'), '/\*.*?\*/', '', 'g')) AS source) AS s
	WHERE p.oid >= 16384 AND p.prokind <> 'a' AND NOT EXISTS (SELECT FROM pg_depend e
		WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')),
narrow AS (
	SELECT * FROM functions f
	WHERE f.source ~ '\m(int|integer|int[24]|smallint|(small)?serial|serial[24])\M'
		OR EXISTS (SELECT FROM unnest(f.types) AS a (type) JOIN pg_type t ON t.oid = a.type
			WHERE ARRAY[t.oid, t.typelem, t.typbasetype]
				&& ARRAY['smallint'::regtype, 'integer'::regtype]::oid[]))
SELECT DISTINCT r.relation, r.number, pg_describe_object('pg_proc'::regclass, f.oid, 0) AS name
FROM narrow f CROSS JOIN key_related r JOIN pg_class c ON c.oid = r.other
	JOIN key_columns k ON k.relation = r.relation AND k.number = r.number
		AND k.kind IN ('bigint', 'narrow')
WHERE strpos(f.source, lower(c.relname)) > 0 AND f.source ~ ('(^|[^\w$])'
		|| regexp_replace(lower(c.relname), '(\W)', '\\\1', 'g') || '($|[^\w$])')
	OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = r.other AND t.tgfoid = f.oid)
	OR EXISTS (SELECT FROM unnest(f.types) AS a (type) JOIN pg_type t ON t.oid = a.type
		WHERE c.reltype IN (t.oid, t.typelem));

-- sequences that no default uses: programs or functions can call them by name for their keys
CREATE TEMP TABLE key_sequences AS
SELECT format('%I.%I', s.schemaname, s.sequencename) AS sequence, s.last_value, (
	SELECT string_agg(pg_describe_object('pg_proc'::regclass, p.oid, 0), ', ')
	FROM pg_proc p WHERE p.oid >= 16384 AND strpos(p.prosrc, s.sequencename) > 0) AS named_in
FROM pg_sequences s JOIN pg_class c ON c.relname = s.sequencename
	AND c.relnamespace = to_regnamespace(quote_ident(s.schemaname))
WHERE s.schemaname ~ ('^(' || :'schema' || ')$') AND c.relpersistence <> 't'
	AND NOT EXISTS (SELECT FROM key_candidates k WHERE k.sequence = c.oid)
	AND NOT EXISTS (SELECT FROM pg_depend e
		WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e');

CREATE TEMP TABLE key_report AS
SELECT k.relation, k.number, k.table_name, k.name AS key, k.type, k.kind, k.origin, k.rows,
	k.greatest_key,
	CASE k.identity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY'
		WHEN 'd' THEN 'GENERATED BY DEFAULT AS IDENTITY'
		ELSE concat_ws(', as ', coalesce(k.expression, 'none'), (
			SELECT string_agg(o.column_name, ', ') FROM key_candidates o
			WHERE o.sequence = k.sequence AND (o.relation, o.number) <> (k.relation, k.number)
				AND NOT o.is_inherited)) END AS values_from,
	(SELECT string_agg(name, ', ' ORDER BY name) FROM (
		SELECT c.column_name
		FROM key_family m JOIN pg_attribute a ON a.attrelid = m.member AND a.attname = k.name
			JOIN key_foreign f ON f.relation = a.attrelid AND f.number = a.attnum
			JOIN key_candidates c ON c.relation = f.referring AND c.number = f.referring_number
				AND NOT c.is_inherited
		WHERE m.relation = k.relation
		UNION SELECT part || '?' FROM key_guesses g
		WHERE g.relation = k.relation AND g.number = k.number) AS n (name)) AS referred_to_by,
	CASE WHEN r.members > 1 THEN r.members - 1
		|| CASE k.relkind WHEN 'p' THEN ' partitions' ELSE ' children' END END AS partitions,
	r.publications,
	nullif(concat_ws('; ',
		CASE WHEN k.origin <> 'snowflake' THEN nullif(concat_ws('; ',
			CASE WHEN k.relation IN (:distributed) THEN 'distributed by Citus: docs/citus.md' END,
			CASE WHEN k.relkind = 'f' THEN 'foreign table: adopt the key on its own server' END,
			CASE WHEN r.has_former THEN
				'the sequence of a former identity: docs/migration.md#from-pgedges-extension' END,
			CASE k.kind WHEN 'uuid' THEN 'uuid: docs/migration.md'
				WHEN 'other' THEN 'type ' || k.type
				WHEN 'narrow' THEN
					CASE WHEN k.origin <> 'sequence' THEN '32 bits, and not from a sequence' END
				WHEN 'bigint' THEN CASE
					WHEN k.greatest_key::bigint >= :extension.snowflake_boundary(clock_timestamp())
					THEN 'the greatest key is not below new IDs' END
				WHEN 'sno' THEN CASE WHEN k.greatest_key COLLATE "C"
						>= :extension.sno_boundary(clock_timestamp())::text
					THEN 'the greatest key is not below new IDs' END
			END), '') END,
		'32 bits, and used by ' || n.used_by,
		'32 bits, and the type cannot be changed: ' || n.errors), '') AS obstacle,
	nullif(concat_ws('; ',
		CASE WHEN r.is_always
			THEN 'GENERATED ALWAYS: afterwards the column accepts given values' END,
		'32 bits, docs/migration.md: ' || n.columns,
		'bigint replaces the domain: ' || n.domains,
		CASE WHEN k.origin <> 'snowflake' THEN nullif(concat_ws('; ',
			CASE WHEN k.kind IN ('bigint', 'sno') THEN
				CASE k.origin WHEN 'none' THEN 'no default: do programs make the keys?'
					WHEN 'other' THEN 'the default is not a plain nextval()' END END,
			'new IDs are refused: ' || e.error,
			CASE WHEN NOT k.is_unique THEN 'no unique index: is it a key?' END,
			CASE WHEN r.is_by_key THEN 'partitioned by the key: new IDs need partitions' END,
			CASE WHEN r.has_foreign THEN 'foreign tables among the partitions or children' END,
			CASE WHEN NOT k.has_index AND r.bytes > 64 * 1024 * 1024
				THEN 'no index begins with the key, so the adoption reads the whole table' END),
			'') END,
		CASE WHEN k.kind IN ('bigint', 'narrow') THEN nullif(concat_ws('; ',
			'perhaps references that cannot hold an ID: ' || (
				SELECT string_agg(g.part, ', ' ORDER BY g.part) FROM key_guesses g
				WHERE g.relation = k.relation AND g.number = k.number AND g.wider IS NOT NULL),
			'perhaps references of 32 bits, to tables that another column names: ' || (
				SELECT string_agg(DISTINCT p.column_name, ', ') FROM key_polymorphic p
				WHERE p.nspname = k.nspname AND coalesce(p.target, k.relation) = k.relation),
			'functions of 32 bits: ' || (
				SELECT string_agg(f.name, ', ' ORDER BY f.name) FROM key_functions f
				WHERE f.relation = k.relation AND f.number = k.number)), '') END,
		CASE WHEN k.origin <> 'snowflake' THEN nullif(concat_ws('; ',
			'the sequence is named in ' || (
				SELECT string_agg(pg_describe_object('pg_proc'::regclass, p.oid, 0), ', ')
				FROM pg_proc p JOIN pg_class s ON s.oid = k.sequence
				WHERE p.oid >= 16384 AND strpos(p.prosrc, s.relname) > 0
					AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass
						AND e.objid = p.oid AND e.deptype = 'e')),
			CASE WHEN NOT pg_has_role(k.relowner, 'USAGE')
				THEN 'the owner is ' || k.relowner::regrole END,
			CASE WHEN row_security_active(k.relation) THEN 'row-level security is forced' END),
			'') END), '') AS decision
FROM key_columns k
	CROSS JOIN LATERAL (
		SELECT count(*) AS members, sum(pg_relation_size(c.oid)) AS bytes,
			bool_or(m.identity = 'a') AS is_always,
			bool_or(m.identity = '' AND EXISTS (SELECT FROM pg_depend d
				WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = m.relation
					AND d.refobjsubid = m.number AND d.classid = 'pg_class'::regclass
					AND d.deptype = 'i')) AS has_former,
			bool_or(c.relkind = 'f' AND k.relkind <> 'f') AS has_foreign,
			bool_or(p.partstrat IN ('r', 'l') AND m.number = ANY (p.partattrs)) AS is_by_key,
			string_agg(DISTINCT n.names, ', ') AS publications
		FROM key_family f JOIN pg_class c ON c.oid = f.member
			JOIN key_candidates m ON m.relation = c.oid AND m.name = k.name
			LEFT JOIN pg_partitioned_table p ON p.partrelid = c.oid
			LEFT JOIN key_published n ON n.nspname = m.nspname AND n.relname = m.relname
		WHERE f.relation = k.relation) r
	CROSS JOIN LATERAL (
		SELECT string_agg(n.column_name, ', ' ORDER BY n.column_name) AS columns,
			string_agg(DISTINCT n.domain, ', ') AS domains,
			string_agg(DISTINCT n.used_by, ', ') AS used_by,
			string_agg(DISTINCT t.error, ', ') AS errors
		FROM key_narrow n JOIN key_tried t USING (other)
		WHERE n.relation = k.relation AND n.number = k.number) n
	CROSS JOIN LATERAL (
		SELECT string_agg(DISTINCT pg_temp.refused(f.member::regclass::text, k.name, CASE k.kind
			WHEN 'sno' THEN :extension.sno_boundary(clock_timestamp())::text
			ELSE :extension.snowflake_boundary(clock_timestamp())::text END), ', ') AS error
		FROM key_family f
		WHERE f.relation = k.relation AND k.kind IN ('bigint', 'sno') AND k.origin <> 'snowflake'
			AND k.relkind <> 'f') e;

CREATE TEMP TABLE key_statements AS
SELECT row_number() OVER (ORDER BY needs_decision IS NOT NULL, phase, table_name, statement)
		AS step, table_name, statement, lock, rewrites, needs_decision
FROM (
	SELECT 1 AS phase, n.table_name, format('ALTER TABLE %s %s', n.table_name, string_agg(DISTINCT
			format('ALTER COLUMN %I TYPE bigint', n.name), ', ')) AS statement,
		'ACCESS EXCLUSIVE, also at the other ends of foreign keys' AS lock, true AS rewrites,
		concat_ws('; ', '32 bits: rewrite, or convert online: docs/migration.md',
			'bigint replaces the domain: ' || string_agg(DISTINCT n.domain, ', '),
			'change subscribers first: ' || string_agg(DISTINCT k.publications, ', '))
			AS needs_decision
	FROM key_report k JOIN key_narrow n USING (relation, number)
	WHERE k.obstacle IS NULL
	GROUP BY n.table_name
	UNION ALL
	SELECT 1, table_name, format('ALTER TABLE %s ALTER COLUMN %I TYPE %s', table_name, name, wider),
		'ACCESS EXCLUSIVE', rewrites,
		'perhaps a reference to ' || string_agg(DISTINCT k.key, ', ')
	FROM (SELECT g.table_name, g.name, g.wider, g.rewrites,
			k.table_name || '.' || quote_ident(k.key) AS key
		FROM key_guesses g JOIN key_report k USING (relation, number)
		WHERE g.wider IS NOT NULL AND NOT g.is_field AND k.kind IN ('bigint', 'narrow')
		UNION ALL
		SELECT table_name, name, 'bigint', true, 'the tables that another column names'
		FROM key_polymorphic) AS k
	GROUP BY table_name, name, wider, rewrites
	UNION ALL
	SELECT 2, k.table_name, format('SELECT %s.snowflake_create_partitions(%L, date_trunc(''month'','
			' now(), ''UTC''), now() + interval ''3 months'', ''1 month'')',
			:'extension', k.table_name),
		'SHARE UPDATE EXCLUSIVE', false, 'choose the period of the partitions: docs/partitions.md'
	FROM key_report k JOIN pg_partitioned_table p ON p.partrelid = k.relation
	WHERE k.origin <> 'snowflake' AND k.obstacle IS NULL
		AND p.partstrat = 'r' AND p.partnatts = 1 AND p.partattrs[0] = k.number
	UNION ALL
	SELECT 3, table_name,
		format('SELECT %s.snowflake_adopt(%L, %L)', :'extension', table_name, key),
		'ACCESS EXCLUSIVE', false, decision
	FROM key_report
	WHERE origin <> 'snowflake' AND obstacle IS NULL) AS s;

SET search_path = :search_path;
\if :{?adopt}
	SELECT statement FROM key_statements WHERE needs_decision IS NULL ORDER BY step \gexec
	\unset adopt
	\ir key_report.sql
	\q
\endif
SELECT table_name, key, type, rows, greatest_key, values_from, referred_to_by, partitions,
	publications, obstacle, decision
FROM key_report ORDER BY table_name, key;
SELECT * FROM key_sequences ORDER BY sequence;
SELECT * FROM key_statements ORDER BY step;
\set QUIET :quiet_before
\unset quiet_before
