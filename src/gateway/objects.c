/* objects.c - see objects.h. */
#include "gateway/objects_internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "coordinator/queries.h"
#include "gateway/restart.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OBJECTS_AVOID_MS = 30000,
	OBJECTS_DATABASE_MS = 1000, /* then the file travels through the gateway */
	OBJECTS_OWNER_MS = 5000,
	OBJECTS_TRANSFER_MS =
		15 * 60 * 1000, /* as long as a URL is valid; nodes end slow transfers */
	OBJECTS_SHA256 = 64,
};

struct objects_copy {
	struct objects_copy *next;
	struct gateway_objects *all;
	void (*done)(void *user, const char *why);
	void *user;
	struct cluster_request query;
	struct node_request node;
	char snapshot[ID_MAX + 1], team[STORE_NAME + 1], name[STORE_NAME + 1], identity[128];
	char key[OBJECTS_KEY], sha256[OBJECTS_SHA256 + 1], why[200];
	int64_t bytes;
	unsigned owner, to;
	struct timer end;
};

/* ---- the end ---- */

static void objects_copy_free(struct objects_copy *take_x)
{
	struct objects_copy **at = &take_x->all->copies;

	while (*at != take_x)
		at = &(*at)->next;
	*at = take_x->next;
	cluster_client_cancel(&take_x->query);
	node_request_cancel(&take_x->node);
	timer_fini(&take_x->end);
	free(take_x);
}

void objects_copy_cancel(struct objects_copy *x)
{
	if (x)
		objects_copy_free(x);
}

static void objects_copy_ended(struct timer *t)
{
	struct objects_copy *x = loop_owner(t, struct objects_copy, end);
	void (*done)(void *user, const char *why) = x->done;
	void *user = x->user;
	char why[sizeof(x->why)];

	snprintf(why, sizeof(why), "%s", x->why);
	objects_copy_free(x);
	if (done)
		done(user, why[0] ? why : NULL);
}

/* Not from within a callback of a request. why NULL: done. */
static void objects_copy_end(struct objects_copy *x, const char *why)
{
	if (why)
		log_warn("the object store was not used", LOG_S("snapshot", x->snapshot),
			 LOG_U("from", x->owner), LOG_U("to", x->to), LOG_S("why", why));
	snprintf(x->why, sizeof(x->why), "%s", why ? why : "");
	timer_set(&x->end, 0);
}

/* The fault may be the store's: for a while requests do not wait for it. */
static void objects_copy_fail(struct objects_copy *x, const char *why)
{
	x->all->avoid_ms = loop_now_ms() + OBJECTS_AVOID_MS;
	objects_copy_end(x, why);
}

/* What a node answers instead of success. */
static void objects_copy_refused(struct objects_copy *x, int status, const char *body, size_t n,
				 const char *why)
{
	char text[160];

	snprintf(text, sizeof(text), "node %u: %.*s", x->node.node,
		 why ? (int)strlen(why) : (int)(n < 120 ? n : 120),
		 why    ? why
		 : body ? body
			: "");
	if (status == 502 || status == 422)
		objects_copy_fail(x, text);
	else
		objects_copy_end(x, text);
}

static void objects_copy_query(struct objects_copy *x, const char *name, json_t *take_params,
			       void (*done)(struct cluster_request *r, const json_t *answer,
					    const struct err *e))
{
	x->query.done = done;
	query_request(x->all->conf.engines, &x->query, name, take_params);
}

void objects_sign_request(struct gateway_objects *g, struct cluster_request *r, const char *method,
			  const char *key)
{
	cluster_client_send(g->conf.engines, r,
			    json_pack("{s:{s:s, s:s}}", "object", "method", method, "key", key));
}

static void objects_copy_sign(struct objects_copy *x, const char *method,
			      void (*done)(struct cluster_request *r, const json_t *answer,
					   const struct err *e))
{
	x->query.done = done;
	objects_sign_request(x->all, &x->query, method, x->key);
}

static void objects_copy_ask(struct objects_copy *x, unsigned node, const char *target,
			     json_t *take_body,
			     void (*done)(struct node_request *r, int status, const char *body,
					  size_t n, const char *why))
{
	auto_free char *body = json_dumps(take_body, JSON_COMPACT);

	json_decref(take_body);
	if (!body)
		abort();
	x->node = (struct node_request){ .done = done };
	node_request_send(&x->node, x->all->conf.tunnels, x->all->conf.loop, node,
			  &(struct node_request_what){ .method = "POST",
						       .target = target,
						       .identity = x->identity,
						       .body = body,
						       .n = strlen(body) },
			  OBJECTS_TRANSFER_MS);
}

/* ---- from the store to the node that needs it ---- */

static void objects_copy_marked(struct cluster_request *r, const json_t *answer,
				const struct err *e)
{
	(void)answer;
	(void)e;
	objects_copy_fail(loop_owner(r, struct objects_copy, query),
			  "the object has other bytes than those that were stored");
}

static void objects_copy_came(struct node_request *r, int status, const char *body, size_t n,
			      const char *why)
{
	struct objects_copy *x = loop_owner(r, struct objects_copy, node);

	if (status == 201 || status == 409)
		objects_copy_end(x, NULL);
	else if (status == 422) /* the next one is stored again */
		objects_copy_query(x, "object_damaged", json_pack("[s]", x->key),
				   objects_copy_marked);
	else
		objects_copy_refused(x, status, body, n, why);
}

/* NULL: the copy has failed. */
static const char *objects_copy_url(struct objects_copy *x, const json_t *answer,
				    const struct err *e)
{
	const char *url = json_string_value(json_object_get(answer, "url"));

	if (e || !url)
		objects_copy_fail(x, e ? e->msg : "no URL");
	return e ? NULL : url;
}

static void objects_copy_get_signed(struct cluster_request *r, const json_t *answer,
				    const struct err *e)
{
	struct objects_copy *x = loop_owner(r, struct objects_copy, query);
	const char *url = objects_copy_url(x, answer, e);

	if (url)
		objects_copy_ask(x, x->to, "/cluster/objects/get",
				 json_pack("{s:s, s:s, s:s, s:I}", "snapshot", x->snapshot, "url",
					   url, "sha256", x->sha256, "bytes", (json_int_t)x->bytes),
				 objects_copy_came);
}

static void objects_copy_get(struct objects_copy *x)
{
	if (x->to)
		objects_copy_sign(x, "GET", objects_copy_get_signed);
	else
		objects_copy_end(x, NULL);
}

/* ---- from the node that has it to the store ---- */

static void objects_copy_ready(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct objects_copy *x = loop_owner(r, struct objects_copy, query);

	if (e || !json_array_size(query_rows(answer, 0)))
		objects_copy_end(x, e ? e->msg : "the object was removed meanwhile");
	else
		objects_copy_get(x);
}

static void objects_copy_stored(struct node_request *r, int status, const char *body, size_t n,
				const char *why)
{
	struct objects_copy *x = loop_owner(r, struct objects_copy, node);
	json_t *doc = status == 200 ? json_loadb(body, n, 0, NULL) : NULL;
	const char *sha256 = json_string_value(json_object_get(doc, "sha256"));
	char bytes[24];

	x->bytes = json_integer_value(json_object_get(doc, "bytes"));
	if (sha256 && strspn(sha256, "0123456789abcdef") == OBJECTS_SHA256 &&
	    !sha256[OBJECTS_SHA256] && x->bytes > 0) {
		snprintf(x->sha256, sizeof(x->sha256), "%s", sha256);
		snprintf(bytes, sizeof(bytes), "%lld", (long long)x->bytes);
		objects_copy_query(x, "object_ready",
				   json_pack("[s, s, s]", x->key, x->sha256, bytes),
				   objects_copy_ready);
	} else {
		objects_copy_refused(x, status, body, n, why);
	}
	json_decref(doc);
}

static void objects_copy_put_signed(struct cluster_request *r, const json_t *answer,
				    const struct err *e)
{
	struct objects_copy *x = loop_owner(r, struct objects_copy, query);
	const char *url = objects_copy_url(x, answer, e);

	if (url)
		objects_copy_ask(x, x->owner, "/cluster/objects/put",
				 json_pack("{s:s, s:s}", "snapshot", x->snapshot, "url", url),
				 objects_copy_stored);
}

static void objects_copy_added(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct objects_copy *x = loop_owner(r, struct objects_copy, query);

	(void)answer;
	if (e)
		objects_copy_end(x, e->msg);
	else
		objects_copy_sign(x, "PUT", objects_copy_put_signed);
}

/* A key is used once, so an object never changes. */
static void objects_copy_put(struct objects_copy *x)
{
	char random[ID_MAX + 1], owner[12];
	struct err e;

	if (id_new(random, &e) < 0) {
		objects_copy_end(x, e.msg);
		return;
	}
	snprintf(x->key, sizeof(x->key), "snapshots/%s-%s", x->snapshot, random);
	snprintf(owner, sizeof(owner), "%u", x->owner);
	objects_copy_query(x, "object_add",
			   json_pack("[s, s, s, s, s]", x->key, x->snapshot, x->team, x->name,
				     owner),
			   objects_copy_added);
}

/* ---- an object that exists ---- */

/* What its node has deleted is not copied, as long as the node can be asked. */
static void objects_copy_owner_answered(struct node_request *r, int status, const char *body,
					size_t n, const char *why)
{
	struct objects_copy *x = loop_owner(r, struct objects_copy, node);

	(void)body;
	(void)n;
	(void)why;
	if (status == 404) {
		gateway_objects_forget(x->all, x->team, x->snapshot);
		objects_copy_end(x, "the snapshot was deleted");
	} else {
		objects_copy_get(x);
	}
}

static void objects_copy_check(struct objects_copy *x)
{
	const struct tunnel_node *owner = tunnels_find(x->all->conf.tunnels, x->owner);
	char target[64];

	if (!x->to || !owner || owner->state != TUNNEL_UP) {
		objects_copy_get(x);
		return;
	}
	snprintf(target, sizeof(target), "/v1/snapshots/%s", x->snapshot);
	x->node = (struct node_request){ .done = objects_copy_owner_answered };
	node_request_send(&x->node, x->all->conf.tunnels, x->all->conf.loop, x->owner,
			  &(struct node_request_what){ .target = target, .identity = x->identity },
			  OBJECTS_OWNER_MS);
}

static void objects_copy_found(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct objects_copy *x = loop_owner(r, struct objects_copy, query);
	const json_t *row = json_array_get(query_rows(answer, 0), 0);

	timer_clear(&x->end);
	x->why[0] = 0;
	if (e) {
		objects_copy_fail(x, e->msg);
	} else if (row) {
		snprintf(x->key, sizeof(x->key), "%s", query_text(row, 0));
		snprintf(x->sha256, sizeof(x->sha256), "%s", query_text(row, 1));
		x->bytes = query_int(row, 2);
		objects_copy_check(x);
	} else {
		objects_copy_put(x);
	}
}

struct objects_copy *objects_copy_new(struct gateway_objects *g, const struct objects_what *w,
				      void (*done)(void *user, const char *why), void *user)
{
	struct objects_copy *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	*x = (struct objects_copy){ .next = g->copies,
				    .all = g,
				    .done = done,
				    .user = user,
				    .owner = w->owner,
				    .to = w->to };
	g->copies = x;
	snprintf(x->snapshot, sizeof(x->snapshot), "%s", w->snapshot);
	snprintf(x->team, sizeof(x->team), "%s", w->team);
	snprintf(x->name, sizeof(x->name), "%s", w->name);
	restart_identity(w->team, x->identity);
	timer_init(&x->end, g->conf.loop, objects_copy_ended);
	snprintf(x->why, sizeof(x->why), "the database does not answer");
	timer_set(&x->end, OBJECTS_DATABASE_MS);
	objects_copy_query(x, "object_use", json_pack("[s, s]", x->snapshot, x->team),
			   objects_copy_found);
	return x;
}

int objects_may_keep(const struct objects_what *w)
{
	return id_node(w->snapshot) == (int)w->owner;
}

void gateway_objects_keep(struct gateway_objects *g, const struct objects_what *w)
{
	if (g && !gateway_objects_are_away(g) && objects_may_keep(w))
		objects_copy_new(g, w, NULL, NULL);
}

/* ---- deleted by a client ---- */

static void objects_forgot(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	(void)answer;
	(void)e; /* the sweep asks the node */
	free(r);
}

void gateway_objects_forget(struct gateway_objects *g, const char *team, const char *snapshot)
{
	struct cluster_request *r = g ? calloc(1, sizeof(*r)) : NULL;

	if (!g)
		return;
	if (!r)
		abort();
	r->done = objects_forgot;
	query_request(g->conf.engines, r, "object_forget", json_pack("[s, s]", team, snapshot));
}

/* ---- life ---- */

int gateway_objects_are_away(const struct gateway_objects *g)
{
	return loop_now_ms() < g->avoid_ms;
}

struct gateway_objects *gateway_objects_new(const struct gateway_objects_conf *conf)
{
	struct gateway_objects *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	g->conf = *conf;
	objects_sweep_init(g);
	return g;
}

void gateway_objects_free(struct gateway_objects *g)
{
	if (!g)
		return;
	while (g->copies)
		objects_copy_free(g->copies);
	objects_sweep_fini(g);
	free(g);
}
