/* compile_reuse.h - uses the compile cache for a box of the fleet.
 * Owns: the check of the box, and transfers into and out of it, until compile_reuse_fini().
 *
 *   compile_reuse_lookup() --> [check other files of the box] --> found: written into the box --> done(1)
 *                              only of a used box                 not found --> done(0), a compiler runs
 *   compile_reuse_keep() --> read from the box and stored --> done
 *
 * There are two kinds of keys. A key of a team is stored only from a box in which no exec but those
 * of Atoll was ever started, which no other client used, and which contained only the files of the
 * request; so the key covers all inputs of the compiler. Every member of the team may get the entry
 * in a box that reports no other files. A key of a box includes a digest of its other files. Its
 * entry was made where any program may run, and is used in that box only: a box that reports false
 * digests affects only itself. A failure here is not reported: then the compiler runs as usual. */
#pragma once
#include "client/file_client.h"
#include "lang/compile_cache.h"
#include "buildcache/upper_digest.h"
#include "base/id.h"

struct box;
struct lang;
struct fleet;

enum { COMPILE_REUSE_SAID = 32 * 1024 }; /* stored bytes of each output stream of a compiler */

struct compile_reuse_spec {       /* texts: borrowed until compile_reuse_fini() */
	struct compile_inputs of; /* without the variables of the box */
	const struct lang *lang;
	const char *program; /* the output file of the compiler, in the box */
	int alone;           /* the box was created for this request and got only files */
	unsigned holds;      /* of the box, when the first file was written into it */
	unsigned started;    /* internal execs before the compiler: version commands */
};

struct compile_reuse {
	/* clang-format off */
	void (*done)(struct compile_reuse *x, int found); /* once per call, perhaps within it */
	struct compile_reuse *next;
	struct box *box; /* the list owner; NULL: idle */
	struct fleet *fleet;
	char box_id[ID_MAX + 1];
	struct compile_reuse_spec want;
	unsigned starts; /* execs of the box at the time of the lookup */
	int is_keyed;
	int is_quiet; /* no other client uses the box now */
	int is_ours;  /* and none ever did: its output may be stored for the team */
	struct compile_cache_key team, own;
	int may_team; /* the first key is valid for this box */
	struct upper_digest upper;
	const char **places; /* upper.own and upper.loose */
	char *place_text;
	struct file_client file_client;
	int file_client_open;
	int stage;
	struct init_call init_call; /* the exec that packs or unpacks */
	const char **helper;
	struct buf kept, given;
	struct compile_output made; /* in kept */
	struct buf said[2];        /* output of the compiler that is being stored */
	/* clang-format on */
};

void compile_reuse_lookup(struct compile_reuse *x, struct box *b,
			  const struct compile_reuse_spec *want);
/* Call it after a compiler that ran because of done(0) and succeeded. said: its complete output. */
void compile_reuse_keep(struct compile_reuse *x, const struct buf said[2]);
/* Fails the lookups of a box that ends: called by fleet_conf.hooks. */
extern const struct box_hooks compile_reuse_hooks;
void compile_reuse_fini(struct compile_reuse *x); /* at any time; allowed on a zeroed one */
