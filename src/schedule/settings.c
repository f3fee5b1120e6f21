/* settings.c - see settings.h. */
#include "schedule/settings.h"

#include <string.h>

static const char *const settings_overlaps[] = { "skip", "queue", "replace" };
static const char *const settings_catch_ups[] = { "none", "one", "all" };

void schedule_settings_default(struct schedule_settings *s)
{
	*s = (struct schedule_settings){ .catch_up = CATCH_UP_ONE,
					 .catch_up_max = 10,
					 .retry_ms = SCHEDULE_RETRY_MS };
}

static int settings_word(const json_t *doc, const char *field, const char *const *words, unsigned n,
			 unsigned *out, struct err *e)
{
	const json_t *v = json_object_get(doc, field);
	const char *text = json_string_value(v);

	if (!v)
		return 0;
	for (unsigned i = 0; text && i < n; i++)
		if (!strcmp(words[i], text)) {
			*out = i;
			return 0;
		}
	return err_set(e, ERR_INVALID, "%s: there is no '%.20s'; type %s, %s or %s", field,
		       text ? text : "", words[0], words[1], words[2]);
}

static int settings_number(const json_t *doc, const char *field, uint64_t least, uint64_t most,
			   uint64_t *out, struct err *e)
{
	const json_t *v = json_object_get(doc, field);
	json_int_t n = json_integer_value(v);

	if (!v)
		return 0;
	if (!json_is_integer(v) || n < 0 || (uint64_t)n < least || (uint64_t)n > most)
		return err_set(e, ERR_INVALID, "%s: must be a number from %llu to %llu", field,
			       (unsigned long long)least, (unsigned long long)most);
	*out = (uint64_t)n;
	return 0;
}

int schedule_settings_read(struct schedule_settings *s, const json_t *doc, struct err *e)
{
	unsigned overlap = s->overlap, catch_up = s->catch_up;
	uint64_t most = s->catch_up_max, jitter = s->jitter_ms, retries = s->retries,
		 retry = s->retry_ms, timeout = s->timeout_ms;

	if (settings_word(doc, "overlap", settings_overlaps, OVERLAPS, &overlap, e) < 0 ||
	    settings_word(doc, "catch_up", settings_catch_ups, CATCH_UPS, &catch_up, e) < 0 ||
	    settings_number(doc, "catch_up_max", 1, CATCH_UP_MAX, &most, e) < 0 ||
	    settings_number(doc, "jitter_ms", 0, SCHEDULE_JITTER_MAX_MS, &jitter, e) < 0 ||
	    settings_number(doc, "retries", 0, SCHEDULE_RETRIES_MAX, &retries, e) < 0 ||
	    settings_number(doc, "retry_ms", 1, SCHEDULE_RETRY_MAX_MS, &retry, e) < 0 ||
	    settings_number(doc, "timeout_ms", 0, UINT32_MAX, &timeout, e) < 0)
		return -1;
	*s = (struct schedule_settings){ .overlap = (enum schedule_overlap)overlap,
					 .catch_up = (enum schedule_catch_up)catch_up,
					 .catch_up_max = (unsigned)most,
					 .jitter_ms = (uint32_t)jitter,
					 .retries = (unsigned)retries,
					 .retry_ms = (uint32_t)retry,
					 .timeout_ms = timeout };
	return 0;
}

json_t *schedule_settings_json(const struct schedule_settings *s)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "overlap",
			 settings_overlaps[s->overlap], "catch_up", settings_catch_ups[s->catch_up],
			 "catch_up_max", (json_int_t)s->catch_up_max, "jitter_ms",
			 (json_int_t)s->jitter_ms, "retries", (json_int_t)s->retries, "retry_ms",
			 (json_int_t)s->retry_ms, "timeout_ms", (json_int_t)s->timeout_ms);
}

uint32_t schedule_jitter_ms(const struct schedule_settings *s, const char *id, int64_t at_ns)
{
	uint64_t hash = 14695981039346656037u ^ (uint64_t)at_ns;

	if (!s->jitter_ms)
		return 0;
	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 1099511628211u;
	hash ^= hash >> 29;
	hash *= 0x9e3779b97f4a7c15u;
	return (uint32_t)((hash >> 32) % ((uint64_t)s->jitter_ms + 1));
}

uint64_t schedule_retry_ms(const struct schedule_settings *s, unsigned attempt)
{
	uint64_t ms = s->retry_ms;

	for (unsigned i = 1; i < attempt && ms < SCHEDULE_RETRY_MAX_MS; i++)
		ms *= 2;
	return ms < SCHEDULE_RETRY_MAX_MS ? ms : SCHEDULE_RETRY_MAX_MS;
}
