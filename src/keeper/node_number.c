/* node_number.c - the number of this machine in its cluster: ids of new boxes begin with it, see
 * base/id.h. A server sends it when it connects. It is recorded in the run folder, so that the next
 * keeper fills its pool with ids that are right from the start. */
#include "base/cleanup.h"
#include "base/id.h"
#include "keeper/keeper_internal.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RECORD "node"

static uint32_t node_number_parse(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return end > text && *end == '\n' && n < ID_NODES ? (uint32_t)n : WIRE_NO_NODE;
}

void node_number_load(struct keeper *k)
{
	auto_fd int fd = openat(k->host.run, RECORD, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[16] = "";

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		id_set_node(node_number_parse(text));
}

static int node_number_record(const struct keeper *k, uint32_t number, struct err *e)
{
	auto_fd int fd = -1;

	if (number >= ID_NODES) {
		if (unlinkat(k->host.run, RECORD, 0) < 0 && errno != ENOENT)
			return err_sys(e, "remove the number of this node");
		return 0;
	}
	fd = openat(k->host.run, RECORD, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0 || dprintf(fd, "%u\n", number) < 0)
		return err_sys(e, "record the number of this node");
	return 0;
}

static void node_number_drop_from(struct keeper *k, struct pool_class *l)
{
	for (struct keeper_box *b = l->first, *next; b; b = next) {
		next = b->next;
		if (node_number_is_own(b))
			continue;
		pool_drop(k, b);
		teardown_kill(k, b);
	}
}

int node_number_is_own(const struct keeper_box *b)
{
	int number = id_node(b->meta.about.id);

	return (number < 0 ? ID_NODES : (uint32_t)number) == id_own_node();
}

void node_number_drop_others(struct keeper *k)
{
	for (unsigned i = 0; i < POOL_CLASSES; i++)
		node_number_drop_from(k, &k->pool_classes[i]);
	for (unsigned i = 0; i < ROOT_POOLS; i++)
		node_number_drop_from(k, &k->root_pools[i].boxes);
	for (unsigned i = 0; i < WIRE_TIER_COUNT * WARM_KINDS; i++)
		node_number_drop_from(k, &k->tier_pools[i / WARM_KINDS][i % WARM_KINDS].boxes);
}

void node_number_request(struct keeper *k, struct client *c, const struct frame *f)
{
	uint32_t number = ((const struct wire_node_number *)f)->number, before = id_own_node();
	struct frame done = sock_head(WIRE_DONE, f->ref);
	struct err e;

	if (number >= ID_NODES && number != WIRE_NO_NODE) {
		err_set(&e, ERR_INVALID, "node number %u: at most %u", number, ID_NODES - 1);
		client_error(k, c->number, f->ref, &e);
		return;
	}
	id_set_node(number);
	if (id_own_node() != before) {
		node_number_drop_others(k);
		pool_refill(k);
		if (node_number_record(k, number, &e) < 0) {
			client_error(k, c->number, f->ref, &e);
			return;
		}
	}
	client_send(k, c->number, &done, sizeof(done), -1);
}
