-- CREATE EXTENSION: the functions, with the properties that the planner relies on, each with a
-- comment.
CREATE EXTENSION snowflake;

SELECT p.oid::regprocedure AS function,
       pg_get_function_result(p.oid) AS result,
       p.provolatile AS volatility, p.proisstrict AS strict, p.proparallel AS parallel,
       obj_description(p.oid, 'pg_proc') IS NOT NULL AS commented
FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- it can be moved to another schema, dropped and created again
CREATE SCHEMA elsewhere;
ALTER EXTENSION snowflake SET SCHEMA elsewhere;
SELECT elsewhere.snowflake_between(1, '-infinity', 'infinity');
DROP EXTENSION snowflake;
DROP SCHEMA elsewhere;
CREATE EXTENSION snowflake;

-- for tests of estimates: the rows that the planner expects of a query
CREATE FUNCTION estimated(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
