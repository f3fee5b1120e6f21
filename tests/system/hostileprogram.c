/* hostileprogram.c - programs that are hard to capture; checkpoint_hostile.sh runs them in boxes. Static.
 *
 *	hostileprogram NAME	makes the state NAME, then writes NAME.ready; when the file `go` exists, writes
 *				"ok" or what it has lost to NAME.result, and ends */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char *name;
static int folder; /* the working folder at the start */

static void put(const char *suffix, const char *text)
{
	char path[64], hidden[80];
	int fd;

	snprintf(path, sizeof(path), "%s.%s", name, suffix);
	snprintf(hidden, sizeof(hidden), ".%s", path);
	fd = openat(folder, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 ||
	    renameat(folder, hidden, folder, path) < 0)
		_exit(80);
	close(fd);
}

static _Noreturn void __attribute__((format(printf, 1, 2))) lost(const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put("result", text);
	_exit(81);
}

static int must(long rc, const char *what)
{
	if (rc < 0)
		lost("%s: %s", what, strerror(errno));
	return (int)rc;
}

static int may_go(void)
{
	return faccessat(folder, "go", F_OK, 0) == 0;
}

static void wait_for_go(void)
{
	put("ready", "");
	while (!may_go())
		usleep(10000);
}

/* ---- signals ---- */

static volatile uint64_t in_handler, after_handler;
static void handler_waits(int signo)
{
	volatile uint64_t local = 0x1122334455667788;

	(void)signo;
	in_handler = local;
	wait_for_go();
	if (local != 0x1122334455667788 || in_handler != local)
		lost("the local variable of the handler");
	after_handler = 1;
}

static void in_a_handler(void)
{
	static char other[65536];
	stack_t alt = { .ss_sp = other, .ss_size = sizeof(other) };
	struct sigaction act = { .sa_handler = handler_waits, .sa_flags = SA_ONSTACK };

	must(sigaltstack(&alt, NULL), "sigaltstack");
	must(sigaction(SIGUSR1, &act, NULL), "sigaction");
	raise(SIGUSR1);
	if (!after_handler)
		lost("the return from the handler");
}

static volatile sig_atomic_t ticks;
static void handler_counts(int signo)
{
	(void)signo;
	ticks++;
}

/* Most of the time it is between a signal and the return from its handler. */
static void in_sigreturn(void)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } };
	struct sigaction act = { .sa_handler = handler_counts, .sa_flags = SA_RESTART };
	uint64_t a = 1, b = 1;

	must(sigaction(SIGALRM, &act, NULL), "sigaction");
	must(setitimer(ITIMER_REAL, &often, NULL), "setitimer");
	put("ready", "");
	while (!may_go()) {
		sig_atomic_t before = ticks;

		for (int i = 0; i < 100000; i++) {
			a = a * 6364136223846793005u + 1442695040888963407u;
			b = b * 6364136223846793005u + 1442695040888963407u;
		}
		if (a != b)
			lost("a register");
		while (ticks == before && !may_go())
			;
	}
	must(setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL), "setitimer");
}

static void blocked_and_pending(void)
{
	sigset_t all, now;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	raise(SIGUSR2);
	wait_for_go();
	sigpending(&now);
	if (!sigismember(&now, SIGUSR2))
		lost("the pending signal");
	sigprocmask(SIG_SETMASK, NULL, &now);
	if (!sigismember(&now, SIGTERM))
		lost("the mask");
}

static volatile sig_atomic_t woken;
static void handler_wakes(int signo)
{
	(void)signo;
	woken = 1;
}

static void *wakes(void *arg)
{
	wait_for_go();
	kill(getpid(), SIGUSR1);
	return arg;
}

/* pause() must not return before the signal. */
static void in_pause(void)
{
	struct sigaction act = { .sa_handler = handler_wakes };
	pthread_t other;
	sigset_t one;

	must(sigaction(SIGUSR1, &act, NULL), "sigaction");
	pthread_create(&other, NULL, wakes, NULL);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	pause();
	if (!woken || !may_go())
		lost("pause() has returned without a signal");
}

static void in_sigsuspend(void)
{
	struct sigaction act = { .sa_handler = handler_wakes };
	pthread_t other;
	sigset_t one, none;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	sigprocmask(SIG_BLOCK, &one, NULL);
	must(sigaction(SIGUSR1, &act, NULL), "sigaction");
	pthread_create(&other, NULL, wakes, NULL);
	sigprocmask(SIG_BLOCK, NULL, &none);
	sigdelset(&none, SIGUSR1);
	sigsuspend(&none);
	if (!woken || !may_go())
		lost("sigsuspend() has returned without a signal");
	sigprocmask(SIG_BLOCK, NULL, &none);
	if (!sigismember(&none, SIGUSR1))
		lost("the mask after sigsuspend()");
}

static void parent_death_signal(void)
{
	int signo = 0;

	must(prctl(PR_SET_PDEATHSIG, SIGUSR2), "PR_SET_PDEATHSIG");
	wait_for_go();
	must(prctl(PR_GET_PDEATHSIG, &signo), "PR_GET_PDEATHSIG");
	if (signo != SIGUSR2)
		lost("PR_SET_PDEATHSIG: now %d", signo);
}

/* ---- memory ---- */

static volatile int one_page_done;
static int runs_on_one_page(void *arg)
{
	(void)arg;
	while (!may_go())
		sched_yield();
	one_page_done = 1;
	return 0;
}

static void stack_of_one_page(void)
{
	char *page = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(mprotect(page + 4096, 4096, PROT_READ | PROT_WRITE), "mprotect");
	must(clone(runs_on_one_page, page + 8192,
		   CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
		   NULL),
	     "clone");
	wait_for_go();
	for (int i = 0; i < 1000 && !one_page_done; i++)
		usleep(10000);
	if (!one_page_done)
		lost("the thread with a stack of one page");
}

/* Nearly no address below 128 TiB is free. */
static void no_hole(void)
{
	size_t size = (size_t)1 << 46;
	unsigned long maps = 0;

	while (size >= 4096 && maps < 60000) {
		if (mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			 0) != MAP_FAILED)
			maps++;
		else
			size /= 2;
	}
	wait_for_go();
}

static void many_mappings(void)
{
	enum { PAGES = 40000 };
	char *all = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	for (int i = 0; i < PAGES; i += 2) {
		all[i * 4096] = (char)i;
		must(mprotect(all + i * 4096, 4096, PROT_READ), "mprotect");
	}
	wait_for_go();
	for (int i = 0; i < PAGES; i += 2)
		if (all[i * 4096] != (char)i)
			lost("page %d", i);
}

static void system_v_memory(void)
{
	int id = must(shmget(IPC_PRIVATE, 4096, 0600), "shmget");
	char *at = shmat(id, NULL, 0);

	strcpy(at, "shared");
	wait_for_go();
	if (strcmp(at, "shared") != 0)
		lost("the segment");
}

/* ---- descriptors ---- */

static void closed_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	wait_for_go();
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			lost("descriptor %d is open", fd);
}

static void no_working_folder(void)
{
	char path[400];

	must(mkdir("gone", 0755), "mkdir");
	must(chdir("gone"), "chdir");
	must(unlinkat(folder, "gone", AT_REMOVEDIR), "rmdir");
	wait_for_go();
	if (getcwd(path, sizeof(path)) || errno != ENOENT)
		lost("the working folder exists: %s", path);
}

static void many_descriptors(int n)
{
	struct rlimit lim;

	must(getrlimit(RLIMIT_NOFILE, &lim), "getrlimit");
	lim.rlim_cur = lim.rlim_max;
	must(setrlimit(RLIMIT_NOFILE, &lim), "setrlimit");
	for (int i = 0; i < n; i++)
		must(eventfd((unsigned)i, EFD_NONBLOCK), "eventfd");
	wait_for_go();
	for (int i = 1; i < n; i++) {
		uint64_t count = 0;

		if (read(folder + 1 + i, &count, 8) != 8 || count != (uint64_t)i)
			lost("descriptor %d has %llu", folder + 1 + i, (unsigned long long)count);
	}
}
static void descriptors_3000(void)
{
	many_descriptors(3000);
}
static void descriptors_5000(void)
{
	many_descriptors(5000);
}

static void epoll_of_epolls(void)
{
	int inner = must(epoll_create1(0), "epoll"), middle = must(epoll_create1(0), "epoll"),
	    outer = must(epoll_create1(0), "epoll"), event = must(eventfd(0, 0), "eventfd");
	struct epoll_event want = { .events = EPOLLIN, .data.u64 = 77 }, got = { 0 };

	must(epoll_ctl(inner, EPOLL_CTL_ADD, event, &want), "epoll_ctl");
	must(epoll_ctl(middle, EPOLL_CTL_ADD, inner, &want), "epoll_ctl");
	must(epoll_ctl(outer, EPOLL_CTL_ADD, middle, &want), "epoll_ctl");
	wait_for_go();
	if (epoll_wait(outer, &got, 1, 0) != 0)
		lost("an event that did not happen");
	must(write(event, "\1\0\0\0\0\0\0\0", 8), "write");
	if (epoll_wait(outer, &got, 1, 1000) != 1 || got.data.u64 != 77)
		lost("the event of the innermost");
}

static void descriptor_in_flight(void)
{
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pair[2], event = must(eventfd(9, 0), "eventfd");
	uint64_t count;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &event, sizeof(int));
	must(sendmsg(pair[0], &m, 0), "sendmsg");
	close(event);
	wait_for_go();
	m.msg_controllen = sizeof(control);
	must(recvmsg(pair[1], &m, 0), "recvmsg");
	c = CMSG_FIRSTHDR(&m);
	if (!c)
		lost("the descriptor in flight");
	memcpy(&event, CMSG_DATA(c), sizeof(int));
	if (read(event, &count, 8) != 8 || count != 9)
		lost("the content of the descriptor in flight");
}

/* ---- threads and processes ---- */

static void *sleeps(void *arg)
{
	while (!may_go())
		usleep(100000);
	return arg;
}

static void threads_600(void)
{
	pthread_attr_t small;
	pthread_t t;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32768);
	for (int i = 0; i < 600; i++)
		if (pthread_create(&t, &small, sleeps, NULL) != 0)
			lost("thread %d could not be created", i);
	wait_for_go();
}

static void *ends_at_once(void *arg)
{
	return arg;
}

static void threads_that_end(void)
{
	put("ready", "");
	while (!may_go()) {
		pthread_t t;

		if (pthread_create(&t, NULL, ends_at_once, NULL) == 0)
			pthread_join(t, NULL);
	}
}

static void *leader_has_ended(void *arg)
{
	wait_for_go();
	put("result", "ok");
	_exit(0);
	return arg;
}

static void without_its_first_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, leader_has_ended, NULL);
	pthread_exit(NULL);
}

static void in_vfork(void)
{
	int status, pid = vfork();

	if (pid == 0) {
		put("ready", "");
		/* The capture waits for it. */
		for (int i = 0; i < 50 && !may_go(); i++)
			usleep(10000);
		execl("/bin/sh", "sh", "-c", "exit 7", NULL);
		_exit(1);
	}
	must(pid, "vfork");
	must(waitpid(pid, &status, 0), "waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
		lost("the status of the child");
	while (!may_go())
		usleep(10000);
}

static void children_that_end(void)
{
	put("ready", "");
	while (!may_go()) {
		int status, pid = must(fork(), "fork");

		if (pid == 0)
			_exit(3);
		must(waitpid(pid, &status, 0), "waitpid");
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
			lost("the status of a child");
	}
}

static void traced(void)
{
	int pid = must(fork(), "fork"), status;

	if (pid == 0) {
		while (!may_go())
			usleep(10000);
		_exit(0);
	}
	must(ptrace(PTRACE_SEIZE, pid, 0, 0), "PTRACE_SEIZE");
	wait_for_go();
	must(waitpid(pid, &status, __WALL), "waitpid");
}

static void fork_bomb(void)
{
	put("ready", "");
	while (!may_go()) {
		int pid = fork();

		if (pid < 0)
			usleep(1000);
		if (pid == 0 && fork() == 0)
			usleep(100000);
		if (pid == 0)
			_exit(0);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

/* No process of the box can make another one. */
static void all_pids(void)
{
	int child[1000], n = 0;

	char byte;

	while (n < 1000 && (child[n] = fork()) >= 0) {
		if (!child[n])
			for (;;)
				pause();
		n++;
	}
	/* No process can read or write files for a client. */
	must(write(1, "ready\n", 6), "write");
	must(read(0, &byte, 1), "read");
	while (n--)
		kill(child[n], SIGKILL);
}

static void memory(void)
{
	enum { MIB = 200 };
	char *all = mmap(NULL, (size_t)MIB << 20, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < (size_t)MIB << 20; i += 4096)
		all[i] = (char)(i >> 12);
	wait_for_go();
	for (size_t i = 0; i < (size_t)MIB << 20; i += 4096)
		if (all[i] != (char)(i >> 12))
			lost("page %zu", i >> 12);
}

static const struct {
	const char *name;
	void (*run)(void);
} programs[] = {
	{ "handler", in_a_handler },
	{ "sigreturn", in_sigreturn },
	{ "pending", blocked_and_pending },
	{ "pause", in_pause },
	{ "sigsuspend", in_sigsuspend },
	{ "pdeathsig", parent_death_signal },
	{ "onepage", stack_of_one_page },
	{ "nohole", no_hole },
	{ "mappings", many_mappings },
	{ "sysv", system_v_memory },
	{ "closed", closed_descriptors },
	{ "nofolder", no_working_folder },
	{ "fds3000", descriptors_3000 },
	{ "fds5000", descriptors_5000 },
	{ "epolls", epoll_of_epolls },
	{ "inflight", descriptor_in_flight },
	{ "threads600", threads_600 },
	{ "threadsend", threads_that_end },
	{ "noleader", without_its_first_thread },
	{ "vfork", in_vfork },
	{ "children", children_that_end },
	{ "traced", traced },
	{ "bomb", fork_bomb },
	{ "pids", all_pids },
	{ "memory", memory },
};

int main(int argc, char **argv)
{
	name = argc > 1 ? argv[1] : "";
	folder = open(".", O_PATH | O_DIRECTORY);
	for (size_t i = 0; i < LEN(programs); i++) {
		if (strcmp(programs[i].name, name) != 0)
			continue;
		programs[i].run();
		put("result", "ok");
		return 0;
	}
	fprintf(stderr, "hostileprogram: no program '%s'\n", name);
	return 2;
}
