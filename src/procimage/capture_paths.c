/* capture_paths.c - paths of mapped files that copies find again. */
#include "procimage/capture.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int capture_is_shared_file(const struct capture *c, const char *path, uint64_t dev)
{
	const char *below = c->options.shared_below;

	return !below || (dev == c->options.shared_dev && !strncmp(path, below, strlen(below)));
}

const char *capture_find_shared_path(const struct capture *c, const char *path, uint64_t dev,
				     uint64_t ino, char *room, size_t bytes)
{
	const char *below = c->options.shared_below;
	char full[4400];
	struct stat st;

	if (!below || dev != c->options.shared_dev || *path != '/' ||
	    capture_is_shared_file(c, path, dev) ||
	    snprintf(room, bytes, "%s%s", below, path + 1) >= (int)bytes ||
	    snprintf(full, sizeof(full), "/proc/%d/root%s", c->tracee.pid, room) >=
		    (int)sizeof(full) ||
	    stat(full, &st) < 0 || st.st_dev != dev || st.st_ino != ino)
		return path;
	return room;
}
