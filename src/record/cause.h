/* cause.h - why a run ended: one word, one sentence, one hint.
 * Decides from kernel evidence, never from a program's text. Pure functions. */
#pragma once
#include "base/buf.h"
#include "client/exec_pump.h"

enum cause {
	CAUSE_EXIT,
	CAUSE_SIGNAL,
	CAUSE_MEMORY,
	CAUSE_PROCESSES,
	CAUSE_DISK,
	CAUSE_CPU,
	CAUSE_WALL,     /* of the program */
	CAUSE_LIFETIME, /* of the box */
	CAUSE_IDLE,     /* the box's idle timeout */
	CAUSE_POLICY,
	CAUSE_OPERATOR,
	CAUSE_HOST,
	CAUSE_SUPERSEDED, /* the box was restarted on another node of its cluster */
	CAUSE_ROLLBACK,   /* the box went back to a checkpoint */
	CAUSE_COUNT,
};

/* All evidence about the end of a run. */
struct exit_info {
	const char *program; /* the command, for messages */
	const char *cwd;     /* working directory; NULL: the default */
	enum stream_end end;
	int exited; /* exit is valid: init has reported it */
	struct wire_exit exit;
	int evidence; /* figures is valid: the keeper has read the counters */
	struct wire_counters figures;
	struct wire_limits limits;
	uint32_t wall_ms;
	uint64_t run_us;
	int engine; /* the box has an engine, the kernel of its programs: its end is the end of the box */
	int served;          /* requested over the API: the hint uses names of the API */
	enum cause because;  /* why the daemon ended the box; CAUSE_EXIT: it did not */
	uint64_t because_ms; /* the timeout that was reached */
};

/* 1: init has read counters of the kernel of its guest: a claim from inside, not seen by the host. */
int cause_is_of_guest(const struct exit_info *end);
enum cause cause_of(const struct exit_info *end);
const char *cause_name(enum cause cause);
int cause_parse(const char *name, enum cause *out); /* -1: no such cause */ /* "memory" */

/* CPU time: of all processes of its cgroup, else of those that init has reaped. UINT64_MAX: not
 * known. */
uint64_t cause_cpu_us(const struct exit_info *end);
/* Was that figure read from the cgroup? */
int cause_has_cgroup_cpu(const struct exit_info *end);

/* The signal that ended it, seen from the shell; 0 if none did. */
int cause_signal(const struct exit_info *end);
/* The exit status as of a shell: that of the program, 128+N, 124 for the time limit, 125 for an
 * error of Atoll, 126, 127. */
int cause_status(const struct exit_info *end);

/* "memory limit reached: 256 MiB; ..." Nothing for a plain exit. */
void cause_sentence(const struct exit_info *end, struct buf *out);
/* "raise: atoll run --mem 512M ..."; or of one that was served, "raise: \"limits\": {\"mem\": 536870912},
 * or atoll new --mem 512M ...". Nothing where nothing can be done. */
void cause_hint(const struct exit_info *end, struct buf *out);

/* "SIGKILL"; "signal 40" for those without a name. */
void cause_signal_name(int signo, char out[24]);
