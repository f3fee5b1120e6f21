/* run_end.c - see run_end.h. */
#include "fleet/run_end.h"
#include "fleet/fleet.h"

#include <string.h>

void run_facts_fini(struct run_facts *x)
{
	json_decref(x->layers);
	*x = (struct run_facts){ 0 };
}

static enum fleet_outcome run_end_outcome(enum cause cause, int status)
{
	switch (cause) {
	case CAUSE_EXIT:
		return status == 0 ? FLEET_OK : FLEET_ERROR;
	case CAUSE_SIGNAL:
		return FLEET_ERROR;
	case CAUSE_CPU:
	case CAUSE_WALL:
		return FLEET_TIMEOUT;
	case CAUSE_MEMORY:
	case CAUSE_PROCESSES:
	case CAUSE_DISK:
		return FLEET_LIMIT;
	case CAUSE_HOST:
		return FLEET_HOST;
	default:
		return FLEET_STOPPED;
	}
}

const char *fleet_outcome_name(enum fleet_outcome outcome)
{
	static const char *const names[FLEET_OUTCOMES] = { "ok",    "error",   "timeout",
							   "limit", "stopped", "host" };

	return names[outcome];
}

static int run_end_count(struct fleet *f, const struct store_run *row, struct err *e)
{
	enum cause cause = CAUSE_HOST;

	(void)!cause_parse(row->cause, &cause);
	return store_run_count_end(f->store, row->id,
				   fleet_outcome_name(run_end_outcome(cause, row->status)), e);
}

int run_end_write(struct fleet *f, struct store_run *row, const json_t *record,
		  const struct run_facts *facts, struct err *e)
{
	const struct fleet_receipts *to = &f->receipts;
	int began, rc;

	row->receipt = 0;
	if (!strcmp(row->tag, STORE_RUN_HELPER))
		return store_run_end(f->store, row, e);
	began = store_join(f->store, e);
	if (began < 0)
		return -1;
	rc = to->next ? to->next(to->ctx, &row->receipt, e) : 0;
	if (rc == 0)
		rc = store_run_end(f->store, row, e);
	if (rc == 0) {
		rc = run_end_count(f, row, e);
		if (rc == 0 && to->next)
			rc = to->add(to->ctx, row, record, facts, e);
		if (rc < 0)
			store_doom(f->store, e); /* an end without the rest is not committed */
	}
	return store_leave(f->store, began, rc, e);
}
