-- An ordinary user can generate and decode IDs, and nothing else.
CREATE ROLE regress_snowflake_user;
SET ROLE regress_snowflake_user;

SELECT snowflake_nextval() > 0 AS nextval, count(*) FROM snowflake_nextvals(3) GROUP BY 1;
SELECT snowflake_id() > 0 AS id;
SELECT snowflake_currval() = (snowflake_encode(created_at, machine_id, sequence)) AS decode
FROM snowflake_decode(snowflake_currval());
SELECT count(*) > 1 AS visible FROM snowflake_layouts;
SELECT snowflake_check_layout(), snowflake_check_clock();
SELECT snowflake_server_machine_id() = snowflake_machine_id(snowflake_currval()) AS server_machine_id;
SELECT snowflake_between(snowflake_currval(), now() - interval '1 minute', now() + interval '1 minute');

\set VERBOSITY sqlstate
ALTER SYSTEM SET snowflake.machine_id = 1;
SET snowflake.machine_id = 1;
DELETE FROM snowflake_layouts;


-- every function, so that a new one has to be added here: functions that not all roles can call,
SELECT p.oid::regprocedure AS function
FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
  AND NOT has_function_privilege('regress_snowflake_user', p.oid, 'EXECUTE')
ORDER BY 1;
SELECT pg_stat_snowflake();
SELECT * FROM pg_stat_snowflake;
SELECT pg_stat_snowflake_reset();
SELECT snowflake_accept_layout();
SELECT snowflake_accept_clock();
SELECT snowflake_accept_registry();
SELECT snowflake_set_floor(now());
SELECT snowflake_promise_horizon(1);
SELECT sno_snapshot();
SELECT sno_set_floor(now());
SELECT snowflake_drop_state();
RESET ROLE;
SELECT snowflake_set_floor(NULL);
SET ROLE regress_snowflake_user;

-- functions that need privileges on another role's table,
RESET ROLE;
CREATE TABLE others (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
GRANT ALL ON others TO regress_snowflake_user;
SET ROLE regress_snowflake_user;
\set VERBOSITY terse
SELECT snowflake_create_partitions('others', '2026-01-01', '2026-02-01', '1 month');
SELECT snowflake_detach_partitions('others', '2026-01-01');
SELECT snowflake_drop_partitions('others', '2026-01-01');
SELECT snowflake_adopt('others', 'id');
\set VERBOSITY default

-- and all others that SQL can call, with null for each argument: null or an error
SET client_min_messages = error;
CREATE FUNCTION pg_temp.outcome(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	outcome text;
BEGIN
	EXECUTE 'SELECT (SELECT r::text FROM ' || call || ' r)' INTO outcome;
	RETURN coalesce(outcome, 'null');
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
SELECT outcome, count(*), CASE WHEN outcome <> 'null' THEN string_agg(DISTINCT proname, ' ' ORDER BY proname) END AS functions
FROM (SELECT proname, pg_temp.outcome(format('%s(%s)', proname, (SELECT string_agg('null::' || argument::regtype, ', ') FROM unnest(proargtypes::oid[]) argument))) AS outcome
	FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
	WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND pronargs > 0 AND prokind = 'f' AND NOT ('internal'::regtype = ANY (proargtypes::oid[]))
		AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake') AND has_function_privilege(p.oid, 'EXECUTE')
		AND obj_description(p.oid, 'pg_proc') NOT LIKE '%; internal') calls
GROUP BY outcome ORDER BY outcome;
DROP FUNCTION pg_temp.outcome(text);
RESET client_min_messages;

-- internal functions, which run with the privileges of the caller
SELECT count(*) > 0 AS found, bool_or(prosecdef) AS any_definer
FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND obj_description(p.oid, 'pg_proc') LIKE '%; internal'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake');

RESET ROLE;
DROP TABLE others;
DROP ROLE regress_snowflake_user;
