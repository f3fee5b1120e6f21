#!/bin/sh
# packages.sh - package sets: installed once, mounted in every box that requests them, from a mirror that the
# test creates. Only the mirror's two packages from Debian and npm need a network; their test is skipped without.
. "$(dirname "$0")/daemon.lib"
slow_tests="crates_are_compiled_to_programs
	npm_packages_are_found_from_any_folder"

# ---- a mirror ----

# wheel NAME VERSION [REQUIRES]
wheel() {
	/usr/bin/python3 - "$@" <<-'PY'
		import sys, zipfile
		name, version = sys.argv[1:3]
		z = zipfile.ZipFile(f"pip/{name}-{version}-py3-none-any.whl", "w")
		z.writestr(f"{name}/__init__.py", f"version = '{version}'\ndef main(): print('{name}', version)\n")
		d = f"{name}-{version}.dist-info"
		req = "".join(f"Requires-Dist: {r}\n" for r in sys.argv[3:])
		z.writestr(f"{d}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{req}")
		z.writestr(f"{d}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		z.writestr(f"{d}/entry_points.txt", f"[console_scripts]\n{name}-say = {name}:main\n")
		z.writestr(f"{d}/RECORD", "")
		z.close()
	PY
}
# source_package NAME CODE: with this setup.py
source_package() {
	mkdir "$1-1.0"
	echo "$2" >"$1-1.0/setup.py"
	tar -czf "pip/$1-1.0.tar.gz" "$1-1.0"
}
# npm_package NAME VERSION
npm_package() {
	/usr/bin/python3 - "$@" <<-'PY'
		import base64, hashlib, io, json, os, sys, tarfile
		name, version = sys.argv[1:3]
		b = io.BytesIO()
		t = tarfile.open(fileobj=b, mode="w:gz")
		def add(path, text):
		    i = tarfile.TarInfo("package/" + path)
		    i.size = len(text)
		    t.addfile(i, io.BytesIO(text.encode()))
		add("package.json", json.dumps({"name": name, "version": version, "main": "i.js"}))
		add("i.js", f"module.exports = '{name} {version}'\n")
		t.close()
		file = f"{name}-{version}.tgz"
		open("npm/" + file, "wb").write(b.getvalue())
		sri = "sha512-" + base64.b64encode(hashlib.sha512(b.getvalue()).digest()).decode()
		doc = json.load(open("npm/" + name)) if os.path.exists("npm/" + name) else {"name": name, "versions": {}}
		doc["versions"][version] = {"name": name, "version": version, "main": "i.js",
		    "dist": {"tarball": f"http://mirror.invalid/{file}", "integrity": sri}}
		doc["dist-tags"] = {"latest": version}
		json.dump(doc, open("npm/" + name, "w"))
	PY
}

ruby_gem() {
	command -v gem >/dev/null || return 0
	mkdir -p g/lib
	echo "LITTLE = '1.0.0'" >"g/lib/$1.rb"
	echo "Gem::Specification.new { |s| s.name = '$1'; s.version = '1.0.0'; s.summary = s.name; s.authors = ['x']; s.files = ['lib/$1.rb'] }" >"g/$1.gemspec"
	(cd g && gem build -q "$1.gemspec" -o "../gem/gems/$1-1.0.0.gem" >/dev/null 2>&1)
	# The index of a source. `gem generate_index` is a gem of its own since RubyGems 3.5.
	(cd gem && ruby -rrubygems/package -rzlib -rfileutils -e '
		specs = Dir["gems/*.gem"].map { |f| Gem::Package.new(f).spec.tap(&:abbreviate) }
		names = specs.map { |s| [s.name, s.version, s.original_platform] }
		{ "specs" => names, "latest_specs" => names, "prerelease_specs" => [] }.each { |file, list|
			File.binwrite("#{file}.4.8.gz", Zlib.gzip(Marshal.dump(list))) }
		FileUtils.mkdir_p("quick/Marshal.4.8")
		specs.each { |s|
			File.binwrite("quick/Marshal.4.8/#{s.full_name}.gemspec.rz", Zlib.deflate(Marshal.dump(s))) }')
	rm -r g
}

# go_module PATH VERSION: as a proxy answers
go_module() {
	/usr/bin/python3 - "$@" <<-'PY'
		import os, sys, zipfile
		path, version = sys.argv[1:3]
		d = f"go/{path}/@v"
		os.makedirs(d, exist_ok=True)
		open(f"{d}/list", "w").write(version + "\n")
		open(f"{d}/{version}.info", "w").write('{"Version":"%s","Time":"2020-01-01T00:00:00Z"}' % version)
		open(f"{d}/{version}.mod", "w").write(f"module {path}\n")
		z = zipfile.ZipFile(f"{d}/{version}.zip", "w")
		z.writestr(f"{path}@{version}/go.mod", f"module {path}\n")
		z.writestr(f"{path}@{version}/h.go", "package hello\n")
		z.close()
	PY
}

# crate NAME VERSION: as cargo vendor lays it out
crate() {
	mkdir -p "cargo/$1-$2/src"
	printf '[package]\nname = "%s"\nversion = "%s"\nedition = "2021"\n' "$1" "$2" >"cargo/$1-$2/Cargo.toml"
	echo "pub fn version() -> &'static str { \"$2\" }" >"cargo/$1-$2/src/lib.rs"
	printf '{"files":{},"package":"%064d"}' 0 >"cargo/$1-$2/.cargo-checksum.json"
}

# debian_package NAME VERSION [DEPENDS]: a program of that name, and a setting that has no place in a layer
debian_package() {
	mkdir -p "deb/$1/DEBIAN" "deb/$1/usr/bin" "deb/$1/etc" apt
	printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: test <test@example.org>\n' "$1" "$2" \
		>"deb/$1/DEBIAN/control"
	printf 'Description: a test\n%s' "${3:+Depends: $3
}" >>"deb/$1/DEBIAN/control"
	printf '#!/bin/sh\nexit 1\n' >"deb/$1/DEBIAN/postinst"
	printf '#!/bin/sh\necho %s %s\n' "$1" "$2" >"deb/$1/usr/bin/$1"
	echo x >"deb/$1/etc/$1.conf"
	chmod 755 "deb/$1/DEBIAN/postinst" "deb/$1/usr/bin/$1"
	dpkg-deb --root-owner-group -b "deb/$1" apt >/dev/null
	rm -r deb
}

# Unchanged packages of the distribution and of the public registry.
real_packages() {
	(cd apt && apt-get -q download hello >/dev/null 2>&1)
	(cd apt && dpkg-scanpackages -m . >Packages 2>/dev/null)
	(cd npm && npm pack --silent is-number@7.0.0 >/dev/null 2>&1)
	npm view is-number@7.0.0 --json 2>/dev/null | jq 'select(.version) | {name, "dist-tags": {latest: .version}, versions: {(.version): .}} |
		.versions[].dist.tarball = "http://mirror.invalid/is-number-7.0.0.tgz"' >npm/is-number
}

make_mirror() {
	mkdir mirror && cd mirror && mkdir -p pip npm gem/gems
	crate tiny-crate 1.0.0
	crate tiny-crate 1.1.0
	debian_package first-deb 1.0
	debian_package second-deb 2.0 'first-deb (>= 1.0), bash'
	real_packages
	wheel tiny 1.0
	wheel tiny 1.1
	wheel other 2.0 tiny
	wheel flasq 1.0
	source_package broken 'raise SystemExit("cannot be built")'
	source_package slow 'import time; time.sleep(600)'
	npm_package small 1.0.0
	npm_package small 1.2.0
	ruby_gem little
	go_module example.org/hello v1.0.0
	tar -cf ../mirror.tar .
	cd ..
	api POST /v1/volumes '{"name":"mirror","bytes":67108864}'
	new_box '{"volumes":[{"name":"mirror","path":"/data"}]}'
	code=$(curl -sS -o body -w '%{http_code}' -X PUT -H "X-API-Key: $key" --data-binary @mirror.tar \
		"$url/v1/boxes/$box/files/archive?path=/data")
	is "$code" 200 "$(cat body)"
	api DELETE "/v1/boxes/$box"
}

run_code() { # LANGUAGE CODE [MORE]: of a run
	api POST /v1/run "$(jq -nc --arg l "$1" --arg c "$2" "{language:\$l, code:\$c} + (${3:-{\}})")"
}
installs() { # the number of install boxes created so far
	api GET '/v1/boxes?state=all&limit=1000'
	get '[.items[] | select(.metadata["atoll.install"])] | length'
}

# ---- tests ----

a_package_set_is_installed_once_and_then_reused() {
	cd "$work" && mkdir -p m && cd m && make_mirror && cd "$OLDPWD"
	before=$(installs)
	run_code python 'import tiny, other; print(tiny.version, other.version)' '{packages:["Other==2.0","tiny<1.1"]}'
	is "$code" 200 "$body"
	is "$(get .stdout)" "1.0 2.0" "$body"
	is "$(get '.packages.sets[0].installed')" true
	is "$(installs)" $((before + 1))
	# The same set in another notation.
	run_code python 'import tiny; print(tiny.version)' '{packages:["tiny <1.1","other == 2.0"]}'
	is "$(get .stdout)" 1.0 "$body"
	is "$(get '.packages.sets[0].installed')" false
	is "$(installs)" $((before + 1))
	api GET /v1/packages
	is "$(get '.items[0].packages')" "other==2.0 tiny<1.1"
	is "$(get '.items[0].uses')" 1
}

programs_of_a_package_set_are_on_the_path_and_its_bytecode_is_used() {
	api POST /v1/boxes '{"packages":{"pip":["tiny==1.0"]}}'
	is "$code" 201 "$body"
	box=$(get .id)
	api POST "/v1/boxes/$box/execs" '{"command":"tiny-say; python3 -v -c \"import tiny\" 2>&1 | grep -c \"matches.*tiny\"; id -u"}'
	is "$(get .stdout)" "tiny 1.0
1
1000" "$body"
	api DELETE "/v1/boxes/$box"
}

packages_are_read_only_in_a_box() {
	run_code bash 'd=$(python3 -c "import tiny; print(tiny.__path__[0])"); echo x >$d/__init__.py || echo x >$d/new || rm -r $d || echo no' \
		'{packages:{pip:["tiny==1.0"]}}'
	is "$(get .stdout)" no "$body"
	run_code python 'import tiny; print(tiny.version)' '{packages:["tiny==1.0"]}'
	is "$(get .stdout)" 1.0
}

npm_packages_are_found_from_any_folder() {
	run_code node 'console.log(require("small"))' '{packages:["small@^1.0"], cwd:"/tmp"}'
	is "$(get .stdout)" "small 1.2.0" "$body"
	api POST /v1/run '{"files":{"a.mjs":"import s from \"small\"; console.log(s)"},"command":["node","a.mjs"],"packages":{"npm":["small@1.0.0"],"pip":["tiny==1.0"]}}'
	is "$(get .stdout)" "small 1.0.0" "$body"
	is "$(get '.packages.sets | length')" 2
}

gems_are_in_the_search_path_of_ruby() {
	command -v gem >/dev/null || skip "no gem on this host"
	run_code ruby 'require "little"; puts LITTLE' '{packages:["little"]}'
	is "$(get .stdout)" 1.0.0 "$body"
}

crates_are_compiled_to_programs() {
	[ -x /usr/bin/cargo ] || skip "no cargo on this host"
	run_code rust 'fn main() { println!("{}", tiny_crate::version()); }' '{packages:["tiny-crate@~1.0"]}'
	is "$code $(get .stdout)" "200 1.0.0" "$body"
	api POST /v1/run '{"language":"rust","entry":"src/main.rs","packages":["tiny-crate"],"files":{
		"src/main.rs":"fn main() { println!(\"own {}\", tiny_crate::version()); }",
		"Cargo.toml":"[package]\nname = \"own\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ntiny-crate = \"1\"\n"}}'
	is "$code $(get .stdout)" "200 own 1.1.0" "$body"
	run_code rust 'fn main() {}' '{packages:["tiny-crate@9.9"]}'
	is "$code $(get .error.category) $(get .error.package)" "422 no_such_version tiny-crate" "$body"
	run_code rust 'fn main() {}' '{packages:["no-such-crate"]}'
	is "$code $(get .error.category) $(get .error.package)" "422 no_such_package no-such-crate" "$body"
}

debian_packages_include_dependencies_and_run_no_scripts() {
	run_code bash 'second-deb; first-deb; ls /etc/*-deb.conf 2>&1 | grep -c conf; command -v bash' '{packages:["second-deb"]}'
	is "$code" 200 "$body"
	is "$(get .stdout)" "second-deb 2.0
first-deb 1.0
1
/usr/bin/bash" "$body"
	is "$(get '.packages.sets[0].installed')" true
	run_code python 'import subprocess; subprocess.run(["first-deb"])' '{packages:{apt:["first-deb=1.0"]}}'
	is "$(get .stdout)" "first-deb 1.0" "$body"
	run_code bash true '{packages:["first-deb=9"]}'
	is "$code $(get .error.category) $(get .error.package)" "422 no_such_version first-deb" "$body"
	run_code bash true '{packages:["no-such-deb"]}'
	is "$code $(get .error.category) $(get .error.package)" "422 no_such_package no-such-deb" "$body"
}

packages_of_the_distribution_and_the_public_registry_work() {
	ls "$work"/m/mirror/apt/hello_*.deb >/dev/null 2>&1 || skip "apt-get download cannot reach its archive"
	[ -s "$work/m/mirror/npm/is-number" ] || skip "npm cannot reach its registry"
	run_code bash 'hello --greeting=hi' '{packages:["hello"]}'
	is "$code $(get .stdout)" "200 hi" "$body"
	run_code javascript 'console.log(require("is-number")("5"))' '{packages:["is-number@7.0.0"]}'
	is "$code $(get .stdout)" "200 true" "$body"
}

go_modules_are_read_from_the_layer() {
	command -v go >/dev/null || skip "no Go compiler on this host"
	api POST /v1/run '{"files":{"go.mod":"module x\nrequire example.org/hello v1.0.0\n"},"command":"go list -f {{.Module.Version}} example.org/hello","packages":{"go":["example.org/hello"]}}'
	is "$(get .stdout)" v1.0.0 "$body"
}

packages_declared_in_a_program_are_installed() {
	run_code python '# /// script
# dependencies = ["flasq"]
# ///
import flasq; print(flasq.version)'
	is "$(get .stdout)" 1.0 "$body"
	api POST /v1/run '{"entry":"a.py","files":{"a.py":"import tiny; print(tiny.version)","requirements.txt":"# old\ntiny==1.0\n"}}'
	is "$(get .stdout)" 1.0 "$body"
	api POST /v1/run '{"entry":"a.js","files":{"a.js":"console.log(require(\"small\"))","package.json":"{\"dependencies\":{\"small\":\"1.0.0\"}}"}}'
	is "$(get .stdout)" "small 1.0.0" "$body"
	# Nothing that was not requested.
	run_code python '# /// script
# dependencies = ["tiny"]
# ///
import tiny' '{packages:false}'
	is "$(get .status)" 1 "$body"
}

install_progress_is_streamed() {
	curl -sS -N -H "X-API-Key: $key" -H 'Accept: application/x-ndjson' -H 'Content-Type: application/json' \
		--data-binary '{"language":"python","code":"import tiny; print(1)","packages":["tiny==1.1"]}' "$url/v1/run" >lines
	has "$(jq -r 'select(.type=="install") | .text' <lines)" "Successfully installed tiny-1.1"
	is "$(jq -r 'select(.type=="install") | .manager' <lines | sort -u)" pip
	is "$(jq -r .type <lines | uniq | tr '\n' ' ')" "install started stdout exit "
}

install_failures_have_a_category_and_a_hint() {
	run_code python 1 '{packages:["numpyy"]}'
	is "$code" 422 "$body"
	is "$(get .error.category)" no_such_package
	is "$(get .error.package)" numpyy
	is "$(get '.error.near[0]')" numpy
	run_code python 1 '{packages:["tiny==7"]}'
	is "$(get .error.category)" no_such_version
	has "$(get '.error.versions | join(" ")')" "1.0 1.1"
	run_code python 1 '{packages:["broken"]}'
	is "$(get .error.category)" build_failure "$body"
	run_code node 1 '{packages:["expres"]}'
	is "$(get .error.category)" no_such_package "$body"
	is "$(get '.error.near[0]')" express
	run_code node 1 '{packages:["small@9.9.9"]}'
	is "$(get .error.category)" no_such_version "$body"
}

invalid_package_names_are_rejected_before_anything_runs() {
	before=$(installs)
	for name in '-r/etc/passwd' '--index-url=http://x' 'a b' 'a;id' '$(id)' '../a' '/etc/passwd' 'http://x/y.whl' 'git+https://x' 'a@file:///x' '' ; do
		api POST /v1/run "$(jq -nc --arg n "$name" '{language:"python", code:"1", packages:[$n]}')"
		is "$code" 400 "$name: $body"
		has "$(get .error.message)" "packages"
	done
	api POST /v1/run '{"language":"python","code":"1","packages":{"pipx":["a"]}}'
	is "$code" 400
	api POST /v1/run '{"language":"python","code":"1","packages":[1]}'
	is "$code" 400
	api POST /v1/run '{"command":"true","packages":["a"]}'
	is "$code" 400
	is "$(installs)" "$before"
}

a_package_name_similar_to_a_popular_one_is_warned_about() {
	run_code python 1 '{packages:["flasq"]}'
	has "$(get '.packages.warnings[0]')" "one letter away from 'flask'"
	run_code python 1 '{packages:["tiny==1.0"]}'
	is "$(get '.packages.warnings')" null "$body"
}

simultaneous_requests_for_a_set_share_one_install() {
	before=$(installs)
	for i in 1 2 3 4; do
		curl -sS -o "o$i" -H "X-API-Key: $key" -H 'Content-Type: application/json' \
			--data-binary '{"language":"python","code":"import other; print(other.version)","packages":["other","flasq"]}' "$url/v1/run" &
	done
	wait
	for i in 1 2 3 4; do is "$(jq -r .stdout "o$i")" 2.0 "$(cat "o$i")"; done
	is "$(installs)" $((before + 1))
}

a_changed_layer_is_detected_and_installed_again() {
	run_code python 1 '{packages:["flasq"]}'
	set=$(get '.packages.sets[0].set') layer=$(get '.packages.sets[0].layer')
	api POST "/v1/packages/$set/check" '{}'
	is "$(get .good)" true "$body"
	echo evil >>"$(find "$state/layers/$layer" -name __init__.py)"
	api POST "/v1/packages/$set/check" '{}'
	is "$code" 409 "$body"
	# The set is no longer listed; a missing layer is no error either.
	rm -r "$state/layers/$layer"
	run_code python 'import flasq; print(flasq.version)' '{packages:["flasq"]}'
	is "$(get .stdout)" 1.0 "$body"
	is "$(get '.packages.sets[0].installed')" true
	rm -r "$state/layers/$layer"
	run_code python 1 '{packages:["flasq"]}'
	is "$code" 404 "$body"
	api GET "/v1/packages/$set"
	is "$code" 404 # so the next request installs it
}

install_box() {
	api GET /v1/boxes
	box=$(get '.items[] | select(.metadata["atoll.install"] and .state == "running") | .id' | head -1)
	[ "$box" ]
}

the_install_box_belongs_to_no_team() {
	curl -sS -o out -H "X-API-Key: $key" -H 'Content-Type: application/json' \
		--data-binary '{"packages":{"pip":["slow"]}}' "$url/v1/packages" &
	soon install_box
	# Its layer is shared by all boxes, so no caller may write into it.
	api POST "/v1/boxes/$box/execs" '{"command":"true"}'
	is "$code" 404 "$body"
	api PUT "/v1/boxes/$box/files?path=x" 'x'
	is "$code" 404
	api DELETE "/v1/boxes/$box"
	is "$code" 404
	"$ATOLL" kill --local "$box" >/dev/null 2>&1
	wait
	is "$(jq -r .error.category out)" failed "$(cat out)"
}

a_package_set_in_use_cannot_be_deleted() {
	api POST /v1/boxes '{"packages":{"pip":["tiny==1.1"]}}'
	box=$(get .id) set=$(get '.packages.sets[0].set')
	api DELETE "/v1/packages/$set"
	is "$code" 409 "$body"
	api DELETE "/v1/boxes/$box"
	api DELETE "/v1/packages/$set"
	is "$code" 204 "$body"
	api GET "/v1/packages/$set"
	is "$code" 404
	key=$editor
	api GET /v1/packages
	is "$code" 403
}

run_installs_packages_and_atoll_packages_manages_sets() {
	export ATOLL_HOST="$url" ATOLL_KEY="$key"
	echo 'import tiny; print(tiny.version)' >x.py
	atoll run -p tiny==1.0 x.py
	is "$status $out" "0 1.0" "$err"
	atoll run -p npm:small@1.0.0 -- node -p 'require("small")'
	is "$status $out" "0 small 1.0.0" "$err"
	atoll run -p numpyy x.py
	is "$status" 125 "$err"
	has "$err" "no package 'numpyy'"
	has "$err" "close: numpy"
	atoll run -p '-r' x.py
	is "$status" 2 "$err"
	has "$err" "would be an option"
	atoll packages add tiny==1.0
	is "$status" 0 "$err"
	set=$out
	atoll packages ls
	has "$out" "tiny==1.0"
	atoll packages check "$(echo "$set" | head -c 12)"
	is "$status" 0 "$err"
	atoll packages rm "$(echo "$set" | head -c 12)"
	is "$status" 0 "$err"
	atoll packages rm "$set"
	is "$status" 3
	atoll packages frob
	is "$status" 2
	name=$("$ATOLL" new -p flasq --quiet)
	atoll exec "$name" -- python3 -c 'import flasq; print(flasq.version)'
	is "$out" 1.0 "$err"
	atoll rm "$name"
}

package_sets_survive_a_killed_server() {
	kill -9 "$(server_pid)"
	run_code python 'import other; print(other.version)' '{packages:["other","flasq"]}'
	is "$(get .stdout)" 2.0 "$body"
	is "$(get '.packages.sets[0].installed')" false
}

the_least_recently_used_sets_are_deleted_first() {
	api GET /v1/packages
	[ "$(get '.items | length')" -gt 2 ] || fail "too few: $body"
	supervisor=$(cat "$work/supervisor")
	stop_daemon
	ATOLL_PACKAGES_CACHE=3k start_daemon
	run_code python 1 '{packages:["tiny","other","flasq"]}'
	is "$code" 200 "$body"
	soon cache_fits
	api GET /v1/packages
	is "$(get '.items[0].packages')" "flasq other tiny" "$body"
}
# A registry on an address that is not exempt from the proxy.
serve_registry() {
	cd "$work/m/mirror" && mkdir -p simple/tiny simple/broken
	ln -f pip/tiny* simple/tiny
	ln -f pip/broken* simple/broken
	ln -f npm/*.tgz .
	setpriv --pdeathsig KILL /usr/bin/python3 -u -m http.server --bind 127.0.0.2 0 >"$work/registry.log" 2>&1 &
	registry=$!
	cd "$OLDPWD"
	soon grep -q 'port [0-9]' "$work/registry.log"
	port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/registry.log" | head -1)
}

packages_are_installed_from_a_registry_through_egress() {
	supervisor=$(cat "$work/supervisor")
	stop_daemon
	serve_registry
	unset ATOLL_PACKAGES_MIRROR
	export ATOLL_PIP_INDEX="http://127.0.0.2:$port/simple" ATOLL_NPM_REGISTRY="http://127.0.0.2:$port/npm"
	export ATOLL_EGRESS_INTERNAL="127.0.0.2:$port" ATOLL_PACKAGES_PREINSTALL='pip tiny!=1.0'
	start_daemon
	soon is_installed 'tiny!=1.0' # before the first request
	run_code python 'import tiny; print(tiny.version)' '{packages:["tiny!=1.0"]}'
	is "$(get .stdout)" 1.1 "$body"
	run_code node 'console.log(require("small"))' '{packages:["small@<1.2"]}'
	is "$(get .stdout)" "small 1.0.0" "$body"
	run_code python 1 '{packages:["tyni"]}'
	is "$(get .error.category)" no_such_package "$body"
	api POST /v1/boxes '{"packages":{"gem":["little"]}}'
	is "$code" 422
	is "$(get .error.category)" not_configured "$body"
	# Only the install box could connect to the registry.
	run_code python 'import urllib.request as u, tiny; u.urlopen("'"http://127.0.0.2:$port/"'")' '{packages:["tiny!=1.0"]}'
	is "$(get .status)" 1
	is "$(get '.packages.sets[0].installed')" false
	kill "$registry"
	wait "$registry" 2>/dev/null || :
	run_code python 1 '{packages:["tiny", "other>1"]}'
	is "$(get .error.category)" unreachable "$body"
	run_code node 1 '{packages:["small@>=1.1"]}'
	is "$(get .error.category)" unreachable "$body"
	run_code python 'import tiny; print(tiny.version)' '{packages:["tiny!=1.0"]}'
	is "$(get .stdout)" 1.1 "$body"
}

the_install_timeout_is_enforced() {
	supervisor=$(cat "$work/supervisor")
	stop_daemon
	export ATOLL_PACKAGES_MIRROR=mirror ATOLL_PACKAGES_TIMEOUT=1s
	start_daemon
	run_code python 1 '{packages:["slow"]}'
	is "$(get .error.category)" timeout "$body"
	has "$(get .error.message)" "longer than 1 s"
}

is_installed() {
	api GET /v1/packages
	get '.items[].packages' | grep -qxF -e "$1"
}
cache_fits() {
	api GET /v1/packages
	[ "$(get '[.items[] | .bytes] | add')" -lt 4000 ] && [ "$(get '.items | length')" -ge 1 ]
}

export ATOLL_PACKAGES_MIRROR=mirror
run_daemon_tests
