-- Logical replication of a table keyed by Snowflake IDs.  The subscriber has another
-- machine ID, so both servers can insert: their IDs are never equal, and rows keep theirs.
--
-- Runs on the server that publishes (wal_level = logical, snowflake.machine_id = 1); the variable
-- second is the connection string of the server that subscribes (snowflake.machine_id = 2), and
-- first that of this one, as the second reaches it.

CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL);
INSERT INTO orders (item) VALUES ('a lamp');
CREATE PUBLICATION shop FOR TABLE orders;

\connect :second
CREATE EXTENSION snowflake;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL);
CREATE SUBSCRIPTION shop CONNECTION :'first' PUBLICATION shop;
INSERT INTO orders (item) VALUES ('a desk');

\connect :first
INSERT INTO orders (item) VALUES ('a chair');

-- until the subscriber has the rows that existed before, and those inserted since
\connect :second
DO $$
BEGIN
    FOR i IN 1 .. 600 LOOP
        EXIT WHEN (SELECT count(*) FROM orders) = 3;
        PERFORM pg_sleep(0.1);
    END LOOP;
END
$$;
SELECT snowflake_timestamp(id) AS ordered_at, snowflake_machine_id(id) AS server, item
FROM orders ORDER BY id;

DO $$
BEGIN
    ASSERT (SELECT array_agg(snowflake_machine_id(id) || ' ' || item ORDER BY item) FROM orders)
        = '{1 a chair,2 a desk,1 a lamp}',
        'each row has the number of the server where it was made';
END
$$;
DROP SUBSCRIPTION shop;
