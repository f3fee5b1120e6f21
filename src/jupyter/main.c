/* main.c - a Jupyter kernel as an interpreter of ours: the driver of the languages jupyter:NAME.
 *
 *   server           driver                                     kernel (its own process group)
 *   {"op":"run"} --> execute_request                   shell -->
 *                                                      iopub <-- status busy, execute_input
 *   stdout,      <-- written to descriptors 1 and 2    iopub <-- stream
 *   result,error <-- a line on the channel             iopub <-- display_data, execute_result, error
 *   input        <--                                   stdin <-- input_request
 *   {"op":"input"} -->                        input_reply -->
 *   SIGINT       --> SIGINT, or interrupt_request    control -->
 *   end          <--                            shell, iopub <-- execute_reply and status idle
 *
 * The driver runs in the box as its user, like the kernel. The server does not trust a driver: a
 * broken one affects only its own context. The kernel is a child process. When it ends, the driver
 * ends with the same status, so that the server reports the same cause as for any program. The
 * kernel also ends when the driver ends (launch.h). Output of the kernel on its descriptors 1 and 2
 * is passed on, except that of IPython, which sends the same output as messages; its descriptors
 * are read only to report why it died. Languages with a driver of their own do not use this. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "jupyter/cell.h"
#include "jupyter/kernel.h"
#include "jupyter/driver_events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

enum {
	CHANNEL = 3,
	LINE_MOST = 16 << 20,
	READ_MOST = 64 * 1024,
	TURN = 64,       /* messages of a socket before the others are read */
	INFO_MS = 100,   /* until the next check that its output arrives */
	BEGIN_MS = 1000, /* wait for the start of a cell before an interrupt */
	YOUNG_MS = 100,  /* delay until the kernel handles an interrupt */
	HALF_MS = 5000,  /* between the reply and the status idle, in any order ... */
	CUT_MS = 300,  /* ... and if it was interrupted: that may have been before it could reply */
	LAST_MS = 100, /* for the last output of a kernel that exited */
	EARLY_OUTPUT = 4096, /* bytes of stored output, reported only if the kernel dies */
};
#define MS UINT64_C(1000000)

struct jupyter_driver {
	char language[SPEC_NAME + sizeof(SPEC_PREFIX)];
	struct kernel_spec spec;
	struct launch launch;
	struct kernel kernel;
	struct kernel_cell cell;
	int channel, signals;
	struct buf line; /* of the channel, unfinished */
	int too_long;    /* the line is too long, and its rest is dropped */
	int iopub_ready; /* iopub works: no message is lost from now on */
	int ready;
	json_t *info;      /* its kernel_info, or NULL */
	int echoes;        /* its output on descriptors is also sent as messages */
	struct buf words;  /* the beginning of the output of this cell that was not forwarded */
	int stop;          /* the cell must be interrupted */
	int complained;    /* result messages of this cell */
	uint64_t asked_ns; /* for its info */
	uint64_t sent_ns;  /* the cell was */
	uint64_t begun_ns; /* it has reported this for the cell */
	uint64_t half_ns;  /* one of the two messages of the end has arrived */
};

static _Noreturn void give_up(const struct err *e)
{
	dprintf(2, "jupyter: %s\n", e->msg);
	exit(1);
}

/* ---- telling ---- */

static void write_all(int fd, const struct buf *bytes)
{
	for (size_t at = 0; at < bytes->len;) {
		ssize_t n = write(fd, bytes->p + at, bytes->len - at);

		if (n < 0 && errno != EINTR && fd > 2)
			exit(1); /* the host has disconnected */
		if (n < 0 && errno != EINTR)
			return; /* closed by a cell: then it is not read */
		at += n > 0 ? (size_t)n : 0;
	}
}

/* 0: no more for now. */
static int pass_on(struct jupyter_driver *d, int stream)
{
	auto_buf struct buf bytes = { 0 };
	ssize_t n = read(d->launch.raw[stream], buf_space(&bytes, READ_MOST), READ_MOST);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		own_close_fd(&d->launch.raw[stream]);
	if (n <= 0)
		return 0;
	buf_grew(&bytes, (size_t)n);
	if (!d->echoes)
		write_all(1 + stream, &bytes);
	else if (stream == 1 && d->words.len < EARLY_OUTPUT)
		buf_add(&d->words, bytes.p, bytes.len < EARLY_OUTPUT ? bytes.len : EARLY_OUTPUT);
	return 1;
}

static void pass_all_on(struct jupyter_driver *d)
{
	for (int stream = 0; stream < 2; stream++)
		for (int turn = 0; turn < TURN && d->launch.raw[stream] >= 0 && pass_on(d, stream);
		     turn++)
			;
}

/* Printed output is sent first: a channel line follows it. */
static void jupyter_say(struct jupyter_driver *d, struct said *s)
{
	if (s->channel.len)
		pass_all_on(d);
	write_all(1, &s->out);
	write_all(2, &s->err);
	write_all(d->channel, &s->channel);
	said_fini(s);
}

static void jupyter_complain(struct jupyter_driver *d, const struct err *e)
{
	if (!d->complained)
		dprintf(2, "jupyter: a message was passed over: %s\n", e->msg);
	d->complained = 1;
}

/* ---- messages of the server ---- */

static void jupyter_refuse(struct jupyter_driver *d, const char *id, const char *name,
			   const char *why)
{
	struct said s = { 0 };

	driver_event_trouble(&s.channel, id, name, why);
	driver_event_end(&s.channel, id, "error", d->cell.count);
	jupyter_say(d, &s);
}

static void run_cell(struct jupyter_driver *d, const char *id, json_t *code)
{
	char request[JUPYTER_MSG_ID];
	struct err e;

	/* stop_on_error is off: only one cell is in progress at any time. */
	if (kernel_send(&d->kernel, PORT_SHELL, "execute_request", NULL,
			json_pack("{s:O, s:b, s:b, s:{}, s:b, s:b}", "code", code, "silent", 0,
				  "store_history", 1, "user_expressions", "allow_stdin", 1,
				  "stop_on_error", 0),
			request, &e) < 0)
		give_up(&e);
	cell_begin(&d->cell, id, request);
	d->sent_ns = now_ns();
	d->begun_ns = d->half_ns = 0;
	d->stop = d->complained = 0;
	buf_cut(&d->words, 0);
}

static void answer_cell(struct jupyter_driver *d, const json_t *text)
{
	struct err e;

	if (!d->cell.asks)
		return;
	/* Kernels treat this character as end of input, like a terminal. */
	if (kernel_send(&d->kernel, PORT_STDIN, "input_reply", d->cell.asks,
			json_is_string(text) ? json_pack("{s:O}", "value", text)
					     : json_pack("{s:s}", "value", "\004"),
			NULL, &e) < 0)
		give_up(&e);
	json_decref(d->cell.asks);
	d->cell.asks = NULL;
}

static int is_cell_id(const char *id)
{
	return id && *id && strlen(id) < 20 && strspn(id, "0123456789") == strlen(id);
}

static void on_line(struct jupyter_driver *d, const char *line, size_t n)
{
	json_t *doc = json_loadb(line, n, JSON_ALLOW_NUL, NULL),
	       *code = json_object_get(doc, "code");
	const char *op = json_string_value(json_object_get(doc, "op")),
		   *id = json_string_value(json_object_get(doc, "id"));

	if (!op || !is_cell_id(id))
		dprintf(2, "jupyter: a line that is not a message was passed over\n");
	else if (!strcmp(op, "input") && !strcmp(id, d->cell.id))
		answer_cell(d, json_object_get(doc, "text"));
	else if (!strcmp(op, "run") && (!json_is_string(code) || cell_runs(&d->cell)))
		dprintf(2, "jupyter: a cell that cannot be run now was passed over\n");
	else if (!strcmp(op, "run") && json_object_size(json_object_get(doc, "env")))
		jupyter_refuse(
			d, id, "Unsupported",
			"a Jupyter kernel has no variables for one cell: set them for its context");
	else if (!strcmp(op, "run"))
		run_cell(d, id, code);
	json_decref(doc);
}

/* The line is too long to be stored, but its cell must get an error: {"op":"run","id":"7", ... */
static void on_long_line(struct jupyter_driver *d)
{
	char id[24] = "";

	if (sscanf(buf_str(&d->line), "{\"op\":\"run\",\"id\":\"%19[0-9]\"", id) == 1)
		jupyter_refuse(d, id, "CellTooLarge", "a cell has at most 16 MiB");
}

static void take_lines(struct jupyter_driver *d)
{
	char *end;

	while ((end = d->line.len ? memchr(d->line.p, '\n', d->line.len) : NULL)) {
		size_t n = (size_t)(end - d->line.p);

		if (d->too_long)
			on_long_line(d);
		else if (n)
			on_line(d, d->line.p, n);
		d->too_long = 0;
		memmove(d->line.p, end + 1, d->line.len - n - 1);
		buf_cut(&d->line, d->line.len - n - 1);
	}
	if (d->line.len > LINE_MOST || d->too_long) {
		buf_cut(&d->line, d->line.len < 64 ? d->line.len : 64);
		d->too_long = 1;
	}
}

static void read_channel(struct jupyter_driver *d)
{
	ssize_t n = read(d->channel, buf_space(&d->line, READ_MOST), READ_MOST);

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		exit(0); /* there is no host */
	if (n > 0) {
		buf_grew(&d->line, (size_t)n);
		take_lines(d);
	}
}

/* ---- interrupts ---- */

/* Between two cells IPython ignores the signal, and R is killed by it; both report the start of
 * a cell shortly before they have installed their handler. */
static int may_interrupt(const struct jupyter_driver *d, uint64_t now)
{
	return d->begun_ns ? now - d->begun_ns >= YOUNG_MS * MS : now - d->sent_ns >= BEGIN_MS * MS;
}

static void jupyter_interrupt(struct jupyter_driver *d, uint64_t now)
{
	struct err e;

	if (!d->stop || !may_interrupt(d, now))
		return;
	d->stop = 0;
	d->cell.interrupted = 1;
	if (!d->spec.by_message)
		kill(-d->launch.kernel, SIGINT);
	else if (kernel_send(&d->kernel, PORT_CONTROL, "interrupt_request", NULL, json_object(),
			     NULL, &e) < 0)
		give_up(&e);
}

/* ---- what the kernel says ---- */

static void on_info(struct jupyter_driver *d, const json_t *content)
{
	const char *program = json_string_value(json_object_get(content, "implementation"));

	d->echoes = program && !strcmp(program, "ipython");
	json_decref(d->info);
	d->info = json_incref((json_t *)content);
}

static void jupyter_hear(struct jupyter_driver *d, int port, const struct jupyter_msg *m,
			 struct said *to)
{
	int ours = kernel_is_ours(&d->kernel, m->parent_id);

	d->iopub_ready |= port == PORT_IOPUB;
	if (port == PORT_SHELL && ours && !strcmp(m->type, "kernel_info_reply"))
		on_info(d, m->content);
	else if (port == PORT_IOPUB && ours && !strcmp(m->type, "stream"))
		cell_stream(m, to);
	else if (port != PORT_CONTROL && cell_runs(&d->cell) &&
		 !strcmp(m->parent_id, d->cell.request))
		kernel_cell_on_message(&d->cell, m, to);
	if (d->cell.begun && !d->begun_ns)
		d->begun_ns = now_ns();
	if (d->cell.seen && !d->half_ns)
		d->half_ns = now_ns();
	cell_finish(&d->cell, 0, to);
}

/* Returns how many came. */
static unsigned listen_to(struct jupyter_driver *d, int port)
{
	unsigned n = 0;
	int rc = 1;

	for (; n < TURN && rc; n += rc != 0) {
		struct said s = { 0 };
		struct jupyter_msg m;
		struct err e;

		rc = kernel_take(&d->kernel, port, &m, &e);
		if (rc < 0)
			jupyter_complain(d, &e);
		if (rc <= 0)
			continue;
		jupyter_hear(d, port, &m, &s);
		jupyter_msg_fini(&m);
		jupyter_say(d, &s);
	}
	return n;
}

/* ---- its beginning and its end ---- */

static const char *version_in(const json_t *info)
{
	const json_t *language = json_object_get(info, "language_info");
	const char *version = json_string_value(json_object_get(language, "version"));

	return version ? version : "";
}

/* iopub drops messages that were sent before the subscription took effect, so kernel_info is requested
 * until a message arrives on iopub, too. */
static void ask_info(struct jupyter_driver *d, uint64_t now)
{
	struct said s = { 0 };
	struct err e;

	if (d->ready)
		return;
	if (d->info && d->iopub_ready) {
		d->ready = 1;
		driver_event_ready(&s.channel, d->language, version_in(d->info));
		jupyter_say(d, &s);
	} else if (!d->asked_ns || (d->info && now - d->asked_ns > INFO_MS * MS)) {
		d->asked_ns = now;
		if (kernel_send(&d->kernel, PORT_SHELL, "kernel_info_request", NULL, json_object(),
				NULL, &e) < 0)
			give_up(&e);
	}
}

static _Noreturn void end_as(const struct jupyter_driver *d, const siginfo_t *how)
{
	sigset_t all;

	if (!d->ready)
		dprintf(2, "jupyter: the kernel '%s' ended before it could be spoken to\n",
			d->spec.name);
	if (how->si_code == CLD_EXITED)
		_exit(!d->ready && how->si_status == 0 ? 1 : how->si_status);
	signal(how->si_status, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	raise(how->si_status);
	_exit(128 + how->si_status);
}

static void look_after(struct jupyter_driver *d)
{
	struct zmq_item last = { .socket = d->kernel.socket[PORT_IOPUB], .events = ZMQ_POLLIN };
	uint64_t until = now_ns() + LAST_MS * MS;
	siginfo_t how;

	if (!launch_ended(&d->launch, &how))
		return;
	while (now_ns() < until && d->kernel.zmq.poll(&last, 1, 10) > 0)
		listen_to(d, PORT_IOPUB);
	listen_to(d, PORT_SHELL);
	pass_all_on(d);
	write_all(2, &d->words);
	end_as(d, &how);
}

static void on_signal(struct jupyter_driver *d)
{
	struct signalfd_siginfo si;

	if (read(d->signals, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo == SIGINT && cell_runs(&d->cell))
		d->stop = 1;
	if (si.ssi_signo == SIGCHLD)
		look_after(d);
}

/* ---- the loop ---- */

static uint64_t half_ms(const struct jupyter_driver *d)
{
	return d->cell.interrupted ? CUT_MS : HALF_MS;
}

static void jupyter_due(struct jupyter_driver *d)
{
	uint64_t now = now_ns();
	struct said s = { 0 };

	ask_info(d, now);
	if (!cell_runs(&d->cell))
		return;
	jupyter_interrupt(d, now);
	cell_finish(&d->cell, d->half_ns && now - d->half_ns > half_ms(d) * MS, &s);
	jupyter_say(d, &s);
}

static long patience_ms(const struct jupyter_driver *d)
{
	if (!d->ready)
		return INFO_MS;
	if (!cell_runs(&d->cell))
		return -1;
	return d->stop ? 20 : d->half_ns ? (long)half_ms(d) / 10 : -1;
}

static _Noreturn void jupyter_drive(struct jupyter_driver *d)
{
	static const int ports[] = { PORT_IOPUB, PORT_SHELL, PORT_STDIN, PORT_CONTROL };
	enum { FDS = 4 };

	for (;;) {
		struct zmq_item items[FDS + ARRAY_LEN(ports)] = {
			{ .fd = d->channel, .events = ZMQ_POLLIN },
			{ .fd = d->signals, .events = ZMQ_POLLIN },
			{ .fd = d->launch.raw[0], .events = ZMQ_POLLIN },
			{ .fd = d->launch.raw[1], .events = ZMQ_POLLIN },
		};

		for (unsigned i = 0; i < ARRAY_LEN(ports); i++)
			items[FDS + i] = (struct zmq_item){ .socket = d->kernel.socket[ports[i]],
							    .events = ZMQ_POLLIN };
		jupyter_due(d);
		if (d->kernel.zmq.poll(items, ARRAY_LEN(items), patience_ms(d)) < 0 &&
		    errno != EINTR)
			exit(1);
		/* A cell before an interrupt: if both have arrived, the interrupt is for this
		 * cell. */
		if (items[0].revents)
			read_channel(d);
		if (items[1].revents)
			on_signal(d);
		for (int stream = 0; stream < 2; stream++)
			if (items[2 + stream].revents && d->launch.raw[stream] >= 0)
				(void)!pass_on(d, stream);
		for (unsigned i = 0; i < ARRAY_LEN(ports); i++)
			if (items[FDS + i].revents)
				listen_to(d, ports[i]);
	}
}

static int jupyter_begin(struct jupyter_driver *d, const char *name, struct err *e)
{
	struct spec_places places;
	sigset_t ours;

	snprintf(d->language, sizeof(d->language), SPEC_PREFIX "%.*s", SPEC_NAME, name);
	/* Code in the kernel has the same user: it must not trace this process. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	d->channel = fcntl(CHANNEL, F_DUPFD_CLOEXEC, 10);
	if (d->channel < 0)
		return err_set(e, ERR_INVALID,
			       "its host starts it; there is nothing to be done by hand");
	close(CHANNEL);
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	d->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	spec_places(&places, getenv("HOME"));
	if (d->signals < 0)
		return err_sys(e, "signalfd");
	if (spec_find(&d->spec, &places, name, e) < 0 || kernel_init(&d->kernel, e) < 0 ||
	    launch_init(&d->launch, d->spec.name, e) < 0 ||
	    launch_start(&d->launch, &d->spec, &ours, e) < 0 ||
	    kernel_open(&d->kernel, &d->launch, e) < 0)
		return -1;
	return 0;
}

static int jupyter_list(void)
{
	struct spec_places places;
	json_t *all;

	spec_places(&places, getenv("HOME"));
	all = spec_json(&places);
	json_dumpf(all, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(all);
	return 0;
}

int main(int argc, char **argv)
{
	static struct jupyter_driver d;
	struct err e;

	if (argc != 2) {
		fputs("usage: jupyter NAME | --list\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--list"))
		return jupyter_list();
	if (jupyter_begin(&d, argv[1], &e) < 0)
		give_up(&e);
	jupyter_drive(&d);
}
