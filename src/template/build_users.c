/* build_users.c - users and folders of a template: files that the file worker of the build box writes, one
 * after another; USER and WORKDIR of E2B's builds. See build_internal.h. */
#include "template/build_internal.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct build_changes *build_changes_new(struct build *b, void (*done)(struct build *b))
{
	build_changes_free(b);
	b->changes = calloc(1, sizeof(*b->changes));
	if (!b->changes)
		abort();
	b->changes->done = done;
	return b->changes;
}

void build_changes_free(struct build *b)
{
	for (unsigned i = 0; b->changes && i < b->changes->n; i++)
		free(b->changes->v[i].text);
	free(b->changes);
	b->changes = NULL;
}

static void build_change_done(struct file_client *c, uint16_t flags)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)flags;
	b->changes->at++;
	build_change_next(b);
}

void build_change_failed(struct file_client *c, const struct err *e)
{
	build_fail_err(loop_owner(c, struct build_box, files)->build, e);
}

void build_change_next(struct build *b)
{
	static const struct file_client_events on = { .done = build_change_done,
						      .failed = build_change_failed };
	struct build_changes *all = b->changes;
	const struct build_change *x = &all->v[all->at];
	struct wire_put put = { .mode = x->mode, .flags = x->flags };
	struct wire_chown own = { .uid = x->uid, .gid = x->gid };

	if (all->at == all->n) {
		all->done(b);
		return;
	}
	b->box.files.on = &on;
	if (x->type == WIRE_PUT)
		file_client_put(&b->box.files, &put, x->path, x->text, strlen(x->text));
	else if (x->type == WIRE_MKDIR)
		file_client_ask(&b->box.files, WIRE_MKDIR, &put, sizeof(put), x->path,
				strlen(x->path));
	else
		file_client_ask(&b->box.files, WIRE_CHOWN, &own, sizeof(own), x->path,
				strlen(x->path));
}

struct build_change *build_change_add(struct build *b, uint8_t type, const char *path,
				      uint32_t mode)
{
	struct build_change *x = &b->changes->v[b->changes->n++];

	*x = (struct build_change){ .type = type, .mode = mode };
	snprintf(x->path, sizeof(x->path), "%s", path);
	return x;
}

/* Appends a line to the text of a file. */
static void build_change_line(struct build *b, const char *path, const struct buf *file,
			      const char *line)
{
	struct build_change *x = build_change_add(b, WIRE_PUT, path, 0644);
	int ended = !file->len || file->p[file->len - 1] == '\n';

	x->text = buf_text("%s%s%s\n", buf_str(file), ended ? "" : "\n", line);
}

void build_change_user(struct build *b, const char *name, unsigned id, const char *home)
{
	char line[200];
	struct build_change *own;

	snprintf(line, sizeof(line), "%.60s:x:%u:%u::%.60s:%s", name, id, id, home, "/bin/bash");
	build_change_line(b, "/etc/passwd", &b->passwd, line);
	snprintf(line, sizeof(line), "%.60s:x:%u:", name, id);
	build_change_line(b, "/etc/group", &b->group, line);
	build_change_add(b, WIRE_MKDIR, home, 0755);
	own = build_change_add(b, WIRE_CHOWN, home, 0);
	own->uid = own->gid = id;
}
/* ---- USER in E2B's builds ---- */

static void build_user_made(struct build *b)
{
	build_changes_free(b);
	build_make_layer(b);
}

/* The smallest id from 1000 on that no line of /etc/passwd has. */
static unsigned build_free_id(const struct build *b)
{
	unsigned id = BUILD_USER_ID;
	struct build_user user;
	char text[12];
	struct err e;

	for (;; id++) {
		snprintf(text, sizeof(text), "%u", id);
		if (build_find_user(b, text, &user, &e) < 0 || !strcmp(user.name, text))
			return id;
	}
}

static int build_is_user_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	size_t n = strlen(name);

	return n > 0 && n <= 32 && strchr(letters, name[0]) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		       n;
}

void build_user_step(struct build *b)
{
	char name[64], home[80];
	struct build_user user;
	struct err e;

	snprintf(name, sizeof(name), "%.60s", json_string_value(json_array_get(b->args, 0)));
	name[strcspn(name, ":")] = 0;
	if (build_find_user(b, name, &user, &e) == 0) {
		build_step_done(b, "");
		return;
	}
	if (!build_is_user_name(name)) {
		build_fail(b, "'%.60s' cannot be the name of a user", name);
		return;
	}
	build_changes_new(b, build_user_made);
	snprintf(home, sizeof(home), "/home/%s", name);
	build_change_user(b, name, build_free_id(b), home);
	build_change_next(b);
}

/* ---- WORKDIR in E2B's builds ---- */

static const char *build_workdir_asked(struct build *b, struct buf *out)
{
	build_workdir(build_stage(b), json_string_value(json_array_get(b->args, 0)), out);
	return buf_str(out);
}

static void build_workdir_exists(struct file_client *c, const struct wire_entry *x,
				 const char *name, size_t n)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)name;
	(void)n;
	if (S_ISDIR(S_ISLNK(x->mode) ? x->target_mode : x->mode))
		build_step_done(b, "");
	else
		build_fail(b, "there is a file of that name");
}

/* It and its missing parents belong to the current user; of another user than `user`, it alone. */
static void build_workdir_missing(struct file_client *c, const struct err *e)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;
	auto_buf struct buf path = { 0 };
	struct build_change *x;
	struct build_user user;
	struct err own;

	if (e->kind != ERR_NOT_FOUND) {
		build_fail_err(b, e);
		return;
	}
	if (build_find_user(b, build_text(build_stage(b), "user"), &user, &own) < 0) {
		build_fail_err(b, &own);
		return;
	}
	build_changes_new(b, build_user_made);
	x = build_change_add(b, WIRE_MKDIR, build_workdir_asked(b, &path), 0755);
	x->flags = user.uid == BUILD_USER_ID ? WIRE_PUT_USER : 0;
	if (user.uid && user.uid != BUILD_USER_ID) {
		x = build_change_add(b, WIRE_CHOWN, buf_str(&path), 0);
		x->uid = user.uid;
		x->gid = user.gid;
	}
	build_change_next(b);
}

void build_workdir_step(struct build *b)
{
	static const struct file_client_events on = { .entry = build_workdir_exists,
						      .failed = build_workdir_missing };
	auto_buf struct buf path = { 0 };
	struct frame ask = { 0 };

	build_workdir_asked(b, &path);
	if (path.len >= sizeof(((struct build_change *)0)->path)) {
		build_fail(b, "the path has %zu bytes, which is too long", path.len);
		return;
	}
	b->box.files.on = &on;
	file_client_ask(&b->box.files, WIRE_ENTRY_OF, &ask, sizeof(ask), path.p, path.len);
}
