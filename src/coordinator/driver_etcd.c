/* driver_etcd.c - the coordinator in etcd.
 *
 *   /atoll/numbers                    the last number of a machine
 *   /atoll/machines/<role>/<name>     "number fingerprint"
 *   /atoll/gateways/<g>               "address version"; its revision is the incarnation
 *   /atoll/renewals/<g>               its revision is the counter
 *   /atoll/nodes/<n>                  "epoch forgotten up|lost name"
 *   /atoll/tunnels/<n>/<g>            exists while the tunnel is up: "serial"
 *   /atoll/serials/<n>/<g>            "serial" of the last request about the tunnel
 *   /atoll/names/<team>/<kind>/<name>/<template>          "node epoch box"
 *   /atoll/owned/<n>/<team>/<kind>/<name>/<template>      "epoch box": the names of a node
 *   /atoll/moved/<box>                "node epoch"
 *   /atoll/superseded/<n>/<box>       "epoch"
 *
 * An operation reads keys, decides, and writes under the condition that none of them has changed; else it begins again.
 * Nothing is deleted in bulk, except the few keys of a removed node: names of a forgotten node are replaced one by one. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "coordinator/answer.h"
#include "coordinator/coordinator.h"
#include "coordinator/etcd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ETCD_ATTEMPTS = 16, ETCD_KEY = 2560, ETCD_KEYS = 5, ETCD_NUMBERS = 32767 };

struct driver_etcd {
	struct coordinator coordinator;
	struct etcd *etcd;
	struct timer refuse; /* ends requests that are invalid */
	struct etcd_ask *asks;
};

struct etcd_ask {
	struct etcd_ask *next;
	struct driver_etcd *driver;
	struct answer answer;
	unsigned attempts;
	int owner; /* of the name, as of the last attempt; -1 */
	struct err e;
	char keys[ETCD_KEYS][ETCD_KEY]; /* that were read */
	struct etcd_list found[ETCD_KEYS];
	unsigned nkeys;
};

/* What follows after the keys were read. */
enum etcd_next { ETCD_GIVE, ETCD_REFUSE, ETCD_WRITE, ETCD_READ };

/* ---- keys and values ---- */

#define ETCD_NODE(out, n) snprintf(out, ETCD_KEY, "/atoll/nodes/%05d", n)
#define ETCD_GATEWAY(out, g) snprintf(out, ETCD_KEY, "/atoll/gateways/%05d", g)
#define ETCD_RENEWALS(out, g) snprintf(out, ETCD_KEY, "/atoll/renewals/%05d", g)
#define ETCD_TUNNEL(out, n, g) snprintf(out, ETCD_KEY, "/atoll/tunnels/%05d/%05d", n, g)
#define ETCD_SERIAL(out, n, g) snprintf(out, ETCD_KEY, "/atoll/serials/%05d/%05d", n, g)

/* '/' separates parts of a key. */
static void etcd_add_part(struct buf *b, const char *text)
{
	buf_putc(b, '/');
	for (; *text; text++)
		if (*text == '/' || *text == '%')
			buf_printf(b, "%%%02x", (unsigned char)*text);
		else
			buf_putc(b, *text);
}

static void etcd_key_of_text(char out[ETCD_KEY], const char *folder, const char *text)
{
	auto_buf struct buf b = { 0 };

	buf_printf(&b, "/atoll/%s", folder);
	etcd_add_part(&b, text);
	snprintf(out, ETCD_KEY, "%s", buf_str(&b));
}

static void etcd_key_of_name(char out[ETCD_KEY], const char *folder,
			     const struct coordinator_key *k)
{
	auto_buf struct buf b = { 0 };

	buf_printf(&b, "/atoll/%s", folder);
	etcd_add_part(&b, k->team);
	buf_printf(&b, "/%c", k->kind);
	etcd_add_part(&b, k->name);
	etcd_add_part(&b, k->template);
	snprintf(out, ETCD_KEY, "%s", buf_str(&b));
}

static void etcd_key_of_owned(char out[ETCD_KEY], int node, const struct coordinator_key *k)
{
	char folder[24];

	snprintf(folder, sizeof(folder), "owned/%05d", node);
	etcd_key_of_name(out, folder, k);
}

static void etcd_key_of_superseded(char out[ETCD_KEY], int node, const char *box)
{
	char folder[24];

	snprintf(folder, sizeof(folder), "superseded/%05d", node);
	etcd_key_of_text(out, folder, box);
}

/* The part of a key between the last two of '/', decoded in place; the key is cut before it. */
static char *etcd_last_part(char *key)
{
	char *slash = strrchr(key, '/'), *out, *in;

	if (!slash)
		return key + strlen(key);
	*slash = 0;
	for (out = in = slash + 1; *in; in++) {
		unsigned byte;

		if (*in == '%' && sscanf(in + 1, "%2x", &byte) == 1) {
			*out++ = (char)byte;
			in += 2;
		} else {
			*out++ = *in;
		}
	}
	*out = 0;
	return slash + 1;
}

static int etcd_key_number(const char *key)
{
	const char *slash = strrchr(key, '/');

	return slash ? atoi(slash + 1) : -1;
}

struct etcd_node {
	int exists;
	int64_t epoch, forgotten;
	int lost;
	const char *name;
};

static struct etcd_node etcd_parse_node(const struct etcd_kv *kv)
{
	struct etcd_node n = { 0 };
	int at = 0;
	char state[8] = "";

	if (!kv || sscanf(kv->value, "%" SCNd64 " %" SCNd64 " %7s %n", &n.epoch, &n.forgotten,
			  state, &at) < 3)
		return n;
	n.exists = 1;
	n.lost = strcmp(state, "up") != 0;
	n.name = kv->value + at;
	return n;
}

struct etcd_name { /* also of /atoll/moved, without a box */
	int exists, node;
	int64_t epoch;
	const char *box;
};

static struct etcd_name etcd_parse_name(const struct etcd_kv *kv)
{
	struct etcd_name n = { .node = -1, .box = "" };
	int at = 0;

	if (!kv || sscanf(kv->value, "%d %" SCNd64 " %n", &n.node, &n.epoch, &at) < 2)
		return n;
	n.exists = 1;
	if (at)
		n.box = kv->value + at;
	return n;
}

static void etcd_put_node(struct etcd_txn *t, int number, const struct etcd_node *n)
{
	char key[ETCD_KEY];
	auto_buf struct buf value = { 0 };

	ETCD_NODE(key, number);
	buf_printf(&value, "%" PRId64 " %" PRId64 " %s %s", n->epoch, n->forgotten,
		   n->lost ? "lost" : "up", n->name);
	etcd_put(t, key, buf_str(&value));
}

static void etcd_put_name(struct etcd_txn *t, const struct coordinator_key *k, int node,
			  int64_t epoch, const char *box)
{
	char key[ETCD_KEY];
	auto_buf struct buf value = { 0 };

	buf_printf(&value, "%d %" PRId64 " %s", node, epoch, box);
	etcd_key_of_name(key, "names", k);
	etcd_put(t, key, buf_str(&value));
	buf_cut(&value, 0);
	buf_printf(&value, "%" PRId64 " %s", epoch, box);
	etcd_key_of_owned(key, node, k);
	etcd_put(t, key, buf_str(&value));
}

static void etcd_put_number(struct etcd_txn *t, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	etcd_put(t, key, text);
}

/* ---- reading ---- */

static char *etcd_want(struct etcd_ask *x)
{
	return x->keys[x->nkeys++];
}

/* The key that was read at this place, or NULL. */
static const struct etcd_kv *etcd_found(const struct etcd_ask *x, unsigned i)
{
	return x->found[i].n ? &x->found[i].v[0] : NULL;
}

static void etcd_forget_found(struct etcd_ask *x)
{
	for (unsigned i = 0; i < x->nkeys; i++)
		etcd_list_fini(&x->found[i]);
	x->nkeys = 0;
}

/* The keys of an operation, always in this order. */
static void etcd_choose_keys(struct etcd_ask *x)
{
	const struct coordinator_request *q = &x->answer.q;
	char folder[24];

	switch (q->op) {
	case COORDINATOR_SET_TUNNEL:
		ETCD_NODE(etcd_want(x), q->node);
		ETCD_SERIAL(etcd_want(x), q->node, q->gateway);
		ETCD_GATEWAY(etcd_want(x), q->node);
		break;
	case COORDINATOR_DECLARE_LOST:
	case COORDINATOR_FORGET_NODE:
	case COORDINATOR_REMOVE_NODE:
		ETCD_NODE(etcd_want(x), q->node);
		break;
	case COORDINATOR_CLAIM_NAME:
	case COORDINATOR_CHANGE_NAME:
	case COORDINATOR_RELEASE_NAME:
	case COORDINATOR_FIND_NAME:
		etcd_key_of_name(etcd_want(x), "names", &q->key);
		ETCD_NODE(etcd_want(x), q->node);
		if (x->owner >= 0)
			ETCD_NODE(etcd_want(x), x->owner);
		break;
	case COORDINATOR_MOVE_BOX:
		ETCD_NODE(etcd_want(x), q->from);
		ETCD_NODE(etcd_want(x), q->node);
		etcd_key_of_text(etcd_want(x), "moved", q->box);
		if (q->key.name)
			etcd_key_of_name(etcd_want(x), "names", &q->key);
		break;
	case COORDINATOR_FIND_BOX:
		etcd_key_of_text(etcd_want(x), "moved", q->box);
		break;
	case COORDINATOR_ADD_MACHINE:
		if (q->role && !strcmp(q->role, "node"))
			ETCD_NODE(etcd_want(x), q->node);
		else
			ETCD_GATEWAY(etcd_want(x), q->node);
		break;
	case COORDINATOR_ASSIGN_NUMBER:
		snprintf(folder, sizeof(folder), "machines/%s", q->role);
		etcd_key_of_text(etcd_want(x), folder, q->name);
		snprintf(etcd_want(x), ETCD_KEY, "/atoll/numbers");
		break;
	default:
		break;
	}
}

/* Nothing that was read has changed. */
static void etcd_compare_found(const struct etcd_ask *x, struct etcd_txn *t)
{
	for (unsigned i = 0; i < x->nkeys; i++) {
		const struct etcd_kv *kv = etcd_found(x, i);

		etcd_compare_revision(t, x->keys[i], kv ? kv->revision : 0);
	}
}

/* ---- decisions, one function per operation that reads first ---- */

static enum etcd_next etcd_set_tunnel(struct etcd_ask *x, struct etcd_txn *t)
{
	const struct coordinator_request *q = &x->answer.q;
	struct etcd_node node = etcd_parse_node(etcd_found(x, 0));
	const struct etcd_kv *serial = etcd_found(x, 1);
	char key[ETCD_KEY], name[32];

	if (!node.exists && etcd_found(x, 2)) { /* a gateway that runs boxes, too */
		snprintf(name, sizeof(name), "gateway-%d", q->node);
		node = (struct etcd_node){ 1, 1, 0, 1, name };
	}
	if (!node.exists) {
		err_set(&x->e, ERR_NOT_FOUND, "there is no node %d", q->node);
		return ETCD_REFUSE;
	}
	if (serial && strtoll(serial->value, NULL, 10) > q->serial) {
		err_set(&x->e, ERR_CONFLICT,
			"a later request about this tunnel was carried out before");
		return ETCD_REFUSE;
	}
	x->answer.answer.epoch = node.epoch;
	ETCD_SERIAL(key, q->node, q->gateway);
	etcd_put_number(t, key, q->serial);
	ETCD_TUNNEL(key, q->node, q->gateway);
	if (!q->up) {
		etcd_delete(t, key);
		return ETCD_WRITE;
	}
	etcd_put_number(t, key, q->serial);
	node.lost = 0;
	etcd_put_node(t, q->node, &node);
	snprintf(key, sizeof(key), "/atoll/owned/%05d/", q->node);
	etcd_get_below(t, key, 0);
	snprintf(key, sizeof(key), "/atoll/superseded/%05d/", q->node);
	etcd_get_below(t, key, 0);
	return ETCD_WRITE;
}

static int etcd_by_number(const void *a, const void *b)
{
	return ((const struct view_gateway *)a)->number - ((const struct view_gateway *)b)->number;
}

/* No tunnel of the node, except at dead gateways: the ranges between theirs are empty. */
static enum etcd_next etcd_declare_lost(struct etcd_ask *x, struct etcd_txn *t)
{
	const struct coordinator_request *q = &x->answer.q;
	struct etcd_node node = etcd_parse_node(etcd_found(x, 0));
	char from[ETCD_KEY], before[ETCD_KEY], key[ETCD_KEY];

	if (!node.exists || node.lost || node.epoch != q->epoch)
		return ETCD_GIVE;
	if (q->ndead)
		qsort(x->answer.dead, q->ndead, sizeof(*x->answer.dead), etcd_by_number);
	snprintf(from, sizeof(from), "/atoll/tunnels/%05d/", q->node);
	for (unsigned i = 0; i < q->ndead; i++) {
		ETCD_TUNNEL(before, q->node, q->dead[i].number);
		etcd_compare_none(t, from, before);
		memcpy(from, before, sizeof(from));
		strcat(from, "!"); /* after `before`, before all other keys */
		ETCD_RENEWALS(key, q->dead[i].number);
		etcd_compare_revision(t, key, q->dead[i].renewals);
	}
	snprintf(before, sizeof(before), "/atoll/tunnels/%05d0", q->node); /* '0' follows '/' */
	etcd_compare_none(t, from, before);
	node.epoch++;
	node.lost = 1;
	etcd_put_node(t, q->node, &node);
	return ETCD_WRITE;
}

static enum etcd_next etcd_forget_node(struct etcd_ask *x, struct etcd_txn *t)
{
	struct etcd_node node = etcd_parse_node(etcd_found(x, 0));

	if (!node.exists || !node.lost || node.epoch != x->answer.q.epoch)
		return ETCD_GIVE;
	x->answer.answer.epoch = node.epoch;
	node.forgotten = node.epoch - 1;
	etcd_put_node(t, x->answer.q.node, &node);
	return ETCD_WRITE;
}

static enum etcd_next etcd_remove_node(struct etcd_ask *x, struct etcd_txn *t)
{
	static const char *const folders[] = { "tunnels", "serials", "superseded", "owned" };
	struct etcd_node node = etcd_parse_node(etcd_found(x, 0));
	char key[ETCD_KEY];

	if (!node.exists)
		return ETCD_GIVE;
	etcd_delete(t, x->keys[0]);
	etcd_key_of_text(key, "machines/node", node.name);
	etcd_delete(t, key);
	for (unsigned i = 0; i < ARRAY_LEN(folders); i++) {
		snprintf(key, sizeof(key), "/atoll/%s/%05d/", folders[i], x->answer.q.node);
		etcd_delete_below(t, key);
	}
	return ETCD_WRITE;
}

/* The owner of the name decides whether it is held; its node is read in the next attempt, if it is another one. */
static enum etcd_next etcd_name_op(struct etcd_ask *x, struct etcd_txn *t)
{
	const struct coordinator_request *q = &x->answer.q;
	struct etcd_name name = etcd_parse_name(etcd_found(x, 0));
	struct etcd_node node = etcd_parse_node(etcd_found(x, 1)), owner;
	char key[ETCD_KEY];
	int held;

	if (name.exists && name.node != x->owner) {
		x->owner = name.node;
		return ETCD_READ;
	}
	owner = etcd_parse_node(name.exists ? etcd_found(x, 2) : NULL);
	held = owner.exists && name.epoch > owner.forgotten;
	switch (q->op) {
	case COORDINATOR_CHANGE_NAME:
		if (!held || name.node != q->node ||
		    (strcmp(name.box, q->box) != 0 && strcmp(name.box, q->new_box) != 0))
			return ETCD_GIVE;
		etcd_put_name(t, &q->key, name.node, name.epoch, q->new_box);
		return ETCD_WRITE;
	case COORDINATOR_RELEASE_NAME:
		if (!name.exists || name.node != q->node || strcmp(name.box, q->box) != 0)
			return ETCD_GIVE;
		etcd_delete(t, x->keys[0]);
		etcd_key_of_owned(key, name.node, &q->key);
		etcd_delete(t, key);
		return ETCD_WRITE;
	case COORDINATOR_CLAIM_NAME:
		if (!node.exists || node.lost || node.epoch != q->epoch) {
			err_set(&x->e, ERR_CONFLICT,
				"node %d has another epoch than %" PRId64 ", or is not connected",
				q->node, q->epoch);
			return ETCD_REFUSE;
		}
		if (held)
			break;
		etcd_put_name(t, &q->key, q->node, q->epoch, q->box);
		if (name.exists && name.node != q->node) {
			etcd_key_of_owned(key, name.node, &q->key);
			etcd_delete(t, key);
		}
		return ETCD_WRITE;
	default:
		break;
	}
	if (held)
		answer_add_name(&x->answer, &(struct coordinator_name){ q->key, name.node,
									name.epoch, name.box });
	x->answer.answer.done =
		q->op == COORDINATOR_FIND_NAME ? held : answer_has_claim(&x->answer);
	return ETCD_GIVE;
}

/* The name of a box that was moved. 0: it is the node's already, or another box has it. */
static int etcd_move_name(struct etcd_ask *x, struct etcd_txn *t)
{
	const struct coordinator_request *q = &x->answer.q;
	struct etcd_name name = etcd_parse_name(q->key.name ? etcd_found(x, 3) : NULL);
	char key[ETCD_KEY];

	if (!name.exists || strcmp(name.box, q->box) != 0 ||
	    (name.node == q->node && name.epoch == q->epoch))
		return 0;
	etcd_put_name(t, &q->key, q->node, q->epoch, q->box);
	if (name.node != q->node) {
		etcd_key_of_owned(key, name.node, &q->key);
		etcd_delete(t, key);
	}
	return 1;
}

static enum etcd_next etcd_move_box(struct etcd_ask *x, struct etcd_txn *t)
{
	const struct coordinator_request *q = &x->answer.q;
	struct etcd_node from = etcd_parse_node(etcd_found(x, 0)),
			 node = etcd_parse_node(etcd_found(x, 1));
	struct etcd_name moved = etcd_parse_name(etcd_found(x, 2));
	char key[ETCD_KEY], value[48];

	if (moved.exists && moved.node == q->node && moved.epoch == q->epoch) {
		x->answer.answer.done = 1; /* before: the answer was lost, or for another name */
		return etcd_move_name(x, t) ? ETCD_WRITE : ETCD_GIVE;
	}
	if (!from.exists || from.lost == !!q->up || from.epoch != q->from_epoch || !node.exists ||
	    node.lost || node.epoch != q->epoch || q->node == q->from)
		return ETCD_GIVE;
	if (moved.exists &&
	    (moved.node != q->from || moved.epoch >= q->from_epoch + (q->up ? 1 : 0)))
		return ETCD_GIVE;
	snprintf(value, sizeof(value), "%d %" PRId64, q->node, q->epoch);
	etcd_put(t, x->keys[2], value);
	if (!q->up) {
		etcd_key_of_superseded(key, q->from, q->box);
		etcd_put_number(t, key, q->from_epoch);
	}
	(void)etcd_move_name(x, t);
	return ETCD_WRITE;
}

static enum etcd_next etcd_find_box(struct etcd_ask *x)
{
	struct etcd_name moved = etcd_parse_name(etcd_found(x, 0));

	x->answer.answer.done = moved.exists;
	if (moved.exists) {
		x->answer.answer.number = moved.node;
		x->answer.answer.epoch = moved.epoch;
	}
	return ETCD_GIVE;
}

static enum etcd_next etcd_add_machine(struct etcd_ask *x, struct etcd_txn *t)
{
	const struct coordinator_request *q = &x->answer.q;

	x->answer.answer.done = 1;
	if (etcd_found(x, 0))
		return ETCD_GIVE;
	if (q->role && !strcmp(q->role, "node"))
		etcd_put_node(t, q->node,
			      &(struct etcd_node){ 1, q->epoch > 0 ? q->epoch : 1, 0, 1,
						   q->name ? q->name : "" });
	else
		etcd_put(t, x->keys[0], "");
	return ETCD_WRITE;
}

static enum etcd_next etcd_assign_number(struct etcd_ask *x, struct etcd_txn *t)
{
	const struct coordinator_request *q = &x->answer.q;
	const struct etcd_kv *machine = etcd_found(x, 0), *last = etcd_found(x, 1);
	int number = last ? atoi(last->value) + 1 : 1, at = 0;
	auto_buf struct buf value = { 0 };
	char key[ETCD_KEY];

	if (machine) {
		sscanf(machine->value, "%d %n", &x->answer.answer.number, &at);
		if (strcmp(machine->value + at, q->fingerprint) != 0) {
			err_set(&x->e, ERR_CONFLICT, "the name %.100s belongs to another machine",
				q->name);
			return ETCD_REFUSE;
		}
		x->answer.answer.done = 1;
		return ETCD_GIVE;
	}
	if (number > ETCD_NUMBERS) {
		err_set(&x->e, ERR_LIMIT, "all %d numbers of machines are used", ETCD_NUMBERS);
		return ETCD_REFUSE;
	}
	x->answer.answer.number = number;
	buf_printf(&value, "%d %s", number, q->fingerprint);
	etcd_put(t, x->keys[0], buf_str(&value));
	etcd_put_number(t, x->keys[1], number);
	if (!strcmp(q->role, "node")) {
		etcd_put_node(t, number, &(struct etcd_node){ 1, 1, 0, 1, q->name });
	} else {
		ETCD_GATEWAY(key, number);
		etcd_put(t, key, "");
	}
	return ETCD_WRITE;
}

static enum etcd_next etcd_decide(struct etcd_ask *x, struct etcd_txn *t)
{
	switch (x->answer.q.op) {
	case COORDINATOR_SET_TUNNEL:
		return etcd_set_tunnel(x, t);
	case COORDINATOR_DECLARE_LOST:
		return etcd_declare_lost(x, t);
	case COORDINATOR_FORGET_NODE:
		return etcd_forget_node(x, t);
	case COORDINATOR_REMOVE_NODE:
		return etcd_remove_node(x, t);
	case COORDINATOR_MOVE_BOX:
		return etcd_move_box(x, t);
	case COORDINATOR_FIND_BOX:
		return etcd_find_box(x);
	case COORDINATOR_ADD_MACHINE:
		return etcd_add_machine(x, t);
	case COORDINATOR_ASSIGN_NUMBER:
		return etcd_assign_number(x, t);
	default:
		return etcd_name_op(x, t);
	}
}

/* ---- operations that read nothing first ---- */

static void etcd_write_at_once(struct etcd_ask *x, struct etcd_txn *t)
{
	const struct coordinator_request *q = &x->answer.q;
	char key[ETCD_KEY];

	if (q->op == COORDINATOR_SETTLE_BOX) {
		etcd_key_of_superseded(key, q->node, q->box);
		etcd_delete(t, key);
		return;
	}
	ETCD_GATEWAY(key, q->gateway);
	if (q->op == COORDINATOR_REGISTER) {
		auto_buf struct buf value = { 0 };

		etcd_compare_exists(t, key);
		buf_printf(&value, "%s %s", q->address ? q->address : "",
			   q->version ? q->version : "");
		etcd_put(t, key, buf_str(&value));
		ETCD_RENEWALS(key, q->gateway);
		etcd_put(t, key, "");
		return;
	}
	etcd_compare_exists(t, key);
	etcd_compare_revision(t, key, q->incarnation);
	etcd_get_else(t, key);
	ETCD_RENEWALS(key, q->gateway);
	etcd_put(t, key, "");
	etcd_get_below(t, "/atoll/gateways/", 1);
	etcd_get_below(t, "/atoll/renewals/", 1);
	etcd_get_below(t, "/atoll/tunnels/", 0);
	etcd_get_below(t, "/atoll/nodes/", 0);
}

/* ---- answers ---- */

static int etcd_read_gateways(struct answer *a, const struct etcd_answer *got)
{
	struct etcd_list gateways, renewals;
	unsigned k = 0;

	if (etcd_list_read(&gateways, got, 1) < 0)
		return -1;
	if (etcd_list_read(&renewals, got, 2) < 0) {
		etcd_list_fini(&gateways);
		return -1;
	}
	for (unsigned i = 0; i < gateways.n; i++) { /* both lists are sorted */
		int number = etcd_key_number(gateways.v[i].key);

		while (k < renewals.n && etcd_key_number(renewals.v[k].key) < number)
			k++;
		if (k < renewals.n && etcd_key_number(renewals.v[k].key) == number)
			answer_add_gateway(a, number, renewals.v[k].revision,
					   gateways.v[i].revision);
	}
	etcd_list_fini(&gateways);
	etcd_list_fini(&renewals);
	return 0;
}

static int etcd_read_view(struct answer *a, const struct etcd_answer *got)
{
	struct etcd_list l;

	if (etcd_read_gateways(a, got) < 0 || etcd_list_read(&l, got, 3) < 0)
		return -1;
	for (unsigned i = 0; i < l.n; i++) {
		int gateway = etcd_key_number(l.v[i].key);

		etcd_last_part(l.v[i].key);
		answer_add_tunnel(a, etcd_key_number(l.v[i].key), gateway,
				  strtoll(l.v[i].value, NULL, 10));
	}
	etcd_list_fini(&l);
	if (etcd_list_read(&l, got, 4) < 0)
		return -1;
	for (unsigned i = 0; i < l.n; i++) {
		struct etcd_node n = etcd_parse_node(&l.v[i]);

		if (n.exists)
			answer_add_node(a, etcd_key_number(l.v[i].key), n.epoch, n.forgotten,
					n.lost, n.name);
	}
	etcd_list_fini(&l);
	return 0;
}

/* After a tunnel came up: the names of the node that were not forgotten, boxes that it must destroy. */
static int etcd_read_hello(struct etcd_ask *x, const struct etcd_answer *got)
{
	struct etcd_node node = etcd_parse_node(etcd_found(x, 0));
	struct etcd_list l;

	if (etcd_list_read(&l, got, 3) < 0)
		return -1;
	for (unsigned i = 0; i < l.n; i++) {
		struct coordinator_name n = { .node = x->answer.q.node };
		int at = 0;

		n.key.template = etcd_last_part(l.v[i].key);
		n.key.name = etcd_last_part(l.v[i].key);
		n.key.kind = *etcd_last_part(l.v[i].key);
		n.key.team = etcd_last_part(l.v[i].key);
		if (sscanf(l.v[i].value, "%" SCNd64 " %n", &n.epoch, &at) < 1)
			continue;
		n.box = l.v[i].value + at;
		if (n.epoch > node.forgotten)
			answer_add_name(&x->answer, &n);
	}
	etcd_list_fini(&l);
	if (etcd_list_read(&l, got, 4) < 0)
		return -1;
	for (unsigned i = 0; i < l.n; i++)
		answer_add_superseded(&x->answer, etcd_last_part(l.v[i].key),
				      strtoll(l.v[i].value, NULL, 10));
	etcd_list_fini(&l);
	return 0;
}

static int etcd_written(struct etcd_ask *x, const struct etcd_answer *got)
{
	const struct coordinator_request *q = &x->answer.q;
	struct coordinator_answer *out = &x->answer.answer;

	out->done = 1;
	switch (q->op) {
	case COORDINATOR_REGISTER:
		out->incarnation = got->revision;
		return 0;
	case COORDINATOR_RENEW:
		return etcd_read_view(&x->answer, got);
	case COORDINATOR_SET_TUNNEL:
		return q->up ? etcd_read_hello(x, got) : 0;
	case COORDINATOR_DECLARE_LOST:
		out->epoch = q->epoch + 1;
		return 0;
	case COORDINATOR_CLAIM_NAME:
		answer_add_name(&x->answer,
				&(struct coordinator_name){ q->key, q->node, q->epoch, q->box });
		return 0;
	default:
		return 0;
	}
}

/* ---- requests ---- */

static void etcd_ask_begin(struct etcd_ask *x);

static void etcd_ask_free(struct etcd_ask *x)
{
	etcd_forget_found(x);
	answer_fini(&x->answer);
	free(x);
}

static void etcd_ask_end(struct etcd_ask *x, const struct err *e)
{
	struct etcd_ask **at = &x->driver->asks;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	answer_give(&x->answer, e);
	etcd_ask_free(x);
}

/* A comparison failed. */
static void etcd_not_written(struct etcd_ask *x, const struct etcd_answer *got)
{
	const struct coordinator_request *q = &x->answer.q;
	struct etcd_list l;

	switch (q->op) {
	case COORDINATOR_REGISTER:
		err_set(&x->e, ERR_NOT_FOUND, "there is no gateway %d", q->gateway);
		break;
	case COORDINATOR_RENEW:
		if (etcd_list_read(&l, got, 0) < 0)
			err_set(&x->e, ERR_SYS, "etcd: incomplete answer");
		else if (!l.n)
			err_set(&x->e, ERR_NOT_FOUND, "there is no gateway %d", q->gateway);
		else
			err_set(&x->e, ERR_CONFLICT, "another process has registered as gateway %d",
				q->gateway);
		etcd_list_fini(&l);
		break;
	case COORDINATOR_DECLARE_LOST:
		etcd_ask_end(x, NULL); /* not done */
		return;
	default:
		if (++x->attempts < ETCD_ATTEMPTS) {
			etcd_ask_begin(x);
			return;
		}
		err_set(&x->e, ERR_SYS, "etcd: others changed the same keys %d times",
			ETCD_ATTEMPTS);
	}
	etcd_ask_end(x, &x->e);
}

static void etcd_write_done(void *user, const struct etcd_answer *got, const struct err *e)
{
	struct etcd_ask *x = user;

	if (e) {
		etcd_ask_end(x, e);
	} else if (!got->succeeded) {
		etcd_not_written(x, got);
	} else if (etcd_written(x, got) < 0) {
		err_set(&x->e, ERR_SYS, "etcd: incomplete answer");
		etcd_ask_end(x, &x->e);
	} else {
		etcd_ask_end(x, NULL);
	}
}

static void etcd_read_done(void *user, const struct etcd_answer *got, const struct err *e)
{
	struct etcd_ask *x = user;
	struct etcd_txn t = { 0 };

	if (e) {
		etcd_ask_end(x, e);
		return;
	}
	for (unsigned i = 0; i < x->nkeys; i++)
		if (etcd_list_read(&x->found[i], got, i) < 0) {
			err_set(&x->e, ERR_SYS, "etcd: incomplete answer");
			etcd_ask_end(x, &x->e);
			return;
		}
	switch (etcd_decide(x, &t)) {
	case ETCD_WRITE:
		etcd_compare_found(x, &t);
		etcd_send(x->driver->etcd, &t, etcd_write_done, x);
		break;
	case ETCD_READ:
		etcd_ask_begin(x);
		break;
	case ETCD_GIVE:
		etcd_ask_end(x, NULL);
		break;
	case ETCD_REFUSE:
		etcd_ask_end(x, &x->e);
	}
	etcd_txn_fini(&t);
}

static void etcd_ask_begin(struct etcd_ask *x)
{
	struct etcd_txn t = { 0 };

	etcd_forget_found(x);
	etcd_choose_keys(x);
	if (!x->nkeys) {
		etcd_write_at_once(x, &t);
		etcd_send(x->driver->etcd, &t, etcd_write_done, x);
	} else {
		for (unsigned i = 0; i < x->nkeys; i++)
			etcd_get(&t, x->keys[i]);
		etcd_send(x->driver->etcd, &t, etcd_read_done, x);
	}
	etcd_txn_fini(&t);
}

static void driver_etcd_refuse(struct timer *t)
{
	struct driver_etcd *d = loop_owner(t, struct driver_etcd, refuse);
	struct etcd_ask **at = &d->asks, *refused = NULL;

	while (*at) {
		struct etcd_ask *x = *at;

		if (!x->e.kind) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		x->next = refused;
		refused = x;
	}
	while (refused) {
		struct etcd_ask *x = refused;

		refused = x->next;
		answer_give(&x->answer, &x->e);
		etcd_ask_free(x);
	}
}

static void driver_etcd_ask(struct coordinator *c, const struct coordinator_request *q,
			    coordinator_done *done, void *user)
{
	struct driver_etcd *d = (struct driver_etcd *)c;
	struct etcd_ask *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->driver = d;
	x->owner = -1;
	x->next = d->asks;
	d->asks = x;
	answer_init(&x->answer, q, done, user);
	if (coordinator_request_check(q, &x->e) < 0)
		timer_set(&d->refuse, 0);
	else
		etcd_ask_begin(x);
}

static const char *driver_etcd_trouble(const struct coordinator *c)
{
	return etcd_trouble(((const struct driver_etcd *)c)->etcd);
}

static void driver_etcd_free(struct coordinator *c)
{
	struct driver_etcd *d = (struct driver_etcd *)c;

	timer_fini(&d->refuse);
	etcd_free(d->etcd);
	while (d->asks) {
		struct etcd_ask *x = d->asks;

		d->asks = x->next;
		etcd_ask_free(x);
	}
	free(d);
}

static const struct coordinator_driver driver_etcd = { driver_etcd_ask, driver_etcd_trouble,
						       driver_etcd_free };

int coordinator_etcd_new(struct coordinator **out, struct loop *l, const struct etcd_conf *conf,
			 struct err *e)
{
	struct driver_etcd *d = calloc(1, sizeof(*d));

	if (!d)
		return err_sys(e, "coordinator");
	d->coordinator.driver = &driver_etcd;
	if (etcd_new(&d->etcd, l, conf, e) < 0) {
		free(d);
		return -1;
	}
	timer_init(&d->refuse, l, driver_etcd_refuse);
	*out = &d->coordinator;
	return 0;
}
