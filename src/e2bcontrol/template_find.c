/* template_find.c - see template_find.h. */
#include "e2bcontrol/template_find.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The team before the slash owns the template; names of other teams are found only so. */
static int find_team_fits(const struct template_found *f, const char *reference)
{
	const char *slash = strchr(reference, '/'), *team = f->builtin ? "" : f->row.team;
	size_t n = slash ? (size_t)(slash - reference) : 0;

	return !slash || (strlen(team) == n && !strncasecmp(team, reference, n));
}

int template_find_named(const struct call *c, const char *reference, struct template_found *out,
			struct err *e)
{
	if (template_find(c->api->store, c->who.team, reference, out, e) < 0)
		return -1;
	if (!out->shipped && find_team_fits(out, reference))
		return 0;
	template_found_fini(out);
	return err_set(e, ERR_NOT_FOUND,
		       out->shipped ? "template '%.100s' has not been built yet"
				    : "there is no template '%.100s'",
		       reference);
}

int template_find_own(struct call *c, const char *reference, struct template_found *out)
{
	struct err e;

	if (template_find_named(c, reference, out, &e) < 0) {
		call_fail(c, &e);
		return 0;
	}
	if (!out->builtin && !strcmp(out->row.team, c->who.team))
		return 1;
	e2b_error(c, 403,
		  out->builtin ? "template '%.100s' is part of the server and cannot be changed"
			       : "template '%.100s' belongs to another team",
		  reference);
	template_found_fini(out);
	return 0;
}

int template_find_build(struct call *c, struct store_build *out)
{
	const char *template = call_param(c, 0), *id = call_param(c, 1);
	struct template_found f;
	struct err e;
	int fits;

	if (!template_find_own(c, template, &f))
		return 0;
	*out = (struct store_build){ 0 };
	fits = store_build_get(c->api->store, id, out, &e) == 0 && !strcmp(out->template, f.row.id);
	template_found_fini(&f);
	if (fits)
		return 1;
	store_build_fini(out);
	e2b_error(c, 404, "template '%.100s' has no build '%.40s'", template, id);
	return 0;
}

/* ---- tags ---- */

int template_find_tag(json_t *tags, const char *text, struct err *e)
{
	char tag[STORE_TAG + 1];
	size_t n = strlen(text), i;
	const json_t *has;

	if (n == 0 || n > STORE_TAG || template_is_uuid(text) ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != n)
		return err_set(
			e, ERR_INVALID,
			"tag '%.80s': a tag has up to %d letters, digits, dots, - and _, and is "
			"not a UUID",
			text, STORE_TAG);
	for (i = 0; i <= n; i++)
		tag[i] = (char)tolower((unsigned char)text[i]);
	json_array_foreach(tags, i, has) if (!strcmp(json_string_value(has), tag)) return 0;
	json_array_append_new(tags, json_string(tag));
	return 0;
}

int template_find_tags(json_t *tags, const json_t *texts, struct err *e)
{
	const json_t *one;
	size_t i;

	json_array_foreach(texts, i, one) if (template_find_tag(tags, json_string_value(one), e) <
					      0) return -1;
	return 0;
}
