/* net.c - see net.h. */
#include "jail/net.h"
#include "base/cleanup.h"
#include "jail/steps.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Counters never decrease, so a counter with the value of a new namespace was not used. */
const struct net_row net_rows[NET_ROWS] = {
	{ "dev", "interfaces, and every byte that went over lo" },
	{ "sockstat", "sockets that a process still holds; connections in TIME_WAIT" },
	{ "snmp", "packets that were sent, or could not be: IP, ICMP, TCP, UDP" },
	{ "netstat", "the same in detail, and of TCP's states" },
	{ "snmp6", "the same for IPv6" },
	{ "igmp", "multicast groups" },
	{ "igmp6", "the same for IPv6" },
	{ "rt6_stats", "routes that were looked up for IPv6, and remembered" },
	{ "ip6_flowlabel", "labels that outlive their socket" },
};

static int flags_of_lo(unsigned long call, struct ifreq *ifr, struct err *e)
{
	auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(ifr->ifr_name, "lo", 3);
	if (fd < 0 || ioctl(fd, call, ifr) < 0)
		return err_sys(e, "flags of lo");
	return 0;
}

static int lo_up(struct err *e)
{
	struct ifreq ifr = { .ifr_flags = IFF_UP | IFF_RUNNING };

	if (flags_of_lo(SIOCSIFFLAGS, &ifr, e) < 0 || flags_of_lo(SIOCGIFFLAGS, &ifr, e) < 0)
		return -1;
	return ifr.ifr_flags & IFF_UP ? 0 : err_set(e, ERR_SYS, "lo is down");
}

/* In a namespace that was made before its box, lo is up already: no process of a box may change
 * it. */
int net_loopback(struct launch_ctx *b, struct err *e)
{
	return b->sp->net < 0 ? lo_up(e) : 0;
}

/* The caller states whether the namespace was checked: a used one must not be given to a box. */
int net_unused(struct launch_ctx *b, struct err *e)
{
	if (b->sp->net >= 0 && !b->sp->net_is_clean)
		return err_set(e, ERR_SYS, "this network namespace was not verified clean");
	return 0;
}

/* ---- ahead of a box, on a thread of the keeper's ---- */

static int home_of_thread(int proc, struct err *e)
{
	static _Thread_local int home = -1;

	if (home < 0)
		home = openat(proc, "thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	return home < 0 ? err_sys(e, "open the network namespace of this process") : home;
}

static void go_home(int home)
{
	if (setns(home, CLONE_NEWNET) < 0)
		abort(); /* sockets that this thread opens next would be in a box's network */
}

static int net_furnish(int proc, struct err *e)
{
	auto_fd int ports =
		openat(proc, "sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);
	int ns;

	/* A box's root has CAP_NET_BIND_SERVICE in its own user namespace only. */
	if (ports < 0 || write(ports, "0", 1) != 1)
		return err_sys(e, "ports of a network namespace");
	if (lo_up(e) < 0)
		return -1;
	ns = openat(proc, "thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	return ns < 0 ? err_sys(e, "open a network namespace") : ns;
}

int net_make(int proc, struct err *e)
{
	int home = home_of_thread(proc, e), ns;

	if (home < 0)
		return -1;
	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, "new network namespace");
	ns = net_furnish(proc, e);
	go_home(home);
	return ns;
}

int net_run_inside(int proc, int ns, int (*call)(void *ctx, int inside, struct err *e), void *ctx,
		   struct err *e)
{
	int home = home_of_thread(proc, e), done;
	auto_fd int inside = -1;

	if (home < 0)
		return -1;
	if (setns(ns, CLONE_NEWNET) < 0)
		return err_sys(e, "enter a network namespace");
	inside = openat(proc, "thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	done = inside < 0 ? err_sys(e, "open a network namespace") : call(ctx, inside, e);
	go_home(home);
	return done;
}

/* These are sums over all namespaces. */
static int is_of_all(const char *word, size_t n)
{
	static const char *const words[] = { "orphan", "alloc", "mem" };

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i]) == n && memcmp(words[i], word, n) == 0)
			return 1;
	return 0;
}

/* Removes the number after such a word. Returns the new length. */
static size_t only_of_this(char *text, size_t len)
{
	size_t to = 0, word;
	int skip = 0, next;

	for (size_t from = 0; from < len; from += word + 1) {
		word = 0;
		while (from + word < len && text[from + word] != ' ' && text[from + word] != '\n')
			word++;
		next = is_of_all(text + from, word); /* before it is overwritten */
		if (!skip) {
			memmove(text + to, text + from, word);
			to += word;
		}
		skip = next;
		if (from + word < len)
			text[to++] = text[from + word];
	}
	return to;
}

static int open_all(int proc, struct net_files *out, struct err *e)
{
	auto_fd int dir = openat(proc, "thread-self/net", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_sys(e, "open /proc/net");
	for (unsigned i = 0; i < NET_ROWS; i++) {
		out->fd[i] = openat(dir, net_rows[i].file, O_RDONLY | O_CLOEXEC);
		if (out->fd[i] < 0)
			return err_sys(e, "open /proc/net/%s", net_rows[i].file);
	}
	return 0;
}

int net_open(int proc, int ns, struct net_files *out, struct err *e)
{
	int home = home_of_thread(proc, e), done;

	for (unsigned i = 0; i < NET_ROWS; i++)
		out->fd[i] = -1;
	if (home < 0)
		return -1;
	if (setns(ns, CLONE_NEWNET) < 0)
		return err_sys(e, "enter a network namespace");
	done = open_all(proc, out, e);
	go_home(home);
	if (done < 0)
		net_close(out);
	return done;
}

void net_close(struct net_files *f)
{
	for (unsigned i = 0; i < NET_ROWS; i++)
		own_close_fd(&f->fd[i]);
}

/* The kernel generates the text whenever it is read from the beginning, and returns up to a page
 * at once. */
#define AT_ONCE 4096

/* Reads the whole file; one that is too long is an error. */
static int add_file(int fd, const char *name, struct net_text *out, struct err *e)
{
	size_t from = out->len;
	ssize_t n;

	do {
		n = pread(fd, out->bytes + out->len, sizeof(out->bytes) - out->len,
			  (off_t)(out->len - from));
		out->len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && out->len - from >= AT_ONCE);
	if (n < 0 || out->len == sizeof(out->bytes))
		return err_set(e, ERR_SYS, "/proc/net/%s cannot be read to its end", name);
	if (strcmp(name, "sockstat") == 0)
		out->len = from + only_of_this(out->bytes + from, out->len - from);
	return 0;
}

int net_look(const struct net_files *f, struct net_text *out, struct err *e)
{
	out->len = 0;
	for (unsigned i = 0; i < NET_ROWS; i++)
		if (add_file(f->fd[i], net_rows[i].file, out, e) < 0)
			return -1;
	return 0;
}

int net_read(int proc, int ns, struct net_text *out, struct err *e)
{
	struct net_files f;
	int done;

	if (net_open(proc, ns, &f, e) < 0)
		return -1;
	done = net_look(&f, out, e);
	net_close(&f);
	return done;
}

int net_same(const struct net_text *a, const struct net_text *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}
