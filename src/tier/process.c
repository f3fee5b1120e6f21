/* process.c - see process.h. */
#include "tier/process.h"
#include "jail/landlock.h"
#include "jail/seccomp.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIGNALS_ABI = 6 }; /* landlock restricts signals from here on: Linux 6.12 */

int process_judge(const struct process_host *h, struct err *e)
{
	if (!h->allowed)
		return err_set(
			e, ERR_DENIED,
			"disabled (set isolation.process = true, then restart atolld and its keeper)");
	if (h->namespaces)
		return err_set(
			e, ERR_DENIED,
			"this host has user namespaces, and a container isolates more (use container)");
	if (!h->landlock_abi)
		return err_set(
			e, ERR_DENIED,
			"the kernel has no landlock, which alone would hide the files of the host "
			"(boot with lsm=landlock,... in the kernel command line)");
	if (!h->seccomp)
		return err_set(e, ERR_DENIED,
			       "the kernel has no system call filters (CONFIG_SECCOMP_FILTER)");
	if (!h->lists_children)
		return err_set(
			e, ERR_DENIED,
			"/proc/thread-self/children is missing: programs could not be ended (CONFIG_PROC_CHILDREN)");
	if (!h->has_tmp)
		return err_set(
			e, ERR_DENIED,
			"/tmp, where its folders are, is not open to all users (sudo chmod 1777 /tmp)");
	return 0;
}

static int process_has_seccomp(void)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int process_probe(const struct tier_host *h, struct wire_tier_facts *out, struct err *e)
{
	struct stat tmp;
	struct process_host host = {
		.allowed = h->process,
		.namespaces = !h->no_namespaces[0],
		.landlock_abi = landlock_abi(),
		.seccomp = process_has_seccomp(),
		.lists_children = access("/proc/thread-self/children", R_OK) == 0,
		.has_tmp = stat("/tmp", &tmp) == 0 && (tmp.st_mode & 01777) == 01777,
	};

	if (process_judge(&host, e) < 0)
		return -1;
	out->state = WIRE_TIER_OFFERED;
	snprintf(out->version, sizeof(out->version), "landlock ABI %d", host.landlock_abi);
	/* With the uid of the keeper, an older landlock lets programs signal every process of that user. */
	snprintf(out->platform, sizeof(out->platform), "%.20s",
		 !h->rootless                       ? "own-uid"
		 : host.landlock_abi >= SIGNALS_ABI ? "keeper-uid"
						    : "keeper-uid-signals");
	return 0;
}

/* Compiled once; builder threads may ask at the same time. */
static const struct seccomp *process_filter(struct err *e)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct seccomp filter;
	int done = 0;

	pthread_mutex_lock(&lock);
	if (!filter.code)
		done = seccomp_compile(&filter, SECCOMP_PROCESS | SECCOMP_STRICT, e);
	pthread_mutex_unlock(&lock);
	return done < 0 ? NULL : &filter;
}

int process_outer_box(const struct tier_host *h, const struct wire_tier_facts *f,
		      const struct wire_box *about, struct spec *sp, struct jail_engine *out,
		      struct err *e)
{
	(void)f;
	(void)about;
	if (!h->process || !h->no_namespaces[0])
		return err_set(e, ERR_DENIED, "this keeper starts containers");
	out->filter = process_filter(e);
	if (!out->filter)
		return -1;
	sp->supervisor = h->mux_exe;
	return 0;
}
