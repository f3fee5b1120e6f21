/* context.c - see context.h.
 *
 *   client       context                         driver
 *   code    -->  {"op":"run","id":"7"}      -->  runs it
 *                row: cell 7 begins at these bytes of its three streams
 *           <--  stdout, stderr             <--  prints
 *           <--  result, error, input       <--  channel
 *           <--  end                        <--  {"ev":"end","id":"7"}
 *
 * The row is written while the driver works, and again after the end was told: a cell costs no write
 * that its client waits for. If the front dies between the two lines, the next one hears of a cell
 * that it has no row of, and takes it as it comes. */
#include "fleet/context.h"
#include "base/log.h"
#include "base/own.h"
#include "box/record.h"
#include "lang/driver.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { LOG_BYTES = 4 << 20 }; /* of each stream, for whoever comes back */

static const struct {
	const char *name;
	unsigned next;
} states[] = {
	[CONTEXT_STARTING] = { "starting", 1u << CONTEXT_IDLE | 1u << CONTEXT_DEAD },
	[CONTEXT_IDLE] = { "idle",
			   1u << CONTEXT_BUSY | 1u << CONTEXT_DEAD | 1u << CONTEXT_STARTING },
	[CONTEXT_BUSY] = { "busy",
			   1u << CONTEXT_IDLE | 1u << CONTEXT_DEAD | 1u << CONTEXT_STARTING },
	[CONTEXT_DEAD] = { "dead", 1u << CONTEXT_STARTING },
};
_Static_assert(ARRAY_LEN(states) == CONTEXT_STATES, "a state without a row");

const char *context_state_name(enum context_state s)
{
	return states[s].name;
}

static void become(struct context *c, enum context_state next)
{
	if (!(states[c->state].next >> next & 1))
		abort(); /* our bug */
	c->state = next;
}

static struct run *run_of(const struct context *c)
{
	return run_find(c->berth, c->row.run);
}

static void write_row(struct context *c)
{
	struct err e;

	/* What is not written is only lost to those who come back after a crash. */
	if (store_context_update(c->berth->fleet->store, &c->row, &e) < 0 &&
	    e.kind != ERR_NOT_FOUND)
		log_error("context row lost", LOG_S("context", c->row.id), LOG_S("error", e.msg));
}

/* ---- who waits for it ---- */

void context_await(struct context *c, struct context_wait *w)
{
	w->context = c;
	w->next = c->waiters;
	c->waiters = w;
}

void context_wait_cancel(struct context_wait *w)
{
	if (!w->context)
		return;
	for (struct context_wait **at = &w->context->waiters; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	w->context = NULL;
}

static void tell_waiters(struct context *c)
{
	while (c->waiters) {
		struct context_wait *w = c->waiters;

		c->waiters = w->next;
		w->context = NULL;
		w->done(w, c);
	}
}

/* ---- cells ---- */

/* Finished ones are kept for a while, small ones longer than large ones. */
static void keep(struct context *c, struct cell *take_cell)
{
	size_t bytes = 0;
	unsigned n = 0;

	take_cell->next = c->kept;
	c->kept = take_cell;
	for (struct cell **at = &c->kept; *at;) {
		struct cell *x = *at;

		bytes += n ? x->out[0].len + x->out[1].len + x->event_bytes : 0;
		if (++n <= CONTEXT_KEPT && bytes <= CONTEXT_KEPT_BYTES) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		cell_unref(x);
	}
}

static void set_clock(struct context *c)
{
	int64_t left = c->row.deadline_ns - fleet_now_ns();

	if (c->state == CONTEXT_STARTING)
		timer_set(&c->clock, CONTEXT_READY_MS);
	else if (c->state != CONTEXT_BUSY || !c->row.deadline_ns)
		timer_clear(&c->clock);
	else
		timer_set(&c->clock, left > 0 ? (uint64_t)left / 1000000 + 1 : 0);
}

static void run_cell(struct context *c, struct cell *take_cell)
{
	auto_buf struct buf line = { 0 };
	struct run *r = run_of(c);

	c->current = take_cell;
	take_cell->next = NULL;
	take_cell->state = CELL_RUNNING;
	take_cell->number = ++c->row.cell;
	take_cell->began_ns = fleet_now_ns();
	memcpy(take_cell->from, c->at, sizeof(c->at));
	talk_run(&line, take_cell->number, buf_str(&take_cell->run), take_cell->run.len,
		 take_cell->env);
	buf_fini(&take_cell->run);
	memcpy(c->row.from, c->at, sizeof(c->at));
	c->row.status[0] = 0;
	c->row.answers = 0;
	c->row.began_ns = take_cell->began_ns;
	c->row.deadline_ns =
		take_cell->timeout_ms
			? take_cell->began_ns + (int64_t)take_cell->timeout_ms * 1000000
			: 0;
	c->row.max_output = take_cell->max_output;
	c->interrupted = 0;
	become(c, CONTEXT_BUSY);
	berth_hold(c->berth);
	if (r)
		c->row.said = run_say(r, line.p, line.len);
	set_clock(c);
	write_row(c);
	cell_tell(take_cell);
}

static void next_cell(struct context *c)
{
	struct cell *x = c->queue;

	if (!x || c->state != CONTEXT_IDLE)
		return;
	c->queue = x->next;
	c->queued--;
	c->queued_bytes -= x->run.len;
	run_cell(c, x);
}

/* The running one is over; its client hears of it before it is written down. */
static void end_cell(struct context *c, json_t *take_end)
{
	struct cell *x = c->current;
	const char *status = json_string_value(json_object_get(take_end, "status"));

	c->current = NULL;
	snprintf(c->row.status, sizeof(c->row.status), "%s", status ? status : "");
	c->row.deadline_ns = 0;
	c->killing = NULL;
	cell_over(x, take_end);
	cell_ref(x);
	keep(c, x);
	cell_tell(x);
	cell_unref(x);
	berth_release(c->berth);
	write_row(c);
}

static void end_queue(struct context *c, const char *cause, const char *message)
{
	while (c->queue) {
		struct cell *x = c->queue;

		c->queue = x->next;
		cell_over(x, json_pack("{s:s, s:s, s:s}", "status", "dropped", "cause", cause,
				       "message", message));
		cell_tell(x);
		cell_unref(x);
	}
	c->queued = 0;
	c->queued_bytes = 0;
}

/* ---- its end ---- */

static void hang_up(struct context *c)
{
	struct run *r = run_of(c);

	if (r && r->user == c) {
		r->on_told = NULL;
		r->user = NULL;
	}
	if (c->tapped)
		tap_close(&c->tap);
	c->tapped = 0;
}

static void kill_driver(struct context *c)
{
	struct run *r = run_of(c);

	if (r)
		run_signal(r, SIGKILL);
}

static char *copy(const char *s)
{
	char *c = s ? strdup(s) : NULL;

	if (s && !c)
		abort();
	return c;
}

static void set_end(struct context *c, const char *cause, const char *why, const char *hint)
{
	snprintf(c->end.cause, sizeof(c->end.cause), "%s", cause ? cause : "");
	free(c->end.why);
	free(c->end.hint);
	c->end.why = copy(why);
	c->end.hint = copy(hint);
}

static json_t *end_json(const struct context *c, const char *status)
{
	return json_pack("{s:s, s:s, s:s?, s:s?}", "status", status, "cause", c->end.cause,
			 "message", c->end.why, "hint", c->end.hint);
}

/* It runs no more cells. */
static void die(struct context *c, const char *cause, const char *why, const char *hint)
{
	const char *status = c->killing ? "killed" : "died";

	set_end(c, c->killing ? c->killing : cause, why, hint);
	hang_up(c);
	timer_clear(&c->clock);
	if (c->state != CONTEXT_DEAD)
		become(c, CONTEXT_DEAD);
	/* One that had ended before a restart has, whatever became of its driver since. */
	if (c->current)
		end_cell(c, c->row.status[0] ? json_pack("{s:s}", "status", c->row.status)
					     : end_json(c, status));
	c->killing = NULL;
	end_queue(c, c->end.cause, "its context died before its turn came");
	tell_waiters(c);
}

static void broke_rules(struct context *c, const char *why)
{
	kill_driver(c);
	die(c, "protocol", why, "restart it: what ran in it may have written to descriptor 3");
}

/* ---- what the driver says ---- */

/* Another front began it, or one that died before it could write so. */
static void adopt_cell(struct context *c, uint64_t number)
{
	struct cell *x = cell_new();

	x->state = CELL_RUNNING;
	x->number = c->row.cell = number;
	x->began_ns = c->row.began_ns = fleet_now_ns();
	memcpy(x->from, c->at, sizeof(c->at));
	memcpy(c->row.from, c->at, sizeof(c->at));
	c->row.status[0] = 0;
	c->row.answers = 0;
	c->current = x;
	become(c, CONTEXT_BUSY);
	berth_hold(c->berth);
}

static void ready(struct context *c, struct talk_event *ev)
{
	const char *version = json_string_value(json_object_get(ev->doc, "version"));

	if (c->state != CONTEXT_STARTING) {
		broke_rules(c, "the driver said that it is ready a second time");
		return;
	}
	snprintf(c->version, sizeof(c->version), "%s", version ? version : "");
	become(c, CONTEXT_IDLE);
	set_clock(c);
	tell_waiters(c);
	next_cell(c);
}

static void ended(struct context *c, struct talk_event *ev)
{
	json_t *end = json_incref(ev->doc), *count = json_object_get(end, "count");

	if (json_is_integer(count) && (uint64_t)json_integer_value(count) <= ev->cell)
		c->born = ev->cell - (uint64_t)json_integer_value(count);
	if (c->interrupted)
		json_object_set_new(end, "cause", json_string("timeout"));
	become(c, CONTEXT_IDLE);
	end_cell(c, end);
	set_clock(c);
	next_cell(c);
}

/* end: of its line in the channel. */
static void heard(struct context *c, struct talk_event *ev, uint64_t end)
{
	if (ev->kind == TALK_READY) {
		ready(c, ev);
		return;
	}
	if (c->state == CONTEXT_STARTING || (c->current && ev->cell > c->current->number)) {
		broke_rules(c, "the driver spoke of a cell that it was not given");
		return;
	}
	if (!c->current && ev->cell > c->row.cell)
		adopt_cell(c, ev->cell);
	if (!c->current || ev->cell < c->current->number)
		return; /* some thread of a cell that is over */
	if (ev->kind == TALK_END) {
		ended(c, ev);
		return;
	}
	c->current->asked += ev->kind == TALK_INPUT;
	cell_event(c->current, end - c->current->from[2], json_incref(ev->doc));
	cell_tell(c->current);
}

static void listen_to(struct context *c, uint64_t offset, const char *bytes, size_t n)
{
	while (n && c->state != CONTEXT_DEAD && c->tapped) {
		const char *before = bytes;
		struct talk_event ev;
		struct err e;
		int rc = talk_take(&c->talk, &bytes, &n, &ev, &e);

		offset += (uint64_t)(bytes - before);
		c->at[2] = offset;
		if (rc < 0) {
			broke_rules(c, e.msg);
		} else if (rc) {
			heard(c, &ev, offset);
			json_decref(ev.doc);
		}
	}
}

static void tap_reads(struct tap *t, unsigned stream, uint64_t offset, const char *bytes, size_t n)
{
	struct context *c = loop_owner(t, struct context, tap);

	if (stream == 2) {
		listen_to(c, offset, bytes, n);
		return;
	}
	c->at[stream] = offset + n;
	if (c->state == CONTEXT_STARTING && stream == 1)
		buf_add(&c->last_words, bytes,
			n < CONTEXT_WORDS - c->last_words.len ? n
							      : CONTEXT_WORDS - c->last_words.len);
	if (!c->current || offset < c->current->from[stream])
		return;
	cell_output(c->current, stream, offset - c->current->from[stream], bytes, n);
	cell_tell(c->current);
}

/* After a restart: some bytes may be gone, if more came than init keeps while nobody read. */
static void tap_begins(struct tap *t, unsigned stream, uint64_t from, uint64_t tip)
{
	struct context *c = loop_owner(t, struct context, tap);

	(void)tip;
	if (from == c->at[stream])
		return;
	c->at[stream] = from;
	if (c->current)
		c->current->truncated = 1;
	if (stream != 2)
		return;
	talk_gap(&c->talk);
	if (!c->current || c->row.status[0]) {
		if (c->state == CONTEXT_STARTING)
			become(c, CONTEXT_IDLE);
		if (c->current) {
			become(c, CONTEXT_IDLE);
			end_cell(c, json_pack("{s:s}", "status", c->row.status));
		}
	} else {
		kill_driver(c);
		die(c, "lost",
		    "what its driver said while no daemon was there was too much to be kept",
		    "restart it");
	}
}

static const char *text_in(const json_t *doc, const char *name)
{
	return json_string_value(json_object_get(doc, name));
}

static int start_driver(struct context *c, struct err *e);

static void start_again(struct context *c)
{
	struct err e;

	c->restarting = 0;
	if (start_driver(c, &e) < 0) {
		die(c, "host", e.msg, NULL);
		return;
	}
	write_row(c);
}

/* The record's own words; a program that just exits needs some of ours. */
static void ended_as(struct context *c, const json_t *record)
{
	const char *summary = text_in(record, "summary");
	auto_buf struct buf why = { 0 };
	json_t *heard;

	if (summary)
		buf_puts(&why, summary);
	else
		buf_printf(&why, "its interpreter ended by itself, with status %d",
			   (int)json_integer_value(json_object_get(record, "status")));
	heard = changes_text(buf_str(&c->last_words));
	if (c->state == CONTEXT_STARTING && json_string_length(heard))
		buf_printf(&why, ": %s", json_string_value(heard));
	json_decref(heard);
	die(c, text_in(record, "cause"), buf_str(&why), text_in(record, "hint"));
}

static void tap_ends(struct tap *t, json_t *record, const struct err *e)
{
	struct context *c = loop_owner(t, struct context, tap);

	hang_up(c);
	if (c->restarting)
		start_again(c);
	else if (record)
		ended_as(c, record);
	else
		die(c, "host", e->msg, NULL);
}

static const struct tap_events tap_on = { .reading = tap_begins,
					  .output = tap_reads,
					  .over = tap_ends };

/* ---- time ---- */

static void clock_due(struct timer *t)
{
	struct context *c = loop_owner(t, struct context, clock);
	struct run *r = run_of(c);

	if (c->berth->state == BERTH_PAUSED)
		return; /* time stands still: contexts_resume() */
	if (c->state == CONTEXT_STARTING) {
		kill_driver(c);
		die(c, "slow", "its driver did not get ready in time", "try again, with more cpu");
	} else if (c->state == CONTEXT_BUSY && !c->interrupted) {
		c->interrupted = 1;
		if (r)
			run_signal(r, SIGINT);
		timer_set(&c->clock, CONTEXT_GRACE_MS);
	} else if (c->state == CONTEXT_BUSY) {
		c->killing = "timeout";
		kill_driver(c); /* its end tells the rest */
	}
}

void contexts_resume(struct berth *b)
{
	for (struct context *c = b->contexts; c && b->paused_ns > 0; c = c->next) {
		if (c->row.deadline_ns)
			c->row.deadline_ns += b->paused_ns;
		set_clock(c);
	}
	b->paused_ns = 0;
}

/* ---- the beginning ---- */

static const char **env_words(const json_t *env, struct buf *pool)
{
	const char **words = calloc(json_object_size(env) + 1, sizeof(*words)), *name;
	size_t n = 0, at = 0;
	json_t *v;

	if (!words)
		abort();
	json_object_foreach((json_t *)env, name, v)
	{
		buf_printf(pool, "%s=%s", name, json_string_value(v));
		buf_add(pool, "", 1);
	}
	for (; n < json_object_size(env); n++, at += strlen(pool->p + at) + 1)
		words[n] = pool->p + at;
	return words;
}

static int start_driver(struct context *c, struct err *e)
{
	const struct driver *d = driver_of(c->row.language);
	json_t *env = c->row.env ? json_loads(c->row.env, 0, NULL) : NULL;
	auto_buf struct buf pool = { 0 };
	auto_free const char **words = env_words(env, &pool);
	const char *argv[DRIVER_WORDS];
	struct run_want want = {
		.argv = argv,
		.env = words,
		.cwd = c->row.cwd && *c->row.cwd ? c->row.cwd : NULL,
		.tag = c->row.id,
		.kind = STORE_RUN_EXEC,
		.log_bytes = LOG_BYTES,
		.channel = 1,
		.seed = d->seeded,
	};
	struct run *r;
	int rc;

	json_decref(env);
	driver_words(d, c->row.language, argv);
	tap_init(&c->tap, c->berth->fleet, &tap_on);
	c->tap.streams = CELL_STREAMS;
	rc = run_start(c->berth, &want, &c->tap, &r, e);
	if (rc < 0)
		return -1;
	c->tapped = 1;
	buf_cut(&c->last_words, 0);
	c->talk.lost = 0;
	buf_cut(&c->talk.line, 0);
	memset(c->at, 0, sizeof(c->at));
	memset(c->row.from, 0, sizeof(c->row.from));
	c->row.said = 0;
	c->born = c->row.cell;
	c->row.began_ns = c->row.deadline_ns = 0; /* no cell of this driver yet */
	memcpy(c->row.run, r->id, sizeof(c->row.run));
	c->row.ref = r->ref;
	set_clock(c);
	return 0;
}

static struct context *new_context(struct berth *b)
{
	struct context *c = calloc(1, sizeof(*c));
	struct context **at = &b->contexts;

	if (!c)
		abort();
	c->berth = b;
	timer_init(&c->clock, b->fleet->loop, clock_due);
	while (*at)
		at = &(*at)->next;
	*at = c;
	b->ncontexts++;
	return c;
}

static void context_free(struct context *c)
{
	hang_up(c);
	for (struct context **at = &c->berth->contexts; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	c->berth->ncontexts--;
	timer_fini(&c->clock);
	while (c->kept) {
		struct cell *x = c->kept;

		c->kept = x->next;
		cell_unref(x);
	}
	while (c->queue) {
		struct cell *x = c->queue;

		c->queue = x->next;
		cell_unref(x);
	}
	cell_unref(c->current);
	while (c->waiters)
		context_wait_cancel(c->waiters);
	talk_fini(&c->talk);
	buf_fini(&c->last_words);
	store_context_fini(&c->row);
	free(c->end.why);
	free(c->end.hint);
	free(c);
}

int context_new(struct berth *b, const struct context_want *want, struct context **out,
		struct err *e)
{
	struct context *c;

	if (!driver_of(want->language))
		return err_set(e, ERR_INVALID,
			       "language: there is no interpreter of '%.40s' that keeps its state",
			       want->language);
	if (b->ncontexts >= CONTEXT_MAX)
		return err_set(e, ERR_LIMIT, "box %s has %d contexts already, and no more at once",
			       b->row.id, CONTEXT_MAX);
	c = new_context(b);
	if (id_new(c->row.id, e) < 0) {
		context_free(c);
		return -1;
	}
	memcpy(c->row.box, b->row.id, sizeof(c->row.box));
	snprintf(c->row.language, sizeof(c->row.language), "%s", want->language);
	c->row.standing = want->standing;
	c->row.created_ns = fleet_now_ns();
	c->row.cwd = copy(want->cwd ? want->cwd : "");
	c->row.env = want->env ? json_dumps(want->env, JSON_COMPACT) : NULL;
	if (start_driver(c, e) < 0 || store_context_insert(b->fleet->store, &c->row, e) < 0) {
		kill_driver(c);
		context_free(c);
		return -1;
	}
	*out = c;
	return 0;
}

struct context *context_find(const struct berth *b, const char *id)
{
	struct context *c = b->contexts;

	while (c && strcmp(c->row.id, id) != 0)
		c = c->next;
	return c;
}

struct context *context_standing(const struct berth *b, const char *language)
{
	struct context *c = b->contexts;

	while (c && !(c->row.standing && !strcmp(c->row.language, language)))
		c = c->next;
	return c;
}

/* ---- asking it ---- */

int context_cell(struct context *c, const struct cell_want *want, struct cell **out, struct err *e)
{
	struct cell *x, **at = &c->queue;

	if (c->state == CONTEXT_DEAD)
		return err_set(e, ERR_CONFLICT, "context %s is dead: %.150s", c->row.id,
			       c->end.why ? c->end.why : c->end.cause);
	if (c->queued >= CONTEXT_QUEUE || c->queued_bytes + want->code_len > CONTEXT_QUEUED)
		return err_set(e, ERR_LIMIT, "context %s has %u cells waiting already", c->row.id,
			       c->queued);
	x = cell_new();
	buf_add(&x->run, want->code, want->code_len);
	x->env = json_incref(want->env);
	x->timeout_ms = want->timeout_ms;
	x->max_output = want->max_output ? want->max_output : CELL_OUTPUT;
	*out = cell_ref(x);
	if (c->state == CONTEXT_IDLE && !c->queue) {
		run_cell(c, x);
		return 0;
	}
	while (*at)
		at = &(*at)->next;
	*at = x;
	c->queued++;
	c->queued_bytes += x->run.len;
	return 0;
}

struct cell *context_cell_find(const struct context *c, uint64_t number)
{
	if (c->current && c->current->number == number)
		return c->current;
	for (struct cell *x = c->kept; x; x = x->next)
		if (x->number == number)
			return x;
	return NULL;
}

int context_interrupt(struct context *c)
{
	struct run *r = run_of(c);

	if (c->state != CONTEXT_BUSY || !r)
		return 0;
	run_signal(r, SIGINT);
	return 1;
}

void context_cell_cancel(struct context *c, struct cell *x)
{
	if (x == c->current) {
		context_interrupt(c);
		return;
	}
	for (struct cell **at = &c->queue; *at; at = &(*at)->next) {
		if (*at != x)
			continue;
		*at = x->next;
		c->queued--;
		c->queued_bytes -= x->run.len;
		cell_over(x, json_pack("{s:s, s:s}", "status", "dropped", "cause", "cancelled"));
		cell_tell(x);
		cell_unref(x);
		return;
	}
}

int context_input(struct context *c, const char *text, size_t n, struct err *e)
{
	auto_buf struct buf line = { 0 };
	struct run *r = run_of(c);

	if (!c->current || c->current->asked <= c->current->answered || !r)
		return err_set(e, ERR_CONFLICT, "no cell of context %s waits for input", c->row.id);
	talk_input(&line, c->current->number, text, n);
	c->row.answers = ++c->current->answered;
	c->row.said = run_say(r, line.p, line.len);
	write_row(c);
	return 0;
}

int context_restart(struct context *c, struct err *e)
{
	if (c->berth->state != BERTH_RUNNING)
		return err_set(e, ERR_CONFLICT, "box %s is %s", c->row.box,
			       berth_state_name(c->berth->state));
	set_end(c, "restart", "its context was restarted", NULL);
	if (c->current)
		end_cell(c, end_json(c, "killed"));
	end_queue(c, "restart", "its context was restarted before its turn came");
	if (c->state != CONTEXT_STARTING)
		become(c, CONTEXT_STARTING);
	set_clock(c);
	c->killing = NULL;
	if (c->tapped && run_of(c)) {
		c->restarting = 1;
		kill_driver(c);
		return 0;
	}
	hang_up(c);
	start_again(c);
	if (c->state == CONTEXT_DEAD)
		return err_set(e, ERR_CONFLICT, "%s", c->end.why ? c->end.why : "it did not start");
	return 0;
}

void context_end(struct context *c)
{
	struct err e;

	kill_driver(c);
	c->killing = "removed";
	c->restarting = 0;
	die(c, "removed", "its context was removed", NULL);
	(void)!store_context_delete(c->berth->fleet->store, c->row.id, &e);
	context_free(c);
}

json_t *context_json(const struct context *c)
{
	json_t *doc =
		json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:I, s:i, s:s}", "id", c->row.id,
			  "box", c->row.box, "language", c->row.language, "state",
			  states[c->state].name, "default", c->row.standing, "cwd",
			  *c->row.cwd ? c->row.cwd : "/home/user", "version", c->version, "cells",
			  (json_int_t)c->row.cell, "waiting", (int)c->queued, "exec", c->row.run);

	json_object_set_new(doc, "created", record_when((uint64_t)c->row.created_ns));
	json_object_set_new(doc, "cell",
			    c->current ? json_integer((json_int_t)c->current->number)
				       : json_null());
	if (c->state == CONTEXT_DEAD)
		json_object_set_new(doc, "end",
				    json_pack("{s:s, s:s?, s:s?}", "cause", c->end.cause, "message",
					      c->end.why, "hint", c->end.hint));
	return doc;
}

/* ---- after a restart ---- */

/* A line that was cut in the middle cannot be finished: nobody has the rest of it. */
static void told(struct run *r)
{
	struct context *c = r->user;

	r->on_told = NULL;
	if (r->words_sent >= c->said_before)
		return;
	kill_driver(c);
	die(c, "lost", "the daemon ended while it was sending a cell", "restart it");
}

/* The last cell, running or not, as it will be read again. */
static void restore_cell(struct context *c)
{
	struct cell *x = cell_new();

	x->state = CELL_RUNNING;
	x->number = c->row.cell;
	x->began_ns = c->row.began_ns;
	x->max_output = c->row.max_output ? c->row.max_output : CELL_OUTPUT;
	x->answered = c->row.answers;
	memcpy(x->from, c->row.from, sizeof(x->from));
	c->current = x;
	c->state = CONTEXT_BUSY;
	berth_hold(c->berth);
}

static void restore(struct berth *b, struct store_context *take_row)
{
	struct context *c = new_context(b);
	struct run *r;

	c->row = *take_row;
	*take_row = (struct store_context){ 0 };
	memcpy(c->at, c->row.from, sizeof(c->at));
	c->said_before = c->row.said;
	if (c->row.began_ns)
		restore_cell(c);
	r = run_of(c);
	if (r) {
		r->user = c;
		r->on_told = told;
	}
	tap_open_channel(&c->tap, b->fleet, b->row.id, c->row.run, c->row.ref, c->at, &tap_on);
	c->tapped = 1;
	set_clock(c);
}

void contexts_restore(struct berth *b)
{
	struct store_contexts rows = { 0 };
	struct err e;

	if (store_context_list(b->fleet->store, b->row.id, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++)
		if (driver_of(rows.v[i].language) && !context_find(b, rows.v[i].id))
			restore(b, &rows.v[i]);
	store_contexts_fini(&rows);
}

void contexts_free(struct berth *b)
{
	while (b->contexts)
		context_free(b->contexts);
}
