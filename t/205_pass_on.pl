# Machine IDs pass from server to server all the time, while sessions issue all the IDs that the
# layout has: an ID that is issued with a machine ID that was released before, or with a new one
# and a previous position, is likely to be issued by another server, too.
use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use SnowflakeTest;

my $fleet = Fleet->new;
my $registry = $fleet->registry;

# Every machine ID that a server is granted.
$registry->safe_psql('postgres', <<'SQL');
CREATE TABLE given (machine_id integer, token uuid);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.given VALUES (NEW.machine_id, NEW.token); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON snowflake_registry.machine FOR EACH ROW WHEN (NEW.token IS NOT NULL) EXECUTE FUNCTION note();
SQL

# Few IDs in a millisecond, so that all are issued.
my @servers = map {
	$fleet->server($_, lines => [ "snowflake.layout = 'javascript'", 'snowflake.registry_lease = 30', 'restart_after_crash = on' ])
} qw(one two three);
for my $server (@servers)
{
	$fleet->begins_to_issue($server, $server->name . ' issues IDs');
	$fleet->start_fast_writer($server) for 1 .. 2;
}

# A registry worker that is terminated releases its machine ID, and is started again a second
# later.  The first server that claims gets the smallest machine ID, so that the machine IDs rotate.
my $passed = 0;
for my $round (1 .. 12)
{
	for my $server (@servers)
	{
		$fleet->end_registry_worker($server);
		$passed++;
		select(undef, undef, undef, rand 0.3);
	}
	$fleet->wait_for_state($_, 'held') for @servers;
	push @servers, shift @servers;
}
$fleet->stop_writers;
cmp_ok($passed, '>=', 30, "machine IDs were released $passed times");
cmp_ok($registry->safe_psql('postgres', 'SELECT count(*) FROM (SELECT machine_id FROM given GROUP BY machine_id HAVING count(DISTINCT token) > 1) shared'),
	'>=', 2, 'and granted to more than one server');
$fleet->check(1000000, 'all servers');
done_testing();
