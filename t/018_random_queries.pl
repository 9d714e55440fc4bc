# Random queries by the time of an ID (test/pushdown) have the same rows with pushdown as without:
# 500, or as many as SNOWFLAKE_QUERIES says, from SNOWFLAKE_SEED.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $count = $ENV{SNOWFLAKE_QUERIES} || 500;
my $seed = $ENV{SNOWFLAKE_SEED} || 1;
my $queries = "$FindBin::RealBin/../test/pushdown";

my $server = snowflake_server('server', 'snowflake.machine_id = 1');
my $outcomes = 'SELECT count(*) FROM outcomes WHERE';

$server->safe_psql('postgres', q{CREATE DATABASE queries TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'});
$server->safe_psql('queries', 'CREATE EXTENSION snowflake; ' . slurp_file("$queries/schema.sql"));

# In parts, so that no part exceeds limits of memory or time.
my $part = 1000;
my @differences;
for (my $done = 0; $done < $count; $done += $part)
{
	my $size = $count - $done < $part ? $count - $done : $part;
	my $calls = run_part($size, $seed + $done);
	my ($status, $stdout, $stderr) = $server->psql('queries', $calls);

	push @differences, $stderr if $status != 0 || $stderr ne '';
	last if @differences;
}
is(join("\n", @differences), '', "the same rows, $count queries from seed $seed");
is($server->safe_psql('queries', "$outcomes same"), $count, 'all were compared');

# Most of them are meaningful queries, without errors except for those of wrong layouts.
my $wrong_layout = "coalesce(failed ~ 'invalid Snowflake layout|is not a Snowflake ID', false)";
cmp_ok($server->safe_psql('queries', "$outcomes rewritten"), '>', $count * 0.6, 'most have another plan with pushdown');
cmp_ok($server->safe_psql('queries', "$outcomes rows > 0"), '>', $count * 0.5, 'most have rows');
cmp_ok($server->safe_psql('queries', "$outcomes failed IS NOT NULL AND NOT $wrong_layout"), '<', $count * 0.02, 'few raise errors');
cmp_ok($server->safe_psql('queries', "$outcomes $wrong_layout"), '>', $count * 0.005, 'wrong layouts raise theirs');
$server->stop;

done_testing();

sub run_part
{
	my ($size, $from) = @_;

	return scalar `$^X "$queries/generate" $size $from`;
}
