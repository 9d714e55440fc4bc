-- Conditions on sno_timestamp(id) become conditions on id, as those on
-- snowflake_timestamp(id) do; rows are the same.
SET timezone = 'UTC';
CREATE TABLE events AS
SELECT sno_encode(timestamptz '2026-01-01' + n * interval '1 hour' + n % 7 * interval '1 ms', n % 256, 1, n, n % 2 = 0) AS id, n
FROM generate_series(0, 9999) n;
INSERT INTO events VALUES ('2222222222222222', -1), ('xxxxxxxxxxxxxxxw', -2), (NULL, -3);
CREATE UNIQUE INDEX events_id ON events (id);
VACUUM ANALYZE events;

EXPLAIN (COSTS OFF) SELECT * FROM events WHERE sno_timestamp(id) >= '2026-06-01' AND sno_timestamp(id) < '2026-06-02';
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE '2010-01-02' > sno_timestamp(id);
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE sno_timestamp(id) = '2026-06-01 00:00:00.008';
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE sno_timestamp(id) > now() + interval '50 years';

-- through a view: the latest rows, pages, the least and the greatest time
CREATE VIEW dated_events AS SELECT sno_timestamp(id) AS created_at, id, n FROM events;
EXPLAIN (COSTS OFF) SELECT * FROM dated_events WHERE created_at < '2026-06-01' ORDER BY created_at DESC LIMIT 10;
EXPLAIN (COSTS OFF) SELECT * FROM dated_events WHERE (created_at, id) > ('2027-02-21 15:00:00', sno_encode('2027-02-21 15:00:00', 15, 1, 9999)) ORDER BY created_at, id;
EXPLAIN (COSTS OFF) SELECT * FROM dated_events WHERE (sno_decode(id)).created_at IN ('2026-06-01 00:00:00.008');
SELECT n FROM dated_events ORDER BY created_at DESC NULLS LAST LIMIT 3;
SELECT min(created_at), max(created_at) FROM dated_events;
DROP VIEW dated_events;

-- a column of a domain over a domain over sno
CREATE DOMAIN event_number AS sno;
CREATE DOMAIN late_event_number AS event_number;
ALTER TABLE events ADD numbered late_event_number;
UPDATE events SET numbered = id;
CREATE INDEX events_numbered ON events (numbered);
VACUUM ANALYZE events;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE sno_timestamp(numbered) >= '2026-06-01' AND sno_timestamp(numbered) < '2026-06-02';
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE sno_timestamp(numbered) > now() + interval '50 years';

SET snowflake.enable_timestamp_pushdown = off;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE sno_timestamp(id) >= '2027-02-01';
RESET snowflake.enable_timestamp_pushdown;

-- the same rows with and without, for all operators and instants at, before and
-- after ticks, and at the ends; constants, and expressions that are known later
CREATE FUNCTION rows(pushdown boolean, condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    PERFORM set_config('snowflake.enable_timestamp_pushdown', pushdown::text, true);
    EXECUTE 'SELECT count(*) || '' '' || coalesce(sum(n), 0) FROM events WHERE ' || condition INTO result;
    RETURN result;
END
$$;
SELECT count(*) AS conditions, count(DISTINCT rows(true, condition)) > 8 AS varied,
       count(*) FILTER (WHERE rows(true, condition) <> rows(false, condition)) AS wrong
FROM (VALUES ('<'), ('<='), ('='), ('>='), ('>')) AS operators (operator),
     (VALUES ('-infinity'), ('2009-12-31'), ('2010-01-01'), ('2010-01-01 00:00:00.000001'), ('2026-03-01 00:00:00.003999'),
             ('2026-03-01 00:00:00.004'), ('2026-03-01 00:00:00.004001'), ('2026-03-01 05:00:00'), ('2079-09-07 15:47:35.547'),
             ('2079-09-07 15:47:35.548'), ('2079-09-07 15:47:35.548001'), ('2100-01-01'), ('infinity')) AS instants (instant),
     (VALUES ('sno_timestamp(id) %s timestamptz %L'), ('NOT sno_timestamp(id) %s %L'), ('sno_timestamp(id) %s (SELECT timestamptz %L)'),
             ('sno_timestamp(numbered) %s timestamptz %L'), ('sno_timestamp(numbered) %s (SELECT timestamptz %L)'),
             ('sno_timestamp(id) %s current_setting(''snowflake.max_wait'')::text::interval * 0 + timestamptz %L')) AS forms (form),
     LATERAL (SELECT format(form, operator, instant) AS condition) AS conditions;
DROP FUNCTION rows;

-- joins, and an index on the time itself, which is used instead
CREATE TABLE spans AS SELECT timestamptz '2026-02-01' + n * interval '1 day' AS from_at FROM generate_series(1, 3) n;
ANALYZE spans;
EXPLAIN (COSTS OFF) SELECT * FROM spans JOIN events ON sno_timestamp(id) >= from_at AND sno_timestamp(id) < from_at + interval '1 hour';
SELECT count(*) FROM spans JOIN events ON sno_timestamp(id) >= from_at AND sno_timestamp(id) < from_at + interval '1 hour';
CREATE INDEX events_time ON events (sno_timestamp(id));
ANALYZE events;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE sno_timestamp(id) = '2026-06-01 00:00:00.008';
DROP TABLE events, spans;
DROP DOMAIN late_event_number, event_number;
