/* llm_child.h - how the supervisor manages the llm process: which file, the process, the servers
 * connected to it.
 * Owns: the process and the link to it. When it ends, another one is started; also when the file
 * has changed at a reload, and the old process finishes its requests.
 *
 * The supervisor never reads the file: servers are its children and have its memory. Only a
 * child that exits afterwards, or the llm process itself, reads it. */
#pragma once
#include "daemon/child.h"
#include "daemon/config.h"

enum { LLM_CHILD_DIGEST = 32 };

struct llm_child {
	struct child child;
	char path[512];
	uint8_t digest[LLM_CHILD_DIGEST]; /* of the settings with which it was started */
	int root;                         /* it changes its uid */
};

/* Is it one? Nothing is also fine. */
must_check int llm_child_check(const struct config *c, struct err *e);

void llm_child_init(struct llm_child *o, int root);
void llm_child_apply(struct llm_child *o, const struct config *c); /* as egress_child_apply() */
int llm_child_maintain(struct llm_child *o);
int llm_child_ended(struct llm_child *o, pid_t pid);
int llm_child_hand(struct llm_child *o, int server_link);
