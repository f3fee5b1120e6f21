#!/bin/sh
# run.sh - `make chaos-cluster`: leases with real engines and random faults; then the same with one rule less each, which must
# be found. FAULTS (60) per engine, ENGINES ("postgres etcd"), RULES ("2 4 5 8"), BUSY (0) other runnable processes, SEED.
set -u
cd "$(dirname "$0")/../.."
. scripts/lib.sh
need_root
ninja -C build chaos_machine >build/chaos.log 2>&1 || { tail -n 20 build/chaos.log; exit 1; }
status=0
for engine in ${ENGINES:-postgres etcd}; do
	python3 tests/cluster/chaos.py "$PWD/build" "$engine" "${FAULTS:-60}" || status=1
done
for rule in ${RULES-2 4 5 8}; do
	if python3 tests/cluster/chaos.py "$PWD/build" postgres 200 $((1 << rule)); then
		echo "without rule $rule no item was on two machines at once: the suite does not find this mistake"
		status=1
	fi
done
exit $status
