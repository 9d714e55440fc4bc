# Whatever answers at the address of a registry, it does no more than leave an error in the log: no
# process ends, no ID is issued without a valid lease, and the server does not ask in a tight loop.
use FindBin;
use lib "$FindBin::RealBin/lib";
use FalseRegistry;
use SnowflakeTest;
use Time::HiRes qw(time);

my $nextval = 'SELECT snowflake_nextval()';
my $refused = [ (undef) x 5, 'not today', undef ];
my $other_error = qr/^another error$/;
my $not_other_error = qr/^(?!another error$)./;
my $invalid = qr/^the registry sent an invalid answer: /;
my $false = FalseRegistry->new;
my $server = snowflake_server('server', "snowflake.registry = '" . $false->conninfo . " connect_timeout=600'", "snowflake.max_wait = '100ms'", "log_min_messages = debug1");

sub leased
{
	my ($column) = @_;

	return $server->safe_psql('postgres', "SELECT $column FROM pg_stat_snowflake WHERE generator = 'bigint'");
}

# The row of a lease of ten minutes that began a second ago, with other values for some columns.
my @names = qw(machine_id from until number skew refusal free_at);

sub lease
{
	my (%other) = @_;
	my $now = int(time) * 1_000_000;
	my %values = (machine_id => 5, from => $now - 1_000_000, until => $now + 600_000_000, number => 1, skew => 0, %other);

	return row(@values{@names});
}

# The server asks at once, and is given answers.
sub gives
{
	my ($error, %answers) = @_;

	$false->answer(identity => row(42), %answers);
	$server->reload;
	return wait_until(sub { leased('last_error') =~ $error });
}

# Answers lead to an error in pg_stat_snowflake, which the log has as well if the state has changed.  If the error before
# matches already, there is another one in between.
sub leads_to
{
	my ($name, $error, %answers) = @_;

	gives($other_error, claim => row((undef) x 5, 'another error', undef)) || die "no other error before: $name"
	  if leased('last_error') =~ $error;
	ok(gives($error, %answers), $name) or diag(leased('last_error'));
}

# The peak of the memory of the registry worker, in kB, or 0 if the system does not tell.
sub peak
{
	my $status = '/proc/' . (registry_workers($server))[-1] . '/status';

	return -r $status && slurp_file($status) =~ /^VmHWM:\s+(\d+) kB/m ? $1 : 0;
}

# A connection that gives more and more.
sub flood
{
	my ($first, $bytes) = @_;

	return sub {
		my ($client) = @_;

		1 while FalseRegistry::give($client, $first) && ($first = $bytes);
		return 0;
	};
}

# No lease is held.  Rows with other columns, and other numbers of rows.
my $none = qr/${invalid}0 rows and 0 columns instead of one row and/;
leads_to("an identity of $_->[0]", $_->[1], identity => $_->[2])
  for [ 'no column', qr/${invalid}1 rows and 0 columns instead of one row and 1 columns/, row() ],
  [ 'no row', qr/${invalid}0 rows and 1 columns/, rows(1) ],
  [ 'two rows', qr/${invalid}2 rows and 1 columns/, rows(1, [1], [1]) ],
  [ 'null', qr/${invalid}column 1 is "null"/, row(undef) ],
  [ '0', qr/${invalid}column 1 is "0", and not a number from 1 to 9223372036854775807/, row(0) ],
  [ 'a text', qr/${invalid}column 1 is "1 or so"/, row('1 or so') ],
  [ 'an empty text', qr/${invalid}column 1 is "", and/, row('') ],
  [ 'a number of 20 digits', qr/${invalid}column 1 is "1{20}"/, row('1' x 20) ],
  [ 'a long text', qr/${invalid}column 1 is "x{40}", and/, row('x' x 5000) ];
is($server->safe_psql('postgres', "SELECT count(*) FROM pg_replication_origin_status WHERE local_id = 65534 AND remote_lsn <> '0/0'"), '0', 'no identity was recorded');

my $now = int(time) * 1_000_000;
leads_to("a lease of $_->[0]", $_->[1], claim => $_->[2])
  for [ 'no column', qr/${invalid}1 rows and 0 columns instead of one row and 7 columns/, row() ],
  [ 'one column', qr/${invalid}1 rows and 1 columns/, row(5) ],
  [ 'eight columns', qr/${invalid}1 rows and 8 columns/, row((1) x 8) ],
  [ 'no row', qr/${invalid}0 rows and 7 columns/, rows(7) ],
  [ 'nulls', qr/${invalid}column 1 is "null", and not a number from 0 to 1023/, row((undef) x 7) ],
  [ 'a machine ID of 13 bits', qr/${invalid}column 1 is "5000", and not a number from 0 to 1023/, lease(machine_id => 5000) ],
  [ 'a negative machine ID', qr/${invalid}column 1 is "-1"/, lease(machine_id => -1) ],
  [ 'a machine ID of 2^32 + 5', qr/${invalid}column 1 is "4294967301"/, lease(machine_id => 2**32 + 5) ],
  [ 'a time of no number', qr/${invalid}column 2 is "2024-01-01"/, lease(from => '2024-01-01') ],
  [ 'a start in the future', qr/${invalid}column 2 is "\d+", and not a number from -?\d+ to \d+/, lease(from => $now + 300_000_000) ],
  [ 'a start before all times', qr/${invalid}column 2 is "-9223372036854775808"/, lease(from => '-9223372036854775808') ],
  [ 'an end in the past', qr/${invalid}column 3 is "2", and not a number from \d+ to \d+/, lease(from => 1, until => 2) ],
  [ 'an end at its start', qr/${invalid}column 3 is "$now"/, lease(from => $now, until => $now) ],
  [ 'an end in 290,000 years', qr/${invalid}column 3 is "9223372036854775807"/, lease(until => '9223372036854775807') ],
  [ 'number 0', qr/${invalid}column 4 is "0", and not a number from 1 to/, lease(number => 0) ],
  [ 'a skew of two days', qr/${invalid}column 5 is "172800000000"/, lease(skew => 172_800_000_000) ],
  [ 'a refusal until a text', qr/${invalid}column 7 is "tomorrow"/, row(@$refused[ 0 .. 5 ], 'tomorrow') ],
  [ 'a refusal until a time before all others', qr/${invalid}column 7 is "-9223372036854775808"/, row(@$refused[ 0 .. 5 ], '-9223372036854775808') ];

# A refusal is one, whatever else its row has.
leads_to('a refusal until the end of all times', qr/^not today$/, claim => row(@$refused[ 0 .. 5 ], '9223372036854775807'));
is(leased('registry_state'), 'refused', 'a refusal is one');
leads_to('a refusal with control characters', qr/^a b c\?+$/, claim => row((1) x 5, "a\nb\tc\xe9", undef));

# Calls that fail make the server ask again once a second, however often it was refused, and whenever a
# lease might be available.  Otherwise, twelve attempts would take more than four minutes.
$false->answer(identity => row(42), claim => row(@$refused[ 0 .. 5 ], $now + 3_600_000_000));
$server->reload;
my $refusals = $false->asked;
ok( wait_until(
		sub {
			$server->psql('postgres', $nextval);
			return $false->asked >= $refusals + 12;
		}),
	'calls that fail let a server that is refused ask again and again');

# A server asks again when a lease might be available, however often it was refused, and though no call fails.
$false->answer(identity => row(42), claim => row(@$refused[ 0 .. 5 ], $now));
$server->reload;
$refusals = $false->asked;
ok(wait_until(sub { $false->asked >= $refusals + 12 }), 'and so does the time at which a lease might be available');

# Other messages than rows.
leads_to("an answer of $_->[0]", $_->[1], claim => $_->[2])
  for [ 'nothing', $none, message('Z', 'I') ],
  [ 'an empty query', $none, message('1', '') . message('2', '') . message('n', '') . message('I', '') . message('Z', 'I') ],
  [ 'a COPY from it', $none, message('1', '') . message('2', '') . message('H', "\0\0\0") . message('d', 'x') ],
  [ 'a COPY to it', $none, message('1', '') . message('2', '') . message('G', "\0\0\0") ],
  [ 'an error without fields', $not_other_error, message('E', "\0") . message('Z', 'I') ],
  [ 'the end of the connection', qr/server closed the connection unexpectedly/, sub { return 0 } ],
  [ 'a row with fewer values than columns', $not_other_error, message('1', '') . message('2', '') . message('T', pack('n', 1) . "c\0" . pack('NnNnNn', 0, 0, 25, 0xffff, 0xffffffff, 0)) . message('D', pack('n', 0)) . message('Z', 'I') ];

# Random bytes, from the beginning or in the place of an answer.
srand 30;
for my $place (qw(start identity claim), 'claim')
{
	my $bytes = join '', map { chr int rand 256 } 1 .. 2000;

	leads_to("random bytes for $place", $not_other_error, $place => sub { FalseRegistry::give($_[0], $bytes); return 0 });
	is(leased('machine_id'), '', 'and no lease');
}

# No more than 64 kB are read: of a row of a gigabyte, of many rows, and of messages at the start.
my $peak = peak();
my $long = "\0" x 1_000_000;
leads_to("$_->[0] without an end", qr/the registry sent more than 64 kB$/, $_->[1] => $_->[2])
  for [ 'a row', 'claim', flood(message('1', '') . message('2', '') . message('T', pack('n', 1) . "c\0" . pack('NnNnNn', 0, 0, 25, 0xffff, 0xffffffff, 0)) . 'D' . pack('N', 2**30), $long) ],
  [ 'rows of 1 MB', 'claim', flood(rows(1) =~ s/C.*//sr, message('D', pack('nN', 1, length $long) . $long)) ],
  [ 'notices', 'claim', flood(message('N', "SNOTICE\0C00000\0Mnotice of a false registry\0\0"), message('N', "SNOTICE\0C00000\0Mnotice of a false registry\0\0") x 1000) ],
  [ 'notices before the first query', 'start', flood(message('R', pack('N', 0)), message('N', "SNOTICE\0C00000\0Mnotice of a false registry\0\0") x 1000) ],
  [ 'parameters', 'start', flood(message('R', pack('N', 0)), message('S', "a\0b\0") x 1000) ];

# libpq allocates the gigabyte that the row announces, and uses no part of it.  AddressSanitizer writes an eighth of that.
my $maps = '/proc/' . (registry_workers($server))[-1] . '/maps';
my $shadow = -r $maps && slurp_file($maps) =~ /libasan/ ? 2**30 / 8 / 1024 : 0;
cmp_ok(peak() - $peak - $shadow, '<', 20_000, 'and the memory of the registry worker does not grow by 20 MB');
unlike(slurp_file($server->logfile), qr/notice of a false registry/, 'notices are not in the log');

fails_with($server, $nextval, '55000', qr/could not generate a Snowflake ID while the registry is unreachable/, qr/No machine ID has been leased to this server yet/);
is(leased('machine_id, lease_until'), '|', 'none of these answers was a lease');

# A valid lease is one.  Its renewal is one of this lease.
my %first = (from => $now - 1_000_000, until => $now + 600_000_000);
$false->answer(identity => row(42), claim => lease(%first));
$server->reload;
is($server->safe_psql('postgres', "SET snowflake.max_wait = '180s'; SELECT snowflake_machine_id(snowflake_nextval())"), '5', 'a server issues IDs with a valid lease') if wait_until(sub { leased('registry_state') eq 'held' });
leads_to("a renewal of $_->[0]", $_->[1], renew => $_->[2])
  for [ 'another machine ID', qr/${invalid}column 1 is "6", and not a number from 5 to 5/, lease(%first, machine_id => 6) ],
  [ 'a lease that began earlier', qr/${invalid}column 2 is "1", and not a number from $first{from} to $first{from}/, lease(%first, from => 1) ],
  [ 'too few columns', qr/${invalid}1 rows and 1 columns/, row(5) ];
is(leased('machine_id, registry_state'), '5|unreachable', 'the lease is kept');
is($server->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval())'), '5', 'and IDs are issued');

# The renewal is refused, and another lease is granted: IDs have its machine ID.
$false->answer(identity => row(42), renew => row(@$refused), claim => lease(machine_id => 6, number => 2));
$server->reload;
ok(wait_until(sub { leased('machine_id, registry_state') eq '6|held' }), 'another lease is granted');
is($server->safe_psql('postgres', 'SELECT snowflake_machine_id(snowflake_nextval())'), '6', 'and IDs have its machine ID');

# Leases that end at once: the server does not ask more often than ten times a second.
my $short = sub { FalseRegistry::give($_[0], lease(until => int(time * 1_000_000) + 10_000, number => 3)) };
$false->answer(identity => row(42), renew => row(@$refused), claim => $short);
$server->reload;
my $asked = $false->asked;
wait_until(sub { $false->asked > $asked });
my $began = time;
$asked = $false->asked;
wait_until(sub { $false->asked >= $asked + 20 });
cmp_ok($false->asked - $asked, '<=', 10 * (time - $began) + 2, 'a server does not ask in a tight loop');

# The numbers of the server itself.
my %workers = map { $_ => 1 } registry_workers($server);
like(join(' ', keys %workers), qr/^\d+$/, 'the registry worker was not restarted');
$false->answer(identity => row(42), release => row());
$server->append_conf('postgresql.conf', 'snowflake.machine_id = 7');
$server->stop;
log_matches($server, 0, qr/could not release the lease of the machine ID: the registry sent an invalid answer/, 'a release with no column is none');
$server->start;
leads_to('a lease of another number than the one asked for', qr/${invalid}column 1 is "5", and not a number from 7 to 7/, claim => lease(number => 3));
$false->answer(identity => row(42), claim => lease(machine_id => 7, number => 3));
$server->reload;
ok(wait_until(sub { leased('machine_id, registry_state') eq '7|held' }), 'a lease of that number is granted');

$false->stop;
$server->stop;
unlike(slurp_file($server->logfile), qr/terminated by signal|exited with exit code (?![01]\b)|all server processes terminated|PANIC|TRAP/, 'no process has crashed');
done_testing();
