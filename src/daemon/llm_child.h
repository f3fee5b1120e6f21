/* llm_child.h - the warden's hold on the process that asks models: which file, the process, who has a line to it.
 * Owns: the process and the link to it. When it ends, another one is started; when the file says something
 *       else after a reload, too, and the old one answers what it was asked.
 *
 * The warden never reads the file: fronts are its children and have its memory. Whoever has to look into
 * it is a child that ends, or the process itself. */
#pragma once
#include "daemon/child.h"
#include "daemon/config.h"

enum { LLM_CHILD_DIGEST = 32 };

struct llm_child {
	struct child child;
	char path[512];
	uint8_t digest[LLM_CHILD_DIGEST]; /* of what it was started with */
	int root;                         /* it becomes somebody else */
};

/* The file of models: serve.models, or models.toml beside a file of settings; "": there is none. */
void llm_child_path(const struct config *c, char out[512]);
/* Is it one? Nothing is also fine. */
must_check int llm_child_check(const struct config *c, struct err *e);

void llm_child_init(struct llm_child *o, int root);
void llm_child_apply(struct llm_child *o, const struct config *c); /* as egress_child_apply() */
int llm_child_tend(struct llm_child *o);
int llm_child_ended(struct llm_child *o, pid_t pid);
int llm_child_hand(struct llm_child *o, int server_link);
