-- The order of an index on the ID as the order of the time.
SET TimeZone = 'UTC';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE orders (id bigint PRIMARY KEY, customer integer, status integer, item text);
INSERT INTO orders
SELECT snowflake_encode(timestamptz '2026-01-01' + n / 4 * interval '2 hours', n % 4, n % 5), n % 50, (n * 7) % 11, 'item ' || n
FROM generate_series(0, 9999) n;
CREATE INDEX orders_customer ON orders (customer, id);
CREATE INDEX orders_status ON orders (status, item, id);
CREATE TABLE refunds (id bigint, at timestamptz);
INSERT INTO refunds SELECT CASE WHEN n % 10 <> 0 THEN snowflake_encode(timestamptz '2026-01-01' + n * interval '1 hour', 1, 0) END, timestamptz '2026-01-01' + n * interval '1 hour' FROM generate_series(0, 1999) n;
CREATE INDEX refunds_id ON refunds (id DESC NULLS LAST);
CREATE INDEX refunds_at ON refunds (at);
VACUUM ANALYZE orders, refunds;

/* What a plan sorts, merges and scans; of an incremental sort, the keys that are in order before it. */
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT string_agg(concat_ws(' ', node ->> 'Node Type', CASE node ->> 'Scan Direction' WHEN 'Backward' THEN 'Backward' END, node ->> 'Index Name', node -> 'Presorted Key', CASE WHEN node ->> 'Index Cond' !~ 'NULL' THEN node ->> 'Index Cond' END), ' > ' ORDER BY place)
		FROM jsonb_path_query(plan, 'strict $.** ? (exists(@."Node Type"))') WITH ORDINALITY nodes (node, place)
		WHERE node ->> 'Node Type' ~ 'Sort|Append|Scan|Join' AND node ->> 'Node Type' !~ 'Subquery');
END $$;

-- every use of an order: further keys, ties, DISTINCT, groups, windows, joins
SELECT plan_of(query) AS plan, query FROM (VALUES
	($$SELECT * FROM orders ORDER BY snowflake_timestamp(id) DESC, status LIMIT 20$$),
	($$SELECT * FROM orders ORDER BY snowflake_timestamp(id) DESC FETCH FIRST 20 ROWS WITH TIES$$),
	($$SELECT * FROM orders ORDER BY date_trunc('day', snowflake_timestamp(id), 'UTC'), date_trunc('hour', snowflake_timestamp(id), 'UTC'), snowflake_timestamp(id), id, snowflake_timestamp(id, 'twitter') LIMIT 20$$),
	($$SELECT * FROM orders WHERE customer = 7 ORDER BY snowflake_timestamp(id), status LIMIT 20$$),
	($$SELECT DISTINCT ON (customer) customer, id FROM orders ORDER BY customer DESC, snowflake_timestamp(id) DESC$$),
	($$SELECT date_trunc('day', snowflake_timestamp(id), 'UTC') AS day, count(*) FROM orders GROUP BY day ORDER BY day DESC LIMIT 3$$),
	($$SELECT * FROM (SELECT id, rank() OVER (ORDER BY snowflake_timestamp(id) DESC) FROM orders) ranked WHERE rank <= 3$$),
	($$SELECT orders.id FROM orders JOIN refunds ON snowflake_timestamp(orders.id) = at ORDER BY at LIMIT 3$$),
	($$SELECT * FROM (SELECT id FROM orders UNION ALL SELECT id FROM orders) u ORDER BY snowflake_timestamp(id) LIMIT 20$$),
	($$SELECT min(at) FROM (SELECT snowflake_timestamp(id) AS at FROM orders UNION ALL SELECT snowflake_timestamp(id) FROM orders) u$$),
	($$SELECT * FROM orders ORDER BY snowflake_to_base32(id) COLLATE "C" DESC, status LIMIT 20$$),
	($$SELECT * FROM orders WHERE snowflake_to_base32(id) COLLATE "C" > '1tz' ORDER BY snowflake_to_base32(id) COLLATE "C" DESC LIMIT 20$$)) AS queries (query);
-- nulls are sorted in the direction of the index
SELECT plan_of(query) AS plan, query FROM (VALUES
	($$SELECT * FROM refunds ORDER BY snowflake_timestamp(id) DESC NULLS LAST LIMIT 20$$),
	($$SELECT * FROM refunds ORDER BY snowflake_timestamp(id) NULLS FIRST LIMIT 20$$)) AS queries (query);
-- no order: buckets in a time zone, other collations, nulls at the other end, a sample
SELECT plan_of(query) AS plan, query FROM (VALUES
	($$SELECT * FROM orders ORDER BY date_trunc('day', snowflake_timestamp(id)) LIMIT 20$$),
	($$SELECT * FROM orders ORDER BY snowflake_timestamp(id)::date LIMIT 20$$),
	($$SELECT * FROM orders ORDER BY snowflake_to_base32(id) COLLATE "POSIX", status USING > LIMIT 20$$),
	($$SELECT * FROM refunds ORDER BY snowflake_timestamp(id) DESC LIMIT 20$$),
	($$SELECT * FROM orders TABLESAMPLE SYSTEM (100) ORDER BY snowflake_timestamp(id) LIMIT 1$$),
	($$SELECT * FROM orders ORDER BY snowflake_timestamp(id, item) LIMIT 20$$)) AS queries (query);

-- partitions by ranges are read one after the other, and all others are merged
CREATE TABLE parted (id bigint, status integer, item text) PARTITION BY RANGE (id);
-- the first bound is within a tick: rows of one time are in two partitions
SELECT id AS bound FROM orders ORDER BY id OFFSET 4002 LIMIT 1 \gset
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (:bound);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (:bound) TO (MAXVALUE) PARTITION BY RANGE (id, status);
SELECT snowflake_boundary('2026-06-01') AS bound \gset
CREATE TABLE parted_2_1 PARTITION OF parted_2 FOR VALUES FROM (MINVALUE, MINVALUE) TO (:bound, 0);
CREATE TABLE parted_2_2 PARTITION OF parted_2 FOR VALUES FROM (:bound, 0) TO (MAXVALUE, MAXVALUE);
CREATE INDEX parted_id ON parted (id);
INSERT INTO parted SELECT id, status, item FROM orders;
CREATE TABLE hashed (id bigint PRIMARY KEY, status integer, item text) PARTITION BY HASH (id);
SELECT format('CREATE TABLE hashed_%s PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER %1$s)', n) FROM generate_series(0, 2) n \gexec
INSERT INTO hashed SELECT id, status, item FROM orders;
VACUUM ANALYZE parted, hashed;
SELECT plan_of(query) AS plan, query FROM (VALUES
	($$SELECT * FROM parted ORDER BY snowflake_timestamp(id) DESC LIMIT 20$$),
	($$SELECT * FROM parted ORDER BY snowflake_timestamp(id), status LIMIT 20$$),
	($$SELECT * FROM parted ORDER BY date_trunc('day', snowflake_timestamp(id), 'UTC'), snowflake_timestamp(id), id LIMIT 20$$),
	($$SELECT date_trunc('day', snowflake_timestamp(id), 'UTC') AS day, count(*) FROM parted GROUP BY day ORDER BY day LIMIT 3$$),
	($$SELECT max(snowflake_timestamp(id)) FROM parted$$),
	($$SELECT * FROM hashed ORDER BY snowflake_timestamp(id) LIMIT 20$$)) AS queries (query);
-- and have their own keys again when the plan is made
SET plan_cache_mode = force_generic_plan;
PREPARE latest (bigint) AS SELECT * FROM parted WHERE id < $1 ORDER BY snowflake_timestamp(id) DESC, status LIMIT 20;
SELECT plan_of('EXECUTE latest (0)');
PREPARE last (bigint) AS SELECT max(snowflake_timestamp(id)) FROM parted WHERE id < $1;
SELECT plan_of('EXECUTE last (0)');
PREPARE joined (bigint) AS SELECT p.id FROM parted p JOIN orders o USING (id) WHERE p.id < $1 ORDER BY snowflake_timestamp(p.id), o.status LIMIT 20;
SELECT plan_of('EXECUTE joined (0)');
SET enable_partitionwise_join = on;
SELECT plan_of('SELECT p.id FROM parted_2 p JOIN parted_2 q USING (id, status) ORDER BY snowflake_timestamp(p.id), q.item');
RESET plan_cache_mode;
DEALLOCATE ALL;

-- the same rows with and without pushdown, if the planner uses an order wherever it knows one
CREATE INDEX parted_status ON parted_1 (snowflake_timestamp(id, 'twitter'), status);
CREATE INDEX parted_status_2 ON parted_2_1 (snowflake_timestamp(id, 'twitter'), status);
CREATE INDEX parted_status_3 ON parted_2_2 (snowflake_timestamp(id, 'twitter'), status);
CREATE TABLE listed (id bigint, status integer) PARTITION BY LIST (id);
CREATE TABLE listed_odd PARTITION OF listed FOR VALUES IN (4194304, 12582912, NULL);
CREATE TABLE listed_even PARTITION OF listed FOR VALUES IN (8388608, 16777216);
INSERT INTO listed SELECT unnest(ARRAY[4194304, 12582912, NULL, 8388608, 16777216]), 1;
CREATE INDEX ON listed (id);
-- an index by another order of numbers
CREATE FUNCTION reversed(bigint, bigint) RETURNS integer LANGUAGE sql IMMUTABLE RETURN btint8cmp($2, $1);
CREATE OPERATOR CLASS reversed FOR TYPE bigint USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 reversed(bigint, bigint);
CREATE TABLE turned AS SELECT id, status FROM orders WHERE customer < 5;
CREATE INDEX ON turned (id reversed);
CREATE INDEX ON orders (id, status);
-- keys of another layout
CREATE TABLE small AS SELECT snowflake_encode(timestamptz '2026-01-01' + n * interval '1 hour', 1, 0, 'discord') AS id, snowflake_encode(timestamptz '2026-01-01' - n / 9 * interval '1 hour', 1, n % 9) AS parent, n FROM generate_series(0, 99) n;
CREATE INDEX ON small (id);
CREATE INDEX ON small (parent);
VACUUM ANALYZE parted, listed, turned, small;

CREATE FUNCTION rows_of(query text, pushdown boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	PERFORM set_config('snowflake.enable_timestamp_pushdown', pushdown::text, true);
	EXECUTE format('SELECT md5(string_agg(q::text, '' '')) FROM (%s) q', query) INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
SET enable_sort = off;
SET enable_seqscan = off;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_bitmapscan = off;
SET random_page_cost = 0.01;
SELECT rows_of('SELECT ' || query, true) = rows_of('SELECT ' || query, false) AS same, query FROM (VALUES
	('snowflake_timestamp(id), status FROM orders ORDER BY 1, 2'),
	('snowflake_timestamp(id), status FROM orders ORDER BY 1 DESC, 2'),
	('snowflake_timestamp(id) FROM refunds ORDER BY 1'),
	('snowflake_timestamp(id) FROM refunds ORDER BY 1 DESC'),
	('snowflake_timestamp(id) FROM refunds ORDER BY 1 NULLS FIRST'),
	('snowflake_timestamp(id) FROM refunds ORDER BY 1 DESC NULLS LAST'),
	('snowflake_timestamp(id), status FROM parted ORDER BY 1, 2'),
	('snowflake_timestamp(id, ''twitter''), status FROM parted ORDER BY 1, 2'),
	('snowflake_timestamp(id, ''twitter''), status FROM parted ORDER BY 1 DESC, 2 DESC'),
	('snowflake_timestamp(id), id FROM parted ORDER BY 1, 2'),
	('snowflake_timestamp(id), status FROM hashed ORDER BY 1, 2'),
	('snowflake_timestamp(id) FROM listed ORDER BY 1'),
	('snowflake_timestamp(id) FROM listed ORDER BY 1 DESC'),
	('snowflake_timestamp(id) FROM turned ORDER BY 1'),
	('snowflake_timestamp(id), n FROM small ORDER BY 1, 2'),
	('snowflake_timestamp(id, ''discord''), n FROM small ORDER BY 1 DESC, 2'),
	('snowflake_timestamp(id), snowflake_timestamp(id, ''discord''), n FROM small ORDER BY 2 DESC, 1 DESC'),
	('snowflake_timestamp(id), snowflake_timestamp(parent), n FROM small ORDER BY 2, 1, 3'),
	('status, snowflake_timestamp(id) FROM orders ORDER BY 1, 2'),
	('date_trunc(''day'', snowflake_timestamp(id), ''UTC''), snowflake_timestamp(id) FROM orders ORDER BY 1, 2 DESC'),
	('snowflake_timestamp(id) FROM orders WHERE status IN (9, 2) ORDER BY 1'),
	('snowflake_timestamp(id), count(*) FROM parted GROUP BY 1 ORDER BY 1'),
	('DISTINCT ON (snowflake_timestamp(id)) snowflake_timestamp(id), status FROM parted ORDER BY 1 DESC, 2'),
	('customer, snowflake_timestamp(id) FROM orders WHERE customer IN (3, 17, 5) ORDER BY 1, 2'),
	('snowflake_timestamp(id) FROM orders WHERE customer = 3 AND id = ANY (ARRAY(SELECT id FROM orders WHERE customer IN (3, 4) ORDER BY item)) ORDER BY 1'),
	('snowflake_timestamp(r.id), o.status FROM orders o LEFT JOIN refunds r ON o.id = r.id AND r.id IS NOT NULL ORDER BY 1, 2'),
	('o.id, r.at FROM orders o FULL JOIN refunds r ON snowflake_timestamp(o.id) = r.at ORDER BY snowflake_timestamp(o.id), o.id, r.at'),
	('count(*) FROM orders o JOIN refunds r ON snowflake_timestamp(o.id) = snowflake_timestamp(r.id)'),
	('snowflake_timestamp(id) FROM (SELECT id FROM refunds UNION ALL SELECT id FROM parted) u ORDER BY 1 NULLS FIRST'))
	AS queries (query);
SET enable_partitionwise_aggregate = on;
SELECT rows_of(query, true) = rows_of(query, false) AS same FROM (VALUES ('SELECT snowflake_timestamp(id), count(*) FROM parted GROUP BY 1 ORDER BY 1')) AS queries (query);

-- an index that has the time before the ID; a column that is equal to the time; another collation of a text
CREATE TABLE timed AS SELECT id, snowflake_timestamp(id) AS at, status, item COLLATE "C" AS item FROM orders;
CREATE INDEX ON timed (snowflake_timestamp(id, 'twitter'), status, id);
CREATE INDEX ON timed (snowflake_timestamp(id, 'twitter') DESC, id);
CREATE INDEX ON timed (at DESC, id);
CREATE INDEX ON timed (item);
ANALYZE timed;
SELECT rows_of(query, true) = rows_of(query, false) AS same, query FROM (VALUES
	('SELECT snowflake_timestamp(id, ''twitter''), id FROM timed ORDER BY 1, 2'),
	('SELECT snowflake_timestamp(id, ''twitter''), id FROM timed ORDER BY 1 DESC, 2 DESC'),
	('SELECT at, id FROM timed WHERE at = snowflake_timestamp(id, ''twitter'') ORDER BY at DESC, id DESC')) AS queries (query);
SELECT plan_of('SELECT * FROM timed ORDER BY item COLLATE "POSIX", item COLLATE "C", snowflake_timestamp(id) LIMIT 3');
-- the key is taken back for max() even if rows are made of it
SELECT rows_of(query, true) = rows_of(query, false) AS same FROM (VALUES
	('SELECT generate_series(1, 2), max(date_bin(''1 hour'', snowflake_timestamp(id), timestamptz ''2026-01-01'')) FROM parted WHERE date_bin(''1 hour'', snowflake_timestamp(id), timestamptz ''2026-01-01'') <= (SELECT timestamptz ''2026-05-01'')')) AS queries (query);
-- a comparison of two tables is bounded once, whatever other tables there are
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT (SELECT count(*) FROM regexp_matches(plan_of('SELECT FROM orders a JOIN timed b ON (snowflake_timestamp(a.id), a.status) >= (snowflake_timestamp(b.id), b.status) JOIN small c ON c.n = b.status JOIN turned d ON d.id = c.id'), 'snowflake_boundary', 'g')) AS bounds;
-- a comparison of rows that stays, for an index on the time, is estimated by the statistics of this index
CREATE FUNCTION estimate_of(query text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' -> 'Plan Rows';
END $$;
SELECT estimate_of('SELECT FROM timed WHERE id > 5 AND (snowflake_timestamp(id, ''twitter''), status) > (timestamptz ''2026-05-01'', 5)') BETWEEN 3000 AND 6000 AS is_near;

-- a number that is not an ID remains an error wherever its time is computed
INSERT INTO refunds VALUES (-5, NULL);
SELECT snowflake_timestamp(id) FROM refunds ORDER BY 1 DESC NULLS LAST LIMIT 1;
SELECT at FROM refunds ORDER BY snowflake_timestamp(id) NULLS FIRST OFFSET 200 LIMIT 1;
SELECT min(snowflake_timestamp(id)) FROM refunds;
SELECT n FROM small ORDER BY snowflake_timestamp(id, 'javascript') DESC LIMIT 1;

DROP TABLE orders, refunds, parted, hashed, listed, turned, small, timed;
DROP OPERATOR FAMILY reversed USING btree;
DROP FUNCTION reversed, rows_of, plan_of, estimate_of;
