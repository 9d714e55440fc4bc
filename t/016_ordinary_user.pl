# A role without any privilege can use up IDs as fast as the layout has them, and cannot harm others
# in any other way: it cannot change a setting for them, keep them from being issued IDs in turn, or
# cause an ID to be issued twice by a session that does not wait for the disk.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

# 256 IDs in each 10 ms, shared by all.
my $server = snowflake_server('main', 'snowflake.machine_id = 1', "snowflake.layout = 'sonyflake'", "log_min_messages = warning");
$server->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE ROLE greedy LOGIN; ALTER DATABASE postgres OWNER TO app');

my @files;

# A session of a role, whose IDs are written as they arrive.
sub as
{
	my ($role, $settings, $query, @more) = @_;

	push @files, "$scratch/ids." . @files;
	return IPC::Run::start([ 'psql', '-XAtqd', $server->connstr('postgres'), '-U', $role, '-v', 'FETCH_COUNT=100', '-o', $files[-1],
			'-c', $settings, '-c', $query ], @more);
}

# Sessions of the role greedy that are executing their statements, of which psql fetches the rows in
# pieces: by a cursor before 17, later as parts of one result.
my $busy = "FROM pg_stat_activity WHERE usename = 'greedy' AND xact_start IS NOT NULL AND query ~ '^(FETCH|DO|SELECT snowflake_nextval)'";

sub await_greedy
{
	my ($count) = @_;

	$server->poll_query_until('postgres', "SELECT count(*) = $count $busy") or die;
}

# Settings: a role can change some for its own sessions, and none for others.
my $settings = $server->safe_psql('postgres', <<'SQL');
CREATE FUNCTION refusal(statement text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE statement; RETURN 'none'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
SET ROLE app;
SELECT name, refusal(format('SET %s = %L', name, setting)), refusal(format('ALTER ROLE app SET %s = %L', name, setting)),
	refusal(format('ALTER DATABASE postgres SET %s = %L', name, setting))
FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name;
SQL
is($settings, <<'TEXT' =~ s/\n$//r, 'what an ordinary user, and the owner of a database, may set');
snowflake.enable_timestamp_pushdown|none|none|none
snowflake.layout|55P02|55P02|55P02
snowflake.machine_id|55P02|55P02|55P02
snowflake.max_ahead|55P02|55P02|55P02
snowflake.max_clock_step|55P02|55P02|55P02
snowflake.max_wait|none|none|none
snowflake.registry_lease|55P02|55P02|55P02
snowflake.registry_standby|55P02|55P02|55P02
snowflake.sequence_jitter|55P02|55P02|55P02
snowflake.sequence_range|55P02|55P02|55P02
snowflake.sno_partition|55P02|55P02|55P02
snowflake.sno_sequence_range|55P02|55P02|55P02
TEXT
fails_with($server, "SET ROLE app; SET snowflake.registry = ''", '55P02', qr/cannot be changed/);
$server->safe_psql('postgres', 'ALTER DATABASE postgres RESET ALL; ALTER ROLE app RESET ALL');

# Sessions that take all IDs, and wait for more forever, do not keep IDs from others: another
# session is issued IDs without an error, with the default of max_wait.
my @greedy = map { as('greedy', 'SET snowflake.max_wait = -1', 'SELECT snowflake_nextval() FROM (SELECT generate_series(1, 1000000000)) AS endless', '2>', '/dev/null') } 1 .. 6;
await_greedy(6);
my $messages = '';
my $status;
my $modest = as('app', '', 'SELECT snowflake_nextval() FROM generate_series(1, 200)', '2>', \$messages);
ok($modest->finish, 'a modest session is issued IDs beside greedy ones');
is($messages, '', 'without an error');
is($server->safe_psql('postgres', "SELECT count(*) $busy"), '6', 'while these are in their statements');

# The same beside sessions that never wait, and so would take each tick as soon as it is free.
my $polling = <<'SQL';
DO $$
DECLARE
	ids integer;
BEGIN
	LOOP
		ids := 0;
		BEGIN
			LOOP
				PERFORM snowflake_nextval();
				ids := ids + 1;
			END LOOP;
		EXCEPTION WHEN configuration_limit_exceeded THEN
			PERFORM pg_sleep(0.0065) WHERE ids > 0;
		END;
	END LOOP;
END
$$
SQL
$server->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE usename = 'greedy'");
$_->finish for @greedy;
@greedy = map { as('greedy', 'SET snowflake.max_wait = 0', $polling, '2>', '/dev/null') } 1 .. 2;
await_greedy(2);
$messages = '';
$modest = as('app', '', 'SELECT snowflake_nextval(), pg_sleep(0.02) FROM generate_series(1, 50)', '2>', \$messages);
ok($modest->finish, 'a modest session is issued IDs beside some that do not wait');
is($messages, '', 'without an error');
is($server->safe_psql('postgres', "SELECT count(*) $busy"), '2', 'while these are in their statements');

# A statement that began before snowflake.max_ahead was lowered uses the current value.
$server->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE usename = 'greedy'");
$_->finish for @greedy;
$server->safe_psql('postgres', 'CREATE TABLE told (told boolean); GRANT SELECT ON told TO PUBLIC');
configure($server, 'snowflake.max_ahead', 20000);
my $late = as('greedy', '', <<'SQL', '2>', '/dev/null');
DO $$
BEGIN
	PERFORM snowflake_nextval();
	WHILE NOT EXISTS (SELECT FROM told) LOOP
		PERFORM pg_sleep(0.01);
	END LOOP;
	PERFORM snowflake_nextval() FROM generate_series(1, 20000);
	PERFORM set_config('application_name', 'done', false);
	PERFORM pg_sleep(600);
END
$$
SQL
$server->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE usename = 'greedy' AND state = 'active'") or die;
configure($server, 'snowflake.max_ahead', 10);
$server->safe_psql('postgres', 'INSERT INTO told VALUES (true)');
$server->poll_query_until('postgres', "SELECT application_name = 'done' FROM pg_stat_activity WHERE usename = 'greedy'") or die;
is($server->safe_psql('postgres', "SELECT ahead <= interval '20 ms' FROM pg_stat_snowflake WHERE generator = 'bigint'"), 't', 'a statement from before does not go as far ahead');
($status, $messages) = ($server->psql('postgres', 'SELECT snowflake_nextval()', extra_params => [ '-U', 'app' ]))[0, 2];
is("$status$messages", '0', 'and other sessions need not wait for it');
$server->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE usename = 'greedy'");
$late->finish;
@greedy = ();

# A crash, right after the last ID of a session that does not wait for its commits was seen.
push @files, "$scratch/last";
($status, my $last) = $server->psql('postgres', 'SET synchronous_commit = off; SELECT snowflake_nextval() FROM generate_series(1, 1000)', extra_params => [ '-U', 'app' ]);
append_to_file($files[-1], "$last\n");
crash($server);
$server->start;
as('app', '', 'SELECT snowflake_nextval() FROM generate_series(1, 1000)')->finish;

none_is_issued_twice(3000, 'all sessions', @files);

unlike(slurp_file($server->logfile), qr/PANIC|TRAP|terminated by signal (?!9)/, 'no process has crashed');

done_testing();
