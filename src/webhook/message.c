/* message.c - the request of one attempt; see dispatch.h. */
#include "base/buf.h"
#include "base/id.h"
#include "webhook/dispatch.h"
#include "webhook/sign.h"

#include <stdio.h>
#include <string.h>

enum { LINES = 7, LINE = 200 };

/* Header lines are in one buffer, LINE bytes each. */
static char *message_line(struct dispatch_message *out, unsigned *n)
{
	char *line = out->lines.p + (size_t)*n * LINE;

	out->m.headers[(*n)++] = line;
	return line;
}

/* The machines of a cluster number their events on their own. */
static void message_id(const char *webhook, int64_t seq, char out[80])
{
	if (id_own_node() < ID_NODES)
		snprintf(out, 80, "%s.%u.%lld", webhook, id_own_node(), (long long)seq);
	else
		snprintf(out, 80, "%s.%lld", webhook, (long long)seq);
}

void dispatch_message_make(struct dispatch_message *out, const char *secret,
			   const struct store_webhook *w, const struct store_delivery *d,
			   int64_t now_ns)
{
	char signature[WEBHOOK_SIGNATURE], id[80];
	unsigned n = 0;

	*out = (struct dispatch_message){ .m = { .url = w->url,
						 .method = "POST",
						 .body = d->body,
						 .body_len = strlen(d->body),
						 .timeout_ms = WEBHOOK_TIMEOUT_MS } };
	message_id(w->id, d->seq, id);
	buf_space(&out->lines, (size_t)LINES * LINE);
	snprintf(message_line(out, &n), LINE, "Content-Type: application/json");
	snprintf(message_line(out, &n), LINE, "Atoll-Delivery: %s", id);
	webhook_sign(signature, secret, now_ns / 1000000000, d->body);
	snprintf(message_line(out, &n), LINE, "Atoll-Signature: %s", signature);
	if (strcmp(w->format, "e2b") != 0)
		return;
	snprintf(message_line(out, &n), LINE, "e2b-webhook-id: %s", w->id);
	snprintf(message_line(out, &n), LINE, "e2b-delivery-id: %s.%u", id, d->attempts + 1);
	snprintf(message_line(out, &n), LINE, "e2b-signature-version: v1");
	webhook_sign_e2b(signature, secret, d->body);
	snprintf(message_line(out, &n), LINE, "e2b-signature: %s", signature);
}

void dispatch_message_fini(struct dispatch_message *m)
{
	buf_fini(&m->lines);
}
