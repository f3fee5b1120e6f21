/* build.h - the engine that builds templates: a queue, and per build one box at a time.
 * Owns:         the builds in progress, their boxes, their logs (<state>/builds/ID.log) and the
 *               uploaded archives (<state>/builds/uploads).
 * Does not own: layers and roots (the keeper); the rows (store/builds.h).
 *
 *   build_create() -> waiting -> build_begin() -> building -> ready | error | cancelled
 *
 * Every finished step is in the row of its build: after a restart the next server continues with
 * the step after it. */
#pragma once
#include "base/buf.h"
#include "fleet/fleet.h"
#include "store/builds.h"
#include "template/image.h"
#include <jansson.h>

struct builds;
struct builds_conf {
	const char *state; /* the folder of the daemon's state */
	unsigned at_once;
	uint64_t step_ms, total_ms; /* limits of one command, and of one build */
	uint64_t ready_ms;          /* of the ready command */
	uint64_t disk_bytes;        /* of a build box */
	uint64_t mem_bytes;
	uint32_t cpu_milli;
	uint64_t cache_bytes; /* of all teams together */
	const char *hosts;    /* JSON array of rules: what build boxes may reach; NULL: nothing */
	struct image_conf image; /* FROM an image */
	const char *const
		*prepare; /* names of shipped templates that are built at the start; NULL: none */
};

must_check int builds_new(struct builds **out, struct fleet *f, const struct builds_conf *conf,
			  struct err *e);
/* All boxes are restored and this is the only server: ends build boxes of earlier servers, removes
 * files without a row, continues the unfinished builds. */
void builds_restore(struct builds *b);
void builds_free(
	struct builds *b); /* the builds stay unfinished, for the next server; NULL is fine */

/* ---- starting one ---- */
struct build_request {
	const char *team;
	const char *name;   /* of the template; created if the team has none of that name */
	const json_t *tags; /* array of texts; NULL: ["default"] */
	uint32_t cpu_milli; /* 0: as the definition says, else the daemon's default */
	uint64_t mem_bytes, disk_bytes;
};
/* Creates the row of a build that waits for its definition, and the template if it is new. out: to
 * be freed with store_build_fini(). */
must_check int build_create(struct builds *b, const struct build_request *want,
			    struct store_build *out, struct err *e);
/* Gives it its definition and puts it into the queue. secrets: {id: value} for RUN with secrets;
 * NULL: none. They are kept in memory only: a build with secrets that is interrupted by a restart
 * fails. ERR_CONFLICT: it has been started already. */
must_check int build_begin(struct builds *b, const char *id, const json_t *definition,
			   const json_t *secrets, int force, struct err *e);
struct shipped_template;
/* Builds a template that comes with the server, for a team. out: the id of the build, which may run
 * already. ERR_CONFLICT: settings are missing, or it has just failed. */
must_check int template_build_shipped(struct builds *b, const struct shipped_template *t,
				      const char *team, char out_build[STORE_BUILD_ID + 1],
				      struct err *e);
/* template_resolve() has failed with e: if that is because a shipped template is not built, its build
 * begins. Always returns -1; e has the reason for the client, e->sys EINPROGRESS: it is being built. */
int template_first_use(struct builds *b, const char *team, const char *reference, struct err *e);
/* Ends it at once; ERR_CONFLICT: it has ended already. */
must_check int build_cancel(struct builds *b, const char *id, struct err *e);
/* Cancels all builds of a template, removes its rows and logs; boxes of it continue. */
must_check int template_delete(struct builds *b, const char *template, struct err *e);
/* A box was created from it: the row is written within a second. */
void template_spawned(struct builds *b, const char *template);
/* The keeper holds `pool` boxes of the template's newest build that `default` names. Called when that
 * or `pool` has changed; templates_prepare(): for all, when a keeper has connected. */
void template_prepare(struct builds *b, const struct store_template *t);
void templates_prepare(struct builds *b); /* NULL is fine */
void builds_collect(struct builds *b); /* drops unused layers and roots; runs by itself after each
					* build */

/* ---- its log: lines of JSON {timestamp, level, message, step} ---- */
enum { BUILD_LOG_BYTES = 4 << 20 }; /* at most; then one last line says that it is full */
/* Appends the lines from this byte offset on to out, at most `most` bytes, whole lines only.
 * Returns the offset of the next line. */
must_check int build_log_read(struct builds *b, const char *id, uint64_t from, size_t most,
			      struct buf *out, uint64_t *out_next, struct err *e);
struct build_wait {
	struct build_wait *next;
	struct build *build; /* NULL: waits for nothing */
	void (*news)(
		struct build_wait *w); /* its log has grown, or it has ended: then build is NULL */
};
/* 0: it has ended, and w does not wait. */
int build_await(struct builds *b, const char *id, struct build_wait *w);
void build_wait_cancel(struct build_wait *w);

/* ---- uploads ---- */
struct build_upload {
	int fd; /* write the archive here */
	char file[ID_MAX + 1];
};
/* hash: up to 64 of 0-9 and a-f, chosen by the client. */
must_check int build_upload_open(struct builds *b, struct build_upload *out, struct err *e);
/* The archive is complete: it has its name from here on. Closes fd, also on failure. */
must_check int build_upload_finish(struct builds *b, struct build_upload *u, const char *team,
				   const char *hash, struct err *e);
void build_upload_drop(struct builds *b, struct build_upload *u);
int build_upload_exists(struct builds *b, const char *team, const char *hash);
