-- snowflake_process(): the rows that a consumer gets, the privileges that it needs, and its errors.
-- specs/process_waits.spec has two callers at once, and t/032_process.pl crashes, dumps and standbys.
\set SHOW_CONTEXT never
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text);
CREATE TABLE consumers (consumer text PRIMARY KEY, next_id bigint NOT NULL);
CREATE TABLE counted (calls serial, n bigint, first_id bigint, next_id bigint);
\set count 'INSERT INTO counted (n, first_id, next_id) SELECT count(*), $1, $2 FROM events WHERE id >= $1 AND id < $2'

-- every row once, from the first one on
INSERT INTO events (body) SELECT 'early' FROM generate_series(1, 3);
CALL snowflake_process('consumers', 'counter', :'count') \gset
SELECT :first_id AS first_id, :next_id > (SELECT max(id) FROM events) AS is_past;
SELECT (SELECT next_id FROM consumers WHERE consumer = 'counter') = :next_id AS is_stored;
INSERT INTO events (body) SELECT 'later' FROM generate_series(1, 2);
CALL snowflake_process('consumers', 'counter', :'count') \gset later_
SELECT :later_first_id = :next_id AS continues;
SELECT n, first_id = 0 AS from_the_first, next_id <= (SELECT next_id FROM consumers WHERE consumer = 'counter') AS before_the_end FROM counted ORDER BY calls;
-- the position is a condition on the key, even in a view
CREATE VIEW total AS SELECT sum(n) AS n FROM (SELECT sum(n) AS n FROM counted UNION ALL SELECT count(*) FROM events WHERE id >= (SELECT next_id FROM consumers WHERE consumer = 'counter')) AS parts;
INSERT INTO events (body) VALUES ('since');
SELECT n = (SELECT count(*) FROM events) AS agrees FROM total;
SET enable_seqscan = off;
DO $$
DECLARE
	line text;
BEGIN
	FOR line IN EXPLAIN SELECT body FROM events WHERE id >= (SELECT next_id FROM consumers WHERE consumer = 'counter') LOOP
		IF line LIKE '%Index Cond: (id >= %' THEN
			RAISE NOTICE 'the key is used';
		END IF;
	END LOOP;
END
$$;
RESET enable_seqscan;

-- in a transaction that has taken an ID, up to that ID
BEGIN;
INSERT INTO events (body) VALUES ('own') RETURNING id AS own \gset
CALL snowflake_process('consumers', 'counter', :'count') \gset
SELECT :next_id <= :own AS is_before;
COMMIT;

-- a command that fails leaves the position
SELECT (SELECT next_id FROM consumers WHERE consumer = 'counter') AS before \gset
CALL snowflake_process('consumers', 'counter', 'INSERT INTO counted (n) VALUES ($2 / ($1 - $1))');
SELECT (SELECT next_id FROM consumers WHERE consumer = 'counter') = :before AS is_unchanged;
BEGIN;
CALL snowflake_process('consumers', 'counter', :'count') \gset
ROLLBACK;
SELECT (SELECT next_id FROM consumers WHERE consumer = 'counter') = :before AS is_unchanged;

-- parts of a span of time; an existing consumer does not begin again; a start in the future is the horizon
INSERT INTO events (id, body) SELECT snowflake_encode('2026-01-01T00:00Z'::timestamptz + h * interval '1 hour', 5, 0), 'old' FROM generate_series(0, 9) AS h;
CALL snowflake_process('consumers', 'parts', :'count', start_at => '2026-01-01T00:00Z', at_most => '4 hours') \gset
SELECT snowflake_timestamp(:first_id) AT TIME ZONE 'UTC' AS from, snowflake_timestamp(:next_id) AT TIME ZONE 'UTC' AS to;
CALL snowflake_process('consumers', 'parts', :'count', start_at => '2026-01-01T00:00Z', at_most => '4 hours') \gset
SELECT snowflake_timestamp(:first_id) AT TIME ZONE 'UTC' AS from, snowflake_timestamp(:next_id) AT TIME ZONE 'UTC' AS to;
CALL snowflake_process('consumers', 'parts', :'count', at_most => '1 microsecond') \gset
SELECT :next_id > :first_id AS progresses;
CALL snowflake_process('consumers', 'parts', :'count', at_most => '1000 years') \gset
SELECT :next_id > (SELECT max(id) FROM events) AS ends_at_the_horizon;
SELECT n FROM counted ORDER BY calls DESC LIMIT 4;
SET client_min_messages = warning;
CALL snowflake_process('consumers', 'tomorrow', :'count', start_at => now() + interval '1 day') \gset
SELECT :first_id = :next_id AS is_empty, (SELECT next_id FROM consumers WHERE consumer = 'tomorrow') < snowflake_boundary(now() + interval '1 hour') AS is_now;
RESET client_min_messages;

-- positions can be changed, and consumers removed
UPDATE consumers SET next_id = 0 WHERE consumer = 'tomorrow';
CALL snowflake_process('consumers', 'tomorrow', :'count') \gset
SELECT n = (SELECT count(*) FROM events) AS all_again FROM counted ORDER BY calls DESC LIMIT 1;
DELETE FROM consumers WHERE consumer = 'tomorrow';

-- a position above the horizon, for example after a restore where the clock is behind
UPDATE consumers SET next_id = 9000000000000000000 WHERE consumer = 'parts';
\set VERBOSITY terse
CALL snowflake_process('consumers', 'parts', :'count');
\set VERBOSITY default

-- arguments
CALL snowflake_process('consumers', NULL, :'count');
CALL snowflake_process('consumers', 'c', NULL);
CALL snowflake_process('consumers', 'c', :'count', at_most => '0');
CALL snowflake_process('consumers', 'c', :'count', at_most => '1 hour');
-- a command without a statement; a comment in a string, and one beside a statement
CALL snowflake_process('consumers', 'c', '');
\echo :SQLSTATE
CALL snowflake_process('consumers', 'c', E' ;\n-- SELECT 1\r\n/* SELECT 2; **/ /**/;--');
SELECT count(*) FROM consumers WHERE consumer = 'c';
CALL snowflake_process('consumers', 'c', $$/* text */ SELECT '/* text */' -- text$$) \gset
DELETE FROM consumers WHERE consumer = 'c';
INSERT INTO events (body) VALUES ('next');
CALL snowflake_process('consumers', 'counter', 'COMMIT');
CALL snowflake_process('consumers', 'counter', 'SELECT $3');
CALL snowflake_process('consumers', 'counter', 'DELETE FROM counted; DELETE FROM events WHERE id < $2') \gset
SELECT (SELECT count(*) FROM counted) AS counted, (SELECT count(*) FROM events) AS events;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL snowflake_process('consumers', 'c', :'count');
ROLLBACK;

-- other roles, by the privileges of the table
CREATE ROLE reader;
SET ROLE reader;
CALL snowflake_process('consumers', 'counter', 'SELECT 1');
RESET ROLE;
GRANT SELECT, INSERT, UPDATE ON consumers TO reader;
SET ROLE reader;
CALL snowflake_process('consumers', 'mine', :'count');
CALL snowflake_process('consumers', 'mine', 'SELECT 1') \gset
RESET ROLE;
SELECT consumer FROM consumers ORDER BY consumer;
ALTER TABLE consumers ENABLE ROW LEVEL SECURITY;
SET ROLE reader;
CALL snowflake_process('consumers', 'mine', 'SELECT 1');
RESET ROLE;
DROP OWNED BY reader;
DROP ROLE reader;

-- other tables
CREATE TABLE "other consumers" (consumer text, next_id bigint);
CALL snowflake_process('"other consumers"', 'c', 'SELECT 1');
CALL snowflake_process('counted', 'c', 'SELECT 1');
ALTER TABLE "other consumers" ADD UNIQUE (consumer);
CALL snowflake_process('"other consumers"', 'c', 'SELECT 1') \gset
SELECT count(*) FROM "other consumers" WHERE next_id = :next_id;
UPDATE "other consumers" SET next_id = NULL;
CALL snowflake_process('"other consumers"', 'c', 'SELECT 1');

-- a position that is not stored: a trigger that discards the row or changes it, and a command that removes it
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' AND NEW.consumer = 'changed' THEN
		NEW.next_id := OLD.next_id;
		RETURN NEW;
	END IF;
	RETURN NULL;
END
$$;
CREATE TABLE results (n bigint);
DELETE FROM consumers;
INSERT INTO consumers VALUES ('discarded', 1), ('changed', 1), ('removed', 1);
CREATE TRIGGER change BEFORE INSERT OR UPDATE ON consumers FOR EACH ROW EXECUTE FUNCTION change();
\set VERBOSITY terse
CALL snowflake_process('consumers', 'discarded', 'INSERT INTO results VALUES (1)');
\echo :SQLSTATE
CALL snowflake_process('consumers', 'changed', 'INSERT INTO results VALUES (1)');
CALL snowflake_process('consumers', 'new', 'INSERT INTO results VALUES (1)');
\echo :SQLSTATE
CALL snowflake_process('consumers', 'new', 'INSERT INTO results VALUES (1)', wait => false);
ALTER TABLE consumers DISABLE TRIGGER change;
CALL snowflake_process('consumers', 'removed', 'DELETE FROM consumers');
\set VERBOSITY default
SELECT count(*) FROM results;
SELECT * FROM consumers ORDER BY consumer;

-- snowflake_wait_for_consumer(): returns the position, above the ID or not
INSERT INTO consumers VALUES ('reader', 100);
CALL snowflake_wait_for_consumer('consumers', 'reader', 99, '1 day');
CALL snowflake_wait_for_consumer('consumers', 'reader', 100, '0');
CALL snowflake_wait_for_consumer('consumers', 'reader', 100, '25 ms');
CALL snowflake_wait_for_consumer('consumers', 'absent', 99, '0');
\echo :SQLSTATE
CALL snowflake_wait_for_consumer('"other consumers"', 'c', 99, '0');
CALL snowflake_wait_for_consumer('consumers', 'reader', 99, '-1 ms');
\echo :SQLSTATE
\set VERBOSITY sqlstate
CALL snowflake_wait_for_consumer(NULL, 'reader', 99, '0');
CALL snowflake_wait_for_consumer('consumers', NULL, 99, '0');
CALL snowflake_wait_for_consumer('consumers', 'reader', NULL, '0');
CALL snowflake_wait_for_consumer('consumers', 'reader', 99, NULL);
CALL snowflake_wait_for_consumer('counted', 'reader', 99, '0');
\set VERBOSITY default
-- it can be cancelled
SET statement_timeout = '200 ms';
CALL snowflake_wait_for_consumer('consumers', 'reader', 100, '1 day');
RESET statement_timeout;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL snowflake_wait_for_consumer('consumers', 'reader', 99, '0');
ROLLBACK;
-- a transaction that has taken the ID or an earlier one, also as another role; it can wait for IDs before its own
CREATE ROLE reader;
GRANT SELECT ON consumers TO reader;
CREATE POLICY all_rows ON consumers USING (true);
SET client_min_messages = warning;
DELETE FROM consumers WHERE consumer = 'reader';
INSERT INTO events (body) VALUES ('before') RETURNING id AS before \gset
CALL snowflake_process('consumers', 'reader', 'SELECT 1') \gset
RESET client_min_messages;
\set VERBOSITY terse
BEGIN;
INSERT INTO events (body) VALUES ('own') RETURNING id AS own \gset
SET LOCAL ROLE reader;
CALL snowflake_wait_for_consumer('consumers', 'reader', :before, '1 day') \gset
SELECT :next_id > :before AS is_processed;
CALL snowflake_wait_for_consumer('consumers', 'reader', :own - 1, '0') \gset
SELECT :next_id <= :own AS is_before;
\set VERBOSITY sqlstate
SAVEPOINT a;
CALL snowflake_wait_for_consumer('consumers', 'reader', :own, '0');
ROLLBACK TO a;
CALL snowflake_wait_for_consumer('consumers', 'reader', :own + 1, '0');
ROLLBACK;
-- policies of the reader
DROP POLICY all_rows ON consumers;
SET ROLE reader;
CALL snowflake_wait_for_consumer('consumers', 'reader', :before, '0');
RESET ROLE;
\set VERBOSITY default
DROP OWNED BY reader;
DROP ROLE reader;

DROP VIEW total;
DROP FUNCTION change CASCADE;
DROP TABLE results;
DROP TABLE events, counted, consumers, "other consumers";
