-- Boundaries between IDs at an instant, and ranges of two boundaries.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- For each layout, IDs around each instant, and instants around each ID:
-- (id >= boundary(t)) = (timestamp(id) >= t).  The last bigint is exempt.
CREATE VIEW chosen_layouts AS
    SELECT definition AS layout, timestamp_bits + machine_bits + sequence_bits AS bits FROM snowflake_layouts
    UNION ALL VALUES ('epoch=1970-01-01 tick=1us timestamp=63', 63),
                     ('epoch=0001-01-01 tick=7us timestamp=30 machine=1 sequence=31', 62),
                     ('epoch=2024-01-01 tick=1s timestamp=1', 1);
CREATE TABLE boundary_ids AS
    SELECT layout, n, ((random() * 9223372036854774784)::bigint >> (63 - bits)) >> (n % bits) AS id
    FROM chosen_layouts, generate_series(1, 500) n;
INSERT INTO boundary_ids SELECT layout, 0, 0 FROM chosen_layouts;
INSERT INTO boundary_ids SELECT layout, -1, 9223372036854775807 >> (63 - bits) FROM chosen_layouts;
CREATE VIEW boundary_instants AS
    SELECT layout, n, snowflake_timestamp(id, layout) + shift AS t
    FROM boundary_ids,
         (VALUES (interval '0'), ('1 microsecond'), ('-1 microsecond'), ('5 milliseconds'), ('-1 second')) s (shift)
    UNION ALL
    SELECT layout, 0, t
    FROM chosen_layouts,
         (VALUES (timestamptz 'infinity'), ('-infinity'), ('4714-11-24 00:00:00 BC'),
                 ('294276-12-31 23:59:59.999999'), ('2000-01-01'), ('1969-12-31 23:59:59.999999')) i (t);
WITH compared AS (
    SELECT i.layout, id, t, snowflake_boundary(t, i.layout) AS boundary
    FROM boundary_instants i JOIN boundary_ids USING (layout)
    WHERE abs(i.n - boundary_ids.n) < 5 OR i.n <= 0 OR boundary_ids.n <= 0)
SELECT count(*) > 100000 AS many,
       count(*) FILTER (WHERE (id >= boundary) <> (snowflake_timestamp(id, layout) >= t)
                          AND id <> 9223372036854775807) AS wrong
FROM compared;
DROP VIEW boundary_instants;
DROP TABLE boundary_ids;
DROP VIEW chosen_layouts;

-- the edges, one by one
SELECT snowflake_boundary('2020-01-01', 'javascript') AS epoch,
       snowflake_boundary('1999-01-01', 'javascript') AS before,
       snowflake_boundary('-infinity', 'javascript') AS minus_infinity,
       snowflake_boundary('2020-01-01 00:00:00.001', 'javascript') AS tick_1,
       snowflake_boundary('2020-01-01 00:00:00.000001', 'javascript') AS in_tick_0,
       snowflake_boundary('infinity', 'javascript') AS infinity,
       snowflake_boundary('infinity', 'twitter') AS infinity_63;

-- the layout of snowflake.layout; NULL
SELECT snowflake_boundary('2024-01-01') = snowflake_boundary('2024-01-01', current_setting('snowflake.layout')) AS same,
       snowflake_boundary(NULL) AS null;

-- between is half-open
WITH ids (name, id) AS (VALUES
    ('before', snowflake_boundary('2024-01-01') - 1),
    ('first', snowflake_boundary('2024-01-01')),
    ('last', snowflake_boundary('2024-01-02') - 1),
    ('behind', snowflake_boundary('2024-01-02')))
SELECT name, snowflake_between(id, '2024-01-01', '2024-01-02'),
       snowflake_between(id, '-infinity', '2024-01-02') AS no_start,
       snowflake_between(id, '2024-01-01', 'infinity') AS no_end,
       snowflake_between(id, NULL, '2024-01-01') AS null_start
FROM ids;
SELECT snowflake_between(NULL, '2024-01-01', '2024-01-02');

-- and becomes an index condition
CREATE TABLE events (id bigint PRIMARY KEY);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF)
SELECT * FROM events WHERE snowflake_between(id, '2024-01-01', '2024-01-02');
EXPLAIN (COSTS OFF)
SELECT * FROM events WHERE id >= snowflake_boundary('2024-01-01', 'twitter');
DROP TABLE events;
