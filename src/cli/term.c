/* term.c - see term.h. */
#include "cli/term.h"
#include "base/cleanup.h"

#include <signal.h>
#include <stdlib.h>
#include <termios.h>

static struct termios saved;
static volatile sig_atomic_t raw_fd = -1;

void term_restore(void)
{
	int fd = raw_fd;

	raw_fd = -1;
	if (fd >= 0)
		tcsetattr(fd, TCSADRAIN, &saved);
}

/* A crash of atoll must not leave the user with a terminal without echo. */
static void on_crash(int signo)
{
	term_restore();
	signal(signo, SIG_DFL);
	raise(signo);
}

int term_raw(int fd, struct err *e)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE };
	static int armed;
	struct termios t;

	if (tcgetattr(fd, &saved) < 0)
		return err_sys(e, "read the terminal's settings");
	if (!armed++) {
		atexit(term_restore);
		for (unsigned i = 0; i < ARRAY_LEN(crashes); i++)
			signal(crashes[i], on_crash);
	}
	t = saved;
	cfmakeraw(&t);
	raw_fd = fd;
	if (tcsetattr(fd, TCSADRAIN, &t) < 0)
		return err_sys(e, "set the terminal to raw mode");
	return 0;
}
