/* confine_child.c - see confine_child.h.
 *
 * The child was forked by a process that was already in the box's pid namespace and cgroups (see
 * plant.c). Everything else is entered or given up here, in the order of the launcher's table
 * (src/jail/launch.c) as far as it applies; no byte of a client was read yet. */
#include "zygote/confine_child.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/feature.h"
#include "jail/rlimits.h"
#include "jail/steps.h"
#include "jail/user.h"
#include "zygote/confine_steps.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int row_fds(struct sealing *s, struct err *e)
{
	const int from[] = { s->sock, s->report, s->box };
	int high[ARRAY_LEN(from)];

	for (unsigned i = 0; i < ARRAY_LEN(from); i++) {
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64);
		if (high[i] < 0)
			return err_sys(e, "hold descriptor %d", from[i]);
	}
	for (unsigned i = 0; i < ARRAY_LEN(from); i++)
		if (dup3(high[i], SEAL_SOCK + (int)i, O_CLOEXEC) < 0)
			return err_sys(e, "place descriptor %d", from[i]);
	if (syscall(SYS_close_range, SEAL_BOX + 1, ~0U, 0) < 0)
		return err_sys(e, "close the rest");
	s->sock = SEAL_SOCK;
	s->report = SEAL_REPORT;
	s->box = SEAL_BOX;
	return 0;
}

static int row_keyring(struct sealing *s, struct err *e)
{
	(void)s;
	return user_new_keyring(NULL, e);
}

static int row_namespaces(struct sealing *s, struct err *e)
{
	static const struct {
		uint64_t layer;
		int flag;
	} namespaces[] = {
		{ FEATURE_BIT(FEATURE_USERNS), CLONE_NEWUSER },
		{ FEATURE_BIT(FEATURE_MOUNTS), CLONE_NEWNS },
		{ FEATURE_BIT(FEATURE_NET), CLONE_NEWNET },
		{ FEATURE_BIT(FEATURE_IPC), CLONE_NEWIPC },
		{ FEATURE_BIT(FEATURE_UTS), CLONE_NEWUTS },
		{ FEATURE_BIT(FEATURE_CGROUP_NS), CLONE_NEWCGROUP },
	};
	int flags = 0;

	for (unsigned i = 0; i < ARRAY_LEN(namespaces); i++)
		if (s->order->layers & namespaces[i].layer)
			flags |= namespaces[i].flag;
	if (setns(s->box, flags) < 0)
		return err_sys(e, "enter the box's namespaces (%#x)", (unsigned)flags);
	return 0;
}

static int row_folder(struct sealing *s, struct err *e)
{
	(void)s;
	umask(022);
	return chdir("/") < 0 ? err_sys(e, "chdir /") : 0;
}

/* The session of the zygote has no terminal, but belongs to the keeper. */
static int row_session(struct sealing *s, struct err *e)
{
	(void)s;
	return setsid() < 0 ? err_sys(e, "setsid") : 0;
}

static int row_rlimits(struct sealing *s, struct err *e)
{
	(void)s;
	return limits_apply(e);
}

static int row_bounds(struct sealing *s, struct err *e)
{
	(void)s;
	return caps_bound(0, e);
}

static int row_identity(struct sealing *s, struct err *e)
{
	/* Without a range of ids the box has only one, which the child has already. */
	return s->order->layers & FEATURE_BIT(FEATURE_UIDRANGE) ? user_become_user(e) : 0;
}

static int row_caps(struct sealing *s, struct err *e)
{
	(void)s;
	return caps_only(0, e);
}

static int row_privileges(struct sealing *s, struct err *e)
{
	(void)s;
	/* The change of ids has made the process undumpable, so it cannot read its /proc/self;
	 * an executed program could. It contains nothing that is secret from the box. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		return err_sys(e, "be dumpable");
	return caps_no_new_privs(e);
}

static int row_landlock(struct sealing *s, struct err *e)
{
	return s->order->layers & FEATURE_BIT(FEATURE_LANDLOCK)
		       ? landlock_apply(s->order->landlock_abi, -1, 0, e)
		       : 0;
}

static int row_filter(struct sealing *s, struct err *e)
{
	return seccomp_apply(s->filter, e);
}

static const struct {
	const char *name;
	int (*run)(struct sealing *s, struct err *e);
} rows[] = {
#define ROW(id, name, why) { name, row_##id },
	SEAL_ROWS(ROW)
#undef ROW
};

static int left_out(const struct sealing *s, unsigned i)
{
#ifdef ATOLL_TEST
	return (int)(s->order->without >> i & 1);
#else
	(void)s;
	(void)i;
	return 0;
#endif
}

static int injected_fault(const struct sealing *s, struct err *e)
{
#ifdef ATOLL_TEST
	if (s->order->without & ZYGOTE_FAULT_SILENT)
		_exit(70);
	if (s->order->without & ZYGOTE_FAULT_REPORTED)
		return err_set(e, ERR_SYS, "injected fault");
#endif
	(void)s;
	(void)e;
	return 0;
}

int seal(struct sealing *s, struct err *e)
{
	if (injected_fault(s, e) < 0)
		return -1;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (!left_out(s, i) && rows[i].run(s, e) < 0)
			return err_in(e, "%s", rows[i].name);
	return 0;
}
