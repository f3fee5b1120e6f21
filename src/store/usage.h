/* usage.h - what teams have used and what it cost: sums for each day and team by key, tag, template and runtime, and
 * sums for each box, batch and pipeline. Counts are integers in base units, and a cost is an integer of 10^-9 of the
 * currency, so that sums agree to the last unit. docs/operations.md describes what is measured. */
#pragma once
#include "store/store.h"

enum {
	STORE_CURRENCY = 3,
	STORE_USAGE_VALUES =
		1000,           /* tags, keys ... of one team and day; others are STORE_TAG_OTHER */
	STORE_USAGE_DAYS = 400, /* how long rows of days are kept */
	STORE_USAGE_MOST = 10000, /* rows of an answer */
};
#define STORE_COST_MOST INT64_C(1000000000000000000) /* a row does not grow beyond it */
/* Tags that are no tags of clients: none of them is a valid name. */
#define STORE_TAG_OTHER "(other)"
#define STORE_TAG_BOX                                                                              \
	"(box)" /* use of a box outside of its runs, and its disk while it is stopped or paused */
#define STORE_TAG_BATCH "(batch)"       /* items of batches */
#define STORE_TAG_PIPELINE "(pipeline)" /* programs of pipelines */
#define STORE_TAG_MODEL "(model)"       /* calls of language models */
#define STORE_TAG_DISK "(disk)"         /* stored snapshots and volumes */

struct store_use {
	uint64_t runs;
	uint64_t cpu_us;
	uint64_t memory_mib_ms;
	uint64_t disk_mib_s;
	uint64_t network_bytes; /* sent */
	uint64_t gpu_us;
	uint64_t tokens_in, tokens_out;
	uint64_t output_bytes;
	uint64_t cost_nano;
	char currency[STORE_CURRENCY + 1]; /* of cost_nano */
};

struct store_charge {
	int32_t day; /* store_day() */
	char team[STORE_NAME + 1], tag[STORE_NAME + 1], key[STORE_NAME + 1];
	char template[STORE_TEMPLATE + 1];
	char runtime[STORE_WORD + 1];
	char subject[ID_MAX + 1]; /* the box, batch or pipeline; "": none */
	struct store_use use;
};
/* Adds it to the sums of its day and to that of its subject, in one transaction. */
must_check int store_usage_charge(struct store *s, const struct store_charge *c, struct err *e);
/* The two parts of it, for several charges in one transaction: those of a day that store_charge_merge() has merged, and
 * that of the subject. */
must_check int store_usage_charge_day(struct store *s, const struct store_charge *c, struct err *e);
must_check int store_usage_charge_subject(struct store *s, const struct store_charge *c,
					  struct err *e);
/* 1: both are added to the same sums of a day, and `more` is now part of c. The subject does not matter. */
int store_charge_merge(struct store_charge *c, const struct store_charge *more);

/* What a box, batch or pipeline has used so far, over all currencies; cost and currency are those of the
 * currency that is given ("": none). Zeros for one that was never charged. */
must_check int store_usage_total(struct store *s, const char *subject, const char *currency,
				 struct store_use *out, struct err *e);

enum store_usage_by {
	STORE_BY_TEAM,
	STORE_BY_KEY,
	STORE_BY_TAG,
	STORE_BY_TEMPLATE,
	STORE_BY_RUNTIME,
	STORE_BY_DAY,
	STORE_BY_MONTH,
	STORE_BY_NOTHING, /* one row for each currency */
	STORE_BY_COUNT
};
const char *store_usage_by_name(enum store_usage_by by);              /* "team", ... */
int store_usage_by_parse(const char *text, enum store_usage_by *out); /* -1: no such word */

struct store_usage_filter {
	const char *team;         /* NULL: all */
	int32_t from_day, to_day; /* both included */
	enum store_usage_by by;
};
struct store_usage_row {
	char value[STORE_TEMPLATE +
		   1]; /* the team, the key ...; 2026-11-18 for a day, 2026-11 for a month */
	struct store_use use;
};
struct store_usage_rows {
	struct store_usage_row *v;
	unsigned n;
	int more; /* beyond STORE_USAGE_MOST */
};
void store_usage_rows_fini(struct store_usage_rows *l);
/* Days and months in their order, others with the highest cost first. */
must_check int store_usage_list(struct store *s, const struct store_usage_filter *f,
				struct store_usage_rows *out, struct err *e);
/* The cost of a team in one currency, in these days. */
must_check int store_usage_cost(struct store *s, const char *team, const char *currency,
				int32_t from_day, int32_t to_day, uint64_t *out_nano,
				struct err *e);
/* Removes rows of days before this one, at most `most` of them. */
must_check int store_usage_retire(struct store *s, int32_t before_day, unsigned most,
				  unsigned *out_removed, struct err *e);

/* Disk space of snapshots (their files), volumes and boxes that are stopped or paused (their sizes) since the last time,
 * if that is an hour ago or more; else nothing. Moves that time to now: the caller charges the rows in the same
 * transaction. A clock that was set counts for a day at most. */
struct store_disk_use {
	char team[STORE_NAME + 1];
	char box[ID_MAX + 1];     /* "": all snapshots and volumes of the team */
	char key[STORE_NAME + 1]; /* of the box ... */
	char template[STORE_TEMPLATE + 1];
	uint64_t mib_s;
};
struct store_disk_uses {
	struct store_disk_use *v;
	unsigned n;
};
void store_disk_uses_fini(struct store_disk_uses *l);
must_check int store_usage_disk(struct store *s, int64_t now_ns, struct store_disk_uses *out,
				struct err *e);
/* What store_usage_disk() has not counted yet of a box that was stopped or paused at stored_ns and has this disk. */
must_check int store_usage_disk_rest(struct store *s, uint64_t bytes, int64_t stored_ns,
				     int64_t now_ns, uint64_t *out_mib_s, struct err *e);

/* Records that the notice for this percentage of a budget was sent. *out_new 0: it had been sent before in the
 * same period. since: the first day of the period. */
must_check int store_budget_notice(struct store *s, const char *team, const char *period,
				   int32_t since, unsigned percent, int *out_new, struct err *e);
