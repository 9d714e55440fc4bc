-- Issuing IDs within one session.

-- no ID issued yet
SELECT snowflake_currval();

-- an ID has the time, the machine and the layout of this server
WITH ids AS (SELECT clock_timestamp() AS before, snowflake_nextval() AS id)
SELECT snowflake_machine_id(id) = current_setting('snowflake.machine_id')::integer AS machine,
       snowflake_timestamp(id) BETWEEN before - interval '2 ms' AND clock_timestamp() + interval '10 ms' AS time,
       id = snowflake_currval() AS currval
FROM ids;

-- increasing, whatever mixture of functions issues them
SELECT snowflake_currval() AS last \gset
SELECT bool_and(id > before) AS increasing, count(*) FROM (
    SELECT id, coalesce(lag(id) OVER (ORDER BY n), :last) AS before
    FROM (SELECT n, snowflake_nextval() AS id FROM generate_series(1, 200000) n) a) b;
SELECT snowflake_currval() AS last \gset
SELECT bool_and(id > before) AS increasing, count(*), max(id) = snowflake_currval() AS currval FROM (
    SELECT id, coalesce(lag(id) OVER (ORDER BY n), :last) AS before
    FROM (SELECT id, row_number() OVER () AS n FROM (SELECT snowflake_nextvals(100000) AS id) a) b) c;
SELECT snowflake_currval() AS last \gset
SELECT snowflake_nextval() > :last AS increasing;

-- the rest of a batch is not used later: IDs have the time of their call
SELECT count(snowflake_nextval()) FROM generate_series(1, 100000);
SELECT pg_sleep(0.02);
WITH ids AS (SELECT clock_timestamp() AS before, snowflake_nextval() AS id)
SELECT snowflake_timestamp(id) > before - interval '2 ms' AS time FROM ids;

-- sets of IDs: empty, in FROM, with LIMIT, side by side, from rows
SELECT count(*) FROM snowflake_nextvals(0);
SELECT count(*), count(DISTINCT id) FROM snowflake_nextvals(1000) id;
SELECT count(*) FROM (SELECT snowflake_nextvals(2147483647) LIMIT 3) a;
SELECT count(*) FILTER (WHERE a <> b) AS differ, count(*) FROM (SELECT snowflake_nextvals(10) AS a, snowflake_nextvals(10) AS b) c;
SELECT count(DISTINCT id) FROM (SELECT snowflake_nextvals(n) AS id FROM generate_series(1, 10) n) a;
SELECT count(*) FROM snowflake_nextvals(NULL);

-- more IDs than one tick has: the time moves forward, and no ID is issued twice
WITH ids AS (SELECT snowflake_nextvals(100000) AS id)
SELECT count(DISTINCT id), count(DISTINCT snowflake_timestamp(id)) > 1 AS ticks FROM ids;

-- as the default of a key, even in a transaction that fails and in a subtransaction
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text);
INSERT INTO orders (item) VALUES ('a'), ('b'), ('c');
BEGIN;
INSERT INTO orders (item) VALUES ('rolled back') RETURNING id = snowflake_currval() AS currval;
SELECT snowflake_currval() AS lost \gset
ROLLBACK;
BEGIN;
SAVEPOINT s;
INSERT INTO orders (item) VALUES ('rolled back');
ROLLBACK TO s;
INSERT INTO orders (item) VALUES ('d');
COMMIT;
COPY orders (item) FROM stdin;
e
f
\.
SELECT string_agg(item, ' ' ORDER BY id) AS in_order, bool_and(id <> :lost) AS lost_is_not_reused FROM orders;
DROP TABLE orders;

-- in a read-only transaction, since no data is written
BEGIN READ ONLY;
SELECT snowflake_nextval() > 0 AS works;
COMMIT;

-- no transaction ID is assigned
BEGIN;
SELECT count(snowflake_nextval()) FROM generate_series(1, 10000);
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
COMMIT;

-- DISCARD, which poolers run between clients, resets snowflake_currval() as it does currval()
SELECT snowflake_nextval() = snowflake_currval() AS same;
DISCARD TEMP;
SELECT snowflake_currval() > 0 AS kept;
DISCARD SEQUENCES;
SELECT snowflake_currval();
SELECT snowflake_nextval() = snowflake_currval() AS same;
DISCARD ALL;
SELECT snowflake_currval();

-- in a parallel plan only the leader issues, so order holds
CREATE TABLE many AS SELECT n FROM generate_series(1, 10000) n;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT n, snowflake_nextval() FROM many;
DROP TABLE many;
