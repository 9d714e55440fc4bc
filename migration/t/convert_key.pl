# migration/convert_key.sql, for a key of type integer and one of type uuid, while programs write: the server is killed in each
# step, and the script started again.  Then no row is lost or different, the new objects equal the old ones, and the way
# back leaves nothing.
#
# SNOWFLAKE_TEST_ROWS=2000000 measures instead: nothing is killed, and how long writers and readers wait is printed.
use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use SnowflakeTest;

my $measures = $ENV{SNOWFLAKE_TEST_ROWS};
my $rows = $measures // scaled(20000, 4000);
my $script = "$FindBin::RealBin/../convert_key.sql";
my $server = snowflake_server('main', 'snowflake.machine_id = 3', "timezone = 'UTC'", 'max_wal_senders = 0', 'wal_level = replica',
	$measures ? ('fsync = on', 'log_statement = none', 'log_lock_waits = on', 'deadlock_timeout = 60ms', 'log_connections = off', 'log_disconnections = off', 'shared_buffers = 1GB', 'max_wal_size = 8GB', 'checkpoint_timeout = 5min') : ());
my $database = 'postgres';

sub value { return $server->safe_psql($database, $_[0]); }

# Four tables with names that need quotes, of which three refer to the first.  Each row has a code, and the code of the row that it
# refers to.  A journal records all writes.
my $schema = q{
	CREATE EXTENSION snowflake;
	CREATE SCHEMA shop;
	SET search_path = shop, public;
	CREATE SEQUENCE keys AS integer;
	CREATE SEQUENCE codes;
	CREATE FUNCTION uuid_v7() RETURNS uuid LANGUAGE sql AS $$
		SELECT encode(set_byte(substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
			|| substring(uuid_send(gen_random_uuid()) FROM 7), 6, 112 + (random() * 15)::integer), 'hex')::uuid $$;
	-- a test can let the script wait for the last row, when it fills columns and validates constraints
	CREATE FUNCTION gate(code bigint) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
		IF code = ROWS AND current_query() ~ 'VALIDATE|fill' THEN
			PERFORM pg_advisory_xact_lock(7);
		END IF;
		RETURN true;
	END $$;
	CREATE TABLE "Orders" (
		"the Id" TYPE PRIMARY KEY DEFAULT KEY,
		code bigint NOT NULL UNIQUE DEFAULT nextval('codes'),
		parent TYPE REFERENCES "Orders" ON DELETE SET NULL ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED,
		parent_code bigint, payload text, version integer NOT NULL DEFAULT 0, created_at timestamptz DEFAULT now(),
		CONSTRAINT "a check" CHECK ("the Id"::text <> '' AND shop.gate(code)), CONSTRAINT "unique pair" UNIQUE ("the Id", code) DEFERRABLE);
	CREATE INDEX "by parent" ON "Orders" (parent) WHERE parent IS NOT NULL;
	CREATE INDEX "by expression" ON "Orders" ((parent::text || ' USING ') text_pattern_ops DESC, code) INCLUDE (version) WITH (fillfactor = 80);
	CREATE TABLE lines (order_id TYPE NOT NULL REFERENCES "Orders" ON DELETE CASCADE ON UPDATE CASCADE, no integer NOT NULL,
		code bigint NOT NULL UNIQUE DEFAULT nextval('codes'), order_code bigint, payload text, version integer NOT NULL DEFAULT 0, PRIMARY KEY (order_id, no));
	CREATE TABLE notes (code bigint NOT NULL UNIQUE DEFAULT nextval('codes'), order_id TYPE, order_code bigint, payload text, version integer NOT NULL DEFAULT 0,
		FOREIGN KEY (order_id) REFERENCES "Orders" ON DELETE SET NULL ON UPDATE CASCADE);
	CREATE INDEX ON notes USING hash (order_id);
	CREATE TABLE invoices ("Order" TYPE PRIMARY KEY REFERENCES "Orders" ON DELETE CASCADE ON UPDATE CASCADE,
		code bigint NOT NULL UNIQUE DEFAULT nextval('codes'), order_code bigint, payload text, version integer NOT NULL DEFAULT 0);
	ALTER TABLE invoices REPLICA IDENTITY USING INDEX invoices_pkey, CLUSTER ON invoices_pkey;
	COMMENT ON COLUMN "Orders"."the Id" IS 'a comment';
	COMMENT ON CONSTRAINT "a check" ON "Orders" IS 'another''s comment';
	COMMENT ON CONSTRAINT lines_order_id_fkey ON lines IS 'the fourth';
	COMMENT ON INDEX "by parent" IS 'the fifth';
	ALTER TABLE notes ALTER order_id SET STATISTICS 200, ALTER order_id SET (n_distinct = -0.5);
	GRANT SELECT ("the Id", code), UPDATE (parent) ON "Orders" TO pg_monitor WITH GRANT OPTION;
	GRANT INSERT (order_id) ON lines TO PUBLIC;
	GRANT USAGE ON SCHEMA shop TO app;
	GRANT ALL ON ALL TABLES IN SCHEMA shop TO app;
	GRANT ALL ON ALL SEQUENCES IN SCHEMA shop TO app;

	INSERT INTO "Orders" (payload, created_at) SELECT 'item', now() - n * interval '1 s' FROM generate_series(1, ROWS) n;
	UPDATE "Orders" o SET parent = p."the Id", parent_code = p.code FROM "Orders" p WHERE p.code = o.code / 2 AND o.code % 3 = 0;
	INSERT INTO lines (order_id, no, order_code) SELECT "the Id", 1, code FROM "Orders";
	INSERT INTO notes (order_id, order_code) SELECT "the Id", code FROM "Orders" WHERE code % 2 = 0;
	INSERT INTO invoices ("Order", order_code) SELECT "the Id", code FROM "Orders" WHERE code % 4 = 0;
	VACUUM ANALYZE "Orders", lines, notes, invoices;

	CREATE TABLE journal (n bigserial, relation text, code bigint, content jsonb);
	INSERT INTO journal (relation, code, content) SELECT 'Orders', code, to_jsonb(t) FROM "Orders" t UNION ALL SELECT 'lines', code, to_jsonb(t) FROM lines t
		UNION ALL SELECT 'notes', code, to_jsonb(t) FROM notes t UNION ALL SELECT 'invoices', code, to_jsonb(t) FROM invoices t;
	CREATE FUNCTION write_journal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop AS $$
	BEGIN
		IF TG_OP = 'DELETE' THEN
			INSERT INTO journal (relation, code) VALUES (TG_TABLE_NAME, OLD.code);
		ELSE
			INSERT INTO journal (relation, code, content) VALUES (TG_TABLE_NAME, NEW.code, to_jsonb(NEW));
		END IF;
		RETURN NULL;
	END $$;
	CREATE VIEW versions AS SELECT o.code, o.version AS own, l.version AS of_line, p.version AS of_parent
		FROM "Orders" o LEFT JOIN lines l ON l.order_id = o."the Id" LEFT JOIN "Orders" p ON p."the Id" = o.parent;
	CREATE VIEW own_versions AS SELECT * FROM versions;
	GRANT SELECT ON versions, own_versions TO app;
	CREATE TRIGGER journal AFTER INSERT OR UPDATE OR DELETE ON "Orders" FOR EACH ROW EXECUTE FUNCTION write_journal();
	CREATE TRIGGER journal AFTER INSERT OR UPDATE OR DELETE ON lines FOR EACH ROW EXECUTE FUNCTION write_journal();
	CREATE TRIGGER journal AFTER INSERT OR UPDATE OR DELETE ON notes FOR EACH ROW EXECUTE FUNCTION write_journal();
	CREATE TRIGGER journal AFTER INSERT OR UPDATE OR DELETE ON invoices FOR EACH ROW EXECUTE FUNCTION write_journal();

	-- an order that is inserted before the order that it refers to, with keys of either type
	CREATE FUNCTION insert_pair() RETURNS void LANGUAGE plpgsql SET search_path = shop, public AS $$
	DECLARE
		key text;
		parent_code bigint := nextval('codes');
	BEGIN
		LOCK TABLE "Orders" IN ROW EXCLUSIVE MODE;
		EXECUTE format('SELECT CASE %L WHEN ''uuid'' THEN gen_random_uuid()::text WHEN ''integer'' THEN nextval(''keys'')::text ELSE snowflake_nextval()::text END',
			(SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = '"Orders"'::regclass AND attname = 'the Id')) INTO key;
		EXECUTE format('INSERT INTO "Orders" (parent, parent_code, payload) VALUES (%L, %s, ''pair'')', key, parent_code);
		EXECUTE format('INSERT INTO "Orders" ("the Id", code, payload) VALUES (%L, %s, ''pair'')', key, parent_code);
	END $$;
};

# What programs write.  Rows are locked in the order of their codes, so that there are no deadlocks.
my $writes = q{
	\set op random(1, 100)
	\set code random(1, ROWS - 1)
	\if :op <= 20
		INSERT INTO "Orders" (parent, parent_code, payload) SELECT "the Id", code, 'new' FROM "Orders" WHERE code = :code FOR KEY SHARE;
	\elif :op <= 30
		INSERT INTO lines (order_id, no, order_code) SELECT "the Id", nextval('codes'), code FROM "Orders" WHERE code = :code FOR KEY SHARE;
	\elif :op <= 35
		INSERT INTO notes (order_id, order_code) SELECT "the Id", code FROM "Orders" WHERE code = :code FOR KEY SHARE;
	\elif :op <= 38
		SELECT insert_pair();
	\elif :op <= 58
		UPDATE "Orders" SET payload = md5(random()::text), version = version + 1 WHERE code = :code;
	\elif :op <= 68
		UPDATE lines SET version = version + 1 WHERE order_code = :code AND no = 1 AND order_id = (SELECT "the Id" FROM "Orders" WHERE code = :code);
	\elif :op <= 78
		UPDATE lines l SET order_id = o."the Id", order_code = o.code, no = nextval('codes')
		FROM (SELECT "the Id", code FROM "Orders" WHERE code = :code / 2 FOR KEY SHARE) o WHERE l.code = ROWS + :code;
	\elif :op <= 83
		UPDATE "Orders" c SET parent = o."the Id", parent_code = o.code FROM (SELECT "the Id", code FROM "Orders" WHERE code = :code / 2 FOR KEY SHARE) o WHERE c.code = :code;
	\elif :op <= 87
		UPDATE notes SET order_id = NULL, order_code = NULL WHERE code = 2 * ROWS + :code;
	\elif :op <= 92
		UPDATE "Orders" SET "the Id" = DEFAULT WHERE code = :code;
	\else
		DELETE FROM "Orders" WHERE code = :code;
	\endif
};
my $reads = q{
	\set code random(1, ROWS)
	SELECT own, of_line, of_parent FROM own_versions WHERE code = :code;
};

# pgbench with a rate, until it is stopped or the server ends.
sub start_clients
{
	my ($name, $clients, $rate, $commands) = @_;
	local $ENV{PGOPTIONS} = '-c search_path=shop,public';
	local @ENV{ 'PGAPPNAME', 'PGUSER' } = ('program', 'app');
	my $file = "$scratch/$name.sql";

	unlink $file;
	append_to_file($file, $commands =~ s/ROWS/$rows/gr =~ s/^\t+//gmr);
	return IPC::Run::start([ 'pgbench', '-n', '-c', $clients, '-j', $clients, '-T', 100000, '--max-tries=10', '-f', $file,
			$measures ? ('-l', '--aggregate-interval=1', "--log-prefix=$scratch/$name") : ('-R', $rate), $server->connstr($database) ], '<', '/dev/null', '>', "$scratch/$name.out", '2>>', "$scratch/$name.err");
}

my @clients;
sub start_programs { @clients = (start_clients('writers', 4, scaled(2000, 300), $writes), start_clients('reader', 1, scaled(1000, 100), $reads)); }

# Stop them; no statement may have failed.
sub stop_programs
{
	my ($state) = @_;

	value(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'program'});
	$_->finish for @clients;
	unlike(slurp_file("$scratch/$_.err"), qr/ERROR:/, "no statement of the $_ has failed, $state") for 'writers', 'reader';
}

# The definitions of all that has names, and not of its column's type.
# From PostgreSQL 18 on, NOT NULL constraints have names, which contain the names of the new columns.
my $catalog = q{
	SELECT string_agg(line, E'\n' ORDER BY line) FROM (
		SELECT concat_ws(' ', pg_get_indexdef(indexrelid), indisreplident, indisclustered, obj_description(indexrelid, 'pg_class')) FROM pg_index
			WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'shop'::regnamespace)
		UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated, obj_description(oid, 'pg_constraint')) FROM pg_constraint WHERE connamespace = 'shop'::regnamespace
		UNION ALL SELECT concat_ws(' ', attrelid::regclass, attname, attnotnull, attacl, attstattarget, (SELECT string_agg(o, ' ') FROM unnest(attoptions) o WHERE o LIKE 'n_distinct%'), col_description(attrelid, attnum)) FROM pg_attribute
			WHERE attnum > 0 AND NOT attisdropped AND attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'shop'::regnamespace)
		UNION ALL SELECT concat_ws(' ', oid::regclass, (SELECT array_agg(a ORDER BY a::text) FROM unnest(relacl) a), pg_get_viewdef(oid)) FROM pg_class WHERE relkind = 'v' AND relnamespace = 'shop'::regnamespace
		UNION ALL SELECT concat_ws(' ', tgrelid::regclass, tgname) FROM pg_trigger WHERE NOT tgisinternal
		UNION ALL SELECT concat_ws(' ', oid::regclass, relreplident, relacl) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'shop'::regnamespace) AS all_of_it (line)};

# Run the script, or a statement.
sub start_script
{
	my @what = @_ ? ('-c', $_[0]) : ('-v', 'table=shop."Orders"', '-v', 'column=the Id', '-f', $script);

	local $ENV{PGOPTIONS} = '-c log_min_messages=debug1';

	unlink "$scratch/script.out";
	return IPC::Run::start([ 'psql', '-Xq', '-d', $server->connstr($database), @what ], '<', '/dev/null', '>', "$scratch/script.out", '2>&1');
}

sub runs
{
	my ($name, @what) = @_;

	ok(start_script(@what)->finish, $name) or diag(slurp_file("$scratch/script.out"));
}

# Kill the server in a step: a session blocks the step, and a query shows when the script is in it.
sub kill_in
{
	my ($step, $blocker, $query, @what) = @_;
	my $session = $server->background_psql($database);

	$session->query_safe($blocker);
	my $run = start_script(@what);
	my $is_reached = wait_until(sub { !$run->pumpable || (ref $query ? slurp_file("$scratch/script.out") =~ $query : value($query) eq 't') }) && $run->pumpable;
	ok($is_reached, "killed in this step: $step") or diag(slurp_file("$scratch/script.out"));
	crash($server);
	$_->finish for $run, @clients;
	eval { $session->quit };
	$server->start;
	start_programs();
}

# Each row equals the row of the journal, except for the new columns; and it refers to the row with the code that it
# has.
sub compare_rows
{
	my %references = (Orders => 'parent', lines => 'order_id', notes => 'order_id', invoices => 'Order');

	for my $relation (sort keys %references)
	{
		my $column = $references{$relation};
		my $code = $relation eq 'Orders' ? 'parent_code' : 'order_code';

		is( value(qq{
			SET search_path = shop, public;
			WITH expected AS (SELECT DISTINCT ON (code) code, content FROM journal WHERE relation = '$relation' ORDER BY code, n DESC),
			actual AS (SELECT code, to_jsonb(t) AS content FROM "$relation" t)
			SELECT count(*) FILTER (WHERE a.code IS NULL AND e.content IS NOT NULL), count(*) FILTER (WHERE a.code IS NOT NULL AND e.content IS NULL), count(*) FILTER (WHERE
				a.content - k.names <> e.content - k.names
				OR coalesce(e.content->>'the Id' NOT IN (a.content->>'the Id', coalesce(a.content->>'the Id_old', '')), false)
				OR coalesce(e.content->>'$column', 'none') NOT IN (coalesce(a.content->>'$column', 'none'), coalesce(a.content->>'${column}_old', 'none')))
			FROM expected e FULL JOIN actual a USING (code),
				(SELECT '{the Id,the Id_new,the Id_old,the Id_for,$column,${column}_new,${column}_old,${column}_for}'::text[] AS names) k}),
			'0|0|0', "$relation: rows that are lost, that should not exist, that differ");
		is( value(qq{SELECT count(*) FROM shop."$relation" r LEFT JOIN shop."Orders" o ON o."the Id" = r."$column" WHERE r."$column" IS NOT NULL AND o.code IS DISTINCT FROM r.$code}),
			'0', "$relation: rows that refer to another row than before");
	}
}

# The statements a second between two times, and the longest time of one in seconds.
sub figures
{
	my ($name, $from, $to) = @_;
	my ($longest, $count) = (0, 0);

	for my $line (map { split /\n/ } map { slurp_file($_) } glob "$scratch/$name.*[0-9]")
	{
		my ($time, $transactions, undef, undef, undef, $max) = split / /, $line;

		next if $time < $from || $time >= $to;
		$count += $transactions;
		$longest = $max / 1e6 if $max / 1e6 > $longest;
	}
	return sprintf('%s: %.0f/s, longest %.3f s', $name, $count / ($to - $from || 1), $longest);
}

sub measure
{
	my @phases;
	my $phase = sub { push @phases, [ $_[0], time, value("SELECT pg_current_wal_lsn() - '0/0'") ] };
	my @steps;

	$phase->('before');
	sleep 60;
	$phase->('start');
	my $run = start_script();
	while ($run->pumpable)
	{
		select(undef, undef, undef, 0.1);
		@steps = slurp_file("$scratch/script.out") =~ /^(Adding columns|Filling|Creating|Adding constraints|Validating)/mg;
		$phase->($steps[ @phases - 2 ]) while @steps > @phases - 2;
	}
	ok($run->finish, 'the script has run') or diag(slurp_file("$scratch/script.out"));
	$phase->('swap');
	runs('swap', 'CALL convert_key.swap()');
	$phase->('after');
	sleep 60;
	$phase->('end');
	stop_programs('measured');
	for my $n (0 .. $#phases - 1)
	{
		my ($name, $from, $wal) = @{ $phases[$n] };
		my (undef, $to, $next_wal) = @{ $phases[ $n + 1 ] };

		diag(join '; ', sprintf('%s: %d s', $name, $to - $from), (map { figures($_, $from, $to + 1) } 'writers', 'reader'), sprintf('WAL %.0f MB', ($next_wal - $wal) / 1e6));
	}
	my ($longest) = sort { $b <=> $a } 0, slurp_file($server->logfile) =~ /program LOG:  process \d+ acquired \w+ on .* after ([\d.]+) ms/g;
	diag("longest wait of a program for a lock: $longest ms, or less than 60 ms if it is 0");
}

# Schemas of a few tables, each in a database of its own.

my $schemas = 0;

sub create_schema
{
	my ($definitions, $user) = @_;

	$database = 'schema_' . ++$schemas;
	$server->safe_psql('postgres', "CREATE DATABASE $database");
	value('CREATE EXTENSION snowflake; GRANT CREATE ON SCHEMA public TO app; ' . ($user ? "GRANT CREATE ON DATABASE $database TO $user; SET ROLE $user; " : '') . $definitions);
}

sub dump_schema
{
	my ($with_rows) = @_;
	my ($output) = run_command([ 'pg_dump', $with_rows ? '--inserts' : '--schema-only', '-d', $server->connstr($database) ]);

	return $output =~ s/^\\(un)?restrict .*//mgr;
}

# Run the script for keys.id, or a statement, as a user; returns whether it succeeds.
sub convert
{
	my ($user, @what) = @_;

	@what = ('-v', 'table=keys', '-v', 'column=id', @what, '-f', $script) if !@what || $what[0] eq '-v';
	return IPC::Run::run([ 'psql', '-X', '-d', $server->connstr($database) . " user=$user", @what ], '<', '/dev/null', '>', "$scratch/script.out", '2>&1');
}
sub converts { my ($name, @arguments) = @_; ok(convert(@arguments), $name) or diag(slurp_file("$scratch/script.out")); }
sub fails
{
	my ($name, $pattern, @arguments) = @_;

	ok(!convert(@arguments), $name);
	like(slurp_file("$scratch/script.out"), $pattern, "$name: why") if $pattern;
}
sub statement_fails { my ($name, $statement, $pattern) = @_; my (undef, undef, $errors) = $server->psql($database, "BEGIN; $statement; COMMIT"); like($errors, $pattern, $name); }

$server->safe_psql('postgres', 'CREATE ROLE app LOGIN; GRANT SET ON PARAMETER session_replication_role TO app');
my $me = value('SELECT current_user');
my $keys = 'CREATE TABLE keys (id integer PRIMARY KEY, name text); INSERT INTO keys SELECT n, n FROM generate_series(1, 100) n; ';
my $items = 'CREATE TABLE items (code serial, ref integer REFERENCES keys); INSERT INTO items (ref) SELECT n FROM generate_series(1, 100) n; ';
my $uuids = q{CREATE FUNCTION key(integer) RETURNS uuid IMMUTABLE LANGUAGE sql RETURN md5($1::text)::uuid; CREATE TABLE keys (id uuid PRIMARY KEY, name text);
	INSERT INTO keys SELECT key(n), n FROM generate_series(1, 100) n; CREATE TABLE items (code serial, ref uuid REFERENCES keys DEFERRABLE); INSERT INTO items (ref) SELECT key(n) FROM generate_series(1, 100) n; };
my $number = q{CREATE FUNCTION number() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := NEW.id + 1000000; RETURN NEW; END';
	CREATE TRIGGER zzz_number BEFORE INSERT ON keys FOR EACH ROW EXECUTE FUNCTION number(); };
my $has_changed = qr/the conversion is not complete, or the tables have changed since/;
my $disagrees = qr/violates check constraint "convert_key_(agrees|not_null)_/;

# All obstacles are named at once, and nothing is changed.
create_schema(q{
	CREATE TABLE keys (id integer PRIMARY KEY, b integer, UNIQUE (id, b), doubled integer GENERATED ALWAYS AS (2 * id) STORED, EXCLUDE (id WITH =));
	CREATE TABLE pairs (a integer, b integer, FOREIGN KEY (a, b) REFERENCES keys (id, b));
	CREATE TABLE parts (a integer DEFAULT 1 REFERENCES keys ON DELETE SET DEFAULT) PARTITION BY LIST (a);
	CREATE TABLE texts (a integer REFERENCES keys, a_new text);
	CREATE TABLE numbered (a integer GENERATED ALWAYS AS IDENTITY REFERENCES keys);
	CREATE TYPE row_type AS (a integer);
	CREATE TABLE typed OF row_type (FOREIGN KEY (a) REFERENCES keys);
	CREATE DOMAIN number AS integer;
	CREATE TABLE of_domain (a number REFERENCES keys);
	CREATE VIEW all_keys AS SELECT * FROM keys;
	CREATE FUNCTION count_keys() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM all_keys; END;
	CREATE MATERIALIZED VIEW kept_keys AS SELECT id FROM keys;
	CREATE STATISTICS kept ON id, (id % 2) FROM kept_keys;
	CREATE INDEX ON parts (a);
	CREATE PUBLICATION some_keys FOR TABLE keys (id);
	CREATE POLICY positive ON keys USING (id > 0);
	CREATE FUNCTION half(integer) RETURNS integer IMMUTABLE LANGUAGE sql RETURN $1 / 2;
	CREATE INDEX halves ON keys (half(id));
	CREATE INDEX brin ON keys USING brin (id int4_minmax_multi_ops);
	ALTER TABLE keys ADD CONSTRAINT positive CHECK (half(id) > 0);
	CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE TRIGGER always AFTER UPDATE ON keys FOR EACH ROW EXECUTE FUNCTION nothing();
	ALTER TABLE keys ENABLE ALWAYS TRIGGER always} . ";$number");
my $dump = dump_schema();
fails('what cannot be converted', undef, $me);
like(slurp_file("$scratch/script.out"), $_, 'is in the list')
  for qr/column a_new of table public.texts exists/, qr/constraint keys_id_excl on table public.keys depends on column id/, qr/constraint pairs_a_b_fkey on table public.pairs has several columns/,
  qr/default value for column doubled of table public.keys depends/, qr/publication of table public.keys .* depends/, qr/function public.count_keys\(\) depends on view public.all_keys/,
  qr/materialized view public.kept_keys would be empty .* variable "materialized"/, qr/statistics object public.kept depends on view public.kept_keys/, qr/policy positive .* depends/,
  qr/constraint parts_a_fkey on table public.parts sets a default/, qr/table public.parts is partitioned/, qr/column a of table public.numbered refers to the key and is an identity/,
  qr/table public.typed is typed/, qr/column a of table public.of_domain is of type public.number/, qr/index public.halves cannot be created/, qr/index public.brin cannot be created/,
  qr/constraint positive on table public.keys cannot be created/, qr/trigger always of table public.keys, which is ENABLE ALWAYS/, qr/trigger zzz_number of table public.keys sorts after/,
  qr/table public.keys is in publication some_keys/;
is(dump_schema(), $dump, 'and nothing has changed');
unlike(slurp_file("$scratch/script.out"), qr/syntax error/, 'the index of a partitioned table is no error');
create_schema($keys . 'CREATE FUNCTION half(integer) RETURNS integer LANGUAGE sql RETURN $1 / 2; CREATE VIEW halves AS SELECT half(id) FROM keys; CREATE VIEW more AS SELECT * FROM halves');
$dump = dump_schema();
fails('a view that calls a function of integers', qr/views cannot be created with columns of type bigint: function (public.)?half\(bigint\) does not exist in CREATE VIEW halves/, $me);
is(dump_schema(), $dump, 'and its copies are gone');
create_schema($uuids . q{ALTER TABLE keys ADD CONSTRAINT not_one CHECK (id <> '00000000-0000-0000-0000-000000000001')});
fails('a constant of type uuid', qr/constraint not_one on table public.keys cannot be created/, $me);

# A trigger that changes a column after the trigger of the script, and rows that are written while
# triggers are disabled, fail at once.  No row can disagree at the swap.
for my $type ('integer', 'uuid')
{
	my $key = $type eq 'uuid' ? 'key(' : '(1000 + ';

	create_schema($type eq 'uuid' ? $uuids : $keys . $items);
	converts("ready, $type", $me);
	statement_fails("a reference without triggers, $type", 'ALTER TABLE items DISABLE TRIGGER ALL; INSERT INTO items (ref) SELECT id FROM keys LIMIT 1', $disagrees);
	statement_fails("a reference that changes without triggers, $type", 'ALTER TABLE items DISABLE TRIGGER ALL; UPDATE items SET ref = (SELECT id FROM keys ORDER BY id DESC LIMIT 1) WHERE code = 1', $disagrees);
	statement_fails("a key without triggers, $type", "ALTER TABLE keys DISABLE TRIGGER ALL; INSERT INTO keys VALUES (${key}7000), 'without')", qr/$disagrees|null value in column "id_new"/);
	value("SET session_replication_role = replica; INSERT INTO keys VALUES (${key}7001), 'replica'); INSERT INTO items (ref) VALUES (${key}7001))");
	value($number =~ s/NEW.id \+ 1000000/$type eq 'uuid' ? 'key(5000)' : '5000'/er);
	statement_fails("a trigger that sorts later, $type", "INSERT INTO keys VALUES (${key}7002), 'numbered')", $disagrees);
	fails("swap with this trigger, $type", $has_changed, $me, '-c', 'CALL convert_key.swap()');
	value('DROP TRIGGER zzz_number ON keys');
	converts("swap, $type", $me, '-c', 'CALL convert_key.swap()');
	is(value('SELECT count(*) FROM items JOIN keys ON id = ref WHERE ref IS NOT NULL AND (ref_old::text = id_old::text)'), '101', "all references are as before, $type");
	converts("finish, $type", $me, '-c', 'CALL convert_key.finish()');
}

# A program disables all triggers while rows are filled, and enables them again, so that none is ENABLE ALWAYS any
# more.  The script fails, and the next run makes its triggers again.  The check lets the script wait in the first table.
my $gate = q{CREATE FUNCTION gate(text) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
		IF current_query() ~ 'fill' THEN
			PERFORM pg_advisory_xact_lock(7);
		END IF;
		RETURN true;
	END $$;
	ALTER TABLE keys ADD CHECK (gate(name)); };
for my $type ('integer', 'uuid')
{
	create_schema(($type eq 'uuid' ? $uuids : $keys . $items) . $gate);
	my $locker = $server->background_psql($database);
	$locker->query_safe('SELECT pg_advisory_lock(7)');
	my $filling = IPC::Run::start([ 'psql', '-X', '-d', $server->connstr($database), '-v', 'table=keys', '-v', 'column=id', '-f', $script ],
		'<', '/dev/null', '>', "$scratch/script.out", '2>&1');
	ok(wait_until(sub { !$filling->pumpable || value(q{SELECT count(*) FROM pg_stat_activity WHERE query = 'CALL convert_key.fill();'}) }) && $filling->pumpable,
		"rows are filled, $type");
	value('ALTER TABLE items DISABLE TRIGGER USER');
	value('ALTER TABLE items ENABLE TRIGGER USER');
	$locker->quit;
	ok(!$filling->finish, "if triggers are disabled meanwhile, the script fails, $type");
	like(slurp_file("$scratch/script.out"), $disagrees, "rows that disagree are refused, $type");
	converts("the next run, $type", $me);
	converts("its swap, $type", $me, '-c', 'CALL convert_key.swap()');
	is(value('SELECT count(*) FROM items JOIN keys ON id = ref WHERE ref_old::text = id_old::text'), '100', "all references are as before, $type");
}

# The owner converts its tables.  Rows that a policy hides from it are an obstacle.
create_schema($keys . $items . 'ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY even ON items USING (code % 2 = 0)', 'app');
converts('an owner who is not a superuser', 'app');
converts('and swaps', 'app', '-c', 'CALL convert_key.swap()');
is(value('SELECT count(*) FROM items JOIN keys ON id = ref WHERE ref_old = ref'), '100', 'all rows of it');
create_schema($keys . $items . 'ALTER TABLE items ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY even ON items USING (code % 2 = 0)', 'app');
fails('a policy that applies to the owner', qr/row-level security of table public.items applies to role app/, 'app');
create_schema('CREATE TABLE keys (id text PRIMARY KEY); ALTER TABLE keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', 'app');
fails('a policy that hides values', qr/row-level security of table public.keys applies to role app/, 'app');

# No index begins with the key, and the swap reads no rows.
create_schema('CREATE TABLE keys (tenant integer, id integer, PRIMARY KEY (tenant, id)); INSERT INTO keys SELECT 1, n FROM generate_series(1, 1000) n');
converts('a key in second place', $me);
my $rows_read = 'SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = \'keys\'';
my $rows_before = value($rows_read);
cmp_ok($rows_before, '>=', 1000, 'the script reads rows');
converts('its swap', $me, '-c', 'CALL convert_key.swap()');
is(value($rows_read), $rows_before, 'the swap reads none');

# Sequences stay that another default uses, or the column of a reference.
create_schema(q{CREATE TABLE keys (id serial PRIMARY KEY, name text); CREATE TABLE sharing (n integer DEFAULT nextval('keys_id_seq'), t text);
	CREATE TABLE items (code integer, ref serial REFERENCES keys); INSERT INTO keys (name) SELECT n FROM generate_series(1, 100) n; INSERT INTO items (code) SELECT n FROM generate_series(1, 50) n});
converts('shared sequences', $me);
converts('their swap', $me, '-c', 'CALL convert_key.swap()');
converts('their end', $me, '-c', 'CALL convert_key.finish()');
is(value(q{INSERT INTO sharing (t) VALUES ('x'); INSERT INTO items (code) VALUES (51); SELECT n, ref, pg_get_serial_sequence('items', 'ref') FROM sharing, items WHERE code = 51}), '101|51|public.items_ref_seq',
	'both continue');

# Without a table, nothing is set or created.
create_schema($keys);
fails('without a table', qr/the variable "table" is not set/, $me, '-f', $script, '-v', 'ON_ERROR_STOP=1');
my ($output) = run_command([ 'psql', '-Xq', '-d', $server->connstr($database), '-c', "\\i $script", '-c', '\echo :QUIET :ON_ERROR_STOP', '-c', 'SHOW row_security' ]);
like($output, qr/^on off\n.*^ on$/ms, 'the session is as before');

# A conversion that is moved midway, with other OIDs, ends only by undo.  An index has the name that would have been another's.
create_schema($keys . $items);
my $original = dump_schema();
converts('before a dump', $me);
my $copy = dump_schema(1);
create_schema('DROP EXTENSION snowflake');
value($copy);
$copy = dump_schema(1);    # a view can be printed in other words
for my $what ([], [ '-c', 'CALL convert_key.swap()' ])
{
	fails("in the restored database: @$what", qr/the conversion was begun in another database or server/, $me, @$what);
}
is(dump_schema(1), $copy, 'and nothing has changed');
converts('undo in it', $me, '-c', 'CALL convert_key.undo()', '-c', 'DROP SCHEMA convert_key CASCADE');
is(dump_schema(), $original, 'leaves nothing');
converts('it begins again', $me);
converts('and is swapped', $me, '-c', 'CALL convert_key.swap()');
is(value('SELECT count(*) FROM items JOIN keys ON id = ref'), '100', 'without a difference');

# No query is compiled, as the costs that are estimated for views of the catalogs would let JIT do.
SKIP:
{
	skip 'no JIT', 1 unless value('SELECT pg_jit_available()') eq 't';
	create_schema($keys . $items);
	converts('with JIT', $me, '-c', 'SET jit_above_cost = 100', '-v', 'table=keys', '-v', 'column=id', '-f', $script, '-c', 'SET jit = on', '-c', 'CALL convert_key.swap()',
		'-c', 'CALL convert_key.finish()', '-c', 'SET jit = off', '-c', q{SELECT pg_read_file('/proc/self/maps') ~ 'llvmjit' AS is_loaded});
	like(slurp_file("$scratch/script.out"), qr/is_loaded \n-+\n f/, 'and it is not used');
}

# The swap drops views and creates them with all of their properties: as if they had been created after it.
my $view_schema = q{
	CREATE TABLE keys (NAME id TYPE PRIMARY KEY DEFAULT);
	CREATE TABLE items (code integer, ref TYPE REFERENCES keys);
	ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO pg_read_all_stats;
	CREATE SCHEMA other;
	GRANT CREATE, USAGE ON SCHEMA public, other TO app;
	CREATE VIEW "Counts" WITH (security_barrier = true) AS SELECT id, name, count(*) AS n FROM keys GROUP BY id;
	CREATE VIEW above WITH (check_option = local) AS SELECT id AS "the id", name FROM keys WHERE id > 0;
	CREATE MATERIALIZED VIEW other.kept (a, code, t) WITH (fillfactor = 80, toast.vacuum_truncate = off) AS
		SELECT "the id" + 1, items.code, c.name FROM above JOIN "Counts" c ON c.id = "the id" JOIN items ON ref = c.id;
	CREATE UNIQUE INDEX "one kept" ON other.kept (a, code) WITH (fillfactor = 70) WHERE a > 0;
	CREATE INDEX two_kept ON other.kept ((a::text));
	ALTER INDEX other.two_kept ALTER 1 SET STATISTICS 77;
	ALTER MATERIALIZED VIEW other.kept CLUSTER ON two_kept;
	ALTER MATERIALIZED VIEW other.kept ALTER t SET STORAGE EXTERNAL, ALTER t SET STATISTICS 99, ALTER t SET (n_distinct = 5);
	CREATE MATERIALIZED VIEW again AS SELECT a FROM other.kept;
	CREATE MATERIALIZED VIEW never AS SELECT a FROM other.kept WITH NO DATA;
	CREATE VIEW top AS SELECT (SELECT max(a) FROM other.kept) AS greatest, k.id FROM keys k;
	ALTER VIEW top ALTER id SET DEFAULT 7, OWNER TO app;
	GRANT SELECT, UPDATE (id) ON top TO pg_monitor WITH GRANT OPTION;
	GRANT SELECT ON keys, other.kept TO app;
	GRANT SELECT ON "Counts" TO PUBLIC;
	REVOKE ALL ON above FROM CURRENT_USER;
	REVOKE ALL ON "Counts" FROM pg_read_all_stats;
	CREATE FUNCTION insert_key() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO keys (id, name) VALUES (NEW.id, NEW.name); RETURN NEW; END';
	CREATE TRIGGER "an insert" INSTEAD OF INSERT ON "Counts" FOR EACH ROW EXECUTE FUNCTION insert_key();
	CREATE RULE deletes AS ON DELETE TO "Counts" DO INSTEAD DELETE FROM keys WHERE id = OLD.id;
	CREATE RULE updates AS ON UPDATE TO above DO INSTEAD (INSERT INTO "Counts" (id, name) VALUES (NEW."the id", NEW.name); DELETE FROM top WHERE id = 7);
	COMMENT ON VIEW top IS 'it''s one';
	COMMENT ON COLUMN top.id IS 'two';
	COMMENT ON TRIGGER "an insert" ON "Counts" IS 'three';
	COMMENT ON RULE updates ON above IS 'four';
	COMMENT ON MATERIALIZED VIEW other.kept IS 'five';
	COMMENT ON INDEX other."one kept" IS 'six';
	CREATE VIEW unrelated AS SELECT name FROM keys};
my $view_rows = q{; INSERT INTO keys SELECT n, n FROM generate_series(1, 100) n; INSERT INTO items SELECT n, n FROM generate_series(1, 100) n; REFRESH MATERIALIZED VIEW other.kept; REFRESH MATERIALIZED VIEW again};
create_schema($view_schema =~ s/NAME //r =~ s/PRIMARY KEY DEFAULT/PRIMARY KEY, name text/r =~ s/TYPE/integer/gr . $view_rows);
fails('a materialized view', qr/materialized view other.kept would be empty after the swap/, $me);
converts('views', $me, '-v', 'materialized=on');
converts('and their swap', $me, '-c', 'CALL convert_key.swap()');
is(value('SELECT count(*), max(a), pg_typeof(max(a)) FROM other.kept'), '100|101|bigint', 'a materialized view is filled');
is(value('SELECT count(*) FROM again'), '100', 'and then one that reads it');
value(q{DELETE FROM "Counts" WHERE id = 100 AND false; INSERT INTO "Counts" (id, name) VALUES (123456789012, 'x')});
is(value(q{SELECT name, (SELECT count(*) FROM convert_key.empty_views) FROM top JOIN "Counts" USING (id) WHERE id > 2147483647}), 'x|0', 'views have new IDs');
converts('finish with views', $me, '-c', 'CALL convert_key.finish()', '-c', 'DROP SCHEMA convert_key CASCADE');
# The order of privileges, and of columns, can differ.
sub sorted_lines { return join "\n", sort map { s/WITH NO DATA|,$//r } split /\n/, $_[0]; }
my $swapped_views = dump_schema();
create_schema($view_schema =~ s/NAME/name text,/r =~ s/PRIMARY KEY DEFAULT/PRIMARY KEY DEFAULT snowflake_id()/r =~ s/TYPE/bigint/gr);
is(sorted_lines($swapped_views), sorted_lines(dump_schema()), 'all definitions are those of views that are created afterwards');
create_schema($keys . $items . 'CREATE VIEW all_keys AS SELECT id FROM keys', 'app');
value(qq{ALTER VIEW all_keys OWNER TO "$me"});
fails('a view of another role', qr/role app does not own public.all_keys/, 'app');
value('ALTER VIEW all_keys OWNER TO app');
converts('a view of the owner of the table', 'app');
value('CREATE VIEW later AS SELECT id FROM all_keys');
fails('a view since', qr/role app does not own public.later/, 'app', '-c', 'CALL convert_key.swap()');
value('DROP VIEW later');
converts('its swap', 'app', '-c', 'CALL convert_key.swap()');
is(value('SELECT count(*), pg_typeof(max(id)) FROM all_keys'), '100|bigint', 'it has the new column');

# Integers as text or numeric.  No value is accepted that the bigint has in other words.
for my $type ('varchar(20)', 'text', 'numeric(20)')
{
	create_schema($keys =~ s/id integer/id $type/r . $items =~ s/ref integer/ref $type/r);
	for my $value ("'007'", "' 7'", "'1.5'", "'9223372036854775807'", "'99999999999999999999'", "'x'")
	{
		next if $type ne 'varchar(20)' && $value !~ /99/;
		my $text = $value =~ tr/'/"/r;
		value("INSERT INTO keys VALUES ($value)");
		fails("$type $value", qr/column id of table public.keys has the value $text, which is no integer below new IDs/, $me);
		value("DELETE FROM keys WHERE id = $value");
	}
	converts($type, $me);
	statement_fails("$type: $_->[0]", "INSERT INTO keys VALUES ($_->[0])", $_->[1])
	  for ([ "'99999999999999999999'", qr/out of range/ ], $type eq 'numeric(20)' ? () : ([ "'0101'", $disagrees ], [ "'101 '", $disagrees ], [ "''", qr/invalid input syntax/ ]));
	value("INSERT INTO keys VALUES ('101'); INSERT INTO items (ref) VALUES ('101')");
	converts("swap of $type", $me, '-c', 'CALL convert_key.swap()');
	is(value('SELECT count(*), pg_typeof(max(id)), pg_typeof(max(ref)), bool_and(ref_old::numeric = id) FROM items JOIN keys ON id = ref'), '101|bigint|bigint|t', "all rows of $type");
	is(value("INSERT INTO keys (name) VALUES ('new') RETURNING id > 2147483647"), 't', "new IDs, $type");
	converts("finish of $type", $me, '-c', 'CALL convert_key.finish()');
}

# The key keeps its sequence.  Then the columns can have their old type again.
create_schema(q{CREATE TABLE keys (id serial PRIMARY KEY, name text); INSERT INTO keys (name) SELECT n FROM generate_series(1, 100) n; CREATE SEQUENCE called OWNED BY keys.id; } . $items);
$original = value('SELECT sum(id) FROM keys');
converts('without an adoption', $me, '-v', 'keep_default=on');
converts('its swap', $me, '-c', 'CALL convert_key.swap()', '-c', 'CALL convert_key.finish()');
is(value(q{INSERT INTO keys (name) VALUES ('new') RETURNING id, pg_typeof(id), pg_get_serial_sequence('keys', 'id')}), '101|bigint|public.keys_id_seq', 'the sequence continues');
value('ALTER TABLE keys ALTER id TYPE integer; ALTER TABLE items ALTER ref TYPE integer; DELETE FROM keys WHERE id = 101');
is(value('SELECT sum(id) FROM keys'), $original, 'the old type is possible');
converts('again, and adopted', $me);
converts('and its swap', $me, '-c', 'CALL convert_key.swap()', '-c', 'CALL convert_key.finish()');
is(value(q{SELECT string_agg(relname, ' ') FROM pg_class WHERE relkind = 'S' AND relname ~ 'key|called'}), 'called', 'a sequence without a default stays');
create_schema('CREATE TABLE keys (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)');
fails('an identity that is to be kept', qr/column id of table public.keys cannot keep an identity/, $me, '-v', 'keep_default=on');

# Columns and functions that the script does not convert.
create_schema($keys . $items . 'CREATE TABLE other (key_id integer, keys_id bigint, "keyId" smallint, id integer); CREATE FUNCTION narrow() RETURNS void LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN n := 1; END $$');
converts('with columns that could refer to the key', $me);
like(slurp_file("$scratch/script.out"), qr/^-- ALTER TABLE public.other ALTER "keyId" TYPE bigint;\n-- ALTER TABLE public.other ALTER key_id TYPE bigint;\n-- 1 functions use 32 bits: [^\n]*\n(?!--)/m, 'which are named');
converts('undo', $me, '-c', 'CALL convert_key.undo()');
value('DROP FUNCTION narrow; ALTER TABLE other ADD FOREIGN KEY (key_id) REFERENCES keys NOT VALID, ADD FOREIGN KEY ("keyId") REFERENCES keys NOT VALID');
converts('foreign keys that are not valid', $me);
unlike(slurp_file("$scratch/script.out"), qr/not converted/, 'include them');

# With the edition in SQL, and its statements for a key that is a bigint.
create_schema('DROP EXTENSION snowflake');
edition($server, $database, machine_id => 7);
value('CREATE TABLE keys (id serial PRIMARY KEY, name text); INSERT INTO keys (name) SELECT n FROM generate_series(1, 100) n; ' . $items . 'CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY); INSERT INTO orders DEFAULT VALUES');
converts('with the edition in SQL', $me);
converts('and a swap', $me, '-c', 'CALL convert_key.swap()', '-c', 'CALL convert_key.finish()');
is(value('INSERT INTO keys (name) VALUES (1) RETURNING snowflake_machine_id(id)'), '7', 'the key has its IDs');
my ($adoption) = slurp_file("$FindBin::RealBin/../../docs/portable.md") =~ /^## Existing tables.*?^```sql\n(.*?)^```/ms;
is(value($adoption), 't', 'existing keys are below new IDs');
is(value('INSERT INTO orders DEFAULT VALUES RETURNING snowflake_machine_id(id)'), '7', 'and the other key has IDs, too');

# A published table is converted if this is stated.
create_schema($keys . q{CREATE PUBLICATION pub FOR TABLE keys WITH (publish = 'insert')});
fails('a published table', qr/table public.keys is in publication pub: see the variable "published"/, $me);
converts('a published table, as stated', $me, '-v', 'published=on');
create_schema($keys . 'CREATE PUBLICATION pub FOR ALL TABLES');
fails('a publication of all tables', qr/publication pub publishes all tables, also those of schema convert_key/, $me, '-v', 'published=on');

# The swap notices changes since "Ready", and the script follows them.  It is quiet.
create_schema($keys . $items . 'CREATE TABLE notes (ref integer NOT NULL REFERENCES keys); CREATE TABLE owners (ref integer CONSTRAINT owner REFERENCES keys)');
converts('before a change', $me);
unlike(slurp_file("$scratch/script.out"), qr/^(CREATE|INSERT|SET|ALTER|DO|CALL|SELECT|BEGIN|COMMIT)/m, 'no tags of commands');
like(slurp_file("$scratch/script.out"), qr/INFO:  public.keys: .* expected to end at \d\d:/, 'the expected end');
fails('the end without a swap', qr/its columns were not swapped$/m, $me, '-c', 'CALL convert_key.finish()');
my @changes = ('ALTER TABLE items ALTER ref SET NOT NULL', 'ALTER TABLE notes ALTER ref DROP NOT NULL', 'ALTER TABLE owners DROP CONSTRAINT owner', 'ALTER TABLE notes ALTER CONSTRAINT notes_ref_fkey DEFERRABLE',
	'ALTER TABLE items ADD CONSTRAINT positive CHECK (ref > 0)');
for my $change (@changes)
{
	value($change);
	fails("swap after $change", $has_changed, $me, '-c', 'CALL convert_key.swap()') unless $change =~ /ALTER CONSTRAINT/;
	converts("again after $change", $me);
}
converts('swap after all changes', $me, '-c', 'CALL convert_key.swap()');
is(value(q{SELECT attrelid::regclass, attnotnull FROM pg_attribute WHERE attname = 'ref' ORDER BY 1::text}) =~ s/\n/ /gr, 'items|t notes|f owners|f', 'columns that can be null');
is(value(q{SELECT conname, condeferrable FROM pg_constraint WHERE contype <> 'n' AND conrelid IN ('items'::regclass, 'notes'::regclass, 'owners'::regclass) ORDER BY 1}) =~ s/\n/ /gr, 'items_ref_fkey|f notes_ref_fkey|t positive|f', 'constraints');

# Triggers of foreign keys are called in the order of their names, which contain OIDs.  Those of the
# new columns come first here, and the triggers of the user are called once nevertheless.
create_schema($keys . q{CREATE TABLE items (code serial, ref integer REFERENCES keys ON UPDATE CASCADE ON DELETE SET NULL); INSERT INTO items (ref) VALUES (1), (2);
	CREATE TABLE calls (name text);
	CREATE FUNCTION call() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO calls VALUES (TG_NAME); RETURN NEW; END';
	CREATE TRIGGER first BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION call();
	CREATE TRIGGER last AFTER UPDATE ON items FOR EACH ROW EXECUTE FUNCTION call()});
$server->stop;
system_or_bail('pg_resetwal', '-o', 100000, $server->data_dir);
$server->start;
converts('new foreign keys that come first', $me);
value('UPDATE keys SET id = 1000 WHERE id = 1; DELETE FROM keys WHERE id = 2');
is(value('SELECT name, count(*) FROM calls GROUP BY 1 ORDER BY 1') =~ s/\n/ /gr, 'first|2 last|2', 'triggers are called once for each row');
is(value('SELECT ref, ref_new FROM items ORDER BY code') =~ s/\n/ /gr, '1000|1000 |', 'and references follow');

# Two transactions refer to a row that neither has inserted yet; one of them inserts it.
create_schema($uuids);
converts('before two transactions', $me);
my @sessions = map { $server->background_psql($database) } 1 .. 2;
$_->query_safe('BEGIN; SET CONSTRAINTS ALL DEFERRED') for @sessions;
$sessions[0]->query_safe('INSERT INTO items (ref) VALUES (key(500))');
$sessions[1]->query_until(qr/sent/, "\\echo sent\nINSERT INTO items (ref) VALUES (key(500)) RETURNING 'inserted';\n");
$server->poll_query_until($database, q{SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)});
$sessions[0]->query_safe('INSERT INTO keys VALUES (key(500)); COMMIT');
$sessions[1]->query_safe('COMMIT');
$_->quit for @sessions;
is(value('SELECT count(DISTINCT ref_new), count(*) FROM items JOIN keys ON id_new = ref_new WHERE ref = key(500)'), '1|2', 'both have committed, and refer to the same row');
$database = 'postgres';

# Rows of a uuid key have IDs with their times: 5000 of one millisecond, which has 4096 IDs, of version 7; 100 with a time
# in a column; three of other times, and one without.
$server->safe_psql('postgres', q{
	CREATE TABLE times (id uuid PRIMARY KEY, made timestamptz);
	INSERT INTO times SELECT ('016f5e66-e87b-7' || substr(gen_random_uuid()::text, 16))::uuid FROM generate_series(1, 5000);
	INSERT INTO times SELECT gen_random_uuid(), timestamptz '2021-01-01' + n * interval '1 h' FROM generate_series(1, 100) n;
	INSERT INTO times SELECT gen_random_uuid(), unnest('{2000-01-01,infinity,-infinity,null}'::timestamptz[])});
ok(IPC::Run::run([ 'psql', '-Xq', '-d', $server->connstr('postgres'), '-v', 'table=times', '-v', 'column=id', '-v', 'time=made', '-v', 'machine_id=9', '-f', $script ], '>', "$scratch/script.out", '2>&1'), 'times')
  or diag(slurp_file("$scratch/script.out"));
is(value(q{SELECT count(*), count(DISTINCT id_new), min(t), max(t), min(m), max(m) FROM times, LATERAL (SELECT snowflake_timestamp(id_new) AS t, snowflake_machine_id(id_new) AS m) d WHERE substr(id::text, 1, 15) = '016f5e66-e87b-7'}),
	'5000|5000|2020-01-01 00:00:00.123+00|2020-01-01 00:00:00.124+00|9|9', 'rows of one millisecond');
is(value('SELECT count(*) FROM times WHERE snowflake_timestamp(id_new) = made AND snowflake_machine_id(id_new) = 9'), '100', 'rows with a time in a column');
is(value(q{SELECT count(*), count(i.outside) FROM times t JOIN convert_key.ids i ON id = old_id WHERE new_id = id_new AND snowflake_timestamp(new_id) > now() - interval '1 h' AND snowflake_machine_id(new_id) = 3}),
	'4|3', 'rows of other times have IDs of the present, and are listed');
is(value('SELECT count(*) FROM (SELECT id_new < lag(id_new) OVER (ORDER BY snowflake_timestamp(id_new), id) AS is_wrong FROM times WHERE made IS NULL AND snowflake_machine_id(id_new) = 9) o WHERE is_wrong'),
	'0', 'and IDs are in the order of the keys');
value('CALL convert_key.undo()');

my $waits = qr/waiting for the transactions/;
for my $type ('integer', 'uuid')
{
	$database = $type;
	$server->safe_psql('postgres', "CREATE DATABASE $database");
	value($schema =~ s/TYPE/$type/gr =~ s/KEY,/$type eq 'uuid' ? 'shop.uuid_v7(),' : "nextval('shop.keys'),"/er =~ s/ROWS/$rows/gr);
	my $before = value($catalog);

	start_programs();
	if ($measures)
	{
		measure();
		compare_rows();
		next;
	}
	my $locks_job = 'BEGIN; SELECT FROM convert_key.job FOR UPDATE';
	my $gate = 'SELECT pg_advisory_lock(7)';
	my $reads = sub { "BEGIN; SELECT FROM shop.$_[0] LIMIT 1" };
	my $is_stuck = sub { "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ '$_[0]')" };

	kill_in('a column and a trigger', $reads->('"Orders"'), $waits);
	runs('the script runs to its end');
	runs('undo', 'CALL convert_key.undo()');
	is(value($catalog), $before, 'undo leaves all as it was');
	kill_in('IDs', 'BEGIN; LOCK convert_key.ids IN SHARE MODE', $is_stuck->('WITH layout AS')) if $type eq 'uuid';
	kill_in('columns that refer to it', $reads->('lines'), $waits);
	kill_in('fill', $gate, q{SELECT count(*) FILTER (WHERE next_block > 0) > 0 FROM convert_key.tables WHERE relation = 'shop."Orders"'::regclass});
	kill_in('indexes', 'BEGIN; LOCK TABLE shop."Orders", shop.lines, shop.notes, shop.invoices IN ROW EXCLUSIVE MODE', 'SELECT EXISTS (SELECT FROM pg_index WHERE NOT indisvalid)');
	kill_in('constraints', $reads->('notes'), $waits);
	kill_in('validation', $gate, $is_stuck->('VALIDATE'));
	kill_in('not null', $reads->('invoices'), $waits);
	runs('the script runs to its end');
	kill_in('swap', $locks_job, q{SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'shop."Orders"'::regclass)}, 'CALL convert_key.swap()');
	runs('swap', 'CALL convert_key.swap()');
	my $count = value('SELECT count(*) FROM shop.journal');
	$server->poll_query_until($database, "SELECT count(*) > $count + 500 FROM shop.journal");
	stop_programs('at the end');
	compare_rows();
	kill_in('finish', $reads->('lines'), $waits, 'CALL convert_key.finish()');
	runs('finish', 'CALL convert_key.finish()');
	stop_programs('after the end');
	value('DROP SCHEMA convert_key CASCADE');
	value('ALTER TABLE shop."Orders" DROP COLUMN "the Id_old"') if $type eq 'uuid';
	is(value($catalog), $before, 'all objects are as they were');
}

ok($measures || slurp_file($server->logfile) =~ /existing constraints on column "Orders.the Id_new" are sufficient to prove that it does not contain nulls/,
	'no table is read under an exclusive lock');

done_testing();
