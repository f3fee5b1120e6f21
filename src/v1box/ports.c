/* ports.c - see ports.h. */
#include "v1box/ports.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- the list ---- */

static json_t *surface_of(const struct box *b)
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

int ports_is_open(const struct box *b, uint16_t port)
{
	json_t *surface = surface_of(b);
	const json_t *ports = json_object_get(surface, "ports");
	int found = ports_find(ports, port) < json_array_size(ports);

	json_decref(surface);
	return found;
}

/* Writes the new value; on failure nothing has changed. */
static int change_surface(struct box *b, const json_t *surface, struct err *e)
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

static int ports_add(struct box *b, json_t *surface, uint16_t port, struct err *e)
{
	json_t *ports = json_object_get(surface, "ports");

	if (!json_is_array(ports)) {
		json_object_set_new(surface, "ports", json_array());
		ports = json_object_get(surface, "ports");
	}
	if (ports_find(ports, port) < json_array_size(ports))
		return 0;
	if (json_array_size(ports) >= PORTS_MOST)
		return err_set(e, ERR_LIMIT, "a box has at most %d open ports", PORTS_MOST);
	json_array_append_new(ports, json_integer(port));
	return change_surface(b, surface, e);
}

int ports_publish(struct box *b, uint16_t port, struct err *e)
{
	json_t *surface = surface_of(b);
	int rc = ports_add(b, surface, port, e);

	json_decref(surface);
	return rc;
}

static int close_port(struct box *b, uint16_t port, struct err *e)
{
	json_t *surface = surface_of(b), *ports = json_object_get(surface, "ports");
	size_t i = ports_find(ports, port);
	int rc = 0;

	if (i < json_array_size(ports)) {
		json_array_remove(ports, i);
		rc = change_surface(b, surface, e);
	}
	json_decref(surface);
	return rc;
}

/* ---- the address ---- */

static size_t name_len(const char *host)
{
	return *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
}

static int is_loopback(const char *host)
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
	const char *const *all = c->api->conf.hosts;
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
	return c->req->unix_peer || is_loopback(host) ? "localhost" : NULL;
}

/* 1: the client uses TLS, to this server or to a proxy on this machine. */
static int is_secure(const struct http_req *r)
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
		snprintf(out, PORTS_URL, "%s://%u-%s.%s%.6s", is_secure(c->req) ? "https" : "http",
			 port, box, domain, host + name_len(host));
}

/* ---- the routes ---- */

static json_t *port_json(const struct call *c, const struct box *b, uint16_t port, int open)
{
	char url[PORTS_URL];

	ports_url(c, b->row.id, port, url);
	return json_pack("{s:s, s:i, s:b, s:s?}", "box", b->row.id, "port", port, "open", open,
			 "url", url[0] ? url : NULL);
}

/* 0: not a port, and that was answered. */
static uint16_t port_of(struct call *c)
{
	uint32_t port;
	struct err e;

	if (units_parse_count(call_param(c, 1), 65535, &port, &e) < 0) {
		call_error(c, 400, "invalid", "the port is invalid", call_param(c, 1),
			   "1 to 65535");
		return 0;
	}
	return (uint16_t)port;
}

void ports_list(struct call *c)
{
	struct box *b = call_box_peek(c, 0);
	json_t *surface, *items, *one;
	size_t i;

	if (!b)
		return;
	items = json_array();
	surface = surface_of(b);
	json_array_foreach(json_object_get(surface, "ports"), i, one)
		json_array_append_new(items, port_json(c, b, (uint16_t)json_integer_value(one), 1));
	json_decref(surface);
	call_list(c, items, NULL);
}

void ports_show(struct call *c)
{
	struct box *b = call_box_peek(c, 0);
	uint16_t port = b ? port_of(c) : 0;

	if (port)
		call_json(c, 200, port_json(c, b, port, ports_is_open(b, port)));
}

void ports_open(struct call *c)
{
	struct box *b = call_box(c, 0);
	uint16_t port = b ? port_of(c) : 0;
	struct err e;

	if (!port)
		return;
	if (ports_publish(b, port, &e) < 0)
		call_fail(c, &e);
	else
		call_json(c, 200, port_json(c, b, port, 1));
}

void ports_close(struct call *c)
{
	struct box *b = call_box(c, 0);
	uint16_t port = b ? port_of(c) : 0;
	struct err e;

	if (!port)
		return;
	if (close_port(b, port, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}
