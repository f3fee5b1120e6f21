/* find.c - which node has the object of this name. The coordinator knows names of boxes that gateways created; for others
 * all nodes are asked, and a name that two nodes have is the older one's, so that all gateways use the same. */
#include "gateway/gateway_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *find_target(void *user, unsigned node)
{
	const struct gateway_call *x = user;

	return x->home < 0 || (unsigned)x->home == node ? x->path : NULL;
}

/* Part of the server: every node has it. */
static int find_is_common(const json_t *doc)
{
	return json_is_true(json_object_get(doc, "builtin")) ||
	       json_is_true(json_object_get(doc, "shipped"));
}

/* 1: a comes before b: an object that a client has made, of those the older one. */
static int find_is_before(const json_t *a, const json_t *b)
{
	const char *when = json_string_value(json_object_get(a, "created")),
		   *other = json_string_value(json_object_get(b, "created"));

	if (find_is_common(a) != find_is_common(b))
		return find_is_common(b);
	return strcmp(when ? when : "", other ? other : "") < 0;
}

int find_oldest(const struct fanout *f)
{
	const struct fanout_answer *best = NULL;

	for (unsigned i = 0; i < f->n; i++)
		if (f->v[i].status == 200 && f->v[i].doc &&
		    (!best || find_is_before(f->v[i].doc, best->doc)))
			best = &f->v[i];
	return best ? (int)best->request.node : -1;
}

static int find_answer_is_common(const struct fanout *f, int node)
{
	for (unsigned i = 0; i < f->n; i++)
		if ((int)f->v[i].request.node == node)
			return find_is_common(f->v[i].doc);
	return 0;
}

/* A node that did not answer: it may have the object. */
static void find_set_missing(struct gateway_call *x, const struct fanout *f)
{
	x->missing[0] = x->found_id[0] = 0;
	for (unsigned i = 0; i < f->n; i++)
		if (!f->v[i].status) {
			snprintf(x->missing, sizeof(x->missing), "%s", f->v[i].name);
			x->node = f->v[i].request.node;
		}
}

/* The answer of a node that knows when and why the box ended; NULL: none does. */
static json_t *find_ended(const struct fanout *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		const json_t *error = json_object_get(f->v[i].doc, "error");
		const char *code = json_string_value(json_object_get(error, "code"));

		if (f->v[i].status == 404 && code && strcmp(code, "box_ended") == 0)
			return json_incref(f->v[i].doc);
	}
	return NULL;
}

static void find_set_id(struct gateway_call *x, const struct fanout *f, int node)
{
	x->found_id[0] = 0;
	for (unsigned i = 0; i < f->n; i++) {
		const char *id = json_string_value(json_object_get(f->v[i].doc, "id"));

		if (node >= 0 && f->v[i].request.node == (unsigned)node && id && id_valid(id))
			snprintf(x->found_id, sizeof(x->found_id), "%s", id);
	}
}

static void find_everywhere(struct gateway_call *x);

static void find_done(struct fanout *f)
{
	struct gateway_call *x = f->user;
	int node = find_oldest(f), was_home = x->home >= 0;

	x->is_common = node >= 0 && find_answer_is_common(f, node);
	if (was_home && (node < 0 || x->is_common)) {
		fanout_free(f);
		x->home = -1;
		find_everywhere(x);
		return;
	}
	find_set_missing(x, f);
	find_set_id(x, f, node);
	json_decref(x->ended);
	x->ended = node < 0 ? find_ended(f) : NULL;
	find_end(x);
	x->found(x, node);
}

static void find_everywhere(struct gateway_call *x)
{
	x->fanout = (struct fanout){
		.done = find_done, .user = x, .method = x->find_method, .headers = x->find_headers
	};
	fanout_begin(&x->fanout, x->gateway->tunnels, x->call->api->loop, find_target, x->identity);
}

/* A name that the coordinator does not have, or cannot tell, may exist: PATCH gives names, too. */
static void find_named(struct names_ask *a, const struct names_answer *answer, const struct err *e)
{
	struct gateway_call *x = loop_owner(a, struct gateway_call, naming);

	if (!e && answer->has_owner)
		x->found(x, (int)answer->node);
	else
		find_everywhere(x);
}

void find_begin_path(struct gateway_call *x, const char *path, const char *method,
		     const char *headers, void (*found)(struct gateway_call *x, int node))
{
	find_end(x);
	x->path = buf_text("%s", path);
	x->found = found;
	x->find_method = method;
	x->find_headers = headers;
	x->is_common = 0;
	x->missing[0] = x->found_id[0] = 0;
	x->home = -1;
	find_everywhere(x);
}

void find_begin(struct gateway_call *x, const char *collection, const char *object,
		void (*found)(struct gateway_call *x, int node))
{
	struct names_key k;
	int node = -1;

	find_end(x);
	x->path = buf_text("%s/%s", collection, object);
	x->found = found;
	x->find_method = x->find_headers = NULL;
	x->is_common = 0;
	x->missing[0] = x->found_id[0] = 0;
	/* Most templates are on the own node of their team: it is asked first. */
	x->home = strcmp(collection, TARGET_TEMPLATES) == 0 ? create_own_node(x, "templates", "")
							    : -1;
	if (!x->gateway->names || strcmp(collection, "/v1/boxes") != 0 ||
	    !gateway_leases_is_valid(x->gateway->leases) ||
	    !names_key_set(&k, 'n', x->call->who.team, object, "")) {
		find_everywhere(x);
		return;
	}
	node = names_cached(x->gateway->names, &k);
	if (node >= 0) {
		x->found(x, node);
		return;
	}
	x->naming.done = find_named;
	names_begin(x->gateway->names, &x->naming, COORDINATOR_FIND_NAME, &k, 0, 0, NULL);
}

void find_fail_missing(struct gateway_call *x)
{
	char why[160];

	snprintf(why, sizeof(why), "node %s did not answer, and may have it", x->missing);
	forward_fail_unreachable(x, why);
}

void find_end(struct gateway_call *x)
{
	names_cancel(&x->naming);
	fanout_free(&x->fanout);
	free(x->path);
	x->path = NULL;
}
