/* pause.h - E2B's pause. Boxes are resumed by box_resume(), for connect and resume, and by
 * dispatch.c, for traffic. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

/* In the metadata of a sandbox: "disk": its pauses write the programs to the disk; "memory" (default). */
#define PAUSING_KEY "atoll.pause"
must_check int pausing_check(const char *to, struct err *e); /* to: NULL: not given */
/* In the metadata, too: "memory" (default): its snapshots and forks have the running programs; "files": only the files. In the
 * metadata of a sandbox that is created from a snapshot: the same for what it starts with. */
#define PAUSING_FORK_KEY "atoll.fork"
must_check int pausing_check_fork(const char *what, struct err *e); /* what: NULL: not given */
int pausing_forks_memory(const struct box *b);
extern const struct field pausing_fields[];
void pausing_pause(struct call *c); /* POST /sandboxes/{box}/pause */

/* Paused as E2B defines it: with its memory, or with its files alone. */
int pausing_is_paused(const struct box *b);
/* From now on, the timeouts of sandboxes pause as pausing_pause() does. */
void pausing_init(struct api *a);
/* For create: the action when the timeout has expired. */
void pausing_want(struct store_box *row, const struct e2b_box *x);
