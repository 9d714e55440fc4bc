# One horizon for several servers (docs/change-feeds-recovery.md): a coordinator inserts rows through postgres_fdw into
# two shards, which insert rows as well.  Rows that are in flight hold the horizon back, and late ones are
# refused, also after crashes, failovers, and by a server whose clock is behind.  A reader on the
# coordinator processes each row once.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $page = slurp_file("$FindBin::RealBin/../docs/change-feeds-recovery.md");
my ($statements) = $page =~ /```sql\n(CREATE PROCEDURE advance_horizon.*?)CALL advance_horizon\(\);\n```/s;
ok($statements, 'the page has the statements');

my $clock = TestClock->new;
my %shards = (shard1 => snowflake_server('shard1', { init => [ allows_streaming => 1 ] }, 'snowflake.machine_id = 2', 'max_prepared_transactions = 5'),
	shard2 => snowflake_server('shard2', { clock => $clock }, 'snowflake.machine_id = 3'));
my $coordinator = snowflake_server('coordinator', 'snowflake.machine_id = 1');
my @all = ($coordinator, map { $shards{$_} } sort keys %shards);
my $late = qr/the ID of the row is below the horizon/;

$coordinator->safe_psql('postgres', q{
	CREATE EXTENSION postgres_fdw;
	CREATE EXTENSION dblink;
	CREATE TABLE events (id bigint NOT NULL DEFAULT snowflake_nextval(), shard text NOT NULL, body text) PARTITION BY LIST (shard)});
for my $shard (sort keys %shards)
{
	$shards{$shard}->safe_psql('postgres', q{
		CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), shard text NOT NULL, body text);
		SELECT snowflake_enable_feed('events')});
	$coordinator->safe_psql('postgres', sprintf(q{
		CREATE SERVER %1$s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%2$s', port '%3$s', dbname 'postgres');
		CREATE USER MAPPING FOR CURRENT_USER SERVER %1$s;
		CREATE FOREIGN TABLE events_%1$s PARTITION OF events FOR VALUES IN ('%1$s') SERVER %1$s OPTIONS (table_name 'events')},
			$shard, $shards{$shard}->host, $shards{$shard}->port));
}

# What the functions return and refuse; nothing is promised before the first promise.
my $horizon = 'SELECT snowflake_horizon()';
my ($before) = map { $_->safe_psql('postgres', $horizon) } $coordinator;
cmp_ok($coordinator->safe_psql('postgres', $horizon), '>=', $before, 'a server without a promise has a horizon of its own');
fails_with($coordinator, 'SELECT snowflake_promise_horizon(-1)', '22023', qr/cannot promise -1 as a horizon/, qr/HINT:  Use the least number that snowflake_propose_horizon/);
fails_with($coordinator, 'SELECT snowflake_promise_horizon(9223372036854775807)', '22023', qr/cannot promise 9223372036854775807 as a horizon/);
is($coordinator->safe_psql('postgres', 'SELECT snowflake_promise_horizon(NULL) IS NULL'), 't', 'null is no proposal');
$coordinator->safe_psql('postgres', "$statements SELECT snowflake_promise_horizon(1)");
is($coordinator->safe_psql('postgres', 'SELECT snowflake_promise_horizon(1)'), '0', 'nothing is promised below a horizon that was returned');
$before = $coordinator->safe_psql('postgres', $horizon);
$coordinator->safe_psql('postgres', 'SELECT snowflake_nextval()');
is($coordinator->safe_psql('postgres', $horizon), $before, 'until the first promise, the horizon does not advance');

# A promise that is below a horizon that was returned before admits no row below that horizon, also after a crash.
$coordinator->safe_psql('postgres', q{CREATE TABLE local (id bigint PRIMARY KEY); SELECT snowflake_enable_feed('local')});
fails_with($coordinator, "INSERT INTO local VALUES ($before - 1)", '55000', $late);
$coordinator->stop('immediate');
$coordinator->start;
fails_with($coordinator, "INSERT INTO local VALUES ($before - 1)", '55000', $late);
$coordinator->safe_psql('postgres', 'DROP TABLE local');

sub advance { return $coordinator->safe_psql('postgres', "CALL advance_horizon(); $horizon"); }

sub insert
{
	my ($server, $shard, $body) = @_;

	return $server->safe_psql('postgres', "INSERT INTO events (shard, body) VALUES ('$shard', '$body')");
}

# The rows below the horizon that were not read yet.
my $position = 0;

sub reads
{
	my ($expected, $name) = @_;
	my $next = advance();

	cmp_ok($next, '>=', $position, "$name: the horizon does not go back");
	is($coordinator->safe_psql('postgres', "SELECT string_agg(body, ' ' ORDER BY body) FROM events WHERE id >= $position AND id < $next"), $expected, $name);
	$position = $next;
}

insert($coordinator, 'shard1', 'a');
insert($coordinator, 'shard2', 'b');
insert($shards{shard1}, 'shard1', 'c');
insert($shards{shard2}, 'shard2', 'd');
reads('a b c d', 'rows of three servers');
fails_with($coordinator, "BEGIN ISOLATION LEVEL REPEATABLE READ; $horizon", '25000', qr/snowflake_horizon\(\) must be called in a READ COMMITTED transaction/, qr/DETAIL:  This server has made promises/);
is($shards{shard1}->safe_psql('postgres', $horizon), $position, 'a shard returns its last promise');

# An open transaction of any server, in any database, holds the horizon back, whatever is proposed; its rows are not
# refused, even if a shard was asked for its own horizon.
$shards{shard2}->safe_psql('postgres', 'CREATE DATABASE other');
$shards{shard2}->safe_psql('other', 'CREATE EXTENSION snowflake; CREATE TABLE events (id bigint, shard text, body text)');
for my $open ([ $coordinator, 'postgres', 'a open' ], [ $shards{shard2}, 'other', 'b' ])
{
	my ($server, $database, $expected) = @$open;
	my $session = $server->background_psql($database);
	my $first = $session->query_safe('BEGIN; SELECT snowflake_nextval()');
	my ($body) = $expected =~ /^(\w+)/;

	insert($coordinator, 'shard2', $body);
	reads('', 'a transaction on ' . $server->name . ' is open');
	my $later = $shards{shard1}->safe_psql('postgres', 'SELECT snowflake_propose_horizon()');
	cmp_ok($later, '>', $first, 'a later proposal');
	cmp_ok($server->safe_psql('postgres', "SELECT snowflake_promise_horizon($later)"), '<=', $first, 'is not promised');
	$shards{shard1}->safe_psql('postgres', $horizon);
	$session->query_safe("INSERT INTO events (id, shard, body) VALUES ($first, 'shard1', 'open'); COMMIT");
	$session->quit;
	reads($expected, 'and has ended');
}

# A proposal has no effect.  An ID whose transaction has ended, such as the ID of a statement that was cancelled on the
# coordinator and is still on its way: until its server has promised more, the row is admitted and holds the horizon
# back, also while it is prepared, over a crash.
sub fetch_id { return $coordinator->safe_psql('postgres', 'SELECT snowflake_nextval()'); }

my $id = fetch_id();
$_->safe_psql('postgres', 'SELECT snowflake_propose_horizon()') for @all;
my $session = $shards{shard1}->background_psql('postgres');
$session->query_safe("BEGIN; INSERT INTO events VALUES ($id, 'shard1', 'admitted')");
insert($coordinator, 'shard1', 'e');
reads('', 'a row whose ID was issued earlier');
$session->query_safe("PREPARE TRANSACTION 'p'");
$session->quit;
insert($coordinator, 'shard1', 'f');
reads('', 'and while it is prepared');
crash($shards{shard1});
$shards{shard1}->start;
reads('', 'and after a crash');
$shards{shard1}->safe_psql('postgres', "COMMIT PREPARED 'p'");
reads('admitted e f', 'and after its commit');

# A late row is refused, also after a crash of the shard; the shard remembers the promise.
$id = fetch_id();
insert($coordinator, 'shard2', 'g');
reads('g', 'a horizon above an ID that is on its way');
my $late_row = "INSERT INTO events VALUES ($id, 'shard1', 'late')";
fails_with($shards{shard1}, $late_row, '55000', $late);
crash($shards{shard1});
$shards{shard1}->start;
fails_with($shards{shard1}, $late_row, '55000', $late);
is($shards{shard1}->safe_psql('postgres', $horizon), $position, 'and the last promise is what it was before the crash');

# A server that is started far ahead of the others refuses none of their rows.
$shards{shard1}->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '1 min')");
crash($shards{shard1});
$shards{shard1}->start;
insert($coordinator, 'shard1', 'h');
reads('h', 'a shard whose IDs are ahead');
move_back($shards{shard1}, 'now()');

# As soon as a server does not answer, the horizon remains.  A promise that was made by others by then does no harm.
$shards{shard2}->stop;
insert($coordinator, 'shard1', 'i');
fails_with($coordinator, "CALL advance_horizon()", '08001', qr/could not establish connection/);
is($coordinator->safe_psql('postgres', $horizon), $position, 'the last result');
$shards{shard2}->start;
reads('i', 'a server answers again');

# A server whose clock is behind is raised to the horizon, and issues nothing below.
$shards{shard2}->stop;
$coordinator->safe_psql('postgres', 'ALTER SERVER shard2 RENAME TO away');
my $without = advance();
$clock->set(-1800);
$shards{shard2}->safe_psql('postgres', '') if $shards{shard2}->start;
$shards{shard2}->safe_psql('postgres', "SELECT snowflake_move_back(clock_timestamp())");
fails_with($shards{shard2}, "SELECT snowflake_promise_horizon($_)", '55000', qr/the generator of Snowflake IDs is closed until the server is restarted/) for $without, 0;
$shards{shard2}->restart;
cmp_ok(insert($shards{shard2}, 'shard2', '') . $shards{shard2}->safe_psql('postgres', 'SELECT snowflake_nextval()'), '<', $without, 'a server is behind');
cmp_ok($shards{shard2}->safe_psql('postgres', $horizon), '<', $position, 'and its promises have ended, as it was moved back');
$shards{shard2}->safe_psql('postgres', 'TRUNCATE events');
$coordinator->safe_psql('postgres', 'ALTER SERVER away RENAME TO shard2');
my $behind = $shards{shard2}->background_psql('postgres');
my $below = $behind->query_safe('BEGIN; SELECT snowflake_nextval()');
fails_with($coordinator, 'CALL advance_horizon()', 'P0001', qr/a server cannot promise the last horizon/);
is($coordinator->safe_psql('postgres', $horizon), $without, 'a transaction below the horizon is open on a server that is behind');
$behind->query_safe("INSERT INTO events VALUES ($below, 'shard2', 'below'); ROLLBACK");
$behind->quit;
advance();
fails_with($shards{shard2}, 'SET snowflake.max_wait = 0; SELECT snowflake_nextval()', '53400', qr/could not generate/);
fails_with($shards{shard2}, "INSERT INTO events VALUES ($without - 1, 'shard2', 'late')", '55000', $late);
$clock->set(0);
insert($shards{shard2}, 'shard2', 'j');
reads('j', 'a server that was behind');
like(slurp_file($shards{shard2}->logfile), qr/the generator of Snowflake IDs was raised to the horizon of other servers\n.*DETAIL:  The horizon is \d+/, 'the log has it');

# A standby makes no promises; when it is promoted, it has the promises of its primary.
$shards{shard1}->backup('backup');
my $standby = snowflake_server('standby', { backup => [ $shards{shard1}, 'backup', has_streaming => 1 ] }, 'snowflake.machine_id = 4');
fails_with($standby, 'SELECT snowflake_promise_horizon(1)', '25006', qr/cannot execute snowflake_promise_horizon\(\) during recovery/);
fails_with($standby, 'SELECT snowflake_propose_horizon()', '25006', qr/cannot execute snowflake_propose_horizon\(\) during recovery/);
$id = fetch_id();
insert($coordinator, 'shard2', 'k');
reads('k', 'before a failover');
$shards{shard1}->wait_for_catchup($standby);
crash($shards{shard1});
$standby->promote;
fails_with($standby, $late_row, '55000', $late);
fails_with($standby, "INSERT INTO events VALUES ($id, 'shard1', 'late')", '55000', $late);
$coordinator->safe_psql('postgres', "ALTER SERVER shard1 OPTIONS (SET host '" . $standby->host . "', SET port '" . $standby->port . "')");
$shards{shard1} = $standby;
insert($coordinator, 'shard1', 'l');
reads('l', 'after it');

# Writers on all servers, and a reader on the coordinator, while sessions are terminated and a shard crashes.  Without such a
# fault, no row is refused.
$coordinator->safe_psql('postgres', q{
	CREATE TABLE consumers (consumer text PRIMARY KEY, next_id bigint NOT NULL);
	CREATE TABLE processed (id bigint);
	CREATE PROCEDURE process() LANGUAGE plpgsql AS $$
	DECLARE
		first_id bigint;
		next_id bigint;
	BEGIN
		FOR i IN 1 .. 20 LOOP
			CALL advance_horizon();
			COMMIT;
			CALL snowflake_process('consumers', 'all', 'INSERT INTO processed SELECT id FROM events WHERE id >= $1 AND id < $2',
				NULL, NULL, true, first_id, next_id);
			COMMIT;
		END LOOP;
	END $$});

sub count_of { return $coordinator->safe_psql('postgres', "SELECT count(*) FROM $_[0]"); }

my $write = q{DO $$ BEGIN LOOP
	INSERT INTO events (shard, body) SELECT (ARRAY['%1$s', '%2$s'])[1 + random()::int], 'first';
	PERFORM pg_sleep(random() * 0.01);
	INSERT INTO events (shard, body) SELECT (ARRAY['%1$s', '%2$s'])[1 + random()::int], 'second' FROM generate_series(1, 3);
	IF random() < 0.1 THEN ROLLBACK; ELSE COMMIT; END IF;
END LOOP; END $$};
my %errors;

for my $round ('without a fault', 'a crash of a shard')
{
	my $rows = count_of('processed');
	my @writers = map { my ($server, @on) = @$_; map { \my $output; my $run = { error => '' };
			$run->{run} = IPC::Run::start([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr('postgres'), '-c', sprintf($write, @on) ], '>', '/dev/null', '2>', \$run->{error}); $run } 1 .. 2 }
	  [ $coordinator, 'shard1', 'shard2' ], [ $shards{shard1}, 'shard1', 'shard1' ], [ $shards{shard2}, 'shard2', 'shard2' ];

	ok(wait_until(sub { $coordinator->safe_psql('postgres', 'CALL process()'); count_of('processed') > $rows + scaled(2000, 500) }), "$round: rows are processed");
	crash($shards{shard2}) if $round =~ /crash/;
	$_->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %' AND pid <> pg_backend_pid()})
	  for grep { $round !~ /crash/ || $_ != $shards{shard2} } $coordinator, values %shards;
	$_->{run}->finish for @writers;
	$shards{shard2}->start if $round =~ /crash/;
	$errors{$round} = join '', map { $_->{error} } @writers;
}
unlike($errors{'without a fault'}, $late, 'no row is refused without a fault');
my $last = count_of('events');
ok(wait_until(sub { $coordinator->safe_psql('postgres', 'CALL process()'); $coordinator->safe_psql('postgres', "SELECT next_id > (SELECT max(id) FROM events) FROM consumers") eq 't' }), 'the reader reaches the end');
is($coordinator->safe_psql('postgres', 'SELECT count(*) FILTER (WHERE e.id IS NULL OR p.id IS NULL), count(p.id) - count(DISTINCT p.id) FROM events e FULL JOIN processed p USING (id)'), '0|0',
	'no row is missed, and none is read twice');
note("$last rows");

# The promises end: the server has a horizon of its own again.
$before = $coordinator->safe_psql('postgres', $horizon);
is($coordinator->safe_psql('postgres', 'SELECT snowflake_promise_horizon(0)'), '0', 'the promises end');
$id = fetch_id();
cmp_ok($coordinator->safe_psql('postgres', $horizon), '>', $id, 'the horizon is again that of the server');
$coordinator->restart;
cmp_ok($coordinator->safe_psql('postgres', $horizon), '>', $id, 'also after a restart');

# The end of the reservation is lost, and the promise is not: IDs begin above the promise, whatever the floor is.
$coordinator->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '1 hour')");
my $ahead = $coordinator->safe_psql('postgres', 'SELECT snowflake_promise_horizon(snowflake_propose_horizon())');
is($coordinator->safe_psql('postgres', "SELECT snowflake_timestamp($ahead) > now() + interval '50 min'"), 't', 'a promise ahead of the clock');
$coordinator->safe_psql('postgres', q{SET allow_system_table_mods = on; INSERT INTO pg_replication_origin VALUES (65533, 'end'); SELECT pg_replication_origin_drop('end')});
$coordinator->restart;
fails_with($coordinator, 'SELECT snowflake_nextval()', '55000', qr/the durable state of Snowflake IDs is missing/);
$coordinator->safe_psql('postgres', 'SELECT snowflake_set_floor(now())');
cmp_ok($coordinator->safe_psql('postgres', 'SELECT snowflake_propose_horizon()'), '>', $ahead, 'IDs begin above it');

# They end with another layout, whose IDs cannot be compared with the promise.
my $promise = $coordinator->safe_psql('postgres', 'SELECT snowflake_promise_horizon(snowflake_propose_horizon())');
is($coordinator->safe_psql('postgres', $horizon), $promise, 'a promise');
restart_with_layout($coordinator, 'epoch=2010-01-01 tick=1s timestamp=33 machine=10 sequence=20');
isnt($coordinator->safe_psql('postgres', $horizon), $promise, 'ends when another layout is accepted');

$_->stop for $coordinator, values %shards;
done_testing();
