/* use.c - see probe.h. Each function allocates one more unit until this fails. The units are held
 * until the count was printed, and are freed by the exit of the process. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1l << 20)

static char block[1 << 20];
static int file = -1;

static int one_process(long i)
{
	pid_t pid = fork();

	(void)i;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG,
		      SIGKILL); /* for tests on the host: a box would end it anyway */
		for (;;)
			pause();
	}
	return pid < 0 ? -1 : 0;
}

static void *sleep_forever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static int one_thread(long i)
{
	pthread_attr_t small;
	pthread_t t;
	int bad;

	(void)i;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	bad = pthread_create(&t, &small, sleep_forever, NULL);
	errno = bad;
	return bad ? -1 : 0;
}

static int one_mib(long i)
{
	char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)i;
	if (p == MAP_FAILED)
		return -1;
	memset(p, 1, MIB);
	return 0;
}

static int one_locked_mib(long i)
{
	void *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)i;
	return p == MAP_FAILED ? -1 : mlock(p, MIB);
}

static int write_mib(const char *path)
{
	if (file < 0)
		file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	return file >= 0 && write(file, block, sizeof(block)) == (ssize_t)sizeof(block) ? 0 : -1;
}

static int one_mib_of_disk(long i)
{
	return (void)i, write_mib("big");
}
static int one_mib_of_tmp(long i)
{
	return (void)i, write_mib("/tmp/big");
}
static int one_mib_of_shm(long i)
{
	return (void)i, write_mib("/dev/shm/big");
}

static int one_mib_of_memfd(long i)
{
	(void)i;
	if (file < 0)
		file = memfd_create("big", 0);
	return write(file, block, sizeof(block)) == (ssize_t)sizeof(block) ? 0 : -1;
}

static int one_mib_of_segments(long i)
{
	int id = shmget(IPC_PRIVATE, MIB, 0600);
	void *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	(void)i;
	if (p == (void *)-1)
		return -1;
	memset(p, 1, MIB);
	return 0;
}

static int one_file(long i)
{
	char path[32];
	int fd;

	if (i % 1000 == 0) {
		snprintf(path, sizeof(path), "d%ld", i / 1000);
		if (mkdir(path, 0700) < 0)
			return -1;
	}
	snprintf(path, sizeof(path), "d%ld/%ld", i / 1000, i);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int one_descriptor(long i)
{
	return (void)i, dup(0) < 0 ? -1 : 0;
}

static int one_inotify(long i)
{
	return (void)i, inotify_init1(0) < 0 ? -1 : 0;
}

static int one_terminal(long i)
{
	return (void)i, open("/dev/ptmx", O_RDWR | O_NOCTTY) < 0 ? -1 : 0;
}

static int one_timer(long i)
{
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	timer_t t;

	return (void)i, timer_create(CLOCK_MONOTONIC, &none, &t);
}

static int one_queue(long i)
{
	struct {
		long flags, maxmsg, msgsize, curmsgs, reserved[4];
	} a = { 0, 10, 8192, 0, { 0 } };
	char name[24];

	snprintf(name, sizeof(name), "q%ld", i);
	return syscall(SYS_mq_open, name, O_CREAT | O_EXCL | O_RDWR, 0600, &a) < 0 ? -1 : 0;
}

/* 64 KiB each, and a full one is unreclaimable memory. */
static int one_full_pipe(long i)
{
	int p[2];

	(void)i;
	if (pipe2(p, O_NONBLOCK) < 0)
		return -1;
	while (write(p[1], block, sizeof(block)) > 0)
		;
	return 0;
}

static int one_full_socket(long i)
{
	int p[2];

	(void)i;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p) < 0)
		return -1;
	while (write(p[1], block, sizeof(block)) > 0)
		;
	return 0;
}

static const struct {
	const char *what;
	int (*one)(long i);
} kinds[] = {
	{ "processes", one_process },
	{ "threads", one_thread },
	{ "memory", one_mib },
	{ "locked", one_locked_mib },
	{ "disk", one_mib_of_disk },
	{ "tmp", one_mib_of_tmp },
	{ "shm", one_mib_of_shm },
	{ "memfd", one_mib_of_memfd },
	{ "segments", one_mib_of_segments },
	{ "files", one_file },
	{ "descriptors", one_descriptor },
	{ "inotify", one_inotify },
	{ "terminals", one_terminal },
	{ "timers", one_timer },
	{ "queues", one_queue },
	{ "pipes", one_full_pipe },
	{ "sockets", one_full_socket },
};

int use_up(const char *what, long most)
{
	/* "+inotify": keep it, print the count, and wait for the end of stdin. */
	int keep = *what == '+';
	long got = 0;
	char c;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		if (strcmp(kinds[k].what, what + keep))
			continue;
		while (got < most && kinds[k].one(got) == 0)
			got++;
		printf("%s %ld %s\n", kinds[k].what, got,
		       got < most ? strerrorname_np(errno) : "enough");
		fflush(stdout);
		while (keep && read(0, &c, 1) > 0)
			;
		return 0;
	}
	fprintf(stderr, "probe: nothing named %s to use\n", what);
	return 2;
}

int use_cpu(int ms, int processes)
{
	struct timespec now, end;
	struct rusage ru;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += ms % 1000 * 1000000l;
	end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000l;
	end.tv_nsec %= 1000000000l;
	for (int i = 0; i < processes; i++)
		if (fork() == 0) {
			do
				clock_gettime(CLOCK_MONOTONIC, &now);
			while (now.tv_sec < end.tv_sec ||
			       (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &ru);
	printf("spin %ld\n", (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000 +
				     (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1000);
	return 0;
}
