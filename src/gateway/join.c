/* join.c - see join.h. */
#include "gateway/join.h"
#include "base/log.h"
#include "cluster/ca.h"
#include "coordinator/cluster_client.h"
#include "http/http.h"

#include <stdlib.h>
#include <string.h>

enum { JOIN_BODY = 2 * CLUSTER_REQUEST_MAX };

struct join {
	struct cluster_client *client;
	struct cluster_request ask;
	struct http_req *req;
};

static void join_reply(struct http_req *r, int status, json_t *take_body)
{
	char *text = json_dumps(take_body, JSON_COMPACT);

	json_decref(take_body);
	if (!text)
		abort();
	http_reply(r, status, "application/json", text, strlen(text));
	free(text);
}

static void join_refuse(struct http_req *r, const struct err *e)
{
	static const int statuses[] = {
		[ERR_INVALID] = 400, [ERR_NOT_FOUND] = 404, [ERR_CONFLICT] = 409,
		[ERR_LIMIT] = 429,   [ERR_DENIED] = 403,    [ERR_SYS] = 503
	};

	log_warn("a machine could not join", LOG_S("peer", r->peer), LOG_E(e));
	join_reply(r, statuses[e->kind],
		   json_pack("{s:{s:s, s:s}}", "error", "code", err_kind_name(e->kind), "message",
			     e->msg));
}

static void join_done(struct cluster_request *q, const json_t *answer, const struct err *e)
{
	struct join *j = loop_owner(q, struct join, ask);

	if (e) {
		join_refuse(j->req, e);
		return;
	}
	log_info("a machine has joined", LOG_S("peer", j->req->peer),
		 LOG_I("number", json_integer_value(json_object_get(answer, "number"))));
	join_reply(j->req, 200,
		   json_pack("{s:O, s:O, s:O}", "number", json_object_get(answer, "number"),
			     "certificate", json_object_get(answer, "certificate"), "ca",
			     json_object_get(answer, "ca")));
}

static void join_over(struct http_req *r)
{
	struct join *j = r->user;

	cluster_client_cancel(&j->ask);
	free(j);
}

static void join_body(struct http_req *r)
{
	struct join *j = r->user;
	const char *token, *request, *name;
	json_t *body =
		json_loadb(r->body.p ? r->body.p : "", r->body.len, JSON_REJECT_DUPLICATES, NULL);
	struct err e;

	if (json_unpack(body, "{s:s, s:s, s:s !}", "token", &token, "request", &request, "name",
			&name) < 0) {
		err_set(&e, ERR_INVALID,
			"the body is not an object with the texts token, request and name");
		join_refuse(r, &e);
	} else {
		cluster_client_send(j->client, &j->ask,
				    json_pack("{s:{s:s, s:s, s:s}}", "join", "token", token,
					      "request", request, "name", name));
	}
	json_decref(body);
}

void gateway_join(struct http_req *r, struct cluster_client *client)
{
	struct join *j = calloc(1, sizeof(*j));

	if (!j)
		abort();
	j->req = r;
	j->client = client;
	j->ask.done = join_done;
	r->user = j;
	r->on_over = join_over;
	r->on_body_end = join_body;
	http_want_body(r, HTTP_BODY_WHOLE, JOIN_BODY);
}
