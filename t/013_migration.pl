# Existing tables: IDs for many old rows, and a table that
# becomes a partition, by the recipes that the documents print; and adopted tables
# through dump and restore, with their retention.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $server = snowflake_server('server', "snowflake.machine_id = 3", "timezone = 'UTC'");

# The statements of a document's block of SQL that matches a pattern.
sub recipe
{
	my ($document, $pattern) = @_;
	my $text = slurp_file("$FindBin::RealBin/../docs/$document");
	my @blocks = grep { /$pattern/ } $text =~ /^```sql\n(.*?)^```/msg;

	die "no single block $pattern in $document" unless @blocks == 1;
	return $blocks[0];
}

# Run such statements in a database.
sub runs
{
	my ($database, $sql, $name) = @_;
	my ($status, $stdout, $stderr) = $server->psql($database, $sql, on_error_stop => 1);

	is($status, 0, $name) or diag($stderr);
	return $stdout;
}

sub value { return $server->safe_psql('postgres', $_[0]); }

# Rows of which many share a millisecond or a microsecond: loads of 10 000 rows
# each, whose IDs continue in the following milliseconds, in which other loads have rows as well; a
# third of the rows have distinct times.  Keys are not in the order of time.
my $rows = scaled(5_000_000, 20_000);    # half a million in script/test
value(qq{
	CREATE TABLE orders (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL, old bigint);
	INSERT INTO orders (old, created_at)
	SELECT n, CASE n % 3
		WHEN 0 THEN timestamptz '2026-01-01' - n * interval '1 minute 7.123457 s'
		WHEN 1 THEN timestamptz '2025-05-05 05:05:05' + n / 30000 * interval '2 ms'
		ELSE timestamptz '2025-05-05 05:05:05.05' + n / 3000 * interval '0.7 ms' END
	FROM generate_series(1, $rows) n;
	CREATE TABLE before AS SELECT row_number() OVER (ORDER BY created_at, id) AS n, id AS old FROM orders;
});

runs('postgres', recipe('migration.md', qr/CREATE TEMP TABLE new_ids/), 'the recipe of docs/migration.md runs');

is(value('SELECT count(*) || \' \' || count(DISTINCT id) FROM orders'), "$rows $rows", 'each of the rows has an ID');
is(value(q{
	SELECT count(*) FROM before b
	JOIN (SELECT row_number() OVER (ORDER BY id) AS n, old FROM orders) o USING (n)
	WHERE o.old <> b.old}), '0', 'in the order of created_at, and of their keys');
is(value('SELECT count(*) FROM orders WHERE snowflake_timestamp(id) < date_trunc(\'milliseconds\', created_at)'),
	'0', 'none is before its time');
is(value(q{
	SELECT count(*) FROM orders
	WHERE created_at NOT BETWEEN '2025-05-05 05:05:05' AND '2025-05-05 05:05:06'
	  AND snowflake_timestamp(id) <> date_trunc('milliseconds', created_at)}),
	'0', 'rows that share no millisecond have IDs of their own');
cmp_ok(value('SELECT count(DISTINCT id >> 22) FROM orders WHERE created_at BETWEEN \'2025-05-05 05:05:05\' AND \'2025-05-05 05:05:06\''),
	'>', $rows * 2 / 3 / 4096 - 1, 'rows that do take the milliseconds they need');
is(value('SELECT count(*) FROM orders WHERE snowflake_machine_id(id) <> 3'), '0', "with this server's number");
is(value('INSERT INTO orders VALUES (DEFAULT, now()) RETURNING id > (SELECT max(id) FROM orders)'), 't',
	'future IDs are above');
is(value("SELECT count(*) FROM pg_class WHERE relkind = 'S'"), '0', 'the sequence is dropped');

# Dump and restore, into a database of this cluster and into another cluster.
value(q{
	CREATE TABLE visits (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, page text) PARTITION BY RANGE (id);
	CREATE TABLE visits_old PARTITION OF visits FOR VALUES FROM (MINVALUE) TO (1000);
	INSERT INTO visits (page) VALUES ('a'), ('b');
	SELECT snowflake_create_partitions('visits', '2025-01-01', '2025-03-01', '1 month');
	SELECT snowflake_create_partitions('visits', date_trunc('month', now()), now() + interval '2 months', '1 month');
	SELECT snowflake_adopt('visits', 'id');
	INSERT INTO visits (page) VALUES ('c'), ('d');
	CREATE DOMAIN click_id AS sno;
	CREATE TABLE clicks (id click_id PRIMARY KEY) PARTITION BY RANGE (id);
	SELECT snowflake_create_partitions('clicks', date_trunc('month', now()), now() + interval '2 months', '1 month');
	SELECT snowflake_adopt('clicks', 'id');
	INSERT INTO clicks DEFAULT VALUES;
	DROP TABLE before;
});
my $other = snowflake_server('other', 'snowflake.machine_id = 4');
$other->safe_psql('postgres', 'DROP EXTENSION snowflake');
my $dump = "$scratch/dump";
command_ok([ 'pg_dump', '-Fc', '-f', $dump, $server->connstr('postgres') ], 'pg_dump');
$server->safe_psql('postgres', 'CREATE DATABASE restored');
for ([ $server, 'restored', 3 ], [ $other, 'postgres', 4 ])
{
	my ($to, $database, $machine_id) = @$_;
	my $name = "machine $machine_id, $database";

	command_ok([ 'pg_restore', '-e', '-1', '-d', $to->connstr($database), $dump ], "$name: restored in one transaction");
	for my $table ('orders', 'visits')
	{
		is( $to->safe_psql($database, "SELECT count(*), sum(id) FROM $table"),
			value("SELECT count(*), sum(id) FROM $table"),
			"$name: $table has its rows");
	}
	is( $to->safe_psql($database,
			"INSERT INTO visits (page) VALUES ('e') RETURNING id > (SELECT max(id) FROM visits), snowflake_machine_id(id)"),
		"t|$machine_id", "$name: new rows get IDs of the server");
	is( $to->safe_psql($database, 'INSERT INTO clicks DEFAULT VALUES RETURNING id > (SELECT min(id) FROM clicks), sno_partition(id)'),
		"t|$machine_id", "$name: of type sno as well");
	is( $to->safe_psql($database, 'SELECT min(id) FROM clicks'), value('SELECT min(id) FROM clicks'), "$name: and clicks has its rows");
	is( $to->safe_psql($database, "SET timezone = 'UTC'; SELECT count(*) FROM snowflake_create_partitions('clicks', date_trunc('month', now()), now() + interval '2 months', '1 month')"),
		'0', "$name: and its partitions");
	is( $to->safe_psql($database, q{
			SELECT count(*), count(pg_get_serial_sequence(attrelid::regclass::text, 'id')) FROM pg_attribute
			JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
			WHERE attname = 'id' AND pg_get_expr(adbin, adrelid) = 'snowflake_id()'}),
		value("SELECT 2 + count(*), 0 FROM pg_inherits WHERE inhparent = 'visits'::regclass"),
		"$name: and no sequences were restored");

	# The statement of the job is not changed by the restore.
	my ($status, $dropped, $notice) = $to->psql($database, "SET timezone = 'UTC'; SELECT * FROM snowflake_drop_partitions('visits', now() - interval '1 year', '2025-01-01')");
	is($dropped, "public.visits_2025_01\npublic.visits_2025_02", "$name: retention drops the partitions of IDs");
	like($notice, qr/NOTICE:  partitions of table public\.visits were kept.*"since": public\.visits_old\./s, "$name: and names the one of other keys");
	is($to->safe_psql($database, "SELECT string_agg(page, '' ORDER BY id) FROM visits"), 'abcde', "$name: and all rows remain");
}

# In another layout IDs have other times, so nothing is dropped before the layout is known to be that
# in which they were issued.
my @drop = ($other, "SELECT snowflake_drop_partitions('visits', now(), '-infinity')", '55000');
my $partitions = 'SELECT count(*) FROM pg_inherits';
my $before = $other->safe_psql('postgres', $partitions);
$other->append_conf('postgresql.conf', "snowflake.layout = 'discord'");
$other->restart;
fails_with(@drop, qr/"snowflake.layout" does not match the layout of this cluster/,
	qr/DETAIL:  Snowflake IDs are issued in the layout "epoch=2010-11-04.*", but the setting is "epoch=2015-01-01.*"\./);
is($other->safe_psql('postgres', $partitions), $before, 'no partition was dropped in another layout');
$other->append_conf('postgresql.conf', "snowflake.layout = 'twitter'");
$other->restart;
my $state = q{INSERT INTO pg_replication_origin VALUES (65533, 'state'), (65531, 'epoch'), (65530, 'layout')};
$other->safe_psql('postgres', "SET allow_system_table_mods = on; $state; SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin");
$other->restart;
fails_with(@drop, qr/the durable state of Snowflake IDs is missing/);
is($other->safe_psql('postgres', $partitions), $before, 'nor while no layout is recorded');
$other->safe_psql('postgres', 'SELECT snowflake_set_floor(now())');
cmp_ok($other->safe_psql('postgres', "SELECT count(*) FROM snowflake_drop_partitions('clicks', now(), '-infinity')"), '==', 0, 'then the function works');

# The statements that docs/partitions.md prints, in its order.
$server->safe_psql('postgres', 'CREATE DATABASE shop');
runs('shop', 'CREATE EXTENSION snowflake', 'another database');
is(runs('shop', recipe('partitions.md', qr/^CREATE TABLE orders \(\n/m), 'a table with partitions'),
	"orders_2026_11\norders_2026_12\norders_2027_01", 'by months');
my $by_time = recipe('partitions.md', qr/^SELECT \* FROM orders WHERE/m);
like(runs('shop', "EXPLAIN $by_time", 'a query by time'), qr/^(?!.*orders_2026).*orders_2027_01/s, 'is pruned');
runs('shop', "INSERT INTO orders (id, item) SELECT snowflake_boundary(month), to_char(month, 'YYYY_MM') FROM generate_series(timestamptz '2026-11-01', '2027-01-01', '1 month') month", 'rows');
is(runs('shop', recipe('partitions.md', qr/PARTITION BY HASH/) =~ s/; .*/ \\gexec/r, 'partitions made by hand'), '', 'run by psql');
is($server->safe_psql('shop', "SELECT relkind FROM pg_class WHERE relname IN ('orders_2027_02', 'orders_2027_03')"), "p\np", 'exist');
runs('shop', recipe('partitions.md', qr/^SELECT \* FROM snowflake_create_partitions\('orders', date_trunc/m), 'once a day');
runs('shop', recipe('partitions.md', qr/^ALTER TABLE orders DETACH/m), 'a period goes');
runs('shop', "SELECT snowflake_create_partitions('orders', '2026-01-01', '2026-04-01', '1 month')", 'old periods');
runs('shop', recipe('partitions.md', qr/'DROP TABLE %s'/) =~ s/ CONCURRENTLY//r =~ s/now\(\) - interval '1 year'/'2026-03-01'/r =~ s/2026-11-01/2026-01-01/r =~ s/;\n/ \\gexec\n/r, 'go');
is($server->safe_psql('shop', q{SELECT relname FROM pg_class WHERE relname LIKE 'orders_2026_0%' AND relkind = 'r'}), 'orders_2026_03', 'and no more than those');
$server->safe_psql('postgres', 'CREATE DATABASE there');
$server->safe_psql('there', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text CHECK (item <> ''),
		length integer GENERATED ALWAYS AS (length(item)) STORED);
	INSERT INTO orders (id, item) VALUES (snowflake_boundary('2026-12-24', 'twitter'), 'a lamp');
});
my $log = -s $server->logfile;
runs('there', "SET log_min_messages = debug1;\n" . recipe('partitions.md', qr/ATTACH PARTITION orders_before/), 'a table becomes a partition');
log_matches($server, $log, qr/partition constraint for table "orders_before" is implied by existing constraints/, 'without being read');
is($server->safe_psql('there', q{
	INSERT INTO orders (id, item) VALUES (snowflake_boundary('2027-01-01', 'twitter'), 'a desk');
	SELECT tableoid::regclass, item, length FROM orders ORDER BY id}), "orders_before|a lamp|6\norders_2027_01|a desk|6", 'and the table has new rows as well');
my $stderr;
$server->psql('there', q{INSERT INTO orders (id, item) VALUES (snowflake_boundary('2027-01-02', 'twitter'), '')}, stderr => \$stderr);
like($stderr, qr/violates check constraint "orders_item_check"/, 'with its constraints');

done_testing();
