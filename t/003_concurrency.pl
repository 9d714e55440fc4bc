# Many sessions at once: 64 of them take 20 million IDs as defaults of several
# tables in two databases.  No ID is issued twice, and each session's increase.
# SNOWFLAKE_TEST_SCALE lowers the numbers of IDs.
#
# Then a race for the cursor: in a layout whose batches have one ID each, so that each ID
# is a swap of it.
#
# Then a client whose transactions are run by two sessions in turn, as behind a pooler.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $sessions = 64;
my $statements = 16;
my $rows = scaled(20_000, 100);
my $ids_per_session = $statements * $rows;
my @databases = ('one', 'two');
my @tables = ('orders', 'items', 'events', 'users');

my $server = snowflake_server('main', 'snowflake.machine_id = 3', 'max_connections = 100',
	'snowflake.max_wait = -1', 'shared_buffers = 256MB', 'wal_level = minimal', 'max_wal_senders = 0',
	'autovacuum = off', 'max_wal_size = 8GB');

for my $database (@databases)
{
	$server->safe_psql('postgres', "CREATE DATABASE $database");
	$server->safe_psql($database, 'CREATE EXTENSION snowflake');
	$server->safe_psql($database,
		"CREATE UNLOGGED TABLE $_ (id bigint DEFAULT snowflake_nextval(), session integer, n integer)") for @tables;
}

# Each session has one database and goes through its tables, in several
# statements, so that batches end both within statements and between them.
my @running;
for my $session (0 .. $sessions - 1)
{
	my $script = join("\n", map {
		my $table = $tables[ ($session + $_) % @tables ];
		my $first = $_ * $rows;
		"INSERT INTO $table (session, n) SELECT $session, $first + i FROM generate_series(1, $rows) i;"
	} 0 .. $statements - 1);
	my $messages = '';
	push @running, {
		messages => \$messages,
		process => IPC::Run::start(
			[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr($databases[ $session % @databases ]) ],
			'<', \$script, '>', \my $output, '2>', \$messages) };
}
my $failed = 0;
for (@running)
{
	$failed++ unless $_->{process}->finish && ${ $_->{messages} } eq '';
}
is($failed, 0, "$sessions sessions end without an error");

# All IDs in one place: the IDs of the other database are copied.
my ($here, $there) = @databases;
my $all = join(' UNION ALL ', map { "SELECT * FROM $_" } @tables);
my $bindir = $server->config_data('--bindir');
my @psql = ("$bindir/psql", '-Xq', '-h', $server->host, '-p', $server->port);
$server->safe_psql($here, "CREATE UNLOGGED TABLE copied (id bigint, session integer, n integer); CREATE VIEW ids AS $all UNION ALL SELECT * FROM copied");
IPC::Run::run([ @psql, '-d', $there, '-c', "COPY ($all) TO STDOUT (FORMAT binary)" ], '|', [ @psql, '-d', $here, '-c', 'COPY copied FROM STDIN (FORMAT binary)' ])
  or die 'cannot copy';
my $total = $sessions * $ids_per_session;
cmp_ok($total, '>=', scaled(20_000_000, 100_000), "$total IDs");
my $prepare = "SET work_mem = '1GB'; SET max_parallel_workers_per_gather = 0;";
my ($count, $twice, $foreign) = split /\|/, $server->safe_psql($here, qq{$prepare
	SELECT count(*), count(*) FILTER (WHERE id = before), count(*) FILTER (WHERE snowflake_machine_id(id) <> 3)
	FROM (SELECT id, lag(id) OVER (ORDER BY id) AS before FROM ids) a});
is($count, $total, 'all are stored');
is($twice, '0', 'no ID is issued twice');
is($foreign, '0', 'all have the machine ID');

# Sorting by one number takes half the time of sorting by two.
is($server->safe_psql($here, qq{$prepare
		SELECT count(*) FROM (
			SELECT id, place, lag(id) OVER by_place AS before, lag(place) OVER by_place AS place_before
			FROM (SELECT id, session::bigint << 32 | n AS place FROM ids) i
			WINDOW by_place AS (ORDER BY place)) a
		WHERE id <= before AND place >> 32 = place_before >> 32}),
	'0', 'the IDs of each session increase');

# The race: a tick has 64 IDs, and a batch a 64th of them.  Sessions issue IDs
# as fast as they can, without a row written in between.
restart_with_layout($server, 'epoch=2024-01-01 tick=10us timestamp=51 machine=4 sequence=6');
$server->safe_psql('postgres', 'CREATE UNLOGGED TABLE raced (ids bigint[])');
my $racers = 8;
my $ids_per_racer = scaled(500_000, 5_000);
my @racing = map {
	IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr('postgres'), '-c',
			"INSERT INTO raced SELECT array_agg(id) FROM (SELECT snowflake_nextvals($ids_per_racer) AS id) a" ])
} 1 .. $racers;
is(scalar(grep { !$_->finish } @racing), 0, "$racers sessions race without an error");
is($server->safe_psql('postgres', "$prepare SELECT count(*), count(DISTINCT id) FROM raced, unnest(ids) id"),
	join('|', ($racers * $ids_per_racer) x 2), 'no ID is issued twice');

# Their readings of the clock reach shared memory in any order, which does not count as
# a step back.
is($server->safe_psql('postgres', 'SELECT ids_allocated, clock_regressions FROM pg_stat_snowflake WHERE generator = \'bigint\''),
	$racers * $ids_per_racer . '|0', 'all are counted, and no step back of the clock');

# In turn: in ticks of a second, so that few batches end because their tick has passed.
restart_with_layout($server, 'epoch=2024-01-01 tick=1s timestamp=33 machine=8 sequence=22');
my $allocated = "SELECT ids_allocated FROM pg_stat_snowflake WHERE generator = 'bigint'";
my @sessions_of_client = map { $server->background_psql('postgres') } 1, 2;
my @increasing;
for my $statement ('SELECT snowflake_nextval()', 'SELECT snowflake_nextvals(3)')
{
	$_->query("$statement; $statement; $statement") for @sessions_of_client;
	my $before = $server->safe_psql('postgres', $allocated);
	for my $turn (1 .. 50)
	{
		push @increasing, split /\n/, $sessions_of_client[ $turn % 2 ]->query("BEGIN; $statement; COMMIT");
	}
	my $ids = 50 * ($statement =~ /3/ ? 3 : 1);
	cmp_ok($server->safe_psql('postgres', $allocated) - $before, '<=', $ids + 10, "$statement in 50 transactions: no more IDs are taken");
}
is(scalar(@increasing), 200, 'IDs of a client with two sessions');
for my $turn (1 .. 50)
{
	my $count = 1 + $turn % 3;    # a session that has issued 3 IDs takes a batch of 3, and uses fewer
	push @increasing, split /\n/, $sessions_of_client[ $turn % 2 ]->query("BEGIN; SELECT snowflake_nextvals($count); COMMIT");
}
is(scalar(@increasing), 301, 'and of its transactions of 1 to 3 IDs');
is(scalar(grep { $increasing[$_] <= $increasing[ $_ - 1 ] } 1 .. $#increasing), 0, 'they increase');
$_->quit for @sessions_of_client;
$server->stop;

done_testing();
