-- COPY: rows without an ID get one, and rows with an ID keep it.
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text NOT NULL);

COPY orders (item) FROM STDIN;
a lamp
a desk
a chair
\.

-- from another server or another table, with the existing IDs
COPY orders (id, item) FROM STDIN;
1541815603606036480	a shelf
\.

SELECT snowflake_timestamp(id) AS ordered_at, snowflake_machine_id(id) AS server, item
FROM orders ORDER BY id;

COPY (SELECT * FROM orders WHERE snowflake_timestamp(id) >= now() - interval '1 hour' ORDER BY id)
TO STDOUT;

DO $$
BEGIN
    ASSERT (SELECT array_agg(item ORDER BY id) FROM orders) = '{a shelf,a lamp,a desk,a chair}',
        'rows are in the order of time';
    ASSERT (SELECT count(*) FROM orders
            WHERE snowflake_timestamp(id) >= now() - interval '1 hour') = 3, 'three rows are new';
END
$$;
