/* ui_login.c - see ui_login.h. */
#include "v1/ui_login.h"
#include "api/auth.h"
#include "v1/keys.h"
#include "v1/ui.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "record/record.h"
#include "store/ui_links.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct field role_values[] = {
	FIELD_VALUE("viewer"), FIELD_VALUE("editor"), FIELD_VALUE("owner"), { 0 }
};
const struct field ui_login_link_fields[] = {
	{ "role", FIELD_CHOICE, 0, 0, 0, "role of the session that the link opens (default owner)",
	  role_values },
	{ 0 },
};
const struct field ui_login_session_fields[] = {
	{ "token", FIELD_TEXT, 1, 0, UI_TOKEN_TEXT, "the text after #k= in the link", NULL },
	{ 0 },
};

static void ui_login_hash(const char *token, uint8_t out[SHA256_BYTES])
{
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, token, strlen(token));
	sha256_end(&sha, out);
}

/* ---- the link ---- */

static int ui_login_token(char out[UI_TOKEN_TEXT + 1], struct err *e)
{
	uint8_t bytes[UI_TOKEN_BYTES];

	if (id_random(bytes, sizeof(bytes), e) < 0)
		return -1;
	hex_encode(out, bytes, sizeof(bytes));
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

int ui_login_origin(const struct call *c, char out[UI_ORIGIN])
{
	const struct api_conf *conf = &c->api->conf;
	const char *domain = conf->hosts && *conf->hosts ? *conf->hosts : NULL;
	const char *host = http_header(c->req, "host"),
		   *proto = http_header(c->req, "x-forwarded-proto");
	int secure = http_secure(c->req) || (proto && !strcasecmp(proto, "https"));

	out[0] = 0;
	if (!c->req->unix_peer) {
		snprintf(out, UI_ORIGIN, "%s://%.300s", secure ? "https" : "http",
			 host ? host : "");
	} else if (conf->port) {
		if (domain && !strncmp(domain, "*.", 2))
			domain += 2;
		if (domain && ui_is_beside_previews(conf, domain))
			domain = "localhost";
		snprintf(out, UI_ORIGIN, "%s://%.300s:%u", conf->tls ? "https" : "http",
			 conf->tls && domain ? domain : "127.0.0.1", conf->port);
	}
	return out[0] != 0;
}

json_t *ui_login_url(const struct call *c, const char *page, const char *token)
{
	char origin[UI_ORIGIN], url[UI_ORIGIN + 200];

	if (!ui_login_origin(c, origin))
		return json_null();
	snprintf(url, sizeof(url), "%s%s#k=%s", origin, page, token);
	return json_string(url);
}

void ui_login_create_link(struct call *c)
{
	struct store_ui_link link = { .role = ROLE_OWNER };
	char token[UI_TOKEN_TEXT + 1];
	int64_t now = fleet_now_ns();
	struct err e;

	if (!ui_is_built()) {
		call_error(c, 404, "no_ui", "this daemon was built without the web UI", NULL,
			   "docs/ui.md lists what the build needs");
		return;
	}
	(void)!store_role_parse(call_text(c, "role", "owner"),
				&link.role); /* one of the field's values */
	snprintf(link.team, sizeof(link.team), "%s", c->who.team);
	snprintf(link.who, sizeof(link.who), "%s", c->who.id);
	link.expires_ns = now + UI_LINK_MS * INT64_C(1000000);
	if (ui_login_token(token, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	ui_login_hash(token, link.hash);
	if (store_ui_link_insert(c->api->store, &link, now, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	http_set(c->req, "Cache-Control", "no-store");
	call_json(c, 201,
		  json_pack("{s:o, s:s, s:s, s:o}", "url", ui_login_url(c, "/", token), "token",
			    token, "role", store_role_name(link.role), "expires",
			    json_time((uint64_t)link.expires_ns)));
	explicit_bzero(token, sizeof(token));
}

/* ---- the session ---- */

static void ui_login_refuse(struct call *c)
{
	if (auth_failed(c->api, c->req)) {
		call_fail_throttled(c);
		return;
	}
	call_error(
		c, 401, "link_used",
		"this link was used before, is older than five minutes, or is not of this daemon",
		NULL, "make another one: atoll ui");
}

void ui_login_open_session(struct call *c)
{
	char id[ID_MAX + 1], text[KEY_TEXT + 1];
	uint8_t hash[SHA256_BYTES];
	struct store_ui_link link;
	struct store_key k = { .created_ns = fleet_now_ns() };
	struct err e;

	ui_login_hash(call_text(c, "token", ""), hash);
	if (store_ui_link_take(c->api->store, hash, k.created_ns, &link, &e) < 0) {
		if (e.kind == ERR_NOT_FOUND)
			ui_login_refuse(c);
		else
			call_fail(c, &e);
		return;
	}
	/* From here on the request has the principal of the key that created the link, also in the
	 * audit log. */
	c->who = (struct principal){ .role = link.role };
	snprintf(c->who.id, sizeof(c->who.id), "%s", link.who);
	snprintf(c->who.team, sizeof(c->who.team), "%s", link.team);
	keys_remove_expired(c, link.team, UI_SESSION_PREFIX);
	k.role = link.role;
	k.expires_ns = k.created_ns + UI_SESSION_HOURS * INT64_C(3600) * 1000000000;
	snprintf(k.team, sizeof(k.team), "%s", link.team);
	if (id_new(id, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	snprintf(k.name, sizeof(k.name), UI_SESSION_PREFIX "%s", id);
	if (keys_add(c, &k, text, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	keys_made(c, &k, keys_json(&k), text);
}
