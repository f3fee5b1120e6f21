/* list.c - one page of a list of all nodes.
 *
 *   every node: its page after its own position -> merged, newest first -> cut to the limit
 *   a node of whose page only a part was used: asked again for the position of the last used item
 *
 * The position in a list is the positions in the lists of all nodes: "number:position", separated by commas;
 * "." is the end of a list. A node that did not answer is named in `incomplete`, and keeps its position. */
#include "gateway/list_directory.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_POSITION = 96, LIST_NODES = 1024, LIST_E2B_MOST = 100 };
#define LIST_END "."

struct list_part {
	unsigned node;
	char after[LIST_POSITION]; /* "": from the start */
	char next[LIST_POSITION];
	const char *name;
	json_t *items; /* borrowed */
	unsigned used;
	int is_missing, is_cut;
};

struct gateway_list {
	struct fanout first, second;
	unsigned limit;
	struct list_part *v; /* by number, as the answers of first */
	unsigned n;
	struct list_part *given; /* the positions of the request */
	unsigned ngiven;
	char all_after[LIST_POSITION]; /* or one position of all nodes; "": none */
	int oldest_first;
	json_t *items;
	struct buf target;
};

/* ---- positions ---- */

static int list_is_position(const char *text, size_t n)
{
	return n > 0 && n < LIST_POSITION &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") >= n;
}

static int list_parse(struct gateway_list *l, const char *text)
{
	l->given = calloc(LIST_NODES, sizeof(*l->given));
	if (!l->given)
		abort();
	/* A position of the directory is one of each node, too: a time and an id. */
	if (!strchr(text, ':') && list_is_position(text, strlen(text))) {
		snprintf(l->all_after, sizeof(l->all_after), "%s", text);
		return 0;
	}
	while (*text) {
		struct list_part *p = &l->given[l->ngiven];
		char *end;
		unsigned long number = strtoul(text, &end, 10);
		size_t n = *end == ':' ? strcspn(end + 1, ",") : 0;

		if (end == text || number >= PLACE_NUMBERS || l->ngiven == LIST_NODES ||
		    !list_is_position(end + 1, n))
			return -1;
		p->node = (unsigned)number;
		memcpy(p->after, end + 1, n);
		l->ngiven++;
		text = end + 1 + n;
		text += *text == ',';
	}
	return 0;
}

static const char *list_given(const struct gateway_list *l, unsigned node)
{
	for (unsigned i = 0; i < l->ngiven; i++)
		if (l->given[i].node == node)
			return l->given[i].after;
	return l->all_after;
}

/* ---- requests ---- */

static int list_is_ours(const struct gateway_call *x, const char *name, size_t n)
{
	const char *after = x->target.shape == TARGET_PAGE ? "after" : "nextToken";

	return (strlen(after) == n && strncmp(name, after, n) == 0) ||
	       (n == 5 && strncmp(name, "limit", 5) == 0);
}

/* The query of the client with this limit and this position. */
static const char *list_target(struct gateway_call *x, unsigned limit, const char *after)
{
	struct gateway_list *l = x->list;
	const struct http_req *r = x->call->req;
	const char *at = r->query;
	int is_v1_e2b = strcmp(r->path, "/sandboxes") == 0; /* it has no pages */

	buf_cut(&l->target, 0);
	buf_printf(&l->target, "%s?", r->path);
	while (*at) {
		size_t n = strcspn(at, "&");

		if (!list_is_ours(x, at, strcspn(at, "=&"))) {
			buf_add(&l->target, at, n);
			buf_putc(&l->target, '&');
		}
		at += n + (at[n] == '&');
	}
	if (!is_v1_e2b)
		buf_printf(&l->target, "limit=%u", limit);
	if (*after)
		buf_printf(&l->target, "&%s=%s",
			   x->target.shape == TARGET_PAGE ? "after" : "nextToken", after);
	return buf_str(&l->target);
}

static const char *list_first_target(void *user, unsigned node)
{
	struct gateway_call *x = user;
	const char *after = list_given(x->list, node);

	return strcmp(after, LIST_END) == 0 ? NULL : list_target(x, x->list->limit, after);
}

static const char *list_second_target(void *user, unsigned node)
{
	struct gateway_call *x = user;

	for (unsigned i = 0; i < x->list->n; i++)
		if (x->list->v[i].node == node && x->list->v[i].is_cut && x->list->v[i].used)
			return list_target(x, x->list->v[i].used, x->list->v[i].after);
	return NULL;
}

/* ---- the answer ---- */

static const char *list_time(const json_t *item)
{
	static const char *const names[] = { "created", "started", "startedAt", "createdAt", "at" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = json_string_value(json_object_get(item, names[i]));

		if (text)
			return text;
	}
	return "";
}

static void list_merge(struct gateway_list *l)
{
	while (json_array_size(l->items) < l->limit) {
		struct list_part *best = NULL;

		for (unsigned i = 0; i < l->n; i++) {
			struct list_part *p = &l->v[i];
			const json_t *item = json_array_get(p->items, p->used);

			if (item &&
			    (!best || strcmp(list_time(item),
					     list_time(json_array_get(best->items, best->used))) *
						      (l->oldest_first ? -1 : 1) >
					      0))
				best = p;
		}
		if (!best)
			break;
		json_array_append(l->items, json_array_get(best->items, best->used));
		best->used++;
	}
	for (unsigned i = 0; i < l->n; i++)
		l->v[i].is_cut = l->v[i].used < json_array_size(l->v[i].items);
}

static json_t *list_missing(const struct gateway_list *l)
{
	json_t *names = json_array();

	for (unsigned i = 0; i < l->n; i++)
		if (l->v[i].is_missing)
			json_array_append_new(names, json_string(l->v[i].name));
	return names;
}

static void list_answer(struct gateway_call *x)
{
	struct gateway_list *l = x->list;
	auto_buf struct buf next = { 0 };
	json_t *missing = list_missing(l), *doc;
	int more = 0;

	for (unsigned i = 0; i < l->n; i++)
		more |= strcmp(l->v[i].next, LIST_END) != 0 && !l->v[i].is_missing;
	for (unsigned i = 0; more && i < l->n; i++)
		if (l->v[i].next[0])
			buf_printf(&next, "%s%u:%s", next.len ? "," : "", l->v[i].node,
				   l->v[i].next);
	for (unsigned i = 0; more && i < l->ngiven;
	     i++) /* their lists had ended before this page */
		if (strcmp(l->given[i].after, LIST_END) == 0)
			buf_printf(&next, "%s%u:" LIST_END, next.len ? "," : "", l->given[i].node);
	x->gateway->figures.lists++;
	x->gateway->figures.lists_incomplete += json_array_size(missing) > 0;
	if (x->target.shape == TARGET_PAGE) {
		doc = json_pack("{s:O, s:s?}", "items", l->items, "next", next.len ? next.p : NULL);
		if (json_array_size(missing))
			json_object_set(doc, "incomplete", missing);
	} else {
		doc = json_incref(l->items);
		if (next.len)
			http_set(x->call->req, "X-Next-Token", "%s", next.p);
		if (json_array_size(missing))
			http_set(x->call->req, "Atoll-Incomplete", "%zu", json_array_size(missing));
	}
	json_decref(missing);
	call_send(x->call, 200, doc);
}

static void list_second_done(struct fanout *f)
{
	struct gateway_call *x = f->user;
	struct gateway_list *l = x->list;

	for (unsigned i = 0; i < f->n; i++)
		for (unsigned k = 0; k < l->n; k++) {
			const char *next =
				x->target.shape == TARGET_PAGE
					? json_string_value(json_object_get(f->v[i].doc, "next"))
					: f->v[i].request.next_token;

			if (l->v[k].node == f->v[i].request.node && next &&
			    list_is_position(next, strlen(next)))
				snprintf(l->v[k].next, LIST_POSITION, "%s", next);
		}
	list_answer(x);
}

/* The first answer that is an error of the request itself is the client's. */
static int list_rejected(struct gateway_call *x, const struct fanout *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->v[i].status >= 400 && f->v[i].status < 500) {
			call_send(x->call, f->v[i].status, json_incref(f->v[i].doc));
			return 1;
		}
	return 0;
}

static void list_read(struct gateway_call *x, const struct fanout_answer *a, struct list_part *p)
{
	json_t *items = x->target.shape == TARGET_PAGE ? json_object_get(a->doc, "items") : a->doc;
	const char *next = x->target.shape == TARGET_PAGE
				   ? json_string_value(json_object_get(a->doc, "next"))
				   : a->request.next_token;

	p->node = a->request.node;
	p->name = a->name;
	snprintf(p->after, sizeof(p->after), "%s", list_given(x->list, p->node));
	p->is_missing = a->status != 200 || !json_is_array(items);
	p->items = p->is_missing ? NULL : items;
	snprintf(p->next, LIST_POSITION, "%s",
		 p->is_missing                                           ? p->after
		 : next && *next && list_is_position(next, strlen(next)) ? next
									 : LIST_END);
}

static void list_first_done(struct fanout *f)
{
	struct gateway_call *x = f->user;
	struct gateway_list *l = x->list;
	int again = 0;

	if (list_rejected(x, f))
		return;
	l->v = calloc(f->n ? f->n : 1, sizeof(*l->v));
	if (!l->v)
		abort();
	l->n = f->n;
	for (unsigned i = 0; i < f->n; i++)
		list_read(x, &f->v[i], &l->v[i]);
	list_merge(l);
	for (unsigned i = 0; i < l->n; i++) {
		if (l->v[i].is_cut)
			snprintf(l->v[i].next, LIST_POSITION, "%s", l->v[i].after);
		again |= l->v[i].is_cut && l->v[i].used;
	}
	if (!again) {
		list_answer(x);
		return;
	}
	l->second = (struct fanout){ .done = list_second_done, .user = x };
	fanout_begin(&l->second, x->gateway->tunnels, x->call->api->loop, list_second_target,
		     x->identity);
}

static void list_from_nodes(struct gateway_call *x)
{
	struct gateway_list *l = x->list;
	const char *after =
		http_query(x->call->req, x->target.shape == TARGET_PAGE ? "after" : "nextToken");

	if (after && list_parse(l, after) < 0) {
		call_error(x->call, 400, "invalid", "this is not where a page of this list ended",
			   after, "use the `next` of the page before, unchanged");
		return;
	}
	l->first = (struct fanout){ .done = list_first_done, .user = x };
	fanout_begin(&l->first, x->gateway->tunnels, x->call->api->loop, list_first_target,
		     x->identity);
}

static int list_is_stream(struct http_req *r)
{
	const char *follow = http_query(r, "follow"), *accept = http_header(r, "accept");

	return strcmp(r->path, "/v1/events") == 0 &&
	       ((follow && (strcmp(follow, "1") == 0 || strcmp(follow, "true") == 0)) ||
		(accept && strstr(accept, "text/event-stream")));
}

void list_begin(struct gateway_call *x)
{
	struct http_req *r = x->call->req;
	const char *limit = http_query(r, "limit"), *order = http_query(r, "order");
	struct gateway_list *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	x->list = l;
	l->oldest_first = strcmp(r->path, "/v1/events") == 0
				  ? !order || strcmp(order, "newest") != 0
				  : order && strcmp(order, "asc") == 0; /* of E2B */
	l->items = json_array();
	l->limit = limit ? (unsigned)strtoul(limit, NULL, 10) : STORE_PAGE;
	if (strcmp(r->path, "/sandboxes") == 0)
		l->limit = STORE_PAGE_MAX * 100;
	else if (l->limit < 1 ||
		 l->limit > (x->target.shape == TARGET_PAGE ? STORE_PAGE_MAX : LIST_E2B_MOST)) {
		call_error(x->call, 400, "invalid", "limit is out of range", limit,
			   x->target.shape == TARGET_PAGE ? "use 1 to 1000" : "use 1 to 100");
		return;
	}
	if (list_is_stream(r)) {
		stream_begin(x);
		return;
	}
	if (!list_directory_begin(x, l->limit > STORE_PAGE_MAX ? STORE_PAGE_MAX : l->limit,
				  list_from_nodes))
		list_from_nodes(x);
}

void list_end(struct gateway_call *x)
{
	struct gateway_list *l = x->list;

	list_directory_end(x);
	if (!l)
		return;
	x->list = NULL;
	fanout_free(&l->first);
	fanout_free(&l->second);
	json_decref(l->items);
	buf_fini(&l->target);
	free(l->given);
	free(l->v);
	free(l);
}
