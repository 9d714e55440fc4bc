#!/usr/bin/env perl

# Tests what pages have as code within a line: functions and settings of the extensions, and functions of the edition in SQL, that are named exist, and
# statements that are complete can be parsed.  Prints TAP, a test for each page; run by test/docs/run, from the root of the checkout,
# in a database with both extensions.
#
#   inline.pl PAGE...
#
# A statement begins with a keyword in capitals, and has no "..." in it.  Variables of psql are given a value.

use strict;
use warnings;
use utf8;

use Test::More;

binmode $_, ':encoding(UTF-8)' for map { Test::More->builder->$_ } qw(output failure_output);

# Names of other extensions, of earlier versions, and of what a reader creates.
my %foreign = map { $_ => 1 } qw(snowflake.node snowflake.nextval snowflake.currval snowflake.get_epoch snowflake.get_count snowflake.get_node snowflake.format
	snowflake.convert_sequence_to_snowflake snowflake.sno snowflake.prefix snowflake.spec snowflake.sql);

# What begins a statement, and not only the name of a command.
my $statement = qr/^(?:SELECT|CALL \w+\(|SHOW|SET|RESET|DROP|GRANT|REVOKE|DELETE|UPDATE|INSERT INTO|ALTER \w+|CREATE (?:TABLE|INDEX|EXTENSION|SCHEMA)) .*\w.*$/;

sub inline_code
{
	my ($file) = @_;

	open my $in, '<:encoding(UTF-8)', $file or die "$file: $!\n";
	local $/ = undef;
	my $text = <$in> =~ s/^\s*```.*?^\s*```\s*?$//gmsr =~ s/<!--.*?-->//gsr;
	return map { s/\s+/ /gr } $text =~ /(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)/g;
}

# The functions of the edition in SQL that the extension does not have.
sub functions_of_edition
{
	open my $in, '<', 'portable/snowflake.sql' or die "portable/snowflake.sql: $!\n";
	local $/ = undef;
	return <$in> =~ /(?:^CREATE OR REPLACE FUNCTION |^\('FUNCTION', ')(\w+)/gm;
}

# The first column of a query's rows.
sub column
{
	my ($query) = @_;

	open my $psql, '-|:encoding(UTF-8)', 'psql', '-XAtq', '-c', $query or die "psql: $!\n";
	chomp(my @rows = <$psql>);
	close $psql or die "psql failed: $query\n";
	return @rows;
}

my %functions = map { $_ => 1 } column("SELECT CASE nspname WHEN 'snowflake_registry' THEN 'snowflake_registry.' ELSE '' END || proname
	FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace"), functions_of_edition();
my %settings = map { $_ => 1 } column('SELECT name FROM pg_settings'), column("SELECT 'snowflake.' || proname FROM pg_proc");

# PL/pgSQL parses the statements of a block before it runs the first one.  What ends too early is the name of a command,
# such as "ALTER SYSTEM SET".
sub cannot_be_parsed
{
	my ($sql) = @_;

	$sql =~ s/(?<!:):'?\w+'?/1/g;
	$sql =~ s/\\g\w+.*//;
	open my $psql, '-|:encoding(UTF-8)', 'sh', '-c', 'psql -XAtqc "$1" 2>&1', 'sh', "DO \$DO\$ BEGIN IF false THEN $sql; END IF; END \$DO\$" or die "psql: $!\n";
	my $answer = join '', <$psql>;
	return !close $psql && $answer !~ /syntax error at end of input/;
}

for my $page (@ARGV)
{
	my @wrong;

	for my $code (inline_code($page))
	{
		push @wrong, map { "$_(): no such function" } grep { !$functions{$_} }
		  $code =~ /(?<![\w.])((?:snowflake_registry\.|snowflake_|sno_|pg_stat_snowflake)\w*)\(/g;
		push @wrong, map { "$_: no such setting" } grep { !$settings{$_} && !$foreign{$_} } $code =~ /(?<![\w.\/-])(snowflake\.[a-z]\w*)/g;
		push @wrong, "$code: cannot be parsed" if $code =~ $statement && $code !~ /\.\.\.|…|→/ && cannot_be_parsed($code);
	}
	is_deeply(\@wrong, [], "$page: names and statements within lines") or diag(join "\n", @wrong);
}
done_testing();
