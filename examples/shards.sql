-- Hash shards: a coordinator, and two servers that it reaches by postgres_fdw.  All three
-- lease their machine IDs from one registry, a database next to the coordinator's, so that no
-- machine ID has to be configured, and orders can be inserted on any of them.
--
-- Runs on the coordinator, whose connection string is the variable coordinator; shard1 and shard2
-- are the connection strings of the others.  All have in postgresql.conf, with the address of the
-- coordinator:
--     shared_preload_libraries = 'snowflake'
--     snowflake.registry = 'host=... dbname=registry user=...'

CREATE EXTENSION postgres_fdw;
CREATE TABLE orders (id bigint NOT NULL DEFAULT snowflake_id(), customer integer NOT NULL,
    item text)
    PARTITION BY HASH (customer);

-- a table on each shard
\connect :shard1
CREATE EXTENSION snowflake;
CREATE TABLE orders_0 (id bigint PRIMARY KEY DEFAULT snowflake_id(), customer integer NOT NULL,
    item text);
SELECT current_setting('unix_socket_directories') AS host,
    current_setting('port') AS port \gset shard1_
\connect :shard2
CREATE EXTENSION snowflake;
CREATE TABLE orders_1 (id bigint PRIMARY KEY DEFAULT snowflake_id(), customer integer NOT NULL,
    item text);
SELECT current_setting('unix_socket_directories') AS host,
    current_setting('port') AS port \gset shard2_

-- these tables are partitions on the coordinator
\connect :coordinator
CREATE SERVER shard1 FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host :'shard1_host', port :'shard1_port', dbname 'shards');
CREATE SERVER shard2 FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host :'shard2_host', port :'shard2_port', dbname 'shards');
CREATE USER MAPPING FOR CURRENT_USER SERVER shard1;
CREATE USER MAPPING FOR CURRENT_USER SERVER shard2;
CREATE FOREIGN TABLE orders_0 PARTITION OF orders
    FOR VALUES WITH (MODULUS 2, REMAINDER 0) SERVER shard1;
CREATE FOREIGN TABLE orders_1 PARTITION OF orders
    FOR VALUES WITH (MODULUS 2, REMAINDER 1) SERVER shard2;

-- Orders that are inserted on the coordinator have its machine ID, wherever they are stored.
INSERT INTO orders (customer, item) SELECT n, 'a lamp' FROM generate_series(1, 1000) n;

-- Orders that are inserted on a shard have the shard's machine ID.
\connect :shard1
INSERT INTO orders_0 (customer, item) SELECT customer, 'a desk' FROM orders_0;
\connect :shard2
INSERT INTO orders_1 (customer, item) SELECT customer, 'a desk' FROM orders_1;

\connect :coordinator
SELECT tableoid::regclass AS shard, snowflake_machine_id(id) AS machine_id, item, count(*)
FROM orders GROUP BY 1, 2, 3 ORDER BY 1, 3 DESC;
\connect "dbname=registry"
SELECT machine_id, holder, state FROM snowflake_registry.machines;
\connect :coordinator

DO $$
BEGIN
    ASSERT (SELECT count(DISTINCT id) FROM orders) = 2000, 'each order has an ID of its own';
    ASSERT (SELECT count(DISTINCT snowflake_machine_id(id)) FROM orders) = 3,
        'of the three servers';
END
$$;
