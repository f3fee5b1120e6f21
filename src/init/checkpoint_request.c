/* checkpoint_request.c - /opt/atoll/bin/checkpoint: a program of a box takes a checkpoint of the box.
 * Static and without a libc, as init, so that it runs in every image. It needs no right: the server
 * listens in the network of a box whose field checkpoints.self allows it, and decides.
 * Exit status: 0 taken, its id is the only output; 1 not taken, the reason is on stderr; 2 usage. */
#include "initlib/str.h"
#include "initlib/sys.h"
#include "wire/checkpoint_request.h"
#include <linux/in.h>

#define PATIENCE_NS 5000000000ull /* a box has the port at most a second after it began */
enum { OUT = 1, ERR = 2, WAIT_NS = 50000000 };

_Noreturn void init_main(long *stack);

static void request_print(int fd, const char *text, size_t n)
{
	while (n) {
		long wrote = sys_write(fd, text, n);

		if (wrote <= 0)
			return;
		text += wrote;
		n -= (size_t)wrote;
	}
}

static _Noreturn void request_fail(int status, const char *text)
{
	request_print(ERR, "checkpoint: ", strlen("checkpoint: "));
	request_print(ERR, text, strlen(text));
	request_print(ERR, "\n", 1);
	sys_exit(status);
}

static int request_connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = __builtin_bswap16(CHECKPOINT_REQUEST_PORT),
				  .sin_addr = { __builtin_bswap32(INADDR_LOOPBACK) } };
	uint64_t until = sys_now_ns() + PATIENCE_NS;

	for (;;) {
		int fd = (int)sys_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);

		if (fd < 0)
			request_fail(1, "no socket could be created in this box");
		if (sys_connect(fd, &to, sizeof(to)) == 0)
			return fd;
		sys_close(fd);
		if (sys_now_ns() >= until)
			request_fail(1, "no answer at port 3129 for 5 seconds: this box may not "
					"take checkpoints (field checkpoints.self of the box, "
					"atoll set BOX --checkpoints self), or the daemon is "
					"stopped");
		sys_ppoll(NULL, 0, WAIT_NS);
	}
}

static size_t request_answer(int fd, char *to, size_t room)
{
	size_t n = 0;

	while (n < room) {
		long got = sys_read(fd, to + n, room - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

_Noreturn void init_main(long *stack)
{
	static char line[CHECKPOINT_REQUEST_NAME + 1], answer[CHECKPOINT_REQUEST_ANSWER + 1];
	char **argv = (char **)(stack + 1);
	const char *name = stack[0] > 1 ? argv[1] : "";
	size_t n = strlen(name);
	int fd;

	if (stack[0] > 2 || name[0] == '-')
		request_fail(2, "usage: checkpoint [NAME]: takes a checkpoint of the files of this "
				"box and prints its id");
	if (n > CHECKPOINT_REQUEST_NAME)
		request_fail(2, "the name is longer than 64 bytes");
	memcpy(line, name, n);
	line[n++] = '\n';
	fd = request_connect();
	request_print(fd, line, n);
	n = request_answer(fd, answer, CHECKPOINT_REQUEST_ANSWER);
	if (!n)
		request_fail(1, "the daemon closed the connection without an answer; list the "
				"checkpoints of the box before you try again");
	if (!text_starts(answer, "ok ")) {
		answer[answer[n - 1] == '\n' ? n - 1 : n] = 0;
		request_fail(1, answer);
	}
	request_print(OUT, answer + strlen("ok "), n - strlen("ok "));
	sys_exit(0);
}
