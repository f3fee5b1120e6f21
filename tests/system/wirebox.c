/* wirebox.c - the requests of a server to keeper and boxes, sent to real ones:
 * tests/system/wire.sh. */
#include "system/wirebox.h"

/* ---- init and its workers, behind the real walls ---- */

TEST(a_stopped_box_keeps_its_files_and_runs_again)
{
	struct frame stop = sock_head(WIRE_STOP, 3);
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make(k.fd, &m) == 0);
	CHECK_INT(sh(&m,
		     "echo kept >f; (trap '' TERM; setsid sleep 1000) >/dev/null 2>&1 & sleep 0.1"),
		  0);
	CHECK_INT(ask(m.init, &stop, sizeof(stop), NULL, 0), WIRE_DONE);
	CHECK_INT(sh(&m, "cat f; ps ax 2>/dev/null | grep -c '[s]leep 1000'"), 1);
	CHECK_STR(said, "kept\n0\n");
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(a_watch_works_with_the_seccomp_filter_on_an_overlay)
{
	struct frame f = sock_head(WIRE_WATCH, 3);
	struct keeper_sync k;
	auto_fd int w = -1;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make(k.fd, &m) == 0);
	f.flags = WIRE_WATCH_DEEP;
	w = worker(&m);
	CHECK_INT(ask(w, &f, sizeof(f), "/home/user", 10), WIRE_DONE);
	CHECK_INT(sh(&m, "mkdir d; echo x >d/f"), 0);
	CHECK_INT(receive(w), WIRE_EVENT);
	CHECK_STR(bytes + sizeof(struct wire_event), "d");
	CHECK_INT(receive(w), WIRE_EVENT);
	CHECK_STR(bytes + sizeof(struct wire_event), "d/f");
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(the_template_is_listed_copied_and_searched_like_any_folder)
{
	struct wire_list l = { .head = sock_head(WIRE_LIST, 3) };
	struct wire_search s = { .head = sock_head(WIRE_SEARCH, 4) };
	struct frame c = sock_head(WIRE_COPY, 5);
	struct keeper_sync k;
	auto_fd int w = -1;
	struct made m;
	int n = 0;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make(k.fd, &m) == 0);
	w = worker(&m);
	CHECK_INT(ask(w, &l, sizeof(l), "/", 1), WIRE_ENTRY);
	for (n = 1; receive(w) == WIRE_ENTRY; n++)
		;
	CHECK(GOT(frame)->type == WIRE_DONE && n > 10);
	CHECK_INT(ask(w, &s, sizeof(s), "/etc\0passwd\0root", 16), WIRE_HIT);
	CHECK_INT(receive(w), WIRE_DONE);
	CHECK_INT(ask(w, &c, sizeof(c), "/etc\0/home/user/etc", 19), WIRE_DONE);
	CHECK_INT(sh(&m, "cmp /etc/passwd etc/passwd && test -O etc/passwd"), 0);
	CHECK_INT(ask(w, &c, sizeof(c), "/etc\0/usr/etc", 13), WIRE_ERROR);
	CHECK_INT(GOT(wire_error)->sys, EROFS);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

/* Sends no reply: the next frame is answered. */
static int lay(const struct made *m, const char *tail, size_t n, uint32_t mode, uint32_t flags)
{
	struct wire_put put = { .head = sock_head(WIRE_PUT_EARLY, 9),
				.mode = mode,
				.flags = flags };
	struct err e;

	return sock_send(m->init, &put, sizeof(put), tail, n, NULL, 0, &e);
}

TEST(an_early_file_is_written_before_the_first_exec_and_owned_by_user)
{
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make(k.fd, &m) == 0);
	CHECK(lay(&m, "/home/user/d/e/f\0one\n", 21, 0, 0) == 0);
	CHECK(lay(&m, "/home/user/d/e/f\0two\n", 21, 0, WIRE_PUT_EARLY_MORE) == 0);
	CHECK(lay(&m, "/home/user/x\0#!/bin/sh\necho ran", 32, 0755, 0) == 0);
	CHECK(lay(&m, "/home/user/empty", 17, 0600, 0) == 0);
	CHECK_INT(sh(&m, "cat d/e/f; ./x; stat -c '%a %U %s' d/e/f x empty d; rm -r d x empty"), 0);
	CHECK_STR(said, "one\ntwo\nran\n644 user 8\n755 user 19\n600 user 0\n755 user 60\n");
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(an_early_file_outside_home_or_after_an_exec_is_rejected)
{
	static const char *const bad[] = {
		"/etc/x", "/home/user",      "/home/user/../x", "x",
		"",       "/home/user/d/..", "/home/user/",     "/home/userx/f"
	};
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(make(k.fd, &m) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(lay(&m, bad[i], strlen(bad[i]) + 1, 0, 0) == 0);
		CHECK_INT(receive(m.init), WIRE_ERROR);
	}
	CHECK(lay(&m, "/home/user/f", 13, 0, 8) == 0);
	CHECK(is_error(receive(m.init), ERR_INVALID, ""));
	CHECK_INT(sh(&m, "ls -A; ln -s /etc/passwd trap"), 0);
	CHECK_STR(said, "");
	CHECK(lay(&m, "/home/user/trap\0x", 17, 0, 0) == 0);
	CHECK(is_error(receive(m.init), ERR_CONFLICT, "started"));
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

/* ---- a box for one program ---- */

/* CREATE followed by a START. */
static size_t with_start(char *to, const struct wire_create *w, uint16_t flags, const char *script)
{
	struct wire_start st = { .head = sock_head(WIRE_START, 77),
				 .argc = 3,
				 .grace_ms = 100,
				 .credit = { UINT64_MAX, UINT64_MAX } };
	char tail[1024];

	st.head.flags = flags;
	st.tail_bytes = (uint32_t)snprintf(tail, sizeof(tail), "/home/user%c/bin/sh%c-c%c%s%c", 0,
					   0, 0, script, 0);
	memcpy(to, w, sizeof(*w));
	memcpy(to + sizeof(*w), &st, sizeof(st));
	memcpy(to + sizeof(*w) + sizeof(st), tail, st.tail_bytes);
	return sizeof(*w) + sizeof(st) + st.tail_bytes;
}

static void runs_once(struct keeper_sync *k, unsigned flags)
{
	struct wire_create w = wish(flags | WIRE_CREATE_AWAIT | WIRE_CREATE_FIGURES, 41);
	char request[4096];
	size_t n = with_start(request, &w, WIRE_START_ONE_SHOT, "echo here; exit 5");
	auto_fd int init = -1;

	CHECK_INT(ask(k->fd, request, n, NULL, 0), WIRE_BOX);
	init = got_fd;
	CHECK_INT(receive(init), WIRE_OUTPUT);
	CHECK_STR(bytes + sizeof(struct wire_output), "here\n");
	CHECK_INT(receive(init), WIRE_EXIT);
	CHECK(GOT(wire_exit)->status == 5 && GOT(frame)->ref == 77);
	CHECK_INT(receive(init), 0);
	CHECK_INT(receive(k->fd), WIRE_DESTROYED);
	CHECK(GOT(frame)->ref == 41 && GOT(wire_counters)->mem_peak != UINT64_MAX);
}

TEST(create_with_a_start_runs_the_exec_and_the_box_ends_with_it)
{
	struct wire_pool_size fill = { .head = sock_head(WIRE_POOL_SIZE, 3), .depth = 2 };
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	runs_once(&k, WIRE_CREATE_COLD);
	CHECK_INT(ask(k.fd, &fill, sizeof(fill), NULL, 0), WIRE_INFO_REPLY);
	runs_once(&k, 0);
	fill.depth = 0;
	CHECK_INT(ask(k.fd, &fill, sizeof(fill), NULL, 0), WIRE_INFO_REPLY);
	keeper_sync_close(&k);
}

TEST(a_pool_depth_over_the_maximum_is_rejected)
{
	static const uint32_t too_deep[] = { 1001, 20000, UINT32_MAX };
	struct wire_pool_size fill = { .head = sock_head(WIRE_POOL_SIZE, 3) };
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(too_deep); i++) {
		fill.depth = too_deep[i];
		CHECK_INT(ask(k.fd, &fill, sizeof(fill), NULL, 0), WIRE_ERROR);
		CHECK_INT(GOT(wire_error)->kind, ERR_INVALID);
	}
	fill.depth = 0;
	CHECK_INT(ask(k.fd, &fill, sizeof(fill), NULL, 0), WIRE_INFO_REPLY);
	CHECK_INT(GOT(wire_info)->pool_depth, 0);
	keeper_sync_close(&k);
}

TEST(an_exec_started_with_create_has_input_output_and_exit_like_any_other)
{
	struct wire_create w = wish(WIRE_CREATE_COLD, 41);
	struct keeper_sync k;
	char request[4096];
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK_INT(ask(k.fd, request, with_start(request, &w, 0, "echo kept >f"), NULL, 0),
		  WIRE_BOX);
	m.init = got_fd;
	memcpy(m.id, GOT(wire_box)->id, sizeof(m.id));
	CHECK_INT(receive(m.init), WIRE_EXIT);
	CHECK(lay(&m, "/home/user/f\0x", 14, 0, 0) ==
	      0); /* an exec ran: early files are no longer accepted */
	CHECK(is_error(receive(m.init), ERR_CONFLICT, "started"));
	CHECK_INT(sh(&m, "cat f"), 0);
	CHECK_STR(said, "kept\n");
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(create_with_an_invalid_start_is_rejected)
{
	struct wire_create w = wish(WIRE_CREATE_COLD, 41);
	struct frame info = sock_head(WIRE_INFO, 7);
	auto_fd int init = -1; /* the box is not claimed: it ends with this connection */
	struct keeper_sync k;
	char request[4096];
	size_t n;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(is_error(ask(k.fd, &w, sizeof(w), "x", 1), ERR_INVALID,
		       "START in the request is invalid"));
	CHECK(is_error(ask(k.fd, &w, sizeof(w), (const char *)&info, sizeof(info)), ERR_INVALID,
		       ""));
	n = with_start(request, &w, WIRE_START_MEMFD, "true");
	CHECK(is_error(ask(k.fd, request, n, NULL, 0), ERR_INVALID,
		       "START in the request is invalid"));
	/* Init checks the rest. */
	n = with_start(request, &w, 0x8000, "true");
	CHECK_INT(ask(k.fd, request, n, NULL, 0), WIRE_BOX);
	init = got_fd;
	CHECK(is_error(receive(init), ERR_INVALID, "unknown flags"));
	keeper_sync_close(&k);
}

static int once(struct keeper_sync *k, const char *const *argv, struct wire_exit *out,
		struct wire_counters *gone)
{
	struct wire_create w = wish(WIRE_CREATE_COLD, 0);
	struct box_command cmd = { .argv = argv };
	struct err e;

	if (boxh_once(k, &w, &cmd, out, gone, &e) == 0)
		return 0;
	printf("# %s\n", e.msg);
	return -1;
}

TEST(box_once_returns_exit_status_and_usage)
{
	static char large[100 * 1024];
	const char *const fails[] = { "/bin/sh", "-c", "kill -9 $$", NULL }, *const none[] = {
		"/none", NULL
	};
	const char *const many[] = { "/bin/sh", "-c", "[ ${#1} = 102399 ]", "sh", large, NULL };
	struct wire_counters gone;
	struct keeper_sync k;
	struct wire_exit x;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	CHECK(once(&k, fails, &x, &gone) == 0 && x.why == WIRE_WHY_SIGNAL && x.status == 9);
	CHECK(gone.mem_peak != UINT64_MAX && gone.mem_peak > 0);
	CHECK(once(&k, none, &x, NULL) == 0 && x.why == WIRE_WHY_EXEC && x.status == ENOENT);
	memset(large, 'x', sizeof(large) - 1);
	CHECK(once(&k, many, &x, NULL) == 0 && x.why == WIRE_WHY_EXIT && x.status == 0);
	keeper_sync_close(&k);
}

static int no_boxes(struct keeper_sync *k)
{
	struct wire_box some[1];
	struct err e;
	int n;

	for (int i = 0; (n = keeper_sync_boxes(k, "", some, 1, &e)) > 0 && i < 6000; i++)
		poll(NULL, 0, 10);
	return n == 0;
}

/* Runs a program in a box of its own, in a process of its own. */
static pid_t once_elsewhere(const char *script)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	pid_t pid = fork();
	struct keeper_sync k;
	struct wire_exit x;

	if (pid == 0)
		_exit(open_keeper(&k, 1) < 0 || once(&k, argv, &x, NULL) < 0);
	return pid;
}

TEST(a_box_ends_whenever_its_client_is_killed)
{
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (unsigned i = 0; i < 40; i++) {
		pid_t pid = once_elsewhere("exec sleep 1000");

		usleep(i * 100); /* another moment each time */
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	CHECK(no_boxes(&k));
	keeper_sync_close(&k);
}

TEST(no_box_is_left_whenever_its_keeper_is_killed)
{
	struct keeper_sync k;

	NEED_ROOT();
	for (unsigned i = 0; i < 24; i++) {
		pid_t pid;

		CHECK(next_keeper(&k) == 0);
		pid = once_elsewhere("true");
		usleep(i * 150);
		CHECK(end_keeper(&k, SIGKILL) == 0);
		waitpid(pid, NULL,
			0); /* served by the next keeper, or failed because this one exited */
	}
	CHECK(next_keeper(&k) == 0);
	CHECK(no_boxes(&k));
	keeper_sync_close(&k);
}

/* ---- the keeper under many requests ---- */

enum { MANY = 100 };

TEST(a_hundred_simultaneous_creates_are_served_and_do_not_delay_others)
{
	struct frame info = sock_head(WIRE_INFO, 7);
	struct keeper_sync k, other;
	static struct made m[MANY];
	static unsigned char seen[MANY + 1];
	uint64_t longest = 0;
	unsigned answered = 0, deepest = 0;
	struct err e;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && open_keeper(&other, 0) == 0);
	for (uint32_t i = 1; i <= MANY; i++) {
		struct wire_create w = wish(WIRE_CREATE_COLD, i);

		CHECK(sock_send(k.fd, &w, sizeof(w), NULL, 0, NULL, 0, &e) == 0);
	}
	while (answered < MANY) {
		struct pollfd p = { .fd = k.fd, .events = POLLIN };
		uint64_t began = now_ns();

		/* Another client sends requests all the time. */
		CHECK_INT(ask(other.fd, &info, sizeof(info), NULL, 0), WIRE_INFO_REPLY);
		longest = now_ns() - began > longest ? now_ns() - began : longest;
		deepest = GOT(wire_info)->waiting > deepest ? GOT(wire_info)->waiting : deepest;
		CHECK_INT(GOT(wire_info)->waiting_most, 1024);
		if (poll(&p, 1, 1) != 1)
			continue;
		CHECK_INT(receive(k.fd), WIRE_BOX);
		CHECK(GOT(frame)->ref >= 1 && GOT(frame)->ref <= MANY && !seen[GOT(frame)->ref]);
		seen[GOT(frame)->ref] = 1;
		m[answered].init = got_fd;
		memcpy(m[answered++].id, GOT(wire_box)->id, WIRE_ID);
	}
	printf("# another client waited %llu us at most, %u were under way\n",
	       (unsigned long long)longest / 1000, deepest);
	CHECK(deepest > 1 && longest < 1000000000);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(end(k.fd, &m[i]) == 0);
	keeper_sync_close(&k);
	keeper_sync_close(&other);
}

TEST(more_than_a_thousand_waiting_creates_are_rejected_with_a_message)
{
	enum { FLOOD = 1200 };
	static struct made m[FLOOD];
	struct keeper_sync k;
	unsigned boxes = 0, refused = 0;
	struct err e;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	/* No answer is read until all requests are sent: the answers must fit into the socket. */
	for (uint32_t i = 1; i <= FLOOD; i++) {
		struct wire_create w = wish(WIRE_CREATE_COLD, i);

		CHECK(sock_send(k.fd, &w, sizeof(w), NULL, 0, NULL, 0, &e) == 0);
	}
	while (boxes + refused < FLOOD) {
		unsigned nfds = 1;
		int fd = -1, n = sock_recv(k.fd, bytes, &fd, &nfds, &e);

		CHECK(n > 0);
		if (GOT(frame)->type == WIRE_BOX) {
			m[boxes].init = fd;
			memcpy(m[boxes++].id, GOT(wire_box)->id, WIRE_ID);
		} else {
			CHECK(GOT(frame)->type == WIRE_ERROR && GOT(wire_error)->kind == ERR_LIMIT);
			refused++;
		}
	}
	printf("# %u made, %u refused\n", boxes, refused);
	CHECK(boxes >= 1024);
	for (unsigned i = 0; i < boxes; i++)
		CHECK(end(k.fd, &m[i]) == 0);
	keeper_sync_close(&k);
}

/* ---- other limits for a living box ---- */

static struct wire_limit ask_limit(const struct made *m)
{
	struct wire_limit w = { .head = sock_head(WIRE_LIMIT, 9), .limits = box_default_limits() };

	memcpy(w.id, m->id, sizeof(w.id));
	return w;
}

static int limit(int keeper, const struct wire_limit *w)
{
	return ask(keeper, w, sizeof(*w), NULL, 0);
}

TEST(memory_cpu_and_process_limits_of_a_running_box_can_change)
{
	struct wire_limit w;
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && make(k.fd, &m) == 0);
	w = ask_limit(&m);
	w.limits.mem_bytes = 1ull << 30;
	w.limits.pids = 30;
	CHECK_INT(limit(k.fd, &w), WIRE_BOX);
	CHECK(got_fd < 0 && GOT(wire_box)->limits.mem_bytes == 1ull << 30);
	CHECK(GOT(wire_box)->limits.pids == 30 && GOT(wire_box)->limits.cpu_milli == 1000);
	/* The new limits apply: more memory fits now, fewer processes do. */
	CHECK_INT(sh(&m, "python3 -c 'len(bytearray(700 << 20))'"), 0);
	CHECK(sh(&m, "i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); done 2>&1") != 0);
	w = ask_limit(&m);
	w.limits.mem_bytes = 512ull << 20;
	w.limits.cpu_milli = 200;
	w.limits.pids = 512;
	CHECK_INT(limit(k.fd, &w), WIRE_BOX);
	CHECK_INT(GOT(wire_box)->limits.cpu_milli, 200);
	CHECK(sh(&m, "python3 -c 'len(bytearray(700 << 20))'") != 0);
	CHECK_INT(sh(&m, "python3 -c 'import time; a=time.time(); c=time.process_time()\n"
			 "while time.time()-a < 1: pass\nprint(time.process_time()-c < 0.6)'"),
		  0);
	CHECK_STR(said, "True\n");
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(a_memory_limit_below_the_usage_is_rejected)
{
	struct wire_start st = { .head = sock_head(WIRE_START, 1),
				 .argc = 3,
				 .credit = { 100, 100 } };
	static const char tail[] =
		"/\0python3\0-c\0b=b'x'*(300<<20); print('up', flush=True); import time; "
		"time.sleep(1000)";
	struct wire_limit w;
	struct keeper_sync k;
	struct wire_create c = wish(0, 1);
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	c.limits.disk_bytes =
		16ull << 20; /* kept in memory, so it is a lower bound of the memory limit */
	CHECK(make_as(k.fd, &c, &m) == 0);
	st.argc = 3;
	st.tail_bytes = sizeof(tail);
	CHECK_INT(ask(m.init, &st, sizeof(st), tail, sizeof(tail)), WIRE_OUTPUT);
	w = ask_limit(&m);
	w.limits.mem_bytes = 100ull << 20;
	w.limits.pids = 77;
	CHECK(is_error(limit(k.fd, &w), ERR_CONFLICT, "cannot be reclaimed"));
	CHECK_INT(sh(&m, "pgrep -c python3 || true"), 0); /* no process was killed, ... */
	CHECK_STR(said, "1\n");
	w = ask_limit(&m);
	CHECK_INT(limit(k.fd, &w), WIRE_BOX); /* ... and nothing was changed */
	CHECK(GOT(wire_box)->limits.mem_bytes == 512ull << 20 && GOT(wire_box)->limits.pids == 512);
	w.limits.mem_bytes = 400ull << 20;
	CHECK_INT(limit(k.fd, &w), WIRE_BOX);
	/* The kernel drops its page cache, so cached pages are no reason to reject the limit. */
	CHECK_INT(sh(&m, "pkill python3; cat /usr/lib/*/*.so* >/dev/null 2>&1; true"), 0);
	w.limits.mem_bytes = 64ull << 20;
	CHECK_INT(limit(k.fd, &w), WIRE_BOX);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(limits_that_cannot_be_changed_are_rejected_with_the_reason)
{
	struct wire_limit w;
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && make(k.fd, &m) == 0);
	w = ask_limit(&m);
	w.limits.disk_bytes = 1ull << 30;
	CHECK(is_error(limit(k.fd, &w), ERR_DENIED, "disk of a running box"));
	w = ask_limit(&m);
	w.limits.cpu_ms = 1000;
	CHECK(is_error(limit(k.fd, &w), ERR_DENIED, "cpu time"));
	w = ask_limit(&m);
	w.limits.mem_bytes = 300ull << 20;
	CHECK(is_error(limit(k.fd, &w), ERR_DENIED, "kept in memory"));
	w = ask_limit(&m);
	w.limits.mem_bytes = 0;
	CHECK(is_error(limit(k.fd, &w), ERR_INVALID, "must have a memory limit"));
	w = ask_limit(&m);
	w.limits.pids = 5000000;
	CHECK(is_error(limit(k.fd, &w), ERR_INVALID, "process limit"));
	w = ask_limit(&m);
	memset(w.id, 'z', sizeof(w.id));
	CHECK(is_error(limit(k.fd, &w), ERR_NOT_FOUND, "no such box"));
	CHECK(end(k.fd, &m) == 0);
	w = ask_limit(&m);
	CHECK(is_error(limit(k.fd, &w), ERR_NOT_FOUND, "no such box"));
	keeper_sync_close(&k);
}

TEST(changed_limits_are_kept_by_the_next_keeper)
{
	struct wire_id open = { .head = sock_head(WIRE_OPEN, 3) };
	struct wire_limit w;
	struct keeper_sync k;
	struct made m;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && make(k.fd, &m) == 0);
	w = ask_limit(&m);
	w.limits.pids = 99;
	CHECK_INT(limit(k.fd, &w), WIRE_BOX);
	CHECK_INT(sh(&m, "true"), 0); /* now it is ours, and outlives its keeper */
	CHECK(end_keeper(&k, SIGKILL) == 0);
	CHECK(next_keeper(&k) == 0);
	memcpy(open.id, m.id, sizeof(open.id));
	CHECK_INT(ask(k.fd, &open, sizeof(open), NULL, 0), WIRE_BOX);
	close(got_fd);
	CHECK_INT(GOT(wire_box)->limits.pids, 99);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(no_box_or_cgroup_is_left_after_all_wire_tests)
{
	leave_nothing();
}
