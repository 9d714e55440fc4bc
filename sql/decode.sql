-- Decoding IDs: published IDs, the layout of snowflake.layout, NULL.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- IDs of Twitter, Discord and Instagram with the times that they published
-- (sources in test/vectors/known_ids.csv)
WITH published (layout, id, created_at, machine_id, sequence) AS (VALUES
    ('twitter', 1541815603606036480, timestamptz '2022-06-28T16:07:40.105Z', 378, 0),
    ('twitter', 1050118621198921728, '2018-10-10T20:19:24.211Z', 347, 0),
    ('twitter', 850007368138018817, '2017-04-06T15:28:43.594Z', 333, 1),
    ('discord', 175928847299117063, '2016-04-30T11:18:25.796Z', 32, 7),
    ('instagram', 2384288897814875714, '2020-08-26T13:43:27.313Z', 2675, 578),
    ('sonyflake', 5209458364210927982, '2113-01-23T09:59:12.700Z', 55662, 250))
SELECT p.layout, p.id, d.*,
       d = ROW (p.created_at, p.machine_id, p.sequence) AS as_published,
       (snowflake_timestamp(p.id, p.layout), snowflake_machine_id(p.id, p.layout),
        snowflake_sequence(p.id, p.layout)) = d AS accessors_agree
FROM published p, snowflake_decode(p.id, p.layout) d;

-- a layout without machine bits
SELECT * FROM snowflake_decode((1704067200123::bigint << 16) + 4711, 'mastodon');

-- the ends of a layout
SELECT * FROM snowflake_decode(0, 'twitter');
SELECT * FROM snowflake_decode(9223372036854775807, 'twitter');
SELECT * FROM snowflake_decode(9007199254740991, 'javascript');

-- without a layout: the layout of snowflake.layout
SELECT count(*) FILTER (WHERE snowflake_decode(id) = snowflake_decode(id, current_setting('snowflake.layout'))
                          AND snowflake_timestamp(id) = (snowflake_decode(id)).created_at
                          AND snowflake_machine_id(id) = (snowflake_decode(id)).machine_id
                          AND snowflake_sequence(id) = (snowflake_decode(id)).sequence) AS same,
       count(*) AS all
FROM generate_series(0, 9000000000000000, 90000000000000) id;

-- a layout that changes from row to row
SELECT layout, snowflake_timestamp(1 << 30, layout)
FROM (VALUES (1, 'twitter'), (2, 'discord'), (3, 'discord'), (4, 'twitter'), (5, 'sonyflake')) v (n, layout)
ORDER BY n;

-- rows: the layout changes, and the type of the row is looked up once for a query, not for each row: each row forgets
-- what is cached of the functions, and an index of pg_proc is read for each look-up
SELECT n, snowflake_decode(1 << 30, layout)
FROM (VALUES (1, 'twitter'), (2, 'discord'), (3, 'discord'), (4, 'twitter'), (5, 'sonyflake')) v (n, layout)
ORDER BY n;
CREATE FUNCTION pg_temp.forget() RETURNS void LANGUAGE sql AS $$
    UPDATE pg_proc SET procost = procost WHERE proname IN ('snowflake_decode', 'sno_decode')
$$;
CREATE FUNCTION pg_temp.scans(call text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    scans CONSTANT text := $q$SELECT idx_scan FROM pg_stat_xact_sys_tables WHERE relid = 'pg_proc'::regclass$q$;
    before bigint;
    after bigint;
BEGIN
    EXECUTE scans INTO before;
    EXECUTE format('SELECT count(%s) FROM generate_series(1, 100) n, LATERAL (SELECT n, pg_temp.forget() OFFSET 0) f', call);
    EXECUTE scans INTO after;
    RETURN after - before;
END
$$;
BEGIN;
SET LOCAL allow_system_table_mods = on;
SELECT pg_temp.scans('1') > 0 AS counted;
SELECT call, pg_temp.scans(call) - pg_temp.scans('1') < 50 AS once
FROM (VALUES ('snowflake_decode(f.n)'), ('snowflake_decode(f.n, ''twitter'')'), ('(snowflake_decode(f.n)).sequence'),
             ('sno_decode(sno_boundary(to_timestamp(f.n + 1e9)))')) calls (call);
ROLLBACK;

-- NULL in, NULL out
SELECT snowflake_timestamp(NULL), snowflake_timestamp(1, NULL), snowflake_timestamp(NULL, 'twitter'),
       snowflake_machine_id(NULL), snowflake_sequence(NULL), snowflake_decode(NULL) IS NULL AS decode;

-- the numbers with the bits of a layout can be decoded, and no others
CREATE FUNCTION decodes(id bigint, layout text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN snowflake_decode(id, layout) IS NOT NULL;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN false;
END
$$;
SELECT count(*) FILTER (WHERE (id >= 0 AND id >> bits_of_layout = 0) <> decodes(id, layout)) AS wrong, bool_or(NOT decodes(id, layout) AND id > 0) AS some_too_large
FROM (SELECT name, timestamp_bits + machine_bits + sequence_bits FROM snowflake_layouts
      UNION ALL VALUES ('epoch=2020-01-01 tick=1s timestamp=32 sequence=8', 40)) layouts (layout, bits_of_layout),
     generate_series(0, 62) bits, generate_series(-1, 1) more, LATERAL (SELECT (1::bigint << bits) + more AS id UNION ALL SELECT -(1::bigint << bits) + more) ids;
DROP FUNCTION decodes(bigint, text);

-- with a layout, allowed in an index, a generated column and a partition key
CREATE TABLE decoded (
    id bigint PRIMARY KEY,
    created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'twitter')) STORED);
CREATE INDEX ON decoded (snowflake_timestamp(id, 'twitter'));
INSERT INTO decoded VALUES (1541815603606036480);
SELECT * FROM decoded;
DROP TABLE decoded;

-- virtual generated columns, which PostgreSQL has from 18 on, cannot use the functions of extensions
DO $$
BEGIN
    EXECUTE $q$CREATE TABLE decoded (id bigint, created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'twitter')) VIRTUAL)$q$;
    RAISE NOTICE 'accepted: docs/reference/functions.md, docs/support.md and docs/troubleshooting.md say that it is not';
EXCEPTION WHEN syntax_error OR feature_not_supported THEN
    RAISE NOTICE 'refused';
END
$$;

-- without one, it depends on a setting, and is rejected there
CREATE TABLE decoded (id bigint, created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED);
