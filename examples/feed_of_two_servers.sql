-- A feed of a table that two servers write.  The second server subscribes to the rows of the first, and inserts
-- rows of its own.  A reader on the second server reads the rows of both, and misses none.  It has
-- a position for each server, since each server has a horizon for its own IDs only.  The machine ID
-- in a row's key shows its server.
--
-- Runs on the first server (wal_level = logical, snowflake.machine_id = 1); the variable second is the connection
-- string of the other (snowflake.machine_id = 2), and first that of this one, as the second reaches it.

CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), message text NOT NULL);
CREATE PUBLICATION feed FOR TABLE messages;

\connect :second
SET statement_timeout = '1min';    -- in case the subscription does not work
CREATE EXTENSION snowflake;
CREATE EXTENSION dblink;
CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), message text NOT NULL);
CREATE SUBSCRIPTION feed CONNECTION :'first' PUBLICATION feed;
CREATE TABLE positions (machine_id integer PRIMARY KEY, next_id bigint NOT NULL DEFAULT 0);
INSERT INTO positions VALUES (1), (2);
CREATE TABLE read (number bigserial, machine_id integer, message text);

-- The rows of a server that are below its horizon
CREATE PROCEDURE read_up_to(horizon bigint, server integer) LANGUAGE plpgsql AS $$
DECLARE
    position bigint;
BEGIN
    SELECT next_id INTO position FROM positions WHERE machine_id = server FOR UPDATE;
    INSERT INTO read (machine_id, message)
    SELECT server, message FROM messages
    WHERE id >= position AND id < horizon AND snowflake_machine_id(id) = server ORDER BY id;
    UPDATE positions SET next_id = greatest(position, horizon) WHERE machine_id = server;
END
$$;

-- Of this server: the horizon, and then the rows.
CREATE PROCEDURE read_own() LANGUAGE plpgsql AS $$
DECLARE
    horizon bigint;
BEGIN
    CALL snowflake_horizon(horizon);
    CALL read_up_to(horizon, 2);
END
$$;

-- Of the first server: its horizon; then the LSN of its WAL; until the subscription has applied all before
-- that; and then the rows.
CREATE PROCEDURE read_first() LANGUAGE plpgsql AS $$
DECLARE
    horizon bigint;
    lsn pg_lsn;
BEGIN
    SELECT h INTO horizon FROM dblink('first', 'CALL snowflake_horizon(NULL)') AS (h bigint);
    SELECT l INTO lsn FROM dblink('first', 'SELECT pg_current_wal_insert_lsn()') AS (l pg_lsn);
    WHILE NOT (SELECT is_applied FROM dblink('first', format(
        'SELECT confirmed_flush_lsn >= %L FROM pg_replication_slots WHERE slot_name = %L', lsn, 'feed')) AS (is_applied boolean))
    LOOP
        PERFORM pg_sleep(0.05);
    END LOOP;
    CALL read_up_to(horizon, 1);
END
$$;
SELECT dblink_connect('first', :'first'), dblink_connect('slow', :'first');

-- until rows that are inserted now are replicated
DO $$
BEGIN
    FOR i IN 1 .. 600 LOOP
        EXIT WHEN (SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel);
        PERFORM pg_sleep(0.1);
    END LOOP;
END
$$;

-- On the first server a transaction inserts a row and does not commit yet.  Both servers insert more.
SELECT dblink_exec('slow', 'BEGIN');
SELECT dblink_exec('slow', $$INSERT INTO messages (message) VALUES ('slow')$$);
SELECT dblink_exec('first', $$INSERT INTO messages (message) VALUES ('fast')$$);
INSERT INTO messages (message) VALUES ('own');
CALL read_own();
CALL read_first();
SELECT machine_id, message FROM read ORDER BY number;

-- The row of the slow transaction is applied here after the others.
SELECT dblink_exec('slow', 'COMMIT');
INSERT INTO messages (message) VALUES ('another');
CALL read_first();
CALL read_own();
SELECT machine_id, message FROM read ORDER BY number;

DO $$
BEGIN
    ASSERT (SELECT array_agg(message ORDER BY number) FROM read WHERE machine_id = 1) = '{slow,fast}', 'all rows of the first server, in the order of their IDs';
    ASSERT (SELECT array_agg(message ORDER BY number) FROM read WHERE machine_id = 2) = '{own,another}', 'and those of this one';
END
$$;
SELECT dblink_disconnect('first'), dblink_disconnect('slow');
DROP SUBSCRIPTION feed;
