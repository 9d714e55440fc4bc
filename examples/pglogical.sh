#!/bin/sh
# pglogical both ways: two servers that insert into one table, with machine IDs of their own, and no rows in a circle.
#
# Packages: postgresql-N-pglogical
#
# Runs with the commands of PostgreSQL on the PATH; both servers are made in a temporary directory.
set -eu
directory=$(mktemp -d)
stop() { pg_ctl -D "$directory/$1/data" -m immediate stop > /dev/null 2>&1 || true; }
trap 'stop one; stop two; rm -rf "$directory"' EXIT
string() { echo "host=$directory/$1 user=postgres dbname=postgres"; }
query() { psql -XAtq -v ON_ERROR_STOP=1 -d "$(string "$1")" -f -; }
insert() { echo "INSERT INTO orders (item) SELECT 'of $1' FROM generate_series(1, 1000)" | query "$1"; }
has() { [ "$(echo "SELECT count(*) FROM orders" | query "$1")" = "$2" ]; }

await() {
	tries=600
	until "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || { echo "In vain: $*" >&2; tail "$directory"/*/log >&2; exit 1; }
		sleep 0.1
	done
}

# make SERVER MACHINE_ID.  Newer minor versions of PostgreSQL load only output plugins that are listed.
make() {
	mkdir -m 700 "$directory/$1"
	initdb -D "$directory/$1/data" -U postgres -A trust --no-sync > /dev/null
	cat >> "$directory/$1/data/postgresql.conf" <<-END
		listen_addresses = ''
		unix_socket_directories = '$directory/$1'
		fsync = off
		wal_level = logical
		shared_preload_libraries = 'snowflake, pglogical'
		snowflake.machine_id = $2
	END
	if postgres -D "$directory/$1/data" -C output_plugin_libraries > /dev/null 2>&1; then
		echo "output_plugin_libraries = 'pglogical_output'" >> "$directory/$1/data/postgresql.conf"
	fi
	pg_ctl -D "$directory/$1/data" -l "$directory/$1/log" -w start > /dev/null || { cat "$directory/$1/log" >&2; exit 1; }
	query "$1" > /dev/null <<-SQL
		CREATE EXTENSION snowflake;
		CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text);
		CREATE EXTENSION pglogical;
		SELECT pglogical.create_node('$1', '$(string "$1")');
		SELECT pglogical.replication_set_add_table('default', 'orders');
	SQL
}

# Rows that the other server has received from elsewhere are not sent back to it: forward_origins is
# empty.
subscribe() {
	query "$1" > /dev/null <<-SQL
		SELECT pglogical.create_subscription('from_$2', '$(string "$2")', synchronize_data => false, forward_origins => '{}');
		SELECT pglogical.wait_for_subscription_sync_complete('from_$2');
	SQL
}

make one 1
make two 2
subscribe one two
subscribe two one
insert one &
insert two
wait $!
await has one 2000
await has two 2000
for server in one two; do
	echo "SELECT '$server has ' || count(*) || ' rows ' || item || ', machine ID ' || snowflake_machine_id(id) FROM orders GROUP BY item, snowflake_machine_id(id) ORDER BY item" |
		query "$server"
	echo "SELECT md5(string_agg(id::text, ',' ORDER BY id)) FROM orders" | query "$server" > "$directory/sum.$server"
done
cmp "$directory/sum.one" "$directory/sum.two"
