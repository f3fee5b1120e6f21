#!/bin/sh
# engine_change.sh - one changed byte of an engine is found, with the old size and time of modification too: at the next
# box, and by its hash when a new keeper examines it. The engine is runsc, in a /usr that only this test sees.
if [ "$(id -u)" = 0 ] && [ -z "${OWN_USR-}" ]; then
	OWN_USR=yes exec unshare -m --propagation private "$0" "$@"
fi
[ -x /usr/bin/runsc ] || { echo "1..0 # SKIP no runsc (apt install runsc)"; exit 0; }
[ -x "${ATOLL_TEST_BIN-}" ] || { echo "1..0 # SKIP ATOLL_TIER needs a build with test hooks"; exit 0; }
export ATOLL="$ATOLL_TEST_BIN" ATOLL_TIER=gvisor
. "$(dirname "$0")/daemon.lib"

own_usr() {
	mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work &&
		mount -t overlay -o lowerdir=/usr,upperdir=/mnt/upper,workdir=/mnt/work none /usr &&
		cp -p /usr/bin/runsc /usr/bin/runsc.new && mv /usr/bin/runsc.new /usr/bin/runsc
}
# The last of the first 16 bytes of an ELF file is not used.
change_byte() {
	before=$(stat -c '%s %Y' /usr/bin/runsc)
	cp -p /usr/bin/runsc /usr/bin/runsc.new # a file that is executed cannot be written
	printf "$1" | dd of=/usr/bin/runsc.new bs=1 seek=15 conv=notrunc status=none
	touch -r /usr/bin/runsc /usr/bin/runsc.new
	mv /usr/bin/runsc.new /usr/bin/runsc
	is "$(stat -c '%s %Y' /usr/bin/runsc)" "$before"
}
engine_hash() { api GET /v1/tiers && hash=$(get '.items[] | select(.tier == "gvisor") | .engine_sha256') && [ "${#hash}" = 64 ]; }
it_runs() { api POST /v1/run '{"command": "echo it runs"}' && [ "$(get .stdout)" = "it runs" ]; }
another_hash() { engine_hash && [ "$hash" != "$was" ]; }

a_changed_byte_of_an_engine_is_found_at_the_next_box() {
	soon it_runs
	soon engine_hash
	was=$hash
	change_byte '\001'
	api POST /v1/run '{"command": "true"}'
	is "$code" 409 "$body"
	has "$body" "isolation tier gvisor: /usr/bin/runsc has changed and is examined again"
	soon another_hash # the server asks at once, and not after a minute: without this the test would wait for that
	soon it_runs
}

another_keeper_finds_a_changed_byte_by_the_hash() {
	soon engine_hash
	was=$hash
	keeper=$("$ATOLL" doctor --json | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)
	change_byte '\002' # first: the next keeper examines the engine as soon as it starts
	kill -9 "$keeper"
	soon another_hash
}

[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
own_usr || { echo "1..0 # SKIP no overlay over /usr here"; exit 0; }
need_daemon
run_tests
