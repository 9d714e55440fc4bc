# No default privilege applies to what the extensions and the edition in SQL create: each object has the
# privileges of one list, whatever defaults its owner has for each kind of object, global or of the schema, for PUBLIC, a
# role or a group.  Defaults that revoke a privilege from PUBLIC stay in effect.  Later grants stay, also when the edition
# is run again.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $server = snowflake_server('main', { extension => 0 }, 'snowflake.machine_id = 5');
$server->safe_psql('postgres', 'CREATE ROLE web; CREATE ROLE staff; CREATE ROLE boss SUPERUSER LOGIN; CREATE ROLE owner LOGIN; ALTER SYSTEM SET client_min_messages = warning');
$server->reload;

# The privileges of all objects of a schema that PostgreSQL checks, a line for each grantee but the owner.
my $listed = <<'SQL';
SELECT kind, object, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
	string_agg(privilege_type || CASE WHEN is_grantable THEN '*' ELSE '' END, ',' ORDER BY privilege_type)
FROM (SELECT 'routine', oid, oid::regprocedure::text, proowner, coalesce(proacl, acldefault('f', proowner)) FROM pg_proc WHERE pronamespace = 'SCHEMA'::regnamespace
	UNION ALL SELECT CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, oid, oid::regclass::text, relowner,
		coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner))
		FROM pg_class WHERE relnamespace = 'SCHEMA'::regnamespace AND relkind IN ('r', 'v', 'S')
	UNION ALL SELECT 'type', t.oid, t.oid::regtype::text, typowner, coalesce(typacl, acldefault('T', typowner)) FROM pg_type t LEFT JOIN pg_class c ON c.oid = typrelid
		WHERE typnamespace = 'SCHEMA'::regnamespace AND typcategory <> 'A' AND coalesce(relkind, 'c') = 'c'
	UNION ALL SELECT 'schema', oid, nspname, nspowner, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace WHERE nspname = 'SCHEMA')
	AS o (kind, oid, object, owner, acl), aclexplode(acl)
WHERE grantee <> owner GROUP BY kind, object, grantee ORDER BY 1, 2, 3
SQL

sub privileges
{
	my ($database, $schema) = @_;

	return $server->safe_psql($database, "SET search_path = $schema; " . $listed =~ s/SCHEMA/$schema/gr);
}

# All objects that have other privileges than PostgreSQL gives them.
my %administrative = map { $_ => 1 } qw(snowflake_accept_clock() snowflake_accept_layout() snowflake_accept_registry() snowflake_drop_state()
  snowflake_move_back(timestamp_with_time_zone) snowflake_promise_horizon(bigint) snowflake_set_floor(timestamp_with_time_zone)
  sno_move_back(timestamp_with_time_zone) sno_set_floor(timestamp_with_time_zone) pg_stat_snowflake_reset());
my %expected = (
	snowflake => [ qw(routine|pg_stat_snowflake()|pg_monitor|EXECUTE routine|sno_snapshot()|pg_monitor|EXECUTE
		table|pg_stat_snowflake_horizon|PUBLIC|SELECT table|pg_stat_snowflake|pg_monitor|SELECT table|snowflake_layouts|PUBLIC|SELECT) ],
	snowflake_registry => [ qw(routine|current_incarnation()|pg_monitor|EXECUTE routine|identity()|PUBLIC|EXECUTE schema|snowflake_registry|pg_monitor|USAGE
		table|machines|pg_monitor|SELECT table|status|pg_monitor|SELECT) ],
	portable => []);

# The privileges of the list, of those in a database without defaults.
sub expected
{
	my ($what, $found) = @_;

	for my $line (@{ $expected{$what} })
	{
		ok($found =~ /^\Q$line\E$/m, "$what: $line");
	}
	my @others = grep { my $line = $_; !grep { $_ eq $line } @{ $expected{$what} } } split /\n/, $found;
	my @wrong = grep { !/^(routine\|.*\|PUBLIC\|EXECUTE|type\|.*\|PUBLIC\|USAGE)$/ || $administrative{ (split /\|/)[1] =~ s/ /_/gr } } @others;
	@wrong = grep { !/^schema\|(?!snowflake_registry)/ } @wrong;
	is("@wrong", '', "$what: and no other privilege");
	@wrong = grep { /^routine/ } @others;
	is(scalar(grep { !/\|commit\(/ } @wrong), 0, 'the registry leaves PUBLIC no other function') if $what eq 'snowflake_registry';
	is(scalar(grep { /snowflake_move\(/ } @wrong), 0, 'the edition in SQL keeps snowflake_move() from PUBLIC') if $what eq 'portable';
}

# Create all of it in a database, with default privileges of the role that does so.
my $number = 0;
my $edition;    # the latest database with the edition in SQL
my $grants = join(';', map { my $kind = $_; map { "ALTER DEFAULT PRIVILEGES IN GRANT ALL ON $kind TO $_" } 'PUBLIC', 'web WITH GRANT OPTION', 'GROUP staff' } qw(TABLES SEQUENCES ROUTINES TYPES));
my $schemas = join(';', map { "ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO $_" } 'PUBLIC', 'web', 'staff');
my $revokes = join(';', map { "ALTER DEFAULT PRIVILEGES REVOKE ALL ON $_ FROM PUBLIC" } qw(ROUTINES TYPES));

sub created
{
	my ($user, $defaults) = @_;
	my $database = 'shop' . ++$number;

	local $ENV{PGUSER} = $user // getpwuid($<);

	$edition = "edition$number";

	$server->safe_psql('postgres', "CREATE DATABASE $_" . ($user ? " OWNER $user" : ''), extra_params => [ '-U', scalar getpwuid($<) ]) for $database, $edition;
	$server->safe_psql($_, "CREATE SCHEMA flakes; $defaults") for $database, $edition;
	$server->safe_psql($database, 'CREATE EXTENSION snowflake SCHEMA flakes') unless ($user // '') eq 'owner';
	$server->safe_psql($database, 'CREATE EXTENSION snowflake_registry');
	# the functions that read IDs first, and later the functions that issue IDs
	ok(edition($server, $edition, schema => 'flakes', @$_), "the edition in SQL: @$_") for [], [ machine_id => 7 ];
	is($server->safe_psql($edition, q{SELECT array_agg(grantee) FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE proname = 'snowflake_setup' AND grantee <> proowner}), '',
		'only its owner calls snowflake_setup()');
	return (
		snowflake => ($user // '') eq 'owner' ? undef : privileges($database, 'flakes') =~ s/^schema.*\n?//mr,
		snowflake_registry => privileges($database, 'snowflake_registry'),
		portable => privileges($edition, 'flakes') =~ s/^schema.*\n?//mr);
}

my %plain = created(undef, '');
expected($_, $plain{$_}) for sort keys %plain;
cmp_ok(($plain{snowflake} =~ tr/\n//), '>', 80, 'all objects are listed');

# Whatever defaults exist, the privileges are the same.
for my $case ([ undef, 'global', $grants =~ s/ IN / /gr . ";$schemas" ], [ undef, 'of the schema', $grants =~ s/ IN / IN SCHEMA flakes /gr ],
	[ 'boss', 'of another superuser', $grants =~ s/ IN / /gr ], [ 'owner', 'of an ordinary role', $grants =~ s/ IN / /gr . ";$schemas" ])
{
	my ($user, $name, $defaults) = @$case;
	my %found = created($user, $defaults);

	is($found{$_}, $plain{$_}, "$_: default privileges $name") for grep { defined $found{$_} } sort keys %found;
}

# A superuser creates it while others have defaults.
my %found = created(undef, $grants =~ s/PRIVILEGES IN/PRIVILEGES FOR ROLE boss, owner/gr);
is($found{$_}, $plain{$_}, "$_: default privileges of others") for sort keys %found;

# PUBLIC has what a default has left to it, and what the extension grants itself.
%found = created(undef, $revokes);
my %rest = map { $_ => join("\n", grep { my $line = $_; $line !~ /^(routine|type)\|.*\|PUBLIC\|/ || grep { $_ eq $line } @{ $expected{snowflake_registry} }, 'routine|' . ($line =~ /\|(commit\(.*?)\|/)[0] . '|PUBLIC|EXECUTE' } split /\n/, $plain{$_}) } keys %plain;
is($found{$_}, $rest{$_}, "$_: a default that has revoked a privilege from PUBLIC stays in effect") for sort keys %found;

# Later grants stay when the edition is run again, and pg_dump has nothing but these to restore.
my $later = 'GRANT SELECT ON SEQUENCE flakes.snowflake_base TO web; GRANT EXECUTE ON FUNCTION flakes.snowflake_move(bigint) TO PUBLIC, staff; GRANT SELECT ON flakes.snowflake_server TO web';
$server->safe_psql($edition, "$later; REVOKE EXECUTE ON FUNCTION flakes.snowflake_id() FROM PUBLIC; GRANT EXECUTE ON FUNCTION flakes.snowflake_id() TO web; " . $grants =~ s/ IN / /gr);
my $granted = privileges($edition, 'flakes');
like($granted, qr/^sequence\|snowflake_base\|web\|SELECT$/m, 'an administrator grants privileges');
ok(edition($server, $edition, schema => 'flakes', machine_id => 8), 'the edition is run again');
is(privileges($edition, 'flakes'), $granted, 'which leaves them');
$server->command_ok([ 'pg_dump', '-f', "$scratch/dump", 'shop2' ], 'pg_dump of a database with defaults');
unlike(slurp_file("$scratch/dump"), qr/^(GRANT|REVOKE) .* (FUNCTION|TABLE|TYPE|PROCEDURE|AGGREGATE) /m, 'has no privileges of the extensions');
$server->stop;

done_testing();
