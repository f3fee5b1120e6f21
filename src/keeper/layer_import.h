/* layer_import.h - a folder of a box, brought out by the box's own file worker.
 * For the unprivileged writer of a layer: every frame that arrives is the box's word. */
#pragma once
#include "base/err.h"
#include "keeper/layer_tree.h"

/* conn: to the box's init, blocking; every program in there is ended first, so that nobody changes
 * what is read. path: in the box, absolute. place: where it goes in the tree; "" is its top. */
must_check int layer_import_tree(int conn, const char *path, const char *place,
				 struct layer_tree *t, struct err *e);
/* The same with a connection to a worker; the test's door. */
must_check int layer_import_from_worker(int worker, const char *path, const char *place,
					struct layer_tree *t, struct err *e);
