/* probe_use.c - see probe.h. Each kind allocates units until this fails, and never more than `most`: also without a limit
 * the host stays usable. Prints one line, and exits with 1 when the limit was met, as a program that fails by it. */
#include "prove/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USE_MIB = 1 << 20 };

static char use_block[USE_MIB];
static int use_file = -1;

static int use_process(long i)
{
	pid_t pid = fork();

	(void)i;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid < 0 ? -1 : 0;
}

static int use_memory(long i)
{
	char *p = mmap(NULL, USE_MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)i;
	if (p == MAP_FAILED)
		return -1;
	memset(p, 1, USE_MIB);
	return 0;
}

static int use_disk(long i)
{
	(void)i;
	if (use_file < 0)
		use_file = open("prove-big", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return write(use_file, use_block, sizeof(use_block)) == (ssize_t)sizeof(use_block) ? 0 : -1;
}

static int use_inode(long i)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "prove-%ld", i);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int use_output(long i)
{
	(void)i;
	return write(1, use_block, sizeof(use_block)) < 0 ? -1 : 0;
}

int probe_use(const char *kind, long most)
{
	static const struct {
		const char *kind;
		int (*one)(long i);
	} kinds[] = { { "processes", use_process },
		      { "memory", use_memory },
		      { "disk", use_disk },
		      { "files", use_inode },
		      { "output", use_output } };
	long got = 0;

	memset(use_block, 'x', sizeof(use_block));
	for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		if (strcmp(kinds[k].kind, kind) != 0)
			continue;
		while (got < most && kinds[k].one(got) == 0)
			got++;
		printf("{\"probe\": \"limits\", \"way\": \"%s\", \"result\": \"%s\", \"got\": \"%ld\"}\n",
		       kind, got < most ? strerrorname_np(errno) : "ok", got);
		fflush(stdout);
		return got < most;
	}
	return 2;
}
