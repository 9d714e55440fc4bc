-- Snowflake IDs in SQL alone: for servers on which the extension cannot be installed, and for
-- databases that only read its IDs.  Names and IDs are those of the extension.
--
--     psql -v machine_id=7 -f portable/snowflake.sql DATABASE
--
-- machine_id   the machine ID; no other database or server may issue IDs with it.  If it is not
--              set, only the functions that read IDs are created
-- layout       a preset or a definition, as the extension's setting snowflake.layout; twitter
--              unless set
-- schema       an existing schema for the functions; public unless set
-- floor        a time: the IDs begin there, or at the clock if that is later
--
-- Any role that can create objects in the schema can run this, on PostgreSQL 15 and later.  Run it
-- again to change the machine ID.
--
-- How IDs are issued
--
-- A position is a tick and a sequence number: tick << bits of the sequence | sequence number.  Each
-- ID has a position of its own: the sum of two sequences, snowflake_base, which is moved forward
-- with the clock, and snowflake_count, which counts calls.  A call reads the base, takes the next
-- count, and reads the base again.  If the base has changed meanwhile, the call begins again.
--
-- A call moves the base to the clock if its position is more than 10 ms earlier than the first
-- clock that it has read.  A later reading would not do: if a move takes longer than 10 ms, a call
-- would move the base again and again, and each time make all others begin again.  As it is, a
-- call moves the base once, or again if the clock was set back meanwhile.  So calls end on a slow
-- server.
--
-- Two calls have different positions.  Let c1 < c2 be their counts, and b1 and b2 their bases.  The
-- first call has read b1 before it took c1.  The second call has read b2 again after it took c2,
-- which is later.  The base never decreases, so b1 <= b2, and b1 + c1 < b2 + c2.
--
-- The base never decreases because it is only set under a lock, to a value above the present one.
-- The lock, of the table snowflake_server, is taken in a subtransaction that is rolled back at
-- once.  This releases the lock, but does not undo setval().  The subtransaction writes nothing,
-- so it has no transaction ID.  A process that ends while it holds the lock has set the base, or
-- has not.
--
-- How the horizon works
--
-- Before its first ID, a transaction takes a shared advisory lock, whose key is a lower bound of
-- its positions.  snowflake_horizon() first reads the next position, and then looks at the locks.
-- If it finds the lock of a transaction, the horizon is not above its key.  If it does not, either
-- the transaction takes its first position after that, and so at or above the one that was read; or
-- the lock was released, which PostgreSQL does after the end of a transaction is visible to others.
-- A prepared transaction keeps its lock.  A savepoint that is rolled back undoes the lock, and the
-- local setting that says that the lock is held.
--
-- The key has two parts: a constant, 1936617061, and the position in units of 16 ms or somewhat
-- more, modulo 2^32.  A key is compared with the next position as a difference of up to 2^31 units,
-- so a transaction must end within a year.
--
-- After a crash or a failover, each sequence is at or above the values that committed transactions
-- have taken, since their records in WAL are before that of the commit.
\set ON_ERROR_STOP on
\set QUIET on
\if :{?layout}
\else
	\set layout twitter
\endif
\if :{?schema}
\else
	\set schema public
\endif
-- in a transaction that has begun before, now() is earlier
SELECT now() = statement_timestamp() AS is_alone \gset
\if :is_alone
	BEGIN;
\endif
SET LOCAL client_min_messages = warning;
SET LOCAL datestyle = ISO;
SELECT set_config('search_path', quote_ident(:'schema'), true) AS path,
	EXISTS (SELECT FROM pg_extension WHERE extname = 'snowflake') AS has_extension \gset
-- Objects of this script.  Default privileges (ALTER DEFAULT PRIVILEGES) are revoked from those
-- that this run creates; the others keep the privileges that were granted on them.
SELECT $sql$(SELECT 'ROUTINE', oid::regprocedure::text, proname, proowner,
		coalesce(proacl, acldefault('f', proowner))
	FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace
	UNION ALL SELECT 'TABLE', oid::regclass::text, relname, relowner, relacl
	FROM pg_class WHERE relnamespace = quote_ident(current_schema())::regnamespace
		AND relkind IN ('r', 'S'))
	AS o (kind, object, name, owner, acl)$sql$ AS objects \gset
SELECT coalesce(array_agg(object), '{}') AS existing
FROM :objects WHERE starts_with(name, 'snowflake_') \gset
\if :has_extension
	DO $$ BEGIN RAISE duplicate_object USING
		MESSAGE = 'the extension snowflake is installed in this database',
		HINT = 'Use the functions of the extension.'; END $$;
\endif

-- The layout
SELECT coalesce((SELECT definition FROM (VALUES
		('twitter', 'epoch=1288834974657ms tick=1ms timestamp=41 machine=10 sequence=12'),
		('discord', 'epoch=1420070400000ms tick=1ms timestamp=41 machine=10 sequence=12'),
		('instagram', 'epoch=1314220021721ms tick=1ms timestamp=40 machine=13 sequence=10'),
		('sonyflake', 'epoch=2014-09-01 tick=10ms timestamp=39 sequence=8 machine=16'),
		('mastodon', 'epoch=1970-01-01 tick=1ms timestamp=47 sequence=16'),
		('pgedge', 'epoch=2023-01-01 tick=1ms timestamp=41 machine=10 sequence=12'),
		('javascript', 'epoch=2020-01-01 tick=1ms timestamp=41 machine=5 sequence=7'))
	AS preset (name, definition) WHERE name = :'layout'), :'layout') AS definition \gset
-- its words; times in microseconds, epoch since 1970
SELECT count(*) = count(DISTINCT key) AND bool_and(key IN ('epoch', 'tick')
		OR key IN ('timestamp', 'machine', 'sequence') AND bits IS NOT NULL)
		AND coalesce((array_agg(key ORDER BY n) FILTER (WHERE bits >= 0))[1] = 'timestamp', false)
		AS is_list,
	coalesce(max(micros) FILTER (WHERE key = 'epoch'), 'NaN') AS epoch,
	coalesce(max(micros) FILTER (WHERE key = 'tick'), 0) AS tick,
	coalesce(max(bits) FILTER (WHERE key = 'timestamp'), 0) AS timestamp_bits,
	coalesce(max(bits) FILTER (WHERE key = 'machine'), 0) AS machine_bits,
	coalesce(max(bits) FILTER (WHERE key = 'sequence'), 0) AS sequence_bits,
	coalesce(max(n) FILTER (WHERE key = 'sequence') < max(n) FILTER (WHERE key = 'machine'), false)
		AS sequence_first
FROM regexp_split_to_table(btrim(:'definition', E' \t\n\v\f\r'), '[ \t\n\v\f\r]+')
		WITH ORDINALITY AS word (word, n),
	substring(word, '^([a-z]+)=.') AS key, substring(word, '=(.*)') AS value,
	CAST(CASE WHEN key NOT IN ('epoch', 'tick')
		THEN substring(value, '^0*(\d{1,2})$') END AS integer) AS bits,
	CAST(CASE WHEN key IN ('epoch', 'tick') THEN substring(value, '^(\d+(?:\.\d+)?)[mnu]?s$') END
		AS numeric) AS number,
	CAST(CASE WHEN key = 'epoch'
		THEN substring(value, '^(\d{4}-\d\d-\d\d(?:T[01]\d:[0-5]\d:[0-5]\d(?:\.\d{1,6})?Z'
			'|T2[0-3]:[0-5]\d:[0-5]\d(?:\.\d{1,6})?Z)?)$') END AS timestamp) AS instant,
	coalesce(extract(epoch FROM instant) * 1000000, number * CASE substring(value, '[mnu]?s$')
		WHEN 'ns' THEN 0.001 WHEN 'us' THEN 1 WHEN 'ms' THEN 1000 ELSE 1000000 END) AS micros \gset
-- the last tick begins before the end of timestamptz
SELECT coalesce(:'is_list' AND :'epoch'::numeric <> 'NaN' AND :'epoch' = trunc(:'epoch'::numeric)
		AND :'epoch'::numeric <= 9223372036854775 AND :tick BETWEEN 1 AND 1000000
		AND :tick = trunc(:tick) AND :timestamp_bits BETWEEN 1 AND 63
		AND :timestamp_bits + :machine_bits + :sequence_bits <= 63
		AND greatest(:machine_bits, :sequence_bits) <= 31
		AND trunc(2::numeric ^ :timestamp_bits) - 1
			<= div(9223371331199999999 - (:'epoch'::numeric - 946684800000000), nullif(:tick, 0)),
		false)
	AS is_layout \gset
\if :is_layout
\else
	DO $$ BEGIN RAISE invalid_parameter_value USING MESSAGE = 'invalid Snowflake layout',
		HINT = 'Set the variable "layout" to a preset, such as twitter, or to a definition, such as'
			' "epoch=2024-01-01 tick=1ms timestamp=41 machine=10 sequence=12".'; END $$;
\endif
SELECT trunc(:epoch) AS epoch, trunc(:tick) AS tick,
	CASE WHEN :'sequence_first' THEN 0 ELSE :sequence_bits END AS machine_shift,
	CASE WHEN :'sequence_first' THEN :machine_bits ELSE 0 END AS sequence_shift,
	:machine_bits + :sequence_bits AS timestamp_shift,
	trunc(2::numeric ^ (:timestamp_bits + :machine_bits + :sequence_bits)) - 1 AS last_id,
	trunc(2::numeric ^ :timestamp_bits) - 1 AS last_tick,
	trunc(2::numeric ^ :machine_bits) - 1 AS last_machine_id,
	trunc(2::numeric ^ :sequence_bits) - 1 AS last_sequence \gset
SELECT timestamp '1970-01-01' + div(:epoch, 86400000000)::float8 * interval '1 day'
		+ mod(:epoch, 86400000000)::float8 * interval '1 microsecond' AS first_instant,
	least(:last_id::numeric + 1, 9223372036854775807) AS last_bound \gset

-- Reading.  The functions are not strict, so that the planner can inline them.

CREATE OR REPLACE FUNCTION snowflake_checked(value numeric, last numeric, name text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 1 AS $$
BEGIN
	IF value BETWEEN 0 AND last THEN
		RETURN value;
	END IF;
	RAISE EXCEPTION USING
		ERRCODE = CASE name WHEN 'tick' THEN 'datetime_field_overflow'
			ELSE 'invalid_parameter_value' END,
		MESSAGE = format('%s %s is out of range for the Snowflake layout', name, value),
		DETAIL = format('The range is from 0 to %s.', last);
END $$;
COMMENT ON FUNCTION snowflake_checked(numeric, numeric, text) IS
'for the other functions: returns a value from 0 to the last one; raises datetime_field_overflow for other ticks, and invalid_parameter_value for other values';

CREATE OR REPLACE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN id BETWEEN 0 AND :last_id THEN (timestamp :'first_instant'
		+ ((id >> :timestamp_shift) * :tick / 86400000000) * interval '1 day'
		+ ((id >> :timestamp_shift) * :tick % 86400000000) * interval '1 microsecond')
		AT TIME ZONE 'UTC'
	ELSE to_timestamp(snowflake_checked(id, :last_id, 'ID')) END;
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
'returns the time of a Snowflake ID; raises invalid_parameter_value for a number that is no ID of the layout';

CREATE OR REPLACE FUNCTION snowflake_machine_id(id bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN id BETWEEN 0 AND :last_id THEN ((id >> :machine_shift) & :last_machine_id)::integer
	ELSE snowflake_checked(id, :last_id, 'ID')::integer END;
COMMENT ON FUNCTION snowflake_machine_id(bigint) IS
'returns the machine ID of a Snowflake ID; raises invalid_parameter_value for a number that is no ID of the layout';

CREATE OR REPLACE FUNCTION snowflake_sequence(id bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN id BETWEEN 0 AND :last_id THEN ((id >> :sequence_shift) & :last_sequence)::integer
	ELSE snowflake_checked(id, :last_id, 'ID')::integer END;
COMMENT ON FUNCTION snowflake_sequence(bigint) IS
'returns the sequence number of a Snowflake ID; raises invalid_parameter_value for a number that is no ID of the layout';

CREATE OR REPLACE FUNCTION snowflake_decode(id bigint,
	OUT created_at timestamptz, OUT machine_id integer, OUT sequence integer)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT snowflake_timestamp(id), snowflake_machine_id(id), snowflake_sequence(id);
END;
COMMENT ON FUNCTION snowflake_decode(bigint) IS
'returns the parts of a Snowflake ID; raises invalid_parameter_value for a number that is no ID of the layout';

CREATE OR REPLACE FUNCTION snowflake_encode(created_at timestamptz, machine_id integer,
	sequence integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN num_nulls(created_at, machine_id, sequence) = 0 THEN
	(snowflake_checked(floor((extract(epoch FROM created_at AT TIME ZONE 'UTC') * 1000000 - :epoch)
		/ :tick), :last_tick, 'tick') << :timestamp_shift)
	| (snowflake_checked(machine_id, :last_machine_id, 'machine ID') << :machine_shift)
	| (snowflake_checked(sequence, :last_sequence, 'sequence') << :sequence_shift) END;
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer) IS
'returns the Snowflake ID that has these parts; raises datetime_field_overflow or invalid_parameter_value if one is out of range for the layout';

CREATE OR REPLACE FUNCTION snowflake_boundary(instant timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN instant IS NOT NULL THEN
	least(greatest(ceil((extract(epoch FROM instant AT TIME ZONE 'UTC') * 1000000 - :epoch)
		/ :tick), 0) * (1::bigint << :timestamp_shift), :last_bound)::bigint END;
COMMENT ON FUNCTION snowflake_boundary(timestamptz) IS
'returns the boundary between Snowflake IDs at an instant: IDs with earlier times are below it, and all other IDs are not; takes any time, also infinity';

CREATE OR REPLACE FUNCTION snowflake_between(id bigint, start_at timestamptz, end_at timestamptz)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN id >= snowflake_boundary(start_at) AND id < snowflake_boundary(end_at);
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
'returns whether the time of a Snowflake ID is at or after start_at and before end_at; the planner turns it into two comparisons of id, for which an index can be used';

CREATE OR REPLACE FUNCTION snowflake_to_base32(id bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
		((number >> (5 * digit)) & 31)::integer + 1, 1), '' ORDER BY digit DESC)
	FROM snowflake_checked(id, 9223372036854775807, 'ID') number, generate_series(0, 12) digit);
COMMENT ON FUNCTION snowflake_to_base32(bigint) IS
'returns a Snowflake ID as 13 characters of Crockford''s base 32 in lower case, which sort in the order of the IDs; raises invalid_parameter_value for a negative number';

CREATE OR REPLACE FUNCTION snowflake_from_base32(id text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
DECLARE
	digits text COLLATE "C" := translate(lower(id COLLATE "C"), 'oil', '011');
BEGIN
	IF digits !~ '^[0-9a-hjkmnp-tv-z]{13}$' OR digits >= '8' THEN
		RAISE EXCEPTION USING
			ERRCODE = CASE WHEN digits ~ '^[0-9a-hjkmnp-tv-z]{13}$'
				THEN 'numeric_value_out_of_range' ELSE 'invalid_text_representation' END,
			MESSAGE = format('"%s" is not a Snowflake ID in base 32', id),
			DETAIL = 'It has 13 digits, and is at most 7zzzzzzzzzzzz.';
	END IF;
	RETURN bit_or((strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(digits, n, 1)) - 1)::bigint
		<< (5 * (13 - n))) FROM generate_series(1, 13) n;
END $$;
COMMENT ON FUNCTION snowflake_from_base32(text) IS
'returns the Snowflake ID that 13 characters of Crockford''s base 32 stand for; takes upper and lower case, o for 0, and i and l for 1; raises invalid_text_representation for other texts, and numeric_value_out_of_range if the number is above 9223372036854775807';

-- Issuing
\if :{?machine_id}
SELECT :'machine_id' ~ '^\d{1,10}$' AS is_number \gset
\if :is_number
	SELECT snowflake_checked(:machine_id, :last_machine_id, 'machine ID') \g /dev/null
\else
	DO $$ BEGIN RAISE invalid_parameter_value USING
		MESSAGE = 'the variable "machine_id" is not a number'; END $$;
\endif

CREATE TABLE IF NOT EXISTS snowflake_server (definition text NOT NULL);
COMMENT ON TABLE snowflake_server IS 'the layout of Snowflake IDs; locked to move snowflake_base';
SELECT NOT EXISTS (SELECT FROM snowflake_server) AS is_new,
	EXISTS (SELECT FROM snowflake_server WHERE definition <> :'definition') AS is_other \gset
\if :is_other
	DO $$ BEGIN RAISE object_not_in_prerequisite_state USING
		MESSAGE = 'the layout of the IDs of this database cannot be changed',
		DETAIL = format('The layout is "%s".', (SELECT definition FROM snowflake_server)); END $$;
\endif
\if :is_new
	INSERT INTO snowflake_server VALUES (:'definition');
	CREATE SEQUENCE snowflake_base MINVALUE 0 START 0;
	CREATE SEQUENCE snowflake_count;
	SELECT setval('snowflake_base', 0), nextval('snowflake_count') \g /dev/null
	COMMENT ON SEQUENCE snowflake_base IS
'a position, which moves forward with the clock; never set it';
	COMMENT ON SEQUENCE snowflake_count IS
'a count of calls; position of a Snowflake ID less snowflake_base; never set it';
\endif

-- The functions below name the sequences with their schema, and find all else in pg_catalog.
SELECT quote_ident(:'schema') || '.snowflake_base' AS base,
	quote_ident(:'schema') || '.snowflake_count' AS count \gset
SELECT format($create$
CREATE OR REPLACE FUNCTION snowflake_move(tick bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	base bigint;
BEGIN
	LOCK TABLE %1$I.snowflake_server IN EXCLUSIVE MODE;
	base := (tick << %4$s) - pg_sequence_last_value(%3$L);
	IF base > pg_sequence_last_value(%2$L) THEN
		PERFORM setval(%2$L, base);
	END IF;
	RAISE SQLSTATE 'SF001';
EXCEPTION
	WHEN SQLSTATE 'SF001' THEN
		RETURN;
END $$;

CREATE OR REPLACE FUNCTION snowflake_nextval() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	base bigint;
	pos bigint;
	ahead bigint;
	now_tick bigint;
	began bigint;
BEGIN
	IF current_setting('snowflake_sql.holds_horizon', true) IS DISTINCT FROM 'on' THEN
		pos := (pg_sequence_last_value(%2$L) + pg_sequence_last_value(%3$L)) >> %13$s & 4294967295;
		PERFORM pg_advisory_xact_lock_shared(1936617061, (pos - (pos >> 31 << 32))::integer);
		PERFORM set_config('snowflake_sql.holds_horizon', 'on', true);
	END IF;
	LOOP
		base := pg_sequence_last_value(%2$L);
		pos := base + nextval(%3$L);
		CONTINUE WHEN pg_sequence_last_value(%2$L) <> base;
		now_tick := ((date_part('epoch', clock_timestamp()) * 1000000)::bigint - %5$s) / %6$s;
		began := coalesce(began, now_tick);
		ahead := (pos >> %4$s) - now_tick;
		EXIT WHEN pos >> %4$s >= began - %7$s AND ahead <= %7$s;
		IF ahead < 0 THEN
			PERFORM %1$I.snowflake_move(now_tick);
		ELSIF ahead * %6$s <= 5000000 THEN
			PERFORM pg_sleep((ahead - %7$s) * %6$s / 1000000.0);
			EXIT;
		ELSE
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = 'the clock is behind the last Snowflake ID',
				DETAIL = format('The ID has a time that is %%s later than the clock.',
					make_interval(secs => ahead * %6$s / 1000000.0)),
				HINT = 'Correct the clock, or try again when it has passed that time.';
		END IF;
	END LOOP;
	IF pos >> %4$s > %8$s THEN
		RAISE sequence_generator_limit_exceeded USING
			MESSAGE = 'reached the last timestamp of the Snowflake layout';
	END IF;
	RETURN ((pos >> %4$s) << %9$s) | %10$s | ((pos & %11$s) << %12$s);
END $$;

CREATE OR REPLACE PROCEDURE snowflake_horizon(INOUT horizon bigint DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	pos bigint;
	unit bigint;
BEGIN
	IF pg_is_in_recovery() THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = 'cannot execute snowflake_horizon() during recovery';
	ELSIF current_setting('transaction_isolation') !~ '^read' THEN
		RAISE invalid_transaction_state USING
			MESSAGE = 'snowflake_horizon() must be called in a READ COMMITTED transaction';
	END IF;
	pos := pg_sequence_last_value(%2$L) + pg_sequence_last_value(%3$L) + 1;
	unit := pos >> %13$s;
	SELECT least(pos, min(unit - age) << %13$s) INTO pos
	FROM pg_locks, LATERAL (SELECT unit - objid::bigint & 4294967295 AS age) AS lock
	WHERE locktype = 'advisory' AND classid = 1936617061 AND objsubid = 2 AND age < 2147483648
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
	horizon := ((pos >> %4$s) << %9$s) | %10$s | ((pos & %11$s) << %12$s);
END $$;
$create$, :'schema', :'base', :'count', :sequence_bits, :epoch, :tick,
	greatest(10000 / :tick, 1)::bigint, :last_tick, :timestamp_shift,
	:machine_id::bigint << :machine_shift, :last_sequence, :sequence_shift,
	:sequence_bits + ceil(log(2, greatest(16000.0 / :tick, 1)))::integer) \gexec

COMMENT ON FUNCTION snowflake_move(bigint) IS
'for snowflake_nextval(): moves the base forward, so that the next position is in this tick or a later one';
COMMENT ON FUNCTION snowflake_nextval() IS
'generates a Snowflake ID; waits if its time is more than 10 ms later than the clock; raises object_not_in_prerequisite_state if it is more than 5 s later, and sequence_generator_limit_exceeded after the last tick of the layout';

COMMENT ON PROCEDURE snowflake_horizon(bigint) IS
'returns the ID below which no row can appear any more in this database, for statements that begin after the call; holds for rows whose ID snowflake_nextval() has returned in the transaction that writes them; raises object_not_in_prerequisite_state on a standby, and invalid_transaction_state in REPEATABLE READ and SERIALIZABLE transactions; the argument is ignored';

CREATE OR REPLACE FUNCTION snowflake_id() RETURNS bigint LANGUAGE sql RETURN snowflake_nextval();
COMMENT ON FUNCTION snowflake_id() IS
'the same as snowflake_nextval(), for tools that take a default with "nextval" in its name for a sequence';

CREATE OR REPLACE FUNCTION snowflake_nextvals(count integer) RETURNS SETOF bigint LANGUAGE sql
BEGIN ATOMIC
	SELECT snowflake_nextval() FROM generate_series(1, count);
END;
COMMENT ON FUNCTION snowflake_nextvals(integer) IS
'generates count increasing Snowflake IDs; raises the errors of snowflake_nextval()';

CREATE OR REPLACE FUNCTION snowflake_server_machine_id() RETURNS integer
LANGUAGE sql IMMUTABLE RETURN :machine_id;
COMMENT ON FUNCTION snowflake_server_machine_id() IS
'returns the machine ID of this database';

\if :{?floor}
	SELECT snowflake_move(snowflake_boundary(:'floor') >> :timestamp_shift) \g /dev/null
\endif
\endif

-- A function that is left to PUBLIC is not granted again if a default has revoked that.
SELECT format('REVOKE ALL ON %s %s FROM %s', kind, object,
	CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
FROM :objects, aclexplode(acl)
WHERE starts_with(name, 'snowflake_') AND object <> ALL (:'existing'::text[]) AND grantee <> owner
	AND (grantee <> 0 OR kind = 'TABLE' OR name = 'snowflake_move') \gexec
\if :is_alone
	COMMIT;
\endif
