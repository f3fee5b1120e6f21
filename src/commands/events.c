/* events.c - `atoll events`: prints events of boxes. A stream that breaks is continued after the
 * last event. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS_FOLLOW, EVENTS_BOX, EVENTS_AFTER, EVENTS_NFLAGS };
enum { AGAIN_MS = 100, GIVE_UP_MS = 60000 };

static const struct flag flags[EVENTS_NFLAGS] = {
	[EVENTS_FOLLOW] = { "follow", 'f', FLAG_SWITCH, NULL, "continue with new events" },
	[EVENTS_BOX] = { "box", 'b', FLAG_TEXT, "BOX", "only events of this box" },
	[EVENTS_AFTER] = { "after", 0, FLAG_COUNT, "N", "only events after this number" },
};

struct events_watch {
	const struct cli *cli;
	int64_t last;
	char next[96]; /* position of a gateway, which comes before `last`; "": none */
	uint64_t received_ns;
	int unread;
};

static void events_keep_next(struct events_watch *w, const json_t *doc)
{
	const char *next = json_string_value(json_object_get(doc, "next"));

	if (next && strlen(next) < sizeof(w->next))
		snprintf(w->next, sizeof(w->next), "%s", next);
}

static int events_print(void *ctx, json_t *ev)
{
	struct events_watch *w = ctx;
	const json_t *data = json_object_get(ev, "data");
	const char *key;
	json_t *v;

	w->received_ns = now_ns();
	if (!json_object_get(ev, "seq"))
		return 0; /* a sign of life */
	w->last = api_client_int(ev, "seq", w->last);
	events_keep_next(w, ev);
	if (w->cli->json) {
		api_client_print(ev);
		return w->unread = fflush(stdout) != 0;
	}
	printf("%s  %s  %s", api_client_text(ev, "at"), api_client_text(ev, "box"),
	       api_client_text(ev, "type"));
	json_object_foreach((json_t *)data, key, v)
	{
		auto_free char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);

		printf("  %s=%s", key, json_is_string(v) ? json_string_value(v) : text);
	}
	putchar('\n');
	return w->unread = fflush(stdout) != 0;
}

static void path_of(struct buf *path, const struct args *a, const struct events_watch *w,
		    int follow)
{
	buf_printf(path, "/v1/events?limit=100");
	if (follow)
		buf_puts(path, "&follow=true");
	if (w->next[0])
		buf_printf(path, "&after=%s", w->next);
	else if (w->last >= 0)
		buf_printf(path, "&after=%lld", (long long)w->last);
	if (args_has(a, EVENTS_BOX)) {
		buf_puts(path, "&box=");
		api_client_escape(path, args_text(a, EVENTS_BOX, ""));
	}
}

/* Pages are requested by number. */
static int events_do_list(struct api_client *r, const struct args *a, struct events_watch *w)
{
	size_t n = 1;

	while (n) {
		auto_buf struct buf path = { 0 };
		json_t *doc, *v;
		size_t i;

		w->last = w->last < 0 ? 0 : w->last;
		path_of(&path, a, w, 0);
		doc = api_client_json(r, "GET", buf_str(&path), NULL);
		if (!doc)
			return r->status;
		n = json_is_null(json_object_get(doc, "next"))
			    ? 0
			    : json_array_size(json_object_get(doc, "items"));
		json_array_foreach(json_object_get(doc, "items"), i, v) if (events_print(w, v)) n =
			0;
		events_keep_next(w, doc);
		json_decref(doc);
	}
	return 0;
}

static int events_follow(struct api_client *r, const struct args *a, struct events_watch *w)
{
	for (;;) {
		auto_buf struct buf path = { 0 };
		int status;

		path_of(&path, a, w, 1);
		status = api_client_lines(r, "GET", buf_str(&path), NULL, events_print, w);
		if (w->unread)
			return 0;
		if (status && (!r->lost || r->never) && w->last < 0)
			return status;
		if (status && !r->lost && r->http < 500)
			return status;
		if (now_ns() - w->received_ns > GIVE_UP_MS * UINT64_C(1000000))
			return status ? status : (r->status = STATUS_OURS);
		poll(NULL, 0, AGAIN_MS);
	}
}

static int events_events(struct api_client *r, const struct args *a)
{
	struct events_watch w = { .cli = r->cli, .last = -1, .received_ns = now_ns() };
	int status;

	if (args_has(a, EVENTS_AFTER))
		w.last = (int64_t)args_value(a, EVENTS_AFTER, 0);
	status = args_has(a, EVENTS_FOLLOW) ? events_follow(r, a, &w) : events_do_list(r, a, &w);
	if (status && args_has(a, EVENTS_BOX))
		api_client_explain_box(r, args_text(a, EVENTS_BOX, ""));
	return status;
}

static int run_events(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, events_events);
}

static const struct example examples[] = {
	{ "atoll events", "print past events" },
	{ "atoll events -f --json", "print new events, one line of JSON each" },
	{ 0 },
};

const struct command command_events = {
	.name = "events",
	.group = "Observe",
	.usage = "[FLAGS]",
	.summary = "print events of boxes",
	.flags = flags,
	.nflags = EVENTS_NFLAGS,
	.examples = examples,
	.run = run_events,
};
