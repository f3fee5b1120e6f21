/* procimagebox.c - forks a running program into namespaces of its own, for tests/system/procimage.sh.
 *
 *	procimagebox fork PID COPIES FOLDER	COPIES copies; output of copy N in FOLDER/N. Prints the times, then
 *						waits for the end of standard input, then ends the copies.
 *	procimagebox confined PID COPIES FOLDER	the same in user namespaces of their own, with the user, filter and
 *						landlock rules of boxes
 *	procimagebox image PID FILE		writes the image and reads it again
 *	procimagebox kill PID TIMES		kills a capturing process TIMES times at random moments
 *	procimagebox steps PID			kills a capturing process after its first call of ptrace, a new one after its
 *						second, and so on; after the 100th, when the source continues, every 20th */
#include "base/cleanup.h"
#include "base/err.h"
#include "jail/landlock.h"
#include "jail/seccomp.h"
#include "procimage/capture.h"
#include "procimage/confine_list.h"
#include "procimage/image_zygote.h"
#include "procimage/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COPIES_MOST = 64, HELPER_PID = 4000000 };

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int fail(const struct err *e)
{
	fprintf(stderr, "procimagebox: %s\n", e->msg);
	return 1;
}

/* The first three descriptors, where they are pipes, sockets or terminals. */
static unsigned find_outside(pid_t pid, struct capture_outside *outside)
{
	unsigned n = 0;

	for (int i = 0; i < 3; i++) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, i);
		if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
			outside[n++].inode = st.st_ino;
	}
	return n;
}

static int take(struct capture *c, pid_t pid, struct err *e)
{
	struct capture_outside outside[3];
	struct capture_options o = { .outside = outside, .noutside = find_outside(pid, outside) };

	return capture_take(c, pid, &o, e);
}

/* ---- namespaces ---- */

struct init_pipes {
	int maps[2], ready[2];
};

static int init_main(void *arg)
{
	struct init_pipes *p = arg;
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	char byte;
	int s;

	close(p->maps[1]);
	(void)!read(p->maps[0], &byte, 1);
	s = socket(AF_INET, SOCK_DGRAM, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ioctl(s, SIOCSIFFLAGS, &lo);
	close(s);
	close(p->ready[1]);
	for (;;)
		if (waitpid(-1, NULL, 0) < 0)
			pause();
	return 0;
}

static void write_map(pid_t pid, const char *name)
{
	char path[64];
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0 100000 65536", 14) != 14)
		perror(path);
}

static void ignore_signal(int n)
{
	(void)n;
}

static int start_init(int namespaces)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct init_pipes p;
	char byte;
	int pid;

	signal(SIGCHLD, ignore_signal); /* so that pause() of the init returns */
	if (pipe2(p.maps, O_CLOEXEC) < 0 || pipe2(p.ready, O_CLOEXEC) < 0)
		return -1;
	pid = clone(init_main, stack + sizeof(stack), namespaces | SIGCHLD, &p);
	if (pid > 0 && namespaces & CLONE_NEWUSER) {
		write_map(pid, "uid_map");
		write_map(pid, "gid_map");
	}
	close(p.maps[0]);
	close(p.maps[1]);
	close(p.ready[1]);
	while (pid > 0 && read(p.ready[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(p.ready[0]);
	return pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
}

/* The rules of boxes, as far as paths of this machine have them. */
static int make_confinement(struct confine_spec *spec, struct seccomp *filter, struct err *e)
{
	static struct confine_path paths[16];

	*spec = (struct confine_spec){ .uid = 1000, .gid = 1000, .paths = paths };
	if (seccomp_compile(filter, 0, e) < 0)
		return -1;
	spec->filter = filter->code;
	spec->filter_rows = filter->len;
	if (landlock_abi() < 1)
		return 0;
	spec->landlock_handled = (UINT64_C(1) << 13) - 1; /* all rights of ABI 1 */
	for (unsigned i = 0; i < landlock_nrows && spec->npaths < 16; i++)
		if (landlock_rows[i].path && landlock_rows[i].bits & spec->landlock_handled)
			paths[spec->npaths++] =
				(struct confine_path){ landlock_rows[i].path,
						       landlock_rows[i].bits &
							       spec->landlock_handled };
	return 0;
}

/* ---- fork ---- */

static int fork_copy(struct image_zygote *z, const struct image *im, int namespaces,
		     const char *folder, int i, int *out, struct err *e)
{
	int fds[32], none = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[4096];
	struct image_target t = { .init = start_init(namespaces),
				  .namespaces = namespaces,
				  .helper = HELPER_PID,
				  .outside = fds,
				  .noutside = plan_count_outside(&im, 1) };
	uint64_t began;
	unsigned k = 0;
	int output, rc;

	snprintf(path, sizeof(path), "%s/%d", folder, i);
	output = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (t.init < 0 || output < 0)
		return err_sys(e, "prepare copy %d", i);
	for (uint64_t d = 0; d < im->header.count[TABLE_DESCRIPTORS] && k < 32; d++)
		if (image_descriptors(im)[d].kind == DESCRIPTOR_OUTSIDE)
			fds[k++] = image_descriptors(im)[d].number ? output : none;
	began = now_us();
	rc = image_zygote_fork(z, &t, out, e);
	if (rc == 0)
		printf("copy %d us=%llu\n", i, (unsigned long long)(now_us() - began));
	close(output);
	close(none);
	return rc;
}

static int run_fork(pid_t pid, int copies, const char *folder, int confined)
{
	struct capture c;
	struct image_zygote z;
	struct err e = { 0 };
	struct confine_spec spec;
	struct seccomp filter;
	int namespaces = CLONE_NEWPID | CLONE_NEWNET | (confined ? CLONE_NEWUSER : 0);
	int sockets[COPIES_MOST];
	char byte;

	if (copies < 1 || copies > COPIES_MOST) {
		fprintf(stderr, "procimagebox: copies 1 to %d\n", COPIES_MOST);
		return 2;
	}
	if ((confined && make_confinement(&spec, &filter, &e) < 0) || take(&c, pid, &e) < 0)
		return fail(&e);
	printf("stopped us=%u took us=%u areas=%llu threads=%llu descriptors=%llu bytes=%llu\n",
	       c.stopped_us, c.took_us, (unsigned long long)c.image.header.count[TABLE_AREAS],
	       (unsigned long long)c.image.header.count[TABLE_THREADS],
	       (unsigned long long)c.image.header.count[TABLE_DESCRIPTORS],
	       (unsigned long long)procimage_memory_bytes(&c.image));
	fflush(stdout);
	if (image_zygote_build(&z, &c.image,
			       &(struct image_pages){ .process = capture_memory_pid(&c) },
			       confined ? &spec : NULL, &e) < 0) {
		capture_fini(&c);
		return fail(&e);
	}
	printf("zygote us=%u\n", z.took_us);
	for (int i = 0; i < copies; i++)
		if (fork_copy(&z, &c.image, namespaces, folder, i, &sockets[i], &e) < 0) {
			image_zygote_fini(&z);
			capture_fini(&c);
			return fail(&e);
		}
	for (int i = 0; i < copies; i++)
		if (write(sockets[i], "g", 1) != 1)
			perror("procimagebox: go");
	capture_fini(&c);
	printf("running\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0 || errno == EINTR)
		errno = 0;
	image_zygote_fini(&z);
	return 0; /* the inits of the namespaces end with this process */
}

/* ---- image ---- */

static int run_image(pid_t pid, const char *path)
{
	struct capture c;
	struct image im;
	struct err e = { 0 };
	auto_fd int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	auto_free char *bytes = NULL;
	struct stat st;
	int rc;

	if (take(&c, pid, &e) < 0)
		return fail(&e);
	rc = procimage_encode(&c.image, fd, &e);
	capture_fini(&c);
	if (rc < 0 || fstat(fd, &st) < 0)
		return fail(&e);
	bytes = malloc((size_t)st.st_size);
	if (!bytes || pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
		return 1;
	if (procimage_decode(&im, bytes, (size_t)st.st_size, &e) < 0)
		return fail(&e);
	printf("image bytes=%lld pid=%d\n", (long long)st.st_size, image_program(&im)->pid);
	return 0;
}

/* ---- kill ---- */

static long ptrace_calls_left; /* 0: no end */

/* In place of the C library's, for all code of this executable. */
long ptrace(enum __ptrace_request request, ...)
{
	va_list ap;
	long rc;

	va_start(ap, request);
	pid_t pid = va_arg(ap, pid_t);
	void *addr = va_arg(ap, void *), *data = va_arg(ap, void *);
	va_end(ap);
	rc = syscall(SYS_ptrace, request, pid, addr, data);
	if (ptrace_calls_left && --ptrace_calls_left == 0)
		kill(getpid(), SIGKILL);
	return rc;
}

/* A process that captures and ends; it kills itself after `calls` of ptrace. */
static pid_t start_capture(pid_t pid, long calls)
{
	pid_t child = fork();

	if (child == 0) {
		struct capture c;
		struct err e = { 0 };

		ptrace_calls_left = calls;
		if (take(&c, pid, &e) < 0) {
			fail(&e);
			_exit(1);
		}
		capture_fini(&c);
		_exit(0);
	}
	return child;
}

static int is_gone(pid_t pid, int turn)
{
	if (kill(pid, 0) == 0)
		return 0;
	fprintf(stderr, "procimagebox: process %d has ended after turn %d\n", pid, turn);
	return 1;
}

static int run_kill(pid_t pid, int times)
{
	unsigned killed = 0;

	for (int i = 0; i < times; i++) {
		pid_t child = start_capture(pid, 0);
		int status;

		usleep((useconds_t)(rand() % 6000)); /* from the first call to after the last one */
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		killed += WIFSIGNALED(status);
		if (is_gone(pid, i))
			return 1;
	}
	printf("killed=%u of %d\n", killed, times);
	return 0;
}

static int run_steps(pid_t pid)
{
	for (int calls = 1; calls < 100000; calls += calls < 100 ? 1 : 20) {
		int status;

		waitpid(start_capture(pid, calls), &status, 0);
		if (is_gone(pid, calls))
			return 1;
		if (WIFEXITED(status)) {
			printf("calls=%d status=%d\n", calls, WEXITSTATUS(status));
			return WEXITSTATUS(status);
		}
	}
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "fork"))
		return run_fork(atoi(argv[2]), atoi(argv[3]), argv[4], 0);
	if (argc == 5 && !strcmp(argv[1], "confined"))
		return run_fork(atoi(argv[2]), atoi(argv[3]), argv[4], 1);
	if (argc == 4 && !strcmp(argv[1], "image"))
		return run_image(atoi(argv[2]), argv[3]);
	if (argc == 4 && !strcmp(argv[1], "kill"))
		return run_kill(atoi(argv[2]), atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "steps"))
		return run_steps(atoi(argv[2]));
	fputs("usage: procimagebox fork|confined PID COPIES FOLDER | image PID FILE | kill PID TIMES | steps PID\n",
	      stderr);
	return 2;
}
