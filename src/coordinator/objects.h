/* objects.h - the credentials of the object store: the cluster process signs URLs for the server.
 * Owns: access key and secret key, which never leave the process. */
#pragma once
#include "base/buf.h"
#include "http/object_store.h"
#include <jansson.h>

enum { OBJECTS_URL_S = 15 * 60 };

struct objects { /* zeroed: no object store */
	struct object_store store;
	int is_open;
	char region[64];
	struct buf access, secret;
};

/* Reads the file `objects` of the folder cluster.secrets: access key, secret key and perhaps the region, separated by white
 * space. url: cluster.objects. ERR_NOT_FOUND: there is no such file. */
must_check int objects_open(struct objects *x, const char *url, const char *secrets, struct err *e);
void objects_close(struct objects *x);
/* A URL for one request: {method, key}. key: "snapshots/..." or "layers/...". ERR_INVALID. */
must_check int objects_sign(const struct objects *x, const json_t *request, int64_t now_s,
			    struct buf *out, struct err *e);
