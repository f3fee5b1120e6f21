/* repl.c - `atoll repl`: cells typed here, run by an interpreter in a box.
 *
 *   this thread     reads cells, sends them, prints their output
 *   control         Ctrl-C -> POST .../interrupt; must not wait for a cell to end
 *
 * Each has a connection of its own. A cell whose connection breaks keeps running, and its output
 * continues after the last event that was printed. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/api_client.h"
#include "commands/commands.h"
#include "lang/lang.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>

enum { REPL_BOX, REPL_TIME, REPL_CWD, REPL_NFLAGS };
enum { CELL_MOST = 4 << 20, GIVE_UP_MS = 60000, AGAIN_MS = 100, TWICE_MS = 2000 };

static const struct flag flags[REPL_NFLAGS] = {
	[REPL_BOX] = { "box", 'b', FLAG_TEXT, "BOX", "use this box (default: a temporary one)" },
	[REPL_TIME] = { "time", 0, FLAG_TIME, "TIME",
			"time limit of a cell, which is then interrupted (no limit)" },
	[REPL_CWD] = { "cwd", 0, FLAG_TEXT, "DIR", "working folder in the box (/home/user)" },
};

static struct repl { /* one in a process */
	struct api_client *r;
	struct api_client other; /* for the control thread, and for answers to a running cell */
	const struct args *a;
	char box[80], context[32], language[40];
	int own_box;
	int terminal;
	volatile sig_atomic_t running; /* a cell is running: Ctrl-C interrupts it */
	volatile sig_atomic_t cleared; /* Ctrl-C at the prompt: discard the typed text */
	uint64_t last_int_ns;
	pthread_mutex_t lock; /* of other */
	/* the cell */
	int64_t number;
	char at[64], status[16];
	int over, unread;
	uint64_t received_ns;
} repl = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the box and its context ---- */

/* With a warm interpreter, if the language has one. */
static int make_box(struct api_client *r)
{
	const struct lang *l = lang_named(repl.language);
	json_t *want = json_pack("{s:i, s:i}", "lifetime_ms", 24 * 3600 * 1000, "idle_ms",
				 3600 * 1000),
	       *doc;

	if (l && l->warm)
		json_object_set_new(want, "warm", json_string(l->warm));
	doc = api_client_json(r, "POST", "/v1/boxes", want);
	if (!doc)
		return r->status;
	snprintf(repl.box, sizeof(repl.box), "%s", api_client_text(doc, "id"));
	json_decref(doc);
	repl.own_box = 1;
	return 0;
}

static int make_context(struct api_client *r)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/contexts", repl.box);
	json_t *body = json_pack("{s:s}", "language", repl.language), *doc;

	if (args_has(repl.a, REPL_CWD))
		json_object_set_new(body, "cwd", json_string(args_text(repl.a, REPL_CWD, "")));
	doc = api_client_json(r, "POST", path, body);
	if (!doc) {
		api_client_explain_box(r, repl.box);
		return r->status;
	}
	snprintf(repl.context, sizeof(repl.context), "%s", api_client_text(doc, "id"));
	if (repl.terminal && !r->cli->quiet)
		printf("%s %s in box %s; Ctrl-C interrupts, Ctrl-D leaves\n", repl.language,
		       api_client_text(doc, "version"), repl.box);
	json_decref(doc);
	return 0;
}

static void clean_up(struct api_client *r)
{
	auto_free char *path =
		repl.own_box ? api_client_path("/v1/boxes/%s", repl.box)
			     : api_client_path("/v1/boxes/%s/contexts/%s", repl.box, repl.context);

	if (repl.own_box || repl.context[0])
		json_decref(api_client_json(r, "DELETE", path, NULL));
}

/* A request while a cell runs: on the second connection, which two threads use. */
static int repl_tell(const char *what, json_t *take_body)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/contexts/%s/", repl.box, repl.context);
	auto_buf struct buf full = { 0 };
	json_t *doc;

	buf_printf(&full, "%s%s", path, what);
	pthread_mutex_lock(&repl.lock);
	doc = api_client_json(&repl.other, "POST", buf_str(&full), take_body);
	pthread_mutex_unlock(&repl.lock);
	json_decref(doc);
	return doc ? 0 : -1;
}

/* ---- signals ---- */

static _Noreturn void repl_leave(int signo)
{
	pthread_mutex_lock(&repl.lock);
	clean_up(&repl.other);
	exit(128 + signo);
}

static void on_interrupt(void)
{
	uint64_t now = now_ns(), last = repl.last_int_ns;

	repl.last_int_ns = now;
	if (repl.running) {
		if (!repl.terminal && last && now - last < TWICE_MS * UINT64_C(1000000))
			repl_leave(SIGINT);
		repl_tell("interrupt", NULL);
	} else if (repl.terminal) {
		repl.cleared = 1;
		(void)!write(1, "\n>>> ", 5);
	} else {
		repl_leave(SIGINT);
	}
}

static void *control_thread(void *arg)
{
	struct signalfd_siginfo si;
	int fd = *(int *)arg;

	while (read(fd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo == SIGINT)
			on_interrupt();
		else
			repl_leave((int)si.ssi_signo);
	return NULL;
}

static int begin_control(struct api_client *r)
{
	static int fd;
	pthread_t thread;
	sigset_t set;

	if (api_client_again(&repl.other, r))
		return r->status = repl.other.status;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0 || pthread_create(&thread, NULL, control_thread, &fd) != 0)
		abort();
	pthread_detach(thread);
	return 0;
}

/* ---- what comes of a cell ---- */

static void put_output(const json_t *ev, int fd)
{
	const json_t *text = json_object_get(ev, "data");
	auto_buf struct buf bytes = { 0 };

	if (json_is_string(text))
		buf_add(&bytes, json_string_value(text), json_string_length(text));
	else
		(void)!base64_decode(&bytes, api_client_text(ev, "base64"),
				     strlen(api_client_text(ev, "base64")));
	if (bytes.len && api_client_write(fd, bytes.p, bytes.len) < 0)
		repl.unread = 1;
}

/* As text, if it has one; else its media type. */
static void put_result(const json_t *ev)
{
	json_t *data = json_object_get(ev, "data"), *text = json_object_get(data, "text/plain");
	const char *kind;
	json_t *v;

	if (json_is_string(text)) {
		repl.unread |= api_client_write(1, json_string_value(text),
						json_string_length(text)) < 0 ||
			       api_client_write(1, "\n", 1) < 0;
		return;
	}
	json_object_foreach(data, kind, v) dprintf(1, "<%s>\n", kind);
}

static char *read_answer(int secret)
{
	struct termios was, quiet;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int hidden = secret && tcgetattr(0, &was) == 0;

	if (hidden) {
		quiet = was;
		quiet.c_lflag &= ~(tcflag_t)ECHO;
		tcsetattr(0, TCSANOW, &quiet);
	}
	n = getline(&line, &room, stdin);
	if (hidden) {
		tcsetattr(0, TCSANOW, &was);
		(void)!write(1, "\n", 1);
	}
	if (n < 0) {
		free(line);
		clearerr(stdin);
		return NULL;
	}
	line[strcspn(line, "\n")] = 0;
	return line;
}

/* Stdin that is not a terminal was the cell itself: there is no further input. */
static void give_input(const json_t *ev)
{
	auto_free char *line = NULL;

	if (repl.terminal) {
		(void)!api_client_write(1, api_client_text(ev, "prompt"),
					strlen(api_client_text(ev, "prompt")));
		line = read_answer(json_is_true(json_object_get(ev, "password")));
	}
	repl_tell("input", line && json_string(line) ? json_pack("{s:s}", "text", line)
						     : json_pack("{s:b}", "end", 1));
}

static void put_end(const json_t *ev)
{
	const char *cause = api_client_text(ev, "cause"), *message = api_client_text(ev, "message"),
		   *hint = api_client_text(ev, "hint");

	if (json_is_true(json_object_get(ev, "truncated")))
		dprintf(2, "atoll: some output was left out\n");
	if (*cause)
		dprintf(2, "atoll: the cell was %s: %s\n", repl.status, *message ? message : cause);
	if (*hint)
		dprintf(2, "  %s\n", hint);
}

static void print_event(const char *type, const json_t *ev)
{
	if (!strcmp(type, "stdout") || !strcmp(type, "stderr"))
		put_output(ev, type[3] == 'o' ? 1 : 2);
	else if (!strcmp(type, "result"))
		put_result(ev);
	else if (!strcmp(type, "error"))
		dprintf(2, "%s\n", api_client_text(ev, "text"));
	else if (!strcmp(type, "end"))
		put_end(ev);
}

static int repl_on_event(void *ctx, json_t *ev)
{
	const char *type = api_client_text(ev, "type");

	(void)ctx;
	repl.received_ns = now_ns();
	snprintf(repl.at, sizeof(repl.at), "%s", api_client_text(ev, "at"));
	if (!strcmp(type, "start"))
		repl.number = api_client_int(ev, "cell", 0);
	if (!strcmp(type, "end")) {
		snprintf(repl.status, sizeof(repl.status), "%s", api_client_text(ev, "status"));
		repl.over = 1;
	}
	if (repl.r->cli->json) {
		api_client_print(ev);
		repl.unread |= fflush(stdout) != 0;
	} else {
		print_event(type, ev);
	}
	if (!strcmp(type, "input"))
		give_input(ev);
	return repl.unread;
}

/* ---- running one ---- */

/* The connection broke, but the cell still runs: continue after the last event. */
static int repl_reconnect(struct api_client *r, int status)
{
	while (!repl.over && !repl.unread && r->lost && repl.number &&
	       now_ns() - repl.received_ns < GIVE_UP_MS * UINT64_C(1000000)) {
		auto_free char *path =
			api_client_path("/v1/boxes/%s/contexts/%s/cells/%u/events?after=%s",
					repl.box, repl.context, (uint64_t)repl.number, repl.at);

		poll(NULL, 0, AGAIN_MS);
		status = api_client_lines(r, "GET", path, NULL, repl_on_event, NULL);
	}
	return status;
}

static int exit_status(void)
{
	return !strcmp(repl.status, "ok")            ? 0
	       : !strcmp(repl.status, "interrupted") ? 130
						     : STATUS_FAILED;
}

/* The cell's exit status; *wrong: the failure is one of atoll, and r has the error. */
static int run_cell(struct api_client *r, const char *code, size_t n, int *wrong)
{
	auto_free char *path =
		api_client_path("/v1/boxes/%s/contexts/%s/cells", repl.box, repl.context);
	json_t *text = json_stringn(code, n), *body;
	int status;

	*wrong = 1;
	if (!text)
		return api_client_usage(r, "the code is not UTF-8");
	body = json_pack("{s:o}", "code", text);
	if (args_has(repl.a, REPL_TIME))
		json_object_set_new(body, "timeout_ms",
				    json_integer((json_int_t)args_value(repl.a, REPL_TIME, 0)));
	else if (repl.terminal) /* a user at a terminal can press Ctrl-C: no default time limit */
		json_object_set_new(body, "timeout_ms", json_integer(UINT32_MAX));
	repl.over = 0;
	repl.number = 0;
	repl.received_ns = now_ns();
	repl.running = 1;
	status = api_client_lines(r, "POST", path, json_incref(body), repl_on_event, NULL);
	if (status &&
	    r->never) /* the connection was idle for too long, and the daemon has closed it */
		status = api_client_lines(r, "POST", path, json_incref(body), repl_on_event, NULL);
	json_decref(body);
	status = repl_reconnect(r, status);
	repl.running = 0;
	*wrong = !repl.over && !repl.unread;
	return *wrong ? (status ? status : (r->status = STATUS_OURS)) : exit_status();
}

/* ---- typing one ---- */

/* More open brackets than closed ones, outside of quotes; or the line ends in a way that needs
 * more. */
static int wants_more(const char *text, size_t n)
{
	int depth = 0;
	char quote = 0;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (c == '\\')
			i++;
		else if (quote)
			quote = c == quote || (c == '\n' && quote != '`') ? 0 : quote;
		else if (c == '"' || c == '\'' || c == '`')
			quote = c;
		else if (c == '#')
			i += strcspn(text + i, "\n");
		else if (strchr("([{", c))
			depth++;
		else if (strchr(")]}", c))
			depth--;
	}
	return depth > 0 || (n > 1 && text[n - 2] == '\\');
}

/* A block continues until an empty line. */
static int is_block(const struct buf *cell)
{
	const char *first = buf_str(cell);
	size_t line = strcspn(first, "\n");

	while (line && strchr(" \t\r", first[line - 1]))
		line--;
	/* The language of a driver is not known here; only few besides Python end a line like
	 * that. */
	return line &&
	       (!strcmp(repl.language, "python") || !strncmp(repl.language, "jupyter:", 8)) &&
	       (first[line - 1] == ':' || *first == '@');
}

static int is_blank(const char *line)
{
	return line[strspn(line, " \t\r\n")] == 0;
}

/* 0: the end of input. */
static int type_cell(struct buf *cell)
{
	auto_free char *line = NULL;
	size_t room = 0;
	ssize_t n;

	buf_cut(cell, 0);
	repl.cleared = 0;
	(void)!write(1, ">>> ", 4);
	while ((n = getline(&line, &room, stdin)) >= 0) {
		if (repl.cleared) {
			buf_cut(cell, 0);
			repl.cleared = 0;
		}
		if (!cell->len && is_blank(line)) {
			(void)!write(1, ">>> ", 4);
			continue;
		}
		if (cell->len + (size_t)n > CELL_MOST)
			return 1; /* the daemon reports it, too */
		buf_add(cell, line, (size_t)n);
		if (!wants_more(cell->p, cell->len) && (!is_block(cell) || is_blank(line)))
			return 1;
		(void)!write(1, "... ", 4);
	}
	(void)!write(1, "\n", 1);
	return cell->len != 0;
}

static int repl_converse(struct api_client *r)
{
	auto_buf struct buf cell = { 0 };
	int status = 0, wrong = 0;

	while (!wrong && !repl.unread && type_cell(&cell))
		status = run_cell(r, cell.p, cell.len, &wrong);
	return wrong ? status : 0;
}

/* All of stdin is one cell. */
static int exec_stdin(struct api_client *r)
{
	auto_buf struct buf cell = { 0 };
	int wrong;
	ssize_t n = 1;

	while (n > 0 && cell.len <= CELL_MOST) {
		n = read(0, buf_space(&cell, 65536), 65536);
		if (n > 0)
			buf_grew(&cell, (size_t)n);
	}
	if (n < 0)
		return api_client_usage(r, "read stdin: %s", strerror(errno));
	if (cell.len > CELL_MOST)
		return api_client_usage(r, "the cell has more than 4 MiB");
	return run_cell(r, buf_str(&cell), cell.len, &wrong);
}

static int in_box(struct api_client *r)
{
	int status = begin_control(r);

	if (!status)
		status = make_context(r);
	if (!status)
		status = repl.terminal ? repl_converse(r) : exec_stdin(r);
	clean_up(&repl.other);
	return status;
}

static int talk_to(struct api_client *r, const struct args *a)
{
	const char *box = args_text(a, REPL_BOX, NULL);
	int status;

	r->runs = 1;
	repl.r = r;
	repl.a = a;
	repl.terminal = isatty(0) && !r->cli->json;
	if (a->nwords != 1) {
		api_client_usage(r, "repl: missing language");
		cli_error_hint(&r->error, "type", "atoll repl python");
		return r->status;
	}
	snprintf(repl.language, sizeof(repl.language), "%s", a->words[0]);
	snprintf(repl.box, sizeof(repl.box), "%s", box ? box : "");
	status = box ? 0 : make_box(r);
	return status ? status : in_box(r);
}

static int run_repl(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, talk_to);
}

static const struct example examples[] = {
	{ "atoll repl python", "use a temporary box" },
	{ "atoll repl node --box demo", "use an existing box" },
	{ "echo 6*7 | atoll repl python", "run all of stdin as one cell" },
	{ "atoll repl python --json < cell.py", "print events, one line of JSON each" },
	{ "atoll repl jupyter:ir", "use a Jupyter kernel; atoll lang lists the installed ones" },
	{ 0 },
};

static const char notes[] =
	"A cell is a line, or several lines until all brackets are closed; a block of Python ends with an\n"
	"empty line. Results are shown as text, errors on stderr. Ctrl-C interrupts the running cell, or\n"
	"discards the typed text; Ctrl-D exits. If stdin is not a terminal, it is one cell, and the exit\n"
	"status is 0 for success, 1 for an error, 130 for an interrupted cell. The temporary box, or the\n"
	"interpreter in an existing box, ends with this command.";

const struct command command_repl = {
	.name = "repl",
	.group = "Run",
	.usage = "[FLAGS] LANGUAGE",
	.summary = "run cells in a stateful interpreter",
	.notes = notes,
	.words = "python node typescript bash r ruby php",
	.flags = flags,
	.nflags = REPL_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_repl,
};
