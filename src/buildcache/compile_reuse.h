/* compile_reuse.h - a compiler's work in a box of the fleet, spared where it has been done before.
 * Owns: the look into the box, what is on its way in or out of it, until compile_reuse_fini().
 *
 *   compile_reuse_lookup() --> [what else is in the box?] --> there is one: laid into the box --> done(1)
 *                          a living one               there is none --> done(0), a compiler runs
 *   compile_reuse_keep() --> taken out of the box, kept --> done
 *
 * Two sorts of keys. A team's: put there only from a box in which no program but ours had ever been
 * started, nobody was but us, and nothing lay but what came with the request; so what the key says is all
 * the compiler saw, and nobody could have been at its work. Anybody of the team may be given it whose box
 * says of itself that nothing else is in there. A box's own: with a digest of what else is in it. What is
 * kept under it was made where anything may run, and goes nowhere else: a box that lies, lies to itself.
 *
 * Whatever goes wrong here is told to nobody: then the compiler runs, as ever. */
#pragma once
#include "client/file_client.h"
#include "lang/compile_cache.h"
#include "buildcache/upper_digest.h"
#include "base/id.h"

struct box;
struct lang;
struct fleet;

enum {
	COMPILE_REUSE_SAID = 32 * 1024
}; /* bytes of each stream of a compiler that are kept with its work */

struct compile_reuse_spec {       /* texts: borrowed until compile_reuse_fini() */
	struct compile_inputs of; /* without what is the box's */
	const struct lang *lang;
	const char *program; /* what the compiler makes, in the box */
	int alone;           /* the box was made for this, and nothing but files was given to it */
	unsigned holds;      /* of the berth, when the first file was given to it */
	unsigned started;    /* programs of ours before the compiler: those that tell a version */
};

struct compile_reuse {
	/* clang-format off */
	void (*done)(struct compile_reuse *x, int found); /* once for each call of the two; perhaps from within */
	struct compile_reuse *next;
	struct box *box; /* whose list that is; NULL: it is idle */
	struct fleet *fleet;
	char box_id[ID_LEN + 1];
	struct compile_reuse_spec want;
	unsigned starts; /* of the berth, when we came */
	int is_keyed;
	int is_quiet; /* nobody else is in the box right now */
	int is_ours;  /* nor has ever been: what is made there may be the team's */
	struct compile_cache_key team, own;
	int may_team; /* the first key is good for this box */
	struct upper_digest upper;
	const char **places; /* upper.own and upper.loose */
	char *place_text;
	struct file_client file_client;
	int file_client_open;
	int stage;
	struct init_call ear; /* what packs, or unpacks */
	const char **helper;
	struct buf kept, given;
	struct compile_output made; /* in kept */
	struct buf said[2];        /* by the compiler whose work is being kept */
	/* clang-format on */
};

void compile_reuse_lookup(struct compile_reuse *x, struct box *b,
			  const struct compile_reuse_spec *want);
/* Behind a compiler that ran because of done(0), and ended well. said: all of its words. */
void compile_reuse_keep(struct compile_reuse *x, const struct buf said[2]);
/* Fails the lookups of a box that ends: fleet_conf.hooks has it. */
extern const struct box_hooks compile_reuse_hooks;
void compile_reuse_fini(struct compile_reuse *x); /* at any time; fine on a zeroed one */
