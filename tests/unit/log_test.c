/* log_test.c - a log line is one line for any value, and has no secrets. */
#include "base/log.h"
#include "base/cleanup.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>

#define KEY "e2b_0123456789abcdef0123456789abcdef01234567"
#define NOON UINT64_C(1794657600123456789)

static const char *line(enum log_form form, const char *msg, const struct log_field *fields)
{
	static char out[LOG_LINE + 1];
	size_t n = log_line(out, form, LEVEL_INFO, NOON, msg, fields);

	out[n] = 0;
	return out;
}
#define JSON(msg, ...) line(LOG_JSON, msg, (struct log_field[]){ __VA_ARGS__ __VA_OPT__(, ){ 0 } })
#define PLAIN(msg, ...) line(LOG_TEXT, msg, (struct log_field[]){ __VA_ARGS__ __VA_OPT__(, ){ 0 } })

/* One field with this text after serialisation to JSON and parsing. */
static const char *told(const char *text, size_t n)
{
	static json_t *doc;
	json_error_t e;

	json_decref(doc);
	doc = json_loads(JSON("m", LOG_B("f", text, n)), JSON_ALLOW_NUL, &e);
	return doc ? json_string_value(json_object_get(doc, "f")) : "no JSON";
}

TEST(a_line_is_one_json_object_with_typed_fields)
{
	CHECK_STR(JSON("box made", LOG_S("box", "k3v7"), LOG_U("us", 812), LOG_I("d", -1),
		       LOG_T("ok", 1), LOG_S("none", NULL)),
		  "{\"ts\":\"2026-11-14T12:00:00.123Z\",\"level\":\"info\",\"msg\":\"box made\","
		  "\"box\":\"k3v7\",\"us\":812,\"d\":-1,\"ok\":true}\n");
	CHECK_STR(JSON("m"),
		  "{\"ts\":\"2026-11-14T12:00:00.123Z\",\"level\":\"info\",\"msg\":\"m\"}\n");
}

TEST(a_text_line_quotes_values_when_needed)
{
	CHECK_STR(PLAIN("box made", LOG_S("box", "k3v7"), LOG_S("cmd", "a b"), LOG_S("e", ""),
			LOG_U("n", 1)),
		  "2026-11-14T12:00:00.123Z info box made box=k3v7 cmd=\"a b\" e=\"\" n=1\n");
	CHECK_STR(PLAIN("m", LOG_S("x", "a\nb=c")),
		  "2026-11-14T12:00:00.123Z info m x=\"a\\nb=c\"\n");
}

TEST(control_characters_and_newlines_are_escaped_in_values)
{
	CHECK_STR(told("a\"b\\c\nd\re\tf", 11), "a\"b\\c\nd\re\tf");
	CHECK_STR(told("\x1b[31m\x7f\x01", 7), "\x1b[31m\x7f\x01");
	CHECK(!strchr(JSON("m", LOG_S("f", "\x1b[31m")), '\x1b'));
	CHECK_STR(told("caf\xc3\xa9 \xf0\x9f\x98\x80", 10), "caf\xc3\xa9 \xf0\x9f\x98\x80");
	CHECK_STR(told("\xff", 1), "\xef\xbf\xbd");
	CHECK_STR(told("\xc3", 1), "\xef\xbf\xbd");
	CHECK_STR(told("\xc0\xaf", 2), "\xef\xbf\xbd\xef\xbf\xbd");
	CHECK_STR(told("\xed\xa0\x80", 3), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	CHECK_STR(told("\xc2\x9b", 2), "\xef\xbf\xbd\xef\xbf\xbd"); /* CSI in one character */
	CHECK(strstr(JSON("m", LOG_B("f", "a\0b", 3)), "a\\u0000b"));
	CHECK_STR(told("", 0), "");
}

TEST(no_log_line_is_longer_than_an_atomic_pipe_write)
{
	static char big[9000];
	struct log_field many[12];
	json_error_t e;
	json_t *doc;
	const char *text;

	memset(big, '\1', sizeof(big)); /* six bytes each when escaped */
	for (unsigned i = 0; i < 11; i++)
		many[i] = LOG_B("field", big, sizeof(big));
	many[10] = LOG_U("last", 7);
	many[11] = (struct log_field){ 0 };
	text = line(LOG_JSON, big, many);
	CHECK(strlen(text) <= LOG_LINE);
	doc = json_loads(text, 0, &e);
	CHECK(doc && json_is_true(json_object_get(doc, "cut")));
	CHECK_INT(json_integer_value(json_object_get(doc, "last")), 7);
	json_decref(doc);
	memset(big, 'x', sizeof(big));
	CHECK_INT(strlen(told(big, sizeof(big))), LOG_VALUE + 3);
	for (unsigned n = 0; n < sizeof(big); n += 7) {
		text = JSON("m", LOG_B("a", big, n % 1100), LOG_B("b", big, n % 1300),
			    LOG_B("c", big, n), LOG_B("d", big, n), LOG_B("e", big, n % 1000));
		CHECK(strlen(text) <= LOG_LINE && text[strlen(text) - 1] == '\n');
		CHECK(strstr(text, "}\n"));
	}
}

TEST(keys_and_credentials_are_redacted)
{
	static char edge[LOG_VALUE + 100];

	CHECK_STR(told(KEY, strlen(KEY)), "***");
	CHECK_STR(told("key " KEY " of", strlen(KEY) + 7), "key *** of");
	CHECK_STR(told("key." KEY, strlen(KEY) + 4), "key.***");
	CHECK_STR(told("e2b_0123", 8), "e2b_0123"); /* a prefix may be shown: it names the key */
	CHECK_STR(told("Authorization: Bearer abc.def\r\nHost: x", 38),
		  "Authorization: ***\r\nHost: x");
	CHECK_STR(told("authorization=abc", 17), "authorization=***");
	CHECK_STR(told("{\"X-API-Key\": \"abc\", \"a\": 1}", 28),
		  "{\"X-API-Key\": \"***\", \"a\": 1}");
	CHECK_STR(told("sent Bearer abc", 15), "sent Bearer ***");
	CHECK_STR(told("authorization failed", 20), "authorization ***"); /* rather too much */
	CHECK_STR(told("authorization", 13), "authorization");
	CHECK(strstr(JSON("m", LOG_S("token", "abc")), "\"token\":\"***\""));
	CHECK(strstr(JSON("used " KEY), "used ***"));
	/* A secret that starts where the value is cut must not be printed partly. */
	memset(edge, 'x', sizeof(edge));
	memcpy(edge + LOG_VALUE - 20, KEY, strlen(KEY));
	CHECK(!strstr(told(edge, sizeof(edge)), "e2b_"));
}

TEST(a_registered_secret_is_redacted)
{
	CHECK_STR(told("hunter22 and more", 17), "hunter22 and more");
	log_secret("hunter22");
	log_secret("hunter22");
	log_secret("x"); /* would hide everything */
	CHECK_STR(told("hunter22 and xx hunter22", 24), "*** and xx ***");
	for (unsigned i = 0; i < 100; i++) {
		char more[16];

		snprintf(more, sizeof(more), "secret-%u", i);
		log_secret(more);
	}
	log_forget_secrets();
	CHECK_STR(told("hunter22", 8), "hunter22");
}

TEST(a_line_below_the_level_is_not_written)
{
	int ends[2];
	char got[LOG_LINE + 1];
	ssize_t n;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	log_setup(ends[1], LOG_JSON, (enum log_level)log_level_of("warn"));
	log_info("no");
	log_debug("no", LOG_U("n", 1));
	errno = ENOSPC;
	log_error("yes", LOG_U("n", 1));
	CHECK_INT(errno, ENOSPC);
	n = read(ends[0], got, sizeof(got) - 1);
	CHECK(n > 0);
	got[n] = 0;
	CHECK(strstr(got, "\"level\":\"error\",\"msg\":\"yes\",\"n\":1}\n") && !strstr(got, "no"));
	log_setup(ends[1], LOG_JSON, LEVEL_NONE);
	log_error("no");
	log_setup(2, LOG_TEXT, LEVEL_INFO);
	CHECK_INT(log_level_of("loud"), -1);
	close(ends[0]);
	close(ends[1]);
}

TEST(a_blocked_reader_loses_lines_and_their_number_is_logged)
{
	static char got[1 << 20];
	int ends[2];
	ssize_t n;
	uint64_t lost;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0); /* its write end blocks, as a stderr does */
	log_setup(ends[1], LOG_JSON, LEVEL_INFO);
	for (unsigned i = 0; i < 5000; i++)
		log_info("into a full pipe", LOG_U("i", i));
	lost = log_lost();
	CHECK(lost > 0 && lost < 5000);
	while (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && read(ends[0], got, sizeof(got)) > 0)
		;
	log_info("back");
	n = read(ends[0], got, sizeof(got) - 1);
	CHECK(n > 0);
	got[n] = 0;
	snprintf(got + n + 1, 64, "\"lost\":%llu}\n", (unsigned long long)lost);
	CHECK(strstr(got, got + n + 1) && strstr(got, "\"msg\":\"back\"}\n"));
	CHECK_INT(log_lost(), 0);
	/* Without a reader and without a descriptor, logging has no effect on the caller. */
	close(ends[0]);
	log_info("unread");
	close(ends[1]);
	log_setup(-1, LOG_JSON, LEVEL_INFO);
	log_info("nowhere");
	log_setup(2, LOG_TEXT, LEVEL_INFO);
}
