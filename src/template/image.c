/* image.c - see image.h.
 *
 *   box ── credentials, archive ── skopeo ── index ── manifest ── config ─┬─ for each layer:
 *                                                                         └─ cache │ blob ── UNPACK */
#include "template/image_internal.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/bounds.h"
#include "fleet/box.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	SAID_KEPT = 16 * 1024, /* bytes of the output of skopeo, for the diagnosis */
	LINE_MOST = 1000,
	LINES_TOLD = 2000,
	LIFETIME_EXTRA_MS = 600 * 1000, /* for reading the layers out of the box */
	WAY_TRIES = 200,
	WAY_WAIT_MS = 25,
	SPLICE_BYTES = 1 << 20,
};

#define SKOPEO "/usr/bin/skopeo"
#define ARCHIVE "/home/user/archive.tar"
#define AUTH_FILE "/run/secrets/registry.json"

/* ---- the end ---- */

static void image_pull_free(struct image_pull *p)
{
	struct box *b = p->box[0] ? fleet_find(p->fleet, p->box) : NULL;

	if (p->tapped)
		exec_reader_close(&p->reader);
	if (p->has_files)
		file_client_close(&p->files);
	if (p->pipe.loop) {
		watch_stop(&p->pipe);
		close(p->pipe.fd);
	}
	box_wait_cancel(&p->made);
	timer_fini(&p->way);
	keeper_client_cancel(&p->fleet->keeper, p->asking);
	if (b)
		box_end(b, CAUSE_EXIT, NULL);
	own_close_fd(&p->blob);
	if (p->auth)
		explicit_bzero(p->auth, strlen(p->auth));
	free(p->auth);
	json_decref(p->image.config);
	buf_fini(&p->said);
	buf_fini(&p->line);
	buf_fini(&p->text);
	free(p);
}

void image_pull_cancel(struct image_pull *p)
{
	if (p)
		image_pull_free(p);
}

void image_fail(struct image_pull *p, const struct err *e)
{
	struct err own = *e;

	p->on->done(p->ctx, NULL, &own);
	image_pull_free(p);
}

void image_finish(struct image_pull *p)
{
	p->on->done(p->ctx, &p->image, NULL);
	image_pull_free(p);
}

void image_say(struct image_pull *p, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	p->on->said(p->ctx, line);
}

struct box *image_box(struct image_pull *p)
{
	struct box *b = fleet_find(p->fleet, p->box);
	struct err e;

	if (b && b->state == BOX_RUNNING)
		return b;
	err_set(&e, ERR_SYS, "the box that pulls %.100s has ended", p->image.reference);
	image_fail(p, &e);
	return NULL;
}

/* ---- skopeo ---- */

static void image_start(struct image_pull *p);

static void image_line(struct image_pull *p)
{
	if (p->line.len && p->lines++ < LINES_TOLD)
		p->on->said(p->ctx, buf_str(&p->line));
	buf_cut(&p->line, 0);
}

static void image_output(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes,
			 size_t n)
{
	struct image_pull *p = loop_owner(t, struct image_pull, reader);

	(void)stream;
	(void)offset;
	buf_add(&p->said, bytes, n);
	if (p->said.len > 2 * SAID_KEPT) {
		memmove(p->said.p, p->said.p + p->said.len - SAID_KEPT, SAID_KEPT);
		buf_cut(&p->said, SAID_KEPT);
	}
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n' || p->line.len >= LINE_MOST)
			image_line(p);
		if (bytes[i] != '\n' && bytes[i] != '\r')
			buf_putc(&p->line, bytes[i]);
	}
}

/* The last connection of the box that failed. 1: there is one. */
static int image_cut_off(const struct image_pull *p, char verdict[32], char why[200])
{
	const struct box *b = fleet_find(p->fleet, p->box);
	json_t *all = b && egress_client_wanted(b) ? egress_client_json(b) : NULL;
	const json_t *one;
	size_t i;
	int cut = 0;

	json_array_foreach(json_object_get(all, "recent"), i, one)
	{
		const char *v = json_string_value(json_object_get(one, "verdict")),
			   *w = json_string_value(json_object_get(one, "why"));

		if (!v || !strcmp(v, "ok") || !strcmp(v, "cut"))
			continue;
		snprintf(verdict, 32, "%.31s", v);
		snprintf(why, 200, "%.199s", w ? w : v);
		cut = 1;
	}
	json_decref(all);
	return cut;
}

static void image_explain_end(struct image_pull *p, const json_t *record, struct err *out)
{
	const char *cause = json_string_value(json_object_get(record, "cause")),
		   *summary = json_string_value(json_object_get(record, "summary"));
	char verdict[32], why[200];

	if (summary && strstr(summary, "cannot execute '" SKOPEO "'"))
		err_set(out, ERR_NOT_FOUND,
			"skopeo is not on this host, so images cannot be pulled: apt-get install "
			"skopeo");
	else if (cause && !strcmp(cause, cause_name(CAUSE_WALL)))
		err_set(out, ERR_LIMIT, "%.80s was not pulled within %llu s", p->image.reference,
			(unsigned long long)p->conf->timeout_ms / 1000);
	else if ((cause && !strcmp(cause, cause_name(CAUSE_DISK))) ||
		 strstr(buf_str(&p->said), "no space left on device"))
		err_set(out, ERR_LIMIT, "%.80s needs more than %llu bytes", p->image.reference,
			(unsigned long long)p->conf->bytes_most);
	else if (p->archive >= 0)
		image_explain_archive(p->image.reference, buf_str(&p->said), out);
	else if (image_cut_off(p, verdict, why))
		image_explain(p->image.reference, buf_str(&p->said), verdict, why, out);
	else
		image_explain(p->image.reference, buf_str(&p->said), NULL, NULL, out);
}

static void image_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct image_pull *p = loop_owner(t, struct image_pull, reader);
	const char *cause = json_string_value(json_object_get(record, "cause"));
	struct err own;

	p->tapped = 0;
	image_line(p);
	if (!record) {
		image_fail(p, e);
	} else if (cause && !strcmp(cause, cause_name(CAUSE_EXIT)) &&
		   json_integer_value(json_object_get(record, "status")) == 0) {
		image_read_begin(p);
	} else if (p->archive >= 0 && !p->docker_archive) {
		p->docker_archive = 1;
		buf_cut(&p->said, 0);
		image_start(p);
	} else {
		image_explain_end(p, record, &own);
		image_fail(p, &own);
	}
}

static int image_insecure(const struct image_pull *p)
{
	const char *const *one = p->conf->insecure;
	char host[256];

	image_host(p->image.reference, host);
	for (; one && *one; one++)
		if (!strcmp(*one, host))
			return 1;
	return 0;
}

static void image_start(struct image_pull *p)
{
	static const struct exec_reader_events on = { .output = image_output, .over = image_over };
	static const char *const env[] = { "HOME=/home/user", "TMPDIR=/home/user", "LC_ALL=C.UTF-8",
					   NULL };
	struct box *b = image_box(p);
	const char *argv[8] = { SKOPEO, "copy", "--insecure-policy" };
	struct exec_spec want = { .argv = argv,
				  .env = env,
				  .cwd = "/home/user",
				  .kind = STORE_RUN_EXEC,
				  .helper = 1,
				  .wall_ms = (uint32_t)p->conf->timeout_ms };
	char from[600];
	unsigned n = 3;
	struct exec *r;
	struct err e;

	if (!b)
		return;
	if (p->auth)
		argv[n++] = "--src-authfile=" AUTH_FILE;
	if (p->archive < 0 && image_insecure(p))
		argv[n++] = "--src-tls-verify=false";
	if (p->archive >= 0)
		snprintf(from, sizeof(from), "%s:" ARCHIVE,
			 p->docker_archive ? "docker-archive" : "oci-archive");
	else
		snprintf(from, sizeof(from), "docker://%s", p->image.reference);
	argv[n++] = from;
	argv[n++] = "oci:" IMAGE_LAYOUT;
	argv[n] = NULL;
	exec_reader_init(&p->reader, p->fleet, &on);
	if (exec_launch(b, &want, &p->reader, &r, &e) < 0)
		image_fail(p, &e);
	else
		p->tapped = 1;
}

/* ---- files into the box ---- */

static void image_put_archive(struct image_pull *p);

/* skopeo cannot connect before the endpoint is open; after the start of the daemon egress may not be
 * ready yet. */
static void image_start_when_open(struct timer *t)
{
	struct image_pull *p = loop_owner(t, struct image_pull, way);
	const struct box *b = fleet_find(p->fleet, p->box);

	if (b && egress_client_wanted(b) && !b->way.open && p->tries++ < WAY_TRIES)
		timer_set(&p->way, WAY_WAIT_MS);
	else
		image_start(p);
}

static void image_files_done(struct file_client *c, uint16_t flags)
{
	struct image_pull *p = loop_owner(c, struct image_pull, files);

	(void)flags;
	if (p->phase == IMAGE_AUTH && p->archive >= 0)
		image_put_archive(p);
	else
		image_start_when_open(&p->way);
}

static void image_close_pipe(struct image_pull *p)
{
	int fd = p->pipe.fd;

	watch_stop(&p->pipe);
	p->pipe.loop = NULL;
	close(fd);
}

static void image_pipe_ready(struct watch *w, unsigned what)
{
	struct image_pull *p = loop_owner(w, struct image_pull, pipe);
	ssize_t n = splice(p->archive, NULL, w->fd, NULL, SPLICE_BYTES,
			   SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	struct err e;

	(void)what;
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (n < 0)
		err_sys(&e, "copy the archive into a box");
	image_close_pipe(p);
	if (n < 0)
		image_fail(p, &e);
	else
		file_client_data(&p->files, NULL, 0);
}

static void image_put_archive(struct image_pull *p)
{
	struct wire_put put = { .mode = 0600 };
	struct err e;
	int fd;

	p->phase = IMAGE_ARCHIVE;
	(void)!lseek(p->archive, 0, SEEK_SET);
	if (file_client_ask_pipe(&p->files, WIRE_PUT, &put, sizeof(put), ARCHIVE, &fd, &e) < 0) {
		image_fail(p, &e);
		return;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	watch_init(&p->pipe, p->fleet->loop, fd, image_pipe_ready);
	watch_want(&p->pipe, LOOP_WRITE);
}

static void image_files_ready(struct file_client *c)
{
	struct image_pull *p = loop_owner(c, struct image_pull, files);
	struct wire_put put = { .mode = 0400 };

	p->phase = IMAGE_AUTH;
	if (p->auth)
		file_client_put(c, &put, AUTH_FILE, p->auth, strlen(p->auth));
	else if (p->archive >= 0)
		image_put_archive(p);
	else
		image_start_when_open(&p->way);
}

static void image_files_failed(struct file_client *c, const struct err *e)
{
	struct image_pull *p = loop_owner(c, struct image_pull, files);
	struct err own = *e;

	err_in(&own, "the box that pulls %.80s", p->image.reference);
	image_fail(p, &own);
}

/* ---- the box ---- */

static void image_box_made(struct box_wait *w, struct box *b, const struct err *e)
{
	static const struct file_client_events on = { .ready = image_files_ready,
						      .data = image_files_data,
						      .done = image_files_done,
						      .failed = image_files_failed };
	struct image_pull *p = loop_owner(w, struct image_pull, made);

	if (e) {
		image_fail(p, e);
		return;
	}
	snprintf(p->box, sizeof(p->box), "%s", b->row.id);
	file_client_open(&p->files, &b->line, 0, &on);
	p->has_files = 1;
}

/* NULL: the box has no network. */
static char *image_network(const struct image_pull *p)
{
	json_t *all = json_array();
	char host[256], *text;

	for (const char *const *one = p->conf->registries; one && *one; one++)
		json_array_append_new(all, json_string(*one));
	if (p->conf->mirror) {
		image_host(p->conf->mirror, host);
		json_array_append_new(all, json_string(host));
	}
	text = p->archive < 0 ? json_dumps(all, JSON_COMPACT) : NULL;
	json_decref(all);
	return text;
}

static int image_make_box(struct image_pull *p, struct err *e)
{
	const struct fleet_conf *conf = &p->fleet->conf;
	auto_free char *network = image_network(p);
	struct box_spec want = { .limits = conf->limits };
	char metadata[160];
	struct box *b;

	/* BOX_INSTALL: no client may use it. BOX_BUILD: the next server ends it. */
	snprintf(metadata, sizeof(metadata),
		 "{\"%s\":\"1\",\"%s\":\"image\",\"%s\":\"image\",\"%s\":\"0\"}", BOX_EPHEMERAL,
		 BOX_INSTALL, BOX_BUILD, BOX_REGISTRIES);
	/* The archive, what skopeo unpacks of it, and the layout. */
	want.limits.disk_bytes = p->conf->bytes_most * (p->archive >= 0 ? 3 : 1);
	want.limits.disk_files = 10000;
	bounds_lower(&conf->most, &want.limits);
	if (p->auth)
		want.flags |= WIRE_CREATE_SECRETS;
	want.row.metadata = metadata;
	want.row.network = network;
	want.row.lifetime_ms = p->conf->timeout_ms * 2 + LIFETIME_EXTRA_MS;
	snprintf(want.row.team, sizeof(want.row.team), "%s", p->team);
	snprintf(want.row.template, sizeof(want.row.template), "base");
	want.continues = 1;
	p->made.done = image_box_made;
	return box_create(p->fleet, &want, &p->made, &b, e);
}

/* The format of ~/.docker/config.json. */
static char *image_auth_file(const char *reference, const char *user, const char *password)
{
	auto_buf struct buf pair = { 0 }, coded = { 0 };
	char host[256], *text;
	json_t *doc;

	image_host(reference, host);
	buf_printf(&pair, "%s:%s", user, password);
	base64_encode(&coded, pair.p, pair.len);
	doc = json_pack("{s:{s:{s:s}}}", "auths", host, "auth", buf_str(&coded));
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	explicit_bzero(pair.p, pair.len);
	explicit_bzero(coded.p, coded.len);
	return text;
}

static int image_prepare(struct image_pull *p, const struct image_source *from, struct err *e)
{
	if (from->archive >= 0) {
		snprintf(p->image.reference, sizeof(p->image.reference), "%.300s",
			 from->reference && *from->reference ? from->reference : "archive");
		return 0;
	}
	if (image_reference(p->conf, from->reference, p->image.reference, e) < 0)
		return -1;
	if (!p->conf->mirror && (!p->conf->registries || !*p->conf->registries))
		return err_set(e, ERR_DENIED,
			       "no registry is configured, so %.80s cannot be pulled: set "
			       "templates.registries in the daemon's settings",
			       p->image.reference);
	if (from->user && from->password)
		p->auth = image_auth_file(p->image.reference, from->user, from->password);
	return 0;
}

int image_pull_begin(struct fleet *f, const struct image_conf *conf,
		     const struct image_source *from, const struct image_pull_events *on, void *ctx,
		     struct image_pull **out, struct err *e)
{
	struct image_pull *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->fleet = f;
	p->conf = conf;
	p->on = on;
	p->ctx = ctx;
	p->archive = from->archive;
	p->force = from->force;
	p->blob = -1;
	p->reader.own.post.fd = -1;
	snprintf(p->team, sizeof(p->team), "%s", from->team);
	timer_init(&p->way, f->loop, image_start_when_open);
	if (image_prepare(p, from, e) < 0 || image_make_box(p, e) < 0) {
		image_pull_free(p);
		return -1;
	}
	*out = p;
	return 0;
}
