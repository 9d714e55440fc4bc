-- A transactional outbox: a transaction inserts messages about its changes, and pollers deliver
-- them in the order of their IDs.  The reader "mail" has one position, and so one poller at a time.
-- The reader "audit" is divided into four parts, each with a position, so that several pollers work
-- at once; the messages of a customer are in one part, and so keep their order.
--
-- The other sessions are of dblink, which connects with the connection string in the variable
-- first.

CREATE EXTENSION dblink;
CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT snowflake_id(), customer bigint NOT NULL,
    message text NOT NULL);

-- An ID that was not issued by the transaction that inserts it is waited for, or refused.
SELECT snowflake_enable_feed('outbox');

-- The positions, in the same database as the messages: all messages below next_id were delivered.
CREATE TABLE positions (
    reader text,
    part integer DEFAULT 0,
    parts integer NOT NULL DEFAULT 1,
    next_id bigint NOT NULL DEFAULT 0,
    polled_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (reader, part));
INSERT INTO positions (reader) VALUES ('mail');
INSERT INTO positions (reader, part, parts)
SELECT 'audit', part, 4 FROM generate_series(0, 3) AS part;

-- The next messages of a reader, of the part that was not polled for the longest time and that no
-- other poller has locked.  The lock is held until the transaction ends: deliver the messages
-- before it commits.  If the poller fails, the position stays as it was, and the messages are
-- delivered again.
--
-- The position is the horizon, rather than the last ID, so that a part without messages advances as
-- well.  The horizon comes before the statement that reads: in a VOLATILE function of PL/pgSQL each
-- statement has a snapshot of its own.
CREATE FUNCTION next_messages(reader_name text, page_size integer)
RETURNS SETOF outbox LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    place positions;
    horizon bigint;
    next_message outbox;
    count integer := 0;
BEGIN
    SELECT * INTO place FROM positions
    WHERE reader = reader_name ORDER BY polled_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;     -- other pollers have them all
    END IF;
    horizon := snowflake_horizon();
    FOR next_message IN
        SELECT * FROM outbox
        WHERE id >= place.next_id AND id < horizon AND customer % place.parts = place.part
        ORDER BY id LIMIT page_size
    LOOP
        RETURN NEXT next_message;
        count := count + 1;
    END LOOP;

    -- A full page ends at its last message.
    UPDATE positions
    SET next_id = CASE WHEN count = page_size THEN next_message.id + 1
            ELSE greatest(place.next_id, horizon) END,
        polled_at = clock_timestamp()
    WHERE reader = place.reader AND part = place.part;
END
$$;

-- In place of a delivery
CREATE TABLE delivered (number bigserial, reader text, poller text, id bigint, customer bigint,
    message text);

-- Transactions insert messages.  One is slow: others that begin later commit before it.
SELECT dblink_connect('slow', :'first'), dblink_connect('poller', :'first');
SELECT dblink_exec('slow', 'BEGIN');
SELECT dblink_exec('slow',
    $$INSERT INTO outbox (customer, message) VALUES (1, 'customer 1 was added')$$);
INSERT INTO outbox (customer, message)
SELECT n % 10, 'order ' || n FROM generate_series(1, 1000) AS n;

-- One poller.  While the slow transaction is open, the messages behind it wait.
INSERT INTO delivered (reader, poller, id, customer, message)
SELECT 'mail', 'one', * FROM next_messages('mail', 100);
SELECT count(*) AS delivered FROM delivered;
SELECT dblink_exec('slow', 'COMMIT');

-- Then all are delivered, by pages.
CREATE PROCEDURE drain(reader_name text, poller_name text) LANGUAGE plpgsql AS $$
DECLARE
    pages integer;
    idle integer := 0;
BEGIN
    SELECT max(parts) INTO pages FROM positions WHERE reader = reader_name;
    WHILE idle < pages LOOP
        INSERT INTO delivered (reader, poller, id, customer, message)
            SELECT reader_name, poller_name, * FROM next_messages(reader_name, 100);
        idle := CASE WHEN FOUND THEN 0 ELSE idle + 1 END;
        COMMIT;
    END LOOP;
END
$$;
CALL drain('mail', 'one');
SELECT (array_agg(message ORDER BY number))[:3] AS first, count(*) FROM delivered
WHERE reader = 'mail';

-- Several pollers.  While one has a part, others have other parts.
BEGIN;
INSERT INTO delivered (reader, poller, id, customer, message)
SELECT 'audit', 'one', * FROM next_messages('audit', 1000);
SELECT dblink_exec('poller', $$CALL drain('audit', 'two')$$);
SELECT poller, array_agg(DISTINCT customer % 4) AS parts, count(*) FROM delivered
WHERE reader = 'audit' GROUP BY poller ORDER BY poller;
COMMIT;

-- A poller that fails leaves the position, and another one delivers the messages.
INSERT INTO outbox (customer, message) VALUES (1, 'customer 1 was removed');
BEGIN;
SELECT message FROM next_messages('mail', 100);
ROLLBACK;
CALL drain('mail', 'another');
CALL drain('audit', 'another');

DO $$
DECLARE
    reader_name text;
BEGIN
    FOREACH reader_name IN ARRAY '{mail,audit}'::text[] LOOP
        ASSERT (SELECT array_agg(id ORDER BY id) FROM delivered WHERE reader = reader_name)
            = (SELECT array_agg(id ORDER BY id) FROM outbox),
            reader_name || ': each message is delivered once';
        ASSERT NOT EXISTS (
            SELECT FROM (SELECT id > lag(id) OVER (PARTITION BY customer ORDER BY number) AS later
                    FROM delivered WHERE reader = reader_name) AS steps
            WHERE NOT later),
            reader_name || ': the messages of a customer are in their order';
    END LOOP;
    ASSERT (SELECT count(DISTINCT customer % 4) FROM delivered
            WHERE poller = 'one' AND reader = 'audit') = 1, 'a poller has one part at a time';
    ASSERT (SELECT count(DISTINCT customer % 4) FROM delivered WHERE poller = 'two') = 3,
        'and the other poller the others';
END
$$;

-- Messages that all readers have received can be deleted.
DELETE FROM outbox WHERE id < (SELECT min(next_id) FROM positions);
SELECT count(*) AS messages FROM outbox;
SELECT dblink_disconnect('slow'), dblink_disconnect('poller');
