/* layer_list.c - LAYER_LIST: the layers and the roots that are on the disk, by their ids, page by page. A
 * server compares them with its rows: one that was killed may have left layers without a row. */
#include "base/cleanup.h"
#include "keeper/keeper_internal.h"
#include "keeper/layer_tree.h"
#include "wire/sock.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_PER_FRAME = 512 };

struct layer_list {
	struct frame head;
	char id[LIST_PER_FRAME][WIRE_LAYER_ID];
};
_Static_assert(sizeof(struct layer_list) <= WIRE_MAX, "a page is one frame");

static int layer_list_order(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Keeps the smallest ids that are larger than `after`: the list is sorted and cut when it is full. */
static unsigned layer_list_read(int dir, const char *after, char out[][WIRE_LAYER_ID])
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	unsigned n = 0;

	while (d && (de = readdir(d)) != NULL) {
		if (!layer_tree_id_ok(de->d_name) || strcmp(de->d_name, after) <= 0)
			continue;
		memcpy(out[n++], de->d_name, TREE_ID + 1);
		if (n < 2 * LIST_PER_FRAME)
			continue;
		qsort(out, n, WIRE_LAYER_ID, layer_list_order);
		n = LIST_PER_FRAME;
	}
	if (d)
		closedir(d);
	else
		own_close_fd(&fd);
	qsort(out, n, WIRE_LAYER_ID, layer_list_order);
	return n < LIST_PER_FRAME ? n : LIST_PER_FRAME;
}

void layer_list_request(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_layer *w = (const struct wire_layer *)f;
	int roots = !!(f->flags & WIRE_LIST_ROOTS);
	char(*ids)[WIRE_LAYER_ID];
	struct layer_list out = { .head = sock_head(WIRE_LISTED, f->ref) };
	struct err e;
	unsigned n;

	if (layer_possible(k, &e) < 0 ||
	    (w->id[0] && !layer_tree_id_ok(w->id) &&
	     err_set(&e, ERR_INVALID, "a layer's id has 64 hexadecimal digits") < 0)) {
		client_error(k, c->number, f->ref, &e);
		return;
	}
	ids = calloc(2 * LIST_PER_FRAME, sizeof(*ids));
	if (!ids)
		abort();
	n = layer_list_read(roots ? k->host.roots_dir : k->host.layers_dir, w->id, ids);
	memcpy(out.id, ids, n * sizeof(*ids));
	free(ids);
	client_send(k, c->number, &out, sizeof(out.head) + n * sizeof(out.id[0]), -1);
}
