# Servers that lease their machine IDs from one registry, under faults that make other schemes
# repeat IDs: a data directory is copied, a standby is promoted beside its old primary, clocks are
# an hour wrong, a machine ID goes from server to server, the registry is away.  Sessions on all
# servers issue IDs of both kinds meanwhile, and every ID is compared with all others.
use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use SnowflakeTest;
use TestClock;

my $fleet = Fleet->new;
my $registry = $fleet->registry;

# A server whose clock is more than ten seconds off is refused, unless the registry allows it.
my $ahead = TestClock->new;
my $behind = TestClock->new;
$ahead->set(3600);
$behind->set(-3600);
my $second = $fleet->server('second', clock => $ahead);
$fleet->wait_for_state($second, 'refused');
like($fleet->leased($second, 'last_error'), qr/^the clock is (?:00:59:5|01:00:0).* ahead of the clock of the registry/,
	'a server an hour ahead is refused');
is($fleet->leased($second, "skew BETWEEN '59 minutes' AND '61 minutes'"), 't', 'and shows how far its clock is ahead');
ok(!$fleet->issues($second), 'and issues no IDs');
$registry->safe_psql('postgres', "SELECT snowflake_registry.configure(NULL, '2 hours')");

my $first = $fleet->server('first');
my $third = $fleet->server('third', clock => $behind);
my %started;
for my $server ($first, $second, $third)
{
	$fleet->begins_to_issue($server, $server->name . ' issues IDs');
	$started{ $fleet->machine_id($server) }++;
	$fleet->start_writer($server);
}
is(join(' ', sort keys %started), '0 1 2', 'each with a machine ID of its own');

# The data directory of a server is copied, as it was when the server was killed, and both
# are started.
crash($first);
my $copy = $fleet->copy_of($first, 'copy');
$first->start;
$copy->start;
$fleet->start_writer($copy);
$fleet->begins_to_issue($first, 'a server that was killed issues IDs again');
$fleet->begins_to_issue($copy, 'a copy of it issues IDs, too');
isnt($fleet->machine_id($first), $fleet->machine_id($copy), 'with another machine ID');

# A standby is promoted, and the primary continues to run.
$first->backup('backup');
my $standby = snowflake_server('standby', { backup => [ $first, 'backup', has_streaming => 1 ] });
is($fleet->leased($standby, 'machine_id, registry_state'), '|standby', 'a standby leases nothing');
fails_with($standby, 'SELECT snowflake_nextval()', '25006', qr/during recovery/);
$standby->promote;
$fleet->start_writer($standby);
$fleet->begins_to_issue($standby, 'promoted, it does lease, and issues IDs');
$fleet->begins_to_issue($first, 'and so does the old primary');
isnt($fleet->machine_id($first), $fleet->machine_id($standby), 'with another machine ID');

# The registry is away for less than a lease.  (Without another attempt in between the
# lease can only have been renewed later.)
$registry->restart;
for my $server ($first, $second, $third, $copy, $standby)
{
	$fleet->wait_for_state($server, 'held');
	$fleet->begins_to_issue($server, $server->name . ' continues over a restart of the registry');
}

# Away for longer, and back.
$registry->stop;
for my $server ($first, $second, $third, $copy, $standby)
{
	$fleet->wait_for_state($server, 'unreachable');
	$server->poll_query_until('postgres', 'SELECT lease_until < clock_timestamp() FROM pg_stat_snowflake LIMIT 1') if $server != $third;
}
ok(!$fleet->issues($_), $_->name . ' stops at the end of its lease') for $first, $second, $copy, $standby;
$registry->start;
$fleet->begins_to_issue($_, $_->name . ' continues when the registry is back') for $first, $second, $third, $copy, $standby;

# A machine ID passes from one server to another, whose clock is twenty minutes off the
# first one's: the later one begins where the other has ended.
my $early = TestClock->new;
my $late = TestClock->new;
$early->set(-600);
$late->set(600);
my $number = 500;

sub roamer
{
	my ($name, $clock) = @_;

	return $fleet->server($name, clock => $clock, lines => [ "snowflake.machine_id = $number" ]);
}

my $one = roamer('one', $late);
$fleet->begins_to_issue($one, 'a server ten minutes ahead has a machine ID');
$one->stop;
my $other = roamer('other', $early);
$fleet->wait_for_state($other, 'refused');
ok(!$fleet->issues($other), 'one ten minutes behind has to wait for it');
like($fleet->leased($other, 'last_error'), qr/^machine ID 500 is taken until /, 'as the registry says');
$early->set(601);
$fleet->begins_to_issue($other, 'until its clock is past what the first has used');
$early->set(-600);
ok(!$fleet->issues($other), 'and when that is set back, it issues nothing');
$other->stop;
$one->{clock} = undef;    # the right time
$one->start;
$fleet->wait_for_state($one, 'refused');
is($registry->safe_psql('postgres', "SELECT state, lease_until > now() + interval '9 minutes' FROM snowflake_registry.machines WHERE machine_id = $number"),
	'released|t', 'the end of what was used is that of the clock that was ahead');
$one->stop;

$number = 501;
$other = roamer('early', $early);
$fleet->begins_to_issue($other, 'a server ten minutes behind has another machine ID');
crash($other);
$one = roamer('late', $late);
$fleet->begins_to_issue($one, 'when its lease has ended, one ten minutes ahead has it');
$other->start;
$fleet->wait_for_state($other, 'refused');
ok(!$fleet->issues($other), 'and not the first any more');
$_->stop for $one, $other;

# The machine ID that a server released is used by one ten minutes ahead meanwhile.  When the
# server has it again, its clock is past that, and then is set back: no position before the lease
# is issued, though the generator issued none there.
$number = 502;
$other = roamer('back', $early);
$fleet->begins_to_issue($other, 'a server ten minutes behind has a third machine ID');
pause_postmaster($other);    # it would start another registry worker after a second
$fleet->end_registry_worker($other);
$registry->poll_query_until('postgres', "SELECT state = 'released' FROM snowflake_registry.machines WHERE machine_id = $number") or die;
my $token = '00000000-0000-0000-0000-000000000502';
$registry->poll_query_until('postgres',
	"SELECT refusal IS NULL FROM snowflake_registry.claim('$token', (SELECT layout FROM snowflake_registry.status), 10, $number, '1 s', clock_timestamp() + '600 s', 'another', 0)")
  or die;
$registry->safe_psql('postgres', "SELECT snowflake_registry.release('$token', clock_timestamp() + '600 s', 0)");
resume_postmaster($other);
$fleet->wait_for_state($other, 'refused');
$early->set(602);
$fleet->wait_for_state($other, 'held');
$early->set(-600);
ok(!$fleet->issues($other), "a server whose clock is set back issues nothing before its lease");
fails_with($other, "SET snowflake.max_wait = '100ms'; SELECT sno_nextval()", '53400', qr/could not generate a sno ID within 100 ms/);
$other->stop;

$fleet->stop_writers;
$fleet->check(20000, 'all servers');
done_testing();
