/* spent.c - see spent.h. A counter belongs to the text of its rule, so that other budgets may come and go. It
 * is in the memory that the supervisor shares, if there is any: a killed process loses nothing. */
#include "egress/spent.h"

#include <stdio.h>
#include <string.h>

static uint64_t spent_key(const struct net_rule *r)
{
	char text[RULE_TEXT];
	uint64_t key = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (const char *c = net_rule_text(r, text); *c; c++)
		key = (key ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return key ? key : 1;
}

unsigned spent_find(const struct egress_endpoint *w, const char *host, uint16_t port)
{
	struct net_target t = { .host = host, .port = port };
	unsigned found = 0;

	for (unsigned i = 0; i < w->policy.nbudgets; i++)
		if (net_rule_denies(&w->policy.budgets[i].rule, &t))
			found |= 1u << i;
	return found;
}

static enum verdict spent_refuse(const struct net_budget *b, const char *what, uint64_t limit,
				 struct judgement *out)
{
	char text[RULE_TEXT];

	out->verdict = VERDICT_BUDGET;
	snprintf(out->why, sizeof(out->why), "this box has used its budget for %.200s: %llu %s",
		 net_rule_text(&b->rule, text), (unsigned long long)limit, what);
	snprintf(out->hint, sizeof(out->hint), "The budget is in network.budgets of the box.");
	return VERDICT_BUDGET;
}

enum verdict spent_judge(const struct egress_endpoint *w, unsigned budgets, int connects,
			 struct judgement *out)
{
	for (unsigned i = 0; i < w->policy.nbudgets; i++) {
		const struct net_budget *b = &w->policy.budgets[i];
		const struct egress_spent *s = &w->spent[i];

		if (!(budgets >> i & 1))
			continue;
		if (b->bytes_in && s->bytes_in > b->bytes_in)
			return spent_refuse(b, "bytes received", b->bytes_in, out);
		if (b->bytes_out && s->bytes_out > b->bytes_out)
			return spent_refuse(b, "bytes sent", b->bytes_out, out);
		if (connects && b->connections && s->connections >= b->connections)
			return spent_refuse(b, "connections", b->connections, out);
	}
	return VERDICT_OK;
}

/* The counters of this process and those that survive it. */
static void spent_store(struct egress_endpoint *w)
{
	if (w->used)
		memcpy(w->used->spent, w->spent, sizeof(w->spent));
}

void spent_connect(struct egress_endpoint *w, unsigned budgets)
{
	for (unsigned i = 0; budgets >> i; i++)
		w->spent[i].connections += budgets >> i & 1;
	if (budgets)
		spent_store(w);
}

void spent_count(struct egress_endpoint *w, unsigned budgets, int into_box, size_t n)
{
	for (unsigned i = 0; budgets >> i; i++)
		if (budgets >> i & 1)
			*(into_box ? &w->spent[i].bytes_in : &w->spent[i].bytes_out) += n;
	if (budgets)
		spent_store(w);
}

void spent_changed(struct egress_endpoint *w)
{
	struct egress_spent had[NET_BUDGETS];

	memcpy(had, w->used ? w->used->spent : w->spent, sizeof(had));
	memset(w->spent, 0, sizeof(w->spent));
	for (unsigned i = 0; i < w->policy.nbudgets; i++) {
		w->spent[i].key = spent_key(&w->policy.budgets[i].rule);
		for (unsigned k = 0; k < NET_BUDGETS; k++)
			if (had[k].key == w->spent[i].key)
				w->spent[i] = had[k];
	}
	spent_store(w);
}
