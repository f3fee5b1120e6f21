/* layer.c - read-only layers, named by their content; layer_store.h stores them.
 *
 * Whether a layer is in use is decided here, on the loop: a box has it in its record as soon as it
 * is requested, and a deleted layer loses its name before another request is handled. */
#include "base/id.h"
#include "base/cleanup.h"
#include "jail/launch.h"
#include "jail/feature.h"
#include "keeper/keeper_internal.h"
#include "keeper/layer_erofs.h"
#include "keeper/layer_store.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(WIRE_CHAIN + WIRE_LAYERS + WIRE_ROOT_LAYERS == JAIL_LOWERS,
	       "what may be asked for can be mounted");

_Static_assert(sizeof(struct wire_layer) == sizeof(struct wire_root),
	       "LAYER and ROOT have the same fields");

enum { JOBS_MOST = 16 }; /* requests in progress: each is a process or two */

struct layer_job {
	struct source src; /* first, so that a source is its job */
	uint64_t client;
	uint32_t ref;
	uint8_t answer; /* WIRE_LAYER, WIRE_ROOT, WIRE_CHECKPOINTED or WIRE_DONE */
	char box[WIRE_ID], cgroup[WIRE_ID]; /* of a CHECKPOINT; else empty */
	struct root root;                   /* WIRE_ROOT: the one that is made or checked */
	uint32_t uid_base;                  /* UNPACK: the ids of its process; 0: none */
	struct layer_job *next;
};

int layer_possible(const struct keeper *k, struct err *e)
{
	const uint64_t need = FEATURE_BIT(FEATURE_IDMAP) | FEATURE_BIT(FEATURE_OVERLAY);

	if (k->host.layer_store < 0)
		return err_set(e, ERR_DENIED, "layers need a keeper that runs as root");
	if ((k->host.layers & need) != need)
		return err_set(e, ERR_DENIED,
			       "layers need overlays and mounts with shifted ids on this host");
	return 0;
}

int layer_check(const struct keeper *k, const struct wire_create *w, struct err *e)
{
	if (!w->nlayers)
		return 0;
	if (w->nlayers > WIRE_LAYERS)
		return err_set(e, ERR_INVALID, "%u layers: a box may have %d", w->nlayers,
			       WIRE_LAYERS);
	for (uint32_t i = 0; i < w->nlayers; i++) {
		if (!layer_tree_id_ok(w->layer[i]))
			return err_set(e, ERR_INVALID, "a layer's id has 64 hexadecimal digits");
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(w->layer[i], w->layer[j]) == 0)
				return err_set(e, ERR_INVALID, "layer %.12s twice in one box",
					       w->layer[i]);
	}
	return layer_possible(k, e);
}

static const char *layer_box_with(struct keeper *k, const char *id)
{
	for (struct keeper_box *b = keeper_box_after(&k->boxes, ""); b;
	     b = keeper_box_after(&k->boxes, b->meta.about.id))
		for (uint32_t i = 0; i < b->meta.nlayers; i++)
			if (strcmp(b->meta.layer[i], id) == 0)
				return b->meta.about.id;
	return NULL;
}

/* A root that has the layer, or that is being made of it. */
static const struct root *layer_root_with(const struct keeper *k, const char *id)
{
	for (const struct layer_job *j = k->layer_jobs; j; j = j->next)
		for (uint32_t i = 0; i < j->root.nlayers; i++)
			if (strcmp(j->root.layer[i], id) == 0)
				return &j->root;
	return root_table_user(&k->roots, id);
}

static int layer_unused(struct keeper *k, const char *id, struct err *e)
{
	const char *box = layer_box_with(k, id);
	const struct root *r = layer_root_with(k, id);

	if (box)
		return err_set(e, ERR_CONFLICT, "layer %.12s is used by box %s", id, box);
	if (r)
		return err_set(e, ERR_CONFLICT, "layer %.12s is part of root %.12s", id, r->id);
	return 0;
}

int layer_makes_root(const struct keeper *k, const char *id)
{
	for (const struct layer_job *j = k->layer_jobs; j; j = j->next)
		if (strcmp(j->root.id, id) == 0)
			return 1;
	return 0;
}

/* ---- requests ---- */

static int layer_do_jobs(const struct keeper *k)
{
	int n = 0;

	for (const struct layer_job *j = k->layer_jobs; j; j = j->next)
		n++;
	return n;
}

int layer_may_order(const struct keeper *k, struct err *e)
{
	if (layer_do_jobs(k) < JOBS_MOST)
		return 0;
	return err_set(e, ERR_LIMIT, "%d layers are being made or removed already", JOBS_MOST);
}

int layer_order(struct keeper *k, struct client *c, const struct frame *f,
		const struct layer_store_request *o, int conn, uint8_t answer, struct err *e)
{
	return layer_order_with(k, c, f, o, &conn, conn >= 0, answer, e);
}

int layer_order_with(struct keeper *k, struct client *c, const struct frame *f,
		     const struct layer_store_request *o, const int *fds, unsigned nfds,
		     uint8_t answer, struct err *e)
{
	struct layer_job *j;
	int sock;

	if (layer_may_order(k, e) < 0)
		return -1;
	sock = layer_store_ask_with(k->host.layer_store, o, fds, nfds, e);
	if (sock < 0 && e->sys == EPIPE) {
		service_renew(k, HOST_LAYERS);
		sock = layer_store_ask_with(k->host.layer_store, o, fds, nfds, e);
	}
	if (sock < 0)
		return -1;
	if (keeper_box_lift(&sock, e) < 0) {
		close(sock);
		return -1;
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		abort();
	*j = (struct layer_job){ .src = { SRC_LAYER, sock },
				 .client = c->number,
				 .ref = f->ref,
				 .answer = answer,
				 .root = o->root,
				 .uid_base =
					 o->what == LAYER_STORE_UNPACK ||
							 o->what == LAYER_STORE_CHECKPOINT_IMPORT
						 ? o->uid
						 : 0,
				 .next = k->layer_jobs };
	if (o->what == LAYER_STORE_CHECKPOINT) {
		memcpy(j->box, o->checkpoint.box, sizeof(j->box));
		memcpy(j->cgroup, o->checkpoint.cgroup, sizeof(j->cgroup));
	}
	if (keeper_watch(k, &j->src, e) < 0) {
		close(sock);
		free(j);
		return -1;
	}
	k->layer_jobs = j;
	return 0;
}

/* An id that no box has: between two ranges there is one that belongs to neither. */
static uint32_t writers_id(const struct keeper *k)
{
	return RANGE_FIRST_UID + k->ranges.first * RANGE_STRIDE + RANGE_SIZE;
}

static int text_ok(const char *text)
{
	return strnlen(text, WIRE_PATH) < WIRE_PATH;
}

static int layer_make_folder(const struct keeper *k, const struct wire_layer_make *w,
			     struct layer_store_request *o, struct err *e)
{
	if (!text_ok(w->path) || w->path[0] != '/' || !text_ok(w->place) ||
	    (w->place[0] && !layer_tree_path_ok(w->place)))
		return err_set(e, ERR_INVALID,
			       "a layer is an absolute folder of a box, and its "
			       "place one that layers may have");
	o->what = LAYER_STORE_MAKE;
	o->uid = writers_id(k);
	snprintf(o->path, sizeof(o->path), "%s", w->path);
	snprintf(o->place, sizeof(o->place), "%s", w->place);
	return 0;
}

static int layer_make_upper(const struct keeper_box *b, const struct wire_layer_make *w,
			    struct layer_store_request *o, struct err *e)
{
	if (w->path[0] || w->place[0])
		return err_set(e, ERR_INVALID,
			       "the writable layer of a box has no path and no place");
	o->what = LAYER_STORE_UPPER;
	o->uid = b->meta.about.uid_base;
	return 0;
}

static int layer_make(struct keeper *k, struct client *c, const struct wire_layer_make *w,
		      struct err *e)
{
	struct layer_store_request o = { .bytes_most = w->bytes_most, .files_most = w->files_most };
	auto_fd int conn = -1;
	struct keeper_box *b = NULL;
	char path[KEEPER_BOX_SOCKET];
	int asked;

	if (w->head.flags & ~WIRE_LAYER_UPPER)
		return err_set(e, ERR_INVALID, "LAYER_MAKE has no flag %#x", w->head.flags);
	if (strnlen(w->box, sizeof(w->box)) < sizeof(w->box) && id_valid(w->box))
		b = keeper_box_find(&k->boxes, w->box);
	if (!b || b->meta.about.state != WIRE_BOX_TAKEN)
		return err_set(e, ERR_NOT_FOUND, "no such box");
	if (b->meta.about.frozen)
		return err_set(e, ERR_CONFLICT, "box %s is frozen", b->meta.about.id);
	if (w->head.flags & WIRE_LAYER_UPPER && tier_box_supports(k, b, WIRE_NEED_UPPER, e) < 0)
		return -1;
	asked = w->head.flags & WIRE_LAYER_UPPER ? layer_make_upper(b, w, &o, e)
						 : layer_make_folder(k, w, &o, e);
	if (asked < 0)
		return -1;
	keeper_box_socket(b, path);
	conn = sock_connect_now(path, e);
	return conn < 0 ? -1 : layer_order(k, c, &w->head, &o, conn, WIRE_LAYER, e);
}

int layer_order_removal(struct keeper *k, struct client *c, const struct frame *f, const char *name,
			struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_REMOVE };
	char id[ID_MAX + 1];

	/* A random name: a layer of the same name may have been made and deleted before, and its
	 * removal may be in progress. */
	if (layer_may_order(k, e) < 0 || id_new(id, e) < 0)
		return -1;
	snprintf(o.id, sizeof(o.id), "drop.%s", id);
	if (renameat(k->host.layers_dir, name, k->host.layers_dir, o.id) < 0)
		return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, "there is no layer %.12s", name)
				       : err_sys(e, "layer %.12s", name);
	layer_erofs_remove(k->host.layers_dir, name);
	return layer_order(k, c, f, &o, -1, WIRE_DONE, e);
}

static int layer_drop(struct keeper *k, struct client *c, const struct wire_layer *w, struct err *e)
{
	return layer_unused(k, w->id, e) < 0 ? -1 : layer_order_removal(k, c, &w->head, w->id, e);
}

static int layer_do_check(struct keeper *k, struct client *c, const struct wire_layer *w,
			  struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_CHECK };

	memcpy(o.id, w->id, TREE_ID);
	return layer_order(k, c, &w->head, &o, -1, WIRE_LAYER, e);
}

void layer_request(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_layer *w = (const struct wire_layer *)f;
	struct err e;
	int done;

	if (layer_possible(k, &e) < 0)
		done = -1;
	else if (f->type == WIRE_LAYER_MAKE)
		done = layer_make(k, c, (const struct wire_layer_make *)f, &e);
	else if (!layer_tree_id_ok(w->id))
		done = err_set(&e, ERR_INVALID, "a layer's id has 64 hexadecimal digits");
	else
		done = f->type == WIRE_LAYER_DROP ? layer_drop(k, c, w, &e)
						  : layer_do_check(k, c, w, &e);
	if (done < 0)
		client_error(k, c->number, f->ref, &e);
}

/* ---- archives ---- */

static int layer_unpack(struct keeper *k, struct client *c, const struct wire_layer_unpack *w,
			int archive, struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_UNPACK,
					 .bytes_most = w->bytes_most,
					 .files_most = w->files_most };

	if (w->diff[0] && !layer_tree_id_ok(w->diff))
		return err_set(e, ERR_INVALID, "a diff id has 64 hexadecimal digits");
	memcpy(o.diff, w->diff, sizeof(o.diff));
	if (uid_range_take(&k->ranges, &o.uid, e) < 0)
		return -1;
	if (layer_order(k, c, &w->head, &o, archive, WIRE_LAYER, e) == 0)
		return 0;
	uid_range_free(&k->ranges, o.uid);
	return -1;
}

static int layer_export(struct keeper *k, struct client *c, const struct wire_layer *w, int archive,
			struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_EXPORT };
	const struct root *r;

	if (!layer_tree_id_ok(w->id))
		return err_set(e, ERR_INVALID, "a layer's id has 64 hexadecimal digits");
	memcpy(o.id, w->id, TREE_ID);
	if (w->head.flags & WIRE_LAYER_OF_ROOT) {
		r = root_table_find(&k->roots, w->id);
		if (!r || !r->merged)
			return err_set(e, ERR_NOT_FOUND, "there is no merged root %.12s", w->id);
		root_merged_name(w->id, o.id);
	}
	return layer_order(k, c, &w->head, &o, archive, WIRE_LAYER, e);
}

void layer_archive_request(struct keeper *k, struct client *c, const struct frame *f, int archive)
{
	struct err e;
	int done;

	if (layer_possible(k, &e) < 0)
		done = -1;
	else if (archive < 0)
		done = err_set(&e, ERR_INVALID, "the request has no descriptor of an archive");
	else
		done = f->type == WIRE_LAYER_UNPACK
			       ? layer_unpack(k, c, (const struct wire_layer_unpack *)f, archive,
					      &e)
			       : layer_export(k, c, (const struct wire_layer *)f, archive, &e);
	if (done < 0)
		client_error(k, c->number, f->ref, &e);
}

/* ---- answers ---- */

void layer_answered(struct keeper *k, struct source *s)
{
	struct layer_job *j = (struct layer_job *)s, **at = &k->layer_jobs;
	struct wire_layer out = { .head = sock_head(j->answer, j->ref) }; /* or a ROOT */
	struct layer_store_reply a;
	struct err e;
	int done = layer_store_reply(s->fd, &a, NULL, &e);

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	if (j->uid_base)
		uid_range_free(&k->ranges, j->uid_base);
	if (j->box[0]) {
		procimage_files_done(k, j->box, done == 0);
		checkpoint_taken(k, j->box, j->cgroup);
	}
	if (done < 0) {
		client_error(k, j->client, j->ref, &e);
	} else if (j->answer == WIRE_CHECKPOINTED) {
		a.checkpointed.head = sock_head(WIRE_CHECKPOINTED, j->ref);
		client_send(k, j->client, &a.checkpointed, sizeof(a.checkpointed), -1);
	} else if (j->answer == WIRE_DONE) {
		client_send(k, j->client, &out.head, sizeof(out.head), -1);
	} else {
		if (j->answer == WIRE_ROOT)
			root_table_add(&k->roots, &j->root);
		snprintf(out.id, sizeof(out.id), "%.64s", a.sum.id);
		out.bytes = a.sum.bytes;
		out.files = a.sum.files;
		out.skipped = a.skipped;
		client_send(k, j->client, &out, sizeof(out), -1);
	}
	keeper_unwatch(k, &j->src);
	free(j);
}
