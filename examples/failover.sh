#!/bin/sh
# Failover to a streaming standby, while the old primary still runs: both issue IDs, with
# different machine IDs.  Nothing has to be done at the promotion, such as by a hook of Patroni or repmgr: the standby
# has the configuration of its primary, and the server leases a machine ID when it accepts writes.
#
# Runs with the commands of PostgreSQL on the PATH, against a primary that PGHOST and so on
# name, in a database with the extension; a standby is made in a temporary directory.  The
# primary has in postgresql.conf:
#     shared_preload_libraries = 'snowflake'
#     snowflake.registry = 'host=... dbname=registry user=...'
set -eu
directory=$(mktemp -d)
trap 'pg_ctl -D "$directory/data" -m immediate stop > /dev/null 2>&1; rm -rf "$directory"' EXIT
primary() { psql -XAtqc "$1"; }
standby() { psql -XAtqc "$1" -d "host=$directory dbname=$PGDATABASE user=$PGUSER"; }
machine_id="SELECT snowflake_machine_id(snowflake_id())"

primary "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text)"
primary "INSERT INTO orders (item) SELECT 'a lamp' FROM generate_series(1, 1000)"

# A standby: a base backup, and the address of the primary.
pg_basebackup -D "$directory/data" --checkpoint=fast --write-recovery-conf --no-sync
echo "unix_socket_directories = '$directory'" >> "$directory/data/postgresql.conf"
pg_ctl -D "$directory/data" -l "$directory/log" -w start > /dev/null

# The standby is promoted.  The old primary is not notified, and continues to run.
pg_ctl -D "$directory/data" -w promote > /dev/null
standby "INSERT INTO orders (item) SELECT 'of the new primary' FROM generate_series(1, 1000)"
primary "INSERT INTO orders (item) SELECT 'of the old primary' FROM generate_series(1, 1000)"
echo "The old primary has machine ID $(primary "$machine_id"), the new one $(standby "$machine_id")."

# No ID is issued twice.
ids="SELECT id FROM orders WHERE item LIKE 'of %'"
{ primary "$ids"; standby "$ids"; } | sort > "$directory/ids"
[ "$(wc -l < "$directory/ids")" = 2000 ]
[ -z "$(uniq -d "$directory/ids")" ]
echo "2000 IDs of both servers, none of them issued twice."
