/* internal_call.h - a request of /v1 that the server makes itself, as a principal.
 * Owns: itself, until it was answered or dropped.
 *
 * The handler of the route must answer with call_json() or call_error(), and must not read the body
 * from the connection. Checks, quotas and the audit log are those of a request of a client. */
#pragma once
#include "api/api.h"

struct internal_call;
struct internal_call_spec {
	struct api *api;
	const struct principal *who; /* borrowed for the call */
	const char *method, *path;   /* a route of /v1; valid until the end */
	void (*run)(struct call *c,
		    void *user); /* in place of the handler of the route; NULL: that handler */
	/* Called once, from the loop, unless the call is dropped. doc: borrowed; NULL: no body. The call
	 * no longer exists after it. */
	void (*answered)(void *user, int status, const json_t *doc);
	void *user;
};
/* take_body: checked against the fields of the route, if it has some. */
struct internal_call *internal_call_begin(const struct internal_call_spec *spec, json_t *take_body);
/* As if the client disconnected. */
void internal_call_drop(struct internal_call *x);
