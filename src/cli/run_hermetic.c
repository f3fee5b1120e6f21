/* run_hermetic.c - see run_hermetic.h. */
#include "cli/run_hermetic.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/exec_follow.h"
#include "cli/package_request.h"
#include "cli/run_remote.h"
#include "lang/package.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STDIN_MOST = 4 << 20 };

static int hermetic_read(int fd, size_t most, struct buf *out)
{
	ssize_t n = 0;

	while (out->len <= most && (n = read(fd, buf_space(out, 65536), 65536)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		buf_grew(out, (size_t)n);
	}
	return 0;
}

static int hermetic_add_files(struct api_client *r, const struct run_inputs *in, json_t *body)
{
	json_t *files = json_object();

	json_object_set_new(body, "files", files);
	for (unsigned i = 0; i < in->nfiles; i++) {
		auto_fd int fd =
			open(in->files[i].from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		auto_buf struct buf bytes = { 0 }, coded = { 0 };

		if (fd < 0 || hermetic_read(fd, RUN_INPUTS_FILE_MAX, &bytes) < 0)
			return api_client_usage(r, "cannot read %.150s: %s", in->files[i].from,
						strerror(errno));
		base64_encode(&coded, bytes.p, bytes.len);
		json_object_set_new(files, in->files[i].to,
				    json_pack("{s:s}", "base64", buf_str(&coded)));
	}
	return 0;
}

static int hermetic_add_stdin(struct api_client *r, const struct run_inputs *in, json_t *body)
{
	auto_buf struct buf bytes = { 0 };
	json_t *text;

	if (in->from_stdin || isatty(0))
		return 0;
	if (hermetic_read(0, STDIN_MOST, &bytes) < 0)
		return api_client_usage(r, "cannot read stdin: %s", strerror(errno));
	text = bytes.len <= STDIN_MOST ? json_stringn(buf_str(&bytes), bytes.len) : NULL;
	if (!text)
		return api_client_usage(
			r,
			"--hermetic: stdin is not text, or has more than 4 MiB; name a file instead");
	json_object_set_new(body, "stdin", text);
	return 0;
}

static void hermetic_add_limit(json_t *limits, const char *name, uint64_t n, uint64_t otherwise)
{
	if (n != otherwise)
		json_object_set_new(limits, name, json_integer((json_int_t)n));
}

static void hermetic_add_box(const struct options *o, const struct args *a,
			     const struct run_inputs *in, json_t *body)
{
	const struct wire_limits *l = &o->limits, d = box_default_limits();
	int m = in->program.lang ? package_manager_of(in->program.lang->name) : PM_PIP;
	json_t *limits = json_object(),
	       *packages = package_request_json(
		       a, OPT_PACKAGE,
		       package_manager_name(m < 0 ? PM_PIP : (enum package_manager)m));

	hermetic_add_limit(limits, "mem", l->mem_bytes, d.mem_bytes);
	hermetic_add_limit(limits, "disk", l->disk_bytes, d.disk_bytes);
	hermetic_add_limit(limits, "files", l->disk_files, d.disk_files);
	hermetic_add_limit(limits, "cpu_ms", l->cpu_ms, d.cpu_ms);
	hermetic_add_limit(limits, "cpu_milli", l->cpu_milli, d.cpu_milli);
	hermetic_add_limit(limits, "pids", l->pids, d.pids);
	json_object_set_new(body, "limits", limits);
	if (o->wall_ms)
		json_object_set_new(body, "timeout_ms", json_integer((json_int_t)o->wall_ms));
	if (packages)
		json_object_set_new(body, "packages", packages);
	if (o->built)
		json_object_set_new(body, "template", json_string(o->built));
	if (o->compiler)
		json_object_set_new(body, "compiler", json_string(o->compiler));
	if (o->root)
		json_object_set_new(body, "user", json_string("root"));
	if (o->isolation)
		json_object_set_new(body, "isolation", json_string(o->isolation));
	if (o->trust)
		json_object_set_new(body, "trust", json_string(o->trust));
}

static json_t *hermetic_words(const char *const *words)
{
	json_t *all = json_array();

	for (; words && *words; words++)
		json_array_append_new(all, json_string(*words));
	return all;
}

static int hermetic_add_program(struct api_client *r, const struct run_inputs *in,
				const char *const *command, json_t *body)
{
	const struct program *p = &in->program;
	char language[2 * LANG_NAME];

	if (command) {
		json_object_set_new(body, "command", hermetic_words(command));
		return 0;
	}
	if (!p->lang)
		return api_client_usage(
			r, "--hermetic: the language of the file is not known; give it with -t");
	snprintf(language, sizeof(language), "%s%s%s", p->lang->name, p->pin && *p->pin ? "@" : "",
		 p->pin ? p->pin : "");
	json_object_set_new(body, "language", json_string(language));
	json_object_set_new(body, "args", hermetic_words((const char *const *)in->args));
	if (!in->from_stdin)
		json_object_set_new(body, "entry", json_string(p->source));
	else if (json_object_set_new(body, "code", json_stringn(buf_str(&in->code), in->code.len)) <
		 0)
		return api_client_usage(r, "--hermetic: the code is not UTF-8");
	return 0;
}

static void hermetic_print_stream(const json_t *record, const char *name, int fd)
{
	const json_t *text = json_object_get(record, name);
	auto_buf struct buf bytes = { 0 };
	char encoding[24];

	snprintf(encoding, sizeof(encoding), "%s_encoding", name);
	if (json_object_get(record, encoding))
		(void)!base64_decode(&bytes, json_string_value(text), json_string_length(text));
	else if (json_is_string(text))
		buf_add(&bytes, json_string_value(text), json_string_length(text));
	(void)!api_client_write(fd, bytes.p, bytes.len);
}

static int hermetic_report(const struct cli *cli, const json_t *record)
{
	const json_t *reused = json_object_get(record, "reused");
	char age[UNITS_TEXT];

	if (cli->json) {
		api_client_print(record);
		return (int)api_client_int(record, "status", STATUS_OURS);
	}
	hermetic_print_stream(record, "stdout", 1);
	hermetic_print_stream(record, "stderr", 2);
	if (reused && !cli->quiet)
		fprintf(stderr, "atoll: result of run %s, %s old (receipt %lld)\n",
			api_client_text(reused, "run"),
			units_time(age, (uint64_t)api_client_int(reused, "age_ms", 0) * 1000),
			(long long)api_client_int(reused, "receipt", 0));
	return exec_follow_report(cli, record);
}

static int hermetic_unsupported(struct api_client *r, const struct options *opt)
{
	if (!opt->workdir && !opt->out && !opt->report && !opt->interactive)
		return 0;
	api_client_usage(
		r,
		"--hermetic cannot be combined with --workdir, --out, --report and --interactive");
	cli_error_hint(&r->error, "files", "name them as arguments");
	return r->status;
}

int run_hermetic(const struct cli *cli, const struct args *a, const struct options *opt,
		 const struct run_inputs *in, const char *const *command)
{
	json_t *body = json_pack("{s:b, s:b, s:i}", "hermetic", 1, "reuse", args_has(a, OPT_REUSE),
				 "max_output", 16 << 20),
	       *record = NULL;
	struct api_client r;
	int status = api_client_open(&r, cli);

	r.runs = 1;
	if (!status &&
	    (hermetic_unsupported(&r, opt) || hermetic_add_files(&r, in, body) ||
	     hermetic_add_program(&r, in, command, body) || hermetic_add_stdin(&r, in, body)))
		status = r.status;
	if (!status) {
		hermetic_add_box(opt, a, in, body);
		json_object_set_new(body, "env", run_remote_env(opt));
		record = api_client_json(&r, "POST", "/v1/run", json_incref(body));
		status = record ? hermetic_report(cli, record) : r.status;
	}
	if (!record && r.error.what[0])
		cli_error_print(&r.error, cli->json, status);
	json_decref(record);
	json_decref(body);
	api_client_close(&r);
	return status;
}
