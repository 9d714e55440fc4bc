# A session that is terminated, in whatever way, ends at once, neither holds up others nor is held up
# itself, and writes nothing.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock },
	'snowflake.machine_id = 5', "snowflake.layout = 'epoch=2024-01-01 tick=1s timestamp=32 machine=8 sequence=20'",
	"snowflake.max_wait = '50ms'", "snowflake.max_ahead = '10ms'", 'wal_level = logical', 'max_wal_senders = 2');
$server->safe_psql('postgres', 'CREATE DATABASE other');
$clock->step(10);    # what was reserved before has passed

my $tick = 'SELECT snowflake_nextval() >> 28';
my $durable = q{SELECT remote_lsn - '0/0' FROM pg_replication_origin_status WHERE local_id = 65533};

sub terminate
{
	my ($pid) = @_;

	return $server->safe_psql('other', "SELECT pg_terminate_backend($pid, 20000)");
}

# The tick is not lost: a role that terminates its own sessions must not hold up others.  So it is while
# the server runs, when a write could crash it if there is no room for WAL; and while it is being
# stopped.  A session that is terminated in a transaction does not hold the horizon back.
my $now = $clock->freeze;
my ($session, $reserved);
for my $status ('ready', 'stopping')
{
	write_pid_file_status($server, $status);
	$clock->freeze($now += 10);
	$session = $server->background_psql('postgres');
	my $first = $session->query("BEGIN; $tick");
	$reserved = $server->safe_psql('postgres', $durable);
	is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_snowflake_horizon'), '1', "$status: a session holds the horizon back");
	is(terminate($session->query('SELECT pg_backend_pid()')), 't', "$status: it ends");
	$session->{run}->finish;
	is($server->safe_psql('postgres', $durable), $reserved, "$status: and writes nothing");
	is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_snowflake_horizon'), '0', "$status: nor does it hold the horizon back");
	is(($server->psql('postgres', $tick))[1], $first, "$status: the next ID is of the same tick");
}

# No catalog is read: that can wait for a lock, and a process that exits is not interrupted.  Here the
# session decodes WAL, with a snapshot of the past and with no catalog in its caches.
$clock->freeze($now + 10);
$server->safe_psql('postgres', q{CREATE TABLE decoded (number int);
	SELECT pg_create_logical_replication_slot('slot', 'test_decoding')});
$server->safe_psql('postgres', 'INSERT INTO decoded VALUES (1)');
$session = $server->background_psql('postgres');
$session->query($tick);
$reserved = $server->safe_psql('postgres', $durable);
my $pid = $session->query('SELECT pg_backend_pid()');
my $other = $server->background_psql('postgres');
$other->query('BEGIN; LOCK pg_attribute IN ACCESS EXCLUSIVE MODE');
$session->{stdin} .= "SELECT count(*) FROM pg_logical_slot_peek_changes('slot', NULL, NULL);\n";
$session->{run}->pump_nb;
$server->poll_query_until('other', "SELECT count(*) = 1 FROM pg_locks WHERE pid = $pid AND NOT granted");
is(terminate($pid), 't', 'a session ends while a catalog is locked');
$other->query('ROLLBACK');
$other->quit;
$session->{run}->finish;
is($server->safe_psql('postgres', $durable), $reserved, 'and writes nothing');

# A walsender can end when no further WAL may be written.
$clock->freeze($now + 15);
my $out = '';
my $in = "$tick;\n";
my $walsender = IPC::Run::start([ 'psql', '-XAtq', '-d', $server->connstr('postgres') . ' replication=database' ], '<', \$in, '>', \$out, '2>', '/dev/null');
$walsender->pump until $out =~ /\n/;
$reserved = $server->safe_psql('postgres', $durable);
is(terminate($server->safe_psql('other', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsender'})), 't', 'a walsender ends');
$walsender->finish;
is($server->safe_psql('postgres', $durable), $reserved, 'and writes nothing');

# Without a postmaster, sessions end like in a crash: they leave the shared memory at once.
$clock->freeze($now + 20);
$session = $server->background_psql('postgres');
$session->query($tick);
$reserved = $server->safe_psql('postgres', $durable);
my @children = children(postmaster($server));
$server->kill9;
wait_until(sub { !grep { kill 0, $_ } @children });
$session->{run}->finish;
$server->start;
is($server->safe_psql('postgres', $durable), $reserved, 'a session whose postmaster has died writes nothing');
$server->stop;

done_testing();
