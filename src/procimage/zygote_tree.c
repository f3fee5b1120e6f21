/* zygote_tree.c - the processes of a tree, in the order in which they are born.
 *
 * A leader of a session or of a process group that has ended, and a parent of processes that belong to init, are
 * helpers: they exist until all processes have entered their groups. */
#include "procimage/zygote_builder.h"

#include <string.h>

struct tree {
	const struct image *const *v;
	unsigned n;
	struct restorer_process *to;
	int32_t session[RESTORER_PROCESSES];
	unsigned count;
	int32_t spare;
};

static int tree_find(const struct tree *t, int32_t pid)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->to[i].pid == pid)
			return (int)i;
	return -1;
}

static int tree_add(struct tree *t, struct restorer_process p, int32_t session, struct err *e)
{
	if (t->count == RESTORER_PROCESSES)
		return err_set(e, ERR_LIMIT,
			       "more than %d processes, zombies and helpers in a tree",
			       RESTORER_PROCESSES);
	t->session[t->count] = session;
	t->to[t->count] = p;
	return (int)t->count++;
}

static int tree_will_be(const struct tree *t, int32_t pid)
{
	for (unsigned i = 0; i < t->n; i++)
		if (image_program(t->v[i])->pid == pid)
			return 1;
	return 0;
}

/* A negative pid is counted from that of the helper which starts the copy: no process of the box has it. */
static int32_t tree_spare(struct tree *t)
{
	return --t->spare;
}

/* The parent of a process whose parent is init: it ends. */
static int tree_add_orphans_parent(struct tree *t, int32_t session, struct err *e)
{
	int leads = session && session != t->session[0] && !tree_will_be(t, session);
	struct restorer_process p = { .role = ROLE_HELPER };

	if (leads && tree_find(t, session) >= 0)
		return tree_find(t, session);
	p.pid = leads ? session : tree_spare(t);
	p.leads = leads;
	return tree_add(t, p, leads ? session : t->session[0], e);
}

/* A group needs its leader when others enter it. */
static int tree_add_leader(struct tree *t, int member, int32_t group, struct err *e)
{
	struct restorer_process p = {
		.pid = group, .group = group, .parent = (uint32_t)member, .role = ROLE_HELPER
	};

	if (!group || tree_find(t, group) >= 0 || tree_will_be(t, group))
		return 0;
	return tree_add(t, p, t->session[member], e) < 0 ? -1 : 0;
}

static int tree_add_zombies(struct tree *t, const struct image *im, int parent, struct err *e)
{
	for (uint64_t i = 0; i < im->header.count[TABLE_ZOMBIES]; i++) {
		const struct image_zombie *z = &image_zombies(im)[i];
		struct restorer_process p = { .pid = z->pid,
					      .group = z->group,
					      .parent = (uint32_t)parent,
					      .role = ROLE_ZOMBIE,
					      .status = z->status };

		memcpy(p.name, z->name, sizeof(p.name));
		if (tree_add(t, p, t->session[parent], e) < 0 ||
		    (z->group != z->pid && tree_add_leader(t, parent, z->group, e) < 0))
			return -1;
	}
	return 0;
}

static int tree_add_program(struct tree *t, unsigned k, struct err *e)
{
	const struct image_program *g = image_program(t->v[k]);
	struct restorer_process p = {
		.pid = g->pid, .group = g->group, .early = g->early, .leads = g->session == g->pid
	};
	int parent = 0, at;

	if (k) {
		parent = g->parent == 1 ? tree_add_orphans_parent(t, g->session, e)
					: tree_find(t, g->parent);
		if (parent < 0)
			return g->parent == 1 ? -1
					      : err_set(e, ERR_INVALID, "process %d has no parent",
							g->pid);
	}
	p.parent = (uint32_t)parent;
	at = tree_add(t, p, g->session, e);
	if (at < 0)
		return -1;
	return p.leads || g->group == g->pid             ? at
	       : tree_add_leader(t, at, g->group, e) < 0 ? -1
							 : at;
}

int zygote_make_processes(const struct image *const *v, unsigned n, struct restorer_process *to,
			  unsigned index[], struct err *e)
{
	static struct tree t;

	t = (struct tree){ .v = v, .n = n, .to = to };
	for (unsigned k = 0; k < n; k++) {
		int at = tree_add_program(&t, k, e);

		if (at < 0 || tree_add_zombies(&t, v[k], at, e) < 0)
			return -1;
		index[k] = (unsigned)at;
	}
	return (int)t.count;
}
