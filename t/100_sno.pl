# IDs of type sno when the clock steps back: the generator continues at once, in the other
# phase, and no ID is issued twice, over second steps, crashes, promotions and among 64
# sessions.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock, init => [ allows_streaming => 1 ] },
	'snowflake.max_wait = 0', 'snowflake.sno_partition = 77', 'max_connections = 100');
$server->backup('copy');

my %seen;

# IDs of one session of a server are new, agree with the clock, and are of one phase.
sub issues
{
	my ($from, $phase, $name) = @_;
	my @rows = split /\n/, $from->safe_psql('postgres', q{
		SELECT id, (sno_decode(id)).tick_tock, sno_partition(id), extract(epoch FROM clock_timestamp() - sno_timestamp(id))
		FROM sno_nextvals(1000, 3) AS id});
	my @again = grep { $seen{ (split /\|/)[0] }++ } @rows;
	my @wrong = grep { my (undef, $t, $partition, $behind) = split /\|/; $t ne $phase || $partition != 77 || $behind < -0.02 || $behind > 5 } @rows;

	is(scalar(@rows) . ' ' . scalar(@again) . ' ' . scalar(@wrong), '1000 0 0', "$name: new, in the phase $phase, true to the clock");
}

sub refuses
{
	my ($name) = @_;
	my ($status, $stdout, $stderr) = $server->psql('postgres', "\\set VERBOSITY sqlstate\nSELECT sno_nextval()");

	like($stderr, qr/ERROR:  53400/, $name);
}

sub snapshot { return $server->safe_psql('postgres', "SELECT $_[0] FROM sno_snapshot()"); }

# Nothing waits here: snowflake.max_wait is 0.  The clock stands still until the crash, so that what the
# first call reserves has not passed then.
$clock->freeze;
issues($server, 'f', 'at first');
log_matches($server, 0, qr/LOG:  started to issue IDs of type sno in partition 77\n/, 'which is logged');
is(snapshot('partition, sequence_min, sequence_max, wall_safe IS NULL, drifts'), '77|0|65535|t|0', 'its state');

# The reservation from before a crash, a second, does not count as a step back: callers wait.
crash($server);
$server->start;
refuses('within what was reserved before a crash');
is(snapshot('drifts'), '0', 'and that is no change of phase');
$clock->set(2);
$clock->thaw;
issues($server, 'f', 'past that');

my $first_hi = snapshot('wall_hi');
$clock->set(-3600);
issues($server, 't', 'an hour back');
is(snapshot("drifts, wall_safe = '$first_hi'"), '1|t', 'its state has how far the other phase was used');
$clock->set(-3700);
refuses('a second step back, into what was used in both phases');
$clock->set(-3500);
issues($server, 't', 'past the last step');
$clock->set(0);
issues($server, 't', 'past both phases');
$clock->set(600);
issues($server, 't', 'ten minutes on');
$clock->set(500);
issues($server, 'f', 'a step back that is not as far');
is(snapshot('drifts'), '2', 'is the second change of phase');

# A crash keeps the phase and the used positions.
crash($server);
$clock->set(505);
$server->start;
issues($server, 'f', 'after a crash');
$clock->set(300);
refuses('a step back into what was used in both phases before the crash');
$clock->set(505);

# The clock is set back while the server is down: a regression like any other.
$clock->set(1000);
issues($server, 'f', 'later');
$server->stop;
$clock->set(800);
$server->start;
issues($server, 't', 'the clock was set back while the server was down');
crash($server);
$clock->set(650);
$server->start;
refuses('and once more, over a crash');
$clock->set(1100);
issues($server, 't', 'until it is past both');

# A clock that is wrong when a server starts, and then corrected, is trusted.
my $its_clock = TestClock->new;
my $wrong = snowflake_server('wrong', { clock => $its_clock }, 'snowflake.machine_id = 5', 'snowflake.max_wait = 0');
is($wrong->safe_psql('postgres', 'SELECT (sno_decode(sno_nextval())).tick_tock'), 'f', 'a server with the right clock');
$wrong->stop;
$its_clock->set(-7200);
$wrong->start;
is($wrong->safe_psql('postgres', 'SELECT (sno_decode(sno_nextval())).tick_tock'), 't', 'that starts with a clock two hours behind');
$its_clock->set(2);
is($wrong->safe_psql('postgres', 'SELECT (sno_decode(sno_nextval())).tick_tock'), 't', 'continues when it is corrected');

# The end of the timestamp bits: callers wait for a floor there, also if the durable state rounds it up to
# the end, and a clock that is past it is an error.
$wrong->safe_psql('postgres', "SELECT sno_set_floor('2079-09-07 15:47:31.2Z')");
fails_with($wrong, 'SELECT sno_nextval()', '53400', qr/could not generate a sno ID within /);
$wrong->stop;
$wrong->start;
fails_with($wrong, 'SELECT sno_nextval()', '53400', qr/could not generate a sno ID within /);
$wrong->safe_psql('postgres', 'SELECT sno_set_floor(clock_timestamp())');
$its_clock->step(2);
is($wrong->safe_psql('postgres', 'SELECT count(*) FROM sno_nextvals(10, 0)'), '10', 'moved back, it continues');
$wrong->stop;
$its_clock->set(3461327260 - time);
$wrong->start;
fails_with($wrong, 'SELECT sno_nextval()', '2200H', qr/reached the last timestamp of type sno/, qr/HINT:  Check the clock/);
$wrong->stop;

# The floor holds in both phases, also over a crash.
$server->safe_psql('postgres', "SELECT sno_set_floor(clock_timestamp() + interval '1 hour')");
refuses('a floor that is ahead of the clock');
crash($server);
$server->start;
refuses('and over a crash');
$server->stop;
$clock->set(1100);
$server->start;
refuses('and before it, with the other phase free');
$clock->set(1200 + 3610);
issues($server, 't', 'until the clock is there');
$server->stop;
$server->start;
$server->safe_psql('postgres', "SELECT sno_set_floor(clock_timestamp() + interval '1 minute')");
refuses('a floor that was set before the first ID');
$server->stop;
$server->start;
$server->safe_psql('postgres', 'SELECT sno_set_floor(clock_timestamp())');
is($server->safe_psql('postgres', "SET snowflake.max_wait = '10 s'; SELECT (sno_decode(sno_nextval())).tick_tock"), 't', 'and set back before the first ID');
$server->safe_psql('postgres', "SELECT sno_set_floor(clock_timestamp() + interval '1 minute')");
$clock->set(1200 + 4300);
issues($server, 't', 'until it is reached');

# A standby that is promoted continues from the same state.
my $standby = snowflake_server('standby', { clock => $clock, backup => [ $server, 'copy', has_streaming => 1 ] });
$server->wait_for_catchup($standby);
fails_with($standby, 'SELECT sno_nextval()', '25006', qr/recovery/);
fails_with($standby, 'SELECT sno_at(now(), 0)', '25006', qr/sno_at\(\)/);
$server->stop;
$standby->promote;
$clock->set(1200 + 4000);
issues($standby, 'f', 'a promoted standby whose clock is behind');
$clock->set(1200 + 3900);
my ($status, $stdout, $stderr) = $standby->psql('postgres', 'SELECT sno_nextval()');
isnt($status, 0, 'has a record of what was used in both phases');
$standby->stop;

# Many sessions while the clock steps, and crashes.
my $busy = snowflake_server('busy', { clock => $clock }, 'snowflake.max_wait = -1', 'max_connections = 100', 'snowflake.sno_partition = 77');
my @files;
for my $round (1 .. 4)
{
	my @running = map { start_issuing($busy, "SELECT sno_nextvals(40000, $_)") } 1 .. 64;
	push @files, map { $_->{file} } @running;
	for my $step (1 .. 600)
	{
		last if $step > 10 && 32 < grep { -e && -s _ > 20_000 } @files[ -64 .. -1 ];
		$clock->step($step % 2 ? -rand(0.5) : rand(0.6));
		select(undef, undef, undef, 0.1);
	}
	crash($busy);
	$_->{run}->finish for @running;
	$clock->step(-rand(1)) if $round % 2;
	$busy->start;
}
my $list = "$scratch/snos.all";
system_or_bail('sh', '-c', "cut -c 1-16 @files | grep -x '.\\{16\\}' > $list");
$busy->safe_psql('postgres', "CREATE UNLOGGED TABLE taken (id sno); COPY taken FROM '$list'");
my $result = $busy->safe_psql('postgres', q{
	SELECT count(*), count(*) - count(DISTINCT sno_encode(sno_timestamp(id), 0, sno_partition(id), sno_sequence(id), (sno_decode(id)).tick_tock)),
		count(*) FILTER (WHERE (sno_decode(id)).tick_tock) > 1000 FROM taken});
my ($count, $duplicates, $both) = split /\|/, $result;
cmp_ok($count, '>', 128_000, "256 sessions and 4 crashes: $count IDs");
is("$duplicates $both", '0 t', 'none twice, metabytes left aside, in both phases');
$busy->stop;

# Two servers share a partition by their sequence numbers.
my @halves = ('0-32767', '65535-32768');
my @shared = map { snowflake_server("half$_", 'snowflake.sno_partition = 9', "snowflake.sno_sequence_range = '$halves[$_]'") } 0, 1;
is($shared[$_]->safe_psql('postgres', 'SELECT min(sno_sequence(id)) >= 32768 * ' . $_ . ', max(sno_sequence(id)) < 32768 + 32768 * ' . $_ .
	', count(DISTINCT id) FROM (SELECT sno_nextvals(500000, 0) AS id) i'), 't|t|500000', "half $_ of a partition") for 0, 1;

# A generator at its limit is not mistaken for one whose clock has stepped back.
my $narrow = snowflake_server('narrow', 'snowflake.machine_id = 5', "snowflake.sno_sequence_range = '0-63'", 'snowflake.max_wait = -1');
is($narrow->safe_psql('postgres', 'SELECT count(DISTINCT id), bool_or((sno_decode(id)).tick_tock) FROM (SELECT sno_nextvals(30000, 0) AS id) i'), '30000|f',
	'all the IDs of a narrow range');
is($narrow->safe_psql('postgres', 'SELECT drifts, partition FROM sno_snapshot()'), '0|5', 'without a change of phase');
is($narrow->safe_psql('postgres', "SELECT overflow_ticks > 100 FROM pg_stat_snowflake WHERE generator = 'sno'"), 't', 'are counted as overflows');
for (1 .. 20)
{
	$narrow->safe_psql('postgres', 'SELECT count(*) FROM sno_nextvals(60000, 0)');
	last if slurp_file($narrow->logfile) =~ /type sno has been at its limit/;
}
log_matches($narrow, 0, qr/LOG:  type sno has been at its limit for a second\n.*DETAIL:  This server can issue 64 IDs in each tick of 4 ms; further calls wait\./, 'and logged');

# The partition is the machine ID in use, not one that a reload brings.
my $pinned = snowflake_server('pinned', 'snowflake.machine_id = 5');
$pinned->safe_psql('postgres', 'SELECT snowflake_nextval()');
configure($pinned, 'snowflake.machine_id', 6);
is($pinned->safe_psql('postgres', 'SELECT sno_partition(sno_nextval())'), '5', 'the partition is the machine ID that was fixed');
configure($pinned, 'snowflake.sno_partition', 8);
is($pinned->safe_psql('postgres', 'SELECT sno_partition(sno_nextval())'), '5', 'and is fixed itself');
log_matches($pinned, 0, qr/the new partition of type sno has no effect until the server is restarted\n.*DETAIL:  The configured partition is 8\.  IDs are still issued in partition 5, /, 'which the log tells');
my $unset = snowflake_server('unset');
fails_with($unset, 'SELECT sno_nextval()', '55000', qr/neither "snowflake.sno_partition" nor "snowflake.machine_id" is set/, qr/0 to 65535/,
	qr/HINT:  Set one of them in a configuration file outside of the data directory, /);
configure($unset, 'snowflake.machine_id', 70000);
fails_with($unset, 'SELECT sno_nextval()', '22023', qr/machine ID 70000 is too large for a partition/, qr/HINT:.*"snowflake.sno_partition"/);
configure($unset, 'snowflake.sno_partition', 65535);
is($unset->safe_psql('postgres', 'SELECT sno_partition(sno_nextval())'), '65535', 'the partition has a setting of its own');

done_testing();
