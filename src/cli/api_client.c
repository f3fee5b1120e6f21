/* api_client.c - see api_client.h. */
#include "cli/api_client.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "record/record.h"
#include "base/suggest.h"
#include "http/client.h"
#include "http/client_conn.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HEADERS = 7, ERROR_MAX = 64 * 1024, LINE_MAX_BYTES = 16 << 20, NEAR = 500 };

/* ---- what went wrong ---- */

static int api_settle(struct api_client *r, int status)
{
	r->status = r->runs && status != STATUS_USAGE ? STATUS_OURS : status;
	return r->status;
}

int api_client_usage(struct api_client *r, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cli_error_what(&r->error, "usage", "%s", text);
	return api_settle(r, STATUS_USAGE);
}

/* True: no daemon received the request. False: the request may have been executed, and the
 * answer was lost. */
static int never_asked(const struct err *e)
{
	switch (e->sys) {
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case EPERM:
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ETIMEDOUT:
		return 1;
	default:
		return e->kind != ERR_SYS;
	}
}

static int api_unreachable(struct api_client *r, const struct err *e)
{
	char why[240];

	r->http = 0;
	if (e->kind == ERR_INVALID) {
		cli_error_what(&r->error, "usage", "%s", e->msg);
		return api_settle(r, STATUS_USAGE);
	}

	snprintf(why, sizeof(why), "%s", e->sys ? strerror(e->sys) : e->msg);
	why[0] = (char)tolower((unsigned char)why[0]);
	cli_error_what(&r->error, "unreachable", "cannot reach the daemon at %s", r->reach.where);
	cli_error_why(&r->error, "%s", why);
	cli_error_hint(&r->error, "start one", "atoll serve");
	cli_error_hint(&r->error, "elsewhere",
		       "atoll -H https://host:7070 ...   or set ATOLL_HOST");
	r->lost = 1;
	r->never = never_asked(e);
	return r->status = STATUS_OURS;
}

static int exit_status(int http)
{
	if (http == 404 || http == 410)
		return STATUS_NOT_FOUND;
	if (http == 401 || http == 403)
		return STATUS_NOT_ALLOWED;
	if (http == 400 || http == 414)
		return STATUS_USAGE;
	return STATUS_FAILED;
}

/* Hints of the API name a path to request; people at a command line cannot use that. */
static int for_people(const char *hint)
{
	static const char *const methods[] = { "GET ",    "POST ",   "PUT ",  "PATCH ",
					       "DELETE ", "openapi", "docs/", " ?" };

	for (unsigned i = 0; i < ARRAY_LEN(methods); i++)
		if (strstr(hint, methods[i]))
			return 0;
	return *hint != 0;
}

static void take_hints(struct api_client *r, const json_t *hints)
{
	size_t i;
	json_t *v;

	json_array_foreach(hints, i, v) if (json_is_string(v) && for_people(json_string_value(v)))
		cli_error_hint(&r->error, "hint", "%s", json_string_value(v));
}

static void key_hints(struct api_client *r)
{
	if (r->http == 401 && !r->reach.key[0])
		cli_error_hint(&r->error, "key", "set ATOLL_KEY, or key_file in config.toml");
	if (r->http == 401)
		cli_error_hint(&r->error, "make one",
			       "atoll key new NAME   (where the daemon runs)");
	if (r->http == 403)
		cli_error_hint(&r->error, "your key", "atoll api GET /v1/info");
}

static void api_clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 32 || *text == 127)
			*text = ' ';
}

/* The daemon's error object as a cli_error. */
static int api_refused(struct api_client *r, const char *bytes, size_t n)
{
	json_t *doc = n < ERROR_MAX ? json_loadb(bytes, n, 0, NULL) : NULL;
	const json_t *error = json_object_get(doc, "error");
	const char *message = api_client_text(error, "message"),
		   *why = api_client_text(error, "why");

	snprintf(r->code, sizeof(r->code), "%s",
		 *api_client_text(error, "code") ? api_client_text(error, "code") : "failed");
	if (*message)
		cli_error_what(&r->error, r->code, "%s", message);
	else
		cli_error_what(&r->error, r->code, "the daemon answered %d", r->http);
	if (*why)
		cli_error_why(&r->error, "%s", why);
	api_clean(r->error.what);
	api_clean(r->error.why);
	take_hints(r, json_object_get(error, "hints"));
	key_hints(r);
	api_settle(r, exit_status(r->http));
	json_decref(doc);
	return r->status;
}

static int api_garbled(struct api_client *r, const char *what)
{
	cli_error_what(&r->error, "failed", "%s does not respond like an atoll daemon",
		       r->reach.where);
	cli_error_why(&r->error, "%s", what);
	return api_settle(r, STATUS_FAILED);
}

/* ---- life ---- */

/* A host name or TLS: the small client leaves both to atolld. */
static void hand_over(const struct api_client *r)
{
	struct client_conn_url url;
	struct err e;

	if (r->cli->hand_over && client_conn_url_parse(r->reach.where, &url, &e) == 0 &&
	    !client_conn_url_is_plain(&url))
		r->cli->hand_over(r->cli);
}

static int connect_to(struct api_client *r)
{
	struct err e;

	hand_over(r);
	if (http_client_new(r->reach.where, NULL, &r->client, &e) < 0) {
		cli_error_what(&r->error, "usage", "%s", e.msg);
		cli_error_hint(&r->error, "type", "-H unix:/path   or   -H https://host:7070");
		return api_settle(r, STATUS_USAGE);
	}
	return 0;
}

int api_client_open(struct api_client *r, const struct cli *cli)
{
	struct err e;

	*r = (struct api_client){ .cli = cli };
	if (cli->reach(&r->reach, &e) < 0) {
		cli_error_what(&r->error, err_kind_name(e.kind), "%s", e.msg);
		cli_error_hint(&r->error, "check", "atoll config show --origin");
		return r->status = STATUS_USAGE;
	}
	if (cli->host) {
		snprintf(r->reach.where, sizeof(r->reach.where), "%s", cli->host);
		r->reach.chosen = 1;
	}
	return connect_to(r);
}

void api_client_prepare(const struct cli *cli)
{
	struct api_client r;

	if (cli->hand_over && api_client_open(&r, cli) == 0)
		api_client_close(&r);
}

int api_client_again(struct api_client *r, const struct api_client *other)
{
	*r = (struct api_client){ .cli = other->cli, .reach = other->reach, .runs = other->runs };
	return connect_to(r);
}

void api_client_close(struct api_client *r)
{
	http_client_free(r->client);
	r->client = NULL;
}

int api_client_command(const struct cli *cli, const struct args *a,
		       int (*run)(struct api_client *r, const struct args *a))
{
	struct api_client r;
	int status = api_client_open(&r, cli);

	if (!status) {
		status = run(&r, a);
		if (status == 0 || !r.error.what[0] || status != r.status) {
			api_client_close(&r);
			return status;
		}
	}
	api_client_close(&r);
	return cli_error_print(&r.error, cli->json, status);
}

/* ---- one exchange ---- */

void api_client_escape(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			buf_putc(out, *text);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
}

static char *path_of(const char *fmt, va_list ap)
{
	struct buf out = { 0 };

	for (; *fmt; fmt++) {
		if (fmt[0] == '%' && fmt[1] == 's')
			api_client_escape(&out, va_arg(ap, const char *));
		else if (fmt[0] == '%' && fmt[1] == 'u')
			buf_printf(&out, "%llu", (unsigned long long)va_arg(ap, uint64_t));
		else
			buf_putc(&out, *fmt);
		if (*fmt == '%')
			fmt++;
	}
	return buf_steal(&out);
}

char *api_client_path(const char *fmt, ...)
{
	va_list ap;
	char *path;

	va_start(ap, fmt);
	path = path_of(fmt, ap);
	va_end(ap);
	return path;
}

static unsigned headers_of(struct api_client *r, const char *type, const char *accept,
			   char bearer[80], struct http_header out[HEADERS])
{
	unsigned n = 0;

	if (r->reach.key[0]) {
		snprintf(bearer, 80, "Bearer %s", r->reach.key);
		out[n++] = (struct http_header){ "authorization", bearer };
	}
	if (type)
		out[n++] = (struct http_header){ "content-type", type };
	if (accept)
		out[n++] = (struct http_header){ "accept", accept };
	if (r->once)
		out[n++] = (struct http_header){ "idempotency-key", r->once };
	out[n++] = (struct http_header){ "user-agent", "atoll/" ATOLL_VERSION };
	if (r->match && *r->match)
		out[n++] = (struct http_header){ "if-match", r->match };
	r->match = r->once = NULL;
	return n;
}

/* Prints the header Warning of the daemon: 299 - "text". Once, because a list has many pages. */
static void api_warn(struct api_client *r, const struct http_answer *a)
{
	const char *warning = http_answer_header(a, "warning"), *text;
	char shown[240];

	text = warning ? strchr(warning, '"') : NULL;
	if (!text || r->warned || r->cli->quiet)
		return;
	r->warned = 1;
	snprintf(shown, sizeof(shown), "%.*s", (int)strcspn(text + 1, "\""), text + 1);
	api_clean(shown);
	fprintf(stderr, "atoll: warning: %s\n", shown);
}

static int api_talk(struct api_client *r, struct http_call *call, const char *type,
		    const char *accept, struct http_answer *out)
{
	struct http_header headers[HEADERS];
	const char *etag;
	char bearer[80];
	struct err e;
	int rc;

	call->headers = headers;
	call->nheaders = headers_of(r, type, accept, bearer, headers);
	r->http = r->lost = r->never = r->status = 0;
	rc = http_call(r->client, call, out, &e);
	if (rc < 0)
		return api_unreachable(r, &e), -1;
	r->http = out->status;
	etag = http_answer_header(out, "etag");
	snprintf(r->etag, sizeof(r->etag), "%s", etag ? etag : "");
	api_warn(r, out);
	return rc;
}

/* A request that only reads may be repeated: a daemon that restarts drops those in progress. */
static int api_harmless(const char *method)
{
	return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

json_t *api_client_json(struct api_client *r, const char *method, const char *path,
			json_t *take_body)
{
	auto_free char *text = take_body ? json_dumps(take_body, JSON_COMPACT) : NULL;
	struct http_call call = { .method = method, .target = path, .body = text };
	struct http_answer a = { 0 };
	const char *once = r->once;
	json_t *doc = NULL;
	int rc;

	call.body_len = text ? strlen(text) : 0;
	json_decref(take_body);
	rc = api_talk(r, &call, text ? "application/json" : NULL, "application/json", &a);
	if (rc < 0 && (once || api_harmless(method))) {
		http_answer_fini(&a);
		r->once = once;
		rc = api_talk(r, &call, text ? "application/json" : NULL, "application/json", &a);
	}
	if (rc == 0 && a.status >= 400)
		api_refused(r, buf_str(&a.body), a.body.len);
	else if (rc == 0 && !a.body.len)
		doc = json_null();
	else if (rc == 0 && !(doc = json_loadb(a.body.p, a.body.len, JSON_DECODE_ANY, NULL)))
		api_garbled(r, "its answer is not JSON");
	http_answer_fini(&a);
	return doc;
}

json_t *api_client_get(struct api_client *r, const char *fmt, ...)
{
	auto_free char *path = NULL;
	va_list ap;

	va_start(ap, fmt);
	path = path_of(fmt, ap);
	va_end(ap);
	return api_client_json(r, "GET", path, NULL);
}

int api_client_list(struct api_client *r, const char *path, int (*each)(void *ctx, json_t *item),
		    void *ctx)
{
	auto_buf struct buf after = { 0 };
	int stop = 0;

	while (!stop) {
		auto_buf struct buf page = { 0 };
		json_t *doc, *item;
		size_t i;

		buf_puts(&page, path);
		if (after.len)
			buf_printf(&page, "%cafter=%s", strchr(path, '?') ? '&' : '?',
				   buf_str(&after));
		doc = api_client_json(r, "GET", buf_str(&page), NULL);
		if (!doc)
			return r->status;
		json_array_foreach(json_object_get(doc, "items"), i, item) if (!stop) stop =
			each(ctx, item);
		buf_cut(&after, 0);
		api_client_escape(&after, api_client_text(doc, "next"));
		stop |= !after.len;
		json_decref(doc);
	}
	return 0;
}

/* ---- lines ---- */

struct api_lines {
	struct api_client *r;
	struct buf held; /* the beginning of a line; or a complete error */
	int failed;
	const char *wrong;
	int (*each)(void *ctx, json_t *line);
	void *ctx;
};

static int lines_head(void *user, const struct http_answer *a)
{
	struct api_lines *l = user;

	l->failed = a->status >= 400;
	l->r->http = a->status;
	return 0;
}

static int one_line(struct api_lines *l, const char *text, size_t n)
{
	json_t *doc;
	int rc;

	if (!n)
		return 0;
	doc = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
	if (!doc) {
		l->wrong = "a line of its stream is not JSON";
		return 1;
	}
	rc = l->each(l->ctx, doc);
	json_decref(doc);
	return rc;
}

static int lines_body(void *user, const char *bytes, size_t n)
{
	struct api_lines *l = user;
	const char *nl;

	while (!l->failed && (nl = memchr(bytes, '\n', n))) {
		size_t len = (size_t)(nl - bytes);
		int rc;

		if (l->held.len) {
			buf_add(&l->held, bytes, len);
			rc = one_line(l, l->held.p, l->held.len);
			buf_cut(&l->held, 0);
		} else {
			rc = one_line(l, bytes, len);
		}
		if (rc)
			return rc;
		bytes += len + 1;
		n -= len + 1;
	}
	if (l->held.len + n > LINE_MAX_BYTES) {
		l->wrong = "a line of its stream has no end";
		return 1;
	}
	buf_add(&l->held, bytes, n);
	return 0;
}

static int ask_lines(struct api_client *r, struct http_call *call, const char *type,
		     int (*each)(void *ctx, json_t *line), void *ctx)
{
	struct api_lines l = { .r = r, .each = each, .ctx = ctx };
	struct http_answer a = { 0 };
	int rc;

	call->on_head = lines_head;
	call->on_body = lines_body;
	call->user = &l;
	rc = api_talk(r, call, type, "application/x-ndjson", &a);
	http_answer_fini(&a);
	if (l.wrong)
		rc = api_garbled(r, l.wrong);
	else if (l.failed && rc == 0)
		rc = api_refused(r, buf_str(&l.held), l.held.len);
	else
		rc = rc < 0 ? r->status : 0;
	buf_fini(&l.held);
	return rc;
}

int api_client_lines(struct api_client *r, const char *method, const char *path, json_t *take_body,
		     int (*each)(void *ctx, json_t *line), void *ctx)
{
	auto_free char *text = take_body ? json_dumps(take_body, JSON_COMPACT) : NULL;
	struct http_call call = {
		.method = method, .target = path, .body = text, .body_len = text ? strlen(text) : 0
	};

	json_decref(take_body);
	return ask_lines(r, &call, text ? "application/json" : NULL, each, ctx);
}

int api_client_lines_of(struct api_client *r, const char *path, int from, const char *type,
			int (*each)(void *ctx, json_t *line), void *ctx)
{
	struct http_call call = { .method = "POST", .target = path, .body_fd = &from };

	return ask_lines(r, &call, type, each, ctx);
}

/* ---- bytes ---- */

struct bytes {
	struct api_client_bytes *x;
	struct api_client *r;
	struct buf error;
	int failed;
	int broken; /* errno of writing here */
	struct err sunk;
};

static int bytes_head(void *user, const struct http_answer *a)
{
	struct bytes *b = user;
	const char *etag = http_answer_header(a, "etag");

	b->r->http = a->status;
	b->failed = a->status >= 400;
	snprintf(b->x->etag, sizeof(b->x->etag), "%s", etag ? etag : "");
	return 0;
}

static int bytes_body(void *user, const char *bytes, size_t n)
{
	struct bytes *b = user;

	if (!b->failed && b->x->sink)
		return b->x->sink(b->x->ctx, bytes, n, &b->sunk) < 0;
	if (b->failed || b->x->to < 0) {
		if (b->error.len + n > LINE_MAX_BYTES)
			return 1;
		buf_add(&b->error, bytes, n);
		return 0;
	}
	if (b->x->most && n > *b->x->most - b->x->written)
		return err_set(&b->sunk, ERR_LIMIT, "the answer has more than %llu bytes",
			       (unsigned long long)*b->x->most) < 0;
	b->x->written += n;
	if (api_client_write(b->x->to, bytes, n) < 0) {
		b->broken = errno;
		return 1;
	}
	return 0;
}

static ssize_t bytes_more(void *user, void *out, size_t room, struct err *e)
{
	struct bytes *b = user;
	ssize_t n = b->x->more(b->x->ctx, out, room, e);

	if (n < 0)
		b->sunk = *e;
	return n;
}

int api_client_bytes(struct api_client *r, struct api_client_bytes *x)
{
	struct bytes b = { .x = x, .r = r };
	struct http_call call = { .method = x->method,
				  .target = x->path,
				  .body = x->body,
				  .body_len = x->len,
				  .body_fd = x->from >= 0 ? &x->from : NULL,
				  .more = x->more ? bytes_more : NULL,
				  .on_head = bytes_head,
				  .on_body = bytes_body,
				  .user = &b };
	struct http_answer a = { 0 };
	int rc = api_talk(r, &call, x->type, x->accept, &a);

	http_answer_fini(&a);
	if (b.failed && rc >= 0)
		rc = api_refused(r, buf_str(&b.error), b.error.len);
	else if (b.sunk.kind)
		rc = (cli_error_what(&r->error, err_kind_name(b.sunk.kind), "%s", b.sunk.msg),
		      api_settle(r, STATUS_FAILED));
	else if (b.broken == EPIPE)
		rc = r->status = 0; /* the reader closed the pipe, which is not an error */
	else if (b.broken)
		rc = (cli_error_what(&r->error, "failed", "write: %s", strerror(b.broken)),
		      api_settle(r, STATUS_FAILED));
	else if (rc < 0)
		rc = r->status;
	else if (x->to < 0 && !x->sink && b.error.len)
		x->answer = json_loadb(b.error.p, b.error.len, JSON_DECODE_ANY, NULL);
	buf_fini(&b.error);
	return rc;
}

/* ---- a box that is not there ---- */

struct near {
	const char *typed;
	int found;
	char best[80], about[120];
	unsigned slips, seen;
};

static void api_consider(struct near *n, const char *name, const json_t *box)
{
	const char *const names[] = { name, NULL };
	unsigned slips;

	n->found |= !strcmp(name, n->typed);
	if (!*name || !suggest_nearest(n->typed, names))
		return;
	slips = suggest_distance(n->typed, name);
	if (*n->best && slips >= n->slips)
		return;
	n->slips = slips;
	snprintf(n->best, sizeof(n->best), "%s", name);
	snprintf(n->about, sizeof(n->about), "%s (%s, %s)", name, api_client_state(box),
		 api_client_text(box, "template"));
}

static int near_each(void *ctx, json_t *box)
{
	struct near *n = ctx;

	api_consider(n, api_client_text(box, "name"), box);
	api_consider(n, api_client_text(box, "id"), box);
	return ++n->seen >= NEAR;
}

void api_client_explain_box(struct api_client *r, const char *box)
{
	struct cli_error before = r->error;
	struct near n = { .typed = box };
	int status = r->status, failed;
	char shown[SHOWN];

	if (r->http != 404)
		return;
	failed = api_client_list(r, "/v1/boxes", near_each, &n);
	r->status = status;
	r->http = 404;
	if (failed || n.found || n.seen >= NEAR) {
		r->error = before;
		return;
	}
	cli_error_what(&r->error, "not_found", "no box named \"%s\"", cli_error_shown(box, shown));
	if (*n.best)
		cli_error_hint(&r->error, "close", "%s", n.about);
	cli_error_hint(&r->error, "list", "atoll ls -a");
}

/* ---- for people ---- */

void api_client_print(const json_t *doc)
{
	json_dumpf(doc, stdout, JSON_COMPACT | JSON_ENCODE_ANY | RECORD_DIGITS);
	putchar('\n');
}

const char *api_client_text(const json_t *doc, const char *key)
{
	const char *s = json_string_value(json_object_get(doc, key));

	return s ? s : "";
}

const char *api_client_state(const json_t *doc)
{
	static const struct {
		const char *old, *name;
	} renamed[] = { { "over", "exited" }, { "kept", "stopped" }, { "gone", "deleted" } };
	const char *state = api_client_text(doc, "state");

	for (unsigned i = 0; i < ARRAY_LEN(renamed); i++)
		if (!strcmp(state, renamed[i].old))
			return renamed[i].name;
	return state;
}

int64_t api_client_int(const json_t *doc, const char *key, int64_t otherwise)
{
	const json_t *v = json_object_get(doc, key);

	return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

int64_t api_client_when_ms(const char *rfc3339)
{
	struct tm tm = { 0 };
	const char *rest = strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &tm);

	if (!rest)
		return -1;
	return (int64_t)timegm(&tm) * 1000 + (*rest == '.' ? strtol(rest + 1, NULL, 10) : 0);
}

static const char *api_span(char out[24], int64_t ms)
{
	return units_time(out, ms < 0 ? 0 : (uint64_t)ms * 1000);
}

static int64_t now_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000);
}

const char *api_client_since(char out[24], const json_t *doc, const char *key)
{
	int64_t at = api_client_when_ms(api_client_text(doc, key));

	return at < 0 ? strcpy(out, "-") : api_span(out, now_ms() - at);
}

const char *api_client_until(char out[24], const json_t *doc, const char *key)
{
	int64_t at = api_client_when_ms(api_client_text(doc, key));

	return at < 0 ? strcpy(out, "-") : api_span(out, at - now_ms());
}

int api_client_write(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}
