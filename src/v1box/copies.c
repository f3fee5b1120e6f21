/* copies.c - see copies.h: the list, and files on their way between nodes.
 *
 * The gateway passes the bytes on without reading them. The receiver accepts a file only if its digest is the one at
 * the end, which the sender has calculated while it read the file; the digest is checked again before the file is used. */
#include "v1box/copies_internal.h"
#include "api/auth.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "fleet/definition.h"
#include "fleet/snapshot.h"
#include "store/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
	COPIES_PIECE = 64 << 10,
	COPIES_DEFINITION = 4 << 20, /* bytes of a definition, at most */
	COPIES_DIGITS = 2 * SHA256_BYTES,
};

/* ---- the list ---- */

static void copies_remove_file(struct api *a, const char *id)
{
	char name[ID_MAX + 8];

	snprintf(name, sizeof(name), "%s.snap", id);
	if (unlinkat(a->fleet.snaps.copies, name, 0) < 0 && errno != ENOENT)
		log_warn("cannot remove the file of a copy", LOG_S("snapshot", id));
}

/* The file first: a row without a file is removed by the next request. */
static int copies_drop(struct api *a, const char *id, struct err *e)
{
	copies_remove_file(a, id);
	return store_copy_remove(a->store, id, e);
}

static json_t *copies_held_json(struct api *a, struct err *e)
{
	struct store_copy_items all;
	json_t *list;

	if (store_copies_held(a->store, &all, e) < 0)
		return NULL;
	list = json_array();
	for (unsigned i = 0; i < all.n; i++) {
		const struct store_copy_item *x = &all.v[i];
		const struct box *b = fleet_find(&a->fleet, x->box);

		if (x->is_spent && !b && copies_drop(a, x->id, e) == 0)
			continue;
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:b}",
						"snapshot", x->id, "box", x->box, "team", x->team,
						"name", x->name, "session", x->session, "template",
						x->template, "created_ns",
						(json_int_t)x->created_ns, "live", b != NULL));
	}
	store_copy_items_fini(&all);
	return list;
}

static json_t *copies_wanted_json(struct api *a, struct err *e)
{
	struct store_copy_items all;
	json_t *list;

	if (store_copies_wanted(a->store, &all, e) < 0)
		return NULL;
	list = json_array();
	for (unsigned i = 0; i < all.n; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:I}", "snapshot", all.v[i].id,
						"box", all.v[i].box, "team", all.v[i].team,
						"created_ns", (json_int_t)all.v[i].created_ns));
	store_copy_items_fini(&all);
	return list;
}

static json_t *copies_json(struct api *a, struct err *e)
{
	json_t *held = copies_held_json(a, e), *wanted = held ? copies_wanted_json(a, e) : NULL;

	if (wanted)
		return json_pack("{s:o, s:o}", "held", held, "wanted", wanted);
	json_decref(held);
	return NULL;
}

uint32_t copies_revision(struct api *a)
{
	uint32_t revision = 2166136261u;
	struct err e;
	json_t *doc = copies_json(a, &e);
	char *text;

	if (!json_array_size(json_object_get(doc, "held")) &&
	    !json_array_size(json_object_get(doc, "wanted"))) {
		json_decref(doc);
		return 0;
	}
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		abort();
	for (const char *p = text; *p; p++)
		revision = (revision ^ (unsigned char)*p) * 16777619u;
	free(text);
	return revision | 1;
}

static void copies_list(struct call *c)
{
	struct err e;
	json_t *doc = c->api->fleet.restoring ? NULL : copies_json(c->api, &e);

	if (doc)
		call_json(c, 200, doc);
	else if (c->api->fleet.restoring)
		call_error(c, 503, "busy", "the boxes of this node are being restored", NULL, NULL);
	else
		call_fail(c, &e);
}

/* ---- sent ---- */

struct copies_sending {
	struct call *call;
	int fd;
	struct sha256 sum;
};

static void copies_sent(struct call *c)
{
	own_close_fd(&((struct copies_sending *)c->state)->fd);
}

static void copies_send_end(struct copies_sending *s)
{
	struct http_req *r = s->call->req;
	char digits[COPIES_DIGITS + 1];
	uint8_t sum[SHA256_BYTES];

	own_close_fd(&s->fd);
	sha256_end(&s->sum, sum);
	hex_encode(digits, sum, sizeof(sum));
	(void)http_write(r, digits, COPIES_DIGITS);
	http_end(r);
}

static void copies_send_more(struct http_req *r)
{
	struct copies_sending *s = ((struct call *)r->user)->state;
	char piece[COPIES_PIECE];

	while (s->fd >= 0) {
		ssize_t n = read(s->fd, piece, sizeof(piece));

		if (n < 0) {
			http_abort(r);
			return;
		}
		if (n == 0) {
			copies_send_end(s);
			return;
		}
		sha256_add(&s->sum, piece, (size_t)n);
		if (http_write(r, piece, (size_t)n))
			return;
	}
}

/* The definition of the box: of the copy, else of the box as it is now. */
static char *copies_definition(struct api *a, const char *id, struct err *e)
{
	struct store_copy copy;
	struct store_copy_items all;
	json_t *doc = NULL;
	char *text;

	if (store_copy_get(a->store, id, &copy, e) == 0)
		return copy.definition;
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
	if (!doc) {
		err_set(e, ERR_NOT_FOUND, "no box needs a copy of snapshot '%s'", id);
		return NULL;
	}
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		abort();
	return text;
}

static void copies_get(struct call *c)
{
	const char *id = call_param(c, 0);
	struct copies_sending *s;
	auto_free char *head = NULL;
	struct stat st;
	struct err e;
	int fd;

	head = copies_definition(c->api, id, &e);
	if (!head || snapshot_open(&c->api->fleet, id, &fd, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (fstat(fd, &st) < 0) {
		err_sys(&e, "size of snapshot %s", id);
		close(fd);
		call_fail(c, &e);
		return;
	}
	s = call_alloc(c, sizeof(*s));
	*s = (struct copies_sending){ .call = c, .fd = fd };
	sha256_init(&s->sum);
	c->state = s;
	c->drop = copies_sent;
	c->req->on_drain = copies_send_more;
	http_stream(c->req, 200, "application/octet-stream",
		    strlen(head) + 1 + (uint64_t)st.st_size + COPIES_DIGITS);
	(void)http_write(c->req, head, strlen(head));
	(void)http_write(c->req, "\n", 1);
	copies_send_more(c->req);
}

/* ---- received ---- */

struct copies_receiving {
	struct call *call;
	char id[ID_MAX + 1], part[ID_MAX + 8];
	int fd;
	int has_head;
	struct buf head;
	struct sha256 sum;
	char last[COPIES_DIGITS]; /* bytes at the end so far: the digest, when the body ends */
	size_t nlast;
	uint64_t bytes;
	struct err trouble;
};

static void copies_receive_end(struct call *c)
{
	struct copies_receiving *x = c->state;

	if (x->fd >= 0 && unlinkat(c->api->fleet.snaps.copies, x->part, 0) < 0)
		log_warn("cannot remove an incomplete copy", LOG_S("snapshot", x->id));
	own_close_fd(&x->fd);
	buf_fini(&x->head);
}

static void copies_write(struct copies_receiving *x, const char *bytes, size_t n)
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

/* All but the last COPIES_DIGITS bytes belong to the file. */
static void copies_take(struct copies_receiving *x, const char *bytes, size_t n)
{
	size_t all = x->nlast + n, out = all > COPIES_DIGITS ? all - COPIES_DIGITS : 0,
	       old = out < x->nlast ? out : x->nlast;

	copies_write(x, x->last, old);
	memmove(x->last, x->last + old, x->nlast - old);
	x->nlast -= old;
	copies_write(x, bytes, out - old);
	memcpy(x->last + x->nlast, bytes + (out - old), n - (out - old));
	x->nlast += n - (out - old);
}

static void copies_on_body(struct http_req *r, const char *bytes, size_t n)
{
	struct copies_receiving *x = ((struct call *)r->user)->state;
	const char *end = x->has_head ? NULL : memchr(bytes, '\n', n);
	size_t head = x->has_head ? 0 : end ? (size_t)(end - bytes) : n;

	if (x->trouble.kind)
		return;
	if (x->head.len + head > COPIES_DEFINITION) {
		err_set(&x->trouble, ERR_INVALID, "a definition of more than %d bytes",
			COPIES_DEFINITION);
		return;
	}
	buf_add(&x->head, bytes, head);
	if (!x->has_head && !end)
		return;
	head += !x->has_head;
	x->has_head = 1;
	copies_take(x, bytes + head, n - head);
}

static int copies_verify(struct copies_receiving *x, struct store_copy *out, struct err *e)
{
	json_t *doc = json_loads(buf_str(&x->head), JSON_REJECT_DUPLICATES, NULL);
	struct box_definition d = { 0 };
	uint8_t sum[SHA256_BYTES];
	int rc = box_definition_read(doc, &d, e);

	snprintf(out->id, sizeof(out->id), "%s", x->id);
	snprintf(out->box, sizeof(out->box), "%s", d.id);
	snprintf(out->team, sizeof(out->team), "%s", d.want.row.team);
	out->created_ns = json_integer_value(json_object_get(doc, "snapshot_created_ns"));
	out->bytes = x->bytes;
	box_definition_fini(&d);
	json_decref(doc);
	sha256_end(&x->sum, sum);
	hex_encode(out->sha256, sum, sizeof(sum));
	if (rc == 0 && (x->nlast != COPIES_DIGITS || out->created_ns <= 0 ||
			memcmp(out->sha256, x->last, COPIES_DIGITS) != 0))
		rc = err_set(e, ERR_INVALID,
			     "the copy of snapshot %s is damaged: its digest is not that of the "
			     "sender",
			     x->id);
	return rc;
}

static int copies_keep(struct copies_receiving *x, struct err *e)
{
	struct api *a = x->call->api;
	struct store_copy copy = { .definition = x->head.p };
	char name[ID_MAX + 8];

	if (copies_verify(x, &copy, e) < 0)
		return -1;
	snprintf(name, sizeof(name), "%s.snap", x->id);
	if (fsync(x->fd) < 0 ||
	    renameat(a->fleet.snaps.copies, x->part, a->fleet.snaps.copies, name) < 0)
		return err_sys(e, "keep the copy of snapshot %s", x->id);
	own_close_fd(&x->fd);
	return store_copy_insert(a->store, &copy, e);
}

static void copies_on_body_end(struct http_req *r)
{
	struct call *c = r->user;
	struct copies_receiving *x = c->state;
	struct err e = x->trouble;

	if (e.kind || copies_keep(x, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 201);
}

static int copies_check_space(struct call *c, struct err *e)
{
	struct statvfs fs;

	if (c->req->length == UINT64_MAX || fstatvfs(c->api->fleet.snaps.copies, &fs) < 0 ||
	    (uint64_t)fs.f_bavail * fs.f_frsize / 10 * 9 > c->req->length)
		return 0;
	return err_set(e, ERR_LIMIT, "the disk of this node has no space for a copy of %llu bytes",
		       (unsigned long long)c->req->length);
}

static void copies_put(struct call *c)
{
	const char *id = call_param(c, 0);
	struct copies_receiving *x;
	struct store_copy copy;
	struct err e;

	if (!id_valid(id)) {
		call_error(c, 400, "invalid", "not the id of a snapshot", id, NULL);
		return;
	}
	if (store_copy_get(c->api->store, id, &copy, &e) == 0) {
		store_copy_fini(&copy);
		call_error(c, 409, "exists", "this node has this copy", id, NULL);
		return;
	}
	x = call_alloc(c, sizeof(*x));
	*x = (struct copies_receiving){ .call = c, .fd = -1 };
	snprintf(x->id, sizeof(x->id), "%s", id);
	snprintf(x->part, sizeof(x->part), "%s.part", id);
	sha256_init(&x->sum);
	if (copies_check_space(c, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	/* What a server left that ended meanwhile is overwritten. */
	x->fd = openat(c->api->fleet.snaps.copies, x->part,
		       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (x->fd < 0) {
		err_sys(&e, "make the copy of snapshot %s", id);
		call_fail(c, &e);
		return;
	}
	c->state = x;
	c->drop = copies_receive_end;
	c->req->on_body = copies_on_body;
	c->req->on_body_end = copies_on_body_end;
	http_want_body(c->req, HTTP_BODY_STREAM, 0);
}

static void copies_delete(struct call *c)
{
	struct err e;

	if (copies_drop(c->api, call_param(c, 0), &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}

/* ---- the surface ---- */

static const struct api_route copies_rows[] = {
	/* clang-format off */
	{ "GET", "/cluster/copies", NEED_OWNER, copies_list, "list copies", .group = "cluster" },
	{ "GET", "/cluster/copies/{snapshot}", NEED_OWNER, copies_get, "send a copy", .group = "cluster" },
	{ "PUT", "/cluster/copies/{snapshot}", NEED_OWNER, copies_put, "receive a copy", .how = HTTP_BODY_STREAM },
	{ "DELETE", "/cluster/copies/{snapshot}", NEED_OWNER, copies_delete, "delete a copy", .group = "cluster" },
	{ "POST", "/cluster/restart", NEED_OWNER, copies_restart, "start a box from its copy", copies_restart_fields, .group = "cluster" },
	/* clang-format on */
};
static struct api_table copies_table = { copies_rows, ARRAY_LEN(copies_rows), NULL, NULL };

/* Gateways pass no request of a client on whose path begins like this. */
static int copies_take_call(struct call *c)
{
	if (!c->req->trusted_peer || strncmp(c->req->path, "/cluster/", 9) != 0)
		return 0;
	call_serve(c, &copies_table);
	return 1;
}

const struct api_surface copies_surface = { copies_take_call, NULL, 0, NULL };
