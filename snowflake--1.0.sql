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
