-- Converts a key of type integer, smallint or uuid to bigint while programs write, with the columns
-- of all tables that refer to it.  New columns are added beside the old ones, triggers keep them in
-- step, and one short transaction gives them the names of the old ones.
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
-- that the constraint is validated.  For integers it is (id_new IS NOT DISTINCT FROM id).  For
-- values of type uuid, convert_key.ids has the ID of each.  The trigger writes the ID into id_new,
-- and the uuid for which it has looked it up into id_for.  The constraint compares id_for with id.
--
-- Integer keys keep their values.  Rows of a uuid key get IDs with the time in the uuid, if it has
-- version 7, or in the column that -v time=created_at names.  Rows without such a time, and with
-- one outside of the layout or in the future, get IDs of the present.  The latter are listed in
-- convert_key.ids until finish().  -v machine_id=N puts another machine ID than the server's into
-- IDs of the past.  -v published=on converts tables that are published.
--
-- It needs a superuser, or an owner of the tables with CREATE on the database and SET on the
-- parameter session_replication_role, and free space for a second copy of the tables and indexes.

\set quiet :QUIET
\set QUIET on
\set on_error_stop :ON_ERROR_STOP
\set ON_ERROR_STOP on
SET client_min_messages = warning;
SET lock_timeout = 0;
SET statement_timeout = 0;
SET client_connection_check_interval = '2s';
SET row_security = off;

\if :{?table} \else
    \echo 'Set the variables "table" and "column".'
    \quit
\endif
\if :{?column} \else
    \set column id
\endif
\if :{?time} \else \set time '' \endif
\if :{?machine_id} \else \set machine_id '' \endif
\if :{?published} \else \set published off \endif

\echo Checking
SELECT :'table'::regclass::oid AS relation \gset
SET search_path = pg_catalog, pg_temp;
SELECT extnamespace::regnamespace AS snowflake FROM pg_extension WHERE extname = 'snowflake' \gset
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_namespace
        WHERE nspname = 'convert_key' AND nspowner <> current_user::regrole) THEN
        RAISE EXCEPTION 'schema convert_key belongs to another role';
    ELSIF NOT pg_try_advisory_lock(hashtext('convert_key')) THEN
        RAISE EXCEPTION 'another session runs convert_key.sql';
    END IF;
END
$$;
BEGIN;

-- The state: what is converted, and how far each table is filled.  All else is in the catalogs.

CREATE SCHEMA IF NOT EXISTS convert_key;
CREATE TABLE IF NOT EXISTS convert_key.job (
    relation regclass NOT NULL, key name NOT NULL, is_uuid boolean NOT NULL, time_column name,
    machine_id integer NOT NULL, began timestamptz NOT NULL,
    is_published boolean NOT NULL DEFAULT false, is_assigned boolean NOT NULL DEFAULT false,
    is_swapped boolean NOT NULL DEFAULT false,
    patience interval NOT NULL DEFAULT '50 ms',    -- how long a request for a lock blocks programs
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only));
CREATE TABLE IF NOT EXISTS convert_key.columns (
    relation regclass, attnum smallint, is_key boolean NOT NULL, name name NOT NULL,
    new_name name NOT NULL, old_name name NOT NULL, for_name name,    -- null for integers
    agreement text NOT NULL, PRIMARY KEY (relation, attnum));
CREATE TABLE IF NOT EXISTS convert_key.tables (
    relation regclass PRIMARY KEY, next_block bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS convert_key.ids (
    old_id uuid PRIMARY KEY, new_id bigint NOT NULL, outside timestamptz);
SELECT format('CREATE OR REPLACE FUNCTION convert_key.next_id() RETURNS bigint LANGUAGE sql
    RETURN %s.snowflake_id()', :'snowflake') \gexec

-- The ID of a uuid.  A row can refer to one that comes later, also in another transaction.
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
LANGUAGE sql STABLE RETURN (
    SELECT substr(pg_get_indexdef(index), 1 + length(format('CREATE %sINDEX %I ON %s ',
        CASE WHEN indisunique THEN 'UNIQUE ' END, relname, indrelid::regclass)))
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

-- The foreign keys of the new columns are deferred until the swap, so that those of the old columns
-- act first, and the trigger sets the new columns.
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

-- What is refused: it would not follow the columns, or change them after the trigger.
CREATE OR REPLACE VIEW convert_key.table_obstacles AS
WITH tables AS (
    SELECT t.relation, c.* FROM convert_key.tables t JOIN pg_class c ON c.oid = t.relation)
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
        ELSE atttypid <> ALL ('{int2,int4,int8}'::regtype[])
            OR is_key AND atttypid = 'int8'::regtype END,
        'is of type ' || format_type(atttypid, NULL)),
    (attgenerated <> '', 'is generated'),
    (attidentity <> '' AND NOT is_key, 'refers to the key and is an identity'),
    (is_uuid AND atthasdef AND NOT is_key, 'refers to the key and has a default of type uuid'),
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
        WHERE d.classid = 'pg_class'::regclass AND oid = d.objid AND relkind IN ('i', 'S'))
    AND NOT EXISTS (SELECT FROM pg_constraint
        WHERE d.classid = 'pg_constraint'::regclass AND oid = d.objid AND contype <> 'x')
    AND NOT EXISTS (SELECT FROM pg_trigger
        WHERE d.classid = 'pg_trigger'::regclass AND oid = d.objid AND tgname = '!convert_key')
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

-- Begin a conversion, or continue it, and return what keeps the key from being converted.
CREATE OR REPLACE FUNCTION convert_key.start(target regclass, target_key name, time_column name,
    machine_id integer, began timestamptz, is_published boolean) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    problems text[];
BEGIN
    INSERT INTO convert_key.job
    SELECT target, target_key, atttypid = 'uuid'::regtype, start.time_column, start.machine_id,
        start.began
    FROM pg_attribute WHERE attrelid = target AND attname = target_key AND attnum > 0
        AND NOT EXISTS (SELECT FROM convert_key.job);
    UPDATE convert_key.job SET is_published = start.is_published OR is_published
    WHERE relation = target AND key = target_key AND NOT is_swapped;
    IF NOT FOUND THEN
        RETURN format('column "%s" does not exist, or convert_key.job has another conversion, which'
            ' convert_key.undo() or convert_key.finish() ends', target_key);
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
    RETURN coalesce((SELECT string_agg(DISTINCT p, E'\n') FROM unnest(problems) p), '');
END
$$;

-- Run statements, or if they are null the swap, under exclusive locks.  Programs wait behind a
-- request for such a lock.  So it is given up in time, and repeated.
CREATE OR REPLACE PROCEDURE convert_key.change(relations regclass[], statements text)
LANGUAGE plpgsql AS $$
DECLARE
    item regclass;
    commands text;
    deadline timestamptz;
BEGIN
    FOR attempt IN 1 .. 2147483647 LOOP
        PERFORM set_config('search_path', 'pg_catalog, pg_temp', true),
            set_config('client_min_messages', 'warning', true);
        FOREACH item IN ARRAY relations LOOP    -- blocks changes of definitions, but no program
            EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', item);
        END LOOP;
        commands := coalesce(statements, convert_key.swap_plan());
        BEGIN
            deadline := clock_timestamp() + (SELECT patience FROM convert_key.job);
            FOREACH item IN ARRAY relations LOOP
                PERFORM set_config('lock_timeout', greatest(1,
                    extract(epoch FROM deadline - clock_timestamp()) * 1000)::integer::text, true);
                EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', item);
            END LOOP;
            EXECUTE commands;
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
-- and enables them again leaves none that is ENABLE ALWAYS; then they are made again.  An action of
-- a foreign key of the new columns can come before that of the old ones.  The first trigger lets it
-- do nothing then, so that the triggers of the user are called once.
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
                RAISE EXCEPTION 'trigger zzz_convert_key of table % does not set the new columns',
                    item.relation;
            END IF;
            item.next_block := 0;    -- as after VACUUM FULL
        END LOOP;
    END LOOP;
END
$$;

-- What remains to be done after the columns are filled.  The swap requires that this is nothing.

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
SELECT 8, format(f.form, relation, name, f.value)
FROM convert_key.columns k JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.attnum,
    LATERAL (VALUES
        ('COMMENT ON COLUMN %s.%I IS %L', col_description(k.relation, k.attnum)),
        ('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', nullif(a.attstattarget, -1)::text),
        ('ALTER TABLE %s ALTER COLUMN %I SET (%s)',
            (SELECT string_agg(o, ', ') FROM unnest(a.attoptions) o WHERE o LIKE 'n\_distinct%')),
        ('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', CASE WHEN is_key THEN
            (SELECT extnamespace::regnamespace || '.snowflake_id()'
                FROM pg_extension WHERE extname = 'snowflake')
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
-- A sequence follows its column.  That of the key is dropped with the old key, unless others use
-- it.
SELECT 8, format('ALTER SEQUENCE %s OWNED BY %s', s.objid::regclass,
    CASE WHEN is_key THEN 'NONE' ELSE format('%s.%I', relation, name) END)
FROM convert_key.columns k JOIN pg_depend s ON s.classid = 'pg_class'::regclass AND s.deptype = 'a'
        AND s.refclassid = 'pg_class'::regclass AND s.refobjid = relation AND s.refobjsubid = attnum
    JOIN pg_class c ON c.oid = s.objid AND c.relkind = 'S'
WHERE NOT is_key OR EXISTS (SELECT FROM pg_depend u
    WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = s.objid AND u.deptype = 'n'
        AND (u.classid, u.objid) NOT IN (SELECT 'pg_attrdef'::regclass::oid, oid FROM pg_attrdef
            WHERE adrelid = relation AND adnum = attnum));

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
    remaining text := (SELECT string_agg(r, E'\n') FROM (
        SELECT obstacle FROM convert_key.obstacles
        UNION SELECT statement FROM convert_key.todo) AS s (r));
BEGIN
    IF remaining IS NOT NULL THEN
        RAISE EXCEPTION 'the conversion is not complete, or the tables have changed since'
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = remaining,
                HINT = 'Run convert_key.sql again.';
    END IF;
    RETURN (SELECT string_agg(statement, ';' ORDER BY step) FROM convert_key.swap_statements);
END
$$;

CREATE OR REPLACE PROCEDURE convert_key.swap() LANGUAGE plpgsql AS $$
DECLARE
    relations regclass[] := (SELECT array_agg(t.relation ORDER BY t.relation <> j.relation)
        FROM convert_key.job j, convert_key.tables t WHERE NOT j.is_swapped);
BEGIN
    IF relations IS NULL THEN
        RAISE EXCEPTION 'there is no conversion, or its columns were swapped';
    END IF;
    CALL convert_key.change(relations, NULL);
END
$$;

CREATE OR REPLACE PROCEDURE convert_key.drop_columns(after_swap boolean) LANGUAGE plpgsql AS $$
DECLARE
    item record;
BEGIN
    IF NOT EXISTS (SELECT FROM convert_key.job WHERE is_swapped = after_swap) THEN
        RAISE EXCEPTION 'there is no conversion, or its columns were %',
            CASE WHEN after_swap THEN 'not swapped' ELSE 'swapped' END;
    END IF;
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
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
    'BEGIN CALL convert_key.drop_columns(true); END';

-- The conversion.  A step that is complete changes nothing when it runs again.

SELECT convert_key.start(:'relation', :'column', nullif(:'time', ''),
    coalesce(nullif(:'machine_id', '')::integer, :snowflake.snowflake_server_machine_id()),
    :snowflake.snowflake_timestamp(convert_key.next_id()) - interval '1 s', :'published')
    AS obstacles \gset
SELECT :'obstacles' <> '' AS is_refused \gset
\if :is_refused
    ROLLBACK;
    SELECT set_config('convert_key.obstacles', :'obstacles', false) \gset
    DO $$
    BEGIN
        PERFORM pg_advisory_unlock(hashtext('convert_key'));
        RAISE EXCEPTION 'the key cannot be converted'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = current_setting('convert_key.obstacles'), HINT = 'Nothing was changed.  '
                'Objects that depend on a column can be dropped, and created again after the swap.';
    END
    $$;
\endif
COMMIT;

-- The IDs of the rows of a uuid key, in the order of their times, as in docs/migration.md.  They
-- are earlier than the first call of this script, and the IDs of the generator are later, so that
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
RESET client_connection_check_interval; RESET row_security; RESET default_tablespace;
\set ON_ERROR_STOP :on_error_stop
\set QUIET :quiet
