# A disk on which each flush of WAL takes long: IDs are issued, with few flushes; calls that wait for
# the process that flushes can be interrupted, and end after snowflake.max_wait.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;
use Time::HiRes qw(time);

my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock },
	'snowflake.machine_id = 5', "snowflake.max_wait = '100s'", 'fsync = on', 'wal_sync_method = fdatasync', 'autovacuum = off');
$server->safe_psql('postgres', 'CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)');

my $nextval = 'SELECT snowflake_nextval()';
my $writes = q{SELECT reservation_writes FROM pg_stat_snowflake WHERE generator = 'bigint'};

# Wait until the reservation has passed.
sub pass_reservation
{
	$server->poll_query_until('postgres', q{SELECT (reserved_until < clock_timestamp()) IS NOT FALSE FROM pg_stat_snowflake WHERE generator = 'bigint'});
}

# Start psql with a command.
my $started = 0;
sub start_psql
{
	my ($command) = @_;
	my $name = 'slow' . $started++;
	my $output = '';
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $server->connstr('postgres') . " application_name=$name", '-c', $command ],
		'<', '/dev/null', '>&', \$output);

	return { run => $run, output => \$output, name => $name };
}

# Wait until a session of that name is in a state that a condition on pg_stat_activity describes.
sub await
{
	my ($name, $condition) = @_;

	$server->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = '$name' AND $condition");
	return;
}

sub finish
{
	my ($session) = @_;

	$session->{run}->finish;
	return ${ $session->{output} };
}

# IDs are issued however long a flush takes, and the number of flushes does not grow with that of the ticks.
$server->safe_psql('postgres', $nextval);
for my $delay (0.2, 0.6, 1.1, 5)
{
	my @sessions;

	pass_reservation();
	$clock->slow_disk($delay);
	my $before = $server->safe_psql('postgres', $writes);
	like($server->safe_psql('postgres', $nextval), qr/^\d+$/, "one session, and a flush of $delay s: an ID");
	cmp_ok($server->safe_psql('postgres', $writes) - $before, '<=', 2, 'after two writes at most');
	pass_reservation();
	push @sessions, start_psql($nextval) for 1 .. 30;
	is((grep { finish($_) =~ /^\d+$/ } @sessions), 30, "30 sessions, and a flush of $delay s: an ID for each");
	if ($delay < 5)
	{
		$before = $server->safe_psql('postgres', $writes);
		$server->safe_psql('postgres', 'INSERT INTO items (n) SELECT generate_series(1, 100000)');
		cmp_ok($server->safe_psql('postgres', $writes) - $before, '<=', 10, 'an INSERT of 100000 rows: ten writes at most');
	}
	$clock->slow_disk(0);
}

# The reservation of a slow disk does not hide that the clock has jumped.
$clock->slow_disk(3);
$server->psql('postgres', $nextval) for 1 .. 2;
$clock->slow_disk(0);
configure($server, 'snowflake.max_clock_step', 1000);
cmp_ok($server->safe_psql('postgres', q{SELECT extract(epoch FROM reserved_until - clock_timestamp()) FROM pg_stat_snowflake WHERE generator = 'bigint'}),
	'>', 1, 'the reservation is longer than max_clock_step');
$clock->step(86400);
fails_with($server, $nextval, '55000', qr/has jumped forward/);
$clock->step(-86400);
like($server->safe_psql('postgres', $nextval), qr/^\d+$/, 'the clock is corrected');
configure($server, 'snowflake.max_clock_step', 3600000);

# The floor of type sno is set while an extension is written and not published: after a crash, under
# a clock that was set back, no ID is below the floor in the other phase either.
$server->restart;
$server->safe_psql('postgres', 'SELECT sno_nextval()');
$server->poll_query_until('postgres', q{SELECT reserved_until - clock_timestamp() < interval '0.5 s' FROM pg_stat_snowflake WHERE generator = 'sno'});
my $floor = $server->safe_psql('postgres', q{SELECT sno_nextval() IS NULL;
	SELECT clock_timestamp() AS floor \\gset
	SELECT sno_set_floor(:'floor');
	SELECT :'floor'}) =~ s/.*\n//sr;
crash($server);
$clock->step(-20);
$server->start;
(undef, my $sno) = $server->psql('postgres', "SET snowflake.max_wait = '100ms'; SELECT sno_timestamp(sno_nextval()) >= '$floor'");
isnt($sno, 'f', 'a floor of type sno survives a crash');
$clock->set(0);

# Start a session that flushes a reservation for long: the flush is its own, or it waits for that of
# the WAL writer.  A session that finds an extension on disk needs no flush, and another one follows.
sub start_writer
{
	for (1 .. 10)
	{
		pass_reservation();
		$clock->slow_disk(30);
		my $writer = start_psql($nextval);
		my $waits = wait_until(sub {
			$writer->{run}->pump_nb if $writer->{run}->pumpable;
			return 'no' if ${ $writer->{output} } =~ /\d/;
			return $server->safe_psql('postgres',
				"SELECT lower(wait_event) IN ('walsync', 'walwrite') FROM pg_stat_activity WHERE application_name = '$writer->{name}'") eq 't' && 'yes';
		});
		return $writer if $waits eq 'yes';
		$clock->slow_disk(0);
		finish($writer);
	}
	die "no session flushes\n";
}

# Calls that wait for the process that flushes end when they are interrupted, and after max_wait.
# A flush takes ten times as long as they are allowed to.
sub while_another_flushes
{
	my ($what, $test) = @_;

	my $writer = start_writer();
	my $pid = $server->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = '$writer->{name}'");
	my $since = time;
	$test->($pid);
	cmp_ok(time - $since, '<', 10, "$what in time");
	ok(kill(0, $pid), 'the other process is still there');
	$clock->slow_disk(0);
	finish($writer);
}

my $waits = major_version($server) >= 17 ? "wait_event = 'SnowflakeReservation'" : "wait_event_type = 'Extension'";
while_another_flushes('statement_timeout ends a call', sub {
	fails_with($server, "SET statement_timeout = '300ms'; $nextval", '57014', qr/statement timeout/);
});
while_another_flushes('a cancellation ends a call', sub {
	my $session = start_psql($nextval);
	await($session->{name}, $waits);
	$server->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '$session->{name}'");
	like(finish($session), qr/canceling statement due to user request/, 'a cancelled call');
});
while_another_flushes('a termination ends a session', sub {
	my $session = start_psql($nextval);
	await($session->{name}, $waits);
	$server->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '$session->{name}'");
	like(finish($session), qr/terminating connection/, 'a terminated session');
});
while_another_flushes('snowflake.max_wait ends a call', sub {
	my ($pid) = @_;

	fails_with($server, "SET snowflake.max_wait = '300ms'; $nextval", '53400',
		qr/could not write the reservation of Snowflake IDs within 300 ms/, qr/The process with PID $pid is writing the reservation to WAL\./, qr/HINT:  Check the disk/);
	fails_with($server, "SET snowflake.max_wait = 0; $nextval", '53400', qr/could not write the reservation/);
});

# The process that flushes may be stopped.
while_another_flushes('a process that is stopped holds up no other', sub {
	my ($pid) = @_;

	kill 'STOP', $pid;
	fails_with($server, "SET statement_timeout = '300ms'; $nextval", '57014');
	is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_snowflake'), 2, 'the view answers');
	kill 'CONT', $pid;
});

# max_wait limits all attempts of a call, its own flushes included.
pass_reservation();
$clock->slow_disk(3);
my ($status) = $server->psql('postgres', "SET snowflake.max_wait = '100ms'; $nextval");
is($status == 0 || $server->safe_psql('postgres', $nextval) =~ /^\d+$/, 1, 'a call, or the next one, gets an ID');
$clock->slow_disk(0);

# A stop in mode fast ends the sessions that wait.
my $writer = start_writer();
my @waiting = map { start_psql($nextval) } 1 .. 4;
my $some = join(',', map { "'$_->{name}'" } @waiting);
$server->poll_query_until('postgres', "SELECT count(*) = 4 FROM pg_stat_activity WHERE application_name IN ($some) AND $waits");
my $log = -s $server->logfile;
kill 'INT', postmaster($server);
is((grep { finish($_) =~ /terminating connection/ } @waiting), 4, 'a stop ends the sessions that wait');
$clock->slow_disk(0);
finish($writer);
wait_for_log($server, $log, qr/database system is shut down/, 'the server stops');
wait_until(sub { !-e $server->data_dir . '/postmaster.pid' });
$server->_update_pid(0);    # as after its method stop

done_testing();
