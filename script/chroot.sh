# Functions that make and use chroots of releases of Debian; sourced, by bash, after lib.sh.
#
# A chroot is made by mmdebstrap from the mirror that apt uses, and needs root.

# Whether chroots can be made here; if not, says why.
can_chroot() {
	if [ "$(id -u)" != 0 ]; then
		say "SKIPPED: chroots need root"
	elif ! command -v apt-get > /dev/null; then
		say "SKIPPED: there is no apt"
	elif ! command -v mmdebstrap > /dev/null && ! install_mmdebstrap > /dev/null 2>&1; then
		say "SKIPPED: mmdebstrap could not be installed"
	else
		return 0
	fi
	return 1
}

# Two scripts may do so at the same time, as in .ci/run.
install_mmdebstrap() (
	flock 9
	command -v mmdebstrap || { apt-get update -qq; apt_install mmdebstrap; }
) 9> /run/lock/snowflake-chroot

# The mirror of this system's own packages.
mirror() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Component: main' | grep -v security | head -n 1
}

# The release of Debian that has a version of PostgreSQL.
release_of() {
	case $1 in
		15) echo bookworm ;;
		17) echo trixie ;;
		18) echo forky ;;
		19) echo sid ;;
		*) die "There is no release for PostgreSQL $1; there are those for 15, 17, 18 and 19." ;;
	esac
}

# make_chroot RELEASE DIRECTORY PACKAGE,PACKAGE... [OPTION...]: options are mmdebstrap's.  PostgreSQL
# makes no cluster when it is installed there.
make_chroot() {
	local release=$1 root=$2 packages=$3
	shift 3

	mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io --include="$packages" \
		--extract-hook='mkdir -p "$1/etc/postgresql-common" && echo "create_main_cluster = false" > "$1/etc/postgresql-common/createcluster.conf"' \
		"$@" "$release" "$root" "$(mirror)"
}

# run_in_chroot DIRECTORY COMMAND...: with the mounts it needs, which end with it
run_in_chroot() {
	local root=$1
	shift
	# shellcheck disable=SC2016
	unshare --mount --propagation private -- sh -c '
		root=$1
		shift
		mount --bind /proc "$root/proc" && mount --bind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/dev/shm" &&
			exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"' sh "$root" "$@"
}

# copy_into DIRECTORY: a copy of this checkout, without the files built in it
copy_into() {
	rm -rf "$1"
	mkdir -p "$1"
	tar -C "$top" --exclude=./.git --exclude='*.o' --exclude='*.so' --exclude='*.bc' --exclude='*.d' --exclude='./test/unit/test_*[!c]' \
		--exclude=./examples/drivers/node_modules -cf - . | tar -C "$1" -xf -
}
