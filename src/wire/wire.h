/* wire.h - what crosses the borders: client <-> keeper, client <-> init, client <-> file worker.
 *
 * Every border is a SOCK_SEQPACKET unix socket, so one frame is one packet and a dead peer is an
 * end of file. A frame is a struct frame, the fixed body of its type, and for some types a tail of
 * bytes. Both ends run on one machine: integers are native, structs have no padding.
 * docs/wire.md tells the conversations; frame.c holds the one table that checks sizes.
 * This header is freestanding: init has no libc. */
#pragma once
#include <stdint.h>

#define WIRE_VERSION 1
#define WIRE_MAX 65536 /* one frame, everything included */
#define WIRE_FDS 8     /* descriptors that may ride on one frame */
#define WIRE_ID 16     /* box id with its NUL, padded */

struct frame {
	uint8_t version; /* WIRE_VERSION */
	uint8_t type;    /* enum wire_type */
	uint16_t flags;  /* per type */
	uint32_t ref;    /* the exec or the request this is about; chosen by the client */
};

enum wire_type {
	/* client -> keeper */
	WIRE_CREATE = 1, /* struct wire_create -> BOX + one fd, a connection to init; or ERROR */
	WIRE_OPEN,       /* struct wire_id     -> BOX + one fd */
	WIRE_KILL,       /* struct wire_id     -> GONE once nothing of the box is left */
	WIRE_COUNTERS,   /* struct wire_id     -> COUNTED */
	WIRE_BOXES,      /* struct wire_id (list after this id; empty: from the start) -> LISTED */
	WIRE_INFO,       /* nothing            -> ABOUT */
	WIRE_FILL,       /* struct wire_fill: set the pool's depth -> ABOUT when it is reached */
	/* keeper -> client */
	WIRE_BOX = 16, /* struct wire_box + fd */
	WIRE_GONE,     /* struct wire_counted: the last figures of a box that is no more */
	WIRE_COUNTED,  /* struct wire_counted */
	WIRE_LISTED,   /* tail: struct wire_box each; empty: no more */
	WIRE_ABOUT,    /* struct wire_about */
	WIRE_ERROR,    /* struct wire_error; from init and the file worker too */
	/* keeper -> init */
	WIRE_ADOPT = 32, /* fds: write "0" into each to enter the box's cgroups, then drop them */
	WIRE_KEEP,       /* the keeper has recorded you: outlive it */
	/* client -> init */
	WIRE_START = 48, /* struct wire_start, tail: argv, env, cwd; or the tail in one memfd */
	WIRE_SIGNAL,     /* struct wire_signal */
	WIRE_RESIZE,     /* struct wire_resize */
	WIRE_STDIN,      /* tail: bytes; an empty tail closes it */
	WIRE_CREDIT,     /* struct wire_credit: you may send this stream up to this offset */
	WIRE_READ,       /* struct wire_credit with from: (re)attach this connection -> READING */
	WIRE_FORGET,     /* drop a finished exec and its logs */
	WIRE_EXECS,      /* nothing -> one EXEC frame per exec, then DONE */
	WIRE_FILES,      /* flags: WIRE_FILES_*      -> FD, a connection to a file worker */
	WIRE_CONNECT,    /* struct wire_connect      -> FD, a TCP connection made inside */
	WIRE_LEASH,      /* end the box when this connection closes */
	WIRE_STAT,       /* nothing -> STATUS */
	/* init -> client */
	WIRE_STARTED = 64, /* struct wire_started */
	WIRE_OUTPUT,       /* struct wire_output, tail: bytes */
	WIRE_READING,      /* struct wire_reading: the offset that will really be served */
	WIRE_ROOM,         /* struct wire_room: stdin bytes accepted so far + what fits now */
	WIRE_EXIT,         /* struct wire_exit: the exec is over and drained */
	WIRE_EXEC,         /* struct wire_exec */
	WIRE_DONE,         /* end of a listing, or a request without another answer is done */
	WIRE_FD,           /* one fd */
	WIRE_STATUS,       /* struct wire_status */
	/* client -> file worker; every path is seen from inside the box, as the box's user */
	WIRE_PUT = 80,  /* struct wire_put, tail: path; then DATA..., empty DATA -> DONE or ERROR */
	WIRE_GET,       /* struct wire_get, tail: path -> ENTRY, DATA..., empty DATA; or ERROR */
	WIRE_MKDIR,     /* struct wire_put, tail: path, parents made too -> DONE */
	WIRE_REMOVE,    /* tail: path, recursive -> DONE */
	WIRE_MOVE,      /* tail: path NUL path -> DONE */
	WIRE_LINK,      /* tail: target NUL path: a symbolic link -> DONE */
	WIRE_ENTRY_OF,  /* tail: path -> ENTRY */
	WIRE_LIST,      /* tail: path -> ENTRY..., DONE */
	WIRE_CHANGES,   /* struct wire_changes -> ENTRY..., DONE: what the box's upper layer holds */
	WIRE_DATA = 96, /* tail: bytes; empty: end of the file. Both ways */
	WIRE_ENTRY,     /* struct wire_entry, tail: name (path for CHANGES) */
};

/* ---- client <-> keeper ---- */

#define WIRE_DEFAULT UINT64_MAX /* (cut to its size) in any limit: what this host gives when nobody asks */

struct wire_limits { /* every field is honoured or the create is refused; 0: this host has no such limit */
	uint64_t mem_bytes;
	uint64_t disk_bytes;
	uint64_t disk_files;
	uint64_t cpu_ms;    /* CPU time of all processes together; 0: no limit */
	uint32_t cpu_milli; /* thousandths of a CPU */
	uint32_t pids;
};

enum { /* wire_create.head.flags */
	WIRE_CREATE_COLD = 1 << 0, /* not from the pool: everything fresh */
	WIRE_CREATE_IDLE = 1 << 1, /* leave it as pooled boxes are, no limits of its own yet (bench) */
};

struct wire_create {
	struct frame head;
	char template[WIRE_ID * 2];
	struct wire_limits limits;
	uint64_t without; /* test builds: rows of the step table to leave out */
};

struct wire_id {
	struct frame head;
	char id[WIRE_ID];
};

enum { /* flags of WIRE_KILL */
	WIRE_KILL_FIGURES = 1 << 0,  /* read the last counters; costs a little */
	WIRE_KILL_OPERATOR = 1 << 1, /* say so to whoever asks why it ended */
};

struct wire_fill {
	struct frame head;
	uint32_t depth;
	uint32_t pad;
};

enum wire_box_state { WIRE_BOX_MAKING = 1, WIRE_BOX_POOLED, WIRE_BOX_TAKEN, WIRE_BOX_DYING };

struct wire_box {
	struct frame head;
	char id[WIRE_ID];
	char template[WIRE_ID * 2];
	struct wire_limits limits;
	uint64_t layers;     /* bits of enum jail_layer: what is really in force */
	uint64_t created_ns; /* CLOCK_REALTIME */
	uint32_t state;      /* enum wire_box_state */
	uint32_t uid_base;   /* first host uid of its range */
	int32_t init_pid;    /* in the keeper's pid namespace; for show only */
	uint32_t make_us;    /* what the creation cost, pooled or not */
};

struct wire_counted { /* kernel evidence, read from outside the box; ~0: this host cannot tell */
	struct frame head;
	char id[WIRE_ID];
	uint64_t mem_now, mem_peak;
	uint64_t cpu_us;
	uint64_t oom_kills;  /* processes the kernel killed for memory */
	uint64_t mem_hits;   /* times the memory limit was met */
	uint64_t pids_now, pids_peak;
	uint64_t pids_hits;  /* forks refused */
	uint64_t throttled_us;
	uint32_t over_cpu;   /* 1: the keeper ended it for its CPU time */
	uint32_t by_operator; /* 1: somebody asked for its end, not the program's own client */
};

struct wire_about {
	struct frame head;
	uint64_t layers; /* what a box made now would have */
	uint32_t boxes, pooled, making;
	uint32_t pool_depth;
	uint32_t pid;
	uint32_t cgroup_version; /* 0: none, 1, 2 */
	uint64_t hits, misses;   /* creates served from the pool, or not */
};

struct wire_error {
	struct frame head;
	uint32_t kind; /* enum err_kind */
	int32_t sys;
	char msg[240];
};

/* ---- client <-> init ---- */

enum { /* wire_start.head.flags */
	WIRE_START_PTY = 1 << 0,   /* one terminal instead of pipes; its output is stream 0 */
	WIRE_START_STDIN = 1 << 1, /* stdin is a pipe we will fill; otherwise /dev/null */
	WIRE_START_ROOT = 1 << 2,  /* as the image's root, with its few capabilities */
	WIRE_START_TOLD = 1 << 3,  /* send STARTED */
	WIRE_START_MEMFD = 1 << 4, /* the tail is in the one descriptor that rides along */
};

struct wire_start {
	struct frame head;
	uint32_t argc, envc;      /* strings in the tail: cwd, argv..., env..., each with its NUL */
	uint32_t tail_bytes;
	uint32_t wall_ms;         /* 0: no limit */
	uint32_t grace_ms;        /* after the leader's exit, for pipes that others hold open */
	uint16_t rows, cols;      /* PTY */
	uint64_t log_bytes;       /* kept per stream; more than this unread by all blocks or drops */
	uint64_t fsize_bytes;     /* RLIMIT_FSIZE; 0: none */
	uint64_t credit[2];       /* initial credit for stdout and stderr */
	uint64_t without;         /* test builds: rows of init's step table to leave out */
};

struct wire_signal {
	struct frame head;
	int32_t signo; /* to the exec's process group */
	uint32_t pad;
};

struct wire_resize {
	struct frame head;
	uint16_t rows, cols;
	uint32_t pad;
};

struct wire_credit {
	struct frame head;
	uint32_t stream; /* 0 stdout or terminal, 1 stderr */
	uint32_t pad;
	uint64_t from;   /* READ only: first byte wanted */
	uint64_t until;  /* absolute offset; credits never shrink */
};

enum { WIRE_READ_MORE = 1 << 0 }; /* READ: one for the other stream follows, hold EXIT until then */

struct wire_connect {
	struct frame head;
	uint32_t port;
	uint32_t pad;
};

struct wire_started {
	struct frame head;
	int32_t pid; /* inside the box */
	uint32_t pad;
};

struct wire_output {
	struct frame head;
	uint32_t stream;
	uint32_t pad;
	uint64_t offset; /* of the first byte of the tail; a jump says what was dropped */
};

struct wire_reading {
	struct frame head;
	uint32_t stream;
	uint32_t pad;
	uint64_t from, tip;
};

struct wire_room {
	struct frame head;
	uint64_t until; /* absolute stdin offset the client may write up to */
};

enum { /* wire_exit.why */
	WIRE_WHY_EXIT,   /* status is the exit code */
	WIRE_WHY_SIGNAL, /* status is the signal */
	WIRE_WHY_WALL,   /* its wall time was over; status is the signal that ended it */
	WIRE_WHY_EXEC,   /* never ran: status is errno of the step named in `step` */
};

struct wire_exit {
	struct frame head;
	uint32_t why;
	int32_t status;
	char step[24];           /* WHY_EXEC: the row of init's table that failed */
	uint64_t wall_us, user_us, system_us;
	uint64_t max_rss_kib;    /* of the largest process */
	uint64_t reads, writes;  /* blocks in and out */
	uint64_t bytes[2];       /* written to each stream, all of it */
	uint64_t dropped[2];     /* of those, no longer kept */
	uint64_t stdin_bytes;    /* consumed by the program */
	uint64_t disk_free, disk_size, files_free, files_size; /* of the box, at the end */
	uint32_t cut;            /* streams that somebody still held open when grace ended */
	uint32_t reaped;         /* processes that ended in the box so far */
};

struct wire_exec {
	struct frame head; /* ref: the exec */
	int32_t pid;
	uint32_t over;
	uint64_t tip[2], kept_from[2];
	uint64_t wall_us;
};

struct wire_status {
	struct frame head;
	uint32_t execs, running, clients, pid;
	uint64_t reaped;
	uint64_t disk_free, disk_size, files_free, files_size;
};

/* ---- client <-> file worker ---- */

enum { /* flags of WIRE_FILES */
	WIRE_FILES_ROOT = 1 << 0,  /* as the image's root instead of the user */
	WIRE_FILES_ALONE = 1 << 1, /* end every program of the box first: nobody disturbs the worker */
};

struct wire_put {
	struct frame head;
	uint32_t mode; /* permission bits */
	uint32_t flags;
};
enum { WIRE_PUT_NEW = 1 << 0 }; /* refuse if it exists */

struct wire_get {
	struct frame head;
	uint64_t from, bytes;
};

struct wire_changes {
	struct frame head;
	uint32_t max_entries;
	uint32_t pad;
	uint64_t hash_bytes; /* budget for hashing, all files together */
};

enum { WIRE_DONE_TRUNCATED = 1 << 0 }; /* DONE of CHANGES: there is more than was told */

struct wire_entry {
	struct frame head;
	uint32_t mode; /* st_mode; 0 for a deleted path (CHANGES) */
	uint32_t hashed;
	uint64_t size;
	uint64_t mtime_ns;
	uint32_t uid, gid;
	uint8_t sha256[32];
};
