# Random faults of a fleet and its registry: see bench/chaos, which runs this.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../t/lib";

use Faults;
use Fleet;
use List::Util qw(shuffle);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use TestClock;
use Time::HiRes qw(sleep);

my $lease = 4;            # s
my $greatest_skew = 2;    # s, which the registry allows
my $clock_off = 0.7;      # s, that the clock of a server with a lease, or of the registry, may be off
my $own_clock_off = 5;    # s, that the clock of a server without a lease may be off
my $pause = 1.5 * $lease; # s, for which a server or a session is paused at most

# Three servers lease two machine IDs, so one of them always waits for a machine ID that another one loses.  A tick has so
# few IDs that each batch of type bigint has one ID, and a session takes a batch for each ID.  (Batches of type sno are
# large.)  The WAL writer writes seldom, so that only a flush keeps a reservation.
my @lines = ("snowflake.layout = 'epoch=2024-01-01 tick=100us timestamp=54 machine=2 sequence=6'", "snowflake.registry_lease = $lease",
	"snowflake.max_wait = '1s'", "snowflake.max_ahead = '2s'", 'restart_after_crash = on', 'wal_level = replica', "wal_writer_delay = '10s'", 'max_connections = 120');
my $own_machine_id = 1;    # below the leased ones

my $number = 0;
my $clock = TestClock->new;
my $fleet = Fleet->new($clock);
my $registry = { name => 'registry', clock => $clock, node => $fleet->registry, clock_off => $clock_off, longest_pause => $pause };
my $second_place = $fleet->failover_to('place2');    # for its port
my @ports = map { $_->port } $registry->{node}, $second_place;
$registry->{node}->safe_psql('postgres', "SELECT snowflake_registry.configure('$lease s', '$greatest_skew s', reserved => 2)");
my @servers = map { new_server("server$_", $clock_off) } 1 .. 3;
my $fixed = new_server('fixed', $own_clock_off, "snowflake.registry = ''", "snowflake.machine_id = $own_machine_id");
my $paused = 0;
system_or_bail('cc', '-O2', '-o', "$scratch/pause", "$FindBin::RealBin/pause.c");

sub new_server
{
	my ($name, $off, @more) = @_;
	my $server = { name => $name, clock => TestClock->new, clock_off => $off, longest_pause => $pause };

	$server->{node} = $fleet->server($name, clock => $server->{clock}, lines => [ @lines, @more ]);
	$server->{node}->safe_psql('postgres', 'CREATE ROLE load SUPERUSER LOGIN');
	return with_writers($server);
}

# Sessions that issue IDs of a server until it is removed: few at a time, so that a batch is never far from its end, many
# at a time, and by a session that stays.
sub with_writers
{
	my ($server) = @_;
	my @queries = ("SELECT snowflake_nextval();\nSELECT pg_sleep(0.002);\n" x 100, $fleet->query(50) . "SELECT pg_sleep(0.02);\n",
		"SELECT snowflake_nextval() FROM generate_series(1, 4000);\nSELECT sno_nextval() FROM generate_series(1, 500);\nSELECT pg_sleep(0.1);\n");

	@$server{qw(running writers)} = start_writers($server->{node}->connstr('postgres'), map { $_ x 20 } @queries);
	return $server;
}

# A file, and sessions that each execute their script until it is removed.
sub start_writers
{
	my ($connection, @scripts) = @_;
	my $running = "$scratch/running" . ++$number;

	append_to_file($running, '');
	return ($running, [ map
	{
		my $file = $fleet->new_file;

		append_to_file("$file.sql", $_);
		start_client($running, $file, 'psql', '-XAtq', '-f', "$file.sql", $connection);
	} @scripts ]);
}

sub end_server
{
	my ($server) = @_;

	unlink $server->{running};
	$server->{node}->stop('immediate', fail_ok => 1);
	$_->finish for @{ $server->{writers} };
	File::Path::remove_tree($server->{node}->data_dir);
}

# Faults of servers that lease their machine IDs

# A server does not renew its lease, since its registry worker is paused, and issues IDs meanwhile.  The
# server that waits claims its machine ID as soon as the lease has ended.
sub pause_registry_worker
{
	my ($server) = shuffle(lease_holders());
	my $worker = $server ? $fleet->registry_worker($server->{node}) : 0;

	return unless $worker;
	kill 'STOP', $worker;
	sleep $lease + rand $lease;
	kill 'CONT', $worker;
}

sub lease_holders
{
	return grep { ($_->{node}->psql('postgres', q{SELECT registry_state FROM pg_stat_snowflake WHERE generator = 'bigint'}))[1] eq 'held' } @servers;
}

# Two servers that have a lease, in any order.  After another fault this can take a while; none if it takes too long.
sub two_lease_holders
{
	for (1 .. 40)
	{
		my @holders = shuffle(lease_holders());

		return @holders if @holders == 2;
		sleep 0.5;
	}
	return;
}

# A server loses its machine ID to another server, and is given the machine ID of a third one, while some of its
# sessions are paused while they take a batch (bench/pause.c), each at another instruction.  The others issue IDs with
# the same times.
sub pass_on_machine_ids
{
	my ($server, $other) = two_lease_holders() or return;
	my ($waiting) = grep { $_ != $server && $_ != $other } @servers;
	my @loads = ([ load($server, 12) ], [ load($other, 4) ], [ load($waiting, 4) ]);

	sleep 1;
	for (1 .. 4)
	{
		my @sessions = sessions_of_load($server);

		pause_in_take_batch(@sessions);
		end_registry_worker($server);
		sleep 0.5;
		end_registry_worker($other);
		sleep 0.6;
		kill 'CONT', @sessions;
		sleep rand 0.5;
		($other, $waiting) = ($waiting, $other);
	}
	unlink map { $_->[0] } @loads;
	wait_until(sub { my @sessions = map { sessions_of_load($_) } @servers; kill 'TERM', @sessions; !@sessions });
	$_->finish for map { @{ $_->[1] } } @loads;
}

# Sessions of a role of their own, which issue a few IDs in each tick until they are terminated.  A session that has an
# error connects again.
sub load
{
	my ($server, $count) = @_;
	my $script = "\\set ON_ERROR_STOP on\n" . "COPY (SELECT snowflake_nextvals(4) FROM generate_series(1, 5000) WHERE pg_sleep(0.0001) IS NOT NULL) TO STDOUT;\n" x 1000;

	return start_writers($server->{node}->connstr('postgres') . ' user=load', ($script) x $count);
}

sub sessions_of_load
{
	my ($server) = @_;

	return children(postmaster($server->{node}), 'load postgres \[local\]');
}

# Pause sessions as soon as they take a batch, after a random number of instructions.
sub pause_in_take_batch
{
	my $library = `pg_config --pkglibdir` =~ s/\n//r . '/snowflake.so';
	my ($start, $length) = `nm -S $library` =~ /^(\w+) (\w+) t take_batch$/m or die "take_batch is not in $library";

	$paused++ if run_log([ "$scratch/pause", $library, $start, $length, 300, int(rand 2**31), @_ ]);
}

sub end_registry_worker
{
	my ($server) = @_;
	my $worker = $fleet->registry_worker($server->{node});

	kill 'TERM', $worker if $worker;
}

# A copy of the data directory, as it is while the server does not run, runs beside it for a while.
sub copy_server
{
	my ($server) = @_;
	my $copy = { %$server, name => 'copy' . ++$number, clock => TestClock->new };

	any(1, 0) ? crash($server->{node}) : $server->{node}->stop;
	$copy->{node} = $fleet->copy_of($server->{node}, $copy->{name});
	restart($_) for $server, $copy;
	beside($server, $copy);
}

# A standby is promoted, and runs beside its primary for a while.
sub promote_standby
{
	my ($server) = @_;
	my $standby = { %$server, name => 'standby' . ++$number, clock => TestClock->new };

	$standby->{node} = standby_of({ %$server, clock => $standby->{clock} }, PostgreSQL::Test::Cluster->new($standby->{name}));
	sleep rand 1;
	$standby->{node}->promote;
	beside($server, $standby);
}

# Then one of the two is removed.
sub beside
{
	my ($server, $other) = @_;

	with_writers($other);
	sleep rand 2 * $lease;
	@servers = map { $_ == $server ? $other : $_ } @servers if any(0, 1);
	end_server((grep { $_ == $other } @servers) ? $server : $other);
}

# Faults of the registry

my $backup;

sub restore_registry
{
	my $before = $registry->{node};

	unless ($backup)
	{
		$backup = 'backup' . ++$number;
		$before->backup($backup);
		return;
	}
	$before->stop(any('fast', 'immediate'));
	$registry->{node} = $fleet->restored($before, $backup, 'restored' . ++$number, recovery => 1);
	File::Path::remove_tree($before->data_dir, $before->backup_dir . "/$backup");
	undef $backup;
}

# The standby lags if its primary is stopped before it has received all.
sub fail_over_registry
{
	my ($port) = grep { $_ != $registry->{node}->port } @ports;
	my $standby = standby_of($registry, PostgreSQL::Test::Cluster->new('place' . (2 + ++$number), port => $port));
	my ($receiver) = any(0, 1) ? children(postmaster($standby), 'walreceiver') : ();

	if ($receiver)
	{
		kill 'STOP', $receiver;
		sleep rand 2 * $lease;
		$registry->{node}->stop('immediate');
		kill 'CONT', $receiver;
	}
	take_place_of($registry, $standby, $receiver ? 'immediate' : any('fast', 'immediate'));
	undef $backup;
}

# The server that has a machine ID of its own, without a registry, is not copied: that would make a second server with its
# number.
my %faults = (
	faults_of(sub { @servers, $fixed }, %faults_of_a_server),
	faults_of(sub { @servers }, 'copy a server' => \&copy_server, 'promote a standby of a server' => \&promote_standby),
	faults_of(sub { $fixed }, 'kill the server without a lease' => \&kill_server),
	faults_of(sub { $registry }, 'stop the registry' => \&stop_server, 'kill the registry' => \&kill_server,
		'pause the registry' => \&pause_server, 'set the clock of the registry' => \&set_clock,
		'restore the registry' => \&restore_registry, 'fail over the registry' => \&fail_over_registry),
	'pause a registry worker' => \&pause_registry_worker,
	'pass on machine IDs' => \&pass_on_machine_ids);

# Some faults are more frequent, since an ID is repeated only if two servers, or a server before and after a crash, then
# issue IDs with the same times.  After a crash this is possible for the server without a lease; another one begins a lease
# that is after the one it had.  A run begins with these, so that a short one has them too.
inject($seconds, 0.5, \%faults, [ 'pass on machine IDs', 'kill the server without a lease', 'pause a registry worker' ],
	sort(keys %faults), ('pause a registry worker') x 7, ('kill the server without a lease') x 2, 'pass on machine IDs');

# There are fewer machine IDs than servers: in the end one after the other runs alone.
push @servers, $fixed;
$_->{clock}->set(0) for @servers, $registry;
$_->{node}->stop('immediate', fail_ok => 1) for @servers;
for my $server (@servers)
{
	restart($server);
	$fleet->begins_to_issue($server->{node}, "$server->{name} issues IDs in the end");
	end_server($server);
}
note(fault_counts());
diag('no session was paused while it took a batch; perhaps ptrace is not permitted') unless $paused;
$fleet->check($seconds * 1000, 'all servers');
done_testing();
