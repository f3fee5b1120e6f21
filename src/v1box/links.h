/* links.h - the links of a box in requests: {"db": BOX}.
 * Owns: nothing. */
#pragma once
#include "api/api.h"

/* Adds a line "link NAME ID" (box_link.h) for each entry; links may be NULL. A box is given by id or name and
 * belongs to the team of the client. */
must_check int links_read(struct call *c, const json_t *links, json_t *lines, struct err *e);
