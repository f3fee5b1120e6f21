/* builds.h - builds of templates, the layers that they made, their cache and their uploads. */
#pragma once
#include "store/packages.h"
#include "store/templates.h"

enum store_build_state {
	STORE_BUILD_WAITING, /* for its definition, or for a free place */
	STORE_BUILD_BUILDING,
	STORE_BUILD_READY,
	STORE_BUILD_ERROR,
	STORE_BUILD_CANCELLED,
	STORE_BUILD_STATES
};
const char *store_build_state_name(enum store_build_state state); /* "waiting", ... */

struct store_build {
	char id[STORE_BUILD_ID + 1]; /* UUID */
	char template[STORE_TEMPLATE_ID + 1];
	char team[STORE_NAME + 1];
	enum store_build_state state;
	char *definition; /* JSON object; "{}" until it has one */
	char *tags;       /* JSON array: what will point to it when it is ready */
	char *progress;   /* JSON object of the engine: finished steps and their layers */
	char *settings; /* JSON object: env, user, uid, gid, home, workdir, start, ready, port ... */
	char *reason;   /* JSON object: why it failed; "{}" otherwise */
	char root[STORE_HASH + 1]; /* "": none yet, or the host's root */
	uint64_t bytes;            /* of its root */
	uint32_t cpu_milli;        /* defaults for its boxes; 0: those of the daemon */
	uint64_t mem_bytes, disk_bytes;
	int64_t created_ns, started_ns, ended_ns; /* 0: not yet */
};
void store_build_fini(struct store_build *b);
struct store_builds {
	struct store_build *v;
	unsigned n;
	int more;
};
void store_builds_fini(struct store_builds *l);

must_check int store_build_insert(struct store *s, const struct store_build *b, struct err *e);
/* The whole row but id, template, team and created_ns. */
must_check int store_build_update(struct store *s, const struct store_build *b, struct err *e);
must_check int store_build_get(struct store *s, const char *id, struct store_build *out,
			       struct err *e);
/* Newest first; template NULL: of all of the team. limit 0: STORE_PAGE. */
must_check int store_build_list(struct store *s, const char *team, const char *template,
				unsigned limit, struct store_builds *out, struct err *e);
/* Those that have a definition and have not ended, oldest first, of all teams. */
must_check int store_build_unfinished(struct store *s, struct store_builds *out, struct err *e);
must_check int store_build_remove(struct store *s, const char *id, struct err *e);
/* The newest ready build of a template. */
must_check int store_build_newest(struct store *s, const char *template, struct store_build *out,
				  struct err *e);

/* ---- layers and roots that the keeper has for templates ---- */
struct store_layer {
	char id[STORE_HASH + 1];
	int is_root;
	uint64_t bytes;
	int64_t used_ns;
};
must_check int store_layer_put(struct store *s, const struct store_layer *l, struct err *e);
/* The same, unless it has a row or is the layer of a package set. Returns 1: added; 0: not. */
must_check int store_layer_found(struct store *s, const struct store_layer *l, struct err *e);
must_check int store_layer_forget(struct store *s, const char *id, struct err *e);
/* The one unused for longest that no build and no cache row names, and that was made or found before
 * this time; roots first, after skipping this many. ERR_NOT_FOUND: no more. */
must_check int store_layer_unused(struct store *s, int64_t before_ns, unsigned skip,
				  struct store_layer *out, struct err *e);

/* ---- the cache: key of a step -> layer ---- */
must_check int store_cache_put(struct store *s, const char *team, const char *key,
			       const char *layer, const char *state, int64_t now_ns, struct err *e);
/* Marks it as used. out_state: JSON, to be freed. */
must_check int store_cache_get(struct store *s, const char *team, const char *key, int64_t now_ns,
			       char out_layer[STORE_HASH + 1], char **out_state, struct err *e);
must_check int store_cache_forget(struct store *s, const char *layer, struct err *e);
/* Removes the least recently used rows until the layers of the rest have at most this many bytes. */
must_check int store_cache_trim(struct store *s, uint64_t bytes_most, struct err *e);

/* ---- uploads: archives for COPY, by the hash that the client chose ---- */
struct store_upload {
	char team[STORE_NAME + 1];
	char hash[STORE_HASH + 1];
	char file[ID_MAX + 1]; /* its name in the folder of the engine */
	uint64_t bytes;
	int64_t used_ns;
};
must_check int store_upload_put(struct store *s, const struct store_upload *u, struct err *e);
must_check int store_upload_get(struct store *s, const char *team, const char *hash,
				struct store_upload *out, struct err *e);
must_check int store_upload_use(struct store *s, const char *team, const char *hash, int64_t now_ns,
				struct err *e);
must_check int store_upload_remove(struct store *s, const char *file, struct err *e);
/* The one unused for longest, of all teams. */
must_check int store_upload_oldest(struct store *s, struct store_upload *out, struct err *e);
must_check int store_upload_bytes(struct store *s, const char *team, uint64_t *out, struct err *e);
/* 1: a row names this file. */
must_check int store_upload_has_file(struct store *s, const char *file, struct err *e);
