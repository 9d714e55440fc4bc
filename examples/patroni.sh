#!/bin/sh
# Patroni: three servers, each with a machine ID of its own in its local configuration, under a
# load on all of them.  A switchover; a crash of the primary and its agent; and a pause of both,
# after which the old primary issues IDs beside the new one, until its agent runs again and rewinds
# it.  All IDs that any server has issued are compared, including the IDs of rows that a failover loses.
#
# Not in script/test: it takes a minute.
#
# Packages: patroni etcd-server python3-etcd python3-psycopg2
#
# Runs with the commands of PostgreSQL on the PATH; all servers are made in a temporary directory.
set -eu
directory=$(mktemp -d)
database=${PGDATABASE:-postgres}
nodes="node1 node2 node3"

# Ports that are free: two for etcd, two for each node.
# shellcheck disable=SC2016
free_ports='push @sockets, IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") for 1 .. 8; print join " ", map { $_->sockport } @sockets'
# shellcheck disable=SC2046
set -- $(perl -MIO::Socket::INET -e "$free_ports")
etcd=127.0.0.1:$1 peer=127.0.0.1:$2
# shellcheck disable=SC2034
sql_node1=127.0.0.1:$3 sql_node2=127.0.0.1:$4 sql_node3=127.0.0.1:$5
# shellcheck disable=SC2034
api_node1=127.0.0.1:$6 api_node2=127.0.0.1:$7 api_node3=127.0.0.1:$8
address() { eval "echo \$$1_$2"; }

# The processes of a node: its agent; the postmaster and its children.
agent() { cat "$directory/$1/agent"; }
server() {
	postmaster=$(head -n 1 "$directory/$1/data/postmaster.pid")
	echo "$postmaster $(pgrep -P "$postmaster" | paste -sd ' ')"
}

# A process of the server can end before the signal is sent.
signal() { kill "$@" 2> /dev/null || true; }

stop_all() {
	status=$?
	set +e
	[ "$status" = 0 ] || tail -n 20 "$directory"/*/log "$directory"/*/errors >&2
	touch "$directory/stop"
	for node in $nodes; do
		# shellcheck disable=SC2046
		kill -CONT $(server "$node")
		kill -KILL "$(agent "$node")"
		pg_ctl -D "$directory/$node/data" -m immediate stop
	done > "$directory/end" 2>&1
	kill "$(cat "$directory/etcd/pid")"
	wait
	rm -rf "$directory"
	exit "$status"
}
trap stop_all EXIT
trap 'exit 1' INT TERM

# Await COMMAND...: until it succeeds, for two minutes.
await() {
	tries=1200
	until "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || { echo "In vain: $*" >&2; exit 1; }
		sleep 0.1
	done
}

query() { psql -XAtq -d "host=$directory/$1 port=$(address sql "$1" | cut -d : -f 2) user=postgres dbname=$2 connect_timeout=2"; }
get() { perl -MHTTP::Tiny -e 'exit !HTTP::Tiny->new(timeout => 1)->get(shift)->{success}' "http://$1"; }

# The agent's configuration.  "bootstrap" is for all nodes, and kept in etcd; "postgresql" is local,
# and the machine ID belongs here.
configure() {
	node=$1 machine_id=$2
	mkdir -m 700 "$directory/$node"
	cat > "$directory/$node/patroni.yml" <<-YAML
		scope: orders
		name: $node
		restapi: { listen: '$(address api "$node")', connect_address: '$(address api "$node")' }
		etcd3: { host: '$etcd' }
		bootstrap:
		  dcs:
		    ttl: 8
		    loop_wait: 1
		    retry_timeout: 3
		    master_start_timeout: 0
		    postgresql:
		      use_pg_rewind: true
		      parameters:
		        shared_preload_libraries: snowflake
		        fsync: 'off'
		  initdb: [ { auth: trust }, no-sync ]
		postgresql:
		  listen: $(address sql "$node")
		  connect_address: $(address sql "$node")
		  data_dir: $directory/$node/data
		  bin_dir: $(dirname "$(command -v postgres)")
		  basebackup: [ { checkpoint: fast }, no-sync ]
		  use_unix_socket: true
		  authentication: { superuser: { username: postgres }, replication: { username: postgres } }
		  pg_hba: [ local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust ]
		  parameters:
		    unix_socket_directories: $directory/$node
		    snowflake.machine_id: $machine_id
	YAML
}

start() {
	patroni "$directory/$1/patroni.yml" >> "$directory/$1/log" 2>&1 &
	echo $! > "$directory/$1/agent"
}

# The node that is the primary, and has the leader's key; fails if it is one that is not wanted.
is_primary() { get "$(address api "$1")/primary"; }
find_primary() {
	for node in $nodes; do
		if [ "$node" != "${1:-}" ] && is_primary "$node"; then
			primary=$node
			return
		fi
	done
	return 1
}

# Both others are standbys that receive WAL.
has_standbys() {
	[ "$(echo "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'" | query "$primary" postgres)" = 2 ]
}

# A client of a node, to the end: it inserts if the node is a primary, and notes the time of each row.
load() {
	node=$1 table=$2
	while [ ! -e "$directory/stop" ]; do
		{
			echo 'SET log_min_messages = fatal;'
			while [ ! -e "$directory/stop" ]; do
				echo 'DO $$ BEGIN PERFORM pg_sleep(CASE WHEN pg_is_in_recovery() THEN 0.02 ELSE 0.005 END); END $$;'
				echo "INSERT INTO $table (item) SELECT 'a lamp' FROM generate_series(1, 20) RETURNING id, extract(epoch FROM clock_timestamp());"
			done
		} | query "$node" "$database" >> "$directory/$node/$table" 2>> "$directory/$node/errors" || sleep 0.1
	done 2> /dev/null
}

# first NODE TABLE TIME: the time of the first row after TIME, in seconds from then; fails if there is none.
first() { awk -F '|' -v since="$3" '$2 > since { printf "%.2f\n", $2 - since; found = 1; exit } END { exit !found }' "$directory/$1/$2"; }
now() { date +%s.%N; }

# Another node is primary after an event that began at TIME; report when it took rows.
report() {
	await find_primary "$old"
	for table in plain orders; do
		await first "$primary" "$table" "$since" > "$directory/first_$table"
	done
	printf '%-10s %s to %s: first insert after %s s, first ID after %s s\n' "$1" "$old" "$primary" \
		"$(cat "$directory/first_plain")" "$(cat "$directory/first_orders")"
}
begin() { old=$primary since=$(now); }

# Fails until the agents have noticed that the standbys are near enough.
switch_over() {
	begin
	patronictl -c "$directory/$primary/patroni.yml" switchover --force > "$directory/switchover" 2>&1 && grep -q Successfully "$directory/switchover"
}

mkdir "$directory/etcd"
etcd --data-dir "$directory/etcd/data" --listen-client-urls "http://$etcd" --advertise-client-urls "http://$etcd" \
	--listen-peer-urls "http://$peer" --initial-advertise-peer-urls "http://$peer" --initial-cluster "default=http://$peer" \
	> "$directory/etcd/log" 2>&1 &
echo $! > "$directory/etcd/pid"
await get "$etcd/health"

configure node1 1
configure node2 2
configure node3 3
start node1
await find_primary
start node2
start node3
[ "$database" = postgres ] || echo "CREATE DATABASE \"$database\"" | query "$primary" postgres
query "$primary" "$database" <<-SQL
	CREATE EXTENSION snowflake;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text);
	CREATE TABLE plain (id bigserial PRIMARY KEY, item text);
SQL
await has_standbys
for node in $nodes; do
	touch "$directory/$node/orders" "$directory/$node/plain"
	load "$node" orders &
	load "$node" orders &
	load "$node" plain &
done
await first "$primary" orders 0 > /dev/null

await switch_over
report switchover
await has_standbys

begin
# shellcheck disable=SC2046
signal -KILL "$(agent "$primary")" $(server "$primary")
report crash
start "$old"
await has_standbys

begin
# shellcheck disable=SC2046
signal -STOP "$(agent "$primary")" $(server "$primary")
report pause
since=$(now)
# shellcheck disable=SC2046
signal -CONT $(server "$old")
await first "$old" orders "$since" > /dev/null
# A new agent: the old one would continue with the cluster that it has cached.  Patroni 3.0.2 with etcd3 can then take the leader's
# key back, and the rows of the new primary are lost.
kill -KILL "$(agent "$old")"
start "$old"
await has_standbys
await grep -q 'running pg_rewind' "$directory/$old/log"
echo "$old issued $(awk -F '|' -v since="$since" '$2 > since' "$directory/$old/orders" | wc -l) IDs beside $primary, and was rewound."

touch "$directory/stop"
cat "$directory"/node*/orders | cut -d '|' -f 1 | sort > "$directory/ids"
machine_ids=$(echo "SELECT string_agg(DISTINCT snowflake_machine_id(id)::text, ', ') FROM orders" | query "$primary" "$database")
echo "$(wc -l < "$directory/ids") IDs, machine IDs $machine_ids."
[ -z "$(uniq -d "$directory/ids")" ]
echo "None of them was issued twice."
