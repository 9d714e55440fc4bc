# The watermark of docs/change-feeds-recovery.md: two servers write a table and replicate it to each other, and a third one, which writes as
# well, receives the rows of both.  Each has a reader that reads the rows of all three, by one position.
# Servers crash meanwhile.  The third one receives transactions in two phases, when they are prepared and when they end.
# The readers miss no row, and read none twice.
#
# SNOWFLAKE_TEST_SECONDS=600 runs it for ten minutes.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $seconds = $ENV{SNOWFLAKE_TEST_SECONDS} // 0;
my $page = slurp_file("$FindBin::RealBin/../docs/change-feeds-recovery.md");
my ($tables) = $page =~ /```sql\n(CREATE TABLE watermarks.*?)```/s;
my ($process) = $page =~ /```sql\n(CALL snowflake_process\('consumers', 'watermark'.*?)```/s;
my ($read) = $page =~ /```sql\nBEGIN;\n(SELECT next_id.*?)COMMIT;\n```/s;
ok($tables && $process && $read, 'the page has the statements');

my @ids = (1 .. 3);
my $streaming = major_version() >= 16 ? 'parallel' : 'on';
my %servers = map { $_ => snowflake_server("server_$_", { init => [ allows_streaming => 'logical' ] }, "snowflake.machine_id = $_",
		"wal_retrieve_retry_interval = '100ms'", 'max_prepared_transactions = 20', "logical_decoding_work_mem = '64kB'") } @ids;

# A reader and the call that moves the watermark, once.
sub read_on
{
	my ($id) = @_;

	return $servers{$id}->psql('postgres', "BEGIN; $read COMMIT");
}

# Rows are not sent back: a server publishes the rows of its own machine ID.  A trigger delays the rows of the others.
for my $id (@ids)
{
	my $own = $tables =~ s/= 1/= $id/gr;

	$servers{$id}->safe_psql('postgres', "
		CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text);
		$own
		CREATE TABLE positions (reader text PRIMARY KEY, next_id bigint NOT NULL);
		INSERT INTO positions VALUES ('all', 0);
		CREATE TABLE outbox (id bigint);
		CREATE TABLE consumers (consumer text PRIMARY KEY, next_id bigint NOT NULL);
		CREATE PROCEDURE write() LANGUAGE plpgsql AS \$\$
		BEGIN
			LOOP
				INSERT INTO messages (body) VALUES ('first');
				PERFORM pg_sleep(random() * 0.02);
				INSERT INTO messages (body) SELECT repeat('x', 1000) FROM generate_series(1, CASE WHEN random() < 0.02 THEN 200 ELSE 1 END);
				IF random() < 0.1 THEN ROLLBACK; ELSE COMMIT; END IF;
			END LOOP;
		END \$\$;
		CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(random() * 0.002); RETURN NEW; END';
		CREATE TRIGGER delay BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION delay();
		ALTER TABLE messages ENABLE REPLICA TRIGGER delay");
}
for ([ 1, 2 ], [ 2, 1 ], [ 3, 1 ], [ 3, 2 ], [ 1, 3 ], [ 2, 3 ])
{
	my ($to, $from) = @$_;
	my $connection = $servers{$from}->connstr('postgres') =~ s/'/''/gr;

	$servers{$to}->safe_psql('postgres', "CREATE SUBSCRIPTION from_${from}_to_$to CONNECTION '$connection' PUBLICATION own
		WITH (copy_data = false, streaming = $streaming, two_phase = " . ($to == 3 ? 'on' : 'off') . ')');
	$servers{$to}->poll_query_until('postgres', q{SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel});
}

# Readers begin when there is a watermark of each server.
$_->safe_psql('postgres', $process) for values %servers;
$_->poll_query_until('postgres', 'SELECT count(*) = 3 FROM watermarks') for values %servers;

sub outbox { return $servers{ $_[0] }->safe_psql('postgres', 'SELECT count(*) FROM outbox'); }

# Statements that are repeated until their server crashes, and end with the given one.
sub repeat
{
	my ($id, $statements, $last) = @_;
	my $file = "$scratch/repeat.$id." . length $statements;
	my $errors = '';

	$last //= 'COMMIT';
	append_to_file($file, "BEGIN;\n$statements\n$last;\nSELECT pg_sleep(0.005) \\gset pause\n" x 2000) unless -e $file;
	return { run => IPC::Run::start([ 'sh', '-c', 'while psql -XAtq -v ON_ERROR_STOP=1 -d "$1" -f "$2"; do :; done', 'sh', $servers{$id}->connstr('postgres'), $file ],
			'>', '/dev/null', '2>', \$errors), errors => \$errors };
}

my $end = time + $seconds;
my $round = 0;
my @failed;
do
{
	my $crashing = $ids[ $round++ % @ids ];
	my %before = map { $_ => outbox($_) } @ids;
	my @writers = map { my $id = $_; map { start_issuing($servers{$id}, 'CALL write()') } 1 .. 2 } @ids;
	my @loops = map { repeat($_, $process), repeat($_, $read) } @ids;

	push @writers, map { repeat($_, "INSERT INTO messages (body) VALUES ('prepared');", "PREPARE TRANSACTION 'writer'; SELECT pg_sleep(0.02) \\gset wait\nCOMMIT PREPARED 'writer'") } @ids;

	ok(wait_until(sub { !grep { outbox($_) <= $before{$_} + 150 } @ids }), "round $round: rows are read everywhere");
	crash($servers{$crashing});
	for my $id (grep { $_ != $crashing } @ids)
	{
		$servers{$id}->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
	}
	$_->{run}->finish for @writers, @loops;
	push @failed, grep { /ERROR/ } map { split /\n/, ${ $_->{errors} } } @loops;
	$servers{$crashing}->start;
	for my $server (map { $servers{$_} } @ids)
	{
		$server->safe_psql('postgres', "COMMIT PREPARED 'writer'") if $server->safe_psql('postgres', q{SELECT count(*) FROM pg_prepared_xacts WHERE gid = 'writer'});
	}
} while (time < $end || $round < 3);
is("@failed", '', 'no statement fails, but by crashes');

# All watermarks move past the last row; then all rows are read.
my $last = 0;
my $rows = 0;
for my $id (@ids)
{
	my ($count, $max) = split /\|/, $servers{$id}->safe_psql('postgres', 'SELECT count(*), max(id) FROM messages WHERE snowflake_machine_id(id) = snowflake_server_machine_id()');

	$rows += $count;
	$last = $max if $max > $last;
}
for my $id (@ids)
{
	ok(wait_until(sub {
		$servers{$_}->safe_psql('postgres', "INSERT INTO messages DEFAULT VALUES; DELETE FROM messages WHERE body IS NULL AND snowflake_machine_id(id) = $_; $process") for @ids;
		return $servers{$id}->safe_psql('postgres', "SELECT min(horizon) > $last FROM watermarks") eq 't';
	}), "server $id has watermarks above the last row");
	read_on($id);
	is($servers{$id}->safe_psql('postgres', "SELECT count(*), count(DISTINCT id) FROM outbox WHERE id <= $last"), "$rows|$rows", 'and has read each row of the three servers once');
}
cmp_ok($servers{3}->safe_psql('postgres', q{SELECT count(*) FROM messages WHERE body = 'prepared' AND snowflake_machine_id(id) = 1}), '>', 0, 'some of them were prepared');
note("$rows rows, $round crashes");
$servers{$_}->stop for @ids;

done_testing();
