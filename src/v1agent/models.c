/* models.c - see models.h. */
#include "v1agent/models.h"
#include "api/charges.h"
#include "metrics/metrics.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <string.h>

const struct field models_ask_fields[] = {
	{ "text", FIELD_TEXT, 0, 0, 1 << 20, "one user message; alternative to messages", NULL },
	{ "messages", FIELD_ANY, 0, 0, 0, "the conversation: [{role, text, calls, results}]",
	  NULL },
	{ "system", FIELD_TEXTS, 0, 0, 0, "system texts, before all messages", NULL },
	{ "role", FIELD_NAME, 0, 0, 64,
	  "use the models of this role: planner, coder, debugger, agent, ...", NULL },
	{ "level", FIELD_INT, 0, 0, 3, "index of the model in the role's list (default 0)", NULL },
	{ "model", FIELD_NAME, 0, 0, 64, "name of a model, instead of a role", NULL },
	{ "tools", FIELD_ANY, 0, 0, 0, "tools for the model: [{name, description, parameters}]",
	  NULL },
	{ "schema", FIELD_ANY, 0, 0, 0, "JSON schema of the answer: {name, schema}", NULL },
	{ "max_tokens", FIELD_INT, 0, 1, 10000000,
	  "maximum number of tokens of the answer (default 4096)", NULL },
	{ "temperature", FIELD_ANY, 0, 0, 0, "sampling temperature (default: the model's)", NULL },
	{ "stop", FIELD_TEXTS, 0, 0, 0, "texts that end the answer", NULL },
	{ "deadline_ms", FIELD_INT, 0, 1, 3600000, "time limit for all attempts together", NULL },
	{ 0 },
};

static void no_models(struct call *c)
{
	call_error(c, 404, "not_found",
		   c->api->model ? "models cannot be called yet" : "no model is configured", NULL,
		   "serve.models names the file, docs/pipeline.md describes it");
}

void models_list(struct call *c)
{
	const json_t *book = llm_models(c->api->model);

	if (!book)
		no_models(c);
	else
		call_json(c, 200,
			  json_pack("{s:O, s:O, s:O}", "items", json_object_get(book, "models"),
				    "roles", json_object_get(book, "roles"), "usage",
				    llm_figures(c->api->model)));
}

/* ---- completion ---- */

struct models_asking {
	struct llm_request ask;
	struct call *call;
};

/* The status shows which side must act: the client, the operator or the provider. */
static int status_of(const json_t *error)
{
	static const struct {
		const char *category;
		int status;
	} rows[] = { { "invalid", 422 },  { "too_large", 422 },   { "rate", 503 },
		     { "overload", 503 }, { "unavailable", 503 }, { "timeout", 504 } };
	const char *category = json_string_value(json_object_get(error, "category"));

	for (unsigned i = 0; category && i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].category, category) == 0)
			return rows[i].status;
	return 502;
}

static void models_answered(struct llm_request *m, const json_t *answer, const struct err *e)
{
	struct call *c = loop_owner(m, struct models_asking, ask)->call;
	const json_t *error = json_object_get(answer, "error");
	json_t *doc;

	charges_model_call(c->api, &c->who, json_object_get(answer, "usage"));
	if (!e) {
		call_json(c, 200, json_deep_copy(answer));
		return;
	}
	doc = call_error_json(c, e->kind == ERR_NOT_FOUND ? "not_found" : "model_failed", e->msg,
			      NULL, NULL);
	json_object_set_new(doc, "answer", json_deep_copy(answer));
	call_send(c, e->kind == ERR_NOT_FOUND ? 404 : status_of(error), doc);
}

static void models_left(struct call *c)
{
	llm_cancel(&((struct models_asking *)c->state)->ask);
}

/* A model call costs money: a client that closes its side counts as disconnected. */
static void hung_up(struct http_req *r)
{
	struct call *c = r->user;

	if (!((struct models_asking *)c->state)->ask.line) /* already answered */
		return;
	models_left(c);
	call_error(c, 400, "cancelled", "the client closed its side before the answer arrived",
		   NULL, NULL);
}

static json_t *request_of(struct call *c)
{
	json_t *request = json_deep_copy(c->body), *text = json_object_get(request, "text");

	if (text && !json_object_get(request, "messages"))
		json_object_set_new(request, "messages",
				    json_pack("[{s:s, s:O}]", "role", "user", "text", text));
	json_object_del(request, "text");
	if (!json_object_get(request, "role") && !json_object_get(request, "model"))
		json_object_set_new(request, "role", json_string("agent"));
	return request;
}

void models_ask(struct call *c)
{
	struct models_asking *x = call_alloc(c, sizeof(*x));
	struct err e;

	if (!c->api->model) {
		no_models(c);
		return;
	}
	*x = (struct models_asking){ .call = c, .ask.done = models_answered };
	c->state = x;
	c->drop = models_left;
	if (llm_start(c->api->model, &x->ask, request_of(c), &e) < 0)
		call_fail(c, &e);
	else
		c->req->on_eof = hung_up;
}

/* ---- figures ---- */

void models_figures(const struct api *a, struct metrics *m)
{
	static const struct {
		enum metric_id id;
		const char *member, *kind;
	} rows[] = {
		{ METRIC_MODEL_QUESTIONS, "asked", NULL },
		{ METRIC_MODEL_FAILURES, "failed", NULL },
		{ METRIC_MODEL_CALLS, "calls", NULL },
		{ METRIC_MODEL_COST, "cost", NULL },
		{ METRIC_MODEL_TOKENS, "in", "in" },
		{ METRIC_MODEL_TOKENS, "out", "out" },
		{ METRIC_MODEL_TOKENS, "cache_read", "cache_read" },
		{ METRIC_MODEL_TOKENS, "cache_write", "cache_write" },
	};
	const json_t *figures = llm_figures(a->model);
	const char *model;
	json_t *row;

	json_object_foreach((json_t *)figures, model, row)
	{
		double in = json_number_value(json_object_get(row, "in")),
		       cached = json_number_value(json_object_get(row, "cache_read")),
		       all = in + cached + json_number_value(json_object_get(row, "cache_write"));

		for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
			metrics_put(m, rows[i].id,
				    json_number_value(json_object_get(row, rows[i].member)), model,
				    rows[i].kind);
		metrics_put(m, METRIC_MODEL_CACHE_RATIO, all > 0 ? cached / all : 0, model, NULL);
	}
}
