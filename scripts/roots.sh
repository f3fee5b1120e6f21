# roots.sh - fresh roots of Debian and Ubuntu for check-clean and check-deb. Sourced after lib.sh.
# shellcheck shell=sh

# The first archive of this host that is Debian's own.
host_mirror() {
	cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
		sed -n 's/^URIs: *\([^ ]*\/debian\)\/* *$/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\/debian\)\/* .*/\2/p' | head -n 1
}

# make_root SUITE FOLDER: a minimal Debian, with the archive, the proxy and the certificates of this host. Left alone where
# one is already. MIRROR and KEYRING name another archive than the one that this host's apt uses; Ubuntu's needs both.
make_root() {
	[ ! -x "$2/bin/sh" ] || return 0
	have_command debootstrap || die "debootstrap is missing: apt-get install debootstrap"
	mirror=${MIRROR:-$(host_mirror)}
	[ "$mirror" ] || die "no archive of Debian in /etc/apt: set MIRROR"
	say "debootstrap of $1 in $2"
	log=$(mktemp)
	parts=main script=
	case $mirror in */ubuntu | */ubuntu/) parts=main,universe script=gutsy ;; esac # every Ubuntu since has that script
	# shellcheck disable=SC2086 # no script is no argument
	debootstrap --variant=minbase --components=$parts ${KEYRING:+--keyring="$KEYRING"} "$1" "$2" "$mirror" $script >"$log" 2>&1 || {
		tail -n 5 "$log" >&2
		die "debootstrap failed; all of it: $log"
	}
	rm -f "$log"
	cp /etc/apt/apt.conf.d/*proxy* "$2/etc/apt/apt.conf.d/" 2>/dev/null || :
	mkdir -p "$2/usr/local/share/ca-certificates"
	cp /usr/local/share/ca-certificates/*.crt "$2/usr/local/share/ca-certificates/" 2>/dev/null || :
	cp /etc/resolv.conf /etc/hosts "$2/etc/" 2>/dev/null || :
	[ ! -f "$HOME/.npmrc" ] || cp "$HOME/.npmrc" "$2/root/"
}

# in_root ROOT COMMAND...: with ROOT as its root, and processes, mounts, /run and /tmp of its own. By pivot_root: in a chroot
# no program may make a user namespace. LOWER: ROOT is empty, and becomes this folder with all changes in ROOT.changes.
# CGROUP: a cgroup of version 2 that the command gets, as if it were the whole tree; a service manager needs one.
in_root() {
	export CGROUP="${CGROUP:-}"
	root=$1
	shift
	[ -z "${LOWER:-}" ] || mkdir -p "$root" "$root.changes" "$root.work"
	unshare --mount --pid --fork --propagation private sh -euc '
		[ -z "$CGROUP" ] || { echo 0 >"$CGROUP/cgroup.procs"; exec unshare --cgroup sh -euc "$@"; }
		exec sh -euc "$@"' sh '
		root=$1 lower=$2
		shift 2
		if [ "$lower" ]; then
			mount -t overlay overlay -o "lowerdir=$lower,upperdir=$root.changes,workdir=$root.work" "$root"
		else
			mount --bind "$root" "$root"
		fi
		cd "$root"
		mkdir -p before dev proc sys run tmp
		mount --rbind /dev dev
		if [ "$CGROUP" ]; then
			mount -t sysfs sysfs sys
			mount -t cgroup2 cgroup2 sys/fs/cgroup
		else
			mount --rbind /sys sys
		fi
		mount -t tmpfs tmpfs run
		pivot_root . before
		mount -t proc proc /proc
		umount -l /before
		mount -t tmpfs -o mode=1777 tmpfs /tmp
		export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
		unset TMPDIR
		cd /root
		exec "$@"' sh "$root" "${LOWER:-}" "$@" </dev/null
}
