/* build_copy.c - COPY and ADD: which files, and where to. See build_copy.h. */
#include "template/build_copy.h"
#include "base/cleanup.h"
#include "base/glob.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char *copy_strdup(const char *s)
{
	char *c = strdup(s);

	if (!c)
		abort();
	return c;
}

void build_copy_free(struct build_copy *c)
{
	if (!c)
		return;
	exec_input_cancel(&c->low);
	if (c->unpacking)
		exec_reader_close(&c->unpack);
	build_box_close(&c->source);
	own_close_fd(&c->fd);
	for (unsigned i = 0; i < c->nroots; i++)
		free(c->roots[i]);
	for (unsigned i = 0; i < c->nitems; i++) {
		free(c->items[i].from);
		free(c->items[i].to);
		free(c->items[i].target);
	}
	free(c->roots);
	free(c->items);
	free(c->glob);
	buf_fini(&c->content);
	free(c);
}

static struct build_copy *copy_of_source(struct file_client *f)
{
	return loop_owner(loop_owner(f, struct build_box, files), struct build_copy, source);
}

static struct build_copy *copy_of_box(struct file_client *f)
{
	return loop_owner(f, struct build_box, files)->build->copy;
}

static void copy_failed_source(struct file_client *f, const struct err *e)
{
	build_fail_err(copy_of_source(f)->build, e);
}

static void copy_failed_box(struct file_client *f, const struct err *e)
{
	build_fail_err(copy_of_box(f)->build, e);
}

/* ---- writing ---- */

static void copy_next(struct build_copy *c);

/* 1: MKDIR itself gives new folders this owner; existing folders keep theirs. */
static int copy_owned_by_mkdir(const struct build_copy *c)
{
	return (c->owner.uid == 0 && c->owner.gid == 0) ||
	       (c->owner.uid == COPY_USER && c->owner.gid == COPY_USER);
}

static void copy_written(struct file_client *f, uint16_t flags)
{
	struct build_copy *c = copy_of_box(f);
	const struct copy_item *x = &c->items[c->item];
	struct wire_chown own = { .uid = c->owner.uid, .gid = c->owner.gid };

	(void)flags;
	if (c->has_owner && !c->chowned && !(S_ISDIR(x->mode) && copy_owned_by_mkdir(c))) {
		c->chowned = 1;
		file_client_ask(f, WIRE_CHOWN, &own, sizeof(own), x->to, strlen(x->to));
		return;
	}
	c->item++;
	copy_next(c);
}

/* The source has sent the content: the PUT can end. */
static void copy_read(struct file_client *f, const char *bytes, size_t n)
{
	(void)bytes;
	if (n == 0)
		file_client_data(&copy_of_source(f)->build->box.files, NULL, 0);
}

static void copy_end(struct build_copy *c)
{
	struct build *b = c->build;

	b->copy = NULL;
	build_copy_free(c);
	build_make_layer(b);
}

static void copy_file(struct build_copy *c, const struct copy_item *x)
{
	static const struct file_client_events on = { .data = copy_read,
						      .failed = copy_failed_source };
	struct wire_put put = { .mode = c->mode ? c->mode : x->mode & 07777,
				.flags = x->from ? WIRE_PUT_TIME : 0,
				.if_mtime_ns = x->mtime_ns };
	struct err e;

	if (!x->from) {
		file_client_put(&c->build->box.files, &put, x->to, buf_str(&c->content),
				c->content.len);
		return;
	}
	c->source.files.on = &on;
	if (file_client_transfer(&c->source.files, x->from, &c->build->box.files, &put, x->to, &e) <
	    0)
		build_fail_err(c->build, &e);
}

static void copy_next(struct build_copy *c)
{
	static const struct file_client_events on = { .done = copy_written,
						      .failed = copy_failed_box };
	const struct copy_item *x = &c->items[c->item];
	struct file_client *to = &c->build->box.files;
	struct wire_put put = { .mode = x ? x->mode & 07777 : 0 };
	struct frame link = { 0 };
	auto_buf struct buf both = { 0 };

	if (c->item == c->nitems) {
		copy_end(c);
		return;
	}
	c->chowned = 0;
	to->on = &on;
	if (S_ISDIR(x->mode)) {
		if (c->mode && (x->from || !c->e2b))
			put.mode = c->mode;
		if (c->has_owner && c->owner.uid == COPY_USER)
			put.flags = WIRE_PUT_USER;
		file_client_ask(to, WIRE_MKDIR, &put, sizeof(put), x->to, strlen(x->to));
	} else if (S_ISLNK(x->mode)) {
		buf_add(&both, x->target, strlen(x->target) + 1);
		buf_puts(&both, x->to);
		file_client_ask(to, WIRE_LINK, &link, sizeof(link), both.p, both.len);
	} else {
		copy_file(c, x);
	}
}

/* ---- the list of files ---- */

static struct copy_item *copy_add(struct build_copy *c, uint32_t mode, char *take_from,
				  char *take_to)
{
	if (c->nitems % 1024 == 0) {
		c->items = realloc(c->items, (c->nitems + 1024) * sizeof(*c->items));
		if (!c->items)
			abort();
	}
	c->items[c->nitems] = (struct copy_item){ .mode = mode, .from = take_from, .to = take_to };
	return &c->items[c->nitems++];
}

static const char *copy_last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Where a single file or link goes. */
static char *copy_place(const struct build_copy *c, const char *name)
{
	return c->dest_is_dir ? buf_text("%s/%s", !strcmp(c->dest, "/") ? "" : c->dest, name)
			      : copy_strdup(c->dest);
}

static void copy_next_root(struct build_copy *c);

static void copy_entry(struct file_client *f, const struct wire_entry *e, const char *name,
		       size_t n)
{
	struct build_copy *c = copy_of_source(f);
	const char *root = c->roots[c->root], *target = memchr(name, 0, n);
	size_t len = target ? (size_t)(target - name) : n;
	struct copy_item *x;

	if (c->nitems >= COPY_ENTRIES ||
	    (!S_ISREG(e->mode) && !S_ISDIR(e->mode) && !S_ISLNK(e->mode)))
		return; /* devices, sockets and pipes are not copied */
	x = copy_add(c, e->mode, buf_text("%s/%s%.*s", c->base, root, (int)len, name),
		     buf_text("%s/%.*s", !strcmp(c->dest, "/") ? "" : c->dest, (int)len, name));
	x->mtime_ns = e->mtime_ns;
	if (S_ISLNK(e->mode))
		x->target =
			target ? buf_text("%.*s", (int)(n - len - 1), target + 1) : copy_strdup("");
}

static void copy_listed(struct file_client *f, uint16_t flags)
{
	struct build_copy *c = copy_of_source(f);

	if (c->nitems >= COPY_ENTRIES || flags & WIRE_DONE_TRUNCATED) {
		build_fail(c->build, "more than %d files or %d levels of folders", COPY_ENTRIES,
			   COPY_DEPTH);
		return;
	}
	c->root++;
	copy_next_root(c);
}

static void copy_list_root(struct build_copy *c, const char *root)
{
	static const struct file_client_events on = { .entry = copy_entry,
						      .done = copy_listed,
						      .failed = copy_failed_source };
	struct wire_list ask = { .max = COPY_ENTRIES + 1, .depth = COPY_DEPTH };
	char path[COPY_PATH + 80];

	snprintf(path, sizeof(path), "%s/%s", c->base, root);
	c->source.files.on = &on;
	file_client_ask(&c->source.files, WIRE_LIST, &ask, sizeof(ask), path, strlen(path));
}

static void copy_root_entry(struct file_client *f, const struct wire_entry *e, const char *name,
			    size_t n)
{
	struct build_copy *c = copy_of_source(f);
	const char *root = c->roots[c->root], *target = memchr(name, 0, n);
	int link = S_ISLNK(e->mode) && c->e2b;
	struct copy_item *x;

	x = copy_add(c, S_ISLNK(e->mode) && !link ? e->target_mode : e->mode,
		     buf_text("%s/%s", c->base, root), copy_place(c, copy_last_name(root)));
	x->mtime_ns = e->mtime_ns;
	if (link)
		x->target = target ? buf_text("%.*s", (int)(name + n - target - 1), target + 1)
				   : copy_strdup("");
	c->root++;
	copy_next_root(c);
}

/* The entries of each match: a folder's content, or the file. */
static void copy_next_root(struct build_copy *c)
{
	static const struct file_client_events on = { .entry = copy_root_entry,
						      .failed = copy_failed_source };
	struct frame ask = { 0 };
	const char *root;
	char path[COPY_PATH + 80];

	if (c->root == c->nroots) {
		copy_next(c);
		return;
	}
	root = c->roots[c->root];
	if (!*root || root[strlen(root) - 1] == '/') {
		copy_add(c, S_IFDIR | 0755, NULL, copy_strdup(c->dest));
		copy_list_root(c, root);
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", c->base, root);
	c->source.files.on = &on;
	file_client_ask(&c->source.files, WIRE_ENTRY_OF, &ask, sizeof(ask), path, strlen(path));
}

/* ---- the destination ---- */

static void copy_dest_entry(struct file_client *f, const struct wire_entry *e, const char *name,
			    size_t n)
{
	struct build_copy *c = copy_of_box(f);

	(void)name;
	(void)n;
	c->dest_is_dir |= S_ISDIR(S_ISLNK(e->mode) ? e->target_mode : e->mode);
	copy_next_root(c);
}

static void copy_no_dest(struct file_client *f, const struct err *e)
{
	(void)e;
	copy_next_root(copy_of_box(f));
}

/* A file goes into a destination that is a folder, or has a slash at its end. */
static void copy_look_at_dest(struct build_copy *c)
{
	static const struct file_client_events on = { .entry = copy_dest_entry,
						      .failed = copy_no_dest };
	struct frame ask = { 0 };

	if (c->nroots > 1)
		c->dest_is_dir = 1;
	c->build->box.files.on = &on;
	file_client_ask(&c->build->box.files, WIRE_ENTRY_OF, &ask, sizeof(ask), c->dest,
			strlen(c->dest));
}

/* ---- sources ---- */

static void copy_next_source(struct build_copy *c);

static void copy_match(struct build_copy *c, const char *path, uint32_t mode)
{
	if (c->nroots % 64 == 0) {
		c->roots = realloc(c->roots, (c->nroots + 64) * sizeof(*c->roots));
		if (!c->roots)
			abort();
	}
	c->roots[c->nroots++] = buf_text("%s%s", path, S_ISDIR(mode) && *path ? "/" : "");
}

static const char *copy_source(const struct build_copy *c)
{
	const char *text = json_string_value(json_array_get(c->build->args, c->pattern));

	while (*text == '/' || (text[0] == '.' && (text[1] == '/' || !text[1])))
		text++;
	return text;
}

static int copy_is_archive(const char *name)
{
	static const char *const ends[] = { ".tar", ".tar.gz",  ".tgz",  ".tar.xz",
					    ".txz", ".tar.bz2", ".tbz2", ".tar.zst" };

	for (unsigned i = 0; i < ARRAY_LEN(ends); i++) {
		size_t n = strlen(name), k = strlen(ends[i]);

		if (n > k && !strcmp(name + n - k, ends[i]))
			return 1;
	}
	return 0;
}

/* ADD has unpacked an archive: its content is copied like that of a folder. */
static void copy_added(struct build_copy *c)
{
	char path[40];

	snprintf(path, sizeof(path), "../added/%u", c->pattern);
	copy_match(c, path, S_IFDIR);
	c->pattern++;
	copy_next_source(c);
}

static void copy_source_entry(struct file_client *f, const struct wire_entry *e, const char *name,
			      size_t n)
{
	struct build_copy *c = copy_of_source(f);
	uint32_t mode = S_ISLNK(e->mode) ? e->target_mode : e->mode;
	char archive[COPY_PATH + 80], folder[80];

	(void)name;
	(void)n;
	if (definition_type(c->build->step) == DEFINITION_ADD && S_ISREG(mode) &&
	    copy_is_archive(copy_source(c)) && !strcmp(c->base, COPY_CONTEXT)) {
		snprintf(archive, sizeof(archive), "%s/%s", c->base, copy_source(c));
		snprintf(folder, sizeof(folder), "/home/user/added/%u", c->pattern);
		c->opened = copy_added;
		build_source_unpack(c, archive, folder);
		return;
	}
	copy_match(c, copy_source(c), S_ISLNK(e->mode) && c->e2b ? e->mode : mode);
	c->pattern++;
	copy_next_source(c);
}

static void copy_source_missing(struct file_client *f, const struct err *e)
{
	struct build_copy *c = copy_of_source(f);

	if (e->kind != ERR_NOT_FOUND)
		build_fail_err(c->build, e);
	else
		build_fail(c->build, "there is no '%.200s' in %s", copy_source(c),
			   *c->base ? "the build context" : "the source image");
}

static void copy_glob_entry(struct file_client *f, const struct wire_entry *e, const char *name,
			    size_t n)
{
	struct build_copy *c = copy_of_source(f);
	auto_free char *path = buf_text("%.*s", (int)strnlen(name, n), name);

	if (c->nroots < COPY_ENTRIES && glob_match(c->glob, path))
		copy_match(c, path, S_ISLNK(e->mode) ? e->target_mode : e->mode);
}

static void copy_globbed(struct file_client *f, uint16_t flags)
{
	struct build_copy *c = copy_of_source(f);
	int none = !c->nroots;

	(void)flags;
	if (none) {
		build_fail(c->build, "nothing in %s matches '%.200s'",
			   *c->base ? "the build context" : "the source image", copy_source(c));
		return;
	}
	c->pattern++;
	copy_next_source(c);
}

static void copy_glob(struct build_copy *c, const char *pattern)
{
	static const struct file_client_events on = { .entry = copy_glob_entry,
						      .done = copy_globbed,
						      .failed = copy_source_missing };
	struct wire_list ask = { .max = COPY_ENTRIES, .depth = 1 };
	const char *folder = *c->base ? c->base : "/";
	struct err e;

	for (const char *at = pattern; *at; at++)
		ask.depth += *at == '/';
	if (strstr(pattern, "**"))
		ask.depth = COPY_DEPTH;
	if (!c->glob)
		c->glob = calloc(1, sizeof(*c->glob));
	if (!c->glob)
		abort();
	if (glob_compile(c->glob, pattern, &e) < 0) {
		build_fail_err(c->build, &e);
		return;
	}
	c->source.files.on = &on;
	file_client_ask(&c->source.files, WIRE_LIST, &ask, sizeof(ask), folder, strlen(folder));
}

/* 1: a part of the path is "..". */
static int copy_leaves(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || !at[2]))
			return 1;
	return 0;
}

static void copy_next_source(struct build_copy *c)
{
	static const struct file_client_events on = { .entry = copy_source_entry,
						      .failed = copy_source_missing };
	const char *source;
	struct frame ask = { 0 };
	char path[COPY_PATH + 80];

	if (c->pattern + 1 >= json_array_size(c->build->args)) {
		copy_look_at_dest(c);
		return;
	}
	source = copy_source(c);
	if (copy_leaves(source) || strlen(source) >= COPY_PATH) {
		build_fail(c->build,
			   "'%.200s' is outside the build context; copy files of the "
			   "folder that you build from",
			   source);
		return;
	}
	if (strpbrk(source, "*?[")) {
		copy_glob(c, source);
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", c->base, source);
	c->source.files.on = &on;
	file_client_ask(&c->source.files, WIRE_ENTRY_OF, &ask, sizeof(ask), path, strlen(path));
}

/* ---- begin ---- */

static void copy_set_dest(struct build_copy *c)
{
	const struct build *b = c->build;
	const char *dest = json_string_value(json_array_get(b->args, json_array_size(b->args) - 1)),
		   *cwd = build_text(build_stage(b), "workdir");
	size_t n;

	if (*dest == '/')
		snprintf(c->dest, sizeof(c->dest), "%s", dest);
	else
		snprintf(c->dest, sizeof(c->dest), "%s/%s", !strcmp(cwd, "/") ? "" : cwd,
			 dest[0] == '.' && (!dest[1] || dest[1] == '/') ? dest + 1 : dest);
	n = strlen(c->dest);
	c->dest_is_dir = n && c->dest[n - 1] == '/';
	while (n > 1 && c->dest[n - 1] == '/')
		c->dest[--n] = 0;
	if (!n)
		snprintf(c->dest, sizeof(c->dest), "/");
}

/* The text of a heredoc is one file. */
static void copy_content(struct build_copy *c)
{
	const json_t *args = c->build->args;
	const char *name =
		json_array_size(args) > 1 ? json_string_value(json_array_get(args, 0)) : "content";

	copy_add(c, S_IFREG | 0644, NULL, copy_place(c, copy_last_name(name)));
	copy_next(c);
}

static int copy_read_options(struct build_copy *c, struct err *e)
{
	const struct build *b = c->build;
	const char *mode = build_text(b->step, "mode");
	auto_buf struct buf owner = { 0 };

	if (build_expand_text(b, build_text(b->step, "owner"), &owner, e) < 0 ||
	    build_expand_text(b, build_text(b->step, "content"), &c->content, e) < 0)
		return -1;
	c->e2b = json_is_true(json_object_get(b->definition, "e2b"));
	if (c->e2b && !owner.len)
		buf_puts(&owner, build_text(build_stage(b), "user"));
	c->has_owner = owner.len > 0;
	c->mode = (uint32_t)strtoul(mode, NULL, 8) & 07777;
	for (size_t i = 0; i + 1 < json_array_size(b->args); i++) {
		const char *source = json_string_value(json_array_get(b->args, i));

		if (definition_type(b->step) == DEFINITION_ADD && strstr(source, "://"))
			return err_set(
				e, ERR_INVALID,
				"ADD of a URL is not supported: download it with RUN, or COPY "
				"a file: %.80s",
				source);
	}
	return c->has_owner ? build_find_user(b, buf_str(&owner), &c->owner, e) : 0;
}

void build_copy_begin(struct build *b)
{
	struct build_copy *c = calloc(1, sizeof(*c));
	struct err e;

	if (!c)
		abort();
	c->build = c->source.build = b;
	c->fd = -1;
	c->opened = copy_next_source;
	c->unpack.own.post.fd = -1;
	b->copy = c;
	copy_set_dest(c);
	if (copy_read_options(c, &e) < 0)
		build_fail_err(b, &e);
	else if (json_object_get(b->step, "content") &&
		 !json_is_null(json_object_get(b->step, "content")))
		copy_content(c);
	else
		build_source_open(c);
}
