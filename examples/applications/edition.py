"""Runs portable/snowflake.sql and snowflake_setup() with a client for Python, or loads the table items.  For edition.pl.

   python3 edition.py CLIENT FILE     prints the version of the client
   python3 edition.py psycopg         prints the ID of each row, until an error
"""
import os
import sys

CLIENT = sys.argv[1]
TEXT = open(sys.argv[2]).read() if len(sys.argv) > 2 else None
SETUP = "SELECT snowflake_setup(machine_id => 7)"
TABLE = "CREATE TABLE IF NOT EXISTS items (id bigint PRIMARY KEY DEFAULT snowflake_id(), n integer)"


def run_psycopg():
    import psycopg
    with psycopg.connect() as connection:
        connection.execute(TEXT)
        connection.execute(TEXT, prepare=True)
        connection.execute("SELECT snowflake_setup(machine_id => %s, layout => %s)", [7, "twitter"])
        connection.execute(TABLE)
    return psycopg


def run_psycopg2():
    import psycopg2
    with psycopg2.connect("") as connection, connection.cursor() as cursor:
        for statement in (TEXT, SETUP, TABLE):
            cursor.execute(statement)
    return psycopg2


def run_sqlalchemy():
    import sqlalchemy
    with sqlalchemy.create_engine("postgresql://", future=True).begin() as connection:
        connection.execute(sqlalchemy.text(TEXT))
        for statement in (SETUP, TABLE):
            connection.execute(sqlalchemy.text(statement))
    return sqlalchemy


def run_django():
    import django
    from django.conf import settings
    settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}})
    django.setup()
    from django.db import connection, migrations
    from django.db.migrations.state import ProjectState
    for statement in (TEXT, SETUP, TABLE):
        migration = type("Migration", (migrations.Migration,), {"operations": [migrations.RunSQL(statement)]})("edition", "shop")
        with connection.schema_editor(atomic=True) as editor:
            migration.apply(ProjectState(), editor)
    return django


def load():
    import psycopg
    with psycopg.connect(autocommit=True) as connection:
        while True:
            for row in connection.execute("INSERT INTO items SELECT FROM generate_series(1, 100) RETURNING id"):
                print(row[0])
            sys.stdout.flush()


if TEXT is None:
    load()
else:
    print(CLIENT, globals()["run_" + CLIENT]().__version__)
