/* snapshots.h - the rows of stored snapshots; the files themselves are elsewhere. */
#pragma once
#include "store/store.h"

struct store_snapshot {
	char id[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char name[STORE_NAME + 1]; /* "" or a name; a later one of the same name and tag hides it */
	char tag[STORE_NAME + 1];
	char box[ID_MAX + 1]; /* it was taken of */
	char template[STORE_TEMPLATE + 1];
	uint64_t bytes; /* of its file; 0: it is being written */
	int64_t created_ns;
	char tier[STORE_WORD + 1];   /* of that box; "": container */
	char checkpoint[ID_MAX + 1]; /* with its files; "": they are packed in a file of its own */
};

struct store_snapshots {
	struct store_snapshot *v;
	unsigned n;
	int more; /* next page: store_snapshot_cursor() of the last one */
};
void store_snapshots_fini(struct store_snapshots *l);

must_check int store_snapshot_insert(struct store *s, const struct store_snapshot *x,
				     struct err *e);
/* By its id, or the newest one by name and tag. ERR_NOT_FOUND. */
must_check int store_snapshot_get(struct store *s, const char *team, const char *id,
				  struct store_snapshot *out, struct err *e);
must_check int store_snapshot_named(struct store *s, const char *team, const char *name,
				    const char *tag, struct store_snapshot *out, struct err *e);
/* The snapshot of this checkpoint. ERR_NOT_FOUND: there is none. */
must_check int store_snapshot_of(struct store *s, const char *checkpoint,
				 struct store_snapshot *out, struct err *e);
must_check int store_snapshot_remove(struct store *s, const char *id, struct err *e);

struct store_snapshot_filter {
	const char *team;             /* never NULL */
	const char *box, *name, *tag; /* NULL: any */
	struct store_cursor after;
	unsigned limit; /* 0: STORE_PAGE */
};
/* Newest first. */
must_check int store_snapshot_list(struct store *s, const struct store_snapshot_filter *f,
				   struct store_snapshots *out, struct err *e);
struct store_cursor store_snapshot_cursor(const struct store_snapshot *x);
/* Bytes of all files of a team; of all teams when it is NULL. */
must_check int store_snapshot_bytes(struct store *s, const char *team, uint64_t *out,
				    struct err *e);
/* Marks its file as complete. Before that no list or lookup contains the snapshot. */
must_check int store_snapshot_finish(struct store *s, const char *id, uint64_t bytes,
				     struct err *e);
/* A snapshot that was started before then and never finished, or ERR_NOT_FOUND. */
must_check int store_snapshot_stale(struct store *s, int64_t before_ns, char out_id[ID_MAX + 1],
				    struct err *e);
