/* curl.c - see curl.h. */
#include "outbound/curl.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct curl curl;

static const struct {
	const char *name;
	size_t at;
} calls[] = {
#define X(call) { "curl_" #call, offsetof(struct curl, call) },
	CURL_CALLS(X)
#undef X
};

int curl_load(struct err *e)
{
	void *lib;

	if (curl.global_init)
		return 0;
	lib = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(e, ERR_NOT_FOUND,
			       "libcurl is needed for requests to other hosts: %.150s", dlerror());
	for (unsigned i = 0; i < ARRAY_LEN(calls); i++) {
		void *found = dlsym(lib, calls[i].name);

		if (!found)
			return err_set(e, ERR_NOT_FOUND, "libcurl has no %s", calls[i].name);
		memcpy((char *)&curl + calls[i].at, &found, sizeof(found));
	}
	if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_SYS, "libcurl does not start");
	return 0;
}

struct curl_slist *curl_addresses(const char *host, unsigned port, const struct name_address *v,
				  unsigned n)
{
	auto_buf struct buf line = { 0 };
	char ip[INET6_ADDRSTRLEN];
	struct curl_slist *list;

	/* '+': for this request; the next one resolves again. */
	buf_printf(&line, "+%s:%u:", host, port);
	for (unsigned i = 0; i < n; i++) {
		int six = v[i].to.ss_family == AF_INET6;
		const void *at =
			six ? (const void *)&((const struct sockaddr_in6 *)&v[i].to)->sin6_addr
			    : (const void *)&((const struct sockaddr_in *)&v[i].to)->sin_addr;

		if (inet_ntop(v[i].to.ss_family, at, ip, sizeof(ip)))
			buf_printf(&line, "%s%s%s%s", i ? "," : "", six ? "[" : "", ip,
				   six ? "]" : "");
	}
	list = curl.slist_append(NULL, buf_str(&line));
	if (!list)
		abort();
	return list;
}
