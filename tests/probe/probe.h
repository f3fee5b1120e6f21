/* probe.h - the parts of the probe: facts, attempts, use of resources, and helpers on the host. */
#pragma once
#include <stddef.h>

/* ---- facts.c: lines `key value` about the process, as a program can read them ---- */
void facts_print(char *const *keys); /* NULL-terminated; none: all */

/* ---- reach.c and calls.c: hostile actions ----
 * 0 when it succeeded, -1 with errno when it failed. Each runs in its own child process, so it may
 * change its process, and a signal that kills it is a result, too. An action that succeeds does no
 * damage: it opens for writing and writes nothing, sends signal 0, mounts in its own namespace. */
struct probe_action {
	const char *name;
	int (*run)(const char *arg); /* the text after "NAME=", or NULL */
};
extern const struct probe_action endpoint_actions[], calls_actions[];
extern const size_t endpoint_nactions, calls_nactions;
int probe_number(const char *arg, int otherwise);

/* ---- use.c: allocates as much of a resource as it can, and prints how much that was ---- */
int use_up(const char *what, long most);
int use_cpu(int seconds_ms, int processes);

/* ---- outside.c: runs on the host ---- */
int outside_listen(const char *dir);
int outside_with_key(const char *description, char **command);
int outside_on_terminal(char **command);
int outside_hold_exec(const char *pid);
int outside_block(char **words);
int outside_names(const char *pid);
