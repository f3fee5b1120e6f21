/* code.c - see code.h. A library text is expanded once: inserted values are not expanded again. */
#include "plan/code.h"
#include "plan/library.h"
#include "plan/literal.h"
#include "plan/multi_step.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <ctype.h>
#include <string.h>

/* ---- filling in ---- */

struct hole {
	char name[64], as[16];
	size_t len; /* of "{{name|as}}" */
};

static size_t name_at(const char *p, char *out, size_t room)
{
	size_t n = 0;

	while (n + 1 < room &&
	       (islower((unsigned char)p[n]) || isdigit((unsigned char)p[n]) || p[n] == '_'))
		n++;
	memcpy(out, p, n);
	out[n] = 0;
	return n;
}

/* {{name}} or {{name|as}} of a slot; other braces belong to the program. */
static int hole_at(const char *p, const struct library_task *t, struct hole *h)
{
	const char *from = p;
	size_t n;

	h->as[0] = 0;
	if (strncmp(p, "{{", 2) != 0 || !(n = name_at(p + 2, h->name, sizeof(h->name))))
		return 0;
	p += 2 + n;
	if (*p == '|') {
		n = name_at(p + 1, h->as, sizeof(h->as));
		p += 1 + n;
		if (!n)
			return 0;
	}
	if (strncmp(p, "}}", 2) != 0)
		return 0;
	h->len = (size_t)(p + 2 - from);
	for (unsigned i = 0; i < t->nslots; i++)
		if (!strcmp(t->slots[i].name, h->name))
			return 1;
	return !strcmp(h->name, "function");
}

static const struct library_slot *slot_named(const struct library_task *t, const char *name)
{
	for (unsigned i = 0; i < t->nslots; i++)
		if (!strcmp(t->slots[i].name, name))
			return &t->slots[i];
	return NULL;
}

static int add_bare(struct buf *out, const struct hole *h, const json_t *v, struct err *e)
{
	const char *text = json_string_value(v);
	size_t n = json_string_length(v);

	if (json_is_integer(v)) {
		buf_printf(out, "%lld", (long long)json_integer_value(v));
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			n = 0;
	if (!n)
		return err_set(e, ERR_INVALID,
			       "slot %.40s: '%.40s' is not a word of letters, digits and _",
			       h->name, text ? text : "");
	buf_add(out, text, n);
	return 0;
}

static int add_hole(struct buf *out, const struct library_task *t, const struct lang *l,
		    const struct hole *h, const json_t *v, struct err *e)
{
	const struct library_slot *s = slot_named(t, h->name);
	int real = s && (s->type == SLOT_NUMBERS || s->type == SLOT_NUMBER);

	if (!v)
		return err_set(e, ERR_INVALID, "slot %.40s has no value", h->name);
	if (!strcmp(h->as, "bare") || !s)
		return add_bare(out, h, v, e);
	if (!strcmp(h->as, "n")) {
		buf_printf(out, "%zu",
			   json_is_array(v) ? json_array_size(v) : json_string_length(v));
		return 0;
	}
	if (*h->as && strcmp(h->as, "items") != 0)
		return err_set(e, ERR_INVALID, "slot %.40s: nothing is known of |%.16s", h->name,
			       h->as);
	if (literal_add(out, l, v, real, *h->as ? LITERAL_ITEMS : LITERAL_WHOLE, e) < 0)
		return err_in(e, "slot %.40s", h->name);
	return 0;
}

static int code_fill(struct buf *out, const struct library_task *t, const struct lang *l,
		     const char *text, const json_t *slots, struct err *e)
{
	struct hole h;

	while (*text) {
		size_t plain = strcspn(text, "{");

		buf_add(out, text, plain);
		text += plain;
		if (hole_at(text, t, &h)) {
			if (add_hole(out, t, l, &h, json_object_get(slots, h.name), e) < 0)
				return -1;
			text += h.len;
		} else if (*text) {
			buf_putc(out, *text++);
		}
	}
	return 0;
}

/* ---- an artifact ---- */

static json_t *or_empty(const json_t *plan, const char *name, json_t *take_empty)
{
	json_t *v = json_object_get(plan, name);

	if (!v || json_is_null(v))
		return take_empty;
	json_decref(take_empty);
	return json_deep_copy(v);
}

static json_t *without_reasons(const json_t *packages)
{
	json_t *out = json_array(), *p;
	size_t i;

	json_array_foreach(packages, i, p)
	{
		json_t *one = json_deep_copy(p);

		json_object_del(one, "reason");
		json_array_append_new(out, one);
	}
	return out;
}

static json_t *artifact_of(const json_t *plan, json_t *take_files, const char *entry,
			   const char *provenance)
{
	json_t *a = json_object();

	json_object_set_new(a, "schema", json_string(AGENT_ARTIFACT));
	json_object_set_new(a, "attempt", json_integer(1));
	json_object_set_new(a, "language", json_string(doc_text(plan, "language")));
	json_object_set_new(a, "files", take_files);
	json_object_set_new(a, "entry", json_string(entry));
	json_object_set_new(a, "packages", without_reasons(json_object_get(plan, "packages")));
	json_object_set_new(a, "stdin", or_empty(plan, "stdin", json_string("")));
	json_object_set_new(a, "env", json_object());
	json_object_set_new(a, "examples", or_empty(plan, "examples", json_array()));
	json_object_set_new(a, "tests", or_empty(plan, "tests", json_array()));
	json_object_set_new(a, "checks", or_empty(plan, "checks", json_array()));
	json_object_set_new(a, "limits", or_empty(plan, "limits", json_object()));
	json_object_set_new(a, "network", or_empty(plan, "network", json_false()));
	json_object_set_new(a, "provenance", json_string(provenance));
	json_object_set_new(a, "parent", json_null());
	json_object_set_new(a, "changed_because", json_null());
	artifact_set_hash(a);
	return a;
}

/* One library program with its slots filled, as the text of a file; NULL: none, or a slot has the
 * wrong type. what: a plan, or a step of one. */
static json_t *program_of(const json_t *what, const struct lang *l, struct err *e)
{
	const char *id = doc_text(what, "template");
	const struct library_task *t = library_named(id);
	const struct library_program *p = t && l ? library_program(t, l) : NULL;
	const json_t *slots = json_object_get(what, "slots");
	auto_buf struct buf text = { 0 };
	const char *from;
	json_t *out;

	from = !p ? NULL : json_object_get(slots, "function") ? p->function : p->text;
	if (!from) {
		err_set(e, ERR_NOT_FOUND, "the library has no program of %.60s in %.40s", id,
			l ? l->name : "no language");
		return NULL;
	}
	if (code_fill(&text, t, l, from, slots, e) < 0)
		return NULL;
	out = json_stringn(buf_str(&text), text.len);
	if (!out)
		err_set(e, ERR_INVALID, "the program is not UTF-8");
	return out;
}

static json_t *from_library(const json_t *plan, struct err *e)
{
	const char *id = doc_text(plan, "template"), *entry = doc_text(plan, "entry");
	const struct lang *l = lang_named(doc_text(plan, "language"));
	json_t *program = program_of(plan, l, e), *files;
	auto_buf struct buf provenance = { 0 };

	if (!program)
		return NULL;
	files = or_empty(plan, "files", json_object());
	json_object_set_new(files, entry, program);
	buf_printf(&provenance, "template:%s", id);
	return artifact_of(plan, files, entry, buf_str(&provenance));
}

/* One program per step, and one that runs them. */
static int add_steps(const json_t *plan, json_t *files, struct buf *provenance, struct err *e)
{
	const struct lang *l = lang_named(doc_text(plan, "language"));
	json_t *names = json_array(), *step;
	auto_free char *runner = NULL;
	int rc = 0;
	size_t i;

	json_array_foreach(json_object_get(plan, "steps"), i, step)
	{
		json_t *program = rc < 0 ? NULL : program_of(step, l, e);

		rc = program ? rc : -1;
		json_object_set_new(files, doc_text(step, "file"), program);
		json_array_append_new(names, json_string(doc_text(step, "file")));
		buf_printf(provenance, "%s%s", i ? "," : "template:", doc_text(step, "template"));
	}
	if (rc == 0) {
		runner = multi_step_runner(doc_text(plan, "language"), names, e);
		rc = runner ? json_object_set_new(files, doc_text(plan, "entry"),
						  json_string(runner))
			    : -1;
	}
	json_decref(names);
	return rc;
}

static json_t *from_steps(const json_t *plan, struct err *e)
{
	json_t *files = or_empty(plan, "files", json_object());
	auto_buf struct buf provenance = { 0 };

	if (add_steps(plan, files, &provenance, e) == 0)
		return artifact_of(plan, files, doc_text(plan, "entry"), buf_str(&provenance));
	json_decref(files);
	return NULL;
}

json_t *code_make(const json_t *plan, struct err *e)
{
	const char *source = doc_text(plan, "source"), *entry = doc_text(plan, "entry");
	json_t *files = json_object_get(plan, "files");

	if (json_object_get(plan, "not_understood") ||
	    json_array_size(json_object_get(plan, "inputs_needed"))) {
		err_set(e, ERR_INVALID, "the plan has an unanswered question");
		return NULL;
	}
	if (!strcmp(source, "library"))
		return *doc_text(plan, "template") ? from_library(plan, e) : from_steps(plan, e);
	if (!*entry || !json_is_string(json_object_get(files, entry))) {
		err_set(e, ERR_INVALID, "the plan has no program");
		return NULL;
	}
	return artifact_of(plan, json_deep_copy(files), entry,
			   !strcmp(source, "given") ? "given" : source);
}
