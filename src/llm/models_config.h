/* models_config.h - who can be asked: providers, models and their prices, roles. /etc/atoll/models.toml.
 * Owns: every text in it. Keys are here and nowhere else: book_fini() wipes them, nothing prints them. */
#pragma once
#include "base/err.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct dialect;

enum { BOOK_PROVIDERS = 64, BOOK_MODELS = 64, BOOK_ROLES = 16, BOOK_LEVELS = 4, BOOK_KEY = 4096 };

enum book_schema { SCHEMA_NATIVE, SCHEMA_TOOL, SCHEMA_NONE }; /* how a form is demanded */

struct book_provider {
	char *name;
	const struct dialect *dialect;
	char *base;           /* no '/' at its end */
	char *host;           /* of base, without brackets */
	uint16_t port;
	char *key;            /* NULL: none is sent */
	char *ca;             /* PEM of its authorities; NULL: the system's */
	size_t ca_len;
	uint32_t connect_ms, silence_ms, deadline_ms;
	unsigned retries;
	enum book_schema schema;
	int old_limit; /* its servers call it max_tokens */
};

struct book_price { /* per million tokens */
	double in, out, cache_read, cache_write;
};

struct book_model {
	char *id; /* ours */
	char *name; /* theirs */
	const struct book_provider *provider;
	struct book_price price;
	uint32_t max_tokens; /* of an answer; what is asked for is cut to it. 0: whatever is asked for */
};

struct book_role {
	char *name;
	const struct book_model *levels[BOOK_LEVELS];
	unsigned n;
};

struct book {
	struct book_provider providers[BOOK_PROVIDERS];
	struct book_model models[BOOK_MODELS];
	struct book_role roles[BOOK_ROLES];
	unsigned nproviders, nmodels, nroles;
};

/* name: for errors, "models.toml:3: ...". key_file and ca_file are read, key_env is looked up: call it
 * before the walls. On -1 nothing is left to free. */
must_check int book_parse(struct book *out, const char *name, const char *text, size_t len, struct err *e);
must_check int book_load(struct book *out, const char *path, struct err *e);
void book_fini(struct book *b); /* fine on a zeroed one */

/* The model for a request: by its id, or the level-th of a role (the last one, where there are fewer).
 * NULL with e: there is none. */
const struct book_model *book_find(const struct book *b, const char *model, const char *role,
				   unsigned level, struct err *e);
/* {models: [{id, name, provider, dialect, price}], roles: {planner: [id]}}; no key, no base. */
json_t *book_public(const struct book *b);
/* SHA-256 over all that matters, keys as well: is it another book? */
void book_digest(const struct book *b, uint8_t out[32]);
