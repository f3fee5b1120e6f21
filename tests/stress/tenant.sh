#!/bin/sh
# tenant.sh [WORD...] - a tenant with one editor's key against the machine: see tenant.py, which has the attacks. WORDs
# select attacks by name. TENANT_SECONDS (15) for each; TENANT_RATIO (10): how much slower the other team may be
# served; 0: not checked, for machines with other load.
libs=$(cd "$(dirname "$0")/../system" && pwd)
words=$* && set --
. "$libs/daemon.lib"
export ATOLL_HISTORY_SIZE=${ATOLL_HISTORY_SIZE:-64M}
need_daemon
team() { # NAME ROLE: creates a team, prints its key
	curl -sS -o /dev/null -X PUT -H "X-API-Key: $key" -d '{}' "$url/v1/teams/$1"
	curl -sS -H "X-API-Key: $key" -d "{\"name\":\"only\",\"role\":\"$2\",\"team\":\"$1\"}" "$url/v1/keys" | jq -r .key
}
TENANT_KEY=$(team tenant editor) OTHER_KEY=$(team other viewer)
export TENANT_KEY OTHER_KEY
/usr/bin/python3 "$libs/../stress/tenant.py" $words
