# Without the preload, PostgreSQL 17 and later: the settings of the server's configuration apply,
# and not those of a session: of its client, its role or its database.  PostgreSQL accepts any value
# of these before the library is loaded, and then rejects it in favor of the built-in default.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use TestClock;

plan skip_all => 'shared memory without the preload needs PostgreSQL 17' if major_version() < 17;

# Of each setting: the value of the server, which is not the default, and another one.
my %settings = (
	layout => [ 'discord', 'twitter' ],
	machine_id => [ 12, 9 ],
	sequence_range => [ '101-300', '5-6' ],
	sno_partition => [ 300, 8 ],
	sno_sequence_range => [ '100-199', '5-9' ],
	max_ahead => [ 0, 60000 ],
	max_clock_step => [ 60000, 0 ],
	sequence_jitter => [ 50, 0 ],
	registry => [ '', 'host=elsewhere' ]);
my @names = sort keys %settings;
my $options = join ' ', map { "-c snowflake.$_=$settings{$_}[1]" } @names;

# Statements that set all of them.
sub each_setting
{
	my ($statement, @values) = @_;

	return join '', map { sprintf("$statement;\n", "snowflake.$_" . (@values ? '' : " = '$settings{$_}[1]'")) } @names;
}

my $clock = TestClock->new;
my $server = snowflake_server('main', { preload => '', clock => $clock, init => [ allows_streaming => 1 ] },
	'restart_after_crash = on', map { "snowflake.$_ = '$settings{$_}[0]'" } @names);
$server->safe_psql('postgres', <<'SQL');
CREATE ROLE app LOGIN;
CREATE ROLE replicator LOGIN REPLICATION;
GRANT CREATE ON SCHEMA public TO app;
CREATE DATABASE clean;
SQL
$server->safe_psql('clean', 'CREATE EXTENSION snowflake');

# The settings that apply, as seen by what is issued: milliseconds begin at different sequence numbers
# with a jitter, and a burst runs ahead of the clock as far as it may.
my $facts = <<'SQL';
SELECT 'layout ' || bool_and(snowflake_timestamp(id) = snowflake_timestamp(id, 'discord')),
	'machine ID ' || string_agg(DISTINCT snowflake_machine_id(id)::text, ' '),
	'sequences ' || (min(snowflake_sequence(id)) BETWEEN 101 AND 151 AND max(snowflake_sequence(id)) <= 300),
	'jitter ' || (count(DISTINCT snowflake_sequence(id)) FILTER (WHERE first) > 1),
	'ahead ' || bool_or(snowflake_timestamp(id) > at)
FROM (SELECT id, at, row_number() OVER (PARTITION BY snowflake_timestamp(id) ORDER BY id) = 1 AS first
	FROM (SELECT snowflake_nextval() AS id, clock_timestamp() AS at FROM generate_series(1, 20000)) AS issued) AS ids;
SELECT 'partition ' || string_agg(DISTINCT sno_partition(id)::text, ' '),
	'sno sequences ' || (min(sno_sequence(id)) >= 100 AND max(sno_sequence(id)) <= 199)
FROM (SELECT sno_nextval() AS id FROM generate_series(1, 5000)) AS issued;
SQL
my $configured = "layout true|machine ID 12|sequences true|jitter true|ahead false\npartition 300|sno sequences true";

# A session of an ordinary role: its statements, after those that give it its settings.  No error is
# overlooked: psql ends at the first one.
sub as_app
{
	my ($source, $statements) = @_;
	my $connection = $server->connstr('postgres') . ' user=app ' . ($source->{connection} // '');
	my ($output, $errors) = ('', '');

	local $ENV{PGOPTIONS} = $source->{pgoptions} // '';
	my $input = ($source->{before} // '') . $statements;
	my $ended = IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $connection, '-f', '-' ], '<', \$input, '>', \$output, '2>', \$errors);
	chomp $output;
	return ($ended, $output, $errors);
}

# The same of a session without settings of its own.
sub others
{
	my ($status, $output, $errors) = $server->psql('clean', $facts);

	return $status == 0 ? $output : $errors;
}

# Crash one backend, and wait until the server has restarted all processes.
sub crash_backend
{
	my $session = $server->background_psql('clean', on_error_stop => 0);

	ok(kill_process($server, $session->query('SELECT pg_backend_pid()')), 'the processes are restarted');
	eval { $session->quit };
}

my $pgoptions = { pgoptions => $options };
my @sources = (
	{ name => 'PGOPTIONS', pgoptions => $options },
	{ name => 'options of the connection string', connection => "options='$options'" },
	{ name => 'a connection of a walsender', connection => "user=replicator replication=database options='$options'" },
	{ name => 'ALTER ROLE', superuser => each_setting('ALTER ROLE app SET %s'), undo => 'ALTER ROLE app RESET ALL' },
	{ name => 'ALTER ROLE ALL', superuser => each_setting('ALTER ROLE ALL SET %s'), undo => 'ALTER ROLE ALL RESET ALL' },
	{ name => 'ALTER DATABASE', superuser => each_setting('ALTER DATABASE postgres SET %s'), undo => 'ALTER DATABASE postgres RESET ALL' },
	{ name => 'ALTER ROLE IN DATABASE', superuser => each_setting('ALTER ROLE app IN DATABASE postgres SET %s'), undo => 'ALTER ROLE app IN DATABASE postgres RESET ALL' },
	{ name => 'SET', before => each_setting('SET %s') },
	{ name => 'SET and RESET', before => each_setting('SET %s') . each_setting('RESET %s', 0) },
	{ name => 'SET LOCAL', before => 'BEGIN;' . each_setting('SET LOCAL %s') },
	{ name => 'the SET clause of a function',
		superuser => "CREATE FUNCTION first() RETURNS bigint LANGUAGE plpgsql\n" . join("\n", map { "SET snowflake.$_ = '$settings{$_}[1]'" } @names) .
		  ' AS $$ BEGIN RETURN snowflake_nextval(); END $$', undo => 'DROP FUNCTION first()',
		before => "SELECT first() AS id \\gset\n" },
	{ name => 'SET, and a parallel worker that is the first to use the library',
		superuser => 'CREATE FUNCTION decoded() RETURNS timestamptz LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN RETURN snowflake_timestamp(1); END $$',
		undo => 'DROP FUNCTION decoded()',
		before => each_setting('SET %s') . "SET debug_parallel_query = on;\nSELECT decoded() \\gset\nSET debug_parallel_query = off;\n" });

for my $source (@sources)
{
	$server->safe_psql('postgres', $source->{superuser}) if $source->{superuser};
	for my $event ('start', 'crash')
	{
		if ($event eq 'start') { $server->restart }
		else { crash_backend() }
		my ($ended, $output, $errors) = as_app($source, $facts);
		ok($ended, "$source->{name}, after a $event: a session with settings of its own is issued IDs") or diag($errors);
		is($output, $configured, 'by the settings of the server');
		is(others(), $configured, 'and so are others');
	}
	$server->safe_psql('postgres', $source->{undo}) if $source->{undo};
}

# Each setting alone: none depends on another one.
for my $name (grep { !/registry|max_clock_step/ } @names)
{
	for my $event ('start', 'crash')
	{
		if ($event eq 'start') { $server->restart }
		else { crash_backend() }
		my (undef, $output, $errors) = as_app({ pgoptions => "-c snowflake.$name=$settings{$name}[1]" }, $facts);
		is($output, $configured, "snowflake.$name alone, after a $event") or diag($errors);
		is(others(), $configured, 'and what applies to others');
	}
}

# A registry: a session cannot do without it.
$server->append_conf('postgresql.conf', "snowflake.registry = 'host=nowhere'");
$server->restart;
for my $source ({ pgoptions => '-c snowflake.registry=' }, { before => "SET snowflake.registry = '';" })
{
	my ($ended, undef, $errors) = as_app($source, 'SELECT snowflake_nextval()');
	ok(!$ended, 'without the registry that is configured no ID is issued');
	like($errors, qr/ERROR:  snowflake must be loaded via "shared_preload_libraries"\nDETAIL:  "snowflake\.registry" is set/, 'which the error says');
}
$server->append_conf('postgresql.conf', "snowflake.registry = ''");

# A reload changes what others do, also if a session has not seen it: it has begun its statement
# before the reload, and attaches to the shared memory afterwards.
$server->append_conf('postgresql.conf', "snowflake.max_ahead = '1min'");
$server->restart;
my $ahead = $configured =~ s/ahead false/ahead true/r;
my $lock = $server->background_psql('clean');
$lock->query_safe('SELECT pg_advisory_lock(1)');
my $observer = $server->background_psql('clean');
$observer->query_safe('SELECT snowflake_nextval()');
my $late = $server->background_psql('clean', extra_params => [ '-U', 'app' ]);
is(others(), $ahead, 'the server allows IDs that are a minute ahead');
$late->query_until(qr/begun/, "\\echo begun\nDO 'BEGIN PERFORM pg_advisory_lock(1); PERFORM snowflake_nextval(); END';\n");
$server->poll_query_until('clean', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'");
$server->append_conf('postgresql.conf', "snowflake.max_ahead = 0");
$server->reload;
ok(wait_until(sub { others() eq $configured }), 'and none after a reload');
$lock->quit;
$server->poll_query_until('clean', "SELECT count(*) = 0 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %'");
is($observer->query_safe($facts), $configured, 'a session that has not seen the reload does not publish what it has seen before');
is($late->query_safe('SELECT snowflake_currval() > 0'), 't', 'though it was issued an ID');
$observer->quit;
my ($ended, $output) = as_app($pgoptions, $facts);
is($output, $configured, 'and one with settings of its own');
is(others(), $configured, 'do not change what applies to others');
$late->quit;

# Two servers with one machine ID and disjoint sequence ranges, each used first by a session with
# settings of its own.
my @servers = map { snowflake_server("range$_", { preload => '' }, 'snowflake.machine_id = 3', "snowflake.sequence_range = '$_'") } '0-100', '101-4095';
for my $one (@servers)
{
	$one->safe_psql('postgres', 'CREATE ROLE app LOGIN');
	$one->restart;
	local $ENV{PGOPTIONS} = '-c snowflake.sequence_range=5-6';
	$one->safe_psql('postgres', 'SELECT snowflake_nextval()', extra_params => [ '-U', 'app' ]);
}
my @sessions = map { start_issuing($_, 'SELECT snowflake_nextval() FROM generate_series(1, 200000)') } @servers;
$_->{run}->finish or die 'psql failed' for @sessions;
none_is_issued_twice(400000, 'two servers with one machine ID', map { $_->{file} } @sessions);
$_->stop for @servers;

# The clock: the session that was the first, and others, refuse a jump that the server refuses.
$server->restart;
{
	local $ENV{PGOPTIONS} = '-c snowflake.max_clock_step=0';
	my $session = $server->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', 'app' ]);
	like($session->query('SELECT snowflake_nextval()'), qr/^\d+$/, 'an ID before a jump of the clock');
	$clock->step(600);
	unlike($session->query('SELECT snowflake_nextval()'), qr/\d/, 'a session with another max_clock_step issues none after it');
	$session->quit;
}
fails_with($server, 'SELECT snowflake_nextval()', '55000', qr/has jumped forward by/, qr/"snowflake\.max_clock_step", which is (60 s|1 min)\./);
$clock->set(0);

# A standby, on which IDs are decoded.
$server->backup('backup');
my $standby = snowflake_server('standby', { backup => [ $server, 'backup', has_streaming => 1 ] });
my $decode = "SELECT snowflake_timestamp(1) = snowflake_timestamp(1, 'discord')";
{
	local $ENV{PGOPTIONS} = $options;
	is($standby->safe_psql('postgres', $decode, extra_params => [ '-U', 'app' ]), 't', 'a standby decodes in the layout of its configuration');
}
is($standby->safe_psql('postgres', $decode), 't', 'in all sessions');
$standby->stop('smart');

# The settings worker: no ordinary role can end it; if it was ended, its values apply, and the next
# session starts another one.
my $worker = "FROM pg_stat_activity WHERE backend_type = 'snowflake settings worker'";
my $first = $server->safe_psql('clean', "SELECT pid $worker");
like($first, qr/^\d+$/, 'one settings worker');
my ($terminated, undef, $refusal) = as_app({}, "SELECT pg_terminate_backend($first)");
ok(!$terminated && $refusal =~ /permission denied/, 'which an ordinary role cannot end');
my $session = $server->background_psql('clean');
$session->query_safe('SELECT snowflake_nextval()');
$server->safe_psql('clean', "SELECT pg_terminate_backend($first, 60000)");
is($server->safe_psql('clean', "SELECT count(*) $worker"), '0', 'it is ended');
$session->query_safe('SELECT snowflake_nextval()');
$session->quit;
($ended, $output) = as_app($pgoptions, $facts);
is($output, $configured, 'its values apply');
$server->poll_query_until('clean', "SELECT count(*) = 1 $worker");
$server->append_conf('postgresql.conf', "snowflake.max_ahead = '1min'");
$server->reload;
ok(wait_until(sub { others() eq $ahead }), 'and another one publishes the next reload');

# Many sessions that use the extension first start several workers, of which one remains.
$server->restart;
my (@outputs, @errors);
@sessions = map { IPC::Run::start([ 'psql', '-XAtqd', $server->connstr('clean'), '-c', 'SELECT snowflake_machine_id(snowflake_nextval())' ], '>', \$outputs[$_], '2>', \$errors[$_]) } 0 .. 29;
is(scalar(grep { $_->finish } @sessions), 30, 'many first sessions are issued IDs') or diag(@errors);
is(join('', @outputs), "12\n" x 30, 'with the machine ID of the server');
$server->poll_query_until('clean', "SELECT count(*) = 1 $worker");

# The machine ID of a reload that the worker has not published yet is waited for.
$server->append_conf('postgresql.conf', 'snowflake.machine_id = -1');
$server->restart;
fails_with($server, 'SELECT snowflake_nextval()', '55000', qr/"snowflake\.machine_id" is not set/);
$first = $server->safe_psql('clean', "SELECT pid $worker");
$server->append_conf('postgresql.conf', 'snowflake.machine_id = 12');
kill 'STOP', $first or die "kill $first: $!";
$server->reload;
$server->poll_query_until('postgres', "SELECT current_setting('snowflake.machine_id', true) = '12'");
my $waiting = IPC::Run::start([ 'psql', '-XAtqd', $server->connstr('clean'), '-c', 'SELECT snowflake_machine_id(snowflake_nextval())' ], '>', \my $number);
$server->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SnowflakeSettings'");
kill 'CONT', $first or die "kill $first: $!";
ok($waiting->finish, 'a session waits for the reload');
is($number, "12\n", 'and is issued IDs with the new machine ID');

# The worker cannot start.
$server->append_conf('postgresql.conf', 'max_worker_processes = 0');
$server->restart;
for my $statement ('SELECT snowflake_nextval()', 'SELECT snowflake_timestamp(1)')
{
	fails_with($server, "SET snowflake.max_wait = 0; $statement", '55000', qr/the snowflake settings worker could not be started/,
		qr/DETAIL:  No slot of "max_worker_processes" has become free in time\./, qr/HINT:  .*Increase "max_worker_processes"/);
}
fails_with($server, "SET snowflake.max_wait = -1; SET statement_timeout = '100ms'; SELECT snowflake_nextval()", '57014', qr/statement timeout/);
is($server->safe_psql('postgres', q{SET snowflake.max_wait = 0; CREATE TABLE explicit AS SELECT 1::bigint AS id; SELECT count(*) FROM explicit WHERE snowflake_timestamp(id, 'twitter') < now()}),
	'1', 'a query whose calls have a layout does not need it');

# A malformed value in the file is an error, also in a session with another one.
$server->append_conf('postgresql.conf', "max_worker_processes = 8\nsnowflake.layout = 'discordia'");
$server->restart;
fails_with($server, 'SELECT snowflake_timestamp(1)', '22023', qr/invalid value for parameter "snowflake\.layout": "discordia"/);
my (undef, undef, $malformed) = as_app($pgoptions, 'SELECT snowflake_timestamp(1)');
like($malformed, qr/ERROR:  the snowflake settings worker could not be started\nDETAIL:  The worker has ended before/, 'not only where the value is');
log_matches($server, 0, qr/ERROR:  invalid value for parameter "snowflake\.layout": "discordia"/, 'the log has the reason');
$server->append_conf('postgresql.conf', "snowflake.layout = 'discord'");
$server->reload;
ok(wait_until(sub { (as_app($pgoptions, $facts))[1] eq $ahead }), 'once it is corrected, no restart is needed');
$server->stop;

done_testing();
