# The origin: missing, dropped, of another layout, without a slot, not yet
# committed; and the remedies of an administrator.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $nextval = 'SELECT snowflake_nextval()';
my $server = snowflake_server('main', 'snowflake.machine_id = 5', 'snowflake.max_wait = 100ms');

sub origin_is
{
	my ($expected, $name) = @_;

	is($server->safe_psql('postgres', "SELECT roname FROM pg_replication_origin WHERE roname LIKE 'snowflake bigint%'"), $expected, $name);
}

my $twitter = 'snowflake bigint: epoch=2010-11-04T01:42:54.657Z tick=1ms timestamp=41 machine=10 sequence=12';
my $discord = 'snowflake bigint: epoch=2015-01-01T00:00:00Z tick=1ms timestamp=41 machine=10 sequence=12';

# One origin for all databases, which DROP EXTENSION keeps.
origin_is($twitter, 'CREATE EXTENSION creates the origin');
log_matches($server, 0, qr/LOG:  created the origin of Snowflake IDs for the layout "twitter"\n/, 'which is logged');
log_matches($server, 0, qr/LOG:  created the origin of IDs of type sno\n/, 'and that of type sno');
my $first = $server->safe_psql('postgres', $nextval);
$server->safe_psql('postgres', 'CREATE DATABASE other');
$server->safe_psql('other', 'CREATE EXTENSION snowflake');
cmp_ok($server->safe_psql('other', $nextval), '>', $first, 'another database uses the same generator');
$server->safe_psql('other', 'DROP EXTENSION snowflake');
origin_is($twitter, 'DROP EXTENSION keeps the origin');

# Within the reservation a session writes no WAL.  Other processes sometimes do; if the session did,
# it would do so each time.
my $silent = 'f';
for (1 .. 20)
{
	$silent = $server->safe_psql('postgres', <<'SQL');
SELECT snowflake_nextval() \gset
SELECT pg_current_wal_insert_lsn() AS before \gset
SELECT count(snowflake_nextval()) FROM generate_series(1, 10) \gset
SELECT pg_current_wal_insert_lsn() = :'before';
SQL
	last if $silent eq 't';
}
is($silent, 't', 'a session within the reservation writes no WAL');

# Dropped by hand: an error as soon as the reservation is used up.  This is done in one session, so
# that the reservation is not used up by the start of another session on a slow server; again if it
# was used up before the first call nevertheless, so that nothing was logged.
for (1 .. 20)
{
	$server->psql('postgres', "
		$nextval;
		SELECT pg_replication_origin_drop('$twitter');
		DO 'BEGIN LOOP PERFORM snowflake_nextval(), pg_sleep(0.01); END LOOP; END'");
	last if slurp_file($server->logfile) =~ /could not reserve time for Snowflake IDs/;
	$server->safe_psql('postgres', 'SELECT snowflake_create_origin()');
}
fails_with($server, $nextval, '55000', qr/the origin of Snowflake IDs is missing/, qr/DETAIL:  CREATE EXTENSION creates the replication origin "snowflake bigint: /, qr/HINT:  Use snowflake_create_origin\(\)\.  If .* use snowflake_set_floor\(\) .* Otherwise IDs can be issued twice\./);
log_matches($server, 0, qr/LOG:  could not reserve time for Snowflake IDs\n.*DETAIL:  The origin of these IDs is missing\.  IDs are issued until their times reach 20/, 'and before that a message in the log');
$server->safe_psql('postgres', 'SELECT snowflake_create_origin()');
cmp_ok($server->safe_psql('postgres', $nextval), '>', $first, 'created again, it continues');

# IDs of type sno have an origin of their own.
my $sno = 'snowflake sno: epoch=2010-01-01T00:00:00Z tick=4ms timestamp=39 sequence=16';
my $first_sno = $server->safe_psql('postgres', 'SELECT sno_nextval()');
$server->safe_psql('postgres', "SELECT pg_replication_origin_drop('$sno')");
for (1 .. 1000)
{
	last if $server->psql('postgres', 'SELECT sno_nextval()') != 0;
}
fails_with($server, 'SELECT sno_nextval()', '55000', qr/the origin of sno IDs is missing/, qr/replication origin "snowflake sno: /);
$server->safe_psql('postgres', 'SELECT snowflake_create_origin()');
is($server->safe_psql('postgres', "SELECT sno_nextval() > '$first_sno'"), 't', 'created again, it continues as well');

# While another session drops it, sessions continue to the end of the reservation, and wait.
my $dropping = $server->background_psql('postgres');
my $session = $server->background_psql('postgres', on_error_stop => 0);
$session->query("SET snowflake.max_wait = '60s'");
my $pid = $session->query('SELECT pg_backend_pid()');
for my $end ('ROLLBACK', 'COMMIT')
{
	my $last = $session->query($nextval);
	my $from = -s $server->logfile;

	$dropping->query("BEGIN; SELECT pg_replication_origin_drop('$twitter')");
	$session->{stdin} .= "DO \$\$ BEGIN FOR i IN 1 .. 200 LOOP PERFORM snowflake_nextval(), pg_sleep(0.01); END LOOP; END \$\$; SELECT snowflake_nextval() > $last;\n";
	$session->{run}->pump_nb;
	ok($server->poll_query_until('postgres', "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid"), "a session waits for the one that drops the origin");
	fails_with($server, $nextval, '55P03', qr/could not lock the origin of Snowflake IDs within 100 ms/, qr/DETAIL:  .* has dropped a subscription or a replication origin in a transaction that has not ended, or holds/, qr/HINT:  Find the session by the rows of pg_locks whose relation or classid is pg_replication_origin/);
	$dropping->query($end);
	is($session->query('SELECT 1'), $end eq 'ROLLBACK' ? "t\n1" : '1', "$end: it continues above its last ID, or fails");
	log_matches($server, $from, qr/ERROR:  the origin of Snowflake IDs is missing/, 'dropped, it fails') if $end eq 'COMMIT';
}
$_->quit for $dropping, $session;

# A drop that is rolled back has set the origin to 0: the next ID writes it again.  The generator
# is half a minute ahead of the clock, so that an origin of 0 would repeat its IDs.
$server->safe_psql('postgres', 'SELECT snowflake_create_origin()');
$server->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.max_ahead = 60000');
$server->restart;
my $progress = "SELECT pg_replication_origin_progress('$twitter', false)";
my $drop_and_roll_back = "BEGIN; SELECT pg_replication_origin_drop('$twitter'); ROLLBACK";
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '30 s')");
my $ahead = $server->safe_psql('postgres', $nextval);
$server->safe_psql('postgres', $drop_and_roll_back);
is($server->safe_psql('postgres', $progress), '', 'a drop that is rolled back loses the value');
$ahead = $server->safe_psql('postgres', $nextval);
isnt($server->safe_psql('postgres', $progress), '', 'the next ID writes it again');
crash($server);
$server->start;
cmp_ok($server->safe_psql('postgres', $nextval), '>', $ahead, 'and after a crash IDs are issued above it');

# A transaction that has dropped the origin cannot create it: a rollback would leave the old
# origin with the value of a new one.
for my $create ('snowflake_create_origin', 'snowflake_accept_layout')
{
	fails_with($server, "BEGIN; SELECT pg_replication_origin_drop('$twitter'); SELECT $create(); ROLLBACK", '55000',
		qr/cannot create the origin of Snowflake IDs in the transaction that dropped it/, qr/HINT:  Commit the transaction first/);
}

# If the server crashes before that, it has no record of the IDs that it has issued, and reports
# this.
my $unflushed = $server->safe_psql('postgres', $nextval);
$server->safe_psql('postgres', "SELECT sno_nextval(); $drop_and_roll_back; BEGIN; SELECT pg_replication_origin_drop('$sno'); ROLLBACK; SELECT pg_switch_wal()");
crash($server);
$server->start;
fails_with($server, $nextval, '55000', qr/the origin of Snowflake IDs has lost its value/,
	qr/DETAIL:  The value of the replication origin "snowflake bigint: \.\.\." is 0, as after a drop that was rolled back/,
	qr/HINT:  Use snowflake_set_floor\(\) with a time after the newest existing ID, .* IDs are issued twice\./);
fails_with($server, 'SELECT sno_nextval()', '55000', qr/the origin of sno IDs has lost its value/, qr/HINT:  Use sno_set_floor\(\) /);
$server->restart;
fails_with($server, $nextval, '55000', qr/the origin of Snowflake IDs has lost its value/);
$server->safe_psql('postgres', "SELECT snowflake_set_floor(snowflake_timestamp($unflushed) + interval '1 s'), sno_set_floor(now())");
cmp_ok($server->safe_psql('postgres', $nextval), '>', $unflushed, 'with a floor that an administrator sets, IDs are issued above it');
$server->safe_psql('postgres', 'SELECT sno_nextval()');

# Dropped and created again while the server has a record of the IDs that it has issued: the origin
# is written before the next ID.
$server->safe_psql('postgres', "SELECT pg_replication_origin_drop('$twitter')");
for (1 .. 1000)
{
	last if $server->psql('postgres', $nextval) != 0;
}
$server->safe_psql('postgres', 'SELECT snowflake_create_origin()');
$ahead = $server->safe_psql('postgres', $nextval);
crash($server);
$server->start;
cmp_ok($server->safe_psql('postgres', $nextval), '>', $ahead, 'created again, it has the record of the server');
$server->safe_psql('postgres', 'ALTER SYSTEM RESET snowflake.max_ahead');
$server->restart;
$server->safe_psql('postgres', 'SELECT snowflake_set_floor(now())');

# The first call after a start does not wait for a lock longer than others do.
my $locking = $server->background_psql('postgres');
$locking->query('BEGIN; LOCK pg_replication_origin IN ACCESS EXCLUSIVE MODE');
fails_with($server, $nextval, '55P03', qr/could not lock the origin of Snowflake IDs within 100 ms/);
fails_with($server, 'SELECT sno_nextval()', '55P03', qr/could not lock the origin of sno IDs within 100 ms/);
$locking->query('COMMIT');
$locking->quit;
like($server->safe_psql('postgres', $nextval), qr/^\d+$/, 'the lock gone, IDs are issued');

# The durable reservation is never below the one that sessions use, also if the
# origin was created again and the floor is set within the previous reservation.
my $durable = "SELECT pg_replication_origin_progress('$twitter', false) - '0/0' >= extract(epoch FROM reserved_until) * 1000000 FROM pg_stat_snowflake WHERE generator = 'bigint'";
$server->safe_psql('postgres', 'SELECT snowflake_create_origin()');
$server->safe_psql('postgres', "$nextval; $nextval");
$server->safe_psql('postgres', "SELECT pg_replication_origin_drop('$twitter')");
$server->safe_psql('postgres', 'SELECT snowflake_create_origin()');
$server->safe_psql('postgres', "SELECT snowflake_set_floor(snowflake_timestamp(snowflake_nextval()) + interval '50 ms')");
is($server->safe_psql('postgres', $durable), 't', 'the durable reservation covers what was reserved before');

# Created by a transaction that has not committed: another one creates it, so that all of a
# migration can be one transaction.
$server->safe_psql('postgres', "SELECT pg_replication_origin_drop('$twitter')");
$server->restart;
fails_with($server, $nextval, '55000', qr/the origin of Snowflake IDs is missing/);
for my $level ('READ COMMITTED', 'SERIALIZABLE')
{
	$server->safe_psql('postgres', 'DROP EXTENSION snowflake; SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin');
	is($server->safe_psql('postgres', <<"SQL"), 't', "CREATE EXTENSION and INSERT in one $level transaction");
BEGIN ISOLATION LEVEL $level;
CREATE EXTENSION snowflake;
CREATE TABLE first (id bigint DEFAULT snowflake_nextval(), other sno DEFAULT sno_nextval());
INSERT INTO first DEFAULT VALUES;
COMMIT;
SELECT id > $first FROM first;
SQL
	$server->safe_psql('postgres', 'DROP TABLE first');
	origin_is($twitter, 'for which another transaction has created the origin');
}

# If no worker can create it, the transaction does, and cannot issue IDs.
$server->append_conf('postgresql.conf', 'max_worker_processes = 0');
$server->restart;
$server->safe_psql('postgres', "SELECT pg_replication_origin_drop('$twitter')");
fails_with($server, "BEGIN; SELECT snowflake_create_origin(); $nextval; COMMIT", '55000',
	qr/cannot issue Snowflake IDs in the transaction that created or changed their origin/, qr/HINT:  Commit/);
origin_is('', 'and it is rolled back with it');
$server->safe_psql('postgres', 'SELECT snowflake_create_origin()');
cmp_ok($server->safe_psql('postgres', $nextval), '>', $first, 'committed, it works');
$server->append_conf('postgresql.conf', 'max_worker_processes = 8');
$server->restart;

# A transaction that has locked the catalog gets its error from its own attempt, or creates it.
$server->safe_psql('postgres', "SELECT pg_replication_origin_drop('$twitter')");
$server->safe_psql('postgres', 'BEGIN; LOCK pg_replication_origin IN ACCESS EXCLUSIVE MODE; SELECT snowflake_create_origin(); COMMIT');
cmp_ok($server->safe_psql('postgres', $nextval), '>', $first, 'its own lock keeps no transaction from creating it');

# Another layout.
$server->append_conf('postgresql.conf', "snowflake.layout = 'discord'");
$server->restart;
fails_with($server, $nextval, '55000', qr/"snowflake.layout" does not match the layout of this cluster/,
	qr/IDs are issued in the layout "epoch=2010-11-04T01:42:54.657Z .*", but the setting is "epoch=2015-01-01T00:00:00Z /,
	qr/HINT:  Change "snowflake.layout" back, or use snowflake_accept_layout\(\)\.  IDs of the two layouts can be equal/);
fails_with($server, "BEGIN; SELECT snowflake_accept_layout(); $nextval; COMMIT", '55000', qr/Commit/);
$server->safe_psql('postgres', 'SELECT snowflake_accept_layout()');
origin_is($discord, 'the layout is accepted');
is( $server->safe_psql('postgres', <<'SQL'), 't', 'and IDs are issued in it');
SET snowflake.max_wait = '5s';
SELECT snowflake_timestamp(snowflake_nextval()) BETWEEN now() - interval '1 s' AND clock_timestamp() + interval '10 ms';
SQL
log_matches($server, 0, qr/LOG:  the layout "discord" was accepted.*\n.*DETAIL:  The previous layout was "epoch=2010/, 'the log tells');

# The floor, forward and backward.
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '1 day')");
fails_with($server, $nextval, '53400', qr/can be issued in (?:23\.9|24) h\.  The floor was set to 20.* by snowflake_set_floor\(\), and /,
	qr/HINT:  Wait until then, or use snowflake_set_floor\(\) .* the same IDs are issued again\./);
$server->restart;
fails_with($server, $nextval, '53400', qr/can be issued in (?:23\.9|24) h\.  The time of/, qr/HINT:  The clock is behind, was ahead .*, or a floor in the future was set before the last start\..* use snowflake_set_floor\(\) to move the generator backward.* the same IDs are issued again\./);
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now())");
$server->safe_psql('postgres', "SELECT sno_set_floor(now() + interval '1 day')");
fails_with($server, 'SELECT sno_nextval()', '53400', qr/could not generate a sno ID within 100 ms/, qr/The floor was set to 20.* by sno_set_floor\(\)/, qr/HINT:  Wait until then, or use sno_set_floor\(\)/);
$server->safe_psql('postgres', "SELECT sno_set_floor(now())");
is($server->safe_psql('postgres', 'SELECT snowflake_timestamp(snowflake_nextval()) < clock_timestamp() + interval \'1 s\''), 't', 'the floor is back');
fails_with($server, "SELECT snowflake_set_floor(snowflake_timestamp(snowflake_nextval()) - interval '1 ms')", '22023', qr/cannot move the floor of Snowflake IDs back to 20/,
	qr/DETAIL:  The next ID has a later time, but by no more than the generator reserves/, qr/HINT:  If this is the present time, wait at most that long\.  Otherwise use an earlier time\./);
fails_with($server, "SELECT snowflake_set_floor('infinity')", '22008', qr/must be within the layout/);
fails_with($server, "SELECT snowflake_set_floor('2014-12-31')", '22008', qr/must be within the layout/);

# An origin that a session has acquired cannot be written: the generator is not moved.
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '1 hour')");
my $acquired = $server->background_psql('postgres');
$acquired->query("SELECT pg_replication_origin_session_setup('$discord')");
my $acquired_by = $acquired->query('SELECT pg_backend_pid()');
fails_with($server, 'SELECT snowflake_set_floor(now())', '55006', qr/already active/);
$acquired->quit;
$server->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $acquired_by") or die;
fails_with($server, $nextval, '53400', qr/can be issued in (?:59\.\d min|1 h)\./);
$server->safe_psql('postgres', 'SELECT snowflake_set_floor(now())');

# A session drops the batch that it took before the generator was moved.  (A batch ends with its
# transaction, so these are in one.)
$server->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.max_ahead = 60000');
$server->reload;
$server->poll_query_until('postgres', q(SELECT current_setting('snowflake.max_ahead') = '1min'));
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '30 s')");
$session = $server->background_psql('postgres');
$session->query('BEGIN');
is($session->query("SELECT min(snowflake_timestamp(id)) > now() + interval '20 s', count(*) FROM snowflake_nextvals(1000) id"), 't|1000', 'a session ahead of the clock');
$server->safe_psql('postgres', 'SELECT snowflake_set_floor(now())');
is($session->query("SELECT snowflake_timestamp(snowflake_nextval()) < now() + interval '20 s'"), 't', 'the generator moved back, its next ID is from there');
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '10 s')");
$session->query('COMMIT; BEGIN');
$session->query('SELECT count(*) FROM snowflake_nextvals(1000)');
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '30 s')");
is($session->query("SELECT snowflake_timestamp(snowflake_nextval()) > now() + interval '20 s'"), 't', 'and if it is moved forward');
$session->query('COMMIT');
$session->quit;

# No slot for the origin.
$server->append_conf('postgresql.conf',
	major_version($server) >= 18 ? 'max_active_replication_origins = 0' : "max_replication_slots = 0\nmax_wal_senders = 0");
$server->restart;
fails_with($server, $nextval, '53400', qr/could not read the origin of Snowflake IDs/, qr/DETAIL:  .* because "max_(?:replication_slots|active_replication_origins)" is 0\./,
	qr/HINT:  Set "max_(?:replication_slots|active_replication_origins)" to at least 2/);
$server->append_conf('postgresql.conf',
	major_version($server) >= 18 ? 'max_active_replication_origins = 10' : 'max_replication_slots = 10');
$server->restart;
like($server->safe_psql('postgres', "SET snowflake.max_wait = '5s'; $nextval"), qr/^\d+$/, 'with a slot it works');
$server->stop;

done_testing();
