/* box_secrets.c - see box_secrets.h. */
#include "fleet/box_secrets.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "client/file_client.h"
#include "secret/vault.h"

#include <stdio.h>
#include <string.h>

/* ---- the row ---- */

static json_t *secrets_row(const struct box *b)
{
	return b->row.secrets && strcmp(b->row.secrets, "{}") != 0
		       ? json_loads(b->row.secrets, 0, NULL)
		       : NULL;
}

static const char *secrets_text(const json_t *one, const char *name)
{
	const char *v = json_string_value(json_object_get(one, name));

	return v ? v : "";
}

static int secrets_is(const json_t *one, const char *as)
{
	return strcmp(secrets_text(one, "as"), as) == 0;
}

#define secrets_each(row, i, one) json_array_foreach(json_object_get(row, "attached"), i, one)

int box_secrets_any(const struct box *b)
{
	return b->row.secrets && strcmp(b->row.secrets, "{}") != 0;
}

const char *box_secrets_unfit(const char *as, const char *value, size_t n)
{
	if (!strcmp(as, "file"))
		return NULL;
	if (memchr(value, 0, n))
		return "it has a NUL byte; use it as a file";
	if (strcmp(as, "placeholder") != 0)
		return NULL;
	if (n > BOX_SECRETS_HEADER)
		return "it has more than 4096 bytes, the maximum in a request";
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == 127)
			return "it has a control character, which a request must not contain";
	return NULL;
}

/* 1: read; 0: the secret was deleted; -1. */
static int secrets_value(const struct box *b, const json_t *one, struct buf *out, struct err *e)
{
	const char *why, *name = secrets_text(one, "name");

	if (!b->fleet->vault)
		return 0;
	if (vault_get(b->fleet->vault, b->row.team, name, out, NULL, e) < 0)
		return e->kind == ERR_NOT_FOUND ? 0 : -1;
	why = box_secrets_unfit(secrets_text(one, "as"), out->p, out->len);
	return why ? err_set(e, ERR_CONFLICT, "secret '%s' cannot be used as a %s: %s", name,
			     secrets_text(one, "as"), why)
		   : 1;
}

/* ---- variables ---- */

int box_secrets_has(const json_t *row, const char *variable)
{
	json_t *one;
	size_t i;

	secrets_each(row, i, one) if (!strcmp(secrets_text(one, "variable"), variable)) return 1;
	return 0;
}

static int secrets_is_set(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return 1;
	return 0;
}

static void secrets_add(struct buf *pool, unsigned *n, const char *name, const char *value,
			size_t len)
{
	buf_puts(pool, name);
	buf_putc(pool, '=');
	buf_add(pool, value, len);
	buf_putc(pool, 0);
	++*n;
}

int box_secrets_env(const struct box *b, const json_t *row, const char *const *own,
		    struct buf *pool, unsigned *n, struct err *e)
{
	json_t *one;
	size_t i;

	secrets_each(row, i, one)
	{
		const char *name = secrets_text(one, "variable"),
			   *placeholder = secrets_text(one, "placeholder");
		auto_secret struct buf value = { 0 };
		int found;

		if (!*name || secrets_is_set(own, name))
			continue;
		if (*placeholder) {
			secrets_add(pool, n, name, placeholder, strlen(placeholder));
			continue;
		}
		found = secrets_value(b, one, &value, e);
		if (found < 0)
			return -1;
		if (found)
			secrets_add(pool, n, name, value.p, value.len);
	}
	return 0;
}

/* ---- redaction ---- */

void box_secrets_redact(const struct box *b, struct redact *k)
{
	json_t *row = secrets_row(b), *one;
	size_t i;

	secrets_each(row, i, one)
	{
		auto_secret struct buf value = { 0 };
		struct err e;

		if (b->fleet->vault && vault_get(b->fleet->vault, b->row.team,
						 secrets_text(one, "name"), &value, NULL, &e) == 0)
			redact_add(k, secrets_text(one, "name"), value.p, value.len);
	}
	json_decref(row);
}

void box_secrets_redact_json(const struct box *b, json_t *doc)
{
	struct redact k = { 0 };

	if (!box_secrets_any(b))
		return;
	box_secrets_redact(b, &k);
	redact_json(&k, doc);
	redact_fini(&k);
}

/* ---- files ---- */

struct box_secrets_files {
	struct box *box;
	struct file_client client;
	int open, again; /* again: a secret changed while files were written */
	unsigned unanswered;
	void (*done)(struct box *b, const struct err *e);
};

static void secrets_placed(struct box_secrets_files *x, const struct err *e)
{
	struct box *b = x->box;
	void (*done)(struct box *, const struct err *) = x->done;
	int again = x->again && !e;

	if (e && !done)
		log_warn("the secret files of a box could not be written", LOG_S("box", b->row.id),
			 LOG_E(e));
	box_secrets_drop(b);
	if (again)
		box_secrets_place(b, done);
	else if (done)
		done(b, e);
}

static void secrets_put(struct box_secrets_files *x, const char *path, const char *bytes, size_t n,
			uint32_t mode)
{
	struct wire_put put = { .mode = mode };

	file_client_put(&x->client, &put, path, bytes, n);
	x->unanswered++;
}

/* An empty file instead of one that was there: a program that reads it gets an error of its own. */
static void secrets_put_one(struct box_secrets_files *x, const json_t *one, struct err *e)
{
	auto_secret struct buf value = { 0 };

	if (secrets_is(one, "file") && secrets_value(x->box, one, &value, e) >= 0)
		secrets_put(x, secrets_text(one, "path"), value.p, value.len, 0400);
}

static void secrets_worker_ready(struct file_client *c)
{
	struct box_secrets_files *x = loop_owner(c, struct box_secrets_files, client);
	const struct fleet *f = x->box->fleet;
	json_t *row = secrets_row(x->box), *one;
	struct err e = { 0 };
	size_t i;

	secrets_each(row, i, one) secrets_put_one(x, one, &e);
	if (json_object_get(row, "ca")) {
		auto_buf struct buf all = { 0 };

		buf_puts(&all, secrets_text(json_object_get(row, "ca"), "cert"));
		buf_puts(&all, f->conf.certificates ? f->conf.certificates : "");
		secrets_put(x, BOX_SECRETS_CA, all.p, all.len, 0444);
	}
	json_decref(row);
	if (e.kind || !x->unanswered)
		secrets_placed(x, e.kind ? &e : NULL);
}

static void secrets_one_done(struct file_client *c, uint16_t flags)
{
	struct box_secrets_files *x = loop_owner(c, struct box_secrets_files, client);

	(void)flags;
	if (--x->unanswered == 0)
		secrets_placed(x, NULL);
}

static void secrets_failed(struct file_client *c, const struct err *e)
{
	struct err own = *e;

	err_in(&own, "files of secrets");
	secrets_placed(loop_owner(c, struct box_secrets_files, client), &own);
}

static int secrets_has_files(const struct box *b)
{
	json_t *row = secrets_row(b), *one;
	int any = json_object_get(row, "ca") != NULL;
	size_t i;

	secrets_each(row, i, one) any |= secrets_is(one, "file");
	json_decref(row);
	return any;
}

static int secrets_has_attached(const struct box *b)
{
	json_t *row = secrets_row(b);
	int any = json_array_size(json_object_get(row, "attached")) > 0;

	json_decref(row);
	return any;
}

int box_secrets_place(struct box *b, void (*done)(struct box *b, const struct err *e))
{
	static const struct file_client_events on = { .ready = secrets_worker_ready,
						      .done = secrets_one_done,
						      .failed = secrets_failed };

	if (!secrets_has_files(b))
		return 0;
	if (b->secret_files) {
		b->secret_files->again = 1;
		b->secret_files->done = done ? done : b->secret_files->done;
		return 1;
	}
	b->secret_files = calloc(1, sizeof(*b->secret_files));
	if (!b->secret_files)
		abort();
	*b->secret_files = (struct box_secrets_files){ .box = b, .done = done };
	/* A box whose headers were set after its creation has no folder of the user there. */
	file_client_open(&b->secret_files->client, &b->line,
			 secrets_has_attached(b) ? 0 : WIRE_FILES_ROOT, &on);
	b->secret_files->open = 1;
	return 1;
}

void box_secrets_drop(struct box *b)
{
	struct box_secrets_files *x = b->secret_files;

	if (!x)
		return;
	b->secret_files = NULL;
	if (x->open)
		file_client_close(&x->client);
	free(x);
}

void box_secrets_ended(struct box *b)
{
	void (*done)(struct box *, const struct err *) =
		b->secret_files ? b->secret_files->done : NULL;
	struct err e;

	box_secrets_drop(b);
	if (!done)
		return;
	err_set(&e, ERR_NOT_FOUND, "box %s has ended", b->row.id);
	done(b, &e);
}

/* ---- changes ---- */

static int secrets_uses(const struct box *b, const char *name)
{
	json_t *row = secrets_row(b), *one;
	int uses = 0;
	size_t i;

	secrets_each(row, i, one) uses |= !strcmp(secrets_text(one, "name"), name);
	json_decref(row);
	return uses;
}

void box_secrets_changed(struct fleet *f, const char *team, const char *name)
{
	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b)) {
		if (!box_secrets_any(b) || strcmp(b->row.team, team) != 0 || !secrets_uses(b, name))
			continue;
		if (b->state == BOX_RUNNING || b->state == BOX_STOPPED)
			box_secrets_place(b, NULL); /* of a paused box: when it is resumed */
		egress_client_change(b);
	}
}

/* ---- egress ---- */

/* One part of the frame: its kind, its length, its bytes. */
static void secrets_part(struct buf *out, char kind, const char *bytes, size_t n)
{
	uint32_t len = (uint32_t)n;

	buf_putc(out, kind);
	buf_add(out, &len, sizeof(len));
	buf_add(out, bytes, n);
}

static void secrets_part_text(struct buf *out, char kind, const char *text)
{
	secrets_part(out, kind, text, strlen(text));
}

static int secrets_unseal(const struct box *b, const json_t *from, const char *name,
			  const char *context, struct buf *out, struct err *e)
{
	const char *coded = secrets_text(from, name);
	auto_buf struct buf sealed = { 0 };

	if (base64_decode(&sealed, coded, strlen(coded)) < 0)
		return err_set(e, ERR_SYS, "the row of the box has no %s", name);
	return vault_unseal(b->fleet->vault, context, sealed.p, sealed.len, out, e);
}

static int secrets_ca(const struct box *b, const json_t *ca, struct buf *out, struct err *e)
{
	auto_secret struct buf key = { 0 };

	if (secrets_unseal(b, ca, "key", BOX_SECRETS_CA_CONTEXT, &key, e) < 0)
		return -1;
	secrets_part_text(out, WIRE_SECRET_CERT, secrets_text(ca, "cert"));
	secrets_part(out, WIRE_SECRET_KEY, key.p, key.len);
	return 0;
}

static int secrets_placeholder(const struct box *b, const json_t *one, struct buf *out,
			       struct err *e)
{
	auto_secret struct buf value = { 0 };
	int found = secrets_value(b, one, &value, e);
	json_t *v;
	size_t i;

	if (found <= 0)
		return found;
	secrets_part_text(out, WIRE_SECRET_PLACEHOLDER, secrets_text(one, "placeholder"));
	secrets_part(out, WIRE_SECRET_VALUE, value.p, value.len);
	json_array_foreach(json_object_get(one, "in"), i, v)
		secrets_part_text(out, WIRE_SECRET_IN, json_string_value(v));
	json_array_foreach(json_object_get(one, "hosts"), i, v)
		secrets_part_text(out, WIRE_SECRET_HOST, json_string_value(v));
	return 0;
}

static void secrets_placeholders(const struct box *b, const json_t *row, struct buf *out)
{
	json_t *one;
	struct err e;
	size_t i;

	secrets_each(row, i, one)
	{
		if (secrets_is(one, "placeholder") && secrets_placeholder(b, one, out, &e) < 0)
			log_warn("a placeholder is not replaced", LOG_S("box", b->row.id),
				 LOG_E(&e));
	}
}

static void secrets_headers(const struct box *b, const json_t *row, struct buf *out)
{
	json_t *one;
	struct err e;
	size_t i;

	json_array_foreach(json_object_get(row, "headers"), i, one)
	{
		auto_secret struct buf value = { 0 };

		if (secrets_unseal(b, one, "value", BOX_SECRETS_HEADER_CONTEXT, &value, &e) < 0) {
			log_warn("a header is not set in requests", LOG_S("box", b->row.id),
				 LOG_E(&e));
			continue;
		}
		secrets_part_text(out, WIRE_SECRET_HEADER, secrets_text(one, "name"));
		secrets_part(out, WIRE_SECRET_VALUE, value.p, value.len);
		secrets_part_text(out, WIRE_SECRET_HOST, secrets_text(one, "host"));
	}
}

void box_secrets_for_egress(const struct box *b, struct buf *out)
{
	json_t *row = secrets_row(b), *ca = json_object_get(row, "ca");
	struct err e = { 0 };

	if (ca && b->fleet->vault && secrets_ca(b, ca, out, &e) == 0) {
		secrets_placeholders(b, row, out);
		secrets_headers(b, row, out);
	} else if (e.kind) {
		log_warn("placeholders and headers of a box are not written into requests",
			 LOG_S("box", b->row.id), LOG_E(&e));
	}
	json_decref(row);
}
