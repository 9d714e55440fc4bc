/* snowflake_registry--1.0.sql */

/*
 * A registry of machine IDs: one database that leases them to servers.
 *
 * What it leases is a span: a machine ID, and an interval of time from lease_from to
 * before lease_until.  The time is the one that is in IDs.  A server issues IDs with that
 * machine ID only with times in its span, so that two servers never issue the same ID if
 * spans of one machine ID never overlap, whatever the clocks do.
 *
 * They do not overlap, because all that leases holds the lock of one row from its
 * beginning to its commit, and because
 *
 * - a new span of a machine ID starts at or after the lease_until that is stored, the end
 *   of all spans that it had;
 * - whoever holds a span is the only one for whom its end is moved forth;
 * - lease_until is moved back only by the holder, who says that it issued nothing at or
 *   after the new end, and issues nothing more; or by a person who says so.
 *
 * Clocks are compared so that nobody has to wait for a span to begin, and so that a
 * span does not reach far into the future.  Overlap is kept out by what is stored.
 *
 * So all depends on what is stored, and a registry can lose some of that: a standby is
 * promoted that had not received all, the database is restored, files are put back.
 * Each grant has a number, greater than those before.  The registry sees that it may have
 * lost grants when it is on another timeline, in another cluster or in another database
 * than before, or when a server knows of a grant that is not stored.  A registry that is
 * new may have lost all grants, those of a registry that was dropped, unless its owner
 * says that it is the first one.  In all these cases it makes a fence, which is
 *
 * - an instant, before which no new span starts.  A grant ends at most max_lease after
 *   the later of two clocks that are within max_skew of each other, so that all that was
 *   lost ends before the fence, which is max_lease and two times max_skew from now: once
 *   for the clock of a server, and once for that of the former registry;
 * - a number, fenced_grant, above all that were lost.  A row whose last grant is not above
 *   it may be an old one.  The server that says that it holds this machine ID is believed
 *   if the span that it was granted has not run out: for as long nobody else can have
 *   been given the machine ID, in what was lost or since.  So servers that hold a span
 *   keep it, whether the registry remembers or not; new ones wait for the fence.
 *
 * That needs a former registry that grants nothing any more, and a clock of the registry
 * that differs from the former one's by no more than max_skew.  Where files are put back
 * nothing is noticed until a server comes that knows more: use snowflake_registry.fence().
 *
 * Servers are trusted to use what they were granted, and nothing else.  A server that lies
 * can make others wait, by taking machine IDs or by causing fences.  Each number, time and
 * text that a server sends is bounded, so that its effects end soon after the calls do:
 * docs/security.md lists the bounds.
 *
 * An answer counts when its transaction has committed, not when the row has been read.
 * The commit waits for WAL, and for the synchronous standbys if there are any.
 *
 * This file is also the way to make a registry where no extension can be installed:
 *	  psql -1 -v ON_ERROR_STOP=1 -f snowflake_registry--1.0.sql
 * And so it makes its own schema, by the name of which everything is called.
 */

-- nothing of the schemas of whoever creates it, where others may have laid traps
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA snowflake_registry;

COMMENT ON SCHEMA snowflake_registry IS 'registry that leases machine IDs to servers that issue Snowflake IDs';

/*
 * What is stored
 *
 * The row of config is made by the first call, and not here: a dump restores it after
 * the extension was created.  Whoever locks it may read and write all else.
 */

CREATE TABLE snowflake_registry.config (
	singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
	layout text,
	machine_bits integer CHECK (machine_bits BETWEEN 0 AND 31),
	max_lease interval NOT NULL DEFAULT '1 hour' CHECK (max_lease > '0' AND max_lease <= '365 days'),
	max_skew interval NOT NULL DEFAULT '10 seconds' CHECK (max_skew >= '0' AND max_skew <= '1 day'),
	grants bigint NOT NULL DEFAULT 0,
	fence timestamptz NOT NULL DEFAULT '-infinity',
	fenced_grant bigint NOT NULL DEFAULT 0 CHECK (fenced_grant <= grants),
	incarnation text,
	is_new boolean NOT NULL DEFAULT false,
	CHECK ((layout IS NULL) = (machine_bits IS NULL))
);

COMMENT ON TABLE snowflake_registry.config IS
'the one row of what holds for all machine IDs; the layout is that of the first claim; grants is the number of the last grant; incarnation is where the registry was last seen, null if it has yet to make a fence; is_new is true until the first grant, or the first sign of an earlier registry';

CREATE TABLE snowflake_registry.machine (
	machine_id integer PRIMARY KEY CHECK (machine_id >= 0),
	token uuid UNIQUE,
	holder text NOT NULL,
	lease_from timestamptz NOT NULL CHECK (isfinite(lease_from)),
	lease_until timestamptz NOT NULL CHECK (isfinite(lease_until)),
	grant_number bigint NOT NULL,
	claimed_at timestamptz NOT NULL,
	seen_at timestamptz NOT NULL,
	skew interval NOT NULL,
	CHECK (lease_from <= lease_until)
);

COMMENT ON TABLE snowflake_registry.machine IS
'the last span of each machine ID that was ever leased; token is null when it was given back';

DO $$
BEGIN
	PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.config', '');
	PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.machine', '');
EXCEPTION WHEN feature_not_supported THEN
	NULL;	-- not in CREATE EXTENSION: tables like all others, which are dumped anyway
END
$$;

CREATE TYPE snowflake_registry.answer AS (
	machine_id integer,
	lease_from timestamptz,
	lease_until timestamptz,
	grant_number bigint,
	skew interval,
	refusal text,
	free_at timestamptz
);

COMMENT ON TYPE snowflake_registry.answer IS
'a span, the number of its grant, and how far the caller''s clock is ahead; or why there is none, and when there may be one where that is known.  Refusals are no errors, because an error would undo the fence that the call may have made';

/*
 * Steps, called by the functions below
 */

CREATE FUNCTION snowflake_registry.require(condition boolean, message text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF condition IS NOT TRUE THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = message;
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.require(boolean, text) IS
'raises invalid_parameter_value unless a condition is true; used by other functions';

-- A month, and a day over a change to summer time, have no length of their own.
CREATE FUNCTION snowflake_registry.exactly(length interval) RETURNS interval
LANGUAGE SQL IMMUTABLE STRICT
RETURN make_interval(secs => extract(epoch FROM length)::double precision);

COMMENT ON FUNCTION snowflake_registry.exactly(interval) IS
'interval of seconds, in which a day has 24 hours and a month 30 days; used by other functions';

CREATE FUNCTION snowflake_registry.distance(skew interval) RETURNS interval
LANGUAGE SQL IMMUTABLE STRICT
RETURN greatest(skew, -skew);

COMMENT ON FUNCTION snowflake_registry.distance(interval) IS
'interval without its sign; used by other functions';

/*
 * The timeline is that of WAL as it is written now; the control file has it only after the
 * next checkpoint.  A dump that is restored in the same cluster has another database, or
 * another table.
 */
CREATE FUNCTION snowflake_registry.current_incarnation() RETURNS text
LANGUAGE SQL VOLATILE
RETURN concat_ws('/',
	(SELECT system_identifier FROM pg_control_system()),
	left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
	(SELECT oid FROM pg_database WHERE datname = current_database()),
	'snowflake_registry.config'::regclass::oid);

COMMENT ON FUNCTION snowflake_registry.current_incarnation() IS
'cluster, timeline, database and table that this is; used by other functions';

-- How far after the present a grant of any registry with these limits can end.
CREATE FUNCTION snowflake_registry.longest_span(config snowflake_registry.config) RETURNS interval
LANGUAGE SQL IMMUTABLE
RETURN snowflake_registry.exactly(config.max_lease + 2 * config.max_skew);

COMMENT ON FUNCTION snowflake_registry.longest_span(snowflake_registry.config) IS
'how far after the present a grant can end: max_lease and two times max_skew; used by other functions';

/*
 * No registry has numbered a grant above the nanoseconds since 1970.  Grants add one each,
 * and a fence adds 10^12 at most: that is room for a million fences, and for one more every
 * 17 minutes.  At the limit, fences add less, and grants still have room: even thousands of
 * them a second are far slower than the limit, and after 2255, when it stops rising, there
 * are 2 * 10^17 numbers left.
 *
 * So a server can know of a number far above those stored, after many fences were lost.
 * But a server that lies cannot use up the numbers, however often it calls.
 */
CREATE FUNCTION snowflake_registry.grant_limit() RETURNS bigint
LANGUAGE SQL VOLATILE
RETURN least(extract(epoch FROM clock_timestamp()) * 1000000000, 9000000000000000000)::bigint;

COMMENT ON FUNCTION snowflake_registry.grant_limit() IS
'number that no fence has raised the numbers of grants above; used by other functions';

/*
 * The leap is more than can have been granted in what was lost, so that the numbers that
 * come are above those, too.  Near the limit it is less: then a number that was lost can be
 * above the fence, and causes another one.
 */
CREATE FUNCTION snowflake_registry.make_fence(until timestamptz, known bigint) RETURNS snowflake_registry.config
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	leap CONSTANT bigint := 1000000000000;
	config snowflake_registry.config;
BEGIN
	UPDATE snowflake_registry.config c
	SET fence = greatest(c.fence, coalesce(until, clock_timestamp() + snowflake_registry.longest_span(c))),
		grants = greatest(c.grants, known, least(greatest(c.grants, known) + leap, snowflake_registry.grant_limit())),
		incarnation = snowflake_registry.current_incarnation(),
		is_new = c.is_new AND c.incarnation IS NULL
	RETURNING * INTO config;
	UPDATE snowflake_registry.config c SET fenced_grant = c.grants RETURNING * INTO config;
	RETURN config;
END
$$;

COMMENT ON FUNCTION snowflake_registry.make_fence(timestamptz, bigint) IS
'lets no span start before an instant, null for the one that all grants that may have been lost end before; only the first fence leaves a registry new; used by other functions';

/*
 * The beginning of all that changes something: waits for its turn, and sees whether grants
 * were lost.
 *
 * The commit comes after the function, so that synchronous_commit is set until the end of
 * the transaction; a SET clause would end with the function.  A caller that has given up
 * would wait for the lock for ever, if a commit hangs; so nobody does.
 *
 * The first statement that reads is the one that locks.  In READ COMMITTED the following
 * ones see all that was committed before the lock was had.  In the higher levels they may
 * see less, but not fewer grants: each grant updates config, and then the lock fails.
 *
 * A grant that the caller knows of is stored under its token or its machine ID, unless
 * others have that machine ID by now, with a greater number; or it was made before the
 * last fence, which was made for such.  A caller who only claims has its number in grants.
 *
 * What time it is is not known where clocks differ, or where the caller has not told its
 * own (skew is null).  Then the fence is left to the next call: nothing is granted before.
 *
 * A new registry has no incarnation, so that the first call makes a fence.  A caller that
 * knows of a grant shows that there was a registry before.
 */
CREATE FUNCTION snowflake_registry.enter(skew interval, known bigint, token uuid, machine_id integer)
RETURNS snowflake_registry.config
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	config snowflake_registry.config;
	stored bigint;
	is_lost boolean;
BEGIN
	IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
	IF current_setting('lock_timeout') = '0' THEN
		PERFORM set_config('lock_timeout', '5s', true);
	END IF;
	SELECT * INTO config FROM snowflake_registry.config FOR UPDATE;
	IF NOT FOUND THEN
		INSERT INTO snowflake_registry.config (is_new) VALUES (true) ON CONFLICT DO NOTHING;
		SELECT * INTO config FROM snowflake_registry.config FOR UPDATE;
	END IF;
	PERFORM snowflake_registry.require(known <= greatest(config.grants, snowflake_registry.grant_limit()),
		'known must not be above the number of any grant that can have been made');
	IF config.is_new AND known > 0 THEN
		UPDATE snowflake_registry.config SET is_new = false RETURNING * INTO config;
	END IF;

	SELECT min(m.grant_number) INTO stored FROM snowflake_registry.machine m
	WHERE m.token = enter.token OR m.machine_id = enter.machine_id;
	stored := coalesce(stored, CASE WHEN machine_id IS NULL THEN config.grants ELSE 0 END);
	is_lost := known > greatest(stored, config.fenced_grant);
	IF is_lost THEN
		RAISE LOG 'role "%" knows of grant %, which is not stored', session_user, known;
	END IF;
	IF is_lost OR config.incarnation IS DISTINCT FROM snowflake_registry.current_incarnation() THEN
		IF snowflake_registry.distance(skew) <= config.max_skew THEN
			RETURN snowflake_registry.make_fence(NULL, known);
		ELSIF is_lost THEN
			UPDATE snowflake_registry.config c SET incarnation = NULL, grants = greatest(c.grants, known);
		END IF;
	END IF;
	RETURN config;
END
$$;

COMMENT ON FUNCTION snowflake_registry.enter(interval, bigint, uuid, integer) IS
'locks the registry until the end of the transaction, whose commit will not be asynchronous, makes a fence if grants were lost, and returns the row of config; used by other functions';

CREATE FUNCTION snowflake_registry.refuse(refusal text, free_at timestamptz DEFAULT NULL) RETURNS snowflake_registry.answer
LANGUAGE SQL IMMUTABLE
RETURN ROW(NULL, NULL, NULL, NULL, NULL, refusal, free_at)::snowflake_registry.answer;

COMMENT ON FUNCTION snowflake_registry.refuse(text, timestamptz) IS
'answer that refuses; used by other functions';

CREATE FUNCTION snowflake_registry.objection(skew interval, lease interval, config snowflake_registry.config) RETURNS text
LANGUAGE SQL STABLE
RETURN CASE
	WHEN snowflake_registry.distance(skew) > config.max_skew THEN
		format('the clock is %s %s that of the registry, whose max_skew is %s', snowflake_registry.distance(skew),
			CASE WHEN skew > '0' THEN 'ahead of' ELSE 'behind' END, config.max_skew)
	WHEN snowflake_registry.exactly(lease) > config.max_lease THEN
		format('a lease of %s is longer than max_lease of the registry, which is %s', lease, config.max_lease)
END;

COMMENT ON FUNCTION snowflake_registry.objection(interval, interval, snowflake_registry.config) IS
'why a caller gets nothing, whatever it is that it wants, or null; used by other functions';

-- What claims and renewals have in common is checked before anything is locked.
CREATE FUNCTION snowflake_registry.check_call(token uuid, lease interval, clock timestamptz, holder text, known bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_registry.require(token IS NOT NULL, 'token must not be null');
	PERFORM snowflake_registry.require(lease <= '365 days' AND snowflake_registry.exactly(lease) > '0',
		'lease must be above 0 and at most 365 days');
	PERFORM snowflake_registry.require(isfinite(clock), 'clock must be a finite time');
	PERFORM snowflake_registry.require(holder IS NOT NULL, 'holder must not be null');
	PERFORM snowflake_registry.require(length(holder) <= 256, 'holder must have at most 256 characters');
	PERFORM snowflake_registry.check_known(known);
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_call(uuid, interval, timestamptz, text, bigint) IS
'raises invalid_parameter_value for a malformed claim or renewal; used by other functions';

-- What it must not be above is known when the registry is locked.
CREATE FUNCTION snowflake_registry.check_known(known bigint) RETURNS void
LANGUAGE SQL
RETURN snowflake_registry.require(known >= 0, 'known must be 0 or above');

COMMENT ON FUNCTION snowflake_registry.check_known(bigint) IS
'raises invalid_parameter_value for a number below 0, or none; used by other functions';

CREATE FUNCTION snowflake_registry.check_layout(layout text, machine_bits integer) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_registry.require(layout IS NOT NULL, 'layout must not be null');
	PERFORM snowflake_registry.require(length(layout) <= 256, 'layout must have at most 256 characters');
	PERFORM snowflake_registry.require(machine_bits BETWEEN 0 AND 31, 'machine_bits must be from 0 to 31');
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_layout(text, integer) IS
'raises invalid_parameter_value for a malformed layout, or none; used by other functions';

/*
 * The end that is stored is never moved back here, whatever is asked for.  A token holds
 * one span: another one that it had is not renewed any more, and ends where it ends.
 */
CREATE FUNCTION snowflake_registry.give(id integer, new_token uuid, new_holder text,
	new_from timestamptz, new_until timestamptz, new_skew interval)
RETURNS snowflake_registry.answer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	number bigint;
	answer snowflake_registry.answer;
BEGIN
	UPDATE snowflake_registry.config c SET grants = c.grants + 1, is_new = false RETURNING c.grants INTO number;
	UPDATE snowflake_registry.machine m SET token = NULL WHERE m.token = new_token AND m.machine_id <> id;
	INSERT INTO snowflake_registry.machine AS m
	VALUES (id, new_token, new_holder, new_from, new_until, number, clock_timestamp(), clock_timestamp(), new_skew)
	ON CONFLICT ON CONSTRAINT machine_pkey DO UPDATE
	SET token = excluded.token,
		holder = excluded.holder,
		lease_from = excluded.lease_from,
		lease_until = greatest(m.lease_until, excluded.lease_until),
		grant_number = excluded.grant_number,
		claimed_at = CASE WHEN m.token = excluded.token THEN m.claimed_at ELSE excluded.claimed_at END,
		seen_at = excluded.seen_at,
		skew = excluded.skew
	RETURNING m.machine_id, m.lease_from, m.lease_until, m.grant_number, m.skew INTO answer;
	RETURN answer;
END
$$;

COMMENT ON FUNCTION snowflake_registry.give(integer, uuid, text, timestamptz, timestamptz, interval) IS
'stores a grant and returns it; used by other functions';

/*
 * The span before has to be over by the caller's clock, in which the new one is to begin;
 * and by the registry's as well unless it was given back, so that a server whose clock is
 * ahead does not take what another one uses.
 */
CREATE FUNCTION snowflake_registry.is_free(m snowflake_registry.machine, clock timestamptz) RETURNS boolean
LANGUAGE SQL VOLATILE
RETURN m.lease_until <= clock AND (m.token IS NULL OR m.lease_until <= clock_timestamp());

COMMENT ON FUNCTION snowflake_registry.is_free(snowflake_registry.machine, timestamptz) IS
'whether a machine ID that was leased can be leased to a caller with this clock; used by other functions';

/*
 * Rows are numbered from 0: a machine ID above the number of its row has a gap before it.
 * No row after the first free one is read, so that machine IDs that were leased in large
 * numbers, and are free again, do not make claims slow.
 */
CREATE FUNCTION snowflake_registry.smallest_free(ids bigint, clock timestamptz) RETURNS integer
LANGUAGE SQL VOLATILE
RETURN (
	SELECT id::integer
	FROM coalesce(
		(SELECT r.number
		FROM (SELECT m, m.machine_id, row_number() OVER (ORDER BY m.machine_id) - 1 AS number FROM snowflake_registry.machine m) r
		WHERE r.machine_id > r.number OR snowflake_registry.is_free(r.m, clock)
		ORDER BY r.machine_id LIMIT 1),
		(SELECT count(*) FROM snowflake_registry.machine)) id
	WHERE id < ids);

COMMENT ON FUNCTION snowflake_registry.smallest_free(bigint, timestamptz) IS
'smallest machine ID below a number that can be leased to a caller with this clock, or null; used by other functions';

CREATE FUNCTION snowflake_registry.refuse_fenced(config snowflake_registry.config) RETURNS snowflake_registry.answer
LANGUAGE SQL STABLE
RETURN CASE
	WHEN config.is_new THEN
		snowflake_registry.refuse(format('the registry is new, and snowflake_registry.declare_first() was not called: '
			'no new span starts before %s', config.fence), config.fence)
	ELSE
		snowflake_registry.refuse(format('the registry was moved or restored: no new span starts before %s', config.fence), config.fence)
END;

COMMENT ON FUNCTION snowflake_registry.refuse_fenced(snowflake_registry.config) IS
'answer to who has to wait for the fence; used by other functions';

CREATE FUNCTION snowflake_registry.refuse_taken(id integer) RETURNS snowflake_registry.answer
LANGUAGE SQL STABLE
RETURN (
	SELECT snowflake_registry.refuse(
		format('machine ID %s is taken until %s by "%s"', id, m.lease_until, m.holder), m.lease_until)
	FROM snowflake_registry.machine m WHERE m.machine_id = id);

COMMENT ON FUNCTION snowflake_registry.refuse_taken(integer) IS
'answer to who wants a machine ID that is not free; used by other functions';

CREATE FUNCTION snowflake_registry.refuse_all_taken(ids bigint) RETURNS snowflake_registry.answer
LANGUAGE SQL STABLE
RETURN (
	SELECT snowflake_registry.refuse(
		format('all %s machine IDs are taken until %s', ids, min(m.lease_until)), min(m.lease_until))
	FROM snowflake_registry.machine m WHERE m.machine_id < ids);

COMMENT ON FUNCTION snowflake_registry.refuse_all_taken(bigint) IS
'answer to who comes when no machine ID is free; used by other functions';

/*
 * What servers call
 *
 * The caller's clock is compared before the lock is waited for.
 */

/*
 * The span starts at the end of the one before, but no earlier than clocks differ: what
 * is long past is of no use.
 */
CREATE FUNCTION snowflake_registry.claim(token uuid, layout text, machine_bits integer, wanted integer,
	lease interval, clock timestamptz, holder text, known bigint)
RETURNS snowflake_registry.answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	skew interval;
	config snowflake_registry.config;
	objection text;
	ids bigint;
	lease_until timestamptz;
	held snowflake_registry.machine;
	id integer;
BEGIN
	PERFORM snowflake_registry.check_call(token, lease, clock, holder, known);
	PERFORM snowflake_registry.check_layout(layout, machine_bits);
	ids := 1::bigint << machine_bits;
	PERFORM snowflake_registry.require(wanted IS NULL OR wanted >= 0 AND wanted < ids,
		format('wanted must be from 0 to %s, or null', ids - 1));
	skew := clock - clock_timestamp();
	config := snowflake_registry.enter(skew, known, token, NULL);
	objection := snowflake_registry.objection(skew, lease, config);
	IF objection IS NOT NULL THEN
		RETURN snowflake_registry.refuse(objection);
	END IF;
	lease_until := greatest(clock_timestamp(), clock) + snowflake_registry.exactly(lease);

	IF config.layout IS NULL THEN
		UPDATE snowflake_registry.config SET layout = claim.layout, machine_bits = claim.machine_bits;
	ELSIF (config.layout, config.machine_bits) <> (layout, machine_bits) THEN
		RETURN snowflake_registry.refuse(format(
			'the registry is for layout "%s" with machine_bits %s, not for layout "%s" with machine_bits %s',
			config.layout, config.machine_bits, layout, machine_bits));
	END IF;

	-- asked once more, since the answer was lost
	SELECT * INTO held FROM snowflake_registry.machine m WHERE m.token = claim.token;
	IF held.grant_number > config.fenced_grant AND coalesce(wanted = held.machine_id, true) THEN
		RETURN snowflake_registry.give(held.machine_id, token, holder, held.lease_from, lease_until, skew);
	END IF;

	IF config.fence > least(clock_timestamp(), clock) THEN
		RETURN snowflake_registry.refuse_fenced(config);
	ELSIF wanted IS NULL THEN
		id := snowflake_registry.smallest_free(ids, clock);
		IF id IS NULL THEN
			RETURN snowflake_registry.refuse_all_taken(ids);
		END IF;
	ELSIF EXISTS (SELECT FROM snowflake_registry.machine m
			WHERE m.machine_id = wanted AND NOT snowflake_registry.is_free(m, clock)) THEN
		RETURN snowflake_registry.refuse_taken(wanted);
	ELSE
		id := wanted;
	END IF;
	RETURN snowflake_registry.give(id, token, holder,
		greatest(config.fence, least(clock_timestamp(), clock) - config.max_skew,
			(SELECT m.lease_until FROM snowflake_registry.machine m WHERE m.machine_id = id)),
		lease_until, skew);
END
$$;

COMMENT ON FUNCTION snowflake_registry.claim(uuid, text, integer, integer, interval, timestamptz, text, bigint) IS
'leases the machine ID that is wanted, or the smallest free one, to the holder of a token, until lease after the later of its clock and the registry''s; again by the same token, the span that it holds.  known is the greatest grant number that the caller was given, or 0.  Returns the span, or a refusal: clock off, lease too long, other layout, taken, fenced.  Raises invalid_parameter_value for what is malformed';

/*
 * The caller says which span it is that it holds: the row of its token can be of a former
 * one, if the registry lost grants.
 *
 * If the machine ID was not granted since the fence, and the span has not run out, nobody
 * else has been given that machine ID after the caller.  That holds by the clock of the
 * registry that may have done so, which is within max_skew of this one's.  A span that no
 * grant can have had is nobody's.
 */
CREATE FUNCTION snowflake_registry.renew(token uuid, machine_id integer, lease_from timestamptz, lease_until timestamptz,
	lease interval, clock timestamptz, holder text, known bigint)
RETURNS snowflake_registry.answer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	skew interval;
	config snowflake_registry.config;
	objection text;
	new_until timestamptz;
	stored snowflake_registry.machine;
BEGIN
	PERFORM snowflake_registry.check_call(token, lease, clock, holder, known);
	PERFORM snowflake_registry.require(known > 0, 'known must be the number of a grant');
	PERFORM snowflake_registry.require(machine_id >= 0, 'machine_id must be 0 or above');
	PERFORM snowflake_registry.require(isfinite(lease_from) AND isfinite(lease_until) AND lease_from < lease_until,
		'lease_from and lease_until must be finite, and in order');
	skew := clock - clock_timestamp();
	config := snowflake_registry.enter(skew, known, token, machine_id);
	objection := snowflake_registry.objection(skew, lease, config);
	IF objection IS NOT NULL THEN
		RETURN snowflake_registry.refuse(objection);
	END IF;
	new_until := greatest(clock_timestamp(), clock) + snowflake_registry.exactly(lease);

	SELECT * INTO stored FROM snowflake_registry.machine m WHERE m.machine_id = renew.machine_id;
	IF stored.grant_number > config.fenced_grant THEN
		IF (stored.token, stored.lease_from) IS DISTINCT FROM (token, lease_from) THEN
			RETURN snowflake_registry.refuse(format('this span of machine ID %s is not held under this token', machine_id));
		END IF;
	ELSIF lease_until > greatest(clock_timestamp(), clock) + snowflake_registry.longest_span(config)
		OR machine_id >= 1::bigint << config.machine_bits THEN
		RETURN snowflake_registry.refuse(format('no registry has leased machine ID %s until %s', machine_id, lease_until));
	ELSIF lease_until > greatest(clock_timestamp(), clock) + config.max_skew THEN
		new_until := greatest(new_until, lease_until);
	ELSE
		RETURN snowflake_registry.refuse_fenced(config);
	END IF;
	RETURN snowflake_registry.give(machine_id, token, holder, lease_from, new_until, skew);
END
$$;

COMMENT ON FUNCTION snowflake_registry.renew(uuid, integer, timestamptz, timestamptz, interval, timestamptz, text, bigint) IS
'moves the end of the span that the holder of a token was last granted, with the number known, to lease after the later of its clock and the registry''s.  Returns the span, or a refusal, after which the caller has what it had: clock off, lease too long, not held, never leased, fenced.  Raises invalid_parameter_value for what is malformed';

/*
 * It does not matter which span of the caller the row has, since all IDs are before
 * used_until.  That can be far after lease_until, where a server's line was ahead of its
 * clock; then the span was used to its end.  The end is moved forward only as far as a
 * renewal can reach that was lost: to the fence, or to the end of the longest span if the
 * fence was set later than that by hand.
 */
CREATE FUNCTION snowflake_registry.release(token uuid, used_until timestamptz, known bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	config snowflake_registry.config;
BEGIN
	PERFORM snowflake_registry.require(token IS NOT NULL, 'token must not be null');
	PERFORM snowflake_registry.require(used_until IS NOT NULL, 'used_until must not be null');
	PERFORM snowflake_registry.check_known(known);
	config := snowflake_registry.enter(NULL, known, token, NULL);
	UPDATE snowflake_registry.machine m
	SET token = NULL,
		lease_until = greatest(m.lease_from, least(used_until, greatest(m.lease_until,
			least(config.fence, clock_timestamp() + snowflake_registry.longest_span(config))))),
		seen_at = clock_timestamp()
	WHERE m.token = release.token;
END
$$;

COMMENT ON FUNCTION snowflake_registry.release(uuid, timestamptz, bigint) IS
'gives back what is held under a token, all of whose IDs, with whatever machine ID, have times before used_until (-infinity: there are none), and which issues none any more; nothing, if nothing is held.  known is the greatest grant number that the caller was given, or 0.  Raises invalid_parameter_value for what is malformed';

/*
 * What people call
 */

CREATE FUNCTION snowflake_registry.admit(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('GRANT USAGE ON SCHEMA snowflake_registry TO %s', role);
	EXECUTE format('GRANT EXECUTE ON FUNCTION'
		' snowflake_registry.claim(uuid, text, integer, integer, interval, timestamptz, text, bigint),'
		' snowflake_registry.renew(uuid, integer, timestamptz, timestamptz, interval, timestamptz, text, bigint),'
		' snowflake_registry.release(uuid, timestamptz, bigint) TO %s', role);
END
$$;

COMMENT ON FUNCTION snowflake_registry.admit(regrole) IS
'lets a role claim, renew and release, and nothing else; for the owner of the registry';

/*
 * A new registry has made a fence for the grants of one before it.  Only that is lifted:
 * where a grant was made, a server knows of one, or the registry has moved, it is not new.
 * No grant has been numbered, so the numbers start from 1, and a server that knows of a
 * grant after all is noticed.
 */
CREATE FUNCTION snowflake_registry.declare_first() RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	config snowflake_registry.config;
BEGIN
	config := snowflake_registry.enter('0', 0, NULL, NULL);
	IF config.is_new THEN
		UPDATE snowflake_registry.config SET fence = '-infinity', fenced_grant = 0, grants = 0, is_new = false;
	ELSIF config.fence > clock_timestamp() THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'the registry cannot be declared the first one',
			DETAIL = format('Grants might have been lost, which all end before %s.', config.fence),
			HINT = 'Wait until then.  If you know that no grant was lost, use snowflake_registry.lift_fence().';
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.declare_first() IS
'tells a new registry that no other one has leased machine IDs to the same servers before it, so that it leases at once.  Does nothing if there is no fence.  Raises object_not_in_prerequisite_state if there is one for another reason';

/*
 * A fence is to be after all grants that may be lost, also those that were made by what was
 * configured before.  The limits of a registry before a new one are at least what this one
 * is given: its fence is moved forward with them.
 */
CREATE FUNCTION snowflake_registry.configure(max_lease interval DEFAULT NULL, max_skew interval DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	config snowflake_registry.config;
	last_end timestamptz;
BEGIN
	config := snowflake_registry.enter('0', 0, NULL, NULL);
	max_lease := coalesce(snowflake_registry.exactly(max_lease), config.max_lease);
	max_skew := coalesce(snowflake_registry.exactly(max_skew), config.max_skew);
	PERFORM snowflake_registry.require(max_lease > '0' AND max_lease <= '365 days',
		'max_lease must be above 0 and at most 365 days');
	PERFORM snowflake_registry.require(max_skew >= '0' AND max_skew <= '1 day',
		'max_skew must be at least 0 and at most 1 day');
	SELECT max(lease_until) INTO last_end FROM snowflake_registry.machine;
	IF last_end > clock_timestamp() + max_lease + max_skew
			AND (max_lease < config.max_lease OR max_skew < config.max_skew) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'a machine ID is leased for longer than max_lease and max_skew would allow',
			DETAIL = format('The last lease ends at %s.', last_end),
			HINT = 'Let the servers ask for shorter leases first, and wait until the longer ones have ended.';
	END IF;
	UPDATE snowflake_registry.config c SET max_lease = configure.max_lease, max_skew = configure.max_skew
	RETURNING * INTO config;
	UPDATE snowflake_registry.config c
	SET fence = greatest(c.fence, clock_timestamp() + snowflake_registry.longest_span(config)) WHERE c.is_new;
END
$$;

COMMENT ON FUNCTION snowflake_registry.configure(interval, interval) IS
'sets the longest lease, and how far the clock of a server may be off; null keeps what is set.  Raises object_not_in_prerequisite_state where a lease is longer than it would allow, invalid_parameter_value out of range.  A failover that loses the change to something greater needs a fence by hand.  The fence of a new registry is moved forward';

/*
 * The minute is the most that a server's IDs may be ahead of its clock.
 */
CREATE FUNCTION snowflake_registry.declare_dead(machine_id integer, issued_until timestamptz DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	config snowflake_registry.config;
	ends_at timestamptz;
BEGIN
	PERFORM snowflake_registry.require(machine_id IS NOT NULL, 'machine_id must not be null');
	PERFORM snowflake_registry.require(coalesce(isfinite(issued_until), true), 'issued_until must be a finite time, or null');
	config := snowflake_registry.enter('0', 0, NULL, NULL);
	UPDATE snowflake_registry.machine m
	SET token = NULL,
		lease_until = greatest(m.lease_from, least(m.lease_until, coalesce(issued_until,
			clock_timestamp() + greatest(m.skew, '0') + config.max_skew + interval '1 minute')))
	WHERE m.machine_id = declare_dead.machine_id AND m.token IS NOT NULL
	RETURNING greatest(m.lease_until, config.fence) INTO ends_at;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('machine ID %s is not held', machine_id);
	END IF;
	RETURN ends_at;
END
$$;

COMMENT ON FUNCTION snowflake_registry.declare_dead(integer, timestamptz) IS
'takes a machine ID from a server that issues no IDs any more, and whose IDs have times before issued_until; null: its clock was right but for max_skew and what was last seen, and it stopped before now.  Returns from when on it can be leased.  Raises object_not_in_prerequisite_state if it is not held';

CREATE FUNCTION snowflake_registry.fence(until timestamptz DEFAULT NULL) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_registry.require(coalesce(isfinite(until), true), 'until must be a finite time, or null');
	PERFORM snowflake_registry.enter('0', 0, NULL, NULL);
	RETURN (snowflake_registry.make_fence(until, 0)).fence;
END
$$;

COMMENT ON FUNCTION snowflake_registry.fence(timestamptz) IS
'tells the registry that it has lost grants: no new span starts before an instant, null for the one that all of them end before; servers that hold a span keep it.  Never moves a fence back.  Returns where it is';

CREATE FUNCTION snowflake_registry.lift_fence() RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_registry.enter('0', 0, NULL, NULL);
	UPDATE snowflake_registry.config SET fence = '-infinity', fenced_grant = 0, is_new = false;
END
$$;

COMMENT ON FUNCTION snowflake_registry.lift_fence() IS
'tells the registry that it has lost no grant, as after the promotion of a synchronous standby: what it has stored holds, and there is no fence';

CREATE FUNCTION snowflake_registry.accept_layout(layout text DEFAULT NULL, machine_bits integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF layout IS NOT NULL OR machine_bits IS NOT NULL THEN
		PERFORM snowflake_registry.check_layout(layout, machine_bits);
	END IF;
	PERFORM snowflake_registry.enter('0', 0, NULL, NULL);
	UPDATE snowflake_registry.config SET layout = accept_layout.layout, machine_bits = accept_layout.machine_bits;
END
$$;

COMMENT ON FUNCTION snowflake_registry.accept_layout(text, integer) IS
'sets the layout that the registry is for, and its bits for the machine ID; without arguments the next claim sets them.  IDs of two layouts can be equal.  Raises invalid_parameter_value out of range';

CREATE VIEW snowflake_registry.machines AS
SELECT machine_id, holder,
	CASE WHEN token IS NULL THEN 'released' WHEN lease_until <= clock_timestamp() THEN 'expired' ELSE 'held' END AS state,
	lease_from, lease_until, claimed_at, seen_at, skew
FROM snowflake_registry.machine;

COMMENT ON VIEW snowflake_registry.machines IS
'machine IDs that were ever leased, and their last spans; skew is how far the holder''s clock was ahead when it was last seen';

CREATE VIEW snowflake_registry.status AS
SELECT c.layout, c.machine_bits, m.held, n.ids - m.taken AS free,
	CASE WHEN m.taken = n.ids THEN greatest(m.next_free_at, c.fence) END AS next_free_at,
	CASE WHEN c.fence > clock_timestamp() THEN c.fence END AS fence,
	c.max_lease, c.max_skew, c.grants
FROM snowflake_registry.config c
	CROSS JOIN LATERAL (SELECT 1::bigint << c.machine_bits AS ids) n
	CROSS JOIN LATERAL (
		SELECT count(token) AS held, count(*) FILTER (WHERE machine_id < n.ids) AS taken, min(lease_until) FILTER (WHERE machine_id < n.ids) AS next_free_at
		FROM snowflake_registry.machine WHERE lease_until > clock_timestamp()) m;

COMMENT ON VIEW snowflake_registry.status IS 'the registry in one row, none before it was first called';

/*
 * Rights
 */

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_registry FROM PUBLIC;
GRANT USAGE ON SCHEMA snowflake_registry TO pg_monitor;
GRANT SELECT ON snowflake_registry.machines, snowflake_registry.status TO pg_monitor;
