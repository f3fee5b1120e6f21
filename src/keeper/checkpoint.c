/* checkpoint.c - requests for checkpoints of boxes. */
#include "base/cleanup.h"
#include "keeper/keeper_internal.h"

int checkpoint_check(const struct keeper *k, const struct wire_create *w, struct err *e)
{
	(void)k;
	if (!w->nchain)
		return 0;
	return err_set(e, ERR_DENIED, "this keeper does not support checkpoints yet");
}

void checkpoint_request(struct keeper *k, struct client *c, const struct frame *f)
{
	struct err e;

	err_set(&e, ERR_DENIED, "this keeper does not support checkpoints yet");
	client_error(k, c->number, f->ref, &e);
}
