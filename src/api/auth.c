/* auth.c - see auth.h. */
#include "api/auth.h"
#include "api/identity.h"
#include "api/oidc.h"
#include "store/teams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE = 256, TOKENS = 64, CALLERS = 64, CACHED_MS = 1000 };

struct cached {
	uint8_t hash[SHA256_BYTES];
	uint64_t until_ms; /* 0: empty */
	int found;
	struct store_key key;
};

struct verified_token { /* a token that was verified */
	uint8_t hash[SHA256_BYTES];
	uint64_t until_ms; /* 0: empty */
	struct principal who;
};

struct named_caller {      /* a caller that a gateway has named */
	uint64_t until_ms; /* 0: empty */
	char text[IDENTITY_TEXT];
	struct principal who;
};

/* Failed attempts of one address; each is a wrong key, token or signature. */
enum { FAILURES = 1024, FAILURES_BURST = 30, FAILURES_PER_S = 2 };
struct failures {
	uint32_t address; /* hash of the address; two addresses with the same slot share the numbers
			   * below */
	uint32_t left;    /* thousandths of an attempt */
	uint64_t at_ms;   /* 0: none yet */
};

struct auth {
	uint32_t seed; /* of the address hash */
	struct failures failures[FAILURES];
	struct cached cache[CACHE];
	struct verified_token tokens[TOKENS];
	struct named_caller callers[CALLERS];
	struct err why; /* why the last token was rejected */
};

struct auth *auth_new(void)
{
	struct auth *a = calloc(1, sizeof(*a));

	struct err e;

	if (!a)
		abort();
	if (id_random(&a->seed, sizeof(a->seed), &e) < 0)
		a->seed = (uint32_t)loop_now_ms();
	return a;
}

void auth_free(struct auth *a)
{
	free(a);
}

void auth_forget(struct api *a)
{
	memset(a->auth->cache, 0, sizeof(a->auth->cache));
	memset(a->auth->tokens, 0, sizeof(a->auth->tokens));
	memset(a->auth->callers, 0, sizeof(a->auth->callers));
}

int auth_changed(struct api *a)
{
	auth_forget(a);
	return a->accounts_changed ? a->accounts_changed(a) : 1;
}

/* ---- Host and Origin ---- */

/* The name itself, or the name after one label: "49983-<box>.<name>". */
static int same_host(const char *host, size_t n, const char *name)
{
	size_t len = strlen(name), label;

	if (n < len || strncasecmp(host + n - len, name, len) != 0)
		return 0;
	if (n == len)
		return 1;
	label = strcspn(host, ".");
	return label > 0 && label + 1 == n - len && name[0] != '[' &&
	       (name[0] < '0' || name[0] > '9');
}

/* Without its port; an IPv6 address keeps its brackets. */
static size_t host_part(const char *host)
{
	const char *end;

	if (*host == '[') {
		end = strchr(host, ']');
		return end ? (size_t)(end - host) + 1 : strlen(host);
	}
	return strcspn(host, ":");
}

/* The rest after the name must be empty or a port: ":7070". */
static int is_port(const char *text)
{
	size_t n = *text == ':' ? strspn(text + 1, "0123456789") : 0;

	return !*text || (n >= 1 && n <= 5 && !text[1 + n]);
}

const char *const *api_preview_domains(const struct api_conf *c)
{
	static const char *const none[] = { NULL };

	return c->previews && *c->previews ? c->previews : c->hosts ? c->hosts : none;
}

static int auth_host_among(const char *host, size_t n, const char *const *names)
{
	for (; names && *names; names++)
		if (same_host(host, n, strncmp(*names, "*.", 2) == 0 ? *names + 2 : *names))
			return 1;
	return 0;
}

static int known_host(const struct api *a, const char *host)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]", NULL };
	size_t n = host_part(host);

	if (!is_port(host + n))
		return 0;
	return auth_host_among(host, n, loopback) || auth_host_among(host, n, a->conf.hosts) ||
	       auth_host_among(host, n, a->conf.previews);
}

int auth_is_preview_host(const struct api *a, const char *host)
{
	static const char *const local[] = { "localhost", NULL };
	size_t n = host_part(host);

	return auth_host_among(host, n, local) ||
	       auth_host_among(host, n, api_preview_domains(&a->conf));
}

/* A page of the same origin, or of an origin in the configuration. */
static int known_origin(const struct api *a, const char *origin, const char *host)
{
	const char *rest = strstr(origin, "://");

	for (const char *const *o = a->conf.origins; o && *o; o++)
		if (!strcasecmp(origin, *o))
			return 1;
	return rest && host && !strcasecmp(rest + 3, host);
}

int auth_host(const struct api *a, const struct http_req *r, const char **why)
{
	const char *host = http_header(r, "host");

	if (r->unix_peer || r->trusted_peer || (host && known_host(a, host)))
		return 0; /* a gateway has checked it */
	*why = "the Host header names another machine, or something follows its port";
	return 421;
}

int auth_origin(const struct api *a, const struct http_req *r, const char **why)
{
	const char *host = http_header(r, "host"), *origin = http_header(r, "origin");

	if (!origin || r->trusted_peer || known_origin(a, origin, host))
		return 0;
	*why = "pages of this origin may not call this daemon";
	return 403;
}

/* ---- failures ---- */

/* The entry that the proxy itself has added. Some proxies append to the header of the client,
 * others add another header line. */
static const char *auth_forwarded_for(const struct http_req *r)
{
	for (unsigned i = r->nheaders; i-- > 0;)
		if (!strcmp(r->headers[i].name, "x-forwarded-for"))
			return r->headers[i].value;
	return NULL;
}

/* A proxy on this machine sends requests of many clients, and names the client in a header. */
static const char *address_of(const struct http_req *r, size_t *n)
{
	int near = r->unix_peer || r->trusted_peer || !strncmp(r->peer, "127.", 4) ||
		   !strncmp(r->peer, "[::1]", 5);
	const char *said = near ? auth_forwarded_for(r) : NULL;
	const char *last = said ? strrchr(said, ',') : NULL;

	if (said) {
		*n = strlen(last ? last : said);
		return last ? last : said;
	}
	/* An IPv6 client has at least a /64, so its first four groups identify it. */
	*n = r->peer[0] == '[' ? strcspn(r->peer, "]") : strcspn(r->peer, ":");
	for (size_t i = 0, groups = 0; r->peer[0] == '[' && i < *n; i++)
		if (r->peer[i] == ':' && ++groups == 4)
			*n = i;
	return r->peer;
}

/* The slot of the address, with the attempts regained until now. */
static struct failures *failures_of(struct api *a, const struct http_req *r)
{
	uint32_t hash = a->auth->seed;
	uint64_t now = loop_now_ms(), more;
	const char *address;
	struct failures *f;
	size_t n;

	address = address_of(r, &n);
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)address[i]) * 16777619u;
	f = &a->auth->failures[(hash >> 8) % FAILURES];
	if (!f->at_ms || f->address != hash)
		*f = (struct failures){ hash, FAILURES_BURST * 1000, now };
	more = (now - f->at_ms) * FAILURES_PER_S;
	f->left = more > FAILURES_BURST * 1000 - f->left ? FAILURES_BURST * 1000
							 : f->left + (uint32_t)more;
	f->at_ms = now;
	return f;
}

int auth_failed(struct api *a, const struct http_req *r)
{
	struct failures *f = failures_of(a, r);

	a->auth_failures++;
	if (f->left >= 1000) {
		f->left -= 1000;
		return 0;
	}
	a->auth_slowed++;
	return 1;
}

int auth_may_guess(struct api *a, const struct http_req *r)
{
	return failures_of(a, r)->left >= 1000;
}

/* ---- the key ---- */

static struct cached *look_up(struct api *a, const uint8_t hash[SHA256_BYTES])
{
	unsigned slot = (hash[0] | (unsigned)hash[1] << 8) % CACHE;
	struct cached *c = &a->auth->cache[slot];
	uint64_t now = loop_now_ms();
	struct err e;

	/* Digests are compared, so timing reveals nothing about the bytes of the key. */
	if (c->until_ms > now && !memcmp(c->hash, hash, SHA256_BYTES))
		return c;
	memcpy(c->hash, hash, SHA256_BYTES);
	c->found = store_key_find(a->store, hash, &c->key, &e) == 0;
	c->until_ms = now + CACHED_MS;
	if (c->found)
		(void)!store_key_touch(a->store, &c->key, fleet_now_ns(), &e);
	return c;
}

/* A page cannot set headers on a WebSocket; it sends its key as a subprotocol: "key.e2b_...". */
static const char *auth_offered(const struct http_req *r, char out[KEY_TEXT + 1])
{
	const char *list = r->upgrade ? http_header(r, "sec-websocket-protocol") : NULL;
	const char *at = list ? strstr(list, "key." KEY_PREFIX) : NULL;

	if (!at)
		return NULL;
	snprintf(out, KEY_TEXT + 1, "%.*s", (int)strcspn(at + 4, ", "), at + 4);
	return out;
}

static const char *auth_bearer(const struct http_req *r, char room[KEY_TEXT + 1])
{
	const char *text = http_header(r, "authorization");

	if (text && !strncasecmp(text, "Bearer ", 7))
		return text + 7;
	text = http_header(r, "x-api-key");
	return text ? text : auth_offered(r, room);
}

static int peer_is_owner(const struct api *a, const struct http_req *r, struct principal *out)
{
	if (!r->unix_peer || (r->peer_uid != 0 && r->peer_uid != a->conf.own_uid &&
			      (!a->conf.access_gid || !http_peer_in_group(r, a->conf.access_gid))))
		return 0;
	*out = (struct principal){ .role = ROLE_OWNER };
	snprintf(out->id, sizeof(out->id), "uid:%u", r->peer_uid);
	snprintf(out->team, sizeof(out->team), "%s", TEAM_DEFAULT);
	return 1;
}

static int good_key(const struct store_key *k, const char **why)
{
	if (k->revoked)
		*why = "this key was revoked";
	else if (k->expires_ns && k->expires_ns <= fleet_now_ns())
		*why = "this key has expired";
	else
		return 1;
	return 0;
}

/* ---- tokens ---- */

static int is_token(const struct http_req *r)
{
	const char *text = http_header(r, "authorization");

	return text && !strncasecmp(text, "Bearer ", 7) && strchr(text + 7, '.');
}

static int read_token(struct api *a, const char *text, struct principal *out, struct err *e)
{
	struct store_team team;
	struct oidc_subject who;

	if (!a->oidc)
		return err_set(e, ERR_DENIED, "tokens are not accepted: auth.oidc_jwks is not set");
	if (oidc_check(a->oidc, text, fleet_now_ns() / 1000000000, &who, e) < 0)
		return -1;
	if (store_team_get(a->store, who.team, &team, e) < 0)
		return err_set(e, ERR_DENIED, "the token's team '%.64s' is not known here",
			       who.team);
	*out = (struct principal){ .role = who.role, .until_ns = who.until_s * 1000000000 };
	memcpy(out->id, who.id, sizeof(out->id));
	memcpy(out->team, who.team, sizeof(out->team));
	return 0;
}

/* Verifying a signature costs a hundred times as much as a lookup in this table. */
static int token_who(struct api *a, const char *text, struct principal *out, const char **why)
{
	uint8_t hash[SHA256_BYTES];
	uint64_t now = loop_now_ms();
	struct verified_token *b;
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, text, strlen(text));
	sha256_end(&sha, hash);
	b = &a->auth->tokens[hash[0] % TOKENS];
	if (b->until_ms > now && !memcmp(b->hash, hash, sizeof(hash))) {
		*out = b->who;
		return 0;
	}
	if (read_token(a, text, out, &a->auth->why) < 0) {
		*why = a->auth->why.msg;
		return 401;
	}
	*b = (struct verified_token){ .until_ms = now + CACHED_MS, .who = *out };
	memcpy(b->hash, hash, sizeof(hash));
	return 0;
}

int auth_has_key(const struct http_req *r)
{
	char room[KEY_TEXT + 1];

	return auth_bearer(r, room) != NULL;
}

/* What this node must know about key and team later, without the gateway: their minimum tiers, and that the team
 * exists. */
static int auth_mirror(struct api *a, const struct identity *who, struct err *e)
{
	const struct principal *w = &who->principal;
	struct store_key key = { .created_ns = fleet_now_ns(), .role = w->role };
	struct store_team team = { .isolation = "-" };

	if (store_team_get(a->store, w->team, &team, e) < 0 && e->kind != ERR_NOT_FOUND)
		return -1;
	if (strcmp(team.isolation, who->team_isolation) != 0 &&
	    store_team_mirror(a->store, w->team, who->team_isolation, fleet_now_ns(), e) < 0)
		return -1;
	if (!id_valid(w->id)) /* "uid:0", or the subject of a token */
		return 0;
	memcpy(key.id, w->id, strlen(w->id) + 1); /* it is a valid id */
	snprintf(key.team, sizeof(key.team), "%s", w->team);
	snprintf(key.box, sizeof(key.box), "%s", w->box);
	snprintf(key.isolation, sizeof(key.isolation), "%s", w->isolation);
	return store_key_mirror(a->store, &key, e);
}

/* A gateway has checked the key. A caller that it named less than a second ago needs no row. */
static int auth_from_gateway(struct api *a, const struct http_req *r, struct principal *out,
			     const char **why)
{
	const char *text = http_header(r, IDENTITY_HEADER);
	struct named_caller *c;
	struct identity who;
	struct err *e = &a->auth->why;
	uint32_t hash = 2166136261u;

	*why = "the gateway named no caller";
	if (!text)
		return 401;
	for (const char *p = text; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619u;
	c = &a->auth->callers[hash % CALLERS];
	if (c->until_ms > loop_now_ms() && strcmp(c->text, text) == 0) {
		*out = c->who;
		return 0;
	}
	*why = e->msg;
	if (identity_parse(text, &who, e) < 0)
		return 401;
	if (auth_mirror(a, &who, e) < 0)
		return 503;
	*out = who.principal;
	if (strlen(text) >= sizeof(c->text))
		return 0;
	*c = (struct named_caller){ .until_ms = loop_now_ms() + CACHED_MS, .who = *out };
	memcpy(c->text, text, strlen(text) + 1);
	return 0;
}

int auth_principal(struct api *a, const struct http_req *r, struct principal *out, const char **why)
{
	uint8_t hash[SHA256_BYTES];
	char room[KEY_TEXT + 1];
	const char *text = auth_bearer(r, room);
	struct cached *c;

	if (r->trusted_peer)
		return auth_from_gateway(a, r, out, why);
	*why = "no key: send it as 'Authorization: Bearer e2b_...' or 'X-API-Key: e2b_...'";
	if (!text)
		return peer_is_owner(a, r, out) ? 0 : 401;
	if (is_token(r))
		return token_who(a, text, out, why);
	*why = "this key is not known here";
	if (store_key_hash(text, hash) < 0)
		return 401;
	c = look_up(a, hash);
	if (!c->found || !good_key(&c->key, why))
		return 401;
	*out = (struct principal){ .role = c->key.role, .has_hash = 1 };
	snprintf(out->id, sizeof(out->id), "%s", c->key.id);
	snprintf(out->team, sizeof(out->team), "%s", c->key.team);
	snprintf(out->box, sizeof(out->box), "%s", c->key.box);
	snprintf(out->isolation, sizeof(out->isolation), "%s", c->key.isolation);
	memcpy(out->hash, hash, sizeof(hash));
	return 0;
}

int auth_still(struct api *a, const struct principal *w)
{
	const struct cached *c;
	const char *why;

	if (w->until_ns && w->until_ns <= fleet_now_ns())
		return 0;
	if (!w->has_hash)
		return 1;
	c = look_up(a, w->hash);
	return c->found && good_key(&c->key, &why);
}
