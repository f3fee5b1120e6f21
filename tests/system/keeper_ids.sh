#!/bin/sh
# keeper_ids.sh - the shares of user ids that the keepers of one host take: src/keeper/range.c.
# In a private /run, because all keepers of a host share the uid shares.
if [ "$(id -u)" = 0 ] && [ -z "${private_run-}" ] && unshare -m true 2>/dev/null; then
	export private_run=yes
	exec unshare -m --propagation private sh -c 'mount -t tmpfs tmpfs /run && exec "$0"' "$0"
fi
. "$(dirname "$0")/lib.sh"
[ "${private_run-}" ] || { echo "1..0 # SKIP not root, or no mount namespaces"; exit 0; }

chmod a+x "$work" "$TMPDIR" # a daemon's server is another user, and has to reach its folder

start_keeper() { # RUN_FOLDER: sets pid and said
	rm -f ready
	mkfifo ready
	ATOLL_RUN=$1 "$ATOLL" keeper --pool 0 --ready-fd 3 3>ready 2>>keeper.err &
	pid=$!
	said=$(dd bs=4096 count=1 2>/dev/null <ready)
}
eight_keepers() { # sets pids and first
	pids='' first=''
	for i in 1 2 3 4 5 6 7 8; do
		start_keeper "$PWD/r$i"
		is "$said" R
		pids="$pids $pid" first=${first:-$pid}
	done
}
end_all() { # PID...
	kill "$@" 2>/dev/null || :
	for p; do wait "$p" || :; done
}

a_ninth_keeper_is_refused_and_its_daemon_does_not_start() {
	eight_keepers
	start_keeper "$PWD/r9"
	has "$said" "keepers of this host have all user ids"
	status=0
	ATOLL_RUN=$PWD/r9 timeout 120 "$ATOLL" serve --listen 127.0.0.1:0 --state "$PWD/state" >serve.out 2>&1 || status=$?
	end_all $pids
	is "$status" 1 "$(cat serve.out)"
	has "$(cat serve.out)" "cannot serve without a keeper: start a keeper: 8 keepers of this host have all user ids"
	is "$(grep -c '"no keeper"' serve.out)" 1
}

a_uid_share_is_free_when_its_keeper_and_boxes_have_ended() {
	rm -rf /run/atoll.ids
	eight_keepers
	ATOLL_RUN=$PWD/r1 "$ATOLL" run -- sh -c 'echo in; sleep 60' >in &
	lives() { grep -q in in; }
	soon lives
	kill -9 "$first"
	end_all $pids
	# The folders of all keepers exist, and a box of the first keeper runs.
	start_keeper "$PWD/r9"
	is "$said" R
	is "$(readlink /run/atoll.ids/0)" "$PWD/r1"
	end_all "$pid"
	# The box holds the ids, not the folder.
	mv r1 away
	start_keeper "$PWD/r10"
	is "$said" R
	is "$(readlink /run/atoll.ids/0)" "$PWD/r1"
	end_all "$pid"
	mv away r1
	start_keeper "$PWD/r1"
	is "$said" R
	ATOLL_RUN=$PWD/r1 "$ATOLL" kill --local --all >/dev/null
	end_all "$pid"
	wait || :
}

run_tests
