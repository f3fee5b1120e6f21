/* sanitizer_report.c - see sanitizer_report.h. */
#include "daemon/sanitizer_report.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
#include <fcntl.h>
#include <limits.h>
#include <sanitizer/common_interface_defs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static char report_path[PATH_MAX];

void sanitizer_report_store_path(void)
{
	const char *path = getenv("ATOLL_SANITIZER_REPORT");

	if (path)
		snprintf(report_path, sizeof(report_path), "%s", path);
}

void sanitizer_report_open(void)
{
	int fd = report_path[0] ? open(report_path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

	if (fd >= 0)
		__sanitizer_set_report_fd((void *)(intptr_t)fd);
}
#else
void sanitizer_report_store_path(void)
{
}

void sanitizer_report_open(void)
{
}
#endif
