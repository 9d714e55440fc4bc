-- snowflake_process(): what a consumer gets, who may use it, and what is refused.  Two callers at once
-- are in specs/process.spec; crashes, dumps and standbys in t/032_process.pl.
\set SHOW_CONTEXT never
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text);
CREATE TABLE counted (calls serial, n bigint, first_id bigint, next_id bigint);
\set count 'INSERT INTO counted (n, first_id, next_id) SELECT count(*), $1, $2 FROM events WHERE id >= $1 AND id < $2'

-- every row once, from the first one on
INSERT INTO events (body) SELECT 'early' FROM generate_series(1, 3);
CALL snowflake_process('counter', :'count') \gset
SELECT :first_id AS first_id, :next_id > (SELECT max(id) FROM events) AS is_past;
SELECT snowflake_position('counter') = :next_id AS is_stored;
INSERT INTO events (body) SELECT 'later' FROM generate_series(1, 2);
CALL snowflake_process('counter', :'count') \gset later_
SELECT :later_first_id = :next_id AS continues;
SELECT n, first_id = 0 AS from_the_first, next_id <= snowflake_position('counter') AS before_the_end FROM counted ORDER BY calls;
SELECT consumer, owner = current_user AS is_mine, next_id = snowflake_position('counter') AS is_stored, processed_at > now() - interval '1 minute' AS is_new,
	lag BETWEEN '-1 minute' AND '1 minute' AS is_close FROM snowflake_consumers;

-- the position is a condition on the key, also in a view
CREATE VIEW total AS SELECT sum(n) AS n FROM (SELECT sum(n) AS n FROM counted UNION ALL SELECT count(*) FROM events WHERE id >= snowflake_position('counter')) AS parts;
INSERT INTO events (body) VALUES ('since');
SELECT n = (SELECT count(*) FROM events) AS agrees FROM total;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT body FROM events WHERE id >= snowflake_position('counter');
RESET enable_seqscan;

-- in a transaction that has taken an ID, up to that ID
BEGIN;
INSERT INTO events (body) VALUES ('own') RETURNING id AS own \gset
CALL snowflake_process('counter', :'count') \gset
SELECT :next_id <= :own AS is_before;
COMMIT;

-- a command that fails leaves the position
SELECT snowflake_position('counter') AS before \gset
CALL snowflake_process('counter', 'INSERT INTO counted (n) VALUES ($2 / ($1 - $1))');
SELECT snowflake_position('counter') = :before AS is_unchanged;
BEGIN;
CALL snowflake_process('counter', :'count') \gset
ROLLBACK;
SELECT snowflake_position('counter') = :before AS is_unchanged;

-- parts of a span of time; an existing consumer does not begin again; a start in the future is the horizon
INSERT INTO events (id, body) SELECT snowflake_encode('2026-01-01T00:00Z'::timestamptz + h * interval '1 hour', 5, 0), 'old' FROM generate_series(0, 9) AS h;
CALL snowflake_process('parts', :'count', start_at => '2026-01-01T00:00Z', at_most => '4 hours') \gset
SELECT snowflake_timestamp(:first_id) AT TIME ZONE 'UTC' AS from, snowflake_timestamp(:next_id) AT TIME ZONE 'UTC' AS to;
CALL snowflake_process('parts', :'count', start_at => '2026-01-01T00:00Z', at_most => '4 hours') \gset
SELECT snowflake_timestamp(:first_id) AT TIME ZONE 'UTC' AS from, snowflake_timestamp(:next_id) AT TIME ZONE 'UTC' AS to;
CALL snowflake_process('parts', :'count', at_most => '1 microsecond') \gset
SELECT :next_id > :first_id AS progresses;
CALL snowflake_process('parts', :'count', at_most => '1000 years') \gset
SELECT :next_id > (SELECT max(id) FROM events) AS ends_at_the_horizon;
SELECT n FROM counted ORDER BY calls DESC LIMIT 4;
CALL snowflake_process('tomorrow', :'count', start_at => now() + interval '1 day') \gset
SELECT :first_id = :next_id AS is_empty, snowflake_position('tomorrow') < snowflake_boundary(now() + interval '1 hour') AS is_now;

-- positions can be changed, and consumers removed
UPDATE snowflake_consumers SET next_id = 0 WHERE consumer = 'tomorrow';
CALL snowflake_process('tomorrow', :'count') \gset
SELECT n = (SELECT count(*) FROM events) AS all_again FROM counted ORDER BY calls DESC LIMIT 1;
DELETE FROM snowflake_consumers WHERE consumer = 'tomorrow';
SELECT snowflake_position('tomorrow');
SELECT snowflake_position(NULL) IS NULL AS is_null;

-- a position above the horizon, as after a restore where the clock is behind
UPDATE snowflake_consumers SET next_id = 9000000000000000000 WHERE consumer = 'parts';
\set VERBOSITY terse
CALL snowflake_process('parts', :'count');
\set VERBOSITY default

-- arguments
CALL snowflake_process(NULL, :'count');
CALL snowflake_process('c', NULL);
CALL snowflake_process('c', :'count', at_most => '0');
CALL snowflake_process('c', :'count', at_most => '1 hour');
INSERT INTO events (body) VALUES ('next');
CALL snowflake_process('counter', 'COMMIT');
CALL snowflake_process('counter', 'SELECT $3');
CALL snowflake_process('counter', 'DELETE FROM counted; DELETE FROM events WHERE id < $2') \gset
SELECT (SELECT count(*) FROM counted) AS counted, (SELECT count(*) FROM events) AS events;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL snowflake_process('c', :'count');
ROLLBACK;

-- other roles: a consumer of their own, by their own privileges, and no other
CREATE ROLE reader;
CREATE ROLE member ROLE reader;
SET ROLE reader;
\set VERBOSITY terse
CALL snowflake_process('counter', 'SELECT 1');
CALL snowflake_process('mine', :'count');
SELECT count(*) FROM snowflake_consumers;
CALL snowflake_process('mine', 'SELECT 1') \gset
SELECT consumer, owner FROM snowflake_consumers;
UPDATE snowflake_consumers SET owner = 'pg_monitor';
UPDATE snowflake_consumers SET owner = 'member';
CALL snowflake_process('mine', 'SELECT 1') \gset
UPDATE snowflake_positions SET next_id = 0;
SELECT count(*) FROM snowflake_positions;
SELECT snowflake_position('counter') > 0 AS can_read;
\set VERBOSITY default
RESET ROLE;
SET ROLE member;
CALL snowflake_process('mine', 'SELECT 1') \gset
RESET ROLE;

-- the owner is gone: a superuser gives the consumer to another role
UPDATE snowflake_consumers SET owner = 'reader' WHERE consumer = 'mine';
DROP ROLE member, reader;
SELECT consumer FROM snowflake_consumers ORDER BY consumer;
UPDATE snowflake_positions SET owner = current_user WHERE consumer = 'mine';
SELECT consumer FROM snowflake_consumers ORDER BY consumer;

DROP VIEW total;
DROP TABLE events, counted;
DELETE FROM snowflake_consumers;
