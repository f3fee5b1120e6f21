/* swerex_files.c - files of /swerex: read, write, and upload by form. */
#include "swerex/swerex.h"
#include "base/cleanup.h"
#include "http/multipart.h"
#include "tools/file_ops.h"
#include "swerex/swerex_call.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { UPLOAD_MAX = 32 << 20 /* it is held in memory */ };

/* ---- files ---- */

/* The Python exception class of a file error. */
static void raise_file(struct tool_job *j, const struct tool_result *r)
{
	static const char *const classes[][2] = {
		{ "not_found", PYTHON "FileNotFoundError" },
		{ "is_a_folder", PYTHON "IsADirectoryError" },
		{ "not_a_folder", PYTHON "NotADirectoryError" },
		{ "denied", PYTHON "PermissionError" },
		{ "exists", PYTHON "FileExistsError" },
		{ "not_a_file", PYTHON "OSError" },
		{ "no_space", PYTHON "OSError" },
		{ "too_large", PYTHON "OSError" },
		{ "invalid", PYTHON "ValueError" },
		{ "no_text", PYTHON "ValueError" },
		{ "no_codec", PYTHON "LookupError" },
	};
	const char *code = json_string_value(
			   json_object_get(json_object_get(r->data, "error"), "code")),
		   *class = OURS "SwerexException";

	for (unsigned i = 0; code && i < ARRAY_LEN(classes); i++)
		if (!strcmp(code, classes[i][0]))
			class = classes[i][1];
	swerex_raise(j->call, class, "%s", buf_str(&r->text));
}

static void has_content(struct file_ops *x)
{
	struct tool_job *j = x->job;
	const char *codec = tool_text(j, "encoding", "utf-8");
	auto_buf struct buf text = { 0 };
	char why[80];
	size_t at;

	file_ops_close(x);
	if (swerex_decode(&x->bytes, (enum swerex_codec)swerex_codec(codec),
			  (enum swerex_errors)swerex_errors(tool_text(j, "errors", "strict")),
			  &text, &at) < 0) {
		snprintf(why, sizeof(why), "byte 0x%02x at %zu", (unsigned char)x->bytes.p[at], at);
		tool_fail(j, "no_text", "the file is not in this encoding", why, NULL);
		return;
	}
	tool_done(j, json_pack("{s:o}", "content", json_stringn(buf_str(&text), text.len)), "", 0);
}

static void get_content(struct file_ops *x)
{
	file_ops_get(x, x->file_req.path, has_content);
}

static void read_it(struct tool_job *j)
{
	struct file_ops *x = call_alloc(j->call, sizeof(*x));

	if (swerex_codec(tool_text(j, "encoding", "utf-8")) < 0) {
		tool_fail(j, "no_codec", "unknown encoding", tool_text(j, "encoding", ""), NULL);
		return;
	}
	if (swerex_errors(tool_text(j, "errors", "strict")) < 0) {
		tool_fail(j, "no_codec", "unknown error handler name", tool_text(j, "errors", ""),
			  NULL);
		return;
	}
	*x = (struct file_ops){ .file_req.path =
					file_request_path(j->call, tool_text(j, "path", "")) };
	if (x->file_req.path)
		(void)!file_ops_open(x, j, get_content);
}

static void was_read(struct tool_job *j, const struct tool_result *r)
{
	if (r->failed)
		raise_file(j, r);
	else
		swerex_answer(j->call, 200,
			      json_pack("{s:O}", "content", json_object_get(r->data, "content")));
}

static void was_written(struct tool_job *j, const struct tool_result *r)
{
	if (r->failed)
		raise_file(j, r);
	else
		swerex_answer(j->call, 200, json_object());
}

static const struct tool read_row = { .name = "read_file",
				      .fields = swerex_any,
				      .run = read_it,
				      .marks = TOOL_READS },
			 write_row = { .name = "write_file",
				       .fields = swerex_any,
				       .run = tool_write };
static const struct tool_surface read_on = { NULL, was_read }, write_on = { NULL, was_written };

const struct field swerex_read_fields[] = {
	FILE_REQUEST_PATH_FIELD(1, "what is relative is below /home/user"),
	{ "encoding", FIELD_TEXT, 0, 0, 32, "text encoding: utf-8, ascii, latin-1", NULL },
	{ "errors", FIELD_TEXT, 0, 0, 32,
	  "handling of encoding errors: strict, replace, ignore, backslashreplace", NULL },
	{ 0 },
};
const struct field swerex_write_fields[] = {
	FILE_REQUEST_PATH_FIELD(1, "what is relative is below /home/user"),
	{ "content", FIELD_TEXT, 1, 0, 0, "the complete content of the file", NULL },
	{ 0 },
};

void swerex_read_file(struct call *c)
{
	swerex_begin(c, &read_row, &read_on);
}

void swerex_write_file(struct call *c)
{
	swerex_begin(c, &write_row, &write_on);
}

/* ---- upload ---- */

/* The buffer for a part; NULL: an unknown part, which is ignored. */
static struct buf *part_of(struct swerex_form *f, const char *name)
{
	if (name && !strcmp(name, "file")) {
		f->has_file = 1;
		return &f->file;
	}
	if (name && !strcmp(name, "target_path"))
		return &f->path;
	return name && !strcmp(name, "unzip") ? &f->unzip : NULL;
}

/* The form is complete; its size was checked before. */
static int read_form(const struct http_req *r, struct swerex_form *f, struct err *e)
{
	const char *type = http_header(r, "content-type");
	struct multipart_view in = { buf_str(&r->body), r->body.len }, bytes;
	struct multipart m = { 0 };
	enum multipart_event what = MULTIPART_BAD;
	struct buf *to = NULL;

	if (multipart_init(&m, type ? type : "", e) < 0)
		return -1;
	while ((what = multipart_next(&m, &in, &bytes, e)) != MULTIPART_MORE &&
	       what != MULTIPART_BAD)
		if (what == MULTIPART_PART)
			to = part_of(f, multipart_name(&m));
		else if (what == MULTIPART_DATA && to)
			buf_add(to, bytes.p, bytes.n);
	if (what == MULTIPART_MORE && !multipart_ended(&m)) {
		err_set(e, ERR_INVALID, "the form has no end");
		what = MULTIPART_BAD;
	}
	multipart_fini(&m);
	return what == MULTIPART_BAD ? -1 : 0;
}

static int is_yes(const struct buf *b)
{
	const char *v = buf_str(b);

	return !strcasecmp(v, "true") || !strcmp(v, "1") || !strcasecmp(v, "on") ||
	       !strcasecmp(v, "yes");
}

static void swerex_files_unpack(struct file_ops *x)
{
	struct tool_job *j = x->job;
	auto_buf struct buf script = { 0 };

	file_ops_close(x);
	swerex_script_unzip(&script, x->file_req.path);
	swerex_run_script(j, &script, file_request_path(j->call, tool_text(j, "path", "")),
			  CONTROL_MS);
}

static void has_put(struct file_ops *x)
{
	file_ops_close(x);
	call_audit(x->job->call, "file.write", x->file_req.path, "ok");
	tool_done(x->job, NULL, "", 0);
}

static void put_content(struct file_ops *x)
{
	struct swerex *swerex = x->job->call->surface;

	file_ops_stream(x, x->file_req.path, buf_str(&swerex->form->file), swerex->form->file.len,
			tool_flag(x->job, "unzip") ? swerex_files_unpack : has_put);
}

/* An archive is written to a unique temporary name first. */
static void upload_it(struct tool_job *j)
{
	struct file_ops *x = call_alloc(j->call, sizeof(*x));
	const char *path = file_request_path(j->call, tool_text(j, "path", ""));
	char aside[64];

	if (!path)
		return;
	snprintf(aside, sizeof(aside), "/tmp/.atoll-rex-%s.zip", j->call->id);
	*x = (struct file_ops){ .file_req.path = tool_flag(j, "unzip")
							 ? file_request_path(j->call, aside)
							 : path };
	(void)!file_ops_open(x, j, put_content);
}

static void swerex_files_uploaded(struct tool_job *j, const struct tool_result *r)
{
	size_t before;

	if (!json_object_get(r->data, "exec")) {
		was_written(j, r);
		return;
	}
	if (swerex_script_failed(j, r))
		return;
	if (swerex_marked(swerex_said(r, "stderr"), &before))
		swerex_raise(j->call, OURS "SwerexException",
			     "there is no unzip, python3 or bsdtar in the box");
	else if (r->failed)
		swerex_raise(j->call, "zipfile.BadZipFile", "the archive cannot be unpacked: %s%s",
			     swerex_said(r, "stdout"), swerex_said(r, "stderr"));
	else
		swerex_answer(j->call, 200, json_object());
}

static const struct tool upload_row = { .name = "upload", .fields = swerex_any, .run = upload_it };
static const struct tool_surface upload_on = { NULL, swerex_files_uploaded };

static void form_arrived(struct http_req *r)
{
	struct call *c = r->user;
	struct swerex *x = c->surface;
	struct err e;

	if (read_form(r, x->form, &e) < 0) {
		swerex_invalid(c, e.msg);
		return;
	}
	if (!x->form->has_file || !x->form->path.len) {
		swerex_invalid(c, "file or target_path is missing");
		return;
	}
	json_decref(c->body);
	c->body = json_pack("{s:s#, s:b}", "path", x->form->path.p, (int)x->form->path.len, "unzip",
			    is_yes(&x->form->unzip));
	if (!c->body || strlen(x->form->path.p) != x->form->path.len)
		swerex_invalid(c, "target_path: must be UTF-8 without NUL");
	else
		swerex_begin(c, &upload_row, &upload_on);
}

void swerex_upload(struct call *c)
{
	uint64_t most = c->api->conf.upload_max;
	struct swerex_form *f;

	if (c->surface) { /* this server has adopted a box of another server */
		swerex_begin(c, &upload_row, &upload_on);
		return;
	}
	f = call_alloc(c, sizeof(*f));
	*f = (struct swerex_form){ 0 };
	swerex_new(c, &upload_row, &upload_on)->form = f;
	http_want_body(c->req, HTTP_BODY_WHOLE, most && most < UPLOAD_MAX ? most : UPLOAD_MAX);
	c->req->on_body_end = form_arrived;
}
