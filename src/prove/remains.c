/* remains.c - what is left on the host after the boxes of a proof were ended: nothing is expected. */
#include "base/cleanup.h"
#include "base/run_dir.h"
#include "jail/launch.h"
#include "prove/prove_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* 30 s: on a busy host the end of an engine takes seconds, and a failed proof withdraws the tier. */
enum { REMAINS_TRIES = 3000, REMAINS_PAUSE_US = 10000, REMAINS_DEPTH = 5 };

enum { REMAINS_BOXES = 3 };

struct remains {
	const struct prove_box *boxes[REMAINS_BOXES];
	char found[200];
};

static int remains_names_box(const struct remains *m, const char *text)
{
	for (unsigned i = 0; i < REMAINS_BOXES; i++) {
		const char *id = m->boxes[i]->handle.about.id; /* "": there was no such box */

		if (*id && strstr(text, id))
			return 1;
	}
	return 0;
}

/* By the pid namespace: when its first process has ended, the kernel ends those of namespaces below it, too. */
static int remains_processes(struct remains *m)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	while (d && (entry = readdir(d))) {
		char path[64], its[64];
		ssize_t n;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", entry->d_name);
		n = readlink(path, its, sizeof(its) - 1);
		its[n > 0 ? n : 0] = 0;
		for (unsigned i = 0; n > 0 && i < REMAINS_BOXES; i++)
			if (!strcmp(its, m->boxes[i]->pid_namespace)) {
				snprintf(m->found, sizeof(m->found), "process %.20s",
					 entry->d_name);
				found = 1;
			}
	}
	if (d)
		closedir(d);
	return found;
}

static int remains_owns(const struct remains *m, unsigned uid)
{
	for (unsigned i = 0; i < REMAINS_BOXES; i++) {
		unsigned base = m->boxes[i]->handle.about.uid_base;

		if (base && uid >= base && uid - base < JAIL_RANGE)
			return 1;
	}
	return 0;
}

/* Tier process: by the owner. Its processes are in no namespace of their own, its folder is in /tmp. */
static int remains_owned(struct remains *m, const char *folder, const char *what)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int found = 0;

	while (d && !found && (entry = readdir(d))) {
		struct stat st;

		if (entry->d_name[0] == '.' ||
		    fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		found = remains_owns(m, st.st_uid);
		if (found)
			snprintf(m->found, sizeof(m->found), "%s %.40s", what, entry->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

static int remains_lines_of(struct remains *m, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int found = 0;

	while (f && getline(&line, &room, f) > 0)
		if (remains_names_box(m, line)) {
			snprintf(m->found, sizeof(m->found), "%.180s", line);
			found = 1;
		}
	free(line);
	if (f)
		fclose(f);
	return found;
}

static int remains_mounts(struct remains *m, unsigned keeper)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/mountinfo", keeper);
	return remains_lines_of(m, "/proc/self/mountinfo") || remains_lines_of(m, path);
}

static int remains_sockets(struct remains *m)
{
	return remains_lines_of(m, "/proc/net/unix");
}

static int remains_below(struct remains *m, int take_dir, unsigned depth)
{
	DIR *d = fdopendir(take_dir);
	struct dirent *entry;
	int found = 0;

	while (d && !found && (entry = readdir(d))) {
		int below;

		if (entry->d_name[0] == '.')
			continue;
		if (remains_names_box(m, entry->d_name)) {
			snprintf(m->found, sizeof(m->found), "%.180s", entry->d_name);
			found = 1;
		}
		if (found || !depth || entry->d_type != DT_DIR)
			continue;
		below = openat(dirfd(d), entry->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0)
			found = remains_below(m, below, depth - 1);
	}
	if (d)
		closedir(d);
	else if (take_dir >= 0)
		close(take_dir);
	return found;
}

static int remains_folders(struct remains *m, const char *path, unsigned depth)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && remains_below(m, fd, depth);
}

static int remains_records(struct prove_run *r, struct remains *m)
{
	struct wire_box page[16];
	char after[WIRE_ID] = "";
	struct err e;
	int n, found = 0;

	while (!found &&
	       (n = keeper_sync_boxes(&r->keeper, after, page, ARRAY_LEN(page), &e)) > 0) {
		for (int i = 0; i < n; i++) {
			for (unsigned k = 0; k < REMAINS_BOXES; k++)
				found |= !strcmp(page[i].id, m->boxes[k]->handle.about.id);
			memcpy(after, page[i].id, sizeof(after));
		}
	}
	if (found)
		snprintf(m->found, sizeof(m->found), "a box of the keeper");
	return found;
}

static int remains_any(struct prove_run *r, struct remains *m, unsigned kind)
{
	char run[256];
	struct err e;

	switch (kind) {
	case 0:
		return r->want->tier == WIRE_TIER_PROCESS ? remains_owned(m, "/proc", "process")
							  : remains_processes(m);
	case 1:
		return remains_mounts(m, r->info.pid);
	case 2:
		return remains_folders(m, "/sys/fs/cgroup", REMAINS_DEPTH);
	case 3:
		return remains_sockets(m);
	case 4:
		return (run_dir_find(run, sizeof(run), &e) == 0 && remains_folders(m, run, 3)) ||
		       (r->want->tier == WIRE_TIER_PROCESS && remains_owned(m, "/tmp", "/tmp:"));
	default:
		return remains_records(r, m);
	}
}

void prove_judge_remains(struct prove_run *r)
{
	static const char *const kinds[] = { "processes", "mounts", "cgroups",
					     "sockets",   "files",  "records and user ids" };
	struct remains m = { .boxes = { &r->a, &r->b, &r->bomb } };

	for (unsigned kind = 0; kind < ARRAY_LEN(kinds); kind++) {
		int left = remains_any(r, &m, kind);

		/* The keeper answers before it has dropped the last mount of a box. */
		for (unsigned i = 0; left && i < REMAINS_TRIES; i++) {
			usleep(REMAINS_PAUSE_US);
			left = remains_any(r, &m, kind);
		}
		prove_note(r, left ? PROVE_FAILS : PROVE_PASSED, "end of the box", kinds[kind], "",
			   "%s%s", left ? "still there: " : "nothing is left", left ? m.found : "");
	}
}
