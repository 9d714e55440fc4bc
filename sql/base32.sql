-- Converting IDs to text of 13 characters, and back.
SELECT id, snowflake_to_base32(id) AS text, snowflake_from_base32(snowflake_to_base32(id)) = id AS back
FROM (VALUES (0), (1234), (1541815603606036480), (9223372036854775807)) AS ids (id);
SELECT snowflake_from_base32('1ASDI3XHLF8OO') AS look_alikes;
SELECT snowflake_to_base32(NULL) IS NULL AS null_to, snowflake_from_base32(NULL) IS NULL AS null_from;

-- texts sort as the numbers do, in any collation that sorts digits before letters
SELECT count(*) AS pairs, count(*) FILTER (WHERE (snowflake_to_base32(a) < snowflake_to_base32(b)) <> (a < b)) AS disordered
FROM (SELECT (random() * 9e18)::bigint AS a, (random() * 9e18)::bigint AS b FROM generate_series(1, 10000)) p;

-- invalid input, with its SQLSTATE
SELECT snowflake_to_base32(-1);
\echo :SQLSTATE
SELECT snowflake_from_base32('');
\echo :SQLSTATE
SELECT snowflake_from_base32('1asd13xh1f80');
\echo :SQLSTATE
SELECT snowflake_from_base32('1asd13xh1f8000');
\echo :SQLSTATE
SELECT snowflake_from_base32('1asd13u000000');
\echo :SQLSTATE
SELECT snowflake_from_base32('1asd-13xh1f80');
\echo :SQLSTATE
SELECT snowflake_from_base32('8000000000000');
\echo :SQLSTATE
