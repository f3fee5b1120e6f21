/* isolation.h - the isolation tiers of this host as the server knows them, and the tier of each new box.
 * Owns:         the facts that the keeper has sent, and the timer that requests them again.
 * Does not own: the rules (tier/choose.h); the proofs (prove/), which the daemon connects with `proof`.
 *
 *   keeper --TIERS_REPLY--> facts ─┐
 *   proof() -----------------------┼─> choose() -> flags of CREATE, row.isolation
 *   settings, team, key, template ─┘
 *
 * Every box of the server gets its tier here, also those of batches and pipelines: no caller can
 * create a box in a weaker tier than its minima require. */
#pragma once
#include "base/id.h"
#include "loop/loop.h"
#include "store/boxes.h"
#include "tier/choose.h"
#include "wire/wire.h"
#include <jansson.h>

struct fleet;
struct keeper_call;
struct store;

/* What the evidence says about a tier. */
struct isolation_proof {
	enum choose_proof state;
	char id[ID_MAX + 1]; /* of the valid proof, which boxes cite; "": none */
	int64_t at_ns;       /* when it was made; 0: never */
};

struct isolation {
	struct choose_settings settings;
	struct wire_tier_facts facts[CHOOSE_TIERS]; /* by enum choose_tier */
	struct isolation_proof proofs[CHOOSE_TIERS];
	struct choose_facts judged; /* of both */
	struct timer again;
	struct keeper_call *asking;
	uint64_t asked_ms; /* when the facts were last requested; 0: never */
	unsigned outdated; /* requests that follow soon, because an engine has changed */
	void (*refreshed)(struct fleet *f, int ok); /* of isolation_refresh(); NULL: none waits */
	/* Set by the daemon; NULL: no tier is proven. Called when facts were received or
	 * isolation_prove() is called, for each tier that the keeper offers. */
	void (*proof)(struct fleet *f, enum choose_tier t, const struct wire_tier_facts *x,
		      struct isolation_proof *out);
	void (*changed)(struct fleet *f); /* after new facts were judged; may be NULL */
	struct {
		char message[240]; /* of the last rejection ... */
		char lines[CHOOSE_TIERS *
			   (CHOOSE_WHY + 16)]; /* ... and its lines, one for each tier */
	} rejected;
};

void isolation_init(struct fleet *f, const struct choose_settings *s);
void isolation_fini(struct fleet *f);
/* The keeper has connected: requests the facts. */
void isolation_connected(struct fleet *f);
/* The keeper has rejected a box because of old facts. Requests them now and twice more within seconds:
 * the keeper examines an engine that has just been examined only after 2 s. */
void isolation_outdated(struct fleet *f);
/* The keeper examines its host again; done is called when the new facts are judged. ERR_CONFLICT: another
 * request is in progress. */
must_check int isolation_refresh(struct fleet *f, void (*done)(struct fleet *f, int ok),
				 struct err *e);
void isolation_prove(struct fleet *f); /* a proof was stored: judges all tiers again */

/* ---- a request ---- */

/* The members `isolation` and `trust` of a request; each may be NULL. */
must_check int isolation_read(const json_t *isolation, const json_t *trust,
			      struct choose_request *out, struct err *e);
/* The same members of a request that was checked and stored. One that this version cannot read requires the strongest
 * tier. */
struct choose_request isolation_stored(const json_t *request);
/* The same texts as a client may only raise them: isolation is a minimum, trust is not below generated. */
must_check int isolation_read_raise(const char *isolation, const char *trust,
				    struct choose_request *out, struct err *e);
/* The tier of the files with which a box starts. */
struct store_snapshot;
void isolation_of_snapshot(const struct store_snapshot *s, struct choose_request *out);
struct choose_request isolation_like(const struct store_box *row); /* for a copy of that box */
/* "" or a tier that can be a minimum; for team, key and template. `process` is accepted of keys. */
must_check int isolation_check_minimum(const char *text, int of_key, struct err *e);
/* A new key of this team; by: the minimum of the key that creates it, "" for none. A key without a minimum inherits
 * that one. A key below the minimum of its team, or of the key that creates it, is rejected. Only operators create keys
 * that may use `process`: ERR_DENIED. */
struct store_key;
must_check int isolation_check_key(struct store *s, struct store_key *k, const char *by,
				   int is_operator, struct err *e);

/* `isolation` and `needs` of a template: a text and an array of texts, or NULL. */
must_check int isolation_check_template(const json_t *isolation, const json_t *needs,
					struct err *e);

struct isolation_ask {
	const char *team, *key; /* NULL or "": none */
	const char *root;       /* row.root of the box; NULL: base */
	int is_own;             /* only programs of Atoll run in the box: no minima */
	struct choose_request request;
};
struct isolation_choice {
	enum choose_tier tier;
	uint16_t flags; /* of CREATE */
	int no_zygote;  /* the tier has no warm interpreters */
	int emulated;   /* as isolation_is_emulated() */
	char *text;     /* JSON for row.isolation, for free(); NULL: not requested */
};
/* ERR_CONFLICT with sys ENOTSUP: no tier fits; isolation_lines() has the reasons. want_text 0: only the tier is
 * computed. */
must_check int isolation_choose(struct fleet *f, const struct isolation_ask *a, int want_text,
				struct isolation_choice *out, struct err *e);
/* For a request that would use an existing box: -1 if the box is weaker than the request requires. */
must_check int isolation_accepts(struct fleet *f, const struct isolation_ask *a,
				 const struct store_box *row, struct err *e);
/* -1: the tier of this box does not execute this program. */
must_check int isolation_check_program(const struct store_box *row, const char *program,
				       struct err *e);
/* The lines of the rejection with this message; NULL: it is not the last one. */
const char *isolation_lines(const struct fleet *f, const struct err *e);
int isolation_is_rejection(const struct err *e);

enum { ISOLATION_EMULATED_TIMES = 5 }; /* isolation_usual_ms() */

/* ---- JSON ---- */

/* `isolation` of a box: what its row has, and the features in force. names: of row.layers, NULL-terminated. */
json_t *isolation_json(const struct store_box *row, const char *const *names);
/* 1: the processor of its programs is emulated; they are several times slower. */
int isolation_is_emulated(const struct store_box *row);
/* A time limit that no request names, for programs of that box: five times as long where they are emulated. */
uint64_t isolation_usual_ms(const struct store_box *row, uint64_t ms);
/* 1: init is the first process of the box, and can stop all others (on_loss). */
int isolation_can_stop_all(uint16_t tier);
/* Adds what the guest of a new box has reported (wire_box.inner) to the text of its choice. */
void isolation_add_inner(char **text, uint16_t inner);
/* isolation_json() for a box without a row. text: as in row.isolation; NULL: container. */
json_t *isolation_text_json(const char *text, uint64_t features, const char *const *names);
json_t *isolation_tiers_json(const struct fleet *f); /* GET /v1/tiers: an array */
/* The name of the tier in a row; valid as long as the program. */
const char *isolation_tier(const struct store_box *row);
int isolation_has_checkpoints(
	const struct store_box *row); /* its files can be captured from outside */
