/* completion.h - requests to models, many at once, with libcurl on the loop.
 * Owns: connections, the requests in progress, the breaker of each provider.
 * Does not own: the models configuration (borrowed), the callers.
 *
 *   resolve ─► connect ─► stream ─► answer
 *      ▲                    │ broken, busy, silent: wait, once or twice more, from the beginning
 *      └────────────────────┘
 * A slow stream is fine, a silent one is ended. Every try that got output of a model is paid, so it
 * is counted. */
#pragma once
#include "egress/resolver.h"
#include "loop/loop.h"
#include "llm/models_config.h"
#include "llm/breaker.h"
#include "llm/failure.h"
#include "outbound/curl_loop.h"
#include "llm/reply.h"

enum { COMPLETIONS_AT_ONCE = 64, COMPLETION_RAW_MOST = 64 << 20 };

struct asker {
	struct loop *loop;
	const struct models_config *book;
	struct resolver names;
	struct curl_loop multi;
	char *ca; /* the system's authorities, PEM */
	size_t ca_len;
	struct breaker breakers[MODELS_CONFIG_PROVIDERS];
	unsigned under_way;
	uint64_t seed;
};

struct completion;
struct completion_owner {
	/* Parts of the answer; must not call completion_cancel(). NULL: not needed. */
	void (*said)(struct completion_owner *o, json_t *take_event);
	/* Once, never from within completion_start(). A failure has answer.error, too. */
	void (*done)(struct completion_owner *o, json_t *take_answer, const struct err *e);
};

/* Reads resolv.conf, hosts and certificates: call it before the process confines itself. */
must_check int asker_init(struct asker *x, struct loop *l, const struct models_config *b,
			  struct err *e);
/* NULL: an invalid request, no model available, or too many requests. */
struct completion *completion_start(struct asker *x, json_t *take_request,
				    struct completion_owner *o, struct err *e);
/* done is not called; returns the answer so far, with its cost. */
json_t *completion_cancel(struct completion *a);
