# The horizon, on servers that restart, crash and fail over: a reader that reads up to it reads
# every row once.  Prepared transactions, several databases, standbys, and sessions that end in any
# way.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $server = snowflake_server('main', { extension => 0, init => [ allows_streaming => 1 ] },
	'snowflake.machine_id = 5', 'max_prepared_transactions = 2', 'max_connections = 20', 'max_worker_processes = 4');
$server->safe_psql('postgres', 'CREATE DATABASE other');

for my $database ('postgres', 'other')
{
	$server->safe_psql($database, <<'SQL');
CREATE EXTENSION snowflake;
CREATE TABLE feed (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), who text);
CREATE TABLE position (next bigint);
INSERT INTO position VALUES (0);
CREATE TABLE been_read (id bigint);

CREATE FUNCTION poll() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	horizon bigint;
	start bigint := next FROM position FOR UPDATE;
BEGIN
	horizon := snowflake_horizon();
	IF horizon < start THEN
		RAISE EXCEPTION 'the horizon goes back from % to %', start, horizon;
	END IF;
	RETURN QUERY WITH rows AS (SELECT id, who FROM feed WHERE id >= start AND id < horizon),
		noted AS (INSERT INTO been_read SELECT id FROM rows)
		SELECT who FROM rows ORDER BY who;
	UPDATE position SET next = greatest(next, horizon);
END
$$;

-- the same in one statement
CREATE TABLE position_of_view (next bigint);
INSERT INTO position_of_view VALUES (0);
CREATE TABLE been_read_by_view (id bigint);
CREATE VIEW new_rows AS SELECT * FROM feed WHERE id < (SELECT snowflake_horizon());
SQL
}
my $poll_view = 'WITH noted AS (INSERT INTO been_read_by_view SELECT id FROM new_rows, position_of_view WHERE id >= next) UPDATE position_of_view SET next = greatest(next, snowflake_horizon())';

sub insert
{
	my ($who, $on) = @_;

	($on // $server)->safe_psql('postgres', "INSERT INTO feed (who) VALUES ('$who')");
}

# The rows that a reader reads now.
sub reads
{
	my ($expected, $name, $on, $database) = @_;
	my $read = ($on // $server)->safe_psql($database // 'postgres', 'SELECT poll()');

	is($read =~ s/\n/ /gr, $expected, $name);
}

sub horizon
{
	my ($on) = @_;

	return ($on // $server)->safe_psql('postgres', 'SELECT snowflake_horizon()');
}

# Prepared transactions hold the horizon back until they are committed or rolled back.
$server->safe_psql('postgres', "BEGIN; INSERT INTO feed (who) VALUES ('p1'), ('p2'); PREPARE TRANSACTION 'first'");
insert('a');
reads('', 'nothing is read beyond a prepared transaction');
is($server->safe_psql('postgres', "
	SELECT datname, pid IS NULL, gid, first_id < (SELECT min(id) FROM feed), since = prepared
	FROM pg_stat_snowflake_horizon JOIN pg_prepared_xacts USING (gid)"),
	'postgres|t|first|t|t', 'the view has it, since the PREPARE');
$server->safe_psql('postgres', "COMMIT PREPARED 'first'");
reads('a p1 p2', 'after its commit its rows are read');
is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_snowflake_horizon'), '0', 'and the view is empty');

$server->safe_psql('postgres', "BEGIN; INSERT INTO feed (who) VALUES ('p'); PREPARE TRANSACTION 'second'");
insert('a');
$server->psql('postgres', "BEGIN; INSERT INTO feed (who) VALUES ('p'); PREPARE TRANSACTION 'second'");
$server->safe_psql('postgres', "ROLLBACK PREPARED 'second'");
reads('a', 'neither one that was rolled back nor one that could not be prepared holds the horizon back');

$server->safe_psql('postgres', "BEGIN; CREATE TABLE nothing (); PREPARE TRANSACTION 'without an ID'");
insert('a');
reads('a', 'nor does one that has taken no ID');
$server->safe_psql('postgres', "ROLLBACK PREPARED 'without an ID'");

# There are as many entries as sessions and prepared transactions; entries of transactions that have ended are used
# again, even if there is no reader.
$server->safe_psql('postgres', join('', map { "BEGIN; INSERT INTO feed (who) VALUES ('many'); PREPARE TRANSACTION 'n$_'; COMMIT PREPARED 'n$_';\n" } 1 .. 300));
is($server->safe_psql('postgres', 'SELECT count(*) FROM poll()'), '300', 'many prepared transactions, one after the other');

# They do so over a restart and a crash, in their database only.
for my $way ('restart', 'crash')
{
	$server->safe_psql('postgres', "BEGIN; INSERT INTO feed (who) VALUES ('p'); PREPARE TRANSACTION '$way'");
	insert('a');
	my $before = horizon();
	if ($way eq 'restart') { $server->restart }
	else
	{
		crash($server);
		$server->start;
	}
	$server->safe_psql('other', "INSERT INTO feed (who) VALUES ('o')");
	insert('b');
	reads('', "$way: a prepared transaction still holds the horizon back");
	is($server->safe_psql('postgres', 'SELECT datname, pid IS NULL, gid, since = prepared FROM pg_stat_snowflake_horizon JOIN pg_prepared_xacts USING (gid)'),
		"postgres|t|$way|t", "$way: the view has it");
	reads('o', "$way: not that of another database", $server, 'other');
	cmp_ok(horizon(), '>=', $before, "$way: the horizon does not go back");
	$server->safe_psql('postgres', "COMMIT PREPARED '$way'");
	reads('a b p', "$way: all rows are read after its commit");
}

# A restart with a lower machine ID
insert('a');
my $before = horizon();
$server->append_conf('postgresql.conf', 'snowflake.machine_id = 2');
$server->restart;
cmp_ok(horizon(), '>=', $before, 'nor does it go back with a lower machine ID');
insert('b');
reads('a b', 'and nothing is missed');

# An ID that was fetched before a restart: the horizons that were returned then are unknown, but
# cannot be above the position at which the server has started.
my $fetched = $server->safe_psql('postgres', 'SELECT snowflake_nextval()');
horizon();
$server->restart;
$server->safe_psql('postgres', "SELECT snowflake_enable_feed('feed', 'id')");
fails_with($server, "INSERT INTO feed VALUES ($fetched, 'late')", '55000', qr/the ID of the row is below the horizon/, qr/DETAIL:  The ID is $fetched\.  Readers might have read up to \d+/);
insert('c');
reads('c', 'the guard lets rows pass that are in order');

# Sessions of several databases; the monitoring view shows the lag of all.
my $session = $server->background_psql('other');
$session->query_safe("BEGIN; SELECT pg_sleep(0.1); INSERT INTO feed (who) VALUES ('open')");
insert('a');
reads('a', 'a transaction of another database does not hold the horizon back');
reads('', 'one of this database does', $server, 'other');
is($server->safe_psql('postgres', 'SELECT since = xact_start FROM pg_stat_snowflake_horizon JOIN pg_stat_activity USING (pid)'), 't', 'the view has when it began, before its first ID');
$server->poll_query_until('postgres', "SELECT horizon_lag > '10 ms' AND horizon < now() FROM pg_stat_snowflake WHERE generator = 'bigint'") or die;
$server->safe_psql('postgres', "CREATE ROLE app LOGIN; GRANT ALL ON feed, position, been_read TO app");
is($server->safe_psql('postgres', 'SELECT datname, pid IS NULL, first_id IS NULL, since IS NULL FROM pg_stat_snowflake_horizon', extra_params => [ '-U', 'app' ]),
	'other|f|t|t', 'other roles see which session it is, not its IDs');
is($server->safe_psql('postgres', "BEGIN; INSERT INTO feed (who) VALUES ('own'); SELECT count(first_id), count(since) FROM pg_stat_snowflake_horizon; ROLLBACK", extra_params => [ '-U', 'app' ]),
	'1|1', 'and see their own');

# A session that is terminated, and one that is killed.
$server->safe_psql('other', "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_snowflake_horizon");
reads('', 'the horizon does not wait for a session that has ended', $server, 'other');
is($server->safe_psql('postgres', "SELECT count(*), max(horizon_lag) FROM pg_stat_snowflake LEFT JOIN pg_stat_snowflake_horizon ON true WHERE generator = 'bigint'"), '1|00:00:00', 'nor is there a lag');

$server->append_conf('postgresql.conf', 'restart_after_crash = on');
$server->restart;
$session = $server->background_psql('postgres');
$session->query_safe("BEGIN; INSERT INTO feed (who) VALUES ('killed')");
insert('b');
$before = horizon();
my $pid = $server->safe_psql('postgres', 'SELECT pid FROM pg_stat_snowflake_horizon');
ok(kill_process($server, $pid), 'a session is killed');
cmp_ok(horizon(), '>=', $before, 'the horizon does not go back');
reads('b', 'and does not wait for a transaction that was lost');

# A commit that is durable here, and not yet visible: it waits for a synchronous standby that does not exist.
configure($server, 'synchronous_standby_names', 'nowhere');
$server->safe_psql('postgres', 'CHECKPOINT');    # the checkpointer tells other processes of the new setting before
my $waiting = IPC::Run::start([ 'psql', '-XAtqd', $server->connstr('postgres'), '-c', "INSERT INTO feed (who) VALUES ('waits')" ], '2>', \my $warning);
$server->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'") or die;
$server->safe_psql('postgres', "SET synchronous_commit = local; INSERT INTO feed (who) VALUES ('a')");
is($server->safe_psql('postgres', 'SET synchronous_commit = local; SELECT poll()'), '', 'the horizon waits for a commit that waits for a standby');
$server->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
$server->reload;
ok($waiting->finish, 'it commits') or diag($warning);
reads('a waits', 'and its row is read');

# A snapshot for which a transaction of an earlier run of the server is prepared, and that is older than the first call.
$server->safe_psql('postgres', "BEGIN; INSERT INTO feed (who) VALUES ('p'); PREPARE TRANSACTION 'earlier'");
$server->restart;
insert('a');
my $old = $server->background_psql('postgres', on_error_stop => 0);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$server->safe_psql('postgres', "COMMIT PREPARED 'earlier'");
$old->query('SELECT snowflake_horizon()');
like($old->{stderr}, qr/ERROR:  no horizon is known for the snapshot of this statement\nDETAIL:  The snapshot was taken before the first call to snowflake_horizon\(\) in this database, while a transaction was open that had begun before the first ID/, 'no horizon is known for a snapshot');
$old->quit;
reads('a p', 'and a new one reads all');

# If a call of snowflake_process() is the first one, it continues with a later snapshot.
$server->safe_psql('postgres', q{CREATE TABLE consumers (consumer text PRIMARY KEY, next_id bigint NOT NULL);
	ALTER FUNCTION snowflake_horizon() RENAME TO horizon_now;
	CREATE FUNCTION snowflake_horizon() RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN PERFORM pg_advisory_lock(17); RETURN public.horizon_now(); END';
	BEGIN; INSERT INTO feed (who) VALUES ('p'); PREPARE TRANSACTION 'earlier'});
$server->restart;
insert('a');
my $locker = $server->background_psql('postgres');
$locker->query_safe('SELECT pg_advisory_lock(17)');
my $call = IPC::Run::start([ 'psql', '-XAtqd', $server->connstr('postgres'), '-c', "CALL snowflake_process('consumers', 'one', 'SELECT')" ], '>', \my $bounds, '2>', \my $notice);
$server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 17 AND NOT granted}) or die;
$server->safe_psql('postgres', "COMMIT PREPARED 'earlier'");
$locker->quit;
ok($call->finish, 'snowflake_process() ignores that no horizon is known for its first snapshot') or diag($notice);
is($bounds, '0|' . $server->safe_psql('postgres', q{SELECT next_id FROM consumers}) . "\n", 'and stores the horizon of a later one');
$server->safe_psql('postgres', 'DROP FUNCTION snowflake_horizon(); ALTER FUNCTION horizon_now() RENAME TO snowflake_horizon; DROP TABLE consumers');
reads('a p', 'a new snapshot reads all again');

# Two processes could have different horizons for one snapshot.
$server->safe_psql('postgres', 'CREATE FUNCTION unsafe_horizon() RETURNS bigint LANGUAGE SQL PARALLEL SAFE AS $$SELECT snowflake_horizon()$$');
fails_with($server, 'SET ' . (major_version($server) >= 16 ? 'debug_parallel_query' : 'force_parallel_mode') . ' = on; SELECT unsafe_horizon()',
	'25000', qr/cannot execute snowflake_horizon\(\) during a parallel operation/, qr/HINT:  Mark the function that calls snowflake_horizon\(\) as PARALLEL RESTRICTED/);

# In a parallel worker IDs would be issued by a transaction that ends before its rows are
# visible.
$server->safe_psql('postgres', 'CREATE FUNCTION unsafe() RETURNS bigint LANGUAGE SQL PARALLEL SAFE AS $$SELECT snowflake_nextval()$$');
my $parallel = (major_version($server) >= 16 ? 'debug_parallel_query' : 'force_parallel_mode') . ' = on';
fails_with($server, "SET $parallel; SELECT unsafe()", '25000', qr/cannot execute snowflake_id\(\) during a parallel operation/);
$server->safe_psql('postgres', q{CREATE FUNCTION unsafe_sno() RETURNS sno LANGUAGE sql PARALLEL SAFE AS 'SELECT sno_nextval()'});
fails_with($server, "SET $parallel; SELECT unsafe_sno()", '25000', qr/cannot execute sno_nextval\(\) during a parallel operation/);

# The generator moved back by an administrator: the readers' positions have to be moved as well.  A
# floor that changes nothing has no warning.
for my $case ([ 'an hour ahead of the clock', "now() + interval '1 h'", '', 'clock_timestamp()', 'back' ],
	[ 'in the tick of the last ID', 'now()', 'last', "snowflake_timestamp(max(id)) - interval '10 ms' FROM feed", 'back last' ])
{
	my ($name, $floor, $row, $instant, $rows) = @$case;

	$server->safe_psql('postgres', "SELECT snowflake_set_floor($floor)");
	insert($row) if $row ne '';
	reads($row, "a horizon $name");
	$before = horizon();
	my ($status, $stdout, $stderr) = $server->psql('postgres', "SELECT snowflake_set_floor(clock_timestamp() - interval '1 min')");
	unlike($stderr, qr/WARNING/, "$name: a floor below the position does not warn");
	(undef, $instant) = $server->psql('postgres', "SELECT $instant");
	($status, $stdout, $stderr) = $server->psql('postgres', "SELECT snowflake_move_back('$instant')");
	my ($returned, $from) = $stderr =~ /WARNING:  readers that use snowflake_horizon\(\) might miss rows\nDETAIL:  Horizons up to (\d+) might have been returned, but IDs are issued from (\d+) after the next start\./
	  or diag($stderr);
	cmp_ok($returned, '>=', $before, "$name: a move back warns, with a number that no horizon was above");
	my ($first) = $stderr =~ /HINT:  Lower each reader position above (\d+) to this number\./ or diag($stderr);
	is($first, $from, "$name: and with the first ID");
	cmp_ok(horizon(), '>=', $before, "$name: until the restart the horizon does not go back");
	cmp_ok(horizon(), '<=', $returned, "$name: nor is it above that number");
	$server->restart;
	$server->safe_psql('postgres', "UPDATE position SET next = least(next, $first)");
	insert('back');
	reads($rows, "$name: with the position that the hint names no row is missed");
}

# A standby has no horizon; a reader there uses the horizon of the primary, when it has replayed the WAL that the
# primary had written.
$server->backup('backup');
my $standby = snowflake_server('standby', { backup => [ $server, 'backup', has_streaming => 1 ] });
is($standby->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_snowflake_horizon'), '0', 'on a standby nothing holds a horizon back');
fails_with($standby, 'SELECT snowflake_horizon()', '55000', qr/cannot execute snowflake_horizon\(\) during recovery/, qr/HINT:  Call snowflake_horizon\(\) and then pg_current_wal_insert_lsn\(\) on the primary/);
insert("s$_") for 1 .. 3;
my ($horizon, $lsn) = split /\n/, $server->safe_psql('postgres', 'SELECT snowflake_horizon(); SELECT pg_current_wal_insert_lsn()');
if (major_version($standby) >= 19)
{
	$standby->safe_psql('postgres', "WAIT FOR LSN '$lsn' WITH (TIMEOUT '${PostgreSQL::Test::Utils::timeout_default}s')");
}
else
{
	$standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'") or die;
}
is($standby->safe_psql('postgres', "SELECT string_agg(who, ' ' ORDER BY who) FROM feed WHERE id < $horizon AND who LIKE 's_'"), 's1 s2 s3', 'a reader on the standby reads all rows below the horizon of the primary');

# The standby is promoted: with the position that is replicated with the rows, nothing is missed, and
# prepared transactions hold its horizon back.
reads('s1 s2 s3', 'the primary');
$server->safe_psql('postgres', "BEGIN; INSERT INTO feed (who) VALUES ('p'); PREPARE TRANSACTION 'promoted'");
insert('a');
reads('', 'the primary waits for a prepared transaction');
$before = horizon();
$server->wait_for_catchup($standby);
crash($server);
$old = $standby->background_psql('postgres', on_error_stop => 0);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$standby->promote;
$old->query('SELECT snowflake_horizon()');
like($old->{stderr}, qr/ERROR:  no horizon is known for the snapshot of this statement\nDETAIL:  The snapshot was taken before this server was promoted\./, 'a snapshot of the standby has no horizon');
$old->quit;
insert('b', $standby);
reads('', 'and so does the promoted standby', $standby);
cmp_ok(horizon($standby), '>=', $before, 'the horizon does not go back');
$standby->safe_psql('postgres', "COMMIT PREPARED 'promoted'");
reads('a b p', 'then it reads all', $standby);

# A layout without machine IDs, and one without a sequence
for my $layout ('mastodon', 'epoch=2010-01-01 tick=1ms timestamp=41 machine=10')
{
	restart_with_layout($standby, $layout);
	$standby->safe_psql('postgres', 'TRUNCATE feed, been_read, been_read_by_view; UPDATE position SET next = 0; UPDATE position_of_view SET next = 0');
	insert('a', $standby);
	reads('a', "a reader in the layout $layout", $standby);
	insert('b', $standby);
	reads('b', "and once more in the layout $layout", $standby);
}
restart_with_layout($standby, 'twitter');
$standby->safe_psql('postgres', 'TRUNCATE feed, been_read, been_read_by_view; UPDATE position SET next = 0; UPDATE position_of_view SET next = 0');

# A transaction takes as many IDs as the previous one has used, whatever readers do.
$standby->safe_psql('postgres', <<'SQL');
CREATE PROCEDURE draw_and_poll(transactions integer) LANGUAGE plpgsql AS $$
DECLARE
	horizon bigint;
BEGIN
	FOR i IN 1 .. transactions LOOP
		PERFORM snowflake_nextval();
		COMMIT;
		horizon := snowflake_horizon();
	END LOOP;
END
$$;
SQL
my $allocated = "SELECT ids_allocated FROM pg_stat_snowflake WHERE generator = 'bigint'";
my $before_polls = $standby->safe_psql('postgres', $allocated);
$standby->safe_psql('postgres', 'CALL draw_and_poll(1000)');
cmp_ok($standby->safe_psql('postgres', $allocated) - $before_polls, '<=', 1100, 'between polls a transaction of one ID takes one');

# A callback of another module commits a row elsewhere, when the transaction has committed
# here.  The horizon waits for it.
my $elsewhere = "$scratch/commit_elsewhere.so";
chomp(my $headers = `pg_config --includedir-server`);
chomp(my @libpq = (`pg_config --includedir`, `pg_config --libdir`));
system_or_bail('cc', '-shared', '-fPIC', '-O1', "-I$headers", "-I$libpq[0]", '-o', $elsewhere, "$FindBin::RealBin/lib/commit_elsewhere.c", "-L$libpq[1]", '-lpq');
$standby->safe_psql('postgres', "CREATE FUNCTION commit_elsewhere(text, text) RETURNS void LANGUAGE c AS '$elsewhere'");
my $to = $standby->connstr('postgres') =~ s/'/''/gr;
my $holder = $standby->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(1)');
my $committer = IPC::Run::start([ 'psql', '-Xq', '-d', $standby->connstr('postgres'), '-c', "
	SELECT commit_elsewhere('$to', format('SELECT pg_advisory_lock(1); INSERT INTO feed VALUES (%s, ''elsewhere'')', snowflake_nextval()));
	INSERT INTO feed (who) VALUES ('here')" ], '>', \my $commit_output, '2>', \my $commit_errors);
$standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) or die;
insert('after', $standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM feed'), '2', 'a transaction has committed here, and not yet elsewhere');
reads('', 'its rows hold the horizon back', $standby);
$holder->quit;
ok($committer->finish, 'it commits elsewhere') or diag($commit_errors);
reads('after elsewhere here', 'then all rows are read', $standby);

# Such a callback raises an error after the commit of a transaction without a transaction ID.
$session = $standby->background_psql('postgres', on_error_stop => 0);
$session->query("SELECT commit_elsewhere('$to', 'SELECT 1 / 0'), snowflake_nextval()");
like($session->{stderr}, qr/ERROR:  the statement failed/, 'a callback fails after the commit');
my $later = $standby->safe_psql('postgres', 'SELECT snowflake_nextval()');
cmp_ok(horizon($standby), '>', $later, 'its session does not hold the horizon back');
$session->quit;

# A callback that was registered before the first ID of the session writes a row when the transaction is being prepared.
$standby->safe_psql('postgres', "CREATE FUNCTION execute_at_prepare(text) RETURNS void LANGUAGE c AS '$elsewhere'");
$standby->safe_psql('postgres', q{BEGIN; SELECT execute_at_prepare($$ INSERT INTO feed (who) VALUES ('at prepare') $$); PREPARE TRANSACTION 'written at the end'});
insert('after it', $standby);
reads('', 'its row holds the horizon back', $standby);
$standby->safe_psql('postgres', "COMMIT PREPARED 'written at the end'");
reads('after it at prepare', 'and is read after the commit', $standby);

# Writers in all kinds of transactions, and a reader.
my $script = "$scratch/write.sql";
append_to_file($script, <<'SQL');
\set way random(1, 6)
\set pause random(0, 4000)
BEGIN;
INSERT INTO feed (who) VALUES ('w');
\if :way = 1
SAVEPOINT a;
INSERT INTO feed (who) VALUES ('w');
ROLLBACK TO a;
\endif
\sleep :pause us
INSERT INTO feed (who) VALUES ('w');
\if :way = 2
ROLLBACK;
\else
COMMIT;
\endif
SQL
my $writers = IPC::Run::start([ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '400', '-f', $script, $standby->connstr('postgres') ], '>', \my $output, '2>', \my $errors);
while ($writers->pumpable)
{
	$standby->safe_psql('postgres', join('', map { "SELECT count(*) FROM poll();\n$poll_view;\n" } 1 .. 50));
	$writers->pump_nb;
}
ok($writers->finish, 'writers') or diag($errors);
reads($standby->safe_psql('postgres', "SELECT string_agg('w', ' ') FROM (SELECT id FROM feed EXCEPT SELECT id FROM been_read) AS rest"), 'the rest is read', $standby);
is($standby->safe_psql('postgres', '
	SELECT count(*) >= 5000, count(*) FILTER (WHERE b.id IS NULL), (SELECT count(*) - count(DISTINCT id) FROM been_read) FROM feed f LEFT JOIN been_read b USING (id)'),
	't|0|0', 'of the rows of many writers none is missed, and none is read twice');
$standby->safe_psql('postgres', $poll_view);
is($standby->safe_psql('postgres', '
	SELECT count(*) >= 5000, count(*) FILTER (WHERE b.id IS NULL), (SELECT count(*) - count(DISTINCT id) FROM been_read_by_view) FROM feed f LEFT JOIN been_read_by_view b USING (id)'),
	't|0|0', 'nor by the view, in one statement');

done_testing();
