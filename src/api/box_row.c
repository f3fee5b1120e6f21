/* box_row.c - see box_row.h. */
#include "api/box_row.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

void box_row_set(struct call *c, const char *id)
{
	json_t *row = c->req->trusted_peer && c->api->box_row ? c->api->box_row(c->api, id) : NULL;
	auto_free char *text = row ? json_dumps(row, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	if (text && strlen(text) <= BOX_ROW_MOST)
		http_set(c->req, "Atoll-Box", "%s", text);
	json_decref(row);
}
