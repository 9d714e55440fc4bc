# Each wait of a call ends when the call is cancelled, when its session is terminated, after
# statement_timeout, and after snowflake.max_wait if that limits the wait.
#
# Each has a second, ten times what is promised, and under valgrind ten.  The server measures the
# time, and of three attempts the best one counts, since a busy machine can delay each step.  A wait
# that is not interrupted fails them all.
use FindBin;
use lib "$FindBin::RealBin/lib";
use FalseRegistry;
use SnowflakeTest;
use TestClock;

my $bound = $PostgreSQL::Test::Utils::timeout_default > 1000 ? 10 : 1;    # script/test-checked sets it for valgrind
my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock },
	'snowflake.machine_id = 5', 'fsync = on', 'wal_sync_method = fdatasync', 'autovacuum = off', 'max_connections = 1000',
	'max_prepared_transactions = 1');
my $named = major_version($server) >= 17;    # wait events of extensions have names
my $nextval = 'SELECT snowflake_nextval()';
my $observer;
my $started = 0;

# Start psql with a script, and perhaps with a timer.
sub start_psql
{
	my ($script, @timer) = @_;
	my $name = 'call' . $started++;
	my $output = '';

	$script .= ";\n\\q\n";
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $server->connstr('postgres') . " application_name=$name" ],
		'<', \$script, '>&', \$output, @timer);

	return { run => $run, output => \$output, name => $name };
}

# The output of psql, which is killed if it has a timer and does not end in time.
sub finish
{
	my ($session) = @_;

	end_psql($session) unless $session->{killed} || eval { $session->{run}->finish; 1 };
	return ${ $session->{output} };
}

sub end_psql
{
	my ($session) = @_;

	$session->{run}->kill_kill;
	$session->{killed} = 1;
}

sub start_call { return start_psql($_[0], IPC::Run::timeout(30)); }

# Wait until a session is in a state that a condition on pg_stat_activity describes, and return an
# expression about it; or "ended" if psql has ended, or was killed by its timer.
sub await
{
	my ($session, $condition, $expression) = @_;

	return wait_until(sub {
		my $runs = eval { $session->{run}->pumpable && ($session->{run}->pump_nb, 1) };

		end_psql($session) if $@;
		return 'ended' unless $runs;
		return $observer->query("SELECT $expression FROM pg_stat_activity WHERE application_name = '$session->{name}' AND $condition");
	});
}

# How many seconds more than allowed a session needed to end a call, by what its psql has printed.
sub excess
{
	my ($session, $pattern, $allowed) = @_;
	my $output = finish($session);

	return $1 - $allowed if $output =~ /$pattern.*\ntook (\S+)/s;
	diag($output);
	return 'inf';
}

# Print how many seconds a call took, for excess.
my $begin = 'SELECT clock_timestamp() AS begin \gset';
my $end = q{SELECT 'took ' || extract(epoch FROM clock_timestamp() - :'begin')};

# A call waits, with a wait event, and its wait ends as described above.
sub ends_in_time
{
	my ($event, $call, $too_long) = @_;
	my $limit = 0.3;
	my $waits = $named ? "wait_event = 'Snowflake$event'" : "wait_event_type = 'Extension'";
	my $unlimited = 'SET snowflake.max_wait = -1';
	my %attempts = (
		'statement_timeout' => sub {
			return excess(start_call("$unlimited; $begin\nSET statement_timeout = '300ms'; $call; SET statement_timeout = 0; $end"),
				qr/ERROR:  57014: .*statement timeout/, 0.3);
		},
		'pg_cancel_backend()' => sub {
			my $session = start_call("$unlimited; $call; SELECT 'took ' || extract(epoch FROM clock_timestamp())");
			my ($from) = split /\|/, await($session, $waits, 'extract(epoch FROM clock_timestamp()), pg_cancel_backend(pid)');

			return excess($session, qr/ERROR:  57014: .*user request/, $from);
		},
		'pg_terminate_backend()' => sub {
			my $session = start_call("$unlimited; $call");
			my $in_time = await($session, $waits, 'pg_terminate_backend(pid, ' . 1000 * $bound . ')');

			finish($session);
			return $in_time eq 't' ? 0 : 'inf';
		},
		'snowflake.max_wait' => sub {
			return excess(start_call("$begin\nSET snowflake.max_wait = '${limit}s'; $call; $end"), qr/ERROR:  $too_long/, $limit);
		});
	delete $attempts{'snowflake.max_wait'} unless $too_long;
	delete $attempts{statement_timeout} if $call =~ /PREPARE TRANSACTION/;    # PostgreSQL has disabled it by then

	for my $by (sort keys %attempts)
	{
		my $best = 'inf';

		for (1 .. 3)
		{
			my $excess = $attempts{$by}->();

			$best = $excess if $excess < $best;
			last if $best < $bound;
		}
		cmp_ok($best, '<', $bound, "$event: $by ends $call");
	}
}

# Start a session that writes the reservation, and flushes it for longer than the test takes.  What
# was reserved before has passed.
sub start_writer
{
	$clock->step(600);
	$clock->slow_disk(3600);
	my $writer = start_psql("SET snowflake.max_wait = -1; $nextval");
	$writer->{pid} = await($writer, q{lower(wait_event) IN ('walsync', 'walwrite')}, 'pid');
	return $writer;
}

sub finish_writer
{
	my ($writer) = @_;

	$clock->slow_disk(0);
	like(finish($writer), qr/^\d+$/, 'the session that writes the reservation is issued an ID');
}

# The reservation, which another session writes: in the first call after a start, and later.
my $not_written = qr/53400: could not write the reservation of Snowflake IDs within 300 ms/;
my $writer;
$server->safe_psql('postgres', q{CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	SELECT snowflake_enable_feed('items')});
$server->restart;
$observer = $server->background_psql('postgres');
$writer = start_writer();
ends_in_time('Reservation', @$_)
  for [ $nextval, $not_written ], [ 'SELECT snowflake_horizon()', $not_written ],
  [ 'SELECT snowflake_set_floor(clock_timestamp())', $not_written ];
finish_writer($writer);
$writer = start_writer();
ends_in_time('Reservation', @$_)
  for [ $nextval, $not_written ], [ 'SELECT snowflake_set_floor(clock_timestamp())', $not_written ],
  [ 'SELECT snowflake_accept_layout()', $not_written ];

# Moving the generator back waits for the same lock, and changes nothing if it does not get it.
ends_in_time('Reservation', "SELECT snowflake_move_back('2026-01-01')", $not_written);

# The error of max_wait; and another session can be stopped instead of slow.
fails_with($server, "SET snowflake.max_wait = 0; $nextval", '53400', qr/could not write the reservation/,
	qr/The process with PID $writer->{pid} is writing the reservation to WAL\.\nHINT:  Check the disk/);
kill 'STOP', $writer->{pid};
ends_in_time('Reservation', $nextval, $not_written);
is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_snowflake'), 2, 'the view answers');
kill 'CONT', $writer->{pid};
finish_writer($writer);

# The clock.
$server->safe_psql('postgres', q{SELECT snowflake_set_floor(clock_timestamp() + interval '1 hour'), sno_set_floor(clock_timestamp() + interval '1 hour')});
ends_in_time('Clock', $nextval, qr/53400: could not generate a Snowflake ID within 300 ms/);
ends_in_time('Clock', 'SELECT sno_nextval()', qr/53400: could not generate a sno ID within 300 ms/);
$clock->step(3600);

# The horizon, which no transaction moves.
ends_in_time('NewRows', "CALL snowflake_wait(9223372036854775807, '1 hour')");

# The lock of the horizon, whose holder is stopped.  It is held almost all the time by a session that
# computes horizons, since it then looks at the slots of 1000 backends.  If it is stopped while it holds
# a lock of PostgreSQL's own, another session can wait for that without end: it continues then.
my $reader = start_psql('DO $$ DECLARE horizon bigint; BEGIN LOOP horizon := snowflake_horizon(); COMMIT; END LOOP; END $$');
my $pid = await($reader, q{state = 'active'}, 'pid');
wait_until(sub {
	my $stuck;

	kill 'STOP', $pid;
	my ($status) = $server->psql('postgres', "SET statement_timeout = '1s'; SELECT snowflake_horizon()",
		timeout => 10, timed_out => \$stuck);
	return 1 if !$stuck && $status != 0;
	kill 'CONT', $pid;
	return 0;
});
ends_in_time('Horizon', $_)
  for 'SELECT snowflake_horizon()', "CALL snowflake_wait(0, '1 hour')", 'SELECT count(*) FROM pg_stat_snowflake_horizon', 'INSERT INTO items VALUES (1)',
  "BEGIN; INSERT INTO items VALUES (DEFAULT); PREPARE TRANSACTION 'one'";
kill 'CONT', $pid;
$server->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
finish($reader);

# Nothing else waits for a disk.  A session flushes WAL, another one has filled the buffers of WAL, and
# so a third one, which writes the reservation, waits for the first one while it holds
# PostgreSQL's lock of the replication origins, a wait that cannot be interrupted.  Calls that write
# nothing answer within a second; so does a call that needs an ID, with its error.  Reading a catalog
# can write WAL in any query (pruning a page; setting a hint bit, with checksums), and would then wait
# as well: VACUUM leaves nothing of this to do.
$server->append_conf('postgresql.conf', "wal_buffers = '32kB'\nautovacuum = off");
$observer->quit;
$server->restart;
$server->safe_psql('postgres', 'VACUUM (FREEZE)');
$server->safe_psql('postgres', 'CHECKPOINT');
$observer = $server->background_psql('postgres');
my $some_id = $server->safe_psql('postgres', "SET snowflake.max_wait = -1; $nextval");
$clock->step(600);
$clock->slow_disk(3600);
my $flushing = start_psql(q{SELECT pg_logical_emit_message(true, 'test', 'flushed') IS NULL});
await($flushing, q{lower(wait_event) IN ('walsync', 'walwrite')}, 'pid');
my $filling = start_psql(q{SELECT count(pg_logical_emit_message(false, 'test', repeat('x', 8000))) FROM generate_series(1, 20)});
await($filling, q{wait_event_type = 'LWLock'}, 'pid');
$writer = start_psql("SET snowflake.max_wait = -1; $nextval");
await($writer, q{wait_event_type = 'LWLock'}, 'pid');
my $origins = start_psql('SELECT count(*) FROM pg_replication_origin_status');
like(await($origins, q{wait_event_type = 'LWLock'}, 'wait_event'), qr/^ReplicationOrigin/, 'the lock of the replication origins is held');
for ([ 'SELECT count(*) FROM pg_stat_snowflake', '2' ],
	[ 'SELECT count(*) >= 0 FROM pg_stat_snowflake_horizon', 't' ],
	[ 'SELECT count(*) FROM sno_snapshot()', '1' ],
	[ 'SELECT snowflake_server_machine_id()', '5' ],
	[ q{SELECT snowflake_check_layout() IS NULL, 'answered'}, 'answered' ],
	[ "SELECT snowflake_machine_id($some_id), snowflake_timestamp($some_id)", '5\|20' ],
	[ "SELECT $some_id < snowflake_boundary('2100-01-01')", 't' ],
	[ 'SELECT snowflake_horizon()', '\d{10}' ],
	[ "SET snowflake.max_wait = '10ms'; $nextval", 'ERROR:  53400: could not write the reservation' ])
{
	my ($call, $answer) = @$_;
	my $best = 'inf';

	for (1 .. 3)
	{
		my $took = excess(start_call("$begin\n$call; $end"), qr/$answer/, 0);

		$best = $took if $took < $best;
		last if $best < $bound;
	}
	cmp_ok($best, '<', $bound, "behind a disk: $call");
}
$clock->slow_disk(0);
is(finish($filling), "20\n", 'the disk is fast again');
like(finish($writer), qr/^\d+$/, 'the reservation is written');
finish($_) for $flushing, $origins;

# A stop in mode fast ends the sessions that wait.
$writer = start_writer();
my @waiting = map { start_psql($nextval) } 1 .. 4;
await($_, $named ? "wait_event = 'SnowflakeReservation'" : "wait_event_type = 'Extension'", 'pid') for @waiting;
my $log = -s $server->logfile;
kill 'INT', postmaster($server);
is((grep { finish($_) =~ /terminating connection/ } @waiting), 4, 'a stop ends the sessions that wait');
$clock->slow_disk(0);
finish($writer);
wait_for_log($server, $log, qr/database system is shut down/, 'the server stops');
wait_until(sub { !-e $server->data_dir . '/postmaster.pid' });
$server->_update_pid(0);    # as after its method stop

# The lease, if the registry does not answer.
my $false = FalseRegistry->new;
$server = snowflake_server('leased', "snowflake.registry = '" . $false->conninfo . " connect_timeout=600'");
$observer = $server->background_psql('postgres');
ends_in_time('Lease', $nextval, qr/55000: could not generate a Snowflake ID before the first answer of the registry/);
$observer->quit;
$server->stop;

done_testing();
