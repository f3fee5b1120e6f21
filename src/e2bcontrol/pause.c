/* pause.c - see pause.h. */
#include "e2bcontrol/pause.h"
#include "v1box/pause.h"

#include <string.h>

const struct field pausing_fields[] = {
	{ "memory", FIELD_BOOL, 0, 0, 0, "false: keep only the files", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

int pausing_is_paused(const struct box *b)
{
	return b->state == BOX_PAUSED || b->state == BOX_STOPPED;
}

static void pause_paused(struct call *c, struct box *b, const struct err *e)
{
	(void)b;
	if (e)
		call_fail(c, e);
	else
		call_empty(c, 204);
}

int pausing_check(const char *to, struct err *e)
{
	return !to || !strcmp(to, "memory") || !strcmp(to, "disk")
		       ? 0
		       : err_set(e, ERR_INVALID,
				 "metadata: " PAUSING_KEY " is memory or disk, not '%.40s'", to);
}

static int pause_to_disk(const struct box *b)
{
	json_t *doc = b->row.metadata ? json_loads(b->row.metadata, 0, NULL) : NULL;
	const char *to = json_string_value(json_object_get(doc, PAUSING_KEY));
	int disk = to && !strcmp(to, "disk");

	json_decref(doc);
	return disk;
}

void pausing_pause(struct call *c)
{
	struct box *b = call_box_peek(c, 0);

	if (!b)
		return;
	if (pausing_is_paused(b))
		e2b_error(c, 409, "Sandbox %s is already paused", b->row.id);
	else if (call_flag(c, "memory", 1) && pause_to_disk(b))
		pause_begin_disk(c, b, pause_paused);
	else
		pause_begin(c, b, call_flag(c, "memory", 1), pause_paused);
}

void pausing_want(struct store_box *row, const struct e2b_box *x)
{
	row->on_timeout = !x->auto_pause    ? STORE_TIMEOUT_KILL
			  : x->pause_memory ? STORE_TIMEOUT_PAUSE
					    : STORE_TIMEOUT_KEEP;
	row->retention_ms = STORE_FOREVER; /* a paused sandbox of E2B is kept until a client
					    * deletes it */
}
