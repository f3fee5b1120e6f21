/* probe_test.c - the probe of host features, which may be killed at any time. */
#include "base/clock.h"
#include "jail/feature.h"
#include "jail/probe.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILLS = 40, PATIENCE_S = 30 };

TEST(root_can_create_namespaces_on_this_host)
{
	struct probe p;

	if (geteuid() != 0)
		SKIP("needs root");
	probe_host(&p, 1);
	CHECK(p.kernel_major >= 5);
	CHECK(p.layers & FEATURE_BIT(FEATURE_PIDS_NS));
	CHECK(!p.userns == !(p.layers & FEATURE_BIT(FEATURE_USERNS)));
}

/* The duration of one, in microseconds. */
static unsigned time_of_one(void)
{
	uint64_t began = now_ns();
	struct probe p;

	probe_host(&p, 1);
	return (unsigned)((now_ns() - began) / 1000);
}

static void kill_after(unsigned us)
{
	struct probe p;
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			probe_host(&p, 1);
	}
	usleep(us);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* 1: within our patience. */
static int children_are_gone(void)
{
	uint64_t late = now_ns() + PATIENCE_S * UINT64_C(1000000000);

	while (now_ns() < late) {
		if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
			return 1;
		usleep(1000);
	}
	return 0;
}

TEST(a_killed_probe_leaves_no_process)
{
	unsigned step;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* the test owns the file that it leaves */
	step = 2 * time_of_one() / KILLS + 1;
	for (unsigned i = 0; i < KILLS; i++)
		kill_after(i * step);
	CHECK(children_are_gone());
}
