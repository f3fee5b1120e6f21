/* probe.h - the rooms of the probe: what it can tell, try, use up, and do outside of boxes. */
#pragma once
#include <stddef.h>

/* ---- facts.c: lines `key value` about the process, as a program would find itself ---- */
void facts_print(char *const *keys); /* NULL-terminated; none: all */

/* ---- reach.c and calls.c: hostile deeds ----
 * 0 when it worked, -1 with errno when it did not. Each runs in a child of its own, so it may
 * change what it likes, and being killed is an answer too. A deed that works does no harm: it
 * opens for writing and writes nothing, it asks for signal 0, it mounts in a namespace of its own. */
struct deed {
	const char *name;
	int (*run)(const char *arg); /* what stood behind "NAME=", or NULL */
};
extern const struct deed endpoint_actions[], calls_deeds[];
extern const size_t endpoint_nactions, calls_ndeeds;
int probe_number(const char *arg, int otherwise);

/* ---- use.c: takes as much of something as it gets, and says how much that was ---- */
int use_up(const char *what, long most);
int use_cpu(int seconds_ms, int processes);

/* ---- outside.c: the host's side of a test ---- */
int outside_listen(const char *dir);
int outside_with_key(const char *description, char **command);
int outside_on_terminal(char **command);
int outside_block(char **words);
int outside_names(const char *pid);
