#!/bin/sh
# run.sh - E2B's own packages, as published, against a daemon: two releases, each over plain HTTP at an
# address and over TLS at a domain.
# seconds: 400
#
#	tests/run tests/compat/e2b/run.sh
#	ATOLL=build/atoll tests/compat/e2b/run.sh [now|before] [plain|tls] [WORDS OF A TEST]
#
# The packages come from npm, at the versions of now/ and before/, into a folder outside of the tree:
# E2B_COMPAT_CACHE, or below ~/.cache.
libs=$(cd "$(dirname "$0")/../../system" && pwd)
. "$libs/daemon.lib"
generations=${1:-now before} ways=${2:-plain tls} words=${3-}
cache=${E2B_COMPAT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/atoll/e2b}

command -v npm >/dev/null || { echo "1..0 # SKIP no npm"; exit 0; }

# packages NAME: installed once per list of versions.
packages() {
	to=$cache/$1
	mkdir -p "$to" || return 1
	cmp -s "$here/$1/package-lock.json" "$to/installed" && return 0
	cp "$here/$1/package.json" "$here/$1/package-lock.json" "$to/" &&
		npm ci --prefix "$to" --no-audit --no-fund --ignore-scripts --prefer-offline >"$to/npm.log" 2>&1 &&
		cp "$to/package-lock.json" "$to/installed"
}
for name in $generations; do
	packages "$name" &
	eval "npm_$name=\$!"
done
for name in $generations; do
	eval "wait \$npm_$name" && continue
	[ -d "$cache/$name/node_modules/e2b" ] && [ ! -f "$cache/$name/installed" ] && rm -rf "$cache/$name"
	echo "1..0 # SKIP npm cannot install $name/: $(grep -m 1 'npm error' "$cache/$name/npm.log" 2>/dev/null | cut -c 1-100)"
	exit 0
done

# drive GENERATION WAY, with the environment that the README tells to set
drive() {
	timeout 170 node --require "$here/resolve.js" "$here/drive.js" "$cache/$1" "$2" $words >"$work/tap" 2>&1
	status=$?
	grep -v '^[^#no]\|^$' "$work/tap"
	if ! grep -q '^# ran ' "$work/tap"; then
		echo "not ok - e2b, $1, $2: comes to its end"
		sed 's/^/# status '$status': /' "$work/tap" | tail -5
	fi
}

need_daemon
: >"$work/all"
for way in $ways; do
	[ "$way" = plain ] || continue
	for name in $generations; do
		E2B_API_KEY=$key E2B_API_URL=$url E2B_SANDBOX_URL=$url E2B_VOLUME_API_URL=$url E2B_COMPAT_DOMAIN=localhost \
			drive "$name" plain | tee -a "$work/all"
	done
done
case $ways in *tls*)
	domain=box.localhost
	stop_daemon
	(cd "$work" && "$ATOLL" cert "$domain" >cert.out 2>&1) || { cat "$work/cert.out" | sed 's/^/# /'; echo "Bail out! no certificate"; exit 1; }
	start_daemon --tls-cert "$work/$domain.crt" --tls-key "$work/$domain.key" --domain "$domain"
	for name in $generations; do
		E2B_API_KEY=$key E2B_DOMAIN=$domain:${url##*:} E2B_COMPAT_DOMAIN=$domain NODE_EXTRA_CA_CERTS=$work/$domain.crt \
			drive "$name" tls | tee -a "$work/all"
	done
	;;
esac
count=$(grep -c '^ok \|^not ok ' "$work/all")
echo "1..$count"
! grep -q '^not ok' "$work/all"
