#!/usr/bin/env python3
"""Snowflake IDs with SQLAlchemy (1.4 and 2.0): the default in the model, RETURNING, batches, and Alembic.

Packages: python3-sqlalchemy python3-alembic python3-psycopg2

Connects as PGHOST and similar variables specify, to a database with the extension.
"""
import alembic
import sqlalchemy
from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.migration import MigrationContext
from sqlalchemy import BigInteger, Column, ForeignKey, MetaData, Table, Text, create_engine, event, func, select, text
from sqlalchemy.orm import Session, declarative_base, relationship
from sqlalchemy.schema import CreateTable

print(f"SQLAlchemy {sqlalchemy.__version__}, Alembic {alembic.__version__}")

Base = declarative_base()


def snowflake_key():
    """A primary key that the server makes; SQLAlchemy asks for it by RETURNING."""
    return Column(BigInteger, primary_key=True, server_default=text("snowflake_id()"))


class Order(Base):
    __tablename__ = "orders"
    id = snowflake_key()
    customer = Column(Text, nullable=False)
    lines = relationship("Line", back_populates="order")


class Line(Base):
    __tablename__ = "lines"
    id = snowflake_key()
    order_id = Column(BigInteger, ForeignKey("orders.id"), nullable=False)
    item = Column(Text, nullable=False)
    order = relationship("Order", back_populates="lines")


engine = create_engine("postgresql+psycopg2://")


def migration(metadata, of=produce_migrations):
    """What Alembic would generate for the database, if told to compare defaults."""
    with engine.connect() as connection:
        return of(MigrationContext.configure(connection, opts={"compare_server_default": True}), metadata)


generated = render_python_code(migration(Base.metadata).upgrade_ops)
assert "sa.Column('id', sa.BigInteger(), server_default=sa.text('snowflake_id()'), nullable=False)" in generated
Base.metadata.create_all(engine)
assert migration(Base.metadata, compare_metadata) == []

with Session(engine) as session:
    order = Order(customer="Ada", lines=[Line(item="a lamp"), Line(item="a desk")])
    session.add(order)
    session.commit()
    print(f"order {order.id} with lines {[line.id for line in order.lines]}")
    assert order.id > 2**60 and all(line.id > order.id for line in order.lines)

    made_at = session.scalar(select(func.snowflake_timestamp(order.id)))
    found = session.scalars(select(Order).where(func.snowflake_timestamp(Order.id) >= made_at)).all()
    print(f"made at {made_at}")
    assert found == [order]

# A batch of objects: each gets the key of its row, and keys increase.  SQLAlchemy 2.0 inserts them one by
# one, since it trusts the order of returned rows only if their key uses a sequence.
statements = []
event.listen(engine, "after_cursor_execute", lambda *arguments: statements.append(arguments[2]))
with Session(engine) as session:
    lines = [Line(order_id=order.id, item=f"item {number}") for number in range(1000)]
    session.add_all(lines)
    session.flush()
    print(f"1000 objects: {len(statements)} INSERT")
    assert len(statements) == (1 if sqlalchemy.__version__ < "2" else 1000)
    items = dict(session.execute(select(Line.id, Line.item)).all())
    ids = [line.id for line in lines]
    assert ids == sorted(ids) and [items[id] for id in ids] == [line.item for line in lines]

    # With IDs fetched ahead, in the same transaction, they are one statement.
    ids = session.scalars(select(func.snowflake_nextvals(1000))).all()
    statements.clear()
    session.add_all([Line(id=id, order_id=order.id, item="a desk") for id in ids])
    session.flush()
    assert len(statements) == 1

    # An INSERT of many rows is one statement as well, and returns its keys in the order of the rows.
    rows = [{"order_id": order.id, "item": f"item {number}"} for number in range(1000)]
    inserted = session.execute(Line.__table__.insert().values(rows).returning(Line.id, Line.item)).all()
    assert [item for _, item in inserted] == [row["item"] for row in rows]
    assert inserted == sorted(inserted)
    session.commit()

# Exact as rows, in a relation and in an aggregate, and in JSON that the server builds: Python's integers hold IDs.
exact = [2**53 - 1, 2116681624581046272, 2**63 - 1]
with Session(engine) as session:
    session.add_all([Order(id=id, customer="exact", lines=[Line(id=id, item="exact")]) for id in exact])
    session.commit()
    orders = session.scalars(select(Order).where(Order.customer == "exact").order_by(Order.id)).all()
    assert [order.id for order in orders] == [order.lines[0].order_id for order in orders] == exact
    aggregates = select(func.array_agg(Line.order_id), func.json_agg(Line.order_id)).where(Line.item == "exact")
    assert [sorted(ids) for ids in session.execute(aggregates).one()] == [exact, exact]

# The trap: without a default in the model, the key gets a sequence.
other = Table("others", MetaData(), Column("id", BigInteger, primary_key=True))
assert "id BIGSERIAL" in str(CreateTable(other).compile(engine))

with engine.begin() as connection:
    default = connection.scalar(text(
        "SELECT column_default FROM information_schema.columns WHERE (table_name, column_name) = ('lines', 'id')"))
    assert default == "snowflake_id()", default

    # Alembic adds a default that is missing.  It evaluates two that are written differently,
    # and so two names of one generator differ: write it in the model as the table shows it.
    connection.execute(text("ALTER TABLE orders ALTER id DROP DEFAULT"))
    connection.execute(text("ALTER TABLE lines ALTER id SET DEFAULT snowflake_nextval()"))
differences = [operation[0] for operation in migration(Base.metadata, compare_metadata)]
assert [(name, table, column) for name, _, table, column, *_ in differences] == [
    ("modify_default", "lines", "id"), ("modify_default", "orders", "id")]
