# The registry of machine IDs under load: leases of one machine ID that different servers hold never
# overlap, while 40 sessions claim, renew, release and vanish, with clocks that are off; and the
# effects of concurrent transactions on each other.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $registry = snowflake_server('registry', { registry => 1 }, 'max_connections = 60');
$registry->safe_psql('postgres', 'CREATE DATABASE busy');
$registry->safe_psql('busy', 'CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.declare_first()');

#
# Load.  Some sessions roll back after they have read an answer; most have clocks that are off
# by seconds, some by almost an hour, and some by more.  A lease comprises all that a token was
# granted until its release.
#
my $calls = 60;

$registry->safe_psql('busy', <<'SQL');
SELECT snowflake_registry.configure(max_skew => '1 hour');
CREATE ROLE server LOGIN;
SELECT snowflake_registry.admit('server');
CREATE TABLE granted (token uuid, lease integer, machine_id integer, starts timestamptz, ends timestamptz, number bigint);
CREATE INDEX ON granted (token);
CREATE TABLE refused (seconds_off integer, refusal text);
GRANT SELECT, INSERT, UPDATE ON granted, refused TO server;

CREATE PROCEDURE serve(seconds_off integer, calls integer) LANGUAGE plpgsql AS $$
<<server>>
DECLARE
	token uuid := gen_random_uuid();
	lease integer := 0;
	known bigint := 0;
	off CONSTANT interval := seconds_off * interval '1 s';
	held snowflake_registry.answer;
	answer snowflake_registry.answer;
	used timestamptz;
BEGIN
	FOR i IN 1..calls LOOP
		IF held IS NULL OR random() < 0.2 THEN
			answer := snowflake_registry.claim(token, 'busy', 10, CASE WHEN random() < 0.2 THEN (random() * 100)::integer END,
				random() * interval '20 ms' + interval '1 us', clock_timestamp() + off, '', known);
		ELSE
			answer := snowflake_registry.renew(token, held.machine_id, held.lease_from, held.lease_until,
				random() * interval '20 ms' + interval '1 us', clock_timestamp() + off, '', known);
		END IF;
		IF random() < 0.05 THEN
			ROLLBACK;
			CONTINUE;
		END IF;
		IF answer.refusal IS NULL THEN
			INSERT INTO granted VALUES (token, lease, answer.machine_id, answer.lease_from, answer.lease_until, answer.lease_number);
			held := answer;
			known := answer.lease_number;
		ELSE
			INSERT INTO refused VALUES (seconds_off, answer.refusal);
			held := NULL;
		END IF;
		COMMIT;

		CONTINUE WHEN held IS NULL OR random() < 0.5;
		IF random() < 0.5 THEN
			used := held.lease_from + random() * (held.lease_until - held.lease_from);
			PERFORM snowflake_registry.release(token, used, known);
			UPDATE granted g SET ends = least(ends, used) WHERE g.token = server.token AND g.lease = server.lease
				AND machine_id = held.machine_id AND starts = held.lease_from;
			COMMIT;
		ELSE
			token := gen_random_uuid();
		END IF;
		lease := lease + 1;
		held := NULL;
	END LOOP;
END
$$;
SQL

my @sessions = map {
	my $off = $_ < 2 ? 3590 : $_ < 4 ? -3590 : $_ == 4 ? 3700 : $_ == 5 ? -3700 : $_ - 20;
	my $messages = '';
	{
		messages => \$messages,
		process => IPC::Run::start(
			[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-U', 'server', '-d', $registry->connstr('busy'), '-c',
				"CALL serve($off, $calls)" ],
			'<', \undef, '>', \my $output, '2>', \$messages) };
} 0 .. 39;
my $failed = 0;
for (@sessions)
{
	next if $_->{process}->finish && ${ $_->{messages} } eq '';
	$failed++;
	diag(${ $_->{messages} });
}
is($failed, 0, '40 sessions end without an error');
my $leases = 'SELECT token, lease, machine_id, starts, max(ends) AS ends FROM granted GROUP BY 1, 2, 3, 4 HAVING max(ends) > starts';
my ($grants, $tokens, $most) = split /\|/, $registry->safe_psql('busy', qq{
	SELECT count(*), count(DISTINCT token), (SELECT max(c) FROM (SELECT count(DISTINCT token) AS c FROM granted GROUP BY machine_id) m)
	FROM granted});
cmp_ok($grants, '>=', 500, "$grants leases for $tokens servers");
cmp_ok($most, '>=', 4, "$most servers had the same machine ID, one after another");
is( $registry->safe_psql('busy', qq{
		SELECT count(*) FROM (
			SELECT starts, max(ends) OVER (PARTITION BY machine_id ORDER BY starts, ends
				ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
			FROM ($leases) s) s
		WHERE starts < before}),
	'0', 'no two leases of a machine ID overlap');
is($registry->safe_psql('busy', 'SELECT count(*) = count(DISTINCT number), max(number) = (SELECT last_lease_number FROM snowflake_registry.status) FROM granted'),
	't|t', 'leases are numbered');
is( $registry->safe_psql('busy', q{SELECT string_agg(DISTINCT seconds_off::text, ' ') FROM refused WHERE refusal ~ 'the clock is'}),
	'-3700 3700', 'clocks that are off by more than an hour are refused');
is($registry->safe_psql('busy', q{SELECT count(*) > 0 FROM refused WHERE refusal ~ 'is taken until'}), 't', 'taken machine IDs are refused');
is($registry->safe_psql('busy', q{SELECT count(*) FROM refused WHERE refusal !~ 'the clock is|taken until|not held under'}), '0', 'and nothing else is');

#
# Transactions
#
sub claim_of
{
	my ($token) = @_;

	return "SELECT machine_id FROM snowflake_registry.claim('$token', 'busy', 10, 1000, '1 minute', clock_timestamp(), 'late', 0);";
}

# Two claims of a machine ID by tokens that end with 1 and 2, of which the first one ends
# its transaction when the second one waits for it.  Returns the leases that they were granted.
sub race
{
	my ($tokens, $end) = @_;
	my ($first, $second) = ('0' x 30 . $tokens . '1', '0' x 30 . $tokens . '2');
	my $wait = q{DO $$ BEGIN FOR i IN 1..1000 LOOP EXIT WHEN EXISTS (SELECT FROM pg_locks WHERE NOT granted); PERFORM pg_sleep(0.01); END LOOP; END $$};
	my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $registry->connstr('busy'),
			'-c', 'BEGIN', '-c', claim_of($first), '-c', $wait, '-c', $end ], '<', \undef, '>', \my $got_first);

	$registry->poll_query_until('busy',
		q{SELECT count(*) > 0 FROM pg_locks WHERE relation = 'snowflake_registry.machine'::regclass AND mode = 'RowExclusiveLock'});
	my $got_second = $registry->safe_psql('busy', claim_of($second));
	$session->finish;
	$registry->safe_psql('busy', "SELECT snowflake_registry.release(token::uuid, '-infinity', 0) FROM unnest('{$first, $second}'::text[]) token");
	return "$got_first$got_second";
}

is(race('a', 'COMMIT'), "1000\n", 'a claim waits for one that commits late, and is refused');
is(race('b', 'ROLLBACK'), "1000\n1000", 'and is granted after one that rolls back');

for my $level ('REPEATABLE READ', 'SERIALIZABLE')
{
	my $other = claim_of('000000000000000000000000000000c1');
	my ($status, $stdout, $stderr) = $registry->psql('busy', <<"SQL");
\\set VERBOSITY verbose
BEGIN ISOLATION LEVEL $level;
SELECT count(*) FROM pg_class \\gset
\\! psql -XAtq -d "@{[$registry->connstr('busy')]}" -c "$other"
@{[claim_of('000000000000000000000000000000c2')]}
SQL
	is($stdout, '1000', "$level: another session claims");
	like($stderr, qr/ERROR:  40001/, "$level: one that cannot see it fails");
}
$registry->stop;

done_testing();
