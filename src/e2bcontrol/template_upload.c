/* template_upload.c - see template_upload.h. */
#include "e2bcontrol/template_upload.h"
#include "api/auth.h"
#include "api/fields.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "e2bcontrol/template_find.h"
#include "secret/vault.h"
#include "template/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UPLOAD_LINK_S = 3600, UPLOAD_TOKEN = 1024 };
#define UPLOAD_CONTEXT "link to upload files of a template"

const struct field template_upload_query[] = {
	{ "token", FIELD_TEXT, 1, 0, UPLOAD_TOKEN, "signature of the link", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

static int upload_is_hash(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= 64 && strspn(text, "0123456789abcdef") == n;
}

/* ---- the link ---- */

/* "team/template/hash/expiry", encrypted and authenticated, in base64 for URLs. */
static int upload_token(const struct call *c, const char *template, const char *hash,
			struct buf *out, struct err *e)
{
	auto_buf struct buf plain = { 0 }, sealed = { 0 };

	buf_printf(&plain, "%s/%s/%s/%lld", c->who.team, template, hash,
		   (long long)(fleet_now_ns() / 1000000000 + UPLOAD_LINK_S));
	if (vault_seal(c->api->fleet.vault, UPLOAD_CONTEXT, plain.p, plain.len, &sealed, e) < 0)
		return -1;
	base64_encode(out, sealed.p, sealed.len);
	while (out->len && out->p[out->len - 1] == '=')
		buf_cut(out, out->len - 1);
	for (size_t i = 0; i < out->len; i++)
		out->p[i] = (char)(out->p[i] == '+' ? '-' : out->p[i] == '/' ? '_' : out->p[i]);
	return 0;
}

void template_upload_link(struct call *c)
{
	const char *hash = call_param(c, 1), *host = http_header(c->req, "host");
	auto_buf struct buf token = { 0 };
	char node[16] = "";
	struct template_found f;
	json_t *url;
	struct err e;

	if (!upload_is_hash(hash)) {
		e2b_error(c, 400, "the hash '%.80s' must have 1 to 64 of 0-9 and a-f", hash);
		return;
	}
	if (!template_find_own(c, call_param(c, 0), &f))
		return;
	if (upload_token(c, f.row.id, hash, &token, &e) < 0) {
		call_fail(c, &e);
	} else {
		if (id_own_node() != ID_NODES) /* for a gateway, which sends the request here */
			snprintf(node, sizeof(node), "&node=%u", (unsigned)id_own_node());
		url = json_sprintf("%s://%s/templates/%s/files/%s?token=%s%s",
				   http_secure(c->req) ? "https" : "http",
				   host ? host : "localhost", f.row.id, hash, buf_str(&token),
				   node);
		call_json(c, 201,
			  json_pack("{s:b, s:o}", "present",
				    build_upload_exists(c->api->builds, c->who.team, hash), "url",
				    url ? url : json_null()));
	}
	template_found_fini(&f);
}

/* ---- the archive ---- */

struct upload {
	struct call *call;
	struct build_upload file;
	char team[STORE_NAME + 1];
	char hash[STORE_HASH + 1];
	int failed; /* and answered */
};

/* The token as bytes: base64 for URLs, without padding. */
static int upload_decode(const char *token, struct buf *out)
{
	auto_buf struct buf padded = { 0 };

	for (; *token; token++)
		buf_putc(&padded, (char)(*token == '-' ? '+' : *token == '_' ? '/' : *token));
	while (padded.len % 4)
		buf_putc(&padded, '=');
	return base64_decode(out, buf_str(&padded), padded.len);
}

/* NULL, or why the link is not valid. */
static const char *upload_check(struct call *c, struct upload *u)
{
	auto_buf struct buf sealed = { 0 }, plain = { 0 };
	const char *part[4];
	char *at, *rest;
	struct err e;

	if (upload_decode(call_query(c, "token"), &sealed) < 0 ||
	    vault_unseal(c->api->fleet.vault, UPLOAD_CONTEXT, sealed.p, sealed.len, &plain, &e) < 0)
		return "the link is not valid";
	at = (char *)buf_str(&plain);
	for (unsigned i = 0; i < ARRAY_LEN(part); i++)
		part[i] = strtok_r(i ? NULL : at, "/", &rest);
	if (!part[3] || strcmp(part[1], call_param(c, 0)) != 0 ||
	    strcmp(part[2], call_param(c, 1)) != 0)
		return "the link is for other files";
	if (strtoll(part[3], NULL, 10) < fleet_now_ns() / 1000000000)
		return "the link has expired; request another one";
	snprintf(u->team, sizeof(u->team), "%s", part[0]);
	snprintf(u->hash, sizeof(u->hash), "%s", part[2]);
	return NULL;
}

static void upload_left(struct call *c)
{
	struct upload *u = c->state;

	build_upload_drop(c->api->builds, &u->file);
}

static void upload_fail(struct upload *u, const struct err *e)
{
	struct call *c = u->call;

	u->failed = 1;
	c->drop = NULL;
	build_upload_drop(c->api->builds, &u->file);
	call_fail(c, e);
}

static void upload_bytes(struct http_req *r, const char *bytes, size_t n)
{
	struct upload *u = ((struct call *)r->user)->state;
	struct err e;

	while (n && !u->failed) {
		ssize_t done = write(u->file.fd, bytes, n);

		if (done < 0 && errno != EINTR) {
			err_sys(&e, "store the archive");
			upload_fail(u, &e);
		} else if (done > 0) {
			bytes += done;
			n -= (size_t)done;
		}
	}
}

static void upload_end(struct http_req *r)
{
	struct call *c = r->user;
	struct upload *u = c->state;
	struct err e;

	if (u->failed)
		return;
	c->drop = NULL;
	if (build_upload_finish(c->api->builds, &u->file, u->team, u->hash, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 200);
}

void template_upload_put(struct call *c)
{
	struct upload *u = call_alloc(c, sizeof(*u));
	const char *why;
	struct err e;

	*u = (struct upload){ .call = c };
	why = upload_check(c, u);
	if (why && auth_failed(c->api, c->req)) {
		call_fail_throttled(c);
		return;
	}
	if (why) {
		e2b_error(c, 403, "%s", why);
		return;
	}
	if (build_upload_open(c->api->builds, &u->file, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = u;
	c->drop = upload_left;
	c->req->on_body = upload_bytes;
	c->req->on_body_end = upload_end;
	http_want_body(c->req, HTTP_BODY_STREAM, c->api->conf.template_max);
	http_body_rate(c->req, HTTP_BODY_RATE);
}
