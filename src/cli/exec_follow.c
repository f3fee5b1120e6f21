/* exec_follow.c - see exec_follow.h.
 *
 *   this thread     reads the answer, writes output, reconnects after a broken connection
 *   pump            stdin -> POST .../stdin; blocks when the program does not read
 *   control         signals -> POST .../signal, .../resize; must not wait for either of the others
 *
 * Each has a connection of its own. They share the exec's id and the number of reconnects to the
 * daemon. */
#include "cli/exec_follow.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "cli/stdin_forward.h"
#include "cli/term.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

enum {
	GIVE_UP_MS = 60000,
	FIRST_WAIT_MS = 20,
	LONGEST_WAIT_MS = 1000,
	TWICE_MS = 2000,
	TRIES = 20
};

static const int passed_on[] = { SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };
static const char *const stream_names[2] = { "stdout", "stderr" };

void exec_follow_init(struct exec_follow *f, struct api_client *r, const char *box)
{
	*f = (struct exec_follow){ .r = r, .box = box, .out = { 1, 2 }, .quiet = r->cli->quiet };
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->moved, NULL);
}

void exec_follow_fini(struct exec_follow *f)
{
	term_restore();
	json_decref(f->record);
	f->record = NULL;
}

int exec_follow_has_terminal(void)
{
	/* In the background a change of the terminal's settings would stop this process. */
	return isatty(0) && isatty(1) && tcgetpgrp(0) == getpgrp();
}

json_t *exec_follow_size(void)
{
	struct winsize w = { 0 };

	ioctl(0, TIOCGWINSZ, &w);
	return json_pack("{s:i, s:i}", "rows", w.ws_row ? w.ws_row : 24, "cols",
			 w.ws_col ? w.ws_col : 80);
}

static void wait_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* ---- signals ---- */

static void follow_post(struct exec_follow *f, struct api_client *r, const char *what,
			json_t *take_body)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/execs/%s/", f->box, f->exec);
	auto_buf struct buf full = { 0 };

	buf_printf(&full, "%s%s", path, what);
	/* Retries a few times while the daemon restarts. */
	for (int i = 0; i < TRIES; i++) {
		json_t *doc = api_client_json(r, "POST", buf_str(&full), json_incref(take_body));

		json_decref(doc);
		if (doc || !r->lost)
			break;
		wait_ms(100);
	}
	json_decref(take_body);
}

static int is_known(struct exec_follow *f)
{
	int known;

	pthread_mutex_lock(&f->lock);
	known = f->known;
	pthread_mutex_unlock(&f->lock);
	return known;
}

/* No program runs yet that could receive it: the signal is for this process. */
static _Noreturn void follow_leave(int signo)
{
	term_restore();
	exit(128 + signo);
}

struct control {
	struct exec_follow *f;
	struct api_client r;
	int fd;
	uint64_t last_int_ns;
};

static void pass_on(struct control *c, int signo)
{
	if (!is_known(c->f)) {
		if (signo != SIGWINCH && signo != SIGCONT)
			follow_leave(signo);
		return;
	}
	if (signo == SIGWINCH && !c->f->terminal)
		return;
	if (signo == SIGWINCH) {
		follow_post(c->f, &c->r, "resize", exec_follow_size());
		return;
	}
	if (signo == SIGINT) {
		uint64_t now = now_ns();

		if (c->last_int_ns && now - c->last_int_ns < TWICE_MS * UINT64_C(1000000))
			signo = SIGKILL;
		c->last_int_ns = now;
	}
	follow_post(c->f, &c->r, "signal", json_pack("{s:i}", "signal", signo));
}

static void *control_thread(void *arg)
{
	struct control *c = arg;
	struct signalfd_siginfo si;

	while (read(c->fd, &si, sizeof(si)) == sizeof(si))
		pass_on(c, (int)si.ssi_signo);
	return NULL;
}

static void follow_begin(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, run, arg) != 0)
		abort(); /* as when memory is out */
	pthread_attr_destroy(&attr);
}

static int begin_control(struct exec_follow *f)
{
	static struct control c; /* one program is followed in a process */
	sigset_t set;

	c.f = f;
	if (api_client_again(&c.r, f->r))
		return f->r->status = c.r.status;
	sigemptyset(&set);
	for (unsigned i = 0; i < ARRAY_LEN(passed_on); i++)
		sigaddset(&set, passed_on[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	c.fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (c.fd < 0)
		abort();
	follow_begin(control_thread, &c);
	return 0;
}

/* ---- output ---- */

static void follow_unread(struct exec_follow *f, unsigned s)
{
	struct api_client r;

	f->out[s] = -1;
	if (f->unread++)
		return;
	/* Behaves like a closed pipe. Further output of the program is discarded. */
	if (f->signals && f->known && api_client_again(&r, f->r) == 0) {
		follow_post(f, &r, "signal", json_pack("{s:s}", "signal", "PIPE"));
		api_client_close(&r);
	}
}

static void put_out(struct exec_follow *f, unsigned s, const char *bytes, size_t n)
{
	if (f->keep[s]) {
		size_t room = f->keep_max > f->keep[s]->len ? f->keep_max - f->keep[s]->len : 0;

		buf_add(f->keep[s], bytes, n < room ? n : room);
		f->dropped[s] += n < room ? 0 : n - room;
	}
	if (f->out[s] >= 0 && !f->lines && api_client_write(f->out[s], bytes, n) < 0)
		follow_unread(f, s);
}

static void follow_missing(struct exec_follow *f, unsigned s, uint64_t from)
{
	f->dropped[s] += from - f->next[s];
	if (!f->quiet)
		fprintf(stderr, "atoll: %llu bytes of %s were dropped while no client read them\n",
			(unsigned long long)(from - f->next[s]), stream_names[s]);
	f->next[s] = from;
}

/* Passes on each byte once and in order, even if pieces overlap. */
static void follow_output(struct exec_follow *f, unsigned s, uint64_t offset, const char *bytes,
			  size_t n)
{
	if (offset > f->next[s])
		follow_missing(f, s, offset);
	if (offset + n <= f->next[s])
		return;
	bytes += f->next[s] - offset;
	n -= (size_t)(f->next[s] - offset);
	f->next[s] += n;
	put_out(f, s, bytes, n);
}

static void take_output(struct exec_follow *f, unsigned s, const json_t *line)
{
	uint64_t offset = (uint64_t)api_client_int(line, "offset", 0);
	const json_t *text = json_object_get(line, "data"),
		     *coded = json_object_get(line, "base64");
	auto_buf struct buf bytes = { 0 };

	if (text) {
		follow_output(f, s, offset, json_string_value(text), json_string_length(text));
		return;
	}
	if (base64_decode(&bytes, json_string_value(coded), json_string_length(coded)) == 0)
		follow_output(f, s, offset, buf_str(&bytes), bytes.len);
}

static void take_started(struct exec_follow *f, const json_t *line)
{
	pthread_mutex_lock(&f->lock);
	snprintf(f->exec, sizeof(f->exec), "%s", api_client_text(line, "exec"));
	f->known = 1;
	pthread_cond_broadcast(&f->moved);
	pthread_mutex_unlock(&f->lock);
}

/* A snapshot is complete when both streams have reached their size at its beginning. */
static int seen_all(const struct exec_follow *f)
{
	return f->snapshot && f->tips == 3 && f->next[0] >= f->tip[0] && f->next[1] >= f->tip[1];
}

static int take_line(void *ctx, json_t *line)
{
	struct exec_follow *f = ctx;
	const char *type = api_client_text(line, "type");

	if (f->lines) {
		api_client_print(line);
		f->unread = fflush(stdout) != 0;
	}
	if (!strcmp(type, "stdout") || !strcmp(type, "stderr")) {
		take_output(f, type[3] == 'e', line);
	} else if (!strcmp(type, "started")) {
		take_started(f, line);
	} else if (!strcmp(type, "reading")) {
		unsigned s = !strcmp(api_client_text(line, "stream"), "stderr");

		if ((uint64_t)api_client_int(line, "from", 0) > f->next[s])
			follow_missing(f, s, (uint64_t)api_client_int(line, "from", 0));
		f->tip[s] = (uint64_t)api_client_int(line, "tip", 0);
		f->tips |= 1u << s;
	} else if (!strcmp(type, "exit")) {
		f->record = json_deep_copy(line);
		json_object_del(f->record, "type");
		return 1;
	} else if (!strcmp(type, "error")) {
		const json_t *error = json_object_get(line, "error");

		cli_error_what(&f->r->error, "failed", "%s", api_client_text(error, "message"));
		f->wrong = "error";
		return 1;
	}
	return seen_all(f) || (f->lines && f->unread);
}

/* ---- finding it again ---- */

static int find_tag(void *ctx, json_t *item)
{
	struct exec_follow *f = ctx;

	if (strcmp(api_client_text(item, "tag"), f->tag) != 0)
		return 0;
	json_object_set(item, "exec", json_object_get(item, "id"));
	take_started(f, item);
	return 1;
}

/* The box may have ended meanwhile, and the program with it: its record still exists. */
static int find_record(struct exec_follow *f)
{
	json_t *doc = api_client_get(f->r, "/v1/runs/%s", f->exec);

	if (doc && !strcmp(api_client_state(doc), "exited")) {
		f->record = doc;
		return 0;
	}
	json_decref(doc);
	return f->r->status;
}

static int read_on(struct exec_follow *f)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/execs/%s/output?stdout=%u&stderr=%u",
					       f->box, f->exec, f->next[0], f->next[1]);

	return api_client_lines(f->r, "GET", path, NULL, take_line, f);
}

/* Was it started? If no exec has its tag, none was, and the request may be sent again. */
static int start_again(struct exec_follow *f, const json_t *body)
{
	auto_free char *list = api_client_path("/v1/boxes/%s/execs?limit=20", f->box);
	auto_free char *path = api_client_path("/v1/boxes/%s/execs", f->box);
	int status = api_client_list(f->r, list, find_tag, f);

	if (status || f->known)
		return status ? status : read_on(f);
	return api_client_lines(f->r, "POST", path, json_deep_copy(body), take_line, f);
}

static int follow_has_ended(const struct exec_follow *f)
{
	return f->record || f->wrong || seen_all(f) || (f->lines && f->unread);
}

/* A daemon that is starting or exiting. */
static int follow_may_retry(const struct api_client *r)
{
	return r->lost || r->http == 502 || r->http == 503 || r->http == 504;
}

static int say_gone(struct exec_follow *f)
{
	if (f->exec[0])
		cli_error_hint(&f->r->error, "resume", "atoll attach %s %s --from %llu,%llu",
			       f->box, f->exec, (unsigned long long)f->next[0],
			       (unsigned long long)f->next[1]);
	return f->r->status = STATUS_OURS;
}

/* status: of the first try. */
static int follow_persist(struct exec_follow *f, int status, const json_t *body)
{
	uint64_t good_ns = now_ns();
	int pause = FIRST_WAIT_MS;

	while (!follow_has_ended(f)) {
		uint64_t before[2] = { f->next[0], f->next[1] };

		if (status && !follow_may_retry(f->r)) {
			if (f->known && f->r->http == 404 && find_record(f) == 0)
				break;
			return status;
		}
		if (now_ns() - good_ns > GIVE_UP_MS * UINT64_C(1000000))
			return say_gone(f);
		wait_ms(pause);
		pause = 2 * pause < LONGEST_WAIT_MS ? 2 * pause : LONGEST_WAIT_MS;
		pthread_mutex_lock(&f->lock);
		f->generation++;
		pthread_cond_broadcast(&f->moved);
		pthread_mutex_unlock(&f->lock);
		status = f->known ? read_on(f) : start_again(f, body);
		if (before[0] != f->next[0] || before[1] != f->next[1] || f->tips) {
			good_ns = now_ns();
			pause = FIRST_WAIT_MS;
			f->tips = f->snapshot ? f->tips : 0;
		}
	}
	if (f->wrong)
		return f->r->status = STATUS_OURS;
	return 0;
}

static int follow_prepare(struct exec_follow *f)
{
	struct err e;

	if (f->signals && begin_control(f))
		return f->r->status;
	if (f->terminal && term_raw(0, &e) < 0) {
		cli_error_what(&f->r->error, "failed", "%s", e.msg);
		return f->r->status = STATUS_OURS;
	}
	f->mould = *f->r;
	if (f->input)
		follow_begin(stdin_forward_thread, f);
	return 0;
}

int exec_follow_start(struct exec_follow *f, json_t *take_body)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/execs", f->box);
	json_t *body = take_body;
	char id[ID_MAX + 1];
	struct err e;
	int status;

	if (id_new(id, &e) < 0)
		abort();
	snprintf(f->tag, sizeof(f->tag), "cli-%s", id);
	if (!json_object_get(body, "tag"))
		json_object_set_new(body, "tag", json_string(f->tag));
	else
		snprintf(f->tag, sizeof(f->tag), "%s", api_client_text(body, "tag"));
	status = follow_prepare(f);
	if (!status) {
		status = api_client_lines(f->r, "POST", path, json_deep_copy(body), take_line, f);
		if (!follow_has_ended(f) && !f->r->never)
			status = follow_persist(f, status, body);
		else if (f->wrong)
			status = f->r->status = STATUS_OURS;
	}
	json_decref(body);
	term_restore();
	return status;
}

int exec_follow_exec(struct exec_follow *f, const char *exec)
{
	int status;

	snprintf(f->exec, sizeof(f->exec), "%s", exec);
	f->known = 1;
	status = follow_prepare(f);
	if (!status) {
		status = read_on(f);
		if (!follow_has_ended(f) && !f->r->never)
			status = follow_persist(f, status, NULL);
		else if (f->wrong)
			status = f->r->status = STATUS_OURS;
	}
	term_restore();
	return status;
}

/* ---- afterwards ---- */

int exec_follow_report(const struct cli *cli, const json_t *record)
{
	const char *summary = api_client_text(record, "summary"),
		   *hint = api_client_text(record, "hint");
	int status = (int)api_client_int(record, "status", STATUS_OURS);

	if (cli->quiet || cli->json)
		return status;
	if (*summary)
		fprintf(stderr, "atoll: %s   [exit %d, cause=%s]\n", summary, status,
			api_client_text(record, "cause"));
	if (*hint)
		fprintf(stderr, "  %s\n", hint);
	return status;
}
