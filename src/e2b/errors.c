/* errors.c - error answers in E2B's formats. */
#include "base/cleanup.h"
#include "record/changes.h"
#include "api/fields.h"
#include "e2b/e2b.h"
#include "v1box/preview.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static void errors_answer(struct call *c, int status, const char *message)
{
	call_json(c, status,
		  json_pack("{s:i, s:o}", "code", status, "message", json_text(message)));
}

void e2b_error(struct call *c, int status, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	errors_answer(c, status, text);
}

/* E2B's clients show one line: the error, with the value seen. */
void e2b_format_error(struct call *c, int status, const char *code, const char *message,
		      const char *why, const char *hint)
{
	char text[600];

	(void)code;
	(void)hint;
	snprintf(text, sizeof(text), "%s%s%s", message, why && *why ? ": " : "", why ? why : "");
	errors_answer(c, status, text);
}

/* Old clients append a "-" and more to the id of a box. It is cut off before any lookup. */
static int errors_admit(struct call *c)
{
	if (c->row && c->row->scope == SCOPE_BOX && c->match.nparams)
		c->match.params[0][strcspn(c->match.params[0], "-")] = 0;
	return call_authorize(c);
}

const struct field e2b_any_query[] = { { .name = FIELDS_OTHERS }, { 0 } };

const struct api_format e2b_format = { .error = e2b_format_error, .admit = errors_admit };

void e2b_refuse(struct call *c)
{
	call_error(c, 501, "not_supported", c->row->summary, NULL, NULL);
}

static const char *port_of(const char *host)
{
	const char *at = *host == '[' ? strchr(host, ']') : host;

	at = at ? strchr(at, ':') : NULL;
	return at ? at : "";
}

static int is_loopback(const char *host)
{
	static const char *const names[] = { "127.0.0.1", "localhost", "[::1]" };
	size_t n = strlen(host) - strlen(port_of(host));

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == n && !strncasecmp(host, names[i], n))
			return 1;
	return 0;
}

/* Clients that are configured with a domain D only use the Host "api.D:port": their boxes are
 * below D, too. Without a configured domain, clients on this machine use localhost. */
void e2b_domain(const struct call *c, char out[E2B_DOMAIN])
{
	const char *host = http_header(c->req, "host");
	const char *const *ours = api_preview_domains(&c->api->conf);

	out[0] = 0;
	if (host && !c->req->unix_peer && !strncasecmp(host, "api.", 4))
		snprintf(out, E2B_DOMAIN, "%s", host + 4);
	else if (host && ours && *ours)
		snprintf(out, E2B_DOMAIN, "%s%.6s", *ours, port_of(host));
	else if (host && !c->req->unix_peer && is_loopback(host))
		snprintf(out, E2B_DOMAIN, "localhost%.6s", port_of(host));
}

static int is_browser(const struct http_req *r)
{
	const char *agent = http_header(r, "user-agent");

	return preview_is_browser(r) ||
	       (agent && (strstr(agent, "Mozilla/") || strstr(agent, "Opera/")));
}

/* The same as a page for people. */
static void no_box_page(struct call *c, int status, const char *id, unsigned port,
			const char *message)
{
	char why[200];

	if (port)
		snprintf(why, sizeof(why), "Sandbox %.40s, port %u.", id, port);
	else
		snprintf(why, sizeof(why),
			 "%s%.40s%sIt has ended, has never existed, or is private: a private "
			 "preview is opened by its link.",
			 *id ? "Sandbox " : "", id, *id ? ". " : "");
	preview_html(c, &(struct preview_page){ .status = status,
						.message = message,
						.why = why,
						.command = port ? NULL : "atoll ls" });
}

void e2b_no_box(struct call *c, int status, const char *id, unsigned port, const char *message)
{
	json_t *doc;

	if (is_browser(c->req)) {
		no_box_page(c, status, id, port, message);
		return;
	}
	doc = json_pack("{s:o, s:s, s:i}", "sandboxId", json_text(id), "message", message, "code",
			status);

	if (port)
		json_object_set_new(doc, "port", json_integer(port));
	call_json(c, status, doc);
}
