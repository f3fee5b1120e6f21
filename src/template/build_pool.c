/* build_pool.c - boxes of templates that are created in advance: the keeper has a pool for the root of each
 * template with `pool`. See build_internal.h. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/bounds.h"
#include "template/templates.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>

struct build_pool { /* a pool that the keeper was asked for */
	struct build_pool *next;
	struct builds *all;
	char template[STORE_TEMPLATE_ID + 1], root[STORE_HASH + 1];
	struct build_pool_asking { /* of plain boxes, and of each interpreter */
		struct build_pool *pool;
		struct keeper_call *call;
	} asking[WIRE_POOL_WARMS];
};

static void build_pool_filled(void *ctx, const struct frame *f, size_t len, int *fd,
			      const struct err *e)
{
	struct build_pool_asking *a = ctx;

	(void)len;
	(void)fd;
	a->call = NULL;
	if (!f)
		log_warn("the pool of a template is not filled",
			 LOG_S("template", a->pool->template), LOG_E(e));
}

struct wire_limits build_pool_limits(const struct builds *b, const struct store_build *row)
{
	struct wire_limits l = b->fleet->conf.limits;

	if (row->cpu_milli)
		l.cpu_milli = row->cpu_milli;
	if (row->mem_bytes)
		l.mem_bytes = row->mem_bytes;
	if (row->disk_bytes)
		l.disk_bytes = row->disk_bytes;
	bounds_lower(&b->fleet->conf.most, &l);
	return l;
}

static void build_pool_ask(struct build_pool *p, enum wire_pool_warm warm, uint32_t depth,
			   const struct wire_limits *limits)
{
	struct wire_pool_root ask = { .head = sock_head(WIRE_POOL_ROOT, 0),
				      .depth = depth,
				      .warm = warm };
	struct build_pool_asking *a = &p->asking[warm];

	ask.limits = *limits;
	snprintf(ask.root, sizeof(ask.root), "%s", p->root);
	a->pool = p;
	keeper_client_cancel(&p->all->fleet->keeper, a->call);
	a->call = keeper_client_request(&p->all->fleet->keeper, &ask, sizeof(ask), WIRE_DONE,
					build_pool_filled, a);
}

/* warms: bits of the interpreters that wait, too. */
static void build_pool_ask_all(struct build_pool *p, unsigned warms, uint32_t depth,
			       const struct wire_limits *limits)
{
	for (unsigned i = WIRE_POOL_PLAIN; i < WIRE_POOL_WARMS; i++)
		if (i == WIRE_POOL_PLAIN || warms & 1u << i)
			build_pool_ask(p, (enum wire_pool_warm)i, depth, limits);
}

static struct build_pool *build_pool_of(struct builds *b, const char *template)
{
	struct build_pool *p = b->pools;

	while (p && strcmp(p->template, template) != 0)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->all = b;
	snprintf(p->template, sizeof(p->template), "%s", template);
	p->next = b->pools;
	b->pools = p;
	return p;
}

/* root "": none. */
static void build_pool_set(struct builds *b, const char *template, const char *root, unsigned warms,
			   uint32_t depth, const struct wire_limits *limits)
{
	struct build_pool *p = build_pool_of(b, template);

	if (p->root[0] && strcmp(p->root, root) != 0)
		build_pool_ask_all(p, ~0u, 0, limits); /* the root of an earlier build */
	if (!root[0])
		return;
	snprintf(p->root, sizeof(p->root), "%s", root);
	build_pool_ask_all(p, warms, depth, limits);
}

void template_prepare(struct builds *b, const struct store_template *t)
{
	struct store_tag tag;
	struct store_build row;
	struct wire_limits limits;
	struct err e;

	if ((!t->pool && !build_pool_of(b, t->id)->root[0]) ||
	    store_tag_get(b->fleet->store, t->id, TEMPLATE_TAG, &tag, &e) < 0 ||
	    store_build_get(b->fleet->store, tag.build, &row, &e) < 0)
		return;
	limits = build_pool_limits(b, &row);
	build_pool_set(b, t->id, row.root, build_runtimes_warms(row.settings), t->pool, &limits);
	store_build_fini(&row);
}

void templates_prepare(struct builds *b)
{
	struct store_templates rows = { 0 };
	struct err e;

	if (!b || store_template_pooled(b->fleet->store, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++)
		template_prepare(b, &rows.v[i]);
	store_templates_fini(&rows);
}

void build_pools_free(struct builds *b)
{
	while (b->pools) {
		struct build_pool *p = b->pools;

		b->pools = p->next;
		for (unsigned i = 0; i < WIRE_POOL_WARMS; i++)
			keeper_client_cancel(&b->fleet->keeper, p->asking[i].call);
		free(p);
	}
}
