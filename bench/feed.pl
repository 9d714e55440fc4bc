# Faults of a server, of whose rows pollers may miss none: see bench/feed, which runs this.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../t/lib";

use Faults;
use List::Util qw(max min);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use TestClock;

my ($rows, $clock_off) = @ARGV[ 3, 4 ];
my @pollers = ([ seq => 'bigserial' ], [ uuid => 'UUIDv7' ], [ id => 'Snowflake ID' ],
	[ xid => 'xid8, pg_snapshot_xmin' ], [ horizon => 'Snowflake ID, horizon' ]);

# Machine IDs of the first server, and of the standbys in the order of their promotion.
my @machine_ids = (9, 8, 7);
my $clock = TestClock->new;
my @lines = ('snowflake.machine_id = 9', "snowflake.max_wait = '60s'", 'fsync = on', 'restart_after_crash = on',
	'max_prepared_transactions = 200', 'track_commit_timestamp = on', 'max_connections = 150', "max_wal_size = '2GB'",
	"shared_buffers = '512MB'", "checkpoint_timeout = '2min'", 'log_statement = none');
my $server = { name => 'server', clock => $clock, clock_off => $clock_off, longest_pause => 0.5,
	node => snowflake_server('server9', { clock => $clock, extension => 0, init => [ allows_streaming => 1 ] }, @lines) };
my %node = (9 => $server->{node}, map { $_ => PostgreSQL::Test::Cluster->new("server$_") } 8, 7);

sub sql { my ($query) = @_; return $server->{node}->safe_psql('postgres', $query); }

# A client of whichever of the servers is the primary, until the end of the run.
my $running = "$scratch/running";
my @clients;
append_to_file($running, '');
sub client
{
	my ($name, $options, @command) = @_;
	local @ENV{qw(PGHOST PGPORT PGDATABASE PGTARGETSESSIONATTRS PGOPTIONS)} =
	  ((map { my $method = $_; join ',', map { $_->$method } @node{@machine_ids} } qw(host port)), 'postgres', 'read-write', $options);

	push @clients, start_client($running, "$scratch/$name", @command);
}

# Scripts for pgbench, and how often each of them is chosen.
my %writes = (
	single => [ 20, "INSERT;" ],
	short => [ 15, "BEGIN; INSERT, ('short'), ('short'); COMMIT;" ],
	long => [ 20, "BEGIN;\nINSERT;\nSLEEP 20000;\nINSERT, ('long');\nSLEEP 20000;\nCOMMIT;" ],
	savepoints => [ 10, "BEGIN;\nINSERT;\nSAVEPOINT a;\nINSERT;\nSLEEP 10000;\nROLLBACK TO a;\nINSERT;\n"
		  . "SAVEPOINT b;\nINSERT;\nRELEASE b;\nCOMMIT;" ],
	'first rolled back' => [ 5, "BEGIN;\nSAVEPOINT a;\nINSERT;\nROLLBACK TO a;\nSLEEP 10000;\nINSERT;\nCOMMIT;" ],
	'ID first' => [ 5, "BEGIN;\nSELECT snowflake_nextval() AS id \\gset\nSLEEP 20000;\n"
		  . "INSERT INTO events (id, writer) VALUES (:id, 'ID first');\nCOMMIT;" ],
	'IDs only' => [ 5, "SELECT snowflake_nextval();" ],
	abort => [ 8, "BEGIN;\nINSERT, ('abort');\nSLEEP 5000;\nROLLBACK;" ],
	trapped => [ 4, "CALL write_with_error();" ],
	copy => [ 2, "COPY events (writer) FROM '$scratch/rows';" ],
	'INSERT SELECT' => [ 2, "\\set n random_exponential(1, 1000, 10)\n"
		  . "INSERT INTO events (writer) SELECT 'INSERT SELECT' FROM generate_series(1, :n);" ],
	steps => [ 2, "CALL write_in_steps(10);" ],
	prepared => [ 4, "BEGIN;\nINSERT, ('prepared');\nPREPARE TRANSACTION 'own-:client_id-:n';\nSLEEP 20000;\n"
		  . "COMMIT PREPARED 'own-:client_id-:n';" ],
	'rolled back' => [ 2, "BEGIN;\nINSERT;\nPREPARE TRANSACTION 'own-:client_id-:n';\n"
		  . "ROLLBACK PREPARED 'own-:client_id-:n';" ],
	horizons => [ 1, "SELECT snowflake_horizon();" ],
	left => [ 0, "SLEEP 3000000;\nBEGIN;\nINSERT, ('left');\nPREPARE TRANSACTION 'left-:client_id-:n';" ]);

for my $name (keys %writes)
{
	my $script = $writes{$name}[1];

	$script =~ s/INSERT(?=[;,])/INSERT INTO events (writer) VALUES ('$name')/g;
	$script =~ s/SLEEP (\d+);/\\set us random(0, $1)\n\\sleep :us us/g;
	$script = "\\set n random(1, 1000000000000)\n$script" if $script =~ /:n'/;
	append_to_file("$scratch/$name.sql", "$script\n");
}
append_to_file("$scratch/rows", "COPY\n" x 100);

# Sessions that end transactions that another session has left prepared.  Transactions that clients
# were about to end themselves are left too when the clients are killed.
my $end_prepared = q{SELECT format('%s PREPARED %L', CASE WHEN random() < 0.7 THEN 'COMMIT' ELSE 'ROLLBACK' END, gid)
	FROM pg_prepared_xacts};
append_to_file("$scratch/end_prepared.sql", "SELECT pg_sleep(0.5);\n$end_prepared
	WHERE random() < 0.4 AND (gid LIKE 'left%' OR prepared < now() - interval '3 s') \\gexec\n");

sub start_clients
{
	my @writers = map { $writes{$_}[0] ? ('-f', "$scratch/$_.sql\@$writes{$_}[0]") : () } sort keys %writes;
	my $begun = sql('SELECT clock_timestamp()');

	client("writers.$_", "-c synchronous_commit=$_", qw(pgbench -n -c 16 -j 1 -T 6), @writers) for qw(on off);
	client('leaver', '', qw(pgbench -n -c 1 -j 1 -T 6 -f), "$scratch/left.sql");
	client('ender', '', qw(psql -XAtqf), "$scratch/end_prepared.sql");
	client('filler', '', qw(psql -XAtqc), "CALL fill($rows, '$begun', $seconds)");

	client("poller.$_->[0]", '', qw(psql -XAtq -v ON_ERROR_STOP=1 -c), "CALL poll('$_->[0]', 5)") for @pollers;
}

# The first standby has not received all WAL when it is promoted, the second one has.
my $promotions = 0;
my $standby;
sub add_standby
{
	my $machine_id = $machine_ids[ $promotions + 1 ];
	my $name = "server$machine_id";

	sql("SELECT pg_create_physical_replication_slot('$name', true)");
	$standby = standby_of($server, $node{$machine_id}, "primary_slot_name = '$name'", "snowflake.machine_id = $machine_id");
}

sub promote
{
	take_place_of($server, $standby, $promotions++ ? 'fast' : 'immediate');
	add_standby() if $promotions < 2;
}

# Faults are more frequent in a short run.
my %faults = (faults_of(sub { $server }, %faults_of_a_server), 'promote a standby' => \&promote);
my @names = (('kill a process') x 2, 'kill a server', ('stop a server') x 2, ('terminate sessions') x 2);
push @names, 'kill a server', ('set the clock of a server') x 3, 'freeze the clock of a server', 'set the floor of a server' if $clock_off;

$server->{node}->psql('postgres', slurp_file("$FindBin::RealBin/feed.sql"), on_error_die => 1);
add_standby();
start_clients();
inject($seconds / 3, min(15, max(4, $seconds / 12)), \%faults, $_, @names) for [], [ 'promote a standby' ], [ 'promote a standby' ];
unlink $running;
$_->finish for @clients;
sql("$end_prepared \\gexec");
sql("CALL poll('$_->[0]', 0)") for @pollers;

# Horizons in the order in which the client has seen them: none is less than one before or than the position.
my ($horizons, $last, $primary, @back) = (0, 0, 9);
for (grep { /horizon \d/ } split /\n/, slurp_file("$scratch/poller.horizon.log"))
{
	my ($horizon, $position, $machine_id) = /horizon (\d+) position (\d+) rows \d+ machine ID (\d+)/ or next;

	$last = 0 if $primary == 9 && $machine_id != 9;
	push @back, $_ if $horizon < $position || $horizon < $last;
	($last, $primary) = (max($horizon, $last), $machine_id);
	$horizons++;
}

my $result = sql(q{SELECT format('%s rows committed in %s transactions, of %s kinds', count(*), count(DISTINCT xid),
	count(DISTINCT writer)) FROM events}) . "\n" . fault_counts() . "\n";
my %missed;
for (@pollers)
{
	my ($key, $name) = @$_;
	my ($missed, $twice, $unknown) = split /\|/, sql("SELECT * FROM compare('$key')");

	$missed{$key} = "$missed $twice $unknown";
	append_to_file("$scratch/missed", "$name\t$missed\n");
	$result .= sprintf "  %-24s %8d rows missed  %d read twice  %d read that are not there\n",
	  $name, $missed, $twice, $unknown;
}
append_to_file("$scratch/result", $result . "The horizon was read $horizons times, and went back " . @back . " times\n");
note($result);
is($missed{horizon}, '0 0 0', 'the poller by horizon has missed no row, and read none twice');
is(join("\n", @back), '', 'no horizon was below an earlier one, or below the position');
is(join('', map { grep { /duplicate key.*events_(?:pkey|sno_key)/ } split /^/, slurp_file($_) } glob("$scratch/*.log")), '', 'no two rows had the same ID');
isnt($missed{id}, '0 0 0', 'the poller by Snowflake ID has missed rows');

sub keep
{
	my ($file, $query) = @_;

	append_to_file("$scratch/$file.csv", sql("COPY ($query) TO STDOUT (FORMAT csv, HEADER)"));
}

unless (Test::More->builder->is_passing)
{
	keep('missed', q{SELECT e.*, e.xmin, pg_xact_commit_timestamp(e.xmin) AS committed FROM events e
		WHERE seq NOT IN (SELECT unnest(rows) FROM poll WHERE poller = 'horizon' AND rows IS NOT NULL) ORDER BY id LIMIT 10000});
	keep('polls', q{SELECT at, read_from, read_to, cardinality(rows) AS rows FROM poll WHERE poller = 'horizon' ORDER BY at});
}
done_testing();
