/* checkpoint_maps.h - the files that programs of a box have mapped shared and writable.
 *
 * From /proc/PID/maps of every process in the cgroup. A file is listed with its inode and its path: overlayfs shows the
 * inode of the lower file for a file that was copied up later, and a path may contain any byte. The list may have
 * files that are not in the writable layer; it misses none. */
#pragma once
#include "base/err.h"
#include "layer/delta.h"

struct cgroups;
must_check int checkpoint_maps_read(const struct cgroups *cs, const char *cgroup,
				    struct delta_mapped *out, struct err *e);
/* One line of a file `maps`; adds it to the list if it is shared and writable. For tests, too. */
void checkpoint_maps_add(struct delta_mapped *out, const char *line);
