/* checkpoint.c - requests for checkpoints: the files of a running box, captured, and boxes that start from them.
 *
 * The layer store does the work (checkpoint_store.h). A box is stopped for a moment by it; the record has that
 * before, and until it has answered. If it ends early, or this keeper does, the box is thawed. */
#include "base/cleanup.h"
#include "base/id.h"
#include "keeper/checkpoint_store.h"
#include "keeper/checkpoint_track.h"
#include "keeper/keeper_internal.h"
#include "keeper/layer_store.h"
#include "keeper/procimage_file.h"
#include "wire/sock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_PER_FRAME = 1000 };

static int checkpoint_id_ok(const char id[WIRE_ID])
{
	return strnlen(id, WIRE_ID) < WIRE_ID && id_valid(id);
}

static int checkpoint_bad_id(struct err *e)
{
	return err_set(e, ERR_INVALID, "the id of a checkpoint has %d or %d letters a-z and 2-7",
		       ID_LEN, ID_MAX);
}

int checkpoint_check(const struct keeper *k, const struct wire_create *w, struct err *e)
{
	char name[64];

	if (!w->nchain)
		return 0;
	if (w->nchain > WIRE_CHAIN)
		return err_set(e, ERR_INVALID, "%u checkpoints: a box may have the layers of %d",
			       w->nchain, WIRE_CHAIN);
	if (wire_tier_of(w->head.flags))
		return err_set(e, ERR_DENIED,
			       "a box of the isolation tier %s cannot start from a checkpoint",
			       tier_name(wire_tier_of(w->head.flags)));
	if (layer_possible(k, e) < 0)
		return -1;
	for (uint32_t i = 0; i < w->nchain; i++) {
		if (!checkpoint_id_ok(w->chain[i]))
			return checkpoint_bad_id(e);
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(w->chain[i], w->chain[j]) == 0)
				return err_set(e, ERR_INVALID, "checkpoint %s twice in one box",
					       w->chain[i]);
		checkpoint_store_name(w->chain[i], WIRE_CHECKPOINT_LAYER, name);
		if (faccessat(k->host.checkpoints_dir, name, F_OK, 0) < 0)
			return err_set(e, ERR_NOT_FOUND, "there is no layer of checkpoint %s",
				       w->chain[i]);
	}
	return 0;
}

/* ---- CHECKPOINT ---- */

static int checkpoint_box(struct keeper *k, const struct wire_checkpoint *w,
			  struct keeper_box **out, struct err *e)
{
	struct keeper_box *b = checkpoint_id_ok(w->box) ? keeper_box_find(&k->boxes, w->box) : NULL;

	if (!b || b->meta.about.state != WIRE_BOX_TAKEN)
		return err_set(e, ERR_NOT_FOUND, "no such box");
	if (b->changing)
		return err_set(e, ERR_CONFLICT, "box %s is being changed already",
			       b->meta.about.id);
	if (tier_box_supports(k, b, WIRE_NEED_UPPER, e) < 0)
		return -1;
	if (!b->meta.about.frozen && (!b->meta.cgroup[0] || !cgroups_can_freeze(&k->host.cgroups)))
		return err_set(e, ERR_DENIED, "box %s cannot be stopped for a checkpoint: %.120s",
			       b->meta.about.id,
			       b->meta.cgroup[0] ? "this host has no cgroup freezer"
						 : "it has no cgroup of its own");
	*out = b;
	return 0;
}

static int checkpoint_open_proc(const struct keeper *k, const struct keeper_box *b, struct err *e)
{
	char name[16];
	auto_fd int fd = -1;

	snprintf(name, sizeof(name), "%d", b->meta.about.init_pid);
	fd = openat(k->host.proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* After the open, so that it is this process and not a later one with the same pid. */
	if (fd < 0 || box_record_start_time(k->host.proc, b->meta.about.init_pid, b->death.fd) !=
			      b->meta.start_time)
		return err_set(e, ERR_NOT_FOUND, "box %s has ended meanwhile", b->meta.about.id);
	return steal_fd(&fd);
}

static void checkpoint_mark(struct keeper *k, struct keeper_box *b, int on)
{
	struct err late;

	b->changing = on;
	b->changed = 1;
	b->meta.checkpointing = on && !b->meta.about.frozen;
	/* A record that has it too long is harmless: the next keeper thaws a box that runs. */
	(void)!keeper_box_record(&k->host, b, &late);
}

/* An id between two ranges, which no box has and no other process of the layer store. */
static uint32_t checkpoint_check_uid(const struct keeper *k)
{
	return RANGE_FIRST_UID + k->ranges.first * RANGE_STRIDE + RANGE_SIZE + 1;
}

/* Descriptors of change tracking for a request that wants it; without the wish, tracking ends. -1: not possible here. */
static int checkpoint_tracking(struct keeper_box *b, int wanted, int out[2])
{
	struct err ignored; /* the answer says that the checkpoint was not tracked */

	if (!wanted) {
		own_close_fd(&b->events);
		own_close_fd(&b->touched);
	}
	if (!wanted ||
	    (b->events < 0 && checkpoint_track_new(&b->events, &b->touched, &ignored) < 0))
		return -1;
	out[0] = b->events;
	out[1] = b->touched;
	return 0;
}

static int checkpoint_take(struct keeper *k, struct client *c, const struct wire_checkpoint *w,
			   struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_CHECKPOINT };
	struct wire_checkpointed known = { .head = sock_head(WIRE_CHECKPOINTED, w->head.ref) };
	const struct cgroups *cs = &k->host.cgroups;
	struct checkpoint_request *q = &o.checkpoint;
	struct keeper_box *b = NULL;
	int fds[5], found, nfds;
	auto_fd int proc = -1;

	if (!checkpoint_id_ok(w->id) || (w->base[0] && !checkpoint_id_ok(w->base)))
		return checkpoint_bad_id(e);
	if (w->head.flags & ~WIRE_CHECKPOINT_TRACK)
		return err_set(e, ERR_INVALID, "CHECKPOINT has no flag %#x", w->head.flags);
	found = checkpoint_id_ok(w->box) ? checkpoint_store_figures(k->host.checkpoints_dir, w->id,
								    w->box, &known, e)
					 : 0;
	if (found > 0)
		client_send(k, c->number, &known, sizeof(known), -1);
	if (found)
		return found < 0 ? -1 : 0;
	if (checkpoint_box(k, w, &b, e) < 0)
		return -1;
	proc = checkpoint_open_proc(k, b, e);
	if (proc < 0)
		return -1;
	memcpy(q->box, w->box, sizeof(q->box));
	memcpy(q->id, w->id, sizeof(q->id));
	memcpy(q->base, w->base, sizeof(q->base));
	memcpy(q->cgroup, b->meta.cgroup, sizeof(q->cgroup));
	q->cgroup_version = (uint32_t)cs->version;
	q->is_frozen = b->meta.about.frozen || procimage_holds(k, w->box);
	q->uid_base = b->meta.about.uid_base;
	q->check_uid = checkpoint_check_uid(k);
	q->bytes_most = w->bytes_most;
	q->files_most = w->files_most;
	fds[0] = proc;
	fds[1] = cs->version == 1 ? cs->dir[CG_FREEZER] : cs->dir[CG_MEMORY];
	fds[2] = cs->version != 1        ? fds[1]
		 : cs->dir[CG_PIDS] >= 0 ? cs->dir[CG_PIDS]
					 : cs->dir[CG_MEMORY];
	nfds = fds[1] >= 0 && fds[2] >= 0 ? 3 : 1;
	if (checkpoint_tracking(b, w->head.flags & WIRE_CHECKPOINT_TRACK, fds + 3) == 0 &&
	    nfds == 3)
		nfds = 5;
	checkpoint_mark(k, b, 1);
	if (layer_order_with(k, c, &w->head, &o, fds, (unsigned)nfds, WIRE_CHECKPOINTED, e) == 0)
		return 0;
	checkpoint_mark(k, b, 0);
	return -1;
}

void checkpoint_taken(struct keeper *k, const char *box, const char *cgroup)
{
	struct keeper_box *b = keeper_box_find(&k->boxes, box);
	struct err ignored;

	if (!b) { /* the box was removed; its cgroup may have been made again */
		(void)!cgroup_remove(&k->host.cgroups, cgroup, &ignored);
		return;
	}
	/* Done already, unless the process was killed. */
	if (b->meta.checkpointing)
		(void)!cgroup_thaw(&k->host.cgroups, cgroup, &ignored);
	if (b->meta.about.state == WIRE_BOX_DYING) {
		b->changing = 0;
		teardown_kill(k, b);
		return;
	}
	checkpoint_mark(k, b, 0);
}

void checkpoint_adopt(struct keeper *k, struct keeper_box *b)
{
	struct err e;

	if (!b->meta.checkpointing)
		return;
	if (cgroup_thaw(&k->host.cgroups, b->meta.cgroup, &e) < 0)
		fprintf(stderr, "atoll: keeper: box %s: %s\n", b->meta.about.id, e.msg);
	b->changed = 1;
	b->meta.checkpointing = 0;
	(void)!keeper_box_record(&k->host, b, &e);
}

/* ---- chains ---- */

static int checkpoint_is_used(struct keeper *k, const struct keeper_box *but, const char *id)
{
	for (struct keeper_box *b = keeper_box_after(&k->boxes, ""); b;
	     b = keeper_box_after(&k->boxes, b->meta.about.id))
		for (uint32_t i = 0; b != but && i < b->meta.nchain; i++)
			if (strcmp(b->meta.chain[i], id) == 0)
				return 1;
	return 0;
}

void checkpoint_box_ended(struct keeper *k, const struct keeper_box *b)
{
	for (uint32_t i = 0; i < b->meta.nchain; i++)
		if (!checkpoint_is_used(k, b, b->meta.chain[i]))
			layer_store_checkpoint_release(k->host.layer_store, b->meta.chain[i], 0);
}

/* ---- files ---- */

static int checkpoint_open(struct keeper *k, struct client *c, const struct wire_checkpoint_file *w,
			   struct err *e)
{
	struct frame done = sock_head(WIRE_DONE, w->head.ref);
	auto_fd int fd = -1;
	char name[64];

	if (!checkpoint_id_ok(w->id))
		return checkpoint_bad_id(e);
	if (w->what > WIRE_CHECKPOINT_LAYER)
		return err_set(e, ERR_INVALID, "a checkpoint has no file %u", w->what);
	checkpoint_store_name(w->id, w->what, name);
	fd = openat(k->host.checkpoints_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT
			       ? err_set(e, ERR_NOT_FOUND, "there is no %s of checkpoint %s",
					 w->what ? "layer" : "index", w->id)
			       : err_sys(e, "checkpoint %s", w->id);
	client_send(k, c->number, &done, sizeof(done), fd);
	return 0;
}

static int checkpoint_drop(struct keeper *k, struct client *c, const struct wire_id *w,
			   struct err *e)
{
	static const uint16_t flag[] = {
		[WIRE_CHECKPOINT_INDEX] = WIRE_DROP_INDEX, [WIRE_CHECKPOINT_LAYER] = WIRE_DROP_LAYER
	};
	struct frame done = sock_head(WIRE_DONE, w->head.ref);
	char name[64];

	if (!checkpoint_id_ok(w->id))
		return checkpoint_bad_id(e);
	if (w->head.flags & ~(WIRE_DROP_INDEX | WIRE_DROP_LAYER))
		return err_set(e, ERR_INVALID, "CHECKPOINT_DROP has no flag %#x", w->head.flags);
	/* The index first: without it there is no checkpoint. */
	for (unsigned what = 0; what < ARRAY_LEN(flag); what++) {
		checkpoint_store_name(w->id, what, name);
		if ((!w->head.flags || w->head.flags & flag[what]) &&
		    unlinkat(k->host.checkpoints_dir, name, 0) < 0 && errno != ENOENT)
			return err_sys(e, "delete checkpoint %s", w->id);
	}
	if ((!w->head.flags || w->head.flags & WIRE_DROP_INDEX) &&
	    procimage_file_drop(k->host.checkpoints_dir, w->id, e) < 0)
		return -1;
	if (!w->head.flags || w->head.flags & WIRE_DROP_LAYER)
		layer_store_checkpoint_release(k->host.layer_store, w->id, 1);
	client_send(k, c->number, &done, sizeof(done), -1);
	return 0;
}

static int checkpoint_order(const void *a, const void *b)
{
	return strcmp(((const struct wire_checkpoint_item *)a)->id,
		      ((const struct wire_checkpoint_item *)b)->id);
}

static unsigned checkpoint_read_names(int dir, const char *folder, const char *after,
				      struct wire_checkpoint_item *out, unsigned n)
{
	int fd = openat(dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	while (d && (de = readdir(d)) != NULL) {
		struct wire_checkpoint_item x = { 0 };
		size_t len = strcspn(de->d_name, ".");

		if (len >= sizeof(x.id))
			continue;
		memcpy(x.id, de->d_name, len);
		if (!id_valid(x.id) || strcmp(x.id, after) <= 0)
			continue;
		out[n++] = x;
		if (n < 4 * LIST_PER_FRAME)
			continue;
		qsort(out, n, sizeof(*out), checkpoint_order);
		n = 2 * LIST_PER_FRAME; /* every id is there at most twice */
	}
	if (d)
		closedir(d);
	else
		own_close_fd(&fd);
	return n;
}

static void checkpoint_fill_item(int dir, struct wire_checkpoint_item *x)
{
	struct stat st;
	char name[64];

	for (unsigned what = 0; what <= WIRE_CHECKPOINT_LAYER; what++) {
		checkpoint_store_name(x->id, what, name);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*(what ? &x->layer_bytes : &x->index_bytes) = (uint64_t)st.st_size;
		if ((uint64_t)st.st_mtime > x->modified_s)
			x->modified_s = (uint64_t)st.st_mtime;
	}
}

static int checkpoint_list(struct keeper *k, struct client *c, const struct wire_id *w,
			   struct err *e)
{
	static struct {
		struct frame head;
		struct wire_checkpoint_item item[LIST_PER_FRAME];
	} out;
	struct wire_checkpoint_item *all;
	unsigned n, unique = 0;

	_Static_assert(sizeof(out) <= WIRE_MAX, "a page is one frame");
	if (w->id[0] && !checkpoint_id_ok(w->id))
		return checkpoint_bad_id(e);
	all = calloc(4 * LIST_PER_FRAME, sizeof(*all));
	if (!all)
		abort();
	n = checkpoint_read_names(k->host.checkpoints_dir, "layers", w->id, all, 0);
	n = checkpoint_read_names(k->host.checkpoints_dir, "index", w->id, all, n);
	qsort(all, n, sizeof(*all), checkpoint_order);
	for (unsigned i = 0; i < n && unique < LIST_PER_FRAME; i++) {
		if (unique && strcmp(out.item[unique - 1].id, all[i].id) == 0)
			continue;
		out.item[unique] = all[i];
		checkpoint_fill_item(k->host.checkpoints_dir, &out.item[unique++]);
	}
	free(all);
	out.head = sock_head(WIRE_LISTED, w->head.ref);
	client_send(k, c->number, &out, sizeof(out.head) + unique * sizeof(out.item[0]), -1);
	return 0;
}

static int checkpoint_sync(struct keeper *k, struct client *c, const struct wire_id *w,
			   struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_CHECKPOINT_SYNC };

	if (!checkpoint_id_ok(w->id))
		return checkpoint_bad_id(e);
	memcpy(o.checkpoint.id, w->id, sizeof(o.checkpoint.id));
	return layer_order(k, c, &w->head, &o, -1, WIRE_DONE, e);
}

static int checkpoint_merge(struct keeper *k, struct client *c,
			    const struct wire_checkpoint_merge *w, int index, struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_CHECKPOINT_MERGE };
	struct checkpoint_request *q = &o.checkpoint;

	if (w->n < (index < 0 ? 2 : 1) || w->n > WIRE_CHAIN)
		return err_set(e, ERR_INVALID, "%u layers: 2 to %d can be merged", w->n,
			       WIRE_CHAIN);
	if (!checkpoint_id_ok(w->id))
		return checkpoint_bad_id(e);
	for (uint32_t i = 0; i < w->n; i++)
		if (!checkpoint_id_ok(w->from[i]))
			return checkpoint_bad_id(e);
	memcpy(q->id, w->id, sizeof(q->id));
	memcpy(q->from, w->from, sizeof(q->from));
	q->nfrom = w->n;
	q->bytes_most = w->bytes_most;
	q->files_most = w->files_most;
	q->check_uid = checkpoint_check_uid(k);
	return layer_order(k, c, &w->head, &o, index, WIRE_CHECKPOINTED, e);
}

void checkpoint_merge_request(struct keeper *k, struct client *c, const struct frame *f, int index)
{
	struct err e;

	if (layer_possible(k, &e) < 0 ||
	    checkpoint_merge(k, c, (const struct wire_checkpoint_merge *)f, index, &e) < 0)
		client_error(k, c->number, f->ref, &e);
}

static int checkpoint_export(struct keeper *k, struct client *c,
			     const struct wire_checkpoint_merge *w, int archive, struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_CHECKPOINT_EXPORT };
	struct checkpoint_request *q = &o.checkpoint;

	if (!w->n || w->n > WIRE_CHAIN)
		return err_set(e, ERR_INVALID, "%u layers: 1 to %d can be exported", w->n,
			       WIRE_CHAIN);
	for (uint32_t i = 0; i < w->n; i++)
		if (!checkpoint_id_ok(w->from[i]))
			return checkpoint_bad_id(e);
	memcpy(q->from, w->from, sizeof(q->from));
	q->nfrom = w->n;
	q->bytes_most = q->files_most = UINT64_MAX;
	q->check_uid = checkpoint_check_uid(k);
	return layer_order(k, c, &w->head, &o, archive, WIRE_CHECKPOINTED, e);
}

static int checkpoint_import(struct keeper *k, struct client *c, const struct wire_checkpoint *w,
			     int archive, struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_CHECKPOINT_IMPORT };
	struct checkpoint_request *q = &o.checkpoint;

	if (!checkpoint_id_ok(w->id) || !checkpoint_id_ok(w->box) || w->base[0] || w->head.flags)
		return checkpoint_bad_id(e);
	memcpy(q->id, w->id, sizeof(q->id));
	memcpy(q->box, w->box, sizeof(q->box));
	q->bytes_most = w->bytes_most;
	q->files_most = w->files_most;
	q->check_uid = checkpoint_check_uid(k);
	if (uid_range_take(&k->ranges, &o.uid, e) < 0)
		return -1;
	if (layer_order(k, c, &w->head, &o, archive, WIRE_CHECKPOINTED, e) == 0)
		return 0;
	uid_range_free(&k->ranges, o.uid);
	return -1;
}

void checkpoint_archive_request(struct keeper *k, struct client *c, const struct frame *f,
				int archive)
{
	struct err e;
	int done = layer_possible(k, &e);

	if (done == 0 && archive < 0)
		done = err_set(&e, ERR_INVALID, "the request has no descriptor of an archive");
	else if (done == 0)
		done = f->type == WIRE_CHECKPOINT_EXPORT
			       ? checkpoint_export(k, c, (const struct wire_checkpoint_merge *)f,
						   archive, &e)
			       : checkpoint_import(k, c, (const struct wire_checkpoint *)f, archive,
						   &e);
	if (done < 0)
		client_error(k, c->number, f->ref, &e);
}

void checkpoint_request(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_id *id = (const struct wire_id *)f;
	struct err e;
	int done = layer_possible(k, &e);

	if (done < 0)
		;
	else if (f->type == WIRE_CHECKPOINT)
		done = checkpoint_take(k, c, (const struct wire_checkpoint *)f, &e);
	else if (f->type == WIRE_CHECKPOINT_OPEN)
		done = checkpoint_open(k, c, (const struct wire_checkpoint_file *)f, &e);
	else if (f->type == WIRE_CHECKPOINT_SYNC)
		done = checkpoint_sync(k, c, id, &e);
	else if (f->type == WIRE_CHECKPOINT_DROP)
		done = checkpoint_drop(k, c, id, &e);
	else
		done = checkpoint_list(k, c, id, &e);
	if (done < 0 && f->type == WIRE_CHECKPOINT)
		procimage_files_done(k, ((const struct wire_checkpoint *)f)->box, 0);
	if (done < 0)
		client_error(k, c->number, f->ref, &e);
}
