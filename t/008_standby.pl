# Standbys under a clock an hour behind: they issue no ID before promotion, and after it no ID of a replicated row is
# issued again, even if the primary's clock was stepped back before its last commits, if the standby was restarted
# before promotion, and if it crashed right after it.
use FindBin;
use lib "$FindBin::RealBin/lib";
use IdLog;
use SnowflakeTest;
use TestClock;

my $nextval = 'SELECT snowflake_nextval()';

my $clock = TestClock->new;
my $primary = snowflake_server('primary', { clock => $clock, init => [ allows_streaming => 1 ] },
	'snowflake.machine_id = 5', "snowflake.max_wait = '100ms'");
my $issued = IdLog->new;
$issued->make_tables($primary);
$issued->continues($primary, 'the primary issues IDs');
$primary->backup('backup');

# A standby, and its clock.
sub standby
{
	my ($name) = @_;
	my $its_clock = TestClock->new;

	$its_clock->set(-3600);
	return (snowflake_server($name, { clock => $its_clock, backup => [ $primary, 'backup', has_streaming => 1 ] }), $its_clock);
}

my ($promoted, $promoted_clock) = standby('promoted');
my ($restarted, $restarted_clock) = standby('restarted');
my ($crashed, $crashed_clock) = standby('crashed');

fails_with($_, $nextval, '25006', qr/cannot execute snowflake_id\(\) during recovery/) for $promoted, $restarted, $crashed;
for my $kind (qw(bigint sno))
{
	my $reserved_until = $primary->safe_psql('postgres', "SELECT reserved_until FROM pg_stat_snowflake WHERE generator = '$kind'");
	is($promoted->safe_psql('postgres', "SELECT reserved_until >= '$reserved_until', reservation_writes FROM pg_stat_snowflake WHERE generator = '$kind'"), 't|0', 'a standby shows the reservation of the primary');
}

# The primary continues, and its clock is stepped back before its last commits, so
# that the times of these differ from the clock.
$issued->insert($primary, 20000);
$clock->step(-0.09);
$issued->continues($primary, 'the primary continues after a small step back');
$primary->wait_for_catchup($_) for $promoted, $restarted, $crashed;
$issued->check('the primary');
$primary->stop;

$promoted->promote;
my $log = -s $promoted->logfile;
IdLog->new->continues_above_recovered($promoted, $promoted_clock, 'a promoted standby');
my $copied = qr/LOG:  "snowflake.machine_id" is set in a file in the data directory\n.*DETAIL:  Base backups and pg_rewind copy the file ".*?postgresql.conf"/;
log_matches($promoted, $log, $copied, 'it reports that its machine ID was copied');
$promoted->stop;

$restarted->stop;
my $file = PostgreSQL::Test::Utils::tempdir() . '/machine_id.conf';
append_to_file($file, "snowflake.machine_id = 5\n");
$restarted->adjust_conf('postgresql.conf', 'snowflake.machine_id', undef);
$restarted->append_conf('postgresql.conf', "include_if_exists = '$file'");
$restarted->start;
$restarted->promote;
$log = -s $restarted->logfile;
IdLog->new->continues_above_recovered($restarted, $restarted_clock, 'a standby that was restarted and promoted');
unlike(substr(slurp_file($restarted->logfile), $log), qr{is set in a file in the data directory}, 'a machine ID in a file elsewhere is not reported');
$restarted->stop;

$crashed->promote;
crash($crashed);
$crashed->start;
IdLog->new->continues_above_recovered($crashed, $crashed_clock, 'a promoted standby that crashed');
$crashed->stop;

done_testing();
