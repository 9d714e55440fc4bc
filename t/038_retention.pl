# Retention under wrong clocks, three years and a day behind and ahead, set while the server runs and before it starts:
# with rows of its own IDs, and on a server without any, with the rows of another one.  No row that is younger
# than the retention is removed, except by a clock that is ahead by less than two partitions when the server starts;
# and the minute after, with a correct clock, the statements work again.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;
use Time::Local;

my $day = 86_400;
my $years = 3 * 365 * $day;
my $noon = timegm(0, 0, 12, 15, 2, 2027);    # the true time of all cases
my $clock = TestClock->new;

# The tables with the length of their partitions, of the time before the present that has rows, of the retention, and of the
# future time for which partitions exist; "few" has one partition.
my %tables = (
	years => [ '1 year', '4 years', '2 years', '1 year' ],
	few => [ '1 year', '2 months', '2 years', '1 day' ],
	months => [ '1 month', '14 months', '1 year', '3 months' ],
	brief => [ '1 month', '1 month', '3 days', '3 months' ],
	days => [ '1 day', '40 days', '30 days', '3 days' ],
	hours => [ '1 hour', '3 days', '2 days', '1 day' ],
	quiet => [ '1 month', '14 months', '1 year', '3 months' ],
	snos => [ '1 month', '14 months', '1 year', '3 months' ]);

my @used_tables = grep { $_ ne 'quiet' } sort keys %tables;

sub true_time { return "to_timestamp($noon)"; }

sub kind { return $_[0] eq 'snos' ? 'sno' : 'snowflake'; }

# Set the true time of the next cases, or that with an error of the clock.
sub set_clock
{
	my ($error) = @_;

	$clock->set($noon - time + ($error // 0));
}

# The statement of docs/partitions.md.
sub retention
{
	my ($table, $more) = @_;

	return "SELECT * FROM snowflake_drop_partitions('$table', now() - interval '$tables{$table}[2]', since => '-infinity'" . ($more // '') . ')';
}

sub creation
{
	my ($table) = @_;
	my ($step, undef, undef, $ahead) = @{ $tables{$table} };
	my $unit = (split / /, $step)[1];

	return "SELECT count(*) FROM snowflake_create_partitions('$table', date_trunc('$unit', now(), 'UTC'), now() + interval '$ahead', '$step')";
}

sub make_tables
{
	my ($server, $default) = @_;

	$server->safe_psql('postgres', "ALTER DATABASE postgres SET timezone = 'UTC'; ALTER DATABASE postgres SET client_min_messages = warning");
	$server->safe_psql('postgres', <<'SQL');
CREATE FUNCTION outcome(name text, age interval, young text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	removed text;
	lost bigint;
	counted bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM %I WHERE id >= %L', name, young) INTO lost;
	SELECT coalesce(string_agg(p, ' '), '') INTO removed FROM snowflake_drop_partitions(name::regclass, now() - age, '-infinity') p;
	EXECUTE format('SELECT count(*) FROM %I WHERE id >= %L', name, young) INTO counted;
	RAISE SQLSTATE 'UNDO1';
EXCEPTION
	WHEN SQLSTATE 'UNDO1' THEN
		RETURN format('%s: %s; %s lost', name, removed, lost - counted);
	WHEN others THEN
		RETURN format('%s: %s: %s; 0 lost', name, SQLSTATE, SQLERRM);
END
$$;
SQL
	for my $table (sort keys %tables)
	{
		my ($step, $past) = @{ $tables{$table} };
		my $unit = (split / /, $step)[1];
		my $type = $table eq 'snos' ? 'sno' : 'bigint';
		my $nextval = $table eq 'snos' ? 'sno_nextval()' : 'snowflake_id()';
		my $generator = $default ? "DEFAULT $nextval" : '';
		my $until = true_time() . ($table eq 'quiet' ? "- interval '4 months'" : '');
		my $made = $table eq 'snos' ? 'sno_encode(at, 1, 2, 0)' : 'snowflake_encode(at, 900, 0)';

		$server->safe_psql('postgres', <<"SQL");
CREATE TABLE $table (id $type PRIMARY KEY $generator) PARTITION BY RANGE (id);
SELECT snowflake_create_partitions('$table', date_trunc('$unit', now() - interval '$past', 'UTC'), now(), '$step');
INSERT INTO $table SELECT $made FROM generate_series(now() - interval '$past', $until, least(interval '$step' / 10, '1 day')) at;
SQL
		$server->safe_psql('postgres', creation($table));
	}
	$server->safe_psql('postgres', "INSERT INTO $_ DEFAULT VALUES") for grep { $default && $_ ne 'quiet' } sort keys %tables;
}

# Call retention for tables, each undone.  Returns a hash with what it says, or the partitions that it has removed, and how
# many rows of these are younger than the retention.
sub outcomes
{
	my ($server, @tables) = @_;
	my $list = join ', ', map { "('$_', interval '$tables{$_}[2]', " . kind($_) . '_boundary(' . true_time() . " - interval '$tables{$_}[2]')::text)" }
	  @tables ? @tables : sort keys %tables;
	my %outcomes;

	/^(\w+): (.*); (-?\d+) lost$/ and $outcomes{$1} = { says => $2, lost => $3 }
	  for split /\n/, $server->safe_psql('postgres', "SELECT outcome(name, age, young) FROM (VALUES $list) AS tables (name, age, young)");
	return \%outcomes;
}

# What is due, with a correct clock: nothing, since it has been removed before.
sub removes_nothing
{
	my ($server, $name) = @_;

	is_deeply(outcomes($server, @used_tables), { map { $_ => { says => '', lost => 0 } } @used_tables }, "$name: nothing is removed");
}

my $unknown = qr/^55000: partitions of table public\.\w+ are not known to be old$/;
my $jumped = qr/^55000: the clock of this server has jumped forward by /;

sub refuses
{
	my ($server, $pattern, $name, @tables) = @_;

	subtest "$name: refused" => sub {
		my $outcomes = outcomes($server, @tables);

		is(keys %$outcomes, @tables ? @tables : keys %tables, 'tables');
		like($outcomes->{$_}{says}, $pattern, $_) for sort keys %$outcomes;
	};
}

my @servers;
set_clock();
for my $name ('used', 'unused')
{
	set_clock();
	my $server = snowflake_server($name, { clock => $clock }, $name eq 'used' ? 'snowflake.machine_id = 5' : '', "snowflake.max_wait = '100ms'");

	make_tables($server, $name eq 'used');
	push @servers, $server;
}
my ($used, $unused) = @servers;
for my $server (@servers)
{
	my $name = $server->name;

	set_clock();
	$server->restart;

	# A correct clock removes what is due, and no more; a table that was not used needs the argument.
	is_deeply(outcomes($server, 'months'), { months => { says => 'public.months_2026_01 public.months_2026_02', lost => 0 } }, "$name: a correct clock removes what is due");
	refuses($server, $unknown, "$name: a table without rows of four months", 'quiet');
	is($server->safe_psql('postgres', 'BEGIN; ' . retention('quiet', qq{, max_gap => '4 months'}) . '; ROLLBACK'),
		"public.quiet_2026_01\npublic.quiet_2026_02", "$name: its owner says that it was not used");
	fails_with($server, retention('quiet'), '55000', qr/DETAIL:  The table has no rows from 2026-12-01 00:00:00\+00 to 2027-03-01 00:00:00\+00, which is 90 days\.  Either the table was not used, or the clock of this server, which shows 2027-03-15 12:\S+, is wrong\.  These partitions end at or before 2026-03-15 12:\S+: public\.quiet_2026_01, public\.quiet_2026_02\./,
		qr/HINT:  Correct the clock if it is wrong\.  If the table was not used, pass "90 days" or more as the argument "max_gap"\./);
	$server->safe_psql('postgres', retention($_)) for @used_tables;
	removes_nothing($server, "$name: then nothing is due");

	# While it runs.  An INSERT is refused as well.
	for my $error (-$years, -$day)
	{
		set_clock($error);
		removes_nothing($server, "$name: while running, clock " . $error / $day . ' days');
	}
	for my $error ($day, $years)
	{
		set_clock($error);
		refuses($server, $jumped, "$name: while running, clock +" . $error / $day . ' days');
	}
	fails_with($used, 'INSERT INTO months DEFAULT VALUES', '55000', qr/jumped forward/) if $server == $used;
	set_clock();
	removes_nothing($server, "$name: correct again");

	# At a start.  A day is not noticed in days and months, and is in hours.
	for my $error (-$years, -$day)
	{
		$server->stop;
		set_clock($error);
		$server->start;
		removes_nothing($server, "$name: at a start, clock " . $error / $day . ' days');

		set_clock();
		$server->psql('postgres', 'INSERT INTO months DEFAULT VALUES; DELETE FROM months WHERE id >= snowflake_boundary(now() - interval \'1 s\')') if $server == $used;
		removes_nothing($server, "$name: correct again");
	}
	$server->stop;
	set_clock($day);
	$server->start;
	refuses($server, $unknown, "$name: at a start, clock +1 day", 'hours');
	my $early = outcomes($server, grep { $_ ne 'hours' } @used_tables);
	is(delete $early->{days}{says}, 'public.days_2027_02_13', "$name: a partition of a day");
	is_deeply([ map { $_->{says} // '' } values %$early ], [ ('') x keys %$early ], "$name: is removed a day early, and no other");
	set_clock();
	removes_nothing($server, "$name: correct again");

	$server->stop;
	set_clock($years);
	$server->start;
	refuses($server, $unknown, "$name: at a start, clock +3 years");
	$server->safe_psql('postgres', creation($_)) for sort keys %tables;
	refuses($server, $unknown, "$name: with partitions of that time");
	if ($server == $used)
	{
		$server->safe_psql('postgres', "INSERT INTO $_ DEFAULT VALUES") for sort keys %tables;
		is($server->safe_psql('postgres', 'SELECT snowflake_timestamp(max(id))::date FROM months'), '2030-03-14', 'IDs have that time');
		refuses($server, $unknown, "$name: with rows of that time");
	}
	$server->restart;
	refuses($server, $unknown, "$name: started again");

	# A minute after, with a correct clock.
	set_clock();
	removes_nothing($server, "$name: correct again");
	if ($server == $used)
	{
		fails_with($server, 'INSERT INTO months DEFAULT VALUES', '53400', qr/could not generate a Snowflake ID/);
		removes_nothing($server, 'IDs are not issued, and retention works');
		$server->psql('postgres', 'SELECT snowflake_move_back(clock_timestamp()), sno_move_back(clock_timestamp())');
		$server->restart;
		$server->safe_psql('postgres', 'INSERT INTO months DEFAULT VALUES');
		removes_nothing($server, 'moved back');
	}
	$server->stop;
}

# The statements of docs/portable.md, for the edition in SQL.
{
	my ($statements) = slurp_file("$FindBin::RealBin/../docs/portable.md") =~ /^```sql\n(DO \$\$.*?)^```/ms;
	my $run = sub {
		my ($status, undef, $stderr) = $unused->psql('portable', $_[0] // $statements);

		return $unused->safe_psql('portable', "SELECT count(*), min(tableoid::regclass::text) FROM orders") . ($status == 0 ? '' : " $stderr");
	};

	set_clock();
	$unused->start;
	$unused->safe_psql('postgres', 'CREATE DATABASE portable');
	edition($unused, 'portable');
	$unused->safe_psql('portable', <<'SQL');
CREATE TABLE orders (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE orders_%s PARTITION OF orders FOR VALUES FROM (%s) TO (%s)', to_char(month, 'YYYY_MM'), snowflake_boundary(month), snowflake_boundary(month + interval '1 month'))
FROM generate_series(timestamptz '2026-01-01 00:00Z', '2027-06-01 00:00Z', '1 month') AS month \gexec
INSERT INTO orders SELECT snowflake_boundary(at) FROM generate_series(timestamptz '2026-01-01 00:00Z', '2027-03-15 00:00Z', '1 day') at;
SQL
	for my $at_start (0, 1)
	{
		$unused->stop if $at_start;
		set_clock($years);
		$unused->start if $at_start;
		like($run->(), qr/^439\|orders_2026_01 .*ERROR:  partitions of table orders are not known to be old\n.*no rows from 2027-04-01 \S+ to 2030-03-14 /s, 'the edition in SQL refuses');
		set_clock();
		$unused->restart if $at_start;
	}
	is($run->(), '380|orders_2026_03', 'and a correct clock removes what is due');
	$unused->safe_psql('portable', 'DELETE FROM orders_2026_10');
	$noon += 31 * $day;
	set_clock();
	like($run->(), qr/^349\|orders_2026_03 .*no rows from 2026-10-01/s, 'a gap');
	is($run->($statements =~ s/max_gap CONSTANT interval := '0'/max_gap CONSTANT interval := '31 days'/r), '318|orders_2026_04', 'that is normal');
	$noon -= 31 * $day;
	$unused->stop;
}

# A job that was stopped for two months removes what has become due at once.
$noon += 61 * $day;
set_clock();
$used->start;
$used->safe_psql('postgres', "INSERT INTO months SELECT snowflake_encode(at, 900, 0) FROM generate_series(now() - interval '61 days', now(), '1 day') at");
is_deeply(outcomes($used, 'months'), { months => { says => 'public.months_2026_03 public.months_2026_04', lost => 0 } }, 'two months later, two partitions are removed');
$used->stop;

done_testing();
