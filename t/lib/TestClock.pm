# A wall clock that a test can step, and a slow disk (clock.c), for the servers that it starts.
package TestClock;

use File::Basename;
use SnowflakeTest;
use Time::HiRes qw(time);

my $source = dirname(__FILE__) . '/clock.c';
my $library;
my $clocks = 0;

# A clock that is correct.
sub new
{
	my ($class) = @_;

	unless ($library)
	{
		$library = "$scratch/testclock.so";
		system_or_bail('cc', '-shared', '-fPIC', '-O1', '-o', $library, $source, '-ldl');
	}
	my $self = bless { file => "$scratch/testclock." . $clocks++, offset => 0 }, $class;
	$self->set(0);
	$self->thaw;
	$self->set_monotonic(0);
	$self->fill_disk(0);
	$self->slow_disk(0);
	return $self;
}

# Set how many seconds the clock is off, from now on, in all processes.
sub set
{
	my ($self, $seconds) = @_;

	$self->{offset} = $seconds;
	$self->put(0, $seconds);
}

# Set how many seconds the monotonic clock is off; the clock since the machine booted is not.
sub set_monotonic
{
	my ($self, $seconds) = @_;

	$self->put(16, $seconds);
}

# Whether writes of WAL fail, as if the disk were full.
sub fill_disk
{
	my ($self, $full) = @_;

	$self->put(24, $full ? 1 : 0);
}

# Set how many seconds each flush of WAL takes.  The server needs fsync = on.
sub slow_disk
{
	my ($self, $seconds) = @_;

	$self->put(32, $seconds);
}

# Let the clock stand still at a number of microseconds since 1970, and set the monotonic clock off by another number.  That
# one runs on.
sub stand_at
{
	my ($self, $wall, $monotonic) = @_;

	$self->put_number(8, 1000 * $wall);
	$self->put_number(16, 1000 * $monotonic);
}

# Write one of the file's numbers.
sub put
{
	my ($self, $position, $seconds) = @_;

	$self->put_number($position, int($seconds * 1e9));
}

sub put_number
{
	my ($self, $position, $number) = @_;

	open(my $file, -e $self->{file} ? '+<' : '>', $self->{file}) or die "$self->{file}: $!";
	binmode $file;
	sysseek($file, $position, 0);
	syswrite($file, pack('q', $number), 8) == 8 or die "$self->{file}: $!";
	close $file;
}

# Let the clock stand still, as it is now or at a time, which is returned; and let it run again as
# if it had not been stopped.
sub freeze
{
	my ($self, $time) = @_;

	$time //= time + $self->{offset};
	$self->{stands_at} = $time;
	$self->put(8, $time);
	return $time;
}

sub thaw
{
	my ($self) = @_;

	$self->put(8, 0);
}

# Let the clock run again from the time at which it stands still.
sub run_on
{
	my ($self) = @_;

	$self->set($self->{stands_at} - time);
	$self->thaw;
}

sub step
{
	my ($self, $seconds) = @_;

	$self->set($self->{offset} + $seconds);
}

# Start a server under this clock, now and each time.
sub start
{
	my ($self, $server) = @_;

	$server->{clock} = $self;
	return $server->start;
}

# Call a function whose processes are under this clock.
sub under
{
	my ($self, $function) = @_;

	local $ENV{LD_PRELOAD} = $library;
	local $ENV{SNOWFLAKE_TEST_CLOCK} = $self->{file};
	return $function->();
}

1;
