#!/bin/sh
# pg_repack: a table is rewritten while rows are inserted into it; keys, their default and their uniqueness stay.
#
# Packages: postgresql-N-repack
#
# Runs with the commands of PostgreSQL on the PATH, against a server that PGHOST and so on name, in
# a database with the extension.
set -eu
directory=$(mktemp -d)
trap 'touch "$directory/stop"; wait; rm -rf "$directory"' EXIT
query() { psql -XAtqc "$1"; }

query "CREATE EXTENSION pg_repack"
query "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text)"
query "INSERT INTO orders (item) SELECT 'a lamp' FROM generate_series(1, 20000)"
query "DELETE FROM orders WHERE id % 2 = 0"
before=$(query "SELECT pg_relation_filenode('orders')")
query "SELECT id FROM orders" > "$directory/ids"

# Rows are inserted until the end; their IDs are compared with the IDs in the table.
touch "$directory/inserted"
while [ ! -e "$directory/stop" ]; do
	query "INSERT INTO orders (item) SELECT 'a chair' FROM generate_series(1, 10) RETURNING id" >> "$directory/inserted"
done &
until [ -s "$directory/inserted" ]; do
	sleep 0.01
done
pg_repack --table=orders "$PGDATABASE" > "$directory/log" 2>&1 || { cat "$directory/log" >&2; exit 1; }
touch "$directory/stop"
wait

[ "$(query "SELECT pg_relation_filenode('orders')")" != "$before" ]
query "SELECT id FROM orders" | sort > "$directory/after"
sort "$directory/ids" "$directory/inserted" | cmp - "$directory/after"
[ -z "$(uniq -d "$directory/after")" ]
echo "$(wc -l < "$directory/after") rows, $(wc -l < "$directory/inserted") of them inserted while pg_repack ran."
query "INSERT INTO orders (item) VALUES ('the next one') RETURNING snowflake_machine_id(id)" > /dev/null
