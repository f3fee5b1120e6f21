/* caps_test.c - dropped capabilities cannot be regained. */
#include "jail/caps.h"
#include "forked.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define BIT(cap) (UINT64_C(1) << (cap))
#define NEED_ROOT()                                                                                \
	do {                                                                                       \
		if (geteuid() != 0)                                                                \
			SKIP("needs root's capabilities");                                         \
	} while (0)

TEST(root_of_a_box_has_eight_capabilities_and_no_dangerous_one)
{
	const int never[] = { CAP_SYS_ADMIN,       CAP_SYS_CHROOT, CAP_MKNOD,       CAP_NET_RAW,
			      CAP_NET_ADMIN,       CAP_SYS_PTRACE, CAP_AUDIT_WRITE, CAP_SETFCAP,
			      CAP_DAC_READ_SEARCH, CAP_SETPCAP,    CAP_SYS_MODULE,  CAP_BPF };

	CHECK_INT(__builtin_popcountll(caps_kept_mask()), 8);
	CHECK_INT(caps_nkept, 8);
	for (unsigned i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		CHECK(!(caps_kept_mask() & BIT(never[i])));
	for (unsigned i = 0; i < caps_nkept; i++)
		CHECK(caps_kept[i].name && caps_kept[i].why);
}

TEST_FORKED(the_bounding_set_is_reduced_to_the_given_capabilities)
{
	uint64_t left = 0;
	struct err e;

	NEED_ROOT();
	CHECK(caps_bound(caps_kept_mask(), &e) == 0);
	for (int cap = 0, there; (there = prctl(PR_CAPBSET_READ, cap, 0, 0, 0)) >= 0; cap++)
		left |= (uint64_t)there << cap;
	CHECK(left == caps_kept_mask());
	CHECK(caps_bound(0, &e) == 0);
	CHECK_INT(prctl(PR_CAPBSET_READ, CAP_CHOWN, 0, 0, 0), 0);
}

TEST_FORKED(a_bound_that_cannot_be_set_is_an_error)
{
	struct err e;

	NEED_ROOT();
	CHECK(caps_only(0, &e) == 0);
	CHECK(caps_bound(0, &e) < 0);
	CHECK_INT(e.sys, EPERM);
}

TEST_FORKED(caps_only_keeps_exactly_the_named_capabilities)
{
	uint64_t permitted, effective;
	struct err e;

	NEED_ROOT();
	CHECK(caps_only(BIT(CAP_CHOWN) | BIT(CAP_BPF), &e) == 0); /* one in each half */
	CHECK(caps_read(&permitted, &effective, &e) == 0);
	CHECK(permitted == (BIT(CAP_CHOWN) | BIT(CAP_BPF)) && effective == permitted);
	CHECK(caps_only(BIT(CAP_KILL), &e) < 0); /* a dropped capability cannot be regained */
	CHECK_INT(e.sys, EPERM);
	CHECK(caps_only(0, &e) == 0);
	CHECK(caps_read(&permitted, &effective, &e) == 0);
	CHECK(permitted == 0 && effective == 0);
	CHECK_FAILS(socket(AF_INET, SOCK_RAW, 1), EPERM);
}

TEST_FORKED(inheritable_and_ambient_capabilities_are_cleared)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct half[2];
	struct err e;

	NEED_ROOT();
	CHECK(syscall(SYS_capget, &head, half) == 0);
	half[0].inheritable = 1u << CAP_CHOWN;
	CHECK(syscall(SYS_capset, &head, half) == 0);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0);
	CHECK(caps_only(BIT(CAP_CHOWN), &e) == 0);
	CHECK_INT(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0), 0);
	CHECK(syscall(SYS_capget, &head, half) == 0);
	CHECK_INT(half[0].inheritable, 0);
}

TEST_FORKED(capabilities_are_kept_across_setuid_on_request)
{
	uint64_t permitted, effective;
	struct err e;

	NEED_ROOT();
	CHECK(caps_keep_over_setuid(&e) == 0);
	CHECK(syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
	CHECK(caps_only(BIT(CAP_CHOWN), &e) == 0);
	CHECK(caps_read(&permitted, &effective, &e) == 0);
	CHECK(effective == BIT(CAP_CHOWN));
}

static int exec_unprivileged_and_check(void)
{
	struct err e;

	if (caps_keep_over_setuid(&e) < 0 || syscall(SYS_setresuid, 65534, 65534, 65534) < 0 ||
	    caps_over_exec(BIT(CAP_CHOWN), &e) < 0)
		return 1;
	execl("/bin/grep", "grep", "-q", "^CapEff:\t0000000000000001$", "/proc/self/status", NULL);
	return 1;
}

TEST(only_requested_capabilities_are_kept_across_exec)
{
	NEED_ROOT();
	CHECK_INT(forked_status(exec_unprivileged_and_check), 0);
}

TEST_FORKED(no_new_privileges_cannot_be_unset)
{
	struct err e;

	CHECK(caps_no_new_privs(&e) == 0);
	CHECK_FAILS(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
	CHECK_INT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
}
