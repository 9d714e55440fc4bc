# Prints the results of lcov: coverage.pl DATA DIRECTORY REASONS
#
# REASONS has a line "file: text of a line :: reason" for each line that no test executes; the
# text is that of the line, without the white space around it, or "*" for all lines of the file.
use strict;
use warnings;

my ($data, $directory, $reasons) = @ARGV;
my (%reason, %lines, %executed, @missed, $file);

open(my $known, '<', $reasons) or die "$reasons: $!";
while (<$known>)
{
	$reason{"$1: $2"} = $3 if /^(src\/\S+): (.*) :: (.*)$/;
}

open(my $found, '<', $data) or die "$data: $!";
my @text;
while (<$found>)
{
	if (/^SF:\Q$directory\E\/(.*)/)
	{
		$file = $1;
		open(my $source, '<', "$directory/$file") or die "$file: $!";
		@text = <$source>;
	}
	elsif (my ($number, $count) = /^DA:(\d+),(\d+)/)
	{
		$lines{$file}++;
		if ($count > 0)
		{
			$executed{$file}++;
			next;
		}
		my $line = $text[ $number - 1 ] =~ s/^\s+|\s+$//gr;
		push @missed, sprintf("%s:%d: %s\n    %s", $file, $number, $line, $reason{"$file: $line"} // $reason{"$file: *"} // 'NO REASON IS KNOWN');
	}
}

my (%all, %sum);
for my $file (sort keys %lines)
{
	my $group = $file =~ m{^src/core/} ? 'src/core' : 'src';

	printf "%-34s %5d lines %6.1f %%\n", $file, $lines{$file}, 100 * ($executed{$file} // 0) / $lines{$file};
	$all{$group} += $lines{$file};
	$sum{$group} += $executed{$file} // 0;
}
print "\nNot executed:\n\n", join("\n", @missed), "\n\n";
my %share = map { $_ => 100 * $sum{$_} / $all{$_} } keys %all;
printf "%-34s %5d lines %6.1f %%\n", "$_:", $all{$_}, $share{$_} for sort keys %all;
exit($share{'src/core'} < 100 || $share{'src'} < 95);
