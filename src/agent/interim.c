/* interim.c - for builds in which a stage is still missing: it says so. */
#include "agent/code.h"
#include "agent/debug.h"
#include "agent/plan.h"
#include "agent/repair.h"
#include "agent/roles.h"
#include "agent/scan.h"

#ifdef WITHOUT_PLAN
json_t *plan_make(const json_t *task)
{
	const char *text = doc_text(task, "task");

	if (json_object_size(json_object_get(task, "files")))
		return json_pack("{s:s, s:s, s:O, s:s, s:O, s:s*, s:O*, s:O*, s:[], s:f, s:s, s:[], s:[]}", "schema",
				 AGENT_PLAN, "language", "python", "task", json_object_get(task, "task"),
				 "source", "given", "files", json_object_get(task, "files"), "entry",
				 doc_text(task, "entry"), "examples", json_object_get(task, "examples"),
				 "limits", json_object_get(task, "limits"), "packages", "confidence", 1.0,
				 "stdin", doc_text(task, "stdin"), "inputs_needed", "checks");
	if (!*text || text[0] != 'm')
		return json_pack("{s:s, s:{s:s, s:[]}}", "schema", AGENT_PLAN, "not_understood", "why",
				 "nothing is understood here", "nearest");
	return json_pack("{s:s, s:s, s:s, s:s, s:{s:s}, s:s, s:[], s:f, s:[], s:[{s:s, s:s}]}", "schema",
			 AGENT_PLAN, "language", "python", "task", text, "source", "library", "files",
			 "main.py", "n = [3, 1, 2]\nprint('mean:', sum(n) / 3)\nprint('median:', sorted(n)[1])\n",
			 "entry", "main.py", "inputs_needed", "confidence", 1.0, "packages", "checks", "kind",
			 "stdout_regex", "arg", "^mean: .+\nmedian: .+\n$");
}
#endif

#ifdef WITHOUT_CODE
json_t *code_make(const json_t *plan, struct err *e)
{
	json_t *a = json_deep_copy(plan);

	(void)e;
	json_object_set_new(a, "schema", json_string(AGENT_ARTIFACT));
	json_object_set_new(a, "provenance", json_string("template:interim@1"));
	artifact_seal(a);
	return a;
}
#endif

#ifdef WITHOUT_DEBUG
json_t *debug_make(const json_t *plan, const json_t *artifact, const json_t *result, const json_t *before)
{
	(void)plan;
	(void)artifact;
	(void)result;
	(void)before;
	return NULL;
}
#endif

#ifdef WITHOUT_SCAN
json_t *scan_files(const char *language, const json_t *files)
{
	(void)language;
	(void)files;
	return json_array();
}
#endif

#ifdef WITHOUT_REPAIR
int repair_possible(const json_t *artifact)
{
	(void)artifact;
	return 0;
}

struct repair *repair_start(struct fleet *f, const char *team, const json_t *artifact, unsigned boxes,
			    struct repair_owner *o)
{
	(void)f;
	(void)team;
	(void)artifact;
	(void)boxes;
	(void)o;
	return NULL;
}

void repair_cancel(struct repair *r)
{
	(void)r;
}
#endif

#ifdef WITHOUT_ROLES
int roles_has(const struct model_line *line, const char *role)
{
	(void)line;
	(void)role;
	return 0;
}

struct roles_ask *roles_plan(struct model_line *line, const json_t *task, struct roles_owner *o)
{
	(void)line;
	(void)task;
	(void)o;
	return NULL;
}

struct roles_ask *roles_code(struct model_line *line, const json_t *plan, struct roles_owner *o)
{
	return roles_plan(line, plan, o);
}

struct roles_ask *roles_debug(struct model_line *line, const json_t *plan, const json_t *artifact,
			      const json_t *result, const json_t *before, unsigned level,
			      struct roles_owner *o)
{
	(void)artifact;
	(void)result;
	(void)before;
	(void)level;
	return roles_plan(line, plan, o);
}

void roles_cancel(struct roles_ask *x)
{
	(void)x;
}

unsigned roles_level(const json_t *before, const json_t *now, const char **out_why)
{
	(void)before;
	(void)now;
	*out_why = "";
	return 0;
}
#endif
