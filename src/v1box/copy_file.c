/* copy_file.c - see copy_file.h.
 *
 * The receiver accepts a file only if its digest is the one at the end, which the sender has calculated while it read the
 * file; the digest is checked again before the file is used. */
#include "v1box/copy_file.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "fleet/definition.h"
#include "fleet/snapshot.h"
#include "store/copies.h"
#include "v1box/snapshot_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
	COPY_UNUSED_S = 3600
}; /* a copy of a snapshot that a gateway sent for a box is removed after this time */

static const char *copy_name(const char *id, char out[ID_MAX + 8])
{
	snprintf(out, ID_MAX + 8, "%s.snap", id);
	return out;
}

/* The file first: a row without a file is removed by the next request. */
int copy_drop(struct api *a, const char *id, struct err *e)
{
	char name[ID_MAX + 8];

	if (unlinkat(a->fleet.snaps.copies, copy_name(id, name), 0) < 0 && errno != ENOENT)
		log_warn("cannot remove the file of a copy", LOG_S("snapshot", id));
	return store_copy_remove(a->store, id, e);
}

/* A box that is created from such a copy has opened its file. */
static void copy_drop_unused(struct api *a)
{
	struct store_copy_items all;
	struct err e;

	if (store_copies_sent(a->store, &all, &e) < 0)
		return;
	for (unsigned i = 0; i < all.n; i++) {
		char name[ID_MAX + 8];
		struct stat st;

		if (fstatat(a->fleet.snaps.copies, copy_name(all.v[i].id, name), &st,
			    AT_SYMLINK_NOFOLLOW) < 0 ||
		    time(NULL) - st.st_mtime > COPY_UNUSED_S)
			(void)!copy_drop(a, all.v[i].id, &e);
	}
	store_copy_items_fini(&all);
}

/* ---- read ---- */

/* The definition of the box: of the copy, else of the box as it is now. */
static json_t *copy_definition_of_box(struct api *a, const char *id, struct err *e)
{
	struct store_copy copy;
	struct store_copy_items all;
	json_t *doc = NULL;

	if (store_copy_get(a->store, id, &copy, e) == 0) {
		doc = json_loads(copy.definition, 0, NULL);
		store_copy_fini(&copy);
		return doc;
	}
	if (e->kind != ERR_NOT_FOUND || store_copies_wanted(a->store, &all, e) < 0)
		return NULL;
	for (unsigned i = 0; i < all.n && !doc; i++) {
		const struct box *b =
			strcmp(all.v[i].id, id) == 0 ? fleet_find(&a->fleet, all.v[i].box) : NULL;

		if (!b)
			continue;
		doc = box_definition(&b->row);
		json_object_set_new(doc, "snapshot_created_ns",
				    json_integer((json_int_t)all.v[i].created_ns));
	}
	store_copy_items_fini(&all);
	if (!doc)
		err_set(e, ERR_NOT_FOUND, "no box needs a copy of snapshot '%s'", id);
	return doc;
}

static json_t *copy_definition_of_snapshot(struct api *a, const char *team, const char *id,
					   struct err *e)
{
	struct store_snapshot x;

	if (store_snapshot_get(a->store, team, id, &x, e) < 0)
		return NULL;
	if (!x.checkpoint[0])
		return snapshot_source_definition(&x);
	err_set(e, ERR_INVALID,
		"snapshot %s is a checkpoint of this node (packed: false), and boxes of other "
		"nodes cannot start from it",
		id);
	return NULL;
}

int copy_source_open(struct copy_source *s, struct api *a, const char *team, const char *id,
		     struct err *e)
{
	json_t *doc = team ? copy_definition_of_snapshot(a, team, id, e)
			   : copy_definition_of_box(a, id, e);
	auto_free char *head = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	struct stat st;

	*s = (struct copy_source){ .fd = -1 };
	json_decref(doc);
	if (!head)
		return -1;
	if (snapshot_open(&a->fleet, id, &s->fd, e) < 0)
		return -1;
	if (fstat(s->fd, &st) < 0) {
		own_close_fd(&s->fd);
		return err_sys(e, "size of snapshot %s", id);
	}
	buf_printf(&s->head, "%s\n", head);
	sha256_init(&s->sum);
	sha256_init(&s->all);
	s->length = s->head.len + (uint64_t)st.st_size + COPY_DIGITS;
	return 0;
}

static ssize_t copy_source_next(struct copy_source *s, char *piece, size_t room)
{
	uint8_t sum[SHA256_BYTES];
	size_t n = s->head.len - s->head_at;
	ssize_t got;

	if (n > 0) {
		n = n < room ? n : room;
		memcpy(piece, s->head.p + s->head_at, n);
		s->head_at += n;
		return (ssize_t)n;
	}
	if (!s->file_ended) {
		got = read(s->fd, piece, room);
		if (got > 0)
			sha256_add(&s->sum, piece, (size_t)got);
		if (got != 0)
			return got;
		s->file_ended = 1;
		sha256_end(&s->sum, sum);
		hex_encode(s->digits, sum, sizeof(sum));
	}
	n = COPY_DIGITS - s->digits_at;
	n = n < room ? n : room;
	memcpy(piece, s->digits + s->digits_at, n);
	s->digits_at += n;
	return (ssize_t)n;
}

ssize_t copy_source_read(struct copy_source *s, char *piece, size_t room)
{
	ssize_t n = copy_source_next(s, piece, room);

	if (n > 0)
		sha256_add(&s->all, piece, (size_t)n);
	return n;
}

void copy_source_sha256(struct copy_source *s, char out_hex[COPY_DIGITS + 1])
{
	uint8_t sum[SHA256_BYTES];

	sha256_end(&s->all, sum);
	hex_encode(out_hex, sum, sizeof(sum));
}

void copy_source_close(struct copy_source *s)
{
	own_close_fd(&s->fd);
	buf_fini(&s->head);
}

/* ---- written ---- */

static void copy_write(struct copy_receiver *x, const char *bytes, size_t n)
{
	sha256_add(&x->sum, bytes, n);
	x->bytes += n;
	while (n > 0 && !x->trouble.kind) {
		ssize_t done = write(x->fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			err_sys(&x->trouble, "write the copy of snapshot %s", x->id);
			return;
		}
		bytes += done;
		n -= (size_t)done;
	}
}

/* All but the last COPY_DIGITS bytes belong to the file. */
static void copy_take(struct copy_receiver *x, const char *bytes, size_t n)
{
	size_t all = x->nlast + n, out = all > COPY_DIGITS ? all - COPY_DIGITS : 0,
	       old = out < x->nlast ? out : x->nlast;

	copy_write(x, x->last, old);
	memmove(x->last, x->last + old, x->nlast - old);
	x->nlast -= old;
	copy_write(x, bytes, out - old);
	memcpy(x->last + x->nlast, bytes + (out - old), n - (out - old));
	x->nlast += n - (out - old);
}

void copy_receiver_add(struct copy_receiver *x, const char *bytes, size_t n)
{
	const char *end = x->has_head ? NULL : memchr(bytes, '\n', n);
	size_t head = x->has_head ? 0 : end ? (size_t)(end - bytes) : n;

	if (x->trouble.kind)
		return;
	sha256_add(&x->all, bytes, n);
	if (x->head.len + head > COPY_DEFINITION) {
		err_set(&x->trouble, ERR_INVALID, "a definition of more than %d bytes",
			COPY_DEFINITION);
		return;
	}
	buf_add(&x->head, bytes, head);
	if (!x->has_head && !end)
		return;
	head += !x->has_head;
	x->has_head = 1;
	copy_take(x, bytes + head, n - head);
}

static int copy_read_definition(const json_t *doc, struct store_copy *out, struct err *e)
{
	struct store_snapshot snapshot;
	struct box_definition d = { 0 };
	int rc;

	out->created_ns = json_integer_value(json_object_get(doc, "snapshot_created_ns"));
	if (json_object_get(doc, "snapshot")) {
		rc = snapshot_source_definition_read(doc, &snapshot, e);
		if (rc == 0 && strcmp(snapshot.id, out->id) != 0)
			rc = err_set(e, ERR_INVALID, "the copy is one of another snapshot, %s",
				     snapshot.id);
		if (rc == 0)
			snprintf(out->team, sizeof(out->team), "%s", snapshot.team);
		return rc;
	}
	rc = box_definition_read(doc, &d, e);
	snprintf(out->box, sizeof(out->box), "%s", d.id);
	snprintf(out->team, sizeof(out->team), "%s", d.want.row.team);
	box_definition_fini(&d);
	return rc;
}

static int copy_verify(struct copy_receiver *x, const char *sha256, struct store_copy *out,
		       struct err *e)
{
	json_t *doc = json_loads(buf_str(&x->head), JSON_REJECT_DUPLICATES, NULL);
	char all[COPY_DIGITS + 1];
	uint8_t sum[SHA256_BYTES];
	int rc;

	snprintf(out->id, sizeof(out->id), "%s", x->id);
	out->bytes = x->bytes;
	sha256_end(&x->all, sum);
	hex_encode(all, sum, sizeof(sum));
	sha256_end(&x->sum, sum);
	hex_encode(out->sha256, sum, sizeof(sum));
	if (sha256 && strcmp(sha256, all) != 0)
		rc = err_set(e, ERR_INVALID,
			     "the copy of snapshot %s is damaged: its SHA-256 is %.16s... and not "
			     "%.16s...",
			     x->id, all, sha256);
	else
		rc = copy_read_definition(doc, out, e);
	json_decref(doc);
	if (rc == 0 && (x->nlast != COPY_DIGITS || out->created_ns <= 0 ||
			memcmp(out->sha256, x->last, COPY_DIGITS) != 0))
		rc = err_set(e, ERR_INVALID,
			     "the copy of snapshot %s is damaged: its digest is not that of the "
			     "sender",
			     x->id);
	return rc;
}

int copy_receiver_keep(struct copy_receiver *x, const char *sha256, struct err *e)
{
	struct store_copy copy = { .definition = x->head.p };
	char name[ID_MAX + 8];

	if (x->trouble.kind) {
		*e = x->trouble;
		return -1;
	}
	if (copy_verify(x, sha256, &copy, e) < 0)
		return -1;
	if (fsync(x->fd) < 0 || renameat(x->api->fleet.snaps.copies, x->part,
					 x->api->fleet.snaps.copies, copy_name(x->id, name)) < 0)
		return err_sys(e, "keep the copy of snapshot %s", x->id);
	own_close_fd(&x->fd);
	return store_copy_insert(x->api->store, &copy, e);
}

static int copy_check_space(struct api *a, uint64_t length, struct err *e)
{
	struct statvfs fs;

	if (length == UINT64_MAX || fstatvfs(a->fleet.snaps.copies, &fs) < 0 ||
	    (uint64_t)fs.f_bavail * fs.f_frsize / 10 * 9 > length)
		return 0;
	return err_set(e, ERR_LIMIT, "the disk of this node has no space for a copy of %llu bytes",
		       (unsigned long long)length);
}

/* A copy of a box is not replaced. */
static int copy_check_new(struct api *a, const char *id, struct err *e)
{
	struct store_copy copy;
	int of_box;

	if (store_copy_get(a->store, id, &copy, e) < 0)
		return e->kind == ERR_NOT_FOUND ? 0 : -1;
	of_box = copy.box[0] != 0;
	store_copy_fini(&copy);
	return of_box ? err_set(e, ERR_CONFLICT, "this node has the copy of snapshot %s", id) : 0;
}

int copy_receiver_begin(struct copy_receiver *x, struct api *a, const char *id, uint64_t length,
			struct err *e)
{
	int folder = a->fleet.snaps.copies;

	*x = (struct copy_receiver){ .api = a, .fd = -1 };
	snprintf(x->id, sizeof(x->id), "%s", id);
	snprintf(x->part, sizeof(x->part), "%s.part", id);
	sha256_init(&x->sum);
	sha256_init(&x->all);
	copy_drop_unused(a);
	if (copy_check_new(a, id, e) < 0 || copy_check_space(a, length, e) < 0)
		return -1;
	/* What a server left that ended meanwhile is overwritten. */
	x->fd = openat(folder, x->part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (x->fd < 0)
		return err_sys(e, "make the copy of snapshot %s", id);
	if (flock(x->fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(x->fd, 0) == 0)
		return 0;
	own_close_fd(&x->fd);
	return err_set(e, ERR_LIMIT, "the copy of snapshot %s arrives at the moment", id);
}

void copy_receiver_close(struct copy_receiver *x)
{
	if (x->fd >= 0 && unlinkat(x->api->fleet.snaps.copies, x->part, 0) < 0)
		log_warn("cannot remove an incomplete copy", LOG_S("snapshot", x->id));
	own_close_fd(&x->fd);
	buf_fini(&x->head);
}
