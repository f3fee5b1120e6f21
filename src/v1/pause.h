/* pause.h - boxes that stand still, and go on: /v1/boxes/{box}/pause and /resume. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

extern const struct field pause_fields[];
void pause_box(struct call *c);
void pause_resume(struct call *c);

/* The same for any door: done(c, b, e) answers. It is not called when the client has left. */
typedef void pause_done(struct call *c, struct box *b, const struct err *e);
void pause_begin(struct call *c, struct box *b, int memory, pause_done *done);
/* Of a paused or a kept one; reboot: with its files alone. */
void pause_end(struct call *c, struct box *b, int reboot, pause_done *done);
