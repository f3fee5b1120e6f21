/* procimagebox.c - forks a running program into namespaces of its own, for tests/system/procimage.sh.
 *
 *	procimagebox fork PID COPIES FOLDER	COPIES copies; output of copy N in FOLDER/N. Prints the times, then
 *						waits for the end of standard input, then ends the copies.
 *	procimagebox image PID FILE		writes the image and reads it again
 *	procimagebox kill PID TIMES		kills a capturing process TIMES times at random moments
 *	procimagebox table			the rows of keep.h as a table of docs/checkpoints.md */
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/capture.h"
#include "procimage/image_zygote.h"
#include "procimage/keep.h"
#include "procimage/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
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

static int init_main(void *ready)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ioctl(s, SIOCSIFFLAGS, &lo);
	close(s);
	close(*(int *)ready);
	for (;;)
		if (waitpid(-1, NULL, 0) < 0)
			pause();
	return 0;
}

static void ignore_signal(int n)
{
	(void)n;
}

static int start_init(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int ready[2], pid;
	char byte;

	signal(SIGCHLD, ignore_signal); /* so that pause() of the init returns */
	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = clone(init_main, stack + sizeof(stack), CLONE_NEWPID | CLONE_NEWNET | SIGCHLD,
		    &ready[1]);
	close(ready[1]);
	while (pid > 0 && read(ready[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(ready[0]);
	return pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
}

/* ---- fork ---- */

static int fork_copy(struct image_zygote *z, const struct image *im, const char *folder, int i,
		     int *out, struct err *e)
{
	int fds[32], none = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[4096];
	struct image_target t = { .init = start_init(),
				  .namespaces = CLONE_NEWPID | CLONE_NEWNET,
				  .helper = HELPER_PID,
				  .outside = fds,
				  .noutside = plan_count_outside(im) };
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

static int run_fork(pid_t pid, int copies, const char *folder)
{
	struct capture c;
	struct image_zygote z;
	struct err e = { 0 };
	int sockets[COPIES_MOST];
	char byte;

	if (copies < 1 || copies > COPIES_MOST) {
		fprintf(stderr, "procimagebox: copies 1 to %d\n", COPIES_MOST);
		return 2;
	}
	if (take(&c, pid, &e) < 0)
		return fail(&e);
	printf("stopped us=%u took us=%u areas=%llu threads=%llu descriptors=%llu bytes=%llu\n",
	       c.stopped_us, c.took_us, (unsigned long long)c.image.header.count[TABLE_AREAS],
	       (unsigned long long)c.image.header.count[TABLE_THREADS],
	       (unsigned long long)c.image.header.count[TABLE_DESCRIPTORS],
	       (unsigned long long)procimage_memory_bytes(&c.image));
	fflush(stdout);
	if (image_zygote_build(&z, &c.image, capture_memory_pid(&c), &e) < 0) {
		capture_fini(&c);
		return fail(&e);
	}
	printf("zygote us=%u\n", z.took_us);
	for (int i = 0; i < copies; i++)
		if (fork_copy(&z, &c.image, folder, i, &sockets[i], &e) < 0) {
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

static int run_kill(pid_t pid, int times)
{
	unsigned killed = 0, finished = 0;

	for (int i = 0; i < times; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			struct capture c;
			struct err e = { 0 };

			if (take(&c, pid, &e) < 0)
				_exit(1);
			capture_fini(&c);
			_exit(0);
		}
		/* From the first call to after the last one. */
		usleep((useconds_t)(rand() % 6000));
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		if (WIFSIGNALED(status))
			killed++;
		else
			finished++;
		if (kill(pid, 0) < 0) {
			fprintf(stderr, "procimagebox: process %d has ended after %d turns\n", pid,
				i + 1);
			return 1;
		}
	}
	printf("killed=%u finished=%u\n", killed, finished);
	return 0;
}

static int run_table(void)
{
	static const char *const outcomes[] = { "kept", "differs", "refused" };

	puts("| thing | copy | note |\n|---|---|---|");
	for (unsigned i = 0; i < KEEP_COUNT; i++)
		printf("| %s | %s | %s |\n", keep_rows[i].thing, outcomes[keep_rows[i].outcome],
		       keep_rows[i].text);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "table"))
		return run_table();
	if (argc == 5 && !strcmp(argv[1], "fork"))
		return run_fork(atoi(argv[2]), atoi(argv[3]), argv[4]);
	if (argc == 4 && !strcmp(argv[1], "image"))
		return run_image(atoi(argv[2]), argv[3]);
	if (argc == 4 && !strcmp(argv[1], "kill"))
		return run_kill(atoi(argv[2]), atoi(argv[3]));
	fputs("usage: procimagebox fork PID COPIES FOLDER | image PID FILE | kill PID TIMES | table\n",
	      stderr);
	return 2;
}
