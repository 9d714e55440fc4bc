# A server that leases its machine ID: over stops, crashes and times without the registry; with a
# fixed machine ID; and the errors when it can issue no ID.
use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use SnowflakeTest;
use TestClock;

my $nextval = 'SELECT snowflake_nextval()';
my $fleet = Fleet->new;
my $registry = $fleet->registry;
my $log;

# Kill a session, and wait until the server has restarted all processes.
sub crash_process
{
	my ($crashed) = @_;
	my $session = IPC::Run::start([ 'psql', '-XAtqd', $crashed->connstr('postgres'), '-c', 'SELECT pg_sleep(600)' ], '2>', '/dev/null');
	my $pid = wait_until(
		sub { $crashed->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active'") }) or die;

	ok(kill_process($crashed, $pid, sub { $session->finish }), 'all processes are restarted');
}

# The state of a machine ID in the registry.
sub held
{
	my ($machine_id) = @_;

	return $registry->safe_psql('postgres',
		"SELECT state FROM snowflake_registry.machines WHERE machine_id = $machine_id");
}

my $main_clock = TestClock->new;
my $server = $fleet->server('main', clock => $main_clock);

# The first ID waits for the lease.
ok($fleet->issues($server), 'a server that has just been started issues IDs');
is($fleet->machine_id($server), '0', 'the smallest machine ID');
is($server->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval()), sno_partition(sno_nextval())'),
	'0|0', 'which is in its IDs');
is($server->safe_psql('postgres', 'CREATE ROLE reader; SET ROLE reader; SELECT snowflake_server_machine_id()'), '0', 'and which all roles can see');
ok($server->poll_query_until('postgres', q{SELECT registry_state = 'held' AND last_error IS NULL AND skew BETWEEN '-5 s' AND '5 s'
	AND lease_from < now() AND lease_until > now() FROM pg_stat_snowflake LIMIT 1}), 'the view shows the lease');
ok($registry->poll_query_until('postgres', 'SELECT machine_id, state FROM snowflake_registry.machines', '0|held'), 'and so does the registry');
like($registry->safe_psql('postgres', 'SELECT holder FROM snowflake_registry.machines'), qr/^main \(.+:\d+\)$/, 'with the name of the server');
wait_for_log($server, 0, qr/LOG:  machine ID 0 was leased to this server for IDs with times from 20.*\n.*DETAIL:  The lease ends at 20.*, and is renewed until the server stops\./, 'the log tells');

# Renewed: the lease continues, and no session notices.
my $until = $fleet->leased($server, 'lease_until');
ok($server->poll_query_until('postgres', "SELECT lease_until > '$until'::timestamptz + interval '2 s' FROM pg_stat_snowflake LIMIT 1"),
	'the lease is renewed');
is($fleet->leased($server, 'lease_from < now() - interval \'2 s\''), 't', 'from where it began');
ok($fleet->issues($server), 'and IDs are issued');

# A clean stop releases the machine ID after the time of the last ID, and the next start need not wait for it.
my $last = $server->safe_psql('postgres', 'SELECT snowflake_timestamp(snowflake_nextval())');
$server->stop;
is($registry->safe_psql('postgres', "SELECT state, lease_until > '$last' FROM snowflake_registry.machines"), 'released|t', 'a stop releases what follows the last ID');
$server->start;
ok($fleet->issues($server), 'a server that was restarted issues IDs');
is($fleet->machine_id($server), '0', 'with the same machine ID');
is($registry->safe_psql('postgres', 'SELECT count(*) FROM snowflake_registry.machines'), '1', 'which was released');

# The registry worker is terminated, and the server is not: the worker claims again.
$fleet->restart_registry_worker($server);
$fleet->wait_for_state($server, 'held');
$fleet->begins_to_issue($server, 'a registry worker that was ended is started again');

# The same twice, without an answer in between.  A session that exists when the machine ID is
# released reports this; a registry that was not reached is not asked again.
$log = -s $server->logfile;
$server->safe_psql('postgres', 'SELECT sno_nextval()');
$registry->stop;
my $seen = '';
my $waiting = IPC::Run::start([ 'psql', '-XAtqd', $server->connstr('postgres'), '-c', <<'SQL' ], '2>', \$seen);
DO $$
BEGIN
	WHILE (SELECT registry_state FROM pg_stat_snowflake LIMIT 1) <> 'released' LOOP
		PERFORM pg_sleep(0.01);
	END LOOP;
	PERFORM snowflake_nextval();
END
$$
SQL
$server->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'DO %'") or die;
for (1 .. 2)
{
	pause_postmaster($server) if $_ == 1;    # it would start another registry worker after a second
	my $ended = $fleet->end_registry_worker($server);

	if ($_ == 1)
	{
		$waiting->finish;
		resume_postmaster($server);
	}
	wait_until(sub { $fleet->registry_worker($server) !~ /^(0|$ended)$/ });
	$fleet->wait_for_state($server, 'unreachable');
}
like($seen, qr/could not generate a Snowflake ID after the release of the machine ID/, 'a call after the machine ID was released fails');
cmp_ok(scalar(() = substr(slurp_file($server->logfile), $log) =~ /could not release the lease/g), '<=', 1,
	'a registry that is known to be away is not asked to release it');

# Without a lease, type sno does not follow a clock that steps back, and its calls fail as others do.
$main_clock->step(-3600);
fails_with($server, "SET statement_timeout = '20s'; SELECT sno_nextval()", '55000', qr/could not generate a sno ID while the registry is unreachable/);
$main_clock->step(3600);
$registry->start;
$fleet->begins_to_issue($server, 'a registry worker that was ended twice leases again');

# A crash of one process, while the registry is away: the machine ID is kept.
$fleet->wait_for_state($server, 'held');
my $long = $fleet->server('long', lines => [ 'restart_after_crash = on', 'snowflake.registry_lease = 600' ]);
ok($fleet->issues($long), 'another server issues IDs');
is($fleet->machine_id($long), '1', 'with another machine ID');
$server->safe_psql('postgres', 'CREATE TABLE issued (id bigint DEFAULT snowflake_nextval(), s sno DEFAULT sno_nextval())');
$log = -s $server->logfile;
$registry->stop;
my $before = $fleet->leased($long, 'machine_id, lease_from, lease_until');
crash_process($long);
is($fleet->leased($long, 'machine_id, lease_from, lease_until'), $before, 'the lease is kept over it');
ok($fleet->issues($long), 'and IDs are issued without the registry');

# A short lease ends while a session issues IDs: the clock of the server is stopped shortly before
# the end, until the session has been issued an ID at that time.
my $almost = $fleet->leased($server, 'extract(epoch FROM lease_until)') - 0.05;
$main_clock->freeze($almost);
my $inserter = IPC::Run::start([ 'psql', '-XAtqd', $server->connstr('postgres'), '-c',
		'DO $$ BEGIN LOOP INSERT INTO issued SELECT FROM generate_series(1, 100); COMMIT; END LOOP; END $$' ], '2>', '/dev/null');
$server->poll_query_until('postgres', "SELECT max(snowflake_timestamp(id)) > lease_until - interval '100 ms' FROM issued, pg_stat_snowflake WHERE generator = 'bigint' GROUP BY lease_until") or die;
$main_clock->run_on;
$inserter->finish;
$fleet->wait_for_state($server, 'unreachable');
$server->poll_query_until('postgres', 'SELECT lease_until < clock_timestamp() FROM pg_stat_snowflake LIMIT 1');
fails_with($server, $nextval, '55000', qr/could not generate a Snowflake ID while the registry is unreachable/,
	qr/DETAIL:  The registry has been unreachable since 20\d\d-.*  Machine ID 0 is leased to this server for IDs with times before 20\d\d-/, qr/HINT:  See last_error/);
fails_with($server, 'SELECT sno_nextval()', '55000', qr/could not generate a sno ID while the registry is unreachable/);
is($server->safe_psql('postgres', "SELECT max(snowflake_timestamp(id)) < lease_until, max(sno_timestamp(s)) < lease_until, max(snowflake_timestamp(id)) > lease_until - interval '100 ms' FROM issued, pg_stat_snowflake WHERE generator = 'bigint' GROUP BY lease_until"),
	't|t|t', 'nothing was issued at or after its end');
like($fleet->leased($server, 'last_error'), qr/connection to server .* failed/, 'the view has the reason');
is(scalar(() = substr(slurp_file($server->logfile), $log) =~ /could not reach the registry of machine IDs/g), 1, 'which is logged once');
$main_clock->set(0);
$registry->start;
$fleet->begins_to_issue($server, 'when the registry is back, IDs are issued again');
$fleet->wait_for_state($long, 'held');
is($fleet->leased($long, 'machine_id, lease_from'), ($before =~ s/\|[^|]*$//r), 'the long lease continues');

# A generator that was not used since such a crash has no record of the IDs that it had issued
# before: then nothing is released.
crash_process($long);
$fleet->wait_for_state($long, 'held');
$long->stop;
is($registry->safe_psql('postgres', "SELECT state, lease_until > now() + interval '5 minutes' FROM snowflake_registry.machines WHERE machine_id = 1"),
	'held|t', 'a lease of which it is not known how far it was used is not released');
$long->start;
$fleet->begins_to_issue($long, 'the server is granted another one');

# A crash of the whole server: the machine ID is not used again while the lease lasts.
crash($long);
$long->start;
$fleet->begins_to_issue($long, 'a server that crashed issues IDs');
is($fleet->machine_id($long), '3', 'with another machine ID');
is(held(2), 'held', 'the previous one is not granted again');
$registry->safe_psql('postgres', "SELECT snowflake_registry.declare_dead(1, '2020-01-01'), snowflake_registry.declare_dead(2, '2020-01-01')");

# snowflake.machine_id and a registry: that machine ID is leased.
my $fixed = $fleet->server('fixed', lines => [ 'snowflake.machine_id = 77', 'snowflake.registry_lease = 600' ]);
ok($fleet->issues($fixed), 'a server with a machine ID issues IDs');
is($fleet->machine_id($fixed), '77', 'with that one');
$fixed->restart;
ok($fleet->issues($fixed), 'after a restart as well');
is($fleet->machine_id($fixed), '77', 'with the same one');
crash($fixed);
$fixed->start;
$fleet->wait_for_state($fixed, 'refused');
fails_with($fixed, $nextval, '55000', qr/could not generate a Snowflake ID without a lease of a machine ID/, qr/DETAIL:  The server retries automatically\.  The last request failed: machine ID 77 is taken until 20\d\d-/);
my $taken = $registry->safe_psql('postgres', 'SELECT lease_until FROM snowflake_registry.machines WHERE machine_id = 77');
like($fleet->leased($fixed, 'last_error'), qr/\Q@{[ substr($taken, 0, 19) ]}\E/, 'until the end of its old lease');
$fixed->safe_psql('postgres', 'CREATE ROLE app');
my (undef, undef, $refused) = $fixed->psql('postgres', "SET ROLE app; $nextval");
like($refused, qr/DETAIL:  The server retries automatically\.  A machine ID might be available after \Q@{[ substr($taken, 0, 19) ]}\E/, 'which all roles can see');
unlike($refused, qr/taken|fixed/, 'but not the holder');
configure($fixed, 'snowflake.registry_lease', 30);
$registry->safe_psql('postgres', 'SELECT snowflake_registry.declare_dead(77, clock_timestamp())');
$fleet->begins_to_issue($fixed, 'declared dead, the old holder is not waited for');
is($fixed->safe_psql('postgres', 'SHOW snowflake.registry_lease'), '30s', 'a lease of its own');
configure($fixed, 'snowflake.registry_lease', 0);
ok($fixed->poll_query_until('postgres', "SELECT lease_until BETWEEN now() + interval '35 s' AND now() + interval '65 s' FROM pg_stat_snowflake LIMIT 1"),
	'else for a minute');

# A lease is valid when it is committed, not when the registry's answer is read.
# The message has a byte that is not valid in every encoding.
$registry->safe_psql('postgres', q{CREATE DATABASE any_bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C'});
$fleet->make_registry('any_bytes');
$registry->safe_psql('any_bytes', <<'SQL');
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE E'not\n\tcommitted \xe9'; END $$;
CREATE CONSTRAINT TRIGGER fail AFTER INSERT OR UPDATE ON snowflake_registry.machine DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail();
SQL
my $uncommitted = $fleet->server('uncommitted',
	lines => [ "snowflake.registry = 'host=" . $registry->host . ' port=' . $registry->port . " dbname=any_bytes'" ]);
$fleet->wait_for_state($uncommitted, 'refused');
is($fleet->leased($uncommitted, 'machine_id, lease_until, last_error'), '||not  committed ?', 'an answer whose commit fails is none, and its message is plain text');
ok(!$fleet->issues($uncommitted), 'and no ID is issued');
# An answer that is too late is ignored as well.
$registry->safe_psql('any_bytes', 'CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(8); RETURN NULL; END $$');
ok($uncommitted->poll_query_until('postgres', "SELECT (registry_state, last_error) = ('unreachable', 'the registry did not answer in time') FROM pg_stat_snowflake LIMIT 1"),
	'an answer that is late');
$registry->safe_psql('any_bytes', 'DROP FUNCTION fail() CASCADE');
$fleet->begins_to_issue($uncommitted, 'one that is committed is one');

# A session waits for the first answer, at most for snowflake.max_wait.  The registry accepts no
# client, and the registry worker waits.
pause_postmaster($registry);
my $first = $fleet->server('first',
	lines => [ "snowflake.registry = 'host=" . $registry->host . ' port=' . $registry->port . " dbname=postgres connect_timeout=600'" ]);
fails_with($first, "SET snowflake.max_wait = '10ms'; $nextval", '55000', qr/could not generate a Snowflake ID before the first answer of the registry/,
	qr/HINT:  Try again later\.  To wait longer, increase "snowflake\.max_wait"/);
my $waited = '';
my $session = IPC::Run::start([ 'psql', '-XAtqd', $first->connstr('postgres'), '-c', "SET snowflake.max_wait = '${PostgreSQL::Test::Utils::timeout_default}s'", '-c', 'SELECT snowflake_nextval() > 0' ], '>', \$waited);
$first->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND query LIKE '%snowflake_nextval%'") or die;
resume_postmaster($registry);
$session->finish;
is($waited, "t\n", 'and then it is issued an ID');
$first->stop;

# As docs/scale-out.md says: a role that can only lease.
$registry->safe_psql('postgres', 'CREATE DATABASE documented');
my $page = slurp_file("$FindBin::RealBin/../docs/scale-out.md");
my ($steps) = $page =~ /^## Setting up a registry\n(.*?)^5\. /ms;
my $recipe = join '', $steps =~ /<!-- on: registry -->\n\h*```sql\n(.*?)^\h*```/msg;
$registry->safe_psql('documented', $recipe);
like($page, qr/^## Setting up a registry\n\n[^\n]*set by hand/m, 'the page begins with the warning about numbers set by hand');
like($registry->safe_psql('documented', q{SELECT obj_description('snowflake_registry.declare_first()'::regprocedure)}), qr/no server has a number set by hand/, 'which the comment of the function has as well');
my $documented = $fleet->server('documented', lines => [
		"snowflake.registry = 'host=" . $registry->host . ' port=' . $registry->port . " dbname=documented user=snowflake_server'",
		'snowflake.registry_lease = 0' ]);
my ($status, $id) = $documented->psql('postgres', $nextval);
is($status, 0, 'a server issues IDs that leases by a role without other rights');
is($registry->safe_psql('documented', "SELECT state FROM snowflake_registry.machines ORDER BY state"), "held", 'from the registry of the documents');
is($documented->safe_psql('postgres', 'SELECT snowflake_server_machine_id()'), '79', 'where the numbers set by hand are reserved');
is($documented->safe_psql('postgres', "SELECT lease_until > now() + interval '59 minutes' FROM pg_stat_snowflake LIMIT 1"), 't', 'for an hour, by default');
fails_with($registry, '\\connect "dbname=documented user=snowflake_server"' . "\nSELECT * FROM snowflake_registry.machine", '42501', qr/permission denied/);
$documented->stop;

# As the same page says: a number that was set by hand is reserved before any server uses the registry.
my $hand = $fleet->server('hand', lines => [ "snowflake.registry = ''", 'snowflake.machine_id = 0' ]);
ok($fleet->issues($hand), 'a server whose number was set by hand issues IDs');
$registry->safe_psql('postgres', 'CREATE DATABASE by_hand');
$registry->safe_psql('by_hand', 'CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.configure(reserved => 1); SELECT snowflake_registry.declare_first()');
my $by_hand = "snowflake.registry = 'host=" . $registry->host . ' port=' . $registry->port . " dbname=by_hand'";
my $beside = $fleet->server('beside', lines => [$by_hand]);
$fleet->begins_to_issue($beside, 'a server that leases any number issues IDs beside it');
is($fleet->machine_id($beside), '1', 'with another number');
$hand->append_conf('postgresql.conf', $by_hand);
$hand->restart;
$fleet->begins_to_issue($hand, 'the first server leases its own number');
is($fleet->machine_id($hand), '0', 'which no other server was granted');
$_->stop for $hand, $beside;

# A new registry that was not declared the first one.
$registry->safe_psql('postgres', 'CREATE DATABASE undeclared');
$registry->safe_psql('undeclared', 'CREATE EXTENSION snowflake_registry');
my $undeclared = $fleet->server('undeclared',
	lines => [ "snowflake.registry = 'host=" . $registry->host . ' port=' . $registry->port . " dbname=undeclared'" ]);
$fleet->wait_for_state($undeclared, 'refused');
wait_for_log($undeclared, 0, qr/LOG:  could not lease a machine ID from the registry: the registry is new, .*\n.*DETAIL:  No ID is issued until the registry grants a lease\.  The server retries/, 'a refusal is logged with its reason');
fails_with($undeclared, $nextval, '55000', qr/could not generate a Snowflake ID without a lease of a machine ID/,
	qr/DETAIL:  The server retries automatically\.  The last request failed: the registry is new, and snowflake_registry\.declare_first\(\) was not called: no new lease begins before 20/);
$registry->safe_psql('undeclared', 'SELECT snowflake_registry.declare_first()');
$undeclared->reload;
$fleet->wait_for_state($undeclared, 'held');
is($undeclared->psql('postgres', $nextval), 0, 'a server leases from a registry that is declared the first one');
$undeclared->stop;

# The machine ID changes to a smaller one in the middle of a tick, and of a session: its IDs still
# increase.
my $another = "'00000000-0000-0000-0000-000000000001', '%s', 10, NULL, '59 min', clock_timestamp(), '', 0";
my $ticks = 'epoch=2024-01-01T00:00:00Z tick=1s timestamp=33 machine=10 sequence=20';
$registry->safe_psql('postgres', 'CREATE DATABASE slow');
$fleet->make_registry('slow');
is($registry->safe_psql('slow', sprintf("SELECT machine_id FROM snowflake_registry.claim($another)", $ticks)), '0', 'another holder has machine ID 0');
my $slow = $fleet->server('slow', lines => [ "snowflake.layout = '$ticks'",
		"snowflake.registry = 'host=" . $registry->host . ' port=' . $registry->port . " dbname=slow'" ]);
is($slow->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval())'), '1', 'a server has machine ID 1');
$registry->safe_psql('slow', "SELECT snowflake_registry.release('00000000-0000-0000-0000-000000000001', '2020-01-01', 1), snowflake_registry.declare_dead(1)");
is($slow->psql('postgres', <<'SQL'), 0, 'a session continues with machine ID 0, and its IDs increase');
DO $$
DECLARE
	id bigint;
	last bigint := 0;
BEGIN
	LOOP
		id := snowflake_nextval();
		ASSERT id > last, format('%s after %s', id, last);
		last := id;
		PERFORM pg_sleep(0.001);	-- so as not to use up the tick
		EXIT WHEN snowflake_machine_id(id) = 0;
	END LOOP;
END
$$
SQL
$slow->stop;

# A generator that is further ahead of the clock than the lease reaches.
my $far = $fleet->server('far', lines => [ "snowflake.max_ahead = '1min'", "snowflake.sequence_range = '0-0'" ]);
$fleet->wait_for_state($far, 'held');
fails_with($far, 'SET snowflake.max_wait = 0; SELECT count(*) FROM (SELECT snowflake_nextval() FROM generate_series(1, 100000)) i', '55000',
	qr/could not generate a Snowflake ID within the lease of the machine ID/, qr/DETAIL:  Machine ID \d+ is leased to this server for IDs with times before 20/);
$far->stop;

# Without bits for a machine ID there is one server that issues IDs at a time.
my @layout = ("snowflake.layout = 'epoch=2024-01-01T00:00:00Z tick=1ms timestamp=41 sequence=12'");
$registry->safe_psql('postgres', 'CREATE DATABASE single');
$fleet->make_registry('single');
push @layout, "snowflake.registry = 'host=" . $registry->host . ' port=' . $registry->port . " dbname=single'";
my $single = $fleet->server('single', lines => [ @layout, 'snowflake.machine_id = 9' ]);
is($single->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval()), snowflake_server_machine_id()'), '0|0', 'a layout without machine bits');
my $second = $fleet->server('second', lines => \@layout);
$fleet->wait_for_state($second, 'refused');
fails_with($second, $nextval, '55000', qr/could not generate a Snowflake ID without a lease of a machine ID/);
$single->stop;
$fleet->wait_for_state($second, 'held');
is($second->psql('postgres', $nextval), 0, 'passes to another server');
$second->stop;

# No process for the registry worker.
my $alone = $fleet->server('alone', lines => [ 'max_worker_processes = 0', "snowflake.max_wait = '100ms'" ]);
fails_with($alone, $nextval, '55000', qr/could not generate a Snowflake ID before the first answer of the registry/,
	qr/DETAIL:  The registry worker of this server is not running/, qr/HINT:  Check the server log, "max_worker_processes"/);
is($alone->safe_psql('postgres', 'SELECT snowflake_server_machine_id() IS NULL'), 't', 'there is no machine ID before the first lease');
fails_with($alone, 'SELECT sno_at(now(), 0)', '55000', qr/could not generate a sno ID before the first answer of the registry/);
$alone->stop;

# A machine ID that is not a valid partition.
$registry->safe_psql('postgres', 'CREATE DATABASE wide');
$fleet->make_registry('wide');
my $wide = $fleet->server('wide', lines => [ 'snowflake.machine_id = 65536',
		"snowflake.layout = 'epoch=2024-01-01T00:00:00Z tick=1ms timestamp=41 machine=20 sequence=2'",
		"snowflake.registry = 'host=" . $registry->host . ' port=' . $registry->port . " dbname=wide'" ]);
is($wide->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval())'), '65536', 'a machine ID of more than 16 bits');
fails_with($wide, 'SELECT sno_nextval()', '22023', qr/machine ID 65536 is too large for a partition of type sno/, qr/HINT:  With a registry, use a layout with at most 16 bits/);
$wide->stop;

# Settings that do not fit each other.
configure($fixed, 'snowflake.sno_partition', 5);
fails_with($fixed, 'SELECT sno_nextval()', '22023', qr/"snowflake\.sno_partition" cannot be set together with "snowflake\.registry"/);
fails_with($fixed, 'SELECT sno_at(now(), 0)', '22023', qr/"snowflake\.sno_partition" cannot be set together with "snowflake\.registry"/);
$fixed->safe_psql('postgres', 'ALTER SYSTEM RESET snowflake.sno_partition');
fails_with($fixed, "ALTER SYSTEM SET snowflake.registry = 'host=x nonsense'", '22023', qr/invalid value for parameter "snowflake\.registry"/, qr/DETAIL:  missing "=" .* string\nHINT:  Use a libpq connection string/);
$fixed->append_conf('postgresql.conf', "snowflake.layout = 'sonyflake'\nsnowflake.machine_id = 77");
$fixed->restart;
$fixed->safe_psql('postgres', 'SELECT snowflake_accept_layout()');
$fleet->wait_for_state($fixed, 'refused');
fails_with($fixed, $nextval, '55000', qr/could not generate a Snowflake ID without a lease of a machine ID/, qr/DETAIL:  .*layout/);
(undef, undef, $refused) = $fixed->psql('postgres', "SET ROLE app; $nextval");
like($refused, qr/DETAIL:  The server retries automatically\.$/m, 'no reason for other roles if no time is known');
$fixed->append_conf('postgresql.conf', "snowflake.layout = 'twitter'\nsnowflake.sequence_range = '0-9999'");
$fixed->restart;
fails_with($fixed, $nextval, '22023', qr/sequence range "0-9999" does not fit/);
$fleet->wait_for_state($fixed, 'refused');
is($fleet->leased($fixed, 'last_error'), '"snowflake.machine_id" or "snowflake.sequence_range" of this server does not fit its layout', 'and no lease is asked for');
$fixed->append_conf('postgresql.conf', "snowflake.sequence_range = ''\nsnowflake.registry = 'host=x nonsense'");
$fixed->stop;
$log = -s $fixed->logfile;
is($fixed->start(fail_ok => 1), 0, 'a malformed connection string keeps the server from starting');
log_matches($fixed, $log, qr/invalid value for parameter "snowflake\.registry"\n.*DETAIL:  missing "=" .* string\n.*HINT:  Use a libpq connection string/, 'which the log says');

# A floor before the lease changes nothing.  The generator cannot be moved back to a time before the
# lease, in which another server can have had the machine ID.
my (undef, undef, $kept) = $server->psql('postgres', "SELECT snowflake_set_floor('2020-01-01')");
like($kept, qr/NOTICE:  the floor of Snowflake IDs was not changed/, 'a floor before the lease changes nothing');
fails_with($server, "SELECT ${_}_move_back('2020-01-01')", '22023', qr/cannot move the generator of (?:Snowflake|sno) IDs back to a time before the lease of this server/,
	qr/DETAIL:  The lease begins at 20/)
  for 'snowflake', 'sno';
$fleet->begins_to_issue($server, 'and IDs are still issued');

# Moved back within the lease, the generator is closed until a restart, whatever the registry worker
# does: it renews the lease, and it releases it and claims another one.  After a crash and after a stop,
# which releases the lease as well, IDs begin at the instant, or where the next lease begins.
my $back = $fleet->server('back', lines => ['snowflake.registry_lease = 600']);
my @moved_back = ('55000', qr/the generator of Snowflake IDs is closed until the server is restarted/, qr/HINT:  Restart the server\./);
$fleet->begins_to_issue($back, 'a server issues IDs');
for my $way ('crash', 'stop')
{
	my ($instant) = $back->safe_psql('postgres', q{SELECT snowflake_set_floor(now() + interval '100 s');
		SELECT date_trunc('milliseconds', now() + interval '1 s')}) =~ /(.+)\z/;

	is($back->psql('postgres', "SELECT snowflake_move_back('$instant')"), 0, "before a $way it is moved back");
	fails_with($back, $nextval, @moved_back);
	my $renewed = $fleet->leased($back, 'lease_until');
	$back->reload;
	$back->poll_query_until('postgres', "SELECT lease_until > '$renewed'::timestamptz FROM pg_stat_snowflake LIMIT 1");
	fails_with($back, $nextval, @moved_back);
	is($back->psql('postgres', 'SELECT sno_nextval()'), 0, 'the generator of type sno is open');
	$fleet->restart_registry_worker($back);
	$fleet->wait_for_state($back, 'held');
	fails_with($back, $nextval, @moved_back);
	if   ($way eq 'crash') { crash($back); }
	else                   { $back->stop; }
	$back->start;
	$fleet->begins_to_issue($back, 'after a restart it issues IDs');
	is($fleet->leased($back, "floor >= '$instant' AND floor <= now()"), 't', 'from the instant on');
}
$back->stop;

# The connection string, which can contain a password, is not shown to all roles.
$server->safe_psql('postgres', 'CREATE ROLE ordinary');
fails_with($server, 'SET ROLE ordinary; SHOW snowflake.registry', '42501', qr/snowflake\.registry/);

# Without a registry there is no registry worker.
my $has_worker = qr/DEBUG:  starting background worker process "snowflake registry worker"/;
my $plain = snowflake_server('plain', 'snowflake.machine_id = 500', 'log_min_messages = debug1');
is($plain->safe_psql('postgres', "SELECT lease_from, lease_until, registry_state, last_error, skew FROM pg_stat_snowflake WHERE generator = 'sno'"),
	'||||', 'a server without a registry has no lease');
unlike(slurp_file($plain->logfile), $has_worker, 'and no registry worker');
is($plain->safe_psql('postgres', 'SELECT snowflake_server_machine_id()'), '500', 'its machine ID is the configured one before the first ID');
configure($plain, 'snowflake.machine_id', 501);
is($plain->safe_psql('postgres', 'SELECT snowflake_server_machine_id(), snowflake_machine_id(snowflake_nextval())'), '501|501', 'which the call does not fix');
configure($plain, 'snowflake.machine_id', 502);
is($plain->safe_psql('postgres', 'SELECT snowflake_server_machine_id(), snowflake_machine_id(snowflake_nextval())'), '501|501', 'as the first ID does');
configure($plain, 'snowflake.machine_id', -1);
$plain->append_conf('postgresql.conf', 'snowflake.machine_id = -1');
$plain->restart;
is($plain->safe_psql('postgres', 'SELECT snowflake_server_machine_id() IS NULL'), 't', 'or null if none is configured');
like(slurp_file($server->logfile), $has_worker, 'as others have');
$plain->stop;

$fleet->check(9000, 'all servers');
done_testing();
