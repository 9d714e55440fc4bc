# A set of IDs in a select list streams: the memory of the backend stays constant,
# whatever their number.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

plan skip_all => 'needs /proc' unless -r '/proc/self/status';

my $server = snowflake_server('main', 'snowflake.machine_id = 3',
	"snowflake.layout = 'epoch=2024-01-01 tick=1ms timestamp=41 machine=2 sequence=20'");

# The most memory that the backend ever had, in kB.
my $peak = q{(SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s*(\d+) kB')::integer)};
my $count = 5_000_000;
my $result = $server->safe_psql('postgres', <<"SQL");
SELECT count(id) FROM (SELECT snowflake_nextvals(1000) AS id) a;
SELECT $peak;
SELECT count(id) FROM (SELECT snowflake_nextvals($count) AS id) a;
SELECT $peak;
SQL
my (undef, $before, $counted, $after) = split /\n/, $result;

is($counted, $count, 'all IDs are issued');
cmp_ok($after - $before, '<', 4096, "in less than 4 MB ($before kB before, $after kB after)");
$server->stop;

done_testing();
