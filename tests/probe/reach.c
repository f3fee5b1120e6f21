/* reach.c - see probe.h. Actions on files, processes, sockets, mounts and devices. */
#include "probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- files ---- */

/* Reads at least one byte: masked files can be opened, but are empty. */
static int read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char c;
	ssize_t n = fd < 0 ? -1 : read(fd, &c, 1);

	if (n == 0)
		errno = ENODATA;
	return n > 0 ? 0 : -1;
}

static int write_file(const char *path)
{
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY) < 0 ? -1 : 0;
}

static int create_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd >= 0)
		unlink(path);
	return fd < 0 ? -1 : 0;
}

static int list_dir(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *de;

	while (d && (de = readdir(d)) != NULL)
		if (strcmp(de->d_name, ".") && strcmp(de->d_name, ".."))
			return 0;
	if (d)
		errno = ENODATA;
	return -1;
}

static int see(const char *path)
{
	struct stat st;

	return lstat(path, &st);
}

static int touch(const char *path)
{
	return utimensat(AT_FDCWD, path, NULL, 0);
}

static int same_mode(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : chmod(path, st.st_mode & 07777);
}

static int hard_link(const char *path)
{
	return link(path, "linked");
}

static int mark(const char *path)
{
	return (int)syscall(SYS_setxattr, path, "user.probe", "1", 1, 0);
}

/* Goes up from the current folder and from /, then down by name. */
static int climb(const char *path)
{
	char up[700] = "";

	for (int i = 0; i < 100; i++)
		strcat(up, "../");
	strcat(up, path + (*path == '/'));
	if (read_file(up) == 0)
		return 0;
	return chdir("/") < 0 ? -1 : read_file(up);
}

/* Tries every inherited descriptor as a path to the host. */
static int through_descriptors(const char *path)
{
	for (int fd = 0; fd < 1024; fd++) {
		char up[700];

		snprintf(up, sizeof(up), "../../../../../../../..%s", path);
		if (openat(fd, up, O_RDONLY) >= 0)
			return 0;
		snprintf(up, sizeof(up), "/proc/self/fd/%d/../../../../../../../..%s", fd, path);
		if (read_file(up) == 0)
			return 0;
	}
	return -1;
}

/* A link in the box to a path outside of it. */
static int through_link(const char *path)
{
	unlink("way");
	return symlink(path, "way") < 0 ? -1 : read_file("way");
}

static int through_proc(const char *path)
{
	static const char *const ways[] = { "/proc/self/root%s", "/proc/self/cwd/../../..%s",
					    "/proc/1/root%s", "/proc/1/cwd%s",
					    "/proc/thread-self/root%s" };
	char way[700];

	for (size_t i = 0; i < COUNT(ways); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(way, sizeof(way), ways[i], path);
#pragma GCC diagnostic pop
		if (read_file(way) == 0)
			return 0;
	}
	return -1;
}

static int lock_file(const char *path)
{
	int fd = open(path, O_RDONLY);

	return fd < 0 ? -1 : flock(fd, LOCK_EX | LOCK_NB);
}

/* Another process that opens the file waits until the lease is released, or for 45 seconds. */
static int lease(const char *path)
{
	int fd = open(path, O_RDONLY);

	return fd < 0 ? -1 : fcntl(fd, F_SETLEASE, F_WRLCK);
}

/* ---- device nodes ---- */

static int node(const char *path, unsigned long mode, unsigned major_, unsigned minor_)
{
	int made = (int)syscall(SYS_mknodat, AT_FDCWD, path, mode, makedev(major_, minor_));

	if (made == 0)
		unlink(path);
	return made;
}

static int mknod_char(const char *path)
{
	return node(path, S_IFCHR | 0666, 1, 3);
}

static int mknod_block(const char *path)
{
	return node(path, S_IFBLK | 0666, 7, 0);
}

/* Overlay marks a deleted file with a device (0, 0), which every user may create. */
static int mknod_whiteout(const char *path)
{
	return node(path, S_IFCHR | 0666, 0, 0);
}

static int mknod_high(const char *path)
{
	return node(path, 1ul << 40 | S_IFCHR | 0666, 0, 0);
}

/* ---- mounts and namespaces ---- */

static int mount_tmpfs(const char *arg)
{
	(void)arg;
	mkdir("m", 0700);
	return mount("tmpfs", "m", "tmpfs", 0, NULL);
}

static int mount_bind(const char *path)
{
	mkdir("m", 0700);
	return mount(path, "m", NULL, MS_BIND, NULL);
}

static int remount_writable(const char *path)
{
	return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL);
}

static int unmount(const char *path)
{
	return umount2(path, MNT_DETACH);
}

static int change_root(const char *path)
{
	return chroot(path);
}

static int pivot(const char *arg)
{
	return (void)arg, (int)syscall(SYS_pivot_root, ".", ".");
}

static int unshare_one(const char *flags)
{
	return (int)syscall(SYS_unshare, strtoul(flags, NULL, 0));
}

static int clone_one(const char *flags)
{
	long pid = syscall(SYS_clone, strtoul(flags, NULL, 0) | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : 0;
}

static int clone3_one(const char *flags)
{
	struct {
		unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, stack,
			stack_size, tls;
	} args = { .flags = strtoul(flags, NULL, 0), .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : 0;
}

static int enter(const char *path)
{
	int fd = open(path, O_RDONLY);

	return fd < 0 ? -1 : setns(fd, 0);
}

/* A common first step of exploits: a user namespace in which the process has all capabilities. */
static int nested(const char *arg)
{
	(void)arg;
	mkdir("m", 0700);
	if (unshare(CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0)
		return -1;
	return mount("tmpfs", "m", "tmpfs", 0, NULL);
}

/* ---- other processes ---- */

static int seize(const char *pid)
{
	return ptrace(PTRACE_SEIZE, atoi(pid), NULL, NULL) < 0 ? -1 : 0;
}

static int open_memory(const char *pid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%s/mem", pid);
	return open(path, O_RDWR) < 0 ? -1 : 0;
}

static int take_descriptor(const char *pid)
{
	long fd = syscall(SYS_pidfd_open, atoi(pid), 0);

	return fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 0, 0) < 0 ? -1 : 0;
}

/* EFAULT: the call was permitted, but the address was not mapped. */
static int read_memory(const char *pid)
{
	char c;
	struct iovec here = { &c, 1 }, there = { (void *)4096, 1 };

	return process_vm_readv(atoi(pid), &here, 1, &there, 1, 0) < 0 && errno != EFAULT ? -1 : 0;
}

/* A process that may change its uid may also take the uid of pid 1. */
static int trace_as(const char *uid)
{
	uid_t id = (uid_t)atoi(uid);

	if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		return -1;
	if (seize("1") == 0 || open_memory("1") == 0 || take_descriptor("1") == 0 ||
	    read_memory("1") == 0 || read_file("/proc/1/environ") == 0)
		return 0;
	return list_dir("/proc/1/fd");
}

static int signal_to(const char *pid)
{
	return kill(atoi(pid), 0);
}

static int end_process(const char *pid)
{
	return kill(atoi(pid), SIGKILL);
}

static int limits_of(const char *pid)
{
	struct rlimit r;

	return prlimit(atoi(pid), RLIMIT_NOFILE, NULL, &r);
}

static int higher_priority(const char *arg)
{
	return (void)arg, setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1);
}

static int real_time(const char *arg)
{
	struct sched_param p = { .sched_priority = 1 };

	return (void)arg, sched_setscheduler(0, SCHED_FIFO, &p);
}

static int raise_limit(const char *arg)
{
	struct rlimit r;

	(void)arg;
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_max++;
	return setrlimit(RLIMIT_NOFILE, &r);
}

/* Effective uid of a running program that is set-user-id root: su, which waits for a password. */
static int set_user_id(const char *path)
{
	char *argv[] = { "su", "root", NULL }, *env[] = { NULL }, status[64], line[256];
	unsigned uid = 0, euid = 0;
	int in[2], found = 0;
	pid_t pid;

	if (pipe(in) < 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(open("/dev/null", O_WRONLY), 1);
		dup2(1, 2);
		close(in[1]);
		execve(path, argv, env);
		_exit(127);
	}
	snprintf(status, sizeof(status), "/proc/%d/status", (int)pid);
	for (int tries = 0; !found && tries < 2000; tries++) {
		FILE *f = fopen(status, "r");
		int is_su = 0;

		if (!f) /* hidden: the process now belongs to another user */
			break;
		while (fgets(line, sizeof(line), f)) {
			is_su |= !strcmp(line, "Name:\tsu\n");
			if (is_su && sscanf(line, "Uid: %u %u", &uid, &euid) == 2)
				found = 1;
		}
		fclose(f);
		usleep(1000);
		if (waitpid(pid, NULL, WNOHANG) == pid)
			break;
	}
	kill(pid, SIGKILL);
	if (found && euid != geteuid())
		return 0;
	errno = found ? EPERM : ECHILD;
	return -1;
}

/* ---- sockets ---- */

static int connect_tcp(const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((unsigned short)atoi(port)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static int connect_tcp6(const char *port)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_port = htons((unsigned short)atoi(port)),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static socklen_t unix_address(struct sockaddr_un *a, const char *name, int is_abstract)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path + is_abstract, sizeof(a->sun_path) - 1, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)is_abstract +
			   strlen(name));
}

static int connect_unix(const char *name, int is_abstract)
{
	struct sockaddr_un to;
	socklen_t len = unix_address(&to, name, is_abstract);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, len);
}

static int connect_abstract(const char *name)
{
	return connect_unix(name, 1);
}

static int connect_path(const char *path)
{
	if (connect_unix(path, 0) == 0)
		return 0;
	/* Tries all socket types: the sockets of the keeper are SOCK_SEQPACKET. */
	if (errno == EPROTOTYPE || errno == ECONNREFUSED)
		return 0;
	return -1;
}

/* Connects to its own listener: does the box have a loopback interface? */
static int own_loopback(const char *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int in = socket(AF_INET, SOCK_STREAM, 0), out = socket(AF_INET, SOCK_STREAM, 0);

	(void)arg;
	if (bind(in, (struct sockaddr *)&at, len) < 0 || listen(in, 1) < 0 ||
	    getsockname(in, (struct sockaddr *)&at, &len) < 0)
		return -1;
	return connect(out, (struct sockaddr *)&at, len);
}

/* Sends nothing and closes the socket at once. The kernel sends the report of the membership later. */
static int join_group(const char *group)
{
	struct ip_mreq m = { .imr_interface.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), done;

	if (fd < 0 || inet_pton(AF_INET, group, &m.imr_multiaddr) != 1)
		return -1;
	done = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m));
	close(fd);
	return done;
}

/* It exists for some seconds after its socket was closed. */
static int flow_label(const char *arg)
{
	struct { /* from linux/in6.h, which conflicts with netinet/in.h */
		struct in6_addr to;
		uint32_t label;
		uint8_t action, share;
		uint16_t flags, expires, linger;
		uint32_t pad;
	} want = { IN6ADDR_LOOPBACK_INIT,
		   htonl(0x12345),
		   0 /* get */,
		   1 /* exclusive */,
		   1 /* create */,
		   6,
		   6,
		   0 };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), done;

	(void)arg;
	done = fd < 0 ? -1
		      : setsockopt(fd, IPPROTO_IPV6, 32 /* flow labels */, &want, sizeof(want));
	if (fd >= 0)
		close(fd);
	return done;
}

/* ---- objects that another box may have ---- */

static int listen_abstract(const char *name)
{
	struct sockaddr_un at;
	socklen_t len = unix_address(&at, name, 1);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 ? -1 : listen(fd, 1);
}

static int listen_tcp(const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((unsigned short)atoi(port)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -1 : listen(fd, 1);
}

static int keep_file(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_EXCL, 0666) < 0 ? -1 : 0;
}

static int make_segment(const char *key)
{
	return shmget((key_t)atoi(key), 4096, IPC_CREAT | IPC_EXCL | 0666) < 0 ? -1 : 0;
}

static int find_segment(const char *key)
{
	return shmget((key_t)atoi(key), 0, 0) < 0 ? -1 : 0;
}

static int make_queue(const char *name)
{
	return syscall(SYS_mq_open, name, O_CREAT | O_EXCL | O_RDWR, 0666, NULL) < 0 ? -1 : 0;
}

static int find_queue(const char *name)
{
	return syscall(SYS_mq_open, name, O_RDWR, 0, NULL) < 0 ? -1 : 0;
}

static int make_shm(const char *name)
{
	return shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0666) < 0 ? -1 : 0;
}

static int find_shm(const char *name)
{
	return shm_open(name, O_RDWR, 0) < 0 ? -1 : 0;
}

/* Lets a test on the host find this process by its command line. */
static int be_named(const char *word)
{
	return word ? 0 : -1;
}

static int set_host_name(const char *name)
{
	return sethostname(name, strlen(name));
}

const struct probe_action endpoint_actions[] = {
	{ "read", read_file },
	{ "write", write_file },
	{ "create", create_file },
	{ "list", list_dir },
	{ "see", see },
	{ "touch", touch },
	{ "chmod", same_mode },
	{ "link", hard_link },
	{ "mark", mark },
	{ "climb", climb },
	{ "descriptors", through_descriptors },
	{ "through-link", through_link },
	{ "through-proc", through_proc },
	{ "lock", lock_file },
	{ "lease", lease },
	{ "mknod-char", mknod_char },
	{ "mknod-block", mknod_block },
	{ "mknod-whiteout", mknod_whiteout },
	{ "mknod-high", mknod_high },
	{ "mount", mount_tmpfs },
	{ "bind", mount_bind },
	{ "remount", remount_writable },
	{ "umount", unmount },
	{ "chroot", change_root },
	{ "pivot", pivot },
	{ "unshare", unshare_one },
	{ "clone", clone_one },
	{ "clone3", clone3_one },
	{ "setns", enter },
	{ "nested", nested },
	{ "ptrace", seize },
	{ "memory", open_memory },
	{ "take-fd", take_descriptor },
	{ "read-memory", read_memory },
	{ "trace-as", trace_as },
	{ "signal", signal_to },
	{ "kill", end_process },
	{ "limits-of", limits_of },
	{ "priority", higher_priority },
	{ "real-time", real_time },
	{ "raise-limit", raise_limit },
	{ "set-user-id", set_user_id },
	{ "tcp", connect_tcp },
	{ "tcp6", connect_tcp6 },
	{ "abstract", connect_abstract },
	{ "socket-at", connect_path },
	{ "own-loopback", own_loopback },
	{ "join-group", join_group },
	{ "flow-label", flow_label },
	{ "hold-abstract", listen_abstract },
	{ "hold-tcp", listen_tcp },
	{ "hold-file", keep_file },
	{ "hold-segment", make_segment },
	{ "segment", find_segment },
	{ "hold-queue", make_queue },
	{ "queue", find_queue },
	{ "hold-shm", make_shm },
	{ "shm", find_shm },
	{ "host-name", set_host_name },
	{ "named", be_named },
};
const size_t endpoint_nactions = COUNT(endpoint_actions);
