# The column refusal of pg_stat_snowflake: one case of each reason; and in a thousand random states it agrees with the next
# call of each generator, which may not wait.  The clock stands still between the two.  Reading the view changes nothing.
#
# SNOWFLAKE_TEST_SCALE lowers the number of states, and SNOWFLAKE_TEST_SEED selects them.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;
use Time::HiRes qw(time);

my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock }, 'snowflake.machine_id = 5', 'snowflake.max_wait = 0', 'fsync = on', 'wal_sync_method = fdatasync',
	'restart_after_crash = on', 'wal_level = replica');
my @generators = ([ 'bigint', 'snowflake_nextval()' ], [ 'sno', 'sno_nextval()' ]);
my $now = $clock->freeze;

# What the view says of a generator, and the error of its next call; both '' if there is none.
sub compare
{
	my ($generator, $call) = @_;
	my ($status, $refusal, $error) = $server->psql('postgres',
		"SELECT coalesce(refusal, '') FROM pg_stat_snowflake WHERE generator = '$generator'; DO \$\$ BEGIN PERFORM $call; END \$\$");

	return ($refusal, $error =~ /ERROR:  (.*)/ ? $1 : '', $error);
}

# Whether the two agree: a call that has to wait fails at once.
sub agree
{
	my ($refusal, $message, $error) = @_;

	return 1 if $refusal eq $message;
	return $message =~ /^could not generate/ && $error =~ /DETAIL:  T\Q@{[ substr $refusal, 1 ]}\E\./ if $refusal =~ /^the next ID can be issued in/;
	return $message =~ /^could not write the reservation/ if $refusal =~ /is writing the reservation/;
	return $message =~ /^cannot execute .* during recovery/ if $refusal eq 'in recovery';
	return 0;
}

# One case.
sub is_refused
{
	my ($number, $pattern, $name) = @_;
	my @result = compare(@{ $generators[$number] });

	like($result[0], $pattern, $name);
	ok(agree(@result), 'and so is the next call') or diag(explain(\@result));
}

sub advance
{
	$now += shift;
	$clock->freeze($now);
}

# Start a server while the clock runs on: recovery waits for it.
sub while_running
{
	$clock->run_on;
	shift->();
	$now = $clock->freeze;
}

is_refused($_, qr/^$/, 'a new generator refuses nothing') for 0, 1;
is($server->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_snowflake WHERE ahead IS NULL}), '0', 'both generators are open');
$server->restart;
advance(2);
is($server->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_snowflake WHERE refusal IS NULL AND ahead IS NULL AND machine_id IS NULL}), '2',
	'reading the view opens no generator, and fixes no machine ID');
is_refused($_, qr/^$/, 'after a start it refuses nothing') for 0, 1;
advance(-3600);
is_refused(0, qr/^the next ID can be issued in (?:59\.\d min|1 h)$/, 'a clock that is behind');
is_refused(1, qr/^$/, 'IDs of type sno continue in the other line');
advance(7200 * 2);
is_refused($_, qr/^the clock of this server has jumped forward by/, 'a clock that has jumped') for 0, 1;
advance(-7200 * 2 + 3600);
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '1 min')");
is_refused(0, qr/^the next ID can be issued in (?:1 min|59\.\d s)$/, 'a floor');
$server->safe_psql('postgres', "SELECT snowflake_move_back(now())");
is_refused(0, qr/^the generator of Snowflake IDs is closed until the server is restarted$/, 'a generator that was moved back');
is_refused(1, qr/^$/, 'but not the other one');
kill_process($server, $server->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'"));
is_refused(0, qr/^the generator of Snowflake IDs is closed until the server is restarted$/, 'and that it was survives the crash of a process');
$server->restart;
advance(2);
is_refused($_, qr/^$/, 'a restart ends it') for 0, 1;

# Settings and states with which a server starts.
for (
	[ "snowflake.machine_id = -1", qr/^"snowflake\.machine_id" is not set$/, qr/^neither "snowflake\.sno_partition" nor "snowflake\.machine_id" is set$/ ],
	[ "snowflake.layout = 'discord'", qr/^"snowflake\.layout" does not match the layout of this cluster$/, qr/^$/ ],
	[ ($server->pg_version >= 18 ? 'max_active_replication_origins' : 'max_replication_slots') . ' = 0', (qr/^could not read the durable state of Snowflake IDs$/, qr/^could not read the durable state of sno IDs$/) ],
	[ "snowflake.registry = 'host=/nonexistent'", (qr/^could not generate a Snowflake ID (?:while the registry is unreachable|before the first answer of the registry)$/, qr/^could not generate a sno ID /) ])
{
	my ($line, @patterns) = @$_;
	my $conf = slurp_file($server->data_dir . '/postgresql.conf');

	$server->append_conf('postgresql.conf', $line);
	$server->restart;
	advance(2);
	$server->poll_query_until('postgres', q{SELECT registry_state = 'unreachable' FROM pg_stat_snowflake LIMIT 1}) if $line =~ /registry/;
	is_refused($_, $patterns[$_], $line) for 0, 1;
	open(my $file, '>', $server->data_dir . '/postgresql.conf') or die;
	print $file $conf;
	close $file;
}
$server->stop;
$server->set_standby_mode;
$server->start;
is_refused($_, qr/^in recovery$/, 'a standby') for 0, 1;
$server->promote;
advance(2);
is_refused($_, qr/^$/, 'a server that was promoted') for 0, 1;

# A disk that is slow, for a call that needs the next reservation.
my $writer = $server->background_psql('postgres', on_error_stop => 0);
$writer->query('SELECT snowflake_nextval()');
advance(60);
$clock->slow_disk(1000);
$writer->{stdin} .= "SELECT snowflake_nextval();\n";
$writer->{run}->pump_nb;
$server->poll_query_until('postgres', q{SELECT refusal IS NOT NULL FROM pg_stat_snowflake WHERE generator = 'bigint'});
is_refused(0, qr/^the process with PID \d+ is writing the reservation to WAL$/, 'a slow disk');
$clock->slow_disk(0);
$writer->quit;
advance(2);

# Random states.
my $seed = $ENV{SNOWFLAKE_TEST_SEED} // int(rand 1_000_000);
srand $seed;
my @changes = (
	[ 40, sub { advance((1, 1, -1)[ rand 3 ] * 10**(rand(7) - 3)) } ],
	[ 5, sub { advance((1, -1)[ rand 2 ] * 10**rand 8) } ],
	[ 8, sub { $server->psql('postgres', 'SELECT ' . (qw(snowflake sno))[ rand 2 ] . sprintf("_set_floor(now() + interval '%.3f s')", 10**(rand(6) - 3))) } ],
	[ 3, sub { $server->psql('postgres', 'SELECT snowflake_accept_clock()') } ],
	[ 2, sub { $server->psql('postgres', 'SELECT ' . (qw(snowflake sno))[ rand 2 ] . sprintf("_move_back(now() - interval '%.3f s')", 10**rand 3)) } ],
	[ 3, sub { while_running(sub { $server->restart }) } ],
	[ 1, sub { while_running(sub { $server->stop('immediate'); $server->start }) } ],
	[ 2, sub { $server->psql('postgres', 'ALTER SYSTEM SET snowflake.max_ahead = ' . (0, 1, 10, 1000)[ rand 4 ]); $server->reload } ]);
my $all = 0;
my ($disagreed, $refused, $issued) = (0, 0, 0);
my %reasons;
$all += $_->[0] for @changes;
for my $state (1 .. scaled(1000, 100))
{
	my $drawn = rand $all;
	my $change = 0;

	$change++ while ($drawn -= $changes[$change][0]) > 0;
	$changes[$change][1]->();
	for (@generators)
	{
		my @result = compare(@$_);

		agree(@result) or $disagreed++ < 5 && diag("seed $seed, state $state, change $change, $_->[0]: " . join(' / ', @result));
		$result[0] eq '' ? $issued++ : $refused++;
		$reasons{ $result[0] =~ s/ (?:by|in) [\d.].*//r }++;
	}
	# The clock is far from the IDs by now: start over.
	next if $state % 25;
	while_running(sub { $server->restart });
	$server->psql('postgres', "SELECT ${_}_move_back(now())") for qw(snowflake sno);
	while_running(sub { $server->restart });
	advance(3);
}
is($disagreed, 0, "the column agrees with the next call (seed $seed)");
cmp_ok($refused, '>', 0, "$refused calls were refused");
cmp_ok($issued, '>', 0, "$issued calls were not refused");
note("$reasons{$_} times: $_") for sort keys %reasons;
done_testing();
