#!/bin/sh
# pgbouncer in transaction mode: a client's IDs increase, though its transactions are run by several
# sessions of the server; and a setting that a client sets stays in the session, for other clients.
#
# Packages: pgbouncer
#
# Runs with the commands of PostgreSQL on the PATH, against a server that PGHOST and so on name, in
# a database with the extension.
set -eu
PATH=$PATH:/usr/sbin
directory=$(mktemp -d)
pooler=
trap '[ -z "$pooler" ] || kill "$pooler"; wait; rm -rf "$directory"' EXIT

psql -Xqc "CREATE ROLE pooled LOGIN"
cat > "$directory/pgbouncer.ini" <<END
[databases]
one = host=$PGHOST dbname=$PGDATABASE user=pooled pool_size=1
four = host=$PGHOST dbname=$PGDATABASE user=pooled pool_size=4

[pgbouncer]
pool_mode = transaction
listen_addr =
unix_socket_dir = $directory
auth_type = any
admin_users = admin
logfile = $directory/log
END
pgbouncer -q "$directory/pgbouncer.ini" &
pooler=$!
until [ -S "$directory/.s.PGSQL.6432" ]; do
	kill -0 "$pooler"
	sleep 0.05
done
client() { psql -XAtq -d "host=$directory port=6432 user=client dbname=$1" -f -; }

# SET outlasts the client, and applies to the next one.
echo "SET snowflake.max_wait = '1 min'" | client one
[ "$(echo "SHOW snowflake.max_wait" | client one)" = 1min ]
echo "RESET snowflake.max_wait" | client one
echo "SET snowflake.max_wait holds for the client that has the session next."

# SET LOCAL ends with the transaction.
echo "BEGIN; SET LOCAL snowflake.max_wait = '1 min'; SELECT snowflake_id(); COMMIT" | client one > "$directory/id"
[ "$(echo "SHOW snowflake.max_wait" | client one)" = 5s ]
echo "SET LOCAL ends with the transaction."

# A setting of the role applies to all of its sessions, from the next connection to the server on.
psql -Xqc "ALTER ROLE pooled SET snowflake.max_wait = '2s'"
echo "RECONNECT" | psql -XAtq -d "host=$directory port=6432 user=admin dbname=pgbouncer"
[ "$(echo "SHOW snowflake.max_wait" | client one)" = 2s ]
echo "ALTER ROLE sets it for all sessions of the role."

# Eight clients share four sessions, a transaction for each ID.
ids='{ for (i = 0; i < 2000; i++) print "SELECT snowflake_id();" }'
clients=
for number in 1 2 3 4 5 6 7 8; do
	awk "BEGIN $ids" | client four > "$directory/ids.$number" &
	clients="$clients $!"
done
for one in $clients; do
	wait "$one"
done
[ "$(cat "$directory"/ids.* | sort -u | wc -l)" = 16000 ]
psql -XAtq <<END
CREATE TABLE pooled_ids (client int, number int GENERATED ALWAYS AS IDENTITY, id bigint);
$(for number in 1 2 3 4 5 6 7 8; do
	echo "COPY pooled_ids (id) FROM '$directory/ids.$number'; UPDATE pooled_ids SET client = $number WHERE client IS NULL;"
done)
END
below=$(psql -XAtqc "SELECT count(*) FROM (SELECT id, lag(id) OVER (PARTITION BY client ORDER BY number) AS before FROM pooled_ids) AS ids WHERE id < before")
echo "16000 IDs, none of them issued twice; $below are below the one before of the same client."
[ "$below" = 0 ]
