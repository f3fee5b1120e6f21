/* llm_child.h - the warden's hold on the process that asks models: which file, the process, who has a line to it.
 * Owns: the process and the link to it. When it ends, another one is started; when the file says something
 *       else after a reload, too, and the old one answers what it was asked.
 *
 * The warden never reads the file: fronts are its children and have its memory. Whoever has to look into
 * it is a child that ends, or the process itself. */
#pragma once
#include "daemon/child.h"
#include "daemon/config.h"

enum { ENVOY_DIGEST = 32 };

struct envoy {
	struct aide aide;
	char path[512];
	uint8_t digest[ENVOY_DIGEST]; /* of what it was started with */
	int root;                     /* it becomes somebody else */
};

/* The file of models: serve.models, or models.toml beside a file of settings; "": there is none. */
void envoy_path(const struct config *c, char out[512]);
/* Is it one? Nothing is also fine. */
must_check int envoy_check(const struct config *c, struct err *e);

void envoy_init(struct envoy *o, int root);
void envoy_apply(struct envoy *o, const struct config *c); /* as sluice_apply() */
int envoy_tend(struct envoy *o);
int envoy_ended(struct envoy *o, pid_t pid);
int envoy_hand(struct envoy *o, int front_link);
