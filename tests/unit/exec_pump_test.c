/* exec_pump_test.c - output of a box is passed on, or rejected if it violates the protocol.
 * The test plays init: its frames are in the socket before the pump reads. */
#include "client/exec_pump.h"
#include "base/cleanup.h"
#include "tap.h"
#include "wire/sock.h"

#include <sys/socket.h>

enum { REF = 7 };

static const char *const argv[] = { "prog", NULL };
static const struct box_command command = { .argv = argv };

struct play {
	int theirs; /* the box's end */
	struct box_handle box;
	struct exec_pump stream;
	struct buf out, err;
	struct err e;
};

static void begin(struct play *p)
{
	int pair[2];

	*p = (struct play){ 0 };
	if (sock_pair(pair, &p->e) < 0)
		return;
	p->theirs = pair[0];
	p->box = (struct box_handle){ .init = pair[1], .next_ref = REF };
	exec_pump_init(&p->stream, &p->box);
	p->stream.in = -1;
	for (int i = 0; i < 2; i++) {
		p->stream.out[i].fd = -1;
		p->stream.out[i].keep = i ? &p->err : &p->out;
		p->stream.out[i].keep_max = 1000;
	}
}

static void finish(struct play *p)
{
	close(p->theirs);
	boxh_close(&p->box);
	exec_pump_fini(&p->stream);
	buf_fini(&p->out);
	buf_fini(&p->err);
}

static int output(struct play *p, uint32_t stream, uint64_t offset, const char *bytes, size_t n)
{
	struct wire_output f = { sock_head(WIRE_OUTPUT, REF), .stream = stream, .offset = offset };

	return sock_send(p->theirs, &f, sizeof(f), bytes, n, NULL, 0, &p->e);
}

static int over(struct play *p, int status)
{
	struct wire_exit f = { sock_head(WIRE_EXIT, REF), .why = WIRE_WHY_EXIT, .status = status };

	return sock_send(p->theirs, &f, sizeof(f), NULL, 0, NULL, 0, &p->e);
}

static int run(struct play *p)
{
	return exec_pump_run(&p->stream, &command, &p->e);
}

TEST(both_streams_arrive_and_the_exit_ends_the_pump)
{
	struct play p;

	begin(&p);
	CHECK_INT(output(&p, 0, 0, "hello ", 6) | output(&p, 1, 0, "oh", 2), 0);
	CHECK_INT(output(&p, 0, 6, "world", 5) | over(&p, 3), 0);
	CHECK_INT(run(&p), 0);
	CHECK_STR(buf_str(&p.out), "hello world");
	CHECK_STR(buf_str(&p.err), "oh");
	CHECK_INT(p.stream.end, STREAM_EXITED);
	CHECK_INT(p.stream.exit.status, 3);
	finish(&p);
}

TEST(frames_of_another_exec_are_ignored)
{
	struct wire_exit other = { sock_head(WIRE_EXIT, REF + 1), .status = 9 };
	struct play p;

	begin(&p);
	CHECK_INT(sock_send(p.theirs, &other, sizeof(other), NULL, 0, NULL, 0, &p.e), 0);
	CHECK_INT(over(&p, 0), 0);
	CHECK_INT(run(&p), 0);
	CHECK_INT(p.stream.exit.status, 0);
	finish(&p);
}

TEST(end_of_file_without_an_exit_means_that_the_box_died)
{
	struct play p;

	begin(&p);
	CHECK_INT(output(&p, 0, 0, "last", 4), 0);
	shutdown(p.theirs, SHUT_WR);
	CHECK_INT(run(&p), 0);
	CHECK_STR(buf_str(&p.out), "last");
	CHECK_INT(p.stream.end, STREAM_BOX_DIED);
	CHECK_INT(p.stream.exited, 0);
	finish(&p);
}

TEST(a_box_that_died_before_the_request_is_a_result)
{
	struct play p;

	begin(&p);
	shutdown(p.theirs, SHUT_RDWR);
	CHECK_INT(run(&p), 0);
	CHECK_INT(p.stream.end, STREAM_BOX_DIED);
	finish(&p);
}

TEST(output_over_the_limit_is_counted)
{
	char many[1500];
	struct play p;

	memset(many, 'x', sizeof(many));
	begin(&p);
	CHECK_INT(output(&p, 0, 0, many, sizeof(many)) | over(&p, 0), 0);
	CHECK_INT(run(&p), 0);
	CHECK_INT(p.out.len, 1000);
	CHECK_INT(p.stream.out[0].dropped, 500);
	finish(&p);
}

TEST(a_jump_in_the_offset_counts_as_dropped_bytes)
{
	struct play p;

	begin(&p);
	CHECK_INT(output(&p, 0, 0, "a", 1) | output(&p, 0, 11, "b", 1) | over(&p, 0), 0);
	CHECK_INT(run(&p), 0);
	CHECK_STR(buf_str(&p.out), "ab");
	CHECK_INT(p.stream.out[0].dropped, 10);
	finish(&p);
}

static int refused(uint32_t stream, uint64_t offset, size_t n)
{
	static const char bytes[1000];
	struct play p;
	int rc;

	begin(&p);
	rc = output(&p, stream, offset, bytes, n) == 0 && run(&p) < 0 && p.e.kind == ERR_INVALID;
	finish(&p);
	return rc;
}

TEST(output_beyond_the_credit_is_refused)
{
	CHECK(refused(0, STREAM_WINDOW, 1));
	CHECK(refused(1, STREAM_WINDOW - 10, 11));
	CHECK(refused(0, UINT64_MAX - 100, 101)); /* the sum wraps to zero */
	CHECK(refused(0, UINT64_MAX, 1000));
}

TEST(a_third_stream_is_refused)
{
	CHECK(refused(2, 0, 1));
	CHECK(refused(UINT32_MAX, 0, 1));
}

TEST(repeated_output_is_rejected)
{
	struct play p;

	begin(&p);
	CHECK_INT(output(&p, 0, 0, "abc", 3) | output(&p, 0, 2, "c", 1), 0);
	CHECK_INT(run(&p), -1);
	finish(&p);
}

TEST(an_invalid_frame_ends_the_pump)
{
	struct play p;

	begin(&p);
	CHECK_INT(send(p.theirs, "garbage", 7, 0), 7);
	CHECK_INT(run(&p), -1);
	CHECK_INT(p.e.kind, ERR_INVALID);
	finish(&p);
}

TEST(an_error_of_init_is_returned)
{
	struct wire_error f = { sock_head(WIRE_ERROR, REF), .kind = ERR_LIMIT,
				.msg = "no\033 more" };
	struct play p;

	begin(&p);
	CHECK_INT(sock_send(p.theirs, &f, sizeof(f), NULL, 0, NULL, 0, &p.e), 0);
	CHECK_INT(run(&p), -1);
	CHECK_STR(p.e.msg, "no? more");
	finish(&p);
}

TEST(credit_is_renewed_in_half_windows)
{
	static char many[60000];
	struct wire_output_window last = { 0 };
	struct play p;
	char buf[WIRE_MAX];
	unsigned credits = 0;
	uint64_t at = 0;

	begin(&p);
	for (; at < 3 * sizeof(many); at += sizeof(many))
		CHECK_INT(output(&p, 0, at, many, sizeof(many)), 0);
	CHECK_INT(over(&p, 0), 0);
	CHECK_INT(run(&p), 0);
	shutdown(p.box.init, SHUT_WR);
	for (;;) {
		unsigned nfds = 0;
		int n = sock_recv(p.theirs, buf, NULL, &nfds, &p.e);

		if (n <= 0)
			break;
		if (((struct frame *)buf)->type != WIRE_OUTPUT_WINDOW)
			continue;
		memcpy(&last, buf, sizeof(last));
		credits++;
	}
	CHECK_INT(credits, 1);
	CHECK(last.until > STREAM_WINDOW && last.until <= at + STREAM_WINDOW);
	finish(&p);
}

TEST(arguments_too_long_for_execve_are_rejected_before_sending)
{
	static char one[BOX_STRING_MAX + 1];
	const char *const list[] = { "prog", one, NULL };
	struct box_command cmd = { .argv = list };
	struct play p;
	uint32_t ref;

	memset(one, 'x', sizeof(one) - 1);
	begin(&p);
	CHECK_INT(boxh_start(&p.box, &cmd, &ref, &p.e), -1);
	CHECK_INT(p.e.kind, ERR_LIMIT);
	one[BOX_STRING_MAX - 1] = 0;
	CHECK_INT(boxh_start(&p.box, &cmd, &ref, &p.e), 0);
	finish(&p);
}

TEST(long_arguments_are_sent_as_a_sealed_memfd)
{
	static char one[100000];
	const char *const list[] = { "prog", one, NULL };
	struct box_command cmd = { .argv = list };
	char buf[WIRE_MAX];
	struct wire_start *start = (struct wire_start *)buf;
	struct play p;
	unsigned nfds = 1;
	uint32_t ref;
	int fd = -1;

	memset(one, 'x', sizeof(one) - 1);
	begin(&p);
	CHECK_INT(boxh_start(&p.box, &cmd, &ref, &p.e), 0);
	CHECK_INT(sock_recv(p.theirs, buf, &fd, &nfds, &p.e), sizeof(struct wire_start));
	CHECK(start->head.flags & WIRE_START_MEMFD);
	CHECK_INT(nfds, 1);
	CHECK_INT(lseek(fd, 0, SEEK_END), start->tail_bytes);
	CHECK_INT(ftruncate(fd, 0), -1);
	close(fd);
	finish(&p);
}
