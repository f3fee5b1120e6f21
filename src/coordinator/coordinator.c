/* coordinator.c - see coordinator.h. */
#include "coordinator/coordinator.h"
#include "base/cleanup.h"

#include <string.h>

static const char *const coordinator_op_names[COORDINATOR_OPS] = {
	[COORDINATOR_REGISTER] = "register",       [COORDINATOR_RENEW] = "renew",
	[COORDINATOR_SET_TUNNEL] = "set_tunnel",   [COORDINATOR_DECLARE_LOST] = "declare_lost",
	[COORDINATOR_FORGET_NODE] = "forget_node", [COORDINATOR_CLAIM_NAME] = "claim_name",
	[COORDINATOR_CHANGE_NAME] = "change_name", [COORDINATOR_RELEASE_NAME] = "release_name",
	[COORDINATOR_FIND_NAME] = "find_name",     [COORDINATOR_MOVE_BOX] = "move_box",
	[COORDINATOR_SETTLE_BOX] = "settle_box",   [COORDINATOR_ASSIGN_NUMBER] = "assign_number",
	[COORDINATOR_REMOVE_NODE] = "remove_node", [COORDINATOR_FIND_BOX] = "find_box",
	[COORDINATOR_ADD_MACHINE] = "add_machine",
};

const char *coordinator_op_name(enum coordinator_op op)
{
	return op < COORDINATOR_OPS ? coordinator_op_names[op] : "?";
}

int coordinator_op_of(const char *name)
{
	for (int i = 0; i < COORDINATOR_OPS; i++)
		if (!strcmp(coordinator_op_names[i], name))
			return i;
	return -1;
}

/* ---- checks ---- */

/* What an operation needs; the names of request fields for messages. */
enum {
	NEEDS_GATEWAY = 1 << 0,
	NEEDS_NODE = 1 << 1,
	NEEDS_KEY = 1 << 2,
	NEEDS_BOX = 1 << 3,
	NEEDS_NEW_BOX = 1 << 4,
	NEEDS_FROM = 1 << 5,
	NEEDS_MACHINE = 1 << 6, /* role, name, fingerprint */
};
static const unsigned coordinator_needs[COORDINATOR_OPS] = {
	[COORDINATOR_REGISTER] = NEEDS_GATEWAY,
	[COORDINATOR_RENEW] = NEEDS_GATEWAY,
	[COORDINATOR_SET_TUNNEL] = NEEDS_GATEWAY | NEEDS_NODE,
	[COORDINATOR_DECLARE_LOST] = NEEDS_NODE,
	[COORDINATOR_FORGET_NODE] = NEEDS_NODE,
	[COORDINATOR_CLAIM_NAME] = NEEDS_NODE | NEEDS_KEY | NEEDS_BOX,
	[COORDINATOR_CHANGE_NAME] = NEEDS_NODE | NEEDS_KEY | NEEDS_BOX | NEEDS_NEW_BOX,
	[COORDINATOR_RELEASE_NAME] = NEEDS_NODE | NEEDS_KEY | NEEDS_BOX,
	[COORDINATOR_FIND_NAME] = NEEDS_KEY,
	[COORDINATOR_MOVE_BOX] = NEEDS_NODE | NEEDS_FROM | NEEDS_BOX,
	[COORDINATOR_SETTLE_BOX] = NEEDS_NODE | NEEDS_BOX,
	[COORDINATOR_ASSIGN_NUMBER] = NEEDS_MACHINE,
	[COORDINATOR_REMOVE_NODE] = NEEDS_NODE,
	[COORDINATOR_FIND_BOX] = NEEDS_BOX,
	[COORDINATOR_ADD_MACHINE] = NEEDS_NODE,
};

enum { COORDINATOR_NUMBERS = 32768, COORDINATOR_DEAD = 64 };

static int coordinator_check_text(const char *what, const char *text, int may_be_empty,
				  struct err *e)
{
	size_t n = text ? strlen(text) : 0;

	if (!n && !may_be_empty)
		return err_set(e, ERR_INVALID, "%s: missing", what);
	if (n > COORDINATOR_TEXT)
		return err_set(e, ERR_INVALID, "%s: %zu bytes; at most %d", what, n,
			       COORDINATOR_TEXT);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ')
			return err_set(e, ERR_INVALID, "%s: byte %zu is a control character", what,
				       i);
	return 0;
}

static int coordinator_check_number(const char *what, int number, struct err *e)
{
	if (number < 0 || number >= COORDINATOR_NUMBERS)
		return err_set(e, ERR_INVALID, "%s: %d is not between 0 and %d", what, number,
			       COORDINATOR_NUMBERS - 1);
	return 0;
}

static int coordinator_check_key(const struct coordinator_key *k, struct err *e)
{
	if (k->kind != 'n' && k->kind != 's')
		return err_set(e, ERR_INVALID, "kind: '%c' is neither n nor s",
			       k->kind ? k->kind : ' ');
	if (coordinator_check_text("team", k->team, 1, e) < 0 ||
	    coordinator_check_text("name", k->name, 0, e) < 0)
		return -1;
	return coordinator_check_text("template", k->template, 1, e);
}

int coordinator_request_check(const struct coordinator_request *q, struct err *e)
{
	unsigned needs;

	if ((unsigned)q->op >= COORDINATOR_OPS)
		return err_set(e, ERR_INVALID, "%d is not an operation", (int)q->op);
	needs = coordinator_needs[q->op];
	if (needs & NEEDS_GATEWAY && coordinator_check_number("gateway", q->gateway, e) < 0)
		return -1;
	if (needs & NEEDS_NODE && coordinator_check_number("node", q->node, e) < 0)
		return -1;
	if (needs & NEEDS_FROM && coordinator_check_number("from", q->from, e) < 0)
		return -1;
	if ((needs & NEEDS_KEY || (q->op == COORDINATOR_MOVE_BOX && q->key.name)) &&
	    coordinator_check_key(&q->key, e) < 0)
		return -1;
	if (needs & NEEDS_BOX && coordinator_check_text("box", q->box, 0, e) < 0)
		return -1;
	if (needs & NEEDS_NEW_BOX && coordinator_check_text("new_box", q->new_box, 0, e) < 0)
		return -1;
	if (needs & NEEDS_MACHINE) {
		if (coordinator_check_text("name", q->name, 0, e) < 0 ||
		    coordinator_check_text("fingerprint", q->fingerprint, 0, e) < 0)
			return -1;
		if (!q->role || (strcmp(q->role, "node") != 0 && strcmp(q->role, "gateway") != 0))
			return err_set(e, ERR_INVALID,
				       "role: \"%.40s\" is neither node nor gateway",
				       q->role ? q->role : "");
	}
	if (coordinator_check_text("address", q->address, 1, e) < 0 ||
	    coordinator_check_text("version", q->version, 1, e) < 0)
		return -1;
	if (q->ndead > COORDINATOR_DEAD)
		return err_set(e, ERR_LIMIT, "%u dead gateways; at most %d", q->ndead,
			       COORDINATOR_DEAD);
	return 0;
}

/* ---- calls ---- */

void coordinator_ask(struct coordinator *c, const struct coordinator_request *q,
		     coordinator_done *done, void *user)
{
	c->driver->ask(c, q, done, user);
}

const char *coordinator_trouble(const struct coordinator *c)
{
	return c->driver->trouble(c);
}

void coordinator_free(struct coordinator *c)
{
	if (c)
		c->driver->free(c);
}
