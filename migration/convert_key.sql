-- Converts a key to bigint while programs write, with the columns of all tables that refer to it.
-- The key can be of type integer, smallint or uuid, or have integers as text or numeric.  New
-- columns are added beside the old ones, triggers keep them in step, and one short transaction
-- gives them the names of the old ones.
--
--   psql -v table=orders -v column=id -f convert_key.sql
--                              prepares everything; to resume it, run it again
--   CALL convert_key.swap()    the new columns take the place of the old ones
--   CALL convert_key.undo()    instead of swap(): removes everything
--   CALL convert_key.finish()  after swap(): drops the old columns, except an old key of type uuid
--   DROP SCHEMA convert_key CASCADE
--                              at the end
--
-- What cannot be converted is refused by the first step, which then leaves nothing behind.
--
-- A CHECK constraint on each new column states that it agrees with the old one.  Each row that is
-- written satisfies it, whatever triggers do and whether they are enabled, and the swap requires
-- that the constraint is validated.  For integers it is (id_new IS NOT DISTINCT FROM id), and for
-- text (id_new::text IS NOT DISTINCT FROM id), which refuses '007'.  For values of type uuid,
-- convert_key.ids contains the ID of each.  The trigger writes the ID into id_new, and into id_for
-- the uuid for which it has looked it up.  The constraint compares id_for with id.
--
-- Integer keys keep their values.  Rows of a uuid key get IDs with the time in the uuid, if it has
-- version 7, or in the column that -v time=created_at names.  Rows without such a time, and with
-- one outside of the layout or in the future, get IDs of the present.  These rows are listed in
-- convert_key.ids until finish().  -v machine_id=N puts another machine ID than the server's into
-- IDs of the past.  -v published=on converts tables that are published.
--
-- -v keep_default=on lets the key keep its default, a sequence, which snowflake_adopt() changes
-- later.  Until then, all keys have 32 bits, and ALTER TABLE can give the columns their old type.
--
-- The swap drops the views that use the columns, and creates them with the new ones.  Materialized
-- views are empty then.  The swap fills them after its transaction; -v materialized=on allows it.
--
-- It needs a superuser, or an owner of the tables with CREATE on the database and SET on the
-- parameter session_replication_role, and free space for a second copy of the tables and indexes.

\if :{?table} \else
    DO $$ BEGIN RAISE EXCEPTION 'the variable "table" is not set'; END $$;
    \quit
\endif
\set quiet :QUIET
\set QUIET on
\set on_error_stop :ON_ERROR_STOP
\set ON_ERROR_STOP on
SET client_min_messages = warning;
SET lock_timeout = 0;
SET statement_timeout = 0;
SET client_connection_check_interval = '2s';
SET row_security = off;
SET jit = off;

\if :{?column} \else
    \set column id
\endif
\if :{?time} \else \set time '' \endif
\if :{?machine_id} \else \set machine_id '' \endif
\if :{?published} \else \set published off \endif
\if :{?keep_default} \else \set keep_default off \endif
\if :{?materialized} \else \set materialized off \endif

\echo Checking
SELECT :'table'::regclass::oid AS relation \gset
-- the schema of the extension, or of the edition in SQL
SELECT coalesce((SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake'), (
    SELECT pronamespace FROM pg_proc WHERE oid = to_regprocedure('snowflake_id()')))::regnamespace
    AS snowflake \gset
SET search_path = pg_catalog, pg_temp;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_namespace
        WHERE nspname = 'convert_key' AND nspowner <> current_user::regrole) THEN
        RAISE EXCEPTION 'schema "convert_key" belongs to another role';
    ELSIF NOT pg_try_advisory_lock(hashtext('convert_key')) THEN
        RAISE EXCEPTION 'another session is running convert_key.sql';
    END IF;
END
$$;
BEGIN;

-- The state: what is converted, and how far each table is filled.  All else is in the catalogs.

CREATE SCHEMA IF NOT EXISTS convert_key;
CREATE TABLE IF NOT EXISTS convert_key.job (
    relation regclass NOT NULL, key name NOT NULL, is_uuid boolean NOT NULL, time_column name,
    machine_id integer NOT NULL, began timestamptz NOT NULL,
    -- the server and the database whose OIDs are in the names of indexes and constraints
    system bigint NOT NULL DEFAULT (pg_control_system()).system_identifier, database oid NOT NULL,
    is_published boolean NOT NULL DEFAULT false, is_materialized boolean NOT NULL DEFAULT false,
    keeps_default boolean NOT NULL DEFAULT false, is_assigned boolean NOT NULL DEFAULT false,
    is_swapped boolean NOT NULL DEFAULT false,
    patience interval NOT NULL DEFAULT '50 ms',    -- how long a request for a lock blocks programs
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only));
CREATE TABLE IF NOT EXISTS convert_key.columns (
    relation regclass, attnum smallint, is_key boolean NOT NULL, name name NOT NULL,
    new_name name NOT NULL, old_name name NOT NULL, for_name name,    -- null for integers
    agreement text NOT NULL, PRIMARY KEY (relation, attnum));
CREATE TABLE IF NOT EXISTS convert_key.tables (
    relation regclass PRIMARY KEY, next_block bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS convert_key.empty_views (name text, depth integer);    -- after the swap
CREATE TABLE IF NOT EXISTS convert_key.ids (
    old_id uuid PRIMARY KEY, new_id bigint NOT NULL, outside timestamptz);
SELECT format('CREATE OR REPLACE FUNCTION convert_key.next_id() RETURNS bigint LANGUAGE sql
    RETURN %s.snowflake_id()', :'snowflake') \gexec

-- The ID of a uuid.  A row can refer to one that comes later, even in another transaction.
CREATE OR REPLACE FUNCTION convert_key.id_of(uuid) RETURNS bigint LANGUAGE plpgsql STRICT AS $$
DECLARE
    result bigint;
BEGIN
    LOOP
        result := (SELECT new_id FROM convert_key.ids WHERE old_id = $1);
        EXIT WHEN result IS NOT NULL;
        INSERT INTO convert_key.ids VALUES ($1, convert_key.next_id())
        ON CONFLICT DO NOTHING RETURNING new_id INTO result;
        EXIT WHEN result IS NOT NULL;
    END LOOP;
    RETURN result;
END
$$;

-- The indexes and constraints of the old columns.  Those of the new columns are named after the
-- OIDs of these.  Column "creation" creates the like on convert_key.copy.

-- the definition of an index, from USING on
CREATE OR REPLACE FUNCTION convert_key.tail(index regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog RETURN (
    SELECT substr(pg_get_indexdef(index), 1 + length(format('CREATE %sINDEX %I ON %s%s ',
        CASE WHEN indisunique THEN 'UNIQUE ' END, relname,
        CASE relkind WHEN 'I' THEN 'ONLY ' END, indrelid::regclass)))
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indexrelid = index);

CREATE OR REPLACE VIEW convert_key.indexes AS
SELECT c.oid, c.oid::regclass AS index, i.indrelid::regclass AS relation, c.relname AS name,
    'convert_key_' || c.oid AS new_name, CASE WHEN i.indisunique THEN 'UNIQUE' END AS is_unique,
    format('CREATE INDEX ON convert_key.copy %s', convert_key.tail(c.oid)) AS creation,
    i.indisreplident, i.indisclustered, c.relnamespace::regnamespace AS schema, c.reloptions,
    coalesce((SELECT spcname FROM pg_tablespace t WHERE t.oid = c.reltablespace), '') AS tablespace,
    n.oid AS constraint_oid,
    CASE n.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END AS constraint_type,
    CASE WHEN n.condeferred THEN 'DEFERRABLE INITIALLY DEFERRED'
        WHEN n.condeferrable THEN 'DEFERRABLE' END AS timing
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    LEFT JOIN pg_constraint n ON n.conindid = c.oid AND n.contype IN ('p', 'u')
WHERE i.indisvalid AND c.relname NOT LIKE 'convert\_key\_%' AND EXISTS (
    SELECT FROM convert_key.columns k WHERE k.relation = i.indrelid AND (k.attnum = ANY (i.indkey)
        OR EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
            AND d.objid = c.oid AND d.refobjid = k.relation AND d.refobjsubid = k.attnum)));

-- The foreign keys of the new columns are deferred until the swap, so that the foreign keys of the
-- old columns act first, and the trigger sets the new columns.
CREATE OR REPLACE VIEW convert_key.constraints AS
SELECT n.oid, n.conrelid::regclass AS relation, f.relation AS referred, n.conname AS name,
    'convert_key_' || n.oid AS new_name, n.convalidated, NULL AS creation,
    format('FOREIGN KEY (%I) REFERENCES %s(%I) %s DEFERRABLE INITIALLY DEFERRED', k.new_name,
        f.relation, f.new_name, regexp_replace(replace(
            substr(pg_get_constraintdef(n.oid), 1 + length(format(
                'FOREIGN KEY (%I) REFERENCES %s(%I)', k.name, f.relation, f.name))),
            format('(%I)', k.name), format('(%I)', k.new_name)),
        '( DEFERRABLE)?( INITIALLY DEFERRED)?( NOT VALID)?$', '')) AS definition,
    CASE WHEN n.condeferred THEN 'DEFERRABLE INITIALLY DEFERRED'
        WHEN n.condeferrable THEN 'DEFERRABLE INITIALLY IMMEDIATE'
        ELSE 'NOT DEFERRABLE' END AS timing
FROM pg_constraint n
    JOIN convert_key.columns k ON k.relation = n.conrelid AND k.attnum = n.conkey[1]
    JOIN convert_key.columns f ON f.relation = n.confrelid AND f.attnum = n.confkey[1]
WHERE n.contype = 'f'
UNION
SELECT n.oid, n.conrelid, n.conrelid, n.conname, 'convert_key_' || n.oid, n.convalidated,
    format('ALTER TABLE convert_key.copy ADD %s', pg_get_constraintdef(n.oid)), NULL, NULL
FROM pg_constraint n
    JOIN convert_key.columns k ON k.relation = n.conrelid AND k.attnum = ANY (n.conkey)
WHERE n.contype = 'c' AND n.conname NOT LIKE 'convert\_key\_%';

-- The definition of an index or a CHECK constraint with the new columns: it is created on an empty
-- copy of the table, whose columns then get their types and names.
CREATE OR REPLACE FUNCTION convert_key.definition(source regclass, creation text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('CREATE TABLE convert_key.copy (LIKE %s)', source);
    EXECUTE creation;
    EXECUTE (SELECT format('ALTER TABLE convert_key.copy %s; %s',
            string_agg(format('DROP COLUMN IF EXISTS %I, ALTER COLUMN %I TYPE bigint USING NULL',
                new_name, name), ', '),
            string_agg(format('ALTER TABLE convert_key.copy RENAME %I TO %I', name, new_name), ';'))
        FROM convert_key.columns WHERE relation = source);
    result := coalesce(
        (SELECT convert_key.tail(indexrelid) FROM pg_index
            WHERE indrelid = to_regclass('convert_key.copy')),
        (SELECT pg_get_constraintdef(oid) FROM pg_constraint
            WHERE conrelid = to_regclass('convert_key.copy') AND contype = 'c'));
    DROP TABLE convert_key.copy;
    RETURN result;
END
$$;

-- The views that use the columns, including by rules and through other views.
CREATE OR REPLACE VIEW convert_key.views AS
WITH RECURSIVE uses AS (
    SELECT ev_class AS view, ev_type, refobjid AS relation, refobjsubid AS attnum
    FROM pg_depend JOIN pg_rewrite r ON r.oid = objid JOIN pg_class c ON c.oid = ev_class
    WHERE classid = 'pg_rewrite'::regclass AND refclassid = 'pg_class'::regclass
        AND ev_class <> refobjid AND relkind IN ('v', 'm')),
found AS (
    SELECT view AS oid, 0 AS depth FROM convert_key.columns JOIN uses USING (relation, attnum)
    UNION
    SELECT view, CASE ev_type WHEN '1' THEN depth + 1 ELSE 0 END    -- rules can be circular
    FROM found JOIN uses ON relation = found.oid)
SELECT c.*, c.oid::regclass AS view, depth, format('%s %s',
    CASE relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, c.oid::regclass) AS title
FROM (SELECT oid, max(depth) AS depth FROM found GROUP BY oid) AS f JOIN pg_class c USING (oid);

CREATE OR REPLACE VIEW convert_key.view_statements AS    -- statements of negative steps drop them
WITH views AS MATERIALIZED (SELECT * FROM convert_key.views)
SELECT -1000 AS step, format('DROP RULE %I ON %s', rulename, view) AS statement
FROM views v JOIN pg_rewrite ON ev_class = v.oid AND ev_type <> '1'
UNION ALL
SELECT -1 - depth, 'DROP ' || title FROM views
UNION ALL
SELECT 1 + depth, concat_ws(' ', 'CREATE', title,
    'USING ' || (SELECT quote_ident(amname) FROM pg_am WHERE pg_am.oid = relam),
    'WITH (' || nullif(array_to_string(reloptions || ARRAY(
        SELECT 'toast.' || unnest(t.reloptions) FROM pg_class t
        WHERE t.oid = v.reltoastrelid), ', '), '') || ')',
    'AS', rtrim(pg_get_viewdef(oid), ';'), CASE relkind WHEN 'm' THEN 'WITH NO DATA' END)
FROM views v
UNION ALL
SELECT 1000, concat_ws(' ', 'CREATE', CASE WHEN indisunique THEN 'UNIQUE' END,
    format('INDEX %I ON %s', c.relname, view), convert_key.tail(c.oid))
FROM views v JOIN pg_index ON indrelid = v.oid AND indisvalid
    JOIN pg_class c ON c.oid = indexrelid
UNION ALL
SELECT 1000, pg_get_ruledef(r.oid, true)
FROM views v JOIN pg_rewrite r ON ev_class = v.oid AND ev_type <> '1'
UNION ALL
SELECT 1000, pg_get_triggerdef(t.oid, true)
FROM views v JOIN pg_trigger t ON tgrelid = v.oid
UNION ALL
SELECT 1001, format(f.form, view, name, f.value)
FROM views v, LATERAL (
    SELECT 'COMMENT ON RULE %2$I ON %1$s IS %3$L', rulename, obj_description(oid, 'pg_rewrite')
    FROM pg_rewrite WHERE ev_class = v.oid
    UNION ALL
    SELECT 'COMMENT ON TRIGGER %2$I ON %1$s IS %3$L', tgname, obj_description(oid, 'pg_trigger')
    FROM pg_trigger WHERE tgrelid = v.oid
    UNION ALL
    SELECT g.form, attname, g.value
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
        JOIN pg_type t ON t.oid = atttypid,
        LATERAL (VALUES
            ('COMMENT ON COLUMN %s.%I IS %L', col_description(attrelid, attnum)),
            ('ALTER TABLE %s ALTER %I SET DEFAULT %s', pg_get_expr(adbin, adrelid)),
            ('ALTER TABLE %s ALTER %I SET STATISTICS %s', nullif(attstattarget, -1)::text),
            ('ALTER TABLE %s ALTER %I SET (%s)',
                (SELECT string_agg(o, ', ') FROM unnest(attoptions) o WHERE o LIKE 'n\_distinct%')),
            ('ALTER TABLE %s ALTER %I SET COMPRESSION %s',
                CASE attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END),
            ('ALTER TABLE %s ALTER %I SET STORAGE %s', CASE WHEN attstorage <> typstorage THEN
                CASE attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL'
                    WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END)) AS g (form, value)
    WHERE attrelid = v.oid AND attnum > 0
    UNION ALL
    SELECT g.form, c.relname, g.value
    FROM pg_index JOIN pg_class c ON c.oid = indexrelid,
        LATERAL (VALUES
            ('ALTER TABLE %s CLUSTER ON %I%s', CASE WHEN indisclustered THEN '' END),
            (format('COMMENT ON INDEX %s', indexrelid::regclass) || ' IS %3$L',
                obj_description(indexrelid, 'pg_class')),
            (format('ALTER INDEX %s', indexrelid::regclass) || ' SET TABLESPACE %3$I',
                (SELECT spcname FROM pg_tablespace t WHERE t.oid = c.reltablespace))
            UNION ALL
            SELECT format('ALTER INDEX %s ALTER %s', indexrelid::regclass, attnum)
                || ' SET STATISTICS %3$s', nullif(attstattarget, -1)::text
            FROM pg_attribute WHERE attrelid = indexrelid) AS g (form, value)
    WHERE indrelid = v.oid AND indisvalid
    UNION ALL
    SELECT 'ALTER TABLE %s SET TABLESPACE %3$I', NULL, spcname
    FROM pg_tablespace t WHERE t.oid = reltablespace) AS f (form, name, value)
WHERE f.value IS NOT NULL
UNION ALL
SELECT 1001, format('COMMENT ON %s IS %L', title, obj_description(oid, 'pg_class'))
FROM views WHERE obj_description(oid, 'pg_class') IS NOT NULL
UNION ALL
SELECT 1002, format('ALTER TABLE %s OWNER TO %s', view, relowner::regrole) FROM views
UNION ALL    -- what default privileges have granted to the new view
SELECT 1003, format('REVOKE ALL ON %s FROM %s', view, string_agg(
    CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END, ', '))
FROM views, LATERAL (
    SELECT relowner UNION SELECT grantee FROM pg_default_acl, aclexplode(defaclacl)) g (grantee)
GROUP BY view
UNION ALL
SELECT 1004, format('GRANT %s%s ON %s TO %s%s', g.privilege_type, g.column, view,
    CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
    CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
FROM views v, LATERAL (
    SELECT NULL, e.* FROM aclexplode(coalesce(relacl, acldefault('r', relowner))) e
    UNION ALL
    SELECT format(' (%I)', attname), e.* FROM pg_attribute, aclexplode(attacl) e
    WHERE attrelid = v.oid) g ("column")
UNION ALL
SELECT 1005, format('INSERT INTO convert_key.empty_views VALUES (%L, %s)', view, depth)
FROM views WHERE relkind = 'm' AND relispopulated;

CREATE OR REPLACE FUNCTION convert_key.with_views(plan text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT concat_ws(';', string_agg(statement, ';' ORDER BY step) FILTER (WHERE step < 0),
            plan, string_agg(statement, ';' ORDER BY step) FILTER (WHERE step > 0))
        FROM convert_key.view_statements);
END
$$;

-- Obstacles: objects that would not follow the columns, or would change them after the trigger.
CREATE OR REPLACE VIEW convert_key.moved AS
SELECT 'the conversion was begun in another database or server, and only convert_key.undo() can be'
    ' called here' AS obstacle
FROM convert_key.job JOIN pg_database d ON d.datname = current_database()
WHERE (database, system) IS DISTINCT FROM (d.oid, (pg_control_system()).system_identifier);

CREATE OR REPLACE VIEW convert_key.table_obstacles AS
WITH tables AS (
    SELECT t.relation, c.* FROM convert_key.tables t JOIN pg_class c ON c.oid = t.relation),
views AS MATERIALIZED (SELECT * FROM convert_key.views)
SELECT format('table %s %s', relation, problem) AS obstacle
FROM tables, LATERAL (VALUES (relkind = 'p', 'is partitioned'), (reloftype <> 0, 'is typed'),
    (relkind NOT IN ('r', 'p'), 'is not an ordinary table'),
    (EXISTS (SELECT FROM pg_inherits WHERE tables.oid IN (inhrelid, inhparent)),
        'is a partition, or has a parent or children')) AS p (is_true, problem)
WHERE is_true
UNION ALL
SELECT format('role %I does not own table %s, or cannot create indexes in schema %s',
    current_user, relation, relnamespace::regnamespace)
FROM tables
WHERE NOT pg_has_role(relowner, 'USAGE') OR NOT has_schema_privilege(relnamespace, 'CREATE')
UNION ALL
SELECT format('role %I cannot set session_replication_role', current_user)
WHERE NOT has_parameter_privilege('session_replication_role', 'SET')
UNION ALL
SELECT format('row-level security of table %s applies to role %I', relation, current_user)
FROM tables WHERE row_security_active(relation)
UNION ALL
SELECT format('table %s is in publication %I: see the variable "published"',
    tables.relation, pubname)
FROM convert_key.job, tables, pg_publication
WHERE NOT is_published AND tables.oid IN (SELECT relid FROM pg_get_publication_tables(pubname))
UNION ALL
SELECT format('role %I does not own %s, or it or the owner cannot create views in schema %s',
    current_user, view, relnamespace::regnamespace)
FROM views JOIN pg_roles ON rolname = current_user
WHERE NOT rolsuper AND NOT (pg_has_role(relowner, 'USAGE')
    AND has_schema_privilege(relnamespace, 'CREATE')
    AND has_schema_privilege(relowner, relnamespace, 'CREATE'))
UNION ALL
SELECT format('materialized view %s would be empty after the swap, until it is filled again: see'
    ' the variable "materialized"', view)
FROM convert_key.job, views WHERE relkind = 'm' AND NOT is_materialized
UNION ALL
SELECT format('view %s %s', view, problem)
FROM views v, LATERAL (VALUES
    (EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = v.oid
        AND d.deptype = 'e'), 'belongs to an extension'),
    (EXISTS (SELECT FROM pg_seclabel s WHERE s.objoid = v.oid), 'has a security label'))
    AS p (is_true, problem)
WHERE is_true
UNION ALL
SELECT format('%s depends on view %s', pg_describe_object(d.classid, d.objid, d.objsubid), view)
FROM views v JOIN pg_type t ON t.oid = v.reltype
    JOIN pg_depend d ON (d.refclassid, d.refobjid) IN (('pg_class'::regclass, v.oid),
        ('pg_type'::regclass, t.oid), ('pg_type'::regclass, t.typarray))
WHERE d.deptype <> 'i'
    AND NOT (d.deptype = 'a' AND d.classid IN ('pg_trigger'::regclass, 'pg_attrdef'::regclass))
    AND NOT EXISTS (SELECT FROM pg_class
        WHERE d.classid = 'pg_class'::regclass AND oid = d.objid AND relkind = 'i')
    AND NOT EXISTS (SELECT FROM pg_rewrite JOIN views w ON w.oid = ev_class
        WHERE d.classid = 'pg_rewrite'::regclass AND pg_rewrite.oid = d.objid)
UNION ALL
SELECT format('publication %I publishes all tables, also those of schema convert_key', pubname)
FROM pg_publication WHERE puballtables
UNION ALL
SELECT format('rows of table %s, which has no replica identity, cannot be updated because of'
    ' publication %I', relation, pubname)
FROM tables, pg_publication
WHERE pubupdate AND tables.oid IN (SELECT relid FROM pg_get_publication_tables(pubname))
    AND relreplident <> 'f' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = tables.oid
        AND CASE relreplident WHEN 'd' THEN indisprimary AND indimmediate ELSE indisreplident END)
UNION ALL
SELECT format('trigger %I of table %s sorts after zzz_convert_key', tgname, relation)
FROM tables JOIN pg_trigger ON tgrelid = relation
WHERE tgtype & 3 = 3 AND tgtype & 20 <> 0 AND tgname > 'zzz_convert_key'    -- BEFORE ROW
UNION ALL
SELECT format('trigger %I of table %s, which is ENABLE ALWAYS or REPLICA, would be called when rows'
    ' are filled', tgname, relation)
FROM tables JOIN pg_trigger ON tgrelid = relation
WHERE tgenabled IN ('A', 'R') AND tgtype & 16 <> 0 AND tgattr::text = ''    -- UPDATE
    AND tgname <> 'zzz_convert_key'
UNION ALL
SELECT format('rule %I of table %s is ENABLE ALWAYS or REPLICA', rulename, relation)
FROM tables JOIN pg_rewrite ON ev_class = relation WHERE ev_enabled IN ('A', 'R');

CREATE OR REPLACE VIEW convert_key.obstacles AS
WITH columns AS (
    SELECT k.is_key, k.relation, k.name, a.* FROM convert_key.columns k
        JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.attnum)
SELECT obstacle FROM convert_key.table_obstacles
UNION ALL
SELECT format('column %I of table %s %s', name, c.relation, problem)
FROM convert_key.job, columns c, LATERAL (VALUES
    (CASE WHEN is_uuid THEN atttypid <> 'uuid'::regtype
        ELSE atttypid <> ALL ('{int2,int4,int8,text,varchar,numeric}'::regtype[])
            OR is_key AND atttypid = 'int8'::regtype END,
        'is of type ' || format_type(atttypid, NULL)),
    (attgenerated <> '', 'is generated'),
    (attidentity <> '' AND NOT is_key, 'refers to the key and is an identity'),
    (atttypid IN ('uuid'::regtype, 'text'::regtype, 'varchar'::regtype) AND atthasdef
        AND NOT is_key, 'refers to the key and has a default of type ' || atttypid::regtype),
    (is_key AND keeps_default AND (attidentity <> '' OR atttypid NOT IN ('int2'::regtype,
        'int4'::regtype)), 'cannot keep an identity, or a default of its type'),
    (octet_length(attname) > 59, 'has a name of more than 59 bytes'),
    (EXISTS (SELECT FROM pg_seclabel s WHERE s.objoid = attrelid AND s.objsubid = c.attnum),
        'has a security label')) AS p (is_true, problem)
WHERE is_true
UNION ALL
SELECT format('%s %s', pg_describe_object('pg_constraint'::regclass, n.oid, 0), problem)
FROM columns k JOIN pg_constraint n ON n.contype = 'f'
    AND (n.conrelid = k.relation AND k.attnum = ANY (n.conkey)
        OR n.confrelid = k.relation AND k.attnum = ANY (n.confkey)),
    LATERAL (VALUES (cardinality(n.conkey) > 1, 'has several columns'),
        ('d' IN (n.confdeltype, n.confupdtype), 'sets a default'),
        (pg_get_constraintdef(n.oid) LIKE '%NOT ENFORCED', 'is not enforced'),
        (NOT EXISTS (SELECT FROM convert_key.constraints WHERE oid = n.oid),
            'refers to another key')) AS p (is_true, problem)
WHERE is_true
UNION ALL
SELECT format('%s depends on column %I of table %s',
    pg_describe_object(d.classid, d.objid, d.objsubid), k.name, k.relation)
FROM columns k JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass
    AND d.refobjid = k.relation AND d.refobjsubid = k.attnum
WHERE NOT EXISTS (SELECT FROM pg_class
        WHERE d.classid = 'pg_class'::regclass AND oid = d.objid AND relkind IN ('i', 'I', 'S'))
    AND NOT EXISTS (SELECT FROM pg_constraint
        WHERE d.classid = 'pg_constraint'::regclass AND oid = d.objid AND contype <> 'x')
    AND NOT EXISTS (SELECT FROM pg_trigger
        WHERE d.classid = 'pg_trigger'::regclass AND oid = d.objid AND tgname = '!convert_key')
    AND NOT EXISTS (SELECT FROM pg_rewrite JOIN convert_key.views v ON v.oid = ev_class
        WHERE d.classid = 'pg_rewrite'::regclass AND pg_rewrite.oid = d.objid)
    AND NOT EXISTS (SELECT FROM pg_attrdef WHERE d.classid = 'pg_attrdef'::regclass
        AND oid = d.objid AND adrelid = k.relation AND adnum = k.attnum)
UNION ALL
SELECT format('%s uses the sequence of the identity %I of table %s',
    pg_describe_object(u.classid, u.objid, u.objsubid), k.name, k.relation)
FROM columns k JOIN pg_depend s ON s.classid = 'pg_class'::regclass AND s.deptype = 'i'
        AND s.refclassid = 'pg_class'::regclass AND s.refobjid = k.relation
        AND s.refobjsubid = k.attnum
    JOIN pg_depend u ON u.refclassid = 'pg_class'::regclass AND u.refobjid = s.objid
        AND u.deptype = 'n';

-- Find the columns, and return those whose new names exist.  A later call also finds columns that
-- refer to the key since.
CREATE OR REPLACE FUNCTION convert_key.find(target regclass, target_key name) RETURNS text[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    item record;
    problems text[] := '{}';
BEGIN
    FOR item IN
        WITH RECURSIVE found AS (
            SELECT attrelid AS relation, attnum, true AS is_key
            FROM pg_attribute WHERE attrelid = target AND attname = target_key
            UNION
            SELECT n.conrelid, n.conkey[array_position(n.confkey, f.attnum)], false
            FROM found f JOIN pg_constraint n
                ON n.contype = 'f' AND n.confrelid = f.relation AND f.attnum = ANY (n.confkey))
        INSERT INTO convert_key.columns
        SELECT f.relation, attnum, is_key, attname, attname || '_new', attname || '_old',
            CASE WHEN is_uuid THEN attname || '_for' END,
            format(CASE WHEN is_uuid
                THEN '%3$I IS NOT DISTINCT FROM %1$I AND (%2$I IS NULL) = (%1$I IS NULL)'
                WHEN atttypid IN ('text'::regtype, 'varchar'::regtype)
                THEN '%2$I::text IS NOT DISTINCT FROM %1$I'
                ELSE '%2$I IS NOT DISTINCT FROM %1$I' END,
                attname, attname || '_new', attname || '_for')
        FROM found f JOIN pg_attribute a USING (attnum) CROSS JOIN convert_key.job
        WHERE attrelid = f.relation ON CONFLICT DO NOTHING RETURNING *
    LOOP
        INSERT INTO convert_key.tables VALUES (item.relation)
        ON CONFLICT (relation) DO UPDATE SET next_block = 0;
        problems := problems || ARRAY(
            SELECT format('column %I of table %s exists', attname, attrelid::regclass)
            FROM pg_attribute WHERE attrelid = item.relation
                AND attname IN (item.new_name, item.old_name, item.for_name));
    END LOOP;
    RETURN problems;
END
$$;

-- The indexes and constraints that cannot be created with the new columns.
CREATE OR REPLACE FUNCTION convert_key.failures() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    item record;
BEGIN
    FOR item IN
        SELECT relation, creation, tablespace, 'pg_class'::regclass AS class, oid
        FROM convert_key.indexes
        UNION ALL
        SELECT relation, creation, '', 'pg_constraint'::regclass, oid
        FROM convert_key.constraints WHERE creation IS NOT NULL
    LOOP
        BEGIN
            PERFORM set_config('default_tablespace', item.tablespace, true);
            PERFORM convert_key.definition(item.relation, item.creation);
        EXCEPTION WHEN OTHERS THEN
            RETURN NEXT format('%s cannot be created with columns of type bigint: %s',
                pg_describe_object(item.class, item.oid, 0), SQLERRM);
        END;
    END LOOP;
END
$$;

-- The views that cannot be created with the new columns.  They are tried in the temporary schema,
-- where names without a schema find empty copies of the tables first.
CREATE OR REPLACE FUNCTION convert_key.view_failures() RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    problems text[] := '{}';
    statements text[] := ARRAY(
        SELECT format('CREATE TEMP TABLE %1$I (LIKE %2$s INCLUDING INDEXES); ALTER TABLE %1$I %3$s',
            relname, relation, string_agg(format('ALTER %I TYPE bigint USING NULL', name), ', '))
        FROM convert_key.columns JOIN pg_class c ON c.oid = relation GROUP BY relname, relation);
    item text;
    schemas text := (SELECT string_agg(DISTINCT relnamespace::regnamespace::text, ', ')
        FROM pg_class WHERE oid IN (
            SELECT relation FROM convert_key.tables UNION SELECT view FROM convert_key.views));
BEGIN
    IF NOT EXISTS (SELECT FROM convert_key.views) THEN
        RETURN problems;
    END IF;
    PERFORM set_config('search_path', schemas, true);
    statements := statements || ARRAY(
        SELECT regexp_replace(statement, '^(CREATE|COMMENT ON) MATERIALIZED VIEW', '\1 TABLE')
        FROM convert_key.view_statements WHERE step > 0 ORDER BY step);
    PERFORM set_config('search_path', 'pg_temp, ' || schemas, true);
    FOREACH item IN ARRAY statements LOOP
        BEGIN
            EXECUTE item;
        EXCEPTION WHEN OTHERS THEN
            problems := problems || format('views cannot be created with columns of type bigint: %s'
                ' in %s', SQLERRM, regexp_replace(item, '\s+', ' ', 'g'));
            EXIT;
        END;
    END LOOP;
    RAISE SQLSTATE 'SF002';    -- drops all of these
EXCEPTION WHEN SQLSTATE 'SF002' THEN
    RETURN problems;
END
$$;

-- Values of other types than integers that are no integers, or not below new IDs.
CREATE OR REPLACE FUNCTION convert_key.value_failures() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    item record;
    example text;
BEGIN
    FOR item IN
        SELECT k.* FROM convert_key.columns k JOIN pg_attribute a USING (attnum)
        WHERE attrelid = relation AND atttypid IN ('text'::regtype, 'varchar'::regtype,
            'numeric'::regtype)
    LOOP
        EXECUTE format('SELECT %1$I FROM %2$s WHERE CASE WHEN %1$I::text ~ ''^(0|-?[1-9][0-9]*)$'''
            ' THEN %1$I::numeric NOT BETWEEN -9223372036854775808 AND %3$s'
            ' ELSE %1$I IS NOT NULL END LIMIT 1',
            item.name, item.relation, convert_key.next_id()) INTO example;
        IF example IS NOT NULL THEN
            RETURN NEXT format('column %I of table %s has the value "%s", which is no integer below'
                ' new IDs', item.name, item.relation, example);
        END IF;
    END LOOP;
END
$$;

-- Columns that are not converted, but might have to be.  key_report.sql guesses by the same names.
CREATE OR REPLACE FUNCTION convert_key.suspects() RETURNS text LANGUAGE sql RETURN (
    WITH key AS (
        SELECT relnamespace AS schema, atttypid AS type, lower(replace(key, '_', '')) AS short,
            lower(replace(relname, '_', '')) AS called
        FROM convert_key.job JOIN pg_class c ON c.oid = relation
            JOIN pg_attribute ON attrelid = relation AND attname = key),
    suspects AS (
        SELECT 1 AS place, format(CASE WHEN atttypid IN ('int2'::regtype, 'int4'::regtype)
            THEN '-- ALTER TABLE %s ALTER %I TYPE bigint;' ELSE '-- table %s, column %I' END,
            c.oid::regclass, attname) AS line
        FROM key, pg_class c JOIN pg_attribute a ON attrelid = c.oid AND NOT attisdropped
        WHERE relnamespace = schema AND relkind IN ('r', 'p') AND lower(replace(attname, '_', ''))
                IN (nullif(short, 'id'), called || short,
                    regexp_replace(regexp_replace(called, 'ies$', 'y'), 's$', '') || short)
            AND (atttypid = type OR type <> 'uuid'::regtype
                AND atttypid IN ('int2'::regtype, 'int4'::regtype))
            AND NOT EXISTS (SELECT FROM convert_key.columns k
                WHERE k.relation = c.oid AND k.attnum = a.attnum)
            AND NOT EXISTS (SELECT FROM pg_constraint
                WHERE contype = 'f' AND conrelid = c.oid AND a.attnum = ANY (conkey))
        UNION ALL
        SELECT 2, format('-- %s functions use 32 bits: migration/key_report.sql', count(*))
        FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
        WHERE nspname !~ '^(pg_|information_schema$|convert_key$)' AND proname !~ '^snowflake_'
            AND NOT EXISTS (SELECT FROM pg_depend
                WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
            AND (prosrc ~* '\m(int|integer|int[24]|smallint)\M'
                OR '{int2,int4}'::regtype[] && (coalesce(proallargtypes, proargtypes) || prorettype)
                    ::regtype[])
        HAVING count(*) > 0)
    SELECT string_agg(line, E'\n' ORDER BY place, line) FROM suspects);

-- Begin a conversion, or continue it, and return the obstacles.
CREATE OR REPLACE FUNCTION convert_key.start(target regclass, target_key name, time_column name,
    machine_id integer, began timestamptz, is_published boolean, is_materialized boolean,
    keeps_default boolean) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    problems text[];
BEGIN
    INSERT INTO convert_key.job (relation, key, is_uuid, time_column, machine_id, began, database)
    SELECT target, target_key, atttypid = 'uuid'::regtype, start.time_column, start.machine_id,
        start.began, (SELECT oid FROM pg_database WHERE datname = current_database())
    FROM pg_attribute WHERE attrelid = target AND attname = target_key AND attnum > 0
        AND NOT EXISTS (SELECT FROM convert_key.job);
    UPDATE convert_key.job SET is_published = start.is_published OR is_published,
        is_materialized = start.is_materialized OR is_materialized,
        keeps_default = start.keeps_default
    WHERE relation = target AND key = target_key AND NOT is_swapped;
    IF NOT FOUND THEN
        RETURN format('column "%s" does not exist, or convert_key.job has another conversion, which'
            ' convert_key.undo() or convert_key.finish() ends', target_key);
    END IF;
    IF EXISTS (SELECT FROM convert_key.moved) THEN    -- numbers of columns can differ as well
        RETURN (SELECT obstacle FROM convert_key.moved);
    END IF;
    DELETE FROM convert_key.columns WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = relation);
    DELETE FROM convert_key.tables WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = relation);
    problems := convert_key.find(target, target_key);
    problems := problems || ARRAY(SELECT obstacle FROM convert_key.obstacles)
        || ARRAY(SELECT convert_key.failures())
        || ARRAY(SELECT format('relation %s exists', n.oid::regclass)
            FROM convert_key.job j JOIN pg_class c ON c.oid = j.relation
                JOIN pg_class n ON n.relnamespace = c.relnamespace
                    AND n.relname = left(c.relname, 55) || '_old_key'
            WHERE is_uuid);
    IF convert_key.next_id() <= 2147483647 THEN
        problems := problems || 'new IDs are not greater than all values of type integer'::text;
    END IF;
    IF problems = '{}' THEN    -- then all rows can be read
        problems := ARRAY(SELECT convert_key.value_failures());
    END IF;
    IF problems = '{}' THEN
        problems := convert_key.view_failures();
    END IF;
    RETURN coalesce((SELECT string_agg(DISTINCT p, E'\n') FROM unnest(problems) p), '');
END
$$;

-- Run statements, or if they are null the swap, under exclusive locks.  Programs wait behind a
-- request for such a lock.  So it is given up in time, and repeated.
CREATE OR REPLACE PROCEDURE convert_key.change(relations regclass[], statements text)
LANGUAGE plpgsql AS $$
DECLARE
    item regclass;
    views regclass[];
    commands text;
    deadline timestamptz;
BEGIN
    FOR attempt IN 1 .. 2147483647 LOOP
        PERFORM set_config('search_path', 'pg_catalog, pg_temp', true),
            set_config('client_min_messages', 'warning', true), set_config('jit', 'off', true);
        FOREACH item IN ARRAY relations LOOP    -- blocks changes of definitions, but no program
            EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', item);
        END LOOP;
        commands := coalesce(statements, convert_key.swap_plan());
        IF statements IS NULL THEN
            views := ARRAY(SELECT view FROM convert_key.views ORDER BY depth DESC);
            PERFORM convert_key.with_views('');    -- plans its query before programs wait
        END IF;
        BEGIN
            deadline := clock_timestamp() + (SELECT patience FROM convert_key.job);
            FOREACH item IN ARRAY views || relations LOOP
                PERFORM set_config('lock_timeout', greatest(1,
                    extract(epoch FROM deadline - clock_timestamp()) * 1000)::integer::text, true);
                -- LOCK TABLE would lock all tables that a view uses
                EXECUTE (
                    SELECT format(CASE WHEN item = ANY (views) THEN 'ALTER TABLE %s OWNER TO %s'
                        ELSE 'LOCK TABLE %s IN ACCESS EXCLUSIVE MODE' END, item, relowner::regrole)
                    FROM pg_class WHERE oid = item);
            END LOOP;
            EXECUTE CASE WHEN statements IS NULL THEN convert_key.with_views(commands)
                ELSE commands END;
            EXIT;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF attempt % 20 = 1 THEN
                RAISE INFO 'waiting for the transactions that use %', item;
            END IF;
        END;
        COMMIT;
        PERFORM pg_sleep(0.5);
    END LOOP;
    COMMIT;
END
$$;

-- The constraints that prove it.  With NOT NULL, SET NOT NULL reads no rows.
CREATE OR REPLACE VIEW convert_key.agreements AS
SELECT relation, k.attnum,
    format('convert_key_%s_%s', CASE WHEN attnotnull THEN 'not_null' ELSE 'agrees' END, k.attnum)
        AS name,
    format('CHECK (%s)', concat_ws(' AND ', agreement,
        CASE WHEN attnotnull THEN format('%I IS NOT NULL', new_name) END)) AS definition
FROM convert_key.columns k JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.attnum;

-- The statements that add columns, with triggers that set them whenever a row is written, and
-- constraints that each row satisfies that is written since.  A program that disables all triggers
-- and enables them again leaves none that is ENABLE ALWAYS; then they are made again.  An action
-- of a foreign key of the new columns can come before the action of the old one.  The first
-- trigger lets it do nothing then, so that the triggers of the user are called once.
CREATE OR REPLACE FUNCTION convert_key.skip() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RETURN NULL; END';
CREATE OR REPLACE VIEW convert_key.additions AS
SELECT format('CALL convert_key.change(%L, %L)', ARRAY[k.relation], format($s$
    %2$s
    CREATE OR REPLACE FUNCTION convert_key.keep_%3$s() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS %4$L;
    CREATE OR REPLACE TRIGGER zzz_convert_key BEFORE INSERT OR UPDATE ON %1$s
    FOR EACH ROW EXECUTE FUNCTION convert_key.keep_%3$s();
    ALTER TABLE %1$s ENABLE ALWAYS TRIGGER zzz_convert_key;
    CREATE OR REPLACE TRIGGER "!convert_key" BEFORE UPDATE OF %5$s ON %1$s
    FOR EACH ROW WHEN (%6$s) EXECUTE FUNCTION convert_key.skip() $s$,
    k.relation, format('ALTER TABLE %s ', k.relation) ||
        string_agg(CASE WHEN b.attname IS NULL THEN concat_ws(', ',
            format('ADD COLUMN %I bigint', k.new_name),
            CASE WHEN k.for_name IS NOT NULL THEN format('ADD COLUMN %I uuid', k.for_name) END,
            format('ADD CONSTRAINT %I %s NOT VALID', g.name, g.definition)) END, ', ') || ';',
    k.relation::oid, format(E'BEGIN\n%s\nRETURN NEW;\nEND', string_agg(format(
        CASE WHEN k.for_name IS NULL THEN 'NEW.%1$I := NEW.%2$I;' ELSE
            'IF (NEW.%2$I = NEW.%3$I AND NEW.%2$I = OLD.%2$I AND NEW.%1$I = OLD.%1$I) IS NOT TRUE
            THEN
                NEW.%1$I := convert_key.id_of(NEW.%2$I);
                NEW.%3$I := NEW.%2$I;
            END IF;' END, k.new_name, k.name, k.for_name), E'\n')),
    string_agg(format('%I', k.new_name), ', '),
    format('(%s) AND (%s)',
        string_agg(format('OLD.%1$I IS NOT DISTINCT FROM NEW.%1$I', k.name), ' AND '),
        string_agg(format('OLD.%1$I IS DISTINCT FROM NEW.%1$I', k.new_name), ' OR ')))) AS statement
FROM convert_key.columns k JOIN convert_key.agreements g USING (relation, attnum)
    LEFT JOIN pg_attribute b ON b.attrelid = k.relation AND b.attname = k.new_name
GROUP BY k.relation HAVING bool_or(b.attname IS NULL) OR NOT EXISTS (SELECT FROM pg_trigger
    WHERE tgrelid = k.relation AND tgname = 'zzz_convert_key' AND tgenabled = 'A');

-- Fill some blocks: the triggers set the new columns.  Returns the number of rows, or null if
-- another transaction has written one of them and has not ended.
CREATE OR REPLACE FUNCTION convert_key.fill_blocks(target regclass, assignments text,
    condition text, first bigint, size integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    result bigint;
BEGIN
    PERFORM set_config('session_replication_role', 'replica', true),
        set_config('synchronous_commit', 'off', true),
        set_config('lock_timeout', '50ms', true);    -- less than deadlock_timeout
    EXECUTE format('UPDATE %s SET %s WHERE ctid >= ''(%s,0)'' AND ctid < ''(%s,0)'' AND (%s)',
        target, assignments, first, first + size, condition);
    GET DIAGNOSTICS result = ROW_COUNT;
    UPDATE convert_key.tables SET next_block = first + size WHERE relation = target;
    RETURN result;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN NULL;
END
$$;

-- Fill the new columns of a table once.  A row that is written meanwhile can move to another block,
-- but has them then.
CREATE OR REPLACE PROCEDURE convert_key.fill_table(target regclass, assignments text,
    condition text, block bigint) LANGUAGE plpgsql AS $$
DECLARE
    blocks bigint := pg_relation_size(target) / current_setting('block_size')::integer;
    first bigint := block;
    size integer := 8;
    batch bigint; filled bigint := 0;
    began timestamptz := clock_timestamp();
    batch_began timestamptz; reported timestamptz := began;
BEGIN
    WHILE block < blocks LOOP
        batch_began := clock_timestamp();
        batch := convert_key.fill_blocks(target, assignments, condition, block, size);
        COMMIT;
        IF batch IS NULL THEN
            size := greatest(1, size / 4);
        ELSE
            block := block + size;
            filled := filled + batch;
        END IF;
        -- programs wait for the rows of a batch: 30 ms at most
        size := least(1024, greatest(1,
            size * least(2, 0.03 / extract(epoch FROM clock_timestamp() - batch_began))));
        IF clock_timestamp() > reported + interval '5 s' OR block >= blocks THEN
            reported := clock_timestamp();
            RAISE INFO '%: % of % blocks, % rows, % rows/s, expected to end at %', target,
                least(block, blocks), blocks, filled,
                (filled / extract(epoch FROM reported - began))::bigint,
                to_char(reported + (reported - began) * (greatest(0, blocks - block)::float
                    / greatest(1, block - first)), 'HH24:MI:SS');
        END IF;
    END LOOP;
END
$$;

CREATE OR REPLACE PROCEDURE convert_key.fill() LANGUAGE plpgsql AS $$
DECLARE
    item record;
    is_missing boolean;
BEGIN
    FOR item IN
        SELECT t.relation, t.next_block,
            string_agg(format('%1$I = %1$I', k.new_name), ', ') AS assignments,
            string_agg(format('NOT (%s)', k.agreement), ' OR ') AS condition
        FROM convert_key.tables t JOIN convert_key.columns k USING (relation)
        GROUP BY t.relation ORDER BY t.relation
    LOOP
        FOR pass IN 1 .. 3 LOOP
            CALL convert_key.fill_table(
                item.relation, item.assignments, item.condition, item.next_block);
            EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %s)', item.relation, item.condition)
            INTO is_missing;
            EXIT WHEN NOT is_missing;
            IF pass = 3 THEN
                RAISE EXCEPTION 'trigger "zzz_convert_key" of table % does not set the new columns',
                    item.relation;
            END IF;
            item.next_block := 0;    -- VACUUM FULL can have moved rows to earlier blocks
        END LOOP;
    END LOOP;
END
$$;

-- The statements that remain after the columns are filled.  The swap requires that this is
-- nothing.

CREATE OR REPLACE VIEW convert_key.wanted AS
SELECT relation, relation AS referred, true AS convalidated, NULL AS creation, name, definition
FROM convert_key.agreements
UNION ALL
SELECT relation, referred, convalidated, creation, new_name, definition
FROM convert_key.constraints;

CREATE OR REPLACE VIEW convert_key.todo AS    -- relations: which change() has to lock
SELECT 1 AS step, array_remove(ARRAY[confrelid, conrelid], 0)::regclass[] AS relations,
    '' AS tablespace, format('ALTER TABLE %s DROP CONSTRAINT %I', relation, conname) AS statement
FROM convert_key.tables JOIN pg_constraint n ON conrelid = relation
WHERE conname LIKE 'convert\_key\_%'
    AND NOT EXISTS (
        SELECT FROM convert_key.wanted w WHERE w.relation = conrelid AND w.name = conname)
UNION ALL
SELECT 2, NULL, '', format('DROP INDEX CONCURRENTLY %s', indexrelid::regclass)
FROM convert_key.tables t JOIN pg_index ON indrelid = relation JOIN pg_class c ON c.oid = indexrelid
WHERE relname LIKE 'convert\_key\_%' AND NOT (indisvalid AND (relname = 'convert_key_old'
    OR EXISTS (
        SELECT FROM convert_key.indexes i WHERE i.relation = t.relation AND i.new_name = relname)))
UNION ALL
SELECT 3, NULL, tablespace, format('CREATE %s INDEX CONCURRENTLY %I ON %s %s', is_unique, new_name,
    relation, convert_key.definition(relation, creation))
FROM convert_key.indexes i WHERE NOT EXISTS (
    SELECT FROM pg_index n JOIN pg_class c ON c.oid = n.indexrelid
    WHERE n.indrelid = i.relation AND c.relname = i.new_name)
UNION ALL
SELECT 3, NULL, '', format('CREATE %s INDEX CONCURRENTLY convert_key_old ON %s (%I)', (
        SELECT 'UNIQUE' FROM convert_key.indexes i JOIN pg_index n ON n.indexrelid = i.oid
        WHERE i.relation = k.relation AND indisunique AND indnkeyatts = 1 AND indkey[0] = attnum
            AND indpred IS NULL LIMIT 1), relation, name)
FROM convert_key.columns k WHERE is_key AND for_name IS NOT NULL AND NOT EXISTS (
    SELECT FROM pg_index n JOIN pg_class c ON c.oid = n.indexrelid
    WHERE n.indrelid = k.relation AND c.relname = 'convert_key_old')
UNION ALL
SELECT 4, ARRAY[referred, relation], '', format('ALTER TABLE %s ADD CONSTRAINT %I %s',
    relation, name,
    regexp_replace(coalesce(definition, convert_key.definition(relation, creation)),
        '( NOT VALID)?$', ' NOT VALID'))
FROM convert_key.wanted
WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = relation AND conname = name)
UNION ALL
SELECT 5, NULL, '', format('ALTER TABLE %s VALIDATE CONSTRAINT %I', relation, name)
FROM convert_key.wanted w JOIN pg_constraint n ON conrelid = relation AND conname = name
WHERE w.convalidated AND NOT n.convalidated
UNION ALL
SELECT 6, ARRAY[relation], '', format('ALTER TABLE %s ALTER %I %s NOT NULL', relation, new_name,
    CASE WHEN a.attnotnull THEN 'SET' ELSE 'DROP' END)
FROM convert_key.columns k JOIN pg_attribute a ON a.attrelid = relation AND a.attnum = k.attnum
    JOIN pg_attribute b ON b.attrelid = relation AND b.attname = new_name
WHERE a.attnotnull <> b.attnotnull;

CREATE OR REPLACE VIEW convert_key.commands AS
SELECT step, format('SET default_tablespace = %L', tablespace) AS setting,
    CASE WHEN relations IS NULL THEN statement
        ELSE format('CALL convert_key.change(%L, %L)', relations, statement) END AS command
FROM convert_key.todo;

-- What the new columns, indexes and constraints take over.
CREATE OR REPLACE VIEW convert_key.swap_properties AS
SELECT 8 AS step, format('ALTER TABLE %s ALTER CONSTRAINT %I %s', relation, name, timing)
    AS statement
FROM convert_key.constraints WHERE timing IS NOT NULL
UNION ALL
SELECT 8, format(f.form, relation, name)
FROM convert_key.indexes, LATERAL (VALUES
    (indisreplident, 'ALTER TABLE %s REPLICA IDENTITY USING INDEX %I'),
    (indisclustered, 'ALTER TABLE %s CLUSTER ON %I')) AS f (is_set, form)
WHERE f.is_set
UNION ALL
SELECT 8, format(f.form, schema, name, f.value)
FROM convert_key.indexes i, LATERAL (
    VALUES ('COMMENT ON INDEX %s.%I IS %L', obj_description(oid, 'pg_class')),
        ('ALTER INDEX %s.%I SET (%s)', array_to_string(reloptions, ', '))
    UNION ALL
    SELECT 'ALTER INDEX %s.%I ALTER COLUMN ' || attnum || ' SET STATISTICS %s',
        nullif(attstattarget, -1)::text
    FROM pg_attribute WHERE attrelid = i.oid) AS f (form, value)
WHERE f.value IS NOT NULL
UNION ALL
SELECT 8, format('COMMENT ON CONSTRAINT %I ON %s IS %L', n.conname, n.conrelid::regclass,
    obj_description(n.oid, 'pg_constraint'))
FROM pg_constraint n
WHERE n.oid IN (
        SELECT oid FROM convert_key.constraints
        UNION SELECT constraint_oid FROM convert_key.indexes)
    AND obj_description(n.oid, 'pg_constraint') IS NOT NULL
UNION ALL
SELECT 8, format(f.form, k.relation, name, f.value)
FROM convert_key.job, convert_key.columns k
    JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.attnum,
    LATERAL (VALUES
        ('COMMENT ON COLUMN %s.%I IS %L', col_description(k.relation, k.attnum)),
        ('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', nullif(a.attstattarget, -1)::text),
        ('ALTER TABLE %s ALTER COLUMN %I SET (%s)',
            (SELECT string_agg(o, ', ') FROM unnest(a.attoptions) o WHERE o LIKE 'n\_distinct%')),
        ('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', CASE WHEN is_key AND NOT keeps_default
            THEN :'snowflake' || '.snowflake_id()'
            ELSE (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
                WHERE adrelid = k.relation AND adnum = k.attnum) END)) AS f (form, value)
WHERE f.value IS NOT NULL
UNION ALL
SELECT 8, format('GRANT %s (%I) ON %s TO %s%s', g.privilege_type, k.name, k.relation,
    CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
    CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
FROM convert_key.columns k JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.attnum,
    LATERAL aclexplode(a.attacl) g
UNION ALL
-- A sequence follows its column.  That of the key is dropped with the old key, if only its default
-- uses it; programs can call one without a default by its name.
SELECT 8, format('ALTER SEQUENCE %s OWNED BY %s', s.objid::regclass,
    CASE WHEN is_key AND NOT keeps_default THEN 'NONE' ELSE format('%s.%I', k.relation, name) END)
FROM convert_key.job, convert_key.columns k
    JOIN pg_depend s ON s.classid = 'pg_class'::regclass AND s.deptype = 'a'
        AND s.refclassid = 'pg_class'::regclass AND s.refobjid = k.relation
        AND s.refobjsubid = attnum
    JOIN pg_class c ON c.oid = s.objid AND c.relkind = 'S'
WHERE NOT (is_key AND NOT keeps_default) OR (
    SELECT bool_and(u.classid = 'pg_attrdef'::regclass AND u.objid IN (
        SELECT oid FROM pg_attrdef WHERE adrelid = k.relation AND adnum = attnum))
    FROM pg_depend u WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = s.objid
        AND u.deptype = 'n') IS NOT TRUE;

CREATE OR REPLACE VIEW convert_key.swap_statements AS
SELECT 1 AS step, format(
    'DROP TRIGGER zzz_convert_key ON %1$s; DROP TRIGGER "!convert_key" ON %1$s',
    relation) AS statement
FROM convert_key.tables
UNION ALL
SELECT 1, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
FROM convert_key.tables JOIN pg_constraint ON conrelid = relation
WHERE conname ~ '^convert_key_(agrees|not_null)_'
UNION ALL
SELECT 2, format('ALTER TABLE %s DROP CONSTRAINT %I', relation, name) FROM convert_key.constraints
UNION ALL
SELECT 3, CASE WHEN constraint_oid IS NULL THEN format('DROP INDEX %s', index)
    ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', relation, name) END
FROM convert_key.indexes
UNION ALL
SELECT 4, format('ALTER TABLE %1$s ALTER %2$I DROP IDENTITY IF EXISTS, ALTER %2$I DROP NOT NULL,'
    ' ALTER %2$I DROP DEFAULT', relation, name)
FROM convert_key.columns
UNION ALL
SELECT 4, format('ALTER TABLE %s DROP COLUMN %I', relation, for_name)
FROM convert_key.columns WHERE for_name IS NOT NULL
UNION ALL
SELECT r.step, format('ALTER TABLE %s RENAME COLUMN %I TO %I', relation, r.before, r.after)
FROM convert_key.columns k,
    LATERAL (VALUES (5, name, old_name), (6, new_name, name)) AS r (step, before, after)
UNION ALL
SELECT 7, CASE WHEN constraint_oid IS NULL
    THEN format('ALTER INDEX %s.%I RENAME TO %I', schema, new_name, name)
    ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I %s',
        relation, name, constraint_type, new_name, timing) END
FROM convert_key.indexes
UNION ALL
SELECT 7, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', relation, new_name, name)
FROM convert_key.constraints
UNION ALL
-- NOT NULL is a constraint with a name since PostgreSQL 18.
SELECT 7, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', relation, b.conname, a.conname)
FROM convert_key.columns k
    JOIN pg_attribute n ON n.attrelid = relation AND n.attname = new_name
    JOIN pg_constraint a ON a.conrelid = relation AND a.conkey = ARRAY[k.attnum]
    JOIN pg_constraint b ON b.conrelid = relation AND b.conkey = ARRAY[n.attnum]
WHERE a.contype = 'n' AND b.contype = 'n' AND a.conname <> b.conname
UNION ALL
SELECT 7, format('ALTER INDEX %s RENAME TO %I',
    indexrelid::regclass, left(t.relname, 55) || '_old_key')
FROM convert_key.job j JOIN pg_class t ON t.oid = j.relation JOIN pg_index ON indrelid = j.relation
    JOIN pg_class c ON c.oid = indexrelid AND c.relname = 'convert_key_old'
UNION ALL
SELECT step, statement FROM convert_key.swap_properties
UNION ALL
SELECT 9, 'UPDATE convert_key.job SET is_swapped = true';

CREATE OR REPLACE FUNCTION convert_key.swap_plan() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    remaining text := coalesce((SELECT obstacle FROM convert_key.moved),
        (SELECT string_agg(r, E'\n') FROM (
            SELECT obstacle FROM convert_key.obstacles
            UNION SELECT statement FROM convert_key.todo) AS s (r)));
BEGIN
    IF remaining IS NOT NULL THEN
        RAISE EXCEPTION 'the conversion is not complete, or the tables have changed since'
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = remaining,
                HINT = 'Run convert_key.sql again.';
    END IF;
    RETURN (SELECT string_agg(statement, ';' ORDER BY step) FROM convert_key.swap_statements);
END
$$;

-- Fill the materialized views that were created by the swap, as their users would.
CREATE OR REPLACE PROCEDURE convert_key.refresh() LANGUAGE plpgsql AS $$
DECLARE
    item text;
BEGIN
    FOR item IN SELECT name FROM convert_key.empty_views ORDER BY depth LOOP
        EXECUTE 'REFRESH MATERIALIZED VIEW ' || item;
        DELETE FROM convert_key.empty_views WHERE name = item;
        COMMIT;
    END LOOP;
END
$$;

CREATE OR REPLACE PROCEDURE convert_key.swap() LANGUAGE plpgsql AS $$
DECLARE
    relations regclass[];
BEGIN
    PERFORM set_config('jit', 'off', true);
    relations := (SELECT array_agg(t.relation ORDER BY t.relation <> j.relation)
        FROM convert_key.job j, convert_key.tables t WHERE NOT j.is_swapped);
    IF relations IS NULL THEN
        RAISE EXCEPTION 'no conversion exists, or its columns were swapped';
    END IF;
    CALL convert_key.change(relations, NULL);
    CALL convert_key.refresh();
END
$$;

CREATE OR REPLACE PROCEDURE convert_key.drop_columns(after_swap boolean) LANGUAGE plpgsql AS $$
DECLARE
    item record;
BEGIN
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true), set_config('jit', 'off', true);
    IF NOT EXISTS (SELECT FROM convert_key.job WHERE is_swapped = after_swap) THEN
        RAISE EXCEPTION USING MESSAGE = CASE WHEN after_swap
            THEN 'no conversion exists, or its columns were not swapped'
            ELSE 'no conversion exists, or its columns were swapped' END;
    END IF;
    FOR item IN
        SELECT ARRAY[j.relation, k.relation] AS relations, format(
            'DROP TRIGGER IF EXISTS zzz_convert_key ON %1$s;'
            ' DROP TRIGGER IF EXISTS "!convert_key" ON %1$s; ALTER TABLE %1$s %2$s;'
            ' DROP INDEX IF EXISTS %3$s.convert_key_old', k.relation,
            string_agg(format('DROP COLUMN IF EXISTS %I', c.name), ', ' ORDER BY k.is_key),
            (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = j.relation)) AS statements
        FROM convert_key.job j, convert_key.columns k, LATERAL unnest(
            CASE WHEN after_swap THEN ARRAY[k.old_name] ELSE ARRAY[k.new_name, k.for_name] END)
            AS c (name)
        WHERE NOT (after_swap AND j.is_uuid AND k.is_key) AND c.name IS NOT NULL
            AND EXISTS (SELECT FROM pg_class WHERE oid = k.relation)
        GROUP BY k.relation, j.relation ORDER BY bool_or(k.is_key)
    LOOP
        CALL convert_key.change(item.relations, item.statements);
    END LOOP;
    DELETE FROM convert_key.job;
    DELETE FROM convert_key.columns;
    DELETE FROM convert_key.tables;
    DELETE FROM convert_key.ids;
END
$$;
CREATE OR REPLACE PROCEDURE convert_key.undo() LANGUAGE plpgsql AS
    'BEGIN CALL convert_key.drop_columns(false); END';
CREATE OR REPLACE PROCEDURE convert_key.finish() LANGUAGE plpgsql AS
    'BEGIN CALL convert_key.refresh(); CALL convert_key.drop_columns(true); END';

-- The conversion.  A step that is complete changes nothing when it runs again.

SELECT convert_key.start(:'relation', :'column', nullif(:'time', ''),
    coalesce(nullif(:'machine_id', '')::integer, :snowflake.snowflake_server_machine_id()),
    :snowflake.snowflake_timestamp(convert_key.next_id()) - interval '1 s', :'published',
    :'materialized', :'keep_default')
    AS obstacles \gset
SELECT :'obstacles' <> '' AS is_refused \gset
\if :is_refused
    ROLLBACK;
    SELECT set_config('convert_key.obstacles', :'obstacles', false) \gset
    DO $$
    BEGIN
        PERFORM pg_advisory_unlock(hashtext('convert_key'));
        RAISE EXCEPTION 'cannot convert the key'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = E'Nothing was changed.  The obstacles are:\n'
                    || current_setting('convert_key.obstacles'),
                HINT = 'Remove the obstacles, and run convert_key.sql again.  Objects that depend'
                    ' on a column can be created again after the swap.';
    END
    $$;
\endif
COMMIT;
DO $$
DECLARE
    suspects text := convert_key.suspects();
BEGIN
    IF suspects IS NOT NULL THEN
        RAISE INFO E'not converted (to include a column, add a foreign key, even NOT VALID):\n%',
            suspects;
    END IF;
END
$$;

-- The IDs of the rows of a uuid key, in the order of their times, as in docs/migration.md.  They
-- are earlier than the first run of this script, and the IDs of the generator are later, so that
-- they differ.
SELECT format($s$
    WITH layout AS (
        SELECT width, %1$s.snowflake_sequence(width - 1) + 1 AS sequences, epoch
        FROM %1$s.snowflake_timestamp(0) AS epoch,
            %1$s.snowflake_boundary(epoch + interval '1 us') AS width),
    existing AS (
        SELECT %2$I AS old, coalesce(%3$s, CASE WHEN substr(%2$I::text, 15, 1) = '7'
            THEN to_timestamp(
                ('x' || translate(left(%2$I::text, 13), '-', ''))::bit(48)::bigint / 1000.0)
            END) AS instant
        FROM %4$s WHERE %2$I IS NOT NULL),
    numbered AS (
        SELECT old, row_number() OVER (ORDER BY instant, old) AS n,
            %1$s.snowflake_encode(instant, %5$s, 0) / width AS tick
        FROM existing, layout WHERE instant >= epoch AND instant < %6$L),
    placed AS (
        SELECT old, n + max(tick * sequences - n) OVER (ORDER BY n) AS place FROM numbered, layout),
    marked AS (UPDATE convert_key.job SET is_assigned = true)
    INSERT INTO convert_key.ids
    SELECT old, CASE WHEN place / sequences < %1$s.snowflake_encode(%6$L, %5$s, 0) / width
        THEN place / sequences * width
            + %1$s.snowflake_encode(%6$L, %5$s, (place %% sequences)::integer) %% width
        ELSE convert_key.next_id() END, NULL
    FROM placed, layout
    UNION ALL
    SELECT old, convert_key.next_id(),
        CASE WHEN instant >= epoch AND instant < now() THEN NULL ELSE instant END
    FROM existing, layout WHERE (instant >= epoch AND instant < %6$L) IS NOT TRUE
    ON CONFLICT DO NOTHING $s$,
    :'snowflake', key, CASE WHEN time_column IS NULL THEN 'NULL::timestamptz'
        ELSE format('%I::timestamptz', time_column) END, relation, machine_id, began)
FROM convert_key.job WHERE is_uuid AND NOT is_assigned \gexec

\echo Adding columns and triggers
SELECT statement FROM convert_key.additions \gexec

\echo Filling
CALL convert_key.fill();

\set run 'SELECT setting, command FROM convert_key.commands WHERE step ='
\echo Creating indexes
:run 1 \gexec
:run 2 \gexec
:run 3 \gexec
SELECT format('ANALYZE %s', relation) FROM convert_key.tables \gexec

\echo Adding constraints
:run 4 \gexec
\echo Validating: each row is read
:run 5 \gexec
:run 6 \gexec
\echo Ready: convert_key.swap() lets the new columns take the place of the old ones.
\echo convert_key.undo() removes them.

DO 'BEGIN PERFORM pg_advisory_unlock(hashtext(''convert_key'')); END';
RESET search_path; RESET client_min_messages; RESET lock_timeout; RESET statement_timeout;
RESET client_connection_check_interval; RESET row_security; RESET jit; RESET default_tablespace;
\set ON_ERROR_STOP :on_error_stop
\set QUIET :quiet
