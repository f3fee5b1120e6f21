#!/bin/sh
# tenant.sh [WORD...] - a tenant with one editor's key against the machine: see tenant.py, which has the attacks. WORDs
# choose those with one of them in their name. TENANT_SECONDS (15) for each, TENANT_RATIO (10): how much slower the
# other team may be served; 0: it is not judged, for machines that others use too.
libs=$(cd "$(dirname "$0")/../system" && pwd)
words=$* && set --
. "$libs/daemon.lib"
export ATOLL_HISTORY_SIZE=${ATOLL_HISTORY_SIZE:-64M}
need_daemon
team() { # NAME ROLE: a team, and the key of its only member
	curl -sS -o /dev/null -X PUT -H "X-API-Key: $key" -d '{}' "$url/v1/teams/$1"
	curl -sS -H "X-API-Key: $key" -d "{\"name\":\"only\",\"role\":\"$2\",\"team\":\"$1\"}" "$url/v1/keys" | jq -r .key
}
TENANT_KEY=$(team tenant editor) OTHER_KEY=$(team other viewer)
export TENANT_KEY OTHER_KEY
/usr/bin/python3 "$libs/../stress/tenant.py" $words
