# The guarantees of the tests' own library: a test that bails out ends no other test, writers end
# when their files are gone, a release candidate counts as its version, and
# SNOWFLAKE_TEST_SCALE lowers amounts, but not without being set.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use Fleet;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use PostgreSQL::Version;
use SnowflakeTest;
use Test::More;

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

done_testing();
