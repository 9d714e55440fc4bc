# Prints the results of lcov: coverage.pl DATA DIRECTORY REASONS
#
# REASONS has a line "file function: text of a line :: reason" for each line that no test executes; the text is the
# text of the line, without the white space around it, or "*" for all lines of the function.
#
# Fails if a line without a reason is not executed, or a reason is for a line that does not exist.
use strict;
use warnings;

my ($data, $directory, $reasons) = @ARGV;
my (%reason, %exists, %lines, %executed, @missed, $unexplained, $file, %function, @text);

open(my $known, '<', $reasons) or die "$reasons: $!";
while (<$known>)
{
	$reason{"$1: $2"} = $3 if /^(src\/\S+ \w+): (.*) :: (.*)$/;
}

# The function that a line is in.
sub function_of
{
	my ($number) = @_;
	my ($line) = grep { $_ <= $number } sort { $b <=> $a } keys %function;

	return $line ? $function{$line} : '';
}

sub note_line
{
	my ($number, $count) = @_;
	my $place = "$file " . function_of($number);
	my $line = $text[ $number - 1 ] =~ s/^\s+|\s+$//gr;
	my ($key) = grep { $reason{$_} } "$place: $line", "$place: *";

	$lines{$file}++;
	$exists{$key}++ if $key;
	$executed{$file}++ if $count > 0;
	return if $count > 0;
	$unexplained++ unless $key;
	push @missed, sprintf("%s:%d, %s: %s\n    %s", $file, $number, function_of($number), $line, $key ? $reason{$key} : 'NO REASON IS KNOWN');
}

open(my $found, '<', $data) or die "$data: $!";
while (<$found>)
{
	if (/^SF:\Q$directory\E\/(.*)/)
	{
		$file = $1;
		%function = ();
		open(my $source, '<', "$directory/$file") or die "$file: $!";
		@text = <$source>;
	}
	elsif (/^FN:(\d+),(?:\d+,)?(\w+)/)
	{
		$function{$1} = $2;
	}
	elsif (/^DA:(\d+),(\d+)/)
	{
		note_line($1, $2);
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
my @stale = grep { !$exists{$_} } sort keys %reason;
print "Reasons for lines that do not exist:\n\n", join("\n", @stale), "\n\n" if @stale;
my %share = map { $_ => 100 * $sum{$_} / $all{$_} } keys %all;
printf "%-34s %5d lines %6.1f %%\n", "$_:", $all{$_}, $share{$_} for sort keys %all;
printf "%d lines are not executed, %d of them without a reason\n", scalar(@missed), $unexplained // 0;
exit($share{'src/core'} < 100 || $share{'src'} < 96 || $unexplained || @stale);
