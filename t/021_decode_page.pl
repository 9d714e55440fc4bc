# The arithmetic of docs/decode.html, compared with the extension: fields, times, boundaries and
# texts of random IDs in presets and other layouts, IDs of random times, and the errors of
# definitions.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my ($node) = grep { -x } map { ("$_/node", "$_/nodejs") } split /:/, $ENV{PATH};
plan skip_all => 'no node, the JavaScript engine' unless $node;

my $server = snowflake_server('server', 'snowflake.machine_id = 7');
my ($page) = slurp_file("$FindBin::RealBin/../docs/decode.html") =~ m{<script id="arithmetic">(.*?)</script>}s;
my $script = "$PostgreSQL::Test::Utils::tmp_check/decode_page.js";

# The output of a program with the page's arithmetic for the rows of a query, a JSON array each.
sub in_page
{
	my ($function, $rows) = @_;
	my ($output, $error);
	my $program = "$page\nconst f = $function;\n" . q{
		const cell = value => typeof value === "bigint" ? String(value) : value;
		for (const line of require("fs").readFileSync(0, "utf8").trim().split("\n")) {
			let result;
			try { result = f(...JSON.parse(line)); } catch (error) { result = [error.message]; }
			console.log(result.map(cell).join("|"));
		}};

	open my $out, '>', $script or die "$script: $!\n";
	print $out $program;
	close $out;
	IPC::Run::run([ $node, $script ], '<', \$rows, '>', \$output, '2>', \$error) or die "node: $error";
	return $output =~ s/\n\z//r;
}

# The rows of a query, as the arguments of a function of the page and its expected result.
sub compare
{
	my ($name, $function, $query, $count) = @_;
	my @rows = split /\n/, $server->safe_psql('postgres', "SET timezone = 'UTC'; $query");
	my @given = map { (split /\t/)[0] } @rows;
	my @wanted = map { (split /\t/, $_, 2)[1] } @rows;
	my @got = split /\n/, in_page($function, join("\n", @given) . "\n");
	my @wrong = map { "$given[$_]: $got[$_], and not $wanted[$_]" } grep { $got[$_] ne $wanted[$_] } 0 .. $#rows;

	cmp_ok(scalar @rows, '>=', $count, "$name: rows to compare");
	is(join("\n", splice @wrong, 0, 5), '', $name);
	return;
}

$server->safe_psql('postgres', q{
	SELECT setseed(0.23);
	CREATE TABLE layouts AS SELECT name AS layout FROM snowflake_layouts UNION ALL VALUES
		('epoch=2024-01-01T00:00:00Z tick=1ms timestamp=41 machine=8 sequence=14'),
		('epoch=1704067200000ms tick=10us timestamp=47 sequence=9 machine=7'),
		('epoch=1970-01-01 tick=1s timestamp=33'),
		('epoch=1999-12-31T23:59:59.999999Z tick=1us timestamp=60 machine=3'),
		('epoch=0001-01-01 tick=0.25s timestamp=42 sequence=21'),
		('epoch=2100-02-28T12:00:00Z tick=7ms timestamp=32 machine=31');
	CREATE TABLE ids AS
		SELECT layout, CASE n WHEN 1 THEN 0 WHEN 2 THEN last ELSE least(floor(random() * last), last)::bigint END AS id
		FROM layouts, generate_series(1, 60) n,
			LATERAL (SELECT snowflake_boundary('infinity', layout) - CASE WHEN snowflake_boundary('infinity', layout) = 9223372036854775807 THEN 0 ELSE 1 END AS last) l;
	CREATE FUNCTION iso(timestamptz) RETURNS text RETURN to_char($1, 'YYYY-MM-DD"T"HH24:MI:SS.US') || 'Z';
	CREATE FUNCTION try_encode(timestamptz, integer, integer, text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		RETURN snowflake_encode($1, $2, $3, $4);
	EXCEPTION WHEN datetime_field_overflow THEN
		RETURN 'error';
	END $$});

compare('snowflake_decode() and base 32', '(layout, id) => { const l = Snowflake.parseLayout(layout), { values, instant } = Snowflake.decode(l, BigInt(id));
		return [Snowflake.formatInstant(instant, 6), values.machine ?? 0, values.sequence ?? 0, Snowflake.toBase32(BigInt(id)), Snowflake.fromBase32(Snowflake.toBase32(BigInt(id)))]; }',
	q{SELECT jsonb_build_array(layout, id::text)::text || E'\t' || concat_ws('|', iso(d.created_at), d.machine_id, d.sequence, snowflake_to_base32(id), id)
		FROM ids, snowflake_decode(id, layout) d}, 700);

# Instants within ticks, before the epoch and past the end, and IDs of the fields that a layout has.
compare('snowflake_boundary() and snowflake_encode()', '(layout, time, machine, sequence) => { const l = Snowflake.parseLayout(layout), at = Snowflake.parseInstant(time);
		let id; try { id = Snowflake.encode(l, at, { machine, sequence }); } catch (error) { id = "error"; } return [Snowflake.boundary(l, at), id]; }',
	q{WITH times AS (
			SELECT layout, least(greatest(snowflake_timestamp(id, layout), '0001-01-02'), '9999-12-30') + make_interval(secs => round((random() - 0.5)::numeric, 6)::float8 * 10 ^ (-(id % 7))) AS at,
				snowflake_machine_id(id, layout) AS machine, snowflake_sequence(id, layout) AS sequence FROM ids
			UNION ALL SELECT layout, at, 0, 0 FROM layouts, unnest('{0001-01-01, 1969-12-31 23:59:59.999999, 2000-02-29, 2016-02-29 12:00, 2100-03-01, 9999-12-31 23:59:59.999999}'::timestamptz[]) at)
		SELECT jsonb_build_array(layout, iso(at), machine, sequence)::text || E'\t' || concat_ws('|', snowflake_boundary(at, layout),
			try_encode(at, machine, sequence, layout)) FROM times}, 700);

compare('sno_decode(), sno_encode(), sno_boundary() and casts', '(text, time, metabyte, partition, sequence, tick_tock) => {
		const id = Snowflake.fromSno(text), { values, instant } = Snowflake.decode(Snowflake.SNO, id), at = Snowflake.parseInstant(time);
		return [Snowflake.formatInstant(instant, 6), values.metabyte, values.partition, values.sequence, values.tick_tock ? "t" : "f", Snowflake.toHex(id, 20),
			Snowflake.readings(text)[0].id === id, Snowflake.toSno(Snowflake.boundary(Snowflake.SNO, at)), Snowflake.toSno(Snowflake.encode(Snowflake.SNO, at, { metabyte, partition, sequence, tick_tock }))]; }',
	q{WITH random AS MATERIALIZED (
			SELECT '2010-01-01'::timestamptz + random() * (timestamptz '2079-09-07' - '2010-01-01') AS at, floor(random() * 256)::int AS m, floor(random() * 65536)::int AS p,
				floor(random() * 65536)::int AS s, random() < 0.5 AS t FROM generate_series(1, 500)),
		id AS (SELECT *, sno_encode(at, m, p, s, t) AS id FROM random)
		SELECT jsonb_build_array(id::text, iso(at), m, p, s, t::int)::text || E'\t' || concat_ws('|', iso(sno_timestamp(id)), m, p, s, t, encode(id::bytea, 'hex'), 'true', sno_boundary(at), id) FROM id}, 500);

# The errors of definitions.
$server->safe_psql('postgres', q{
	CREATE FUNCTION layout_error(text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE message text;
	BEGIN
		PERFORM snowflake_decode(0, $1);
		RETURN 'none';
	EXCEPTION WHEN invalid_parameter_value THEN
		GET STACKED DIAGNOSTICS message = PG_EXCEPTION_DETAIL;
		RETURN message;
	END $$});
compare('errors of definitions', 'text => { Snowflake.parseLayout(text); return ["none"]; }',
	q{SELECT jsonb_build_array(text)::text || E'\t' || layout_error(text) FROM unnest(ARRAY['', ' ', 'twiter', ' twitter', 'epoch=2024-01-01', 'epoch=2024-01-01 tick=1ms', 'tick=1ms timestamp=41',
		'epoch=2024-01-01 timestamp=41', 'epoch=2024-01-01 tick=1ms timestamp=41 machine=10 sequence=13', 'epoch=2024-01-01 tick=1ms timestamp=41 machine=32', 'epoch=2024-01-01 tick=1ms timestamp=64',
		'epoch=2024-01-01 tick=1ms timestamp=99999999999999999999', 'epoch=2024-01-01 tick=1ms machine=1 timestamp=41', 'epoch=2024-01-01 tick=1ms timestamp=41 timestamp=41', 'epoch=2023-02-29 tick=1ms timestamp=41',
		'epoch=2024 tick=1ms timestamp=41', 'epoch=1704067200000 tick=1ms timestamp=41', 'epoch=2024-01-01 tick=1 timestamp=41', 'epoch=2024-01-01 tick=0.5us timestamp=41', 'epoch=2024-01-01 tick=2s timestamp=41',
		'epoch=2024-01-01 tick=0ms timestamp=41', 'epoch=2024-01-01 tick=1ms timestamp=4x', 'epoch=2024-01-01 tick=1ms timestamp=41 node=10', 'epoch=2024-01-01 tick=1ms timestamp=41 machine', 'epoch=2024-01-01 tick=1ms timestamp=41 machine=',
		'epoch=2024-01-01 tick=1s timestamp=62', 'epoch=2024-01-01 tick=1ms timestamp=0', 'epoch=2024-01-01T00:00:00Z tick=1000ns timestamp=41', 'epoch=2024-01-01T24:00:00Z tick=1us timestamp=41', 'epoch=2024-01-01 tick=1e3us timestamp=4',
		'epoch=2024-01-01 tick=.5ms timestamp=41', 'epoch=2024-01-01 tick=1.ms timestamp=41', 'epoch=99999999999999999999s tick=1ms timestamp=41', 'epoch=9223372036.854775807s tick=1ms timestamp=10', 'epoch=9223372036s tick=1ms timestamp=10']) text}, 30);

done_testing();
