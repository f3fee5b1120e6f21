/* tier_service_test.c - engines that hang, end, print or leave processes behind; the service itself. */
#include "keeper/tier_service.h"
#include "base/cleanup.h"
#include "tap.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct tier_host host = { .dir = -1, .init_exe = -1, .mux_exe = -1, .features = 5 };
static int held[2]; /* a pipe that a probe and its children hold open */

static void probe_well(unsigned tier, const struct tier_host *h, struct wire_tier_facts *out)
{
	tier_facts_init(tier, h, out);
	out->state = WIRE_TIER_OFFERED;
	memset(out->version, 'v', sizeof(out->version));
}

static void probe_endless(unsigned tier, const struct tier_host *h, struct wire_tier_facts *out)
{
	(void)tier;
	(void)h;
	(void)out;
	if (fork() == 0)
		setsid(); /* a process that has left its group ends, too */
	for (;;)
		pause();
}

static void probe_killed(unsigned tier, const struct tier_host *h, struct wire_tier_facts *out)
{
	(void)tier;
	(void)h;
	(void)out;
	_exit(3);
}

static void probe_loud(unsigned tier, const struct tier_host *h, struct wire_tier_facts *out)
{
	char line[4096];

	memset(line, 'x', sizeof(line));
	for (unsigned i = 0; i < 256; i++)
		if (write(1, line, sizeof(line)) < 0 || write(2, line, sizeof(line)) < 0)
			_exit(1);
	probe_well(tier, h, out);
}

/* 1: no process holds the pipe open. */
static int all_have_ended(void)
{
	struct pollfd p = { .fd = held[0], .events = POLLIN };
	char c;

	own_close_fd(&held[1]);
	return poll(&p, 1, 20000) == 1 && read(held[0], &c, 1) == 0;
}

TEST(facts_are_those_of_the_probe)
{
	struct wire_tier_facts f;

	tier_service_examine(WIRE_TIER_GVISOR, &host, probe_well, 20000, &f);
	CHECK_INT(f.state, WIRE_TIER_OFFERED);
	CHECK_INT(f.tier, WIRE_TIER_GVISOR);
	CHECK_INT(strlen(f.version), sizeof(f.version) - 1); /* a text without an end is ended */
}

TEST(an_engine_that_hangs_is_unavailable_and_leaves_no_process)
{
	struct wire_tier_facts f;

	CHECK_INT(pipe2(held, O_CLOEXEC), 0);
	tier_service_examine(WIRE_TIER_GVISOR, &host, probe_endless, 100, &f);
	CHECK_INT(f.state, WIRE_TIER_UNAVAILABLE);
	CHECK(strstr(f.reason, "without a result"));
	CHECK(all_have_ended());
	own_close_fd(&held[0]);
}

TEST(a_probe_that_is_killed_makes_the_tier_unavailable)
{
	struct wire_tier_facts f;

	tier_service_examine(WIRE_TIER_MICROVM, &host, probe_killed, 20000, &f);
	CHECK_INT(f.tier, WIRE_TIER_MICROVM);
	CHECK_INT(f.state, WIRE_TIER_UNAVAILABLE);
	CHECK(strstr(f.reason, "killed"));
}

TEST(the_output_of_an_engine_goes_to_null)
{
	struct wire_tier_facts f;

	tier_service_examine(WIRE_TIER_GVISOR, &host, probe_loud, 20000, &f);
	CHECK_INT(f.state, WIRE_TIER_OFFERED);
}

TEST(the_service_answers_for_every_tier_and_ends_with_its_socket)
{
	struct wire_tier_facts f;
	int last = 0, service;
	struct err e;
	pid_t pid;

	service = tier_service_start(&host, &pid, &e);
	CHECK(service >= 0);
	for (int round = 0; round < 2; round++) {
		unsigned n = 0;

		CHECK_INT(tier_service_ask(service, &e), 0);
		for (last = 0; !last && tier_service_read(service, &f, &last, &e) == 0; n++) {
			CHECK_INT(f.tier, n);
			CHECK(f.state == WIRE_TIER_OFFERED || f.reason[0]);
		}
		CHECK_INT(n, WIRE_TIER_COUNT);
	}
	close(service);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}
