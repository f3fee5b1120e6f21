/* daemon_info.c - see daemon_info.h. */
#include "v1/daemon_info.h"
#include "v1/ui.h"
#include "api/keeper_info.h"
#include "api/fields.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "lang/lang.h"
#include "metrics/exposition.h"

#include <string.h>

void info_page(struct call *c)
{
	static const char top[] =
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<title>Atoll</title>\n</head>\n<body>\n<h1>Atoll</h1>\n"
		"<p>This daemon runs programs in boxes. It is spoken with over HTTP, and every "
		"request takes a key.</p>\n"
		"<ul>\n"
		"<li>A key: <code>atoll key new NAME</code>, on this machine.</li>\n"
		"<li>A first program: <code>curl -H \"X-API-Key: $KEY\" -d "
		"'{\"command\":\"echo hello\"}' THIS-ADDRESS/v1/run</code></li>\n"
		"<li>All paths, with the key: <code>/openapi.json</code>.</li>\n"
		"<li>The command line: <code>atoll --help</code>, <code>man atoll</code>.</li>\n"
		"<li>How it works: <a href=\"/docs/daemon.md\">/docs/daemon.md</a>.</li>\n";
	static const char with_ui[] =
		"<li>The web UI: this address, in a browser; <code>atoll ui</code> prints a link that is "
		"signed in.</li>\n";
	static const char without_ui[] =
		"<li>This build has no web UI: <a href=\"/docs/ui.md\">/docs/ui.md</a> says what it needs.</li>\n";
	static const char end[] = "</ul>\n</body>\n</html>\n";
	auto_buf struct buf page = { 0 };

	buf_puts(&page, top);
	buf_puts(&page, ui_is_built() ? with_ui : without_ui);
	buf_puts(&page, end);
	http_set(c->req, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
	http_reply(c->req, 200, "text/html; charset=utf-8", page.p, page.len);
}

void info_health(struct call *c)
{
	/* A gateway has no keeper. */
	int ok = c->api->gateway || keeper_client_is_connected(&c->api->fleet.keeper);

	call_json(c, ok ? 200 : 503,
		  json_pack("{s:s}", "status", ok ? "ok" : "no keeper at the moment"));
}

/* Determined once: a language that is installed later is found by the next server process. */
static json_t *info_languages(void)
{
	static json_t *all;

	if (all)
		return json_incref(all);
	all = json_array();

	for (unsigned i = 0; i < lang_count(); i++)
		json_array_append_new(all, json_pack("{s:s, s:b}", "name", lang_at(i)->name, "here",
						     lang_present(lang_at(i))));
	return json_incref(all);
}

void info_principal(struct call *c)
{
	call_json(c, 200,
		  json_pack("{s:s, s:s, s:s, s:s}", "who", c->who.id, "team", c->who.team, "role",
			    store_role_name(c->who.role), "box", c->who.box));
}

void info_daemon(struct call *c)
{
	const struct fleet_conf *conf = &c->api->fleet.conf;

	call_json(
		c, 200,
		json_pack(
			"{s:s, s:s, s:s, s:s, s:s, s:[s], s:o, s:{s:I, s:I, s:I, s:I, s:I}, s:o, s:o}",
			"version", ATOLL_VERSION, "who", c->who.id, "team", c->who.team, "role",
			store_role_name(c->who.role), "box", c->who.box, "templates", "base",
			"languages", info_languages(), "limits", "lifetime_ms",
			(json_int_t)conf->lifetime_ms, "max_lifetime_ms",
			(json_int_t)conf->lifetime_max_ms, "json_bytes",
			(json_int_t)c->api->conf.json_max, "upload_bytes",
			(json_int_t)c->api->conf.upload_max, "template_bytes",
			(json_int_t)c->api->conf.template_max, "usage",
			c->who.box[0] || c->api->gateway ? json_object()
							 : quota_json(c->api, c->who.team),
			"started", json_time((uint64_t)c->api->started_ns)));
}

/* ---- Prometheus ---- */

static void info_do_metrics(struct call *c, const struct wire_info *about)
{
	enum exposition how = exposition_of_accept(http_header(c->req, "accept"));
	auto_buf struct buf b = { 0 };

	(void)about; /* the source of the figures reads it, too */
	metrics_collect(c->api->metrics);
	exposition_print(c->api->metrics, how, c->api->started_ns, &b);
	http_set(c->req, "Vary", "Accept");
	http_reply(c->req, 200, exposition_content_type(how), b.p, b.len);
}

static void info_ask_keeper(struct call *c)
{
	keeper_info_request(c, info_do_metrics);
}

/* Figures of the machine are for operators (team default), as in GET /v1/stats. */
void info_metrics(struct call *c)
{
	if (!c->api->conf.metrics_public && strcmp(c->who.team, TEAM_DEFAULT) != 0)
		call_error(
			c, 403, "denied",
			"these are the figures of the whole machine, for keys of team " TEAM_DEFAULT,
			c->who.team, "those of your team: GET /v1/usage");
	else
		call_with_figures(c, info_ask_keeper);
}
