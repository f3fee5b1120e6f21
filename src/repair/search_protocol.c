/* search_protocol.c - see search_protocol.h. */
#include "repair/search_protocol.h"
#include "base/cleanup.h"

#include <string.h>

static const struct {
	const char *member;
	enum search_msg_kind kind;
} kinds[] = {
	/* "found" before "at": an edit has that, too. */
	{ "found", SEARCH_MSG_FOUND },
	{ "candidates", SEARCH_MSG_CANDIDATES },
	{ "over", SEARCH_MSG_OVER },
	{ "at", SEARCH_MSG_AT },
};

static int read_rank(const json_t *v, unsigned *out, struct err *e)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    json_integer_value(v) > SEARCH_MSG_MOST)
		return err_set(e, ERR_INVALID, "no number from 0 to %d", SEARCH_MSG_MOST);
	*out = (unsigned)json_integer_value(v);
	return 0;
}

static void read_acts(struct search_msg *x, const json_t *v)
{
	size_t n = json_string_length(v);

	if (n <= SEARCH_MSG_ACTS && n % SEARCH_MSG_ACT == 0 && json_is_string(v) &&
	    strspn(json_string_value(v), "0123456789abcdef-") == n)
		memcpy(x->acts, json_string_value(v), n);
}

int search_msg_differ(const char *acts, const char *other)
{
	while (strlen(acts) >= SEARCH_MSG_ACT && strlen(other) >= SEARCH_MSG_ACT) {
		if (*acts != '-' && *other != '-' && memcmp(acts, other, SEARCH_MSG_ACT) != 0)
			return 1;
		acts += SEARCH_MSG_ACT;
		other += SEARCH_MSG_ACT;
	}
	return 0;
}

static int read_found(struct search_msg *x, const json_t *doc, const char *source, size_t n,
		      struct err *e)
{
	read_acts(x, json_object_get(doc, "acts"));
	if (!json_object_get(doc, "new"))
		return 0; /* one of the given edits */
	if (edit_read(&x->edit, doc, e) < 0 || edit_check(&x->edit, source, n, e) < 0) {
		edit_fini(&x->edit);
		return -1;
	}
	x->has_edit = 1;
	return 0;
}

static int read_doc(struct search_msg *x, const json_t *doc, const char *source, size_t n,
		    struct err *e)
{
	unsigned i = 0;

	while (i < ARRAY_LEN(kinds) && !json_object_get(doc, kinds[i].member))
		i++;
	if (i == ARRAY_LEN(kinds))
		return 0;
	x->kind = kinds[i].kind;
	if ((x->kind == SEARCH_MSG_OVER || x->kind == SEARCH_MSG_AT) &&
	    read_rank(json_object_get(doc, "tried"), &x->tried, e) < 0)
		return -1;
	x->cut = x->kind == SEARCH_MSG_OVER && json_is_true(json_object_get(doc, "cut"));
	if (x->kind == SEARCH_MSG_OVER)
		return 0;
	if (read_rank(json_object_get(doc, kinds[i].member), &x->n, e) < 0)
		return -1;
	return x->kind == SEARCH_MSG_FOUND ? read_found(x, doc, source, n, e) : 0;
}

int search_msg_parse(struct search_msg *x, const char *line, size_t n, const char *source,
		     size_t source_len, struct err *e)
{
	json_error_t where;
	json_t *doc;
	int rc;

	*x = (struct search_msg){ 0 };
	if (n > SEARCH_MSG_LINE)
		return err_set(e, ERR_LIMIT, "a line of more than %d bytes", SEARCH_MSG_LINE);
	doc = json_loadb(line, n, JSON_REJECT_DUPLICATES, &where);
	if (!json_is_object(doc)) {
		json_decref(doc);
		return err_set(e, ERR_INVALID, "a line is not a JSON object");
	}
	rc = read_doc(x, doc, source, source_len, e);
	json_decref(doc);
	return rc;
}
