/* ports.c - see ports.h. */
#include "v1box/ports.h"
#include "v1box/preview.h"
#include "v1box/sockets.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/id.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- the row ---- */

static json_t *ports_surface(const struct box *b)
{
	json_t *doc = b->row.surface ? json_loads(b->row.surface, 0, NULL) : NULL;

	if (json_is_object(doc))
		return doc;
	json_decref(doc);
	return json_object();
}

static size_t ports_find(const json_t *ports, uint16_t port)
{
	size_t i;
	json_t *one;

	json_array_foreach(ports, i, one) if (json_integer_value(one) == port) break;
	return i;
}

static void ports_key(uint16_t port, char out[8])
{
	snprintf(out, 8, "%u", port);
}

static enum ports_access ports_access_in(const json_t *surface, uint16_t port,
					 char out_token[PORTS_TOKEN + 1])
{
	const json_t *ports = json_object_get(surface, "ports");
	const char *token;
	char key[8];

	ports_key(port, key);
	token = json_string_value(json_object_get(json_object_get(surface, "previews"), key));
	out_token[0] = 0;
	if (ports_find(ports, port) < json_array_size(ports))
		return PORTS_PUBLIC;
	if (!token || strlen(token) != PORTS_TOKEN)
		return PORTS_CLOSED;
	memcpy(out_token, token, PORTS_TOKEN + 1);
	return PORTS_PRIVATE;
}

enum ports_access ports_access(const struct box *b, uint16_t port, char out_token[PORTS_TOKEN + 1])
{
	json_t *surface = ports_surface(b);
	enum ports_access access = ports_access_in(surface, port, out_token);

	json_decref(surface);
	return access;
}

int ports_is_native(const struct box *b)
{
	json_t *surface;
	int native;

	/* Called for each request of a preview: most rows need not be parsed. */
	if (!b->row.surface || !strstr(b->row.surface, "\"e2b\""))
		return !b->is_installer;
	surface = ports_surface(b);
	native = !b->is_installer && !json_is_object(json_object_get(surface, "e2b"));
	json_decref(surface);
	return native;
}

/* Writes the new value; on failure nothing has changed. */
static int ports_store(struct box *b, const json_t *surface, struct err *e)
{
	char *before = b->row.surface;

	b->row.surface = json_dumps(surface, JSON_COMPACT);
	if (!b->row.surface)
		abort();
	if (box_changed(b, e) < 0) {
		free(b->row.surface);
		b->row.surface = before;
		return -1;
	}
	free(before);
	return 0;
}

/* The member, created if it is missing. */
static json_t *ports_member(json_t *surface, const char *name, json_t *take_empty)
{
	json_t *v = json_object_get(surface, name);

	if (v && json_typeof(v) == json_typeof(take_empty)) {
		json_decref(take_empty);
		return v;
	}
	json_object_set_new(surface, name, take_empty);
	return take_empty;
}

static void ports_remove(json_t *surface, uint16_t port)
{
	json_t *ports = json_object_get(surface, "ports");
	size_t i = ports_find(ports, port);
	char key[8];

	ports_key(port, key);
	json_object_del(json_object_get(surface, "previews"), key);
	if (i < json_array_size(ports))
		json_array_remove(ports, i);
}

static int ports_add(json_t *surface, uint16_t port, int to_public, struct err *e)
{
	json_t *ports = ports_member(surface, "ports", json_array()),
	       *previews = ports_member(surface, "previews", json_object());
	uint8_t random[PORTS_TOKEN / 2];
	char key[8], token[PORTS_TOKEN + 1];

	if (json_array_size(ports) + json_object_size(previews) >= PORTS_MOST)
		return err_set(e, ERR_LIMIT, "a box has at most %d open ports", PORTS_MOST);
	if (to_public) {
		json_array_append_new(ports, json_integer(port));
		return 0;
	}
	if (id_random(random, sizeof(random), e) < 0)
		return -1;
	hex_encode(token, random, sizeof(random));
	ports_key(port, key);
	json_object_set_new(previews, key, json_string(token));
	return 0;
}

int ports_publish(struct box *b, uint16_t port, int to_public, struct err *e)
{
	json_t *surface = ports_surface(b);
	char token[PORTS_TOKEN + 1];
	int rc = 0;

	if (ports_access_in(surface, port, token) != (to_public ? PORTS_PUBLIC : PORTS_PRIVATE)) {
		ports_remove(surface, port);
		rc = ports_add(surface, port, to_public, e);
		if (!rc)
			rc = ports_store(b, surface, e);
	}
	json_decref(surface);
	return rc;
}

int ports_set_server(struct box *b, uint16_t port, const char *exec, struct err *e)
{
	json_t *surface = ports_surface(b);
	char key[8];
	int rc;

	ports_key(port, key);
	json_object_set_new(ports_member(surface, "servers", json_object()), key,
			    json_string(exec));
	rc = ports_store(b, surface, e);
	json_decref(surface);
	return rc;
}

int ports_server(const struct box *b, uint16_t port, char out_exec[ID_MAX + 1])
{
	json_t *surface = ports_surface(b);
	const char *exec;
	char key[8];
	int found;

	ports_key(port, key);
	exec = json_string_value(json_object_get(json_object_get(surface, "servers"), key));
	found = exec && id_valid(exec);
	snprintf(out_exec, ID_MAX + 1, "%s", found ? exec : "");
	json_decref(surface);
	return found;
}

static int ports_unpublish(struct box *b, uint16_t port, struct err *e)
{
	json_t *surface = ports_surface(b);
	char token[PORTS_TOKEN + 1];
	int rc = 0;

	if (ports_access_in(surface, port, token) != PORTS_CLOSED) {
		ports_remove(surface, port);
		rc = ports_store(b, surface, e);
	}
	json_decref(surface);
	return rc;
}

/* ---- the address ---- */

static size_t name_len(const char *host)
{
	return *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
}

int ports_is_local(const char *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
	size_t n = name_len(host);

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == n && strncasecmp(host, names[i], n) == 0)
			return 1;
	return n > 10 && strncasecmp(host + n - 10, ".localhost", 10) == 0;
}

/* Of several domains, the one in the Host header of the client. Without a domain, clients on this
 * machine get a name below localhost, which browsers and curl resolve to loopback. */
static const char *domain_for(const struct call *c, const char *host)
{
	const char *const *all = api_preview_domains(&c->api->conf);
	size_t n = name_len(host);

	for (const char *const *d = all; d && *d; d++) {
		const char *name = strncmp(*d, "*.", 2) == 0 ? *d + 2 : *d;
		size_t len = strlen(name);

		if (n >= len && strncasecmp(host + n - len, name, len) == 0 &&
		    (n == len || host[n - len - 1] == '.'))
			return name;
	}
	if (all && *all)
		return strncmp(*all, "*.", 2) == 0 ? *all + 2 : *all;
	return c->req->unix_peer || ports_is_local(host) ? "localhost" : NULL;
}

int ports_is_secure(const struct http_req *r)
{
	const char *proto = http_header(r, "x-forwarded-proto");

	return http_secure(r) || (proto && strcasecmp(proto, "https") == 0);
}

void ports_url(const struct call *c, const char *box, uint16_t port, char out[PORTS_URL])
{
	const struct api_conf *conf = &c->api->conf;
	const char *said = http_header(c->req, "host"), *host = said ? said : "";
	const char *domain = domain_for(c, host);

	out[0] = 0;
	if (!domain)
		return;
	/* A request on the unix socket does not contain the TCP port that browsers use. */
	if (c->req->unix_peer && conf->port)
		snprintf(out, PORTS_URL, "%s://%u-%s.%s:%u", conf->tls ? "https" : "http", port,
			 box, domain, conf->port);
	else if (!c->req->unix_peer)
		snprintf(out, PORTS_URL, "%s://%u-%s.%s%.6s",
			 ports_is_secure(c->req) ? "https" : "http", port, box, domain,
			 host + name_len(host));
}

void ports_link(const struct call *c, const struct box *b, uint16_t port, char out[PORTS_LINK])
{
	char url[PORTS_URL], token[PORTS_TOKEN + 1];

	ports_url(c, b->row.id, port, url);
	ports_access(b, port, token);
	snprintf(out, PORTS_LINK, "%s%s%s", url, url[0] && token[0] ? "/?" PREVIEW_QUERY "=" : "",
		 url[0] ? token : "");
}

/* ---- the routes ---- */

const struct field ports_open_fields[] = {
	{ "public", FIELD_BOOL, 0, 0, 0,
	  "every client may open the preview; otherwise it needs the token of the port", NULL },
	{ 0 },
};
const struct field ports_show_query[] = {
	{ "wait", FIELD_TEXT, 0, 0, 16,
	  "wait until a program listens on the port, at most for this time: 10s, 500ms (at most 10m)",
	  NULL },
	{ 0 },
};

/* found: a socket that listens there; NULL: none. known 0: the sockets were not read. */
static json_t *ports_json(const struct call *c, const struct box *b, uint16_t port,
			  const struct sockets_item *found, int known)
{
	char url[PORTS_URL], link[PORTS_LINK], token[PORTS_TOKEN + 1];
	enum ports_access access = ports_access(b, port, token);
	int reveals = access == PORTS_PUBLIC || c->who.role >= ROLE_EDITOR;
	json_t *doc;

	ports_url(c, b->row.id, port, url);
	ports_link(c, b, port, link);
	doc = json_pack("{s:s, s:i, s:b, s:b, s:s?, s:s?, s:s?}", "box", b->row.id, "port", port,
			"open", access != PORTS_CLOSED, "public", access == PORTS_PUBLIC, "url",
			url[0] ? url : NULL, "link", link[0] && reveals ? link : NULL, "token",
			token[0] && reveals ? token : NULL);
	json_object_set_new(doc, "listening", known ? json_boolean(found != NULL) : json_null());
	json_object_update_new(doc, sockets_json(found));
	return doc;
}

uint16_t ports_param(struct call *c)
{
	uint32_t port;
	struct err e;

	if (units_parse_count(call_param(c, 1), 65535, &port, &e) < 0 || port == 0) {
		call_error(c, 400, "invalid", "the port is invalid", call_param(c, 1),
			   "1 to 65535");
		return 0;
	}
	return (uint16_t)port;
}

/* ---- reading the sockets of the box ---- */

enum { PORTS_AGAIN_MS = 100, PORTS_WAIT_MOST_MS = 600000 };

struct ports_request {
	struct sockets sockets;
	struct call *call;
	char box[ID_MAX + 1];
	uint16_t port; /* 0: all of them */
	struct timer again;
	uint64_t until_ms; /* loop_now_ms(); 0: does not wait */
	uint64_t wait_ms;
};

static void ports_dropped(struct call *c)
{
	struct ports_request *p = c->state;

	sockets_close(&p->sockets);
	timer_fini(&p->again);
}

static const struct sockets_item *ports_socket(const struct sockets *s, uint16_t port)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i].port == port)
			return &s->v[i];
	return NULL;
}

static int ports_compare(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* The ports that listen or are open, each once, in order. */
static unsigned ports_all(const struct sockets *s, const struct box *b,
			  uint16_t out[SOCKETS_MOST + PORTS_MOST])
{
	json_t *surface = ports_surface(b), *one;
	unsigned n = 0, kept = 0;
	const char *key;
	size_t i;

	for (i = 0; i < s->n; i++)
		out[n++] = s->v[i].port;
	json_array_foreach(json_object_get(surface, "ports"), i,
			   one) if (n < SOCKETS_MOST + PORTS_MOST) out[n++] =
		(uint16_t)json_integer_value(one);
	json_object_foreach(json_object_get(surface, "previews"), key,
			    one) if (n < SOCKETS_MOST + PORTS_MOST) out[n++] =
		(uint16_t)strtoul(key, NULL, 10);
	json_decref(surface);
	qsort(out, n, sizeof(*out), ports_compare);
	for (i = 0; i < n; i++)
		if (!kept || out[kept - 1] != out[i])
			out[kept++] = out[i];
	return kept;
}

static json_t *ports_items(const struct ports_request *p, const struct box *b, int known)
{
	uint16_t all[SOCKETS_MOST + PORTS_MOST];
	unsigned n = ports_all(&p->sockets, b, all);
	json_t *items = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(items, ports_json(p->call, b, all[i],
							ports_socket(&p->sockets, all[i]), known));
	return items;
}

/* The list, or one port. known 0: the box cannot answer, so the rows have no sockets. */
static void ports_answer(struct ports_request *p, struct box *b, int known)
{
	struct call *c = p->call;
	json_t *doc = p->port ? ports_json(c, b, p->port, ports_socket(&p->sockets, p->port), known)
			      : ports_items(p, b, known);

	sockets_close(&p->sockets);
	timer_fini(&p->again);
	c->drop = NULL;
	if (p->port)
		call_json(c, 200, doc);
	else
		call_list(c, doc, NULL);
}

static void ports_late(struct ports_request *p)
{
	char message[120], time[UNITS_TEXT];

	snprintf(message, sizeof(message), "no program listened on port %u within %s", p->port,
		 units_time(time, p->wait_ms * 1000));
	call_error(p->call, 504, "port_closed", message, p->box,
		   "start the server, or wait longer: ?wait=30s");
}

static void ports_read(struct sockets *s, const struct err *e)
{
	struct ports_request *p = loop_owner(s, struct ports_request, sockets);
	struct box *b = fleet_find(&p->call->api->fleet, p->box);

	if (!b) {
		call_no_box(p->call, p->box);
	} else if (e && p->until_ms) {
		call_error(p->call, 502, "box_ended", "the sockets of the box cannot be read",
			   e->msg, "GET the box: does it run?");
	} else if (e || !p->until_ms) {
		ports_answer(p, b, !e);
	} else if (ports_socket(s, p->port)) {
		p->until_ms = 0;
		sockets_read(s, 0); /* again with its process, for the answer */
	} else if (loop_now_ms() >= p->until_ms) {
		ports_late(p);
	} else {
		timer_set(&p->again, PORTS_AGAIN_MS);
	}
}

static void ports_again(struct timer *t)
{
	sockets_read(&loop_owner(t, struct ports_request, again)->sockets, 1);
}

static void ports_left(struct http_req *r)
{
	http_abort(r);
}

static void ports_start(struct call *c, struct box *b, uint16_t port, uint64_t wait_ms)
{
	struct ports_request *p = call_alloc(c, sizeof(*p));

	*p = (struct ports_request){ .call = c, .port = port, .wait_ms = wait_ms };
	snprintf(p->box, sizeof(p->box), "%s", b->row.id);
	c->state = p;
	if (b->state != BOX_RUNNING || !init_conn_is_open(&b->line)) {
		ports_answer(p, b, 0);
		return;
	}
	p->until_ms = wait_ms ? loop_now_ms() + wait_ms : 0;
	timer_init(&p->again, c->api->loop, ports_again);
	c->drop = ports_dropped;
	if (wait_ms)
		c->req->on_eof = ports_left; /* the client has left */
	sockets_open(&p->sockets, b, ports_read);
	sockets_read(&p->sockets, wait_ms != 0);
}

void ports_list(struct call *c)
{
	struct box *b = call_box_peek(c, 0);

	if (b)
		ports_start(c, b, 0, 0);
}

void ports_show(struct call *c)
{
	const char *wait = call_query(c, "wait");
	struct box *b = wait ? call_box(c, 0) : call_box_peek(c, 0);
	uint16_t port = b ? ports_param(c) : 0;
	uint32_t wait_ms = 0;
	struct err e;

	if (!port)
		return;
	if (wait && (units_parse_time(wait, &wait_ms, &e) < 0 || wait_ms > PORTS_WAIT_MOST_MS)) {
		call_error(c, 400, "invalid", "wait: is not a time of up to 10 minutes", wait,
			   "?wait=10s");
		return;
	}
	ports_start(c, b, port, wait_ms);
}

void ports_open(struct call *c)
{
	struct box *b = call_box(c, 0);
	uint16_t port = b ? ports_param(c) : 0;
	struct err e;

	if (!port)
		return;
	if (ports_publish(b, port, call_flag(c, "public", 0), &e) < 0)
		call_fail(c, &e);
	else
		ports_start(c, b, port, 0);
}

void ports_close(struct call *c)
{
	struct box *b = call_box(c, 0);
	uint16_t port = b ? ports_param(c) : 0;
	struct err e;

	if (!port)
		return;
	if (ports_unpublish(b, port, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}
