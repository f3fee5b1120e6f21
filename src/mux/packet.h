/* packet.h - the packets between mux and guest stub, and the rules that each of them must obey.
 * Owns: the state of every stream as the protocol sees it. packet_take() is a pure function of that
 * state and one packet: no descriptor, no system call, no memory of its own. Freestanding; the keeper
 * and tests link it too. docs/tiers.md describes the sequences.
 *
 *   head   struct packet_head
 *   fds    head.nfds times struct packet_fd
 *   body   head.bytes bytes, at most PACKET_BODY
 *
 * A stream is one descriptor at each end. Both ends can close it: its number is free again after
 * CLOSE was sent and received. */
#pragma once
#include <stdint.h>

#define PACKET_VERSION 1
#define PACKET_BODY 65536          /* most bytes of one packet; also WIRE_MAX */
#define PACKET_FDS 8               /* most descriptors of one packet; also WIRE_FDS */
#define PACKET_STREAMS 512         /* numbers; 0 is the channel itself */
#define PACKET_WINDOW (256u << 10) /* bytes that may be in flight on one stream */
#define PACKET_COST 64             /* a frame counts as so many bytes more */
#define PACKET_FILE (16u << 20)    /* most bytes of a MEMFD */
#define PACKET_FIRST 1             /* the stream of the first connection */

struct packet_head {
	uint32_t bytes; /* of the body */
	uint16_t stream;
	uint8_t type; /* enum packet_type */
	uint8_t nfds;
};

struct packet_fd {
	uint16_t stream;
	uint8_t kind; /* enum packet_kind */
	uint8_t zero;
};

#define PACKET_HEAD (sizeof(struct packet_head) + PACKET_FDS * sizeof(struct packet_fd))

/* clang-format off */
enum packet_type {
	PACKET_HELLO = 1, /* guest, stream 0: struct packet_hello. At its start, and after RESUME */
	PACKET_RESUME,    /* mux, stream 0: struct packet_resume. The first packet of mux */
	PACKET_OPEN,      /* mux; nfds 1: this stream, SEQPACKET (a client has connected) or MEMFD */
	PACKET_FRAME,     /* one frame on a SEQPACKET stream; each of its descriptors is a new stream, or a complete MEMFD */
	PACKET_ACCEPT,    /* guest, on a LISTENER; nfds 1: the connection, a new STREAM */
	PACKET_DATA,      /* bytes */
	PACKET_SHUTDOWN,  /* the sender sends no more bytes on this stream */
	PACKET_CLOSE,     /* the sender has closed its descriptor; it sends nothing more on this stream */
	PACKET_GRANT,     /* uint64_t: the sender takes so many more bytes on this stream */
	PACKET_TYPES
};

enum packet_kind {
	PACKET_SEQPACKET = 1, /* frames, both ways: a client of init or of a file worker */
	PACKET_STREAM,        /* bytes, both ways: a port */
	PACKET_PIPE_READ,     /* bytes from mux: the guest's end is a pipe to read from */
	PACKET_PIPE_WRITE,    /* bytes to mux: the guest's end is a pipe to write to */
	PACKET_LISTENER,      /* a listening socket; the guest stub accepts */
	PACKET_MEMFD,         /* a file that is copied; from mux only */
	PACKET_KINDS
};
/* clang-format on */

enum packet_feature {                                  /* bits of packet_hello.features */
		      PACKET_FEATURE_PID_NS = 1 << 0,  /* init is PID 1 of a pid namespace */
		      PACKET_FEATURE_AMBIENT = 1 << 1, /* init has an id of its own */
		      PACKET_FEATURE_NO_NEW_PRIVS =
			      1 << 2, /* no program can gain privileges by exec */
};

struct packet_hello {
	uint32_t version;    /* PACKET_VERSION */
	uint32_t generation; /* that of the last RESUME; 0: none yet */
	uint64_t features;
};

struct packet_resume {
	uint64_t realtime_ns;
	uint32_t generation; /* not 0 */
	uint32_t pad;
	uint8_t random[64];
};

enum packet_fault {
	PACKET_GOOD,
	PACKET_BAD_SIZE,
	PACKET_BAD_TYPE,
	PACKET_BAD_FDS,     /* their number, kinds, or a stream twice */
	PACKET_BAD_STREAM,  /* a number of the other side, in use, or out of range */
	PACKET_BAD_STATE,   /* not open, or after its end */
	PACKET_BAD_WINDOW,  /* more bytes than granted, or a grant that is too large */
	PACKET_BAD_HELLO,   /* missing, twice, or another version */
	PACKET_BAD_EARLY,   /* a packet before RESUME */
	PACKET_CUT,         /* the channel ended inside a packet */
	PACKET_NO_MEMORY,   /* no memory for bytes that a reader has not taken */
	PACKET_NO_CGROUPS,  /* JOIN_CGROUPS: the engine runs already */
	PACKET_NO_ZYGOTE,   /* ZYGOTE with a descriptor: it cannot be passed on */
	PACKET_NO_ENGINE,   /* the engine could not be started */
	PACKET_ENGINE_DIED, /* it was ended by a signal or with a status */
	PACKET_FAULTS
};

enum { PACKET_EXIT = 96 }; /* exit status of mux: PACKET_EXIT + enum packet_fault */

struct packet_stream {
	uint8_t kind;        /* 0: the number is free */
	uint8_t ended;       /* the peer has sent SHUTDOWN */
	uint8_t peer_closed; /* the peer has sent CLOSE */
	uint8_t closed;      /* this end has sent CLOSE, or is about to: packets are dropped */
	uint32_t window;     /* bytes that the peer may still send */
	uint32_t credit;     /* bytes that this end may still send */
};

struct packet_state {
	uint8_t is_mux;      /* 1: this end is mux, packets come from the guest; 0: the reverse */
	uint8_t greeted;     /* mux: HELLO arrived before RESUME, once */
	uint32_t generation; /* mux: of the RESUME that was sent; guest: that arrived. 0: none */
	uint32_t answered;   /* mux: of the last HELLO */
	struct packet_stream streams[PACKET_STREAMS];
};

/* The size of head and fds is known to be right when this returns 0; the body may still be on its
 * way. */
int packet_check_head(const struct packet_head *h);
/* Checks a complete packet against the state, and changes the state: PACKET_GOOD, or the fault (the
 * state is then of no use). */
enum packet_fault packet_take(struct packet_state *s, const struct packet_head *h,
			      const struct packet_fd *fds, const void *body);

/* A free number of this end, or 0. Numbers of mux are odd, of the guest even. */
unsigned packet_free_number(const struct packet_state *s);
unsigned packet_free_numbers(const struct packet_state *s);
void packet_open(struct packet_state *s, unsigned number, enum packet_kind kind);
void packet_close(struct packet_state *s, unsigned number); /* CLOSE is sent */

uint32_t packet_cost(uint8_t type, uint32_t bytes);            /* of the window */
int packet_sends(const struct packet_state *s, unsigned kind); /* does this end send bytes there? */
const char *packet_reason(int status); /* of an exit status of mux; NULL: it is none of these */
