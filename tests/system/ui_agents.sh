#!/bin/sh
# ui_agents.sh - the web UI in a browser: agents, with a model that replies from a script (model.py), and records of runs.
. "$(dirname "$0")/ui.lib"
mkdir "$work/models"
python3 "$libs/model.py" "$work/models" &
model=$!
trap 'kill "$model"; finish_daemon' EXIT
soon test -e "$work/models/port"
cat >"$work/models.toml" <<-EOF
	[provider.scripted]
	dialect = "chat"
	base = "http://127.0.0.1:$(cat "$work/models/port")/v1"
	key = "sk-scripted"
	[model.scripted]
	provider = "scripted"
	name = "scripted-1"
	price = { in = 10.0, out = 0.0, cache_read = 0.0, cache_write = 0.0 }
	[role]
	agent = ["scripted"]
EOF
chmod 600 "$work/models.toml"
export ATOLL_MODELS="$work/models.toml" MODEL_SCRIPTS="$work/models"
run_journeys agents.mjs
