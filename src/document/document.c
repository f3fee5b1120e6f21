/* document.c - see document.h. */
#include "document/document.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *doc_text(const json_t *doc, const char *name)
{
	const char *text = json_string_value(json_object_get(doc, name));

	return text ? text : "";
}

void doc_hash(const json_t *doc, char out[65])
{
	auto_free char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	if (text)
		sha256_add(&s, text, strlen(text));
	sha256_end(&s, sum);
	hex_encode(out, sum, sizeof(sum));
}

void artifact_set_hash(json_t *artifact)
{
	static const char *const decide[] = { "language", "files", "entry",  "packages",
					      "stdin",    "env",   "limits", "network" };
	json_t *what = json_object();
	char hash[65];

	for (unsigned i = 0; i < ARRAY_LEN(decide); i++)
		if (json_object_get(artifact, decide[i]))
			json_object_set(what, decide[i], json_object_get(artifact, decide[i]));
	doc_hash(what, hash);
	json_decref(what);
	json_object_set_new(artifact, "hash", json_string(hash));
}

uint64_t artifact_limit(const json_t *artifact, const char *name, uint64_t otherwise)
{
	json_int_t n =
		json_integer_value(json_object_get(json_object_get(artifact, "limits"), name));

	return n > 0 ? (uint64_t)n : otherwise;
}

json_t *artifact_child(const json_t *artifact, const char *provenance, const char *because)
{
	json_t *child = json_deep_copy(artifact);

	json_object_set(child, "parent", json_object_get(artifact, "hash"));
	json_object_set_new(child, "provenance", json_string(provenance));
	json_object_set_new(child, "changed_because", json_string(because));
	return child;
}

/* ---- the task ---- */

enum member_type { IS_TEXT, IS_BOOL, IS_WHOLE, IS_NUMBER, IS_TEXTS_BY_NAME, IS_OBJECT, IS_LIST };
struct document_member {
	const char *name;
	enum member_type type;
	int64_t least, most; /* limits: bytes of a string, value of a number, number of items */
	const struct document_member
		*of; /* of an object; of each object of a list. Ends with a row without a name */
};

static const struct document_member example_members[] = {
	{ "input", IS_TEXT, 0, 1 << 20, NULL },
	{ "call", IS_TEXT, 1, 4096, NULL },
	{ "expected", IS_TEXT, 0, 1 << 20, NULL },
	{ 0 },
};
static const struct document_member test_members[] = {
	{ "path", IS_TEXT, 1, 400, NULL },
	{ "content", IS_TEXT, 0, 1 << 20, NULL },
	{ "command", IS_TEXT, 1, 4096, NULL },
	{ 0 },
};
static const struct document_member limit_members[] = {
	{ "run_ms", IS_WHOLE, 1, 3600000, NULL },
	{ "install_ms", IS_WHOLE, 1, 3600000, NULL },
	{ "memory", IS_WHOLE, 1 << 20, INT64_MAX, NULL },
	{ 0 },
};
static const struct document_member budget_members[] = {
	{ "max_attempts", IS_WHOLE, 1, 10, NULL },
	{ "max_tokens", IS_WHOLE, 0, 1000000000, NULL },
	{ "max_cost", IS_NUMBER, 0, 1000000, NULL },
	{ "max_calls", IS_WHOLE, 0, 1000, NULL },
	{ "max_wall_ms", IS_WHOLE, 1, 86400000, NULL },
	{ 0 },
};
static const struct document_member task_members[] = {
	{ "schema", IS_TEXT, 0, 64, NULL },
	{ "task", IS_TEXT, 1, AGENT_TASK_BYTES, NULL },
	{ "language", IS_TEXT, 1, 40, NULL },
	{ "files", IS_TEXTS_BY_NAME, 0, 200, NULL },
	{ "entry", IS_TEXT, 1, 200, NULL },
	{ "stdin", IS_TEXT, 0, 1 << 20, NULL },
	{ "examples", IS_LIST, 0, 100, example_members },
	{ "tests", IS_LIST, 0, 20, test_members },
	{ "packages", IS_OBJECT, 0, 10, NULL },
	{ "mode", IS_TEXT, 1, 20, NULL },
	{ "race", IS_WHOLE, 1, 4, NULL },
	{ "box", IS_TEXT, 1, 64, NULL },
	{ "remember", IS_BOOL, 0, 0, NULL },
	{ "limits", IS_OBJECT, 0, 10, limit_members },
	{ "network", IS_BOOL, 0, 0, NULL },
	{ "budget", IS_OBJECT, 0, 10, budget_members },
	{ "answers", IS_TEXTS_BY_NAME, 0, 50, NULL },
	{ "isolation", IS_TEXT, 1, 40, NULL },
	{ "trust", IS_TEXT, 1, 20, NULL },
	{ 0 },
};

static int document_wrong(struct err *e, const char *path, const char *must)
{
	return err_set(e, ERR_INVALID, "%.100s: must be %s", path, must);
}

static int check_text(const json_t *v, const struct document_member *m, const char *path,
		      struct err *e)
{
	size_t n = json_string_length(v);

	if (!json_is_string(v))
		return document_wrong(e, path, "a text");
	if (strlen(json_string_value(v)) != n)
		return document_wrong(e, path, "a text without NUL");
	if ((int64_t)n < m->least || (int64_t)n > m->most)
		return err_set(e, ERR_INVALID, "%.100s: must have %lld to %lld bytes", path,
			       (long long)m->least, (long long)m->most);
	return 0;
}

static int check_number(const json_t *v, const struct document_member *m, const char *path,
			struct err *e)
{
	double n = json_number_value(v);

	if (m->type == IS_WHOLE ? !json_is_integer(v) : !json_is_number(v))
		return document_wrong(e, path, m->type == IS_WHOLE ? "a whole number" : "a number");
	if (!(n >= (double)m->least && n <= (double)m->most))
		return err_set(e, ERR_INVALID, "%.100s: must be from %lld to %lld", path,
			       (long long)m->least, (long long)m->most);
	return 0;
}

static int check_members(const json_t *doc, const struct document_member *of, const char *path,
			 struct err *e);

static int check_texts(const json_t *v, const struct document_member *m, const char *path,
		       struct err *e)
{
	struct document_member text = { .least = 0, .most = AGENT_FILES_BYTES };
	size_t all = 0;
	const char *name;
	json_t *one;
	char at[160];

	if (!json_is_object(v))
		return document_wrong(e, path, "an object of texts");
	if ((int64_t)json_object_size(v) > m->most)
		return err_set(e, ERR_INVALID, "%s: at most %lld", path, (long long)m->most);
	json_object_foreach((json_t *)v, name, one)
	{
		snprintf(at, sizeof(at), "%.40s.%.80s", path, name);
		if (!*name || strlen(name) > 400)
			return document_wrong(e, at, "named with 1 to 400 bytes");
		if (check_text(one, &text, at, e) < 0)
			return -1;
		all += json_string_length(one);
	}
	if (all > AGENT_FILES_BYTES)
		return err_set(e, ERR_LIMIT, "%s: more than %d bytes together", path,
			       AGENT_FILES_BYTES);
	return 0;
}

static int check_list(const json_t *v, const struct document_member *m, const char *path,
		      struct err *e)
{
	char at[160];
	json_t *one;
	size_t i;

	if (!json_is_array(v))
		return document_wrong(e, path, "a list");
	if ((int64_t)json_array_size(v) > m->most)
		return err_set(e, ERR_INVALID, "%s: at most %lld", path, (long long)m->most);
	json_array_foreach(v, i, one)
	{
		snprintf(at, sizeof(at), "%.80s[%zu]", path, i);
		if (check_members(one, m->of, at, e) < 0)
			return -1;
	}
	return 0;
}

static int check_member(const json_t *v, const struct document_member *m, const char *path,
			struct err *e)
{
	switch (m->type) {
	case IS_TEXT:
		return check_text(v, m, path, e);
	case IS_WHOLE:
	case IS_NUMBER:
		return check_number(v, m, path, e);
	case IS_BOOL:
		return json_is_boolean(v) ? 0 : document_wrong(e, path, "true or false");
	case IS_TEXTS_BY_NAME:
		return check_texts(v, m, path, e);
	case IS_LIST:
		return check_list(v, m, path, e);
	case IS_OBJECT:
		break;
	}
	if (!json_is_object(v))
		return document_wrong(e, path, "an object");
	return m->of ? check_members(v, m->of, path, e) : 0;
}

static int check_members(const json_t *doc, const struct document_member *of, const char *path,
			 struct err *e)
{
	const char *name;
	char at[160];
	json_t *v;

	if (!json_is_object(doc))
		return document_wrong(e, path, "an object");
	json_object_foreach((json_t *)doc, name, v)
	{
		const struct document_member *m = of;

		snprintf(at, sizeof(at), "%.80s%s%.60s", path, *path ? "." : "", name);
		while (m->name && strcmp(m->name, name) != 0)
			m++;
		if (!m->name)
			return err_set(e, ERR_INVALID, "%s: there is no such member", at);
		if (!json_is_null(v) && check_member(v, m, at, e) < 0)
			return -1;
	}
	return 0;
}

/* {manager: [name]} */
static int check_packages(const json_t *packages, struct err *e)
{
	const char *manager;
	char at[80];
	json_t *list, *one;
	size_t i;

	json_object_foreach((json_t *)packages, manager, list)
	{
		snprintf(at, sizeof(at), "packages.%.40s", manager);
		if (!json_is_array(list) || json_array_size(list) > 200)
			return document_wrong(e, at, "a list of at most 200 names");
		json_array_foreach(list, i, one)
		{
			if (!json_is_string(one) || !json_string_length(one) ||
			    json_string_length(one) > 200)
				return document_wrong(e, at, "a list of names");
		}
	}
	return 0;
}

static int check_path(const char *path, const char *at, struct err *e)
{
	if (path[0] == '/' || strstr(path, "..") || path[strlen(path) - 1] == '/')
		return err_set(e, ERR_INVALID,
			       "%s: '%.60s' is not a path below the program's folder", at, path);
	return 0;
}

static int check_paths(const json_t *task, struct err *e)
{
	const json_t *files = json_object_get(task, "files"), *test;
	const char *path, *entry = doc_text(task, "entry");
	json_t *text;
	size_t i;

	json_object_foreach((json_t *)files, path, text)
	{
		if (check_path(path, "files", e) < 0)
			return -1;
	}
	json_array_foreach(json_object_get(task, "tests"), i, test)
	{
		if (!json_is_string(json_object_get(test, "path")) ||
		    !json_is_string(json_object_get(test, "content")))
			return err_set(e, ERR_INVALID, "tests[%zu]: needs path and content", i);
		if (check_path(doc_text(test, "path"), "tests", e) < 0)
			return -1;
	}
	if (*entry && !json_object_get(files, entry))
		return err_set(e, ERR_INVALID, "entry: '%.60s' is not in files", entry);
	return 0;
}

static int check_examples(const json_t *examples, struct err *e)
{
	const json_t *one;
	size_t i;

	json_array_foreach(examples, i, one)
	{
		int input = json_is_string(json_object_get(one, "input")),
		    call = json_is_string(json_object_get(one, "call"));

		if (!json_is_string(json_object_get(one, "expected")))
			return err_set(e, ERR_INVALID, "examples[%zu].expected: is missing", i);
		if (input == call)
			return err_set(e, ERR_INVALID, "examples[%zu]: give either input or call",
				       i);
	}
	return 0;
}

int task_check(const json_t *task, struct err *e)
{
	static const char *const modes[] = { "", "auto", "heuristic", "llm" };
	const char *mode = doc_text(task, "mode");
	unsigned i = 0;

	if (!json_is_object(task))
		return err_set(e, ERR_INVALID, "a task must be an object");
	if (check_members(task, task_members, "", e) < 0)
		return -1;
	if (!json_is_string(json_object_get(task, "task")))
		return err_set(e, ERR_INVALID, "task: is missing");
	while (i < ARRAY_LEN(modes) && strcmp(modes[i], mode) != 0)
		i++;
	if (i == ARRAY_LEN(modes))
		return document_wrong(e, "mode", "auto, heuristic or llm");
	if (check_packages(json_object_get(task, "packages"), e) < 0 || check_paths(task, e) < 0)
		return -1;
	return check_examples(json_object_get(task, "examples"), e);
}
