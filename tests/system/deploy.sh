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

# rendered_chart [PYTHON]: with the values that PYTHON changes in v; by helm where it is installed, else by tests/deploy/render.go, which has those
# functions of helm that the templates use.
rendered_chart() {
	/usr/bin/python3 - "$root/deploy/kubernetes/chart/values.yaml" "${1:-}" >values.json <<'PY'
import json, sys, yaml
v = yaml.safe_load(open(sys.argv[1]))
exec(sys.argv[2])
print(json.dumps(v))
PY
	if command -v helm >/dev/null; then
		helm template atoll "$root/deploy/kubernetes/chart" --values values.json
	else
		GOCACHE=$work/go GOFLAGS= /usr/bin/go run "$root/tests/deploy/render.go" values.json "$root"/deploy/kubernetes/chart/templates/*.yaml
	fi
}

the_chart_has_the_same_objects_as_the_base() {
	[ "$has_kubectl" ] || skip "kubectl is not installed"
	/usr/bin/python3 -c 'import yaml' || skip "python3-yaml is not installed"
	command -v helm >/dev/null || [ -x /usr/bin/go ] || skip "neither helm nor go is installed"
	rendered_chart >chart || fail "the chart is not rendered"
	kubectl kustomize "$root/deploy/kubernetes/base" >base
	/usr/bin/python3 - base chart >differences <<'PY' || fail "$(cat differences)"
import json, re, sys, yaml
def objects(path):
    found = {}
    for d in yaml.safe_load_all(open(path)):
        if not d or d["kind"] == "Namespace":
            continue  # helm install --create-namespace
        d["metadata"].pop("namespace", None)
        text = re.sub(r"(atoll-(?:gateway|node))-[a-z0-9]{10}\b", r"\1", json.dumps(d, sort_keys=True, indent=1))  # of the ConfigMap generator
        found[d["kind"] + " " + re.sub(r"-[a-z0-9]{10}$", "", d["metadata"]["name"])] = text
    return found
a, b = objects(sys.argv[1]), objects(sys.argv[2])
for name in sorted(set(a) | set(b)):
    if a.get(name) != b.get(name):
        print(name, a.get(name), b.get(name), sep="\n")
        sys.exit(1)
sys.exit(len(a) < 9)
PY
	rendered_chart 'v["gateways"]["replicas"] = 3; v["etcd"] = ["http://a:2379", "http://b:2379"]; v["nodes"]["nodeSelector"] = {"pool": "boxes"}' >chart
	has "$(cat chart)" atoll-gateway-2.atoll-gateways:7071
	has "$(cat chart)" 'ATOLL_CLUSTER_ETCD: "http://a:2379,http://b:2379"'
	has "$(cat chart)" 'nodeSelector: {"pool":"boxes"}'
	if rendered_chart 'v["database"] = ""' >chart 2>why; then fail "a chart without a database was rendered"; fi
	has "$(cat why)" 'a connection string without password'
}

run_tests
