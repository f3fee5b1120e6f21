/* run_request_files.c - see run_request_files.h. */
#include "v1run/run_request_files.h"
#include "base/base64.h"

#include <string.h>

static void put_one(struct run_request_files *x, const char *path, const void *bytes, size_t n)
{
	struct wire_put put = { .mode = 0 };
	char full[512];

	file_client_put(&x->file_client, &put, program_path(path, full), bytes, n);
	x->unanswered++;
}

static void put_text(struct run_request_files *x, const char *path, const json_t *text)
{
	put_one(x, path, json_string_value(text), json_string_length(text));
}

static void request_files_ready(struct file_client *k)
{
	struct run_request_files *x = loop_owner(k, struct run_request_files, file_client);
	const json_t *code = json_object_get(x->plan->body, "code");
	const struct program *p = &x->plan->program;
	const char *path;
	json_t *v;

	for (const struct lang_pair *f = p->lang ? p->lang->support : NULL; f && f->key; f++)
		put_one(x, f->key, f->value, strlen(f->value));
	json_object_foreach(json_object_get(x->plan->body, "files"), path, v)
	{
		if (json_is_string(v)) {
			put_text(x, path, v);
			continue;
		}
		v = json_object_get(v, "base64");
		buf_cut(&x->text, 0);
		(void)!base64_decode(&x->text, json_string_value(v), json_string_length(v));
		put_one(x, path, x->text.p, x->text.len);
	}
	if (code)
		put_text(x, p->source, code);
}

static void one_done(struct file_client *k, uint16_t flags)
{
	struct run_request_files *x = loop_owner(k, struct run_request_files, file_client);

	(void)flags;
	if (--x->unanswered)
		return;
	run_request_files_fini(x);
	x->done(x, NULL);
}

static void request_files_failed(struct file_client *k, const struct err *e)
{
	struct run_request_files *x = loop_owner(k, struct run_request_files, file_client);

	x->done(x, e);
}

int run_request_files_put(struct run_request_files *x, const struct run_request_plan *p,
			  struct init_conn *box)
{
	static const struct file_client_events on = { .ready = request_files_ready,
						      .done = one_done,
						      .failed = request_files_failed };

	if (!json_object_size(json_object_get(p->body, "files")) &&
	    !json_object_get(p->body, "code") &&
	    !(p->program.lang && p->program.lang->support->key))
		return 1;
	x->plan = p;
	file_client_open(&x->file_client, box, 0, &on);
	x->open = 1;
	return 0;
}

void run_request_files_fini(struct run_request_files *x)
{
	if (x->open)
		file_client_close(&x->file_client);
	x->open = 0;
	buf_fini(&x->text);
}
