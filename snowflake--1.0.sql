/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

/*
 * Generating IDs
 */

CREATE FUNCTION snowflake_nextval() RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_nextval() IS
'generates a Snowflake ID, which is unique and greater than all earlier ones in this session; waits for the clock if it has to, for at most snowflake.max_wait';

CREATE FUNCTION snowflake_nextvals(count integer) RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'snowflake_nextvals'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 1000;

COMMENT ON FUNCTION snowflake_nextvals(integer) IS
'generates count increasing Snowflake IDs, none if count is 0; returns them one by one in a select list';

CREATE FUNCTION snowflake_currval() RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_currval'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_currval() IS
'last Snowflake ID that this session generated; raises an error if it has generated none';

/*
 * Decoding.  f(id) uses the layout of the setting snowflake.layout and so is STABLE;
 * f(id, layout) is IMMUTABLE.
 */

CREATE FUNCTION snowflake_decode(id bigint,
	OUT created_at timestamptz, OUT machine_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME', 'snowflake_decode'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_decode(bigint) IS
'time, machine ID and sequence number of a Snowflake ID in the layout of snowflake.layout';

CREATE FUNCTION snowflake_decode(id bigint, layout text,
	OUT created_at timestamptz, OUT machine_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME', 'snowflake_decode'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
'time, machine ID and sequence number of a Snowflake ID in the given layout';

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
'time of a Snowflake ID, which is the start of its tick, in the layout of snowflake.layout';

CREATE FUNCTION snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
'time of a Snowflake ID, which is the start of its tick, in the given layout';

CREATE FUNCTION snowflake_machine_id(id bigint) RETURNS integer
AS 'MODULE_PATHNAME', 'snowflake_machine_id'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_machine_id(bigint) IS
'machine ID of a Snowflake ID in the layout of snowflake.layout; 0 if the layout has no machine bits';

CREATE FUNCTION snowflake_machine_id(id bigint, layout text) RETURNS integer
AS 'MODULE_PATHNAME', 'snowflake_machine_id'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_machine_id(bigint, text) IS
'machine ID of a Snowflake ID in the given layout; 0 if the layout has no machine bits';

CREATE FUNCTION snowflake_sequence(id bigint) RETURNS integer
AS 'MODULE_PATHNAME', 'snowflake_sequence'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_sequence(bigint) IS
'sequence number of a Snowflake ID within its tick, in the layout of snowflake.layout';

CREATE FUNCTION snowflake_sequence(id bigint, layout text) RETURNS integer
AS 'MODULE_PATHNAME', 'snowflake_sequence'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_sequence(bigint, text) IS
'sequence number of a Snowflake ID within its tick, in the given layout';

/*
 * Encoding and time ranges
 */

CREATE FUNCTION snowflake_encode(created_at timestamptz, machine_id integer, sequence integer)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_encode'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer) IS
'Snowflake ID with the given time, machine ID and sequence number in the layout of snowflake.layout; not necessarily unique';

CREATE FUNCTION snowflake_encode(created_at timestamptz, machine_id integer, sequence integer, layout text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_encode'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, text) IS
'Snowflake ID with the given time, machine ID and sequence number in the given layout; not necessarily unique';

CREATE FUNCTION snowflake_boundary(instant timestamptz) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_boundary'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_boundary(timestamptz) IS
'boundary between Snowflake IDs at an instant, in the layout of snowflake.layout: IDs with earlier times are below it, all others are not';

CREATE FUNCTION snowflake_boundary(instant timestamptz, layout text) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_boundary'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_boundary(timestamptz, text) IS
'boundary between Snowflake IDs at an instant, in the given layout: IDs with earlier times are below it, all others are not';

CREATE FUNCTION snowflake_next_instant(instant timestamptz) RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_next_instant'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_next_instant(timestamptz) IS
'instant one microsecond later, or infinity after the last one; used when conditions on snowflake_timestamp(id) are turned into conditions on id';

-- neither STRICT nor with a SET clause: either would keep the planner from inlining it
CREATE FUNCTION snowflake_between(id bigint, start_at timestamptz, end_at timestamptz)
RETURNS boolean
LANGUAGE SQL STABLE PARALLEL SAFE
RETURN id >= snowflake_boundary(start_at) AND id < snowflake_boundary(end_at);

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
'whether the time of a Snowflake ID is at or after start_at and before end_at, in the layout of snowflake.layout; turned into two comparisons of id, for which an index can be used';

CREATE FUNCTION snowflake_width(span interval) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_width'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_width(interval) IS
'number of bigint values that an interval covers in the layout of snowflake.layout, where a part of a tick counts as a whole one; the interval must not contain months';

CREATE FUNCTION snowflake_width(span interval, layout text) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_width'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_width(interval, text) IS
'number of bigint values that an interval covers in the given layout, where a part of a tick counts as a whole one; the interval must not contain months';

/*
 * IDs as text
 */

CREATE FUNCTION snowflake_to_base32(id bigint) RETURNS text
AS 'MODULE_PATHNAME', 'snowflake_to_base32'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_to_base32(bigint) IS
'converts a Snowflake ID to 13 characters of Crockford''s base 32, in lower case; the texts sort in the order of the IDs';

CREATE FUNCTION snowflake_from_base32(id text) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_from_base32'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_from_base32(text) IS
'converts 13 characters of Crockford''s base 32 to a Snowflake ID; accepts both cases, o for 0, and i and l for 1';

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
'layouts that have a name: ids_per_second is the rate that one machine ID allows, exhausted_at the time at which the timestamp bits are exhausted, definition the value of snowflake.layout that defines the same layout';

GRANT SELECT ON snowflake_layouts TO PUBLIC;

/*
 * Statistics
 */

CREATE FUNCTION pg_stat_snowflake(
	OUT generator text,
	OUT machine_id integer,
	OUT layout text,
	OUT batches bigint,
	OUT ids_allocated bigint,
	OUT overflow_ticks bigint,
	OUT waits bigint,
	OUT wait_time double precision,
	OUT clock_regressions bigint,
	OUT max_regression interval,
	OUT ahead interval,
	OUT reserved_until timestamptz,
	OUT floor timestamptz,
	OUT reservation_writes bigint,
	OUT reservation_write_time double precision,
	OUT exhausted_at timestamptz,
	OUT lease_from timestamptz,
	OUT lease_until timestamptz,
	OUT registry_state text,
	OUT last_error text,
	OUT skew interval,
	OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_snowflake'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 2;

COMMENT ON FUNCTION pg_stat_snowflake() IS 'rows of the view pg_stat_snowflake';

CREATE VIEW pg_stat_snowflake AS SELECT * FROM pg_stat_snowflake();

COMMENT ON VIEW pg_stat_snowflake IS
'activity of each generator of this server since stats_reset, and its present state; wait_time and reservation_write_time are in milliseconds';

CREATE FUNCTION pg_stat_snowflake_reset() RETURNS void
AS 'MODULE_PATHNAME', 'pg_stat_snowflake_reset'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_stat_snowflake_reset() IS
'resets the counters of pg_stat_snowflake to 0';

REVOKE ALL ON FUNCTION pg_stat_snowflake(), pg_stat_snowflake_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_stat_snowflake() TO pg_monitor;
GRANT SELECT ON pg_stat_snowflake TO pg_monitor;

CREATE FUNCTION snowflake_version() RETURNS text
AS 'MODULE_PATHNAME', 'snowflake_version'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_version() IS
'version of the library that this session has loaded, such as 1.0.0; the version of the SQL objects is extversion in pg_extension';

/*
 * Creating partitions, and adopting existing tables
 *
 * Functions that run DDL are written in PL/pgSQL.  They run with the privileges of the caller.
 * Their search_path contains no schema of the caller's, and so they look up the extension's
 * schema, which can change.  They do so themselves: a helper function could not be found
 * without knowing the schema.
 */

/*
 * The functions for the IDs of a column have one of two prefixes.  A domain counts as its base
 * type, through any number of domains.  Other schemas can have types named sno, so the schema
 * is compared as well.  The casts to oid select the operators of pg_catalog: by name alone,
 * an operator in the extension's schema could be found.
 */
CREATE FUNCTION snowflake_function_prefix(relation regclass, attribute name) RETURNS text
LANGUAGE SQL STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
	WITH RECURSIVE types (oid, name, schema, base) AS (
		SELECT t.oid, t.typname, t.typnamespace, t.typbasetype
		FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
		WHERE a.attrelid = relation::oid AND a.attname = attribute
		UNION ALL
		SELECT t.oid, t.typname, t.typnamespace, t.typbasetype FROM types d JOIN pg_type t ON t.oid = d.base)
	SELECT CASE
		WHEN oid = 'bigint'::regtype::oid THEN 'snowflake'
		WHEN name = 'sno' AND schema = (SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake') THEN 'sno' END
	FROM types WHERE base = 0::oid;
END;

COMMENT ON FUNCTION snowflake_function_prefix(regclass, name) IS
'prefix of the functions for the IDs of a column: snowflake for bigint, sno for sno, also for domains over them; null for other types; internal';

/*
 * The start of each period is computed from start_at, not from the previous period: the 31st
 * plus one month plus one month is the 31st, not the 28th.  A name contains as many parts of
 * the start as all starts need.  If these include hours or smaller units, the name is in UTC,
 * in which no hour occurs twice.  The function is not STRICT, so that it is inlined and returns
 * rows as they are read: a caller that passes a second for a month gets the error at the first
 * period.
 */
CREATE FUNCTION snowflake_periods(start_at timestamptz, end_at timestamptz, step interval,
	OUT name text, OUT from_at timestamptz, OUT to_at timestamptz, OUT from_id bigint, OUT to_id bigint)
RETURNS SETOF record
LANGUAGE SQL STABLE PARALLEL SAFE
BEGIN ATOMIC
	WITH RECURSIVE units (rank, unit, format, in_utc) AS (
		VALUES
			(1, 'year', 'YYYY', false),
			(2, 'month', 'YYYY_MM', false),
			(3, 'day', 'YYYY_MM_DD', false),
			(4, 'hour', 'YYYY_MM_DD_HH24"z"', true),
			(5, 'minute', 'YYYY_MM_DD_HH24MI"z"', true),
			(6, 'second', 'YYYY_MM_DD_HH24MISS"z"', true),
			(7, 'microseconds', 'YYYY_MM_DD_HH24MISSUS"z"', true)),
	naming AS (
		SELECT u.format, u.in_utc FROM units u
		WHERE date_trunc(u.unit, step) = step AND
			CASE WHEN u.in_utc
				THEN date_trunc(u.unit, start_at AT TIME ZONE 'UTC') = start_at AT TIME ZONE 'UTC'
				ELSE date_trunc(u.unit, start_at) = start_at END
		ORDER BY u.rank LIMIT 1),
	counted (i, starts_at, ends_at) AS (
		SELECT 1, start_at, start_at + step
		WHERE isfinite(start_at) AND isfinite(end_at) AND start_at < end_at AND start_at + step > start_at
		UNION ALL
		SELECT i + 1, ends_at, start_at + (i + 1)::double precision * step FROM counted
		WHERE ends_at < end_at)
	SELECT CASE WHEN n.in_utc THEN to_char(c.starts_at AT TIME ZONE 'UTC', n.format) ELSE to_char(c.starts_at, n.format) END,
		c.starts_at, c.ends_at, snowflake_boundary(c.starts_at), snowflake_boundary(c.ends_at)
	FROM counted c, naming n;
END;

COMMENT ON FUNCTION snowflake_periods(timestamptz, timestamptz, interval) IS
'periods of length step from start_at on, until end_at is covered: the name of each, its times, and its Snowflake IDs, from from_id to before to_id, in the layout of snowflake.layout; no rows if step is not positive';

/*
 * LOCK TABLE takes a name.  If another table has been given the name by the time the lock is
 * acquired, it is the other table that is locked.
 */
CREATE FUNCTION snowflake_lock_table(relation regclass, exclusively boolean) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	name CONSTANT text := relation;
BEGIN
	IF relation IS NULL OR exclusively IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('argument "%s" must not be null', CASE WHEN relation IS NULL THEN 'relation' ELSE 'exclusively' END);
	END IF;
	IF pg_has_role((SELECT relowner FROM pg_class WHERE oid = relation), 'USAGE') IS NOT TRUE THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = format('must be owner of table %s', name);
	END IF;
	EXECUTE format(CASE WHEN exclusively THEN 'LOCK TABLE %s IN ACCESS EXCLUSIVE MODE'
		ELSE 'LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE' END, name);
	IF relation::text <> name THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('table %s was renamed or dropped while its lock was waited for', name);
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_lock_table(regclass, boolean) IS
'locks a table, which the caller must own: if exclusively is true, in ACCESS EXCLUSIVE mode with its partitions and children; otherwise the table alone, against changes of its partitions; internal';

/*
 * A partition is created as a table like the parent and then attached: unlike CREATE TABLE
 * ... PARTITION OF, this lets other sessions read and write the parent meanwhile.  The lock is
 * the one that ATTACH PARTITION takes.  It makes concurrent calls wait for each other, so that
 * the second call finds the partitions that the first has created.
 */
CREATE FUNCTION snowflake_create_partitions(
	parent regclass, start_at timestamptz, end_at timestamptz, step interval)
RETURNS SETOF regclass
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension_schema CONSTANT regnamespace := (SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	missing CONSTANT text := CASE WHEN parent IS NULL THEN 'parent' WHEN start_at IS NULL THEN 'start_at'
		WHEN end_at IS NULL THEN 'end_at' WHEN step IS NULL THEN 'step' END;
	parent_table record;
	prefix text;
	period record;
	existing record;
	base name;
	partition text;
BEGIN
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = format('argument "%s" must not be null', missing);
	END IF;
	EXECUTE format('SELECT %s.snowflake_lock_table($1, false)', extension_schema) USING parent;
	SELECT c.relnamespace::regnamespace AS schema, c.relname AS name, pg_get_userbyid(c.relowner) AS owner,
		concat(' USING ' || quote_ident(a.amname), ' TABLESPACE ' || quote_ident(t.spcname)) AS storage, k.attname AS key
	INTO parent_table
	FROM pg_partitioned_table p
		JOIN pg_class c ON c.oid = p.partrelid
		JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = p.partattrs[0]
		JOIN pg_opclass o ON o.oid = p.partclass[0]
		LEFT JOIN pg_am a ON a.oid = c.relam
		LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
	WHERE p.partrelid = parent AND p.partstrat = 'r' AND p.partnatts = 1 AND o.opcdefault;
	EXECUTE format('SELECT %s.snowflake_function_prefix($1, $2)', extension_schema) INTO prefix USING parent, parent_table.key;
	IF prefix IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('"%s" is not partitioned by range of a column of type bigint or sno', parent),
			HINT = 'Create it with PARTITION BY RANGE (column), where the column holds Snowflake IDs.';
	END IF;
	IF NOT isfinite(start_at) OR NOT isfinite(end_at) OR start_at > end_at OR start_at + step <= start_at THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'partitions need a finite start, a finite end that is not before it, and a step forward',
			DETAIL = format('They were to be from %s to %s by %s.', start_at, end_at, step);
	END IF;

	FOR period IN
		EXECUTE format('SELECT name, from_at, to_at, %1$s.%2$s_boundary(from_at)::text AS from_id, %1$s.%2$s_boundary(to_at)::text AS to_id'
			' FROM %1$s.snowflake_periods($1, $2, $3)', extension_schema, prefix) USING start_at, end_at, step
	LOOP
		-- boundaries never decrease as time moves forward
		IF period.from_id = period.to_id THEN
			RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
				MESSAGE = format('no Snowflake ID is from %s to %s', period.from_at, period.to_at),
				HINT = CASE prefix WHEN 'sno' THEN 'A period must be within the times of type sno, 2010 to 2079, and have 4 ms at least.'
					ELSE 'The layout is that of snowflake.layout: a period must be within it, and have a tick at least.' END;
		END IF;
		SELECT inhrelid::regclass AS partition, inhdetachpending AS is_leaving INTO existing
		FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
		WHERE inhparent = parent AND pg_get_expr(c.relpartbound, c.oid) =
			format('FOR VALUES FROM (%L) TO (%L)', period.from_id, period.to_id);
		IF existing.is_leaving THEN
			RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
				MESSAGE = format('partition "%s" is pending detach', existing.partition),
				HINT = format('Run ALTER TABLE %s DETACH PARTITION %s FINALIZE first.', parent, existing.partition);
		END IF;
		CONTINUE WHEN FOUND;

		-- a long name is shortened to make room for the period
		base := parent_table.name;
		WHILE octet_length(base || '_' || period.name) > current_setting('max_identifier_length')::integer LOOP
			base := left(base, -1);
		END LOOP;
		partition := format('%s.%I', parent_table.schema, base || '_' || period.name);
		BEGIN
			EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING COMPRESSION INCLUDING CONSTRAINTS INCLUDING DEFAULTS'
				' INCLUDING GENERATED INCLUDING STORAGE)', partition, parent) || parent_table.storage;
			IF parent_table.owner <> current_user THEN
				EXECUTE format('ALTER TABLE %s OWNER TO %I', partition, parent_table.owner);
			END IF;
			EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
				parent, partition, period.from_id, period.to_id);
		EXCEPTION WHEN invalid_object_definition OR duplicate_table THEN
			RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM,
				DETAIL = format('The partition was to hold the IDs from %s to %s.', period.from_at, period.to_at),
				HINT = CASE SQLSTATE WHEN '42P07' THEN 'A table of that name exists, and is not the partition of that period.'
					ELSE 'Start where a partition starts or ends, and keep the step and the TimeZone.' END;
		END;
		RETURN NEXT partition;
	END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_create_partitions(regclass, timestamptz, timestamptz, interval) IS
'creates the partitions of a table that is partitioned by range of Snowflake IDs, for the periods of length step from start_at on, until end_at is covered; periods that have a partition are skipped; returns the created partitions; requires ownership of the table';

/*
 * Raises the first reason against an adoption.  Changes no table, but issues an ID, to compare
 * it with the existing values.  The columns that refer to the adopted column by foreign keys
 * are checked, directly and indirectly.
 */
CREATE FUNCTION snowflake_check_adopt(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $$
DECLARE
	extension_schema CONSTANT regnamespace := (SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	target record;
	prefix text;
	narrow record;
	ids record;
BEGIN
	IF relation IS NULL OR attribute IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('argument "%s" must not be null', CASE WHEN relation IS NULL THEN 'relation' ELSE 'attribute' END);
	END IF;
	EXECUTE format('SELECT %s.snowflake_function_prefix($1, $2)', extension_schema) INTO prefix USING relation, attribute;
	SELECT c.relkind NOT IN ('r', 'p') AS no_table, a.attgenerated <> '' AS generated, a.attinhcount > 0 AS inherited,
		a.atttypid::regtype AS type, t.typcategory = 'N' AND t.typlen IN (2, 4) AS is_narrow,
		(SELECT i.inhparent::regclass FROM pg_inherits i WHERE i.inhrelid = c.oid ORDER BY i.inhseqno LIMIT 1) AS parent
	INTO target
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
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
	ELSIF prefix IS NULL AND NOT target.is_narrow THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of relation "%s" is of type %s', attribute, relation, target.type),
			DETAIL = 'It is to hold Snowflake IDs, which are of type bigint or sno.';
	END IF;

	-- for an inherited column, the column that it is inherited from
	WITH RECURSIVE holder (attrelid, attnum, attname) AS (
		SELECT attrelid, attnum, attname FROM pg_attribute WHERE attrelid = relation AND attname = attribute
		UNION
		SELECT a.attrelid, a.attnum, a.attname
		FROM holder h CROSS JOIN LATERAL (
			SELECT f.conrelid, pair.referring FROM pg_constraint f
				CROSS JOIN unnest(f.conkey, f.confkey) AS pair (referring, referred)
			WHERE f.contype = 'f' AND f.confrelid = h.attrelid AND pair.referred = h.attnum
			UNION ALL
			SELECT k.attrelid, k.attnum FROM pg_inherits i JOIN pg_attribute k ON k.attrelid = i.inhrelid
			WHERE i.inhparent = h.attrelid AND k.attname = h.attname
			UNION ALL
			SELECT k.attrelid, k.attnum FROM pg_inherits i JOIN pg_attribute k ON k.attrelid = i.inhparent
			WHERE i.inhrelid = h.attrelid AND k.attname = h.attname) AS related (relid, num)
		JOIN pg_attribute a ON a.attrelid = related.relid AND a.attnum = related.num)
	SELECT a.attrelid::regclass AS relation, a.attname AS name, a.atttypid::regtype AS type INTO narrow
	FROM holder JOIN pg_attribute a USING (attrelid, attnum) JOIN pg_type t ON t.oid = a.atttypid
	WHERE t.typcategory = 'N' AND t.typlen IN (2, 4) AND a.attinhcount = 0
	ORDER BY a.attrelid <> relation, a.attrelid, a.attnum LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of relation "%s" is of type %s', narrow.name, narrow.relation, narrow.type),
			DETAIL = 'It is to hold Snowflake IDs, which are of type bigint.',
			HINT = format('Change it first: ALTER TABLE %s ALTER COLUMN %I TYPE bigint.', narrow.relation, narrow.name);
	END IF;

	EXECUTE format('SELECT next::text, greatest::text, greatest OPERATOR(%1$s.>=) next AS is_above'
			' FROM (SELECT %2$s.%3$s_nextval() AS next) n, (SELECT %1$s.max(%4$I::%1$s.%6$s) AS greatest FROM %5$s) g',
		CASE prefix WHEN 'sno' THEN extension_schema ELSE 'pg_catalog' END, extension_schema, prefix, attribute, relation,
		CASE prefix WHEN 'sno' THEN 'sno' ELSE 'int8' END)
	INTO ids;
	IF ids.is_above THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('column "%s" of relation "%s" has values above the Snowflake IDs to come', attribute, relation),
			DETAIL = format('The greatest is %s, the next ID is %s.', ids.greatest, ids.next),
			HINT = 'Change those rows. If they are Snowflake IDs, see whether they are of the layout in snowflake.layout and of no time to come.';
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_check_adopt(regclass, name) IS
'raises the error that snowflake_adopt() would raise for a column, if any; changes no table, but issues an ID';

/*
 * An ID is generated before the lock is taken, so that no lock is held if the generator has to
 * wait or fails.
 *
 * A column that was GENERATED ALWAYS AS IDENTITY has rejected given keys, and a column with a
 * default accepts them.  A trigger cannot reject them.  It sees a row after its defaults were
 * filled in, when a given key looks like a generated one.  If it replaced all keys, it would
 * change those of OVERRIDING SYSTEM VALUE and of COPY, which IDENTITY accepts, and use two IDs
 * per row.  If it compared the key with snowflake_currval(), it would reject rows for which
 * another default or trigger has generated an ID as well.  The privilege to INSERT and UPDATE
 * the column is exact, but which roles should have it is the owner's decision.  An error would
 * obstruct the many users who write ALWAYS by habit.  So the function raises a NOTICE.
 */
CREATE FUNCTION snowflake_adopt(relation regclass, attribute name)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension_schema CONSTANT regnamespace := (SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	prefix_query CONSTANT text := format('SELECT %s.snowflake_function_prefix($1, $2)', extension_schema);
	prefix text;
	nextval text;
	member record;
	sequence record;
	sequences regclass[] := '{}';
	had_sequence regclass;
	was_always regclass;
BEGIN
	IF relation IS NULL OR attribute IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('argument "%s" must not be null', CASE WHEN relation IS NULL THEN 'relation' ELSE 'attribute' END);
	END IF;
	EXECUTE prefix_query INTO prefix USING relation, attribute;
	EXECUTE format('SELECT %s.%s_nextval()', extension_schema, coalesce(prefix, 'snowflake'));
	EXECUTE format('SELECT %s.snowflake_lock_table($1, true)', extension_schema) USING relation;
	EXECUTE format('SELECT %s.snowflake_check_adopt($1, $2)', extension_schema) USING relation, attribute;
	-- looked up again, since the column can have changed before the lock was acquired
	EXECUTE prefix_query INTO prefix USING relation, attribute;
	nextval := format('%s.%s_nextval()', extension_schema, prefix);

	-- the table comes before its partitions and children
	FOR member IN
		WITH RECURSIVE family (oid, depth) AS (
			SELECT relation::oid, 0 UNION ALL SELECT inhrelid, depth + 1 FROM pg_inherits JOIN family ON inhparent = family.oid)
		SELECT a.attrelid::regclass AS relation, a.attnum, coalesce(
			CASE a.attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' WHEN 'd' THEN 'GENERATED BY DEFAULT AS IDENTITY' END,
			pg_get_expr(d.adbin, d.adrelid), 'none') AS before, a.attidentity = 'a' AS is_always,
			EXISTS (SELECT FROM pg_depend JOIN pg_class s ON s.oid = refobjid AND s.relkind = 'S'
				WHERE classid = 'pg_attrdef'::regclass AND objid = d.oid AND refclassid = 'pg_class'::regclass) AS has_sequence
		FROM (SELECT oid, min(depth) AS depth FROM family GROUP BY oid) f
			JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = attribute
			LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		ORDER BY f.depth, f.oid
	LOOP
		FOR sequence IN
			SELECT objid::regclass AS name, deptype FROM pg_depend JOIN pg_class s ON s.oid = objid AND s.relkind = 'S'
			WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass
				AND refobjid = member.relation AND refobjsubid = member.attnum
			ORDER BY objid
		LOOP
			member.has_sequence := true;
			IF sequence.deptype = 'i' THEN
				member.before := format('%s (last value %s)', member.before,
					coalesce(pg_sequence_last_value(sequence.name)::text, 'none'));
			ELSE
				sequences := sequences || sequence.name;
			END IF;
		END LOOP;
		-- looked up now, since it can have been dropped with that of the parent
		IF (SELECT attidentity <> '' FROM pg_attribute WHERE attrelid = member.relation AND attnum = member.attnum) THEN
			EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', member.relation, attribute);
		END IF;
		EXECUTE format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT %s', member.relation, attribute, nextval);
		IF member.before <> nextval THEN
			RETURN NEXT format('%s.%I: default %s, was %s', member.relation, attribute, nextval, member.before);
		END IF;
		had_sequence := coalesce(had_sequence, CASE WHEN member.has_sequence THEN member.relation END);
		was_always := coalesce(was_always, CASE WHEN member.is_always THEN member.relation END);
	END LOOP;
	IF had_sequence IS NOT NULL THEN
		RAISE NOTICE USING MESSAGE = format('column "%s" of table %s no longer uses a sequence', attribute, had_sequence),
			DETAIL = 'After an INSERT, lastval() fails or returns the value of another sequence.  '
				'pg_get_serial_sequence() returns null for the column.',
			HINT = 'Use INSERT ... RETURNING to get new IDs.';
	END IF;
	IF was_always IS NOT NULL THEN
		RAISE NOTICE USING MESSAGE = format('column "%s" of table %s now accepts values given in INSERT and UPDATE', attribute, was_always),
			DETAIL = 'It was GENERATED ALWAYS AS IDENTITY, which rejects them.',
			HINT = 'To keep them out, grant INSERT and UPDATE on the other columns only.';
	END IF;

	-- the sequences that the columns owned, now that no default of theirs uses them
	FOR sequence IN
		SELECT name, name::text AS printed, coalesce(pg_sequence_last_value(name)::text, 'none') AS last_value
		FROM unnest(sequences) AS name
	LOOP
		BEGIN
			EXECUTE format('DROP SEQUENCE %s', sequence.name);
			RETURN NEXT format('sequence %s: dropped (last value %s)', sequence.printed, sequence.last_value);
		EXCEPTION WHEN dependent_objects_still_exist THEN
			EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', sequence.name);
			RETURN NEXT format('sequence %s: kept, since others use it (last value %s)', sequence.printed, sequence.last_value);
		END;
	END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_adopt(regclass, name) IS
'makes snowflake_nextval() the default of a bigint column, or sno_nextval() that of a sno column, in the table, its partitions and its children, in place of a sequence, IDENTITY or no default; drops the sequence unless other objects use it; returns a description of each change; requires ownership of the table';

/*
 * The durable state, of which a server has one for all its databases
 *
 * Only the first CREATE EXTENSION in a server makes a new state.  It leaves a mark in a catalog that
 * all databases share and pg_upgrade preserves: a grant of a privilege that everyone has anyway.
 */

CREATE FUNCTION snowflake_create_state(is_new boolean) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_create_state'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

DO $$
DECLARE
	marked boolean := EXISTS (SELECT FROM pg_catalog.pg_parameter_acl WHERE parname = 'snowflake.max_wait');
BEGIN
	IF NOT marked THEN
		LOCK TABLE pg_catalog.pg_parameter_acl IN SHARE ROW EXCLUSIVE MODE;
		marked := EXISTS (SELECT FROM pg_catalog.pg_parameter_acl WHERE parname = 'snowflake.max_wait');
	END IF;
	PERFORM snowflake_create_state(NOT marked);
	IF NOT marked THEN
		GRANT SET ON PARAMETER snowflake.max_wait TO PUBLIC;
	END IF;
END
$$;

DROP FUNCTION snowflake_create_state(boolean);

CREATE FUNCTION snowflake_accept_layout() RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_accept_layout'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_layout() IS
'lets this cluster issue Snowflake IDs in the layout of snowflake.layout from now on; they can equal IDs of the previous layout';

CREATE FUNCTION snowflake_accept_clock() RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_accept_clock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_clock() IS
'lets this server trust its clock after a jump forward of more than snowflake.max_clock_step';

CREATE FUNCTION snowflake_set_floor(instant timestamptz) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_set_floor'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_set_floor(timestamptz) IS
'moves the generator of Snowflake IDs to an instant, forward or backward, so that no later ID has an earlier time; after a move backward, IDs are issued twice if any was issued at or after the instant';

REVOKE ALL ON FUNCTION snowflake_accept_layout(), snowflake_accept_clock(),
	snowflake_set_floor(timestamptz) FROM PUBLIC;

/*
 * The type sno
 */

CREATE TYPE sno;

CREATE FUNCTION sno_in(cstring) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sno_out(sno) RETURNS cstring
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sno_recv(internal) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sno_send(sno) RETURNS bytea
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_in(cstring) IS 'I/O';
COMMENT ON FUNCTION sno_out(sno) IS 'I/O';
COMMENT ON FUNCTION sno_recv(internal) IS 'I/O';
COMMENT ON FUNCTION sno_send(sno) IS 'I/O';

CREATE TYPE sno (
	INPUT = sno_in,
	OUTPUT = sno_out,
	RECEIVE = sno_recv,
	SEND = sno_send,
	INTERNALLENGTH = 10,
	ALIGNMENT = char,
	STORAGE = plain
);

COMMENT ON TYPE sno IS
'80-bit ID: time in units of 4 ms, tick-tock bit, metabyte, partition, sequence number; its text has 16 characters of 2 to 9 and a to x';

CREATE FUNCTION sno_to_bytea(id sno) RETURNS bytea
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sno_from_bytea(bytes bytea) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_to_bytea(sno) IS 'converts a sno to its 10 bytes, the most significant first';
COMMENT ON FUNCTION sno_from_bytea(bytea) IS 'converts 10 bytes, the most significant first, to a sno';

CREATE CAST (sno AS bytea) WITH FUNCTION sno_to_bytea(sno);
CREATE CAST (bytea AS sno) WITH FUNCTION sno_from_bytea(bytea);

CREATE FUNCTION sno_to_uuid(id sno) RETURNS uuid
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sno_from_uuid(uuid uuid) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_to_uuid(sno) IS
'converts a sno to a value of type uuid whose 16 bytes are the characters of the sno, to store it in a column of that type; sorts in the order of the IDs';
COMMENT ON FUNCTION sno_from_uuid(uuid) IS
'converts a result of sno_to_uuid() back to the sno';

/*
 * Order
 */

CREATE FUNCTION sno_lt(sno, sno) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_le(sno, sno) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_eq(sno, sno) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_ne(sno, sno) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_ge(sno, sno) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_gt(sno, sno) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_cmp(sno, sno) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_sortsupport(internal) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sno_hash(sno) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_hash_extended(sno, bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_smaller(sno, sno) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;
CREATE FUNCTION sno_larger(sno, sno) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE LEAKPROOF;

COMMENT ON FUNCTION sno_lt(sno, sno) IS 'implementation of < operator';
COMMENT ON FUNCTION sno_le(sno, sno) IS 'implementation of <= operator';
COMMENT ON FUNCTION sno_eq(sno, sno) IS 'implementation of = operator';
COMMENT ON FUNCTION sno_ne(sno, sno) IS 'implementation of <> operator';
COMMENT ON FUNCTION sno_ge(sno, sno) IS 'implementation of >= operator';
COMMENT ON FUNCTION sno_gt(sno, sno) IS 'implementation of > operator';
COMMENT ON FUNCTION sno_cmp(sno, sno) IS 'less-equal-greater';
COMMENT ON FUNCTION sno_sortsupport(internal) IS 'sort support';
COMMENT ON FUNCTION sno_hash(sno) IS 'hash';
COMMENT ON FUNCTION sno_hash_extended(sno, bigint) IS 'hash';
COMMENT ON FUNCTION sno_smaller(sno, sno) IS 'smaller of two';
COMMENT ON FUNCTION sno_larger(sno, sno) IS 'larger of two';

-- for <, <=, >= and >: the estimators of PostgreSQL do not support the type
CREATE FUNCTION sno_rangesel(internal, oid, internal, integer) RETURNS double precision
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_rangesel(internal, oid, internal, integer) IS
'restriction selectivity of <, <=, >= and > of type sno';

CREATE OPERATOR < (LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_lt,
	COMMUTATOR = >, NEGATOR = >=, RESTRICT = sno_rangesel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_le,
	COMMUTATOR = >=, NEGATOR = >, RESTRICT = sno_rangesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_eq,
	COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_ne,
	COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_ge,
	COMMUTATOR = <=, NEGATOR = <, RESTRICT = sno_rangesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_gt,
	COMMUTATOR = <, NEGATOR = <=, RESTRICT = sno_rangesel, JOIN = scalargtjoinsel);

COMMENT ON OPERATOR < (sno, sno) IS 'less than';
COMMENT ON OPERATOR <= (sno, sno) IS 'less than or equal';
COMMENT ON OPERATOR = (sno, sno) IS 'equal';
COMMENT ON OPERATOR <> (sno, sno) IS 'not equal';
COMMENT ON OPERATOR >= (sno, sno) IS 'greater than or equal';
COMMENT ON OPERATOR > (sno, sno) IS 'greater than';

CREATE OPERATOR CLASS sno_ops DEFAULT FOR TYPE sno USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 sno_cmp(sno, sno),
	FUNCTION 2 sno_sortsupport(internal),
	FUNCTION 4 btequalimage(oid);

CREATE OPERATOR CLASS sno_ops DEFAULT FOR TYPE sno USING hash AS
	OPERATOR 1 =,
	FUNCTION 1 sno_hash(sno),
	FUNCTION 2 sno_hash_extended(sno, bigint);

CREATE OPERATOR CLASS sno_minmax_ops DEFAULT FOR TYPE sno USING brin AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 brin_minmax_opcinfo(internal),
	FUNCTION 2 brin_minmax_add_value(internal, internal, internal, internal),
	FUNCTION 3 brin_minmax_consistent(internal, internal, internal),
	FUNCTION 4 brin_minmax_union(internal, internal, internal);

CREATE FUNCTION sno_distance(internal, internal) RETURNS double precision
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_distance(internal, internal) IS
'distance between two values of type sno; for BRIN minmax-multi';

CREATE OPERATOR CLASS sno_minmax_multi_ops FOR TYPE sno USING brin AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 brin_minmax_multi_opcinfo(internal),
	FUNCTION 2 brin_minmax_multi_add_value(internal, internal, internal, internal),
	FUNCTION 3 brin_minmax_multi_consistent(internal, internal, internal, integer),
	FUNCTION 4 brin_minmax_multi_union(internal, internal, internal),
	FUNCTION 5 brin_minmax_multi_options(internal),
	FUNCTION 11 sno_distance(internal, internal);

CREATE OPERATOR CLASS sno_bloom_ops FOR TYPE sno USING brin AS
	OPERATOR 1 =,
	FUNCTION 1 brin_bloom_opcinfo(internal),
	FUNCTION 2 brin_bloom_add_value(internal, internal, internal, internal),
	FUNCTION 3 brin_bloom_consistent(internal, internal, internal, integer),
	FUNCTION 4 brin_bloom_union(internal, internal, internal),
	FUNCTION 5 brin_bloom_options(internal),
	FUNCTION 11 sno_hash(sno);

CREATE AGGREGATE min(sno) (SFUNC = sno_smaller, STYPE = sno, COMBINEFUNC = sno_smaller, SORTOP = <, PARALLEL = SAFE);
CREATE AGGREGATE max(sno) (SFUNC = sno_larger, STYPE = sno, COMBINEFUNC = sno_larger, SORTOP = >, PARALLEL = SAFE);

COMMENT ON AGGREGATE min(sno) IS 'minimum value of all sno input values';
COMMENT ON AGGREGATE max(sno) IS 'maximum value of all sno input values';

/*
 * Parts of a sno
 */

CREATE FUNCTION sno_decode(id sno,
	OUT created_at timestamptz, OUT metabyte integer, OUT partition integer, OUT sequence integer, OUT tick_tock boolean)
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_decode(sno) IS
'time, metabyte, partition, sequence number and phase of a sno';

CREATE FUNCTION sno_timestamp(id sno) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_timestamp(sno) IS
'time of a sno, which is the start of its unit of 4 ms';

CREATE FUNCTION sno_metabyte(id sno) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_metabyte(sno) IS 'metabyte of a sno, 0 to 255';

CREATE FUNCTION sno_partition(id sno) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_partition(sno) IS 'partition of a sno, 0 to 65535';

CREATE FUNCTION sno_sequence(id sno) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_sequence(sno) IS 'sequence number of a sno within its unit of 4 ms, 0 to 65535';

CREATE FUNCTION sno_tick_tock(id sno) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_tick_tock(sno) IS
'phase of a sno, which changes each time the clock of its partition is set back';

CREATE FUNCTION sno_encode(created_at timestamptz, metabyte integer, partition integer, sequence integer,
	tick_tock boolean DEFAULT false)
RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_encode(timestamptz, integer, integer, integer, boolean) IS
'sno with the given time, metabyte, partition, sequence number and phase; not necessarily unique';

CREATE FUNCTION sno_boundary(instant timestamptz) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_boundary(timestamptz) IS
'boundary between values of type sno at an instant: those with earlier times are below it, all others are not';

-- neither STRICT nor with a SET clause: either would keep the planner from inlining it
CREATE FUNCTION sno_between(id sno, start_at timestamptz, end_at timestamptz)
RETURNS boolean
LANGUAGE SQL IMMUTABLE PARALLEL SAFE
RETURN id >= sno_boundary(start_at) AND id < sno_boundary(end_at);

COMMENT ON FUNCTION sno_between(sno, timestamptz, timestamptz) IS
'whether the time of a sno is at or after start_at and before end_at; turned into two comparisons of id, for which an index can be used';

CREATE FUNCTION sno_zero() RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_zero() IS 'smallest sno, in which all bits are 0';

/*
 * Generating IDs of type sno
 */

CREATE FUNCTION sno_nextval(metabyte integer DEFAULT 0) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION sno_nextval(integer) IS
'generates a sno with the given metabyte, 0 to 255, which is unique whatever its metabyte; if the clock was set back, in the other phase';

CREATE FUNCTION sno_nextvals(count integer, metabyte integer DEFAULT 0) RETURNS SETOF sno
AS 'MODULE_PATHNAME', 'sno_nextvals' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 1000;

COMMENT ON FUNCTION sno_nextvals(integer, integer) IS
'generates count IDs of type sno with the given metabyte, none if count is 0; returns them one by one in a select list';

CREATE FUNCTION sno_at(created_at timestamptz, metabyte integer DEFAULT 0) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION sno_at(timestamptz, integer) IS
'sno with the given time and metabyte and the partition of this server, with a sequence number counted by the session; not necessarily unique';

CREATE FUNCTION sno_snapshot(
	OUT partition integer, OUT sequence_min integer, OUT sequence_max integer, OUT sequence integer,
	OUT now timestamptz, OUT wall_hi timestamptz, OUT wall_safe timestamptz, OUT drifts bigint)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_snapshot() IS
'state of the generator of type sno: the time and sequence number up to which batches were taken, the time up to which both phases can have been used, and the number of changes of phase, modulo 4 over restarts';

CREATE FUNCTION sno_set_floor(instant timestamptz) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sno_set_floor(timestamptz) IS
'moves the generator of IDs of type sno to an instant, forward or backward, so that no later ID has an earlier time; after a move backward, IDs are issued twice if any was issued at or after the instant, in either phase';

REVOKE ALL ON FUNCTION sno_snapshot(), sno_set_floor(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sno_snapshot() TO pg_monitor;
