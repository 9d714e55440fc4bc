# Without the preload, PostgreSQL 17 and later: CREATE EXTENSION and one setting are enough,
# with no restart.  Settings that need a restart are fixed at their first use; features that still
# need the preload raise an error that says so.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $nextval = 'SELECT snowflake_nextval()';
plan skip_all => 'shared memory without the preload needs PostgreSQL 17' if major_version() < 17;

my $server = snowflake_server('main', { preload => '' }, 'restart_after_crash = on');
fails_with($server, $nextval, '55000', qr/"snowflake\.machine_id" is not set/);
$server->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.machine_id = 7; SELECT pg_reload_conf()');
$server->poll_query_until('postgres', "SELECT current_setting('snowflake.machine_id', true) = '7'") or die;
is($server->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval()), sno_partition(sno_nextval())'), '7|7',
	'a server that was not restarted issues IDs');

# One generator for all sessions and databases.
$server->safe_psql('postgres', 'CREATE DATABASE other');
$server->safe_psql('other', 'CREATE EXTENSION snowflake');
my @sessions = map { start_issuing($server, 'SELECT snowflake_nextval() FROM generate_series(1, 50000)', $_) } ('postgres', 'other') x 4;
$_->{run}->finish for @sessions;
none_is_issued_twice(400000, 'sessions of two databases', map { $_->{file} } @sessions);

# The horizon, in memory that a session detaches from when it exits.
$server->safe_psql('postgres', 'CREATE TABLE feed (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
my $open = $server->background_psql('postgres');
$open->query_safe('BEGIN; INSERT INTO feed DEFAULT VALUES');
$server->safe_psql('postgres', 'INSERT INTO feed DEFAULT VALUES');
my $before = $server->safe_psql('postgres', 'CALL snowflake_horizon(NULL)');
is($server->safe_psql('postgres', "SELECT count(*) FROM feed WHERE id < $before"), '0', 'an open transaction holds the horizon back');
$open->query_safe('COMMIT');
$open->quit;
my $after = $server->safe_psql('postgres', 'CALL snowflake_horizon(NULL)');
is($server->safe_psql('postgres', "SELECT count(*) FROM feed WHERE id >= $before AND id < $after"), '2', 'and not after it has ended');

# The layout that was used first applies, also to sessions that only decode.
my $id = $server->safe_psql('postgres', $nextval);
my $time = $server->safe_psql('postgres', "SELECT snowflake_timestamp($id, 'twitter')");
$server->append_conf('postgresql.conf', "snowflake.layout = 'discord'\nsnowflake.machine_id = 8\nsnowflake.sequence_range = '0-99999'");
$server->safe_psql('postgres', 'ALTER SYSTEM RESET snowflake.machine_id; SELECT pg_reload_conf()');
$server->poll_query_until('postgres', "SELECT current_setting('snowflake.machine_id', true) = '8'") or die;
is($server->safe_psql('postgres', "SELECT snowflake_timestamp($id)"), $time, 'the previous layout holds after a reload');
is($server->safe_psql('postgres', "SELECT snowflake_machine_id(snowflake_nextval()), layout FROM pg_stat_snowflake WHERE generator = 'bigint'"),
	'7|twitter', 'and so does the machine ID');
is($server->safe_psql('postgres', "LOAD 'snowflake'; SELECT count(*) FROM (SELECT snowflake_nextval() FROM generate_series(1, 10000)) i"), '10000',
	'and the sequence range');

# A crash of one process: the memory is lost, but no issued ID is issued again.
my $last = $server->safe_psql('postgres', "SELECT max(i) FROM (SELECT snowflake_nextval() FROM generate_series(1, 10000)) n (i)");
$server->append_conf('postgresql.conf', "snowflake.layout = 'twitter'\nsnowflake.sequence_range = ''");
$server->reload;
my $pid = $server->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
ok(kill_process($server, $pid), 'all processes are restarted');
is($server->safe_psql('postgres', "SELECT snowflake_nextval() > $last, snowflake_machine_id(snowflake_nextval())"), 't|8',
	'after a crash the server continues, with the current configuration');

# Another layout needs a restart, and to be accepted.
$server->append_conf('postgresql.conf', "snowflake.layout = 'discord'");
$server->restart;
fails_with($server, $nextval, '55000', qr/"snowflake.layout" does not match the layout of this cluster/);
$server->safe_psql('postgres', 'SELECT snowflake_accept_layout()');
is($server->safe_psql('postgres', "SELECT snowflake_machine_id(snowflake_nextval())"), '8', 'a layout that is accepted is issued in');

# Only the configuration decides, also if an ordinary user issues the first ID.
$server->safe_psql('postgres', 'CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app');
my ($status, undef, $refusal) = $server->psql('postgres', "ALTER ROLE app SET snowflake.layout = 'twitter'", extra_params => [ '-U', 'app' ]);
is($status, 3, 'an ordinary role cannot set it for its sessions');
like($refusal, qr/permission denied to set parameter "snowflake\.layout"/, 'before the library is loaded');
$server->restart;
($status, my $first) = $server->psql('postgres',
	"SET snowflake.layout = 'twitter'; SET snowflake.machine_id = 9; SET snowflake.sequence_range = '7-7'; SELECT snowflake_nextval()",
	extra_params => [ '-U', 'app' ]);
is($status, 0, 'an ordinary user issues the first ID');
is($server->safe_psql('postgres', "SELECT snowflake_machine_id($first, 'discord'), layout FROM pg_stat_snowflake WHERE generator = 'bigint'"), '8|discord',
	'by the configuration, not by the settings of the session');
isnt($server->safe_psql('postgres', "SELECT snowflake_sequence($first), count(DISTINCT snowflake_sequence(i)) > 1 FROM (SELECT snowflake_nextval() FROM generate_series(1, 1000)) n (i)"),
	'7|f', 'nor is the sequence range that of the session');

# A registry needs the preload.
$server->append_conf('postgresql.conf', "snowflake.registry = 'host=nowhere'");
$server->reload;
wait_until(sub { $server->psql('postgres', $nextval) != 0 });
fails_with($server, $nextval, '55000', qr/snowflake must be loaded via "shared_preload_libraries"/,
	qr/DETAIL:  "snowflake\.registry" is set, /, qr/HINT:  Add the line/);

done_testing();
