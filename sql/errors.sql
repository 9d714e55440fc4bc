-- Invalid IDs and counts: an error with its SQLSTATE, after which the session can be used.
SELECT snowflake_timestamp(-1, 'twitter');
\echo :SQLSTATE
SELECT snowflake_timestamp(-9223372036854775808, 'twitter');
\echo :SQLSTATE
SELECT snowflake_decode(-1);
\echo :SQLSTATE
SELECT snowflake_machine_id(-1);
\echo :SQLSTATE
SELECT snowflake_sequence(-1);
\echo :SQLSTATE
SELECT snowflake_timestamp(9007199254740992, 'javascript');
\echo :SQLSTATE
SELECT snowflake_decode(9223372036854775807, 'javascript');
\echo :SQLSTATE
SELECT snowflake_nextvals(-1);
\echo :SQLSTATE

-- in the middle of a set of rows
SELECT snowflake_timestamp(n, 'twitter') FROM generate_series(1, -1, -1) n;
\echo :SQLSTATE

-- the session can be used
SELECT snowflake_nextval() > 0 AS works;
\echo :SQLSTATE
