# The generators of examples/applications, as programs that tests start: SNOWFLAKE_GENERATOR alone, if it is set.
package Generators;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use SnowflakeTest;
use Test::More;

our @EXPORT = qw(generator_commands python_command);

sub runs { return system("$_[0] > /dev/null 2>&1") == 0; }

sub python_command { return [ '/usr/bin/python3', $_[0] ]; }

# The command of each language that is installed.
sub generator_commands
{
	my $directory = $FindBin::RealBin;
	my $go = 'GO111MODULE=off GOPATH=/usr/share/gocode';
	my %commands;

	return (other => [ 'sh', '-c', "exec $ENV{SNOWFLAKE_GENERATOR}" ]) if $ENV{SNOWFLAKE_GENERATOR};
	$commands{Python} = python_command("$directory/generator.py") if runs("/usr/bin/python3 -c 'import psycopg'");
	$commands{Node} = [ 'node', "$directory/generator.mjs" ] if runs("cd $directory && node -e 'import(\"pg\")'");
	$commands{Go} = ["$SnowflakeTest::scratch/generator"]
	  if runs("$go go build -o $SnowflakeTest::scratch/generator $directory/generator.go");
	for my $language ('Go', 'Node', 'Python')
	{
	  SKIP: { skip "$language or its driver is not installed", 1 unless $commands{$language}; pass("$language is installed"); }
	}
	return %commands;
}

1;
