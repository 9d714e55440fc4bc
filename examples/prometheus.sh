#!/bin/sh
# Prometheus: postgres_exporter gives it the statistics of the generators, by the queries of
# monitoring/queries.yaml; monitoring/alerts.yaml has alerts on them.
#
# Packages: prometheus-postgres-exporter
#
# Runs where PGHOST and so on name a server, in a database with the extension.
set -eu
queries=$(cd "$(dirname "$0")/../monitoring" && pwd)/queries.yaml
log=$(mktemp)
port=$((20000 + $$ % 10000))
trap 'kill "$exporter" 2> /dev/null; rm -f "$log"' EXIT

psql -Xqc "CREATE EXTENSION snowflake_registry"
psql -Xqc "SELECT snowflake_registry.declare_first()" > /dev/null
psql -Xqc "SELECT snowflake_registry.claim(gen_random_uuid(), 'twitter', 10, NULL, '1 minute', clock_timestamp(), 'example', 0)" > /dev/null
psql -Xqc "SELECT count(snowflake_nextval()) FROM generate_series(1, 1000)" > /dev/null

DATA_SOURCE_NAME="host=$PGHOST user=$PGUSER dbname=$PGDATABASE sslmode=disable" \
	prometheus-postgres-exporter --extend.query-path="$queries" --web.listen-address=127.0.0.1:$port \
	--disable-default-metrics --disable-settings-metrics > "$log" 2>&1 &
exporter=$!

# What Prometheus gets.
scrape() { perl -MHTTP::Tiny -e 'my $r = HTTP::Tiny->new->get(shift); print $r->{content}; exit !$r->{success}' "http://127.0.0.1:$port/metrics"; }
until metrics=$(scrape); do
	kill -0 "$exporter"
done
printf '%s\n' "$metrics" | grep '^snowflake'

# Each metric of the queries is there, with its labels.
for metric in $(sed -n 's/^    - \(.*\): { usage: [CG].*/\1/p' "$queries"); do
	printf '%s\n' "$metrics" | grep -q "^snowflake_\(registry_\)*$metric{" || { echo "$metric is missing" >&2; cat "$log" >&2; exit 1; }
done
printf '%s\n' "$metrics" | awk '/^snowflake_ids_allocated_total.*generator="bigint"/ { found = 1; exit !($2 >= 1000) } END { if (!found) exit 1 }'
