-- Two-way logical replication: both servers insert into the same table, and each has the
-- rows of both.  Keys are never equal, since the servers have different machine IDs, which they
-- lease from a registry.  Needs PostgreSQL 16, for origin = none: rows that came from the
-- other server are not sent back.
--
-- Runs on one server, whose connection string is the variable shard1; shard2 is the connection
-- string of the other (wal_level = logical on both).  Both have in postgresql.conf:
--     shared_preload_libraries = 'snowflake'
--     snowflake.registry = 'host=... dbname=registry user=...'

\connect :shard1
CREATE EXTENSION snowflake;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL);
CREATE PUBLICATION one FOR TABLE orders;
\connect :shard2
CREATE EXTENSION snowflake;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL);
CREATE PUBLICATION two FOR TABLE orders;
CREATE SUBSCRIPTION one CONNECTION :'shard1' PUBLICATION one
    WITH (origin = none, copy_data = false);
\connect :shard1
CREATE SUBSCRIPTION two CONNECTION :'shard2' PUBLICATION two
    WITH (origin = none, copy_data = false);

INSERT INTO orders (item) SELECT 'a lamp' FROM generate_series(1, 1000);
\connect :shard2
INSERT INTO orders (item) SELECT 'a desk' FROM generate_series(1, 1000);

-- until both servers have all rows
DO $$
BEGIN
    FOR i IN 1 .. 600 LOOP
        EXIT WHEN (SELECT count(*) FROM orders) = 2000;
        PERFORM pg_sleep(0.1);
    END LOOP;
END
$$;
SELECT snowflake_machine_id(id) AS machine_id, item, count(*) FROM orders GROUP BY 1, 2 ORDER BY 1;
SELECT md5(string_agg(id::text, ',' ORDER BY id)) AS ids FROM orders \gset two_
\connect :shard1
DO $$
BEGIN
    FOR i IN 1 .. 600 LOOP
        EXIT WHEN (SELECT count(*) FROM orders) = 2000;
        PERFORM pg_sleep(0.1);
    END LOOP;
    ASSERT (SELECT count(*) FROM orders) = 2000, 'both servers have all rows';
    ASSERT (SELECT count(DISTINCT snowflake_machine_id(id)) FROM orders) = 2, 'of both';
END
$$;
SELECT 1 / (md5(string_agg(id::text, ',' ORDER BY id)) = :'two_ids')::integer AS same FROM orders;

DROP SUBSCRIPTION two;
\connect :shard2
DROP SUBSCRIPTION one;
