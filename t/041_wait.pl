# snowflake_wait(): what wakes it, and that it holds back no VACUUM while it sleeps.
#
# A waiter that is not woken looks again after a second.  So most of the waits that a commit has to end must take less than half
# of that, which is ten thousand times what is measured on an idle machine.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $server = snowflake_server('main', { init => [ allows_streaming => 1 ] }, 'snowflake.machine_id = 5', 'max_prepared_transactions = 2');
$server->safe_psql('postgres', 'CREATE TABLE feed (id bigint PRIMARY KEY DEFAULT snowflake_id(), who text); CREATE DATABASE other');
$server->safe_psql('other', 'CREATE EXTENSION snowflake; CREATE TABLE feed (id bigint PRIMARY KEY DEFAULT snowflake_id(), who text)');

my $waiter = $server->background_psql('postgres');
my $writer = $server->background_psql('postgres');
my $pid = $waiter->query_safe('SELECT pg_backend_pid()');

sub insert { return "INSERT INTO feed (who) VALUES ('$_[0]') RETURNING id" }
sub query { return $server->safe_psql('postgres', $_[0]) }

# Start a wait for an ID, and return when it sleeps.
sub start_wait
{
	my ($next_id, $begin) = @_;

	$waiter->query_until(qr/started/, ($begin // '') . "\\echo started\nCALL snowflake_wait($next_id, '1 hour') \\gset\n");
	wait_until(sub { query("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid") eq 't' });
}

# Whether the wait still sleeps; and, when it has ended, how many rows are below its horizon.
sub still_waits { return query("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid") }
sub rows_below { return $waiter->query_safe("SELECT count(*) FROM feed WHERE id < :horizon") }

my $horizon = query('SELECT snowflake_horizon()');

# A commit wakes it.  The server measures the time, from before the commit.
my @times;
for my $round (1 .. 11)
{
	start_wait($horizon);
	my $id = $writer->query_safe('BEGIN; SELECT extract(epoch FROM clock_timestamp()) AS began \gset' . "\n" . insert("round $round") . "; COMMIT");
	my $took = $waiter->query_safe('SELECT extract(epoch FROM clock_timestamp()), :horizon');
	my ($woken, $passed) = split /\|/, $took;

	push @times, $woken - $writer->query_safe('SELECT :began');
	is(rows_below(), $round, "round $round: the row is read after the wait");
	cmp_ok($passed, '>', $id, 'the horizon has passed it');
	$horizon = $passed;
}
@times = sort { $a <=> $b } @times;
cmp_ok($times[5], '<', 0.5, 'commits wake it');

# While it sleeps, it holds no snapshot; nor in a transaction.
for my $begin ('', "BEGIN;\nSELECT count(*) FROM feed;\n")
{
	start_wait($horizon, $begin);
	is(query("SELECT backend_xmin IS NULL AND backend_xid IS NULL FROM pg_stat_activity WHERE pid = $pid"), 't', 'it holds back no VACUUM' . ($begin ? ' in a transaction' : ''));
	$writer->query_safe(insert('vacuum'));
	$horizon = $waiter->query_safe('SELECT :horizon');
}
$waiter->query_safe('COMMIT');

# An older transaction holds the horizon: the commits of others do not end the wait, its end does, whichever it is.
my $older = $server->background_psql('postgres');
my $older_pid = $older->query_safe('SELECT pg_backend_pid()');
for my $case ([ 'a COMMIT', 'COMMIT' ], [ 'a ROLLBACK', 'ROLLBACK' ], [ 'the end of a session', undef ])
{
	my ($name, $end) = @$case;
	my $id = $older->query_safe("BEGIN; " . insert('older'));

	start_wait($id);
	$writer->query_safe(insert("later")) for 1 .. 5;
	is(still_waits(), 't', "before $name: the commits of others do not end the wait");
	if (defined $end) { $older->query_safe($end) }
	else { query("SELECT pg_terminate_backend($older_pid, 60000)") }
	is($waiter->query_safe('SELECT count(*) FROM feed WHERE id >= :horizon'), '0', "$name ends it");
}
$horizon = query('SELECT snowflake_horizon()');

# The end of a prepared transaction does not wake waiters, and they look again.
my $prepared = query("BEGIN; " . insert('prepared') . "; PREPARE TRANSACTION 'p'");
start_wait($prepared);
query("COMMIT PREPARED 'p'");
is($waiter->query_safe("SELECT count(*) FROM feed WHERE id < :horizon AND who = 'prepared'"), '1', 'COMMIT PREPARED ends it');

# The transactions of another database hold nothing back here.
my $other = $server->background_psql('other');
$other->query_safe("BEGIN; " . insert('other'));
$horizon = query('SELECT snowflake_horizon()');
start_wait($horizon);
$writer->query_safe(insert('beside another database'));
is($waiter->query_safe("SELECT count(*) FROM feed WHERE id < :horizon AND who = 'beside another database'"), '1', 'transactions of other databases do not delay it');
$other->query_safe('ROLLBACK');

# A promise is the horizon.
my $promise = query('SELECT snowflake_promise_horizon(snowflake_propose_horizon())');
$promise = query('SELECT snowflake_promise_horizon(snowflake_propose_horizon())') if $promise == 0;
start_wait($promise);
$writer->query_safe(insert('below the next promise'));
is(still_waits(), 't', 'a commit does not end a wait for the next promise');
query('SELECT snowflake_promise_horizon(snowflake_propose_horizon())');
is($waiter->query_safe("SELECT count(*) FROM feed WHERE id < :horizon AND who = 'below the next promise'"), '1', 'a promise does');
query('SELECT snowflake_promise_horizon(0)');

# Readers that wait, beside writers whose transactions overlap, and of which some are rolled back: each row is read once.
query('CREATE TABLE been_read (reader int, id bigint); CREATE TABLE done ()');
query(q{
	CREATE PROCEDURE read_all(reader int) LANGUAGE plpgsql AS $$
	DECLARE
		next_id bigint := (SELECT snowflake_horizon());
		horizon bigint := next_id;
		ends boolean := false;
	BEGIN
		INSERT INTO been_read VALUES (reader, NULL);
		COMMIT;
		LOOP
			CALL snowflake_wait(next_id, '100 ms', horizon);
			INSERT INTO been_read SELECT reader, id FROM feed WHERE id >= next_id AND id < horizon;
			COMMIT;
			EXIT WHEN ends AND horizon = next_id;
			ends := to_regclass('done') IS NULL;
			next_id := horizon;
		END LOOP;
	END $$;
	CREATE PROCEDURE write_some(n int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. n LOOP
			INSERT INTO feed (who) VALUES ('chaos');
			PERFORM pg_sleep(random() * 0.01);
			INSERT INTO feed (who) VALUES ('chaos');
			IF random() < 0.2 THEN ROLLBACK; ELSE COMMIT; END IF;
		END LOOP;
	END $$});
my @readers = map { start_issuing($server, "CALL read_all($_)") } 1 .. 4;
wait_until(sub { query('SELECT count(DISTINCT reader) FROM been_read') == 4 });
my @writers = map { start_issuing($server, 'CALL write_some(' . scaled(200, 40) . ')') } 1 .. 4;
$_->{run}->finish for @writers;
query('DROP TABLE done');
$_->{run}->finish for @readers;
is(query("SELECT count(*) FROM (SELECT id FROM feed WHERE who = 'chaos') AS f CROSS JOIN generate_series(1, 4) AS reader FULL JOIN (SELECT reader, id FROM been_read WHERE id IS NOT NULL) AS b USING (reader, id) WHERE f.id IS NULL OR b.id IS NULL"), '0',
	'each row is read by each reader');
is(query('SELECT count(*) - count(DISTINCT (reader, id)) FROM been_read WHERE id IS NOT NULL'), '0', 'once');
cmp_ok(query("SELECT count(*) FROM feed WHERE who = 'chaos'"), '>', scaled(400, 80), 'there are rows');

# A standby has no horizon.
$server->backup('backup');
my $standby = snowflake_server('standby', { backup => [ $server, 'backup', has_streaming => 1 ] });
fails_with($standby, "CALL snowflake_wait(0, '1 hour')", '25006', qr/cannot execute snowflake_wait\(\) during recovery/);

$_->quit for $waiter, $writer, $other;
done_testing();
