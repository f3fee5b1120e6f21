/* list_output.c - see list_output.h. */
#include "cli/list_output.h"

#include <stdio.h>
#include <unistd.h>

struct showing {
	const struct list_output *what;
	const struct cli *cli;
	struct table table;
	json_t *items;
};

static int list_each(void *ctx, json_t *item)
{
	struct showing *s = ctx;

	if (s->cli->json)
		json_array_append(s->items, item);
	else if (s->cli->quiet)
		puts(api_client_text(item, s->what->name));
	else
		s->what->row(&s->table, item);
	return 0;
}

int list_output_show(struct api_client *r, const char *path, const struct list_output *l)
{
	struct showing s = { .what = l, .cli = r->cli, .items = json_array() };
	int status;

	table_init(&s.table, l->columns);
	status = api_client_list(r, path, list_each, &s);
	if (!status && r->cli->json) {
		json_t *doc = json_pack("{s:O, s:n}", "items", s.items, "next");

		api_client_print(doc);
		json_decref(doc);
	}
	table_print(&s.table, !status && !r->cli->json && !r->cli->quiet && isatty(1));
	json_decref(s.items);
	return status;
}
