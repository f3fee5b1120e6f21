/* below.h - files whose names come from a box, created here: below one folder, never through a link.
 * Every function returns a descriptor or 0, or -1 with errno. */
#pragma once
#include "base/err.h"
#include <sys/types.h>

must_check int below_open(int root, const char *path, int flags, mode_t mode);
/* Without "./" at the start and slashes at the end; -1: the path is outside of the folder. */
must_check int below_tidy(char *path);
/* The folder that holds the path's last part, created if missing. *out_last: that part. */
must_check int below_folder_of(int root, char *path, const char **out_last);
/* A new file for writing, which replaces a file of that name. */
must_check int below_create(int root, char *path, mode_t mode);
