/* internal.h - what alerts.c and notices.c share. */
#pragma once
#include "alert/alerts.h"
#include "alert/state.h"
#include "store/alerts.h"

struct alerts_rule {
	struct alert_rule rule;
	struct alert_state state;
	struct alert_sample last;
	struct store_alert row; /* of the pending or firing alert; id 0: none */
	int64_t warned_ns;      /* when a notice was sent without a row; 0: never */
};

enum alert_channel { ALERT_WEBHOOK, ALERT_MAIL, ALERT_COMMAND, ALERT_CHANNELS };
extern const char *const alert_channel_names[ALERT_CHANNELS];

struct alerts_delivery { /* one at a time for each channel */
	struct outbound_request request;
	struct alerts *all;
	struct store_notice notice; /* id 0: none */
	struct watch watch;         /* of the command */
	struct timer limit;
	uint64_t until_ms; /* a process for the command is requested until then */
	int fd;            /* -1: none */
};

struct alerts {
	struct fleet *fleet;
	struct metrics *metrics;
	struct outbound *outbound;
	struct alerts_conf conf;
	struct alerts_rule *v;
	unsigned n;
	struct timer tick, send;
	int running;
	struct alerts_delivery deliveries[ALERT_CHANNELS];
};

void notices_init(struct alerts *x);
void notices_stop(struct alerts *x);
/* Adds a notice for each channel; part of the open transaction. */
must_check int notices_queue(struct alerts *x, const struct store_alert *a, struct err *e);
void notices_send(struct alerts *x); /* those that are due */
/* One attempt for each channel that is free. */
void notices_send_unstored(struct alerts *x, const struct store_alert *a);
