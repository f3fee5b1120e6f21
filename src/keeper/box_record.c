/* box_record.c - see box_record.h. */
#include "keeper/box_record.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "keeper/layer_tree.h"
#include "keeper/uid_range.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define PIDFS_MAGIC 0x50494446

static void name_of(char out[48], const char *id)
{
	snprintf(out, 48, "boxes/%s.box", id);
}

int box_record_old_read(int run, const char *id, struct box_record *out, struct err *e)
{
	char path[48];
	auto_fd int fd = -1;
	struct box_record m = { 0 };
	ssize_t n;

	name_of(path, id);
	fd = openat(run, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	n = fd < 0 ? -1 : read(fd, &m, sizeof(m));
	if (n < 0)
		return err_sys(e, "read %s", path);
	if (n == 0)
		return err_set(e, ERR_NOT_FOUND, "%s is empty", path);
	if (n != (ssize_t)offsetof(struct box_record, root) ||
	    strncmp(m.about.id, id, WIRE_ID) != 0 || !box_record_may_be(&m))
		return err_set(e, ERR_INVALID, "%s is not a record of this version", path);
	*out = m;
	return 0;
}

void box_record_old_remove(int run, const char *id)
{
	char path[48];

	name_of(path, id);
	unlinkat(run, path, 0);
}

int box_record_old_each(int run, int (*each)(const char *id, void *arg), void *arg, struct err *e)
{
	int fd = openat(run, "boxes", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	int stop = 0;

	if (!d)
		return err_sys(e, "open boxes");
	while (!stop && (de = readdir(d)) != NULL) {
		char id[ID_MAX + 1];
		char *dot = strchr(de->d_name, '.');

		if (!dot || strcmp(dot, ".box") != 0 || dot - de->d_name > ID_MAX)
			continue;
		snprintf(id, sizeof(id), "%.*s", (int)(dot - de->d_name), de->d_name);
		if (id_valid(id))
			stop = each(id, arg);
	}
	closedir(d);
	return 0;
}

static int chain_may_be(const struct box_record *m)
{
	if (m->nchain > WIRE_CHAIN || m->checkpointing > 1)
		return 0;
	for (uint32_t i = 0; i < m->nchain; i++)
		if (!memchr(m->chain[i], 0, sizeof(m->chain[i])) || !id_valid(m->chain[i]))
			return 0;
	return 1;
}

static int is_range(uint32_t uid_base)
{
	uint32_t n = uid_base - RANGE_FIRST_UID;

	return uid_base >= RANGE_FIRST_UID && n % RANGE_STRIDE == 0 &&
	       n / RANGE_STRIDE < RANGE_COUNT;
}

int box_record_may_be(const struct box_record *m)
{
	return m->magic == BOX_RECORD_MAGIC && memchr(m->about.id, 0, sizeof(m->about.id)) &&
	       id_valid(m->about.id) && memchr(m->cgroup, 0, sizeof(m->cgroup)) &&
	       (!m->cgroup[0] || id_valid(m->cgroup)) &&
	       (!m->about.uid_base || is_range(m->about.uid_base)) && m->nmounts <= WIRE_MOUNTS &&
	       m->nlayers <= WIRE_LAYERS && (!m->root[0] || layer_tree_id_ok(m->root)) &&
	       chain_may_be(m);
}

static uint64_t ticks_at_start(int proc, int pid)
{
	char path[32], text[1024], *at;
	auto_fd int fd = -1;
	unsigned long long ticks = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "%d/stat", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	/* The name in brackets may contain anything, so the fields start after the last bracket. */
	at = strrchr(text, ')');
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %llu", &ticks) != 1)
		return 0;
	return ticks;
}

uint64_t box_record_start_time(int proc, int pid, int pidfd)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(pidfd, &fs) == 0 && fs.f_type == PIDFS_MAGIC && fstat(pidfd, &st) == 0)
		return st.st_ino;
	return ticks_at_start(proc, pid);
}

uint64_t box_record_boot(int proc)
{
	auto_fd int fd = openat(proc, "sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	uint64_t hash = 0xcbf29ce484222325u;
	char text[64];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	for (ssize_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
	return hash;
}
