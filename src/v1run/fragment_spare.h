/* fragment_spare.h - boxes of built web templates in which the server runs already and has answered: the next
 * fragment of the template takes one, and its files are all that is missing.
 * Owns: boxes with BOX_SPARE in their metadata, until one is taken. Clients do not see them, and quotas do not
 * count them. One that is not taken ends after half an hour; after a restart of the server they end. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

extern const struct box_hooks fragment_spare_hooks;

/* Takes one for the request: same team, build, command and port. It is then an ordinary box with the session,
 * the metadata and the timeouts of want. NULL: there is none. */
struct box *fragment_spare_take(struct call *c, const struct box_spec *want);
/* The server of the request has answered: prepares a box for the next one like it, if none is there. */
void fragment_spare_keep(struct call *c);
void fragment_spares_free(struct api *a); /* the boxes stay for the next server, which ends them */
