/* objects.c - see objects.h. */
#include "coordinator/objects.h"
#include "cluster/certificates.h"
#include "cluster/signed_url.h"

#include <stdio.h>
#include <string.h>

/* The next word of the text. */
static size_t objects_word(const char **at)
{
	*at += strspn(*at, " \t\r\n");
	return strcspn(*at, " \t\r\n");
}

static int objects_read_keys(struct objects *x, const char *text, struct err *e)
{
	const char *at = text;
	size_t n = objects_word(&at);

	buf_add(&x->access, at, n);
	at += n;
	n = objects_word(&at);
	buf_add(&x->secret, at, n);
	at += n;
	n = objects_word(&at);
	snprintf(x->region, sizeof(x->region), "%.*s", n ? (int)n : 9, n ? at : "us-east-1");
	at += n;
	if (x->access.len && x->secret.len && n < sizeof(x->region) && !objects_word(&at))
		return 0;
	return err_set(
		e, ERR_INVALID,
		"the file 'objects' of cluster.secrets needs an access key, a secret key and "
		"perhaps a region, separated by spaces or line ends");
}

int objects_open(struct objects *x, const char *url, const char *secrets, struct err *e)
{
	struct buf text = { 0 };
	int rc;

	*x = (struct objects){ 0 };
	rc = object_store_parse(&x->store, url, e);
	if (rc == 0)
		rc = cluster_read_file(secrets, "objects", &text, e);
	if (rc == 0)
		rc = objects_read_keys(x, buf_str(&text), e);
	if (text.p)
		explicit_bzero(text.p, text.room);
	buf_fini(&text);
	x->is_open = rc == 0;
	return rc;
}

void objects_close(struct objects *x)
{
	if (x->secret.p)
		explicit_bzero(x->secret.p, x->secret.room);
	buf_fini(&x->access);
	buf_fini(&x->secret);
	x->is_open = 0;
}

/* A server asks for objects of a cluster only: one of two folders, without another one. */
static int objects_key_is_valid(const char *key)
{
	size_t n = strncmp(key, "snapshots/", 10) == 0 ? 10
		   : strncmp(key, "layers/", 7) == 0   ? 7
						       : 0;

	return n && key[n] && strlen(key) <= 200 &&
	       !key[n + strspn(key + n, "abcdefghijklmnopqrstuvwxyz0123456789-")];
}

int objects_sign(const struct objects *x, const json_t *request, int64_t now_s, struct buf *out,
		 struct err *e)
{
	const char *method = json_string_value(json_object_get(request, "method")),
		   *key = json_string_value(json_object_get(request, "key"));
	struct signed_url_account account = { .access_key = buf_str(&x->access),
					      .secret_key = buf_str(&x->secret),
					      .region = x->region,
					      .scheme = x->store.is_tls ? "https" : "http",
					      .host = x->store.authority,
					      .bucket =
						      x->store.bucket[0] ? x->store.bucket : NULL };

	if (!x->is_open)
		return err_set(e, ERR_NOT_FOUND, "there is no object store");
	if (!method || !key || !objects_key_is_valid(key))
		return err_set(e, ERR_INVALID, "not the key of an object of a cluster");
	return signed_url(
		&account,
		&(struct signed_url_request){
			.method = method, .key = key, .at_s = now_s, .valid_s = OBJECTS_URL_S },
		out, e);
}
