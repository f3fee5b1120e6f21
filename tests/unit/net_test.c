/* net_test.c - network namespaces that were created in advance, and the check that they are
 * clean. Needs root; tests/escape/network.sh tests them in boxes. */
#include "jail/net.h"
#include "base/cleanup.h"
#include "tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

static int proc = -1, home = -1;
static struct net_text one, other;
static struct err e;

static int ready(void)
{
	if (geteuid() != 0)
		return 0;
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return proc >= 0 && home >= 0;
}

/* A socket in it, on which a datagram was sent to the socket itself if `sends`. */
static int socket_in(int ns, int sends)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(80),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = -1;

	if (setns(ns, CLONE_NEWNET) < 0)
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    (sends && sendto(fd, "x", 1, 0, (struct sockaddr *)&at, sizeof(at)) != 1))
		own_close_fd(&fd);
	return setns(home, CLONE_NEWNET) < 0 ? -1 : fd;
}

TEST(two_new_network_namespaces_have_the_same_fingerprint)
{
	auto_fd int a = -1, b = -1;
	int busy[12];

	if (!ready())
		SKIP("not root");
	a = net_make(proc, &e);
	b = net_make(proc, &e);
	CHECK(a >= 0 && b >= 0);
	CHECK_INT(net_read(proc, a, &one, &e), 0);
	for (unsigned i = 0; i < ARRAY_LEN(busy);
	     i++) { /* TCP sockets are counted for the whole host, too */
		busy[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		(void)!listen(busy[i], 1);
	}
	CHECK_INT(net_read(proc, b, &other, &e), 0);
	for (unsigned i = 0; i < ARRAY_LEN(busy); i++)
		close(busy[i]);
	CHECK(net_same(&one, &other));
}

TEST(the_thread_returns_to_its_network_namespace)
{
	char before[64] = "", after[64] = "";
	auto_fd int ns = -1;

	if (!ready())
		SKIP("not root");
	CHECK(readlink("/proc/thread-self/ns/net", before, sizeof(before) - 1) > 0);
	ns = net_make(proc, &e);
	CHECK_INT(net_read(proc, ns, &one, &e), 0);
	CHECK(readlink("/proc/thread-self/ns/net", after, sizeof(after) - 1) > 0);
	CHECK_STR(after, before);
}

TEST(an_open_socket_changes_the_fingerprint_and_a_closed_one_does_not)
{
	auto_fd int ns = -1, held = -1;

	if (!ready())
		SKIP("not root");
	ns = net_make(proc, &e);
	CHECK_INT(net_read(proc, ns, &one, &e), 0);
	held = socket_in(ns, 0);
	CHECK(held >= 0); /* on port 80, which needs no root here */
	CHECK_INT(net_read(proc, ns, &other, &e), 0);
	CHECK(!net_same(&one, &other));
	own_close_fd(&held);
	CHECK_INT(net_read(proc, ns, &other, &e), 0);
	CHECK(net_same(&one, &other));
}

TEST(one_packet_changes_the_fingerprint_permanently)
{
	auto_fd int ns = -1, sent = -1;

	if (!ready())
		SKIP("not root");
	ns = net_make(proc, &e);
	CHECK_INT(net_read(proc, ns, &one, &e), 0);
	sent = socket_in(ns, 1);
	CHECK(sent >= 0);
	own_close_fd(&sent);
	CHECK_INT(net_read(proc, ns, &other, &e), 0);
	CHECK(!net_same(&one, &other));
}

TEST(kept_open_files_give_the_same_fingerprint_as_newly_opened_ones)
{
	auto_fd int ns = -1, held = -1;
	struct net_files files;

	if (!ready())
		SKIP("not root");
	ns = net_make(proc, &e);
	CHECK_INT(net_open(proc, ns, &files, &e), 0);
	for (int sends = 0; sends < 2; sends++) { /* nothing yet; a socket; a packet */
		CHECK_INT(net_read(proc, ns, &one, &e), 0);
		CHECK_INT(net_look(&files, &other, &e), 0);
		CHECK(one.len > 1000 && net_same(&one, &other));
		own_close_fd(&held);
		held = socket_in(ns, sends);
		CHECK(held >= 0);
		CHECK_INT(net_look(&files, &other, &e), 0);
		CHECK(!net_same(&one, &other));
	}
	CHECK_INT(net_read(proc, ns, &one, &e), 0);
	CHECK(net_same(&one, &other));
	net_close(&files);
	CHECK_INT(net_look(&files, &other, &e), -1);
}

TEST(a_descriptor_that_is_no_network_namespace_is_rejected)
{
	auto_fd int ns = -1;

	if (!ready())
		SKIP("not root");
	ns = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
	CHECK_INT(net_read(proc, ns, &one, &e), -1);
	CHECK_INT(net_read(proc, -1, &one, &e), -1);
}
