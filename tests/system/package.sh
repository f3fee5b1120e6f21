#!/bin/sh
# package.sh - what the packages are made from is complete: needs, users, settings, SBOM, tarball. `make check-deb` and
# `make dist` build them.
. "$(dirname "$0")/lib.sh"
top=$(cd "$here/../.." && pwd)

the_package_builds_with_the_needs_of_up() {
	sed -n '/^Build-Depends:/,/^$/p' "$top/debian/control" | sed 's/([^)]*)//; s/[ ,]//g; s/|/\n/' >given
	# A compiler, make and libc are in build-essential; curl is for ./up itself.
	sed -n 's/^build[[:space:]]*\(cmd:[^=]*=\)\{0,1\}//p' "$top/scripts/packages" | grep -vxE 'gcc|make|libc6-dev|curl' | tr '|' '\n' >wanted
	[ "$(wc -l <wanted)" -gt 10 ] || fail "scripts/packages has other lines now"
	while read -r need; do
		grep -qx "$need" given || fail "debian/control does not build-depend on $need"
	done <wanted
}

the_version_of_the_package_is_that_of_the_sources() {
	version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$top/meson.build" | head -n 1)
	is "$(sed -n '1s/.*(\(.*\)).*/\1/p' "$top/debian/changelog")" "$version"
	has "$("$top/scripts/version")" "$version"
}

# The ids that processes of the daemon change to, as src/daemon has them.
every_user_of_the_daemon_is_made_by_the_package() {
	grep -hoE '[A-Z]+_UID = [0-9]+' "$top"/src/daemon/*.c | sed 's/.* = //' | sort >used
	[ "$(wc -l <used)" -ge 3 ] || fail "src/daemon has other lines now"
	sed -n 's/^	make_user [a-z-]* \([0-9]*\)$/\1/p' "$top/debian/atoll.postinst" | sort >made
	is "$(cat made)" "$(cat used)"
	for user in $(sed -n 's/^	make_user \([a-z-]*\) .*/\1/p' "$top/debian/atoll.postinst"); do
		grep -q "for user in .*\b$user\b" "$top/debian/atoll.postrm" || fail "a purge does not delete the user $user"
	done
}

the_scripts_of_the_package_are_shell_scripts() {
	for file in "$top"/debian/atoll.p*; do
		sh -n "$file"
		grep -qx '#DEBHELPER#' "$file" || fail "$file has no place for debhelper"
	done
	make -n -f "$top/debian/rules" -C "$top" override_dh_auto_build >/dev/null 2>&1 || fail "debian/rules"
}

the_example_of_a_settings_file_is_valid() {
	"$ATOLL" config example >config.toml
	has "$("$ATOLL" config check config.toml)" "0 settings differ"
	# Plans, which have no row in the table of settings, are after the last one.
	is "$(sed '/^#\[plan/,$d' config.toml | grep -c '^#[a-z_0-9]* = ')" "$("$ATOLL" config show --json | jq length)"
}

# The names that Compose knows; an unknown one would be an error of `docker compose config`, which is not there in a test.
the_compose_file_is_valid_and_names_every_privilege_that_its_page_explains() {
	/usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "no python3-yaml"
	/usr/bin/python3 - "$top/deploy/container" <<-'END' || fail "see above"
		import os, sys, yaml
		d = yaml.safe_load(open(sys.argv[1] + "/compose.yaml"))
		page = open(sys.argv[1] + "/README.md").read()
		assert set(d) == {"services", "volumes"}, set(d)
		s = d["services"]["atoll"]
		known = {"build", "image", "cgroup", "cap_add", "security_opt", "volumes", "tmpfs", "ports", "stop_grace_period", "restart"}
		assert set(s) <= known, set(s) - known
		context = os.path.normpath(sys.argv[1] + "/" + s["build"]["context"])
		assert os.path.samefile(os.path.dirname(context) + "/deploy/container/Dockerfile", sys.argv[1] + "/Dockerfile")
		for text in s["cap_add"] + s["security_opt"] + ["cgroup: host"]:
		    assert f"`{text}`" in page, text
		assert all(p.startswith("127.0.0.1:") for p in s["ports"]), s["ports"]
	END
}

the_sbom_has_the_fields_that_spdx_requires() {
	command -v node >/dev/null || skip "no node"
	"$top/scripts/sbom" "${ATOLL}d" "$ATOLL" >out
	is "$(json out 'd["spdxVersion"] + " " + d["dataLicense"] + " " + d["SPDXID"]')" "SPDX-2.3 CC0-1.0 SPDXRef-DOCUMENT"
	/usr/bin/python3 - <<-'END' || fail "see above"
		import json, re
		d = json.load(open("out"))
		ids = {"SPDXRef-DOCUMENT"} | {p["SPDXID"] for p in d["packages"]}
		assert len(ids) == len(d["packages"]) + 1, "an id occurs twice"
		assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids), ids
		assert d["name"] and re.fullmatch(r"https?://[^#\s]+", d["documentNamespace"])
		made = d["creationInfo"]
		assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["created"]), made
		assert made["creators"] and all(re.match(r"(Tool|Person|Organization): \S", c) for c in made["creators"])
		for p in d["packages"]:
		    assert p["name"] and p["downloadLocation"] and p["filesAnalyzed"] is False, p
		    assert p["licenseDeclared"] and p["licenseConcluded"] and p["copyrightText"], p
		    assert all(r["referenceType"] == "purl" and r["referenceLocator"].startswith("pkg:") for r in p["externalRefs"]), p
		    for c in p.get("checksums", []):
		        assert c["algorithm"] == "SHA512" and re.fullmatch(r"[0-9a-f]{128}", c["checksumValue"]), p
		kinds = {"DESCRIBES", "DYNAMIC_LINK", "DEPENDS_ON", "STATIC_LINK", "CONTAINS", "BUILD_TOOL_OF"}
		for r in d["relationships"]:
		    assert r["spdxElementId"] in ids and r["relatedSpdxElement"] in ids and r["relationshipType"] in kinds, r
		related = {r["spdxElementId"] for r in d["relationships"]} | {r["relatedSpdxElement"] for r in d["relationships"]}
		assert ids == related, ids - related
	END
	# What is in the lock file, without tools for tests and programs for other processors, is there once each.
	is "$(jq '[.packages[] | select(.externalRefs[0].referenceLocator | startswith("pkg:npm/"))] | length' out)" \
		"$(jq '[.packages | to_entries[] | select(.key != "" and (.value.dev or .value.optional | not))] | length' "$top/ui/package-lock.json")"
	if command -v dpkg-query >/dev/null && ldd "${ATOLL}d" | grep -q libsqlite3; then
		is "$(jq -r '.packages[] | select(.name == "libsqlite3-0") | .versionInfo' out)" "$(dpkg-query -W -f '${Version}' libsqlite3-0)"
	fi
}

run_tests
