-- Snowflake IDs in SQL alone: for servers on which the extension cannot be installed, and for
-- databases that only read its IDs.  Names and IDs are the same as in the extension.
--
-- This file is one statement, for any client: it creates the function snowflake_setup().  Any role
-- that can create objects in the schema can run it, on PostgreSQL 15 and later.  Then
--
--     SELECT snowflake_setup(machine_id => 7)
--
-- creates the other functions, in one transaction.  Its arguments:
--
-- machine_id   the machine ID.  No other database or server may issue IDs with it.  Without it,
--              only the functions that read IDs are created, and others stay as they are
-- layout       a preset or a definition, as the extension has in its setting snowflake.layout.  The
--              present layout of the database is kept unless this is set, which is twitter at first
-- floor        a time.  The IDs begin there, or at the clock if that is later
-- schema       an existing schema for the functions.  The first one of search_path unless set
--
-- Run snowflake_setup() again to change the machine ID, and after this file to replace the
-- functions with a newer version.
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
-- its positions.  A reader first reads the next position, and then looks at the locks.  If it finds
-- the lock of a transaction, the horizon is not above its key.  If it does not, either the
-- transaction takes its first position after that, and so at or above the position that was read,
-- or the lock was released, which PostgreSQL does after the transaction has left the list of
-- running ones.  A snapshot that is taken afterwards sees its rows.  A prepared transaction keeps
-- its lock.  A savepoint that is rolled back undoes the lock, and the local setting that says that
-- the lock is held.
--
-- Such a horizon is correct for the snapshots that are taken later, but a query has taken its own
-- before.  So a horizon is kept with a snapshot that was taken after it was computed.  It is
-- correct for each snapshot that sees the ends of all transactions that the kept one sees.
-- snowflake_horizon() keeps a new horizon when it is called with another snapshot than before, and
-- returns the greatest one that is correct for this snapshot: the new one, if no transaction has
-- ended meanwhile, and otherwise the horizon of an earlier call.  Later calls return the new one.
--
-- A snapshot lists running transactions, but not its own one, whose lock a horizon is not above,
-- and none if it was taken on a standby.
--
-- The key has two parts: a constant, 1936617061, and the position in units of 16 ms or somewhat
-- more, modulo 2^32.  The position is the next one, or that of the clock if the clock is later,
-- since the base is moved to the clock afterwards.  A key is compared with the next position as a
-- difference of up to 2^31 units, so a transaction must end within a year.  A horizon that is a
-- key is below all IDs of its tick, including IDs of another machine ID.  When the machine ID
-- changes, the base leaves its tick.
--
-- After a crash or a failover, each sequence is at or above the values that committed transactions
-- have taken, since their records in WAL are before the record of the commit.
--
-- How this file is written
--
-- Tools replace parts of a file, or cut it where a statement seems to end.  So it has no question
-- mark, no colon before a letter except in casts, no dollar sign before a brace, and one pair of
-- dollar quotes without a name, which is around all others.  Its comments have neither semicolons
-- nor apostrophes.
--
-- Calls of the functions below cast their arguments to the types of the parameters, so that no
-- other function matches them better.
CREATE OR REPLACE FUNCTION snowflake_setup(machine_id bigint DEFAULT NULL,
	layout text DEFAULT NULL, floor timestamptz DEFAULT NULL, schema name DEFAULT current_schema())
RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET datestyle = ISO SET standard_conforming_strings = on
AS $$
DECLARE
	namespace regnamespace;
	presets CONSTANT jsonb := '{
		"twitter": "epoch=1288834974657ms tick=1ms timestamp=41 machine=10 sequence=12",
		"discord": "epoch=1420070400000ms tick=1ms timestamp=41 machine=10 sequence=12",
		"instagram": "epoch=1314220021721ms tick=1ms timestamp=40 machine=13 sequence=10",
		"sonyflake": "epoch=2014-09-01 tick=10ms timestamp=39 sequence=8 machine=16",
		"mastodon": "epoch=1970-01-01 tick=1ms timestamp=47 sequence=16",
		"pgedge": "epoch=2023-01-01 tick=1ms timestamp=41 machine=10 sequence=12",
		"javascript": "epoch=2020-01-01 tick=1ms timestamp=41 machine=5 sequence=7"
	}';
	recorded text;	-- the layout of the database
	issues boolean;	-- whether the database issues IDs
	before bigint;	-- its machine ID
	objects text;	-- a query
	existing text[];	-- the objects that existed at the beginning
	parts record;	-- of the layout
	constants jsonb;
	item record;
	token record;
	command text;
BEGIN
	IF schema IS NULL THEN
		RAISE invalid_schema_name USING
			MESSAGE = 'no schema has been selected to create in',
			HINT = 'Set the argument "schema".';
	ELSIF EXISTS (SELECT FROM pg_extension WHERE extname = 'snowflake') THEN
		RAISE duplicate_object USING
			MESSAGE = 'extension "snowflake" is installed in this database',
			HINT = 'Use the functions of the extension.';
	END IF;
	namespace := quote_ident(schema)::regnamespace;

	-- one setup at a time
	PERFORM pg_advisory_xact_lock(1936617061);

	-- two generators with one machine ID would repeat IDs
	SELECT relnamespace::regnamespace INTO item FROM pg_class
	WHERE relname = 'snowflake_count' AND relkind = 'S' AND relpersistence <> 't'
		AND relnamespace <> namespace;
	IF FOUND AND machine_id IS NOT NULL THEN
		RAISE duplicate_object USING
			MESSAGE = format('this database issues Snowflake IDs in schema %s', item.relnamespace),
			HINT = 'Set the argument "schema" to this schema.';
	END IF;

	issues := to_regclass(format('%I.snowflake_count', schema)) IS NOT NULL;
	objects := format($query$(SELECT 'ROUTINE', oid::regprocedure::text, proname, proowner,
				coalesce(proacl, acldefault('f', proowner))
			FROM pg_proc WHERE pronamespace = %1$s OR proname = 'snowflake_setup'
			UNION ALL SELECT 'TYPE', oid::regtype::text, typname, typowner,
				coalesce(typacl, acldefault('T', typowner))
			FROM pg_type WHERE typnamespace = %1$s AND typname = 'snowflake_layout'
			UNION ALL SELECT 'TABLE', oid::regclass::text, relname, relowner, relacl
			FROM pg_class WHERE relnamespace = %1$s AND relkind IN ('r', 'v', 'm', 'f', 'p', 'S'))
		AS o (kind, object, name, owner, acl) WHERE starts_with(name, 'snowflake_')$query$,
		namespace::oid);
	EXECUTE format('SELECT array_agg(kind || object) FROM %s AND (name <> $1
			OR to_regproc($2) IS NOT NULL)', objects)
	INTO existing USING 'snowflake_setup', format('%I.snowflake_server_layout', schema);

	-- The objects.  Functions with a layout as an argument are also created without it, with the
	-- parts of the layout of the database as constants.  Functions that the planner can inline are
	-- not strict.
	FOR item IN SELECT object.*, split_part(signature, '(', 1) AS name, has_argument
		FROM (VALUES
('TYPE', 'snowflake_layout', $create$AS (epoch bigint, tick bigint, first_instant timestamp,
	sequence_bits integer, timestamp_shift integer, machine_shift integer, sequence_shift integer,
	last_id bigint, last_bound bigint, last_tick bigint, last_machine_id bigint,
	last_sequence bigint)$create$,
'the parts of a layout of Snowflake IDs, with epoch and tick in microseconds'),

('FUNCTION', 'snowflake_checked(value numeric, last numeric, name text)', $create$RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 1 AS $body$
-- qualified names are faster than a search_path of its own
BEGIN
	IF value OPERATOR(pg_catalog.>=) 0 AND value OPERATOR(pg_catalog.<=) last THEN
		RETURN value;
	END IF;
	RAISE EXCEPTION USING
		ERRCODE = CASE WHEN name OPERATOR(pg_catalog.=) 'tick' THEN 'datetime_field_overflow'
			ELSE 'invalid_parameter_value' END,
		MESSAGE = CASE name
			WHEN 'ID' THEN pg_catalog.format('%s is not a Snowflake ID', value)
			WHEN 'tick' THEN 'timestamp is out of range for the Snowflake layout'
			ELSE pg_catalog.format('argument "%s" is out of range for the Snowflake layout', name)
			END,
		DETAIL = pg_catalog.format('The value is %s.  The range is from 0 to %s.', value, last);
END $body$ $create$,
'for the other functions: returns a value if it is from 0 to the last one, and raises an error otherwise'),

-- The words of a definition are read, and then the rules over several words are checked.  The last
-- tick begins before the end of timestamptz.
('FUNCTION', 'snowflake_parse(layout text)', $create$RETURNS schema.snowflake_layout
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
	read record;
	parts schema.snowflake_layout;
BEGIN
	SELECT count(*) = count(DISTINCT key) AND bool_and(key IN ('epoch', 'tick')
			OR key IN ('timestamp', 'machine', 'sequence') AND bits IS NOT NULL)
			AND coalesce((array_agg(key ORDER BY n) FILTER (WHERE bits >= 0))[1] = 'timestamp',
			false) AS is_list,
		max(micros) FILTER (WHERE key = 'epoch') AS epoch,
		max(micros) FILTER (WHERE key = 'tick') AS tick,
		coalesce(max(bits) FILTER (WHERE key = 'timestamp'), 0) AS timestamp_bits,
		coalesce(max(bits) FILTER (WHERE key = 'machine'), 0) AS machine_bits,
		coalesce(max(bits) FILTER (WHERE key = 'sequence'), 0) AS sequence_bits,
		coalesce(max(n) FILTER (WHERE key = 'sequence')
			< max(n) FILTER (WHERE key = 'machine'), false) AS sequence_first
	INTO read
	FROM regexp_split_to_table(btrim(layout, E' \t\n\v\f\r'),
			'[ \t\n\v\f\r]+') WITH ORDINALITY AS word (word, n),
		substring(word, '^([a-z]+)=.') AS key, substring(word, '=(.*)') AS value,
		CAST(CASE WHEN key NOT IN ('epoch', 'tick')
			THEN substring(value, '^0*([0-9]{1,2})$') END AS integer) AS bits,
		CAST(CASE WHEN key IN ('epoch', 'tick')
			THEN substring(value, '^([0-9]+(|[.][0-9]+))[mnu]{0,1}s$') END AS numeric) AS number,
		CAST(CASE WHEN key = 'epoch' AND value !~ '^0000' AND value ~ ('^[0-9]{4}-(0[1-9]|1[0-2])-'
				'[0-9]{2}(|T([01][0-9]|2[0-3])[:][0-5][0-9][:][0-5][0-9](|[.][0-9]{1,6})Z)$')
			THEN overlay(value PLACING '01' FROM 9 FOR 2) END AS timestamp) AS in_month,
		CAST(CASE WHEN in_month IS NOT NULL THEN substr(value, 9, 2) END AS integer) AS day,
		CAST(in_month + (day - 1) * interval '1 day' AS timestamp) AS sum,
		CAST(CASE WHEN extract(day FROM sum) = day THEN sum END AS timestamp) AS instant,
		CAST(number * CASE WHEN value LIKE '%ns' THEN 0.001 WHEN value LIKE '%us' THEN 1
			WHEN value LIKE '%ms' THEN 1000 ELSE 1000000 END AS numeric) AS duration,
		coalesce(extract(epoch FROM instant) * 1000000,
			CASE WHEN duration <= 9223372036854775 THEN duration END) AS micros;
	IF coalesce(read.is_list AND read.epoch = trunc(read.epoch)
		AND read.tick BETWEEN 1 AND 1000000 AND read.tick = trunc(read.tick)
		AND read.timestamp_bits BETWEEN 1 AND 63
		AND read.timestamp_bits + read.machine_bits + read.sequence_bits <= 63
		AND greatest(read.machine_bits, read.sequence_bits) <= 31
		AND trunc(2::numeric ^ read.timestamp_bits) - 1
			<= div(9223371331199999999 - (read.epoch - 946684800000000), nullif(read.tick, 0)),
		false)
	THEN
		parts.epoch := read.epoch;
		parts.tick := read.tick;
		parts.first_instant := timestamp '1970-01-01'
			+ div(read.epoch, 86400000000)::float8 * interval '1 day'
			+ mod(read.epoch, 86400000000)::float8 * interval '1 microsecond';
		parts.sequence_bits := read.sequence_bits;
		parts.timestamp_shift := read.machine_bits + read.sequence_bits;
		parts.machine_shift := CASE WHEN read.sequence_first THEN 0 ELSE read.sequence_bits END;
		parts.sequence_shift := CASE WHEN read.sequence_first THEN read.machine_bits ELSE 0 END;
		parts.last_id := trunc(2::numeric ^ (read.timestamp_bits + parts.timestamp_shift)) - 1;
		parts.last_bound := least(parts.last_id::numeric + 1, 9223372036854775807);
		parts.last_tick := parts.last_id >> parts.timestamp_shift;
		parts.last_machine_id := (1::bigint << read.machine_bits) - 1;
		parts.last_sequence := (1::bigint << read.sequence_bits) - 1;
		RETURN parts;
	END IF;
	RAISE invalid_parameter_value USING
		MESSAGE = format('invalid Snowflake layout "%s"', layout),
		HINT = 'A layout is a preset, such as twitter, or a definition, such as'
			' "epoch=2024-01-01 tick=1ms timestamp=41 machine=10 sequence=12".';
END $body$ $create$,
'for snowflake_parts(): returns the parts of a definition of a layout'),

('FUNCTION', 'snowflake_server_layout()', $create$RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN server.layout$create$,
'returns the definition of the layout of this database'),

('FUNCTION', 'snowflake_parts(layout text)', $create$RETURNS schema.snowflake_layout
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE layout server.presets ELSE schema.snowflake_parse(layout) END$create$,
'for the other functions: returns the parts of a preset or a definition of a layout'),

('FUNCTION', 'snowflake_timestamp(id bigint, layout text)', $create$RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN id BETWEEN 0 AND layout.last_id THEN (layout.first_instant
		+ ((id >> layout.timestamp_shift) * layout.tick / 86400000000) * interval '1 day'
		+ ((id >> layout.timestamp_shift) * layout.tick % 86400000000) * interval '1 microsecond')
		AT TIME ZONE 'UTC'
	ELSE to_timestamp(schema.snowflake_checked(id::numeric, layout.last_id::numeric, 'ID'::text))
	END$create$,
'returns the time of a Snowflake ID, which is the start of its tick'),

('FUNCTION', 'snowflake_machine_id(id bigint, layout text)', $create$RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN id BETWEEN 0 AND layout.last_id
		THEN ((id >> layout.machine_shift) & layout.last_machine_id)::integer
	ELSE schema.snowflake_checked(id::numeric, layout.last_id::numeric, 'ID'::text)::integer
	END$create$,
'returns the machine ID of a Snowflake ID'),

('FUNCTION', 'snowflake_sequence(id bigint, layout text)', $create$RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN id BETWEEN 0 AND layout.last_id
		THEN ((id >> layout.sequence_shift) & layout.last_sequence)::integer
	ELSE schema.snowflake_checked(id::numeric, layout.last_id::numeric, 'ID'::text)::integer
	END$create$,
'returns the sequence number of a Snowflake ID within its tick'),

('FUNCTION', 'snowflake_decode(id bigint, layout text,
	OUT created_at timestamptz, OUT machine_id integer, OUT sequence integer)', $create$
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
	SELECT schema.snowflake_timestamp(id, layout), schema.snowflake_machine_id(id, layout),
		schema.snowflake_sequence(id, layout);
END$create$,
'returns the time, machine ID and sequence number of a Snowflake ID'),

('FUNCTION', 'snowflake_encode(created_at timestamptz, machine_id integer,
	sequence integer, layout text)', $create$RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN num_nulls(created_at, machine_id, sequence) = 0 THEN
	(schema.snowflake_checked(floor((extract(epoch FROM created_at AT TIME ZONE 'UTC') * 1000000
		- layout.epoch) / layout.tick), layout.last_tick::numeric, 'tick'::text)
		<< layout.timestamp_shift)
	| (schema.snowflake_checked(machine_id::numeric, layout.last_machine_id::numeric,
		'machine_id'::text) << layout.machine_shift)
	| (schema.snowflake_checked(sequence::numeric, layout.last_sequence::numeric,
		'sequence'::text) << layout.sequence_shift) END$create$,
'returns the Snowflake ID with the given time, rounded down to a tick, machine ID and sequence number'),

('FUNCTION', 'snowflake_boundary(instant timestamptz, layout text)', $create$RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN instant IS NOT NULL THEN
	least(greatest(ceil((extract(epoch FROM instant AT TIME ZONE 'UTC') * 1000000 - layout.epoch)
		/ layout.tick), 0) * (1::bigint << layout.timestamp_shift), layout.last_bound)::bigint
	END$create$,
'returns the lower bound of the Snowflake IDs with the given time or a later one'),

('FUNCTION', 'snowflake_between(id bigint, start_at timestamptz,
	end_at timestamptz)', $create$RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN id >= schema.snowflake_boundary(start_at) AND id < schema.snowflake_boundary(end_at)$create$,
'returns whether the time of a Snowflake ID is at or after start_at and before end_at'),

('FUNCTION', 'snowflake_to_base32(id bigint)', $create$RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
		((number >> (5 * digit)) & 31)::integer + 1, 1), '' ORDER BY digit DESC)
	FROM schema.snowflake_checked(id::numeric, 9223372036854775807::numeric, 'ID'::text) number,
		generate_series(0, 12) digit)$create$,
'returns a Snowflake ID as 13 characters of Crockford''s base 32, which sort in the order of the IDs'),

('FUNCTION', 'snowflake_from_base32(id text)', $create$RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
	digits text COLLATE "C" := translate(lower(id COLLATE "C"), 'oil', '011');
BEGIN
	IF digits !~ '^[0-9a-hjkmnp-tv-z]{13}$' OR digits >= '8' THEN
		RAISE EXCEPTION USING
			ERRCODE = CASE WHEN digits ~ '^[0-9a-hjkmnp-tv-z]{13}$'
				THEN 'numeric_value_out_of_range' ELSE 'invalid_text_representation' END,
			MESSAGE = format('"%s" is not a Snowflake ID in base 32', id),
			DETAIL = 'Such an ID has 13 digits, and is at most 7zzzzzzzzzzzz.';
	END IF;
	RETURN bit_or((strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(digits, n, 1)) - 1)::bigint
		<< (5 * (13 - n))) FROM generate_series(1, 13) n;
END $body$ $create$,
'returns the Snowflake ID that 13 characters of Crockford''s base 32 represent'),

-- Issuing
('TABLE', 'snowflake_server', '()',
'a table without rows, which is locked to move snowflake_base'),

('SEQUENCE', 'snowflake_base', 'MINVALUE 0 START 0',
'a position, which moves forward with the clock, and must not be set'),

('SEQUENCE', 'snowflake_count', '',
'a count of calls, which is the position of a Snowflake ID less snowflake_base, and must not be set'),

('FUNCTION', 'snowflake_move(tick bigint)', $create$RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
	base bigint;
BEGIN
	LOCK TABLE schema.snowflake_server IN EXCLUSIVE MODE;
	base := (tick << layout.sequence_bits) - pg_sequence_last_value(server.count);
	IF base > pg_sequence_last_value(server.base) THEN
		PERFORM setval(server.base, base);
	END IF;
	RAISE SQLSTATE 'SF001';
EXCEPTION
	WHEN SQLSTATE 'SF001' THEN
		RETURN;
END $body$ $create$,
'for snowflake_nextval(): moves the base forward, so that the next position is in this tick or a later one'),

('FUNCTION', 'snowflake_nextval()', $create$RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
	base bigint;
	pos bigint;
	ahead bigint;
	now_tick bigint;
	began bigint;
BEGIN
	began := ((date_part('epoch', clock_timestamp()) * 1000000)::bigint - layout.epoch)
		/ layout.tick;
	IF current_setting('snowflake_sql.holds_horizon', true) IS DISTINCT FROM 'on' THEN
		pos := greatest(pg_sequence_last_value(server.base) + pg_sequence_last_value(server.count),
			(began - server.max_ahead) << layout.sequence_bits);
		pos := pos >> server.horizon_shift & 4294967295;
		PERFORM pg_advisory_xact_lock_shared(1936617061, (pos - (pos >> 31 << 32))::integer);
		PERFORM set_config('snowflake_sql.holds_horizon', 'on', true);
	END IF;
	LOOP
		base := pg_sequence_last_value(server.base);
		pos := base + nextval(server.count);
		CONTINUE WHEN pg_sequence_last_value(server.base) <> base;
		now_tick := ((date_part('epoch', clock_timestamp()) * 1000000)::bigint - layout.epoch)
			/ layout.tick;
		ahead := (pos >> layout.sequence_bits) - now_tick;
		EXIT WHEN pos >> layout.sequence_bits >= began - server.max_ahead
			AND ahead <= server.max_ahead;
		IF ahead < 0 THEN
			PERFORM schema.snowflake_move(now_tick);
		ELSIF ahead * layout.tick <= 5000000 THEN
			PERFORM pg_sleep((ahead - server.max_ahead) * layout.tick / 1000000.0);
			EXIT;
		ELSIF ahead IS NULL THEN
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = 'the sequences of Snowflake IDs have no values',
				DETAIL = 'The database was restored from a dump without data.',
				HINT = 'Run snowflake_setup() with a machine ID that no other database has.';
		ELSE
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = 'the clock is behind the last Snowflake ID',
				DETAIL = format('The ID has a time that is %s later than the clock.',
					make_interval(secs => ahead * layout.tick / 1000000.0)),
				HINT = 'Correct the clock, or try again when it has passed that time.';
		END IF;
	END LOOP;
	IF pos >> layout.sequence_bits > layout.last_tick THEN
		RAISE sequence_generator_limit_exceeded USING
			MESSAGE = 'reached the last timestamp of the Snowflake layout';
	END IF;
	RETURN ((pos >> layout.sequence_bits) << layout.timestamp_shift) | server.machine_bits
		| ((pos & layout.last_sequence) << layout.sequence_shift);
END $body$ $create$,
'generates a Snowflake ID'),

-- The setting contains the last snapshot, and horizons with snapshots, between slashes.
('FUNCTION', 'snowflake_sees(snapshot pg_snapshot, other pg_snapshot)', $create$RETURNS boolean
LANGUAGE sql STABLE STRICT
RETURN pg_snapshot_xmax(other) <= pg_snapshot_xmin(snapshot)
	OR pg_snapshot_xmax(other) <= pg_snapshot_xmax(snapshot)
	AND NOT EXISTS (SELECT FROM pg_snapshot_xip(snapshot) AS xid
		WHERE pg_visible_in_snapshot(xid, other))
	AND (pg_snapshot_xmin(snapshot) IS NOT DISTINCT FROM pg_current_xact_id_if_assigned()
		OR EXISTS (SELECT FROM pg_snapshot_xip(snapshot)))$create$,
'for snowflake_horizon(): returns whether the first snapshot sees the ends of all transactions that the other one sees'),

('FUNCTION', 'snowflake_new_horizon()', $create$RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
	pos bigint := pg_sequence_last_value(server.base) + pg_sequence_last_value(server.count) + 1;
	unit bigint := pos >> server.horizon_shift;
	held bigint;
	horizon bigint;
BEGIN
	SELECT min(greatest(unit - age, 0)) << server.horizon_shift INTO held
	FROM pg_locks, LATERAL (SELECT unit - objid::bigint & 4294967295 AS age) AS lock
	WHERE locktype = 'advisory' AND classid = 1936617061 AND objsubid = 2 AND age < 2147483648
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
	IF held <= pos THEN
		horizon := (held >> layout.sequence_bits) << layout.timestamp_shift;
	ELSE
		horizon := ((pos >> layout.sequence_bits) << layout.timestamp_shift)
			| server.machine_bits | ((pos & layout.last_sequence) << layout.sequence_shift);
	END IF;
	-- PL/pgSQL takes a new snapshot for this statement
	RETURN horizon || ' ' || pg_current_snapshot();
END $body$ $create$,
'for snowflake_horizon(): returns a horizon and a later snapshot'),

('FUNCTION', 'snowflake_horizon()', $create$RETURNS bigint
LANGUAGE plpgsql STABLE COST 10000 SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
	seen pg_snapshot := pg_current_snapshot();
	kept text[] := string_to_array(current_setting('snowflake_sql.horizons', true), '/');
	is_fixed boolean := current_setting('transaction_isolation') !~ '^read';
	horizon bigint;
BEGIN
	IF pg_is_in_recovery() THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = 'cannot execute snowflake_horizon() during recovery';
	END IF;
	IF NOT is_fixed AND kept[1] IS DISTINCT FROM seen::text THEN
		kept := ARRAY[seen::text, schema.snowflake_new_horizon()] || kept[2:8];
		PERFORM set_config('snowflake_sql.horizons', array_to_string(kept, '/'), false);
	END IF;
	SELECT max(split_part(item, ' ', 1)::bigint) INTO horizon FROM unnest(kept[2:]) AS item
	WHERE schema.snowflake_sees(seen, split_part(item, ' ', 2)::pg_snapshot);
	IF horizon IS NULL AND is_fixed THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = 'no horizon is known for the snapshot of this statement',
			HINT = 'Call snowflake_horizon() in this session before the transaction begins.';
	END IF;
	RETURN coalesce(horizon, 0);
END $body$ $create$,
'returns the ID below which the calling statement sees all rows that this database will ever have, or 0'),

('FUNCTION', 'snowflake_id()', $create$RETURNS bigint
LANGUAGE sql RETURN schema.snowflake_nextval()$create$,
'generates a Snowflake ID, like snowflake_nextval()'),

('FUNCTION', 'snowflake_nextvals(count integer)', $create$RETURNS SETOF bigint
LANGUAGE sql
BEGIN ATOMIC
	SELECT schema.snowflake_nextval() FROM generate_series(1, count);
END$create$,
'generates the given number of Snowflake IDs, in increasing order'),

('FUNCTION', 'snowflake_server_machine_id()', $create$RETURNS integer
LANGUAGE sql IMMUTABLE RETURN server.machine_id$create$,
'returns the machine ID of this database'))
			AS object (kind, signature, definition, comment),
			unnest(CASE WHEN signature LIKE '%, layout text%' THEN ARRAY[true, false]
				ELSE ARRAY[false] END) AS has_argument
	LOOP
		EXIT WHEN item.name = 'snowflake_server' AND machine_id IS NULL;

		-- functions of other roles could call, or be called by, functions of this role
		EXECUTE format('SELECT owner::regrole FROM %s AND name = $1 AND owner <> $2', objects)
		INTO command USING item.name, quote_ident(current_user)::regrole;
		IF command IS NOT NULL THEN
			RAISE duplicate_object USING
				MESSAGE = format('"%s" in schema %s belongs to role %s', item.name, namespace,
					command),
				HINT = 'If this role has run snowflake_setup() before, run it again as this role.'
					'  Otherwise drop the object.';
		END IF;

		IF item.name = 'snowflake_server_machine_id'
			AND to_regprocedure(format('%I.snowflake_server_machine_id()', schema)) IS NOT NULL
		THEN
			EXECUTE format('SELECT %I.snowflake_server_machine_id()', schema) INTO before;
		END IF;

		-- The functions that parse a layout exist.
		IF item.name = 'snowflake_server_layout' THEN
			IF to_regproc(format('%I.snowflake_server_layout', schema)) IS NOT NULL THEN
				EXECUTE format('SELECT %I.snowflake_server_layout()', schema) INTO recorded;
			END IF;
			layout := coalesce(presets ->> layout, layout, recorded, presets ->> 'twitter');
			EXECUTE format('SELECT p.*, p IS DISTINCT FROM r AS is_other
				FROM %1$I.snowflake_parse($1) p, %1$I.snowflake_parse($2) r', schema)
			INTO parts USING layout, recorded;
			IF issues AND parts.is_other THEN
				RAISE object_not_in_prerequisite_state USING
					MESSAGE = 'cannot change the layout of the IDs of this database',
					DETAIL = format('The layout is "%s".', recorded);
			END IF;
			EXECUTE format('SELECT %I.snowflake_checked($1, $2, $3)', schema)
			USING machine_id::numeric, parts.last_machine_id::numeric, 'machine_id'::text;
			EXECUTE format($query$SELECT string_agg(format('WHEN %%L THEN CAST(%%L AS %%s)', name,
					%1$I.snowflake_parse(definition), $3), ' ')
				FROM (SELECT * FROM jsonb_each_text($1) UNION SELECT $2, $2)
					AS preset (name, definition)$query$, schema)
			INTO command USING presets, layout, format('%I.snowflake_layout', schema);
			constants := (SELECT jsonb_object_agg('layout.' || key, CASE key
					WHEN 'first_instant' THEN format('timestamp %L', value) ELSE value END)
				FROM jsonb_each_text(to_jsonb(parts)))
				|| jsonb_build_object('server.layout', quote_literal(layout),
					'server.presets', command,
					'server.base', quote_literal(quote_ident(schema) || '.snowflake_base'),
					'server.count', quote_literal(quote_ident(schema) || '.snowflake_count'),
					'server.machine_id', machine_id,
					'server.machine_bits', machine_id << parts.machine_shift,
					'server.max_ahead', greatest(10000 / parts.tick, 1),
					'server.horizon_shift', parts.sequence_bits
						+ ceil(log(2, greatest(16000.0 / parts.tick, 1))));
		END IF;

		IF item.has_argument THEN
			item.definition := regexp_replace(item.definition, '\mlayout\.([a-z_]+)',
				'(schema.snowflake_parts(layout)).\1', 'g');
		ELSIF item.signature LIKE '%, layout text%' THEN
			item.signature := replace(item.signature, ', layout text', '');
			item.definition := replace(item.definition, ', layout)', ')');
		END IF;
		item.definition := replace(item.definition, 'schema.', quote_ident(schema) || '.');
		FOR token IN SELECT * FROM jsonb_each_text(constants) WHERE value IS NOT NULL LOOP
			item.definition := replace(item.definition, token.key, token.value);
		END LOOP;
		IF item.kind = 'FUNCTION' THEN
			item.kind := 'OR REPLACE ' || item.kind;
		END IF;
		IF item.kind LIKE 'OR %' OR to_regclass(format('%I.%I', schema, item.name)) IS NULL THEN
			EXECUTE format('CREATE %s %I.%s %s', item.kind, schema, item.signature,
				item.definition);
		END IF;
		EXECUTE format('COMMENT ON %s %I.%s IS %L', replace(item.kind, 'OR REPLACE ', ''), schema,
			replace(item.signature, ' DEFAULT NULL', ''), item.comment);
	END LOOP;

	IF machine_id IS NOT NULL THEN
		-- a dump without data leaves them without values
		PERFORM setval(base, 0)
		FROM CAST(format('%I.snowflake_base', schema) AS regclass) AS sequence (base)
		WHERE pg_sequence_last_value(base) IS NULL;
		PERFORM nextval(count)
		FROM CAST(format('%I.snowflake_count', schema) AS regclass) AS sequence (count)
		WHERE pg_sequence_last_value(count) IS NULL;
	END IF;
	IF before <> machine_id THEN
		EXECUTE format('SELECT %I.snowflake_move((pg_sequence_last_value($1)
			+ pg_sequence_last_value($2) >> $3) + 1)', schema)
		USING format('%I.snowflake_base', schema)::regclass,
			format('%I.snowflake_count', schema)::regclass, parts.sequence_bits;
	END IF;
	IF floor IS NOT NULL THEN
		EXECUTE format('SELECT %1$I.snowflake_move(%1$I.snowflake_boundary($1) >> $2)', schema)
		USING floor, parts.timestamp_shift;
	END IF;

	-- Default privileges (ALTER DEFAULT PRIVILEGES) are revoked from the objects that are new.  The
	-- others keep the privileges that were granted on them.  A function that is left to PUBLIC is
	-- not granted again if a default has revoked that.
	FOR command IN EXECUTE format($query$SELECT format('REVOKE ALL ON %%s %%s FROM %%s', kind,
			object, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
		FROM (SELECT o.* FROM %s) AS o, aclexplode(acl)
		WHERE kind || object <> ALL ($1) AND owner = $2 AND grantee <> owner AND (grantee <> 0
			OR kind = 'TABLE' OR name IN ('snowflake_move', 'snowflake_setup'))$query$, objects)
	USING coalesce(existing, '{}'), quote_ident(current_user)::regrole
	LOOP
		EXECUTE command;
	END LOOP;

	RETURN format('layout "%s", machine ID %s', layout, coalesce(machine_id::text,
		CASE WHEN issues THEN 'as before' ELSE 'none' END));
END $$;
