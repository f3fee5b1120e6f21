/* build_finish.c - the end of a build: its default user, its settings, its merged root. See
 * build_internal.h.
 *
 *   box of the layers -> users -> [/etc/passwd, /home/user, workdir] -> layer -> merged root -> trial */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "template/dockerfile.h"

#include <stdio.h>
#include <string.h>

#define USER_NAME "user"
#define USER_HOME "/home/user"

const char *build_setting(const struct build *b, const char *name)
{
	return build_text(b->settings, name);
}

/* ---- settings ---- */

/* CMD of a Dockerfile after the ENTRYPOINT of its image, as Docker starts them. */
static void build_join_entrypoint(struct build *b)
{
	const json_t *entrypoint = json_object_get(build_stage(b), "entrypoint"),
		     *cmd = json_object_get(b->definition, "cmd");
	auto_buf struct buf start = { 0 };

	if (!json_array_size(entrypoint) || !json_array_size(cmd))
		return;
	dockerfile_shell_words(&start, entrypoint);
	dockerfile_shell_words(&start, cmd);
	json_object_set_new(b->settings, "start", json_string(buf_str(&start)));
}

static void build_make_settings(struct build *b)
{
	static const char *const copied[] = { "start",       "ready",     "port",         "labels",
					      "lib",         "file",      "instructions", "missing",
					      "description", "isolation", "needs" };
	const json_t *stage = build_stage(b);
	const char *workdir = build_text(b->definition, "workdir"), *name;
	json_t *env = json_deep_copy(json_object_get(stage, "env")), *v;

	json_object_foreach(json_object_get(b->definition, "env"), name, v)
		json_object_set(env, name, v);
	if (!*workdir)
		workdir = build_text(stage, "workdir");
	if (!*workdir)
		workdir = b->user.home;
	json_decref(b->settings);
	b->settings =
		json_pack("{s:o, s:s, s:i, s:i, s:s, s:s, s:O}", "env", env, "user", b->user.name,
			  "uid", (int)b->user.uid, "gid", (int)b->user.gid, "home", b->user.home,
			  "workdir", workdir, "base", json_object_get(stage, "base"));
	for (unsigned i = 0; i < ARRAY_LEN(copied); i++) {
		v = json_object_get(b->definition, copied[i]);
		if (v && !json_is_null(v))
			json_object_set(b->settings, copied[i], v);
	}
	build_join_entrypoint(b);
}

static void build_user_layered(struct build *b, const char *layer, uint64_t files)
{
	json_t *layers = json_object_get(build_stage(b), "layers");

	(void)files;
	build_add_layer(layers, layer);
	if (build_save(b) == 0)
		build_root(b, build_stage(b), 1, build_trial_begin);
}

static void build_user_written(struct build *b)
{
	build_changes_free(b);
	build_make_layer_then(b, build_user_layered);
}

/* The default user: that of the definition, of USER, or with the id 1000; created if there is none. */
static int build_choose_user(struct build *b, int *out_created, struct err *e)
{
	const char *who = build_text(b->definition, "user");
	char id[12];

	if (!*who)
		who = build_text(build_stage(b), "user");
	*out_created = 0;
	if (*who && build_find_user(b, who, &b->user, e) < 0)
		return -1;
	snprintf(id, sizeof(id), "%d", BUILD_USER_ID);
	if (*who)
		return 0;
	if (build_find_user(b, id, &b->user, e) < 0)
		return -1;
	if (strcmp(b->user.name, id) != 0)
		return 0;
	*out_created = 1;
	b->user = (struct build_user){
		.uid = BUILD_USER_ID, .gid = BUILD_USER_ID, .name = USER_NAME, .home = USER_HOME
	};
	return 0;
}

static void build_users_known(struct build *b)
{
	struct build_change *own;
	const char *workdir;
	struct err e;
	int created;

	if (build_choose_user(b, &created, &e) < 0) {
		build_fail_err(b, &e);
		return;
	}
	build_make_settings(b);
	build_changes_new(b, build_user_written);
	if (created)
		build_change_user(b, USER_NAME, BUILD_USER_ID, USER_HOME);
	workdir = build_setting(b, "workdir");
	if (strlen(workdir) >= BUILD_PATH) {
		build_fail(b, "the working folder has %zu bytes, which is too long",
			   strlen(workdir));
		return;
	}
	if (strcmp(workdir, "/") != 0 && strcmp(workdir, b->user.home) != 0) {
		own = build_change_add(b, WIRE_MKDIR, workdir, 0755);
		own->uid = own->gid = 0;
	}
	if (b->changes->n) {
		build_change_next(b);
		return;
	}
	build_changes_free(b);
	build_box_close(&b->box);
	build_root(b, build_stage(b), 1, build_trial_begin);
}

static void build_finish_box(struct build_box *x)
{
	build_read_users(x->build, build_users_known);
}

static void build_finish_rooted(struct build *b, const char *root)
{
	build_box_open(&b->box, root, 0, 0, b->all->conf.ready_ms, build_finish_box);
}

void build_finish(struct build *b)
{
	buf_cut(&b->said, 0);
	b->number = b->steps + 1;
	build_root(b, build_stage(b), 0, build_finish_rooted);
}
