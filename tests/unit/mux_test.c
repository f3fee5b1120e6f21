/* mux_test.c - the rules of the packets between mux and guest stub. */
#include "mux/packet.h"
#include "tap.h"
#include "wire/wire.h"

_Static_assert(PACKET_BODY == WIRE_MAX && PACKET_FDS == WIRE_FDS, "a frame must fit");

static struct packet_state s;

static enum packet_fault give(uint8_t type, unsigned stream, uint32_t bytes, unsigned nfds,
			      const struct packet_fd *fds, const void *body)
{
	struct packet_head h = {
		.bytes = bytes, .stream = (uint16_t)stream, .type = type, .nfds = (uint8_t)nfds
	};

	return packet_take(&s, &h, fds, body);
}

static enum packet_fault hello(uint32_t version, uint32_t generation)
{
	struct packet_hello m = { .version = version, .generation = generation };

	return give(PACKET_HELLO, 0, sizeof(m), 0, NULL, &m);
}

static enum packet_fault resume(uint32_t generation)
{
	struct packet_resume m = { .generation = generation };

	return give(PACKET_RESUME, 0, sizeof(m), 0, NULL, &m);
}

static enum packet_fault grant(unsigned stream, uint64_t n)
{
	return give(PACKET_GRANT, stream, sizeof(n), 0, NULL, &n);
}

static enum packet_fault frame(unsigned stream, uint32_t bytes)
{
	return give(PACKET_FRAME, stream, bytes, 0, NULL, NULL);
}

static enum packet_fault frame_with(unsigned stream, unsigned fd_stream, unsigned kind)
{
	struct packet_fd fd = { .stream = (uint16_t)fd_stream, .kind = (uint8_t)kind };

	return give(PACKET_FRAME, stream, 8, 1, &fd, NULL);
}

static enum packet_fault open_one(unsigned stream, unsigned kind)
{
	struct packet_fd fd = { .stream = (uint16_t)stream, .kind = (uint8_t)kind };

	return give(PACKET_OPEN, stream, 0, 1, &fd, NULL);
}

/* mux with a guest that has answered RESUME, and one connection: stream 1. */
static void at_mux(void)
{
	s = (struct packet_state){ .is_mux = 1, .generation = 1 };
	(void)hello(PACKET_VERSION, 1);
	packet_open(&s, 1, PACKET_SEQPACKET);
}

static void at_guest(void)
{
	s = (struct packet_state){ 0 };
	(void)resume(7);
	(void)open_one(1, PACKET_SEQPACKET);
}

TEST(sizes_out_of_range_are_faults)
{
	static const uint32_t sizes[] = { 0, PACKET_BODY + 1, UINT32_MAX };

	for (unsigned i = 0; i < 3; i++) {
		at_mux();
		CHECK_INT(frame(1, sizes[i]), PACKET_BAD_SIZE);
		at_mux();
		CHECK_INT(give(PACKET_DATA, 1, sizes[i], 0, NULL, NULL), PACKET_BAD_SIZE);
	}
	CHECK_INT(give(PACKET_CLOSE, 1, 1, 0, NULL, NULL), PACKET_BAD_SIZE);
	CHECK_INT(give(PACKET_GRANT, 1, 4, 0, NULL, NULL), PACKET_BAD_SIZE);
	CHECK_INT(give(PACKET_HELLO, 0, 15, 0, NULL, NULL), PACKET_BAD_SIZE);
}

TEST(unknown_types_and_types_of_the_other_side_are_faults)
{
	at_mux();
	CHECK_INT(give(0, 1, 8, 0, NULL, NULL), PACKET_BAD_TYPE);
	CHECK_INT(give(PACKET_TYPES, 1, 8, 0, NULL, NULL), PACKET_BAD_TYPE);
	CHECK_INT(give(255, 1, 8, 0, NULL, NULL), PACKET_BAD_TYPE);
	CHECK_INT(resume(1), PACKET_BAD_TYPE);
	CHECK_INT(open_one(2, PACKET_SEQPACKET), PACKET_BAD_TYPE);
	at_guest();
	CHECK_INT(hello(PACKET_VERSION, 0), PACKET_BAD_TYPE);
}

TEST(hello_missing_twice_or_of_another_version_is_a_fault)
{
	s = (struct packet_state){ .is_mux = 1, .generation = 1 };
	packet_open(&s, 1, PACKET_SEQPACKET);
	CHECK_INT(frame(1, 8), PACKET_BAD_HELLO);
	CHECK_INT(hello(PACKET_VERSION + 1, 1), PACKET_BAD_HELLO);
	CHECK_INT(hello(PACKET_VERSION, 2), PACKET_BAD_HELLO);
	CHECK_INT(hello(PACKET_VERSION, 0), PACKET_GOOD);
	CHECK_INT(hello(PACKET_VERSION, 0), PACKET_BAD_HELLO);
	CHECK_INT(frame(1, 8), PACKET_BAD_HELLO);
	CHECK_INT(hello(PACKET_VERSION, 1), PACKET_GOOD);
	CHECK_INT(hello(PACKET_VERSION, 1), PACKET_BAD_HELLO);
	CHECK_INT(hello(PACKET_VERSION, 0), PACKET_BAD_HELLO);
	CHECK_INT(frame(1, 8), PACKET_GOOD);
}

TEST(a_guest_takes_nothing_before_resume)
{
	s = (struct packet_state){ 0 };
	CHECK_INT(open_one(1, PACKET_SEQPACKET), PACKET_BAD_EARLY);
	CHECK_INT(resume(0), PACKET_BAD_HELLO);
	CHECK_INT(resume(1), PACKET_GOOD);
	CHECK_INT(resume(1), PACKET_BAD_HELLO);
	CHECK_INT(open_one(1, PACKET_SEQPACKET), PACKET_GOOD);
}

TEST(stream_numbers_of_the_other_side_or_in_use_are_faults)
{
	at_mux();
	CHECK_INT(frame_with(1, 3, PACKET_STREAM), PACKET_BAD_STREAM);
	CHECK_INT(frame_with(1, 0, PACKET_STREAM), PACKET_BAD_STREAM);
	CHECK_INT(frame_with(1, PACKET_STREAMS, PACKET_STREAM), PACKET_BAD_STREAM);
	CHECK_INT(frame_with(1, 65534, PACKET_STREAM), PACKET_BAD_STREAM);
	CHECK_INT(frame_with(1, 2, PACKET_STREAM), PACKET_GOOD);
	CHECK_INT(frame_with(1, 2, PACKET_STREAM), PACKET_BAD_STREAM);
	CHECK_INT(frame(65535, 8), PACKET_BAD_STREAM);
	CHECK_INT(frame(0, 8), PACKET_BAD_STREAM);
	at_guest();
	CHECK_INT(open_one(1, PACKET_SEQPACKET), PACKET_BAD_STREAM);
	CHECK_INT(open_one(2, PACKET_SEQPACKET), PACKET_BAD_STREAM);
	CHECK_INT(open_one(3, PACKET_STREAM), PACKET_BAD_FDS);
}

TEST(descriptors_of_wrong_number_or_kind_are_faults)
{
	struct packet_fd fds[2] = { { .stream = 2, .kind = PACKET_STREAM },
				    { .stream = 2, .kind = PACKET_STREAM } };

	at_mux();
	CHECK_INT(give(PACKET_FRAME, 1, 8, 255, fds, NULL), PACKET_BAD_FDS);
	CHECK_INT(give(PACKET_FRAME, 1, 8, 2, fds, NULL), PACKET_BAD_FDS);
	CHECK_INT(give(PACKET_CLOSE, 1, 0, 1, fds, NULL), PACKET_BAD_FDS);
	CHECK_INT(frame_with(1, 4, 0), PACKET_BAD_FDS);
	CHECK_INT(frame_with(1, 4, PACKET_KINDS), PACKET_BAD_FDS);
	CHECK_INT(frame_with(1, 4, 255), PACKET_BAD_FDS);
	CHECK_INT(frame_with(1, 4, PACKET_MEMFD), PACKET_BAD_FDS);
	CHECK_INT(frame_with(1, 4, PACKET_PIPE_READ), PACKET_BAD_FDS);
	at_guest();
	CHECK_INT(frame_with(1, 3, PACKET_LISTENER), PACKET_BAD_FDS);
	CHECK_INT(frame_with(1, 3, PACKET_PIPE_READ), PACKET_GOOD);
}

TEST(ten_thousand_opens_end_at_the_number_of_streams)
{
	unsigned i;

	at_mux();
	for (i = 2; i < PACKET_STREAMS; i += 2) {
		CHECK_INT(frame_with(1, i, PACKET_STREAM), PACKET_GOOD);
		s.streams[1].window = PACKET_WINDOW;
	}
	for (i = 0; i < 10000; i++) {
		CHECK_INT(frame_with(1, i, PACKET_STREAM), PACKET_BAD_STREAM);
		s.streams[1].window = PACKET_WINDOW;
	}
}

TEST(nothing_may_come_after_close)
{
	at_mux();
	CHECK_INT(frame_with(1, 2, PACKET_STREAM), PACKET_GOOD);
	CHECK_INT(give(PACKET_DATA, 2, 5, 0, NULL, NULL), PACKET_GOOD);
	CHECK_INT(give(PACKET_CLOSE, 2, 0, 0, NULL, NULL), PACKET_GOOD);
	CHECK_INT(give(PACKET_DATA, 2, 5, 0, NULL, NULL), PACKET_BAD_STATE);
	CHECK_INT(give(PACKET_CLOSE, 2, 0, 0, NULL, NULL), PACKET_BAD_STATE);
	CHECK_INT(grant(2, 1), PACKET_BAD_STATE);
	CHECK_INT(frame_with(1, 2, PACKET_STREAM), PACKET_BAD_STREAM); /* not closed here yet */
	packet_close(&s, 2);
	CHECK_INT(frame_with(1, 2, PACKET_STREAM), PACKET_GOOD);
}

TEST(packets_in_flight_after_an_own_close_are_no_fault)
{
	at_mux();
	CHECK_INT(frame_with(1, 2, PACKET_STREAM), PACKET_GOOD);
	packet_close(&s, 2);
	CHECK_INT(give(PACKET_DATA, 2, 5, 0, NULL, NULL), PACKET_GOOD);
	CHECK_INT(grant(2, 5), PACKET_BAD_WINDOW); /* nothing was sent */
	CHECK_INT(give(PACKET_CLOSE, 2, 0, 0, NULL, NULL), PACKET_GOOD);
	CHECK_INT(s.streams[2].kind, 0);
}

TEST(after_shutdown_come_no_bytes_but_grants)
{
	at_mux();
	CHECK_INT(frame_with(1, 2, PACKET_STREAM), PACKET_GOOD);
	s.streams[2].credit -= 100;
	CHECK_INT(give(PACKET_SHUTDOWN, 2, 0, 0, NULL, NULL), PACKET_GOOD);
	CHECK_INT(grant(2, 100), PACKET_GOOD);
	CHECK_INT(give(PACKET_SHUTDOWN, 2, 0, 0, NULL, NULL), PACKET_BAD_STATE);
	CHECK_INT(give(PACKET_DATA, 2, 1, 0, NULL, NULL), PACKET_BAD_STATE);
}

TEST(bytes_on_the_wrong_kind_or_direction_are_faults)
{
	at_mux();
	CHECK_INT(give(PACKET_DATA, 1, 5, 0, NULL, NULL), PACKET_BAD_STATE);
	CHECK_INT(give(PACKET_SHUTDOWN, 1, 0, 0, NULL, NULL), PACKET_BAD_STATE);
	packet_open(&s, 3, PACKET_PIPE_READ);
	packet_open(&s, 5, PACKET_PIPE_WRITE);
	packet_open(&s, 7, PACKET_MEMFD);
	CHECK_INT(give(PACKET_DATA, 3, 5, 0, NULL, NULL), PACKET_BAD_STATE);
	CHECK_INT(give(PACKET_DATA, 5, 5, 0, NULL, NULL), PACKET_GOOD);
	CHECK_INT(give(PACKET_DATA, 7, 5, 0, NULL, NULL), PACKET_BAD_STATE);
	CHECK_INT(frame(3, 5), PACKET_BAD_STATE);
	CHECK_INT(frame_with(1, 2, PACKET_LISTENER), PACKET_GOOD);
	CHECK_INT(frame(2, 5), PACKET_BAD_STATE);
	CHECK_INT(grant(2, 5), PACKET_BAD_STATE);
}

TEST(more_bytes_than_the_window_are_a_fault)
{
	uint32_t frames = PACKET_WINDOW / (PACKET_BODY + PACKET_COST), i;

	at_mux();
	for (i = 0; i < frames; i++)
		CHECK_INT(frame(1, PACKET_BODY), PACKET_GOOD);
	CHECK_INT(frame(1, PACKET_BODY), PACKET_BAD_WINDOW);
	at_mux();
	for (i = 0; i < PACKET_WINDOW / (1 + PACKET_COST); i++)
		CHECK_INT(frame(1, 1), PACKET_GOOD);
	CHECK_INT(frame(1, 1), PACKET_BAD_WINDOW); /* small frames cost memory, too */
}

TEST(a_grant_of_more_than_was_sent_is_a_fault)
{
	static const uint64_t grants[] = { 0, 1, 1ull << 63, UINT64_MAX, PACKET_WINDOW + 1ull };

	for (unsigned i = 0; i < 5; i++) {
		at_mux();
		CHECK_INT(grant(1, grants[i]), PACKET_BAD_WINDOW);
	}
	s.streams[1].credit = PACKET_WINDOW - 10;
	CHECK_INT(grant(1, 10), PACKET_GOOD);
	CHECK_INT(s.streams[1].credit, PACKET_WINDOW);
}

TEST(a_file_is_attached_after_its_content)
{
	at_guest();
	CHECK_INT(frame_with(1, 3, PACKET_MEMFD), PACKET_BAD_STREAM);
	CHECK_INT(open_one(3, PACKET_MEMFD), PACKET_GOOD);
	CHECK_INT(give(PACKET_DATA, 3, 5, 0, NULL, NULL), PACKET_GOOD);
	CHECK_INT(frame_with(1, 3, PACKET_MEMFD), PACKET_BAD_STATE);
	CHECK_INT(give(PACKET_SHUTDOWN, 3, 0, 0, NULL, NULL), PACKET_GOOD);
	CHECK_INT(frame_with(1, 3, PACKET_MEMFD), PACKET_GOOD);
	CHECK_INT(give(PACKET_CLOSE, 3, 0, 0, NULL, NULL), PACKET_GOOD);
}

TEST(accepted_connections_come_on_a_listener_only)
{
	struct packet_fd fd = { .stream = 4, .kind = PACKET_STREAM };

	at_mux();
	CHECK_INT(give(PACKET_ACCEPT, 1, 0, 1, &fd, NULL), PACKET_BAD_STATE);
	CHECK_INT(frame_with(1, 2, PACKET_LISTENER), PACKET_GOOD);
	CHECK_INT(give(PACKET_ACCEPT, 2, 0, 1, &fd, NULL), PACKET_GOOD);
	CHECK_INT(give(PACKET_ACCEPT, 2, 0, 1, &fd, NULL), PACKET_BAD_STREAM);
	fd.kind = PACKET_SEQPACKET;
	fd.stream = 6;
	CHECK_INT(give(PACKET_ACCEPT, 2, 0, 1, &fd, NULL), PACKET_BAD_FDS);
}

TEST(numbers_are_given_out_until_none_is_free)
{
	unsigned i, n;

	s = (struct packet_state){ .is_mux = 1 };
	n = packet_free_numbers(&s);
	for (i = 0; i < n; i++) {
		unsigned number = packet_free_number(&s);

		CHECK(number % 2 == 1 && number < PACKET_STREAMS);
		packet_open(&s, number, PACKET_SEQPACKET);
	}
	CHECK_INT(packet_free_number(&s), 0);
	s = (struct packet_state){ .is_mux = 0 };
	CHECK_INT(packet_free_number(&s), 2);
}

TEST(every_fault_has_a_reason)
{
	int i;

	for (i = 1; i < PACKET_FAULTS; i++)
		CHECK(packet_reason(PACKET_EXIT + i) &&
		      !strncmp(packet_reason(PACKET_EXIT + i), "mux: ", 5));
	CHECK(!packet_reason(0) && !packet_reason(70) && !packet_reason(PACKET_EXIT) &&
	      !packet_reason(PACKET_EXIT + PACKET_FAULTS) && !packet_reason(-1));
}
