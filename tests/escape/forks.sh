#!/bin/sh
# forks.sh - what two boxes could share because both interpreters were forked from one zygote.
. "$(dirname "$0")/lib.sh"
[ -x /usr/bin/python3 ] || { echo "1..0 # SKIP no python3"; exit 0; }
need_keeper

# Runs a program in a new box by its warm interpreter. Sets out.
group=
snake() { # CODE
	brought=/usr/bin/python3 flags="-sp${group:+ -g $group}"
	[ "$place" = mutant ] || place=python
	inside -c "$1"
	is "$status" 0 "$err"
}

# Lateral: the state of a random generator is memory, and a fork copies memory
two_boxes_of_one_zygote_draw_different_random_numbers() {
	draw='import random, uuid, os, secrets, tempfile
print(random.random(), uuid.uuid4(), os.urandom(4).hex(), secrets.token_hex(4), next(tempfile._get_candidate_names()))'
	snake "$draw"
	a=$out
	snake "$draw"
	for i in 1 2 3 4 5; do
		[ "$(echo "$a" | cut -d ' ' -f $i)" != "$(echo "$out" | cut -d ' ' -f $i)" ] || escaped "number $i of '$a' twice"
	done
}

# Lateral
writes_to_memory_shared_by_fork_stay_in_one_box() {
	poke='import ctypes, string, sys
at = id(string.ascii_letters) + sys.getsizeof("") - 1
print(ctypes.string_at(at, 4).decode())
ctypes.memmove(at, b"ATOL", 4)
print(ctypes.string_at(at, 4).decode())'
	for _ in 1 2 3; do
		snake "$poke"
		is "$(echo "$out" | tail -n 1)" ATOL
		[ "$(echo "$out" | head -n 1)" = abcd ] || escaped "a neighbour wrote $out"
	done
}

# Prints what an attack on the memory of another box would have to know, one fact per line.
secrets='import ctypes, platform
libc = ctypes.CDLL(None)
libc.getauxval.restype = libc.pthread_self.restype = ctypes.c_ulong
print("random", ctypes.string_at(libc.getauxval(25), 16).hex())
if platform.machine() == "x86_64":
    print("canary", ctypes.string_at(libc.pthread_self() + 0x28, 8).hex())
    print("pointers", ctypes.string_at(libc.pthread_self() + 0x30, 8).hex())
else:
    print("canary", ctypes.c_ulong.in_dll(libc, "__stack_chk_guard").value)
print("hash", hash("atoll"))
print("libc", ctypes.cast(libc.getauxval, ctypes.c_void_p).value)
print("stack", libc.getauxval(25))
print("heap", id(object()))'
shared() { # FILE: prints its facts that are also in $out
	echo "$out" | grep -Fxf "$1" | cut -d ' ' -f 1 | tr '\n' ' '
}

# Lateral: execve gives each process its own canary
two_boxes_of_one_zygote_have_different_stack_canaries() {
	snake "$secrets"
	echo "$out" >first
	snake "$secrets"
	case $(shared first) in *random* | *canary*) escaped "the same $(shared first)" ;; esac
}

# Lateral: a fork shares addresses and the hash seed, so boxes of two teams have two zygotes
boxes_of_two_teams_share_no_zygote_secret() {
	group=1
	snake "$secrets"
	echo "$out" >first
	group=2
	snake "$secrets"
	[ -z "$(shared first)" ] || escaped "the same $(shared first)"
}

# SelfDoS: a changed canary must not be compared with the old one
a_renewed_stack_canary_breaks_no_program() {
	snake 'import ctypes, threading, os, json, sqlite3, subprocess, sys
t = threading.Thread(target=lambda: print(json.dumps([1]), flush=True)); t.start(); t.join()
print(sqlite3.connect(":memory:").execute("select 1").fetchone())
print(subprocess.run(["/bin/echo", "child"], capture_output=True).stdout)
sys.stdout.flush()
p = os.fork()
if p == 0: print("fork"); os._exit(0)
os.waitpid(p, 0)
def deep(n): return n and 1 + deep(n - 1)
print(deep(900))'
	is "$out" "$(printf '%s\n' '[1]' '(1,)' "b'child\\n'" fork 900)"
}

# Lateral
no_writable_mapping_is_shared_with_the_zygote() {
	snake 'for line in open("/proc/self/maps"):
    f = line.split()
    if "w" in f[1] and "s" in f[1]: print(line, end="")'
	[ -z "$out" ] || escaped "$out"
}

# Lateral: the heap image is one file for all boxes. On the host, root could open the mapped file
the_heap_image_of_a_zygote_cannot_be_opened() {
	look='import os
n = 0
for line in open("/proc/self/maps"):
    if "memfd:zygote" not in line: continue
    n += 1
    if line.split()[1][3] != "p": print("shared", line)
    for how in os.O_RDWR, os.O_WRONLY, os.O_RDONLY:
        try: os.open("/proc/self/map_files/" + line.split()[0], how); print("opened", line)
        except OSError: pass
print("mapped", n > 4)'
	has "$(/usr/bin/python3 -c "import mmap, os
f = os.memfd_create('zygote')
os.ftruncate(f, 4096)
m = mmap.mmap(f, 4096, mmap.MAP_PRIVATE)
$look")" opened
	snake "$look"
	[ "$out" = "mapped True" ] || escaped "$out"
}

# HostLeak
a_forked_interpreter_has_only_its_three_streams_open() {
	snake 'import os
for n in range(256):
    try: print(n, os.readlink("/proc/self/fd/%d" % n).split(":")[0])
    except OSError: pass'
	[ "$out" = "$(printf '%s\n' '0 pipe' '1 pipe' '2 pipe')" ] || escaped "$out"
}

# Escape
a_forked_interpreter_is_a_child_of_init_in_the_namespaces_of_the_box() {
	# The process that made it exits; on a busy machine that takes a moment.
	snake 'import os, time
end = time.monotonic() + 20
while os.getppid() != 1 and time.monotonic() < end: time.sleep(0.01)
print(os.getppid(), os.getsid(0) == os.getpid() == os.getpgrp())
for n in sorted(os.listdir("/proc/self/ns") if os.path.exists("/proc/self") else []):
    print(n, os.readlink("/proc/self/ns/" + n))'
	same "$(echo "$out" | head -n 1)" "1 True"
	echo "$out" | sed 1d >inside
	for n in user mnt pid net ipc uts cgroup; do
		grep -q "^$n " inside || escaped "its /proc does not know it"
		! grep -qx "$n $(readlink "/proc/self/ns/$n")" inside || escaped "$n is the host's"
	done
}

# HostLeak: the arguments of the zygote, and its working directory
nothing_of_the_zygotes_environment_is_left() {
	snake 'import os
print(sorted(os.environ))
print(open("/proc/self/environ", "rb").read().replace(b"\0", b" "))'
	lacks "$out" canary
	lacks "$out" LD_PRELOAD
	lacks "$out" ATOLL_ROOM
	has "$(echo "$out" | tail -n 1)" "HOME=/home/user"
}

# Escape: execve drops capabilities, a fork does not
a_forked_interpreter_has_no_capability() {
	snake 'for line in open("/proc/self/status"):
    if line.startswith("Cap"): print(line, end="")'
	[ "$(echo "$out" | cut -f 2 | sort -u)" = 0000000000000000 ] || escaped "$out"
}

# SelfDoS
files_of_a_forked_interpreter_have_the_default_mode() {
	snake 'import os
open("a", "w").close()
print(oct(os.stat("a").st_mode))'
	same "$out" 0o100644
}

# SelfDoS
the_death_of_a_zygote_does_not_affect_its_boxes() {
	zygotes() { for p in $(pgrep -P "$keeper"); do tr '\0' ' ' <"/proc/$p/cmdline" | grep -q '^/usr/bin/python3 python ' && echo "$p" || :; done; }
	snake 'print(1)'
	before=$(zygotes)
	[ "$before" ] || fail "no zygote"
	kill -9 $before
	run -- true
	is "$status" 0
	snake 'print(2)' # waits until there is another zygote
	after=$(zygotes)
	[ "$after" ] && [ "$after" != "$before" ] || fail "still '$before'"
}

run_tests
