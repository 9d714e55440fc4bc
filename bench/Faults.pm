# Faults of servers, injected one after the other while clients use the servers: by bench/chaos and bench/feed.
#
# A server is a hash: its name and node, its clock, the seconds that this may be off (clock_off), and the longest
# time in seconds for which the server or a session is paused (longest_pause).  Another node can take its place.
package Faults;

use strict;
use warnings;

use Exporter 'import';
use File::Path;
use IPC::Run;
use List::Util qw(shuffle);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time sleep);

our @EXPORT = qw($seconds any inject faults_of %faults_of_a_server fault_counts restart kill_server stop_server pause_server set_clock
  standby_of take_place_of start_client);

# The arguments of a program that injects faults: the length of the run, the seed of all random numbers here, and a
# regular expression that the names of faults have to match.
our ($seconds, $seed, $pattern) = @ARGV;
srand $seed;
$ENV{PGCTLTIMEOUT} = 300;

my %count;

sub any { return $_[ int rand @_ ]; }

# Inject faults for a time, with pauses between them: first some by name, and then all that are named, in another order
# each time.  A fault that is named twice is twice as frequent.
sub inject
{
	my ($time, $longest_pause, $faults, $first, @names) = @_;
	my $begin = time;
	my @order = grep { /(?:$pattern)/ } @$first;
	my @drawn = grep { /(?:$pattern)/ } @names or die "no fault matches $pattern\n";

	while (time < $begin + $time)
	{
		@order = shuffle(@drawn) unless @order;
		my $name = shift @order;

		note(sprintf '%6.1f s: %s', time - $begin, $name);
		$faults->{$name}->();
		$count{$name}++;
		sleep rand $longest_pause;
	}
}

# Faults, by name, of a server that is drawn each time from the servers that a function returns.
sub faults_of
{
	my ($servers, %faults) = @_;

	return map
	{
		my $fault = $faults{$_};
		$_ => sub { my $server = any($servers->()); note(' ' x 10 . $server->{name}); $fault->($server); }
	} keys %faults;
}

sub fault_counts { return join ', ', map { "$_: $count{$_}" } sort keys %count; }

# A server that does not run is started; one that has not recovered yet, or has ended itself, too.
sub restart
{
	my ($server) = @_;

	$server->{node}->stop('immediate', fail_ok => 1);
	$server->{clock}->start($server->{node});
}

our %faults_of_a_server = (
	'kill a server' => \&kill_server,
	'kill a process' => \&kill_any_process,
	'terminate sessions' => \&terminate_sessions,
	'stop a server' => \&stop_server,
	'pause a server' => \&pause_server,
	'pause a session' => \&pause_session,
	'set the clock of a server' => \&set_clock,
	'freeze the clock of a server' => \&freeze_clock,
	'fill the disk of a server' => \&fill_disk,
	'set the floor of a server' => \&set_floor);

# A server is ahead of the clock, issues IDs, is killed, and starts behind the clock, so at a time from which it has issued
# IDs.
sub kill_server
{
	my ($server) = @_;

	$server->{clock}->set(rand $server->{clock_off});
	sleep 0.3;
	crash($server->{node});
	set_clock_back($server);
	restart($server);
}

sub set_clock_back { my ($server) = @_; $server->{clock}->set((rand(0.5) - 1) * $server->{clock_off}); }

sub kill_any_process
{
	my ($server) = @_;
	my $process = any(children(postmaster($server->{node}), 'postgres: .*\[local\]|snowflake')) or return;

	kill_process($server->{node}, $process, sub { set_clock_back($server) }) if is_stopped($process);
}

# Stop a process, which cannot exit then.  False if it has exited before: the server does not restart for it.
sub is_stopped
{
	my ($process) = @_;

	kill 'STOP', $process;
	return wait_until(sub { state_of($process) =~ /^[TXZ]?$/ }) && state_of($process) eq 'T';
}

# The state of a process, as in proc(5); empty if it has ended.
sub state_of
{
	my ($process) = @_;

	open my $file, '<', "/proc/$process/stat" or return '';
	return (<$file> // '') =~ /.*\) (\w)/ ? $1 : '';
}

sub terminate_sessions
{
	my ($server) = @_;

	$server->{node}->psql('postgres',
		'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND random() < 0.5');
}

# A fast stop of a server that is restarting its processes after a crash never ends (docs/troubleshooting.md).
sub stop_server
{
	my ($server) = @_;
	my $mode = any('fast', 'immediate');

	$server->{node}->poll_query_until('postgres', 'SELECT true') if $mode eq 'fast';
	$server->{node}->stop($mode);
	sleep rand $server->{longest_pause};
	restart($server);
}

sub pause_server
{
	my ($server) = @_;
	my $postmaster = postmaster($server->{node});

	pause($server, $postmaster, children($postmaster));
}

sub pause_session
{
	my ($server) = @_;
	my $process = any(children(postmaster($server->{node}), 'postgres: .*\[local\]')) or return;

	pause($server, $process);
}

sub pause
{
	my ($server, @processes) = @_;

	kill 'STOP', @processes;
	sleep rand $server->{longest_pause};
	kill 'CONT', reverse @processes;
}

sub set_clock { my ($server) = @_; $server->{clock}->set((rand(2) - 1) * $server->{clock_off}); }

sub freeze_clock
{
	my ($server) = @_;

	$server->{clock}->freeze;
	sleep rand 0.5;
	$server->{clock}->thaw;
}

sub fill_disk
{
	my ($server) = @_;

	$server->{clock}->fill_disk(1);
	sleep rand 2;
	$server->{clock}->fill_disk(0);
	restart($server);
}

# Move the floors forward, past the reservations.
sub set_floor
{
	my ($server) = @_;

	$server->{node}->psql('postgres',
		q{SELECT CASE generator WHEN 'bigint' THEN snowflake_set_floor(at) ELSE sno_set_floor(at) END
		  FROM pg_stat_snowflake, LATERAL (SELECT greatest(reserved_until, clock_timestamp()) + interval '50 ms' AS at) AS floor
		  WHERE reserved_until IS NOT NULL});
}

# A node becomes a standby of a server, with more lines of configuration, and is started.
sub standby_of
{
	my ($server, $node, @lines) = @_;
	my $backup = $node->name;

	$server->{node}->backup($backup);
	$node->init_from_backup($server->{node}, $backup, has_streaming => 1);
	$node->append_conf('postgresql.conf', join "\n", @lines);
	$server->{clock}->start($node);
	File::Path::remove_tree($server->{node}->backup_dir . "/$backup");
	return $node;
}

# A standby is promoted in the place of its primary, which is stopped.  Before a fast stop ends, a standby that is
# connected has received all WAL.
sub take_place_of
{
	my ($server, $standby, $mode) = @_;

	$server->{node}->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming'")
	  if $mode eq 'fast';
	$server->{node}->stop($mode);
	$standby->promote;
	File::Path::remove_tree($server->{node}->data_dir);
	$server->{node} = $standby;
}

# A client: a command that is executed again and again while a file exists, whatever errors are raised.  Its output is
# appended to a file, and its messages to another one.  (Linux divides processors among sessions of processes first, so
# that this process gets its share beside the clients, by setsid.)
sub start_client
{
	my ($running, $output, @command) = @_;

	return IPC::Run::start([ 'setsid', 'sh', '-c', 'running=$1; output=$2; shift 2
			while [ -e "$running" ]; do "$@" || sleep 0.1; done >> "$output" 2>> "$output.log"', 'client', $running, $output, @command ]);
}

1;
