/* checkpoints.h - the rows of checkpoints of boxes, and of the layers that contain their files. The
 * files themselves belong to the keeper.
 *
 *   writing ──finish──► ready ──hide──► deleted ──(no row or box needs it)──► removed
 *      └──fail──► failed ──(its files are dropped)──► removed
 *
 * A row is written before the keeper is asked to create files, so every file has a row. A deleted
 * checkpoint keeps its row while a box or another checkpoint needs its layers or its index. */
#pragma once
#include "store/boxes.h"

enum {
	STORE_CHAIN = 16,  /* layers of a checkpoint */
	STORE_NOTE = 1000, /* bytes */
};

/* How long checkpoints are kept that no client has asked for, and those of an ended box. */
#define STORE_CHECKPOINT_DAY_NS (INT64_C(24) * 3600 * 1000000000)

enum store_checkpoint_state {
	STORE_CHECKPOINT_WRITING,
	STORE_CHECKPOINT_READY,
	STORE_CHECKPOINT_FAILED,
	STORE_CHECKPOINT_DELETED,
	STORE_CHECKPOINT_STATES
};
const char *store_checkpoint_state_name(enum store_checkpoint_state state);

struct store_checkpoint {
	char id[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char box[ID_MAX + 1];
	uint32_t generation;     /* of that box */
	char parent[ID_MAX + 1]; /* "": none */
	char origin[ID_MAX + 1]; /* with whose files the generation of the box began; "": none */

	char same_as[ID_MAX + 1]; /* nothing differs from this checkpoint; "": it has a layer */
	char chain[STORE_CHAIN][ID_MAX + 1]; /* its layers, the topmost first */
	unsigned nchain;
	char name[STORE_NAME + 1]; /* unique in its box; "": none */
	char note[STORE_NOTE + 1];
	char author[STORE_NAME + 1]; /* id of a key; "uid:0"; "": Atoll */
	char reason[STORE_WORD + 1]; /* "manual", "safety", "fork", "exec" ... */
	int64_t created_ns;
	int64_t expires_ns;      /* 0: kept until it is deleted */
	uint64_t bytes;          /* of its files */
	uint64_t files, deleted; /* entries in its layer; names that it removes */
	uint64_t frozen_us, took_us;
	uint32_t tracked; /* not stored; of a checkpoint that was just taken: wire_checkpointed */
	enum store_checkpoint_state state;
	int durable; /* survives a power failure */
	int pinned;  /* never expires */
	char template[STORE_TEMPLATE + 1];
	char tier[STORE_WORD + 1]; /* of the box; "": container */
	char *spec; /* JSON object: what a box with these files needs: root, layers, env */
};
void store_checkpoint_fini(struct store_checkpoint *x); /* fine on a zeroed one */

struct store_checkpoints {
	struct store_checkpoint *v;
	unsigned n;
	int more; /* next page: store_checkpoint_cursor() of the last one */
};
void store_checkpoints_fini(struct store_checkpoints *l);

/* A row in state writing. ERR_CONFLICT: the box has a checkpoint with this name. */
must_check int store_checkpoint_insert(struct store *s, const struct store_checkpoint *x,
				       struct err *e);
/* It is ready: chain, same_as and the figures; a row of its files; and the head of its box, if that still has this generation. In one transaction. */
must_check int store_checkpoint_finish(struct store *s, const struct store_checkpoint *x,
				       struct err *e);
/* From writing to failed. */
must_check int store_checkpoint_fail(struct store *s, const char *id, struct err *e);
/* All rows in state writing. */
must_check int store_checkpoint_writing(struct store *s, struct store_ids *out, struct err *e);
/* Its files survive a power failure. */
must_check int store_checkpoint_set_durable(struct store *s, const char *id, struct err *e);
/* name, note, pinned, expires_ns. ERR_CONFLICT: as above. */
must_check int store_checkpoint_update(struct store *s, const struct store_checkpoint *x,
				       struct err *e);
/* Deletes it for clients: its children become children of its parent. */
must_check int store_checkpoint_hide(struct store *s, const char *id, struct err *e);

/* Only ready ones, except where stated. team NULL: of any. */
must_check int store_checkpoint_get(struct store *s, const char *team, const char *id,
				    struct store_checkpoint *out, struct err *e);
/* Also a deleted one. */
must_check int store_checkpoint_any(struct store *s, const char *id, struct store_checkpoint *out,
				    struct err *e);
must_check int store_checkpoint_named(struct store *s, const char *box, const char *name,
				      struct store_checkpoint *out, struct err *e);
struct store_checkpoint_filter {
	const char *team; /* never NULL */
	const char *box;  /* NULL: any */
	struct store_cursor after;
	unsigned limit; /* 0: STORE_PAGE */
};
/* Newest first. */
must_check int store_checkpoint_list(struct store *s, const struct store_checkpoint_filter *f,
				     struct store_checkpoints *out, struct err *e);
struct store_cursor store_checkpoint_cursor(const struct store_checkpoint *x);
/* All ready ones of a box, oldest first, without spec; not paged. */
must_check int store_checkpoint_of_box(struct store *s, const char *box,
				       struct store_checkpoints *out, struct err *e);
must_check int store_checkpoint_count(struct store *s, const char *box, uint64_t *out,
				      struct err *e);
/* Bytes of the files of a team's checkpoints, each counted once; of all teams when it is NULL. */
must_check int store_checkpoint_bytes(struct store *s, const char *team, uint64_t *out,
				      struct err *e);
/* Ready checkpoints and bytes of all teams, for figures. */
must_check int store_checkpoint_totals(struct store *s, uint64_t *out_count, uint64_t *out_bytes,
				       struct err *e);

/* ---- retention ---- */

/* The box has ended: its unnamed, unpinned checkpoints expire then at the latest. */
must_check int store_checkpoint_box_ended(struct store *s, const char *box, int64_t expires_ns,
					  struct err *e);
/* This one expires then, unless it has a name or is pinned. */
must_check int store_checkpoint_expire(struct store *s, const char *id, int64_t expires_ns,
				       struct err *e);
/* Ready ones whose time has come, oldest first; at most 64. */
must_check int store_checkpoint_expired(struct store *s, int64_t now_ns,
					struct store_checkpoints *out, struct err *e);
/* Removes the rows that neither a client, a box nor another row needs. */
must_check int store_checkpoint_forget(struct store *s, struct err *e);
/* Files to drop, at most 64: of failed rows, and those that no row and no box needs. */
must_check int store_checkpoint_garbage(struct store *s, struct store_ids *out, struct err *e);
/* The keeper has dropped the files of this id. */
must_check int store_checkpoint_dropped(struct store *s, const char *id, struct err *e);

/* 1: a checkpoint or a layer has this id, in any state. */
must_check int store_checkpoint_has_row(struct store *s, const char *id, struct err *e);

/* ---- merged layers ---- */

/* The layer replaces the last n layers in every chain that ends with the last n of this one. */
must_check int store_checkpoint_merged(struct store *s, const struct store_checkpoint *of,
				       unsigned n, const char *layer, uint64_t bytes,
				       struct err *e);
/* Before the keeper is asked to write a merged layer: so that a crash leaves no file without a row. */
must_check int store_checkpoint_layer_add(struct store *s, const char *team, const char *id,
					  uint64_t bytes, int64_t created_ns, struct err *e);
