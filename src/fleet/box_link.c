/* box_link.c - see box_link.h. */
#include "fleet/box_link.h"
#include "base/cleanup.h"
#include "fleet/box.h"
#include "wire/sock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct box_link {
	struct port_conn conn;
	struct egress_client *egress_client;
	unsigned generation; /* of the connection on which egress has sent ref */
	uint32_t ref;
	uint16_t port;
	char name[BOX_LINK_NAME + 1];
};

int box_link_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n && n <= BOX_LINK_NAME && !name[n] && name[0] != '-' && name[n - 1] != '-' &&
	       name[strspn(name, "0123456789")] && strcmp(name, "localhost") != 0;
}

/* ---- lines of a row ---- */

int box_link_is(const char *line)
{
	return !strncmp(line, "link ", 5);
}

json_t *box_link_json(const char *lines)
{
	json_t *all = lines ? json_loads(lines, 0, NULL) : NULL, *line, *links = json_object();
	size_t i;

	json_array_foreach(all, i, line)
	{
		char name[BOX_LINK_NAME + 1], id[ID_MAX + 1];

		_Static_assert(BOX_LINK_NAME == 63 && ID_MAX == 15, "the widths in the format");
		if (sscanf(json_string_value(line), "link %63s %15s", name, id) == 2)
			json_object_set_new(links, name, json_string(id));
	}
	json_decref(all);
	return links;
}

int box_link_some(const char *lines)
{
	json_t *links = box_link_json(lines);
	int some = json_object_size(links) > 0;

	json_decref(links);
	return some;
}

/* ---- connections ---- */

static void box_link_refuse(struct egress_client *g, uint32_t ref, const struct err *e)
{
	struct wire_error f = { .head = sock_head(WIRE_ERROR, ref),
				.kind = e->kind,
				.sys = e->sys };

	memcpy(f.msg, e->msg, sizeof(f.msg));
	frame_conn_send(&g->post, &f, sizeof(f), NULL, 0, -1);
}

static void box_link_done(struct port_conn *conn, int take_fd, const struct err *e)
{
	struct box_link *x = loop_owner(conn, struct box_link, conn);
	struct egress_client *g = x->egress_client;
	struct frame f = sock_head(WIRE_EGRESS_LINKED, x->ref);
	/* Another egress process may use the same ref for another box. */
	int asked = x->generation == g->generation;
	auto_fd int fd = take_fd;
	struct err own;

	if (asked && e) {
		err_set(&own, e->kind, "%s:%u, box %s: %.150s", x->name, x->port, conn->box->row.id,
			e->msg);
		box_link_refuse(g, x->ref, &own);
	} else if (asked) {
		frame_conn_send(&g->post, &f, sizeof(f), NULL, 0, steal_fd(&fd));
	}
	free(x);
}

static struct box *box_link_target(struct fleet *f, const struct box *b, const char *name,
				   struct err *e)
{
	json_t *links = b ? box_link_json(b->row.network) : NULL, *found;
	char id[ID_MAX + 1] = "";
	struct box *to;

	found = json_object_get(links, name);
	snprintf(id, sizeof(id), "%s", found ? json_string_value(found) : "");
	json_decref(links);
	if (!id[0]) {
		err_set(e, ERR_NOT_FOUND, "this box has no link '%s'", name);
		return NULL;
	}
	to = fleet_find(f, id);
	if (!to || strcmp(to->row.team, b->row.team) != 0 || to->is_installer) {
		err_set(e, ERR_NOT_FOUND, "%s: box %s no longer exists", name, id);
		return NULL;
	}
	if (to->state != BOX_RUNNING) {
		err_set(e, ERR_CONFLICT, "%s: box %s is %s", name, id, box_state_name(to->state));
		return NULL;
	}
	return to;
}

void box_link_open(struct egress_client *g, const struct wire_egress_link *f, size_t len)
{
	struct box_link *x = calloc(1, sizeof(*x));
	char id[WIRE_ID];
	struct box *to;
	struct err e;

	if (!x)
		abort();
	x->egress_client = g;
	x->generation = g->generation;
	x->ref = f->head.ref;
	x->port = f->port;
	snprintf(id, sizeof(id), "%.*s", WIRE_ID - 1, f->id);
	snprintf(x->name, sizeof(x->name), "%.*s", (int)(len - sizeof(*f)), (const char *)(f + 1));
	to = box_link_target(g->fleet, fleet_find(g->fleet, id), x->name, &e);
	x->conn.done = box_link_done;
	if (to && port_conn_open(&x->conn, to, x->port, &e) == 0) {
		box_touch(to);
		return;
	}
	box_link_refuse(g, x->ref, &e);
	free(x);
}
