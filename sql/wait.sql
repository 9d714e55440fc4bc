-- snowflake_wait(): what it returns and refuses.  t/041_wait.pl has what wakes it, and t/025_interrupts.pl cancels it.
\set SHOW_CONTEXT never
CREATE TABLE awaited (id bigint PRIMARY KEY DEFAULT snowflake_id());

-- the horizon has passed the ID already
INSERT INTO awaited DEFAULT VALUES RETURNING id AS id \gset
CALL snowflake_wait(0, '1 hour') \gset
SELECT :horizon > :id AS is_past, :horizon = snowflake_horizon() AS is_horizon;

-- it has not: the call ends after the timeout
CALL snowflake_wait(:horizon, '10 ms') \gset after_
CALL snowflake_wait(:horizon, '0') \gset at_once_
CALL snowflake_wait(9223372036854775807, '0.001 s') \gset last_
SELECT :after_horizon >= :horizon AS is_horizon, :at_once_horizon >= :after_horizon AS is_later, :last_horizon >= :at_once_horizon AS and_later;

-- a month has 30 days; longer than a clock can count
CALL snowflake_wait(0, '1 month -30 days') \gset
CALL snowflake_wait(0, '1 month -31 days');
CALL snowflake_wait(0, '178000000 years') \gset
CALL snowflake_wait(0, '-178000000 years');
CALL snowflake_wait(NULL, '1 s');
CALL snowflake_wait(0, NULL);

-- in a transaction, in a procedure, and in a loop of one
BEGIN;
SAVEPOINT s;
CALL snowflake_wait(0, '1 hour') \gset
RELEASE s;
SELECT count(*) FROM awaited WHERE id < :horizon;
COMMIT;
CREATE PROCEDURE follow() LANGUAGE plpgsql AS $$
DECLARE
	horizon bigint := 0;
BEGIN
	FOR i IN 1 .. 3 LOOP
		INSERT INTO awaited DEFAULT VALUES;
		COMMIT;
		CALL snowflake_wait(horizon, '1 hour', horizon);
		RAISE NOTICE '% rows', (SELECT count(*) FROM awaited WHERE id < horizon);
	END LOOP;
END
$$;
CALL follow();
DO $$ BEGIN CALL follow(); END $$;

-- in a transaction that has taken an ID
BEGIN;
INSERT INTO awaited DEFAULT VALUES RETURNING id AS own \gset
CALL snowflake_wait(:own - 1, '1 hour') \gset
SELECT :horizon = :own AS is_own;
\set VERBOSITY sqlstate
CALL snowflake_wait(:own, '10 ms');
\set VERBOSITY default
ROLLBACK;

-- where a snapshot is held
CREATE FUNCTION wait_in_function() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	horizon bigint;
BEGIN
	CALL snowflake_wait(0, '1 hour', horizon);
	RETURN horizon;
END
$$;
SELECT wait_in_function();
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM awaited;
CALL snowflake_wait(0, '1 hour');
ROLLBACK;
DO $$
DECLARE
	horizon bigint;
	row record;
BEGIN
	FOR row IN SELECT FROM awaited LOOP
		CALL snowflake_wait(0, '1 hour', horizon);
	END LOOP;
END
$$;
BEGIN;
CALL follow();
ROLLBACK;
-- a handler of errors continues in its statement
DO $$
DECLARE
	horizon bigint;
BEGIN
	CALL snowflake_wait(0, '-1 s', horizon);
EXCEPTION WHEN invalid_parameter_value THEN
	RAISE NOTICE '% rows', (SELECT count(*) FROM awaited WHERE id < snowflake_horizon());
END
$$;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL snowflake_wait(0, '1 hour');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
CALL snowflake_wait(0, '1 hour');
ROLLBACK;

DROP PROCEDURE follow();
DROP FUNCTION wait_in_function();
DROP TABLE awaited;
