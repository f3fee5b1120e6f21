/* template_file.c - `atoll template export` and `import`: a template as one file, for a machine without a connection.
 * The file is a line of JSON with the definition, then a tar archive of the root file system. */
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/units.h"
#include "commands/template_build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPLATE_HEADER = 2 << 20, TEMPLATE_PIECE = 64 << 10 };

static int template_file_failed(struct api_client *r, const char *what, const char *path)
{
	int status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_FAILED;
	char shown[SHOWN];

	cli_error_what(&r->error, status == STATUS_FAILED ? "failed" : "not_found", "%s %s: %s",
		       what, cli_error_shown(path, shown), strerror(errno));
	return r->status = status;
}

/* ---- export ---- */

/* The file appears completely, or not at all. */
static int template_export_to(struct api_client *r, const char *url, const char *path)
{
	struct api_client_bytes x = { .method = "GET", .path = url, .from = -1 };
	auto_buf struct buf hidden = { 0 };
	auto_fd int fd = -1;
	char size[UNITS_TEXT];

	buf_printf(&hidden, "%s.XXXXXX", path);
	fd = mkostemp(hidden.p, O_CLOEXEC);
	if (fd < 0)
		return template_file_failed(r, "write", path);
	x.to = fd;
	r->status = api_client_bytes(r, &x);
	if (!r->status && (fchmod(fd, 0644) < 0 || rename(hidden.p, path) < 0))
		template_file_failed(r, "write", path);
	if (r->status)
		unlink(hidden.p);
	else if (!r->cli->quiet && !r->cli->json)
		fprintf(stderr, "wrote %s\n", units_size(size, x.written));
	return r->status;
}

int template_export(struct api_client *r, const struct args *a)
{
	auto_free char *url = api_client_path("/v1/templates/%s/export", a->words[1]);
	struct api_client_bytes x = { .method = "GET", .path = url, .from = -1, .to = 1 };

	if (strcmp(a->words[2], "-") != 0)
		return template_export_to(r, url, a->words[2]);
	if (isatty(1)) {
		api_client_usage(r, "will not write a template to a terminal");
		cli_error_hint(&r->error, "type", "atoll template export %s FILE", a->words[1]);
		return r->status;
	}
	return r->status = api_client_bytes(r, &x);
}

/* ---- import ---- */

/* The JSON of the first line; *out_at: where the archive begins. NULL: it is no such file. */
static json_t *template_header(int fd, off_t *out_at)
{
	auto_buf struct buf text = { 0 };
	const char *end = NULL;
	json_t *doc;
	ssize_t n;

	while (!end && text.len < TEMPLATE_HEADER &&
	       (n = read(fd, buf_space(&text, TEMPLATE_PIECE), TEMPLATE_PIECE)) > 0) {
		buf_grew(&text, (size_t)n);
		end = memchr(text.p, '\n', text.len);
	}
	if (!end)
		return NULL;
	*out_at = end - text.p + 1;
	doc = json_loadb(text.p, (size_t)(end - text.p), 0, NULL);
	if (api_client_int(doc, "atoll_template", 0) != 1) {
		json_decref(doc);
		return NULL;
	}
	return doc;
}

static int template_archive_hash(int fd, off_t at, char out[2 * SHA256_BYTES + 1])
{
	static char bytes[TEMPLATE_PIECE];
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;
	ssize_t n;

	sha256_init(&s);
	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		sha256_add(&s, bytes, (size_t)n);
		at += n;
	}
	sha256_end(&s, sum);
	hex_encode(out, sum, sizeof(sum));
	return (int)n;
}

/* Uploads what follows the first line, and names it in the definition. */
static int template_import_archive(struct api_client *r, int fd, off_t at, const char *path,
				   json_t *stage)
{
	char hash[2 * SHA256_BYTES + 1];
	auto_free char *url = NULL;
	struct api_client_bytes x = {
		.method = "PUT", .type = "application/x-tar", .from = fd, .to = -1
	};

	if (template_archive_hash(fd, at, hash) < 0 || lseek(fd, at, SEEK_SET) < 0)
		return template_file_failed(r, "read", path);
	url = api_client_path("/v1/templates/uploads/%s", hash);
	x.path = url;
	r->status = api_client_bytes(r, &x);
	json_decref(x.answer);
	if (!r->status)
		json_object_set_new(stage, "from", json_sprintf("archive:%s", hash));
	return r->status;
}

static json_t *template_import_begin(struct api_client *r, const struct args *a, int fd)
{
	const char *path = a->words[1];
	json_t *doc, *definition, *stage, *body;
	char shown[SHOWN];
	off_t at = 0;

	doc = template_header(fd, &at);
	definition = json_object_get(doc, "definition");
	stage = json_array_get(json_object_get(definition, "stages"), 0);
	if (!stage) {
		json_decref(doc);
		api_client_usage(r, "%s was not written by atoll template export",
				 cli_error_shown(path, shown));
		return NULL;
	}
	if (!strcmp(api_client_text(stage, "from"), "archive:") &&
	    template_import_archive(r, fd, at, path, stage)) {
		json_decref(doc);
		return NULL;
	}
	body = json_pack("{s:O, s:s}", "definition", definition, "name",
			 args_text(a, TEMPLATE_NAME, api_client_text(doc, "name")));
	json_decref(doc);
	return api_client_json(r, "POST", "/v1/templates", body);
}

int template_import(struct api_client *r, const struct args *a)
{
	auto_fd int fd = open(a->words[1], O_RDONLY | O_CLOEXEC);
	char id[64];
	json_t *build;

	if (fd < 0)
		return template_file_failed(r, "read", a->words[1]);
	build = template_import_begin(r, a, fd);
	if (!build)
		return r->status;
	snprintf(id, sizeof(id), "%s", api_client_text(build, "id"));
	json_decref(build);
	return template_follow(r, id);
}
