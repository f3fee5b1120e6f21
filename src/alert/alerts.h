/* alerts.h - evaluates the rules, stores alerts, and notifies the operator.
 * Owns: the rules in force, the state of each, the notices in progress.
 * Does not own: the figures (metrics/), the rows (store/alerts.h), connections (outbound/). */
#pragma once
#include "alert/rule.h"
#include "fleet/fleet.h"
#include "metrics/metrics.h"
#include "outbound/outbound.h"

struct alerts_conf { /* borrowed; of the settings */
	uint32_t interval_ms;
	const char *webhook, *webhook_secret; /* NULL: none */
	const char *mail_server, *mail_from, *mail_user, *mail_password;
	const char *const *mail_to; /* NULL-terminated */
	const char *command;        /* NULL: none */
	/* Requests a process that runs the command; alerts_command_connect() follows. */
	void (*need_command)(void *ctx);
	void *ctx;
};

struct alerts;
struct alerts *alerts_new(struct fleet *f, struct metrics *m, struct outbound *o,
			  const struct alerts_conf *conf);
void alerts_free(struct alerts *x); /* allowed on NULL */
void alerts_start(struct alerts *x);
void alerts_stop(struct alerts *x); /* another server evaluates from now on */
/* take_fd: a socket to a process that reads one packet, runs the command with it, and answers with its
 * status as text. */
void alerts_command_connect(struct alerts *x, int take_fd);

/* Channels that the settings have: "webhook", "mail", "command". */
json_t *alerts_channels(const struct alerts *x);
/* Queues a notice that is only a test, for each channel. */
must_check int alerts_test(struct alerts *x, struct err *e);

unsigned alerts_rules(const struct alerts *x, const struct alert_rule **out);
const struct alert_rule *alerts_find(const struct alerts *x, const char *name);
/* The value of the rule at the last evaluation; 0: there is none. */
int alerts_value(const struct alerts *x, const struct alert_rule *r, double *out);
/* Changes a rule, or adds one. */
must_check int alerts_set_rule(struct alerts *x, const char *name, const json_t *doc,
			       struct err *e);
/* A shipped rule is as before; another one is deleted. ERR_NOT_FOUND: it was not changed. */
must_check int alerts_reset_rule(struct alerts *x, const char *name, struct err *e);
