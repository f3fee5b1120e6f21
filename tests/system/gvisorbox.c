/* gvisorbox.c - boxes of the tier gvisor, over the wire: tests/system/gvisor.sh. Few boxes serve all
 * tests, because each start of runsc takes a while. */
#include "system/wirebox.h"

#include <dirent.h>
#include <sys/utsname.h>

#define AWAIT 6 /* the ref with which the keeper reports the end of a box */

static struct keeper_sync keeper;
static struct made box;
static const char *missing = "not examined";

#define NEED_GVISOR()                                                                              \
	do {                                                                                       \
		NEED_ROOT();                                                                       \
		if (missing)                                                                       \
			SKIP(missing);                                                             \
	} while (0)

static int make_gvisor(struct made *m)
{
	struct wire_create w = wish(wire_tier_flags(WIRE_TIER_GVISOR) | WIRE_CREATE_AWAIT, AWAIT);

	return make_as(keeper.fd, &w, m);
}

TEST(runsc_is_examined)
{
	static struct wire_tier_facts f;

	NEED_ROOT();
	CHECK(open_keeper(&keeper, 1) == 0);
	CHECK(learn_tier(keeper.fd, WIRE_TIER_GVISOR, 0, &f) == 0);
	missing = f.reason;
	if (f.state != WIRE_TIER_OFFERED)
		SKIP(f.reason);
	CHECK_INT(strlen(f.sha256), 64);
	CHECK(f.version[0] && f.platform[0] && f.engine[0] == '/');
	printf("# %s %s, platform %s\n", f.engine, f.version, f.platform);
	missing = NULL;
}

TEST(a_program_runs_on_another_kernel_than_that_of_the_host)
{
	struct utsname host;

	NEED_GVISOR();
	CHECK(make_gvisor(&box) == 0);
	CHECK_INT(box.about.tier, WIRE_TIER_GVISOR);
	CHECK_INT(sh(&box, "id -u; uname -r; grep -c . /proc/1/comm; exit 3"), 3);
	CHECK(uname(&host) == 0);
	CHECK(strncmp(said, "1000\n", 5) == 0);
	CHECK(!strstr(said, host.release));
	CHECK_INT(sh(&box, "test -w /dev/shm"), 0); /* semaphores and shared memory */
}

/* gVisor of 2022 rejects a flag of stat that coreutils 9 sets, and has no boot id. */
TEST(programs_of_the_host_list_files_and_find_a_boot_id)
{
	char first[64];

	NEED_GVISOR();
	CHECK_INT(sh(&box, "ls -l /etc/passwd /usr && stat -c %s /etc/passwd && ls -d /tmp"), 0);
	CHECK_INT(sh(&box, "cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/hostname"), 0);
	CHECK_INT(strlen(said), 37 + strlen("atoll\n"));
	snprintf(first, sizeof(first), "%s", said);
	CHECK_INT(sh(&box, "cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/hostname"), 0);
	CHECK_STR(said, first);
	CHECK_INT(sh(&box, "echo x 2>/dev/null >/proc/sys/kernel/random/boot_id"), 2);
}

/* The gofer may not call mknod() and fchmodat(): filter_load_runsc(). */
TEST(programs_make_files_sockets_and_fifos_of_every_kind)
{
	NEED_GVISOR();
	CHECK_INT(
		sh(&box,
		   "cd /tmp && /usr/bin/python3 -c '\n"
		   "import os, socket\n"
		   "os.mknod(\"file\", 0o640)\n"
		   "os.mkfifo(\"fifo\")\n"
		   "s = socket.socket(socket.AF_UNIX)\n"
		   "s.bind(\"socket\")\n"
		   "os.chmod(\"socket\", 0o611)\n"
		   "a, b = socket.socketpair()\n"
		   "a.shutdown(socket.SHUT_WR)\n"
		   "assert b.recv(1) == b\"\"\n"
		   "try: os.mknod(\"file\")\n"
		   "except FileExistsError: print(\"exists\")' && stat -c '%a %F' file fifo socket"),
		0);
	CHECK_STR(said, "exists\n640 regular empty file\n644 fifo\n611 socket\n");
}

/* Is this path in the answer to CHANGES? */
static int is_changed(int worker_fd, const char *path)
{
	struct wire_changes c = { .head = sock_head(WIRE_CHANGES, 4), .max_entries = 100 };
	int found = 0, type = ask(worker_fd, &c, sizeof(c), NULL, 0);

	for (; type == WIRE_ENTRY; type = receive(worker_fd))
		found |= strcmp(bytes + sizeof(struct wire_entry), path) == 0;
	return type == WIRE_DONE ? found : -1;
}

TEST(files_are_written_from_outside_and_changed_files_are_listed)
{
	struct wire_put put = { .head = sock_head(WIRE_PUT, 3), .mode = 0644 };
	struct frame data = sock_head(WIRE_DATA, 3);
	auto_fd int w = -1;
	struct err e;

	NEED_GVISOR();
	w = worker(&box);
	CHECK(w >= 0);
	CHECK(sock_send(w, &put, sizeof(put), "/home/user/in", 14, NULL, 0, &e) == 0);
	CHECK(sock_send(w, &data, sizeof(data), "from outside\n", 13, NULL, 0, &e) == 0);
	CHECK_INT(ask(w, &data, sizeof(data), NULL, 0), WIRE_DONE);
	CHECK_INT(is_changed(w, "/home/user/made"), 0);
	CHECK_INT(sh(&box, "cat in; echo x >made; echo y >/tmp/made"), 0);
	CHECK_STR(said, "from outside\n");
	CHECK_INT(is_changed(w, "/home/user/in"), 1);
	CHECK_INT(is_changed(w, "/home/user/made"), 1);
	CHECK_INT(is_changed(w, "/tmp/made"), 1);
}

/* The worker closes the pipe of a file that it cannot write, while bytes are on their way. */
TEST(files_that_cannot_be_written_do_not_end_the_box)
{
	struct wire_put put = { .head = sock_head(WIRE_PUT, 3), .mode = 0644 };
	static char much[65536];
	auto_fd int w = -1;

	NEED_GVISOR();
	w = worker(&box);
	CHECK(w >= 0);
	put.head.flags = WIRE_PIPE;
	for (unsigned i = 0; i < 20; i++) {
		int pipes[2];
		struct err e;

		CHECK(pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0);
		CHECK(write(pipes[1], much, sizeof(much)) == sizeof(much));
		CHECK(sock_send(w, &put, sizeof(put), "/etc/passwd/x", 14, pipes, 1, &e) == 0);
		close(pipes[0]);
		CHECK_INT(receive(w), WIRE_ERROR);
		CHECK_INT(GOT(wire_error)->sys, ENOTDIR);
		close(pipes[1]);
	}
	CHECK_INT(sh(&box, "true"), 0);
}

static char terminal[4096];

/* Runs a script in a terminal; its output is in `terminal`. */
static int in_terminal(const char *script)
{
	static uint32_t ref = 500;
	struct wire_start st = { .head = sock_head(WIRE_START, ref++),
				 .argc = 3,
				 .grace_ms = 600000,
				 .rows = 7,
				 .cols = 60,
				 .credit = { UINT64_MAX, UINT64_MAX } };
	char tail[512];
	size_t n = 0;
	int type;
	struct err e;

	st.head.flags = WIRE_START_PTY;
	st.tail_bytes =
		(uint32_t)snprintf(tail, sizeof(tail), "/%c/bin/sh%c-c%c%s%c", 0, 0, 0, script, 0);
	if (sock_send(box.init, &st, sizeof(st), tail, st.tail_bytes, NULL, 0, &e) < 0)
		return -1;
	while ((type = receive(box.init)) != 0 && type != WIRE_EXIT && type != WIRE_ERROR)
		if (type == WIRE_OUTPUT && n < sizeof(terminal))
			n += (size_t)snprintf(terminal + n, sizeof(terminal) - n, "%s",
					      bytes + sizeof(struct wire_output));
	return type == WIRE_EXIT ? (int)GOT(wire_exit)->status : -1;
}

TEST(a_program_has_a_terminal)
{
	NEED_GVISOR();
	CHECK_INT(in_terminal("tty; stty size; exit 4"), 4);
	CHECK(strstr(terminal, "/dev/pts/"));
	CHECK(strstr(terminal, "7 60"));
}

/* Its end is reported although a process of its session has the terminal open: Linux would have hung it up. */
TEST(the_end_of_a_shell_is_the_end_of_its_terminal)
{
	NEED_GVISOR();
	CHECK_INT(in_terminal("trap '' HUP; sleep 1000 & echo last; exit 5"), 5);
	CHECK(strstr(terminal, "last\r\n"));
	CHECK_INT(GOT(wire_exit)->cut, 0);
}

/* Files that came before the first program are written by init itself. */
TEST(an_early_file_belongs_to_the_user)
{
	static const char tail[] = "/tmp/early/f\0text";
	struct wire_put put = { .head = sock_head(WIRE_PUT_EARLY, 9), .mode = 0644 };
	struct wire_create w = wish(wire_tier_flags(WIRE_TIER_GVISOR), 1);
	struct made m;
	struct err e;

	NEED_GVISOR();
	CHECK(make_as(keeper.fd, &w, &m) == 0);
	CHECK(sock_send(m.init, &put, sizeof(put), tail, sizeof(tail) - 1, NULL, 0, &e) == 0);
	CHECK_INT(sh(&m, "stat -c '%u %g' /tmp/early /tmp/early/f && rm -r /tmp/early"), 0);
	CHECK_STR(said, "1000 1000\n1000 1000\n");
	CHECK(end(keeper.fd, &m) == 0);
}

TEST(a_port_of_the_box_is_reached)
{
	struct wire_connect c = { .head = sock_head(WIRE_CONNECT, 8), .port = 8000 };
	char answer[64] = "";
	int connected = -1;

	NEED_GVISOR();
	CHECK_INT(
		sh(&box,
		   "setsid python3 -c 'import socket\ns = socket.create_server((\"127.0.0.1\", 8000))\n"
		   "c = s.accept()[0]\nc.sendall(b\"from \" + c.recv(9))\nc.close()' >/dev/null 2>&1 </dev/null &"),
		0);
	for (int i = 0; connected < 0 && i < 400; i++) {
		if (ask(box.init, &c, sizeof(c), NULL, 0) == WIRE_FD)
			connected = got_fd;
		else
			poll(NULL, 0, 50);
	}
	CHECK(connected >= 0);
	CHECK(write(connected, "inside", 6) == 6);
	for (size_t n = 0; n < 11;) {
		ssize_t got = read(connected, answer + n, sizeof(answer) - 1 - n);

		CHECK(got > 0);
		n += (size_t)got;
	}
	close(connected);
	CHECK_STR(answer, "from inside");
}

TEST(a_frozen_box_continues)
{
	struct wire_id f = { .head = sock_head(WIRE_FREEZE, 3) };

	NEED_GVISOR();
	memcpy(f.id, box.id, sizeof(f.id));
	CHECK_INT(ask(keeper.fd, &f, sizeof(f), NULL, 0), WIRE_DONE);
	f.head.flags = WIRE_FREEZE_OFF;
	CHECK_INT(ask(keeper.fd, &f, sizeof(f), NULL, 0), WIRE_DONE);
	CHECK_INT(sh(&box, "echo again"), 0);
	CHECK_STR(said, "again\n");
}

/* ---- from outside ---- */

/* A process whose command line begins with this word and whose parent is mux of the box. */
static int process_of(const struct made *m, const char *word)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	int found = -1;

	while (d && found < 0 && (de = readdir(d)) != NULL) {
		char path[300], text[64] = "";
		int pid = atoi(de->d_name), parent = -1;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		f = pid > 1 ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (!fread(text, 1, sizeof(text) - 1, f))
			text[0] = 0;
		fclose(f);
		if (strcmp(text, word) != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		f = fopen(path, "r");
		if (f && fscanf(f, "%*d (%*[^)]) %*c %d", &parent) == 1 &&
		    parent == m->about.init_pid)
			found = pid;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return found;
}

/* Until `runsc run -detach` has exited, it is the parent of both. */
static int await_process_of(const struct made *m, const char *word)
{
	int pid = process_of(m, word);

	for (int i = 0; pid < 0 && i < 1200; i++) {
		poll(NULL, 0, 50);
		pid = process_of(m, word);
	}
	return pid;
}

/* The line of /proc/PID/status with this name. */
static const char *status_of(int pid, const char *name)
{
	static char line[128];
	char path[40];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f) && strncmp(line, name, strlen(name)) != 0)
		line[0] = 0;
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	return line;
}

TEST(every_process_of_the_outer_box_is_confined)
{
	static const char *const words[] = { "runsc-sandbox", "runsc-gofer", "mux" };

	NEED_GVISOR();
	for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
		int pid = i < 2 ? await_process_of(&box, words[i]) : box.about.init_pid;
		unsigned uid = 0;

		CHECK(pid > 0);
		CHECK(sscanf(status_of(pid, "Uid:"), "Uid: %u", &uid) == 1);
		CHECK(uid >= box.about.uid_base && uid < box.about.uid_base + 65536);
		CHECK_STR(status_of(pid, "NoNewPrivs:"), "NoNewPrivs:\t1");
		CHECK_STR(status_of(pid, "Seccomp:"), "Seccomp:\t2");
	}
	CHECK_STR(status_of(box.about.init_pid, "CapEff:"), "CapEff:\t0000000000000000");
	CHECK_STR(status_of(box.about.init_pid, "CapPrm:"), "CapPrm:\t0000000000000000");
}

struct seen { /* a process of the host; with its start, because a later one may have this pid */
	int pid;
	unsigned long long start;
};

/* The parent of a process, or 0. */
static int read_stat(int pid, unsigned long long *out_start)
{
	char path[40];
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	*out_start = 0;
	if (f &&
	    fscanf(f,
		   "%*d (%*[^)]) %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%llu",
		   &parent, out_start) != 2)
		parent = 0;
	if (f)
		fclose(f);
	return parent;
}

/* mux of the box and all processes below it. */
static unsigned see_processes(const struct made *m, struct seen *out, unsigned most)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	unsigned n = 0;

	while (d && (de = readdir(d)) != NULL && n < most) {
		unsigned long long start, ignored;
		int pid = atoi(de->d_name), at = pid, parent = read_stat(pid, &start);

		while (at > 1 && at != m->about.init_pid) {
			at = parent;
			parent = read_stat(at, &ignored);
		}
		if (at > 1)
			out[n++] = (struct seen){ pid, start };
	}
	if (d)
		closedir(d);
	return n;
}

static unsigned count_alive(const struct seen *all, unsigned n)
{
	unsigned alive = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned long long start;

		read_stat(all[i].pid, &start);
		alive += start == all[i].start;
	}
	return alive;
}

/* Programs of gVisor are not processes of the host: they are counted inside, and those of the engine outside. */
TEST(a_program_runs_until_it_is_ended_and_no_process_is_left_of_its_box)
{
	struct wire_create w = wish(wire_tier_flags(WIRE_TIER_GVISOR), 1);
	struct seen all[200];
	struct made m;
	unsigned n;

	NEED_GVISOR();
	CHECK(make_as(keeper.fd, &w, &m) == 0);
	CHECK_INT(sh(&m, "pgrep -xc sleep"), 1); /* no program: pgrep fails */
	CHECK_STR(said, "0\n");
	CHECK_INT(
		sh(&m,
		   "setsid sleep 4799 >/dev/null 2>&1 </dev/null & sleep 0.1; pgrep -xf 'sleep 4799' >/tmp/pid"),
		0);
	CHECK_INT(
		sh(&m,
		   "kill $(cat /tmp/pid); while pgrep -xf 'sleep 4799' >/tmp/pid; do :; done; pgrep -xc sleep"),
		1);
	CHECK_STR(said, "0\n");
	CHECK_INT(sh(&m,
		     "trap '' TERM HUP INT; setsid sleep 4800 >/dev/null 2>&1 </dev/null & true"),
		  0);
	n = see_processes(&m, all, ARRAY_LEN(all));
	CHECK(n >= 3 && n < ARRAY_LEN(all)); /* mux, gofer, sentry, and those that it traces */
	CHECK_INT(count_alive(all, 3), 3);
	CHECK(end(keeper.fd, &m) == 0);
	for (int i = 0; count_alive(all, n) && i < 1200; i++)
		poll(NULL, 0, 50);
	CHECK_INT(count_alive(all, n), 0);
}

#define COUNT_PYTHON                                                                               \
	"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'zygote_python.py smal[l]'"

TEST(python_waits_in_pooled_boxes_unless_their_memory_is_small)
{
	struct wire_create w = wish(wire_tier_flags(WIRE_TIER_GVISOR), 1);
	struct made m;

	NEED_GVISOR();
	for (unsigned tries = 0; tries < 200; tries++) { /* the second request fills the pool */
		CHECK(make_as(keeper.fd, &w, &m) == 0);
		if (m.about.warm)
			break;
		CHECK(end(keeper.fd, &m) == 0);
		poll(NULL, 0, 50);
	}
	CHECK_INT(m.about.warm, 1);
	CHECK_INT(sh(&m, COUNT_PYTHON), 0);
	CHECK_STR(said, "1\n");
	CHECK(end(keeper.fd, &m) == 0);
	w.limits.mem_bytes = 64 << 20;
	CHECK(make_as(keeper.fd, &w, &m) == 0);
	CHECK_INT(m.about.warm, 0);
	CHECK_INT(sh(&m, COUNT_PYTHON), 1);
	CHECK(end(keeper.fd, &m) == 0);
}

/* The keeper is killed first: the next one adopts the box, and reports its end. */
TEST(the_next_keeper_adopts_the_box)
{
	struct wire_id open = { .head = sock_head(WIRE_OPEN, 3) };

	NEED_GVISOR();
	CHECK(end_keeper(&keeper, SIGKILL) == 0);
	CHECK_INT(sh(&box, "echo alone"), 0);
	CHECK(next_keeper(&keeper) == 0);
	memcpy(open.id, box.id, sizeof(open.id));
	CHECK_INT(ask(keeper.fd, &open, sizeof(open), NULL, 0), WIRE_BOX);
	CHECK_INT(GOT(wire_box)->tier, WIRE_TIER_GVISOR);
	own_close_fd(&got_fd);
	CHECK_INT(sh(&box, "cat in"), 0);
	CHECK_STR(said, "from outside\n");
}

/* 1: the list of boxes no longer has it, within a minute. */
static int is_gone(const char *id)
{
	struct wire_box page[64];
	struct err e;

	for (int i = 0; i < 1200; i++) {
		int n = keeper_sync_boxes(&keeper, "", page, 64, &e), found = 0;

		for (int k = 0; k < n; k++)
			found |= strcmp(page[k].id, id) == 0;
		if (n >= 0 && !found)
			return 1;
		poll(NULL, 0, 50);
	}
	return 0;
}

TEST(the_kill_of_the_gofer_or_of_the_sentry_ends_the_box)
{
	static const char *const words[] = { "runsc-gofer", "runsc-sandbox" };

	NEED_GVISOR();
	for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
		int victim;

		if (i)
			CHECK(make_gvisor(&box) == 0);
		victim = await_process_of(&box, words[i]);
		CHECK(victim > 0);
		CHECK(kill(victim, SIGKILL) == 0);
		if (i == 0) { /* of another keeper, so this one reports nothing to this client */
			CHECK(is_gone(box.id));
		} else {
			CHECK_INT(receive(keeper.fd), WIRE_DESTROYED);
			CHECK_INT(GOT(frame)->ref, AWAIT);
		}
		CHECK(process_of(&box, "runsc-gofer") < 0 && process_of(&box, "runsc-sandbox") < 0);
		own_close_fd(&box.init);
	}
}

TEST(the_memory_limit_ends_the_box_and_is_in_its_last_counters)
{
	struct wire_create w = wish(wire_tier_flags(WIRE_TIER_GVISOR) | WIRE_CREATE_AWAIT, AWAIT);

	NEED_GVISOR();
	w.limits.mem_bytes = 64 << 20;
	CHECK(make_as(keeper.fd, &w, &box) == 0);
	sh(&box, "python3 -c 'x = bytearray(400 << 20)'"); /* has no status: its kernel is gone */
	CHECK_INT(receive(keeper.fd), WIRE_DESTROYED);
	CHECK_INT(GOT(frame)->ref, AWAIT);
	CHECK(GOT(wire_counters)->oom_kills > 0);
	own_close_fd(&box.init);
}

TEST(nothing_is_left)
{
	NEED_ROOT();
	keeper_sync_close(&keeper);
	leave_nothing();
}
