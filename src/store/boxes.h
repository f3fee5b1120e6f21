/* boxes.h - the data about a box that a new server process needs after all earlier ones have
 * ended. */
#pragma once
#include "store/store.h"

enum store_box_state {
	STORE_BOX_RUNNING,
	STORE_BOX_STOPPED,
	STORE_BOX_PAUSED,
	STORE_BOX_DELETED,
	STORE_BOX_STATES
};
const char *store_box_state_name(enum store_box_state state); /* "running", "stopped", ... */
int store_box_state_parse(
	const char *text,
	enum store_box_state
		*out); /* -1: no such state. Accepts also the names of earlier versions. */

enum store_on_timeout {
	STORE_TIMEOUT_KILL,
	STORE_TIMEOUT_KEEP,
	STORE_TIMEOUT_PAUSE,
	STORE_TIMEOUTS
};
const char *store_on_timeout_name(enum store_on_timeout t); /* "kill", "keep", "pause" */
int store_on_timeout_parse(const char *text, enum store_on_timeout *out); /* -1: no such word */

enum store_on_loss {                     /* when the lease of the node of a cluster ends */
		     STORE_LOSS_KEEP,    /* its programs continue */
		     STORE_LOSS_STOP,    /* its programs are stopped until the next lease */
		     STORE_LOSS_RESTART, /* the same, and it may restart on another node */
		     STORE_LOSSES
};
const char *store_on_loss_name(enum store_on_loss t);               /* "keep", "stop", "restart" */
int store_on_loss_parse(const char *text, enum store_on_loss *out); /* -1: no such word */

struct store_limits { /* 0: no such limit */
	uint64_t mem_bytes, disk_bytes, disk_files, cpu_ms;
	uint32_t cpu_milli, pids;
};

struct store_box {
	char id[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char name[STORE_NAME + 1]; /* unique among the team's boxes that are not deleted, or "" */
	char session[STORE_SESSION + 1]; /* the same, per template */
	char template[STORE_TEMPLATE + 1];
	char key[STORE_NAME + 1]; /* id of the key that created it; "": not known */
	char boot[64];            /* of the kernel it runs on: a reboot ends it */
	enum store_box_state state;
	enum store_on_timeout on_timeout;
	enum store_on_loss on_loss;
	int64_t epoch; /* of the node in which it was started; 0: not in a cluster */
	int64_t created_ns;
	int64_t started_ns;         /* the same, or when it was woken or resumed last */
	int64_t ends_ns;            /* 0: no end */
	int64_t idle_since_ns;      /* 0: busy, or not counted */
	int64_t stored_ns;          /* when it was stopped or paused last; 0: never */
	int64_t kept_until_ns;      /* 0: neither kept nor paused, or until deleted */
	int64_t ended_ns;           /* once gone ... */
	char cause[STORE_WORD + 1]; /* ... and why */
	uint64_t lifetime_ms;       /* as asked for; 0: none */
	uint64_t idle_ms;           /* 0: none */
	uint64_t retention_ms;      /* STORE_FOREVER: until deleted */
	uint64_t layers;            /* bits in force */
	struct store_limits limits;
	char *metadata; /* JSON object; NULL is {} */
	char *env;      /* JSON object; NULL is {} */
	char *volumes;  /* JSON array; NULL is [] */
	char *network;  /* JSON array of the hosts it may reach; NULL is []: none */
	char *surface; /* JSON object: what the surface that created it must remember; NULL is {} */
	char *secrets; /* JSON object: which secrets it has, without values; NULL is {} */
	char *isolation; /* JSON object: its tier and how it was chosen; NULL is {}: container */
	char *root; /* JSON object: build and root of its template, user, workdir; NULL is {}: base */
	char keeper[ID_MAX + 1]; /* id of its box at the keeper; "": the same as id */
	uint32_t generation;     /* its boxes at the keeper so far, with this one */
	uint64_t cpu_before_us;  /* charged for the generations before this one */
	char origin[ID_MAX + 1]; /* checkpoint with whose files this generation began; "": none */
	char head[ID_MAX + 1];   /* the last checkpoint of this generation, or origin */
	char image[ID_MAX +
		   1]; /* checkpoint from whose process image it continues: the box is paused on the
				  * disk, or being resumed from there; "": its programs are at the keeper */
	char *made;    /* JSON object: flags and package layers of its CREATE; NULL is {}: none */
	char *checkpoints; /* JSON object: its automatic checkpoints; NULL is {}: none */
};
void store_box_fini(struct store_box *b); /* frees its texts; fine on a zeroed one */

struct store_boxes {
	struct store_box *v;
	unsigned n;
	int more; /* next page: store_box_cursor() of the last one */
};
void store_boxes_fini(struct store_boxes *l);

/* ERR_CONFLICT: the id, the name or the session is taken; the message names it. */
must_check int store_box_insert(struct store *s, const struct store_box *b, struct err *e);
/* The row of a deleted box, before a box with the same id is created. */
must_check int store_box_forget(struct store *s, const char *id, struct err *e);
/* The whole row but id, team, template, created_ns, key, isolation, on_loss and epoch, which never
 * change, and head, which belongs to store_box_set_head(). */
must_check int store_box_update(struct store *s, const struct store_box *b, struct err *e);
/* STORE_BOX_DELETED: sets cause and time; name and session can be used again. Other states clear
 * both. */
must_check int store_box_set_state(struct store *s, const char *id, enum store_box_state state,
				   const char *cause, int64_t ended_ns, struct err *e);
/* Stores the cause before the end of a box is started; a server that finds the box ended reads
 * it. */
must_check int store_box_intend(struct store *s, const char *id, const char *cause, struct err *e);
/* As store_box_set_state() with GONE, for a box that is not deleted yet. ERR_NOT_FOUND: another
 * process was first, and its cause is kept. */
must_check int store_box_bury(struct store *s, const char *id, const char *cause, int64_t ended_ns,
			      struct err *e);
/* Only the clocks that move often. */
must_check int store_box_set_times(struct store *s, const char *id, int64_t ends_ns,
				   int64_t idle_since_ns, int64_t kept_until_ns, struct err *e);

/* The checkpoint that was taken last. */
must_check int store_box_set_head(struct store *s, const char *id, const char *head, struct err *e);

/* What is written about its end: the cause, "" if none, and whether it is deleted. */
must_check int store_box_end_of(struct store *s, const char *id, char out_cause[STORE_WORD + 1],
				int *out_deleted, struct err *e);
/* Gone ones too. */
must_check int store_box_get(struct store *s, const char *id, struct store_box *out, struct err *e);
/* The deleted box with this id, or the newest with this name among the team's last
 * STORE_BOX_RECENT. */
enum { STORE_BOX_RECENT = 500 };
must_check int store_box_gone(struct store *s, const char *team, const char *id_or_name,
			      struct store_box *out, struct err *e);
/* Not the gone ones. */
must_check int store_box_by_name(struct store *s, const char *team, const char *name,
				 struct store_box *out, struct err *e);
must_check int store_box_by_session(struct store *s, const char *team, const char *session,
				    const char *template, struct store_box *out, struct err *e);

struct store_pair {
	const char *key, *value;
};
enum { STORE_PAIRS_MAX = 8 };
struct store_box_filter {     /* zero: everything that is not deleted */
	const char *team;     /* NULL: of all */
	unsigned states;      /* bits 1u << state; 0: all but deleted */
	const char *template; /* NULL: any, as below */
	const char *name_prefix;
	const struct store_pair *metadata; /* each must be there, with this very string */
	unsigned nmetadata;                /* up to STORE_PAIRS_MAX */
	struct store_cursor after;
	unsigned limit; /* 0: STORE_PAGE */
};
/* Newest first. */
must_check int store_box_list(struct store *s, const struct store_box_filter *f,
			      struct store_boxes *out, struct err *e);
struct store_cursor store_box_cursor(const struct store_box *b);
/* All boxes that are not deleted, oldest first: those that a restarted server manages. Not
 * paged. */
must_check int store_box_live(struct store *s, struct store_boxes *out, struct err *e);
must_check int store_box_count(struct store *s, const char *team, uint64_t *out_live,
			       struct err *e);

/* Boxes of the keeper that another one has replaced: they are ended, and forgotten after that. The
 * row is written with the replacement, so that a crash leaves no box without a row. */
must_check int store_replaced_add(struct store *s, const char *keeper, struct err *e);
must_check int store_replaced_remove(struct store *s, const char *keeper, struct err *e);
struct store_ids {
	char (*v)[ID_MAX + 1]; /* for free() */
	unsigned n;
};
must_check int store_replaced_list(struct store *s, struct store_ids *out, struct err *e);
