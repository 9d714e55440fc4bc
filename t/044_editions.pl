# The extension and the edition in SQL: each function of one of them is a function of the other, with the same parameters
# and results, or it is in the table of docs/portable.md.  Those that read and make IDs return the same, or raise
# an error of the same SQLSTATE, for random IDs, layouts, times, texts and nulls.
# SNOWFLAKE_TEST_SCALE lowers the number of calls.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use List::Util 'uniq';

my $server = snowflake_server('main', 'snowflake.machine_id = 7', 'timezone = UTC', 'autovacuum = off');
my $seed = $ENV{SNOWFLAKE_TEST_SEED} // time;
my $cases = scaled(5000, 250);

$server->safe_psql('postgres', 'CREATE DATABASE edition');
ok(edition($server, 'edition', machine_id => 7), 'the edition in SQL');

# Functions, procedures and views, by their names, with their parameters.
my %objects = map {
	my %found = map { my ($name, @rest) = split /\|/; ($name => join('|', @rest)) } split /\n/, $server->safe_psql($_, <<'SQL');
SELECT concat(proname, '(', (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n) FROM unnest(proargtypes::oid[]) WITH ORDINALITY a (t, n)), ')'),
	prokind, pg_get_function_result(oid), pg_get_function_arguments(oid)
FROM pg_proc WHERE proname ~ '^(snowflake|sno|pg_stat_snowflake)_'
UNION ALL SELECT relname, relkind, '', '' FROM pg_class WHERE relname ~ '^(snowflake|pg_stat_snowflake)' AND relkind IN ('v', 'r', 'S')
SQL
	($_ => \%found)
} 'postgres', 'edition';
my ($extension, $edition) = @objects{ 'postgres', 'edition' };

# The rows of the table: names, which can end in a star.
my ($table) = slurp_file("$FindBin::RealBin/../docs/portable.md") =~ /^\| function \|.*\n\|[-| ]+\n((?:\|.*\n)+)/m or die 'docs/portable.md has no table of functions';
my @listed = map { s/\*$/.*/r } map { /`([a-z_0-9]+\*?)/g } map { (split /\|/)[1] } split /\n/, $table;
my %is_used;
my @unlisted;
for my $name (sort(uniq(keys %$extension, keys %$edition)))
{
	next if ($extension->{$name} // '') eq ($edition->{$name} // '');
	my ($pattern) = grep { $name =~ /^$_(?:\(|$)/ } @listed;

	$is_used{ $pattern // '' } = 1;
	push @unlisted, $name unless defined $pattern;
}
is(join("\n", @unlisted), '', 'what differs is in the table');
is(join("\n", grep { !$is_used{$_} } @listed), '', 'and all of the table differs');

# Values of parameters, by their names and types.
srand($seed);
note("SNOWFLAKE_TEST_SEED=$seed");
my @presets = split /\n/, $server->safe_psql('postgres', 'SELECT name FROM snowflake_layouts');

sub pick { return $_[ rand @_ ]; }
sub integer_of { return rand() < 0.8 ? int(rand 16) : join('', pick('', '-'), int(rand(2**rand(31)))); }

sub id
{
	return pick('0', '-1', '9223372036854775807', '-9223372036854775808') if rand() < 0.05;
	return sprintf('%s%d', pick('', '', '', '', '', '-'), rand(2**rand(63)));
}

sub time_of
{
	return pick('infinity', '-infinity', '294276-12-31 23:59:59.999999+00', '4714-11-24 00:00:00+00 BC') if rand() < 0.05;
	return sprintf('%04d-%02d-%02d %02d:%02d:%02d.%06d+00', pick(1 + rand 9999, 1970 + rand 300, map { 2023 + rand 40 } 1 .. 6), 1 + rand 12, 1 + rand 28, rand 24, rand 60, rand 60, rand 1000000);
}

# A definition, or one with a mistake.
sub layout_of
{
	return pick(@presets) if rand() < 0.4;
	my @bits = (int(1 + rand 63), int(rand 32), int(rand 32));
	@bits = (41, int(rand 12), int(rand 11)) if rand() < 0.6;
	my @fields = ("timestamp=$bits[0]", pick([ "machine=$bits[1]", "sequence=$bits[2]" ], [ "sequence=$bits[2]", "machine=$bits[1]" ], [ "sequence=$bits[2]" ], [])->@*);
	my $epoch = pick(sprintf('%04d-%02d-%02d', pick(1970 + rand 100, rand 9999), pick(1 + rand 12, 13 * rand), pick(1 + rand 28, 28 + rand 4)),
		int(rand(2**rand(50))) . pick('us', 'ms', 's', 'ns'), sprintf('20%02d-%02d-01T%02d:%02d:%02d%sZ', rand 100, 1 + rand 12, rand 25, rand 61, rand 61, pick('', '.5', '.123456', '.1234567')));
	my @words = ("epoch=$epoch", 'tick=' . pick('1ms', '10ms', '1s', '7us', '0.25s', '1500ns', '2000000ns', int(rand 1500) . 'ms'), @fields);

	@words = map { rand() < 0.03 ? pick(uc, "$_ $_", "x$_", '', s/=/ =/r, s/\d$//r, "$_.5", s/=/=0/r) : $_ } @words;
	@words = reverse @words if rand() < 0.1;
	return join(pick(' ', ' ', '  ', "\t"), @words);
}

sub base32 { return join('', map { pick(split //, rand() < 0.9 ? '0123456789abcdefghjkmnpqrstvwxyz' : 'OILUabzXYZ-é') } 1 .. (rand() < 0.9 ? 12 : rand 16)) =~ s/^/pick(0 .. 9)/er; }

my %value = (
	'id bigint' => \&id, 'id text' => \&base32, 'layout text' => \&layout_of, 'machine_id integer' => \&integer_of, 'sequence integer' => \&integer_of,
	map({ ("$_ timestamp with time zone" => \&time_of) } 'created_at', 'instant', 'start_at', 'end_at'));

# A call as a text, to be the same for both.  A null is not passed with a layout, which the extension does not read then.
sub call
{
	my ($function, $parameters) = @_;
	my @parameters = grep { !/^OUT / } split /, /, $parameters;
	my $null = $parameters !~ /layout text/ && rand() < 0.05 ? int(rand @parameters) : -1;

	return sprintf('%s(%s)', $function =~ s/\(.*//r, join(', ', map {
		my ($name, $type) = $parameters[$_] =~ /^(\w+) (.*)/;
		my $value = $_ == $null ? undef : ($value{"$name $type"} // die "no values for $name $type of $function")->();
		defined $value ? "'$value'::$type" : "NULL::$type"
	} 0 .. $#parameters));
}

# Functions that issue IDs, and the horizon, are not compared.
my @common = grep { defined $edition->{$_} && $extension->{$_} eq $edition->{$_} && /^snowflake/ && !/^snowflake_(?:nextvals?|id|horizon|server_machine_id)\(/ } sort keys %$extension;
cmp_ok(scalar @common, '>=', 15, 'functions that read and make IDs');
my $outcome = $outcome_function . <<'SQL';
CREATE TEMPORARY TABLE calls (call text);
COPY calls FROM '%s' (FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01');
SELECT concat(call, ' is ', pg_temp.outcome(call)) FROM calls;
SQL
my $count = 0;
for my $function (@common)
{
	my $parameters = $extension->{$function} =~ s/.*\|//r;
	my $file = "$scratch/calls";

	unlink $file;
	append_to_file($file, join('', map { call($function, $parameters) . "\n" } 1 .. $cases));
	my @outcomes = map { [ split /\n/, $server->safe_psql($_, sprintf($outcome, $file)) ] } 'postgres', 'edition';
	my @differences = grep { $outcomes[0][$_] ne $outcomes[1][$_] } 0 .. $#{ $outcomes[0] };
	my $values = grep { !/ is (?:22\d\d\d|)$/ } @{ $outcomes[0] };

	$count += @{ $outcomes[0] };
	is(join("\n", map { "$outcomes[0][$_], and $outcomes[1][$_]" } @differences[ 0 .. ($#differences < 4 ? $#differences : 4) ]), '', sprintf('%s: %d values, %d errors and nulls', $function, $values, @{ $outcomes[0] } - $values));
	cmp_ok($values, '>', $cases / 50, "$function: values");
}
note(sprintf('%d functions, %d calls', scalar @common, $count));
is($server->safe_psql($_, 'SELECT snowflake_server_machine_id(), snowflake_machine_id(snowflake_id()), snowflake_machine_id(snowflake_nextval()), count(*) FROM snowflake_nextvals(3)'), '7|7|7|3', "$_ issues IDs")
  for 'postgres', 'edition';
$server->stop;

done_testing();
