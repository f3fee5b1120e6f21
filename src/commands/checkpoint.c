/* checkpoint.c - `atoll checkpoint`, `checkpoints`, `rollback`, `fork`, `promote` and `merge`: the files of a box at one moment, and
 * boxes that go back to them or start with them. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/table.h"
#include "commands/checkpoint_archive.h"
#include "commands/commands.h"
#include "procimage/keep.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- checkpoint ---- */

enum {
	TAKE_NOTE,
	TAKE_PIN,
	TAKE_MEMORY,
	TAKE_PORTABLE,
	TAKE_DURABLE,
	TAKE_EXPLAIN,
	TAKE_DELTA,
	TAKE_LAYER,
	TAKE_NFLAGS
};

static const struct flag take_flags[TAKE_NFLAGS] = {
	[TAKE_NOTE] = { "note", 0, FLAG_TEXT, "TEXT", "a text for people" },
	[TAKE_PIN] = { "pin", 0, FLAG_SWITCH, NULL, "keep it until it is deleted" },
	[TAKE_MEMORY] = { "memory", 0, FLAG_SWITCH, NULL, "also the running programs" },
	[TAKE_PORTABLE] = { "portable", 0, FLAG_SWITCH, NULL,
			    "with --memory: with the mapped files of the host, for a host with others" },
	[TAKE_DURABLE] = { "durable", 0, FLAG_SWITCH, NULL,
			   "return when it survives a power failure" },
	[TAKE_EXPLAIN] = { "explain", 0, FLAG_SWITCH, NULL,
			   "print what --memory keeps of programs, and what it refuses" },
	[TAKE_DELTA] = { "delta", 0, FLAG_SWITCH, NULL,
			 "export only what has changed since the parent" },
	[TAKE_LAYER] = { "layer", 0, FLAG_SWITCH, NULL,
			 "export the tar archive of the files, without an image around it" },
};

static int checkpoint_take(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/checkpoints", a->words[0]);
	json_t *doc = json_object();

	if (a->nwords == 2)
		json_object_set_new(doc, "name", json_string(a->words[1]));
	if (args_has(a, TAKE_NOTE))
		json_object_set_new(doc, "note", json_string(args_text(a, TAKE_NOTE, "")));
	if (args_has(a, TAKE_PIN))
		json_object_set_new(doc, "pin", json_true());
	if (args_has(a, TAKE_MEMORY))
		json_object_set_new(doc, "memory", json_true());
	if (args_has(a, TAKE_PORTABLE))
		json_object_set_new(doc, "portable", json_true());
	if (args_has(a, TAKE_DURABLE))
		json_object_set_new(doc, "wait", json_string("durable"));
	doc = api_client_json(r, "POST", path, doc);
	if (!doc) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(doc);
	else
		puts(api_client_text(doc, "id"));
	json_decref(doc);
	return 0;
}

static int checkpoint_remove(struct api_client *r, const struct args *a)
{
	for (unsigned i = 1; i < a->nwords; i++) {
		auto_free char *path = api_client_path("/v1/checkpoints/%s", a->words[i]);
		json_t *doc = api_client_json(r, "DELETE", path, NULL);

		json_decref(doc);
		if (!doc)
			return r->status;
	}
	return 0;
}

static int checkpoint_pin(struct api_client *r, const struct args *a)
{
	for (unsigned i = 1; i < a->nwords; i++) {
		auto_free char *path = api_client_path("/v1/checkpoints/%s", a->words[i]);
		json_t *doc = api_client_json(r, "PATCH", path, json_pack("{s:b}", "pin", 1));

		if (!doc)
			return r->status;
		if (r->cli->json)
			api_client_print(doc);
		json_decref(doc);
	}
	return 0;
}

static int checkpoint_run(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "";

	if (a->nwords >= 2 && !strcmp(what, "rm"))
		return checkpoint_remove(r, a);
	if (a->nwords >= 2 && !strcmp(what, "pin"))
		return checkpoint_pin(r, a);
	if (a->nwords == 3 && !strcmp(what, "export"))
		return checkpoint_file_export(r, a->words[1], a->words[2], args_has(a, TAKE_DELTA),
					      args_has(a, TAKE_LAYER));
	if ((a->nwords == 3 || a->nwords == 4) && !strcmp(what, "import"))
		return checkpoint_file_import(r, a->words[1], a->words[2],
					      a->nwords == 4 ? a->words[3] : NULL,
					      args_has(a, TAKE_PIN));
	if (a->nwords == 1 || a->nwords == 2)
		return checkpoint_take(r, a);
	api_client_usage(r, a->nwords ? "checkpoint: too many words" : "checkpoint: missing box");
	cli_error_hint(
		&r->error, "type",
		"atoll checkpoint BOX [NAME] | rm CHECKPOINT... | pin CHECKPOINT... | export "
		"CHECKPOINT FILE | import BOX FILE [NAME]");
	return r->status;
}

/* The rows by which captures decide; they need no daemon. */
static int checkpoint_explain(const struct cli *cli)
{
	static const char *const columns[] = { "THING", "COPY", "NOTE", NULL };
	struct table t;

	table_init(&t, columns);
	for (unsigned i = 0; i < KEEP_COUNT; i++) {
		const struct keep_row *k = &keep_rows[i];
		json_t *row;

		if (!cli->json) {
			table_cell(&t, "%s", k->thing);
			table_cell(&t, "%s", keep_outcome_name(k->outcome));
			table_cell(&t, "%s", k->text);
			continue;
		}
		row = json_pack("{s:s, s:s, s:s}", "thing", k->thing, "copy",
				keep_outcome_name(k->outcome), "note", k->text);
		api_client_print(row);
		json_decref(row);
	}
	table_print(&t, isatty(STDOUT_FILENO));
	return 0;
}

static int run_checkpoint(const struct cli *cli, const struct args *a)
{
	if (args_has(a, TAKE_EXPLAIN) && !a->nwords)
		return checkpoint_explain(cli);
	return api_client_command(cli, a, checkpoint_run);
}

static const struct example checkpoint_examples[] = {
	{ "atoll checkpoint demo before-upgrade", "save the files of demo; its programs continue" },
	{ "atoll rollback demo before-upgrade", "replace its files by those" },
	{ "atoll checkpoint --explain", "what a copy of a program keeps and loses" },
	{ "atoll checkpoint export k3xq7h2mzp4a demo.tar", "write its files as an OCI image" },
	{ "atoll checkpoint import demo demo.tar good",
	  "... and add them to demo as checkpoint good" },
	{ "atoll checkpoint rm k3xq7h2mzp4a", "delete a checkpoint" },
	{ 0 },
};

const struct command command_checkpoint = {
	.name = "checkpoint",
	.group = "Boxes",
	.usage =
		"BOX [NAME] | rm CHECKPOINT... | pin CHECKPOINT... | export CHECKPOINT FILE | import BOX FILE [NAME]",
	.summary = "save the files of a box at this moment",
	.notes = "Only what has changed since the last checkpoint is stored.",
	.flags = take_flags,
	.nflags = TAKE_NFLAGS,
	.max_words = 100,
	.examples = checkpoint_examples,
	.run = run_checkpoint,
};

/* ---- checkpoints ---- */

static void checkpoints_add(struct table *t, const json_t *v, unsigned depth)
{
	const json_t *files = json_object_get(v, "files");
	char text[UNITS_TEXT];
	json_t *child;
	size_t i;

	table_cell(t, "%*s%s", (int)(2 * depth), "", api_client_text(v, "id"));
	table_cell(t, "%s", api_client_text(v, "name"));
	table_cell(t, "%s", api_client_text(v, "reason"));
	table_cell(t, "%lld", (long long)api_client_int(files, "changed", 0));
	table_cell(t, "%lld", (long long)api_client_int(files, "deleted", 0));
	table_cell(t, "%s", units_size(text, (uint64_t)api_client_int(files, "bytes", 0)));
	table_cell(t, "%s", api_client_since(text, v, "created"));
	json_array_foreach(json_object_get(v, "children"), i, child)
		checkpoints_add(t, child, depth + 1);
}

static int checkpoints_show(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { "CHECKPOINT", "NAME",  "REASON", ">CHANGED",
					       ">DELETED",   ">SIZE", ">AGE",   NULL };
	auto_free char *path = NULL;
	struct table t;
	json_t *doc, *one;
	size_t i;

	if (a->nwords != 1)
		return api_client_usage(r, "checkpoints: missing box");
	path = api_client_path("/v1/boxes/%s/checkpoints?tree=true", a->words[0]);
	doc = api_client_json(r, "GET", path, NULL);
	if (!doc) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json) {
		api_client_print(json_object_get(doc, "items"));
	} else {
		table_init(&t, columns);
		json_array_foreach(json_object_get(doc, "items"), i, one)
			checkpoints_add(&t, one, 0);
		table_print(&t, isatty(STDOUT_FILENO));
	}
	json_decref(doc);
	return 0;
}

static int run_checkpoints(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, checkpoints_show);
}

static const struct example checkpoints_examples[] = {
	{ "atoll checkpoints demo", "list the checkpoints of demo, each below its parent" },
	{ 0 },
};

const struct command command_checkpoints = {
	.name = "checkpoints",
	.group = "Boxes",
	.usage = "BOX",
	.summary = "list the checkpoints of a box as a tree",
	.max_words = 1,
	.examples = checkpoints_examples,
	.run = run_checkpoints,
};

/* ---- rollback ---- */

enum { ROLLBACK_NO_SAVE, ROLLBACK_NFLAGS };

static const struct flag rollback_flags[ROLLBACK_NFLAGS] = {
	[ROLLBACK_NO_SAVE] = { "no-save", 0, FLAG_SWITCH, NULL,
			       "do not take a checkpoint of the present files first" },
};

static int rollback_do(struct api_client *r, const struct args *a)
{
	auto_free char *path = NULL;
	json_t *doc;

	if (!a->nwords)
		return api_client_usage(r, "rollback: missing box");
	path = api_client_path("/v1/boxes/%s/rollback", a->words[0]);
	doc = json_pack("{s:b}", "save", !args_has(a, ROLLBACK_NO_SAVE));
	if (a->nwords == 2)
		json_object_set_new(doc, "to", json_string(a->words[1]));
	doc = api_client_json(r, "POST", path, doc);
	if (!doc) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(doc);
	else if (*api_client_text(doc, "safety"))
		printf("undo: atoll rollback %s %s\n", a->words[0], api_client_text(doc, "safety"));
	json_decref(doc);
	return 0;
}

static int run_rollback(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, rollback_do);
}

static const struct example rollback_examples[] = {
	{ "atoll rollback demo", "replace the files of demo by those of its last checkpoint" },
	{ "atoll rollback demo good", "... of the checkpoint good" },
	{ 0 },
};

const struct command command_rollback = {
	.name = "rollback",
	.group = "Boxes",
	.usage = "BOX [CHECKPOINT]",
	.summary = "replace the files of a box by those of a checkpoint",
	.notes =
		"Its programs end. Id, name, ports and timers of the box stay. A checkpoint of the present files is taken first.",
	.flags = rollback_flags,
	.nflags = ROLLBACK_NFLAGS,
	.max_words = 2,
	.examples = rollback_examples,
	.run = run_rollback,
};

/* ---- fork ---- */

enum { FORK_COUNT, FORK_FROM, FORK_MEMORY, FORK_NFLAGS };

static const struct flag fork_flags[FORK_NFLAGS] = {
	[FORK_COUNT] = { "count", 'n', FLAG_COUNT, "N", "number of boxes" },
	[FORK_FROM] = { "from", 0, FLAG_TEXT, "CHECKPOINT",
			"with the files of this checkpoint, not of now" },
	[FORK_MEMORY] = { "memory", 0, FLAG_SWITCH, NULL,
			  "the running programs continue in each box" },
};

static int fork_print(const json_t *doc)
{
	json_t *one;
	size_t i;
	int failed = 0;

	json_array_foreach(json_object_get(doc, "items"), i, one)
	{
		const json_t *box = json_object_get(one, "box");

		if (box)
			puts(api_client_text(box, "id"));
		else
			fprintf(stderr, "atoll: %s\n",
				api_client_text(json_object_get(one, "error"), "message"));
		failed |= !box;
	}
	return failed;
}

static int fork_do(struct api_client *r, const struct args *a)
{
	json_t *doc, *names = json_array();
	auto_free char *path = NULL;
	int failed;

	if (!a->nwords) {
		json_decref(names);
		return api_client_usage(r, "fork: missing box");
	}
	for (unsigned i = 1; i < a->nwords; i++)
		json_array_append_new(names, json_string(a->words[i]));
	path = api_client_path("/v1/boxes/%s/fork", a->words[0]);
	doc = json_pack("{s:I}", "count",
			(json_int_t)args_value(a, FORK_COUNT, a->nwords > 1 ? a->nwords - 1 : 1));
	json_object_set_new(doc, "names", names);
	if (args_has(a, FORK_FROM))
		json_object_set_new(doc, "from", json_string(args_text(a, FORK_FROM, "")));
	if (args_has(a, FORK_MEMORY))
		json_object_set_new(doc, "memory", json_true());
	doc = api_client_json(r, "POST", path, doc);
	if (!doc) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(doc);
	failed = r->cli->json ? 0 : fork_print(doc);
	json_decref(doc);
	return failed;
}

static int run_fork(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, fork_do);
}

static const struct example fork_examples[] = {
	{ "atoll fork demo", "create a box with the files of demo" },
	{ "atoll fork demo left right", "create two, with these names" },
	{ "atoll fork demo -n 8 --memory", "create eight, in which the programs of demo continue" },
	{ 0 },
};

const struct command command_fork = {
	.name = "fork",
	.group = "Boxes",
	.usage = "BOX [NAME...]",
	.summary = "create boxes with the files of a box",
	.notes = "Files are shared until they are changed. Programs are copied only with --memory.",
	.flags = fork_flags,
	.nflags = FORK_NFLAGS,
	.max_words = 101,
	.examples = fork_examples,
	.run = run_fork,
};

/* ---- promote ---- */

/* Conflicts of a merge, of which the server lists the first ones. */
static void print_conflicts(const json_t *doc)
{
	const json_t *list = json_object_get(doc, "conflicts");
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		fprintf(stderr, "both: %s\n", api_client_text(one, "path"));
}

/* The files of another box, or of a part of them. */
static int checkpoint_take_over(struct api_client *r, const struct args *a, const char *action,
				json_t *take_body)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/%s", a->words[0], action);
	json_t *doc = api_client_json(r, "POST", path, take_body);

	if (!doc)
		return r->status;
	if (r->cli->json) {
		api_client_print(doc);
	} else {
		print_conflicts(json_object_get(doc, "merge"));
		printf("undo: atoll rollback %s %s\n", a->words[0], api_client_text(doc, "safety"));
	}
	json_decref(doc);
	return 0;
}

static int promote_do(struct api_client *r, const struct args *a)
{
	if (a->nwords != 2)
		return api_client_usage(r, "promote: missing box or fork");
	return checkpoint_take_over(r, a, "promote", json_pack("{s:s}", "from", a->words[1]));
}

static int run_promote(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, promote_do);
}

static const struct example promote_examples[] = {
	{ "atoll promote demo left", "replace the files of demo by those of its fork left" },
	{ 0 },
};

const struct command command_promote = {
	.name = "promote",
	.group = "Boxes",
	.usage = "BOX FORK",
	.summary = "replace the files of a box by those of its fork",
	.notes =
		"Programs of the box end; the fork continues. A checkpoint of the present files is taken first.",
	.max_words = 2,
	.examples = promote_examples,
	.run = run_promote,
};

/* ---- merge ---- */

enum { MERGE_OURS, MERGE_THEIRS, MERGE_NFLAGS };

static const struct flag merge_flags[MERGE_NFLAGS] = {
	[MERGE_OURS] = { "ours", 0, FLAG_SWITCH, NULL,
			 "of paths that both have changed, keep those of BOX" },
	[MERGE_THEIRS] = { "theirs", 0, FLAG_SWITCH, NULL, "... take those of OTHER" },
};

static int merge_do(struct api_client *r, const struct args *a)
{
	const char *how = args_has(a, MERGE_OURS)     ? "ours"
			  : args_has(a, MERGE_THEIRS) ? "theirs"
						      : "fail";

	if (a->nwords != 2)
		return api_client_usage(r, "merge: missing box, or the one whose changes it gets");
	if (args_has(a, MERGE_OURS) && args_has(a, MERGE_THEIRS))
		return api_client_usage(r, "merge: --ours and --theirs exclude each other");
	return checkpoint_take_over(
		r, a, "merge", json_pack("{s:s, s:s}", "from", a->words[1], "on_conflict", how));
}

static int run_merge(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, merge_do);
}

static const struct example merge_examples[] = {
	{ "atoll merge demo left", "add what its fork left has changed to the files of demo" },
	{ "atoll merge demo left --theirs",
	  "... and take the files of left where both have changed one" },
	{ 0 },
};

const struct command command_merge = {
	.name = "merge",
	.group = "Boxes",
	.usage = "BOX OTHER",
	.summary = "add the changes of a fork, or of a checkpoint, to the files of a box",
	.notes =
		"By path, since the last checkpoint that both have in common; if both have changed a path, nothing is changed. Programs of the box end. A checkpoint of the present files is taken first.",
	.flags = merge_flags,
	.nflags = MERGE_NFLAGS,
	.max_words = 2,
	.examples = merge_examples,
	.run = run_merge,
};
