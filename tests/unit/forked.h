/* forked.h - tests that change the process they run in.
 *
 *	TEST_FORKED(a_filtered_process_cannot_unshare)
 *	{
 *		...			CHECK and SKIP as usual; the rest of the file is not affected
 *	}
 *
 * The body runs in a child. Its result is returned through a shared page, so that it can end
 * under any filter that lets a process exit. A child that dies is a test that failed. */
#pragma once
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_FORKED(name)                                                                          \
	static void name##_in_child(void);                                                         \
	TEST(name)                                                                                 \
	{                                                                                          \
		forked_run(name##_in_child);                                                       \
	}                                                                                          \
	static void name##_in_child(void)

static void forked_run(void (*body)(void))
{
	static struct {
		enum tap_result result;
		char why[200];
	} * shared;
	int status;
	pid_t pid;

	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		body();
		shared->result = tap_now;
		snprintf(shared->why, sizeof(shared->why), "%s", tap_why);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		printf("# the child died of %s\n", strsignal(WTERMSIG(status)));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	tap_now = shared->result;
	tap_why = shared->why;
}

/* Runs body in a child, which exits with its result; returns the status of waitpid(). */
__attribute__((unused)) static int forked_status(int (*body)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(body());
	if (pid > 0)
		waitpid(pid, &status, 0);
	return status;
}

#define CHECK_FAILS(call, error)                                                                   \
	do {                                                                                       \
		long result_;                                                                      \
		errno = 0;                                                                         \
		result_ = (long)(call);                                                            \
		if (result_ != -1 || errno != (error)) {                                           \
			printf("# %s:%d: %s gave %ld (%s), not %s\n", __FILE__, __LINE__, #call,   \
			       result_, strerror(errno), strerror(error));                         \
			tap_now = TAP_NOT_OK;                                                      \
			return;                                                                    \
		}                                                                                  \
	} while (0)
