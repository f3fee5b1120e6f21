/* mine.h - Atoll as a subject, through the library the CLI uses.
 * Owns: a keeper in a separate run folder: other boxes are not touched. */
#pragma once
#include "base/err.h"
#include "client/box_handle.h"

struct subject;

/* Starts the keeper; ends it and everything it created. Both are allowed without one. */
must_check int mine_start(const char *atoll, const char *dir, struct err *e);
void mine_stop(void);
const char *mine_missing(void); /* why there is no keeper; NULL: there is one */
struct keeper_sync *mine_link(void);
const char *mine_atoll(void);   /* the executable */
const char *mine_run_dir(void); /* of its keeper */
/* /bin/true in a box; anything but its exit 0 is a failure. */
must_check int mine_true(struct box_handle *b, struct err *e);
/* A box with the default limits; flags are WIRE_CREATE_*. */
must_check int mine_create(struct box_handle *b, uint16_t flags, struct err *e);

int mine_open(struct subject *s, struct err *e);
int mine_join(struct subject *s, int worker, struct err *e);
void mine_close(struct subject *s);
int pooled_ready(struct subject *s, struct err *e);
int pooled_once(struct subject *s, struct err *e);
int pooled_check(struct subject *s, struct err *e);
int pooled_after(struct subject *s, struct err *e);
int cold_once(struct subject *s, struct err *e);
int exec_open(struct subject *s, struct err *e);
int exec_once(struct subject *s, struct err *e);
void exec_close(struct subject *s);
