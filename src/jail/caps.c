/* caps.c - see caps.h. */
#include "jail/caps.h"
#include "base/cleanup.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEEP(cap, why)                                                                             \
	{                                                                                          \
		CAP_##cap, #cap, why                                                               \
	}

/* All of them act on the box's own ids and files only: its user namespace has no others. */
const struct cap_row caps_kept[] = {
	KEEP(CHOWN, "package managers give files to their owners"),
	KEEP(DAC_OVERRIDE, "root in an image expects to read and write every file of it"),
	KEEP(FOWNER, "chmod and utime on files that packages own"),
	KEEP(FSETID, "setgid directories keep their bit when root writes them"),
	KEEP(SETGID, "apt and su become another group"),
	KEEP(SETUID, "apt and su become another user"),
	KEEP(KILL, "root ends the processes of other users of the box"),
	KEEP(NET_BIND_SERVICE, "servers listen on ports below 1024 of the box's own lo"),
};
const unsigned caps_nkept = ARRAY_LEN(caps_kept);

const struct cap_row caps_gvisor[] = {
	KEEP(CHOWN, "its gofer serves the files of the box: owners"),
	KEEP(DAC_OVERRIDE, "its gofer opens files with the rights that the sentry has checked"),
	KEEP(DAC_READ_SEARCH, "as DAC_OVERRIDE"),
	KEEP(FOWNER, "its gofer serves the files of the box: modes and times"),
	KEEP(FSETID, "as FOWNER"),
	KEEP(SETGID, "the sentry becomes another group"),
	KEEP(SETUID, "the sentry becomes another user"),
	KEEP(SYS_CHROOT, "sentry and gofer get roots of their own"),
	KEEP(SYS_ADMIN, "sentry and gofer get namespaces and mounts of their own"),
};
const unsigned caps_ngvisor = ARRAY_LEN(caps_gvisor);

static uint64_t caps_mask(const struct cap_row *rows, unsigned n)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < n; i++)
		mask |= UINT64_C(1) << rows[i].cap;
	return mask;
}

uint64_t caps_kept_mask(void)
{
	return caps_mask(caps_kept, caps_nkept);
}

uint64_t caps_gvisor_mask(void)
{
	return caps_mask(caps_gvisor, caps_ngvisor);
}

int caps_bound(uint64_t keep, struct err *e)
{
	/* The kernel returns EINVAL after its last capability; this list may be older than the
	 * kernel. */
	for (int cap = 0; cap < 64; cap++) {
		if (keep >> cap & 1)
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && cap > CAP_SYS_ADMIN)
			return 0;
		return err_sys(e, "drop capability %d from the bounding set", cap);
	}
	return 0;
}

/* The kernel's interface is two halves of 32 bits each. */
static int caps_get(struct __user_cap_data_struct half[2], struct err *e)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	if (syscall(SYS_capget, &head, half) < 0)
		return err_sys(e, "capget");
	return 0;
}

static uint64_t caps_join(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

int caps_read(uint64_t *permitted, uint64_t *effective, struct err *e)
{
	struct __user_cap_data_struct half[2];

	if (caps_get(half, e) < 0)
		return -1;
	*permitted = caps_join(half[0].permitted, half[1].permitted);
	*effective = caps_join(half[0].effective, half[1].effective);
	return 0;
}

/* Sets all three and reads them back: a failed drop must be noticed. */
static int caps_set(uint64_t keep, uint64_t inheritable, struct err *e)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const uint32_t low = (uint32_t)keep, high = (uint32_t)(keep >> 32);
	struct __user_cap_data_struct half[2] = {
		{ .permitted = low, .effective = low, .inheritable = (uint32_t)inheritable },
		{ .permitted = high,
		  .effective = high,
		  .inheritable = (uint32_t)(inheritable >> 32) },
	};

	if (syscall(SYS_capset, &head, half) < 0)
		return err_sys(e, "capset to %#llx", (unsigned long long)keep);
	if (caps_get(half, e) < 0)
		return -1;
	if (caps_join(half[0].permitted, half[1].permitted) != keep ||
	    caps_join(half[0].effective, half[1].effective) != keep ||
	    caps_join(half[0].inheritable, half[1].inheritable) != inheritable)
		return err_set(e, ERR_SYS, "capabilities read back as %#llx, wanted %#llx",
			       (unsigned long long)caps_join(half[0].permitted, half[1].permitted),
			       (unsigned long long)keep);
	return 0;
}

int caps_only(uint64_t keep, struct err *e)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(e, "clear ambient capabilities");
	return caps_set(keep, 0, e);
}

int caps_inherit(uint64_t also, struct err *e)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct half[2];

	if (caps_get(half, e) < 0)
		return -1;
	half[0].inheritable |= (uint32_t)also;
	half[1].inheritable |= (uint32_t)(also >> 32);
	if (syscall(SYS_capset, &head, half) < 0)
		return err_sys(e, "make %#llx inheritable", (unsigned long long)also);
	return 0;
}

int caps_over_exec(uint64_t keep, struct err *e)
{
	if (caps_set(keep, keep, e) < 0)
		return -1;
	for (int cap = 0; cap < 64; cap++)
		if (keep >> cap & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return err_sys(e, "make capability %d ambient", cap);
	return 0;
}

int caps_keep_over_setuid(struct err *e)
{
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_sys(e, "keep capabilities over setuid");
	return 0;
}

int caps_no_new_privs(struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return err_set(e, ERR_SYS, "no_new_privs reads back as unset");
	return 0;
}
