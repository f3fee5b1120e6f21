/* checkpoint_maps.c - see checkpoint_maps.h. */
#include "keeper/checkpoint_maps.h"
#include "base/cleanup.h"
#include "jail/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct maps_read {
	struct delta_mapped *out;
	struct err *e;
	int failed;
};

static void maps_append_path(struct delta_mapped *m, const char *path, size_t n)
{
	m->paths = realloc(m->paths, m->paths_bytes + n + 1);
	if (!m->paths)
		abort();
	memcpy(m->paths + m->paths_bytes, path, n);
	m->paths[m->paths_bytes + n] = 0;
	m->paths_bytes += n + 1;
}

/* As the kernel writes it: a line break is \012 (delta_is_mapped() compares it so). */
static void maps_add_path(struct delta_mapped *m, const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path), tail = sizeof(deleted) - 1;

	maps_append_path(m, path, n);
	if (n > tail && strcmp(path + n - tail, deleted) == 0)
		maps_append_path(m, path, n - tail);
}

void checkpoint_maps_add(struct delta_mapped *out, const char *line)
{
	unsigned long long ino = 0;
	char perms[5] = "";
	int path = 0;

	if (sscanf(line, "%*x-%*x %4s %*x %*x:%*x %llu %n", perms, &ino, &path) < 2 ||
	    perms[1] != 'w' || perms[3] != 's' || !ino)
		return;
	out->inodes = realloc(out->inodes, (out->ninodes + 1) * sizeof(*out->inodes));
	if (!out->inodes)
		abort();
	out->inodes[out->ninodes++] = ino;
	if (path && line[path] == '/' && line[path + 1])
		maps_add_path(out, line + path + 1);
}

static int maps_of_process(int pid, void *arg)
{
	struct maps_read *r = arg;
	char path[40], *line = NULL;
	size_t room = 0;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	/* It has ended, or no longer has memory. */
	if (!f && errno != ENOENT && errno != ESRCH) {
		err_sys(r->e, "read the mappings of process %d", pid);
		r->failed = 1;
	}
	if (!f)
		return 0;
	while ((n = getline(&line, &room, f)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = 0;
		checkpoint_maps_add(r->out, line);
	}
	free(line);
	fclose(f);
	return 1;
}

int checkpoint_maps_read(const struct cgroups *cs, const char *cgroup, struct delta_mapped *out,
			 struct err *e)
{
	struct maps_read r = { .out = out, .e = e };

	*out = (struct delta_mapped){ 0 };
	cgroup_each_process(cs, cgroup, maps_of_process, &r);
	return r.failed ? -1 : 0;
}
