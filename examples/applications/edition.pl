#!/usr/bin/env perl
# Tests that clients can run portable/snowflake.sql, which is one statement, and snowflake_setup(), each as it sends
# statements, and twice; and that IDs of eight sessions of three of them are not repeated while the server crashes.
#
# A client for JavaScript is skipped if npm has not installed its package.
#
# Packages: python3-psycopg python3-psycopg2 python3-sqlalchemy python3-django nodejs npm pgbouncer default-jdk-headless libpostgresql-jdbc-java libjunixsocket-java libjunixsocket-jni
# Not in script/test: it installs a JDK, and 520 MB of packages for JavaScript.
#
#	examples/run applications/edition.pl
use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use SnowflakeTest;

my $file = "$FindBin::RealBin/../../portable/snowflake.sql";
my $setup = 'SELECT snowflake_setup(machine_id => 7)';
my $table = 'CREATE TABLE IF NOT EXISTS items (id bigint PRIMARY KEY DEFAULT snowflake_id(), n integer)';
my $server = snowflake_server('main', { preload => '', extension => 0 }, 'max_connections = 50', 'timezone = UTC');
my $pooler = PostgreSQL::Test::Utils::tempdir_short();
my $jars = join(':', glob('/usr/share/java/*.jar'));

# The file with the ends of lines of Windows.
my $crlf = "$scratch/crlf.sql";
append_to_file($crlf, slurp_file($file) =~ s/\n/\r\n/gr);

append_to_file("$pooler/pgbouncer.ini", <<"INI");
[databases]
* = host=@{[ $server->host ]} port=@{[ $server->port ]} user=@{[ scalar getpwuid($<) ]} pool_size=4
[pgbouncer]
pool_mode = transaction
listen_addr =
unix_socket_dir = $pooler
auth_type = any
logfile = $pooler/log
server_login_retry = 1
INI
my $pgbouncer = IPC::Run::start([ '/usr/sbin/pgbouncer', '-q', "$pooler/pgbouncer.ini" ]);
ok(wait_until(sub { -S "$pooler/.s.PGSQL.6432" }), 'a pooler in transaction mode');

my @psql = ('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1');
my @pooled = (@psql, '-h', $pooler, '-p', 6432);
my @node = ('node', "$FindBin::RealBin/edition.mjs");
my @python = ('python3', "$FindBin::RealBin/edition.py");
my @statements = ('-c', $setup, '-c', $table, '-c', 'SELECT version()');
my @clients = (
	[ 'psql -f', @psql, '-f', $file, @statements ],
	[ 'psql -f, a file with CRLF', @psql, '-f', $crlf, @statements ],
	[ 'psql -1, in a transaction', @psql, '-1', '-f', $file, @statements ],
	[ 'psql -c, all at once', @psql, '-c', join(';', slurp_file($file), $setup, $table, 'SELECT version()') ],
	[ 'psql, through pgbouncer', @pooled, '-f', $file, @statements ],
	map({ [ $_, @python, $_, $file ] } 'psycopg', 'psycopg2', 'sqlalchemy', 'django'),
	map({ [ $_, @node, $_, $file ] } 'node-postgres', 'node-postgres, extended protocol', 'node-postgres, all at once', 'node-postgres, in a transaction', 'postgres.js',
		'knex', 'sequelize', 'typeorm', 'drizzle', 'prisma', 'pglite'),
	[ 'JDBC', 'java', '-cp', $jars, "$FindBin::RealBin/Edition.java", $file ],
	[ 'node-postgres, a file with CRLF', @node, 'node-postgres', $crlf ]);

for (@clients)
{
	my ($name, @command) = @$_;

	next if $command[0] eq 'node' && !-d "$FindBin::RealBin/node_modules";
	$server->safe_psql('postgres', 'DROP DATABASE IF EXISTS client WITH (FORCE); CREATE DATABASE client');
	local %ENV = (%ENV, PGHOST => $server->host, PGPORT => $server->port, PGDATABASE => 'client', PGUSER => scalar getpwuid($<));
	for my $time ('once', 'twice')
	{
		my ($output, $errors) = ('', '');

		ok(IPC::Run::run(\@command, '>', \$output, '2>', \$errors), "$name: $time") or diag($errors);
		note($output) if $time eq 'once';
	}
	next if $name eq 'pglite';    # which has a server of its own
	is($server->safe_psql('client', q{INSERT INTO items DEFAULT VALUES;
		SELECT count(*) = 28, array_agg(DISTINCT (SELECT string_agg(DISTINCT snowflake_machine_id(id)::text, ' ') FROM items)), snowflake_timestamp(5, 'discord') FROM pg_proc WHERE proname LIKE 'snowflake%'}),
		't|{7}|2015-01-01 00:00:00+00', "$name: the functions");
}

# Sessions that print the IDs of their rows, until the connection is lost.
my $rows = scaled(100_000, 5000);
my $inserts = "$scratch/inserts.sql";
append_to_file($inserts, "INSERT INTO items SELECT FROM generate_series(1, 100) RETURNING id;\n" x 20000);
for ([ 'node-postgres', @node, 'node-postgres' ], [ 'psycopg', @python, 'psycopg' ], [ 'psql, through pgbouncer', @pooled, '-f', $inserts ])
{
	my ($name, @command) = @$_;
	my @files;

	next if $command[0] eq 'node' && !-d "$FindBin::RealBin/node_modules";
	$server->safe_psql('postgres', 'DROP DATABASE IF EXISTS client WITH (FORCE); CREATE DATABASE client');
	ok(edition($server, 'client', machine_id => 7), "$name: a database");
	$server->safe_psql('client', $table);
	for my $round (1 .. 4)
	{
		local %ENV = (%ENV, PGHOST => $server->host, PGPORT => $server->port, PGDATABASE => 'client', PGUSER => scalar getpwuid($<));
		my @sessions = map { push @files, "$scratch/ids." . @files; IPC::Run::start(\@command, '>', $files[-1], '2>', '/dev/null') } 1 .. 8;

		$server->poll_query_until('client', "SELECT count(*) >= $rows * $round / 4 FROM items");
		crash($server);
		$_->kill_kill for @sessions;
		$server->start;
		ok(wait_until(sub { system(@pooled, '-d', 'client', '-o', '/dev/null', '-c', 'SELECT') == 0 }), 'the pooler is connected again') if $command[0] eq 'psql';
	}
	none_is_issued_twice($rows, $name, @files);
	unlink @files;
}
$pgbouncer->kill_kill;
$server->stop;

done_testing();
