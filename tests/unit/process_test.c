/* process_test.c - the tier process: when it is offered, its landlock rules, its filter. */
#include "forked.h"
#include "jail/caps.h"
#include "jail/feature.h"
#include "jail/landlock.h"
#include "jail/launch.h"
#include "jail/seccomp.h"
#include "tier/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const struct {
	struct process_host host;
	const char *why; /* NULL: offered */
} judged[] = {
	{ { 1, 0, 6, 1, 1, 1 }, NULL },
	{ { 1, 0, 1, 1, 1, 1 }, NULL },
	{ { 0, 0, 6, 1, 1, 1 }, "disabled (set isolation.process = true" },
	{ { 1, 1, 6, 1, 1, 1 }, "use container" },
	{ { 1, 0, 0, 1, 1, 1 }, "no landlock" },
	{ { 1, 0, 6, 0, 1, 1 }, "no system call filters" },
	{ { 1, 0, 6, 1, 0, 1 }, "thread-self/children" },
	{ { 1, 0, 6, 1, 1, 0 }, "chmod 1777 /tmp" },
	{ { 0, 1, 0, 0, 0, 0 }, "disabled" },
};

TEST(it_is_offered_only_where_the_operator_allows_it_and_nothing_better_exists)
{
	for (unsigned i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
		struct err e = { 0 };
		int rc = process_judge(&judged[i].host, &e);

		CHECK_INT(rc, judged[i].why ? -1 : 0);
		CHECK(!judged[i].why || strstr(e.msg, judged[i].why));
	}
}

TEST(without_namespaces_every_other_tier_is_unavailable)
{
	struct tier_host h = { .dir = -1,
			       .init_exe = -1,
			       .mux_exe = -1,
			       .process = 1,
			       .features = ~UINT64_C(0),
			       .no_namespaces = "no user namespaces (sysctl)" };

	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++) {
		struct wire_tier_facts f;

		if (!tier_find(i))
			continue;
		tier_probe(i, &h, &f);
		if (i == WIRE_TIER_PROCESS)
			continue;
		CHECK_INT(f.state, WIRE_TIER_UNAVAILABLE);
		CHECK_STR(f.reason, "no user namespaces (sysctl)");
	}
}

TEST(a_keeper_with_namespaces_does_not_offer_it)
{
	struct tier_host h = { .dir = -1, .init_exe = -1, .mux_exe = -1, .process = 1 };
	struct wire_tier_facts f;
	struct jail_engine engine = { 0 };
	struct spec sp = { .supervisor = -1 };
	struct err e;

	tier_probe(WIRE_TIER_PROCESS, &h, &f);
	CHECK_INT(f.state, WIRE_TIER_UNAVAILABLE);
	CHECK(strstr(f.reason, "use container"));
	CHECK_INT(process_outer_box(&h, &f, NULL, &sp, &engine, &e), -1);
	CHECK_INT(sp.supervisor, -1);
}

TEST(its_features_are_those_that_need_no_namespace)
{
	const struct tier *t = tier_find(WIRE_TIER_PROCESS);
	const uint64_t has = ~t->features_off;

	CHECK_INT(t->rank, 0);
	CHECK(!(has & FEATURE_BIT(FEATURE_USERNS)) && !(has & FEATURE_BIT(FEATURE_MOUNTS)));
	CHECK(!(has & FEATURE_BIT(FEATURE_DISK)) && !(has & FEATURE_BIT(FEATURE_UIDRANGE)));
	CHECK(has & FEATURE_BIT(FEATURE_LANDLOCK) && has & FEATURE_BIT(FEATURE_SECCOMP));
	CHECK(t->unsupported & UINT64_C(1) << WIRE_NEED_VOLUME);
	CHECK(!tier_has_guest(WIRE_TIER_PROCESS) && !tier_has_guest(WIRE_TIER_CONTAINER));
	CHECK(tier_has_guest(WIRE_TIER_GVISOR));
}

TEST(no_container_is_launched_without_a_user_namespace)
{
	struct spec sp = { .id = "x", .supervisor = -1 };
	struct jailed out;
	struct err e;

	CHECK_INT(jail_launch(&sp, &out, &e), -1);
	CHECK_INT(e.kind, ERR_DENIED);
	CHECK(strstr(e.msg, "no user namespaces"));
}

static int can_open(const char *path, int how)
{
	int fd = open(path, how | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static char folder[] = "/tmp/process-test-XXXXXX", other[] = "/tmp/process-other-XXXXXX";

/* The number of the first check that fails; 0: none. */
static int tries_of_domain(void)
{
	char path[64];
	struct err e;
	int before = can_open("/proc/self/status", O_RDONLY) && can_open(other, O_RDONLY);

	snprintf(path, sizeof(path), "%s/new", folder);
	if (!before || caps_no_new_privs(&e) < 0 ||
	    landlock_process(landlock_abi(), folder, &e) < 0)
		return 1;
	if (can_open(other, O_RDONLY) || can_open(other, O_WRONLY))
		return 2;
	if (can_open("/proc/self/status", O_RDONLY) || can_open("/etc/shadow", O_RDONLY) ||
	    can_open("/etc/hostname", O_RDONLY))
		return 3;
	if (can_open("/tmp/process-new", O_WRONLY | O_CREAT) ||
	    can_open("/usr/process-new", O_WRONLY | O_CREAT))
		return 4;
	if (!can_open("/usr", O_RDONLY | O_DIRECTORY) || !can_open("/dev/null", O_RDWR))
		return 5;
	return can_open(path, O_WRONLY | O_CREAT) && can_open(path, O_RDONLY) && unlink(path) == 0
		       ? 0
		       : 6;
}

TEST(its_domain_opens_its_folder_and_usr_and_no_other_files)
{
	int fd, status;

	if (!landlock_abi())
		SKIP("needs landlock");
	fd = mkdtemp(folder) ? mkstemp(other) : -1;
	CHECK(fd >= 0);
	close(fd);
	status = forked_status(tries_of_domain);
	unlink(other);
	rmdir(folder);
	CHECK_INT(WEXITSTATUS(status), 0);
}

TEST(without_landlock_its_launch_fails)
{
	struct err e;

	CHECK_INT(landlock_process(0, "/tmp", &e), -1);
	CHECK_INT(e.kind, ERR_DENIED);
}

TEST_FORKED(its_filter_allows_no_socket_and_no_change_of_other_processes)
{
	struct seccomp sc = { 0 };
	struct rlimit l = { 64, 64 };
	cpu_set_t cpus;
	int pair[2];
	struct err e;

	CHECK_INT(seccomp_compile(&sc, SECCOMP_PROCESS | SECCOMP_STRICT, &e), 0);
	CHECK_INT(caps_no_new_privs(&e), 0);
	CHECK_INT(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	CHECK_INT(seccomp_apply(&sc, &e), 0);
	for (int family = AF_UNIX; family <= AF_NETLINK; family++) {
		errno = 0;
		CHECK(socket(family, SOCK_STREAM, 0) < 0 && errno == EPERM);
	}
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CHECK(setpriority(PRIO_PROCESS, 0, 1) == 0);
	CHECK(setpriority(PRIO_PROCESS, (id_t)getppid(), 1) < 0 && errno == EPERM);
	CHECK(setpriority(PRIO_USER, 0, 1) < 0 && errno == EPERM);
	CHECK(sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
	CHECK(sched_setaffinity(getppid(), sizeof(cpus), &cpus) < 0 && errno == EPERM);
	CHECK(prlimit(0, RLIMIT_NOFILE, &l, NULL) == 0);
	CHECK(prlimit(getppid(), RLIMIT_NOFILE, &l, NULL) < 0 && errno == EPERM);
	CHECK(prlimit(0, RLIMIT_CORE, NULL, &l) == 0);
	CHECK(prlimit(0, RLIMIT_CORE, &l, NULL) < 0 && errno == EPERM);
	CHECK(syscall(SYS_ptrace, 0, 0, 0, 0) < 0 && errno == EPERM);
}
