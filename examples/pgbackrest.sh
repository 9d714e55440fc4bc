#!/bin/sh
# pgBackRest: a server is restored to a point in time, in its place and with its machine ID; and a copy of
# it beside the server, to look at the backup, with a machine ID of its own.  All IDs are compared, those of
# the rows that the restored server no longer has as well.
#
# Packages: pgbackrest
#
# Runs with the commands of PostgreSQL on the PATH; the server is made in a temporary directory.
set -eu
directory=$(mktemp -d)
server=$directory/server copy=$directory/copy
stop() { pg_ctl -D "$1/data" -m "$2" stop > /dev/null 2>&1 || true; }
trap 'stop "$server" immediate; stop "$copy" immediate; rm -rf "$directory"' EXIT
start() { pg_ctl -D "$1/data" -l "$1/log" -o "-k $1" -w start > /dev/null || { tail "$1/log" >&2; exit 1; }; }
query() { psql -XAtqc "$2" -d "host=$1 user=postgres dbname=postgres"; }
pgbackrest() { command pgbackrest --config="$directory/pgbackrest.conf" --stanza=shop "$@"; }

# Rows that are inserted, and their IDs to a file, which is not restored.
insert() { query "$1" "INSERT INTO orders (item) SELECT '$2' FROM generate_series(1, 1000) RETURNING id" >> "$directory/ids"; }
count() { query "$1" "SELECT count(*) FROM orders"; }
highest() { sort -n "$directory/ids" | tail -n 1; }

# The end of a recovery.
await_end() {
	until [ "$(query "$1" "SELECT pg_is_in_recovery()")" = f ]; do
		sleep 0.1
	done
}

mkdir -m 700 "$server" "$copy"
cat > "$directory/pgbackrest.conf" <<END
[global]
repo1-path=$directory/repository
repo1-retention-full=2
log-path=$directory
lock-path=$directory/lock
log-level-console=warn
start-fast=y

[shop]
pg1-path=$server/data
pg1-socket-path=$server
pg1-user=postgres
END
initdb -D "$server/data" -U postgres -A trust --no-sync > /dev/null
cat >> "$server/data/postgresql.conf" <<END
listen_addresses = ''
shared_preload_libraries = 'snowflake'
fsync = off
snowflake.machine_id = 1
archive_mode = on
archive_command = 'pgbackrest --config="$directory/pgbackrest.conf" --stanza=shop archive-push %p'
END
start "$server"
query "$server" "CREATE EXTENSION snowflake"
query "$server" "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_id(), item text)"
pgbackrest stanza-create
insert "$server" 'before the backup'
pgbackrest --type=full backup
set=$(pgbackrest info | sed -n 's/ *full backup: //p')
insert "$server" 'after the backup'
target=$(query "$server" "SELECT now()")
insert "$server" 'after the point in time'
pgbackrest check

# pgBackRest finds the backup for a time by itself, unless the backup ended in the same second: hence "set".

# A copy beside the server, which continues.  The machine ID is set before the copy is started.
pgbackrest --pg1-path="$copy/data" --set="$set" --type=time --target="$target" --target-action=promote --archive-mode=off restore
echo "snowflake.machine_id = 1000" >> "$copy/data/postgresql.auto.conf"
start "$copy"
await_end "$copy"
[ "$(count "$copy")" = 2000 ]
insert "$copy" 'of the copy' &
insert "$server" 'beside the copy'
wait $!
stop "$copy" fast

# The server itself, restored in its place, with its machine ID.
stop "$server" fast
highest=$(highest)
pgbackrest --delta --set="$set" --type=time --target="$target" --target-action=promote restore
start "$server"
await_end "$server"
[ "$(count "$server")" = 2000 ]
insert "$server" 'after the restore'
lowest=$(query "$server" "SELECT min(id) FROM orders WHERE item = 'after the restore'")
[ "$lowest" -gt "$highest" ]
echo "Restored to $target, the server continues with ID $lowest; the highest one before was $highest."

[ "$(wc -l < "$directory/ids")" = 6000 ]
[ -z "$(sort "$directory/ids" | uniq -d)" ]
echo "6000 IDs of the server before and after, and of a copy beside it, none of them issued twice."
