#!/bin/sh
# template_base.sh - templates FROM base: packages of Debian, and the templates that come with the server.
. "$(dirname "$0")/daemon.lib"

# build NAME FOLDER: sets out.
build() { ATOLL_HOST=$url ATOLL_KEY=$key atoll template build -n "$1" "$2"; }
# inside NAME COMMAND: in a new box of the template; sets out.
inside() {
	api POST /v1/boxes "{\"template\":\"$1\"}"
	is "$code" 201 "$body"
	box=$(get .id)
	api POST "/v1/boxes/$box/execs" "$(jq -nc --arg c "$2" '{command:$c}')"
	out=$(get .stdout)
	api DELETE "/v1/boxes/$box"
}
# package NAME: a package with a program, a file of another owner, a setting and a script, in ./NAME.deb.
package() {
	mkdir -p p/DEBIAN p/usr/bin "p/usr/lib/$1" p/etc
	printf 'Package: %s\nVersion: 1.0\nArchitecture: all\nMaintainer: Tests <tests@example.org>\nDescription: test\n' "$1" >p/DEBIAN/control
	printf '#!/bin/sh\nset -e\nchown 33:33 /usr/lib/%s/data\nadduser --system --quiet --no-create-home _test\n' "$1" >p/DEBIAN/postinst
	printf '#!/bin/sh\nid -u\n' >"p/usr/bin/$1"
	echo data >"p/usr/lib/$1/data"
	echo setting >"p/etc/$1.conf"
	chmod 755 p/DEBIAN/postinst
	chmod 4755 "p/usr/bin/$1"
	dpkg-deb --root-owner-group -b p "$1.deb" >/dev/null
}

apt_get_installs_packages_over_base() {
	command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
	mkdir context
	package atoll-test
	mv atoll-test.deb context
	touch -d @1000000000 context/old
	cat >context/Dockerfile <<-'END'
		FROM base
		COPY atoll-test.deb /tmp/
		COPY old /usr/share/old
		RUN apt-get install -y /tmp/atoll-test.deb && rm /tmp/atoll-test.deb && stat -c %U /usr/bin/env /var/lib/dpkg/status
		RUN dpkg -L atoll-test && rm /usr/bin/yes && printf 'exit 7' >/usr/bin/arch
	END
	build installed context
	is "$status" 0 "$out$err"
	has "$err" "/usr/lib/atoll-test/data"
	inside installed 'atoll-test; stat -c %u:%g /usr/lib/atoll-test/data; cat /etc/atoll-test.conf; id -un _test; test -e /usr/bin/yes || echo gone; arch; echo $?; dpkg -s atoll-test | grep Status; stat -c %Y /usr/share/old; touch /usr/x 2>/dev/null || echo read-only'
	is "$out" "1000
33:33
setting
_test
gone
7
Status: install ok installed
1000000000
read-only" "$body"
	[ ! -e /usr/bin/atoll-test ] && [ -e /usr/bin/yes ] && ! dpkg -s atoll-test >/dev/null 2>&1 || fail "the host was changed"
	build again context
	has "$err" "CACHED [3/4]"
}

prepared() { api GET /v1/templates/c && [ "$(get '"\(.built) \(.public) \(.pool)"')" = "true true 2" ]; }

a_prepared_template_is_built_at_the_start_for_all_teams() {
	soon prepared
	is "$(get '.builds | length')" 1
	inside c 'cc --version >/dev/null && echo yes'
	is "$out" yes
	api PUT /v1/teams/other '{}'
	"$ATOLL" key new other --team other --state "$state" --quiet >other
	key=$(cat other)
	api GET "/v1/builds/$(api GET /v1/templates/c && get '.builds[0].id')/log"
	has "$body" "testing"
	inside c 'echo shared'
	is "$out" shared
}

a_template_is_built_at_its_first_use() {
	api POST /v1/boxes '{"template":"java"}'
	is "$code" 409 "$body"
	is "$(get .error.code)" building "$body"
	has "$(get .error.message)" "template 'java' is being built, by build "
	api POST /v1/boxes '{"template":"java:v2"}'
	is "$code" 409 "$body"
	api GET /v1/templates/java
	is "$(get '.builds | length')" 1 "$body"
	api DELETE "/v1/builds/$(get '.builds[0].id')"
	ATOLL_HOST=$url ATOLL_KEY=$key atoll new -t node first
	is "$status" 0 "$err"
	is "$out" first
	has "$err" "template 'node' is built first"
	has "$err" "testing"
	ATOLL_HOST=$url ATOLL_KEY=$key atoll exec first -- node -p '6 * 7'
	is "$out" 42
	ATOLL_HOST=$url ATOLL_KEY=$key atoll template build node
	is "$status" 0 "$err"
}

a_template_that_cannot_be_built_names_the_missing_setting() {
	api POST /v1/boxes '{"template":"gradio-developer"}'
	is "$code" 409 "$body"
	has "$(get .error.message)" "packages.pip_index is not set"
	api GET /v1/templates/gradio-developer
	is "$(get .built)" false
}

a_template_is_made_of_a_box_and_of_a_snapshot() {
	new_box
	api PUT "/v1/boxes/$box/files?path=kept" one -H 'Content-Type: application/octet-stream'
	api POST /v1/snapshots "{\"box\":\"$box\",\"name\":\"saved\"}"
	is "$code" 201 "$body"
	api PUT "/v1/boxes/$box/files?path=kept" two -H 'Content-Type: application/octet-stream'
	ATOLL_HOST=$url ATOLL_KEY=$key atoll template build of-box --from-box "$box"
	is "$status" 0 "$err"
	is "$out" of-box:default
	ATOLL_HOST=$url ATOLL_KEY=$key atoll template build of-snapshot:v1 --from-snapshot saved
	is "$status" 0 "$err"
	api DELETE "/v1/boxes/$box"
	inside of-box 'cat kept'
	is "$out" two
	ATOLL_HOST=$url ATOLL_KEY=$key atoll run -t of-box -- cat kept
	is "$out" two "$err"
	inside of-snapshot:v1 'cat kept'
	is "$out" one
	ATOLL_HOST=$url ATOLL_KEY=$key atoll template build x --from-snapshot nosuch
	[ "$status" != 0 ] || fail "$out"
}

a_program_runs_in_a_template_of_the_server() {
	api POST /v1/run '{"template":"c","language":"python","code":"print(6 * 7)"}'
	is "$code" 200 "$body"
	is "$(get .stdout)" 42
}

no_layers() { [ -z "$(ls "$state/layers" "$state/roots" | grep -x '[0-9a-f]*')" ]; }

layers_without_a_row_are_removed_at_the_start() {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	! no_layers || fail "there are no layers"
	api GET /v1/boxes
	for box in $(get '.items[].id'); do api DELETE "/v1/boxes/$box"; done
	stop_daemon
	# As if the server had been killed before it wrote them.
	sqlite3 "$state/server/atoll.db" 'PRAGMA foreign_keys = ON; DELETE FROM templates; DELETE FROM template_layers; DELETE FROM build_cache'
	unset ATOLL_TEMPLATES_PREPARE
	start_daemon
	soon no_layers
}

a_change_of_the_packages_of_the_host_is_not_hidden_by_the_cache() {
	[ -e /var/lib/dpkg/status ] || skip "no dpkg"
	mkdir context
	printf 'FROM base\nRUN echo x >/srv/x\n' >context/Dockerfile
	supervisor=$(cat "$work/supervisor") # the test before has started another one
	stop_daemon
	start_daemon
	build hosted context
	build hosted context
	has "$err" "CACHED [1/1]"
	cp /var/lib/dpkg/status changed
	printf '#!/bin/sh\nexec unshare -m sh -c '"'"'mount --bind "$0" /var/lib/dpkg/status && exec "$@"'"'"' %s/changed %s "$@"\n' "$PWD" "$ATOLL" >wrapped
	chmod 755 wrapped
	stop_daemon
	real=$ATOLL ATOLL=$PWD/wrapped
	start_daemon
	ATOLL=$real
	build hosted context
	is "$status" 0 "$err"
	lacks "$err" CACHED
}

an_unknown_name_in_the_setting_is_an_error_at_the_start() {
	ATOLL_RUN=$work/run2 ATOLL_TEMPLATES_PREPARE=cobol timeout 60 "$ATOLL" serve --listen 127.0.0.1:0 --state "$work/none" >said 2>&1 && fail "it started"
	has "$(cat said)" "templates.prepare: no template 'cobol' comes with the server; there are c, "
}

export ATOLL_TEMPLATES_PREPARE=c
run_daemon_tests
