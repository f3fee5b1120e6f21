/* port.c - open_port: whether a process listens on a port, and its URL as a private preview. */
#include "base/cleanup.h"
#include "fleet/box.h"
#include "tools/tool.h"
#include "v1box/ports.h"

#include <stdio.h>
#include <string.h>

struct port_asking {
	struct init_call init_call;
	struct tool_job *job;
};

/* "http://8000-<box>.<host of the request>", where no domain is configured; of addresses only
 * loopback has such names. */
static void url_of(const struct tool_job *j, const struct box *b, uint16_t port, char *out,
		   size_t size)
{
	const char *host = http_header(j->call->req, "host"), *at;
	size_t n = host ? strcspn(host, ":") : 0;
	int named = n && host[0] != '[' && strspn(host, "0123456789.") < n;

	at = host && host[0] != '[' ? host + n : "";
	snprintf(out, size, "http://%u-%s.%.*s%.8s/", port, b->row.id, named ? (int)n : 9,
		 named ? host : "localhost", at);
}

static json_t *port_headers(const struct box *b, uint16_t port)
{
	char token[PORTS_TOKEN + 1];
	json_t *doc = json_pack("{s:s, s:o}", "E2b-Sandbox-Id", b->row.id, "E2b-Sandbox-Port",
				json_sprintf("%u", port));

	ports_access(b, port, token);
	if (token[0])
		json_object_set_new(doc, "X-Atoll-Preview-Token", json_string(token));
	return doc;
}

static void port_told(struct port_asking *a, int listens)
{
	struct tool_job *j = a->job;
	struct box *b = tool_box(j);
	uint16_t port = (uint16_t)tool_int(j, "port", 0);
	char url[PORTS_LINK], token[PORTS_TOKEN + 1];
	struct err e;

	if (!b)
		return;
	if (!listens) {
		tool_fail(j, "not_open", "no process listens on this port of the box", NULL,
			  "start the server with run_command and background=true, then ask again");
		return;
	}
	if (ports_is_native(b) && ports_access(b, port, token) == PORTS_CLOSED &&
	    ports_publish(b, port, 0, &e) < 0) {
		tool_fail(j, "failed", e.msg, NULL, NULL);
		return;
	}
	ports_link(j->call, b, port, url);
	if (!url[0])
		url_of(j, b, port, url, sizeof(url));
	tool_say(j,
		 json_pack("{s:i, s:s, s:o}", "port", port, "url", url, "headers",
			   port_headers(b, port)),
		 "port %u is open: %s", port, url);
}

static struct port_asking *asking_of(struct init_call *x)
{
	struct port_asking *a = loop_owner(x, struct port_asking, init_call);

	init_conn_remove_call(x);
	return a;
}

static void port_answer(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	(void)f;
	(void)len;
	(void)fd; /* closed by the caller */
	port_told(asking_of(x), 1);
}

static void port_refused(struct init_call *x, const struct err *e)
{
	(void)e;
	port_told(asking_of(x), 0);
}

static void port_lost(struct init_call *x)
{
	tool_fail(loop_owner(x, struct port_asking, init_call)->job, "box_ended",
		  "the box has ended", NULL, NULL);
}

static void port_drop(struct tool_job *j)
{
	init_conn_remove_call(&((struct port_asking *)j->state)->init_call);
}

void tool_port(struct tool_job *j)
{
	static const struct init_call_ops on = { .answer = port_answer,
						 .refused = port_refused,
						 .lost = port_lost };
	struct box *b = tool_box(j);
	struct port_asking *a;

	if (!b)
		return;
	a = call_alloc(j->call, sizeof(*a));
	*a = (struct port_asking){ .job = j };
	j->state = a;
	j->drop = port_drop;
	init_conn_request_port(&b->line, &a->init_call, &on, WIRE_CONNECT,
			       (uint16_t)tool_int(j, "port", 0));
}
