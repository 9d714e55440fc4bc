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

# A session that takes IDs until it is killed, and a file of the IDs that it has
# received.  The IDs are fetched a thousand at a time, inside a transaction that never
# ends.
sub start_writer
{
	my $file = "$scratch/ids." . scalar(@files);
	push @files, $file;
	return {
		file => $file,
		process => IPC::Run::start(
			[ 'psql', '-XAtq', '-v', 'FETCH_COUNT=1000', '-o', $file, '-d', $server->connstr('postgres'), '-c', 'SELECT snowflake_nextvals(2147483647)' ],
			'2>', '/dev/null') };
}

for my $round (1 .. $crashes)
{
	my @running = map { start_writer() } 1 .. $writers;

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
				$_->{process}->finish for @running;
				$clock->step(-rand(0.5));
			}) or die 'no session to kill';
	}
	else
	{
		crash($server);
		$_->{process}->finish for @running;
		$clock->step(-rand(0.5));
		$server->start;
	}
}

# The last line of a file may be cut off.
system_or_bail('sed', '-i', '-E', '/^[0-9]{19}$/!d', @files);
my $last = none_is_issued_twice($crashes * $writers * 1000, 'all sessions', @files);

# The server continues above all of them.
is($server->safe_psql('postgres', "SELECT snowflake_nextval() > $last"), 't', 'and the next one is above them all');
$server->stop;
unlink @files;

done_testing();
