/* snowflake_registry--1.0.sql */

/*
 * A registry of machine IDs: one database that leases them to servers.
 *
 * A lease is a machine ID and a span of ID time, from lease_from to before lease_until.
 * ID time is the time that IDs contain.  A server uses the machine ID only in IDs whose
 * times are within its lease.  So two servers never issue the same ID if the leases of a
 * machine ID never overlap, whatever the clocks do.
 *
 * Leases of a machine ID do not overlap, because every function that grants or changes a
 * lease locks the same row from its beginning to its commit, and because
 *
 * - a new lease of a machine ID begins at or after the stored lease_until, which is the end
 *   of all earlier leases of that machine ID;
 * - only the holder of a lease can have its end moved forward;
 * - lease_until is moved backward only by the holder, which states that it has issued no ID
 *   at or after the new end and issues no more; or by an administrator, with the same statement.
 *   It is not moved to before earliest_end, the end of all leases of other holders.
 *
 * Clocks are compared only so that no server has to wait for its lease to begin, and so
 * that no lease extends far into the future.  Overlap is prevented by the stored rows.
 *
 * Everything therefore depends on the stored rows, and a registry can lose some of them: a
 * standby is promoted that had not received all changes, the database is restored from a
 * dump, or data files are restored from a copy.
 * Every lease has a number, which is greater than the numbers of all earlier leases; a renewal
 * gives the lease a new number.  The registry detects that it might have lost leases when it is on
 * another WAL timeline, in another cluster or in another database than before, or when a server
 * sends a lease number that is not stored.  A new registry might have lost all leases of a
 * registry that was dropped, unless its owner declares it the first one.  In all these cases the
 * registry begins a grace period.  It consists of
 *
 * - an instant, grace_until, before which no new lease begins.  A lease ends at most
 *   max_lease after the later of two clocks that are within max_skew of each other.  So all
 *   lost leases end before grace_until, which is max_lease plus two times max_skew from
 *   now: max_skew once for the clock of a server, and once for the clock of the previous registry;
 * - a number, grace_lease_number, above the numbers of all lost leases.  A row whose lease
 *   number is not above it might be outdated.  In that case a server that states that it
 *   holds the machine ID is trusted, as long as the lease that it was granted has not ended:
 *   until then the machine ID cannot have been granted to another server, either in the
 *   lost rows or since.  So servers that hold a lease keep it, whether or not the registry
 *   has a record of it, and new servers wait for the end of the grace period.
 *
 * This requires that the previous registry no longer grants leases, and that the clocks of the
 * previous and the current registry differ by no more than max_skew.
 *
 * Servers are trusted to use the leases that they were granted, and no others.  A server that lies
 * can make others wait, but not lower the end of a lease of another server: if it takes a machine
 * ID over in a grace period, the end that is stored for another holder becomes earliest_end.
 * docs/reference/registry.md lists the bounds of all arguments, by which the effects of false ones
 * end soon.
 *
 * An answer counts when its transaction has committed, not when the row has been read.
 * The commit waits for WAL, and for the synchronous standbys, if any are configured.
 *
 * This file can also be run where the extension cannot be installed:
 *	  psql -1 -v ON_ERROR_STOP=1 -f snowflake_registry--1.0.sql
 * For that reason it creates its own schema and qualifies all names with it.
 */

-- no schema of the caller's search_path, in which other users can have created objects
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA snowflake_registry;

COMMENT ON SCHEMA snowflake_registry IS
'registry that leases machine IDs to servers that issue Snowflake IDs';

/*
 * Tables
 *
 * The row of config is inserted by the first call and not by this script, since a dump is
 * restored after the extension has been created.  A transaction that has locked this row
 * can read and write all other rows.
 *
 * Leases of two registries can overlap, so a server records the identity of its registry, and
 * claims from no other one until an administrator of the server accepts it.  A standby, a restored
 * backup and a restored dump have the identity of the original, and begin a grace period.  A
 * registry that was dropped and created again has another one.  The last 15 hexadecimal digits of a
 * random UUID are random: its version and its variant come before them.
 *
 * Machine IDs below reserved are granted only to servers that request them by number.  Otherwise
 * a server that accepts any number could take one of them as soon as the lease of its server ends,
 * and keep it by renewals.  This affects which server is granted a lease, but not whether leases
 * overlap.
 *
 * The incarnation is the cluster, timeline, database and table at the last call, and null if a
 * grace period is still to begin.  is_new is true until the first lease is granted, or until the
 * first sign of an earlier registry.  Rows of machine with a lease_number up to grace_lease_number
 * might be outdated.
 */

CREATE TABLE snowflake_registry.config (
	singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
	layout text,
	machine_bits integer CHECK (machine_bits BETWEEN 0 AND 31),
	max_lease interval NOT NULL DEFAULT '1 hour'
		CHECK (max_lease > '0' AND max_lease <= '365 days'),
	max_skew interval NOT NULL DEFAULT '10 seconds' CHECK (max_skew >= '0' AND max_skew <= '1 day'),
	reserved integer NOT NULL DEFAULT 0 CHECK (reserved >= 0),
	last_lease_number bigint NOT NULL DEFAULT 0,
	grace_until timestamptz NOT NULL DEFAULT '-infinity',
	grace_lease_number bigint NOT NULL DEFAULT 0 CHECK (grace_lease_number <= last_lease_number),
	incarnation text,
	is_new boolean NOT NULL DEFAULT false,
	identity bigint NOT NULL
		DEFAULT ('x' || right(translate(gen_random_uuid()::text, '-', ''), 15))::bit(60)::bigint,
	CHECK ((layout IS NULL) = (machine_bits IS NULL))
);

COMMENT ON TABLE snowflake_registry.config IS
'settings and state that apply to all machine IDs, as one row';

/*
 * The token is null if the lease was released or declared dead, or if its holder was granted
 * another one.  lease_until is never moved to before earliest_end, because other holders can have
 * issued IDs up to that time.
 */
CREATE TABLE snowflake_registry.machine (
	machine_id integer PRIMARY KEY CHECK (machine_id >= 0),
	token uuid UNIQUE,
	holder text NOT NULL,
	lease_from timestamptz NOT NULL CHECK (isfinite(lease_from)),
	lease_until timestamptz NOT NULL CHECK (isfinite(lease_until)),
	lease_number bigint NOT NULL,
	claimed_at timestamptz NOT NULL,
	seen_at timestamptz NOT NULL,
	skew interval NOT NULL,
	earliest_end timestamptz NOT NULL,
	CHECK (lease_from <= lease_until)
);

COMMENT ON TABLE snowflake_registry.machine IS
'last lease of each machine ID that was ever leased';

DO $$
BEGIN
	PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.config', '');
	PERFORM pg_catalog.pg_extension_config_dump('snowflake_registry.machine', '');
EXCEPTION WHEN feature_not_supported THEN
	NULL;	-- run by psql instead of CREATE EXTENSION: pg_dump dumps these tables as any others
END
$$;

/*
 * A refusal is not an error, because an error would undo a grace period that the call has begun.
 * free_at is the time at which a lease might become available, if that is known, and skew is how
 * far the caller's clock is ahead of the clock of the registry.
 */
CREATE TYPE snowflake_registry.answer AS (
	machine_id integer,
	lease_from timestamptz,
	lease_until timestamptz, lease_number bigint,
	skew interval,
	refusal text,
	free_at timestamptz
);

COMMENT ON TYPE snowflake_registry.answer IS
'a lease and its number, or the reason for a refusal, and the skew of the caller';

/*
 * Internal functions, called by the functions below
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

COMMENT ON FUNCTION snowflake_registry.require IS
'raises an error with the given message unless the condition is true; internal';

-- The length of a month varies, and so does the length of a day, with daylight saving time.
CREATE FUNCTION snowflake_registry.exactly(length interval) RETURNS interval
LANGUAGE SQL IMMUTABLE STRICT
RETURN make_interval(secs => extract(epoch FROM length)::double precision);

COMMENT ON FUNCTION snowflake_registry.exactly IS
'converts an interval to seconds, with 24 hours a day and 30 days a month; internal';

/*
 * The timeline is the one on which WAL is being written; the control file shows a new
 * timeline only after the next checkpoint.  A dump that is restored in the same cluster has
 * another database, or another table.
 */
CREATE FUNCTION snowflake_registry.current_incarnation() RETURNS text
LANGUAGE SQL
RETURN concat_ws('/',
	(SELECT system_identifier FROM pg_control_system()),
	left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
	(SELECT oid FROM pg_database WHERE datname = current_database()),
	'snowflake_registry.config'::regclass::oid);

COMMENT ON FUNCTION snowflake_registry.current_incarnation IS
'identifiers of the cluster, WAL timeline, database and table of this registry, as one text; internal';

-- Longest time from now to the end of a lease, granted by any registry with these limits.
CREATE FUNCTION snowflake_registry.longest_lease(config snowflake_registry.config) RETURNS interval
LANGUAGE SQL IMMUTABLE
RETURN snowflake_registry.exactly(config.max_lease + 2 * config.max_skew);

COMMENT ON FUNCTION snowflake_registry.longest_lease IS
'returns the longest time from now to the end of a lease; internal';

/*
 * No registry has given a lease a number above the number of nanoseconds since 1970, so a
 * server that lies cannot use up the numbers, however often it calls.  Each lease increases the
 * last number by one, and each grace period by at most 10^12, or by less near the limit.  The
 * limit rises faster than thousands of leases per second increase the numbers.  After 2255, when
 * it stops rising, 2 * 10^17 numbers are left.
 */
CREATE FUNCTION snowflake_registry.lease_number_limit() RETURNS bigint
LANGUAGE SQL
RETURN least(extract(epoch FROM clock_timestamp()) * 1000000000, 9000000000000000000)::bigint;

COMMENT ON FUNCTION snowflake_registry.lease_number_limit IS
'returns the greatest number to which a grace period increases last_lease_number; internal';

/*
 * The leap is more than the number of leases that can have been lost, so that the numbers
 * granted from now on are above the lost ones, too.  Near the limit the leap is smaller: then
 * a lost number can be above grace_lease_number, and causes another grace period.
 *
 * The end defaults to an instant after the end of all leases that can have been lost.  A grace
 * period is never shortened.  known is a lease number that a caller has sent, or 0.  Only the first
 * grace period leaves a registry new.
 */
CREATE FUNCTION snowflake_registry.begin_grace_period(until timestamptz, known bigint)
RETURNS snowflake_registry.config
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	leap CONSTANT bigint := 1000000000000;
	config snowflake_registry.config;
BEGIN
	UPDATE snowflake_registry.config c
	SET grace_until = greatest(c.grace_until,
		coalesce(until, clock_timestamp() + snowflake_registry.longest_lease(c))),
		last_lease_number = greatest(c.last_lease_number, known,
			least(greatest(c.last_lease_number, known) + leap,
				snowflake_registry.lease_number_limit())),
		incarnation = snowflake_registry.current_incarnation(),
		is_new = c.is_new AND c.incarnation IS NULL
	RETURNING * INTO config;
	UPDATE snowflake_registry.config c SET grace_lease_number = c.last_lease_number
		RETURNING * INTO config;
	RETURN config;
END
$$;

COMMENT ON FUNCTION snowflake_registry.begin_grace_period IS
'begins a grace period that lasts at least until the given time, and returns the row of config; internal';

/*
 * Every function that changes something calls this one first.  It waits for the lock, and
 * detects whether leases were lost.
 *
 * skew is how far the caller's clock is ahead, or null if that is unknown.  known is the greatest
 * lease number that the caller was granted, or 0.  Functions that administrators call use the
 * defaults.
 *
 * The commit comes after the function, so synchronous_commit is set until the end of the
 * transaction; a SET clause would end with the function.
 *
 * The first statement that reads also locks.  At higher isolation levels than READ COMMITTED, the
 * following ones never see fewer leases: each lease updates config, and then the attempt to lock
 * the row fails.
 *
 * A lease number that the caller sends is stored under its token or its machine ID, except in two
 * cases: another server has since been granted the machine ID, with a greater number; or the lease
 * was granted before the last grace period, which was begun for such leases.  A caller of claim()
 * names no machine ID, and its number is compared with last_lease_number if its token is not
 * stored.
 *
 * The time is uncertain if the clocks differ too much, or if the caller has not sent its own
 * (skew is null).  Then the next call begins the grace period, and until then no lease is
 * granted.
 *
 * A new registry has no incarnation, so the first call begins a grace period.  A caller that sends
 * a lease number shows that an earlier registry existed.
 */
CREATE FUNCTION snowflake_registry.enter(skew interval DEFAULT '0', known bigint DEFAULT 0,
	token uuid DEFAULT NULL, machine_id integer DEFAULT NULL)
RETURNS snowflake_registry.config
LANGUAGE plpgsql
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
	SELECT * INTO config FROM snowflake_registry.config FOR UPDATE;
	IF NOT FOUND THEN
		INSERT INTO snowflake_registry.config (is_new) VALUES (true) ON CONFLICT DO NOTHING;
		SELECT * INTO config FROM snowflake_registry.config FOR UPDATE;
	END IF;
	PERFORM snowflake_registry.require(
		known <= greatest(config.last_lease_number, snowflake_registry.lease_number_limit()),
		'argument "known" must not be above all lease numbers that can have been granted');
	IF config.is_new AND known > 0 THEN
		UPDATE snowflake_registry.config SET is_new = false RETURNING * INTO config;
	END IF;

	SELECT min(m.lease_number) INTO stored FROM snowflake_registry.machine m
	WHERE m.token = enter.token OR m.machine_id = enter.machine_id;
	stored := coalesce(stored,
		CASE WHEN machine_id IS NULL THEN config.last_lease_number ELSE 0 END);
	is_lost := known > greatest(stored, config.grace_lease_number);
	IF is_lost THEN
		RAISE LOG 'role "%" has sent lease number %, which is not stored', session_user, known;
	END IF;
	IF is_lost OR config.incarnation IS DISTINCT FROM snowflake_registry.current_incarnation() THEN
		IF greatest(skew, -skew) <= config.max_skew THEN
			RETURN snowflake_registry.begin_grace_period(NULL, known);
		ELSIF is_lost THEN
			UPDATE snowflake_registry.config c SET incarnation = NULL,
				last_lease_number = greatest(c.last_lease_number, known);
		END IF;
	END IF;
	RETURN config;
END
$$;

COMMENT ON FUNCTION snowflake_registry.enter IS
'locks the registry, begins a grace period if leases might have been lost, and returns the row of config; internal';

/*
 * Servers record the answer, so a row that is inserted is on disk, and on synchronous standbys,
 * before it is returned.  No grace period begins, since the clock of the caller is not known.
 */
CREATE FUNCTION snowflake_registry.identity() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM snowflake_registry.config) THEN
		PERFORM snowflake_registry.enter(NULL);
	END IF;
	RETURN (SELECT c.identity FROM snowflake_registry.config c);
END
$$;

COMMENT ON FUNCTION snowflake_registry.identity IS
'returns the identity of this registry, which servers compare with the identity that they have recorded';

CREATE FUNCTION snowflake_registry.refuse(refusal text, skew interval,
	free_at timestamptz DEFAULT NULL)
RETURNS snowflake_registry.answer
LANGUAGE SQL IMMUTABLE
RETURN ROW(NULL, NULL, NULL, NULL, skew, refusal, free_at)::snowflake_registry.answer;

COMMENT ON FUNCTION snowflake_registry.refuse IS
'returns an answer with the reason for a refusal; internal';

CREATE FUNCTION snowflake_registry.objection(skew interval, lease interval,
	config snowflake_registry.config, layout text DEFAULT NULL, machine_bits integer DEFAULT NULL)
RETURNS text
LANGUAGE SQL STABLE
RETURN CASE
	WHEN skew > config.max_skew THEN
		format('the clock is %s ahead of the clock of the registry, whose max_skew is %s',
			skew, config.max_skew)
	WHEN -skew > config.max_skew THEN
		format('the clock is %s behind the clock of the registry, whose max_skew is %s',
			-skew, config.max_skew)
	WHEN snowflake_registry.exactly(lease) > config.max_lease THEN
		format('a lease of %s is longer than max_lease of the registry, which is %s', lease,
			config.max_lease)
	WHEN (config.layout, config.machine_bits) <> (layout, machine_bits) THEN
		format('the registry is for layout "%s" with machine_bits %s, not for layout "%s" with'
			' machine_bits %s',
			config.layout, config.machine_bits, layout, machine_bits)
END;

COMMENT ON FUNCTION snowflake_registry.objection IS
'returns the reason to refuse a claim or renewal, or null; internal';

-- The arguments that claim() and renew() share are checked before anything is locked.  enter()
-- checks the upper bound of known.
CREATE FUNCTION snowflake_registry.check_call(token uuid, lease interval, clock timestamptz,
	holder text, known bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_registry.require(token IS NOT NULL, 'argument "token" must not be null');
	PERFORM snowflake_registry.require(lease <= '365 days'
		AND snowflake_registry.exactly(lease) > '0',
		'argument "lease" must be greater than 0 and at most 365 days');
	PERFORM snowflake_registry.require(isfinite(clock), 'argument "clock" must be a finite time');
	PERFORM snowflake_registry.require(holder IS NOT NULL, 'argument "holder" must not be null');
	PERFORM snowflake_registry.require(length(holder) <= 256,
		'argument "holder" must have at most 256 characters');
	PERFORM snowflake_registry.require(known >= 0, 'argument "known" must be at least 0');
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_call IS
'raises an error for invalid arguments of claim() or renew(); internal';

CREATE FUNCTION snowflake_registry.check_layout(layout text, machine_bits integer) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_registry.require(layout IS NOT NULL, 'argument "layout" must not be null');
	PERFORM snowflake_registry.require(length(layout) <= 256,
		'argument "layout" must have at most 256 characters');
	PERFORM snowflake_registry.require(machine_bits BETWEEN 0 AND 31,
		'argument "machine_bits" must be from 0 to 31');
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_layout IS
'raises an error for an invalid or null layout or number of bits; internal';

/*
 * The stored end is never moved backward here, whatever end is requested.  A token holds one
 * lease: another lease that it held can no longer be renewed, and ends when it ends.
 *
 * A new lease begins at or after the stored end.  But in a grace period the caller of renew()
 * states where its lease begins, so earliest_end does not depend on that alone.
 */
CREATE FUNCTION snowflake_registry.grant_lease(id integer, new_token uuid, new_holder text,
	new_from timestamptz, new_until timestamptz, new_skew interval)
RETURNS snowflake_registry.answer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	number bigint;
	answer snowflake_registry.answer;
BEGIN
	UPDATE snowflake_registry.config c SET last_lease_number = c.last_lease_number + 1,
		is_new = false
	RETURNING c.last_lease_number INTO number;
	UPDATE snowflake_registry.machine m SET token = NULL WHERE m.token = new_token
		AND m.machine_id <> id;
	INSERT INTO snowflake_registry.machine AS m
	VALUES (id, new_token, new_holder, new_from, new_until, number, clock_timestamp(),
		clock_timestamp(), new_skew, new_from)
	ON CONFLICT ON CONSTRAINT machine_pkey DO UPDATE
	SET token = excluded.token,
		holder = excluded.holder,
		lease_from = excluded.lease_from,
		lease_until = greatest(m.lease_until, excluded.lease_until),
		earliest_end = greatest(excluded.lease_from, CASE WHEN m.token = excluded.token
			THEN m.earliest_end ELSE m.lease_until END),
		lease_number = excluded.lease_number,
		claimed_at = CASE WHEN m.token = excluded.token THEN m.claimed_at
			ELSE excluded.claimed_at END,
		seen_at = excluded.seen_at,
		skew = excluded.skew
	RETURNING m.machine_id, m.lease_from, m.lease_until, m.lease_number, m.skew INTO answer;
	RETURN answer;
END
$$;

COMMENT ON FUNCTION snowflake_registry.grant_lease IS
'stores a lease of a machine ID with the next lease number, and returns it; internal';

/*
 * The previous lease must have ended by the caller's clock, because the new lease begins by
 * that clock.  Unless it was released, it must have ended by the registry's clock as well, so
 * that a server whose clock is ahead does not take a machine ID that is in use.
 */
CREATE FUNCTION snowflake_registry.is_free(m snowflake_registry.machine, clock timestamptz)
RETURNS boolean
LANGUAGE SQL
RETURN m.lease_until <= clock AND (m.token IS NULL OR m.lease_until <= clock_timestamp());

COMMENT ON FUNCTION snowflake_registry.is_free IS
'returns whether a machine ID that was leased before can be leased to a caller with the given clock; internal';

/*
 * The registry is locked during a claim, so the number of claims in a second depends on this
 * search.  Counting rows takes half the time of the second loop, in which the first row is often
 * free.
 */
CREATE FUNCTION snowflake_registry.smallest_free(id bigint, ids bigint, clock timestamptz)
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	next record;
BEGIN
	WHILE (SELECT count(*) = 200 FROM snowflake_registry.machine m WHERE m.machine_id >= id
			AND m.machine_id < least(id + 200, ids) AND NOT snowflake_registry.is_free(m, clock))
	LOOP
		id := id + 200;
	END LOOP;
	FOR next IN
		SELECT m.machine_id, snowflake_registry.is_free(m, clock) AS is_free
		FROM snowflake_registry.machine m WHERE m.machine_id >= id AND m.machine_id < ids
		ORDER BY m.machine_id
	LOOP
		EXIT WHEN next.machine_id > id OR next.is_free;
		id := id + 1;
	END LOOP;
	RETURN CASE WHEN id < ids THEN id END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.smallest_free IS
'returns the smallest machine ID from id to below ids that can be leased to a caller with the given clock, or null; internal';

CREATE FUNCTION snowflake_registry.refuse_in_grace_period(config snowflake_registry.config,
	skew interval)
RETURNS snowflake_registry.answer
LANGUAGE SQL STABLE
RETURN snowflake_registry.refuse(CASE
	WHEN config.is_new THEN format('the registry is new, and snowflake_registry.declare_first()'
		' was not called: no new lease begins before %s', config.grace_until)
	ELSE format('the registry was moved or restored: no new lease begins before %s',
		config.grace_until) END, skew, config.grace_until);

COMMENT ON FUNCTION snowflake_registry.refuse_in_grace_period IS
'returns the refusal of a new lease during a grace period; internal';

CREATE FUNCTION snowflake_registry.refuse_taken(wanted integer, config snowflake_registry.config,
	ids bigint, skew interval)
RETURNS snowflake_registry.answer
LANGUAGE SQL STABLE
RETURN (
	SELECT snowflake_registry.refuse(CASE
		WHEN wanted IS NOT NULL THEN
			format('machine ID %s is taken until %s by "%s"', wanted, free_at, holder)
		WHEN free_at IS NULL THEN
			format('all %s machine IDs are reserved for servers that request them', ids)
		ELSE format('all %s machine IDs are taken until %s', ids, free_at) END, skew, free_at)
	FROM (SELECT min(m.lease_until) AS free_at, min(m.holder) AS holder
		FROM snowflake_registry.machine m
		WHERE CASE WHEN wanted IS NULL THEN m.machine_id >= config.reserved AND m.machine_id < ids
			ELSE m.machine_id = wanted END) t);

COMMENT ON FUNCTION snowflake_registry.refuse_taken IS
'returns the refusal if the machine ID wanted, or all machine IDs, are taken; internal';

/*
 * Functions that servers call
 *
 * The caller's clock is compared before the function waits for the lock.
 *
 * If a commit hangs, or a table is locked, calls would wait even after their callers have given up,
 * and repeated calls would take up all connections.  So all functions that others call set
 * lock_timeout, which applies before they use the row type of a table.
 */

/*
 * The lease begins at the end of the previous one, but not earlier than max_skew before now:
 * times further in the past are of no use.
 */
CREATE FUNCTION snowflake_registry.claim(token uuid, layout text, machine_bits integer,
	wanted integer, lease interval, clock timestamptz, holder text, known bigint)
RETURNS snowflake_registry.answer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
	skew interval;
	config snowflake_registry.config;
	objection text;
	ids bigint;
	lease_until timestamptz;
	last snowflake_registry.machine;
	id integer;
BEGIN
	PERFORM snowflake_registry.check_call(token, lease, clock, holder, known);
	PERFORM snowflake_registry.check_layout(layout, machine_bits);
	ids := 1::bigint << machine_bits;
	PERFORM snowflake_registry.require(wanted IS NULL OR wanted >= 0 AND wanted < ids,
		format('argument "wanted" must be from 0 to %s, or null', ids - 1));
	skew := clock - clock_timestamp();
	config := snowflake_registry.enter(skew, known, token);
	objection := snowflake_registry.objection(skew, lease, config, layout, machine_bits);
	IF objection IS NOT NULL THEN
		RETURN snowflake_registry.refuse(objection, skew);
	END IF;
	lease_until := greatest(clock_timestamp(), clock) + snowflake_registry.exactly(lease);
	IF config.layout IS NULL THEN
		UPDATE snowflake_registry.config SET layout = claim.layout,
			machine_bits = claim.machine_bits;
	END IF;

	-- the server repeats its claim, because the answer was lost
	SELECT * INTO last FROM snowflake_registry.machine m WHERE m.token = claim.token;
	IF last.lease_number > config.grace_lease_number
			AND coalesce(wanted, last.machine_id) = last.machine_id THEN
		RETURN snowflake_registry.grant_lease(last.machine_id, token, holder, last.lease_from,
			lease_until, skew);
	END IF;

	IF config.grace_until > least(clock_timestamp(), clock) THEN
		RETURN snowflake_registry.refuse_in_grace_period(config, skew);
	END IF;
	id := snowflake_registry.smallest_free(coalesce(wanted, config.reserved),
		coalesce(wanted + 1::bigint, ids), clock);
	IF id IS NULL THEN
		RETURN snowflake_registry.refuse_taken(wanted, config, ids, skew);
	END IF;
	SELECT * INTO last FROM snowflake_registry.machine m WHERE m.machine_id = id;
	RETURN snowflake_registry.grant_lease(id, token, holder,
		greatest(config.grace_until, least(clock_timestamp(), clock) - config.max_skew,
			last.lease_until),
		lease_until, skew);
END
$$;

COMMENT ON FUNCTION snowflake_registry.claim IS
'leases the machine ID wanted, or the smallest free one, to the holder of a token, and returns the lease or a refusal';

/*
 * The caller states which lease it holds: if the registry lost leases, the row of its token can
 * describe an earlier lease.
 *
 * If the machine ID was not leased since the grace period began, and the caller's lease has
 * not ended, no other server was granted the machine ID after the caller.  This refers to the
 * clock of the registry that would have granted it, which is within max_skew of this one's.
 * A lease that no registry can have granted is refused.
 */
CREATE FUNCTION snowflake_registry.renew(token uuid, machine_id integer, lease_from timestamptz,
	lease_until timestamptz, lease interval, clock timestamptz, holder text, known bigint)
RETURNS snowflake_registry.answer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
	skew interval;
	config snowflake_registry.config;
	objection text;
	new_until timestamptz;
	stored snowflake_registry.machine;
BEGIN
	PERFORM snowflake_registry.check_call(token, lease, clock, holder, known);
	PERFORM snowflake_registry.require(known > 0, 'argument "known" must be a lease number');
	PERFORM snowflake_registry.require(machine_id >= 0, 'argument "machine_id" must be at least 0');
	PERFORM snowflake_registry.require(isfinite(lease_from) AND isfinite(lease_until)
		AND lease_from < lease_until,
		'arguments "lease_from" and "lease_until" must be finite and in order');
	skew := clock - clock_timestamp();
	config := snowflake_registry.enter(skew, known, token, machine_id);
	objection := snowflake_registry.objection(skew, lease, config);
	IF objection IS NOT NULL THEN
		RETURN snowflake_registry.refuse(objection, skew);
	END IF;
	new_until := greatest(clock_timestamp(), clock) + snowflake_registry.exactly(lease);

	SELECT * INTO stored FROM snowflake_registry.machine m WHERE m.machine_id = renew.machine_id;
	IF stored.lease_number > config.grace_lease_number THEN
		IF (stored.token, stored.lease_from) IS DISTINCT FROM (token, lease_from) THEN
			RETURN snowflake_registry.refuse(format('this lease of machine ID %s is not held under'
				' this token', machine_id), skew);
		END IF;
	ELSIF lease_until
			> greatest(clock_timestamp(), clock) + snowflake_registry.longest_lease(config)
		OR machine_id >= 1::bigint << config.machine_bits THEN
		RETURN snowflake_registry.refuse(format('no registry has leased machine ID %s until %s',
			machine_id, lease_until), skew);
	ELSIF lease_until > greatest(clock_timestamp(), clock) + config.max_skew THEN
		new_until := greatest(new_until, lease_until);
		IF (stored.token, stored.lease_from) IS DISTINCT FROM (token, lease_from) THEN
			RAISE LOG 'role "%" was trusted to hold a lease of machine ID %, which is not stored',
				session_user, machine_id;
		END IF;
	ELSE
		RETURN snowflake_registry.refuse_in_grace_period(config, skew);
	END IF;
	RETURN snowflake_registry.grant_lease(machine_id, token, holder, lease_from, new_until, skew);
END
$$;

COMMENT ON FUNCTION snowflake_registry.renew IS
'moves the end of a lease forward, and returns the lease or a refusal';

/*
 * It does not matter which lease of the caller is stored, since all of its IDs are before
 * used_until.  If the server's generator was ahead of its clock, used_until can be far after
 * lease_until; then the whole lease was used.  The end is moved forward only as far as a lost
 * renewal can have moved it: to grace_until, or to the end of the longest lease if an
 * administrator has set a later grace_until.
 */
CREATE FUNCTION snowflake_registry.release(token uuid, used_until timestamptz, known bigint)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
	config snowflake_registry.config;
BEGIN
	PERFORM snowflake_registry.require(token IS NOT NULL, 'argument "token" must not be null');
	PERFORM snowflake_registry.require(used_until IS NOT NULL,
		'argument "used_until" must not be null');
	PERFORM snowflake_registry.require(known >= 0, 'argument "known" must be at least 0');
	config := snowflake_registry.enter(NULL, known, token);
	UPDATE snowflake_registry.machine m
	SET token = NULL,
		lease_until = greatest(m.earliest_end, least(used_until, greatest(m.lease_until,
			least(config.grace_until,
				clock_timestamp() + snowflake_registry.longest_lease(config))))),
		seen_at = clock_timestamp()
	WHERE m.token = release.token;
END
$$;

COMMENT ON FUNCTION snowflake_registry.release IS
'releases the lease of a token whose holder issues no more IDs';

/*
 * Servers call the functions above in the argument of this procedure.  Their drivers send a call in
 * several messages, and without the procedure it would be committed after the last one.  Until that
 * arrives, the session keeps the lock of the registry, and no timeout ends it.  A call in a single
 * message has no parameters, so pg_stat_activity would show the token to other servers.
 *
 * A procedure that commits cannot set search_path.
 */
CREATE PROCEDURE snowflake_registry.commit(answer snowflake_registry.answer,
	OUT machine_id integer, OUT lease_from bigint, OUT lease_until bigint,
	OUT lease_number bigint, OUT skew bigint, OUT refusal text, OUT free_at bigint)
LANGUAGE plpgsql
AS $$
BEGIN
	COMMIT;
	machine_id := answer.machine_id;
	lease_from := extract(epoch FROM answer.lease_from) OPERATOR(pg_catalog.*) 1000000;
	lease_until := extract(epoch FROM answer.lease_until) OPERATOR(pg_catalog.*) 1000000;
	lease_number := answer.lease_number;
	skew := extract(epoch FROM answer.skew) OPERATOR(pg_catalog.*) 1000000;
	refusal := answer.refusal;
	free_at := extract(epoch FROM answer.free_at) OPERATOR(pg_catalog.*) 1000000;
END
$$;

COMMENT ON PROCEDURE snowflake_registry.commit IS
'commits the transaction of the call that is its argument, and returns the answer';

/*
 * Functions that administrators call
 */

CREATE FUNCTION snowflake_registry.admit(role regrole) RETURNS void
LANGUAGE plpgsql STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('GRANT USAGE ON SCHEMA snowflake_registry TO %s', role);
	EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_registry.claim, snowflake_registry.renew,'
		' snowflake_registry.release TO %s', role);
END
$$;

COMMENT ON FUNCTION snowflake_registry.admit IS
'grants a role the privileges to call claim(), renew() and release()';

/*
 * A new registry has begun a grace period, in case an earlier one granted leases.  Only that
 * grace period is ended here.  A registry is no longer new once it has granted a lease, a
 * server has sent a lease number, or the registry has moved.  A new registry has granted no
 * lease, so the numbers start at 1, and a server that sends a lease number is noticed.
 */
CREATE FUNCTION snowflake_registry.declare_first() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
	config snowflake_registry.config;
BEGIN
	config := snowflake_registry.enter();
	IF config.is_new THEN
		UPDATE snowflake_registry.config
		SET grace_until = '-infinity', grace_lease_number = 0, last_lease_number = 0,
			is_new = false;
	ELSIF config.grace_until > clock_timestamp() THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'cannot declare this registry the first one',
			DETAIL = format('Leases might have been lost.  All lost leases end before %s.',
				config.grace_until),
			HINT = 'Wait until then.  If you know that no lease was lost, use'
				' snowflake_registry.end_grace_period().';
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.declare_first IS
'declares that no other registry has leased machine IDs to the same servers, and no server has a number set by hand';

/*
 * A grace period must extend beyond the end of all leases that might be lost, including leases
 * that were granted under the previous limits.  The limits of a registry that existed before a new
 * one are assumed to be at least the limits of the new one: its grace period is extended
 * accordingly.
 */
CREATE FUNCTION snowflake_registry.configure(max_lease interval DEFAULT NULL,
	max_skew interval DEFAULT NULL, reserved integer DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
	config snowflake_registry.config;
	last_end timestamptz;
BEGIN
	config := snowflake_registry.enter();
	max_lease := coalesce(snowflake_registry.exactly(max_lease), config.max_lease);
	max_skew := coalesce(snowflake_registry.exactly(max_skew), config.max_skew);
	PERFORM snowflake_registry.require(coalesce(reserved >= 0, true),
		'argument "reserved" must be at least 0');
	PERFORM snowflake_registry.require(max_lease > '0' AND max_lease <= '365 days',
		'argument "max_lease" must be greater than 0 and at most 365 days');
	PERFORM snowflake_registry.require(max_skew >= '0' AND max_skew <= '1 day',
		'argument "max_skew" must be at least 0 and at most 1 day');
	SELECT max(lease_until) INTO last_end FROM snowflake_registry.machine;
	IF last_end > clock_timestamp() + max_lease + max_skew
			AND (max_lease < config.max_lease OR max_skew < config.max_skew) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'a machine ID is leased for longer than max_lease and max_skew would allow',
			DETAIL = format('The last lease ends at %s.', last_end),
			HINT = 'Decrease "snowflake.registry_lease" on the servers first, and wait until the'
				' longer leases have ended.';
	END IF;
	UPDATE snowflake_registry.config c SET max_lease = configure.max_lease,
		max_skew = configure.max_skew, reserved = coalesce(configure.reserved, c.reserved)
	RETURNING * INTO config;
	UPDATE snowflake_registry.config c
	SET grace_until = greatest(c.grace_until,
		clock_timestamp() + snowflake_registry.longest_lease(config)) WHERE c.is_new;
END
$$;

COMMENT ON FUNCTION snowflake_registry.configure IS
'sets the longest lease, the greatest difference between clocks, and the number of reserved machine IDs';

/*
 * The IDs of a server are at most one minute ahead of its clock.
 */
CREATE FUNCTION snowflake_registry.declare_dead(machine_id integer,
	issued_until timestamptz DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
DECLARE
	config snowflake_registry.config;
	ends_at timestamptz;
BEGIN
	PERFORM snowflake_registry.require(machine_id IS NOT NULL,
		'argument "machine_id" must not be null');
	PERFORM snowflake_registry.require(coalesce(isfinite(issued_until), true),
		'argument "issued_until" must be a finite time, or null');
	config := snowflake_registry.enter();
	UPDATE snowflake_registry.machine m
	SET token = NULL,
		lease_until = greatest(m.earliest_end, least(m.lease_until, coalesce(issued_until,
			clock_timestamp() + greatest(m.skew, '0') + config.max_skew + interval '1 minute')))
	WHERE m.machine_id = declare_dead.machine_id AND m.token IS NOT NULL
	RETURNING greatest(m.lease_until, config.grace_until) INTO ends_at;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('machine ID %s is not held', machine_id);
	END IF;
	RETURN ends_at;
END
$$;

COMMENT ON FUNCTION snowflake_registry.declare_dead IS
'ends the lease of a machine ID whose holder issues no more IDs, and returns the time from which the machine ID can be leased again';

CREATE FUNCTION snowflake_registry.start_grace_period(until timestamptz DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
BEGIN
	PERFORM snowflake_registry.require(coalesce(isfinite(until), true),
		'argument "until" must be a finite time, or null');
	PERFORM snowflake_registry.enter();
	RETURN (snowflake_registry.begin_grace_period(until, 0)).grace_until;
END
$$;

COMMENT ON FUNCTION snowflake_registry.start_grace_period IS
'starts a grace period of a registry that might have lost leases, and returns its end';

CREATE FUNCTION snowflake_registry.end_grace_period() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
BEGIN
	PERFORM snowflake_registry.enter();
	UPDATE snowflake_registry.config SET grace_until = '-infinity', grace_lease_number = 0,
		is_new = false;
END
$$;

COMMENT ON FUNCTION snowflake_registry.end_grace_period IS
'ends the grace period of a registry that has lost no lease';

CREATE FUNCTION snowflake_registry.accept_layout(layout text DEFAULT NULL,
	machine_bits integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s'
AS $$
BEGIN
	IF layout IS NOT NULL OR machine_bits IS NOT NULL THEN
		PERFORM snowflake_registry.check_layout(layout, machine_bits);
	END IF;
	PERFORM snowflake_registry.enter();
	UPDATE snowflake_registry.config SET layout = accept_layout.layout,
		machine_bits = accept_layout.machine_bits;
END
$$;

COMMENT ON FUNCTION snowflake_registry.accept_layout IS
'sets the layout that servers must use, or lets the next claim set it';

CREATE VIEW snowflake_registry.machines AS
SELECT machine_id, holder,
	CASE WHEN token IS NULL THEN 'released' WHEN lease_until <= clock_timestamp() THEN 'expired'
		ELSE 'held' END AS state,
	lease_from, lease_until, claimed_at, seen_at, skew
FROM snowflake_registry.machine;

COMMENT ON VIEW snowflake_registry.machines IS
'machine IDs that were ever leased, each with its last lease';

CREATE VIEW snowflake_registry.status AS
SELECT c.layout, c.machine_bits, m.held, n.ids - m.taken AS free,
	CASE WHEN m.taken = n.ids AND m.next_free_at IS NOT NULL
		THEN greatest(m.next_free_at, g.grace_until) END AS next_free_at,
	CASE WHEN g.grace_until > clock_timestamp() THEN g.grace_until END AS grace_until,
	c.max_lease, c.max_skew, c.reserved, c.last_lease_number
FROM snowflake_registry.config c
	CROSS JOIN LATERAL (SELECT CASE WHEN pg_is_in_recovery() THEN c.grace_until
		WHEN c.incarnation = snowflake_registry.current_incarnation() THEN c.grace_until
		ELSE greatest(c.grace_until, clock_timestamp() + c.max_lease + 2 * c.max_skew)
		END AS grace_until) g
	CROSS JOIN LATERAL (SELECT 1::bigint << c.machine_bits AS all_ids) a
	CROSS JOIN LATERAL (SELECT all_ids - least(all_ids, c.reserved) AS ids) n
	CROSS JOIN LATERAL (
		SELECT count(token) AS held, count(*) FILTER (WHERE is_any) AS taken,
			min(lease_until) FILTER (WHERE is_any) AS next_free_at
		FROM snowflake_registry.machine,
			LATERAL (SELECT machine_id - c.reserved BETWEEN 0 AND n.ids - 1 AS is_any) i
		WHERE lease_until > clock_timestamp()) m;

COMMENT ON VIEW snowflake_registry.status IS
'state of the registry, as one row';

/*
 * Privileges: identity() and commit() can be called by all roles that may use the schema, a
 * privilege that admit() grants.  Those that the default privileges of the owner (ALTER DEFAULT
 * PRIVILEGES) have granted on the schema and the objects in it are revoked.
 */

DO $$
DECLARE
	registry CONSTANT regnamespace := 'snowflake_registry';
	statement text;
BEGIN
	FOR statement IN
		SELECT format('REVOKE ALL ON %s %s FROM %s', kind, object,
			CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
		FROM (
			SELECT 'SCHEMA', oid::regnamespace::text, nspowner, nspacl
			FROM pg_namespace WHERE oid = registry
			UNION ALL SELECT 'ROUTINE', oid::regprocedure::text, proowner, proacl
			FROM pg_proc WHERE pronamespace = registry
			UNION ALL SELECT 'TABLE', oid::regclass::text, relowner, relacl
			FROM pg_class WHERE relnamespace = registry
			UNION ALL SELECT 'TYPE', oid::regtype::text, typowner, typacl
			FROM pg_type WHERE typnamespace = registry) AS o (kind, object, owner, acl)
			CROSS JOIN aclexplode(acl)
		WHERE grantee <> owner AND (grantee <> 0 OR kind IN ('SCHEMA', 'TABLE'))
	LOOP
		EXECUTE statement;
	END LOOP;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_registry FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_registry.identity() TO PUBLIC;
GRANT EXECUTE ON PROCEDURE snowflake_registry.commit TO PUBLIC;
GRANT USAGE ON SCHEMA snowflake_registry TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_registry.current_incarnation() TO pg_monitor;
GRANT SELECT ON snowflake_registry.machines, snowflake_registry.status TO pg_monitor;
