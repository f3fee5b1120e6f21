/* quota_share.h - a limit of a team that holds for all gateways together, without a question to the database per request.
 * Owns: struct quota_share, the part of the limit that one gateway may use. No I/O: the owner sends what
 * quota_share_next() returns, and reports the answer.
 *
 *   database: the shares of all gateways, whose sum never exceeds the limit (quota_share_grant())
 *   gateway:  what it may use is at most what the database has stored for it
 *
 * A request to the database says how much this gateway wants to have in all, not how much more. So a request
 * whose answer was lost can be repeated, and what the database has stored is never less than what the gateway uses:
 * a larger share counts after the answer, a smaller one before the request. */
#pragma once
#include <stdint.h>

enum {
	QUOTA_SHARE_IDLE_MS = 5000, /* a share that was not used for this long is returned */
	QUOTA_SHARE_RETRY_MS = 250, /* after an answer that did not come */
	QUOTA_SHARE_EMPTY_MS =
		1000, /* after an answer without more: other gateways have the rest */
};

struct quota_share {
	uint64_t held;    /* of the limit; the database has stored at least this for this gateway */
	uint64_t used;    /* of it */
	uint64_t wanted;  /* of the request in progress */
	int is_asking;    /* a request is in progress, or its outcome is not known */
	int is_unknown;   /* the last request had no answer */
	int is_short;     /* a caller was refused since the last answer */
	uint64_t last_ms; /* last use */
	uint64_t next_ms; /* no request before */
};

/* 1: n more are used. 0: the share is too small; quota_share_next() asks for more. */
int quota_share_take(struct quota_share *s, uint64_t n, uint64_t now_ms);
/* For what is used for a time, like boxes. */
void quota_share_release(struct quota_share *s, uint64_t n, uint64_t now_ms);
/* 1: send a request for *out_want in all. */
int quota_share_next(struct quota_share *s, uint64_t now_ms, uint64_t *out_want);
/* The database has stored `amount` for this gateway. */
void quota_share_granted(struct quota_share *s, uint64_t amount, uint64_t now_ms);
/* The outcome is not known: the share is what it was, and the request is repeated. */
void quota_share_unknown(struct quota_share *s, uint64_t now_ms);

/* What the database stores for a gateway that has `own` and wants `want`, while all other gateways have `others`: less at
 * once; more, but at most half of what is left, so that other gateways find some. */
uint64_t quota_share_grant(uint64_t limit, uint64_t others, uint64_t own, uint64_t want);
