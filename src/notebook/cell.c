/* cell.c - see cell.h. */
#include "notebook/cell.h"
#include "base/clock.h"
#include "base/cleanup.h"

#include <string.h>

static uint64_t held; /* bytes of all cells: one process, one sum */

uint64_t cell_held(void)
{
	return held;
}

struct cell *cell_new(void)
{
	struct cell *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->refs = 1;
	c->max_output = CELL_OUTPUT;
	return c;
}

struct cell *cell_ref(struct cell *c)
{
	c->refs++;
	return c;
}

void cell_unref(struct cell *c)
{
	if (!c || --c->refs)
		return;
	held -= c->out[0].len + c->out[1].len + c->event_bytes;
	for (unsigned i = 0; i < c->nevents; i++)
		free(c->events[i].text);
	free(c->events);
	buf_fini(&c->out[0]);
	buf_fini(&c->out[1]);
	buf_fini(&c->run);
	json_decref(c->env);
	json_decref(c->end);
	free(c);
}

/* ---- what it says ---- */

void cell_tell(struct cell *c)
{
	for (struct cell_reader *r = c->readers, *next; r; r = next) {
		next = r->next;
		r->news(r);
	}
}

static uint64_t kept_until(const struct cell *c, unsigned stream)
{
	return c->base[stream] + c->out[stream].len;
}

void cell_output(struct cell *c, unsigned stream, uint64_t offset, const char *bytes, size_t n)
{
	uint64_t room = c->max_output > c->out[stream].len ? c->max_output - c->out[stream].len : 0;
	size_t take = n < room ? n : (size_t)room;

	if (c->state == CELL_OVER)
		return;
	if (offset >
	    c->seen[stream]) { /* some bytes are lost: the stored output before them ends there */
		c->truncated = 1;
		if (!c->out[stream].len)
			c->base[stream] = offset;
		else
			take = 0;
	}
	if (kept_until(c, stream) != offset || held > CELL_ALL_HELD)
		take = 0;
	c->seen[stream] = offset + n;
	c->truncated |= take < n;
	if (!take)
		return;
	buf_add(&c->out[stream], bytes, take);
	held += take;
}

static int is_needed(const json_t *event)
{
	const char *type = json_string_value(json_object_get(event, "type"));

	return type && strcmp(type, "result") != 0;
}

void cell_event(struct cell *c, uint64_t end, json_t *take_event)
{
	/* Numbers in a result keep all their digits. */
	auto_free char *text = json_dumps(take_event, JSON_COMPACT);
	int needed = is_needed(take_event);
	size_t n = text ? strlen(text) : 0;

	json_decref(take_event);
	if (!text)
		abort();
	c->seen[2] = end;
	if (c->state == CELL_OVER)
		return;
	if (c->event_bytes + n > CELL_EVENTS || (!needed && held > CELL_ALL_HELD)) {
		c->truncated = 1;
		return;
	}
	if (c->nevents == c->events_room) {
		c->events_room = c->events_room ? c->events_room * 2 : 4;
		c->events = realloc(c->events, c->events_room * sizeof(*c->events));
		if (!c->events)
			abort();
	}
	c->events[c->nevents++] = (struct cell_event){
		.text = steal(&text), .end = end, .mark = { kept_until(c, 0), kept_until(c, 1) }
	};
	/* Each event costs a row, too: many small ones must not bypass the limit. */
	c->event_bytes += n + sizeof(*c->events);
	held += n + sizeof(*c->events);
}

void cell_over(struct cell *c, json_t *take_end)
{
	if (c->state == CELL_OVER) {
		json_decref(take_end);
		return;
	}
	c->state = CELL_OVER;
	if (!c->ended_ns)
		c->ended_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	json_object_set_new(take_end, "type", json_string("end"));
	json_object_set_new(take_end, "cell", json_integer((json_int_t)c->number));
	json_object_set_new(take_end, "truncated", json_boolean(c->truncated));
	json_object_set_new(take_end, "duration_us",
			    json_integer(c->began_ns && c->ended_ns > c->began_ns
						 ? (c->ended_ns - c->began_ns) / 1000
						 : 0));
	exec_before_json(&c->before, take_end);
	c->end = take_end;
}

/* ---- reading ---- */

void cell_read(struct cell *c, struct cell_reader *r)
{
	r->cell = cell_ref(c);
	r->next = c->readers;
	c->readers = r;
}

void cell_unread(struct cell_reader *r)
{
	struct cell *c = r->cell;

	if (!c)
		return;
	for (struct cell_reader **at = &c->readers; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			break;
		}
	r->cell = NULL;
	cell_unref(c);
}

/* The first event that this reader has not received. */
static const struct cell_event *next_event(const struct cell_reader *r)
{
	const struct cell *c = r->cell;
	unsigned low = 0, high = c->nevents;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (c->events[mid].end <= r->told[2])
			low = mid + 1;
		else
			high = mid;
	}
	return low < c->nevents ? &c->events[low] : NULL;
}

/* Output up to a mark; 0: all of it was sent. */
static int piece_of(const struct cell_reader *r, unsigned s, uint64_t until, size_t most,
		    struct cell_piece *p)
{
	const struct cell *c = r->cell;
	uint64_t from = r->told[s] > c->base[s] ? r->told[s] : c->base[s];

	if (from >= until)
		return 0;
	p->what = s ? CELL_STDERR : CELL_STDOUT;
	p->offset = from;
	p->bytes = c->out[s].p + (from - c->base[s]);
	p->n = until - from < most ? (size_t)(until - from) : most;
	p->after[s] = from + p->n;
	return 1;
}

struct cell_piece cell_next(const struct cell_reader *r, size_t most)
{
	const struct cell *c = r->cell;
	const struct cell_event *ev = next_event(r);
	struct cell_piece p = { .after = { r->told[0], r->told[1], r->told[2] } };

	for (unsigned s = 0; s < 2; s++)
		if (piece_of(r, s, ev ? ev->mark[s] : kept_until(c, s), most, &p)) {
			p.last = ev || c->state == CELL_OVER;
			return p;
		}
	if (ev) {
		p.what = CELL_EVENT;
		p.bytes = ev->text;
		p.n = strlen(ev->text);
		p.after[2] = ev->end;
	} else if (c->state == CELL_OVER) {
		p.what = CELL_END;
	}
	return p;
}

void cell_told(struct cell_reader *r, const struct cell_piece *p)
{
	memcpy(r->told, p->after, sizeof(r->told));
}
