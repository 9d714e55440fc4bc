-- Results are the same whether conditions on snowflake_timestamp(id) are pushed
-- down or not: for random IDs and instants of each layout, and for edge cases; for
-- columns of type bigint, and of a domain over it.
SET TimeZone = 'UTC';
SELECT setseed(0.5);

CREATE TABLE tested AS
SELECT name, definition, epoch, exhausted_at, tick, snowflake_boundary('infinity', definition) AS past,
       snowflake_encode(exhausted_at - tick, 0, 0, definition) AS last_tick
FROM snowflake_layouts
UNION ALL
SELECT name, definition, epoch, epoch + tick * 1024, tick, snowflake_boundary('infinity', definition), snowflake_encode(epoch + tick * 1023, 0, 0, definition)
FROM (VALUES ('own', 'epoch=2024-01-01T00:00:00Z tick=7us timestamp=10 sequence=3 machine=2', timestamptz '2024-01-01', interval '7 us')) AS own (name, definition, epoch, tick);

-- IDs: random ones, the first and the last, and the last of the first tick
CREATE TABLE ids AS
SELECT name, (random() * (past - 1))::numeric(19)::bigint AS id FROM tested, generate_series(1, 150)
UNION ALL SELECT name, 0 FROM tested
UNION ALL SELECT name, past - 1 FROM tested WHERE past < 9223372036854775807
UNION ALL SELECT name, past FROM tested WHERE past = 9223372036854775807
UNION ALL SELECT name, last_tick FROM tested
UNION ALL SELECT name, snowflake_boundary(epoch + tick, definition) - 1 FROM tested;
DELETE FROM ids USING tested t WHERE ids.name = t.name AND id > 0 AND id >= past AND past < 9223372036854775807;

CREATE DOMAIN positive AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN number AS positive;
ALTER TABLE ids ADD numbered number;
UPDATE ids SET numbered = id;

-- instants: those of the IDs, a microsecond and most of a tick around them,
-- random ones, before the epoch, after the end, the limits of the type, null
CREATE TABLE instants AS
SELECT i.name, at + around * interval '1 us' AS at
FROM ids i JOIN tested t USING (name), LATERAL (SELECT snowflake_timestamp(id, definition) AS at) a,
     LATERAL (VALUES (-1), (0), (1), ((extract(epoch FROM tick) * 900000)::int)) AS b (around)
UNION ALL SELECT name, epoch + random() * (exhausted_at - epoch) FROM tested, generate_series(1, 100)
UNION ALL SELECT name, e.at FROM tested, LATERAL (VALUES
	(epoch), (epoch - interval '1 us'), (exhausted_at), (exhausted_at - interval '1 us'), (exhausted_at + interval '1 us'),
	('-infinity'), ('infinity'), ('4714-11-24 00:00:00+00 BC'), ('294276-12-31 23:59:59.999999+00'), (NULL)) AS e (at);

-- One layout at a time, each operator, with columns on the other side.  The one
-- number that is both an ID and the bound after the end is left out.
CREATE FUNCTION count_holds(id_column text, layout text, definition text, operator text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(hashtext(id || '' '' || at)::bigint), 0) FROM ids, instants
		WHERE ids.name = %L AND instants.name = %L AND id < 9223372036854775807 AND snowflake_timestamp(%I, %L) %s at',
		layout, layout, id_column, definition, operator) INTO result;
	RETURN result;
END $$;

-- The same with constants, one instant after the other, and all IDs.
CREATE FUNCTION count_holds_constant(id_column text, layout text, definition text, operator text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text := '';
	instant timestamptz;
	holds text;
BEGIN
	FOR instant IN SELECT at FROM instants WHERE name = layout ORDER BY at DESC LIMIT 40 LOOP
		EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(hashint8(id)::bigint), 0) FROM ids WHERE name = %L AND snowflake_timestamp(%I, %L) %s %L::timestamptz',
			layout, id_column, definition, operator, instant) INTO holds;
		result := result || holds || ',';
	END LOOP;
	RETURN result;
END $$;

CREATE TABLE results AS
SELECT 'on' AS pushdown, id_column, name, operator, count_holds(id_column, name, definition, operator) AS columns,
       count_holds_constant(id_column, name, definition, operator) AS constants
FROM tested, unnest('{<,<=,=,>=,>}'::text[]) operator, unnest('{id,numbered}'::text[]) id_column;
SET snowflake.enable_timestamp_pushdown = off;
INSERT INTO results
SELECT 'off', id_column, name, operator, count_holds(id_column, name, definition, operator),
       count_holds_constant(id_column, name, definition, operator)
FROM tested, unnest('{<,<=,=,>=,>}'::text[]) operator, unnest('{id,numbered}'::text[]) id_column;

SELECT id_column, operator, count(*) = (SELECT count(*) FROM tested) AS every_layout,
       bool_and((SELECT count(*) FROM ids WHERE ids.name = a.name) * (SELECT count(*) FROM instants i WHERE i.name = a.name) >= 100000) AS enough,
       bool_and(split_part(a.columns, ' ', 1)::bigint > 100) AS holds,
       string_agg(name, ' ') FILTER (WHERE (a.columns, a.constants) IS DISTINCT FROM (b.columns, b.constants)) AS differs
FROM results a JOIN results b USING (id_column, name, operator)
WHERE a.pushdown = 'on' AND b.pushdown = 'off'
GROUP BY id_column, operator ORDER BY id_column, operator;

-- The other forms, through a column of a subquery; sorted rows, and the ends.
CREATE FUNCTION count_forms(layout text, definition text, form text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text := '';
	instant timestamptz;
	id bigint;
	holds text;
BEGIN
	CREATE TEMP TABLE layout_ids AS SELECT ids.id FROM ids WHERE name = layout;
	FOR instant, id IN SELECT i.at, (SELECT ids.id FROM ids WHERE ids.name = layout ORDER BY hashint8(ids.id # extract(epoch FROM i.at)::bigint) LIMIT 1)
		FROM instants i WHERE i.name = layout AND i.at BETWEEN '2000-01-01' AND '200000-01-01' ORDER BY at DESC LIMIT 20
	LOOP
		EXECUTE 'WITH dated AS NOT MATERIALIZED (SELECT id, snowflake_timestamp(id, $1) AS at FROM layout_ids) '
			|| replace(replace(form, ':at', quote_literal(instant) || '::timestamptz'), ':id', quote_literal(id) || '::bigint') INTO holds
			USING definition;
		result := result || coalesce(holds, '-') || ',';
	END LOOP;
	DROP TABLE layout_ids;
	RETURN result;
END $$;

CREATE TABLE forms AS
SELECT number, replace(form, ':rows', 'count(*) || '' '' || coalesce(sum(hashint8(id)::bigint), 0) FROM dated WHERE') AS form
FROM unnest(ARRAY[
	'SELECT :rows at IN (:at, :at + interval ''1 us'', snowflake_timestamp(:id, $1)) AND id < 9223372036854775807',
	'SELECT :rows NOT at IN (:at, snowflake_timestamp(:id, $1)) OR at IS NULL',
	'SELECT :rows at IS NOT NULL AND at < :at',
	'SELECT :rows (snowflake_decode(id, $1)).created_at >= :at',
	'SELECT :rows (at, id) < (snowflake_timestamp(:id, $1), :id)',
	'SELECT :rows (at, id) >= (snowflake_timestamp(:id, $1), :id)',
	'SELECT :rows (at, id) > (:at, :id)',
	'SELECT string_agg(at::text, '' '') FROM (SELECT at FROM dated WHERE at <= :at ORDER BY at DESC LIMIT 20) d',
	'SELECT string_agg(id::text, '' '') FROM (SELECT id FROM dated WHERE at > :at ORDER BY at, id LIMIT 20) d',
	'SELECT min(at) || '' '' || max(at) FROM dated WHERE at < :at']) WITH ORDINALITY f (form, number);

RESET snowflake.enable_timestamp_pushdown;
CREATE TABLE form_results AS SELECT 'on' AS pushdown, name, number, count_forms(name, definition, form) AS holds FROM tested, forms;
SET snowflake.enable_timestamp_pushdown = off;
INSERT INTO form_results SELECT 'off', name, number, count_forms(name, definition, form) FROM tested, forms;
RESET snowflake.enable_timestamp_pushdown;

SELECT number, count(*) = (SELECT count(*) FROM tested) AS every_layout, bool_and(length(a.holds) > 60) AS holds,
       string_agg(name, ' ') FILTER (WHERE a.holds IS DISTINCT FROM b.holds) AS differs
FROM form_results a JOIN form_results b USING (name, number)
WHERE a.pushdown = 'on' AND b.pushdown = 'off'
GROUP BY number ORDER BY number;

DROP TABLE tested, ids, instants, results, forms, form_results;
DROP FUNCTION count_holds, count_holds_constant, count_forms;
DROP DOMAIN number, positive;

-- The result of a query, whose parameter is null in a generic plan, or its error; changes are undone.
CREATE FUNCTION result(pushdown text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	PERFORM set_config('snowflake.enable_timestamp_pushdown', pushdown, true);
	PERFORM set_config('plan_cache_mode', 'force_generic_plan', true);
	EXECUTE 'PREPARE asked (text) AS ' || query;
	BEGIN
		EXECUTE 'EXECUTE asked (NULL)' INTO result;
		RAISE EXCEPTION USING ERRCODE = 'UNDO0';
	EXCEPTION
		WHEN SQLSTATE 'UNDO0' THEN NULL;
		WHEN OTHERS THEN result := SQLERRM;
	END;
	DEALLOCATE asked;
	RETURN result;
END $$;

-- A layout that is not one constant: a column, null, a parameter, a subquery; and one that is no
-- layout.  The order of the IDs is not that of the times, and a time can be null where the ID is not.
CREATE TABLE labeled (id bigint PRIMARY KEY, n integer, layout text);
INSERT INTO labeled
SELECT snowflake_encode(timestamptz '2026-01-01' + n * interval '1 hour', 0, 0, 'twitter'), n, ('{twitter,discord,NULL,sonyflake}'::text[])[1 + n % 4]
FROM generate_series(1, 12) n;
CREATE TABLE layouts AS SELECT DISTINCT layout FROM labeled;
CREATE TABLE vacant (LIKE labeled);
CREATE VIEW dated AS SELECT id, n, snowflake_timestamp(id, layout) AS at FROM labeled;
CREATE VIEW joined AS SELECT id, n, snowflake_timestamp(id, l.layout) AS at FROM labeled JOIN layouts l USING (layout);
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM dated WHERE n > 2;
SELECT query, coalesce(result('on', query), 'null') AS result, result('on', query) IS NOT DISTINCT FROM result('off', query) AS same
FROM unnest(ARRAY[
	$$SELECT string_agg(n::text, ' ') FROM (SELECT n FROM labeled ORDER BY snowflake_timestamp(id, layout), id) q$$,
	$$SELECT string_agg(n::text, ' ') FROM (SELECT n FROM labeled WHERE layout <> '' ORDER BY (snowflake_decode(id, layout)).created_at) q$$,
	$$SELECT string_agg(n::text, ' ') FROM (SELECT n FROM dated ORDER BY at DESC NULLS LAST LIMIT 6) q$$,
	$$SELECT string_agg(n::text, ' ') FROM (SELECT n FROM joined ORDER BY at) q$$,
	$$SELECT min(at) || ' ' || max(at) FROM dated$$,
	$$SELECT min(at) || ' ' || max(at) FROM joined$$,
	$$SELECT max(snowflake_timestamp(id, $1)) FROM labeled$$,
	$$SELECT count(*) FROM dated WHERE at IS NULL$$,
	$$SELECT count(*) FROM labeled WHERE (snowflake_decode(id, layout)).created_at IS NOT NULL$$,
	$$SELECT count(*) FROM labeled WHERE snowflake_timestamp(id, $1) IS NULL$$,
	$$SELECT count(*) FROM labeled WHERE snowflake_timestamp(id, (SELECT layout FROM vacant)) IS NULL$$,
	$$SELECT count(*) FROM labeled LEFT JOIN layouts l ON l.layout = 'discord' AND n < 4 WHERE snowflake_timestamp(id, l.layout) IS NULL$$,
	$$SELECT count(*) FROM barrier WHERE at IS NULL$$,
	$$SELECT count(*) FROM (SELECT id, layout FROM labeled EXCEPT SELECT NULL, NULL) q WHERE snowflake_timestamp(id, layout) IS NOT NULL$$,
	$$SELECT count(*) FROM dated WHERE at > '2026-01-01'$$,
	$$SELECT count(*) FROM dated WHERE at IN ('2026-01-01 04:00', '2030-03-01')$$,
	$$SELECT count(*) FROM dated WHERE (at, id) >= ('2026-01-01 04:00', 2006576111416246272)$$,
	$$WITH d AS (DELETE FROM labeled WHERE snowflake_timestamp(id, layout) IS NOT NULL RETURNING n) SELECT string_agg(n::text, ' ' ORDER BY n) FROM d$$,
	$$WITH d AS (UPDATE labeled SET n = 0 WHERE snowflake_timestamp(id, $1) IS NULL RETURNING n) SELECT count(*) FROM d$$,
	$$SELECT id FROM labeled ORDER BY snowflake_timestamp(id, 'nonsense')$$,
	$$SELECT max(snowflake_timestamp(id, 'nonsense')) FROM labeled$$,
	$$SELECT count(*) FROM labeled WHERE snowflake_timestamp(id, 'nonsense') IS NULL$$,
	$$SELECT count(*) FROM vacant WHERE snowflake_timestamp(id, 'nonsense') IS NULL$$]) query;

-- A subquery that is kept apart, ordered by a time that is not one of its columns.
CREATE TABLE numbered AS SELECT id, sno_encode(snowflake_timestamp(id, 'twitter'), 1, 2, n) AS sno, n, n % 3 AS item FROM labeled;
CREATE VIEW latest AS SELECT n, item FROM numbered ORDER BY snowflake_timestamp(id) DESC LIMIT 7;
SELECT query, result('on', query) AS result, result('on', query) = result('off', query) AS same
FROM unnest(ARRAY[
	$$SELECT item || ' ' || count(*) FROM (SELECT n, item FROM numbered ORDER BY snowflake_timestamp(id) DESC LIMIT 7) q WHERE n > 6 GROUP BY item ORDER BY 1$$,
	$$SELECT count(*) FROM (SELECT n, item FROM numbered ORDER BY snowflake_timestamp(id), id OFFSET 7) q WHERE n > 5$$,
	$$SELECT count(DISTINCT item) FROM (SELECT n, item FROM numbered ORDER BY snowflake_timestamp(id) FOR UPDATE) q WHERE n > 5$$,
	$$SELECT max(n) FROM (SELECT id, n FROM numbered ORDER BY (snowflake_decode(id)).created_at, id LIMIT 7) q WHERE n > 5$$,
	$$SELECT max(n) FROM (SELECT n FROM numbered ORDER BY item, sno_timestamp(sno) LIMIT 7) q WHERE n > 5$$,
	$$SELECT string_agg(n || ' ' || rank, ',') FROM (SELECT n, rank() OVER (PARTITION BY item ORDER BY n) FROM latest WHERE item <> 1) q$$,
	$$SELECT string_agg(n::text, ' ' ORDER BY n) FROM (SELECT n FROM latest WHERE n > 7 EXCEPT SELECT n FROM latest WHERE item = 1) q$$,
	$$WITH c AS MATERIALIZED (SELECT n, item FROM numbered ORDER BY snowflake_timestamp(id) LIMIT 7) SELECT sum(n) FROM c WHERE n > 5$$,
	$$SELECT sum(a.n) FROM numbered a JOIN latest b ON a.n = b.item + 1 WHERE b.n > 7$$]) query;
CREATE MATERIALIZED VIEW latest_items AS SELECT item, count(*) FROM latest WHERE n > 6 GROUP BY item;
SELECT * FROM latest_items ORDER BY item;

-- Documented exceptions: the last ID of a layout of all 63 bits, and of sno, and an instant that is not
-- a constant.
CREATE TABLE last_ids AS SELECT 9223372036854775807 AS id, sno 'xxxxxxxxxxxxxxxx' AS sno;
SELECT query, result('on', query) AS with_pushdown, result('off', query) AS without
FROM unnest(ARRAY[
	$$SELECT count(*) FROM last_ids WHERE snowflake_timestamp(id) < '2090-01-01'$$,
	$$SELECT count(*) FROM last_ids WHERE snowflake_timestamp(id) < (SELECT timestamptz '2090-01-01')$$,
	$$SELECT count(*) FROM last_ids WHERE snowflake_timestamp(id) < (SELECT timestamptz '2080-01-01')$$,
	$$SELECT count(*) FROM last_ids WHERE sno_timestamp(sno) < '2090-01-01'$$,
	$$SELECT count(*) FROM last_ids WHERE sno_timestamp(sno) < (SELECT timestamptz '2090-01-01')$$,
	$$SELECT count(*) FROM last_ids WHERE sno_timestamp(sno) < (SELECT timestamptz '2079-01-01')$$]) query;
DROP TABLE last_ids;

-- A constant near an end of the range, whose conversion fails in some time zones, in a plan that was
-- made in another one.
SET plan_cache_mode = force_generic_plan;
PREPARE ends AS SELECT count(*) FROM labeled
WHERE snowflake_timestamp(id) < timestamp '294276-12-31 23:00' AND snowflake_timestamp(id) > timestamp '4714-11-24 01:00 BC'
	AND snowflake_timestamp(id) < date '294276-12-31' AND snowflake_timestamp(id) > date '4714-11-24 BC';
EXECUTE ends;
SET TimeZone = 'America/New_York';
EXECUTE ends;
SET TimeZone = 'Asia/Tokyo';
EXECUTE ends;
SET TimeZone = '<west>+167';
EXECUTE ends;
SET TimeZone = '<east>-167';
EXECUTE ends;
SET TimeZone = 'UTC';
DEALLOCATE ends;
RESET plan_cache_mode;

-- Two ticks of two IDs: keys of different directions, and WITH TIES.
CREATE TABLE tied AS SELECT n, snowflake_encode('2026-01-01'::timestamptz + n / 2 * interval '1 ms', 1, n % 2, 'twitter') AS id FROM generate_series(0, 3) n;
SELECT n FROM tied ORDER BY snowflake_timestamp(id, 'twitter') DESC, id LIMIT 2;
SELECT count(*) FROM (SELECT FROM tied ORDER BY snowflake_timestamp(id, 'twitter') FETCH FIRST ROW WITH TIES) q;
DROP TABLE tied;

DROP TABLE labeled, layouts, vacant, numbered CASCADE;
DROP FUNCTION result;
