#!/bin/sh
# programs.sh - real programs continue in two copies of their box, while the source continues: `make forks`.
#
#	tests/forks/programs.sh [NAME...]	only these
#
# Each program counts what it is asked. It is asked once before the fork: both copies and the source answer 2 after it.
# A program that cannot be captured is refused by name; the test of it has the reason.
libs=$(cd "$(dirname "$0")/../system" && pwd)
. "$libs/daemon.lib"
[ "${ATOLL_TIER:-container}" = container ] || { echo "1..0 # SKIP only boxes without an engine are forked with their programs"; exit 0; }
wanted=$*

box() {
	api POST /v1/boxes "${1-"{\"limits\":{\"mem\":1073741824}}"}"
	is "$code" 201 "$body"
	b=$(get .id)
}
file() { # NAME: from standard input, into the home folder
	code=$(curl -sS -o body -w '%{http_code}' -X PUT -H "X-API-Key: $key" --data-binary @- "$url/v1/boxes/$b/files?path=$1${2-}")
	is "$code" 201 "$(cat body)" 2>/dev/null || is "$code" 200 "$(cat body)"
}
inside() { # BOX COMMAND: prints its output
	curl -sS -m 60 -H "X-API-Key: $key" -H 'Content-Type: application/json' \
		-d "$(jq -nc --arg c "$2" '{command:["sh","-c",$c]}')" "$url/v1/boxes/$1/execs" | jq -r '(.stdout // .error.message)'
}
start() { # COMMAND: for sh. Sets x
	api POST "/v1/boxes/$b/execs" "$(jq -nc --arg c "$1" '{command:["sh","-c",$c], background:true, open_stdin:true}')"
	is "$code" 201 "$body"
	x=$(get .id)
}
output() { curl -sS -m "${3:-0.4}" -H "X-API-Key: $key" "$url/v1/boxes/$1/execs/$2/output?raw=stdout" 2>/dev/null | tr -d '\r'; }
says() { output "$1" "$2" | grep -qx -- "$3"; }
send() { curl -sS -o /dev/null -H "X-API-Key: $key" --data-binary @- "$url/v1/boxes/$1/execs/$2/stdin"; }
running() { # BOX: the exec of the program, whose id differs in each box
	api GET "/v1/boxes/$1/execs?running=1"
	get '[.items[]][0].id'
}
# How a program is asked. lines: each line of input is answered with a number. probe: a command prints the number.
how=lines probe=
ask() { # BOX NUMBER
	if [ $how = probe ]; then
		answered() { [ "$(inside "$1" "$probe")" = "$2" ]; }
		soon answered "$1" "$2" || { echo "# $1 answered $(inside "$1" "$probe"), not $2"; return 1; }
	else
		y=$(running "$1")
		echo ask | send "$1" "$y"
		soon says "$1" "$y" "$2"
	fi
}
copies_answer() { # the program has been asked once
	api POST "/v1/boxes/$b/fork" '{"memory":true,"count":2}'
	is "$code" 201 "$body"
	is "$(get '[.items[] | select(.error)] | length')" 0 "$body"
	echo "# $(get '{frozen_us,took_us,bytes:.memory.bytes,processes:(.memory.processes|length)}' | tr -d '\n ')"
	copies=$(get '.items[].box.id')
	for c in $copies; do ask "$c" 2; done
	ask "$b" 2
	for c in $copies; do ask "$c" 3; done
	for c in $copies $b; do api DELETE "/v1/boxes/$c"; done
}
lines() { # COMMAND
	how=lines
	start "$1"
	ask "$b" 1
	copies_answer
}
server() { # COMMAND PROBE
	how=probe probe=$2
	start "$1"
	ask "$b" 1
	copies_answer
}
refused() { # COMMAND TEXT: it says ready
	start "$1"
	soon says "$b" "$x" ready
	api POST "/v1/boxes/$b/fork" '{"memory":true}'
	is "$code $(get .error.code)" "409 not_capturable" "$body"
	case $body in *"$2"*) ;; *) is "$body" "*$2*" ;; esac
	api GET "/v1/boxes/$b/execs/$x"
	is "$(get .state)" running "$body"
	api DELETE "/v1/boxes/$b"
}
absent() { echo "# not tried: $1 is not installed"; }
http='curl -s --max-time 2 http://127.0.0.1:8000/'

a_python_repl() {
	box
	how=lines
	start 'exec /usr/bin/python3 -iuq 2>&1'
	printf 'n = 1\nprint(n)\n' | send "$b" "$x"
	soon says "$b" "$x" '\(.*>>> \)\{0,1\}1' # the prompts are on the same line
	copies=
	api POST "/v1/boxes/$b/fork" '{"memory":true,"count":2}'
	is "$code" 201 "$body"
	for c in $(get '.items[].box.id') "$b"; do
		y=$(running "$c")
		printf 'n += 41; print("got", n)\n' | send "$c" "$y"
		soon says "$c" "$y" '.*got 42'
		api DELETE "/v1/boxes/$c"
	done
}
python_threads_with_openblas() {
	box
	file p.py <<'E'
import sys, threading, numpy as np
a, n = np.random.rand(300, 300), 0
def work():
    while True: a.dot(a)
threading.Thread(target=work, daemon=True).start()
for line in sys.stdin:
    n += 1
    assert abs((a.dot(a))[0, 0] - sum(a[0, :] * a[:, 0])) < 1e-6
    print(n, flush=True)
E
	/usr/bin/python3 -c 'import numpy' 2>/dev/null || { api DELETE "/v1/boxes/$b"; absent numpy; return 0; }
	lines 'exec /usr/bin/python3 p.py'
}
a_python_asyncio() {
	box
	file p.py <<'E'
import asyncio
n = 0
async def one(r, w):
    global n
    await r.readuntil(b"\r\n\r\n"); n += 1; t = str(n).encode()
    w.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(t), t)); await w.drain(); w.close()
async def tick():
    while True: await asyncio.sleep(0.01)
async def main():
    s = await asyncio.start_server(one, "127.0.0.1", 8000)
    asyncio.create_task(tick())
    p = await asyncio.create_subprocess_exec("sleep", "1000")
    await s.serve_forever()
asyncio.run(main())
E
	server 'exec /usr/bin/python3 p.py' "$http"
}
a_python_multiprocessing() {
	box
	file p.py <<'E'
import multiprocessing as m, sys
def work(q, r, v):
    for x in iter(q.get, None):
        with v.get_lock(): v.value += 1
        r.put(v.value)
if __name__ == "__main__":
    q, r, v = m.Queue(), m.Queue(), m.Value("i", 0)
    for i in range(3): m.Process(target=work, args=(q, r, v)).start()
    for line in sys.stdin:
        q.put(line); print(r.get(), flush=True)
E
	lines 'exec /usr/bin/python3 p.py'
}
python_sqlite_reads_with_an_old_handle_and_writes_with_a_new_one() {
	box
	file p.py <<'E'
import sqlite3, sys
d = sqlite3.connect("d.db"); d.execute("create table t (n int)"); d.execute("insert into t values (7)"); d.commit()
n = 0
for line in sys.stdin:
    n += 1
    assert d.execute("select n from t").fetchone() == (7,)
    if n == 2:
        x = sqlite3.connect("d.db"); x.execute("insert into t values (8)"); x.commit(); x.close()
    print(n, flush=True)
E
	lines 'exec /usr/bin/python3 p.py'
}
node_server_with_open_clients() {
	box
	file s.js <<'E'
let n = 0
require('http').createServer((q, r) => { n++; r.end(String(n)) }).listen(8000, '127.0.0.1', () => {
  // Clients that keep their connections open.
  const net = require('net')
  for (let i = 0; i < 3; i++) net.connect(8000, '127.0.0.1').on('error', () => {})
})
setInterval(() => {}, 100)
E
	server 'exec node s.js' "$http"
}
node_worker_threads() {
	box
	file s.js <<'E'
const { Worker, isMainThread, parentPort } = require('worker_threads')
if (isMainThread) {
  const w = new Worker(__filename)
  w.on('message', n => console.log(n))
  require('readline').createInterface({ input: process.stdin }).on('line', l => w.postMessage(l))
} else { let n = 0; parentPort.on('message', () => parentPort.postMessage(++n)) }
E
	lines 'exec node s.js'
}
node_with_a_child_process() {
	box
	file s.js <<'E'
const { fork } = require('child_process')
if (process.argv[2]) { let n = 0; process.on('message', () => process.send(++n)) }
else {
  const c = fork(__filename, ['child'])
  c.on('message', n => console.log(n))
  require('readline').createInterface({ input: process.stdin }).on('line', l => c.send(l))
}
E
	lines 'exec node s.js'
}
a_java_program() {
	box
	file P.java <<'E'
public class P { public static void main(String[] a) throws Exception {
  var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in)); int n = 0;
  while (in.readLine() != null) { System.out.println(++n); System.out.flush(); } } }
E
	inside "$b" 'javac P.java' >/dev/null
	lines 'exec java -Xmx128m P'
}
a_go_server() {
	box
	file m.go <<'E'
package main
import ("fmt"; "net/http"; "sync/atomic")
var n int64
func main() { http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, atomic.AddInt64(&n, 1)) }); http.ListenAndServe("127.0.0.1:8000", nil) }
E
	is "$(inside "$b" 'GOCACHE=/tmp/g GO111MODULE=off go build -o m m.go 2>&1 && echo built')" built
	server 'exec ./m' "$http"
}
a_rust_server() {
	rustc=$(command -v /usr/bin/rustc || command -v /root/.cargo/bin/rustc) || { absent rustc; return 0; }
	box
	cat >r.rs <<'E'
use std::io::{Read, Write};
fn main() { let l = std::net::TcpListener::bind("127.0.0.1:8000").unwrap(); let n = std::sync::Arc::new(std::sync::Mutex::new(0));
  for s in l.incoming() { let n = n.clone(); std::thread::spawn(move || { let mut s = s.unwrap(); let mut b = [0; 1024]; let _ = s.read(&mut b);
    let mut n = n.lock().unwrap(); *n += 1; let t = n.to_string(); let _ = write!(s, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{}", t.len(), t); }); } }
E
	"$rustc" -O -o r r.rs || return 1
	file m <r
	server 'chmod +x m; exec ./m' "$http"
}
c_program_on_the_disk_of_the_box() {
	box
	file c.c <<'E'
#include <stdio.h>
int main(void) { char l[99]; int n = 0; while (fgets(l, 99, stdin)) { printf("%d\n", ++n); fflush(stdout); } }
E
	is "$(inside "$b" 'gcc -static -o c c.c && gcc -o d c.c && echo built')" built
	lines 'exec ./d'
}
a_ruby_program() {
	box
	lines 'exec ruby -e "n = 0; Thread.new { loop { sleep 0.01 } }; while gets; n += 1; puts n; \$stdout.flush; end"'
}
a_php_server() {
	box
	file i.php <<'E'
<?php $f = '/tmp/n'; $n = (int)@file_get_contents($f) + 1; file_put_contents($f, $n); echo $n;
E
	server 'exec php -S 127.0.0.1:8000 i.php 2>/dev/null' "$http"
}
an_r_program() {
	box
	file p.R <<'E'
n <- 0; f <- file("stdin", "r"); while (length(readLines(f, 1)) > 0) { n <- n + 1; cat(n, "\n", sep = ""); flush(stdout()) }
E
	lines 'exec Rscript p.R'
}
perl_with_a_pipe_to_a_child() {
	box
	file p.pl <<'E'
use IPC::Open2; $| = 1; $pid = open2(my $o, my $i, "sh", "-c", 'n=0; while read l; do n=$((n+1)); echo $n; done'); $i->autoflush(1);
while (<STDIN>) { print $i "x\n"; print scalar <$o>; }
E
	lines 'exec perl p.pl'
}
bash_with_jobs_and_a_pipeline() {
	box
	file p.sh <<'E'
set -m
sleep 1000 & sleep 1000 | cat &
( exit 7 ) & dead=$!
n=0
while read -r line; do
	n=$((n + 1))
	if [ $n = 2 ]; then wait $dead; [ $? = 7 ] || { echo "status"; exit; }; [ "$(jobs -r | wc -l)" = 2 ] || { echo jobs; jobs; exit; }; fi
	echo "$n"
done
E
	lines 'exec bash p.sh'
}
make_in_the_middle_of_a_build() {
	box
	file Makefile <<'E'
all: $(foreach i,1 2 3 4 5 6,o$i)
o%:
	@sleep 1; echo 'int f(void) { return $*; }' | gcc -x c -c -o $@ - && echo made $*
E
	how=probe probe='ls o1 o2 o3 o4 o5 o6 2>/dev/null | wc -l'
	start 'make -j2 && echo done; sleep 100'
	soon says "$b" "$x" 'made 1'
	api POST "/v1/boxes/$b/fork" '{"memory":true,"count":2}'
	is "$code" 201 "$body"
	finished() { [ "$(inside "$1" "$probe")" = 6 ] && says "$1" "$2" 'done'; }
	for c in $(get '.items[].box.id') "$b"; do
		y=$(running "$c")
		soon finished "$c" "$y"
		api DELETE "/v1/boxes/$c"
	done
}
a_redis_server() {
	box
	server 'exec redis-server --port 6379 --save "" --daemonize no --dir /tmp >/dev/null' 'redis-cli incr n'
}
postgres_is_refused_for_its_shared_memory() {
	pg=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
	[ -d "$pg" ] || { absent postgres; return 0; }
	box
	inside "$b" "$pg/initdb -D d -A trust >/dev/null 2>&1" >/dev/null
	refused "$pg/postgres -D d -k /tmp -h '' >/dev/null 2>&1 & until $pg/psql -h /tmp postgres -c 'select 1' >/dev/null 2>&1; do sleep 0.2; done; echo ready; wait" 'System V shared memory'
}
a_jupyter_kernel() {
	/usr/bin/python3 -c 'import ipykernel, jupyter_client' 2>/dev/null || { absent ipykernel; return 0; }
	box
	file c.py <<'E'
import sys, jupyter_client
c = jupyter_client.BlockingKernelClient(connection_file="k.json"); c.load_connection_file(); c.start_channels(); c.wait_for_ready(timeout=20)
out = []
c.execute_interactive("n = globals().get('n', 0) + 1; print(n)", timeout=20, output_hook=lambda m: out.append(m["content"].get("text", "")) if m["msg_type"] == "stream" else None)
print("".join(out).strip())
E
	server 'exec /usr/bin/python3 -m ipykernel_launcher -f "$PWD/k.json" >/dev/null 2>&1' 'until [ -s k.json ]; do sleep 0.1; done; /usr/bin/python3 c.py'
}
pre_forking_server() {
	box
	file p.py <<'E'
import os, socket, mmap, signal
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 8000)); s.listen(9)
m = mmap.mmap(-1, 4096)
for i in range(4):
    if os.fork() == 0:
        while True:
            c, a = s.accept(); c.recv(999); m[0] = m[0] + 1; t = str(m[0]).encode()
            c.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(t), t)); c.close()
os.wait()
E
	server 'exec /usr/bin/python3 p.py' "$http"
}
nginx_with_workers() {
	[ -x /usr/sbin/nginx ] || { absent nginx; return 0; }
	box
	file n.conf <<'E'
daemon off; worker_processes 2; pid /tmp/n.pid; error_log /dev/null;
events { worker_connections 64; } http { access_log off; client_body_temp_path /tmp/a; proxy_temp_path /tmp/b; fastcgi_temp_path /tmp/c; uwsgi_temp_path /tmp/d; scgi_temp_path /tmp/e;
server { listen 127.0.0.1:8000; location / { return 200 "$connections_handled_x1"; } } }
E
	inside "$b" "sed -i 's/\"\$connections_handled_x1\"/up/' n.conf" >/dev/null
	how=probe probe="$http | sed s/up/\$(cat k 2>/dev/null || echo 1)/; echo 2 >k"
	start '/usr/sbin/nginx -c ~/n.conf -e /dev/null'
	up() { [ "$(inside "$1" "$http")" = up ]; }
	soon up "$b"
	api POST "/v1/boxes/$b/fork" '{"memory":true,"count":2}'
	is "$code" 201 "$body"
	for c in $(get '.items[].box.id') "$b"; do soon up "$c"; api DELETE "/v1/boxes/$c"; done
}
http_server_of_python_with_files() {
	box
	file f <<'E'
1
E
	how=probe probe="curl -s --max-time 2 http://127.0.0.1:8000/f; echo \$((\$(cat f) + 1)) >f"
	start 'exec /usr/bin/python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1'
	ask "$b" 1
	copies_answer
}
# A cell that runs is continued: it ends in each copy with what it had.
driver() { # LANGUAGE CODE OUTPUT
	box
	api POST "/v1/boxes/$b/contexts" "{\"language\":\"$1\"}"
	is "$code" 201 "$body"
	k=$(get .id)
	curl -sS -m 60 -o cell -H "X-API-Key: $key" -d "$(jq -nc --arg c "$2" '{code:$c}')" "$url/v1/boxes/$b/contexts/$k/cells" &
	sleep 2
	api POST "/v1/boxes/$b/fork" '{"memory":true,"count":2}'
	is "$code" 201 "$body"
	copies=$(get '.items[].box.id')
	wait $!
	case $(jq -r .stdout cell) in *"$3"*) ;; *) is "$(cat cell)" "$3" ;; esac
	for c in $copies; do
		api GET "/v1/boxes/$c/contexts"
		y=$(get '.items[0].id')
		api POST "/v1/boxes/$c/contexts/$y/cells" "$(jq -nc --arg c "$4" '{code:$c}')"
		is "$code" 200 "$body"
		case $(get .stdout) in *"$5"*) ;; *) is "$body" "$5" ;; esac
	done
	for c in $copies $b; do api DELETE "/v1/boxes/$c"; done
}
the_python_driver() { driver python 'import time
v = 5
time.sleep(4); v += 1; print("end", v)' 'end 6' 'print("then", v + 1)' 'then 7'; }
the_javascript_driver() { driver javascript 'var v = 5; await new Promise(r => setTimeout(r, 4000)); v++; console.log("end", v)' 'end 6' 'console.log("then", v + 1)' 'then 7'; }
the_bash_driver() { driver bash 'v=5; sleep 4; v=$((v + 1)); echo "end $v"' 'end 6' 'echo "then $((v + 1))"' 'then 7'; }
the_r_driver() { driver r 'v <- 5; Sys.sleep(4); v <- v + 1; cat("end", v)' 'end 6' 'cat("then", v + 1)' 'then 7'; }

bash_with_jobs_in_a_terminal() {
	box
	api POST "/v1/boxes/$b/execs" '{"command":["bash","--norc"],"background":true,"pty":{"rows":24,"cols":80},"open_stdin":true}'
	is "$code" 201 "$body"
	x=$(get .id)
	printf 'n=1; sleep 1000 & sleep 1001\n' | send "$b" "$x"
	started() { [ -n "$(inside "$b" 'pgrep -fx "sleep 1001"')" ]; }
	soon started
	printf '\032' | send "$b" "$x"
	soon says "$b" "$x" '.*Stopped .*sleep 1001'
	api POST "/v1/boxes/$b/fork" '{"memory":true,"count":2}'
	is "$code" 201 "$body"
	for c in $(get '.items[].box.id') "$b"; do
		y=$(running "$c")
		printf 'echo "n is $((n + 1)), $(jobs -s | wc -l) stopped, $(jobs -r | wc -l) runs"\n' | send "$c" "$y"
		soon says "$c" "$y" 'n is 2, 1 stopped, 1 runs'
		api DELETE "/v1/boxes/$c"
	done
}
python_repl_in_a_terminal() {
	box
	api POST "/v1/boxes/$b/execs" '{"command":["/usr/bin/python3","-q"],"background":true,"pty":{"rows":24,"cols":80},"open_stdin":true}'
	is "$code" 201 "$body"
	x=$(get .id)
	printf 'n = 1; print("at", n)\n' | send "$b" "$x"
	soon says "$b" "$x" 'at 1'
	api POST "/v1/boxes/$b/fork" '{"memory":true,"count":2}'
	is "$code" 201 "$body"
	for c in $(get '.items[].box.id') "$b"; do
		y=$(running "$c")
		printf 'n += 1; print("at", n)\n' | send "$c" "$y"
		soon says "$c" "$y" 'at 2'
		api DELETE "/v1/boxes/$c"
	done
}
script_with_a_terminal_of_its_own() {
	box
	lines 'exec script -qc "n=0; while read l; do n=\$((n + 1)); echo \$n; done" /dev/null'
}
tmux_with_a_server_and_two_windows() {
	box
	server "tmux -f /dev/null new-session -d -s s 'n=0; while read l; do n=\$((n + 1)); echo \$n; done'; tmux new-window -d -t s 'sleep 1000'; exec sleep 1000" \
		'show() { tmux capture-pane -t s:0 -p; }; k=$(show | grep -c "^[0-9]"); tmux send-keys -t s:0 x Enter
until [ "$(show | grep -c "^[0-9]")" -gt "$k" ]; do sleep 0.1; done; show | grep "^[0-9]" | tail -n 1'
}
tail_that_follows_a_file() {
	box
	server 'touch log; tail -f log | while read l; do n=$((n + 1)); echo $n >count; done' \
		'k=$(cat count 2>/dev/null); echo x >>log; until [ "$(cat count 2>/dev/null)" != "$k" ]; do sleep 0.1; done; cat count'
}
c_program_with_timers() {
	box
	file c.c <<'E'
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
static volatile int ticks[3];
static void tick(int s) { ticks[s == SIGALRM]++; }
static void thread(union sigval v) { ticks[2]++; }
int main(void) {
	struct itimerspec often = { { 0, 5000000 }, { 0, 5000000 } };
	struct itimerval alarms = { { 0, 5000 }, { 0, 5000 } };
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 }, f = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = thread };
	timer_t a, b, c; int fd = timerfd_create(CLOCK_MONOTONIC, 0), n = 0; char l[99]; unsigned long long x;
	signal(SIGUSR1, tick); signal(SIGALRM, tick);
	timer_create(CLOCK_REALTIME, &e, &a); timer_create(CLOCK_MONOTONIC, &e, &b); timer_create(CLOCK_MONOTONIC, &f, &c);
	timer_delete(a); timer_settime(b, 0, &often, 0); timer_settime(c, 0, &often, 0);
	timerfd_settime(fd, 0, &often, 0); setitimer(ITIMER_REAL, &alarms, 0);
	siginterrupt(SIGUSR1, 0); siginterrupt(SIGALRM, 0);
	while (fgets(l, 99, stdin)) {
		ticks[0] = ticks[1] = ticks[2] = 0;
		while (read(fd, &x, 8) != 8 || !ticks[0] || !ticks[1] || !ticks[2]) ;
		printf("%d\n", ++n); fflush(stdout);
	}
}
E
	is "$(inside "$b" 'gcc -o c c.c && echo built')" built
	lines 'exec ./c'
}
node_that_watches_a_folder() {
	box
	file s.js <<'E'
const fs = require('fs'); let n = 0
fs.mkdirSync('w')
fs.watch('w', () => fs.writeFileSync('count', String(++n)))
fs.writeFileSync('count', '0')
E
	server 'exec node s.js' 'until [ -s count ]; do sleep 0.1; done; k=$(cat count); mkdir w/$(date +%N); until [ "$(cat count)" -gt "$k" ]; do sleep 0.1; done; cat count'
}
a_program_with_a_filter_of_its_own_is_refused() {
	box
	refused 'exec /usr/bin/python3 -uc "
import ctypes, time
libc = ctypes.CDLL(None)
code = (ctypes.c_uint64 * 1)(0x7fff000000000006)
prog = (ctypes.c_uint64 * 2)(1, ctypes.addressof(code))
assert libc.prctl(22, 2, prog, 0, 0) == 0
print(\"ready\"); time.sleep(1000)"' 'seccomp filter'
}

need_daemon
run_tests $wanted
