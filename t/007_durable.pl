# The durable state: created once for a server, by one of several transactions, kept over rollbacks and
# crashes, lost, invalid, of another layout, without slots; and the remedies of an administrator.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $nextval = 'SELECT snowflake_nextval()';
my $server = snowflake_server('main', 'snowflake.machine_id = 5', 'snowflake.max_wait = 100ms');
my $numbers = q{SELECT string_agg(format('%s %s', local_id, remote_lsn), ', ' ORDER BY local_id) FROM pg_replication_origin_status};
my $layout = "SELECT string_agg(remote_lsn::text, ' ' ORDER BY local_id) FROM pg_replication_origin_status WHERE local_id IN (65530, 65531)";
my $marks = q{SELECT count(*) FROM pg_parameter_acl WHERE parname = 'snowflake.max_wait'};

# Give numbers of the durable state a name, so that SQL can change them.  The server has a copy of the
# numbers, and sees the change when it is started again.
sub with_names
{
	my ($on, $sql, @numbers) = @_;
	my $names = join(', ', map { "($_, 'test $_')" } @numbers);

	return $on->safe_psql('postgres', "SET allow_system_table_mods = on; INSERT INTO pg_replication_origin VALUES $names; $sql; DELETE FROM pg_replication_origin WHERE roname LIKE 'test %'");
}

# Remove numbers of the durable state, but not the mark.
sub remove_state
{
	my ($on, @numbers) = @_;

	with_names($on, join('; ', map { "SELECT pg_replication_origin_drop('test $_')" } @numbers), @numbers);
}
my @all = (65528 .. 65534);

# Keep the WAL writer from flushing WAL before the server is crashed.
sub stop_wal_writer { kill 'STOP', wal_writer($server); }

# One state for all databases, which DROP EXTENSION keeps.
log_matches($server, 0, qr/LOG:  created the durable state of Snowflake IDs with the layout "twitter"\n/, 'CREATE EXTENSION creates the state, which is logged');
is($server->safe_psql('postgres', "SELECT count(*) FROM pg_replication_origin_status WHERE local_id BETWEEN 65528 AND 65534"), '7', 'it takes seven slots');
is($server->safe_psql('postgres', $marks), '1', 'and leaves a mark');
my $first = $server->safe_psql('postgres', $nextval);
$server->safe_psql('postgres', 'CREATE DATABASE other');
$server->safe_psql('other', 'CREATE EXTENSION snowflake');
cmp_ok($server->safe_psql('other', $nextval), '>', $first, 'another database uses the same generator');
my $before = $server->safe_psql('postgres', $numbers);
$server->safe_psql('other', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
is($server->safe_psql('postgres', $numbers), $before, 'DROP EXTENSION and CREATE EXTENSION leave the state');
log_matches($server, 0, qr/created the durable state(?!.*created the durable state)/s, 'which was created once');

# SQL finds origins by name; other origins come and go.
is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_origin'), '0', 'the catalog has no row for the state');
$server->safe_psql('postgres', q{SELECT pg_replication_origin_create(format('other %s', i)) FROM generate_series(1, 3) i;
	SELECT pg_replication_origin_advance(roname, '1/1') FROM pg_replication_origin;
	BEGIN; SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin; ROLLBACK;
	SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin});
is($server->safe_psql('postgres', $numbers), $before, 'other origins do not change it');

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

# A rollback keeps what was written, even a rollback of a savepoint or of a prepared transaction.
$server->append_conf('postgresql.conf', 'max_prepared_transactions = 2');
# The WAL writer, which could flush it, is stopped.
my $reserved_until = 'SELECT string_agg(reserved_until::text, \' \' ORDER BY generator) FROM pg_stat_snowflake';
for my $end ('ROLLBACK', 'SAVEPOINT a', q{PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'})
{
	$server->restart;
	stop_wal_writer();
	my $id = $server->safe_psql('postgres', $end eq 'SAVEPOINT a' ? "BEGIN; SAVEPOINT a; SET LOCAL snowflake.max_wait = '60s'; $nextval; ROLLBACK TO a; COMMIT" :
		  "BEGIN; SET LOCAL snowflake.max_wait = '60s'; $nextval; $end") =~ s/\D//gr;
	my $reserved = $server->safe_psql('postgres', $reserved_until);
	$server->safe_psql('postgres', 'CHECKPOINT') if $end eq 'ROLLBACK';
	crash($server);
	$server->start;
	cmp_ok($server->safe_psql('postgres', $reserved_until), 'ge', $reserved, "$end: the reservation is on disk");
	cmp_ok($server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; $nextval"), '>', $id, "$end: it continues above the ID, after a crash");
}

# A floor is on disk when the call returns.
$server->restart;
stop_wal_writer();
$server->safe_psql('postgres', "SELECT sno_set_floor(now() + interval '2 s')");
my $raised = $server->safe_psql('postgres', $reserved_until);
crash($server);
$server->start;
cmp_ok($server->safe_psql('postgres', $reserved_until), 'ge', $raised, 'a floor is kept over a crash');

# An extension is written, but not on disk yet, when the generator is closed: it is dropped.
my $pending = q{SELECT extract(epoch FROM reserved_until) * 1000000 < (SELECT remote_lsn - '0/0' FROM pg_replication_origin_status WHERE local_id = 65533)
	FROM pg_stat_snowflake WHERE generator = 'bigint'};
$server->restart;
stop_wal_writer();
$server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; SET statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'; DO \$\$ BEGIN WHILE ($pending) IS NOT TRUE LOOP PERFORM snowflake_nextval(), pg_sleep(0.01); END LOOP; END \$\$");
is($server->safe_psql('postgres', $pending), 't', 'an extension is pending');
$server->safe_psql('postgres', q{SELECT snowflake_move_back(clock_timestamp() - interval '1 min')});
is($server->safe_psql('postgres', "SELECT reserved_until IS NULL FROM pg_stat_snowflake WHERE generator = 'bigint'"), 't', 'and is dropped');
crash($server);
$server->start;

# The state is lost, as after pg_upgrade.  A server that has no record of its IDs issues none, and
# CREATE EXTENSION in another database does not make it a new one.
my $last = $server->safe_psql('postgres', $nextval);
remove_state($server, @all);
$server->restart;
my @lost = ('55000', qr/the durable state of Snowflake IDs is missing/, qr/DETAIL:  The server cannot determine which IDs it has issued\./,
	qr/HINT:  Use snowflake_set_floor\(\) with a time after the newest existing ID, .* IDs are issued twice\./);
fails_with($server, $nextval, @lost);
fails_with($server, 'SELECT sno_nextval()', '55000', qr/the durable state of sno IDs is missing/, qr/HINT:  Use sno_set_floor\(\) /);
$server->safe_psql('other', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
fails_with($server, $nextval, @lost);
$server->restart;
fails_with($server, $nextval, @lost);
my (undef, undef, $notice) = $server->psql('postgres', "SELECT snowflake_set_floor(snowflake_timestamp($last) + interval '1 s')");
like($notice, qr/^psql:.* NOTICE:  the layout "twitter" was recorded for Snowflake IDs$/m, 'with a floor, the layout is recorded');
cmp_ok($server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; $nextval"), '>', $last, 'and IDs are issued above the floor');
fails_with($server, 'SELECT sno_nextval()', '55000', qr/the durable state of sno IDs is missing/);
$server->safe_psql('postgres', 'SELECT sno_set_floor(now())');
$server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; SELECT sno_nextval()");
crash($server);
$server->start;
$server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; SELECT snowflake_nextval(), sno_nextval()");

# One line of sno alone is lost: the server cannot tell which IDs it has issued in it.
for my $line (65529, 65532)
{
	remove_state($server, $line);
	$server->restart;
	fails_with($server, 'SELECT sno_nextval()', '55000', qr/the durable state of sno IDs is missing/);
	fails_with($server, "SELECT sno_move_back('2026-01-01')", '55000', qr/the durable state of sno IDs is missing/, qr/HINT:  Use sno_set_floor\(\) /);
	is($server->safe_psql('postgres', "SELECT reserved_until IS NULL FROM pg_stat_snowflake WHERE generator = 'sno'"), 't', "number $line is lost: no reservation is known");
	$server->safe_psql('postgres', 'SELECT sno_set_floor(now())');
	$server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; SELECT snowflake_nextval(), sno_nextval()");
}

# Removed by the steps of docs/migration.md: the next CREATE EXTENSION makes a new state.  It and the
# first rows can be one transaction, at any isolation level.
for my $level ('READ COMMITTED', 'SERIALIZABLE')
{
	$server->safe_psql($_, 'DROP EXTENSION IF EXISTS snowflake') for 'postgres', 'other';
	remove_state($server, @all);
	$server->safe_psql('postgres', 'REVOKE SET ON PARAMETER snowflake.max_wait FROM PUBLIC');
	crash($server);
	$server->start;
	is($server->safe_psql('postgres', $numbers), '', 'nothing is left of the state');
	is($server->safe_psql('postgres', <<"SQL"), 't', "CREATE EXTENSION and INSERT in one $level transaction");
BEGIN ISOLATION LEVEL $level;
CREATE EXTENSION snowflake;
CREATE TABLE first (id bigint DEFAULT snowflake_nextval(), other sno DEFAULT sno_nextval());
INSERT INTO first DEFAULT VALUES;
COMMIT;
SELECT snowflake_timestamp(id) BETWEEN now() - interval '1 min' AND clock_timestamp() FROM first;
SQL
	$server->safe_psql('postgres', 'DROP TABLE first');
}

# A CREATE EXTENSION that a crash has cut off has recorded the layout alone: the next one completes
# the state.
my $layout_before = $server->safe_psql('postgres', $layout);
$server->safe_psql('postgres', 'DROP EXTENSION snowflake');
remove_state($server, 65529, 65532, 65533);
$server->safe_psql('postgres', 'REVOKE SET ON PARAMETER snowflake.max_wait FROM PUBLIC');
$server->restart;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
like($server->safe_psql('postgres', 'SELECT snowflake_nextval(), sno_nextval()'), qr/^\d+\|\w{16}$/, 'a state that was cut off is completed');
is($server->safe_psql('postgres', $layout), $layout_before, 'with its layout');

# Several transactions create it at once: one of them makes the new state, and the others leave it.
# The first one is rolled back; its state stays.
$server->safe_psql('postgres', 'DROP EXTENSION snowflake');
remove_state($server, @all);
$server->safe_psql('postgres', 'REVOKE SET ON PARAMETER snowflake.max_wait FROM PUBLIC');
$server->restart;
$server->safe_psql('postgres', "CREATE DATABASE more_$_") for 1 .. 3;
my $creator = $server->background_psql('postgres');
$creator->query_safe('BEGIN; CREATE EXTENSION snowflake');
my $issued = $creator->query_safe($nextval);
my $created = $server->safe_psql('postgres', $numbers);
my @creators = map { $server->background_psql("more_$_") } 1 .. 3;
$_->{stdin} .= "CREATE EXTENSION snowflake;\n" for @creators;
$_->{run}->pump_nb for @creators;
$server->poll_query_until('postgres', "SELECT count(*) = 3 FROM pg_locks WHERE relation = 'pg_parameter_acl'::regclass AND NOT granted");
$creator->query_safe('ROLLBACK');
$creator->quit;
cmp_ok($_->query_safe($nextval), '>', $issued, 'another creator continues above its IDs') for @creators;
is($server->safe_psql('postgres', $layout), join(' ', ($created =~ /6553[01] (\S+?)(?:,|$)/g)), 'and leaves the layout');
$_->quit for @creators;
is($server->safe_psql('postgres', $marks), '1', 'there is one mark');
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

# A number that is after the layout, and a layout that cannot be read.
$server->stop;
$server->start;
with_names($server, "SELECT pg_replication_origin_advance('test 65533', 'FFFFFFFF/0')", 65533);
$server->restart;
fails_with($server, $nextval, '2200H', qr/reached the last timestamp of the Snowflake layout "twitter"/,
	qr/DETAIL:  .*  The clock is before that time/, qr/HINT:  Check the clock of this server\.  If it is correct, use snowflake_move_back\(\)/);
move_back($server, 'now()');
like($server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; $nextval"), qr/^\d+$/, 'the generator is moved back');
with_names($server, "SELECT pg_replication_origin_advance('test 65531', '1/1')", 65531);
$server->restart;
fails_with($server, $nextval, '55000', qr/the recorded layout of Snowflake IDs is invalid/, qr/HINT:  .* snowflake_accept_layout\(\)\./);
fails_with($server, 'SELECT snowflake_check_layout()', '55000', qr/the recorded layout of Snowflake IDs is invalid/);
$server->safe_psql('postgres', 'SELECT snowflake_accept_layout()');
like($server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; $nextval"), qr/^\d+$/, 'accepted, it is recorded again');

# A write fails: the generator is as before, and a session that ends by the error leaves no lock.
$server->restart;
$server->safe_psql('postgres', "SET allow_system_table_mods = on; INSERT INTO pg_replication_origin VALUES (65533, 'test')");
my $acquired = $server->background_psql('postgres');
$acquired->query_safe("SELECT pg_replication_origin_session_setup('test')");
fails_with($server, $nextval, '55006', qr/already active/);
my (undef, undef, $fatal) = $server->psql('postgres', "SET exit_on_error = on; $nextval");
like($fatal, qr/FATAL:  .* is already active/, 'a session ends while it writes');
fails_with($server, "SELECT snowflake_set_floor(now() + interval '10 s')", '55006', qr/already active/);
$acquired->query_safe('SELECT pg_replication_origin_session_reset()');
$acquired->quit;

# At CREATE EXTENSION, the number of another origin.
$server->safe_psql('postgres', 'CREATE DATABASE refused');
(undef, undef, my $refused) = $server->psql('refused', "\\set VERBOSITY verbose\nCREATE EXTENSION snowflake");
like($refused, qr/ERROR:  55006: the number of replication origin "test" is reserved for Snowflake IDs\n.*DETAIL:  The number is 65533\./, 'an origin with one of the numbers is refused');
$server->safe_psql('postgres', "SET allow_system_table_mods = on; DELETE FROM pg_replication_origin WHERE roname = 'test'");

# Another layout.
$server->append_conf('postgresql.conf', "snowflake.layout = 'discord'");
$server->restart;
fails_with($server, $nextval, '55000', qr/"snowflake.layout" does not match the layout of this cluster/,
	qr/IDs are issued in the layout "epoch=2010-11-04T01:42:54.657Z .*", but the setting is "epoch=2015-01-01T00:00:00Z /,
	qr/HINT:  Change "snowflake.layout" back, or use snowflake_accept_layout\(\)\.  IDs of the two layouts can be equal/);
fails_with($server, 'SELECT snowflake_set_floor(now())', '55000', qr/"snowflake.layout" does not match/);
is( $server->safe_psql('postgres', <<'SQL'), 't', 'accepted, IDs are issued in it, in the same transaction');
BEGIN;
SET snowflake.max_wait = '5s';
SELECT snowflake_accept_layout() \g /dev/null
SELECT snowflake_timestamp(snowflake_nextval()) BETWEEN now() - interval '1 s' AND clock_timestamp() + interval '10 ms';
ROLLBACK;
SQL
log_matches($server, 0, qr/LOG:  the layout "discord" was accepted.*\n.*DETAIL:  The previous layout was "epoch=2010/, 'the log tells');
crash($server);
$server->start;
like($server->safe_psql('postgres', "SET snowflake.max_wait = '5s'; $nextval"), qr/^\d+$/, 'a rollback and a crash keep the layout');

# The floor only rises.
my $state_of = "SELECT floor, reserved_until FROM pg_stat_snowflake WHERE generator = 'bigint'; $numbers WHERE local_id = 65533";
my $unchanged = qr/NOTICE:  the floor of Snowflake IDs was not changed\nDETAIL:  All new IDs have later times anyway\./;

$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '1 day')");
fails_with($server, $nextval, '53400', qr/can be issued in (?:23\.9|24) h\.  The floor was set to 20.* by snowflake_set_floor\(\), and /,
	qr/HINT:  Wait, or use snowflake_move_back\(\) with an earlier time and restart the server\.  .* the same IDs are issued again\./);
$before = $server->safe_psql('postgres', $state_of);
my $log_before = -s $server->logfile;
for my $instant ('now()', "'2020-01-01'", "now() + interval '23 h'")
{
	my ($status, undef, $said) = $server->psql('postgres', "SELECT snowflake_set_floor($instant)");

	is($status, 0, "a floor at $instant is no error");
	like($said, $unchanged, 'the call says that it changes nothing');
	is($server->safe_psql('postgres', $state_of), $before, 'and nothing moves');
}
unlike(substr(slurp_file($server->logfile), $log_before), qr/the floor of Snowflake IDs was set/, 'nor is it logged');
$server->restart;
fails_with($server, $nextval, '53400', qr/can be issued in (?:23\.9|24) h\.  The time of.*  The clock is behind, was ahead .*, or a floor in the future was set before the last start\./, qr/HINT:  Correct the clock if it is behind\..* use snowflake_move_back\(\) with an earlier time and restart the server\..* the same IDs are issued again\./);

# An administrator moves the generator back, before it is opened and after that.
like(move_back($server, "now() + interval '12 h'"), qr/NOTICE:  no Snowflake IDs are issued until the server is restarted/, 'the call says what it needs');
fails_with($server, $nextval, '53400', qr/can be issued in (?:11\.9|12) h\./);
move_back($server, 'now()');
is($server->safe_psql('postgres', "SET snowflake.max_wait = '5s'; SELECT snowflake_timestamp(snowflake_nextval()) < clock_timestamp() + interval '1 s'"), 't', 'the generator is moved back');
$server->safe_psql('postgres', "SELECT sno_set_floor(now() + interval '1 day')");
fails_with($server, 'SELECT sno_nextval()', '53400', qr/could not generate a sno ID within 100 ms/, qr/The floor was set to 20.* by sno_set_floor\(\)/, qr/HINT:  Wait, or use sno_move_back\(\)/);
move_back($server, 'now()', 'sno');
is($server->safe_psql('postgres', "SET snowflake.max_wait = '5s'; SELECT sno_timestamp(sno_nextval()) < clock_timestamp() + interval '1 s'"), 't', 'and that of type sno');

# Instants that are refused; nothing changes.
$server->safe_psql('postgres', "SET snowflake.max_wait = '5s'; $nextval");
my $floor_of = "SELECT floor FROM pg_stat_snowflake WHERE generator = 'bigint'";
$before = $server->safe_psql('postgres', $floor_of);
for my $function ('snowflake_set_floor', 'snowflake_move_back')
{
	fails_with($server, "SELECT $function('$_')", '22008', qr/must be within the layout/) for 'infinity', '-infinity', '2014-12-31', '2200-01-01';
	fails_with($server, "SELECT $function(NULL)", '22004', qr/argument "instant" must not be null/);
}
fails_with($server, "SELECT snowflake_move_back($_)", '22023', qr/cannot move the generator of Snowflake IDs back to 20/,
	qr/DETAIL:  The time of the next ID is not later than that\./, qr/HINT:  To issue IDs from a later time on, use snowflake_set_floor\(\)\./)
  for "now() + interval '1 s'", "snowflake_timestamp(snowflake_nextval()) + interval '1 ms'";
is($server->safe_psql('postgres', $floor_of), $before, 'a call that is refused changes nothing');
like($server->safe_psql('postgres', $nextval), qr/^\d+$/, 'and IDs are still issued');

# A session drops the batch that it took before the floor was set, and before the generator was moved
# back.  (A batch ends with its transaction, so these are in one.)  A batch has as many IDs as the session uses in a
# 64th of a tick, so a long tick is one in which a slow server takes more than one ID at once.
restart_with_layout($server, 'epoch=2024-01-01 tick=100ms timestamp=40 machine=10 sequence=12');
$server->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.max_ahead = 60000');
$server->reload;
$server->poll_query_until('postgres', q(SELECT current_setting('snowflake.max_ahead') = '1min'));

# A session whose transaction is open, and which holds the rest of a batch: it has issued one ID of it,
# and the next one is the ID after it.
my $batch = 'SELECT count(*) FROM snowflake_nextvals(1000)';
sub holds_batch
{
	my ($name) = @_;
	my $session = $server->background_psql('postgres', on_error_stop => 0);

	$session->query('BEGIN');
	$session->query($batch);
	ok(wait_until(sub { -$session->query($nextval) + $session->query($nextval) == 1 }), "$name: a session holds a batch");
	return $session;
}

# A batch ends with its transaction: the next ID is not the next one of the batch, but the first one of the next batch.
# The generator is ahead of the clock, on which the next ID would depend otherwise.
my $session = $server->background_psql('postgres', on_error_stop => 0);
ok(wait_until(sub {
	$session->query("SELECT snowflake_set_floor(now() + interval '10 s')");
	$session->query($batch);
	my $difference = -$session->query($nextval) + $session->query($nextval);
	return $difference > 1 && $difference <= 64;
}), 'the rest of a batch is not used in the next transaction');
$session->quit;

$session = holds_batch('a floor above the position');
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '30 s')");
is($session->query("SELECT snowflake_timestamp(snowflake_nextval()) > clock_timestamp() + interval '20 s'"), 't', 'it drops the batch');
$session->quit;
$session = holds_batch('a floor below the position');
my ($taken, $held);
ok(wait_until(sub {
	$session->query($batch);
	$taken = $server->safe_psql('postgres', $nextval);
	$held = $session->query($nextval);
	return $held < $taken;
}), 'which is below the ID of another session');
(undef, undef, my $said) = $server->psql('postgres', 'SELECT snowflake_set_floor(now())');
like($said, $unchanged, 'the floor is not changed');
cmp_ok($session->query($nextval), '>', $taken, 'it drops the batch, and continues above all others');
$session->quit;

# Moved back, the generator is closed at once, in all sessions, until the restart, even if one process crashes.  IDs
# then begin at the instant; so they do after a crash of the server.
my @moved = ('55000', qr/the generator of Snowflake IDs is closed until the server is restarted/, qr/DETAIL:  The generator was moved back by snowflake_move_back\(\)\./, qr/HINT:  Restart the server\./);
my %restart = (
	'a restart' => sub { $server->restart },
	'a stop in mode immediate' => sub { $server->stop('immediate'); $server->start },
	'a crash' => sub { crash($server); $server->start },
	'a crash after a checkpoint' => sub { $server->safe_psql('postgres', 'CHECKPOINT'); crash($server); $server->start },
	'a crash of one process' => sub {
		my $victim = IPC::Run::start([ 'psql', '-XAtqd', $server->connstr('postgres'), '-c', 'SELECT pg_sleep(600)' ], '2>', '/dev/null');
		my $pid = wait_until(sub { $server->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active'") });

		kill_process($server, $pid, sub { $victim->finish });
		fails_with($server, $_, @moved) for $nextval, "SELECT snowflake_set_floor(now() + interval '1 h')", "SELECT snowflake_move_back(now())";
		$server->restart;
	});
$server->append_conf('postgresql.conf', 'restart_after_crash = on');
for my $way (sort keys %restart)
{
	$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '55 s')");
	stop_wal_writer() if $way eq 'a crash';
	my $holder = holds_batch($way);
	my $instant = $server->safe_psql('postgres', q{SELECT date_trunc('second', now() + interval '50 s')});
	my $from = -s $server->logfile;
	my ($status, undef, $warning) = $server->psql('postgres', "SELECT snowflake_move_back('$instant')");

	is($status, 0, "$way: moved back");
	like($warning, qr/WARNING:  readers that use snowflake_horizon\(\) might miss rows/, 'with a warning');
	log_matches($server, $from, qr/LOG:  the generator of Snowflake IDs was moved back to \Q$instant\E/, 'which is logged');
	$holder->{stderr} = '';
	$holder->query($nextval);
	like($holder->{stderr}, qr/ERROR:  the generator of Snowflake IDs is closed until the server is restarted/, 'the session that holds a batch issues no ID');
	fails_with($server, $_, @moved) for "SET snowflake.max_wait = -1; $nextval", $batch, "SELECT snowflake_set_floor(now() + interval '1 h')";
	$holder->quit;
	$restart{$way}->();
	is($server->safe_psql('postgres', 'SELECT snowflake_timestamp(snowflake_nextval())'), $instant, "$way: the first ID is at the instant");
	is($server->safe_psql('postgres', $floor_of), $instant, 'which the view has');
}

# A second call before the restart is refused, whatever its instant is.
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '55 s')");
my ($first, @others) = split /\n/, $server->safe_psql('postgres', "SELECT date_trunc('second', now() + n * interval '1 s') FROM unnest(ARRAY[45, 50, 40]) AS n");
$server->psql('postgres', "SELECT snowflake_move_back('$first')");
fails_with($server, "SELECT snowflake_move_back('$_')", @moved) for @others;
$server->restart;
is($server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; SELECT snowflake_timestamp(snowflake_nextval())"), $first, 'the server starts at the first instant');

# A server that has issued no ID since its start is closed as well.
$server->restart;
$server->psql('postgres', "SELECT snowflake_move_back('$first')");
fails_with($server, $nextval, @moved);
$server->restart;

# The durable number cannot be written: the generator is closed, and the next start repeats nothing.
$server->safe_psql('postgres', "SELECT snowflake_set_floor(now() + interval '50 s')");
$last = $server->safe_psql('postgres', $nextval);
$server->safe_psql('postgres', "SET allow_system_table_mods = on; INSERT INTO pg_replication_origin VALUES (65533, 'test')");
$acquired = $server->background_psql('postgres');
$acquired->query_safe("SELECT pg_replication_origin_session_setup('test')");
fails_with($server, 'SELECT snowflake_move_back(now())', '55006', qr/already active/);
fails_with($server, $nextval, @moved);
$acquired->query_safe('SELECT pg_replication_origin_session_reset()');
$acquired->quit;
$server->safe_psql('postgres', "SET allow_system_table_mods = on; DELETE FROM pg_replication_origin WHERE roname = 'test'");
$server->restart;
cmp_ok($server->safe_psql('postgres', "SET snowflake.max_wait = '60s'; $nextval"), '>', $last, 'a call that fails has not moved the generator back');
move_back($server, 'now()');
restart_with_layout($server, 'discord');

# Without slots the state is not loaded.  With fewer than it needs, the server does not start.  The
# numbers exist again when the setting is correct.
my $setting = major_version($server) >= 18 ? 'max_active_replication_origins' : 'max_replication_slots';
$before = $server->safe_psql('postgres', "$numbers WHERE local_id <> 65533");
$server->append_conf('postgresql.conf', "$setting = 0\nmax_wal_senders = 0");
$server->restart;
fails_with($server, $nextval, '53400', qr/could not read the durable state of Snowflake IDs/, qr/DETAIL:  .* because "$setting" is 0\./,
	qr/HINT:  Set "$setting" to at least 7/);
$server->safe_psql('postgres', 'CREATE DATABASE without');
(undef, undef, $refused) = $server->psql('without', "\\set VERBOSITY verbose\nCREATE EXTENSION snowflake");
like($refused, qr/ERROR:  53400: could not create the durable state.*\n.*DETAIL:  The state needs 7 slots for replication origins, but only 0 of the 0 slots of "$setting" are free\./, 'CREATE EXTENSION says how many it needs');
$server->append_conf('postgresql.conf', "$setting = 6");
$server->stop;
is($server->start(fail_ok => 1), 0, 'a server with fewer slots than numbers does not start');
log_matches($server, 0, qr/PANIC:  could not find free replication state, increase "?$setting/, 'and says so');
$server->append_conf('postgresql.conf', "$setting = 10");
$server->start;
is($server->safe_psql('postgres', "$numbers WHERE local_id <> 65533"), $before, 'with slots the numbers are there again');
like($server->safe_psql('postgres', "SET snowflake.max_wait = '5s'; $nextval"), qr/^\d+$/, 'and IDs are issued');
$server->stop;

done_testing();
