/* build_internal.h - the engine inside: one build, from its definition to its root. For the files
 * build*.c of this folder only.
 *
 *   build.c        rows, queue, waiters, the end
 *   build_steps.c  stages and steps in their order; the cache
 *   build_box.c    one box of a build: create, users, command, layer
 *   build_apt.c    sources of apt-get for a command over base
 *   build_copy.c   COPY and ADD: from a source box into the build box
 *   build_users.c  users and folders that the engine creates
 *   build_finish.c the default user, settings, the merged root
 *   build_pool.c   boxes that are created in advance
 *   build_prepare.c  builds of templates that come with the server, at the start and at their first use
 *   build_trial.c  the trial of the start command
 *   build_log.c    the log; uploads
 *   build_found.c  layers that a killed server has left
 *   build_collect.c  removes old builds, and layers and roots that are not used
 *
 * The progress of a build is JSON, so that it can be stored as it is:
 *   {"stage": 0, "step": 2, "stages": {"0": {"base": true, "layers": [bottom first], "env": {},
 *    "args": {}, "user": "", "workdir": "", "host": "..."}}} */
#pragma once
#include "client/file_client.h"
#include "fleet/exec_reader.h"
#include "packages/packages.h"
#include "template/build.h"
#include "template/definition.h"

enum {
	BUILD_SAID = 8 * 1024,               /* bytes of output that a failure shows */
	BUILD_FILES = 1000 * 1000,           /* files of a build box */
	BUILD_TEXT = 1 << 20,                /* bytes of /etc/passwd that are read */
	BUILD_LINE = 4096,                   /* bytes of a line of output; longer ones are split */
	BUILD_LAYERS = WIRE_ROOT_LAYERS - 2, /* the last two are for the user */
	BUILD_PATH = 300,                    /* of a folder that the engine creates */
	BUILD_USER_ID = 1000,
	BUILD_HOST = 64,
};

struct build_prepare { /* templates.prepare */
	unsigned at;   /* the next name */
	struct build_wait wait;
	struct timer next;
};

struct builds {
	struct fleet *fleet;
	struct builds_conf conf;
	struct build *list; /* oldest first: waiting for a place, or running */
	unsigned running;
	int folder, uploads;           /* <state>/builds, <state>/builds/uploads */
	struct timer pump;             /* starts waiting builds, from the loop */
	struct build_pool *pools;      /* build_pool.c */
	struct build_spawned *spawned; /* not written yet */
	struct timer count;            /* writes them */
	struct build_prepare prepare;
	struct timer collect; /* after a box has ended */
	struct fleet_subscriber events;
	struct keeper_call *finding; /* build_found.c */
	unsigned found;
	int found_roots;
	struct keeper_call *dropping;
	struct store_layer dropped;
	unsigned drop_skip;
	uint64_t collect_ms;
	int drop_left; /* boxes use some that no template names any longer */
	int restored;
};

struct build_user {
	unsigned uid, gid;
	char name[64], home[256];
};

enum build_box_flags {
	BUILD_BOX_NETWORK = 1 << 0, /* it reaches the hosts of builds_conf.hosts */
	BUILD_BOX_STEP = 1 << 1,    /* its files become a layer: over base, /usr can be changed */
};

/* A box of a build. Its file worker is root of the box. */
struct build_box {
	struct build *build;
	char id[ID_MAX + 1];
	struct box_wait made;
	struct timer way; /* waits for the egress endpoint */
	unsigned tries;
	/* what is wanted, for another attempt while the host has no room: earlier boxes are being destroyed */
	struct timer again;
	uint64_t give_up_ms, room_ms;
	char root[STORE_HASH + 1];
	unsigned flags; /* enum build_box_flags */
	uint64_t disk_bytes, lifetime_ms;
	uint64_t mem_bytes; /* 0: as steps have it; and cpu */
	uint32_t cpu_milli;
	struct file_client files;
	int has_files;
	void (*ready)(struct build_box *x); /* created, its file worker answers */
};

/* Files that are written with the file worker, one after another. */
struct build_change {
	uint8_t type;
	uint32_t mode, flags; /* flags: WIRE_PUT_* */
	unsigned uid, gid;
	char path[BUILD_PATH];
	char *text; /* of a PUT */
};

struct build_changes {
	struct build_change v[8];
	unsigned n, at;
	void (*done)(struct build *b);
};

struct build_copy;
struct build {
	struct build *next;
	struct builds *all;
	struct store_build row;
	json_t *definition, *progress, *secrets;
	int force;
	int running;
	int retried; /* a layer of the cache was missing: everything was built again */
	uint64_t began_ms, step_began_ms;
	struct timer limit;     /* of the whole build */
	unsigned steps, number; /* of needed stages; of the step in progress, from 1 */
	/* the step in progress */
	const json_t *step;
	json_t *args;             /* of the step, expanded */
	char key[STORE_HASH + 1]; /* "": not cached */
	struct build_box box;
	struct exec_reader reader;
	int tapped;
	struct keeper_call *asking;
	struct packages_wait packages;
	struct build_copy *copy;
	int archive_on_base;      /* FROM an archive: the host's /usr lies below it */
	struct build_pull *pull;  /* build_image.c: an image that is being pulled */
	struct buf passwd, group; /* of the box */
	struct buf release;       /* its /usr/lib/os-release */
	void (*apt_ready)(struct build *b);
	struct buf *reading;
	void (*users_read)(struct build *b);
	void (*rooted)(struct build *b, const char *root); /* build_root() */
	void (*layered)(struct build *b, const char *layer,
			uint64_t files); /* build_make_layer_then() */
	char root[STORE_HASH + 1];       /* of the box in progress; "": base */
	struct buf said;                 /* the end of the output of the step */
	struct buf line[2];              /* unfinished lines of output */
	/* the end */
	struct build_user user;
	json_t *settings;
	struct build_changes *changes;
	struct build_trial *trial;
	unsigned runtime; /* build_runtimes.c: the interpreter whose box is being created */
	/* log and waiters */
	int log;
	uint64_t log_bytes;
	struct build_wait *waiters;
};

/* ---- build.c ---- */
struct build *build_lookup(const struct builds *b, const char *id);
/* Writes the progress to the row. -1: the build has failed with that. */
must_check int build_save(struct build *b);
/* Ends with an error; message is for clients. The build is freed. */
void build_fail(struct build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void build_fail_err(struct build *b, const struct err *e);
void build_end(struct build *b, enum store_build_state state); /* writes the row; freed */
void build_succeed(struct build *b); /* row is complete; tags are set; freed */
void build_notify(struct build *b);  /* its log has grown */

/* ---- build_steps.c ---- */
void build_continue(struct build *b);                     /* with the step that progress names */
json_t *build_stage(const struct build *b);               /* state of the stage in progress */
json_t *build_stage_new(const struct build *b, int base); /* without layers */
void build_stage_set(struct build *b, json_t *take_state);
/* Changes when packages of the host change, which are below every stage over base. Part of its state, and so of the
 * key of its steps. */
void build_host(char out[BUILD_HOST]);
json_t *build_stage_at(const struct build *b, unsigned stage); /* NULL: not begun */
const char *build_text(const json_t *doc, const char *name);   /* "" if absent */
/* Appends a text with its variables replaced by those of the stage in progress. */
must_check int build_expand_text(const struct build *b, const char *text, struct buf *out,
				 struct err *e);
/* The working folder after WORKDIR path. */
void build_workdir(const json_t *stage, const char *path, struct buf *out);
/* The step has made a layer ("": none): records it and continues. */
void build_step_done(struct build *b, const char *layer);
/* On top of the others. A root has no layer twice: of two equal ones the upper one decides. */
void build_add_layer(json_t *layers, const char *layer);
/* NAME=value of the stage, for exec_spec.env; to be freed with build_env_free(). */
const char **build_env(const json_t *stage);
void build_env_free(const char **env);
/* Count of steps of stages that the target needs. */
unsigned build_count_steps(const json_t *definition);

/* ---- build_box.c ---- */
/* The root for the layers of a stage; calls b->rooted. merge: as one layer. */
void build_root(struct build *b, const json_t *stage, int merge,
		void (*rooted)(struct build *b, const char *root));
/* disk_bytes 0: that of any box. Space is promised to a box when it is created: only boxes that write
 * much ask for much. */
void build_box_open(struct build_box *x, const char *root, unsigned flags, uint64_t disk_bytes,
		    uint64_t lifetime_ms, void (*ready)(struct build_box *x));
void build_box_close(struct build_box *x); /* ends the box; fine if there is none */
/* Reads /etc/passwd and /etc/group of b->box into b->passwd and b->group. */
void build_read_users(struct build *b, void (*done)(struct build *b));
/* "name", "uid", "name:group", "uid:gid" by these files. */
must_check int build_find_user(const struct build *b, const char *who, struct build_user *out,
			       struct err *e);
/* Runs the command of a RUN step in b->box, then makes the layer. */
void build_run(struct build *b);
/* Records a layer that the keeper has made; out: its id. -1: the build has failed. */
must_check int build_keep_layer(struct build *b, const struct wire_layer *l,
				char out[WIRE_LAYER_ID]);
/* The written files of b->box as a layer, then build_step_done(). */
void build_make_layer(struct build *b);
/* The same of any box. */
void build_make_layer_of(struct build *b, const char *box,
			 void (*made)(struct build *b, const char *layer, uint64_t files));
void build_make_layer_then(struct build *b,
			   void (*made)(struct build *b, const char *layer, uint64_t files));
/* Why a program ended, for people: "ran out of memory", ... ; NULL: it exited with 0. */
const char *build_cause(const struct build *b, const json_t *record, char *out, size_t size);

/* ---- build_apt.c ---- */
/* Over base: writes the sources of apt-get into b->box, unless it has some. */
void build_apt(struct build *b, void (*ready)(struct build *b));

/* ---- build_copy.c ---- */
void build_copy_begin(struct build *b); /* the box is open, the users are read */
void build_copy_free(struct build_copy *c);

/* ---- build_from_box.c ---- */
void build_from_box(struct build *b, const char *id_or_name);

/* ---- build_users.c ---- */
void build_user_step(struct build *b);    /* USER of an E2B build: creates it if it is missing */
void build_workdir_step(struct build *b); /* creates it, for the current user */
/* done is called after the last change. */
struct build_changes *build_changes_new(struct build *b, void (*done)(struct build *b));
void build_changes_free(struct build *b);
/* path: shorter than BUILD_PATH. At most eight. */
struct build_change *build_change_add(struct build *b, uint8_t type, const char *path,
				      uint32_t mode);
void build_change_user(struct build *b, const char *name, unsigned id, const char *home);
void build_change_next(struct build *b); /* begins */
void build_change_failed(struct file_client *c, const struct err *e);

/* ---- build_finish.c ---- */
void build_finish(struct build *b);
const char *build_setting(const struct build *b, const char *name); /* of b->settings; "" */

/* ---- build_runtimes.c ---- */
/* Fills the pools of the interpreters of b->settings, then build_succeed(). */
void build_runtimes_pool(struct build *b);
/* 1: it has no root of its own, or that of an earlier build, whose interpreters are now in b->settings. */
int build_runtimes_known_before(struct build *b);

/* The interpreters that wait, of the settings of a build: bits of enum wire_pool_warm. */
unsigned build_runtimes_warms(const char *settings);

/* ---- build_pool.c ---- */
/* The limits of a box whose request has none. */
struct wire_limits build_pool_limits(const struct builds *b, const struct store_build *row);

/* ---- build_trial.c ---- */
void build_trial_begin(struct build *b, const char *root);
void build_trial_free(struct build_trial *t);

/* ---- build_image.c ---- */
/* From an upload that GET /v1/templates/{template}/export has written. */
void build_from_archive(struct build *b, const char *hash, int base);
void build_from_image(struct build *b, const char *reference, const json_t *auth);
/* An image that COPY reads from. */
void build_source_image(struct build *b, const char *reference,
			void (*rooted)(struct build *b, const char *root));
void build_pull_free(struct build_pull *p);
/* Removes the credentials of registries from its definition: it will not be built again. */
void build_forget_auth(struct store_build *row);

/* ---- build_collect.c ---- */
void build_collect_begin(struct builds *b);
void build_collect_end(struct builds *b);
/* Removes old builds of a template that no tag names. */
void build_expire(struct builds *b, const char *template);

/* ---- build_found.c ---- */
void builds_find_layers(struct builds *b);

/* ---- build_pool.c ---- */
void build_pools_free(struct builds *b);

/* ---- build_prepare.c ---- */
must_check int build_prepare_check(const struct builds_conf *conf, struct err *e);
void build_prepare_init(struct builds *b);
void build_prepare_begin(struct builds *b); /* the unfinished builds are restored */
void build_prepare_fini(struct builds *b);

/* ---- build_log.c ---- */
void build_log_remove(struct builds *b, const char *id);
must_check int build_log_open(struct build *b, struct err *e);
void build_log(struct build *b, const char *level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void build_log_output(struct build *b, unsigned stream, const char *bytes, size_t n);
void build_log_flush(struct build *b); /* unfinished lines */
must_check int build_folders(struct builds *b, struct err *e);
void build_sweep_files(struct builds *b);
