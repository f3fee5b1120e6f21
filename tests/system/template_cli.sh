#!/bin/sh
# template_cli.sh - `atoll template`: a folder is built, its log followed, boxes start from it.
. "$(dirname "$0")/daemon.lib"

# dockerfile LINE...: writes ./ctx/Dockerfile.
dockerfile() {
	mkdir -p ctx
	printf '%s\n' "$@" >ctx/Dockerfile
}
# build [FLAG...]: of ./ctx; the id of the build is in $id if it has begun.
build() {
	atoll template build "$@" ctx
	id=$(sed -n 's/^  log: atoll template log //p' err)
}

a_folder_is_built_and_boxes_start_from_it() {
	dockerfile 'FROM base' 'ENV GREETING=hi' 'RUN echo "$GREETING there" > /var/lib/built' 'WORKDIR /srv'
	build -n first:v1
	is "$status" 0 "$err"
	is "$out" first:v1 "$err"
	has "$err" '[2/3] RUN echo'
	lacks "$err" uploaded
	atoll new b1 --template first:v1
	is "$status" 0 "$err"
	atoll exec b1 -- sh -c 'cat /var/lib/built; echo $GREETING; pwd'
	is "$out" "hi there
hi
/srv" "$err"
	atoll rm b1
	is "$status" 0 "$err"
	atoll run --template first:v1 -- cat /var/lib/built
	is "$out" "hi there" "$err"
	echo 'print(open("/var/lib/built").read().strip(), 6 * 7)' >x.py
	atoll run --template first:v1 x.py
	is "$out" "hi there 42" "$err"
	atoll run --template nosuch x.py
	is "$status" 2 "$err"
	has "$err" "no template named 'nosuch'"
}

files_of_the_folder_are_copied() {
	dockerfile 'FROM base AS build' 'WORKDIR /srv' 'COPY --chmod=0640 . .' "RUN ls -A | tr '\n' ' ' > /var/lib/names" 'FROM base' \
		'COPY --from=build /var/lib/names /var/lib/names' 'COPY src/a.txt /srv/b.txt' 'COPY <<END /srv/here.txt' 'word $HOME' 'END'
	mkdir -p ctx/src ctx/node_modules/x
	echo one >ctx/src/a.txt
	echo no >ctx/node_modules/x/y
	ln -s /etc/passwd ctx/link
	printf 'node_modules\n.dockerignore\nDockerfile\n' >ctx/.dockerignore
	build -n copied
	is "$status" 0 "$err"
	has "$err" "uploaded 1 files, 4 B"
	atoll run --template copied -- sh -c 'cat /var/lib/names; echo; cat /srv/b.txt /srv/here.txt'
	is "$out" "link src 
one
word " "$err"
	build -n copied # the daemon has the archive, and the layers
	is "$status" 0 "$err"
	lacks "$err" uploaded
	has "$err" "CACHED"
	lacks "$err" "] done in"
	touch ctx/src/a.txt # the time does not count
	build -n copied
	lacks "$err" uploaded
	echo two >ctx/src/a.txt
	build -n copied
	is "$status" 0 "$err"
	has "$err" uploaded
	atoll run --template copied -- cat /srv/b.txt
	is "$out" two "$err"
	dockerfile 'FROM base' 'COPY ../outside /srv/'
	build -n outside
	is "$status" 1 "$err"
	has "$err" "line 2: COPY ../outside /srv/"
}

a_change_of_one_file_keeps_the_layers_of_the_others() {
	dockerfile 'FROM base' 'COPY package*.json /srv/' 'RUN cat /srv/package.json > /var/lib/installed' 'COPY . /srv/'
	mkdir ctx/src
	echo '{}' >ctx/package.json
	echo one >ctx/src/a.js
	build -n layers
	is "$status" 0 "$err"
	echo two >ctx/src/a.js
	build -n layers
	is "$status" 0 "$err"
	has "$err" "CACHED [1/3] COPY package*.json"
	has "$err" "CACHED [2/3] RUN cat"
	lacks "$err" "CACHED [3/3]"
	atoll run --template layers -- cat /srv/src/a.js
	is "$out" two "$err"
}

many_short_steps_wait_for_disk_space() {
	mkdir ctx
	echo a >ctx/a
	{
		echo 'FROM base'
		for i in 1 2 3 4 5; do printf 'RUN echo %s > /var/lib/f%s\nCOPY a /srv/a%s\n' $i $i $i; done
	} >ctx/Dockerfile
	build -n many
	is "$status" 0 "$err"
}

what_has_no_effect_is_noted_in_the_log() {
	dockerfile 'FROM base' 'VOLUME /data' 'CMD ['"'true'"']' 'RUN --mount=type=cache,target=/c true'
	build -n noted --build-arg UNUSED=1
	has "$err" "note: line 2: VOLUME has no effect"
	has "$err" "note: line 3: this list is not JSON"
	has "$err" "note: line 4: a mount of type cache has no effect"
	has "$err" "note: build arg UNUSED: no ARG in the file has this name"
}

a_second_build_is_cached() {
	dockerfile 'FROM base' 'RUN date +%N > /var/lib/now'
	build -n second
	is "$status" 0 "$err"
	lacks "$err" CACHED
	build -n second
	is "$status" 0 "$err"
	has "$err" 'CACHED [1/1] RUN date'
	build -n second --force
	is "$status" 0 "$err"
	lacks "$err" CACHED
}

a_failed_step_is_named_with_its_line_and_output() {
	dockerfile 'FROM base' '# comment' 'RUN true' 'RUN echo almost; echo broken >&2; exit 7'
	build -n failing
	is "$status" 1 "$err"
	is "$out" ""
	has "$err" "failed at step 2/2, line 4: RUN echo almost"
	has "$err" "  broken"
	build -n failing --quiet
	is "$status" 1 "$err"
	has "$err" "  broken"
	atoll new --template failing
	is "$status" 1 "$err"
	atoll template log "$id"
	is "$status" 0 "$err"
	has "$err" almost
	atoll template log -f failing
	is "$status" 1 "$err"
	has "$err" "line 4"
}

a_mistake_in_the_file_is_reported_with_its_line() {
	dockerfile 'FROM base' 'RNU true'
	build -n mistake
	is "$status" 2 "$err"
	has "$err" "Dockerfile:2: unknown instruction RNU; did you mean RUN?: 'RNU true'"
	atoll template show mistake
	is "$status" 3 "$err"
	rm ctx/Dockerfile
	build
	has "$err" "the folder has no atoll.toml with [template], e2b.toml, Dockerfile"
	build --file other.Dockerfile
	is "$status" 3 "$err"
	has "$err" "no file 'other.Dockerfile' in the folder"
	atoll template build nofolder
	is "$status" 3 "$err"
	has "$err" "open the folder nofolder"
}

a_template_that_comes_with_the_server_is_built_by_name() {
	command -v cc >/dev/null || skip "no C compiler"
	atoll template build c --tag first
	is "$status" 0 "$err"
	is "$out" c:first
	atoll template show c --json
	is "$(echo "$out" | jq -r .built)" true "$out"
}

files_that_other_files_name_are_sent_too() {
	mkdir -p ctx/docker
	printf 'dockerfile = "docker/web.Dockerfile"\ntemplate_name = "from-e2b"\nmemory_mb = 256\n' >ctx/e2b.toml
	printf 'ARG WORD=none\nFROM base\nARG WORD\nRUN echo $WORD > /var/lib/word\n' >ctx/docker/web.Dockerfile
	build --build-arg WORD=given
	is "$status" 0 "$err"
	is "$out" from-e2b:default
	atoll template show from-e2b --json
	is "$(json out 'd["memory"]')" 268435456
	rm ctx/docker/web.Dockerfile
	build
	is "$status" 3 "$err"
	has "$err" "no file 'docker/web.Dockerfile' in the folder"
}

atoll_toml_needs_no_dockerfile() {
	mkdir ctx
	printf '[template]\nname = "plain"\nrun = ["echo $X > /var/lib/x"]\nenv = { X = "1" }\ncpu = 0.5\n' >ctx/atoll.toml
	build --quiet
	is "$status" 0 "$err"
	is "$err" ""
	is "${#out}" 36 "$out" # the id of the build
	printf '[template]\nprot = 80\n' >ctx/atoll.toml
	build
	is "$status" 2 "$err"
	has "$err" "atoll.toml:2: [template] has no 'prot'; did you mean port"
}

json_has_a_line_per_entry() {
	dockerfile 'FROM base' 'RUN echo one line'
	build -n lines --json
	is "$status" 0 "$err"
	is "$(jq -r 'select(.message == "one line") | .level' out)" info
	is "$(jq -r 'select(.state) | .state' out)" ready
	atoll template log lines --json
	is "$(jq -r 'select(.message == "one line") | .step' out)" 1
}

a_large_folder_is_refused_with_its_largest_parts() {
	dockerfile 'FROM base' 'COPY . /srv/'
	mkdir ctx/data ctx/other
	truncate -s 3G ctx/data/huge
	echo small >ctx/other/x
	build -n large
	is "$status" 1 "$err"
	has "$err" "the folder has 3 GiB in 3 files, of at most 2 GiB"
	has "$err" "largest: data 3 GiB, Dockerfile"
	has "$err" "echo FOLDER >> .dockerignore"
}

slow_waits() { "$ATOLL" template log slow 2>&1 | grep -q 'now it waits'; }
is_cancelled() { [ "$("$ATOLL" template show slow --json | jq -r '.builds[0].state')" = cancelled ]; }
a_build_is_cancelled() {
	dockerfile 'FROM base' 'RUN echo now it waits; sleep 600'
	build -n slow --detach
	is "$status" 0 "$err"
	is "${#out}" 36 "$out"
	soon slow_waits
	atoll template cancel "$out"
	is "$status" 0 "$err"
	soon is_cancelled
	# without a terminal, a signal cancels the build as well
	"$ATOLL" template build -n slow ctx >out 2>err &
	pid=$!
	soon grep -q 'now it waits' err
	kill "$pid"
	status=0
	wait "$pid" || status=$?
	is "$status" 1 "$(cat err)"
	grep -q 'was cancelled' err || fail "$(cat err)"
}

on_a_terminal_steps_have_colours_and_ctrl_c_asks() {
	dockerfile 'FROM base' 'RUN echo now it waits; sleep 600'
	status=0
	TERM=xterm /usr/bin/python3 "$here/onpty.py" 'wait=now it waits' 'wait=[1/1] RUN' 'send=\x03' 'wait=? [y/N]' 'send=n\r' \
		'wait=[1/1] RUN' 'send=\x03' -- "$ATOLL" template build -n slow ctx >out || status=$?
	is "$status" 130 "$(cat out)"
	has "$(cat out)" "the build continues: atoll template log -f "
	has "$(cat out)" "$(printf '\033[1m[1/1] RUN')"
	status=0
	TERM=xterm /usr/bin/python3 "$here/onpty.py" 'wait=now it waits' 'send=\x03' 'wait=? [y/N]' 'send=y\r' -- \
		"$ATOLL" template build -n slow2 ctx >out || status=$?
	is "$status" 1 "$(cat out)"
	has "$(cat out)" "was cancelled"
	atoll template cancel slow
	is "$status" 0 "$err"
}

a_secret_is_given_to_its_step() {
	dockerfile 'FROM base' 'RUN --mount=type=secret,id=token,env=T,required=true test "$T" = s3cret && test ! -e /etc/token' \
		'RUN test ! -e /run/secrets/token'
	echo s3cret >token.txt
	build -n secret --secret id=token,src=token.txt
	is "$status" 0 "$err"
	lacks "$err" s3cret
	TOKEN=s3cret build -n secret --force --secret id=token,env=TOKEN
	is "$status" 0 "$err"
	build -n secret --force
	is "$status" 1 "$err"
	build --secret id=token,src=nofile
	is "$status" 3 "$err"
	build --secret token
	is "$status" 2 "$err"
	has "$err" "'token' is not id=NAME,src=FILE"
}

a_template_is_exported_and_imported() {
	dockerfile 'FROM base' 'ENV WORD="a $b"' 'RUN mkdir -p /srv/d && echo file > /srv/d/f && chown -R 1000:1000 /srv/d && rm -rf /etc/skel' 'WORKDIR /srv/d' \
		'USER user' 'LABEL x=y' 'EXPOSE 8080' 'CMD python3 -m http.server 8080'
	build -n exported:v1
	is "$status" 0 "$err"
	atoll template export exported:v1 ./file
	is "$status" 0 "$err"
	has "$(head -n 1 file)" '"atoll_template":1'
	tail -n +2 file | tar tf - | grep -q 'srv/d/f' || fail "$(tail -n +2 file | tar tf - 2>&1 | head)"
	atoll template import ./file -n imported
	is "$status" 0 "$err"
	is "$out" imported:default "$err"
	atoll template show imported --json
	is "$(jq -r '"\(.port) \(.start) \(.workdir) \(.labels.x)"' out)" "8080 python3 -m http.server 8080 /srv/d y"
	for name in exported:v1 imported; do
		atoll run --template $name -- sh -c 'cat f; stat -c %u:%g f; echo $WORD; id -u; ls -d /etc/skel 2>&1'
		sed 's/^/: /' out >"seen.${name%:*}"
	done
	diff seen.exported seen.imported >differ || fail "$(cat differ)"
	has "$(cat seen.imported)" ": 1000:1000"
	"$ATOLL" template export exported:v1 - 2>err | head -c 100 >begin # the reader leaves
	[ -s begin ]
	atoll template export base ./other
	is "$status" 1 "$err"
	[ ! -e other ]
	echo nothing >bad
	atoll template import ./bad
	is "$status" 2 "$err"
	has "$err" "was not written by atoll template export"
	head -c 3000 file >short # the archive is cut
	atoll template import ./short -n short
	is "$status" 1 "$err"
	atoll template import ./nofile
	is "$status" 3 "$err"
}

names_and_tags_are_changed() {
	dockerfile 'FROM base' 'RUN echo tags > /var/lib/tags'
	build -n tagged:v1
	is "$status" 0 "$err"
	atoll template tag tagged:v1 stable latest
	is "$status" 0 "$err"
	atoll template show tagged --json
	is "$(jq -r '.tags | keys | join(" ")' out)" "latest stable v1"
	atoll template untag tagged:latest
	is "$status" 0 "$err"
	atoll template alias tagged other-name
	is "$status" 0 "$err"
	atoll template rename tagged renamed
	is "$status" 0 "$err"
	atoll template ls
	has "$out" renamed
	atoll template show other-name
	is "$(sed -n 's/^name *//p' out)" renamed
	atoll template check renamed:v1
	is "$status" 0 "$err"
	has "$out" "renamed:v1 is intact"
	atoll template rm renamed
	is "$status" 2 "$err"
	has "$err" "atoll template rm --yes renamed"
	atoll template rm --yes renamed
	is "$status" 0 "$err"
	atoll template show renamed
	is "$status" 3 "$err"
	atoll template untag renamed
	is "$status" 2 "$err"
	atoll template nosuch
	is "$status" 2 "$err"
	has "$err" "unknown subcommand"
}

# An eighth of the free space: boxes of several steps have room only after those of the steps before were destroyed.
disk=$(($(df -k --output=avail "$work" | tail -n 1) / 8))
[ $disk -lt 8388608 ] || disk=8388608
export ATOLL_TEMPLATES_BUILD_DISK=${disk}k
run_daemon_tests
