# portable/snowflake.sql reads IDs, and makes boundaries and IDs of their parts, as the extension does: random ones,
# published ones, and values out of range; and refuses the definitions of layouts that the extension refuses.
# SNOWFLAKE_TEST_SCALE lowers the number of IDs.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $server = snowflake_server('main', 'snowflake.machine_id = 7', 'timezone = UTC', 'autovacuum = off');

sub create_functions { return edition($server, 'reader', layout => $_[0]); }

# Random IDs and times, and what both make of them.
my $values = <<'SQL';
SELECT md5(string_agg(concat_ws(' ', id, d.*, snowflake_timestamp(idLAYOUT), snowflake_machine_id(idLAYOUT), snowflake_sequence(idLAYOUT),
	snowflake_encode(d.created_at, d.machine_id, d.sequenceLAYOUT), text, snowflake_from_base32(translate(upper(text), '01', 'OI')),
	snowflake_boundary(d.created_at + n * interval '7 us'LAYOUT), snowflake_boundary(timestamptz '-infinity'LAYOUT), snowflake_boundary(timestamptz 'infinity'LAYOUT)), E'\n' ORDER BY n))
FROM generate_series(1, ROWS) n, LATERAL (SELECT CASE n WHEN 1 THEN 0 WHEN 2 THEN LAST ELSE (hashint8extended(n, 0) & LAST) >> (n % 20)::integer END AS id) i,
	LATERAL snowflake_decode(idLAYOUT) d, LATERAL (SELECT snowflake_to_base32(id) AS text) t
SQL
my $rows = scaled(100_000, 3000);

# IDs that others published, by layout, each with its time, machine ID and sequence number.
my $directory = "$FindBin::RealBin/../test/vectors";
my %published;
for (grep { /,\d/ } split /\n/, slurp_file("$directory/known_ids.csv"))
{
	my ($system, @parts) = split /,/;

	push @{ $published{$system} }, join('|', @parts[ 0 .. 3 ]);
}
for (grep { /^\d/ } split /\r?\n/, slurp_file("$directory/sonyflake.csv"))
{
	my ($id, $ticks, $sequence, $machine, $time) = split /,/;

	push @{ $published{sonyflake} }, "$id|$time|$machine|$sequence";
}
for my $layout (split(/\n/, $server->safe_psql('postgres', 'SELECT name FROM snowflake_layouts')), 'epoch=2024-01-01T00:00:00.25Z tick=7us timestamp=50 sequence=3 machine=9')
{
	my $last = $server->safe_psql('postgres', "SELECT snowflake_boundary('infinity', '$layout') - CASE snowflake_boundary('infinity', '$layout') WHEN 9223372036854775807 THEN 0 ELSE 1 END");
	my %query = map { $_ => $values =~ s/LAST/$last/gr =~ s/ROWS/$rows/gr =~ s/LAYOUT/$_ eq 'extension' ? ", '$layout'" : ''/ger } 'extension', 'portable';

	$server->safe_psql('postgres', 'CREATE DATABASE reader');
	ok(create_functions($layout), "layout $layout");
	is($server->safe_psql('reader', $query{portable}), $server->safe_psql('postgres', $query{extension}), "$rows IDs are read alike");
	if (my $published = delete $published{$layout})
	{
		my $ids = join ',', map { (split /\|/)[0] } @$published;

		is($server->safe_psql('reader', qq{SELECT snowflake_encode(created_at, machine_id, sequence), to_char(created_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), machine_id, sequence FROM unnest('{$ids}'::bigint[]) id, snowflake_decode(id) d}),
			join("\n", @$published), 'published IDs are read, and made of their parts');
	}
	$server->safe_psql('postgres', 'DROP DATABASE reader');
}

is_deeply([ keys %published ], [], 'all published IDs were read');

# What both make of values that are out of range or null: the same, or the same SQLSTATE.
my $outcomes = $outcome_function . <<'SQL';
SELECT call, pg_temp.outcome(replace(call, ')', 'LAYOUT)'))
FROM unnest('{NULL,now(),"timestamptz ''-infinity''","timestamptz ''infinity''","timestamptz ''0044-03-15 BC''","timestamptz ''9999-12-31''"}'::text[]) AS at,
	unnest('{NULL,-1,0,3,99999999}'::text[]) AS machine, unnest('{NULL,-1,0,5,99999999}'::text[]) AS sequence,
	concat('snowflake_encode(', replace(at, 'now()', 'timestamptz ''2026-01-01'''), ', ', machine, ', ', sequence, ')') AS text,
	replace(replace(text, '(,', '(NULL,'), ', ,', ', NULL,') AS call
UNION ALL
SELECT call, pg_temp.outcome(replace(call, ')', 'LAYOUT)'))
FROM unnest('{snowflake_timestamp,snowflake_machine_id,snowflake_sequence,snowflake_boundary}'::text[]) AS name,
	unnest('{NULL,-1,0,9223372036854775807}'::text[]) AS value, concat(name, '(', coalesce(value, 'NULL'), ')') AS call
UNION ALL
SELECT call, pg_temp.outcome(call)
FROM unnest('{0,7ZZZZZZZZZZZZ,8000000000000,zzzzzzzzzzzzz,000000000000u,00000000000000,ooooooooooooo,""}'::text[]) AS value, format('snowflake_from_base32(%L)', value) AS call
ORDER BY 1
SQL
for my $layout ('twitter', 'sonyflake', 'mastodon', 'epoch=2026-01-01 tick=1s timestamp=20')
{
	my %query = map { $_ => $outcomes =~ s/LAYOUT/$_ eq 'extension' ? ", ''$layout''" : ''/ger } 'extension', 'portable';

	$server->safe_psql('postgres', 'CREATE DATABASE reader');
	create_functions($layout);
	is($server->safe_psql('reader', $query{portable}), $server->safe_psql('postgres', $query{extension}), "layout $layout: values out of range, and nulls");
	$server->safe_psql('postgres', 'DROP DATABASE reader');
}

# Definitions of layouts: the script refuses all that the extension refuses, as its unit test lists them, and takes others.
my ($unit_test) = slurp_file("$FindBin::RealBin/../test/unit/test_layout.c") =~ /^test_bad_definitions(.*?)^\}/ms;
my @bad = map { s/TWITTER "/"epoch=0s tick=1ms timestamp=41 machine=10 sequence=12/r =~ s/"//gr =~ s/\\x(..)/chr hex $1/ger } $unit_test =~ /^\t\t\{((?:TWITTER )?"[^"]*"), \d/mg;
cmp_ok(scalar @bad, '>', 30, 'definitions of the unit test');
$server->safe_psql('postgres', 'CREATE DATABASE reader');
for my $layout (@bad, 'epoch=2024-01-01 tick=3600s timestamp=41', 'epoch=2024-01-01T24:00:00Z tick=1ms timestamp=41', 'epoch=0000-01-01 tick=1ms timestamp=41', 'epoch=2023-02-29 tick=1ms timestamp=41', 'epoch=2024-01-00 tick=1ms timestamp=41', 'epoch=2024-13-01 tick=1ms timestamp=41', 'epoch=2024-01-01T00:00:00 tick=1ms timestamp=41')
{
	fails_with($server, "SELECT snowflake_timestamp(0, \$\$$layout\$\$)", '22023');
	ok(!create_functions($layout), "\"$layout\" is refused");
	like(slurp_file("$scratch/refusal"), qr/ERROR:  invalid Snowflake layout/, 'with this error');
}
for my $layout ('epoch=0s tick=1s timestamp=43', "  sequence=3\tmachine=4 tick=0.25s epoch=1999-12-31T23:59:59.5Z" =~ s/sequence=3/timestamp=041 sequence=3/r, 'epoch=0001-01-01 tick=1500000ns timestamp=41', 'epoch=9876-12-31 tick=1ms timestamp=41')
{
	ok(create_functions($layout), "\"$layout\" is a layout");
	is($server->safe_psql('reader', 'SELECT snowflake_decode(123456789)'), $server->safe_psql('postgres', "SELECT snowflake_decode(123456789, '$layout')"), 'and has the same parts');
}
$server->safe_psql('postgres', 'DROP DATABASE reader');
$server->stop;

done_testing();
