/* mcp_elicit.c - requests to the client: its user, its model, its folders. See mcp.h. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "mcp/mcp.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

enum { STATE_MS = 15 * 60 * 1000, STATE_BYTES = 16 * 1024, SEAL = 32 };

static const struct {
	const char *method, *capability;
} askable[] = {
	{ "elicitation/create", "elicitation" },
	{ "sampling/createMessage", "sampling" },
	{ "roots/list", "roots" },
};

unsigned mcp_capabilities(const json_t *said)
{
	unsigned can = 0;

	for (unsigned i = 0; i < ARRAY_LEN(askable); i++)
		if (json_is_object(json_object_get(said, askable[i].capability)))
			can |= 1u << i;
	return can;
}

int mcp_can(const struct mcp_call *m, const char *method)
{
	for (unsigned i = 0; i < ARRAY_LEN(askable); i++)
		if (!strcmp(askable[i].method, method))
			return m->can >> i & 1;
	return 0;
}

const json_t *mcp_answer(const struct mcp_call *m, const char *key)
{
	const json_t *all = m->modern ? json_object_get(m->params, "inputResponses") : m->answers;
	const json_t *one = json_object_get(all, key);

	return json_is_object(one) ? one : NULL;
}

/* ---- what we must remember, kept by the client ---- */

static int elicit_seal(const struct mcp *x, const char *text, size_t n, uint8_t out[SEAL])
{
	unsigned len = SEAL;

	return HMAC(EVP_sha256(), x->key, sizeof(x->key), (const uint8_t *)text, n, out, &len) ? 0
											       : -1;
}

/* A state is valid for one call of one key, for a limited time. */
static json_t *elicit_bound(const struct mcp_call *m, json_t *take_state, uint64_t until_ms)
{
	return json_pack("{s:o, s:s, s:s, s:s, s:O*, s:O*, s:I}", "state", take_state, "key",
			 m->call->who.id, "team", m->call->who.team, "method", m->method, "name",
			 json_object_get(m->params, "name"), "arguments",
			 json_object_get(m->params, "arguments"), "until", (json_int_t)until_ms);
}

/* base64(document).base64(seal) */
static json_t *elicit_sealed(const struct mcp_call *m, json_t *take_state)
{
	json_t *doc = elicit_bound(m, take_state, now_ns() / 1000000 + STATE_MS);
	auto_free char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
	auto_buf struct buf out = { 0 };
	uint8_t sum[SEAL];

	json_decref(doc);
	if (!text || elicit_seal(m->mcp, text, strlen(text), sum) < 0)
		abort();
	base64_encode(&out, text, strlen(text));
	buf_putc(&out, '.');
	base64_encode(&out, sum, sizeof(sum));
	return json_string(buf_str(&out));
}

/* The document with a valid seal, or NULL. */
static json_t *elicit_unsealed(const struct mcp *x, const char *text)
{
	auto_buf struct buf doc = { 0 }, said = { 0 };
	const char *dot = strchr(text, '.');
	uint8_t sum[SEAL];

	if (!dot || strlen(text) > STATE_BYTES ||
	    base64_decode(&doc, text, (size_t)(dot - text)) < 0 ||
	    base64_decode(&said, dot + 1, strlen(dot + 1)) < 0 || said.len != SEAL ||
	    elicit_seal(x, buf_str(&doc), doc.len, sum) < 0 ||
	    CRYPTO_memcmp(said.p, sum, SEAL) != 0)
		return NULL;
	return json_loadb(doc.p, doc.len, 0, NULL);
}

/* Checks that it belongs to this call and has not expired. Takes the document, returns the state in
 * it. */
static json_t *elicit_fitting(const struct mcp_call *m, json_t *take_doc)
{
	json_t *state = json_incref(json_object_get(take_doc, "state"));
	json_int_t until = json_integer_value(json_object_get(take_doc, "until"));
	json_t *want = elicit_bound(m, json_incref(state), (uint64_t)until);
	int fits = json_equal(want, take_doc) && (uint64_t)until > now_ns() / 1000000;

	json_decref(want);
	json_decref(take_doc);
	if (fits)
		return state;
	json_decref(state);
	return NULL;
}

int mcp_state(struct mcp_call *m, json_t **out)
{
	const json_t *text = json_object_get(m->params, "requestState");
	json_t *doc;

	*out = NULL;
	if (!m->modern || !text) {
		*out = json_incref(m->state);
		return 0;
	}
	doc = json_is_string(text) ? elicit_unsealed(m->mcp, json_string_value(text)) : NULL;
	*out = doc ? elicit_fitting(m, doc) : NULL;
	if (*out)
		return 0;
	mcp_error(m, 200, RPC_PARAMS, NULL,
		  "requestState: is not of this call, or too old: call again without it");
	return -1;
}

/* ---- asking ---- */

/* The session protocol: a request to the client on the stream of the call. */
static void ask_on_stream(struct mcp_call *m, json_t *requests)
{
	const char *key;
	json_t *one;

	mcp_stream(m);
	if (!m->streaming) {
		mcp_error(m, 200, RPC_REQUEST, NULL,
			  "something has to be asked: accept text/event-stream");
		return;
	}
	if (!m->waiting)
		m->waiting = json_object();
	m->asked_ms = loop_now_ms();
	json_object_foreach(requests, key, one)
	{
		char id[48];

		snprintf(id, sizeof(id), "ask-%016llx-%llu", (unsigned long long)m->mcp->nonce,
			 (unsigned long long)++m->mcp->asked);
		json_object_set_new(m->waiting, id, json_string(key));
		mcp_send(m, json_pack("{s:s, s:s, s:O, s:O}", "jsonrpc", "2.0", "id", id, "method",
				      json_object_get(one, "method"), "params",
				      json_object_get(one, "params")));
	}
	timer_set(&m->tick, MCP_ASK_TICK_MS);
}

void mcp_need(struct mcp_call *m, json_t *take_requests, json_t *take_state)
{
	if (m->modern) {
		json_t *result = json_pack("{s:O}", "inputRequests", take_requests);

		if (take_state)
			json_object_set_new(result, "requestState", elicit_sealed(m, take_state));
		mcp_input_required(m, result);
	} else {
		json_decref(m->state);
		m->state = take_state;
		ask_on_stream(m, take_requests);
	}
	json_decref(take_requests);
}

/* ---- being answered, in the old era ---- */

static struct mcp_call *waits_for(struct mcp_call *m, const char *id)
{
	for (struct mcp_call *x = m->mcp->calls; x; x = x->next)
		if (x != m && !x->gone && m->session_id[0] && json_object_get(x->waiting, id) &&
		    !strcmp(x->session_id, m->session_id))
			return x;
	return NULL;
}

void mcp_answered(struct mcp_call *m)
{
	const char *id = json_string_value(m->id);
	struct mcp_call *x = id ? waits_for(m, id) : NULL;
	json_t *result = json_object_get(m->message, "result");

	if (!x)
		return; /* too late, or without a question */
	if (!x->answers)
		x->answers = json_object();
	if (json_is_object(result))
		json_object_set(x->answers, json_string_value(json_object_get(x->waiting, id)),
				result);
	else
		json_object_set_new(x->answers, json_string_value(json_object_get(x->waiting, id)),
				    json_pack("{s:s}", "action", "cancel"));
	json_object_del(x->waiting, id);
	if (!json_object_size(x->waiting))
		mcp_method(x); /* with what it lacked */
}

int mcp_waits(const struct mcp_call *m)
{
	return json_object_size(m->waiting) > 0;
}

int mcp_waits_too_long(const struct mcp_call *m)
{
	return mcp_waits(m) && loop_now_ms() - m->asked_ms > STATE_MS;
}

/* ---- may it? ---- */

static int elicit_listed(const char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (!strcmp(*list, name))
			return 1;
	return 0;
}

static void not_allowed(struct mcp_call *m, const char *why)
{
	mcp_result(m, json_pack("{s:[{s:s, s:s}], s:{s:s}, s:b}", "content", "type", "text", "text",
				why, "structuredContent", "code", "not_approved", "isError", 1));
}

static void ask_person(struct mcp_call *m, const struct tool *t)
{
	auto_free char *args =
		json_dumps(json_object_get(m->params, "arguments"), JSON_COMPACT | JSON_ENCODE_ANY);
	auto_buf struct buf text = { 0 };

	buf_printf(&text, "Allow %s (%s) with %.*s%s?", t->name, t->title, 1000, args ? args : "{}",
		   args && strlen(args) > 1000 ? "..." : "");
	mcp_need(m,
		 json_pack("{s:{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s, s:s}}, s:[s]}}}}", "approve",
			   "method", "elicitation/create", "params", "mode", "form", "message",
			   buf_str(&text), "requestedSchema", "type", "object", "properties",
			   "allow", "type", "boolean", "title", "Allow it", "required", "allow"),
		 json_pack("{s:s}", "tool", t->name));
}

int mcp_may(struct mcp_call *m, const struct tool *t)
{
	const json_t *answer = mcp_answer(m, "approve");
	const char *action = json_string_value(json_object_get(answer, "action"));
	json_t *state;
	int asked;

	if (!elicit_listed(m->call->api->conf.approve, t->name))
		return 1;
	if (mcp_state(m, &state) < 0)
		return 0;
	asked = state != NULL; /* the seal covers this tool and its arguments */
	json_decref(state);
	if (!answer || !asked) {
		if (mcp_can(m, "elicitation/create"))
			ask_person(m, t);
		else
			not_allowed(
				m,
				"this tool needs the approval of a person, and your client cannot ask one "
				"(it did not declare `elicitation`)");
		return 0;
	}
	if (action && !strcmp(action, "accept") &&
	    json_is_true(json_object_get(json_object_get(answer, "content"), "allow")))
		return 1;
	not_allowed(m, "the user did not allow it");
	return 0;
}
