/* completion.h - questions to models, many at once, over libcurl on our loop.
 * Owns:         connections, the questions under way, what is known of each provider's health.
 * Does not own: the book (borrowed), nor who asks.
 *
 *   resolve ─► connect ─► stream ─► answer
 *      ▲                    │ broken, busy, silent: wait, once or twice more, from the beginning
 *      └────────────────────┘
 * Slow is fine, silent is not. Every try that got words out of a model is paid, and so it is counted. */
#pragma once
#include "egress/resolver.h"
#include "loop/loop.h"
#include "llm/models_config.h"
#include "llm/breaker.h"
#include "llm/failure.h"
#include "llm/curl_loop.h"
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
	/* Pieces; never completion_cancel() from within. NULL: not wanted. */
	void (*said)(struct completion_owner *o, json_t *take_event);
	/* Once, never from within completion_start(). A failure has answer.error, too. */
	void (*done)(struct completion_owner *o, json_t *take_answer, const struct err *e);
};

/* Reads resolv.conf, hosts and certificates: before the walls. */
must_check int asker_init(struct asker *x, struct loop *l, const struct models_config *b,
			  struct err *e);
/* NULL: it is no question, nobody can be asked, or too many ask. */
struct completion *completion_start(struct asker *x, json_t *take_request,
				    struct completion_owner *o, struct err *e);
/* done is not called; the answer so far, with what was paid. */
json_t *completion_cancel(struct completion *a);
