/* follow.c - see follow.h. */
#include "gateway/follow.h"
#include "coordinator/queries.h"
#include "record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLLOW_PAGE = 200 };               /* rows of an answer: queries.c */
#define FOLLOW_NOW "18446744073709551615" /* no transaction comes after it */

/* "x<transaction>-<node>-<number>" */
static int follow_parse(struct gateway_follow *f, const char *text)
{
	unsigned long long xid;
	unsigned node;
	long long seq;
	char rest;

	if (sscanf(text, "x%llu-%u-%lld%c", &xid, &node, &seq, &rest) != 3 || seq < 0)
		return -1;
	snprintf(f->xid, sizeof(f->xid), "%llu", xid);
	snprintf(f->node, sizeof(f->node), "%u", node);
	snprintf(f->seq, sizeof(f->seq), "%lld", seq);
	return 0;
}

/* "<ns>-<node>-<number>": `next` of a list. */
static int follow_parse_page(struct gateway_follow *f, const char *text)
{
	long long ns, seq;
	unsigned node;
	char rest;

	if (sscanf(text, "%lld-%u-%lld%c", &ns, &node, &seq, &rest) != 3 || ns < 0 || seq < 0)
		return -1;
	snprintf(f->page[0], sizeof(f->page[0]), "%lld", ns);
	snprintf(f->page[1], sizeof(f->page[1]), "%u", node);
	snprintf(f->page[2], sizeof(f->page[2]), "%lld", seq);
	return 0;
}

/* "<number>": the `seq` of an event. */
static int follow_parse_number(struct gateway_follow *f, const char *text)
{
	size_t n = strspn(text, "0123456789");

	if (!n || text[n] || n > 18)
		return -1;
	snprintf(f->number, sizeof(f->number), "%s", text);
	return 0;
}

static const char *follow_text(const struct gateway_follow *f, char out[FOLLOW_POSITION])
{
	snprintf(out, FOLLOW_POSITION, "x%s-%s-%s", f->xid, f->node, f->seq);
	return out;
}

static void follow_set(struct gateway_follow *f, const char *xid, const char *node, const char *seq)
{
	snprintf(f->xid, sizeof(f->xid), "%s", xid);
	snprintf(f->node, sizeof(f->node), "%s", node);
	snprintf(f->seq, sizeof(f->seq), "%s", seq);
}

/* In the order of the fields of one machine: programs search streams for texts. Rows: 0 document, 1 node, 2 ns. */
json_t *follow_item(const json_t *row, int64_t number)
{
	json_t *doc = json_loads(query_text(row, 0), 0, NULL), *item;
	const char *box = json_string_value(json_object_get(doc, "box")),
		   *type = json_string_value(json_object_get(doc, "type"));

	item = json_pack("{s:I, s:o, s:s, s:s, s:O*, s:I}", "seq", (json_int_t)number, "at",
			 json_time((uint64_t)query_int(row, 2)), "box", box ? box : "", "type",
			 type ? type : "", "data", json_object_get(doc, "data"), "node",
			 (json_int_t)query_int(row, 1));
	json_decref(doc);
	return item;
}

/* Rows: 0 document, 1 node, 2 ns, 3 number at the node, 4 transaction, 5 number. */
static int follow_event(struct gateway_follow *f, const json_t *row)
{
	json_t *item = follow_item(row, query_int(row, 5));
	char next[FOLLOW_POSITION];

	follow_set(f, query_text(row, 4), query_text(row, 1), query_text(row, 3));
	snprintf(next, sizeof(next), "%s", query_text(row, 5));
	json_object_set_new(item, "next", json_string(next));
	return f->event(f, item, next);
}

/* The first row below which none can appear: the one before the oldest transaction in progress. */
static void follow_start(struct gateway_follow *f, const json_t *answer)
{
	const char *oldest = query_text(json_array_get(query_rows(answer, 0), 0), 0);
	unsigned long long xid = strtoull(oldest, NULL, 10);
	char text[FOLLOW_POSITION];

	snprintf(text, 24, "%llu", xid ? xid - 1 : 0);
	if (!f->xid[0])
		follow_set(f, text, "2147483647", "9223372036854775807");
	f->is_begun = 1;
	f->begun(f, follow_text(f, text));
}

/* The position at which the events begin is known. */
static void follow_begun(struct gateway_follow *f, const json_t *answer)
{
	const json_t *first = json_array_get(query_rows(answer, 1), 0);

	if (f->page[0][0] && first)
		follow_set(f, query_text(first, 0), "0", "0");
	else if (f->number[0] && first)
		follow_set(f, query_text(first, 0), query_text(first, 1), query_text(first, 2));
	else if (f->number[0]) /* before the first event of the team */
		follow_set(f, "0", "0", "0");
	follow_start(f, answer);
	timer_set(&f->clock, 0);
}

/* If the database does not answer, the same question follows, and nothing is lost. */
static void follow_answered(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct gateway_follow *f = loop_owner(r, struct gateway_follow, request);
	const json_t *rows = e ? NULL : query_rows(answer, 1);
	size_t n = json_array_size(rows);

	if (!e && !f->is_begun) {
		follow_begun(f, answer);
		return;
	}
	for (size_t i = 0; !f->is_paused && i < n; i++)
		f->is_paused = follow_event(f, json_array_get(rows, i));
	if (!f->is_paused)
		timer_set(&f->clock, n == FOLLOW_PAGE ? 0 : FOLLOW_MS);
}

static void follow_due(struct timer *t)
{
	struct gateway_follow *f = loop_owner(t, struct gateway_follow, clock);
	json_t *params;

	f->request.done = follow_answered;
	if (!f->is_begun && f->page[0][0]) {
		query_request(f->engines, &f->request, "events_after_page",
			      json_pack("[s, s, s, s]", f->team, f->page[0], f->page[1],
					f->page[2]));
		return;
	}
	if (!f->is_begun && f->number[0]) {
		query_request(f->engines, &f->request, "events_after_number",
			      json_pack("[s, s]", f->team, f->number));
		return;
	}
	params =
		json_pack("[s, o, s, s, s]", f->team, f->box[0] ? json_string(f->box) : json_null(),
			  f->xid[0] ? f->xid : FOLLOW_NOW, f->xid[0] ? f->node : "0",
			  f->xid[0] ? f->seq : "0");
	query_request(f->engines, &f->request, "events_followed", params);
}

int follow_begin(struct gateway_follow *f, struct loop *l, const char *after)
{
	if (after && strcmp(after, "0") == 0)
		follow_set(f, "0", "0", "0");
	else if (after && follow_parse(f, after) < 0 && follow_parse_page(f, after) < 0 &&
		 follow_parse_number(f, after) < 0)
		return -1;
	f->is_active = 1;
	timer_init(&f->clock, l, follow_due);
	timer_set(&f->clock, 0);
	return 0;
}

void follow_continue(struct gateway_follow *f)
{
	if (!f->is_paused)
		return;
	f->is_paused = 0;
	timer_set(&f->clock, 0);
}

void follow_end(struct gateway_follow *f)
{
	if (!f->is_active)
		return;
	f->is_active = 0;
	cluster_client_cancel(&f->request);
	timer_fini(&f->clock);
}
