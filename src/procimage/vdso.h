/* vdso.h - the code of the kernel that is mapped in every process, for programs that continue on another kernel: the code of
 * the first one stays at its addresses, and its functions become system calls. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

enum { VDSO_MOST = 64 << 10 };

/* Of this process: whole pages. bytes 0: there is none. */
const void *vdso_own(size_t *bytes);
/* Replaces the first instructions of each function by a system call of the same meaning. The bytes are untrusted. */
must_check int vdso_replace(void *bytes, size_t n, struct err *e);
