-- The view of presets, and definitions in place of a preset.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';

\x on
SELECT * FROM snowflake_layouts;
\x off

-- the name and its definition are the same layout
SELECT count(*) > 20 AS many, string_agg(DISTINCT name, ' ') FILTER (WHERE snowflake_decode(id, name) IS DISTINCT FROM snowflake_decode(id, definition)) AS wrong
FROM snowflake_layouts, (VALUES (0), (1), (4503599627370495), (9007199254740991)) v (id);

-- layouts that users define
SELECT snowflake_encode('2024-01-01 00:00:01', 200, 9000,
                        'epoch=2024-01-01T00:00:00Z tick=1ms timestamp=41 machine=8 sequence=14') AS id,
       (1000::bigint << 22) + (200 << 14) + 9000 AS expected;
SELECT snowflake_encode('2024-01-01 00:00:01', 200, 9000,
                        'epoch=2024-01-01 tick=1s timestamp=32 sequence=14 machine=8') AS id,
       (1::bigint << 22) + (9000 << 8) + 200 AS expected;

-- errors, with the position of each
SELECT snowflake_timestamp(1, 'no such layout');
\echo :SQLSTATE
SELECT snowflake_timestamp(1, '');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1ms timestamp=41 machines=8 sequence=14');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1ms timestamp=41 machine=8 machine=14');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1ms timestamp=41 machine=11 sequence=12');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1ms machine=10 sequence=12');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1ms machine=10 timestamp=41 sequence=12');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1ms timestamp=31 machine=32');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1ms timestamp=31 sequence=32');
SELECT snowflake_timestamp(1, 'epoch=yesterday tick=1ms timestamp=41');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1.5us timestamp=41');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1ms timestamp=63');
SELECT snowflake_timestamp(1, 'epoch=2024-01-01 tick=1ms timestamp=41 café=1');
