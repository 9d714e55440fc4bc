-- Partitions by time: periods, their names and bounds, and the tables created for them.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- the periods for which partitions are created, of a table that exists only meanwhile
CREATE FUNCTION periods(start_at timestamptz, end_at timestamptz, step interval, zone text DEFAULT 'UTC', OUT name text, OUT from_at timestamptz, OUT from_id bigint, OUT to_id bigint)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    CREATE TABLE p (id bigint) PARTITION BY RANGE (id);
    PERFORM snowflake_create_partitions('p', start_at, end_at, step, zone);
    RETURN QUERY SELECT substr(c.relname, 3), snowflake_timestamp(bounds[1]::bigint), bounds[1]::bigint, bounds[2]::bigint
        FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
            CROSS JOIN regexp_match(pg_get_expr(c.relpartbound, c.oid), $re$\('(.*)'\) TO \('(.*)'\)$re$) AS bounds
        WHERE inhparent = 'p'::regclass ORDER BY bounds[1]::bigint;
    DROP TABLE p;
END
$$;

-- names contain as many parts of the start as all starts need
SELECT step, min(name) AS first, max(name) AS last, count(*)
FROM (VALUES ('1 year'), ('12 months'), ('3 months'), ('1 month'), ('7 days'), ('365 days'), ('1 month 1 day'),
             ('24 hours'), ('8 hours'), ('90 minutes'), ('100000 seconds'), ('36000.5 s')) AS steps (step),
     periods('2024-01-01', least('2025-01-01', '2024-01-01'::timestamptz + 13 * step::interval), step::interval)
GROUP BY step ORDER BY count(*), step;
SELECT start_at, name
FROM (VALUES ('2024-01-01'::timestamptz), ('2024-07-01'), ('2024-01-15'), ('2024-01-15 06:00'), ('2024-01-15 06:30'),
             ('2024-01-15 06:30:01'), ('2024-01-15 06:30:01.5')) AS starts (start_at),
     periods(start_at, start_at + interval '1 s', '1 year');

-- a period begins where the one before it ends, by boundaries, and the last may
-- end after end_at; the 31st stays the 31st
SELECT * FROM periods('2024-01-31', '2024-05-31 00:00:01', '1 month');
SELECT count(*) AS periods, count(*) FILTER (WHERE from_id <> last_id OR from_id <> snowflake_boundary(timestamptz '2023-12-31' + (n - 1) * step)
      OR to_id <> snowflake_boundary(timestamptz '2023-12-31' + n * step)) AS wrong
FROM (SELECT *, lag(to_id) OVER w AS last_id, row_number() OVER w AS n
      FROM (VALUES (interval '1 month 3 days 05:06:07.008')) AS steps (step), periods('2023-12-31', '2027-01-01', step) WINDOW w AS (ORDER BY from_at)) p;

-- days and months are in the given zone, whatever the zone of the session, and hours are in UTC, where none occurs twice
SELECT name, from_at, snowflake_timestamp(to_id) - from_at AS length FROM periods('2024-10-25 22:00', '2024-10-28 22:00', '1 day', 'Europe/Berlin');
SELECT name, from_at FROM periods('2024-10-27 01:00', '2024-10-27 04:00', '1 hour', 'Europe/Berlin');
SET timezone = 'Europe/Berlin';
SELECT name, from_at, snowflake_timestamp(to_id) - from_at AS length FROM periods('2024-10-26', '2024-10-29', '1 day', 'Europe/Berlin');
SELECT name, from_at FROM periods('2024-10-26', '2024-10-28', '1 day');
SELECT name, from_at FROM periods('2024-10-27 01:00', '2024-10-27 04:00', '1 hour');
SET timezone = 'UTC';

-- no period
SELECT count(*) FROM periods('2024-01-01', '2024-01-01', '1 day');
DROP FUNCTION periods(timestamptz, timestamptz, interval, text);

-- partitions, with the properties of the parent
CREATE TABLE customers (id integer PRIMARY KEY);
CREATE TABLE orders (
    id bigint DEFAULT snowflake_nextval(),
    customer integer REFERENCES customers,
    item text COMPRESSION pglz DEFAULT 'a lamp' NOT NULL CHECK (item <> ''),
    created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'twitter')) STORED,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);
ALTER TABLE orders ALTER item SET STORAGE EXTERNAL;
CREATE INDEX ON orders (customer);
SELECT * FROM snowflake_create_partitions('orders', '2024-01-01', '2024-03-15', '1 month');
\d orders
\d orders_2024_02
SELECT attname, attstorage, attcompression FROM pg_attribute WHERE attrelid = 'orders_2024_02'::regclass AND attname = 'item';

-- a second call, with some existing partitions
SELECT * FROM snowflake_create_partitions('orders', '2024-01-01', '2024-03-15', '1 month');
SELECT * FROM snowflake_create_partitions('orders', '2024-02-01', '2024-05-01', '1 month');

-- a partition with the same bounds counts, whatever its name
ALTER TABLE orders_2024_04 RENAME TO spring;
SELECT * FROM snowflake_create_partitions('orders', '2024-04-01', '2024-05-01', '1 month');

-- rows go to the partition of their time
INSERT INTO orders (id) SELECT snowflake_boundary(t) + d
FROM (VALUES ('2024-01-01'::timestamptz, 0), ('2024-02-01', -1), ('2024-02-01', 0), ('2024-05-01', -1)) AS rows (t, d);
SELECT tableoid::regclass, created_at, item FROM orders ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) >= '2024-04-15';

-- retention
ALTER TABLE orders DETACH PARTITION orders_2024_01;
DROP TABLE orders_2024_01;
SELECT min(created_at) FROM orders;

-- larger steps, in a schema and with a name that need quotes
CREATE SCHEMA "Old Things";
CREATE TABLE "Old Things"."Big ""Table""" ("The ID" bigint) PARTITION BY RANGE ("The ID");
SELECT * FROM snowflake_create_partitions('"Old Things"."Big ""Table"""', '2020-01-01', '2025-01-01', '3 years');
CREATE TABLE this_name_is_as_long_as_names_can_be_with_no_room_for_a_period (id bigint) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('this_name_is_as_long_as_names_can_be_with_no_room_for_a_period', '2024-01-01', '2024-01-03', '1 day');
CREATE TEMP TABLE brief (id bigint) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('brief', '2024-01-01', '2024-02-01', '1 month');

-- partitions that a member of the owner's role creates belong to the owner
CREATE ROLE regress_snowflake_owner;
CREATE ROLE "regress_snowflake_Owner" IN ROLE regress_snowflake_owner;
CREATE ROLE regress_snowflake_other;
CREATE SCHEMA shop;
GRANT ALL ON SCHEMA shop TO PUBLIC;
CREATE TABLE shop.orders (id bigint) PARTITION BY RANGE (id);
ALTER TABLE shop.orders OWNER TO regress_snowflake_owner;
GRANT ALL ON shop.orders TO regress_snowflake_other;
SET ROLE "regress_snowflake_Owner";
SELECT * FROM snowflake_create_partitions('shop.orders', '2024-01-01', '2024-02-01', '1 month');
SELECT pg_get_userbyid(relowner) AS owner FROM pg_class WHERE oid = 'shop.orders_2024_01'::regclass;
SET ROLE regress_snowflake_other;
\set SHOW_CONTEXT never
SELECT * FROM snowflake_create_partitions('shop.orders', '2024-02-01', '2024-03-01', '1 month');
\echo :SQLSTATE
RESET ROLE;

-- with a default partition, for periods of which it holds no rows
CREATE TABLE shop.events (id bigint) PARTITION BY RANGE (id);
CREATE TABLE shop.events_default PARTITION OF shop.events DEFAULT;
INSERT INTO shop.events VALUES (snowflake_boundary('2024-02-03'));
SELECT * FROM snowflake_create_partitions('shop.events', '2024-01-01', '2024-02-01', '1 month');
SELECT * FROM snowflake_create_partitions('shop.events', '2024-01-01', '2024-03-01', '1 month');
\echo :SQLSTATE

-- a partition that is pending detach does not count, nor can it be created again
CREATE TABLE shop.leaving (id bigint) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('shop.leaving', '2024-01-01', '2024-02-01', '1 month');
UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = 'shop.leaving_2024_01'::regclass;    -- as a DETACH CONCURRENTLY that was cancelled
SELECT * FROM snowflake_create_partitions('shop.leaving', '2024-01-01', '2024-02-01', '1 month');
\echo :SQLSTATE
ALTER TABLE shop.leaving DETACH PARTITION shop.leaving_2024_01 FINALIZE;

-- partitions that were created in another time zone, or with another step: they are recognized by their bounds, and the rest
-- gets partitions
CREATE TABLE shop.zoned (id bigint) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('shop.zoned', '2023-11-01 00:00 Europe/Berlin', '2023-12-01 00:00 Europe/Berlin', '1 month', 'Europe/Berlin');
SELECT * FROM snowflake_create_partitions('shop.zoned', '2023-11-01', '2024-01-01', '1 month');
SELECT * FROM snowflake_create_partitions('shop.zoned', '2023-11-01', '2023-12-02', '1 day');
SELECT * FROM snowflake_create_partitions('shop.zoned', '2023-10-01', '2024-02-01', '6 months');
SELECT c.relname, snowflake_timestamp(bounds[1]::bigint) AS from_at, snowflake_timestamp(bounds[2]::bigint) AS to_at
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
    CROSS JOIN regexp_match(pg_get_expr(c.relpartbound, c.oid), $re$\('(.*)'\) TO \('(.*)'\)$re$) AS bounds
WHERE inhparent = 'shop.zoned'::regclass ORDER BY bounds[1]::bigint;

-- daily runs over the days on which clocks change; in some zones they do so at midnight
CREATE FUNCTION daily_runs(day date, zone text, step interval, stated text, OUT partitions bigint, OUT gaps bigint, OUT starts bigint)
LANGUAGE plpgsql AS $$
DECLARE
    today timestamptz;
BEGIN
    PERFORM set_config('timezone', zone, true);
    CREATE TABLE p (id bigint) PARTITION BY RANGE (id);
    FOR n IN -1 .. 1 LOOP
        today := (day + n)::timestamp + interval '13:30';
        PERFORM snowflake_create_partitions('p', date_trunc('day', today), today + interval '30 hours', step, stated);
    END LOOP;
    SELECT count(*), count(*) FILTER (WHERE upper <> next), count(*) FILTER (WHERE from_at = date_trunc('day', from_at)) INTO partitions, gaps, starts
    FROM (SELECT upper, lead(lower) OVER (ORDER BY lower) AS next, snowflake_timestamp(lower) AS from_at
        FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
            CROSS JOIN regexp_match(pg_get_expr(c.relpartbound, c.oid), $re$\('(.*)'\) TO \('(.*)'\)$re$) AS bounds
            CROSS JOIN LATERAL (SELECT bounds[1]::bigint AS lower, bounds[2]::bigint AS upper) AS b
        WHERE inhparent = 'p'::regclass) AS b;
    DROP TABLE p;
    PERFORM set_config('timezone', 'UTC', true);
END
$$;
SELECT zone, day, step, stated, r.*
FROM (VALUES ('Europe/Berlin', date '2024-03-31'), ('Europe/Berlin', '2024-10-27'), ('Australia/Lord_Howe', '2024-04-07'), ('Australia/Lord_Howe', '2024-10-06'),
             ('America/Santiago', '2024-04-07'), ('America/Santiago', '2024-09-08'), ('Asia/Beirut', '2024-03-31'), ('Asia/Beirut', '2024-10-27'),
             ('Africa/Cairo', '2024-04-26'), ('America/Havana', '2024-03-10'), ('America/Havana', '2024-11-03'), ('Pacific/Apia', '2011-12-31')) AS z (zone, day),
     (VALUES (interval '1 day', true), ('1 day', false), ('8 hours', true), ('1 day 12 hours', true), ('1 hour', false)) AS s (step, stated),
     daily_runs(day, zone, step, CASE WHEN stated THEN zone ELSE 'UTC' END) r
WHERE step <> '1 hour' OR zone = 'Australia/Lord_Howe'
ORDER BY step, stated DESC, zone, day;
DROP FUNCTION daily_runs(date, text, interval, text);

-- gaps, behind the periods and before them, are reported, and a call for them fills them
CREATE TABLE shop.gaps (id bigint) PARTITION BY RANGE (id);
CREATE TABLE shop.gaps_of_a_sequence PARTITION OF shop.gaps FOR VALUES FROM (0) TO (1000000);
SELECT * FROM snowflake_create_partitions('shop.gaps', '2024-01-01', '2024-02-01', '1 month');
SELECT * FROM snowflake_create_partitions('shop.gaps', '2024-03-01', '2024-04-01', '1 month');
SELECT * FROM snowflake_create_partitions('shop.gaps', '2024-06-01', '2024-07-01', '1 month');
SELECT * FROM snowflake_create_partitions('shop.gaps', '2024-02-01', '2024-06-01', '1 month');
SELECT * FROM snowflake_create_partitions('shop.gaps', '2024-06-01', '2024-08-01', '1 month');
DROP TABLE shop.gaps_2024_05;
CREATE TABLE shop.gaps_others PARTITION OF shop.gaps DEFAULT;
SELECT * FROM snowflake_create_partitions('shop.gaps', '2024-07-01', '2024-08-01', '1 month');

-- a name that is taken
CREATE TABLE shop.events_2023_01 (id bigint);
SELECT * FROM snowflake_create_partitions('shop.events', '2023-01-01', '2023-02-01', '1 month');
\echo :SQLSTATE

-- domains over bigint, sno, and domains over it
CREATE DOMAIN number AS bigint;
CREATE DOMAIN late_number AS number CHECK (VALUE >= 0);
CREATE TABLE shop.numbered (id late_number PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('shop.numbered', '2024-01-01', '2024-03-01', '1 month');
SELECT * FROM snowflake_create_partitions('shop.numbered', '2024-02-01', '2024-04-01', '1 month');
INSERT INTO shop.numbered SELECT snowflake_boundary(month) FROM generate_series(timestamptz '2024-01-01', '2024-03-01', '1 month') month;
SELECT tableoid::regclass, snowflake_timestamp(id) FROM shop.numbered ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM shop.numbered WHERE snowflake_timestamp(id) >= '2024-03-15';
CREATE TABLE shop.happenings (id sno PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('shop.happenings', '2024-01-01', '2024-03-01', '1 month');
SELECT * FROM snowflake_create_partitions('shop.happenings', '2024-02-01', '2024-04-01', '1 month');
INSERT INTO shop.happenings SELECT sno_boundary(month) FROM generate_series(timestamptz '2024-01-01', '2024-03-01', '1 month') month;
INSERT INTO shop.happenings VALUES (sno_encode('2024-01-31 23:59:59.996', 255, 65535, 65535, true));
SELECT tableoid::regclass, sno_timestamp(id) FROM shop.happenings ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM shop.happenings WHERE sno_timestamp(id) >= '2024-03-15';
EXPLAIN (COSTS OFF) SELECT * FROM shop.happenings WHERE sno_timestamp(id) < now() - (now() - timestamptz '2024-02-01');
SELECT * FROM snowflake_create_partitions('shop.happenings', '2079-01-01', '2081-01-01', '1 year');
\echo :SQLSTATE
SELECT * FROM snowflake_create_partitions('shop.happenings', '2025-01-01', '2025-01-01 00:00:00.01', '1 us');
CREATE DOMAIN event_id AS sno;
CREATE TABLE shop.happened (id event_id PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('shop.happened', '2024-01-01', '2024-03-01', '1 month');
SELECT * FROM snowflake_create_partitions('shop.happened', '2024-01-01', '2024-03-01', '1 month');
DROP TABLE shop.numbered, shop.happened;
DROP DOMAIN event_id, late_number, number;

-- errors
SELECT * FROM snowflake_create_partitions('customers', '2024-04-01', '2025-04-01', '1 year');
\echo :SQLSTATE
CREATE TABLE by_integer (id integer) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('by_integer', '2024-04-01', '2025-04-01', '1 year');
CREATE TABLE by_two (id bigint, part bigint) PARTITION BY RANGE (id, part);
SELECT * FROM snowflake_create_partitions('by_two', '2024-04-01', '2025-04-01', '1 year');
CREATE TABLE by_list (id bigint) PARTITION BY LIST (id);
SELECT * FROM snowflake_create_partitions('by_list', '2024-04-01', '2025-04-01', '1 year');
CREATE TABLE by_expression (id bigint) PARTITION BY RANGE ((id / 2));
SELECT * FROM snowflake_create_partitions('by_expression', '2024-04-01', '2025-04-01', '1 year');
CREATE TABLE by_hash (id bigint) PARTITION BY HASH (id);
SELECT * FROM snowflake_create_partitions('by_hash', '2024-04-01', '2025-04-01', '1 year');
SELECT * FROM snowflake_create_partitions('orders', '2025-04-01', '2024-04-01', '1 year');
\echo :SQLSTATE
SELECT * FROM snowflake_create_partitions('orders', '2024-04-01', 'infinity', '1 year');
SELECT * FROM snowflake_create_partitions('orders', '-infinity', '2024-04-01', '1 year');
SELECT * FROM snowflake_create_partitions('orders', '2025-04-01', '2026-04-01', '-1 year');
SELECT * FROM snowflake_create_partitions('orders', '2025-04-01', '2026-04-01', '0');
SELECT * FROM snowflake_create_partitions('orders', '2001-04-01', '2002-04-01', '1 year');
\echo :SQLSTATE
SELECT * FROM snowflake_create_partitions('orders', '2100-04-01', '2101-04-01', '1 year');
SELECT * FROM snowflake_create_partitions('orders', '2025-04-01', '2025-04-01 00:00:00.01', '1 us');
SELECT * FROM snowflake_create_partitions('orders', '2025-04-01', '2026-04-01', '1 us');
\echo :SQLSTATE
SELECT * FROM snowflake_create_partitions(NULL, '2024-04-01', '2025-04-01', '1 year');
\echo :SQLSTATE
SELECT * FROM snowflake_create_partitions('orders', NULL, '2025-04-01', '1 year');
SELECT * FROM snowflake_create_partitions('orders', '2024-04-01', NULL, '1 year');
SELECT * FROM snowflake_create_partitions('orders', '2024-04-01', '2025-04-01', NULL);
SELECT * FROM snowflake_create_partitions('orders', '2024-04-01', '2025-04-01', '1 year', NULL);
SELECT * FROM snowflake_create_partitions('orders', '2024-04-01', '2025-04-01', '1 year', 'Mars/Olympus');
\echo :SQLSTATE
-- after an error, no partition is left
SELECT count(*) FROM pg_class WHERE relname LIKE 'orders\_20%' AND relkind = 'r';

DROP TABLE orders, customers, by_integer, by_two, by_list, by_expression, by_hash, brief,
    this_name_is_as_long_as_names_can_be_with_no_room_for_a_period;
DROP SCHEMA "Old Things", shop CASCADE;
DROP ROLE regress_snowflake_owner, "regress_snowflake_Owner", regress_snowflake_other;

-- a default of snowflake_nextval() works as well: partitions have it, feeds use it, and adoption leaves
-- it
CREATE TABLE twins (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
SELECT count(*) > 0 AS created FROM snowflake_create_partitions('twins', date_trunc('year', now()), now() + interval '1 s', '1 year');
SELECT snowflake_enable_feed('twins');
INSERT INTO twins DEFAULT VALUES RETURNING snowflake_timestamp(id) > now() - interval '1 hour' AS in_time;
SELECT DISTINCT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid IN (SELECT relid FROM pg_partition_tree('twins'));
SELECT snowflake_adopt('twins', 'id');
DROP TABLE twins;
