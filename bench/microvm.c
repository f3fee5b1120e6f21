/* microvm.c - boxes of the isolation tier microvm in one run: a boot of the kernel, a clone of a saved guest, a clone from the
 * pool, each to the first answer of init: `make bench-tiers`. Needs root and a state folder with the prepared tier in
 * ATOLL_VM_STATE (atoll tier prepare microvm --state DIR). Each ratio has a limit. */
#include "system/wirebox.h"

#include "base/clock.h"

enum { ROUNDS = 5, CLONE_MIB = 256, BOOT_MIB = 3072, TRIES = 600 };

static struct keeper_sync keeper;

/* The folder stays: state_dir, which the last test removes, is another one. */
__attribute__((constructor(65535))) static void use_prepared_tier(void)
{
	if (getenv("ATOLL_VM_STATE"))
		setenv("ATOLL_STATE", getenv("ATOLL_VM_STATE"), 1);
}

/* Milliseconds to the first answer, or -1. A guest that is larger than every saved one boots its kernel. */
static double to_first_answer(uint64_t mib, unsigned flags, struct made *m)
{
	struct wire_create w = wish(wire_tier_flags(WIRE_TIER_MICROVM) | flags, 1);
	struct frame stat = sock_head(WIRE_STAT, 4);
	uint64_t began = now_ns();

	w.limits.mem_bytes = mib << 20;
	w.limits.disk_bytes = 32 << 20;
	if (make_as(keeper.fd, &w, m) < 0) {
		printf("# %s\n", GOT(frame)->type == WIRE_ERROR ? GOT(wire_error)->msg : "no box");
		return -1;
	}
	if (ask(m->init, &stat, sizeof(stat), NULL, 0) != WIRE_STATUS)
		return -1;
	return (double)(now_ns() - began) / 1e6;
}

static double cold(uint64_t mib)
{
	struct made m;
	double took = to_first_answer(mib, WIRE_CREATE_COLD, &m);

	return took < 0 || end(keeper.fd, &m) < 0 ? -1 : took;
}

/* Requests boxes until one had waited. */
static double pooled(void)
{
	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t asked = clock_ns(CLOCK_REALTIME);
		struct made m;
		double took = to_first_answer(CLONE_MIB, 0, &m);
		int waited = took >= 0 && m.about.created_ns < asked;

		if (took < 0 || end(keeper.fd, &m) < 0)
			return -1;
		if (waited)
			return took;
		poll(NULL, 0, 2000);
	}
	return -1;
}

static int ratio(const char *what, double got, double of, double most)
{
	printf("# %-52s %8.1f %8.1f   %.3f (at most %.2f)%s\n", what, got, of, got / of, most,
	       got / of > most ? "  EXCEEDED" : "");
	return got / of > most;
}

TEST(clones_are_faster_than_boots)
{
	double boot = 1e9, clone = 1e9, taken = 1e9;
	struct wire_tier_facts f;
	int bad;

	NEED_ROOT();
	CHECK(open_keeper(&keeper, 1) == 0);
	CHECK(learn_tier(keeper.fd, WIRE_TIER_MICROVM, 0, &f) == 0);
	if (f.state != WIRE_TIER_OFFERED)
		SKIP(f.reason);
	printf("# %s %s, platform %s\n", f.engine, f.version, f.platform);
	for (unsigned i = 0; i < ROUNDS; i++) { /* the best: other work on the machine only adds */
		double b = cold(BOOT_MIB), c = cold(CLONE_MIB), t = pooled();

		CHECK(b > 0 && c > 0 && t > 0);
		boot = b < boot ? b : boot;
		clone = c < clone ? c : clone;
		taken = t < taken ? t : taken;
	}
	bad = ratio("clone to first answer / boot of the kernel, ms", clone, boot, 0.10);
	bad |= ratio("pooled to first answer / clone, ms", taken, clone, 0.30);
	CHECK_INT(bad, 0);
}

TEST(nothing_is_left)
{
	NEED_ROOT();
	keeper_sync_close(&keeper);
	leave_nothing();
}
