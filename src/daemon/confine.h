/* confine.h - confines the server, egress, llm and outbound: a uid of its own, one folder or none, few
 * system calls.
 * Owns: the tables of calls. A step that fails ends the start. */
#pragma once
#include "base/err.h"
#include <sys/types.h>

/* Groups, gid, uid, then read back; no_new_privs; landlock: `folder` alone; the filter. uid
 * (uid_t)-1: keeps its uid. Call it before the first thread and before reading bytes of a
 * client. */
must_check int confine_enter(uid_t uid, gid_t gid, const char *folder, struct err *e);

/* The same for egress: no file at all, and internet sockets only. */
must_check int confine_enter_egress(uid_t uid, gid_t gid, struct err *e);

/* For the llm process: the same as egress, plus the calls that TLS needs. */
must_check int confine_enter_llm(uid_t uid, gid_t gid, struct err *e);

/* For the outbound process: as for the llm process. */
must_check int confine_enter_outbound(uid_t uid, gid_t gid, struct err *e);

/* For the cluster process of a gateway: engines may be at a unix socket, and libpq resolves host names itself, which reads
 * files of /etc. Everything else as for the outbound process. */
must_check int confine_enter_engines(uid_t uid, gid_t gid, struct err *e);

/* Overwrites the strings of the environment, then clears it: a forked process has its parent's,
 * and keys can be set there, too. */
void confine_clear_environment(void);

struct confine_step {
	const char *calls; /* separated by spaces */
	const char *why;
};
extern const struct confine_step confine_steps[];
extern const unsigned confine_nsteps;
extern const struct confine_step confine_egress_steps[];
extern const unsigned confine_negress_steps;
extern const struct confine_step confine_llm_steps[];
extern const unsigned confine_nllm_steps;
extern const struct confine_step confine_engines_steps[];
extern const unsigned confine_nengines_steps;
