/* ui.c - see ui.h.
 *
 * The bundle is text and then bytes:
 *
 * atoll-ui 1\n PATH TYPE HASH PLAIN-LENGTH OFFSET LENGTH\n one per file; a type has no spaces;
 * OFFSET counts from the empty line \n gzip members, one per file
 *
 * Names below /a/ have a hash of their content in them and never change; "/" is the page of every path. */
#include "v1/ui.h"
#include "base/site.h"
#include "v1box/preview.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

extern const char ui_bundle[], ui_bundle_end[]; /* ui_bundle.S */

enum { UI_FILES = 256, UI_HASH = 32 };

static const char frame_path[] = "/frame.html";

struct ui_file {
	char path[96], type[48], hash[UI_HASH + 1];
	size_t plain, len; /* before gzip, and after */
	const char *bytes;
};

static struct ui_files {
	struct ui_file v[UI_FILES];
	unsigned n;
	int read;
} files;

/* ---- the bundle ---- */

/* The bundle is part of the executable; any test that starts a daemon finds mistakes in it. */
static void ui_read_index(void)
{
	static const char magic[] = "atoll-ui 1\n";
	const char *at = ui_bundle, *data = strstr(ui_bundle, "\n\n");
	size_t total = (size_t)(ui_bundle_end - ui_bundle), offset;

	files.read = 1;
	if (!total)
		return; /* built without the web UI */
	if (strncmp(at, magic, strlen(magic)) != 0 || !data)
		abort();
	data += 2;
	for (at += strlen(magic); *at != '\n'; at = strchr(at, '\n') + 1) {
		struct ui_file *f = &files.v[files.n];

		if (files.n++ == UI_FILES ||
		    sscanf(at, "%95s %47s %32s %zu %zu %zu", f->path, f->type, f->hash, &f->plain,
			   &offset, &f->len) != 6 ||
		    data + offset + f->len > ui_bundle_end)
			abort();
		f->bytes = data + offset;
	}
}

static const struct ui_file *ui_find(const char *path)
{
	if (!files.read)
		ui_read_index();
	for (unsigned i = 0; i < files.n; i++)
		if (!strcmp(files.v[i].path, path))
			return &files.v[i];
	return NULL;
}

int ui_is_built(void)
{
	return ui_find("/") != NULL;
}

/* ---- the request ---- */

/* Paths that the page shows itself, by their first folder. */
static int ui_is_page(const char *path)
{
	static const char *const folders[] = { "",          "b",         "runs",      "boxes",
					       "templates", "pipelines", "agents",    "batches",
					       "monitor",   "network",   "schedules", "activity",
					       "settings" };
	size_t n = strcspn(path + 1, "/");

	for (unsigned i = 0; i < ARRAY_LEN(folders); i++)
		if (strlen(folders[i]) == n && !strncmp(folders[i], path + 1, n))
			return i > 0 || !path[1];
	return 0;
}

static int ui_accepts_html(const struct http_req *r)
{
	const char *accept = http_header(r, "accept");

	return accept && strcasestr(accept, "text/html") != NULL;
}

/* "gzip" in the list, and not with ";q=0". A client that names no coding may not be able to read
 * one. */
int ui_accepts_gzip(const struct http_req *r)
{
	const char *list = http_header(r, "accept-encoding"),
		   *at = list ? strcasestr(list, "gzip") : NULL;
	const char *q = at ? at + strlen("gzip") : "";

	q += strspn(q, " \t");
	if (*q == ';')
		q += 1 + strspn(q + 1, " \t");
	return at && (strncasecmp(q, "q=", 2) != 0 || strtod(q + 2, NULL) > 0);
}

/* ---- the answer ---- */

/* The origins of previews of boxes (v1box/ports.c): names below each domain, or below localhost. */
static void ui_frame_sources(const struct api *a, struct buf *out)
{
	static const char *const otherwise[] = { "localhost", NULL };
	const char *const *domain = api_preview_domains(&a->conf);

	domain = *domain ? domain : otherwise;

	for (; *domain; domain++) {
		const char *name = strncmp(*domain, "*.", 2) == 0 ? *domain + 2 : *domain;

		buf_printf(out, " http://*.%s:* https://*.%s:*", name, name);
	}
}

/* The page in which the web UI shows HTML of boxes: cell results, .html files. Scripts of that HTML are executed, but
 * with an opaque origin and without network access, also if the page is opened by its address. */
static void ui_set_frame_headers(struct http_req *r)
{
	http_set(
		r, "Content-Security-Policy",
		"sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' data: blob:; "
		"style-src 'unsafe-inline' data:; img-src data: blob:; font-src data:; media-src data: blob:; "
		"base-uri 'none'; form-action 'none'; frame-ancestors 'self'");
	http_set(r, "X-Frame-Options", "SAMEORIGIN");
}

static void ui_set_headers(struct call *c, const struct ui_file *f, int is_page, const char *etag)
{
	auto_buf struct buf frames = { 0 };
	struct http_req *r = c->req;
	int is_frame = !strcmp(f->path, frame_path);

	http_set(r, "ETag", "%s", etag);
	http_set(r, "Cache-Control",
		 is_page || is_frame ? "no-cache" : "public, max-age=31536000, immutable");
	http_set(r, "Vary", is_page ? "Accept, Accept-Encoding" : "Accept-Encoding");
	if (strncmp(f->path, "/play/", 6) != 0)
		http_set(r, "Referrer-Policy", "no-referrer");
	if (is_frame)
		ui_set_frame_headers(r);
	if (is_frame || !strncmp(f->path, "/play/", 6) || strncmp(f->type, "text/html", 9) != 0)
		return;
	ui_frame_sources(c->api, &frames);
	/* The editor and the terminal create style elements; scripts are executed only from files
	 * of the bundle. */
	http_set(
		r, "Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
		"font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; frame-src 'self'%s; "
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		buf_str(&frames));
	http_set(r, "Cross-Origin-Opener-Policy", "same-origin");
	http_set(r, "X-Frame-Options", "DENY");
}

static void ui_reply_plain(struct http_req *r, const struct ui_file *f)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)f->bytes, .avail_in = (uInt)f->len };
	auto_free char *plain = malloc(f->plain + 1);

	if (!plain || inflateInit2(&z, 15 + 16) != Z_OK)
		abort();
	z.next_out = (Bytef *)plain;
	z.avail_out = (uInt)f->plain;
	if (inflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	inflateEnd(&z);
	http_reply(r, 200, f->type, plain, f->plain);
}

static void ui_reply(struct call *c, const struct ui_file *f, int is_page)
{
	struct http_req *r = c->req;
	const char *has = http_header(r, "if-none-match");
	int gzip = ui_accepts_gzip(r);
	char etag[UI_HASH + 8];

	snprintf(etag, sizeof(etag), gzip ? "\"%s\"" : "\"%s-p\"",
		 f->hash); /* each encoding needs an ETag of its own */
	ui_set_headers(c, f, is_page, etag);
	if (has && strstr(has, etag)) {
		http_reply(r, 304, NULL, NULL, 0);
		return;
	}
	if (!gzip) {
		ui_reply_plain(r, f);
		return;
	}
	http_set(r, "Content-Encoding", "gzip");
	http_reply(r, 200, f->type, f->bytes, f->len);
}

int ui_reply_path(struct call *c, const char *path)
{
	const struct ui_file *f = ui_find(path);

	if (!f)
		return -1;
	ui_reply(c, f, !strncmp(f->type, "text/html", 9));
	return 0;
}

/* Pages of boxes at names of the same site could set cookies for this page and share its process. */
int ui_is_beside_previews(const struct api_conf *conf, const char *host)
{
	for (const char *const *d = api_preview_domains(conf); *d; d++)
		if (site_is_shared(host, site_host_len(host), *d))
			return 1;
	return 0;
}

void ui_refuse_site(struct call *c)
{
	preview_html(
		c,
		&(struct preview_page){
			.status = 403,
			.message = "The web UI is not served at this name",
			.why = "Servers of boxes are reached at names of the same site. Set "
			       "serve.preview_domain to a domain of another site, or open the web "
			       "UI at localhost or 127.0.0.1 (from another machine: ssh -L).",
			.command = "atoll serve --preview-domain boxes.example.net" });
}

static int ui_take(struct call *c)
{
	struct http_req *r = c->req;
	int is_page = ui_is_page(r->path), is_asset = !strncmp(r->path, "/a/", 3) ||
						      !strcmp(r->path, "/favicon.svg") ||
						      !strcmp(r->path, frame_path);
	const struct ui_file *f;
	const char *host;

	if (!(is_page ? ui_accepts_html(r) : is_asset) ||
	    (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0) || !ui_is_built())
		return 0;
	host = http_header(r, "host");
	f = ui_find(is_page ? "/" : r->path);
	if (host && ui_is_beside_previews(&c->api->conf, host))
		ui_refuse_site(c);
	else if (f)
		ui_reply(c, f, is_page);
	else /* a page of an older version requests a file that this version does not have */
		http_reply(r, 404, "text/plain; charset=utf-8",
			   "this version of the web UI has no such file\n", 44);
	return 1;
}

const struct api_surface ui_surface = { .take = ui_take };
