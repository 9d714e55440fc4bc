# examples/convert_key.sql, for a key of type integer and one of type uuid, while programs write: the server is killed in each
# step, and the script started again.  Then no row is lost or different, the new objects equal the old ones, and the way
# back leaves nothing.
#
# SNOWFLAKE_TEST_ROWS=2000000 measures instead: nothing is killed, and how long writers and readers wait is printed.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $measures = $ENV{SNOWFLAKE_TEST_ROWS};
my $rows = $measures // scaled(20000, 4000);
my $script = "$FindBin::RealBin/../examples/convert_key.sql";
my $server = snowflake_server('main', 'snowflake.machine_id = 3', "timezone = 'UTC'", 'max_wal_senders = 0', 'wal_level = replica',
	$measures ? ('fsync = on', 'log_statement = none', 'log_lock_waits = on', 'deadlock_timeout = 60ms', 'log_connections = off', 'log_disconnections = off', 'shared_buffers = 1GB', 'max_wal_size = 8GB', 'checkpoint_timeout = 5min') : ());
my $database = 'postgres';

sub value { return $server->safe_psql($database, $_[0]); }

# Four tables with names that need quotes, of which three refer to the first.  Each row has a code, and the code of the row that it
# refers to.  A journal has all that is written.
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
	SELECT o.version, l.version, p.version FROM "Orders" o LEFT JOIN lines l ON l.order_id = o."the Id" LEFT JOIN "Orders" p ON p."the Id" = o.parent WHERE o.code = :code;
};

# pgbench, until it is stopped or the server ends.
sub start_clients
{
	my ($name, $clients, $commands) = @_;
	local $ENV{PGOPTIONS} = '-c search_path=shop,public';
	local @ENV{ 'PGAPPNAME', 'PGUSER' } = ('program', 'app');
	my $file = "$scratch/$name.sql";

	unlink $file;
	append_to_file($file, $commands =~ s/ROWS/$rows/gr =~ s/^\t+//gmr);
	return IPC::Run::start([ 'pgbench', '-n', '-c', $clients, '-j', $clients, '-T', 100000, '--max-tries=10', '-f', $file,
			$measures ? ('-l', '--aggregate-interval=1', "--log-prefix=$scratch/$name") : (), $server->connstr($database) ], '<', '/dev/null', '>', "$scratch/$name.out", '2>>', "$scratch/$name.err");
}

my @clients;
sub start_programs { @clients = (start_clients('writers', 4, $writes), start_clients('reader', 1, $reads)); }

# Stop them; no statement may have failed.
sub stop_programs
{
	my ($state) = @_;

	value(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'program'});
	$_->finish for @clients;
	unlike(slurp_file("$scratch/$_.err"), qr/ERROR:/, "no statement of the $_ has failed, $state") for 'writers', 'reader';
}

# The definitions of all that has names, and not of its column's type.
# From PostgreSQL 18 on, NOT NULL constraints have names, which are those of the new columns.
my $catalog = q{
	SELECT string_agg(line, E'\n' ORDER BY line) FROM (
		SELECT concat_ws(' ', pg_get_indexdef(indexrelid), indisreplident, indisclustered, obj_description(indexrelid, 'pg_class')) FROM pg_index
			WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'shop'::regnamespace)
		UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated, obj_description(oid, 'pg_constraint')) FROM pg_constraint WHERE connamespace = 'shop'::regnamespace AND contype <> 'n'
		UNION ALL SELECT concat_ws(' ', attrelid::regclass, attname, attnotnull, attacl, attstattarget, (SELECT string_agg(o, ' ') FROM unnest(attoptions) o WHERE o LIKE 'n_distinct%'), col_description(attrelid, attnum)) FROM pg_attribute
			WHERE attnum > 0 AND NOT attisdropped AND attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'shop'::regnamespace)
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

# Each row is that of the journal, except for the new columns; and it refers to the row with the code that it has.
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
				(SELECT '{the Id,the Id_new,the Id_old,$column,${column}_new,${column}_old}'::text[] AS names) k}),
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
		@steps = slurp_file("$scratch/script.out") =~ /^(Adding columns|Filling|Creating|Adding constraints|Comparing)/mg;
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

# What cannot be converted is named.
$server->safe_psql('postgres', q{
	CREATE ROLE app LOGIN;
	CREATE TABLE keys (a integer PRIMARY KEY, b integer, UNIQUE (a, b), doubled integer GENERATED ALWAYS AS (2 * a) STORED, EXCLUDE (a WITH =));
	CREATE TABLE pairs (a integer, b integer, FOREIGN KEY (a, b) REFERENCES keys (a, b));
	CREATE TABLE parts (a integer DEFAULT 1 REFERENCES keys ON DELETE SET DEFAULT) PARTITION BY LIST (a);
	CREATE TABLE texts (a integer REFERENCES keys, a_new text);
	CREATE VIEW all_keys AS SELECT * FROM keys;
	CREATE PUBLICATION some_keys FOR TABLE keys (a);
	CREATE POLICY positive ON keys USING (a > 0)});
sub refuses
{
	my ($pattern) = @_;

	ok(!IPC::Run::run([ 'psql', '-Xq', '-d', $server->connstr('postgres'), '-v', 'table=keys', '-v', 'column=a', '-f', $script ], '>', "$scratch/script.out", '2>&1'), 'refused');
	like(slurp_file("$scratch/script.out"), $pattern, 'with its reasons');
}
refuses(qr/column "a_new" or "a_old" of table public.texts exists/);
value('ALTER TABLE texts DROP a_new');
refuses($_)
  for qr/constraint keys_a_excl on table public.keys depends on column a/, qr/constraint pairs_a_b_fkey on table public.pairs has several columns/,
  qr/default value for column doubled of table public.keys depends/, qr/publication of table public.keys .* depends/, qr/view public.all_keys depends/, qr/policy positive .* depends/,
  qr/constraint parts_a_fkey on table public.parts .* sets a default/, qr/table public.parts is partitioned/;

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
for my $type ($measures ? 'integer' : ('integer', 'uuid'))
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
	kill_in('IDs', $locks_job, $is_stuck->('INSERT INTO convert_key.ids')) if $type eq 'uuid';
	runs('the script runs to its end');
	runs('undo', 'CALL convert_key.undo()');
	is(value($catalog), $before, 'undo leaves all as it was');
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
