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

enum { ASK_AT_ONCE = 64, ASK_RAW_MOST = 64 << 20 };

struct asker {
	struct loop *loop;
	const struct book *book;
	struct names names;
	struct multi multi;
	char *ca; /* the system's authorities, PEM */
	size_t ca_len;
	struct breaker breakers[BOOK_PROVIDERS];
	unsigned under_way;
	uint64_t seed;
};

struct ask;
struct ask_owner {
	/* Pieces; never ask_cancel() from within. NULL: not wanted. */
	void (*said)(struct ask_owner *o, json_t *take_event);
	/* Once, never from within ask_start(). A failure has answer.error, too. */
	void (*done)(struct ask_owner *o, json_t *take_answer, const struct err *e);
};

/* Reads resolv.conf, hosts and certificates: before the walls. */
must_check int asker_init(struct asker *x, struct loop *l, const struct book *b, struct err *e);
void asker_fini(struct asker *x); /* nobody asks any more */
/* NULL: it is no question, nobody can be asked, or too many ask. */
struct ask *ask_start(struct asker *x, json_t *take_request, struct ask_owner *o, struct err *e);
/* done is not called; the answer so far, with what was paid. */
json_t *ask_cancel(struct ask *a);
