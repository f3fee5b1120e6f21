/* format.c - see format.h. */
#include "webhook/format.h"
#include "base/quote.h"
#include "outbound/target.h"
#include "record/record.h"

#include <ctype.h>
#include <string.h>

int webhook_check_pattern(const char *pattern, struct err *e)
{
	size_t n = strlen(pattern);

	if (!n || n > STORE_WORD)
		return err_set(e, ERR_INVALID,
			       "'%.40s' is not an event; write it like run.ended or box.*",
			       pattern);
	for (const char *c = pattern; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-*", *c))
			return err_set(e, ERR_INVALID,
				       "'%.40s' is not an event: it has the character 0x%02x",
				       pattern, (unsigned char)*c);
	return 0;
}

int webhook_pattern_matches(const char *pattern, const char *type)
{
	const char *star = NULL, *from = NULL;

	while (*type) {
		if (*pattern == '*') {
			star = pattern++;
			from = type;
		} else if (*pattern == *type) {
			pattern++;
			type++;
		} else if (star) { /* the last * takes one character more */
			pattern = star + 1;
			type = ++from;
		} else {
			return 0;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

int webhook_wants(const json_t *events, const char *type)
{
	size_t n = json_array_size(events);

	for (size_t i = 0; i < n; i++) {
		const char *pattern = json_string_value(json_array_get(events, i));

		if (pattern && webhook_pattern_matches(pattern, type))
			return 1;
	}
	return 0;
}

int webhook_check_url(const char *url, struct err *e)
{
	struct outbound_target t;

	if (outbound_target_parse(&t, url, e) < 0)
		return -1;
	return t.mail ? err_set(e, ERR_INVALID, "'%.60s' is not a URL of http or https", url) : 0;
}

int webhook_check_secret(const char *secret, struct err *e)
{
	size_t n = strlen(secret);

	if (n < WEBHOOK_SECRET_MIN || n > WEBHOOK_SECRET)
		return err_set(e, ERR_INVALID, "the secret has %zu bytes; it needs %d to %d", n,
			       WEBHOOK_SECRET_MIN, WEBHOOK_SECRET);
	return 0;
}

static void format_text(struct buf *out, const char *member, const char *text)
{
	buf_puts(out, member);
	quote_json(out, text, strlen(text));
}

void webhook_event_text(struct buf *out, const struct store_event *ev)
{
	json_t *at = json_time((uint64_t)ev->at_ns);

	buf_printf(out, "{\"seq\":%lld", (long long)ev->seq);
	format_text(out, ",\"at\":", json_string_value(at));
	format_text(out, ",\"team\":", ev->team);
	format_text(out, ",\"box\":", ev->box);
	format_text(out, ",\"type\":", ev->type);
	buf_puts(out, ",\"data\":");
	buf_puts(out, ev->data && *ev->data ? ev->data : "{}");
	buf_putc(out, '}');
	json_decref(at);
}

int64_t webhook_next_attempt(int64_t queued_ns, unsigned attempts, int64_t now_ns)
{
	int64_t wait = attempts > 8 ? WEBHOOK_LONGEST_NS : WEBHOOK_FIRST_NS << (attempts - 1),
		last = queued_ns + WEBHOOK_TRIED_NS;

	wait = wait < WEBHOOK_LONGEST_NS ? wait : WEBHOOK_LONGEST_NS;
	if (now_ns >= last)
		return 0;
	return now_ns + wait < last ? now_ns + wait : last;
}
