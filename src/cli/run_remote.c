/* run_remote.c - see run_remote.h.
 *
 *   POST /v1/boxes --> files, folder --> [compiler] --> the program --> [changed files] --> DELETE
 *
 * The box is deleted when the program has ended, however it did. If this process is killed, the box
 * ends with its lifetime. */
#include "cli/run_remote.h"
#include "cli/build_follow.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/below.h"
#include "cli/exec_follow.h"
#include "cli/attach_io.h"
#include "cli/package_request.h"
#include "cli/box_path.h"
#include "cli/api_client.h"
#include "lang/package.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MARGIN_MS = 60000 };   /* of the box's lifetime, beyond the program's time */
#define OUT_MOST (1ull << 30) /* bytes that --out fetches if the daemon sends no size of the disk */

int run_remote_wanted(const struct cli *cli)
{
	const char *host = getenv("ATOLL_HOST");

	return cli->host || (host && *host);
}

static int remote_fail_path(struct api_client *r, const char *what, const char *path)
{
	char shown[SHOWN];

	cli_error_what(&r->error, "failed", "%s %s: %s", what, cli_error_shown(path, shown),
		       strerror(errno));
	return r->status = STATUS_OURS;
}

/* ---- the box ---- */

static void put_limit(json_t *doc, const char *key, uint64_t n, uint64_t otherwise)
{
	if (n != otherwise)
		json_object_set_new(doc, key, json_integer((json_int_t)n));
}

static json_t *remote_describe_box(const struct options *o, const struct args *a,
				   const struct run_inputs *in)
{
	const struct wire_limits *l = &o->limits, d = box_default_limits();
	const char *language = in->program.lang ? in->program.lang->name : NULL;
	int m = language ? package_manager_of(language) : PM_PIP;
	json_t *limits = json_object(),
	       *doc = json_pack("{s:o, s:s}", "limits", limits, "on_timeout", "kill"),
	       *packages = package_request_json(
		       a, OPT_PACKAGE,
		       package_manager_name(m < 0 ? PM_PIP : (enum package_manager)m));

	put_limit(limits, "mem", l->mem_bytes, d.mem_bytes);
	put_limit(limits, "disk", l->disk_bytes, d.disk_bytes);
	put_limit(limits, "files", l->disk_files, d.disk_files);
	put_limit(limits, "cpu_ms", l->cpu_ms, d.cpu_ms);
	put_limit(limits, "cpu_milli", l->cpu_milli, d.cpu_milli);
	put_limit(limits, "pids", l->pids, d.pids);
	if (o->wall_ms)
		json_object_set_new(doc, "lifetime_ms",
				    json_integer((json_int_t)o->wall_ms + MARGIN_MS));
	if (o->create_flags & WIRE_CREATE_COLD)
		json_object_set_new(doc, "cold", json_true());
	if (packages)
		json_object_set_new(doc, "packages", packages);
	if (o->built)
		json_object_set_new(doc, "template", json_string(o->built));
	if (o->isolation)
		json_object_set_new(doc, "isolation", json_string(o->isolation));
	if (o->trust)
		json_object_set_new(doc, "trust", json_string(o->trust));
	return doc;
}

/* ---- files into it ---- */

static int send_bytes(struct api_client *r, struct api_client_bytes *x)
{
	int status = api_client_bytes(r, x);

	json_decref(x->answer);
	return status;
}

static int send_folder(struct api_client *r, const char *box, const char *folder)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/files/archive?path=.", box);
	struct api_client_bytes x = {
		.method = "PUT", .path = path, .type = "application/x-tar", .to = -1
	};
	int how = 0, status;
	pid_t pid = box_path_start_tar(folder, &x.from);

	if (pid < 0)
		return remote_fail_path(r, "start tar for", folder);
	status = send_bytes(r, &x);
	close(x.from);
	waitpid(pid, &how, 0);
	if (!status && how != 0) {
		cli_error_what(&r->error, "failed", "tar could not read all of %.200s", folder);
		status = r->status = STATUS_OURS;
	}
	return status;
}

static int send_file(struct api_client *r, const char *box, const char *to, int from,
		     const struct buf *bytes, unsigned mode)
{
	auto_free char *begin = api_client_path("/v1/boxes/%s/files?path=%s", box, to);
	auto_buf struct buf url = { 0 };
	struct api_client_bytes x = {
		.method = "PUT", .type = "application/octet-stream", .from = from, .to = -1
	};

	buf_printf(&url, "%s&mode=%04o", begin, mode & 0777);
	x.path = buf_str(&url);
	if (bytes) {
		x.body = buf_str((struct buf *)bytes);
		x.len = bytes->len;
	}
	return send_bytes(r, &x);
}

static int send_all(struct api_client *r, const char *box, const struct run_inputs *in,
		    const struct options *o)
{
	const struct lang_pair *support = in->program.lang ? in->program.lang->support : NULL;

	if (o->workdir && send_folder(r, box, o->workdir))
		return r->status;
	for (unsigned i = 0; i < in->nfiles; i++) {
		const struct run_inputs_file *f = &in->files[i];
		auto_fd int fd = open(f->from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		int runs = !in->program.lang && in->program.source &&
			   !strcmp(f->to, in->program.source);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			return remote_fail_path(r, "open", f->from);
		if (send_file(r, box, f->to, fd, NULL,
			      (st.st_mode & 0777) | 0600 | (runs ? 0100 : 0)))
			return r->status;
	}
	if (in->from_stdin && send_file(r, box, in->program.source, -1, &in->code, 0700))
		return r->status;
	for (; support && support->key; support++) {
		auto_buf struct buf text = { 0 };

		buf_puts(&text, support->value);
		if (send_file(r, box, support->key, -1, &text, 0600))
			return r->status;
	}
	return 0;
}

/* ---- programs in it ---- */

/* Variables that the box does not set by itself. */
static json_t *env_of(const struct options *o, int terminal)
{
	json_t *env = json_object();

	for (unsigned i = 0; o->env[i]; i++) {
		int usual = !terminal && !strncmp(o->env[i], "TERM=", 5);

		for (unsigned k = 0; box_default_env[k]; k++)
			usual |= !strcmp(o->env[i], box_default_env[k]);
		if (!usual)
			attach_env(env, o->env[i]);
	}
	return env;
}

json_t *run_remote_env(const struct options *o)
{
	return env_of(o, 0);
}

static json_t *remote_describe_run(struct api_client *r, const struct options *o,
				   const char *const *argv, uint32_t ms, int terminal)
{
	json_t *words = json_array(), *doc;

	for (; *argv; argv++)
		if (json_array_append_new(words, json_string(*argv)) < 0) {
			json_decref(words);
			api_client_usage(r, "an argument is not UTF-8; put it into a file");
			return NULL;
		}
	doc = json_pack("{s:o, s:o}", "command", words, "env", env_of(o, terminal));
	if (ms)
		json_object_set_new(doc, "timeout_ms", json_integer((json_int_t)ms));
	if (o->root)
		json_object_set_new(doc, "user", json_string("root"));
	return doc;
}

static void print_stream(const json_t *record, const char *name, int fd)
{
	const json_t *text = json_object_get(record, name);

	if (json_is_string(text))
		(void)!api_client_write(fd, json_string_value(text), json_string_length(text));
}

/* *out_over: the step failed, and its status is that of the run. */
static int compile_there(struct api_client *r, const char *box, const struct options *o,
			 const struct run_inputs *in, const char *const *compiler, int *out_over)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/execs", box);
	json_t *body = remote_describe_run(r, o, compiler, in->program.lang->times.compile, 0),
	       *record;
	int status;

	record = body ? api_client_json(r, "POST", path, body) : NULL;
	if (!record)
		return r->status;
	status = (int)api_client_int(record, "status", STATUS_OURS);
	*out_over = status != 0;
	if (*out_over && r->cli->json) {
		api_client_print(record);
	} else {
		print_stream(record, "stdout", 1);
		print_stream(record, "stderr", 2);
		if (*out_over)
			status = exec_follow_report(r->cli, record);
	}
	json_decref(record);
	return status;
}

static int run_there(struct api_client *r, const char *box, const struct options *o,
		     const struct run_inputs *in, const char *const *argv)
{
	int terminal = exec_follow_has_terminal() && !o->no_tty && !r->cli->json && !in->from_stdin,
	    input = !in->from_stdin && (terminal || !isatty(0) || o->interactive);
	json_t *body = remote_describe_run(r, o, argv, o->wall_ms, terminal);

	return body ? attach_run(r, box, body, terminal, 1, input) : r->status;
}

/* ---- files out of it ---- */

static json_t *changes_of(struct api_client *r, const char *box)
{
	return api_client_get(r, "/v1/boxes/%s/changes?limit=10000", box);
}

/* The same as a hash by path: the list is long and is searched once for each item of another
 * list. */
static json_t *index_changes(const json_t *doc)
{
	json_t *all = json_object(), *v;
	size_t i;

	json_array_foreach(json_object_get(doc, "items"), i, v)
		json_object_set(all, api_client_text(v, "path"), v);
	return all;
}

/* max: the size of the box's disk. A file with holes may be larger than that, and the program
 * chooses names and sizes. */
static int fetch_one(struct api_client *r, const char *box, int folder, const char *path,
		     uint64_t max, uint64_t *bytes)
{
	auto_free char *to = strdup(path + strlen(BOX_HOME) + 1),
		       *url = api_client_path("/v1/boxes/%s/files?path=%s", box, path);
	struct api_client_bytes x = { .method = "GET", .path = url, .from = -1 };
	char shown[SHOWN], size[UNITS_TEXT];
	auto_fd int fd = -1;
	unsigned mode = 0644;
	uint64_t left;
	int status;

	if (!to)
		abort();
	if (box_path_look(r, box, path, &mode) < 0)
		return r->status;
	fd = below_tidy(to) < 0 ? -1 : below_create(folder, to, mode | 0600);
	if (fd < 0)
		return remote_fail_path(r, "--out: create", to);
	left = max - *bytes;
	x.to = fd;
	x.most = &left;
	status = api_client_bytes(r, &x);
	*bytes += x.written;
	if (status && r->http < 400 && !strcmp(r->error.code, "limit"))
		cli_error_what(&r->error, "limit",
			       "--out: %s: files of more than %s, the size of the box's disk",
			       cli_error_shown(to, shown), units_size(size, max));
	return status;
}

static int fetch_all(struct api_client *r, const json_t *box, const struct options *o, int folder,
		     const json_t *before)
{
	const char *id = api_client_text(box, "id");
	json_t *after = changes_of(r, id), *had = index_changes(before), *v;
	int64_t disk = api_client_int(json_object_get(box, "limits"), "disk", 0);
	uint64_t files = 0, bytes = 0, max = disk > 0 ? (uint64_t)disk : OUT_MOST;
	char size[UNITS_TEXT];
	int status = after ? 0 : r->status;
	unsigned skipped = 0;
	size_t i;

	json_array_foreach(json_object_get(after, "items"), i, v)
	{
		const char *path = api_client_text(v, "path");
		const json_t *old = json_object_get(had, path);

		if (status || !strcmp(api_client_text(v, "kind"), "deleted") ||
		    strncmp(path, BOX_HOME "/", strlen(BOX_HOME) + 1) ||
		    (old && api_client_int(old, "size", -1) == api_client_int(v, "size", -2) &&
		     !strcmp(api_client_text(old, "mtime"), api_client_text(v, "mtime"))))
			continue;
		if (strcmp(api_client_text(v, "type"), "file") != 0) {
			skipped++;
			continue;
		}
		status = fetch_one(r, id, folder, path, max, &bytes);
		files += !status;
	}
	if (!status && json_is_true(json_object_get(after, "truncated"))) {
		cli_error_what(&r->error, "limit",
			       "--out: more than 10000 files have changed; some are missing");
		status = r->status = STATUS_OURS;
	}
	if (!status && !r->cli->quiet && !r->cli->json)
		fprintf(stderr, "atoll: %llu files, %s, in %s\n", (unsigned long long)files,
			units_size(size, bytes), o->out);
	if (skipped && !r->cli->quiet)
		fprintf(stderr, "atoll: %u left out, no regular files\n", skipped);
	json_decref(had);
	json_decref(after);
	return status;
}

/* ---- all of it ---- */

static int in_box(struct api_client *r, const json_t *made, const struct options *o,
		  const struct run_inputs *in, const char *const *argv, const char *const *compiler,
		  int folder)
{
	const char *box = api_client_text(made, "id");
	int status = send_all(r, box, in, o), over = 0;
	json_t *before = NULL;

	if (!status && compiler)
		status = compile_there(r, box, o, in, compiler, &over);
	if (status || over)
		return status;
	if (o->out && !(before = changes_of(r, box)))
		return r->status;
	status = run_there(r, box, o, in, argv);
	/* Also of a program that failed; not if it is unknown how it ended. */
	if (o->out && !r->error.what[0]) {
		int fetched = fetch_all(r, made, o, folder, before);

		status = fetched ? fetched : status;
	}
	json_decref(before);
	return status;
}

int run_remote(const struct cli *cli, const struct args *a, const struct options *opt,
	       const struct run_inputs *in, const char *const *argv, const char *const *compiler)
{
	auto_free char *path = NULL;
	struct api_client r;
	auto_fd int folder = -1;
	json_t *box = NULL;
	int status = api_client_open(&r, cli);

	r.runs = 1;
	if (!status && opt->report) {
		api_client_usage(&r, "--report is for runs on this machine only");
		cli_error_hint(&r.error, "instead", "--json prints the daemon's record");
		status = r.status;
	}
	if (!status && opt->out) {
		if (mkdir(opt->out, 0777) == 0 || errno == EEXIST)
			folder = open(opt->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		status = folder < 0 ? remote_fail_path(&r, "--out: open the folder", opt->out) : 0;
	}
	if (!status) {
		box = api_client_json(&r, "POST", "/v1/boxes", remote_describe_box(opt, a, in));
		if (!box && build_follow_first(&r, opt->built) == 0)
			box = api_client_json(&r, "POST", "/v1/boxes",
					      remote_describe_box(opt, a, in));
		status = box ? 0 : r.status;
	}
	if (!status) {
		status = in_box(&r, box, opt, in, argv, compiler, folder);
		path = api_client_path("/v1/boxes/%s", api_client_text(box, "id"));
	}
	if (status && r.error.what[0])
		cli_error_print(&r.error, cli->json, status);
	if (path)
		json_decref(api_client_json(&r, "DELETE", path, NULL));
	json_decref(box);
	api_client_close(&r);
	return status;
}
