# portable/snowflake.sql: its IDs are never repeated: not under load, by a clock that is set, by kill -9, by a cancel at
# any moment, or when the extension takes its place (portable/to_extension.sql) in one database after another, and gives
# it back.  SNOWFLAKE_TEST_SCALE lowers the numbers of IDs and crashes.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

my $scripts = "$FindBin::RealBin/../portable";
my $clock = TestClock->new;
my $server = snowflake_server('main', { clock => $clock }, 'snowflake.machine_id = 7', 'max_connections = 50', 'timezone = UTC', 'autovacuum = off');

sub portable { return edition($server, @_); }

# Replace the functions by the extension, in the schema public or another one.
sub switch
{
	my ($server, $database, $schema) = @_;

	return run_log([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr($database), '-c', 'SET search_path = ' . ($schema // 'public'), '-f', "$scripts/to_extension.sql" ],
		'2>', "$scratch/refusal");
}

sub to_extension { return switch($server, @_); }

sub refuses
{
	my ($run, $database, $pattern, %variables) = @_;

	ok(!$run->($database, %variables), "$pattern: refused");
	like(slurp_file("$scratch/refusal"), $pattern, 'with this error');
}

# The script that replaces the functions succeeds.
sub is_switched
{
	my ($server, $database, $name, $schema) = @_;

	ok(switch($server, $database, $schema), $name) or diag(slurp_file("$scratch/refusal"));
}

# An ordinary role installs it; another one issues IDs, and cannot do more, nor mislead the functions.
$server->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN; CREATE DATABASE shop OWNER owner');
{
	local $ENV{PGUSER} = 'owner';

	$server->safe_psql('shop', 'CREATE SCHEMA "the shop"; GRANT USAGE, CREATE ON SCHEMA "the shop" TO app');
	ok(portable('shop', machine_id => 7, schema => 'the shop'), 'an ordinary role runs it');
	ok(portable('shop', machine_id => 7, schema => 'the shop'), 'and again');
	refuses(\&portable, 'shop', qr/cannot change the layout of the IDs of this database/, machine_id => 7, schema => 'the shop', layout => 'discord');
	refuses(\&portable, 'shop', qr/argument "machine_id" is out of range/, machine_id => 1024, schema => 'the shop');
	refuses(\&portable, 'shop', qr/invalid input syntax for type bigint: "seven"/, machine_id => 'seven');
	refuses(\&portable, 'shop', qr/invalid Snowflake layout/, layout => 'nonsense');
	refuses(\&portable, 'shop', qr/invalid Snowflake layout/, layout => 'epoch=2024-01-01 tick=0ms timestamp=41 sequence=12');
	refuses(\&portable, 'shop', qr/invalid Snowflake layout/, layout => 'epoch=2024-01-01 tick=1ms timestamp=41 machine=11 sequence=12');
}
{
	local $ENV{PGUSER} = 'app';
	my $path = 'SET search_path = "the shop";';

	like($server->safe_psql('shop', "$path SELECT snowflake_machine_id(snowflake_nextval())"), qr/^7$/, 'another role issues IDs');
	for my $statement ('SELECT setval(\'snowflake_base\', 1)', 'SELECT nextval(\'snowflake_count\')', 'SELECT snowflake_move(1)', 'BEGIN; LOCK snowflake_server', 'TABLE snowflake_server', 'DROP FUNCTION snowflake_nextval()')
	{
		fails_with($server, "\\connect shop\n$path $statement", '42501');
	}
	$server->safe_psql('shop', 'SET search_path = pg_temp, "the shop", pg_catalog;
		CREATE FUNCTION "the shop".nextval(regclass) RETURNS bigint LANGUAGE sql RETURN 1;
		CREATE FUNCTION "the shop".pg_sequence_last_value(regclass) RETURNS bigint LANGUAGE sql RETURN 1;
		CREATE FUNCTION "the shop".clock_timestamp() RETURNS timestamptz LANGUAGE sql RETURN \'infinity\'::timestamptz;
		CREATE OPERATOR "the shop".+ (LEFTARG = bigint, RIGHTARG = bigint, PROCEDURE = int8mul);
		CREATE TEMPORARY TABLE snowflake_server ();
		CREATE TEMPORARY SEQUENCE snowflake_base');
	is($server->safe_psql('shop', q{SET search_path = pg_temp, "the shop", pg_catalog;
		CREATE TEMPORARY TABLE snowflake_server ();
		SELECT pg_catalog.clock_timestamp() AS before \gset
		SELECT snowflake_nextval() AS id \gset
		SELECT snowflake_timestamp(:id) BETWEEN :'before'::timestamptz - interval '1 s' AND pg_catalog.clock_timestamp() + interval '1 s'}),
		't', 'objects of others do not mislead it');
}

# A database has one of the two.
my $has_functions = qr/this database has the functions of portable\/snowflake\.sql.*HINT:  .* run portable\/to_extension\.sql/s;
fails_with($server, "\\connect shop\nCREATE EXTENSION snowflake", '42710', $has_functions);
refuses(\&portable, 'postgres', qr/extension "snowflake" is installed/, machine_id => 8);

# Load, crashes, and a clock that is set.  The primary key finds a repeated ID.
$server->safe_psql('postgres', 'CREATE DATABASE load');
ok(portable('load', machine_id => 7), 'a database for the load');
$server->safe_psql('load', 'CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n integer)');

# Sessions that run lines, also after an error, until their connection is lost.
sub run_lines
{
	my ($sessions, @lines) = @_;
	my $file = "$scratch/lines.sql";

	unlink $file;
	append_to_file($file, join("\n", @lines));
	return map { IPC::Run::start([ 'psql', '-Xq', '-d', $server->connstr('load'), '-f', $file ], '2>>', "$scratch/errors", '>', '/dev/null') } 1 .. $sessions;
}

sub inserts
{
	my ($statements, $rows) = @_;

	return ("INSERT INTO items (n) SELECT 1 FROM generate_series(1, $rows);") x $statements;
}

# What the sessions have reported.
sub errors
{
	my $errors = slurp_file("$scratch/errors");

	unlink "$scratch/errors";
	return $errors;
}

my $rounds = scaled(40, 8);
my $rows_per_round = scaled(250_000, 1000);
my ($latest, $last_id) = (0, 0);
for my $round (1 .. $rounds)
{
	my @sessions = run_lines(16, inserts($rows_per_round / 1000 + 1, 100));
	my $offset = $latest + (-3600, 3500, 0, -0.5, -3600, 3500, 0.5)[ $round % 7 ];

	$server->poll_query_until('load', "SELECT count(*) >= $rows_per_round FROM items WHERE id > $last_id");
	$clock->set($offset);
	crash($server) if $round % 2;
	$_->finish for @sessions;
	$latest = $offset if $offset > $latest;
	$clock->set($latest);
	$server->start if $round % 2;
	$last_id = $server->safe_psql('load', 'SELECT max(id) FROM items');
}
cmp_ok($server->safe_psql('load', 'SELECT count(*) FROM items'), '>=', $rounds * $rows_per_round, 'the load');
for my $condition ("id >= snowflake_boundary(now() - interval '1 hour')", "snowflake_between(id, now() - interval '1 hour', now())")
{
	like($server->safe_psql('load', "SET enable_seqscan = off; EXPLAIN SELECT FROM items WHERE $condition"), qr/Index Cond: \(+id >= /, "$condition uses the key");
}
unlike(errors(), qr/duplicate key/, 'no ID is repeated');
unlike(slurp_file($server->logfile), qr/duplicate key/, 'nor for a client that was gone');

$server->safe_psql('load', 'SELECT snowflake_nextval()');
$clock->set($latest - 3500);
fails_with($server, "\\connect load\nSELECT snowflake_nextval()", '55000', qr/the clock is behind the last Snowflake ID/);
$clock->set($latest);

# A server on which a move of the base takes longer than the 10 ms by which the base may be behind the clock:
# each of four sessions is issued its IDs.  Between two IDs it waits until the base is behind again.
$server->safe_psql('postgres', 'CREATE DATABASE slow');
ok(portable('slow', machine_id => 8), 'a database for slow moves');
$server->safe_psql('slow', <<'SQL');
ALTER FUNCTION snowflake_move(bigint) RENAME TO snowflake_move_base;
CREATE FUNCTION snowflake_move(tick bigint) RETURNS void LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT snowflake_move_base(tick); SELECT FROM pg_sleep(0.05); END;
CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n integer);
SQL
my $slow = "$scratch/slow.sql";
append_to_file($slow, "SET statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s';\n" . "INSERT INTO items VALUES (DEFAULT, 1); SELECT pg_sleep(0.02);\n" x 20);
$_->finish for map { IPC::Run::start([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr('slow'), '-f', $slow ], '2>>', "$scratch/errors", '>', '/dev/null') } 1 .. 4;
is(errors(), '', 'calls end though each move is slow');
is($server->safe_psql('slow', 'SELECT count(*) FROM items'), '80', 'and all IDs are issued');

# The base moves forward only.  It is moved while a call waits for a lock before it takes its count: the call begins again.
sub move_to
{
	my ($interval) = @_;

	return $server->safe_psql('slow', "SELECT boundary FROM snowflake_boundary(clock_timestamp() + interval '$interval') boundary, snowflake_move_base(boundary >> 22)");
}

my $base = q{SELECT pg_sequence_last_value('snowflake_base')};
my $boundary = move_to('3 s');
my $moved = $server->safe_psql('slow', $base);
$server->safe_psql('slow', "SELECT snowflake_move_base(($boundary >> 22) - 1)");
is($server->safe_psql('slow', $base), $moved, 'the base does not move back');
$server->safe_psql('slow', q{DO $$ BEGIN EXECUTE replace(pg_get_functiondef('snowflake_nextval'::regproc), 'pos := base +', 'PERFORM pg_advisory_xact_lock_shared(1); pos := base +'); END $$});
my $holder = $server->background_psql('slow');
$holder->query_safe('SELECT pg_advisory_lock(1)');
my $issued = '';
my $call = IPC::Run::start([ 'psql', '-XAtq', '-d', $server->connstr('slow'), '-c', 'SELECT snowflake_nextval()' ], '>', \$issued);
$server->poll_query_until('slow', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
$boundary = move_to('5 s');
$holder->quit;
$call->finish;
cmp_ok($issued, '>=', $boundary, 'an ID of the base to which it was moved meanwhile');

# Calls are cancelled at any moment.  They hold no lock then, and others continue.
my @calls = map { (sprintf('SET statement_timeout = %d;', 1 + $_ % 40), 'SELECT max(snowflake_nextval()) FROM (SELECT pg_sleep(0.011) FROM generate_series(1, 3) n) q;',
		sprintf('SET statement_timeout = %d;', 1 + $_ % 7), 'SELECT max(snowflake_nextval()) FROM generate_series(1, 1000000);') } 1 .. scaled(200, 60);
$_->finish for run_lines(4, @calls);
unlike(errors(), qr/ERROR:  (?!canceling statement)/, 'no other error');
my $next = 'SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint';
my $before = $server->safe_psql('load', $next);
my $one = $server->background_psql('load');
$one->query_safe('BEGIN');
$one->query_safe('SELECT snowflake_nextval(), pg_sleep(0.02)') for 1 .. 5;
is($server->safe_psql('load', q{SELECT count(*) FROM pg_locks WHERE relation = 'snowflake_server'::regclass}), '0', 'a transaction holds no lock after a call');
like($server->safe_psql('load', 'SELECT snowflake_nextval()'), qr/^\d+$/, 'and others go on');
$one->query_safe('COMMIT');
is($server->safe_psql('load', "$next - 2"), $before, 'no transaction IDs are used for subtransactions');
$one->quit;

# The extension takes its place, and gives it back, under load.
my ($back) = slurp_file("$FindBin::RealBin/../docs/portable.md") =~ /```sql\n(DO (?:(?!```).)*?DROP EXTENSION.*?)```/s or die 'docs/portable.md has no such statements';
$back = slurp_file("$scripts/snowflake.sql") . $back;
$server->safe_psql('load', 'CREATE TABLE by_orm (id bigint DEFAULT snowflake_id())');
# the sessions are ended long before they have run all lines
my @sessions = run_lines(4, (inserts(1, 50), 'SELECT pg_sleep(0.002);') x 50000);
for my $way ('to', 'back', 'to')
{
	my $before = $server->safe_psql('load', 'SELECT count(*) FROM items');

	$server->poll_query_until('load', "SELECT count(*) > $before + 500 FROM items");
	if ($way eq 'back') { $server->safe_psql('load', $back) }
	else { is_switched($server, 'load', 'the extension takes its place') }
}
$_->kill_kill for @sessions;
is(errors(), '', 'no statement fails');
is($server->safe_psql('load', 'SELECT count(*) FROM pg_extension WHERE extname = \'snowflake\''), '1', 'the extension is installed at the end');
is($server->safe_psql('load', q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'by_orm'::regclass}), 'snowflake_id()', 'a default keeps its function');

# All that it has made is gone.
my $left = q{SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake%' AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e')};
is($server->safe_psql('load', "$left; SELECT count(*) FROM pg_class WHERE relname IN ('snowflake_base', 'snowflake_count', 'snowflake_server')"), "0\n0", 'nothing else is left');
refuses(\&to_extension, 'load', qr/search_path has no functions of portable\/snowflake\.sql.*HINT:  Set "search_path"/s);

# One in another schema, whose owner is an ordinary role.  Defaults are as before, including the default of a
# partition, which differs from the default of its table.
$server->safe_psql('shop', <<'SQL');
SET search_path = "the shop";
CREATE TABLE orders (id bigint DEFAULT coalesce(snowflake_nextval(), 7), "the item" text, other bigint) PARTITION BY LIST (other);
CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1);
ALTER TABLE ONLY orders_1 ALTER id SET DEFAULT snowflake_id();
CREATE VIEW recent AS TABLE orders;
ALTER VIEW recent ALTER id SET DEFAULT snowflake_nextval();
SQL
my $defaults = q{SELECT string_agg(concat(adrelid::regclass, ' ', pg_get_expr(adbin, adrelid)), ', ' ORDER BY adrelid::regclass::text) FROM pg_attrdef};
$before = $server->safe_psql('shop', $defaults);
my $last = $server->safe_psql('shop', 'SELECT "the shop".snowflake_nextval()');
is_switched($server, 'shop', 'in another schema', '"the shop"');
is($server->safe_psql('shop', $defaults), $before, 'defaults are as before');
is($server->safe_psql('shop', qq{SELECT "the shop".snowflake_nextval() > $last; $left}), "t\n0", 'and IDs continue above the last one');

# One whose functions were created by the extension snowflake_sql.
$server->safe_psql('postgres', 'CREATE DATABASE by_extension');
$server->safe_psql('by_extension', 'CREATE EXTENSION snowflake_sql; SELECT snowflake_setup(machine_id => 9)');
is_switched($server, 'by_extension', 'with the extension snowflake_sql');
is($server->safe_psql('by_extension', "$left; SELECT string_agg(extname, ' ') FROM pg_extension WHERE extname LIKE 'snowflake%'"), "0\nsnowflake", 'only the extension snowflake is left');

# One that only reads.
$server->safe_psql('postgres', 'CREATE DATABASE reader');
ok(portable('reader', layout => 'discord'), 'functions that only read IDs');
fails_with($server, "\\connect reader\nCREATE SCHEMA other; CREATE EXTENSION snowflake SCHEMA other", '42710', $has_functions);
refuses(\&to_extension, 'reader', qr/have another layout than this server.*DETAIL:  The layout of the server is "twitter".*HINT:  Set "snowflake\.layout"/s);
is($server->safe_psql('reader', q{SELECT snowflake_timestamp(0) AT TIME ZONE 'UTC'}), '2015-01-01 00:00:00', 'after a refusal they read IDs as before');
$server->safe_psql('postgres', 'DROP DATABASE reader');
$server->safe_psql('postgres', 'CREATE DATABASE reader');
ok(portable('reader'), 'the same in the layout of the server');
$server->safe_psql('reader', 'CREATE TABLE copies (id bigint PRIMARY KEY); CREATE VIEW times AS SELECT snowflake_timestamp(id) FROM copies');
refuses(\&to_extension, 'reader', qr/cannot drop .* because other objects depend on (?:it|them)\nDETAIL:  view public\.times depends on function public\.snowflake_timestamp/);
my $read = "SELECT snowflake_decode($last), snowflake_boundary('2026-11-20'), snowflake_to_base32($last)";
$server->safe_psql('reader', 'DROP VIEW times');
$before = $server->safe_psql('reader', $read);
is_switched($server, 'reader', 'the extension takes their place');
is($server->safe_psql('reader', $read), $before, 'and IDs are read alike');
is($server->safe_psql('reader', "$left; SELECT count(*) FROM pg_extension WHERE extname = 'snowflake'"), "0\n1", 'by the extension alone');
$server->stop;

# Two databases of one server, one after the other, under load that the layout limits.  The extension,
# in the first one, is seconds ahead of the clock when the second one is switched.  The ticks are so long that a slow
# server reaches the limit.
my $layout = 'epoch=2024-01-01 tick=10ms timestamp=41 machine=10 sequence=3';
my %machine_id = (first => 7, second => 8);
my $two = snowflake_server('two', { extension => 0 }, 'snowflake.machine_id = 7', "snowflake.layout = '$layout'", "snowflake.max_ahead = '3s'", 'max_connections = 50');
my $lines = "$scratch/full_speed.sql";
append_to_file($lines, join("\n", inserts(50000, 100)));
@sessions = ();
for my $database (sort keys %machine_id)
{
	$two->safe_psql('postgres', "CREATE DATABASE $database");
	ok(edition($two, $database, machine_id => $machine_id{$database}, layout => $layout), "database $database");
	$two->safe_psql($database, q{CREATE TABLE items (id bigint DEFAULT snowflake_nextval(), n integer, by_extension boolean DEFAULT (to_regproc('snowflake_currval') IS NOT NULL))});
	push @sessions, map { IPC::Run::start([ 'psql', '-Xq', '-d', $two->connstr($database), '-f', $lines ], '2>>', "$scratch/load_errors", '>', '/dev/null') } 1 .. 4;
}
for my $database (sort keys %machine_id)
{
	$two->poll_query_until($database, 'SELECT count(*) > 5000 FROM items');
	$two->poll_query_until('first', q{SELECT ahead > '2 s' FROM pg_stat_snowflake WHERE generator = 'bigint'}) if $database eq 'second';
	is_switched($two, $database, "database $database is switched");
	like(slurp_file("$scratch/refusal"), qr/NOTICE:  the floor of Snowflake IDs was not changed/, 'the extension is above its IDs already') if $database eq 'second';
	$two->poll_query_until($_, 'SELECT count(*) > 5000 FROM items WHERE by_extension') for grep { $_ le $database } sort keys %machine_id;
}
$_->kill_kill for @sessions;
is(slurp_file("$scratch/load_errors"), '', 'no statement of the load fails');
my @files;
for my $database (sort keys %machine_id)
{
	push @files, "$scratch/ids_$database";
	$two->safe_psql($database, "COPY (SELECT id FROM items) TO '$files[-1]'");
	is($two->safe_psql($database, 'SELECT max(id) FILTER (WHERE NOT by_extension) < min(id) FILTER (WHERE by_extension) FROM items'), 't', "database $database: IDs continue above those from before the switch");
}
none_is_issued_twice(20000, 'both databases', @files);
$two->stop;

done_testing();
