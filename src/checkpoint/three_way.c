/* three_way.c - see three_way.h. */
#include "checkpoint/three_way.h"
#include "base/cleanup.h"
#include "checkpoint/compare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- lists ---- */

static size_t list_lower_bound(const struct checkpoint_files *l, const char *path, size_t len)
{
	size_t from = 0, to = l->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		const struct checkpoint_file *x = &l->v[mid];

		if (layer_index_compare(l->text + x->path, x->f.path_len, path, len) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static const struct layer_index_fixed *list_find(const struct checkpoint_files *l, const char *path,
						 size_t len)
{
	size_t i = list_lower_bound(l, path, len);
	const struct checkpoint_file *x = i < l->n ? &l->v[i] : NULL;

	return x && x->f.path_len == len && memcmp(l->text + x->path, path, len) == 0 ? &x->f
										      : NULL;
}

/* Length of the folder above; SIZE_MAX: it is the root. */
static size_t path_above(const char *path, size_t len)
{
	while (len && path[len - 1] != '/')
		len--;
	return len ? len - 1 : SIZE_MAX;
}

/* What a list has at a path. ROOT: what the root of the box has, which no list knows. */
enum state { STATE_ROOT, STATE_GONE, STATE_HERE };

struct seen {
	enum state state;
	const struct layer_index_fixed *f; /* HERE */
};

static struct seen list_look(const struct checkpoint_files *l, const char *path)
{
	size_t len = strlen(path);
	const struct layer_index_fixed *f = list_find(l, path, len);

	if (f)
		return f->flags & LAYER_INDEX_WHITEOUT ? (struct seen){ STATE_GONE, NULL }
						       : (struct seen){ STATE_HERE, f };
	for (size_t up = path_above(path, len); up != SIZE_MAX; up = path_above(path, up)) {
		f = list_find(l, path, up);
		if (f && (!S_ISDIR(f->mode) || f->flags & LAYER_INDEX_OPAQUE))
			return (struct seen){ STATE_GONE, NULL };
	}
	return (struct seen){ STATE_ROOT, NULL };
}

static int entry_is_same(const struct layer_index_fixed *a, const struct layer_index_fixed *b)
{
	if ((a->mode ^ b->mode) & S_IFMT || a->mode != b->mode || a->uid != b->uid ||
	    a->gid != b->gid || a->xattrs != b->xattrs)
		return 0;
	return !(S_ISREG(a->mode) || S_ISLNK(a->mode)) || !checkpoint_content_differs(a, b);
}

/* ---- changes of one side ---- */

enum change { SIDE_SAME, SIDE_HAS, SIDE_GONE, SIDE_REPLACED };

static int seen_was_replaced(struct seen was, const struct layer_index_fixed *is)
{
	return S_ISDIR(is->mode) && is->flags & LAYER_INDEX_OPAQUE &&
	       !(was.state == STATE_HERE && was.f->ino == is->ino &&
		 strcmp(was.f->origin, is->origin) == 0);
}

static enum change list_change(const struct checkpoint_files *ancestor,
			       const struct checkpoint_files *side, const char *path,
			       struct seen *out)
{
	struct seen was = list_look(ancestor, path), is = list_look(side, path);

	*out = is;
	if (is.state == STATE_HERE && seen_was_replaced(was, is.f))
		return SIDE_REPLACED;
	if (is.state == STATE_HERE && was.state == STATE_HERE)
		return entry_is_same(was.f, is.f) ? SIDE_SAME : SIDE_HAS;
	if (is.state == STATE_HERE) /* a copied folder of the root is there for what is below it */
		return was.state == STATE_ROOT && S_ISDIR(is.f->mode) &&
				       is.f->flags & LAYER_INDEX_LOWER
			       ? SIDE_SAME
			       : SIDE_HAS;
	if (was.state == STATE_HERE)
		return is.state == STATE_GONE || !(was.f->flags & LAYER_INDEX_LOWER) ? SIDE_GONE
										     : SIDE_SAME;
	return was.state == STATE_ROOT && is.state == STATE_GONE ? SIDE_GONE : SIDE_SAME;
}

/* ---- the plan ---- */

struct planning {
	const struct checkpoint_files *ancestor, *ours, *theirs;
	enum checkpoint_conflicts how;
	struct checkpoint_plan *out;
	const char *skip; /* entries below it are covered, or left out */
	int take_below;   /* all entries of theirs below skip are taken instead */
};

static void plan_add(struct planning *p, const char *path, const struct layer_index_fixed *f,
		     int replaces)
{
	struct checkpoint_plan *out = p->out;

	if (out->n == out->room) {
		out->room = 2 * out->room + 64;
		out->v = realloc(out->v, out->room * sizeof(*out->v));
		if (!out->v)
			abort();
	}
	out->v[out->n++] = (struct checkpoint_plan_item){ path, f, replaces };
	out->changed += f != NULL;
	out->deleted += !f;
}

static void plan_add_conflict(struct planning *p, const char *path)
{
	struct checkpoint_plan *out = p->out;

	if (out->nconflicts == out->conflicts_room) {
		out->conflicts_room = 2 * out->conflicts_room + 64;
		out->conflicts =
			realloc(out->conflicts, out->conflicts_room * sizeof(*out->conflicts));
		if (!out->conflicts)
			abort();
	}
	out->conflicts[out->nconflicts++] = path;
}

/* Whether our side has something new below a folder that theirs removes or replaces. */
static int plan_changed_below(const struct planning *p, const char *path)
{
	size_t len = strlen(path);
	struct seen ignored;

	for (size_t i = list_lower_bound(p->ours, path, len); i < p->ours->n; i++) {
		const char *at = p->ours->text + p->ours->v[i].path;
		enum change c;

		if (strcmp(at, path) == 0)
			continue;
		if (!checkpoint_files_are_below(at, path))
			return 0;
		c = list_change(p->ancestor, p->ours, at, &ignored);
		if (c == SIDE_HAS || c == SIDE_REPLACED)
			return 1;
	}
	return 0;
}

/* Whether our side has removed or replaced a folder above. */
static int plan_changed_above(const struct planning *p, const char *path)
{
	auto_free char *above = strdup(path);
	size_t up = path_above(path, strlen(path));

	if (!above)
		abort();
	for (; up != SIZE_MAX && up > 0; up = path_above(above, up)) {
		struct seen is, theirs;
		enum change c;

		above[up] = 0;
		c = list_change(p->ancestor, p->ours, above, &is);
		/* Both have made the folder. */
		if (is.state == STATE_HERE && S_ISDIR(is.f->mode) &&
		    list_change(p->ancestor, p->theirs, above, &theirs) == c &&
		    theirs.state == STATE_HERE && entry_is_same(is.f, theirs.f))
			continue;
		if (c == SIDE_GONE || c == SIDE_REPLACED || (c == SIDE_HAS && !S_ISDIR(is.f->mode)))
			return 1;
	}
	return 0;
}

static int plan_hides(enum change c, struct seen theirs)
{
	return c == SIDE_GONE || c == SIDE_REPLACED || !S_ISDIR(theirs.f->mode);
}

/* 1: both have it alike, so that nothing is left to do. */
static int plan_is_alike(enum change theirs, struct seen t, enum change ours, struct seen o)
{
	if (theirs == SIDE_GONE)
		return o.state == STATE_GONE;
	return ours != SIDE_SAME && o.state == STATE_HERE && entry_is_same(t.f, o.f);
}

static int plan_conflicts(const struct planning *p, const char *path, enum change theirs,
			  struct seen t, enum change ours)
{
	if (ours != SIDE_SAME)
		return 1;
	if (theirs != SIDE_GONE && plan_changed_above(p, path))
		return 1;
	return plan_hides(theirs, t) && plan_changed_below(p, path);
}

static void plan_path(struct planning *p, const char *path)
{
	struct seen t, o;
	enum change theirs = list_change(p->ancestor, p->theirs, path, &t), ours;
	int hides;

	if (p->skip && checkpoint_files_are_below(path, p->skip)) {
		if (p->take_below && t.state == STATE_HERE)
			plan_add(p, path, t.f, 0);
		return;
	}
	if (theirs == SIDE_SAME)
		return;
	hides = plan_hides(theirs, t);
	ours = list_change(p->ancestor, p->ours, path, &o);
	/* Two new folders of one name become one. */
	if (theirs == SIDE_REPLACED && o.state == STATE_HERE && S_ISDIR(o.f->mode) &&
	    ours == SIDE_REPLACED && entry_is_same(t.f, o.f))
		return;
	if (theirs != SIDE_REPLACED && plan_is_alike(theirs, t, ours, o))
		return;
	if (plan_conflicts(p, path, theirs, t, ours)) {
		plan_add_conflict(p, path);
		if (p->how != MERGE_THEIRS) {
			if (hides || (o.state != STATE_HERE || !S_ISDIR(o.f->mode))) {
				p->skip = path;
				p->take_below = 0;
			}
			return;
		}
	}
	plan_add(p, path, theirs == SIDE_GONE ? NULL : t.f, theirs == SIDE_REPLACED);
	if (hides) {
		p->skip = path;
		p->take_below = theirs == SIDE_REPLACED;
	}
}

void checkpoint_plan_make(const struct checkpoint_files *ancestor,
			  const struct checkpoint_files *ours,
			  const struct checkpoint_files *theirs, enum checkpoint_conflicts how,
			  struct checkpoint_plan *out)
{
	struct planning p = { ancestor, ours, theirs, how, out, NULL, 0 };
	size_t i = 0, k = 0;

	*out = (struct checkpoint_plan){ 0 };
	while (i < ancestor->n || k < theirs->n) {
		const struct checkpoint_file *a = i < ancestor->n ? &ancestor->v[i] : NULL,
					     *t = k < theirs->n ? &theirs->v[k] : NULL;
		int order = !a   ? 1
			    : !t ? -1
				 : layer_index_compare(ancestor->text + a->path, a->f.path_len,
						       theirs->text + t->path, t->f.path_len);
		const char *path = order < 0 ? ancestor->text + a->path : theirs->text + t->path;

		i += order <= 0;
		k += order >= 0;
		if (*path)
			plan_path(&p, path);
	}
}

void checkpoint_plan_fini(struct checkpoint_plan *p)
{
	free(p->v);
	free(p->conflicts);
	*p = (struct checkpoint_plan){ 0 };
}

/* ---- the index ---- */

/* A folder that leads to an entry: as it is in ours, else as in theirs. */
static int index_add_folder(struct layer_index_writer *w, const struct checkpoint_files *ours,
			    const struct checkpoint_files *theirs, const char *path, size_t len,
			    struct err *e)
{
	const struct layer_index_fixed *o = list_find(ours, path, len),
				       *t = list_find(theirs, path, len);
	struct layer_index_fixed f;

	if (o && !S_ISDIR(o->mode))
		o = NULL;
	if (!t || !S_ISDIR(t->mode))
		return err_set(e, ERR_CONFLICT, "the folder of a changed file is not known: %.150s",
			       path);
	if (o && o->xattrs != t->xattrs)
		return err_set(
			e, ERR_CONFLICT,
			"the attributes of folder /%.*s differ, and files below it have changed",
			(int)len, path);
	f = o ? *o : *t;
	f.flags = LAYER_INDEX_LOWER;
	return layer_index_add(w, &f, path, e);
}

/* Folders of this path that the last one did not have. */
static int index_add_above(struct layer_index_writer *w, const struct checkpoint_files *ours,
			   const struct checkpoint_files *theirs, const char *last,
			   const char *path, struct err *e)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < len; i++) {
		if (path[i] != '/')
			continue;
		if (strncmp(last, path, i) == 0 && (last[i] == '/' || !last[i]))
			continue;
		if (index_add_folder(w, ours, theirs, path, i, e) < 0)
			return -1;
	}
	return 0;
}

static int index_add_item(struct layer_index_writer *w, const struct checkpoint_plan_item *x,
			  const struct layer_index_head *head, struct err *e)
{
	struct layer_index_fixed f = { .path_len = (uint16_t)strlen(x->path),
				       .flags = LAYER_INDEX_WHITEOUT,
				       .mode = S_IFCHR,
				       .nlink = 1 };

	memcpy(f.origin, head->id, sizeof(f.origin));
	if (x->entry) {
		f = *x->entry;
		f.flags &= LAYER_INDEX_HASHED | LAYER_INDEX_LOWER;
		f.flags |= x->replaces ? LAYER_INDEX_OPAQUE : 0;
	}
	return layer_index_add(w, &f, x->path, e);
}

int checkpoint_plan_write(const struct checkpoint_plan *p, const struct checkpoint_files *ours,
			  const struct checkpoint_files *theirs,
			  const struct layer_index_head *head, int fd, struct err *e)
{
	struct layer_index_writer w;
	const char *last = "";
	uint64_t bytes;
	int rc;

	layer_index_begin(&w, fd);
	rc = index_add_folder(&w, ours, theirs, "", 0, e);
	for (size_t i = 0; rc == 0 && i < p->n; i++) {
		rc = index_add_above(&w, ours, theirs, last, p->v[i].path, e);
		if (rc == 0)
			rc = index_add_item(&w, &p->v[i], head, e);
		last = p->v[i].path;
	}
	if (rc == 0)
		rc = layer_index_end(&w, head, &bytes, e);
	layer_index_drop(&w);
	return rc;
}
