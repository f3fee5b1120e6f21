/* definition.h - what another node needs to create a box again, besides its files: a JSON object.
 * Owns: nothing. The format is read by nodes that are one minor version older or newer. */
#pragma once
#include "fleet/box.h"

/* Why the box cannot be created on another node; NULL: it can. */
const char *box_definition_obstacle(const struct box_spec *want);
json_t *box_definition(const struct store_box *row);

struct box_definition {       /* of box_definition_read() */
	struct box_spec want; /* its texts are those of the document */
	char id[ID_MAX + 1];
	char *metadata; /* of want.row, with BOX_RESTART */
};
/* doc is borrowed, and must live as long as out. ERR_INVALID names the field. */
must_check int box_definition_read(const json_t *doc, struct box_definition *out, struct err *e);
void box_definition_fini(struct box_definition *d);
