# Readers that can only ask for the rows above the last ID that they have seen, as kafka-connect-jdbc, Logstash, Airbyte and
# dlt do.  They read the view of snowflake_enable_feed() while writers hold transactions open: they miss no row, and read none
# twice.  The same readers miss rows of the table itself.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $rounds = scaled(40, 8);
my $server = snowflake_server('main', 'snowflake.machine_id = 5', 'max_prepared_transactions = 2');
$server->safe_psql('postgres', q{
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text);
	SELECT snowflake_enable_feed('orders', view => 'new_orders');
	CREATE PROCEDURE write() LANGUAGE plpgsql AS $$
	BEGIN
		LOOP
			FOR i IN 1 .. 1 + random() * 2 LOOP
				INSERT INTO orders (item) VALUES (random());
				PERFORM pg_sleep(random() * CASE WHEN random() < 0.1 THEN 0.3 ELSE 0.02 END);
			END LOOP;
			IF random() < 0.1 THEN ROLLBACK; ELSE COMMIT; END IF;
		END LOOP;
	END $$});

# What a reader does in a poll, with a function that runs a statement and returns the IDs of its rows, and with the last ID
# that it has seen.
my %polls = (
	# a fixed page, as in a program, by a prepared statement
	page => sub {
		my ($run, $last) = @_;
		my (@page, @ids);

		do
		{
			@page = $run->("EXECUTE page($last)");
			$last = $page[-1] // $last;
			push @ids, @page;
		} while (@page == 20);
		return @ids;
	},
	# kafka-connect-jdbc, mode incrementing
	all => sub { my ($run, $last) = @_; return $run->(qq{SELECT * FROM "public"."%1\$s" WHERE "public"."%1\$s"."id" > $last ORDER BY "public"."%1\$s"."id" ASC}) },
	# the same with a cursor of the driver, which stays open between polls
	cursor => sub {
		my ($run, $last, $reader) = @_;

		$run->("BEGIN; DECLARE rows CURSOR FOR SELECT * FROM %s WHERE id > $last ORDER BY id") unless $reader->{is_open};
		my @ids = $run->('FETCH 20 FROM rows');
		$reader->{is_open} = @ids == 20;
		$run->('COMMIT') unless $reader->{is_open};
		return @ids;
	},
	# Logstash with sql_last_value, and with jdbc_paging_enabled
	unordered => sub { my ($run, $last) = @_; return $run->("SELECT * FROM %s WHERE id > $last") },
	offset => sub {
		my ($run, $last) = @_;
		my (@page, @ids);

		do
		{
			@page = $run->("SELECT * FROM (SELECT * FROM %s WHERE id > $last ORDER BY id) AS t1 LIMIT 5 OFFSET " . @ids);
			push @ids, @page;
		} while (@page);
		return @ids;
	},
	# Airbyte and others: the greatest value first, and then the rows up to it
	bounded => sub {
		my ($run, $last) = @_;
		my ($greatest) = $run->('SELECT max(id) FROM %s');

		return defined $greatest ? $run->("SELECT * FROM %s WHERE id > $last AND id <= $greatest ORDER BY id") : ();
	},
	# dlt: the last row again, which it recognizes
	closed => sub { my ($run, $last) = @_; return grep { $_ ne $last } $run->("SELECT * FROM %s WHERE id >= $last ORDER BY id") },
	# a transaction with one snapshot
	repeatable => sub {
		my ($run, $last) = @_;

		$run->('BEGIN ISOLATION LEVEL REPEATABLE READ');
		my @ids = $run->("SELECT * FROM %s WHERE id > $last ORDER BY id");
		$run->('COMMIT');
		return @ids;
	});

my @readers;
for my $relation ('new_orders', 'orders')
{
	for my $kind (sort keys %polls)
	{
		my $session = $server->background_psql('postgres');

		$session->query_safe("PREPARE page(bigint) AS SELECT * FROM $relation WHERE id > \$1 ORDER BY id LIMIT 20");
		push @readers, { relation => $relation, kind => $kind, session => $session, last => 0, seen => {} };
	}
}

sub poll
{
	my ($reader) = @_;
	my $run = sub {
		my ($statement) = @_;
		return map { /^(\d+)/ } split /\n/, $reader->{session}->query_safe($statement =~ s/%(?:1\$)?s/$reader->{relation}/gr);
	};
	my @ids = $polls{ $reader->{kind} }->($run, $reader->{last}, $reader);

	$reader->{seen}{$_}++ for @ids;
	($reader->{last}) = sort { $b <=> $a } $reader->{last}, @ids;
	return scalar @ids;
}

# In each round a transaction takes an ID, another one commits a later ID, all readers poll, and the first one ends.
my @writers = map { start_issuing($server, 'CALL write()') } 1 .. 3;
my $slow = $server->background_psql('postgres');
my $row = q{INSERT INTO orders (item) VALUES ('slow')};
my @ends = (
	'COMMIT', 'ROLLBACK',
	"PREPARE TRANSACTION 'slow'; COMMIT PREPARED 'slow'",
	"SAVEPOINT a; $row; ROLLBACK TO a; $row; COMMIT");
for my $round (0 .. $rounds - 1)
{
	$slow->query_safe("BEGIN; $row");
	$server->safe_psql('postgres', q{INSERT INTO orders (item) VALUES ('fast')});
	poll($_) for @readers;
	$slow->query_safe($ends[ $round % @ends ]);
}
$server->safe_psql('postgres', q{SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'issuing'});
$_->{run}->finish for @writers;

my @rows = split /\n/, $server->safe_psql('postgres', 'SELECT id FROM orders');
cmp_ok(scalar @rows, '>', 2 * $rounds, scalar(@rows) . ' rows');
for my $reader (@readers)
{
	# The last page of an open cursor can be empty.
	1 while poll($reader) || poll($reader);
	my $missed = grep { !$reader->{seen}{$_} } @rows;
	my $twice = grep { $_ > 1 } values %{ $reader->{seen} };
	my $name = "$reader->{relation}: the reader '$reader->{kind}'";

	if ($reader->{relation} eq 'new_orders')
	{
		is("$missed missed, $twice twice, " . keys(%{ $reader->{seen} }), '0 missed, 0 twice, ' . @rows, "$name reads each row once");
	}
	elsif ($reader->{kind} ne 'cursor')    # which may be too far behind to miss a row
	{
		cmp_ok($missed, '>', 0, "$name misses $missed rows");
	}
	$reader->{session}->quit;
}
$slow->quit;
$server->stop;

done_testing();
