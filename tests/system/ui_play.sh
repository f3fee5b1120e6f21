#!/bin/sh
# ui_play.sh - programs in a browser: /play/, and "Run in the browser" of the web UI. Needs the files that
# `atoll tier prepare play` installs from npm; ATOLL_PLAY_MODULES names a node_modules folder that has them.
. "$(dirname "$0")/ui.lib"
"$ATOLL" tier prepare play --state "$state" ${ATOLL_PLAY_MODULES:+--from "$ATOLL_PLAY_MODULES"} >"$work/prepare.log" 2>&1 ||
	skip_all "the interpreters cannot be had: $(tail -1 "$work/prepare.log")"
run_journeys play.mjs
