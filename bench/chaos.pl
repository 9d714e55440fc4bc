# Random faults of a fleet and its registry: see bench/chaos, which runs this.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../t/lib";

use Fleet;
use List::Util qw(min shuffle);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use TestClock;
use Time::HiRes qw(time sleep);

my ($seconds, $seed, $pattern) = @ARGV;
my $lease = 4;            # s
my $greatest_skew = 2;    # s, which the registry allows
my $clock_off = 0.7;      # s, that the clock of a server with a lease, or of the registry, may be off
my $own_clock_off = 5;    # s, that the clock of a server without a lease may be off

# Three servers lease two machine IDs, so one of them always waits for a machine ID that another one loses.  A tick has so
# few IDs that each batch of type bigint has one ID, and a session takes a batch for each ID.  (Batches of type sno are
# large.)  The WAL writer writes seldom, so that only a flush keeps a reservation.
my @lines = ("snowflake.layout = 'epoch=2024-01-01 tick=100us timestamp=54 machine=2 sequence=6'", "snowflake.registry_lease = $lease",
	"snowflake.max_wait = '1s'", "snowflake.max_ahead = '2s'", 'restart_after_crash = on', 'wal_level = replica', "wal_writer_delay = '10s'", 'max_connections = 120');
my @not_leased = (2, 3);
my $own_machine_id = 3;

srand($seed);

my $registry_clock = TestClock->new;
my $fleet = Fleet->new($registry_clock);
my $registry = $fleet->registry;
my $second_place = $fleet->failover_to('place2');    # for its port
my @ports = ($registry->port, $second_place->port);
$registry->safe_psql('postgres', "SELECT snowflake_registry.configure('$lease s', '$greatest_skew s')");

# A server has a name, a clock and a node; one that is removed has ended.
$registry->safe_psql('postgres', "SELECT snowflake_registry.set_fixed($_)") for @not_leased;
my @servers = map { new_server("server$_") } 1 .. 3;
my $fixed = new_server('fixed', "snowflake.registry = ''", "snowflake.machine_id = $own_machine_id");
my $number = 0;
my $paused = 0;
my %count;

sub new_server
{
	my ($name, @more) = @_;
	my $clock = TestClock->new;
	my $node = $fleet->server($name, clock => $clock, lines => [ @lines, @more ]);

	$node->safe_psql('postgres', 'CREATE ROLE load SUPERUSER LOGIN');
	return with_writers({ name => $name, clock => $clock, node => $node });
}

# Sessions that issue IDs of a server until it is removed, whatever errors are raised: few at a time,
# so that a batch is never far from its end, many at a time, and by a session that stays.  (Linux divides
# processors among sessions of processes first, so that this process gets its share beside them, by setsid.)
sub with_writers
{
	my ($server) = @_;
	my $connection = $server->{node}->connstr('postgres');

	$server->{ended} = "$scratch/$server->{name}.ended";
	my @queries = ("SELECT snowflake_nextval();\nSELECT pg_sleep(0.002);\n" x 100, $fleet->query(50) . "SELECT pg_sleep(0.02);\n",
		"SELECT snowflake_nextval() FROM generate_series(1, 4000);\nSELECT sno_nextval() FROM generate_series(1, 500);\nSELECT pg_sleep(0.1);\n");
	for my $i (0 .. $#queries)
	{
		my $file = $fleet->new_file;

		append_to_file("$file.sql", $queries[$i] x 20);
		push @{ $server->{writers} },
		  IPC::Run::start([ 'setsid', 'sh', '-c', 'while [ -e "$2" ] && [ ! -e "$3" ]; do psql -XAtq -f "$2" "$1" || sleep 0.1; done >> "$4" 2> /dev/null',
				'writer', $connection, "$file.sql", $server->{ended}, $file ]);
		push @{ $server->{files} }, $file;
	}
	return $server;
}

sub end_server
{
	my ($server) = @_;

	append_to_file($server->{ended}, '');
	$server->{node}->stop('immediate', fail_ok => 1);
	$_->finish for @{ $server->{writers} };
	File::Path::remove_tree($server->{node}->data_dir);
}

# A server that does not run is started; one that has not recovered yet, or has ended itself, too.
sub start
{
	my ($server) = @_;

	$server->{node}->stop('immediate', fail_ok => 1);
	wait_until(sub { $fleet->start($server->{node}, $server->{clock}) || 1 });
}

sub processes { my ($node) = @_; return (postmaster($node), children(postmaster($node))); }

sub pause
{
	my ($node, $time) = @_;
	my @processes = processes($node);

	kill 'STOP', @processes;
	sleep $time;
	kill 'CONT', reverse @processes;
}

sub any { return $_[ int rand @_ ]; }

# Faults of a server

# While a server is down its clock is set back, by half of what it may be off or more, so that it starts at a time from
# which it has issued IDs.
sub set_clock_back { my ($server) = @_; $server->{clock}->set((rand(0.5) - 1) * clock_off($server)); }

sub clock_off { my ($server) = @_; return $server == $fixed ? $own_clock_off : $clock_off; }

sub kill_server
{
	my ($server) = @_;

	crash($server->{node});
	set_clock_back($server);
	start($server);
}

sub kill_backend
{
	my ($server) = @_;

	my $process = any(children(postmaster($server->{node}), 'postgres: .*\[local\]|snowflake')) or return;

	kill_process($server->{node}, $process, sub { set_clock_back($server) });
}

sub terminate_sessions
{
	my ($server) = @_;

	$server->{node}->psql('postgres', 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()');
}

sub stop_server { my ($server) = @_; $server->{node}->stop(any('fast', 'immediate')); sleep rand 2; start($server); }

sub pause_server { my ($server) = @_; pause($server->{node}, rand 1.5 * $lease); }

sub pause_session
{
	my ($server) = @_;
	my $process = any(children(postmaster($server->{node}), 'postgres: .*\[local\]')) or return;

	kill 'STOP', $process;
	sleep rand 1.5 * $lease;
	kill 'CONT', $process;
}

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

# A server loses its machine ID to another server, and is given that of a third one, while some of its sessions
# are paused while they take a batch (bench/pause.c), each at another instruction.  The others issue IDs with the
# same times.
sub pass_on_machine_ids
{
	my ($server, $other) = two_lease_holders() or return;
	my ($waiting) = grep { $_ != $server && $_ != $other } @servers;
	my @loads = (load($server, 12), load($other, 4), load($waiting, 4));

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
	unlink map { $_->{script} } @loads;
	wait_until(sub { my @sessions = map { sessions_of_load($_) } @servers; kill 'TERM', @sessions; !@sessions });
	$_->{run}->finish for @loads;
}

# Sessions of a role of their own, which issue a few IDs in each tick until their script is removed and they are
# terminated.  A session that has an error connects again.
sub load
{
	my ($server, $count) = @_;
	my @files = map { $fleet->new_file } 1 .. $count;
	my $script = "$files[0].sql";

	append_to_file($script,
		"\\set ON_ERROR_STOP on\n" . "COPY (SELECT snowflake_nextvals(4) FROM generate_series(1, 5000) WHERE pg_sleep(0.0001) IS NOT NULL) TO STDOUT;\n" x 1000);
	return { script => $script,
		run => IPC::Run::start([ 'sh', '-c', 'connection=$1; script=$2; shift 2; for file; do ' .
				'setsid sh -c \'while [ -e "$2" ]; do psql -XAtq -f "$2" "$1" || sleep 0.1; done >> "$3" 2> /dev/null\' load "$connection" "$script" "$file" & done; wait',
				'load', $server->{node}->connstr('postgres') . ' user=load', $script, @files ]) };
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

	$paused++ if run_log([ "$FindBin::RealBin/pause", $library, $start, $length, 300, int(rand 2**31), @_ ]);
}

sub end_registry_worker
{
	my ($server) = @_;
	my $worker = $fleet->registry_worker($server->{node});

	kill 'TERM', $worker if $worker;
}

sub set_clock { my ($server) = @_; $server->{clock}->set((rand(2) - 1) * clock_off($server)); }

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
	start($server);
}

sub set_floor
{
	my ($server) = @_;

	$server->{node}->psql('postgres', q{SELECT snowflake_set_floor(clock_timestamp() + interval '100 ms'), sno_set_floor(clock_timestamp() + interval '100 ms')});
}

# A copy of the data directory, as it is while the server does not run, beside it for a while.
sub copy_server
{
	my ($server) = @_;
	my $name = 'copy' . ++$number;

	any(1, 0) ? crash($server->{node}) : $server->{node}->stop;
	my $node = $fleet->copy_of($server->{node}, $name);
	start($server);
	beside($server, $name, $node);
}

# A standby is promoted beside its primary.
sub promote_standby
{
	my ($server) = @_;
	my $name = 'standby' . ++$number;

	$server->{node}->backup($name);
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init_from_backup($server->{node}, $name, has_streaming => 1);
	$fleet->start($node, $server->{clock});
	sleep rand 1;
	$node->promote;
	File::Path::remove_tree($server->{node}->backup_dir . "/$name");
	beside($server, $name, $node, 'runs');
}

# Two servers run beside each other for a while; then one of them is removed.
sub beside
{
	my ($server, $name, $node, $runs) = @_;
	my $other = { name => $name, clock => TestClock->new, node => $node };

	$fleet->start($node, $other->{clock}) unless $runs;
	with_writers($other);
	sleep rand 2 * $lease;
	if (any(0, 1))
	{
		my ($index) = grep { $servers[$_] == $server } 0 .. $#servers;

		$other->{clock} = $server->{clock} if $runs;
		$servers[$index] = $other;
		end_server($server);
	}
	else
	{
		end_server($other);
	}
}

# Faults of the registry

sub stop_registry
{
	$registry->stop(any('fast', 'immediate'));
	sleep rand 2 * $lease;
	$fleet->start($registry);
}

sub pause_registry { pause($registry, rand 1.5 * $lease); }

sub set_clock_of_registry { $registry_clock->set(rand(2 * $clock_off) - $clock_off); }

my $backup;

sub restore_registry
{
	unless ($backup)
	{
		$backup = 'backup' . ++$number;
		$registry->backup($backup);
		return;
	}
	my $before = $registry;

	$registry->stop(any('fast', 'immediate'));
	$registry = $fleet->restored($registry, $backup, 'restored' . ++$number, recovery => 1);
	File::Path::remove_tree($before->data_dir, $before->backup_dir . "/$backup");
	undef $backup;
}

# The standby lags if its primary was killed before it had received all.
sub fail_over_registry
{
	my $name = 'place' . (3 + ++$number);
	my ($port) = grep { $_ != $registry->port } @ports;
	my $before = $registry;
	my $standby = PostgreSQL::Test::Cluster->new($name, port => $port);

	$registry->backup($name);
	$standby->init_from_backup($registry, $name, has_streaming => 1);
	$standby->append_conf('postgresql.conf', "port = $port");
	$fleet->start($standby);
	if (any(0, 1))
	{
		my ($receiver) = children(postmaster($standby), 'walreceiver');

		kill 'STOP', $receiver if $receiver;
		sleep rand 2 * $lease;
		$registry->stop('immediate');
		kill 'CONT', $receiver if $receiver;
	}
	else
	{
		$registry->stop(any('fast', 'immediate'));
	}
	$standby->promote;
	$registry = $standby;
	File::Path::remove_tree($before->data_dir, $before->backup_dir . "/$name");
	undef $backup;
}

my %faults = (
	(map { $_->[0] => [ $_->[1], 1 ] }
		[ 'kill a server' => \&kill_server ],
		[ 'kill a process' => \&kill_backend ],
		[ 'terminate the sessions' => \&terminate_sessions ],
		[ 'stop a server' => \&stop_server ],
		[ 'pause a server' => \&pause_server ],
		[ 'pause a session' => \&pause_session ],
		[ 'set the clock of a server' => \&set_clock ],
		[ 'freeze the clock of a server' => \&freeze_clock ],
		[ 'fill the disk of a server' => \&fill_disk ],
		[ 'set the floor of a server' => \&set_floor ],
		[ 'copy a server' => \&copy_server ],
		[ 'promote a standby of a server' => \&promote_standby ]),
	(map { $_->[0] => [ $_->[1], 0 ] }
		[ 'pause a registry worker' => \&pause_registry_worker ],
		[ 'pass on machine IDs' => \&pass_on_machine_ids ],
		[ 'kill the server without a lease' => sub { kill_server($fixed) } ],
		[ 'stop the registry' => \&stop_registry ],
		[ 'pause the registry' => \&pause_registry ],
		[ 'set the clock of the registry' => \&set_clock_of_registry ],
		[ 'restore the registry' => \&restore_registry ],
		[ 'fail over the registry' => \&fail_over_registry ]));

# Faults of which the server that has a machine ID of its own, without a registry, is spared: they make a
# second server with its number.
my %beside = map { $_ => 1 } 'copy a server', 'promote a standby of a server';

# All faults, in an order of their own each time, until the time is over.  Some are more frequent, since an ID is
# repeated only if two servers, or a server before and after a crash, then issue IDs with the same times.  After a crash
# this is possible for the server without a lease; another one begins a lease that is after the one it had.  A run begins
# with these, so that a short one has them too.
my @first = ('pass on machine IDs', 'kill the server without a lease', 'pause a registry worker');
my @drawn = grep { !defined $pattern || /$pattern/ } sort(keys %faults), ('pause a registry worker') x 7, ('kill the server without a lease') x 2, 'pass on machine IDs';
my @order = grep { !defined $pattern || /$pattern/ } @first;
my $end = time + $seconds;
while (time < $end)
{
	@order = shuffle(@drawn) unless @order;
	my $name = shift @order;
	my ($fault, $of_server) = @{ $faults{$name} };
	my $server = $of_server ? any(@servers, $beside{$name} ? () : $fixed) : undef;

	note(sprintf '%6.1f s: %s', $seconds - ($end - time), $server ? "$name: $server->{name}" : $name);
	$fault->($server);
	$count{$name}++;
	sleep rand 0.5;
}

# There are fewer machine IDs than servers: in the end one after the other runs alone.
push @servers, $fixed;
$_->{clock}->set(0) for @servers;
$registry_clock->set(0);
$_->{node}->stop('immediate', fail_ok => 1) for @servers;
for my $server (@servers)
{
	start($server);
	$fleet->begins_to_issue($server->{node}, "$server->{name} issues IDs in the end");
	end_server($server);
}
diag(join ', ', map { "$_: " . ($count{$_} // 0) } sort keys %faults);
diag('no session was paused while it took a batch; perhaps ptrace is not permitted') if $count{'pass on machine IDs'} && !$paused;
$fleet->check($seconds * 1000, 'all servers');
done_testing();
