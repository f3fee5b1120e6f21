/* fragment_server.c - see fragment_server.h. */
#include "v1run/fragment_server.h"
#include "v1box/ports.h"
#include "v1run/fragment.h"
#include "v1run/fragment_spare.h"
#include "v1run/port_probe.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "record/changes.h"
#include "fleet/exec.h"
#include "fleet/exec_reader.h"
#include "fleet/isolation.h"

#include <stdio.h>
#include <string.h>

enum {
	FRAGMENT_SERVER_MS = 60000, /* time until it must listen, unless timeout_ms is given */
	FRAGMENT_SERVER_TAIL =
		8192, /* bytes of each stream that are returned if the server exits */
};

struct fragment_server {
	struct call *call;
	char box[ID_MAX + 1], exec[ID_MAX + 1];
	uint16_t port;
	struct port_probe probe;
	struct exec_reader reader;
	int tapped;
	struct buf said[2];
	struct timer deadline;
	uint64_t patience_ms;
};

static void fragment_server_stop(struct fragment_server *s)
{
	port_probe_stop(&s->probe);
	if (s->tapped)
		exec_reader_close(&s->reader);
	s->tapped = 0;
	timer_fini(&s->deadline);
}

static void fragment_server_dropped(struct call *c)
{
	struct fragment_server *s = c->state;

	fragment_server_stop(s);
	buf_fini(&s->said[0]);
	buf_fini(&s->said[1]);
}

static json_t *fragment_server_doc(const struct fragment_server *s, const char *url)
{
	return json_pack("{s:s, s:O*, s:s?, s:i, s:s}", "sbxId", s->box, "template",
			 json_object_get(json_object_get(s->call->body, "metadata"), "template"),
			 "url", url, "port", (int)s->port, "exec", s->exec);
}

static json_t *fragment_server_tail(const struct buf *b)
{
	const char *p = buf_str(b);
	json_t *all = json_array();

	p += utf8_begin(p, strlen(p), 0); /* the text was cut within a character */
	if (*p)
		json_array_append_new(all, json_text(p));
	return all;
}

static void fragment_server_fail(struct fragment_server *s, const char *name, const char *why,
				 json_t *take_more)
{
	json_t *doc = fragment_server_doc(s, NULL);

	json_object_set_new(doc, "stdout", fragment_server_tail(&s->said[0]));
	json_object_set_new(doc, "stderr", fragment_server_tail(&s->said[1]));
	json_object_set_new(doc, "runtimeError",
			    json_pack("{s:s, s:s, s:o}", "name", name, "value", why, "traceback",
				      json_text(buf_str(&s->said[1]))));
	json_object_update(doc, take_more);
	json_decref(take_more);
	fragment_server_stop(s);
	call_json(s->call, 200, doc);
}

/* ---- the server answers ---- */

static void fragment_server_answers(struct port_probe *p, struct box *b)
{
	struct fragment_server *s = loop_owner(p, struct fragment_server, probe);
	char link[PORTS_LINK];
	struct err e;
	json_t *doc;

	if (ports_publish(b, s->port, 0, &e) < 0 || ports_set_server(b, s->port, s->exec, &e) < 0) {
		fragment_server_stop(s);
		call_fail(s->call, &e);
		return;
	}
	ports_link(s->call, b, s->port, link);
	doc = fragment_server_doc(s, link[0] ? link : NULL);
	json_object_set_new(
		doc, "note",
		json_string(
			"it answers on its port, and url is the link of its private preview; without "
			"serve.domain there may be none. Its output: GET /v1/boxes/{sbxId}/execs/{exec}/output"));
	fragment_server_stop(s);
	fragment_spare_keep(s->call);
	call_json(s->call, 200, doc);
}

/* ---- the server exits, or does not listen in time ---- */

static void fragment_server_said(struct exec_reader *t, unsigned stream, uint64_t offset,
				 const char *bytes, size_t n)
{
	struct fragment_server *s = loop_owner(t, struct fragment_server, reader);
	struct buf *b = &s->said[stream & 1];

	(void)offset;
	if (n > FRAGMENT_SERVER_TAIL) {
		bytes += n - FRAGMENT_SERVER_TAIL;
		n = FRAGMENT_SERVER_TAIL;
	}
	if (b->len + n > FRAGMENT_SERVER_TAIL) {
		size_t drop = b->len + n - FRAGMENT_SERVER_TAIL;

		memmove(b->p, b->p + drop, b->len - drop);
		buf_cut(b, b->len - drop);
	}
	buf_add(b, bytes, n);
}

static void fragment_server_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct fragment_server *s = loop_owner(t, struct fragment_server, reader);
	const char *summary = json_string_value(json_object_get(record, "summary"));
	char why[200];

	s->tapped = 0;
	if (!record) {
		fragment_server_fail(s, "host", e->msg, json_object());
		return;
	}
	if (summary)
		snprintf(why, sizeof(why), "the server ended before it answered on port %u: %.120s",
			 s->port, summary);
	else
		snprintf(why, sizeof(why),
			 "the server ended before it answered on port %u, with exit status %d",
			 s->port, (int)json_integer_value(json_object_get(record, "status")));
	fragment_server_fail(s, "server_ended", why,
			     json_pack("{s:O, s:O, s:O*}", "exitCode",
				       json_object_get(record, "status"), "cause",
				       json_object_get(record, "cause"), "hint",
				       json_object_get(record, "hint")));
}

static void fragment_server_late(struct timer *t)
{
	struct fragment_server *s = loop_owner(t, struct fragment_server, deadline);
	char why[200];

	snprintf(why, sizeof(why),
		 "nothing answered on port %u within %llu ms; the program still runs: does it "
		 "listen on the port in $PORT? More time: timeout_ms",
		 s->port, (unsigned long long)s->patience_ms);
	fragment_server_fail(s, "server_not_ready", why, json_object());
}

struct exec *fragment_server_find(const struct box *b)
{
	struct exec *r = exec_by_tag(b, FRAGMENT_APP);

	return r ? r : exec_by_tag(b, FRAGMENT_START);
}

void fragment_server_await(struct call *c, const struct exec *r)
{
	static const struct exec_reader_events on = { .output = fragment_server_said,
						      .over = fragment_server_over };
	static const uint64_t from[2] = { 0, 0 };
	struct fragment_server *s = call_alloc(c, sizeof(*s));
	int64_t usual_ms = (int64_t)isolation_usual_ms(&r->box->row, FRAGMENT_SERVER_MS);

	*s = (struct fragment_server){ .call = c,
				       .port = (uint16_t)call_int(c, "port", 0),
				       .patience_ms = (uint64_t)call_int(c, "ready_ms", usual_ms) };
	snprintf(s->box, sizeof(s->box), "%s", r->box->row.id);
	snprintf(s->exec, sizeof(s->exec), "%s", r->id);
	c->state = s;
	c->drop = fragment_server_dropped;
	timer_init(&s->deadline, c->api->loop, fragment_server_late);
	timer_set(&s->deadline, s->patience_ms);
	port_probe_start(&s->probe, &c->api->fleet, s->box, s->port, fragment_server_answers);
	s->tapped = 1;
	exec_reader_open(&s->reader, &c->api->fleet, s->box, s->exec, r->ref, from, &on);
}
