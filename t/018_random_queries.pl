# Random queries by the time of an ID (test/pushdown) have the same rows with pushdown as without:
# 500, or as many as SNOWFLAKE_QUERIES says, from SNOWFLAKE_SEED.  A fifth of them is of times that
# are rounded.  Other random queries, 60, or as many as SNOWFLAKE_PLANS says, have plans that do no
# more work; of 200 queries one may, since the planner estimates some costs wrongly.  SNOWFLAKE_TEST_SECONDS=600 draws
# all of them for ten minutes instead.  If SNOWFLAKE_TIMES is set, their times are compared, too.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $seconds = $ENV{SNOWFLAKE_TEST_SECONDS};
my $seed = $ENV{SNOWFLAKE_SEED} || 1;
my $queries = "$FindBin::RealBin/../test/pushdown";

my $server = snowflake_server('server', 'snowflake.machine_id = 1');
my $outcomes = 'SELECT count(*) FROM outcomes WHERE';

$server->safe_psql('postgres', q{CREATE DATABASE queries TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'});
$server->safe_psql('queries', 'CREATE EXTENSION snowflake; ' . slurp_file("$queries/schema.sql"));

my $wanted = $ENV{SNOWFLAKE_QUERIES} || 500;
my ($plain, @different) = run('queries', 'generate', $wanted - int($wanted / 5), 0.6, '');
my ($rounded, @different_rounded) = run('queries', 'generate', int($wanted / 5), 0.2, ' buckets');
my $count = $plain + $rounded;
is(join("\n", @different, @different_rounded), '', "the same rows, $count queries from seed $seed");
is($server->safe_psql('queries', "$outcomes same"), $count, 'all were compared');

# Most of them are meaningful queries, without errors except for errors of wrong layouts.
my $wrong_layout = "coalesce(failed ~ 'invalid Snowflake layout|is not a Snowflake ID', false)";
cmp_ok($server->safe_psql('queries', "$outcomes rewritten"), '>', $count * 0.45, 'many have another plan with pushdown');
cmp_ok($server->safe_psql('queries', "$outcomes rows > 0"), '>', $count * 0.5, 'most have rows');
cmp_ok($server->safe_psql('queries', "$outcomes failed IS NOT NULL AND NOT $wrong_layout"), '<', $count * 0.02, 'few raise errors');
cmp_ok($server->safe_psql('queries', "$outcomes $wrong_layout"), '>', $count * 0.005, 'wrong layouts raise theirs');

$server->safe_psql('postgres', q{CREATE DATABASE plans TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'});
$server->safe_psql('plans', 'CREATE EXTENSION snowflake; ' . slurp_file("$queries/plans.sql"));
my ($plans, @worse) = run('plans', 'plans', $ENV{SNOWFLAKE_PLANS} || 60, 0.2, '');
cmp_ok($server->safe_psql('plans', 'SELECT count(*) FROM plans WHERE worse'), '<=', int($plans / 200), "no worse plans, $plans queries from seed $seed")
  || diag(@worse);
is($server->safe_psql('plans', 'SELECT count(*) FROM plans'), $plans, 'all plans were compared');
cmp_ok($server->safe_psql('plans', 'SELECT count(*) FROM plans WHERE fewer_pages'), '>', $plans * 0.4, 'many are better');
is($server->safe_psql('plans', q{SELECT string_agg(query, E'\n') FROM plans WHERE slower}), '', 'none takes twice the time')
  if $ENV{SNOWFLAKE_TIMES};
$server->stop;
diag("drawn: $count queries and $plans plans, from seed $seed");

done_testing();

# Runs a number of queries, or queries for a share of the time, in parts, so that no part exceeds limits of memory or
# time.  Returns their number and warnings.
sub run
{
	my ($database, $generator, $size, $share, $form) = @_;
	my $end = $seconds && time + $share * $seconds;
	my $part = $seconds ? 100 : 1000;
	my ($done, @warnings) = 0;

	while ($end ? time < $end : $done < $size)
	{
		my $number = $end || $size - $done > $part ? $part : $size - $done;
		my $calls = `$^X "$queries/$generator" $number @{[ $seed + $done ]}$form`;
		my ($status, $stdout, $stderr) = $server->psql($database, $calls);

		push @warnings, $stderr if $stderr ne '';
		last if $status != 0;
		$done += $number;
	}
	return ($done, @warnings);
}
