# Schemas drawn at random: migration/convert_key.sql refuses a schema before it changes anything, or
# converts it without a difference, while a program writes, and although the script is killed or
# canceled at a random step, or the database is moved by a dump before or after the swap.
#
# Each schema is created three times.  One is converted.  In its twin the program's statements run
# without a conversion: in the end, the rows are the same, and the same statements have failed.  The
# third is created as the converted schema has to be: in the end, the definitions are the same.
#
# Functions are drawn for their definitions.  None has an integer variable that gets a key: it would fail in rows with
# new IDs, which is correct, and the twin has no such IDs.
#
# SNOWFLAKE_TEST_SCHEMAS=300 draws that many, from SNOWFLAKE_TEST_SEED, and SNOWFLAKE_TEST_SECONDS=600 for ten minutes.
# A failure prints the seed of its schema.
use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use SnowflakeTest;
use List::Util qw(any all);

my $end = $ENV{SNOWFLAKE_TEST_SECONDS} && time + $ENV{SNOWFLAKE_TEST_SECONDS};
my $count = $ENV{SNOWFLAKE_TEST_SCHEMAS} // ($end ? 1_000_000 : scaled(8, 4));
my $first_seed = $ENV{SNOWFLAKE_TEST_SEED} // 20000;
my $script = "$FindBin::RealBin/../convert_key.sql";
my $server = snowflake_server('main', 'snowflake.machine_id = 3', "timezone = 'UTC'", 'wal_level = logical');
my %file = map { $_ => "$scratch/$_" } qw(writer.sql writer.out script.out);

sub chance { return rand() < $_[0]; }
sub pick { return $_[ rand @_ ]; }
sub quoted { return '"' . $_[0] =~ s/"/""/gr . '"'; }
sub write_file { my ($name, $text) = @_; unlink $name; append_to_file($name, $text); }

# The drawing of a schema.  A column that refers to the key has the name "ref" here, and the column
# ref_code beside it has the code of the row to which it refers.

my @actions = ('NO ACTION', 'NO ACTION', 'RESTRICT', 'CASCADE', 'CASCADE', 'SET NULL', 'SET NULL');
my @timings = ('', '', 'DEFERRABLE', 'DEFERRABLE INITIALLY DEFERRED');

sub draw_reference
{
	my ($s, $table, $column) = @_;
	my $is_self = $table eq $s->{table};
	my %r = (table => $table, column => $column, is_self => $is_self, key => $is_self ? '' : pick('', '', '', 'PRIMARY KEY (REF, code)', 'UNIQUE (REF, code)', 'PRIMARY KEY (REF)'),
		type => $s->{type} eq 'integer' && chance(0.1) ? 'bigint' : $s->{type}, update => pick(@actions), timing => pick(@timings), match => chance(0.1) ? 'MATCH FULL ' : '',
		not_valid => !$is_self && chance(0.1) ? 'NOT VALID' : '', default => '');

	$r{is_not_null} = !$is_self && ($r{key} =~ /PRIMARY/ || chance(0.4));
	$r{delete} = pick($r{is_not_null} ? grep { !/NULL/ } @actions : (@actions, 'SET NULL (REF)'));
	$r{update} = pick(grep { !/NULL/ } @actions) if $r{is_not_null};
	if ($s->{type} =~ /int/)
	{
		$r{default} = pick('serial', 'shared', '1') if !$is_self && chance(0.4);
		$r{default} = '' if $r{default} eq 'shared' && $s->{default} ne 'serial' && $s->{default} ne 'sequence';
	}
	return \%r;
}

sub draw
{
	my ($seed) = @_;

	srand $seed;
	my %s = (
		seed => $seed,
		role => pick('postgres', 'shop_owner'),
		schema => pick('shop', 'Odd "Schema'),
		table => pick('items', 'Orders', 'a b', 'gr' . "\xc3\xb6\xc3\x9f" . 'e', 't' x 56),
		column => pick('id', 'the Id', 'select', 'a"b', 'k' x 59, (chance(0.1) ? 'k' x 60 : ())),
		type => pick('integer', 'integer', 'smallint', 'uuid', 'uuid', 'varchar(20)', 'numeric(20,0)'),
		unique => pick('PRIMARY KEY (ID)', 'PRIMARY KEY (ID)', 'PRIMARY KEY (tenant, ID), UNIQUE (ID)', 'UNIQUE (ID)', 'PRIMARY KEY (tenant, ID)'),
		is_published => chance(0.1), is_allowed => chance(0.6),
		is_materialized => chance(0.7),
		moves => [ chance(0.15), chance(0.1) ],    # before the swap, after it
		rls => pick('', '', '', 'ENABLE', 'FORCE'),
		extras => [], refusals => []);
	$s{default} = $s{type} eq 'uuid' ? pick('gen_random_uuid()', '') : pick('serial', 'serial', 'sequence', $s{type} =~ /int/ ? ('ALWAYS', 'BY DEFAULT') : (), '');
	$s{references} = [];
	my $is_referred = $s{unique} ne 'PRIMARY KEY (tenant, ID)';
	push @{ $s{references} }, draw_reference(\%s, $s{table}, pick('parent', 'Pa rent')) if $is_referred && chance(0.5);
	if ($is_referred)
	{
		push @{ $s{references} }, draw_reference(\%s, $_, pick('item_id', 'Ref', 'order')) for grep { chance(0.5) } 'lines', 'Notes', 'zz_child';
	}
	draw_triggers(\%s);
	draw_extras(\%s);
	draw_refusal(\%s) if chance(0.1);
	draw_statements(\%s);
	return \%s;
}

# The names of the key's table and of the tables that refer to it.
sub tables { my ($s) = @_; my %seen; return grep { !$seen{$_}++ } $s->{table}, map { $_->{table} } @{ $s->{references} }; }

sub draw_triggers
{
	my ($s) = @_;

	for my $table (tables($s))
	{
		for my $name (grep { chance($_ gt 'zzz_convert_key' ? 0.05 : 0.2) } 'aaa', 'Zeta', 'zzz_before', 'zzz_number', "\xc3\xa4rger")
		{
			my ($when, $events, $level, $function) = (pick('BEFORE', 'AFTER'), pick('INSERT', 'UPDATE', 'INSERT OR UPDATE', 'INSERT OR UPDATE OR DELETE'), pick('ROW', 'ROW', 'STATEMENT'), 'log');
			my ($reference) = grep { $_->{table} eq $table && !$_->{is_self} } @{ $s->{references} };

			($when, $events, $level, $function) = ('BEFORE', 'INSERT', 'ROW', $reference ? 'refer_' . $reference->{table} : 'number')
			  if chance(0.4) && ($reference || $s->{type} =~ /int|numeric/ && $table eq $s->{table});
			$function = 'touch' if $when eq 'BEFORE' && $level eq 'ROW' && $events !~ /DELETE/ && $function eq 'log' && chance(0.5);
			push @{ $s->{extras} }, [ "CREATE TRIGGER " . quoted($name) . " $when $events ON TABLE<$table> FOR EACH $level EXECUTE FUNCTION " . quoted($function) . '()' ];
			push @{ $s->{extras} }, [ "ALTER TABLE TABLE<$table> " . pick('ENABLE ALWAYS', 'ENABLE REPLICA', 'DISABLE') . ' TRIGGER ' . quoted($name) ] if chance(0.15);
		}
	}
}

# Objects that follow the columns, or do not depend on them.
sub draw_extras
{
	my ($s) = @_;
	my $key = "TABLE<$s->{table}>";

	my @extras = (
		"CREATE INDEX \"an Index\" ON $key (ID DESC, code) WITH (fillfactor = 80)",
		"CREATE INDEX ON $key USING hash (ID)",
		"CREATE INDEX ON $key USING brin (ID)",
		"CREATE INDEX expression ON $key ((ID::text || 'x') text_pattern_ops, length(ID::text)) INCLUDE (payload) WHERE ID IS NOT NULL;"
		  . " ALTER INDEX expression ALTER COLUMN 2 SET STATISTICS 300; COMMENT ON INDEX expression IS 'it''s one'",
		"CREATE UNIQUE INDEX \"unique one\" ON $key (code, ID)",
		"ALTER TABLE $key ADD CONSTRAINT \"a check\" CHECK (ID::text <> '' AND code > 0)",
		"ALTER TABLE $key ADD CONSTRAINT unchecked CHECK (ID::text <> 'x') NOT VALID; COMMENT ON CONSTRAINT unchecked ON $key IS 'why'",
		"ALTER TABLE $key ADD CONSTRAINT \"deferred one\" UNIQUE (ID, code) DEFERRABLE INITIALLY DEFERRED",
		"COMMENT ON COLUMN $key.ID IS 'the key'",
		"GRANT SELECT (ID, code), UPDATE (payload) ON $key TO reader WITH GRANT OPTION; GRANT INSERT (ID) ON $key TO PUBLIC",
		"ALTER TABLE $key ALTER ID SET STATISTICS 200, ALTER ID SET (n_distinct = -0.5)",
		"ALTER TABLE $key SET (fillfactor = 70)",
		"CREATE DOMAIN SPACE.short AS text CHECK (length(VALUE) < 100); ALTER TABLE $key ADD label SPACE.short DEFAULT 'x'",
		"CREATE VIEW SPACE.codes AS SELECT code, payload FROM $key",
		"CREATE STATISTICS SPACE.both ON code, payload FROM $key",
		"CREATE RULE nothing AS ON DELETE TO $key WHERE OLD.code < 0 DO INSTEAD NOTHING",
		"ALTER TABLE $key ADD doubled bigint GENERATED ALWAYS AS (code * 2) STORED");
	for my $r (@{ $s->{references} })
	{
		my ($table, $ref, $pair) = ("TABLE<$r->{table}>", quoted($r->{column}), quoted("$r->{table} pair"));

		push @extras, "CREATE INDEX ON $table ($ref) WHERE $ref IS NOT NULL", "CREATE INDEX ON $table (lower($ref\::text), code)",
		  "ALTER TABLE $table ADD CHECK ($ref IS NULL OR code > 0) NO INHERIT", "COMMENT ON COLUMN $table.$ref IS 'a reference'",
		  "CREATE UNIQUE INDEX $pair ON $table ($ref, code); ALTER TABLE $table CLUSTER ON $pair" . ($r->{is_not_null} ? "; ALTER TABLE $table REPLICA IDENTITY USING INDEX $pair" : ''),
		  "GRANT SELECT ($ref), UPDATE ($ref) ON $table TO reader", "COMMENT ON CONSTRAINT " . quoted("$r->{table}_fk") . " ON $table IS 'the key'",
		  $r->{is_self} ? "ALTER TABLE $table ADD CONSTRAINT \"not itself\" CHECK ($ref <> ID)" : ();
	}
	push @{ $s->{extras} }, [$_] for grep { chance(0.2) } @extras;
	draw_views($s) if chance(0.4);
	push @{ $s->{extras} }, [ "CREATE SEQUENCE SPACE.called OWNED BY $key.ID", 'CREATE SEQUENCE SPACE.called' ] if chance(0.2);
	if ($s->{rls})
	{
		push @{ $s->{extras} }, [ "ALTER TABLE TABLE<$_> ENABLE ROW LEVEL SECURITY; CREATE POLICY even ON TABLE<$_> USING (code % 2 = 0) WITH CHECK (true)"
			  . ($s->{rls} eq 'FORCE' ? "; ALTER TABLE TABLE<$_> FORCE ROW LEVEL SECURITY" : '') ] for tables($s);
	}
	push @{ $s->{extras} }, [ pick("CREATE PUBLICATION pub FOR TABLE $key WITH (publish = 'insert')", ($s->{role} eq 'postgres' && $s->{unique} =~ /PRIMARY/ ? "CREATE PUBLICATION pub FOR ALL TABLES" : ())) ] if $s->{is_published};
	push @{ $s->{extras} }, [ "CREATE TABLE SPACE.sharing (n integer DEFAULT nextval('SPACE.key_seq'), t text)", undef, 'shares' ]
	  if $s->{default} =~ /serial|sequence/ && chance(0.4);
}

# Views that use the key, with the properties that they can have.
sub draw_views
{
	my ($s) = @_;
	my $key = "TABLE<$s->{table}>";
	my $r = pick(@{ $s->{references} });
	my ($table, $ref) = $r ? ("TABLE<$r->{table}>", quoted($r->{column})) : ($key, 'ID');
	my @views = (
		"CREATE VIEW SPACE.\"All keys\" AS SELECT ID AS \"a key\", code, payload FROM $key WHERE ID IS NOT NULL",
		"CREATE VIEW SPACE.keys_again AS SELECT v.*, \"a key\"::text AS t FROM SPACE.\"All keys\" v",
		"CREATE VIEW SPACE.joined WITH (security_barrier = true) AS SELECT r.code, r.$ref, k.\"a key\" FROM $table r LEFT JOIN SPACE.\"All keys\" k ON k.\"a key\"::text = r.$ref\::text",
		"CREATE VIEW SPACE.checked WITH (check_option = cascaded, security_invoker = true) AS SELECT ID, code FROM $key WHERE code > 0",
		"CREATE VIEW SPACE.first_view AS SELECT code FROM SPACE.keys_again UNION ALL SELECT code FROM SPACE.joined");
	my @properties = (
		'GRANT SELECT ON SPACE."All keys" TO PUBLIC; GRANT INSERT, UPDATE (code) ON SPACE."All keys" TO reader WITH GRANT OPTION',
		'REVOKE ALL ON SPACE.keys_again FROM CURRENT_USER',
		$s->{role} eq 'postgres' ? "GRANT SELECT ON $key TO shop_owner; ALTER VIEW SPACE.\"All keys\" OWNER TO shop_owner" : 'GRANT ALL ON SPACE.first_view TO shop_owner WITH GRANT OPTION',
		q{COMMENT ON VIEW SPACE."All keys" IS 'it''s one'; COMMENT ON COLUMN SPACE."All keys"."a key" IS 'the key'},
		'ALTER VIEW SPACE."All keys" ALTER payload SET DEFAULT \'none\'',
		"CREATE RULE deletes AS ON DELETE TO SPACE.\"All keys\" DO INSTEAD DELETE FROM $key WHERE ID = OLD.\"a key\"; COMMENT ON RULE deletes ON SPACE.\"All keys\" IS 'a rule'",
		'CREATE RULE updates AS ON UPDATE TO SPACE.joined DO INSTEAD UPDATE SPACE."All keys" SET payload = \'x\' WHERE "a key" = OLD."a key"',
		'CREATE TRIGGER "an insert" INSTEAD OF INSERT OR UPDATE ON SPACE.first_view FOR EACH ROW EXECUTE FUNCTION log(); COMMENT ON TRIGGER "an insert" ON SPACE.first_view IS \'three\'',
		'ALTER DEFAULT PRIVILEGES IN SCHEMA SPACE GRANT SELECT ON TABLES TO reader');
	my @materialized = (
		'CREATE MATERIALIZED VIEW SPACE.kept WITH (fillfactor = 80) AS SELECT "a key", code, payload FROM SPACE."All keys"; CREATE UNIQUE INDEX "one kept" ON SPACE.kept (code, "a key") WITH (fillfactor = 70);'
		  . ' CREATE INDEX ON SPACE.kept (("a key"::text)); ALTER MATERIALIZED VIEW SPACE.kept CLUSTER ON "one kept"; COMMENT ON MATERIALIZED VIEW SPACE.kept IS \'four\';'
		  . ' GRANT SELECT ON SPACE.kept TO reader; ALTER MATERIALIZED VIEW SPACE.kept ALTER payload SET STATISTICS 99, ALTER payload SET STORAGE EXTERNAL',
		'CREATE MATERIALIZED VIEW SPACE.never AS SELECT code FROM SPACE.kept WITH NO DATA',
		"CREATE FUNCTION half_of_code(integer) RETURNS integer IMMUTABLE LANGUAGE sql RETURN \$1 / 2; CREATE VIEW SPACE.half_codes AS SELECT half_of_code(code::integer) AS half, ID FROM $key",
		"CREATE FUNCTION guarded(n integer) RETURNS integer LANGUAGE plpgsql AS \$\$ DECLARE i integer; BEGIN i := (SELECT code FROM $key WHERE code = n); RETURN i; EXCEPTION WHEN OTHERS THEN RETURN 0; END \$\$");

	push @{ $s->{extras} }, [$_] for @views, grep { chance(0.4) } @properties;
	if (chance(0.4)) { push @{ $s->{extras} }, [$_] for @materialized; $s->{has_materialized} = 1; }
}

# Something that is refused, or could be.
sub draw_refusal
{
	my ($s) = @_;
	my $key = "TABLE<$s->{table}>";
	my @refusals = (
		"CREATE FUNCTION half_of($s->{type}) RETURNS text IMMUTABLE LANGUAGE sql RETURN left(\$1::text, 2); CREATE VIEW SPACE.halves AS SELECT half_of(ID) FROM $key",
		"CREATE VIEW SPACE.keys AS SELECT ID FROM $key; CREATE FUNCTION one() RETURNS SETOF SPACE.keys LANGUAGE sql AS 'SELECT * FROM SPACE.keys'",
		"CREATE MATERIALIZED VIEW SPACE.keys AS SELECT ID, code FROM $key; CREATE STATISTICS SPACE.keys_statistics ON ID, code FROM SPACE.keys",
		"CREATE RULE logs AS ON INSERT TO $key DO ALSO INSERT INTO log VALUES ('rule', NEW.ID::text, 'ROW')",
		"CREATE TRIGGER moved AFTER UPDATE OF ID ON $key FOR EACH ROW EXECUTE FUNCTION log()",
		"CREATE POLICY keys ON $key USING (ID IS NOT NULL)",
		"CREATE TABLE SPACE.heir () INHERITS ($key); ALTER TABLE SPACE.heir REPLICA IDENTITY FULL",
		"CREATE STATISTICS SPACE.keys ON ID, code FROM $key",
		"ALTER TABLE $key ADD generated text GENERATED ALWAYS AS (CASE WHEN ID IS NULL THEN 'a' END) STORED",
		"ALTER TABLE $key ADD CONSTRAINT excluded EXCLUDE (ID WITH =)",
		"ALTER TABLE $key ADD " . quoted("$s->{column}_" . pick('new', 'old')) . ' integer',
		"CREATE FUNCTION one() RETURNS bigint BEGIN ATOMIC SELECT count(ID) FROM $key; END",
		$s->{type} eq 'uuid' ? "CREATE TABLE TABLE<" . substr_utf8($s->{table}, 55) . "_old_key> (a integer)" : ());
	push @refusals, "CREATE FUNCTION half($s->{type}) RETURNS text IMMUTABLE LANGUAGE sql RETURN left(\$1::text, 2); CREATE INDEX ON $key (half(ID))",
	  "CREATE FUNCTION half($s->{type}) RETURNS text IMMUTABLE LANGUAGE sql RETURN left(\$1::text, 2); ALTER TABLE $key ADD CHECK (half(ID) <> 'zz')"
	  for 1 .. 2;
	push @refusals, $s->{type} eq 'uuid' ? "ALTER TABLE $key ADD CHECK (ID <> '00000000-0000-0000-0000-000000000000')" : $s->{type} eq 'integer' ? "CREATE INDEX ON $key USING brin (ID int4_minmax_multi_ops)" : ();
	if ($s->{unique} ne 'PRIMARY KEY (tenant, ID)')
	{
		push @refusals, "CREATE TABLE SPACE.parts (code bigint, ref $s->{type} REFERENCES $key (ID)) PARTITION BY RANGE (code); CREATE INDEX ON SPACE.parts (ref)",
		  "CREATE TYPE SPACE.row_type AS (ref $s->{type}, t text); CREATE TABLE SPACE.typed OF SPACE.row_type (FOREIGN KEY (ref) REFERENCES $key (ID))",
		  "CREATE DOMAIN SPACE.key_domain AS $s->{type}; CREATE TABLE SPACE.of_domain (ref SPACE.key_domain REFERENCES $key (ID))",
		  "CREATE TABLE SPACE.pairs (code bigint, ref $s->{type}, FOREIGN KEY (code, ref) REFERENCES $key (code, ID))",
		  "CREATE TABLE SPACE.defaults (ref $s->{type} REFERENCES $key (ID) ON DELETE SET DEFAULT)";
		push @refusals, "CREATE TABLE SPACE.numbered (ref $s->{type} GENERATED BY DEFAULT AS IDENTITY REFERENCES $key (ID))" if $s->{type} =~ /int/;
	}
	my $one = pick(@refusals);
	$one = "ALTER TABLE $key ADD UNIQUE (code, ID); $one" if $one =~ /SPACE.pairs/;
	push @{ $s->{refusals} }, [$one];
}

# The name of a table, "schema"."table"; text with placeholders as SQL.
sub name { my ($s, $table) = @_; return quoted($s->{schema}) . '.' . quoted($table); }

sub sql
{
	my ($s, $text) = @_;

	return $text =~ s/TABLE<(.*?)>/name($s, $1)/ger =~ s/\bSPACE\b/quoted($s->{schema})/ger =~ s/\bID\b/quoted($s->{column})/ger;
}

# All definitions: as they are before, or as they have to be after the conversion.
sub definitions
{
	my ($s, $is_after) = @_;
	my $type = $is_after ? 'bigint' : $s->{type};
	my $is_shared = any { $_->{default} eq 'shared' } @{ $s->{references} };
	my $has_sequence = $s->{default} =~ /serial|sequence/;
	my $sharing = any { ($_->[2] // '') eq 'shares' } @{ $s->{extras} };
	my $default = $is_after ? 'DEFAULT public.snowflake_id()' . ($s->{default} =~ /ALWAYS|BY/ ? ' NOT NULL' : '') : $has_sequence ? q{DEFAULT nextval('SPACE.key_seq')}
	  : $s->{default} =~ /ALWAYS|BY/ ? "GENERATED $s->{default} AS IDENTITY" : $s->{default} ? "DEFAULT $s->{default}" : '';
	my @ddl = ('CREATE SCHEMA SPACE; SET search_path = SPACE, public', 'CREATE TABLE applied (n integer)', 'CREATE TABLE log (name text, operation text, level text)',
		q{CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO SPACE.log VALUES (TG_NAME, TG_OP, TG_LEVEL); IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$},
		q{CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.payload := NEW.payload || '.'; RETURN NEW; END $$},
		q{CREATE FUNCTION number() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.ID := NEW.ID + 1000; RETURN NEW; END $$});
	push @ddl, $s->{type} eq 'smallint' ? 'CREATE SEQUENCE key_seq AS smallint' : 'CREATE SEQUENCE key_seq AS integer' if $has_sequence && !($is_after && $s->{default} eq 'serial' && !$is_shared && !$sharing);
	for my $table (tables($s))
	{
		my $is_key = $table eq $s->{table};
		my ($r) = grep { $_->{table} eq $table } @{ $s->{references} };
		my @columns = ('code bigint NOT NULL UNIQUE', 'ref_code bigint', 'payload text');

		if ($is_key)
		{
			push @columns, "ID $type $default", 'tenant integer NOT NULL DEFAULT 1', $s->{unique};
			push @columns, quoted("$s->{column}_old") . ' uuid' if $is_after && $s->{type} eq 'uuid';
		}
		if ($r)
		{
			my $ref = quoted($r->{column});
			my $of = $r->{default} eq '' ? '' : 'DEFAULT ' . ($r->{default} eq 'serial' ? "nextval('own_$table')" : $r->{default} eq 'shared' ? "nextval('SPACE.key_seq')" : $r->{default});

			$of =~ s/own_$table/SPACE."own_$table"/;
			push @ddl, "CREATE SEQUENCE \"own_$table\"" if $r->{default} eq 'serial';
			push @columns, "$ref " . ($is_after ? 'bigint' : $r->{type}) . ' ' . ($r->{is_not_null} ? 'NOT NULL ' : '') . $of, $r->{key} =~ s/REF/$ref/r || ();
			push @ddl, "CREATE FUNCTION \"refer_$table\"() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
				NEW.$ref := coalesce((SELECT ID FROM TABLE<$s->{table}> WHERE code = NEW.ref_code), NEW.$ref); RETURN NEW; END \$\$";
		}
		push @ddl, "CREATE TABLE TABLE<$table> (" . join(', ', @columns) . ')';
		push @ddl, "ALTER SEQUENCE \"own_$table\" OWNED BY TABLE<$table>." . quoted($r->{column}) if $r && $r->{default} eq 'serial';
	}
	push @ddl, "ALTER SEQUENCE key_seq OWNED BY TABLE<$s->{table}>.ID" if $s->{default} eq 'serial' && !$is_after;
	push @ddl, 'CREATE UNIQUE INDEX ' . quoted(substr_utf8($s->{table}, 55) . '_old_key') . " ON TABLE<$s->{table}> (" . quoted("$s->{column}_old") . ')' if $is_after && $s->{type} eq 'uuid';
	$ddl[-1] =~ s/UNIQUE // if $is_after && $s->{unique} eq 'PRIMARY KEY (tenant, ID)' && $s->{type} eq 'uuid';
	push @ddl, map { my $ref = quoted($_->{column});
		"ALTER TABLE TABLE<$_->{table}> ADD CONSTRAINT " . quoted("$_->{table}_fk") . " FOREIGN KEY ($ref) REFERENCES TABLE<$s->{table}> (ID) $_->{match}ON DELETE "
		  . $_->{delete} =~ s/REF/$ref/r . " ON UPDATE $_->{update} $_->{timing} $_->{not_valid}" } @{ $s->{references} };
	push @ddl, map { $is_after ? $_->[1] // with_old($s, $_->[0]) : $_->[0] } @{ $s->{extras} }, @{ $s->{refusals} };
	return map { sql($s, $_) } @ddl;
}

# The old key of type uuid keeps its comment, its privileges and its target.
sub with_old
{
	my ($s, $text) = @_;

	return $text unless $s->{type} eq 'uuid' && $text =~ /^(COMMENT ON COLUMN|GRANT|ALTER TABLE TABLE<.*?> ALTER ID SET)/;
	my $old = quoted("$s->{column}_old");
	return ($text, $text =~ s/\bID\b/$old/gr);
}

# The first characters of a name.
sub substr_utf8 { my ($name, $length) = @_; utf8::decode($name); $name = substr($name, 0, $length); utf8::encode($name); return $name; }

# The ID of a row whose default is none.
sub explicit
{
	my ($s, $code) = @_;

	return $s->{type} eq 'uuid' ? sprintf("'01900000-0000-7000-8000-%012x'::uuid", $code) : "(10000 + $code)::smallint";
}

sub first_rows
{
	my ($s) = @_;
	my $n = 30;
	my @statements = $s->{default} ? "INSERT INTO TABLE<$s->{table}> (code, payload) SELECT n, 'first' FROM generate_series(1, $n) n"
	  : map { "INSERT INTO TABLE<$s->{table}> (code, ID, payload) VALUES ($_, " . explicit($s, $_) . ", 'first')" } 1 .. $n;

	for my $r (@{ $s->{references} })
	{
		my $ref = quoted($r->{column});

		push @statements, $r->{is_self} ? "UPDATE TABLE<$r->{table}> c SET $ref = p.ID, ref_code = p.code FROM TABLE<$s->{table}> p WHERE p.code = c.code / 2 AND c.code % 3 > 0"
		  : "INSERT INTO TABLE<$r->{table}> (code, $ref, ref_code, payload) SELECT n, ID, k.code, 'first' FROM generate_series(1, " . ($r->{key} eq 'PRIMARY KEY (REF)' ? $n / 2 : 40) . ") n JOIN TABLE<$s->{table}> k ON k.code = 1 + n % $n";
	}
	return map { sql($s, $_) } @statements;
}

# What the program does, in four phases: while the script runs, before the swap, after it, and after
# the end.  "sql" is what it runs, "after" what the third database gets of it.  Each row that it
# writes has a code of its own, so that it writes the same rows in the twin.
sub draw_statements
{
	my ($s) = @_;
	my $n = 0;

	for my $phase (0 .. 3)
	{
		my @list;

		for (1 .. (40, 12, 8, 5)[$phase])
		{
			my $statement = draw_statement($s, $phase, 1000 + ++$n);
			$statement->{n} = $n;
			my $explicit = explicit($s, 1000 + $n);
			$statement->{twin} = $statement->{sql} =~ s/FRESH/$explicit/gr;
			$statement->{sql} = $phase > 1 ? $statement->{sql} =~ s/FRESH/DEFAULT/gr : $statement->{twin};
			push @list, $statement;
		}
		push @list, map { { n => ++$n, sql => $_, twin => $_, after => join '; ', with_old($s, $_) } } draw_change($s) if $phase == 1 && chance(0.6);
		$s->{statements}[$phase] = \@list;
	}
}

sub draw_statement
{
	my ($s, $phase, $code) = @_;
	my $key = "TABLE<$s->{table}>";
	my $other = 1 + int rand 30;
	my $is_swapped = $phase > 1;
	my $r = pick(@{ $s->{references} });
	my ($table, $ref) = $r ? ("TABLE<$r->{table}>", quoted($r->{column})) : ();
	my $fresh = $s->{default} ? 'DEFAULT' : 'FRESH';
	my $can_update = all { $_->{update} =~ /CASCADE|NULL/ } @{ $s->{references} };
	my $blocking = join '', map { " AND NOT EXISTS (SELECT FROM TABLE<$_->{table}> c WHERE c.ref_code = k.code)" } grep { $_->{delete} !~ /CASCADE|NULL/ } @{ $s->{references} };
	my $insert = "INSERT INTO $key (code, ID, payload) VALUES ($code, $fresh, 'new')";
	my $child = $r && !$r->{is_self} ? "INSERT INTO $table (code, $ref, ref_code, payload) SELECT $code, ID, k.code, 'new' FROM $key k WHERE code = $other" : undef;
	my $move = $r && "UPDATE $table c SET $ref = k.ID, ref_code = k.code FROM $key k WHERE k.code = $other AND c.code = " . (1 + int rand 40);
	my @choices = ($insert, "UPDATE $key SET payload = 'changed' WHERE code = $other", "DELETE FROM $key k WHERE code = $other$blocking");

	if ($can_update)
	{
		my $forget = join '', map { "; UPDATE TABLE<$_->{table}> SET ref_code = NULL WHERE ref_code = $other" } grep { $_->{update} =~ /NULL/ } @{ $s->{references} };

		push @choices, "UPDATE $key SET ID = $fresh WHERE code = $other$forget";
	}
	push @choices, "UPDATE $table SET payload = 'changed' WHERE code = $other", $move, $move, "DELETE FROM $table WHERE code = $other AND ref_code IS NULL" if $r;
	push @choices, "UPDATE $table SET $ref = NULL, ref_code = NULL WHERE code = $other" if $r && !$r->{is_not_null};
	if ($child)
	{
		push @choices, $child, $child, "UPDATE $table SET payload = 'changed' WHERE code > 1000", "DELETE FROM $table WHERE code = $other";
		push @choices, "$child; UPDATE $key SET ID = $fresh WHERE code = $other" if $can_update && all { $_->{update} =~ /CASCADE/ } @{ $s->{references} };
		push @choices, "$child; DELETE FROM $key k WHERE code = $other" if !$blocking;
		push @choices, "SET CONSTRAINTS ALL DEFERRED; INSERT INTO $table (code, $ref, ref_code, payload) VALUES ($code, " . explicit($s, $code) . ", $code, 'early');"
		  . " INSERT INTO $key (code, ID, payload) VALUES ($code, " . explicit($s, $code) . ", 'late')" if $r->{timing} && !$is_swapped && $s->{default} ne 'ALWAYS';
	}
	if ($phase < 2 && chance($phase ? 0.3 : 0.03))
	{
		my $which = $s->{role} eq 'postgres' ? 'ALL' : 'USER';
		my $at = $child ? $table : $key;
		my @changes = map { "ALTER TABLE $at $_ TRIGGER $which" } 'DISABLE', 'ENABLE';

		return { sql => join('; ', $changes[0], pick($child ? ($child, $child, $move) : ($insert)), $changes[1]), after => join('; ', @changes), is_unsafe => 1 };
	}
	return { sql => pick(@choices) };
}

# A change of definitions before the swap.
sub draw_change
{
	my ($s) = @_;
	my $key = "TABLE<$s->{table}>";
	my $r = pick(@{ $s->{references} });
	my ($table, $ref) = $r ? ("TABLE<$r->{table}>", quoted($r->{column})) : ();

	return pick("CREATE INDEX added ON $key (code, ID)", "ALTER TABLE $key ADD CONSTRAINT added CHECK (ID IS NOT NULL)", "COMMENT ON COLUMN $key.ID IS 'changed'",
		$r ? ("ALTER TABLE $table DROP CONSTRAINT " . quoted("$r->{table}_fk"), "ALTER TABLE $table ALTER CONSTRAINT " . quoted("$r->{table}_fk") . ' DEFERRABLE INITIALLY DEFERRED',
			"ALTER TABLE $table VALIDATE CONSTRAINT " . quoted("$r->{table}_fk"), "CREATE INDEX added ON $table ($ref)",
			$r->{is_not_null} ? ($r->{key} =~ /PRIMARY/ ? () : "ALTER TABLE $table ALTER $ref DROP NOT NULL") : "ALTER TABLE $table ALTER $ref SET NOT NULL") : ());
}

# The run.

my $s;
my %failed;    # for a database, the statements that have failed, and their errors
sub database { return "$_[0]_$s->{seed}"; }
sub connection { return ('-d', $server->connstr(database($_[0])) . " user=$s->{role} application_name=$_[1]"); }
sub value { return $server->safe_psql(database($_[0]), $_[1]); }

sub create_database
{
	my ($name) = @_;
	my $file = "$scratch/$name.sql";
	my $output = '';

	$server->safe_psql('postgres', 'CREATE DATABASE ' . database($name) . ' TEMPLATE base OWNER shop_owner');
	write_file($file, join(";\n", definitions($s, $name eq 'after'), $name eq 'after' ? () : first_rows($s)) . ";\n");
	IPC::Run::run([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', connection($name, 'setup'), '-f', $file ], '<', '/dev/null', '>&', \$output)
	  or die "schema $s->{seed}, $name: $output";
}

# The program: one session runs statements, each in a transaction.  After a crash it runs those that
# were not applied.
sub start_program
{
	my ($name, $kind, @statements) = @_;
	my $applied = value($name, sql($s, 'SELECT coalesce(max(n), 0) FROM SPACE.applied'));
	my $text = sql($s, "SET search_path = SPACE, public;\n");

	for (grep { $_->{n} > $applied && !$failed{$name}{ $_->{n} } } @statements)
	{
		$text .= sql($s, $_->{$kind} =~ s/; / \\; /gr) . " \\; INSERT INTO applied VALUES ($_->{n});\n"
		  . "\\if :ERROR\n\\echo failed $_->{n} :SQLSTATE :LAST_ERROR_MESSAGE\n\\endif\n";
		$text .= "DO 'BEGIN PERFORM pg_sleep(0.01); END';\n" if $kind eq 'sql' && @statements > 30;
	}
	write_file($file{'writer.sql'}, $text);
	return IPC::Run::start([ 'psql', '-Xq', connection($name, 'program'), '-f', $file{'writer.sql'} ], '<', '/dev/null', '>', $file{'writer.out'}, '2>', '/dev/null');
}

# Whether it has come to its end.
sub end_program
{
	my ($name, $run) = @_;
	my $is_complete = $run->finish;

	my $output = slurp_file($file{'writer.out'});

	$failed{$name}{$1} = "$2 $3" while $output =~ /^failed (\d+) (\w+) (.*)$/mg;
	return $is_complete;
}

sub run_program
{
	my ($name, $kind, @statements) = @_;

	end_program($name, start_program($name, $kind, @statements)) or die "the program has failed in $name";
}

# Run the script, or a statement.  A fault ends it when it has printed a line.
sub run_script
{
	my ($fault, @what) = @_;

	@what = ('-v', 'table=' . name($s, $s->{table}), '-v', "column=$s->{column}", ($s->{is_published} && $s->{is_allowed} ? ('-v', 'published=on') : ()),
		($s->{is_materialized} ? ('-v', 'materialized=on') : ()), '-f', $script) unless @what;
	unlink $file{'script.out'};
	my $run = IPC::Run::start([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', connection('converted', 'script'), @what ], '<', '/dev/null', '>&', $file{'script.out'});
	if ($fault && wait_until(sub { !$run->pumpable || slurp_file($file{'script.out'}) =~ $fault->{line} }) && $run->pumpable)
	{
		my $backend = q{FROM pg_stat_activity WHERE application_name = 'script'};

		$fault->{is_done} = 1;
		if ($fault->{kind} eq 'crash') { crash($server) }
		elsif ($fault->{kind} eq 'kill') { $run->signal('KILL') }
		else { $server->safe_psql('postgres', "SELECT pg_$fault->{kind}_backend(pid) $backend") }
		$run->finish;
		$server->start if $fault->{kind} eq 'crash';
		$server->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT $backend)");
		return 0;
	}
	return $run->finish;
}

# The definitions of a database.  Columns and objects can have another order.  From PostgreSQL 18 on,
# NOT NULL constraints have names, which contain the names of the new columns.
sub dump_of
{
	my ($name) = @_;
	my ($output) = run_command([ 'pg_dump', '--schema-only', '-d', $server->connstr(database($name)) ]);

	$output =~ s/ CONSTRAINT ("(""|[^"])*"|\S+) NOT NULL/ NOT NULL/g;
	# Comparisons of two columns of type varchar contain casts to text, which the swap keeps.
	$output =~ s/\(([^()]*)\)::text (=|<>) \(([^()]*)\)::text/$1 $2 $3/g if $s->{type} =~ /varchar/;
	return join "\n\n", sort map { join "\n", sort map { s/,$//r } split /\n/ } grep { !/^(\\(un)?restrict|-- Dumped)/m } split /\n\n+/, $output;
}

# All rows, without keys: each has the code of the row to which it refers.  Triggers of statements are
# called once more for an action of a foreign key, with no rows.
sub rows_of
{
	my ($name) = @_;

	return value($name, join '; ', map { sql($s, $_) } q{SELECT name, operation, level, CASE level WHEN 'ROW' THEN count(*) END FROM SPACE.log GROUP BY 1, 2, 3 ORDER BY 1, 2, 3}, map {
		my $table = $_;
		my ($r) = grep { $_->{table} eq $table } @{ $s->{references} };
		my $ref = $r ? 't.' . quoted($r->{column}) : 'NULL';
		"SELECT t.code, t.ref_code, t.payload, $ref IS NULL, " . ($r ? "p.code FROM TABLE<$table> t LEFT JOIN TABLE<$s->{table}> p ON p.ID = $ref" : "NULL FROM TABLE<$table> t") . ' ORDER BY t.code' } tables($s));
}

# The keys of all rows, which the swap does not change; keys of type uuid are in other columns then.
sub keys_of
{
	my ($suffix) = @_;
	my @columns = ([ $s->{table}, $s->{column} ], map { [ $_->{table}, $_->{column} ] } @{ $s->{references} });

	return value('converted', join '; ', map { sql($s, "SELECT code, " . quoted($_->[1] . $suffix) . " FROM TABLE<$_->[0]> ORDER BY code") } @columns);
}

# Move the converted database by a dump: it gets other OIDs.
sub move
{
	my $file = "$scratch/moved.sql";

	unlink $file;
	run_command([ 'pg_dump', '-f', $file, '-d', $server->connstr(database('converted')) ]);
	$server->safe_psql('postgres', 'DROP DATABASE ' . database('converted'));
	$server->safe_psql('postgres', 'CREATE DATABASE ' . database('converted') . ' TEMPLATE template0 OWNER shop_owner');
	my ($output, $errors) = run_command([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr(database('converted')), '-f', $file ]);
	return $errors eq '' ? () : "the dump cannot be restored: $errors";
}

# Move it before the swap: only undo is possible then, and the conversion begins again.
sub move_and_begin
{
	my $moved = qr/the conversion was begun in another database or server/;
	my @errors = move();

	return @errors if @errors;
	for my $what ([], [ '-c', 'CALL convert_key.swap()' ])
	{
		return "it continues in the restored database: @$what" if run_script(undef, @$what) || slurp_file($file{'script.out'}) !~ $moved;
	}
	run_script(undef, '-c', 'CALL convert_key.undo()', '-c', 'DROP SCHEMA convert_key CASCADE') or return 'undo has failed: ' . slurp_file($file{'script.out'});
	return 'undo leaves something' if dump_of('converted') =~ /convert_key|_new\b/;
	run_script() or return 'the script has failed in the restored database: ' . slurp_file($file{'script.out'});
	return ();
}

my $is_refused = qr/ERROR:  cannot convert the key/;

# Rows that are written while triggers are disabled can be refused.  ALTER TABLE, which disables them,
# can be in a deadlock with CREATE INDEX CONCURRENTLY.
my $unsafe_failure = qr/violates check constraint "convert_key_|null value in column ".*_new" of relation|deadlock detected/;

# Convert the schema; returns what went wrong.
sub convert
{
	my @unsafe = grep { $_->{is_unsafe} } @{ $s->{statements}[0] };
	my $program = start_program('converted', 'sql', @{ $s->{statements}[0] });
	my $fault = chance(0.4) && { kind => pick('cancel', 'terminate', 'kill', chance(0.3) ? 'crash' : ()), line => pick(qr/Adding columns/, qr/Filling/, qr/INFO/, qr/Creating/, qr/Adding constraints/, qr/Validating/) };
	my $is_ready = 0;

	for (1 .. 5)
	{
		last if $is_ready = run_script($fault && !$fault->{is_done} && $fault);
		my $output = slurp_file($file{'script.out'});
		if ($output =~ $is_refused)
		{
			$s->{is_refused} = 1;
			return "a view is refused: $output" if $output =~ /views cannot be created/ && !any { $_->[0] =~ /half_of\(ID\)/ } @{ $s->{refusals} };
			last;
		}
		return "the script has failed: $output" unless $fault && $fault->{is_done} || @unsafe && $output =~ $unsafe_failure;
		if ($fault && $fault->{is_done} && $fault->{kind} eq 'crash')
		{
			end_program('converted', $program);
			$program = start_program('converted', 'sql', @{ $s->{statements}[0] });
		}
	}
	end_program('converted', $program) or run_program('converted', 'sql', @{ $s->{statements}[0] });
	if ($s->{is_refused})
	{
		return 'it is refused after a fault' if $fault && $fault->{is_done};
		run_program('twin', 'twin', @{ $s->{statements}[0] });
		return dump_of('converted') eq dump_of('twin') ? () : 'the definitions have changed, although the schema is refused';
	}
	return 'the script does not come to its end' unless $is_ready;
	my @moved = $s->{moves}[0] ? move_and_begin() : ();
	return @moved if @moved;
	run_program('converted', 'sql', @{ $s->{statements}[1] });
	my $keys = keys_of('');
	if (!run_script(undef, '-c', 'CALL convert_key.swap()'))
	{
		my $output = slurp_file($file{'script.out'});
		return "the swap has failed: $output" unless $output =~ /Run convert_key.sql again/;
		run_script() or return 'the script has failed again: ' . slurp_file($file{'script.out'});
		run_script(undef, '-c', 'CALL convert_key.swap()') or return 'the swap has failed again: ' . slurp_file($file{'script.out'});
	}
	my @differences;
	push @differences, 'keys have changed' if $keys ne keys_of($s->{type} eq 'uuid' ? '_old' : '');
	push @differences, 'a materialized view is not filled' if $s->{has_materialized} && value('converted', sql($s, q{SELECT relispopulated FROM pg_class WHERE oid = 'SPACE.kept'::regclass})) ne 't';
	run_program('converted', 'sql', @{ $s->{statements}[2] });
	push @differences, move() if $s->{moves}[1];
	run_script(undef, '-c', 'CALL convert_key.finish()', '-c', 'DROP SCHEMA convert_key CASCADE') or push @differences, 'finish has failed: ' . slurp_file($file{'script.out'});
	run_program('converted', 'sql', @{ $s->{statements}[3] });
	return (@differences, compare());
}

# The statements that change definitions, of some phases.
sub changes { return grep { $_->{after} && !$failed{converted}{ $_->{n} } } map { @{ $s->{statements}[$_] } } @_; }

sub compare
{
	my @differences;
	my @statements = map { @$_ } @{ $s->{statements} };
	my %skipped = map { $_->{n} => 1 } grep { $_->{is_unsafe} && ($failed{converted}{ $_->{n} } // '') =~ $unsafe_failure } @statements;

	run_program('twin', 'twin', grep { !$skipped{ $_->{n} } } @statements);
	create_database('after');
	run_program('after', 'after', changes(0 .. 3));
	for my $n (sort { $a <=> $b } map { $_->{n} } grep { !$skipped{ $_->{n} } } @statements)
	{
		my ($here, $there) = map { $failed{$_}{$n} // '' } 'converted', 'twin';

		push @differences, "statement $n: $here; in the twin: $there; " . (grep { $_->{n} == $n } @statements)[0]{sql} if substr($here, 0, 5) ne substr($there, 0, 5);
	}
	for my $what ([ 'rows', \&rows_of, 'twin' ], [ 'definitions', \&dump_of, 'after' ])
	{
		my ($word, $function, $other) = @$what;
		my @texts = map { $function->($_) } 'converted', $other;

		next if $texts[0] eq $texts[1];
		write_file("$scratch/$_.text", $texts[ $_ eq 'converted' ? 0 : 1 ]) for 'converted', $other;
		push @differences, "$word differ:\n" . join '', (run_command([ 'diff', "$scratch/converted.text", "$scratch/$other.text" ]))[0];
	}
	return @differences;
}

$server->safe_psql('postgres', $_) for 'CREATE ROLE shop_owner LOGIN', 'CREATE ROLE reader', 'GRANT SET ON PARAMETER session_replication_role TO shop_owner', 'CREATE DATABASE base';
$server->safe_psql('base', 'CREATE EXTENSION snowflake; GRANT CREATE ON SCHEMA public TO shop_owner');

# Triggers of foreign keys are called in the order of their names, which contain OIDs: between these
# two numbers, the numbers of a new foreign key come first.
sub set_next_oid
{
	$server->stop;
	system_or_bail('pg_resetwal', '-o', $_[0], $server->data_dir);
	$server->start;
}

my ($converted, $refused) = (0, 0);
my @seeds = map { $first_seed + $_ } 0 .. $count - 1;
while (my @batch = splice @seeds, 0, 20)
{
	last if $end && time >= $end;
	my @schemas = map { draw($_) } @batch;

	set_next_oid(20000);
	for (@schemas) { $s = $_; create_database($_) for 'converted', 'twin'; }
	set_next_oid(100000);
	for (@schemas)
	{
		last if $end && time >= $end;
		$s = $_;
		%failed = ();
		srand $s->{seed};
		my @differences = convert();
		ok(!@differences, "schema $s->{seed}, " . ($s->{is_refused} ? 'refused' : 'converted')) or diag(join "\n", @differences);
		$s->{is_refused} ? $refused++ : $converted++;
		$server->safe_psql('postgres', join '; ', map { 'DROP DATABASE IF EXISTS ' . database($_) } 'converted', 'twin', 'after');
	}
}
diag("drawn: $converted schemas that were converted, $refused that were refused, from seed $first_seed");

done_testing();
