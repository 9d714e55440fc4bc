# snowflake_drop_state(): no further ID is issued, nothing of the extension is left on the server, on its standby, or
# for a start with fewer slots; a call that fails, is rolled back or crashes leaves a server that issues no ID twice.
use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use SnowflakeTest;

my $nextval = 'SELECT snowflake_nextval()';
my $drop = 'SELECT snowflake_drop_state()';
my $origins = 'SELECT count(*) FROM pg_replication_origin_status';
my $marks = q{SELECT count(*) FROM pg_parameter_acl};
my $left = q{SELECT (SELECT count(*) FROM pg_replication_origin_status), (SELECT count(*) FROM pg_replication_origin), (SELECT count(*) FROM pg_parameter_acl),
	(SELECT count(*) FROM pg_init_privs WHERE classoid = 'pg_parameter_acl'::regclass)};
my @dropped = ('55000', qr/all generators are closed until the server is restarted/, qr/DETAIL:  The durable state of Snowflake IDs was dropped by snowflake_drop_state\(\)\./);
my @lost = ('55000', qr/the durable state of Snowflake IDs is missing/);
my $server = snowflake_server('main', { init => [ allows_streaming => 1 ] }, 'snowflake.machine_id = 5', 'restart_after_crash = on');
my $setting = major_version($server) >= 18 ? 'max_active_replication_origins' : 'max_replication_slots';

# All processes are started again.
sub crash_a_process
{
	my ($on) = @_;
	my $from = -s $on->logfile;
	my $victim = $on->background_psql('postgres');

	kill 'KILL', $victim->query_safe('SELECT pg_backend_pid()');
	wait_for_log($on, $from, qr/database system is ready to accept connections/);
	eval { $victim->quit };
}

# The statements of docs/migration.md: the first one of the page's part about leaving, and the next step.
my ($leaving) = slurp_file("$FindBin::RealBin/../docs/migration.md") =~ /^## Leaving\n(.*)/ms;
my ($first) = $leaving =~ /^```sql\n(.*?)^```/ms;
my ($removal) = $leaving =~ /^### Removing the extension\n.*?^```sql\n(.*?)^```/ms;
is($first, "$drop;\n", 'the page begins with the call');

# CREATE EXTENSION notes the mark nowhere else.
is($server->safe_psql('postgres', $left), '7|0|1|0', 'CREATE EXTENSION leaves seven numbers and a mark, and no row of pg_init_privs');
$server->safe_psql('postgres', 'CREATE DATABASE other');
$server->safe_psql('postgres', 'CREATE DATABASE third');
$server->safe_psql('other', 'CREATE EXTENSION snowflake');
is($server->safe_psql('other', q{SELECT count(*) FROM pg_init_privs WHERE classoid = 'pg_parameter_acl'::regclass}), '0', 'in any database');

# The role needs to be a superuser.
$server->safe_psql('postgres', 'CREATE ROLE admin; GRANT EXECUTE ON FUNCTION snowflake_drop_state() TO admin');
fails_with($server, "SET ROLE admin; $drop", '42501', qr/must be superuser to drop the durable state/);
is($server->safe_psql('postgres', $left), '7|0|1|0', 'a call that is refused drops nothing');

# A standby, and sessions that hold a batch, one of which holds the horizon back.
$server->backup('backup');
my $standby = snowflake_server('standby', { backup => [ $server, 'backup', has_streaming => 1 ] });
fails_with($standby, $drop, '25006', qr/cannot execute snowflake_drop_state\(\) during recovery/);
my $session = $server->background_psql('postgres', on_error_stop => 0);
$session->query_safe("BEGIN; $nextval; SELECT sno_nextval()");
my $horizon = $server->safe_psql('postgres', 'SELECT snowflake_horizon()');
my $from = -s $server->logfile;
my (undef, undef, $notice) = $server->psql('other', $first);
like($notice, qr/NOTICE:  no IDs are issued in any database until the server is restarted\n.*DETAIL:  IDs with times up to 20.* might have been issued\..*\n.*HINT:  Drop the extension in each database, remove it from "shared_preload_libraries"/, 'the state is dropped');
log_matches($server, $from, qr/LOG:  the durable state of Snowflake IDs was dropped\n.*DETAIL:  IDs with times up to 20/, 'which is logged');
is($server->safe_psql('postgres', $left), '0|0|0|0', 'nothing is left');
$server->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $left), '0|0|0|0', 'nor on the standby');
$session->query($nextval);
like($session->{stderr}, qr/ERROR:  all generators are closed until the server is restarted/, 'a session that holds a batch issues no ID');
$session->quit;

# Nothing writes a number again before the next start, not even after a crash of a process.
for my $when ('after the call', 'after a crash of a process')
{
	fails_with($server, $_, @dropped)
	  for $nextval, 'SELECT sno_nextval()', 'SELECT snowflake_set_floor(now())', 'SELECT sno_set_floor(now())', q{SELECT snowflake_move_back(now() - interval '1 h')},
	  "\\connect other\n$nextval", "\\connect third\nCREATE EXTENSION snowflake", 'BEGIN; DROP EXTENSION snowflake; CREATE EXTENSION snowflake';
	is($server->safe_psql('postgres', $left), '0|0|0|0', "$when: nothing is left");
	if ($when eq 'after the call')
	{
		cmp_ok($server->safe_psql('postgres', 'SELECT snowflake_horizon()'), '>=', $horizon, 'readers can still read');
		is($server->psql('postgres', $drop), 0, 'another call does no harm');
		crash_a_process($server);
	}
}

# Leave: a start without the library, with fewer slots than there were numbers.
$server->safe_psql($_, $removal) for 'postgres', 'other';
$server->stop;
$standby->stop;
$server->append_conf('postgresql.conf', "shared_preload_libraries = ''\n$setting = 2\nmax_wal_senders = 2");
is($server->start(fail_ok => 1), 1, 'the server starts with fewer slots');
is($server->safe_psql($_, $left), '0|0|0|0', "nothing is left for database $_") for 'postgres', 'other';
$server->command_ok([ 'pg_dumpall', '-f', "$scratch/dump" ], 'pg_dumpall');
unlike(slurp_file("$scratch/dump"), qr/snowflake/, 'a dump does not mention it');
$server->stop;

# Stay: without a state no ID is issued before the floor is set.
my $stays = snowflake_server('stays', 'snowflake.machine_id = 5', "snowflake.max_wait = '60s'");
my $last = $stays->safe_psql('postgres', $nextval);
$stays->safe_psql('postgres', $drop);
$stays->restart;
fails_with($stays, $nextval, @lost, qr/HINT:  Use snowflake_set_floor\(\)/);
fails_with($stays, 'SELECT sno_nextval()', '55000', qr/is missing/);
$stays->safe_psql('postgres', 'SELECT snowflake_set_floor(now())');
cmp_ok($stays->safe_psql('postgres', $nextval), '>', $last, 'the server can issue IDs again');

# A crash after the call, before the WAL writer could flush WAL.
kill 'STOP', wal_writer($stays);
$stays->safe_psql('postgres', "SET synchronous_commit = off; $drop");
crash($stays);
$stays->start;
is($stays->safe_psql('postgres', $left), '0|0|0|0', 'a crash does not bring the state back');
fails_with($stays, $nextval, @lost);

# A new CREATE EXTENSION in any database is one of a new server.
$stays->safe_psql('postgres', 'CREATE DATABASE other');
$stays->safe_psql('other', 'CREATE EXTENSION snowflake');
cmp_ok($stays->safe_psql('postgres', $nextval), '>', $last, 'CREATE EXTENSION creates a new state');

# A rollback: the numbers are dropped, and the mark, which is still there, keeps CREATE EXTENSION from making a new state.
$last = $stays->safe_psql('postgres', $nextval);
$stays->safe_psql('postgres', "BEGIN; $drop; ROLLBACK");
is($stays->safe_psql('postgres', $left), '0|0|1|0', 'a rollback leaves the mark');
fails_with($stays, $nextval, @dropped);
$stays->restart;
$stays->safe_psql('other', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
fails_with($stays, $nextval, @lost);
$stays->safe_psql('postgres', 'SELECT snowflake_set_floor(now()), sno_set_floor(now())');
cmp_ok($stays->safe_psql('postgres', $nextval), '>', $last, 'with a floor, IDs are above the earlier ones');

# An error in the middle: one of the numbers is in use.  No part of the state lets a generator be opened.
$last = $stays->safe_psql('postgres', $nextval);
my $promise = $stays->safe_psql('postgres', 'SELECT snowflake_promise_horizon(snowflake_propose_horizon())');
$stays->safe_psql('postgres', q{SET allow_system_table_mods = on; INSERT INTO pg_replication_origin VALUES (65533, 'test')});
my $holder = $stays->background_psql('postgres');
$holder->query_safe(q{SELECT pg_replication_origin_session_setup('test')});
fails_with($stays, $drop, '55006', qr/could not drop replication origin with ID 65533, in use by PID/);
$holder->query_safe('SELECT pg_replication_origin_session_reset()');
$holder->quit;
is($stays->safe_psql('postgres', q{SELECT string_agg(local_id::text, ' ' ORDER BY local_id) FROM pg_replication_origin_status WHERE local_id > 10}), '65528 65533 65534', 'some numbers are dropped');
is($stays->safe_psql('postgres', $marks), '1', 'the mark is left');
fails_with($stays, $nextval, @dropped);
$stays->restart;
fails_with($stays, $nextval, @lost);
fails_with($stays, 'SELECT sno_nextval()', '55000', qr/is missing/);
$stays->safe_psql('postgres', $drop);
is($stays->safe_psql('postgres', $left), '0|0|0|0', 'another call drops the rest, and the row of the catalog');
$stays->restart;

# A CREATE EXTENSION that has begun is waited for.
my $creator = $stays->background_psql('postgres');
$stays->safe_psql('postgres', 'CREATE DATABASE more');
$stays->safe_psql('other', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
my $creating = $stays->background_psql('more');
$creating->query_safe('BEGIN; CREATE EXTENSION snowflake');
$creator->{stdin} .= "$drop;\n";
$creator->{run}->pump_nb;
$stays->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE relation = 'pg_parameter_acl'::regclass AND NOT granted");
is($stays->safe_psql('postgres', $origins), '7', 'the call waits');
$creating->query_safe('COMMIT');
$creating->quit;
$stays->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_replication_origin_status");
$creator->quit;
is($stays->safe_psql('postgres', $left), '0|0|0|0', 'and then drops the state');

# Without slots PostgreSQL does not load the numbers, and so cannot drop them.
$stays->append_conf('postgresql.conf', "$setting = 0\nmax_wal_senders = 0");
$stays->restart;
fails_with($stays, $drop, '53400', qr/could not read the durable state of Snowflake IDs/);
$stays->stop;

# A server with a lease releases it when it stops.  After a crash of a process it does not record its registry again.
my $fleet = Fleet->new;
my ($leased, $crashed) = map { $fleet->server($_, lines => ['restart_after_crash = on']) } 'leased', 'crashed';
for ($leased, $crashed)
{
	$fleet->begins_to_issue($_, $_->name . ' issues IDs with a lease');
	$_->safe_psql('postgres', $drop);
	fails_with($_, $nextval, @dropped);
}
$leased->stop;
is($fleet->registry->safe_psql('postgres', 'SELECT state FROM snowflake_registry.machines ORDER BY machine_id LIMIT 1'), 'released', 'its lease is released when it stops');
crash_a_process($crashed);
$fleet->wait_for_state($crashed, 'refused');
is($crashed->safe_psql('postgres', 'SELECT DISTINCT last_error FROM pg_stat_snowflake'), 'all generators are closed until the server is restarted', 'the registry worker claims nothing after a crash');
is($crashed->safe_psql('postgres', $left), '0|0|0|0', 'and leaves nothing');
$crashed->stop;

done_testing();
