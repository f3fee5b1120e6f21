/* build_source.c - the box that COPY reads from. See build_copy.h. */
#include "template/build_copy.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 * 1024 };

static void source_output(struct exec_reader *r, unsigned stream, uint64_t offset,
			  const char *bytes, size_t n)
{
	(void)offset;
	build_log_output(loop_owner(r, struct build_copy, unpack)->build, stream, bytes, n);
}

static void source_unpacked(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct build_copy *c = loop_owner(r, struct build_copy, unpack);
	char why[200];

	c->unpacking = 0;
	build_log_flush(c->build);
	if (!record)
		build_fail_err(c->build, e);
	else if (build_cause(c->build, record, why, sizeof(why)))
		build_fail(c->build, "the archive cannot be unpacked: tar %s", why);
	else
		c->opened(c);
}

static void source_feed(struct build_copy *c)
{
	char piece[PIECE];
	ssize_t n = 0;

	while (c->unpack.run && !c->unpack.run->over &&
	       (n = read(c->fd, piece, sizeof(piece))) > 0) {
		if (exec_stdin(c->unpack.run, piece, (size_t)n)) {
			exec_input_await(c->unpack.run, &c->low);
			return;
		}
	}
	if (c->unpack.run)
		exec_input_close(c->unpack.run);
}

static void source_low(struct exec_input_wait *w, int closed)
{
	if (!closed)
		source_feed(loop_owner(w, struct build_copy, low));
}

/* Runs `script` in the source box, which is of base. */
static void source_run(struct build_copy *c, const char *script, const char *a, const char *b,
		       int stdin_open)
{
	static const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8",
					   "TAR_OPTIONS=", "GZIP=", NULL };
	static const struct exec_reader_events on = { .output = source_output,
						      .over = source_unpacked };
	const char *argv[] = { "/bin/sh", "-c", script, "unpack", a, b, NULL };
	struct box *box = fleet_find(c->build->all->fleet, c->source.id);
	struct exec_spec want = { .argv = argv,
				  .env = env,
				  .cwd = "/home/user",
				  .kind = STORE_RUN_EXEC,
				  .helper = 1,
				  .wall_ms = (uint32_t)c->build->all->conf.step_ms,
				  .stdin_open = stdin_open };
	struct exec *r;
	struct err e;

	exec_reader_init(&c->unpack, c->build->all->fleet, &on);
	if (!box) {
		build_fail(c->build, "the box for the files of COPY has ended");
		return;
	}
	if (exec_launch(box, &want, &c->unpack, &r, &e) < 0) {
		build_fail_err(c->build, &e);
		return;
	}
	c->unpacking = 1;
	c->low.low = source_low;
	if (stdin_open)
		source_feed(c);
}

void build_source_unpack(struct build_copy *c, const char *archive, const char *folder)
{
	source_run(c, "mkdir -p \"$2\" && exec tar -xf \"$1\" -C \"$2\" --no-same-owner", archive,
		   folder, 0);
}

static void source_box_of_upload(struct build_box *x)
{
	struct build_copy *c = loop_owner(x, struct build_copy, source);
	uint8_t head[4] = { 0 };
	const char *packer = "--no-auto-compress";

	if (pread(c->fd, head, sizeof(head), 0) == (ssize_t)sizeof(head))
		packer = head[0] == 0x1f && head[1] == 0x8b   ? "-z"
			 : head[0] == 0x28 && head[1] == 0xb5 ? "--zstd"
							      : packer;
	source_run(c, "mkdir context && exec tar -x \"$1\" -f - -C context --no-same-owner", packer,
		   NULL, 1);
}

static void source_box_of_root(struct build_box *x)
{
	struct build_copy *c = loop_owner(x, struct build_copy, source);

	c->opened(c);
}

static void source_rooted(struct build *b, const char *root)
{
	build_box_open(&b->copy->source, root, 0, 0, b->all->conf.step_ms, source_box_of_root);
}

static void source_open_upload(struct build_copy *c, const char *hash)
{
	struct build *b = c->build;
	struct store_upload row;
	struct err e;

	if (store_upload_get(b->all->fleet->store, b->row.team, hash, &row, &e) == 0)
		c->fd = openat(b->all->uploads, row.file, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0) {
		build_fail(b,
			   "there is no upload %.64s; send the files with PUT "
			   "/v1/templates/uploads/{hash} first",
			   hash);
		return;
	}
	(void)!store_upload_use(b->all->fleet->store, b->row.team, hash, fleet_now_ns(), &e);
	snprintf(c->base, sizeof(c->base), "%s", COPY_CONTEXT);
	build_box_open(&c->source, "", 0, b->all->conf.disk_bytes, b->all->conf.step_ms,
		       source_box_of_upload);
}

void build_source_open(struct build_copy *c)
{
	struct build *b = c->build;
	const char *from = build_text(b->step, "from");
	int stage;

	if (!*from) {
		source_open_upload(c, build_text(b->step, "files"));
		return;
	}
	stage = definition_stage(
		b->definition, from,
		(unsigned)json_integer_value(json_object_get(b->progress, "stage")));
	if (stage < 0) {
		build_source_image(b, from, source_rooted);
		return;
	}
	build_root(b, build_stage_at(b, (unsigned)stage), 0, source_rooted);
}
