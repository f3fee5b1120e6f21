/* foreground.c - see foreground.h.
 *
 * gVisor keeps the foreground group, but reports it only to processes of the session, and /proc/PID/stat has 0
 * there. A shell makes a group for each job, so the newest group of its session is the one in the foreground, unless
 * the newest job was sent to the background. */
#include "init/foreground.h"
#include "initlib/str.h"
#include "initlib/sys.h"

enum { DENTS = 4096, STAT = 512 };

/* The fields "pgrp session" of /proc/PID/stat follow the name in parentheses, state and ppid. */
static void foreground_parse(const char *stat, long n, int out[2])
{
	const char *at = stat + n;
	int field = 0;

	out[0] = out[1] = 0;
	while (at > stat && *at != ')')
		at--;
	for (at += 2; at < stat + n && field < 4; at++) {
		if (*at == ' ')
			field++;
		else if (field >= 2 && *at >= '0' && *at <= '9')
			out[field - 2] = out[field - 2] * 10 + (*at - '0');
	}
}

static int foreground_group_of(int proc, const char *pid, int session)
{
	char path[40], stat[STAT];
	struct text t = { .to = path, .room = sizeof(path) };
	int fields[2], fd;
	long n;

	text_add(&t, pid);
	text_add(&t, "/stat");
	fd = (int)sys_openat(proc, path, O_RDONLY | O_CLOEXEC, 0);
	n = fd < 0 ? -1 : sys_read(fd, stat, sizeof(stat) - 1);
	sys_close(fd);
	if (n <= 0)
		return 0;
	stat[n] = '\0';
	foreground_parse(stat, n, fields);
	return fields[1] == session ? fields[0] : 0;
}

int foreground_group(int session)
{
	_Alignas(8) char dents[DENTS];
	int proc = (int)sys_openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int newest = session;
	long have, at;

	while (proc >= 0 && (have = sys_getdents(proc, dents, sizeof(dents))) > 0)
		for (at = 0; at < have;) {
			const struct dirent64 *d = (const struct dirent64 *)(void *)(dents + at);
			int group = 0;

			at += d->d_reclen;
			if (d->d_name[0] >= '0' && d->d_name[0] <= '9')
				group = foreground_group_of(proc, d->d_name, session);
			newest = group > newest ? group : newest;
		}
	sys_close(proc);
	return newest;
}
