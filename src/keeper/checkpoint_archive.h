/* checkpoint_archive.h - checkpoints as tar archives, as OCI describes layers.
 *
 *   export   layers of a chain ─► one layer (layer/chain_merge.h) ─► its mount ─► image_export.h
 *   import   image_process.h ─► a new folder ─► capture and check, as of a box ─► layer and index
 *
 * An export of equal files is equal bytes, so its SHA-256 names them. An imported archive is hostile: only the confined
 * process of image_process.h reads it, and a capture of a user namespace of its own reads the folder.
 * Owns: nothing; both run in a process of the layer store. */
#pragma once
#include "keeper/checkpoint_store.h"

/* q->from: the layers, the first on top. archive: a file or a pipe. */
must_check int checkpoint_archive_export(int dir, const struct checkpoint_request *q, int archive,
					 struct wire_checkpointed *out, struct err *e);
/* folder: an empty one on the disk. uid_base: 65536 ids that nothing else has. The checkpoint is q->id, of q->box. */
must_check int checkpoint_archive_import(int dir, const struct checkpoint_request *q, int archive,
					 int folder, uint32_t uid_base,
					 struct wire_checkpointed *out, struct err *e);
