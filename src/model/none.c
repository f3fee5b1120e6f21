/* none.c - the line where there is no process that asks models. */
#include "model/model.h"

const json_t *model_roles(const struct model_line *x)
{
	(void)x;
	return NULL;
}

int model_start(struct model_line *x, struct model_ask *a, json_t *take_request, struct err *e)
{
	(void)x;
	(void)a;
	json_decref(take_request);
	return err_set(e, ERR_NOT_FOUND, "no model is configured");
}

void model_cancel(struct model_ask *a)
{
	(void)a;
}
