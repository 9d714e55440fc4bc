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
-- their parent.  referred_to_by has the columns with a foreign key and, with "?", columns named
-- after the table and the key, such as order_id, without one.  rows are those of the last ANALYZE.
-- greatest_key is empty if no index begins with the key.
--
-- The table key_statements has the statements.  Those with a needs_decision can be run after the
-- decision, as in
--   SELECT statement FROM key_statements WHERE needs_decision LIKE 'GENERATED ALWAYS%'
--   ORDER BY step \gexec
-- Programs that use a sequence by its name are not detected: see docs/migration.md.

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
	pg_temp.key_published, pg_temp.key_columns, pg_temp.key_guesses, pg_temp.key_polymorphic,
	pg_temp.key_narrow, pg_temp.key_tried, pg_temp.key_report, pg_temp.key_statements;
RESET client_min_messages;

-- Null if the table cannot be read, as by another role or from a foreign server.
CREATE OR REPLACE FUNCTION pg_temp.greatest_key(relation text, attribute name) RETURNS text
LANGUAGE plpgsql SET row_security = off
AS $$
DECLARE
	greatest_key text;
BEGIN
	EXECUTE format('SELECT %1$I FROM %2$s WHERE %1$I IS NOT NULL ORDER BY %1$I DESC LIMIT 1',
		attribute, relation) INTO greatest_key;
	RETURN greatest_key;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END
$$;

-- Changes the type of columns in an empty copy of a table, which is dropped again.  Returns the
-- error, as of an index or a CHECK with a function that takes no bigint; null if there is none, or
-- if the table cannot be copied.
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
		WHEN expression IS NULL THEN 'none' ELSE 'other' END AS origin
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

-- columns that are named after a key, and have no foreign key
CREATE TEMP TABLE key_guesses AS
SELECT DISTINCT k.relation, k.number, c.column_name, c.kind
FROM (SELECT *, lower(replace(name, '_', '')) AS short, lower(replace(relname, '_', '')) AS called
		FROM key_columns) k
	CROSS JOIN unnest(ARRAY[nullif(k.short, 'id'), called || k.short,
		regexp_replace(regexp_replace(called, 'ies$', 'y'), 's$', '') || k.short]) AS guess
	JOIN key_candidates c ON c.nspname = k.nspname AND lower(replace(c.name, '_', '')) = guess
		AND NOT c.is_inherited AND (c.kind = k.kind OR c.kind = 'narrow' AND k.kind = 'bigint')
WHERE NOT EXISTS (SELECT FROM key_foreign f
		WHERE f.referring = c.relation AND f.referring_number = c.number)
	AND NOT EXISTS (SELECT FROM key_columns o
		WHERE o.relation = c.relation AND o.number = c.number);

-- columns of 32 bits that can refer to any table of the schema, which a column beside them names,
-- as commentable_id and commentable_type of Rails, and object_id and content_type_id of Django
CREATE TEMP TABLE key_polymorphic AS
SELECT i.nspname, string_agg(i.column_name, ', ' ORDER BY i.column_name) AS columns
FROM (SELECT *, lower(replace(name, '_', '')) AS short FROM key_candidates
		WHERE kind = 'narrow' AND NOT is_inherited) i
WHERE short ~ '.id$'
	AND EXISTS (SELECT FROM key_candidates t
		WHERE t.relation = i.relation AND lower(replace(t.name, '_', ''))
			IN (regexp_replace(i.short, 'id$', 'type'),
				CASE i.short WHEN 'objectid' THEN 'contenttypeid' END))
	AND NOT EXISTS (SELECT FROM key_foreign f
		WHERE f.referring = i.relation AND f.referring_number = i.number)
GROUP BY i.nspname;

-- for each key with a sequence, the columns of 32 bits that have to become bigint: the key, and
-- those that refer to it, directly or not; and the objects that use such a column and so prevent
-- the change
CREATE TEMP TABLE key_narrow AS
WITH RECURSIVE related (relation, number, other, other_number) AS (
	SELECT relation, number, relation, number FROM key_columns WHERE origin = 'sequence'
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
			WHERE partrelid = m.relation AND m.number = ANY (partattrs)) AS u (name)
	WHERE f.relation = c.relation) AS used_by
FROM related r JOIN key_candidates c ON c.relation = r.other AND c.number = r.other_number
		AND c.kind = 'narrow' AND NOT c.is_inherited;

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

CREATE TEMP TABLE key_report AS
SELECT k.relation, k.number, k.table_name, k.name AS key, k.type, k.kind, k.origin, r.rows,
	greatest_key,
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
		UNION SELECT column_name || '?' FROM key_guesses g
		WHERE g.relation = k.relation AND g.number = k.number) AS n (name)) AS referred_to_by,
	CASE WHEN r.members > 1 THEN r.members - 1
		|| CASE k.relkind WHEN 'p' THEN ' partitions' ELSE ' children' END END AS partitions,
	r.publications,
	nullif(concat_ws('; ',
		CASE WHEN k.relation IN (:distributed) THEN 'distributed by Citus: docs/citus.md' END,
		CASE WHEN k.relkind = 'f' THEN 'foreign table: adopt the key on its own server' END,
		CASE k.kind WHEN 'uuid' THEN 'uuid: docs/migration.md' WHEN 'other' THEN 'type ' || k.type
			WHEN 'narrow' THEN
				CASE WHEN k.origin <> 'sequence' THEN '32 bits, and not from a sequence' END
			WHEN 'bigint' THEN
				CASE WHEN greatest_key::bigint >= :extension.snowflake_boundary(clock_timestamp())
					THEN 'the greatest key is not below new IDs' END
			WHEN 'sno' THEN CASE WHEN greatest_key COLLATE "C"
					>= :extension.sno_boundary(clock_timestamp())::text
				THEN 'the greatest key is not below new IDs' END
		END,
		'32 bits, and used by ' || n.used_by,
		'32 bits, and the type cannot be changed: ' || n.errors), '') AS obstacle,
	nullif(concat_ws('; ',
		CASE WHEN r.is_always
			THEN 'GENERATED ALWAYS: afterwards the column accepts given values' END,
		'32 bits, docs/migration.md: ' || n.columns,
		'bigint replaces the domain: ' || n.domains,
		CASE WHEN k.kind IN ('bigint', 'sno') THEN
			CASE k.origin WHEN 'none' THEN 'no default: do programs make the keys?'
				WHEN 'other' THEN 'the default is not a plain nextval()' END END,
		'new IDs are refused: ' || e.error,
		CASE WHEN NOT k.is_unique THEN 'no unique index: is it a key?' END,
		CASE WHEN r.is_by_key THEN 'partitioned by the key: new IDs need partitions' END,
		CASE WHEN r.has_foreign THEN 'foreign tables among the partitions or children' END,
		CASE WHEN NOT k.has_index AND r.bytes > 64 * 1024 * 1024
			THEN 'no index begins with the key, so the adoption reads the whole table' END,
		'perhaps references of 32 bits: ' || (SELECT string_agg(column_name, ', ')
			FROM key_guesses g
			WHERE g.relation = k.relation AND g.number = k.number AND g.kind = 'narrow'),
		CASE WHEN k.kind IN ('bigint', 'narrow') THEN
			'perhaps references of 32 bits, to tables that another column names: '
			|| (SELECT p.columns FROM key_polymorphic p WHERE p.nspname = k.nspname) END,
		'the sequence is named in ' || (
			SELECT string_agg(pg_describe_object('pg_proc'::regclass, p.oid, 0), ', ')
			FROM pg_proc p JOIN pg_class s ON s.oid = k.sequence
			WHERE p.oid >= 16384 AND strpos(p.prosrc, s.relname) > 0
				AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass
					AND e.objid = p.oid AND e.deptype = 'e')),
		CASE WHEN NOT pg_has_role(k.relowner, 'USAGE')
			THEN 'the owner is ' || k.relowner::regrole END,
		CASE WHEN row_security_active(k.relation) THEN 'row-level security is forced' END), '')
		AS decision
FROM key_columns k
	CROSS JOIN LATERAL (
		SELECT sum(nullif(c.reltuples, -1)) FILTER (WHERE c.relkind <> 'p')::bigint AS rows,
			count(*) AS members, sum(pg_relation_size(c.oid)) AS bytes,
			bool_or(m.identity = 'a') AS is_always,
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
			AND k.relkind <> 'f') e
	CROSS JOIN LATERAL (
		SELECT CASE WHEN k.has_index AND k.relkind <> 'f'
			THEN pg_temp.greatest_key(k.table_name, k.name) END AS greatest_key) g;

UPDATE key_report SET obstacle = NULL, decision = NULL WHERE origin = 'snowflake';

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
SELECT * FROM key_statements ORDER BY step;
