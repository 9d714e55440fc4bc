-- Retention: partitions that end at or before an instant are detached or dropped, and no others.
-- The tables have no rows of the last years, so most calls pass a long time as max_gap; t/038_retention.pl tests clocks.
SET timezone = 'UTC';
SET datestyle = 'ISO';
\set SHOW_CONTEXT never

CREATE VIEW partitions AS
    SELECT inhparent::regclass AS parent, string_agg(inhrelid::regclass::text, ' ' ORDER BY inhrelid) AS partitions
    FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE c.relkind IN ('r', 'p') GROUP BY inhparent;

-- the oldest first, in whatever order they were created
CREATE TABLE orders (id bigint PRIMARY KEY, item text) PARTITION BY RANGE (id);
SELECT snowflake_create_partitions('orders', month, month + interval '1 month', '1 month')
FROM generate_series('2024-06-01'::timestamptz, '2024-01-01', '-1 month') month;
INSERT INTO orders SELECT snowflake_boundary(month), to_char(month, 'YYYY_MM') FROM generate_series(timestamptz '2024-01-01', '2024-06-01', '1 month') month;
SELECT * FROM snowflake_detach_partitions('orders', '2024-03-15', '-infinity', '100 years');
SELECT * FROM snowflake_drop_partitions('orders', '2024-05-15', '-infinity', '100 years');
SELECT item FROM orders ORDER BY id;
SELECT * FROM orders_2024_01;    -- was detached, and is a table of its own
SELECT to_regclass('orders_2024_03'), to_regclass('orders_2024_04');    -- were dropped
SELECT * FROM snowflake_detach_partitions('orders', '2024-05-15', '-infinity', '100 years');
SELECT * FROM snowflake_drop_partitions('orders', '2024-05-15', '-infinity', '100 years');

-- a partition ends where the next one starts: not within its last tick, but once that has passed
SELECT * FROM snowflake_detach_partitions('orders', '2024-05-31 23:59:59.999', '-infinity', '100 years');
SELECT * FROM snowflake_detach_partitions('orders', '2024-05-31 23:59:59.999001', '-infinity', '100 years');
SELECT * FROM snowflake_detach_partitions('orders', '2024-07-01', '-infinity', '100 years');
SELECT count(*) FROM partitions WHERE parent = 'orders'::regclass;
DROP TABLE orders_2024_01, orders_2024_02, orders_2024_05, orders_2024_06;

-- all earlier rows are one partition; partitions without an end, without a time (of negative keys) and
-- the default partition stay
CREATE TABLE orders_negative PARTITION OF orders FOR VALUES FROM (MINVALUE) TO (0);
CREATE TABLE orders_before PARTITION OF orders FOR VALUES FROM (0) TO (snowflake_boundary('2024-01-01'));
CREATE TABLE orders_since PARTITION OF orders FOR VALUES FROM (snowflake_boundary('2024-01-01')) TO (MAXVALUE);
CREATE TABLE orders_default PARTITION OF orders DEFAULT;
SELECT * FROM snowflake_drop_partitions('orders', now(), '-infinity', '100 years');
SELECT partitions FROM partitions WHERE parent = 'orders'::regclass;
DROP TABLE orders_negative;
CREATE TABLE orders_before PARTITION OF orders FOR VALUES FROM (MINVALUE) TO (snowflake_boundary('2024-01-01'));
SELECT * FROM snowflake_drop_partitions('orders', '2023-12-31', '-infinity', '100 years');
SELECT * FROM snowflake_drop_partitions('orders', '0001-01-01 BC', '-infinity', '100 years');
SELECT * FROM snowflake_drop_partitions('orders', '2024-01-01', '-infinity', '100 years');

-- keys of a sequence, which look like IDs of the first hours of the layout: partitions that can have such keys stay
-- until the caller states from which time on all keys are IDs
CREATE TABLE inv (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE inv_first PARTITION OF inv FOR VALUES FROM (1) TO (1000000);
CREATE TABLE inv_before PARTITION OF inv FOR VALUES FROM (1000000) TO (snowflake_boundary('2024-01-01'));
INSERT INTO inv SELECT FROM generate_series(1, 1000);
SELECT snowflake_timestamp(max(id), 'twitter') FROM inv;
SELECT count(*) FROM snowflake_create_partitions('inv', '2024-01-01', '2024-04-01', '1 month');
CREATE TABLE inv_rest PARTITION OF inv FOR VALUES FROM (snowflake_boundary('2024-04-01')) TO (MAXVALUE);
SET client_min_messages = warning;
SELECT count(*) FROM snowflake_adopt('inv', 'id');
RESET client_min_messages;
INSERT INTO inv DEFAULT VALUES;
SELECT * FROM snowflake_drop_partitions('inv', '2024-03-01');
SELECT * FROM snowflake_detach_partitions('inv', '2024-01-15', '2024-01-01', '100 years');
SELECT * FROM snowflake_drop_partitions('inv', '2024-03-01', '2024-02-01', '100 years');
SELECT * FROM snowflake_drop_partitions('inv', '2023-01-01', '2024-02-01', '100 years');
SELECT count(*) FROM inv;
DROP TABLE inv;

-- each partition against its last ID
CREATE TABLE slots (id bigint) PARTITION BY RANGE (id);
SELECT count(*) FROM snowflake_create_partitions('slots', '2024-01-01', '2024-01-01 00:00:00.05', '1.7 ms');
CREATE TABLE bounds AS
    SELECT c.oid::regclass AS partition, substring(pg_get_expr(relpartbound, c.oid) FROM $$TO [(]'(\d+)$$)::bigint AS end_id
    FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'slots'::regclass;
CREATE FUNCTION differences(before timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    detached regclass[];
    expected regclass[];
BEGIN
    BEGIN
        detached := ARRAY (SELECT snowflake_detach_partitions('slots', before, '-infinity', '100 years'));
        RAISE SQLSTATE 'UNDO1';
    EXCEPTION WHEN SQLSTATE 'UNDO1' THEN
        expected := ARRAY (SELECT partition FROM bounds WHERE snowflake_timestamp(end_id - 1) < before ORDER BY end_id);
        RETURN CASE WHEN detached = expected THEN 0 ELSE 1 END;
    END;
END
$$;
SELECT sum(differences('2024-01-01'::timestamptz + n * interval '0.25 ms')) AS differences FROM generate_series(0, 204) n;
DROP FUNCTION differences;
DROP TABLE slots, bounds;

-- sno, and domains over both types
CREATE DOMAIN number AS bigint;
CREATE DOMAIN event_id AS sno;
CREATE TABLE numbered (id number PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE events (id sno PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE happened (id event_id PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE events_before PARTITION OF events FOR VALUES FROM (MINVALUE) TO (sno_boundary('2024-01-01'));
CREATE TABLE events_default PARTITION OF events DEFAULT;
SELECT relation, (SELECT count(*) FROM snowflake_create_partitions(relation, '2024-01-01', '2024-05-01', '1 month')) AS partitions
FROM unnest('{numbered,events,happened}'::regclass[]) relation;
SELECT * FROM snowflake_detach_partitions('events', '2024-02-29', '-infinity', '100 years');
SELECT relation, snowflake_drop_partitions(relation, '2024-03-31', '-infinity', '100 years') FROM unnest('{numbered,events,happened}'::regclass[]) relation;
SELECT * FROM partitions WHERE parent IN ('numbered'::regclass, 'events'::regclass, 'happened'::regclass) ORDER BY parent;
DROP TABLE numbered, events, events_before, events_2024_01, happened;
DROP DOMAIN number, event_id;

-- the parent is a partition, or the partition has partitions
CREATE TABLE visits (id bigint, region text) PARTITION BY LIST (region);
CREATE TABLE visits_north PARTITION OF visits FOR VALUES IN ('north') PARTITION BY RANGE (id);
SELECT count(*) FROM snowflake_create_partitions('visits_north', '2024-01-01', '2024-04-01', '1 month');
INSERT INTO visits SELECT snowflake_boundary(month), 'north' FROM generate_series(timestamptz '2024-01-01', '2024-03-01', '1 month') month;
SELECT * FROM snowflake_drop_partitions('visits_north', '2024-02-20', '-infinity', '100 years');
SELECT tableoid::regclass FROM visits ORDER BY id;
SELECT * FROM snowflake_drop_partitions('visits', '2024-02-20', '-infinity', '100 years');
\echo :SQLSTATE
CREATE TABLE years (id bigint) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE years_%s PARTITION OF years FOR VALUES FROM (%s) TO (%s) PARTITION BY RANGE (id)',
              to_char(year, 'YYYY'), snowflake_boundary(year), snowflake_boundary(year + interval '1 year'))
FROM generate_series(timestamptz '2023-01-01', '2024-01-01', '1 year') year \gexec
SELECT count(*) FROM snowflake_create_partitions('years_2023', '2023-01-01', '2024-01-01', '1 month');
SELECT count(*) FROM snowflake_create_partitions('years_2024', '2024-01-01', '2025-01-01', '1 month');
SELECT * FROM snowflake_drop_partitions('years', '2024-02-15', '-infinity', '100 years');
SELECT * FROM snowflake_drop_partitions('years_2024', '2024-02-15', '-infinity', '100 years');
SELECT count(*) FROM pg_class WHERE relname LIKE 'years\_20%' AND relkind = 'r';
DROP TABLE visits, years;

-- names that need quotes, and temporary tables
CREATE SCHEMA "Old Things";
CREATE TABLE "Old Things"."Big ""Table""" ("The ID" bigint) PARTITION BY RANGE ("The ID");
SELECT * FROM snowflake_create_partitions('"Old Things"."Big ""Table"""', '2022-01-01', '2025-01-01', '1 year');
SELECT * FROM snowflake_detach_partitions('"Old Things"."Big ""Table"""', '2023-01-01', '-infinity', '100 years');
SELECT * FROM snowflake_drop_partitions('"Old Things"."Big ""Table"""', '2024-01-01', '-infinity', '100 years');
CREATE TEMP TABLE brief (id bigint) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('brief', '2024-01-01', '2024-02-01', '1 month');
SELECT * FROM snowflake_drop_partitions('brief', '2024-02-01', '-infinity', '100 years');

-- locks: with nothing to do, only the one that keeps the partitions as they are
SELECT count(*) FROM snowflake_create_partitions('orders', '2023-01-01', '2024-01-01', '6 months');
CREATE VIEW locks AS
    SELECT relation::regclass, mode FROM pg_locks
    WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation::regclass::text LIKE 'orders%' AND relation::regclass::text NOT LIKE '%pkey';
BEGIN;
SELECT * FROM snowflake_drop_partitions('orders', '2023-06-30', '-infinity', '100 years');
SELECT * FROM locks ORDER BY relation::text, mode;
SELECT * FROM snowflake_detach_partitions('orders', '2023-07-01', '-infinity', '100 years');
SELECT * FROM locks WHERE mode = 'AccessExclusiveLock' ORDER BY relation::text;
ROLLBACK;
SELECT * FROM partitions WHERE parent = 'orders'::regclass;

-- foreign keys and views: PostgreSQL raises the error, and nothing was dropped
CREATE TABLE invoices (order_id bigint REFERENCES orders);
INSERT INTO orders SELECT snowflake_boundary(at), to_char(at, 'YYYY_MM') FROM generate_series(timestamptz '2023-01-01', '2023-07-01', '6 months') at;
INSERT INTO invoices SELECT snowflake_boundary('2023-07-01');
\set VERBOSITY sqlstate
SELECT * FROM snowflake_drop_partitions('orders', '2024-01-01', '-infinity', '100 years');
\set VERBOSITY default
SELECT item FROM orders ORDER BY id;
SELECT * FROM snowflake_drop_partitions('orders', '2023-07-01', '-infinity', '100 years');
DELETE FROM invoices;
CREATE VIEW autumn AS SELECT * FROM orders_2023_07;
SELECT * FROM snowflake_drop_partitions('orders', '2024-01-01', '-infinity', '100 years');
\echo :SQLSTATE
SELECT item FROM orders ORDER BY id;
SELECT * FROM snowflake_detach_partitions('orders', '2024-01-01', '-infinity', '100 years');
SELECT item FROM autumn;
DROP TABLE orders_2023_07 CASCADE;

-- a partition that is pending detach
SELECT count(*) FROM snowflake_create_partitions('orders', '2023-01-01', '2024-01-01', '6 months');
UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = 'orders_2023_07'::regclass;    -- as a DETACH CONCURRENTLY that was cancelled
SELECT * FROM snowflake_drop_partitions('orders', '2023-07-01', '-infinity', '100 years');
SELECT * FROM snowflake_drop_partitions('orders', '2024-01-01', '-infinity', '100 years');
\echo :SQLSTATE
ALTER TABLE orders DETACH PARTITION orders_2023_07 FINALIZE;
SELECT * FROM snowflake_drop_partitions('orders', '2024-01-01', '-infinity', '100 years');

-- owners, and members of their roles
CREATE ROLE regress_snowflake_owner;
CREATE ROLE regress_snowflake_member IN ROLE regress_snowflake_owner;
CREATE ROLE regress_snowflake_other;
CREATE SCHEMA shop;
GRANT ALL ON SCHEMA shop TO PUBLIC;
SET ROLE regress_snowflake_owner;
CREATE TABLE shop.orders (id bigint) PARTITION BY RANGE (id);
GRANT ALL ON shop.orders TO regress_snowflake_other;
SELECT count(*) FROM snowflake_create_partitions('shop.orders', '2023-11-01', '2024-02-01', '1 month');
SET ROLE regress_snowflake_other;
SELECT * FROM snowflake_drop_partitions('shop.orders', '2024-01-01', '-infinity', '100 years');
\echo :SQLSTATE
SELECT * FROM snowflake_detach_partitions('shop.orders', '2024-01-01', '-infinity', '100 years');
SET ROLE regress_snowflake_member;
SELECT * FROM snowflake_detach_partitions('shop.orders', '2023-12-01', '-infinity', '100 years');
SELECT * FROM snowflake_drop_partitions('shop.orders', '2024-01-01', '-infinity', '100 years');
-- of another role's partition, it can be detached, and not dropped
RESET ROLE;
ALTER TABLE shop.orders_2024_01 OWNER TO regress_snowflake_other;
SET ROLE regress_snowflake_owner;
SELECT * FROM snowflake_drop_partitions('shop.orders', '2024-02-01', '-infinity', '100 years');
\echo :SQLSTATE
SELECT * FROM snowflake_detach_partitions('shop.orders', '2024-02-01', '-infinity', '100 years');
RESET ROLE;

-- Rows are removed only if each period that follows, up to the present one, has rows.  The months are counted back from
-- the present one, which is 0 and can be empty.  The hint's argument is the least one.
CREATE TABLE used (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE FUNCTION month(ago integer) RETURNS timestamptz LANGUAGE sql STABLE
    RETURN date_trunc('month', now(), 'UTC') - ago * interval '1 month';
SELECT count(*) FROM snowflake_create_partitions('used', month(40), now() + interval '2 months', '1 month') AS partition;
CREATE FUNCTION old(ago integer, max_gap interval DEFAULT '0') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    RETURN (SELECT count(*) FROM snowflake_old_partitions('used', month(ago), '-infinity', max_gap));
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    max_gap := substring(hint FROM '"(.*)" or more');
    PERFORM snowflake_old_partitions('used', month(ago), '-infinity', max_gap);
    BEGIN
        PERFORM snowflake_old_partitions('used', month(ago), '-infinity', max_gap - interval '1 s');
        RETURN 'too long a gap';
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
        RETURN format('gap of %s months', round(extract(epoch FROM max_gap) / 86400 / 30.4));
    END;
END
$$;
CREATE PROCEDURE use(from_ago integer, to_ago integer) LANGUAGE sql AS $$
    INSERT INTO used SELECT snowflake_boundary(month(ago)) FROM generate_series(from_ago, to_ago) ago $$;
SELECT old(0) AS unused;
CALL use(33, 38);
SELECT old(38) AS empty, old(37), old(36), old(36, '31 months'), old(36, '33 months'), old(33), old(0);
CALL use(13, 31);
CALL use(1, 9);
SELECT old(32) AS "two gaps", old(20), old(13), old(11), old(10), old(9), old(8) AS "after them", old(0);
DO $$ BEGIN EXECUTE (SELECT format('DROP TABLE %s', tableoid::regclass) FROM used WHERE id = snowflake_boundary(month(5))); END $$;
SELECT old(6) AS "no partition", old(4), old(3) AS "after it";
CALL use(-1, -1);
DELETE FROM used WHERE id >= snowflake_boundary(month(2)) AND id < snowflake_boundary(month(1));
SELECT old(3) AS deleted, old(1), old(0) AS "after them";
CREATE TABLE used_default PARTITION OF used DEFAULT;
CALL use(5, 5);
CALL use(2, 2);
SELECT old(6) AS "in the default partition";
BEGIN;
SELECT count(*) FROM snowflake_old_partitions('used', month(6), '-infinity');
SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation::regclass::text LIKE 'used%';
COMMIT;
\set VERBOSITY sqlstate
SELECT snowflake_old_partitions('used', month(6), '-infinity', NULL);
SELECT snowflake_old_partitions('used', month(6), '-infinity', '-1 s');

-- for an owner from whom policies hide rows, the table does not look as if it had none
ALTER TABLE used ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY, OWNER TO regress_snowflake_owner;
SET ROLE regress_snowflake_owner;
\set VERBOSITY terse
SELECT snowflake_old_partitions('used', month(6), '-infinity');
RESET ROLE;
\set VERBOSITY default
DROP PROCEDURE use;
DROP FUNCTION old;
DROP TABLE used;
DROP FUNCTION month;

-- errors
SELECT * FROM snowflake_drop_partitions(NULL, '2024-04-01');
\echo :SQLSTATE
SELECT * FROM snowflake_drop_partitions('orders', NULL);
SELECT * FROM snowflake_detach_partitions(NULL, '2024-04-01');
SELECT * FROM snowflake_detach_partitions('orders', NULL);
SELECT * FROM snowflake_drop_partitions('orders', '2024-04-01', NULL);
SELECT * FROM snowflake_drop_partitions('orders', 'infinity');
\echo :SQLSTATE
SELECT * FROM snowflake_detach_partitions('orders', '-infinity');
SELECT * FROM snowflake_detach_partitions('orders', '9999-01-01');
CREATE TABLE plain (id bigint);
SELECT * FROM snowflake_drop_partitions('plain', '2024-04-01');
\echo :SQLSTATE
CREATE TABLE by_integer (id integer) PARTITION BY RANGE (id);
SELECT * FROM snowflake_drop_partitions('by_integer', '2024-04-01');
CREATE TABLE by_two (id bigint, part bigint) PARTITION BY RANGE (id, part);
SELECT * FROM snowflake_drop_partitions('by_two', '2024-04-01');
CREATE TABLE by_expression (id bigint) PARTITION BY RANGE ((id / 2));
SELECT * FROM snowflake_drop_partitions('by_expression', '2024-04-01');
CREATE FUNCTION reverse_cmp(bigint, bigint) RETURNS integer LANGUAGE sql IMMUTABLE RETURN btint8cmp($2, $1);
CREATE OPERATOR CLASS reverse_ops FOR TYPE bigint USING btree AS
    OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 reverse_cmp(bigint, bigint);
CREATE TABLE by_reverse (id bigint) PARTITION BY RANGE (id reverse_ops);
SELECT * FROM snowflake_drop_partitions('by_reverse', '2024-04-01');

DROP VIEW partitions, locks;
DROP TABLE orders, invoices, plain, by_integer, by_two, by_expression, by_reverse, brief;
DROP OPERATOR FAMILY reverse_ops USING btree;
DROP FUNCTION reverse_cmp;
DROP SCHEMA "Old Things", shop CASCADE;
DROP ROLE regress_snowflake_owner, regress_snowflake_member, regress_snowflake_other;
