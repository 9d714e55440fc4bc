# A registry, servers that lease their machine IDs from it, and all the IDs that
# these have issued: none may come twice, whichever server it is from.
package Fleet;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use TestClock;

# A registry that is started, under a clock if one is given, as are then all servers that are
# given no other.
sub new
{
	my ($class, $clock) = @_;
	my $registry = PostgreSQL::Test::Cluster->new('registry');
	my $self = bless { registry => $registry, clock => $clock, files => [], writers => [] }, $class;

	$registry->init(allows_streaming => 1);
	$registry->append_conf('postgresql.conf', "fsync = off\n");
	$self->start($registry);
	$self->make_registry('postgres');
	return $self;
}

# A registry in a database, the first one of its servers.
sub make_registry
{
	my ($self, $database) = @_;

	$self->{registry}->safe_psql($database, 'CREATE EXTENSION snowflake_registry');
	$self->{registry}->safe_psql($database, 'SELECT snowflake_registry.declare_first()');
}

sub registry { return $_[0]->{registry}; }

# A server that the registry may be moved to, which is not made yet: servers are told of
# both.
sub failover_to
{
	my ($self, $name) = @_;

	return $self->{failover} = PostgreSQL::Test::Cluster->new($name);
}

# A server in the place of another one, from a backup of that; with recovery to the end of
# the backup, and so on a new timeline, or as files.  It may run a query before others can
# reach it.
sub restored
{
	my ($self, $server, $backup, $name, %options) = @_;
	my $restored = PostgreSQL::Test::Cluster->new($name, port => $server->port);

	$restored->init_from_backup($server, $backup);
	if ($options{recovery})
	{
		$restored->append_conf('postgresql.conf', "restore_command = 'false'");
		$restored->set_recovery_mode;
	}
	if ($options{sql})
	{
		my $data = $restored->data_dir;

		my @alone = ('sh', '-c', 'pg_ctl -D "$1" -l "$1/alone.log" -o "-c unix_socket_directories=$1 -c listen_addresses= " -w start > /dev/null && '
			  . 'psql -XAtq -h "$1" -p "$2" -d postgres -c "$3" && pg_ctl -D "$1" -w stop > /dev/null', 'sh', $data, $restored->port, $options{sql});

		$self->{clock} ? $self->{clock}->under(sub { system_or_bail(@alone) }) : system_or_bail(@alone);
	}
	$self->start($restored);
	$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
	return $restored;
}

# The lines of configuration of a server that leases from the registry, for two seconds
# unless more lines say otherwise.
sub lines
{
	my ($self, @more) = @_;
	my @hosts = ($self->{registry}, $self->{failover} // ());
	my $string = join(' ', 'host=' . join(',', map { $_->host } @hosts), 'port=' . join(',', map { $_->port } @hosts),
		'dbname=postgres', 'target_session_attrs=read-write');

	return join("\n", "shared_preload_libraries = 'snowflake'", 'fsync = off', "snowflake.registry = '$string'",
		'snowflake.registry_lease = 2', "snowflake.max_wait = '5s'", @more) . "\n";
}

# A new server, started, under a clock if one is given.
sub server
{
	my ($self, $name, %options) = @_;
	my $server = $self->copy_of($self->template, $name);

	$server->append_conf('postgresql.conf', $self->lines(@{ $options{lines} // [] }));
	$self->start($server, $options{clock});
	$server->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS snowflake');
	return $server;
}

# A cluster that was never started: to copy it is quicker than initdb.
sub template
{
	my ($self) = @_;

	unless ($self->{template})
	{
		$self->{template} = PostgreSQL::Test::Cluster->new('template');
		$self->{template}->init(allows_streaming => 1);
	}
	return $self->{template};
}

# A server with a copy of the data directory of one that does not run.
sub copy_of
{
	my ($self, $server, $name) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($name);

	PostgreSQL::Test::RecursiveCopy::copypath($server->data_dir, $copy->data_dir);
	chmod 0700, $copy->data_dir or die $!;
	$copy->append_conf('postgresql.conf', 'port = ' . $copy->port);
	return $copy;
}

sub start
{
	my ($self, $server, $clock) = @_;

	$clock //= $self->{clock};
	$clock ? $clock->start($server) : $server->start;
}

my $next_file = 0;

sub new_file
{
	my ($self) = @_;
	my $file = "$scratch/ids." . $next_file++;

	push @{ $self->{files} }, $file;
	return $file;
}

# A query that issues so many IDs of both kinds.
sub query
{
	my ($self, $count) = @_;

	return "SELECT snowflake_nextval() FROM generate_series(1, $count);\nSELECT sno_nextval() FROM generate_series(1, $count);\n";
}

# Take so many IDs of both kinds from a server; returns whether it issued them.
sub issues
{
	my ($self, $server, $count) = @_;
	my ($status, $ids) = $server->psql('postgres', $self->query($count // 1000));

	open(my $file, '>', $self->new_file) or die $!;
	print $file "$ids\n";
	close $file;
	return $status == 0;
}

# The same, in time.
sub comes_to_issue
{
	my ($self, $server, $name) = @_;

	ok(wait_until(sub { $self->issues($server) }), $name);
}

# A session that issues IDs of both kinds, now and then, until stop_writers, whatever
# errors it meets.
sub start_writer
{
	my ($self, $server) = @_;

	$self->start_session($server, $self->query(50) . "SELECT pg_sleep(0.01);\n");
}

# One that issues as many as it can.
sub start_hasty_writer
{
	my ($self, $server) = @_;

	$self->start_session($server, "SELECT snowflake_nextval() FROM generate_series(1, 5000);\nSELECT sno_nextval() FROM generate_series(1, 50);\n");
}

# A session that runs a script again and again.
sub start_session
{
	my ($self, $server, $queries) = @_;
	my $file = $self->new_file;
	my $script = "$file.sql";
	my $connection = $server->connstr('postgres');

	append_to_file($script, $queries);
	my $writer = IPC::Run::start(
		[ 'sh', '-c', 'while [ ! -e "$3" ]; do for i in 1 2 3 4 5 6 7 8 9 10; do cat "$2"; done | psql -XAtq "$1"; done >> "$4" 2> /dev/null',
			'writer', $connection, $script, "$scratch/stop", $file ]);
	push @{ $self->{writers} }, $writer;
}

sub stop_writers
{
	my ($self) = @_;
	my $stop = "$scratch/stop";

	append_to_file($stop, '');
	$_->finish for @{ $self->{writers} };
	$self->{writers} = [];
	unlink $stop;
}

# Those of a test that dies stop as well.
END { append_to_file("$scratch/stop", '') if $? != 0 && -d $scratch; }

# What a server says of its lease: a column of pg_stat_snowflake.
sub leased
{
	my ($self, $server, $column) = @_;

	return $server->safe_psql('postgres', "SELECT $column FROM pg_stat_snowflake WHERE generator = 'bigint'");
}

# The process of a server's registrar, or 0.
sub registrar
{
	my ($self, $server) = @_;
	my $postmaster = (split /\n/, slurp_file($server->data_dir . '/postmaster.pid'))[0];

	return (children($postmaster, 'snowflake registrar'))[0] // 0;
}

# Tell a server's registrar, which runs, to end; returns its process.
sub end_registrar
{
	my ($self, $server) = @_;
	my $registrar = wait_until(sub { $self->registrar($server) }) or die 'there is no registrar';

	kill 'TERM', $registrar;
	return $registrar;
}

sub machine_id { return $_[0]->leased($_[1], 'machine_id'); }

sub wait_for_state
{
	my ($self, $server, $state) = @_;

	$server->poll_query_until('postgres', "SELECT registry_state = '$state' FROM pg_stat_snowflake WHERE generator = 'bigint'")
	  or die "the registry's state is not $state";
}

# All IDs of all servers: none comes twice.  The metabyte of a sno is always 0.
sub check
{
	my ($self, $least, $name) = @_;

	none_comes_twice($least, $name, @{ $self->{files} });
}

1;
