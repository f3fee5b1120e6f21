# For contributors. Users need ./up, and ./check runs what CI runs.
PREFIX = /usr/local

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

build: build/build.ninja ## compile; leaves build/atoll, installs nothing
	@ninja -C build

build/build.ninja:
	@meson setup build

test: build ## unit tests of the plain build
	@meson configure build -Dunit_tests=true && ninja -C build
	@meson test -C build --no-rebuild --print-errorlogs

check: ## everything that CI runs (needs root)
	@./check

check-all: ## everything that CI runs, and the slow tests (needs root; half an hour and more)
	@./check --all

bench: build ## compare with plain fork, bubblewrap, crun, runc (needs root)
	@bench/run

bench-warm: build ## interpreters that wait in a box, beside the bare host (needs root)
	@bench/warm

tiers: ## the suites of API, files, cells, E2B, MCP and escapes in boxes of an isolation tier (needs root; TIER=plain; PART=api|e2b|packages|mcp|escape; RESULTS=DIR to continue; an hour)
	@PART="$(PART)" RESULTS="$(if $(RESULTS),$(abspath $(RESULTS)))" tests/tiers $(or $(TIER),plain)

bench-tiers: build ## what isolation tiers cost, beside a box without them (needs root)
	@bench/tiers

bench-roots: build ## boxes of an image, beside boxes of base (needs root)
	@bench/roots

bench-checkpoints: build ## checkpoints of files, beside cp -a of the same files (needs root)
	@bench/checkpoints && bench/checkpoints_http

cluster-api: build ## the tests of the API and E2B's packages through a gateway in front of three nodes (needs root; half an hour); ETCD=etcd
	@ninja -C build cluster_keys >/dev/null && tests/cluster/api.sh $(ETCD)

test-checkpoints: build ## 10,000 random changes with checkpoints in between, each compared (needs root)
	@build/layer_delta_test 10000

forks: build ## real programs continue in copies of their boxes (needs root; minutes)
	@ATOLL=$(abspath build/atoll) tests/forks/programs.sh
	@tests/run -b build tests/system/fork_memory.sh

escape-copies: build ## the tests of isolation in forks with memory and in boxes resumed from the disk, and without each step of a copy (needs root and build-test; minutes)
	@ninja -C build-test atoll atolld atoll-init probe copied >/dev/null
	@COPIES=all tests/run -b build -t 3600 tests/escape/copies.sh

bench-race: build ## eight attempts in copies of a box, together and one after the other (needs root)
	@bench/race

chaos-checkpoints: build ## kill -9 of every process at 1,000 moments of checkpoints, rollbacks, merges and diffs (needs root; 10 minutes)
	@KILLS=1000 ATOLL=$(abspath build/atoll) tests/system/checkpoint_kill.sh

chaos-pause: build ## kill -9 of every process at 30 moments of pauses to the disk and resumes (needs root; minutes)
	@ATOLL=$(abspath build/atoll) tests/stress/pause_kill.sh

power-cut: build ## block-level copies of the state disk at ten moments, and the durable checkpoints and paused boxes in each (needs root; a minute)
	@ATOLL=$(abspath build/atoll) tests/stress/power_cut.sh

bench-place: ## placement over a simulated fleet of 1,000 nodes
	@ninja -C build atoll-bench-place >/dev/null && build/atoll-bench-place --check

bench-cluster: ## what the hop from a gateway to a node costs, and placement over a simulated fleet
	@ninja -C build atoll-bench-relay atoll-bench-place >/dev/null && build/atoll-bench-place --check && build/atoll-bench-relay --check

bench-operations: build ## what rates, webhooks, traces, receipts and alerts cost (needs root)
	@bench/operations

bench-pipeline: build ## a wish through HTTP to verified code, its p50 (needs root)
	@bench/pipeline

bench-programs: build ## real programs with tests, judged, beside plain processes (needs root)
	@bench/programs

bench-e2b: build ## E2B's package, beside a server that does nothing (needs root, npm)
	@bench/e2b

bench-planner: build ## MBPP's texts through the planner (needs root, ATOLL_BENCH_DATA)
	@bench/planner

library: build ## every program of the planner's library in every language (needs root; minutes)
	@LIBRARY=all tests/run tests/system/library.sh

bench-ui: build ## how quick the web UI is on loopback, and what Lighthouse finds (needs root, chromium, npm)
	@ui/test/bench.sh

check-deploy: ## render the manifests of deploy/kubernetes and validate them with the schemas of kubernetes-models (needs kubectl, npm)
	@scripts/check-deploy

chaos-cluster: build ## leases of clusters with PostgreSQL, etcd and random faults (needs root; FAULTS=60; half an hour)
	@tests/cluster/run.sh

chaos-daemons: build ## gateways, nodes and boxes that restart elsewhere, with random faults (needs root; FAULTS=60, ENGINE=etcd; ten minutes)
	@unshare --net python3 -B tests/cluster/daemons.py $(CURDIR)/build $${FAULTS:-60} $${SEED:-}

node-loss: build ## single faults of nodes: lost in under 5 s, restarted elsewhere within 10 s (needs root; FAULTS=200; an hour)
	@unshare --net python3 -B tests/cluster/loss.py $(CURDIR)/build $${FAULTS:-200} $${ENGINE:-postgres} $${SEED:-}

rolling-restart: build ## upgrade and restart of every gateway and node under load (needs root; PREVIOUS=a build folder of the last release; a minute)
	@unshare --net python3 -B tests/cluster/rolling.py $(CURDIR)/build $(PREVIOUS)

engines-down: build ## PostgreSQL, then etcd, are away for a minute under load (needs root; DOWN=60)
	@unshare --net python3 -B tests/cluster/engines.py $(CURDIR)/build $(or $(DOWN),60) postgres
	@unshare --net python3 -B tests/cluster/engines.py $(CURDIR)/build $(or $(DOWN),60) etcd

bench-scaling: build ## creations per second through a gateway with one node and with three (needs root; two minutes)
	@unshare --net python3 -B tests/cluster/scaling.py $(CURDIR)/build

bench-nodes: build ## memory and CPU of a gateway with 1,000 simulated nodes (needs root; two minutes)
	@ninja -C build atoll-bench-nodes >/dev/null && bench/nodes

bounds-ui: build ## the web UI with 30 s offline, 1 GB of output, 100,000 files (needs root, chromium; minutes)
	@UI_OFFLINE_S=30 UI_FLOOD_MB=1000 UI_FILES=100000 tests/run -b build tests/system/ui_bounds.sh

journeys: build ## the browser tests that ./check leaves out (needs root, chromium; seven minutes)
	@tests/run -b build -j 2 $$(tests/journeys)

microvm: ## boxes in virtual machines, emulated where KVM does not run guests (needs root; minutes)
	@tests/stress/microvm.sh

templates: build ## build templates from npm and Debian packages and use them: web frameworks, a desktop, versions of languages (needs root, chromium, npm; minutes)
	@ui/test/web_templates.sh
	@ui/test/desktop.sh
	@tests/run -b build -t 3600 tests/stress/versions.sh

screenshots: build ## every screen of the web UI into build/screenshots (needs root, chromium)
	@ui/test/screenshots.sh

fuzz: ## run the fuzzers for a while
	@tests/fuzz/run

tenant: build ## one tenant tries to take the machine from others (needs root; minutes; a machine of your own)
	@ATOLL=$(abspath build/atoll) tests/stress/tenant.sh

wasm: build ## prepare every module of the isolation tier wasm, and test them (needs root, npm; a quarter of an hour)
	@tests/stress/wasm.sh

prove: build ## prove every isolation tier that this host can have (needs root and build-test; minutes)
	@PROBE=$(abspath build/probe) ATOLL=$(abspath build/atoll) ATOLL_TEST_BIN=$(abspath build-test/atoll) tests/stress/prove_tiers.sh

prove-mutants: build ## leave out every isolation step once and see the proof fail (needs root and build-test; minutes)
	@tests/run -b build -j 1 tests/stress/prove_mutants.sh tests/stress/process_mutants.sh tests/stress/engine_mutants.sh

day: build ## 2000 runs of 20 teams while server and keeper are killed; usage, figures, receipts and webhooks equal the records (needs root; RUNS=100000)
	@ATOLL=$(abspath build/atoll) tests/stress/day.sh $(or $(RUNS),2000)

alerts: build ## drive every alert to fire and to resolve with real load (needs root; eleven minutes)
	@tests/run -b build -j 1 tests/stress/alerts.sh

bench-usage: build ## reports of usage and lists of a store with 10^6 runs (minutes)
	@bench/usage

chaos: build ## clients at work while server, keeper and supervisor are killed, upgraded and reloaded (needs root; CHAOS_SECONDS=600)
	@ATOLL=$(abspath build/atoll) tests/stress/chaos.py

soak: build ## stress for hours: keepers and a daemon killed at random (needs root)
	@tests/soak.sh

soak-tiers: ## boxes of every isolation tier in use while their processes are killed (needs root; SECONDS=1800)
	@SECONDS=$(or $(SECONDS),1800) tests/stress/tiers_soak.sh

kill-tiers: ## kill each process of an isolation tier while a box starts, runs, is saved and is restored (needs root; minutes)
	@SOAK_PROGRAM=tests/stress/tiers_kill.py tests/stress/tiers_soak.sh

install: build ## install below PREFIX (default /usr/local)
	@meson configure build --prefix $(abspath $(PREFIX))
	@meson install -C build
	@[ "$$(dpkg-query -W -f '$${db:Status-Status}' atoll 2>/dev/null)" != installed ] || \
		echo "the package atoll is installed, too: $(PREFIX)/bin comes first in PATH, and a unit in $(PREFIX)/lib/systemd/system replaces the package's" >&2

uninstall: ## remove what `make install` installed; state and settings stay
	@ninja -C build uninstall
	@echo "left alone: /var/lib/atoll /run/atoll /run/atoll.ids /etc/atoll; a daemon that runs ends by: atoll stop --all"

deb: ## build the Debian package of HEAD into build-deb (needs root the first time, npm)
	@scripts/deb

check-deb: ## install, upgrade, remove and purge that package in a fresh Debian root (needs root, debootstrap; SUITE=bookworm or trixie)
	@scripts/check-deb $(SUITE)

check-image: ## build the container image of that package with buildah and run it with runc (needs root, debootstrap, runc)
	@scripts/check-image

dist: ## reproducible tarballs, SBOM and checksums of HEAD into build-dist (needs npm)
	@scripts/dist

check-dist: ## pack two clones and compare the bytes (needs npm; minutes)
	@scripts/check-dist

check-clean: ## ./up and ./check in a fresh Debian root (needs root, debootstrap; SUITE=bookworm or trixie)
	@scripts/check-clean $(SUITE)

format: ## rewrite the sources with clang-format
	@find src tests bench -name '*.[ch]' -exec clang-format -i {} +

clean: ## remove every build folder
	@rm -rf build build-*

.PHONY: help node-loss check-deploy escape-copies forks build test test-checkpoints check check-all bench bench-warm tiers bench-tiers bench-roots bench-cluster bench-operations bench-pipeline bench-programs bench-e2b bench-planner bench-usage library bench-ui bounds-ui journeys templates screenshots fuzz tenant wasm prove prove-mutants day chaos chaos-checkpoints chaos-pause power-cut chaos-cluster chaos-daemons soak soak-tiers kill-tiers install uninstall deb check-deb check-image dist check-dist check-clean format clean bench-checkpoints bench-race rolling-restart engines-down bench-scaling bench-nodes
