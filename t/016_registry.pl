# The registry of machine IDs: what takes several sessions or servers.  Spans of one
# machine ID that different servers hold never overlap: under load, with clocks that are
# off; and where the registry has lost what it granted, since a standby was promoted, a
# point in time recovered, a dump restored, files were put back, or it was made again.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use TestClock;

# Of all servers.
my $clock = TestClock->new;

my $one = PostgreSQL::Test::Cluster->new('one');
$one->init(allows_streaming => 1, has_archiving => 1);
$one->append_conf('postgresql.conf', "max_connections = 60\n");
$clock->start($one);
$one->safe_psql('postgres', "CREATE DATABASE $_") for 'busy', 'registry', 'plain';
$one->safe_psql('busy', 'CREATE EXTENSION snowflake_registry');

# Without a superuser; and what is in the schema public may be dropped.
$one->safe_psql('registry', 'CREATE ROLE owner LOGIN; GRANT CREATE ON DATABASE registry, plain TO owner');
command_ok([ 'psql', '-XqAt', '-U', 'owner', '-d', $one->connstr('registry'), '-c', 'CREATE EXTENSION snowflake_registry' ],
	'an ordinary role makes a registry');
$one->safe_psql('registry', 'DROP SCHEMA public CASCADE');

# The same without an extension.
command_ok(
	[
		'psql', '-XqAt', '-1', '-v', 'ON_ERROR_STOP=1', '-f', "$FindBin::RealBin/../snowflake_registry--1.0.sql",
		'-U', 'owner', '-d', $one->connstr('plain') ],
	'the script alone makes a registry');
is($one->safe_psql('plain', 'SELECT count(*) FROM pg_extension'), '1', 'which is no extension');
$one->safe_psql($_, 'SELECT snowflake_registry.declare_first()') for 'busy', 'registry', 'plain';

#
# Load: servers claim, renew, give back and vanish, in 40 sessions.  Some roll back
# after they have read an answer; most have clocks that are off by seconds, some by almost
# an hour, and some by more.  A span is what a token was granted until it is given back.
#
my $calls = 60;

$one->safe_psql('busy', <<'SQL');
SELECT snowflake_registry.configure(max_skew => '1 hour');
CREATE ROLE server LOGIN;
SELECT snowflake_registry.admit('server');
CREATE TABLE granted (token uuid, span integer, machine_id integer, starts timestamptz, ends timestamptz, number bigint);
CREATE INDEX ON granted (token);
CREATE TABLE refused (seconds_off integer, refusal text);
GRANT SELECT, INSERT, UPDATE ON granted, refused TO server;

CREATE PROCEDURE serve(seconds_off integer, calls integer) LANGUAGE plpgsql AS $$
<<server>>
DECLARE
	token uuid := gen_random_uuid();
	span integer := 0;
	known bigint := 0;
	off CONSTANT interval := seconds_off * interval '1 s';
	held snowflake_registry.answer;
	answer snowflake_registry.answer;
	used timestamptz;
BEGIN
	FOR i IN 1..calls LOOP
		IF held IS NULL OR random() < 0.2 THEN
			answer := snowflake_registry.claim(token, 'busy', 10, CASE WHEN random() < 0.2 THEN (random() * 100)::integer END,
				random() * interval '20 ms' + interval '1 us', clock_timestamp() + off, '', known);
		ELSE
			answer := snowflake_registry.renew(token, held.machine_id, held.lease_from, held.lease_until,
				random() * interval '20 ms' + interval '1 us', clock_timestamp() + off, '', known);
		END IF;
		IF random() < 0.05 THEN
			ROLLBACK;
			CONTINUE;
		END IF;
		IF answer.refusal IS NULL THEN
			INSERT INTO granted VALUES (token, span, answer.machine_id, answer.lease_from, answer.lease_until, answer.grant_number);
			held := answer;
			known := answer.grant_number;
		ELSE
			INSERT INTO refused VALUES (seconds_off, answer.refusal);
			held := NULL;
		END IF;
		COMMIT;

		CONTINUE WHEN held IS NULL OR random() < 0.5;
		IF random() < 0.5 THEN
			used := held.lease_from + random() * (held.lease_until - held.lease_from);
			PERFORM snowflake_registry.release(token, used, known);
			UPDATE granted g SET ends = least(ends, used) WHERE g.token = server.token AND g.span = server.span
				AND machine_id = held.machine_id AND starts = held.lease_from;
			COMMIT;
		ELSE
			token := gen_random_uuid();
		END IF;
		span := span + 1;
		held := NULL;
	END LOOP;
END
$$;
SQL

my @sessions = map {
	my $off = $_ < 2 ? 3590 : $_ < 4 ? -3590 : $_ == 4 ? 3700 : $_ == 5 ? -3700 : $_ - 20;
	my $messages = '';
	{
		messages => \$messages,
		process => IPC::Run::start(
			[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-U', 'server', '-d', $one->connstr('busy'), '-c',
				"CALL serve($off, $calls)" ],
			'<', \undef, '>', \my $output, '2>', \$messages) };
} 0 .. 39;
my $failed = 0;
for (@sessions)
{
	next if $_->{process}->finish && ${ $_->{messages} } eq '';
	$failed++;
	diag(${ $_->{messages} });
}
is($failed, 0, '40 sessions end without an error');
my $spans = 'SELECT token, span, machine_id, starts, max(ends) AS ends FROM granted GROUP BY 1, 2, 3, 4 HAVING max(ends) > starts';
my ($grants, $tokens, $most) = split /\|/, $one->safe_psql('busy', qq{
	SELECT count(*), count(DISTINCT token), (SELECT max(c) FROM (SELECT count(DISTINCT token) AS c FROM granted GROUP BY machine_id) m)
	FROM granted});
cmp_ok($grants, '>=', 500, "$grants grants to $tokens servers");
cmp_ok($most, '>=', 4, "a machine ID went through the hands of $most servers");
is( $one->safe_psql('busy', qq{
		SELECT count(*) FROM (
			SELECT starts, max(ends) OVER (PARTITION BY machine_id ORDER BY starts, ends
				ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
			FROM ($spans) s) s
		WHERE starts < before}),
	'0', 'no two spans of a machine ID overlap');
is($one->safe_psql('busy', 'SELECT count(*) = count(DISTINCT number), max(number) = (SELECT grants FROM snowflake_registry.status) FROM granted'),
	't|t', 'grants are numbered');
is( $one->safe_psql('busy', q{SELECT string_agg(DISTINCT seconds_off::text, ' ') FROM refused WHERE refusal ~ 'the clock is'}),
	'-3700 3700', 'clocks that are off by more than an hour are refused');
is($one->safe_psql('busy', q{SELECT count(*) > 0 FROM refused WHERE refusal ~ 'is taken until'}), 't', 'taken machine IDs are refused');
is($one->safe_psql('busy', q{SELECT count(*) FROM refused WHERE refusal !~ 'the clock is|taken until|not held under'}), '0', 'and nothing else is');

#
# Transactions
#
sub claim_of
{
	my ($token) = @_;

	return "SELECT machine_id FROM snowflake_registry.claim('$token', 'busy', 10, 1000, '1 minute', clock_timestamp(), 'late', 0);";
}

# Two claims of a machine ID by tokens that end with 1 and 2, of which the first one ends
# its transaction when the second one waits for it.  What they have got.
sub race
{
	my ($tokens, $end) = @_;
	my ($first, $second) = ('0' x 30 . $tokens . '1', '0' x 30 . $tokens . '2');
	my $wait = q{DO $$ BEGIN FOR i IN 1..1000 LOOP EXIT WHEN EXISTS (SELECT FROM pg_locks WHERE NOT granted); PERFORM pg_sleep(0.01); END LOOP; END $$};
	my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $one->connstr('busy'),
			'-c', 'BEGIN', '-c', claim_of($first), '-c', $wait, '-c', $end ], '<', \undef, '>', \my $got_first);

	$one->poll_query_until('busy',
		q{SELECT count(*) > 0 FROM pg_locks WHERE relation = 'snowflake_registry.machine'::regclass AND mode = 'RowExclusiveLock'});
	my $got_second = $one->safe_psql('busy', claim_of($second));
	$session->finish;
	$one->safe_psql('busy', "SELECT snowflake_registry.release(token::uuid, '-infinity', 0) FROM unnest('{$first, $second}'::text[]) token");
	return "$got_first$got_second";
}

is(race('a', 'COMMIT'), "1000\n", 'a claim waits for one that commits late, and is refused');
is(race('b', 'ROLLBACK'), "1000\n1000", 'and granted after one that rolls back');

for my $level ('REPEATABLE READ', 'SERIALIZABLE')
{
	my $other = claim_of('000000000000000000000000000000c1');
	my ($status, $stdout, $stderr) = $one->psql('busy', <<"SQL");
\\set VERBOSITY verbose
BEGIN ISOLATION LEVEL $level;
SELECT count(*) FROM pg_class \\gset
\\! psql -XAtq -d "@{[$one->connstr('busy')]}" -c "$other"
@{[claim_of('000000000000000000000000000000c2')]}
SQL
	is($stdout, '1000', "$level: another session claims");
	like($stderr, qr/ERROR:  40001/, "$level: one that cannot see it fails");
}

#
# Losses
#
# A registry is a server, a database, the servers ("holders") that have spans, by their
# names, and all spans that were granted.
#
# s, as long as is allowed, and so long that no span runs out on however slow a machine before
# the clock is set forth, in the end.
my $lease = 600;
my $us = '(extract(epoch FROM %s) * 1000000)::bigint';

sub registry
{
	my ($database) = @_;

	$one->safe_psql($database, "SELECT snowflake_registry.configure('$lease s', '300 ms')");
	return { server => $one, database => $database, holders => {}, spans => {} };
}

# What a registry was, in another place.
sub moved
{
	my ($registry, $server) = @_;

	return {
		server => $server, database => $registry->{database},
		holders => { map { $_ => { %{ $registry->{holders}{$_} } } } keys %{ $registry->{holders} } },
		spans => { map { $_ => [ @{ $registry->{spans}{$_} } ] } keys %{ $registry->{spans} } } };
}

my $tokens_made = 0;

sub holder
{
	my ($registry, $name) = @_;

	return $registry->{holders}{$name} //= { token => sprintf('%032x', ++$tokens_made), known => 0 };
}

# Call claim or renew, and take the answer down.  Returns the refusal.
sub call
{
	my ($registry, $name, $call) = @_;
	my $holder = holder($registry, $name);
	my $columns = join ', ', 'machine_id', sprintf($us, 'lease_from'), sprintf($us, 'lease_until'), 'grant_number', 'refusal';
	my ($id, $from, $until, $number, $refusal) =
	  split /\|/, $registry->{server}->safe_psql($registry->{database}, "SELECT $columns FROM snowflake_registry.$call"), -1;

	return $refusal if $refusal ne '';
	my $span = $registry->{spans}{"$holder->{token} $id $from"} //= [ $id, $from, $until, $name ];
	$span->[2] = $until;
	@{$holder}{ 'id', 'from', 'until', 'known' } = ($id, $from, $until, $number);
	return '';
}

sub claim
{
	my ($registry, $name, $for) = @_;
	my $holder = holder($registry, $name);

	$for //= "$lease s";
	return call($registry, $name, "claim('$holder->{token}', 'any', 10, NULL, '$for', clock_timestamp(), '$name', $holder->{known})");
}

sub instant
{
	my ($number) = @_;

	return "'1970-01-01Z'::timestamptz + $number * interval '1 us'";
}

sub renew
{
	my ($registry, $name) = @_;
	my $holder = holder($registry, $name);
	my ($from, $until) = (instant($holder->{from}), instant($holder->{until}));

	return call($registry, $name,
		"renew('$holder->{token}', $holder->{id}, $from, $until, '$lease s', clock_timestamp(), '$name', $holder->{known})");
}

# Give back what is left of a span, of which a tenth of a second was used.
sub release
{
	my ($registry, $name) = @_;
	my $holder = holder($registry, $name);
	my $used = $holder->{from} + 100_000;

	$registry->{server}->safe_psql($registry->{database},
		"SELECT snowflake_registry.release('$holder->{token}', @{[instant($used)]}, $holder->{known})");
	$registry->{spans}{"$holder->{token} $holder->{id} $holder->{from}"}[2] = $used;
}

# The pairs of spans that overlap.
sub overlaps
{
	my ($registry) = @_;
	my @spans = sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } values %{ $registry->{spans} };
	my @found;

	for my $i (0 .. $#spans)
	{
		my ($id, $from, $until, $name) = @{ $spans[$i] };
		push @found, map { "$name, $_->[3]: machine ID $id" }
		  grep { $_->[0] == $id && $_->[1] < $until && $from < $_->[2] } @spans[ $i + 1 .. $#spans ];
	}
	return "@found";
}

# What will be remembered.
sub begin
{
	my ($registry) = @_;

	is(join('', map { claim($registry, $_) } 'renewed', 'moved'), '', "$registry->{database}: two claim");
	is(claim($registry, 'lapsed', '1 us'), '', "$registry->{database}: one claims, and its span runs out");
}

# What will be lost: a renewal; a span that was given back, its next holder, and another
# span of its former one; a machine ID that had run out, and was granted to another; and
# claims, of which one server is not heard of any more.
sub go_on
{
	my ($registry) = @_;

	is(renew($registry, 'renewed'), '', "$registry->{database}: one renews");
	release($registry, 'moved');
	is(join('', map { claim($registry, $_) } 'second', 'third', 'moved', 'new', 'silent'), '', "$registry->{database}: five claim");
	is(join(' ', map { "$_ $registry->{holders}{$_}{id}" } sort keys %{ $registry->{holders} }),
		'lapsed 2 moved 3 new 4 renewed 0 second 1 silent 5 third 2', "$registry->{database}: the machine IDs");
	is(overlaps($registry), '', "$registry->{database}: no two spans overlap");
}

my @holders = ('renewed', 'moved', 'second', 'third', 'new');

# Those who hold a span go on with it.
sub all_renew
{
	my ($registry) = @_;
	my @spans = map { "$_->{id} $_->{from}" } @{ $registry->{holders} }{@holders};
	my $refused = join '', map { renew($registry, $_) } @holders;
	my @renewed = map { "$_->{id} $_->{from}" } @{ $registry->{holders} }{@holders};

	return $refused ne '' ? $refused : "@spans" eq "@renewed" ? '' : "@renewed, not @spans";
}

my $fenced = qr/^the registry (?:was moved or restored|is new, and snowflake_registry\.declare_first\(\) was not called): no new span starts before/;

sub is_fenced
{
	my ($registry, $name, $who_first) = @_;

	$registry->{name} = $name;
	is(renew($registry, $who_first), '', "$name: one goes on") if $who_first;
	like(claim($registry, 'newcomer'), $fenced, "$name: a newcomer has to wait");
	is(all_renew($registry), '', "$name: those who hold a span go on");
	like(renew($registry, 'lapsed'), qr/$fenced|not held/, "$name: not one whose span has run out");
	like(claim($registry, 'newcomer'), $fenced, "$name: a newcomer has to wait still");
	is($registry->{server}->safe_psql($registry->{database}, 'SELECT grants / 1000000000000 FROM snowflake_registry.status'),
		'1', "$name: one fence was made");
}

my $registry = registry('registry');
my $plain = registry('plain');

begin($_) for $registry, $plain;
$one->backup('backup');
my $promoted = PostgreSQL::Test::Cluster->new('promoted');
$promoted->init_from_backup($one, 'backup', has_streaming => 1);
# Its timeline is not for the archive that another server recovers from.
$promoted->append_conf('postgresql.conf', 'archive_mode = off');
$clock->start($promoted);
$one->wait_for_catchup($promoted);
$promoted->stop;

my $recovered = PostgreSQL::Test::Cluster->new('recovered');
$recovered->init_from_backup($one, 'backup', has_restoring => 1, standby => 0);
$recovered->append_conf('postgresql.conf', "recovery_target_name = 'here'\nrecovery_target_action = 'promote'");
$one->safe_psql('postgres', "SELECT pg_create_restore_point('here')");

my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init;
$clock->start($restored);
$restored->safe_psql('postgres', 'CREATE ROLE owner');
for ('registry', 'plain')
{
	my $dump = "$scratch/$_.sql";

	$restored->safe_psql('postgres', "CREATE DATABASE $_");
	command_ok([ 'pg_dump', '-f', $dump, '-d', $one->connstr($_) ], "$_: dumped");
	command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $restored->connstr($_) ], "$_: restored");
}

my $copy = $one->data_dir . '.copy';
$one->stop;
system_or_bail('cp', '-a', $one->data_dir, $copy);
$clock->start($one);

go_on($_) for $registry, $plain;
$one->safe_psql('postgres', 'SELECT pg_switch_wal()');
$one->poll_query_until('postgres', 'SELECT last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 1) FROM pg_stat_archiver');
$one->stop;

my @lossy = (
	moved($registry, $restored), moved($plain, $restored),
	moved($registry, $promoted),
	moved($registry, $recovered),
	moved($registry, $one), moved($plain, $one),
	moved($registry, $restored));
$lossy[6]{database} = 'anew';

is_fenced($lossy[0], 'restored from a dump');
is_fenced($lossy[1], 'restored from a dump, no extension');

# Also before the first checkpoint, which tells the control file of the timeline.
$clock->start($promoted);
my $checkpointer = $promoted->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
kill 'STOP', $checkpointer;
$promoted->promote;
is_fenced($lossy[2], 'promoted');
kill 'CONT', $checkpointer;

$clock->start($recovered);
$recovered->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is_fenced($lossy[3], 'recovered to a point in time');

# A registry that was dropped and made again, with the same limits.
$restored->safe_psql('postgres', 'CREATE DATABASE anew');
$restored->safe_psql('anew', "CREATE EXTENSION snowflake_registry;
	INSERT INTO snowflake_registry.config (max_lease, max_skew, is_new) VALUES ('$lease s', '300 ms', true)");
is_fenced($lossy[6], 'made again');
is($restored->psql('anew', 'SELECT snowflake_registry.declare_first()'), 3, 'which cannot be declared the first one');

# Nothing shows that files were put back, but what a server or a person knows.
system_or_bail('rm', '-r', $one->data_dir);
system_or_bail('mv', $copy, $one->data_dir);
$clock->start($one);
is_fenced($lossy[4], 'files put back', 'moved');
$one->safe_psql('plain', 'SELECT snowflake_registry.fence()');
is_fenced($lossy[5], 'files put back, fence by hand');

# In the end newcomers get a span, which may be of the one who was not heard of: the clock is
# set forth to just before the first fence, and from there goes by itself, so that none who
# comes too early is missed.
my ($fence) = sort map { claim($_, 'newcomer') =~ s/$fenced //r } @lossy;
my $left = $one->safe_psql('postgres', "SELECT extract(epoch FROM timestamptz '$fence' - clock_timestamp())") - 1;
my $refused = '';
for my $quarter (1 .. 4)
{
	$clock->step($left / 4);
	$refused .= all_renew($_) for @lossy;
}
my @waiting = @lossy;
wait_until(sub { @waiting = grep { claim($_, 'newcomer') ne '' } @waiting; return !@waiting });
$refused .= all_renew($_) for @lossy;
is($refused, '', 'those who hold a span have gone on');
for (@lossy)
{
	is($_->{holders}{newcomer}{id}, 5, "$_->{name}: the newcomer has a machine ID");
	is(overlaps($_), '', "$_->{name}: no two spans overlap");
}
$_->stop for $one, $restored, $promoted, $recovered;

done_testing();
