# A false registry whose answers the test gives one by one, for clients that use any driver: it reads the parameters of
# each call to snowflake_registry, and answers only when the test says so.  It has no process of its own: the test
# calls handles() and serve().
#
# It does not run SQL.  A call is a statement with claim(...), renew(...) or release(...), of which each argument has at most
# one parameter or literal: times are in microseconds since 1970, and lengths in seconds.  Its condition
# "identity() = $n" is evaluated.  A statement with identity() alone returns the identity, and any other one nothing.
package ScriptedRegistry;

use strict;
use warnings;

use FalseRegistry;
use IO::Socket::INET;

our @ISA = ('FalseRegistry');

my %arguments_of = (
	claim => [qw(token layout machine_bits wanted lease clock holder known)],
	renew => [qw(token machine_id lease_from lease_until lease clock holder known)],
	release => [qw(token used_until known)],
);

# The columns of an answer, and their types: integer, bigint and text.
my ($integer, $bigint, $text) = (23, 20, 25);
my @answer = ($integer, $bigint, $bigint, $bigint, $bigint, $text, $bigint);

# With a port of 127.0.0.1 if tcp is set.
sub new
{
	my ($class, %options) = @_;
	my $self = $class->SUPER::new;

	$self->{identity} = $options{identity} // 42;
	$self->{clients} = {};
	$self->{calls} = [];
	$self->{identified} = 0;    # how often only the identity was the answer
	if ($options{tcp})
	{
		$self->{listener} = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 10) // die "cannot listen: $!";
		$self->{host} = '127.0.0.1:' . $self->{listener}->sockport;
	}
	return $self;
}

# How many connections were opened, and how many are open.
sub asked { return $_[0]{opened} // 0; }
sub open_now { return scalar keys %{ $_[0]{clients} }; }

sub has { return exists $_[0]{clients}{ $_[1]{socket} }; }

# What the test waits for, and what to do when some of it can be read.
sub handles { return ($_[0]{listener}, map { $_->{socket} } values %{ $_[0]{clients} }); }

sub serve
{
	my ($self, $handle) = @_;

	if ($handle == $self->{listener})
	{
		my $socket = $handle->accept or return;
		$self->{opened}++;
		$self->{clients}{$socket} = { socket => $socket, in => '' };
		return;
	}
	my $client = $self->{clients}{$handle} // return;
	return $self->cut($client) unless sysread($handle, $client->{in}, 65536, length $client->{in});
	$self->read_messages($client);
}

# Close a connection.
sub cut
{
	my ($self, $client) = @_;

	delete $self->{clients}{ $client->{socket} };
	close $client->{socket};
}

sub put
{
	my ($client, @messages) = @_;

	local $SIG{PIPE} = 'IGNORE';
	syswrite($client->{socket}, join '', @messages);
}

# Read all complete messages, up to a call that is not answered yet.
sub read_messages
{
	my ($self, $client) = @_;

	until ($client->{call} || $self->{is_silent})
	{
		my $start = $client->{is_started} ? 1 : 0;
		last if length $client->{in} < $start + 4;
		my $length = unpack('N', substr($client->{in}, $start, 4));
		last if length $client->{in} < $start + $length;
		my $message = substr($client->{in}, 0, $start + $length, '');
		$start ? $self->read_message($client, substr($message, 0, 1), substr($message, 5)) : $self->start($client, substr($message, 4));
	}
}

my %parameters = (server_version => '15.0', server_encoding => 'UTF8', client_encoding => 'UTF8', DateStyle => 'ISO, MDY', TimeZone => 'UTC',
	default_transaction_read_only => 'off', in_hot_standby => 'off', integer_datetimes => 'on', standard_conforming_strings => 'on');
my $ready = message('Z', 'I');

# A startup packet, or a request for encryption, which is declined.
sub start
{
	my ($self, $client, $body) = @_;

	return put($client, 'N') if unpack('N', $body) >> 16 == 1234;
	$client->{is_started} = 1;
	put($client, message('R', pack('N', 0)), (map { message('S', "$_\0$parameters{$_}\0") } sort keys %parameters), message('K', pack('NN', 1, 1)), $ready);
}

sub read_message
{
	my ($self, $client, $type, $body) = @_;

	return $self->cut($client) if $type eq 'X';
	if ($type eq 'S')
	{
		delete $client->{failed};
		return put($client, $ready);
	}
	return if $client->{failed};
	if ($type eq 'P')
	{
		my ($name, $query) = unpack('Z*Z*', $body);
		$client->{statements}{$name} = $query;
		put($client, message('1', ''));
	}
	elsif ($type eq 'B')
	{
		my ($portal, $name) = unpack('Z*Z*', $body);
		$client->{portals}{$portal} = $self->bind($client->{statements}{$name}, $body);
		put($client, message('2', ''));
	}
	elsif ($type eq 'D')
	{
		my ($kind, $name) = unpack('aZ*', $body);
		my $query = $kind eq 'S' ? $client->{statements}{$name} : $client->{portals}{$name}{query};
		my @types = map { /::integer/ ? $integer : /::bigint/ ? $bigint : $text } map { ($query =~ /(\$$_\b(?:::\w+)?)/)[0] // '' } 1 .. count_parameters($query);
		put($client, message('t', pack('n/N*', @types))) if $kind eq 'S';
		put($client, description($query, $kind eq 'S' ? [] : $client->{portals}{$name}{formats}));
	}
	elsif ($type eq 'E')
	{
		$self->execute($client, $client->{portals}{ unpack('Z*', $body) });
	}
	elsif ($type eq 'Q')
	{
		my $portal = { query => unpack('Z*', $body), values => [], formats => [], is_simple => 1 };
		put($client, description($portal->{query}, [])) if columns($portal->{query});
		$self->execute($client, $portal);
	}
	elsif ($type eq 'C')
	{
		put($client, message('3', ''));
	}
}

sub count_parameters
{
	my ($query) = @_;
	my $count = 0;

	$_ > $count and $count = $_ for $query =~ /\$(\d+)/g;
	return $count;
}

sub columns
{
	my ($query) = @_;

	return $query =~ /\b(?:claim|renew|release)\(/ ? @answer : $query =~ /\bidentity\(/ ? ($bigint) : ();
}

sub description
{
	my ($query, $formats) = @_;
	my @columns = columns($query);
	my @names = @columns == 1 ? ('identity') : qw(machine_id lease_from lease_until lease_number skew refusal free_at);

	return message('n', '') unless @columns;
	return message('T', pack('n', scalar @columns) . join '', map { "$names[$_]\0" . pack('NnNnNn', 0, 0, $columns[$_], 0xffff, 0xffffffff, format_of($formats, $_)) } 0 .. $#columns);
}

sub format_of
{
	my ($formats, $number) = @_;

	return @$formats == 1 ? $formats->[0] : $formats->[$number] // 0;
}

# The values of a statement's parameters, as text.
sub bind
{
	my ($self, $query, $body) = @_;
	my ($portal, $statement) = unpack('Z*Z*', $body);
	my $at = length($portal) + length($statement) + 2;
	my $number = sub { my $value = unpack("x$at $_[0]", $body); $at += $_[1]; return $value };
	my @formats = map { $number->('n', 2) } 1 .. $number->('n', 2);
	my @values;

	for my $index (0 .. $number->('n', 2) - 1)
	{
		my $length = $number->('l>', 4);
		push @values, undef;
		next if $length < 0;
		my $value = substr($body, $at, $length);
		$at += $length;
		$values[$index] = format_of(\@formats, $index) ? unpack({ 2 => 's>', 4 => 'l>', 8 => 'q>' }->{$length} // 'H*', $value) : $value;
	}
	return { query => $query, values => \@values, formats => [ map { $number->('n', 2) } 1 .. $number->('n', 2) ] };
}

# The arguments of a call, as far as the parenthesis that ends it.
sub arguments
{
	my ($name, $query, $values) = @_;
	my ($call) = $query =~ /\b$name(\((?:[^()']|'[^']*'|(?1))*\))/ or die "cannot read the call of $name: $query";
	my @texts = substr($call, 1, -1) =~ /((?:[^,()']|'[^']*'|\((?:[^()']|'[^']*')*\))+)/g;
	my %arguments;

	@arguments{ @{ $arguments_of{$name} } } = map {
		    /\$(\d+)/ ? $values->[ $1 - 1 ]
		  : /^\s*NULL/i ? undef
		  : /'(-?infinity)'/ ? $1
		  : /^\s*'([^']*)'|(-?\d+)/ ? $1 // $2
		  : $_
	} @texts;
	return %arguments;
}

sub execute
{
	my ($self, $client, $portal) = @_;
	my $query = $portal->{query};
	my ($name) = $query =~ /\b(claim|renew|release)\(/;
	my ($expected) = map { /\$(\d+)/ ? $portal->{values}[ $1 - 1 ] // '' : $_ } $query =~ /identity\(\) *= *(\$?\d+)/;
	my $call = { client => $client, portal => $portal };

	if (!$name)
	{
		$client->{is_known} = ++$self->{identified} if columns($query);
		return $self->answer_call($call, columns($query) ? $self->{identity} : ());
	}
	if (defined $expected && $expected ne $self->{identity})
	{
		$self->{identified}++;
		return $self->answer_call($call, undef, undef, undef, $self->{identity}, undef, undef, undef);
	}
	$client->{call} = { %$call, name => $name, is_careful => $client->{is_known} || defined $expected, arguments($name, $query, $portal->{values}) };
	push @{ $self->{calls} }, $client->{call};
}

# The next call that is not taken yet.
sub take { return shift @{ $_[0]{calls} }; }

# Answer a call by the values of its columns.
sub answer_call
{
	my ($self, $call, @values) = @_;
	my ($client, $portal) = @$call{qw(client portal)};
	my @columns = columns($portal->{query});
	my $number = 0;
	my @fields = map {
		my $is_binary = format_of($portal->{formats}, $number);
		my $type = $columns[ $number++ ];
		!defined $_ ? pack('N', 0xffffffff) : pack('N/a*', !$is_binary || $type == $text ? $_ : pack($type == $integer ? 'l>' : 'q>', $_));
	} @values;

	put($client, @values ? message('D', pack('n', scalar @fields) . join '', @fields) : (), message('C', @values ? "CALL\0" : "SET\0"), $portal->{is_simple} ? $ready : ());
	$self->continue_with($client);
}

# Answer a call by an error.
sub fail_call
{
	my ($self, $call, $sqlstate, $text) = @_;
	my $client = $call->{client};

	put($client, message('E', "SERROR\0VERROR\0C$sqlstate\0M$text\0\0"), $call->{portal}{is_simple} ? $ready : ());
	$client->{failed} = 1 unless $call->{portal}{is_simple};
	$self->continue_with($client);
}

sub continue_with
{
	my ($self, $client) = @_;

	return unless delete $client->{call};
	$self->read_messages($client);
}

1;
