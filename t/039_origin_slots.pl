# The slots for replication origins: CREATE EXTENSION takes all that it needs, or none, on a server with too few, after a
# call that was interrupted by a crash, and if other sessions take slots at the same time.
use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;

my $setting = major_version() >= 18 ? 'max_active_replication_origins' : 'max_replication_slots';
my $server = snowflake_server('main', { extension => 0 }, 'snowflake.machine_id = 5', "$setting = 10");
my $own = "SELECT string_agg(local_id::text, ' ' ORDER BY local_id::integer) FROM pg_replication_origin_status WHERE local_id BETWEEN 65528 AND 65534";
my $marks = q{SELECT count(*) FROM pg_parameter_acl WHERE parname = 'snowflake.max_wait'};

# Other origins with progress, up to a number of them.
sub use_others
{
	my ($number) = @_;

	$server->safe_psql('postgres', "SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin WHERE split_part(roname, ' ', 2)::integer > $number");
	$server->safe_psql('postgres', "SELECT pg_replication_origin_create(format('other %s', i)) FROM generate_series(1, $number) i WHERE pg_replication_origin_oid(format('other %s', i)) IS NULL");
	$server->safe_psql('postgres', q{SELECT pg_replication_origin_advance(roname, '1/1') FROM pg_replication_origin});
}

# Slots of the durable state, with a value, as a crash or pg_upgrade can leave them; an empty value gives them back.
sub leave
{
	my ($value, @numbers) = @_;

	for my $number (@numbers)
	{
		my $change = $value eq '' ? "pg_replication_origin_drop('own')" : "pg_replication_origin_advance('own', '$value')";

		$server->safe_psql('postgres', "SET allow_system_table_mods = on; INSERT INTO pg_replication_origin VALUES ($number, 'own');
			SELECT $change; DELETE FROM pg_replication_origin WHERE roname = 'own'");
	}
}

sub is_refused
{
	my ($database, $name, @patterns) = @_;
	my (undef, undef, $error) = $server->psql($database, "\\set VERBOSITY verbose\nCREATE EXTENSION snowflake");

	like($error, qr/ERROR:  53400: $_/, $name) for shift @patterns;
	like($error, $_, "$name: says $_") for @patterns;
}

# Too few are free: none is taken, so that others can take them.
use_others(5);
is_refused('postgres', 'too few slots', qr/could not create the durable state of Snowflake IDs/,
	qr/DETAIL:  The state needs 7 slots for replication origins, but only 5 of the 10 slots of "$setting" are free\./,
	qr/HINT:  Drop replication origins that are no longer used, or increase "$setting" to at least 12, on standbys first, and restart the server\./);
is($server->safe_psql('postgres', $own), '', 'none is taken');
use_others(10);
is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_origin_status'), '10', 'others can take all');

# A crash has interrupted an earlier call, when some of the slots were on disk.
use_others(4);
leave('0/0', 65528, 65529);
is($server->safe_psql('postgres', $own), '65528 65529', 'two slots are left');
is_refused('postgres', 'too few further slots', qr/could not create/, qr/DETAIL:  The state needs 5 slots .*, but only 4 of the 10 slots of/, qr/to at least 11,/);
is($server->safe_psql('postgres', $own), '', 'those of the earlier call are given back');

# Other sessions take slots after they were counted.
my $library = "$scratch/take_slots.so";
chomp(my $headers = `pg_config --includedir-server`);
system_or_bail('cc', '-shared', '-fPIC', '-O1', "-I$headers", '-o', $library, "$FindBin::RealBin/lib/take_slots.c");
use_others(3);
$server->append_conf('postgresql.conf', "session_preload_libraries = '$library'\ntake_slots.slots = 2");
$server->reload;
$server->poll_query_until('postgres', q{SELECT current_setting('take_slots.slots', true) = '2'});
is_refused('postgres', 'slots that others take meanwhile', qr/could not find free replication state slot/, qr/HINT:  Increase/);
is($server->safe_psql('postgres', $own), '', 'those that were taken are given back');
$server->safe_psql('postgres', 'CREATE TABLE flushed ()');
crash($server);
$server->start;
is($server->safe_psql('postgres', $own), '', 'and not taken after a crash');
is($server->safe_psql('postgres', $marks), '0', 'the server has no state');
$server->append_conf('postgresql.conf', 'take_slots.slots = 0');
$server->restart;

# With some of the slots, the others are taken.
use_others(1);
leave('0/0', 65528, 65529, 65530);
is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_origin_status'), '6', 'four slots are free');
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
is($server->safe_psql('postgres', $own), join(' ', 65528 .. 65534), 'with some of the slots, the others are taken');
like($server->safe_psql('postgres', 'SELECT snowflake_id()'), qr/^\d+$/, 'and IDs are issued');

# On a server that has a state, its numbers are left alone.
$server->safe_psql('postgres', 'CREATE DATABASE other');
leave('', 65529, 65530);
use_others(3);
is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_origin_status'), '10', 'another origin takes a slot');
is_refused('other', 'too few slots of a server with a state', qr/could not create/, qr/DETAIL:  The state needs 2 slots .*, but only 0 of the 10 slots/, qr/to at least 12,/);
is($server->safe_psql('postgres', $own), '65528 65531 65532 65533 65534', 'which keeps those that it has, including that of the number 0');
$server->stop;

done_testing();
