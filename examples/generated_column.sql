-- A generated column created_at, computed from the ID and stored with the row.
--
-- The column is optional: queries can use snowflake_timestamp(id) instead, without 8 bytes
-- per row and without another index.  The layout is given, since stored values must not depend
-- on a setting.
CREATE TABLE orders (
    id bigint PRIMARY KEY DEFAULT snowflake_id(),
    item text NOT NULL,
    created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'twitter')) STORED);

INSERT INTO orders (item) VALUES ('a lamp') RETURNING id, created_at;
INSERT INTO orders (id, item) VALUES (1541815603606036480, 'a shelf') RETURNING id, created_at;

DO $$
BEGIN
    ASSERT (SELECT created_at FROM orders WHERE item = 'a shelf') = '2022-06-28 16:07:40.105 UTC',
        'as published of that ID';
    ASSERT (SELECT created_at - clock_timestamp() BETWEEN interval '-1 minute' AND interval '10 ms'
        FROM orders WHERE item = 'a lamp'),
        'the time of the insert';
END
$$;
