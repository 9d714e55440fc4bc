# Clocks that step back by an hour: while the server runs, while it is stopped,
# and on a standby that is promoted.  IDs are not repeated: callers wait, get an
# error that says so, and go on when the clock has caught up.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use TestClock;

my $nextval = 'SELECT snowflake_nextval()';
my $refused = qr/no Snowflake ID became free within 100 ms/;

my $clock = TestClock->new;
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'snowflake'
snowflake.machine_id = 5
snowflake.max_wait = '100ms'
CONF
$clock->start($primary);
$primary->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$primary->safe_psql('postgres', 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n integer)');

my $insert = 'INSERT INTO orders (n) SELECT n FROM generate_series(1, 20000) n';
$primary->safe_psql('postgres', $insert);

# Wait until a server issues IDs, and tell whether they are new: the primary key
# refuses others.
sub goes_on
{
	my ($server, $name) = @_;

	for (1 .. 100)
	{
		last if $server->psql('postgres', $nextval) == 0;
	}
	is($server->psql('postgres', $insert), 0, $name);
}

# An hour back while running: in a session that has a lease in hand, and in a
# new one.
my $session = $primary->background_psql('postgres', on_error_stop => 0);
my $before = $session->query('SELECT max(snowflake_nextval()) FROM generate_series(1, 1000)');
$clock->step(-3600);
fails_with($primary, $nextval, '53400', $refused, qr/may be issued in 3(59|60)\d{4}\.\d{3} ms/);
is($session->query($nextval), '', 'the session gets no ID either');
$clock->step(3600);
my $after = $session->query($nextval);
cmp_ok($after, '>', $before, 'when the clock is right again the session goes on, above what it had');
$session->quit;
goes_on($primary, 'and so do others');

# Ten years forth: not believed, until it is accepted; and the way back.
$clock->step(315_360_000);
fails_with($primary, $nextval, '55000', qr/the clock of this server has jumped forward by 315(360|359)\d{3}\.\d{3} s/,
	qr/more than snowflake.max_clock_step, 3600 s/, qr/HINT:  .*snowflake_accept_clock\(\)/);
fails_with($primary, $nextval, '55000', qr/has jumped forward/);
$clock->step(-315_360_000);
goes_on($primary, 'when the clock is right again, it goes on');
$clock->step(315_360_000);
$primary->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
is($primary->safe_psql('postgres', 'SELECT snowflake_timestamp(snowflake_nextval()) > now() - interval \'1 s\''), 't', 'accepted, it is believed');
log_matches($primary, 0, qr/LOG:  the clock was accepted for Snowflake IDs, after a jump of 315/, 'the log tells');
$clock->step(-315_360_000);
fails_with($primary, $nextval, '53400', $refused);
$primary->safe_psql('postgres', 'SELECT snowflake_set_floor(clock_timestamp())');
goes_on($primary, 'the floor set back, it goes on');

# Less than the limit is believed; without a limit, anything.
$clock->step(1800);
goes_on($primary, 'half an hour forth');
configure($primary, 'snowflake.max_clock_step', 0);
$clock->step(86400);
goes_on($primary, 'a day forth, without a limit');
configure($primary, 'snowflake.max_clock_step', 3600000);
$clock->step(-86400 - 1800);
$primary->safe_psql('postgres', 'DELETE FROM orders WHERE id > snowflake_boundary(clock_timestamp())');
$primary->safe_psql('postgres', 'SELECT snowflake_set_floor(clock_timestamp())');
goes_on($primary, 'and the floor set back again');

# An hour back while stopped.
$primary->stop;
$clock->step(-3600);
$clock->start($primary);
fails_with($primary, $nextval, '53400', $refused);
$clock->step(3600);
goes_on($primary, 'after a restart under a clock an hour behind');
log_matches($primary, 0, qr/LOG:  issuing Snowflake IDs with machine ID 5 in the layout "twitter", from 20/, 'the log tells the floor');

# A standby under a clock an hour behind: refused, then promoted.
$primary->backup('backup');
my $standby_clock = TestClock->new;
$standby_clock->set(-3600);
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby_clock->start($standby);
$primary->safe_psql('postgres', $insert);
$primary->wait_for_catchup($standby);
fails_with($standby, $nextval, '25006', qr/cannot execute snowflake_nextval\(\) during recovery/);

# The primary's own clock is stepped back before its last commit.
$clock->step(-0.05);
goes_on($primary, 'the primary goes on after a small step back');
$primary->wait_for_catchup($standby);
$primary->stop;
$standby->promote;
fails_with($standby, $nextval, '53400', $refused);
my $replicated = $standby->safe_psql('postgres', 'SELECT max(id) FROM orders');
$standby_clock->set(0);
goes_on($standby, 'the promoted standby repeats no ID of a replicated row');
is($standby->safe_psql('postgres', "SELECT snowflake_nextval() > $replicated"), 't', 'and is above them all');
$standby->stop;

done_testing();
