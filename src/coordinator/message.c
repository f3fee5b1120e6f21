/* message.c - see message.h. */
#include "coordinator/message.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_DEAD = 64 };

/* ---- fields of a request ---- */

#define AT(field) offsetof(struct coordinator_request, field)
static const struct {
	const char *name;
	size_t at;
} message_texts[] = {
	{ "team", AT(key.team) },     { "key", AT(key.name) },   { "template", AT(key.template) },
	{ "box", AT(box) },           { "new_box", AT(new_box) }, { "role", AT(role) },
	{ "name", AT(name) },         { "fingerprint", AT(fingerprint) },
	{ "address", AT(address) },   { "version", AT(version) },
}, message_ints[] = {
	{ "gateway", AT(gateway) }, { "node", AT(node) }, { "from", AT(from) }, { "up", AT(up) },
}, message_longs[] = {
	{ "incarnation", AT(incarnation) }, { "serial", AT(serial) },
	{ "epoch", AT(epoch) },             { "from_epoch", AT(from_epoch) },
};
#define MESSAGE_EACH(i, rows) for (unsigned i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)

static void message_put(json_t *m, const char *name, int64_t value)
{
	if (value)
		json_object_set_new(m, name, json_integer(value));
}

json_t *message_of_request(const struct coordinator_request *q)
{
	json_t *m = json_pack("{s:s}", "op", coordinator_op_name(q->op)), *dead = NULL;
	const char *base = (const char *)q, kind[2] = { q->key.kind, 0 };

	MESSAGE_EACH(i, message_texts)
	{
		const char *text;

		memcpy(&text, base + message_texts[i].at, sizeof(text));
		if (text && *text)
			json_object_set_new(m, message_texts[i].name, json_string(text));
	}
	MESSAGE_EACH(i, message_ints)
	{
		int value;

		memcpy(&value, base + message_ints[i].at, sizeof(value));
		message_put(m, message_ints[i].name, value);
	}
	MESSAGE_EACH(i, message_longs)
	{
		int64_t value;

		memcpy(&value, base + message_longs[i].at, sizeof(value));
		message_put(m, message_longs[i].name, value);
	}
	if (*kind)
		json_object_set_new(m, "kind", json_string(kind));
	for (unsigned i = 0; i < q->ndead; i++) {
		dead = dead ? dead : json_array();
		json_array_append_new(dead, json_pack("[i, I]", q->dead[i].number,
						      (json_int_t)q->dead[i].renewals));
	}
	if (dead)
		json_object_set_new(m, "dead", dead);
	return m;
}

static int message_wrong(struct err *e, const char *field)
{
	return err_set(e, ERR_INVALID,
		       "message of the cluster: '%s' is missing or has another type", field);
}

/* 0 for one that is not there. */
static int message_int(const json_t *m, const char *name, int64_t lowest, int64_t highest,
		       int64_t *out, struct err *e)
{
	const json_t *v = json_object_get(m, name);

	*out = json_integer_value(v);
	if (v && (!json_is_integer(v) || *out < lowest || *out > highest))
		return message_wrong(e, name);
	return 0;
}

static int message_read_dead(const json_t *m, struct coordinator_request *out,
			     struct view_gateway **out_dead, struct err *e)
{
	const json_t *list = json_object_get(m, "dead");
	size_t n = json_array_size(list);
	struct view_gateway *v;

	if (list && (!json_is_array(list) || n > MESSAGE_DEAD))
		return message_wrong(e, "dead");
	if (!n)
		return 0;
	v = *out_dead = calloc(n, sizeof(*v));
	if (!v)
		abort();
	for (size_t i = 0; i < n; i++) {
		json_int_t renewals;

		if (json_unpack(json_array_get(list, i), "[i, I !]", &v[i].number, &renewals) < 0)
			return message_wrong(e, "dead");
		v[i].renewals = renewals;
	}
	out->dead = v;
	out->ndead = (unsigned)n;
	return 0;
}

static int message_read_fields(const json_t *m, struct coordinator_request *out, struct err *e)
{
	char *base = (char *)out;
	int64_t value;

	MESSAGE_EACH(i, message_texts)
	{
		const json_t *v = json_object_get(m, message_texts[i].name);
		const char *text = json_string_value(v);

		if (v && !text)
			return message_wrong(e, message_texts[i].name);
		memcpy(base + message_texts[i].at, &text, sizeof(text));
	}
	MESSAGE_EACH(i, message_ints)
	{
		int small;

		if (message_int(m, message_ints[i].name, INT32_MIN, INT32_MAX, &value, e) < 0)
			return -1;
		small = (int)value;
		memcpy(base + message_ints[i].at, &small, sizeof(small));
	}
	MESSAGE_EACH(i, message_longs)
	{
		if (message_int(m, message_longs[i].name, INT64_MIN, INT64_MAX, &value, e) < 0)
			return -1;
		memcpy(base + message_longs[i].at, &value, sizeof(value));
	}
	return 0;
}

int message_read_request(const json_t *m, struct coordinator_request *out,
			 struct view_gateway **out_dead, struct err *e)
{
	const char *op = json_string_value(json_object_get(m, "op")),
		   *kind = json_string_value(json_object_get(m, "kind"));
	int number = op ? coordinator_op_of(op) : -1;
	int rc;

	*out = (struct coordinator_request){ 0 };
	*out_dead = NULL;
	if (number < 0)
		return message_wrong(e, "op");
	out->op = (enum coordinator_op)number;
	rc = message_read_fields(m, out, e) < 0 || message_read_dead(m, out, out_dead, e) < 0 ? -1
											      : 0;
	if (rc == 0 && kind && strlen(kind) != 1)
		rc = message_wrong(e, "kind");
	out->key.kind = kind ? *kind : 0;
	if (rc < 0) {
		free(*out_dead);
		*out_dead = NULL;
	}
	return rc;
}

/* ---- answers ---- */

json_t *message_of_answer(const struct coordinator_answer *a)
{
	json_t *m = json_object(), *list;

	message_put(m, "ok", a->done);
	message_put(m, "number", a->number);
	message_put(m, "epoch", a->epoch);
	message_put(m, "incarnation", a->incarnation);
	list = json_array();
	for (unsigned i = 0; i < a->ngateways; i++)
		json_array_append_new(list, json_pack("[i, I, I]", a->gateways[i].number,
						      (json_int_t)a->gateways[i].renewals,
						      (json_int_t)a->gateways[i].incarnation));
	json_object_set_new(m, "gateways", list);
	list = json_array();
	for (unsigned i = 0; i < a->ntunnels; i++)
		json_array_append_new(list, json_pack("[i, i, I]", a->tunnels[i].node,
						      a->tunnels[i].gateway,
						      (json_int_t)a->tunnels[i].serial));
	json_object_set_new(m, "tunnels", list);
	list = json_array();
	for (unsigned i = 0; i < a->nnodes; i++)
		json_array_append_new(list, json_pack("[i, I, I, b, s]", a->nodes[i].number,
						      (json_int_t)a->nodes[i].epoch,
						      (json_int_t)a->nodes[i].forgotten,
						      a->nodes[i].lost, a->nodes[i].name));
	json_object_set_new(m, "nodes", list);
	list = json_array();
	for (unsigned i = 0; i < a->nnames; i++) {
		const struct coordinator_name *n = &a->names[i];
		const char kind[2] = { n->key.kind, 0 };

		json_array_append_new(list, json_pack("[s, s, s, s, i, I, s]", n->key.team, kind,
						      n->key.name, n->key.template, n->node,
						      (json_int_t)n->epoch, n->box));
	}
	json_object_set_new(m, "names", list);
	list = json_array();
	for (unsigned i = 0; i < a->nsuperseded; i++)
		json_array_append_new(list, json_pack("[s, I]", a->superseded[i].box,
						      (json_int_t)a->superseded[i].epoch));
	json_object_set_new(m, "superseded", list);
	return m;
}

static int message_read_view(const json_t *m, struct answer *out, struct err *e)
{
	json_int_t x, y;
	int number, other;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(m, "gateways"), i, row)
	{
		if (json_unpack(row, "[i, I, I !]", &number, &x, &y) < 0)
			return message_wrong(e, "gateways");
		answer_add_gateway(out, number, x, y);
	}
	json_array_foreach(json_object_get(m, "tunnels"), i, row)
	{
		if (json_unpack(row, "[i, i, I !]", &number, &other, &x) < 0)
			return message_wrong(e, "tunnels");
		answer_add_tunnel(out, number, other, x);
	}
	json_array_foreach(json_object_get(m, "nodes"), i, row)
	{
		const char *name;

		if (json_unpack(row, "[i, I, I, b, s !]", &number, &x, &y, &other, &name) < 0)
			return message_wrong(e, "nodes");
		answer_add_node(out, number, x, y, other, name);
	}
	return 0;
}

int message_read_answer(const json_t *m, struct answer *out, struct err *e)
{
	struct coordinator_answer *a = &out->answer;
	int64_t done, number;
	json_int_t epoch;
	json_t *row;
	size_t i;

	if (message_int(m, "ok", 0, 1, &done, e) < 0 ||
	    message_int(m, "number", 0, INT32_MAX, &number, e) < 0 ||
	    message_int(m, "epoch", INT64_MIN, INT64_MAX, &a->epoch, e) < 0 ||
	    message_int(m, "incarnation", INT64_MIN, INT64_MAX, &a->incarnation, e) < 0 ||
	    message_read_view(m, out, e) < 0)
		return -1;
	a->done = (int)done;
	a->number = (int)number;
	json_array_foreach(json_object_get(m, "names"), i, row)
	{
		struct coordinator_name n;
		const char *kind;

		if (json_unpack(row, "[s, s, s, s, i, I, s !]", &n.key.team, &kind, &n.key.name,
				&n.key.template, &n.node, &epoch, &n.box) < 0)
			return message_wrong(e, "names");
		n.key.kind = *kind;
		n.epoch = epoch;
		answer_add_name(out, &n);
	}
	json_array_foreach(json_object_get(m, "superseded"), i, row)
	{
		const char *box;

		if (json_unpack(row, "[s, I !]", &box, &epoch) < 0)
			return message_wrong(e, "superseded");
		answer_add_superseded(out, box, epoch);
	}
	return 0;
}
