-- pg_partman with a table partitioned by Snowflake IDs: as ranges of numbers.
--
-- Packages: postgresql-N-partman
--
-- pg_partman, up to 5.5 at least, takes its functions that encode and decode times for keys of
-- text and uuid only.  For a bigint it creates ranges of numbers, each of the width of a day.
-- docs/partitions.md describes the differences.
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
SELECT split_part(extversion, '.', 1)::integer >= 5 AS partman_5
FROM pg_extension WHERE extname = 'pg_partman' \gset
\if :partman_5
    \set type range
\else
    \set type native
\endif

CREATE TABLE visits (id bigint PRIMARY KEY DEFAULT snowflake_id(), page text)
PARTITION BY RANGE (id);

SELECT snowflake_boundary('2026-11-22') - snowflake_boundary('2026-11-21') AS day \gset
SELECT partman.create_parent(
    p_parent_table    => 'public.visits',
    p_control         => 'id',
    p_type            => :'type',
    p_interval        => :'day',
    p_premake         => 10,
    p_start_partition => snowflake_boundary(now() - interval '5 days')::text);

-- Retention is not pg_partman's, which counts back from the greatest ID: one ID of a clock that is
-- ahead would make all others old.
INSERT INTO visits (page) SELECT 'page ' || n FROM generate_series(1, 100) n;
CALL partman.run_maintenance_proc();
SELECT snowflake_drop_partitions('visits', now() - interval '3 days', since => '-infinity');
CALL partman.run_maintenance_proc();

-- An ID of a clock that is five days ahead: no row is removed.
INSERT INTO visits SELECT snowflake_encode(now() + interval '5 days', 1, 0), 'ahead';
SELECT snowflake_drop_partitions('visits', now() - interval '3 days', since => '-infinity');

-- pg_partman names partitions by their numbers; their times are the times of the IDs
CREATE VIEW periods AS
SELECT c.oid::regclass AS partition, snowflake_timestamp(bounds[1]::bigint) AS from_at,
    snowflake_timestamp(bounds[2]::bigint) AS to_at
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid,
     regexp_match(pg_get_expr(c.relpartbound, c.oid), $$FROM \('(\d+)'\) TO \('(\d+)'\)$$) AS bounds
WHERE inhparent = 'visits'::regclass AND bounds IS NOT NULL;
SELECT * FROM periods ORDER BY from_at;

DO $$
BEGIN
    ASSERT (SELECT count(*) FROM periods WHERE to_at - from_at <> interval '1 day') = 0,
        'a partition is a day';
    ASSERT (SELECT max(to_at) FROM periods) > now() + interval '9 days',
        'ten days to come are there';
    ASSERT (SELECT min(to_at) FROM periods) BETWEEN now() - interval '4 days'
        AND now() - interval '2 days', 'old days are gone';
    ASSERT (SELECT count(*) FROM visits) = 101, 'all rows are there';
    ASSERT (SELECT count(*) FROM visits_default) = 0, 'each row has its partition';
END
$$;

-- From version 5.2 on, a text key can have periods of time, with user-defined functions.  Both
-- must accept NULL.
\if :partman_5
CREATE FUNCTION to_key(timestamptz) RETURNS text LANGUAGE SQL STABLE
RETURN snowflake_to_base32(snowflake_boundary($1));
CREATE FUNCTION to_time(text) RETURNS timestamptz LANGUAGE SQL STABLE
RETURN snowflake_timestamp(snowflake_from_base32($1));

CREATE TABLE clicks (
    id text COLLATE "C" PRIMARY KEY DEFAULT snowflake_to_base32(snowflake_id())
) PARTITION BY RANGE (id);
SELECT partman.create_parent(
    p_parent_table => 'public.clicks',
    p_control      => 'id',
    p_interval     => '1 month',
    p_time_encoder => 'public.to_key',
    p_time_decoder => 'public.to_time');
INSERT INTO clicks DEFAULT VALUES RETURNING tableoid::regclass AS partition, id;

DO $$
BEGIN
    ASSERT (SELECT tableoid::regclass::text FROM clicks)
        LIKE 'clicks_p' || to_char(now(), 'YYYYMM') || '%', 'named by its time';
END
$$;
\endif
