#!/usr/bin/env python3
"""Snowflake IDs with psycopg 3: RETURNING, batches, IDs fetched ahead, COPY, a range of time; and sno.

Packages: python3-psycopg

Connects as PGHOST and similar variables specify, to a database with the extension.
"""
from datetime import datetime, timedelta, timezone

import psycopg
from psycopg.types import TypeInfo

print(f"psycopg {psycopg.__version__}")
with psycopg.connect(client_encoding="utf8") as connection:
    connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL)")

    # The ID comes back with the row.  Python's integers hold it.
    order = connection.execute("INSERT INTO orders (item) VALUES ('a lamp') RETURNING id").fetchone()[0]
    created_at, machine, sequence = connection.execute(
        "SELECT created_at, machine_id, sequence FROM snowflake_decode(%s)", [order]).fetchone()
    print(f"order {order}: made at {created_at}, by server {machine}, number {sequence} of its millisecond")
    assert abs(created_at - datetime.now(timezone.utc)) < timedelta(minutes=1)

    # A batch has a result for each row; nextset() moves to the next one.
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO orders (item) VALUES (%s) RETURNING id", [("a desk",), ("a chair",)], returning=True)
    batch = [cursor.fetchone()[0]]
    assert cursor.fetchone() is None
    while cursor.nextset():
        batch.append(cursor.fetchone()[0])
    assert len(batch) == 2 and order < batch[0] < batch[1]

    # A list of IDs is an array of bigint.
    items = connection.execute("SELECT item FROM orders WHERE id = ANY (%s) ORDER BY id", [batch]).fetchall()
    assert items == [("a desk",), ("a chair",)]

    # IDs fetched ahead: one round trip for a thousand of them, and then COPY.
    ids = [row[0] for row in connection.execute("SELECT snowflake_nextvals(%s)", [1000])]
    assert ids == sorted(set(ids)) and ids[0] > batch[1]
    with connection.cursor().copy("COPY orders (id, item) FROM STDIN") as copy:
        for number, id in enumerate(ids):
            copy.write_row((id, f"item {number}"))

    # A range of time, by the primary key.
    count = connection.execute(
        "SELECT count(*) FROM orders WHERE snowflake_timestamp(id) >= %s", [created_at]).fetchone()[0]
    print(f"{count} orders since then")
    assert count == 1003

    # Exact as rows, in a relation and in an aggregate, and in JSON that the server builds: Python's integers hold IDs.
    exact = [2**53 - 1, 2116681624581046272, 2**63 - 1]
    connection.execute("INSERT INTO orders SELECT *, 'exact' FROM unnest(%s::bigint[])", [exact])
    connection.execute("CREATE TABLE lines AS SELECT id AS order_id FROM orders WHERE item = 'exact'")
    for query in ("SELECT id FROM orders WHERE item = 'exact' ORDER BY id", "SELECT id FROM orders JOIN lines ON order_id = id ORDER BY id",
                  "SELECT max(order_id) FROM lines GROUP BY order_id ORDER BY 1"):
        assert connection.execute(query).fetchall() == [(id,) for id in exact], query
    aggregates = "SELECT array_agg(order_id ORDER BY order_id), json_agg(order_id ORDER BY order_id) FROM lines"
    assert connection.execute(aggregates).fetchone() == (exact, exact)

    # A sno is returned as a string, and a string is accepted where a sno is expected.
    connection.execute("CREATE TABLE events (id sno PRIMARY KEY DEFAULT sno_nextval(7), name text)")
    event = connection.execute("INSERT INTO events (name) VALUES ('started') RETURNING id").fetchone()[0]
    print(f"event {event}")
    assert isinstance(event, str) and len(event) == 16
    assert connection.execute("SELECT name FROM events WHERE id = %s", [event]).fetchone() == ("started",)
    assert connection.execute("SELECT sno_metabyte(%s)", [event]).fetchone() == (7,)

    # Elsewhere a parameter without a cast is text.
    type_of = "SELECT pg_typeof(id)::text FROM (SELECT {} AS id) AS given"
    assert connection.execute(type_of.format("%s"), [event]).fetchone() == ("text",)
    assert connection.execute(type_of.format("%s::sno"), [event]).fetchone() == ("sno",)

    # An array is returned as one string, unless its type is registered; a list of strings is passed as an array.
    assert connection.execute("SELECT array_agg(id) FROM events").fetchone() == ("{" + event + "}",)
    TypeInfo.fetch(connection, "sno").register(connection)
    assert connection.execute("SELECT array_agg(id) FROM events").fetchone() == ([event],)
    assert connection.execute("SELECT name FROM events WHERE id = ANY (%s::sno[])", [[event]]).fetchone() == ("started",)

    # A cursor that reads binary returns ten bytes, which two casts turn into a sno.
    binary = connection.cursor(binary=True).execute("SELECT id FROM events").fetchone()[0]
    assert isinstance(binary, bytes) and len(binary) == 10
    assert connection.execute("SELECT %s::bytea::sno", [binary]).fetchone() == (event,)
