# The layout "javascript" in a JavaScript engine: IDs go through JSON as numbers,
# and come back unchanged.  IDs of the layout "twitter" do not.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my ($node) = grep { -x } map { ("$_/node", "$_/nodejs") } split /:/, $ENV{PATH};
plan skip_all => 'no node, the JavaScript engine' unless $node;

my $server = snowflake_server('server', "snowflake.machine_id = 31", "snowflake.layout = 'javascript'");

# A JSON array of numbers, parsed and written by JavaScript, and how many of its
# numbers are exact there.
sub through_javascript
{
	my ($json) = @_;
	my $program = 'let ids = JSON.parse(require("fs").readFileSync(0, "utf8"));'
	  . 'console.log(ids.filter(Number.isSafeInteger).length); console.log(JSON.stringify(ids))';
	my ($exact, $back, $error);

	IPC::Run::run([ $node, '-e', $program ], '<', \$json, '>', \$back, '2>', \$error) or die "node: $error";
	($exact, $back) = split /\n/, $back;
	return ($exact, $back);
}

# In the order of the numbers of the array, so that the result can be compared.
my $ids = $server->safe_psql('postgres', q{
	SELECT json_agg(id) FROM (
		SELECT snowflake_nextvals(10000) AS id
		UNION ALL
		SELECT snowflake_encode(created_at, machine_id, sequence, 'javascript')
		FROM (VALUES (timestamptz '2020-01-01 00:00Z', 0, 0), ('2020-01-01 00:00Z', 0, 1),
					 ('2089-09-06 15:47:35.551Z', 31, 127), ('2089-09-06 15:47:35.551Z', 31, 126)) v (created_at, machine_id, sequence)
	) i});
my ($exact, $back) = through_javascript($ids);
is($exact, 10004, 'JavaScript holds each ID exactly');
is( $server->safe_psql('postgres', qq{
		SELECT count(*) FROM json_array_elements_text('$ids') WITH ORDINALITY a (id, n)
		JOIN json_array_elements_text('$back') WITH ORDINALITY b (id, n) USING (n)
		WHERE a.id::bigint = b.id::bigint}),
	'10004', 'each comes back as it was');
like($back, qr/9007199254740991/, 'the greatest among them, which is JavaScript\'s MAX_SAFE_INTEGER');

# The reason for the layout: the IDs of other layouts are changed.
my $twitter = $server->safe_psql('postgres',
	"SELECT json_agg(snowflake_encode('2026-11-21', 7, n, 'twitter')) FROM generate_series(1, 100) n");
($exact, $back) = through_javascript($twitter);
is($exact, 0, 'IDs of the layout twitter are beyond what JavaScript holds');
isnt($back, $twitter =~ s/ //gr, 'and are changed by it');

done_testing();
