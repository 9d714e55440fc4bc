/* snowflake_registry--1.0--1.1.sql */

/*
 * The update of a registry from version 1.0, and the second part of a new one.
 *
 * This file, too, can be run where the extension cannot be installed, after
 * snowflake_registry--1.0.sql:
 *	  psql -1 -v ON_ERROR_STOP=1 -f snowflake_registry--1.0--1.1.sql
 *
 * Servers of version 1.0 and 1.1 can call it; they notice no difference between the versions
 * except that servers of version 1.1 ask for the identity.
 */

-- no schema of the caller's search_path, in which other users can have created objects
SET LOCAL search_path = pg_catalog, pg_temp;

/*
 * The identity of a registry
 *
 * Leases of two registries can overlap, so a server records the identity of the registry that it
 * claims from, and claims from no other one until an administrator of the server accepts it.
 *
 * The identity is a random number, and part of the row of config: a standby, a restored backup and
 * a restored dump have the identity of the original.  They begin a grace period, because leases
 * might have been lost; the administrator has to ensure that the original grants no more leases.  A
 * registry that was dropped and created again has another identity.
 *
 * The last 15 hexadecimal digits of a random UUID are 60 random bits: its version and its variant
 * come before them.  A column with this default cannot be added by one statement, since functions
 * use the type of the row.
 */
ALTER TABLE snowflake_registry.config ADD COLUMN identity bigint;
ALTER TABLE snowflake_registry.config ALTER COLUMN identity
	SET DEFAULT ('x' || right(translate(gen_random_uuid()::text, '-', ''), 15))::bit(60)::bigint;
UPDATE snowflake_registry.config SET identity = DEFAULT;
ALTER TABLE snowflake_registry.config ALTER COLUMN identity SET NOT NULL;

COMMENT ON COLUMN snowflake_registry.config.identity IS
'random number by which servers distinguish this registry from others; a dump keeps it';

/*
 * Servers record the answer, so a row that is inserted is on disk, and on synchronous standbys,
 * before it is returned.  As in enter(), the wait for the transaction of another caller that has
 * inserted the row is limited.
 */
CREATE FUNCTION snowflake_registry.identity() RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM snowflake_registry.config) THEN
		IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
			PERFORM set_config('synchronous_commit', 'on', true);
		END IF;
		IF current_setting('lock_timeout') = '0' THEN
			PERFORM set_config('lock_timeout', '5s', true);
		END IF;
		INSERT INTO snowflake_registry.config (is_new) VALUES (true) ON CONFLICT DO NOTHING;
	END IF;
	RETURN (SELECT c.identity FROM snowflake_registry.config c);
END
$$;

COMMENT ON FUNCTION snowflake_registry.identity() IS
'the identity of this registry, which servers of version 1.1 compare with the one that they have recorded; can be called by all roles with USAGE on the schema';

/*
 * Fixed machine IDs
 *
 * A machine ID that servers have requested by its number is fixed: it is not granted to a server
 * that takes any number.  Otherwise such a server could take the machine ID as soon as the lease of
 * the server that requests it ends, and keep it by renewals; the latter would be refused
 * permanently.  If a server has a fixed number without having requested it, its renewal is refused,
 * and it claims another machine ID, provided that one is free and no grace period is in progress.
 *
 * Servers whose layout has only one machine ID do not request it by its number, and it is leased to
 * any server.
 *
 * The set of fixed machine IDs affects which server is granted a lease, but not whether leases
 * overlap.
 *
 * A machine ID that is fixed and was never leased has the row of a lease that has no number and
 * ended in 1970.
 */
ALTER TABLE snowflake_registry.machine ADD COLUMN is_fixed boolean, ADD COLUMN is_wanted boolean;
ALTER TABLE snowflake_registry.machine ALTER COLUMN is_fixed SET DEFAULT false;
UPDATE snowflake_registry.machine SET is_fixed = DEFAULT;
ALTER TABLE snowflake_registry.machine ALTER COLUMN is_fixed SET NOT NULL;

COMMENT ON COLUMN snowflake_registry.machine.is_fixed IS 'leased only to servers that ask for this machine ID';
COMMENT ON COLUMN snowflake_registry.machine.is_wanted IS
'whether the holder of the lease has asked for this machine ID; null if version 1.0 has granted the lease';

CREATE FUNCTION snowflake_registry.fix(machine_id integer, holder text) RETURNS void
LANGUAGE SQL
BEGIN ATOMIC
	INSERT INTO snowflake_registry.machine AS m (machine_id, holder, lease_from, lease_until, lease_number, claimed_at, seen_at, skew, is_fixed)
	VALUES (fix.machine_id, fix.holder, 'epoch', 'epoch', 0, clock_timestamp(), clock_timestamp(), '0', true)
	ON CONFLICT ON CONSTRAINT machine_pkey DO UPDATE SET is_fixed = true WHERE NOT m.is_fixed;
END;

COMMENT ON FUNCTION snowflake_registry.fix(integer, text) IS
'makes a machine ID a fixed one; internal';

/*
 * Calls of servers fix at most half of the machine IDs: a server that makes false requests leaves
 * the other half to servers that take any number.
 */
CREATE FUNCTION snowflake_registry.note_fixed(wanted integer, ids bigint, holder text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF wanted IS NOT NULL AND NOT EXISTS (SELECT FROM snowflake_registry.machine m WHERE m.machine_id = wanted AND m.is_fixed)
			AND (SELECT count(*) FROM snowflake_registry.machine m WHERE m.is_fixed) < ids / 2 THEN
		PERFORM snowflake_registry.fix(wanted, holder);
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.note_fixed(integer, bigint, text) IS
'makes a machine ID that a server asks for a fixed one, unless half of all are fixed already; internal';

/*
 * The registry is locked during a claim, so the number of claims in a second depends on the time that
 * the search for the smallest free machine ID takes.  It is often one of the first.  Otherwise, one
 * aggregate finds it if there are rows for all machine IDs from 0 on, in a seventh of the time that
 * numbering all rows takes.
 */
CREATE FUNCTION snowflake_registry.smallest_free_of(first_rows bigint, ids bigint, clock timestamptz) RETURNS bigint
LANGUAGE SQL VOLATILE
RETURN (
	SELECT r.number
	FROM (SELECT f.m, row_number() OVER (ORDER BY (f.m).machine_id) - 1 AS number
		FROM (SELECT m FROM snowflake_registry.machine m ORDER BY m.machine_id LIMIT first_rows) f) r
	WHERE (r.m).machine_id > r.number OR NOT ((r.m).is_fixed AND ids > 1) AND snowflake_registry.is_free(r.m, clock)
	ORDER BY r.number LIMIT 1);

COMMENT ON FUNCTION snowflake_registry.smallest_free_of(bigint, bigint, timestamptz) IS
'smallest machine ID that has no row, or whose row is free, judged by the first rows alone (all of them, if that is null); null if it is after them; internal';

CREATE FUNCTION snowflake_registry.smallest_free_without_gap(ids bigint, clock timestamptz) RETURNS bigint
LANGUAGE SQL VOLATILE
RETURN (
	SELECT CASE WHEN count(*) = 0 OR max(m.machine_id) = count(*) - 1 THEN
			least(min(m.machine_id) FILTER (WHERE NOT (m.is_fixed AND ids > 1) AND snowflake_registry.is_free(m, clock)), count(*))
		END
	FROM snowflake_registry.machine m);

COMMENT ON FUNCTION snowflake_registry.smallest_free_without_gap(bigint, timestamptz) IS
'smallest machine ID that has no row, or whose row is free, or null if a machine ID without a row is below one that has a row; internal';

CREATE OR REPLACE FUNCTION snowflake_registry.smallest_free(ids bigint, clock timestamptz) RETURNS integer
LANGUAGE SQL VOLATILE
RETURN (
	SELECT id::integer
	FROM coalesce(
		snowflake_registry.smallest_free_of(100, ids, clock),
		snowflake_registry.smallest_free_without_gap(ids, clock),
		snowflake_registry.smallest_free_of(NULL, ids, clock)) id
	WHERE id < ids);

CREATE FUNCTION snowflake_registry.must_leave(m snowflake_registry.machine, config snowflake_registry.config, clock timestamptz) RETURNS boolean
LANGUAGE SQL VOLATILE
RETURN m.is_fixed AND m.is_wanted IS FALSE AND config.grace_until <= least(clock_timestamp(), clock)
	AND snowflake_registry.smallest_free(1::bigint << config.machine_bits, clock) IS NOT NULL;

COMMENT ON FUNCTION snowflake_registry.must_leave(snowflake_registry.machine, snowflake_registry.config, timestamptz) IS
'whether the holder of a lease has a fixed machine ID that it has not asked for, and can be granted another one; internal';

CREATE OR REPLACE FUNCTION snowflake_registry.refuse_all_taken(ids bigint) RETURNS snowflake_registry.answer
LANGUAGE SQL STABLE
RETURN (
	SELECT CASE WHEN count(*) = 0 THEN
		snowflake_registry.refuse(format('all %s machine IDs are reserved for servers that request them', ids))
	ELSE
		snowflake_registry.refuse(format('all %s machine IDs are taken until %s', ids, min(m.lease_until)), min(m.lease_until))
	END
	FROM snowflake_registry.machine m WHERE m.machine_id < ids AND NOT (m.is_fixed AND ids > 1));

CREATE OR REPLACE FUNCTION snowflake_registry.claim(token uuid, layout text, machine_bits integer, wanted integer,
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
	answer snowflake_registry.answer;
BEGIN
	PERFORM snowflake_registry.check_call(token, lease, clock, holder, known);
	PERFORM snowflake_registry.check_layout(layout, machine_bits);
	ids := 1::bigint << machine_bits;
	PERFORM snowflake_registry.require(wanted IS NULL OR wanted >= 0 AND wanted < ids,
		format('wanted must be from 0 to %s, or null', ids - 1));
	skew := clock - clock_timestamp();
	config := snowflake_registry.enter(skew, known, token);
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

	PERFORM snowflake_registry.note_fixed(wanted, ids, holder);

	-- the server repeats its claim, because the answer was lost
	SELECT * INTO held FROM snowflake_registry.machine m WHERE m.token = claim.token;
	IF held.lease_number > config.grace_lease_number AND coalesce(wanted = held.machine_id, NOT snowflake_registry.must_leave(held, config, clock)) THEN
		UPDATE snowflake_registry.machine m SET is_wanted = wanted IS NOT NULL WHERE m.machine_id = held.machine_id;
		RETURN snowflake_registry.grant_lease(held.machine_id, token, holder, held.lease_from, lease_until, skew);
	END IF;

	IF config.grace_until > least(clock_timestamp(), clock) THEN
		RETURN snowflake_registry.refuse_in_grace_period(config);
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
	answer := snowflake_registry.grant_lease(id, token, holder,
		greatest(config.grace_until, least(clock_timestamp(), clock) - config.max_skew,
			(SELECT m.lease_until FROM snowflake_registry.machine m WHERE m.machine_id = id)),
		lease_until, skew);
	UPDATE snowflake_registry.machine m SET is_wanted = wanted IS NOT NULL WHERE m.machine_id = id;
	RETURN answer;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_registry.renew(token uuid, machine_id integer, lease_from timestamptz, lease_until timestamptz,
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
	PERFORM snowflake_registry.require(known > 0, 'known must be a lease number');
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
	IF stored.lease_number > config.grace_lease_number THEN
		IF (stored.token, stored.lease_from) IS DISTINCT FROM (token, lease_from) THEN
			RETURN snowflake_registry.refuse(format('this lease of machine ID %s is not held under this token', machine_id));
		ELSIF snowflake_registry.must_leave(stored, config, clock) THEN
			RETURN snowflake_registry.refuse(format('machine ID %s is reserved for servers that request it', machine_id));
		END IF;
	ELSIF lease_until > greatest(clock_timestamp(), clock) + snowflake_registry.longest_lease(config)
		OR machine_id >= 1::bigint << config.machine_bits THEN
		RETURN snowflake_registry.refuse(format('no registry has leased machine ID %s until %s', machine_id, lease_until));
	ELSIF lease_until > greatest(clock_timestamp(), clock) + config.max_skew THEN
		new_until := greatest(new_until, lease_until);
	ELSE
		RETURN snowflake_registry.refuse_in_grace_period(config);
	END IF;
	RETURN snowflake_registry.grant_lease(machine_id, token, holder, lease_from, new_until, skew);
END
$$;

COMMENT ON FUNCTION snowflake_registry.declare_first() IS
'tells a new registry that no earlier one has leased machine IDs to the same servers, and no server has a number set by hand (except fixed numbers), so that it grants leases at once; the registry cannot check that.  Does nothing if no grace period is in progress.  Raises object_not_in_prerequisite_state if a grace period has begun for another reason';

CREATE FUNCTION snowflake_registry.set_fixed(machine_id integer, fixed boolean DEFAULT true) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_registry.require(machine_id >= 0, 'machine_id must be 0 or above');
	PERFORM snowflake_registry.require(fixed IS NOT NULL, 'fixed must not be null');
	PERFORM snowflake_registry.enter();
	IF fixed THEN
		PERFORM snowflake_registry.fix(machine_id, '');
	ELSE
		UPDATE snowflake_registry.machine m SET is_fixed = false WHERE m.machine_id = set_fixed.machine_id;
		DELETE FROM snowflake_registry.machine m WHERE m.machine_id = set_fixed.machine_id AND m.lease_number = 0;
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.set_fixed(integer, boolean) IS
'makes a machine ID a fixed one, which is leased only to servers that ask for it by snowflake.machine_id, or one that is leased to any server again; a claim that asks for a machine ID makes it a fixed one, until half of all are.  Raises invalid_parameter_value for invalid arguments';

CREATE FUNCTION snowflake_registry.dismiss(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('REVOKE EXECUTE ON FUNCTION'
		' snowflake_registry.claim(uuid, text, integer, integer, interval, timestamptz, text, bigint),'
		' snowflake_registry.renew(uuid, integer, timestamptz, timestamptz, interval, timestamptz, text, bigint),'
		' snowflake_registry.release(uuid, timestamptz, bigint) FROM %s', role);
	EXECUTE format('REVOKE USAGE ON SCHEMA snowflake_registry FROM %s', role);
END
$$;

COMMENT ON FUNCTION snowflake_registry.dismiss(regrole) IS
'revokes the privileges that admit() grants; leases that servers hold by this role run out; for the owner of the registry';

CREATE OR REPLACE VIEW snowflake_registry.machines AS
SELECT machine_id, holder,
	CASE WHEN lease_number = 0 THEN 'never leased' WHEN token IS NULL THEN 'released' WHEN lease_until <= clock_timestamp() THEN 'expired' ELSE 'held' END AS state,
	lease_from, lease_until, claimed_at, seen_at, skew, is_fixed
FROM snowflake_registry.machine;

COMMENT ON VIEW snowflake_registry.machines IS
'machine IDs that were ever leased or are fixed, each with its last lease; skew is how far the holder''s clock was ahead of the registry''s at seen_at; is_fixed means that only servers that ask for the machine ID are granted it';

CREATE OR REPLACE VIEW snowflake_registry.status AS
SELECT c.layout, c.machine_bits, m.held, n.ids - m.taken AS free,
	CASE WHEN m.taken = n.ids AND m.next_free_at IS NOT NULL THEN greatest(m.next_free_at, c.grace_until) END AS next_free_at,
	CASE WHEN c.grace_until > clock_timestamp() THEN c.grace_until END AS grace_until,
	c.max_lease, c.max_skew, c.last_lease_number, m.fixed
FROM snowflake_registry.config c
	CROSS JOIN LATERAL (SELECT 1::bigint << c.machine_bits AS ids) n
	CROSS JOIN LATERAL (
		SELECT count(token) FILTER (WHERE lease_until > clock_timestamp()) AS held,
			count(*) FILTER (WHERE machine_id < n.ids) AS taken,
			min(lease_until) FILTER (WHERE machine_id < n.ids AND lease_until > clock_timestamp() AND NOT (is_fixed AND n.ids > 1)) AS next_free_at,
			count(*) FILTER (WHERE is_fixed) AS fixed
		FROM snowflake_registry.machine WHERE lease_until > clock_timestamp() OR is_fixed) m;

COMMENT ON VIEW snowflake_registry.status IS
'state of the registry, as one row, or none before its first call: held, free, fixed are numbers of machine IDs, and free ones are neither leased nor fixed; next_free_at is when one that is not fixed becomes free, null if one is free or all are fixed; grace_until is null unless a grace period is in progress';

/*
 * Privileges: identity() can be called by all roles that may use the schema, a privilege that
 * admit() grants.
 */

REVOKE ALL ON FUNCTION snowflake_registry.fix(integer, text), snowflake_registry.note_fixed(integer, bigint, text),
	snowflake_registry.smallest_free_of(bigint, bigint, timestamptz), snowflake_registry.smallest_free_without_gap(bigint, timestamptz),
	snowflake_registry.must_leave(snowflake_registry.machine, snowflake_registry.config, timestamptz),
	snowflake_registry.set_fixed(integer, boolean), snowflake_registry.dismiss(regrole) FROM PUBLIC;
