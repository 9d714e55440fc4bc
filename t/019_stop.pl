# A session that is terminated returns the reservation: after a stop of the server the next ID needs
# no wait.  And no ID is issued twice if sessions are terminated while others issue IDs, and the
# server crashes or is stopped then.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock },
	'snowflake.machine_id = 5', "snowflake.max_wait = '50ms'", "snowflake.max_ahead = '10ms'", "snowflake.sequence_range = '0-255'");
$clock->step(2);    # the time that CREATE EXTENSION or the start has reserved has passed

# While the clock stands still, a call succeeds only if the next ID is at most max_ahead ahead of it.
my $now = $clock->freeze;
my $session = $server->background_psql('postgres');
my $before = $session->query('SELECT snowflake_nextval()');
$session->query(q{SELECT sno_nextval()});
$server->stop('fast');
$session->{run}->finish;
$server->start;
my ($status, $after, $error) = $server->psql('postgres', 'SELECT snowflake_nextval()');
is($error, '', 'the next ID after a stop needs no wait');
cmp_ok($after, '>', $before, 'and is above those from before');

# The state of type sno is rounded up to 256 ms.
$clock->freeze($now + 0.256);
is($server->psql('postgres', 'SELECT sno_nextval()'), 0, 'nor does the next sno wait for longer than a quarter of a second');

# A session that disconnects leaves the reservation, as a crash does.  psql can end before the
# session does, which a stop would then terminate.
$clock->freeze($now + 10);
$before = $server->safe_psql('postgres', 'SELECT snowflake_nextval()');
$server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'}) or die;
$server->stop('fast');
$server->start;
fails_with($server, 'SELECT snowflake_nextval()', '53400');

# The returned time is reserved again before an ID is issued, and a crash leaves that reservation.
$clock->freeze($now + 20);
$session = $server->background_psql('postgres');
$session->query('SELECT snowflake_nextval()');
write_pid_file_status($server, 'stopping');
my $durable = q{SELECT remote_lsn - '0/0' FROM pg_replication_origin_status WHERE local_id = 65533};
my $reserved = $server->safe_psql('postgres', $durable);
$server->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
cmp_ok($server->safe_psql('postgres', $durable), '<', $reserved, 'a session that is terminated returns the reservation');
write_pid_file_status($server, 'ready');
$clock->freeze($now + 20.01);    # the rest of the tick is still reserved
$before = $server->safe_psql('postgres', 'SELECT snowflake_nextval()');
cmp_ok($server->safe_psql('postgres', $durable), '>=', $reserved, 'and the next caller reserves it again');
$session->{run}->finish;
crash($server);
$server->start;
fails_with($server, 'SELECT snowflake_nextval()', '53400');
$clock->freeze($now + 21.11);
cmp_ok($server->safe_psql('postgres', 'SELECT snowflake_nextval()'), '>', $before, 'so that a crash repeats nothing');

# Sessions that take IDs, are terminated at any moment, and are replaced; then the server crashes, or
# is stopped, and starts with a clock that has stepped back a little.
$clock->run_on;
$server->append_conf('postgresql.conf', "snowflake.max_wait = '60s'");
$server->reload;
my $writers = 4;
my (@files, @running);
sub start_writer
{
	push @running, start_issuing($server, 'SELECT snowflake_nextvals(2147483647)');
	push @files, $running[-1]{file};
}
for my $round (1 .. 4)
{
	start_writer() for 1 .. $writers;
	write_pid_file_status($server, 'stopping');
	for (1 .. 10)
	{
		my $file = $files[-1];
		wait_until(sub { -e $file && -s $file > 20_000 });
		$server->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE query LIKE '%nextvals%' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 2});
		start_writer() for 1 .. 2;
	}
	if   ($round % 2) { crash($server); }
	else              { $server->stop('fast'); }
	$_->{run}->finish for splice @running;
	$clock->step(-rand(0.3));
	$server->start;
}
@files = grep { -e } @files;
my $last = none_is_issued_twice(4 * 10 * 1000, 'sessions that were terminated', @files);
cmp_ok($server->safe_psql('postgres', 'SELECT snowflake_nextval()'), '>', $last, 'the next ID is above them all');
$server->stop;
unlink @files;

done_testing();
