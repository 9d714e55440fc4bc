# Functions for all scripts; sourced, by bash 3.2 (macOS) or later.
#
# Finds PostgreSQL, and runs private servers from a copy of this checkout in a
# temporary directory, which is removed at the end.  PostgreSQL does not run as
# root: there the copy belongs to the user postgres, which runs the server.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# Run as root: directly, or by sudo.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo > /dev/null; then
		sudo "$@"
	else
		die "This needs root: run it as root, or install sudo. ($*)"
	fi
}

# Existing packages are not upgraded: an upgrade would restart their clusters.  The lock of another
# apt-get is waited for.
apt_install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -o DPkg::Lock::Timeout=300 -qq -y --no-upgrade --no-install-recommends "$@"; }

# Sets PG_CONFIG and bindir to an installation that has a server and the files for
# building extensions: the one that PG_CONFIG names, else the one on the PATH, else
# Debian's newest.
find_postgresql() {
	local candidate

	for candidate in ${PG_CONFIG:-pg_config $(printf '%s\n' /usr/lib/postgresql/*/bin/pg_config | sort -rV)}; do
		command -v "$candidate" > /dev/null || continue
		bindir=$("$candidate" --bindir)
		if [ -x "$bindir/postgres" ] &&
			[ "$("$candidate" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')" -ge 15 ] && [ -f "$("$candidate" --pgxs)" ] &&
			[ -f "$("$candidate" --includedir-server)/postgres.h" ]; then
			PG_CONFIG=$(command -v "$candidate")
			return
		fi
	done
	return 1
}

# A copy of the checkout in $work, without the files built in it.  If the checkout is a copy from which script/test has
# installed the extension, these files are copied too, so that the scripts that it runs there need not build and
# install the extension again.
copy_checkout() {
	work=$(mktemp -d "${TMPDIR:-/tmp}/snowflake.XXXXXX")
	trap clean_up EXIT
	chmod 755 "$work"
	mkdir "$work/tree"
	pack_checkout | tar -C "$work/tree" -xf -
}

pack_checkout() {
	local built=(--exclude='*.o' --exclude='*.d' --exclude='*.bc' --exclude='*.so' --exclude='./test/unit/test_*[!c]')

	[ "${SNOWFLAKE_INSTALLED:-}" != "$top" ] || built=()
	tar -C "$top" --exclude=./.git "${built[@]}" --exclude=./tmp_check --exclude=./output_iso --exclude=./output_schema --exclude=./results --exclude=./examples/drivers/node_modules -cf - .
}

# A copy that is kept, with the files built in it, for the next call: there is one for each checkout and installation.
# Files have the times of the checkout, so that make builds what has changed.
keep_checkout() {
	local name

	name=$(printf '%s %s' "$top" "$PG_CONFIG" | cksum | cut -d ' ' -f 1)
	work=${TMPDIR:-/tmp}/snowflake-kept.$(id -u).$name
	mkdir -p -m 755 "$work/tree"
	[ -O "$work" ] && [ ! -L "$work" ] || die "$work belongs to another user: remove it."
	exec 9> "$work/lock"
	flock -n 9 || die "Another test runs in $work."
	trap stop_kept EXIT
	stop_kept
	find "$work/tree" ! -type d ! -name '*.o' ! -name '*.d' ! -name '*.so' ! -path '*/test/unit/test_*' -delete
	pack_checkout | tar -C "$work/tree" -xf -
}

# Stop the servers of a kept copy, take it from their owner, and remove all but the copy.
stop_kept() {
	stop_servers
	[ "$(id -u)" != 0 ] || chown -R root "$work"
	find "$work" -mindepth 1 -maxdepth 1 ! -name tree ! -name lock -exec rm -rf {} +
}

stop_servers() {
	local data server

	for data in "$work"/*/data; do
		server=$(basename "$(dirname "$data")")
		[ ! -d "$data" ] || stop_server immediate 2> /dev/null || true
	done
}

clean_up() {
	# shellcheck disable=SC2046
	kill $(jobs -p) 2> /dev/null || true
	stop_servers
	rm -rf "$work"
}

# The bitcode for JIT is of no use here, and needs clang.
run_make() {
	make -s -C "$work/tree" PG_CONFIG="$PG_CONFIG" with_llvm=no "$@"
}

install_extension() {
	[ "${SNOWFLAKE_INSTALLED:-}" != "$top" ] || return 0
	if [ -w "$("$PG_CONFIG" --pkglibdir)" ]; then
		run_make install
	else
		as_root make -s -C "$work/tree" PG_CONFIG="$PG_CONFIG" with_llvm=no install
	fi > /dev/null
}

# A copy of the checkout, built, installed, and given to the user that runs servers.
prepare() {
	copy_checkout
	run_make -j2 > "$work/build.log" 2>&1 || { cat "$work/build.log"; die "make failed"; }
	install_extension || die "make install failed"
	give_to_owner
}

# Give the copy to the user that runs servers.
give_to_owner() {
	if [ "$(id -u)" = 0 ]; then
		chown -R postgres "$work"
	fi
}

# Run as that user, in the copy, with an environment of its own: a client finds
# the server that $server names, and a test the variables that say how much it does.  The lock of a
# kept copy is not passed on.
server=server
as_owner() {
	local name clean=(env -i PATH="$bindir:/usr/local/bin:/usr/bin:/bin" LC_ALL=C HOME="$work"
		PGHOST="$work/$server" PGUSER=postgres PGDATABASE=postgres PG_CONFIG="$PG_CONFIG")

	for name in SNOWFLAKE_TEST_{SCALE,ROWS,SECONDS,SCHEMAS,SEED,STOP,MISTAKES} SNOWFLAKE_{QUERIES,PLANS,SEED,GENERATOR,SCENARIOS} PG_TEST_TIMEOUT_DEFAULT INITDB_TEMPLATE; do
		[ -z "${!name:-}" ] || clean+=("$name=${!name}")
	done
	if [ "$(id -u)" = 0 ]; then
		(cd "$work/tree" && runuser -u postgres -- "${clean[@]}" "$@") 9>&-
	else
		(cd "$work/tree" && "${clean[@]}" "$@") 9>&-
	fi
}

# All private servers are made, started and stopped by these functions.  Each one is in a directory
# of $work that has its name, $server, with its data, log and socket; it is not accessible from
# outside of that.  The array "environment" can have variables for it, such as LD_PRELOAD.
environment=()
control_server() {
	as_owner env ${environment[@]+"${environment[@]}"} "$bindir/pg_ctl" -D "$work/$server/data" "$@" > /dev/null
}

# start_server LINE...: make a server with these lines of configuration, and start it
start_server() {
	as_owner mkdir -m 700 "$work/$server"
	make_data "$work/$server/data" || die "initdb failed"
	configure_server "listen_addresses = ''" "shared_preload_libraries = 'snowflake'" "$@"
	run_server
}

# start_standby PRIMARY LINE...: make a standby of another private server, and start it
start_standby() {
	local primary=$1
	shift
	as_owner mkdir -m 700 "$work/$server"
	as_owner "$bindir/pg_basebackup" -h "$work/$primary" -D "$work/$server/data" --checkpoint=fast --write-recovery-conf --no-sync ||
		die "pg_basebackup failed"
	configure_server "$@"
	run_server
}

# configure_server LINE...: add lines to the configuration
configure_server() {
	printf '%s\n' "unix_socket_directories = '$work/$server'" "$@" | as_owner tee -a "$work/$server/data/postgresql.conf" > /dev/null
}

# run_server [OPTION...]: start a server that was made, with options of pg_ctl
run_server() {
	control_server -l "$work/$server/log" -w "$@" start || { as_owner cat "$work/$server/log"; die "the server did not start"; }
}

# stop_server [MODE]: fast, unless another mode is given
stop_server() { control_server -m "${1:-fast}" stop; }

promote_server() { control_server -w promote; }

passed=0
failed=0

# Of the TAP tests' logs in a directory, the ends of the logs that show a failure, or no plan: prove does not count a
# server that does not start as a failed test, and its log is not kept elsewhere.
show_unfinished() {
	local log

	for log in $({ grep -laE '\) not ok' "$1"/regress_log_*; grep -LaE '\) 1\.\.[0-9]' "$1"/regress_log_*; } | sort -u); do
		say "--- ${log##*/}"
		grep -aE -A 10 '\) not ok' "$log"
		tail -n 30 "$log"
	done
}

# stage NAME COMMAND...: run a group of tests, and report.
stage() {
	begin_stage "$@"
	end_stage "$1"
}

# begin_stage NAME COMMAND...: run a group of tests in the background.
begin_stage() {
	local name=$1
	shift
	"$@" > "$work/$name.log" 2>&1 &
	say "$! $(date +%s)" > "$work/$name.stage"
}

# end_stage NAME: wait for it, and count the lines of its output that report a test: TAP's, those of
# pg_regress before 16, and those of prove for a program that failed without a test that failed.  It
# ended with its last line of output, which can be long ago.  What a test has drawn at random is printed.
end_stage() {
	local name=$1 status=0 good bad pid began
	printf '%-24s' "$name"
	read -r pid began < "$work/$name.stage"
	wait "$pid" || status=$?
	good=$(grep -aviE '# skip' "$work/$name.log" | grep -acE '^(ok [0-9]|(test | {5}).* \.\.\. +ok)')
	bad=$(grep -acE '^(not ok [0-9]|(test | {5}).* \.\.\. +FAILED|.*\(Wstat: .* Failed: 0\)$)' "$work/$name.log")
	if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		bad=1
	fi
	if [ "$status" = 0 ] && grep '^SKIPPED' "$work/$name.log"; then
		return
	fi
	if [ "$status" = 0 ] && [ "$((good + bad))" = 0 ]; then
		good=1
	fi
	passed=$((passed + good))
	failed=$((failed + bad))
	say "$good passed, $bad failed ($(($(date -r "$work/$name.log" +%s) - began)) s)"
	sed -n 's/^ok .*# skip/SKIPPED:/Ip; s/^# \(drawn: \)/  \1/p' "$work/$name.log"
	if [ "$bad" != 0 ]; then
		grep -aE '^not ok|\(Wstat: ' "$work/$name.log"
		grep -avE '^ok [0-9]' "$work/$name.log" | tail -n 100
		case $name in
			*tap) show_unfinished "$work/tree/tmp_check/log" ;;
		esac
		tail -n 100 "$work"/tree{,/output_iso,/output_schema}/regression.diffs 2> /dev/null
	fi
}

# make_data DIRECTORY: of a server whose superuser is postgres; a copy of the template if there is one.
make_data() {
	if [ -n "${INITDB_TEMPLATE:-}" ] && [ "$(id -u)" = 0 ]; then
		as_owner cp -RPp "$INITDB_TEMPLATE" "$1"
	else
		as_owner "$bindir/initdb" -D "$1" -U postgres -A trust --no-sync > "$work/initdb.log" 2>&1 || { cat "$work/initdb.log"; return 1; }
	fi
}

# The data directory that TAP tests copy for each of their servers, and that is the template of all servers that are
# made later.  The superuser has the name of the owner, which is postgres for root.  A segment of WAL has 1 MB, so that
# there is less to copy; the limits of WAL are the default ones.
make_template() {
	[ -z "${INITDB_TEMPLATE:-}" ] || return 0
	if [ ! -d "$work/template" ]; then		# a stage, which is another process, can have made it
		as_owner "$bindir/initdb" -D "$work/template" -A trust --no-sync --wal-segsize=1 > "$work/initdb.log" 2>&1 &&
			printf 'max_wal_size = 1GB\nmin_wal_size = 80MB\n' | as_owner tee -a "$work/template/postgresql.conf" > /dev/null ||
			{ cat "$work/initdb.log"; return 1; }
	fi
	export INITDB_TEMPLATE=$work/template
}

# The tests of the server that ISOLATION=, REGRESS= and TAP_TESTS= do not turn off.
check() {
	make_template || return
	as_owner make -s installcheck with_llvm=no PG_CONFIG="$PG_CONFIG" "$@"
}

# The TAP tests, or the tests of a directory, the longest first, so that none of them runs alone at the end.
tap_tests() ( # [DIRECTORY]
	local long=(t/{100_sno,202_registry_worker,204_registry_lost,023_slow_disk} migration/t/convert_key
		t/{206_registry_identity,207_registry_away,201_registry_lost_leases,006_clock,034_shards,007_durable}
		t/{209_false_registry,208_registry_standby,203_fleet,003_concurrency,035_portable_reading,027_portable}
		migration/t/random_schemas t/{017_horizon,026_watermark,025_interrupts,013_migration})

	cd "$top" || return 1
	{ printf '%s.pl\n' "${long[@]}"; printf '%s\n' t/*.pl migration/t/*.pl; } | awk '!seen[$0]++' | grep "^${1:-}" | paste -sd ' '
)
