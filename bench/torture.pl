# Faults of one server, whose IDs are all compared: see bench/torture, which runs this.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../t/lib";

use Faults;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use TestClock;

# What is tested: the query of a client, for up to five million IDs, the settings, and the bytes of a bit for each ID of a
# second (bench/torture.c).
my %tested = (
	bigint => [ 'snowflake_nextvals((random() * 5e6)::integer + 1)', 512_000 ],
	sno => [ 'sno_nextvals((random() * 5e6)::integer + 1, 0)', 256_000, "snowflake.sno_sequence_range = '0-4095'" ]);
my ($ids, $bytes, @settings) = @{ $tested{ $ARGV[3] // 'bigint' } // die "a generator is bigint or sno\n" };

# The WAL writer writes seldom, so that only a flush keeps a reservation.  The clock is set back by more than the time that
# a restart takes, and IDs may be ahead of it, so that the server would issue the same IDs again without a reservation.
my $clock = TestClock->new;
my $node = snowflake_server('server', { clock => $clock }, 'snowflake.machine_id = 5', "snowflake.max_wait = '60s'",
	"snowflake.max_ahead = '2s'", 'fsync = on', 'restart_after_crash = on', "max_wal_size = '256MB'", "wal_writer_delay = '10s'",
	'log_statement = none', @settings);
my $server = { name => 'server', clock => $clock, clock_off => 3, longest_pause => 0.5, node => $node };

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION snowflake');

# The file of torture.c: its four counters, and a bit for each ID from a minute ago to some time after the run.
my ($checker, $seen, $begin) = ("$scratch/torture", "$scratch/seen", time - 60);
system_or_bail('cc', '-O2', '-o', $checker, "$FindBin::RealBin/torture.c");
append_to_file($seen, pack('q4', (0) x 4));
truncate($seen, 32 + $bytes * (2 * $seconds + 600)) or die "$seen: $!";

# One client after another.
my $running = "$scratch/running";
append_to_file($running, '');
my $query = "COPY (SELECT $ids) TO STDOUT (FORMAT binary)";
my @clients = map
{
	start_client($running, "$scratch/client$_", 'sh', '-c', 'psql -XAtqd "$1" -c "$2" | "$3" "$4" "$5"', 'client',
		$node->connstr($_ % 2 ? 'postgres' : 'other'), $query, $checker, $seen, $begin)
} 1 .. 8;

inject($seconds, 1, { faults_of(sub { $server }, %faults_of_a_server) }, [],
	('kill a server') x 3, ('kill a process') x 2, 'stop a server', 'terminate sessions',
	('set the clock of a server') x 4, 'freeze the clock of a server', 'set the floor of a server');

unlink $running;
$_->finish for @clients;
open(my $file, '<', $seen) or die "$seen: $!";
read($file, my $counters, 32);
my ($checked, $repeated, $disordered, $outside) = unpack 'q4', $counters;
note(fault_counts());
cmp_ok($checked, '>=', $seconds * 10_000, "$checked IDs");
is($repeated, 0, 'none is issued twice');
is($disordered, 0, 'the IDs of each session increase');
is($outside, 0, 'their times are those of the run');
done_testing();
