/* copied.c - runs a program in a copy of its box: it is captured before it does what its arguments say, and continues in
 * another box.
 *
 * copied [-d] [--mem SIZE] [--disk SIZE] [--files N] [--pids N] [--cpu N] [--cold] PROBE WORD...
 *
 * -d       the image goes to a file, the first box and the zygotes end, and the image is read from the file again
 * --cold   for the command line of `atoll run`: copies are never taken from the pool
 *
 * PROBE is a file of this host. It is put into the first box and runs as `probe later WORD...` (tests/probe/probe.c), which
 * waits for a byte. When the copy is complete, the first box and the zygotes have been ended; then the copy gets the byte, and after it the
 * stdin of this process. Exit status: that of the copy, 128 + signal, or 125 when there is no copy; the reason is on
 * stderr then. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/units.h"
#include "client/box_handle.h"
#include "client/files.h"
#include "client/keeper_sync.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REFUSED = 125, WORDS = 400, CHUNK = 4096 };

static const char team[] = "tests";

struct copied {
	struct keeper_sync keeper;
	struct box_handle source, copy;
	struct wire_limits limits;
	char id[ID_MAX + 1]; /* of checkpoint and image */
	int by_disk;
	uint32_t ref;  /* of the exec, in both boxes */
	uint64_t from; /* bytes of stdout before the capture */
	char **program;
};

static int parse_number(const char *text, uint64_t *out, struct err *e)
{
	uint32_t n;

	if (units_parse_count(text, UINT32_MAX, &n, e) < 0)
		return -1;
	*out = n;
	return 0;
}

static int parse(struct copied *c, int argc, char **argv, struct err *e)
{
	static const struct option long_options[] = {
		{ "mem", 1, NULL, 'm' },
		{ "disk", 1, NULL, 's' },
		{ "files", 1, NULL, 'f' },
		{ "pids", 1, NULL, 'p' },
		{ "cpu", 1, NULL, 'c' },
		{ "cold", 0, NULL, 'C' },
		{ 0 },
	};
	int flag, rc = 0;

	while (rc == 0 && (flag = getopt_long(argc, argv, "+d", long_options, NULL)) >= 0) {
		switch (flag) {
		case 'd':
			c->by_disk = 1;
			break;
		case 'm':
			rc = units_parse_size(optarg, &c->limits.mem_bytes, e);
			break;
		case 's':
			rc = units_parse_size(optarg, &c->limits.disk_bytes, e);
			break;
		case 'f':
			rc = parse_number(optarg, &c->limits.disk_files, e);
			break;
		case 'p':
			rc = units_parse_count(optarg, UINT32_MAX, &c->limits.pids, e);
			break;
		case 'c':
			rc = units_parse_cpus(optarg, &c->limits.cpu_milli, e);
			break;
		case 'C':
			break;
		default:
			rc = err_set(e, ERR_INVALID, "see the top of copied.c");
		}
	}
	c->program = argv + optind;
	if (rc == 0 && (optind >= argc || argc - optind > WORDS - 3))
		rc = err_set(e, ERR_INVALID, "see the top of copied.c");
	return rc;
}

/* ---- the source ---- */

static int source_put(struct copied *c, struct err *e)
{
	auto_fd int fd = open(c->program[0], O_RDONLY | O_CLOEXEC);
	struct files f;
	int rc;

	if (fd < 0)
		return err_sys(e, "open %s", c->program[0]);
	if (files_open(&f, &c->source, e) < 0)
		return -1;
	rc = files_put(&f, fd, "probe", 0755, e);
	files_close(&f);
	return rc;
}

/* Until the program waits. */
static int source_wait(struct copied *c, struct err *e)
{
	_Alignas(8) static char buf[WIRE_MAX];
	const struct frame *f = (const struct frame *)buf;

	for (;;) {
		unsigned nfds = 0;
		int n = sock_recv(c->source.init, buf, NULL, &nfds, e);

		if (n <= 0)
			return n < 0 ? -1 : err_set(e, ERR_SYS, "the first box has ended");
		if (f->type == WIRE_ERROR)
			return wire_error_read((const struct wire_error *)buf, e);
		if (f->ref != c->ref || (f->type != WIRE_OUTPUT && f->type != WIRE_EXIT))
			continue;
		if (f->type == WIRE_EXIT)
			return err_set(e, ERR_SYS, "the program has ended before its capture");
		c->from += (size_t)n - sizeof(struct wire_output);
		if (memchr(buf + sizeof(struct wire_output), '\n',
			   (size_t)n - sizeof(struct wire_output)))
			return 0;
	}
}

static int source_start(struct copied *c, struct err *e)
{
	const struct wire_create want = { .head.flags = WIRE_CREATE_COLD,
					  .template = "base",
					  .limits = c->limits };
	const char *argv[WORDS] = { "./probe", "later" };
	const struct box_command cmd = { .argv = argv,
					 .flags = WIRE_START_STDIN,
					 .credit = UINT64_MAX };

	for (unsigned i = 1; c->program[i]; i++)
		argv[i + 1] = c->program[i];
	if (boxh_create(&c->keeper, &c->source, &want, e) < 0)
		return -1;
	/* The box ends with this process in every case. */
	if (boxh_kill_on_close(&c->source, e) < 0 || source_put(c, e) < 0 ||
	    boxh_start(&c->source, &cmd, &c->ref, e) < 0)
		return -1;
	return source_wait(c, e);
}

/* ---- the image ---- */

static int ask_image(struct copied *c, uint8_t type, uint16_t flags, const char *box, struct err *e)
{
	_Alignas(8) static char reply[WIRE_MAX];
	struct wire_image ask = { .head = sock_head(type, 0) };
	struct answer a = { .want = type == WIRE_IMAGE_DROP ? WIRE_DONE : WIRE_IMAGE,
			    .to = reply,
			    .room = sizeof(reply) };

	ask.head.flags = flags;
	snprintf(ask.id, sizeof(ask.id), "%s", c->id);
	snprintf(ask.box, sizeof(ask.box), "%s", box);
	return link_ask(&c->keeper, &ask, sizeof(ask), &a, e);
}

static int ask_file(struct copied *c, uint8_t type, struct err *e)
{
	_Alignas(8) static char reply[WIRE_MAX];
	struct wire_image_file ask = { .head = sock_head(type, 0) };
	struct answer a = { .want = WIRE_IMAGE, .to = reply, .room = sizeof(reply) };

	snprintf(ask.id, sizeof(ask.id), "%s", c->id);
	snprintf(ask.team, sizeof(ask.team), "%s", team);
	return link_ask(&c->keeper, &ask, sizeof(ask), &a, e);
}

static int take_files(struct copied *c, struct err *e)
{
	struct wire_checkpointed got;
	struct wire_checkpoint ask = { .head = sock_head(WIRE_CHECKPOINT, 0),
				       .bytes_most = UINT64_C(1) << 40,
				       .files_most = 1 << 20 };
	struct answer a = { .want = WIRE_CHECKPOINTED, .to = &got, .room = sizeof(got) };

	snprintf(ask.id, sizeof(ask.id), "%s", c->id);
	snprintf(ask.box, sizeof(ask.box), "%s", c->source.about.id);
	return link_ask(&c->keeper, &ask, sizeof(ask), &a, e);
}

static int end_source(struct copied *c, struct err *e)
{
	int rc = boxh_kill(&c->keeper, c->source.about.id, NULL, e);

	boxh_close(&c->source);
	return rc;
}

static int capture(struct copied *c, struct err *e)
{
	if (ask_image(c, WIRE_IMAGE_TAKE, c->by_disk ? WIRE_IMAGE_STOP : 0, c->source.about.id, e) <
		    0 ||
	    take_files(c, e) < 0 || ask_image(c, WIRE_IMAGE_WAIT, 0, "", e) < 0)
		return err_in(e, "capture");
	if (!c->by_disk)
		return 0;
	if (ask_file(c, WIRE_IMAGE_SAVE, e) < 0 || end_source(c, e) < 0 ||
	    ask_image(c, WIRE_IMAGE_DROP, 0, "", e) < 0 || ask_file(c, WIRE_IMAGE_LOAD, e) < 0)
		return err_in(e, "the file of the image");
	return 0;
}

/* ---- the copy ---- */

static int copy_start(struct copied *c, struct err *e)
{
	struct wire_create want = {
		.head.flags = WIRE_CREATE_COLD, .template = "base", .limits = c->limits, .nchain = 1
	};

	snprintf(want.chain[0], sizeof(want.chain[0]), "%s", c->id);
	if (boxh_create(&c->keeper, &c->copy, &want, e) < 0)
		return -1;
	if (boxh_kill_on_close(&c->copy, e) < 0 ||
	    ask_image(c, WIRE_IMAGE_START, 0, c->copy.about.id, e) < 0 ||
	    (!c->by_disk && end_source(c, e) < 0))
		return err_in(e, "copy");
	return ask_image(c, WIRE_IMAGE_DROP, WIRE_IMAGE_FILE, "", e);
}

static int copy_attach(struct copied *c, struct err *e)
{
	struct wire_output_window f = { .head = sock_head(WIRE_ATTACH, c->ref),
					.until = UINT64_MAX };

	for (f.stream = 0; f.stream < 2; f.stream++) {
		f.head.flags = f.stream ? 0 : WIRE_ATTACH_MORE;
		f.from = f.stream ? 0 : c->from;
		if (sock_send(c->copy.init, &f, sizeof(f), NULL, 0, NULL, 0, e) < 0)
			return -1;
	}
	return boxh_stdin(&c->copy, c->ref, "g", 1, e);
}

/* 1: the program has ended, *out has how. */
static int copy_receive(struct copied *c, uint64_t *room, struct wire_exit *out, struct err *e)
{
	_Alignas(8) static char buf[WIRE_MAX];
	const struct frame *f = (const struct frame *)buf;
	const struct wire_output *o = (const struct wire_output *)buf;
	unsigned nfds = 0;
	int n = sock_recv(c->copy.init, buf, NULL, &nfds, e);

	if (n <= 0)
		return n < 0 ? -1 : err_set(e, ERR_SYS, "the box has ended");
	if (f->type == WIRE_ERROR)
		return wire_error_read((const struct wire_error *)buf, e);
	if (f->ref != c->ref)
		return 0;
	if (f->type == WIRE_STDIN_WINDOW && !(f->flags & WIRE_STDIN_CHANNEL))
		*room = ((const struct wire_stdin_window *)buf)->until;
	if (f->type == WIRE_OUTPUT && o->stream < 2 &&
	    write((int)o->stream + 1, o + 1, (size_t)n - sizeof(*o)) < 0)
		return err_sys(e, "write output");
	if (f->type == WIRE_EXIT)
		memcpy(out, buf, sizeof(*out));
	return f->type == WIRE_EXIT;
}

static int copy_send(struct copied *c, int *in, uint64_t *sent, struct err *e)
{
	char bytes[CHUNK];
	ssize_t n = read(*in, bytes, sizeof(bytes));

	if (n < 0)
		return err_sys(e, "read stdin");
	*in = n ? *in : -1;
	*sent += (uint64_t)n;
	return boxh_stdin(&c->copy, c->ref, bytes, (size_t)n, e);
}

static int copy_follow(struct copied *c, struct wire_exit *out, struct err *e)
{
	uint64_t room = 0, sent = 1;
	int in = 0, rc = 0;

	while (rc == 0) {
		struct pollfd p[2] = { { .fd = c->copy.init, .events = POLLIN },
				       { .fd = room >= sent + CHUNK ? in : -1, .events = POLLIN } };

		if (poll(p, 2, -1) < 0)
			return err_sys(e, "poll");
		if (p[0].revents)
			rc = copy_receive(c, &room, out, e);
		if (rc == 0 && p[1].revents && copy_send(c, &in, &sent, e) < 0)
			rc = e->sys == EPIPE ? (in = -1, 0) : -1;
	}
	return rc < 0 ? -1 : 0;
}

static int drop_files(struct copied *c, struct err *e)
{
	struct frame got;
	struct wire_id ask = { .head = sock_head(WIRE_CHECKPOINT_DROP, 0) };
	struct answer a = { .want = WIRE_DONE, .to = &got, .room = sizeof(got) };

	snprintf(ask.id, sizeof(ask.id), "%s", c->id);
	return link_ask(&c->keeper, &ask, sizeof(ask), &a, e);
}

int main(int argc, char **argv)
{
	static struct copied c = { .source.init = -1, .copy.init = -1 };
	struct wire_exit x = { 0 };
	struct err e = { 0 };
	int status = REFUSED;

	c.limits = box_default_limits();
	if (parse(&c, argc, argv, &e) < 0 || id_new(c.id, &e) < 0 ||
	    keeper_sync_open(&c.keeper, 0, &e) < 0) {
		fprintf(stderr, "refused: %s\n", e.msg);
		return REFUSED;
	}
	if (source_start(&c, &e) < 0 || capture(&c, &e) < 0 || copy_start(&c, &e) < 0 ||
	    copy_attach(&c, &e) < 0 || copy_follow(&c, &x, &e) < 0)
		fprintf(stderr, "refused: %s\n", e.msg);
	else
		status = x.why == WIRE_WHY_EXIT ? x.status : 128 + x.status;
	if (c.source.init >= 0)
		(void)!end_source(&c, &e);
	if (c.copy.init >= 0 && boxh_kill(&c.keeper, c.copy.about.id, NULL, &e) < 0 &&
	    e.kind != ERR_NOT_FOUND)
		fprintf(stderr, "copied: %s\n", e.msg);
	boxh_close(&c.copy);
	(void)!ask_image(&c, WIRE_IMAGE_DROP, WIRE_IMAGE_FILE, "", &e);
	(void)!drop_files(&c, &e);
	keeper_sync_close(&c.keeper);
	return status;
}
