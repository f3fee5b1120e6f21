/* files.h - the file worker: a child of init that does file work as the box's user.
 * Owns: its connection, nothing else. Paths are the box's own; permission, quota and symbolic
 * links are the kernel's work in there, so no path of ours is ever at risk. */
#pragma once

int files_start(int root); /* the client's end of a connection to a new worker, or -errno */
