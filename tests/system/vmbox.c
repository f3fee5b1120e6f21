/* vmbox.c - boxes of the tier microvm over the wire: tests/microvm.sh, which has prepared the tier in the
 * state folder ATOLL_VM_STATE. Emulated guests are slow: times are printed and compared with each other. */
#include "wirebox.h"

#include "base/clock.h"
#include <time.h>

__attribute__((constructor(65535))) static void vm_set_up(void)
{
	const char *state = getenv("ATOLL_VM_STATE");

	if (state)
		setenv("ATOLL_STATE", state, 1);
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

enum { CLONES = 3 };

TEST(clones_of_a_template_share_no_random_bytes_no_boot_id_and_no_clock_error)
{
	char random[CLONES][80], boot[CLONES][40], clock[32];
	struct made m[CLONES];
	struct keeper_sync k;

	OPEN_VM(&k);
	for (unsigned i = 0; i < CLONES; i++) {
		uint64_t begin = now_ns();
		double off_s;

		CHECK(vm_make(&k, 256, &m[i]) == 0);
		printf("# clone %u in %.0f ms\n", i, vm_ms(begin));
		CHECK_INT(sh(&m[i], "od -An -v -tx1 -N24 /dev/urandom | tr -d ' \n'; echo; "
				    "cat /proc/sys/kernel/random/boot_id; date +%s.%N"),
			  0);
		CHECK(sscanf(said, "%79s %39s %31s", random[i], boot[i], clock) == 3);
		off_s = (double)time(NULL) - atof(clock);
		CHECK(off_s > -5 && off_s < 20); /* the program itself is emulated */
		for (unsigned j = 0; j < i; j++) {
			CHECK(strcmp(random[i], random[j]) != 0);
			CHECK(strcmp(boot[i], boot[j]) != 0);
		}
	}
	CHECK_INT(sh(&m[0], "echo mine >f"), 0);
	CHECK(sh(&m[1], "cat f") != 0);
	for (unsigned i = 0; i < CLONES; i++)
		CHECK(end(k.fd, &m[i]) == 0);
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
	leave_nothing();
}
