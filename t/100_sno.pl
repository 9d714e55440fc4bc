# IDs of type sno when the clock steps back: the generator continues at once, in the other
# line, and no ID is issued twice, over second steps, crashes, promotions, floors, a move back, and among
# 64 sessions.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock, init => [ allows_streaming => 1 ] },
	'snowflake.max_wait = 0', 'snowflake.sno_partition = 77', 'max_connections = 100');
$server->backup('copy');

my %seen;

# IDs of one session of a server are new, agree with the clock, and are of one line: "f" is the first
# one, and "t" the second one.
sub issues
{
	my ($from, $line, $name) = @_;
	my @rows = split /\n/, $from->safe_psql('postgres', q{
		SELECT id, (sno_decode(id)).tick_tock, sno_partition(id), extract(epoch FROM clock_timestamp() - sno_timestamp(id))
		FROM sno_nextvals(1000, 3) AS id});
	my @again = grep { $seen{ (split /\|/)[0] }++ } @rows;
	my @wrong = grep { my (undef, $t, $partition, $behind) = split /\|/; $t ne $line || $partition != 77 || $behind < -0.02 || $behind > 5 } @rows;

	is(scalar(@rows) . ' ' . scalar(@again) . ' ' . scalar(@wrong), '1000 0 0', "$name: new, in the line $line, true to the clock");
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
is(snapshot('drifts'), '0', 'and that is no switch to the other line');
$clock->set(2);
$clock->thaw;
issues($server, 'f', 'past that');

my $first_hi = snapshot('wall_hi');
$clock->set(-3600);
issues($server, 't', 'an hour back');
is(snapshot("drifts, wall_safe = '$first_hi'"), '1|t', 'its state has how far the other line was used');
$clock->set(-3700);
refuses('a second step back, into what was used in both lines');
$clock->set(-3500);
issues($server, 't', 'past the last step');
$clock->set(0);
issues($server, 't', 'past both lines');
$clock->set(600);
issues($server, 't', 'ten minutes on');
$clock->set(500);
issues($server, 'f', 'a step back that is not as far');
is(snapshot('drifts'), '2', 'is the second switch');

# A crash keeps what was used in both lines; switches are counted from the start of the server.
crash($server);
$clock->set(505);
$server->start;
issues($server, 'f', 'after a crash');
is(snapshot('drifts'), '0', 'no switch in this run');
$clock->set(300);
refuses('a step back into what was used in both lines before the crash');
$clock->set(505);

# The clock is set back while the server is down: a regression like any other.
$clock->set(1000);
issues($server, 'f', 'later');
$server->stop;
$clock->set(800);
$server->start;
issues($server, 't', 'the clock was set back while the server was down');
is(snapshot('drifts'), '1', 'the run begins in the second line');
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

# The end of the timestamp bits: callers wait for a floor in the last tick, also after a restart; IDs are
# issued up to the last tick; a clock that is past it is an error.
$wrong->safe_psql('postgres', "SELECT sno_set_floor('2079-09-07 15:47:35.548Z')");
fails_with($wrong, 'SELECT sno_nextval()', '53400', qr/could not generate a sno ID within /);
$wrong->restart;
fails_with($wrong, 'SELECT sno_nextval()', '53400', qr/could not generate a sno ID within /);
move_back($wrong, 'clock_timestamp()', 'sno');
is($wrong->safe_psql('postgres', 'SELECT count(*) FROM sno_nextvals(10, 0)'), '10', 'moved back, it continues');
my $end = 3461327255.552;
$wrong->stop;
$its_clock->freeze($end - 3.5);
$wrong->start;
for my $before (3.5, 0.002)
{
	$its_clock->freeze($end - $before);
	is($wrong->safe_psql('postgres', "SET snowflake.max_wait = '1s'; SELECT clock_timestamp() - sno_timestamp(sno_nextval()) < interval '4 ms'"), 't', "an ID $before s before the end");
}
$its_clock->freeze($end);
fails_with($wrong, 'SELECT sno_nextval()', '2200H', qr/reached the last timestamp of type sno/, qr/DETAIL:  The last tick of the layout ends at 2079-09-07 15:47:35\.552/, qr/HINT:  Check the clock/);
$wrong->stop;

# The floor holds in both lines: when it was reached in one of them, the other one issues no ID below it
# either, over a restart and a crash.
$server->safe_psql('postgres', "SELECT sno_set_floor(clock_timestamp() + interval '1 hour')");
refuses('a floor that is ahead of the clock');
crash($server);
$server->start;
refuses('and over a crash');
$server->stop;
$clock->set(1100);
$server->start;
refuses('and before it, in either line');
$clock->set(1200 + 3610);
issues($server, 't', 'until the clock is there');
my %stop = (
	'' => sub { },
	' and a restart' => sub { $server->restart },
	' and a crash' => sub { crash($server); $server->start });
my $offset = 1200 + 3610;
for my $way (sort keys %stop)
{
	my $floor = $server->safe_psql('postgres', "SELECT sno_set_floor(clock_timestamp() + interval '60 s'); SELECT clock_timestamp() + interval '60 s'") =~ s/^\n//r;

	$clock->set($offset += 70);
	$server->safe_psql('postgres', 'SELECT sno_nextval()');
	$clock->set($offset - 30);
	$stop{$way}->();
	my (undef, $id) = $server->psql('postgres', 'SELECT sno_nextval()');
	is($id, '', "a step back to before the floor$way: no ID");
	$clock->set($offset += 30);
	is($server->safe_psql('postgres', "SELECT sno_timestamp(sno_nextval()) > '$floor'"), 't', "IDs after it$way");
}

# A floor before the first ID of a run.
$server->restart;
$server->safe_psql('postgres', "SELECT sno_set_floor(clock_timestamp() + interval '1 minute')");
refuses('a floor that was set before the first ID');
my (undef, undef, $kept) = $server->psql('postgres', 'SELECT sno_set_floor(clock_timestamp())');
like($kept, qr/NOTICE:  the floor of sno IDs was not changed\nDETAIL:  All new IDs have later times anyway\./, 'it only rises');
refuses('and holds');
move_back($server, 'clock_timestamp()', 'sno');
issues($server, 'f', 'moved back');

# A floor raises the line that is behind it, and not the line that is ahead.
$clock->set($offset += 1000);
issues($server, 'f', 'later');
$clock->set($offset -= 400);
issues($server, 't', 'a step back');
is($server->safe_psql('postgres', q{SELECT sno_set_floor(clock_timestamp() + interval '100 s'); SELECT wall_safe > clock_timestamp() + interval '200 s' FROM sno_snapshot()}),
	"\nt", 'a floor between the two lines');
refuses('which holds in the line that was behind');
$clock->set($offset += 110);
issues($server, 't', 'until the clock is there');

# A standby that is promoted continues with both lines.
$clock->set($offset += 3000);
issues($server, 't', 'later');
my $standby = snowflake_server('standby', { clock => $clock, backup => [ $server, 'copy', has_streaming => 1 ] });
$server->wait_for_catchup($standby);
fails_with($standby, 'SELECT sno_nextval()', '25006', qr/recovery/);
fails_with($standby, 'SELECT sno_at(now(), 0)', '25006', qr/sno_at\(\)/);
$server->stop;
$standby->promote;
$clock->set($offset - 2000);
issues($standby, 'f', 'a promoted standby whose clock is behind');
is($standby->safe_psql('postgres', "SELECT drifts, wall_safe > clock_timestamp() + interval '1500 s' FROM sno_snapshot()"), '0|t', 'begins in the first line, and has how far the second one was used');
$clock->set($offset - 2800);
my ($status, $stdout, $stderr) = $standby->psql('postgres', 'SELECT sno_nextval()');
isnt($status, 0, 'has a record of what was used in both lines');
$standby->stop;

# Each step, with a clock that stands still: which line the next ID is of, or '' if there is none, and
# its time, in seconds.
my $two_clock = TestClock->new;
my $base = $two_clock->freeze(int(time) + 200);
my $two = snowflake_server('two', { clock => $two_clock }, 'snowflake.max_wait = 0', 'snowflake.sno_partition = 78');
sub next_is
{
	my ($at, $line, $name) = @_;

	$two_clock->freeze($base + $at);
	my (undef, $id) = $two->psql('postgres', 'SELECT (sno_decode(id)).tick_tock, round(extract(epoch FROM sno_timestamp(id)), 1) FROM sno_nextval() AS id');
	is($id, $line eq '' ? '' : sprintf('%s|%.1f', $line, $base + $at), $name);
}
next_is(100, 'f', 'the first line');
next_is(0, 't', 'a step back: the second one');
next_is(-10, '', 'another step back waits');
next_is(50, 't', 'forward, in the line that was used last');
next_is(60, 't', 'and again');
next_is(55, '', 'back to before that line, with the other one ahead');
next_is(101, 't', 'past both lines');
next_is(100.5, 'f', 'back to between the lines: the third switch');
is($two->safe_psql('postgres', 'SELECT drifts FROM sno_snapshot()'), '2', 'each of which is counted');
next_is(100.7, 'f', 'forward');
next_is(100.6, '', 'back to before both');

# A call that waits continues in the line that is allowed first, which is not the active one here.
next_is(200, 'f', 'later');
next_is(150, 't', 'a step back');
next_is(300, 't', 'forward');
$two_clock->freeze($base + 199.5);
$two_clock->run_on;
is($two->safe_psql('postgres', "SET snowflake.max_wait = '60s'; SELECT (sno_decode(sno_nextval())).tick_tock"), 'f', 'a call waits for the first line');

# Moved back: a line that was used at a later time starts at the instant, and one that was not starts
# where it was.
next_is(500, 'f', 'the first line');
next_is(450, 't', 'the second one');
$two_clock->freeze($base + 470);
is($two->safe_psql('postgres', "SELECT sno_move_back(clock_timestamp())"), '', 'the generator is moved back to between the lines');
fails_with($two, 'SELECT sno_nextval()', '55000', qr/the generator of sno IDs is closed until the server is restarted/, qr/DETAIL:  The generator was moved back by sno_move_back\(\)\./, qr/HINT:  Restart the server\./);
is($two->psql('postgres', 'SELECT sno_set_floor(now())'), 3, 'and has no floor');
crash($two);
$two->start;
next_is(470, 'f', 'after a crash the first line starts at the instant');
next_is(460, 't', 'a step back: the second line starts where it was');
next_is(450, '', 'and not before that');
$two_clock->freeze($base + 440);
move_back($two, 'clock_timestamp()', 'sno');
next_is(440, 'f', 'both lines start at an instant before both');
next_is(435, '', 'and neither before it');
next_is(441, 'f', 'the first one');
next_is(440.5, 't', 'and the second one');
$two->stop;

# Many sessions while the clock steps, and crashes.
sub step { $clock->step($_[0] % 2 ? -rand(0.5) : rand(0.6)); return; }
my $busy = snowflake_server('busy', { clock => $clock }, 'snowflake.max_wait = -1', 'max_connections = 100', 'snowflake.sno_partition = 77');
my $crashes = scaled(4, 1);
my @files;
for my $round (1 .. $crashes)
{
	my @running;
	# On a slow machine, the first sessions end before the last one starts.
	for my $session (1 .. 64)
	{
		step($session);
		push @running, start_issuing($busy, "SELECT sno_nextvals(40000, $session)");
	}
	push @files, map { $_->{file} } @running;
	for my $step (1 .. 600)
	{
		last if 32 < grep { -e && -s _ > 20_000 } @files[ -64 .. -1 ];
		step($step);
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
		count(*) FILTER (WHERE (sno_decode(id)).tick_tock) FROM taken});
my ($count, $duplicates, $second) = split /\|/, $result;
cmp_ok($count, '>', 32_000 * $crashes, "64 sessions at a time and $crashes crashes: $count IDs");
cmp_ok($second, '>', 1000, "$second of them in the second line");
is($duplicates, '0', 'none twice, metabytes left aside');
$busy->stop;

# Two servers share a partition by their sequence numbers.
my @halves = ('0-32767', '65535-32768');
my @shared = map { snowflake_server("half$_", 'snowflake.sno_partition = 9', "snowflake.sno_sequence_range = '$halves[$_]'") } 0, 1;
is($shared[$_]->safe_psql('postgres', 'SELECT min(sno_sequence(id)) >= 32768 * ' . $_ . ', max(sno_sequence(id)) < 32768 + 32768 * ' . $_ .
	', count(DISTINCT id) FROM (SELECT sno_nextvals(500000, 0) AS id) i'), 't|t|500000', "half $_ of a partition") for 0, 1;

# A generator at its limit is not mistaken for one whose clock has stepped back.
my $narrow = snowflake_server('narrow', 'snowflake.machine_id = 5', "snowflake.sno_sequence_range = '0-7'", 'snowflake.max_wait = -1');
is($narrow->safe_psql('postgres', 'SELECT count(DISTINCT id), bool_or((sno_decode(id)).tick_tock) FROM (SELECT sno_nextvals(5000, 0) AS id) i'), '5000|f',
	'all the IDs of a narrow range');
is($narrow->safe_psql('postgres', 'SELECT drifts, partition FROM sno_snapshot()'), '0|5', 'without a switch');
is($narrow->safe_psql('postgres', "SELECT overflow_ticks > 100 FROM pg_stat_snowflake WHERE generator = 'sno'"), 't', 'are counted as overflows');
for (1 .. 20)
{
	$narrow->safe_psql('postgres', 'SELECT count(*) FROM sno_nextvals(8000, 0)');
	last if slurp_file($narrow->logfile) =~ /type sno has been at its limit/;
}
log_matches($narrow, 0, qr/LOG:  type sno has been at its limit for a second\n.*DETAIL:  This server can issue 8 IDs in each tick of 4 ms; further calls wait\./, 'and logged');

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
