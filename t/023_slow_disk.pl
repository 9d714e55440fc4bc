# A disk on which each flush of WAL takes long: IDs are issued, with few flushes.  A disk that stalls
# once: the next start does not wait for long.  (025_interrupts.pl tests the calls that wait for the
# process that flushes.)
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
	$server->safe_psql('postgres', q{SELECT pg_sleep(extract(epoch FROM reserved_until - clock_timestamp())) FROM pg_stat_snowflake WHERE generator = 'bigint' AND reserved_until > clock_timestamp()});
	$server->poll_query_until('postgres', q{SELECT (reserved_until < clock_timestamp()) IS NOT FALSE FROM pg_stat_snowflake WHERE generator = 'bigint'});
}

# Start psql with a command.
sub start_psql
{
	my ($command) = @_;
	my $output = '';
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $server->connstr('postgres'), '-c', $command ],
		'<', '/dev/null', '>&', \$output);

	return { run => $run, output => \$output };
}

sub finish
{
	my ($session) = @_;

	$session->{run}->finish;
	return ${ $session->{output} };
}

# IDs are issued however long a flush takes, and the number of flushes does not grow with the number of the ticks.  The
# reservation is a second at first, and is doubled with each flush, until it is longer than a flush; one more write may
# have begun before.  A reservation is extended when half of it has passed, so a load that takes long has two writes a
# second at most.
$server->safe_psql('postgres', $nextval);
for my $delay (0.2, 0.6, 1.1, 5)
{
	my @sessions;
	my $most = 2;

	for (my $length = 1; $length <= $delay; $length *= 2) { $most++; }
	pass_reservation();
	$clock->slow_disk($delay);
	my $before = $server->safe_psql('postgres', $writes);
	like($server->safe_psql('postgres', $nextval), qr/^\d+$/, "one session, and a flush of $delay s: an ID");
	cmp_ok($server->safe_psql('postgres', $writes) - $before, '<=', $most, "after $most writes at most");
	pass_reservation();
	push @sessions, start_psql($nextval) for 1 .. 30;
	is((grep { finish($_) =~ /^\d+$/ } @sessions), 30, "30 sessions, and a flush of $delay s: an ID for each");
	if ($delay < 5)
	{
		my $began = time;

		$before = $server->safe_psql('postgres', $writes);
		$server->safe_psql('postgres', 'INSERT INTO items (n) SELECT generate_series(1, 100000)');
		my $written = $server->safe_psql('postgres', $writes) - $before;
		my $seconds = time - $began;
		cmp_ok($written, '<=', $seconds < 4 ? 10 : 2 + 2 * $seconds, 'an INSERT of 100000 rows: ten writes at most');
	}
	$clock->slow_disk(0);
}

# The reservation of a slow disk does not hide that the clock has jumped.
configure($server, 'snowflake.max_clock_step', 1000);
pass_reservation();
$clock->slow_disk(3);
$server->safe_psql('postgres', $nextval);
$clock->slow_disk(0);
ok(wait_until(sub {
	$server->safe_psql('postgres', $nextval);
	$server->safe_psql('postgres', q{SELECT reserved_until - clock_timestamp() > '1.5 s' FROM pg_stat_snowflake WHERE generator = 'bigint'}) eq 't';
}), 'the reservation is longer than max_clock_step');
$clock->step(86400);
fails_with($server, $nextval, '55000', qr/has jumped forward/);
$clock->step(-86400);
like($server->safe_psql('postgres', $nextval), qr/^\d+$/, 'the clock is corrected');
configure($server, 'snowflake.max_clock_step', 3600000);

# The floor of type sno is set while an extension is written and not published: after a crash, under
# a clock that was set back, no ID is below the floor in the other line either.
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

# max_wait limits all attempts of a call, its own flushes included.
pass_reservation();
$clock->slow_disk(3);
my ($status) = $server->psql('postgres', "SET snowflake.max_wait = '100ms'; $nextval");
is($status == 0 || $server->safe_psql('postgres', $nextval) =~ /^\d+$/, 1, 'a call, or the next one, gets an ID');
$clock->slow_disk(0);

# The disk stalls once.  This doubles the reservation, and no more: after a restart or a crash the first
# ID waits for about two seconds.
my $stall = scaled(9, 3);
my %stops = (
	restart => sub { $server->stop('fast') },
	crash => sub { crash($server) });
for my $way (sort keys %stops)
{
	$server->restart;
	$server->safe_psql('postgres', "SET snowflake.max_wait = -1; $nextval");
	pass_reservation();
	$clock->slow_disk(3600);
	my $stalled = start_psql($nextval);
	$server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE lower(wait_event) IN ('walsync', 'walwrite')
		AND backend_type = 'client backend'});
	sleep($stall);
	$clock->slow_disk(0);
	like(finish($stalled), qr/^\d+$/, "the disk stalls for $stall s, and the call is issued an ID");
	$server->safe_psql('postgres', $nextval);
	$stops{$way}->();
	$server->start;
	my $ready = time;
	my $issued = $server->safe_psql('postgres', "SET snowflake.max_wait = -1; $nextval");
	my $took = time - $ready;
	note(sprintf('first ID %.1f s after a stall and a %s', $took, $way));
	cmp_ok($took, '<', 2 + 2 * $stall, "$way: the first ID does not wait for a multiple of the stall");
}

$server->stop;
done_testing();
