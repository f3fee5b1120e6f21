/* shared_rows.c - see shared_rows.h. */
#include "gateway/shared_rows.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "gateway/node_request.h"
#include "gateway/restart.h"
#include "secret/vault.h"
#include "store/shared_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROWS_TICK_MS = 100,
	ROWS_AGAIN_MS = 1000,   /* after a failure */
	ROWS_NODE_MS = 10000,   /* for a node to answer */
	ROWS_WAIT_MS = 2000,    /* an answer waits so long for nodes */
	ROWS_KNOWN_MS = 300000, /* a node may remove a secret without boxes after twice that time */
	ROWS_READY_MS = 5000,   /* a node that does not take the rows gets boxes after that */
};

struct rows_node {
	struct rows_node *next;
	struct gateway_rows *all;
	unsigned number;
	uint64_t since_ms; /* of the connection whose rows were sent */
	uint64_t after_ms; /* not before */
	int is_full;       /* all rows are due */
	int is_sending;
	json_t *due;     /* {"kind id": true}: that have changed */
	json_t *secrets; /* {"team/name": {"version", "updated_ns"}} */
	uint64_t known_ms;
	uint64_t sent, acked; /* numbers of changes */
	struct node_request request;
};

struct rows_wait {
	struct rows_wait *next;
	struct gateway_rows *all;
	struct call *call;
	int status;
	json_t *doc;
	uint64_t change, until_ms;
};

struct gateway_rows {
	struct gateway_rows_conf conf;
	struct timer tick;
	struct rows_node *nodes;
	struct rows_node **by_number;
	unsigned numbers; /* of by_number */
	struct rows_wait *waits;
	uint64_t changes;
};

/* ---- rows as JSON ---- */

static int rows_unseal(struct api *a, const char *kind, const char *id, json_t *row,
		       struct buf *out, struct err *e)
{
	const char *text = json_string_value(json_object_get(row, "sealed"));
	const char *team = json_string_value(json_object_get(row, "team")),
		   *name = json_string_value(json_object_get(row, "name"));
	auto_buf struct buf sealed = { 0 };

	if (strcmp(kind, "secret") == 0)
		return vault_get(a->fleet.vault, team ? team : "", name ? name : "", out, NULL, e);
	for (; text && text[0] && text[1]; text += 2)
		buf_putc(&sealed, (char)(hex_digit(text[0]) << 4 | hex_digit(text[1])));
	return vault_unseal(a->fleet.vault, id, sealed.p, sealed.len, out, e);
}

static int rows_set_value(struct api *a, const char *kind, const char *id, json_t *row,
			  struct err *e)
{
	auto_secret struct buf value = { 0 }, coded = { 0 };

	if (!json_object_get(row, "sealed"))
		return 0;
	buf_space(&value, VAULT_VALUE + 4);
	buf_space(&coded, VAULT_VALUE * 2);
	if (rows_unseal(a, kind, id, row, &value, e) < 0)
		return -1;
	base64_encode(&coded, value.p, value.len);
	json_object_set_new(row, "value", json_string(buf_str(&coded)));
	json_object_del(row, "sealed");
	json_object_del(row, "key");
	return 0;
}

json_t *gateway_rows_json(struct api *a, const char *kind, const char *id)
{
	auto_free char *text = NULL;
	json_t *row = NULL;
	struct err e;

	if (store_shared_get(a->store, kind, id, &text, &e) < 0 ||
	    (text &&
	     (!(row = json_loads(text, 0, NULL)) || rows_set_value(a, kind, id, row, &e) < 0))) {
		log_error("a row is not sent to nodes", LOG_S("kind", kind), LOG_S("id", id),
			  LOG_E(&e));
		json_decref(row);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:o}", "kind", kind, "id", id, "row", row ? row : json_null());
}

char *gateway_rows_text(json_t *take_rows, json_t *take_keep, size_t *out_n)
{
	json_t *doc = json_pack("{s:o}", "rows", take_rows);
	char *text;

	if (take_keep)
		json_object_set_new(doc, "keep", take_keep);
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		abort();
	*out_n = strlen(text);
	return text;
}

void gateway_rows_wipe(char *take_text)
{
	explicit_bzero(take_text, strlen(take_text));
	free(take_text);
}

/* ---- nodes ---- */

static struct rows_node *rows_find(const struct gateway_rows *x, unsigned number)
{
	return x && number < x->numbers ? x->by_number[number] : NULL;
}

static void rows_make_room(struct gateway_rows *x, unsigned number)
{
	unsigned count = number + 64;

	if (number < x->numbers)
		return;
	x->by_number = reallocarray(x->by_number, count, sizeof(struct rows_node *));
	if (!x->by_number)
		abort();
	memset(x->by_number + x->numbers, 0, (count - x->numbers) * sizeof(struct rows_node *));
	x->numbers = count;
}

static struct rows_node *rows_enter(struct gateway_rows *x, unsigned number)
{
	struct rows_node *n = rows_find(x, number);

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		abort();
	*n = (struct rows_node){ .next = x->nodes,
				 .all = x,
				 .number = number,
				 .is_full = 1,
				 .due = json_object(),
				 .secrets = json_object() };
	x->nodes = n;
	rows_make_room(x, number);
	x->by_number[number] = n;
	return n;
}

int gateway_rows_has(const struct gateway_rows *x, unsigned number, const char *id,
		     uint64_t version, int64_t updated_ns)
{
	const struct rows_node *n = rows_find(x, number);
	const json_t *has = n ? json_object_get(n->secrets, id) : NULL;

	return has && loop_now_ms() - n->known_ms < ROWS_KNOWN_MS &&
	       json_integer_value(json_object_get(has, "version")) == (json_int_t)version &&
	       json_integer_value(json_object_get(has, "updated_ns")) == updated_ns;
}

/* A secret of the node that is not the one of this gateway is due. */
static void rows_compare(struct rows_node *n, const char *id, const json_t *has)
{
	auto_free char *text = NULL;
	char both[STORE_SHARED_ID + 16];
	json_t *row;
	struct err e;
	int same;

	if (store_shared_get(n->all->conf.api->store, "secret", id, &text, &e) < 0)
		return;
	row = text ? json_loads(text, 0, NULL) : NULL;
	same = row &&
	       json_equal(json_object_get(row, "version"), json_object_get(has, "version")) &&
	       json_equal(json_object_get(row, "updated_ns"), json_object_get(has, "updated_ns"));
	json_decref(row);
	if (same)
		return;
	snprintf(both, sizeof(both), "secret %s", id);
	json_object_set_new(n->due, both, json_true());
}

void gateway_rows_learn(struct gateway_rows *x, unsigned number, const char *body, size_t n)
{
	struct rows_node *to = rows_find(x, number);
	json_t *doc = body ? json_loadb(body, n, JSON_REJECT_DUPLICATES, NULL) : NULL,
	       *secrets = json_object_get(doc, "secrets"), *has;
	const char *id;

	if (to && json_is_object(secrets)) {
		json_decref(to->secrets);
		to->secrets = json_incref(secrets);
		to->known_ms = loop_now_ms();
		json_object_foreach(secrets, id, has) if (strlen(id) <= STORE_SHARED_ID)
			rows_compare(to, id, has);
	}
	json_decref(doc);
}

/* ---- sending ---- */

static void rows_answer_waits(struct gateway_rows *x);

static void rows_answered(struct node_request *r, int status, const char *body, size_t n,
			  const char *why)
{
	struct rows_node *to = loop_owner(r, struct rows_node, request);

	to->is_sending = 0;
	if (status == 200) {
		to->acked = to->sent;
		gateway_rows_learn(to->all, to->number, body, n);
	} else {
		log_warn("what teams have set was not sent to a node", LOG_U("node", to->number),
			 LOG_U("status", (uint64_t)status), LOG_S("why", why ? why : ""));
		to->is_full = 1;
		to->after_ms = loop_now_ms() + ROWS_AGAIN_MS;
	}
	rows_answer_waits(to->all);
	timer_set(&to->all->tick, 0);
}

static void rows_add(json_t *rows, json_t *take_row)
{
	if (take_row)
		json_array_append_new(rows, take_row);
}

static json_t *rows_all(struct gateway_rows *x, json_t *keep)
{
	struct store_shared_rows all;
	json_t *rows = json_array();
	struct err e;

	if (store_shared_list(x->conf.api->store, &all, &e) < 0) {
		log_error("what teams have set", LOG_E(&e));
		json_decref(rows);
		return NULL;
	}
	for (unsigned i = 0; i < all.n; i++) {
		json_array_append_new(keep, json_sprintf("%s %s", all.v[i].kind, all.v[i].id));
		rows_add(rows, gateway_rows_json(x->conf.api, all.v[i].kind, all.v[i].id));
	}
	store_shared_rows_fini(&all);
	return rows;
}

static json_t *rows_due(struct rows_node *n)
{
	json_t *rows = json_array(), *v;
	const char *both;

	json_object_foreach(n->due, both, v)
	{
		const char *id = strchr(both, ' ') + 1;
		char kind[8];

		snprintf(kind, sizeof(kind), "%.*s", (int)(id - both - 1), both);
		rows_add(rows, gateway_rows_json(n->all->conf.api, kind, id));
	}
	return rows;
}

static void rows_send(struct rows_node *n)
{
	struct gateway_rows *x = n->all;
	json_t *keep = n->is_full ? json_array() : NULL,
	       *rows = n->is_full ? rows_all(x, keep) : rows_due(n);
	char *text, identity[128];
	size_t len;

	if (!rows) {
		json_decref(keep);
		n->after_ms = loop_now_ms() + ROWS_AGAIN_MS;
		return;
	}
	if (n->is_full) { /* secrets that have changed meanwhile */
		json_t *more = rows_due(n);

		json_array_extend(rows, more);
		json_decref(more);
	}
	text = gateway_rows_text(rows, keep, &len);
	json_object_clear(n->due);
	n->is_full = 0;
	n->is_sending = 1;
	n->sent = x->changes;
	restart_identity(TEAM_DEFAULT, identity);
	n->request = (struct node_request){ .done = rows_answered };
	node_request_send(&n->request, x->conf.tunnels, x->conf.api->loop, n->number,
			  &(struct node_request_what){ .method = "PUT",
						       .target = "/cluster/rows",
						       .identity = identity,
						       .body = text,
						       .n = len },
			  ROWS_NODE_MS);
	gateway_rows_wipe(text);
}

static void rows_look(struct gateway_rows *x, const struct tunnel_node *t)
{
	struct rows_node *n = rows_enter(x, t->number);

	if (t->state != TUNNEL_UP)
		return;
	if (n->since_ms != t->since_ms) {
		n->since_ms = t->since_ms;
		n->is_full = 1;
	}
	if (n->is_sending || loop_now_ms() < n->after_ms ||
	    (!n->is_full && !json_object_size(n->due)))
		return;
	/* A gateway that does not know what others have set gives no node a list of all. */
	if (n->is_full && !x->conf.is_fresh(x->conf.user))
		return;
	rows_send(n);
}

static void rows_tick(struct timer *t)
{
	struct gateway_rows *x = loop_owner(t, struct gateway_rows, tick);

	timer_set(&x->tick, ROWS_TICK_MS);
	for (struct tunnel_node *n = tunnels_next(x->conf.tunnels, NULL); n;
	     n = tunnels_next(x->conf.tunnels, n))
		if (n->number != x->conf.own)
			rows_look(x, n);
	rows_answer_waits(x);
}

int gateway_rows_node_is_ready(const struct gateway_rows *x, unsigned number)
{
	const struct rows_node *n = rows_find(x, number);

	if (!x || number == x->conf.own || !x->conf.is_fresh(x->conf.user))
		return 1;
	return n && (n->acked || loop_now_ms() - n->since_ms > ROWS_READY_MS);
}

/* ---- changes ---- */

static void rows_changed(struct gateway_rows *x, const char *kind, const char *id)
{
	char both[STORE_SHARED_ID + 16];

	snprintf(both, sizeof(both), "%s %s", kind, id);
	x->changes++;
	for (struct rows_node *n = x->nodes; n; n = n->next)
		if (strcmp(kind, "secret") != 0 || json_object_get(n->secrets, id))
			json_object_set_new(n->due, both, json_true());
	timer_set(&x->tick, 0);
}

static void rows_came(struct api *a, const char *kind, const char *id)
{
	struct gateway_rows *x = a->gateway->rows;

	if (!store_shared_is_kind(kind))
		return;
	x->conf.came(a, kind, id);
	rows_changed(x, kind, id);
}

/* ---- answers that wait ---- */

/* NULL: all connected nodes have it. */
static const struct tunnel_node *rows_missing(const struct gateway_rows *x, uint64_t change)
{
	for (struct tunnel_node *t = tunnels_next(x->conf.tunnels, NULL); t;
	     t = tunnels_next(x->conf.tunnels, t)) {
		const struct rows_node *n = rows_find(x, t->number);

		if (t->state != TUNNEL_UP || t->number == x->conf.own || (n && n->acked >= change))
			continue;
		if (n && !n->is_full && !n->is_sending && !json_object_size(n->due))
			continue; /* the change does not concern it */
		return t;
	}
	return NULL;
}

static void rows_forget(struct rows_wait *w)
{
	struct rows_wait **at = &w->all->waits;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	json_decref(w->doc);
	free(w);
}

static void rows_wait_dropped(struct call *c)
{
	rows_forget(c->state);
	c->state = NULL;
}

static void rows_answer(struct rows_wait *w, const struct tunnel_node *missing)
{
	struct call *c = w->call;
	json_t *doc = w->doc;
	int status = w->status;

	w->doc = NULL;
	c->drop = NULL;
	c->state = NULL;
	rows_forget(w);
	if (missing) /* it gets the row when it answers again */
		http_set(c->req, "Atoll-Incomplete", "%s", missing->name);
	if (doc)
		call_json(c, status, doc);
	else
		call_empty(c, status);
}

static void rows_answer_waits(struct gateway_rows *x)
{
	for (struct rows_wait *w = x->waits, *next; w; w = next) {
		const struct tunnel_node *missing = rows_missing(x, w->change);

		next = w->next;
		if (!missing || loop_now_ms() > w->until_ms)
			rows_answer(w, missing);
	}
}

static void rows_left(struct call *c, const char *kind, const char *id, int status,
		      json_t *take_doc)
{
	struct gateway_rows *x = c->api->gateway->rows;
	struct rows_wait *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	rows_changed(x, kind, id);
	if (c->api->accounts_changed)
		c->api->accounts_changed(c->api);
	*w = (struct rows_wait){ .next = x->waits,
				 .all = x,
				 .call = c,
				 .status = status,
				 .doc = take_doc,
				 .change = x->changes,
				 .until_ms = loop_now_ms() + ROWS_WAIT_MS };
	x->waits = w;
	c->state = w;
	c->drop = rows_wait_dropped;
}

/* ---- life ---- */

struct gateway_rows *gateway_rows_new(const struct gateway_rows_conf *conf)
{
	struct gateway_rows *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->conf = *conf;
	x->changes = 1;
	timer_init(&x->tick, conf->api->loop, rows_tick);
	timer_set(&x->tick, 0);
	conf->api->gateway->rows = x;
	conf->api->shared_row_came = rows_came;
	conf->api->shared_row_left = rows_left;
	return x;
}

void gateway_rows_free(struct gateway_rows *x)
{
	if (!x)
		return;
	x->conf.api->shared_row_came = NULL;
	x->conf.api->shared_row_left = NULL;
	timer_fini(&x->tick);
	while (x->waits) {
		x->waits->call->state = NULL;
		x->waits->call->drop = NULL;
		rows_forget(x->waits);
	}
	while (x->nodes) {
		struct rows_node *n = x->nodes;

		x->nodes = n->next;
		node_request_cancel(&n->request);
		json_decref(n->due);
		json_decref(n->secrets);
		free(n);
	}
	free(x->by_number);
	free(x);
}
