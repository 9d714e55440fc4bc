-- Conditions on a bucket of time, as ranges of IDs.
SET TimeZone = 'UTC';
-- an index, wherever there is one to use
SET seq_page_cost = 1000;
SET random_page_cost = 0.01;
SET enable_bitmapscan = off;
CREATE TABLE orders (id bigint, item text);
CREATE UNIQUE INDEX orders_id ON orders (id);
INSERT INTO orders
SELECT snowflake_encode(timestamptz '2025-10-25' + n * interval '30 minutes', n % 4, n % 5), 'item ' || n
FROM generate_series(0, 1199) n;
VACUUM ANALYZE orders;

-- a constant at the beginning of a bucket: the range is exact, and the condition is not evaluated
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('day', snowflake_timestamp(id), 'UTC') = '2025-11-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('month', snowflake_timestamp(id), 'UTC') > '2025-11-01';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE '2025-11-01' >= date_trunc('month', snowflake_timestamp(id), 'UTC');
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_bin('15 minutes', snowflake_timestamp(id), '2025-01-01') = '2025-11-01 12:15';
SET enable_bitmapscan = on;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('hour', snowflake_timestamp(id), 'UTC') IN ('2025-11-02', '2025-11-03');
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('hour', snowflake_timestamp(id), 'UTC') IS NULL;
-- within a bucket; in a time zone; not a constant: the condition is evaluated for the range
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('day', snowflake_timestamp(id), 'UTC') < '2025-11-02 12:00';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('day', snowflake_timestamp(id)) = '2025-11-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id)::date = '2025-11-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id)::date = current_date;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('week', snowflake_timestamp(id)) = '2025-11-03' OR item = 'none';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('day', snowflake_timestamp(id), NULL) IS NULL;
-- null where a range would be false, within NOT; a UNION ALL is rewritten before NOT is removed
SELECT count(*) FROM (SELECT id FROM orders UNION ALL SELECT id FROM orders) u WHERE NOT date_trunc('minute', snowflake_timestamp(id), NULL) >= '2025-11-02';
SELECT count(*) FROM (SELECT id FROM orders UNION ALL SELECT id FROM orders) u WHERE NOT date_trunc('minute', snowflake_timestamp(id)) >= (SELECT NULL::timestamptz);
SELECT count(*) FROM orders WHERE coalesce(NOT snowflake_timestamp(id)::date < (SELECT NULL::date), false);
-- the last time of all: no error
SELECT count(*) FROM orders WHERE date_trunc('millennium', snowflake_timestamp(id)) <= timestamptz '294276-12-31';
SELECT count(*) FROM orders WHERE date_trunc('day', snowflake_timestamp(id)) <= (SELECT timestamptz '294276-12-31 23:00');
SELECT count(*) FROM orders WHERE snowflake_timestamp(id)::date >= (SELECT date '4714-11-24 BC');
SELECT count(*) FROM orders WHERE snowflake_timestamp(id)::date < 'infinity' AND snowflake_timestamp(id)::date > '-infinity';
-- left alone: units, strides and origins that are not known
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc(item, snowflake_timestamp(id)) = '2025-11-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('epoch', snowflake_timestamp(id)) = '2025-11-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('timezone', snowflake_timestamp(id)) = '2025-11-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_bin('1 month', snowflake_timestamp(id), '2025-01-01') = '2025-11-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_bin('15 minutes', snowflake_timestamp(id), 'infinity') = '2025-11-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE date_trunc('day', snowflake_timestamp(id) + interval '1 hour') = '2025-11-02';

-- the order of buckets that is the order of the IDs, and one that is not
EXPLAIN (COSTS OFF) SELECT id FROM orders ORDER BY date_trunc('hour', snowflake_timestamp(id), 'UTC') DESC LIMIT 2;
EXPLAIN (COSTS OFF) SELECT id FROM orders ORDER BY date_trunc('hour', snowflake_timestamp(id)) DESC LIMIT 2;

-- a report of rows per hour
EXPLAIN (COSTS OFF) SELECT date_trunc('hour', snowflake_timestamp(id)) AS hour, count(*) FROM orders WHERE snowflake_timestamp(id) >= timestamptz '2025-11-18' - interval '1 day' GROUP BY hour ORDER BY hour;

-- partitions are pruned
CREATE TABLE events (id bigint) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%s) TO (%s)', m, snowflake_boundary(make_timestamptz(2025, m, 1, 0, 0, 0)), snowflake_boundary(make_timestamptz(2025, m + 1, 1, 0, 0, 0)))
FROM generate_series(9, 11) m \gexec
EXPLAIN (COSTS OFF) SELECT date_trunc('hour', snowflake_timestamp(id), 'UTC') AS hour, count(*) FROM events WHERE date_trunc('day', snowflake_timestamp(id), 'UTC') = '2025-10-15' GROUP BY 1;
EXPLAIN (COSTS OFF) SELECT count(*) FROM events WHERE date_trunc('month', snowflake_timestamp(id)) = '2025-09-01';

-- an exact range is estimated as such
SELECT estimated($$SELECT * FROM orders WHERE date_trunc('day', snowflake_timestamp(id), 'UTC') = '2025-11-02'$$) BETWEEN 40 AND 60 AS right;

-- nearly all rows of a range satisfy the condition beside it
SELECT estimated($$SELECT * FROM orders WHERE date_trunc('day', snowflake_timestamp(id)) = '2025-11-02'$$) BETWEEN 40 AND 60 AS right,
	estimated($$SELECT * FROM orders WHERE snowflake_timestamp(id)::date >= '2025-11-02'$$) BETWEEN 780 AND 880 AS right,
	estimated($$SELECT * FROM orders WHERE (snowflake_timestamp(id), item) > ('2025-11-02', 'item')$$) BETWEEN 780 AND 840 AS right,
	estimated($$SELECT * FROM orders WHERE snowflake_timestamp(id)::date >= '2025-11-02' AND date_trunc('day', snowflake_timestamp(id)) < '2025-11-04'$$) BETWEEN 90 AND 300 AS right;
-- and what is no such condition keeps its estimate
SELECT estimated($$SELECT * FROM orders WHERE id > 0 AND date_trunc('day', snowflake_timestamp(id)) = clock_timestamp()$$) < 40 AS right;

-- the same rows with and without pushdown, in all units and time zones; Havana has midnight twice on 2 November
CREATE FUNCTION differences(form text) RETURNS TABLE (compared bigint, different bigint, with_rows bigint) LANGUAGE plpgsql AS $$
DECLARE
	zone text; operator text; instant text; query text; pushed bigint; plain bigint;
BEGIN
	compared := 0; different := 0; with_rows := 0;
	FOREACH zone IN ARRAY '{UTC,America/Havana,Asia/Kathmandu,Australia/Lord_Howe}'::text[] LOOP
		PERFORM set_config('TimeZone', zone, true);
		FOREACH operator IN ARRAY '{<,<=,=,>=,>}'::text[] LOOP
			FOREACH instant IN ARRAY '{2025-11-02,2025-11-01 23:30,2025-11-02 00:30-04,2025-11-02 05:00+00,2025-12-01 00:00+00,2026-01-01,-infinity}'::text[] LOOP
				query := format('SELECT count(*) FROM orders WHERE %s %s %L', replace(form, 'created_at', 'snowflake_timestamp(id)'), operator, instant);
				PERFORM set_config('snowflake.enable_timestamp_pushdown', 'on', true);
				EXECUTE query INTO pushed;
				PERFORM set_config('snowflake.enable_timestamp_pushdown', 'off', true);
				EXECUTE query INTO plain;
				compared := compared + 1;
				different := different + (pushed <> plain)::integer;
				with_rows := with_rows + (plain > 0)::integer;
			END LOOP;
		END LOOP;
	END LOOP;
	RETURN NEXT;
END $$;
SELECT form, d.* FROM (
	SELECT format('date_trunc(%L, created_at%s)', unit, zone) AS form
	FROM unnest('{microsecond,sec,m,hours,day,week,mon,quarter,y,decade,millennium}'::text[]) unit,
		unnest(ARRAY['', $$, 'UTC'$$, $$, 'America/Havana'$$]) zone
	UNION ALL
	SELECT format('date_bin(%L, created_at, %L)', stride, origin)
	FROM unnest('{15 minutes,7 days 1 hour}'::text[]) stride, unnest('{2000-01-03,2025-11-02 00:07:03,2100-01-01}'::text[]) origin
	UNION ALL VALUES ('created_at::date')) forms, differences(form) d
ORDER BY form;
DROP TABLE orders, events;
DROP FUNCTION differences;
