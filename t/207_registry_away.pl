# A registry that is away or does not answer: a stop of a server does not wait for it, another
# host is asked, and failing calls make the server ask again soon.
use FindBin;
use lib "$FindBin::RealBin/lib";
use Fleet;
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use SnowflakeTest;

my $nextval = 'SELECT snowflake_nextval()';
my $fleet = Fleet->new;
my $registry = $fleet->registry;
$registry->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'");
$registry->restart;
$registry->safe_psql('postgres', "SELECT snowflake_registry.configure(max_lease => '1 day')");

# A host that is not a server: a listener on a socket in a directory of its own.
sub listen_at
{
	my ($directory) = @_;

	return IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => "$directory/.s.PGSQL." . $registry->port, Listen => 100)
	  // die "cannot listen at $directory: $!";
}

# The line of configuration of a list of hosts.
sub hosts
{
	my ($options, @hosts) = @_;

	return "snowflake.registry = 'host=" . join(',', @hosts) . ' port=' . $registry->port . " dbname=postgres $options'";
}

# A host that accepts connections and does not answer is given up after connect_timeout, and the
# next one is asked.
my $silent = PostgreSQL::Test::Utils::tempdir_short();
my $listener = listen_at($silent);
my $second = $fleet->server('second', lines => [ hosts('connect_timeout=1', $silent, $registry->host) ]);
$fleet->begins_to_issue($second, 'a second host is asked if the first one does not answer');
$second->stop;
append_to_file("$silent/services", "[registry]\nhost=$silent," . $registry->host . "\nport=" . $registry->port . "\ndbname=postgres\nconnect_timeout=1\n");
{
	local $ENV{PGSERVICEFILE} = "$silent/services";

	$second->append_conf('postgresql.conf', "snowflake.registry = 'service=registry'");
	$second->start;
}
$fleet->begins_to_issue($second, 'also if a service names the hosts');
$second->stop;
my $third = $fleet->server('third', lines => [ hosts('connect_timeout=1', "$silent/missing", $silent) ]);
$fleet->wait_for_state($third, 'unreachable');
like($fleet->leased($third, 'last_error'), qr/^connection to server on socket .*missing.* failed: .*; .*the registry did not answer in time$/,
	'the reason of each host is shown');
$third->stop;
for ([ 'connect_timeout=soon', 'invalid integer value "soon" for connection option "connect_timeout"' ], [ 'host=no.invalid', 'could not translate host name "no\.invalid" to address: [^;]+' ])
{
	$third->append_conf('postgresql.conf', hosts($_->[0], "$silent/missing"));
	$third->start;
	$fleet->wait_for_state($third, 'unreachable');
	like($fleet->leased($third, 'last_error'), qr/^$_->[1]$/, "$_->[0] has an error of its own");
	$third->stop;
}

# By TCP; an item that is missing in the list of ports is the default port.  Notices are ignored.
my $port = $registry->port;
my $by_tcp = $fleet->server('by_tcp',
	lines => [ "snowflake.registry = 'host=$silent/missing,127.0.0.1 port=,$port dbname=postgres options=''-c client_min_messages=log -c log_statement=all'''" ]);
$fleet->begins_to_issue($by_tcp, 'a registry is reached by TCP');
$by_tcp->stop;
unlike(slurp_file($by_tcp->logfile), qr/LOG: .*snowflake_registry\./, 'its notices are not in the log');
$third->append_conf('postgresql.conf', "snowflake.registry = 'host=$silent/missing,$silent port=,$port dbname=postgres connect_timeout=1'");
$third->start;
$fleet->wait_for_state($third, 'unreachable');
like($third->safe_psql('postgres', 'SELECT last_error FROM pg_stat_snowflake LIMIT 1'), qr{missing/\.s\.PGSQL\.\d+" failed: .*; .*$silent/\.s\.PGSQL\.$port" failed: }, 'each host has its port');
$third->stop;

# By a service, and by one that does not exist.
{
	local $ENV{PGSERVICEFILE} = "$scratch/services";

	append_to_file($ENV{PGSERVICEFILE}, "[registry]\nhost=" . $registry->host . "\nport=$port\ndbname=postgres\n");
	my $by_service = $fleet->server('by_service', lines => [ q{snowflake.registry = 'service=registry'} ]);
	$fleet->begins_to_issue($by_service, 'the address of the registry is that of a service');
	$by_service->append_conf('postgresql.conf', q{snowflake.registry = 'service=missing'});
	$by_service->restart;
	$fleet->wait_for_state($by_service, 'unreachable');
	like($fleet->leased($by_service, 'last_error'), qr/definition of service "missing" not found/, 'a service that does not exist is reported');
	$by_service->stop;
}

# A registry that does not answer when the server releases its lease: the server stops nevertheless.
my $holder = $fleet->server('holder', lines => [ 'snowflake.registry_lease = 600', hosts('connect_timeout=600', $registry->host) ]);
$fleet->begins_to_issue($holder, 'a server that holds a lease issues IDs');
my $machine_id = $fleet->machine_id($holder);
pause_postmaster($registry);
my $log = -s $holder->logfile;
$holder->stop;
pass('a server stops while the registry hangs');
log_matches($holder, $log, qr/could not release the lease of the machine ID: .*\n(?:.*\n)*?.*DETAIL:  Other servers can lease the machine ID when/, 'and says that its lease runs out');
$log = -s $holder->logfile;
$holder->start;
wait_for_log($holder, $log, qr/DEBUG:  starting background worker process "snowflake registry worker"/, 'it is started again, and a registry worker with it');
$holder->stop;
pass('also while the registry worker waits for a connection');
resume_postmaster($registry);
is($registry->safe_psql('postgres', "SELECT state FROM snowflake_registry.machines WHERE machine_id = $machine_id"), 'held', 'the lease runs out by itself');

# A server that is stopped while it requests a renewal does not sleep until its next request (ten
# seconds at most, which would be more than a stop may take here).
my $before = PostgreSQL::Test::Utils::tempdir_short();
my $renewing = $fleet->server('renewing', lines => [ 'snowflake.registry_lease = 600', hosts('connect_timeout=600', $before, $registry->host) ]);
$fleet->begins_to_issue($renewing, 'a server whose first host does not exist issues IDs');
my $door = listen_at($before);
$renewing->reload;
my $asked = $door->accept;
{
	local $ENV{PGCTLTIMEOUT} = 8;
	ok($renewing->stop('fast', fail_ok => 1), 'a server stops that waits for an answer to a renewal');
}
close $_ for $asked, $door;

# A lease that ends while the request of its renewal hangs is not shown as held.  The errors of calls
# are logged as all errors are.
my $hanging = PostgreSQL::Test::Utils::tempdir_short();
my $hung = $fleet->server('hung', lines => [ hosts('connect_timeout=600', $hanging, $registry->host) ]);
$fleet->begins_to_issue($hung, 'a server with a short lease issues IDs');
$door = listen_at($hanging);
$asked = $door->accept;
$hung->poll_query_until('postgres', 'SELECT lease_until < clock_timestamp() FROM pg_stat_snowflake LIMIT 1');
is($fleet->leased($hung, 'registry_state, last_error'), 'expired|', 'a lease that has ended is not held');
$log = -s $hung->logfile;
fails_with($hung, "SET snowflake.max_wait = '10ms'; $nextval", '55000', qr/could not generate a Snowflake ID after the end of the lease/,
	qr/DETAIL:  The lease of machine ID \d+ ended at 20\d\d-.* and was not renewed\./, qr/HINT:  Check "snowflake\.registry", and the network and the name service/);
my (undef, undef, $failures) = $hung->psql('postgres', "SET snowflake.max_wait = 0;\n" . "$nextval;\n" x 200, on_error_stop => 0);
is(scalar(() = $failures =~ /ERROR:/g), 200, 'each of 200 calls has an error');
my $logged = () = substr(slurp_file($hung->logfile), $log) =~ /ERROR:  could not generate/g;
is($logged, 201, 'which the log has');
close $_ for $asked, $door;
$fleet->begins_to_issue($hung, 'and when the request has failed, the next host is asked');
$hung->stop;

# A table of the registry is locked, as by VACUUM FULL that waits for a long reader.  Members give up
# their calls, and so do their backends: at most two of each member exist at the same time.
my @members = map { $fleet->server($_, lines => [ hosts('', $registry->host) ]) } 'one', 'other';
$fleet->begins_to_issue($_, $_->name . ' issues IDs before the lock') for @members;
my $locking = $registry->background_psql('postgres');
$locking->query_safe('BEGIN; LOCK snowflake_registry.config');
my (%waited, $most);
ok(
	wait_until(
		sub {
			my @waiting = split /\n/, $registry->safe_psql('postgres',
				"SELECT pid FROM pg_stat_activity WHERE application_name = 'snowflake registry worker' AND wait_event_type = 'Lock'");
			$_->psql('postgres', $nextval) for @members;
			$waited{$_} = 1 for @waiting;
			$most = @waiting if @waiting > ($most // 0);
			return keys %waited >= 8;
		}),
	'members ask a registry that is locked again and again');
cmp_ok($most, '<=', 4, "and hold $most connections at the same time at most");
$locking->quit;
$fleet->begins_to_issue($_, $_->name . ' issues IDs after the lock') for @members;
$_->stop for @members;

# A connection that is cut in the middle of a call, before its last message (Sync), and whose other end
# the registry does not see: the call has been committed, and other servers' calls do not wait.
my $cutter = PostgreSQL::Test::Utils::tempdir_short();
my $entrance = listen_at($cutter);
my $address = $registry->host . '/.s.PGSQL.' . $registry->port;
my $proxy = fork() // die "cannot fork: $!";
END { kill 'KILL', $proxy if $proxy; }
if (!$proxy)
{
	my @kept;

	while (my $client = $entrance->accept)
	{
		my $server = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $address) or next;
		my $sockets = IO::Select->new($client, $server);
		my $open = 1;

		push @kept, $server;
		while ($open)
		{
			for my $from ($sockets->can_read)
			{
				$open = 0, last unless sysread($from, my $bytes, 65536);
				my $cut = $from == $client && $bytes =~ /snowflake_registry\.claim\(/ && $bytes =~ s/S\x00\x00\x00\x04\z//;
				syswrite($from == $client ? $server : $client, $bytes);
				$open = 0 if $cut;
			}
		}
		close $client;
	}
	POSIX::_exit(0);
}
close $entrance;
my $severed = $fleet->server('severed', lines => [ hosts('', $cutter) ]);
my $cut_sessions = "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%snowflake_registry.claim(%' AND pid <> pg_backend_pid()";
ok($registry->poll_query_until('postgres', $cut_sessions), 'a claim is cut before its last message');
$severed->stop('immediate');    # each of its attempts would leave another session
my $next = $fleet->server('next', lines => [ hosts('', $registry->host) ]);
$fleet->begins_to_issue($next, 'another server is granted a lease');
is($registry->safe_psql('postgres', $cut_sessions), 't', 'while the session of the claim that was cut still exists');
kill 'KILL', $proxy;
waitpid $proxy, 0;
undef $proxy;
$next->stop;

# Failing calls make the server ask again once a second, even if it has not reached the registry for
# a long time.  Otherwise, twelve attempts would take more than four minutes.
my $away = PostgreSQL::Test::Utils::tempdir_short();
my $gate = listen_at($away);
$gate->blocking(0);
my $began = time;
my $attempts = 0;
my $asking = $fleet->server('asking', lines => [ 'snowflake.registry_lease = 86400', hosts('', $away, $registry->host) ]);
$registry->stop;
$asking->restart;
my $came = wait_until(
	sub {
		$asking->psql('postgres', $nextval);
		while (my $client = $gate->accept) { $attempts++; close $client; }
		return $attempts >= 12;
	});
ok($came, 'calls that fail let the server ask the registry again and again');
cmp_ok($attempts, '<=', time - $began + 12, 'but not each of them');
$registry->start;
$fleet->begins_to_issue($asking, 'it issues IDs when the registry is back');

# The times of attempts are random.  A renewal is due at half of the lease at the latest (1800 s), and
# not before three eighths of it; a reload asks at once.
my $random = $fleet->server('random', lines => [ 'snowflake.registry_lease = 3600' ]);
my $from = 0;

# The times in ms that the server has logged since $from, once there are this many.
sub due
{
	my ($count) = @_;
	my @due;

	wait_until(
		sub {
			@due = substr(slurp_file($random->logfile), $from) =~ /the next request of a lease is due in (-?\d+) ms/g;
			return @due >= $count;
		}) or die 'the server does not ask';
	return @due;
}

for my $asked (1 .. 6)
{
	due($asked);
	$random->reload if $asked < 6;
}
my @renewals = sort { $a <=> $b } due(6);
cmp_ok($renewals[-1], '<=', 1_800_000, "renewals are due at half of the lease at the latest: @renewals");
cmp_ok($renewals[0], '>', 1_300_000, 'and not long before');
cmp_ok($renewals[-1] - $renewals[0], '>', 1_000, 'at random times');

# Retries wait for half of the delay to all of it, and the delay doubles.
$from = -s $random->logfile;
$registry->stop;
$random->reload;
my @retries = due(4);
my @shares = map { $retries[$_] / (250 * 2**$_) } 0 .. 3;
is(scalar(grep { $_ > 1 } @shares), 0, "retries are due when the delay is over at the latest: @retries");
cmp_ok((sort { $a <=> $b } @shares)[0], '<', 0.99, 'at random times');
$registry->start;
$random->reload;
$fleet->wait_for_state($random, 'held');

$fleet->check(1000, 'all servers');
done_testing();
