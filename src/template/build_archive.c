/* build_archive.c - FROM an archive that GET /v1/templates/{template}/export has written: its tree is one layer. See
 * build_internal.h. */
#include "template/build_internal.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static void build_archive_unpacked(void *ctx, const struct frame *f, size_t len, int *fd,
				   const struct err *e)
{
	const struct wire_layer *l = (const struct wire_layer *)f;
	struct build *b = ctx;
	char id[WIRE_LAYER_ID];
	struct err own;

	(void)len;
	(void)fd;
	b->asking = NULL;
	if (!f) {
		own = *e;
		err_in(&own, "FROM an archive");
		build_fail_err(b, &own);
		return;
	}
	if (build_keep_layer(b, l, id) < 0)
		return;
	build_log(b, "info", "unpacked %llu files, %llu bytes", (unsigned long long)l->files,
		  (unsigned long long)l->bytes);
	build_stage_set(b, json_pack("{s:b, s:[s], s:{}, s:s, s:s}", "base", b->archive_on_base,
				     "layers", id, "env", "user", "", "workdir", ""));
	if (build_save(b) == 0)
		build_continue(b);
}

void build_from_archive(struct build *b, const char *hash, int base)
{
	struct wire_layer_unpack ask = { .head = sock_head(WIRE_LAYER_UNPACK, 0),
					 .bytes_most = b->all->conf.disk_bytes,
					 .files_most = b->all->conf.image.files_most };
	struct store_upload row;
	struct err e;
	int fd = -1;

	if (store_upload_get(b->all->fleet->store, b->row.team, hash, &row, &e) == 0)
		fd = openat(b->all->uploads, row.file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		build_fail(b,
			   "there is no upload %.64s; send the archive with PUT "
			   "/v1/templates/uploads/{hash} first",
			   hash);
		return;
	}
	(void)!store_upload_use(b->all->fleet->store, b->row.team, hash, fleet_now_ns(), &e);
	b->archive_on_base = base;
	b->asking = keeper_client_request_fd(&b->all->fleet->keeper, &ask, sizeof(ask), fd,
					     WIRE_LAYER, build_archive_unpacked, b);
}
