#!/bin/bash
# Copies of running programs in namespaces of their own (src/procimage). See tests/system/procimagebox.c.
#
#	tests/system/procimage.sh	what ./check runs: seconds
#	KILLS=1000 tests/system/procimage.sh	more kills of the capturing process
set -u
here=$(cd "$(dirname "$0")" && pwd)
box=$(dirname "$ATOLL")/procimagebox
python=/usr/bin/python3
n=0 failed=0
# The programs of this test get no other descriptor of the caller: one with its other end outside is refused.
for fd in /proc/$$/fd/*; do
	fd=${fd##*/}
	[ "$fd" -le 2 ] || [ "$fd" -eq 255 ] || eval "exec $fd>&-"
done
if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP needs root for pid and network namespaces"
	exit 0
fi
cd "$TMPDIR" || exit 1
pids=
trap 'kill $pids 2>/dev/null' EXIT

verdict() { # STATUS NAME [WHY]
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		printf '%s\n' "${3:-}" | sed 's/^/# /'
		failed=1
	fi
}
wait_for() { # PATTERN FILE
	for _ in $(seq 300); do
		grep -q -e "$1" "$2" 2>/dev/null && return 0
		sleep 0.1
	done
	return 1
}
start() { # FOLDER COMMAND...: prints of the program go to FOLDER/out through a pipe, as in a box
	mkdir -p "$1/copies"
	mkfifo "$1/pipe" "$1/hold"
	cat "$1/pipe" >"$1/out" &
	pids="$pids $!"
	"${@:2}" >"$1/pipe" 2>&1 </dev/null &
	program=$!
	pids="$pids $program"
	wait_for ready "$1/out"
}
# Two copies; their output in FOLDER/copies/0 and 1. The copies end with procimagebox.
copy() { # FOLDER [COMMAND]
	sleep 120 >"$1/hold" &
	holder=$!
	"$box" "${2:-fork}" "$program" 2 "$PWD/$1/copies" <"$1/hold" >"$1/log" 2>&1 &
	copier=$!
	pids="$pids $copier $holder"
	wait_for '^running\|^procimagebox' "$1/log"
	grep -q '^running' "$1/log"
}
end_copies() {
	kill "$holder"
	wait "$copier"
}

# ---- Python: threads, descriptors, memory ----
start py $python "$here/procimage.py" "$PWD/py" 15671
copy py
verdict $? "a Python program is captured and forked twice" "$(cat py/log)"
touch py/check
for name in out copies/0 copies/1; do
	wait_for '^checked' py/$name
	grep -q '^checked .* ok$' py/$name
	verdict $? "everything continues in ${name/out/the source}" "$(cat py/$name)"
done
same=$(grep -h '^checked' py/out py/copies/* | cut -d ' ' -f 2,3 | sort -u | wc -l)
[ "$same" = 1 ]
verdict $? "source and copies have the same variables and the same pid" "$(cat py/out py/copies/*)"
grep -q ' old ok' py/out && grep -q 'ConnectionResetError\|BrokenPipeError' py/copies/0
verdict $? "a connection stays with the source and is reset in the copy" "$(cat py/copies/0)"
end_copies
sed 's/^/# /' py/log

# ---- node: worker threads, epoll, memory that fork() leaves out ----
if command -v node >/dev/null; then
	cat >server.js <<'JS'
const http = require('http'), fs = require('fs');
const [port, folder] = [+process.argv[2], process.argv[3]];
let requests = 0;
http.createServer((q, r) => { requests++; r.end('answer ' + requests); }).listen(port, '127.0.0.1', () => console.log('ready'));
const timer = setInterval(() => {
	if (!fs.existsSync(folder + '/check')) return;
	clearInterval(timer);
	http.get({ port, host: '127.0.0.1' }, r => r.on('data', d => require('crypto').pbkdf2('a', 'b', 1000, 20, 'sha1', () => {
		console.log('checked', '' + d, process.pid);
		process.exit(0);
	})));
}, 20);
JS
	start node "$(command -v node)" server.js 15672 "$PWD/node"
	copy node
	verdict $? "a node server is captured and forked twice" "$(cat node/log)"
	touch node/check
	for name in out copies/0 copies/1; do
		wait_for '^checked' node/$name
		grep -q '^checked answer 1 ' node/$name
		verdict $? "node answers and computes in ${name/out/the source}" "$(cat node/$name)"
	done
	end_copies
fi

# ---- confined copies ----
start confined env --chdir=/ $python -c 'import os, threading, time
word = os.urandom(4).hex()
def work():
	while True:
		time.sleep(0.01)
threading.Thread(target=work, daemon=True).start()
print("ready", word, flush=True)
while True:
	time.sleep(0.05)
	try:
		os.setuid(0)
		may = "may"
	except PermissionError:
		may = "may not"
	print("checked", word, os.getuid(), may, flush=True)' "$PWD/confined"
copy confined confined
verdict $? "a program is forked into user namespaces" "$(cat confined/log)"
for copied in 0 1; do
	wait_for '^checked' confined/copies/$copied
	grep -q "^checked $(sed -n 's/^ready //p' confined/out) 1000 may not" confined/copies/$copied
	verdict $? "copy $copied has its variables, another user and no right to change it" "$(head -3 confined/copies/$copied)"
done
threads=0 bad=
for task in $(pgrep -f "$PWD/confined\$" | sed 's|.*|/proc/&/task/*|'); do
	grep -q '^Uid:	101000	101000	101000	101000' "$task/status" 2>/dev/null || continue
	threads=$((threads + 1))
	for line in 'CapInh:	0*' 'CapPrm:	0*' 'CapEff:	0*' 'CapBnd:	0*' 'CapAmb:	0*' 'NoNewPrivs:	1' 'Seccomp:	2' 'Seccomp_filters:	1' 'Groups:	 *'; do
		grep -qx "$line" "$task/status" || bad="$bad $task: not $line;"
	done
done
[ "$threads" = 4 ] && [ -z "$bad" ]
verdict $? "every thread of the copies has no capability, no new privileges and one filter" "$threads threads;$bad"
end_copies
kill -KILL "$program"

# ---- a copy of a copy ----
start again $python "$here/procimage.py" "$PWD/again" 15674
source=$program
copy again
first=$holder first_copier=$copier
program=
for candidate in $(pgrep -f "procimage.py $PWD/again"); do # the zygote has the arguments of the program, too
	[ "$candidate" = "$source" ] || [ "$(cat /proc/$candidate/comm)" != python3 ] || program=$candidate
done
mkdir -p second/copies
mkfifo second/hold
copy second
verdict $? "a copy is captured and forked again" "$(cat again/log second/log)"
touch again/check
# The output of a copy is a file, which its copies open again.
for _ in $(seq 300); do
	checked=$(cat again/copies/* | grep -c '^checked .* ok$')
	[ "$checked" = 4 ] && break
	sleep 0.1
done
[ "$checked" = 4 ]
verdict $? "everything continues in two copies and in two copies of a copy" "$(cat again/copies/*)"
end_copies
holder=$first copier=$first_copier
end_copies

# ---- kill -9 of the capturing process ----
start kill $python "$here/procimage.py" "$PWD/kill" 15673
"$box" kill "$program" "${KILLS:-40}" >kill/log 2>&1
verdict $? "the program survives kills of the capturing process" "$(cat kill/log)"
"$box" steps "$program" >>kill/log 2>&1
verdict $? "it survives the death of the capturing process after each of its calls of ptrace" "$(cat kill/log)"
sed 's/^/# /' kill/log
for _ in $(seq 50); do # an orphan ends by itself
	orphans=$(pgrep -f "procimage.py $PWD/kill" | grep -cvx "$program")
	[ "$orphans" = 0 ] && break
	sleep 0.1
done
[ "$orphans" = 0 ]
verdict $? "no duplicate of it remains" "$orphans processes"
masks=$(sed -n 's/^SigBlk:	//p' /proc/"$program"/task/*/status | sort -u)
[ "$masks" = 0000000000000000 ]
verdict $? "its threads block no signal" "$masks"
touch kill/check
wait_for '^checked' kill/out
grep -q '^checked .* ok$' kill/out
verdict $? "it has lost nothing" "$(cat kill/out)"

# ---- refusals, by name ----
refused() { # NAME WORDS PYTHON [SIGNAL]
	mkdir -p "r$n"
	local folder=r$n
	start "$folder" $python -c "$3
print('ready', flush=True)
import time
time.sleep(60)"
	if [ "${4:-}" ]; then
		kill -s "$4" "$program"
		wait_for '^State:	T' "/proc/$program/status"
	fi
	"$box" image "$program" "$folder/image" >"$folder/log" 2>&1 && echo "was captured" >>"$folder/log"
	grep -q "not_capturable: process $program (python3).*$2" "$folder/log" && kill -0 "$program"
	verdict $? "$1 is refused by name, and the program continues" "$(cat "$folder/log")"
	kill -KILL "$program"
	wait "$program" 2>/dev/null
}
call='import ctypes; libc = ctypes.CDLL(None); libc.syscall.restype = ctypes.c_long'
[ "$(uname -m)" = x86_64 ] && uffd=323 || uffd=282
refused "a raw socket" "descriptor 3: raw" "import socket; s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"
refused "userfaultfd" "descriptor 3: userfaultfd" "$call; libc.syscall($uffd, 0)"
refused "fanotify" "descriptor 3: fanotify" "$call; assert libc.fanotify_init(0, 0) == 3"
refused "an inotify watch of a file that was deleted" "descriptor 3: inotify watches" "$call
f = libc.inotify_init(); open('$PWD/deleted', 'w').close(); keep = open('$PWD/deleted'); libc.inotify_add_watch(f, b'$PWD/deleted', 0x2)
import os; os.remove('$PWD/deleted')"
refused "a filter of its own" "seccomp" "$call
libc.prctl(38, 1, 0, 0, 0)
code = (ctypes.c_uint64 * 1)(0x7fff000000000006)
prog = (ctypes.c_uint64 * 2)(1, ctypes.addressof(code))
assert libc.prctl(22, 2, prog, 0, 0) == 0"
refused "io_uring" "io_uring" "$call; p = (ctypes.c_char * 256)(); assert libc.syscall(425, 4, p) > 0"
refused "a child process" "child processes" "import subprocess; p = subprocess.Popen(['sleep', '60'])"
refused "a pipe to another program" "descriptor 4: pipes" "import os
r, w = os.pipe()
if os.fork() == 0:
	if os.fork() == 0: # the reader belongs to init, and ends with the writer
		os.close(w)
		os.read(r, 1)
	os._exit(0)
os.wait()
os.dup2(w, 4)
os.close(r) if r != 4 else None
os.close(w) if w != 4 else None"

# ---- the documentation ----
{
	printf '| thing | copy | note |\n|---|---|---|\n'
	"$ATOLL" checkpoint --explain --json | jq -r '"| \(.thing) | \(.copy) | \(.note) |"'
} >table
awk '/^\| thing \| copy \| note \|/ { on = 1 } on && !/^\|/ { exit } on' "$here/../../docs/checkpoints.md" >documented
diff table documented >differences
verdict $? "the table in docs/checkpoints.md has the rows that the code checks" "$(cat differences)"
echo "1..$n"
exit $failed
