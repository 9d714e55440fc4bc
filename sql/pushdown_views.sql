-- Conditions on the time of an ID, through views, subqueries and functions that the planner
-- merges into the query; ORDER BY, min() and max() of the time.
SET TimeZone = 'UTC';
SET datestyle = 'ISO';
-- an index, wherever there is one to use
SET seq_page_cost = 1000;
SET random_page_cost = 0.01;
SET enable_bitmapscan = off;
CREATE TABLE orders (id bigint PRIMARY KEY, customer integer, item text);
INSERT INTO orders
SELECT snowflake_encode(timestamptz '2026-01-01' + n / 3 * interval '1 hour', n % 3, n % 5), n % 10, 'item ' || n FROM generate_series(0, 2999) n;
CREATE TABLE refunds (id bigint, customer integer, item text);
INSERT INTO refunds SELECT CASE WHEN customer <> 5 THEN id END, customer, item FROM orders WHERE customer > 4;
CREATE INDEX refunds_id ON refunds (id);
ANALYZE orders, refunds;

-- views with the key and without it, subqueries, common table expressions
CREATE VIEW dated AS SELECT id, snowflake_timestamp(id) AS created_at, customer, item FROM orders;
CREATE VIEW keyless AS SELECT snowflake_timestamp(id) AS created_at, item FROM orders;
CREATE VIEW dated_refunds AS SELECT id, snowflake_timestamp(id) AS created_at, customer, item FROM refunds;
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE created_at >= '2026-02-01' AND created_at < '2026-02-02';
EXPLAIN (COSTS OFF) SELECT item FROM keyless WHERE created_at = '2026-02-01';
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT item, created_at AS at FROM keyless) s WHERE at BETWEEN '2026-02-01' AND '2026-02-02';
EXPLAIN (COSTS OFF) WITH c AS (SELECT * FROM dated WHERE item <> '') SELECT * FROM c WHERE created_at < now() - interval '100 years';
SELECT count(*) FROM keyless WHERE created_at >= '2026-02-01' AND created_at < '2026-02-02';

-- functions in SQL: of rows, and of one value
CREATE FUNCTION orders_since(since timestamptz) RETURNS SETOF orders LANGUAGE sql STABLE
BEGIN ATOMIC SELECT * FROM orders WHERE snowflake_timestamp(id) >= since; END;
CREATE FUNCTION created_at(o orders) RETURNS timestamptz LANGUAGE sql STABLE RETURN snowflake_timestamp(o.id);
EXPLAIN (COSTS OFF) SELECT * FROM orders_since('2026-02-01') WHERE created_at(orders_since) < '2026-02-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders o WHERE o.created_at > '2026-02-01';

-- joins: in ON of an outer join, and above it.  16 keeps the time of a view on the side that can be
-- null as an expression of its own (pushdown_views_1.out)
EXPLAIN (COSTS OFF) SELECT * FROM (VALUES (1)) v (n) LEFT JOIN dated ON customer = n AND created_at < '2026-01-02';
EXPLAIN (COSTS OFF) SELECT o.item FROM dated o LEFT JOIN dated_refunds r ON r.id = o.id WHERE r.created_at IS NULL AND o.created_at < '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM (VALUES (timestamptz '2026-02-01'), ('2026-02-03')) v (day), LATERAL (SELECT * FROM dated WHERE created_at >= day AND created_at < day + interval '1 day') d;

-- HAVING that the planner moves to WHERE, and values that are known when the query starts
EXPLAIN (COSTS OFF) SELECT customer, created_at FROM dated GROUP BY created_at, customer HAVING created_at > '2026-02-01';
SET enable_bitmapscan = on;
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE created_at = $$2026-02-01$$ OR created_at IN ('2026-02-02', '2026-02-03 00:00:00.0005');
SELECT count(*) FROM dated WHERE created_at = (SELECT max(created_at) FROM dated);

-- IN, IS NULL, the first field of snowflake_decode(), snowflake_between()
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE created_at IN ('2026-02-01', '2026-02-02');
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE created_at NOT IN ('2026-02-01', '2026-02-02');
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE created_at = ANY ('{2026-02-01,NULL}');
EXPLAIN (COSTS OFF) SELECT * FROM dated_refunds WHERE created_at IS NULL;
SELECT count(*), count(created_at) FROM dated_refunds WHERE created_at IS NULL;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE (snowflake_decode(id)).created_at >= '2026-02-01';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE (snowflake_decode(id)).machine_id >= 2;
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE snowflake_between(id, '2026-02-01', 'infinity');
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE snowflake_between(id, now() - interval '1 day', now());
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE id < snowflake_boundary('2026-02-01') AND id >= snowflake_boundary('2026-02-01', 'discord');

-- a range for each constant of a list; of a long list one range, beside the list
CREATE FUNCTION ranges(instants integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	instant_list text := (SELECT string_agg(quote_literal(timestamptz '2026-01-01' + n * interval '1 hour'), ', ') FROM generate_series(1, instants) n);
	plan jsonb;
BEGIN
	EXECUTE format('EXPLAIN (FORMAT JSON) SELECT * FROM dated WHERE created_at IN (%s)', instant_list) INTO plan;
	RETURN format('%s ranges, %s lists', (SELECT count(*) FROM regexp_matches(plan::text, 'Index Cond', 'g')), (SELECT count(*) FROM regexp_matches(plan::text, 'ANY \(', 'g')));
END $$;
SET enable_bitmapscan = on;
SELECT ranges(2), ranges(100), ranges(101);
-- one for each stable element, but not if there is a volatile one
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE created_at IN ('2026-02-01', now() - interval '1 day');
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE created_at IN ('2026-02-01', clock_timestamp());
SET enable_bitmapscan = off;
DROP FUNCTION ranges;

-- many lists: those after 1000 constants have one range each
CREATE FUNCTION long_lists(lists integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	conditions text;
	plan jsonb;
BEGIN
	SELECT string_agg(format('created_at = ANY (%L::timestamptz[])', instants), ' AND ') INTO conditions
	FROM (SELECT array_agg(timestamptz '2026-01-01' + list * interval '1 minute' + n * interval '1 hour') AS instants
		FROM generate_series(1, lists) list, generate_series(1, 100) n GROUP BY list) l;
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM dated WHERE ' || conditions INTO plan;
	RETURN (SELECT count(*) FROM regexp_matches(plan::text, 'ANY \(', 'g'));
END $$;
SELECT long_lists(10), long_lists(11), long_lists(30);
DROP FUNCTION long_lists;

-- left alone: comparisons with the same row
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE created_at < timestamptz '2026-01-01' + customer * interval '1 day';

-- UNION ALL of tables: each child has the condition on its ID beside that on the time
CREATE VIEW everything AS SELECT * FROM dated UNION ALL SELECT * FROM dated_refunds WHERE customer > 5;
EXPLAIN (COSTS OFF) SELECT * FROM everything WHERE created_at >= '2026-02-01' AND created_at < '2026-02-02';
SET enable_bitmapscan = on;
EXPLAIN (COSTS OFF) SELECT * FROM everything WHERE created_at < '2026-01-02' OR created_at = '2026-02-01';
SET enable_bitmapscan = off;
-- a condition on its ID is replaced before, even in a join
EXPLAIN (COSTS OFF) SELECT * FROM everything WHERE snowflake_timestamp(id) < '2026-02-01';
EXPLAIN (COSTS OFF) SELECT * FROM (VALUES (timestamptz '2026-02-01')) v (day), everything WHERE snowflake_timestamp(id) >= day AND snowflake_timestamp(id) < day + interval '1 day';
SELECT count(*) FROM everything WHERE created_at < '2026-02-01';
-- other set operations pass conditions down, and EXCEPT does not
CREATE FUNCTION index_conditions(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT count(*) FROM regexp_matches(plan::text, '"Index Cond": "\(id < ', 'g'));
END $$;
SELECT name, index_conditions(format('SELECT * FROM (SELECT id, created_at FROM dated %s SELECT id, created_at FROM dated_refunds) s WHERE created_at < $$2026-01-02$$', name))
FROM unnest('{INTERSECT,UNION,EXCEPT}'::text[]) name;
DROP FUNCTION index_conditions;

-- security barriers: by the column of the view, and by the function
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM dated WHERE customer < 5;
EXPLAIN (COSTS OFF) SELECT * FROM barrier WHERE created_at >= '2026-02-01';
EXPLAIN (COSTS OFF) SELECT * FROM barrier WHERE snowflake_timestamp(id) >= '2026-02-01';
SELECT count(*) FROM barrier WHERE snowflake_timestamp(id) < NULL OR created_at = ANY (ARRAY(SELECT created_at FROM keyless WHERE item = 'item 3'));
EXPLAIN (COSTS OFF) WITH c AS (SELECT * FROM barrier) SELECT * FROM (SELECT id AS key FROM c) s WHERE snowflake_timestamp(key) >= '2026-02-01';

-- row-level security of a table in a UNION ALL: conditions on IDs are evaluated with its policy, others after it
CREATE ROLE regress_snowflake_reader;
CREATE FUNCTION leak(bigint) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'saw %', $1; RETURN true; END $$;
CREATE TABLE secrets (id bigint PRIMARY KEY, owner name);
INSERT INTO secrets VALUES (snowflake_encode('2026-01-01', 1, 1), 'regress_snowflake_reader'), (snowflake_encode('2026-01-01', 1, 2), 'postgres');
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secrets USING (owner = current_user);
GRANT SELECT ON secrets, orders TO regress_snowflake_reader;
SET ROLE regress_snowflake_reader;
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT id, snowflake_timestamp(id) AS created_at FROM secrets UNION ALL SELECT id, snowflake_timestamp(id) FROM orders) u WHERE created_at < '2026-01-01 00:01' AND leak(id);
SELECT count(*) FROM (SELECT id, snowflake_timestamp(id) AS created_at FROM secrets UNION ALL SELECT id, snowflake_timestamp(id) FROM orders) u WHERE created_at < '2026-01-01 00:01' AND leak(id);
RESET ROLE;
DROP TABLE secrets;
DROP FUNCTION leak;
DROP OWNED BY regress_snowflake_reader;
DROP ROLE regress_snowflake_reader;

-- partitions are pruned through a view
CREATE TABLE events (id bigint, item text) PARTITION BY RANGE (id);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (MINVALUE) TO (2017749737272246272);
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (2017749737272246272) TO (MAXVALUE);
CREATE INDEX ON events (id);
CREATE VIEW dated_events AS SELECT snowflake_timestamp(id) AS created_at, item FROM events;
EXPLAIN (COSTS OFF) SELECT * FROM dated_events WHERE created_at >= '2026-03-01';
EXPLAIN (COSTS OFF) SELECT * FROM dated_events ORDER BY created_at DESC LIMIT 10;

-- ORDER BY the time: in the order of the key
EXPLAIN (COSTS OFF) SELECT * FROM dated ORDER BY created_at DESC LIMIT 10;
EXPLAIN (COSTS OFF) SELECT item FROM keyless ORDER BY created_at LIMIT 10;
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE (created_at, id) < ('2026-02-01', 2017749737272246273) ORDER BY created_at DESC, id DESC LIMIT 10;
EXPLAIN (COSTS OFF) SELECT * FROM dated WHERE (created_at, id) >= ('2026-02-01 00:00:00.001', 2017749737272246273) ORDER BY created_at, id LIMIT 10;
SELECT id, item FROM dated WHERE (created_at, id) < ('2026-02-11 15:00:00+00', 2021600108344250371) ORDER BY created_at DESC, id DESC LIMIT 2;
SELECT id, created_at, item FROM dated ORDER BY created_at DESC LIMIT 3;
SELECT item FROM keyless ORDER BY created_at LIMIT 1 OFFSET 2999;
SELECT ARRAY(SELECT item FROM keyless ORDER BY created_at DESC LIMIT 2);
SELECT item, (SELECT r.item FROM dated_refunds r WHERE r.created_at > d.created_at ORDER BY r.created_at LIMIT 1) FROM dated d ORDER BY created_at DESC LIMIT 1 OFFSET 10;

-- whether a query sorts: a plan that reads rows in the order of an index has no "Sort
-- Key"
CREATE FUNCTION sorts(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan::text LIKE '%"Sort Key"%';
END $$;
SELECT sorts('SELECT ' || query) AS sorts, query FROM (VALUES
	('* FROM dated ORDER BY created_at'),
	('* FROM dated ORDER BY created_at DESC'),
	('* FROM dated_refunds ORDER BY created_at DESC NULLS FIRST'),
	('* FROM dated_refunds ORDER BY created_at NULLS LAST'),
	('* FROM dated_refunds ORDER BY created_at NULLS FIRST'),
	('* FROM dated_refunds ORDER BY created_at DESC NULLS LAST'),
	('* FROM dated ORDER BY created_at, id'),
	('* FROM dated ORDER BY created_at DESC, id DESC, item'),
	('* FROM dated ORDER BY snowflake_timestamp(id, ''twitter'')'),
	('* FROM dated ORDER BY (snowflake_decode(id)).created_at'),
	('* FROM dated ORDER BY created_at FETCH FIRST 2 ROWS WITH TIES'),
	('* FROM dated ORDER BY created_at, id DESC'),
	('* FROM dated ORDER BY created_at, item'),
	('DISTINCT created_at FROM dated ORDER BY created_at'),
	('created_at, count(*) FROM dated GROUP BY created_at ORDER BY created_at'),
	('row_number() OVER (ORDER BY customer) FROM dated ORDER BY created_at'),
	('* FROM everything ORDER BY created_at'),
	('* FROM orders ORDER BY id')) AS queries (query);

-- nulls keep their places
SELECT created_at IS NULL AS no_time, count(*) FROM (SELECT created_at FROM dated_refunds ORDER BY created_at DESC NULLS LAST LIMIT 1400) r GROUP BY 1 ORDER BY 1;
SELECT created_at IS NULL AS no_time, count(*) FROM (SELECT created_at FROM dated_refunds ORDER BY created_at DESC LIMIT 400) r GROUP BY 1 ORDER BY 1;
SELECT created_at IS NULL AS no_time FROM dated_refunds ORDER BY created_at NULLS FIRST, id NULLS LAST LIMIT 1;

-- min() and max(): from the ends of the index
CREATE FUNCTION reads_all(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan::text LIKE '%"Aggregate"%';
END $$;
SELECT reads_all('SELECT ' || query) AS reads_all, query FROM (VALUES
	('min(created_at), max(created_at) FROM dated'),
	('max(snowflake_timestamp(id)) FROM orders WHERE snowflake_timestamp(id) < ''2026-02-01'''),
	('max(created_at) FROM dated_refunds'),
	('max(created_at) FROM dated_events'),
	('max(created_at), count(*) FROM dated'),
	('customer, max(created_at) FROM dated GROUP BY customer')) AS queries (query);
SELECT min(created_at), max(created_at) FROM dated;
SELECT min(created_at), max(created_at) FROM dated_refunds WHERE created_at < '2026-01-20';
SELECT min(created_at) FROM dated WHERE created_at > '2030-01-01';
SELECT max(sno_timestamp(sno_boundary('2026-01-01'))), max((snowflake_decode(id)).created_at) FROM orders;

-- a plan that was made with privileges is not used without them
CREATE ROLE regress_snowflake_reader;
CREATE ROLE regress_snowflake_other;
GRANT SELECT ON orders, barrier TO regress_snowflake_reader, regress_snowflake_other;
REVOKE EXECUTE ON FUNCTION snowflake_timestamp(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_timestamp(bigint) TO regress_snowflake_reader;
SET plan_cache_mode = force_generic_plan;
PREPARE counted AS SELECT count(*) FROM orders WHERE snowflake_timestamp(id) < '2026-01-02';
SET ROLE regress_snowflake_reader;
EXECUTE counted;
SET ROLE regress_snowflake_other;
EXECUTE counted;
SELECT count(*) FROM barrier WHERE snowflake_timestamp(id) < '2026-01-02';
SET ROLE regress_snowflake_reader;
EXECUTE counted;
RESET ROLE;
-- nor after they were revoked
REVOKE EXECUTE ON FUNCTION snowflake_timestamp(bigint) FROM regress_snowflake_reader;
SET ROLE regress_snowflake_reader;
EXECUTE counted;
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_timestamp(bigint) TO PUBLIC;
-- the form with the layout is not used by roles that may not call it
REVOKE EXECUTE ON FUNCTION snowflake_timestamp(bigint, text), snowflake_boundary(timestamptz) FROM PUBLIC;
SET ROLE regress_snowflake_reader;
SELECT max(snowflake_timestamp(id)) FROM orders;
EXPLAIN (COSTS OFF) SELECT 1 FROM orders WHERE id > snowflake_boundary('2026-01-01');
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_timestamp(bigint, text), snowflake_boundary(timestamptz) TO PUBLIC;
-- a bound that is a call needs the functions that it calls
REVOKE EXECUTE ON FUNCTION snowflake_boundary(timestamptz, text) FROM PUBLIC;
SET ROLE regress_snowflake_reader;
EXPLAIN (COSTS OFF) SELECT 1 FROM orders WHERE snowflake_timestamp(id) < now();
EXPLAIN (COSTS OFF) SELECT 1 FROM orders WHERE snowflake_timestamp(id) IN (now(), now() - interval '1 hour');
EXPLAIN (COSTS OFF) SELECT 1 FROM orders WHERE snowflake_timestamp(id) < '2026-01-02';
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_boundary(timestamptz, text) TO PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_later(timestamptz, bigint) FROM PUBLIC;
SET ROLE regress_snowflake_reader;
EXPLAIN (COSTS OFF) SELECT 1 FROM orders WHERE snowflake_timestamp(id) <= now();
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_later(timestamptz, bigint) TO PUBLIC;

DROP TABLE orders, refunds, events CASCADE;
DROP FUNCTION sorts, reads_all;
DROP ROLE regress_snowflake_reader, regress_snowflake_other;
