/* network.h - what a sandbox may reach, in E2B's words, as hosts in ours.
 *
 * Ours is a list of hosts, each within what the operator permits (docs/egress.md). Theirs is a filter
 * over addresses and names. What comes out is the part of theirs that the operator permits; the
 * rest cannot be reached, and that is no error. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field network_fields[];        /* `network` of a new sandbox */
extern const struct field network_update_fields[]; /* a body of PUT .../network */

struct network {       /* zero is a valid empty one */
	json_t *hosts; /* for row.network */
	json_t *said;  /* as it was asked for, to be told again */
};
void network_fini(struct network *n);
/* from: an object of network_fields or network_update_fields, checked; may be NULL.
 * internet: 0, 1, or -1 where nothing was said. */
must_check int network_read(const struct api *a, const json_t *from, int internet,
			    struct network *out, struct err *e);

void network_put(struct call *c);
