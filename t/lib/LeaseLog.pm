# A registry, the servers that hold its leases ("holders"), by their names, and all the leases that it has granted:
# leases of one machine ID must not overlap.
package LeaseLog;

use strict;
use warnings;

# The length of leases in seconds, the longest that is allowed: on the slowest machine none ends before
# the clock is moved forward.
our $lease = 600;

# By how many seconds clocks may differ: more than a call takes, on the slowest machine.
our $skew = 10;

my $us = '(extract(epoch FROM %s) * 1000000)::bigint';
my $holders_made = 0;

# Of a registry in a database, which may grant leases of that length.
sub new
{
	my ($class, $server, $database) = @_;

	$server->safe_psql($database, "SELECT snowflake_registry.configure('$lease s', '$skew s')");
	return bless { server => $server, database => $database, holders => {}, leases => {} }, $class;
}

# The same registry as it is elsewhere, with all that was granted until now.
sub moved
{
	my ($self, $server, $database) = @_;

	return bless {
		server => $server, database => $database // $self->{database},
		holders => { map { $_ => { %{ $self->{holders}{$_} } } } keys %{ $self->{holders} } },
		leases => { map { $_ => [ @{ $self->{leases}{$_} } ] } keys %{ $self->{leases} } } }, ref $self;
}

sub holder
{
	my ($self, $name) = @_;

	return $self->{holders}{$name} //= { token => sprintf('%032x', ++$holders_made), known => 0 };
}

# Query the registry's database.
sub query
{
	my ($self, $query) = @_;

	return $self->{server}->safe_psql($self->{database}, $query);
}

# Call claim or renew, and record the answer.  Returns the refusal.
sub call
{
	my ($self, $name, $call) = @_;
	my $holder = $self->holder($name);
	my $columns = join ', ', 'machine_id', sprintf($us, 'lease_from'), sprintf($us, 'lease_until'), 'lease_number', 'refusal';
	my ($id, $from, $until, $number, $refusal) = split /\|/, $self->query("SELECT $columns FROM snowflake_registry.$call"), -1;

	return $refusal if $refusal ne '';
	my $granted = $self->{leases}{"$holder->{token} $id $from"} //= [ $id, $from, $until, $name ];
	$granted->[2] = $until;
	@{$holder}{ 'id', 'from', 'until', 'known' } = ($id, $from, $until, $number);
	return '';
}

sub claim
{
	my ($self, $name, $for) = @_;
	my $holder = $self->holder($name);

	$for //= "$lease s";
	return $self->call($name, "claim('$holder->{token}', 'any', 10, NULL, '$for', clock_timestamp(), '$name', $holder->{known})");
}

sub instant
{
	my ($number) = @_;

	return "'1970-01-01Z'::timestamptz + $number * interval '1 us'";
}

sub renew
{
	my ($self, $name) = @_;
	my $holder = $self->holder($name);
	my ($from, $until) = (instant($holder->{from}), instant($holder->{until}));

	return $self->call($name,
		"renew('$holder->{token}', $holder->{id}, $from, $until, '$lease s', clock_timestamp(), '$name', $holder->{known})");
}

# Holders renew their leases.  Returns the refusals, or what has changed.
sub all_renew
{
	my ($self, @names) = @_;
	my @held = map { "$_->{id} $_->{from}" } @{ $self->{holders} }{@names};
	my $refused = join '', map { $self->renew($_) } @names;
	my @renewed = map { "$_->{id} $_->{from}" } @{ $self->{holders} }{@names};

	return $refused ne '' ? $refused : "@held" eq "@renewed" ? '' : "@renewed, not @held";
}

# Give back the rest of a lease, of which a tenth of a second was used.
sub release
{
	my ($self, $name) = @_;
	my $holder = $self->holder($name);
	my $used = $holder->{from} + 100_000;

	$self->query("SELECT snowflake_registry.release('$holder->{token}', @{[instant($used)]}, $holder->{known})");
	$self->{leases}{"$holder->{token} $holder->{id} $holder->{from}"}[2] = $used;
}

# The machine ID that a holder has.
sub machine_id { return $_[0]->{holders}{ $_[1] }{id}; }

# The machine IDs of all holders.
sub machine_ids
{
	my ($self) = @_;

	return join ' ', map { "$_ $self->{holders}{$_}{id}" } sort keys %{ $self->{holders} };
}

# The pairs of leases that overlap.
sub overlaps
{
	my ($self) = @_;
	my @leases = sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } values %{ $self->{leases} };
	my @found;

	for my $i (0 .. $#leases)
	{
		my ($id, $from, $until, $name) = @{ $leases[$i] };
		push @found, map { "$name, $_->[3]: machine ID $id" }
		  grep { $_->[0] == $id && $_->[1] < $until && $from < $_->[2] } @leases[ $i + 1 .. $#leases ];
	}
	return "@found";
}

1;
