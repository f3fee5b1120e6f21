/* debug.c - see debug.h.
 *
 *   what the kernel saw > the exit status > a runtime's last line > a compiler's first > any line > checks
 *
 * The first source with a finding decides; then the fixes of the rule (fix.h) are tried in order
 * and the first applicable one is used. Its artifact must differ from everything that ran. */
#include "debug/debug.h"
#include "debug/failure_facts.h"
#include "debug/fix.h"
#include "repair/repair.h"
#include "base/cleanup.h"
#include "record/changes.h"
#include "lang/diag.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
	TEXT_BYTES = 32 * 1024,
	LINE_BYTES = 1000,
	LINES_MOST = 400,
	FIRST_LINES = 40,
	LAST_LINES = 40
};

/* The output line by line: its end, last line first, and then its beginning: an endless recursion
 * names its reason in the first line. */
struct debug_said {
	const char *stream;
	const char *text;
	const char *line[LINES_MOST + FIRST_LINES];
	unsigned n;
};

static void said_read(struct debug_said *s, const char *stream, const char *text)
{
	size_t len = strlen(text);
	const char *at = text + len, *begin = len > TEXT_BYTES ? at - TEXT_BYTES : text, *last;

	*s = (struct debug_said){ .stream = stream, .text = text };
	while (at > begin && s->n < LINES_MOST) {
		const char *nl = memrchr(begin, '\n', (size_t)(at - begin - (at[-1] == '\n')));

		at = nl ? nl + 1 : begin;
		s->line[s->n++] = at;
	}
	last = at;
	for (at = text; at < last && s->n < LINES_MOST + FIRST_LINES; s->n++) {
		s->line[s->n] = at;
		at += strcspn(at, "\n") + 1;
	}
}

static long line_number(const struct debug_said *s, unsigned i)
{
	long n = 1;

	for (const char *at = s->text; at < s->line[i]; at++)
		n += *at == '\n';
	return n;
}

static void line_copy(const char *from, char out[LINE_BYTES + 1])
{
	size_t n = strcspn(from, "\n");

	n = n < LINE_BYTES ? n : LINE_BYTES;
	while (n && from[n - 1] == '\r')
		n--;
	memcpy(out, from, n);
	out[n] = 0;
}

void failure_seen(struct failure_case *s, const char *source, long line, const char *text)
{
	json_t *one = json_pack("{s:s}", "source", source);
	char cut[LINE_BYTES + 1];

	line_copy(text, cut);

	if (line > 0)
		json_object_set_new(one, "line", json_integer(line));
	json_object_set_new(one, "text", json_text(cut)); /* may be cut inside a character */
	json_array_append_new(s->evidence, one);
}

/* ---- rules ---- */

static void take_group(const char *line, const regmatch_t *m, char out[FAILURE_TEXT])
{
	if (m->rm_so < 0)
		out[0] = 0;
	else
		snprintf(out, FAILURE_TEXT, "%.*s", (int)(m->rm_eo - m->rm_so), line + m->rm_so);
}

static const char *debug_group(const struct failure_case *s, unsigned n)
{
	return n && n < RULE_GROUPS ? s->group[n] : "";
}

/* The message of the rule, with {1} etc. replaced. */
static void debug_explain(struct failure_case *s, const char *why)
{
	for (; *why; why++) {
		if (why[0] == '{' && isdigit((unsigned char)why[1]) && why[2] == '}') {
			buf_puts(&s->why, debug_group(s, (unsigned)(why[1] - '0')));
			why += 2;
		} else {
			buf_putc(&s->why, *why);
		}
	}
}

static int rule_holds(struct failure_case *s, const struct rule *r, const char *line)
{
	regmatch_t m[RULE_GROUPS];

	if (rules_off(r) || regexec(&r->re, line, RULE_GROUPS, m, 0) != 0)
		return 0;
	for (unsigned i = 0; i < RULE_GROUPS; i++)
		take_group(line, &m[i], s->group[i]);
	s->rule = r;
	s->category = r->category;
	s->name = r->name;
	s->confidence = r->confidence;
	snprintf(s->subject, sizeof(s->subject), "%s", debug_group(s, r->subject));
	snprintf(s->meant, sizeof(s->meant), "%s", debug_group(s, r->meant));
	if (r->file)
		snprintf(s->file, sizeof(s->file), "%s", debug_group(s, r->file));
	if (r->line)
		s->line = strtol(debug_group(s, r->line), NULL, 10);
	if (r->column)
		s->column = strtol(debug_group(s, r->column), NULL, 10);
	debug_explain(s, r->why);
	return 1;
}

static int line_rules(struct failure_case *s, enum rule_on on, int weak, const char *line)
{
	int status = (int)json_integer_value(json_object_get(s->phase, "exit_code"));

	for (unsigned i = 0; i < rules_count(); i++) {
		const struct rules *set = rules_at(i);

		if (!rules_speak_of(set, s->lang))
			continue;
		for (unsigned j = 0; j < set->n; j++) {
			const struct rule *r = &set->v[j];

			if (r->on == on && r->weak == weak &&
			    (on != ON_EXIT || r->exit == status) && rule_holds(s, r, line))
				return 1;
		}
	}
	return 0;
}

static int by_lines(struct failure_case *s, enum rule_on on, int weak,
		    const struct debug_said *said)
{
	char line[LINE_BYTES + 1];

	/* Without output there is still an exit status. */
	for (unsigned i = 0; i < said->n || (on == ON_EXIT && !i); i++) {
		line_copy(i < said->n ? said->line[i] : "", line);
		if (!line_rules(s, on, weak, line))
			continue;
		failure_seen(s, said->stream, i < said->n ? line_number(said, i) : 0, line);
		return 1;
	}
	return 0;
}

static long number_or_0(const json_t *doc, const char *name)
{
	return (long)json_integer_value(json_object_get(doc, name));
}

static int by_compiler(struct failure_case *s, int weak, const struct debug_said *said)
{
	json_t *all = s->lang ? diag_errors(s->lang, said->text, strlen(said->text)) : NULL;
	const json_t *one;
	size_t i;
	int found = 0;

	json_array_foreach(all, i, one)
	{
		const char *severity = doc_text(one, "severity");

		if (!strcmp(severity, "warning") || !strcmp(severity, "note") ||
		    !line_rules(s, ON_ERRORS, weak, doc_text(one, "message")))
			continue;
		snprintf(s->file, sizeof(s->file), "%s", doc_text(one, "file"));
		s->line = number_or_0(one, "line");
		s->column = number_or_0(one, "column");
		failure_seen(s, "compiler", s->line, doc_text(one, "message"));
		found = 1;
		break;
	}
	json_decref(all);
	return found;
}

/* The first file of the project with a line number in the output: "main.js:3". */
static void place_by_path(struct failure_case *s, const struct debug_said *said)
{
	const char *path, *first = NULL;
	const json_t *text;

	json_object_foreach((json_t *)json_object_get(s->artifact, "files"), path, text)
	{
		size_t n = strlen(path);

		for (const char *at = said->text; n && (at = strstr(at, path)); at += n) {
			if (at[n] != ':' || !isdigit((unsigned char)at[n + 1]) ||
			    (first && at >= first))
				continue;
			first = at;
			snprintf(s->file, sizeof(s->file), "%s", path);
			s->line = strtol(at + n + 1, NULL, 10);
			break;
		}
	}
}

/* The file and line of the failure, if the rule does not give them. */
static void place_fault(struct failure_case *s, const struct debug_said *said)
{
	json_t *fault = NULL;

	if (s->lang && !*s->file && !s->line)
		fault = diag_fault(s->lang, said->text, strlen(said->text));
	if (fault) {
		snprintf(s->file, sizeof(s->file), "%s", doc_text(fault, "file"));
		s->line = number_or_0(fault, "line");
		json_decref(fault);
	}
	/* Files of the runtime are not to be changed. */
	if (!failure_file(s, s->file))
		place_by_path(s, said);
}

static int by_rules(struct failure_case *s)
{
	static const char *const streams[] = { "stderr", "stdout" };

	for (int weak = 0; weak < 2; weak++)
		for (unsigned on = 0; on < ON_COUNT; on++)
			for (unsigned i = 0; i < ARRAY_LEN(streams); i++) {
				struct debug_said said;

				said_read(&said, streams[i], doc_text(s->phase, streams[i]));
				if (on == ON_ERRORS ? !by_compiler(s, weak, &said)
						    : !by_lines(s, on, weak, &said))
					continue;
				place_fault(s, &said);
				return 1;
			}
	return 0;
}

static int by_nothing(struct failure_case *s)
{
	struct debug_said said;

	said_read(&said, "stderr", doc_text(s->phase, "stderr"));
	if (!said.n)
		said_read(&said, "stdout", doc_text(s->phase, "stdout"));
	s->category = "unknown";
	s->name = "unknown";
	s->confidence = 0.1;
	for (unsigned i = said.n < LAST_LINES ? said.n : LAST_LINES; i--;) {
		char line[LINE_BYTES + 1];

		line_copy(said.line[i], line);
		failure_seen(s, said.stream, line_number(&said, i), line);
	}
	buf_puts(&s->why, "it failed, and what it said is in no rule");
	return 1;
}

/* ---- steps ---- */

static int in_before(const json_t *before, const char *member, const char *hash)
{
	const json_t *one;
	size_t i;

	json_array_foreach(before, i,
			   one) if (!strcmp(doc_text(one, member), hash) ||
				    !strcmp(doc_text(json_object_get(one, "new_artifact"), member),
					    hash)) return 1;
	return 0;
}

/* An artifact that has not run yet: not this one, not its parent, no earlier one. */
static int is_new(const struct failure_case *s, const json_t *child)
{
	const char *hash = doc_text(child, "hash");

	return strcmp(hash, doc_text(s->artifact, "hash")) != 0 &&
	       strcmp(hash, doc_text(s->artifact, "parent")) != 0 &&
	       !in_before(s->before, "hash", hash);
}

static void drop_child(struct failure_case *s)
{
	json_decref(s->child);
	s->child = NULL;
	s->kind = NULL;
	buf_cut(&s->detail, 0);
}

static int debug_try(struct failure_case *s, const struct fix *m)
{
	if (!m || !m->run(s))
		return 0;
	if (!s->child || is_new(s, s->child))
		return 1;
	drop_child(s);
	return 0;
}

static int has_some(const json_t *doc, const char *name)
{
	return json_array_size(json_object_get(doc, name)) > 0;
}

static void debug_otherwise(struct failure_case *s)
{
	const struct debug_category *c = &debug_categories[debug_category(s->category)];

	int shown = has_some(s->artifact, "examples") || has_some(s->artifact, "tests");

	if (c->search && shown && !repair_knows(doc_text(s->artifact, "language"))) {
		s->kind = "stop";
		buf_printf(
			&s->detail,
			"there is no search for another program in %.40s (only in Python, JavaScript, TypeScript, C, C++, Go, "
			"Java and Rust): a model or a person has to change it",
			s->lang ? s->lang->title : doc_text(s->artifact, "language"));
		return;
	}
	if (c->search && shown) {
		s->kind = "repair";
		s->fixable = "search";
		buf_puts(&s->detail, "look for a program that passes and differs in one place");
		return;
	}
	s->kind = "stop";
	buf_printf(&s->detail, "nothing to try: %s", buf_str(&s->why));
}

static void debug_treat(struct failure_case *s, const char *const *facts_fixes)
{
	for (unsigned i = 0; s->rule && s->rule->fixes[i]; i++)
		if (debug_try(s, s->rule->fixes[i]))
			return;
	for (; facts_fixes && *facts_fixes; facts_fixes++)
		if (debug_try(s, fix_named(*facts_fixes)))
			return;
	debug_otherwise(s);
}

/* ---- the document ---- */

/* Category, place and text without numbers, which may be addresses or times. For wrong output the
 * output itself is included: another output is another fault. */
static void debug_novelty(const struct failure_case *s, char out[65])
{
	const char *said = doc_text(json_array_get(s->evidence, 0), "text");
	int by_output = !strcmp(s->category, "wrong_output") || !strcmp(s->category, "assertion");
	auto_buf struct buf text = { 0 };
	json_t *words;

	buf_printf(&text, "%s|%s:%ld|", s->category, s->path, s->line);
	for (; *said; said++)
		if (by_output || !isdigit((unsigned char)*said))
			buf_putc(&text, *said);
	if (!strcmp(s->category, "wrong_output"))
		buf_printf(&text, "|%s", doc_text(s->phase, "stdout"));
	words = json_text(buf_str(&text));
	doc_hash(words, out);
	json_decref(words);
}

static json_t *debug_location(const struct failure_case *s)
{
	json_t *at;

	if (!*s->file && !*s->path)
		return NULL;
	at = json_pack("{s:o}", "file", json_text(*s->path ? s->path : s->file));
	if (s->line > 0)
		json_object_set_new(at, "line", json_integer(s->line));
	if (s->column > 0)
		json_object_set_new(at, "column", json_integer(s->column));
	return at;
}

static const char *debug_fixable(const struct failure_case *s)
{
	if (s->child)
		return "auto";
	if (s->fixable)
		return s->fixable;
	if (s->question.len)
		return "human";
	return debug_categories[debug_category(s->category)].fixable;
}

static json_t *debug_document(struct failure_case *s)
{
	json_t *doc =
		json_pack("{s:s, s:s, s:s, s:f, s:o, s:s}", "schema", AGENT_DIAGNOSIS, "category",
			  s->category, "subcategory", s->name, "confidence", s->confidence,
			  "root_cause", json_text(buf_str(&s->why)), "fixable", debug_fixable(s));
	json_t *at = debug_location(s);
	char hash[65];

	debug_novelty(s, hash);
	json_object_set(doc, "evidence", s->evidence);
	if (at)
		json_object_set_new(doc, "location", at);
	json_object_set_new(doc, "action",
			    json_pack("{s:s, s:o}", "kind", s->kind, "detail",
				      json_text(buf_str(&s->detail))));
	if (s->child)
		json_object_set(doc, "new_artifact", s->child);
	if (s->question.len)
		json_object_set_new(doc, "question",
				    json_pack("{s:o, s:o}", "name", json_text(s->question_name),
					      "question", json_text(buf_str(&s->question))));
	json_object_set_new(doc, "novelty", json_string(hash));
	return doc;
}

/* The same diagnosis again: its fix did not help. */
static void stop_if_seen(struct failure_case *s)
{
	char hash[65];

	debug_novelty(s, hash);
	if (!in_before(s->before, "novelty", hash))
		return;
	drop_child(s);
	buf_cut(&s->question, 0);
	s->kind = "stop";
	s->fixable = "llm";
	buf_puts(&s->detail, "the same again: what was tried did not help");
}

static void failure_case_fini(struct failure_case *s)
{
	json_decref(s->evidence);
	json_decref(s->child);
	buf_fini(&s->why);
	buf_fini(&s->detail);
	buf_fini(&s->question);
}

json_t *debug_make(const json_t *plan, const json_t *artifact, const json_t *result,
		   const json_t *before)
{
	struct failure_case s = { .plan = plan,
				  .artifact = artifact,
				  .result = result,
				  .before = before,
				  .lang = lang_named(doc_text(artifact, "language")),
				  .evidence = json_array() };
	const char *const *fixes;
	const char *path;
	json_t *doc;

	s.phase = facts_phase(result);
	fixes = facts_kernel(&s);
	if (!s.category && (facts_went_well(s.phase) || !by_rules(&s)))
		fixes = facts_checks(&s);
	if (!s.category)
		by_nothing(&s);
	if (!json_array_size(s.evidence))
		failure_seen(&s, "result", 0, buf_str(&s.why));
	path = failure_file(&s, s.file);
	snprintf(s.path, sizeof(s.path), "%s", path ? path : "");
	debug_treat(&s, fixes);
	stop_if_seen(&s);
	doc = debug_document(&s);
	failure_case_fini(&s);
	return doc;
}
