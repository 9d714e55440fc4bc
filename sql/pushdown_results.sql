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

SELECT name, id_column,
       (SELECT count(*) FROM ids WHERE ids.name = a.name) * (SELECT count(*) FROM instants i WHERE i.name = a.name) >= 100000 AS enough,
       count(*) AS operators,
       count(*) FILTER (WHERE a.columns = b.columns AND a.constants = b.constants) AS same,
       count(*) FILTER (WHERE split_part(a.columns, ' ', 1)::bigint > 100) AS holds
FROM results a JOIN results b USING (id_column, name, operator)
WHERE a.pushdown = 'on' AND b.pushdown = 'off'
GROUP BY name, id_column ORDER BY name, id_column;

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
	'SELECT :rows at IN (:at, :at + interval ''1 us'', snowflake_timestamp(:id, $1))',
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

SELECT number, count(*) AS layouts, count(*) FILTER (WHERE a.holds = b.holds) AS same,
       count(*) FILTER (WHERE length(a.holds) > 60) AS holds
FROM form_results a JOIN form_results b USING (name, number)
WHERE a.pushdown = 'on' AND b.pushdown = 'off'
GROUP BY number ORDER BY number;

DROP TABLE tested, ids, instants, results, forms, form_results;
DROP FUNCTION count_holds, count_holds_constant, count_forms;
DROP DOMAIN number, positive;
