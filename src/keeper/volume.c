/* volume.c - named disks that exist longer than boxes; see volume.h.
 *
 * A volume is an ext4 image of fixed size in the state folder. The records of boxes show which box
 * has it mounted, so a new keeper knows it; and the kernel does: the loop device holds the image
 * open, and with it a lock, exclusive for one writer or shared for readers (disk_image.c). The
 * records give the better error message, the lock enforces the rule. */
#include "keeper/volume.h"
#include "base/cleanup.h"
#include "jail/feature.h"
#include "keeper/disk_service.h"
#include "keeper/keeper_internal.h"
#include "wire/sock.h"

#include <string.h>

#define VOLUME_MIN (16ull << 20)
#define VOLUME_MAX (1ull << 44)

/* ---- names and mount points ---- */

int volume_id_valid(const char id[WIRE_VOLUME_ID])
{
	size_t n = strnlen(id, WIRE_VOLUME_ID);

	if (n == 0 || n == WIRE_VOLUME_ID || id[0] == '-' || id[0] == '_')
		return 0;
	return strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

/* 1: the first part of the path is `part`. */
static int starts_with_part(const char *path, const char *part)
{
	size_t n = strlen(part);

	return strncmp(path, part, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int path_plain(const char *path)
{
	for (const char *at = path; *at; at += strcspn(at + 1, "/") + 1) {
		size_t n = at[0] == '/' ? strcspn(at + 1, "/") : 0;

		if (n == 0 || n > 255 || (at[1] == '.' && (n == 1 || (n == 2 && at[2] == '.'))))
			return 0;
	}
	return path[0] == '/';
}

static int place_allowed(const char path[WIRE_PATH])
{
	static const char *const places[] = { "/home/user", "/mnt",   "/data",     "/srv",
					      "/opt",       "/media", "/workspace" };

	if (strnlen(path, WIRE_PATH) == WIRE_PATH || !path_plain(path))
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(places); i++)
		if (starts_with_part(path, places[i]))
			return 1;
	return 0;
}

int volume_mounts_sane(const struct wire_mount *m, uint32_t n, struct err *e)
{
	if (n > WIRE_MOUNTS)
		return err_set(e, ERR_INVALID, "%u volumes: a box may have %d", n, WIRE_MOUNTS);
	for (uint32_t i = 0; i < n; i++) {
		if (!volume_id_valid(m[i].id))
			return err_set(e, ERR_INVALID, "volume names have up to 31 of a-z 0-9 - _");
		if (!place_allowed(m[i].path))
			return err_set(
				e, ERR_INVALID,
				"volume %s at '%.60s': wanted a plain path below /home/user, /mnt, "
				"/data, /srv, /opt, /media or /workspace",
				m[i].id, m[i].path);
		if (m[i].flags & ~(uint32_t)WIRE_MOUNT_RO)
			return err_set(e, ERR_INVALID, "volume %s: unknown flags", m[i].id);
		for (uint32_t k = 0; k < i; k++) {
			if (strcmp(m[i].id, m[k].id) == 0)
				return err_set(e, ERR_INVALID, "volume %s twice in one box",
					       m[i].id);
			if (starts_with_part(m[i].path, m[k].path) ||
			    starts_with_part(m[k].path, m[i].path))
				return err_set(e, ERR_INVALID,
					       "volumes %s and %s: one path is below the other",
					       m[k].id, m[i].id);
		}
	}
	return 0;
}

/* ---- users of a volume ---- */

/* 0: none; 1: readers; 2: a writer. */
static int volume_users(struct keeper *k, const char *id, const char **out_box)
{
	int most = 0;

	for (struct keeper_box *b = keeper_box_after(&k->boxes, ""); b;
	     b = keeper_box_after(&k->boxes, b->meta.about.id))
		for (uint32_t i = 0; i < b->meta.nmounts; i++) {
			int use = b->meta.mounts[i].flags & WIRE_MOUNT_RO ? 1 : 2;

			if (strcmp(b->meta.mounts[i].id, id) != 0 || use <= most)
				continue;
			most = use;
			*out_box = b->meta.about.id;
		}
	return most;
}

static int can_have_volumes(const struct keeper *k, struct err *e)
{
	if (k->host.rootless)
		return err_set(e, ERR_DENIED,
			       "volumes are disk images: they need a keeper that runs as root");
	if (!(k->host.layers & FEATURE_BIT(FEATURE_IDMAP)))
		return err_set(
			e, ERR_DENIED,
			"volumes need mounts with shifted ids, which this kernel does not support");
	return 0;
}

int volume_check(struct keeper *k, const struct wire_create *w, struct err *e)
{
	const char *box = "";

	if (!w->nmounts)
		return 0;
	if (volume_mounts_sane(w->mounts, w->nmounts, e) < 0 || can_have_volumes(k, e) < 0)
		return -1;
	for (uint32_t i = 0; i < w->nmounts; i++) {
		int reads = !!(w->mounts[i].flags & WIRE_MOUNT_RO);
		int use = volume_users(k, w->mounts[i].id, &box);

		if (use == 2 || (use == 1 && !reads))
			return err_set(e, ERR_CONFLICT, "volume %s: box %s %s it", w->mounts[i].id,
				       box, use == 2 ? "writes to" : "reads");
	}
	return 0;
}

/* ---- create, delete ---- */

int volume_work(const struct host_state *h, struct build_job *j, struct err *e)
{
	if (j->volume.bytes)
		return disk_volume_make(h->disks, j->volume.id, j->volume.bytes, e);
	return disk_volume_drop(h->disks, j->volume.id, e);
}

void volume_back(struct keeper *k, struct build_job *take_job)
{
	auto_free struct build_job *j = take_job;
	struct frame done = sock_head(WIRE_DONE, j->ref);

	if (j->err.kind)
		client_error(k, j->client, j->ref, &j->err);
	else
		client_send(k, j->client, &done, sizeof(done), -1);
}

static int volume_possible(struct keeper *k, const struct wire_volume *w, struct err *e)
{
	int make = w->head.type == WIRE_VOLUME_MAKE;
	const char *box = "";

	if (can_have_volumes(k, e) < 0)
		return -1;
	if (!volume_id_valid(w->id))
		return err_set(e, ERR_INVALID, "volume names have up to 31 of a-z 0-9 - _");
	if (make && (w->bytes < VOLUME_MIN || w->bytes > VOLUME_MAX))
		return err_set(e, ERR_INVALID,
			       "a volume of %llu bytes is not between %llu and %llu bytes",
			       (unsigned long long)w->bytes, VOLUME_MIN, VOLUME_MAX);
	if (!make && volume_users(k, w->id, &box))
		return err_set(e, ERR_CONFLICT, "volume %s: box %s has it mounted", w->id, box);
	return 0;
}

void volume_request(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_volume *w = (const struct wire_volume *)f;
	struct build_job *j;
	struct err e;

	if (request_too_many(k, c, f))
		return;
	if (volume_possible(k, w, &e) < 0) {
		client_error(k, c->number, f->ref, &e);
		return;
	}
	j = build_job_new(BUILD_VOLUME);
	j->client = c->number;
	j->ref = f->ref;
	j->volume.bytes = f->type == WIRE_VOLUME_MAKE ? w->bytes : 0;
	memcpy(j->volume.id, w->id, sizeof(j->volume.id));
	builder_submit(k->builder, j);
}
