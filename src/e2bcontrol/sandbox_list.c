/* sandbox_list.c - see sandbox_list.h. All boxes that are not gone are in memory; a page is cut
 * from those that match, in order of (start, id). A cursor contains where the last page ended
 * and in which order that was. */
#include "e2bcontrol/sandbox_list.h"
#include "api/time_param.h"
#include "base/cleanup.h"
#include "e2bcontrol/sandboxes.h"
#include "e2bcontrol/sandbox_json.h"
#include "e2bcontrol/template_find.h"
#include "e2bcontrol/templates.h"

#include <stdio.h>
#include <string.h>

enum { PAGE = 100, PAIRS_MAX = 32, METADATA_MAX = 16 << 10 };

const struct field listing_query[] = {
	{ "metadata", FIELD_TEXT, 0, 0, METADATA_MAX, "only sandboxes with these pairs", NULL },
	{ "state", FIELD_TEXT, 0, 0, 64, "running, paused, or both separated by a comma", NULL },
	{ "order", FIELD_TEXT, 0, 0, 8, "sort order by start time: asc or desc (default desc)",
	  NULL },
	{ "startedAfter", FIELD_TEXT, 0, 0, TIME_PARAM_TEXT,
	  "only sandboxes started at this time or later", NULL },
	{ "template", FIELD_TEXT, 0, 0, 200, "only sandboxes of this template", NULL },
	{ "limit", FIELD_INT, 0, 1, PAGE, "number of items per page (default 100)", NULL },
	{ "nextToken", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT + 2, "token from the previous page",
	  NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field listing_v1_query[] = {
	{ "metadata", FIELD_TEXT, 0, 0, METADATA_MAX, "only sandboxes with these pairs", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

struct filter {
	const char *template; /* NULL: any */
	int running, paused;
	int ascending;
	int64_t since_ns;
	int has_after;
	struct store_cursor after;
	struct pair {
		const char *key, *value;
	} pairs[PAIRS_MAX];
	unsigned npairs;
};

/* ---- metadata ---- */

static int listing_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* In place. An invalid escape is kept: clients encode their values, people do not. */
static void listing_decode(char *text, int form)
{
	char *out = text;

	for (; *text; text++) {
		int high = *text == '%' ? listing_digit(text[1]) : -1;
		int low = high >= 0 ? listing_digit(text[2]) : -1;

		if (low >= 0 && (high | low)) {
			*out++ = (char)(high << 4 | low);
			text += 2;
		} else {
			*out++ = (char)(form && *text == '+' ? ' ' : *text);
		}
	}
	*out = 0;
}

/* The id of the template with this name; the text itself if there is none, which then fits no box. */
static const char *listing_template(struct call *c, const char *reference)
{
	struct template_found f;
	const char *id;
	struct err e;

	if (template_find_named(c, reference, &f, &e) < 0)
		return reference;
	id = f.builtin ? f.builtin->name : http_strdup(c->req, f.row.id, strlen(f.row.id));
	template_found_fini(&f);
	return id;
}

/* Encoded three times: each key and value, then as a form, then as a query. The query is decoded
 * already. */
static int read_metadata(struct call *c, struct filter *f, struct err *e)
{
	const char *query = call_query(c, "metadata");
	char *text = query ? http_strdup(c->req, query, strlen(query)) : NULL, *rest = NULL;

	for (char *p = text ? strtok_r(text, "&", &rest) : NULL; p;
	     p = strtok_r(NULL, "&", &rest)) {
		char *value = strchr(p, '=');

		if (f->npairs == PAIRS_MAX)
			return err_set(e, ERR_INVALID, "metadata: more than %d pairs", PAIRS_MAX);
		if (!value)
			return err_set(e, ERR_INVALID, "metadata: '%.40s' is not key=value", p);
		*value++ = 0;
		for (int form = 1; form >= 0; form--) {
			listing_decode(p, form);
			listing_decode(value, form);
		}
		f->pairs[f->npairs++] = (struct pair){ p, value };
	}
	return 0;
}

static int has_pairs(const struct box *b, const struct filter *f)
{
	json_t *all = f->npairs && b->row.metadata ? json_loads(b->row.metadata, 0, NULL) : NULL;
	unsigned n = 0;

	for (; n < f->npairs; n++) {
		const char *has = json_string_value(json_object_get(all, f->pairs[n].key));

		if (!has || strcmp(has, f->pairs[n].value) != 0)
			break;
	}
	json_decref(all);
	return n == f->npairs;
}

/* ---- the rest of the query ---- */

static int read_states(struct call *c, struct filter *f, struct err *e)
{
	const char *text = call_query(c, "state");
	char *copy = http_strdup(c->req, text ? text : "", text ? strlen(text) : 0), *rest = NULL;

	for (char *p = strtok_r(copy, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
		if (!strcmp(p, "running"))
			f->running = 1;
		else if (!strcmp(p, "paused"))
			f->paused = 1;
		else
			return err_set(e, ERR_INVALID,
				       "state: '%.20s' is neither running nor paused", p);
	}
	if (!f->running && !f->paused)
		f->running = f->paused = 1;
	return 0;
}

static int read_order(struct call *c, struct filter *f, struct err *e)
{
	const char *order = call_query(c, "order"), *token = call_query(c, "nextToken");

	if (order && strcmp(order, "asc") && strcmp(order, "desc"))
		return err_set(e, ERR_INVALID, "order: '%.20s' is neither asc nor desc", order);
	f->ascending = order && !strcmp(order, "asc");
	if (!token || !*token)
		return 0;
	if ((token[0] != 'a' && token[0] != 'd') || store_cursor_parse(token + 1, &f->after, e) < 0)
		return err_set(e, ERR_INVALID, "nextToken: not a token of this API");
	if ((token[0] == 'a') != f->ascending)
		return err_set(e, ERR_INVALID, "nextToken: it belongs to a list in another order");
	f->has_after = 1;
	return 0;
}

static int read_filter(struct call *c, struct filter *f, struct err *e)
{
	const char *template = call_query(c, "template"), *since = call_query(c, "startedAfter");

	if (read_metadata(c, f, e) < 0 || read_states(c, f, e) < 0 || read_order(c, f, e) < 0)
		return -1;
	if (since && time_param_parse(since, fleet_now_ns(), &f->since_ns, e) < 0)
		return err_in(e, "startedAfter");
	if (template && *template) /* a filter for an unknown template matches nothing */
		f->template = listing_template(c, template);
	return 0;
}

/* ---- which ---- */

/* Answers have times in milliseconds; a time in a request refers to a box of such an answer. */
static int64_t whole_ms(int64_t ns)
{
	return ns / 1000000;
}

static int is_after(const struct box *b, const struct filter *f)
{
	int64_t at = sandboxes_started(b);
	int order =
		at != f->after.ns ? (at < f->after.ns ? -1 : 1) : strcmp(b->row.id, f->after.id);

	return f->ascending ? order > 0 : order < 0;
}

/* Without the boxes that other surfaces create for one run. */
static int is_seen(const struct call *c, const struct box *b)
{
	return (b->state == BOX_RUNNING || sandboxes_paused(b)) && !b->is_installer &&
	       !strcmp(b->row.team, c->who.team) &&
	       !(b->row.metadata && strstr(b->row.metadata, "\"" BOX_EPHEMERAL "\":"));
}

static int listing_fits(const struct box *b, const struct filter *f)
{
	struct e2b_box x;

	if (!(sandboxes_paused(b) ? f->paused : f->running) ||
	    whole_ms(sandboxes_started(b)) < whole_ms(f->since_ns) ||
	    (f->has_after && !is_after(b, f)))
		return 0;
	if (f->template) {
		e2b_box_read(b, &x);
		if (strcmp(templates_of(&x), f->template) != 0)
			return 0;
	}
	return has_pairs(b, f);
}

static int by_start(const void *a, const void *b)
{
	const struct box *x = *(const struct box *const *)a, *y = *(const struct box *const *)b;

	if (sandboxes_started(x) != sandboxes_started(y))
		return sandboxes_started(x) < sandboxes_started(y) ? -1 : 1;
	return strcmp(x->row.id, y->row.id);
}

struct found {
	const struct box **v;
	unsigned n, running; /* running boxes of the team, independent of the filter */
};

static struct found listing_find(struct call *c, const struct filter *f)
{
	const struct fleet *all = &c->api->fleet;
	struct found out = { .v = calloc(all->count + 1, sizeof(struct box *)) };

	if (!out.v)
		abort();
	for (const struct box *b = fleet_next(all, NULL); b; b = fleet_next(all, b)) {
		if (!is_seen(c, b))
			continue;
		out.running += !sandboxes_paused(b);
		if (out.n < all->count && listing_fits(b, f))
			out.v[out.n++] = b;
	}
	qsort(out.v, out.n, sizeof(*out.v), by_start);
	return out;
}

static void say_next(struct call *c, const struct filter *f, const struct box *last)
{
	struct store_cursor at = { .ns = sandboxes_started(last) };
	char text[STORE_CURSOR_TEXT];

	snprintf(at.id, sizeof(at.id), "%s", last->row.id);
	store_cursor_text(&at, text);
	http_set(c->req, "X-Next-Token", "%c%s", f->ascending ? 'a' : 'd', text);
}

static void listing_send(struct call *c, const struct filter *f, unsigned limit)
{
	struct found all = listing_find(c, f);
	json_t *items = json_array();
	unsigned n = all.n < limit ? all.n : limit;

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(items,
				      sandbox_json_listed(all.v[f->ascending ? i : all.n - 1 - i]));
	if (n < all.n)
		say_next(c, f, all.v[f->ascending ? n - 1 : all.n - n]);
	http_set(c->req, "X-Total-Running", "%u", all.running);
	free(all.v);
	call_json(c, 200, items);
}

void sandbox_list_v2(struct call *c)
{
	struct filter f = { 0 };
	struct err e;

	if (read_filter(c, &f, &e) < 0)
		call_fail(c, &e);
	else
		listing_send(c, &f, (unsigned)call_query_int(c, "limit", PAGE));
}

void sandbox_list_v1(struct call *c)
{
	struct filter f = { .running = 1 };
	struct err e;

	if (read_metadata(c, &f, &e) < 0)
		call_fail(c, &e);
	else
		listing_send(c, &f, UINT32_MAX);
}
