/* box_row.h - the row of a new box in the answer of a node to a gateway: the header Atoll-Box.
 * Owns: nothing. */
#pragma once
#include "api/api.h"

enum { BOX_ROW_MOST = 4000 }; /* bytes; a longer row follows over the control connection only */

void box_row_set(struct call *c, const char *id); /* nothing, if the caller is not a gateway */
