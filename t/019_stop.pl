# After any stop or crash the next ID waits for the time that was reserved, a second on a fast disk, and
# is above all IDs from before.  A session that is terminated while the server is being stopped writes nothing.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock }, 'snowflake.machine_id = 5', "snowflake.max_wait = '50ms'", "snowflake.max_ahead = '10ms'",
	"snowflake.sequence_range = '0-255'", 'restart_after_crash = on');
my %nextval = (Snowflake => 'SELECT snowflake_nextval()', sno => 'SELECT sno_nextval()');
my $durable = q{SELECT string_agg(remote_lsn::text, ' ' ORDER BY local_id) FROM pg_replication_origin_status WHERE local_id IN (65529, 65532, 65533)};

# While the clock stands still, a call succeeds only if the next ID is at most max_ahead ahead of it.
my $now = time + 10;
my %ways = (
	'a stop in mode fast' => sub { $server->stop('fast') },
	'a stop in mode immediate' => sub { $server->stop('immediate') },
	'a crash' => sub { crash($server) },
	'a crash of one process' => sub { kill_process($server, $_[0]) });
for my $way (sort keys %ways)
{
	$clock->freeze($now += 10);
	my $session = $server->background_psql('postgres');
	my %before = map { $_ => $session->query($nextval{$_}) } keys %nextval;
	my $reserved = $server->safe_psql('postgres', $durable);

	$ways{$way}->($session->query('SELECT pg_backend_pid()'));
	$session->{run}->finish;
	$server->start if $way !~ /process/;
	is($server->safe_psql('postgres', $durable), $reserved, "$way keeps the reservations");
	fails_with($server, $nextval{$_}, '53400', qr/could not generate a $_ ID within 50 ms/, qr/can be issued in (?:9[89]\d(?:\.\d)? ms|1 s)\./) for sort keys %nextval;
	$clock->freeze($now + 1);
	cmp_ok($server->safe_psql('postgres', $nextval{$_}), 'gt', $before{$_}, "$way: a second later, a $_ ID above those from before") for sort keys %nextval;
	is($server->safe_psql('postgres', 'SELECT drifts, wall_safe IS NULL FROM sno_snapshot()'), '0|t', 'in the same line of type sno; the other one is unused');
}

# A session that ends, in whatever way, writes nothing.
$clock->freeze($now += 10);
my $session = $server->background_psql('postgres');
$session->query($_) for values %nextval;
my $reserved = $server->safe_psql('postgres', $durable);
write_pid_file_status($server, 'stopping');
$server->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
is($server->safe_psql('postgres', $durable), $reserved, 'a session that is terminated while the server is being stopped writes nothing');
write_pid_file_status($server, 'ready');
$session->{run}->finish;

$server->stop;

done_testing();
