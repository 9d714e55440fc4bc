#!/usr/bin/env python3
"""A poller of an outbox with psycopg 3: the horizon, NOTIFY and a timeout, and reconnecting.

Packages: python3-psycopg

Connects as PGHOST and similar variables specify, to a database with the extension.
"""
import select
import threading
import time

import psycopg

PAGE = 100
TIMEOUT = 0.2    # seconds between polls if there is no notification; a second or more elsewhere

delivered = {}
polls = 0
progress = threading.Condition()


def deliver(id, message):
    """Hand a message on.  After a failure it can be the same one again: the receiver knows it by its ID."""
    with progress:
        delivered.setdefault(id, message)
        progress.notify_all()


def drain(connection):
    """Deliver the next page; return whether there may be more."""
    with connection.transaction():
        # One poller at a time: others wait here, and then continue from its position.
        position = connection.execute("SELECT next_id FROM positions WHERE reader = 'mail' FOR UPDATE").fetchone()[0]
        horizon = connection.execute("CALL snowflake_horizon(NULL)").fetchone()[0]
        messages = connection.execute(
            "SELECT id, message FROM outbox WHERE id >= %s AND id < %s ORDER BY id LIMIT %s", [position, horizon, PAGE]).fetchall()
        for message in messages:
            deliver(*message)
        is_full = len(messages) == PAGE
        next_id = messages[-1][0] + 1 if is_full else max(position, horizon)
        if next_id != position:
            connection.execute("UPDATE positions SET next_id = %s WHERE reader = 'mail'", [next_id])
    return is_full


def wait(listener, seconds):
    """Wait for a notification, but not longer than the timeout: the end of the session that holds the
    horizon back sends none."""
    select.select([listener.fileno()], [], [], seconds)
    listener.pgconn.consume_input()
    while listener.pgconn.notifies():
        pass


def connect(**parameters):
    return psycopg.connect(autocommit=True, client_encoding="utf8", **parameters)


def poll(stop):
    """Deliver messages until stop is set, over restarts of the server and lost connections."""
    global polls
    while not stop.is_set():
        try:
            # LISTEN has a connection of its own, which executes nothing else: no notification
            # arrives with the result of another statement.
            with connect(application_name="poller") as connection, connect(application_name="poller") as listener:
                connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                listener.execute("LISTEN outbox")
                while not stop.is_set():
                    while drain(connection):
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
    connection.execute("INSERT INTO outbox (message) VALUES (%s)", [message])


with connect() as connection, connect() as slow:
    connection.execute("CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), message text NOT NULL)")
    connection.execute("SELECT snowflake_enable_feed('outbox')")
    connection.execute("CREATE TABLE positions (reader text PRIMARY KEY, next_id bigint NOT NULL)")
    connection.execute("INSERT INTO positions VALUES ('mail', 0)")
    connection.execute("CREATE FUNCTION notify_outbox() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NOTIFY outbox; RETURN NULL; END'")
    connection.execute("CREATE TRIGGER notify AFTER INSERT ON outbox EXECUTE FUNCTION notify_outbox()")

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
            for number in range(3 * PAGE):
                insert(connection, f"message {number}")
        wait_until(was_delivered(f"message {3 * PAGE - 1}"))
    finally:
        stop.set()
        poller.join()

    committed = connection.execute("SELECT message FROM outbox ORDER BY id").fetchall()
    assert list(delivered.values()) == [row[0] for row in committed], "all messages, in the order of their IDs"
    print(f"{len(delivered)} messages delivered")
