-- The extension snowflake_registry: what is leased to whom, and what is refused.  What
-- takes several servers is in t/016_registry.pl.
\set SHOW_CONTEXT never
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';
CREATE EXTENSION snowflake_registry;

-- A server's calls, by a letter that stands for its token.  All answers are kept.
CREATE TABLE said (n integer GENERATED ALWAYS AS IDENTITY, server text, answer snowflake_registry.answer);
CREATE FUNCTION token(server text) RETURNS uuid LANGUAGE SQL RETURN repeat(server, 32)::uuid;
CREATE FUNCTION keep(server text, answer snowflake_registry.answer,
    OUT id integer, OUT grant_number bigint, OUT refusal text, OUT free_at_is_known boolean)
LANGUAGE SQL
BEGIN ATOMIC
    INSERT INTO said (server, answer) VALUES (server, answer);
    SELECT (answer).machine_id, (answer).grant_number,
        regexp_replace((answer).refusal, '\d{4}-\d\d-\d\d [\d:.]+\+00|(-?\d+ days )?[\d:]+\.\d+', '(time)', 'g'),
        (answer).free_at IS NOT NULL;
END;
CREATE FUNCTION claim(server text, wanted integer DEFAULT NULL, lease interval DEFAULT '1 minute', off interval DEFAULT '0',
    known bigint DEFAULT 0, layout text DEFAULT 'tiny', machine_bits integer DEFAULT 1,
    OUT id integer, OUT grant_number bigint, OUT refusal text, OUT free_at_is_known boolean)
LANGUAGE SQL
RETURN keep(server, snowflake_registry.claim(token(server), layout, machine_bits, wanted, lease, clock_timestamp() + off, server, known));
-- the last span that a server was granted
CREATE FUNCTION span(server text) RETURNS snowflake_registry.answer LANGUAGE SQL
RETURN (SELECT s.answer FROM said s WHERE s.server = span.server AND (s.answer).refusal IS NULL ORDER BY n DESC LIMIT 1);
CREATE FUNCTION renew(server text, lease interval DEFAULT '1 minute', off interval DEFAULT '0', known bigint DEFAULT NULL,
    machine_id integer DEFAULT NULL, lease_from timestamptz DEFAULT NULL, lease_until timestamptz DEFAULT NULL,
    OUT id integer, OUT grant_number bigint, OUT refusal text, OUT free_at_is_known boolean)
LANGUAGE SQL
RETURN keep(server, snowflake_registry.renew(token(server), coalesce(machine_id, (span(server)).machine_id),
    coalesce(lease_from, (span(server)).lease_from), coalesce(lease_until, (span(server)).lease_until),
    lease, clock_timestamp() + off, server, coalesce(known, (span(server)).grant_number)));
CREATE FUNCTION release(server text, used_until timestamptz DEFAULT clock_timestamp(), known bigint DEFAULT 0) RETURNS void LANGUAGE SQL
RETURN snowflake_registry.release(token(server), used_until, known);
-- spans of one machine ID that overlap: their servers
CREATE VIEW overlapping AS
SELECT a.server AS a, b.server AS b
FROM said a JOIN said b ON a.n < b.n AND (a.answer).machine_id = (b.answer).machine_id AND a.server <> b.server
    AND (a.answer).lease_from < (b.answer).lease_until AND (b.answer).lease_from < (a.answer).lease_until;

-- a registry that is new may have had another one before it: new servers wait until the
-- grants of that have ended
SELECT * FROM snowflake_registry.status;
SELECT * FROM claim('a');
SELECT fence - clock_timestamp() BETWEEN '1 hour 15 s' AND '1 hour 20 s' AS max_lease_and_two_skews, grants FROM snowflake_registry.status;
SELECT * FROM claim('b', wanted => 1);
-- limits that are set meanwhile are those of the other one, too
SELECT snowflake_registry.configure(max_lease => '2 hours');
SELECT fence - clock_timestamp() BETWEEN '2 hours 15 s' AND '2 hours 20 s' AS moved FROM snowflake_registry.status;
SELECT snowflake_registry.configure(max_lease => '1 hour');
SELECT fence - clock_timestamp() BETWEEN '2 hours 15 s' AND '2 hours 20 s' AS stays FROM snowflake_registry.status;
-- an administrator's word that there was none; once more, it does nothing
SELECT snowflake_registry.declare_first();
SELECT fence, grants FROM snowflake_registry.status;
SELECT snowflake_registry.declare_first();
SELECT id, grant_number FROM claim('a');
SELECT snowflake_registry.declare_first();
SELECT machine_id, state FROM snowflake_registry.machines;
-- a fence that is there for another reason is not lifted by it
SELECT snowflake_registry.fence() > now() AS fenced;
\set VERBOSITY terse
SELECT snowflake_registry.declare_first();
\echo :SQLSTATE
SELECT fence > now() AS fenced FROM snowflake_registry.status;

-- nor that of a new registry that was moved, as by a dump that was restored
TRUNCATE snowflake_registry.config, snowflake_registry.machine;
SELECT id, refusal FROM claim('a');
UPDATE snowflake_registry.config SET incarnation = 'elsewhere';
SELECT snowflake_registry.declare_first();
SELECT incarnation FROM snowflake_registry.config;
SELECT id, refusal FROM claim('a');
SELECT snowflake_registry.declare_first();
-- or that was given a fence by hand
TRUNCATE snowflake_registry.config;
SELECT snowflake_registry.fence() > now() AS fenced;
SELECT snowflake_registry.declare_first();
-- or a server of which knows of a grant
TRUNCATE snowflake_registry.config;
SELECT id, refusal FROM claim('a');
SELECT id, refusal FROM claim('b', known => 1);
SELECT snowflake_registry.declare_first();
TRUNCATE snowflake_registry.config;
SELECT release('a', known => 1);
SELECT id, refusal FROM claim('a');
SELECT snowflake_registry.declare_first();
-- or a server of which keeps the span that it holds
TRUNCATE snowflake_registry.config;
SELECT id, refusal FROM claim('a');
SELECT id FROM renew('b', machine_id => 1, lease_from => clock_timestamp(), lease_until => clock_timestamp() + interval '1 minute', known => 1);
SELECT id, refusal FROM claim('a');
SELECT snowflake_registry.declare_first();
SELECT snowflake_registry.lift_fence();
SELECT id, refusal FROM claim('a');

-- the first call is of a wrong clock, or only gives back: the next one makes the fence
TRUNCATE snowflake_registry.config, snowflake_registry.machine;
SELECT id, refusal FROM claim('a', off => '1 hour');
SELECT release('a');
SELECT fence, incarnation FROM snowflake_registry.config;
SELECT id, refusal FROM claim('a');
-- the fence is over: it is the first one, and it starts there
UPDATE snowflake_registry.config SET fence = clock_timestamp();
SELECT id, refusal FROM claim('a');
SELECT (span('a')).lease_from = fence AS starts_there FROM snowflake_registry.config;
SELECT snowflake_registry.declare_first();
SELECT snowflake_registry.fence() > now() AS fenced;
SELECT snowflake_registry.declare_first();
\set VERBOSITY default
-- declared before any call; a server that knows better is noticed all the same
TRUNCATE snowflake_registry.config, snowflake_registry.machine, said;
SELECT snowflake_registry.declare_first();
SELECT id, refusal FROM claim('b', known => 1);
TRUNCATE snowflake_registry.config;
SELECT id, refusal FROM claim('a');
SELECT snowflake_registry.declare_first();
SELECT id, refusal FROM claim('b', known => 1);

-- nothing is known before the first claim, which says what the registry is for
TRUNCATE snowflake_registry.config, said;
SELECT snowflake_registry.declare_first();
SELECT * FROM snowflake_registry.status;
SELECT * FROM claim('a');
SELECT layout, machine_bits, held, free, next_free_at, fence, max_lease, max_skew, grants FROM snowflake_registry.status;
SELECT (span('a')).lease_until - (span('a')).lease_from BETWEEN '69 s' AND '71 s' AS from_max_skew_ago,
       (span('a')).lease_until > clock_timestamp() + interval '50 s' AS until_in_a_minute,
       (span('a')).skew BETWEEN '-9 s' AND '0' AS skew;

-- once more, as if the answer had been lost: the same span, with a later end
SELECT * FROM claim('a');
SELECT count(*), count(DISTINCT (answer).lease_from) AS starts, count(DISTINCT (answer).lease_until) AS ends FROM said;

-- the smallest that is free; the one that is wanted; none
SELECT * FROM claim('b', wanted => 0);
SELECT * FROM claim('b');
SELECT * FROM claim('c');
SELECT held, free, next_free_at = (span('a')).lease_until AS next_free_at FROM snowflake_registry.status;

-- renewed: the end goes forth, and does not come back
SELECT * FROM renew('b', lease => '2 minutes');
SELECT count(DISTINCT (answer).lease_from) AS starts, max((answer).lease_until) - min((answer).lease_until) > '1 minute' AS later FROM said WHERE server = 'b' AND (answer).refusal IS NULL;
SELECT * FROM renew('b', lease => '1 second');
SELECT (answer).lease_until = max((answer).lease_until) OVER () AS kept FROM said WHERE server = 'b' ORDER BY n DESC LIMIT 1;

-- what nobody has been granted is not renewed: another token, machine ID, start
SELECT * FROM renew('c', known => 1, machine_id => 0, lease_from => (span('a')).lease_from, lease_until => (span('a')).lease_until);
SELECT * FROM renew('a', machine_id => 1);
SELECT * FROM renew('a', lease_from => (span('a')).lease_from + interval '1 us');

-- given back: who comes next starts where the last one ended
SELECT release('b', (span('b')).lease_from + interval '7 s');
SELECT lease_until - lease_from AS used, state FROM snowflake_registry.machines WHERE machine_id = 1;
SELECT held, free FROM snowflake_registry.status;
SELECT release('b', 'infinity');
SELECT release('c');
SELECT * FROM claim('c');
SELECT (span('c')).lease_from = (span('b')).lease_from + interval '7 s' AS starts_there;
SELECT * FROM renew('b');
-- nothing was used of it
SELECT release('c', '-infinity');
SELECT lease_until = lease_from AS unused FROM snowflake_registry.machines WHERE machine_id = 1;
-- all was, and IDs ahead of the span are not of it
SELECT * FROM claim('c', wanted => 1);
SELECT release('c', 'infinity');
SELECT lease_until = (span('c')).lease_until AS all_used FROM snowflake_registry.machines WHERE machine_id = 1;
-- given back, and free only when the caller's clock is there
SELECT * FROM claim('d', wanted => 1);
TRUNCATE said;

-- run out: it is still the holder's, as long as nobody else came
SELECT release('a', '-infinity');
SELECT * FROM claim('a', wanted => 0, lease => '1 us');
SELECT machine_id, holder, state FROM snowflake_registry.machines ORDER BY 1;
SELECT * FROM renew('a', lease => '1 us');
SELECT * FROM claim('d', wanted => 0);
SELECT (span('d')).lease_from = (span('a')).lease_until AS starts_there;
SELECT * FROM renew('a');
SELECT * FROM claim('a', wanted => 0);
SELECT * FROM overlapping;

-- one whose clock is ahead does not take what another uses by the registry's clock
SELECT * FROM renew('d', lease => '30 s');
SELECT snowflake_registry.configure(max_skew => '3 minutes');
SELECT * FROM claim('a', wanted => 0, off => '2 minutes');
-- but what was given back it does
SELECT release('d', 'infinity');
SELECT * FROM claim('a', wanted => 0, off => '2 minutes', lease => '1 us');
SELECT (span('a')).lease_until > clock_timestamp() + interval '1 minute' AS by_its_clock, date_trunc('minute', (span('a')).skew + interval '1 s') AS skew;
-- and one whose clock is behind does not start before
SELECT release('a', 'infinity');
SELECT * FROM claim('d', wanted => 0, off => '-1 minute');
SELECT (answer).free_at = (span('a')).lease_until AS free_at FROM said ORDER BY n DESC LIMIT 1;
SELECT * FROM overlapping;

-- clocks that are off
SELECT * FROM claim('c', off => '4 minutes');
SELECT * FROM claim('c', off => '-4 minutes');
SELECT * FROM claim('a', wanted => 0, off => '2 minutes');
SELECT * FROM renew('a', off => '4 minutes');
SELECT * FROM renew('a', off => '-3000 years');
SELECT * FROM renew('a', off => '2 minutes');

-- what allows less than is leased waits for that
\set VERBOSITY terse
SELECT snowflake_registry.configure(max_lease => '1 s', max_skew => '10 s');
\echo :SQLSTATE
\set VERBOSITY default
SELECT snowflake_registry.declare_dead(0, '2000-01-01') = (span('a')).lease_from AS free_at;
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

-- the same token, with another wish
DELETE FROM snowflake_registry.machine;
TRUNCATE said;
SELECT * FROM claim('c', wanted => 3, machine_bits => 2);
SELECT * FROM claim('c', wanted => 2, machine_bits => 2);
SELECT state, lease_until > clock_timestamp() AS is_taken FROM snowflake_registry.machines WHERE machine_id = 3;
SELECT * FROM claim('e', wanted => 3, machine_bits => 2);

-- declared dead: by default, what it can have issued until now by its clock
SELECT * FROM renew('c', lease => '10 minutes', off => '5 s');
SELECT free_at - clock_timestamp() BETWEEN '70 s' AND '75 s' AS a_minute_and_skews FROM snowflake_registry.declare_dead(2) free_at;
SELECT * FROM renew('c');
SELECT state FROM snowflake_registry.machines WHERE machine_id = 2;
-- never later than its span
SELECT * FROM claim('e', wanted => 0, lease => '1 s', machine_bits => 2);
SELECT snowflake_registry.declare_dead(0) = (span('e')).lease_until AS not_moved_forth;
SELECT snowflake_registry.declare_dead(1, 'infinity');

-- a fence by hand: who holds a span keeps it, new ones wait
DELETE FROM snowflake_registry.machine;
TRUNCATE said;
SELECT * FROM claim('a', machine_bits => 2);
SELECT * FROM claim('b', machine_bits => 2);
SELECT * FROM claim('c', machine_bits => 2, lease => '1 us');
SELECT fence - clock_timestamp() BETWEEN '10 minutes 15 s' AND '10 minutes 20 s' AS max_lease_and_two_skews FROM snowflake_registry.fence() fence;
SELECT grants, fence > clock_timestamp() AS fenced FROM snowflake_registry.status;
SELECT * FROM claim('d', machine_bits => 2);
SELECT * FROM claim('d', wanted => 3, machine_bits => 2);
SELECT (answer).free_at = fence AS free_at FROM said, snowflake_registry.status ORDER BY n DESC LIMIT 1;
SELECT * FROM renew('a');
SELECT * FROM renew('a');
SELECT (span('a')).lease_from = (SELECT min((answer).lease_from) FROM said WHERE server = 'a') AS goes_on;
-- its answer was lost: it is the one who was confirmed
SELECT * FROM claim('a', machine_bits => 2);
-- a span that has run out can have become another's in what was lost
SELECT * FROM renew('c');
-- who cannot say what it holds waits as well
SELECT * FROM claim('b', machine_bits => 2);
-- an earlier fence moves nothing, a later one does
SELECT snowflake_registry.fence(clock_timestamp()) > clock_timestamp() + interval '10 minutes' AS stays;
SELECT snowflake_registry.fence('2100-01-01 00:00:00Z') = '2100-01-01 00:00:00Z' AS moved;
SELECT snowflake_registry.fence('infinity');
-- what is behind a fence starts there
SELECT snowflake_registry.lift_fence();
CREATE TEMP TABLE fence AS SELECT snowflake_registry.fence(clock_timestamp()) AS at;
SELECT * FROM claim('d', wanted => 3, machine_bits => 2);
SELECT (span('d')).lease_from = at AS starts_there FROM fence;
SELECT fence FROM snowflake_registry.status;
SELECT a, b FROM overlapping;

-- a person's word that nothing was lost: rows count again
SELECT snowflake_registry.fence() > now() AS fenced;
SELECT snowflake_registry.lift_fence();
SELECT fence FROM snowflake_registry.status;
SELECT * FROM claim('d', machine_bits => 2);
SELECT * FROM claim('e', machine_bits => 2);

-- moved to another cluster or timeline: fenced by the first call of a right clock, and once
UPDATE snowflake_registry.config SET incarnation = 'elsewhere';
SELECT release('e', '-infinity');
SELECT * FROM claim('f', off => '1 minute', machine_bits => 2);
SELECT fence, incarnation FROM snowflake_registry.config;
SELECT * FROM claim('f', machine_bits => 2);
SELECT incarnation <> 'elsewhere' AS here FROM snowflake_registry.config;
SELECT fence AS before FROM snowflake_registry.config \gset
SELECT * FROM claim('f', machine_bits => 2);
SELECT fence = :'before' AS the_same FROM snowflake_registry.config;
SELECT * FROM renew('a');
SELECT * FROM renew('d');
SELECT snowflake_registry.lift_fence();

-- a grant is known that is not stored: fenced
SELECT grants AS before FROM snowflake_registry.config \gset
SELECT * FROM renew('a', known => :before + 1);
SELECT fence > clock_timestamp() AS fenced, grants - :before AS leap FROM snowflake_registry.status;
-- and with the numbers of before the fence, no more
SELECT * FROM renew('d', known => :before + 2);
SELECT grants - :before AS leap FROM snowflake_registry.status;
-- but with one from after it
SELECT * FROM renew('d', known => :before + 1000000000003);
SELECT grants - :before AS leap FROM snowflake_registry.status;
SELECT snowflake_registry.lift_fence();
-- by who claims, by who gives back, by who has another clock: then the next call does it
SELECT * FROM claim('f', machine_bits => 2, known => :before + 5000000000000);
SELECT grants - :before AS leap FROM snowflake_registry.status;
SELECT snowflake_registry.lift_fence();
SELECT release('f', '-infinity', known => :before + 8000000000000);
SELECT fence, incarnation FROM snowflake_registry.config;
SELECT * FROM claim('f', machine_bits => 2);
SELECT snowflake_registry.lift_fence();
SELECT * FROM renew('a', off => '1 minute', known => :before + 20000000000000);
SELECT fence, incarnation FROM snowflake_registry.config;
SELECT * FROM claim('f', machine_bits => 2);
SELECT * FROM renew('a');
SELECT snowflake_registry.lift_fence();

-- the claim was lost, too, or the row is of a former span of this server or of another one:
-- it holds what it says, if it has not run out
SELECT token('d') = token AS is_there FROM snowflake_registry.machine WHERE machine_id = 3;
DELETE FROM snowflake_registry.machine WHERE machine_id = 3;
SELECT * FROM renew('d');
SELECT (span('d')).lease_from = lease_from AS as_it_said, holder FROM snowflake_registry.machine WHERE machine_id = 3;
SELECT snowflake_registry.lift_fence();
UPDATE snowflake_registry.machine SET token = CASE machine_id WHEN 3 THEN token('f') END, grant_number = 1, lease_from = '2000-01-01'
WHERE machine_id IN (1, 3);
UPDATE snowflake_registry.machine SET token = token('d') WHERE machine_id = 1;
SELECT * FROM renew('d');
SELECT machine_id, left(token::text, 1) AS token, lease_from > '2000-01-01' AS of_the_span FROM snowflake_registry.machine WHERE machine_id IN (1, 3) ORDER BY 1;
SELECT * FROM renew('f', machine_id => 3, lease_from => '2000-01-01', lease_until => clock_timestamp() + interval '1 minute', known => 2);
-- but not what no registry can have leased
SELECT id, refusal FROM renew('f', machine_id => 2, lease_from => '2000-01-01', lease_until => '9999-01-01', known => 2);
SELECT id, refusal ~ '^no registry has leased machine ID 4 until ' AS refused FROM renew('f', machine_id => 4, lease_from => '2000-01-01', lease_until => clock_timestamp() + interval '1 minute', known => 2);
-- given back by who was renewed in what was lost: later than what is stored
UPDATE snowflake_registry.machine SET lease_until = clock_timestamp() WHERE machine_id = 3;
SELECT release('d', (span('d')).lease_until, known => (span('d')).grant_number);
SELECT lease_until = (span('d')).lease_until AS moved_forth, token IS NULL AS released FROM snowflake_registry.machine WHERE machine_id = 3;
SELECT * FROM overlapping;

-- an answer counts when it is committed
SELECT snowflake_registry.lift_fence();
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

-- the commit waits for WAL, whatever the session has set
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

-- nobody waits for the lock for ever, unless the session says for how long
BEGIN;
SELECT id FROM claim('b', machine_bits => 2);
SHOW lock_timeout;
COMMIT;
SHOW lock_timeout;
BEGIN;
SET LOCAL lock_timeout = '1min';
SELECT id FROM renew('b');
SHOW lock_timeout;
SELECT release('b');
COMMIT;

-- what is malformed
SELECT grants AS before FROM snowflake_registry.status \gset
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
SELECT grants = :before AS nothing_granted FROM snowflake_registry.status;

-- a server's role can claim, renew and release, and see nothing; one that watches can see
-- all but tokens; and others can do nothing
CREATE ROLE regress_snowflake_server;
CREATE ROLE "regress_snowflake Watcher" IN ROLE pg_monitor;
CREATE ROLE regress_snowflake_nobody;
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
SELECT machine_id, lease_until > lease_from AS is_span FROM snowflake_registry.claim(repeat('9', 32)::uuid, 'tiny', 2, 3, '1 s', clock_timestamp(), 'mine', 0);
SELECT machine_id FROM snowflake_registry.renew(repeat('9', 32)::uuid, 3, '2026-01-01', '2027-01-01', '1 s', clock_timestamp(), 'mine', 1);
SELECT snowflake_registry.release(repeat('9', 32)::uuid, 'infinity', 0);
\set VERBOSITY sqlstate
SELECT token FROM snowflake_registry.machine;
SELECT * FROM snowflake_registry.machines;
SELECT * FROM snowflake_registry.status;
SELECT snowflake_registry.fence();
SELECT snowflake_registry.lift_fence();
SELECT snowflake_registry.declare_first();
SELECT snowflake_registry.declare_dead(0);
SELECT snowflake_registry.accept_layout();
SELECT snowflake_registry.configure('1 s');
SELECT snowflake_registry.admit('regress_snowflake_nobody');
SELECT snowflake_registry.enter('0', 0, NULL, NULL);
SET ROLE regress_snowflake_nobody;
SELECT snowflake_registry.release(repeat('9', 32)::uuid, 'infinity', 0);
SET ROLE "regress_snowflake Watcher";
\set VERBOSITY default
SELECT machine_id, holder, state FROM snowflake_registry.machines ORDER BY 1;
SELECT layout, machine_bits FROM snowflake_registry.status;
SELECT snowflake_registry.fence();
RESET ROLE;

-- a search_path with objects of others' that have the names of built-in ones
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

-- What a server says is bounded, so that one that lies can make others wait, but not stop
-- them: see docs/security.md.  First of all the numbers of grants.
TRUNCATE snowflake_registry.config, snowflake_registry.machine, said;
SELECT snowflake_registry.declare_first();
SELECT id FROM claim('a', machine_bits => 2);
SELECT * FROM claim('f', machine_bits => 2, known => 9000000000000000000);
SELECT release('f', known => 9000000000000000000);
SELECT * FROM renew('a', known => 9000000000000000000);
SELECT fence, grants FROM snowflake_registry.status;
-- a million fences may have been lost
SELECT id, refusal FROM claim('f', machine_bits => 2, known => 1000000 * 1000000000000);
SELECT id FROM renew('a');
-- fence after fence, up to the limit, and above it by a grant each
CREATE FUNCTION ns() RETURNS bigint LANGUAGE SQL RETURN extract(epoch FROM clock_timestamp()) * 1000000000;
DO $$
BEGIN
    FOR i IN 1..20 LOOP
        PERFORM claim('f', machine_bits => 2, known => ns());
        PERFORM claim('f', machine_bits => 2, known => (SELECT grants FROM snowflake_registry.status));
        PERFORM renew('f', machine_id => 2, known => (SELECT grants FROM snowflake_registry.status),
            lease_from => clock_timestamp(), lease_until => clock_timestamp() + interval '1 minute');
        PERFORM snowflake_registry.fence();
    END LOOP;
END
$$;
SELECT grants BETWEEN ns() - 1000000000000 AND ns() AS at_the_limit FROM snowflake_registry.status;
-- those who hold a span keep it, and what they know after that is accepted
SELECT id, refusal FROM renew('a');
SELECT id, refusal FROM renew('a');
SELECT id FROM renew('f', machine_id => 2);
-- in the end the limit stands still: there are numbers left for grants
UPDATE snowflake_registry.config SET grants = 9000000000000000000;
SELECT id, grant_number FROM renew('a', lease_from => (span('a')).lease_from);
SELECT snowflake_registry.fence() > now() AS fenced;
SELECT id, grant_number FROM renew('a');
SELECT id, grant_number FROM renew('a');

-- a lease cannot be made longer, nor a machine ID be kept from others, than max_lease and max_skew allow
TRUNCATE snowflake_registry.config, snowflake_registry.machine, said;
SELECT snowflake_registry.declare_first();
SELECT id FROM claim('a', machine_bits => 2);
SELECT snowflake_registry.fence('2100-01-01 00:00:00Z') = '2100-01-01 00:00:00Z' AS fenced;
SELECT id FROM renew('a', lease_from => '-infinity'::timestamptz);
SELECT id FROM renew('a', lease_from => '4713-01-01 00:00:00Z BC', lease_until => clock_timestamp() + interval '59 minutes');
SELECT release('a', 'infinity');
SELECT snowflake_registry.lift_fence();
SELECT lease_until - clock_timestamp() BETWEEN '1 hour' AND '1 hour 20 s' AS not_to_the_fence FROM snowflake_registry.machine;
-- texts
SELECT id FROM keep('g', snowflake_registry.claim(token('9'), 'tiny', 2, NULL, '1 s', clock_timestamp(), repeat('x', 256), 0));
SELECT snowflake_registry.claim(token('9'), 'tiny', 2, NULL, '1 s', clock_timestamp(), repeat('x', 257), 0);
SELECT snowflake_registry.renew(token('9'), 0, '2026-01-01', '2027-01-01', '1 s', clock_timestamp(), repeat('x', 257), 1);
SELECT snowflake_registry.claim(token('9'), repeat('x', 257), 2, NULL, '1 s', clock_timestamp(), '', 0);
-- the layout need not be that of the first claim
SELECT snowflake_registry.accept_layout('tiny', 2);
SELECT layout, machine_bits FROM snowflake_registry.status;
SELECT * FROM claim('f', layout => 'mine', machine_bits => 31);
SELECT snowflake_registry.accept_layout('tiny');
SELECT snowflake_registry.accept_layout(machine_bits => 2);
SELECT snowflake_registry.accept_layout(repeat('x', 257), 2);
SELECT snowflake_registry.accept_layout('tiny', 32);
SELECT layout, machine_bits FROM snowflake_registry.status;
-- many machine IDs that were leased, and are free again, are not all read by the next claim
TRUNCATE snowflake_registry.machine;
INSERT INTO snowflake_registry.machine
SELECT id, NULL, '', now() - interval '2 minutes', now() - interval '1 minute', 0, now(), now(), '0' FROM generate_series(0, 20000) id;
SELECT snowflake_registry.accept_layout('wide', 20);
VACUUM ANALYZE snowflake_registry.machine;
BEGIN;
SELECT id, refusal FROM claim('a', layout => 'wide', machine_bits => 20);
SELECT id, refusal FROM claim('b', layout => 'wide', machine_bits => 20);
SELECT seq_tup_read + idx_tup_fetch < 1000 AS few_are_read FROM pg_stat_xact_user_tables WHERE relid = 'snowflake_registry.machine'::regclass;
COMMIT;
-- none is free but one in the middle; and one after all
UPDATE snowflake_registry.machine SET lease_until = now() + interval '1 hour';
DELETE FROM snowflake_registry.machine WHERE machine_id = 12345;
SELECT id, refusal FROM claim('c', layout => 'wide', machine_bits => 20);
SELECT id, refusal FROM claim('d', layout => 'wide', machine_bits => 20);
TRUNCATE snowflake_registry.machine;
SELECT snowflake_registry.accept_layout('tiny', 2);
DROP FUNCTION ns;

-- every object is described
SELECT pg_describe_object(classid, objid, objsubid) AS undescribed FROM pg_depend d
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_registry') AND deptype = 'e'
  AND classid <> 'pg_type'::regclass AND obj_description(objid, classid::regclass::name) IS NULL;

-- restored from a dump in the same database
CREATE TABLE config AS TABLE snowflake_registry.config;
CREATE TABLE machine AS TABLE snowflake_registry.machine;
SET client_min_messages = warning;
DROP EXTENSION snowflake_registry CASCADE;
RESET client_min_messages;
CREATE EXTENSION snowflake_registry;
INSERT INTO snowflake_registry.config TABLE config;
INSERT INTO snowflake_registry.machine TABLE machine;
SELECT machine_id, refusal ~ 'moved or restored' AS fenced
FROM snowflake_registry.claim(repeat('9', 32)::uuid, 'tiny', 2, 3, '1 s', clock_timestamp(), 'mine', 0);

-- it cannot be declared the first one, as it could if the rows had been left behind
\set VERBOSITY terse
SELECT snowflake_registry.declare_first();
\set VERBOSITY default
DROP EXTENSION snowflake_registry;
CREATE EXTENSION snowflake_registry;
SELECT machine_id, refusal ~ 'is new' AS fenced
FROM snowflake_registry.claim(repeat('9', 32)::uuid, 'tiny', 2, 3, '1 s', clock_timestamp(), 'mine', 0);
DROP EXTENSION snowflake_registry;

-- in no schema that others may drop, whatever the search_path was
CREATE SCHEMA first;
SET search_path = first, public;
CREATE EXTENSION snowflake_registry;
RESET search_path;
SELECT snowflake_registry.declare_first();
DROP SCHEMA first CASCADE;
SELECT layout, grants FROM snowflake_registry.status;
CREATE SCHEMA first;
DROP EXTENSION snowflake_registry;
CREATE EXTENSION snowflake_registry SCHEMA first;
DROP SCHEMA first;
DROP EXTENSION IF EXISTS snowflake_registry;

DROP TABLE fence, config, machine, said;
DROP FUNCTION token;
SELECT to_regnamespace('snowflake_registry');
DROP ROLE regress_snowflake_server, "regress_snowflake Watcher", regress_snowflake_nobody;
