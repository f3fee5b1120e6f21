/* template_build.c - see template_build.h.
 *
 *	POST /v1/templates with the texts of the build files
 *	   <- file_missing: one of them names another file; send that one, too
 *	   <- files_needed: a step copies files; name the archive of the folder
 *	   <- files_needed: the daemon does not have it; PUT /v1/templates/uploads/HASH
 *	   <- 202: the build has begun; follow its log
 *
 * So a mistake in a Dockerfile is reported before anything is packed, and a folder that no step needs is never sent. */
#include "commands/template_build.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/build_follow.h"
#include "cli/pack.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUILD_TEXT = 1 << 20, BUILD_TRIES = 20, BUILD_SECRET = 64 << 10 };
#define BUILD_MOST (UINT64_C(2) << 30) /* of a daemon that does not say it */

struct template_job {
	struct api_client *r;
	const struct args *a;
	const char *folder;
	struct pack pack;
	json_t *body;  /* of the request */
	json_t *files; /* its texts; borrowed from body */
	int uploaded;
};

static int template_failed(struct template_job *j, const struct err *e)
{
	cli_error_what(&j->r->error, err_kind_name(e->kind), "%s", e->msg);
	return j->r->status =
		       e->kind == ERR_SYS && e->sys == ENOENT ? STATUS_NOT_FOUND : STATUS_FAILED;
}

/* ---- the request ---- */

/* NAME=VALUE, or NAME with the value of this process's environment. */
static int template_args(struct template_job *j, json_t *out)
{
	for (unsigned i = 0; i < j->a->ngiven; i++) {
		const char *text = j->a->given[i].text, *eq, *value;
		char name[200], shown[SHOWN];

		if (j->a->given[i].flag != TEMPLATE_ARG)
			continue;
		eq = strchr(text, '=');
		snprintf(name, sizeof(name), "%.*s", (int)(eq ? eq - text : (long)strlen(text)),
			 text);
		value = eq ? eq + 1 : getenv(name);
		if (!*name || !value)
			return api_client_usage(
				j->r, "--build-arg: '%s' is not NAME=VALUE, and no variable here",
				cli_error_shown(text, shown));
		json_object_set_new(out, name, json_string(value));
	}
	return 0;
}

static int template_secret_file(struct template_job *j, const char *path, json_t **out)
{
	auto_buf struct buf text = { 0 };
	FILE *f = fopen(path, "re");
	char shown[SHOWN];

	if (!f) {
		cli_error_what(&j->r->error, "not_found", "--secret: %s: %s",
			       cli_error_shown(path, shown), strerror(errno));
		return j->r->status = STATUS_NOT_FOUND;
	}
	buf_grew(&text, fread(buf_space(&text, BUILD_SECRET + 1), 1, BUILD_SECRET + 1, f));
	fclose(f);
	if (text.len > BUILD_SECRET || memchr(buf_str(&text), 0, text.len))
		return api_client_usage(j->r, "--secret: %s must be a text of at most %d KiB",
					cli_error_shown(path, shown), BUILD_SECRET >> 10);
	*out = json_string(buf_str(&text));
	return *out ? 0
		    : api_client_usage(j->r, "--secret: %s is not UTF-8",
				       cli_error_shown(path, shown));
}

/* id=NAME[,src=FILE|,env=VARIABLE]; without either, the variable NAME. */
static int template_secret(struct template_job *j, json_t *out, const char *text)
{
	auto_free char *copy = strdup(text);
	char *rest = copy, *pair, *id = NULL, *src = NULL, *env = NULL, shown[SHOWN];
	json_t *value = NULL;

	while ((pair = strsep(&rest, ",")) != NULL) {
		if (!strncmp(pair, "id=", 3))
			id = pair + 3;
		else if (!strncmp(pair, "src=", 4))
			src = pair + 4;
		else if (!strncmp(pair, "source=", 7))
			src = pair + 7;
		else if (!strncmp(pair, "env=", 4))
			env = pair + 4;
		else if (strncmp(pair, "type=", 5) != 0)
			id = src = env = NULL;
	}
	if (!id || !*id)
		return api_client_usage(j->r, "--secret: '%s' is not id=NAME,src=FILE",
					cli_error_shown(text, shown));
	if (src && template_secret_file(j, src, &value))
		return j->r->status;
	if (!src && getenv(env ? env : id))
		value = json_string(getenv(env ? env : id));
	if (!value)
		return api_client_usage(j->r, "--secret: no variable '%s' is set",
					cli_error_shown(env ? env : id, shown));
	json_object_set_new(out, id, value);
	return 0;
}

static int template_secrets(struct template_job *j)
{
	json_t *all = json_object();

	json_object_set_new(j->body, "secrets", all);
	for (unsigned i = 0; i < j->a->ngiven; i++)
		if (j->a->given[i].flag == TEMPLATE_SECRET &&
		    template_secret(j, all, j->a->given[i].text))
			return j->r->status;
	if (!json_object_size(all))
		json_object_del(j->body, "secrets");
	return 0;
}

static int template_add_file(struct template_job *j, const char *path, int *out_got)
{
	auto_buf struct buf text = { 0 };
	struct err e;

	*out_got = pack_text(&j->pack, path, BUILD_TEXT, &text, &e);
	if (*out_got < 0)
		return template_failed(j, &e);
	if (*out_got && json_object_set_new(j->files, path, json_string(buf_str(&text))) < 0) {
		char shown[SHOWN];

		return api_client_usage(j->r, "%s is not a text in UTF-8",
					cli_error_shown(path, shown));
	}
	return 0;
}

/* A file that is not there is no error here: the daemon says which one it needs. */
static int template_texts(struct template_job *j, const char *file)
{
	static const char *const names[] = { "atoll.toml",
					     "e2b.toml",
					     "Dockerfile",
					     "e2b.Dockerfile",
					     ".devcontainer/devcontainer.json",
					     ".devcontainer.json" };
	int got;

	if (file)
		return template_add_file(j, file, &got);
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (template_add_file(j, names[i], &got))
			return j->r->status;
	return 0;
}

/* The last part of the folder's path, for a template without a name. */
static json_t *template_folder_name(const char *folder)
{
	auto_free char *path = realpath(folder, NULL);
	const char *last = path ? strrchr(path, '/') + 1 : "";
	struct buf name = { 0 };
	json_t *text;

	for (; *last; last++)
		if (isalnum((unsigned char)*last) || (name.len && strchr("-_", *last)))
			buf_putc(&name, (char)tolower((unsigned char)*last));
	text = json_string(buf_str(&name));
	buf_fini(&name);
	return text;
}

/* What the flags say about the build, whatever it is made of. */
static void template_options(struct template_job *j)
{
	const struct args *a = j->a;
	json_t *tags = json_array();

	if (args_has(a, TEMPLATE_NAME))
		json_object_set_new(j->body, "name", json_string(args_text(a, TEMPLATE_NAME, "")));
	if (args_has(a, TEMPLATE_FORCE))
		json_object_set_new(j->body, "force", json_true());
	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == TEMPLATE_TAG)
			json_array_append_new(tags, json_string(a->given[i].text));
	if (json_array_size(tags))
		json_object_set(j->body, "tags", tags);
	json_decref(tags);
}

/* A word that is no folder may name a template that comes with the server. 1: there is a template of that name, and body has the
 * request; the daemon rejects it if the template is another one. */
static int template_shipped(struct template_job *j)
{
	auto_free char *path = api_client_path("/v1/templates/%s", j->folder);
	struct cli_error before = j->r->error;
	json_t *doc = strchr(j->folder, '/') ? NULL : api_client_json(j->r, "GET", path, NULL);
	int is = doc && !json_is_true(json_object_get(doc, "builtin"));

	json_decref(doc);
	j->r->error = before;
	if (is) {
		j->body = json_pack("{s:s}", "name", j->folder);
		template_options(j);
	}
	return is;
}

static int template_describe(struct template_job *j)
{
	const struct args *a = j->a;
	const char *file = args_text(a, TEMPLATE_FILE, NULL);
	json_t *source = json_object(), *args = json_object();

	while (file && !strncmp(file, "./", 2))
		file += 2;
	j->files = json_object();
	j->body = json_pack("{s:o}", "source", source);
	json_object_set_new(source, "files", j->files);
	json_object_set_new(source, "args", args);
	json_object_set_new(source, "folder", template_folder_name(j->folder));
	if (file)
		json_object_set_new(source, "file", json_string(file));
	if (args_has(a, TEMPLATE_TARGET))
		json_object_set_new(source, "target",
				    json_string(args_text(a, TEMPLATE_TARGET, "")));
	template_options(j);
	if (template_args(j, args) || template_secrets(j))
		return j->r->status;
	return template_texts(j, file);
}

/* ---- the files ---- */

static uint64_t template_most(struct template_job *j)
{
	json_t *info = api_client_get(j->r, "/v1/info");
	int64_t most = api_client_int(json_object_get(info, "limits"), "template_bytes", 0);

	json_decref(info);
	return most > 0 ? (uint64_t)most : BUILD_MOST;
}

static int template_too_large(struct template_job *j, uint64_t most)
{
	auto_buf struct buf largest = { 0 };
	char size[UNITS_TEXT], limit[UNITS_TEXT];

	pack_largest(&j->pack, &largest);
	cli_error_what(&j->r->error, "limit", "the folder has %s in %llu files, of at most %s",
		       units_size(size, j->pack.bytes), (unsigned long long)j->pack.files,
		       units_size(limit, most));
	cli_error_why(&j->r->error, "largest: %s", buf_str(&largest));
	cli_error_hint(&j->r->error, "leave out", "echo FOLDER >> %s",
		       *j->pack.ignore_file ? j->pack.ignore_file : ".dockerignore");
	return j->r->status = STATUS_FAILED;
}

static ssize_t template_more(void *ctx, void *out, size_t room, struct err *e)
{
	struct template_job *j = ctx;
	ssize_t n = pack_read(&j->pack, out, room, e);
	char done[UNITS_TEXT], all[UNITS_TEXT];

	if (!j->r->cli->json && !j->r->cli->quiet && isatty(2))
		fprintf(stderr, "\r\033[Kuploading %s of %s", units_size(done, j->pack.read),
			units_size(all, j->pack.bytes));
	return n;
}

/* Names the archive; the daemon may have it already. */
static int template_pack(struct template_job *j)
{
	json_t *source = json_object_get(j->body, "source"), *manifest;
	char hash[PACK_HASH + 1];
	uint64_t most = template_most(j);
	struct err e;

	if (pack_scan(&j->pack, &e) < 0)
		return template_failed(j, &e);
	if (j->pack.bytes > most)
		return template_too_large(j, most);
	if (pack_hash(&j->pack, hash, &e) < 0)
		return template_failed(j, &e);
	manifest = pack_manifest(&j->pack);
	if (manifest)
		json_object_set_new(source, "manifest", manifest);
	return json_object_set_new(source, "archive", json_string(hash));
}

static int template_upload(struct template_job *j, const char *hash)
{
	auto_free char *path = api_client_path("/v1/templates/uploads/%s", hash);
	struct api_client_bytes x = { .method = "PUT",
				      .path = path,
				      .type = "application/gzip",
				      .from = -1,
				      .to = -1,
				      .more = template_more,
				      .ctx = j };
	int talks = !j->r->cli->json && !j->r->cli->quiet;
	char size[UNITS_TEXT];

	j->r->status = api_client_bytes(j->r, &x);
	json_decref(x.answer);
	if (talks && isatty(2))
		fputs("\r\033[K", stderr);
	if (j->r->status)
		return j->r->status;
	if (talks)
		fprintf(stderr, "uploaded %llu files, %s\n", (unsigned long long)j->pack.files,
			units_size(size, j->pack.bytes));
	if (talks && j->pack.skipped)
		fprintf(stderr, "atoll: %llu sockets, devices or pipes were left out\n",
			(unsigned long long)j->pack.skipped);
	return 0;
}

/* ---- begin ---- */

/* 1: ask again, with what was missing. */
static int template_supply(struct template_job *j)
{
	const char *archive =
		json_string_value(json_object_get(json_object_get(j->body, "source"), "archive"));
	char path[sizeof(j->r->error.why)];
	struct cli_error why = j->r->error;
	int got = 0;

	if (!strcmp(j->r->code, "files_needed") && !archive)
		return template_pack(j) == 0;
	if (!strcmp(j->r->code, "files_needed") && !j->uploaded) {
		j->uploaded = 1;
		return template_upload(j, archive) == 0;
	}
	snprintf(path, sizeof(path), "%s", why.why);
	if (strcmp(j->r->code, "file_missing") != 0 || json_object_get(j->files, path) ||
	    template_add_file(j, path, &got))
		return 0;
	if (!got) {
		j->r->error = why;
		cli_error_hint(&j->r->error, "folder", "%s", j->folder);
	}
	return got;
}

static json_t *template_begin(struct template_job *j)
{
	for (int i = 0; i < BUILD_TRIES; i++) {
		json_t *build =
			api_client_json(j->r, "POST", "/v1/templates", json_deep_copy(j->body));

		if (build || !template_supply(j))
			return build;
	}
	return NULL;
}

/* ---- follow ---- */

static const char *template_first_tag(const json_t *build)
{
	const char *tag = json_string_value(json_array_get(json_object_get(build, "tags"), 0));

	return tag ? tag : "default";
}

/* `web:v2`, the name for --template. */
static void template_print_name(struct api_client *r, const json_t *build)
{
	json_t *t = api_client_get(r, "/v1/templates/%s", api_client_text(build, "template"));

	if (r->cli->quiet)
		puts(api_client_text(build, "id"));
	else if (t)
		printf("%s:%s\n", api_client_text(t, "name"), template_first_tag(build));
	json_decref(t);
}

static int template_watch(struct api_client *r, const char *id)
{
	json_t *build = NULL;
	int status = build_follow_show(r, id, 1, &build);

	if (!status)
		status = build_follow_result(r, build);
	if (!status && r->cli->json)
		api_client_print(build);
	else if (!status)
		template_print_name(r, build);
	json_decref(build);
	return status;
}

static int template_ask(const char *id)
{
	char answer[16] = "";

	fprintf(stderr, "\r\033[Katoll: cancel build %s? [y/N] ", id);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void template_cancel(struct api_client *r, const char *id)
{
	auto_free char *path = api_client_path("/v1/builds/%s", id);
	struct api_client other;

	if (api_client_again(&other, r) == 0)
		json_decref(api_client_json(&other, "DELETE", path, NULL));
	api_client_close(&other);
}

/* After Ctrl-C: 1: the command ends and the build continues. */
static int template_interrupted(struct api_client *r, const char *id, pid_t watcher, int *asked)
{
	if (!isatty(0) || !isatty(2)) {
		template_cancel(r, id);
		return 0;
	}
	if (*asked) {
		kill(watcher, SIGKILL);
		fprintf(stderr, "\natoll: the build continues: atoll template log -f %s\n", id);
		return 1;
	}
	*asked = 1;
	kill(watcher, SIGSTOP); /* so that the question stays on the screen */
	if (template_ask(id))
		template_cancel(r, id);
	kill(watcher, SIGCONT);
	return 0;
}

/* A process of its own prints the log, so that this one can wait for Ctrl-C as well. */
int template_follow(struct api_client *r, const char *id)
{
	int how = 0, asked = 0, left = 0;
	sigset_t set, before;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &before);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		signal(SIGINT, SIG_IGN);
		sigprocmask(SIG_SETMASK, &before, NULL);
		how = template_watch(r, id);
		if (how && r->error.what[0])
			how = cli_error_print(&r->error, r->cli->json, how);
		fflush(NULL);
		_exit(how);
	}
	while (pid > 0 && waitpid(pid, &how, WNOHANG) != pid) {
		int sig = sigwaitinfo(&set, NULL);

		if (sig == SIGINT || sig == SIGTERM)
			left |= template_interrupted(r, id, pid, &asked);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return template_watch(r, id);
	r->error.what[0] = 0;
	return left ? 130 : WIFEXITED(how) ? WEXITSTATUS(how) : STATUS_FAILED;
}

/* The body for a box; the word of the command is the name. */
static void template_of_box(struct template_job *j, const char *box)
{
	const char *name = args_text(j->a, TEMPLATE_NAME, j->a->nwords > 1 ? j->a->words[1] : NULL);

	j->body = json_pack("{s:s, s:s*}", "from_box", box, "name", name);
	template_options(j);
}

/* A box with the files of a snapshot, which ends with the command. */
static json_t *template_snapshot_box(struct template_job *j, const char *snapshot)
{
	if (args_has(j->a, TEMPLATE_DETACH)) {
		api_client_usage(j->r, "--from-snapshot and --detach cannot be combined");
		return NULL;
	}
	return api_client_json(j->r, "POST", "/v1/boxes", json_pack("{s:s}", "snapshot", snapshot));
}

static int template_follow_or_print(struct template_job *j, const json_t *build)
{
	char id[64];

	snprintf(id, sizeof(id), "%s", api_client_text(build, "id"));
	if (!args_has(j->a, TEMPLATE_DETACH))
		return template_follow(j->r, id);
	if (j->r->cli->json)
		api_client_print(build);
	else
		puts(id);
	return 0;
}

static int template_run_box(struct template_job *j)
{
	const char *box = args_text(j->a, TEMPLATE_FROM_BOX, NULL);
	const char *snapshot = args_text(j->a, TEMPLATE_FROM_SNAPSHOT, NULL);
	auto_free char *path = NULL;
	json_t *made = NULL, *build;
	int status;

	if (snapshot) {
		made = template_snapshot_box(j, snapshot);
		if (!made)
			return j->r->status;
		box = api_client_text(made, "id");
		path = api_client_path("/v1/boxes/%s", box);
	}
	template_of_box(j, box);
	build = template_begin(j);
	status = build ? template_follow_or_print(j, build) : j->r->status;
	json_decref(build);
	if (path)
		json_decref(api_client_json(j->r, "DELETE", path, NULL));
	json_decref(made);
	return status;
}

static int template_run(struct template_job *j)
{
	struct err e;
	json_t *build;
	int status;

	if (args_has(j->a, TEMPLATE_FROM_BOX) || args_has(j->a, TEMPLATE_FROM_SNAPSHOT))
		return template_run_box(j);
	if (pack_open(&j->pack, j->folder, &e) < 0) {
		if (e.sys != ENOENT || !template_shipped(j))
			return template_failed(j, &e);
	} else if (template_describe(j)) {
		return j->r->status;
	}
	build = template_begin(j);
	if (!build)
		return j->r->status;
	status = template_follow_or_print(j, build);
	json_decref(build);
	return status;
}

int template_build(struct api_client *r, const struct args *a)
{
	struct template_job j = { .r = r, .a = a, .folder = a->nwords > 1 ? a->words[1] : "." };
	int status = template_run(&j);

	json_decref(j.body);
	pack_fini(&j.pack);
	return status;
}
