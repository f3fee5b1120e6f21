/* site.h - sites, as browsers separate pages: names below one registrable domain are one site. */
#pragma once
#include <stddef.h>

/* 1: a page at this host (n bytes, without a port) is of the same site as pages at names below the
 * domain ("box.example.org" or "*.box.example.org"). The list of public suffixes is not used: the
 * registrable domain is taken to be the last two labels, or three below "co.uk" and the like. Where
 * that is wrong, two sites are taken for one. */
int site_is_shared(const char *host, size_t n, const char *domain);
/* Host without its port; an IPv6 address keeps its brackets. */
size_t site_host_len(const char *host);
