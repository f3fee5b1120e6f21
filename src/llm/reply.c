/* reply.c - see reply.h. */
#include "llm/reply.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *stop_name(enum stop s)
{
	static const char *const names[] = {
		[STOP_NONE] = "",       [STOP_END] = "end",         [STOP_LENGTH] = "length",
		[STOP_TOOLS] = "tools", [STOP_REFUSAL] = "refusal", [STOP_FILTER] = "filter",
	};

	return names[s];
}

void usage_add(struct usage *to, const struct usage *u)
{
	to->calls += u->calls;
	to->in += u->in;
	to->out += u->out;
	to->cache_read += u->cache_read;
	to->cache_write += u->cache_write;
	to->cost += u->cost;
	to->estimated |= u->estimated;
}

json_t *usage_json(const struct usage *u)
{
	json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f}", "calls", (json_int_t)u->calls, "in",
			      (json_int_t)u->in, "out", (json_int_t)u->out, "cache_read",
			      (json_int_t)u->cache_read, "cache_write", (json_int_t)u->cache_write,
			      "cost", u->cost);

	if (u->estimated)
		json_object_set_new(j, "estimated", json_true());
	return j;
}

static uint64_t reply_member(const json_t *u, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(u, name));

	return n > 0 ? (uint64_t)n : 0;
}

void usage_add_json(struct usage *to, const json_t *u)
{
	to->calls += json_is_integer(json_object_get(u, "calls")) ? reply_member(u, "calls") : 1;
	to->in += reply_member(u, "in");
	to->out += reply_member(u, "out");
	to->cache_read += reply_member(u, "cache_read");
	to->cache_write += reply_member(u, "cache_write");
	to->cost += json_number_value(json_object_get(u, "cost"));
}

static int reply_count(struct reply *r, size_t n, struct err *e)
{
	size_t most = r->most ? r->most : REPLY_MOST;

	if (n > most - r->bytes)
		return err_set(e, ERR_LIMIT, "an answer of more than %zu bytes", most);
	r->bytes += n;
	return 0;
}

int reply_text(struct reply *r, const char *text, size_t n, struct err *e)
{
	if (!n)
		return 0;
	if (reply_count(r, n, e) < 0)
		return -1;
	buf_add(&r->text, text, n);
	if (r->said)
		r->said(r->ctx,
			json_pack("{s:s, s:o}", "type", "text", "text", json_stringn(text, n)));
	return 0;
}

static void say_call(struct reply *r, const struct reply_call *c, const char *id, const char *name,
		     const char *piece, size_t n)
{
	json_t *event;

	if (!r->said)
		return;
	event = json_pack("{s:s, s:i}", "type", "call", "n", (int)(c - r->calls));
	if (id)
		json_object_set_new(event, "id", json_string(id));
	if (name)
		json_object_set_new(event, "name", json_string(name));
	json_object_set_new(event, "arguments", json_stringn(piece, n));
	r->said(r->ctx, event);
}

static void reply_learn(char **to, const char *text)
{
	if (*to || !text || !*text)
		return;
	*to = strndup(text, 256);
	if (!*to)
		abort();
}

struct reply_call *reply_call(struct reply *r, int64_t slot, const char *id, const char *name,
			      struct err *e)
{
	struct reply_call *c = r->calls;

	while (c < r->calls + r->ncalls && c->slot != slot)
		c++;
	if (c == r->calls + r->ncalls) {
		if (r->ncalls == REPLY_CALLS) {
			err_set(e, ERR_LIMIT, "an answer of more than %d calls", REPLY_CALLS);
			return NULL;
		}
		*c = (struct reply_call){ .slot = slot };
		r->ncalls++;
	} else if ((!id || !*id || c->id) && (!name || !*name || c->name)) {
		return c;
	}
	reply_learn(&c->id, id);
	reply_learn(&c->name, name);
	say_call(r, c, c->id, c->name, "", 0);
	return c;
}

int reply_arguments(struct reply *r, struct reply_call *c, const char *piece, size_t n,
		    struct err *e)
{
	if (!n)
		return 0;
	if (c->whole) {
		buf_cut(&c->arguments, 0);
		c->whole = 0;
	}
	if (reply_count(r, n, e) < 0)
		return -1;
	buf_add(&c->arguments, piece, n);
	say_call(r, c, NULL, NULL, piece, n);
	return 0;
}

/* Untrusted text for a message: one printable line. */
static void reply_plain(char *out, size_t room, const char *text)
{
	size_t n = 0;

	for (; *text && n + 1 < room; text++)
		if ((unsigned char)*text >= ' ' && *text != 127)
			out[n++] = *text;
		else if (n && out[n - 1] != ' ')
			out[n++] = ' ';
	/* Does not cut inside a character. */
	if (*text)
		while (n && ((unsigned char)out[n - 1] & 0xc0) == 0x80)
			n--;
	if (*text && n && (unsigned char)out[n - 1] >= 0xc0)
		n--;
	out[n] = 0;
}

void reply_fail(struct reply *r, const char *type, const char *msg, int status)
{
	r->failed = 1;
	reply_plain(r->error.type, sizeof(r->error.type), type ? type : "");
	reply_plain(r->error.msg, sizeof(r->error.msg), msg ? msg : "");
	r->error.status = status >= 400 && status < 600 ? status : 0;
}

/* {"error": {message, type, code}}, {"error": "text"}, {"message": ...}; a code may be a number. */
static int known_error(struct reply *r, const json_t *body)
{
	const json_t *in = json_object_get(body, "error"), *code;
	const char *type, *msg;

	if (json_is_string(in)) {
		reply_fail(r, "", json_string_value(in), 0);
		return 1;
	}
	if (!json_is_object(in))
		in = body;
	code = json_object_get(in, "code");
	type = json_string_value(json_object_get(in, "type"));
	msg = json_string_value(json_object_get(in, "message"));
	if (!msg && !type)
		return 0;
	/* Codes such as insufficient_quota are more precise than the type. */
	if (json_is_string(code) && *json_string_value(code))
		type = json_string_value(code);
	reply_fail(r, type, msg, json_is_integer(code) ? (int)json_integer_value(code) : 0);
	return 1;
}

void reply_fail_body(struct reply *r, int status, const char *body, size_t n)
{
	json_t *j = json_loadb(body, n, 0, NULL);
	char text[201];

	if (!known_error(r, j)) {
		for (size_t i = 0; i < 200; i++)
			text[i] =
				i < n ? (isascii((unsigned char)body[i]) && body[i] ? body[i] : ' ')
				      : 0;
		text[200] = 0;
		reply_fail(r, "", text, 0);
	}
	if (status >= 400)
		r->error.status = status;
	json_decref(j);
}

json_t *reply_calls(const struct reply *r)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < r->ncalls; i++) {
		const struct reply_call *c = &r->calls[i];
		/* A tool without parameters has no parts. */
		json_t *arguments = c->arguments.len ? json_loadb(c->arguments.p, c->arguments.len,
								  JSON_REJECT_DUPLICATES, NULL)
						     : json_object(),
		       *one;
		char id[32];

		snprintf(id, sizeof(id), "call_%u", i + 1);
		one = json_pack("{s:s, s:s}", "id", c->id ? c->id : id, "name",
				c->name ? c->name : "");
		if (json_is_object(arguments)) {
			json_object_set_new(one, "arguments", arguments);
		} else {
			json_decref(arguments);
			json_object_set_new(one, "arguments", json_null());
			json_object_set_new(one, "raw",
					    json_stringn(c->arguments.p, c->arguments.len));
		}
		json_array_append_new(all, one);
	}
	return all;
}

void reply_fini(struct reply *r)
{
	buf_fini(&r->text);
	for (unsigned i = 0; i < r->ncalls; i++) {
		free(r->calls[i].id);
		free(r->calls[i].name);
		buf_fini(&r->calls[i].arguments);
	}
	r->ncalls = 0;
}
