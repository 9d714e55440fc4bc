# Functions for all benchmarks; sourced, by bash: a private server with the extension, medians,
# plots.
#
# Each benchmark prints its results and, if gnuplot is installed, draws them as SVG, into the
# directory RESULTS, "bench-results" unless it is set.

# The load of the machine, before anything is built.
load=$(cut -d ' ' -f 1 /proc/loadavg)
. "$(dirname "${BASH_SOURCE[0]}")/../script/lib.sh"
"$top/script/bootstrap"
find_postgresql || die "no PostgreSQL found"
results=${RESULTS:-$PWD/bench-results}

# Build and install the extension, for servers to be started.
prepare() { # ARGUMENTS OF MAKE
	copy_checkout
	run_make -j2 "$@" > "$work/build.log" 2>&1 || { cat "$work/build.log"; die "make failed"; }
	install_extension
	give_to_owner
}

# Two versions, to be measured in turns: "now", this checkout, and "before", the checkout that BEFORE names, if that
# is set.  The array "versions" has their names.
prepare_versions() {
	local before=${BEFORE:-}

	prepare
	mv "$work/tree" "$work/now"
	versions=(now)
	if [ -n "$before" ]; then
		top=$(cd "$before" && pwd)
		before_commit=$(commit_of "$top")
		mkdir "$work/tree"
		pack_checkout | tar -C "$work/tree" -xf -
		run_make -j2 > "$work/build.log" 2>&1 || { cat "$work/build.log"; die "make failed"; }
		mv "$work/tree" "$work/before"
		versions=(before now)
	fi
	cc -shared -fPIC -O1 -o "$work/clock.so" "$work/now/t/lib/clock.c" -ldl
	mkdir "$work/tree"
	give_to_owner
}

# Install a version.  Running servers have loaded the other one.
install_version() { make -s -C "$work/$1" PG_CONFIG="$PG_CONFIG" with_llvm=no install > /dev/null; }

# Reads medians of "WHAT|VERSION": a line for each WHAT, and how "now" compares with "before".
compare() { # FORMAT
	awk -F'[|\t]' -v format="$1" '{ of[$1 "|" $2] = sprintf(format "  (" format " to " format ")", $3, $4, $5); median[$1 "|" $2] = $3
			if (!seen[$1]++) keys[++count] = $1 }
		END { for (k = 1; k <= count; k++) { key = keys[k]
			printf "  %-52s", key
			if (key "|before" in of) printf "  before %s", of[key "|before"]
			printf "  now %s", of[key "|now"]
			if (key "|before" in of) printf "  %+.2f %%", (median[key "|now"] / median[key "|before"] - 1) * 100
			printf "\n" } }'
}

# Run bench/NAME.pl, a TAP test that injects faults (bench/Faults.pm).  FAULTS is a regular expression: only faults whose
# names match it are injected.  TAP is printed to the file descriptor "tap", the standard output unless it is set.  If the
# test fails, the logs are kept.
inject_faults() { # NAME SECONDS [SEED [FAULTS [MORE ARGUMENTS]]]
	local name=$1 seconds=${2:?usage: bench/$1 SECONDS [SEED [FAULTS]]} seed=${3:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')} evidence

	headline "$seconds s, seed $seed${4:+, faults $4}"
	prepare COPT=-DUSE_ASSERT_CHECKING
	if ! check REGRESS= ISOLATION= PROVE_FLAGS=-v PROVE_TESTS="bench/$name.pl :: $seconds $seed '${4:-}' ${*:5}" >&"${tap:-1}"; then
		evidence=$(mktemp -d "${TMPDIR:-/tmp}/snowflake-$name.XXXXXX")
		cp -r "$work/tree/tmp_check"/{log,"$name"/*.{log,csv}} "$evidence" 2> /dev/null || true
		die "The logs are in $evidence"
	fi
}

# Servers that are started after this are under the clock and the slow disk of t/lib/clock.c.
use_clock() {
	set_clock 0 0
	chmod 644 "$work/clock"
	environment=(LD_PRELOAD="$work/clock.so" SNOWFLAKE_TEST_CLOCK="$work/clock")
}

# The seconds by which their clock is off, and those by which each flush of WAL takes longer; a lower number ends a flush.
set_clock() { # OFFSET DELAY
	perl -e 'print pack("q5", $ARGV[0] * 1e9, 0, 0, 0, $ARGV[1] * 1e9)' -- "$1" "$2" | dd of="$work/clock" conv=notrunc status=none
}

# Kill the server that $server names, all processes at once, and wait until they are gone.
crash_server() {
	local postmaster processes

	postmaster=$(head -n 1 "$work/$server/data/postmaster.pid")
	kill -STOP "$postmaster"
	processes="$postmaster $(pgrep -P "$postmaster" | tr '\n' ' ')"
	# shellcheck disable=SC2086
	kill -KILL $processes
	# shellcheck disable=SC2086
	while kill -0 $processes 2> /dev/null; do sleep 0.05; done
}

# psql on the server that $server names
sql() { as_owner "$bindir/psql" -XAtq "$@"; }

# The commit of a checkout, with "+" if files other than results differ from it; "unknown" without a history.
commit_of() {
	local commit

	commit=$(git -C "$1" rev-parse --short=12 HEAD 2> /dev/null) || { echo unknown; return; }
	git -C "$1" diff --quiet HEAD -- . ':!bench/results' 2> /dev/null || commit+=+
	echo "$commit"
}
commit=$(commit_of "$top")

# The beginning of the first line of each result.
measured="commit $commit, $("$PG_CONFIG" --version), "

# The first line of each result: the commit, the version, the machine, its load, and the method.  The next one has the
# commit of the version "before", if that is measured.
headline() {
	say "$measured$(nproc) CPUs ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), load $load, $*"
	[ -z "${before_commit:-}" ] || say "before: commit $before_commit"
}

# Instructions of a single-user backend for the statements that it reads, one a line, counted by valgrind.  The backend
# uses the data directory of the server that $server names, which must not run.  The array "environment" can have
# variables for both.
instructions() { # OPTIONS OF THE BACKEND
	as_owner env "${environment[@]}" timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		"$bindir/postgres" --single -D "$work/$server/data" "$@" postgres 2>&1 > /dev/null | sed -n 's/.*Collected : *//p'
}
environment=()

# Reads lines "key<TAB>value", prints "key<TAB>median<TAB>min<TAB>max", in the order in which
# the keys came first.
medians() {
	awk -F'\t' '{ if (!($1 in all)) keys[++count] = $1; all[$1] = all[$1] " " $2 }
		END { for (k = 1; k <= count; k++) {
			n = split(all[keys[k]], v, " ")
			for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
			m = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
			printf "%s\t%s\t%s\t%s\n", keys[k], m, v[1], v[n] } }'
}

# plot NAME: draws by the commands of gnuplot that it reads, which find the data in the file $data,
# lines with tabs between fields.  On a dark page the colors are inverted, their hues are not.
plot() {
	local file=$results/$1.svg

	mkdir -p "$results"
	if ! command -v gnuplot > /dev/null; then
		say "SKIPPED: $1.svg; gnuplot is not installed"
		return
	fi
	{
		printf '%s\n' 'set terminal svg size 860,460 noenhanced font "Helvetica,13" background "white"' "set output '$file'" \
			'set datafile separator "\t"' 'set grid lc rgb "#dddddd"' 'set border 3 lc rgb "#555555"' 'set tics nomirror' \
			'set linetype 1 lc rgb "#1f6feb" lw 2 pt 7' 'set linetype 2 lc rgb "#bc4c00" lw 2 pt 5' 'set linetype 3 lc rgb "#1a7f37" lw 2 pt 9' \
			'set linetype 4 lc rgb "#8250df" lw 2 pt 11' 'set linetype 5 lc rgb "#bf3989" lw 2 pt 13' 'set linetype 6 lc rgb "#57606a" lw 2 pt 4' \
			'set linetype 7 lc rgb "#9a6700" lw 2 pt 6' 'set linetype 8 lc rgb "#cf222e" lw 2 pt 8' 'set linetype 9 lc rgb "#24292f" lw 2 pt 12' \
			"data = '$data'"
		cat
	} | gnuplot &&
		sed -i 's|^<title>.*|<style>@media (prefers-color-scheme: dark) { #gnuplot_canvas { filter: invert(0.93) hue-rotate(180deg) } }</style>|' "$file" &&
		say "Drawn: $1.svg"
}

# Bars, one for each line "name<TAB>median<TAB>min<TAB>max" of $data.  Names that begin with OWN are highlighted.
plot_bars() { # NAME TITLE LABEL OWN
	plot "$1" <<-END
		set title "$2"
		set xlabel "$3"
		set xrange [0:*]
		set yrange [*:*] reverse
		set offsets graph 0, graph 0.12, 0.6, 0.6
		set lmargin 34
		set rmargin 4
		set style fill solid 0.9 noborder
		set border 1
		set format x "%.7g"
		unset key
		plot data using (\$2 / 2):0:(\$2 / 2):(0.35):(strstrt(strcol(1), "$4") == 1 ? 0x1f6feb : 0xafb8c1):ytic(1) with boxxyerror lc rgb variable, \\
			data using 2:0:3:4 with xerrorbars pt 0 lc rgb "#24292f", \\
			data using 4:0:(sprintf(\$2 >= 100 || \$2 == int(\$2) ? "  %.0f" : \$2 < 1 ? "  %.3f" : "  %.1f", \$2)) with labels left
	END
}

# Lines of one series for each block of $data: a line with its name, then "x<TAB>median<TAB>min<TAB>max".
plot_lines() { # NAME TITLE XLABEL YLABEL [COMMANDS]
	plot "$1" <<-END
		set title "$2"
		set xlabel "$3"
		set ylabel "$4"
		set key outside right top
		set logscale xy
		$(printf '%s\n' "${@:5}")
		stats data using 0 nooutput
		plot for [i = 0:STATS_blocks - 1] data index i using 1:2:3:4 with yerrorlines lt i + 1 title columnheader(1)
	END
}

# A server with a table "keyed" of a year of rows, and an hour of that year.
start_with_year() {
	start_server "snowflake.machine_id = 1" "fsync = off" "autovacuum = off" "max_wal_size = 8GB" "shared_buffers = 1GB" \
		"max_parallel_workers_per_gather = 0" "jit = off"
	sql <<-SQL
		CREATE EXTENSION snowflake;
		CREATE TABLE keyed AS
		SELECT snowflake_encode(at, 1, (n % 4096)::integer) AS id, n AS item
		FROM (SELECT n, timestamptz '2025-01-01' + n * (interval '365 days' / $rows) AS at FROM generate_series(0, $rows - 1) n) a;
		ALTER TABLE keyed ADD PRIMARY KEY (id);
	SQL
	from='2025-07-01 12:00'
	to='2025-07-01 13:00'
}

# ms of a query, planning and all, in a session that has run it before.  Settings come before its last "; ".
milliseconds() {
	printf '%s;\n\\timing on\n%s;\n' "$1" "${1##*; }" | sql | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | tail -n 1
}

wide="epoch=2024-01-01T00:00:00Z tick=1ms timestamp=41 machine=2 sequence=20"

# Servers of the candidates: one with the default layout, one whose layout has 20 sequence bits, since
# a layout is fixed at the start of a server.  Commits are asynchronous: this favours nextval(),
# which writes WAL.
start_candidates() { # LINES OF CONFIGURATION
	for server in default wide; do
		start_server "fsync = off" "synchronous_commit = off" "autovacuum = off" "snowflake.machine_id = 1" \
			"$([ $server = wide ] && echo "snowflake.layout = '$wide'")" "$@"
		sql -c "CREATE EXTENSION snowflake" -c "CREATE SEQUENCE cache1" -c "CREATE SEQUENCE cache100 CACHE 100"
	done
	server=default
	sql <<-'SQL'
		CREATE FUNCTION of_sequence_and_clock() RETURNS bigint LANGUAGE plpgsql AS $$
		BEGIN
			RETURN ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
				| 1 << 10 | nextval('cache1') % 1024;
		END $$;
	SQL
	find_candidates
}

# The candidates: name|server|expression.  Besides PostgreSQL's own, and a function in PL/pgSQL as
# Instagram has described it, the peers.
find_candidates() {
	candidates=(
		"clock_timestamp()|default|clock_timestamp()"
		"snowflake_nextval(), twitter|default|snowflake_nextval()"
		"snowflake_nextval(), 20 bits|wide|snowflake_nextval()"
		"sno_nextval()|default|sno_nextval()"
		"nextval(), CACHE 1|default|nextval('cache1')"
		"nextval(), CACHE 100|default|nextval('cache100')"
		"gen_random_uuid()|default|gen_random_uuid()"
	)
	[ -z "$(sql -c "SELECT to_regprocedure('pg_catalog.uuidv7()')")" ] || candidates+=("uuidv7()|default|uuidv7()")
	candidates+=("PL/pgSQL, sequence and clock|default|of_sequence_and_clock()")
	if start_peer pgedge snowflake "synchronous_commit = off" "snowflake.node = 1" "max_connections = 1010"; then
		on pgedge sql -c "CREATE SEQUENCE cache1"
		candidates+=("pgEdge snowflake.nextval()|pgedge|snowflake.nextval('cache1')")
	fi
	if start_peer uuidv7 pg_uuidv7 "shared_preload_libraries = ''" "synchronous_commit = off" "max_connections = 1010"; then
		candidates+=("pg_uuidv7 uuid_generate_v7()|uuidv7|uuid_generate_v7()")
	fi
}

# Extensions that no package has.  Each one is measured, in a server of its own, if a variable names the pg_config of an
# installation that has it, of the same version of PostgreSQL.  The extension of pgEdge has the name of this extension,
# so its installation has to be another one.
declare -A peers=([pgedge]=${PGEDGE:-} [uuidv7]=${PG_UUIDV7:-})

# start_peer SERVER EXTENSION LINES OF CONFIGURATION: fails if its pg_config is not given
start_peer() {
	local peer=${peers[$1]} extension=$2

	[ -n "$peer" ] || return 1
	[ "$("$peer" --version)" = "$("$PG_CONFIG" --version)" ] || die "$peer is not that of $("$PG_CONFIG" --version)."
	on "$1" start_server "fsync = off" "autovacuum = off" "${@:3}"
	on "$1" sql -c "CREATE EXTENSION $extension" || die "$peer has no extension $extension."
}

# on SERVER COMMAND...: with the programs of that server
on() {
	local server=$1 PG_CONFIG=$PG_CONFIG bindir=$bindir
	shift

	if [ -n "${peers[$server]:-}" ]; then
		PG_CONFIG=${peers[$server]}
		bindir=$("$PG_CONFIG" --bindir)
	fi
	"$@"
}

# query EXPRESSION CALLS: a query that makes CALLS calls, twenty a row, so that the function is
# measured and not the executor's rows, and that returns nothing.
query() {
	local list=$1 i

	for ((i = 1; i < 20; i++)); do
		list+=", $1"
	done
	printf 'SELECT %s FROM generate_series(1, %d) i OFFSET %d;\n' "$list" $(($2 / 20)) $(($2 / 20))
}
