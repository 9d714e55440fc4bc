/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

/*
 * Generating
 */

CREATE FUNCTION snowflake_nextval() RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_nextval() IS
'next Snowflake ID: unique on this server, greater than all before it in this session; may wait for the clock';

CREATE FUNCTION snowflake_nextval(count integer) RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval_set'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 1000;

COMMENT ON FUNCTION snowflake_nextval(integer) IS
'next count Snowflake IDs, increasing, for a count of 0 or more; streams in a select list';

CREATE FUNCTION snowflake_currval() RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_currval'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_currval() IS
'last Snowflake ID that this session generated; an error before the first one';

/*
 * Decoding.  f(id) works with the layout in force, which a setting can change,
 * and so is stable; f(id, layout) is immutable.
 */

CREATE FUNCTION snowflake_decode(id bigint,
	OUT created_at timestamptz, OUT machine_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME', 'snowflake_decode'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_decode(bigint) IS
'time, machine ID and sequence of a Snowflake ID in the layout in force';

CREATE FUNCTION snowflake_decode(id bigint, layout text,
	OUT created_at timestamptz, OUT machine_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME', 'snowflake_decode'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
'time, machine ID and sequence of a Snowflake ID in the given layout';

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
'time of a Snowflake ID, the start of its tick, in the layout in force';

CREATE FUNCTION snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
'time of a Snowflake ID, the start of its tick, in the given layout';

CREATE FUNCTION snowflake_machine_id(id bigint) RETURNS integer
AS 'MODULE_PATHNAME', 'snowflake_machine_id'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_machine_id(bigint) IS
'machine ID of a Snowflake ID in the layout in force; 0 if the layout has none';

CREATE FUNCTION snowflake_machine_id(id bigint, layout text) RETURNS integer
AS 'MODULE_PATHNAME', 'snowflake_machine_id'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_machine_id(bigint, text) IS
'machine ID of a Snowflake ID in the given layout; 0 if the layout has none';

CREATE FUNCTION snowflake_sequence(id bigint) RETURNS integer
AS 'MODULE_PATHNAME', 'snowflake_sequence'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_sequence(bigint) IS
'sequence number of a Snowflake ID within its tick in the layout in force';

CREATE FUNCTION snowflake_sequence(id bigint, layout text) RETURNS integer
AS 'MODULE_PATHNAME', 'snowflake_sequence'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_sequence(bigint, text) IS
'sequence number of a Snowflake ID within its tick in the given layout';

/*
 * Encoding and time ranges
 */

CREATE FUNCTION snowflake_encode(created_at timestamptz, machine_id integer, sequence integer)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_encode'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer) IS
'Snowflake ID of a time, machine ID and sequence in the layout in force; says nothing about uniqueness';

CREATE FUNCTION snowflake_encode(created_at timestamptz, machine_id integer, sequence integer, layout text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_encode'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, text) IS
'Snowflake ID of a time, machine ID and sequence in the given layout; says nothing about uniqueness';

CREATE FUNCTION snowflake_boundary(instant timestamptz) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_boundary'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_boundary(timestamptz) IS
'number that divides Snowflake IDs at an instant: IDs before it are below, all others are not; layout in force';

CREATE FUNCTION snowflake_boundary(instant timestamptz, layout text) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_boundary'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_boundary(timestamptz, text) IS
'number that divides Snowflake IDs at an instant: IDs before it are below, all others are not; given layout';

CREATE FUNCTION snowflake_next_instant(instant timestamptz) RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_next_instant'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_next_instant(timestamptz) IS
'instant a microsecond later, infinity after the last one; used where a condition on snowflake_timestamp(id) becomes one on id';

-- neither STRICT nor with a SET clause, or the planner would not inline it
CREATE FUNCTION snowflake_between(id bigint, start_at timestamptz, end_at timestamptz)
RETURNS boolean
LANGUAGE SQL STABLE PARALLEL SAFE
RETURN id >= snowflake_boundary(start_at) AND id < snowflake_boundary(end_at);

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
'whether the time of a Snowflake ID is at or after start_at and before end_at; becomes two comparisons of id that an index answers';

CREATE FUNCTION snowflake_width(span interval) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_width'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_width(interval) IS
'how many numbers an interval covers in the layout in force, a part of a tick as a whole one; no months';

CREATE FUNCTION snowflake_width(span interval, layout text) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_width'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_width(interval, text) IS
'how many numbers an interval covers in the given layout, a part of a tick as a whole one; no months';

/*
 * IDs as text
 */

CREATE FUNCTION snowflake_to_base32(id bigint) RETURNS text
AS 'MODULE_PATHNAME', 'snowflake_to_base32'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_to_base32(bigint) IS
'Snowflake ID as 13 characters of Crockford''s base 32, in lower case; they sort as the numbers do';

CREATE FUNCTION snowflake_from_base32(id text) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_from_base32'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_from_base32(text) IS
'Snowflake ID of 13 characters of Crockford''s base 32, in either case, o read as 0, i and l as 1';

/*
 * Layouts
 */

CREATE FUNCTION snowflake_layouts(
	OUT name text,
	OUT epoch timestamptz,
	OUT tick interval,
	OUT timestamp_bits integer,
	OUT machine_bits integer,
	OUT sequence_bits integer,
	OUT machines bigint,
	OUT ids_per_second bigint,
	OUT exhausted_at timestamptz,
	OUT definition text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'snowflake_layouts'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 7;

COMMENT ON FUNCTION snowflake_layouts() IS 'rows of the view snowflake_layouts';

CREATE VIEW snowflake_layouts AS SELECT * FROM snowflake_layouts();

COMMENT ON VIEW snowflake_layouts IS
'layouts that have a name: ids_per_second is what one machine can issue, exhausted_at when the timestamp bits are used up, definition the same layout written out';

GRANT SELECT ON snowflake_layouts TO PUBLIC;

/*
 * Statistics
 */

CREATE FUNCTION pg_stat_snowflake(
	OUT generator text,
	OUT machine_id integer,
	OUT layout text,
	OUT leases bigint,
	OUT ids_leased bigint,
	OUT overflow_ticks bigint,
	OUT waits bigint,
	OUT wait_time double precision,
	OUT clock_regressions bigint,
	OUT max_regression interval,
	OUT ahead interval,
	OUT ceiling timestamptz,
	OUT floor timestamptz,
	OUT register_writes bigint,
	OUT register_write_time double precision,
	OUT exhausted_at timestamptz,
	OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_snowflake'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 1;

COMMENT ON FUNCTION pg_stat_snowflake() IS 'rows of the view pg_stat_snowflake';

CREATE VIEW pg_stat_snowflake AS SELECT * FROM pg_stat_snowflake();

COMMENT ON VIEW pg_stat_snowflake IS
'what each generator of this server has done since stats_reset, and where it is; times in milliseconds where they are no interval';

CREATE FUNCTION pg_stat_snowflake_reset() RETURNS void
AS 'MODULE_PATHNAME', 'pg_stat_snowflake_reset'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_stat_snowflake_reset() IS
'sets the counters of pg_stat_snowflake to 0';

REVOKE ALL ON FUNCTION pg_stat_snowflake(), pg_stat_snowflake_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_stat_snowflake() TO pg_monitor;
GRANT SELECT ON pg_stat_snowflake TO pg_monitor;

/*
 * Partitions, and tables that have keys already
 *
 * What runs DDL is in PL/pgSQL, which says DDL best.  It runs as the caller, who
 * needs the rights for it.  Its search_path has nothing of the caller's, and so
 * it asks for the extension's schema, which can change.
 */

/*
 * Starts are counted from start_at, not from each other: the 31st plus a month
 * plus a month is the 31st, not the 28th.  Names tell as much of a start as all
 * starts need.  Where that is hours and less they are in UTC, in which no hour
 * comes twice.  Not STRICT, so that it is inlined, and rows come as they are asked
 * for: who mistakes a second for a month has an error at the first.
 */
CREATE FUNCTION snowflake_periods(start_at timestamptz, end_at timestamptz, step interval,
	OUT name text, OUT from_at timestamptz, OUT to_at timestamptz, OUT from_id bigint, OUT to_id bigint)
RETURNS SETOF record
LANGUAGE SQL STABLE PARALLEL SAFE
BEGIN ATOMIC
	WITH RECURSIVE units (rank, unit, format, zone) AS (
		VALUES
			(1, 'year', 'YYYY', current_setting('TimeZone')),
			(2, 'month', 'YYYY_MM', current_setting('TimeZone')),
			(3, 'day', 'YYYY_MM_DD', current_setting('TimeZone')),
			(4, 'hour', 'YYYY_MM_DD_HH24"z"', 'UTC'),
			(5, 'minute', 'YYYY_MM_DD_HH24MI"z"', 'UTC'),
			(6, 'second', 'YYYY_MM_DD_HH24MISS"z"', 'UTC'),
			(7, 'microseconds', 'YYYY_MM_DD_HH24MISSUS"z"', 'UTC')),
	naming AS (
		SELECT u.format, u.zone FROM units u
		WHERE date_trunc(u.unit, step) = step
			AND date_trunc(u.unit, start_at AT TIME ZONE u.zone) = start_at AT TIME ZONE u.zone
		ORDER BY u.rank LIMIT 1),
	counted (i, starts_at) AS (
		SELECT 0, start_at
		WHERE isfinite(start_at) AND isfinite(end_at) AND start_at < end_at AND start_at + step > start_at
		UNION ALL
		SELECT i + 1, start_at + (i + 1) * step FROM counted
		WHERE start_at + (i + 1) * step < end_at)
	SELECT to_char(c.starts_at AT TIME ZONE n.zone, n.format),
		c.starts_at, start_at + (c.i + 1) * step,
		snowflake_boundary(c.starts_at), snowflake_boundary(start_at + (c.i + 1) * step)
	FROM counted c, naming n;
END;

COMMENT ON FUNCTION snowflake_periods(timestamptz, timestamptz, interval) IS
'periods of length step from start_at until end_at is covered: a name for each, its times, and the Snowflake IDs from from_id to below to_id that it holds; none where step does not go forward';

/*
 * A partition is made as a table like the parent, then attached: unlike CREATE
 * TABLE ... PARTITION OF, that lets others read and write the parent meanwhile.
 * The lock is the one that ATTACH PARTITION takes.  Calls that come at once wait
 * for each other by it, so that the second sees what the first has made.
 */
CREATE FUNCTION snowflake_create_partitions(
	parent regclass, start_at timestamptz, end_at timestamptz, step interval)
RETURNS SETOF regclass
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	parent_table record;
	period record;
	base name;
	partition text;
BEGIN
	IF pg_has_role((SELECT relowner FROM pg_class WHERE oid = parent), 'USAGE') IS NOT TRUE THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('must be owner of table %s', parent);
	END IF;
	SELECT c.relnamespace::regnamespace AS schema, c.relname AS name, c.relowner::regrole AS owner,
		concat(' USING ' || quote_ident(a.amname), ' TABLESPACE ' || quote_ident(t.spcname)) AS storage
	INTO parent_table
	FROM pg_partitioned_table p
		JOIN pg_class c ON c.oid = p.partrelid
		JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = p.partattrs[0]
		JOIN pg_opclass o ON o.oid = p.partclass[0]
		LEFT JOIN pg_am a ON a.oid = c.relam
		LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
	WHERE p.partrelid = parent AND p.partstrat = 'r' AND p.partnatts = 1
		AND k.atttypid = 'bigint'::regtype AND o.opcdefault;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('"%s" is not partitioned by range of a bigint column', parent),
			HINT = 'Create it with PARTITION BY RANGE (column), where the column holds Snowflake IDs.';
	END IF;
	IF NOT isfinite(start_at) OR NOT isfinite(end_at) OR start_at > end_at OR start_at + step <= start_at THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'partitions need a finite start, a finite end that is not before it, and a step forward',
			DETAIL = format('They were to be from %s to %s by %s.', start_at, end_at, step);
	END IF;

	EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
	FOR period IN
		EXECUTE format('SELECT * FROM %s.snowflake_periods($1, $2, $3)',
			(SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'snowflake'))
			USING start_at, end_at, step
	LOOP
		IF period.from_id >= period.to_id THEN
			RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
				MESSAGE = format('no Snowflake ID is from %s to %s', period.from_at, period.to_at),
				HINT = 'The layout is that of snowflake.layout: a period must be within it, and have a tick at least.';
		END IF;
		CONTINUE WHEN EXISTS (
			SELECT FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
			WHERE inhparent = parent AND pg_get_expr(c.relpartbound, c.oid) =
				format('FOR VALUES FROM (%L) TO (%L)', period.from_id, period.to_id));

		-- a long name makes room for the period
		base := parent_table.name;
		WHILE octet_length(base || '_' || period.name) > current_setting('max_identifier_length')::integer LOOP
			base := left(base, -1);
		END LOOP;
		partition := format('%s.%I', parent_table.schema, base || '_' || period.name);

		EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING COMPRESSION INCLUDING CONSTRAINTS INCLUDING DEFAULTS'
			' INCLUDING GENERATED INCLUDING STORAGE)', partition, parent) || parent_table.storage;
		IF parent_table.owner <> current_user::regrole THEN
			EXECUTE format('ALTER TABLE %s OWNER TO %s', partition, parent_table.owner);
		END IF;
		BEGIN
			EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)',
				parent, partition, period.from_id, period.to_id);
		EXCEPTION WHEN invalid_object_definition THEN
			RAISE EXCEPTION USING ERRCODE = 'invalid_object_definition', MESSAGE = SQLERRM,
				DETAIL = format('It was to hold the IDs from %s to %s.', period.from_at, period.to_at),
				HINT = 'Start where a partition starts or ends, and keep the step and the TimeZone.';
		END;
		RETURN NEXT partition;
	END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_create_partitions(regclass, timestamptz, timestamptz, interval) IS
'makes partitions of a table that is partitioned by range of Snowflake IDs, for the periods of length step from start_at until end_at is covered, but for those that it has; returns those made';

/*
 * All is looked at under the lock.  An ID is drawn before it, so that a generator
 * that has to wait, or that cannot work, holds no lock.
 */
CREATE FUNCTION snowflake_adopt(relation regclass, attribute name)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $$
DECLARE
	nextval CONSTANT text := (SELECT format('%s.snowflake_nextval()', extnamespace::regnamespace)
		FROM pg_extension WHERE extname = 'snowflake');
	family oid[];
	target record;
	narrow record;
	member record;
	next_id bigint;
	greatest_id bigint;
	sequence text;
	sequences text[];
	last_value bigint;
BEGIN
	IF pg_has_role((SELECT relowner FROM pg_class WHERE oid = relation), 'USAGE') IS NOT TRUE THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('must be owner of table %s', relation);
	END IF;
	EXECUTE 'SELECT ' || nextval;
	EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation);
	family := ARRAY(
		WITH RECURSIVE f (oid) AS (
			SELECT relation::oid UNION SELECT inhrelid FROM pg_inherits JOIN f ON inhparent = f.oid)
		SELECT oid FROM f);

	SELECT c.relkind NOT IN ('r', 'p') AS no_table, a.attgenerated <> '' AS generated, a.attinhcount > 0 AS inherited,
		(SELECT i.inhparent::regclass FROM pg_inherits i WHERE i.inhrelid = c.oid ORDER BY i.inhseqno LIMIT 1) AS parent
	INTO target
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
	WHERE c.oid = relation AND a.attname = attribute AND a.attnum > 0 AND NOT a.attisdropped;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('column "%s" of relation "%s" does not exist', attribute, relation);
	ELSIF target.no_table OR target.generated OR target.inherited THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('column "%s" of relation "%s" cannot get a default', attribute, relation),
			DETAIL = CASE
				WHEN target.no_table THEN 'It is not the column of a table.'
				WHEN target.generated THEN 'It is a generated column.'
				ELSE format('It is inherited: adopt it in %s.', target.parent) END;
	END IF;

	-- it, and columns that refer to it, must hold the IDs to come
	SELECT a.attrelid::regclass AS relation, a.attname AS name, a.atttypid::regtype AS type INTO narrow
	FROM pg_attribute a
	WHERE a.attrelid = relation AND a.attname = attribute AND a.atttypid <> 'bigint'::regtype
	UNION ALL
	SELECT a.attrelid::regclass, a.attname, a.atttypid::regtype
	FROM pg_constraint f
		CROSS JOIN unnest(f.conkey, f.confkey) AS pair (referring, referred)
		JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = pair.referring
		JOIN pg_attribute r ON r.attrelid = f.confrelid AND r.attnum = pair.referred
	WHERE f.contype = 'f' AND f.confrelid = ANY (family) AND r.attname = attribute
		AND a.atttypid IN ('smallint'::regtype, 'integer'::regtype);
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of relation "%s" is of type %s', narrow.name, narrow.relation, narrow.type),
			DETAIL = 'It is to hold Snowflake IDs, which are of type bigint.',
			HINT = CASE WHEN narrow.type IN ('smallint'::regtype, 'integer'::regtype) THEN
				format('Change it first: ALTER TABLE %s ALTER COLUMN %I TYPE bigint.', narrow.relation, narrow.name)
				ELSE 'Only a column of type bigint can be adopted.' END;
	END IF;

	-- the rows that are there must be below them
	EXECUTE 'SELECT ' || nextval INTO next_id;
	EXECUTE format('SELECT max(%I) FROM %s', attribute, relation) INTO greatest_id;
	IF greatest_id >= next_id THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('column "%s" of relation "%s" has values above the Snowflake IDs to come', attribute, relation),
			DETAIL = format('The greatest is %s, the next ID is %s.', greatest_id, next_id),
			HINT = 'Change those rows, or set snowflake.layout to the layout that they were made in.';
	END IF;

	FOR member IN
		SELECT a.attrelid::regclass AS relation, coalesce(
			CASE a.attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' WHEN 'd' THEN 'GENERATED BY DEFAULT AS IDENTITY' END,
			pg_get_expr(d.adbin, d.adrelid), 'none') AS before
		FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE a.attrelid = ANY (family) AND a.attname = attribute
		ORDER BY array_position(family, a.attrelid)
	LOOP
		sequence := pg_get_serial_sequence(member.relation::text, attribute);
		-- asked now, since it may have gone with that of the parent
		IF (SELECT attidentity <> '' FROM pg_attribute WHERE attrelid = member.relation AND attname = attribute) THEN
			member.before := format('%s (last value %s)', member.before, coalesce(pg_sequence_last_value(sequence::regclass)::text, 'none'));
			EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', member.relation, attribute);
		ELSE
			sequences := sequences || sequence;
		END IF;
		EXECUTE format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT %s', member.relation, attribute, nextval);
		IF member.before <> nextval THEN
			RETURN NEXT format('%s.%I: default %s, was %s', member.relation, attribute, nextval, member.before);
		END IF;
	END LOOP;

	-- sequences that defaults had, now that none of these has
	FOREACH sequence IN ARRAY array_remove(sequences, NULL) LOOP
		last_value := pg_sequence_last_value(sequence::regclass);
		BEGIN
			EXECUTE format('DROP SEQUENCE %s', sequence);
			RETURN NEXT format('sequence %s: dropped (last value %s)', sequence, coalesce(last_value::text, 'none'));
		EXCEPTION WHEN dependent_objects_still_exist THEN
			EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', sequence);
			RETURN NEXT format('sequence %s: kept, since others use it', sequence);
		END;
	END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_adopt(regclass, name) IS
'makes snowflake_nextval() the default of a bigint column, its partitions'' and children''s included, in place of a sequence, IDENTITY or none, and drops the sequence; returns what it changed';

/*
 * The register, of which a cluster has one for all its databases
 */

CREATE FUNCTION snowflake_make_register() RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_make_register'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_make_register() IS
'makes the register of Snowflake IDs of this cluster, if it has none';

CREATE FUNCTION snowflake_accept_layout() RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_accept_layout'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_layout() IS
'lets this cluster issue Snowflake IDs in the layout of snowflake.layout from now on; they can equal IDs of the layout before';

CREATE FUNCTION snowflake_accept_clock() RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_accept_clock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_clock() IS
'lets this server believe its clock after a jump forward of more than snowflake.max_clock_step';

CREATE FUNCTION snowflake_set_floor(instant timestamptz) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_set_floor'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_set_floor(timestamptz) IS
'moves the line of Snowflake IDs to an instant, forth or back: back repeats IDs if any was issued at or after the instant';

REVOKE ALL ON FUNCTION snowflake_make_register(), snowflake_accept_layout(),
	snowflake_accept_clock(), snowflake_set_floor(timestamptz) FROM PUBLIC;

SELECT snowflake_make_register();
