/* curl.h - libcurl, loaded by the one process that needs it: it loads thirty libraries, which
 * neither the short-lived CLI nor the server, which parses untrusted data, should have.
 * Owns: the loaded library, for the life of the process. */
#pragma once
#include "base/err.h"
#include "egress/resolver.h"
#include <curl/curl.h>

#define CURL_CALLS(X)                                                                              \
	X(global_init)                                                                             \
	X(version)                                                                                 \
	X(easy_init)                                                                               \
	X(easy_setopt)                                                                             \
	X(easy_getinfo)                                                                            \
	X(easy_cleanup)                                                                            \
	X(easy_reset)                                                                              \
	X(easy_strerror)                                                                           \
	X(multi_init)                                                                              \
	X(multi_cleanup)                                                                           \
	X(multi_setopt)                                                                            \
	X(multi_add_handle)                                                                        \
	X(multi_remove_handle)                                                                     \
	X(multi_socket_action)                                                                     \
	X(multi_assign)                                                                            \
	X(multi_info_read)                                                                         \
	X(slist_append)                                                                            \
	X(slist_free_all)                                                                          \
	X(getdate)

/* Its setters are type-checking macros; here they are plain functions. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

struct curl {
#define X(name) __typeof__(curl_##name) *name;
	CURL_CALLS(X)
#undef X
};
extern struct curl curl;

must_check int curl_load(struct err *e); /* a second call does nothing */

/* For CURLOPT_RESOLVE: the addresses of a host that were judged, for one request; libcurl resolves no
 * name itself. Freed with slist_free_all(). */
struct curl_slist *curl_addresses(const char *host, unsigned port, const struct name_address *v,
				  unsigned n);
