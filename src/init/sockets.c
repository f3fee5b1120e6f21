/* sockets.c - SOCKETS: the TCP sockets that listen in the box, and their processes; see worker.h.
 *
 *   /proc/net/tcp, tcp6   address, port and inode of each socket
 *   /proc/PID/fd          "socket:[inode]": the process that has it open
 *
 * The kernel shows the worker the descriptors of the user's own processes only, so a server of the
 * box's root has no process here. Sockets of init itself are left out. The numbers of sockets and of
 * descriptors are bounded: a program in the box chooses both. */
#include "init/conn.h"
#include "init/params.h"
#include "initlib/scratch.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "init/worker.h"

enum { SOCKETS = 256, DENTS = 4096, FDS = 65536, COMM = 16 };

static LAZY struct socket {
	struct wire_socket wire;
	uint64_t inode;
	char comm[COMM];
	uint32_t comm_len;
} found[SOCKETS];
static uint32_t nfound, nameless, fds_left;

/* ---- /proc/net ---- */

static const char *sockets_skip(const char *at, unsigned fields)
{
	while (fields--) {
		while (*at == ' ')
			at++;
		while (*at && *at != ' ')
			at++;
	}
	while (*at == ' ')
		at++;
	return at;
}

static uint32_t sockets_hex(const char *at, unsigned digits)
{
	uint32_t v = 0;

	for (; digits--; at++)
		v = v << 4 | (uint32_t)(*at <= '9' ? *at - '0' : (*at | 32) - 'a' + 10);
	return v;
}

static uint64_t sockets_decimal(const char *at)
{
	uint64_t v = 0;

	for (; *at >= '0' && *at <= '9'; at++)
		v = v * 10 + (uint64_t)(*at - '0');
	return v;
}

/* "  0: 0100007F:1F90 00000000:0000 0A tx:rx tr:when retrnsmt uid timeout inode ...": each group of
 * eight digits of an address is one integer of the machine. */
static void sockets_line(const char *line, uint32_t family)
{
	const char *local = sockets_skip(line, 1), *state = sockets_skip(line, 3);
	unsigned groups = family == 6 ? 4 : 1, i;
	struct socket *s = &found[nfound];

	if (state[0] != '0' || state[1] != 'A' || nfound == SOCKETS || local[groups * 8] != ':')
		return;
	if (self.uid != self.user && sockets_decimal(sockets_skip(line, 7)) == self.uid)
		return;
	*s = (struct socket){ .wire = { .family = family } };
	for (i = 0; i < groups; i++) {
		uint32_t v = sockets_hex(local + i * 8, 8);

		memcpy(s->wire.addr + i * 4, &v, 4);
	}
	s->wire.port = sockets_hex(local + groups * 8 + 1, 4);
	s->inode = sockets_decimal(sockets_skip(line, 9));
	nfound++;
}

static void sockets_of_family(const char *path, uint32_t family)
{
	int fd = (int)sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	size_t have = 0, at, i;
	long n;

	if (fd < 0)
		return; /* a kernel without this family */
	while ((n = sys_read(fd, scratch + have, sizeof(scratch) - have)) > 0) {
		have += (size_t)n;
		for (at = i = 0; i < have; i++) {
			if (scratch[i] != '\n')
				continue;
			scratch[i] = '\0';
			sockets_line(scratch + at, family);
			at = i + 1;
		}
		memmove(scratch, scratch + at, have - at);
		have -= at;
	}
	sys_close(fd);
}

/* ---- /proc/PID ---- */

static void sockets_name(struct socket *s, int process, int32_t pid)
{
	int fd = (int)sys_openat(process, "comm", O_RDONLY | O_CLOEXEC, 0);
	long n = fd < 0 ? 0 : sys_read(fd, s->comm, COMM);

	s->wire.pid = pid;
	while (n > 0 && s->comm[n - 1] == '\n')
		n--;
	s->comm_len = n > 0 ? (uint32_t)n : 0;
	sys_close(fd);
	nameless--;
}

static void sockets_descriptor(int process, int dir, const char *name, int32_t pid)
{
	char target[40];
	long n = sys_readlinkat(dir, name, target, sizeof(target) - 1);
	uint64_t inode;
	uint32_t i;

	if (n <= 0)
		return;
	target[n] = '\0';
	if (!text_starts(target, "socket:["))
		return;
	inode = sockets_decimal(target + 8);
	for (i = 0; i < nfound; i++)
		if (found[i].inode == inode && !found[i].wire.pid)
			sockets_name(&found[i], process, pid);
}

/* Calls each() for every entry whose name is a number. */
static void sockets_each(int dir, char *dents, void (*each)(int dir, const char *name, void *user),
			 void *user)
{
	long have, at;

	while ((have = sys_getdents(dir, dents, DENTS)) > 0)
		for (at = 0; at < have;) {
			const struct dirent64 *d = (const struct dirent64 *)(void *)(dents + at);

			at += d->d_reclen;
			if (d->d_name[0] >= '0' && d->d_name[0] <= '9' && nameless && fds_left)
				each(dir, d->d_name, user);
		}
}

struct sockets_process {
	int dir;
	int32_t pid;
};

static void sockets_each_fd(int dir, const char *name, void *user)
{
	const struct sockets_process *p = user;

	fds_left--;
	sockets_descriptor(p->dir, dir, name, p->pid);
}

static void sockets_each_process(int proc, const char *name, void *user)
{
	static LAZY char dents[DENTS] __attribute__((aligned(8)));
	struct sockets_process p = { .pid = (int32_t)sockets_decimal(name) };
	int fds;

	(void)user;
	p.dir = (int)sys_openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	fds = p.dir < 0 ? -1 : (int)sys_openat(p.dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fds >= 0) {
		sockets_each(fds, dents, sockets_each_fd, &p);
		sys_close(fds);
	}
	if (p.dir >= 0)
		sys_close(p.dir);
}

static void sockets_find_processes(void)
{
	static LAZY char dents[DENTS] __attribute__((aligned(8)));
	int proc = (int)sys_openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (proc < 0)
		return;
	sockets_each(proc, dents, sockets_each_process, NULL);
	sys_close(proc);
}

int sockets(const struct job *j)
{
	int brief = j->head->flags & WIRE_SOCKETS_BRIEF;
	uint32_t ref = j->head->ref, i;

	nfound = 0;
	fds_left = FDS;
	sockets_of_family("/proc/net/tcp", 4); /* overwrites the frame in scratch */
	sockets_of_family("/proc/net/tcp6", 6);
	nameless = nfound;
	if (!brief && nameless)
		sockets_find_processes();
	for (i = 0; i < nfound; i++) {
		found[i].wire.head = conn_head(WIRE_SOCKET, ref);
		say(&found[i].wire, sizeof(found[i].wire), found[i].comm, found[i].comm_len);
	}
	say_head(WIRE_DONE, ref, nfound == SOCKETS ? WIRE_DONE_TRUNCATED : 0);
	return ANSWERED;
}
