# The feed of a table that two servers write and replicate to each other: the statements of
# docs/change-feeds-recovery.md.  A reader on each server reads the rows of both, in several rounds, while
# transactions that commit late insert more.  It misses none, and reads none twice.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my ($procedures) = slurp_file("$FindBin::RealBin/../docs/change-feeds-recovery.md") =~ /```sql\n(CREATE EXTENSION dblink;.*?CREATE PROCEDURE read_other.*?)```/s;
my ($transactions, $rounds) = (150, 6);    # at least, of each writer and each reader
my %servers = map { $_ => snowflake_server("server_$_", { init => [ allows_streaming => 'logical' ] }, "snowflake.machine_id = $_") } 1, 2;

# The connection string of the server with a machine ID, as a literal.
sub connection
{
	my ($id) = @_;

	return "'" . $servers{$id}->connstr('postgres') =~ s/'/''/gr . "'";
}

# Rows are not sent back: a server publishes those of its own machine ID.  A trigger delays the rows of the other.
for my $id (1, 2)
{
	$servers{$id}->safe_psql('postgres', "
		CREATE TABLE messages (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text);
		CREATE PUBLICATION own FOR TABLE messages WHERE ((id >> 12) & 1023 = $id);
		$procedures
		CREATE PROCEDURE write() LANGUAGE plpgsql AS \$\$
		DECLARE
			written integer := 0;
		BEGIN
			WHILE written < $transactions OR (SELECT count(*) FROM rounds) < $rounds LOOP
				INSERT INTO messages (body) VALUES ('first');
				PERFORM pg_sleep(random() * 0.02);
				INSERT INTO messages (body) VALUES ('second');
				COMMIT;
				written := written + 1;
			END LOOP;
		END \$\$;
		CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(random() * 0.004); RETURN NEW; END';
		CREATE TRIGGER delay BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION delay();
		ALTER TABLE messages ENABLE REPLICA TRIGGER delay;
		CREATE TABLE rounds (n integer);
		CREATE TABLE finished ()");
}
for my $id (1, 2)
{
	$servers{$id}->safe_psql('postgres', "CREATE SUBSCRIPTION to_$id CONNECTION " . connection(3 - $id) . " PUBLICATION own WITH (copy_data = false)");
	$servers{$id}->poll_query_until('postgres', q{SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel});
}

# The reader on a server reads until the table "finished" has a row, and then once more.
sub reader
{
	my ($id) = @_;

	return start_issuing($servers{$id}, "DO \$\$
		DECLARE
			is_last boolean;
		BEGIN
			LOOP
				is_last := EXISTS (SELECT FROM finished);
				CALL read_own();
				COMMIT;
				CALL read_other(" . (3 - $id) . ', ' . connection(3 - $id) . ", 'to_$id');
				INSERT INTO rounds VALUES (1);
				COMMIT;
				EXIT WHEN is_last;
			END LOOP;
		END \$\$");
}

my @readers = map { reader($_) } 1, 2;
my @writers = map { my $id = $_; map { start_issuing($servers{$id}, 'CALL write()') } 1 .. 2 } 1, 2;
ok($_->{run}->finish, 'a writer has finished') for @writers;
$servers{$_}->safe_psql('postgres', 'INSERT INTO finished DEFAULT VALUES') for 1, 2;
ok($_->{run}->finish, 'a reader has finished') for @readers;

my $rows = 0;
$rows += $_->safe_psql('postgres', 'SELECT count(*) FROM messages WHERE snowflake_machine_id(id) = snowflake_server_machine_id()') for values %servers;
cmp_ok($rows, '>=', 2 * @writers * $transactions, 'all rows were written');
for my $id (1, 2)
{
	is($servers{$id}->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), count(DISTINCT snowflake_machine_id(id)) FROM outbox'), "$rows|$rows|2", 'and each row of both servers once');
}

# A slot that does not exist is an error, and the rows are read later.
fails_with($servers{1}, "CALL read_other(2, " . connection(2) . ", 'nonsense')", 'P0002');
$servers{2}->safe_psql('postgres', "INSERT INTO messages (body) VALUES ('last')");
$servers{1}->safe_psql('postgres', "CALL read_other(2, " . connection(2) . ", 'to_1')");
is($servers{1}->safe_psql('postgres', "SELECT count(*) FROM outbox WHERE body = 'last'"), '1', 'the next call reads them');
$servers{$_}->safe_psql('postgres', "DROP SUBSCRIPTION to_$_") for 1, 2;
$_->stop for values %servers;

done_testing();
