# What the TAP tests share: servers that preload snowflake.
package SnowflakeTest;

use strict;
use warnings;

use File::Basename;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw($scratch crash snowflake_server restart_with_layout configure fails_with log_matches wait_for_log);

# A directory for files of this test alone: others may run at the same time.
our $scratch;

INIT
{
	$scratch = "$PostgreSQL::Test::Utils::tmp_check/" . basename($0, '.pl');
	mkdir $scratch;
}

# A started server with the given lines of configuration, where snowflake is
# preloaded and created.
sub snowflake_server
{
	my ($name, @lines) = @_;
	my $server = PostgreSQL::Test::Cluster->new($name);

	$server->init;
	$server->append_conf('postgresql.conf',
		join("\n", "shared_preload_libraries = 'snowflake'", 'fsync = off', @lines) . "\n");
	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $server;
}

# Kill a postmaster and its children so that none of them can do a thing, and
# wait until they are gone.  (An immediate stop lets processes exit orderly.)
sub crash
{
	my ($server) = @_;
	my $postmaster = (split /\n/, slurp_file($server->data_dir . '/postmaster.pid'))[0];

	kill 'STOP', $postmaster;
	my @children = split ' ', `pgrep -P $postmaster`;
	kill 'KILL', @children;
	$server->kill9;
	for (1 .. 600)
	{
		last unless grep { kill 0, $_ } $postmaster, @children;
		select(undef, undef, undef, 0.05);
	}
}

# Restart with another layout, and accept it.
sub restart_with_layout
{
	my ($server, $layout) = @_;

	$server->append_conf('postgresql.conf', "snowflake.layout = '$layout'");
	$server->restart;
	$server->safe_psql('postgres', 'SELECT snowflake_accept_layout()');
}

# Change a setting and wait until a new session sees it.
sub configure
{
	my ($server, $name, $value) = @_;

	$server->safe_psql('postgres', "ALTER SYSTEM SET $name = $value");
	$server->reload;
	$server->poll_query_until('postgres',
		"SELECT setting = '$value' FROM pg_settings WHERE name = '$name'")
	  or die "$name did not change to $value";
}

# A query fails with an SQLSTATE and with text that matches each pattern.
sub fails_with
{
	my ($server, $query, $sqlstate, @patterns) = @_;
	my ($status, $stdout, $stderr) =
	  $server->psql('postgres', "\\set VERBOSITY verbose\n$query");

	subtest "$query fails with $sqlstate" => sub {
		isnt($status, 0, 'fails');
		like($stderr, qr/ERROR:  $sqlstate:/, 'SQLSTATE');
		like($stderr, $_, "says $_") for @patterns;
	};
}

# The server's log, from a position on, matches a pattern.
sub log_matches
{
	my ($server, $from, $pattern, $name) = @_;

	my $log = substr(slurp_file($server->logfile), $from);

	ok($log =~ $pattern, $name) or diag("no $pattern in the log, which ends with:\n" . substr($log, -2000));
}

# Wait until the server's log, from a position on, matches a pattern.
sub wait_for_log
{
	my ($server, $from, $pattern, $name) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last if substr(slurp_file($server->logfile), $from) =~ $pattern;
		select(undef, undef, undef, 0.1);
	}
	log_matches($server, $from, $pattern, $name);
}

1;
