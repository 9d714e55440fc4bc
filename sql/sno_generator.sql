-- Generating IDs of type sno: unique whatever their metabyte, in order, with this server's
-- partition.
SET timezone = 'UTC';
SELECT sno_metabyte(sno_nextval()) AS none, sno_metabyte(sno_nextval(200)) AS given, count(*) AS set, min(sno_metabyte(id)) AS of_set
FROM sno_nextvals(3, 255) AS id;
SELECT clock_timestamp() AS before \gset
CREATE TEMP TABLE taken AS SELECT n, sno_nextval(n % 256) AS id FROM generate_series(0, 199999) n;
SELECT count(DISTINCT sno_encode(sno_timestamp(id), 0, sno_partition(id), sno_sequence(id), (sno_decode(id)).tick_tock)) AS ids,
       count(*) FILTER (WHERE sno_metabyte(id) <> n % 256) AS wrong_metabyte,
       count(DISTINCT sno_partition(id)) AS partitions, min(sno_partition(id)) = current_setting('snowflake.machine_id')::integer AS is_machine_id,
       count(*) FILTER (WHERE sno_timestamp(id) NOT BETWEEN timestamptz :'before' - interval '4 ms' AND clock_timestamp() + interval '10 ms') AS untrue
FROM taken;
SELECT count(*) AS disordered FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM (SELECT n, sno_nextval(7) AS id FROM generate_series(1, 100000) n) i) o WHERE id <= before;
SELECT count(*) FROM (SELECT sno_nextvals(0, 0)) none;

-- as a default
CREATE TABLE events (id sno PRIMARY KEY DEFAULT sno_nextval(5), name text);
INSERT INTO events (name) VALUES ('a'), ('b') RETURNING sno_metabyte(id);
SELECT count(*) FROM events WHERE id >= sno_boundary(now() - interval '1 minute');
DROP TABLE events;

-- errors
SELECT sno_nextval(256);
\echo :SQLSTATE
SELECT sno_nextval(-1);
SELECT sno_nextvals(-1, 0);
\echo :SQLSTATE
SELECT sno_nextval(NULL) IS NULL AS null;

-- for a given time: the session counts the sequence numbers
SELECT sno_metabyte(id), sno_timestamp(id), sno_sequence(id) = 0 AS first, sno_partition(id) = current_setting('snowflake.machine_id')::integer AS here
FROM sno_at('2020-02-20 20:20:20.0205', 9) AS id;
SELECT sno_sequence(sno_at('2020-02-20', 9)) - sno_sequence(sno_at('2020-02-20', 9)) AS step;
SELECT count(DISTINCT sno_at('2020-02-20', 0)) FROM generate_series(1, 65536);
SELECT sno_at('2009-12-31', 0);
\echo :SQLSTATE
SELECT sno_at('2020-02-20', 256);

-- the generator's state, and its row in the statistics
SELECT partition = current_setting('snowflake.machine_id')::integer AS partition, sequence_min, sequence_max, sequence BETWEEN 0 AND 65535 AS sequence,
       wall_hi BETWEEN timestamptz :'before' - interval '4 ms' AND now + interval '10 ms' AS wall_hi, wall_safe IS NULL AS wall_safe, drifts
FROM sno_snapshot();
SELECT generator, layout, ids_allocated >= 300000 AS counted, exhausted_at AT TIME ZONE 'UTC' AS exhausted_at FROM pg_stat_snowflake WHERE generator = 'sno';

-- a floor must be within the generator's range, which is that of the type; one that the generator
-- has passed changes nothing, and it is moved back only to an earlier time
\set VERBOSITY terse
SELECT sno_set_floor('2009-12-31');
\echo :SQLSTATE
SELECT sno_set_floor('2079-09-07 15:47:36Z');
SELECT sno_set_floor('infinity');
SELECT sno_set_floor(NULL);
\echo :SQLSTATE
SELECT sno_set_floor('2020-01-01');
SELECT sno_move_back('2070-01-01 00:00Z');
\echo :SQLSTATE
SELECT sno_move_back(NULL);
