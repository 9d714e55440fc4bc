# The extension in a schema of its own that is in no search_path: the statements of the
# documentation, with the name of the schema before the name of each function, run by a role without privileges; dump
# and restore, and logical replication.  (With the schema in the search_path: script/test regress.)
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $server = snowflake_server('main', { extension => 0, init => [ allows_streaming => 'logical' ] }, 'snowflake.machine_id = 3', "timezone = 'UTC'");

# The schema as docs/install.md says.
sub create_extension
{
	my ($database) = @_;

	$server->safe_psql($database, q{
		CREATE SCHEMA snowflake;
		GRANT USAGE ON SCHEMA snowflake TO PUBLIC;
		CREATE EXTENSION snowflake SCHEMA snowflake;
		GRANT ALL ON SCHEMA public TO PUBLIC;
	});
}

sub value
{
	my ($sql, $database) = @_;

	return $server->safe_psql($database // 'postgres', $sql, extra_params => [ '-U', 'app' ]);
}

$server->safe_psql('postgres', 'CREATE ROLE app LOGIN');
create_extension('postgres');
is(value('SHOW search_path'), '"$user", public', 'the schema is not in the search_path');
is($server->safe_psql('postgres', q{
		SELECT pg_describe_object(classid, objid, objsubid), identity.schema FROM pg_depend, pg_identify_object(classid, objid, objsubid) AS identity
		WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
			AND deptype = 'e' AND identity.schema <> 'snowflake'}), '', 'all objects of the extension are in its schema');

# Defaults, generated columns, times.
value(q{
	CREATE TABLE orders (
		id bigint PRIMARY KEY DEFAULT snowflake.snowflake_nextval(),
		created_at timestamptz GENERATED ALWAYS AS (snowflake.snowflake_timestamp(id, 'twitter')) STORED,
		other bigint DEFAULT snowflake.snowflake_id(),
		event snowflake.sno UNIQUE NOT NULL DEFAULT snowflake.sno_nextval(),
		link text DEFAULT snowflake.snowflake_to_base32(snowflake.snowflake_nextval()));
	INSERT INTO orders DEFAULT VALUES;
	INSERT INTO orders SELECT FROM generate_series(1, 1000);
	CREATE VIEW recent AS SELECT *, snowflake.snowflake_timestamp(id) AS at FROM orders;
});
is(value(q{SELECT count(*), count(DISTINCT id), min(machine_id) FROM orders, snowflake.snowflake_decode(id)}), '1001|1001|3', 'defaults and snowflake_decode()');
is(value(q{SELECT bool_and(created_at = snowflake.snowflake_timestamp(id)), bool_and(snowflake.snowflake_from_base32(link) > id) FROM orders}), 't|t', 'a generated column');
is(value('SELECT snowflake.snowflake_currval() > 0 FROM snowflake.snowflake_nextvals(3)'), "t\nt\nt", 'snowflake_nextvals()');
is(value(q{SELECT count(*) FROM orders WHERE snowflake.snowflake_between(id, now() - interval '1 hour', now() + interval '1 hour')}), '1001', 'snowflake_between()');
is(value(q{SELECT count(*) FROM recent WHERE at > now() - interval '1 hour'}), '1001', 'a view');
is(value(q{SELECT count(*) > 1 FROM snowflake.snowflake_layouts}), 't', 'snowflake_layouts');
for my $condition (
	q{snowflake.snowflake_timestamp(id) >= now() + interval '1 hour'},
	q{snowflake.snowflake_between(id, now() + interval '1 hour', 'infinity')},
	q{(snowflake.snowflake_decode(id)).created_at >= '2079-01-01'},
	q{snowflake.sno_timestamp(event) >= '2079-01-01'},
	q{event OPERATOR(snowflake.>) snowflake.sno_boundary('2079-01-01')})
{
	like(value("SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT 1 FROM orders WHERE $condition"), qr/^ *Index Cond: (?!.*Filter)/ms, "$condition uses the index");
}
like(value("SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT * FROM recent WHERE at >= '2079-01-01'"), qr/^ *Index Cond: (?!.*Filter)/ms, 'a view uses it');
like(value("EXPLAIN (COSTS OFF) SELECT max(snowflake.snowflake_timestamp(id)) FROM orders"), qr/Index.* using orders_pkey/, 'and max() of the time');
is(value('SELECT snowflake.max(event) OPERATOR(snowflake.>) snowflake.min(event), count(DISTINCT event) FROM orders'), 't|1001', 'aggregates and operators of sno');

# Tables that have keys, and partitions.
is(value(q{
		SET client_min_messages = warning;
		CREATE TABLE visits (id bigserial PRIMARY KEY, page text, event snowflake.sno);
		INSERT INTO visits (page) VALUES ('a');
		SELECT snowflake.snowflake_adopt('visits', 'id');
		SELECT snowflake.snowflake_adopt('visits', 'event');
		SELECT snowflake.snowflake_adopt('visits', 'id');
		ALTER TABLE visits ALTER id SET DEFAULT snowflake.snowflake_nextval();
		SELECT snowflake.snowflake_adopt('visits', 'id');
		INSERT INTO visits (page) VALUES ('b') RETURNING id > 1}), <<'TEXT' =~ s/\n\z//r, 'snowflake_adopt()');
public.visits.id: default snowflake.snowflake_id(), was nextval('public.visits_id_seq'::regclass)
sequence public.visits_id_seq: dropped (last value 1)
public.visits.event: default snowflake.sno_nextval(), was none
t
TEXT
for ([ 'clicks', 'bigint', 'snowflake_nextval' ], [ 'stops', 'snowflake.sno', 'sno_nextval' ])
{
	my ($table, $type, $generator) = @$_;

	is(value(qq{
			CREATE TABLE $table (id $type PRIMARY KEY DEFAULT snowflake.$generator(), page text) PARTITION BY RANGE (id);
			SELECT snowflake.snowflake_create_partitions('$table', '2026-01-01', '2026-04-01', '1 month');
			SELECT snowflake.snowflake_detach_partitions('$table', '2026-02-01', '-infinity');
			SELECT snowflake.snowflake_drop_partitions('$table', '2026-03-01', '-infinity');
			SELECT count(*) FROM snowflake.snowflake_create_partitions('$table', date_trunc('month', now()), now() + interval '1 s', '1 month');
			INSERT INTO $table (page) VALUES ('a')}),
		"${table}_2026_01\n${table}_2026_02\n${table}_2026_03\n${table}_2026_01\npublic.${table}_2026_02\n1", "partitions of $type");
}

# The horizon and its guard.
is(value(q{
		SELECT snowflake.snowflake_enable_feed('orders', view => 'new_orders');
		SELECT snowflake.snowflake_horizon() AS horizon \gset last_
		INSERT INTO orders DEFAULT VALUES;
		SELECT snowflake.snowflake_horizon() AS horizon \gset
		SELECT count(*) FROM orders WHERE id >= :last_horizon AND id < :horizon;
		SELECT count(*) FROM new_orders WHERE id >= :last_horizon;
		BEGIN;
		INSERT INTO orders DEFAULT VALUES;
		SELECT count(*) FROM snowflake.pg_stat_snowflake_horizon WHERE pid = pg_backend_pid();
		COMMIT}), "\n1\n1\n1", 'the horizon');
is($server->safe_psql('postgres', 'SELECT count(*) FROM snowflake.pg_stat_snowflake WHERE ids_allocated > 0'), '2', 'pg_stat_snowflake');

# Dump and restore, the second time over the existing objects.
my $dump = "$scratch/dump";
my $state = q{
	SELECT (SELECT array_agg(id ORDER BY id) FROM orders), (SELECT array_agg(created_at ORDER BY id) FROM orders), (SELECT array_agg(event ORDER BY id) FROM orders);
	SELECT adrelid::regclass, adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY adrelid::regclass::text, adnum;
	SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2;
	SELECT oid::regclass::text, pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1;
	SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger ORDER BY 1;
	SELECT relname, pg_get_viewdef(oid), reloptions FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace ORDER BY 1;
	SELECT extname, extversion, extnamespace::regnamespace FROM pg_extension WHERE extname = 'snowflake'};
# A dump of partitioned tables with keys cannot be restored with --clean: PostgreSQL does not drop
# the constraints of partitions.
for ([ 'restored' ], [ 'cleaned', '-T', 'clicks*', '-T', 'stops*' ])
{
	my ($database, @without) = @$_;

	command_ok([ 'pg_dump', '-Fc', '--no-sync', '-f', $dump, @without, $server->connstr('postgres') ], "$database: pg_dump");
	$server->safe_psql('postgres', "CREATE DATABASE $database");
	command_ok([ 'pg_restore', '-e', '-1', '-d', $server->connstr($database), $dump ], "$database: pg_restore");
}
is(value($state, 'restored'), value($state), 'tables, defaults and partitions are the same');
command_ok([ 'pg_restore', '-e', '-1', '--clean', '-d', $server->connstr('cleaned'), $dump ], 'pg_restore --clean');
value('DROP TABLE clicks, clicks_2026_01, stops, stops_2026_01');
is(value($state, 'cleaned'), value($state), 'over what is there');
for ('restored', 'cleaned')
{
	is(value(q{INSERT INTO orders DEFAULT VALUES RETURNING id > (SELECT max(id) FROM orders), snowflake.snowflake_machine_id(id)}, $_), 't|3', "$_: new rows get IDs");
	is(value('SELECT (SELECT count(*) FROM new_orders) = (SELECT count(*) FROM orders)', $_), 't', "$_: the view of the feed has them");
}

# The forms of docs/sno.md: a view with one on the left is not restored, and one with that on the right is.
$server->safe_psql('postgres', "CREATE DATABASE forms; CREATE DATABASE restored_forms");
$server->safe_psql('forms', q{CREATE EXTENSION snowflake; CREATE TABLE a (id sno, other sno, n integer); CREATE TABLE b (id sno, m integer)});
my @forms = (
	[ 'SELECT n, m FROM a JOIN b USING (id)', 'SELECT n, m FROM a JOIN b ON a.id = b.id' ],
	[ 'SELECT n, m FROM (SELECT id, n FROM a) a NATURAL JOIN b', 'SELECT n, m FROM a JOIN b ON a.id = b.id' ],
	[ q{SELECT CASE id WHEN '9q7wrejc2222g222' THEN 1 END FROM a}, q{SELECT CASE WHEN id = '9q7wrejc2222g222' THEN 1 END FROM a} ],
	[ 'SELECT NULLIF(id, other) FROM a', 'SELECT CASE WHEN id = other THEN NULL ELSE id END FROM a' ],
	[ 'SELECT n FROM a WHERE id IS DISTINCT FROM other', 'SELECT n FROM a WHERE (id = other) IS NOT TRUE AND NOT (id IS NULL AND other IS NULL)' ],
	[ 'SELECT n FROM a WHERE (id, n) < (other, 3)', 'SELECT n FROM a WHERE id < other OR id = other AND n < 3' ],
	[ 'SELECT n FROM a WHERE (id, n) IN (SELECT id, m FROM b)', 'SELECT n FROM a WHERE EXISTS (SELECT FROM b WHERE b.id = a.id AND m = n)' ]);
my @restored = (q{SELECT n FROM a WHERE id IN ('9q7wrejc2222g222', '9q7wrejc2222g223') OR id = ANY (ARRAY[other])}, 'SELECT n FROM a WHERE id BETWEEN other AND id',
	'SELECT n FROM a WHERE (id, n) = (other, 3)', 'SELECT DISTINCT id FROM a', 'SELECT id, max(n) FROM a GROUP BY id', 'SELECT id FROM a UNION SELECT id FROM b', 'SELECT GREATEST(id, other) FROM a');
$server->safe_psql('forms', join ';', map({ ("CREATE VIEW lost_$_ AS $forms[$_][0]", "CREATE VIEW kept_$_ AS $forms[$_][1]") } 0 .. $#forms),
	map { "CREATE VIEW kept_also_$_ AS $restored[$_]" } 0 .. $#restored);
$server->safe_psql('forms', q{INSERT INTO a SELECT id, other, n FROM (VALUES ('9q7wrejc2222g222'::sno), ('9q7wrejc2222g223'), (NULL)) i (id),
	(VALUES ('9q7wrejc2222g222'::sno), ('9q7wrejc2222g223'), (NULL)) o (other), generate_series(1, 4) n; INSERT INTO b SELECT id, n FROM a});
is($server->safe_psql('forms', "TABLE lost_$_ ORDER BY 1"), $server->safe_psql('forms', "TABLE kept_$_ ORDER BY 1"), "the same rows: $forms[$_][1]") for 0 .. $#forms;
$server->run_log([ 'pg_dump', '--schema-only', '-f', "$scratch/forms.sql", $server->connstr('forms') ]);
$server->psql('restored_forms', slurp_file("$scratch/forms.sql"), on_error_stop => 0);
is($server->safe_psql('restored_forms', q{SELECT string_agg(relname, ' ' ORDER BY relname COLLATE "C") FROM pg_class WHERE relname ~ '^(lost|kept)_'}),
	join(' ', sort map({ "kept_$_" } 0 .. $#forms), map { "kept_also_$_" } 0 .. $#restored), 'the forms that are restored');

# Logical replication: workers have a search_path of pg_catalog alone.
$server->safe_psql('postgres', 'CREATE DATABASE replica');
create_extension('replica');
my $table = q{
	CREATE TABLE shared (id snowflake.sno PRIMARY KEY DEFAULT snowflake.sno_nextval(), n integer, local bigint NOT NULL DEFAULT snowflake.snowflake_nextval(),
		at timestamptz GENERATED ALWAYS AS (snowflake.sno_timestamp(id)) STORED)};
value($table);
value("$table; SELECT snowflake.snowflake_enable_feed('shared', 'local'); ALTER TABLE shared ENABLE ALWAYS TRIGGER zz_snowflake_feed_guard", 'replica');
value('INSERT INTO shared (n) SELECT generate_series(1, 10)');
$server->safe_psql('postgres', q{CREATE PUBLICATION of_shared FOR TABLE shared (id, n); SELECT pg_create_logical_replication_slot('copy', 'pgoutput')});
$server->safe_psql('replica', sprintf q{CREATE SUBSCRIPTION copy CONNECTION '%s' PUBLICATION of_shared WITH (create_slot = false, slot_name = copy)}, $server->connstr('postgres') =~ s/'/''/gr);
$server->wait_for_subscription_sync($server, 'copy', 'replica');
value('UPDATE shared SET n = n + 100 WHERE n > 5; DELETE FROM shared WHERE n = 1; INSERT INTO shared (n) VALUES (11)');
$server->poll_query_until('replica', 'SELECT count(*) FILTER (WHERE n = 11) = 1 FROM shared');
is(value('SELECT id, n, at FROM shared ORDER BY id', 'replica'), value('SELECT id, n, at FROM shared ORDER BY id'), 'logical replication');
is(value('SELECT count(DISTINCT local) FROM shared', 'replica'), '10', 'with defaults of the subscriber');
$server->safe_psql('replica', 'DROP SUBSCRIPTION copy');

done_testing();
