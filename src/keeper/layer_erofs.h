/* layer_erofs.h - layers as erofs images, for boxes with a kernel of their own.
 * Owns: the files <state>/layers/image.<layer>, each made when a box first needs it and removed with its
 * layer. mkfs.erofs runs in namespaces of its own, as the root of the ids of the box that is created: it
 * can read the layer and write the image, and nothing else of the host belongs to it. The kernel of the
 * host never mounts an image. */
#pragma once
#include "base/err.h"
#include <stdint.h>

#define LAYER_EROFS_PREFIX "image."

/* layers: the folder of the layers. Returns the image of layer `id`, read-only, with VM_LAYER_BYTES bytes. */
must_check int layer_erofs_open(int layers, const char *id, uint32_t uid_base, struct err *e);
/* Together with its layer: with the name that the layer had. */
void layer_erofs_remove(int layers, const char *id);
/* An image without a layer, or one that was not finished: removed, unless a process still writes it. */
void layer_erofs_sweep(int layers, const char *name);
