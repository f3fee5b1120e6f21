/* ready.c - see ready.h. */
#include "e2bcontrol/ready.h"
#include "base/cleanup.h"
#include "fleet/exec_reader.h"
#include "record/cause.h"

#include <string.h>

enum { READY_POLL_MS = 100, READY_MOST_MS = 60000 };

struct ready {
	struct call *call;
	char box[ID_MAX + 1];
	char *command;
	struct exec_reader reader;
	int asking; /* the reader is open */
	struct timer again;
	uint64_t until_ms;
	void (*done)(struct call *c, struct box *b, const struct err *e);
};

static void ready_fini(struct ready *x)
{
	if (x->asking)
		exec_reader_close(&x->reader);
	timer_fini(&x->again);
	free(x->command);
}

static void ready_end(struct ready *x, const struct err *e)
{
	struct call *c = x->call;
	struct box *b = fleet_find(&c->api->fleet, x->box);
	struct err gone;

	c->drop = NULL;
	ready_fini(x);
	if (!b && !e) {
		err_set(&gone, ERR_NOT_FOUND, "sandbox %s has ended", x->box);
		e = &gone;
	}
	if (b && e)
		box_end(b, CAUSE_OPERATOR, NULL);
	x->done(c, b, e);
}

static void ready_left(struct call *c)
{
	struct ready *x = c->state;
	struct box *b = fleet_find(&c->api->fleet, x->box);

	ready_fini(x);
	if (b)
		box_end(b, CAUSE_OPERATOR, NULL);
}

static void ready_output(struct exec_reader *r, unsigned stream, uint64_t offset, const char *bytes,
			 size_t n)
{
	(void)r;
	(void)stream;
	(void)offset;
	(void)bytes;
	(void)n;
}

static void ready_asked(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct ready *x = loop_owner(r, struct ready, reader);
	const char *cause = json_string_value(json_object_get(record, "cause"));
	struct err late;

	(void)e;
	x->asking = 0;
	if (cause && !strcmp(cause, cause_name(CAUSE_EXIT)) &&
	    json_integer_value(json_object_get(record, "status")) == 0) {
		ready_end(x, NULL);
	} else if (loop_now_ms() >= x->until_ms) {
		err_set(&late, ERR_SYS, "the sandbox was not ready after %d s: %.120s",
			READY_MOST_MS / 1000, x->command);
		ready_end(x, &late);
	} else {
		timer_set(&x->again, READY_POLL_MS);
	}
}

static void ready_ask(struct timer *t)
{
	static const struct exec_reader_events on = { .output = ready_output, .over = ready_asked };
	struct ready *x = loop_owner(t, struct ready, again);
	struct box *b = fleet_find(&x->call->api->fleet, x->box);
	const char *argv[] = { "/bin/sh", "-c", x->command, NULL };
	struct exec_spec want = {
		.argv = argv, .kind = STORE_RUN_EXEC, .helper = 1, .wall_ms = READY_MOST_MS
	};
	struct exec *r;
	struct err e;

	if (!b || b->state != BOX_RUNNING) {
		err_set(&e, ERR_NOT_FOUND, "sandbox %s has ended", x->box);
		ready_end(x, &e);
		return;
	}
	exec_reader_init(&x->reader, b->fleet, &on);
	if (exec_launch(b, &want, &x->reader, &r, &e) < 0)
		ready_end(x, &e);
	else
		x->asking = 1;
}

/* A pause checks nothing: it is for the build, which takes the state after it. */
static int ready_is_pause(const char *command)
{
	return !strncmp(command, "sleep ", 6) &&
	       strspn(command + 6, "0123456789.") == strlen(command + 6);
}

void ready_await(struct call *c, struct box *b,
		 void (*done)(struct call *c, struct box *b, const struct err *e))
{
	json_t *root = b->row.root ? json_loads(b->row.root, 0, NULL) : NULL;
	const char *command = json_string_value(json_object_get(root, "ready"));
	struct ready *x = call_alloc(c, sizeof(*x));

	if (!command || !*command || ready_is_pause(command)) {
		json_decref(root);
		done(c, b, NULL);
		return;
	}
	*x = (struct ready){ .call = c, .command = strdup(command), .done = done };
	json_decref(root);
	if (!x->command)
		abort();
	memcpy(x->box, b->row.id, sizeof(x->box));
	x->until_ms = loop_now_ms() + READY_MOST_MS;
	timer_init(&x->again, c->api->loop, ready_ask);
	c->state = x;
	c->drop = ready_left;
	ready_ask(&x->again);
}
