# pg_rewind: a former primary is rewound to the server that was promoted, and later
# becomes the primary again, under a clock an hour behind.  No ID of a row that it has
# is issued again.
use FindBin;
use lib "$FindBin::RealBin/lib";
use IdLog;
use SnowflakeTest;
use TestClock;

my $old_clock = TestClock->new;
my $old = snowflake_server('old', { clock => $old_clock, init => [ allows_streaming => 1 ] },
	'snowflake.machine_id = 5', "snowflake.max_wait = '100ms'", 'wal_log_hints = on', "wal_keep_size = '64MB'");
my $issued = IdLog->new;
$issued->make_tables($old);
$issued->continues($old, 'the old primary issues IDs');
$old->backup('backup');

# Another machine ID: for a while both are primaries.
my $new = snowflake_server('new', { backup => [ $old, 'backup', has_streaming => 1 ] }, 'snowflake.machine_id = 6');
$old->wait_for_catchup($new);
$new->promote;
$new->safe_psql('postgres', 'CHECKPOINT');

# Both continue, the new one for longer, so that its reservation is the higher one.
$issued->insert($old, 1000);
$old->stop;
for (1 .. 10)
{
	$issued->continues($new, 'the new primary issues IDs');
}
$issued->check('both primaries');

# The old one becomes a standby of the new one.
my $configuration = slurp_file($old->data_dir . '/postgresql.conf');
command_ok(
	[ 'pg_rewind', '--source-server', $new->connstr('postgres'), '--target-pgdata', $old->data_dir, '--no-sync' ],
	'pg_rewind');
open(my $file, '>', $old->data_dir . '/postgresql.conf') or die $!;
print $file $configuration;
close $file;
$old->enable_streaming($new);
$old->set_standby_mode;
$old_clock->set(-3600);
$old->start;
$new->wait_for_catchup($old, 'replay', $new->lsn('write'));
fails_with($old, 'SELECT snowflake_nextval()', '25006', qr/during recovery/);
is($old->safe_psql('other', 'SELECT max(id) FROM items'), $new->safe_psql('other', 'SELECT max(id) FROM items'), 'it has what the new primary has');

# It becomes the primary again.
$new->stop;
$old->promote;
IdLog->new->continues_above_recovered($old, $old_clock, 'a rewound primary that is promoted');
$old->stop;

done_testing();
