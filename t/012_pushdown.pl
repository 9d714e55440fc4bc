# Pushdown beyond one server: conditions that postgres_fdw sends to another server, and a library
# beside Citus.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $server = snowflake_server('main');

# A condition that is constant is computed before it is sent to another server.
SKIP:
{
	skip 'postgres_fdw is not installed', 1
	  if $server->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'") == 0;
	$server->safe_psql('postgres', <<'SQL');
CREATE EXTENSION postgres_fdw;
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw;
CREATE USER MAPPING FOR CURRENT_USER SERVER other;
CREATE FOREIGN TABLE far (id bigint) SERVER other;
SQL
	like($server->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM far WHERE snowflake_timestamp(id) < '2026-01-01'"),
		qr/Remote SQL: SELECT id FROM public.far WHERE \(\(id < 2006515713438646272::bigint\)\)/, 'postgres_fdw sends the condition');
}
$server->stop;

# Citus plans queries as they were written, so it receives them with the conditions replaced; this
# is done only if its settings are defined.
my ($citus, $hooks) = map { "$scratch/$_.so" } 'citus', 'hooks';
chomp(my $headers = `pg_config --includedir-server`);
system_or_bail('cc', '-shared', '-fPIC', '-O1', "-I$headers", '-o', @$_) for [ $citus, "$FindBin::RealBin/lib/citus.c" ], [ $hooks, "$FindBin::RealBin/012_hooks.c" ];

my $delete = "DELETE FROM orders WHERE snowflake_timestamp(id) < now()";
my $beside = snowflake_server('beside', { preload => "$citus, $hooks, snowflake" }, 'snowflake.machine_id = 1');
$beside->safe_psql('postgres', 'CREATE TABLE orders (id bigint PRIMARY KEY, item text)');
is($beside->safe_psql('postgres', "SELECT 1 FROM orders WHERE id = 1;\nSELECT current_setting('citus.hooks'), current_setting('citus.relations')::integer > 0"),
	'2|t', 'hooks of another library are called as well');
is($beside->safe_psql('postgres', "SELECT 1 FROM orders WHERE id = 1; SHOW hooks.called"), '3', 'also those for paths');
my ($status, $stdout, $stderr) = $beside->psql('postgres', $delete);
is($stderr, '', 'Citus is given conditions on the ID');
my @more = (
	"snowflake_between(id, '2026-11-20', now())", "item IS NULL OR NOT snowflake_between(id, '2026-11-20', '2026-11-21')",
	"snowflake_timestamp(id) IN ('2026-11-20', '2026-11-21')", "id IN (SELECT id FROM orders WHERE snowflake_between(id, '2026-11-20', now()))");
for my $condition (@more)
{
	($status, $stdout, $stderr) = $beside->psql('postgres', "DELETE FROM orders WHERE $condition");
	is($stderr, '', "Citus is given them in place of $condition");
}
($status, $stdout, $stderr) = $beside->psql('postgres', "SET snowflake.enable_timestamp_pushdown = off; $delete");
like($stderr, qr/the query calls/, 'and is not with pushdown off');
$beside->safe_psql('postgres',
	'CREATE SCHEMA other; CREATE FUNCTION other.snowflake_between(id bigint, timestamptz, timestamptz) RETURNS boolean LANGUAGE SQL STABLE RETURN id > 7');
($status, $stdout, $stderr) = $beside->psql('postgres', "DELETE FROM orders WHERE other.snowflake_between(id, now(), now())");
like($stderr, qr/the query calls/, 'a function of the same name is not inlined');
my $of_function = "EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1::bigint, 2) AS g (id) WHERE snowflake_timestamp(id) < '2026-01-01'";
like($beside->safe_psql('postgres', $of_function), qr/id < '2006515713438646272'/, 'with Citus all conditions are replaced before planning');
$beside->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'\ncitus.shard_count = 8");
$beside->restart;
like($beside->safe_psql('postgres', $of_function), qr/snowflake_timestamp\(id\) </, 'and not because the configuration names a setting of Citus');
$beside->stop;

done_testing();
