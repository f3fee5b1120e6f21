#!/bin/sh
# leases_etcd.sh - leases.sh with etcd as coordinator, in a network namespace, where its ports are free.
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
coordinator=etcd exec unshare --net sh -c 'ip link set lo up && exec sh "$1"' leases "$here/leases.sh"
