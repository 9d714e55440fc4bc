# pg_upgrade does not preserve the durable state.  The new cluster issues no IDs until its floor is set, even if the
# extension is created in another database.  The new cluster gets its settings from the commands that
# docs/backup-and-upgrade.md prints.
use FindBin;
use lib "$FindBin::RealBin/lib";
use IdLog;
use SnowflakeTest;
use TestClock;

my $clock = TestClock->new;
my $machine_id = PostgreSQL::Test::Utils::tempdir() . '/5432.conf';
append_to_file($machine_id, "snowflake.machine_id = 5\n");
my $old = snowflake_server('old', { clock => $clock }, "include_if_exists '$machine_id'", "snowflake.max_wait = '100ms'", "snowflake.max_ahead = '20ms'");
my $ids = IdLog->new;
$ids->make_tables($old);
$ids->continues($old, 'the old cluster issues IDs');
$old->safe_psql('postgres', q{
	CREATE TABLE lamps (id bigserial PRIMARY KEY, item text);
	INSERT INTO lamps (item) VALUES ('a lamp'), ('a desk');
	SELECT snowflake_adopt('lamps', 'id');
	INSERT INTO lamps (item) VALUES ('a chair');
});
my $lamps = $old->safe_psql('postgres', 'TABLE lamps ORDER BY id');

# Settings of a database and a role remain theirs, even if the session that runs the commands has them.
$old->safe_psql('postgres', q{
	ALTER SYSTEM SET snowflake.max_ahead = '30ms';
	CREATE DATABASE shop;
	ALTER DATABASE shop SET snowflake.max_wait = '1min';
	ALTER ROLE CURRENT_USER IN DATABASE shop SET snowflake.enable_timestamp_pushdown = off});
$old->reload;
my $new = snowflake_server('new', { clock => $clock, preload => '', extension => 0, start => 0 });
my ($copy) = slurp_file("$FindBin::RealBin/../docs/backup-and-upgrade.md") =~ /^```sh\n(psql [^`]*)^```/m;
$copy =~ s{/etc/snowflake/5432\.conf}{$machine_id};
{
	local %ENV = (%ENV, PGDATANEW => $new->data_dir, PGHOST => $old->host, PGPORT => $old->port, PGDATABASE => 'shop');
	command_ok(['sh', '-ec', $copy], 'the settings are copied');
}
my $copied = slurp_file($new->data_dir . '/postgresql.conf');
is_deeply([ sort $copied =~ /^(?:snowflake|include_if).*/mg ],
	[ "include_if_exists '$machine_id'", "snowflake.max_ahead = '30ms'", "snowflake.max_wait = '100ms'" ],
	'those of the server, without its machine ID');
$old->stop;

chdir $scratch;
my $bindir = (split /\n/, `pg_config --bindir`)[0];
command_ok(
	[
		'pg_upgrade', '--no-sync',
		'--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
		'--old-bindir', $bindir, '--new-bindir', $bindir,
		'--socketdir', $new->host, '--old-port', $old->port, '--new-port', $new->port ],
	'pg_upgrade');

# No IDs are issued before the floor is set.
$clock->set(-3600);
$new->start;
fails_with($new, 'SELECT snowflake_nextval()', '55000', qr/the durable state of Snowflake IDs is missing/,
	qr/pg_upgrade and pg_dumpall do not preserve this state\./, qr/HINT:  Use snowflake_set_floor/);
$new->safe_psql('postgres', 'CREATE DATABASE more');
$new->safe_psql('more', 'CREATE EXTENSION snowflake');
fails_with($new, 'SELECT snowflake_nextval()', '55000', qr/the durable state of Snowflake IDs is missing/);
is($new->safe_psql('postgres', q{SELECT (SELECT count(*) FROM pg_parameter_acl), (SELECT count(*) FROM pg_init_privs WHERE classoid = 'pg_parameter_acl'::regclass)}),
	'1|0', 'the mark is preserved, and belongs to no database');
my $greatest = $ids->greatest;
$new->safe_psql('other', "SELECT snowflake_set_floor(snowflake_timestamp($greatest) + interval '1 s')");
IdLog->new->continues_above_recovered($new, $clock, 'the new cluster');

is($new->safe_psql('shop', "SELECT current_setting('snowflake.max_wait'), current_setting('snowflake.enable_timestamp_pushdown')"), '1min|off',
	'settings of a database and a role are preserved');
is($new->safe_psql('other', "SELECT current_setting('snowflake.machine_id'), current_setting('snowflake.max_wait')"), '5|100ms',
	'and are not those of the server');

# An adopted table has its rows, its default, and no sequence.
is($new->safe_psql('postgres', 'TABLE lamps ORDER BY id'), $lamps, 'an adopted table has its rows');
is($new->safe_psql('postgres', "INSERT INTO lamps (item) VALUES ('a shelf') RETURNING id > (SELECT max(id) FROM lamps)"),
	't', 'and gets IDs above them');
is($new->safe_psql('postgres', "SELECT pg_get_serial_sequence('lamps', 'id') IS NULL AND to_regclass('lamps_id_seq') IS NULL"),
	't', 'and has no sequence');
$new->stop;

done_testing();
