#!/bin/sh
# TimescaleDB: a hypertable by ranges of the ID, one chunk for each day.  Queries by time read only
# the chunks of that time, and drop_chunks() removes old ones.
#
# Packages: postgresql-N-timescaledb
#
# Runs with the commands of PostgreSQL on the PATH.  The server is its own, since TimescaleDB is preloaded.
set -eu
directory=$(mktemp -d)
export PGHOST="$directory" PGPORT=5432 PGDATABASE=postgres
trap 'pg_ctl -D "$directory/data" -m immediate stop > /dev/null 2>&1 || true; rm -rf "$directory"' EXIT
query() { psql -XAtqc "$1"; }

initdb -D "$directory/data" -U postgres -A trust --no-sync > "$directory/initdb.log"
cat >> "$directory/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$directory'
shared_preload_libraries = 'timescaledb, snowflake'
timescaledb.telemetry_level = off
fsync = off
snowflake.machine_id = 1
END
pg_ctl -D "$directory/data" -l "$directory/log" -w start > /dev/null || { cat "$directory/log" >&2; exit 1; }
export PGUSER=postgres

psql -Xq -v ON_ERROR_STOP=1 > "$directory/out" 2>&1 <<'END' || { cat "$directory/out" >&2; exit 1; }
CREATE EXTENSION timescaledb;
CREATE EXTENSION snowflake;
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_id(), name text);
SELECT create_hypertable('events', by_range('id', snowflake_boundary('2026-11-22') - snowflake_boundary('2026-11-21')));
-- what "now" is among the IDs, for policies
CREATE FUNCTION snowflake_now() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT snowflake_boundary(now())';
SELECT set_integer_now_func('events', 'snowflake_now');
-- one row an hour of the last ten days, and one of now
INSERT INTO events SELECT snowflake_boundary(now() - n * interval '1 hour'), 'past' FROM generate_series(1, 240) n;
INSERT INTO events (name) VALUES ('now');
END

chunks=$(query "SELECT count(*) FROM show_chunks('events')")
[ "$chunks" -ge 10 ] && [ "$chunks" -le 12 ]
day="snowflake_timestamp(id) >= now() - interval '24 hours'"
read=$(query "EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM events WHERE $day" | grep -c 'Scan.* on _hyper' || true)
[ "$read" -ge 1 ] && [ "$read" -le 2 ]
[ "$(query "SELECT count(*) FROM events WHERE $day")" = 24 ]
echo "$chunks chunks, of which a query for the last day reads $read."

dropped=$(query "SELECT count(*) FROM drop_chunks('events', older_than => snowflake_boundary(now() - interval '7 days'))")
[ "$dropped" -ge 2 ]
[ "$(query "SELECT min(snowflake_timestamp(id)) > now() - interval '9 days' FROM events")" = t ]
[ "$(query "SELECT snowflake_machine_id(max(id)) FROM events")" = 1 ]
echo "drop_chunks() has removed the chunks of which all rows are older than seven days."
