/* files.c - see files.h. */
#include "checkpoint/files.h"
#include "base/cleanup.h"
#include "checkpoint/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void checkpoint_files_fini(struct checkpoint_files *l)
{
	free(l->v);
	free(l->text);
	*l = (struct checkpoint_files){ 0 };
}

static void *files_grow(void *p, size_t *room, size_t need, size_t size)
{
	if (need <= *room)
		return p;
	*room = 2 * need + 256;
	p = realloc(p, *room * size);
	if (!p)
		abort();
	return p;
}

static int files_append(struct checkpoint_files *l, const struct layer_index_fixed *f,
			const char *path, struct err *e)
{
	size_t bytes = (size_t)f->path_len + 1;

	if (l->n == CHECKPOINT_FILES_MOST)
		return err_set(e, ERR_LIMIT, "a checkpoint has more than %d entries",
			       CHECKPOINT_FILES_MOST);
	l->v = files_grow(l->v, &l->room, l->n + 1, sizeof(*l->v));
	l->text = files_grow(l->text, &l->text_room, l->ntext + bytes, 1);
	l->v[l->n++] = (struct checkpoint_file){ *f, l->ntext };
	memcpy(l->text + l->ntext, path, bytes);
	l->ntext += bytes;
	return 0;
}

static int files_is_below(const char *path, size_t len, const char *folder, size_t folder_len)
{
	return len > folder_len && memcmp(path, folder, folder_len) == 0 &&
	       (folder_len == 0 || path[folder_len] == '/');
}

int checkpoint_files_are_below(const char *path, const char *folder)
{
	return files_is_below(path, strlen(path), folder, strlen(folder));
}

/* The lower layer that x was copied from is another checkpoint: what the root of the box has there, the entry below knows. A
 * folder stays the same one. */
static void files_continue(struct layer_index_fixed *x, const struct layer_index_fixed *below)
{
	if (!(x->flags & LAYER_INDEX_LOWER) || below->flags & LAYER_INDEX_WHITEOUT)
		return;
	x->flags &= (uint16_t)~LAYER_INDEX_LOWER;
	x->flags |= below->flags & LAYER_INDEX_LOWER;
	if (!S_ISDIR(x->mode) || !S_ISDIR(below->mode) || x->flags & LAYER_INDEX_OPAQUE)
		return;
	x->flags |= below->flags & LAYER_INDEX_OPAQUE;
	x->ino = below->ino;
	memcpy(x->origin, below->origin, sizeof(x->origin));
}

/* Entries of the list below that come before this one, and those that this one hides. */
static int files_pass(struct checkpoint_files *out, const struct checkpoint_files *below,
		      size_t *at, struct layer_index_entry *x, struct err *e)
{
	int hides = x && (!S_ISDIR(x->f.mode) || x->f.flags & LAYER_INDEX_OPAQUE);

	for (; *at < below->n; ++*at) {
		const struct checkpoint_file *b = &below->v[*at];
		const char *path = below->text + b->path;
		int order =
			x ? layer_index_compare(path, b->f.path_len, x->path, x->f.path_len) : -1;

		if (order > 0 &&
		    (!hides || !files_is_below(path, b->f.path_len, x->path, x->f.path_len)))
			return 0;
		if (order < 0 && files_append(out, &b->f, path, e) < 0)
			return -1;
		if (order == 0)
			files_continue(&x->f, &b->f);
	}
	return 0;
}

int checkpoint_files_add(struct checkpoint_files *l, int fd, const char *id, struct err *e)
{
	struct checkpoint_files out = { 0 };
	struct layer_index_reader in;
	struct layer_index_entry x;
	size_t at = 0;
	int got = layer_index_open(&in, fd, e);

	if (got == 0 && strcmp(in.head.id, id) != 0)
		got = err_set(e, ERR_INVALID, "the index of checkpoint %s is that of %s", id,
			      in.head.id);
	while (got >= 0 && (got = layer_index_next(&in, &x, e)) > 0)
		if (files_pass(&out, l, &at, &x, e) < 0 || files_append(&out, &x.f, x.path, e) < 0)
			got = -1;
	if (got == 0)
		got = files_pass(&out, l, &at, NULL, e);
	layer_index_close(&in);
	checkpoint_files_fini(got < 0 ? &out : l);
	if (got < 0)
		return -1;
	*l = out;
	return 0;
}

/* ---- reading ---- */

struct checkpoint_files_load {
	struct checkpoints *all;
	struct keeper_call *asking;
	struct checkpoint_files files;
	char (*ids)[ID_MAX + 1]; /* the topmost first */
	unsigned left;
	checkpoint_files_done *done;
	void *ctx;
};

static void files_next(struct checkpoint_files_load *r);

static void files_end(struct checkpoint_files_load *r, const struct err *e)
{
	r->done(r->ctx, e ? NULL : &r->files, e);
	checkpoint_files_fini(&r->files);
	free(r->ids);
	free(r);
}

static void files_opened(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct checkpoint_files_load *r = ctx;
	struct err own;

	(void)len;
	r->asking = NULL;
	if (f && *fd < 0)
		err_set(&own, ERR_SYS, "keeper: an index without a file");
	if (f && *fd >= 0 && checkpoint_files_add(&r->files, *fd, r->ids[r->left], &own) == 0)
		files_next(r);
	else
		files_end(r, f ? &own : e);
}

static void files_next(struct checkpoint_files_load *r)
{
	if (!r->left) {
		files_end(r, NULL);
		return;
	}
	r->left--;
	r->asking = keeper_client_checkpoint_open(&r->all->fleet->keeper, r->ids[r->left],
						  WIRE_CHECKPOINT_INDEX, files_opened, r);
}

int checkpoint_files_read(struct checkpoints *c, const struct store_checkpoint *x,
			  checkpoint_files_done *done, void *ctx,
			  struct checkpoint_files_load **out, struct err *e)
{
	struct checkpoint_files_load *r = calloc(1, sizeof(*r));
	struct store_checkpoint one = *x;
	int rc = 0;

	if (!r)
		abort();
	*r = (struct checkpoint_files_load){ .all = c, .done = done, .ctx = ctx };
	r->ids = calloc(CHECKPOINT_FILES_DEPTH, sizeof(*r->ids));
	if (!r->ids)
		abort();
	one.spec = NULL;
	memcpy(r->ids[r->left++], x->id, sizeof(x->id));
	while (rc == 0 && one.origin[0]) {
		char id[ID_MAX + 1];

		memcpy(id, one.origin, sizeof(id));
		if (r->left == CHECKPOINT_FILES_DEPTH)
			rc = err_set(e, ERR_LIMIT,
				     "checkpoint %s has more than %d rollbacks and forks below it",
				     x->id, CHECKPOINT_FILES_DEPTH);
		else
			rc = store_checkpoint_any(c->fleet->store, id, &one, e);
		if (rc == 0) {
			store_checkpoint_fini(&one);
			memcpy(r->ids[r->left++], id, sizeof(id));
		}
	}
	if (rc < 0) {
		free(r->ids);
		free(r);
		return -1;
	}
	*out = r;
	files_next(r);
	return 0;
}

void checkpoint_files_leave(struct checkpoint_files_load *r)
{
	if (!r)
		return;
	keeper_client_cancel(&r->all->fleet->keeper, r->asking);
	checkpoint_files_fini(&r->files);
	free(r->ids);
	free(r);
}
