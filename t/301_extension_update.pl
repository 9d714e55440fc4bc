# ALTER EXTENSION UPDATE from every version that was released: the result is what CREATE EXTENSION
# creates, tables that depend on the extension can be used before and after, and no role gets
# privileges that were revoked.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $server = snowflake_server('main', 'snowflake.machine_id = 1');

# All objects of a database, its extensions' objects with definitions, privileges and comments: for
# pg_upgrade, pg_dump writes them one by one. Without lines and OIDs that differ between any two databases.
sub dump_of
{
	my ($database) = @_;
	my ($dump, $errors) = run_command([
			'pg_dump', '--binary-upgrade', '--schema-only', '--no-sync', '-d', $server->connstr($database) ]);

	die $errors if $errors;
	$dump =~ s/'\{[\d,]+\}'|(?<=oid = )'\d+'/OID/g;
	return join "\n", grep { !/^(?:$|--|\\)|binary_upgrade_set_next|relfrozenxid/ } split /\n/, $dump;
}

for my $extension ('snowflake', 'snowflake_registry')
{
	$server->safe_psql('postgres', "CREATE DATABASE fresh_$extension");
	$server->safe_psql("fresh_$extension", "CREATE EXTENSION $extension");
	my $fresh = dump_of("fresh_$extension");
	like($fresh, qr/^ALTER EXTENSION $extension ADD FUNCTION .*^REVOKE ALL ON FUNCTION /ms, "$extension: all objects are dumped");

	my $others = $server->safe_psql('postgres', "
		SELECT version FROM pg_available_extension_versions
		WHERE name = '$extension' AND version <> (SELECT default_version FROM pg_available_extensions WHERE name = '$extension')");
	for my $version (split /\n/, $others)
	{
		my $database = "${extension}_$version" =~ tr/./_/r;

		$server->safe_psql('postgres', "CREATE DATABASE $database");
		$server->safe_psql($database, "CREATE EXTENSION $extension VERSION '$version'");
		isnt(dump_of($database), $fresh, "$extension $version is different");
		$server->safe_psql($database, "ALTER EXTENSION $extension UPDATE");
		is(dump_of($database), $fresh, "$extension $version updated is what CREATE EXTENSION creates");
	}
}

# With the current library, the SQL of a previous version works before its update and after it.
$server->safe_psql('postgres', 'CREATE DATABASE used');
$server->safe_psql('used', q{
	CREATE EXTENSION snowflake VERSION '1.0';
	CREATE TABLE orders (
		id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
		created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'twitter')) STORED,
		event sno UNIQUE DEFAULT sno_nextval());
	CREATE VIEW late AS SELECT * FROM orders WHERE snowflake_timestamp(id) > now() - interval '1 day';
	INSERT INTO orders DEFAULT VALUES;
});
my ($before) = $server->safe_psql('used', 'SELECT count(*) FROM late');
$server->safe_psql('used', 'ALTER EXTENSION snowflake UPDATE; INSERT INTO orders DEFAULT VALUES');
is($before . ' ' . $server->safe_psql('used', 'SELECT count(*), count(DISTINCT event) FROM late'), '1 2|2', 'tables and views still work');

# snowflake_id(), which 1.1 adds, has the owner and the privileges of snowflake_nextval(), also in a database that is
# restored from a dump: there CREATE EXTENSION creates both, and the dump has the changes of privileges.
my $privileges = q{
	SELECT proname, pg_get_userbyid(proowner), proacl FROM pg_proc
	WHERE oid IN ('snowflake_nextval()'::regprocedure, 'snowflake_id()'::regprocedure) ORDER BY proname DESC};
my $of_whom = q{
	SELECT rolname, has_function_privilege(oid, 'snowflake_id()', 'EXECUTE'), has_function_privilege(oid, 'snowflake_id()', 'EXECUTE WITH GRANT OPTION')
	FROM pg_roles WHERE rolname IN ('app', 'clerk', 'other') ORDER BY rolname};

$server->safe_psql('postgres', 'CREATE ROLE "the Owner"; CREATE ROLE app; CREATE ROLE clerk; CREATE ROLE other; CREATE DATABASE guarded; CREATE DATABASE restored');
$server->safe_psql('guarded', q{
	CREATE EXTENSION snowflake VERSION '1.0';
	ALTER FUNCTION snowflake_nextval() OWNER TO "the Owner";
	REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app WITH GRANT OPTION;
	SET ROLE app;
	GRANT EXECUTE ON FUNCTION snowflake_nextval() TO clerk;
	RESET ROLE;
	ALTER EXTENSION snowflake UPDATE;
});
my $acl = '{"\\"the Owner\\"=X/\\"the Owner\\"","app=X*/\\"the Owner\\"",clerk=X/app}';
is($server->safe_psql('guarded', $privileges), "snowflake_nextval|the Owner|$acl\nsnowflake_id|the Owner|$acl",
	'snowflake_id() gets the owner and the privileges of snowflake_nextval()');
my ($status, undef, $stderr) = $server->psql('guarded', 'SET ROLE other; SELECT snowflake_id()');
like($stderr, qr/permission denied for function snowflake_id/, 'a role that cannot call the one cannot call the other');
($status, undef, $stderr) = $server->psql('postgres', 'DROP ROLE clerk');
like($stderr, qr/cannot be dropped.*^DETAIL:  2 objects in database guarded$/ms, 'and a role that can is not dropped');

my $dump = "$scratch/guarded.sql";
command_ok([ 'pg_dump', '--no-sync', '-f', $dump, $server->connstr('guarded') ], 'pg_dump');
command_ok([ 'psql', '-XqAt', '-o', "$scratch/restored", '-v', 'ON_ERROR_STOP=1', '-f', $dump, $server->connstr('restored') ], 'restored');
is($server->safe_psql('restored', $of_whom), "app|t|t\nclerk|t|f\nother|f|f", 'the privileges are restored');
is($server->safe_psql('restored', "$of_whom"), $server->safe_psql('restored', $of_whom =~ s/snowflake_id/snowflake_nextval/gr), 'as those of snowflake_nextval()');
$server->safe_psql($_, 'DROP OWNED BY clerk, app CASCADE') for 'guarded', 'restored';
is($server->safe_psql('postgres', 'DROP ROLE clerk, app'), '', 'then the roles can be dropped');

# If nothing was changed, and with default privileges for functions.
$server->safe_psql('postgres', 'CREATE DATABASE plain; CREATE DATABASE defaults');
$server->safe_psql('plain', 'CREATE EXTENSION snowflake');
$server->safe_psql('defaults', 'ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO other; CREATE EXTENSION snowflake');
my $owner = $server->safe_psql('postgres', 'SELECT current_user');
is($server->safe_psql('plain', $privileges), "snowflake_nextval|$owner|\nsnowflake_id|$owner|", 'without changes there is no ACL');
$acl = "{$owner=X/$owner,other=X/$owner}";
is($server->safe_psql('defaults', $privileges), "snowflake_nextval|$owner|$acl\nsnowflake_id|$owner|$acl", 'default privileges are those of both');
is($server->safe_psql('defaults', q{SELECT count(*), count(DISTINCT refobjid) FROM pg_shdepend WHERE objid = 'snowflake_id()'::regprocedure AND deptype = 'a'}),
	'1|1', 'and each role in them is noted once');

# The library reports its release, and the SQL its version.
like($server->safe_psql('used', 'SELECT snowflake_version(), extversion FROM pg_extension WHERE extname = \'snowflake\''),
	qr/^(\d+\.\d+)\.\d+\|\1$/, 'the release of the library, and the version of the SQL');

done_testing();
