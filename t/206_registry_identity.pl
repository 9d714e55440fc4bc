# A server leases from one registry until an administrator accepts another one: if some servers
# leased from one and some from another, two could have the same machine ID.
use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use SnowflakeTest;

my $nextval = 'SELECT snowflake_nextval()';
my $fleet = Fleet->new;
my $registry = $fleet->registry;

# The line of configuration of the registry in a database of a cluster.
sub at
{
	my ($cluster, $database, $user) = @_;

	return "snowflake.registry = 'host=" . $cluster->host . ' port=' . $cluster->port . " dbname=$database"
	  . ($user ? " user=$user" : '') . q{'};
}

# Restart a server with another registry.
sub move
{
	my ($server, @at) = @_;

	$server->append_conf('postgresql.conf', at(@at));
	$server->restart;
}

sub identity
{
	my ($cluster, $database) = @_;

	return $cluster->safe_psql($database, 'SELECT snowflake_registry.identity()');
}

my @lease = (lines => ['snowflake.registry_lease = 600']);
my ($first, $second) = map { $fleet->server($_, @lease) } 'first', 'second';
$fleet->begins_to_issue($_, $_->name . ' issues IDs') for $first, $second;
$fleet->start_writer($_) for $first, $second;
my $identity = identity($registry, 'postgres');

# Another registry, which would grant the same machine IDs.
$registry->safe_psql('postgres', 'CREATE DATABASE other');
$fleet->make_registry('other');
isnt(identity($registry, 'other'), $identity, 'another registry has another identity');
fails_with($first, 'SELECT snowflake_accept_registry()', '55000', qr/no registry is waiting to be accepted/, qr/HINT:  Set "snowflake\.registry"/);

# A transaction that calls a new registry first, and does not end.
$registry->safe_psql('postgres', 'CREATE DATABASE slow');
$registry->safe_psql('slow', 'CREATE EXTENSION snowflake_registry');
my $idle = $registry->background_psql('slow');
$idle->query_safe('BEGIN; SELECT snowflake_registry.identity()');
my (undef, undef, $waited) = $registry->psql('slow', "SET statement_timeout = '60s'; SELECT snowflake_registry.identity()");
like($waited, qr/canceling statement due to lock timeout/, 'a session that has made the identity is not waited for forever');
$idle->quit;

# A rolling restart with it: the first server that is restarted issues no IDs.
move($first, $registry, 'other');
$fleet->wait_for_state($first, 'refused');
is( $fleet->leased($first, 'last_error'),
	"the registry has identity @{[ identity($registry, 'other') ]}, but this server leases from the registry with identity $identity",
	'another registry is refused');
fails_with($first, $nextval, '55000', qr/could not generate a Snowflake ID without a lease of a machine ID/,
	qr/HINT:  Set "snowflake\.registry" to the previous registry, .* use snowflake_accept_registry\(\) instead\.  If it still grants leases, IDs can then be issued twice\./);
ok(!$fleet->issues($first), 'and no ID is issued');
is($registry->safe_psql('other', 'SELECT held, grace_until, last_lease_number FROM snowflake_registry.status'), '0||0',
	'it is asked for nothing');

# The same holds after a crash, on a standby and in a restored backup.
crash($first);
$first->start;
$fleet->wait_for_state($first, 'refused');
ok(!$fleet->issues($first), 'it is refused after a crash');
$second->backup('backup');
my $standby = snowflake_server('standby', { backup => [ $second, 'backup', has_streaming => 1 ] }, at($registry, 'other'));
fails_with($standby, 'SELECT snowflake_accept_registry()', '25006', qr/during recovery/);
$standby->promote;
$fleet->wait_for_state($standby, 'refused');
ok(!$fleet->issues($standby), 'and after a promotion');
move($standby, $registry, 'postgres');
$fleet->begins_to_issue($standby, 'the registry that the primary leases from is accepted');
$standby->stop;

# The previous registry again.
move($first, $registry, 'postgres');
$fleet->begins_to_issue($first, 'a server that leases from its registry again issues IDs');

# A standby that has replayed the first lease from WAL alone, and not from a base backup.
my $primary = snowflake_server('primary', { extension => 0, init => [ allows_streaming => 1 ] }, "snowflake.max_wait = '5s'");
$primary->backup('backup');
my $replica = snowflake_server('replica', { backup => [ $primary, 'backup', has_streaming => 1 ] }, at($registry, 'other'));
move($primary, $registry, 'postgres');
$primary->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$fleet->begins_to_issue($primary, 'a server issues IDs that has a standby');
$primary->wait_for_catchup($replica);
$replica->promote;
$fleet->wait_for_state($replica, 'refused');
like($fleet->leased($replica, 'last_error'), qr/ registry with identity $identity$/, 'the standby has received the identity');
$_->stop for $primary, $replica;

# The registry of a single server is another one now, which an administrator accepts.
my $single = $fleet->server('single', @lease);
$fleet->begins_to_issue($single, 'another server issues IDs');
move($single, $registry, 'other');
$fleet->wait_for_state($single, 'refused');
my $log = -s $single->logfile;
$single->safe_psql('postgres', 'SELECT snowflake_accept_registry()');
$fleet->wait_for_state($single, 'held');
is($single->safe_psql('postgres', 'SELECT snowflake_nextval() > 0'), 't', 'a registry that is accepted leases at once');
log_matches($single, $log, qr/the registry with identity \d+ was accepted/, 'which is logged');
fails_with($single, 'SELECT snowflake_accept_registry()', '55000', qr/no registry is waiting to be accepted/);

# An extension that is created again is another registry.
$registry->safe_psql('other', 'DROP EXTENSION snowflake_registry');
$fleet->make_registry('other');
$single->reload;
$fleet->wait_for_state($single, 'refused');
$single->stop;

# The identity cannot be recorded without slots for origins: there is no lease.  (18 has a setting of
# its own for origins.)
my $slots = $registry->pg_version >= 18 ? 'max_active_replication_origins' : 'max_replication_slots';
my $full = $fleet->server('full', lines => [ "snowflake.registry = ''" ]);
$full->append_conf('postgresql.conf', "$slots = 0\nmax_wal_senders = 0");
move($full, $registry, 'postgres');
$fleet->wait_for_state($full, 'refused');
like($fleet->leased($full, 'last_error'), qr/^could not find free replication state slot for replication origin/, 'no slot for the identity');
$full->append_conf('postgresql.conf', "$slots = 10");
$full->restart;
$fleet->begins_to_issue($full, 'with slots the server issues IDs');
$full->stop;

# The registry is moved to another cluster by the steps of docs/scale-out.md: connections to the old
# registry are refused, it is dumped and restored, and servers that keep issuing IDs are restarted one
# after the other.
$registry->safe_psql('postgres', <<'SQL');
CREATE ROLE snowflake_server LOGIN;
SELECT snowflake_registry.admit('snowflake_server');
SQL
for my $server ($first, $second)
{
	move($server, $registry, 'postgres', 'snowflake_server');
	$fleet->begins_to_issue($server, $server->name . ' leases as an admitted role');
}
my $target = snowflake_server('target', { registry => 1, init => [ extra => [ '--no-sync' ] ] });
$target->safe_psql('postgres', 'CREATE ROLE snowflake_server LOGIN; CREATE DATABASE moved');
$registry->safe_psql('postgres', <<'SQL');
REVOKE CONNECT ON DATABASE postgres FROM PUBLIC, snowflake_server;
SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = 'postgres' AND usename = 'snowflake_server';
SQL
system_or_bail('sh', '-c', 'pg_dump -d "$1" | psql -XqAt -v ON_ERROR_STOP=1 -d "$2"', 'sh', map { $_->[0]->connstr($_->[1]) } [ $registry, 'postgres' ], [ $target, 'moved' ]);
is(identity($target, 'moved'), $identity, 'a dump keeps the identity');
$target->safe_psql('moved', 'SELECT snowflake_registry.end_grace_period()');
for my $server ($first, $second)
{
	$server->reload;
	$fleet->begins_to_issue($server, $server->name . ' continues with its lease');
	move($server, $target, 'moved', 'snowflake_server');
	$fleet->begins_to_issue($server, $server->name . ' is granted one where the registry is now');
}
isnt($fleet->machine_id($first), $fleet->machine_id($second), 'with another machine ID than the other');

$fleet->stop_writers;
$fleet->check(10000, 'all servers');
done_testing();
