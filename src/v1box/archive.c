/* archive.c - .../files/archive: packs a folder of a box, or unpacks an archive into one. tar and
 * zip run inside the box, as any other program: their output is the body of the answer, the body of
 * the request is their input. If such a program fails after the answer has started, the connection
 * is closed, so that the client does not take half an archive for a complete one. Unpacking is not
 * atomic: files that were unpacked before a failure remain. */
#include "v1box/file_request.h"
#include "v1box/files.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "fleet/exec_reader.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { SAID_MAX = 2000 };                            /* bytes of the error output that are kept */
enum { NO_TOOL = 41, NO_FOLDER = 43, NO_PATH = 44 }; /* statuses of the scripts below */

static const struct field archive_format_values[] = {
	FIELD_VALUE("tar"), FIELD_VALUE("tar.gz"), FIELD_VALUE("zip"), { 0 }
};
const struct field boxfiles_archive_query[] = {
	FILE_REQUEST_PATH_FIELD(0, "the folder (or, out of the box, a file); /home/user"),
	{ "format", FIELD_CHOICE, 0, 0, 0, "format of the archive (default tar)",
	  archive_format_values },
	{ 0 },
};

static const struct archive_format {
	const char *name, *type;
} formats[] = {
	{ "tar", "application/x-tar" },
	{ "tar.gz", "application/gzip" },
	{ "zip", "application/zip" },
};

struct archive {
	struct call *call;
	const struct archive_format *format;
	const char *path;
	struct exec_reader reader;
	struct exec_input_wait low;
	struct buf said; /* on stderr */
	uint64_t lines, next;
	int into; /* the box */
	int streaming;
};

/* $1 format, $2 path. The archive of a folder has its content, not the folder itself, so that
 * unpacking it elsewhere gives the same tree. */
static const char pack_script[] =
	"[ -e \"$2\" ] || [ -L \"$2\" ] || exit 44\n"
	"if [ -d \"$2\" ]; then cd \"$2\" && set -- \"$1\" .\n"
	"else d=${2%/*}; cd \"${d:-/}\" && set -- \"$1\" \"./${2##*/}\"; fi || exit 43\n"
	"case $1 in\n"
	"tar) exec tar -cf - \"$2\" ;;\n"
	"tar.gz) exec tar -czf - \"$2\" ;;\n"
	"esac\n"
	"command -v bsdtar >/dev/null && exec bsdtar --format zip -cf - \"$2\"\n"
	"command -v python3 >/dev/null && exec python3 -c '\n"
	"import os, stat, sys, zipfile\n"
	"z = zipfile.ZipFile(sys.stdout.buffer, \"w\", zipfile.ZIP_DEFLATED, strict_timestamps=False)\n"
	"def add(p):\n"
	"    n = os.fsencode(os.path.normpath(p)).decode(\"utf-8\", \"replace\")\n"
	"    m = os.lstat(p).st_mode\n"
	"    if stat.S_ISLNK(m):\n"
	"        i = zipfile.ZipInfo(n)\n"
	"        i.create_system = 3\n"
	"        i.external_attr = m << 16\n"
	"        z.writestr(i, os.fsencode(os.readlink(p)))\n"
	"    elif n != \".\" and (stat.S_ISREG(m) or stat.S_ISDIR(m)):\n"
	"        z.write(p, n)\n"
	"def oops(e): raise e\n"
	"add(sys.argv[1])\n"
	"for d, ds, fs in os.walk(sys.argv[1], onerror=oops):\n"
	"    for f in sorted(ds + fs): add(os.path.join(d, f))\n"
	"z.close()' \"$2\"\n"
	"command -v zip >/dev/null && exec zip -q -r -y - \"$2\"\n"
	"exit 41\n";

/* An existing folder keeps its mode and owner, even if the archive has others. */
static const char unpack_script[] =
	"mkdir -p \"$2\" && cd \"$2\" || exit 43\n"
	"case $1 in\n"
	"tar) exec tar -xpvf - --no-same-owner --no-overwrite-dir ;;\n"
	"tar.gz) exec tar -xpvzf - --no-same-owner --no-overwrite-dir ;;\n"
	"esac\n"
	"command -v python3 >/dev/null || command -v bsdtar >/dev/null || exit 41\n"
	"t=$(mktemp) || exit 1\n"
	"trap 'rm -f \"$t\"' EXIT\n"
	"cat >\"$t\" || exit 1\n"
	"command -v python3 >/dev/null || { bsdtar -xf \"$t\"; exit; }\n"
	"python3 -c '\n"
	"import os, stat, sys, zipfile\n"
	"try:\n"
	"    z = zipfile.ZipFile(sys.argv[1])\n"
	"    for i in z.infolist():\n"
	"        p = z.extract(i)\n"
	"        m = i.external_attr >> 16\n"
	"        if stat.S_ISLNK(m):\n"
	"            os.unlink(p)\n"
	"            os.symlink(z.read(i), os.fsencode(p))\n"
	"        elif m & 0o777:\n"
	"            os.chmod(p, m & 0o777)\n"
	"        print()\n"
	"except Exception as e:\n"
	"    sys.exit(str(e))' \"$t\"\n";

/* ---- the end ---- */

static void archive_dropped(struct call *c)
{
	struct archive *a = c->state;

	exec_input_cancel(&a->low);
	if (a->reader.run)
		exec_send_signal(a->reader.run, SIGKILL);
	exec_reader_close(&a->reader);
	buf_fini(&a->said);
}

static int ended_by(const json_t *record, enum cause cause)
{
	const char *name = json_string_value(json_object_get(record, "cause"));

	return name && !strcmp(name, cause_name(cause));
}

static int64_t status_of(const json_t *record)
{
	return ended_by(record, CAUSE_EXIT) ? json_integer_value(json_object_get(record, "status"))
					    : -1;
}

static void archive_refuse(struct archive *a, int64_t status, const json_t *record)
{
	const char *why = buf_str(&a->said);

	if (ended_by(record, CAUSE_DISK) || strstr(why, "No space left"))
		file_request_no_space(a->call);
	else if (status == NO_TOOL)
		call_error(a->call, 501, "no_tool", "no program in the box supports this format",
			   a->format->name, "tar and tar.gz always work");
	else if (status == NO_PATH)
		call_error(a->call, 404, "not_found", "there is no such file or folder", a->path,
			   "list the folder above: GET .../files/list?path=");
	else if (status == NO_FOLDER)
		call_error(a->call, 403, "denied", "the box's user has no access to it", why, NULL);
	else if (status < 0)
		call_error(a->call, 502, "ended", "the program was ended before it had finished",
			   json_string_value(json_object_get(record, "summary")), NULL);
	else
		call_error(a->call, 422, "archive",
			   a->into ? "it could not be unpacked" : "it could not be packed", why,
			   a->into ? "check that it has that ?format= and is complete" : NULL);
}

static void archive_begin(struct archive *a)
{
	struct http_req *r = a->call->req;

	if (a->streaming)
		return;
	a->streaming = 1;
	http_set(r, "Content-Disposition", "attachment; filename=\"files.%s\"", a->format->name);
	http_stream(r, 200, a->format->type, UINT64_MAX);
}

static void archive_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct archive *a = loop_owner(t, struct archive, reader);
	int64_t status = record ? status_of(record) : -1;

	(void)e;
	if (status != 0 && a->streaming) {
		http_abort(a->call->req);
	} else if (status != 0) {
		archive_refuse(a, status, record);
	} else if (a->into) {
		call_json(a->call, 200, json_pack("{s:I}", "entries", (json_int_t)a->lines));
	} else {
		archive_begin(a);
		http_end(a->call->req);
	}
}

/* ---- output ---- */

static void count_lines(struct archive *a, const char *bytes, size_t n)
{
	for (const char *end = bytes + n; (bytes = memchr(bytes, '\n', (size_t)(end - bytes)));
	     bytes++)
		a->lines++;
}

static void archive_output(struct exec_reader *t, unsigned stream, uint64_t offset,
			   const char *bytes, size_t n)
{
	struct archive *a = loop_owner(t, struct archive, reader);

	if (stream == 1) {
		size_t room = SAID_MAX - a->said.len;

		buf_add(&a->said, bytes, n < room ? n : room);
	} else if (a->into) {
		count_lines(a, bytes, n);
	} else if (offset !=
		   a->next) { /* a gap: impossible, because init keeps output that was not read */
		archive_begin(a);
		http_abort(a->call->req);
	} else {
		a->next += n;
		archive_begin(a);
		if (http_write(a->call->req, bytes, n))
			exec_reader_stop(t, 1);
	}
}

static void archive_drained(struct http_req *r)
{
	struct call *c = r->user;
	struct archive *a = c->state;

	exec_reader_stop(&a->reader, 0);
}

/* ---- input ---- */

static void archive_low(struct exec_input_wait *w, int closed)
{
	(void)closed; /* further input is discarded; the exit of the program is the answer */
	http_resume(loop_owner(w, struct archive, low)->call->req);
}

static void bytes_came(struct http_req *r, const char *bytes, size_t n)
{
	struct call *c = r->user;
	struct archive *a = c->state;

	if (a->reader.run && exec_stdin(a->reader.run, bytes, n)) {
		http_pause(r);
		exec_input_await(a->reader.run, &a->low);
	}
}

static void body_ended(struct http_req *r)
{
	struct call *c = r->user;
	struct archive *a = c->state;

	if (a->reader.run)
		exec_input_close(a->reader.run);
}

/* ---- start ---- */

/* The client has closed its side. It counts as disconnected: nothing may be written for a long
 * time, so a failing write would show that too late. */
static void archive_left(struct http_req *r)
{
	http_abort(r);
}

static const struct archive_format *format_of(struct call *c)
{
	const char *name = call_query(c, "format");

	for (unsigned i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(name ? name : "tar", formats[i].name))
			return &formats[i];
	call_error(c, 400, "invalid", "?format= is tar, tar.gz or zip", name, NULL);
	return NULL;
}

/* Programs cannot run in a stopped box. A caller that may change boxes starts it again; a viewer
 * may not. */
static int is_awake(struct call *c, struct box *b)
{
	if (b->state == BOX_STOPPED && c->who.role < ROLE_EDITOR) {
		call_error(c, 409, "stopped", "the box is stopped, and packing would start it",
			   "the key's role is viewer",
			   "read its files one by one, or ask an editor");
		return 0;
	}
	box_wake(b);
	return 1;
}

static int archive_start(struct archive *a, struct box *b)
{
	/* The variables of the box must not change the behaviour of these programs. */
	static const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin",
					   "LC_ALL=C.UTF-8",
					   "TAR_OPTIONS=",
					   "GZIP=",
					   "PYTHONPATH=",
					   NULL };
	static const struct exec_reader_events on = { .output = archive_output,
						      .over = archive_over };
	const char *argv[] = {
		"/bin/sh", "-c", a->into ? unpack_script : pack_script, "archive", a->format->name,
		a->path,   NULL
	};
	struct exec_spec want = {
		.argv = argv, .env = env, .kind = STORE_RUN_EXEC, .stdin_open = a->into, .helper = 1
	};
	struct exec *r;
	struct err e;

	exec_reader_init(&a->reader, &a->call->api->fleet, &on);
	if (exec_launch(b, &want, &a->reader, &r, &e) == 0)
		return 1;
	call_fail(a->call, &e);
	return 0;
}

static struct archive *archive_new(struct call *c, int into)
{
	const char *path = call_query(c, "path");
	struct archive *a = call_alloc(c, sizeof(*a));
	struct box *b;

	*a = (struct archive){ .call = c, .into = into, .low.low = archive_low };
	a->format = format_of(c);
	a->path = a->format ? file_request_tree(c, path ? path : BOX_HOME) : NULL;
	b = a->path ? call_box(c, 0) : NULL;
	if (!b)
		return NULL;
	if (!strcmp(c->req->method, "HEAD")) {
		archive_begin(a);
		http_end(c->req);
		return NULL;
	}
	if (!is_awake(c, b) || !quota_helper(c) || !archive_start(a, b))
		return NULL;
	c->state = a;
	c->drop = archive_dropped;
	c->req->on_eof = archive_left;
	return a;
}

void boxfiles_pack(struct call *c)
{
	if (archive_new(c, 0))
		c->req->on_drain = archive_drained;
}

void boxfiles_unpack(struct call *c)
{
	if (!archive_new(c, 1))
		return;
	c->req->on_body = bytes_came;
	c->req->on_body_end = body_ended;
	http_want_body(c->req, HTTP_BODY_STREAM, c->api->conf.upload_max);
	http_body_rate(c->req, HTTP_BODY_RATE);
}
