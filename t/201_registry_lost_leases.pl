# A registry that has lost leases which it had granted, since a standby was promoted, a point in
# time recovered, a dump restored, files were put back, or the registry was made again: all holders
# of leases renew them, a newcomer has to wait, and no two leases of a machine ID overlap.
use FindBin;
use lib "$FindBin::RealBin/lib";
use LeaseLog;
use SnowflakeTest;
use TestClock;

# Of all servers.
my $clock = TestClock->new;

my %of_registry = (registry => 1, clock => $clock);
my $one = snowflake_server('one', { %of_registry, init => [ allows_streaming => 1, has_archiving => 1 ] });
$one->safe_psql('postgres', "CREATE DATABASE $_") for 'registry', 'plain';

# Without a superuser; and the schema public may be dropped.
$one->safe_psql('registry', 'CREATE ROLE owner LOGIN; GRANT CREATE ON DATABASE registry, plain TO owner');
command_ok([ 'psql', '-XqAt', '-U', 'owner', '-d', $one->connstr('registry'), '-c', 'CREATE EXTENSION snowflake_registry' ],
	'an ordinary role makes a registry');
$one->safe_psql('registry', 'DROP SCHEMA public CASCADE');

# The same without an extension.
command_ok(
	[
		'psql', '-XqAt', '-1', '-v', 'ON_ERROR_STOP=1', '-f', "$FindBin::RealBin/../snowflake_registry--1.0.sql",
		'-U', 'owner', '-d', $one->connstr('plain') ],
	'the script alone makes a registry');
is($one->safe_psql('plain', 'SELECT count(*) FROM pg_extension'), '1', 'which is no extension');
$one->safe_psql($_, 'SELECT snowflake_registry.declare_first()') for 'registry', 'plain';

# The data that a registry still has after each of the losses.
sub grant_first
{
	my ($registry) = @_;

	is(join('', map { $registry->claim($_) } 'renewed', 'moved'), '', "$registry->{database}: two claim");
	is($registry->claim('lapsed', '1 us'), '', "$registry->{database}: one claims, and its lease ends");
}

# The data that it loses: a renewal; a lease that was released, its next holder, and another lease
# of its former holder; a machine ID whose lease had ended, and which was granted to another holder;
# and claims, of which one holder does not call again.
sub grant_more
{
	my ($registry) = @_;

	is($registry->renew('renewed'), '', "$registry->{database}: one renews");
	$registry->release('moved');
	is(join('', map { $registry->claim($_) } 'second', 'third', 'moved', 'new', 'silent'), '', "$registry->{database}: five claim");
	is($registry->machine_ids, 'lapsed 2 moved 3 new 4 renewed 0 second 1 silent 5 third 2', "$registry->{database}: the machine IDs");
	is($registry->overlaps, '', "$registry->{database}: no two leases overlap");
}

my @holders = ('renewed', 'moved', 'second', 'third', 'new');

my $no_new_lease = qr/^the registry (?:was moved or restored|is new, and snowflake_registry\.declare_first\(\) was not called): no new lease begins before/;

# The registry only renews; if a holder is named, from its call on.
sub only_renews
{
	my ($registry, $name, $first) = @_;

	$registry->{name} = $name;
	is($registry->renew($first), '', "$name: one holder renews") if $first;
	like($registry->claim('newcomer'), $no_new_lease, "$name: a newcomer has to wait");
	is($registry->all_renew(@holders), '', "$name: all holders of leases renew them");
	like($registry->renew('lapsed'), qr/$no_new_lease|not held/, "$name: but not the holder of one that has ended");
	like($registry->claim('newcomer'), $no_new_lease, "$name: a newcomer still has to wait");
	is($registry->query('SELECT last_lease_number / 1000000000000 FROM snowflake_registry.status'), '1', "$name: there was one grace period");
}

my $registry = LeaseLog->new($one, 'registry');
my $plain = LeaseLog->new($one, 'plain');

grant_first($_) for $registry, $plain;
$one->backup('backup');
# Its timeline is not for the archive that another server recovers from.
my $promoted = snowflake_server('promoted', { clock => $clock, backup => [ $one, 'backup', has_streaming => 1 ] }, 'archive_mode = off');
$one->wait_for_catchup($promoted);
$promoted->stop;

my $recovered = snowflake_server('recovered', { clock => $clock, backup => [ $one, 'backup', has_restoring => 1, standby => 0 ], start => 0 },
	"recovery_target_name = 'here'", "recovery_target_action = 'promote'");
$one->safe_psql('postgres', "SELECT pg_create_restore_point('here')");

# With a system identifier of its own.
my $restored = snowflake_server('restored', { %of_registry, init => [ extra => ['--no-instructions'] ] });
$restored->safe_psql('postgres', 'CREATE ROLE owner');
for ('registry', 'plain')
{
	my $dump = "$scratch/$_.sql";

	$restored->safe_psql('postgres', "CREATE DATABASE $_");
	command_ok([ 'pg_dump', '-f', $dump, '-d', $one->connstr($_) ], "$_: dumped");
	command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $restored->connstr($_) ], "$_: restored");
}

my $copy = $one->data_dir . '.copy';
$one->stop;
system_or_bail('cp', '-a', $one->data_dir, $copy);
$one->start;

grant_more($_) for $registry, $plain;
archive_wal($one);
$one->stop;

my @lossy = (
	$registry->moved($restored), $plain->moved($restored),
	$registry->moved($promoted),
	$registry->moved($recovered),
	$registry->moved($one), $plain->moved($one),
	$registry->moved($restored, 'again'));

only_renews($lossy[0], 'restored from a dump');
only_renews($lossy[1], 'restored from a dump, no extension');

# Also before the first checkpoint, which writes the timeline to the control file.  In 19 a
# promotion waits for the checkpointer, so the checkpoint cannot be prevented there.
$promoted->start;
my $checkpointer = $promoted->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
kill 'STOP', $checkpointer if major_version($promoted) < 19;
is($promoted->safe_psql('registry', 'SELECT grace_until IS NULL FROM snowflake_registry.status'), 't', 'a standby shows no grace period');
$promoted->promote;
is($promoted->safe_psql('registry', 'SET ROLE pg_monitor; SELECT grace_until > now() FROM snowflake_registry.status'), 't', 'promoted, it shows the one that begins with the first call');
only_renews($lossy[2], 'promoted');
log_matches($promoted, 0, qr/LOG:  role ".+" was trusted to hold a lease of machine ID 1, which is not stored/, 'a takeover is logged');
kill 'CONT', $checkpointer;

$recovered->start;
$recovered->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
only_renews($lossy[3], 'recovered to a point in time');

# A registry that was dropped and made again, with the same limits.
$restored->safe_psql('postgres', 'CREATE DATABASE again');
$restored->safe_psql('again', "CREATE EXTENSION snowflake_registry;
	INSERT INTO snowflake_registry.config (max_lease, max_skew, is_new) VALUES ('$LeaseLog::lease s', '$LeaseLog::skew s', true)");
only_renews($lossy[6], 'made again');
is($restored->psql('again', 'SELECT snowflake_registry.declare_first()'), 3, 'which cannot be declared the first one');

# Only a holder's lease number, or an administrator, shows that files were put back.
system_or_bail('rm', '-r', $one->data_dir);
system_or_bail('mv', $copy, $one->data_dir);
$one->start;
only_renews($lossy[4], 'files put back', 'moved');
$one->safe_psql('plain', 'SELECT snowflake_registry.start_grace_period()');
only_renews($lossy[5], 'files put back, grace period by hand');

# In the end newcomers get a lease, which can be the lease of the silent holder.  The clock is moved forward to just
# before the end of the first grace period, and runs from there, so that a newcomer whose lease begins too early is
# noticed.
my ($grace_until) = sort map { $_->claim('newcomer') =~ s/$no_new_lease //r } @lossy;
my $left = $one->safe_psql('postgres', "SELECT extract(epoch FROM timestamptz '$grace_until' - clock_timestamp())") - 1;
my $refused = '';
for my $quarter (1 .. 4)
{
	$clock->step($left / 4);
	$refused .= $_->all_renew(@holders) for @lossy;
}
my @waiting = @lossy;
wait_until(sub { @waiting = grep { $_->claim('newcomer') ne '' } @waiting; return !@waiting });
$refused .= $_->all_renew(@holders) for @lossy;
is($refused, '', 'all holders of leases have renewed them');
for (@lossy)
{
	is($_->machine_id('newcomer'), 5, "$_->{name}: the newcomer has a machine ID");
	is($_->overlaps, '', "$_->{name}: no two leases overlap");
}
$_->stop for $one, $restored, $promoted, $recovered;

done_testing();
