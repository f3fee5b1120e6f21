/* choose.h - which isolation tier a request gets: a pure function of policy, facts and request.
 * Owns: nothing. docs/tiers.md, "Selection", describes the rules. */
#pragma once
#include "base/err.h"
#include <stdint.h>

/* All tiers, weakest first. This is not enum wire_tier: a box of `wasm` is a container for the keeper. */
enum choose_tier {
	CHOOSE_PROCESS,
	CHOOSE_CONTAINER,
	CHOOSE_PLAIN, /* test builds: a container behind mux */
	CHOOSE_WASM,
	CHOOSE_GVISOR,
	CHOOSE_MICROVM,
	CHOOSE_TIERS,
	CHOOSE_NONE = CHOOSE_TIERS, /* no minimum, no tier named */
};
const char *choose_tier_name(enum choose_tier t); /* "gvisor"; CHOOSE_NONE: "" */
int choose_tier_rank(enum choose_tier t);         /* larger is stronger; CHOOSE_NONE: 0 */
/* ERR_INVALID: no such tier; the message has the most similar name. */
must_check int choose_tier_parse(const char *text, enum choose_tier *out, struct err *e);
unsigned choose_wire_tier(enum choose_tier t); /* enum wire_tier, for CREATE */
enum choose_tier choose_of_wire(unsigned wire_tier);

/* Labels of code, by how far it is trusted. */
enum choose_trust {
	CHOOSE_TRUSTED,
	CHOOSE_GENERATED, /* written by a model: the label of a request without one */
	CHOOSE_UNTRUSTED,
	CHOOSE_HOSTILE,
	CHOOSE_TRUSTS
};
const char *choose_trust_name(enum choose_trust t);
must_check int choose_trust_parse(const char *text, enum choose_trust *out, struct err *e);

struct choose_settings {                       /* [isolation] */
	enum choose_tier label[CHOOSE_TRUSTS]; /* minimum by label */
	enum choose_tier prefer[CHOOSE_TIERS]; /* the order in which `auto` tries them ... */
	unsigned nprefer;                      /* ... and no others */
	int process, emulation;                /* allowed */
};
extern const struct choose_settings choose_defaults;

struct choose_policy {
	const struct choose_settings *settings;
	enum choose_tier team, key, template; /* minimum of each, or CHOOSE_NONE */
	int key_process;                      /* the key may use `process` */
	int many_teams;                       /* the host has more than one team */
};

enum choose_state { CHOOSE_UNAVAILABLE, CHOOSE_UNPREPARED, CHOOSE_OFFERED };
enum choose_proof { CHOOSE_UNPROVEN, CHOOSE_PROVEN, CHOOSE_WITHDRAWN };

struct choose_fact { /* of one tier */
	enum choose_state state;
	enum choose_proof proof;
	int emulated;
	uint64_t unsupported;   /* bits of enum wire_need */
	uint64_t mem_min_bytes; /* smallest memory limit of a box; 0: none */
	const char
		*reason; /* why it is not offered, with the command that helps; NULL: not known */
};
struct choose_facts {
	struct choose_fact tier[CHOOSE_TIERS];
};

enum choose_how { CHOOSE_AUTO, CHOOSE_NAMED, CHOOSE_AT_LEAST };
struct choose_request { /* zero: nothing was requested */
	int has_trust;
	enum choose_trust trust;
	enum choose_how how;
	enum choose_tier tier; /* unless AUTO */
	uint64_t needs;        /* bits of enum wire_need */
	uint64_t mem_bytes;    /* 0: no limit */
	int modules;           /* all its programs exist as modules: `wasm` is possible */
	/* A snapshot of a box with an engine is restored in its own tier only. */
	int has_snapshot;
	enum choose_tier snapshot;
};
/* "auto", "gvisor", "gvisor+" (at least gvisor). */
must_check int choose_request_parse(const char *text, struct choose_request *out, struct err *e);
enum { CHOOSE_TEXT = 32 };
void choose_request_text(const struct choose_request *q, char out[CHOOSE_TEXT]); /* the same text */

/* What requires the rank, the first of those that require the same. */
enum choose_source {
	CHOOSE_BY_LABEL,
	CHOOSE_BY_TEAM,
	CHOOSE_BY_KEY,
	CHOOSE_BY_TEMPLATE,
	CHOOSE_BY_REQUEST
};
const char *choose_source_name(enum choose_source s);

struct choose_result {
	enum choose_tier tier;
	int rank;     /* of the tier: that of a container if it is emulated */
	int required; /* the largest minimum */
	enum choose_source source;
	enum choose_trust trust;
};
/* -1: no tier fits, choose_why() returns the reason for each tier. */
must_check int choose(const struct choose_policy *p, const struct choose_facts *f,
		      const struct choose_request *q, struct choose_result *out);
enum { CHOOSE_WHY = 320 };
/* 0: the tier is a candidate. 1: it is not; out has the reason and what helps, in one line. */
int choose_why(const struct choose_policy *p, const struct choose_facts *f,
	       const struct choose_request *q, enum choose_tier t, char out[CHOOSE_WHY]);
/* Whether a line of a rejection is about this tier: `plain` exists in test builds only. */
int choose_is_listed(const struct choose_facts *f, enum choose_tier t);
/* Adds the bit of "gpu", "root", "terminal" or "volume", words in the needs of a template. */
must_check int choose_need_parse(const char *text, uint64_t *out_bits, struct err *e);
