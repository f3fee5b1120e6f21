/* node_leases.c - see node_leases.h. */
#include "daemon/node_leases.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cluster/lease.h"
#include "fleet/box.h"
#include "store/node_epoch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NODE_LEASES_MARK "last_lease"
enum { NODE_LEASES_GATEWAYS = 32, NODE_LEASES_LOOK_MS = 50, NODE_LEASES_MARK_LEN = 20 };

struct node_leases {
	struct api *api;
	struct tunnel_client *client;
	struct node_lease lease;
	uint32_t numbers
		[NODE_LEASES_GATEWAYS]; /* of gateways, by their position in cluster.gateways */
	struct timer look;              /* while superseded boxes end */
	uint64_t until_ms;              /* end of the last lease; 0: none since the start */
	/* When a heartbeat was acknowledged last, in ms since 1970: for the first return after a start. */
	int mark;
	int64_t marked_ms; /* before this start; 0: never */
};

/* ---- rule 9 ---- */

static int node_leases_is_superseded(const struct box *b, const json_t *owned)
{
	const json_t *row;
	size_t i;

	json_array_foreach(owned, i, row)
	{
		const char *id = json_string_value(json_object_get(row, "superseded"));

		if (id && !strcmp(id, b->row.id) &&
		    json_integer_value(json_object_get(row, "epoch")) > b->row.epoch)
			return 1;
	}
	return 0;
}

static int node_leases_owns(const struct box *b, const char *kind, const char *name,
			    const json_t *owned)
{
	const json_t *row;
	size_t i;

	json_array_foreach(owned, i, row)
	{
		const char *team = json_string_value(json_object_get(row, "team")),
			   *what = json_string_value(json_object_get(row, "kind")),
			   *text = json_string_value(json_object_get(row, "name"));

		if (team && what && text && !strcmp(team, b->row.team) && !strcmp(what, kind) &&
		    !strcmp(text, name))
			return 1;
	}
	return 0;
}

/* A name that the coordinator gave to another node, or freed, while this one was away. */
static void node_leases_drop_names(struct box *b, const json_t *owned)
{
	int name = b->row.name[0] && !node_leases_owns(b, "n", b->row.name, owned),
	    session = b->row.session[0] && !node_leases_owns(b, "s", b->row.session, owned);
	json_t *data;
	struct err e;

	if (!name && !session)
		return;
	data = json_pack("{ss}", name ? "name" : "session", name ? b->row.name : b->row.session);
	if (name)
		b->row.name[0] = 0;
	if (session)
		b->row.session[0] = 0;
	if (store_box_update(b->fleet->store, &b->row, &e) < 0)
		log_error("a name that is no longer this node's cannot be removed",
			  LOG_S("box", b->row.id), LOG_E(&e));
	fleet_emit(b->fleet, b->row.team, b->row.id, "box.name_lost", data);
}

/* Boxes that end; ids of later boxes do not matter. */
static int node_leases_has_ending(const struct node_leases *x)
{
	for (struct box *b = fleet_next(&x->api->fleet, NULL); b; b = fleet_next(&x->api->fleet, b))
		if (b->because == CAUSE_SUPERSEDED)
			return 1;
	return 0;
}

static void node_leases_use(struct node_leases *x)
{
	struct fleet *f = &x->api->fleet;
	uint64_t left = node_lease_left_ms(&x->lease, loop_now_ms());

	if (!left)
		return;
	f->lease.until_ms = x->until_ms = x->lease.until_ms;
	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		box_send_lease(b);
}

static void node_leases_look(struct timer *t)
{
	struct node_leases *x = loop_owner(t, struct node_leases, look);

	if (node_leases_has_ending(x)) {
		timer_set(&x->look, NODE_LEASES_LOOK_MS);
		return;
	}
	tunnel_client_set_epoch(x->client, (uint64_t)x->lease.epoch);
	node_lease_settled(&x->lease);
	node_leases_use(x);
}

static void node_leases_end_superseded(struct node_leases *x, const json_t *owned)
{
	struct fleet *f = &x->api->fleet;

	for (struct box *b = fleet_next(f, NULL), *next; b; b = next) {
		next = fleet_next(f, b);
		if (b->because == CAUSE_EXIT && node_leases_is_superseded(b, owned)) {
			log_warn("box was restarted on another node, and ends here",
				 LOG_S("box", b->row.id));
			box_end(b, CAUSE_SUPERSEDED, NULL);
		}
	}
}

/* ---- the time of the last lease, also of an earlier process ---- */

static int64_t node_leases_unix_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int node_leases_open_mark(struct node_leases *x, const char *folder, struct err *e)
{
	auto_fd int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[NODE_LEASES_MARK_LEN + 1] = "";

	x->mark = dir < 0 ? -1 : openat(dir, NODE_LEASES_MARK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (x->mark < 0)
		return err_sys(e, "open %.160s/" NODE_LEASES_MARK, folder);
	if (pread(x->mark, text, NODE_LEASES_MARK_LEN, 0) > 0)
		x->marked_ms = strtoll(text, NULL, 10);
	return 0;
}

/* Not synchronised: after the end of the machine its boxes have ended, too. */
static void node_leases_put_mark(const struct node_leases *x)
{
	char text[NODE_LEASES_MARK_LEN + 1];

	snprintf(text, sizeof(text), "%-*lld", NODE_LEASES_MARK_LEN,
		 (long long)node_leases_unix_ms());
	if (pwrite(x->mark, text, NODE_LEASES_MARK_LEN, 0) < 0)
		return; /* the disk is full: the next return states a longer time */
}

static int64_t node_leases_away_ms(const struct node_leases *x)
{
	if (x->until_ms > LEASE_NODE_MS)
		return (int64_t)(loop_now_ms() - (x->until_ms - LEASE_NODE_MS));
	return x->marked_ms > 0 ? node_leases_unix_ms() - x->marked_ms : -1;
}

/* Boxes that have stayed here can be reached again. */
static void node_leases_report_return(struct node_leases *x)
{
	struct fleet *f = &x->api->fleet;
	int64_t away_ms = node_leases_away_ms(x);

	for (struct box *b = fleet_next(f, NULL); b && away_ms >= 0; b = fleet_next(f, b))
		if (b->because == CAUSE_EXIT && !b->is_spare)
			fleet_emit(f, b->row.team, b->row.id, "box.reachable",
				   json_pack("{sI}", "unreachable_ms", (json_int_t)away_ms));
}

static void node_leases_return(struct node_leases *x, int64_t before, const json_t *owned)
{
	struct fleet *f = &x->api->fleet;
	struct err e;

	log_info("this node has a new epoch", LOG_U("epoch", (uint64_t)x->lease.epoch),
		 LOG_U("before", (uint64_t)before));
	f->lease.until_ms = 0;
	node_leases_end_superseded(x, owned);
	/* Before the first epoch no name was given by the coordinator. */
	for (struct box *b = fleet_next(f, NULL); b && before; b = fleet_next(f, b))
		if (b->because == CAUSE_EXIT)
			node_leases_drop_names(b, owned);
	if (before)
		node_leases_report_return(x);
	f->lease.epoch = x->lease.epoch;
	/* Not stored: after a restart of the server the same return happens again. */
	if (store_node_epoch_set(f->store, x->lease.epoch, &e) < 0)
		log_error("the epoch of this node cannot be stored", LOG_E(&e));
	timer_set(&x->look, 0);
}

/* ---- hooks ---- */

void node_leases_greeted(struct node_leases *x, unsigned gateway, uint32_t number, uint64_t epoch,
			 const json_t *owned)
{
	int64_t before = x->lease.epoch;
	enum node_lease_greeting how;

	if (gateway >= NODE_LEASES_GATEWAYS)
		return;
	x->numbers[gateway] = number;
	node_lease_opened(&x->lease, (int)number);
	how = node_lease_greeted(&x->lease, (int)number, (int64_t)epoch);
	if (how == NODE_GREETING_STALE)
		tunnel_client_close(x->client, gateway,
				    "its hello has an older epoch than this node");
	else if (x->lease.epoch != before)
		node_leases_return(x, before, owned);
	else
		node_leases_end_superseded(x, owned);
}

void node_leases_acknowledged(struct node_leases *x, unsigned gateway, uint64_t sent_ms)
{
	if (gateway >= NODE_LEASES_GATEWAYS)
		return;
	node_lease_acked_at(&x->lease, (int)x->numbers[gateway], sent_ms);
	node_leases_use(x);
	if (node_leases_left_ms(x))
		node_leases_put_mark(x);
}

void node_leases_closed(struct node_leases *x, unsigned gateway)
{
	if (gateway < NODE_LEASES_GATEWAYS)
		node_lease_closed(&x->lease, (int)x->numbers[gateway]);
}

uint64_t node_leases_left_ms(const struct node_leases *x)
{
	return x ? node_lease_left_ms(&x->lease, loop_now_ms()) : 0;
}

/* ---- life ---- */

int node_leases_new(struct node_leases **out, struct api *a, const char *folder, struct err *e)
{
	struct node_leases *x = calloc(1, sizeof(*x));
	int64_t epoch;

	if (!x)
		abort();
	if (store_node_epoch_get(a->store, &epoch, e) < 0) {
		free(x);
		return err_in(e, "the epoch of this node");
	}
	if (node_leases_open_mark(x, folder, e) < 0) {
		free(x);
		return -1;
	}
	x->api = a;
	node_lease_init(&x->lease, epoch);
	a->fleet.lease = (struct fleet_lease){ .is_node = 1, .epoch = epoch };
	timer_init(&x->look, a->loop, node_leases_look);
	*out = x;
	return 0;
}

void node_leases_start(struct node_leases *x, struct tunnel_client *client)
{
	x->client = client;
	tunnel_client_set_epoch(client, (uint64_t)x->lease.epoch);
}

void node_leases_free(struct node_leases *x)
{
	if (!x)
		return;
	timer_fini(&x->look);
	close(x->mark);
	free(x);
}
