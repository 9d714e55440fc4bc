# Random queries by the time of an ID (test/pushdown) have the same rows with pushdown as without:
# 500, or as many as SNOWFLAKE_QUERIES says, from SNOWFLAKE_SEED.  A fifth of them is of times that
# are rounded.  Other random queries, 60, or as many as SNOWFLAKE_PLANS says, have plans that do no
# more work; of 200 queries one may, since the planner estimates some costs wrongly.  If SNOWFLAKE_TIMES is set, their times are compared, too.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $count = $ENV{SNOWFLAKE_QUERIES} || 500;
my $plans = $ENV{SNOWFLAKE_PLANS} || 60;
my $seed = $ENV{SNOWFLAKE_SEED} || 1;
my $queries = "$FindBin::RealBin/../test/pushdown";

my $server = snowflake_server('server', 'snowflake.machine_id = 1');
my $outcomes = 'SELECT count(*) FROM outcomes WHERE';

$server->safe_psql('postgres', q{CREATE DATABASE queries TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'});
$server->safe_psql('queries', 'CREATE EXTENSION snowflake; ' . slurp_file("$queries/schema.sql"));

my $rounded = int($count / 5);
is(join("\n", run('queries', 'generate', $count - $rounded, ''), run('queries', 'generate', $rounded, ' buckets')),
	'', "the same rows, $count queries from seed $seed");
is($server->safe_psql('queries', "$outcomes same"), $count, 'all were compared');

# Most of them are meaningful queries, without errors except for those of wrong layouts.
my $wrong_layout = "coalesce(failed ~ 'invalid Snowflake layout|is not a Snowflake ID', false)";
cmp_ok($server->safe_psql('queries', "$outcomes rewritten"), '>', $count * 0.6, 'most have another plan with pushdown');
cmp_ok($server->safe_psql('queries', "$outcomes rows > 0"), '>', $count * 0.5, 'most have rows');
cmp_ok($server->safe_psql('queries', "$outcomes failed IS NOT NULL AND NOT $wrong_layout"), '<', $count * 0.02, 'few raise errors');
cmp_ok($server->safe_psql('queries', "$outcomes $wrong_layout"), '>', $count * 0.005, 'wrong layouts raise theirs');

$server->safe_psql('postgres', q{CREATE DATABASE plans TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'});
$server->safe_psql('plans', 'CREATE EXTENSION snowflake; ' . slurp_file("$queries/plans.sql"));
my $worse = join("\n", run('plans', 'plans', $plans, ''));
cmp_ok($server->safe_psql('plans', 'SELECT count(*) FROM plans WHERE worse'), '<=', int($plans / 200), "no worse plans, $plans queries from seed $seed")
  || diag($worse);
is($server->safe_psql('plans', 'SELECT count(*) FROM plans'), $plans, 'all plans were compared');
cmp_ok($server->safe_psql('plans', 'SELECT count(*) FROM plans WHERE fewer_pages'), '>', $plans * 0.4, 'many are better');
is($server->safe_psql('plans', q{SELECT string_agg(query, E'\n') FROM plans WHERE slower}), '', 'none takes twice the time')
  if $ENV{SNOWFLAKE_TIMES};
$server->stop;

done_testing();

# Warnings of queries, in parts, so that no part exceeds limits of memory or time.
sub run
{
	my ($database, $generator, $size, $form) = @_;
	my $part = 1000;
	my $warnings = '';

	for (my $done = 0; $done < $size; $done += $part)
	{
		my $number = $size - $done < $part ? $size - $done : $part;
		my $calls = `$^X "$queries/$generator" $number @{[ $seed + $done ]}$form`;
		my ($status, $stdout, $stderr) = $server->psql($database, $calls);

		return $stderr if $status != 0;
		$warnings .= $stderr;
	}
	return $warnings eq '' ? () : $warnings;
}
