/* play.c - see play.h. */
#include "v1/play.h"
#include "base/cleanup.h"
#include "v1/play_files.h"
#include "v1/ui.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PLAY_CHUNK = 64 << 10 };

static const char play_frame[] = "/play/frame.html", play_lib[] = "/play/lib/";

/* ---- policies ---- */

/* Addresses by host and path: 'self' would permit every path of the API. auth_host() has checked that the
 * name is one of ours and that a port follows, or nothing. */
static void play_set_page_policy(struct http_req *r, const char *host)
{
	http_set(
		r, "Content-Security-Policy",
		"default-src 'none'; script-src %s/play/; style-src %s/play/ 'unsafe-inline'; "
		"connect-src %s/play/; frame-src %s/play/frame.html; img-src data:; base-uri 'none'; "
		"form-action 'none'; frame-ancestors 'none'",
		host, host, host, host);
	http_set(r, "X-Frame-Options", "DENY");
	http_set(r, "Cross-Origin-Opener-Policy", "same-origin");
}

/* The worker is a blob: and has the policy of the frame. */
static void play_set_frame_policy(struct http_req *r, const char *host)
{
	http_set(
		r, "Content-Security-Policy",
		"sandbox allow-scripts; default-src 'none'; script-src %s/play/ 'wasm-unsafe-eval'; "
		"worker-src blob:; connect-src %s%s; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'self'",
		host, host, play_lib);
	http_set(r, "X-Frame-Options", "SAMEORIGIN");
}

/* ---- files of the interpreters ---- */

struct play_sending {
	int fd;
	uint64_t left;
};

static void play_drop(struct call *c)
{
	struct play_sending *s = c->state;

	own_close_fd(&s->fd);
}

static void play_send(struct http_req *r)
{
	struct call *c = r->user;
	struct play_sending *s = c->state;
	char bytes[PLAY_CHUNK];

	while (s->left) {
		ssize_t n = read(s->fd, bytes, s->left < sizeof bytes ? s->left : sizeof bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <=
		    0) { /* the file became shorter: the client must not take it for complete */
			http_abort(r);
			return;
		}
		s->left -= (uint64_t)n;
		if (http_write(r, bytes, (size_t)n) && s->left)
			return;
	}
	r->on_drain = NULL;
	http_end(r);
}

static int play_open(const struct call *c, const char *name, const char *ending, struct stat *st)
{
	auto_free char *path = buf_text("%s/" PLAY_FOLDER "/%s/%s%s", c->api->conf.state,
					play_set(), name, ending);
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
		return -1;
	return steal_fd(&fd);
}

static void play_send_file(struct call *c, const struct play_file *f)
{
	struct http_req *r = c->req;
	struct play_sending *s = http_alloc(r, sizeof *s);
	int gzip = ui_accepts_gzip(r);
	struct stat st;

	s->fd = gzip ? play_open(c, f->name, ".gz", &st) : -1;
	gzip = s->fd >= 0;
	if (!gzip)
		s->fd = play_open(c, f->name, "", &st);
	if (s->fd < 0) {
		static const char text[] = "not installed; on the server: " PLAY_COMMAND "\n";

		http_reply(r, 404, "text/plain; charset=utf-8", text, strlen(text));
		return;
	}
	http_set(r, "Cache-Control", "public, max-age=31536000, immutable");
	http_set(r, "Vary", "Accept-Encoding");
	if (gzip)
		http_set(r, "Content-Encoding", "gzip");
	s->left = !strcmp(r->method, "HEAD") ? 0 : (uint64_t)st.st_size;
	c->state = s;
	c->drop = play_drop;
	r->on_drain = play_send;
	http_stream(r, 200, f->type, (uint64_t)st.st_size);
	play_send(r);
}

static void play_not_found(struct http_req *r)
{
	static const char text[] = "there is no such file below /play/\n";

	http_reply(r, 404, "text/plain; charset=utf-8", text, strlen(text));
}

/* "/play/lib/SET/FILE" */
static void play_take_file(struct call *c)
{
	const char *set = c->req->path + strlen(play_lib);
	const struct play_file *f = NULL;

	if (!strncmp(set, play_set(), PLAY_SET - 1) && set[PLAY_SET - 1] == '/')
		f = play_find(set + PLAY_SET);
	if (f)
		play_send_file(c, f);
	else
		play_not_found(c->req);
}

/* The last file that `atoll tier prepare play` writes is the folder's name. */
static int play_installed(const struct call *c)
{
	struct stat st;
	auto_fd int fd = play_open(c, play_files[0].name, "", &st);

	return fd >= 0;
}

static void play_take_info(struct call *c)
{
	auto_buf struct buf out = { 0 };

	buf_printf(&out, "{\"installed\":%s,\"command\":\"%s\",\"files\":\"%s%s/\"}\n",
		   play_installed(c) ? "true" : "false", PLAY_COMMAND, play_lib, play_set());
	http_set(c->req, "Cache-Control", "no-store");
	http_reply(c->req, 200, "application/json", out.p, out.len);
}

/* ---- requests ---- */

static void play_take_page(struct call *c, const char *host)
{
	struct http_req *r = c->req;
	const char *path = r->path;

	if (!strcmp(path, "/play/"))
		play_set_page_policy(r, host);
	else if (!strcmp(path, play_frame))
		play_set_frame_policy(r, host);
	if (ui_reply_path(c, path) < 0) {
		http_unset(r);
		play_not_found(r);
	}
}

static int play_take(struct call *c)
{
	struct http_req *r = c->req;
	const char *host = http_header(r, "host");

	if ((strncmp(r->path, "/play/", 6) != 0 && strcmp(r->path, "/play") != 0) ||
	    (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0) || !host ||
	    !ui_is_built())
		return 0;
	if (ui_is_beside_previews(&c->api->conf, host)) {
		ui_refuse_site(c);
		return 1;
	}
	/* Programs have an opaque origin ("null") and read these files, which are public. */
	http_set(r, "Access-Control-Allow-Origin", "*");
	http_set(r, "Referrer-Policy", "no-referrer");
	if (!strcmp(r->path, "/play")) {
		http_set(r, "Location", "/play/");
		http_reply(r, 308, NULL, NULL, 0);
	} else if (!strncmp(r->path, play_lib, strlen(play_lib))) {
		play_take_file(c);
	} else if (!strcmp(r->path, "/play/info")) {
		play_take_info(c);
	} else {
		play_take_page(c, host);
	}
	return 1;
}

const struct api_surface play_surface = { .take = play_take };
