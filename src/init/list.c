/* list.c - LIST: the entries of a folder, in order, any number of them; see worker.h.
 *
 * A client pages through a folder by the last name it has seen, so the order must not depend on
 * the folder: bytewise by name. A folder is read completely and of its names only the next few
 * thousand are kept, the lowest above the last one sent; when those have been sent it is read
 * again. So a folder may have any number of entries, and change meanwhile: no name is sent
 * twice.
 *
 * With depth the walk is a folder's entry, then what is in it, then the next entry: the order of
 * the paths if '/' were the lowest of all characters. `after` is then a path, and each of its
 * parts is the lower bound of one level. */
#include "init/conn.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/tree.h"
#include "init/worker.h"

enum { NAME = 256, DEPTH_MOST = 64 };
enum { WALK_IN = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };
enum {
	PAGE_FIRST = 8192,
	PAGE_LEAST = 64
}; /* names in memory: of the first level, and of deeper ones */

struct list_folder { /* one folder */
	int dir;
	char (*names)[NAME];
	uint32_t *order; /* of the names: a heap while they are gathered, then sorted */
	uint32_t room, count, next;
	uint8_t more;      /* some did not fit: to be read again */
	uint32_t path_len; /* of this folder, as the client sees it */
};

struct list_walk {
	uint32_t ref, left, depth,
		levels;   /* entries and levels that may still be sent; the current level */
	char *after;      /* the rest of it below this level; NULL: nothing */
	char floor[NAME]; /* this level's part of it; "": none */
	uint16_t flags;   /* of DONE */
	int full;         /* WIRE_ENTRY_FULL */
};

static LAZY struct list_folder stack[DEPTH_MOST];
static LAZY char path[DEPTH_MOST * NAME];

/* ---- the lowest names ---- */

static int list_above(const struct list_folder *l, uint32_t a, uint32_t b)
{
	return text_compare(l->names[l->order[a]], l->names[l->order[b]]) > 0;
}

static void list_swap(struct list_folder *l, uint32_t a, uint32_t b)
{
	uint32_t was = l->order[a];

	l->order[a] = l->order[b];
	l->order[b] = was;
}

static void sift_up(struct list_folder *l, uint32_t at)
{
	for (; at && list_above(l, at, (at - 1) / 2); at = (at - 1) / 2)
		list_swap(l, at, (at - 1) / 2);
}

static void sift_down(struct list_folder *l, uint32_t at, uint32_t n)
{
	uint32_t child;

	for (; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && list_above(l, child + 1, child))
			child++;
		if (!list_above(l, child, at))
			return;
		list_swap(l, child, at);
	}
}

static void set_name(struct list_folder *l, uint32_t slot, const char *name)
{
	memcpy(l->names[slot], name, strlen(name) + 1);
}

/* Adds a name; the highest of those kept is on top of the heap, and is replaced. */
static void list_keep(struct list_folder *l, const char *name)
{
	if (l->count < l->room) {
		l->order[l->count] = l->count;
		set_name(l, l->count, name);
		sift_up(l, l->count++);
		return;
	}
	l->more = 1;
	if (text_compare(name, l->names[l->order[0]]) > 0)
		return;
	set_name(l, l->order[0], name);
	sift_down(l, 0, l->count);
}

static void list_sort(struct list_folder *l)
{
	uint32_t n;

	for (n = l->count; n > 1; n--) {
		list_swap(l, 0, n - 1);
		sift_down(l, 0, n - 1);
	}
}

/* The next names that are not below the floor; the floor itself only if requested. */
static int list_gather(struct list_folder *l, const char *floor, int with_floor)
{
	int err = (int)sys_openat(l->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	const struct dirent64 *d;
	struct tree t;

	if (err < 0)
		return err;
	l->count = l->next = 0;
	l->more = 0;
	err = tree_init(&t, err);
	while (!err && (d = tree_next(&t))) {
		int order = text_compare(d->d_name, floor);

		if (strlen(d->d_name) < NAME && (order > 0 || (with_floor && !order)))
			list_keep(l, d->d_name);
	}
	tree_fini(&t);
	list_sort(l);
	return err < 0 ? err : t.err;
}

/* ---- the walk ---- */

static int take_floor(struct list_walk *w)
{
	size_t n = 0;

	w->floor[0] = '\0';
	if (!w->after)
		return 0;
	while (w->after[n] && w->after[n] != '/')
		n++;
	if (n >= NAME)
		return -EINVAL;
	memcpy(w->floor, w->after, n);
	w->floor[n] = '\0';
	w->after += n + (w->after[n] == '/');
	return 0;
}

static size_t bytes_of(uint32_t room)
{
	return room * (NAME + sizeof(uint32_t));
}

static int list_enter(struct list_walk *w, int take_dir, uint32_t path_len)
{
	struct list_folder *l = &stack[w->depth];
	uint32_t room = PAGE_FIRST >> w->depth;
	int err = take_floor(w);

	room = room < PAGE_LEAST ? PAGE_LEAST : room;
	*l = (struct list_folder){ .dir = take_dir, .room = room, .path_len = path_len };
	w->depth++;
	l->names = sys_map(bytes_of(room));
	if (!l->names)
		return -ENOMEM;
	l->order = (uint32_t *)(void *)(l->names + room);
	return err < 0 ? err : list_gather(l, w->floor, 1);
}

static void list_leave(struct list_walk *w)
{
	struct list_folder *l = &stack[--w->depth];

	sys_close(l->dir);
	sys_unmap(l->names, bytes_of(l->room));
}

/* Is this the name that `after` leads through? Checked once per level, for its first name. */
static int list_was_sent(struct list_walk *w, const char *name)
{
	int same = w->floor[0] && !text_compare(w->floor, name);

	if (!same || !*w->after)
		w->after = NULL;
	w->floor[0] = '\0';
	return same;
}

/* Sends one entry, and enters it if it is a folder. 1: the limit of entries is reached. */
static int list_visit(struct list_walk *w, struct list_folder *l, const char *name)
{
	uint32_t end = l->path_len + (uint32_t)strlen(name);
	int sent = list_was_sent(w, name), dir;
	struct stat st;

	if (sys_fstatat(l->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone meanwhile */
	memcpy(path + l->path_len, name, strlen(name) + 1);
	if (!sent && !w->left--) {
		w->flags |= WIRE_DONE_TRUNCATED;
		return 1;
	}
	if (!sent && w->full)
		say_full(w->ref, &st, l->dir, name, path);
	else if (!sent)
		say_link(w->ref, &st, l->dir, name, path);
	dir = S_ISDIR(st.st_mode) && w->depth < w->levels
		      ? (int)sys_openat(l->dir, name, WALK_IN, 0)
		      : -ENOTDIR;
	path[end] = '/';
	if (dir < 0)
		w->after = NULL; /* it leads no further */
	if (dir < 0 ? dir != -ENOTDIR : list_enter(w, dir, end + 1) < 0)
		w->flags |= WIRE_DONE_SKIPPED; /* the names that were read are sent all the same */
	return 0;
}

static void list_walk(struct list_walk *w)
{
	while (w->depth) {
		struct list_folder *l = &stack[w->depth - 1];

		if (l->next < l->count) {
			if (list_visit(w, l, l->names[l->order[l->next++]]))
				return;
		} else if (!l->more) {
			list_leave(w);
		} else {
			char last[NAME];

			memcpy(last, l->names[l->order[l->count - 1]], NAME);
			if (list_gather(l, last, 0) < 0)
				w->flags |= WIRE_DONE_SKIPPED;
		}
	}
}

int list(const struct job *j)
{
	struct list_walk w = { .ref = j->head->ref, .left = j->list->max ? j->list->max : ~0u };
	int err;

	if (j->list->depth > DEPTH_MOST)
		return -EINVAL;
	w.levels = j->list->depth ? j->list->depth : 1;
	w.after = *j->part[1] ? j->part[1] : NULL;
	w.full = j->head->flags & WIRE_ENTRY_FULL;
	err = (int)sys_openat(AT_FDCWD, j->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (err >= 0)
		err = list_enter(&w, err, 0);
	if (err >= 0)
		list_walk(&w);
	while (w.depth)
		list_leave(&w);
	if (err < 0)
		return err;
	say_head(WIRE_DONE, w.ref, w.flags);
	return ANSWERED;
}
