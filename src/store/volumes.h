/* volumes.h - volumes: which team owns each, and which box has it mounted now.
 * A volume has any number of readers and at most one writer, which the database itself enforces. */
#pragma once
#include "store/store.h"

enum { STORE_PATH = 512 };

struct store_volume {
	char id[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char name[STORE_NAME + 1]; /* one of the team's */
	uint64_t quota_bytes;
	int64_t created_ns;
	/* told, not taken: */
	char writer[ID_MAX + 1]; /* the box that may write, or "" */
	uint32_t readers;
};
struct store_volumes {
	struct store_volume *v;
	unsigned n;
	int more; /* next page: after = name of the last one */
};
void store_volumes_fini(struct store_volumes *l);

/* The caller sets v->id, because the image has that name, too. ERR_CONFLICT: the name is taken;
 * ERR_NOT_FOUND: no such team. */
must_check int store_volume_insert(struct store *s, const struct store_volume *v, struct err *e);
must_check int store_volume_find(struct store *s, const char *team, const char *name,
				 struct store_volume *out, struct err *e);
must_check int store_volume_get(struct store *s, const char *team, const char *id,
				struct store_volume *out, struct err *e);
must_check int store_volume_set_quota(struct store *s, const char *id, uint64_t quota_bytes,
				      struct err *e);
/* By name; after NULL: from the start; team NULL: of all teams, by team and name, not paged by
 * after. */
must_check int store_volume_list(struct store *s, const char *team, const char *after,
				 unsigned limit, struct store_volumes *out, struct err *e);
/* ERR_CONFLICT while a box has it. */
must_check int store_volume_remove(struct store *s, const char *id, struct err *e);

struct store_attachment {
	char volume[ID_MAX + 1];
	char box[ID_MAX + 1];
	char path[STORE_PATH + 1]; /* where the box has it */
	int writable;
};
struct store_attachments {
	struct store_attachment *v;
	unsigned n;
};
void store_attachments_fini(struct store_attachments *l);

/* All n or none. ERR_CONFLICT: another box writes to it, this box has it, or something else is
 * mounted at the path; ERR_NOT_FOUND: no such volume. */
must_check int store_volume_attach(struct store *s, const struct store_attachment *a, unsigned n,
				   struct err *e);
must_check int store_volume_detach(struct store *s, const char *box,
				   struct err *e); /* all it has */
/* Of a volume, of a box, or (both NULL) all. */
must_check int store_volume_attached(struct store *s, const char *volume, const char *box,
				     struct store_attachments *out, struct err *e);
