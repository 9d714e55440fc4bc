# Tables that were there before: IDs for a million old rows, by the recipe that
# docs/migration.md prints, and adopted tables through dump and restore.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

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

sub value { return $server->safe_psql('postgres', $_[0]); }

# Rows of which many share a millisecond or a microsecond: loads of 10 000 rows
# each, which run over into the milliseconds that follow, where others have rows as
# well; and a third with times of their own.  Keys are not in the order of time.
value(q{
	CREATE TABLE orders (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL);
	INSERT INTO orders (created_at)
	SELECT CASE n % 3
		WHEN 0 THEN timestamptz '2026-01-01' - n * interval '1 minute 7.123457 s'
		WHEN 1 THEN timestamptz '2025-05-05 05:05:05' + n / 30000 * interval '2 ms'
		ELSE timestamptz '2025-05-05 05:05:05.05' + n / 3000 * interval '0.7 ms' END
	FROM generate_series(1, 1000000) n;
	CREATE TABLE before AS SELECT row_number() OVER (ORDER BY created_at, id) AS n, id, created_at FROM orders;
});

my ($status, $stdout, $stderr) =
  $server->psql('postgres', recipe('migration.md', qr/CREATE TEMP TABLE new_ids/), on_error_stop => 1);
is($status, 0, 'the recipe of docs/migration.md runs') or diag($stderr);

is(value('SELECT count(*) || \' \' || count(DISTINCT id) FROM orders'), '1000000 1000000', 'a million rows have an ID each');
is(value(q{
	SELECT count(*) FROM before b
	JOIN (SELECT row_number() OVER (ORDER BY id) AS n, created_at FROM orders) o USING (n)
	WHERE o.created_at <> b.created_at}), '0', 'in the order of created_at');
is(value('SELECT count(*) FROM orders WHERE snowflake_timestamp(id) < date_trunc(\'milliseconds\', created_at)'),
	'0', 'none is before its time');
is(value(q{
	SELECT count(*) FROM orders
	WHERE created_at NOT BETWEEN '2025-05-05 05:05:05' AND '2025-05-05 05:05:06'
	  AND snowflake_timestamp(id) <> date_trunc('milliseconds', created_at)}),
	'0', 'rows that share no millisecond have IDs of their own');
cmp_ok(value('SELECT count(DISTINCT id >> 22) FROM orders WHERE created_at BETWEEN \'2025-05-05 05:05:05\' AND \'2025-05-05 05:05:06\''),
	'>', 666666 / 4096 - 1, 'rows that do take the milliseconds they need');
is(value('SELECT count(*) FROM orders WHERE snowflake_machine_id(id) <> 3'), '0', "with this server's number");
is(value('INSERT INTO orders VALUES (DEFAULT, now()) RETURNING id > (SELECT max(id) FROM orders)'), 't',
	'IDs to come are above');
is(value("SELECT count(*) FROM pg_class WHERE relkind = 'S'"), '0', 'the sequence is gone');

# Dump and restore, into a database of this cluster and into another cluster.
value(q{
	CREATE TABLE visits (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, page text) PARTITION BY RANGE (id);
	CREATE TABLE visits_old PARTITION OF visits FOR VALUES FROM (MINVALUE) TO (1000);
	INSERT INTO visits (page) VALUES ('a'), ('b');
	SELECT snowflake_create_partitions('visits', date_trunc('month', now()), now() + interval '2 months', '1 month');
	SELECT snowflake_adopt('visits', 'id');
	INSERT INTO visits (page) VALUES ('c'), ('d');
	DROP TABLE before;
});
my $other = snowflake_server('other', 'snowflake.machine_id = 4');
$other->safe_psql('postgres', 'DROP EXTENSION snowflake');
my $dump = "$PostgreSQL::Test::Utils::tmp_check/dump";
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
	is( $to->safe_psql($database, q{
			SELECT count(*), count(pg_get_serial_sequence(attrelid::regclass::text, 'id')) FROM pg_attribute
			JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
			WHERE attname = 'id' AND pg_get_expr(adbin, adrelid) = 'snowflake_nextval()'}),
		value("SELECT 2 + count(*), 0 FROM pg_inherits WHERE inhparent = 'visits'::regclass"),
		"$name: and no sequences came back");
}

done_testing();
