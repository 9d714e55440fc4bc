# snowflake_setup() of portable/snowflake.sql: it neither takes nor calls objects of other roles, keeps the layout of the
# database, repairs a database that was restored without data, and is called by many sessions at once.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $server = snowflake_server('main', { preload => '', extension => 0 }, 'timezone = UTC', 'max_connections = 50');
$server->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN; CREATE DATABASE shop OWNER owner');
$server->safe_psql('shop', 'GRANT CREATE ON SCHEMA public TO app');

sub refuses
{
	my ($pattern, %arguments) = @_;

	ok(!edition($server, 'shop', %arguments), "$pattern: refused");
	like(slurp_file("$scratch/refusal"), $pattern, 'with this error');
}

# The statements of docs/portable.md on a platform whose default privileges grant everything to the roles of its API.
{
	my ($statements) = slurp_file("$FindBin::RealBin/../docs/portable.md") =~ /```sql\n(CREATE SCHEMA flakes;.*?)```/s or die 'docs/portable.md has no such statements';

	$server->safe_psql('postgres', 'CREATE ROLE anon; CREATE ROLE authenticated; CREATE ROLE service_role; GRANT authenticated TO owner; CREATE DATABASE platform OWNER owner');
	local $ENV{PGUSER} = 'owner';
	$server->safe_psql('platform', 'CREATE SCHEMA auth; GRANT USAGE ON SCHEMA auth TO authenticated; CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql RETURN $$a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11$$::uuid');
	$server->safe_psql('platform', "ALTER DEFAULT PRIVILEGES GRANT ALL ON $_ TO anon, authenticated, service_role") for 'TABLES', 'SEQUENCES', 'FUNCTIONS', 'TYPES', 'SCHEMAS';
	$server->safe_psql('platform', $statements =~ s/-- then run (portable\S+)/\n\\i $FindBin::RealBin\/..\/$1/r);
	is($server->safe_psql('platform', "SET ROLE authenticated; INSERT INTO orders (item) VALUES ('a lamp') RETURNING flakes.snowflake_machine_id(id)"), '7', 'a role of the API inserts rows');
	for my $statement ("SELECT setval('flakes.snowflake_base', 1)", "SELECT nextval('flakes.snowflake_count')", 'SELECT flakes.snowflake_move(1)', 'BEGIN; LOCK flakes.snowflake_server',
		'TABLE flakes.snowflake_server', 'SELECT flakes.snowflake_setup(machine_id => 8)')
	{
		fails_with($server, "\\connect platform\nSET ROLE authenticated; $statement", '42501');
	}
}

# What another role has made, of the name of one of the objects: also a function that would match a call better, and one that
# has just the parameters, which CREATE OR REPLACE by a superuser would leave to its owner.
for my $user ('owner', scalar getpwuid($<))
{
	local $ENV{PGUSER} = $user;

	for my $planted ('FUNCTION snowflake_checked(bigint, bigint, text) RETURNS bigint LANGUAGE sql RETURN 0', 'FUNCTION snowflake_nextval() RETURNS bigint LANGUAGE sql RETURN 0',
		'FUNCTION snowflake_server_layout() RETURNS text LANGUAGE sql RETURN $$twitter$$', 'TABLE snowflake_server ()', 'SEQUENCE snowflake_base', 'TYPE snowflake_layout AS (epoch bigint)')
	{
		my ($kind, $name) = $planted =~ /^(\w+ )(\w+(?:\([^)]*\))?)/;

		$server->safe_psql('shop', "SET ROLE app; CREATE $planted", extra_params => [ '-U', scalar getpwuid($<) ]);
		refuses(qr/"snowflake_\w+" in schema public belongs to role app/, machine_id => 7);
		$server->safe_psql('shop', "DROP $kind $name", extra_params => [ '-U', scalar getpwuid($<) ]);
	}
}
$ENV{PGUSER} = 'owner';

# None of them is called before that.
$server->safe_psql('shop', 'SET ROLE app; CREATE SEQUENCE snowflake_count; CREATE FUNCTION snowflake_server_machine_id() RETURNS integer LANGUAGE sql RETURN 1 / 0', extra_params => [ '-U', scalar getpwuid($<) ]);
refuses(qr/cannot change the layout of the IDs of this database/, machine_id => 7);
$server->safe_psql('shop', 'DROP SEQUENCE snowflake_count; DROP FUNCTION snowflake_server_machine_id()', extra_params => [ '-U', scalar getpwuid($<) ]);

# A function of another name that a function here would call, if search_path were the caller's.
$server->safe_psql('shop', 'SET ROLE app; CREATE FUNCTION to_timestamp(bigint) RETURNS timestamptz LANGUAGE sql RETURN $$infinity$$::timestamptz; CREATE FUNCTION format(text, text, numeric) RETURNS text LANGUAGE sql RETURN $$planted$$',
	extra_params => [ '-U', scalar getpwuid($<) ]);
ok(edition($server, 'shop', layout => 'discord'), 'functions that read IDs');
is($server->safe_psql('shop', q{SELECT count(*) FROM pg_depend WHERE refobjid = 'to_timestamp(bigint)'::regprocedure}), '0', 'they do not use what another role has made');
fails_with($server, "\\connect shop\nSELECT snowflake_timestamp(-1)", '22023', qr/-1 is not a Snowflake ID/);

# The layout of the database is used, unless one is given.
my $layout = 'SELECT snowflake_timestamp(0)';
ok(edition($server, 'shop'), 'again');
is($server->safe_psql('shop', $layout), '2015-01-01 00:00:00+00', 'the layout is kept');
ok(edition($server, 'shop', layout => 'sonyflake'), 'another layout');
is($server->safe_psql('shop', $layout), '2014-09-01 00:00:00+00', 'is that of functions that only read IDs');
ok(edition($server, 'shop', machine_id => 7), 'a machine ID');
is($server->safe_psql('shop', 'SELECT snowflake_machine_id(snowflake_id()), snowflake_server_layout()'), '7|epoch=2014-09-01 tick=10ms timestamp=39 sequence=8 machine=16', 'the layout is kept, and recorded');
refuses(qr/cannot change the layout of the IDs of this database\nDETAIL:  The layout is "epoch=2014-09-01 /, layout => 'discord');
refuses(qr/cannot change the layout of the IDs of this database/, layout => 'discord', machine_id => 7);
ok(edition($server, 'shop', layout => 'epoch=2014-09-01T00:00:00Z tick=0.01s timestamp=39 sequence=8 machine=16'), 'the same layout in other words');
is($server->safe_psql('shop', $layout), '2014-09-01 00:00:00+00', 'functions that read IDs are as before');

# A second generator.
$server->safe_psql('shop', 'CREATE SCHEMA other');
refuses(qr/this database issues Snowflake IDs in schema public\nHINT:  Set the argument "schema"/, schema => 'other', machine_id => 8);
ok(edition($server, 'shop', schema => 'other', layout => 'discord'), 'functions that read IDs can be in two schemas');
refuses(qr/schema "none" does not exist/, schema => 'none');

# Any name of a schema, in each function.
$server->safe_psql('postgres', 'CREATE DATABASE named OWNER owner', extra_params => [ '-U', scalar getpwuid($<) ]);
$server->safe_psql('named', q{CREATE SCHEMA "it's \\ ""the"" Shop"});
ok(edition($server, 'named', machine_id => 7, schema => q{it's \\ "the" Shop}, floor => '2020-01-01'), 'a schema with a name that must be quoted') or diag(slurp_file("$scratch/refusal"));
is($server->safe_psql('named', q{SET search_path = "it's \\ ""the"" Shop"; CREATE TABLE items (id bigint DEFAULT snowflake_id(), at timestamptz DEFAULT snowflake_timestamp(5, 'discord'));
	INSERT INTO items DEFAULT VALUES; SELECT (snowflake_decode(id)).machine_id, (snowflake_decode(id, 'twitter')).machine_id, count(*) OVER () FROM items, snowflake_nextvals(2);
	SELECT snowflake_horizon()}) =~ s/\d{15,}$/a horizon/r, "7|7|2\n7|7|2\na horizon", 'and the functions there');

# A dump without data: IDs are refused until the database has a machine ID, and the layout is kept.
$server->safe_psql('postgres', 'CREATE DATABASE restored OWNER owner', extra_params => [ '-U', scalar getpwuid($<) ]);
$server->safe_psql('shop', 'DROP SCHEMA other CASCADE; CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_id(), at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, $$sonyflake$$)) STORED)');
$server->command_ok([ 'pg_dump', '--schema-only', '-f', "$scratch/schema.sql", $server->connstr('shop') ], 'a dump without data');
$server->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-U', scalar getpwuid($<), '-f', "$scratch/schema.sql", $server->connstr('restored') ], 'is restored');
fails_with($server, "\\connect restored\nINSERT INTO items DEFAULT VALUES", '55000', qr/the sequences of Snowflake IDs have no values.*HINT:  Run snowflake_setup\(\) with a machine ID/s);
ok(edition($server, 'restored', machine_id => 8), 'a setup');
is($server->safe_psql('restored', q{INSERT INTO items DEFAULT VALUES; SELECT snowflake_machine_id(id), abs(extract(epoch FROM at - clock_timestamp())) < 600, snowflake_timestamp(0) FROM items}),
	'8|t|2014-09-01 00:00:00+00', 'repairs it');

# As an extension, which an ordinary role creates; and by pg_tle, for which a function stands that runs the text.
$server->safe_psql('postgres', 'CREATE DATABASE extension OWNER owner; CREATE DATABASE tle OWNER owner', extra_params => [ '-U', scalar getpwuid($<) ]);
is($server->safe_psql('extension', q{CREATE EXTENSION snowflake_sql; SELECT snowflake_setup(machine_id => 7) \g /dev/null
	CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_id()); INSERT INTO items DEFAULT VALUES RETURNING snowflake_machine_id(id)}), '7', 'the extension snowflake_sql');
my ($command) = slurp_file("$FindBin::RealBin/../docs/portable.md") =~ /```sh\n(\(echo.*?)```/s or die 'docs/portable.md has no such command';
system_or_bail('sh', '-c', "cd '$scratch' && ln -sfn '$FindBin::RealBin/../portable' portable && $command");
$server->safe_psql('tle', 'CREATE SCHEMA pgtle; CREATE FUNCTION pgtle.install_extension(name text, version text, description text, ext text, requires text[] DEFAULT NULL) RETURNS boolean
	LANGUAGE plpgsql AS $$ BEGIN EXECUTE ext; RETURN name = $q$snowflake_sql$q$; END $$');
is($server->safe_psql('tle', slurp_file("$scratch/snowflake_sql.tle.sql") . q{;SELECT snowflake_setup(machine_id => 7) \g /dev/null
	SELECT snowflake_machine_id(snowflake_id())}), "t\n7", 'a text for pg_tle');
$server->command_ok([ 'pg_dump', '-f', "$scratch/dump.sql", $server->connstr('extension') ], 'a dump');
$server->safe_psql('postgres', 'CREATE DATABASE copy OWNER owner', extra_params => [ '-U', scalar getpwuid($<) ]);
$server->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$scratch/dump.sql", $server->connstr('copy') ], 'is restored');
is($server->safe_psql('copy', 'SELECT snowflake_setup(machine_id => 8) \g /dev/null' . "\n" . 'SELECT max(id) < snowflake_id() FROM items; SELECT snowflake_machine_id(snowflake_id())'), "t\n8", 'with all functions');

# Many at once: the first ones of a database, and later ones while IDs are issued.
my $script = "$scratch/setup.sql";
append_to_file($script, "SELECT snowflake_setup(machine_id => :client_id);\n");
$server->safe_psql('postgres', 'CREATE DATABASE fresh OWNER owner', extra_params => [ '-U', scalar getpwuid($<) ]);
$server->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$FindBin::RealBin/../portable/snowflake.sql", $server->connstr('fresh') ], 'the file alone');
$server->command_ok([ 'pgbench', '-n', '-c', '8', '-t', '1', '-f', $script, $server->connstr('fresh') ], 'first setups at once');
like($server->safe_psql('fresh', 'SELECT snowflake_machine_id(snowflake_id())'), qr/^[0-7]$/, 'one of them is the last one');
my $inserts = "$scratch/inserts.sql";
append_to_file($inserts, "INSERT INTO items DEFAULT VALUES;\n");
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-T', '600', '-f', $inserts, $server->connstr('restored') ], '>', '/dev/null', '2>', "$scratch/load");
$server->poll_query_until('restored', 'SELECT count(*) > 100 FROM items');
$server->command_ok([ 'pgbench', '-n', '-c', '8', '-t', scaled(10, 3), '-f', $script, $server->connstr('restored') ], 'setups at once');
$server->poll_query_until('restored', 'SELECT count(DISTINCT snowflake_machine_id(id)) > 1 FROM items');
$load->kill_kill;
unlike(slurp_file("$scratch/load"), qr/ERROR/, 'no INSERT fails');
$server->stop;

done_testing();
