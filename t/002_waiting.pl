# Waiting for the clock: seen, interrupted, limited; a wait that ends early leaves nothing
# behind, and no ID is issued twice.
#
# The layout has two IDs in a tick of a second, so that waits are long enough to be observed.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $slow = 'epoch=2024-01-01T00:00:00Z tick=1s timestamp=33 machine=10 sequence=1';
my $server = snowflake_server('main', 'snowflake.machine_id = 1', 'snowflake.max_ahead = 0',
	"snowflake.layout = '$slow'");

# Issues IDs until it is stopped, and reports each of them.
my $endless = 'DO $$ BEGIN LOOP RAISE NOTICE \'id %\', snowflake_nextval(); END LOOP; END $$;';
my %seen;

# Note the IDs in a session's messages; returns their number.
sub note_ids
{
	my ($messages) = @_;
	my @ids = $messages =~ /NOTICE:  (?:\w+: )?id (\d+)/g;

	$seen{$_}++ for @ids;
	return scalar @ids;
}

# Start a session that issues IDs without a time limit, let it reach a wait, do
# something to the session, and expect it to end.
sub interrupted
{
	my ($query, $ended, $name) = @_;
	my $messages = '';
	my $session = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $server->connstr('postgres') . ' application_name=waiter', '-c', 'SET snowflake.max_wait = -1', '-c', $endless ],
		'2>', \$messages);

	ok( $server->poll_query_until('postgres',
			"SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE application_name = 'waiter'"),
		"$name: the wait is a wait event");
	$server->safe_psql('postgres', "SELECT $query(pid) FROM pg_stat_activity WHERE application_name = 'waiter'");
	$session->finish;
	like($messages, $ended, "$name: ended");
	note_ids($messages);
}

interrupted('pg_cancel_backend', qr/ERROR:  57014:/, 'cancel');
interrupted('pg_terminate_backend', qr/FATAL:  57P01:/, 'terminate');

# A timeout, after which the same session continues.
my ($status, $stdout, $stderr) = $server->psql('postgres', <<"SQL", on_error_stop => 0);
\\set VERBOSITY verbose
SET statement_timeout = '1500ms';
$endless
$endless
SET statement_timeout = 0;
DO \$\$ BEGIN FOR i IN 1..4 LOOP RAISE NOTICE 'id %', snowflake_nextval(); END LOOP; END \$\$;
SQL
is(scalar(() = $stderr =~ /ERROR:  57014:.*statement timeout/g), 2, 'statement_timeout ends a wait, twice');
cmp_ok(note_ids($stderr), '>=', 6, 'the session continues');

# Without a wait, for more IDs at once than three ticks have.
my $burst = 'DO $$ BEGIN FOR i IN 1..7 LOOP RAISE NOTICE \'id %\', snowflake_nextval(); END LOOP; END $$;';
($status, $stdout, $stderr) = $server->psql('postgres', "\\set VERBOSITY verbose\nSET snowflake.max_wait = 0; $burst");
like($stderr, qr/ERROR:  53400: could not generate a Snowflake ID within 0 ms/, 'max_wait = 0');
like($stderr, qr/DETAIL:  The next ID can be issued in \d+(?:\.\d)? (?:ms|us|s)\.  The time of an ID can be at most \d+ (?:ms|s) ahead of the system clock\./, 'with the numbers');
like($stderr, qr/DETAIL:  .*Sessions request more IDs .*\nHINT:  To wait longer, increase "snowflake.max_wait"\./, 'with the setting');
note_ids($stderr);

# A limit below a tick, one above it, and none.
($status, $stdout, $stderr) = $server->psql('postgres', "SET snowflake.max_wait = 20; $burst");
like($stderr, qr/could not generate a Snowflake ID within 20 ms/, 'max_wait = 20ms');
note_ids($stderr);
for my $limit ('3s', '1min', '-1')
{
	($status, $stdout, $stderr) = $server->psql('postgres', "SET snowflake.max_wait = '$limit'; $burst");
	is($status, 0, "max_wait = $limit: all IDs are issued");
	is(note_ids($stderr), 7, "max_wait = $limit: and are reported");
}

cmp_ok(scalar(keys %seen), '>', 25, 'IDs were seen');
is(scalar(grep { $seen{$_} > 1 } keys %seen), 0, 'no ID was issued twice');

# The limit is logged, once a minute at most; and the layout is far from its end.
my $limit = qr/LOG:  the Snowflake layout "\Q$slow\E" has been at its limit for a second\n.*DETAIL:  This server can issue 2 IDs in each tick of 1 s; further calls wait/;
my $log = slurp_file($server->logfile);
cmp_ok(scalar(() = $log =~ /$limit/g), '>=', 1, 'a lasting overflow is logged');
cmp_ok(scalar(() = $log =~ /$limit/g), '<=', 1 + (time - $^T) / 60, 'once a minute at most');
unlike($log, qr/last timestamp/, 'no warning of the end');

# IDs ahead of the clock, as far as allowed and no further.
configure($server, 'snowflake.max_ahead', 5000);
is( $server->safe_psql('postgres', <<'SQL'), '9|t|t', 'max_ahead is used, and kept to');
SET snowflake.max_wait = 0;
CREATE TABLE ahead AS SELECT snowflake_nextval() AS id, clock_timestamp() AS at FROM generate_series(1, 9);
SELECT count(DISTINCT id), max(snowflake_timestamp(id) - at) > interval '1 s', max(snowflake_timestamp(id) - at) <= interval '5 s' FROM ahead
SQL

# After the end of the timestamp's bits waiting is of no use: an error.
restart_with_layout($server, 'epoch=2000-01-01 tick=1s timestamp=20 machine=10');
fails_with($server, 'SELECT snowflake_nextval()', '2200H',
	qr/reached the last timestamp of the Snowflake layout "/,
	qr/The last tick of the layout ends at 2000-01-13 03:16:16/, qr/HINT:  Check the clock .*"snowflake.layout"\.  IDs of two layouts can be equal/);

log_matches($server, 0, qr/WARNING:  the Snowflake layout "epoch=2000-01-01 .*" reaches its last timestamp at 2000-01-13 03:16:16/, 'and a warning at the start');

# Before their beginning: like any clock that is behind.
restart_with_layout($server, 'epoch=2200-01-01 tick=1s timestamp=32 machine=10');
fails_with($server, 'SET snowflake.max_wait = 10; SELECT snowflake_nextval()', '53400',
	qr/could not generate a Snowflake ID within 10 ms/, qr/The clock is behind, was ahead when earlier IDs were issued, or /);

# The floor can be set when the generator has been opened and has issued nothing.
$server->safe_psql('postgres', "SELECT snowflake_set_floor('2200-01-02')");
is($server->safe_psql('postgres', 'SELECT floor, reserved_until FROM pg_stat_snowflake WHERE generator = \'bigint\''), '2200-01-02 00:00:00+00|2200-01-02 00:00:00+00', 'the floor before the first ID');

# In such a wait, of 170 years, only the wait itself checks for interrupts.
interrupted('pg_cancel_backend', qr/ERROR:  57014:/, 'cancel a long wait');
interrupted('pg_terminate_backend', qr/FATAL:  57P01:/, 'terminate a long wait');
fails_with($server, "SET snowflake.max_wait = -1; SET statement_timeout = 100; SELECT snowflake_nextval()", '57014',
	qr/statement timeout/);
$server->stop;

# A session that waits is not passed by one that does not: until it has its ID, others can be ahead of
# the clock by half of max_ahead.  The clock stands still, and the session that waits is stopped before
# the clock reaches the time at which its ID can be issued.
my $clock = TestClock->new;
$server = snowflake_server('passed', { clock => $clock }, 'snowflake.machine_id = 1', 'snowflake.max_ahead = 1s');
my $now = $clock->freeze;
$server->safe_psql('postgres', q{SELECT snowflake_set_floor(now() + interval '1050 ms')});
my $id = '';
my $waiting = IPC::Run::start([ 'psql', '-XAtq', '-d', $server->connstr('postgres') . ' application_name=waiter', '-c', 'SET snowflake.max_wait = -1', '-c', 'SELECT snowflake_nextval()' ],
	'>', \$id);
my $pid = wait_until(sub { $server->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'waiter' AND wait_event_type = 'Extension'") });
kill 'STOP', $pid;
$clock->freeze($now + 0.052);
fails_with($server, 'SET snowflake.max_wait = 0; SELECT snowflake_nextval()', '53400', qr/could not generate a Snowflake ID within 0 ms/, qr/The next ID can be issued in 49\d.* ms\./);
kill 'CONT', $pid;
$waiting->finish;
chomp $id;
is($server->safe_psql('postgres', "SET snowflake.max_wait = 0; SELECT snowflake_nextval() > $id"), 't', 'a session that waits is issued its ID before one that does not');
$server->stop;

done_testing();
