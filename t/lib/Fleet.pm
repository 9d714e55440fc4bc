# A registry, servers that lease their machine IDs from it, and all the IDs that these have
# issued: none may be issued twice, by any servers.
package Fleet;

use PostgreSQL::Test::RecursiveCopy;
use SnowflakeTest;
use TestClock;

# A registry that is started, under a clock if one is given.  Servers that are given no clock use
# that of the registry.
sub new
{
	my ($class, $clock) = @_;
	my $registry = snowflake_server('registry', { registry => 1, clock => $clock, init => [ allows_streaming => 1 ] }, 'max_connections = 100');
	my $self = bless { registry => $registry, clock => $clock, files => [], writers => [] }, $class;

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

# A server to which the registry can be moved, which is not created yet: servers have both
# addresses.
sub failover_to
{
	my ($self, $name) = @_;

	$self->{failover} = PostgreSQL::Test::Cluster->new($name);
	$self->{failover}{clock} = $self->{clock};
	return $self->{failover};
}

# A server in the place of another one, from a backup of that; with recovery to the end of
# the backup, and so on a new timeline, or as files.  It may run a query before others can
# reach it.
sub restored
{
	my ($self, $server, $backup, $name, %options) = @_;
	my $restored = snowflake_server($name, { backup => [ $server, $backup ], port => $server->port, clock => $self->{clock}, start => 0 });

	if ($options{recovery})
	{
		$restored->append_conf('postgresql.conf', "restore_command = 'false'");
		$restored->set_recovery_mode;
	}
	if ($options{sql})
	{
		my $data = $restored->data_dir;

		$restored->append_conf('postgresql.conf', "unix_socket_directories = '$data'");
		$restored->start;
		system_or_bail('psql', '-XAtq', '-h', $data, '-p', $restored->port, '-d', 'postgres', '-c', $options{sql});
		$restored->stop;
		$restored->append_conf('postgresql.conf', "unix_socket_directories = '" . $restored->host . "'");
	}
	$restored->start;
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

	return ("snowflake.registry = '$string'", 'snowflake.registry_lease = 2', "snowflake.max_wait = '5s'", 'log_min_messages = debug1', @more);
}

# A new server, started, under a clock if one is given.
sub server
{
	my ($self, $name, %options) = @_;

	return snowflake_server($name, { clock => $options{clock} // $self->{clock}, init => [ allows_streaming => 1 ] },
		$self->lines(@{ $options{lines} // [] }));
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

# Start a server under a clock, or start the server of the registry.
sub start
{
	my ($self, $server, $clock) = @_;

	$server->{clock} = $clock // $server->{clock} // $self->{clock};
	return $server->start;
}

my $next_file = 0;

sub new_file
{
	my ($self) = @_;
	my $file = "$scratch/ids." . $next_file++;

	push @{ $self->{files} }, $file;
	return $file;
}

# A query that issues a number of IDs of each kind.
sub query
{
	my ($self, $count) = @_;

	return "SELECT snowflake_nextval() FROM generate_series(1, $count);\nSELECT sno_nextval() FROM generate_series(1, $count);\n";
}

# Issue a number of IDs of each kind by a server; returns whether it did.
sub issues
{
	my ($self, $server, $count) = @_;
	my ($status, $ids) = $server->psql('postgres', $self->query($count // 1000));

	open(my $file, '>', $self->new_file) or die $!;
	print $file "$ids\n";
	close $file;
	return $status == 0;
}

# A server issues IDs, now or after a while.
sub begins_to_issue
{
	my ($self, $server, $name) = @_;

	ok(wait_until(sub { $self->issues($server) }), $name);
}

# Sessions, one after the other, that issue some IDs of both kinds again and again until stop_writers, or until the files
# of this test are removed, whatever errors are raised.  Where all is slow, as under valgrind, they leave the processors to
# others meanwhile.
my $pause = $PostgreSQL::Test::Utils::timeout_default > 1000 ? 0.5 : 0.01;

sub start_writer
{
	my ($self, $server) = @_;
	my $file = $self->new_file;
	my $script = "$file.sql";
	my $connection = $server->connstr('postgres');

	append_to_file($script, ($self->query(50) . "SELECT pg_sleep($pause);\n") x 30);
	my $writer = IPC::Run::start(
		[ 'sh', '-c', 'while [ -e "$2" ] && [ ! -e "$3" ]; do psql -XAtq -f "$2" "$1"; done >> "$4" 2> /dev/null',
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

# The sessions of a test that dies stop as well.
END { append_to_file("$scratch/stop", '') if $? != 0 && -d $scratch; }

# A column of pg_stat_snowflake, about a server's lease.
sub leased
{
	my ($self, $server, $column) = @_;

	return $server->safe_psql('postgres', "SELECT $column FROM pg_stat_snowflake WHERE generator = 'bigint'");
}

# The process of a server's registry worker, or 0 if none runs, or if it has not ended its first request.
sub registry_worker
{
	my ($self, $server) = @_;

	my $last = (registry_workers($server))[-1] // return 0;

	return (grep { $_ == $last } children(postmaster($server))) ? $last : 0;
}

# Terminate a server's registry worker, which runs; returns its process.
sub end_registry_worker
{
	my ($self, $server) = @_;
	my $worker = wait_until(sub { $self->registry_worker($server) }) or die 'no registry worker runs';

	kill 'TERM', $worker;
	return $worker;
}

# The same, and wait until the server has started another one.
sub restart_registry_worker
{
	my ($self, $server) = @_;
	my $ended = $self->end_registry_worker($server);

	wait_until(sub { $self->registry_worker($server) !~ /^(?:0|$ended)$/ }) or die 'no other registry worker was started';
}

sub machine_id { return $_[0]->leased($_[1], 'machine_id'); }

sub wait_for_state
{
	my ($self, $server, $state) = @_;

	$server->poll_query_until('postgres', "SELECT registry_state = '$state' FROM pg_stat_snowflake WHERE generator = 'bigint'")
	  or die "the registry's state is not $state";
}

# Of all IDs of all servers none is issued twice.  The metabyte of a sno is always 0.
sub check
{
	my ($self, $least, $name) = @_;

	none_is_issued_twice($least, $name, @{ $self->{files} });
}

1;
