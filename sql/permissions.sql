-- An ordinary user can issue and decode IDs, and nothing else.
CREATE ROLE regress_snowflake_user;
SET ROLE regress_snowflake_user;

SELECT snowflake_nextval() > 0 AS nextval, count(*) FROM snowflake_nextval(3) GROUP BY 1;
SELECT snowflake_currval() = (snowflake_encode(created_at, machine_id, sequence)) AS decode
FROM snowflake_decode(snowflake_currval());
SELECT count(*) FROM snowflake_layouts;
SELECT snowflake_between(snowflake_currval(), now() - interval '1 minute', now() + interval '1 minute');

\set VERBOSITY sqlstate
ALTER SYSTEM SET snowflake.machine_id = 1;
SET snowflake.machine_id = 1;
DELETE FROM snowflake_layouts;

-- every function, so that a new one has to be thought of here
SELECT p.oid::regprocedure AS function
FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
  AND NOT has_function_privilege('regress_snowflake_user', p.oid, 'EXECUTE')
ORDER BY 1;

RESET ROLE;
DROP ROLE regress_snowflake_user;
