-- The extension snowflake_registry: which leases are granted, and which are refused.  Tests
-- that need several servers are in t/200_registry_leases.pl and t/201_registry_lost_leases.pl.
\set SHOW_CONTEXT never
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';
CREATE EXTENSION snowflake_registry;

-- Calls of a server, which is identified by a letter that stands for its token.  All answers
-- are kept.
CREATE TABLE said (n integer GENERATED ALWAYS AS IDENTITY, server text, answer snowflake_registry.answer);
CREATE FUNCTION token(server text) RETURNS uuid LANGUAGE SQL RETURN repeat(server, 32)::uuid;
CREATE FUNCTION keep(server text, answer snowflake_registry.answer,
    OUT id integer, OUT lease_number bigint, OUT refusal text, OUT free_at_is_known boolean)
LANGUAGE SQL
BEGIN ATOMIC
    INSERT INTO said (server, answer) VALUES (server, answer);
    SELECT (answer).machine_id, (answer).lease_number,
        regexp_replace((answer).refusal, '\d{4}-\d\d-\d\d [\d:.]+\+00|(-?\d+ days )?[\d:]+\.\d+', '(time)', 'g'),
        (answer).free_at IS NOT NULL;
END;
CREATE FUNCTION claim(server text, wanted integer DEFAULT NULL, lease interval DEFAULT '1 minute', off interval DEFAULT '0',
    known bigint DEFAULT 0, layout text DEFAULT 'tiny', machine_bits integer DEFAULT 1,
    OUT id integer, OUT lease_number bigint, OUT refusal text, OUT free_at_is_known boolean)
LANGUAGE SQL
RETURN keep(server, snowflake_registry.claim(token(server), layout, machine_bits, wanted, lease, clock_timestamp() + off, server, known));
-- the last lease that a server was granted
CREATE FUNCTION lease(server text) RETURNS snowflake_registry.answer LANGUAGE SQL
RETURN (SELECT s.answer FROM said s WHERE s.server = lease.server AND (s.answer).refusal IS NULL ORDER BY n DESC LIMIT 1);
CREATE FUNCTION renew(server text, lease interval DEFAULT '1 minute', off interval DEFAULT '0', known bigint DEFAULT NULL,
    machine_id integer DEFAULT NULL, lease_from timestamptz DEFAULT NULL, lease_until timestamptz DEFAULT NULL,
    OUT id integer, OUT lease_number bigint, OUT refusal text, OUT free_at_is_known boolean)
LANGUAGE SQL
RETURN keep(server, snowflake_registry.renew(token(server), coalesce(machine_id, (lease(server)).machine_id),
    coalesce(lease_from, (lease(server)).lease_from), coalesce(lease_until, (lease(server)).lease_until),
    lease, clock_timestamp() + off, server, coalesce(known, (lease(server)).lease_number)));
CREATE FUNCTION release(server text, used_until timestamptz DEFAULT clock_timestamp(), known bigint DEFAULT 0) RETURNS void LANGUAGE SQL
RETURN snowflake_registry.release(token(server), used_until, known);
-- overlapping leases of the same machine ID: their servers
CREATE VIEW overlapping AS
SELECT a.server AS a, b.server AS b
FROM said a JOIN said b ON a.n < b.n AND (a.answer).machine_id = (b.answer).machine_id AND a.server <> b.server
    AND (a.answer).lease_from < (b.answer).lease_until AND (b.answer).lease_from < (a.answer).lease_until;

-- an earlier registry may have existed before a new one: new servers wait until its leases
-- have ended
SELECT * FROM snowflake_registry.status;
SELECT * FROM claim('a');
SELECT grace_until - clock_timestamp() BETWEEN '1 hour 15 s' AND '1 hour 20 s' AS max_lease_and_two_skews, last_lease_number FROM snowflake_registry.status;
SELECT * FROM claim('b', wanted => 1);
-- limits that are set meanwhile are assumed for the earlier one, too
SELECT snowflake_registry.configure(max_lease => '2 hours');
SELECT grace_until - clock_timestamp() BETWEEN '2 hours 15 s' AND '2 hours 20 s' AS moved FROM snowflake_registry.status;
SELECT snowflake_registry.configure(max_lease => '1 hour');
SELECT grace_until - clock_timestamp() BETWEEN '2 hours 15 s' AND '2 hours 20 s' AS stays FROM snowflake_registry.status;
-- an administrator declares that there was none; a second call does nothing
SELECT snowflake_registry.declare_first();
SELECT grace_until, last_lease_number FROM snowflake_registry.status;
SELECT snowflake_registry.declare_first();
SELECT id, lease_number FROM claim('a');
SELECT snowflake_registry.declare_first();
SELECT machine_id, state FROM snowflake_registry.machines;
-- declare_first() does not end a grace period that was begun for another reason
SELECT snowflake_registry.start_grace_period() > now() AS in_grace_period;
\set VERBOSITY terse
SELECT snowflake_registry.declare_first();
\echo :SQLSTATE
SELECT grace_until > now() AS in_grace_period FROM snowflake_registry.status;

-- nor the grace period of a new registry that was moved, for example by restoring a dump
TRUNCATE snowflake_registry.config, snowflake_registry.machine;
SELECT id, refusal FROM claim('a');
UPDATE snowflake_registry.config SET incarnation = 'elsewhere';
SELECT snowflake_registry.declare_first();
SELECT incarnation FROM snowflake_registry.config;
SELECT id, refusal FROM claim('a');
SELECT snowflake_registry.declare_first();
-- or whose grace period was started by an administrator
TRUNCATE snowflake_registry.config;
SELECT snowflake_registry.start_grace_period() > now() AS in_grace_period;
SELECT snowflake_registry.declare_first();
-- or if a server states a lease number
TRUNCATE snowflake_registry.config;
SELECT id, refusal FROM claim('a');
SELECT id, refusal FROM claim('b', known => 1);
SELECT snowflake_registry.declare_first();
TRUNCATE snowflake_registry.config;
SELECT release('a', known => 1);
SELECT id, refusal FROM claim('a');
SELECT snowflake_registry.declare_first();
-- or if a server keeps the lease that it holds
TRUNCATE snowflake_registry.config;
SELECT id, refusal FROM claim('a');
SELECT id FROM renew('b', machine_id => 1, lease_from => clock_timestamp(), lease_until => clock_timestamp() + interval '1 minute', known => 1);
SELECT id, refusal FROM claim('a');
SELECT snowflake_registry.declare_first();
SELECT snowflake_registry.end_grace_period();
SELECT id, refusal FROM claim('a');

-- the first call is made with a wrong clock, or only releases: the next one begins the grace
-- period
TRUNCATE snowflake_registry.config, snowflake_registry.machine;
SELECT id, refusal FROM claim('a', off => '1 hour');
SELECT release('a');
SELECT grace_until, incarnation FROM snowflake_registry.config;
SELECT id, refusal FROM claim('a');
-- the grace period is over: the registry is the first one, and the lease begins there
UPDATE snowflake_registry.config SET grace_until = clock_timestamp();
SELECT id, refusal FROM claim('a');
SELECT (lease('a')).lease_from = grace_until AS starts_there FROM snowflake_registry.config;
SELECT snowflake_registry.declare_first();
SELECT snowflake_registry.start_grace_period() > now() AS in_grace_period;
SELECT snowflake_registry.declare_first();
\set VERBOSITY default
-- declared before any call; a server that states a lease number is still noticed
TRUNCATE snowflake_registry.config, snowflake_registry.machine, said;
SELECT snowflake_registry.declare_first();
SELECT id, refusal FROM claim('b', known => 1);
TRUNCATE snowflake_registry.config;
SELECT id, refusal FROM claim('a');
SELECT snowflake_registry.declare_first();
SELECT id, refusal FROM claim('b', known => 1);

-- the layout is unknown before the first claim, which sets it
TRUNCATE snowflake_registry.config, said;
SELECT snowflake_registry.declare_first();
SELECT * FROM snowflake_registry.status;
SELECT * FROM claim('a');
SELECT layout, machine_bits, held, free, next_free_at, grace_until, max_lease, max_skew, reserved, last_lease_number FROM snowflake_registry.status;
SELECT (lease('a')).lease_until - (lease('a')).lease_from BETWEEN '69 s' AND '71 s' AS from_max_skew_ago,
       (lease('a')).lease_until > clock_timestamp() + interval '50 s' AS until_in_a_minute,
       (lease('a')).skew BETWEEN '-9 s' AND '0' AS skew;

-- a repeated claim, as if the answer had been lost: the same lease, with a later end
SELECT * FROM claim('a');
SELECT count(*), count(DISTINCT (answer).lease_from) AS starts, count(DISTINCT (answer).lease_until) AS ends FROM said;

-- the smallest free machine ID; the wanted one; none
SELECT * FROM claim('b', wanted => 0);
SELECT * FROM claim('b');
SELECT * FROM claim('c');
SELECT held, free, next_free_at = (lease('a')).lease_until AS next_free_at FROM snowflake_registry.status;

-- renewal: the end moves forward, and never backward
SELECT * FROM renew('b', lease => '2 minutes');
SELECT count(DISTINCT (answer).lease_from) AS starts, max((answer).lease_until) - min((answer).lease_until) > '1 minute' AS later FROM said WHERE server = 'b' AND (answer).refusal IS NULL;
SELECT * FROM renew('b', lease => '1 second');
SELECT (answer).lease_until = max((answer).lease_until) OVER () AS kept FROM said WHERE server = 'b' ORDER BY n DESC LIMIT 1;

-- a lease that was never granted is not renewed: another token, machine ID, start
SELECT * FROM renew('c', known => 1, machine_id => 0, lease_from => (lease('a')).lease_from, lease_until => (lease('a')).lease_until);
SELECT * FROM renew('a', machine_id => 1);
SELECT * FROM renew('a', lease_from => (lease('a')).lease_from + interval '1 us');

-- released: the next lease begins where the last one ended
SELECT release('b', (lease('b')).lease_from + interval '7 s');
SELECT lease_until - lease_from AS used, state FROM snowflake_registry.machines WHERE machine_id = 1;
SELECT held, free FROM snowflake_registry.status;
SELECT release('b', 'infinity');
SELECT release('c');
SELECT * FROM claim('c');
SELECT (lease('c')).lease_from = (lease('b')).lease_from + interval '7 s' AS starts_there;
SELECT * FROM renew('b');
-- no part of it was used
SELECT release('c', '-infinity');
SELECT lease_until = lease_from AS unused FROM snowflake_registry.machines WHERE machine_id = 1;
-- all of it was used; IDs ahead of the lease are not part of it
SELECT * FROM claim('c', wanted => 1);
SELECT release('c', 'infinity');
SELECT lease_until = (lease('c')).lease_until AS all_used FROM snowflake_registry.machines WHERE machine_id = 1;
-- released, and free only when the caller's clock reaches the end
SELECT * FROM claim('d', wanted => 1);
TRUNCATE said;

-- expired: still the holder's, until another server claims it
SELECT release('a', '-infinity');
SELECT * FROM claim('a', wanted => 0, lease => '1 us');
SELECT machine_id, holder, state FROM snowflake_registry.machines ORDER BY 1;
SELECT * FROM renew('a', lease => '1 us');
SELECT * FROM claim('d', wanted => 0);
SELECT (lease('d')).lease_from = (lease('a')).lease_until AS starts_there;
SELECT * FROM renew('a');
SELECT * FROM claim('a', wanted => 0);
SELECT * FROM overlapping;

-- a server whose clock is ahead does not take a machine ID that is in use by the registry's
-- clock
SELECT * FROM renew('d', lease => '30 s');
SELECT snowflake_registry.configure(max_skew => '3 minutes');
SELECT * FROM claim('a', wanted => 0, off => '2 minutes');
-- but it takes one that was released
SELECT release('d', 'infinity');
SELECT * FROM claim('a', wanted => 0, off => '2 minutes', lease => '1 us');
SELECT (lease('a')).lease_until > clock_timestamp() + interval '1 minute' AS by_its_clock, date_trunc('minute', (lease('a')).skew + interval '1 s') AS skew;
-- and the lease of a server whose clock is behind does not begin earlier
SELECT release('a', 'infinity');
SELECT * FROM claim('d', wanted => 0, off => '-1 minute');
SELECT (answer).free_at = (lease('a')).lease_until AS free_at FROM said ORDER BY n DESC LIMIT 1;
SELECT * FROM overlapping;

-- clocks that are off
SELECT * FROM claim('c', off => '4 minutes');
SELECT * FROM claim('c', off => '-4 minutes');
SELECT * FROM claim('a', wanted => 0, off => '2 minutes');
SELECT * FROM renew('a', off => '4 minutes');
SELECT * FROM renew('a', off => '-3000 years');
SELECT * FROM renew('a', off => '2 minutes');

-- limits that are smaller than existing leases are refused until these have ended
\set VERBOSITY terse
SELECT snowflake_registry.configure(max_lease => '1 s', max_skew => '10 s');
\echo :SQLSTATE
\set VERBOSITY default
SELECT snowflake_registry.declare_dead(0, '2000-01-01') = (lease('a')).lease_from AS free_at;
SELECT snowflake_registry.declare_dead(0);
\echo :SQLSTATE
SELECT snowflake_registry.declare_dead(1);
SELECT snowflake_registry.declare_dead(NULL);
SELECT snowflake_registry.configure('10 minutes', '10 s');
SELECT snowflake_registry.configure(max_lease => '0');
SELECT snowflake_registry.configure(max_lease => '366 days');
SELECT snowflake_registry.configure(max_skew => '-1 s');
SELECT snowflake_registry.configure(max_skew => '25 hours');
SELECT snowflake_registry.configure();
SELECT max_lease, max_skew FROM snowflake_registry.status;
SELECT * FROM claim('c', lease => '11 minutes');
SELECT * FROM claim('c', lease => '10 minutes');
SELECT * FROM renew('a', lease => '11 minutes');
-- a day is 24 hours
SET timezone = 'Europe/Berlin';
SELECT snowflake_registry.exactly('1 mon 1 day') AS exactly,
       timestamptz '2026-10-24 12:00' + snowflake_registry.exactly('1 day') AS over_the_end_of_summer_time;
SET timezone = 'UTC';

-- another layout
SELECT * FROM claim('d', layout => 'large', machine_bits => 10);
SELECT * FROM claim('d', machine_bits => 2);
SELECT snowflake_registry.accept_layout();
SELECT layout, machine_bits, held, free FROM snowflake_registry.status;
SELECT * FROM claim('d', layout => 'large', machine_bits => 31, wanted => 2147483647);
SELECT * FROM claim('e', layout => 'large', machine_bits => 31);
SELECT snowflake_registry.accept_layout();
SELECT * FROM claim('f', layout => 'one', machine_bits => 0);
SELECT layout, machine_bits, held, free FROM snowflake_registry.status;
SELECT s.next_free_at = m.lease_until AS of_the_only_one FROM snowflake_registry.status s, snowflake_registry.machines m WHERE machine_id = 0;
SELECT snowflake_registry.accept_layout();

-- the same token, with another wanted machine ID
DELETE FROM snowflake_registry.machine;
TRUNCATE said;
SELECT * FROM claim('c', wanted => 3, machine_bits => 2);
SELECT * FROM claim('c', wanted => 2, machine_bits => 2);
SELECT state, lease_until > clock_timestamp() AS is_taken FROM snowflake_registry.machines WHERE machine_id = 3;
SELECT * FROM claim('e', wanted => 3, machine_bits => 2);

-- declared dead: by default, up to the IDs that it can have issued until now by its clock
SELECT * FROM renew('c', lease => '10 minutes', off => '5 s');
SELECT free_at - clock_timestamp() BETWEEN '70 s' AND '75 s' AS a_minute_and_skews FROM snowflake_registry.declare_dead(2) free_at;
SELECT * FROM renew('c');
SELECT state FROM snowflake_registry.machines WHERE machine_id = 2;
-- never later than the end of its lease
SELECT * FROM claim('e', wanted => 0, lease => '1 s', machine_bits => 2);
SELECT snowflake_registry.declare_dead(0) = (lease('e')).lease_until AS not_moved_forward;
SELECT snowflake_registry.declare_dead(1, 'infinity');

-- a grace period started by an administrator: holders keep their leases, new servers wait
DELETE FROM snowflake_registry.machine;
TRUNCATE said;
SELECT * FROM claim('a', machine_bits => 2);
SELECT * FROM claim('b', machine_bits => 2);
SELECT * FROM claim('c', machine_bits => 2, lease => '1 us');
SELECT grace_until - clock_timestamp() BETWEEN '10 minutes 15 s' AND '10 minutes 20 s' AS max_lease_and_two_skews FROM snowflake_registry.start_grace_period() AS grace_until;
SELECT last_lease_number, grace_until > clock_timestamp() AS in_grace_period FROM snowflake_registry.status;
SELECT * FROM claim('d', machine_bits => 2);
SELECT * FROM claim('d', wanted => 3, machine_bits => 2);
SELECT (answer).free_at = grace_until AS free_at FROM said, snowflake_registry.status ORDER BY n DESC LIMIT 1;
SELECT * FROM renew('a');
SELECT * FROM renew('a');
SELECT (lease('a')).lease_from = (SELECT min((answer).lease_from) FROM said WHERE server = 'a') AS same_lease;
-- its answer was lost: it was confirmed as the holder
SELECT * FROM claim('a', machine_bits => 2);
-- the machine ID of an expired lease can have been granted to another server, and that lease lost
SELECT * FROM renew('c');
-- a server that does not state its lease waits as well
SELECT * FROM claim('b', machine_bits => 2);
-- an earlier end has no effect, a later one extends the grace period
SELECT snowflake_registry.start_grace_period(clock_timestamp()) > clock_timestamp() + interval '10 minutes' AS stays;
SELECT snowflake_registry.start_grace_period('2100-01-01 00:00:00Z') = '2100-01-01 00:00:00Z' AS moved;
SELECT snowflake_registry.start_grace_period('infinity');
-- a lease that is granted after a grace period begins at its end
SELECT snowflake_registry.end_grace_period();
CREATE TEMP TABLE grace AS SELECT snowflake_registry.start_grace_period(clock_timestamp()) AS at;
SELECT * FROM claim('d', wanted => 3, machine_bits => 2);
SELECT (lease('d')).lease_from = at AS starts_there FROM grace;
SELECT grace_until FROM snowflake_registry.status;
SELECT a, b FROM overlapping;

-- an administrator declares that no lease was lost: the rows are trusted again
SELECT snowflake_registry.start_grace_period() > now() AS in_grace_period;
SELECT snowflake_registry.end_grace_period();
SELECT grace_until FROM snowflake_registry.status;
SELECT * FROM claim('d', machine_bits => 2);
SELECT * FROM claim('e', machine_bits => 2);

-- moved to another cluster or WAL timeline: the first call with a correct clock begins a grace
-- period, the following ones do not
UPDATE snowflake_registry.config SET incarnation = 'elsewhere';
SELECT release('e', '-infinity');
SELECT * FROM claim('f', off => '1 minute', machine_bits => 2);
SELECT grace_until, incarnation FROM snowflake_registry.config;
SELECT * FROM claim('f', machine_bits => 2);
SELECT incarnation <> 'elsewhere' AS here FROM snowflake_registry.config;
SELECT grace_until AS before FROM snowflake_registry.config \gset
SELECT * FROM claim('f', machine_bits => 2);
SELECT grace_until = :'before' AS the_same FROM snowflake_registry.config;
SELECT * FROM renew('a');
SELECT * FROM renew('d');
SELECT snowflake_registry.end_grace_period();

-- a server states a lease number that is not stored: a grace period
SELECT last_lease_number AS before FROM snowflake_registry.config \gset
SELECT * FROM renew('a', known => :before + 1);
SELECT grace_until > clock_timestamp() AS in_grace_period, last_lease_number - :before AS leap FROM snowflake_registry.status;
-- and with the numbers from before the grace period, no further one
SELECT * FROM renew('d', known => :before + 2);
SELECT last_lease_number - :before AS leap FROM snowflake_registry.status;
-- but with a number from after it
SELECT * FROM renew('d', known => :before + 1000000000003);
SELECT last_lease_number - :before AS leap FROM snowflake_registry.status;
SELECT snowflake_registry.end_grace_period();
-- likewise by a claim; after a release or a call with another clock, the next call begins it
SELECT * FROM claim('f', machine_bits => 2, known => :before + 5000000000000);
SELECT last_lease_number - :before AS leap FROM snowflake_registry.status;
SELECT snowflake_registry.end_grace_period();
SELECT release('f', '-infinity', known => :before + 8000000000000);
SELECT grace_until, incarnation FROM snowflake_registry.config;
SELECT * FROM claim('f', machine_bits => 2);
SELECT snowflake_registry.end_grace_period();
SELECT * FROM renew('a', off => '1 minute', known => :before + 20000000000000);
SELECT grace_until, incarnation FROM snowflake_registry.config;
SELECT * FROM claim('f', machine_bits => 2);
SELECT * FROM renew('a');
SELECT snowflake_registry.end_grace_period();

-- the claim was lost, too, or the row is that of an earlier lease of this server or another
-- one: the server's statement is trusted, if its lease has not ended
SELECT token('d') = token AS is_stored FROM snowflake_registry.machine WHERE machine_id = 3;
DELETE FROM snowflake_registry.machine WHERE machine_id = 3;
SELECT * FROM renew('d');
SELECT (lease('d')).lease_from = lease_from AS as_stated, holder FROM snowflake_registry.machine WHERE machine_id = 3;
SELECT snowflake_registry.end_grace_period();
UPDATE snowflake_registry.machine SET token = CASE machine_id WHEN 3 THEN token('f') END, lease_number = 1, lease_from = '2000-01-01'
WHERE machine_id IN (1, 3);
UPDATE snowflake_registry.machine SET token = token('d') WHERE machine_id = 1;
SELECT * FROM renew('d');
SELECT machine_id, left(token::text, 1) AS token, lease_from > '2000-01-01' AS of_the_lease FROM snowflake_registry.machine WHERE machine_id IN (1, 3) ORDER BY 1;
SELECT * FROM renew('f', machine_id => 3, lease_from => '2000-01-01', lease_until => clock_timestamp() + interval '1 minute', known => 2);
-- but not a lease that no registry can have granted
SELECT id, refusal FROM renew('f', machine_id => 2, lease_from => '2000-01-01', lease_until => '9999-01-01', known => 2);
SELECT id, refusal ~ '^no registry has leased machine ID 4 until ' AS refused FROM renew('f', machine_id => 4, lease_from => '2000-01-01', lease_until => clock_timestamp() + interval '1 minute', known => 2);
-- released by a server whose renewal was lost: the end is later than the stored one
UPDATE snowflake_registry.machine SET lease_until = clock_timestamp() WHERE machine_id = 3;
SELECT release('d', (lease('d')).lease_until, known => (lease('d')).lease_number);
SELECT lease_until = (lease('d')).lease_until AS moved_forward, token IS NULL AS released FROM snowflake_registry.machine WHERE machine_id = 3;
SELECT * FROM overlapping;

-- a liar: in a grace period it takes over the machine ID of another server, with a lease from long
-- ago, and releases it.  The end that was stored stays, also after the administrator has ended the
-- grace period, and after the liar was declared dead
SELECT snowflake_registry.end_grace_period();
DELETE FROM snowflake_registry.machine;
TRUNCATE said;
SELECT id FROM claim('a', machine_bits => 2);
SELECT snowflake_registry.start_grace_period() > now() AS in_grace_period;
SELECT id FROM renew('e', machine_id => 0, lease_from => '1970-01-01', lease_until => clock_timestamp() + interval '1 minute', known => 1);
SELECT snowflake_registry.end_grace_period();
SELECT snowflake_registry.declare_dead(0, '1970-01-01') >= (lease('a')).lease_until AS stays;
SELECT snowflake_registry.start_grace_period() > now() AS in_grace_period;
SELECT id FROM renew('f', machine_id => 0, lease_from => '1970-01-01', lease_until => clock_timestamp() + interval '1 minute', known => 1);
SELECT release('f', '-infinity', known => 1);
SELECT lease_until >= (lease('a')).lease_until AS stays FROM snowflake_registry.machine WHERE machine_id = 0;
SELECT snowflake_registry.end_grace_period();
SELECT id FROM claim('b', machine_bits => 2);
SELECT id, refusal FROM claim('c', wanted => 0, machine_bits => 2);
-- under its own token, it releases the lease of the holder before it as little
SELECT id FROM claim('d', machine_bits => 2);
SELECT release('d', (lease('d')).lease_from + interval '7 s');
SELECT id FROM claim('e', wanted => 2, machine_bits => 2);
SELECT snowflake_registry.start_grace_period() > now() AS in_grace_period;
SELECT id FROM renew('e', machine_id => 2, lease_from => '1970-01-01');
SELECT release('e', '-infinity');
SELECT lease_until = (lease('d')).lease_from + interval '7 s' AS stays FROM snowflake_registry.machine WHERE machine_id = 2;

-- an answer counts when it is committed
SELECT snowflake_registry.end_grace_period();
DELETE FROM snowflake_registry.machine;
BEGIN;
SELECT id FROM claim('b', machine_bits => 2);
SAVEPOINT before;
SELECT id FROM claim('c', machine_bits => 2);
ROLLBACK TO before;
SELECT id FROM claim('d', machine_bits => 2);
ROLLBACK;
SELECT count(*) FROM snowflake_registry.machines;
SELECT id FROM claim('d', machine_bits => 2);

-- the commit waits for WAL, whatever the session's settings
SET synchronous_commit = off;
BEGIN;
SHOW synchronous_commit;
SELECT id FROM claim('b', machine_bits => 2);
SHOW synchronous_commit;
COMMIT;
SHOW synchronous_commit;
BEGIN;
SET LOCAL synchronous_commit = remote_apply;
SELECT id FROM claim('b', machine_bits => 2);
SHOW synchronous_commit;
SET LOCAL synchronous_commit = remote_write;
SELECT id FROM renew('b');
SHOW synchronous_commit;
SET LOCAL synchronous_commit = local;
SELECT release('b');
SHOW synchronous_commit;
COMMIT;
RESET synchronous_commit;

-- no function that others call waits for a lock forever
SELECT p.oid::regprocedure AS waits FROM pg_proc p JOIN pg_description ON objoid = p.oid
WHERE pronamespace = 'snowflake_registry'::regnamespace AND description NOT LIKE '%; internal' AND proname NOT IN ('admit', 'commit')
    AND (proconfig @> '{lock_timeout=5s}') IS NOT TRUE;

-- invalid arguments
SELECT last_lease_number AS before FROM snowflake_registry.status \gset
SELECT snowflake_registry.claim(NULL, 'tiny', 2, NULL, '1 s', clock_timestamp(), '', 0);
\echo :SQLSTATE
SELECT snowflake_registry.claim(token('a'), NULL, 2, NULL, '1 s', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', NULL, NULL, '1 s', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', -1, NULL, '1 s', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 32, NULL, '1 s', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, 4, '1 s', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, -1, '1 s', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, NULL, clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '0', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '-1 s', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '-1 year 361 days', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '1000000 years', clock_timestamp(), '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '1 s', NULL, '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '1 s', 'infinity', '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '1 s', '-infinity', '', 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '1 s', clock_timestamp(), NULL, 0);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '1 s', clock_timestamp(), '', NULL);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '1 s', clock_timestamp(), '', -1);
SELECT snowflake_registry.claim(token('a'), 'tiny', 2, NULL, '1 s', clock_timestamp(), '', 9000000000000000001);
SELECT snowflake_registry.renew(NULL, 1, '2026-01-01', '2027-01-01', '1 s', clock_timestamp(), '', 1);
SELECT snowflake_registry.renew(token('a'), NULL, '2026-01-01', '2027-01-01', '1 s', clock_timestamp(), '', 1);
SELECT snowflake_registry.renew(token('a'), -1, '2026-01-01', '2027-01-01', '1 s', clock_timestamp(), '', 1);
SELECT snowflake_registry.renew(token('a'), 1, '-infinity', '2027-01-01', '1 s', clock_timestamp(), '', 1);
SELECT snowflake_registry.renew(token('a'), 1, '2026-01-01', 'infinity', '1 s', clock_timestamp(), '', 1);
SELECT snowflake_registry.renew(token('a'), 1, '2026-01-01', NULL, '1 s', clock_timestamp(), '', 1);
SELECT snowflake_registry.renew(token('a'), 1, '2027-01-01', '2027-01-01', '1 s', clock_timestamp(), '', 1);
SELECT snowflake_registry.renew(token('a'), 1, '2026-01-01', '2027-01-01', '1 s', clock_timestamp(), '', 0);
SELECT snowflake_registry.release(NULL, 'infinity', 0);
SELECT snowflake_registry.release(token('a'), NULL, 0);
SELECT snowflake_registry.release(token('a'), 'infinity', NULL);
SELECT last_lease_number = :before AS nothing_granted FROM snowflake_registry.status;

-- a server's role can claim, renew and release, and read nothing; a monitoring role can read
-- all except tokens; other roles can do nothing
CREATE ROLE regress_snowflake_server;
CREATE ROLE "regress_snowflake Watcher" IN ROLE pg_monitor;
CREATE ROLE regress_snowflake_other;
SELECT snowflake_registry.admit('regress_snowflake_server'), snowflake_registry.admit('"regress_snowflake Watcher"');
SELECT p.oid::regprocedure AS function FROM pg_proc p
WHERE pronamespace = 'snowflake_registry'::regnamespace AND has_function_privilege('regress_snowflake_server', p.oid, 'EXECUTE')
ORDER BY 1;
SELECT c.oid::regclass AS relation, pg_get_userbyid(r.oid) AS role
FROM pg_class c, pg_roles r
WHERE c.relnamespace = 'snowflake_registry'::regnamespace AND relkind IN ('r', 'v') AND rolname LIKE 'regress\_snowflake%'
  AND has_table_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE')
ORDER BY 1, 2;
SELECT count(*) AS columns_of_tokens FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
WHERE c.relnamespace = 'snowflake_registry'::regnamespace AND relkind = 'v' AND attname ~ 'token';
SET ROLE regress_snowflake_server;
SELECT machine_id, lease_until > lease_from AS is_lease FROM snowflake_registry.claim(repeat('9', 32)::uuid, 'tiny', 2, 3, '1 s', clock_timestamp(), 'mine', 0);
SELECT machine_id FROM snowflake_registry.renew(repeat('9', 32)::uuid, 3, '2026-01-01', '2027-01-01', '1 s', clock_timestamp(), 'mine', 1);
SELECT snowflake_registry.release(repeat('9', 32)::uuid, 'infinity', 0);
\set VERBOSITY sqlstate
SELECT token FROM snowflake_registry.machine;
SELECT * FROM snowflake_registry.machines;
SELECT * FROM snowflake_registry.status;
SELECT snowflake_registry.start_grace_period();
SELECT snowflake_registry.end_grace_period();
SELECT snowflake_registry.declare_first();
SELECT snowflake_registry.declare_dead(0);
SELECT snowflake_registry.accept_layout();
SELECT snowflake_registry.configure('1 s');
SELECT snowflake_registry.admit('regress_snowflake_other');
SELECT snowflake_registry.enter('0', 0, NULL, NULL);
SET ROLE regress_snowflake_other;
SELECT snowflake_registry.release(repeat('9', 32)::uuid, 'infinity', 0);
SET ROLE "regress_snowflake Watcher";
\set VERBOSITY default
SELECT machine_id, holder, state FROM snowflake_registry.machines ORDER BY 1;
SELECT layout, machine_bits FROM snowflake_registry.status;
SELECT snowflake_registry.start_grace_period();
RESET ROLE;

-- a search_path with objects of other users that have the names of built-in ones
CREATE SCHEMA elsewhere;
CREATE FUNCTION elsewhere.clock_timestamp() RETURNS timestamptz LANGUAGE SQL RETURN timestamptz '2000-01-01';
CREATE FUNCTION elsewhere.greatest_of(timestamptz, timestamptz) RETURNS boolean LANGUAGE SQL RETURN true;
CREATE OPERATOR elsewhere.> (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = elsewhere.greatest_of);
SET search_path = elsewhere, pg_catalog, public;
SELECT id FROM claim('d', machine_bits => 2);
SELECT snowflake_registry.declare_dead(0) > '2001-01-01' AS declared;
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA elsewhere CASCADE;
RESET client_min_messages;

-- The arguments of a server are bounded, so that false ones can make other servers wait, but not
-- stop them: see docs/security.md.  First, lease numbers.
TRUNCATE snowflake_registry.config, snowflake_registry.machine, said;
SELECT snowflake_registry.declare_first();
SELECT id FROM claim('a', machine_bits => 2);
SELECT * FROM claim('f', machine_bits => 2, known => 9000000000000000000);
SELECT release('f', known => 9000000000000000000);
SELECT * FROM renew('a', known => 9000000000000000000);
SELECT grace_until, last_lease_number FROM snowflake_registry.status;
-- a million grace periods may have been lost
SELECT id, refusal FROM claim('f', machine_bits => 2, known => 1000000 * 1000000000000);
SELECT id FROM renew('a');
-- one grace period after the other, up to the limit, and above it by one lease each
CREATE FUNCTION ns() RETURNS bigint LANGUAGE SQL RETURN extract(epoch FROM clock_timestamp()) * 1000000000;
DO $$
BEGIN
    FOR i IN 1..20 LOOP
        PERFORM claim('f', machine_bits => 2, known => ns());
        PERFORM claim('f', machine_bits => 2, known => (SELECT last_lease_number FROM snowflake_registry.status));
        PERFORM renew('f', machine_id => 2, known => (SELECT last_lease_number FROM snowflake_registry.status),
            lease_from => clock_timestamp(), lease_until => clock_timestamp() + interval '1 minute');
        PERFORM snowflake_registry.start_grace_period();
    END LOOP;
END
$$;
SELECT last_lease_number BETWEEN ns() - 1000000000000 AND ns() AS at_the_limit FROM snowflake_registry.status;
-- holders keep their leases, and the numbers that they state after that are accepted
SELECT id, refusal FROM renew('a');
SELECT id, refusal FROM renew('a');
SELECT id FROM renew('f', machine_id => 2);
-- at last the limit no longer rises: numbers remain for leases
UPDATE snowflake_registry.config SET last_lease_number = 9000000000000000000;
SELECT id, lease_number FROM renew('a', lease_from => (lease('a')).lease_from);
SELECT snowflake_registry.start_grace_period() > now() AS in_grace_period;
SELECT id, lease_number FROM renew('a');
SELECT id, lease_number FROM renew('a');

-- no lease can be longer, and no machine ID be kept from others for longer, than max_lease and
-- max_skew allow
TRUNCATE snowflake_registry.config, snowflake_registry.machine, said;
SELECT snowflake_registry.declare_first();
SELECT id FROM claim('a', machine_bits => 2);
SELECT snowflake_registry.start_grace_period('2100-01-01 00:00:00Z') = '2100-01-01 00:00:00Z' AS in_grace_period;
SELECT id FROM renew('a', lease_from => '-infinity'::timestamptz);
SELECT id FROM renew('a', lease_from => '4713-01-01 00:00:00Z BC', lease_until => clock_timestamp() + interval '59 minutes');
SELECT release('a', 'infinity');
SELECT snowflake_registry.end_grace_period();
SELECT lease_until - clock_timestamp() BETWEEN '1 hour' AND '1 hour 20 s' AS not_to_the_fence FROM snowflake_registry.machine;
-- texts
SELECT id FROM keep('g', snowflake_registry.claim(token('9'), 'tiny', 2, NULL, '1 s', clock_timestamp(), repeat('x', 256), 0));
SELECT snowflake_registry.claim(token('9'), 'tiny', 2, NULL, '1 s', clock_timestamp(), repeat('x', 257), 0);
SELECT snowflake_registry.renew(token('9'), 0, '2026-01-01', '2027-01-01', '1 s', clock_timestamp(), repeat('x', 257), 1);
SELECT snowflake_registry.claim(token('9'), repeat('x', 257), 2, NULL, '1 s', clock_timestamp(), '', 0);
-- the layout can differ from the layout of the first claim
SELECT snowflake_registry.accept_layout('tiny', 2);
SELECT layout, machine_bits FROM snowflake_registry.status;
SELECT * FROM claim('f', layout => 'mine', machine_bits => 31);
SELECT snowflake_registry.accept_layout('tiny');
SELECT snowflake_registry.accept_layout(machine_bits => 2);
SELECT snowflake_registry.accept_layout(repeat('x', 257), 2);
SELECT snowflake_registry.accept_layout('tiny', 32);
SELECT layout, machine_bits FROM snowflake_registry.status;
-- a claim does not read all of many machine IDs that were leased and are free again
TRUNCATE snowflake_registry.machine;
INSERT INTO snowflake_registry.machine
SELECT id, NULL, '', now() - interval '2 minutes', now() - interval '1 minute', 0, now(), now(), '0', 'epoch' FROM generate_series(0, 20000) id;
SELECT snowflake_registry.accept_layout('wide', 20);
VACUUM ANALYZE snowflake_registry.machine;
BEGIN;
SELECT id, refusal FROM claim('a', layout => 'wide', machine_bits => 20);
SELECT id, refusal FROM claim('b', layout => 'wide', machine_bits => 20);
SELECT seq_tup_read + idx_tup_fetch < 1000 AS few_are_read FROM pg_stat_xact_user_tables WHERE relid = 'snowflake_registry.machine'::regclass;
COMMIT;
-- none is free except one in the middle; and one after all
UPDATE snowflake_registry.machine SET lease_until = now() + interval '1 hour';
DELETE FROM snowflake_registry.machine WHERE machine_id = 12345;
SELECT id, refusal FROM claim('c', layout => 'wide', machine_bits => 20);
SELECT id, refusal FROM claim('d', layout => 'wide', machine_bits => 20);
TRUNCATE snowflake_registry.machine;
SELECT snowflake_registry.accept_layout('tiny', 2);
DROP FUNCTION ns;

CREATE OR REPLACE FUNCTION claim(server text, wanted integer DEFAULT NULL, lease interval DEFAULT '1 minute', off interval DEFAULT '0',
    known bigint DEFAULT 0, layout text DEFAULT 'tiny', machine_bits integer DEFAULT 2,
    OUT id integer, OUT lease_number bigint, OUT refusal text, OUT free_at_is_known boolean)
LANGUAGE SQL
RETURN keep(server, snowflake_registry.claim(token(server), layout, machine_bits, wanted, lease, clock_timestamp() + off, server, known));
-- machine IDs below reserved are leased only to servers that ask for them by number, also when a lease
-- has ended
TRUNCATE snowflake_registry.machine;
SELECT snowflake_registry.configure(reserved => 2);
SELECT held, free, reserved, next_free_at FROM snowflake_registry.status;
SELECT id, refusal FROM claim('a', wanted => 0, lease => '1 second');
UPDATE snowflake_registry.machine SET lease_until = clock_timestamp();
SELECT id, refusal FROM claim('b');
SELECT id, refusal FROM claim('c', wanted => 1);
SELECT id, refusal FROM claim('d');
SELECT id, refusal FROM claim('e');
SELECT held, free, reserved, next_free_at = (SELECT min(lease_until) FROM snowflake_registry.machines WHERE machine_id >= 2) AS next_free_at
FROM snowflake_registry.status;
-- a server can ask for any other number, too
SELECT release('d');
SELECT id, refusal FROM claim('f', wanted => 3);
SELECT id, refusal FROM claim('d', wanted => 0);
SELECT machine_id, state FROM snowflake_registry.machines ORDER BY machine_id;
-- more are reserved, and more than exist; holders keep theirs
SELECT snowflake_registry.configure(reserved => 4);
SELECT id, refusal FROM renew('b');
SELECT id, refusal FROM claim('b');
SELECT id, refusal FROM claim('e');
SELECT held, free, reserved, next_free_at FROM snowflake_registry.status;
SELECT snowflake_registry.configure(reserved => 9), snowflake_registry.configure();
SELECT id, refusal FROM claim('e');
SELECT held, free, reserved, next_free_at FROM snowflake_registry.status;
\set VERBOSITY terse
SELECT snowflake_registry.configure(reserved => -1);
\set VERBOSITY default
SELECT snowflake_registry.configure(reserved => 0);
TRUNCATE snowflake_registry.machine;

-- the identity stays the same, and the first call makes it
SELECT snowflake_registry.identity() AS identity \gset
SELECT snowflake_registry.identity() = :identity AS same, :identity > 0 AS positive;
SELECT id, refusal FROM claim('a');
SELECT identity = :identity AS same, is_new FROM snowflake_registry.config;
TRUNCATE snowflake_registry.config, snowflake_registry.machine;
SET synchronous_commit = off;
BEGIN;
SELECT snowflake_registry.identity() = :identity AS same;
SHOW synchronous_commit;
COMMIT;
RESET synchronous_commit;
SELECT is_new, last_lease_number, grace_until FROM snowflake_registry.config;
SELECT id, refusal FROM claim('a');
SELECT snowflake_registry.declare_first();

-- a role that is no longer admitted can call nothing, and can be dropped
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA snowflake_registry FROM regress_snowflake_other;
REVOKE ALL ON SCHEMA snowflake_registry FROM regress_snowflake_other;
SET ROLE regress_snowflake_other;
\set VERBOSITY terse
SELECT snowflake_registry.identity();
SELECT snowflake_registry.admit('regress_snowflake_server');
RESET ROLE;
SELECT p.oid::regprocedure AS function FROM pg_proc p WHERE pronamespace = 'snowflake_registry'::regnamespace
    AND has_function_privilege('regress_snowflake_other', p.oid, 'EXECUTE')
    ORDER BY proname;
SELECT snowflake_registry.admit('regress_snowflake_nobody');
\set VERBOSITY default
SELECT snowflake_registry.admit('regress_snowflake_other');
SET ROLE regress_snowflake_other;
SELECT snowflake_registry.identity() IS NOT NULL AS has_identity;
RESET ROLE;

-- every object is described
SELECT pg_describe_object(classid, objid, objsubid) AS undescribed FROM pg_depend d
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_registry') AND deptype = 'e'
  AND classid <> 'pg_type'::regclass AND obj_description(objid, classid::regclass::name) IS NULL;

-- the smallest free machine ID, in tables that are drawn at random, with gaps and without, with fewer and
-- more than 200 rows
SELECT setseed(0.25);
DO $$
DECLARE
	clock CONSTANT timestamptz := clock_timestamp();
	cases integer[] := array_fill(0, '{5}');
	ids bigint;
	reserved integer;
	rows bigint;
	expected integer;
	found integer;
BEGIN
	FOR i IN 1 .. 500 LOOP
		ids := CASE WHEN i % 3 = 0 THEN 1 << floor(random() * 9)::integer WHEN i % 10 = 0 THEN 4096 ELSE 256 END;
		reserved := floor(random() * 4);
		rows := CASE WHEN ids = 4096 THEN reserved + 200 * (i % 7) ELSE floor(random() * least(ids * 1.2, 200)) END;
		TRUNCATE snowflake_registry.machine;
		INSERT INTO snowflake_registry.machine (machine_id, token, holder, lease_from, lease_until, lease_number, claimed_at, seen_at, skew, earliest_end)
		SELECT n, CASE WHEN random() < 0.8 THEN gen_random_uuid() END, '', 'epoch', clock + CASE WHEN random() < 1 - 1.0 / greatest(rows, 1) THEN interval '1 h' ELSE '-1 h' END,
			n + 1, clock, clock, '0', 'epoch'
		FROM generate_series(1, rows) r, LATERAL (SELECT r - 1 AS n) n WHERE i % 4 < 2 OR random() < 1 - 1.0 / greatest(rows, 1);
		SELECT n INTO expected FROM generate_series(reserved, ids - 1) n
		WHERE NOT EXISTS (SELECT FROM snowflake_registry.machine WHERE machine_id = n AND lease_until > clock)
		ORDER BY n LIMIT 1;
		found := snowflake_registry.smallest_free(reserved, ids, clock);
		IF found IS DISTINCT FROM expected THEN
			RAISE EXCEPTION 'of % machine IDs, % is found and not %', ids, found, expected;
		END IF;
		cases[1] := cases[1] + (found IS NULL)::integer;
		cases[2] := cases[2] + coalesce(found < 100, false)::integer;
		IF found >= 100 THEN	-- the end, a free one, a gap
			cases[3] := cases[3] + (found > (SELECT max(machine_id) FROM snowflake_registry.machine))::integer;
			cases[4] := cases[4] + (found = ANY (SELECT machine_id FROM snowflake_registry.machine))::integer;
			cases[5] := cases[5] + (found < (SELECT max(machine_id) FROM snowflake_registry.machine) AND found <> ALL (SELECT machine_id FROM snowflake_registry.machine))::integer;
		END IF;
	END LOOP;
	IF 5 > ANY (cases) THEN
		RAISE EXCEPTION 'some cases are rare: %', cases;
	END IF;
END $$;
TRUNCATE snowflake_registry.machine;

-- a dump that is restored in the same database
CREATE TABLE config AS TABLE snowflake_registry.config;
CREATE TABLE machine AS TABLE snowflake_registry.machine;
SET client_min_messages = warning;
DROP EXTENSION snowflake_registry CASCADE;
RESET client_min_messages;
CREATE EXTENSION snowflake_registry;
INSERT INTO snowflake_registry.config TABLE config;
INSERT INTO snowflake_registry.machine TABLE machine;
SELECT machine_id, refusal ~ 'moved or restored' AS in_grace_period
FROM snowflake_registry.claim(repeat('9', 32)::uuid, 'tiny', 2, 3, '1 s', clock_timestamp(), 'mine', 0);

-- it cannot be declared the first one, as a registry without the rows could
\set VERBOSITY terse
SELECT snowflake_registry.declare_first();
\set VERBOSITY default
DROP EXTENSION snowflake_registry;
CREATE EXTENSION snowflake_registry;
SELECT machine_id, refusal ~ 'is new' AS in_grace_period
FROM snowflake_registry.claim(repeat('9', 32)::uuid, 'tiny', 2, 3, '1 s', clock_timestamp(), 'mine', 0);
DROP EXTENSION snowflake_registry;

-- in no schema that other users can drop, whatever search_path is set
CREATE SCHEMA first;
SET search_path = first, public;
CREATE EXTENSION snowflake_registry;
RESET search_path;
SELECT snowflake_registry.declare_first();
DROP SCHEMA first CASCADE;
SELECT layout, last_lease_number FROM snowflake_registry.status;
CREATE SCHEMA first;
DROP EXTENSION snowflake_registry;
CREATE EXTENSION snowflake_registry SCHEMA first;
DROP SCHEMA first;
DROP EXTENSION IF EXISTS snowflake_registry;

DROP TABLE grace, config, machine, said;
DROP FUNCTION token;
SELECT to_regnamespace('snowflake_registry');
DROP ROLE regress_snowflake_server, "regress_snowflake Watcher", regress_snowflake_other;
