# The guarantees of the tests' own library: a test that bails out ends no other test, writers end
# when their files are gone, a release candidate counts as its version,
# SNOWFLAKE_TEST_SCALE lowers amounts, but not without being set, an ID that is cut off does not count, a
# server keeps its clock, one of whose processes was killed can be stopped, and expected output has no
# name that depends on the version of PostgreSQL.
use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use PostgreSQL::Version;
use SnowflakeTest;
use TestClock;

# prove stops all tests if one of them prints this.
my $script = 'use SnowflakeTest; use PostgreSQL::Test::Utils; PostgreSQL::Test::Utils::system_or_bail("false")';
my ($out, $error) = ('', '');
ok(!IPC::Run::run([ $^X, (map { "-I$_" } @INC), '-e', $script ], '>', \$out, '2>', \$error), 'a test that bails out fails');
unlike($out, qr/^Bail out!/m, 'and stops no other one');

# A writer whose test was killed before it could stop it.
my $fleet = bless { files => [], writers => [] }, 'Fleet';
$fleet->start_writer(PostgreSQL::Test::Cluster->new('not_started'));
my $writer = $fleet->{writers}[0];
ok($writer->pumpable, 'a writer runs');
# It creates its file when it starts, which would be too late for rm.
wait_until(sub { -e $fleet->{files}[0] });
system_or_bail('rm', '-r', $scratch);
wait_until(sub { !eval { $writer->reap_nb; $writer->pumpable } });
ok(!$writer->pumpable, 'and ends when its files are gone');
$writer->kill_kill;

mkdir $scratch;
append_to_file("$scratch/ids", "1234567890123\n12345678901234");
is(none_is_issued_twice(1, 'a file', "$scratch/ids"), '1234567890123', 'a last line that is cut off does not count');

{
	package OfVersion;
	sub pg_version { return PostgreSQL::Version->new($_[0][0]) }
}
is(major_version(bless [$_->[0]], 'OfVersion'), $_->[1], "$_->[0] is $_->[1]")
  for [ '19rc1', 19 ], [ '18.6', 18 ], [ '20devel', 20 ], [ '17.11 (Debian 17.11-0+deb13u1)', 17 ];

{
	delete local $ENV{SNOWFLAKE_TEST_SCALE};
	is(scaled(20_000_000, 100), 20_000_000, 'an amount is not lowered by itself');
	for ([ '1', 20 ], [ '0.25', 5 ], [ '.5', 10 ], [ '0.01', 4 ])
	{
		local $ENV{SNOWFLAKE_TEST_SCALE} = $_->[0];
		is(scaled(20, 4), $_->[1], "20, but at least 4, at a scale of $_->[0]");
	}
	for ('0', '0.0', '2', '-1', '10%', '')
	{
		local $ENV{SNOWFLAKE_TEST_SCALE} = $_;
		ok(!eval { scaled(20, 4) }, "a scale of \"$_\" is refused");
	}
}

# The names that PostgreSQL generates for indexes on expressions; 20 changes them.
is_deeply([ map { my $file = $_; map { "$file: $_" } slurp_file($file) =~ /\b\w+_(?:snowflake|sno)_\w+_idx\d*\b|\b\w+_expr\d*_idx\d*\b/g } glob "$FindBin::RealBin/../expected/*.out" ],
	[], 'no expected output has the generated name of an index on an expression');

# A fast stop while the server restarts its processes never ends: PostgreSQL starts a checkpointer that is not told to stop.
my $clock = TestClock->new;
my $server = snowflake_server('restarts', { preload => '', extension => 0, clock => $clock }, 'restart_after_crash = on');
my $meanwhile = '';
ok(kill_process($server, wal_writer($server), sub { $meanwhile = 'called' }), 'a process is killed');
is($meanwhile, 'called', 'something else is done meanwhile');
my $ready = () = slurp_file($server->logfile) =~ /database system is ready to accept connections/g;
is($ready, 2, 'and the server accepts clients again');
ok($server->stop('fast', fail_ok => 1, timeout => 30), 'so that a fast stop ends') or $server->stop('immediate');

$clock->set(-3600);
$server->start;
$server->restart;
cmp_ok($server->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())'), '<', time - 3000, 'a server keeps its clock');
$server->stop;

my $ended = IPC::Run::start([ 'true' ]);
$ended->finish;
ok(!kill_process($server, $ended->{KIDS}[0]{PID}), 'a process that has ended is not waited for');

done_testing();
