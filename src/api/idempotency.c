/* idempotency.c - see idempotency.h. */
#include "api/idempotency.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "store/idempotency.h"

#include <stdio.h>
#include <string.h>

struct idem {
	struct idem *next, **at;
	struct api *api;
	char team[STORE_NAME + 1], key[IDEM_KEY + 1];
};

static void hash_request(const struct call *c, uint8_t out[SHA256_BYTES])
{
	auto_free char *body = json_dumps(c->body, JSON_COMPACT | JSON_SORT_KEYS);
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, c->req->method, strlen(c->req->method) + 1);
	sha256_add(&s, c->req->path, strlen(c->req->path) + 1);
	sha256_add(&s, body, body ? strlen(body) : 0);
	sha256_end(&s, out);
}

static int under_way(const struct api *a, const char *team, const char *key)
{
	const struct idem *i = a->idems;

	while (i && (strcmp(i->key, key) != 0 || strcmp(i->team, team) != 0))
		i = i->next;
	return i != NULL;
}

static struct idem *idem_new(struct api *a, const char *team, const char *key)
{
	struct idem *i = calloc(1, sizeof(*i));

	if (!i)
		abort();
	i->api = a;
	snprintf(i->team, sizeof(i->team), "%s", team);
	snprintf(i->key, sizeof(i->key), "%s", key);
	i->next = a->idems;
	i->at = &a->idems;
	if (i->next)
		i->next->at = &i->next;
	a->idems = i;
	return i;
}

void idempotency_leave(struct idem *i)
{
	if (!i)
		return;
	*i->at = i->next;
	if (i->next)
		i->next->at = i->at;
	free(i);
}

static void say_busy(struct call *c, const struct store_idem *was)
{
	http_set(c->req, "Retry-After", "1");
	call_error(c, 409, "conflict", "the first request with this key is still being served",
		   was->subject, "repeat the request in a second");
}

static void idem_replay(struct call *c, const struct store_idem *was)
{
	c->audited = 1; /* nothing is done a second time */
	http_set(c->req, "Idempotent-Replayed", "true");
	http_reply(c->req, was->status, was->type, was->body, was->len);
}

enum idempotency_result idempotency_begin(struct call *c, struct idem **out, char made[ID_MAX + 1])
{
	const char *key = http_header(c->req, "idempotency-key");
	enum idempotency_result go = IDEM_ANSWERED;
	uint8_t hash[SHA256_BYTES];
	struct store_idem was = { 0 };
	struct err e;

	*out = NULL;
	if (!key)
		return IDEM_GO;
	if (!*key || strlen(key) > IDEM_KEY) {
		call_error(c, 400, "invalid", "Idempotency-Key must have 1 to 255 bytes", NULL,
			   NULL);
		return IDEM_ANSWERED;
	}
	hash_request(c, hash);
	if (store_idem_begin(c->api->store, c->who.team, key, hash, fleet_now_ns(), &was, &e) < 0) {
		call_fail(c, &e);
		return IDEM_ANSWERED;
	}
	memcpy(made, was.subject, sizeof(was.subject));
	if (was.state == IDEM_DONE)
		idem_replay(c, &was);
	/* This is the only server and it does not process the request: the server that started it
	 * has ended. */
	else if (was.state == IDEM_BUSY &&
		 (under_way(c->api, c->who.team, key) || !c->api->fleet.alone))
		say_busy(c, &was);
	else
		go = was.subject[0] ? IDEM_MADE : IDEM_GO;
	store_idem_fini(&was);
	if (go != IDEM_ANSWERED)
		*out = idem_new(c->api, c->who.team, key);
	return go;
}

int idempotency_subject(struct idem *i, const char *id, struct err *e)
{
	return i ? store_idem_subject(i->api->store, i->team, i->key, id, e) : 0;
}

void idempotency_answer(struct idem *i, int status, const json_t *doc)
{
	auto_free char *text = NULL;
	struct err e;

	if (!i)
		return;
	text = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	/* If the disk is full, the next attempt finds the subject, as after a crash. */
	(void)!store_idem_finish(i->api->store, i->team, i->key, status, "application/json", text,
				 strlen(text), &e);
	idempotency_leave(i);
}

void idempotency_drop(struct idem *i)
{
	struct err e;

	if (i)
		(void)!store_idem_forget(i->api->store, i->team, i->key, &e);
	idempotency_leave(i);
}
