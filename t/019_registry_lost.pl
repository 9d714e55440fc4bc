# The registry loses grants: it is restored from a backup, on a new timeline and as files
# that are put back; it fails over to a standby that has not received all.  Servers that
# hold a machine ID keep it, new ones wait for the fence, and no ID comes twice.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use Fleet;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use TestClock;

# One clock for all servers, so that leases last as long as this test wants, on however slow a
# machine.
my $clock = TestClock->new;
my $lease = 120;    # s

# Where the registry will be, one way or another: a list of hosts.
my $fleet = Fleet->new($clock);
my $registry = $fleet->registry;
my $promoted = $fleet->failover_to('promoted');
$registry->safe_psql('postgres', "SELECT snowflake_registry.configure('$lease s', '1 second')");

# Holders of machine IDs when a backup is taken, and after it.
my @lease = (lines => ["snowflake.registry_lease = $lease"]);
my $before = $fleet->server('before', @lease);
$fleet->comes_to_issue($before, 'a server that is in the backup issues IDs');
my $gone = $fleet->server('gone', @lease);
$fleet->comes_to_issue($gone, 'so does one that will be gone');
$registry->backup('backup');
$gone->stop;
my $after = $fleet->server('after', @lease);
$fleet->comes_to_issue($after, 'and one that is not in the backup');
is($fleet->machine_id($after), '1', 'with the machine ID of the one that is gone');
my @all = ($before, $after);
$fleet->start_writer($_) for @all;

# The registry loses grants.  All servers that hold a machine ID have it renewed, and a new
# one has to wait.
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
	my $error = $fleet->leased($server, 'last_error');
	like($error, qr/no new span starts before 20\d\d-/, "$name: a new server has to wait for the fence");
	ok(!$fleet->issues($server), 'and issues no IDs');

	# Up to some seconds before the fence, which the new one then waits for.
	my $fence = $error =~ s/.* before //r;
	my $left = $server->safe_psql('postgres', "SELECT extract(epoch FROM timestamptz '$fence' - clock_timestamp())") - 3;
	for my $quarter (1 .. 4)
	{
		renew_all();
		$clock->step($left / 4);
	}
	is(join(' ', map { $fleet->machine_id($_) } @all), join(' ', @machine_ids), "$name: all others keep their machine IDs");
	$fleet->comes_to_issue($server, 'then the new one has one as well');
	push @all, $server;
}

# Restored from the backup, with recovery to its end: a new timeline.  Before, servers look for
# a registry that is away.
lose('restored', sub {
	$registry->stop;
	$_->reload for @all;
	$fleet->wait_for_state($_, 'unreachable') for @all;
	$registry = $fleet->restored($registry, 'backup', 'restored', recovery => 1);
});

# The same files put back, on the same timeline: until a server comes that knows better,
# nothing is known of what was lost, and so no new one may come before.
my $fenced = $registry->safe_psql('postgres', 'SELECT fenced_grant FROM snowflake_registry.config');
$registry->backup('files');
push @all, $fleet->server('known', @lease);
$fleet->comes_to_issue($all[-1], 'another server issues IDs');
$fleet->start_writer($_) for @all[ -2, -1 ];
lose('files put back', sub {
	$registry->stop;
	$registry = $fleet->restored($registry, 'files', 'put_back', recovery => 0);
	$_->reload for @all;
	$registry->poll_query_until('postgres', "SELECT fenced_grant > $fenced FROM snowflake_registry.config") or die;
});

# Again, and a fence by hand before any server can reach it.
$registry->backup('again');
push @all, $fleet->server('forgotten', @lease);
$fleet->comes_to_issue($all[-1], 'another server issues IDs');
$fleet->start_writer($all[-1]);
lose('fence by hand', sub {
	$registry->stop;
	$registry = $fleet->restored($registry, 'again', 'by_hand', recovery => 0, sql => 'SELECT snowflake_registry.fence()');
});

# A standby that lags is promoted.
$registry->backup('standby');
$promoted->init_from_backup($registry, 'standby', has_streaming => 1);
$promoted->append_conf('postgresql.conf', 'port = ' . $promoted->port);
$fleet->start($promoted);
$registry->wait_for_catchup($promoted);
$promoted->append_conf('postgresql.conf', "primary_conninfo = ''");
$promoted->reload;
$registry->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_replication') or die;
push @all, $fleet->server('unknown', @lease);
$fleet->comes_to_issue($all[-1], 'a server that the standby does not know issues IDs');
$fleet->start_writer($all[-1]);
lose('failover', sub {
	$registry->stop('immediate');
	$promoted->promote;
	$registry = $promoted;
});
my %machine_ids = map { $fleet->machine_id($_) => 1 } @all;
is(scalar(keys %machine_ids), scalar(@all), 'each server has a machine ID of its own');

# Clean stops give back to a registry that has been moved, too.
$fleet->stop_writers;
$_->stop for @all;
is($registry->safe_psql('postgres', "SELECT count(*) FROM snowflake_registry.machines WHERE state = 'held'"), '0', 'all are given back');
$fleet->check(20000, 'all servers');
done_testing();
