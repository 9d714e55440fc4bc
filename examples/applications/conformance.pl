#!/usr/bin/env perl
# Tests generators of applications against a registry: generator.mjs, generator.py and generator.go, or another one.
# protocol.pl tests each of their calls.
#
# Packages: python3-psycopg nodejs npm
#
#	examples/run applications/conformance.pl
#	SNOWFLAKE_TEST_SECONDS=600 examples/run applications/conformance.pl
#	SNOWFLAKE_GENERATOR='ruby /path/to/generator.rb' examples/run applications/conformance.pl
#
# Several processes of each language, and two servers with the extension, lease their machine IDs from one registry.
# Each fault happens once, and with SNOWFLAKE_TEST_SECONDS at random for that time.  Afterwards no ID has been issued
# twice, the IDs of a process have increased, and each was in a lease of its process, as the log of the registry shows.
# A language that is not installed is skipped.  For Go, install golang-go and golang-github-lib-pq-dev.
#
# A generator is a program, which finds in its environment
#
#	SNOWFLAKE_REGISTRY    connection string of the registry, a URL, possibly with several hosts
#	SNOWFLAKE_LAYOUT      definition of the layout, or the name of a preset
#	SNOWFLAKE_LEASE       length of the lease, in seconds
#	SNOWFLAKE_HOLDER      name of the holder
#	SNOWFLAKE_MAX_WAIT    longest wait of a call, in seconds; 5 if it is not set
#	SNOWFLAKE_TEST_CLOCK  name of a file that begins with three numbers of nanoseconds (64 bits, signed, little-endian): what
#	                      is to be added to the wall clock; the time since 1970 at which that stands still, unless it is 0;
#	                      and what is to be added to the monotonic clock.  A program that reads its clocks by the C library
#	                      need not read the file, because LD_PRELOAD (t/lib/clock.c) does that; programs in Go have to
#
# It reads the clocks at least every second while it waits, since the test moves them.  It exits if it cannot use the layout.
# It reads lines from its standard input, and answers each by one line, flushed:
#
#	next N       N IDs, in ascending order, separated by spaces; or "error SQLSTATE MESSAGE"
#	threads P N  N IDs for each of P threads that run at the same time, in any order
#	fork N       as next N, by a child process, which fork() has made; or "none" if the language has no fork()
#	close        "closed", after the release of the lease; no more IDs are issued
use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use Fleet;
use Generators;
use SnowflakeTest;
use TestClock;
use IO::Select;
use IPC::Open2;
use List::Util qw(max shuffle);
use Time::HiRes qw(time);

my $lease = 2;     # s
my $skew = 2;      # s
my $layout = 'epoch=2014-09-01T00:00:00Z tick=10ms timestamp=39 sequence=8 machine=16';
my $epoch = 1409529600 * 1_000_000;    # us
my $tick = 10_000;                     # us
my $seconds = $ENV{SNOWFLAKE_TEST_SECONDS} // 0;
my $each = $seconds ? 4 : 2;
my $patience = $PostgreSQL::Test::Utils::timeout_default;

# The registry has an address that does not change when another server takes its place.  It logs each lease when the
# transaction that grants it commits.
my $fleet = Fleet->new;
my $registry = $fleet->registry;
my @registries = ($registry);
my $address = PostgreSQL::Test::Utils::tempdir_short();

sub lead_to
{
	my ($server) = @_;

	unlink "$address/.s.PGSQL.5432";
	symlink($server->host . '/.s.PGSQL.' . $server->port, "$address/.s.PGSQL.5432") or die $!;
}

my $user = getpwuid($<);
lead_to($registry);
$registry->safe_psql('postgres', "SELECT snowflake_registry.configure('$lease s', '$skew s')");
$registry->safe_psql('postgres', q{
	CREATE FUNCTION log_lease() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		RAISE LOG 'lease of % from % until % % "%"', NEW.machine_id, (extract(epoch FROM NEW.lease_from) * 1000000)::bigint,
			(extract(epoch FROM NEW.lease_until) * 1000000)::bigint,
			CASE WHEN NEW.token IS NULL THEN 'released' ELSE 'held' END, NEW.holder;
		RETURN NULL;
	END $$;
	CREATE CONSTRAINT TRIGGER log_lease AFTER INSERT OR UPDATE ON snowflake_registry.machine
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_lease()});

# The standby of the registry, or the next one.
sub make_standby
{
	my $number = @registries;
	my $standby = PostgreSQL::Test::Cluster->new("standby$number");

	$registry->backup("backup$number");
	$standby->init_from_backup($registry, "backup$number", has_streaming => 1);
	$standby->start;
	return $standby;
}

my $standby = make_standby();

# All leases that were granted: by machine ID, lists of the beginning, the end and the holder.
my %leases;
my %read;

sub read_leases
{
	for my $log (map { $_->logfile } @registries)
	{
		open(my $file, '<', $log) or die "$log: $!";
		seek($file, $read{$log} // 0, 0);
		while (my $line = <$file>)
		{
			last unless $line =~ /\n\z/;
			$read{$log} = tell $file;
			my ($id, $from, $until, $state, $holder) = $line =~ /lease of (\d+) from (-?\d+) until (-?\d+) (\w+) "(.*)"$/ or next;
			my ($granted) = grep { $_->{from} == $from && $_->{holder} eq $holder } @{ $leases{$id} };
			push @{ $leases{$id} }, $granted = { from => $from, until => $until, holder => $holder } unless $granted;
			$granted->{until} = $until if $state eq 'released' || $granted->{until} < $until;
		}
		close $file;
	}
}

# The end of the last lease of a holder, in seconds since 1970.
sub end_of_lease
{
	my ($process) = @_;

	read_leases();
	return max(0, map { $_->{until} } grep { $_->{holder} eq $process->{holder} } map { @$_ } values %leases) / 1_000_000;
}

# Whether the time of an ID is in a lease of its machine ID, of holders whose names match a pattern.
sub is_leased
{
	my ($id, $holder) = @_;
	my $time = ($id >> 24) * $tick + $epoch;

	return grep { $_->{from} <= $time && $time < $_->{until} && $_->{holder} =~ $holder } @{ $leases{ $id & 0xffff } // [] };
}

my %commands = generator_commands();

# Processes of generators.
my @processes;
my $started = 0;
my $select = IO::Select->new;
my (%issued, %faults, %outside, @not_increasing, @unexpected, %file_of);

sub start_process
{
	my ($language) = @_;
	my $process = { language => $language, holder => "$language " . $started++, clock => TestClock->new, buffer => '', next => 0, last => 0, };

	$file_of{ $process->{holder} } = "$scratch/ids." . $process->{holder} =~ s/ //r;
	open($process->{file}, '>', $file_of{ $process->{holder} }) or die $!;
	local @ENV{qw(SNOWFLAKE_REGISTRY SNOWFLAKE_LAYOUT SNOWFLAKE_LEASE SNOWFLAKE_HOLDER)} =
	  ("postgresql:///postgres?host=$address&port=5432&user=$user", $layout, $lease, $process->{holder});
	$process->{pid} = $process->{clock}->under(sub { open2($process->{out}, $process->{in}, @{ $commands{$language} }) });
	$select->add($process->{out});
	push @processes, $process;
	return $process;
}

# A process has ended, or does so at the end of its input.  A line that was cut off is not an answer.
sub forget_process
{
	my ($process) = @_;

	close $process->{in};
	receive($process);
	waitpid $process->{pid}, 0;
	$select->remove($process->{out});
	close $_ for @$process{qw(out file)};
	@processes = grep { $_ != $process } @processes;
}

sub send_command
{
	my ($process, $command) = @_;

	syswrite($process->{in}, "$command\n");
	$process->{sent} = $command;
}

# Read all that a process has written.
sub receive
{
	my ($process) = @_;

	while (IO::Select->new($process->{out})->can_read(0))
	{
		sysread($process->{out}, $process->{buffer}, 65536, length $process->{buffer}) or last;
	}
	take_answer($process, $1) while $process->{buffer} =~ s/^(.*)\n//;
}

sub take_answer
{
	my ($process, $answer) = @_;

	$process->{answered} = $answer =~ /^closed$/ ? 'closed' : $answer =~ /^error (\w+)/ ? $1 : 'issued';
	$process->{next} = time + 0.1;
	$process->{sent} = '';
	push @unexpected, "$process->{holder}: $answer" unless $answer =~ /^(closed|error (53400|55000) .*|\d+( \d+)*)$/;
	return if $process->{answered} ne 'issued';
	for my $id (split / /, $answer)
	{
		# now, because a renewal can extend the lease later
		read_leases() if !is_leased($id, qr/^$process->{holder}$/);
		push @{ $outside{ $process->{language} } }, $id if !is_leased($id, qr/^$process->{holder}$/);
		push @not_increasing, "$process->{holder}: $id after $process->{last}" if $id <= $process->{last};
		$process->{last} = $id;
		$issued{ $process->{language} }++;
		print { $process->{file} } "$id\n";
	}
}

# Let all processes issue IDs until a condition is met.
my @counts = (1, 50, 600);

sub pump
{
	my ($what, $condition) = @_;
	my $deadline = time + $patience;

	until ($condition->())
	{
		die "not met in time: $what\n" if time > $deadline;
		for my $process (@processes)
		{
			send_command($process, 'next ' . $counts[ rand @counts ]) if !$process->{sent} && $process->{next} < time;
		}
		my %ready = map { fileno($_) => 1 } $select->can_read(0.02);
		receive($_) for grep { $ready{ fileno $_->{out} } } @processes;
		for my $process (@processes)
		{
			die "$process->{holder} has ended\n" if waitpid($process->{pid}, 1) != 0;
		}
	}
}

# Wait until processes have answered in some way from now on.
sub answers
{
	my ($how, @of) = @_;

	delete $_->{answered} for @of;
	my %waiting = map { $_->{holder} => $_ } @of;
	pump("$how: " . join(', ', map { $_->{holder} } @of), sub {
		for my $process (values %waiting)
		{
			delete $waiting{ $process->{holder} } if ($process->{answered} // '') =~ /^$how$/;
		}
		return !%waiting;
	});
}

# Wait until processes that cannot renew their leases have raised an error; or, if they wrongly issue IDs, long enough for
# these to be outside of the leases.
sub ends_lease
{
	my (@of) = @_;

	delete $_->{answered} for @of;
	pump('the end of the leases', sub {
		return !grep { ($_->{answered} // '') !~ /^5/ && time < end_of_lease($_) + 1 } @of;
	});
}

# The faults.  Each one happens to a process of each language, to all, or to the registry, and all processes issue IDs
# again when it is over.
sub one_of_each
{
	my %first;

	$first{ $_->{language} } //= $_ for shuffle @processes;
	return values %first;
}

sub replace
{
	my (@ended) = @_;

	forget_process($_) for @ended;
	start_process($_->{language}) for @ended;
}

my %do = (
	kill => sub {
		my @killed = one_of_each();

		kill 'KILL', map { $_->{pid} } @killed;
		replace(@killed);
	},
	close => sub {
		my @closed = one_of_each();

		pump('all have answered', sub { !grep { $_->{sent} } @closed });
		send_command($_, 'close') for @closed;
		answers('closed', @closed);
		replace(@closed);
	},
	stop => sub {
		my @stopped = one_of_each();

		kill 'STOP', map { $_->{pid} } @stopped;
		my $end = max(map { end_of_lease($_) } @stopped);
		pump('the leases have ended', sub { time > $end });
		kill 'CONT', map { $_->{pid} } @stopped;
	},
	clock_back => sub {
		my @behind = one_of_each();

		$_->{clock}->set(-$lease - $skew) for @behind;
		ends_lease(@behind);
		$_->{clock}->set(0) for @behind;
	},
	clock_ahead => sub {
		my @ahead = one_of_each();

		$_->{clock}->set($lease + $skew) for @ahead;
		ends_lease(@ahead);
		$_->{clock}->set(0) for @ahead;
	},
	clock_step => sub {
		my @ahead = one_of_each();

		$_->{clock}->set(1) for @ahead;
		answers('issued', @ahead);
		$_->{clock}->set(0) for @ahead;
	},
	away => sub {
		$registry->stop('immediate');
		ends_lease(@processes);
		$registry->start;
	},
	hangs => sub {
		my @hanging = (postmaster($registry), children(postmaster($registry)));

		kill 'STOP', @hanging;
		ends_lease(@processes);
		kill 'CONT', reverse @hanging;
	},
	failover => sub {
		$registry->stop('immediate');
		$standby->promote;
		$registry = $standby;
		push @registries, $registry;
		lead_to($registry);
		$standby = make_standby() if $seconds;
	},
);

sub fault
{
	my ($kind) = @_;

	$do{$kind}->();
	answers('issued', @processes);
	$faults{$kind}++;
}

# All of it, with two servers that lease from the same registry.
my $began = time;
my @lines = ("snowflake.registry = 'host=$address port=5432 dbname=postgres user=$user'", "snowflake.registry_lease = $lease",
	"snowflake.layout = 'sonyflake'");
my @servers = map { $fleet->server($_, lines => \@lines) } ('one', 'two');
for my $server (@servers)
{
	$fleet->begins_to_issue($server, 'the server ' . $server->name . ' issues IDs');
	$fleet->start_writer($server);
}
for my $language (sort keys %commands)
{
	start_process($language) for 1 .. $each;
}
answers('issued', @processes);
fault($_) for ('clock_step', 'kill', 'close', 'stop', 'clock_back', 'clock_ahead', 'away', 'failover');
fault((sort keys %do)[ rand keys %do ]) while time < $began + $seconds;
kill 'KILL', map { $_->{pid} } @processes;
forget_process($_) for my @all = @processes;
$fleet->stop_writers;

# After a release, the lease ends earlier.
sub check_leases
{
	my ($name, $holder, @files) = @_;

	for my $file (@files)
	{
		open(my $ids, '<', $file) or die $!;
		while (my $id = <$ids>)
		{
			chomp $id;
			next if $id !~ /^\d+$/;
			push @{ $outside{$name} }, $id if !is_leased($id, $holder);
		}
		close $ids;
	}
}

read_leases();
check_leases('servers', qr/^(one|two) \(/, @{ $fleet->{files} });
check_leases($_ =~ s/ .*//r, qr/^$_$/, $file_of{$_}) for sort keys %file_of;
cmp_ok($issued{$_}, '>', 1000, "$_: $issued{$_} IDs") for sort keys %commands;
is(scalar @{ $outside{$_} // [] }, 0, "$_: none is outside of the leases of its process")
  or diag($outside{$_}[0]) for sort('servers', keys %commands);
is("@not_increasing", '', 'the IDs of a process increase');
is("@unexpected", '', 'all errors follow the protocol');
none_is_issued_twice(10_000, 'processes and servers', values %file_of, @{ $fleet->{files} });
note(sprintf('%d s, %d processes; faults: %s', time - $began, $started, join(', ', map { "$_ $faults{$_}" } sort keys %faults)));
done_testing();

END { kill 'KILL', map { $_->{pid} } @processes; }
