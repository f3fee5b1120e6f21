# lib.sh - what ./up, ./check and the other scripts share. Sourced from the top of the checkout.
# shellcheck shell=sh

me=${0##*/}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "$*"; exit 1; }

need_root() {
	[ "$(id -u)" = 0 ] || die "needs root: sudo ./$me"
}

# The checkout may belong to a user who typed sudo. What we build should stay theirs.
as_owner() {
	owner=$(stat -c %u .) group=$(stat -c %g .)
	if [ "$(id -u)" = 0 ] && [ "$owner" != 0 ]; then
		setpriv --reuid "$owner" --regid "$group" --clear-groups "$@"
	else
		"$@"
	fi
}

# Only where sudo and a box look too: a python3 in somebody's home is in no box.
have_command() { PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin command -v "$1" >/dev/null; }

have_package() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

alternatives() { echo "${1#cmd:*=}" | tr '|' ' '; }

# is_known PACKAGE: do the lists of this distribution have it? They are read once: each start of apt-cache takes a second.
known=
is_known() {
	[ "$known" ] || known=$(apt-cache dumpavail 2>/dev/null | sed -n 's/^Package: //p')
	printf '%s\n' "$known" | grep -qxF "$1"
}

# met NEED: is it there? One that ends in |- is also met where no package list knows it.
met() {
	case $1 in
	cmd:*)
		command=${1#cmd:}
		have_command "${command%%=*}" && return 0
		;;
	*)
		for package in $(alternatives "$1"); do
			have_package "$package" && return 0
		done
		;;
	esac
	case $1 in
	*'|-') ! is_known "$(alternatives "${1%%|*}")" ;;
	*) return 1 ;;
	esac
}

# Prints what is missing of these sets, a need per line, as packages with | between.
missing() {
	for set in "$@"; do
		sed -n "s/^$set[[:space:]]\{1,\}//p" scripts/packages
	done | while read -r need; do
		met "$need" || echo "${need#cmd:*=}"
	done
}

# apt LOG ARG...: quiet, patient, and never asking.
apt() {
	log=$1
	shift
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

# Installs what is missing of these sets. Does not touch apt when nothing is.
install_needs() {
	needs=$(missing "$@")
	[ "$needs" ] || return 0
	[ "$(id -u)" = 0 ] || die "missing: $(echo $needs). Install it, or: sudo ./$me"
	command -v apt-get >/dev/null || die "missing: $(echo $needs). Only Debian and Ubuntu are set up by this script"

	log=$(mktemp)
	say "installing $(echo $needs)"
	apt "$log" update || apt "$log" update || apt_failed "$log"
	chosen= known=
	for need in $(missing "$@"); do
		pick=
		for package in $(alternatives "$need"); do
			[ "$pick" ] || ! is_known "$package" || pick=$package
		done
		[ "$pick" ] || die "no package for $need in this distribution's lists"
		chosen="$chosen $pick"
	done
	apt "$log" install -y --no-install-recommends $chosen || apt_failed "$log"
	rm -f "$log"
	needs=$(missing "$@")
	[ -z "$needs" ] || die "still missing after the installation: $(echo $needs)"
}

apt_failed() {
	! grep -qE 'Could not (resolve|connect)|Temporary failure|Unable to connect|Network is unreachable' "$1" ||
		die "apt-get cannot reach its archive; without a network install this elsewhere first: $(echo $(missing build)) (all of it: $1)"
	die "apt-get failed: $(grep '^E:' "$1" | tail -1 | cut -c 4-) (all of it: $1)"
}

# Go 1.20 and later come without a compiled library, and every new box would compile it again for seconds. As root,
# compiles it once into GOROOT, which boxes see (docs/languages.md); again only after an update of Go.
compile_go_library() {
	[ "$(id -u)" = 0 ] && [ -x /usr/bin/go ] || return 0
	[ "$(go_in_goroot list -f '{{.Stale}}' fmt 2>/dev/null)" = true ] || return 0
	say "compiling the library of Go into $(/usr/bin/go env GOROOT)/pkg (once; 300 MB)"
	go_in_goroot install std || say "that failed; tests of Go will be slow"
}
go_in_goroot() { GODEBUG=installgoroot=all GOTOOLCHAIN=local GOFLAGS= /usr/bin/go "$@"; }

# configure DIR CC OPTION...: makes a build folder, or leaves the one that is there.
configure() {
	dir=$1 cached="${ccache:+$ccache }$2"
	shift 2
	# Empty: the packages of the web UI could not be fetched. They are tried again: npm may be there by now.
	[ ! -f "$dir/ui.bundle" ] || [ -s "$dir/ui.bundle" ] || rm -f "$dir/ui.bundle"
	[ -f "$dir/build.ninja" ] || as_owner env CC="$cached" meson setup "$dir" "$@"
}
# What was compiled before need not be again, where somebody has installed it.
ccache=$(PATH=/usr/local/bin:/usr/bin command -v ccache || :)

# fetch_ui TREE: the packages of the web UI into another tree. Those of this one where they are the right ones, else from the
# npm registry. (Builds of packages have another HOME, and so do not see the settings of npm.)
fetch_ui() {
	[ "${UI:-enabled}" = enabled ] || return 0
	if [ -f ui/node_modules/.atoll-stamp ] && cmp -s ui/package-lock.json "$1/ui/package-lock.json"; then
		cp -a --reflink=auto ui/node_modules "$1/ui/"
	fi
	node "$1/ui/fetch.mjs" || die "the packages of the web UI cannot be fetched; without it: UI=disabled $0"
}

# Time passed since `now`, for people: "48 ms", "3.1 s".
now() { date +%s.%N; }
since() {
	awk -v a="$1" -v b="$(now)" 'BEGIN {
		s = b - a
		if (s < 1)
			printf "%d ms", s * 1000
		else
			printf "%.1f s", s
	}'
}

# ---- the daemon ----

answers() { curl -fs --max-time 5 --unix-socket "$1/atoll.sock" http://localhost/healthz >/dev/null 2>&1; }

# Two daemons must not share a state folder, and systemd would start the one of the package again.
serve_beside_package() {
	die "$1, and was left alone. Use it (atoll ...); or stop it: systemctl stop atoll.service atoll.socket;" \
		"or serve beside it: ATOLL_RUN=/run/atoll-2 ATOLL_STATE=/var/lib/atoll-2 ATOLL_LISTEN=127.0.0.1:7071 ./$me"
}

# serve ATOLL RUN: a daemon of this build (atolld in the same folder) serves from the run folder. One that runs already executes its own
# file anew if that is this one; one of another checkout is stopped first. Boxes live on in both cases.
serve() {
	binary=$(readlink -f "$1") run=$2
	if [ "$run" = /run/atoll ] && [ -S /run/systemd/private ] && systemctl -q is-active atoll.socket 2>/dev/null; then
		serve_beside_package "systemd holds the sockets of the daemon (atoll.socket)"
	fi
	if answers "$run"; then
		pid=$(cut -d ' ' -f 1 "$run/serve.pid") theirs=$(readlink "/proc/$pid/exe" || :)
		if [ "${theirs% (deleted)}" = "${binary%/*}/atolld" ]; then
			"$binary" upgrade -q && return 0
			say "it is stopped and started instead"
		elif [ "${theirs% (deleted)}" = /usr/bin/atolld ]; then
			serve_beside_package "the daemon of the package atoll (pid $pid) serves from $run"
		else
			say "replacing the daemon of $theirs (pid $pid)"
		fi
		"$binary" stop -q || die "the daemon that runs (pid $pid) could not be stopped"
	fi
	setsid -f "$binary" serve >>"$run/serve.log" 2>&1 </dev/null
	# It takes some hundred milliseconds. A daemon that cannot serve exits and removes its pid file.
	for tries in $(seq 400); do
		! answers "$run" || return 0
		[ "$tries" -lt 10 ] || [ -e "$run/serve.pid" ] || break
		sleep 0.05
	done
	serve_failed "$run"
}

serve_failed() {
	reason=$(grep '^atoll: ' "$1/serve.log" | tail -n 1)
	case $reason in
	*' is in use'*) die "${reason#atoll: }; stop that program, or serve elsewhere: ATOLL_LISTEN=127.0.0.1:7071 ./$me (after sudo, not before it)" ;;
	esac
	die "the daemon does not answer: ${reason:-$(tail -n 3 "$1/serve.log")}"
}
