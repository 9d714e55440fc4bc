#!/usr/bin/env perl

# Runs the blocks of one page of documentation, and compares their output with the output that the
# page shows.  Prints TAP, a test for each block, named by file and line.
#
#   blocks.pl PAGE
#
# A block is the text between two lines ```.  Its handling depends on its language:
#
#   sql      run by psql, in one session for the page, in a database of its own.  An error fails,
#            unless the page shows it
#   (none)   after a block of sql, sh or a program: the output of that block.  Blank lines and footers do not count
#   sh       run by a shell, in a copy of the checkout
#   python, go, java, ruby, js    a program, run as it is printed; not run if its language is not installed
#   conf     lines of postgresql.conf: a server starts with them, and has them
#   text     a drawing or a syntax: nothing to run
#
# HTML comments, which readers do not see, give details of the following block:
#
#   <!-- external: REASON -->    not run, since a test does not have all that it needs
#   <!-- in: FILE -->            a part of that file, in whatever language, which a test runs elsewhere
#   <!-- varies -->              of an output: numbers and lengths of lines may differ
#   <!-- on: SERVER -->          run on another server, see test/docs/run
#   <!-- sql: STATEMENTS -->     run before it: the objects that the page assumes
#
# test/docs/run starts the servers, and tells of them in the environment: DOC_DATABASE is the database of the page, DOC_SERVERS has their
# connection strings, as "NAME=STRING;NAME=STRING", and DOC_ABSENT why others were not started, as
# "NAME=REASON".  Blocks on those are not run.

use strict;
use warnings;

my $page = shift // die "usage: $0 PAGE\n";
my %connection = (server => "dbname=$ENV{DOC_DATABASE}");
my $number = 0;
my $failed = 0;

# Languages of programs: the command that shows that a language is installed, the name of a
# program's file, and the command that runs it.
my %programs = (
	python => [qw(python3 block.py python3)],
	go => ['go', 'block.go', 'go run'],
	java => [qw(javac Block.java java)],
	ruby => [qw(ruby block.rb ruby)],
	js => [qw(node block.js node)],
);

# The blocks of the page, in order: line, language, text, and the details from comments.
sub blocks
{
	my ($file) = @_;
	my (@blocks, $block, %said, $comment);

	open my $in, '<', $file or die "$file: $!\n";
	while (my $line = <$in>)
	{
		if ($block)
		{
			undef $block, next if $line =~ /^\s*```\s*$/;
			$block->{text} .= $line =~ s/^ {0,$block->{indent}}//r;
		}
		elsif ($line =~ /^(\s*)```(\w*)\s*$/)
		{
			$block = { line => $., indent => length $1, language => $2, text => '', %said };
			push @blocks, $block;
			%said = ();
		}
		elsif (defined $comment || $line =~ /^\s*<!--/)
		{
			$comment = ($comment // '') . $line;
			next if $comment !~ /-->/;
			my ($key, $value) = $comment =~ /<!--\s*(\w+):?\s*(.*?)\s*-->/s or die "$file:$.: what does this comment say?\n";
			$said{$key} = $value;
			undef $comment;
		}
	}
	die "$file: a block does not end\n" if $block;
	return @blocks;
}

sub report
{
	my ($ok, $name, @diagnostics) = @_;

	print $ok ? 'ok ' : 'not ok ', ++$number, " - $name\n";
	print map { "#   $_\n" } map { split /\n/ } @diagnostics if !$ok;
	$failed++ if !$ok;
	return;
}

# The comparable part of an output: without blank lines and spaces at the end, and, if it varies,
# without its numbers and the widths of columns that depend on them.
sub essence
{
	my ($text, $varies) = @_;

	$text = join '', map { s/\s+$//r . "\n" } grep { /\S/ } split /\n/, $text;
	$text = $text =~ s/\d+/0/gr =~ s/0(?:\.0)?/0/gr =~ s/ +/ /gr =~ s/-+/-/gr =~ s/^ //gmr if $varies;
	return $text;
}

# The output of psql for the blocks, by line of the page.
sub run_sql
{
	my (@blocks) = @_;
	my ($script, $on, %output, $line) = ("\\set VERBOSITY default\n\\pset pager off\n\\pset footer off\n", 'server');

	for my $block (@blocks)
	{
		my $wanted = $block->{on} // 'server';
		$script .= "\\connect \"$connection{$wanted}\"\n\\pset footer off\n" if $wanted ne $on;
		$on = $wanted;
		$script .= "\\echo <<< hidden\n$block->{sql}\n;\n" if $block->{sql};
		$script .= "\\echo <<< $block->{line}\n$block->{text}\n;\n";
	}
	open my $file, '>', "$ENV{DOC_WORK}/script.sql" or die "script.sql: $!\n";
	print $file $script;
	close $file;
	for (`stdbuf -o0 psql -Xq -d "$connection{server}" < "$ENV{DOC_WORK}/script.sql" 2>&1`)
	{
		if (/^<<< (\w+)$/) { $line = $1 }
		elsif (defined $line) { $output{$line} .= $_ }
		else { die "psql: $_" }
	}
	report(($output{hidden} // '') !~ /^ERROR/m, "$page, what it takes for granted", $output{hidden});
	return \%output;
}

sub run_sh
{
	my ($block) = @_;
	my $output = `bash -e 2>&1 <<'END_OF_BLOCK'\n$block->{text}\nEND_OF_BLOCK\n`;

	return ($?, $output);
}

sub is_installed
{
	my ($command) = @_;

	return grep { -x "$_/$command" } split /:/, $ENV{PATH};
}

sub run_program
{
	my ($block) = @_;
	my (undef, $name, $command) = @{ $programs{ $block->{language} } };

	open my $file, '>', "$ENV{DOC_WORK}/$name" or die "$name: $!\n";
	print $file $block->{text};
	close $file;
	my $output = `cd "$ENV{DOC_WORK}" && $command $name 2>&1`;
	return ($?, $output);
}

# The server of these blocks starts with its lines, and shows the settings with the values of these
# lines.
sub run_conf
{
	my ($block) = @_;
	my @settings = $block->{text} =~ /^([\w.]+) *= *(.*?) *(?:#.*)?$/mg;
	my @wrong = `"$ENV{DOC_START_CONF}" 2>&1 <<'END_OF_BLOCK'\n$block->{text}\nEND_OF_BLOCK\n`;

	return ($?, @wrong) if $?;
	while (my ($name, $value) = splice @settings, 0, 2)
	{
		$value =~ s/^'(.*)'$/$1/;
		my $shown = `psql -XAtq -d "$connection{conf}" -c "SHOW $name" 2>&1`;
		chomp $shown;
		push @wrong, "$name is \"$shown\", and not \"$value\"" if $shown ne $value;
	}
	return (@wrong > 0, @wrong);
}

# The lines of the block are lines of its file, one after the other.  Their indentation does not count.
sub is_in_file
{
	my ($block) = @_;
	my $lines = sub { join '', map { s/^\s+|\s+$//gr . "\n" } split /\n/, shift };

	open my $in, '<', $block->{in} or return 0;
	return index("\n" . $lines->(join '', <$in>), "\n" . $lines->($block->{text})) >= 0;
}

# A block and, if the page shows it, its output.
sub check
{
	my ($block, $expected, $output) = @_;
	my $varies = exists(($expected // {})->{varies});

	return report($output !~ /^(?:ERROR|FATAL|psql):?/m, "$page:$block->{line}", $output) if !$expected;
	my ($is, $should) = map { essence($_, $varies) } $output, $expected->{text};
	return report($is eq $should, "$page:$block->{line} prints what line $expected->{line} shows", 'It prints:', $output, 'The page says:',
		$expected->{text});
}

sub main
{
	my @all = blocks($page);
	my ($last, @known);
	my %absent = map { split /=/, $_, 2 } split /;/, $ENV{DOC_ABSENT} // '';

	for (split /;/, $ENV{DOC_SERVERS} // '')
	{
		my ($name, $string) = split /=/, $_, 2;
		$connection{$name} = $string;
	}
	for my $block (@all)
	{
		if ($block->{language} eq '' && $last) { $last->{expected} = $block; undef $last; next }
		die "$page:$block->{line}: what is this a block of?\n" if !exists $block->{in} && $block->{language} !~ /^(?:sql|sh|conf|text|yaml)$/ && !$programs{ $block->{language} };
		undef $last;
		next if $block->{language} eq 'text';
		my $reason = $absent{ $block->{on} // 'server' };
		my $program = exists $block->{in} ? undef : $programs{ $block->{language} };
		$reason = "$program->[0] is not installed" if $program && !is_installed($program->[0]);
		$block->{external} //= $reason if defined $reason;
		push @known, $block;
		$last = $block if $program || $block->{language} =~ /^(?:sql|sh)$/;
	}
	my $sql = run_sql(grep { $_->{language} eq 'sql' && !exists $_->{external} && !exists $_->{in} } @known);
	for my $block (@known)
	{
		my $where = "$page:$block->{line}";

		if (exists $block->{external}) { print 'ok ', ++$number, " - $where # SKIP external: $block->{external}\n" }
		elsif (exists $block->{in}) { report(is_in_file($block), "$where is a part of $block->{in}", $block->{text}) }
		elsif ($block->{language} eq 'sql') { check($block, $block->{expected}, $sql->{ $block->{line} } // '') }
		elsif ($block->{language} eq 'conf') { my ($bad, @wrong) = run_conf($block); report(!$bad, $where, @wrong) }
		elsif ($block->{language} eq 'sh' || $programs{ $block->{language} })
		{
			my ($bad, $output) = $block->{language} eq 'sh' ? run_sh($block) : run_program($block);
			$bad ? report(0, $where, $output) : check($block, $block->{expected}, $output);
		}
		else { report(0, $where, "a block of $block->{language} can only be external") }
	}
	print "1..$number\n";
	return;
}

main();
exit($failed > 0);
