/* desktop.c - screenshot, click, type_text and the other tools for the desktop of a box. Each is a program of the
 * box: scrot or xdotool on the display that DISPLAY of the box names, or :0. See desktop_words.h. */
#include "api/fields.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "fleet/exec.h"
#include "tools/desktop_words.h"
#include "tools/tool.h"
#include "v1run/run_request.h"

#include <stdio.h>
#include <string.h>

enum {
	DESKTOP_MS = 60000,          /* time limit of an action */
	DESKTOP_IMAGE_MAX = 8 << 20, /* bytes of a screenshot */
	PLACE_MAX = 32767,
	TYPE_MAX = 16 << 10,
	URL_MAX = 8 << 10,
	NO_DESKTOP = 69, /* exit status of desktop_script without a display or a program */
};

#define DESKTOP_HINT "use a box of the template desktop: create_box with template=desktop"

/* $1 is the program that is executed; the other words are its arguments. If the box has the variable DISPLAY, its
 * start command may still be starting the display. */
static const char desktop_script[] =
	"most=1; [ -z \"${DISPLAY-}\" ] || most=150\n"
	"export DISPLAY=\"${DISPLAY:-:0}\"\n"
	"for p in xdotool \"$1\"; do command -v \"$p\" >/dev/null || { echo \"this box has no $p\" >&2; exit 69; }; done\n"
	"n=0\n"
	"until xdotool getdisplaygeometry >/dev/null 2>&1; do\n"
	" n=$((n + 1))\n"
	" [ $n -lt $most ] || { echo \"no display answers at $DISPLAY\" >&2; exit 69; }\n"
	" sleep 0.1\n"
	"done\n"
	"case $1 in\n"
	"scrot)\n"
	" d=$(mktemp -d) || exit 1\n"
	" scrot --pointer \"$d/a.png\" && cat \"$d/a.png\"\n"
	" r=$?; rm -rf \"$d\"; exit $r ;;\n"
	"xdg-open)\n" /* a browser is not part of this command; it may take seconds to open its window */
	" browser=${BROWSER:-chromium}\n"
	" command -v \"$browser\" >/dev/null || { echo \"this box has no $browser\" >&2; exit 69; }\n"
	" setsid \"$browser\" \"$2\" >/tmp/browser.log 2>&1 </dev/null &\n"
	" n=0\n"
	" until w=$(xdotool search --onlyvisible --class \"${browser##*/}\" 2>/dev/null) && [ -n \"$w\" ]; do\n"
	"  n=$((n + 1))\n"
	"  [ $n -lt 300 ] || { echo \"$browser has opened no window:\" >&2; tail -5 /tmp/browser.log >&2; exit 1; }\n"
	"  sleep 0.1\n"
	" done ;;\n"
	"*) exec \"$@\" ;;\n"
	"esac\n";

struct desktop_job {
	struct buf out, what; /* standard output; a sentence about the action */
	int too_large;
};

static struct tool_job *desktop_job_of(const struct call *c)
{
	return ((struct tool_call *)c->surface)->job;
}

static void desktop_drop(struct tool_job *j)
{
	struct desktop_job *d = j->state;

	buf_fini(&d->out);
	buf_fini(&d->what);
}

static int desktop_said(struct call *c, unsigned stream, const char *bytes, size_t n)
{
	struct tool_job *j = desktop_job_of(c);
	struct desktop_job *d = j->state;

	if (stream)
		head_tail_add(&j->out[1], bytes, n);
	else if (d->out.len + n > DESKTOP_IMAGE_MAX)
		d->too_large = 1;
	else
		buf_add(&d->out, bytes, n);
	return 0;
}

static void desktop_started(struct call *c, const struct exec *r, const char *step)
{
	(void)step;
	memcpy(desktop_job_of(c)->exec, r->id, sizeof(desktop_job_of(c)->exec));
}

/* xdotool ignores keys that it does not know, and exits with 0. */
static int desktop_ignored(const struct head_tail *said)
{
	auto_buf struct buf text = { 0 };

	head_tail_text(said, "...", &text);
	return strstr(buf_str(&text), "No such key name") != NULL;
}

static void desktop_failed(struct tool_job *j, const json_t *record)
{
	json_int_t code = json_integer_value(json_object_get(record, "exit_code"));
	const char *summary = json_string_value(json_object_get(record, "summary"));
	auto_buf struct buf said = { 0 };

	head_tail_text(&j->out[1], "...", &said);
	while (said.len && (said.p[said.len - 1] == '\n' || said.p[said.len - 1] == ' '))
		buf_cut(&said, said.len - 1);
	if (code == NO_DESKTOP)
		tool_fail(j, "no_desktop", buf_str(&said), NULL, DESKTOP_HINT);
	else
		tool_fail(j, "failed", code ? summary : "the action had no effect", buf_str(&said),
			  NULL);
}

static void desktop_image(struct tool_job *j, struct desktop_job *d)
{
	uint32_t width, height;

	if (d->too_large)
		tool_fail(j, "too_large", "the screenshot has more than 8 MiB", NULL, NULL);
	else if (!desktop_png_size(d->out.p, d->out.len, &width, &height))
		tool_fail(j, "failed", "scrot of the box printed no PNG image", NULL, NULL);
	else
		tool_image(j,
			   json_pack("{s:i, s:i, s:I}", "width", (int)width, "height", (int)height,
				     "bytes", (json_int_t)d->out.len),
			   d->out.p, d->out.len, "a screenshot of %u x %u pixels", width, height);
}

static void desktop_over(struct call *c, json_t *take_record)
{
	struct tool_job *j = desktop_job_of(c);
	struct desktop_job *d = j->state;

	if (json_integer_value(json_object_get(take_record, "status")) != 0 ||
	    desktop_ignored(&j->out[1]))
		desktop_failed(j, take_record);
	else if (d->what.len)
		tool_say(j, json_pack("{s:s}", "exec", j->exec), "%s", buf_str(&d->what));
	else
		desktop_image(j, d);
	json_decref(take_record);
}

static const struct run_callbacks desktop_surface = { .over = desktop_over,
						      .started = desktop_started,
						      .said = desktop_said };

/* words: the program and its arguments. what: empty for a screenshot. */
static void desktop_run(struct tool_job *j, json_t *take_words, struct buf *take_what)
{
	struct desktop_job *d = call_alloc(j->call, sizeof(*d));
	struct box *b = tool_box(j);
	json_t *command = json_pack("[s, s, s, s]", "/bin/sh", "-c", desktop_script, "desktop"),
	       *body = json_pack("{s:o, s:i}", "command", command, "timeout_ms", DESKTOP_MS);

	*d = (struct desktop_job){ .what = *take_what };
	j->state = d;
	j->drop = desktop_drop;
	json_array_extend(command, take_words);
	json_decref(take_words);
	if (b)
		run_request_in(j->call, b,
			       &(struct run_request_spec){ .body = body,
							   .surface = &desktop_surface,
							   .kill_on_close = &j->kill_on_close });
	json_decref(body);
}

/* done -1: the words could not be made, for the reason in e. */
static void desktop_use(struct tool_job *j, int done, json_t *take_words, struct buf *take_what,
			const struct err *e)
{
	if (done == 0) {
		desktop_run(j, take_words, take_what);
		return;
	}
	json_decref(take_words);
	buf_fini(take_what);
	tool_fail(j, "invalid", e->msg, NULL, NULL);
}

static void desktop_act(struct tool_job *j, int (*add)(const json_t *args, json_t *words,
						       struct buf *what, struct err *e))
{
	json_t *words = json_pack("[s]", "xdotool");
	struct buf what = { 0 };
	struct err e;

	desktop_use(j, add(j->args, words, &what, &e), words, &what, &e);
}

void tool_click(struct tool_job *j)
{
	desktop_act(j, desktop_click);
}

void tool_double_click(struct tool_job *j)
{
	json_object_set_new(j->args, "count", json_integer(2));
	desktop_act(j, desktop_click);
}

void tool_move_mouse(struct tool_job *j)
{
	desktop_act(j, desktop_move);
}

void tool_drag_mouse(struct tool_job *j)
{
	desktop_act(j, desktop_drag);
}

void tool_scroll(struct tool_job *j)
{
	desktop_act(j, desktop_scroll);
}

void tool_type_text(struct tool_job *j)
{
	desktop_act(j, desktop_type);
}

void tool_press_keys(struct tool_job *j)
{
	desktop_act(j, desktop_keys);
}

void tool_screenshot(struct tool_job *j)
{
	struct buf none = { 0 };

	desktop_run(j, json_pack("[s]", "scrot"), &none);
}

void tool_open_url(struct tool_job *j)
{
	const char *url = tool_text(j, "url", "");
	struct buf what = { 0 };
	struct err e;
	int done = desktop_url(url, &e);

	buf_printf(&what, "a browser shows %s", url);
	desktop_use(j, done, json_pack("[s, s]", "xdg-open", url), &what, &e);
}

/* ---- Anthropic's computer tool ---- */

static void desktop_wait(struct tool_job *j, const json_t *args)
{
	struct buf what = { 0 };
	double s = json_number_value(json_object_get(args, "duration"));

	buf_printf(&what, "waited %.1f s", s);
	desktop_run(j, json_pack("[s, o]", "sleep", json_sprintf("%.2f", s)), &what);
}

void tool_computer(struct tool_job *j)
{
	const char *name;
	json_t *args;
	const struct tool *t;
	struct err e;

	if (desktop_computer(j->args, &name, &args, &e) < 0) {
		tool_fail(j, "invalid", e.msg, NULL, NULL);
		return;
	}
	t = name ? tool_named(name) : NULL;
	if (t && fields_check(args, t->fields, "", &e) < 0) {
		json_decref(args);
		tool_fail(j, "invalid", e.msg, NULL, NULL);
		return;
	}
	json_decref(j->args);
	j->args = args;
	if (t)
		t->run(j);
	else
		desktop_wait(j, args);
}

/* ---- fields ---- */

#define PLACE_FIELDS(required, help)                                                               \
	{ "x", FIELD_INT, required, 0, PLACE_MAX, "pixels from the left" help, NULL },             \
	{                                                                                          \
		"y", FIELD_INT, required, 0, PLACE_MAX, "pixels from the top" help, NULL           \
	}
#define WHERE_IT_IS "; without x and y: where the pointer is"

const struct field tool_screenshot_fields[] = { { 0 } };
const struct field tool_click_fields[] = {
	PLACE_FIELDS(0, WHERE_IT_IS),
	{ "button", FIELD_TEXT, 0, 0, 16, "left, middle or right (default left)", NULL },
	{ "count", FIELD_INT, 0, 1, 3, "2: a double click, 3: a triple click (default 1)", NULL },
	{ 0 },
};
const struct field tool_double_click_fields[] = { PLACE_FIELDS(0, WHERE_IT_IS), { 0 } };
const struct field tool_move_mouse_fields[] = { PLACE_FIELDS(1, ""), { 0 } };
const struct field tool_drag_mouse_fields[] = {
	{ "from_x", FIELD_INT, 1, 0, PLACE_MAX, "where the button is pressed", NULL },
	{ "from_y", FIELD_INT, 1, 0, PLACE_MAX, "where the button is pressed", NULL },
	{ "to_x", FIELD_INT, 1, 0, PLACE_MAX, "where the button is released", NULL },
	{ "to_y", FIELD_INT, 1, 0, PLACE_MAX, "where the button is released", NULL },
	{ 0 },
};
const struct field tool_scroll_fields[] = {
	{ "direction", FIELD_TEXT, 0, 0, 16, "up, down, left or right (default down)", NULL },
	{ "amount", FIELD_INT, 0, 1, 100, "clicks of the wheel (default 3)", NULL },
	PLACE_FIELDS(0, WHERE_IT_IS),
	{ 0 },
};
const struct field tool_type_text_fields[] = {
	{ "text", FIELD_TEXT, 1, 1, TYPE_MAX, "text for the window that has the focus", NULL },
	{ 0 },
};
const struct field tool_press_keys_fields[] = {
	{ "keys", FIELD_TEXT, 1, 1, DESKTOP_KEYS,
	  "a key or a combination, several with spaces between them: ctrl+l, Return, ctrl+a Delete",
	  NULL },
	{ 0 },
};
const struct field tool_open_url_fields[] = {
	{ "url", FIELD_TEXT, 1, 1, URL_MAX, "address of the page: https://..., file:///...", NULL },
	{ 0 },
};
const struct field tool_computer_fields[] = {
	{ "action", FIELD_TEXT, 1, 1, 32, "screenshot, left_click, type, key, scroll, ...", NULL },
	{ "coordinate", FIELD_ANY, 0, 0, 0, "[x, y]", NULL },
	{ "start_coordinate", FIELD_ANY, 0, 0, 0, "[x, y], for left_click_drag", NULL },
	{ "text", FIELD_TEXT, 0, 0, TYPE_MAX, "for type and key", NULL },
	{ "scroll_direction", FIELD_TEXT, 0, 0, 16, "up, down, left, right", NULL },
	{ "scroll_amount", FIELD_INT, 0, 0, 100, "clicks of the wheel", NULL },
	{ "duration", FIELD_ANY, 0, 0, 0, "seconds, for wait", NULL },
	{ 0 },
};
