/* init_test.c - init, tested outside of a box. */
#include "unit/boxed.h"

/* ---- birth ---- */

static void init_exits_when_its_first_connection_closes_before_persist(struct box *b)
{
	close(b->conn);
	b->conn = -1;
	CHECK(box_wait(b) == 0);
}

static void after_persist_the_first_connection_is_a_normal_one(struct box *b)
{
	int other;

	send_head(b->conn, WIRE_PERSIST, 0);
	ask_status(b->conn);
	other = box_connect(b);
	close(b->conn);
	b->conn = other;
	while (ask_status(other).clients != 1)
		;
}

static void join_cgroups_writes_0_to_each_descriptor(struct box *b)
{
	struct frame f = head(WIRE_JOIN_CGROUPS, 0);
	char got[8] = "";
	int p[2];

	CHECK(!pipe(p));
	send_frame(b->conn, &f, sizeof(f), NULL, 0, p[1]);
	CHECK(read(p[0], got, sizeof(got)) == 1 && got[0] == '0');
	close(p[0]);
	close(p[1]);
}

static void a_failed_join_cgroups_ends_init(struct box *b)
{
	struct frame f = head(WIRE_JOIN_CGROUPS, 0);
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	send_frame(b->conn, &f, sizeof(f), NULL, 0, fd);
	close(fd);
	CHECK(WEXITSTATUS(box_wait(b)) == 70);
}

static void join_cgroups_after_the_first_start_is_rejected(struct box *b)
{
	struct wire_start st = starting(1);
	struct frame f = head(WIRE_JOIN_CGROUPS, 0);

	send_head(b->conn, WIRE_PERSIST, 0);
	start(b->conn, &st, "true");
	hear(b->conn);
	send_frame(b->conn, &f, sizeof(f), NULL, 0, 2);
	CHECK(!receive(b->conn));
}

static void only_the_first_connection_may_persist_or_join_cgroups(struct box *b)
{
	int a = box_connect(b), c = box_connect(b);
	struct frame f = head(WIRE_JOIN_CGROUPS, 0);

	send_head(a, WIRE_PERSIST, 0);
	CHECK(!receive(a));
	send_frame(c, &f, sizeof(f), NULL, 0, 2);
	CHECK(!receive(c));
	close(a);
	close(c);
	ask_status(b->conn);
}

static void kill_on_close_ends_init_with_its_connection(struct box *b)
{
	int other = box_connect(b);

	send_head(b->conn, WIRE_PERSIST, 0);
	send_head(other, WIRE_KILL_ON_CLOSE, 0);
	ask_status(other);
	close(other);
	CHECK(box_wait(b) == 0);
}

/* ---- the last program of a box ---- */

static struct wire_start last(uint32_t ref)
{
	struct wire_start st = starting(ref);

	st.head.flags |= WIRE_START_ONE_SHOT;
	return st;
}

static void the_last_exec_ends_the_box_and_its_output_is_read_afterwards(struct box *b)
{
	struct wire_start st = last(1);

	send_head(b->conn, WIRE_PERSIST, 0);
	shell(b->conn, &st, "echo out; echo err >&2; exit 3");
	CHECK(box_wait(b) == 0);
	CHECK(hear(b->conn)->end.status == 3);
	CHECK(!receive(b->conn));
}

static void a_slow_reader_gets_all_output_of_the_last_exec(struct box *b)
{
	struct wire_start st = last(1);
	uint64_t total = 4 << 20, got = 0;

	st.log_bytes = 65536;
	start(b->conn, &st, "head", "-c", "4194304", "/dev/zero");
	while (got < total) {
		expect(b->conn, WIRE_OUTPUT);
		CHECK(GOT(wire_output)->offset == got);
		got += (uint64_t)frame_len - sizeof(struct wire_output);
	}
	expect(b->conn, WIRE_EXIT);
	CHECK(!receive(b->conn) && box_wait(b) == 0);
}

static void the_end_of_the_last_exec_waits_for_credit(struct box *b)
{
	struct wire_start st = last(1);

	st.credit[0] = 3;
	shell(b->conn, &st, "printf abcdef");
	expect(b->conn, WIRE_OUTPUT);
	CHECK(!readable(b->conn, 50));
	send_credit(b->conn, WIRE_OUTPUT_WINDOW, 1, 0, 0, 6, 0);
	expect(b->conn, WIRE_OUTPUT);
	expect(b->conn, WIRE_EXIT);
	CHECK(box_wait(b) == 0);
}

/* Unread frames would reset the connection before the test has read the rest. */
static void frames_after_the_last_exec_are_ignored(struct box *b)
{
	struct wire_start st = last(1);
	pid_t flood;

	shell(b->conn, &st, "echo out; exit 3");
	flood = fork();
	if (!flood) {
		struct wire_output_window c = { .head = head(WIRE_OUTPUT_WINDOW, 1),
						.until = 1 << 20 };

		while (!try_send(b->conn, &c, sizeof(c), NULL, 0, -1))
			;
		_exit(errno != EPIPE);
	}
	CHECK(box_wait(b) == 0);
	CHECK(hear(b->conn)->end.status == 3);
	CHECK(waitpid(flood, &frame_len, 0) == flood && !frame_len);
}

static void disconnecting_from_the_last_exec_ends_the_box(struct box *b)
{
	struct wire_start st = last(1);
	int other = box_connect(b);

	send_head(b->conn, WIRE_PERSIST, 0);
	shell(other, &st, "echo up; exec sleep 1000");
	expect(other, WIRE_OUTPUT);
	close(other);
	CHECK(box_wait(b) == 0);
}

static void the_last_exec_needs_an_attached_reader(struct box *b)
{
	struct wire_start st = last(1);

	st.head.flags |= WIRE_START_DETACHED;
	shell(b->conn, &st, "true");
	expect_error(b->conn, ERR_INVALID);
	ask_status(b->conn);
}

static void a_last_exec_that_cannot_start_ends_the_box(struct box *b)
{
	struct wire_start st = last(1);

	start(b->conn, &st, "/nowhere");
	CHECK(box_wait(b) == 0);
	expect(b->conn, WIRE_EXIT);
	CHECK(GOT(wire_exit)->why == WIRE_WHY_EXEC);
}

/* ---- stop ---- */

/* Both, in any order. */
static void expect_both(int conn, int a, int b)
{
	int first = receive(conn);

	CHECK(first == a || first == b);
	expect(conn, first == a ? b : a);
}

static void stop_ends_every_exec_and_the_box_stays_usable(struct box *b)
{
	auto_fd int other = box_connect(b), worker = -1;
	struct wire_start st = starting(1);
	int exits = 0, done = 0;

	/* One program that ignores all signals that can be ignored, one with children in their
	 * own sessions. */
	shell(other, &st, "trap '' TERM INT HUP; echo up; while :; do sleep 100; done");
	expect(other, WIRE_OUTPUT);
	st.head.ref = 2;
	shell(other, &st, "for i in 1 2 3 4; do setsid sleep 100 & done; echo up; wait");
	expect(other, WIRE_OUTPUT);
	send_head(other, WIRE_FILES, 9);
	expect(other, WIRE_FD);
	worker = frame_fd;

	send_head(b->conn, WIRE_STOP, 5);
	expect(b->conn, WIRE_DONE);
	CHECK(HEAD->ref == 5);
	while (exits < 2) {
		expect(other, WIRE_EXIT);
		CHECK(GOT(wire_exit)->why == WIRE_WHY_SIGNAL && GOT(wire_exit)->status == SIGKILL);
		exits++;
	}
	CHECK(!receive(worker));
	CHECK(ask_status(b->conn).running == 0);
	st.head.ref = 3;
	shell(b->conn, &st, "echo again; exit 4");
	CHECK(hear(b->conn)->end.status == 4);
	send_head(b->conn, WIRE_STOP, 6);
	while (!done)
		done = receive(b->conn) == WIRE_DONE;
}

static void stop_without_execs_is_answered_at_once(struct box *b)
{
	send_head(b->conn, WIRE_STOP, 1);
	expect(b->conn, WIRE_DONE);
	send_head(b->conn, WIRE_STOP, 2);
	expect(b->conn, WIRE_DONE);
}

static void no_exec_starts_while_stop_is_in_progress(struct box *b)
{
	struct wire_start st = starting(1);
	int i, refused = 0, ran = 0;

	/* Enough processes that reaping takes more than a turn. */
	shell(b->conn, &st,
	      "i=0; while [ $i -lt 300 ]; do sleep 100 & i=$((i+1)); done; echo up; wait");
	expect(b->conn, WIRE_OUTPUT);
	send_head(b->conn, WIRE_STOP, 9);
	for (i = 2; i < 12; i++) {
		st.head.ref = (uint32_t)i;
		shell(b->conn, &st, "exit 0");
	}
	for (i = 0; i < 12; i++) {
		CHECK(receive(b->conn));
		if (HEAD->type == WIRE_ERROR && GOT(wire_error)->kind == ERR_CONFLICT)
			refused++;
		else if (HEAD->type == WIRE_EXIT && HEAD->ref > 1)
			ran += GOT(wire_exit)->why == WIRE_WHY_EXIT;
		else
			CHECK(HEAD->type == WIRE_DONE || HEAD->ref == 1);
	}
	CHECK(refused + ran == 10); /* refused or unchanged, never killed */
}

/* ---- the fence ---- */

static void send_lease(int conn, uint32_t ms, unsigned flags)
{
	struct wire_lease l = { .head = head(WIRE_LEASE, 77), .ms = ms };

	l.head.flags = (uint16_t)flags;
	send_frame(conn, &l, sizeof(l), NULL, 0, -1);
}

/* The state of the child of init that was started as the n-th one; 0: there is none. */
static char child_state(const struct box *b, int n)
{
	char path[64], text[512], *at = NULL;
	FILE *f;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", b->pid, b->pid);
	f = fopen(path, "re");
	CHECK(f);
	for (; n >= 0; n--)
		if (fscanf(f, "%d", &pid) != 1)
			pid = 0;
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = pid ? fopen(path, "re") : NULL;
	if (f && fgets(text, sizeof(text), f))
		at = strrchr(text, ')');
	if (f)
		fclose(f);
	return at ? at[2] : 0;
}

/* Programs of these tests start no further ones while they wait: a shell whose child is stopped between vfork() and
 * exec() is in state D, not T, until the child continues. */
static void await_stopped(const struct box *b, int n, int stopped)
{
	for (int i = 0; (child_state(b, n) == 'T') != stopped; i++) {
		CHECK(i < PATIENCE_MS / 5);
		usleep(5000);
	}
}

static void an_expired_lease_stops_all_processes_and_the_next_one_continues_them(struct box *b)
{
	struct wire_start st = starting(1);

	shell(b->conn, &st,
	      "setsid sleep 100 & trap 'echo continued' CONT; echo up; while :; do wait; done");
	expect(b->conn, WIRE_OUTPUT);
	send_lease(b->conn, 60000, 0);
	ask_status(b->conn);
	CHECK(child_state(b, 0) != 'T');
	send_lease(b->conn, 20, 0);
	await_stopped(b, 0, 1);
	send_lease(b->conn, 60000, 0);
	await_stopped(b, 0, 0);
	expect(b->conn, WIRE_OUTPUT);
	/* At once, and without limit afterwards. */
	send_lease(b->conn, 0, 0);
	await_stopped(b, 0, 1);
	send_lease(b->conn, 0, WIRE_LEASE_OFF);
	await_stopped(b, 0, 0);
	send_lease(b->conn, 0, 1 << 5);
	for (;;) { /* output of the program may come first */
		CHECK(receive(b->conn));
		if (HEAD->type == WIRE_ERROR)
			break;
	}
	CHECK(GOT(wire_error)->kind == ERR_INVALID);
}

static void a_process_that_was_stopped_before_the_lease_expired_stays_stopped(struct box *b)
{
	struct wire_start st = starting(1);

	shell(b->conn, &st, "kill -STOP $$; echo resumed; sleep 100");
	await_stopped(b, 0, 1);
	st.head.ref = 2;
	shell(b->conn, &st, "sleep 100 & echo up; while :; do wait; done");
	expect(b->conn, WIRE_OUTPUT);
	send_lease(b->conn, 0, 0);
	await_stopped(b, 1, 1);
	send_lease(b->conn, 60000, 0);
	await_stopped(b, 1, 0);
	CHECK(child_state(b, 0) == 'T');
}

static void nothing_starts_after_the_lease_has_expired(struct box *b)
{
	struct wire_start st = starting(1);

	send_lease(b->conn, 0, 0);
	shell(b->conn, &st, "echo no");
	expect(b->conn, WIRE_ERROR);
	CHECK(GOT(wire_error)->kind == ERR_CONFLICT);
	send_head(b->conn, WIRE_FILES, 3);
	expect(b->conn, WIRE_ERROR);
	CHECK(GOT(wire_error)->kind == ERR_CONFLICT);
	send_lease(b->conn, 60000, 0);
	shell(b->conn, &st, "exit 5");
	CHECK(hear(b->conn)->end.status == 5);
}

/* It would stop processes of others, or leave some of its own running. */
static void an_init_that_is_not_pid_1_refuses_a_lease(struct box *b)
{
	send_lease(b->conn, 1000, 0);
	expect(b->conn, WIRE_ERROR);
	CHECK(GOT(wire_error)->kind == ERR_SYS);
}

/* It is the parent of their orphans, too, in sessions of their own. */
static void an_init_that_is_not_pid_1_ends_its_own_processes_and_no_other(struct box *b)
{
	struct frame f = head(WIRE_FILES, 2);
	struct wire_start st = starting(1);
	pid_t other = fork();
	int i;

	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	CHECK(other > 0);
	for (i = 0; i < 2; i++) {
		st.head.ref = 10 + (uint32_t)i;
		shell(b->conn, &st,
		      "for i in 1 2 3; do setsid sh -c 'sleep 100 & sleep 100' & done; echo up; wait");
		expect(b->conn, WIRE_OUTPUT);
		if (i)
			f.flags = WIRE_FILES_ALONE;
		else
			send_head(b->conn, WIRE_STOP, 1);
		if (i)
			send_frame(b->conn, &f, sizeof(f), NULL, 0, -1);
		expect_both(b->conn, i ? WIRE_FD : WIRE_DONE, WIRE_EXIT);
		CHECK(ask_status(b->conn).running == 0);
	}
	CHECK(frame_fd < 0 && kill(other, 0) == 0 && waitpid(other, NULL, WNOHANG) == 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

/* ---- programs ---- */

static void an_exec_runs_and_its_exit_status_is_returned(struct box *b)
{
	struct wire_start st = starting(7);
	struct exec_output *h;

	st.head.flags = WIRE_START_NOTIFY;
	shell(b->conn, &st, "echo; exit 3");
	expect(b->conn, WIRE_STARTED);
	CHECK(GOT(wire_started)->pid > 0 && HEAD->ref == 7);
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_EXIT && h->end.status == 3 && h->end.head.ref == 7);
	CHECK(h->end.wall_us > 0 && h->end.max_rss_kib > 0 && h->end.disk_size > 0);
	CHECK(!h->end.cut && !h->end.dropped[0]);
}

static void output_has_offsets_and_streams(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	shell(b->conn, &st, "echo one; echo two >&2; echo three");
	h = hear(b->conn);
	CHECK(!strcmp(h->text[0], "one\nthree\n") && h->first[0] == 0);
	CHECK(!strcmp(h->text[1], "two\n") && h->first[1] == 0);
	CHECK(h->end.bytes[0] == 10 && h->end.bytes[1] == 4);
}

static void directory_environment_and_path_are_those_of_the_request(struct box *b)
{
	static const char tail[] = "/tmp\0sh\0-c\0pwd; echo $A $PATH\0A=b c\0PATH=/nowhere:/bin";
	struct wire_start st = starting(1);

	st.argc = 3;
	st.envc = 2;
	st.tail_bytes = sizeof(tail);
	send_frame(b->conn, &st, sizeof(st), tail, sizeof(tail), -1);
	CHECK(!strcmp(hear(b->conn)->text[0], "/tmp\nb c /nowhere:/bin\n"));
}

static void strings_may_come_in_a_memfd(struct box *b)
{
	auto_fd int fd = memfd_create("args", MFD_CLOEXEC);
	auto_free char *tail = calloc(1, 1 << 20);
	struct wire_start st = starting(1);
	char *at = tail;
	int i;

	at = stpcpy(stpcpy(stpcpy(stpcpy(at, "/") + 1, "sh") + 1, "-c") + 1, "echo $#; echo $0") +
	     1;
	for (i = 0; i < 3000; i++)
		at = stpcpy(at, "a fairly long argument, to get beyond what one frame can hold") +
		     1;
	st.argc = 3003;
	st.tail_bytes = (uint32_t)(at - tail);
	st.head.flags = WIRE_START_MEMFD;
	CHECK(write(fd, tail, st.tail_bytes) == (ssize_t)st.tail_bytes);
	send_frame(b->conn, &st, sizeof(st), NULL, 0, fd);
	CHECK(!strncmp(hear(b->conn)->text[0], "2999\na fairly", 13));
}

static void too_many_strings_fail_the_exec_and_not_the_box(struct box *b)
{
	auto_fd int fd = memfd_create("args", MFD_CLOEXEC);
	struct wire_start st = starting(1);
	struct exec_output *h;

	st.argc = 1;
	st.tail_bytes = 9 << 20;
	st.head.flags = WIRE_START_MEMFD;
	CHECK(!ftruncate(fd, st.tail_bytes));
	send_frame(b->conn, &st, sizeof(st), NULL, 0, fd);
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_EXEC && h->end.status == E2BIG);
	CHECK(!strcmp(h->end.step, "arguments"));
}

static void counts_that_do_not_match_are_refused(struct box *b)
{
	static const struct {
		uint32_t argc, envc, bytes;
	} wrong[] = { { 0, 0, 9 }, { 1, 2, 9 }, { 3, 0, 9 },    { 1, 0, 9 },
		      { 2, 0, 8 }, { 2, 0, 0 }, { ~0u, ~0u, 9 } };
	struct wire_start st = starting(1);
	size_t i;

	for (i = 0; i < ARRAY_LEN(wrong); i++) {
		st.argc = wrong[i].argc;
		st.envc = wrong[i].envc;
		st.tail_bytes = wrong[i].bytes;
		/* "/", "sh", "-ca": three strings, nine bytes */
		send_frame(b->conn, &st, sizeof(st), "/\0sh\0-ca", i == 4 ? 8 : 9, -1);
		expect_error(b->conn, ERR_INVALID);
	}
}

static void expect_no_exec(struct box *b, int err, const char *step)
{
	struct exec_output *h = hear(b->conn);

	if (h->end.why != WIRE_WHY_EXEC || h->end.status != err || strcmp(h->end.step, step))
		fail("why %u, status %d, step '%s'", h->end.why, h->end.status, h->end.step);
}

static void an_exec_that_cannot_start_reports_step_and_errno(struct box *b)
{
	struct wire_start st = starting(1);
	int fd;

	start(b->conn, &st, "no-such-program");
	expect_no_exec(b, ENOENT, "program");
	st.head.ref++;
	start(b->conn, &st, "/etc/passwd");
	expect_no_exec(b, EACCES, "program");
	st.head.ref++;
	start_in(b->conn, &st, "/no/such/directory", (char *[]){ "true", NULL });
	expect_no_exec(b, ENOENT, "directory");
	st.head.ref++;
	start(b->conn, &st, "");
	expect_no_exec(b, ENOENT, "program");
	st.head.ref++;
	fd = open(in_dir("text"), O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	CHECK(write(fd, "no magic\n", 9) == 9);
	close(fd);
	start(b->conn, &st, in_dir("text"));
	expect_no_exec(b, ENOEXEC, "program");
}

static void a_child_inherits_no_state_of_init(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	/* ls itself opens one more; signals: none blocked, none ignored; no capability anywhere */
	shell(b->conn, &st,
	      "ls /proc/self/fd | tr '\\n' ' '; umask; grep -c 0000000000000000 /proc/self/status; "
	      "grep NoNewPrivs /proc/self/status");
	h = hear(b->conn);
	if (strcmp(h->text[0], "0 1 2 3 0022\n6\nNoNewPrivs:\t1\n") &&
	    strcmp(h->text[0], "0 1 2 3 0022\n7\nNoNewPrivs:\t1\n") &&
	    strcmp(h->text[0], "0 1 2 3 0022\n8\nNoNewPrivs:\t1\n"))
		fail("%s", h->text[0]);
}

static void the_requested_file_size_limit_is_set(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	st.fsize_bytes = 1024;
	start_in(b->conn, &st, dir,
		 (char *[]){ "sh", "-c", "exec head -c 4096 /dev/zero > big", NULL });
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_SIGNAL && h->end.status == SIGXFSZ);
}

static void a_duplicate_ref_is_a_conflict(struct box *b)
{
	struct wire_start st = starting(5);

	start(b->conn, &st, "cat"); /* stdin is /dev/null: ends at once */
	hear(b->conn);
	start(b->conn, &st, "true");
	expect_error(b->conn, ERR_CONFLICT);
	send_head(b->conn, WIRE_FORGET, 5);
	start(b->conn, &st, "true");
	CHECK(hear(b->conn)->end.status == 0);
}

static void steps_can_be_skipped_only_in_a_test_build(struct box *b)
{
	struct wire_start st = starting(1);
	int row = 0;

	while (strcmp(inside_names[row], "directory"))
		row++;
	st.without = 1ull << row;
	start_in(b->conn, &st, "/no/such/directory", (char *[]){ "/bin/true", NULL });
	if (receive(b->conn) == WIRE_EXIT) /* this is a test build */
		CHECK(GOT(wire_exit)->why == WIRE_WHY_EXIT && !GOT(wire_exit)->status);
	else
		CHECK(HEAD->type == WIRE_ERROR && GOT(wire_error)->kind == ERR_INVALID);
}

static void two_hundred_execs_leave_no_zombie(struct box *b)
{
	struct wire_start st = starting(1);
	struct wire_status s;
	char path[64];
	int i, left = 1;
	FILE *f;

	for (; st.head.ref <= 200; st.head.ref++) {
		shell(b->conn, &st, "true & true & exit 0"); /* perhaps two orphans each */
		CHECK(hear(b->conn)->end.why == WIRE_WHY_EXIT);
	}
	s = ask_status(b->conn);
	CHECK(s.execs == 64 && !s.running && s.reaped >= 200);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", b->pid, b->pid);
	for (i = 0; left && i < PATIENCE_MS; i++) { /* orphans may still run */
		f = fopen(path, "re");
		CHECK(f);
		left = fgetc(f) != EOF;
		fclose(f);
		poll(NULL, 0, left);
	}
	CHECK(!left);
}

static void the_oldest_finished_exec_is_evicted_and_a_running_one_never(struct box *b)
{
	struct wire_start st = starting(1);

	st.head.flags = WIRE_START_STDIN;
	for (; st.head.ref <= 128; st.head.ref++) {
		start(b->conn, &st, "cat");
		expect(b->conn, WIRE_STDIN_WINDOW);
	}
	start(b->conn, &st, "cat");
	expect_error(b->conn, ERR_LIMIT);
	send_stdin(b->conn, 9, NULL, 0);
	CHECK(hear(b->conn)->end.head.ref == 9);
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_STDIN_WINDOW);
	CHECK(ask_status(b->conn).running == 128 && ask_status(b->conn).execs == 129);
	send_stdin(b->conn, 10, NULL, 0);
	CHECK(hear(b->conn)->end.head.ref == 10);
	st.head.flags = 0;
	for (st.head.ref = 200; st.head.ref <= 263; st.head.ref++) {
		start(b->conn, &st, "true");
		CHECK(hear(b->conn)->end.head.ref == st.head.ref);
	}
	send_credit(b->conn, WIRE_ATTACH, 9, 0, 0, ALL, 0);
	expect_error(b->conn, ERR_NOT_FOUND);
	CHECK(ask_status(b->conn).running == 127);
}

static void the_list_has_every_exec(struct box *b)
{
	struct wire_start st = starting(11);
	int seen = 0;

	shell(b->conn, &st, "echo hello");
	hear(b->conn);
	st.head.ref = 12;
	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_STDIN_WINDOW);
	send_head(b->conn, WIRE_EXECS, 77);
	while (receive(b->conn) == WIRE_EXEC) {
		seen += (int)HEAD->ref;
		if (HEAD->ref == 11)
			CHECK(GOT(wire_exec)->over && GOT(wire_exec)->tip[0] == 6);
		else
			CHECK(!GOT(wire_exec)->over && GOT(wire_exec)->pid > 0);
	}
	CHECK(HEAD->type == WIRE_DONE && HEAD->ref == 77 && seen == 23);
}

static void the_list_shows_terminals_and_stdin(struct box *b)
{
	struct wire_start st = starting(1);
	struct wire_resize size = { .head = head(WIRE_RESIZE, 1), .rows = 50, .cols = 132 };
	const struct wire_exec *x = GOT(wire_exec);

	st.head.flags = WIRE_START_PTY | WIRE_START_NOTIFY | WIRE_START_DETACHED;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_STARTED);
	send_frame(b->conn, &size, sizeof(size), NULL, 0, -1);
	expect(b->conn, WIRE_STDIN_WINDOW);
	send_head(b->conn, WIRE_EXECS, 9);
	expect(b->conn, WIRE_EXEC);
	CHECK(x->tty && x->rows == 50 && x->cols == 132 && x->stdin_open && x->group == x->pid);
	expect(b->conn, WIRE_DONE);
	send_signal(b->conn, 1, SIGKILL);
	hear(b->conn);
	send_head(b->conn, WIRE_FORGET, 1);

	st.head = head(WIRE_START, 2);
	st.head.flags = WIRE_START_STDIN | WIRE_START_DETACHED;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_STDIN_WINDOW);
	send_stdin(b->conn, 2, "hello", 5);
	send_head(b->conn, WIRE_EXECS, 9);
	expect(b->conn, WIRE_EXEC);
	CHECK(!x->tty && x->stdin_open && x->stdin_bytes == 5 && x->stdin_room == 65536);
	expect(b->conn, WIRE_DONE);
	send_stdin(b->conn, 2, NULL, 0);
	hear(b->conn);
	send_head(b->conn, WIRE_EXECS, 9);
	expect(b->conn, WIRE_EXEC);
	CHECK(x->over && !x->stdin_open && !x->pid && x->group > 0 && x->tip[0] == 5);
	expect(b->conn, WIRE_DONE);
}

/* ---- output ---- */

static void a_second_connection_resumes_at_a_given_offset(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;
	auto_fd int other = -1;

	shell(b->conn, &st, "printf 0123456789; printf abc >&2");
	hear(b->conn);
	other = box_connect(b);
	send_credit(other, WIRE_ATTACH, 1, 0, 4, ALL, WIRE_ATTACH_MORE);
	expect(other, WIRE_ATTACHED);
	CHECK(GOT(wire_attached)->from == 4 && GOT(wire_attached)->tip == 10);
	send_credit(other, WIRE_ATTACH, 1, 1, 0, ALL, 0);
	h = hear(other);
	CHECK(!strcmp(h->text[0], "456789") && h->first[0] == 4 && !strcmp(h->text[1], "abc"));
	CHECK(h->end.why == WIRE_WHY_EXIT);
}

static void two_readers_of_a_running_exec_both_get_all_output(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);

	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_STDIN_WINDOW);
	send_credit(other, WIRE_ATTACH, 1, 0, 0, ALL, 0);
	expect(other, WIRE_ATTACHED);
	send_stdin(b->conn, 1, "shared", 6);
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(!strcmp(hear(b->conn)->text[0], "shared"));
	CHECK(!strcmp(hear(other)->text[0], "shared"));
}

static void without_credit_the_exec_waits_and_init_uses_little_memory(struct box *b)
{
	struct wire_start st = starting(1);
	struct wire_exec x = { 0 };
	uint64_t total = 8 << 20, got = 0, until = 0, before = 0;

	st.log_bytes = 65536;
	st.credit[0] = st.credit[1] = 0;
	start(b->conn, &st, "head", "-c", "8388608", "/dev/zero");
	do { /* until the log and the pipe are full: the tip no longer moves */
		send_head(b->conn, WIRE_EXECS, 2);
		before = x.tip[0];
		expect(b->conn, WIRE_EXEC);
		x = *GOT(wire_exec);
		expect(b->conn, WIRE_DONE);
	} while (x.tip[0] != 65536 || before != x.tip[0]);
	CHECK(!x.over && x.pid > 0 && x.kept_from[0] == 0);
	CHECK(init_kib(b, "VmRSS") < 256);
	while (got < total) {
		until += 100000;
		send_credit(b->conn, WIRE_OUTPUT_WINDOW, 1, 0, 0, until, 0);
		while (got < until && got < total) {
			expect(b->conn, WIRE_OUTPUT);
			CHECK(GOT(wire_output)->offset == got);
			got += (uint64_t)frame_len - sizeof(struct wire_output);
			CHECK(got <= until);
		}
	}
	expect(b->conn, WIRE_EXIT);
	CHECK(GOT(wire_exit)->bytes[0] == total && GOT(wire_exit)->status == 0);
	CHECK(GOT(wire_exit)->dropped[0] <= total - 65536 && !GOT(wire_exit)->cut);
}

static void exit_is_sent_after_the_credit_for_the_last_byte(struct box *b)
{
	struct wire_start st = starting(1);
	struct wire_exec x;

	st.credit[0] = 3;
	shell(b->conn, &st, "printf abcdef");
	expect(b->conn, WIRE_OUTPUT);
	CHECK(frame_len == (int)sizeof(struct wire_output) + 3);
	do {
		send_head(b->conn, WIRE_EXECS, 2);
		expect(b->conn, WIRE_EXEC);
		x = *GOT(wire_exec);
		expect(b->conn, WIRE_DONE);
	} while (!x.over);
	send_credit(b->conn, WIRE_OUTPUT_WINDOW, 1, 0, 0, 6, 0);
	expect(b->conn, WIRE_OUTPUT);
	CHECK(GOT(wire_output)->offset == 3);
	expect(b->conn, WIRE_EXIT);
}

static void a_detached_reader_does_not_block_the_exec_and_gets_the_exit(struct box *b)
{
	struct wire_start st = starting(1);

	st.log_bytes = 65536;
	st.credit[0] = 1000;
	start(b->conn, &st, "head", "-c", "4194304", "/dev/zero");
	expect(b->conn, WIRE_OUTPUT); /* then no further output: there is no credit */
	send_head(b->conn, WIRE_DETACH, 1);
	do {
		CHECK(receive(b->conn));
	} while (HEAD->type == WIRE_OUTPUT);
	CHECK(HEAD->type == WIRE_EXIT && GOT(wire_exit)->bytes[0] == 4194304);
	CHECK(!GOT(wire_exit)->status && GOT(wire_exit)->dropped[0]);
	send_head(b->conn, WIRE_DETACH, 1);  /* ended, and no client attached */
	send_head(b->conn, WIRE_DETACH, 77); /* never was */
	ask_status(b->conn);
}

static void a_detached_reader_may_attach_again(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_STDIN_WINDOW);
	send_head(b->conn, WIRE_DETACH, 1);
	send_stdin(b->conn, 1, "meanwhile", 9);
	send_credit(b->conn, WIRE_ATTACH, 1, 0, 4, ALL, 0);
	expect(b->conn, WIRE_ATTACHED);
	send_stdin(b->conn, 1, NULL, 0);
	h = hear(b->conn);
	/* How far cat had read at the time of the reconnect is not defined. */
	CHECK(h->n[0] == 9 || (h->n[0] == 5 && !strcmp(h->text[0], "while")));
}

static void a_detached_start_sends_only_the_exit(struct box *b)
{
	struct wire_start st = starting(1);

	st.log_bytes = 65536;
	st.head.flags = WIRE_START_DETACHED | WIRE_START_NOTIFY;
	start(b->conn, &st, "head", "-c", "1048576", "/dev/zero");
	CHECK(receive(b->conn));
	if (HEAD->type ==
	    WIRE_STARTED) /* else its end arrived first: init had to wait for a processor */
		expect(b->conn, WIRE_EXIT);
	CHECK(HEAD->type == WIRE_EXIT && GOT(wire_exit)->bytes[0] == 1048576 &&
	      !GOT(wire_exit)->status);
	st.head.ref = 2;
	start(b->conn, &st, "no-such-program");
	expect(b->conn, WIRE_EXIT);
	CHECK(GOT(wire_exit)->why == WIRE_WHY_EXEC);
}

static void a_client_may_attach_for_the_exit_only(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);

	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_STDIN_WINDOW);
	send_credit(other, WIRE_ATTACH, 1, WIRE_NO_STREAM, 0, 0, 0);
	expect(other, WIRE_ATTACHED);
	CHECK(GOT(wire_attached)->stream == WIRE_NO_STREAM && !GOT(wire_attached)->tip);
	send_stdin(b->conn, 1, "not for you", 11);
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(hear(b->conn)->n[0] == 11);
	CHECK(!hear(other)->n[0]);
	send_credit(other, WIRE_ATTACH, 1, WIRE_NO_STREAM, 0, 0, 0); /* long over */
	CHECK(!hear(other)->n[0]);
	send_credit(other, WIRE_ATTACH, 5, WIRE_NO_STREAM, 0, 0, 0);
	expect_error(other, ERR_NOT_FOUND);
	send_credit(other, WIRE_ATTACH, 1, WIRE_NO_STREAM + 1, 0, 0, 0);
	CHECK(!receive(other));
}

static void a_reader_that_never_reads_uses_no_memory_of_init(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);
	uint64_t got = 0;

	st.log_bytes = 65536;
	start(other, &st, "head", "-c", "4194304", "/dev/zero"); /* all credit, no reader */
	while (!readable(other, PATIENCE_MS))
		;
	CHECK(ask_status(b->conn).running == 1 && init_kib(b, "VmRSS") < 256);
	while (receive(other) == WIRE_OUTPUT) {
		CHECK(GOT(wire_output)->offset == got);
		got += (uint64_t)frame_len - sizeof(struct wire_output);
	}
	CHECK(HEAD->type == WIRE_EXIT && got == 4194304);
}

static void without_a_reader_the_oldest_output_is_dropped(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);
	struct exec_output *h;

	st.log_bytes = 8192;
	st.credit[0] = st.credit[1] = 0;
	start(other, &st, "head", "-c", "1048576", "/dev/zero");
	ask_status(other);
	close(steal_fd(&other));
	while (ask_status(b->conn).running)
		;
	send_credit(b->conn, WIRE_ATTACH, 1, 0, 0, ALL, 0);
	expect(b->conn, WIRE_ATTACHED);
	CHECK(GOT(wire_attached)->tip == 1048576);
	CHECK(GOT(wire_attached)->from >= 1048576 - 8192 - 8192);
	CHECK(GOT(wire_attached)->from <= 1048576 - 8192);
	h = hear(b->conn);
	CHECK(h->last[0] == 1048576 && h->first[0] == h->end.dropped[0]);
}

static void a_background_process_holding_the_pipe_is_cut_off_after_grace(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	st.grace_ms = 50;
	shell(b->conn, &st, "setsid sh -c 'while :; do sleep 1; done' & echo $!");
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_EXIT && h->end.cut == 3);
	kill(atoi(h->text[0]), SIGKILL);
}

/* ---- stdin ---- */

static void stdin_and_its_end_reach_the_exec(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	send_stdin(b->conn, 1, "hello ", 6); /* sent with the START, before any answer */
	send_stdin(b->conn, 1, "world", 5);
	send_stdin(b->conn, 1, NULL, 0);
	h = hear(b->conn);
	CHECK(!strcmp(h->text[0], "hello world") && h->end.stdin_bytes == 11);
}

static void the_stdin_window_passes_a_megabyte(struct box *b)
{
	struct wire_start st = starting(1);
	uint64_t room = 0, sent = 0, total = 1 << 20, got = 0;
	static char zeros[30000];

	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	while (got < total) {
		uint64_t n = room - sent < sizeof(zeros) ? room - sent : sizeof(zeros);

		n = n < total - sent ? n : total - sent;
		if (n) {
			send_stdin(b->conn, 1, zeros, n);
			sent += n;
			continue;
		}
		if (receive(b->conn) == WIRE_STDIN_WINDOW) {
			CHECK(GOT(wire_stdin_window)->until > room);
			room = GOT(wire_stdin_window)->until;
		} else {
			CHECK(HEAD->type == WIRE_OUTPUT);
			got += (uint64_t)frame_len - sizeof(struct wire_output);
		}
	}
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(hear(b->conn)->end.stdin_bytes == total);
}

static void stdin_over_the_window_ends_only_that_connection(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);
	static char zeros[40000];
	int i;

	st.head.flags = WIRE_START_STDIN;
	start(other, &st, "sleep", "1000");
	for (i = 0; i < 4; i++) {
		struct frame f = head(WIRE_STDIN, 1);

		try_send(other, &f, sizeof(f), zeros, sizeof(zeros), -1);
	}
	while (receive(other))
		CHECK(HEAD->type == WIRE_STDIN_WINDOW);
	CHECK(ask_status(b->conn).running == 1);
	send_signal(b->conn, 1, SIGKILL);
}

/* As when a server is killed on a busy machine: its frames count, and the next connection gets
 * their number. Init notices the disconnect when it cannot send output. */
static void stdin_sent_before_a_disconnect_is_read_before_the_next_request(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b), next = -1;
	static char bytes[10][1000];

	st.head.flags = WIRE_START_STDIN;
	start(other, &st, "cat");
	expect(other, WIRE_STDIN_WINDOW);
	kill(b->pid, SIGSTOP);
	for (int i = 0; i < 10; i++) {
		memset(bytes[i], 'a' + i, sizeof(bytes[i]));
		send_stdin(other, 1, bytes[i], sizeof(bytes[i]));
	}
	close(steal_fd(&other));
	next = box_connect(b);
	send_head(next, WIRE_EXECS, 9);
	kill(b->pid, SIGCONT);
	expect(next, WIRE_EXEC);
	CHECK(GOT(wire_exec)->stdin_bytes == sizeof(bytes));
	expect(next, WIRE_DONE);
	send_credit(next, WIRE_ATTACH, 1, 0, 0, ALL, 0);
	send_stdin(next, 1, NULL, 0);
	CHECK(!memcmp(hear(next)->text[0], bytes, sizeof(bytes)));
}

static void stdin_for_an_exec_that_closed_it_is_dropped(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	st.head.flags = WIRE_START_STDIN;
	shell(b->conn, &st, "exec 0<&-; echo closed; while :; do sleep 0.01; done");
	expect(b->conn, WIRE_STDIN_WINDOW);
	expect(b->conn, WIRE_OUTPUT);
	send_stdin(b->conn, 1, "into the void", 13);
	send_stdin(b->conn, 1, NULL, 0);
	send_signal(b->conn, 1, SIGKILL);
	h = hear(b->conn);
	CHECK(h->end.status == SIGKILL && !h->end.stdin_bytes);
}

/* ---- terminals, signals, time ---- */

/* Reads output until the text is in it. */
static void hear_text(int conn, struct exec_output *h, const char *text)
{
	while (!strstr(h->text[0], text)) {
		int type = receive(conn);

		if (type == WIRE_OUTPUT)
			hear_output(h);
		else if (type != WIRE_STDIN_WINDOW)
			fail("wanted '%s', got %s", text, frame_name((uint8_t)type));
	}
}

static void the_channel_is_descriptor_3_in_both_directions(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	st.head.flags = WIRE_START_CHANNEL;
	shell(b->conn, &st, "ls /proc/self/fd; cat <&3 >&3");
	send_channel(b->conn, 1, "to the ", 7); /* before any answer */
	send_channel(b->conn, 1, "driver", 6);
	send_channel(b->conn, 1, NULL, 0);
	h = hear(b->conn);
	CHECK(!strcmp(h->text[2], "to the driver") && h->first[2] == 0);
	CHECK(!strcmp(h->text[0], "0\n1\n2\n3\n4\n")); /* 4 is what ls has open */
	CHECK(h->end.bytes[2] == 13 && h->end.status == 0 && !h->end.cut);
}

static void a_megabyte_passes_the_channel_with_window_and_credit(struct box *b)
{
	struct wire_start st = starting(1);
	uint64_t room = 0, sent = 0, total = 1 << 20, got = 0, until = 5000;
	static char zeros[30000];

	st.head.flags = WIRE_START_CHANNEL;
	st.credit[2] = until;
	start(b->conn, &st, "/bin/sh", "-c", "cat <&3 >&3");
	while (got < total) {
		uint64_t n = room - sent < sizeof(zeros) ? room - sent : sizeof(zeros);

		n = n < total - sent ? n : total - sent;
		if (n) {
			send_channel(b->conn, 1, zeros, n);
			sent += n;
			continue;
		}
		if (receive(b->conn) == WIRE_STDIN_WINDOW) {
			CHECK(HEAD->flags == WIRE_STDIN_CHANNEL);
			room = GOT(wire_stdin_window)->until;
			continue;
		}
		CHECK(HEAD->type == WIRE_OUTPUT && GOT(wire_output)->stream == 2);
		CHECK(GOT(wire_output)->offset == got);
		got += (uint64_t)frame_len - sizeof(struct wire_output);
		CHECK(got <= until);
		until = got + 5000;
		send_credit(b->conn, WIRE_OUTPUT_WINDOW, 1, 2, 0, until, 0);
	}
	send_channel(b->conn, 1, NULL, 0);
	CHECK(hear(b->conn)->end.bytes[2] == total);
}

/* One byte on the channel after each line: when it arrives, the line has arrived, too. */
static void output_printed_before_a_channel_message_is_sent_before_it(struct box *b)
{
	struct wire_start st = starting(1);
	uint64_t n[WIRE_STREAMS] = { 0 };

	st.head.flags = WIRE_START_CHANNEL;
	shell(b->conn, &st,
	      "i=0; while [ $i -lt 2000 ]; do echo line; echo error >&2; printf . >&3;"
	      " i=$((i+1)); done");
	while (receive(b->conn) != WIRE_EXIT) {
		if (HEAD->type != WIRE_OUTPUT)
			continue;
		n[GOT(wire_output)->stream] += (uint64_t)frame_len - sizeof(struct wire_output);
		CHECK(n[0] >= n[2] * 5 && n[1] >= n[2] * 6);
	}
	CHECK(n[0] == 10000 && n[1] == 12000 && n[2] == 2000);
}

static void the_channel_waits_while_output_has_no_credit(struct box *b)
{
	struct wire_start st = starting(1);
	uint64_t n = 0;

	st.head.flags = WIRE_START_CHANNEL;
	st.log_bytes = 4096;
	st.credit[0] = 0;
	shell(b->conn, &st, "head -c 100000 /dev/zero; echo done >&3");
	expect(b->conn, WIRE_STDIN_WINDOW);
	CHECK(ask_status(b->conn).running == 1);
	send_credit(b->conn, WIRE_OUTPUT_WINDOW, 1, 0, 0, 99999, 0);
	while (n < 99999) {
		expect(b->conn, WIRE_OUTPUT);
		CHECK(GOT(wire_output)->stream == 0);
		n += (uint64_t)frame_len - sizeof(struct wire_output);
	}
	CHECK(ask_status(b->conn).pid > 0); /* no bytes of the channel before this answer */
	send_credit(b->conn, WIRE_OUTPUT_WINDOW, 1, 0, 0, ALL, 0);
	expect(b->conn, WIRE_OUTPUT);
	CHECK(GOT(wire_output)->stream == 0);
	expect(b->conn, WIRE_OUTPUT);
	CHECK(GOT(wire_output)->stream == 2);
	expect(b->conn, WIRE_EXIT);
}

static void a_terminal_has_no_channel(struct box *b)
{
	struct wire_start st = starting(1);

	st.head.flags = WIRE_START_CHANNEL | WIRE_START_PTY;
	shell(b->conn, &st, "exit 0");
	expect_error(b->conn, ERR_INVALID);
}

static void a_channel_held_by_another_process_is_closed_after_the_grace_period(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	st.head.flags = WIRE_START_CHANNEL;
	st.grace_ms = 50;
	shell(b->conn, &st, "echo said >&3; sleep 1000 >/dev/null 2>&1 <&3 &");
	h = hear(b->conn);
	CHECK(!strcmp(h->text[2], "said\n") && h->end.cut == 1 << 2);
	send_channel(b->conn, 1, "late", 4);
	ask_status(b->conn);
}

static void the_channel_resumes_by_offset_and_is_listed(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);
	struct wire_exec x;

	st.head.flags = WIRE_START_CHANNEL;
	shell(b->conn, &st, "echo 0123456789 >&3; cat <&3");
	expect(b->conn, WIRE_STDIN_WINDOW);
	expect(b->conn, WIRE_OUTPUT);
	send_channel(b->conn, 1, "ab", 2);
	expect(b->conn, WIRE_OUTPUT); /* cat has them */
	send_head(other, WIRE_EXECS, 2);
	expect(other, WIRE_EXEC);
	x = *GOT(wire_exec);
	expect(other, WIRE_DONE);
	CHECK(x.channel && x.channel_bytes == 2 && x.channel_room >= 65536 && x.tip[2] == 11);
	send_credit(other, WIRE_ATTACH, 1, 2, 6, ALL, 0);
	send_channel(b->conn, 1, NULL, 0);
	CHECK(!strcmp(hear(other)->text[2], "6789\n"));
	CHECK(hear(b->conn)->end.status == 0);
}

static void a_terminal_echoes_resizes_and_ends(struct box *b)
{
	struct wire_resize size = { .head = head(WIRE_RESIZE, 1), .rows = 50, .cols = 132 };
	struct wire_start st = starting(1);
	struct exec_output h = { 0 };

	st.head.flags = WIRE_START_PTY | WIRE_START_STDIN;
	st.rows = 25;
	st.cols = 81;
	shell(b->conn, &st,
	      "stty size; test -t 2 && tty; read line; echo got $line; read line; stty size; "
	      "while read line; do :; done; while read line; do echo again $line; done; exit 5");
	hear_text(b->conn, &h, "25 81\r\n/dev/pts/");
	send_stdin(b->conn, 1, "typed\n", 6);
	hear_text(b->conn, &h, "typed\r\ngot typed\r\n");
	send_frame(b->conn, &size, sizeof(size), NULL, 0, -1);
	send_stdin(b->conn, 1, "x\n", 2);
	hear_text(b->conn, &h, "50 132");
	send_stdin(b->conn, 1, NULL, 0); /* ^D ends the first loop */
	send_stdin(b->conn, 1, "y\n", 2);
	hear_text(b->conn, &h, "again y");
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(hear(b->conn)->end.status == 5);
}

static void the_last_output_on_a_terminal_is_not_lost(struct box *b)
{
	struct wire_start st = starting(1);

	st.head.flags = WIRE_START_PTY;
	for (; st.head.ref <= 50; st.head.ref++) {
		start(b->conn, &st, "/bin/echo", "last output");
		CHECK(!strcmp(hear(b->conn)->text[0], "last output\r\n"));
	}
}

static void control_c_reaches_the_terminals_foreground(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output h = { 0 };

	st.head.flags = WIRE_START_PTY;
	shell(b->conn, &st, "echo ready; exec sleep 1000");
	hear_text(b->conn, &h, "ready");
	send_stdin(b->conn, 1, "\003", 1);
	CHECK(hear(b->conn)->end.status == SIGINT);
}

static void a_signal_reaches_the_whole_group(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	shell(b->conn, &st, "sleep 1000 & echo; wait");
	expect(b->conn, WIRE_OUTPUT);
	send_signal(b->conn, 1, SIGTERM);
	h = hear(b->conn); /* returns only if the sleep has closed the pipes, too */
	CHECK(h->end.why == WIRE_WHY_SIGNAL && h->end.status == SIGTERM && !h->end.cut);
	send_signal(b->conn, 1, SIGTERM); /* late, and no harm */
	send_signal(b->conn, 1, 65);
	expect_error(b->conn, ERR_INVALID);
	send_signal(b->conn, 2, SIGTERM);
	expect_error(b->conn, ERR_NOT_FOUND);
}

static struct wire_start lone(uint32_t ref)
{
	struct wire_start st = starting(ref);

	st.head.flags = WIRE_START_LEADER_ONLY | WIRE_START_NOTIFY;
	st.grace_ms = 1;
	return st;
}

static void a_leader_only_exec_is_read_to_the_end_of_its_streams(struct box *b)
{
	struct wire_start st = lone(1);
	struct exec_output *h;

	shell(b->conn, &st, "(sleep 0.3; echo late) & echo early");
	expect(b->conn, WIRE_STARTED);
	h = hear(b->conn);
	CHECK(!strcmp(h->text[0], "early\nlate\n") && !h->end.cut && h->end.status == 0);
}

static void a_leader_only_exec_without_output_reports_its_pid(struct box *b)
{
	struct wire_start st = lone(1);

	start(b->conn, &st, "true");
	expect(b->conn, WIRE_STARTED);
	CHECK(GOT(wire_started)->pid > 0);
	expect(b->conn, WIRE_EXIT);
}

static void a_signal_to_a_leader_only_exec_reaches_only_the_leader(struct box *b)
{
	struct wire_start st = lone(1);
	struct exec_output *h;
	pid_t child;

	shell(b->conn, &st, "sleep 1000 & echo $!; wait");
	expect(b->conn, WIRE_STARTED);
	expect(b->conn, WIRE_OUTPUT);
	child = atoi((char *)(GOT(wire_output) + 1));
	send_signal(b->conn, 1, SIGKILL);
	h = hear(b->conn); /* though its child holds the pipes */
	CHECK(h->end.why == WIRE_WHY_SIGNAL && h->end.status == SIGKILL && h->end.cut == 3);
	CHECK(child > 1 && kill(child, SIGKILL) == 0);
}

static void sigkill_ends_reading_pipes_that_others_hold_of_a_leader_only_exec(struct box *b)
{
	struct wire_start st = lone(1);
	struct exec_output *h;

	shell(b->conn, &st, "sleep 30 & echo; exit 5");
	expect(b->conn, WIRE_STARTED);
	expect(b->conn, WIRE_OUTPUT);
	send_signal(b->conn, 1, SIGTERM);
	h = hear(b->conn);
	CHECK(h->end.cut == 3);
}

static void the_wall_limit_of_a_leader_only_exec_includes_holders_of_its_pipes(struct box *b)
{
	struct wire_start st = lone(1);
	struct exec_output *h;

	st.wall_ms = 80;
	shell(b->conn, &st, "sleep 30 & exit 0");
	expect(b->conn, WIRE_STARTED);
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_WALL && h->end.cut == 3);
	st.head.ref = 2;
	shell(b->conn, &st, "sleep 30 & wait");
	expect(b->conn, WIRE_STARTED);
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_WALL && h->end.status == SIGKILL);
}

static void the_wall_limit_kills_the_process_group(struct box *b)
{
	struct wire_start st = starting(1);
	struct exec_output *h;

	st.wall_ms = 80;
	shell(b->conn, &st, "sleep 1000 & wait");
	h = hear(b->conn);
	CHECK(h->end.why == WIRE_WHY_WALL && h->end.status == SIGKILL && !h->end.cut);
	CHECK(h->end.wall_us >= 80000 && h->end.wall_us < 8000000);
}

static void a_disconnect_does_not_end_the_exec(struct box *b)
{
	struct wire_start st = starting(1);
	auto_fd int other = box_connect(b);

	st.head.flags = WIRE_START_STDIN;
	start(other, &st, "cat");
	expect(other, WIRE_STDIN_WINDOW);
	close(steal_fd(&other));
	send_credit(b->conn, WIRE_ATTACH, 1, 0, 0, ALL, 0);
	expect(b->conn, WIRE_ATTACHED);
	expect(b->conn, WIRE_STDIN_WINDOW);
	send_stdin(b->conn, 1, "still here", 10);
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(!strcmp(hear(b->conn)->text[0], "still here"));
}

/* ---- the connection ---- */

static void an_invalid_frame_ends_only_its_connection(struct box *b)
{
	static const struct frame bad[] = {
		{ WIRE_VERSION + 1, WIRE_STAT, 0, 0 }, { WIRE_VERSION, 0, 0, 0 },
		{ WIRE_VERSION, 255, 0, 0 },           { WIRE_VERSION, WIRE_START, 0, 0 },
		{ WIRE_VERSION, WIRE_EXIT, 0, 0 },     { WIRE_VERSION, WIRE_CREATE, 0, 0 },
		{ WIRE_VERSION, WIRE_GET, 0, 0 },
	};
	struct wire_start st = starting(1);
	static char noise[65536];
	unsigned i, seed = 1;

	send_head(b->conn, WIRE_PERSIST, 0);
	st.head.flags = WIRE_START_STDIN;
	start(b->conn, &st, "cat");
	expect(b->conn, WIRE_STDIN_WINDOW);
	for (i = 0; i < ARRAY_LEN(bad) + 100; i++) {
		auto_fd int other = box_connect(b);

		if (i < ARRAY_LEN(bad)) {
			send_frame(other, &bad[i], sizeof(bad[i]), NULL, 0, -1);
		} else {
			size_t n = (size_t)(rand_r(&seed) % 500) + 1, k;

			for (k = 0; k < n; k++)
				noise[k] = (char)rand_r(&seed);
			noise[0] = (char)(WIRE_VERSION + (noise[0] & 1));
			if (n > 1 && (noise[1] == WIRE_KILL_ON_CLOSE || noise[1] == WIRE_SIGNAL))
				noise[1] = 0; /* the frames that have an effect */
			if (n > 1 && noise[0] == WIRE_VERSION)
				noise[1] = (char)((noise[1] & 31) ? noise[1] | (char)128 : 0);
			send_frame(other, noise, n, NULL, 0, -1);
		}
		CHECK(!receive(other));
	}
	send_stdin(b->conn, 1, "alive", 5);
	send_stdin(b->conn, 1, NULL, 0);
	CHECK(!strcmp(hear(b->conn)->text[0], "alive"));
}

static void unexpected_descriptors_end_the_connection(struct box *b)
{
	auto_fd int other = box_connect(b);
	struct frame f = head(WIRE_STAT, 1);

	send_frame(other, &f, sizeof(f), NULL, 0, 2);
	CHECK(!receive(other));
	ask_status(b->conn);
}

static void the_65th_client_is_rejected(struct box *b)
{
	int fd[64], i;

	for (i = 0; i < 63; i++) {
		fd[i] = box_connect(b);
		CHECK(ask_status(fd[i]).clients == (unsigned)i + 2);
	}
	fd[63] = box_connect(b);
	CHECK(!receive(fd[63]));
	for (i = 0; i < 64; i++)
		close(fd[i]);
	while (ask_status(b->conn).clients != 1)
		;
}

static void connect_reaches_a_port_inside(struct box *b)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct wire_connect w = { .head = head(WIRE_CONNECT, 5) };
	auto_fd int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), server = -1,
		    client = -1;
	socklen_t n = sizeof(at);
	char got[4] = "";

	CHECK(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *)&at, &n));
	w.port = ntohs(at.sin_port);
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect(b->conn, WIRE_FD);
	client = frame_fd;
	CHECK(client >= 0 && HEAD->ref == 5);
	server = accept(listener, NULL, NULL);
	CHECK(write(client, "abc", 3) == 3 && read(server, got, 3) == 3 && !strcmp(got, "abc"));
	close(steal_fd(&listener));
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect_error(b->conn, ERR_NOT_FOUND);
	CHECK(GOT(wire_error)->sys == ECONNREFUSED);
	w.port = 65536;
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect_error(b->conn, ERR_INVALID);
}

static void listen_opens_a_port_inside(struct box *b)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct wire_connect w = { .head = head(WIRE_LISTEN, 6) };
	auto_fd int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), listener = -1,
		    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), server = -1;
	socklen_t n = sizeof(at);

	/* A port that is free at the moment. */
	CHECK(!bind(probe, (struct sockaddr *)&at, sizeof(at)));
	CHECK(!getsockname(probe, (struct sockaddr *)&at, &n));
	close(steal_fd(&probe));
	w.port = ntohs(at.sin_port);
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect(b->conn, WIRE_FD);
	listener = frame_fd;
	CHECK(listener >= 0 && HEAD->ref == 6);
	CHECK(!connect(client, (struct sockaddr *)&at, sizeof(at)));
	CHECK(readable(listener, PATIENCE_MS));
	server = accept(listener, NULL, NULL);
	CHECK(server >= 0);
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect(b->conn, WIRE_ERROR);
	CHECK(GOT(wire_error)->sys == EADDRINUSE);
	w.port = 80;
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect_error(b->conn, ERR_INVALID);
	w.port = 65536;
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect_error(b->conn, ERR_INVALID);
}

/* A socket on a free port of 127.0.0.1, listening or closed again; its address is in *at. */
static int local_port(struct sockaddr_in *at, int listening)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(*at);

	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	CHECK(!bind(fd, (struct sockaddr *)at, sizeof(*at)));
	CHECK(!getsockname(fd, (struct sockaddr *)at, &n));
	if (listening)
		CHECK(!listen(fd, 512));
	else
		close(fd);
	return fd;
}

static void a_port_is_free_again_when_its_listener_is_closed(struct box *b)
{
	struct wire_connect w = { .head = head(WIRE_LISTEN, 6) };
	struct sockaddr_in at;
	int i;

	local_port(&at, 0);
	w.port = ntohs(at.sin_port);
	for (i = 0; i < 3; i++) {
		send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
		expect(b->conn, WIRE_FD);
		CHECK(frame_fd >= 0);
		close(frame_fd);
	}
}

/* Bytes both ways at the same time, more than any buffer holds, then the end of one direction. */
static void a_connection_ends_in_each_direction_by_itself(struct box *b)
{
	enum { MANY = 4 << 20 };
	struct wire_connect w = { .head = head(WIRE_CONNECT, 5) };
	static char bytes[65536];
	struct sockaddr_in at;
	auto_fd int listener = local_port(&at, 1), server = -1, client = -1;
	ssize_t n, got = 0;
	pid_t other;

	w.port = ntohs(at.sin_port);
	send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
	expect(b->conn, WIRE_FD);
	client = frame_fd;
	fcntl(client, F_SETFL, 0);
	server = accept(listener, NULL, NULL);
	other = fork();
	if (!other) { /* sends back what it gets, after its end */
		while ((n = read(server, bytes, sizeof(bytes))) > 0)
			got += n;
		while (got > 0 && (n = write(server, bytes, sizeof(bytes))) > 0)
			got -= n;
		_exit(got != 0);
	}
	while (got < MANY && (n = write(client, bytes, sizeof(bytes))) > 0)
		got += n;
	CHECK(got == MANY && !shutdown(client, SHUT_WR));
	close(steal_fd(&server));
	while (got > 0 && readable(client, PATIENCE_MS) &&
	       (n = read(client, bytes, sizeof(bytes))) > 0)
		got -= n;
	CHECK(!got && readable(client, PATIENCE_MS) && read(client, bytes, 1) == 0);
	CHECK(waitpid(other, &frame_len, 0) == other && !frame_len);
}

#ifdef BOXED_MUX
static void more_connections_than_streams_are_errors_and_not_the_end(struct box *b)
{
	enum { MANY = 300 };
	struct wire_connect w = { .head = head(WIRE_CONNECT, 5) };
	struct sockaddr_in at;
	auto_fd int listener = local_port(&at, 1);
	int fds[MANY], n = 0, errors = 0, i;

	(void)listener; /* it is closed with this function */
	w.port = ntohs(at.sin_port);
	for (i = 0; i < MANY; i++) {
		send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
		if (receive(b->conn) == WIRE_FD)
			fds[n++] = frame_fd;
		else if (HEAD->type == WIRE_ERROR && GOT(wire_error)->kind == ERR_LIMIT)
			errors++;
	}
	CHECK(n + errors == MANY && n > 200 && errors > 0);
	for (i = 0; i < n; i++)
		close(fds[i]);
	for (i = 0; i < PATIENCE_MS; i++) { /* until the other end has closed one, too */
		send_frame(b->conn, &w, sizeof(w), NULL, 0, -1);
		if (receive(b->conn) == WIRE_FD)
			break;
		poll(NULL, 0, 1);
	}
	CHECK(frame_fd >= 0);
	close(frame_fd);
}
#endif

static void sha256_agrees_with_its_standard(struct box *b)
{
	static const struct {
		const char *text;
		uint8_t first, last;
	} rows[] = {
		{ "", 0xe3, 0x55 },
		{ "abc", 0xba, 0xad },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 0x24, 0xc1 },
	};
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;
	size_t i;

	(void)b;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		sha256_init(&s);
		sha256_add(&s, rows[i].text, strlen(rows[i].text));
		sha256_end(&s, sum);
		CHECK(sum[0] == rows[i].first && sum[31] == rows[i].last);
	}
	sha256_init(&s);
	for (i = 0; i < 1000000; i += 10)
		sha256_add(&s, "aaaaaaaaaa", 10);
	sha256_end(&s, sum);
	CHECK(!memcmp(sum,
		      "\xcd\xc7\x6e\x5c\x99\x14\xfb\x92\x81\xa1\xc7\xe2\x84\xd7\x3e\x67"
		      "\xf1\x80\x9a\x48\xa4\x97\x20\x0e\x04\x6d\x39\xcc\xc7\x11\x2c\xd0",
		      32));
}

/* ---- holds ---- */

static void send_hold(int conn, uint16_t flags)
{
	struct frame f = head(WIRE_HOLD, 7);

	f.flags = flags;
	send_frame(conn, &f, sizeof(f), NULL, 0, -1);
}

static void during_a_hold_other_connections_wait(struct box *b)
{
	int other;

	send_head(b->conn, WIRE_PERSIST, 0);
	ask_status(b->conn);
	other = box_connect(b);
	ask_status(other);
	send_hold(b->conn, 0);
	expect(b->conn, WIRE_DONE);
	send_head(other, WIRE_STAT, 0);
	ask_status(b->conn);
	CHECK(!readable(other, 50));
	send_hold(b->conn, WIRE_HOLD_OFF);
	expect(b->conn, WIRE_DONE);
	expect(other, WIRE_STATUS);
	send_hold(other, 0);
	expect(other, WIRE_DONE);
	send_head(b->conn, WIRE_STAT, 0);
	close(other); /* the hold ends with it, and not only after ten seconds */
	CHECK(readable(b->conn, 8000));
	expect(b->conn, WIRE_STATUS);
	send_hold(b->conn, 2);
	expect_error(b->conn, ERR_INVALID);
}

static void an_export_has_the_output_and_the_ends_of_a_held_exec(struct box *b)
{
	struct wire_start st = starting(1);
	struct wire_exec_state s;
	char text[16] = "";

	send_head(b->conn, WIRE_EXPORT, 0);
	expect_error(b->conn, ERR_CONFLICT); /* nothing is held */
	shell(b->conn, &st, "trap 'printf def' USR1; printf abc; while :; do sleep 0.01; done");
	expect(b->conn, WIRE_OUTPUT);
	send_hold(b->conn, 0);
	expect(b->conn, WIRE_DONE);
	send_head(b->conn, WIRE_EXPORT, 9);
	expect(b->conn, WIRE_EXEC_STATE);
	s = *GOT(wire_exec_state);
	CHECK(frame_fd >= 0 && pread(frame_fd, text, sizeof(text), 0) == 3 && !strcmp(text, "abc"));
	close(frame_fd);
	expect(b->conn, WIRE_DONE);
	kill(s.pid, SIGUSR1);
	do { /* nothing reads the pipe but EXPORT */
		send_head(b->conn, WIRE_EXPORT, 9);
		expect(b->conn, WIRE_EXEC_STATE);
		s.tip[0] = GOT(wire_exec_state)->tip[0];
		close(frame_fd);
		expect(b->conn, WIRE_DONE);
	} while (s.tip[0] < 6);
	CHECK(HEAD->ref == 9 && s.head.ref == 1 && s.pid > 1 && s.group == s.pid && !s.tty);
	CHECK(s.tip[0] == 6 && !s.from[0] && !s.tip[1]);
	CHECK((s.open & (WIRE_OPEN_OUT | WIRE_OPEN_ERR)) == (WIRE_OPEN_OUT | WIRE_OPEN_ERR));
	CHECK(!(s.open & WIRE_OPEN_CHANNEL) && s.inode[0] && s.inode[0] != s.inode[1]);
}

static struct wire_exec_state imported(uint32_t ref)
{
	return (struct wire_exec_state){ .head = head(WIRE_EXEC_STATE, ref),
					 .pid = 4000000,
					 .group = 4000000,
					 .from = { 5 },
					 .tip = { 8 },
					 .limit = { 4096, 4096, 4096 },
					 .room = { 10 },
					 .accepted = { 4 },
					 .consumed = { 4 } };
}

static void an_imported_exec_continues_at_its_offsets(struct box *b)
{
	struct wire_exec_state s = imported(3);
	int fd = memfd_create("content", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, "xyz", 3) == 3);
	send_frame(b->conn, &s, sizeof(s), NULL, 0, fd);
	expect(b->conn, WIRE_DONE);
	send_credit(b->conn, WIRE_ATTACH, 3, 0, 0, 100, 0);
	expect(b->conn, WIRE_ATTACHED);
	CHECK(GOT(wire_attached)->from == 5 && GOT(wire_attached)->tip == 8);
	expect(b->conn, WIRE_OUTPUT);
	CHECK(GOT(wire_output)->offset == 5 &&
	      !memcmp(frame_bytes + sizeof(struct wire_output), "xyz", 3));
	send_frame(b->conn, &s, sizeof(s), NULL, 0, fd);
	expect_error(b->conn, ERR_CONFLICT); /* there is such an exec */
	close(fd);
}

static void send_two(int conn, const void *body, size_t n, int first, int second)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .head = { CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { (void *)body, n };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), (int[]){ first, second }, 2 * sizeof(int));
	CHECK(sendmsg(conn, &m, MSG_NOSIGNAL) == (ssize_t)n);
}

static int send_terminal(struct box *b, uint32_t number)
{
	const struct wire_terminal t = { .head = head(WIRE_TERMINAL, 4), .number = number };

	send_frame(b->conn, &t, sizeof(t), NULL, 0, -1);
	expect(b->conn, WIRE_FD);
	return frame_fd;
}

static void expect_output(struct box *b)
{
	do
		receive(b->conn);
	while (HEAD->type == WIRE_STDIN_WINDOW);
	CHECK(HEAD->type == WIRE_OUTPUT);
}

static void an_imported_exec_has_its_terminal(struct box *b)
{
	struct wire_exec_state s = imported(3);
	struct wire_terminal wrong = { .head = head(WIRE_TERMINAL, 4), .number = 64 };
	int content = memfd_create("content", MFD_CLOEXEC), master = send_terminal(b, 5), slave;
	unsigned number = 0;

	CHECK(ioctl(master, TIOCGPTN, &number) == 0 && number == 5);
	CHECK(content >= 0 && write(content, "xyz", 3) == 3);
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	s.tty = 6;
	s.open = WIRE_OPEN_OUT | WIRE_OPEN_STDIN;
	send_two(b->conn, &s, sizeof(s), content, master);
	expect(b->conn, WIRE_DONE);
	send_credit(b->conn, WIRE_ATTACH, 3, 0, 0, 100, 0);
	expect(b->conn, WIRE_ATTACHED);
	expect_output(b); /* of the file */
	CHECK(slave >= 0 && write(slave, "abc", 3) == 3);
	expect_output(b);
	CHECK(GOT(wire_output)->offset == 8 &&
	      !memcmp(frame_bytes + sizeof(struct wire_output), "abc", 3));
	send_frame(b->conn, &wrong, sizeof(wrong), NULL, 0, -1);
	expect_error(b->conn, ERR_INVALID);
	close(slave);
	close(master);
	close(content);
}

static void states_out_of_their_range_are_refused(struct box *b)
{
	struct wire_exec_state bad[16];
	unsigned n = 0;
	int fd = memfd_create("content", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, "xyz", 3) == 3);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		bad[i] = imported(i + 1);
	bad[n++].open = 16;
	bad[n++].open = WIRE_OPEN_OUT; /* without its descriptor */
	bad[n++].ending = 4;
	bad[n++].lone = 2;
	bad[n++].tty = 1; /* without its master */
	bad[n++].pid = 1;
	bad[n++].group = -1;
	bad[n++].from[0] = 9;
	bad[n++].tip[1] = UINT64_MAX;
	bad[n++].tip[2] = UINT64_C(1) << 40;
	bad[n++].age_us = UINT64_MAX;
	bad[n++].left_us = UINT64_MAX;
	bad[n++].buffered[0] = 1 << 20;
	bad[n++].consumed[0] = 5;
	bad[n++].room[0] = 3;
	bad[n++].room[1] = UINT64_MAX;
	for (unsigned i = 0; i < n; i++) {
		send_frame(b->conn, &bad[i], sizeof(bad[i]), NULL, 0, fd);
		expect_error(b->conn, ERR_INVALID);
	}
	bad[0] = imported(20);
	bad[0].tip[0] = 9; /* the file has less */
	send_frame(b->conn, &bad[0], sizeof(bad[0]), NULL, 0, fd);
	expect_error(b->conn, ERR_INVALID);
	CHECK(ask_status(b->conn).execs == 0);
	close(fd);
}

static void an_idle_init_uses_little_memory(struct box *b)
{
	long page_kib = sysconf(_SC_PAGESIZE) / 1024;

	ask_status(b->conn);
	printf("# of an idle init: VmRSS %ld KiB, RssAnon %ld, VmPTE %ld\n", init_kib(b, "VmRSS"),
	       init_kib(b, "RssAnon"), init_kib(b, "VmPTE"));
	/* Fifteen pages are the program itself, which all boxes share. */
	CHECK(init_kib(b, "VmRSS") <= 84);
	/* Private memory: stack, variables and the received frame, all in one page; two if the
	 * compiler needs more stack. Page tables: one at each level for the image, and none for
	 * distant mappings. */
	CHECK(init_kib(b, "RssAnon") <= 2 * page_kib);
	CHECK(init_kib(b, "VmPTE") <= 3 * page_kib);
}

static long boot_id_bytes(void)
{
	struct stat st;

	return stat(in_dir("boot"), &st) < 0 ? -1 : (long)st.st_size;
}

/* The file exists from an earlier init; the test waits until this one writes it. */
static void the_boot_id_is_written_with_the_first_exec(struct box *b)
{
	struct wire_start st = starting(1);

	ask_status(b->conn);
	CHECK(!truncate(in_dir("boot"), 0));
	ask_status(b->conn);
	CHECK(boot_id_bytes() == 0);
	shell(b->conn, &st, "true");
	hear(b->conn);
	CHECK(boot_id_bytes() == 37);
}

static void a_file_worker_reads_the_boot_id(struct box *b)
{
	ask_status(b->conn);
	CHECK(!truncate(in_dir("boot"), 0));
	close(open_worker(b));
	CHECK(boot_id_bytes() == 37);
}

/* Init works without the unmapped memory: an exec starts, a file worker answers. */
static void an_init_maps_its_image_and_nothing_else(struct box *b)
{
	struct wire_start st = starting(1);
	unsigned long from, to, first = 0, last = 0;
	char path[64], line[256], access[8];
	int n = 0;
	FILE *f;

	ask_status(b->conn);
	snprintf(path, sizeof(path), "/proc/%d/maps", b->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line,
			   "[vsyscall]")) /* x86_64: a mapping of the kernel, in no table of the test */
			continue;
		if (sscanf(line, "%lx-%lx %7s", &from, &to, access) != 3 || strchr(line, '['))
			fail("mapped: %s", line);
		first = n++ ? first : from;
		last = to;
	}
	if (f)
		fclose(f);
	if (n > 0) { /* only root may read this of a process that is not dumpable */
		CHECK(n >= 2 && last - first < 4 << 20);
		CHECK(strncmp(access, "rw-p", 4) == 0);
	}
	CHECK(init_kib(b, "VmStk") == 0);
	shell(b->conn, &st, "exit 7");
	CHECK(hear(b->conn)->end.status == 7);
	close(open_worker(b));
}

/* clang-format off */
static const struct test tests[] = {
	TEST(init_exits_when_its_first_connection_closes_before_persist),
	TEST(after_persist_the_first_connection_is_a_normal_one),
	TEST_DIRECT(join_cgroups_writes_0_to_each_descriptor),
	TEST_DIRECT(a_failed_join_cgroups_ends_init),
	TEST(join_cgroups_after_the_first_start_is_rejected),
	TEST(only_the_first_connection_may_persist_or_join_cgroups),
	TEST(kill_on_close_ends_init_with_its_connection),
	TEST(the_last_exec_ends_the_box_and_its_output_is_read_afterwards),
	TEST(a_slow_reader_gets_all_output_of_the_last_exec),
	TEST(the_end_of_the_last_exec_waits_for_credit),
	TEST(frames_after_the_last_exec_are_ignored),
	TEST(disconnecting_from_the_last_exec_ends_the_box),
	TEST(the_last_exec_needs_an_attached_reader),
	TEST(a_last_exec_that_cannot_start_ends_the_box),
	TEST_PID1(stop_ends_every_exec_and_the_box_stays_usable),
	TEST_PID1(stop_without_execs_is_answered_at_once),
	TEST_PID1(no_exec_starts_while_stop_is_in_progress),
	TEST(an_init_that_is_not_pid_1_ends_its_own_processes_and_no_other),
	TEST(an_exec_runs_and_its_exit_status_is_returned),
	TEST(output_has_offsets_and_streams),
	TEST(directory_environment_and_path_are_those_of_the_request),
	TEST(strings_may_come_in_a_memfd),
	TEST(too_many_strings_fail_the_exec_and_not_the_box),
	TEST(counts_that_do_not_match_are_refused),
	TEST(an_exec_that_cannot_start_reports_step_and_errno),
	TEST(a_child_inherits_no_state_of_init),
	TEST(the_requested_file_size_limit_is_set),
	TEST(a_duplicate_ref_is_a_conflict),
	TEST(steps_can_be_skipped_only_in_a_test_build),
	TEST_DIRECT(two_hundred_execs_leave_no_zombie),
	TEST_PID1_DIRECT(an_expired_lease_stops_all_processes_and_the_next_one_continues_them),
	TEST_PID1_DIRECT(a_process_that_was_stopped_before_the_lease_expired_stays_stopped),
	TEST_PID1_DIRECT(nothing_starts_after_the_lease_has_expired),
	TEST(an_init_that_is_not_pid_1_refuses_a_lease),
	TEST(the_oldest_finished_exec_is_evicted_and_a_running_one_never),
	TEST(the_list_has_every_exec),
	TEST(the_list_shows_terminals_and_stdin),
	TEST(a_second_connection_resumes_at_a_given_offset),
	TEST(two_readers_of_a_running_exec_both_get_all_output),
	TEST(without_credit_the_exec_waits_and_init_uses_little_memory),
	TEST(exit_is_sent_after_the_credit_for_the_last_byte),
	TEST(a_detached_reader_does_not_block_the_exec_and_gets_the_exit),
	TEST(a_detached_reader_may_attach_again),
	TEST(a_detached_start_sends_only_the_exit),
	TEST(a_client_may_attach_for_the_exit_only),
	TEST_DIRECT(a_reader_that_never_reads_uses_no_memory_of_init),
	TEST(without_a_reader_the_oldest_output_is_dropped),
	TEST(a_background_process_holding_the_pipe_is_cut_off_after_grace),
	TEST(stdin_and_its_end_reach_the_exec),
	TEST(the_stdin_window_passes_a_megabyte),
	TEST(stdin_over_the_window_ends_only_that_connection),
	TEST(stdin_sent_before_a_disconnect_is_read_before_the_next_request),
	TEST(stdin_for_an_exec_that_closed_it_is_dropped),
	TEST(the_channel_is_descriptor_3_in_both_directions),
	TEST(a_megabyte_passes_the_channel_with_window_and_credit),
	TEST(output_printed_before_a_channel_message_is_sent_before_it),
	TEST(the_channel_waits_while_output_has_no_credit),
	TEST(a_terminal_has_no_channel),
	TEST(a_channel_held_by_another_process_is_closed_after_the_grace_period),
	TEST(the_channel_resumes_by_offset_and_is_listed),
	TEST(a_terminal_echoes_resizes_and_ends),
	TEST(the_last_output_on_a_terminal_is_not_lost),
	TEST(control_c_reaches_the_terminals_foreground),
	TEST(a_signal_reaches_the_whole_group),
	TEST(a_leader_only_exec_is_read_to_the_end_of_its_streams),
	TEST(a_leader_only_exec_without_output_reports_its_pid),
	TEST(a_signal_to_a_leader_only_exec_reaches_only_the_leader),
	TEST(sigkill_ends_reading_pipes_that_others_hold_of_a_leader_only_exec),
	TEST(the_wall_limit_of_a_leader_only_exec_includes_holders_of_its_pipes),
	TEST(the_wall_limit_kills_the_process_group),
	TEST(a_disconnect_does_not_end_the_exec),
	TEST(an_invalid_frame_ends_only_its_connection),
	TEST(unexpected_descriptors_end_the_connection),
	TEST(the_65th_client_is_rejected),
	TEST(connect_reaches_a_port_inside),
	TEST(listen_opens_a_port_inside),
	TEST(a_port_is_free_again_when_its_listener_is_closed),
	TEST(a_connection_ends_in_each_direction_by_itself),
#ifdef BOXED_MUX
	TEST(more_connections_than_streams_are_errors_and_not_the_end),
#endif
	TEST_DIRECT(sha256_agrees_with_its_standard),
	TEST(during_a_hold_other_connections_wait),
	TEST_DIRECT(an_export_has_the_output_and_the_ends_of_a_held_exec),
	TEST(an_imported_exec_continues_at_its_offsets),
	TEST_DIRECT(an_imported_exec_has_its_terminal), /* forks with memory are of containers only */
	TEST(states_out_of_their_range_are_refused),
	TEST_DIRECT(an_idle_init_uses_little_memory),
	TEST_DIRECT(an_init_maps_its_image_and_nothing_else),
	TEST(the_boot_id_is_written_with_the_first_exec),
	TEST(a_file_worker_reads_the_boot_id),
};
/* clang-format on */

int main(int argc, char **argv)
{
	return run_tests(tests, ARRAY_LEN(tests), argc, argv);
}
