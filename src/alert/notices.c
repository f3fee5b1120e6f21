/* notices.c - delivers notices of alerts: by webhook, mail and command; see alerts.h. One at a time
 * for each channel, repeated for a day. */
#include "alert/internal.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "record/record.h"
#include "webhook/format.h"
#include "webhook/sign.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define UNSTORED INT64_C(-1) /* id of a notice without a row */
enum { LOOK_MS = 5000, COMMAND_MS = 60000, COMMAND_ASK_MS = 500 };

const char *const alert_channel_names[ALERT_CHANNELS] = { "webhook", "mail", "command" };

static int notices_has(const struct alerts *x, enum alert_channel c)
{
	switch (c) {
	case ALERT_WEBHOOK:
		return x->conf.webhook != NULL;
	case ALERT_MAIL:
		return x->conf.mail_server && x->conf.mail_from && x->conf.mail_to &&
		       x->conf.mail_to[0];
	default:
		return x->conf.command != NULL;
	}
}

json_t *alerts_channels(const struct alerts *x)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < ALERT_CHANNELS; i++)
		if (notices_has(x, i))
			json_array_append_new(list, json_string(alert_channel_names[i]));
	return list;
}

/* ---- queue ---- */

static json_t *notices_time(int64_t ns)
{
	return ns ? json_time((uint64_t)ns) : json_null();
}

static int notices_add(struct alerts *x, const json_t *doc, int64_t alert, struct err *e)
{
	struct store_notice n = { .alert = alert, .queued_ns = fleet_now_ns() };
	int rc = 0;

	n.next_ns = n.queued_ns;
	n.body = json_dumps(doc, JSON_COMPACT);
	for (unsigned i = 0; i < ALERT_CHANNELS && rc == 0; i++)
		if (notices_has(x, i)) {
			snprintf(n.channel, sizeof(n.channel), "%s", alert_channel_names[i]);
			rc = store_notice_add(x->fleet->store, &n, e);
		}
	free(n.body);
	return rc;
}

static json_t *notices_json(const struct store_alert *a)
{
	return json_pack("{s:I, s:s, s:s, s:s, s:f, s:f, s:o, s:o, s:o}", "alert",
			 (json_int_t)a->id, "rule", a->rule, "state", a->state, "summary",
			 a->summary, "value", a->value, "threshold", a->threshold, "pending",
			 notices_time(a->pending_ns), "fired", notices_time(a->fired_ns),
			 "resolved", notices_time(a->resolved_ns));
}

int notices_queue(struct alerts *x, const struct store_alert *a, struct err *e)
{
	json_t *doc = notices_json(a);
	int rc = notices_add(x, doc, a->id, e);

	json_decref(doc);
	return rc;
}

int alerts_test(struct alerts *x, struct err *e)
{
	json_t *doc = json_pack("{s:I, s:s, s:s, s:s, s:f, s:f, s:n, s:o, s:n}", "alert",
				(json_int_t)0, "rule", "test", "state", "test", "summary",
				"a test of the notices of alerts", "value", 0.0, "threshold", 0.0,
				"pending", "fired", notices_time(fleet_now_ns()), "resolved");
	int rc = notices_add(x, doc, 0, e);

	json_decref(doc);
	notices_send(x);
	return rc;
}

/* ---- one delivery ---- */

static void notices_release(struct alerts_delivery *d)
{
	watch_stop(&d->watch);
	own_close_fd(&d->fd);
	timer_clear(&d->limit);
	free(d->notice.body);
	d->notice = (struct store_notice){ 0 };
}

static void notices_over(struct alerts_delivery *d, const char *error)
{
	struct alerts *x = d->all;
	struct store_notice *n = &d->notice;
	int64_t now_ns = fleet_now_ns();
	struct err e;
	int rc;

	n->next_ns = error ? webhook_next_attempt(n->queued_ns, ++n->attempts, now_ns) : 0;
	if (error)
		log_warn("a notice of an alert was not delivered", LOG_S("channel", n->channel),
			 LOG_S("why", error), LOG_U("attempts", n->attempts));
	if (n->id == UNSTORED) {
		rc = 0; /* the alert is tried again, and sends a notice that is repeated */
	} else if (n->next_ns) {
		snprintf(n->error, sizeof(n->error), "%s", error);
		rc = store_notice_retry(x->fleet->store, n, &e);
	} else {
		rc = store_notice_remove(x->fleet->store, n->id, &e);
	}
	if (rc < 0)
		log_warn("notice", LOG_E(&e));
	notices_release(d);
	if (x->running)
		timer_set(&x->send, error ? LOOK_MS : 0);
}

static void notices_done(struct outbound_request *r, const struct outbound_answer *a,
			 const struct err *e)
{
	struct alerts_delivery *d = loop_owner(r, struct alerts_delivery, request);
	char why[STORE_ERROR + 1] = "";

	if (e)
		snprintf(why, sizeof(why), "%s", e->msg);
	else if (a->status < 200 || a->status >= 300)
		snprintf(why, sizeof(why), "the receiver answered %d", a->status);
	notices_over(d, why[0] ? why : NULL);
}

static int notices_webhook(struct alerts_delivery *d, struct err *e)
{
	const struct alerts_conf *c = &d->all->conf;
	char signature[WEBHOOK_SIGNATURE], line[WEBHOOK_SIGNATURE + 40];
	struct outbound_message m = { .url = c->webhook,
				      .headers = { "Content-Type: application/json" },
				      .body = d->notice.body,
				      .body_len = strlen(d->notice.body),
				      .allow_private = 1 };

	if (c->webhook_secret) {
		webhook_sign(signature, c->webhook_secret, fleet_now_ns() / 1000000000,
			     d->notice.body);
		snprintf(line, sizeof(line), "Atoll-Signature: %s", signature);
		m.headers[1] = line;
	}
	return outbound_send(d->all->outbound, &d->request, &m, e);
}

/* The fields of the notice as lines. Texts of rules have no control characters. */
static void notices_mail_text(const struct alerts_conf *c, const char *body, struct buf *out)
{
	static const char *const fields[] = { "rule",    "state", "value",   "threshold",
					      "pending", "fired", "resolved" };
	json_t *doc = json_loads(body, 0, NULL);
	time_t now = (time_t)(fleet_now_ns() / 1000000000);
	struct tm tm;
	char date[64];

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S +0000", gmtime_r(&now, &tm));
	buf_printf(out, "From: <%s>\r\nTo: ", c->mail_from);
	for (unsigned i = 0; c->mail_to[i] && i < OUTBOUND_RECIPIENTS; i++)
		buf_printf(out, "%s<%s>", i ? ", " : "", c->mail_to[i]);
	buf_printf(out, "\r\nDate: %s\r\nSubject: [atoll] %s: %s\r\n", date,
		   json_string_value(json_object_get(doc, "state")),
		   json_string_value(json_object_get(doc, "rule")));
	buf_puts(out, "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n");
	buf_printf(out, "%s\r\n\r\n", json_string_value(json_object_get(doc, "summary")));
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++) {
		const json_t *v = json_object_get(doc, fields[i]);

		if (json_is_string(v))
			buf_printf(out, "%s: %s\r\n", fields[i], json_string_value(v));
		else if (json_is_number(v))
			buf_printf(out, "%s: %g\r\n", fields[i], json_number_value(v));
	}
	json_decref(doc);
}

static int notices_mail(struct alerts_delivery *d, struct err *e)
{
	const struct alerts_conf *c = &d->all->conf;
	auto_buf struct buf text = { 0 };
	struct outbound_message m = { .url = c->mail_server,
				      .from = c->mail_from,
				      .user = c->mail_user,
				      .password = c->mail_password,
				      .timeout_ms = 30000,
				      .allow_private = 1 };

	for (unsigned i = 0; c->mail_to[i] && i < OUTBOUND_RECIPIENTS; i++)
		m.to[i] = c->mail_to[i];
	notices_mail_text(c, d->notice.body, &text);
	m.body = buf_str(&text);
	m.body_len = text.len;
	return outbound_send(d->all->outbound, &d->request, &m, e);
}

/* ---- the command ---- */

/* The supervisor starts no second process while it has one, also if that one is just ending: the
 * request is repeated until there is a connection. */
static void notices_command_late(struct timer *t)
{
	struct alerts_delivery *d = loop_owner(t, struct alerts_delivery, limit);
	struct alerts *x = d->all;

	if (d->fd >= 0 || loop_now_ms() >= d->until_ms) {
		notices_over(d, "the command did not end in time");
		return;
	}
	x->conf.need_command(x->conf.ctx);
	timer_set(t, COMMAND_ASK_MS);
}

static void notices_command_said(struct watch *w, unsigned what)
{
	struct alerts_delivery *d = loop_owner(w, struct alerts_delivery, watch);
	char said[STORE_ERROR + 1];
	ssize_t n = recv(d->fd, said, sizeof(said) - 1, MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	said[n > 0 ? n : 0] = 0;
	if (n <= 0)
		notices_over(d, "the process of the command ended");
	else
		notices_over(d, strcmp(said, "ok") == 0 ? NULL : said);
}

void alerts_command_connect(struct alerts *x, int take_fd)
{
	struct alerts_delivery *d = &x->deliveries[ALERT_COMMAND];
	auto_fd int fd = take_fd;
	size_t n = d->notice.body ? strlen(d->notice.body) : 0;

	if (!d->notice.id || d->fd >= 0)
		return;
	if (send(fd, d->notice.body, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n) {
		notices_over(d, "the process of the command did not read the notice");
		return;
	}
	d->fd = steal_fd(&fd);
	timer_set(&d->limit, COMMAND_MS);
	watch_init(&d->watch, x->fleet->loop, d->fd, notices_command_said);
	watch_want(&d->watch, LOOP_READ);
}

static void notices_command(struct alerts_delivery *d)
{
	struct alerts *x = d->all;

	d->until_ms = loop_now_ms() + COMMAND_MS;
	timer_set(&d->limit, COMMAND_ASK_MS);
	x->conf.need_command(x->conf.ctx);
}

/* ---- all ---- */

/* Takes the body of n. */
static void notices_try(struct alerts *x, enum alert_channel c, struct store_notice *n)
{
	struct alerts_delivery *d = &x->deliveries[c];
	struct err e;
	int rc = 0;

	d->notice = *n;
	n->body = NULL;
	d->request = (struct outbound_request){ .done = notices_done };
	if (!notices_has(x, c))
		rc = err_set(&e, ERR_NOT_FOUND, "the settings have no such channel");
	else if (c == ALERT_WEBHOOK)
		rc = notices_webhook(d, &e);
	else if (c == ALERT_MAIL)
		rc = notices_mail(d, &e);
	else
		notices_command(d);
	if (rc < 0)
		notices_over(d, e.msg);
}

void notices_send(struct alerts *x)
{
	struct store_notices rows = { 0 };
	int64_t now_ns = fleet_now_ns();
	struct err e;

	if (!x->running || store_notice_list(x->fleet->store, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++)
		for (unsigned c = 0; c < ALERT_CHANNELS; c++)
			if (strcmp(rows.v[i].channel, alert_channel_names[c]) == 0 &&
			    !x->deliveries[c].notice.id &&
			    (rows.v[i].next_ns <= now_ns ||
			     rows.v[i].next_ns > now_ns + WEBHOOK_LONGEST_NS))
				notices_try(x, c, &rows.v[i]);
	if (rows.n)
		timer_set(&x->send, LOOK_MS);
	store_notices_fini(&rows);
}

void notices_send_unstored(struct alerts *x, const struct store_alert *a)
{
	json_t *doc = notices_json(a);

	for (unsigned c = 0; c < ALERT_CHANNELS; c++) {
		struct store_notice n = { .id = UNSTORED, .queued_ns = fleet_now_ns() };

		if (!notices_has(x, c) || x->deliveries[c].notice.id)
			continue;
		snprintf(n.channel, sizeof(n.channel), "%s", alert_channel_names[c]);
		n.body = json_dumps(doc, JSON_COMPACT);
		notices_try(x, c, &n);
	}
	json_decref(doc);
}

static void notices_due(struct timer *t)
{
	notices_send(loop_owner(t, struct alerts, send));
}

void notices_init(struct alerts *x)
{
	timer_init_late(&x->send, x->fleet->loop, notices_due);
	for (unsigned i = 0; i < ALERT_CHANNELS; i++) {
		x->deliveries[i] = (struct alerts_delivery){ .all = x, .fd = -1 };
		timer_init(&x->deliveries[i].limit, x->fleet->loop, notices_command_late);
	}
}

void notices_stop(struct alerts *x)
{
	timer_clear(&x->send);
	for (unsigned i = 0; i < ALERT_CHANNELS; i++) {
		outbound_cancel(&x->deliveries[i].request);
		notices_release(&x->deliveries[i]);
	}
}
