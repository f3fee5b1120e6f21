/* cell.c - see cell.h. */
#include "jupyter/cell.h"
#include "base/cleanup.h"
#include "jupyter/driver_events.h"

#include <stdio.h>
#include <string.h>

void said_fini(struct said *s)
{
	buf_fini(&s->out);
	buf_fini(&s->err);
	buf_fini(&s->channel);
}

void cell_begin(struct kernel_cell *c, const char *id, const char *request)
{
	*c = (struct kernel_cell){ .count = c->count + 1 };
	snprintf(c->id, sizeof(c->id), "%s", id);
	snprintf(c->request, sizeof(c->request), "%s", request);
}

int cell_runs(const struct kernel_cell *c)
{
	return c->id[0] != 0;
}

static const char *text_in(const json_t *content, const char *name)
{
	const char *v = json_string_value(json_object_get(content, name));

	return v ? v : "";
}

/* ---- what it says ---- */

static void on_status(struct kernel_cell *c, const json_t *content, struct said *to)
{
	(void)to;
	if (!strcmp(text_in(content, "execution_state"), "idle"))
		c->seen |= CELL_IDLE;
}

static void on_begun(struct kernel_cell *c, const json_t *content, struct said *to)
{
	(void)content;
	(void)to;
	c->begun = 1;
}

static void on_display(struct kernel_cell *c, const json_t *content, struct said *to)
{
	(void)!driver_event_result(&to->channel, c->id, 0, 0, content);
}

static void on_update(struct kernel_cell *c, const json_t *content, struct said *to)
{
	(void)!driver_event_result(&to->channel, c->id, 0, 1, content);
}

/* A cell has one value; a kernel that is configured to show every expression sends more. */
static void on_value(struct kernel_cell *c, const json_t *content, struct said *to)
{
	if (driver_event_result(&to->channel, c->id, !c->main_told, 0, content) == 0)
		c->main_told = 1;
}

static void on_error(struct kernel_cell *c, const json_t *content, struct said *to)
{
	if (!c->error_told)
		driver_event_error(&to->channel, c->id, content);
	c->error_told = 1;
}

/* Text that a notebook shows outside of the cell: the help for `name?`. */
static void show_pages(struct kernel_cell *c, const json_t *content, struct said *to)
{
	const json_t *page;
	size_t i;

	json_array_foreach(json_object_get(content, "payload"), i, page)
	{
		if (!strcmp(text_in(page, "source"), "page") && i < 16)
			on_display(c, page, to);
	}
}

static void on_reply(struct kernel_cell *c, const json_t *content, struct said *to)
{
	const json_t *count = json_object_get(content, "execution_count");

	if (c->seen & CELL_REPLIED)
		return;
	c->seen |= CELL_REPLIED;
	c->failed = strcmp(text_in(content, "status"), "ok") != 0;
	if (json_is_integer(count) && json_integer_value(count) >= 0)
		c->count = json_integer_value(count);
	show_pages(c, content, to);
	/* Most kernels send the error on the other socket, too, perhaps later. */
	if (c->failed && *text_in(content, "ename"))
		c->reply = json_incref((json_t *)content);
}

static void on_input(struct kernel_cell *c, const struct jupyter_msg *m, struct said *to)
{
	json_decref(c->asks);
	c->asks = json_incref(m->header);
	driver_event_input(&to->channel, c->id, m->content);
}

static const struct {
	const char *type;
	void (*on)(struct kernel_cell *c, const json_t *content, struct said *to);
} table[] = {
	{ "status", on_status },        { "execute_input", on_begun },
	{ "display_data", on_display }, { "update_display_data", on_update },
	{ "execute_result", on_value }, { "error", on_error },
	{ "execute_reply", on_reply },
};

void kernel_cell_on_message(struct kernel_cell *c, const struct jupyter_msg *m, struct said *to)
{
	if (!strcmp(m->type, "input_request")) {
		on_input(c, m, to);
		return;
	}
	for (unsigned i = 0; i < ARRAY_LEN(table); i++)
		if (!strcmp(m->type, table[i].type))
			table[i].on(c, m->content, to);
}

void cell_stream(const struct jupyter_msg *m, struct said *to)
{
	const json_t *text = json_object_get(m->content, "text");

	if (json_is_string(text))
		buf_add(strcmp(text_in(m->content, "name"), "stderr") ? &to->out : &to->err,
			json_string_value(text), json_string_length(text));
}

void cell_finish(struct kernel_cell *c, int now, struct said *to)
{
	const char *status;

	if (!cell_runs(c) || (c->seen != CELL_OVER && !now))
		return;
	c->failed |= !(c->seen & CELL_REPLIED);
	status = !c->failed ? "ok" : c->interrupted ? "interrupted" : "error";
	if (c->reply)
		on_error(c, c->reply, to);
	if (c->failed && !c->error_told)
		driver_event_trouble(&to->channel, c->id,
				     c->interrupted ? "Interrupted" : "Aborted",
				     c->interrupted ? "the cell was interrupted"
						    : "the kernel did not say what became of it");
	driver_event_end(&to->channel, c->id, status, c->count);
	json_decref(c->asks);
	json_decref(c->reply);
	*c = (struct kernel_cell){ .count = c->count };
}
