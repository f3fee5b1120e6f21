/* node_epoch.h - the epoch of this node of a cluster, as the last gateway has told it. */
#pragma once
#include "store/store.h"

/* 0: none yet. */
must_check int store_node_epoch_get(struct store *s, int64_t *out, struct err *e);
must_check int store_node_epoch_set(struct store *s, int64_t epoch, struct err *e);
