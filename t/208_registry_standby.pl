# A standby that holds a lease of its own issues IDs after its promotion without the registry.

use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use SnowflakeTest;

my $fleet = Fleet->new;
my $registry = $fleet->registry;

sub standby
{
	my ($primary, $name, @lines) = @_;

	return snowflake_server($name, { backup => [ $primary, 'backup', has_streaming => 1 ] }, @lines);
}

# Wait until a standby holds a lease, and return its machine ID.
sub leased_by_standby
{
	my ($standby) = @_;

	$standby->poll_query_until('postgres', "SELECT lease_until > now() FROM pg_stat_snowflake WHERE generator = 'bigint'") or die;
	return $fleet->machine_id($standby);
}

sub state_of
{
	my ($machine_id) = @_;

	return $registry->safe_psql('postgres', "SELECT state FROM snowflake_registry.machines WHERE machine_id = $machine_id");
}

my $primary = $fleet->server('primary', lines => [ 'snowflake.registry_lease = 600', 'snowflake.registry_standby = on', 'restart_after_crash = on' ]);
$fleet->wait_for_state($primary, 'held');
$primary->backup('backup');

my $early = standby($primary, 'early');
$fleet->begins_to_issue($primary, 'the primary issues IDs');
is($fleet->machine_id($primary), '0', 'with the smallest machine ID');
$fleet->start_writer($primary);
is(leased_by_standby($early), '1', 'a standby holds a lease with another machine ID');
is($fleet->leased($early, 'registry_state'), 'standby', 'which is still a standby');
fails_with($early, 'SELECT snowflake_nextval()', '25006', qr/during recovery/);
my $late = standby($primary, 'late');
is(leased_by_standby($late), '2', 'so does another one');

# All of the lease of a standby that is stopped is free again.
$late->stop;
is(state_of(2), 'released', 'a standby that is stopped gives its lease back');
$late->start;
is(leased_by_standby($late), '2', 'and gets it again');

# A standby that crashes is another holder afterwards.
crash($late);
$late->start;
is(leased_by_standby($late), '3', 'after a crash, with another machine ID');
is(state_of(2), 'held', 'while the former lease runs out');

# Promoted without the registry, beside the old primary.  A standby that cannot renew its lease is not
# shown as one that is healthy.
$registry->stop;
$late->reload;
$fleet->wait_for_state($late, 'unreachable');
pass('a standby shows that it could not renew its lease');
$early->promote;
ok($fleet->issues($early), 'a standby that is promoted while the registry is away issues IDs');
is($fleet->machine_id($early), '1', 'with the machine ID that it had');
is($fleet->leased($early, 'registry_state'), 'held', 'of its lease');
$fleet->start_writer($early);
ok($fleet->issues($primary), 'so does the old primary');
$registry->start;
$late->reload;
$fleet->wait_for_state($late, 'standby');

# With snowflake.machine_id, a standby leases when it is promoted.
my $fixed = $fleet->server('fixed', lines => [ 'snowflake.registry_standby = on', 'snowflake.machine_id = 77', 'snowflake.registry_lease = 600' ]);
$fleet->begins_to_issue($fixed, 'a server with a fixed machine ID issues IDs');
$fixed->backup('backup');
my $other = standby($fixed, 'other');
$other->poll_query_until('postgres', "SELECT registry_state = 'standby' FROM pg_stat_snowflake LIMIT 1") or die;
wait_for_log($other, 0, qr/DEBUG:  starting background worker process "snowflake registry worker"/, 'its standby has a registry worker');
$fixed->stop;
is($fleet->leased($other, 'last_error IS NULL, lease_until IS NULL'), 't|t', 'which does not ask for the machine ID');
$other->promote;
$fleet->begins_to_issue($other, 'and leases it when it is promoted');
is($fleet->machine_id($other), '77', 'with the same number');

# A standby whose primary has recorded no registry cannot record one, and leases when it is promoted.
my $plain = snowflake_server('plain', 'snowflake.machine_id = 500', 'wal_level = replica', 'max_wal_senders = 5');
$plain->backup('backup');
my $first = standby($plain, 'first', $fleet->lines('snowflake.registry_standby = on', 'snowflake.machine_id = -1'));
$first->poll_query_until('postgres', "SELECT last_error = 'the primary of this standby has not recorded its registry yet' FROM pg_stat_snowflake LIMIT 1") or die;
is($fleet->leased($first, 'registry_state, lease_until IS NULL'), 'refused|t', 'a standby that cannot record its registry leases nothing, and shows that');
$first->promote;
$fleet->begins_to_issue($first, 'and does when it is promoted');

$_->stop for $other, $first;
$fleet->stop_writers;
$fleet->check(5000, 'all servers');
done_testing();
