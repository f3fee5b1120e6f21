/* runner.h - webhooks of a server: the dispatcher with its timers, its time and its connections.
 * Owns: the dispatcher (dispatch.h) and the subscription to events. */
#pragma once
#include "fleet/fleet.h"
#include "outbound/outbound.h"
#include "webhook/dispatch.h"

struct webhook_runner;
struct webhook_runner *webhook_runner_new(struct fleet *f, struct outbound *o);
void webhook_runner_free(struct webhook_runner *r); /* allowed on NULL */
/* The format of E2B, set before webhook_runner_start(). */
void webhook_runner_set_e2b(struct webhook_runner *r,
			    json_t *(*event)(void *ctx, const struct store_event *ev), void *ctx);
void webhook_runner_start(struct webhook_runner *r); /* the server serves */
void webhook_runner_stop(struct webhook_runner *r);  /* another server delivers from now on */
void webhook_runner_changed(
	struct webhook_runner *r); /* a subscription or a delivery was changed */
/* Stores what waits in memory for this webhook, before it is disabled. */
must_check int webhook_runner_settle(struct webhook_runner *r, const char *webhook, struct err *e);
