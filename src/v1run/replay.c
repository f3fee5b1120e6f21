/* replay.c - see replay.h. */
#include "v1run/replay.h"
#include "api/fields.h"
#include "v1run/run_request.h"
#include "base/cleanup.h"
#include "fleet/exec.h"
#include "receipt/receipts.h"

#include <stdio.h>
#include <string.h>

/* ---- the stored request ---- */

static void set_limit(json_t *limits, const char *name, uint64_t n)
{
	if (n) /* 0: this host cannot enforce the limit, and a request cannot contain 0 */
		json_object_set_new(limits, name, json_integer((json_int_t)n));
}

static json_t *limits_of(const struct store_limits *l)
{
	json_t *all = json_object();

	set_limit(all, "mem", l->mem_bytes);
	set_limit(all, "disk", l->disk_bytes);
	set_limit(all, "files", l->disk_files);
	set_limit(all, "cpu_milli", l->cpu_milli);
	set_limit(all, "pids", l->pids);
	set_limit(all, "cpu_ms", l->cpu_ms);
	return all;
}

/* The variables of the box; those of the program override them. */
static json_t *replay_variables(const json_t *body, const struct box *box)
{
	json_t *all = box->row.env ? json_loads(box->row.env, 0, NULL) : NULL;

	if (!json_is_object(all)) {
		json_decref(all);
		all = json_object();
	}
	if (json_is_object(json_object_get(body, "env")))
		json_object_update(all, json_object_get(body, "env"));
	return all;
}

static int replay_count(const char *bytes, size_t n, void *left)
{
	(void)bytes;
	*(size_t *)left -= n <= *(size_t *)left ? n : *(size_t *)left;
	return *(size_t *)left ? 0 : -1; /* stop: the rest of a large request need not be encoded */
}

static int replay_fits(const json_t *request)
{
	size_t left = REPLAY_BYTES;

	return json_dump_callback(request, replay_count, &left, JSON_COMPACT) == 0;
}

json_t *replay_request(const json_t *body, const struct box *box, json_t **out_inputs)
{
	static const char *const passing[] = { "tag", "background", "open_stdin", "session",
					       "name" };
	const json_t *pty = json_object_get(body, "pty");
	json_t *request;

	if (out_inputs)
		*out_inputs = NULL;
	if (json_is_object(pty) || json_is_true(json_object_get(body, "open_stdin")))
		return NULL;
	request = json_copy((json_t *)body);
	for (unsigned i = 0; i < ARRAY_LEN(passing); i++)
		json_object_del(request, passing[i]);
	if (box) {
		json_object_set_new(request, "template", json_string(box->row.template));
		json_object_set_new(request, "limits", limits_of(&box->row.limits));
		json_object_set_new(request, "env", replay_variables(body, box));
	}
	if (replay_fits(request))
		return request;
	if (out_inputs)
		*out_inputs = receipts_inputs(request);
	json_decref(request);
	return NULL;
}

/* ---- replay ---- */

static int own_run(struct call *c, struct store_run *row)
{
	struct err e;

	return id_valid(call_param(c, 0)) &&
	       store_run_get(c->api->store, call_param(c, 0), row, &e) == 0 &&
	       strcmp(row->team, c->who.team) == 0;
}

void replay_run(struct call *c)
{
	struct store_run row = { 0 };
	int found = own_run(c, &row);
	struct err e;

	if (found)
		c->body = exec_row_request(&row);
	store_run_fini(&row);
	if (!found)
		call_error(c, 404, "not_found", "there is no such run", call_param(c, 0),
			   "list them: GET /v1/runs");
	else if (!c->body)
		call_error(c, 409, "conflict", "the request of this run was not stored",
			   "it was too large, or had a terminal, or its input was sent in pieces",
			   "send it again: POST /v1/run");
	else if (fields_check(c->body, run_request_fields, "", &e) < 0)
		call_error(c, 409, "conflict", "this version no longer accepts that request", e.msg,
			   "send it again: POST /v1/run");
	else
		run_request_detach(c, &(struct run_request_spec){ .body = c->body,
								  .replay_of = row.id });
}
