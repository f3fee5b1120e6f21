/* keeper_box.c - see keeper_box.h. */
#include "keeper/keeper_box.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "jail/launch.h"
#include "keeper/host_state.h"
#include "keeper/netns_pool.h"
#include "keeper/record_file.h"
#include "tier/tier.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static struct keeper_box **box_slot(struct kboxes *t, const char *id)
{
	return &t->bucket[id_hash(id) % KEEPER_BOX_BUCKETS];
}

struct keeper_box *keeper_box_new(struct kboxes *t, const char *id)
{
	struct keeper_box *b = calloc(1, sizeof(*b)), **s = box_slot(t, id);

	if (!b)
		abort();
	b->death = (struct source){ SRC_BOX, -1 };
	b->init = b->mounts = b->events = b->touched = -1;
	snprintf(b->meta.about.id, sizeof(b->meta.about.id), "%s", id);
	b->chain = *s;
	*s = b;
	t->count++;
	return b;
}

struct keeper_box *keeper_box_find(struct kboxes *t, const char *id)
{
	struct keeper_box *b = *box_slot(t, id);

	while (b && strcmp(b->meta.about.id, id) != 0)
		b = b->chain;
	return b;
}

struct keeper_box *keeper_box_after(struct kboxes *t, const char *id)
{
	struct keeper_box **s = t->bucket;

	if (id[0]) {
		struct keeper_box *b = keeper_box_find(t, id);

		if (b && b->chain)
			return b->chain;
		/* If the box was removed, list its bucket again: entries may be repeated, but none
		 * is missing. */
		s = box_slot(t, id) + !!b;
	}
	for (; s < t->bucket + KEEPER_BOX_BUCKETS; s++)
		if (*s)
			return *s;
	return NULL;
}

uint64_t keeper_box_disks(const struct kboxes *t)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < KEEPER_BOX_BUCKETS; i++)
		for (const struct keeper_box *b = t->bucket[i]; b; b = b->chain)
			sum += b->meta.disk_image ? b->meta.about.limits.disk_bytes : 0;
	return sum;
}

void keeper_box_free(struct kboxes *t, struct keeper_box *b)
{
	struct keeper_box **s = box_slot(t, b->meta.about.id);

	while (*s != b)
		s = &(*s)->chain;
	*s = b->chain;
	t->count--;
	own_close_fd(&b->death.fd);
	own_close_fd(&b->init);
	netns_free(b->net);
	own_close_fd(&b->mounts);
	own_close_fd(&b->events);
	own_close_fd(&b->touched);
	free(b->start);
	free(b->root);
	free(b);
}

int keeper_box_record(const struct host_state *h, const struct keeper_box *b, struct err *e)
{
	return record_file_write(h->records, b->place, &b->meta, e);
}

void keeper_box_socket(const struct keeper_box *b, char out_path[KEEPER_BOX_SOCKET])
{
	snprintf(out_path, KEEPER_BOX_SOCKET, "boxes/%s.sock", b->meta.about.id);
}

struct box_limits keeper_box_limits(const struct keeper_box *b)
{
	const struct wire_limits *l = &b->meta.about.limits;
	const struct tier *t = b->meta.about.tier ? tier_find(b->meta.about.tier) : NULL;
	struct box_limits lim = { .mem_bytes = l->mem_bytes,
				  .cpu_milli = l->cpu_milli,
				  .pids = l->pids };

	if (t && lim.mem_bytes)
		lim.mem_bytes = tier_outer_memory(t, lim.mem_bytes);
	if (t && lim.pids)
		lim.pids = lim.pids * t->pids_times + t->pids_extra;
	return lim;
}

int keeper_box_start(struct keeper_box *b, int to_init, struct err *e)
{
	auto_free void *start = steal(&b->start);

	return start ? sock_send(to_init, start, b->start_len, NULL, 0, NULL, 0, e) : 0;
}

int keeper_box_lift(int *fd, struct err *e)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);

	if (high < 0)
		return err_sys(e, "descriptor");
	close(*fd);
	*fd = high;
	return 0;
}

int keeper_box_disk_in_memory(const struct wire_limits *l)
{
	return !l->mem_bytes || l->disk_bytes <= l->mem_bytes / 2;
}
