/* build_follow.c - see build_follow.h. */
#include "cli/build_follow.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LOG_AGAIN_MS = 300, LOG_GIVE_UP_MS = 30000, LOG_TAIL = 20 };

struct build_view {
	struct api_client *r;
	int shows; /* lines for people */
	int terminal;
	uint64_t seen;    /* entries that were printed */
	uint64_t skip;    /* of this connection, because they were printed before */
	uint64_t news_ms; /* when the daemon has sent something */
	json_t *build;    /* of the last line */
	/* the line of progress, which a thread of its own keeps up to date */
	pthread_mutex_t lock;
	pthread_cond_t stop;
	pthread_t ticker;
	int ticks, drawn;
	char step[160];
	uint64_t began_ms;
};

static uint64_t build_view_now(void)
{
	return now_ns() / 1000000;
}

/* ---- the line of progress ---- */

static void build_view_clear(struct build_view *v)
{
	if (v->drawn)
		fputs("\r\033[K", stderr);
	v->drawn = 0;
}

static void build_view_draw(struct build_view *v)
{
	struct winsize w = { .ws_col = 80 };
	char line[220];
	size_t n;

	if (!v->terminal || !*v->step)
		return;
	if (ioctl(2, TIOCGWINSZ, &w) < 0 || w.ws_col < 20)
		w.ws_col = 80;
	snprintf(line, sizeof(line), "%llus %s",
		 (unsigned long long)(build_view_now() - v->began_ms) / 1000, v->step);
	n = strlen(line);
	if (n >= w.ws_col)
		n = utf8_cut(line, w.ws_col - 1u);
	fprintf(stderr, "\r\033[K%.*s", (int)n, line);
	fflush(stderr);
	v->drawn = 1;
}

static void *build_view_tick(void *ctx)
{
	struct build_view *v = ctx;
	struct timespec at;

	pthread_mutex_lock(&v->lock);
	while (v->ticks) {
		build_view_draw(v);
		clock_gettime(CLOCK_MONOTONIC, &at);
		at.tv_sec++;
		pthread_cond_timedwait(&v->stop, &v->lock, &at);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

static void build_view_start(struct build_view *v, int follow)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->stop, &monotonic);
	v->ticks = v->terminal && follow;
	if (v->ticks && pthread_create(&v->ticker, NULL, build_view_tick, v) != 0)
		v->ticks = 0;
}

static void build_view_end(struct build_view *v)
{
	int ticked = v->ticks;

	pthread_mutex_lock(&v->lock);
	build_view_clear(v);
	v->ticks = 0;
	pthread_cond_signal(&v->stop);
	pthread_mutex_unlock(&v->lock);
	if (ticked)
		pthread_join(v->ticker, NULL);
	pthread_cond_destroy(&v->stop);
	pthread_mutex_destroy(&v->lock);
}

/* ---- entries ---- */

/* "[2/5] RUN ...", also after CACHED. The number is that of the entry's step: output of a program may look the same. */
static const char *build_view_step(const json_t *entry, const char *message, int *cached)
{
	const char *p = message;
	unsigned number, all;
	int n = 0;

	*cached = !strncmp(p, "CACHED ", 7);
	p += *cached ? 7 : 0;
	if (sscanf(p, "[%u/%u] %n", &number, &all, &n) != 2 || !n ||
	    number != (unsigned)api_client_int(entry, "step", -1))
		return NULL;
	return p;
}

static void build_view_clean(char out[2000], const char *text)
{
	size_t n = 0;

	for (; *text && n + 1 < 2000; text++)
		out[n++] =
			((unsigned char)*text < 32 && *text != '\t') || *text == 127 ? ' ' : *text;
	while (n && out[n - 1] == ' ')
		n--;
	out[n] = 0;
	out[utf8_complete(out, n, &(int){ 0 })] = 0;
}

static void build_view_print(struct build_view *v, const json_t *entry)
{
	const char *level = api_client_text(entry, "level"), *step;
	int color = v->terminal && v->r->cli->color, cached, done;
	char text[2000];

	build_view_clean(text, api_client_text(entry, "message"));
	step = build_view_step(entry, text, &cached);
	done = step && strstr(step, "] done in ");
	build_view_clear(v);
	if (step && !done)
		fprintf(stderr, "%s%s%s%s\n", color ? cached ? "\033[32m" : "\033[1m" : "",
			cached ? "CACHED " : "", step, color ? "\033[0m" : "");
	else if (!strcmp(level, "error"))
		fprintf(stderr, "%s%s%s\n", color ? "\033[31m" : "", text, color ? "\033[0m" : "");
	else if (done)
		fprintf(stderr, "%s%s%s\n", color ? "\033[2m" : "", step, color ? "\033[0m" : "");
	else
		fprintf(stderr, "  %s%s%s\n", color ? "\033[2m" : "", text, color ? "\033[0m" : "");
	if (step)
		snprintf(v->step, sizeof(v->step), "%.150s", done ? "" : step);
	build_view_draw(v);
}

static int build_view_take(void *ctx, json_t *line)
{
	struct build_view *v = ctx;
	const char *type = api_client_text(line, "type");

	v->news_ms = build_view_now();
	if (!strcmp(type, "ping"))
		return 0;
	if (!strcmp(type, "end")) {
		json_decref(v->build);
		v->build = json_incref(json_object_get(line, "build"));
		return 1;
	}
	if (v->skip) {
		v->skip--;
		return 0;
	}
	v->seen++;
	if (v->r->cli->json)
		api_client_print(line);
	if (!v->shows)
		return 0;
	pthread_mutex_lock(&v->lock);
	build_view_print(v, line);
	pthread_mutex_unlock(&v->lock);
	return 0;
}

/* ---- reading ---- */

static int build_view_read(struct build_view *v, const char *id, int follow)
{
	auto_buf struct buf path = { 0 };

	buf_puts(&path, "/v1/builds/");
	api_client_escape(&path, id);
	buf_puts(&path, follow ? "/log?follow=1" : "/log");
	while (!v->build) {
		int status;

		v->skip = v->seen;
		status = api_client_lines(v->r, "GET", buf_str(&path), NULL, build_view_take, v);
		if (v->build)
			break;
		if (status && !v->r->lost && v->r->http < 500)
			return status;
		if (build_view_now() - v->news_ms > LOG_GIVE_UP_MS) {
			cli_error_what(&v->r->error, "lost", "the daemon sent no further data");
			cli_error_hint(&v->r->error, "later", "atoll template log -f %s", id);
			return v->r->status = STATUS_FAILED;
		}
		poll(NULL, 0, LOG_AGAIN_MS);
	}
	v->r->status = 0;
	return 0;
}

int build_follow_show(struct api_client *r, const char *id, int follow, json_t **out_build)
{
	struct build_view v = { .r = r,
				.shows = !r->cli->json && !r->cli->quiet,
				.terminal = isatty(2) && !r->cli->json && !r->cli->quiet,
				.news_ms = build_view_now(),
				.began_ms = build_view_now() };
	int status;

	build_view_start(&v, follow);
	status = build_view_read(&v, id, follow);
	build_view_end(&v);
	if (status)
		json_decref(v.build);
	else
		*out_build = v.build;
	return status;
}

/* ---- the end ---- */

/* The last lines. */
static void build_follow_tail(const char *output)
{
	const char *p = output + strlen(output);
	char text[2000];

	for (unsigned lines = 0; p > output; p--)
		if (p[-1] == '\n' && *p && ++lines == LOG_TAIL)
			break;
	while (*p) {
		size_t n = strcspn(p, "\n");
		char line[2000];

		snprintf(line, sizeof(line), "%.*s", (int)(n < 1900 ? n : 1900), p);
		build_view_clean(text, line);
		fprintf(stderr, "  %s\n", text);
		p += n + (p[n] == '\n');
	}
}

int build_follow_result(struct api_client *r, const json_t *build)
{
	const json_t *reason = json_object_get(build, "reason");
	const char *state = api_client_text(build, "state"),
		   *step = api_client_text(reason, "step");
	int64_t line = api_client_int(reason, "line", 0);
	char shown[SHOWN], where[80] = "", message[2000];

	if (!strcmp(state, "ready"))
		return 0;
	if (!r->cli->json)
		build_follow_tail(api_client_text(reason, "output"));
	if (*step)
		snprintf(where, sizeof(where), " at step %.20s", step);
	if (line)
		snprintf(where + strlen(where), sizeof(where) - strlen(where), ", line %lld",
			 (long long)line);
	cli_error_what(&r->error, "build_failed", "build %.40s %s%s%s%s",
		       api_client_text(build, "id"),
		       !strcmp(state, "cancelled") ? "was cancelled" : "failed", where,
		       *api_client_text(reason, "command") ? ": " : "",
		       cli_error_shown(api_client_text(reason, "command"), shown));
	build_view_clean(message, api_client_text(reason, "message"));
	if (*message)
		cli_error_why(&r->error, "%s", message);
	cli_error_hint(&r->error, "log", "atoll template log %s", api_client_text(build, "id"));
	return r->status = STATUS_FAILED;
}

int build_follow_first(struct api_client *r, const char *name)
{
	auto_free char *path = NULL;
	const struct cli *cli = r->cli;
	struct cli plain = *cli;
	json_t *template, *build = NULL;
	char id[64];

	if (!name || strcmp(r->code, "building") != 0)
		return r->status;
	path = api_client_path("/v1/templates/%s", name);
	template = api_client_json(r, "GET", path, NULL);
	if (!template)
		return r->status;
	snprintf(id, sizeof(id), "%s",
		 api_client_text(json_array_get(json_object_get(template, "builds"), 0), "id"));
	json_decref(template);
	if (!cli->quiet)
		fprintf(stderr, "atoll: template '%s' is built first\n", name);
	plain.json = 0; /* stdout is for the result of the command */
	r->cli = &plain;
	if (build_follow_show(r, id, 1, &build) == 0)
		r->status = build_follow_result(r, build);
	r->cli = cli;
	json_decref(build);
	return r->status;
}
