/* run_dir.h - the folder with the sockets and the records of running boxes.
 * Owns: nothing; the keeper and the server create the files in it. */
#pragma once
#include "base/err.h"
#include <stddef.h>

/* ATOLL_RUN; for root /run/atoll; for others $XDG_RUNTIME_DIR/atoll, else /run/user/UID/atoll
 * where that folder is the caller's, else /tmp/atoll-UID. The last one is created here with mode
 * 0700: in a folder that every user may write to, only an existing folder of the same user is
 * safe to use. */
must_check int run_dir_find(char *out, size_t size, struct err *e);
