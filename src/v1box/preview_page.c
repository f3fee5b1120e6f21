/* preview_page.c - the answers that the server gives in place of a box: pages for people, JSON for
 * programs. The pages have no scripts and load nothing. Texts of the box are escaped. */
#include "v1box/preview.h"
#include "v1box/sockets.h"
#include "base/cleanup.h"
#include "fleet/exec_reader.h"
#include "record/changes.h"
#include "store/runs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

int preview_is_browser(const struct http_req *r)
{
	const char *accept = http_header(r, "accept");

	return accept && strcasestr(accept, "text/html") != NULL;
}

static void page_escape(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (strchr("<>&\"'", *text))
			buf_printf(out, "&#%d;", *text);
		else
			buf_putc(out, *text);
}

static void page_part(struct buf *out, const char *before, const char *text, const char *after)
{
	if (!text || !*text)
		return;
	buf_puts(out, before);
	page_escape(out, text);
	buf_puts(out, after);
}

/* Fonts and colours of the web UI (ui/src/style/tokens.css). */
static const char page_style[] =
	"<style>:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--fg:#171a20;--dim:#4b5362;"
	"--line:#dce1e8}@media(prefers-color-scheme:dark){:root{--bg:#1a1f27;--card:#14181e;"
	"--fg:#e6e9ef;--dim:#aeb7c4;--line:#2a323d}}body{font:14px/1.5 system-ui,-apple-system,"
	"\"Segoe UI\",Roboto,\"Noto Sans\",Arial,sans-serif;background:var(--bg);color:var(--fg);"
	"max-width:40em;margin:14vh auto;padding:0 1.25em}h1{font-size:1.3em;font-weight:600;"
	"margin:0 0 .6em}p{margin:.6em 0}.dim{color:var(--dim)}pre{font:13px/1.5 ui-monospace,"
	"\"SF Mono\",Menlo,Consolas,monospace;background:var(--card);border:1px solid var(--line);"
	"border-radius:6px;padding:.6em .8em;white-space:pre-wrap;overflow-wrap:anywhere;"
	"max-height:40vh;overflow:auto}</style>";

void preview_html(struct call *c, const struct preview_page *p)
{
	auto_buf struct buf page = { 0 };
	const char *host = http_header(c->req, "host");

	buf_puts(&page, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
			"<meta name=\"viewport\" content=\"width=device-width\">");
	page_part(&page, "<title>", p->message, "</title>");
	buf_puts(&page, page_style);
	page_part(&page, "<body><h1>", p->message, "</h1>");
	page_part(&page, "<p>", p->why, "</p>");
	page_part(&page, "<p>Type:</p><pre>", p->command, "</pre>");
	page_part(&page, "<p>Last output of the server:</p><pre>", p->output, "</pre>");
	page_part(&page, "<p class=\"dim\">", host ? host : "", "");
	buf_printf(&page, " &middot; %d</p></body></html>\n", p->status);
	http_set(
		c->req, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'");
	http_set(c->req, "Cache-Control", "no-store");
	http_reply(c->req, p->status, "text/html; charset=utf-8", page.p, page.len);
}

void preview_answer(struct call *c, const struct preview_page *p)
{
	json_t *doc;

	http_set(c->req, "Vary", "Accept");
	if (preview_is_browser(c->req)) {
		preview_html(c, p);
		return;
	}
	doc = call_error_json(c, p->code, p->message, p->why, p->command);
	if (p->output && *p->output)
		json_object_set_new(json_object_get(doc, "error"), "output", json_text(p->output));
	call_send(c, p->status, doc);
}

int preview_not_running(struct call *c, const struct box *b)
{
	const char *name = b->row.name[0] ? b->row.name : b->row.id;
	char command[STORE_NAME + 32];

	if (b->state == BOX_RUNNING && !b->late)
		return 0;
	snprintf(command, sizeof(command), "atoll resume %s", name);
	if (b->state == BOX_PAUSED)
		preview_answer(
			c,
			&(struct preview_page){
				.status = 409,
				.code = "paused",
				.message = "The box is paused",
				.why = "Its programs are frozen and continue when it is resumed.",
				.command = command });
	else if (b->state == BOX_STOPPED)
		preview_answer(
			c, &(struct preview_page){
				   .status = 409,
				   .code = "stopped",
				   .message = "The box is stopped",
				   .why = "Its files exist and its programs have ended: resume it, "
					  "then start the server again.",
				   .command = command });
	else {
		http_set(c->req, "Retry-After", "1");
		preview_answer(c,
			       &(struct preview_page){
				       .status = 503,
				       .code = "busy",
				       .message = "The box does not answer at the moment",
				       .why = "It is being created or resumed, or it is ending." });
	}
	return 1;
}

/* ---- no program listens ---- */

enum { PAGE_OUTPUT = 2048 }; /* bytes of each stream of a server that has exited */

struct page_closed {
	struct sockets sockets;
	struct call *call;
	char box[ID_MAX + 1];
	uint16_t port;
	int known; /* the sockets were read */
	struct store_run server;
	json_t *record;
	struct exec_reader reader;
	int reads;
	struct buf output[2];
};

static void page_closed_drop(struct call *c)
{
	struct page_closed *p = c->state;

	sockets_close(&p->sockets);
	if (p->reads)
		exec_reader_close(&p->reader);
	p->reads = 0;
	store_run_fini(&p->server);
	json_decref(p->record);
	buf_fini(&p->output[0]);
	buf_fini(&p->output[1]);
}

/* The ports on which programs listen. A client of a public port sees only public ones. */
static void page_list_ports(const struct page_closed *p, const struct box *b, struct buf *out)
{
	char token[PORTS_TOKEN + 1];
	int all = ports_access(b, p->port, token) == PORTS_PRIVATE, n = 0;

	for (unsigned i = 0; i < p->sockets.n && n < PORTS_MOST; i++) {
		const struct sockets_item *x = &p->sockets.v[i];
		int shown = all || ports_access(b, x->port, token) == PORTS_PUBLIC;

		for (unsigned k = 0; k < i; k++)
			shown &= p->sockets.v[k].port != x->port;
		if (!shown)
			continue;
		buf_printf(out, "%s%u", n++ ? ", " : "", x->port);
		if (all && x->process[0])
			buf_printf(out, " (%s)", x->process);
	}
	if (!n && all)
		buf_puts(out, "no port");
}

static void page_closed_answer(struct page_closed *p)
{
	const struct box *b = fleet_find(&p->call->api->fleet, p->box);
	auto_buf struct buf why = { 0 }, output = { 0 }, ports = { 0 };
	const char *summary = json_string_value(json_object_get(p->record, "summary"));
	char message[80], command[STORE_NAME + 60];
	int exited = p->server.ended_ns != 0;

	if (!b) {
		call_no_box(p->call, p->box);
		return;
	}
	snprintf(message, sizeof(message),
		 exited ? "The server of port %u has exited" : "No program listens on port %u",
		 p->port);
	snprintf(command, sizeof(command), exited ? "atoll logs %s" : "atoll port %s",
		 b->row.name[0] ? b->row.name : b->row.id);
	if (exited && summary)
		buf_printf(&why, "%s. ", summary);
	else if (exited)
		buf_printf(&why, "Exit status %d, cause: %s. ", p->server.status, p->server.cause);
	if (p->known)
		page_list_ports(p, b, &ports);
	if (ports.len)
		buf_printf(&why, "Programs of the box listen on: %s.", buf_str(&ports));
	buf_add(&output, buf_str(&p->output[0]), p->output[0].len);
	buf_add(&output, buf_str(&p->output[1]), p->output[1].len);
	preview_answer(p->call,
		       &(struct preview_page){ .status = 502,
					       .code = exited ? "server_exited" : "port_closed",
					       .message = message,
					       .why = buf_str(&why),
					       .command = command,
					       .output = buf_str(&output) });
}

static void page_output(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes,
			size_t n)
{
	struct page_closed *p = loop_owner(t, struct page_closed, reader);
	struct buf *b = &p->output[stream & 1];

	(void)offset;
	if (b->len + n <= PAGE_OUTPUT)
		buf_add(b, bytes, n);
}

static void page_output_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct page_closed *p = loop_owner(t, struct page_closed, reader);

	(void)record;
	(void)e; /* without its output, the exit of the server is still reported */
	p->reads = 0;
	page_closed_answer(p);
}

static uint64_t page_output_from(const json_t *record, const char *bytes)
{
	json_int_t n = json_integer_value(json_object_get(record, bytes));

	return n > PAGE_OUTPUT ? (uint64_t)n - PAGE_OUTPUT : 0;
}

static void page_closed_read(struct sockets *s, const struct err *e)
{
	static const struct exec_reader_events on = { .output = page_output,
						      .over = page_output_over };
	struct page_closed *p = loop_owner(s, struct page_closed, sockets);
	const struct box *b = fleet_find(&p->call->api->fleet, p->box);
	char exec[ID_MAX + 1];
	uint64_t from[2];
	struct err none;

	p->known = !e;
	if (!b || !ports_server(b, p->port, exec) ||
	    store_run_get(p->call->api->store, exec, &p->server, &none) < 0 ||
	    !p->server.ended_ns || strcmp(p->server.box, p->box) != 0) {
		p->server.ended_ns = 0;
		page_closed_answer(p);
		return;
	}
	p->record = p->server.record ? json_loads(p->server.record, JSON_ALLOW_NUL, NULL) : NULL;
	from[0] = page_output_from(p->record, "stdout_bytes");
	from[1] = page_output_from(p->record, "stderr_bytes");
	p->reads = 1;
	exec_reader_open(&p->reader, &p->call->api->fleet, p->box, exec, p->server.ref, from, &on);
}

void preview_port_closed(struct call *c, struct box *b, uint16_t port)
{
	struct page_closed *p = call_alloc(c, sizeof(*p));

	*p = (struct page_closed){ .call = c, .port = port };
	memcpy(p->box, b->row.id, sizeof(p->box));
	c->state = p;
	c->drop = page_closed_drop;
	sockets_open(&p->sockets, b, page_closed_read);
	sockets_read(&p->sockets, 0);
}
