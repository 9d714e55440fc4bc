# Without the preload: CREATE EXTENSION is refused, says which line to add, and leaves nothing behind.
# On a server that has the extension and has lost the line, all functions that need the state or the
# layout of the server raise the same error.  Functions of their arguments alone, and columns of type
# sno, can be used.  A library that replaces a hook of the extension is named by an error.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $server = snowflake_server('main', { preload => '', extension => 0 }, 'snowflake.machine_id = 7', "snowflake.layout = 'discord'", 'wal_level = logical');
my $file = $server->data_dir . '/postgresql.conf';
my @refusal = ('55000', qr/ERROR:  55000: snowflake must be loaded via "shared_preload_libraries"/,
	qr/HINT:  Add the line "shared_preload_libraries = 'snowflake'" to "\Q$file\E" and restart the server\./);

# Restart with other libraries.
sub preload
{
	my ($libraries) = @_;

	$server->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'");
	$server->restart;
}

# What CREATE EXTENSION makes, beside the extension: its schema, the durable numbers and the mark.
my $made = <<'SQL';
SELECT (SELECT count(*) FROM pg_extension WHERE extname = 'snowflake'),
	(SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake'),
	(SELECT count(*) FROM pg_proc WHERE probin LIKE '%snowflake%'),
	(SELECT count(*) FROM pg_type WHERE typname = 'sno'),
	(SELECT count(*) FROM pg_replication_origin_status),
	(SELECT count(*) FROM pg_replication_origin),
	(SELECT count(*) FROM pg_parameter_acl)
SQL
fails_with($server, 'CREATE EXTENSION snowflake', @refusal);
fails_with($server, 'BEGIN; CREATE SCHEMA snowflake; CREATE EXTENSION snowflake SCHEMA snowflake', @refusal);
is($server->safe_psql('postgres', $made), '0|0|0|0|0|0|0', 'nothing is left behind');
$server->restart;
is($server->safe_psql('postgres', $made), '0|0|0|0|0|0|0', 'nor after a restart');
$server->safe_psql('postgres', 'CREATE ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO app');
is($server->safe_psql('postgres', "LOAD 'snowflake'; SELECT current_setting('snowflake.max_wait', true) IS NULL, count(*) FROM pg_settings WHERE name LIKE 'snowflake.%'"),
	't|0', 'a session that loads the library has none of its settings');

# With the line, and other libraries in it.
preload('auto_explain');
fails_with($server, 'CREATE EXTENSION snowflake', '55000', qr/"shared_preload_libraries = 'auto_explain, snowflake'"/);
preload('auto_explain, snowflake');
$server->safe_psql('postgres', <<'SQL');
CREATE EXTENSION snowflake;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text);
CREATE TABLE visits (id sno PRIMARY KEY DEFAULT sno_nextval(), page integer);
CREATE TABLE feed (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE counted (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE TABLE happenings (id bigint) PARTITION BY RANGE (id);
INSERT INTO orders (item) SELECT 'a lamp' FROM generate_series(1, 100);
INSERT INTO visits (page) SELECT i FROM generate_series(1, 100) AS i;
SELECT snowflake_enable_feed('feed');
CREATE PUBLICATION all_tables FOR ALL TABLES;
SQL
like($server->safe_psql('postgres', $made), qr/^1\|0\|\d\d+\|1\|\d+\|0\|1$/, 'the extension is created after a restart');
is($server->safe_psql('postgres', "SELECT snowflake_machine_id(snowflake_nextval()), sno_partition(sno_nextval()), layout FROM pg_stat_snowflake WHERE generator = 'bigint'"),
	'7|7|discord', 'and issues IDs');
my $last = $server->safe_psql('postgres', 'SELECT snowflake_nextval()');
$server->run_log([ 'pg_dump', '-d', $server->connstr('postgres'), '-f', "$scratch/dump.sql" ]);

# The line is lost.
preload('');
for my $statement (
	'SELECT snowflake_nextval()', 'SELECT snowflake_id()', 'SELECT snowflake_nextvals(1)', 'SELECT sno_nextval()', 'SELECT sno_nextvals(1)', 'SELECT sno_at(now())',
	"INSERT INTO orders (item) VALUES ('a lamp')", 'INSERT INTO visits (page) VALUES (1)', 'INSERT INTO feed VALUES (1)',
	'SELECT snowflake_decode(1)', 'SELECT snowflake_timestamp(1)', 'SELECT snowflake_machine_id(1)', 'SELECT snowflake_sequence(1)',
	'SELECT snowflake_encode(now(), 1, 1)', 'SELECT snowflake_boundary(now())', 'SELECT snowflake_between(1, now(), now())',
	'SELECT FROM orders WHERE snowflake_timestamp(id) > now()', 'EXPLAIN SELECT FROM orders WHERE snowflake_between(id, now(), now())',
	'SELECT snowflake_server_machine_id()', 'TABLE pg_stat_snowflake', 'SELECT pg_stat_snowflake_reset()', 'SELECT snowflake_horizon()',
	"SELECT snowflake_adopt('counted', 'id')",
	"SELECT snowflake_create_partitions('happenings', '2026-11-01', '2026-11-02', '1 day')", "SELECT snowflake_drop_partitions('happenings', '2026-11-01')",
	'SELECT snowflake_check_layout()', 'SELECT snowflake_check_clock()', 'SELECT snowflake_accept_layout()', 'SELECT snowflake_accept_clock()', 'SELECT snowflake_accept_registry()',
	'SELECT snowflake_set_floor(now())', 'SELECT sno_set_floor(now())',
	"CREATE DATABASE other;\n\\connect other\nCREATE EXTENSION snowflake")
{
	fails_with($server, $statement, @refusal);
}
fails_with($server, 'SET ROLE app; SELECT snowflake_nextval()', '55000',
	qr/HINT:  Add the line "shared_preload_libraries = 'snowflake'" to "postgresql.conf" and restart/);

# Functions of their arguments alone.
is($server->safe_psql('postgres', <<"SQL"), '7|7|t|t|t|t', 'functions with a layout work');
SELECT snowflake_machine_id($last, 'discord'), (snowflake_decode($last, 'discord')).machine_id,
	snowflake_timestamp($last, 'discord') BETWEEN now() - interval '1 hour' AND now(),
	snowflake_encode(snowflake_timestamp($last, 'discord'), 7, snowflake_sequence($last, 'discord'), 'discord') = $last,
	snowflake_boundary(now(), 'discord') > $last,
	snowflake_from_base32(snowflake_to_base32($last)) = $last
SQL
is($server->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM orders WHERE id < snowflake_boundary(now(), 'discord') AND snowflake_timestamp(id, 'discord') < now()}),
	'100', 'also in conditions');
like($server->safe_psql('postgres', 'SELECT count(*) FROM snowflake_layouts; SELECT snowflake_version()'), qr/^\d+\n1\./, 'the presets and the version can be read');
is($server->safe_psql('postgres', <<'SQL'), '100|t|t|t|t', 'and so can columns of type sno');
SELECT count(*), bool_and(id::text::sno = id), min(id) < max(id), bool_and(sno_timestamp(id) BETWEEN now() - interval '1 hour' AND now()),
	bool_and(sno_encode(created_at, metabyte, "partition", sequence, tick_tock) = id)
FROM visits, sno_decode(id)
SQL
is($server->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM visits a JOIN visits b USING (id) WHERE id >= sno_boundary(now() - interval '1 hour') AND id < sno_boundary(now())}),
	'100', 'by their index, and in joins');
$server->safe_psql('postgres', "INSERT INTO visits SELECT sno_encode('2026-11-21', 1, 2, 3), 0; DELETE FROM visits WHERE page = 0; INSERT INTO orders VALUES (1, 'a lamp'); DELETE FROM orders WHERE id = 1");

# The server can be dumped.  A dump is not restored: the first statement that fails is that which
# creates the extension.
ok($server->run_log([ 'pg_dump', '-d', $server->connstr('postgres'), '-f', "$scratch/later.sql" ]), 'a dump is made');
is(strip(slurp_file("$scratch/later.sql")), strip(slurp_file("$scratch/dump.sql")), 'it is the same as before');
$server->safe_psql('postgres', 'CREATE DATABASE restored');
my ($status, undef, $errors) = $server->psql('restored', "\\set VERBOSITY verbose\n\\i $scratch/dump.sql");
isnt($status, 0, 'and is not restored');
like($errors, qr/\A\S* ?ERROR:  55000: snowflake must be loaded via "shared_preload_libraries".*HINT:  Add the line/s, 'with the same error');

# Dumps contain random keys since minor releases of 2025.
sub strip { return $_[0] =~ s/^\\(?:un)?restrict \S+\n//mgr; }

# The line is back.
preload('snowflake');
is($server->safe_psql('postgres', "SELECT snowflake_nextval() > $last, snowflake_machine_id(snowflake_nextval())"), 't|7', 'with the line IDs continue above the earlier ones');
$server->safe_psql('postgres', 'DROP DATABASE restored; CREATE DATABASE restored');
($status, undef, $errors) = $server->psql('restored', "\\i $scratch/dump.sql");
is("$status$errors", '0', 'and the dump is restored');
is($server->safe_psql('restored', 'SELECT count(*), count(snowflake_timestamp(id)) FROM orders'), '100|100', 'with its rows');

# The extension can be dropped without the preload.
preload('');
$server->safe_psql('restored', 'DROP EXTENSION snowflake CASCADE');
is($server->safe_psql('restored', q{SELECT count(*) FROM pg_proc WHERE probin LIKE '%snowflake%'}), '0', 'the extension can be dropped');

# Libraries that replace a hook of the extension without calling it, if they are loaded later.
my $library = "$scratch/replace_hook.so";
chomp(my $headers = `pg_config --includedir-server`);
system_or_bail('cc', '-shared', '-fPIC', '-O1', "-I$headers", '-o', $library, "$FindBin::RealBin/lib/replace_hook.c");
$server->stop;
$server->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake, $library'");
is($server->start(fail_ok => 1), 0, 'a server does not start if a later library replaces the hook that requests memory');
log_matches($server, 0, qr/FATAL:  could not set up shared memory for Snowflake IDs\n.*DETAIL:  A library after "snowflake" in "shared_preload_libraries" does not call the "shmem_request_hook"/, 'and says why');
$server->append_conf('postgresql.conf', 'replace_hook.startup = on');
$server->start;
fails_with($server, 'SELECT snowflake_nextval()', '55000', qr/could not set up shared memory for Snowflake IDs/, qr/does not call the "shmem_startup_hook"/, qr/HINT:  Move "snowflake" to the end/);
preload("$library, snowflake");
like($server->safe_psql('postgres', 'SELECT snowflake_nextval()'), qr/^\d+$/, 'before the extension, such a library has no effect');
$server->stop;

done_testing();
