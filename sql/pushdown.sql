-- Conditions on snowflake_timestamp(id) become conditions on id.  The layout of
-- the server under test is twitter.
SET TimeZone = 'UTC';
-- an index, wherever there is one to use
SET seq_page_cost = 1000;
SET random_page_cost = 0.01;
SET enable_bitmapscan = off;
-- a plan without the details that only PostgreSQL 19 and later show, of Result nodes and subplans
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line !~ '^ +Replaces: ' THEN
			RETURN NEXT regexp_replace(line, '(SubPlan|InitPlan) [a-z]+_', '\1 ');
		END IF;
	END LOOP;
END
$$;
CREATE TABLE orders (id bigint PRIMARY KEY, placed_at timestamptz, item text);
INSERT INTO orders
SELECT snowflake_encode(at, n % 4, n % 5), at, 'item ' || n
FROM (SELECT n, timestamptz '2026-01-01' + n * interval '1 hour' AS at FROM generate_series(0, 8759) n) a;
ANALYZE orders;

-- each operator, in both orders of operands; in the tick and at its beginning
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) < '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) <= '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) = '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) >= '2026-12-31';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) > '2026-12-31';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE '2026-12-31 00:00:00.0005' <= snowflake_timestamp(id);
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) BETWEEN '2026-02-01' AND '2026-02-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE NOT snowflake_timestamp(id) > '2026-01-02' AND (snowflake_timestamp(id) < '2026-01-01 12:00' OR item = 'item 1');
SELECT count(*) FROM orders WHERE snowflake_timestamp(id) BETWEEN '2026-02-01' AND '2026-02-02';

-- left alone: an operator with one operand
CREATE FUNCTION is_past(timestamptz) RETURNS boolean LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN $1 < now(); END $$;
CREATE OPERATOR ## (RIGHTARG = timestamptz, FUNCTION = is_past);
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE ## snowflake_timestamp(id);
DROP FUNCTION is_past CASCADE;

-- a layout that is written with so many spaces that it is not kept for the next call
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id, 'epoch=1288834974657ms tick=1ms timestamp=41 machine=10                                                                                                               sequence=12') < '2026-01-02';

-- after the end, before the epoch, infinite, null
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) > 'infinity';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) < '1970-01-01';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) > '-infinity';
SELECT plan('SELECT * FROM orders WHERE snowflake_timestamp(id) > NULL');

-- expressions that are stable, and the layout in the query
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) >= now() - interval '1 hour';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) > now();
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id, 'discord') < '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id, 'discord') = now();

-- dates and timestamps, converted as PostgreSQL converts them
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) >= current_date;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE timestamp '2026-01-02' > snowflake_timestamp(id);
SELECT count(*) FROM orders WHERE timestamp '2026-01-02' > snowflake_timestamp(id);
SET TimeZone = 'Asia/Tokyo';
SELECT count(*) FROM orders WHERE date '2026-01-02' > snowflake_timestamp(id);
SET TimeZone = 'UTC';
SELECT count(*) FROM orders WHERE date '5000000-01-01' > snowflake_timestamp(id);

-- parameters, in a generic plan as well
PREPARE since(timestamptz) AS SELECT count(*) FROM orders WHERE snowflake_timestamp(id) >= $1;
EXPLAIN (COSTS OFF) EXECUTE since('2026-12-31');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE since('2026-12-31');
EXECUTE since('2026-12-31');
RESET plan_cache_mode;
DEALLOCATE since;

-- columns of other tables: an index scan inside
CREATE TABLE days (day timestamptz, name text);
INSERT INTO days VALUES ('2026-03-01', 'first'), ('2026-03-02', 'second');
EXPLAIN (COSTS OFF) SELECT * FROM days JOIN orders ON snowflake_timestamp(id) >= day AND snowflake_timestamp(id) < day + interval '1 day';
SELECT name, count(*) FROM days JOIN orders ON snowflake_timestamp(id) >= day AND snowflake_timestamp(id) < day + interval '1 day' GROUP BY name ORDER BY name;
EXPLAIN (COSTS OFF) SELECT * FROM days LEFT JOIN orders ON snowflake_timestamp(id) > day;

-- at any depth: subqueries, views, common table expressions, changes of data
CREATE VIEW recent AS SELECT o.id AS order_id, o.item FROM orders o JOIN days ON o.placed_at > day WHERE snowflake_timestamp(o.id) > '2026-06-01';
EXPLAIN (COSTS OFF) SELECT * FROM recent WHERE snowflake_timestamp(order_id) < '2026-06-02';
SELECT plan('SELECT name, (SELECT count(*) FROM orders WHERE snowflake_timestamp(id) >= day) FROM days');
EXPLAIN (COSTS OFF) WITH o AS MATERIALIZED (SELECT * FROM orders WHERE snowflake_timestamp(id) < '2026-01-02') SELECT count(*) FROM o;
EXPLAIN (COSTS OFF) SELECT * FROM days WHERE EXISTS (SELECT 1 FROM orders WHERE item = name AND snowflake_timestamp(id) > '2026-12-01');
EXPLAIN (COSTS OFF) UPDATE orders SET item = 'old' WHERE snowflake_timestamp(id) < '2026-01-02';
EXPLAIN (COSTS OFF) DELETE FROM orders WHERE snowflake_timestamp(id) < '2026-01-02';
EXPLAIN (COSTS OFF) INSERT INTO days SELECT placed_at FROM orders WHERE snowflake_timestamp(id) < '2026-01-02';

-- rows that a change of data returns
CREATE TABLE moved (n integer, id bigint);
INSERT INTO moved SELECT 1, id FROM orders ORDER BY id LIMIT 3;
WITH m AS (INSERT INTO moved (n) VALUES (2) RETURNING n, id) SELECT count(*) FROM m WHERE snowflake_timestamp(id) > '2026-01-01';
WITH m AS (UPDATE moved SET n = n + 1 RETURNING id) SELECT count(*) FROM m WHERE snowflake_timestamp(id) > '2026-01-01';
WITH m AS (DELETE FROM moved RETURNING id) SELECT count(*) FROM m WHERE snowflake_timestamp(id) > '2026-01-01';
DROP TABLE moved;

-- MERGE, in the join condition; the same result with and without pushdown
CREATE TABLE merged AS SELECT * FROM orders WHERE id < snowflake_boundary('2026-01-04');
MERGE INTO merged m USING (SELECT * FROM orders WHERE snowflake_timestamp(id) < '2026-01-04') o
	ON m.id = o.id AND snowflake_timestamp(m.id) >= '2026-01-02'
	WHEN MATCHED AND snowflake_timestamp(m.id) < '2026-01-03' THEN UPDATE SET item = 'matched'
	WHEN MATCHED THEN DELETE
	WHEN NOT MATCHED THEN INSERT VALUES (-o.id, o.placed_at, 'new');
SELECT item LIKE 'item%' AS old, item = 'matched' AS matched, item = 'new' AS new, count(*) FROM merged GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
DROP TABLE merged;

-- columns of a domain over bigint, and of one over that: an index, partitions and constraints
CREATE DOMAIN order_number AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN late_order_number AS order_number NOT NULL;
CREATE TABLE numbered AS SELECT id::late_order_number AS id FROM orders;
CREATE UNIQUE INDEX ON numbered (id);
ANALYZE numbered;
EXPLAIN (COSTS OFF) SELECT * FROM numbered WHERE snowflake_timestamp(id) >= '2026-12-31';
EXPLAIN (COSTS OFF) SELECT * FROM numbered WHERE snowflake_timestamp(id::bigint) = now();
EXPLAIN (COSTS OFF) SELECT * FROM days JOIN numbered ON day <= snowflake_timestamp(id, 'discord');
EXPLAIN (COSTS OFF) SELECT * FROM numbered WHERE snowflake_timestamp((id + 1)::order_number) >= '2026-12-31';
CREATE TABLE numbered_events (id late_order_number) PARTITION BY RANGE (id);
CREATE TABLE numbered_events_1 PARTITION OF numbered_events FOR VALUES FROM (0) TO (2017749737272246272);
CREATE TABLE numbered_events_2 PARTITION OF numbered_events FOR VALUES FROM (2017749737272246272) TO (MAXVALUE);
EXPLAIN (COSTS OFF) SELECT * FROM numbered_events WHERE snowflake_timestamp(id) >= '2026-02-01';
EXPLAIN (COSTS OFF) SELECT * FROM numbered_events WHERE snowflake_timestamp(id) >= now() + interval '1 year';
CREATE TABLE numbered_history (id order_number);
CREATE TABLE numbered_history_1 (CHECK (id < 2017749737272246272)) INHERITS (numbered_history);
EXPLAIN (COSTS OFF) SELECT * FROM numbered_history WHERE snowflake_timestamp(id) >= '2026-02-01';
-- but not if the owner has defined an index on the time, even if a view casts the domain to bigint
CREATE INDEX numbered_time ON numbered (snowflake_timestamp(id, 'twitter'));
CREATE VIEW of_bigint AS SELECT id::bigint AS id FROM numbered;
EXPLAIN (COSTS OFF) SELECT * FROM numbered WHERE snowflake_timestamp(id, 'twitter') > '2026-12-31';
EXPLAIN (COSTS OFF) SELECT * FROM of_bigint WHERE snowflake_timestamp(id, 'twitter') > '2026-12-31';
DROP TABLE numbered, numbered_events, numbered_history CASCADE;
DROP DOMAIN late_order_number, order_number;

-- left alone: select lists, HAVING, = with columns, volatile expressions, other operators
EXPLAIN (COSTS OFF, VERBOSE) SELECT snowflake_timestamp(id) < '2026-01-02' FROM orders;
EXPLAIN (COSTS OFF) SELECT id FROM orders GROUP BY id HAVING snowflake_timestamp(max(id)) < '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM days JOIN orders ON snowflake_timestamp(id) = day;
CREATE FUNCTION pushed(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan::text LIKE '%snowflake_boundary%';
END $$;
SELECT pushed(condition) FROM (VALUES
	('SELECT * FROM orders WHERE snowflake_timestamp(id) IN (SELECT day FROM days)'),
	('SELECT * FROM orders WHERE snowflake_timestamp(id) NOT IN (SELECT day FROM days)'),
	('SELECT * FROM orders WHERE (snowflake_timestamp(id), item) IN (SELECT * FROM days)'),
	('SELECT * FROM orders WHERE snowflake_timestamp(id) = (SELECT max(day) FROM days WHERE name = item)'),
	('SELECT * FROM orders WHERE snowflake_timestamp(id) < now()')) AS queries (condition);
DROP FUNCTION pushed;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) < clock_timestamp();
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) <> '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id + 1) < '2026-01-02';
INSERT INTO orders SELECT id, placed_at FROM orders LIMIT 1 ON CONFLICT (id) DO UPDATE SET item = 'conflict' WHERE snowflake_timestamp(orders.id) < '2026-01-02' RETURNING snowflake_timestamp(id) < '2026-01-02' AS old;

-- left alone: tables with an index or a partition key on the time itself
CREATE TABLE indexed (id bigint PRIMARY KEY);
CREATE INDEX indexed_time ON indexed (snowflake_timestamp(id, 'twitter'));
EXPLAIN (COSTS OFF) SELECT * FROM indexed WHERE snowflake_timestamp(id, 'twitter') > '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM indexed WHERE snowflake_timestamp(id) > '2026-01-02';
CREATE VIEW through AS SELECT id + 0 AS other, id FROM indexed;
EXPLAIN (COSTS OFF) WITH t AS (SELECT * FROM through) SELECT * FROM t JOIN days ON true WHERE snowflake_timestamp(t.id, 'twitter') > '2026-01-02';
SELECT plan($$WITH a AS (SELECT * FROM through), b AS (SELECT * FROM a) SELECT name, (SELECT count(*) FROM b WHERE name <> '' AND snowflake_timestamp(id, 'twitter') > '2026-01-02') FROM days$$);
EXPLAIN (COSTS OFF) SELECT * FROM (indexed JOIN orders USING (id)) AS j WHERE snowflake_timestamp(j.id, 'twitter') > '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1::bigint, 2) AS g (id), (VALUES (1)) AS v (n) WHERE snowflake_timestamp(g.id) > '2026-01-02';
CREATE TABLE partial (id bigint, item text);
CREATE INDEX ON partial (item) WHERE snowflake_timestamp(id, 'twitter') > '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM partial WHERE snowflake_timestamp(id, 'twitter') > '2026-01-02';
-- and not if the query does not imply its predicate
CREATE INDEX ON partial (id);
EXPLAIN (COSTS OFF) SELECT * FROM partial WHERE snowflake_timestamp(id, 'twitter') > '2026-01-01';
-- a CHECK constraint of the table is true for all rows, and helps no query that has rows
CREATE TABLE checked (id bigint PRIMARY KEY, CHECK (snowflake_timestamp(id) > '2026-01-02'), CHECK (snowflake_timestamp(id, 'twitter') > '2026-01-02'));
EXPLAIN (COSTS OFF) SELECT * FROM checked WHERE snowflake_timestamp(id) > '2026-01-02';
EXPLAIN (COSTS OFF) SELECT * FROM checked WHERE snowflake_timestamp(id, 'twitter') > '2026-01-02';
-- an expression counts only in a valid index, behind columns that the query compares by =
CREATE TABLE second (id bigint PRIMARY KEY, item text);
CREATE INDEX ON second (item, snowflake_timestamp(id, 'twitter'));
EXPLAIN (COSTS OFF) SELECT * FROM second WHERE snowflake_timestamp(id, 'twitter') > '2026-01-02';
INSERT INTO second VALUES (snowflake_encode('2026-01-01', 1, 1)), (snowflake_encode('2026-01-01', 1, 2));
\set VERBOSITY sqlstate
CREATE UNIQUE INDEX CONCURRENTLY second_time ON second (snowflake_timestamp(id, 'twitter'));
\set VERBOSITY default
EXPLAIN (COSTS OFF) SELECT * FROM second WHERE snowflake_timestamp(id, 'twitter') > '2026-01-02';
DROP TABLE second;
CREATE TABLE parted (id bigint) PARTITION BY RANGE (snowflake_timestamp(id, 'twitter'));
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM ('2026-01-01') TO (MAXVALUE);
EXPLAIN (COSTS OFF) SELECT * FROM parted WHERE snowflake_timestamp(id, 'twitter') > '2026-01-02';

-- a parent with an index on the time, whose children have one too
CREATE TABLE ancestor (id bigint PRIMARY KEY);
CREATE INDEX ON ancestor (snowflake_timestamp(id, 'twitter'));
CREATE TABLE descendant () INHERITS (ancestor);
CREATE INDEX descendant_time ON descendant (snowflake_timestamp(id, 'twitter'));
EXPLAIN (COSTS OFF) SELECT * FROM ancestor WHERE snowflake_timestamp(id, 'twitter') > '2026-01-02';
EXPLAIN (COSTS OFF) SELECT id FROM ONLY ancestor WHERE snowflake_timestamp(id) < '2026-01-02';
DROP TABLE ancestor CASCADE;

-- partitions by the ID are pruned: by constants when planning, by others at start
CREATE TABLE events (id bigint) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%s) TO (%s)', m,
	snowflake_boundary(make_timestamptz(2026, m, 1, 0, 0, 0)), snowflake_boundary(make_timestamptz(2026, m + 1, 1, 0, 0, 0)))
FROM generate_series(1, 3) m \gexec
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_timestamp(id) >= '2026-02-01' AND snowflake_timestamp(id) < '2026-03-01';
CREATE FUNCTION march() RETURNS timestamptz LANGUAGE plpgsql STABLE AS 'BEGIN RETURN timestamptz ''2026-03-01''; END';
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_timestamp(id) >= march();

-- and children whose constraints exclude them
CREATE TABLE history (id bigint);
CREATE TABLE history_1 (CHECK (id < 2017749737272246272)) INHERITS (history);
CREATE TABLE history_2 (CHECK (id >= 2017749737272246272)) INHERITS (history);
EXPLAIN (COSTS OFF) SELECT * FROM history WHERE snowflake_timestamp(id) >= '2026-02-01';

-- security barriers and row-level security still hide rows
CREATE ROLE regress_snowflake_user;
CREATE FUNCTION leak(bigint) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'saw %', $1; RETURN true; END $$;
CREATE TABLE secrets (id bigint PRIMARY KEY, owner name);
INSERT INTO secrets VALUES (snowflake_encode('2026-01-01', 1, 1), 'regress_snowflake_user'), (snowflake_encode('2026-01-01', 1, 2), 'somebody');
CREATE VIEW barrier WITH (security_barrier) AS SELECT id FROM secrets WHERE owner = current_user;
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secrets USING (owner = current_user AND snowflake_timestamp(id) < '2027-01-01');
GRANT SELECT ON secrets, barrier TO regress_snowflake_user;
SET ROLE regress_snowflake_user;
EXPLAIN (COSTS OFF) SELECT id FROM secrets WHERE snowflake_timestamp(id) >= '2026-01-01' AND leak(id);
SELECT id FROM secrets WHERE snowflake_timestamp(id) >= '2026-01-01' AND leak(id);
RESET ROLE;
EXPLAIN (COSTS OFF) SELECT id FROM barrier WHERE snowflake_timestamp(id) >= '2026-01-01' AND leak(id);

-- without the privilege to call the function, the query is unchanged
REVOKE EXECUTE ON FUNCTION snowflake_timestamp(bigint) FROM PUBLIC;
GRANT SELECT ON orders TO regress_snowflake_user;
SET ROLE regress_snowflake_user;
SELECT count(*) FROM orders WHERE snowflake_timestamp(id) < '2026-01-02';
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_timestamp(bigint) TO PUBLIC;

-- off; and in another schema
SET snowflake.enable_timestamp_pushdown = off;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) < '2026-01-02';
RESET snowflake.enable_timestamp_pushdown;
CREATE SCHEMA elsewhere;
ALTER EXTENSION snowflake SET SCHEMA elsewhere;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE elsewhere.snowflake_timestamp(id) >= now();
ALTER EXTENSION snowflake SET SCHEMA public;
DROP SCHEMA elsewhere;

-- another function of the same name is left alone
CREATE SCHEMA pretender;
CREATE FUNCTION pretender.snowflake_timestamp(bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT AS 'SELECT to_timestamp(-$1)';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE pretender.snowflake_timestamp(id) < '2026-01-02';
DROP SCHEMA pretender CASCADE;

-- the same C function under another name is not, if it has the support function and no SET clause
CREATE FUNCTION made_at(bigint) RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT SUPPORT snowflake_timestamp_support AS '$libdir/snowflake', 'snowflake_timestamp';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE made_at(id) < '2026-01-02';
ALTER FUNCTION made_at SET work_mem = '1MB';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE made_at(id) < '2026-01-02';
DROP FUNCTION made_at;

-- estimates of rows: within a factor of two
SELECT condition, estimated('SELECT * FROM orders WHERE ' || condition) BETWEEN rows / 2 AND rows * 2 AS right, rows
FROM (VALUES
	($$snowflake_timestamp(id) >= '2026-12-01'$$, 744),
	($$snowflake_timestamp(id) BETWEEN '2026-03-01' AND '2026-03-08'$$, 169),
	($$snowflake_timestamp(id) < now() - (now() - timestamptz '2026-02-01')$$, 744),
	($$snowflake_between(id, '2026-03-01', '2026-04-01')$$, 744),
	($$id >= snowflake_boundary('2026-12-01')$$, 744)) AS conditions (condition, rows);

-- the conditions written explicitly
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_between(id, '2026-03-01', '2026-04-01');
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id >= snowflake_boundary(now() - interval '1 hour');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_between(id, '2026-02-01', '2026-03-01');

DROP TABLE orders, days, indexed, partial, checked, parted, events, history, secrets CASCADE;
DROP FUNCTION march, leak, plan;
DROP ROLE regress_snowflake_user;
