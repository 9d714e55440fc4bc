-- Encoding IDs from their parts.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- published IDs, and one of pgEdge's extension 2.6.0, from their parts
SELECT snowflake_encode('2022-06-28T16:07:40.105Z', 378, 0, 'twitter') = 1541815603606036480 AS twitter,
       snowflake_encode('2016-04-30T11:18:25.796Z', 32, 7, 'discord') = 175928847299117063 AS discord,
       snowflake_encode('2020-08-26T13:43:27.313Z', 2675, 578, 'instagram') = 2384288897814875714 AS instagram,
       snowflake_encode('2113-01-23T09:59:12.700Z', 55662, 250, 'sonyflake') = 5209458364210927982 AS sonyflake,
       snowflake_encode('2026-11-26T08:52:17.959Z', 7, 0, 'pgedge') = 516536665989214208 AS pgedge;

-- every preset, encoded and decoded
SELECT count(*) > 500 AS many, string_agg(DISTINCT l.name, ' ') FILTER (WHERE snowflake_encode(d.created_at, d.machine_id, d.sequence, l.name) IS DISTINCT FROM id) AS wrong
FROM snowflake_layouts l, generate_series(0, 9007199254740991, 90071992547409) id,
     snowflake_decode(id, l.name) d;

-- a time within a tick belongs to that tick
SELECT snowflake_encode('2024-01-01 00:00:00.001999', 1, 2, 'twitter') =
       snowflake_encode('2024-01-01 00:00:00.001', 1, 2, 'twitter') AS same;

-- the first and the last ID of a layout
SELECT snowflake_encode('2020-01-01', 0, 0, 'javascript') AS first,
       snowflake_encode('2089-09-06 15:47:35.551999', 31, 127, 'javascript') AS last;

-- the layout of snowflake.layout
SELECT snowflake_encode('2024-01-01', 1, 1) = snowflake_encode('2024-01-01', 1, 1, current_setting('snowflake.layout')) AS same;

SELECT snowflake_encode(NULL, 1, 1), snowflake_encode('2024-01-01', NULL, 1), snowflake_encode('2024-01-01', 1, NULL);

-- out of range
SELECT snowflake_encode('2019-12-31 23:59:59.999999', 0, 0, 'javascript');
\echo :SQLSTATE
SELECT snowflake_encode('2089-09-06 15:47:35.552', 0, 0, 'javascript');
\echo :SQLSTATE
SELECT snowflake_encode('infinity', 0, 0, 'javascript');
\echo :SQLSTATE
SELECT snowflake_encode('-infinity', 0, 0, 'epoch=1970-01-01 tick=1us timestamp=63');
\echo :SQLSTATE
SELECT snowflake_encode('infinity', 0, 0, 'epoch=1970-01-01 tick=1us timestamp=63');
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 32, 0, 'javascript');
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', -1, 0, 'javascript');
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, 128, 'javascript');
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 0, -1, 'javascript');
\echo :SQLSTATE
SELECT snowflake_encode('2024-01-01', 1, 0, 'mastodon');
\echo :SQLSTATE

-- with the layout of snowflake.layout, the error names the setting
SELECT snowflake_encode('1999-01-01', 0, 0);
SELECT snowflake_encode('2024-01-01', 2147483647, 0);
