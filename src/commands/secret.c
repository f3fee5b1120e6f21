/* secret.c - `atoll secret`: values that programs in boxes use and that no command prints. */
#include "base/base64.h"
#include "base/cleanup.h"
#include "cli/list_output.h"
#include "commands/commands.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { SECRET_HOST, SECRET_NFLAGS };
enum { SECRET_MOST = 64 << 10 };

static const struct flag flags[SECRET_NFLAGS] = {
	[SECRET_HOST] = { "host", 0, FLAG_WORDS, "HOST",
			  "set: only as a placeholder in requests to this host; may be repeated" },
};

static void secret_row(struct table *t, json_t *v)
{
	json_t *hosts = json_object_get(v, "hosts"), *one;
	struct buf all = { 0 };
	char text[24];
	size_t i;

	json_array_foreach(hosts, i, one)
		buf_printf(&all, "%s%s", i ? " " : "", json_string_value(one));
	table_cell(t, "%s", api_client_text(v, "name"));
	table_cell(t, "%lld", (long long)api_client_int(v, "version", 0));
	table_cell(t, "%s", all.len ? buf_str(&all) : "-");
	table_cell(t, "%s", api_client_since(text, v, "updated"));
	buf_fini(&all);
}

static int secret_list(struct api_client *r)
{
	static const char *const columns[] = { "SECRET", ">VERSION", "HOSTS", ">CHANGED", NULL };

	return list_output_show(r, "/v1/secrets",
				&(struct list_output){ columns, "name", secret_row });
}

static void secret_interrupted(int signo)
{
	(void)signo; /* ppoll() returns, and the terminal is restored */
}

/* Waits for a line. The signals are blocked except while it waits: one that comes before is not lost. */
static ssize_t secret_read_line(const sigset_t *open, struct buf *out)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	if (ppoll(&in, 1, NULL, open) < 0)
		return -1;
	return read(0, buf_space(out, SECRET_MOST + 2), SECRET_MOST + 2);
}

/* One line, without echo. */
static int secret_prompt(const char *name, struct buf *out)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction end = { .sa_handler = secret_interrupted }, before[ARRAY_LEN(signals)];
	struct termios was, quiet;
	sigset_t ours, open;
	ssize_t n;

	if (tcgetattr(0, &was) < 0)
		return -1;
	quiet = was;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	sigemptyset(&ours);
	for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&ours, signals[i]);
	sigprocmask(SIG_BLOCK, &ours, &open);
	for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &end, &before[i]);
	tcsetattr(0, TCSAFLUSH, &quiet);
	fprintf(stderr, "atoll: value of %s (not shown): ", name);
	n = secret_read_line(&open, out);
	tcsetattr(0, TCSAFLUSH, &was);
	for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, &open, NULL);
	fputc('\n', stderr);
	if (n < 0)
		return -1;
	buf_grew(out, (size_t)n);
	if (out->len && out->p[out->len - 1] == '\n')
		buf_cut(out, out->len - 1);
	return 0;
}

/* Up to the end, and no further than one byte more than is allowed. The newline at the end of one line,
 * as of `echo`, is not part of the value. */
static int secret_read(struct buf *out)
{
	ssize_t n = 1;

	buf_space(out, SECRET_MOST + 2);
	while (out->len <= SECRET_MOST &&
	       (n = read(0, buf_space(out, 1), SECRET_MOST + 1 - out->len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		buf_grew(out, (size_t)n);
	}
	if (out->len > 1 && memchr(out->p, '\n', out->len) == out->p + out->len - 1)
		buf_cut(out, out->len - 1);
	return 0;
}

static json_t *secret_body(const struct args *a, const struct buf *value)
{
	json_t *doc = json_object(), *hosts = json_array();
	struct buf coded = { 0 };

	base64_encode(&coded, value->p, value->len);
	json_object_set_new(doc, "base64", json_string(buf_str(&coded)));
	explicit_bzero(coded.p, coded.len);
	buf_fini(&coded);
	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == SECRET_HOST)
			json_array_append_new(hosts, json_string(a->given[i].text));
	json_object_set_new(doc, "hosts", hosts);
	return doc;
}

static int secret_set(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/secrets/%s", a->words[1]);
	auto_buf struct buf value = { 0 };
	char shown[SHOWN];
	json_t *doc;

	if ((isatty(0) ? secret_prompt(cli_error_shown(a->words[1], shown), &value)
		       : secret_read(&value)) < 0) {
		api_client_usage(r, "cannot read the value from stdin: %s", strerror(errno));
		return r->status;
	}
	if (value.len == 0 || value.len > SECRET_MOST) {
		api_client_usage(r, "%s",
				 value.len ? "the value has more than 65536 bytes, the maximum"
					   : "the value is empty; at least one byte is needed");
		cli_error_hint(&r->error, "type", "printf %%s \"$VALUE\" | atoll secret set %s",
			       cli_error_shown(a->words[1], shown));
		return r->status;
	}
	doc = api_client_json(r, "PUT", path, secret_body(a, &value));
	explicit_bzero(value.p, value.room);
	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	json_decref(doc);
	return 0;
}

static int secret_drop(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/secrets/%s", a->words[1]);
	json_t *doc = api_client_json(r, "DELETE", path, NULL);

	json_decref(doc);
	return doc ? 0 : r->status;
}

static int secret_secret(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";

	if (!strcmp(what, "ls") && a->nwords < 2)
		return secret_list(r);
	if (!strcmp(what, "set") && a->nwords == 2 && !strchr(a->words[1], '='))
		return secret_set(r, a);
	if (!strcmp(what, "rm") && a->nwords == 2)
		return secret_drop(r, a);
	if (!strcmp(what, "set") && a->nwords > 1) {
		/* The argument may be the value: it is not repeated. */
		api_client_usage(r,
				 "secret set: the value is read from stdin, not from an argument, "
				 "which other users can see");
		cli_error_hint(&r->error, "type", "printf %%s \"$VALUE\" | atoll secret set NAME");
		return r->status;
	}
	api_client_usage(r, "secret: missing or unknown subcommand");
	cli_error_hint(&r->error, "type", "atoll secret set NAME | ls | rm NAME");
	return r->status;
}

static int run_secret(const struct cli *cli, const struct args *a)
{
	if (a->nwords == 2 && !strcmp(a->words[0], "set"))
		api_client_prepare(cli); /* before stdin is read */
	return api_client_command(cli, a, secret_secret);
}

static const struct example examples[] = {
	{ "atoll secret set API_KEY", "type the value without echo" },
	{ "printf %s \"$KEY\" | atoll secret set API_KEY --host api.example.com",
	  "only for requests to this host" },
	{ "atoll new demo --secret API_KEY", "create a box with the variable API_KEY" },
	{ "atoll secret rm API_KEY", "delete it" },
	{ 0 },
};

const struct command command_secret = {
	.name = "secret",
	.group = "Boxes",
	.usage = "set NAME [--host HOST] | ls | rm NAME",
	.summary = "manage values that programs use and that no command prints",
	.notes = "The value is read from stdin: 1 byte to 64 KiB. Setting it again replaces it.",
	.words = "set ls rm",
	.flags = flags,
	.nflags = SECRET_NFLAGS,
	.max_words = 3,
	.examples = examples,
	.run = run_secret,
};
