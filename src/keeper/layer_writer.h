/* layer_writer.h - the process that writes the files of a new layer, received from a box.
 * It has an unused uid, the new folder is its root, and it has no other rights. */
#pragma once
#include "base/err.h"
#include "keeper/layer_store.h"

enum { WRITER_S = 900 }; /* the longest time that a writer or an export may take */

/* dir: the new folder; conn: to init of the box. Returns when the writer has ended. */
must_check int layer_writer_run(const struct layer_store_request *o, int dir, int conn,
				struct err *e);
