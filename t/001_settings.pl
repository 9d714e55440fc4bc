# Settings of a server: when the machine ID is fixed, and settings that are malformed or inconsistent, at
# start, at reload and at use.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $nextval = 'SELECT snowflake_nextval()';

# With a malformed value the server does not start.
my $server = snowflake_server('main');
$server->append_conf('postgresql.conf', "snowflake.layout = 'twiter'");
$server->stop;
ok(!$server->start(fail_ok => 1), 'no start with a malformed layout');
log_matches($server, 0, qr/FATAL:  invalid value for parameter "snowflake.layout": "twiter".*DETAIL:  At character 1, no preset is named "twiter"/s,
	'the log says why');
$server->append_conf('postgresql.conf', "snowflake.layout = 'twitter'\nsnowflake.sequence_range = '9-8'");
ok(!$server->start(fail_ok => 1), 'no start with a malformed sequence range');
log_matches($server, 0, qr/FATAL:  invalid value for parameter "snowflake.sequence_range": "9-8"/, 'the log says why');
$server->append_conf('postgresql.conf', "snowflake.sequence_range = ''\nsnowflake.sno_sequence_range = '0-65536'");
ok(!$server->start(fail_ok => 1), 'no start with a malformed sequence range of sno');
log_matches($server, 0, qr/FATAL:  invalid value for parameter "snowflake.sno_sequence_range": "0-65536"/, 'the log says why');
$server->append_conf('postgresql.conf', "snowflake.sno_sequence_range = ''");

$server->append_conf('postgresql.conf', "snowflake.registry = 'host=nowhere password=one two'");
ok(!$server->start(fail_ok => 1), 'no start with a malformed connection string');
log_matches($server, 0, qr/FATAL:  invalid value for parameter "snowflake.registry"\n.*DETAIL:  .*two/s, 'the log says why');
$server->append_conf('postgresql.conf', "snowflake.registry = ''");

# No machine ID.
$server->start;
fails_with($server, $nextval, '55000',
	qr/"snowflake.machine_id" is not set/, qr/from 0 to 1023 in the layout "twitter"/,
	qr/HINT:  Set "snowflake.machine_id" in a configuration file outside of the data directory, .*  For a trial on a server without copies, ALTER SYSTEM is enough; .*  Two servers with the same machine ID can issue the same IDs\./);

# Too large a machine ID: a warning at the reload, an error at use.
my $log = -s $server->logfile;
configure($server, 'snowflake.machine_id', 1024);
wait_for_log($server, $log, qr/WARNING:  machine ID 1024 does not fit the Snowflake layout "twitter"/, 'a warning at reload');
fails_with($server, $nextval, '22023',
	qr/machine ID 1024 does not fit the Snowflake layout "twitter"/,
	qr/10 bits for the machine ID, which allow 0 to 1023/, qr/HINT:  Change "snowflake.machine_id"/);

# A machine ID takes effect without a restart, even in an older session.
my $session = $server->background_psql('postgres', on_error_stop => 0);
$session->query($nextval);
configure($server, 'snowflake.machine_id', 7);
my $id = '';
for (1 .. 1000)
{
	$id = $session->query('SELECT snowflake_machine_id(snowflake_nextval())');
	last if $id eq '7';
}
is($id, '7', 'the machine ID takes effect in an existing session');
$session->quit;

# A session that is in the middle of a statement when the setting is reloaded sees the
# old value until the statement ends; the server's value applies.
$server->adjust_conf('postgresql.auto.conf', 'snowflake.machine_id', '-1');
$server->restart;
$server->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.machine_id = 7');
is($server->safe_psql('postgres', <<'SQL'), '7', 'and in the middle of a statement');
DO $$
BEGIN
	PERFORM pg_reload_conf();
	FOR i IN 1 .. 1000 LOOP
		BEGIN
			PERFORM snowflake_nextval();
			EXIT;
		EXCEPTION WHEN object_not_in_prerequisite_state THEN
			PERFORM pg_sleep(0.01);
		END;
	END LOOP;
	ASSERT current_setting('snowflake.machine_id') = '-1';
END $$;
SELECT snowflake_machine_id(snowflake_currval());
SQL

# The first use fixes it until the next start.
$log = -s $server->logfile;
configure($server, 'snowflake.machine_id', 8);
is( $server->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval())'),
	'7', 'the machine ID is fixed by its first use');
wait_for_log($server, $log, qr/WARNING:  the new value of "snowflake.machine_id" has no effect until the server is restarted\n.*DETAIL:  The new value is 8\.  IDs are still issued with machine ID 7, .*\n.*HINT:  Restart the server/,
	'a warning says so');

# The crash of a process does not count as a restart: two servers that exchange their numbers do not
# use the same one until both were restarted.
$server->safe_psql('postgres', 'ALTER SYSTEM SET restart_after_crash = on');
$server->safe_psql('postgres', 'SELECT sno_nextval()');
$server->reload;
ok(kill_process($server, wal_writer($server)), 'the processes are restarted');
is($server->safe_psql('postgres', "SET snowflake.max_wait = '1min'; SELECT snowflake_machine_id(snowflake_nextval()), sno_partition(sno_nextval())"),
	'7|7', 'the crash of a process does not change the machine ID');
$server->restart;
is( $server->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval())'),
	'8', 'a restart changes it');

# Settings that are inconsistent at the start.
$log = -s $server->logfile;
$server->adjust_conf('postgresql.auto.conf', 'snowflake.machine_id', '32');
restart_with_layout($server, 'javascript');
log_matches($server, $log, qr/WARNING:  machine ID 32 does not fit the Snowflake layout "javascript"/, 'a warning at start');
fails_with($server, $nextval, '22023', qr/5 bits for the machine ID, which allow 0 to 31/);
$log = -s $server->logfile;
$server->adjust_conf('postgresql.auto.conf', 'snowflake.machine_id', '31');
$server->append_conf('postgresql.conf', "snowflake.sequence_range = '100-128'");
$server->restart;
log_matches($server, $log, qr/WARNING:  sequence range "100-128" does not fit the Snowflake layout "javascript"/, 'a warning at start');
fails_with($server, $nextval, '22023',
	qr/7 bits for the sequence number, which allow 0 to 127/, qr/HINT:  Change "snowflake.sequence_range"/);

# A valid range is used in every tick.
$server->append_conf('postgresql.conf', "snowflake.sequence_range = '100-119'");
$server->restart;
is( $server->safe_psql('postgres', <<'SQL'), '100|119|20|2000|t', 'all sequences of the range, and no other');
SELECT min(sequence), max(sequence), count(DISTINCT sequence), count(DISTINCT id), count(DISTINCT created_at) >= 100
FROM snowflake_nextvals(2000) id, snowflake_decode(id)
SQL

# Jitter: ticks start at different numbers, up to the jitter.
$server->append_conf('postgresql.conf', "snowflake.sequence_range = '10-127'\nsnowflake.sequence_jitter = 50");
$server->restart;
is( $server->safe_psql('postgres', <<'SQL'), 't|t|t', 'ticks start within the jitter');
SELECT min(first) >= 10, max(first) <= 60, count(DISTINCT first) > 5
FROM (SELECT min(snowflake_sequence(id)) AS first
      FROM snowflake_nextvals(10000) id GROUP BY snowflake_timestamp(id) ORDER BY snowflake_timestamp(id) OFFSET 1) a
SQL

# A jitter beyond the range leaves one number of each tick.
configure($server, 'snowflake.sequence_jitter', 2147483647);
is($server->safe_psql('postgres', 'SELECT count(DISTINCT id), max(snowflake_sequence(id)) <= 127 FROM snowflake_nextvals(100) id'),
	'100|t', 'jitter beyond the range');

# No machine bits, no machine ID.
$server->append_conf('postgresql.conf', "snowflake.sequence_range = ''");
$server->adjust_conf('postgresql.auto.conf', 'snowflake.machine_id', '-1');
restart_with_layout($server, 'mastodon');
is($server->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval())'), '0', 'no machine bits');

# A layout that is longer than messages allow is shown as short as possible.
$log = -s $server->logfile;
restart_with_layout($server, 'epoch=1288834974657ms tick=1ms timestamp=41' . ' ' x 200 . 'sequence=22');
$server->safe_psql('postgres', $nextval);
log_matches($server, $log, qr/LOG:  started to issue Snowflake IDs with machine ID 0 in the layout "epoch=2010-11-04T01:42:54\.657Z tick=1ms timestamp=41 sequence=22"/,
	'a layout with spaces');
$server->stop;

done_testing();
