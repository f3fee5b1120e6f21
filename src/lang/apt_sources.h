/* apt_sources.h - the list of sources with which apt-get works in a box that has the host's /usr.
 * Pure: text in, text out. */
#pragma once
#include "base/buf.h"

/* urls: mirrors, with spaces between them. os_release: the text of /usr/lib/os-release. Appends one line
 * per mirror. -1: the release is not known, or there is no mirror; nothing is appended. */
int apt_sources(const char *urls, const char *os_release, struct buf *out);
