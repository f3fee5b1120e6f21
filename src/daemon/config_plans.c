/* config_plans.c - see config_plans.h. */
#include "daemon/config_plans.h"
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct plan *plans_enter(struct config *c, const char *name)
{
	struct plan *p = (struct plan *)plan_find(c->plans, c->nplans, name);

	if (p)
		return p;
	c->plans = realloc(c->plans, (c->nplans + 1) * sizeof(*c->plans));
	if (!c->plans)
		abort();
	p = &c->plans[c->nplans++];
	*p = (struct plan){ 0 };
	snprintf(p->name, sizeof(p->name), "%s", name);
	return p;
}

/* The value as it would be written in quotes; NULL: it is no text and no integer. */
static const char *plans_text(const struct toml_node *n, char number[24])
{
	if (n->type == TOML_STRING && strlen(n->text) == n->len)
		return n->text;
	if (n->type != TOML_INTEGER)
		return NULL;
	snprintf(number, 24, "%lld", (long long)n->integer);
	return number;
}

static int plans_take_one(struct plan *p, const char *path, const struct toml_node *table,
			  struct err *e)
{
	for (const struct toml_node *n = table->in.first; n; n = n->next) {
		char number[24];
		const char *text = plans_text(n, number);

		if (!text)
			return err_set(
				e, ERR_INVALID,
				"%.150s:%u: %.40s of a plan needs a text in quotes or an integer, not %s",
				path, n->line, n->key, toml_type_name(n->type));
		if (plan_set(p, n->key, text, e) < 0)
			return err_in(e, "%.150s:%u: plan %s", path, n->line, p->name);
	}
	return 0;
}

int config_plans_take(struct config *c, const char *path, const struct toml_node *table,
		      struct err *e)
{
	for (const struct toml_node *n = table->in.first; n; n = n->next) {
		if (n->type != TOML_TABLE)
			return err_set(e, ERR_INVALID,
				       "%.150s:%u: a plan is a section of its own: [plan.free]",
				       path, n->line);
		if (strlen(n->key) != n->key_len || !plan_is_name(n->key))
			return err_set(
				e, ERR_INVALID,
				"%.150s:%u: '%.40s' is not the name of a plan; write lower-case letters, digits, _ and -",
				path, n->line, n->key);
		if (c->nplans == CONFIG_PLANS && !plan_find(c->plans, c->nplans, n->key))
			return err_set(e, ERR_LIMIT, "%.150s:%u: more than %d plans", path, n->line,
				       CONFIG_PLANS);
		if (plans_take_one(plans_enter(c, n->key), path, n, e) < 0)
			return -1;
	}
	return 0;
}
