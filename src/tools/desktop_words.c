/* desktop_words.c - see desktop_words.h. */
#include "tools/desktop_words.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SCROLL_USUAL = 3, TYPE_DELAY_MS = 12, OTHER_DELAY_MS = 150, WAIT_MOST_S = 60 };

static void desktop_add(json_t *words, const char *word)
{
	json_array_append_new(words, json_string(word));
}

static void desktop_add_number(json_t *words, json_int_t n)
{
	json_array_append_new(words, json_sprintf("%lld", (long long)n));
}

static const char *desktop_text(const json_t *args, const char *name, const char *otherwise)
{
	const char *v = json_string_value(json_object_get(args, name));

	return v ? v : otherwise;
}

/* ---- the mouse ---- */

/* Moves the pointer to the named members. --sync is not used: it waits forever if the pointer is already
 * there. */
static void desktop_add_move(const json_t *args, const char *x, const char *y, json_t *words)
{
	desktop_add(words, "mousemove");
	desktop_add_number(words, json_integer_value(json_object_get(args, x)));
	desktop_add_number(words, json_integer_value(json_object_get(args, y)));
}

/* The place of an action: both members or none. */
static int desktop_add_place(const json_t *args, json_t *words, struct buf *what, struct err *e)
{
	const json_t *x = json_object_get(args, "x"), *y = json_object_get(args, "y");

	if (!x != !y)
		return err_set(e, ERR_INVALID, "%s: is missing; give x and y, or neither",
			       x ? "y" : "x");
	if (!x)
		return 0;
	desktop_add_move(args, "x", "y", words);
	buf_printf(what, " at %lld,%lld", (long long)json_integer_value(x),
		   (long long)json_integer_value(y));
	return 0;
}

static int desktop_button(const char *name)
{
	static const char *const names[] = { "left", "middle", "right" };

	for (int i = 0; i < (int)ARRAY_LEN(names); i++)
		if (!strcmp(names[i], name))
			return i + 1;
	return 0;
}

int desktop_click(const json_t *args, json_t *words, struct buf *what, struct err *e)
{
	const json_t *count = json_object_get(args, "count");
	json_int_t n = json_is_integer(count) ? json_integer_value(count) : 1;
	const char *button = desktop_text(args, "button", "left");
	int number = desktop_button(button);

	if (!number)
		return err_set(e, ERR_INVALID, "button: '%.20s' is none of left, middle, right",
			       button);
	buf_printf(what, "clicked %s", button);
	if (desktop_add_place(args, words, what, e) < 0)
		return -1;
	if (n > 1)
		buf_printf(what, ", %lld times", (long long)n);
	desktop_add(words, "click");
	desktop_add(words, "--repeat");
	desktop_add_number(words, n);
	desktop_add(words, "--delay");
	desktop_add(words, "60");
	desktop_add_number(words, number);
	return 0;
}

int desktop_move(const json_t *args, json_t *words, struct buf *what, struct err *e)
{
	buf_puts(what, "the pointer is");
	return desktop_add_place(args, words, what, e);
}

int desktop_drag(const json_t *args, json_t *words, struct buf *what, struct err *e)
{
	(void)e;
	desktop_add_move(args, "from_x", "from_y", words);
	desktop_add(words, "mousedown");
	desktop_add(words, "1");
	desktop_add(words, "sleep"); /* programs ignore a motion without time */
	desktop_add(words, "0.1");
	desktop_add_move(args, "to_x", "to_y", words);
	desktop_add(words, "sleep");
	desktop_add(words, "0.1");
	desktop_add(words, "mouseup");
	desktop_add(words, "1");
	buf_printf(what, "dragged to %lld,%lld",
		   (long long)json_integer_value(json_object_get(args, "to_x")),
		   (long long)json_integer_value(json_object_get(args, "to_y")));
	return 0;
}

int desktop_scroll(const json_t *args, json_t *words, struct buf *what, struct err *e)
{
	static const char *const directions[] = { "up", "down", "left", "right" };
	const char *direction = desktop_text(args, "direction", "down");
	const json_t *amount = json_object_get(args, "amount");
	json_int_t n = json_is_integer(amount) ? json_integer_value(amount) : SCROLL_USUAL;
	unsigned i = 0;

	while (i < ARRAY_LEN(directions) && strcmp(directions[i], direction) != 0)
		i++;
	if (i == ARRAY_LEN(directions))
		return err_set(e, ERR_INVALID,
			       "direction: '%.20s' is none of up, down, left, right", direction);
	buf_printf(what, "scrolled %s by %lld", direction, (long long)n);
	if (desktop_add_place(args, words, what, e) < 0)
		return -1;
	desktop_add(words, "click");
	desktop_add(words, "--repeat");
	desktop_add_number(words, n);
	desktop_add(words, "--delay");
	desktop_add(words, "20");
	desktop_add_number(words, 4 + (json_int_t)i); /* the buttons of a wheel */
	return 0;
}

/* ---- the keyboard ---- */

static int desktop_is_ascii(char c)
{
	return (unsigned char)c < 0x80;
}

/* Characters that no key has are typed by a change of the keyboard's map, which programs need time to read. So
 * they are runs of their own. */
int desktop_type(const json_t *args, json_t *words, struct buf *what, struct err *e)
{
	const json_t *text = json_object_get(args, "text");
	const char *p = desktop_text(args, "text", "");

	if (!*p)
		return err_set(e, ERR_INVALID, "text: is empty");
	for (size_t n; *p; p += n) {
		int other = !desktop_is_ascii(*p);

		for (n = 1; p[n] && desktop_is_ascii(p[n]) != other;)
			n++;
		desktop_add(words, "type");
		desktop_add(words, "--delay");
		desktop_add_number(words, other ? OTHER_DELAY_MS : TYPE_DELAY_MS);
		desktop_add(words, "--args");
		desktop_add(words, "1");
		desktop_add(words, "--");
		json_array_append_new(words, json_stringn(p, n));
	}
	buf_printf(what, "typed %zu bytes", json_string_length(text));
	return 0;
}

/* Names that people and models use, and those of X. */
static const struct {
	const char *name, *keysym;
} desktop_key_names[] = {
	{ "alt", "alt" },
	{ "altgr", "ISO_Level3_Shift" },
	{ "arrowdown", "Down" },
	{ "arrowleft", "Left" },
	{ "arrowright", "Right" },
	{ "arrowup", "Up" },
	{ "backspace", "BackSpace" },
	{ "capslock", "Caps_Lock" },
	{ "cmd", "super" },
	{ "command", "super" },
	{ "control", "ctrl" },
	{ "ctrl", "ctrl" },
	{ "del", "Delete" },
	{ "delete", "Delete" },
	{ "down", "Down" },
	{ "end", "End" },
	{ "enter", "Return" },
	{ "esc", "Escape" },
	{ "escape", "Escape" },
	{ "home", "Home" },
	{ "ins", "Insert" },
	{ "insert", "Insert" },
	{ "left", "Left" },
	{ "menu", "Menu" },
	{ "meta", "meta" },
	{ "option", "alt" },
	{ "pagedown", "Page_Down" },
	{ "pageup", "Page_Up" },
	{ "pause", "Pause" },
	{ "pgdn", "Page_Down" },
	{ "pgup", "Page_Up" },
	{ "print", "Print" },
	{ "printscreen", "Print" },
	{ "return", "Return" },
	{ "right", "Right" },
	{ "shift", "shift" },
	{ "space", "space" },
	{ "super", "super" },
	{ "tab", "Tab" },
	{ "up", "Up" },
	{ "win", "super" },
	{ "windows", "super" },
};

/* The code point of the one character that the n bytes are; 0: more than one. */
static uint32_t desktop_one_character(const char *p, size_t n)
{
	const unsigned char *s = (const unsigned char *)p;
	uint32_t c = s[0];
	size_t need = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	if (need != n)
		return 0;
	if (n > 1)
		c &= 0x7fu >> n;
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

static int desktop_is_f_key(const char *p, size_t n)
{
	return (n == 2 || n == 3) && (p[0] == 'f' || p[0] == 'F') && p[1] >= '1' && p[1] <= '9' &&
	       (n == 2 || isdigit((unsigned char)p[2]));
}

/* One key of a combination: a name, a function key, one character, or a name of X. */
static int desktop_add_key(const char *p, size_t n, struct buf *out, struct err *e)
{
	char plain[24];
	size_t at = 0;
	uint32_t c = desktop_one_character(p, n);

	if (c && !isalnum((int)(c < 0x80 ? c : 0))) {
		buf_printf(out, "U%04X", c);
		return 0;
	}
	if (desktop_is_f_key(p, n)) {
		buf_printf(out, "F%.*s", (int)n - 1, p + 1);
		return 0;
	}
	for (size_t i = 0; i < n && at < sizeof(plain) - 1; i++)
		if (p[i] != '_')
			plain[at++] = (char)tolower((unsigned char)p[i]);
	plain[at] = 0;
	for (unsigned i = 0; i < ARRAY_LEN(desktop_key_names); i++)
		if (!strcmp(desktop_key_names[i].name, plain)) {
			buf_puts(out, desktop_key_names[i].keysym);
			return 0;
		}
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)p[i]) && p[i] != '_')
			return err_set(e, ERR_INVALID,
				       "keys: '%.*s' is not a key; for example ctrl+c, Return, F5",
				       (int)(n < 40 ? n : 40), p);
	buf_add(out, p, n); /* xdotool knows the names of X, and rejects others */
	return 0;
}

/* "ctrl+shift+t"; the last key may be a plus itself: "ctrl++". */
static int desktop_add_combination(const char *p, size_t n, json_t *words, struct err *e)
{
	auto_buf struct buf one = { 0 };

	for (size_t at = 0; at < n;) {
		const char *plus = memchr(p + at + 1, '+', n - at - 1);
		size_t len = plus ? (size_t)(plus - p) - at : n - at;

		if (one.len)
			buf_putc(&one, '+');
		if (desktop_add_key(p + at, len, &one, e) < 0)
			return -1;
		at += len;
		if (at < n && ++at == n)
			return err_set(e, ERR_INVALID, "keys: '%.*s' ends with a plus",
				       (int)(n < 40 ? n : 40), p);
	}
	desktop_add(words, buf_str(&one));
	return 0;
}

int desktop_keys(const json_t *args, json_t *words, struct buf *what, struct err *e)
{
	const char *p = desktop_text(args, "keys", "");
	size_t n;

	if (!p[strspn(p, " ")])
		return err_set(e, ERR_INVALID, "keys: is empty; for example ctrl+c, Return, F5");
	if (strlen(p) > DESKTOP_KEYS)
		return err_set(e, ERR_INVALID, "keys: %zu bytes, at most %d", strlen(p),
			       DESKTOP_KEYS);
	desktop_add(words, "key");
	buf_printf(what, "pressed %s", p);
	for (p += strspn(p, " "); *p; p += n + strspn(p + n, " ")) {
		n = strcspn(p, " ");
		if (desktop_add_combination(p, n, words, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- addresses and images ---- */

int desktop_url(const char *url, struct err *e)
{
	static const char *const begins[] = { "http://", "https://", "file:///",
					      "about:", "data:" };

	for (const char *p = url; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return err_set(
				e, ERR_INVALID,
				"url: has a space or control character at byte %zu; write %%20",
				(size_t)(p - url));
	for (unsigned i = 0; i < ARRAY_LEN(begins); i++)
		if (!strncasecmp(url, begins[i], strlen(begins[i])))
			return 0;
	return err_set(
		e, ERR_INVALID,
		"url: '%.60s' begins with none of http://, https://, file:///, about:, data:", url);
}

static uint32_t desktop_be32(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

int desktop_png_size(const char *bytes, size_t n, uint32_t *out_width, uint32_t *out_height)
{
	static const char head[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

	if (n < 24 || memcmp(bytes, head, 16) != 0)
		return 0;
	*out_width = desktop_be32(bytes + 16);
	*out_height = desktop_be32(bytes + 20);
	return *out_width && *out_height;
}

/* ---- Anthropic's computer tool ---- */

enum desktop_needs { NO_PLACE, MAY_PLACE, MUST_PLACE };

static const struct {
	const char *action, *tool, *button;
	int count; /* of clicks; 0: no click */
	enum desktop_needs place;
} desktop_actions[] = {
	{ "screenshot", "screenshot", NULL, 0, NO_PLACE },
	{ "left_click", "click", "left", 1, MAY_PLACE },
	{ "right_click", "click", "right", 1, MAY_PLACE },
	{ "middle_click", "click", "middle", 1, MAY_PLACE },
	{ "double_click", "click", "left", 2, MAY_PLACE },
	{ "triple_click", "click", "left", 3, MAY_PLACE },
	{ "mouse_move", "move_mouse", NULL, 0, MUST_PLACE },
	{ "left_click_drag", "drag_mouse", NULL, 0, MUST_PLACE },
	{ "scroll", "scroll", NULL, 0, MAY_PLACE },
	{ "type", "type_text", NULL, 0, NO_PLACE },
	{ "key", "press_keys", NULL, 0, NO_PLACE },
	{ "wait", NULL, NULL, 0, NO_PLACE },
};

static int desktop_pair(const json_t *args, const char *name, json_t *to, const char *x,
			const char *y, struct err *e)
{
	const json_t *at = json_object_get(args, name);

	if (json_array_size(at) != 2 || !json_is_integer(json_array_get(at, 0)) ||
	    !json_is_integer(json_array_get(at, 1)))
		return err_set(e, ERR_INVALID, "%s: must be [x, y]", name);
	json_object_set(to, x, json_array_get(at, 0));
	json_object_set(to, y, json_array_get(at, 1));
	return 0;
}

static void desktop_copy(const json_t *args, const char *from, json_t *to, const char *name)
{
	json_t *v = json_object_get(args, from);

	if (v && !json_is_null(v))
		json_object_set(to, name, v);
}

/* Members that only some actions have. */
static int desktop_fill_members(const json_t *args, unsigned row, json_t *to, struct err *e)
{
	const char *tool = desktop_actions[row].tool;
	double wait = json_number_value(json_object_get(args, "duration"));
	int keys = tool && !strcmp(tool, "press_keys"), type = tool && !strcmp(tool, "type_text");

	if (!tool && !(wait >= 0 && wait <= WAIT_MOST_S))
		return err_set(e, ERR_INVALID, "duration: must be 0 to %d seconds", WAIT_MOST_S);
	if (!tool)
		desktop_copy(args, "duration", to, "duration");
	if (keys || type)
		desktop_copy(args, "text", to, keys ? "keys" : "text");
	else if (json_string_length(json_object_get(args, "text")))
		return err_set(e, ERR_INVALID,
			       "text: keys cannot be held during '%s'; only type and key have text",
			       desktop_actions[row].action);
	if (tool && !strcmp(tool, "scroll")) {
		desktop_copy(args, "scroll_direction", to, "direction");
		desktop_copy(args, "scroll_amount", to, "amount");
	}
	if (desktop_actions[row].button)
		json_object_set_new(to, "button", json_string(desktop_actions[row].button));
	if (desktop_actions[row].count)
		json_object_set_new(to, "count", json_integer(desktop_actions[row].count));
	return 0;
}

static int desktop_fill(const json_t *args, unsigned row, json_t *to, struct err *e)
{
	const char *tool = desktop_actions[row].tool;
	int drag = tool && !strcmp(tool, "drag_mouse");

	if (desktop_fill_members(args, row, to, e) < 0)
		return -1;
	if (drag && desktop_pair(args, "start_coordinate", to, "from_x", "from_y", e) < 0)
		return -1;
	if (desktop_actions[row].place == NO_PLACE ||
	    (desktop_actions[row].place == MAY_PLACE && !json_object_get(args, "coordinate")))
		return 0;
	return desktop_pair(args, "coordinate", to, drag ? "to_x" : "x", drag ? "to_y" : "y", e);
}

int desktop_computer(const json_t *args, const char **out_tool, json_t **out_args, struct err *e)
{
	const char *action = desktop_text(args, "action", "");
	unsigned i = 0;

	while (i < ARRAY_LEN(desktop_actions) && strcmp(desktop_actions[i].action, action) != 0)
		i++;
	if (i == ARRAY_LEN(desktop_actions))
		return err_set(e, ERR_INVALID,
			       "action: '%.30s' is none of screenshot, left_click, right_click, "
			       "middle_click, double_click, triple_click, mouse_move, "
			       "left_click_drag, scroll, type, key, wait",
			       action);
	*out_args = json_object();
	if (desktop_fill(args, i, *out_args, e) < 0) {
		json_decref(*out_args);
		return -1;
	}
	*out_tool = desktop_actions[i].tool;
	return 0;
}
