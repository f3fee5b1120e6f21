/* run_end.c - see run_end.h. */
#include "fleet/run_end.h"
#include "fleet/fleet.h"

#include <string.h>

void run_facts_fini(struct run_facts *x)
{
	json_decref(x->layers);
	*x = (struct run_facts){ 0 };
}

int run_end_write(struct fleet *f, struct store_run *row, const json_t *record,
		  const struct run_facts *facts, struct err *e)
{
	const struct fleet_receipts *to = &f->receipts;

	row->receipt = 0;
	if (!to->next || !strcmp(row->tag, STORE_RUN_HELPER))
		return store_run_end(f->store, row, e);
	if (store_begin(f->store, e) < 0)
		return -1;
	if (to->next(to->ctx, &row->receipt, e) < 0 || store_run_end(f->store, row, e) < 0 ||
	    to->add(to->ctx, row, record, facts, e) < 0)
		return store_rollback(f->store);
	return store_commit(f->store, e);
}
