/* probe_kernel.c - see probe.h. Interfaces of the kernel that no program of a box gets. An attempt that succeeds changes
 * nothing of the host: it opens and does not write. */
#include "prove/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static int kernel_user_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static int kernel_clone_namespace(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : 0;
}

static int kernel_mount(void)
{
	mkdir("prove-mount", 0700);
	return mount("tmpfs", "prove-mount", "tmpfs", 0, NULL);
}

static int kernel_enter_namespace(void)
{
	int fd = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : setns(fd, 0);
}

static int kernel_bpf(void)
{
	char attr[128] = { 0 };

	return syscall(SYS_bpf, 0, attr, sizeof(attr)) < 0 && errno != EINVAL ? -1 : 0;
}

static int kernel_perf(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr) };

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0 ? -1 : 0;
}

static int kernel_io_uring(void)
{
	char params[256] = { 0 };

	return syscall(SYS_io_uring_setup, 1, params) < 0 ? -1 : 0;
}

static int kernel_userfaultfd(void)
{
	return syscall(SYS_userfaultfd, 1 /* user mode only */) < 0 ? -1 : 0;
}

static int kernel_keys(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 ? -1 : 0;
}

static int kernel_modules(void)
{
	return syscall(SYS_finit_module, -1, "", 0) < 0 && errno != EBADF ? -1 : 0;
}

static int kernel_trace_first(void)
{
	errno = EPERM;
	if (probe_number("only_pid")) /* pid 1 is that of the host */
		return -1;
	return ptrace(PTRACE_SEIZE, 1, NULL, NULL) < 0 ? -1 : 0;
}

static int kernel_log(void)
{
	char text[64];

	return klogctl(3, text, sizeof(text)) < 0 ? -1 : 0;
}

static int kernel_memory(void)
{
	return probe_read("/proc/kcore") == 0 || probe_read("/dev/mem") == 0 ||
			       probe_read("/proc/kmsg") == 0 || probe_read("/dev/kmsg") == 0
		       ? 0
		       : -1;
}

static int kernel_lists(void)
{
	return probe_read("/proc/keys") == 0 || probe_read("/proc/timer_list") == 0 ||
			       probe_read("/proc/sched_debug") == 0
		       ? 0
		       : -1;
}

static int kernel_may_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static int kernel_settings(void)
{
	return kernel_may_write("/proc/sys/kernel/core_pattern") == 0 ||
			       kernel_may_write("/proc/sys/vm/drop_caches") == 0 ||
			       kernel_may_write("/proc/sys/kernel/hostname") == 0
		       ? 0
		       : -1;
}

static int kernel_own_oom_score(void)
{
	return kernel_may_write("/proc/self/oom_score_adj");
}

static int kernel_sysrq(void)
{
	return kernel_may_write("/proc/sysrq-trigger");
}

/* Boxes have a small list of processors there, and nothing of the kernel or its devices. */
static int kernel_sysfs(void)
{
	return access("/sys/kernel", F_OK) == 0 || access("/sys/class", F_OK) == 0 ? 0 : -1;
}

static int kernel_device(void)
{
	unlink("prove-node");
	return mknod("prove-node", S_IFCHR | 0666, makedev(1, 1));
}

static int kernel_programs(void)
{
	int fd = open("/usr/bin/atoll-prove", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	if (fd >= 0)
		unlink("/usr/bin/atoll-prove");
	return fd < 0 ? -1 : 0;
}

static int kernel_become_root(void)
{
	return setresuid(0, 0, 0);
}

static int kernel_host_name(void)
{
	return sethostname("atoll-prove", 11);
}

static int kernel_terminal_input(void)
{
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	/* EPERM of the kernel itself where it is switched off. */
	return fd < 0 ? -1 : ioctl(fd, TIOCSTI, "x");
}

static int kernel_filter_off(void)
{
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");
	int mode = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Seccomp:", 8))
			mode = atoi(line + 8);
	if (f)
		fclose(f);
	errno = EPERM;
	return mode == 0 ? 0 : -1;
}

/* More instances of inotify than one user of the host has by default. */
static int kernel_inotify(void)
{
	for (int i = 0; i < 100; i++)
		if (inotify_init1(IN_CLOEXEC) < 0)
			return -1;
	return 0;
}

static int kernel_core_file(void)
{
	struct rlimit core;

	getrlimit(RLIMIT_CORE, &core);
	errno = EPERM;
	return core.rlim_cur > 1 ? 0 : -1;
}

/* Signals that the starter of the keeper ignores or blocks. */
static int kernel_signals(void)
{
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	for (int s = 1; s < 32; s++) {
		struct sigaction a;

		if (sigaction(s, NULL, &a) == 0 &&
		    (a.sa_handler == SIG_IGN || sigismember(&blocked, s) == 1))
			return 0;
	}
	errno = ENODATA;
	return -1;
}

const struct probe_row probe_kernel[] = {
	{ "kernel", "a user namespace", kernel_user_namespace },
	{ "kernel", "a user namespace by clone", kernel_clone_namespace },
	{ "kernel", "mount", kernel_mount },
	{ "kernel", "another network namespace", kernel_enter_namespace },
	{ "kernel", "bpf", kernel_bpf },
	{ "kernel", "perf events", kernel_perf },
	{ "kernel", "io_uring", kernel_io_uring },
	{ "kernel", "userfaultfd", kernel_userfaultfd },
	{ "kernel", "keys", kernel_keys },
	{ "kernel", "modules", kernel_modules },
	{ "kernel", "tracing pid 1", kernel_trace_first },
	{ "kernel", "its log", kernel_log },
	{ "kernel", "its memory", kernel_memory },
	{ "kernel", "its lists", kernel_lists },
	{ "kernel", "its settings", kernel_settings },
	{ "kernel", "the own OOM score", kernel_own_oom_score },
	{ "kernel", "sysrq", kernel_sysrq },
	{ "kernel", "sysfs", kernel_sysfs },
	{ "kernel", "a device node", kernel_device },
	{ "kernel", "programs of the host", kernel_programs },
	{ "kernel", "root of the box", kernel_become_root },
	{ "kernel", "the host name", kernel_host_name },
	{ "kernel", "input of a terminal", kernel_terminal_input },
	{ "kernel", "no filter", kernel_filter_off },
	{ "kernel", "inotify instances", kernel_inotify },
	{ "kernel", "core files", kernel_core_file },
	{ "kernel", "inherited signals", kernel_signals },
	{ 0 },
};
