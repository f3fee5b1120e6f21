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

TEST(nothing_is_left)
{
	leave_nothing();
}
