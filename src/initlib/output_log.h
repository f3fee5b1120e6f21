/* output_log.h - one output stream, stored by offset.
 * Owns: a memfd in which the position is the offset in the stream, less `base`. It is created at the
 * first byte; old bytes are punched out, so the file is sparse and the newest `limit` bytes are in
 * memory. gVisor punches no holes: there the kept bytes are moved to the beginning of the file when
 * dropped ones are half as many, and the file has at most 1.5 times the limit. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { LOG_DEFAULT = 1 << 20, LOG_LEAST = 1 << 12, LOG_MOST = 64 << 20 };

struct log {
	int fd;         /* -1: nothing was ever written */
	uint64_t tip;   /* bytes seen so far: the offset of the next one */
	uint64_t from;  /* first byte still kept; all before it are dropped */
	uint64_t base;  /* offset of the first byte of the file */
	uint64_t limit; /* how many a late reader may count on */
};

/* All logs together keep above LOG_DEFAULT at most twice the largest limit: beyond that finished
 * execs are cut to LOG_DEFAULT, oldest first, and then those that run. The pages are charged to
 * the box's memory. */
int log_crowded(void);
void log_cut(struct log *l, uint64_t needed); /* to LOG_DEFAULT, and bytes above `needed` */
uint64_t log_room_for(const struct log *l);   /* its limit, or LOG_DEFAULT while it is crowded */

void log_init(struct log *l, uint64_t limit); /* 0: the default; clamped */
void log_fini(struct log *l);
/* Always takes all n bytes. Without memory they are counted as dropped, with all bytes before
 * them: a log has one beginning and no gaps. */
void log_append(struct log *l, const void *bytes, size_t n);
/* Drops what exceeds the limit and is below `needed`, the position of the slowest attached
 * reader. */
void log_trim(struct log *l, uint64_t needed);
long log_read(const struct log *l, uint64_t at, void *to, size_t n); /* at: kept, below the tip */
