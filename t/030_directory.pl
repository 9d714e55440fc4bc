# PostgreSQL 18 and later: an installation in a directory of its own, as docs/install.md has it.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

plan skip_all => 'extension_control_path is new in PostgreSQL 18' if major_version() < 18;

my $top = "$FindBin::RealBin/..";
my $directory = "$scratch/own";
my ($command, $lines) = slurp_file("$top/docs/install.md") =~ /^## A directory of its own\n.*?```sh\n(make install .*?)\n```.*?```conf\n(.*?)```/ms
  or die 'docs/install.md has no such section';

s{/opt/snowflake}{$directory}g for $command, $lines;
$lines =~ s/:\$system//;    # which has the extension too
{
	local $ENV{MAKEFLAGS};
	system_or_bail('sh', '-c', "cd '$top' && $command with_llvm=no > '$scratch/install.log'");
}

my $server = snowflake_server('main', 'snowflake.machine_id = 7', $lines);
is($server->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval())'), '7', 'IDs are issued');
like($server->safe_psql('postgres', q{SELECT pg_read_file('/proc/self/maps')}), qr{ \Q$directory\E/lib/snowflake\.so$}m, 'by the library in the directory');
$server->stop;

done_testing();
