/* list_directory.c - see list_directory.h.
 *
 * Filters and positions are those of one machine. A request that a node would reject, or that has a filter which only a
 * node understands, goes to the nodes. */
#include "gateway/list_directory.h"
#include "api/time_param.h"
#include "base/cleanup.h"
#include "coordinator/cluster_client.h"
#include "coordinator/queries.h"
#include "gateway/follow.h"
#include "gateway/leases.h"
#include "record/record.h"
#include "store/boxes.h"
#include "v1box/boxes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list_query {
	struct gateway_call *call;
	struct cluster_request request;
	struct timer late;
	struct settle settle;
	json_t *params; /* until the query is sent */
	unsigned limit;
	const struct list_kind *kind;
	void (*otherwise)(struct gateway_call *x);
};

struct list_kind {
	const char *path, *query;
	const char *const *names; /* of its parameters, without limit and after */
	/* The values of the query, without the limit; NULL: only nodes can answer. */
	json_t *(*params)(struct gateway_call *x);
	json_t *(*item)(struct gateway_call *x, const json_t *row); /* takes nothing */
	/* Position after this row. */
	void (*position)(const json_t *row, char *out, size_t size);
	const char *after; /* name of the parameter with the position */
	int is_owners;     /* only owners may read it */
};

/* ---- values ---- */

static json_t *list_text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static const char *list_param(struct gateway_call *x, const char *name)
{
	return http_query(x->call->req, name);
}

/* Adds two values: ns and id of the position, or null. -1: not such a position. */
static int list_add_cursor(json_t *out, const char *text)
{
	struct store_cursor at;
	char ns[24];
	struct err e;

	if (!text || !*text) {
		json_array_append_new(out, json_null());
		json_array_append_new(out, json_null());
		return 0;
	}
	if (store_cursor_parse(text, &at, &e) < 0)
		return -1;
	snprintf(ns, sizeof(ns), "%lld", (long long)at.ns);
	json_array_append_new(out, json_string(ns));
	json_array_append_new(out, json_string(at.id));
	return 0;
}

static json_t *list_finish(json_t *take_params, int rc)
{
	if (rc == 0)
		return take_params;
	json_decref(take_params);
	return NULL;
}

/* Rows: 0 document, 1 node, 2 ns, 3 id. */
static void list_put_cursor(const json_t *row, char *out, size_t size)
{
	struct store_cursor at = { .ns = query_int(row, 2) };
	char text[STORE_CURSOR_TEXT];

	snprintf(at.id, sizeof(at.id), "%s", query_text(row, 3));
	store_cursor_text(&at, text);
	snprintf(out, size, "%s", text);
}

/* ---- boxes ---- */

/* "key=value&key=value" as an object; NULL: not such a text. */
static json_t *list_metadata(const char *text)
{
	json_t *out = json_object();
	auto_free char *copy = strdup(text);
	char *rest = NULL;

	for (char *p = strtok_r(copy, "&", &rest); p; p = strtok_r(NULL, "&", &rest)) {
		char *value = strchr(p, '=');

		if (!value)
			return list_finish(out, -1);
		*value++ = 0;
		json_object_set_new(out, p, json_string(value));
	}
	return out;
}

static json_t *list_boxes_params(struct gateway_call *x)
{
	static const char *const states[] = { "running", "stopped", "paused", "deleted", "all" };
	const char *state = list_param(x, "state"), *pairs = list_param(x, "metadata");
	json_t *metadata = pairs ? list_metadata(pairs) : NULL, *out;
	char *text = metadata ? json_dumps(metadata, JSON_COMPACT) : NULL;
	int known = !state || !*state;
	enum store_box_state word;

	if (state && store_box_state_parse(state, &word) == 0 &&
	    strcmp(state, store_box_state_name(word)) != 0) {
		call_renamed(x->call, "state", state, store_box_state_name(word));
		state = store_box_state_name(word);
	}
	for (unsigned i = 0; i < ARRAY_LEN(states); i++)
		known |= state && strcmp(state, states[i]) == 0;
	out = json_pack("[s, o, o, o, o]", x->call->who.team, list_text_or_null(state),
			list_text_or_null(list_param(x, "template")),
			list_text_or_null(list_param(x, "name")), list_text_or_null(text));
	free(text);
	json_decref(metadata);
	return list_finish(out, known && (!pairs || metadata) &&
						list_add_cursor(out, list_param(x, "after")) == 0
					? 0
					: -1);
}

/* A box of a node that is not connected keeps the state that the node reported last only in the directory: what it does
 * now is not known. */
static void list_set_node(struct gateway_call *x, json_t *item, unsigned number)
{
	const struct node_status *s = gateway_leases_find(x->gateway->leases, number);
	const char *state = json_string_value(json_object_get(item, "state"));

	if (s)
		json_object_set_new(item, "node", json_text(s->name));
	if (!s || s->state == NODE_UP || !state || strcmp(state, "deleted") == 0)
		return;
	json_object_set_new(item, "state",
			    json_string(s->state == NODE_UNREACHABLE ? "unreachable" : "lost"));
}

static json_t *list_box_item(struct gateway_call *x, const json_t *row)
{
	json_t *item = json_loads(query_text(row, 0), 0, NULL);

	list_set_node(x, item, (unsigned)query_int(row, 1));
	box_withhold(x->call, item);
	return item;
}

static const char *const list_boxes_names[] = { "state", "metadata", "template", "name", NULL };

/* ---- E2B ---- */

static json_t *list_sandboxes_params(struct gateway_call *x)
{
	const char *state = list_param(x, "state"), *token = list_param(x, "nextToken");
	int is_v1 = strcmp(x->call->req->path, "/sandboxes") == 0;
	json_t *out;

	if (state && strcmp(state, "running") != 0 && strcmp(state, "paused") != 0 &&
	    strcmp(state, "running,paused") != 0)
		return NULL;
	if (token && *token && *token != 'd')
		return NULL;
	out = json_pack("[s, s]", x->call->who.team,
			is_v1   ? "running"
			: state ? state
				: "running,paused");
	return list_finish(out, list_add_cursor(out, token && *token ? token + 1 : NULL));
}

static json_t *list_sandbox_item(struct gateway_call *x, const json_t *row)
{
	(void)x;
	return json_loads(query_text(row, 0), 0, NULL);
}

static void list_put_token(const json_t *row, char *out, size_t size)
{
	out[0] = 'd';
	list_put_cursor(row, out + 1, size - 1);
}

static const char *const list_sandboxes_names[] = { "state", NULL };

/* ---- runs ---- */

static json_t *list_runs_params(struct gateway_call *x)
{
	const char *box = list_param(x, "box"), *running = list_param(x, "running");
	json_t *out;

	if (box && *box && !id_valid(box)) /* a name: its node knows it */
		return NULL;
	if (running && strcmp(running, "true") != 0 && strcmp(running, "false") != 0)
		return NULL;
	out = json_pack("[s, o, o, o]", x->call->who.team, list_text_or_null(box),
			list_text_or_null(list_param(x, "cause")),
			running && *running == 't' ? json_string("true") : json_null());
	return list_finish(out, list_add_cursor(out, list_param(x, "after")));
}

static json_t *list_run_item(struct gateway_call *x, const json_t *row)
{
	(void)x;
	return json_loads(query_text(row, 0), 0, NULL);
}

static const char *const list_runs_names[] = { "box", "cause", "running", NULL };

/* ---- events and audit: numbers are those of a node, so a position has time, node and number ---- */

static int list_add_position(json_t *out, const char *text)
{
	long long ns, seq;
	unsigned node;
	char rest, each[3][24];

	if (!text || !*text || strcmp(text, "0") == 0) {
		for (unsigned i = 0; i < 3; i++)
			json_array_append_new(out, json_null());
		return 0;
	}
	if (sscanf(text, "%lld-%u-%lld%c", &ns, &node, &seq, &rest) != 3)
		return -1;
	snprintf(each[0], sizeof(each[0]), "%lld", ns);
	snprintf(each[1], sizeof(each[1]), "%u", node);
	snprintf(each[2], sizeof(each[2]), "%lld", seq);
	for (unsigned i = 0; i < 3; i++)
		json_array_append_new(out, json_string(each[i]));
	return 0;
}

/* Rows: 0 document, 1 node, 2 ns, 3 number. */
static void list_put_position(const json_t *row, char *out, size_t size)
{
	snprintf(out, size, "%s-%s-%s", query_text(row, 2), query_text(row, 1), query_text(row, 3));
}

static json_t *list_events_params(struct gateway_call *x)
{
	const char *box = list_param(x, "box"), *follow = list_param(x, "follow"),
		   *order = list_param(x, "order"), *after = list_param(x, "after");
	int is_number = after && *after && strlen(after) < 19 &&
			after[strspn(after, "0123456789")] == 0 && strcmp(after, "0") != 0;
	json_t *out;

	if ((box && *box && !id_valid(box)) ||
	    (follow && strcmp(follow, "false") != 0 && strcmp(follow, "0") != 0))
		return NULL;
	if (order && strcmp(order, "newest") != 0 && strcmp(order, "oldest") != 0)
		return NULL;
	out = json_pack("[s, o, s]", x->call->who.team, list_text_or_null(box),
			order && strcmp(order, "newest") == 0 ? "newest" : "oldest");
	if (list_add_position(out, is_number ? NULL : after) < 0)
		return list_finish(out, -1);
	json_array_append_new(out, is_number ? json_string(after) : json_null());
	return out;
}

static void list_set_time(json_t *item, const json_t *row)
{
	json_object_set_new(item, "at", json_time((uint64_t)query_int(row, 2)));
	json_object_set_new(item, "seq", json_integer(query_int(row, 3)));
	json_object_set_new(item, "node", json_integer(query_int(row, 1)));
	json_object_del(item, "at_ns");
}

/* Rows: 4 number in the cluster. */
static json_t *list_event_item(struct gateway_call *x, const json_t *row)
{
	(void)x;
	return follow_item(row, query_int(row, 4));
}

static const char *const list_events_names[] = { "box", "follow", "order", NULL };

static int list_add_time(json_t *out, const char *text, int64_t now)
{
	char ns[24];
	int64_t at;
	struct err e;

	if (!text) {
		json_array_append_new(out, json_null());
		return 0;
	}
	if (time_param_parse(text, now, &at, &e) < 0)
		return -1;
	snprintf(ns, sizeof(ns), "%lld", (long long)at);
	json_array_append_new(out, json_string(ns));
	return 0;
}

static json_t *list_audit_params(struct gateway_call *x)
{
	const char *team =
		principal_is_operator(&x->call->who) ? list_param(x, "team") : x->call->who.team;
	json_t *out = json_pack("[o, o, o, o]", list_text_or_null(team),
				list_text_or_null(list_param(x, "who")),
				list_text_or_null(list_param(x, "action")),
				list_text_or_null(list_param(x, "subject")));
	const char *after = list_param(x, "after");
	int64_t now = fleet_now_ns();

	if (after && strcmp(after, "0") == 0) /* as on one machine */
		return list_finish(out, -1);
	return list_finish(out, list_add_time(out, list_param(x, "since"), now) < 0 ||
						list_add_time(out, list_param(x, "until"), now) < 0
					? -1
					: list_add_position(out, list_param(x, "after")));
}

static json_t *list_audit_item(struct gateway_call *x, const json_t *row)
{
	json_t *item = json_loads(query_text(row, 0), 0, NULL);

	(void)x;
	list_set_time(item, row);
	/* Numbers of different machines cannot be compared. */
	json_object_set_new(item, "seq", json_integer(query_int(row, 2) / 1000));
	return item;
}

static const char *const list_audit_names[] = { "who",   "action", "subject", "since",
						"until", "team",   NULL };

/* ---- one list ---- */

static const struct list_kind list_kinds[] = {
	{ "/v1/boxes", "boxes_list", list_boxes_names, list_boxes_params, list_box_item,
	  list_put_cursor, "after", 0 },
	{ "/v1/runs", "runs_list", list_runs_names, list_runs_params, list_run_item,
	  list_put_cursor, "after", 0 },
	{ "/sandboxes", "sandboxes_list", list_sandboxes_names, list_sandboxes_params,
	  list_sandbox_item, list_put_token, "nextToken", 0 },
	{ "/v2/sandboxes", "sandboxes_list", list_sandboxes_names, list_sandboxes_params,
	  list_sandbox_item, list_put_token, "nextToken", 0 },
	{ "/v1/events", "events_list", list_events_names, list_events_params, list_event_item,
	  list_put_position, "after", 0 },
	{ "/v1/audit", "audit_list", list_audit_names, list_audit_params, list_audit_item,
	  list_put_position, "after", 1 },
};

/* 1: all parameters of the request are among those of the kind. */
static int list_knows_parameters(const struct list_kind *k, const struct http_req *r)
{
	for (const char *at = r->query; *at;) {
		size_t n = strcspn(at, "=&");
		int known = n == 0 || (n == 5 && strncmp(at, "limit", 5) == 0) ||
			    (strlen(k->after) == n && strncmp(at, k->after, n) == 0);

		for (unsigned i = 0; k->names[i]; i++)
			known |= strlen(k->names[i]) == n && strncmp(at, k->names[i], n) == 0;
		if (!known)
			return 0;
		at += strcspn(at, "&");
		at += *at == '&';
	}
	return 1;
}

static void list_directory_answer(struct list_query *q, const json_t *rows)
{
	struct gateway_call *x = q->call;
	size_t n = json_array_size(rows);
	json_t *items = json_array();
	char next[96] = "";

	for (size_t i = 0; i < n && i < q->limit; i++)
		json_array_append_new(items, q->kind->item(x, json_array_get(rows, i)));
	if (n > q->limit)
		q->kind->position(json_array_get(rows, q->limit - 1), next, sizeof(next));
	x->gateway->figures.lists++;
	if (x->target.shape == TARGET_PAGE) {
		json_t *doc = json_pack("{s:o, s:s?}", "items", items, "next", *next ? next : NULL);

		if (strcmp(q->kind->path, "/v1/events") == 0)
			json_object_set_new(doc, "missed", json_false());
		call_send(x->call, 200, doc);
		return;
	}
	if (*next)
		http_set(x->call->req, "X-Next-Token", "%s", next);
	call_send(x->call, 200, items);
}

static void list_directory_give_up(struct list_query *q)
{
	struct gateway_call *x = q->call;
	void (*otherwise)(struct gateway_call * x) = q->otherwise;

	x->gateway->directory_avoid_ms = loop_now_ms() + LIST_AVOID_MS;
	list_directory_end(x);
	otherwise(x);
}

static void list_directory_answered(struct cluster_request *r, const json_t *answer,
				    const struct err *e)
{
	struct list_query *q = loop_owner(r, struct list_query, request);

	if (e) {
		list_directory_give_up(q);
		return;
	}
	timer_clear(&q->late);
	list_directory_answer(q, query_rows(answer, 0));
}

static void list_directory_late(struct timer *t)
{
	list_directory_give_up(loop_owner(t, struct list_query, late));
}

static const struct list_kind *list_directory_kind(const struct gateway_call *x)
{
	const struct principal *who = &x->call->who;

	if (!x->gateway->engines || loop_now_ms() < x->gateway->directory_avoid_ms || who->box[0])
		return NULL;
	for (unsigned i = 0; i < ARRAY_LEN(list_kinds); i++)
		if (strcmp(list_kinds[i].path, x->call->req->path) == 0)
			return (!list_kinds[i].is_owners || who->role == ROLE_OWNER) &&
					       list_knows_parameters(&list_kinds[i], x->call->req)
				       ? &list_kinds[i]
				       : NULL;
	return NULL;
}

static void list_directory_send(struct list_query *q)
{
	json_t *params = q->params;

	q->params = NULL;
	timer_set(&q->late, LIST_DIRECTORY_MS);
	query_request(q->call->gateway->engines, &q->request, q->kind->query, params);
}

static void list_directory_settled(struct settle *s)
{
	list_directory_send(loop_owner(s, struct list_query, settle));
}

int list_directory_begin(struct gateway_call *x, unsigned limit,
			 void (*otherwise)(struct gateway_call *x))
{
	const struct list_kind *k = list_directory_kind(x);
	json_t *params = k ? k->params(x) : NULL;
	struct list_query *q;
	char most[16];

	if (!params)
		return 0;
	q = calloc(1, sizeof(*q));
	if (!q)
		abort();
	*q = (struct list_query){ .call = x,
				  .limit = limit,
				  .kind = k,
				  .otherwise = otherwise,
				  .request.done = list_directory_answered };
	x->query = q;
	snprintf(most, sizeof(most), "%u", limit + 1);
	json_array_append_new(params, json_string(most));
	timer_init(&q->late, x->call->api->loop, list_directory_late);
	q->params = params;
	q->settle.done = list_directory_settled;
	if (settle_begin(&q->settle, x->gateway,
			 principal_is_operator(&x->call->who) ? NULL : x->call->who.team))
		list_directory_send(q);
	return 1;
}

void list_directory_end(struct gateway_call *x)
{
	struct list_query *q = x->query;

	if (!q)
		return;
	x->query = NULL;
	settle_end(&q->settle);
	json_decref(q->params);
	cluster_client_cancel(&q->request);
	timer_fini(&q->late);
	free(q);
}
