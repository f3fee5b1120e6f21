#!/bin/sh
# versions.sh - several versions of a language side by side: builds node-18, node-20 and node-22 from npm and the Go templates from
# Debian's packages, and runs programs in them (make templates; minutes, as root).
libs=$(cd "$(dirname "$0")/../system" && pwd)
. "$libs/daemon.lib"
. "$libs/registry.lib"
. "$libs/mirrors.lib"

ended() { api GET "/v1/builds/$id" && case $(get .state) in waiting | building) false ;; esac; }
builds() {
	api POST /v1/templates "{\"name\":\"$1\"}"
	is "$code" 202 "$body"
	id=$(get .id)
	until ended; do sleep 0.5; done # tests/run ends a build that hangs
	echo "# $1: $(get .state)"
}
runs() { # LANGUAGE@VERSION CODE OUTPUT
	api POST /v1/run "$(jq -nc --arg l "$1" --arg c "$2" '{language:$l, code:$c}')"
	has "$(get .stdout)$(get .stderr)" "$3" "$body"
}

three_versions_of_node_run_side_by_side() {
	for v in 18 20 22; do
		builds node-$v
		is "$(get .state)" ready "$body"
	done
	for v in 18 20 22; do runs node@$v 'console.log(process.version)' v$v.; done
}

a_newer_go_runs_beside_the_one_of_the_host() {
	. /usr/lib/os-release
	case $VERSION_CODENAME in bookworm) has=1-23 lacks=1-24 ;; *) has=1-24 lacks=1-23 ;; esac
	builds go-$has
	is "$(get .state)" ready "$body"
	runs go@${has%-*}.${has#*-} 'package main
import ("runtime"; "slices")
func main() { println(runtime.Version(), slices.Max([]int{1, 42})) }' "go1.${has#*-}"
	builds go-$lacks
	is "$(get .state)" error "$body"
	api GET "/v1/builds/$id/log"
	has "$body" "packages.apt_mirrors has no Go 1.${lacks#*-}"
	has "$body" " 1.${has#*-}"
}

mirror_npm
mirror_apt
run_daemon_tests
end_mirrors
exec 7>&- 8>&-
