/* device_test.c - device programs of cgroup v2: the rows of each tier, and a box that replaces those of the parent. */
#include "jail/device.h"
#include "jail/launch.h"
#include "base/cleanup.h"
#include "forked.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static char parent[64], below[80];

/* A cgroup with one below it, and nodes of two devices, in a mount namespace that ends with this process. */
static int device_setup(void)
{
	snprintf(parent, sizeof(parent), "/mnt/cg/atoll-device-test-%d", (int)getpid());
	snprintf(below, sizeof(below), "%s/box", parent);
	return unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", "/mnt", "tmpfs", 0, "mode=755") == 0 && mkdir("/mnt/cg", 0755) == 0 &&
	       mount("none", "/mnt/cg", "cgroup2", 0, NULL) == 0 && mkdir(parent, 0755) == 0 &&
	       mkdir(below, 0755) == 0 && mknod("/mnt/zero", S_IFCHR | 0600, makedev(1, 5)) == 0 &&
	       mknod("/mnt/loop", S_IFCHR | 0600, makedev(10, 237)) == 0 &&
	       mknod("/mnt/kvm", S_IFCHR | 0600, makedev(10, 232)) == 0;
}

static void device_remove(void)
{
	rmdir(below);
	rmdir(parent);
}

static int device_attach_to(const char *cgroup, unsigned tier)
{
	auto_fd int dir = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e;

	return device_attach(dir, tier, &e);
}

/* errno of opening a node by a process in the cgroup; 0: it opens. A device without a driver is ENXIO, not EPERM. */
static int device_opens(const char *cgroup, const char *node)
{
	char path[128];
	int status, fd;
	pid_t pid = fork();

	if (pid == 0) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "0", 1) != 1)
			_exit(255);
		fd = open(node, O_RDWR | O_CLOEXEC);
		_exit(fd >= 0 || errno == ENXIO || errno == ENODEV ? 0 : errno);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

#define NEED_CGROUP2()                                                                             \
	do {                                                                                       \
		if (geteuid() != 0 || !device_setup())                                             \
			SKIP("needs root and a mount of cgroup2");                                 \
		if (device_attach_to(parent, JAIL_CONTAINER) < 0) {                                \
			device_remove();                                                           \
			SKIP("this host loads no device programs");                                \
		}                                                                                  \
	} while (0)

TEST_FORKED(only_virtual_machines_open_kvm)
{
	NEED_CGROUP2();
	CHECK_INT(device_opens(below, "/mnt/zero"), 0);
	CHECK_INT(device_opens(below, "/mnt/kvm"), EPERM);
	CHECK_INT(device_attach_to(below, JAIL_MICROVM), 0);
	CHECK_INT(device_opens(below, "/mnt/zero"), 0);
	CHECK_INT(device_opens(below, "/mnt/kvm"), 0);
	CHECK_INT(device_opens(below, "/mnt/loop"), EPERM);
	CHECK_INT(device_opens(parent, "/mnt/kvm"), EPERM);
	device_remove();
}

/* Keepers before this table had tiers attached a program that no box could replace. */
TEST_FORKED(the_program_of_an_older_keeper_is_replaced)
{
	const struct bpf_insn none[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
					 { .code = BPF_JMP | BPF_EXIT } };
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
				.insns = (uint64_t)(uintptr_t)none,
				.insn_cnt = 2,
				.license = (uint64_t)(uintptr_t) "Apache-2.0" };
	union bpf_attr detach = { .attach_type = BPF_CGROUP_DEVICE }, attach = detach;
	int dir, prog;

	NEED_CGROUP2();
	dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prog = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
	detach.target_fd = attach.target_fd = (uint32_t)dir;
	attach.attach_bpf_fd = (uint32_t)prog;
	CHECK(dir >= 0 && prog >= 0 &&
	      !syscall(SYS_bpf, BPF_PROG_DETACH, &detach, sizeof(detach)) &&
	      !syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof(attach)));
	CHECK_INT(device_opens(below, "/mnt/zero"), EPERM);
	CHECK_INT(device_attach_to(parent, JAIL_CONTAINER), 0);
	CHECK_INT(device_opens(below, "/mnt/zero"), 0);
	CHECK_INT(device_attach_to(below, JAIL_MICROVM), 0);
	close(dir);
	close(prog);
	device_remove();
}
