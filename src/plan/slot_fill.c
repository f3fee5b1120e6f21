/* slot_fill.c - see slot_fill.h.
 *
 * Each possible value in the text has a distance to the preceding hint of a slot. The pair of slot
 * and value with the smallest distance is assigned first, then the next one among the rest; so
 * "replace 'a' by 'b'" does not depend on the order of the slots in a file. */
#include "plan/slot_fill.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <string.h>

enum {
	RANGE_MOST = 10000, /* numbers of "1 to 10000" */
	HINT_REACH = 3,     /* words between a hint and its value */
	NO_HINT = 20,
	SPELLED = 10, /* "ten" is less likely a value than 10 */
	BARE = 5,     /* and a word without quotes less than one with quotes */
	NEVER = 1000,
};

struct slot_fill_place {
	unsigned from, to; /* words [from, to) */
	int distance;
	json_t *value;
};

/* ---- lists ---- */

static int is_number_at(const struct words *w, unsigned i)
{
	return i < w->n && w->all[i].kind == WORD_NUMBER;
}

static json_t *number_json(const struct word *one)
{
	return one->whole ? json_integer(one->integer) : json_real(one->number);
}

/* Skips separators of a list: "," "and" ", and" ";". Returns the index of the next item. */
static unsigned over_separator(const struct words *w, unsigned i)
{
	unsigned from = i;

	if (i < w->n && (word_is_mark(&w->all[i], ',') || word_is_mark(&w->all[i], ';')))
		i++;
	if (i < w->n && (word_is(&w->all[i], "and") || word_is(&w->all[i], "or") ||
			 word_is_mark(&w->all[i], '&')))
		i++;
	return i > from ? i : 0;
}

/* "1 to 10", "1..10", "1-10", "between 1 and 10". Returns the index of the last number. */
static unsigned range_at(const struct words *w, unsigned i)
{
	unsigned k = i + 1;

	if (k >= w->n)
		return 0;
	if (word_is(&w->all[k], "to") || word_is(&w->all[k], "through") ||
	    word_is(&w->all[k], "until") || (word_is_mark(&w->all[k], '-') && w->all[k].glued))
		k++;
	else if (word_is(&w->all[k], "and") && i && word_is(&w->all[i - 1], "between"))
		k++;
	else if (word_is_mark(&w->all[k], '.') && w->all[k].glued && k + 1 < w->n &&
		 word_is_mark(&w->all[k + 1], '.'))
		for (; k < w->n && word_is_mark(&w->all[k], '.');)
			k++;
	else
		return 0;
	return is_number_at(w, k) && w->all[k].whole && w->all[i].whole ? k : 0;
}

static json_t *range_values(const struct word *from, const struct word *to)
{
	int64_t step = from->integer <= to->integer ? 1 : -1;
	json_t *out;

	if (from->number - to->number >= RANGE_MOST || to->number - from->number >= RANGE_MOST)
		return NULL;
	out = json_array();
	for (int64_t v = from->integer;; v += step) {
		json_array_append_new(out, json_integer(v));
		if (v == to->integer)
			return out;
	}
}

static char slot_fill_closing(char open)
{
	return open == '[' ? ']' : open == '(' ? ')' : open == '{' ? '}' : 0;
}

static int opens_list(const struct words *w, unsigned i)
{
	return w->all[i].kind == WORD_MARK && slot_fill_closing(*w->all[i].p) &&
	       !(w->all[i].glued && i && w->all[i - 1].kind == WORD_PLAIN);
}

/* The type of the items. LIST_ANY: strings, and numbers as written. */
enum list_of { LIST_NUMBERS, LIST_TEXTS, LIST_ANY };

static int is_value(const struct word *one, enum list_of of)
{
	return (one->kind == WORD_TEXT && of != LIST_NUMBERS) ||
	       (one->kind == WORD_NUMBER && of != LIST_TEXTS);
}

static int value_at(const struct words *w, unsigned i, enum list_of of, json_t *out)
{
	const struct word *one = &w->all[i];

	if (!is_value(one, of))
		return 0;
	json_array_append_new(out,
			      of == LIST_NUMBERS ? number_json(one) : json_stringn(one->p, one->n));
	return 1;
}

/* "[3, 1, 2]", "['a', 'b']". Inner brackets are ignored: "[[1, 2], [3, 4]]" has four numbers. */
static unsigned slot_fill_bracketed(const struct words *w, unsigned i, enum list_of of, json_t *out)
{
	unsigned depth = 0;

	for (; i < w->n; i++) {
		const struct word *one = &w->all[i];

		if (one->kind == WORD_MARK && slot_fill_closing(*one->p)) {
			depth++;
		} else if (one->kind == WORD_MARK && strchr("])}", *one->p)) {
			if (!--depth)
				return i + 1;
		} else if (!word_is_mark(one, ',') && !word_is_mark(one, ';') &&
			   !word_is_mark(one, '\n') && !value_at(w, i, of, out)) {
			return 0;
		}
	}
	return 0;
}

/* "(1, 2), (3, 4) and (5, 6)": six numbers. */
static unsigned slot_fill_brackets(const struct words *w, unsigned i, enum list_of of, json_t *out)
{
	unsigned to = slot_fill_bracketed(w, i, of, out), next = to;

	while (to && (next = over_separator(w, to)) && next < w->n && opens_list(w, next) &&
	       (next = slot_fill_bracketed(w, next, of, out)))
		to = next;
	return to;
}

/* "3, 1 and 2", "3 1 2". A list with only blanks needs three items. */
static unsigned slot_fill_enumerated(const struct words *w, unsigned i, enum list_of of,
				     json_t *out)
{
	unsigned next, separated = 0;

	if ((i >= 2 && over_separator(w, i - 1) == i && is_value(&w->all[i - 2], of)) ||
	    (i >= 1 && is_value(&w->all[i - 1], of)))
		return 0; /* inside of a list */
	if (!value_at(w, i++, of, out))
		return 0;
	for (;;) {
		next = over_separator(w, i);
		if (!next)
			next = i;
		if (next >= w->n || !value_at(w, next, of, out))
			break;
		separated += next > i;
		i = next + 1;
	}
	return json_array_size(out) >= (separated ? 2u : 3u) ? i : 0;
}

static int whole_numbers(const json_t *list)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v) if (!json_is_integer(v)) return 0;
	return 1;
}

/* join: consecutive brackets are one list. */
static int list_place(const struct words *w, unsigned i, enum list_of of, int join,
		      struct slot_fill_place *out)
{
	json_t *list = json_array();
	unsigned to = 0;

	if (of == LIST_NUMBERS && is_number_at(w, i) && range_at(w, i)) {
		json_decref(list);
		to = range_at(w, i);
		list = range_values(&w->all[i], &w->all[to]);
		to++;
	} else if (opens_list(w, i)) {
		to = join ? slot_fill_brackets(w, i, of, list)
			  : slot_fill_bracketed(w, i, of, list);
	} else {
		to = slot_fill_enumerated(w, i, of, list);
	}
	if (!to || !json_array_size(list)) {
		json_decref(list);
		return 0;
	}
	*out = (struct slot_fill_place){ .from = i, .to = to, .value = list };
	return 1;
}

/* ---- words without quotes ---- */

static int is_small_word(const struct word *one)
{
	static const char small[] =
		" a an the of in to for from with by is are be and or on at as it its that this these "
		"those which if then into using use given each all any some not whether has have "
		"one two between how what so do does will can should must may only there their your "
		"my me i you we he she they please than ";
	char want[WORD_STEM + 2];

	if (one->n >= WORD_STEM)
		return 0;
	want[0] = ' ';
	for (size_t i = 0; i < one->n; i++)
		want[i + 1] = (char)tolower((unsigned char)one->p[i]);
	want[one->n + 1] = ' ';
	want[one->n + 2] = 0;
	return strstr(small, want) != NULL;
}

/* A name or a word that no task contains. */
static int is_foreign(const struct word *one)
{
	return one->kind == WORD_PLAIN && !one->spelled && !is_small_word(one) && !one->id;
}

static int is_identifier(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)p[i]) && p[i] != '_')
			return 0;
	return n > 0;
}

/* "apple, banana and cherry": plain words with a comma at least. */
static int plain_list(const struct words *w, unsigned i, struct slot_fill_place *out)
{
	unsigned commas = 0, next;
	json_t *list;

	if (i && over_separator(w, i - 1) == i)
		return 0;
	list = json_array();
	while (i < w->n && w->all[i].kind == WORD_PLAIN && !is_small_word(&w->all[i])) {
		json_array_append_new(list, json_stringn(w->all[i].p, w->all[i].n));
		if (json_array_size(list) == 1)
			out->from = i;
		out->to = ++i;
		next = over_separator(w, i);
		if (!next || next >= w->n || w->all[next].kind != WORD_PLAIN)
			break;
		commas += word_is_mark(&w->all[i], ',');
		i = next;
	}
	if (json_array_size(list) >= 2 && commas) {
		out->value = list;
		return 1;
	}
	json_decref(list);
	return 0;
}

/* ---- columns ---- */

static int is_column_word(const struct words *w, unsigned i)
{
	return i < w->n && (word_is(&w->all[i], "column") || word_is(&w->all[i], "columns") ||
			    word_is(&w->all[i], "field") || word_is(&w->all[i], "fields"));
}

static int is_column_name(const struct word *one)
{
	return one->kind == WORD_TEXT || (one->kind == WORD_PLAIN && !is_small_word(one));
}

/* "columns name and age", "the age column"; or after a hint of the slot. */
static int columns_place(const struct words *w, unsigned i, int hinted, struct slot_fill_place *out)
{
	int behind = i && is_column_word(w, i - 1), before = is_column_word(w, i + 1);
	unsigned next = i;
	json_t *list;

	if (!is_column_name(&w->all[i]) || is_column_word(w, i) || (!behind && !before && !hinted))
		return 0;
	list = json_array();
	do {
		json_array_append_new(list, json_stringn(w->all[next].p, w->all[next].n));
		out->to = next + 1;
		next = over_separator(w, out->to);
	} while (next && next < w->n && is_column_name(&w->all[next]) && !is_column_word(w, next));
	out->from = i;
	out->distance = behind || before ? 0 : 1;
	out->value = list;
	return 1;
}

/* ---- one slot at one place ---- */

static json_t *text_json(const struct word *one)
{
	char *copy, *to;
	json_t *out;

	if (one->kind != WORD_TEXT || !memmem(one->p, one->n, "\\\"", 2))
		return json_stringn(one->p, one->n);
	copy = to = malloc(one->n);
	if (!copy)
		abort();
	for (size_t i = 0; i < one->n; i++) {
		i += one->p[i] == '\\' && i + 1 < one->n && one->p[i + 1] == '"';
		*to++ = one->p[i];
	}
	out = json_stringn(copy, (size_t)(to - copy));
	free(copy);
	return out;
}

static int slot_fill_single(struct slot_fill_place *out, unsigned i, json_t *value, int distance)
{
	*out = (struct slot_fill_place){
		.from = i, .to = i + 1, .value = value, .distance = distance
	};
	return value != NULL;
}

/* After a colon: the rest of the line, unchanged. */
static int rest_place(const struct words *w, unsigned i, struct slot_fill_place *out)
{
	unsigned to = i;
	const char *end;

	if (!i || !word_is_mark(&w->all[i - 1], ':') || w->all[i].kind == WORD_TEXT)
		return 0;
	while (to < w->n && !word_is_mark(&w->all[to], '\n'))
		to++;
	if (to == i)
		return 0;
	end = w->all[to - 1].p + w->all[to - 1].n;
	*out = (struct slot_fill_place){ .from = i, .to = to, .distance = BARE };
	out->value = json_stringn(w->all[i].p, (size_t)(end - w->all[i].p));
	return out->value != NULL;
}

static int number_place(const struct words *w, unsigned i, int whole, struct slot_fill_place *out)
{
	const struct word *one = &w->all[i];

	if ((one->kind != WORD_NUMBER && !one->spelled) || (whole && !one->whole))
		return 0;
	if (!one->whole && one->kind == WORD_NUMBER && !memchr(one->p, '.', one->n) &&
	    !memchr(one->p, 'e', one->n) && !memchr(one->p, 'E', one->n))
		return 0; /* too large: the stored value would be another number */
	return slot_fill_single(out, i, number_json(one), one->spelled ? SPELLED : 0);
}

/* hint: the distance to the preceding hint, NO_HINT: none. */
static int place_at(const struct library_slot *s, const struct words *w, unsigned i, int hint,
		    struct slot_fill_place *out)
{
	const struct word *one = &w->all[i];
	int hinted = hint < NO_HINT;

	*out = (struct slot_fill_place){ .from = i, .to = i + 1 };
	switch (s->type) {
	case SLOT_NUMBER:
	case SLOT_INTEGER:
		return number_place(w, i, s->type == SLOT_INTEGER, out);
	case SLOT_NUMBERS:
	case SLOT_INTEGERS:
		if (!list_place(w, i, LIST_NUMBERS, s->only, out))
			return 0;
		if (s->type == SLOT_NUMBERS || whole_numbers(out->value))
			return 1;
		json_decref(out->value);
		return 0;
	case SLOT_TEXTS:
		return list_place(w, i, s->any ? LIST_ANY : LIST_TEXTS, s->only, out) ||
		       ((hinted || (i && word_is_mark(&w->all[i - 1], ':'))) &&
			plain_list(w, i, out));
	case SLOT_TEXT:
		if (one->kind == WORD_TEXT)
			return slot_fill_single(out, i, text_json(one), 0);
		return rest_place(w, i, out) || (hint == 0 && is_foreign(one) &&
						 slot_fill_single(out, i, text_json(one), BARE));
	case SLOT_WORD:
		if (one->kind == WORD_TEXT && is_identifier(one->p, one->n))
			return slot_fill_single(out, i, text_json(one), 0);
		return hint == 0 && is_foreign(one) && is_identifier(one->p, one->n) &&
		       slot_fill_single(out, i, text_json(one), BARE);
	case SLOT_FILE:
		return one->kind == WORD_FILE && slot_fill_single(out, i, text_json(one), 0);
	case SLOT_URL:
		return one->kind == WORD_URL && slot_fill_single(out, i, text_json(one), 0);
	case SLOT_DATE:
		return one->kind == WORD_DATE && slot_fill_single(out, i, text_json(one), 0);
	case SLOT_SIZE:
		return one->kind == WORD_SIZE &&
		       slot_fill_single(out, i, json_integer(one->integer), 0);
	case SLOT_COLUMNS:
		return columns_place(w, i, hinted, out);
	case SLOT_NTYPES:
		break;
	}
	return 0;
}

/* ---- all slots ---- */

static int hint_ends_at(const struct phrase *p, const struct words *w, unsigned i)
{
	if (p->n > i + 1)
		return 0;
	for (unsigned k = 0; k < p->n; k++)
		if (w->all[i + 1 - p->n + k].id != p->ids[k])
			return 0;
	return 1;
}

/* The number of words between a hint and word i. */
static int hint_before(const struct library_slot *s, const struct words *w, unsigned i)
{
	int between = 0;

	while (i-- && between <= HINT_REACH) {
		for (unsigned k = 0; k < s->hint.n; k++)
			if (hint_ends_at(&s->hint.all[k], w, i))
				return between;
		between += w->all[i].kind != WORD_MARK;
	}
	return NO_HINT;
}

static int is_list(enum slot_type type)
{
	return type == SLOT_NUMBERS || type == SLOT_INTEGERS || type == SLOT_TEXTS;
}

static int is_free(const unsigned char *used, const struct slot_fill_place *p)
{
	for (unsigned i = p->from; i < p->to; i++)
		if (used[i])
			return 0;
	return 1;
}

/* The nearest unused value for a slot. */
static int slot_fill_nearest(const struct library_slot *s, const struct words *w,
			     const unsigned char *used, struct slot_fill_place *out)
{
	struct slot_fill_place here;

	*out = (struct slot_fill_place){ .distance = NEVER };
	for (unsigned i = 0; i < w->n; i++) {
		int hint;

		if (used[i] || (w->all[i].kind == WORD_MARK && !slot_fill_closing(*w->all[i].p)))
			continue;
		hint = s->hint.n ? hint_before(s, w, i) : NO_HINT;
		if (!place_at(s, w, i, hint, &here))
			continue;
		here.distance += hint;
		if (is_free(used, &here) && here.distance < out->distance) {
			json_decref(out->value);
			*out = here;
		} else {
			json_decref(here.value);
		}
	}
	return out->value != NULL;
}

/* Lists first: the numbers of a list are not single values. */
static int settle_one(const struct library_task *t, const struct words *w, int lists,
		      json_t *values, unsigned char *used)
{
	struct slot_fill_place best = { .distance = NEVER }, p;
	const struct library_slot *whose = NULL;

	for (unsigned i = 0; i < t->nslots; i++) {
		const struct library_slot *s = &t->slots[i];

		if (is_list(s->type) != lists || json_object_get(values, s->name) ||
		    !slot_fill_nearest(s, w, used, &p))
			continue;
		if (p.distance < best.distance) {
			json_decref(best.value);
			best = p;
			whose = s;
		} else {
			json_decref(p.value);
		}
	}
	if (!whose)
		return 0;
	json_object_set_new(values, whose->name, best.value);
	memset(used + best.from, 1, best.to - best.from);
	return 1;
}

json_t *slot_fill_find(const struct library_task *t, const struct words *w, unsigned char *used)
{
	json_t *values = json_object();

	while (settle_one(t, w, 1, values, used))
		;
	while (settle_one(t, w, 0, values, used))
		;
	return values;
}

/* ---- answers ---- */

static json_t *all_numbers(const struct words *w, int whole)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < w->n; i++)
		if (w->all[i].kind == WORD_NUMBER && (w->all[i].whole || !whole))
			json_array_append_new(list, number_json(&w->all[i]));
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

/* Splits at commas; quotes around an item are removed. */
static json_t *slot_fill_parts(const char *text, size_t len)
{
	json_t *list = json_array();
	const char *end = text + len;

	while (text < end) {
		const char *comma = memchr(text, ',', (size_t)(end - text)), *from = text, *to;

		to = comma ? comma : end;
		text = comma ? comma + 1 : end;
		while (from < to && strchr(" \t\n\"'[", *from))
			from++;
		while (to > from && strchr(" \t\n\"']", to[-1]))
			to--;
		if (to > from)
			json_array_append_new(list, json_stringn(from, (size_t)(to - from)));
	}
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

static json_t *first_of(const struct words *w, enum word_kind kind, int whole)
{
	for (unsigned i = 0; i < w->n; i++) {
		const struct word *one = &w->all[i];

		if (one->kind != kind && !(kind == WORD_NUMBER && one->spelled))
			continue;
		if (whole && !one->whole)
			continue;
		return kind == WORD_NUMBER ? number_json(one)
		       : kind == WORD_SIZE ? json_integer(one->integer)
					   : text_json(one);
	}
	return NULL;
}

static json_t *whole_answer(const char *text, size_t len)
{
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (len >= 2 && (*text == '"' || *text == '\'') && text[len - 1] == *text) {
		text++;
		len -= 2;
	}
	return json_stringn(text, len);
}

json_t *slot_answer(const struct library_slot *s, const char *text, size_t len)
{
	auto_words struct words w = { 0 };
	struct slot_fill_place p;
	json_t *v;

	words_read(&w, text, len);
	switch (s->type) {
	case SLOT_NUMBER:
	case SLOT_INTEGER:
		return first_of(&w, WORD_NUMBER, s->type == SLOT_INTEGER);
	case SLOT_NUMBERS:
	case SLOT_INTEGERS:
		if (w.n && list_place(&w, 0, LIST_NUMBERS, 1, &p)) {
			if (s->type == SLOT_NUMBERS || whole_numbers(p.value))
				return p.value;
			json_decref(p.value);
		}
		return all_numbers(&w, s->type == SLOT_INTEGERS);
	case SLOT_TEXTS:
	case SLOT_COLUMNS:
		return slot_fill_parts(text, len);
	case SLOT_DATE:
		return first_of(&w, WORD_DATE, 0);
	case SLOT_SIZE:
		v = first_of(&w, WORD_SIZE, 0);
		return v ? v : first_of(&w, WORD_NUMBER, 1);
	case SLOT_URL:
		return first_of(&w, WORD_URL, 0);
	case SLOT_WORD:
		v = whole_answer(text, len);
		if (v && is_identifier(json_string_value(v), json_string_length(v)))
			return v;
		json_decref(v);
		return NULL;
	default:
		return whole_answer(text, len);
	}
}
