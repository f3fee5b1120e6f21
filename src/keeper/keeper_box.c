/* keeper_box.c - see keeper_box.h. */
#include "keeper/keeper_box.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "jail/launch.h"
#include "keeper/host_state.h"
#include "keeper/netns_pool.h"
#include "keeper/record_file.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static struct kbox **slot(struct kboxes *t, const char *id)
{
	return &t->bucket[id_hash(id) % KBOX_BUCKETS];
}

struct kbox *kbox_new(struct kboxes *t, const char *id)
{
	struct kbox *b = calloc(1, sizeof(*b)), **s = slot(t, id);

	if (!b)
		abort();
	b->death = (struct source){ SRC_BOX, -1 };
	b->init = b->mounts = -1;
	snprintf(b->meta.about.id, sizeof(b->meta.about.id), "%s", id);
	b->chain = *s;
	*s = b;
	t->count++;
	return b;
}

struct kbox *kbox_find(struct kboxes *t, const char *id)
{
	struct kbox *b = *slot(t, id);

	while (b && strcmp(b->meta.about.id, id) != 0)
		b = b->chain;
	return b;
}

struct kbox *kbox_after(struct kboxes *t, const char *id)
{
	struct kbox **s = t->bucket;

	if (id[0]) {
		struct kbox *b = kbox_find(t, id);

		if (b && b->chain)
			return b->chain;
		/* If it has gone, its neighbours may not have been told yet: rather twice than never. */
		s = slot(t, id) + !!b;
	}
	for (; s < t->bucket + KBOX_BUCKETS; s++)
		if (*s)
			return *s;
	return NULL;
}

uint64_t kbox_disks(const struct kboxes *t)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < KBOX_BUCKETS; i++)
		for (const struct kbox *b = t->bucket[i]; b; b = b->chain)
			sum += b->meta.disk_image ? b->meta.about.limits.disk_bytes : 0;
	return sum;
}

void kbox_free(struct kboxes *t, struct kbox *b)
{
	struct kbox **s = slot(t, b->meta.about.id);

	while (*s != b)
		s = &(*s)->chain;
	*s = b->chain;
	t->count--;
	own_close_fd(&b->death.fd);
	own_close_fd(&b->init);
	net_free(b->net);
	own_close_fd(&b->mounts);
	free(b->start);
	free(b);
}

int kbox_record(const struct host *h, const struct kbox *b, struct err *e)
{
	return records_write(h->records, b->place, &b->meta, e);
}

void kbox_socket(const struct kbox *b, char out_path[KBOX_SOCKET])
{
	snprintf(out_path, KBOX_SOCKET, "boxes/%s.sock", b->meta.about.id);
}

struct box_limits kbox_limits(const struct kbox *b)
{
	const struct wire_limits *l = &b->meta.about.limits;

	return (struct box_limits){ .mem_bytes = l->mem_bytes, .cpu_milli = l->cpu_milli, .pids = l->pids };
}

int kbox_start(struct kbox *b, int to_init, struct err *e)
{
	auto_free void *start = steal(&b->start);

	return start ? sock_send(to_init, start, b->start_len, NULL, 0, NULL, 0, e) : 0;
}

int kbox_lift(int *fd, struct err *e)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);

	if (high < 0)
		return err_sys(e, "descriptor");
	close(*fd);
	*fd = high;
	return 0;
}

int kbox_disk_in_memory(const struct wire_limits *l)
{
	return !l->mem_bytes || l->disk_bytes <= l->mem_bytes / 2;
}
