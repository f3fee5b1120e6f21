/* models_config.h - the models configuration, /etc/atoll/models.toml: providers, models and their
 * prices, roles.
 * Owns: every string in it. Keys are stored only here: models_config_fini() wipes them, nothing
 * prints them. */
#pragma once
#include "base/err.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct dialect;

enum {
	MODELS_CONFIG_PROVIDERS = 64,
	MODELS_CONFIG_MODELS = 64,
	MODELS_CONFIG_ROLES = 16,
	MODELS_CONFIG_LEVELS = 4,
	MODELS_CONFIG_KEY = 4096
};

enum models_config_schema { SCHEMA_NATIVE, SCHEMA_TOOL, SCHEMA_NONE }; /* how it is requested */

struct models_config_provider {
	char *name;
	const struct dialect *dialect;
	char *base; /* no '/' at its end */
	char *host; /* of base, without brackets */
	uint16_t port;
	char *key; /* NULL: none is sent */
	char *ca;  /* PEM of its authorities; NULL: the system's */
	size_t ca_len;
	uint32_t connect_ms, silence_ms, deadline_ms;
	unsigned retries;
	enum models_config_schema schema;
	int old_limit; /* its servers use the name max_tokens */
};

struct models_config_price { /* per million tokens */
	double in, out, cache_read, cache_write;
};

struct models_config_model {
	char *id;   /* ours */
	char *name; /* theirs */
	const struct models_config_provider *provider;
	struct models_config_price price;
	uint32_t max_tokens; /* of an answer; larger requests are reduced to it. 0: no maximum */
};

struct models_config_role {
	char *name;
	const struct models_config_model *levels[MODELS_CONFIG_LEVELS];
	unsigned n;
};

struct models_config {
	struct models_config_provider providers[MODELS_CONFIG_PROVIDERS];
	struct models_config_model models[MODELS_CONFIG_MODELS];
	struct models_config_role roles[MODELS_CONFIG_ROLES];
	unsigned nproviders, nmodels, nroles;
};

/* name: for errors, "models.toml:3: ...". key_file and ca_file are read, key_env is looked up: call
 * it before the process confines itself. On -1 nothing is left to free. */
must_check int models_config_parse(struct models_config *out, const char *name, const char *text,
				   size_t len, struct err *e);
must_check int models_config_load(struct models_config *out, const char *path, struct err *e);
void models_config_fini(struct models_config *b); /* fine on a zeroed one */

/* The model for a request: by its id, or the level-th of a role (the last one, where there are fewer).
 * NULL with e: there is none. */
const struct models_config_model *models_config_find(const struct models_config *b,
						     const char *model, const char *role,
						     unsigned level, struct err *e);
/* {models: [{id, name, provider, dialect, price}], roles: {planner: [id]}}; no key, no base. */
json_t *models_config_public(const struct models_config *b);
/* SHA-256 of all values, keys included: shows whether the configuration has changed. */
void models_config_digest(const struct models_config *b, uint8_t out[32]);
