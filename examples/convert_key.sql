-- Converts a key of type integer, smallint or uuid to bigint while programs write, with the columns of all tables that refer to it.
-- New columns are added beside the old ones, triggers keep them in step, and one short transaction gives them the names of the old ones.
--
--   psql -v table=orders -v column=id -f convert_key.sql    prepares everything; to resume it, run it again
--   CALL convert_key.swap()                                 the new columns take the place of the old ones
--   CALL convert_key.undo()                                 instead of swap(): removes everything
--   CALL convert_key.finish()                               after swap(): drops the old columns, except an old key of type uuid
--   DROP SCHEMA convert_key CASCADE                         at the end
--
-- Integer keys keep their values.  Rows of a uuid key get IDs with the time in the uuid, if it has version 7, or in the column that
-- -v time=created_at names.  Rows without such a time, and with one outside of the layout or in the future, get IDs of the present.
-- The latter are in convert_key.ids until finish().  -v machine_id=N puts another machine ID than the server's into IDs of the past.
--
-- It needs a superuser, or the owner of the tables with SET on the parameter session_replication_role, and free space for a second
-- copy of the tables and indexes.  Without the variable "table" it converts tables of its own, as a test.

\set on_error_stop :ON_ERROR_STOP
\set ON_ERROR_STOP on
SET client_min_messages = warning;
SET lock_timeout = 0;
SET statement_timeout = 0;
SET client_connection_check_interval = '2s';

\if :{?time} \else \set time '' \endif
\if :{?machine_id} \else \set machine_id '' \endif
\if :{?table}
    \set is_test false
\else
    \set is_test true
    \set table items
    \set column id
    CREATE TABLE items (id serial PRIMARY KEY, parent integer REFERENCES items ON DELETE SET NULL, name text);
    CREATE TABLE prices (item integer NOT NULL REFERENCES items ON DELETE CASCADE, price numeric, PRIMARY KEY (item, price));
    CREATE TABLE notes (id bigserial PRIMARY KEY, item integer REFERENCES items DEFERRABLE, note text);
    INSERT INTO items (name, parent) SELECT 'item ' || n, nullif(n / 2, 0) FROM generate_series(1, 1000) n;
    INSERT INTO prices SELECT n, p FROM generate_series(1, 1000) n, generate_series(1, 3) p;
    INSERT INTO notes (item, note) SELECT n, 'a note' FROM generate_series(1, 1000) n;
\endif
SELECT extnamespace::regnamespace AS snowflake FROM pg_extension WHERE extname = 'snowflake' \gset

-- The state: what is converted, and how far each table is filled.  All else is in the catalogs.

CREATE SCHEMA IF NOT EXISTS convert_key;
CREATE TABLE IF NOT EXISTS convert_key.job (
    relation regclass NOT NULL, key name NOT NULL, is_uuid boolean NOT NULL, time_column name, machine_id integer NOT NULL, began timestamptz NOT NULL,
    is_assigned boolean NOT NULL DEFAULT false, is_ready boolean NOT NULL DEFAULT false, is_swapped boolean NOT NULL DEFAULT false,
    patience interval NOT NULL DEFAULT '50 ms');    -- for how long a request for a lock can block programs
CREATE UNIQUE INDEX IF NOT EXISTS only_one ON convert_key.job ((true));
CREATE TABLE IF NOT EXISTS convert_key.columns (
    relation regclass, attnum smallint, is_key boolean NOT NULL, name name NOT NULL, new_name name NOT NULL, old_name name NOT NULL,
    PRIMARY KEY (relation, attnum));
CREATE TABLE IF NOT EXISTS convert_key.tables (relation regclass PRIMARY KEY, next_block bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS convert_key.ids (old_id uuid PRIMARY KEY, new_id bigint NOT NULL, outside timestamptz);
SELECT format('CREATE OR REPLACE FUNCTION convert_key.next_id() RETURNS bigint LANGUAGE sql RETURN %s.snowflake_nextval()', :'snowflake') \gexec

-- The indexes and constraints of the old columns.  Those of the new columns are named after the OIDs of these.

-- the definition of an index, from USING on
CREATE OR REPLACE FUNCTION convert_key.tail(index regclass) RETURNS text LANGUAGE sql STABLE RETURN (
    SELECT substr(pg_get_indexdef(index), 1 + length(format('CREATE %sINDEX %I ON %s ', CASE WHEN indisunique THEN 'UNIQUE ' END, relname, indrelid::regclass)))
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indexrelid = index);

CREATE OR REPLACE VIEW convert_key.indexes AS
SELECT c.oid, c.oid::regclass AS index, i.indrelid::regclass AS relation, c.relname AS name, 'convert_key_' || c.oid AS new_name,
    CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END AS is_unique, i.indisreplident, i.indisclustered, c.relnamespace::regnamespace AS schema,
    coalesce((SELECT spcname FROM pg_tablespace t WHERE t.oid = c.reltablespace), '') AS tablespace, n.oid AS constraint_oid,
    CASE n.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END AS constraint_type,
    CASE WHEN n.condeferred THEN 'DEFERRABLE INITIALLY DEFERRED' WHEN n.condeferrable THEN 'DEFERRABLE' END AS timing
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_constraint n ON n.conindid = c.oid AND n.contype IN ('p', 'u')
WHERE c.relname NOT LIKE 'convert\_key\_%' AND EXISTS (SELECT FROM convert_key.columns k WHERE k.relation = i.indrelid AND (k.attnum = ANY (i.indkey)
    OR EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND refobjid = k.relation AND refobjsubid = k.attnum)));

CREATE OR REPLACE VIEW convert_key.constraints AS    -- of foreign keys the definition that the new one has, of CHECK the old one
SELECT n.oid, n.conrelid::regclass AS relation, f.relation AS referred, n.contype, n.conname AS name, 'convert_key_' || n.oid AS new_name, n.convalidated,
    format('FOREIGN KEY (%I) REFERENCES %s(%I)', k.new_name, f.relation, f.new_name)
    || substr(pg_get_constraintdef(n.oid), 1 + length(format('FOREIGN KEY (%I) REFERENCES %s(%I)', k.name, f.relation, f.name))) AS definition
FROM pg_constraint n JOIN convert_key.columns k ON k.relation = n.conrelid AND k.attnum = n.conkey[1]
    JOIN convert_key.columns f ON f.relation = n.confrelid AND f.attnum = n.confkey[1]
WHERE n.contype = 'f'
UNION
SELECT n.oid, n.conrelid::regclass, n.conrelid::regclass, n.contype, n.conname, 'convert_key_' || n.oid, n.convalidated, pg_get_constraintdef(n.oid)
FROM pg_constraint n JOIN convert_key.columns k ON k.relation = n.conrelid AND k.attnum = ANY (n.conkey)
WHERE n.contype = 'c';

-- The definitions of indexes and CHECK constraints with the new columns: those of an empty copy of the table, after its columns are renamed.
CREATE OR REPLACE FUNCTION convert_key.definitions(source regclass) RETURNS TABLE (object oid, definition text) LANGUAGE plpgsql AS $$
DECLARE
    item record;
BEGIN
    EXECUTE format('CREATE TABLE convert_key.copy (LIKE %s)', source);
    FOR item IN SELECT * FROM convert_key.indexes WHERE relation = source LOOP
        EXECUTE format('CREATE %sINDEX %I ON convert_key.copy %s', item.is_unique, item.new_name, convert_key.tail(item.index));
    END LOOP;
    FOR item IN SELECT * FROM convert_key.constraints WHERE relation = source AND contype = 'c' LOOP
        EXECUTE format('ALTER TABLE convert_key.copy ADD CONSTRAINT %I %s', item.new_name, item.definition);
    END LOOP;
    FOR item IN SELECT * FROM convert_key.columns WHERE relation = source LOOP
        EXECUTE format('ALTER TABLE convert_key.copy DROP COLUMN %I', item.new_name);
        EXECUTE format('ALTER TABLE convert_key.copy RENAME COLUMN %I TO %I', item.name, item.new_name);
    END LOOP;
    RETURN QUERY SELECT i.oid, convert_key.tail(to_regclass('convert_key.' || i.new_name)) FROM convert_key.indexes i WHERE relation = source
        UNION ALL SELECT n.oid, pg_get_constraintdef(c.oid) FROM convert_key.constraints n JOIN pg_constraint c ON c.conname = n.new_name
        WHERE n.relation = source AND n.contype = 'c' AND c.conrelid = to_regclass('convert_key.copy');
    DROP TABLE convert_key.copy;
END
$$;

-- What is refused: it would not follow the columns.
CREATE OR REPLACE VIEW convert_key.obstacles AS
SELECT format('table %s is partitioned, has a parent or children, or is not a table', k.relation) AS obstacle
FROM convert_key.columns k JOIN pg_class c ON c.oid = k.relation
WHERE c.relkind <> 'r' OR EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhrelid, inhparent))
UNION
SELECT format('column %I of table %s is of type %s, is generated, has a default, or a name of more than 59 bytes', k.name, k.relation, format_type(a.atttypid, NULL))
FROM convert_key.job j, convert_key.columns k JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.attnum
WHERE CASE WHEN j.is_uuid THEN a.atttypid <> 'uuid'::regtype OR a.atthasdef AND NOT k.is_key
    ELSE a.atttypid NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) END OR a.attgenerated <> '' OR octet_length(a.attname) > 59
UNION
SELECT format('%s has several columns, refers to another key as well, or sets a default', pg_describe_object('pg_constraint'::regclass, n.oid, 0))
FROM convert_key.columns k JOIN pg_constraint n ON n.contype = 'f'
    AND (n.conrelid = k.relation AND k.attnum = ANY (n.conkey) OR n.confrelid = k.relation AND k.attnum = ANY (n.confkey))
WHERE cardinality(n.conkey) > 1 OR 'd' IN (n.confdeltype, n.confupdtype) OR NOT EXISTS (SELECT FROM convert_key.constraints WHERE oid = n.oid)
UNION
SELECT format('%s depends on column %I of table %s', pg_describe_object(d.classid, d.objid, d.objsubid), k.name, k.relation)
FROM convert_key.columns k JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = k.relation AND d.refobjsubid = k.attnum
WHERE NOT EXISTS (SELECT FROM pg_class WHERE d.classid = 'pg_class'::regclass AND oid = d.objid AND relkind IN ('i', 'S'))
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE d.classid = 'pg_constraint'::regclass AND oid = d.objid AND contype <> 'x')
    AND NOT EXISTS (SELECT FROM pg_attrdef WHERE d.classid = 'pg_attrdef'::regclass AND oid = d.objid AND adrelid = k.relation AND adnum = k.attnum);

-- Find the columns, and check them.  A later call also finds columns that refer to the key since.
CREATE OR REPLACE PROCEDURE convert_key.start(target regclass, target_key name, time_column name, machine_id integer, began timestamptz) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    item record;
    obstacles text;
BEGIN
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
    INSERT INTO convert_key.job
    SELECT target, target_key, atttypid = 'uuid'::regtype, start.time_column, start.machine_id, start.began
    FROM pg_attribute WHERE attrelid = target AND attname = target_key AND attnum > 0 AND NOT EXISTS (SELECT FROM convert_key.job);
    IF NOT EXISTS (SELECT FROM convert_key.job WHERE relation = target AND key = target_key AND NOT is_swapped) THEN
        RAISE EXCEPTION USING MESSAGE = format('column "%s" of table %s does not exist, or another conversion is under way', target_key, target),
            HINT = 'See table convert_key.job.  The procedures convert_key.undo() and convert_key.finish() end a conversion.';
    END IF;
    UPDATE convert_key.job SET is_ready = false WHERE is_ready;
    FOR item IN
        WITH RECURSIVE found AS (
            SELECT attrelid AS relation, attnum, true AS is_key FROM pg_attribute WHERE attrelid = target AND attname = target_key
            UNION
            SELECT n.conrelid, n.conkey[array_position(n.confkey, f.attnum)], false
            FROM found f JOIN pg_constraint n ON n.contype = 'f' AND n.confrelid = f.relation AND f.attnum = ANY (n.confkey))
        INSERT INTO convert_key.columns
        SELECT relation, attnum, is_key, attname, attname || '_new', attname || '_old' FROM found JOIN pg_attribute USING (attnum) WHERE attrelid = relation
        ON CONFLICT DO NOTHING RETURNING *
    LOOP
        INSERT INTO convert_key.tables VALUES (item.relation) ON CONFLICT (relation) DO UPDATE SET next_block = 0;
        IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = item.relation AND attname IN (item.new_name, item.old_name)) THEN
            RAISE EXCEPTION USING ERRCODE = 'duplicate_column', MESSAGE = format('column "%s" or "%s" of table %s exists', item.new_name, item.old_name, item.relation);
        END IF;
    END LOOP;
    obstacles := (SELECT string_agg(obstacle, E'\n' ORDER BY obstacle) FROM convert_key.obstacles);
    IF obstacles IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported', MESSAGE = 'the key cannot be converted', DETAIL = obstacles,
            HINT = 'Objects that depend on a column can be dropped, and created again after the swap.';
    END IF;
    FOR item IN SELECT relation, pubname FROM convert_key.tables, pg_publication WHERE relation IN (SELECT relid FROM pg_get_publication_tables(pubname)) LOOP
        RAISE WARNING 'table % is in publication "%": its subscribers need the new columns before, and the swap at the same time', item.relation, item.pubname;
    END LOOP;
END
$$;

-- Run statements, or if they are null the swap, under exclusive locks.  Programs wait behind a request for such a lock.  So it is given up in time, and repeated.
CREATE OR REPLACE PROCEDURE convert_key.change(relations regclass[], statements text) LANGUAGE plpgsql AS $$
DECLARE
    item regclass;
    commands text;
    deadline timestamptz;
BEGIN
    FOR attempt IN 1 .. 2147483647 LOOP
        PERFORM set_config('search_path', 'pg_catalog, pg_temp', true), set_config('client_min_messages', 'warning', true);
        FOREACH item IN ARRAY relations LOOP    -- blocks no program, and ends an autovacuum
            EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', item);
        END LOOP;
        commands := coalesce(statements, convert_key.swap_plan());
        BEGIN
            deadline := clock_timestamp() + (SELECT patience FROM convert_key.job);
            FOREACH item IN ARRAY relations LOOP
                PERFORM set_config('lock_timeout', greatest(1, extract(epoch FROM deadline - clock_timestamp()) * 1000)::integer::text, true);
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

-- The statements that add columns, and triggers that set them whenever a row is written.  After that, rows that lack them were not written since.
CREATE OR REPLACE FUNCTION convert_key.add_columns(only_key boolean) RETURNS SETOF text LANGUAGE sql AS $$
SELECT format('CALL convert_key.change(%L, %L)', ARRAY[k.relation], format($s$
    ALTER TABLE %1$s %2$s;
    CREATE OR REPLACE FUNCTION convert_key.keep_%3$s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS %4$L;
    CREATE OR REPLACE TRIGGER zzz_convert_key BEFORE INSERT OR UPDATE ON %1$s FOR EACH ROW EXECUTE FUNCTION convert_key.keep_%3$s();
    ALTER TABLE %1$s ENABLE ALWAYS TRIGGER zzz_convert_key $s$,
    k.relation, string_agg(format('ADD COLUMN IF NOT EXISTS %I bigint', k.new_name), ', '), k.relation::oid, format(E'BEGIN\n%s\nRETURN NEW;\nEND',
    string_agg(format(CASE
        WHEN NOT j.is_uuid THEN 'NEW.%1$I := NEW.%2$I;'
        WHEN k.is_key THEN 'NEW.%1$I := coalesce(NEW.%1$I, (SELECT new_id FROM convert_key.ids WHERE old_id = coalesce(OLD.%2$I, NEW.%2$I)),
            CASE WHEN NEW.%2$I IS DISTINCT FROM OLD.%2$I THEN convert_key.next_id() END);'
        ELSE 'IF NEW.%2$I IS NULL THEN
            NEW.%1$I := NULL;
        ELSIF NEW.%1$I IS NULL OR NEW.%2$I IS DISTINCT FROM OLD.%2$I THEN
            NEW.%1$I := ' || CASE WHEN k.relation = j.relation THEN 'CASE NEW.%2$I WHEN NEW.%3$I THEN NEW.%4$I ELSE convert_key.id_of(NEW.%2$I) END;'
            ELSE 'convert_key.id_of(NEW.%2$I);' END || '
        END IF;' END, k.new_name, k.name, j.key, j.key || '_new'), E'\n' ORDER BY k.is_key DESC))))
FROM convert_key.job j, convert_key.columns k WHERE k.is_key OR NOT only_key
GROUP BY k.relation
HAVING NOT bool_and(EXISTS (SELECT FROM pg_attribute WHERE attrelid = k.relation AND attname = k.new_name))
$$;

-- Fill the new columns, some blocks at a time: the triggers set them.  A row that is written meanwhile can move to another block, but has them then.
CREATE OR REPLACE PROCEDURE convert_key.fill() LANGUAGE plpgsql AS $$
DECLARE
    item record;
    size integer := 8;
    blocks bigint; first bigint;
    batch bigint; filled bigint;
    began timestamptz; batch_began timestamptz; reported timestamptz;
    is_missing boolean;
BEGIN
    FOR item IN
        SELECT t.relation, t.next_block, string_agg(format('%1$I = %1$I', k.new_name), ', ') AS assignments,
            string_agg(format('%I IS NULL AND %I IS NOT NULL', k.new_name, k.name), ' OR ') AS condition
        FROM convert_key.tables t JOIN convert_key.columns k ON k.relation = t.relation GROUP BY t.relation, t.next_block ORDER BY t.relation
    LOOP
        FOR pass IN 1 .. 3 LOOP
            blocks := pg_relation_size(item.relation) / current_setting('block_size')::integer;
            first := item.next_block;
            filled := 0;
            began := clock_timestamp();
            reported := began;
            WHILE item.next_block < blocks LOOP
                batch_began := clock_timestamp();
                BEGIN
                    PERFORM set_config('session_replication_role', 'replica', true), set_config('synchronous_commit', 'off', true),
                        set_config('lock_timeout', '50ms', true);    -- less than deadlock_timeout
                    EXECUTE format('UPDATE %s SET %s WHERE ctid >= ''(%s,0)'' AND ctid < ''(%s,0)'' AND (%s)',
                        item.relation, item.assignments, item.next_block, item.next_block + size, item.condition);
                    GET DIAGNOSTICS batch = ROW_COUNT;
                    item.next_block := item.next_block + size;
                    UPDATE convert_key.tables SET next_block = item.next_block WHERE relation = item.relation;
                    filled := filled + batch;
                EXCEPTION WHEN lock_not_available OR deadlock_detected THEN    -- another transaction has written one of the rows, and has not ended
                    size := greatest(1, size / 4);
                END;
                COMMIT;
                -- programs wait for the rows of a batch: 30 ms at most
                size := least(1024, greatest(1, size * least(2, 0.03 / extract(epoch FROM clock_timestamp() - batch_began))));
                IF clock_timestamp() > reported + interval '5 s' OR item.next_block >= blocks THEN
                    reported := clock_timestamp();
                    RAISE INFO '%: % of % blocks, % rows, % rows/s, until %', item.relation, least(item.next_block, blocks), blocks, filled,
                        (filled / extract(epoch FROM reported - began))::bigint,
                        to_char(reported + (reported - began) * ((blocks - item.next_block)::float / greatest(1, item.next_block - first)), 'HH24:MI:SS');
                END IF;
            END LOOP;
            EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %s)', item.relation, item.condition) INTO is_missing;
            EXIT WHEN NOT is_missing;
            IF pass = 3 THEN
                RAISE EXCEPTION 'trigger zzz_convert_key of table % does not set the new columns', item.relation;
            END IF;
            item.next_block := 0;    -- as after VACUUM FULL
        END LOOP;
    END LOOP;
END
$$;

-- Compare the old columns with the new ones, row by row.
CREATE OR REPLACE PROCEDURE convert_key.compare() LANGUAGE plpgsql AS $$
DECLARE
    item record;
    result record;
    total bigint := 0;
BEGIN
    FOR item IN
        SELECT k.relation, k.name, format('SELECT count(*) AS rows, count(*) FILTER (WHERE %s) AS different FROM %s r%s',
            CASE WHEN NOT j.is_uuid THEN format('r.%I IS DISTINCT FROM r.%I', k.new_name, k.name)
                WHEN k.is_key THEN format('r.%I IS NULL', k.new_name)
                ELSE format('r.%I IS DISTINCT FROM k.%I', k.new_name, j.key || '_new') END, k.relation,
            CASE WHEN j.is_uuid AND NOT k.is_key THEN format(' LEFT JOIN %s k ON k.%I = r.%I', j.relation, j.key, k.name) END) AS query
        FROM convert_key.job j, convert_key.columns k ORDER BY k.relation, k.attnum
    LOOP
        EXECUTE item.query INTO result;
        RAISE INFO '%.%: % rows compared, % differ', item.relation, item.name, result.rows, result.different;
        total := total + result.different;
    END LOOP;
    IF total > 0 THEN
        RAISE EXCEPTION 'old and new columns differ in % rows', total;
    END IF;
    UPDATE convert_key.job SET is_ready = true;
END
$$;

CREATE OR REPLACE VIEW convert_key.swap_statements AS
SELECT 1 AS step, format('DROP TRIGGER zzz_convert_key ON %s', relation) AS statement FROM convert_key.tables
UNION ALL
SELECT 2, format('ALTER TABLE %s DROP CONSTRAINT %I', relation, name) FROM convert_key.constraints
UNION ALL
SELECT 3, CASE WHEN constraint_oid IS NULL THEN format('DROP INDEX %s', index) ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', relation, name) END
FROM convert_key.indexes
UNION ALL
SELECT 4, format('ALTER TABLE %1$s ALTER COLUMN %2$I DROP NOT NULL, ALTER COLUMN %2$I DROP IDENTITY IF EXISTS, ALTER COLUMN %2$I DROP DEFAULT', relation, name)
FROM convert_key.columns
UNION ALL
SELECT r.step, format('ALTER TABLE %s RENAME COLUMN %I TO %I', relation, r.before, r.after)
FROM convert_key.columns k, LATERAL (VALUES (5, name, old_name), (6, new_name, name)) AS r (step, before, after)
UNION ALL
SELECT 7, CASE WHEN constraint_oid IS NULL THEN format('ALTER INDEX %s.%I RENAME TO %I', schema, new_name, name)
    ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I %s', relation, name, constraint_type, new_name, timing) END
FROM convert_key.indexes
UNION ALL
SELECT 7, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', relation, new_name, name) FROM convert_key.constraints
UNION ALL
SELECT 7, format('ALTER INDEX %s RENAME TO %I', indexrelid::regclass, left(relname, 55) || '_old_key')
FROM convert_key.job j JOIN pg_class c ON c.oid = j.relation JOIN pg_index ON indrelid = j.relation AND indexrelid::regclass::text LIKE '%convert\_key\_old'
UNION ALL
SELECT 8, format(f.form, relation, name) FROM convert_key.indexes, LATERAL (VALUES (indisreplident, 'ALTER TABLE %s REPLICA IDENTITY USING INDEX %I'),
    (indisclustered, 'ALTER TABLE %s CLUSTER ON %I')) AS f (is_set, form) WHERE f.is_set
UNION ALL
SELECT 8, format('COMMENT ON INDEX %s.%I IS %L', schema, name, obj_description(oid, 'pg_class')) FROM convert_key.indexes WHERE obj_description(oid, 'pg_class') IS NOT NULL
UNION ALL
SELECT 8, format('COMMENT ON CONSTRAINT %I ON %s IS %L', n.conname, n.conrelid::regclass, obj_description(n.oid, 'pg_constraint')) FROM pg_constraint n
WHERE n.oid IN (SELECT oid FROM convert_key.constraints UNION SELECT constraint_oid FROM convert_key.indexes) AND obj_description(n.oid, 'pg_constraint') IS NOT NULL
UNION ALL
SELECT 8, format(f.form, relation, name, f.value) FROM convert_key.columns k JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.attnum, LATERAL (VALUES
    ('COMMENT ON COLUMN %s.%I IS %L', col_description(k.relation, k.attnum)),
    ('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', nullif(a.attstattarget, -1)::text),
    ('ALTER TABLE %s ALTER COLUMN %I SET (%s)', (SELECT string_agg(o, ', ') FROM unnest(a.attoptions) o WHERE o LIKE 'n\_distinct%')),
    ('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = k.relation AND adnum = k.attnum AND NOT k.is_key))
    ) AS f (form, value) WHERE f.value IS NOT NULL
UNION ALL
SELECT 8, format('GRANT %s (%I) ON %s TO %s%s', g.privilege_type, k.name, k.relation, CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
    CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
FROM convert_key.columns k JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.attnum, LATERAL aclexplode(a.attacl) g
UNION ALL
SELECT 9, 'UPDATE convert_key.job SET is_swapped = true'
UNION ALL
SELECT 9, format('SELECT %s.snowflake_adopt(%L, %L, ''snowflake_id'')', extnamespace::regnamespace, relation, key) FROM convert_key.job, pg_extension WHERE extname = 'snowflake';

CREATE OR REPLACE FUNCTION convert_key.swap_plan() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM convert_key.obstacles) OR EXISTS (SELECT FROM convert_key.indexes i WHERE NOT EXISTS (
        SELECT FROM pg_index n JOIN pg_class c ON c.oid = n.indexrelid WHERE n.indrelid = i.relation AND c.relname = i.new_name AND n.indisvalid)) THEN
        RAISE EXCEPTION 'objects that depend on the columns were created since convert_key.sql has run' USING HINT = 'Run it again.';
    END IF;
    RETURN (SELECT string_agg(statement, ';' ORDER BY step) FROM convert_key.swap_statements);
END
$$;

CREATE OR REPLACE PROCEDURE convert_key.swap() LANGUAGE plpgsql AS $$
DECLARE
    relations regclass[] := (SELECT array_agg(t.relation ORDER BY t.relation <> j.relation) FROM convert_key.job j, convert_key.tables t WHERE j.is_ready AND NOT j.is_swapped);
BEGIN
    IF relations IS NULL THEN
        RAISE EXCEPTION 'no conversion is ready for the swap' USING HINT = 'Run convert_key.sql until it says so.';
    END IF;
    CALL convert_key.change(relations, NULL);
END
$$;

CREATE OR REPLACE PROCEDURE convert_key.drop_columns(after_swap boolean) LANGUAGE plpgsql AS $$
DECLARE
    item record;
BEGIN
    IF NOT EXISTS (SELECT FROM convert_key.job WHERE is_swapped = after_swap) THEN
        RAISE EXCEPTION 'there is no conversion, or its columns were %s', CASE WHEN after_swap THEN 'not swapped' ELSE 'swapped' END;
    END IF;
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR item IN
        SELECT ARRAY[j.relation, k.relation] AS relations, format('DROP TRIGGER IF EXISTS zzz_convert_key ON %1$s; ALTER TABLE %1$s %2$s; DROP INDEX IF EXISTS %3$s.convert_key_old',
            k.relation, string_agg(format('DROP COLUMN IF EXISTS %I', CASE WHEN after_swap THEN k.old_name ELSE k.new_name END), ', ' ORDER BY k.is_key),
            (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = j.relation)) AS statements
        FROM convert_key.job j, convert_key.columns k WHERE NOT (after_swap AND j.is_uuid AND k.is_key)
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
CREATE OR REPLACE PROCEDURE convert_key.undo() LANGUAGE plpgsql AS 'BEGIN CALL convert_key.drop_columns(false); END';
CREATE OR REPLACE PROCEDURE convert_key.finish() LANGUAGE plpgsql AS 'BEGIN CALL convert_key.drop_columns(true); END';

-- The conversion.  A step that is complete changes nothing when it runs again.

\echo Checking
SELECT pg_try_advisory_lock(hashtext('convert_key')) AS is_alone \gset
\if :is_alone
\else
    DO 'BEGIN RAISE EXCEPTION ''another session runs convert_key.sql''; END';
\endif
CALL convert_key.start(:'table', :'column', nullif(:'time', ''), coalesce(nullif(:'machine_id', '')::integer, :snowflake.snowflake_server_machine_id()),
    :snowflake.snowflake_timestamp(convert_key.next_id()) - interval '1 s');
SET search_path = pg_catalog, pg_temp;

-- The ID of a row that a uuid refers to.  If the row comes later in the transaction, its ID is chosen here.
SELECT format('CREATE OR REPLACE FUNCTION convert_key.id_of(referred uuid) RETURNS bigint LANGUAGE plpgsql AS %L', format($f$
    DECLARE
        found bigint := (SELECT k.%I FROM %s k WHERE k.%I = referred);
    BEGIN
        found := coalesce(found, (SELECT new_id FROM convert_key.ids WHERE old_id = referred));
        IF found IS NULL THEN
            INSERT INTO convert_key.ids VALUES (referred, convert_key.next_id()) RETURNING new_id INTO found;
        END IF;
        RETURN found;
    END $f$, new_name, relation, name)) FROM convert_key.columns WHERE is_key \gexec


\echo Adding columns and triggers
SELECT convert_key.add_columns(true) \gexec

-- The IDs of the rows of a uuid key, in the order of their times, as in docs/migration.md.  They are earlier than the first call of
-- this script, and the IDs of the generator are later, so that they differ.
SELECT format($s$
    WITH layout AS (
        SELECT width, %1$s.snowflake_sequence(width - 1) + 1 AS sequences, %1$s.snowflake_timestamp(0) AS epoch FROM %1$s.snowflake_width('1 us') AS width),
    existing AS (
        SELECT %2$I AS old, coalesce(%3$s, CASE WHEN substr(%2$I::text, 15, 1) = '7' THEN
            to_timestamp(('x' || translate(left(%2$I::text, 13), '-', ''))::bit(48)::bigint / 1000.0) END) AS instant FROM %4$s WHERE %5$I IS NULL),
    numbered AS (
        SELECT old, row_number() OVER (ORDER BY instant, old) AS n, %1$s.snowflake_encode(instant, %6$s, 0) / width AS tick
        FROM existing, layout WHERE instant >= epoch AND instant < %7$L),
    placed AS (SELECT old, n + max(tick * sequences - n) OVER (ORDER BY n) AS place FROM numbered, layout),
    marked AS (UPDATE convert_key.job SET is_assigned = true)
    INSERT INTO convert_key.ids
    SELECT old, CASE WHEN place / sequences < %1$s.snowflake_encode(%7$L, %6$s, 0) / width
        THEN place / sequences * width + %1$s.snowflake_encode(%7$L, %6$s, (place %% sequences)::integer) %% width ELSE convert_key.next_id() END, NULL
    FROM placed, layout
    UNION ALL
    SELECT old, convert_key.next_id(), CASE WHEN instant >= epoch AND instant < now() THEN NULL ELSE instant END
    FROM existing, layout WHERE (instant >= epoch AND instant < %7$L) IS NOT TRUE $s$,
    :'snowflake', key, CASE WHEN time_column IS NULL THEN 'NULL::timestamptz' ELSE format('%I::timestamptz', time_column) END, relation, key || '_new', machine_id, began)
FROM convert_key.job WHERE is_uuid AND NOT is_assigned \gexec
SELECT convert_key.add_columns(false) \gexec

\echo Filling
CALL convert_key.fill();

\echo Creating indexes
SELECT format('DROP INDEX CONCURRENTLY %s', indexrelid::regclass) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid IN (SELECT relation FROM convert_key.tables) AND relname LIKE 'convert\_key\_%' AND NOT indisvalid \gexec
SELECT format('SET default_tablespace = %L', i.tablespace), format('CREATE %sINDEX CONCURRENTLY %I ON %s %s', i.is_unique, i.new_name, i.relation, d.definition)
FROM convert_key.tables t, convert_key.definitions(t.relation) d, convert_key.indexes i
WHERE i.oid = d.object AND to_regclass(format('%s.%I', i.schema, i.new_name)) IS NULL ORDER BY i.oid \gexec
SET default_tablespace = '';
SELECT format('CREATE UNIQUE INDEX CONCURRENTLY convert_key_old ON %s (%I)', j.relation, j.key) FROM convert_key.job j JOIN pg_class c ON c.oid = j.relation
WHERE j.is_uuid AND to_regclass(format('%s.convert_key_old', c.relnamespace::regnamespace)) IS NULL \gexec
SELECT format('ANALYZE %s', relation) FROM convert_key.tables \gexec

\echo Adding constraints
SELECT format('CALL convert_key.change(%L, %L)', ARRAY[referred, relation], format('ALTER TABLE %s ADD CONSTRAINT %I %s',
    relation, name, regexp_replace(definition, '( NOT VALID)?$', ' NOT VALID')))
FROM (
    SELECT k.relation, k.relation AS referred, 'convert_key_not_null_' || k.attnum AS name, format('CHECK (%I IS NOT NULL)', k.new_name) AS definition
    FROM convert_key.columns k JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.attnum AND a.attnotnull
        JOIN pg_attribute b ON b.attrelid = k.relation AND b.attname = k.new_name AND NOT b.attnotnull
    UNION ALL
    SELECT n.relation, n.referred, n.new_name, coalesce(d.definition, n.definition)
    FROM convert_key.constraints n LEFT JOIN (convert_key.tables t CROSS JOIN LATERAL convert_key.definitions(t.relation) d) ON d.object = n.oid) wanted
WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = relation AND conname = name) \gexec
SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
WHERE conrelid IN (SELECT relation FROM convert_key.tables) AND conname LIKE 'convert\_key\_%' AND NOT convalidated
    AND NOT EXISTS (SELECT FROM convert_key.constraints n WHERE n.new_name = conname AND NOT n.convalidated) \gexec
-- two statements: one would drop the constraint first, and then read the table
SELECT format('CALL convert_key.change(%L, %L)', ARRAY[relation],
    format('ALTER TABLE %1$s ALTER COLUMN %2$I SET NOT NULL; ALTER TABLE %1$s DROP CONSTRAINT %3$I', relation, new_name, conname))
FROM convert_key.columns JOIN pg_constraint ON conrelid = relation AND conname = 'convert_key_not_null_' || attnum \gexec

\echo Comparing
CALL convert_key.compare();
\echo Ready: convert_key.swap() lets the new columns take the place of the old ones.  convert_key.undo() removes them.

\if :is_test
    CALL convert_key.swap();
    DO $$
    BEGIN
        ASSERT (SELECT bool_and(id = id_old AND parent IS NOT DISTINCT FROM parent_old) FROM public.items), 'keys have kept their values';
        ASSERT (SELECT count(*) FROM public.items JOIN public.prices ON item = id WHERE id = item_old) = 3000, 'and so have columns that refer to them';
        DELETE FROM public.notes;
        DELETE FROM public.items WHERE id = 800;
        ASSERT NOT EXISTS (SELECT FROM public.prices WHERE item = 800), 'foreign keys have kept their actions';
        INSERT INTO public.items (name, parent) VALUES ('new', 1);
        ASSERT (SELECT max(id) FROM public.items) > 2147483647, 'new rows get Snowflake IDs';
    END
    $$;
    CALL convert_key.finish();
    DROP SCHEMA convert_key CASCADE;
\endif
DO 'BEGIN PERFORM pg_advisory_unlock(hashtext(''convert_key'')); END';
RESET search_path; RESET client_min_messages; RESET lock_timeout; RESET statement_timeout; RESET client_connection_check_interval;
\set ON_ERROR_STOP :on_error_stop
