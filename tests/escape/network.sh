#!/bin/sh
# network.sh - a box reaches no network but its own loopback.
. "$(dirname "$0")/lib.sh"
need_keeper

# Escape, HostLeak
sockets_of_the_host_are_not_reachable() {
	mkfifo listener.in
	# At a path that a box could use if it saw files of the host.
	dir=$(mktemp -d /tmp/atoll-socket.XXXXXX)
	trap 'rm -rf "$dir"' EXIT
	chmod 755 "$dir"
	"$PROBE" listen "$dir" <listener.in >listener.out &
	listener=$!
	exec 7>listener.in
	soon grep -q '^ready' listener.out
	verdicts "tcp=$(got_from listener tcp)" "tcp6=$(got_from listener tcp)" \
		"abstract=$(got_from listener abstract)" "socket-at=$(got_from listener path)" \
		"socket-at=$ATOLL_RUN/keeper.sock" socket-at=/run/docker.sock
	exec 7>&-
	wait "$listener"
	case $out in *" ok"*) escaped "$out" ;; esac
	is "$(got_from listener visitors)" 0
}

# Escape, HostLeak
a_box_has_only_a_loopback_interface() {
	facts interfaces routes
	shows interface lo
	[ "$(fact route4 | grep -vc Iface)" = 0 ] || escaped "$(fact route4)"
	[ -z "$(fact route6 | awk '$NF != "lo" && $1 != "?"')" ] || escaped "$(fact route6)"
}

# SelfDoS: servers and their clients in one box
a_box_has_its_own_loopback() {
	works own-loopback
}

# Lateral: consecutive boxes may share a network namespace, if the first one did not use it
a_network_namespace_is_clean_for_every_box() {
	facts network
	new=$(fact network)
	# A namespace is reused 100 ms after its box has ended, and a later box may get another one.
	rounds=4
	[ "$place" = box ] || rounds=60
	for _ in $(seq "$rounds"); do
		works own-loopback
		sleep 0.15
		facts network
		[ "$guest" ] || same "$(fact network)" "$new" "traces of the previous box"
	done
}

# Lateral: a network namespace that was used is not given to another box
a_used_network_namespace_is_not_reused() {
	container_only "a guest has a network stack of its own"
	kept() { ls -l "/proc/$keeper/fd" | grep -qF "$net"; }
	lost() { ! kept; }
	for action in own-loopback join-group=239.1.2.3 flow-label; do
		held 7 a "$action"
		is "$(got_from a "$action")" ok
		net=$(readlink "/proc/$program/ns/net")
		freed 7 a
		rm a.in
		[ "$place" = box ] || soon_limit=5 # of a mutant: it stays there
		(soon lost) >/dev/null || escaped "the keeper has it still, after $action"
	done
}

# Otherwise the two tests above would prove nothing.
an_unused_network_namespace_is_reused() {
	container_only "a guest has a network stack of its own"
	: >seen
	again() {
		facts ns
		fact ns | grep net: >this
		grep -qxFf this seen || { cat this >>seen && return 1; }
	}
	soon again
}

run_tests
