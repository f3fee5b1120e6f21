#!/bin/sh
# power_cut.sh - what a power failure leaves of durable checkpoints and of boxes that are paused to the disk. `make power-cut`.
# CUTS (10): how many.
#
# The state of the daemon is on a file system in a file, on a loop device. That file is on another file system, which is frozen at
# random moments for a copy: every block that was written until then is in the copy, and nothing later. What the kernel had not
# written yet is lost, as in a power failure. Each copy is mounted, which replays its journal, and a daemon is started with it: every
# checkpoint that had been answered as durable before the cut must be there, with its files, and a box whose pause to the disk had
# been answered is paused there, and its program continues when it is resumed.
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

# Another client: a box is paused to the disk and resumed. The last line of `pauses` is `paused` as long as the box must be. The
# shell in it writes a variable again and again.
pause_until_stopped() {
	while [ ! -e stop ]; do
		api POST "/v1/boxes/$1/pause" '{"to":"disk"}'
		[ "$code $(get .paused_to)" = "200 disk" ] || { echo "pause: $code $body" >pause_failed; break; }
		echo paused >>pauses
		sleep 0.6
		while [ -e cutting ]; do sleep 0.05; done
		echo resumed >>pauses
		api POST "/v1/boxes/$1/resume" '{}'
		[ "$code" = 200 ] || { echo "resume: $code $body" >pause_failed; break; }
		sleep 0.1
	done
}
# In the daemon of a copy: prints why the box is not what it was.
check_paused() { # BOX
	api GET "/v1/boxes/$1"
	[ "$code $(get '[.state, .paused_to] | join(" ")')" = "200 paused disk" ] || { echo "the box: $code $body"; return; }
	api POST "/v1/boxes/$1/resume" '{}'
	[ "$code" = 200 ] || { echo "its resume: $code $body"; return; }
	api DELETE "/v1/boxes/$1/files?path=beat"
	beats() { api GET "/v1/boxes/$1/files?path=beat" && [ "$body" = "$(cat ../word)" ]; }
	soon beats "$1"
}

check_cut() { # NUMBER: the copy
	mkdir -p "$work/cut"
	mount -o loop "$copies/$1.img" "$work/cut" || { is "cut $1" "a file system that can be mounted"; return; }
	(
		export ATOLL_RUN=$work/cutrun
		mkdir -p "$ATOLL_RUN"
		log=$work/cut$1.log
		: >"$log"
		"$ATOLL" serve --listen 127.0.0.1:0 --state "$work/cut" >/dev/null 2>"$log" &
		server=$!
		serves() { grep -q 'serving on unix:' "$log" || ! kill -0 $server 2>/dev/null; }
		soon serves
		url=$(sed -n 's/^atoll: serving on \(http[^ ]*\)$/\1/p' "$log")
		[ "$url" ] || sed "s/^/# cut $1: /" "$log"
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
		was=$(tail -n 1 "$copies/$1.pauses")
		if [ "$was" = paused ]; then
			check_paused "$paused" >why
			[ ! -s why ] || { echo "# cut $1: $(cat why)" && lost=$((lost + 1)); }
		fi
		echo "# cut $1: $seen durable checkpoints, a box that was ${was:-running}, $lost lost"
		api DELETE "/v1/boxes/$paused"
		"$ATOLL" stop --all >/dev/null 2>&1 || kill $server
		wait $server
		echo $lost >"$copies/$1.lost"
	)
	is_unmounted() { umount "$work/cut" 2>/dev/null; } # its keeper may still end processes
	soon is_unmounted
}

no_durable_checkpoint_is_lost() {
	api POST /v1/boxes '{}'
	is "$code" 201 "$body"
	box=$(get .id)
	: >durable
	mkdir client
	(cd client && ln -s ../stop stop && ln -s ../durable durable && work_until_stopped "$box") &
	client=$!
	api POST /v1/boxes '{}'
	paused=$(get .id)
	api POST "/v1/boxes/$paused/execs" '{"command":"read word </proc/sys/kernel/random/uuid; echo $word >word; while sleep 0.05; do echo $word >beat; done","background":true}'
	beats_first() { api GET "/v1/boxes/$paused/files?path=beat" && [ "$code" = 200 ] && [ "$body" ]; }
	soon beats_first
	echo "$body" >../word
	: >pauses
	mkdir pauser
	(cd pauser && ln -s ../stop stop && ln -s ../pauses pauses && ln -s ../cutting cutting && pause_until_stopped "$paused") &
	pauser=$!
	for cut in $(seq "$cuts"); do
		sleep "$(awk -v seed="$cut${SEED:-}" 'BEGIN { srand(seed); print 0.2 + rand() }')" # the moment of the cut
		: >cutting
		sleep 0.2 # a resume that begins now is in the list
		cp durable "$copies/$cut.durable"
		cp pauses "$copies/$cut.pauses"
		fsfreeze -f "$outer" || is "freeze" "done"
		cp --sparse=always "$outer/state.img" "$copies/$cut.img"
		fsfreeze -u "$outer"
		rm cutting
	done
	: >stop
	wait $client $pauser
	[ ! -e pauser/pause_failed ] || is "$(cat pauser/pause_failed)" ""
	grep -qx paused "$copies"/*.pauses || is "no cut found a paused box" "some"
	[ ! -e client/client_failed ] || is "$(cat client/client_failed)" ""
	[ -s durable ] || is "no checkpoint" "some"
	for one in $box $paused; do api DELETE "/v1/boxes/$one"; done
	for cut in $(seq "$cuts"); do
		check_cut "$cut"
		is "$(cat "$copies/$cut.lost")" 0 "cut $cut"
		rm "$copies/$cut.img"
	done
}


run_tests no_durable_checkpoint_is_lost
