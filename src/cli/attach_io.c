/* attach_io.c - see attach_io.h. */
#include "cli/attach_io.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "cli/exec_follow.h"

#include <stdio.h>
#include <string.h>

enum { KEPT_OUTPUT = 1 << 20 };

void attach_env(json_t *env, const char *name_value)
{
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(name_value, "="), name_value);
	json_object_set_new(env, name, json_string(strchr(name_value, '=') + 1));
}

static int attach_over(struct exec_follow *f, int status, struct buf output[2])
{
	struct api_client *r = f->r;

	if (status) {
		if (r->http == 404 && !f->known)
			api_client_explain_box(r, f->box);
		return status;
	}
	for (int i = 0; i < 2 && r->cli->json; i++)
		record_set_output(f->record, i ? "stderr" : "stdout", &output[i]);
	if (r->cli->json && (f->dropped[0] || f->dropped[1]))
		json_object_set_new(f->record, "truncated", json_true());
	if (r->cli->json)
		api_client_print(f->record);
	r->error.what[0] = 0;
	/* No message when the reader closed the pipe: the user closed it. */
	return f->unread ? (int)api_client_int(f->record, "status", STATUS_OURS)
			 : exec_follow_report(r->cli, f->record);
}

static void set_up(struct exec_follow *f, struct api_client *r, const char *box,
		   struct buf output[2])
{
	exec_follow_init(f, r, box);
	f->signals = 1;
	for (int i = 0; i < 2 && r->cli->json; i++) {
		f->out[i] = -1;
		f->keep[i] = &output[i];
		f->keep_max = KEPT_OUTPUT;
	}
}

int attach_run(struct api_client *r, const char *box, json_t *take_body, int terminal, int twice,
	       int input)
{
	auto_buf struct buf out = { 0 }, err = { 0 };
	struct buf output[2] = { out, err };
	static struct exec_follow f; /* its threads end with the process */
	int status;

	r->runs = 1;
	set_up(&f, r, box, output);
	f.terminal = terminal;
	f.twice = twice;
	f.input = input;
	if (terminal)
		json_object_set_new(take_body, "pty", exec_follow_size());
	else if (input)
		json_object_set_new(take_body, "open_stdin", json_true());
	status = attach_over(&f, exec_follow_start(&f, take_body), output);
	exec_follow_fini(&f);
	out = output[0];
	err = output[1];
	return status;
}

int attach_join(struct api_client *r, const char *box, const char *exec, const uint64_t from[2],
		int terminal, int input)
{
	auto_buf struct buf out = { 0 }, err = { 0 };
	struct buf output[2] = { out, err };
	static struct exec_follow f; /* its threads end with the process */
	int status;

	r->runs = 1;
	set_up(&f, r, box, output);
	f.terminal = terminal;
	f.input = input;
	f.attached = 1;
	f.next[0] = from[0];
	f.next[1] = from[1];
	status = attach_over(&f, exec_follow_exec(&f, exec), output);
	exec_follow_fini(&f);
	out = output[0];
	err = output[1];
	return status;
}

static int take_first(void *ctx, json_t *item)
{
	snprintf(ctx, 64, "%s", api_client_text(item, "id"));
	return 1;
}

int attach_newest(struct api_client *r, const char *box, int running, char out[64])
{
	auto_free char *path = api_client_path(running ? "/v1/boxes/%s/execs?limit=1&running=true"
						       : "/v1/boxes/%s/execs?limit=1",
					       box);
	int status;

	out[0] = 0;
	status = api_client_list(r, path, take_first, out);
	if (status)
		api_client_explain_box(r, box);
	return status;
}
