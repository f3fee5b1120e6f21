/* seccomp_list.c - a filter from a list of calls: see seccomp.h. */
#include "base/cleanup.h"
#include "jail/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int list_add_rules(scmp_filter_ctx ctx, const char *calls, const struct seccomp_zero *zero,
			  unsigned nzero)
{
	auto_free char *copy = strdup(calls);
	char *rest = NULL;
	int rc = 0;

	if (!copy)
		abort();
	for (char *c = strtok_r(copy, " ", &rest); c && rc == 0; c = strtok_r(NULL, " ", &rest)) {
		int nr = seccomp_number(c);

		if (nr >= 0)
			rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
	for (unsigned i = 0; i < nzero && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, seccomp_number(zero[i].call), 1,
				      SCMP_CMP(zero[i].argument, SCMP_CMP_MASKED_EQ, zero[i].mask,
					       0));
	return rc;
}

int seccomp_compile_list(struct seccomp *out, const char *calls, const struct seccomp_zero *zero,
			 unsigned nzero, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	auto_fd int fd = memfd_create("filter", MFD_CLOEXEC);
	int rc = ctx && fd >= 0 ? list_add_rules(ctx, calls, zero, nzero) : -ENOMEM;
	off_t size;

	if (rc == 0)
		rc = seccomp_export_bpf(ctx, fd);
	seccomp_release(ctx);
	size = rc == 0 ? lseek(fd, 0, SEEK_END) : 0;
	if (rc == 0 && (size <= 0 || size % (off_t)sizeof(struct sock_filter)))
		rc = -EIO;
	if (rc < 0) {
		errno = -rc;
		return err_sys(e, "the system call filter");
	}
	out->code = malloc((size_t)size);
	if (!out->code)
		abort();
	if (pread(fd, out->code, (size_t)size, 0) != size) {
		free(out->code);
		return err_sys(e, "the system call filter");
	}
	out->len = (unsigned short)((size_t)size / sizeof(struct sock_filter));
	return 0;
}
