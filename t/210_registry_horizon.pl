# The horizon of a server that leases its machine ID: readers get it while the server has no lease,
# and a first call that fails does not make it too low.
use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use SnowflakeTest;

my $fleet = Fleet->new;
my $registry = $fleet->registry;
my $server = $fleet->server('main', lines => [ 'max_prepared_transactions = 2', "snowflake.max_wait = '10s'" ]);
my $horizon = 'SELECT snowflake_horizon()';

sub count_below
{
	my ($id) = @_;

	return $server->safe_psql('postgres', "SELECT count(*) FROM items WHERE id < $id");
}

$fleet->begins_to_issue($server, 'a server');
$server->safe_psql('postgres', q{CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int);
	SELECT snowflake_enable_feed('items');
	INSERT INTO items (n) SELECT generate_series(1, 100)});
my $before_crash = $server->safe_psql('postgres', 'SELECT max(id) FROM items');

# After a crash, and without a registry, the rows committed before the crash can be read, and no horizon is too high.
$registry->stop;
crash($server);
$server->start;
$fleet->wait_for_state($server, 'unreachable');
fails_with($server, 'SET snowflake.max_wait = 0; SELECT snowflake_nextval()', '55000');
my $without_lease = $server->safe_psql('postgres', $horizon);
is(count_below($without_lease), 100, 'a server without a lease returns a horizon above all rows');
fails_with($server, 'INSERT INTO items VALUES (' . ($before_crash + 1) . ', 0)', '55000', qr/below the horizon/);
is($server->safe_psql('postgres', q{SELECT horizon IS NOT NULL AND horizon_lag = '0' AND reserved_until IS NULL FROM pg_stat_snowflake WHERE generator = 'bigint'}), 't', 'the view shows it');
unlike(slurp_file($server->logfile), qr/machine ID 4294967295/, 'no machine ID is invented');
$registry->start;
$fleet->begins_to_issue($server, 'with a lease it issues IDs');
$server->safe_psql('postgres', 'INSERT INTO items (n) VALUES (101)');
cmp_ok($server->safe_psql('postgres', 'SELECT id FROM items WHERE n = 101'), '>=', $without_lease, 'which are not below that horizon');

# A transaction that is prepared holds the horizon back, also after a crash without a registry.
$server->safe_psql('postgres', q{BEGIN; INSERT INTO items (n) VALUES (102); PREPARE TRANSACTION 'p'});
$server->safe_psql('postgres', 'INSERT INTO items (n) VALUES (103)');
$registry->stop;
crash($server);
$server->start;
my $held_back = $server->safe_psql('postgres', $horizon);
is(count_below($held_back), 101, 'a prepared transaction holds it back');
$server->safe_psql('postgres', q{COMMIT PREPARED 'p'});
my $released = $server->safe_psql('postgres', $horizon);
cmp_ok($released, '>', $held_back, 'until it has ended');
is(count_below($released), 103, 'then all rows are below it');
$registry->start;
$fleet->begins_to_issue($server, 'and IDs are issued again');

# The lease begins after the end of the reservation, and so the first opening writes a later end.  If
# that fails, the next opening is still the first one of this run: IDs of earlier runs are refused.
my $old = $server->safe_psql('postgres', 'SELECT max(id) FROM items');
$server->poll_query_until('postgres', q{SELECT reserved_until < clock_timestamp() FROM pg_stat_snowflake WHERE generator = 'bigint'});
crash($server);
$server->start;
my $session = $server->background_psql('postgres');
$session->query_safe(q{SET allow_system_table_mods = on; INSERT INTO pg_replication_origin VALUES (65533, 'bigint'); SELECT pg_replication_origin_session_setup('bigint')});
$server->poll_query_until('postgres', q{SELECT registry_state = 'held' FROM pg_stat_snowflake WHERE generator = 'bigint'});
fails_with($server, 'SELECT snowflake_nextval()', '55006', qr/already active/);
is($server->safe_psql('postgres', q{SELECT floor IS NULL FROM pg_stat_snowflake WHERE generator = 'bigint'}), 't', 'the first opening fails');

# A session that ends by this error leaves no lock behind.
my (undef, undef, $fatal) = $server->psql('postgres', 'SET exit_on_error = on; SELECT snowflake_nextval()');
like($fatal, qr/FATAL:  .* is already active/, 'a session ends while it writes');
fails_with($server, 'SELECT snowflake_nextval()', '55006', qr/already active/);
$session->query_safe('SELECT pg_replication_origin_session_reset()');
$session->quit;
fails_with($server, 'INSERT INTO items VALUES (' . ($old + 1) . ', 0)', '55000', qr/below the horizon/);
$server->safe_psql('postgres', 'INSERT INTO items (n) VALUES (104)');
cmp_ok($server->safe_psql('postgres', $horizon), '>', $server->safe_psql('postgres', 'SELECT max(id) FROM items'), 'the next opening succeeds');

$server->stop;
$registry->stop;
done_testing();
