/* seccomp_load.c - loads a compiled filter. A file of its own: it needs no library, and is used
 * in executables without libseccomp. */
#include "jail/seccomp.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

int seccomp_apply(const struct seccomp *sc, struct err *e)
{
	const struct sock_fprog prog = { .len = sc->len, .filter = sc->code };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return err_sys(e, "load a filter of %u instructions", sc->len);
	return 0;
}
