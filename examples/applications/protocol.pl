#!/usr/bin/env perl
# Tests generators of applications step by step: generator.mjs, generator.py and generator.go, or another one.
#
# Packages: python3-psycopg nodejs npm
#
#	examples/run applications/protocol.pl
#	SNOWFLAKE_GENERATOR='ruby /path/to/generator.rb' examples/run applications/protocol.pl
#	SNOWFLAKE_SCENARIOS='release fork' examples/run applications/protocol.pl
#	SNOWFLAKE_TEST_MISTAKES=1 examples/run applications/protocol.pl
#
# In each scenario the registry is a script (t/lib/ScriptedRegistry.pm, which describes the statements that it can read),
# and the clock stands still until the scenario moves it, so that the text of each call and each ID are known in advance.
# A wait of the generator ends in real time, since its monotonic clock runs on from where the scenario sets it.  The leases
# last for 1000 seconds, so that the real time of a scenario is no part of them worth mentioning.
#
# conformance.pl describes what a generator has to do as a program, and tests it with true registries and faults.
#
# With SNOWFLAKE_TEST_MISTAKES, each mistake of the file "mistakes" is then planted in generator.py, and the scenario that it
# names has to fail for the reason that it names.  If that is an event that does not come, it is awaited for 10 seconds.
# Two scenarios are not deterministic: the scenario of threads can miss that a lock is missing, and the scenario of
# pauses measures time, and can miss that a pause is too short.
use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use FalseRegistry;
use Generators;
use ScriptedRegistry;
use SnowflakeTest;
use TestClock;
use File::Path;
use IO::Select;
use IPC::Open2;
use POSIX ();
use Time::HiRes qw(time);

my $began = 1_767_225_600;    # when scenarios begin, in seconds since 1970
my $lease = 1000;
my $patience = $PostgreSQL::Test::Utils::timeout_default;

# The layout of most scenarios.
my %sonyflake = (text => 'epoch=2014-09-01T00:00:00Z tick=10ms timestamp=39 sequence=8 machine=16', epoch => 1_409_529_600_000_000, tick => 10_000,
	fields => [ timestamp => 39, sequence => 8, machine => 16 ]);

#
# The parts of a scenario
#

my ($language, %command);
my $awaited = qr/(?!)/;    # the reason for which a mistake has to fail
my ($clock, $registry, @registries, @all_registries, @generators);
my $automatic;    # answers all calls

sub microseconds { return sprintf('%.0f', ($began + $_[0]) * 1_000_000); }

# Set the wall clock, and the monotonic one to as many seconds after the beginning, or to another number, which never decreases.
sub at
{
	my ($wall, $monotonic) = @_;

	$clock->stand_at(microseconds($wall), sprintf('%.0f', 1_000_000 * ($monotonic // $wall)));
}

sub new_registry
{
	push @all_registries, ScriptedRegistry->new(@_);
	return $all_registries[-1];
}

# Serve the registries until a condition is met.
sub await
{
	my ($what, $condition) = @_;
	my $deadline = time + ("not met in time: $what" =~ /^$awaited/ ? 10 : $patience);
	my $result;

	until ($result = $condition->())
	{
		die "not met in time: $what\n" if time > $deadline;
		my $select = IO::Select->new(map({ $_->handles } @registries), map { $_->{out} } grep { !$_->{has_ended} } @generators);
		for my $handle ($select->can_read(0.05))
		{
			my ($generator) = grep { $_->{out} == $handle } @generators;

			$generator ? receive($generator) : $_->serve($handle) for $generator ? 1 : grep { grep { $_ == $handle } $_->handles } @registries;
		}
		next unless $automatic;
		for my $one (@registries)
		{
			while (my $call = $one->take)
			{
				$automatic->($one, $call);
			}
		}
	}
	return $result;
}

# Start a generator.
sub generator
{
	my (%options) = @_;
	my $layout = $options{layout} // \%sonyflake;
	my $generator = { buffer => '', lines => [], layout => $layout };
	my $address = $options{address} // 'postgresql:///registry?host=' . $registry->{directory} . '&port=5432&user=test';
	local @ENV{qw(SNOWFLAKE_REGISTRY SNOWFLAKE_LAYOUT SNOWFLAKE_LEASE SNOWFLAKE_HOLDER SNOWFLAKE_MAX_WAIT)} =
	  ($address, $options{name} // $layout->{text}, $lease, 'holder', 0.3);

	$generator->{pid} = $clock->under(sub { open2($generator->{out}, $generator->{in}, @{ $command{$language} }) });
	push @generators, $generator;
	return $generator;
}

sub end_generator
{
	my ($generator) = @_;

	kill 'KILL', $generator->{pid};
	waitpid $generator->{pid}, 0;
	@generators = grep { $_ != $generator } @generators;
}

sub receive
{
	my ($generator) = @_;

	sysread($generator->{out}, $generator->{buffer}, 65536, length $generator->{buffer}) or $generator->{has_ended} = 1;
	push @{ $generator->{lines} }, $1 while $generator->{buffer} =~ s/^(.*)\n//;
}

sub tell_generator
{
	my ($generator, $command) = @_;

	syswrite($generator->{in}, "$command\n");
}

# How many bytes of its commands it has not read yet (FIONREAD).
sub unread
{
	my ($generator) = @_;
	my $count = pack('i', 0);

	ioctl($generator->{in}, 0x541b, $count) or die "ioctl: $!";
	return unpack('i', $count);
}

sub answer_of
{
	my ($generator) = @_;

	return await('an answer of the generator', sub { die "the generator has ended\n" if $generator->{has_ended}; shift @{ $generator->{lines} } });
}

# The answer to a command.
sub says
{
	my ($generator, $command) = @_;

	tell_generator($generator, $command);
	return answer_of($generator);
}

# The next call, which must be of this name.
sub call
{
	my ($name, $from) = @_;
	my $call = await("a call of $name", sub { ($from // $registry)->take });

	die "the generator calls $call->{name}, and not $name\n" if $call->{name} ne $name;
	die "the generator does not compare the identity\n" unless $call->{is_careful};
	return $call;
}

sub equals
{
	my ($what, $is, $expected) = @_;

	die "$what is " . ($is // 'null') . ", and not $expected\n" unless ($is // 'null') eq $expected;
}

# Check arguments of a call.
sub has
{
	my ($call, %expected) = @_;

	equals($_ eq 'name' ? 'the call' : "$_ of $call->{name}()", $call->{$_}, $expected{$_}) for sort keys %expected;
	return $call;
}

# Answer a call by a lease of machine ID 5 from the beginning, with number 7, or others; or by a refusal.
sub grant
{
	my ($call, %other) = @_;
	my %lease = (machine_id => 5, from => 0, until => $lease, number => 7, %other);

	($call->{registry} // $registry)->answer_call($call, $lease{machine_id}, microseconds($lease{from}), microseconds($lease{until}), $lease{number}, 0, undef, undef);
}

sub refuse
{
	my ($call) = @_;

	$registry->answer_call($call, undef, undef, undef, undef, 0, 'not today', undef);
}

# All calls fail from now on.
sub out_of_order
{
	$automatic = sub { $_[0]->fail_call($_[1], '57P03', 'the database system is shutting down') };
}

# The position of an ID, as text.
sub position
{
	my ($generator, $id) = @_;
	my @fields = @{ $generator->{layout}{fields} };
	my %values;

	while (@fields)
	{
		my ($name, $bits) = splice @fields, -2;

		$values{$name} = $id & ((1 << $bits) - 1);
		$id >>= $bits;
	}
	return "tick $values{timestamp} sequence $values{sequence} machine $values{machine}";
}

sub tick_of
{
	my ($generator, $seconds) = @_;

	return POSIX::floor((microseconds($seconds) - $generator->{layout}{epoch}) / $generator->{layout}{tick});
}

# An answer is one ID.
sub is_id
{
	my ($generator, $answer, $seconds, $sequence, $machine) = @_;

	die "no ID: $answer\n" unless $answer =~ /^\d+$/;
	equals('the ID', position($generator, $answer), 'tick ' . tick_of($generator, $seconds) . " sequence $sequence machine " . ($machine // 5));
	return $answer;
}

sub is_error
{
	my ($answer, $sqlstate) = @_;

	die "not the error $sqlstate: " . substr($answer, 0, 200) . "\n" unless $answer =~ /^error (?:$sqlstate) /;
}

# Ask for an ID until there is one, because an answer of the registry has to reach the generator first.
sub first_id
{
	my ($generator, $machine) = @_;

	return await('an ID', sub {
		my $answer = says($generator, 'next 1');

		return $answer if $answer !~ /^error/ && (!$machine || position($generator, $answer) =~ /machine $machine$/);
		return 0;
	});
}

# A generator with a lease, that has issued an ID.
sub generator_with_lease
{
	my (%options) = @_;
	my $generator = generator(%options);

	my $claim = call('claim');
	$generator->{token} = $claim->{token};
	grant($claim);
	is_id($generator, first_id($generator), 0, 0);
	return $generator;
}

#
# The scenarios
#

my @scenarios = (

	# A registry that does not answer: a connection ends after some seconds, before it is established and during a call.
	silence => sub {
		$registry->{is_silent} = 1;
		my $generator = generator();
		my $first = await('a connection', sub { (values %{ $registry->{clients} })[0] });
		await('the end of a connection that is not established', sub { !$registry->has($first) });
		$registry->{is_silent} = 0;
		my $claim = call('claim');
		await('the end of a call', sub { !$registry->has($claim->{client}) });
		my $again = has(call('claim'), token => $claim->{token});
		grant($again);
		is_id($generator, first_id($generator), 0, 0);
	},

	# Calls that are refused, fail, or are cut off, are repeated after times that grow.
	pauses => sub {
		my $generator = generator();
		my $answered;
		for my $number (0 .. 3)
		{
			my $claim = call('claim');
			die "the generator asks again after " . (time - $answered) . " s\n" if $number && time - $answered < 0.0625 * 2**$number;
			refuse($claim) if $number == 0;
			$registry->fail_call($claim, '53300', 'sorry, too many clients already') if $number == 1;
			$registry->cut($claim->{client}) if $number == 2;
			grant($claim) if $number == 3;
			$answered = time;
			is_error(await('an error without a lease', sub { my $answer = says($generator, 'next 1'); $answer =~ /before the first/ ? 0 : $answer }), '55000') if $number == 0;
		}
		is_id($generator, first_id($generator), 0, 0);
	},

	# The first call, and the first ID.
	claim => sub {
		my $generator = generator();
		my $claim = has(call('claim'), layout => $sonyflake{text}, machine_bits => 16, wanted => 'null', lease => $lease, clock => microseconds(0),
			holder => 'holder', known => 0);
		die "the token is no uuid: $claim->{token}\n" unless $claim->{token} =~ /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;
		is_error(says($generator, 'next 1'), '55000');
		grant($claim);
		is_id($generator, first_id($generator), 0, 0);
		is_id($generator, says($generator, 'next 1'), 0, 1);
	},

	# Epochs with a fraction, ticks of other lengths, and fields in another order.
	layouts => sub {
		for my $layout (
			{ text => 'epoch=2010-11-04T01:42:54.657Z tick=1ms timestamp=41 machine=10 sequence=12', epoch => 1_288_834_974_657_000, tick => 1000,
				fields => [ timestamp => 41, machine => 10, sequence => 12 ] },
			{ text => 'epoch=2024-01-01T00:00:00.000001Z tick=250us timestamp=45 sequence=8 machine=10', epoch => 1_704_067_200_000_001, tick => 250,
				fields => [ timestamp => 45, sequence => 8, machine => 10 ] },
			{ text => 'epoch=2024-01-01T00:00:00Z tick=1s timestamp=33 machine=8 sequence=20', epoch => 1_704_067_200_000_000, tick => 1_000_000,
				fields => [ timestamp => 33, machine => 8, sequence => 20 ] })
		{
			my $generator = generator(layout => $layout);
			my $claim = has(call('claim'), layout => $layout->{text}, machine_bits => { @{ $layout->{fields} } }->{machine});
			grant($claim, from => -1);
			is_id($generator, first_id($generator), 0, 0);
			is_id($generator, says($generator, 'next 1'), 0, 1);
			end_generator($generator);
		}
	},

	# Layouts by name; one without machine IDs is refused.
	presets => sub {
		my $generator = generator(name => 'sonyflake');
		my $claim = has(call('claim'), layout => $sonyflake{text}, machine_bits => 16);
		grant($claim);
		is_id($generator, first_id($generator), 0, 0);
		end_generator($generator);
		for my $name ('mastodon', 'no such layout', 'epoch=1970-01-01T00:00:00Z tick=1ms timestamp=47 sequence=16')
		{
			my $without = generator(name => $name);
			await("the end of a generator for the layout $name", sub { $without->{has_ended} });
			end_generator($without);
		}
	},

	# The timestamp has no more bits.
	exhausted => sub {
		my $generator = generator(layout => { %sonyflake, text => 'epoch=2014-09-01T00:00:00Z tick=1s timestamp=20 sequence=8 machine=16' });
		grant(call('claim'));
		is_error(await('another error', sub { my $answer = says($generator, 'next 1'); $answer =~ /^error 55000/ ? 0 : $answer }), '2200H');
	},

	# A tick is used up.
	sequence => sub {
		my $generator = generator_with_lease();
		my @ids = split / /, says($generator, 'next 255');
		is_id($generator, $ids[$_], 0, $_ + 1) for 0 .. 254;
		is_error(says($generator, 'next 1'), '53400');
		at(0.01);
		is_id($generator, says($generator, 'next 1'), 0.01, 0);
		is_error(says($generator, 'next 256'), '53400');    # the other 255 are lost
		is_error(says($generator, 'next 1'), '53400');
	},

	# The clock is set back, and forward again.
	clock_back => sub {
		my $generator = generator_with_lease();
		at(-1, 0);
		is_error(says($generator, 'next 1'), '53400');
		at(0);
		is_id($generator, says($generator, 'next 1'), 0, 1);
		at(5, 0);
		is_id($generator, says($generator, 'next 1'), 5, 0);
		at(4, 0);
		is_error(says($generator, 'next 1'), '53400');
	},

	# A lease ends by the wall clock.
	lease_end => sub {
		my $generator = generator_with_lease();
		out_of_order();
		at($lease - 0.01, 0);
		is_id($generator, says($generator, 'next 1'), $lease - 0.01, 0);
		at($lease, 0);
		is_error(says($generator, 'next 1'), '55000');
		at($lease - 0.01, 0);
		is_id($generator, says($generator, 'next 1'), $lease - 0.01, 1);
	},

	# A lease ends by the monotonic clock, because the wall clock was set back, or stood still.
	monotonic_end => sub {
		my $generator = generator_with_lease();
		out_of_order();
		at(1, 0.8 * $lease);
		is_id($generator, says($generator, 'next 1'), 1, 0);
		at(1, $lease);
		is_error(says($generator, 'next 1'), '55000');
	},

	# The duration of the call is part of the lease.
	slow_answer => sub {
		my $generator = generator_with_lease();
		at(500);
		my $renew = call('renew');
		at(500, 503);
		grant($renew, until => 500 + $lease, number => 8);
		$automatic = sub { $_[0]->fail_call($_[1], '57P03', 'the database system is shutting down') };
		at(1200, 503);
		is_id($generator, first_id($generator), 1200, 0);
		at(1200, 1500);
		is_error(says($generator, 'next 1'), '55000');
	},

	# A lease that begins later, and within a tick.
	later_start => sub {
		my $generator = generator();
		grant(call('claim'), from => 2.005);
		at(1);
		is_error(await('the lease', sub { my $answer = says($generator, 'next 1'); $answer =~ /before the first/ ? 0 : $answer }), '53400');
		at(2);
		is_error(says($generator, 'next 1'), '53400');
		at(2.01);
		is_id($generator, says($generator, 'next 1'), 2.01, 0);
	},

	# Before half of the lease is over, by either clock, it is renewed.
	renewal => sub {
		my $generator = generator_with_lease();
		at(500);
		grant(
			has(call('renew'), token => $generator->{token}, machine_id => 5, lease_from => microseconds(0), lease_until => microseconds($lease),
				lease => $lease, clock => microseconds(500), holder => 'holder', known => 7),
			until => 1500,
			number => 9);
		at(1100, 500);
		is_id($generator, first_id($generator), 1100, 0);
		grant(has(call('renew'), lease_until => microseconds(1500), known => 9, clock => microseconds(1100)), until => 2400, number => 10);
		at(1600, 500);
		is_id($generator, first_id($generator), 1600, 0);

		# the generator can read the clock once more before the attempt is over
		my ($monotonic, $next) = (500, 0);
		my $renew = await('a renewal by the monotonic clock', sub {
			($next, $monotonic) = (time + 2, $monotonic + 500) if time > $next;
			at(1600, $monotonic);
			return $registry->take;
		});
		has($renew, name => 'renew', lease_until => microseconds(2400), known => 10, clock => microseconds(1600));
	},

	# The answer to a renewal is lost.
	lost_renewal => sub {
		my $generator = generator_with_lease();
		at(500);
		my $renew = call('renew');
		$registry->cut($renew->{client});
		is_id($generator, says($generator, 'next 1'), 500, 0);
		grant(has(call('renew'), token => $generator->{token}, machine_id => 5, lease_from => microseconds(0), lease_until => microseconds($lease), known => 7),
			until => 1500, number => 9);
		at(1200, 500);
		is_id($generator, first_id($generator), 1200, 0);
	},

	# The answer to a claim is lost.
	lost_claim => sub {
		my $generator = generator();
		my $claim = call('claim');
		$registry->cut($claim->{client});
		my $again = has(call('claim'), token => $claim->{token}, known => 0);
		grant($again);
		is_id($generator, first_id($generator), 0, 0);
	},

	# A renewal is refused: the rest of the lease is used, and the claim states the greatest lease number.
	refused_renewal => sub {
		my $generator = generator_with_lease();
		at(500);
		refuse(call('renew'));
		refuse(has(call('claim'), token => $generator->{token}, known => 7, clock => microseconds(500)));
		refuse(call('renew'));    # so the answer has arrived
		at(600, 500);
		is_id($generator, says($generator, 'next 1'), 600, 0);
		out_of_order();
		at($lease, 500);
		is_error(says($generator, 'next 1'), '55000');
	},

	# The next lease is of another machine ID, and contains ticks that are used.
	other_lease => sub {
		my $generator = generator_with_lease();
		at(500);
		my $renew = call('renew');
		is_id($generator, says($generator, 'next 1'), 500, 0);
		refuse($renew);
		grant(call('claim'), machine_id => 6, from => 400, until => 1500, number => 9);
		await('the other lease', sub {
			my $answer = says($generator, 'next 1');
			die 'an ID of the new lease in a tick that is used: ' . position($generator, $answer) . "\n" if $answer !~ /^error/ && position($generator, $answer) =~ /machine 6$/;
			return $answer =~ /^error 53400/;
		});
		at(500.01);
		is_id($generator, says($generator, 'next 1'), 500.01, 0, 6);
	},

	# Another registry is asked for nothing.
	identity => sub {
		my $generator = generator_with_lease();
		$registry->{identity} = 43;
		my $identified = $registry->{identified};
		at(500);
		await('two attempts at another registry', sub {
			my $call = $registry->take;
			die $call->{is_careful} ? "another registry is asked for $call->{name}\n" : "the generator does not compare the identity\n" if $call;
			return $registry->{identified} >= $identified + 2;
		});
		$registry->{identity} = 42;
		grant(has(call('renew'), known => 7), until => 1500, number => 9);
		at(1200, 500);
		is_id($generator, first_id($generator), 1200, 0);
	},

	# Answers that are no leases.
	invalid => sub {
		my $generator = generator();
		grant(call('claim'), machine_id => 65536);
		grant(call('claim'), until => -1);
		$registry->answer_call(call('claim'), (undef) x 7);
		is_error(says($generator, 'next 1'), '55000');
		grant(call('claim'), machine_id => 65535);
		is_id($generator, first_id($generator), 0, 0, 65535);
	},

	# Answers that are no messages of the protocol.
	nonsense => sub {
		my $generator = generator();
		for my $bytes (message('T', "\0\xff"), message('D', "\0"), '!' x 100)
		{
			my $claim = call('claim');
			ScriptedRegistry::put($claim->{client}, $bytes);
			$registry->cut($claim->{client});
		}
		grant(call('claim'));
		is_id($generator, first_id($generator), 0, 0);
	},

	# The rest of the lease is released, from the end of the last tick that was used.
	release => sub {
		my $generator = generator_with_lease();
		at(0.5);
		is_id($generator, says($generator, 'next 1'), 0.5, 0);
		at(3);
		tell_generator($generator, 'close');
		my $release = has(call('release'), token => $generator->{token}, known => 7, used_until => microseconds(0.51));
		die "the generator does not wait for the release\n" if @{ $generator->{lines} };
		$registry->answer_call($release, (undef) x 5, '', undef);
		equals('the answer', answer_of($generator), 'closed');
		is_error(says($generator, 'next 1'), '55000');
		equals('the second answer', says($generator, 'close'), 'closed');
		die "a second call\n" if $registry->take;
	},

	# The last tick is used up.
	release_of_full_tick => sub {
		my $generator = generator_with_lease();
		says($generator, 'next 255');
		tell_generator($generator, 'close');
		has(call('release'), used_until => microseconds(0.01));
	},

	# No ID was issued.
	release_unused => sub {
		my $generator = generator();
		grant(call('claim'));
		at(500, 0);
		refuse(call('renew'));    # so the lease has arrived
		refuse(call('claim'));
		tell_generator($generator, 'close');
		my $until = call('release')->{used_until};
		die "used until $until\n" unless $until eq '-infinity' || $until <= microseconds(0);
	},

	# A lease that is granted while the generator is closed is released.
	close_during_claim => sub {
		my $generator = generator();
		my $claim = call('claim');
		tell_generator($generator, 'close');
		await('the end of the command', sub { !unread($generator) });
		grant($claim);
		my $release = has(call('release'), token => $claim->{token}, known => 7);
		$registry->answer_call($release, (undef) x 5, '', undef);
		equals('the answer', answer_of($generator), 'closed');
		is_error(says($generator, 'next 1'), '55000');
	},

	# A process that is started again has nothing of the previous one.
	restart => sub {
		my $first = generator_with_lease();
		end_generator($first);
		my $second = generator();
		my $claim = call('claim');
		die "the token is the token of the previous process\n" if $claim->{token} eq $first->{token};
		is_error(says($second, 'next 1'), '55000');
	},

	# A child process does not use the lease.
	fork => sub {
		my $generator = generator_with_lease();
		my $answer = says($generator, 'fork 1');
		is_error($answer, '55000') if $answer ne 'none';
		is_id($generator, says($generator, 'next 1'), 0, 1);
	},

	# Threads take IDs at the same time, of one tick.
	threads => sub {
		my $generator = generator(layout => { text => 'epoch=2024-01-01T00:00:00Z tick=1s timestamp=33 machine=8 sequence=20', epoch => 1_704_067_200_000_000,
				tick => 1_000_000, fields => [ timestamp => 33, machine => 8, sequence => 20 ] });
		grant(call('claim'), from => -1);
		is_id($generator, first_id($generator), 0, 0);
		my @ids = sort { $a <=> $b } split / /, says($generator, 'threads 4 20000');
		equals('the number of IDs', scalar @ids, 80000);
		equals('the last ID', $ids[-1] - $ids[0], 79999);
		for my $index (1 .. $#ids)
		{
			die "$ids[$index] is issued twice\n" if $ids[$index] == $ids[ $index - 1 ];
		}
	},

	# With a single file descriptor that is free, some calls fail; later ones do not.
	descriptors => sub {
		my $generator = generator();
		refuse(call('claim'));
		my @descriptors;
		await('the end of the connection', sub {
			@descriptors = glob "/proc/$generator->{pid}/fd/*";
			return !$registry->open_now && !grep { (readlink($_) || "") =~ /^socket:/ } @descriptors;
		});
		my %used = map { $_ => 1 } map { m{(\d+)$} } @descriptors;
		my ($limit, $free) = (0, 0);
		$free += !$used{ $limit++ } while $free < 1;
		$limit++ while $used{$limit};
		system_or_bail('prlimit', '--pid', $generator->{pid}, "--nofile=$limit:");
		$automatic = sub { refuse($_[1]) };
		my $asked = $registry->asked;
		await('two more connections', sub { $registry->asked >= $asked + 2 });
		undef $automatic;
		system_or_bail('prlimit', '--pid', $generator->{pid}, '--nofile=1024:');
		await('a lease', sub { my $claim = $registry->take or return 0; eval { grant($claim); 1 }; 1 });
		$automatic = sub { $_[1]{name} eq 'claim' && grant($_[1]) };
		is_id($generator, first_id($generator), 0, 0);
	},

	# An address with two hosts, of which the first is a standby, and then does not exist.
	hosts => sub {
		my ($first, $second) = @registries = map { new_registry(tcp => 1) } 1 .. 2;
		my $address = "postgresql://test\@$first->{host},$second->{host}/registry?sslmode=disable&target_session_attrs=read-write";
		$automatic = sub {
			my ($asked, $call) = @_;

			return $asked->fail_call($call, '25006', 'cannot execute UPDATE in a read-only transaction') if $asked == $first;
			$registry = $second;
			grant($call);
		};
		my $generator = generator(address => $address);
		is_id($generator, first_id($generator), 0, 0);
		end_generator($generator);
		close $first->{listener};
		@registries = ($second);
		$generator = generator(address => $address);
		is_id($generator, first_id($generator), 0, 0);
	},
);

#
# All of them in parallel, each in a process
#

my %scenario = @scenarios;
my @names = grep { !ref } @scenarios;
@names = split ' ', $ENV{SNOWFLAKE_SCENARIOS} if $ENV{SNOWFLAKE_SCENARIOS};

# In a child process: the exit status is 0 if the scenario has passed, and otherwise the file says why not.
sub run_scenario
{
	my ($name, $file) = @_;

	my $passed = eval
	{
		$clock = TestClock->new;
		$clock->{file} .= ".$$";    # others have the same number
		$clock->put($_, 0) for 0, 8, 16, 24, 32;
		$registry = new_registry();
		@registries = ($registry);
		at(0);
		$scenario{$name}->();
		1;
	};
	append_to_file($file, $@) unless $passed;
	kill 'KILL', map { $_->{pid} } @generators;
	rmtree([ map { $_->{directory} } @all_registries ]);
	POSIX::_exit($passed ? 0 : 1);
}

my $number = 0;
my %reason;    # for which a scenario has to fail, by the name of a mistake

# Run jobs, each [ language, scenario ], some at a time; a function is called with each job and its error, if any.
sub run_jobs
{
	my ($report, @jobs) = @_;
	my %running;

	while (@jobs || %running)
	{
		while (@jobs && keys %running < 6)
		{
			my $job = shift @jobs;
			my $file = "$scratch/job." . $number++;
			my $child = fork() // die "cannot fork: $!";

			if (!$child)
			{
				$language = $job->[0];
				$awaited = qr/$reason{$language}/ if $reason{$language};
				run_scenario($job->[1], $file);
			}
			$running{$child} = [ $job, $file ];
		}
		my $child = waitpid(-1, 0);
		my $ended = delete $running{$child} or next;
		my $passed = $? == 0;
		$report->($ended->[0], $passed ? undef : -s $ended->[1] ? slurp_file($ended->[1]) : 'the process has crashed');
	}
}

%command = generator_commands();
TestClock->new;    # builds the library
run_jobs(sub { my ($job, $error) = @_; ok(!defined $error, "$job->[0]: $job->[1]") or diag($error) },
	map { my $name = $_; map { [ $_, $name ] } sort keys %command } @names);

# The mistakes, each a generator of its own.
sub mistakes
{
	my $generator = slurp_file("$FindBin::RealBin/generator.py");
	my @jobs;

	for my $record (split /\n{2,}/, slurp_file("$FindBin::RealBin/mistakes"))
	{
		my ($name, $scenario, $reason) = $record =~ /^([a-z]\w+) (\w+) (.*)$/m or next;
		my $text = $generator;

		for my $hunk (split /^@@\n/m, "$record\n")
		{
			my @lines = grep { /^[-+ ]/ } split /^/m, $hunk;
			my $before = join '', map { /^[- ](.*)/s } @lines;
			my $after = join '', map { /^[+ ](.*)/s } @lines;
			my $count = () = $text =~ /^\Q$before\E/mg;

			fail("$name can be planted") if $count != 1;
			$text =~ s/^\Q$before\E/$after/m;
		}
		append_to_file("$scratch/$name.py", $text);
		$command{$name} = python_command("$scratch/$name.py");
		$reason{$name} = $reason;
		push @jobs, [ $name, $scenario ];
	}
	return @jobs;
}

if ($command{Python} && $ENV{SNOWFLAKE_TEST_MISTAKES})
{
	run_jobs(sub { my ($job, $error) = @_; like($error // '', qr/^$reason{ $job->[0] }/, "$job->[1] finds the mistake $job->[0]") }, mistakes());
}
done_testing();
