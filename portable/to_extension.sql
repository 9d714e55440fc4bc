-- Replaces the functions of portable/snowflake.sql in a database by the extension, whether they
-- issue IDs or only read them.  New IDs are above all that the database has issued.
--
--     psql -f portable/to_extension.sql DATABASE
--
-- schema       the schema of the functions; public unless set.  The extension is created in it
--
-- A superuser runs this, on a server that preloads the library and has the layout of the functions.
-- docs/portable.md tells which machine ID the server can have.  It is one transaction, and nothing
-- has changed if it fails.
--
-- CALL snowflake_horizon() becomes SELECT snowflake_horizon(), which queries and views can use too.
-- Change the programs that call it.
\set ON_ERROR_STOP on
\set QUIET on
\if :{?schema}
\else
	\set schema public
\endif
BEGIN;
SET LOCAL datestyle = ISO;
SELECT set_config('search_path', quote_ident(:'schema'), true) AS path \gset
SELECT to_regprocedure('snowflake_checked(numeric, numeric, text)') IS NOT NULL AS has_edition,
	to_regclass('snowflake_count') IS NOT NULL AS issues \gset
\if :has_edition
\else
	DO $$ BEGIN RAISE undefined_function USING
		MESSAGE = format('schema %s has no functions of portable/snowflake.sql',
			current_setting('search_path')),
		HINT = 'Set the variable "schema" to the schema in which that script has created them.';
	END $$;
\endif

-- What identifies a layout: its epoch, tick, and numbers of bits follow from the last ID, and the
-- order of its fields from the first ones.
\set last_id 'snowflake_boundary($$infinity$$) - 1'
\set first_ids 'snowflake_decode(0), snowflake_decode(1)'
\set layout 'concat_ws($$ $$, ' :first_ids ', snowflake_decode(' :last_id '))'
SELECT :layout AS layout_of_edition \gset

\if :issues
	-- Names of all schemas but pg_catalog are qualified.
	SET LOCAL search_path = pg_catalog;
	CREATE TEMPORARY TABLE snowflake_default ON COMMIT DROP AS
		SELECT DISTINCT adrelid AS relation, attname AS attribute,
			pg_get_expr(adbin, adrelid) AS expression
		FROM pg_depend JOIN pg_attrdef ON pg_attrdef.oid = objid
			JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
		WHERE classid = 'pg_attrdef'::regclass AND refclassid = 'pg_proc'::regclass
			AND attgenerated = ''
			AND refobjid IN (to_regprocedure(format('%I.snowflake_nextval()', :'schema')),
				to_regprocedure(format('%I.snowflake_id()', :'schema')));
	-- Wait until no transaction inserts rows or issues IDs.  Others wait until the commit.
	SELECT format('LOCK TABLE %s', relation::regclass)
	FROM snowflake_default JOIN pg_class ON oid = relation
	WHERE relkind IN ('r', 'p') ORDER BY relation \gexec
	SELECT format('ALTER TABLE ONLY %s ALTER %I DROP DEFAULT', relation::regclass, attribute)
	FROM snowflake_default \gexec
	SELECT set_config('search_path', quote_ident(:'schema'), true) AS path \gset
	ALTER SEQUENCE snowflake_count OWNED BY NONE;
	SELECT snowflake_timestamp(snowflake_nextval()) + interval '1 microsecond' AS floor \gset
	DROP ROUTINE snowflake_move(bigint), snowflake_nextval(), snowflake_id(),
		snowflake_horizon(bigint), snowflake_nextvals(integer), snowflake_server_machine_id();
	DROP SEQUENCE snowflake_base, snowflake_count;
	DROP TABLE snowflake_server;
\endif
DROP ROUTINE snowflake_checked(numeric, numeric, text), snowflake_timestamp(bigint),
	snowflake_machine_id(bigint), snowflake_sequence(bigint), snowflake_decode(bigint),
	snowflake_encode(timestamptz, integer, integer),
	snowflake_boundary(timestamptz), snowflake_between(bigint, timestamptz, timestamptz),
	snowflake_to_base32(bigint), snowflake_from_base32(text);

CREATE EXTENSION snowflake SCHEMA :"schema";
SELECT :layout = :'layout_of_edition' AS is_same \gset
\if :is_same
\else
	DO $$ BEGIN RAISE object_not_in_prerequisite_state USING
		MESSAGE = 'the functions of portable/snowflake.sql have another layout than this server',
		DETAIL = format('The layout of the server is "%s".', current_setting('snowflake.layout')),
		HINT = 'Set "snowflake.layout" to the layout of the functions, and restart the server.';
	END $$;
\endif
\if :issues
	SELECT snowflake_set_floor(:'floor') \g /dev/null
	SET LOCAL search_path = pg_catalog;
	SELECT format('ALTER TABLE ONLY %s ALTER %I SET DEFAULT %s', relation::regclass, attribute,
		expression)
	FROM snowflake_default \gexec
\endif
COMMIT;
