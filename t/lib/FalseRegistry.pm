# What might answer at the address of a registry: a program that speaks PostgreSQL's protocol, and
# answers each query with any bytes.  It listens on a socket in a directory of its own.
package FalseRegistry;

use strict;
use warnings;

use Exporter 'import';
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use PostgreSQL::Test::Utils;

our @EXPORT = qw(message row rows);

my $ready = message('Z', 'I');
my $begin = message('1', '') . message('2', '');

# A message of the protocol.
sub message
{
	my ($type, $body) = @_;

	return $type . pack('N', 4 + length $body) . $body;
}

# An answer of rows of one number of columns, as lists of values; undef is null.
sub rows
{
	my ($columns, @rows) = @_;
	my $description = pack('n', $columns) . join('', map { "c$_\0" . pack('NnNnNn', 0, 0, 25, 0xffff, 0xffffffff, 0) } 1 .. $columns);
	my $data = join '', map { message('D', pack('n', scalar @$_) . join '', map { defined $_ ? pack('N', length $_) . $_ : pack('N', 0xffffffff) } @$_) } @rows;

	return $begin . message('T', $description) . $data . message('C', 'SELECT ' . @rows . "\0") . $ready;
}

sub row { return rows(scalar @_, [@_]); }

# An error.
sub failure
{
	my ($sqlstate, $text) = @_;

	return message('E', "SERROR\0VERROR\0C$sqlstate\0M$text\0\0") . $ready;
}

# A false registry that listens, and answers nothing yet.
sub new
{
	my ($class) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir_short();
	my $self = bless { directory => $directory, port => 5432, asked => "$directory/asked" }, $class;

	$self->{listener} = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => "$directory/.s.PGSQL.5432", Listen => 100)
	  // die "cannot listen at $directory: $!";
	append_to_file($self->{asked}, '');
	return $self;
}

sub conninfo { return "host=$_[0]{directory} port=$_[0]{port} dbname=registry"; }

# How many connections were opened.
sub asked { return -s $_[0]{asked}; }

# Answer from now on as told: start (of a connection), identity, claim, renew, release.  Each is a
# string, or a function that is called with the connection.
sub answer
{
	my ($self, %answers) = @_;

	$self->stop;
	pipe(my $test, $self->{alive}) or die "cannot make a pipe: $!";
	$self->{child} = fork() // die "cannot fork: $!";
	return if $self->{child};
	# no END block of the test runs in this process
	close delete $self->{alive};
	$SIG{PIPE} = 'IGNORE';
	$SIG{TERM} = sub { POSIX::_exit(0) };
	my $events = IO::Select->new($self->{listener}, $test);
	eval
	{
		# the pipe is readable when the test has ended, in whatever way
		$self->serve(\%answers) until grep { $_ == $test } $events->can_read;
		1;
	} or warn $@;
	POSIX::_exit(0);
}

sub stop
{
	my ($self) = @_;

	return unless $self->{child};
	kill 'TERM', $self->{child};
	waitpid $self->{child}, 0;
	delete @$self{qw(child alive)};
}

# Read this number of bytes; returns undef at the end.
sub receive
{
	my ($client, $length) = @_;
	my $bytes = '';

	while (length $bytes < $length)
	{
		return undef unless sysread($client, $bytes, $length - length $bytes, length $bytes);
	}
	return $bytes;
}

# Send an answer; returns whether the client has read it.
sub give
{
	my ($client, $answer) = @_;

	return $answer->($client) if ref $answer;
	while (length $answer)
	{
		my $written = syswrite($client, $answer) // return 0;

		substr($answer, 0, $written) = '';
	}
	return 1;
}

# Serve one connection.
sub serve
{
	my ($self, $answers) = @_;
	my $client = $self->{listener}->accept or die "accept: $!";
	my $query;

	append_to_file($self->{asked}, '.');
	defined receive($client, unpack('N', receive($client, 4) // return) - 4) or return;
	give($client, $answers->{start} // message('R', pack('N', 0)) . $ready) or return;
	while (defined(my $type = receive($client, 1)))
	{
		my $body = receive($client, unpack('N', receive($client, 4) // return) - 4) // return;

		($query) = $body =~ /snowflake_registry\.(claim|renew|release|identity)\(/ if $type =~ /[PQ]/;
		give($client, $answers->{$query} // failure('42883', "no $query")) or return if $type =~ /[SQ]/;
	}
}

1;
