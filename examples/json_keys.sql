-- IDs in JSON that the server builds: as numbers, which JSON.parse() of JavaScript rounds, and as
-- strings.
--
-- A number in JavaScript holds 53 bits.  JSON.parse() makes 9223372036854776000 of the largest ID,
-- and 2116681624581046300 of an ID with which a tick begins.

CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text);
CREATE TABLE lines (id bigint PRIMARY KEY DEFAULT snowflake_id(),
    order_id bigint REFERENCES orders);
INSERT INTO orders VALUES (9223372036854775807, 'the largest'),
    (2116681624581046272, 'the first of a tick');
INSERT INTO lines SELECT id, id FROM orders;

-- Each function writes a bigint as a number.
SELECT json_agg(id) AS json_agg, to_jsonb(max(id)) AS to_jsonb FROM orders;
SELECT row_to_json(orders) FROM orders ORDER BY id;

-- The statement of PostgREST for GET /orders: numbers.
SELECT coalesce(json_agg(_postgrest_t), '[]') FROM (SELECT orders.* FROM orders) AS _postgrest_t;

-- A cast in the query, as in GET /orders?select=id::text,item
SELECT coalesce(json_agg(_postgrest_t), '[]')
FROM (SELECT id::text, item FROM orders) AS _postgrest_t;

-- A schema for an API, with views whose keys are text.  Relations of views are found by the
-- columns.
CREATE SCHEMA api;
CREATE VIEW api.orders AS SELECT snowflake_to_base32(id) COLLATE "C" AS id, item FROM orders;
CREATE VIEW api.lines AS
    SELECT snowflake_to_base32(id) AS id, snowflake_to_base32(order_id) AS order_id FROM lines;
SELECT json_agg(row_to_json(orders)) FROM api.orders WHERE id = '7zzzzzzzzzzzz';

-- A generated column: 13 bytes per row, and an index of its own if it is looked up.
ALTER TABLE orders ADD COLUMN text_id text COLLATE "C"
    GENERATED ALWAYS AS (snowflake_to_base32(id)) STORED UNIQUE;
SELECT json_build_object('id', text_id, 'item', item) FROM orders ORDER BY id;

-- Keys of type sno are strings in JSON, in every function.
CREATE TABLE events (id sno PRIMARY KEY DEFAULT sno_nextval(), name text);
INSERT INTO events (name) VALUES ('started');
SELECT json_typeof(row_to_json(events) -> 'id') AS sno_in_json FROM events;

DO $$
BEGIN
    ASSERT (SELECT json_agg(id ORDER BY id)::text = '[2116681624581046272, 9223372036854775807]'
        FROM orders), 'numbers';
    ASSERT (SELECT json_agg(id::text ORDER BY id)::text
        = '["2116681624581046272", "9223372036854775807"]' FROM orders), 'strings';
    ASSERT (SELECT jsonb_agg(o ORDER BY o.id) -> 1 ->> 'id' = '7zzzzzzzzzzzz' FROM api.orders AS o),
        'the view';
    ASSERT (SELECT bool_and(snowflake_from_base32(o.id) = orders.id) FROM api.lines AS l
        JOIN api.orders AS o ON o.id = l.order_id
        JOIN orders ON orders.text_id = o.id), 'the relation';
    ASSERT (SELECT json_typeof(row_to_json(events) -> 'id') = 'string' FROM events), 'sno';
END
$$;
