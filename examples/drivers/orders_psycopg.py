#!/usr/bin/env python3
"""Snowflake IDs with psycopg 3: RETURNING, IDs fetched ahead, COPY, a range of time.

Packages: python3-psycopg

Connects as PGHOST and so on say, to a database where the extension is created.
"""
from datetime import datetime, timedelta, timezone

import psycopg

with psycopg.connect() as connection:
    connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text NOT NULL)")

    # The ID comes back with the row.  Python's integers hold it.
    order = connection.execute("INSERT INTO orders (item) VALUES ('a lamp') RETURNING id").fetchone()[0]
    created_at, machine, sequence = connection.execute(
        "SELECT created_at, machine_id, sequence FROM snowflake_decode(%s)", [order]).fetchone()
    print(f"order {order}: made at {created_at}, by server {machine}, number {sequence} of its millisecond")
    assert abs(created_at - datetime.now(timezone.utc)) < timedelta(minutes=1)

    # IDs fetched ahead: one round trip for a thousand of them, and then COPY.
    ids = [row[0] for row in connection.execute("SELECT snowflake_nextvals(%s)", [1000])]
    assert ids == sorted(set(ids)) and ids[0] > order
    with connection.cursor().copy("COPY orders (id, item) FROM STDIN") as copy:
        for number, id in enumerate(ids):
            copy.write_row((id, f"item {number}"))

    # A range of time, by the primary key.
    count = connection.execute(
        "SELECT count(*) FROM orders WHERE snowflake_timestamp(id) >= %s", [created_at]).fetchone()[0]
    print(f"{count} orders since then")
    assert count == 1001
