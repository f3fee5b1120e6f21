/* limits.c - programs that use up one resource each: the host stays within the limit, and the cause is the right one. */
#include "base/cleanup.h"
#include "jail/feature.h"
#include "prove/prove_internal.h"
#include "record/cause.h"
#include "tier/tier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LIMIT_MEM = 48 << 20,
	LIMIT_DISK = 8 << 20,
	LIMIT_FILES = 500,
	LIMIT_PIDS = 24,
	LIMIT_WALL_MS = 150,
	LIMIT_OUTPUT = 4 << 20 /* the log of init and the pipe have less */
};

struct limit_row {
	const char *way, *kind, *most; /* of the probe: `use KIND MOST` */
	enum cause cause;
	int unread; /* its output is not read, and its wall time ends it */
};

static const struct limit_row limit_rows[] = {
	{ "disk bomb", "disk", "64", CAUSE_DISK, 0 },
	{ "inode bomb", "files", "5000", CAUSE_DISK, 0 },
	{ "output bomb", "output", "1000000", CAUSE_WALL, 1 },
	{ "fork bomb", "processes", "600", CAUSE_PROCESSES, 0 },
	{ "memory bomb", "memory", "600", CAUSE_MEMORY, 0 },
};

/* Tier process: no limit of its disk; those of cgroups where the host has them. */
static int limit_is_absent(const struct prove_run *r, enum cause cause)
{
	if (r->want->tier != WIRE_TIER_PROCESS)
		return 0;
	return cause == CAUSE_DISK ||
	       (cause == CAUSE_MEMORY && !(r->facts.features & FEATURE_BIT(FEATURE_MEM))) ||
	       (cause == CAUSE_PROCESSES && !(r->facts.features & FEATURE_BIT(FEATURE_TASKS)));
}

static struct wire_limits limit_values(const struct prove_run *r)
{
	struct wire_limits l = box_default_limits(), none = l;

	l.mem_bytes = r->facts.mem_min_bytes > LIMIT_MEM ? r->facts.mem_min_bytes : LIMIT_MEM;
	l.disk_bytes = LIMIT_DISK;
	l.disk_files = LIMIT_FILES;
	l.pids = LIMIT_PIDS;
	if (limit_is_absent(r, CAUSE_DISK)) {
		l.disk_bytes = none.disk_bytes;
		l.disk_files = none.disk_files;
	}
	if (limit_is_absent(r, CAUSE_MEMORY))
		l.mem_bytes = none.mem_bytes;
	if (limit_is_absent(r, CAUSE_PROCESSES))
		l.pids = none.pids;
	return l;
}

/* The number of units that the program got; -1: it did not say. */
static long limit_got(const struct prove_box *x)
{
	const char *at = strstr(buf_str(&x->out), "\"got\": \"");

	return at ? atol(at + 8) : -1;
}

/* 1: the host stayed within the limit. */
static int limit_held(const struct limit_row *row, const struct prove_box *x,
		      const struct wire_counters *f, const struct wire_limits *l, char out[100])
{
	long got = limit_got(x);

	if (row->unread) {
		snprintf(out, 100, "%llu KiB of unread output kept",
			 (unsigned long long)(x->exit.bytes[0] - x->exit.dropped[0]) >> 10);
		return x->exited && x->exit.bytes[0] - x->exit.dropped[0] <= LIMIT_OUTPUT;
	}
	if (row->cause == CAUSE_MEMORY) {
		snprintf(out, 100, "at most %llu of %llu MiB; %llu kills",
			 (unsigned long long)f->mem_peak >> 20,
			 (unsigned long long)l->mem_bytes >> 20, (unsigned long long)f->oom_kills);
		return f->oom_kills > 0 && f->oom_kills != UINT64_MAX;
	}
	if (row->cause == CAUSE_PROCESSES) {
		snprintf(out, 100, "%ld started, %llu refused", got,
			 (unsigned long long)f->pids_hits);
		return f->pids_hits > 0 && f->pids_hits != UINT64_MAX && got < LIMIT_PIDS;
	}
	snprintf(out, 100, "%ld of at most %d%s", got,
		 !strcmp(row->kind, "disk") ? LIMIT_DISK >> 20 : LIMIT_FILES,
		 !strcmp(row->kind, "disk") ? " MiB" : "");
	return got >= 0 && got <= (!strcmp(row->kind, "disk") ? LIMIT_DISK >> 20 : LIMIT_FILES);
}

/* The kernel of a virtual machine enforces these two limits: a program ends, the box continues. No counter of
 * the host knows the cause, so the one that init reports must be right, too; what counts is what the host had to
 * give. */
static int limit_held_in_guest(const struct prove_run *r, const struct limit_row *row,
			       const struct prove_box *x, const struct wire_counters *f,
			       const struct wire_limits *l, char out[100])
{
	const struct tier *t = tier_find(r->want->tier);
	uint64_t most = tier_outer_memory(t, l->mem_bytes);

	if (row->cause == CAUSE_PROCESSES) {
		snprintf(out, 100, "in the guest: %ld started", limit_got(x));
		return limit_got(x) >= 0 && limit_got(x) < LIMIT_PIDS;
	}
	snprintf(out, 100, "in the guest: killed; the host gave %llu of %llu MiB",
		 (unsigned long long)f->mem_peak >> 20, (unsigned long long)most >> 20);
	return x->exit.why == WIRE_WHY_SIGNAL && f->mem_peak <= most;
}

static int limit_is_of_guest(const struct prove_run *r, const struct limit_row *row)
{
	return r->want->tier == WIRE_TIER_MICROVM &&
	       (row->cause == CAUSE_PROCESSES || row->cause == CAUSE_MEMORY);
}

static int limit_try(struct prove_run *r, const struct limit_row *row, struct err *e)
{
	const char *words[] = { "use", row->kind, row->most, NULL };
	struct prove_box *x = &r->bomb;
	struct wire_limits l = limit_values(r);
	struct exit_info end = { .program = "probe", .limits = l, .evidence = 1 };
	char observed[100];
	enum cause cause;
	int gone, held;

	if (limit_is_absent(r, row->cause)) {
		prove_note(r, PROVE_ABSENT, "limits", row->way, "",
			   "not attempted: boxes of this tier have no such limit on this host");
		return 0;
	}
	if (!x->open && prove_box_create(r, x, &l, e) < 0)
		return -1;
	if (prove_box_start(r, x, words, row->unread ? LIMIT_WALL_MS : 0, row->unread, e) < 0)
		return -1;
	if (row->unread) {
		/* Init reports the end when all output was sent, or when no client wants it. */
		usleep((LIMIT_WALL_MS + 20) * 1000);
		if (prove_box_detach(x, e) < 0)
			return -1;
	}
	gone = prove_box_until(x, NULL, e);
	if (gone < 0)
		return -1;
	end.engine = prove_has_guest_kernel(r);
	end.exited = x->exited;
	end.exit = x->exit;
	end.end = x->exited ? STREAM_EXITED : STREAM_BOX_DIED;
	end.wall_ms = row->unread ? LIMIT_WALL_MS : 0;
	/* A box that has ended takes the limit with it: its last counters come with its removal. */
	if (gone ? prove_box_end(r, x, &end.figures, e) < 0
		 : boxh_counters(&r->keeper, x->handle.about.id, &end.figures, e) < 0)
		return -1;
	cause = cause_of(&end);
	if (!gone && limit_is_of_guest(r, row)) {
		held = limit_held_in_guest(r, row, x, &end.figures, &l, observed);
		prove_note(r, held && cause == row->cause ? PROVE_PASSED : PROVE_FAILS, "limits",
			   row->way, "", "cause %s; %s", cause_name(cause), observed);
		return 0;
	}
	held = limit_held(row, x, &end.figures, &l, observed) ||
	       (gone && prove_has_guest_kernel(r) && cause == row->cause);
	prove_note(r, held && cause == row->cause ? PROVE_PASSED : PROVE_FAILS, "limits", row->way,
		   gone ? "the box ended" : "", "cause %s; %s", cause_name(cause), observed);
	return 0;
}

int prove_judge_limits(struct prove_run *r, struct err *e)
{
	for (unsigned i = 0; i < ARRAY_LEN(limit_rows); i++)
		if (limit_try(r, &limit_rows[i], e) < 0)
			return err_in(e, "%s", limit_rows[i].way);
	return 0;
}
