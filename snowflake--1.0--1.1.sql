/* snowflake--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION snowflake UPDATE TO '1.1'" to load this file. \quit

CREATE FUNCTION snowflake_version() RETURNS text
AS 'MODULE_PATHNAME', 'snowflake_version'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_version() IS
'release of the library that this session has loaded, such as 1.1.0; that of the SQL is extversion in pg_extension';
