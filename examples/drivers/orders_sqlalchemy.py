#!/usr/bin/env python3
"""Snowflake IDs with SQLAlchemy (1.4 and 2.0): the default in the model, and RETURNING.

Packages: python3-sqlalchemy python3-psycopg2

Connects as PGHOST and so on say, to a database where the extension is created.
"""
from sqlalchemy import BigInteger, Column, ForeignKey, Text, create_engine, func, select, text
from sqlalchemy.orm import Session, declarative_base, relationship

Base = declarative_base()


def snowflake_key():
    """A primary key that the server makes; SQLAlchemy asks for it by RETURNING."""
    return Column(BigInteger, primary_key=True, server_default=text("snowflake_nextval()"))


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
Base.metadata.create_all(engine)

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

with engine.connect() as connection:
    default = connection.scalar(text(
        "SELECT column_default FROM information_schema.columns WHERE (table_name, column_name) = ('lines', 'id')"))
    assert default == "snowflake_nextval()", default
