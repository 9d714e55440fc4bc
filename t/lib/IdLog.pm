# All the IDs that servers have issued in a test, and the properties that they must have: none is
# issued twice (P1), the time of each agrees with the clock (P2), and the IDs of a session increase (P3).  The layout
# is "twitter", and snowflake.max_ahead its default.
package IdLog;

use SnowflakeTest;

my $tick = 1000;    # us
my $max_ahead = 10_000;
my $epoch = 1288834974657000;

my $clock = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

# The columns of a table with the clock before and after each of its IDs, for make_tables.
my $columns = "(before bigint DEFAULT $clock, id bigint PRIMARY KEY DEFAULT snowflake_nextval(), after bigint DEFAULT $clock)";

sub new
{
	my ($class) = @_;

	return bless { seen => {}, untrue => 0, unordered => 0 }, $class;
}

# Two tables in each of two databases of a server.
my @databases = ('postgres', 'other');
my @tables = ('orders', 'items');

sub make_tables
{
	my ($self, $server) = @_;

	$server->safe_psql('postgres', 'CREATE DATABASE other');
	for my $database (@databases)
	{
		$server->safe_psql($database, 'CREATE EXTENSION IF NOT EXISTS snowflake');
		$server->safe_psql($database, "CREATE TABLE $_ $columns") for @tables;
	}
}

# The query that issues a number of IDs, for record.
sub query
{
	my ($self, $count) = @_;

	return "SELECT $clock, snowflake_nextval(), $clock FROM generate_series(1, $count);";
}

# Record IDs issued to one session, one after the other: lines of the clock before, the ID, and the clock after it.
sub record
{
	my ($self, $lines) = @_;
	my $last = 0;

	for my $line (split /\n/, $lines)
	{
		my ($before, $id, $after) = $line =~ /^(\d+)\|(\d+)\|(\d+)$/ or die "unexpected: $line";
		my $time = ($id >> 22) * 1000 + $epoch;

		$self->{seen}{$id}++;
		$self->{untrue}++ if $time <= $before - $tick || $time > $after + $max_ahead;
		$self->{unordered}++ if $id <= $last;
		$last = $id;
	}
}

# Issue a number of IDs by a server, in each of its tables.
sub insert
{
	my ($self, $server, $count) = @_;

	for my $database (@databases)
	{
		$self->record($server->safe_psql($database,
				"INSERT INTO $_ (after) SELECT NULL FROM generate_series(1, $count) RETURNING before, id, $clock"))
		  for @tables;
	}
}

# Whether a server issues an ID now, which is recorded.
sub issues
{
	my ($self, $server) = @_;
	my ($status, $lines) = $server->psql('postgres', $self->query(1));

	$self->record($lines) if $status == 0;
	return $status == 0;
}

# Wait until a server issues IDs, and issue some in each of its tables.
sub continues
{
	my ($self, $server, $name) = @_;
	my $issues = 0;

	for (1 .. 100)
	{
		last if $issues = $self->issues($server);
	}
	$self->insert($server, 1000) if $issues;
	ok($issues, $name);
}

# Record the IDs in the tables of a server that has replayed them.
sub record_tables
{
	my ($self, $server) = @_;

	for my $database (@databases)
	{
		for my $table (@tables)
		{
			$self->{seen}{$_}++ for split /\n/, $server->safe_psql($database, "SELECT id FROM $table");
		}
	}
}

# A server that has recovered, under a clock an hour behind: it issues no ID until
# its clock is correct, and then IDs above all that it has recovered.
sub continues_above_recovered
{
	my ($self, $server, $clock, $name) = @_;

	$self->record_tables($server);
	my $greatest = $self->greatest;
	fails_with($server, 'SELECT snowflake_nextval()', '53400',
		qr/could not generate a Snowflake ID within 100 ms/, qr/can be issued in (?:5\d(?:\.\d)? min|1 h)\./);
	$clock->set(0);
	$self->continues($server, "$name continues");
	is($server->safe_psql('postgres', "SELECT floor > snowflake_timestamp($greatest) FROM pg_stat_snowflake WHERE generator = 'bigint'"),
		't', "$name: its floor is above what it has recovered");
	$self->check($name);
}

sub greatest
{
	my ($self) = @_;
	my $greatest = 0;

	for my $id (keys %{ $self->{seen} })
	{
		$greatest = $id if $id > $greatest;
	}
	return $greatest;
}

# Check all that was recorded.
sub check
{
	my ($self, $name) = @_;
	my $count = keys %{ $self->{seen} };

	cmp_ok($count, '>=', 4000, "$name: $count IDs");
	is(scalar(grep { $_ > 1 } values %{ $self->{seen} }), 0, "$name: none is issued twice");
	is($self->{untrue}, 0, "$name: each has the time of the clock");
	is($self->{unordered}, 0, "$name: those of a session increase");
}

1;
