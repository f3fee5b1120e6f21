/* transfer.h - messages in progress in the outbound process, with libcurl on the loop.
 * Owns: connections, transfers.
 *
 *   check ─► resolve ─► judge every address ─► connect (judged again) ─► send ─► answer
 *
 * No redirect is followed. An answer is read up to OUTBOUND_ANSWER bytes, then the connection is closed. */
#pragma once
#include "base/err.h"
#include "egress/resolver.h"
#include "loop/loop.h"
#include "outbound/curl.h"
#include "outbound/curl_loop.h"
#include "outbound/message.h"

enum { TRANSFERS = 512, TRANSFER_SPARES = 16 };

struct transfers {
	struct loop *loop;
	struct outbound_rules rules;
	const char *authorities; /* PEM */
	size_t authorities_len;
	struct resolver names;
	struct curl_loop multi;
	unsigned under_way;
	CURL *spares[TRANSFER_SPARES]; /* handles of finished requests, without options */
	unsigned nspares;
};

struct transfer_owner {
	/* Called once, never from within transfer_start(). answer has status, body, cut, took_ms; or error and kind. */
	void (*done)(struct transfer_owner *o, json_t *take_answer);
};

struct transfer;

/* Reads resolv.conf and hosts, and loads libcurl: call it before the process confines itself. dns: as in
 * resolver_init(). */
must_check int transfers_init(struct transfers *x, struct loop *l,
			      const struct outbound_rules *rules, const char *authorities,
			      const char *const *dns, struct err *e);
struct transfer *transfer_start(struct transfers *x, json_t *take_message,
				struct transfer_owner *o);
void transfer_cancel(struct transfer *t); /* done is not called */
