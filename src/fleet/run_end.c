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
	int began, rc;

	row->receipt = 0;
	if (!to->next || !strcmp(row->tag, STORE_RUN_HELPER))
		return store_run_end(f->store, row, e);
	began = store_join(f->store, e);
	if (began < 0)
		return -1;
	rc = to->next(to->ctx, &row->receipt, e);
	if (rc == 0)
		rc = store_run_end(f->store, row, e);
	if (rc == 0) {
		rc = to->add(to->ctx, row, record, facts, e);
		if (rc < 0)
			store_doom(f->store, e); /* an end without a receipt is not committed */
	}
	return store_leave(f->store, began, rc, e);
}
