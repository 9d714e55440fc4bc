# Recovery to a point in time, and a server that is started from a base backup,
# under a clock an hour behind: no ID of a row that was recovered is issued again.
use FindBin;
use lib "$FindBin::RealBin/lib";
use IdLog;
use SnowflakeTest;
use TestClock;

my $primary = snowflake_server('primary', { init => [ has_archiving => 1, allows_streaming => 1 ] },
	'snowflake.machine_id = 5', "snowflake.max_wait = '100ms'");
my $issued = IdLog->new;
$issued->make_tables($primary);
$issued->continues($primary, 'a server issues IDs');
my $at_backup = $issued->greatest;
$primary->backup('backup');
$issued->insert($primary, 20000);
$primary->safe_psql('postgres', "SELECT pg_create_restore_point('here')");
my $here = $issued->greatest;
$issued->insert($primary, 1000);
archive_wal($primary);

# A server from the backup, with an hour less on its clock.
sub recovered
{
	my ($name, $greatest, %options) = @_;
	my $clock = TestClock->new;

	$clock->set(-3600);
	my $server = snowflake_server($name, { clock => $clock, backup => [ $primary, 'backup', %options ] },
		$options{has_restoring} ? ("recovery_target_name = 'here'", "recovery_target_action = 'promote'") : ());
	$server->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
	is($server->safe_psql('other', 'SELECT max(id) FROM items'), $greatest, "$name: what was recovered");
	IdLog->new->continues_above_recovered($server, $clock, $name);
	$server->stop;
}

recovered('to_a_point', $here, has_restoring => 1, standby => 0);

# The backup alone, as a clone of the server: it ends where the backup ended.
recovered('from_backup', $at_backup);
$primary->stop;

done_testing();
