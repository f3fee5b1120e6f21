/* directory.c - see directory.h.
 *
 *   a batch of a node -> directory_check() -> behind the other batches of that node -> directory_rows -> acknowledged
 *
 * One transaction of a node is under way at a time, so that an acknowledgement covers all before it. It has the batches that
 * have arrived until then: after an outage of the database these are many. Batches that the database rejects are sent alone;
 * one that it rejects alone is divided until the row is found; that row is left out, the others are stored. */
#include "gateway/directory.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/log.h"
#include "coordinator/cluster_client.h"
#include "coordinator/queries.h"
#include "store/directory.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

enum {
	DIRECTORY_RETRY_MS = 250,
	DIRECTORY_MAINTAIN_MS = 3600000,
	DIRECTORY_MAINTAIN_FIRST_MS = 2000,
	DIRECTORY_BOX_MS = 60000,
	DIRECTORY_BOXES_MOST = 64, /* new boxes of a request to the database */
	DIRECTORY_BOXES_BYTES = 128 << 10,
	DIRECTORY_TOGETHER_BYTES = 512 << 10, /* of the batches in one transaction */
	DIRECTORY_LOG_EACH = 40,              /* attempts per line of the log */
};

struct directory_batch {
	struct directory_batch *next;
	struct directory *directory;
	struct cluster_request request;
	unsigned node;
	uint64_t last;
	unsigned rows;
	char *text;
	int is_sent;
	int is_part;  /* its end is in the next batch, which is acknowledged */
	int is_with;  /* sent in the transaction of the batch before it */
	int is_alone; /* the database has rejected it together with others */
	void (*kept)(void *user, uint64_t last); /* NULL: of a node */
	void *user;
};

struct directory_boxes;
struct directory {
	struct loop *loop;
	struct tunnels *tunnels;
	struct cluster_client *engines;
	struct directory_batch *first, **end; /* in the order of their arrival */
	struct directory_boxes *boxes;
	struct timer retry, maintain, collected;
	struct cluster_request maintenance;
	struct directory_figures figures;
};

/* ---- what a node may send ---- */

static const char *const directory_kinds[] = { "box", "run", "event", "audit", "usage", "day" };

static int directory_is_kind(const char *text)
{
	for (unsigned i = 0; i < sizeof(directory_kinds) / sizeof(directory_kinds[0]); i++)
		if (strcmp(text, directory_kinds[i]) == 0)
			return 1;
	return 0;
}

static int directory_is_time(const json_t *row, const char *name)
{
	const json_t *v = json_object_get(row, name);

	return json_is_integer(v) && json_integer_value(v) >= 0;
}

/* Ids of 12 letters are those of a machine before it joined; the first node that sends one owns it. A box that was
 * restarted elsewhere has the id of another node: the query accepts it if the table `moved` names this node. */
static int directory_check_row(const json_t *row, unsigned node, struct err *e)
{
	const char *kind = json_string_value(json_object_get(row, "kind")),
		   *id = json_string_value(json_object_get(row, "id")),
		   *team = json_string_value(json_object_get(row, "team"));
	const json_t *rev = json_object_get(row, "rev"), *at = json_object_get(row, "at_ns"),
		     *body = json_object_get(row, "row");

	if (!kind || !directory_is_kind(kind))
		return err_set(e, ERR_INVALID, "row of the unknown kind '%.20s'", kind ? kind : "");
	if (!id || !*id || strlen(id) > STORE_DIRECTORY_ID)
		return err_set(e, ERR_INVALID, "row (%s) without a valid id", kind);
	if ((strcmp(kind, "box") == 0 || strcmp(kind, "run") == 0) && !id_valid(id))
		return err_set(e, ERR_INVALID, "'%.40s' is not the id of a %s", id, kind);
	if (strcmp(kind, "run") == 0 && id_node(id) >= 0 && id_node(id) != (int)node)
		return err_set(e, ERR_DENIED, "run %s belongs to node %d, not to node %u", id,
			       id_node(id), node);
	if (!team || strlen(team) > STORE_NAME)
		return err_set(e, ERR_INVALID, "row (%s %.40s) without a team", kind, id);
	if ((strcmp(kind, "event") == 0 || strcmp(kind, "audit") == 0) &&
	    (strlen(id) > 18 || strspn(id, "0123456789") != strlen(id)))
		return err_set(e, ERR_INVALID, "'%.40s' is not the number of an %s", id, kind);
	if (strcmp(kind, "box") == 0 &&
	    (!directory_is_time(body, "started_ns") || !directory_is_time(body, "ended_ns")))
		return err_set(e, ERR_INVALID, "row of box %s without times", id);
	if (!json_is_integer(rev) || json_integer_value(rev) <= 0 || !json_is_integer(at) ||
	    json_integer_value(at) < 0 || !json_is_object(body))
		return err_set(e, ERR_INVALID, "row (%s %.40s) without rev, at_ns or row", kind,
			       id);
	return 0;
}

int directory_check(const json_t *rows, unsigned node, struct err *e)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) if (directory_check_row(row, node, e) < 0) return -1;
	return 0;
}

/* ---- batches ---- */

static void directory_go(struct directory *d);

static struct directory_batch **directory_find(struct directory *d, const struct directory_batch *b)
{
	struct directory_batch **at = &d->first;

	while (*at && *at != b)
		at = &(*at)->next;
	return at;
}

static void directory_drop(struct directory_batch *b)
{
	struct directory *d = b->directory;
	struct directory_batch **at = directory_find(d, b);

	*at = b->next;
	if (!*at)
		d->end = at;
	d->figures.waiting--;
	cluster_client_cancel(&b->request);
	free(b->text);
	free(b);
}

/* Stored, or nothing of it can be stored. */
static void directory_finish(struct directory_batch *b)
{
	struct directory *d = b->directory;
	void (*kept)(void *user, uint64_t last) = b->kept;
	void *user = b->user;
	unsigned node = b->node;
	uint64_t last = b->last;
	int is_part = b->is_part;

	directory_drop(b);
	if (kept && !is_part)
		kept(user, last);
	else if (!is_part)
		tunnels_rows_kept(d->tunnels, node, last);
	directory_go(d);
}

static void directory_set_rows(struct directory_batch *b, json_t *take_rows)
{
	free(b->text);
	b->text = json_dumps(take_rows, JSON_COMPACT);
	b->rows = (unsigned)json_array_size(take_rows);
	json_decref(take_rows);
}

/* The first half of its rows becomes a batch of its own, before it. */
static void directory_divide(struct directory_batch *b, const json_t *rows)
{
	struct directory *d = b->directory;
	struct directory_batch *half = calloc(1, sizeof(*half)), **at = directory_find(d, b);
	json_t *first = json_array(), *second = json_array(), *row;
	size_t i;

	if (!half)
		abort();
	json_array_foreach((json_t *)rows, i, row)
		json_array_append(i < json_array_size(rows) / 2 ? first : second, row);
	*half = (struct directory_batch){ .next = b,
					  .directory = d,
					  .node = b->node,
					  .last = b->last,
					  .is_part = 1,
					  .is_alone = 1 };
	*at = half;
	d->figures.waiting++;
	directory_set_rows(half, first);
	directory_set_rows(b, second);
	b->is_sent = 0;
	b->is_alone = 1;
	directory_go(d);
}

/* The same rows would be rejected again, and all that this node sends later would wait for them. */
static void directory_rejected(struct directory_batch *b, const struct err *e)
{
	json_t *rows = json_loads(b->text, 0, NULL), *row = json_array_get(rows, 0);
	const char *kind = json_string_value(json_object_get(row, "kind")),
		   *id = json_string_value(json_object_get(row, "id"));

	if (json_array_size(rows) > 1) {
		directory_divide(b, rows);
	} else {
		log_error(
			"the database rejects a row of a node, which is left out of the directory",
			LOG_U("node", b->node), LOG_S("kind", kind ? kind : ""),
			LOG_S("id", id ? id : ""), LOG_E(e));
		b->directory->figures.rejected++;
		directory_finish(b);
	}
	json_decref(rows);
}

/* The next batch in the transaction of b; NULL: none. */
static struct directory_batch *directory_next_with(const struct directory_batch *b)
{
	for (struct directory_batch *x = b->next; x; x = x->next)
		if (x->node == b->node)
			return x->is_with ? x : NULL;
	return NULL;
}

/* b and those that were sent with it are sent again. 1: there were others. */
static int directory_unsend(struct directory_batch *b)
{
	int n = 0;

	b->is_sent = 0;
	for (struct directory_batch *x = b; (x = directory_next_with(x)); n++)
		x->is_sent = x->is_with = 0;
	return n > 0;
}

static void directory_stored(struct directory_batch *b)
{
	while (b) {
		struct directory_batch *with = directory_next_with(b);

		b->directory->figures.batches++;
		b->directory->figures.rows += b->rows;
		directory_finish(b);
		b = with;
	}
}

static void directory_answered(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct directory_batch *b = loop_owner(r, struct directory_batch, request);
	struct directory *d = b->directory;
	int is_rejected = e && (e->kind == ERR_CONFLICT || e->kind == ERR_INVALID);

	(void)answer;
	if (!e) {
		directory_stored(b);
	} else if (is_rejected && directory_unsend(b)) {
		b->is_alone = 1;
		directory_go(d);
	} else if (is_rejected) {
		directory_rejected(b, e);
	} else { /* not known whether it was stored */
		directory_unsend(b);
		if (d->figures.repeated++ % DIRECTORY_LOG_EACH == 0)
			log_warn("rows of a node were not stored, and are sent again",
				 LOG_U("node", b->node), LOG_E(e));
		timer_set(&d->retry, DIRECTORY_RETRY_MS);
	}
}

static int directory_has_earlier(const struct directory *d, const struct directory_batch *b)
{
	for (const struct directory_batch *x = d->first; x != b; x = x->next)
		if (x->node == b->node)
			return 1;
	return 0;
}

static void directory_query(struct directory *d, struct cluster_request *r, const char *query,
			    unsigned node, const char *rows)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	const char prefix[4] = { letters[node >> 10 & 31], letters[node >> 5 & 31],
				 letters[node & 31], 0 };
	char number[16];

	snprintf(number, sizeof(number), "%u", node);
	query_request(d->engines, r, query, json_pack("[s, s, s]", number, rows, prefix));
}

/* Adds the rows of an array to those of another one. */
static void directory_join(struct buf *rows, const char *text)
{
	int is_first = rows->len <= strlen("[]");

	buf_cut(rows, rows->len - 1);
	if (!is_first && strcmp(text, "[]") != 0)
		buf_puts(rows, ",");
	buf_puts(rows, text + 1);
}

/* With the batches of its node that wait for it. */
static void directory_send(struct directory *d, struct directory_batch *b)
{
	auto_buf struct buf rows = { 0 };

	b->is_sent = 1;
	b->request.done = directory_answered;
	buf_puts(&rows, b->text);
	for (struct directory_batch *x = b->next; x && !b->is_alone; x = x->next) {
		if (x->node != b->node)
			continue;
		if (x->is_alone || rows.len + strlen(x->text) > DIRECTORY_TOGETHER_BYTES)
			break;
		directory_join(&rows, x->text);
		x->is_sent = x->is_with = 1;
	}
	directory_query(d, &b->request, "directory_rows", b->node, buf_str(&rows));
}

/* Sends the oldest batches of each node, unless some are under way. */
static void directory_go(struct directory *d)
{
	for (struct directory_batch *b = d->first; b; b = b->next)
		if (!b->is_sent && !directory_has_earlier(d, b))
			directory_send(d, b);
}

static void directory_retry(struct timer *t)
{
	directory_go(loop_owner(t, struct directory, retry));
}

/* A node that has connected again sends from the first row that was not acknowledged. */
static void directory_forget_repeated(struct directory *d, unsigned node, uint64_t last)
{
	struct directory_batch *next;

	for (struct directory_batch *b = d->first; b; b = next) {
		next = b->next;
		if (b->node == node && !b->is_sent && b->last >= last)
			directory_drop(b);
	}
}

static struct directory_batch *directory_add(struct directory *d, unsigned node, const json_t *rows,
					     uint64_t last)
{
	struct directory_batch *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	directory_forget_repeated(d, node, last);
	*b = (struct directory_batch){ .directory = d,
				       .node = node,
				       .last = last,
				       .rows = (unsigned)json_array_size(rows),
				       .text = json_dumps(rows, JSON_COMPACT) };
	*d->end = b;
	d->end = &b->next;
	d->figures.waiting++;
	timer_set(&d->retry, 0);
	return b;
}

static int directory_rows(void *user, struct tunnel_node *n, const json_t *rows, uint64_t last,
			  struct err *e)
{
	struct directory *d = user;

	if (directory_check(rows, n->number, e) < 0) {
		d->figures.refused++;
		return -1;
	}
	directory_add(d, n->number, rows, last);
	return 0;
}

int directory_add_own(struct directory *d, unsigned number, const json_t *rows, uint64_t last,
		      void (*kept)(void *user, uint64_t last), void *user, struct err *e)
{
	struct directory_batch *b;

	if (directory_check(rows, number, e) < 0)
		return -1;
	b = directory_add(d, number, rows, last);
	b->kept = kept;
	b->user = user;
	return 0;
}

/* ---- new boxes ---- */

/* A creation that counts until its row is stored. */
struct directory_box {
	struct directory_box *next;
	void (*stored)(void *user, const char *team);
	void *user;
	char team[STORE_NAME + 1];
};

/* Rows of one node. While some are under way, further ones are collected: a transaction for each would cost the database more
 * than the rows. */
struct directory_boxes {
	struct directory_boxes *next;
	struct directory *directory;
	struct cluster_request request;
	unsigned node, n;
	int is_sent;
	struct buf rows;
	struct directory_box *boxes;
	struct timer late; /* the database did not answer: the node sends the rows, too */
};

static struct directory_boxes *directory_find_boxes(struct directory *d, unsigned node, int is_sent)
{
	struct directory_boxes *b = d->boxes;

	while (b && (b->node != node || b->is_sent != is_sent))
		b = b->next;
	return b;
}

static void directory_end_boxes(struct directory_boxes *b, int is_stored)
{
	struct directory_boxes **at = &b->directory->boxes;
	struct directory_box *x;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	cluster_client_cancel(&b->request);
	timer_fini(&b->late);
	while ((x = b->boxes)) {
		b->boxes = x->next;
		if (is_stored && x->stored)
			x->stored(x->user, x->team);
		free(x);
	}
	buf_fini(&b->rows);
	free(b);
}

static void directory_boxes_late(struct timer *t)
{
	directory_end_boxes(loop_owner(t, struct directory_boxes, late), 1);
}

static void directory_send_boxes(struct directory_boxes *b)
{
	b->is_sent = 1;
	buf_puts(&b->rows, "]");
	directory_query(b->directory, &b->request, "directory_boxes", b->node, buf_str(&b->rows));
	buf_fini(&b->rows);
	b->rows = (struct buf){ 0 };
}

/* Stored or not: the node sends the rows, too. */
static void directory_boxes_answered(struct cluster_request *r, const json_t *answer,
				     const struct err *e)
{
	struct directory_boxes *b = loop_owner(r, struct directory_boxes, request), *next;
	struct directory *d = b->directory;
	unsigned node = b->node;

	(void)answer;
	if (e)
		timer_set(&b->late, DIRECTORY_BOX_MS);
	else
		directory_end_boxes(b, 1);
	next = directory_find_boxes(d, node, 0);
	if (next)
		directory_send_boxes(next);
}

/* Before any other request to the database: a list contains the boxes that were created before it was requested. */
static void directory_send_all_boxes(void *user)
{
	struct directory *d = user;

	for (struct directory_boxes *b = d->boxes; b; b = b->next)
		if (!b->is_sent)
			directory_send_boxes(b);
}

static void directory_collected(struct timer *t)
{
	directory_send_all_boxes(loop_owner(t, struct directory, collected));
}

/* Is an answer expected? Not if one was an error and its rows wait for the node. */
static int directory_sends_boxes(const struct directory *d, unsigned node)
{
	for (const struct directory_boxes *b = d->boxes; b; b = b->next)
		if (b->node == node && b->is_sent && !timer_pending(&b->late))
			return 1;
	return 0;
}

static struct directory_boxes *directory_open_boxes(struct directory *d, unsigned node)
{
	struct directory_boxes *b = directory_find_boxes(d, node, 0);

	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	b->directory = d;
	b->node = node;
	b->request.done = directory_boxes_answered;
	timer_init(&b->late, d->loop, directory_boxes_late);
	b->next = d->boxes;
	d->boxes = b;
	return b;
}

void directory_add_box(struct directory *d, unsigned node, const char *text, const char *team,
		       void (*stored)(void *user, const char *team), void *user)
{
	json_t *row = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *kind = json_string_value(json_object_get(row, "kind"));
	struct directory_boxes *b;
	struct directory_box *x;
	struct err e;

	if (!kind || strcmp(kind, "box") != 0 || directory_check_row(row, node, &e) < 0) {
		json_decref(row);
		return;
	}
	json_decref(row);
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	x->stored = stored;
	x->user = user;
	snprintf(x->team, sizeof(x->team), "%s", team);
	b = directory_open_boxes(d, node);
	x->next = b->boxes;
	b->boxes = x;
	buf_puts(&b->rows, b->n++ ? "," : "[");
	buf_puts(&b->rows, text);
	if (b->n == DIRECTORY_BOXES_MOST || b->rows.len > DIRECTORY_BOXES_BYTES)
		directory_send_boxes(b);
	else if (!directory_sends_boxes(d, node))
		timer_set(&d->collected, 0); /* with others of this turn of the loop */
}

/* ---- partitions ---- */

static void directory_maintained(struct cluster_request *r, const json_t *answer,
				 const struct err *e)
{
	struct directory *d = loop_owner(r, struct directory, maintenance);

	(void)answer;
	timer_set(&d->maintain, e ? DIRECTORY_MAINTAIN_FIRST_MS : DIRECTORY_MAINTAIN_MS);
}

static void directory_maintain(struct timer *t)
{
	struct directory *d = loop_owner(t, struct directory, maintain);
	char events[12], runs[12], audit[12];

	snprintf(events, sizeof(events), "%d", DIRECTORY_EVENTS_DAYS);
	snprintf(runs, sizeof(runs), "%d", DIRECTORY_RUNS_DAYS);
	snprintf(audit, sizeof(audit), "%d", DIRECTORY_AUDIT_DAYS);
	d->maintenance.done = directory_maintained;
	query_request(d->engines, &d->maintenance, "directory_maintain",
		      json_pack("[s, s, s]", events, runs, audit));
}

struct directory *directory_new(struct loop *l, struct tunnels *t, struct cluster_client *engines)
{
	struct directory *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	d->loop = l;
	d->tunnels = t;
	d->engines = engines;
	d->end = &d->first;
	timer_init(&d->retry, l, directory_retry);
	timer_init(&d->collected, l, directory_collected);
	cluster_client_before(engines, directory_send_all_boxes, d);
	timer_init(&d->maintain, l, directory_maintain);
	timer_set(&d->maintain, 0);
	tunnels_set_rows(t, d, directory_rows);
	return d;
}

void directory_free(struct directory *d)
{
	if (!d)
		return;
	tunnels_set_rows(d->tunnels, NULL, NULL);
	while (d->first)
		directory_drop(d->first);
	cluster_client_before(d->engines, NULL, NULL);
	while (d->boxes)
		directory_end_boxes(d->boxes, 0);
	cluster_client_cancel(&d->maintenance);
	timer_fini(&d->retry);
	timer_fini(&d->maintain);
	timer_fini(&d->collected);
	free(d);
}

struct directory_figures directory_figures(const struct directory *d)
{
	return d->figures;
}
