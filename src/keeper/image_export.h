/* image_export.h - an image layer as a tar archive, as OCI describes layers: image_unpack.h reversed.
 * Two exports of one layer are the same bytes: entries in the order of their names, POSIX headers
 * with extended records only where they are needed. */
#pragma once
#include "base/err.h"
#include "keeper/layer_tree.h"

/* layer: its folder; out: a file or a pipe. out_sum: bytes and files of the layer; its id is not
 * set. */
must_check int image_export(int layer, int out, struct layer_tree_sum *out_sum, struct err *e);
