/* files.h - the file worker: a child of init that reads and writes files as the box's user.
 * Owns: its connection, nothing else. Paths are those of the box; the kernel checks permissions,
 * quota and symbolic links inside the box, so no path of the host can be reached. */
#pragma once

int files_start(int root); /* the client's end of a connection to a new worker, or -errno */
