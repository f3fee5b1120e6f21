/* tierbox.c - isolation tiers over the wire: facts, rejections, and boxes of the tier `plain`, which
 * test builds have: tests/system/tiers.sh. */
#include "mux/packet.h"
#include "wirebox.h"

#include <dirent.h>

#define TIER(n) wire_tier_flags(WIRE_TIER_##n)

static struct wire_tier_facts facts[WIRE_TIER_COUNT]; /* by tier; rank 0: not listed */

/* Opens a keeper; skips the test unless this is a test build. */
#define OPEN_PLAIN(k)                                                                              \
	do {                                                                                       \
		NEED_ROOT();                                                                       \
		CHECK(open_keeper(k, 1) == 0);                                                     \
		CHECK(learn_tiers((k)->fd, 0, facts) > 0);                                         \
		if (!facts[WIRE_TIER_PLAIN].rank) {                                                \
			keeper_sync_close(k);                                                      \
			SKIP("the tier plain is in test builds only");                             \
		}                                                                                  \
	} while (0)

static int make_plain(struct keeper_sync *k, unsigned flags, struct made *out)
{
	struct wire_create w = wish(TIER(PLAIN) | flags, 1);

	return make_as(k->fd, &w, out);
}

/* ---- processes of a box, from outside ---- */

static int parent_and_name(int pid, char name[32])
{
	char path[40], text[256] = "", *open, *close_;
	int parent = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fgets(text, sizeof(text), f) && (open = strchr(text, '(')) != NULL &&
	    (close_ = strrchr(text, ')')) != NULL) {
		snprintf(name, 32, "%.*s", (int)(close_ - open - 1), open + 1);
		if (sscanf(close_ + 1, " %*c %d", &parent) != 1)
			parent = -1;
	}
	fclose(f);
	return parent;
}

/* The child of a process with this name; -1: none. */
static int child_named(int of, const char *want)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	char name[32];
	int found = -1;

	while (d && found < 0 && (de = readdir(d)) != NULL) {
		int pid = atoi(de->d_name);

		if (pid > 1 && parent_and_name(pid, name) == of && strcmp(name, want) == 0)
			found = pid;
	}
	if (d)
		closedir(d);
	return found;
}

/* The same for a process that may not have started yet. */
static int await_child(int of, const char *want)
{
	int pid = -1;

	for (int i = 0; i < 2000 && (pid = child_named(of, want)) < 0; i++)
		poll(NULL, 0, 10);
	return pid;
}

/* A file of a cgroup of the box, v1 or v2: the first line. */
static int cgroup_line(const struct made *m, const char *controller, const char *v1, const char *v2,
		       char out[64])
{
	char path[600], text[400], *at;
	FILE *f;

	out[0] = 0;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", m->about.init_pid);
	f = fopen(path, "r");
	while (f && !out[0] && fgets(text, sizeof(text), f)) {
		FILE *in;

		text[strcspn(text, "\n")] = 0;
		at = strchr(text, ':');
		at = at ? strchr(at + 1, ':') : NULL;
		if (!at)
			continue;
		*at++ = 0;
		if (strstr(text, controller))
			snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%s/%s", controller, at, v1);
		else if (!strncmp(text, "0:", 2))
			snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", at, v2);
		else
			continue;
		in = fopen(path, "r");
		if (in && !fgets(out, 64, in))
			out[0] = 0;
		if (in)
			fclose(in);
		out[strcspn(out, "\n")] = 0;
	}
	if (f)
		fclose(f);
	return out[0] ? 0 : -1;
}

/* ---- facts and rejections ---- */

TEST(tiers_lists_every_tier_with_its_state_or_a_reason)
{
	struct frame wrong = sock_head(WIRE_TIERS, 9);
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0);
	for (int again = 0; again < 3; again++) {
		CHECK(learn_tiers(k.fd, again == 2 ? WIRE_TIERS_AGAIN : 0, facts) > 0);
		CHECK_INT(facts[WIRE_TIER_CONTAINER].state, WIRE_TIER_OFFERED);
		CHECK_INT(facts[WIRE_TIER_CONTAINER].rank, 2);
		for (unsigned i = 0; i < WIRE_TIER_COUNT; i++)
			CHECK(!facts[i].rank || facts[i].state == WIRE_TIER_OFFERED ||
			      facts[i].reason[0]);
	}
	wrong.flags = 0x80;
	CHECK(is_error(ask(k.fd, &wrong, sizeof(wrong), NULL, 0), ERR_INVALID, "no flag"));
	keeper_sync_close(&k);
}

TEST(a_tier_that_is_unknown_or_not_offered_is_rejected_with_the_reason)
{
	struct keeper_sync k;

	NEED_ROOT();
	CHECK(open_keeper(&k, 1) == 0 && learn_tiers(k.fd, 0, facts) > 0);
	for (unsigned i = WIRE_TIER_COUNT; i < 16; i++) {
		struct wire_create w = wish(wire_tier_flags(i), i);

		CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_DENIED, "not in this build"));
	}
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++) {
		struct wire_create w = wish(wire_tier_flags(i), i);

		if (i == WIRE_TIER_WASM)
			CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_INVALID,
				       "its boxes are containers"));
		else if (facts[i].rank && facts[i].state != WIRE_TIER_OFFERED)
			CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_DENIED,
				       facts[i].reason));
	}
	keeper_sync_close(&k);
}

/* ---- boxes ---- */

TEST(a_plain_box_runs_programs_and_serves_files_through_the_channel)
{
	struct wire_id open = { .head = sock_head(WIRE_OPEN, 3) };
	struct frame stat = sock_head(WIRE_STAT, 4);
	struct keeper_sync k;
	struct made m, second;
	int files;

	OPEN_PLAIN(&k);
	CHECK(make_plain(&k, WIRE_CREATE_COLD, &m) == 0);
	CHECK_INT(m.about.tier, WIRE_TIER_PLAIN);
	CHECK_INT(sh(&m, "echo $((6 * 7)); id -u; exit 3"), 3);
	CHECK_STR(said, "42\n1000\n");
	files = worker(&m);
	CHECK(files >= 0);
	close(files);
	memcpy(open.id, m.id, sizeof(open.id));
	CHECK_INT(ask(k.fd, &open, sizeof(open), NULL, 0), WIRE_BOX);
	CHECK_INT(GOT(wire_box)->tier, WIRE_TIER_PLAIN);
	second = m;
	second.init = got_fd;
	CHECK_INT(ask(second.init, &stat, sizeof(stat), NULL, 0), WIRE_STATUS);
	CHECK_INT(sh(&second, "echo second"), 0);
	CHECK_STR(said, "second\n");
	close(second.init);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(a_start_that_came_with_the_create_runs_after_the_guest_was_resumed)
{
	struct wire_create w = wish(TIER(PLAIN) | WIRE_CREATE_COLD | WIRE_CREATE_AWAIT, 41);
	struct wire_start st = { .head = sock_head(WIRE_START, 77),
				 .argc = 2,
				 .grace_ms = 100,
				 .tail_bytes = 18,
				 .credit = { UINT64_MAX, UINT64_MAX } };
	struct keeper_sync k;
	char request[2048];
	auto_fd int init = -1;

	OPEN_PLAIN(&k);
	st.head.flags = WIRE_START_ONE_SHOT;
	memcpy(request, &w, sizeof(w));
	memcpy(request + sizeof(w), &st, sizeof(st));
	memcpy(request + sizeof(w) + sizeof(st), "/\0/bin/echo\0there", 18);
	CHECK_INT(ask(k.fd, request, sizeof(w) + sizeof(st) + 18, NULL, 0), WIRE_BOX);
	init = got_fd;
	CHECK_INT(receive(init), WIRE_OUTPUT);
	CHECK_STR(bytes + sizeof(struct wire_output), "there\n");
	CHECK_INT(receive(init), WIRE_EXIT);
	CHECK_INT(receive(k.fd), WIRE_DESTROYED);
	CHECK_INT(GOT(frame)->ref, 41);
	keeper_sync_close(&k);
}

TEST(the_cgroup_of_a_plain_box_has_the_limits_and_what_the_engine_needs)
{
	struct wire_create w = wish(TIER(PLAIN) | WIRE_CREATE_COLD, 1);
	struct wire_limit l = { .head = sock_head(WIRE_LIMIT, 3) };
	struct keeper_sync k;
	char line[64];
	struct made m;

	OPEN_PLAIN(&k);
	w.limits.mem_bytes = 256 << 20;
	w.limits.pids = 40;
	CHECK(make_as(k.fd, &w, &m) == 0);
	CHECK_INT(m.about.limits.mem_bytes, 256 << 20);
	CHECK_INT(m.about.limits.pids, 40);
	CHECK_INT(cgroup_line(&m, "memory", "memory.limit_in_bytes", "memory.max", line), 0);
	CHECK_INT(atoll(line), (256 << 20) + (4 << 20));
	CHECK_INT(cgroup_line(&m, "pids", "pids.max", "pids.max", line), 0);
	CHECK_INT(atoll(line), 42);
	l.limits = box_default_limits();
	l.limits.cpu_ms = WIRE_DEFAULT;
	l.limits.pids = 50;
	memcpy(l.id, m.id, sizeof(l.id));
	CHECK_INT(ask(k.fd, &l, sizeof(l), NULL, 0), WIRE_BOX);
	CHECK_INT(cgroup_line(&m, "pids", "pids.max", "pids.max", line), 0);
	CHECK_INT(atoll(line), 52);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(the_next_keeper_adopts_a_plain_box)
{
	struct wire_id open = { .head = sock_head(WIRE_OPEN, 3) };
	struct keeper_sync k;
	struct made m;

	OPEN_PLAIN(&k);
	CHECK(make_plain(&k, WIRE_CREATE_COLD, &m) == 0);
	CHECK_INT(sh(&m, "echo before >f"), 0);
	CHECK(end_keeper(&k, SIGKILL) == 0);
	CHECK_INT(sh(&m, "cat f"), 0);
	CHECK_STR(said, "before\n");
	CHECK(next_keeper(&k) == 0);
	memcpy(open.id, m.id, sizeof(open.id));
	CHECK_INT(ask(k.fd, &open, sizeof(open), NULL, 0), WIRE_BOX);
	close(got_fd);
	CHECK_INT(GOT(wire_box)->tier, WIRE_TIER_PLAIN);
	CHECK_INT(sh(&m, "cat f"), 0);
	CHECK_STR(said, "before\n");
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(a_box_that_no_client_has_ends_with_its_connection)
{
	struct wire_create w = wish(TIER(PLAIN) | WIRE_CREATE_COLD | WIRE_CREATE_AWAIT, 5);
	struct keeper_sync k;

	OPEN_PLAIN(&k);
	CHECK_INT(ask(k.fd, &w, sizeof(w), NULL, 0), WIRE_BOX);
	close(got_fd);
	CHECK_INT(receive(k.fd), WIRE_DESTROYED);
	keeper_sync_close(&k);
}

/* The cgroup of the keeper in which all its boxes are, of this box: "/atoll-1234abcd/". */
static int keepers_cgroup(const struct made *m, char out[64])
{
	char path[40], text[400], *at, *end;
	FILE *f;

	out[0] = 0;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", m->about.init_pid);
	f = fopen(path, "r");
	while (f && !out[0] && fgets(text, sizeof(text), f)) {
		at = strstr(text, "/atoll-");
		end = at ? strchr(at + 1, '/') : NULL;
		if (end)
			snprintf(out, 64, "%.*s", (int)(end - at + 1), at);
	}
	if (f)
		fclose(f);
	return out[0] ? 0 : -1;
}

static int is_in_cgroup(int pid, const char *parent)
{
	char path[40], text[400];
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	f = fopen(path, "r");
	while (f && !found && fgets(text, sizeof(text), f))
		found = strstr(text, parent) != NULL;
	if (f)
		fclose(f);
	return found;
}

static int muxes_in(const char *parent)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	char name[32];
	int n = 0;

	while (d && (de = readdir(d)) != NULL) {
		int pid = atoi(de->d_name);

		if (pid > 1 && parent_and_name(pid, name) >= 0 && strcmp(name, "atoll-mux") == 0)
			n += is_in_cgroup(pid, parent);
	}
	if (d)
		closedir(d);
	return n;
}

TEST(boxes_that_a_killed_keeper_was_creating_end)
{
	struct wire_create w = wish(TIER(PLAIN) | WIRE_CREATE_COLD, 8);
	struct wire_box page[8];
	struct keeper_sync k;
	char parent[64];
	struct made m;
	struct err e;
	int left = 1;

	OPEN_PLAIN(&k);
	CHECK(make_plain(&k, WIRE_CREATE_COLD, &m) == 0);
	CHECK_INT(keepers_cgroup(&m, parent), 0);
	CHECK(muxes_in(parent) >= 1);
	CHECK(end(k.fd, &m) == 0);
	for (unsigned pause_ms = 0; pause_ms < 12; pause_ms += 3) {
		struct frame info = sock_head(WIRE_INFO, 7);
		pid_t keeper;

		CHECK_INT(ask(k.fd, &info, sizeof(info), NULL, 0), WIRE_INFO_REPLY);
		keeper = (pid_t)GOT(wire_info)->pid;
		for (int i = 0; i < 3; i++)
			CHECK(sock_send(k.fd, &w, sizeof(w), NULL, 0, NULL, 0, &e) == 0);
		poll(NULL, 0, (int)pause_ms);
		kill(keeper, SIGKILL);
		keeper_sync_close(&k);
		CHECK(next_keeper(&k) == 0);
	}
	for (int i = 0; i < 2000 && left; i++) {
		left = keeper_sync_boxes(&k, "", page, 8, &e) + muxes_in(parent);
		poll(NULL, 0, left ? 10 : 0);
	}
	CHECK_INT(left, 0);
	keeper_sync_close(&k);
}

/* Kills one of the three processes of Atoll in the box while a program runs. */
static int ends_without(struct keeper_sync *k, const char *victim)
{
	struct wire_create w = wish(TIER(PLAIN) | WIRE_CREATE_COLD | WIRE_CREATE_AWAIT, 6);
	auto_fd int init = -1, program = -1;
	int mux, guest, inner, pid, sleeper;
	struct made m;

	if (make_as(k->fd, &w, &m) < 0)
		return -1;
	init = m.init;
	if (sh(&m, "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo started") != 0)
		return -1;
	mux = m.about.init_pid;
	guest = child_named(mux, "atoll-guest");
	inner = child_named(guest, "atoll-init");
	sleeper = await_child(inner, "sleep");
	program = (int)syscall(SYS_pidfd_open, sleeper, 0);
	if (guest < 0 || inner < 0 || sleeper < 0 || program < 0)
		return -1;
	pid = strcmp(victim, "mux") == 0 ? mux : strcmp(victim, "guest") == 0 ? guest : inner;
	kill(pid, SIGKILL);
	if (receive(k->fd) != WIRE_DESTROYED || GOT(frame)->ref != 6)
		return -1;
	if (pid == guest && GOT(wire_counters)->engine_status != PACKET_EXIT + PACKET_ENGINE_DIED)
		return -1;
	/* DESTROYED is sent after the last process has ended. */
	return poll(&(struct pollfd){ .fd = program, .events = POLLIN }, 1, 0) == 1 ? 0 : -1;
}

TEST(a_box_ends_completely_when_mux_guest_stub_or_init_is_killed)
{
	struct keeper_sync k;

	OPEN_PLAIN(&k);
	CHECK_INT(ends_without(&k, "mux"), 0);
	CHECK_INT(ends_without(&k, "guest"), 0);
	CHECK_INT(ends_without(&k, "init"), 0);
	keeper_sync_close(&k);
}

/* ---- the pool ---- */

static int pooled(struct keeper_sync *k)
{
	struct frame info = sock_head(WIRE_INFO, 7);

	return ask(k->fd, &info, sizeof(info), NULL, 0) == WIRE_INFO_REPLY
		       ? (int)GOT(wire_info)->pooled
		       : -1;
}

TEST(a_tier_in_use_has_a_pool_whose_boxes_get_their_limits_when_they_are_taken)
{
	struct wire_pool_size fill = { .head = sock_head(WIRE_POOL_SIZE, 3), .depth = 4 };
	struct wire_create w = wish(TIER(PLAIN), 1);
	uint64_t before_ns;
	struct keeper_sync k;
	char line[64];
	struct made m;

	OPEN_PLAIN(&k);
	CHECK_INT(ask(k.fd, &fill, sizeof(fill), NULL, 0), WIRE_INFO_REPLY);
	for (int i = 0; i < 2; i++) {
		CHECK(make_plain(&k, 0, &m) == 0);
		CHECK(end(k.fd, &m) == 0);
	}
	for (int i = 0; i < 2000 && pooled(&k) < 6; i++) /* four containers, two of the tier */
		poll(NULL, 0, 10);
	CHECK_INT(pooled(&k), 6);
	before_ns = clock_ns(CLOCK_REALTIME);
	w.limits.pids = 33;
	CHECK(make_as(k.fd, &w, &m) == 0);
	CHECK(m.about.created_ns < before_ns);
	CHECK_INT(m.about.tier, WIRE_TIER_PLAIN);
	CHECK_INT(m.about.limits.pids, 33);
	CHECK_INT(cgroup_line(&m, "pids", "pids.max", "pids.max", line), 0);
	CHECK_INT(atoll(line), 35);
	CHECK_INT(sh(&m, "echo pooled"), 0);
	CHECK_STR(said, "pooled\n");
	CHECK(end(k.fd, &m) == 0);
	fill.depth = 0;
	CHECK_INT(ask(k.fd, &fill, sizeof(fill), NULL, 0), WIRE_INFO_REPLY);
	keeper_sync_close(&k);
}

TEST(no_box_of_any_tier_is_left)
{
	leave_nothing();
}
