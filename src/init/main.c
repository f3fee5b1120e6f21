/* main.c - PID 1 of a box.
 *
 * Static, without any library, asleep nearly always. Init runs the programs that clients start,
 * stores their output by offset, reaps every process that ends in the box, and forks workers for
 * file requests. It has no queue and no heap: tables of fixed size, memfds for output, and one
 * scratch buffer.
 *
 *   fd 0 1 2   /dev/null           argv[1]  uid of the user
 *   fd 3       first connection    argv[2]  1 if clients may ask for the image's root
 *   fd 4       listening socket, or a socket that connections arrive on (from a guest stub)
 *   fd 5       upper layer
 *   fd 6       boot id
 *
 * argv[3] "guest": the kernel is that of a guest, and fd 7 is the cgroup of the box in that guest. Another argv[3]: tier
 * process; it is the folder in place of /home/user, and fd 6 is the list of init's children.
 *
 * A turn: frames change state, children are reaped, pipes are read into the logs; then timers;
 * then what is due is sent to clients. Reading order: child.c, exec.c, stream.c, attachment.c,
 * conn.c, requests.c, files.c. */
#include "initlib/boot_id.h"
#include "init/conn.h"
#include "init/tcp.h"
#include "init/exec.h"
#include "init/guest_counts.h"
#include "initlib/scratch.h"
#include "init/params.h"
#include "initlib/shrink.h"
#include "init/fence.h"
#include "init/hold.h"
#include "init/stop_all.h"
#include "initlib/sys.h"
#include "initlib/str.h"

enum { KEEPER_FD = 3, LISTEN_FD, UPPER_FD, BOOT_FD, COUNTS_FD, BAD_START = 70 };

struct self self;

_Noreturn void init_main(long *stack);

static void learn_self(long argc, char **argv)
{
	static char folder[HOME_LEN + 1]; /* the arguments are unmapped later */
	int guest = argc == 4 && !text_compare(argv[3], "guest");
	int process = argc == 4 && !guest && strlen(argv[3]) == HOME_LEN;
	int known = argc == 3 || guest || process;
	int64_t user = known ? text_number(argv[1], 0xfffffffeu) : -1;
	int64_t root = known ? text_number(argv[2], 1) : -1;

	if (user < 0 || root < 0)
		sys_exit(BAD_START);
	if (guest && sys_fcntl(COUNTS_FD, F_SETFD, FD_CLOEXEC) < 0)
		sys_exit(BAD_START);
	if (guest)
		guest_counts_init(COUNTS_FD);
	self.uid = (uint32_t)sys_getuid();
	self.gid = (uint32_t)sys_getgid();
	self.user = (uint32_t)user;
	self.root_allowed = (int)root;
	self.upper = UPPER_FD;
	self.home = process ? memcpy(folder, argv[3], HOME_LEN) : HOME;
	self.children = process ? BOOT_FD : -1;
}

/* "/home/users" is another name. */
static int params_ends_name(char next)
{
	return !((next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
		 (next >= '0' && next <= '9') || next == '_' || next == '-' || next == '.');
}

void params_place_home(char *text, size_t n)
{
	size_t i;

	if (self.children < 0)
		return;
	for (i = 0; i + HOME_LEN <= n; i++)
		if (!memcmp(text + i, HOME, HOME_LEN) &&
		    (i + HOME_LEN == n || params_ends_name(text[i + HOME_LEN])))
			memcpy(text + i, self.home, HOME_LEN);
}

/* Sets attributes that all children inherit, once instead of in every child. */
static void init_settle(void)
{
	int i;

	if (sys_prctl(PR_SET_DUMPABLE, 0, 0) < 0)
		sys_exit(BAD_START);
	/* For ps on the host: init was executed by descriptor, and its name would be that
	 * number. */
	sys_prctl(PR_SET_NAME, (unsigned long)"atoll-init", 0);
	sys_sigmask(~0ull); /* no handler outlives exec, and the launcher ignores nothing */
	sys_umask(022);
	/* Behind a guest stub it may share a pid namespace; then orphans must become its children. */
	if (sys_getpid() != 1 && sys_prctl(PR_SET_CHILD_SUBREAPER, 1, 0) < 0)
		sys_exit(BAD_START);
	for (i = KEEPER_FD; i <= BOOT_FD; i++)
		if (sys_fcntl(i, F_SETFD, FD_CLOEXEC) < 0)
			sys_exit(BAD_START);
	sys_fcntl(LISTEN_FD, F_SETFL, O_RDWR | O_NONBLOCK);
}

static int init_sooner(int a_ms, int b_ms)
{
	return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

_Noreturn void init_main(long *stack)
{
	init_settle();
	learn_self(stack[0], (char **)(stack + 1));
	slim_down(stack);
	boot_init(self.children < 0 ? BOOT_FD : -1);
	loop_init();
	exec_init();
	conn_init(KEEPER_FD, LISTEN_FD);
	for (;;) {
		exec_timers();
		tcp_timers();
		fence_turn();
		hold_turn();
		stop_turn();
		conn_sweep();
		exec_pump();
		if (!exec_running())
			scratch_idle();
		loop_turn(init_sooner(init_sooner(exec_timeout_ms(), tcp_timeout_ms()),
				      init_sooner(fence_timeout_ms(), hold_timeout_ms())));
	}
}
