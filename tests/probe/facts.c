/* facts.c - see probe.h. Uses system calls where possible: /proc may be missing or manipulated. */
#include "probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

static void ids(void)
{
	unsigned r, e, s;

	syscall(SYS_getresuid, &r, &e, &s);
	printf("uid %u %u %u\n", r, e, s);
}

static void group_id(void)
{
	unsigned r, e, s;

	syscall(SYS_getresgid, &r, &e, &s);
	printf("gid %u %u %u\n", r, e, s);
}

static void groups(void)
{
	gid_t list[128];
	int n = getgroups(128, list);

	printf("groups");
	for (int i = 0; i < n; i++)
		printf(" %u", list[i]);
	putchar('\n');
}

static void caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct half[2] = { { 0 }, { 0 } };
	unsigned long long bounding = 0, ambient = 0;

	syscall(SYS_capget, &head, half);
	for (int cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			bounding |= 1ull << cap;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
			ambient |= 1ull << cap;
	}
	printf("effective %x%08x\n", half[1].effective, half[0].effective);
	printf("permitted %x%08x\n", half[1].permitted, half[0].permitted);
	printf("inheritable %x%08x\n", half[1].inheritable, half[0].inheritable);
	printf("bounding %09llx\nambient %09llx\n", bounding, ambient);
}

static void switches(void)
{
	printf("no_new_privs %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	printf("seccomp %d\n", prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
}

static void process(void)
{
	mode_t mask = umask(0);
	char cwd[4096];

	umask(mask);
	printf("pid %d\nparent %d\n", getpid(), getppid());
	printf("group %s\n", getpgrp() == getpid() ? "own" : "shared");
	printf("session %d\n", getsid(0));
	printf("umask %03o\n", mask);
	printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
	printf("folder %s\n", syscall(SYS_getcwd, cwd, sizeof(cwd)) < 0 ? "?" : cwd);
}

static void terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY);

	printf("terminal %s\n", fd >= 0 ? "yes" : strerrorname_np(errno));
	if (fd >= 0)
		close(fd);
	printf("stdio");
	for (int i = 0; i < 3; i++) {
		struct stat st;

		printf(" %s", fstat(i, &st) < 0      ? "closed"
			      : isatty(i)            ? "terminal"
			      : S_ISFIFO(st.st_mode) ? "pipe"
			      : S_ISCHR(st.st_mode)  ? "device"
						     : "other");
	}
	putchar('\n');
}

static void signals(void)
{
	struct sigaction now;
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	printf("blocked");
	for (int i = 1; i <= 64; i++)
		if (sigismember(&mask, i) == 1)
			printf(" %d", i);
	printf("\nignored");
	for (int i = 1; i <= 64; i++)
		if (sigaction(i, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			printf(" %d", i);
	putchar('\n');
}

static void scheduling(void)
{
	cpu_set_t set;

	printf("processors %d\n",
	       sched_getaffinity(0, sizeof(set), &set) < 0 ? -1 : CPU_COUNT(&set));
}

static void limits(void)
{
	static const struct {
		const char *name;
		int which;
	} rows[] = {
		{ "NOFILE", RLIMIT_NOFILE },     { "NPROC", RLIMIT_NPROC },
		{ "CORE", RLIMIT_CORE },         { "SIGPENDING", RLIMIT_SIGPENDING },
		{ "MSGQUEUE", RLIMIT_MSGQUEUE }, { "MEMLOCK", RLIMIT_MEMLOCK },
		{ "RTPRIO", RLIMIT_RTPRIO },     { "NICE", RLIMIT_NICE },
		{ "FSIZE", RLIMIT_FSIZE },
	};
	struct rlimit r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (getrlimit((__rlimit_resource_t)rows[i].which, &r) == 0)
			printf("limit %s %lld %lld\n", rows[i].name, (long long)r.rlim_cur,
			       (long long)r.rlim_max);
}

/* Every line of a file, after its key. */
static void lines_of(const char *key, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[4096];

	while (f && fgets(line, sizeof(line), f))
		printf("%s %s", key, line);
	if (f)
		fclose(f);
	else
		printf("%s ? %s\n", key, strerrorname_np(errno));
}

static void oom(void)
{
	lines_of("oom_score_adj", "/proc/self/oom_score_adj");
}
static void mounts(void)
{
	lines_of("mount", "/proc/self/mountinfo");
}
static void cgroup(void)
{
	lines_of("cgroup", "/proc/self/cgroup");
}
static void uid_map(void)
{
	lines_of("uid_map", "/proc/self/uid_map");
}
static void routes(void)
{
	lines_of("route4", "/proc/net/route");
	lines_of("route6", "/proc/net/ipv6_route");
}

static void boot_id(void)
{
	char text[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	printf("boot %.*s", (int)(n < 0 ? 0 : n), n > 0 ? text : "\n");
	close(fd);
}

static void host_name(void)
{
	struct utsname u;

	uname(&u);
	printf("hostname %s\ndomainname %s\n", u.nodename, u.domainname);
}

static void interfaces(void)
{
	struct if_nameindex *all = if_nameindex();

	for (struct if_nameindex *i = all; i && i->if_name; i++)
		printf("interface %s\n", i->if_name);
	if (all)
		if_freenameindex(all);
}

/* Everything in a network namespace that shows earlier use of it. */
static void network(void)
{
	static const char *const files[] = { "dev",  "snmp",  "netstat",   "snmp6",
					     "igmp", "igmp6", "rt6_stats", "ip6_flowlabel" };
	char path[64], line[4096];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/net/%s", files[i]);
		f = fopen(path, "re");
		if (!f)
			printf("network %s ? %s\n", files[i], strerrorname_np(errno));
		while (f && fgets(line, sizeof(line), f))
			printf("network %s %s", files[i], line);
		if (f)
			fclose(f);
	}
}

static void environment(void)
{
	for (char **e = environ; *e; e++)
		printf("env %s\n", *e);
}

static void each_entry(const char *key, const char *dir, int digits_only)
{
	DIR *d = opendir(dir);
	struct dirent *de;

	if (!d)
		printf("%s ? %s\n", key, strerrorname_np(errno));
	while (d && (de = readdir(d)) != NULL) {
		char path[512], target[512] = "";
		struct stat st;
		ssize_t n;

		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, "..") ||
		    (digits_only && strspn(de->d_name, "0123456789") != strlen(de->d_name)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, de->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n >= 0)
			target[n] = 0;
		else if (lstat(path, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
			snprintf(target, sizeof(target), "%c%u:%u", S_ISCHR(st.st_mode) ? 'c' : 'b',
				 major(st.st_rdev), minor(st.st_rdev));
		if (atoi(de->d_name) == (d ? dirfd(d) : -1) && !strcmp(key, "fd"))
			continue;
		printf("%s %s%s%s\n", key, de->d_name, *target ? " " : "", target);
	}
	if (d)
		closedir(d);
}

static void descriptors(void)
{
	each_entry("fd", "/proc/self/fd", 1);
}
static void namespaces(void)
{
	each_entry("ns", "/proc/self/ns", 0);
}
static void processes(void)
{
	each_entry("process", "/proc", 1);
}
static void devices(void)
{
	each_entry("dev", "/dev", 0);
}
static void root(void)
{
	each_entry("root", "/", 0);
}

/* Does the call pass the filter? The result of the kernel after that does not matter: it may load a
 * module for a family that is not built in. The upper half of an argument must have no effect. */
static int passes(unsigned long high, int family, int type, int proto)
{
	long fd = syscall(SYS_socket, high | (unsigned)family, high | (unsigned)type,
			  high | (unsigned)proto);

	if (fd >= 0)
		close((int)fd);
	/* The filter answers as a kernel without audit does: at EPERM, useradd ends. */
	if (family == AF_NETLINK && proto == NETLINK_AUDIT)
		return fd >= 0 || errno != EPROTONOSUPPORT;
	return fd >= 0 || errno != EPERM;
}

static int any_type_passes(int family)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RDM, SOCK_RAW,
				     6,           10 };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (passes(0, family, types[i], 0) || passes(1ul << 32, family, types[i], 0) ||
		    passes(1ul << 63, family, types[i], 0))
			return 1;
	return 0;
}

/* Without a filter all of them pass, and each makes the host load a kernel module: so only a few are
 * tried. */
enum { ENOUGH = 20 };

static void protocols(const char *key, int family)
{
	int seen = 0;

	printf("%s", key);
	for (int type = 1; type < 11; type++)
		for (int proto = 0; proto < 264 && seen < ENOUGH; proto++)
			if (passes(0, family, type, proto) ||
			    passes(1ul << 32, family, type, proto)) {
				printf(" %d:%d", type, proto);
				seen++;
			}
	putchar('\n');
}

static void families(void)
{
	int seen = 0;

	printf("families");
	for (int family = 0; family < 256 && seen < ENOUGH; family++)
		if (any_type_passes(family)) {
			printf(" %d", family);
			seen++;
		}
	printf("\nnetlinks");
	for (int proto = seen = 0; proto < 64 && seen < ENOUGH; proto++)
		if (passes(0, AF_NETLINK, SOCK_RAW, proto) ||
		    passes(1ul << 32, AF_NETLINK, SOCK_DGRAM, proto)) {
			printf(" %d", proto);
			seen++;
		}
	putchar('\n');
	protocols("inet", AF_INET);
	protocols("inet6", AF_INET6);
}

static const struct {
	const char *key;
	void (*print)(void);
	int on_demand; /* not part of "all" */
} facts[] = {
	{ "uid", ids, 0 },
	{ "gid", group_id, 0 },
	{ "groups", groups, 0 },
	{ "caps", caps, 0 },
	{ "switches", switches, 0 },
	{ "process", process, 0 },
	{ "terminal", terminal, 0 },
	{ "signals", signals, 0 },
	{ "scheduling", scheduling, 0 },
	{ "limits", limits, 0 },
	{ "oom", oom, 0 },
	{ "mounts", mounts, 0 },
	{ "cgroup", cgroup, 0 },
	{ "uid_map", uid_map, 0 },
	{ "routes", routes, 0 },
	{ "hostname", host_name, 0 },
	{ "boot", boot_id, 0 },
	{ "interfaces", interfaces, 0 },
	{ "network", network, 0 },
	{ "env", environment, 0 },
	{ "fds", descriptors, 0 },
	{ "ns", namespaces, 0 },
	{ "processes", processes, 0 },
	{ "devices", devices, 0 },
	{ "root", root, 0 },
	{ "families", families, 1 },
};

static int wanted(char *const *keys, size_t i)
{
	if (!*keys)
		return !facts[i].on_demand;
	for (; *keys; keys++)
		if (!strcmp(*keys, facts[i].key))
			return 1;
	return 0;
}

void facts_print(char *const *keys)
{
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (wanted(keys, i))
			facts[i].print();
}
