/* media_type.c - see media_type.h. */
#include "api/media_type.h"
#include "api/api.h"
#include "api/identity.h"

#include <stdio.h>
#include <string.h>

static int type_matches(const char *given, const char *type)
{
	size_t n = strlen(type);

	return !strncasecmp(given, type, n) && (!given[n] || strchr("; \t", given[n]));
}

static int type_is_json(const char *type)
{
	size_t n = strcspn(type, "; \t");

	return type_matches(type, "application/json") || type_matches(type, "text/json") ||
	       (n > 17 && !strncasecmp(type, "application/", 12) &&
		!strncasecmp(type + n - 5, "+json", 5));
}

/* A page of another site can make a browser send a body without a preflight if its type is text/plain,
 * multipart/form-data, application/x-www-form-urlencoded or missing; it cannot add a header with a key to
 * such a request. curl -d and some libraries send the form type, or none, with every body. These requests
 * are accepted if they carry a credential in a header (or came by the unix socket, which no page reaches)
 * and no header shows that a page sent them. */
static int sender_is_no_page(const struct http_req *r)
{
	const char *site = http_header(r, "sec-fetch-site");

	if (http_header(r, "origin") ||
	    (site && strcasecmp(site, "none") && strcasecmp(site, "same-origin")))
		return 0;
	if (r->trusted_peer) /* a gateway has replaced the key in a header by the caller's identity */
		return http_header(r, IDENTITY_HEADER) != NULL ||
		       http_header(r, "x-access-token") ||
		       http_header(r, "e2b-traffic-access-token");
	return r->unix_peer || http_header(r, "authorization") || http_header(r, "x-api-key") ||
	       http_header(r, "x-access-token") || http_header(r, "e2b-traffic-access-token");
}

int media_type_check(struct call *c)
{
	const struct http_req *r = c->req;
	const char *type = http_header(r, "content-type"),
		   *coding = http_header(r, "content-encoding");
	char why[160];

	if (r->length == 0)
		return 1;
	if (coding && *coding && strcasecmp(coding, "identity") != 0) {
		snprintf(why, sizeof(why), "Content-Encoding: %.100s", coding);
		call_error(c, 415, "media_type", "the body must not be compressed", why,
			   "send it as it is, without Content-Encoding");
		return 0;
	}
	if (type && *type ? type_is_json(type) : sender_is_no_page(r))
		return 1;
	if (type && type_matches(type, "application/x-www-form-urlencoded") && sender_is_no_page(r))
		return 1;
	snprintf(why, sizeof(why), type ? "Content-Type: %.100s" : "no Content-Type%.0s",
		 type ? type : "");
	http_set(c->req, "Accept-Post", "application/json");
	call_error(c, 415, "media_type", "the body must be JSON", why,
		   "-H 'Content-Type: application/json'");
	return 0;
}
