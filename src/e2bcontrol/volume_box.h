/* volume_box.h - a box through which the content of a volume is reached.
 * A volume is a disk that only boxes open. A box that has it mounted is used; else a box is
 * created for this, with nothing but the volume, and ends with the last request that needed it.
 * Owns: the box, if it was made here; the wait for it. */
#pragma once
#include "e2b/e2b.h"

struct volume_box {
	struct box_wait wait;
	struct call *call;
	char volume[ID_MAX + 1];
	char root[WIRE_PATH]; /* where the box has it */
	char box[ID_MAX + 1];
	unsigned tries;
	void (*ready)(struct call *c, struct volume_box *d, struct box *b);
	void (*over)(
		struct http_req *r); /* the previous on_over callback, which this module replaced */
};

/* Of the volume that the path names, of the caller's team. Calls ready() once; a failure is
 * answered here. Uses c->surface. */
void volume_box_open(struct call *c, struct volume_box *d,
		     void (*ready)(struct call *c, struct volume_box *d, struct box *b));
/* For a box that is about to end and has one of these volumes: w is called when it has ended. 0:
 * there is none. */
int volume_box_released(struct api *a, const struct wire_mount *m, unsigned n, struct box_wait *w);
