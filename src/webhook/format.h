/* format.h - what a subscription may contain, which events it receives, when an attempt is repeated.
 * Owns: the limits of webhooks. All functions are pure. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "store/events.h"
#include "store/webhooks.h"
#include <jansson.h>

enum {
	WEBHOOKS_TEAM = 32,   /* of a team */
	WEBHOOK_EVENTS = 64,  /* patterns of a webhook */
	WEBHOOK_SECRET = 256, /* bytes */
	WEBHOOK_SECRET_MIN = 8,
	WEBHOOK_QUEUE =
		10000, /* waiting deliveries of a webhook; then events wait in the log of events */
	WEBHOOK_FAILED = 10000, /* failed deliveries of a webhook that are kept */
	WEBHOOK_TIMEOUT_MS = 10000,
};
#define WEBHOOK_FIRST_NS (INT64_C(5) * 1000000000)         /* wait after the first attempt */
#define WEBHOOK_LONGEST_NS (INT64_C(15) * 60 * 1000000000) /* between two attempts */
#define WEBHOOK_TRIED_NS (INT64_C(86400) * 1000000000)     /* then it has failed */

/* "box.created", "box.*", "*": letters, digits, '.', '_', '-' and '*'. */
must_check int webhook_check_pattern(const char *pattern, struct err *e);
int webhook_pattern_matches(const char *pattern, const char *type);
/* events: a JSON array of patterns. */
int webhook_wants(const json_t *events, const char *type);
must_check int webhook_check_url(const char *url, struct err *e);
must_check int webhook_check_secret(const char *secret, struct err *e);
/* Appends it as JSON, as in GET /v1/events, and the team. */
void webhook_event_text(struct buf *out, const struct store_event *ev);
/* When a delivery is tried again after its `attempts` have failed; 0: never. */
int64_t webhook_next_attempt(int64_t queued_ns, unsigned attempts, int64_t now_ns);
