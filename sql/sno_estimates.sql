-- Estimates of rows for conditions on IDs of type sno: near the number of rows found, and near
-- the estimates for a bigint with the same times, which PostgreSQL makes by itself.
SET timezone = 'UTC';
CREATE FUNCTION counted(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE result bigint;
BEGIN
	EXECUTE 'SELECT count(*) FROM (' || query || ') q' INTO result;
	RETURN result;
END $$;

-- a year, 274 rows a day, a tenth of them without an ID
CREATE TABLE year AS
SELECT n, CASE WHEN n % 10 <> 0 THEN sno_encode(at, 0, 1, 0) END AS id, CASE WHEN n % 10 <> 0 THEN (extract(epoch FROM at) * 1000)::bigint END AS ms
FROM (SELECT n, timestamptz '2026-01-01' + n * interval '316 s' AS at FROM generate_series(0, 99999) n) y;
ANALYZE year;
CREATE FUNCTION ms(at timestamptz) RETURNS bigint LANGUAGE SQL IMMUTABLE RETURN (extract(epoch FROM at) * 1000)::bigint;

-- %1$s is the column, %2$s the function that gives its value at an instant
CREATE TABLE conditions (condition text);
INSERT INTO conditions VALUES
	($$%1$s < %2$s('2026-04-01')$$),
	($$%1$s <= %2$s('2026-04-01')$$),
	($$%1$s >= %2$s('2026-04-01')$$),
	($$%1$s > %2$s('2026-04-01')$$),
	($$%2$s('2026-04-01') > %1$s$$),
	($$%2$s('2026-04-01') <= %1$s$$),
	($$NOT %1$s < %2$s('2026-04-01')$$),
	($$%1$s IS NOT NULL$$),
	($$%1$s >= %2$s('2026-03-01') AND %1$s < %2$s('2026-06-01')$$),
	($$%1$s >= %2$s('2026-06-15') AND %1$s < %2$s('2026-06-16')$$),
	($$%1$s < %2$s('2026-06-16') AND %1$s >= %2$s('2026-06-15')$$),
	($$%1$s > %2$s('2026-06-15') AND %1$s <= %2$s('2026-06-16')$$),
	($$%2$s('2026-06-15') <= %1$s AND %2$s('2026-06-16') > %1$s$$),
	($$%1$s BETWEEN %2$s('2026-06-15') AND %2$s('2026-06-16')$$),
	($$%1$s >= %2$s('2026-06-15 12:00') AND %1$s < %2$s('2026-06-15 16:00')$$),
	($$%1$s >= %2$s('2026-06-15 12:00') AND %1$s < %2$s('2026-06-15 13:00')$$),
	($$%1$s >= %2$s('2026-01-01') AND %1$s < %2$s('2026-01-02')$$),
	($$%1$s >= %2$s('2026-12-31') AND %1$s < %2$s('2027-01-01')$$),
	($$%1$s >= %2$s('2026-06-01') AND %1$s >= %2$s('2026-06-15') AND %1$s < %2$s('2026-06-16') AND %1$s < %2$s('2026-07-01')$$),
	($$%1$s >= %2$s('2026-06-15') AND %1$s >= %2$s('2026-06-15') AND %1$s < %2$s('2026-06-16') AND %1$s < %2$s('2026-06-16')$$),
	($$%1$s >= %2$s('2026-06-15') AND %1$s < %2$s('2026-06-16') AND n >= 0 AND n < 100000$$),
	($$%1$s >= %2$s('2026-06-15') AND %1$s < %2$s('2026-06-16') OR %1$s >= %2$s('2026-08-15') AND %1$s < %2$s('2026-08-18')$$),
	($$NOT (%1$s < %2$s('2026-06-15') OR %1$s >= %2$s('2026-06-16'))$$),
	($$%1$s >= %2$s(now() - (now() - timestamptz '2026-06-15')) AND %1$s < %2$s(now() - (now() - timestamptz '2026-06-16'))$$);
SELECT condition, rows, of_sno BETWEEN rows / 2 AND rows * 2 AS right, abs(of_sno - of_bigint) <= 2 + rows / 50 AS as_bigint
FROM conditions, format('SELECT * FROM year WHERE ' || condition, 'id', 'sno_boundary') AS query,
     counted(query) AS rows, estimated(query) AS of_sno,
     estimated(format('SELECT * FROM year WHERE ' || condition, 'ms', 'ms')) AS of_bigint;

-- no rows, values that are not known when the plan is made, and expressions without statistics
CREATE TABLE unknown (condition text);
INSERT INTO unknown VALUES
	($$%1$s >= %2$s('2030-01-01')$$),
	($$%1$s < %2$s('2012-01-01')$$),
	($$%1$s >= %2$s('2030-01-01') AND %1$s < %2$s('2031-01-01')$$),
	($$%1$s >= %2$s('2026-06-16') AND %1$s < %2$s('2026-06-15')$$),
	($$%1$s >= %2$s('2026-11-16') AND %1$s < %2$s('2026-06-15')$$),
	($$%1$s >= (SELECT %2$s('2026-06-15'))$$),
	($$%1$s >= (SELECT %2$s('2026-06-15')) AND %1$s < (SELECT %2$s('2026-06-16'))$$),
	($$%1$s >= %2$s('2026-06-15') AND %1$s < (SELECT %2$s('2026-06-16'))$$),
	($$%1$s >= NULL AND %1$s < %2$s('2026-06-15')$$),
	($$greatest(%1$s, %2$s('2026-01-01')) >= %2$s('2026-06-15') AND greatest(%1$s, %2$s('2026-01-01')) < %2$s('2026-06-16')$$),
	($$%1$s >= %2$s('2026-06-15') AND %1$s < greatest(%1$s, %2$s('2026-06-16'))$$);
SELECT condition, abs(of_sno - of_bigint) <= 1 AS as_bigint
FROM unknown, estimated(format('SELECT * FROM year WHERE ' || condition, 'id', 'sno_boundary')) AS of_sno,
     estimated(format('SELECT * FROM year WHERE ' || condition, 'ms', 'ms')) AS of_bigint;

-- conditions on times; and joins, where one day is more than one row
SELECT condition, estimated('SELECT * FROM year WHERE ' || condition) BETWEEN 247 / 2 AND 247 * 2 AS right
FROM (VALUES
	($$sno_timestamp(id) >= '2026-06-15' AND sno_timestamp(id) < '2026-06-16'$$),
	($$sno_timestamp(id) BETWEEN '2026-06-15' AND '2026-06-16'$$),
	($$sno_timestamp(id) >= now() - (now() - timestamptz '2026-06-15') AND sno_timestamp(id) < '2026-06-16'$$)) AS conditions (condition);
CREATE TABLE others AS SELECT id, n FROM year ORDER BY n DESC;
ANALYZE others;
EXPLAIN (COSTS OFF) SELECT * FROM year JOIN others USING (id) WHERE sno_timestamp(id) >= '2026-06-15' AND sno_timestamp(id) < '2026-06-16';
SELECT abs(of_sno - of_bigint) <= of_bigint / 50 AS in_an_outer_join
FROM estimated($$SELECT * FROM year LEFT JOIN generate_series(1, 1000) ON id >= sno_boundary('2026-06-15') AND id < sno_boundary('2026-06-16')$$) AS of_sno,
     estimated($$SELECT * FROM year LEFT JOIN generate_series(1, 1000) ON ms >= ms('2026-06-15') AND ms < ms('2026-06-16')$$) AS of_bigint;

-- an operator that is no comparison of the type has the default
CREATE FUNCTION is_like(sno, sno) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN $1 > $2; END $$;
CREATE OPERATOR ~~ (LEFTARG = sno, RIGHTARG = sno, FUNCTION = is_like, RESTRICT = sno_rangesel);
SELECT estimated($$SELECT * FROM year WHERE id ~~ sno_boundary('2026-06-15')$$);
DROP FUNCTION is_like CASCADE;

-- IDs that are newer than the statistics are found by the index
CREATE INDEX year_id ON year (id);
CREATE INDEX year_ms ON year (ms);
INSERT INTO year SELECT n, sno_encode(at, 0, 1, 0), ms(at)
FROM (SELECT n, timestamptz '2027-01-02' + n * interval '316 s' AS at FROM generate_series(0, 2999) n) y;
SELECT of_sno > 100 AS many, abs(of_sno - of_bigint) <= 2 + of_bigint / 50 AS as_bigint
FROM estimated($$SELECT * FROM year WHERE id >= sno_boundary('2027-01-05')$$) AS of_sno, estimated($$SELECT * FROM year WHERE ms >= ms('2027-01-05')$$) AS of_bigint;
DROP INDEX year_id, year_ms;
DELETE FROM year WHERE n < 3000 AND id >= sno_boundary('2027-01-02');

-- the predicate of an index is a range as well: the cost is that of a day's entries
CREATE FUNCTION total_cost(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Total Cost';
END $$;
CREATE INDEX year_day ON year (n) WHERE id >= sno_boundary('2026-06-15') AND id < sno_boundary('2026-06-16');
CREATE INDEX year_day_ms ON year (n) WHERE ms >= ms('2026-06-15') AND ms < ms('2026-06-16');
VACUUM year;
SELECT abs(of_sno / of_bigint - 1) < 0.1 AS as_bigint
FROM total_cost($$SELECT n FROM year WHERE id >= sno_boundary('2026-06-15') AND id < sno_boundary('2026-06-16') ORDER BY n$$) AS of_sno,
     total_cost($$SELECT n FROM year WHERE ms >= ms('2026-06-15') AND ms < ms('2026-06-16') ORDER BY n$$) AS of_bigint;

-- partitions have statistics of their own; a column may be of a domain; values may be common
CREATE TABLE parted (id sno) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2222222222222222') TO (sno_boundary('2026-06-15 06:00'));
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (sno_boundary('2026-06-15 06:00')) TO ('xxxxxxxxxxxxxxxx');
INSERT INTO parted SELECT id FROM year WHERE id IS NOT NULL;
CREATE DOMAIN event_id AS sno;
CREATE TABLE of_domain AS SELECT id::event_id FROM year;
CREATE TABLE common AS SELECT CASE WHEN n % 2 = 0 THEN sno_boundary('2026-06-15 12:00') ELSE id END AS id FROM year;
ANALYZE parted, of_domain, common;
SELECT relation, rows, estimated(query) BETWEEN rows / 2 AND rows * 2 AS right
FROM (VALUES ('parted'), ('of_domain'), ('common')) AS relations (relation),
     format($$SELECT * FROM %I WHERE id >= sno_boundary('2026-06-15') AND id < sno_boundary('2026-06-16')$$, relation) AS query, counted(query) AS rows;

DROP TABLE year, conditions, unknown, others, parted, of_domain, common;
DROP DOMAIN event_id;
DROP FUNCTION counted, total_cost, ms;
