-- Bulk insert with IDs generated in advance: parents and children in two statements.
--
-- A client that has the IDs of its rows before it inserts them needs no RETURNING, and can send
-- rows that refer to each other in one statement each.  snowflake_nextvals(count) returns count
-- IDs in one round trip.
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), customer text NOT NULL);
CREATE TABLE lines (
    id bigint PRIMARY KEY DEFAULT snowflake_id(),
    order_id bigint NOT NULL REFERENCES orders,
    item text NOT NULL);

-- the IDs that a client would fetch and keep
SELECT array_agg(id) AS ids FROM snowflake_nextvals(1000) AS id \gset

INSERT INTO orders (id, customer)
SELECT id, 'customer ' || n FROM unnest(:'ids'::bigint[]) WITH ORDINALITY AS ids (id, n);

INSERT INTO lines (order_id, item)
SELECT id, item FROM unnest(:'ids'::bigint[]) AS id,
    (VALUES ('a lamp'), ('a desk'), ('a chair')) AS items (item);

SELECT count(DISTINCT o.id) AS orders, count(DISTINCT l.id) AS lines
FROM orders o JOIN lines l ON l.order_id = o.id;

DO $$
BEGIN
    ASSERT (SELECT (count(DISTINCT o.id), count(DISTINCT l.id)) = (1000, 3000)
            FROM orders o JOIN lines l ON l.order_id = o.id),
        'each order has its three lines';
    ASSERT (SELECT min(l.id) FROM lines l) > (SELECT max(o.id) FROM orders o),
        'IDs of a session increase';
END
$$;
