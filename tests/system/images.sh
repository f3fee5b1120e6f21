#!/bin/sh
# images.sh - templates from images of registries: pulled, unpacked and compared with what umoci unpacks; registries that
# refuse, lie or break off; archives that try to write outside.
. "$(dirname "$0")/daemon.lib"
slow_tests="an_uploaded_archive_of_an_image_is_the_same_image"
here=$(cd "$(dirname "$0")" && pwd)
for program in skopeo umoci docker-registry; do
	command -v $program >/dev/null || { echo "1..0 # SKIP this distribution has no $program"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP not root"; exit 0; }
. "$libs/registry.lib"

# ---- two registries ----
cat >"$work/docker-registry.yml" <<EOF
version: 0.1
log: {level: info}
storage: {filesystem: {rootdirectory: $work/docker-registry}}
http: {addr: "127.0.0.1:0"}
EOF
docker-registry serve "$work/docker-registry.yml" >"$work/docker-registry.log" 2>&1 &
registry_pid=$!
mark=atoll-escape-$$
mkfifo "$work/hostile.in"
/usr/bin/python3 "$here/image_registry.py" "$work" "$mark" <"$work/hostile.in" >"$work/hostile.port" &
exec 7>"$work/hostile.in"
trap 'kill $registry_pid 2>/dev/null; finish_daemon' EXIT
soon grep -q hostile= "$work/hostile.port"
soon grep -q 'listening on 127' "$work/docker-registry.log"
eval "$(cat "$work/hostile.port")"
plain=$(sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\).*/\1/p' "$work/docker-registry.log" | head -1)
good=registry.test:$plain bad=registry.test:$hostile
export good bad plain hostile mark
export ATOLL_TEMPLATES_REGISTRIES="$good,$bad" ATOLL_TEMPLATES_INSECURE_REGISTRIES="$good,$bad" ATOLL_EGRESS_INTERNAL="$good,$bad"
export ATOLL_TEMPLATES_MIRROR="$good/hub" ATOLL_TEMPLATES_BUILD_DISK=300M

# build NAME IMAGE [AUTH]: waits for the end of the build; sets result (ready, error), why and log.
build() {
	api POST /v1/templates "$(jq -nc --arg n "$1" --arg f "$2" --argjson a "${3:-null}" \
		'{name: $n, definition: {stages: [{from: $f, steps: []} + (if $a then {auth: $a} else {} end)]}}')"
	is "$code" 202 "$body"
	id=$(get .id)
	soon_limit=120 soon build_over
	result=$(get .state) why=$(get '.reason.message // ""')
	api GET "/v1/builds/$id/log"
	log=$body
}
build_over() {
	api GET "/v1/builds/$id"
	case $(get .state) in ready | error | cancelled) ;; *) return 1 ;; esac
}
layers_of() { sqlite3 "$state/server/atoll.db" "SELECT json_extract(progress, '\$.stages.0.layers') FROM builds WHERE id = '$1'" | jq -r '.[]'; }
# The names of layers; a layer in the making would be there, too.
store() { ls "$state/layers" | sort; }

# ---- a real image ----

an_image_of_a_registry_is_what_umoci_unpacks() {
	/usr/bin/python3 "$here/image.py" debian "$work/oci"
	skopeo copy -q --dest-tls-verify=false "oci:$work/oci:test" "docker://127.0.0.1:$plain/hub/library/debian:12"
	umoci unpack --image "$work/oci:test" "$work/bundle" >/dev/null 2>&1
	build debian debian:12
	is "$result" ready "$why $log"
	has "$log" "library/debian:12 is sha256:"
	# The topmost first.
	lower=$(layers_of "$id" | tac | sed "s|^|$state/layers/|" | paste -sd :)
	mkdir -p merged
	# In mounts of its own: none is left if the comparison fails.
	# Newer versions of mount(8) have a bound of 256 bytes for lowerdir, unless they use mount(2).
	LIBMOUNT_FORCE_MOUNT2=always unshare -m sh -c 'mount -t overlay -o "ro,userxattr,lowerdir=$1" none merged && /usr/bin/python3 "$2" list merged' \
		sh "$lower" "$here/image.py" >ours
	/usr/bin/python3 "$here/image.py" list "$work/bundle/rootfs" >theirs
	[ "$(wc -l <ours)" -gt 1000 ] || fail "only $(wc -l <ours) entries"
	diff theirs ours >differences || fail "$(head -20 differences)"
}

a_box_of_it_runs_programs_of_the_image() {
	new_box '{"template": "debian"}'
	api POST "/v1/boxes/$box/execs" '{"command": "/srv/app/run; . /etc/os-release; echo $NAME; echo $FROM_IMAGE; pwd; id -un; ls /srv/kept /srv/again; test ! -e /srv/app/suid"}'
	is "$(get .stdout)" "from the image
Test image, changed
yes
/srv/app
app
/srv/again:
b

/srv/kept:
new" "$body"
	is "$(get .status)" 0
	api DELETE "/v1/boxes/$box"
}

cmd_of_a_dockerfile_follows_the_entrypoint_of_its_image() {
	umoci config --image "$work/oci:test" --tag entry --config.entrypoint /bin/sh --config.entrypoint -c >/dev/null 2>&1
	skopeo copy -q --dest-tls-verify=false "oci:$work/oci:entry" "docker://127.0.0.1:$plain/hub/library/entry:1"
	api POST /v1/templates '{"name":"entry","source":{"files":{"Dockerfile":"FROM entry:1\nCMD [\"exec sleep 1000\"]\n"}}}'
	is "$code" 202 "$body"
	id=$(get .id)
	soon_limit=120 soon build_over
	is "$(get .state)" ready "$body"
	api GET /v1/templates/entry
	is "$(get .start)" "/bin/sh -c 'exec sleep 1000'"
}

a_layer_that_is_here_is_not_unpacked_again() {
	store >before
	build again debian:12
	is "$result" ready "$why"
	has "$log" "3 layers, 3 of them were here"
	build digest "$good/hub/library/debian@$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://127.0.0.1:$plain/hub/library/debian:12")"
	is "$result" ready "$why"
}

an_uploaded_archive_of_an_image_is_the_same_image() {
	skopeo copy -q "oci:$work/oci:test" "oci-archive:$work/oci.tar"
	skopeo copy -q "oci:$work/oci:test" "docker-archive:$work/docker.tar:x:1"
	upload() { curl -sS -o body -w '%{http_code}' -X PUT -H "X-API-Key: $key" --data-binary @"$2" -H 'Content-Type: application/x-tar' "$url/v1/templates/uploads/$1"; }
	is "$(upload aaaa "$work/oci.tar")" 204
	build oci upload:aaaa
	is "$result" ready "$why $log"
	first=$(layers_of "$id")
	has "$log" "3 of them were here"
	is "$(upload bbbb "$work/docker.tar")" 204
	build docker upload:bbbb
	is "$result" ready "$why $log"
	build docker upload:bbbb
	has "$log" "CACHED FROM upload:bbbb"
	is "$(layers_of "$id")" "$first"
	is "$(layers_of "$id")" "$first"
	head -c 100000 "$work/oci.tar" >cut.tar
	is "$(upload cccc cut.tar)" 204
	store >before
	refused upload:cccc "is not an image"
	refused upload:dddd "there is no upload dddd"
	store >after
	cmp before after || fail "layers were left: $(diff before after)"
}

# ---- registries that do not give an image ----

# refused IMAGE WORDS: the build fails with this message.
refused() {
	build "t$(echo "$1" | tr -dc a-z0-9)" "$1" "${3:-null}"
	is "$result" error "$1: $log"
	has "$1: $why" "$2"
}

each_failure_of_a_registry_has_its_own_message() {
	store >before
	refused "$bad/denied/x:1" "does not permit to pull"
	refused "$bad/missing/x:1" "has no image"
	refused "$bad/busy/x:1" "429"
	refused "$bad/half/x:1" "in the middle"
	refused "$bad/digest/x:1" "another digest"
	refused "$bad/arch/x:1" "linux/mips"
	refused registry.test:1/x "is not in templates.registries"
	refused other.test/x "is not in templates.registries"
	refused "$bad/-x" "is not the reference of an image"
	store >after
	cmp before after || fail "layers were left: $(diff before after)"
}

credentials_are_used_and_written_nowhere() {
	refused "$bad/secret/x:1" "does not permit to pull"
	refused "$bad/secret/x:1" "does not permit to pull" '{"username": "tester", "password": "wrong"}'
	build secret "$bad/secret/x:1" '{"username": "tester", "password": "s3cret-word"}'
	is "$result" ready "$why $log"
	lacks "$log" s3cret-word
	is "$(sqlite3 "$state/server/atoll.db" "SELECT count(*) FROM builds WHERE definition LIKE '%tester%'")" 0
	! grep -rqs s3cret-word "$state/layers" "$state/builds" "$work/serve.log" || fail "the password is in a file"
}

# ---- processes that are killed during a pull ----

boxless() { [ "$(curl -sS -H "X-API-Key: $key" "$url/metrics" | sed -n 's/^atoll_boxes //p')" = 0 ]; }
another_server() { new=$(server_pid) && [ "$new" ] && [ "$new" != "$old" ] && api GET /v1/who && [ "$code" = 200 ]; }
# Starts a pull that waits in the middle of a layer.
begin_slow() {
	rm -f "$work/go" "$work/asked"
	api POST /v1/templates "{\"name\": \"$1\", \"force\": true, \"definition\": {\"stages\": [{\"from\": \"$bad/slow/x:1\", \"steps\": []}]}}"
	is "$code" 202 "$body"
	id=$(get .id)
	soon test -e "$work/asked"
}
complete_slow() {
	touch "$work/go"
	soon_limit=120 soon build_over
	is "$(get .state)" ready "$body"
	soon boxless
	is "$(ls "$state/layers" | grep -c '^new')" 0
}

a_pull_begins_again_after_its_server_was_killed() {
	begin_slow server
	old=$(server_pid)
	kill -9 "$old"
	soon another_server
	complete_slow
}

a_pull_continues_after_the_keeper_was_killed() {
	begin_slow keeper
	kill -9 "$("$ATOLL" doctor --json 2>/dev/null | grep -o 'pid [0-9]*' | head -1 | cut -d ' ' -f 2)"
	complete_slow
}

# ---- archives that must write nothing outside ----

escaped() {
	for at in / /tmp /etc /proc /dev /dev/shm /run /usr /var /home /root "$work" "$state" "$work/outside"; do
		[ ! -e "$at/$mark" ] || return 0
	done
	return 1
}

hostile_archives_are_rejected_and_leave_nothing() {
	store >before
	refused "$bad/dots/x:1" "leaves the image's root"
	refused "$bad/hard/x:1" "hard link"
	refused "$bad/owner/x:1" "70000"
	refused "$bad/below/x:1" "not a folder"
	refused "$bad/circle/x:1" "circle"
	refused "$bad/truncated/x:1" "archive"
	refused "$bad/rubbish/x:1" "after the end"
	refused "$bad/no-tar/x:1" "archive"
	store >after
	cmp before after || fail "layers were left: $(diff before after)"
	! escaped || fail "$mark is outside of the layers"
}

hostile_archives_that_can_be_unpacked_are_harmless() {
	build links "$bad/links/x:1"
	is "$result" ready "$why"
	! escaped || fail "$mark is outside of the layers"
	build devices "$bad/devices/x:1"
	is "$result" ready "$why"
	has "$log" "3 device nodes were left out"
	find "$state/layers" \( -type b -o -type c \) ! -path '*/new.*' >nodes
	for node in $(cat nodes); do
		is "$(stat -c %t:%T "$node")" 0:0 "$node"
	done
}

run_daemon_tests
