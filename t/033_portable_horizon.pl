# snowflake_horizon() of portable/snowflake.sql, and the same for a sequence (examples/horizon_for_sequences.sql).
# Readers up to the horizon miss no row and read none twice, while transactions end in any order
# and the server crashes: in one statement, also prepared, in REPEATABLE READ and by a cursor that is older than later
# calls.  A reader that remembers the greatest ID misses rows.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $rounds = scaled(3, 2);
my $server = snowflake_server('main', { preload => '', extension => 0 }, 'max_connections = 100', 'max_prepared_transactions = 50');
my $example = slurp_file("$FindBin::RealBin/../examples/horizon_for_sequences.sql") =~ s/^-- The test.*//msr;

ok(edition($server, 'postgres', machine_id => 7), 'an edition in SQL');
$server->safe_psql('postgres', "CREATE TABLE numbered (id bigserial PRIMARY KEY, body text); $example");
$server->safe_psql('postgres', q{
	CREATE TABLE marked (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text);
	ALTER TABLE numbered ALTER id SET DEFAULT held_nextval('numbered_id_seq');
	CREATE TABLE positions (reader text PRIMARY KEY, next_id bigint) WITH (fillfactor = 10);
	INSERT INTO positions SELECT unnest('{statement,prepared,repeatable,cursor,numbered,greatest}'::text[]), 0;
	CREATE VIEW new_rows AS SELECT * FROM marked WHERE id < (SELECT snowflake_horizon());
	CREATE TABLE seen (reader text, id bigint);
	CREATE FUNCTION seen(name text, first_id bigint, next bigint) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE format('INSERT INTO seen SELECT %L, id FROM %I WHERE id >= $1 AND id < $2', name,
			CASE name WHEN 'numbered' THEN name ELSE 'marked' END) USING first_id, next;
		UPDATE positions SET next_id = greatest(first_id, next) WHERE reader = name;
	END $$;
	CREATE PROCEDURE read() LANGUAGE plpgsql AS $$
	DECLARE
		start bigint;
		horizon bigint;
		ids bigint[];
		older CURSOR (first_id bigint) FOR SELECT h, ARRAY(SELECT id FROM marked WHERE id >= first_id AND id < h) FROM (SELECT snowflake_horizon() AS h OFFSET 0) x;
	BEGIN
		start := next_id FROM positions WHERE reader = 'cursor' FOR UPDATE;
		OPEN older(start);
		PERFORM snowflake_horizon();
		FETCH older INTO horizon, ids;
		INSERT INTO seen SELECT 'cursor', unnest(ids);
		UPDATE positions SET next_id = greatest(start, horizon) WHERE reader = 'cursor';
		start := next_id FROM positions WHERE reader = 'numbered' FOR UPDATE;
		CALL sequence_horizon('numbered_id_seq', horizon);
		PERFORM seen('numbered', start, horizon);
		start := next_id FROM positions WHERE reader = 'greatest' FOR UPDATE;
		PERFORM seen('greatest', start, (SELECT max(id) + 1 FROM marked));
	END $$;
	CREATE PROCEDURE read_on() LANGUAGE plpgsql AS $$
	BEGIN
		LOOP
			CALL read();
			COMMIT;
		END LOOP;
	END $$});

# Transactions of all kinds.
my $script = "$scratch/write.sql";
append_to_file($script, <<'SQL');
\set way random(1, 6)
\set pause random(0, 4000)
BEGIN;
\if :way = 1
	SAVEPOINT a;
	INSERT INTO marked (body) VALUES ('undone');
	INSERT INTO numbered (body) VALUES ('undone');
	ROLLBACK TO a;
\endif
INSERT INTO marked (body) VALUES ('w');
INSERT INTO numbered (body) VALUES ('w');
\sleep :pause us
INSERT INTO marked (body) SELECT 'w' FROM generate_series(1, 3);
INSERT INTO numbered (body) SELECT 'w' FROM generate_series(1, 3);
\if :way = 2
	ROLLBACK;
\elif :way = 3
	PREPARE TRANSACTION 'w:client_id';
	\sleep :pause us
	COMMIT PREPARED 'w:client_id';
\else
	COMMIT;
\endif
SQL

# A reader is one statement.
my $read = "WITH horizon AS MATERIALIZED (SELECT snowflake_horizon() AS h, next_id FROM positions WHERE reader = 'READER'),
	new AS (INSERT INTO seen SELECT 'READER', id FROM new_rows WHERE id >= (SELECT next_id FROM horizon))
UPDATE positions SET next_id = greatest(positions.next_id, h) FROM horizon WHERE reader = 'READER';\n" =~ s/\n(?!$)/ /gr;
my %readers = (
	statement => [ 'simple', $read ],
	prepared => [ 'prepared', $read ],
	repeatable => [ 'simple', "SELECT snowflake_horizon();\nBEGIN ISOLATION LEVEL REPEATABLE READ;\n${read}COMMIT;\n" ]);
append_to_file("$scratch/$_.sql", $readers{$_}[1] =~ s/READER/$_/gr) for keys %readers;

# All readers, when no transaction ends meanwhile.
sub read_all { $server->safe_psql('postgres', join('', 'CALL read();', map { $readers{$_}[1] =~ s/READER/$_/gr } keys %readers)); }

sub count_of { return $server->safe_psql('postgres', "SELECT count(*) FROM seen WHERE reader = '$_[0]'"); }

# Advisory locks of others, which have nothing to do with this.
my $other = $server->background_psql('postgres');
$other->query_safe('SELECT pg_advisory_lock(0), pg_advisory_lock(-1), pg_advisory_lock(7, 7), pg_advisory_lock(hashtext($$job$$))');
for my $round (1 .. $rounds)
{
	my %before = map { $_ => count_of($_) } keys %readers, 'cursor';
	my @running = (
		IPC::Run::start([ 'pgbench', '-n', '-c', '8', '-T', '600', '-f', $script, $server->connstr('postgres') ], '>', \my $output, '2>&1'),
		(map { IPC::Run::start([ 'pgbench', '-n', '-c', '1', '-T', '600', '-M', $readers{$_}[0], '-f', "$scratch/$_.sql", $server->connstr('postgres') ], '>', \my $said, '2>&1') } keys %readers),
		IPC::Run::start([ 'psql', '-Xq', '-d', $server->connstr('postgres'), '-c', 'CALL read_on()' ], '2>', \my $errors));

	ok(wait_until(sub { count_of('numbered') > 2000 && !grep { count_of($_) <= $before{$_} + 2000 } keys %before }), "round $round: rows are read");
	if ($round == $rounds)
	{
		$server->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
	}
	else
	{
		crash($server);
	}
	$_->finish for @running;
	$server->start if $round < $rounds;
	for my $gid (split /\n/, $server->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts'))
	{
		read_all();
		$server->safe_psql('postgres', "COMMIT PREPARED '$gid'");
	}
}
read_all();
for my $reader (sort(keys %readers), 'cursor', 'numbered')
{
	my $table = $reader eq 'numbered' ? $reader : 'marked';

	is($server->safe_psql('postgres', "SELECT count(*) FILTER (WHERE s.id IS NULL), count(*) - count(DISTINCT t.id), count(*) > 4000
		FROM $table t LEFT JOIN seen s ON s.reader = '$reader' AND s.id = t.id"), '0|0|t', "reader $reader: no row is missed, and none is read twice");
}
cmp_ok($server->safe_psql('postgres', "SELECT (SELECT count(*) FROM marked) - (SELECT count(DISTINCT id) FROM seen WHERE reader = 'greatest')"), '>', 0,
	'a reader by the greatest ID misses some');

# What holds the horizon back: the own transaction from its first ID, and a prepared one.
is($server->safe_psql('postgres', "BEGIN; SELECT snowflake_nextval() AS id \\gset\nSELECT snowflake_horizon() <= :id; COMMIT"), 't', 'an ID of the own transaction');
my $id = $server->safe_psql('postgres', "BEGIN; INSERT INTO marked (body) VALUES ('p') RETURNING id; PREPARE TRANSACTION 'p'");
is($server->safe_psql('postgres', "SELECT snowflake_horizon() <= $id"), 't', 'an ID of a prepared transaction');
$server->safe_psql('postgres', "COMMIT PREPARED 'p'");
ok(wait_until(sub { $server->safe_psql('postgres', "SELECT snowflake_horizon() > $id") eq 't' }), 'until it ends');

# The first transaction of a database, whose sequences are moved to the clock, in layouts that began long ago.
for my $layout (qw(twitter discord instagram sonyflake pgedge javascript), 'epoch=1990-01-01 tick=1ms timestamp=41 machine=10 sequence=12')
{
	$server->safe_psql('postgres', 'DROP DATABASE IF EXISTS fresh; CREATE DATABASE fresh');
	ok(edition($server, 'fresh', machine_id => 7, layout => $layout), $layout);
	$server->safe_psql('fresh', 'CREATE TABLE marked (id bigint DEFAULT snowflake_nextval())');
	my $first = $server->background_psql('fresh');
	my $row = $first->query_safe('BEGIN; INSERT INTO marked DEFAULT VALUES RETURNING id');
	is($server->safe_psql('fresh', "SELECT snowflake_horizon() <= $row"), 't', 'the first transaction holds the horizon');
	$first->query_safe('COMMIT');
	ok(wait_until(sub { $server->safe_psql('fresh', "SELECT snowflake_horizon() > $row") eq 't' }), 'until it ends');
	$first->quit;
}

# Another machine ID, within a tick, while a transaction runs, and when none does.
for my $machine_id (9, 3)
{
	$server->safe_psql('postgres', 'DROP DATABASE IF EXISTS fresh; CREATE DATABASE fresh');
	ok(edition($server, 'fresh', machine_id => 7, layout => 'epoch=2024-01-01 tick=1s timestamp=35 machine=10 sequence=18'), 'machine ID 7');
	$server->safe_psql('fresh', 'CREATE TABLE marked (id bigint DEFAULT snowflake_nextval()); SELECT snowflake_nextval()');
	my $first = $server->background_psql('fresh');
	my $row = $first->query_safe('BEGIN; INSERT INTO marked DEFAULT VALUES RETURNING id');
	ok(edition($server, 'fresh', machine_id => $machine_id), "machine ID $machine_id");
	is($server->safe_psql('fresh', "SELECT snowflake_horizon() <= $row"), 't', 'a transaction of the other one holds the horizon');
	$first->query_safe('COMMIT');
	$first->quit;
	my $horizon;
	wait_until(sub { $horizon = $server->safe_psql('fresh', 'SELECT snowflake_horizon()') });
	ok(edition($server, 'fresh', machine_id => 1), 'machine ID 1');
	is($server->safe_psql('fresh', "INSERT INTO marked DEFAULT VALUES RETURNING id >= $horizon"), 't', 'the next ID is above the horizon');
}

# Whether a snapshot sees all ends that another one sees, for all pairs of snapshots of up to eight transactions, of which
# the last one has ended; and for a snapshot of a standby, which lists none.
is($server->safe_psql('postgres', <<'SQL'), '0|t', 'snapshots are compared by the transactions that have ended');
WITH snapshots AS (
	SELECT format('%s:%s:%s', coalesce(running[1], xmax), xmax, array_to_string(running, ','))::pg_snapshot AS snapshot,
		ARRAY(SELECT x FROM generate_series(100, xmax - 1) x WHERE x <> ALL (running)) AS ended
	FROM generate_series(100, 107) xmax, generate_series(0, (1 << greatest(xmax - 101, 0)) - 1) bits,
		LATERAL (SELECT ARRAY(SELECT x FROM generate_series(100, xmax - 1) x WHERE bits >> (x - 100) & 1 = 1) AS running) r)
SELECT count(*) FILTER (WHERE snowflake_sees(a.snapshot, b.snapshot) <> (b.ended <@ a.ended)), count(*) > 10000 FROM snapshots a, snapshots b
SQL
is($server->safe_psql('postgres', "SELECT snowflake_sees('921:923:', '922:922:'), snowflake_sees('921:923:', '921:921:')"), 'f|t', 'also those of a standby');

# A snapshot that is older than all calls in the session, and one that is older than a call.
fails_with($server, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT snowflake_horizon()', '55000', qr/no horizon is known for the snapshot.*HINT:  Call snowflake_horizon\(\) in this session before/s);
is($server->safe_psql('postgres', "SELECT snowflake_horizon() AS h \\gset\nBEGIN ISOLATION LEVEL SERIALIZABLE; SELECT snowflake_horizon() = :h; COMMIT"), 't', 'the horizon of an earlier call');
fails_with($server, "BEGIN ISOLATION LEVEL REPEATABLE READ; CALL sequence_horizon('numbered_id_seq')", '25000', qr/must be called in a READ COMMITTED transaction/);
$server->safe_psql('postgres', 'CREATE SEQUENCE cached CACHE 2');
fails_with($server, "SELECT held_nextval('cached')", '55000', qr/sequence public.cached has a cache/);
$server->stop;

done_testing();
