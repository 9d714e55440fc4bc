# Prints a collector for sql_exporter with the metrics of queries.yaml, which have the same names and labels:
#
#   awk -v collector=snowflake -f monitoring/sql_exporter.awk monitoring/queries.yaml > snowflake.collector.yml
#
# collector   snowflake, for a server that issues IDs, or snowflake_registry, for a registry

/^[a-z]/ { query = substr($1, 1, length($1) - 1) }
query != collector { next }
/^    - [a-z_]+: \{ usage: LABEL,/ { labels = labels (labels == "" ? "" : ", ") substr($2, 1, length($2) - 1) }
/^    - [a-z_]+: \{ usage: (COUNTER|GAUGE),/ {
	column[++columns] = substr($2, 1, length($2) - 1)
	type[columns] = tolower(substr($5, 1, length($5) - 1))
	help[columns] = $0
	sub(/.* description: /, "", help[columns])
	sub(/ \}$/, "", help[columns])
}
/^    [^-]/ { sql = sql "\n" "  " $0 }
/^  query: [^|]/ { sql = sql "\n      " substr($0, 10) }
END {
	print "collector_name: " collector "\nmetrics:"
	for (i = 1; i <= columns; i++)
	{
		printf "  - metric_name: %s_%s\n    type: %s\n    help: %s\n", collector, column[i], type[i], help[i]
		if (labels != "")
			print "    key_labels: [" labels "]"
		print "    values: [" column[i] "]\n    query_ref: " collector
	}
	print "queries:\n  - query_name: " collector "\n    query: |" sql
}
