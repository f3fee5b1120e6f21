/* subject.c - see subject.h. The table is the list of everything that is compared. */
#include "subject.h"

#include "base/clock.h"
#include "base/cleanup.h"
#include "mine.h"
#include "peers.h"
#include "typed.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

volatile int stop_asked;

struct subject subjects[] = {
	{ .name = "fork",
	  .label = "vfork+exec",
	  .in_rates = 1,
	  .open = fork_open,
	  .once = fork_once },
	{ .name = "pooled",
	  .label = "atoll, pooled box",
	  .is_ours = 1,
	  .in_rates = 1,
	  .open = mine_open,
	  .join = mine_join,
	  .ready = pooled_ready,
	  .once = pooled_once,
	  .after = pooled_after,
	  .check = pooled_check,
	  .close = mine_close },
	{ .name = "exec",
	  .label = "atoll, exec in a living box",
	  .is_ours = 1,
	  .open = exec_open,
	  .once = exec_once,
	  .close = exec_close },
	{ .name = "cold",
	  .label = "atoll, cold box + teardown",
	  .is_ours = 1,
	  .in_rates = 1,
	  .open = mine_open,
	  .join = mine_join,
	  .once = cold_once,
	  .close = mine_close },
	{ .name = "typed_version",
	  .label = "typed: atoll --version",
	  .is_ours = 1,
	  .open = typed_version_open,
	  .once = typed_once },
	{ .name = "typed_true",
	  .label = "typed: atoll run -- true",
	  .is_ours = 1,
	  .in_rates = 1,
	  .open = typed_true_open,
	  .once = typed_once },
	{ .name = "typed_python",
	  .label = "typed: atoll run print1.py",
	  .is_ours = 1,
	  .open = typed_python_open,
	  .once = typed_once },
	{ .name = "python",
	  .label = "python3 print1.py, in no box",
	  .open = python_open,
	  .once = python_once },
	{ .name = "bwrap",
	  .label = "bubblewrap",
	  .in_rates = 1,
	  .open = bwrap_open,
	  .once = bwrap_once },
	{ .name = "crun",
	  .label = "crun",
	  .in_rates = 1,
	  .open = oci_open,
	  .join = oci_join,
	  .once = oci_once,
	  .close = oci_close },
	{ .name = "runc",
	  .label = "runc",
	  .open = oci_open,
	  .join = oci_join,
	  .once = oci_once,
	  .close = oci_close },
	{ .name = "runsc",
	  .label = "runsc (gVisor)",
	  .open = oci_open,
	  .join = oci_join,
	  .once = oci_once,
	  .close = oci_close },
};
const unsigned nsubjects = ARRAY_LEN(subjects);

struct subject *subject_named(const char *name)
{
	for (unsigned i = 0; i < nsubjects; i++)
		if (strcmp(subjects[i].name, name) == 0)
			return &subjects[i];
	return NULL;
}

double subject_p50(const char *name)
{
	struct subject *s = subject_named(name);

	return s ? samples_ms(&s->done, 0.5) : NAN;
}

void subject_give_up(struct subject *s, const struct err *e)
{
	snprintf(s->missing, sizeof(s->missing), "%.190s", e->msg);
}

int subject_run(struct subject *s, uint64_t *out_done_ns, uint64_t *out_total_ns, struct err *e)
{
	uint64_t from, done, over;

	if (s->ready && s->ready(s, e) < 0)
		return -1;
	from = now_ns();
	if (s->once(s, e) < 0)
		return -1;
	done = now_ns();
	if (s->after && s->after(s, e) < 0)
		return -1;
	over = now_ns();
	if (s->check && s->check(s, e) < 0)
		return -1;
	if (out_done_ns)
		*out_done_ns = done - from;
	if (out_total_ns)
		*out_total_ns = over - from;
	return 0;
}
