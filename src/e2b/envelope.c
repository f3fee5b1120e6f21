/* envelope.c - see envelope.h. */
#include "e2b/envelope.h"

#include <string.h>

void envelope_head(uint8_t out[ENVELOPE], uint8_t flags, size_t n)
{
	out[0] = flags;
	out[1] = (uint8_t)(n >> 24);
	out[2] = (uint8_t)(n >> 16);
	out[3] = (uint8_t)(n >> 8);
	out[4] = (uint8_t)n;
}

static size_t envelope_length(const struct envelope *v)
{
	const uint8_t *p = v->head;

	return (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
}

static int envelope_refuse(const char **why, const char *text)
{
	*why = text;
	return -1;
}

static int check_head(const struct envelope *v, size_t most, const char **why)
{
	if (v->head[0] == ENVELOPE_COMPRESSED)
		return envelope_refuse(why, "compressed envelopes are not supported");
	if (v->head[0])
		return envelope_refuse(why, "the envelope has flags that are not known");
	if (envelope_length(v) > most)
		return envelope_refuse(why, "the envelope is too large");
	return 0;
}

static void envelope_move(const char **bytes, size_t *n, size_t taken)
{
	*bytes += taken;
	*n -= taken;
}

/* 1: the head is complete and valid. */
static int take_head(struct envelope *v, const char **bytes, size_t *n, size_t most,
		     const char **why)
{
	size_t want = ENVELOPE - v->have, got = want < *n ? want : *n;

	if (!want)
		return 1;
	memcpy(v->head + v->have, *bytes, got);
	v->have += (unsigned)got;
	envelope_move(bytes, n, got);
	if (v->have < ENVELOPE)
		return 0;
	return check_head(v, most, why) < 0 ? -1 : 1;
}

int envelope_take(struct envelope *v, const char **bytes, size_t *n, size_t most, const char **why)
{
	size_t want, got;
	int rc;

	if (v->whole) {
		v->whole = 0;
		v->have = 0;
		buf_cut(&v->body, 0);
	}
	if (!*n)
		return 0;
	rc = take_head(v, bytes, n, most, why);
	if (rc <= 0)
		return rc;
	want = envelope_length(v) - v->body.len;
	got = want < *n ? want : *n;
	buf_add(&v->body, *bytes, got);
	envelope_move(bytes, n, got);
	v->whole = got == want;
	return v->whole;
}

int envelope_is_open(const struct envelope *v)
{
	return v->have && !v->whole;
}

void envelope_fini(struct envelope *v)
{
	buf_fini(&v->body);
}
