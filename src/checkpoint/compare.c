/* compare.c - see compare.h. */
#include "checkpoint/compare.h"
#include "base/cleanup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const change_names[] = {
	[CHANGE_ADDED] = "added", [CHANGE_DELETED] = "deleted", [CHANGE_CONTENT] = "changed",
	[CHANGE_MODE] = "mode",   [CHANGE_TYPE] = "type",       [CHANGE_RENAMED] = "renamed",
};
static_assert(ARRAY_LEN(change_names) == CHANGE_RENAMED + 1, "a change without a name");

const char *checkpoint_change_name(enum checkpoint_change change)
{
	return (unsigned)change < ARRAY_LEN(change_names) ? change_names[change] : "unknown";
}

static void compare_add(struct checkpoint_differences *out, enum checkpoint_change change,
			const char *path, const struct layer_index_fixed *from,
			const struct layer_index_fixed *to)
{
	if (out->n == out->room) {
		out->room = 2 * out->room + 64;
		out->v = realloc(out->v, out->room * sizeof(*out->v));
		if (!out->v)
			abort();
	}
	out->v[out->n++] = (struct checkpoint_difference){ change, path, NULL, from, to };
}

int checkpoint_content_differs(const struct layer_index_fixed *a, const struct layer_index_fixed *b)
{
	if (a->flags & b->flags & LAYER_INDEX_HASHED)
		return memcmp(a->sha256, b->sha256, sizeof(a->sha256)) != 0;
	if (a->size != b->size)
		return 1;
	return a->ino != b->ino || strcmp(a->origin, b->origin) != 0;
}

static void compare_both(struct checkpoint_differences *out, const char *path,
			 const struct layer_index_fixed *a, const struct layer_index_fixed *b)
{
	int was = !(a->flags & LAYER_INDEX_WHITEOUT), is = !(b->flags & LAYER_INDEX_WHITEOUT);

	if (!was && !is)
		return;
	if (!was || !is)
		compare_add(out, is ? CHANGE_ADDED : CHANGE_DELETED, path, was ? a : NULL,
			    is ? b : NULL);
	else if ((a->mode ^ b->mode) & S_IFMT)
		compare_add(out, CHANGE_TYPE, path, a, b);
	else if ((S_ISREG(a->mode) || S_ISLNK(a->mode)) && checkpoint_content_differs(a, b))
		compare_add(out, CHANGE_CONTENT, path, a, b);
	else if (a->mode != b->mode || a->uid != b->uid || a->gid != b->gid ||
		 a->xattrs != b->xattrs)
		compare_add(out, CHANGE_MODE, path, a, b);
}

/* The other list does not know the name: it is as in the root of the box, if that has it and no folder of the other list
 * hides it. */
static void compare_one(struct checkpoint_differences *out, const char *path,
			const struct layer_index_fixed *x, int is_new, int is_hidden)
{
	const struct layer_index_fixed *from = is_new ? NULL : x, *to = is_new ? x : NULL;
	int is_lower = x->flags & LAYER_INDEX_LOWER && !is_hidden;

	if (x->flags & LAYER_INDEX_WHITEOUT && is_hidden)
		return;
	if (x->flags & LAYER_INDEX_WHITEOUT) /* it hides a name of the root */
		compare_add(out, is_new ? CHANGE_DELETED : CHANGE_ADDED, path, NULL, NULL);
	else if (!is_lower)
		compare_add(out, is_new ? CHANGE_ADDED : CHANGE_DELETED, path, from, to);
	else if (!S_ISDIR(x->mode)) /* a copied folder is there for what is below it */
		compare_add(out, CHANGE_CONTENT, path, from, to);
}

/* ---- renames ---- */

static const struct layer_index_fixed *compare_hashed(const struct checkpoint_difference *d)
{
	const struct layer_index_fixed *f = d->change == CHANGE_DELETED ? d->from
					    : d->change == CHANGE_ADDED ? d->to
									: NULL;

	return f && S_ISREG(f->mode) && f->size && f->flags & LAYER_INDEX_HASHED ? f : NULL;
}

static int compare_order(const void *a, const void *b)
{
	const struct checkpoint_difference *const *x = a, *const *y = b;
	int order = memcmp(compare_hashed(*x)->sha256, compare_hashed(*y)->sha256, 32);

	/* Deleted names first. */
	return order ? order : ((*y)->change == CHANGE_DELETED) - ((*x)->change == CHANGE_DELETED);
}

/* Of equal contents, exactly one name was deleted and one added. */
static void compare_pair(struct checkpoint_difference **v, size_t n)
{
	if (n != 2 || v[0]->change != CHANGE_DELETED || v[1]->change != CHANGE_ADDED)
		return;
	v[1]->change = CHANGE_RENAMED;
	v[1]->was = v[0]->path;
	v[1]->from = v[0]->from;
	v[0]->path = NULL; /* is removed */
}

static void compare_find_renames(struct checkpoint_differences *out)
{
	auto_free struct checkpoint_difference **v =
		calloc(out->n + 1, sizeof(struct checkpoint_difference *));
	size_t n = 0, kept = 0;

	if (!v)
		abort();
	for (size_t i = 0; i < out->n; i++)
		if (compare_hashed(&out->v[i]))
			v[n++] = &out->v[i];
	if (n > 1)
		qsort(v, n, sizeof(struct checkpoint_difference *), compare_order);
	for (size_t i = 0, next; i < n; i = next) {
		const uint8_t *sum = compare_hashed(v[i])->sha256;

		for (next = i + 1; next < n; next++)
			if (memcmp(compare_hashed(v[next])->sha256, sum, 32) != 0)
				break;
		compare_pair(v + i, next - i);
	}
	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].path)
			out->v[kept++] = out->v[i];
	out->n = kept;
}

struct compare_side {
	const struct checkpoint_files *l;
	size_t i;
	const struct checkpoint_file
		*hides; /* the last entry below which nothing of the root is visible */
};

static const struct checkpoint_file *compare_now(const struct compare_side *s)
{
	return s->i < s->l->n ? &s->l->v[s->i] : NULL;
}

static const char *compare_path(const struct compare_side *s, const struct checkpoint_file *x)
{
	return s->l->text + x->path;
}

static void compare_advance(struct compare_side *s)
{
	const struct checkpoint_file *x = &s->l->v[s->i++];

	/* Entries of a folder follow it: the one that hides it is still the last such entry. */
	if (s->hides && checkpoint_files_are_below(compare_path(s, x), compare_path(s, s->hides)))
		return;
	if (!S_ISDIR(x->f.mode) || x->f.flags & LAYER_INDEX_OPAQUE)
		s->hides = x;
}

static void compare_missing(struct checkpoint_differences *out, const struct compare_side *has,
			    const struct compare_side *other, int is_new)
{
	const struct checkpoint_file *x = compare_now(has);
	const char *path = compare_path(has, x);

	compare_one(out, path, &x->f, is_new,
		    other->hides &&
			    checkpoint_files_are_below(path, compare_path(other, other->hides)));
}

void checkpoint_compare(const struct checkpoint_files *a, const struct checkpoint_files *b,
			struct checkpoint_differences *out)
{
	struct compare_side from = { .l = a }, to = { .l = b };

	*out = (struct checkpoint_differences){ 0 };
	for (;;) {
		const struct checkpoint_file *x = compare_now(&from), *y = compare_now(&to);
		int order;

		if (!x && !y)
			break;
		order = !x   ? 1
			: !y ? -1
			     : layer_index_compare(compare_path(&from, x), x->f.path_len,
						   compare_path(&to, y), y->f.path_len);
		if (order == 0)
			compare_both(out, compare_path(&to, y), &x->f, &y->f);
		else if (order < 0)
			compare_missing(out, &from, &to, 0);
		else
			compare_missing(out, &to, &from, 1);
		if (order <= 0)
			compare_advance(&from);
		if (order >= 0)
			compare_advance(&to);
	}
	compare_find_renames(out);
}

void checkpoint_differences_fini(struct checkpoint_differences *d)
{
	free(d->v);
	*d = (struct checkpoint_differences){ 0 };
}
