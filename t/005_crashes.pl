# Crashes: eight sessions take IDs without committing anything, all processes of
# the server are killed, or one backend is, the clock steps back, and the server
# starts again.  Twenty times, or as many as SNOWFLAKE_TEST_SCALE leaves of them, but at least
# four.  No ID that a client has seen is issued twice.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $crashes = scaled(20, 4);
my $writers = 8;

my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock }, 'snowflake.machine_id = 5', "snowflake.max_wait = '60s'", 'restart_after_crash = on');

my @files;
for my $round (1 .. $crashes)
{
	# in transactions that never end
	my @running = map { start_issuing($server, 'SELECT snowflake_nextvals(2147483647)') } 1 .. $writers;

	push @files, map { $_->{file} } @running;
	for my $writer (@running)
	{
		wait_until(sub { -e $writer->{file} && -s $writer->{file} > 20_000 });
	}
	if ($round % 4 == 0)
	{
		my $victim = $server->safe_psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1");
		kill_process(
			$server, $victim,
			sub {
				$_->{run}->finish for @running;
				$clock->step(-rand(0.5));
			}) or die 'no session to kill';
	}
	else
	{
		crash($server);
		$_->{run}->finish for @running;
		$clock->step(-rand(0.5));
		$server->start;
	}
}

my $last = none_is_issued_twice($crashes * $writers * 1000, 'all sessions', @files);

# The server continues above all of them.
is($server->safe_psql('postgres', "SELECT snowflake_nextval() > $last"), 't', 'and the next one is above them all');
$server->stop;
unlink @files;

done_testing();
