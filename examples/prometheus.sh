#!/bin/sh
# Prometheus: postgres_exporter exports the statistics of the generators to it, by the queries of
# monitoring/queries.yaml; monitoring/alerts.yaml has alerts on them, and monitoring/grafana.json is
# a dashboard, each of whose expressions is evaluated here.
#
# Packages: prometheus-postgres-exporter prometheus
#
# Runs where PGHOST and so on name a server that leases its machine ID (snowflake.registry), in a
# database with the extension.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
queries=$top/monitoring/queries.yaml
work=$(mktemp -d)
log=$work/log
port=$((20000 + $$ % 10000))
exporter='' prometheus=''
# shellcheck disable=SC2086
trap 'kill $exporter $prometheus 2> /dev/null; wait; rm -rf "$work"' EXIT

psql -Xqc "CREATE EXTENSION snowflake_registry"
psql -Xqc "SELECT snowflake_registry.declare_first()" > /dev/null
psql -Xqc "SELECT snowflake_registry.claim(gen_random_uuid(), 'twitter', 10, NULL, '1 minute', clock_timestamp(), 'example', 0)" > /dev/null
psql -Xqc "SELECT count(snowflake_id()) FROM generate_series(1, 1000)" > /dev/null

DATA_SOURCE_NAME="host=$PGHOST user=$PGUSER dbname=$PGDATABASE sslmode=disable" \
	prometheus-postgres-exporter --extend.query-path="$queries" --web.listen-address=127.0.0.1:$port \
	--disable-default-metrics --disable-settings-metrics > "$log" 2>&1 &
exporter=$!

# The data that Prometheus receives.
get() { perl -MHTTP::Tiny -e 'my $r = HTTP::Tiny->new->get(shift); print $r->{content}; exit !$r->{success}' "$1"; }
until metrics=$(get "http://127.0.0.1:$port/metrics"); do
	kill -0 "$exporter"
done
printf '%s\n' "$metrics" | grep '^snowflake'

# Each metric of the queries exists, with its labels.
for metric in $(sed -n 's/^    - \(.*\): { usage: [CG].*/\1/p' "$queries"); do
	printf '%s\n' "$metrics" | grep -q "^snowflake_\(registry_\)*$metric{" || { echo "$metric is missing" >&2; cat "$log" >&2; exit 1; }
done
printf '%s\n' "$metrics" | awk '/^snowflake_ids_allocated_total.*generator="bigint"/ { found = 1; exit !($2 >= 1000) } END { if (!found) exit 1 }'

# A Prometheus, which has the alerts.
cat > "$work/prometheus.yml" <<END
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["$top/monitoring/alerts.yaml"]
scrape_configs: [{ job_name: snowflake, static_configs: [{ targets: ["127.0.0.1:$port"] }] }]
END
promtool check config "$work/prometheus.yml"
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" --web.listen-address=127.0.0.1:$((port + 1)) > "$work/prometheus.log" 2>&1 &
prometheus=$!
until get "http://127.0.0.1:$((port + 1))/-/ready" > /dev/null; do
	kill -0 "$prometheus"
done

# Each expression of the dashboard returns data, once there are two scrapes; IDs are issued meanwhile.
"$top/test/monitoring/run" --expressions > "$work/expressions"
perl -MHTTP::Tiny -MJSON::PP -e '
	my ($url, $file) = @ARGV;
	my $http = HTTP::Tiny->new;
	my $until = time + 60;
	open my $in, "<", $file or die "$file: $!\n";
	while (my $expression = <$in>)
	{
		my $answer;
		chomp $expression;
		do
		{
			die "no data after a minute: $expression\n" if time > $until;
			system("psql", "-Xqo", "/dev/null", "-c", "SELECT count(snowflake_id()) FROM generate_series(1, 100)") == 0 or die if $answer;
			my $response = $http->get("$url/api/v1/query?" . $http->www_form_urlencode({ query => $expression }));
			die "$expression: $response->{content}\n" if !$response->{success};
			$answer = decode_json($response->{content})->{data}{result};
		} until @$answer;
		printf "%s\n  %s\n", $expression, join ", ", map { $_->{value}[1] } @$answer;
	}
	my $rules = decode_json($http->get("$url/api/v1/rules")->{content})->{data}{groups}[0]{rules};
	my @bad = grep { $_->{health} eq "err" } @$rules;
	die "no alerts\n" if !@$rules;
	die map { "$_->{name}: $_->{lastError}\n" } @bad if @bad;
' "http://127.0.0.1:$((port + 1))" "$work/expressions" || { tail -n 20 "$work/prometheus.log" >&2; exit 1; }
