/* apply_patch.c - apply_patch: reads every file and computes its change, then writes all of them. A
 * hunk that does not match is found before anything is changed. */
#include "base/cleanup.h"
#include "tools/file_ops.h"
#include "tools/patch.h"

#include <string.h>

struct change {
	enum patch_kind kind;
	const char *path, *to; /* paths in the box; to NULL: not moved */
	struct wire_entry about;
	struct buf after;
};

struct patching {
	struct file_ops content; /* first */
	struct patch_file files[PATCH_FILES];
	struct change changes[PATCH_FILES];
	unsigned n, at;
};

static struct patching *patching_of(struct file_ops *x)
{
	return loop_owner(x, struct patching, content);
}

/* ---- the end ---- */

static void patcher_tell(struct patching *p)
{
	static const char *const kinds[] = {
		[PATCH_ADD] = "A", [PATCH_UPDATE] = "M", [PATCH_DELETE] = "D"
	};
	json_t *all = json_array();
	auto_buf struct buf text = { 0 };

	file_ops_close(&p->content);
	for (unsigned i = 0; i < p->n; i++) {
		const struct change *c = &p->changes[i];

		buf_printf(&text, "%s %s%s%s\n", kinds[c->kind], c->path, c->to ? " -> " : "",
			   c->to ? c->to : "");
		json_array_append_new(all, json_pack("{s:s, s:s, s:s?}", "kind", kinds[c->kind],
						     "path", c->path, "to", c->to));
		call_audit(p->content.job->call,
			   c->kind == PATCH_DELETE ? "file.remove" : "file.write", c->path, "ok");
	}
	tool_done(p->content.job, json_pack("{s:o}", "files", all), text.p, text.len);
}

/* ---- writing ---- */

static void write_next(struct file_ops *x);

static void patcher_written(struct file_ops *x)
{
	patching_of(x)->at++;
	write_next(x);
}

static void patcher_moved(struct file_ops *x)
{
	struct patching *p = patching_of(x);

	file_ops_remove(x, p->changes[p->at].path, patcher_written);
}

static void write_next(struct file_ops *x)
{
	struct patching *p = patching_of(x);
	struct change *c = &p->changes[p->at];

	if (p->at == p->n) {
		patcher_tell(p);
		return;
	}
	x->about = c->about;
	if (c->kind == PATCH_DELETE)
		file_ops_remove(x, c->path, patcher_written);
	else if (c->kind == PATCH_ADD)
		file_ops_put(x, c->path, c->after.p, c->after.len, CONTENT_NEW, patcher_written);
	else if (c->to)
		file_ops_put(x, c->to, c->after.p, c->after.len, CONTENT_ANY, patcher_moved);
	else
		file_ops_put(x, c->path, c->after.p, c->after.len, CONTENT_SAME, patcher_written);
}

/* ---- reading ---- */

static void read_next(struct file_ops *x);

static void patcher_refuse(struct patching *p, const char *code, const char *message)
{
	file_request_error(&p->content.file_req, 409, code, message, p->changes[p->at].path, NULL);
}

static void patcher_looked(struct file_ops *x)
{
	struct patching *p = patching_of(x);
	struct change *c = &p->changes[p->at];
	struct err e;

	c->about = x->about;
	if (c->kind == PATCH_ADD && (x->there || x->folder)) {
		patcher_refuse(p, "exists", "the file exists already");
		return;
	}
	if (c->kind != PATCH_ADD && (!x->there || x->folder)) {
		patcher_refuse(p, "not_found",
			       x->folder ? "it is a folder" : "there is no such file");
		return;
	}
	if (c->kind == PATCH_UPDATE && patch_apply(p->files[p->at].body, buf_str(&x->bytes),
						   x->bytes.len, &c->after, &e) < 0) {
		patcher_refuse(p, "no_match", e.msg);
		return;
	}
	p->at++;
	read_next(x);
}

static void read_next(struct file_ops *x)
{
	struct patching *p = patching_of(x);

	if (p->at == p->n) {
		p->at = 0;
		write_next(x);
		return;
	}
	x->may_miss = 1;
	if (p->changes[p->at].kind == PATCH_UPDATE)
		file_ops_get(x, p->changes[p->at].path, patcher_looked);
	else
		file_ops_stat(x, p->changes[p->at].path, patcher_looked);
}

/* ---- the beginning ---- */

static const char *path_of(struct tool_job *j, struct patch_text t)
{
	char *text = call_alloc(j->call, t.n + 1);

	memcpy(text, t.p, t.n);
	text[t.n] = 0;
	return file_request_path(j->call, text);
}

static int patcher_known(const struct patching *p, const char *path)
{
	for (unsigned i = 0; i < p->n; i++)
		if (!strcmp(p->changes[i].path, path))
			return 1;
	return 0;
}

/* 0: rejected, and the error was sent. */
static int patcher_plan(struct patching *p, struct tool_job *j, const struct patch_file *f)
{
	struct change *c = &p->changes[p->n];
	struct err e;

	c->kind = f->kind;
	c->path = path_of(j, f->path);
	if (!c->path)
		return 0;
	if (patcher_known(p, c->path)) {
		tool_fail(j, "invalid", "the patch contains this file twice", c->path, NULL);
		return 0;
	}
	if (f->move.n && !(c->to = path_of(j, f->move)))
		return 0;
	p->n++;
	if (f->kind == PATCH_ADD && patch_content(f->body, &c->after, &e) < 0) {
		tool_fail(j, "invalid", e.msg, c->path, NULL);
		return 0;
	}
	return 1;
}

static void patcher_drop(struct tool_job *j)
{
	struct patching *p = j->state;

	for (unsigned i = 0; i < PATCH_FILES; i++)
		buf_fini(&p->changes[i].after);
	buf_fini(&p->content.bytes);
}

void tool_patch(struct tool_job *j)
{
	const json_t *text = json_object_get(j->args, "patch");
	struct patching *p = call_alloc(j->call, sizeof(*p));
	struct err e;
	int n;

	memset(p, 0, sizeof(*p));
	n = patch_parse(json_string_value(text), json_string_length(text), p->files, &e);
	if (n < 0) {
		tool_fail(j, "invalid", e.msg, NULL, NULL);
		return;
	}
	j->state = p;
	j->drop = patcher_drop;
	for (int i = 0; i < n; i++)
		if (!patcher_plan(p, j, &p->files[i]))
			return;
	p->content.file_req.path = p->changes[0].path;
	file_ops_open(&p->content, j, read_next);
	j->drop = patcher_drop;
}
