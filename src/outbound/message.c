/* message.c - see message.h. */
#include "outbound/message.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <ctype.h>
#include <string.h>

static int message_check_method(const char *method, struct err *e)
{
	static const char *const known[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

	for (unsigned i = 0; method && i < ARRAY_LEN(known); i++)
		if (strcmp(method, known[i]) == 0)
			return 0;
	return method ? err_set(e, ERR_INVALID, "'%.20s' is not a method of a request", method) : 0;
}

/* "Name: value" in one line: a value with a newline would be another header. */
static int message_check_header(const char *line, struct err *e)
{
	size_t name = strcspn(line, ":");

	if (strlen(line) > OUTBOUND_HEADER)
		return err_set(e, ERR_INVALID, "the header '%.40s' has more than %d bytes", line,
			       OUTBOUND_HEADER);
	if (!name || line[name] != ':')
		return err_set(e, ERR_INVALID, "'%.40s' is not a header line", line);
	for (size_t i = 0; i < name; i++)
		if (!isalnum((unsigned char)line[i]) && !strchr("-_", line[i]))
			return err_set(e, ERR_INVALID, "'%.40s' is not the name of a header", line);
	for (const char *c = line + name; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			return err_set(e, ERR_INVALID, "the header '%.*s' has the character 0x%02x",
				       (int)(name < 40 ? name : 40), line, (unsigned char)*c);
	return 0;
}

static int message_check_address(const char *text, struct err *e)
{
	const char *at = text ? strrchr(text, '@') : NULL;

	if (!at || at == text || !at[1] || strlen(text) > 254)
		return err_set(e, ERR_INVALID,
			       "'%.60s' is not a mail address; write it like ops@example.org",
			       text ? text : "");
	for (const char *c = text; *c; c++)
		if (!isgraph((unsigned char)*c) || strchr("<>,;\"", *c))
			return err_set(e, ERR_INVALID,
				       "'%.60s' is not a mail address: it has the character 0x%02x",
				       text, (unsigned char)*c);
	return 0;
}

static int message_check_mail(const struct outbound_message *m, struct err *e)
{
	if (message_check_address(m->from, e) < 0)
		return -1;
	if (!m->to[0] || m->method || m->headers[0] || !m->body)
		return err_set(e, ERR_INVALID,
			       "a mail needs recipients and a body, and has no method");
	for (unsigned i = 0; m->to[i]; i++)
		if (message_check_address(m->to[i], e) < 0)
			return -1;
	if (!m->user != !m->password)
		return err_set(e, ERR_INVALID, "a login needs a user and a password");
	if (m->user && (!utf8_valid(m->user, strlen(m->user)) ||
			!utf8_valid(m->password, strlen(m->password))))
		return err_set(e, ERR_INVALID, "the login is not UTF-8 text");
	return 0;
}

int outbound_message_check(const struct outbound_message *m, struct err *e)
{
	struct outbound_target t;

	if (outbound_target_parse(&t, m->url, e) < 0)
		return -1;
	if (m->body_len > OUTBOUND_BODY)
		return err_set(e, ERR_LIMIT, "the body has %zu bytes, the limit is %d", m->body_len,
			       OUTBOUND_BODY);
	if (m->body_len && (!utf8_valid(m->body, m->body_len) || memchr(m->body, 0, m->body_len)))
		return err_set(e, ERR_INVALID, "the body is not UTF-8 text");
	if (m->timeout_ms > OUTBOUND_TIMEOUT_MOST_MS)
		return err_set(e, ERR_INVALID, "a time limit of %u ms; the longest is %d",
			       m->timeout_ms, OUTBOUND_TIMEOUT_MOST_MS);
	if (t.mail)
		return message_check_mail(m, e);
	if (m->from || m->to[0] || m->user || m->password)
		return err_set(e, ERR_INVALID, "only a mail has a sender, recipients or a login");
	for (unsigned i = 0; m->headers[i]; i++)
		if (message_check_header(m->headers[i], e) < 0)
			return -1;
	return message_check_method(m->method, e);
}

static void message_add_text(json_t *doc, const char *name, const char *text)
{
	if (text)
		json_object_set_new(doc, name, json_string(text));
}

static void message_add_list(json_t *doc, const char *name, const char *const *texts)
{
	json_t *list = json_array();

	for (; *texts; texts++)
		json_array_append_new(list, json_string(*texts));
	json_object_set_new(doc, name, list);
}

json_t *outbound_message_json(const struct outbound_message *m, int with_body)
{
	json_t *doc = json_pack("{s:s, s:I, s:b}", "url", m->url, "timeout_ms",
				(json_int_t)m->timeout_ms, "private", m->allow_private);

	message_add_text(doc, "method", m->method);
	message_add_list(doc, "headers", m->headers);
	if (m->body && with_body)
		json_object_set_new(doc, "body", json_stringn(m->body, m->body_len));
	message_add_text(doc, "from", m->from);
	message_add_list(doc, "to", m->to);
	message_add_text(doc, "user", m->user);
	message_add_text(doc, "password", m->password);
	return doc;
}

static int message_read_list(const json_t *list, const char **out, unsigned most, const char *what,
			     struct err *e)
{
	size_t n = json_array_size(list);

	if (n > most)
		return err_set(e, ERR_LIMIT, "%zu %s; the limit is %u", n, what, most);
	for (size_t i = 0; i < n; i++) {
		out[i] = json_string_value(json_array_get(list, i));
		if (!out[i])
			return err_set(e, ERR_INVALID, "%s are texts", what);
	}
	return 0;
}

int outbound_message_read(struct outbound_message *out, const json_t *doc, struct err *e)
{
	const json_t *body = json_object_get(doc, "body");
	json_int_t timeout_ms = json_integer_value(json_object_get(doc, "timeout_ms"));

	*out = (struct outbound_message){
		.url = json_string_value(json_object_get(doc, "url")),
		.method = json_string_value(json_object_get(doc, "method")),
		.body = json_string_value(body),
		.body_len = json_string_length(body),
		.allow_private = json_is_true(json_object_get(doc, "private")),
		.from = json_string_value(json_object_get(doc, "from")),
		.user = json_string_value(json_object_get(doc, "user")),
		.password = json_string_value(json_object_get(doc, "password")),
	};
	if (!out->url || timeout_ms < 0 || timeout_ms > OUTBOUND_TIMEOUT_MOST_MS)
		return err_set(e, ERR_INVALID,
			       "a message without a URL, or with a wrong time limit");
	out->timeout_ms = (uint32_t)timeout_ms;
	if (message_read_list(json_object_get(doc, "headers"), out->headers, OUTBOUND_HEADERS,
			      "header lines", e) < 0 ||
	    message_read_list(json_object_get(doc, "to"), out->to, OUTBOUND_RECIPIENTS,
			      "recipients", e) < 0)
		return -1;
	return outbound_message_check(out, e);
}
