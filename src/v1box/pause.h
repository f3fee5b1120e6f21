/* pause.h - freezes and thaws boxes: /v1/boxes/{box}/pause and /resume. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

extern const struct field pause_fields[];
void pause_box(struct call *c);
void pause_resume(struct call *c);

/* The same for any surface: done(c, b, e) answers. It is not called if the client
 * has disconnected. */
typedef void pause_done(struct call *c, struct box *b, const struct err *e);
void pause_begin(struct call *c, struct box *b, int memory, pause_done *done);
void pause_begin_disk(struct call *c, struct box *b, pause_done *done); /* checkpoint/pause.h */
