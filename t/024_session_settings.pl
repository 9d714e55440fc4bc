# The settings of the server's configuration apply to all sessions.  Roles, databases, clients and
# functions cannot give a session other ones: PostgreSQL refuses them, and ignores values that were given to roles and
# databases while the library was not preloaded, when any value is accepted.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

# Of each setting: the value of the server, which is not the default, and another one.
my %settings = (
	layout => [ 'discord', 'twitter' ],
	machine_id => [ 12, 9 ],
	sequence_range => [ '101-300', '5-6' ],
	sno_partition => [ 300, 8 ],
	sno_sequence_range => [ '100-199', '5-9' ],
	max_ahead => [ 0, 60000 ],
	max_clock_step => [ 60000, 0 ],
	sequence_jitter => [ 50, 0 ],
	registry => [ '', 'host=elsewhere' ]);
my @names = sort keys %settings;

# Statements that set all of them.
sub each_setting
{
	my ($statement) = @_;

	return join '', map { sprintf("$statement SET %s = '%s';\n", "snowflake.$_", $settings{$_}[1]) } @names;
}

# The settings that apply, as seen by what is issued: milliseconds begin at different sequence numbers
# with a jitter, and a burst runs ahead of the clock as far as it may.
my $facts = <<'SQL';
SELECT 'layout ' || bool_and(snowflake_timestamp(id) = snowflake_timestamp(id, 'discord')),
	'machine ID ' || string_agg(DISTINCT snowflake_machine_id(id)::text, ' '),
	'sequences ' || (min(snowflake_sequence(id)) BETWEEN 101 AND 151 AND max(snowflake_sequence(id)) <= 300),
	'jitter ' || (count(DISTINCT snowflake_sequence(id)) FILTER (WHERE first) > 1),
	'ahead ' || bool_or(snowflake_timestamp(id) > at)
FROM (SELECT id, at, row_number() OVER (PARTITION BY snowflake_timestamp(id) ORDER BY id) = 1 AS first
	FROM (SELECT snowflake_nextval() AS id, clock_timestamp() AS at FROM generate_series(1, 20000)) AS issued) AS ids;
SELECT 'partition ' || string_agg(DISTINCT sno_partition(id)::text, ' '),
	'sno sequences ' || (min(sno_sequence(id)) >= 100 AND max(sno_sequence(id)) <= 199)
FROM (SELECT sno_nextval() AS id FROM generate_series(1, 5000)) AS issued;
SQL
my $configured = "layout true|machine ID 12|sequences true|jitter true|ahead false\npartition 300|sno sequences true";
my $shown = join ',', map { $settings{$_}[0] } grep { $_ !~ /max_|registry/ } @names;
my $show = 'SELECT concat_ws(\',\', ' . join(', ', map { "current_setting('snowflake.$_')" } grep { $_ !~ /max_|registry/ } @names) . ')';

# Without the preload, an ordinary role cannot set them for its sessions, and a superuser can.
my $server = snowflake_server('main', { preload => '', extension => 0, init => [ allows_streaming => 1 ] }, map { "snowflake.$_ = '$settings{$_}[0]'" } @names);
$server->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE ROLE other LOGIN; CREATE DATABASE clean');
my (undef, undef, $refusal) = $server->psql('postgres', "ALTER ROLE app SET snowflake.layout = 'twitter'", extra_params => [ '-U', 'app' ]);
like($refusal, qr/permission denied to set parameter "snowflake\.layout"/, 'an ordinary role cannot set the layout for its sessions');
my %given = (
	'ALTER ROLE' => 'app',
	'ALTER DATABASE' => 'postgres',
	'ALTER ROLE app IN DATABASE' => 'postgres',
	'ALTER ROLE ALL' => '');
$server->safe_psql('postgres', each_setting("$_ $given{$_}")) for sort keys %given;
$server->safe_psql('postgres', "CREATE FUNCTION first() RETURNS bigint LANGUAGE plpgsql\n" .
	join("\n", map { "SET snowflake.$_ = '$settings{$_}[1]'" } @names) . ' AS $$ BEGIN RETURN snowflake_nextval(); END $$');

$server->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'");
$server->restart;
$server->safe_psql($_, 'CREATE EXTENSION snowflake') for 'postgres', 'clean';

# The statements of a session of an ordinary role.  psql ends at the first error.  It reads them from a
# file, since it does not read them at all if the connection is refused.
sub as_app
{
	my ($statements, %source) = @_;
	my $connection = $server->connstr('postgres') . ' user=app ' . ($source{connection} // '');
	my ($output, $errors) = ('', '');

	my $file = "$scratch/statements.sql";

	unlink $file;
	append_to_file($file, $statements);
	local $ENV{PGOPTIONS} = $source{pgoptions} // '';
	my $ended = IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $connection, '-f', $file ], '>', \$output, '2>', \$errors);
	chomp $output;
	return ($ended, $output, $errors);
}

# Values that roles and databases were given are ignored, even by the first session after a start.
for my $event ('after a start', 'later')
{
	$server->restart if $event eq 'after a start';
	my ($ended, $output, $errors) = as_app("$facts$show");
	ok($ended, "$event: a session of such a role and database is issued IDs") or diag($errors);
	is($output, "$configured\n$shown", 'by the settings of the server');
	like($errors, qr/WARNING:  parameter "snowflake\.$_" cannot be changed/, "PostgreSQL warns of snowflake.$_") for @names;
	is($server->safe_psql('clean', $facts), $configured, 'and other sessions are issued IDs by the same ones');
}
fails_with($server, 'SELECT first()', '55P02', qr/parameter "snowflake\.layout" cannot be changed/);

# Others are refused.
for my $name (@names)
{
	my $assignment = "snowflake.$name = '$settings{$name}[1]'";

	fails_with($server, "SET $assignment", '55P02');
	fails_with($server, "BEGIN; SET LOCAL $assignment", '55P02');
	fails_with($server, "ALTER ROLE other SET $assignment", '55P02');
	fails_with($server, "ALTER DATABASE clean SET $assignment", '55P02');
	for my $source ('pgoptions', 'connection')
	{
		my $option = "-c snowflake.$name=$settings{$name}[1]";
		my ($ended, undef, $errors) = as_app('SELECT snowflake_nextval()', $source => $source eq 'connection' ? "options='$option'" : $option);

		ok(!$ended, "a connection with $option ($source) is refused");
		like($errors, qr/FATAL:  parameter "snowflake\.$name" cannot be changed/, 'with this error');
	}
}
is($server->safe_psql('clean', $facts), $configured, 'they change nothing for others');

# Two settings belong to the session.
$server->safe_psql('postgres', "ALTER ROLE other SET snowflake.max_wait = '7s'; ALTER DATABASE clean SET snowflake.enable_timestamp_pushdown = off");
is($server->safe_psql('clean', 'SHOW snowflake.max_wait; SHOW snowflake.enable_timestamp_pushdown', extra_params => [ '-U', 'other' ]), "7s\noff",
	'roles and databases can have their own max_wait and enable_timestamp_pushdown');
my (undef, $own) = as_app('SHOW snowflake.max_wait', pgoptions => '-c snowflake.max_wait=8s');
is($own, '8s', 'and so can clients');

# A standby, on which IDs are decoded, has the settings of roles and databases from its primary.
$server->backup('backup');
my $standby = snowflake_server('standby', { backup => [ $server, 'backup', has_streaming => 1 ] });
is($standby->safe_psql('postgres', "SELECT snowflake_timestamp(1) = snowflake_timestamp(1, 'discord')", extra_params => [ '-U', 'app' ]), 't',
	'a standby decodes in the layout of its configuration');
$standby->stop;
$server->stop;

done_testing();
