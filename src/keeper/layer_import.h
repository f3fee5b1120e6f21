/* layer_import.h - copies a folder out of a box, through its file worker. For the unprivileged
 * writer of a layer: every frame is untrusted input from the box. */
#pragma once
#include "base/err.h"
#include "keeper/layer_tree.h"

/* conn: to init of the box, blocking; every program of the box is killed first, so that nothing
 * changes while it is read. path: in the box, absolute. place: where it is written in the tree; ""
 * is its top. */
must_check int layer_import_tree(int conn, const char *path, const char *place,
				 struct layer_tree *t, struct err *e);
/* The same with a connection to a worker; for unit tests. */
must_check int layer_import_from_worker(int worker, const char *path, const char *place,
					struct layer_tree *t, struct err *e);
