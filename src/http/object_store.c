/* object_store.c - see object_store.h. */
#include "http/object_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char object_letters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";

/* The length of the host; 0: there is none. */
static size_t object_store_host(const char *text)
{
	size_t n;

	if (*text != '[')
		return strspn(text, object_letters);
	n = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
	return n > 1 && text[n] == ']' ? n + 1 : 0;
}

static int object_store_port(struct object_store *out, const char **text)
{
	unsigned long port;
	char *end;

	out->port = out->is_tls ? 443 : 80;
	if (**text != ':')
		return 0;
	port = strtoul(*text + 1, &end, 10);
	if ((*text)[1] < '0' || (*text)[1] > '9' || port < 1 || port > 65535)
		return -1;
	*text = end;
	out->port = (uint16_t)port;
	return 0;
}

int object_store_parse(struct object_store *out, const char *url, struct err *e)
{
	const char *text = url, *at;
	size_t host, bucket;
	int is_default;

	*out = (struct object_store){ .is_tls = strncmp(url, "https://", 8) == 0 };
	if (!out->is_tls && strncmp(url, "http://", 7) != 0)
		return err_set(e, ERR_INVALID, "'%.100s' is not a URL with http or https", url);
	text += out->is_tls ? 8 : 7;
	host = object_store_host(text);
	at = text + host;
	if (!host || host >= OBJECT_STORE_HOST || object_store_port(out, &at) < 0)
		return err_set(e, ERR_INVALID, "'%.100s' has no valid host and port", url);
	at += *at == '/';
	bucket = strspn(at, object_letters);
	if (strcmp(at + bucket, "") != 0 && strcmp(at + bucket, "/") != 0)
		return err_set(e, ERR_INVALID,
			       "'%.100s' has more than a bucket; write it like "
			       "https://objects.example.org/atoll",
			       url);
	if (bucket >= OBJECT_STORE_BUCKET)
		return err_set(e, ERR_INVALID, "the name of the bucket is too long");
	snprintf(out->host, sizeof(out->host), "%.*s", (int)(*text == '[' ? host - 2 : host),
		 text + (*text == '['));
	is_default = out->port == (out->is_tls ? 443 : 80);
	snprintf(out->authority, sizeof(out->authority), "%.*s", (int)host, text);
	if (!is_default)
		snprintf(out->authority + host, sizeof(out->authority) - host, ":%u", out->port);
	snprintf(out->bucket, sizeof(out->bucket), "%.*s", (int)bucket, at);
	return 0;
}

const char *object_store_target(const struct object_store *s, const char *url)
{
	char begin[OBJECT_STORE_HOST + OBJECT_STORE_BUCKET + 32];
	size_t host, n;

	host = (size_t)snprintf(begin, sizeof(begin), "%s://%s", s->is_tls ? "https" : "http",
				s->authority);
	n = host + (size_t)snprintf(begin + host, sizeof(begin) - host, "%s%s/",
				    s->bucket[0] ? "/" : "", s->bucket);
	if (strncmp(url, begin, n) != 0)
		return NULL;
	/* What a signed URL consists of; nothing that could end the line of the request, or leave the bucket. */
	if (url[n + strspn(url + n, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "-._~%/?&=")] ||
	    strstr(url + n, ".."))
		return NULL;
	return url + host;
}
