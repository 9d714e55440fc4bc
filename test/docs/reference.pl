#!/usr/bin/env perl

# Compares docs/reference with a server that has both extensions: each function, setting, column of a view, wait
# event and alert is on its page, with its signature, default or type, and no entry is left that does not exist.
# Prints TAP; run by test/docs/run, from the root of the checkout, in a database with both extensions.
#
#   reference.pl
#
# Functions for users have a line in a block of "text", such as "f(a integer) → text  STABLE".  A function that is not
# marked PARALLEL SAFE says so on this line.  Functions that not all roles can call have a paragraph "**Privileges**" below
# the same heading.  Each function of the extension snowflake has an example there, a block of "sql".  Other functions are listed
# by name below the heading "Internal functions", except those whose comment ends with "; internal".

use strict;
use warnings;
use utf8;

use Test::More;

binmode $_, ':encoding(UTF-8)' for map { Test::More->builder->$_ } qw(output failure_output);

sub slurp
{
	my ($file) = @_;

	open my $in, '<:encoding(UTF-8)', $file or die "$file: $!\n";
	local $/ = undef;
	return scalar <$in>;
}

# Rows of a query, as lists of columns.
sub rows
{
	my ($query) = @_;

	open my $psql, '-|:encoding(UTF-8)', 'psql', '-XAtq', '-F', "\t", '-c', $query or die "psql: $!\n";
	my @rows = map { chomp; [ split /\t/, $_, -1 ] } <$psql>;
	close $psql or die "psql failed: $query\n";
	return @rows;
}

# The sections of a page, by heading.
sub sections
{
	my ($text) = @_;
	my ($heading, %sections) = ('');

	for (split /^/, $text)
	{
		$heading = $1 if /^#+ (.*)/;
		$sections{$heading} .= $_;
	}
	return %sections;
}

sub short { return shift =~ s/timestamp with time zone/timestamptz/gr =~ s/::\w+//gr =~ s/\s+/ /gr }

# The line that the page has for a function.
sub signature
{
	my ($name, $kind, $arguments, $result, $volatility, $parallel) = @_;
	my @all = split /, /, short($arguments);
	my $in = join ', ', grep { !/^OUT / } @all;
	my $out = join ', ', map { s/^OUT //r } grep { /^OUT / } @all;
	my %volatility = (i => 'IMMUTABLE', s => 'STABLE', v => 'VOLATILE');
	my %parallel = (s => '', r => ' PARALLEL RESTRICTED', u => ' PARALLEL UNSAFE');

	return "CALL $name(" . short($arguments) =~ s/\bIN (?=\w)//gr . ')' if $kind eq 'p';
	$result = ($result =~ /^SETOF / ? 'SETOF ' : '') . "($out)" if $result =~ /record/ && $out ne '';
	return "$name($in) → " . short($result) . " $volatility{$volatility}$parallel{$parallel}";
}

# The functions of one extension, and the page that has them.
sub check_functions
{
	my ($extension, $page) = @_;
	my $text = slurp($page);
	my %sections = sections($text);
	my $internal = delete $sections{'Internal functions'} // '';
	my (%documented, %exists);

	for my $heading (sort keys %sections)
	{
		for my $block ($sections{$heading} =~ /^```text\n(.*?)^```/gms)
		{
			$documented{ s/\s+/ /gr =~ s/ $//r } = $sections{$heading} for grep { /→|^CALL / } split /\n(?! )/, $block;
		}
	}
	for (rows("SELECT CASE nspname WHEN 'snowflake_registry' THEN 'snowflake_registry.' ELSE '' END || proname, prokind,
			pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), provolatile, proparallel,
			proacl IS NOT NULL AND NOT EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0), proacl,
			'$extension' = 'snowflake' AND obj_description(p.oid, 'pg_proc') LIKE '%; internal'
		FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
			JOIN pg_extension e ON e.oid = d.refobjid
		WHERE extname = '$extension' ORDER BY 1, 3"))
	{
		my ($name, $kind, $arguments, $result, $volatility, $parallel, $is_restricted, $acl, $is_internal) = @$_;
		my $signature = signature(@$_);

		# functions of the registry say nothing of parallel plans: all of them lock, or are called by functions that do
		$signature =~ s/ (?:VOLATILE|STABLE|IMMUTABLE)?(?: PARALLEL \w+)?$// if $extension eq 'snowflake_registry';
		$exists{$signature} = 1;
		if ($is_internal eq 't' || $internal =~ /`\Q$name\E\(/)
		{
			ok(!$documented{$signature}, "$page: $name() is either internal or not");
			next;
		}
		ok($documented{$signature}, "$page has the function $name()") or diag($signature);
		ok($documented{$signature} =~ /^```sql$/m, "$page has an example of $name()") if $documented{$signature} && $extension eq 'snowflake';
		next if !$documented{$signature} || $is_restricted ne 't';
		ok($documented{$signature} =~ /^- \*\*Privileges\*\*: \S/m, "$page says who can call $name()");
		ok($documented{$signature} =~ /^- \*\*Privileges\*\*:.*pg_monitor/m, "$page: members of pg_monitor can call $name()") if $acl =~ /pg_monitor/;
	}
	is_deeply([ grep { !$exists{$_} } sort keys %documented ], [], "$page has no function that does not exist");
	return;
}

# A shorter page: its signatures are the same as on the page that lists all, and functions and settings that it names
# exist.
sub check_summary
{
	my ($summary, $page) = @_;
	my $text = slurp($summary);
	my %all = map { $_ => 1 } map { s/\s+/ /gr } map { split /\n(?! )/ } slurp($page) =~ /^```text\n(.*?)^```/gms;
	my @signatures = map { split /\n/ } $text =~ /^```text\n(.*?)^```/gms;

	cmp_ok(scalar @signatures, '>=', 10, "$summary has signatures");
	is_deeply([ grep { !$all{$_} } @signatures ], [], "$summary has the signatures of $page");
	cmp_ok(scalar(split /\n/, $text), '<=', 200, "$summary is short");
	return;
}

# The columns of views, in the table below the heading that is the view's name.
sub check_columns
{
	my ($page, @views) = @_;
	my %sections = sections(slurp($page));

	for my $view (@views)
	{
		my $section = $sections{$view} // $sections{"`$view`"} // '';
		my @columns = map { "$_->[0] " . short($_->[1]) } rows("SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '$view'::regclass AND attnum > 0");
		my @documented = map { /^\| `(\w+)` \| ([^|]*?) \|/ ? "$1 $2" : () } split /\n/, $section;

		is_deeply([ sort @documented ], [ sort @columns ], "$page has the columns of $view");
	}
	return;
}

# The settings, as rows of a table, and each with a section of its own.
sub check_settings
{
	my ($page) = @_;
	my $text = slurp($page);
	my %sections = sections($text);
	my %documented = map { /^\| \[`(snowflake\.\w+)`\]\([^)]*\) \| (.*) \|$/ ? ($1 => $2) : () } split /\n/, $text;
	my %context = (postmaster => 'restart', sighup => 'reload', user => 'session');
	my %exists;

	for (rows("SELECT name, vartype, boot_val, unit, min_val, max_val, context FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name"))
	{
		my ($name, $type, $default, $unit, $min, $max, $context) = @$_;
		my $row = join ' | ', $type, $unit, $min eq '' ? '' : "$min to $max", $default eq '' ? 'empty' : "`$default`", $context{$context} // $context;

		$exists{$name} = 1;
		is($documented{$name} =~ s/ +/ /gr, $row =~ s/ +/ /gr, "$page has the setting $name") if $documented{$name};
		ok($documented{$name}, "$page has a row for $name") or diag("| [`$name`](#) | $row |");
		ok($sections{$name}, "$page has a section for $name");
	}
	is_deeply([ grep { !$exists{$_} } sort keys %documented ], [], "$page has no setting that does not exist");
	return;
}

# The wait events of the sources, and the alerts.
sub check_names
{
	my ($page, $what, @names) = @_;
	my $text = slurp($page);

	ok(@names > 0, "there are ${what}s");
	ok($text =~ /`\Q$_\E`/, "$page has the $what $_") for @names;
	return;
}

check_functions('snowflake', 'docs/reference/functions.md');
check_functions('snowflake_registry', 'docs/reference/registry.md');
check_summary('llms.txt', 'docs/reference/functions.md');
check_columns('docs/reference/functions.md', 'snowflake_layouts');
check_columns('docs/reference/monitoring.md', 'pg_stat_snowflake', 'pg_stat_snowflake_horizon');
check_columns('docs/reference/registry.md', 'snowflake_registry.machines', 'snowflake_registry.status');
check_settings('docs/reference/settings.md');
check_names('docs/reference/monitoring.md', 'wait event', slurp('src/wait_event.h') =~ /= "(Snowflake\w+)"/g);
check_names('docs/reference/monitoring.md', 'alert', slurp('monitoring/alerts.yaml') =~ /alert: (\w+)/g);
done_testing();
