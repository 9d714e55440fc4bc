# Wrong clocks: moved back by an hour while the server runs, while it is stopped, and over a
# crash; standing still; ten years ahead.  Callers wait, or get an error that names the cause, and
# continue when the clock is correct again; no ID is issued twice, and the time of each is the time of the server's
# clock at that moment.
use FindBin;
use lib "$FindBin::RealBin/lib";
use IdLog;
use SnowflakeTest;
use TestClock;

my $nextval = 'SELECT snowflake_nextval()';
my $refused = qr/could not generate a Snowflake ID within 100 ms/;
my $hour = qr/can be issued in (?:59(?:\.\d)? min|1 h)\./;
my $decade = 315_360_000;

my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock }, 'snowflake.machine_id = 5', "snowflake.max_wait = '100ms'",
	'fsync = on', 'wal_sync_method = fdatasync');
my $ids = IdLog->new;
$ids->make_tables($server);
$ids->continues($server, 'a server issues IDs');
log_matches($server, 0, qr/LOG:  started to issue Snowflake IDs with machine ID 5 in the layout "twitter"\n.*DETAIL:  The first ID has a time of 20/, 'the log tells that');

sub regressions
{
	return $server->safe_psql('postgres', 'SELECT clock_regressions FROM pg_stat_snowflake WHERE generator = \'bigint\'');
}

# An hour back while running: in a session that has the rest of a batch, and in a new one.
is(regressions(), 0, 'the clock has not stepped back');
my $session = $server->background_psql('postgres', on_error_stop => 0);
my $taken = $session->query($ids->query(1000));
$clock->step(-3600);
fails_with($server, $nextval, '53400', $refused, $hour);
unlike($session->query($nextval), qr/\d/, 'the session gets no ID either');
is($server->safe_psql('postgres', "SELECT clock_regressions, round(extract(epoch FROM max_regression) / 10), waits > 1, wait_time >= 100 FROM pg_stat_snowflake WHERE generator = 'bigint'"),
	'1|360|t|t', 'one step back is counted');
log_matches($server, 0, qr/LOG:  the clock of this server has stepped back by (?:59\.\d min|1 h)\n.*DETAIL:  No ID is issued twice\.  The next Snowflake ID has the time 20.*, and is issued when the clock is at most 10 ms before that time\./, 'and logged');
$clock->step(3600);
$ids->record($taken . "\n" . $session->query($ids->query(1000)));
$session->quit;
$ids->continues($server, 'when the clock is correct again, it continues');

# Small steps back: callers wait, none fails.  They are counted, if the next call comes within the two seconds,
# which takes several tries on a slow machine; the log has had its message for this minute.
my $before = regressions();
configure($server, 'snowflake.max_wait', 60_000);
for my $try (1 .. 20)
{
	last if $try > 3 && regressions() > $before;
	$ids->insert($server, 100);
	$clock->step(-2);
	ok($ids->issues($server), 'two seconds back, it continues');
}
$ids->insert($server, 100);
configure($server, 'snowflake.max_wait', 100);
cmp_ok(regressions(), '>', $before, 'small steps are counted');
my $messages = () = slurp_file($server->logfile) =~ /has stepped back/g;
cmp_ok($messages, '<=', 1 + (time - $^T) / 60, 'and logged once a minute at most');
$clock->set(0);

# The clock of instr_time, in 19 a counter of the processor, steps back while a session waits: the
# wait ends in time.  (It would end an hour later if the wait were measured by that clock.)
configure($server, 'snowflake.max_wait', 10_000);
$clock->step(-3600);
my $waited = IPC::Run::start([ 'psql', '-XAtq', '-d', $server->connstr('postgres') . ' application_name=waiter', '-c', $nextval ],
	'2>', \my $waited_error, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
$server->poll_query_until('postgres',
	"SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE application_name = 'waiter'") or die;
$clock->set_monotonic(-1800);
ok(eval { $waited->finish; 1 }, 'a wait ends after the monotonic clock has gone back');
like($waited_error, qr/could not generate a Snowflake ID within 10 s/, 'with its error');
$clock->set_monotonic(0);
$clock->step(3600);
is($server->safe_psql('postgres', "SELECT wait_time BETWEEN 0 AND 1800000 FROM pg_stat_snowflake WHERE generator = 'bigint'"), 't', 'and is not counted as longer');
configure($server, 'snowflake.max_wait', 100);

is($server->safe_psql('postgres', 'SELECT pg_stat_snowflake_reset(); SELECT clock_regressions, max_regression FROM pg_stat_snowflake WHERE generator = \'bigint\''), "\n0|00:00:00", 'reset');

# Ten years forward: not trusted until it is accepted; and back again.
$clock->step($decade);
fails_with($server, $nextval, '55000', qr/the clock of this server has jumped forward by (?:3649\.9|3650) days/,
	qr/days longer than "snowflake.max_clock_step", which is 1 h\./, qr/HINT:  Correct the clock\.  .* use snowflake_accept_clock\(\), or, if no database has the extension yet, restart the server\.  If a wrong clock is accepted/);
fails_with($server, $nextval, '55000', qr/has jumped forward/);
$clock->step(-$decade);
$ids->continues($server, 'when the clock is correct again, it continues');
is(regressions(), 0, 'a clock that was not trusted has not stepped back');
$clock->step($decade);
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$ids->continues($server, 'accepted, it is trusted');
log_matches($server, 0, qr/LOG:  the clock was accepted for Snowflake IDs after a jump of 36\d\d(?:\.\d)? days/, 'the log tells');
$clock->step(-$decade);
fails_with($server, $nextval, '53400', $refused);
move_back($server, 'clock_timestamp()');
log_matches($server, 0, qr/LOG:  the generator of Snowflake IDs was moved back to 20/, 'the log tells that the generator was moved back');
$ids->continues($server, 'moved back, it continues');

# Also if the jump is before the first ID of a run, or while a session waits for another one
# that writes the reservation.
$server->stop;
$server->start;
$clock->step($decade);
fails_with($server, $nextval, '55000', qr/has jumped forward/);
fails_with($server, 'BEGIN; DROP EXTENSION snowflake CASCADE; CREATE EXTENSION snowflake', '55000', qr/has jumped forward/);
$clock->step(-$decade);
$ids->continues($server, 'after a jump before the first ID, it continues');
$session = $server->background_psql('postgres', on_error_stop => 0);
$session->query("SET snowflake.max_wait = '60s'");
my $pid = $session->query('SELECT pg_backend_pid()');
my $writer = $server->background_psql('postgres', on_error_stop => 0);
my $writer_pid = $writer->query('SELECT pg_backend_pid()');
my $call = "DO \$\$ BEGIN PERFORM snowflake_nextval(); END \$\$;\n";
# an extension that is pending ends a second later at most
$server->poll_query_until('postgres', q{SELECT reserved_until < clock_timestamp() - interval '2 s' FROM pg_stat_snowflake WHERE generator = 'bigint'});
$clock->slow_disk(1000);
$writer->{stdin} .= $call;
$writer->{run}->pump_nb;
$server->poll_query_until('postgres', "SELECT wait_event IN ('WALSync', 'WalSync', 'WALWrite', 'WalWrite') FROM pg_stat_activity WHERE pid = $writer_pid");
$session->{stdin} .= $call;
$session->{run}->pump_nb;
$server->poll_query_until('postgres', "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid");
$clock->step($decade);
$clock->slow_disk(0);
$session->query('SELECT 1');
$clock->step(-$decade);
$ids->continues($server, 'the jump was not trusted');
is($server->safe_psql('postgres', "SELECT reserved_until < now() + interval '2 min' FROM pg_stat_snowflake WHERE generator = 'bigint'"), 't', 'and nothing is reserved so far ahead');
$_->quit for $writer, $session;

# A jump that is little longer than the limit: the error tells the difference.
$clock->step(3630);
fails_with($server, $nextval, '55000', qr/has jumped forward by 1 h\n/,
	qr/DETAIL:  The jump is (?:29\.\d|30(?:\.\d)?) s longer than "snowflake.max_clock_step", which is 1 h\./);
$clock->step(-3630);

# Less than the limit is trusted.  When such a clock is corrected, calls fail until the clock reaches the IDs, and
# the detail does not blame the start of the server.
$clock->step(3540);
$ids->continues($server, 'almost an hour forward');
$clock->step(-3540);
fails_with($server, $nextval, '53400', $refused, qr/can be issued in (?:5[89](?:\.\d)?) min\..*  The clock is behind, was ahead when earlier IDs were issued, or a floor .* was set before the last start\./,
	qr/HINT:  Correct the clock if it is behind\.  Otherwise wait, or use snowflake_move_back\(\) with an earlier time and restart the server\./);
$clock->step(3540);

# Without a limit, any jump is.
configure($server, 'snowflake.max_clock_step', 0);
$clock->step(86400);
$ids->continues($server, 'a day forward, without a limit');
configure($server, 'snowflake.max_clock_step', 3600000);
$clock->step(-86400 - 3540);
move_back($server, 'clock_timestamp()');
$ids->continues($server, 'and moved back again');

# An hour back while stopped.
$server->stop;
$clock->step(-3600);
$server->start;
fails_with($server, $nextval, '53400', $refused, $hour);
$clock->step(3600);
$ids->continues($server, 'after a restart under a clock an hour behind');
log_matches($server, 0, qr/LOG:  started to issue Snowflake IDs with machine ID 5 in the layout "twitter"\n.*DETAIL:  The first ID has a time of 20.* or later\./, 'the log tells the floor');

# A clock that was behind when the server started is corrected by a jump of more than the limit.  If no ID was
# issued for longer than the limit, the jump has to be accepted, unless the clock was before the epoch.
$server->stop;
$clock->step(-7200);
$server->start;
fails_with($server, $nextval, '53400', $refused);
$clock->step(7200);
$ids->continues($server, 'a clock that was behind is corrected');
$server->stop;
$clock->step(-7200);
$server->start;
$clock->step(7200);
$server->safe_psql('postgres', 'SELECT snowflake_check_clock()');
$ids->continues($server, 'also before the generator is opened');
$server->stop;
$clock->step(-7200);
$server->start;
fails_with($server, $nextval, '53400', $refused);
$clock->step(2 * 7200);
fails_with($server, $nextval, '55000', qr/the clock of this server has jumped forward by (?:3\.9|4) h/);
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$ids->continues($server, 'also past all IDs, if it is accepted');
$server->stop;
$clock->step(-5 * $decade);
$server->start;
fails_with($server, $nextval, '53400', $refused);
$clock->step(5 * $decade + 7200);
$ids->continues($server, 'a clock that was before 2010 is corrected');

# What one generator has accepted: another that was not used takes no more than that.
$clock->step($decade);
fails_with($server, 'SELECT sno_nextval()', '55000', qr/has jumped forward/);
$clock->step(-$decade);
for (1 .. 3)
{
	$clock->step(2400);
	$ids->continues($server, 'forty minutes forward');
}
ok($server->safe_psql('postgres', 'SELECT sno_nextval()'), 'and two hours for the other generator');
$clock->step(-14400 - 7200);
move_back($server, 'clock_timestamp()');
$ids->continues($server, 'the clock set back, and the generator moved back');

# An hour back over a crash that ends a transaction of 20 000 IDs.
$session = $server->background_psql('postgres', on_error_stop => 0);
$session->query('BEGIN');
$ids->record($session->query($ids->query(20000)));
$clock->step(-3600);
crash($server);
$session->{run}->finish;
$server->start;
fails_with($server, $nextval, '53400', $refused, $hour);
$clock->step(3600);
$ids->continues($server, 'after a crash, and a clock an hour behind');

# The clock set to the second in which the transaction was issued its IDs, not an hour before it.
$session = $server->background_psql('postgres', on_error_stop => 0);
$session->query('BEGIN');
my $second = time;
$ids->record($session->query($ids->query(20000)));
crash($server);
$session->{run}->finish;
$clock->step($second - time);
$server->start;
$ids->continues($server, 'after a crash, and a clock that runs through the same second again');
$clock->set(0);

# An hour back, while a session holds the rest of a batch.  (The clock stands still, so that the batch
# does not end with its tick.)
my $stopped = $clock->freeze;
$session = $server->background_psql('postgres', on_error_stop => 0);
$session->query('BEGIN');
$session->query('SELECT count(*) FROM snowflake_nextvals(1000)');
ok(wait_until(sub { -$session->query($nextval) + $session->query($nextval) == 1 }), 'a session holds a batch');
$clock->freeze($stopped - 3600);
unlike($session->query($nextval), qr/\d/, 'it issues no ID of the batch');
$session->quit;
$clock->thaw;
$clock->set(0);

# A clock that stands still, over a crash.
$clock->freeze;
my $issued = 0;
for (1 .. 5)
{
	my ($status, $lines) = $server->psql('postgres', $ids->query(10000));
	$issued += () = $lines =~ /\n/g;
	$ids->record($lines) if $status == 0;
}
cmp_ok($issued, '<', 50000, 'a clock that stands still: not all of these IDs can be issued');
fails_with($server, $nextval, '53400', $refused);
crash($server);
$server->start;
fails_with($server, $nextval, '53400', $refused, qr/can be issued in (?:[4-9]\d\d(?:\.\d)? ms|1(?:\.\d)? s)\./);
$clock->thaw;
$ids->continues($server, 'when it runs again, it continues');

$ids->check('all of them');
$server->stop;

done_testing();
