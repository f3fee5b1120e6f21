#!/bin/sh
# engine_faults_etcd.sh - engine_faults.sh with three members of etcd as coordinator.
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
coordinator=etcd exec sh "$here/engine_faults.sh"
