/* link.h - asking the keeper: one request, its answer. Shared by link.c and box.c only. */
#pragma once
#include "box/box.h"

/* Sends `ask` (its ref is filled in) and waits for a frame of type `want` with that ref. An ERROR
 * becomes e. An end of file is ERR_SYS with EPIPE. out_fd may be NULL. Returns the frame's length. */
must_check int link_ask(struct keeper_link *k, void *ask, size_t ask_len, uint8_t want, void *out, size_t size,
			int *out_fd, struct err *e);
must_check int link_reopen(struct keeper_link *k, struct err *e);
