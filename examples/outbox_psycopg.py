#!/usr/bin/env python3
"""A poller of an outbox with psycopg 3: the view of new rows, snowflake_wait(), and reconnecting.

Packages: python3-psycopg

Connects as PGHOST and similar variables specify, to a database with the extension.
"""
import threading
import time

import psycopg

delivered = {}
progress = threading.Condition()


def deliver(id, body):
    """Hand a message on.  After a failure it can be the same one again: the receiver knows it by its ID."""
    with progress:
        delivered.setdefault(id, body)
        progress.notify_all()


# docs/change-feeds.md has these functions.  One poller reads at a time: others wait for the position, and then continue there.
def deliver_page(connection):
    """Deliver the next messages; return how many there were."""
    with connection.transaction():
        last_id, = connection.execute("SELECT last_id FROM positions WHERE reader = 'mail' FOR UPDATE").fetchone()
        page = connection.execute("SELECT id, body FROM new_messages WHERE id > %s ORDER BY id LIMIT 100", [last_id]).fetchall()
        for id, body in page:
            deliver(id, body)
        if page:
            connection.execute("UPDATE positions SET last_id = %s WHERE reader = 'mail'", [page[-1][0]])
    return len(page)


def poll(connection, stop):
    horizon = 0
    while not stop.is_set():
        if deliver_page(connection) == 0:
            horizon, = connection.execute("CALL snowflake_wait(%s, '30 s')", [horizon]).fetchone()


# A standby has no horizon: with read-write, connecting to one is an OperationalError, as for a server that is down.
def connect(**parameters):
    return psycopg.connect(autocommit=True, client_encoding="utf8", target_session_attrs="read-write", **parameters)


def poll_forever(stop):
    """Deliver messages until stop is set, over restarts of the server and lost connections."""
    while not stop.is_set():
        try:
            with connect(application_name="poller") as connection:
                connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                poll(connection, stop)
        except psycopg.OperationalError as error:
            print(f"connecting again: {str(error).splitlines()[0]}")
            time.sleep(0.2)


def wait_until_delivered(message):
    """The rest of the example is a test of the poller, which waits for what it does."""
    with progress:
        assert progress.wait_for(lambda: message in delivered.values(), timeout=60), f"delivered: {list(delivered.values())}"


def insert(connection, message):
    connection.execute("INSERT INTO messages (body) VALUES (%s)", [message])


with connect() as connection, connect() as slow:
    connection.execute("CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake_id(), body text NOT NULL)")
    connection.execute("SELECT snowflake_enable_feed('messages', view => 'new_messages')")
    connection.execute("CREATE TABLE positions (reader text PRIMARY KEY, last_id bigint NOT NULL)")
    connection.execute("INSERT INTO positions VALUES ('mail', 0)")

    stop = threading.Event()
    poller = threading.Thread(target=poll_forever, args=[stop])
    poller.start()
    try:
        insert(connection, "one")
        wait_until_delivered("one")
        print("a message is delivered")

        # Another session holds the horizon back.  Its end wakes the poller, although it rolls back.
        slow.execute("BEGIN")
        insert(slow, "never committed")
        insert(connection, "two")
        rows, = connection.execute("SELECT count(*) FROM new_messages WHERE body = 'two'").fetchone()
        assert rows == 0 and "two" not in delivered.values()
        slow.execute("ROLLBACK")
        wait_until_delivered("two")
        print("a message that had to wait is delivered when the transaction before it ends")

        # The poller's connection is lost.
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'poller'")
        with connection.transaction():
            for number in range(300):
                insert(connection, f"message {number}")
        wait_until_delivered("message 299")
    finally:
        stop.set()
        connection.execute("SELECT snowflake_id()")    # wakes the poller
        poller.join()

    committed = connection.execute("SELECT body FROM messages ORDER BY id").fetchall()
    assert list(delivered.values()) == [row[0] for row in committed], "all messages, in the order of their IDs"
    print(f"{len(delivered)} messages delivered")
