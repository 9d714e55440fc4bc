#!/usr/bin/env python3
"""A poller of an outbox with psycopg 3: the horizon, NOTIFY and a timeout, and reconnecting.

Packages: python3-psycopg

Connects as PGHOST and similar variables specify, to a database with the extension.
"""
import select
import threading
import time

import psycopg

TIMEOUT = 0.2    # seconds between polls if there is no notification; a second or more elsewhere

delivered = {}
polls = 0
progress = threading.Condition()


def deliver(id, body):
    """Hand a message on.  After a failure it can be the same one again: the receiver knows it by its ID."""
    with progress:
        delivered.setdefault(id, body)
        progress.notify_all()


# docs/change-feeds.md has this function.  One poller reads at a time: others wait for the position, and then continue there.
def read_page(connection):
    """Deliver the next rows; return whether there may be more."""
    with connection.transaction():
        next_id, = connection.execute("SELECT next_id FROM positions WHERE reader = 'mail' FOR UPDATE").fetchone()
        horizon, = connection.execute("SELECT snowflake_horizon()").fetchone()
        rows = connection.execute("SELECT id, body FROM messages WHERE id >= %s AND id < %s ORDER BY id LIMIT 100", [next_id, horizon]).fetchall()
        for id, body in rows:
            deliver(id, body)
        is_full = len(rows) == 100
        new_position = rows[-1][0] + 1 if is_full else max(next_id, horizon)
        if new_position != next_id:
            connection.execute("UPDATE positions SET next_id = %s WHERE reader = 'mail'", [new_position])
    return is_full


def wait(listener, seconds):
    """Wait for a notification, but not longer than the timeout: the end of the session that holds the
    horizon back sends none."""
    select.select([listener.fileno()], [], [], seconds)
    listener.pgconn.consume_input()
    while listener.pgconn.notifies():
        pass


# A standby has no horizon: with read-write, connecting to one is an OperationalError, as for a server that is down.
def connect(**parameters):
    return psycopg.connect(autocommit=True, client_encoding="utf8", target_session_attrs="read-write", **parameters)


def poll(stop):
    """Deliver messages until stop is set, over restarts of the server and lost connections."""
    global polls
    while not stop.is_set():
        try:
            # LISTEN has a connection of its own, which executes nothing else: no notification
            # arrives with the result of another statement.
            with connect(application_name="poller") as connection, connect(application_name="poller") as listener:
                connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                listener.execute("LISTEN messages")
                while not stop.is_set():
                    while read_page(connection):
                        pass
                    with progress:
                        polls += 1
                        progress.notify_all()
                    wait(listener, TIMEOUT)
        except psycopg.OperationalError as error:
            print(f"connecting again: {str(error).splitlines()[0]}")
            time.sleep(TIMEOUT)


def wait_until(condition):
    """The rest of the example is a test of the poller, which waits for what it does."""
    with progress:
        assert progress.wait_for(condition, timeout=60), f"delivered: {list(delivered.values())}"


def was_delivered(message):
    return lambda: message in delivered.values()


def insert(connection, message):
    connection.execute("INSERT INTO messages (body) VALUES (%s)", [message])


with connect() as connection, connect() as slow:
    connection.execute("CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake_id(), body text NOT NULL)")
    connection.execute("SELECT snowflake_enable_feed('messages')")
    connection.execute("CREATE TABLE positions (reader text PRIMARY KEY, next_id bigint NOT NULL)")
    connection.execute("INSERT INTO positions VALUES ('mail', 0)")
    connection.execute("CREATE FUNCTION notify_messages() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NOTIFY messages; RETURN NULL; END'")
    connection.execute("CREATE TRIGGER notify AFTER INSERT ON messages EXECUTE FUNCTION notify_messages()")

    stop = threading.Event()
    poller = threading.Thread(target=poll, args=[stop])
    poller.start()
    try:
        insert(connection, "one")
        wait_until(was_delivered("one"))
        print("a message is delivered")

        # Another session holds the horizon back.  It rolls back, for which there is no
        # notification.
        slow.execute("BEGIN")
        insert(slow, "never committed")
        insert(connection, "two")
        polls_before = polls
        wait_until(lambda: polls >= polls_before + 3)
        assert not was_delivered("two")()
        slow.execute("ROLLBACK")
        wait_until(was_delivered("two"))
        print("a message that had to wait is delivered after the timeout")

        # The poller's connections are lost.
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'poller'")
        with connection.transaction():
            for number in range(300):
                insert(connection, f"message {number}")
        wait_until(was_delivered("message 299"))
    finally:
        stop.set()
        poller.join()

    committed = connection.execute("SELECT body FROM messages ORDER BY id").fetchall()
    assert list(delivered.values()) == [row[0] for row in committed], "all messages, in the order of their IDs"
    print(f"{len(delivered)} messages delivered")
