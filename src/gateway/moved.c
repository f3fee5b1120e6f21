/* moved.c - see moved.h. With etcd as coordinator the decision is there, and the table a copy of it for routing and for
 * the directory, written by the gateway that has moved the box. */
#include "gateway/moved.h"
#include "base/id.h"
#include "base/log.h"
#include "coordinator/queries.h"
#include "gateway/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOVED_LOOK_MS = 1000,
	MOVED_HURRY_MS = 200,
	MOVED_HURRIES_MS = 15000,
	MOVED_CURRENT_MS = 3500
};

struct moved_box {
	char id[ID_MAX + 1];
	int node;
	int64_t epoch;
};

struct moved_write {
	struct moved_write *next;
	struct gateway_moved *all;
	struct cluster_request request;
	struct moved_box box;
	int from;
	int is_sent;
};

struct gateway_moved {
	struct loop *loop;
	struct cluster_client *engines;
	struct cluster_request request;
	struct timer look;
	struct moved_box *v; /* by id */
	unsigned n;
	char state[64];             /* of the table, when it was read */
	uint64_t read_ms, hurry_ms; /* until hurry_ms the table is read every MOVED_HURRY_MS */
	struct moved_write *writes;
};

static int moved_compare(const void *a, const void *b)
{
	return strcmp(((const struct moved_box *)a)->id, ((const struct moved_box *)b)->id);
}

static struct moved_box *moved_find(const struct gateway_moved *m, const char *id)
{
	struct moved_box key;

	if (!m || !m->n || strlen(id) > ID_MAX)
		return NULL;
	snprintf(key.id, sizeof(key.id), "%s", id);
	return bsearch(&key, m->v, m->n, sizeof(*m->v), moved_compare);
}

int gateway_moved_find(const struct gateway_moved *m, const char *id, int *out_node,
		       int64_t *out_epoch)
{
	const struct moved_box *b = moved_find(m, id);

	if (!b)
		return 0;
	*out_node = b->node;
	*out_epoch = b->epoch;
	return 1;
}

int gateway_moved_node(const struct gateway_moved *m, const char *id, size_t n)
{
	const struct moved_box *b;
	char text[ID_MAX + 1];

	if (n != ID_MAX && n != ID_LEN)
		return -1;
	memcpy(text, id, n);
	text[n] = 0;
	b = moved_find(m, text);
	return b ? b->node : target_node_of(text, n);
}

int gateway_moved_is_current(const struct gateway_moved *m)
{
	return m && m->read_ms && loop_now_ms() - m->read_ms < MOVED_CURRENT_MS;
}

unsigned gateway_moved_count(const struct gateway_moved *m)
{
	return m ? m->n : 0;
}

/* ---- the table ---- */

static void moved_put(struct gateway_moved *m, const struct moved_box *x)
{
	struct moved_box *b = moved_find(m, x->id);

	if (b) {
		*b = *x;
		return;
	}
	m->v = reallocarray(m->v, m->n + 1, sizeof(*m->v));
	if (!m->v)
		abort();
	m->v[m->n++] = *x;
	qsort(m->v, m->n, sizeof(*m->v), moved_compare);
}

static void moved_read(struct gateway_moved *m, const json_t *rows)
{
	const json_t *row;
	size_t i;

	free(m->v);
	m->n = 0;
	m->v = calloc(json_array_size(rows) + 1, sizeof(*m->v));
	if (!m->v)
		abort();
	json_array_foreach(rows, i, row)
	{
		struct moved_box *b = &m->v[m->n];

		if (!id_valid(query_text(row, 0)))
			continue;
		snprintf(b->id, sizeof(b->id), "%s", query_text(row, 0));
		b->node = (int)query_int(row, 1);
		b->epoch = query_int(row, 2);
		m->n++;
	}
	qsort(m->v, m->n, sizeof(*m->v), moved_compare);
	for (const struct moved_write *w = m->writes; w; w = w->next)
		moved_put(m, &w->box); /* not in the table yet */
}

static void moved_looked(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct gateway_moved *m = loop_owner(r, struct gateway_moved, request);
	const json_t *row = json_array_get(query_rows(answer, 0), 0);

	timer_set(&m->look, loop_now_ms() < m->hurry_ms ? MOVED_HURRY_MS : MOVED_LOOK_MS);
	if (e)
		return;
	m->read_ms = loop_now_ms();
	if (strcmp(query_text(row, 0), m->state) == 0)
		return;
	snprintf(m->state, sizeof(m->state), "%s", query_text(row, 0));
	moved_read(m, query_rows(answer, 1));
}

static void moved_send(struct moved_write *w);

static void moved_look(struct timer *t)
{
	struct gateway_moved *m = loop_owner(t, struct gateway_moved, look);

	for (struct moved_write *w = m->writes; w; w = w->next)
		if (!w->is_sent)
			moved_send(w);
	m->request.done = moved_looked;
	query_request(m->engines, &m->request, "moved_list", json_pack("[s]", m->state));
}

/* ---- writing ---- */

static void moved_drop(struct moved_write *w)
{
	struct moved_write **at = &w->all->writes;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	cluster_client_cancel(&w->request);
	free(w);
}

static void moved_written(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct moved_write *w = loop_owner(r, struct moved_write, request);

	(void)answer;
	if (e && e->kind == ERR_SYS) {
		log_warn("a box that was moved is not stored in the table yet",
			 LOG_S("box", w->box.id), LOG_E(e));
		w->is_sent = 0; /* again with the next look */
		return;
	}
	moved_drop(w);
}

static void moved_send(struct moved_write *w)
{
	char from[12], node[12], epoch[24];

	snprintf(from, sizeof(from), "%d", w->from);
	snprintf(node, sizeof(node), "%d", w->box.node);
	snprintf(epoch, sizeof(epoch), "%lld", (long long)w->box.epoch);
	w->is_sent = 1;
	w->request.done = moved_written;
	query_request(w->all->engines, &w->request, "moved_add",
		      json_pack("[s, s, s, s]", w->box.id, from, node, epoch));
}

void gateway_moved_hurry(struct gateway_moved *m)
{
	if (!m)
		return;
	m->hurry_ms = loop_now_ms() + MOVED_HURRIES_MS;
	if (timer_pending(&m->look))
		timer_set(&m->look, 0);
}

void gateway_moved_add(struct gateway_moved *m, const char *id, int from, int node, int64_t epoch)
{
	struct moved_write *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	*w = (struct moved_write){
		.next = m->writes, .all = m, .box = { .node = node, .epoch = epoch }, .from = from
	};
	snprintf(w->box.id, sizeof(w->box.id), "%s", id);
	m->writes = w;
	moved_put(m, &w->box);
	moved_send(w);
}

struct gateway_moved *gateway_moved_new(struct loop *l, struct cluster_client *engines)
{
	struct gateway_moved *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->loop = l;
	m->engines = engines;
	timer_init(&m->look, l, moved_look);
	timer_set(&m->look, 0);
	return m;
}

void gateway_moved_free(struct gateway_moved *m)
{
	if (!m)
		return;
	while (m->writes)
		moved_drop(m->writes);
	cluster_client_cancel(&m->request);
	timer_fini(&m->look);
	free(m->v);
	free(m);
}
