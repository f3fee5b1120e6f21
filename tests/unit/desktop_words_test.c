/* desktop_words_test.c - the words of xdotool for the tools of a desktop. */
#include "tools/desktop_words.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct err e;
static struct buf what;

typedef int (*add)(const json_t *args, json_t *words, struct buf *what, struct err *e);

/* The words with spaces between them; NULL: the arguments were rejected. */
static const char *words_of(add f, const char *args)
{
	static char text[2048];
	json_t *doc = json_loads(args, 0, NULL), *words = json_array(), *one;
	size_t i, n = 0;
	int done;

	buf_fini(&what);
	done = f(doc, words, &what, &e);
	text[0] = 0;
	json_array_foreach(words, i, one) n += (size_t)snprintf(
		text + n, sizeof(text) - n, "%s%s", i ? " " : "", json_string_value(one));
	json_decref(words);
	json_decref(doc);
	return done == 0 ? text : NULL;
}

TEST(a_click_has_a_place_a_button_and_a_count)
{
	CHECK_STR(words_of(desktop_click, "{}"), "click --repeat 1 --delay 60 1");
	CHECK_STR(words_of(desktop_click, "{\"x\":3,\"y\":4,\"button\":\"right\",\"count\":2}"),
		  "mousemove 3 4 click --repeat 2 --delay 60 3");
	CHECK_STR(buf_str(&what), "clicked right at 3,4, 2 times");
	CHECK(!words_of(desktop_click, "{\"x\":3}"));
	CHECK_STR(e.msg, "y: is missing; give x and y, or neither");
	CHECK(!words_of(desktop_click, "{\"button\":\"-4\"}"));
	CHECK_STR(e.msg, "button: '-4' is none of left, middle, right");
}

TEST(motions_and_the_wheel_are_words_of_one_command)
{
	CHECK_STR(words_of(desktop_move, "{\"x\":0,\"y\":9}"), "mousemove 0 9");
	CHECK_STR(words_of(desktop_drag, "{\"from_x\":1,\"from_y\":2,\"to_x\":3,\"to_y\":4}"),
		  "mousemove 1 2 mousedown 1 sleep 0.1 mousemove 3 4 sleep 0.1 mouseup 1");
	CHECK_STR(words_of(desktop_scroll, "{}"), "click --repeat 3 --delay 20 5");
	CHECK_STR(words_of(desktop_scroll, "{\"direction\":\"left\",\"amount\":7,\"x\":1,\"y\":2}"),
		  "mousemove 1 2 click --repeat 7 --delay 20 6");
	CHECK(!words_of(desktop_scroll, "{\"direction\":\"north\"}"));
	CHECK_STR(e.msg, "direction: 'north' is none of up, down, left, right");
}

TEST(text_is_one_word_and_no_option)
{
	CHECK_STR(words_of(desktop_type, "{\"text\":\"--help; rm -rf $HOME\\n\"}"),
		  "type --delay 12 --args 1 -- --help; rm -rf $HOME\n");
	CHECK_STR(words_of(desktop_type, "{\"text\":\"a\u00e9\u20acb\"}"),
		  "type --delay 12 --args 1 -- a type --delay 150 --args 1 -- \xc3\xa9\xe2\x82\xac "
		  "type --delay 12 --args 1 -- b");
	CHECK(!words_of(desktop_type, "{\"text\":\"\"}"));
	CHECK_STR(e.msg, "text: is empty");
}

TEST(keys_have_the_names_of_people_of_models_and_of_x)
{
	CHECK_STR(words_of(desktop_keys, "{\"keys\":\"ctrl+shift+t\"}"), "key ctrl+shift+t");
	CHECK_STR(words_of(desktop_keys, "{\"keys\":\"Control+a delete\"}"), "key ctrl+a Delete");
	CHECK_STR(words_of(desktop_keys, "{\"keys\":\" enter  page_down Page_Down PgUp \"}"),
		  "key Return Page_Down Page_Down Page_Up");
	CHECK_STR(words_of(desktop_keys, "{\"keys\":\"f5 F12 A 7 ISO_Left_Tab XF86Back\"}"),
		  "key F5 F12 A 7 ISO_Left_Tab XF86Back");
	CHECK_STR(words_of(desktop_keys, "{\"keys\":\"cmd+, / ctrl++ + \\u00e9 \\u20ac\"}"),
		  "key super+U002C U002F ctrl+U002B U002B U00E9 U20AC");
	CHECK_STR(words_of(desktop_keys, "{\"keys\":\"-\"}"), "key U002D");
}

TEST(invalid_keys_are_rejected_with_the_key)
{
	CHECK(!words_of(desktop_keys, "{\"keys\":\"  \"}"));
	CHECK_STR(e.msg, "keys: is empty; for example ctrl+c, Return, F5");
	CHECK(!words_of(desktop_keys, "{\"keys\":\"--window\"}"));
	CHECK_STR(e.msg, "keys: '--window' is not a key; for example ctrl+c, Return, F5");
	CHECK(!words_of(desktop_keys, "{\"keys\":\"ctrl+\"}"));
	CHECK_STR(e.msg, "keys: 'ctrl+' ends with a plus");
	CHECK(!words_of(desktop_keys, "{\"keys\":\"a;b\"}"));
}

TEST(an_address_has_a_known_beginning_and_no_spaces)
{
	CHECK_INT(desktop_url("https://example.org/a?b=c#d", &e), 0);
	CHECK_INT(desktop_url("FILE:///home/user/a.html", &e), 0);
	CHECK_INT(desktop_url("about:blank", &e), 0);
	CHECK_INT(desktop_url("--no-sandbox", &e), -1);
	CHECK_STR(
		e.msg,
		"url: '--no-sandbox' begins with none of http://, https://, file:///, about:, data:");
	CHECK_INT(desktop_url("http://a b", &e), -1);
	CHECK_STR(e.msg, "url: has a space or control character at byte 8; write %20");
	CHECK_INT(desktop_url("javascript:alert(1)", &e), -1);
	CHECK_INT(desktop_url("", &e), -1);
}

TEST(a_screenshot_must_be_a_png_with_a_size)
{
	static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\4\0\0\0\3\0\10\2\0\0\0";
	uint32_t w = 0, h = 0;

	CHECK(desktop_png_size(png, sizeof(png) - 1, &w, &h));
	CHECK_INT(w, 1024);
	CHECK_INT(h, 768);
	CHECK(!desktop_png_size(png, 23, &w, &h));
	CHECK(!desktop_png_size("GIF89a..................", 24, &w, &h));
	CHECK(!desktop_png_size("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\3\0", 24, &w, &h));
}

static const char *computer(const char *args)
{
	static char text[400];
	json_t *doc = json_loads(args, 0, NULL), *out = NULL;
	const char *tool = NULL;
	char *dump;

	text[0] = 0;
	if (desktop_computer(doc, &tool, &out, &e) == 0) {
		dump = json_dumps(out, JSON_SORT_KEYS | JSON_COMPACT);
		snprintf(text, sizeof(text), "%s %s", tool ? tool : "-", dump);
		free(dump);
		json_decref(out);
	}
	json_decref(doc);
	return text;
}

TEST(actions_of_anthropics_computer_tool_are_tools)
{
	CHECK_STR(computer("{\"action\":\"screenshot\"}"), "screenshot {}");
	CHECK_STR(computer("{\"action\":\"double_click\",\"coordinate\":[1,2]}"),
		  "click {\"button\":\"left\",\"count\":2,\"x\":1,\"y\":2}");
	CHECK_STR(computer("{\"action\":\"right_click\"}"),
		  "click {\"button\":\"right\",\"count\":1}");
	CHECK_STR(
		computer(
			"{\"action\":\"left_click_drag\",\"start_coordinate\":[1,2],\"coordinate\":[3,4]}"),
		"drag_mouse {\"from_x\":1,\"from_y\":2,\"to_x\":3,\"to_y\":4}");
	CHECK_STR(computer("{\"action\":\"key\",\"text\":\"ctrl+s\"}"),
		  "press_keys {\"keys\":\"ctrl+s\"}");
	CHECK_STR(computer("{\"action\":\"type\",\"text\":\"a\"}"), "type_text {\"text\":\"a\"}");
	CHECK_STR(
		computer(
			"{\"action\":\"scroll\",\"coordinate\":[5,6],\"scroll_direction\":\"up\",\"scroll_amount\":4}"),
		"scroll {\"amount\":4,\"direction\":\"up\",\"x\":5,\"y\":6}");
	CHECK_STR(computer("{\"action\":\"wait\",\"duration\":0.5}"), "- {\"duration\":0.5}");
}

TEST(invalid_actions_of_the_computer_tool_are_named)
{
	CHECK_STR(computer("{\"action\":\"zoom\"}"), "");
	CHECK(strstr(e.msg, "action: 'zoom' is none of screenshot, left_click"));
	CHECK_STR(computer("{\"action\":\"mouse_move\"}"), "");
	CHECK_STR(e.msg, "coordinate: must be [x, y]");
	CHECK_STR(computer("{\"action\":\"left_click\",\"coordinate\":[1,\"2\"]}"), "");
	CHECK_STR(computer("{\"action\":\"wait\",\"duration\":-1}"), "");
	CHECK_STR(e.msg, "duration: must be 0 to 60 seconds");
	CHECK_STR(computer("{\"action\":\"left_click\",\"text\":\"shift\"}"), "");
	CHECK_STR(e.msg,
		  "text: keys cannot be held during 'left_click'; only type and key have text");
}
