/* audit.c - see audit.h. Rows come from call.c: a route that changes something names its action. */
#include "v1/audit.h"
#include "api/time_param.h"
#include "record/record.h"
#include "store/audit.h"

#include <stdio.h>
#include <string.h>

const struct field audit_list_query[] = {
	{ "who", FIELD_TEXT, 0, 0, STORE_NAME, "the caller: id of a key, uid:0, oidc:...", NULL },
	{ "action", FIELD_TEXT, 0, 0, STORE_WORD,
	  "action such as file.write; file. (with the dot) matches all actions on files", NULL },
	{ "subject", FIELD_TEXT, 0, 0, STORE_NAME, "id of the object of the action", NULL },
	{ "since", FIELD_TEXT, 0, 0, TIME_PARAM_TEXT,
	  "entries after this time; a time, or a duration before now such as 15m", NULL },
	{ "until", FIELD_TEXT, 0, 0, TIME_PARAM_TEXT, "entries before this time", NULL },
	{ "team", FIELD_TEXT, 0, 0, STORE_NAME,
	  "operators: entries of this team (default: all teams)", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_INT, 0, 1, INT64_MAX, "`next` of the previous page", NULL },
	{ 0 },
};

static int read_filter(struct call *c, struct store_audit_filter *f, struct err *e)
{
	const char *since = call_query(c, "since"), *until = call_query(c, "until");
	int64_t now = fleet_now_ns();

	f->team = principal_is_operator(&c->who) ? call_query(c, "team") : c->who.team;
	f->who = call_query(c, "who");
	f->action = call_query(c, "action");
	f->subject = call_query(c, "subject");
	f->before = call_query_int(c, "after", 0);
	f->limit = (unsigned)call_query_int(c, "limit", 0);
	if (since && time_param_parse(since, now, &f->since_ns, e) < 0)
		return err_in(e, "?since");
	if (until && time_param_parse(until, now, &f->until_ns, e) < 0)
		return err_in(e, "?until");
	return 0;
}

static json_t *row_json(const struct store_audit *a)
{
	json_t *detail = a->detail ? json_loads(a->detail, 0, NULL) : NULL;

	return json_pack("{s:I, s:o, s:s, s:s, s:s, s:s, s:s, s:o}", "seq", (json_int_t)a->seq,
			 "at", json_time((uint64_t)a->at_ns), "who", a->who, "team", a->team,
			 "action", a->action, "subject", a->subject, "result", a->result, "detail",
			 detail ? detail : json_object());
}

void audit_list(struct call *c)
{
	struct store_audit_filter f = { 0 };
	struct store_audits rows = { 0 };
	char next[24] = "";
	json_t *items;
	struct err e;

	if (read_filter(c, &f, &e) < 0 || store_audit_list(c->api->store, &f, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, row_json(&rows.v[i]));
	if (rows.more)
		snprintf(next, sizeof(next), "%lld", (long long)rows.v[rows.n - 1].seq);
	store_audits_fini(&rows);
	call_list(c, items, next);
}
