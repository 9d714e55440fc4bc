# The registry loses leases: it is restored from a backup, on a new timeline and as restored files; it fails over to a
# standby that has not received all.  Servers that hold a lease keep it, new ones wait for the end of the grace period,
# and no ID is issued twice.
use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use PostgreSQL::Test::RecursiveCopy;
use SnowflakeTest;
use TestClock;

# One clock for all servers, so that leases last as long as this test requires, even on a slow
# machine.
my $clock = TestClock->new;
my $lease = 120;    # s

# All hosts on which the registry will be, as a list.
my $fleet = Fleet->new($clock);
my $registry = $fleet->registry;
my $promoted = $fleet->failover_to('promoted');
$registry->safe_psql('postgres', "SELECT snowflake_registry.configure('$lease s', '1 second')");

# Holders of machine IDs when a backup is taken, and after it.
my @lease = (lines => ["snowflake.registry_lease = $lease"]);
my $before = $fleet->server('before', @lease);
$fleet->begins_to_issue($before, 'a server that is in the backup issues IDs');
my $gone = $fleet->server('gone', @lease);
$fleet->begins_to_issue($gone, 'so does one that will be gone');
$registry->backup('backup');
$gone->stop;
my $after = $fleet->server('after', @lease);
$fleet->begins_to_issue($after, 'and one that is not in the backup');
is($fleet->machine_id($after), '1', 'with the machine ID of the one that is gone');
my @all = ($before, $after);
$fleet->start_writer($_) for @all;

# The registry loses leases.  All servers that hold one renew it, and a new server has to wait.
my $new = 1;

# All have their leases renewed, by a reload.
sub renew_all
{
	my @ends = map { $fleet->leased($_, 'lease_until') } @all;

	$_->reload for @all;
	for my $i (0 .. $#all)
	{
		$all[$i]->poll_query_until('postgres', "SELECT lease_until > '$ends[$i]' FROM pg_stat_snowflake LIMIT 1") or die;
	}
}

sub lose
{
	my ($name, $change) = @_;
	my @machine_ids = map { $fleet->machine_id($_) } @all;

	renew_all();
	$change->();
	my $server = $fleet->server('new' . $new++, @lease);
	$fleet->wait_for_state($server, 'refused');
	my $error = '';
	wait_until(sub { ($error = $fleet->leased($server, 'last_error')) =~ /no new lease begins/ });    # the clock seems off if a call was slow
	like($error, qr/no new lease begins before 20\d\d-/, "$name: a new server has to wait");
	ok(!$fleet->issues($server), 'and issues no IDs');

	# Up to some seconds before the end of the grace period, which the new one then waits for.
	my $grace_until = $error =~ s/.* before //r;
	my $left = $server->safe_psql('postgres', "SELECT extract(epoch FROM timestamptz '$grace_until' - clock_timestamp())") - 3;
	for my $quarter (1 .. 4)
	{
		renew_all();
		$clock->step($left / 4);
	}
	is(join(' ', map { $fleet->machine_id($_) } @all), join(' ', @machine_ids), "$name: all others keep their machine IDs");
	$fleet->begins_to_issue($server, 'then the new one is granted one as well');
	push @all, $server;
}

# Restored from the backup, with recovery to its end: a new timeline.  Before that, the servers try
# to reach a registry that is away.
lose('restored', sub {
	$registry->stop;
	$_->reload for @all;
	$fleet->wait_for_state($_, 'unreachable') for @all;
	$registry = $fleet->restored($registry, 'backup', 'restored', recovery => 1);
});

# Files put back, on the same timeline: the loss is not visible until a server with a later lease
# calls, and so no new server may call before that.
my $fenced = $registry->safe_psql('postgres', 'SELECT grace_lease_number FROM snowflake_registry.config');
$registry->backup('files');
push @all, $fleet->server('known', @lease);
$fleet->begins_to_issue($all[-1], 'another server issues IDs');
$fleet->start_writer($_) for @all[ -2, -1 ];
lose('files put back', sub {
	$registry->stop;
	$registry = $fleet->restored($registry, 'files', 'put_back', recovery => 0);
	$_->reload for @all;
	$registry->poll_query_until('postgres', "SELECT grace_lease_number > $fenced FROM snowflake_registry.config") or die;
});

# Again, with a grace period started by hand before any server can reach the registry.
$registry->backup('again');
push @all, $fleet->server('forgotten', @lease);
$fleet->begins_to_issue($all[-1], 'another server issues IDs');
$fleet->start_writer($all[-1]);
lose('grace period by hand', sub {
	$registry->stop;
	$registry = $fleet->restored($registry, 'again', 'by_hand', recovery => 0, sql => 'SELECT snowflake_registry.start_grace_period()');
});

# A standby that lags is promoted.
$registry->backup('standby');
$promoted->init_from_backup($registry, 'standby', has_streaming => 1);
$promoted->append_conf('postgresql.conf', 'port = ' . $promoted->port);
$promoted->start;
$registry->wait_for_catchup($promoted);
$promoted->append_conf('postgresql.conf', "primary_conninfo = ''");
$promoted->reload;
$registry->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_replication') or die;
push @all, $fleet->server('unknown', @lease);
$fleet->begins_to_issue($all[-1], 'a server of which the standby has no record issues IDs');
$fleet->start_writer($all[-1]);
lose('failover', sub {
	$registry->stop('immediate');
	$promoted->promote;
	$registry = $promoted;
});
my %machine_ids = map { $fleet->machine_id($_) => 1 } @all;
is(scalar(keys %machine_ids), scalar(@all), 'each server has a machine ID of its own');

# Clean stops release leases of a registry that was moved, too.
$fleet->stop_writers;
$_->stop for @all;
is($registry->safe_psql('postgres', "SELECT count(*) FROM snowflake_registry.machines WHERE state = 'held'"), '0', 'all are released');
$fleet->check(20000, 'all servers');
done_testing();
