-- The race of keys issued before commit.  A reader that requests keys above the last one that it
-- has seen misses rows, if a transaction with a smaller key commits later.  Sequences, UUIDs of
-- version 7 and Snowflake IDs all have the race.  A reader that reads up to snowflake_horizon()
-- does not.
--
-- The sessions do their steps in a fixed order, so the rows are missed in each run.  The second
-- session is one of dblink, which connects with the connection string in the variable first.

CREATE EXTENSION dblink;

-- PostgreSQL 18 has uuidv7().
CREATE FUNCTION uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(set_byte(set_byte(
               substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                   || substring(uuid_send(gen_random_uuid()) FROM 7),
               6, 112 + get_byte(uuid_send(gen_random_uuid()), 6) % 16),
               8, 128 + get_byte(uuid_send(gen_random_uuid()), 8) % 64), 'hex')::uuid
$$;

CREATE TABLE with_sequence (id bigserial PRIMARY KEY, message text NOT NULL);
CREATE TABLE with_uuid (id uuid PRIMARY KEY DEFAULT uuid_v7(), message text NOT NULL);
CREATE TABLE with_snowflake (id bigint PRIMARY KEY DEFAULT snowflake_id(),
    message text NOT NULL);

-- the rows that each reader has seen
CREATE TABLE seen (reader text, message text);

-- 1. The slow session takes the smaller keys, and does not commit yet.
SELECT dblink_connect('slow', :'first');
SELECT dblink_exec('slow', 'BEGIN');
SELECT dblink_exec('slow', format('INSERT INTO %I (message) VALUES (%L)', name, 'slow'))
FROM unnest('{with_sequence,with_uuid,with_snowflake}'::text[]) AS name;

-- 2. Another session takes greater keys, and commits.  (UUIDs of one millisecond are in no order.)
SELECT pg_sleep_until(clock_timestamp() + interval '2 ms');
INSERT INTO with_sequence (message) VALUES ('fast');
INSERT INTO with_uuid (message) VALUES ('fast');
INSERT INTO with_snowflake (message) VALUES ('fast');

-- 3. The readers read for the first time.  Those without the horizon remember the greatest key.
INSERT INTO seen SELECT 'bigserial', message FROM with_sequence;
INSERT INTO seen SELECT 'UUIDv7', message FROM with_uuid;
INSERT INTO seen SELECT 'Snowflake', message FROM with_snowflake;
SELECT max(id) AS sequence_position FROM with_sequence \gset
SELECT id AS uuid_position FROM with_uuid ORDER BY id DESC LIMIT 1 \gset
SELECT max(id) AS snowflake_position FROM with_snowflake \gset

-- The reader with the horizon remembers the horizon, and reads the rows below it: none yet.
SELECT snowflake_horizon() AS horizon \gset
INSERT INTO seen SELECT 'Snowflake, horizon', message FROM with_snowflake WHERE id < :horizon;
\set horizon_position :horizon

-- the transactions that hold it back
SELECT pid, first_id, since FROM pg_stat_snowflake_horizon WHERE datname = current_database();

-- 4. The slow session commits.
SELECT dblink_exec('slow', 'COMMIT');

-- 5. The readers read again, from their positions.
INSERT INTO seen SELECT 'bigserial', message FROM with_sequence WHERE id > :sequence_position;
INSERT INTO seen SELECT 'UUIDv7', message FROM with_uuid WHERE id > :'uuid_position';
INSERT INTO seen SELECT 'Snowflake', message FROM with_snowflake WHERE id > :snowflake_position;
SELECT snowflake_horizon() AS horizon \gset
INSERT INTO seen SELECT 'Snowflake, horizon', message FROM with_snowflake
WHERE id >= :horizon_position AND id < :horizon ORDER BY id;

SELECT reader, string_agg(message, ', ' ORDER BY message) AS seen, 2 - count(*) AS missed
FROM seen GROUP BY reader ORDER BY reader;

DO $$
BEGIN
    ASSERT (SELECT count(*) FROM seen WHERE reader <> 'Snowflake, horizon' AND message = 'fast') = 3
        AND NOT EXISTS (SELECT FROM seen WHERE reader <> 'Snowflake, horizon' AND message = 'slow'),
        'each reader without the horizon has missed a row';
    ASSERT (SELECT array_agg(message ORDER BY message) FROM seen
        WHERE reader = 'Snowflake, horizon') = '{fast,slow}',
        'the one with the horizon has missed none, and has seen none twice';
END
$$;
SELECT dblink_disconnect('slow');
