#!/bin/sh
# power_cut.sh - what a power failure leaves of durable checkpoints. `make power-cut`. CUTS (10): how many.
#
# The state of the daemon is on a file system in a file, on a loop device. That file is on another file system, which is frozen at
# random moments for a copy: every block that was written until then is in the copy, and nothing later. What the kernel had not
# written yet is lost, as in a power failure. Each copy is mounted, which replays its journal, and a daemon is started with it: every
# checkpoint that had been answered as durable before the cut must be there, with its files.
libs=$(cd "$(dirname "$0")/../system" && pwd)
. "$libs/daemon.lib"
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine have checkpoints"; exit 0; }
for tool in mkfs.ext4 fsfreeze losetup; do
	command -v "$tool" >/dev/null || { echo "1..0 # SKIP needs $tool"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
cuts=${CUTS:-10}
outer=$work/outer copies=$work/copies

new_disk() { # FILE SIZE FOLDER
	truncate -s "$2" "$1"
	mkfs.ext4 -q -F "$1" || exit 1
	mkdir -p "$3"
	mount -o loop "$1" "$3" || { echo "1..0 # SKIP no loop device: mount -o loop failed"; exit 0; }
}
unmount_all() { # the daemon has ended
	fsfreeze -u "$outer" 2>/dev/null
	umount "$work/cut" 2>/dev/null
	umount "$state" 2>/dev/null || umount -l "$state" 2>/dev/null
	umount "$outer" 2>/dev/null || umount -l "$outer" 2>/dev/null
}
finish() { # of lib.sh, at the end of finish_daemon
	unmount_all
	rm -rf "$work"
}
trap finish_daemon EXIT
new_disk "$work/outer.img" 300M "$outer"
new_disk "$outer/state.img" 200M "$state"
mkdir -p "$copies"
need_daemon

# A client: each checkpoint has a file with its number. Lines of `durable`: id and number.
work_until_stopped() {
	n=0
	while [ ! -e stop ]; do
		n=$((n + 1))
		api PUT "/v1/boxes/$1/files?path=f$((n % 7))" "$n"
		api POST "/v1/boxes/$1/checkpoints" '{"wait":"durable"}'
		[ "$code $(get .durable)" = "201 true" ] || { echo "checkpoint $n: $code $body" >client_failed; break; }
		echo "$(get .id) f$((n % 7)) $n" >>durable
	done
}

check_cut() { # NUMBER: the copy
	mkdir -p "$work/cut"
	mount -o loop "$copies/$1.img" "$work/cut" || { is "cut $1" "a file system that can be mounted"; return; }
	(
		export ATOLL_RUN=$work/cutrun
		mkdir -p "$ATOLL_RUN"
		"$ATOLL" serve --listen 127.0.0.1:0 --state "$work/cut" >/dev/null 2>"$work/cut.log" &
		server=$!
		serves() { grep -q 'serving on unix:' "$work/cut.log" || ! kill -0 $server 2>/dev/null; }
		soon serves
		url=$(sed -n 's/^atoll: serving on \(http[^ ]*\)$/\1/p' "$work/cut.log")
		lost=0 seen=0
		while read -r id name n; do
			seen=$((seen + 1))
			api GET "/v1/checkpoints/$id"
			[ "$code" = 200 ] || { echo "# cut $1: checkpoint $id ($n): $code $body" && lost=$((lost + 1)); }
		done <"$copies/$1.durable"
		tail -n 3 "$copies/$1.durable" >last
		while read -r id name n; do
			api GET "/v1/checkpoints/$id/files?path=$name"
			[ "$code $body" = "200 $n" ] || { echo "# cut $1: $name of checkpoint $id is not $n: $code $body" && lost=$((lost + 1)); }
		done <last
		echo "# cut $1: $seen durable checkpoints, $lost lost"
		"$ATOLL" stop --all >/dev/null 2>&1 || kill $server
		wait $server
		echo $lost >"$copies/$1.lost"
	)
	umount "$work/cut"
}

no_durable_checkpoint_is_lost() {
	api POST /v1/boxes '{}'
	is "$code" 201 "$body"
	box=$(get .id)
	: >durable
	mkdir client
	(cd client && ln -s ../stop stop && ln -s ../durable durable && work_until_stopped "$box") &
	client=$!
	for cut in $(seq "$cuts"); do
		sleep "$(awk -v seed="$cut${SEED:-}" 'BEGIN { srand(seed); print 0.2 + rand() }')" # the moment of the cut
		cp durable "$copies/$cut.durable"
		fsfreeze -f "$outer" || is "freeze" "done"
		cp --sparse=always "$outer/state.img" "$copies/$cut.img"
		fsfreeze -u "$outer"
	done
	: >stop
	wait $client
	[ ! -e client/client_failed ] || is "$(cat client/client_failed)" ""
	[ -s durable ] || is "no checkpoint" "some"
	api DELETE "/v1/boxes/$box"
	for cut in $(seq "$cuts"); do
		check_cut "$cut"
		is "$(cat "$copies/$cut.lost")" 0 "cut $cut"
		rm "$copies/$cut.img"
	done
}


run_tests no_durable_checkpoint_is_lost
