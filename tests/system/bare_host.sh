#!/bin/sh
# bare_host.sh - a host without engines: doctor names the command that adds each tier; after runsc has been installed, and nothing else, boxes
# of gvisor work. In a /usr that only this test sees.
if [ "$(id -u)" = 0 ] && [ -z "${OWN_USR-}" ]; then
	OWN_USR=yes exec unshare -m --propagation private "$0" "$@"
fi
. "$(dirname "$0")/daemon.lib"
export ATOLL_ISOLATION_PROVE=true

bare_usr() {
	mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work &&
		mount -t overlay -o lowerdir=/usr,upperdir=/mnt/upper,workdir=/mnt/work none /usr || return
	[ ! -x /usr/bin/runsc ] || cp -p /usr/bin/runsc /mnt/runsc
	rm -rf /usr/bin/runsc /usr/bin/qemu-system-* /usr/bin/wasm2c /usr/local/lib/atoll/wasm
}
# tier NAME FIELD of doctor
tier() { "$ATOLL" doctor --json | jq -r --arg name "tier $1" --arg field "$2" '.[] | select(.name == $name) | .[$field]'; }

only_containers_are_offered_and_every_other_tier_names_its_command() {
	api GET /v1/tiers
	is "$(get '[.items[] | select(.offered) | .tier] | join(" ")')" container
	is "$(tier container status)" ok
	has "$(tier gvisor fix)" "apt install runsc"
	has "$(tier microvm fix)" "apt install qemu-system-x86"
	has "$(tier wasm fix)" "atoll tier prepare wasm"
	has "$(tier process fix)" "isolation.process = true"
	out=$("$ATOLL" run --isolation gvisor -- true 2>&1) && fail "it ran: $out"
	has "$out" "apt install runsc"
}

boxes_of_gvisor_work_after_runsc_was_installed() {
	[ -x /mnt/runsc ] || skip "no runsc on this host (apt install runsc)"
	mv /mnt/runsc /usr/bin/runsc # no refresh: a rejection makes the daemon look again
	in_gvisor() { out=$("$ATOLL" run --isolation gvisor -- uname -r) && [ "$out" = 4.4.0 ]; } # after its proof
	soon in_gvisor
	is "$(tier gvisor status)" ok
}

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
bare_usr || { echo "1..0 # SKIP no overlay over /usr here"; exit 0; }
run_daemon_tests
