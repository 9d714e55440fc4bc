# snowflake_process(): each row is processed once, over crashes, by several callers of one consumer; a
# consumer that is restored from a dump refuses to continue where new rows would be below its position; a
# standby has the position; sessions on both wait for their rows (snowflake_wait_for_consumer()).
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $rounds = scaled(4, 2);
my $server = snowflake_server('main', { init => [ allows_streaming => 1 ] }, 'snowflake.machine_id = 5', 'max_prepared_transactions = 10');

# Transactions of one to three rows, of which some are rolled back or take longer; consumers that wait for
# each other or do not, in steps of the time in the IDs or up to the horizon.
$server->safe_psql('postgres', q{
	CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text);
	SELECT snowflake_enable_feed('events');
	CREATE TABLE consumers (consumer text PRIMARY KEY, next_id bigint NOT NULL);
	CREATE TABLE processed (id bigint PRIMARY KEY, body text);
	CREATE PROCEDURE write() LANGUAGE plpgsql AS $$
	BEGIN
		LOOP
			FOR i IN 1 .. 1 + random() * 2 LOOP
				INSERT INTO events (body) VALUES (random());
				PERFORM pg_sleep(random() * CASE WHEN random() < 0.02 THEN 0.2 ELSE 0.002 END);
			END LOOP;
			IF random() < 0.1 THEN ROLLBACK; ELSE COMMIT; END IF;
		END LOOP;
	END $$;
	CREATE PROCEDURE process(is_patient boolean, at_most interval) LANGUAGE plpgsql AS $$
	DECLARE
		first_id bigint;
		next_id bigint;
	BEGIN
		LOOP
			CALL snowflake_process('consumers', 'all', 'INSERT INTO processed SELECT * FROM events WHERE id >= $1 AND id < $2',
				now() - interval '1 hour', at_most, is_patient, first_id, next_id);
			COMMIT;
			PERFORM pg_sleep(0.001);
		END LOOP;
	END $$});

sub count_of { return $server->safe_psql('postgres', "SELECT count(*) FROM $_[0]"); }

for my $round (1 .. $rounds)
{
	my $before = count_of('processed');
	my @running = map { start_issuing($server, $_) } ('CALL write()') x 4,
	  'CALL process(true, NULL)', 'CALL process(true, NULL)', 'CALL process(false, NULL)', "CALL process(true, '500 ms')";

	ok(wait_until(sub { count_of('processed') > $before + 500 }), "round $round: rows are processed");
	crash($server);
	$_->{run}->finish for @running;
	$server->start;
}
$server->safe_psql('postgres', q{CALL snowflake_process('consumers', 'all', 'INSERT INTO processed SELECT * FROM events WHERE id >= $1 AND id < $2')});
is($server->safe_psql('postgres', 'SELECT count(*) FROM events e FULL JOIN processed p USING (id) WHERE e.body IS DISTINCT FROM p.body'), '0', 'each row is processed once');
cmp_ok(count_of('processed'), '>', 500 * $rounds, 'there are rows');
unlike(slurp_file($server->logfile), qr/ERROR:/, 'no call fails');

# A prepared transaction is processed after its commit.
$server->safe_psql('postgres', q{BEGIN; INSERT INTO events (body) VALUES ('prepared'); PREPARE TRANSACTION 'one'; INSERT INTO events (body) VALUES ('after')});
my $process = q{CALL snowflake_process('consumers', 'all', 'INSERT INTO processed SELECT * FROM events WHERE id >= $1 AND id < $2')};
$server->safe_psql('postgres', $process);
my $late = "SELECT string_agg(body, ',' ORDER BY id) FROM processed WHERE body IN ('prepared', 'after')";
is($server->safe_psql('postgres', $late), '', 'a prepared transaction holds its rows and later ones back');
$server->safe_psql('postgres', "COMMIT PREPARED 'one'");
$server->safe_psql('postgres', $process);
is($server->safe_psql('postgres', $late), 'prepared,after', 'which are processed later');

# A session that waits for its own row, which is processed later; the consumer can be removed meanwhile.
sub wait_for_consumer
{
	my ($on, $id) = @_;
	my $run = IPC::Run::start([ 'psql', '-XAtd', $on->connstr('postgres'), '-c', "CALL snowflake_wait_for_consumer('consumers', 'all', $id, '1 day')" ], '>', \my $position, '2>', \my $error);

	ok(wait_until(sub { $on->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL snowflake_wait_for%' AND wait_event = 'PgSleep'}) }), 'a session waits for the consumer');
	return sub { $run->finish; chomp $position; return $position, $error };
}
my $row = q{INSERT INTO events (body) VALUES ('own') RETURNING id};
my ($id) = split /\n/, $server->safe_psql('postgres', $row);
my $end = wait_for_consumer($server, $id);
$server->safe_psql('postgres', $process);
my ($position) = $end->();
cmp_ok($position, '>', $id, 'it returns when its row is processed');
is($server->safe_psql('postgres', "SELECT body FROM processed WHERE id = $id"), 'own', 'and sees the result');
$end = wait_for_consumer($server, $position);
$server->safe_psql('postgres', "UPDATE consumers SET consumer = 'removed'");
like(($end->())[1], qr/ERROR:  consumer "all" does not exist/, 'it does not wait for a consumer that is removed');
$server->safe_psql('postgres', "UPDATE consumers SET consumer = 'all'");

# A standby, which has the position when it has replayed it.
$server->backup('copy');
my $standby = snowflake_server('standby', { backup => [ $server, 'copy', has_streaming => 1 ] });
$server->safe_psql('postgres', "INSERT INTO events (body) VALUES ('streamed')");
$server->safe_psql('postgres', $process);
$server->wait_for_catchup($standby);
my $rest = q{SELECT next_id, (SELECT count(*) FROM events WHERE id >= next_id) FROM consumers};
is($standby->safe_psql('postgres', $rest), $server->safe_psql('postgres', $rest), 'a standby has the position');
fails_with($standby, $process, '25006', qr/in a read-only transaction/);
($id) = split /\n/, $server->safe_psql('postgres', $row);
$end = wait_for_consumer($standby, $id);
$server->safe_psql('postgres', $process);
cmp_ok(($end->())[0], '>', $id, 'a session on a standby waits for the replay of the position');
$server->stop;
$standby->promote;
$standby->safe_psql('postgres', "INSERT INTO events (body) VALUES ('promoted')");
$standby->safe_psql('postgres', $process);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM events e FULL JOIN processed p USING (id) WHERE e.body IS DISTINCT FROM p.body'), '0', 'and continues when it is promoted');

# A dump, restored in a server whose clock is an hour behind.
my $dump = "$scratch/dump.sql";
$standby->command_ok([ 'pg_dump', '-f', $dump, '-d', $standby->connstr('postgres') ], 'the database is dumped');
$standby->stop;
my $clock = TestClock->new;
$clock->set(-3600);
my $restored = snowflake_server('restored', { clock => $clock, extension => 0 }, 'snowflake.machine_id = 6');
$restored->safe_psql('postgres', "\\i $dump");
fails_with($restored, $process, '55000', qr/the position of consumer "all" is above the horizon/, qr/HINT:  If the database was restored, use snowflake_set_floor\(\)/);
$restored->safe_psql('postgres', q{SELECT snowflake_set_floor(snowflake_timestamp(max(next_id)) + interval '1 s') FROM consumers});
$clock->set(60);
$restored->safe_psql('postgres', "INSERT INTO events (body) VALUES ('restored')");
$restored->safe_psql('postgres', $process);
is($restored->safe_psql('postgres', 'SELECT count(*) FROM events e FULL JOIN processed p USING (id) WHERE e.body IS DISTINCT FROM p.body'), '0', 'with a floor, it continues');
$restored->stop;

done_testing();
