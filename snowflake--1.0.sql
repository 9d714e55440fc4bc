/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

-- both would issue IDs independently of each other, and have functions of the same names
DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_proc WHERE proname = 'snowflake_checked') THEN
		RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
			MESSAGE = 'this database has the functions of portable/snowflake.sql',
			DETAIL = 'The extension has functions of the same names, and has no record of the IDs'
				' that these functions have issued.',
			HINT = 'To replace these functions with the extension, run portable/to_extension.sql.';
	END IF;
END
$$;

/*
 * Planner support: queries by the time of an ID use an index on the ID
 */

CREATE FUNCTION snowflake_timestamp_support(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp_support(internal) IS
'planner support function of functions that return the time of an ID; internal';

CREATE FUNCTION snowflake_boundary_support(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_boundary_support(internal) IS
'planner support function of snowflake_boundary(timestamptz); internal';

/*
 * Generating IDs
 */

CREATE FUNCTION snowflake_id() RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval'
LANGUAGE C STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_id() IS
'generates a Snowflake ID, which is unique and greater than all earlier IDs of this session';

/*
 * A name that resembles nextval().  Rails takes any default that contains "nextval" for a
 * sequence, and JDBC reports such a column as bigserial.
 */
CREATE FUNCTION snowflake_nextval() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_nextval() IS
'generates a Snowflake ID, like snowflake_id()';

CREATE FUNCTION snowflake_nextvals(count integer) RETURNS SETOF bigint
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED ROWS 1000;

COMMENT ON FUNCTION snowflake_nextvals(integer) IS
'generates the given number of Snowflake IDs, in increasing order';

CREATE FUNCTION snowflake_currval() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_currval() IS
'returns the last Snowflake ID that this session has generated';

/*
 * Decoding.  f(id) uses the layout of the setting snowflake.layout and so is STABLE;
 * f(id, layout) is IMMUTABLE.
 */

CREATE FUNCTION snowflake_decode(id bigint,
	OUT created_at timestamptz, OUT machine_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT snowflake_timestamp_support;

COMMENT ON FUNCTION snowflake_decode(bigint) IS
'returns the time, machine ID and sequence number of a Snowflake ID in the layout of snowflake.layout';

CREATE FUNCTION snowflake_decode(id bigint, layout text,
	OUT created_at timestamptz, OUT machine_id integer, OUT sequence integer)
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT snowflake_timestamp_support;

COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
'returns the time, machine ID and sequence number of a Snowflake ID in the given layout';

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT snowflake_timestamp_support;

COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
'returns the time of a Snowflake ID, which is the start of its tick, in the layout of snowflake.layout';

CREATE FUNCTION snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT snowflake_timestamp_support;

COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
'returns the time of a Snowflake ID, which is the start of its tick, in the given layout';

CREATE FUNCTION snowflake_machine_id(id bigint) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_machine_id(bigint) IS
'returns the machine ID of a Snowflake ID in the layout of snowflake.layout';

CREATE FUNCTION snowflake_machine_id(id bigint, layout text) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_machine_id(bigint, text) IS
'returns the machine ID of a Snowflake ID in the given layout';

CREATE FUNCTION snowflake_sequence(id bigint) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_sequence(bigint) IS
'returns the sequence number of a Snowflake ID within its tick, in the layout of snowflake.layout';

CREATE FUNCTION snowflake_sequence(id bigint, layout text) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_sequence(bigint, text) IS
'returns the sequence number of a Snowflake ID within its tick, in the given layout';

/*
 * Encoding and time ranges
 */

CREATE FUNCTION snowflake_encode(created_at timestamptz, machine_id integer, sequence integer)
RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer) IS
'returns the Snowflake ID with the given time, rounded down to a tick, machine ID and sequence number, in the layout of snowflake.layout';

CREATE FUNCTION snowflake_encode(created_at timestamptz, machine_id integer, sequence integer,
	layout text)
RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, text) IS
'returns the Snowflake ID with the given time, rounded down to a tick, machine ID and sequence number, in the given layout';

CREATE FUNCTION snowflake_boundary(instant timestamptz) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE SUPPORT snowflake_boundary_support;

COMMENT ON FUNCTION snowflake_boundary(timestamptz) IS
'returns the lower bound of the Snowflake IDs with the given time or a later one, in the layout of snowflake.layout';

CREATE FUNCTION snowflake_boundary(instant timestamptz, layout text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_boundary(timestamptz, text) IS
'returns the lower bound of the Snowflake IDs with the given time or a later one, in the given layout';

CREATE FUNCTION snowflake_later(instant timestamptz, microseconds bigint) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_later(timestamptz, bigint) IS
'returns the instant that is a number of microseconds later, or infinity; internal';

-- neither STRICT nor with a SET clause: either would keep the planner from inlining it
CREATE FUNCTION snowflake_between(id bigint, start_at timestamptz, end_at timestamptz)
RETURNS boolean
LANGUAGE SQL STABLE PARALLEL SAFE
RETURN id >= snowflake_boundary(start_at) AND id < snowflake_boundary(end_at);

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
'returns whether the time of a Snowflake ID is at or after start_at and before end_at, in the layout of snowflake.layout';

/*
 * IDs as text
 */

CREATE FUNCTION snowflake_to_base32(id bigint) RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT snowflake_timestamp_support;

COMMENT ON FUNCTION snowflake_to_base32(bigint) IS
'returns a Snowflake ID as 13 characters of Crockford''s base 32, which sort in the order of the IDs';

CREATE FUNCTION snowflake_from_base32(id text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_from_base32(text) IS
'returns the Snowflake ID that 13 characters of Crockford''s base 32 represent';

CREATE FUNCTION snowflake_base32_id(id text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_base32_id(text) IS
'returns the Snowflake ID whose snowflake_to_base32() is the given text, or null; internal';

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
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 10;

COMMENT ON FUNCTION snowflake_layouts() IS 'rows of the view snowflake_layouts; internal';

CREATE VIEW snowflake_layouts AS SELECT * FROM snowflake_layouts();

COMMENT ON VIEW snowflake_layouts IS
'layouts that have a name, with their capacity, the end of their time, and their definition';

/*
 * The horizon: reading new rows by key
 */

CREATE FUNCTION snowflake_horizon() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_horizon() IS
'returns the ID below which the calling statement sees all rows that this database will ever have';

CREATE PROCEDURE snowflake_wait(next_id bigint, timeout interval,
	INOUT horizon bigint DEFAULT NULL)
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON PROCEDURE snowflake_wait(bigint, interval, bigint) IS
'sleeps until the horizon of the database is above next_id, or for the timeout, and returns the horizon';

/*
 * The horizon of several servers: propose on all of them, then promise the least proposal on all
 */

CREATE FUNCTION snowflake_propose_horizon() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_propose_horizon() IS
'returns the horizon of this server, as a proposal for a common horizon of several servers';

CREATE FUNCTION snowflake_promise_horizon(proposal bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_promise_horizon(bigint) IS
'promises that no row below the result, which is at most the proposal, will appear in any database of this server';

/*
 * A trigger whose name comes last in the alphabet is called last, and so sees the ID that other
 * triggers may have set.
 */
CREATE FUNCTION snowflake_feed_guard() RETURNS trigger
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON FUNCTION snowflake_feed_guard() IS
'trigger function of tables with a feed, which rejects a row whose ID is below the horizon';

/*
 * Consumers of a feed
 *
 * A consumer is a row of a table of the user's, with its position: the next ID that it processes.
 * The privileges on the table determine which roles can use it.  The table does not belong to the
 * extension: tools that compare a schema with their models would find an unknown table.
 *
 * snowflake_process() runs the command of the caller, and so with the search_path of the caller.
 * All else that it does itself names pg_catalog.
 *
 * The position is locked before the snapshot of the horizon is taken, so that it is not above the
 * horizon.  A new consumer begins at the horizon at most, for the same reason.
 *
 * A session that inserts a row with the consumer of a row that is not committed waits for its
 * transaction.  So a session that inserts a new consumer holds an advisory lock until its
 * transaction ends, and a call that must not wait returns if it cannot get the lock.
 */
CREATE FUNCTION snowflake_begin_processing(
	positions regclass, consumer text, start_at timestamptz, at_most interval, wait boolean,
	OUT first_id bigint, OUT next_id bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	advisory CONSTANT bigint := hashtextextended(consumer, positions::oid::bigint);
	horizon bigint;
	is_null boolean;
	is_new boolean := false;
BEGIN
	-- With an older snapshot, the horizon could be below the position.
	IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_transaction_state',
			MESSAGE = 'snowflake_process() must be called in a READ COMMITTED transaction',
			DETAIL = 'The snapshot of this transaction can be older than the position.',
			HINT = 'Use BEGIN ISOLATION LEVEL READ COMMITTED.';
	END IF;
	LOOP
		EXECUTE format('SELECT next_id FROM %s WHERE consumer = $1 FOR UPDATE %s', positions,
			CASE WHEN NOT wait THEN 'SKIP LOCKED' END) INTO first_id USING consumer;
		-- After a start of the server, no horizon may be known for a snapshot that was taken before
		-- the first call.  The snapshot of a second call is later.
		BEGIN
			EXECUTE format('SELECT %s.snowflake_horizon()', extension) INTO horizon;
		EXCEPTION WHEN object_not_in_prerequisite_state THEN
			EXECUTE format('SELECT %s.snowflake_horizon()', extension) INTO horizon;
		END;
		EXIT WHEN first_id IS NOT NULL;
		EXECUTE format('SELECT next_id IS NULL FROM %s WHERE consumer = $1', positions)
		INTO is_null USING consumer;
		IF is_null THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
				MESSAGE = format('the position of consumer "%s" is null', consumer);
		ELSIF is_null IS NULL THEN
			IF NOT wait AND NOT pg_try_advisory_xact_lock(advisory) THEN RETURN; END IF;
			PERFORM pg_advisory_xact_lock(advisory);
			EXECUTE format('INSERT INTO %s (consumer, next_id)
				VALUES ($1, least(coalesce(%s.snowflake_boundary($2), 0), $3))
				ON CONFLICT (consumer) DO NOTHING RETURNING next_id', positions, extension)
			INTO first_id USING consumer, start_at, horizon;
			is_new := first_id IS NOT NULL;
			EXIT WHEN is_new;
			EXECUTE format('SELECT next_id IS NULL FROM %s WHERE consumer = $1', positions)
			INTO is_null USING consumer;
			IF is_null IS NULL THEN
				RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
					MESSAGE = format('could not store the position of consumer "%s"', consumer),
					DETAIL = format('INSERT into table %s has stored no row.', positions),
					HINT = 'Look for a trigger or a rule of the table that discards rows.';
			END IF;
		END IF;
		IF NOT wait THEN RETURN; END IF;
	END LOOP;
	-- A horizon can be lower than the one before if many others are taken at the same time.  A
	-- later snapshot has a higher one.
	FOR i IN 1 .. 3 LOOP
		EXIT WHEN first_id <= horizon;
		EXECUTE format('SELECT %s.snowflake_horizon()', extension) INTO horizon;
	END LOOP;
	IF first_id > horizon THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('the position of consumer "%s" is above the horizon', consumer),
			DETAIL = format('The position is %s, and the horizon is %s.  New rows can get IDs '
				'between them, and would be missed.', first_id, horizon),
			HINT = 'If the database was restored, use snowflake_set_floor() with a time after '
				'the position.  If the generator was moved back, lower the position.';
	ELSIF first_id = 0 AND at_most IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('argument "at_most" requires a start time for consumer "%s"',
				consumer),
			DETAIL = 'The position of the consumer is 0, which has no time.',
			HINT = 'Pass the time of the oldest row as "start_at".';
	END IF;
	EXECUTE format('SELECT least($1,
		%1$s.snowflake_boundary(%1$s.snowflake_timestamp($2) + $3))', extension)
	INTO next_id USING horizon, first_id, at_most;
	IF is_new THEN
		RAISE NOTICE USING
			MESSAGE = format('consumer "%s" is new and begins at ID %s', consumer, first_id),
			HINT = format('If the name is wrong, delete its row from table %s.', positions);
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_begin_processing(regclass, text, timestamptz, interval, boolean) IS
'locks or creates the position of a consumer for snowflake_process(), and returns the bounds of the command; internal';

CREATE PROCEDURE snowflake_process(
	positions regclass, consumer text, command text, start_at timestamptz DEFAULT NULL,
	at_most interval DEFAULT NULL, wait boolean DEFAULT true,
	INOUT first_id bigint DEFAULT NULL, INOUT next_id bigint DEFAULT NULL)
LANGUAGE plpgsql
AS $$
DECLARE
	extension CONSTANT text :=
		(SELECT extnamespace::pg_catalog.regnamespace::pg_catalog.text
		FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'snowflake'::name);
	stored bigint;
BEGIN
	IF positions IS NULL OR consumer IS NULL OR command IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = 'arguments "positions", "consumer" and "command" must not be null';
	ELSIF at_most OPERATOR(pg_catalog.<=) interval '0' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'argument "at_most" must be greater than zero';
	-- only spaces, semicolons and comments
	ELSIF command OPERATOR(pg_catalog.~) '^(\s|;|--[^\r\n]*|/\*([^*]|\*+[^*/])*\*+/)*$' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'argument "command" must contain a statement';
	END IF;
	EXECUTE 'SELECT * FROM ' OPERATOR(pg_catalog.||) extension
		OPERATOR(pg_catalog.||) '.snowflake_begin_processing($1, $2, $3, $4, $5)'
	INTO first_id, next_id USING positions, consumer, start_at, at_most, wait;
	IF next_id OPERATOR(pg_catalog.>) first_id THEN
		EXECUTE command USING first_id, next_id;
		EXECUTE 'UPDATE ' OPERATOR(pg_catalog.||) positions::pg_catalog.text
			OPERATOR(pg_catalog.||) ' SET next_id = $1 WHERE consumer OPERATOR(pg_catalog.=) $2'
			OPERATOR(pg_catalog.||) ' RETURNING next_id'
		INTO stored USING next_id, consumer;
		IF coalesce(stored OPERATOR(pg_catalog.<>) next_id, true) THEN
			RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
				MESSAGE = pg_catalog.format('could not store the position of consumer "%s"',
					consumer),
				DETAIL = CASE WHEN stored IS NULL
					THEN pg_catalog.format('UPDATE of table %s has stored no position.', positions)
					ELSE pg_catalog.format('UPDATE of table %s has stored the position %s instead'
						' of %s.', positions, stored, next_id) END,
				HINT = 'Look for a trigger of the table, or a statement of the command, that'
					' changes or removes the row.';
		END IF;
	END IF;
END
$$;

COMMENT ON PROCEDURE snowflake_process IS
'runs a command for the IDs of a feed that a consumer has not processed yet, and stores the new position of the consumer';

/*
 * Each look has a new snapshot.  The lengths of the sleeps are added up, and the clock is not read:
 * if it is set back, only the current sleep takes longer, like any pg_sleep().
 */
CREATE PROCEDURE snowflake_wait_for_consumer(
	positions regclass, consumer text, id bigint, timeout interval,
	INOUT next_id bigint DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	own_id bigint;
	has_row boolean;
	pause interval := '10 ms';
	rest interval := timeout;
BEGIN
	IF positions IS NULL OR consumer IS NULL OR id IS NULL OR timeout IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE =
			'arguments "positions", "consumer", "id" and "timeout" must not be null';
	ELSIF timeout < interval '0' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'argument "timeout" must not be negative';
	ELSIF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_transaction_state', MESSAGE =
			'snowflake_wait_for_consumer() must be called in a READ COMMITTED transaction',
			DETAIL = 'The snapshot of this transaction does not show later positions.',
			HINT = 'Use BEGIN ISOLATION LEVEL READ COMMITTED.';
	END IF;
	EXECUTE format('SELECT min(first_id) FROM %s.pg_stat_snowflake_horizon WHERE pid = $1',
		extension) INTO own_id USING pg_backend_pid();
	IF own_id <= id THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_transaction_state', MESSAGE =
			'snowflake_wait_for_consumer() cannot wait for the end of its own transaction',
			DETAIL = format('The ID %s cannot be processed yet, because this transaction has '
				'taken the ID %s.', id, own_id),
			HINT = 'Commit the transaction first.';
	END IF;
	LOOP
		EXECUTE format('SELECT next_id, true FROM %s WHERE consumer = $1', positions)
		INTO next_id, has_row USING consumer;
		IF has_row IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'undefined_object',
				MESSAGE = format('consumer "%s" does not exist', consumer),
				DETAIL = format('Table %s has no row of this consumer.', positions),
				HINT = 'Call snowflake_process() for this consumer first.';
		ELSIF next_id IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
				MESSAGE = format('the position of consumer "%s" is null', consumer);
		END IF;
		EXIT WHEN next_id > id OR rest <= interval '0';
		pause := least(pause, rest);
		PERFORM pg_sleep(extract(epoch FROM pause));
		rest := rest - pause;
		pause := least(pause * 2, interval '100 ms');
	END LOOP;
END
$$;

COMMENT ON PROCEDURE snowflake_wait_for_consumer(regclass, text, bigint, interval, bigint) IS
'waits until a consumer of snowflake_process() has processed an ID, or for the timeout, and returns the position of the consumer';

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
'80-bit ID with a time in units of 4 ms, a metabyte, a partition and a sequence number';

CREATE FUNCTION sno_from_bytea(bytes bytea) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_from_bytea(bytea) IS
'converts 10 bytes, the most significant first, to a sno';

CREATE CAST (sno AS bytea) WITH FUNCTION sno_send(sno);
CREATE CAST (bytea AS sno) WITH FUNCTION sno_from_bytea(bytea);

CREATE FUNCTION sno_to_uuid(id sno) RETURNS uuid
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_to_uuid(sno) IS
'converts a sno to a uuid whose 16 bytes are the characters of the sno';

CREATE FUNCTION sno_from_uuid(uuid uuid) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

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
'restriction selectivity of <, <=, >= and > of type sno; internal';

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

CREATE AGGREGATE min(sno) (SFUNC = sno_smaller, STYPE = sno, COMBINEFUNC = sno_smaller, SORTOP = <,
	PARALLEL = SAFE);
CREATE AGGREGATE max(sno) (SFUNC = sno_larger, STYPE = sno, COMBINEFUNC = sno_larger, SORTOP = >,
	PARALLEL = SAFE);

COMMENT ON AGGREGATE min(sno) IS 'minimum value of all sno input values';
COMMENT ON AGGREGATE max(sno) IS 'maximum value of all sno input values';

/*
 * Parts of a sno
 */

CREATE FUNCTION sno_decode(id sno,
	OUT created_at timestamptz, OUT metabyte integer, OUT partition integer, OUT sequence integer,
	OUT tick_tock boolean)
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT snowflake_timestamp_support;

COMMENT ON FUNCTION sno_decode(sno) IS
'time, metabyte, partition, sequence number and line of a sno';

CREATE FUNCTION sno_timestamp(id sno) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT snowflake_timestamp_support;

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

COMMENT ON FUNCTION sno_sequence(sno) IS
'sequence number of a sno within its unit of 4 ms, 0 to 65535';

CREATE FUNCTION sno_encode(created_at timestamptz, metabyte integer, partition integer,
	sequence integer, tick_tock boolean DEFAULT false)
RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_encode(timestamptz, integer, integer, integer, boolean) IS
'returns the sno with the given time, rounded down to 4 ms, metabyte, partition, sequence number and line';

CREATE FUNCTION sno_boundary(instant timestamptz) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_boundary(timestamptz) IS
'returns the lower bound of the values of type sno with the given time or a later one';

/*
 * Generating IDs of type sno
 */

/*
 * Not one function whose argument has a default: then another role could create one without
 * arguments in the same schema, and a call without arguments would be ambiguous.
 */
CREATE FUNCTION sno_nextval() RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION sno_nextval() IS
'generates a sno with the metabyte 0';

CREATE FUNCTION sno_nextval(metabyte integer) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION sno_nextval(integer) IS
'generates a sno with the given metabyte';

CREATE FUNCTION sno_nextvals(count integer, metabyte integer DEFAULT 0) RETURNS SETOF sno
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED ROWS 1000;

COMMENT ON FUNCTION sno_nextvals(integer, integer) IS
'generates the given number of IDs of type sno with the given metabyte';

CREATE FUNCTION sno_at(created_at timestamptz, metabyte integer DEFAULT 0) RETURNS sno
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION sno_at(timestamptz, integer) IS
'returns a sno with the given time and metabyte and the partition of this server, which is not necessarily unique';

/*
 * Tables
 *
 * These functions run with the privileges of the caller, and the internal functions that they call
 * do so as well.  PostgreSQL requires that the caller may call those, too, so all roles may.  They
 * do nothing that a role cannot do by statements of its own.
 *
 * The schema of the extension can change, and other roles can have functions in it.  Functions in
 * PL/pgSQL look up names when they run.  Their search_path is pg_catalog, and they call functions
 * of the extension by EXECUTE, with the name of its schema.  The names in a parsed body were looked
 * up when the function was created.  In both, each call and operator has exactly the types of the
 * intended function or operator, so that no other one can match better.
 *
 * A domain counts as its base type, through any number of domains.
 */

/*
 * LOCK TABLE takes a name.  If another table has been given the name by the time the lock is
 * acquired, it is the other table that is locked.
 */
CREATE FUNCTION snowflake_lock(relation regclass, target text, mode text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	locked_name CONSTANT text := relation;
BEGIN
	EXECUTE format('LOCK TABLE %s %s IN %s MODE', target, locked_name, mode);
	IF relation::text <> locked_name THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('could not lock table %s', locked_name),
			DETAIL = 'The table was renamed or dropped while the lock was awaited.';
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_lock(regclass, text, text) IS
'locks a table in the given mode, with its children unless target is ONLY; internal';

-- Null if there is no such column.
CREATE FUNCTION snowflake_column_type(relation regclass, attribute name) RETURNS regtype
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	type oid := (SELECT a.atttypid FROM pg_attribute a
		WHERE a.attrelid = relation AND a.attname = attribute AND a.attnum > 0
			AND NOT a.attisdropped);
BEGIN
	WHILE (SELECT typtype = 'd' FROM pg_type WHERE oid = type) LOOP
		type := (SELECT typbasetype FROM pg_type WHERE oid = type);
	END LOOP;
	RETURN type;
END
$$;

COMMENT ON FUNCTION snowflake_column_type(regclass, name) IS
'returns the type of a column, below any domains; internal';

/*
 * The guard of a feed, and the view of its rows below the horizon
 */

CREATE FUNCTION snowflake_enable_feed(
	relation regclass, attribute name DEFAULT NULL, view name DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	key CONSTANT name := coalesce(attribute, (
		SELECT a.attname FROM pg_index i
			JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		WHERE i.indrelid = relation AND i.indisprimary AND i.indnkeyatts = 1));
	type regtype;
	later record;
	elsewhere regclass;
BEGIN
	IF relation IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = 'argument "relation" must not be null';
	ELSIF key IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object',
			MESSAGE = format('table %s has no primary key with a single column', relation),
			HINT = 'Pass the name of the column with the IDs as the argument "attribute".';
	END IF;
	EXECUTE format('SELECT %s.snowflake_column_type($1, $2)', extension)
	INTO type USING relation, key;
	IF type IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('column "%s" of table %s does not exist', key, relation);
	ELSIF type <> 'bigint'::regtype THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of table %s is not of type bigint', key, relation),
			DETAIL = 'Only IDs of type bigint have a horizon.';
	ELSIF (SELECT attgenerated <> '' FROM pg_attribute
			WHERE attrelid = relation AND attname = key) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_column_definition',
			MESSAGE = format('column "%s" of table %s is a generated column', key, relation),
			DETAIL = 'Triggers cannot see the value of the column before the row is stored.';
	END IF;

	-- names of triggers are compared as bytes
	-- tgtype has the bits ROW 1, BEFORE 2, INSERT 4 and UPDATE 16
	SELECT t.tgname AS name, t.tgrelid::regclass AS relation INTO later
	FROM pg_trigger t
	WHERE t.tgrelid IN (SELECT relation UNION SELECT relid FROM pg_partition_tree(relation))
		AND t.tgtype & 3 = 3 AND t.tgtype & 20 <> 0 AND t.tgname > 'zz_snowflake_feed_guard'
	ORDER BY t.tgrelid <> relation, t.tgrelid, t.tgname LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('trigger "%s" of table %s would be called after the guard',
				later.name, later.relation),
			DETAIL = 'Triggers are called in the order of their names, and such a trigger can'
				' change the ID that the guard has checked.',
			HINT = format('Use ALTER TRIGGER %I ON %s RENAME TO a name that sorts before'
				' "zz_snowflake_feed_guard".', later.name, later.relation);
	END IF;
	EXECUTE format('CREATE OR REPLACE TRIGGER zz_snowflake_feed_guard BEFORE INSERT OR UPDATE ON %s'
		' FOR EACH ROW EXECUTE FUNCTION %s.snowflake_feed_guard(%L)', relation, extension, key);

	IF view IS NOT NULL THEN
		-- The statement that reads rows of another server has another snapshot there.
		SELECT oid::regclass INTO elsewhere FROM pg_class
		WHERE relkind = 'f'
			AND oid IN (SELECT relation UNION SELECT relid FROM pg_partition_tree(relation))
		ORDER BY oid LIMIT 1;
		IF elsewhere IS NULL AND to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
			EXECUTE 'SELECT logicalrelid FROM pg_dist_partition WHERE logicalrelid = $1'
			INTO elsewhere USING relation;
		END IF;
		IF elsewhere IS NOT NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('cannot create view "%s" of table %s, whose rows are on other '
					'servers', view, elsewhere),
				DETAIL = 'The horizon holds for the snapshot of a statement on this server, and '
					'the rows are read with another one.',
				HINT = 'Omit the argument "view", and get the horizon in a separate statement '
					'before the rows.';
		END IF;
		EXECUTE format('CREATE OR REPLACE VIEW %s.%I WITH (security_invoker = true) AS'
			' SELECT * FROM %s WHERE %I < (SELECT %s.snowflake_horizon())',
			(SELECT relnamespace::regnamespace FROM pg_class WHERE oid = relation), view,
			relation, key, extension);
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_enable_feed(regclass, name, name) IS
'creates the guard of a feed on a table, and optionally a view of the rows below the horizon';

/*
 * Partitions
 *
 * Bounds are compared, not times.  To compare them for both types in the same way, they are texts
 * of equal length, of digits or of a sno, which sort as the IDs do in the collation "C".  The texts
 * '' and '~' stand for MINVALUE and MAXVALUE, and '-' stands for each negative number.
 */

CREATE FUNCTION snowflake_partition_key(parent regclass) RETURNS regtype
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	sno CONSTANT regtype := (SELECT format('%s.sno', extnamespace::regnamespace)::regtype
		FROM pg_extension WHERE extname = 'snowflake');
	type CONSTANT regtype := (SELECT o.opcintype
		FROM pg_partitioned_table p JOIN pg_opclass o ON o.oid = p.partclass[0]
		WHERE p.partrelid = parent AND p.partstrat = 'r' AND p.partnatts = 1 AND p.partattrs[0] > 0
			AND o.opcdefault AND o.opcintype IN ('bigint'::regtype, sno));
BEGIN
	IF type IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('relation %s is not partitioned by range of a column of type bigint or'
				' sno', parent),
			HINT = 'Use a table that was created with PARTITION BY RANGE on the column with the'
				' IDs.  Such a table can itself be a partition.';
	ELSIF NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = parent), 'USAGE') THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('must be owner of table %s', parent);
	END IF;
	RETURN type;
END
$$;

COMMENT ON FUNCTION snowflake_partition_key(regclass) IS
'returns the type of the column by whose ranges a table is partitioned, if the caller owns the table; internal';

CREATE FUNCTION snowflake_bound(type regtype, instant timestamptz) RETURNS text
LANGUAGE SQL STABLE PARALLEL SAFE
RETURN CASE WHEN type::oid = 'sno'::regtype::oid THEN sno_boundary(instant)::text
	ELSE lpad(snowflake_boundary(instant)::text, 19, '0'::text) END;

COMMENT ON FUNCTION snowflake_bound(regtype, timestamptz) IS
'returns the boundary between IDs of a type at an instant, as a bound; internal';

CREATE FUNCTION snowflake_bound_time(type regtype, bound text) RETURNS timestamptz
LANGUAGE SQL STABLE PARALLEL SAFE
RETURN CASE WHEN type::oid = 'sno'::regtype::oid THEN sno_timestamp(bound::sno)
	ELSE snowflake_timestamp(
		least(bound::bigint, snowflake_boundary('infinity'::timestamptz) - 1::bigint)) END;

COMMENT ON FUNCTION snowflake_bound_time(regtype, text) IS
'returns the time of the ID that is a bound, or of the last ID of the layout if that is earlier; internal';

/*
 * A transaction that keeps its snapshot can see, in pg_inherits, partitions that other
 * transactions have detached or dropped meanwhile.  pg_partition_ancestors() uses no snapshot.  It
 * leaves out partitions that are pending detach.
 */
CREATE FUNCTION snowflake_partitions(parent regclass, type regtype,
	OUT partition regclass, OUT from_id text, OUT to_id text, OUT is_leaving boolean)
RETURNS SETOF record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	digits CONSTANT integer := CASE type WHEN 'bigint'::regtype THEN 19 ELSE 0 END;
BEGIN
	FOR partition, from_id, to_id, is_leaving IN
		SELECT i.inhrelid, trim(bound[1], ''''), trim(bound[2], ''''), i.inhdetachpending
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
			CROSS JOIN regexp_match(pg_get_expr(c.relpartbound, c.oid),
				'FROM [(](.*)[)] TO [(](.*)[)]') AS bound
		WHERE i.inhparent = parent AND bound IS NOT NULL AND (i.inhdetachpending
			OR EXISTS (SELECT FROM pg_partition_ancestors(i.inhrelid) WHERE relid = parent))
	LOOP
		from_id := CASE WHEN from_id = 'MINVALUE' THEN '' WHEN from_id LIKE '-%' THEN '-'
			ELSE lpad(from_id, greatest(digits, length(from_id)), '0') END;
		to_id := CASE WHEN to_id = 'MAXVALUE' THEN '~' WHEN to_id LIKE '-%' THEN '-'
			ELSE lpad(to_id, greatest(digits, length(to_id)), '0') END;
		RETURN NEXT;
	END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_partitions(regclass, regtype) IS
'returns the partitions of a table except the default partition, with their bounds; internal';

/*
 * Creating partitions
 */

/*
 * A name contains as many parts of the start as all periods of the step need.  If these include
 * hours or smaller units, the name is in UTC, in which no hour occurs twice.  A partition that was
 * created in another zone can have the name; then the name contains more parts.
 */
CREATE FUNCTION snowflake_partition_name(parent regclass, from_at timestamptz, step interval,
	zone text)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	target record;
	base name;
	suffix text;
	partition text;
BEGIN
	SELECT relnamespace::regnamespace AS schema, relname AS name INTO target
	FROM pg_class WHERE oid = parent;
	FOR suffix IN
		SELECT '_' || to_char(start, u.format)
		FROM (VALUES
				('year', 'YYYY', zone),
				('month', 'YYYY_MM', zone),
				('day', 'YYYY_MM_DD', zone),
				('hour', 'YYYY_MM_DD_HH24"z"', 'UTC'),
				('minute', 'YYYY_MM_DD_HH24MI"z"', 'UTC'),
				('second', 'YYYY_MM_DD_HH24MISS"z"', 'UTC'),
				('microseconds', 'YYYY_MM_DD_HH24MISSUS"z"', 'UTC')) AS u (unit, format, calendar)
			CROSS JOIN date_trunc(u.unit, from_at AT TIME ZONE u.calendar) AS start
		WHERE date_trunc(u.unit, step) = step AND start AT TIME ZONE u.calendar = from_at
		ORDER BY length(u.format)
	LOOP
		base := target.name;	-- a long name is shortened to make room for the period
		WHILE octet_length(base || suffix) > current_setting('max_identifier_length')::integer LOOP
			base := left(base, -1);
		END LOOP;
		partition := format('%s.%I', target.schema, base || suffix);
		EXIT WHEN NOT EXISTS (
			SELECT FROM pg_inherits WHERE inhparent = parent AND inhrelid = to_regclass(partition));
	END LOOP;
	RETURN partition;
END
$$;

COMMENT ON FUNCTION snowflake_partition_name(regclass, timestamptz, interval, text) IS
'returns the name of a new partition, with its schema; internal';

/*
 * A new partition ends where a period ends, or where an existing partition begins.  So a call does
 * not fail because of existing partitions, and leaves no gap, even if they were created with
 * another step or in another time zone.
 *
 * The lock is the same as for ATTACH PARTITION.  It makes concurrent calls wait for each other, so
 * that the second call finds the partitions that the first has created.
 */
CREATE FUNCTION snowflake_create_partitions(parent regclass, start_at timestamptz,
	end_at timestamptz, step interval, zone text DEFAULT 'UTC')
RETURNS SETOF regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	get_bound_time CONSTANT text := format('SELECT %s.snowflake_bound_time($1, $2)', extension);
	missing CONSTANT text := CASE WHEN parent IS NULL THEN 'parent'
		WHEN start_at IS NULL THEN 'start_at' WHEN end_at IS NULL THEN 'end_at'
		WHEN step IS NULL THEN 'step' WHEN zone IS NULL THEN 'zone' END;
	type regtype;
	calendar text;
	midnight timestamp;
	origin timestamp;
	next timestamptz;
	starts timestamptz[] := ARRAY[start_at];	-- of the periods, and the end of the last one
	bounds text[] COLLATE "C";	-- of starts
	last integer;	-- index of starts and bounds
	existing record;
	from_ids text[] COLLATE "C";	-- of existing partitions
	to_ids text[] COLLATE "C";
	first_day text COLLATE "C";
	gap record;
	from_at timestamptz;
	to_at timestamptz;
	gaps text;
	target record;
	piece record;
	partition text;
BEGIN
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('argument "%s" must not be null', missing);
	ELSIF NOT isfinite(start_at) OR NOT isfinite(end_at) OR start_at > end_at
		OR start_at + step <= start_at THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'arguments "start_at" and "end_at" must be finite and in order, and "step"'
				' must be positive',
			DETAIL = format('The start is %s, the end is %s, and the step is %s.', start_at, end_at,
				step);
	END IF;
	EXECUTE format('SELECT %s.snowflake_lock($1, $2, $3)', extension)
	USING parent, 'ONLY'::text, 'SHARE UPDATE EXCLUSIVE'::text;
	EXECUTE format('SELECT %s.snowflake_partition_key($1)', extension) INTO type USING parent;

	-- The periods.  Those of days and months are of the calendar of the zone, others have a fixed
	-- length.  Each start is computed from start_at, not from the previous period: the 31st plus
	-- one month plus one month is the 31st, not the 28th.  If a day begins at one o'clock, because
	-- clocks are set forward at midnight, the computation begins at midnight.
	calendar := CASE date_trunc('day', step) - step WHEN '0' THEN zone ELSE 'UTC' END;
	midnight := date_trunc('day', start_at AT TIME ZONE calendar);
	origin := CASE midnight AT TIME ZONE calendar WHEN start_at THEN midnight
		ELSE start_at AT TIME ZONE calendar END;
	IF date_trunc('minute', start_at) <> start_at AND date_trunc('minute', step) = step THEN
		RAISE NOTICE USING
			MESSAGE = format('periods of %s begin within a minute', step),
			DETAIL = format('The argument "start_at" is %s.  The names of partitions contain this'
				' time, and a later call with another time creates further partitions.', start_at),
			HINT = format('Pass the start of a period, such as date_trunc(%L, now(), %L).', (
				SELECT u FROM unnest('{year,month,day,hour,minute}'::text[]) u
				WHERE date_trunc(u, step) = step LIMIT 1), calendar);
	END IF;
	last := 1;
	FOR i IN 1 .. 100000 LOOP
		EXIT WHEN starts[last] >= end_at;
		next := (origin + i * step) AT TIME ZONE calendar;
		CONTINUE WHEN next <= starts[last];	-- a day that a zone has skipped
		starts := starts || next;
		last := last + 1;
	END LOOP;
	IF starts[last] < end_at THEN
		RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
			MESSAGE = 'cannot create more than 100000 partitions in one call',
			DETAIL = format('100000 periods of %s that begin at %s end at %s.', step, start_at,
				starts[last]);
	END IF;
	EXECUTE format('SELECT array_agg(%s.snowflake_bound($1, start) ORDER BY start)'
		' FROM unnest($2) AS start', extension) INTO bounds USING type, starts;
	FOR i IN 1 .. last - 1 LOOP
		IF bounds[i] = bounds[i + 1] THEN
			RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
				MESSAGE = format('no ID has a time from %s to %s', starts[i], starts[i + 1]),
				HINT = CASE type WHEN 'bigint'::regtype
					THEN 'Use periods within the times of the layout of "snowflake.layout" that are'
						' at least one tick long.'
					ELSE 'Use periods within the times of type sno, 2010 to 2079, that are at least'
						' 4 ms long.' END;
		END IF;
	END LOOP;

	-- The existing partitions
	FOR existing IN EXECUTE format('SELECT * FROM %s.snowflake_partitions($1, $2)', extension)
		USING parent, type
	LOOP
		IF NOT existing.is_leaving THEN
			from_ids := from_ids || existing.from_id;
			to_ids := to_ids || existing.to_id;
		ELSIF last > 1 AND bounds[1] < existing.to_id AND bounds[last] > existing.from_id THEN
			RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
				MESSAGE = format('partition %s is pending detach', existing.partition),
				HINT = format('Run ALTER TABLE %s DETACH PARTITION %s FINALIZE first.',
					parent, existing.partition);
		END IF;
	END LOOP;

	-- The gaps, unless a default partition has their IDs.  Keys of a sequence look like IDs of the
	-- first hours of the layout.  The range after the partitions of such keys is not a gap.
	IF EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = parent AND partdefid = 0) THEN
		EXECUTE format('SELECT %1$s.snowflake_bound($1,
			%1$s.snowflake_bound_time($1, %1$s.snowflake_bound($1, $2)) + $3)', extension)
		INTO first_day USING type, '-infinity'::timestamptz, '1 day'::interval;
		FOR gap IN
			SELECT g.after AS from_id, g.from_id AS to_id
			FROM (SELECT c.from_id, max(c.to_id) OVER (
					ORDER BY c.from_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS after
				FROM (SELECT * FROM unnest(from_ids, to_ids)
					UNION ALL SELECT * FROM unnest(bounds[:last - 1], bounds[2:]))
					AS c (from_id, to_id)
				WHERE c.to_id > first_day) AS g
			WHERE g.from_id > g.after
			ORDER BY g.from_id
		LOOP
			EXECUTE get_bound_time INTO from_at USING type, gap.from_id;
			EXECUTE get_bound_time INTO to_at USING type, gap.to_id;
			gaps := concat(gaps || ', ', from_at, ' to ', to_at);
		END LOOP;
		IF gaps IS NOT NULL THEN
			RAISE WARNING USING
				MESSAGE = format('the partitions of table %s have gaps between them', parent),
				DETAIL = format('No partition contains the IDs with times from %s.', gaps),
				HINT = 'Pass these times to snowflake_create_partitions() to fill the gaps.';
		END IF;
	END IF;

	-- The missing partitions of the periods.  A partition is created as a table like the parent
	-- and then attached: unlike CREATE TABLE ... PARTITION OF, this lets other sessions read and
	-- write the parent meanwhile.
	SELECT pg_get_userbyid(c.relowner) AS owner,
		concat(' USING ' || quote_ident(a.amname),
			' TABLESPACE ' || quote_ident(t.spcname)) AS storage
	INTO target
	FROM pg_class c
		LEFT JOIN pg_am a ON a.oid = c.relam
		LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
	WHERE c.oid = parent;
	FOR piece IN
		WITH existing (from_id, to_id) AS MATERIALIZED (SELECT * FROM unnest(from_ids, to_ids)),
		period (id, at) AS MATERIALIZED (SELECT * FROM unnest(bounds, starts)),
		point (id) AS (SELECT p.id FROM period p UNION SELECT e.from_id FROM existing e
			UNION SELECT e.to_id FROM existing e)
		SELECT m.from_id, m.to_id, p.at AS from_at
		FROM (SELECT p.id, lead(p.id) OVER (ORDER BY p.id) FROM point p
				WHERE p.id BETWEEN bounds[1] AND bounds[last]) AS m (from_id, to_id)
			LEFT JOIN period p ON p.id = m.from_id
		WHERE m.to_id IS NOT NULL AND NOT EXISTS (
			SELECT FROM existing e WHERE e.from_id <= m.from_id AND e.to_id > m.from_id)
		ORDER BY m.from_id
	LOOP
		from_at := piece.from_at;
		IF from_at IS NULL THEN	-- it begins where an existing partition ends
			EXECUTE get_bound_time INTO from_at USING type, piece.from_id;
		END IF;
		EXECUTE format('SELECT %s.snowflake_partition_name($1, $2, $3, $4)', extension)
		INTO partition USING parent, from_at, step, zone;
		BEGIN
			EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING COMPRESSION INCLUDING CONSTRAINTS'
				' INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING STORAGE)', partition, parent)
				|| target.storage;
			IF target.owner <> current_user THEN
				EXECUTE format('ALTER TABLE %s OWNER TO %I', partition, target.owner);
			END IF;
			EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
				parent, partition, piece.from_id, piece.to_id);
		EXCEPTION WHEN duplicate_table THEN
			RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM,
				DETAIL = format('The partition is for the IDs with times from %s on.', from_at),
				HINT = 'Rename the existing table, which is not a partition of this table.';
		END;
		RETURN NEXT partition::regclass;
	END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_create_partitions(regclass, timestamptz, timestamptz, interval,
	text) IS
'creates the missing partitions of a table for the periods of length step from start_at to end_at, and returns these partitions';

/*
 * Retention
 */

/*
 * IDs that are decoded in a layout other than their own have other times.
 */
CREATE FUNCTION snowflake_check_layout() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_check_layout() IS
'raises an error unless snowflake.layout is the layout in which this cluster issues Snowflake IDs; internal';

CREATE FUNCTION snowflake_check_clock() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

COMMENT ON FUNCTION snowflake_check_clock() IS
'raises an error if the clock of this server has jumped forward; internal';

/*
 * The query names the parent, not the partition, which can have another owner.  It would lock the
 * partition and its indexes to the end of the transaction.  A subtransaction that is rolled back
 * releases these locks, so that a call does not fill the lock table.
 */
CREATE FUNCTION snowflake_has_rows(parent regclass, type regtype, from_id text, to_id text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET row_security = off	-- an error rather than rows that are not seen
AS $$
DECLARE
	operators CONSTANT regnamespace :=
		(SELECT typnamespace FROM pg_type WHERE oid = type);
	key CONSTANT name := (SELECT a.attname FROM pg_partitioned_table p
		JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
		WHERE p.partrelid = parent);
	has_rows boolean;
BEGIN
	BEGIN
		EXECUTE format('SELECT true FROM %s WHERE %I OPERATOR(%s.<) %L::%s', parent, key, operators,
				to_id, type)
			|| CASE WHEN from_id = '' THEN ''
				ELSE format(' AND %I OPERATOR(%s.>=) %L::%s', key, operators, from_id, type) END
			|| ' LIMIT 1' INTO has_rows;
		RAISE SQLSTATE 'UNDO1';
	EXCEPTION WHEN SQLSTATE 'UNDO1' THEN
		RETURN coalesce(has_rows, false);
	END;
END
$$;

COMMENT ON FUNCTION snowflake_has_rows(regclass, regtype, text, text) IS
'returns whether a partitioned table has a row from one bound up to another one; internal';

/*
 * A wrong clock makes all partitions look old.  While the server runs, snowflake_check_clock()
 * refuses it; when the server starts, the clock can be compared only with the rows.  If the clock
 * is ahead, no row has a time between the true time and the time of the start, and each partition
 * of this time is empty, or does not exist.  So partitions with rows are removed only if each
 * period from there up to the present has rows.  Rows of other servers count, too, so this does
 * not depend on the IDs that this server issues.
 *
 * A table that was not used looks the same as one whose clock is wrong.  Only the caller can tell
 * the two apart.  As the argument is a length of time, it can be part of the job without an end to
 * the protection.
 *
 * The present period can be empty: it may just have begun.
 */
CREATE FUNCTION snowflake_check_age(parent regclass, type regtype, old regclass[],
	from_ids text[], to_ids text[], before timestamptz, max_gap interval)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	has_rows CONSTANT text := format('SELECT %s.snowflake_has_rows($1, $2, $3, $4)', extension);
	get_bound_time CONSTANT text := format('SELECT %s.snowflake_bound_time($1, $2)', extension);
	present CONSTANT timestamptz := clock_timestamp();
	present_id text COLLATE "C";
	last integer := cardinality(old);	-- the newest one with rows
	is_used boolean;
	period record;
	from_at timestamptz;
	to_at timestamptz;
	gap_from timestamptz;	-- the longest gap
	gap_to timestamptz;
BEGIN
	LOOP
		IF last = 0 THEN
			RETURN;
		END IF;
		EXECUTE has_rows INTO is_used USING parent, type, from_ids[last], to_ids[last];
		EXIT WHEN is_used;
		last := last - 1;
	END LOOP;
	EXECUTE format('SELECT %s.snowflake_bound($1, $2)', extension)
	INTO present_id USING type, present;
	FOR period IN
		EXECUTE format($query$
			WITH partition AS MATERIALIZED (
				SELECT p.from_id COLLATE "C" AS from_id, p.to_id COLLATE "C" AS to_id
				FROM %s.snowflake_partitions($1, $2) p),
			point (id) AS (SELECT p.from_id FROM partition p UNION SELECT p.to_id FROM partition p
				UNION SELECT $3 UNION SELECT $4)
			SELECT m.from_id, m.to_id
			FROM (SELECT p.id, lead(p.id) OVER (ORDER BY p.id) FROM point p
					WHERE p.id BETWEEN $3 AND $4) AS m (from_id, to_id)
			WHERE m.to_id IS NOT NULL AND NOT EXISTS (
				SELECT FROM partition p WHERE p.from_id <= m.from_id AND p.to_id > $4)
			ORDER BY m.from_id$query$, extension)
		USING parent, type, to_ids[last], present_id
	LOOP
		EXECUTE has_rows INTO is_used USING parent, type, period.from_id, period.to_id;
		IF is_used THEN
			from_at := NULL;
			CONTINUE;
		ELSIF from_at IS NULL THEN
			EXECUTE get_bound_time INTO from_at USING type, period.from_id;
		END IF;
		EXECUTE get_bound_time INTO to_at USING type, period.to_id;
		IF gap_from IS NULL OR to_at - from_at > gap_to - gap_from THEN
			gap_from := from_at;
			gap_to := to_at;
		END IF;
	END LOOP;
	IF gap_from AT TIME ZONE 'UTC' + max_gap < gap_to AT TIME ZONE 'UTC' THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('partitions of table %s are not known to be old', parent),
			DETAIL = format('The table has no rows from %s to %s, which is %s.  Either the table'
				' was not used, or the clock of this server, which shows %s, is wrong.  These'
				' partitions end at or before %s: %s.', gap_from, gap_to, gap_to - gap_from,
				present, before, array_to_string(old, ', ')),
			HINT = format('Correct the clock if it is wrong.  If the table was not used, pass "%s"'
				' or more as the argument "max_gap".', gap_to - gap_from);
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_check_age(regclass, regtype, regclass[], text[], text[], timestamptz,
	interval) IS
'raises an error if old partitions have rows and later periods have a gap without rows that is longer than max_gap; internal';

/*
 * The lock is the same as in snowflake_create_partitions().  It keeps the partitions as they are
 * while their bounds are read, and if there is nothing to detach, no reader or writer of the table
 * is blocked.  DETACH PARTITION takes the stronger locks.
 *
 * A partition ends at or before an instant if its upper bound is not above the boundary there.
 * MAXVALUE is above, and the default partition has no bound.
 *
 * A key of a sequence looks like an ID of the first days of the layout, so a partition is returned
 * only if the caller states that all keys at or above its lower bound are IDs.  The server cannot
 * determine that.  A record that snowflake_adopt() made would be absent for tables that were
 * adopted by hand.  CREATE TABLE ... LIKE would lose it, and so would pg_dump: a comment with
 * --no-comments, a row in a table of the extension with -t.  An argument is part of the job that
 * runs the function, and remains correct.  MINVALUE counts as the first ID, but partitions of
 * negative keys have no time.
 */
CREATE FUNCTION snowflake_old_partitions(parent regclass, before timestamptz,
	since timestamptz DEFAULT 'infinity', max_gap interval DEFAULT '0')
RETURNS SETOF regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	missing CONSTANT text := CASE WHEN parent IS NULL THEN 'parent'
		WHEN before IS NULL THEN 'before' WHEN since IS NULL THEN 'since'
		WHEN max_gap IS NULL THEN 'max_gap' END;
	type regtype;
	first_id text COLLATE "C";
	before_id text COLLATE "C";
	since_id text COLLATE "C";
	past record;
	old regclass[] := '{}';
	from_ids text[];	-- of old
	to_ids text[];
	kept regclass[];
BEGIN
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('argument "%s" must not be null', missing);
	ELSIF NOT isfinite(before) OR before > clock_timestamp() THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'argument "before" must be finite and not in the future',
			DETAIL = format('The argument is %s.', before);
	ELSIF max_gap < '0' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'argument "max_gap" must not be negative',
			DETAIL = format('The argument is %s.', max_gap);
	END IF;
	EXECUTE format('SELECT %s.snowflake_check_clock()', extension);
	EXECUTE format('SELECT %s.snowflake_lock($1, $2, $3)', extension)
	USING parent, 'ONLY'::text, 'SHARE UPDATE EXCLUSIVE'::text;
	EXECUTE format('SELECT %s.snowflake_partition_key($1)', extension) INTO type USING parent;
	IF type = 'bigint'::regtype THEN
		EXECUTE format('SELECT %s.snowflake_check_layout()', extension);
	END IF;
	EXECUTE format('SELECT %1$s.snowflake_bound($1, $2), %1$s.snowflake_bound($1, $3),
		%1$s.snowflake_bound($1, $4)', extension)
	INTO first_id, before_id, since_id USING type, '-infinity'::timestamptz, before, since;
	FOR past IN
		EXECUTE format('SELECT * FROM %s.snowflake_partitions($1, $2) ORDER BY to_id COLLATE "C"',
			extension) USING parent, type
	LOOP
		EXIT WHEN past.to_id > before_id;
		IF past.to_id > first_id AND coalesce(nullif(past.from_id, ''), first_id) >= since_id THEN
			old := old || past.partition;
			from_ids := from_ids || past.from_id;
			to_ids := to_ids || past.to_id;
		ELSE
			kept := kept || past.partition;
		END IF;
	END LOOP;
	EXECUTE format('SELECT %s.snowflake_check_age($1, $2, $3, $4, $5, $6, $7)', extension)
	USING parent, type, old, from_ids, to_ids, before, max_gap;
	IF kept IS NOT NULL THEN
		RAISE NOTICE USING
			MESSAGE = format('partitions of table %s were kept, because their keys are not known to'
				' be Snowflake IDs', parent),
			DETAIL = format('These partitions can have keys below the boundary at %s, which is the'
				' argument "since": %s.', since, array_to_string(kept, ', ')),
			HINT = 'Pass the time from which all keys are Snowflake IDs as the argument "since", or'
				' -infinity if the table never had other keys.';
	END IF;
	RETURN QUERY SELECT unnest(old);
END
$$;

COMMENT ON FUNCTION snowflake_old_partitions(regclass, timestamptz, timestamptz, interval) IS
'returns the partitions of a table that end at or before an instant, the oldest first';

CREATE FUNCTION snowflake_detach_partitions(parent regclass, before timestamptz,
	since timestamptz DEFAULT 'infinity', max_gap interval DEFAULT '0')
RETURNS SETOF regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	old regclass[];
	partition regclass;
BEGIN
	EXECUTE format('SELECT ARRAY(SELECT %s.snowflake_old_partitions($1, $2, $3, $4))', extension)
	INTO old USING parent, before, since, max_gap;
	FOREACH partition IN ARRAY old LOOP
		EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, partition);
	END LOOP;
	RETURN QUERY SELECT unnest(old);
END
$$;

COMMENT ON FUNCTION snowflake_detach_partitions(regclass, timestamptz, timestamptz, interval) IS
'detaches the partitions that snowflake_old_partitions() returns, and returns them';

/*
 * A partition is detached before it is dropped.  DETACH PARTITION fails if the table is no longer
 * a partition, and if foreign keys refer to its rows; DROP TABLE would fail for any foreign key
 * to the parent.
 */
CREATE FUNCTION snowflake_drop_partitions(parent regclass, before timestamptz,
	since timestamptz DEFAULT 'infinity', max_gap interval DEFAULT '0')
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	names text[];
	partition text;
BEGIN
	EXECUTE format('SELECT ARRAY(SELECT %s.snowflake_detach_partitions($1, $2, $3, $4))::text[]',
		extension) INTO names USING parent, before, since, max_gap;
	FOREACH partition IN ARRAY names LOOP
		EXECUTE format('DROP TABLE %s', partition);
	END LOOP;
	RETURN QUERY SELECT unnest(names);
END
$$;

COMMENT ON FUNCTION snowflake_drop_partitions(regclass, timestamptz, timestamptz, interval) IS
'drops the partitions that snowflake_old_partitions() returns, and returns their names';

/*
 * Adopting tables
 */

CREATE FUNCTION snowflake_check_adoption(relation regclass, attribute name, generator name,
	OUT type regtype, OUT generators name[])
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	is_distributed boolean := false;
	obstacle text;
	former record;
	narrow record;
BEGIN
	IF relation IS NULL OR attribute IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('argument "%s" must not be null',
				CASE WHEN relation IS NULL THEN 'relation' ELSE 'attribute' END);
	ELSIF pg_has_role((SELECT relowner FROM pg_class WHERE oid = relation), 'USAGE')
		IS NOT TRUE THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('must be owner of table %s', relation);
	END IF;
	SELECT CASE WHEN c.relkind NOT IN ('r', 'p') THEN 'The relation is not a table.'
			WHEN a.attgenerated <> '' THEN 'The column is generated.'
			WHEN a.attinhcount > 0
				THEN format('The column is inherited from %s, where it can be adopted.', (
					SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = c.oid
					ORDER BY inhseqno LIMIT 1))
		END INTO obstacle
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
	WHERE c.oid = relation AND a.attname = attribute AND a.attnum > 0 AND NOT a.attisdropped;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('column "%s" of relation %s does not exist', attribute, relation);
	ELSIF obstacle IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('column "%s" of relation %s cannot get a default', attribute,
				relation),
			DETAIL = obstacle;
	END IF;
	IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
		EXECUTE 'SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = $1)'
		INTO is_distributed USING relation;
	END IF;
	IF is_distributed THEN
		RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
			MESSAGE = format('table %s cannot be adopted while Citus distributes it', relation),
			HINT = 'Use undistribute_table(), adopt the column, and distribute the table again.  If'
				' the column is not the distribution column, you can use ALTER TABLE ... ALTER'
				' COLUMN ... SET DEFAULT instead.';
	END IF;

	-- No command drops the sequence of an identity whose column is no longer an identity.
	WITH RECURSIVE family (oid) AS (
		SELECT relation::oid
		UNION SELECT inhrelid FROM pg_inherits JOIN family ON inhparent = family.oid)
	SELECT a.attrelid::regclass AS relation, d.objid::regclass AS sequence INTO former
	FROM family f JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = attribute
			AND a.attidentity = ''
		JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid
			AND d.refobjsubid = a.attnum AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'
		JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
	ORDER BY a.attrelid <> relation, a.attrelid LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('column "%s" of relation %s requires the sequence of a former'
				' identity', attribute, former.relation),
			DETAIL = format('Sequence %s cannot be dropped, and dumps of the table cannot be'
				' restored.  The function convert_sequence_to_snowflake() of pgEdge''s extension'
				' leaves columns in this state.', former.sequence),
			HINT = format('Run UPDATE pg_catalog.pg_attribute SET attidentity = ''d'' WHERE'
				' attrelid = %L::regclass AND attname = %L as a superuser first.',
				former.relation, attribute);
	END IF;

	-- All columns that refer to the column by foreign keys are checked, directly and indirectly;
	-- for an inherited column, the column that it is inherited from.
	WITH RECURSIVE holder (attrelid, attnum, attname) AS (
		SELECT attrelid, attnum, attname FROM pg_attribute
		WHERE attrelid = relation AND attname = attribute
		UNION
		SELECT a.attrelid, a.attnum, a.attname
		FROM holder h CROSS JOIN LATERAL (
			SELECT f.conrelid, pair.referring FROM pg_constraint f
				CROSS JOIN unnest(f.conkey, f.confkey) AS pair (referring, referred)
			WHERE f.contype = 'f' AND f.confrelid = h.attrelid AND pair.referred = h.attnum
			UNION ALL
			SELECT k.attrelid, k.attnum FROM pg_inherits i
				JOIN pg_attribute k ON k.attrelid = i.inhrelid
			WHERE i.inhparent = h.attrelid AND k.attname = h.attname
			UNION ALL
			SELECT k.attrelid, k.attnum FROM pg_inherits i
				JOIN pg_attribute k ON k.attrelid = i.inhparent
			WHERE i.inhrelid = h.attrelid AND k.attname = h.attname) AS related (relid, num)
		JOIN pg_attribute a ON a.attrelid = related.relid AND a.attnum = related.num)
	SELECT a.attrelid::regclass AS relation, a.attname AS name, a.atttypid::regtype AS type
	INTO narrow
	FROM holder JOIN pg_attribute a USING (attrelid, attnum) JOIN pg_type t ON t.oid = a.atttypid
	WHERE t.typcategory = 'N' AND t.typlen IN (2, 4) AND a.attinhcount = 0
	ORDER BY a.attrelid <> relation, a.attrelid, a.attnum LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of relation %s is of type %s',
				narrow.name, narrow.relation, narrow.type),
			DETAIL = 'Snowflake IDs are of type bigint.',
			HINT = format('Use ALTER TABLE %s ALTER COLUMN %I TYPE bigint first, which can rewrite'
				' the table under an ACCESS EXCLUSIVE lock.', narrow.relation, narrow.name);
	END IF;

	-- the first generator is the default of a column that gets one
	EXECUTE format('SELECT %s.snowflake_column_type($1, $2)', extension)
	INTO type USING relation, attribute;
	generators := CASE type WHEN 'bigint'::regtype THEN '{snowflake_id,snowflake_nextval}'
		WHEN format('%s.sno', extension)::regtype THEN '{sno_nextval}' END;
	IF generators IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of relation %s is of type %s', attribute, relation, (
				SELECT atttypid::regtype FROM pg_attribute
				WHERE attrelid = relation AND attname = attribute)),
			DETAIL = 'Snowflake IDs are of type bigint or sno.';
	ELSIF generator <> ALL (generators) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('"%s" does not generate IDs for column "%s" of relation %s',
				generator, attribute, relation),
			HINT = format('Use %s.', array_to_string(generators, ' or '));
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_check_adoption(regclass, name, name) IS
'raises an error if a column cannot be adopted, and returns its type and the generators of that type; internal';

-- An index that begins with the column is used.  IDs of type sno sort as their texts do in "C".
CREATE FUNCTION snowflake_check_keys(relation regclass, attribute name, type regtype, next_id text)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $$
DECLARE
	greatest text;
	least bigint;
	is_above boolean;
BEGIN
	EXECUTE format(CASE type WHEN 'bigint'::regtype
			THEN 'SELECT max(t.%1$I), min(t.%1$I) FROM %2$s t'
		ELSE 'SELECT t.%1$I::text FROM %2$s t WHERE t.%1$I IS NOT NULL ORDER BY t.%1$I DESC'
			' LIMIT 1' END, attribute, relation) INTO greatest, least;
	is_above := CASE type WHEN 'bigint'::regtype THEN greatest::bigint >= next_id::bigint
		ELSE greatest COLLATE "C" >= next_id END;
	IF is_above THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('column "%s" of relation %s has values that are not below the next ID',
				attribute, relation),
			DETAIL = format('The greatest value is %s, and the next ID is %s.', greatest, next_id),
			HINT = 'Change these rows.  If the values are Snowflake IDs, check whether they have'
				' another layout than "snowflake.layout", or future times.';
	ELSIF least < 0 THEN
		RAISE NOTICE USING
			MESSAGE = format('column "%s" of relation %s has negative values', attribute, relation),
			DETAIL = format('The least value is %s.  Functions that decode IDs raise an error for'
				' these rows.', least),
			HINT = format('Add %I >= 0 to queries by time.', attribute);
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_check_keys(regclass, name, regtype, text) IS
'raises an error if the greatest value of a column is not below an ID; internal';

/*
 * Before the lock is taken, the column is checked, and an ID is generated, so that no lock is held
 * if the generator has to wait or fails.  The column can have changed by the time the lock is
 * acquired, so it is checked again.
 *
 * The table comes before its partitions and children.  A default of any generator is left as it is,
 * unless one is given.
 *
 * A column that was GENERATED ALWAYS AS IDENTITY has rejected given keys, and a column with a
 * default accepts them.  A trigger cannot reject them.  It sees a row after its defaults were
 * filled in, when a given key looks like a generated one.  If it replaced all keys, it would
 * change the keys of OVERRIDING SYSTEM VALUE and of COPY, which IDENTITY accepts, and use two IDs
 * per row.  If it compared the key with snowflake_currval(), it would reject rows for which
 * another default or trigger has generated an ID as well.  The privilege to INSERT and UPDATE the
 * column is exact, but the owner decides which roles should have it.  An error would obstruct
 * users, because many write ALWAYS by habit.  So the function raises a NOTICE.
 */
CREATE FUNCTION snowflake_adopt(relation regclass, attribute name, generator name DEFAULT NULL)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension CONSTANT regnamespace :=
		(SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake');
	checked CONSTANT text :=
		format('SELECT * FROM %s.snowflake_check_adoption($1, $2, $3)', extension);
	type regtype;
	generators name[];
	nextval text;
	adopted text[];
	member record;
	had_sequence regclass;
	was_always regclass;
	sequence record;
	changes text[];
BEGIN
	EXECUTE checked INTO type, generators USING relation, attribute, generator;
	EXECUTE format('SELECT %s.%I()', extension, generators[1]);
	EXECUTE format('SELECT %s.snowflake_lock($1, $2, $3)', extension)
	USING relation, ''::text, 'ACCESS EXCLUSIVE'::text;
	EXECUTE checked INTO type, generators USING relation, attribute, generator;
	EXECUTE format('SELECT %1$s.snowflake_check_keys($1, $2, $3, %1$s.%2$I()::text)', extension,
		generators[1]) USING relation, attribute, type;

	nextval := format('%s.%I()', extension, coalesce(generator, generators[1]));
	adopted := CASE WHEN generator IS NULL
		THEN ARRAY(SELECT format('%s.%I()', extension, g) FROM unnest(generators) AS g)
		ELSE ARRAY[nextval] END;
	FOR member IN
		WITH RECURSIVE family (oid, depth) AS (
			SELECT relation::oid, 0
			UNION ALL SELECT inhrelid, depth + 1
			FROM pg_inherits JOIN family ON inhparent = family.oid)
		SELECT a.attrelid::regclass AS relation, a.attnum, a.attidentity = 'a' AS is_always,
			coalesce(CASE a.attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY'
				WHEN 'd' THEN 'GENERATED BY DEFAULT AS IDENTITY' END
				|| coalesce(format(' (last value %s)', s.last_identity), ''),
				pg_get_expr(d.adbin, d.adrelid), 'none') AS before,
			s.last_identity IS NOT NULL OR s.is_owned OR EXISTS (
				SELECT FROM pg_depend JOIN pg_class q ON q.oid = refobjid AND q.relkind = 'S'
				WHERE classid = 'pg_attrdef'::regclass AND objid = d.oid
					AND refclassid = 'pg_class'::regclass) AS has_sequence
		FROM (SELECT oid, min(depth) AS depth FROM family GROUP BY oid) f
			JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = attribute
			LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
			CROSS JOIN LATERAL (
				SELECT count(*) > 0 AS is_owned,
					max(coalesce(pg_sequence_last_value(q.oid)::text, 'none'))
					FILTER (WHERE o.deptype = 'i') AS last_identity
				FROM pg_depend o JOIN pg_class q ON q.oid = o.objid AND q.relkind = 'S'
				WHERE o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass
					AND o.refobjid = a.attrelid AND o.refobjsubid = a.attnum) AS s
		ORDER BY f.depth, f.oid
	LOOP
		-- looked up now, since it can have been dropped with the identity of the parent
		IF (SELECT attidentity <> '' FROM pg_attribute
				WHERE attrelid = member.relation AND attnum = member.attnum) THEN
			EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', member.relation,
				attribute);
		END IF;
		IF member.before <> ALL (adopted) THEN
			EXECUTE format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT %s',
				member.relation, attribute, nextval);
			changes := changes || format('%s.%I: default %s, was %s',
				member.relation, attribute, nextval, member.before);
		END IF;
		had_sequence := coalesce(had_sequence,
			CASE WHEN member.has_sequence THEN member.relation END);
		was_always := coalesce(was_always, CASE WHEN member.is_always THEN member.relation END);
	END LOOP;

	IF had_sequence IS NOT NULL THEN
		RAISE NOTICE USING
			MESSAGE = format('column "%s" of table %s no longer uses a sequence', attribute,
				had_sequence),
			DETAIL = 'After an INSERT, lastval() fails or returns the value of another sequence.  '
				'pg_get_serial_sequence() returns null for the column.',
			HINT = 'Use INSERT ... RETURNING to get new IDs.';
	END IF;
	IF was_always IS NOT NULL THEN
		RAISE NOTICE USING
			MESSAGE = format('column "%s" of table %s now accepts values given in INSERT and'
				' UPDATE',
				attribute, was_always),
			DETAIL = 'The column was GENERATED ALWAYS AS IDENTITY, which rejects such values.',
			HINT = 'To reject them, grant INSERT and UPDATE on the other columns only.';
	END IF;

	-- no default of the columns uses the sequences now
	FOR sequence IN
		WITH RECURSIVE family (oid, depth) AS (
			SELECT relation::oid, 0
			UNION ALL SELECT inhrelid, depth + 1
			FROM pg_inherits JOIN family ON inhparent = family.oid)
		SELECT s.oid::regclass::text AS name, pg_sequence_last_value(s.oid)::text AS last_value
		FROM (SELECT oid, min(depth) AS depth FROM family GROUP BY oid) f
			JOIN pg_attribute a ON a.attrelid = f.oid AND a.attname = attribute
			JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid
				AND d.refobjsubid = a.attnum AND d.classid = 'pg_class'::regclass
			JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
		ORDER BY f.depth, f.oid, s.oid
	LOOP
		sequence.last_value := coalesce(sequence.last_value, 'none');
		BEGIN
			EXECUTE format('DROP SEQUENCE %s', sequence.name);
			changes := changes
				|| format('sequence %s: dropped (last value %s)', sequence.name,
					sequence.last_value);
		EXCEPTION WHEN dependent_objects_still_exist THEN
			EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', sequence.name);
			changes := changes || format('sequence %s: kept, since others use it (last value %s)',
				sequence.name, sequence.last_value);
		END;
	END LOOP;
	RETURN QUERY SELECT unnest(changes);
END
$$;

COMMENT ON FUNCTION snowflake_adopt(regclass, name, name) IS
'makes a generator of Snowflake IDs the default of a column in a table and its partitions and children, and returns a description of each change';

/*
 * Monitoring
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
	OUT horizon timestamptz,
	OUT horizon_lag interval,
	OUT refusal text,
	OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL SAFE ROWS 2;

COMMENT ON FUNCTION pg_stat_snowflake() IS 'rows of the view pg_stat_snowflake; internal';

CREATE VIEW pg_stat_snowflake AS SELECT * FROM pg_stat_snowflake();

COMMENT ON VIEW pg_stat_snowflake IS
'activity of each generator of this server since stats_reset, and its current state';

CREATE FUNCTION pg_stat_snowflake_reset() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL SAFE;

COMMENT ON FUNCTION pg_stat_snowflake_reset() IS
'resets the counters of pg_stat_snowflake to 0';

CREATE FUNCTION sno_snapshot(
	OUT partition integer, OUT sequence_min integer, OUT sequence_max integer, OUT sequence integer,
	OUT now timestamptz, OUT wall_hi timestamptz, OUT wall_safe timestamptz, OUT drifts bigint)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL SAFE;

COMMENT ON FUNCTION sno_snapshot() IS
'returns the state of the generator of type sno';

CREATE FUNCTION pg_stat_snowflake_horizon(
	OUT datid oid,
	OUT pid integer,
	OUT xid xid,
	OUT first_id bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL SAFE ROWS 10;

COMMENT ON FUNCTION pg_stat_snowflake_horizon() IS
'rows of the view pg_stat_snowflake_horizon; internal';

CREATE VIEW pg_stat_snowflake_horizon AS
	SELECT h.datid, d.datname, h.pid, p.gid, h.first_id,
		CASE WHEN h.first_id IS NOT NULL THEN coalesce(p.prepared, a.xact_start) END AS since
	FROM pg_stat_snowflake_horizon() h
		LEFT JOIN pg_database d ON d.oid = h.datid
		LEFT JOIN pg_stat_activity a ON a.pid = h.pid
		LEFT JOIN pg_prepared_xacts p ON p.transaction = h.xid;

COMMENT ON VIEW pg_stat_snowflake_horizon IS
'open and prepared transactions that hold back the horizon of their database';

CREATE FUNCTION snowflake_version() RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_version() IS
'returns the version of the library that this session has loaded, such as 1.0.0';

CREATE FUNCTION snowflake_server_machine_id() RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_server_machine_id() IS
'returns the machine ID of the bigint IDs of this server';

/*
 * The durable state, of which a server has one for all its databases
 *
 * Only the first CREATE EXTENSION in a server makes a new state.  It leaves a mark in a catalog
 * that all databases share and pg_upgrade preserves: a grant of a privilege that everyone has
 * anyway.  src/functions/state.c explains why C grants it.
 */

CREATE FUNCTION snowflake_create_state(is_new boolean) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_create_state'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION snowflake_check_slots(taken integer, own integer) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_check_slots'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION snowflake_give_slot_back(number integer) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_give_slot_back'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION snowflake_leave_mark() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

DO $$
DECLARE
	marked boolean := EXISTS (SELECT FROM pg_catalog.pg_parameter_acl
		WHERE parname = 'snowflake.max_wait');
BEGIN
	IF NOT marked THEN
		LOCK TABLE pg_catalog.pg_parameter_acl IN SHARE ROW EXCLUSIVE MODE;
		marked := EXISTS (SELECT FROM pg_catalog.pg_parameter_acl
			WHERE parname = 'snowflake.max_wait');
	END IF;
	BEGIN
		PERFORM snowflake_check_slots(count(*)::integer,
			(count(*) FILTER (WHERE local_id::integer BETWEEN 65528 AND 65534))::integer)
		FROM pg_show_replication_origin_status();
		PERFORM snowflake_create_state(NOT marked);
	EXCEPTION WHEN configuration_limit_exceeded THEN
		-- all slots or none (slots.c)
		IF NOT marked THEN
			PERFORM snowflake_give_slot_back(local_id::integer)
			FROM pg_show_replication_origin_status()
			WHERE local_id::integer BETWEEN 65528 AND 65533 AND remote_lsn = '0/0';
		END IF;
		RAISE;
	END;
	IF NOT marked THEN
		PERFORM snowflake_leave_mark();
	END IF;
END
$$;

DROP FUNCTION snowflake_create_state(boolean), snowflake_leave_mark();
DROP FUNCTION snowflake_check_slots(integer, integer);
DROP FUNCTION snowflake_give_slot_back(integer);

CREATE FUNCTION snowflake_accept_layout() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_layout() IS
'makes this cluster issue Snowflake IDs in the layout of snowflake.layout from now on';

CREATE FUNCTION snowflake_accept_clock() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_clock() IS
'makes this server trust its clock after a jump forward of more than snowflake.max_clock_step';

CREATE FUNCTION snowflake_accept_registry() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_registry() IS
'makes this server lease machine IDs from the registry that it has refused';

CREATE FUNCTION snowflake_set_floor(instant timestamptz) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_set_floor(timestamptz) IS
'raises the generator of Snowflake IDs to an instant, so that no later ID has an earlier time';

CREATE FUNCTION snowflake_move_back(instant timestamptz) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_move_back(timestamptz) IS
'moves the generator of Snowflake IDs back to an instant when the server is restarted, and closes it until then';

CREATE FUNCTION sno_set_floor(instant timestamptz) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sno_set_floor(timestamptz) IS
'raises the generator of type sno to an instant, so that no later ID has an earlier time';

CREATE FUNCTION sno_move_back(instant timestamptz) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sno_move_back(timestamptz) IS
'moves the generator of type sno back to an instant when the server is restarted, and closes it until then';

CREATE FUNCTION snowflake_drop_state() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_drop_state() IS
'drops the durable state that this server has outside its databases, and closes all generators until the server is restarted';

/*
 * Privileges
 *
 * The default privileges of the owner (ALTER DEFAULT PRIVILEGES) have been granted on each object
 * above, administrative functions included.  They are meant for other objects, so they are revoked.
 * But a function that is left to PUBLIC is not granted again if a default has revoked that: the
 * owner has decided it for all functions, and in extensions of PostgreSQL's own it has the same
 * effect.
 */
DO $$
DECLARE
	path CONSTANT text := pg_catalog.current_setting('search_path');
	statement text;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	FOR statement IN
		SELECT format('REVOKE ALL ON %s %s FROM %s', kind, object,
			CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
		FROM pg_depend JOIN (
			SELECT 'ROUTINE', 'pg_proc'::regclass, oid, oid::regprocedure::text, proowner, proacl
			FROM pg_proc
			UNION ALL
			SELECT 'TABLE', 'pg_class'::regclass, oid, oid::regclass::text, relowner, relacl
			FROM pg_class
			UNION ALL
			SELECT 'TYPE', 'pg_type'::regclass, oid, oid::regtype::text, typowner, typacl
			FROM pg_type) AS o (kind, catalog, oid, object, owner, acl)
			ON classid = catalog AND objid = o.oid CROSS JOIN aclexplode(acl)
		WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
			AND refobjid = (SELECT e.oid FROM pg_extension e WHERE extname = 'snowflake')
			AND grantee <> owner AND (grantee <> 0 OR kind = 'TABLE')
	LOOP
		EXECUTE statement;
	END LOOP;
	PERFORM pg_catalog.set_config('search_path', path, true);
END
$$;

REVOKE ALL ON FUNCTION pg_stat_snowflake(), pg_stat_snowflake_reset(), sno_snapshot(),
	snowflake_accept_layout(), snowflake_accept_clock(), snowflake_accept_registry(),
	snowflake_promise_horizon(bigint), snowflake_set_floor(timestamptz),
	sno_set_floor(timestamptz), snowflake_move_back(timestamptz), sno_move_back(timestamptz),
	snowflake_drop_state() FROM PUBLIC;
GRANT SELECT ON snowflake_layouts, pg_stat_snowflake_horizon TO PUBLIC;
GRANT SELECT ON pg_stat_snowflake TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_stat_snowflake(), sno_snapshot() TO pg_monitor;

