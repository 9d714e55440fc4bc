# Functions for all TAP tests: servers that preload snowflake, and checks of them.  A test that uses
# this module also has the modules of PostgreSQL's tests, Test::More, strict and warnings.
package SnowflakeTest;

use strict;
use warnings;

use File::Basename;
use Exporter;
use IPC::Open2;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw($scratch archive_wal crash major_version postmaster pause_postmaster resume_postmaster kill_process write_pid_file_status snowflake_server restart_with_layout move_back configure fails_with log_matches wait_for_log children wal_writer registry_workers wait_until scaled start_issuing none_is_issued_twice edition $outcome_function);

sub import
{
	my $test = caller;

	strict->import;
	warnings->import;
	eval "package $test; use PostgreSQL::Test::Cluster; use PostgreSQL::Test::Utils; use Test::More; 1" or die $@;
	Exporter::export('SnowflakeTest', $test);
}

# A directory for files of this test alone: others may run at the same time.
our $scratch;

INIT
{
	$scratch = "$PostgreSQL::Test::Utils::tmp_check/" . basename($0, '.pl');
	mkdir $scratch;
}

# How long this test has taken, for script/test.
my $test = $$;
END { append_to_file("$PostgreSQL::Test::Utils::tmp_check/seconds", time - $^T . ' ' . basename($0, '.pl') . "\n") if $$ == $test; }

# A command that fails where the modules of PostgreSQL bail out ends the test in which it does, and
# not all other tests that prove runs as well.
{
	no warnings 'redefine';

	*Test::Builder::BAIL_OUT = sub { die "bailed out: $_[1]\n" };
}

# With SNOWFLAKE_TEST_STOP, a test ends at its first failure.
if ($ENV{SNOWFLAKE_TEST_STOP})
{
	no warnings 'redefine';
	my $ok = \&Test::Builder::ok;

	*Test::Builder::ok = sub {
		my $passed = &$ok;

		die "stopped at the first failure\n" if !$passed && !$_[0]->in_todo;
		return $passed;
	};
}

# Wait until a query returns a value, 't' if none is given.  PostgreSQL's own function starts psql for each attempt;
# here one session makes all attempts until the server ends it, so that a test that waits leaves the processors to
# others.  A test whose condition was not met in time ends there, unless it uses the result.
{
	no warnings 'redefine';

	*PostgreSQL::Test::Cluster::poll_query_until = sub {
		my ($server, $database, $query, $expected) = @_;
		my $end = time + $PostgreSQL::Test::Utils::timeout_default;
		my $mark = "the end of an answer\n";
		my ($answer, $is_complete);
		local %ENV = $server->_get_env;
		local $SIG{PIPE} = 'IGNORE';
		local $/ = $mark;

		$expected //= 't';
		do
		{
			local $?;
			my $psql = open2(my $answers, my $queries, 'sh', '-c', 'exec "$@" 2>&1', 'sh',
				$server->installed_command('psql'), '-XAt', '-d', $server->connstr($database));

			$queries->autoflush;
			do
			{
				select(undef, undef, undef, 0.02) if $is_complete;
				print $queries "$query\n;\\echo $mark";
				$answer = <$answers> // '';
				$is_complete = chomp $answer;
				$answer =~ s/\n\z//;
			} while ($is_complete && $answer ne $expected && time < $end);
			close $_ for $queries, $answers;
			waitpid $psql, 0;
			select(undef, undef, undef, 0.1) unless $is_complete;
		} while ($answer ne $expected && time < $end);
		return 1 if $answer eq $expected;
		diag("The last answer to $query was: $answer");
		die "not met in time: $query\n" unless defined wantarray;
		return 0;
	};
}

# A server that has a clock (TestClock) is started under it each time.
for my $name ('start', 'restart')
{
	no strict 'refs';
	no warnings 'redefine';
	my $start = \&{"PostgreSQL::Test::Cluster::$name"};

	*{"PostgreSQL::Test::Cluster::$name"} = sub {
		my ($server) = @_;

		return &$start unless $server->{clock};
		my @arguments = @_;
		return $server->{clock}->under(sub { $start->(@arguments) });
	};
}

# From PostgreSQL 16 on, Cluster->init copies the data directory that INITDB_TEMPLATE names, which
# takes less time than initdb; here the same for 15.  Copies share one system identifier: a test
# that needs different ones passes an option for initdb (extra) to init.
if ($ENV{INITDB_TEMPLATE})
{
	no warnings 'redefine';
	my $run = \&PostgreSQL::Test::Utils::system_or_bail;

	*PostgreSQL::Test::Utils::system_or_bail = sub {
		@_ = ('cp', '-RPp', $ENV{INITDB_TEMPLATE}, $1) if "@_" =~ /^initdb -D (\S+) -A trust -N$/;
		goto &$run;
	};
}

# Make a server with lines of configuration, start it, and create the extension.  All servers of
# tests are made here.  A reference to a hash before the lines has what is different:
#
#   preload => ''        the library is not preloaded; or the preloaded ones
#   extension => 0       the extension is not created
#   registry => 1        it is a registry, which has neither, and so is not run under valgrind
#                        (script/test-checked)
#   clock => CLOCK       the TestClock of the server
#   init => [...]        options of Cluster->init
#   backup => [...]      the arguments of Cluster->init_from_backup: the server, its backup, options.
#                        It is as the server was then, so it gets the lines only
#   port => NUMBER       that of another server, in whose place it is
#   start => 0           it is not started
sub snowflake_server
{
	my ($name, @lines) = @_;
	my %options = ref $lines[0] ? %{ shift @lines } : ();
	my %with = (preload => 'snowflake', extension => 1, start => 1, $options{registry} ? (preload => '', extension => 0) : (), %options);
	my $server = PostgreSQL::Test::Cluster->new($name, $with{port} ? (port => $with{port}) : ());

	$server->{clock} = $with{clock};
	if ($with{backup})
	{
		$server->init_from_backup(@{ $with{backup} });
	}
	else
	{
		$server->init(@{ $with{init} // [] });
		unshift @lines, "shared_preload_libraries = '$with{preload}'";
		unshift @lines, 'snowflake_test.checked = off' if $with{registry};
	}
	$server->append_conf('postgresql.conf', join("\n", @lines));
	return $server unless $with{start};
	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION snowflake') if $with{extension} && !$with{backup};
	return $server;
}

# The version of PostgreSQL, or of a server, without minor release; 19 for 19rc1 too, which
# PostgreSQL::Version sorts below 19.
sub major_version
{
	my ($server) = @_;
	my $version = $server ? $server->pg_version : (run_command([ 'pg_config', '--version' ]))[0] =~ s/^\D+//r;

	return $version =~ /^(\d+)/ ? $1 : die "version $version";
}

# Archive all WAL that a server has written.  Its processes may write more at any time, and so the
# last file is the current one before the switch.
sub archive_wal
{
	my ($server) = @_;
	my $last = $server->safe_psql('postgres', 'SELECT pg_walfile_name(pg_switch_wal() - 1)');

	$server->poll_query_until('postgres', "SELECT last_archived_wal >= '$last' FROM pg_stat_archiver");
	return;
}

# The process of a server's postmaster.
sub postmaster
{
	my ($server) = @_;

	return (split /\n/, slurp_file($server->data_dir . '/postmaster.pid'))[0];
}

# Write into a server's PID file what the postmaster writes there: "stopping", or "ready".
sub write_pid_file_status
{
	my ($server, $status) = @_;
	my $name = $server->data_dir . '/postmaster.pid';
	my @lines = split /^/, slurp_file($name);

	$lines[7] = sprintf("%-8s\n", $status);
	open(my $file, '+<', $name) or die "$name: $!";
	print $file @lines;
	close $file;
}

# Keep a server from starting processes, and so from accepting clients, until it is resumed.
my %paused;

sub pause_postmaster
{
	my ($server) = @_;

	$paused{ postmaster($server) } = 1;
	kill 'STOP', postmaster($server);
}

sub resume_postmaster
{
	my ($server) = @_;

	kill 'CONT', postmaster($server);
	delete $paused{ postmaster($server) };
}

# If a test dies, its servers are stopped.
END { kill 'CONT', keys %paused; }

# The children of a postmaster, or those whose title matches a pattern, if there are any.  Under valgrind a
# process has no title.
sub children
{
	my ($postmaster, @pattern) = @_;
	my @command = ('pgrep', '-P', $postmaster, map { ('-f', $_) } @pattern);

	open(my $found, '-|', @command) or die "@command: $!";
	my @children = <$found>;
	close $found;
	die "@command failed" if $? >> 8 > 1;
	chomp @children;
	return @children;
}

# The process of a server's WAL writer.
sub wal_writer
{
	my ($server) = @_;

	return wait_until(sub { $server->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'}) })
	  || die 'no WAL writer runs';
}

# The process of a server's registry worker after each request, as a log with log_min_messages = debug1
# has it: such a process is not in pg_stat_activity.
sub registry_workers
{
	my ($server) = @_;

	return slurp_file($server->logfile) =~ /\[(\d+)\] DEBUG:  the next request of a lease is due/g;
}

# Kill a postmaster and its children so that none of them can do anything more, and wait until
# they have ended.  (An immediate stop lets processes exit orderly.)
sub crash
{
	my ($server) = @_;
	my $postmaster = postmaster($server);

	kill 'STOP', $postmaster;
	wait_until(sub { `ps -o stat= -p $postmaster` =~ /^T/ });    # it may be starting a process
	my @children = children($postmaster);
	kill 'KILL', @children;
	$server->kill9;
	wait_until(sub { !grep { kill 0, $_ } $postmaster, @children });
}

# Kill one process of a server that restarts all processes then (restart_after_crash), and wait until
# the server accepts clients again: a fast stop before that never ends (docs/troubleshooting.md).
# While the server restarts them, an optional function is called.  Returns false if the process had
# ended before.
sub kill_process
{
	my ($server, $process, $meanwhile) = @_;
	my $log = -s $server->logfile;

	kill('KILL', $process) or return 0;
	$meanwhile->() if $meanwhile;
	wait_until(sub { substr(slurp_file($server->logfile), $log) =~ /LOG:  database system is ready to accept connections/ })
	  or die 'the server does not accept clients again';
	return 1;
}

# Wait until a function returns a true value, or for a long time; returns its last value.
sub wait_until
{
	my ($condition) = @_;

	for (1 .. 20 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $result = $condition->();

		return $result if $result;
		select(undef, undef, undef, 0.05);
	}
	return $condition->();
}

# Of an amount of work, the share that SNOWFLAKE_TEST_SCALE states, and no less than the least that
# the test needs.  Without that variable it is the amount itself.
sub scaled
{
	my ($amount, $least) = @_;
	my $scale = $ENV{SNOWFLAKE_TEST_SCALE} // 1;

	die "SNOWFLAKE_TEST_SCALE=$scale: it has to be a number above 0 and up to 1\n"
	  unless $scale =~ /^(0?\.[0-9]+|[01](\.0*)?)$/ && $scale > 0;
	my $share = int($amount * $scale);
	return $share > $least ? $share : $least;
}

# Start a session that runs a query which issues IDs, and writes these to a file of its own, a thousand
# at a time: they are all that it has received when it is killed.
my $sessions = 0;

sub start_issuing
{
	my ($server, $query, $database) = @_;
	my $file = "$scratch/issued." . $sessions++;

	return { file => $file, run => IPC::Run::start([ 'psql', '-XAtq', '-v', 'FETCH_COUNT=1000', '-o', $file,
				'-d', $server->connstr($database // 'postgres') . ' application_name=issuing', '-c', $query ],
			'2>', '/dev/null', IPC::Run::timeout(10 * $PostgreSQL::Test::Utils::timeout_default)) };
}

# Remove the last line of a file if it is cut off, since the process that wrote it was killed.
sub remove_incomplete_line
{
	my ($name) = @_;
	my $size = -s $name;
	my $start = $size > 100 ? $size - 100 : 0;

	open(my $file, '+<', $name) or die "$name: $!";
	seek($file, $start, 0);
	read($file, my $end, 100);
	truncate($file, $start + rindex($end, "\n") + 1) or die "$name: $!";
	close $file;
}

# Of all IDs in files, in lines of their own, there are a number at least, and none is issued
# twice.  Returns the greatest.
sub none_is_issued_twice
{
	my ($least, $name, @files) = @_;
	my $sorted = "$scratch/ids.sorted";

	remove_incomplete_line($_) for grep { -s } @files;
	system_or_bail('sh', '-c', 'sorted=$1; shift; grep -hxE "[0-9]{13,}|[0-9a-z]{16}" "$@" | sort > "$sorted"', 'sh', $sorted, @files);
	my $count = `wc -l < $sorted` + 0;
	my $twice = `uniq -d $sorted | head -n 5`;
	my $greatest = `tail -n 1 $sorted`;

	cmp_ok($count, '>=', $least, "$name: $count IDs");
	is($twice, '', "$name: none is issued twice");
	unlink $sorted;
	chomp $greatest;
	return $greatest;
}

# Restart with another layout, and accept it.
sub restart_with_layout
{
	my ($server, $layout) = @_;

	$server->append_conf('postgresql.conf', "snowflake.layout = '$layout'");
	$server->restart;
	$server->safe_psql('postgres', 'SELECT snowflake_accept_layout()');
}

# Move a generator back to an instant, an expression of SQL, and restart the server, which then issues
# IDs from there on.  Returns the messages of the call.  The kind is "sno", or undef for bigint.
sub move_back
{
	my ($server, $instant, $kind) = @_;
	my ($status, undef, $messages) = $server->psql('postgres', 'SELECT ' . ($kind // 'snowflake') . "_move_back($instant)");

	die $messages if $status != 0;
	$server->restart;
	return $messages;
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

	wait_until(sub { substr(slurp_file($server->logfile), $from) =~ $pattern });
	log_matches($server, $from, $pattern, $name);
}

# A function that returns the result of a call as a text, or its SQLSTATE.
our $outcome_function;

BEGIN
{
	$outcome_function = <<'SQL';
CREATE FUNCTION pg_temp.outcome(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	outcome text;
BEGIN
	EXECUTE 'SELECT ' || call INTO outcome;
	RETURN outcome;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
SQL
}

# Create the functions of the edition in SQL in a database, by a psql that ends at an error, whose text is in the file
# refusal of $scratch.
sub edition
{
	my ($server, $database, %arguments) = @_;
	my $setup = 'SELECT snowflake_setup(' . join(', ', map { "$_ => \$\$$arguments{$_}\$\$" } sort keys %arguments) . ')';

	return run_log([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr($database), '-f', dirname(__FILE__) . '/../../portable/snowflake.sql', '-c', $setup ],
		'>', '/dev/null', '2>', "$scratch/refusal");
}

1;
