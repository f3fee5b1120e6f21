/* rlimits.c - see rlimits.h. */
#include "jail/rlimits.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT(resource, soft, hard, why)                                                           \
	{                                                                                          \
		RLIMIT_##resource, #resource, soft, hard, why                                      \
	}

/* The cgroup limits memory, tasks and CPU, the quota the disk. These rows limit resources that
 * those do not count, or count too late. */
const struct limit_row limits_rows[] = {
	LIMIT(NOFILE, 1024, 16384, "open files are kernel memory; select() ends at 1024"),
	LIMIT(NPROC, 4096, 4096, "per host uid, so it binds where a pids cgroup is missing"),
	LIMIT(CORE, 1, 1, "1 byte means no core at all; 0 still starts a piped core handler"),
	LIMIT(SIGPENDING, 4096, 4096, "queued signals and POSIX timers are kernel memory"),
	LIMIT(MSGQUEUE, 819200, 819200, "bytes in POSIX message queues"),
	LIMIT(MEMLOCK, 8 << 20, 8 << 20, "pages that cannot be reclaimed"),
	LIMIT(RTPRIO, 0, 0, "no real-time priority: it would starve the host"),
	LIMIT(NICE, 0, 0, "no process raises its own priority"),
};
const unsigned limits_nrows = ARRAY_LEN(limits_rows);

static rlim_t rlimits_lower(rlim_t a, rlim_t b)
{
	return a < b ? a : b;
}

/* The inherited limit may be lower, and raising it would need CAP_SYS_RESOURCE. */
static int apply_lower(const struct limit_row *row)
{
	struct rlimit now, want;

	if (getrlimit(row->resource, &now) < 0)
		return -1;
	want.rlim_max = rlimits_lower(row->hard, now.rlim_max);
	want.rlim_cur = rlimits_lower(row->soft, want.rlim_max);
	return setrlimit(row->resource, &want);
}

int limits_core_has_handler(void)
{
	auto_fd int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
	char first = 0;

	if (fd < 0 || read(fd, &first, 1) < 0)
		return 1;
	return first == '|' || first == '@';
}

/* For every row but one a lower limit is a tighter one. */
static int check_core(struct err *e)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_CORE, &now) < 0)
		return err_sys(e, "read limit CORE");
	if (now.rlim_cur == 1 || !limits_core_has_handler())
		return 0;
	return err_set(
		e, ERR_DENIED,
		"limit CORE is %llu and cannot be 1 (hard limit 0, no CAP_SYS_RESOURCE), and core_pattern "
		"names a handler, which 0 does not stop: sudo sysctl kernel.core_pattern=core",
		(unsigned long long)now.rlim_cur);
}

static int rlimits_apply(const struct limit_row *row, struct err *e)
{
	const struct rlimit want = { .rlim_cur = row->soft, .rlim_max = row->hard };

	if (setrlimit(row->resource, &want) == 0)
		return 0;
	if (errno != EPERM || apply_lower(row) < 0)
		return err_sys(e, "set limit %s to %llu", row->name,
			       (unsigned long long)want.rlim_cur);
	return row->resource == RLIMIT_CORE ? check_core(e) : 0;
}

int limits_apply(struct err *e)
{
	for (unsigned i = 0; i < limits_nrows; i++)
		if (rlimits_apply(&limits_rows[i], e) < 0)
			return -1;
	return 0;
}
