/* confine_test.c - what egress and the LLM process may do after they have confined themselves. */
#include "daemon/confine.h"
#include "base/cleanup.h"
#include "forked.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static void enter(void)
{
	uid_t uid = geteuid() == 0 ? 64171 : (uid_t)-1;
	struct err e;

	CHECK(confine_enter_egress(uid, uid, &e) == 0);
}

TEST_FORKED(egress_may_create_only_internet_sockets)
{
	static const int others[] = {
		AF_UNIX, AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK, AF_BLUETOOTH
	};
	struct sockaddr_in at = { .sin_family = AF_INET };
	int tcp;

	enter();
	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(tcp >= 0);
	CHECK(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0);
	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		CHECK_FAILS(socket(others[i], SOCK_STREAM, 0), EPERM);
	CHECK_FAILS(bind(tcp, (struct sockaddr *)&at, sizeof(at)), EPERM);
	CHECK_FAILS(listen(tcp, 1), EPERM);
	CHECK_FAILS(socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){ 0 }), EPERM);
}

/* The kernel reads 32 bits of the family; a filter that reads more could be bypassed. */
TEST_FORKED(upper_bits_of_the_socket_family_are_ignored)
{
	enter();
	CHECK_FAILS(syscall(SYS_socket, AF_VSOCK | 1L << 40, SOCK_STREAM, 0), EPERM);
	CHECK_FAILS(syscall(SYS_socket, AF_UNIX | 1L << 32, SOCK_STREAM, 0), EPERM);
}

TEST_FORKED(egress_cannot_open_files_or_start_programs)
{
	char *argv[] = { "true", NULL };

	enter();
	CHECK_FAILS(open("/etc/hosts", O_RDONLY), EPERM);
	CHECK_FAILS(open("/tmp", O_RDONLY | O_DIRECTORY), EPERM);
	CHECK_FAILS(execv("/bin/true", argv), EPERM);
	CHECK_FAILS(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), EPERM);
	CHECK_FAILS(kill(getppid(), 0), EPERM);
	CHECK_FAILS(syscall(SYS_ptrace, 0, 0, 0, 0), EPERM);
}

/* ---- the process that asks models ---- */

static void enter_model(void)
{
	uid_t uid = geteuid() == 0 ? 64172 : (uid_t)-1;
	struct err e;

	CHECK(confine_enter_llm(uid, uid, &e) == 0);
}

TEST_FORKED(the_llm_process_cannot_open_files_or_start_programs)
{
	char *const argv[] = { "true", NULL };

	enter_model();
	CHECK_FAILS(execve("/bin/true", argv, NULL), EPERM);
	CHECK_FAILS(syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, NULL, 0), EPERM);
	CHECK_FAILS(fork(), EPERM);
	CHECK_FAILS(open("/etc/passwd", O_RDONLY), EPERM);
	CHECK_FAILS(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY), EPERM);
}

TEST_FORKED(the_llm_process_may_connect_but_not_listen)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int tcp;

	enter_model();
	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(tcp >= 0);
	CHECK_FAILS(socket(AF_UNIX, SOCK_STREAM, 0), EPERM);
	CHECK_FAILS(bind(tcp, (struct sockaddr *)&at, sizeof(at)), EPERM);
	CHECK_FAILS(listen(tcp, 1), EPERM);
}
