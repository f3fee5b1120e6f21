/* pipeline_task.c - see pipeline_task.h. */
#include "commands/pipeline_task.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MOST = 4 << 20 };

static int task_read_file(struct api_client *r, const char *name, struct buf *out)
{
	auto_fd int fd = open(name, O_RDONLY | O_CLOEXEC);
	char shown[SHOWN];
	ssize_t n = -1;

	while (fd >= 0 && out->len <= FILE_MOST && (n = read(fd, buf_space(out, 65536), 65536)) > 0)
		buf_grew(out, (size_t)n);
	if (fd < 0 || n < 0) {
		cli_error_what(&r->error, "not_found", "%s: %s", cli_error_shown(name, shown),
			       strerror(errno));
		return r->status = STATUS_NOT_FOUND;
	}
	if (out->len > FILE_MOST)
		return api_client_usage(r, "%s: more than 4 MiB", cli_error_shown(name, shown));
	return 0;
}

static json_t *task_text_of(struct api_client *r, const char *name)
{
	auto_buf struct buf text = { 0 };
	char shown[SHOWN];
	json_t *doc;

	if (task_read_file(r, name, &text))
		return NULL;
	doc = json_stringn(buf_str(&text), text.len);
	if (!doc)
		api_client_usage(r, "%s: is not text", cli_error_shown(name, shown));
	return doc;
}

static const char *task_base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int task_add_file(struct api_client *r, json_t *task, const char *path)
{
	json_t *files = json_object_get(task, "files"), *text = task_text_of(r, path);

	if (!text)
		return r->status;
	if (!files) {
		files = json_object();
		json_object_set_new(task, "files", files);
		json_object_set_new(task, "entry", json_string(task_base_of(path)));
	}
	json_object_set_new(files, task_base_of(path), text);
	return 0;
}

static int task_add_test(struct api_client *r, json_t *task, const char *path)
{
	json_t *tests = json_object_get(task, "tests"), *text = task_text_of(r, path);

	if (!text)
		return r->status;
	if (!tests) {
		tests = json_array();
		json_object_set_new(task, "tests", tests);
	}
	json_array_append_new(tests,
			      json_pack("{s:s, s:o}", "path", task_base_of(path), "content", text));
	return 0;
}

/* name(...) */
static int task_is_call(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && (isalnum((unsigned char)text[i]) || strchr("_.", text[i])))
		i++;
	return i && i < n && text[i] == '(' && text[n - 1] == ')';
}

/* \n in a word of a shell. */
static json_t *task_unescaped(const char *text, size_t n)
{
	auto_buf struct buf out = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\\' && i + 1 < n && strchr("nt\\", text[i + 1])) {
			i++;
			buf_putc(&out, text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : '\\');
		} else {
			buf_putc(&out, text[i]);
		}
	}
	return json_stringn(buf_str(&out), out.len);
}

static int task_add_example(struct api_client *r, json_t *task, const char *word)
{
	const char *arrow = strstr(word, "=>");
	json_t *all = json_object_get(task, "examples");
	size_t n = arrow ? (size_t)(arrow - word) : 0;

	if (!arrow)
		return api_client_usage(r, "--example: must be IN=>OUT");
	if (!all) {
		all = json_array();
		json_object_set_new(task, "examples", all);
	}
	while (n && word[n - 1] == ' ')
		n--;
	arrow += 2;
	arrow += *arrow == ' ';
	json_array_append_new(all, json_pack("{s:o, s:o}", task_is_call(word, n) ? "call" : "input",
					     task_unescaped(word, n), "expected",
					     task_unescaped(arrow, strlen(arrow))));
	return 0;
}

static int task_add_package(struct api_client *r, json_t *task, const char *word)
{
	const char *colon = strchr(word, ':');
	json_t *all = json_object_get(task, "packages"), *list;
	char manager[32];

	if (!colon || colon - word > 20)
		return api_client_usage(r, "--package: must be MANAGER:NAME, as pip:numpy");
	snprintf(manager, sizeof(manager), "%.*s", (int)(colon - word), word);
	if (!all) {
		all = json_object();
		json_object_set_new(task, "packages", all);
	}
	list = json_object_get(all, manager);
	if (!list) {
		list = json_array();
		json_object_set_new(all, manager, list);
	}
	json_array_append_new(list, json_string(colon + 1));
	return 0;
}

static int task_add_given(struct api_client *r, const struct args *a, json_t *task)
{
	for (unsigned i = 0; i < a->ngiven; i++) {
		const struct given *g = &a->given[i];
		int status = g->flag == PIPELINE_FILE      ? task_add_file(r, task, g->text)
			     : g->flag == PIPELINE_TEST    ? task_add_test(r, task, g->text)
			     : g->flag == PIPELINE_EXAMPLE ? task_add_example(r, task, g->text)
			     : g->flag == PIPELINE_PACKAGE ? task_add_package(r, task, g->text)
							   : 0;

		if (status)
			return status;
	}
	return 0;
}

static void task_set_text(json_t *task, const char *name, const char *text)
{
	if (text)
		json_object_set_new(task, name, json_string(text));
}

json_t *pipeline_task(struct api_client *r, const struct args *a)
{
	json_t *task = json_pack("{s:s}", "task", a->words[1]);

	if (!task) {
		api_client_usage(r, "the task is not text");
		return NULL;
	}
	task_set_text(task, "language", args_text(a, PIPELINE_LANGUAGE, NULL));
	task_set_text(task, "mode", args_text(a, PIPELINE_MODE, NULL));
	task_set_text(task, "isolation", args_text(a, PIPELINE_ISOLATION, NULL));
	task_set_text(task, "trust", args_text(a, PIPELINE_TRUST, NULL));
	task_set_text(task, "stdin", args_text(a, PIPELINE_STDIN, NULL));
	task_set_text(task, "box", args_text(a, PIPELINE_BOX, NULL));
	if (args_has(a, PIPELINE_RACE))
		json_object_set_new(task, "race",
				    json_integer((json_int_t)args_value(a, PIPELINE_RACE, 1)));
	if (args_has(a, PIPELINE_ATTEMPTS))
		json_object_set_new(task, "budget",
				    json_pack("{s:I}", "max_attempts",
					      (json_int_t)args_value(a, PIPELINE_ATTEMPTS, 3)));
	if (args_has(a, PIPELINE_TIME))
		json_object_set_new(task, "limits",
				    json_pack("{s:I}", "run_ms",
					      (json_int_t)args_value(a, PIPELINE_TIME, 30000)));
	if (args_has(a, PIPELINE_FORGET))
		json_object_set_new(task, "remember", json_false());
	if (task_add_given(r, a, task)) {
		json_decref(task);
		return NULL;
	}
	return task;
}
