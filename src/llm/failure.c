/* failure.c - see failure.h. */
#include "llm/failure.h"
#include "base/cleanup.h"
#include "outbound/curl.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* "2", "0.5", or a date. */
static int64_t parse_after(const char *text)
{
	char *end;
	double s = strtod(text, &end);
	time_t at;

	if (end != text && s >= 0 && s < 1e7)
		return (int64_t)(s * 1000);
	at = curl.getdate ? curl.getdate(text, NULL) : -1;
	if (at < 0)
		return -1;
	return at > time(NULL) ? (int64_t)(at - time(NULL)) * 1000 : 0;
}

void ask_header(struct ask_headers *h, const char *line, size_t n)
{
	char text[256], *value;

	if (n >= 5 && strncasecmp(line, "HTTP/", 5) == 0) {
		*h = (struct ask_headers){ .should_retry = -1, .after_ms = -1 };
		return;
	}
	n = n < sizeof(text) - 1 ? n : sizeof(text) - 1;
	memcpy(text, line, n);
	text[n] = 0;
	while (n && isspace((unsigned char)text[n - 1]))
		text[--n] = 0;
	value = strchr(text, ':');
	if (!value)
		return;
	*value++ = 0;
	value += strspn(value, " \t");
	if (strcasecmp(text, "x-should-retry") == 0)
		h->should_retry = strcasecmp(value, "true") == 0    ? 1
				  : strcasecmp(value, "false") == 0 ? 0
								    : -1;
	else if (strcasecmp(text, "retry-after-ms") == 0 && isdigit((unsigned char)*value))
		h->after_ms = (int64_t)strtod(value, NULL);
	else if (strcasecmp(text, "retry-after") == 0 && h->after_ms < 0)
		h->after_ms = parse_after(value);
	else if (strcasecmp(text, "x-request-id") == 0 || strcasecmp(text, "request-id") == 0)
		snprintf(h->request_id, sizeof(h->request_id), "%.79s", value);
}

/* Errors that a retry cannot fix, with any status. */
static const char *const lasting[] = {
	"invalid_request_error",   "authentication_error", "permission_error",   "not_found_error",
	"request_too_large",       "billing_error",        "insufficient_quota", "invalid_api_key",
	"context_length_exceeded", "model_not_found",
};

int ask_retriable(int status, const struct reply_error *error, const struct ask_headers *h)
{
	if (h->should_retry >= 0)
		return h->should_retry;
	for (unsigned i = 0; i < ARRAY_LEN(lasting); i++)
		if (strcmp(error->type, lasting[i]) == 0)
			return 0;
	if (status == 200) /* an error in the stream: by its numeric code, if there is one */
		status = error->status ? error->status : 500;
	return status == 408 || status == 409 || status == 429 || status >= 500;
}

static const char *category_of(int status)
{
	static const struct {
		int from, to;
		const char *name;
	} rows[] = { { 401, 403, "auth" },    { 408, 408, "timeout" }, { 413, 413, "too_large" },
		     { 429, 429, "rate" },    { 400, 499, "invalid" }, { 503, 503, "overload" },
		     { 529, 529, "overload" } };

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (status >= rows[i].from && status <= rows[i].to)
			return rows[i].name;
	return "broken";
}

static enum err_kind kind_of(const char *category)
{
	return strcmp(category, "auth") == 0                                         ? ERR_DENIED
	       : strcmp(category, "invalid") == 0                                    ? ERR_INVALID
	       : strcmp(category, "rate") == 0 || strcmp(category, "too_large") == 0 ? ERR_LIMIT
										     : ERR_SYS;
}

void failure_set(struct failure *f, const char *who, const char *category, int again,
		 const char *fmt, ...)
{
	char text[240];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*f = (struct failure){ .category = category, .again = again, .after_ms = -1 };
	err_set(&f->err, kind_of(category), "%.60s: %s", who, text);
}

void failure_told(struct failure *f, const char *who, int status, const struct reply_error *error,
		  const struct ask_headers *h)
{
	int told = status == 200 && error->status ? error->status : status;
	int again = ask_retriable(status, error, h);

	failure_set(f, who, told == 200 ? (again ? "overload" : "invalid") : category_of(told),
		    again, "%d%s%s%s%s", told, error->type[0] ? " " : "", error->type,
		    error->msg[0] ? ": " : "", error->msg);
	f->status = told;
	f->after_ms = h->after_ms;
}

static const struct {
	CURLcode rc;
	const char *category;
	int again;
} curl_rows[] = {
	{ CURLE_OPERATION_TIMEDOUT, "timeout", 1 },
	{ CURLE_COULDNT_CONNECT, "network", 1 },
	{ CURLE_COULDNT_RESOLVE_HOST, "network", 1 },
	{ CURLE_SSL_CONNECT_ERROR, "network", 1 },
	{ CURLE_SEND_ERROR, "network", 1 },
	{ CURLE_RECV_ERROR, "network", 1 },
	{ CURLE_GOT_NOTHING, "network", 1 },
	{ CURLE_PARTIAL_FILE, "network", 1 },
	{ CURLE_HTTP2, "network", 1 },
	{ CURLE_HTTP2_STREAM, "network", 1 },
	{ CURLE_PEER_FAILED_VERIFICATION, "auth", 0 },
};

void failure_curl(struct failure *f, const char *who, int rc)
{
	const char *category = "network";
	int again = 0;

	for (unsigned i = 0; i < ARRAY_LEN(curl_rows); i++)
		if ((int)curl_rows[i].rc == rc) {
			category = curl_rows[i].category;
			again = curl_rows[i].again;
		}
	failure_set(f, who, category, again, "%s", curl.easy_strerror((CURLcode)rc));
}
