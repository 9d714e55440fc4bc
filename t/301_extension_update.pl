# ALTER EXTENSION UPDATE from every version that was released: the result is what CREATE EXTENSION
# creates, and tables that depend on the extension can be used before and after.
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

# The library says of which release it is, and the SQL of which version.
like($server->safe_psql('used', 'SELECT snowflake_version(), extversion FROM pg_extension WHERE extname = \'snowflake\''),
	qr/^(\d+\.\d+)\.\d+\|\1$/, 'the release of the library, and the version of the SQL');

done_testing();
