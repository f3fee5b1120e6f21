/* tap.h - a test file is a list of sentences that should be true.
 *
 *	#include "tap.h"
 *
 *	TEST(an_empty_buffer_is_an_empty_string)
 *	{
 *		struct buf b = { 0 };
 *
 *		CHECK_STR(buf_str(&b), "");
 *	}
 *
 * That is the whole file: main() is here. It runs the tests in the order written and prints TAP,
 * with the underscores read as spaces. A CHECK that does not hold ends its test; the next one
 * still runs. SKIP("why") counts as skipped, so say why. */
#pragma once
#include <stdio.h>
#include <string.h>

struct tap_test {
	const char *name;
	void (*run)(void);
	struct tap_test *next;
};

enum tap_result { TAP_OK, TAP_NOT_OK, TAP_SKIPPED };

static struct tap_test *tap_first, **tap_last = &tap_first;
static enum tap_result tap_now;
static const char *tap_why = "";
static int tap_argc __attribute__((unused)); /* what main() got, for tests of other programs */
static char **tap_argv __attribute__((unused));

#define TEST(name)                                                                                 \
	static void name(void);                                                                    \
	static struct tap_test tap_##name = { #name, name, NULL };                                 \
	__attribute__((constructor)) static void tap_add_##name(void)                              \
	{                                                                                          \
		*tap_last = &tap_##name;                                                           \
		tap_last = &tap_##name.next;                                                       \
	}                                                                                          \
	static void name(void)

#define CHECK(so)                                                                                  \
	do {                                                                                       \
		if (!(so)) {                                                                       \
			printf("# %s:%d: not so: %s\n", __FILE__, __LINE__, #so);                  \
			tap_now = TAP_NOT_OK;                                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)

#define CHECK_INT(got, want)                                                                       \
	do {                                                                                       \
		long long got_ = (long long)(got), want_ = (long long)(want);                      \
		if (got_ != want_) {                                                               \
			printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_,  \
			       want_);                                                             \
			tap_now = TAP_NOT_OK;                                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)

#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *got_ = (got), *want_ = (want);                                         \
		if (!got_ || strcmp(got_, want_) != 0) {                                           \
			printf("# %s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #got,    \
			       got_ ? got_ : "(null)", want_);                                     \
			tap_now = TAP_NOT_OK;                                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)

#define SKIP(why)                                                                                  \
	do {                                                                                       \
		tap_why = (why);                                                                   \
		tap_now = TAP_SKIPPED;                                                             \
		return;                                                                            \
	} while (0)

static void tap_say(int number, const char *name)
{
	printf("%s %d - ", tap_now == TAP_NOT_OK ? "not ok" : "ok", number);
	for (; *name; name++)
		putchar(*name == '_' ? ' ' : *name);
	if (tap_now == TAP_SKIPPED)
		printf(" # SKIP %s", tap_why);
	putchar('\n');
}

int main(int argc, char **argv)
{
	int count = 0, failed = 0;

	tap_argc = argc;
	tap_argv = argv;
	/* Line-buffered, so that a crash loses no output, and a fork does not repeat any. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct tap_test *t = tap_first; t; t = t->next)
		count++;
	printf("1..%d\n", count);
	count = 0;
	for (struct tap_test *t = tap_first; t; t = t->next) {
		tap_now = TAP_OK;
		t->run();
		tap_say(++count, t->name);
		failed += tap_now == TAP_NOT_OK;
	}
	return failed ? 1 : 0;
}
