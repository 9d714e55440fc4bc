-- Replaces the functions of portable/snowflake.sql in a database with the extension, whether they
-- issue IDs or only read them.  New IDs are above all that the database has issued.
--
-- This file is one statement, for any client.  A superuser runs it, on a server that preloads the
-- library and has the layout of the functions, with a search_path that contains their schema.  The
-- extension is created in this schema.  docs/portable.md tells which machine ID the server can
-- have.  Nothing has changed if it fails.
DO $$
DECLARE
	path CONSTANT text := pg_catalog.current_setting('search_path');
	edition CONSTANT oid := pg_catalog.to_regprocedure(
		'snowflake_checked(pg_catalog.numeric, pg_catalog.numeric, pg_catalog.text)');
	schema text;
	owner oid;
	locks text[];	-- commands for defaults that issue IDs
	drops text[];
	sets text[];
	command text;
	-- What identifies a layout: its epoch, tick, and numbers of bits follow from the last ID, and
	-- the order of its fields from the first ones.
	layout_of CONSTANT text := $query$SELECT concat_ws(' ', %1$s.snowflake_decode(0::bigint),
		%1$s.snowflake_decode(1::bigint), %1$s.snowflake_decode(
			%1$s.snowflake_boundary(timestamptz 'infinity') - 1))$query$;
	layout_of_edition text;
	layout_of_server text;
	floor timestamptz;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	SELECT pronamespace::regnamespace, proowner INTO schema, owner FROM pg_proc WHERE oid = edition;
	IF NOT FOUND THEN
		RAISE undefined_function USING
			MESSAGE = 'search_path has no functions of portable/snowflake.sql',
			DETAIL = format('The setting "search_path" is "%s".', path),
			HINT = 'Set "search_path" to the schema of these functions.';
	END IF;
	EXECUTE format(layout_of, schema) INTO layout_of_edition;

	IF to_regclass(schema || '.snowflake_count') IS NOT NULL THEN
		SELECT array_agg(DISTINCT format('LOCK TABLE %s', relation))
				FILTER (WHERE relkind IN ('r', 'p')),
			array_agg(DISTINCT format('%s DROP DEFAULT', change)),
			array_agg(DISTINCT format('%s SET DEFAULT %s', change, pg_get_expr(adbin, adrelid)))
		INTO locks, drops, sets
		FROM pg_depend JOIN pg_attrdef ON pg_attrdef.oid = objid
			JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
			JOIN pg_class ON pg_class.oid = adrelid,
			CAST(adrelid::regclass AS text) AS relation,
			format('ALTER TABLE ONLY %s ALTER %I', relation, attname) AS change
		WHERE classid = 'pg_attrdef'::regclass AND refclassid = 'pg_proc'::regclass
			AND attgenerated = ''
			AND refobjid IN (to_regprocedure(schema || '.snowflake_nextval()'),
				to_regprocedure(schema || '.snowflake_id()'));
		-- Wait until no transaction inserts rows or issues IDs.  Others wait until the commit.
		FOREACH command IN ARRAY locks || drops
			|| format('ALTER SEQUENCE %s.snowflake_count OWNED BY NONE', schema)
		LOOP
			EXECUTE command;
		END LOOP;
		EXECUTE format('SELECT %1$s.snowflake_timestamp(%1$s.snowflake_nextval())', schema)
		INTO floor;
		EXECUTE format('DROP ROUTINE %1$s.snowflake_move(bigint), %1$s.snowflake_nextval(),
				%1$s.snowflake_id(), %1$s.snowflake_horizon(),
				%1$s.snowflake_new_horizon(), %1$s.snowflake_sees(pg_snapshot, pg_snapshot),
				%1$s.snowflake_nextvals(integer), %1$s.snowflake_server_machine_id();
			DROP SEQUENCE %1$s.snowflake_base, %1$s.snowflake_count;
			DROP TABLE %1$s.snowflake_server', schema);
	END IF;
	EXECUTE format('DROP ROUTINE %1$s.snowflake_timestamp(bigint),
			%1$s.snowflake_timestamp(bigint, text), %1$s.snowflake_machine_id(bigint),
			%1$s.snowflake_machine_id(bigint, text), %1$s.snowflake_sequence(bigint),
			%1$s.snowflake_sequence(bigint, text), %1$s.snowflake_decode(bigint),
			%1$s.snowflake_decode(bigint, text),
			%1$s.snowflake_encode(timestamptz, integer, integer),
			%1$s.snowflake_encode(timestamptz, integer, integer, text),
			%1$s.snowflake_boundary(timestamptz), %1$s.snowflake_boundary(timestamptz, text),
			%1$s.snowflake_between(bigint, timestamptz, timestamptz),
			%1$s.snowflake_to_base32(bigint), %1$s.snowflake_from_base32(text),
			%1$s.snowflake_checked(numeric, numeric, text), %1$s.snowflake_server_layout(),
			%1$s.snowflake_parts(text), %1$s.snowflake_parse(text);
		DROP TYPE %1$s.snowflake_layout', schema);
	FOR command IN
		SELECT 'DROP EXTENSION snowflake_sql' FROM pg_extension WHERE extname = 'snowflake_sql'
		UNION ALL SELECT format('DROP FUNCTION %s', oid::regprocedure) FROM pg_proc
		WHERE proname = 'snowflake_setup' AND proowner = owner
			AND NOT EXISTS (SELECT FROM pg_depend
				WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e')
	LOOP
		EXECUTE command;
	END LOOP;

	EXECUTE format('CREATE EXTENSION snowflake SCHEMA %s', schema);
	EXECUTE format(layout_of, schema) INTO layout_of_server;
	IF layout_of_server <> layout_of_edition THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = 'the functions of portable/snowflake.sql have another layout than this'
				' server',
			DETAIL = format('The layout of the server is "%s".',
				current_setting('snowflake.layout')),
			HINT = 'Set "snowflake.layout" to the layout of the functions, and restart the server.';
	END IF;
	IF floor IS NOT NULL THEN
		EXECUTE format('SELECT %s.snowflake_set_floor($1)', schema)
		USING floor + interval '1 microsecond';
	END IF;
	FOREACH command IN ARRAY coalesce(sets, '{}') LOOP
		EXECUTE command;
	END LOOP;
	PERFORM set_config('search_path', path, true);
END $$;
