#!/bin/sh
# deploy.sh - the manifests of deploy/kubernetes: they are rendered, and nodes have exactly the capabilities of the systemd unit.
. "$(dirname "$0")/lib.sh"
root=$here/../..
has_kubectl=$(command -v kubectl || :)

unit_caps() { sed -n 's/^CapabilityBoundingSet=//p' "$root/systemd/atoll.service" | tr ' ' '\n' | sed -n 's/^CAP_//p' | sort | xargs; }

manifest() {
	/usr/bin/python3 - "$1" <<'PY'
import sys, yaml
for d in yaml.safe_load_all(open(sys.argv[1])):
    if d and d["kind"] == "StatefulSet":
        pod = d["spec"]["template"]["spec"]
        for c in pod["containers"]:
            s = c["securityContext"]
            print(c["name"], "drop", *s["capabilities"]["drop"], "add", *sorted(s["capabilities"].get("add", [])))
            assert not s.get("privileged"), "privileged"
        if c["name"] == "gateway":
            assert pod["securityContext"]["runAsNonRoot"] and s["readOnlyRootFilesystem"] and not s["allowPrivilegeEscalation"]
        else:
            assert c["lifecycle"]["preStop"]["exec"]["command"] == ["atoll", "node", "drain", "self", "--wait"]
PY
}

nodes_have_the_capabilities_of_the_systemd_unit_and_gateways_have_none() {
	/usr/bin/python3 -c 'import yaml' || skip "python3-yaml is not installed"
	cat "$root/deploy/kubernetes/base/gateways.yaml" >all
	echo --- >>all
	cat "$root/deploy/kubernetes/base/nodes.yaml" >>all
	is "$(manifest all)" "gateway drop ALL add
node drop ALL add $(unit_caps)"
}

manifests_are_rendered() {
	[ "$has_kubectl" ] || skip "kubectl is not installed"
	/usr/bin/python3 -c 'import yaml' || skip "python3-yaml is not installed"
	for kind in base keda hpa; do
		kubectl kustomize "$root/deploy/kubernetes/$kind" >rendered || fail "$kind is not rendered"
		is "$(manifest rendered | grep -c .)" 2 "$kind"
	done
	# Every setting in them is one of the program.
	grep -o 'ATOLL_[A-Z_]*' rendered | sort -u >names
	for name in $(cat names); do
		grep -q "Ev $name" "$root/man/atoll.1" || fail "$name is not a setting"
	done
}

run_tests
