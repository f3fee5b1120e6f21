/* vmbox.c - boxes of the tier microvm over the wire: tests/microvm.sh, which has prepared the tier in the
 * state folder ATOLL_VM_STATE. Emulated guests are slow: times are printed and compared with each other. */
#include "rootbox.h"

#include "base/clock.h"
#include <time.h>

__attribute__((constructor(65535))) static void vm_set_up(void)
{
	const char *state = getenv("ATOLL_VM_STATE");

	if (state) {
		setenv("ATOLL_STATE", state, 1);
		snprintf(state_dir, sizeof(state_dir), "%.60s", state);
	}
}

static struct wire_create vm_wish(uint64_t mib, uint32_t ref)
{
	struct wire_create w = wish(wire_tier_flags(WIRE_TIER_MICROVM) | WIRE_CREATE_COLD, ref);

	w.limits.mem_bytes = mib << 20;
	w.limits.disk_bytes = 32 << 20;
	return w;
}

static int vm_make(struct keeper_sync *k, uint64_t mib, struct made *out)
{
	struct wire_create w = vm_wish(mib, 1);

	if (make_as(k->fd, &w, out) == 0)
		return 0;
	printf("# %s\n", GOT(frame)->type == WIRE_ERROR ? GOT(wire_error)->msg : "no box");
	return -1;
}

static double vm_ms(uint64_t since_ns)
{
	return (double)(now_ns() - since_ns) / 1e6;
}

static int vm_child_of(int pid)
{
	char path[64], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "r");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = 0;
	if (f)
		fclose(f);
	return atoi(text);
}

/* Memory of QEMU that it shares with no other process. */
static void vm_print_memory(const struct made *m)
{
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", vm_child_of(m->about.init_pid));
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Private_Dirty:", 14))
			printf("# %s", line);
	if (f)
		fclose(f);
}

#define OPEN_VM(k)                                                                                 \
	do {                                                                                       \
		NEED_ROOT();                                                                       \
		if (!getenv("ATOLL_VM_STATE"))                                                     \
			SKIP("ATOLL_VM_STATE is not set: make microvm");                           \
		CHECK(open_keeper(k, 1) == 0);                                                     \
	} while (0)

TEST(a_guest_runs_programs_and_serves_files)
{
	struct frame stat = sock_head(WIRE_STAT, 4);
	struct keeper_sync k;
	uint64_t begin;
	struct made m;
	int files;

	OPEN_VM(&k);
	begin = now_ns();
	CHECK(vm_make(&k, 256, &m) == 0);
	printf("# created in %.0f ms\n", vm_ms(begin));
	CHECK_INT(m.about.tier, WIRE_TIER_MICROVM);
	begin = now_ns();
	CHECK_INT(ask(m.init, &stat, sizeof(stat), NULL, 0), WIRE_STATUS);
	printf("# STAT in %.1f ms\n", vm_ms(begin));
	vm_print_memory(&m);
	begin = now_ns();
	CHECK_INT(sh(&m, "echo $((6 * 7)); id -u; exit 3"), 3);
	printf("# shell in %.0f ms\n", vm_ms(begin));
	CHECK_STR(said, "42\n1000\n");
	files = worker(&m);
	CHECK(files >= 0);
	close(files);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

/* ---- clones ---- */

enum { CLONES = 20 };

static double vm_real_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* How far the clock of the guest is behind that of the host, in seconds: at most this much, because a reading
 * arrives after it was made. The fastest of some readings counts. */
static double vm_clock_behind(const struct made *m)
{
	static const char script[] =
		"import time\nfor i in range(20): print(repr(time.time()), flush=True); "
		"time.sleep(.02)";
	struct wire_start st = { .head = sock_head(WIRE_START, 77),
				 .argc = 4,
				 .credit = { UINT64_MAX, UINT64_MAX } };
	char tail[400];
	double least = 1e9;
	struct err e;
	int type;

	st.tail_bytes = (uint32_t)snprintf(tail, sizeof(tail), "/%cpython3%c-S%c-c%c%s%c", 0, 0, 0,
					   0, script, 0);
	if (sock_send(m->init, &st, sizeof(st), tail, st.tail_bytes, NULL, 0, &e) < 0)
		return 1e9;
	while ((type = receive(m->init)) != WIRE_EXIT && type) {
		double now = vm_real_s();
		const char *at = bytes + sizeof(struct wire_output);

		for (; type == WIRE_OUTPUT && *at; at = strchr(at, '\n') + 1) {
			double behind = now - strtod(at, NULL);

			least = behind < least ? behind : least;
			if (!strchr(at, '\n'))
				break;
		}
	}
	return least;
}

/* The template of these tests has a clock that is one hour behind (tests/stress/microvm.sh). */
TEST(clones_of_an_old_template_share_no_random_bytes_no_ids_and_no_clock_error)
{
	char random[CLONES][80], boot[CLONES][40], hash[CLONES][32];
	double behind, least = 1e9, most = -1e9;
	struct keeper_sync k;
	uint64_t begin;
	struct made m;

	OPEN_VM(&k);
	for (unsigned i = 0; i < CLONES; i++) {
		begin = now_ns();
		CHECK(vm_make(&k, 256, &m) == 0);
		printf("# clone %u in %.0f ms\n", i, vm_ms(begin));
		CHECK_INT(sh(&m, "od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; echo; "
				 "cat /proc/sys/kernel/random/boot_id; "
				 "python3 -S -c 'print(hash(\"a\"))' 2>/dev/null"),
			  0);
		CHECK(sscanf(said, "%79s %39s %31s", random[i], boot[i], hash[i]) == 3);
		CHECK_INT(strlen(random[i]), 64);
		behind = vm_clock_behind(&m);
		least = behind < least ? behind : least;
		most = behind > most ? behind : most;
		for (unsigned j = 0; j < i; j++) {
			CHECK(strcmp(random[i], random[j]) != 0);
			CHECK(strcmp(boot[i], boot[j]) != 0);
			CHECK(strcmp(hash[i], hash[j]) != 0);
		}
		CHECK(end(k.fd, &m) == 0);
	}
	printf("# clocks: %.1f to %.1f ms behind, with the way of the reading\n", least * 1e3,
	       most * 1e3);
	/* Behind by more may be the way of the reading; ahead it cannot be. `atoll prove microvm` has the exact bounds. */
	CHECK(least > -0.05 && most < 30);
	keeper_sync_close(&k);
}

TEST(clones_do_not_see_files_of_each_other)
{
	struct keeper_sync k;
	struct made a, b;

	OPEN_VM(&k);
	CHECK(vm_make(&k, 256, &a) == 0);
	CHECK(vm_make(&k, 256, &b) == 0);
	CHECK_INT(sh(&a, "echo mine >f"), 0);
	CHECK(sh(&b, "cat f") != 0);
	CHECK(end(k.fd, &a) == 0);
	CHECK(end(k.fd, &b) == 0);
	keeper_sync_close(&k);
}

/* ---- layers, roots, secrets ---- */

static struct wire_create vm_on(const struct wire_create *on)
{
	struct wire_create w = vm_wish(256, 1);

	memcpy(w.layer, on->layer, sizeof(w.layer));
	w.nlayers = on->nlayers;
	memcpy(w.root, on->root, sizeof(w.root));
	w.head.flags |= on->head.flags;
	return w;
}

static int vm_make_on(struct keeper_sync *k, const struct wire_create *on, struct made *out)
{
	struct wire_create w = vm_on(on);

	return make_as(k->fd, &w, out);
}

/* 1: the image of this layer exists. */
static int vm_has_image(const char *layer)
{
	char path[240];

	snprintf(path, sizeof(path), "%s/layers/image.%s", state_dir, layer);
	return access(path, F_OK) == 0;
}

TEST(a_layer_of_packages_is_a_read_only_disk)
{
	struct wire_create on = { .nlayers = 2 };
	struct wire_layer drop = { .head = sock_head(WIRE_LAYER_DROP, 3) };
	struct keeper_sync k;
	struct made m;

	OPEN_VM(&k);
	CHECK(layer("mkdir -p usr/local/bin opt/packages; printf '#!/bin/sh\necho hi\n' "
		    ">usr/local/bin/hello; chmod 755 usr/local/bin/hello; echo upper >opt/packages/f; "
		    "echo secret >opt/packages/root; chmod 600 opt/packages/root",
		    NULL, on.layer[0]) == 0);
	CHECK(layer("mkdir -p opt/packages; echo lower >opt/packages/f; echo g >opt/packages/g; "
		    "chown -R 1000:1000 opt/packages/g",
		    NULL, on.layer[1]) == 0);
	CHECK(vm_make_on(&k, &on, &m) == 0);
	CHECK_INT(sh(&m,
		     "hello && cat /opt/packages/f /opt/packages/g && echo x >>/opt/packages/g && "
		     "cat /opt/packages/g"),
		  0);
	CHECK_STR(said, "hi\nupper\ng\ng\nx\n");
	CHECK(sh(&m, "cat /opt/packages/root") != 0);
	CHECK(sh(&m, "echo x >/usr/local/bin/hello") != 0);
	CHECK(vm_has_image(on.layer[0]) && vm_has_image(on.layer[1]));
	memcpy(drop.id, on.layer[0], sizeof(drop.id));
	CHECK(is_error(ask(k.fd, &drop, sizeof(drop), NULL, 0), ERR_CONFLICT, "used by box"));
	CHECK(vm_has_image(on.layer[0]));
	CHECK(end(k.fd, &m) == 0);
	CHECK_INT(ask(k.fd, &drop, sizeof(drop), NULL, 0), WIRE_DONE);
	CHECK(!vm_has_image(on.layer[0]));
	/* A box without layers uses the same template. */
	CHECK(vm_make(&k, 256, &m) == 0);
	CHECK(sh(&m, "hello") != 0);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(a_box_of_an_image_has_the_files_of_its_layers_only)
{
	char below[WIRE_LAYER_ID], above[WIRE_LAYER_ID];
	const char *const ids[] = { above, below };
	struct wire_create on = { .nlayers = 0 };
	struct keeper_sync k;
	struct made m;

	OPEN_VM(&k);
	CHECK(image_layer("", below) == 0);
	CHECK(layer("mkdir -p etc srv opaque; echo above >etc/name; mknod srv/gone c 0 0; "
		    "echo b >opaque/b",
		    "opaque", above) == 0);
	for (unsigned merged = 0; merged < 2; merged++) {
		CHECK(make_root(k.fd, merged ? WIRE_ROOT_MERGE : 0, 2, ids, on.root) == 0);
		CHECK(vm_make_on(&k, &on, &m) == 0);
		CHECK_INT(sh(&m,
			     "cat /etc/name; ls /srv /opaque; ls -d /usr/bin/python3 2>/dev/null"),
			  2);
		CHECK_STR(said, "above\n/opaque:\nb\n\n/srv:\nkept\n");
		CHECK_INT(sh(&m, "echo mine >/home/user/f && cat /home/user/f"), 0);
		CHECK(end(k.fd, &m) == 0);
	}
	keeper_sync_close(&k);
}

TEST(a_root_over_base_adds_and_deletes_files_of_usr)
{
	char over[WIRE_LAYER_ID];
	const char *const ids[] = { over };
	struct wire_create on = { .nlayers = 0 };
	struct keeper_sync k;
	struct made m;

	OPEN_VM(&k);
	CHECK(layer("mkdir -p usr/bin usr/share etc; echo new >usr/share/new; mknod usr/bin/tail c 0 0; "
		    "echo changed >etc/debian_version",
		    NULL, over) == 0);
	CHECK(make_root(k.fd, WIRE_ROOT_BASE, 1, ids, on.root) == 0);
	CHECK(vm_make_on(&k, &on, &m) == 0);
	CHECK_INT(
		sh(&m,
		   "cat /usr/share/new /etc/debian_version; ls /usr/bin/head; ls /usr/bin/tail 2>/dev/null"),
		2);
	CHECK_STR(said, "new\nchanged\n/usr/bin/head\n");
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(more_layers_than_disks_and_a_missing_layer_are_rejected_by_name)
{
	char ids[6][WIRE_LAYER_ID];
	const char *names[6];
	struct wire_create on = { .nlayers = 0 }, w;
	struct keeper_sync k;

	OPEN_VM(&k);
	for (unsigned i = 0; i < 6; i++) {
		char script[40];

		snprintf(script, sizeof(script), "mkdir opt; echo %u >opt/f%u", i, i);
		CHECK(layer(script, NULL, ids[i]) == 0);
		names[i] = ids[i];
	}
	CHECK(make_root(k.fd, WIRE_ROOT_BASE, 6, names, on.root) == 0);
	w = vm_on(&on);
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_LIMIT, "at most 5 layers"));
	on = (struct wire_create){ .nlayers = 1 };
	memset(on.layer[0], 'a', 64);
	w = vm_on(&on);
	CHECK(is_error(ask(k.fd, &w, sizeof(w), NULL, 0), ERR_NOT_FOUND, "there is no layer"));
	keeper_sync_close(&k);
}

TEST(an_image_that_was_cut_is_made_again)
{
	struct wire_create on = { .nlayers = 1 };
	struct keeper_sync k;
	char path[240];
	struct made m;

	OPEN_VM(&k);
	CHECK(layer("mkdir opt; echo whole >opt/whole", NULL, on.layer[0]) == 0);
	snprintf(path, sizeof(path), "%s/layers/image.%s", state_dir, on.layer[0]);
	CHECK(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0400)) == 0);
	CHECK(vm_make_on(&k, &on, &m) == 0);
	CHECK_INT(sh(&m, "cat /opt/whole"), 0);
	CHECK_STR(said, "whole\n");
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(secrets_are_in_memory_of_the_guest_and_in_no_layer)
{
	struct wire_create on = { .head.flags = WIRE_CREATE_SECRETS };
	struct keeper_sync k;
	struct made m;

	OPEN_VM(&k);
	CHECK(vm_make_on(&k, &on, &m) == 0);
	CHECK_INT(sh(&m, "echo s >/run/secrets/x && cat /run/secrets/x && "
			 "while read -r from at rest; do [ $at != /run/secrets ] || echo $from; "
			 "done </proc/mounts"),
		  0);
	CHECK_STR(said, "s\nsecrets\n");
	CHECK(end(k.fd, &m) == 0);
	CHECK(vm_make(&k, 256, &m) == 0);
	CHECK(sh(&m, "ls /run/secrets") != 0);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

/* ---- pool, freezer ---- */

/* 1: the box existed before it was requested. */
static int vm_is_pooled(const struct made *m, double asked_s)
{
	return (double)m->about.created_ns / 1e9 < asked_s;
}

TEST(guests_wait_in_the_pool_and_are_unique_when_they_are_taken)
{
	struct wire_create w = vm_wish(256, 1);
	char boot[3][40];
	struct keeper_sync k;
	struct made m;
	unsigned n = 0;

	OPEN_VM(&k);
	w.head.flags &= (uint16_t)~WIRE_CREATE_COLD;
	for (unsigned tries = 0; n < 3 && tries < 400; tries++) {
		double asked_s = vm_real_s(), behind;
		uint64_t begin = now_ns();

		CHECK(make_as(k.fd, &w, &m) == 0);
		if (!vm_is_pooled(&m, asked_s)) { /* the second request fills the pool */
			CHECK(end(k.fd, &m) == 0);
			poll(NULL, 0, 200);
			continue;
		}
		printf("# from the pool in %.1f ms\n", vm_ms(begin));
		CHECK_INT(sh(&m, "cat /proc/sys/kernel/random/boot_id"), 0);
		CHECK(sscanf(said, "%39s", boot[n]) == 1);
		for (unsigned j = 0; j < n; j++)
			CHECK(strcmp(boot[n], boot[j]) != 0);
		behind = vm_clock_behind(&m);
		printf("# clock %.1f ms behind\n", behind * 1e3);
		CHECK(behind > -0.05 && behind < 30);
		CHECK(end(k.fd, &m) == 0);
		n++;
	}
	CHECK_INT(n, 3);
	keeper_sync_close(&k);
}

TEST(a_frozen_guest_does_nothing_and_continues_with_the_right_clock)
{
	struct wire_id f = { .head = sock_head(WIRE_FREEZE, 3) };
	struct frame stat = sock_head(WIRE_STAT, 4);
	struct keeper_sync k;
	double behind;
	struct made m;
	struct err e;

	OPEN_VM(&k);
	CHECK(vm_make(&k, 256, &m) == 0);
	memcpy(f.id, m.id, sizeof(f.id));
	CHECK_INT(ask(k.fd, &f, sizeof(f), NULL, 0), WIRE_DONE);
	CHECK(sock_send(m.init, &stat, sizeof(stat), NULL, 0, NULL, 0, &e) == 0);
	CHECK_INT(poll(&(struct pollfd){ .fd = m.init, .events = POLLIN }, 1, 2000), 0);
	f.head.flags = WIRE_FREEZE_OFF;
	CHECK_INT(ask(k.fd, &f, sizeof(f), NULL, 0), WIRE_DONE);
	CHECK_INT(receive(m.init), WIRE_STATUS);
	CHECK_INT(sh(&m, "echo again"), 0);
	CHECK_STR(said, "again\n");
	behind = vm_clock_behind(&m);
	printf("# clock %.1f ms behind\n", behind * 1e3);
	CHECK(behind > -0.05 && behind < 30);
	/* A frozen guest can be ended. */
	f.head.flags = 0;
	CHECK_INT(ask(k.fd, &f, sizeof(f), NULL, 0), WIRE_DONE);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(a_guest_larger_than_every_template_boots_its_kernel)
{
	struct keeper_sync k;
	uint64_t begin;
	struct made m;

	OPEN_VM(&k);
	begin = now_ns();
	CHECK(vm_make(&k, 2049, &m) == 0);
	printf("# booted in %.0f ms\n", vm_ms(begin));
	CHECK_INT(sh(&m, "cat /proc/sys/kernel/osrelease"), 0);
	printf("# kernel %s", said);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

/* ---- limits ---- */

TEST(limits_end_the_program_and_not_the_guest)
{
	struct wire_create w = vm_wish(64, 1);
	struct keeper_sync k;
	struct made m;

	OPEN_VM(&k);
	w.limits.pids = 24;
	CHECK(make_as(k.fd, &w, &m) == 0);
	CHECK(sh(&m, "python3 -S -c 'x = bytearray(96 << 20)'") != 0);
	CHECK_INT(wire_exit_kills(GOT(wire_exit)->head.flags), 1);
	CHECK_INT(sh(&m, "echo alive"), 0);
	CHECK_STR(said, "alive\n");
	CHECK(sh(&m, "head -c 48M /dev/zero >big") != 0);
	CHECK_INT(sh(&m, "rm big && echo free"), 0);
	CHECK_INT(wire_exit_kills(GOT(wire_exit)->head.flags), 0);
	CHECK(sh(&m, "i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i + 1)); done") != 0);
	CHECK(wire_exit_refused(GOT(wire_exit)->head.flags) > 0);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

/* ---- the end ---- */

/* Calls that were interrupted are continued by restart_syscall. */
TEST(a_guest_continues_after_its_engine_was_stopped)
{
	struct keeper_sync k;
	struct made m;
	int qemu;

	OPEN_VM(&k);
	CHECK(vm_make(&k, 256, &m) == 0);
	qemu = vm_child_of(m.about.init_pid);
	for (int i = 0; i < 20; i++) {
		CHECK(qemu > 0 && kill(qemu, SIGSTOP) == 0);
		poll(NULL, 0, 20);
		CHECK(kill(qemu, SIGCONT) == 0);
		CHECK_INT(sh(&m, "echo alive"), 0);
	}
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

/* Root of a box has a few capabilities, and the files of the guest that belong to root. */
TEST(a_guest_that_harms_itself_harms_no_other_and_not_the_host)
{
	static const struct {
		const char *script;
		int ends; /* 1: the guest ends; 0: a program runs after it; -1: its limit of processes may be reached */
	} cases[] = {
		{ "date -s '2001-01-01' 2>/dev/null; date -s '2037-01-01' 2>/dev/null; true", 0 },
		{ "kill -9 1; kill -TERM 1; true", 0 },
		{ "for f in /dev/vd* /dev/mem /dev/port; do dd if=/dev/zero of=$f bs=1M seek=100000 count=1; "
		  "mknod /tmp/n b 254 0 && dd if=/dev/zero of=/tmp/n bs=1M seek=100000 count=1; done 2>/dev/null; true",
		  0 },
		{ "(while :; do :; done) & (while :; do :; done) & true", 0 },
		{ "f() { f | f & }; f; sleep 1", -1 },
		{ "echo c >/proc/sysrq-trigger", 1 }, /* the kernel of the guest panics */
		{ "echo b >/proc/sysrq-trigger", 1 },
	};
	struct wire_create w = vm_wish(256, 6);
	struct made m, other;
	struct keeper_sync k;

	OPEN_VM(&k);
	CHECK(vm_make(&k, 256, &other) == 0);
	CHECK_INT(sh(&other, "printf kept >f"), 0);
	w.limits.pids = 64;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		double before = vm_real_s(), gone;
		uint64_t begin = now_ns();
		int status;

		w.head.flags = (uint16_t)((w.head.flags & ~WIRE_CREATE_AWAIT) |
					  (cases[i].ends == 1 ? WIRE_CREATE_AWAIT : 0));
		CHECK(make_as(k.fd, &w, &m) == 0);
		status = sh_as(&m, WIRE_START_ROOT, cases[i].script);
		printf("# status %d: %s\n", status, cases[i].script);
		gone = vm_real_s() - before - vm_ms(begin) / 1e3;
		CHECK(gone > -1 && gone < 1); /* the clock of the host */
		if (cases[i].ends == 0)
			CHECK_INT(sh(&m, "echo alive"), 0);
		if (cases[i].ends == 1) {
			CHECK_INT(receive(k.fd), WIRE_DESTROYED);
			own_close_fd(&m.init);
		} else {
			CHECK(end(k.fd, &m) == 0);
		}
		CHECK_INT(sh(&other, "cat f"), 0);
		CHECK_STR(said, "kept");
	}
	CHECK(end(k.fd, &other) == 0);
	keeper_sync_close(&k);
}

TEST(a_killed_engine_ends_its_box_and_no_other)
{
	struct wire_create w = vm_wish(256, 6);
	struct made m, other;
	struct keeper_sync k;
	int qemu;

	OPEN_VM(&k);
	CHECK(vm_make(&k, 256, &other) == 0);
	w.head.flags |= WIRE_CREATE_AWAIT;
	CHECK(make_as(k.fd, &w, &m) == 0);
	qemu = vm_child_of(m.about.init_pid);
	CHECK(qemu > 0 && kill(qemu, SIGKILL) == 0);
	CHECK_INT(receive(k.fd), WIRE_DESTROYED);
	close(m.init);
	CHECK_INT(sh(&other, "echo alive"), 0);
	CHECK(end(k.fd, &other) == 0);
	keeper_sync_close(&k);
}

TEST(the_next_keeper_adopts_a_guest)
{
	struct wire_id open = { .head = sock_head(WIRE_OPEN, 3) };
	struct keeper_sync k;
	struct made m;

	OPEN_VM(&k);
	CHECK(vm_make(&k, 256, &m) == 0);
	CHECK_INT(sh(&m, "echo before >f"), 0);
	CHECK(end_keeper(&k, SIGKILL) == 0);
	CHECK_INT(sh(&m, "cat f"), 0);
	CHECK(next_keeper(&k) == 0);
	memcpy(open.id, m.id, sizeof(open.id));
	CHECK_INT(ask(k.fd, &open, sizeof(open), NULL, 0), WIRE_BOX);
	close(got_fd);
	CHECK_INT(GOT(wire_box)->tier, WIRE_TIER_MICROVM);
	CHECK(end(k.fd, &m) == 0);
	keeper_sync_close(&k);
}

TEST(nothing_is_left)
{
	snprintf(state_dir, sizeof(state_dir), "/tmp/atoll-wire.%d",
		 (int)getpid()); /* not the prepared one */
	leave_nothing();
}
