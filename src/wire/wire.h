/* wire.h - the messages between processes: client <-> keeper, client <-> init, client <-> file worker.
 *
 * Every connection is a SOCK_SEQPACKET unix socket: one frame is one packet, and the exit of the
 * peer is an end of file. A frame is a struct frame, the fixed body of its type, and for some types
 * a tail of bytes. Both ends run on one machine: integers are native, structs have no padding.
 * docs/wire.md describes the sequences of frames. The table in frame.c checks their sizes.
 * This header is freestanding: init has no libc. */
#pragma once
#include <stdint.h>

#define WIRE_VERSION 3
#define WIRE_MAX 65536 /* one frame, everything included */
#define WIRE_FDS 8     /* descriptors that one frame may carry */
#define WIRE_ID 16     /* box id with its NUL, padded */
#define WIRE_STREAMS 3 /* of an exec: 0 stdout or terminal, 1 stderr, 2 the channel */
#define WIRE_MOUNTS 4  /* volumes that one box may have */
#define WIRE_VOLUME_ID 32
#define WIRE_PATH 120       /* where a volume is mounted */
#define WIRE_LAYERS 4       /* read-only layers that one box may have */
#define WIRE_LAYER_ID 72    /* 64 hexadecimal digits with their NUL, padded */
#define WIRE_ROOT_LAYERS 64 /* layers that one root may have */
#define WIRE_CHAIN 16       /* checkpoint layers that one box may have */

struct frame {
	uint8_t version; /* WIRE_VERSION */
	uint8_t type;    /* enum wire_type */
	uint16_t flags;  /* per type */
	uint32_t ref;    /* the exec or the request this is about; chosen by the client */
};

/* clang-format off */
enum wire_type {
	/* client -> keeper */
	WIRE_CREATE = 1, /* struct wire_create -> BOX + one fd, a connection to init; or ERROR. Tail: a START (without descriptor) that init receives as the first frame */
	WIRE_OPEN,       /* struct wire_id     -> BOX + one fd */
	WIRE_KILL,       /* struct wire_id     -> DESTROYED when nothing of the box is left */
	WIRE_COUNTERS,   /* struct wire_id     -> COUNTERS_REPLY */
	WIRE_BOXES,      /* struct wire_id (list after this id; empty: from the start) -> LISTED */
	WIRE_INFO,       /* nothing            -> INFO_REPLY */
	WIRE_POOL_SIZE,       /* struct wire_pool_size: set the pool's depth -> INFO_REPLY when it is reached */
	WIRE_LIMIT,      /* struct wire_limit: other limits for a running box -> BOX, no fd */
	WIRE_VOLUME_MAKE, /* struct wire_volume -> DONE: an empty disk by that name */
	WIRE_VOLUME_DROP, /* struct wire_volume -> DONE; refused while a box has it */
	WIRE_LAYER_MAKE,  /* struct wire_layer_make -> LAYER: makes a layer of a folder of a box */
	WIRE_LAYER_CHECK, /* struct wire_layer -> LAYER; ERROR: its content does not match its id */
	WIRE_LAYER_DROP,  /* struct wire_layer -> DONE; refused while a box or a root has it */
	WIRE_FREEZE,      /* struct wire_id; WIRE_FREEZE_OFF: thaw -> DONE. Idempotent */
	WIRE_DEADLINE,    /* struct wire_deadline -> DONE: the action of the keeper if the server has not acted by then */
	/* keeper -> client */
	WIRE_BOX = 16, /* struct wire_box + fd */
	WIRE_DESTROYED,     /* struct wire_counters: the last figures of a box that was destroyed */
	WIRE_COUNTERS_REPLY,  /* struct wire_counters */
	WIRE_LISTED,   /* tail: struct wire_box each, of LAYER_LIST char[WIRE_LAYER_ID] each; empty: no more */
	WIRE_INFO_REPLY,    /* struct wire_info */
	WIRE_ERROR,    /* struct wire_error; from init and the file worker too */
	WIRE_LAYER,    /* struct wire_layer, with its figures */
	WIRE_ROOT,     /* struct wire_root, with its figures */
	/* client -> keeper, continued */
	WIRE_CAPTURE = 24, /* struct wire_id -> FD: outbound connections of the box go to sockets, which are in a frame FD in that socket: TCP, UDP, the BPF link, and TCP for IPv6 if the host has it. Repeatable */
	WIRE_LAYER_UNPACK, /* struct wire_layer_unpack + fd, a tar archive -> LAYER: an image layer */
	WIRE_LAYER_EXPORT, /* struct wire_layer + fd -> LAYER: writes the layer to it as a tar archive */
	WIRE_ROOT_MAKE,    /* struct wire_root_make -> ROOT */
	WIRE_ROOT_DROP,    /* struct wire_root -> DONE; refused while a box has it */
	WIRE_ROOT_CHECK,   /* struct wire_root -> ROOT; ERROR: a layer of it is missing or has changed */
	WIRE_POOL_ROOT,    /* struct wire_pool_root -> DONE when boxes of that root wait in the pool.
			    * WIRE_POOL_ONCE: later as requests come */
	WIRE_LAYER_LIST,   /* struct wire_layer (list after this id; empty: from the start) -> LISTED: ids of all layers, or with LIST_ROOTS of all roots */
	/* keeper -> init */
	WIRE_JOIN_CGROUPS = 32, /* fds: write "0" into each to enter the box's cgroups, then close them */
	WIRE_PERSIST,       /* the box is recorded: continue when the keeper exits */
	WIRE_ZYGOTE,       /* struct wire_zygote + fd: a warm interpreter waits in the box, on that socket; or
			  * tail: the command that starts one */
	/* client -> keeper, continued */
	WIRE_TIERS = 40, /* flags: TIERS_AGAIN -> TIERS_REPLY */
	/* keeper -> client, continued */
	WIRE_TIERS_REPLY = 41, /* tail: struct wire_tier_facts each, one per tier of this keeper */
	/* client -> keeper, continued */
	WIRE_NODE_NUMBER = 42, /* struct wire_node_number -> DONE: ids of new boxes begin with it */
	/* client -> init */
	WIRE_LEASE = 44, /* struct wire_lease; answered only by ERROR */
	WIRE_START = 48, /* struct wire_start, tail: argv, env, cwd; or the tail in one memfd */
	WIRE_SIGNAL,     /* struct wire_signal */
	WIRE_RESIZE,     /* struct wire_resize */
	WIRE_STDIN,      /* tail: bytes; an empty tail closes it. WIRE_STDIN_CHANNEL: to the channel */
	WIRE_OUTPUT_WINDOW,     /* struct wire_output_window: init may send this stream up to this offset */
	WIRE_ATTACH,       /* struct wire_output_window with from: (re)attach this connection -> ATTACHED */
	WIRE_FORGET,     /* drop a finished exec and its logs */
	WIRE_EXECS,      /* nothing -> one EXEC frame per exec, then DONE */
	WIRE_FILES,      /* flags: WIRE_FILES_*      -> FD, a connection to a file worker */
	WIRE_CONNECT,    /* struct wire_connect      -> FD, a TCP connection made inside */
	WIRE_KILL_ON_CLOSE,      /* end the box when this connection closes */
	WIRE_STAT,       /* nothing -> STATUS */
	WIRE_STOP,       /* end every program, keep the files -> DONE once all are reaped */
	WIRE_DETACH,      /* no more output of this exec to this connection; its EXIT is still sent */
	WIRE_PUT_EARLY,        /* struct wire_put, tail: path NUL bytes: a file, before anything was started */
	WIRE_LISTEN,     /* struct wire_connect      -> FD, listening on that port of 127.0.0.1 inside */
	/* init -> client */
	WIRE_STARTED = 64, /* struct wire_started */
	WIRE_OUTPUT,       /* struct wire_output, tail: bytes */
	WIRE_ATTACHED,      /* struct wire_attached: the offset at which the output really starts */
	WIRE_STDIN_WINDOW,         /* struct wire_stdin_window: stdin bytes accepted so far + free space; flags as STDIN */
	WIRE_EXIT,         /* struct wire_exit: the exec has ended and all its output was sent */
	WIRE_EXEC,         /* struct wire_exec */
	WIRE_DONE,         /* end of a listing, or a request without another answer is done */
	WIRE_FD,           /* one fd */
	WIRE_STATUS,       /* struct wire_status */
	/* client -> file worker; every path is seen from inside the box, as the box's user */
	WIRE_PUT = 80,  /* struct wire_put, tail: path; WIRE_PIPE; then DATA..., empty DATA -> DONE or ERROR */
	WIRE_GET,       /* struct wire_get, tail: path; WIRE_PIPE -> ENTRY, DATA..., empty DATA; or ERROR */
	WIRE_MKDIR,     /* struct wire_put, tail: path, parents made too -> DONE */
	WIRE_REMOVE,    /* tail: path; recursive unless WIRE_REMOVE_ONE -> DONE */
	WIRE_MOVE,      /* tail: path NUL path; WIRE_MOVE_NEW -> DONE */
	WIRE_LINK,      /* tail: target NUL path: a symbolic link -> DONE */
	WIRE_ENTRY_OF,  /* tail: path -> ENTRY, of a link itself */
	WIRE_LIST,      /* struct wire_list, tail: path (NUL after) -> ENTRY in order..., DONE */
	WIRE_CHANGES,   /* struct wire_changes -> ENTRY..., DONE: the content of the box's upper layer */
	WIRE_CHMOD,     /* struct wire_put, tail: path -> DONE */
	WIRE_COPY,      /* tail: path NUL path; WIRE_COPY_NEW -> DONE, completely or not at all */
	WIRE_WATCH,     /* tail: path; WIRE_WATCH_* -> DONE, then EVENT... until the connection closes */
	WIRE_SEARCH,    /* struct wire_search, tail: path NUL name NUL text -> HIT..., DONE */
	WIRE_META,      /* tail: key NUL value NUL...: attributes for the current PUT; answered only by ERROR */
	WIRE_APPEND,    /* tail: path: appends the content of that file to the current PUT; answered only by ERROR */
	WIRE_SYNC,      /* during WATCH: sends all events until now -> EVENT..., DONE */
	WIRE_DATA = 96, /* tail: bytes; empty: end of the file. Both ways */
	WIRE_ENTRY,     /* struct wire_entry, tail: name or path; of a link: NUL target; or the tail of ENTRY_FULL */
	WIRE_EVENT,     /* struct wire_event, tail: path below the watched folder; RENAME: path NUL path */
	WIRE_HIT,       /* struct wire_hit, tail: path below the root; with a line: NUL a part of it */
	/* client -> file worker, continued */
	WIRE_CHOWN = 104, /* struct wire_chown, tail: path -> DONE; of a link itself */
	WIRE_SOCKETS,     /* flags: WIRE_SOCKETS_BRIEF -> SOCKET..., DONE: the TCP sockets that listen */
	WIRE_SOCKET,      /* struct wire_socket, tail: name of the process; to the client */
	/* egress: server <-> supervisor <-> egress, server <-> egress */
	WIRE_EGRESS_CONNECT = 112,  /* from a server: request; from the supervisor, to both, + fd: the connection */
	WIRE_EGRESS_OPEN,   /* struct wire_egress_open, tail: rules, a line each (egress/net_policy.h); + a listening fd -> DONE; without fd: replaces the rules of an open endpoint */
	WIRE_EGRESS_CLOSE,  /* struct wire_id */
	WIRE_EGRESS_LIST,   /* struct wire_egress_list: of each box, when a server connects; then DONE; later of boxes whose totals have changed */
	WIRE_EGRESS_REPORT, /* struct wire_egress_report, tail: host NUL rule NUL verdict NUL why NUL hint NUL */
	/* models: server <-> supervisor <-> llm */
	WIRE_LLM_CONNECT, /* from a server: request; from the supervisor, to both, + fd: a stream of JSON */
	/* doctor: server <-> supervisor */
	WIRE_DOCTOR, /* from a server: request; from the supervisor, + fd: one packet, the result as JSON */
	/* egress, continued */
	WIRE_EGRESS_REQUEST, /* struct wire_egress_request, tail: host NUL; of all that wait when a server connects, after DONE */
	WIRE_EGRESS_DECIDE,  /* struct wire_egress_decide */
	WIRE_EGRESS_CAPTURE, /* struct wire_id + the fd of CAPTURE -> DONE: serves the captured connections of an open endpoint */
	/* egress <-> server, continued */
	WIRE_EGRESS_LINK = 124, /* struct wire_egress_link, tail: name -> EGRESS_LINKED, or ERROR: a connection to a port of a linked box */
	WIRE_EGRESS_LINKED,     /* with the ref of the request + fd: the connection */
	/* secrets: server -> egress */
	WIRE_EGRESS_SECRETS = 126, /* struct wire_id, tail: parts (enum wire_secret_part); replaces those of the box, also before its OPEN */
	/* requests to other hosts: server <-> supervisor <-> outbound */
	WIRE_OUTBOUND_CONNECT = 127, /* from a server: request; from the supervisor, to both, + fd: a stream of JSON */
	/* alerts: server <-> supervisor */
	WIRE_ALERT_COMMAND = 128, /* from a server: request; from the supervisor, + fd: one packet for the command, one packet with the result */
	/* proofs: server <-> supervisor */
	WIRE_PROVE = 129, /* flags: enum wire_tier. From a server: request; from the supervisor, + fd: one packet, the proof as JSON, or {"error": why} */
	/* connections of a node to gateways: server <-> supervisor <-> the process that connects, server <-> that process */
	WIRE_CLUSTER_CONNECT = 130, /* from a server: request; from the supervisor, to both, + fd: frames */
	WIRE_CLUSTER_DIAL, /* flags: position in cluster.gateways. From a server: request; to it, + fd: connected; without fd, tail: why not */
	/* engines of a cluster: a gateway's server <-> supervisor <-> cluster process */
	WIRE_CLUSTER_ENGINES = 132, /* from a server: request; from the supervisor, to both, + fd: a stream of JSON */
	/* checkpoints: client -> keeper; ids of checkpoints are chosen by the client (base/id.h) */
	WIRE_CHECKPOINT = 136,   /* struct wire_checkpoint -> CHECKPOINTED: captures the files of a running box */
	WIRE_CHECKPOINT_OPEN,    /* struct wire_checkpoint_file -> DONE + fd, read-only: the layer or the index */
	WIRE_CHECKPOINT_SYNC,    /* struct wire_id -> DONE when its files survive a power failure */
	WIRE_CHECKPOINT_DROP,    /* struct wire_id, flags: WIRE_DROP_* -> DONE, also if there are no such files */
	WIRE_CHECKPOINT_MERGE,   /* struct wire_checkpoint_merge -> CHECKPOINTED: one layer that replaces several; + fd of an index: a checkpoint with only these entries */
	WIRE_CHECKPOINT_LIST,    /* struct wire_id (list after this id; empty: from the start) -> LISTED: struct wire_checkpoint_item each */
	WIRE_CHECKPOINT_EXPORT,  /* struct wire_checkpoint_merge + fd -> CHECKPOINTED: writes the layers, merged, to it as a tar archive */
	WIRE_CHECKPOINT_IMPORT,  /* struct wire_checkpoint + fd -> CHECKPOINTED: a tar archive becomes a checkpoint; the box need not exist */
	/* keeper -> client */
	WIRE_CHECKPOINTED = 144, /* struct wire_checkpointed */
	/* process images: client -> keeper; ids are those of checkpoints */
	WIRE_IMAGE_TAKE = 152, /* struct wire_image -> IMAGE: the programs of the box are stopped. A CHECKPOINT of the box, which must follow, releases them */
	WIRE_IMAGE_WAIT,       /* struct wire_image -> IMAGE, with its figures, when copies can be made */
	WIRE_IMAGE_START,      /* struct wire_image -> IMAGE: its programs run in this box, which has run none */
	WIRE_IMAGE_DROP,       /* struct wire_image -> DONE, also if there is none */
	WIRE_IMAGE_SAVE,       /* struct wire_image_file -> IMAGE: it is in a file of the checkpoint, too; bytes: of the file */
	WIRE_IMAGE_LOAD,       /* struct wire_image_file -> IMAGE, with its figures: read from the file, copies can be made */
	/* keeper -> client */
	WIRE_IMAGE = 160, /* struct wire_image_about, tail: struct wire_image_program each */
	/* keeper -> init, about process images */
	WIRE_HOLD = 164, /* flags: WIRE_HOLD_OFF -> DONE: reads no output and no other connection until HOLD_OFF, or the end of this connection */
	WIRE_EXPORT,     /* nothing, while held -> EXEC_STATE + fd of each exec that has not ended, then DONE */
	WIRE_EXEC_STATE, /* from init; to init, + fds: an exec whose leader a checkpoint zygote starts -> DONE */
	WIRE_TERMINAL,   /* struct wire_terminal -> FD: the master of a new terminal with this number */
};
/* clang-format on */

/* ---- client <-> keeper ---- */

#define WIRE_DEFAULT UINT64_MAX /* (cut to its size) in any limit: the default of this host */

/* The default limits, where this host can enforce them. */
#define WIRE_USUAL_MEM (512ull << 20)
#define WIRE_USUAL_DISK (256ull << 20)
#define WIRE_USUAL_FILES 65536ull
#define WIRE_USUAL_CPU_MILLI 1000u
#define WIRE_USUAL_PIDS 512u

struct wire_limits { /* every field is honoured or the create is refused; 0: this host has no such limit */
	uint64_t mem_bytes;
	uint64_t disk_bytes;
	uint64_t disk_files;
	uint64_t cpu_ms;    /* CPU time of all processes together; 0: no limit */
	uint32_t cpu_milli; /* thousandths of a CPU */
	uint32_t pids;
};

enum {                            /* wire_create.head.flags */
       WIRE_CREATE_COLD = 1 << 0, /* not from the pool: everything fresh */
       WIRE_CREATE_IDLE =
	       1 << 1, /* leave it as pooled boxes are, no limits of its own yet (bench) */
       WIRE_CREATE_AWAIT =
	       1 << 2, /* after BOX: DESTROYED with the same ref when the box has ended ... */
       WIRE_CREATE_FIGURES = 1 << 3, /* ... with its last counters; costs a little */
       WIRE_CREATE_SECRETS =
	       1 << 4, /* with a small tmpfs of the user at /run/secrets; never from the pool */
       WIRE_CREATE_HOST_WRITABLE =
	       1 << 5, /* over base: /usr and /var/lib/dpkg of the host can be changed, in the box's
			* own layer; for template builds, never from the pool */
       WIRE_CREATE_TIER = 15 << 8, /* four bits: enum wire_tier; see wire_tier_of() */
};

/* Isolation tiers. docs/tiers.md describes them; records and clients store these numbers. */
enum wire_tier {
	WIRE_TIER_CONTAINER,
	WIRE_TIER_PLAIN, /* test builds: a container behind mux, without an engine */
	WIRE_TIER_PROCESS,
	WIRE_TIER_GVISOR,
	WIRE_TIER_MICROVM,
	WIRE_TIER_WASM, /* only in TIERS_REPLY: its boxes are containers */
	WIRE_TIER_COUNT
};

static inline uint16_t wire_tier_flags(unsigned tier) /* for the flags of CREATE */
{
	return (uint16_t)((tier & 15) << 8);
}

static inline unsigned wire_tier_of(uint16_t create_flags) /* may be WIRE_TIER_COUNT or more */
{
	return create_flags >> 8 & 15;
}

/* What a request can need of a tier, as bits: struct wire_tier_facts.unsupported. */
enum wire_need {
	WIRE_NEED_TERMINAL,        /* an exec with a terminal */
	WIRE_NEED_ROOT_USER,       /* an exec as the root of the box */
	WIRE_NEED_LAYERS,          /* layers of packages */
	WIRE_NEED_ROOT,            /* another root than base: a template */
	WIRE_NEED_VOLUME,          /* a volume, read-only */
	WIRE_NEED_VOLUME_WRITABLE, /* a volume that the box may write */
	WIRE_NEED_SECRETS,         /* the tmpfs of CREATE_SECRETS */
	WIRE_NEED_HOST_WRITABLE,   /* CREATE_HOST_WRITABLE */
	WIRE_NEED_ZYGOTE,          /* a warm interpreter that is forked into the box */
	WIRE_NEED_UPPER,   /* its writable layer, read from outside: LAYER_UPPER, FILES_UPPER */
	WIRE_NEED_CAPTURE, /* CAPTURE */
	WIRE_NEED_LIMIT,   /* LIMIT of a running box */
	WIRE_NEED_FREEZE,  /* FREEZE */
	WIRE_NEED_MEMORY_SNAPSHOT, /* a snapshot of memory, not only of files */
	WIRE_NEED_GPU,
	WIRE_NEED_COUNT
};

enum { WIRE_MOUNT_RO = 1 << 0 };

struct wire_mount {              /* one writer or any number of readers at a time */
	char id[WIRE_VOLUME_ID]; /* of the volume */
	char path[WIRE_PATH];    /* in the box; folders that are missing are made */
	uint32_t flags;
	uint32_t pad;
};

#define WIRE_WARM_NAME 12

struct wire_create {
	/* clang-format off */
	struct frame head;
	char template[WIRE_ID * 2];
	char warm[WIRE_WARM_NAME]; /* the warm interpreter for it; preferred, not required */
	uint32_t warm_group; /* boxes of different groups are never forked from one zygote; 0: no team */
	struct wire_limits limits;
	uint64_t without; /* test builds: rows of the step table to leave out */
	uint64_t zygote_without; /* and of the zygote */
	uint32_t nmounts;
	uint32_t nlayers;
	struct wire_mount mounts[WIRE_MOUNTS];
	char layer[WIRE_LAYERS][WIRE_LAYER_ID]; /* below its root, the first on top */
	char root[WIRE_LAYER_ID]; /* its root file system; empty: base. The layers lie above it */
	uint32_t nchain;
	uint32_t pad;
	char chain[WIRE_CHAIN][WIRE_ID]; /* checkpoints whose layers lie above root and layers, the first on top */
	/* clang-format on */
};

/* Captures what differs from the checkpoint `base` of the same box, or all of its writable layer.
 * Programs are stopped for a moment and continue. Flags: WIRE_CHECKPOINT_TRACK. Repeatable: an id that this box has answers
 * with the figures of the first request. */
#define WIRE_CHECKPOINT_TRACK                                                                      \
	(1u << 0) /* changes of the box are tracked from now on; without it they no longer are */
struct wire_checkpoint {
	struct frame head;
	char box[WIRE_ID];
	char id[WIRE_ID];   /* of the new checkpoint */
	char base[WIRE_ID]; /* an earlier one of this box, whose index exists; empty: none */
	uint64_t bytes_most, files_most; /* of the layer; more is an ERROR with ERR_LIMIT */
};

struct wire_checkpointed {
	struct frame head;
	char id[WIRE_ID];
	uint64_t bytes;         /* of the file of the layer; 0: none was written */
	uint64_t index_bytes;   /* of the file of the index; MERGE: 0 */
	uint64_t content_bytes; /* of the files in the layer */
	uint64_t files;         /* entries in the layer, without those for `deleted` ... */
	uint64_t deleted;       /* ... and without folders that only lead to others: whiteouts */
	uint64_t entries;       /* in the index */
	uint64_t frozen_us, took_us; /* programs were stopped; the whole capture */
	uint32_t same;   /* 1: nothing differs from `base`: the index was written, no layer */
	uint32_t passes; /* 2: a part was copied before the programs were stopped */
	uint32_t
		tracked; /* 1: only what was touched since `base` was examined; 0: the writable layer was walked */
	uint32_t pad;
};

enum wire_checkpoint_what { WIRE_CHECKPOINT_INDEX, WIRE_CHECKPOINT_LAYER };

struct wire_checkpoint_file {
	struct frame head;
	char id[WIRE_ID];
	uint32_t what; /* enum wire_checkpoint_what */
	uint32_t pad;
};

enum {                           /* flags of CHECKPOINT_DROP; none: all files of the checkpoint */
       WIRE_DROP_LAYER = 1 << 0, /* boxes that have it mounted keep it */
       WIRE_DROP_INDEX = 1 << 1,
};

struct wire_checkpoint_merge {
	struct frame head;
	char id[WIRE_ID]; /* of the new layer; without a descriptor it has no index */
	uint32_t n;       /* 2 or more; with a descriptor also 1 */
	uint32_t pad;
	char from[WIRE_CHAIN][WIRE_ID]; /* the lowest of a chain, the first on top; they stay */
	uint64_t bytes_most, files_most;
};

struct wire_image {
	struct frame head;
	char id[WIRE_ID];  /* chosen by the client: that of the checkpoint with the files */
	char box[WIRE_ID]; /* TAKE: the source; START: the box that gets the programs; else empty */
};

enum { /* flags of IMAGE_TAKE */
       WIRE_IMAGE_STOP =
	       1
	       << 0, /* the programs stay stopped until IMAGE_DROP, or the end of this connection */
};

enum {                           /* flags of IMAGE_DROP */
       WIRE_IMAGE_FILE = 1 << 0, /* its file, too */
};

struct wire_image_file {
	struct frame head;
	char id[WIRE_ID];
	char team[72]; /* whose image it is: the file of another team is rejected */
};

struct wire_image_about {
	struct frame head;
	char id[WIRE_ID];
	uint64_t bytes;     /* of memory that the image holds */
	uint64_t frozen_us; /* how long the programs of the source were stopped */
	uint64_t took_us;   /* until copies could be made; of START: until the programs ran */
	uint32_t programs, pad;
};

enum {                                 /* bits of wire_image_program.lost */
       WIRE_LOST_CONNECTIONS = 1 << 0, /* TCP connections: reset in the copy */
};

struct wire_image_program { /* tail of IMAGE */
	uint32_t ref;       /* of its exec */
	int32_t pid;        /* in the box */
	uint32_t threads, descriptors;
	uint64_t bytes;
	uint32_t lost;  /* bits */
	uint32_t nlost; /* connections */
	char name[16];
};

struct wire_checkpoint_item { /* of LISTED */
	char id[WIRE_ID];
	uint64_t layer_bytes, index_bytes; /* of its files; 0: it has none */
	uint64_t modified_s;               /* CLOCK_REALTIME, of the newer file */
};

/* Flags of LAYER_MAKE. UPPER: the writable layer of the box, with its owners, as an image layer;
 * path and place are empty. */
enum { WIRE_LAYER_UPPER = 1 << 0 };
/* Flag of LAYER_EXPORT: the id is that of a merged root, whose tree is written. */
enum { WIRE_LAYER_OF_ROOT = 1 << 1 };
/* Flag of LAYER_LIST: roots instead of layers. */
enum { WIRE_LIST_ROOTS = 1 << 0 };

struct wire_layer_make { /* every program of the box is ended */
	struct frame head;
	char box[WIRE_ID];
	char path[WIRE_PATH]; /* the folder in the box; absolute */
	char place
		[WIRE_PATH]; /* where it is in boxes that have the layer; relative to /, "" is / */
	uint64_t bytes_most, files_most; /* more is an ERROR */
};

struct wire_layer {
	struct frame head;
	char id[WIRE_LAYER_ID];
	uint64_t bytes, files;
	uint64_t skipped; /* UNPACK: device nodes that were left out */
};

struct wire_layer_unpack {
	struct frame head;
	uint64_t bytes_most, files_most; /* more is an ERROR */
	char diff[WIRE_LAYER_ID]; /* SHA-256 of the archive without its compression; another one is
				   * an ERROR. Empty: not compared */
};

enum { /* flags of ROOT_MAKE */
       WIRE_ROOT_MERGE =
	       1 << 0,          /* boxes see one layer, made of hard links to files of the others */
       WIRE_ROOT_BASE = 1 << 1, /* the host's /usr and the skeleton of base lie below the layers */
};

struct wire_root_make {
	struct frame head;
	uint32_t nlayers;
	uint32_t pad;
	char layer[WIRE_ROOT_LAYERS][WIRE_LAYER_ID]; /* the first on top */
};

struct wire_root {
	struct frame head;
	char id[WIRE_LAYER_ID];
	uint64_t bytes, files; /* in a ROOT: of what a box sees of its layers */
	uint64_t pad;          /* as long as a LAYER */
};

enum { WIRE_POOL_ONCE = 1 << 0 }; /* flag of POOL_ROOT with an interpreter */
enum wire_pool_warm { WIRE_POOL_PLAIN, WIRE_POOL_PYTHON, WIRE_POOL_NODE, WIRE_POOL_WARMS };
struct wire_pool_root {
	struct frame head;
	char root[WIRE_LAYER_ID];
	struct wire_limits limits; /* their disk; the other limits are set when a client gets one */
	uint32_t depth;            /* boxes to hold; 0: none, those in the pool are ended */
	uint32_t warm; /* enum wire_pool_warm: the interpreter of the root that waits in them */
};

struct wire_id {
	struct frame head;
	char id[WIRE_ID];
};

struct wire_limit {
	struct frame head;
	char id[WIRE_ID];
	struct wire_limits limits; /* WIRE_DEFAULT: as it is */
};

enum { WIRE_FREEZE_OFF = 1 << 0 }; /* flags of WIRE_FREEZE */

enum {                              /* flags of WIRE_KILL */
       WIRE_KILL_FIGURES = 1 << 0,  /* read the last counters; costs a little */
       WIRE_KILL_OPERATOR = 1 << 1, /* record that an operator ended it */
};

enum { WIRE_THEN_END, WIRE_THEN_STOP, WIRE_THEN_FREEZE, WIRE_THENS };

struct wire_then {        /* without padding: it is in records, too */
	uint64_t at_ns;   /* CLOCK_BOOTTIME; 0: never */
	uint64_t keep_ms; /* after STOP and FREEZE: so long until its end; UINT64_MAX: no end */
	uint32_t then;    /* WIRE_THEN_...: end it, end its programs, freeze it */
	uint32_t pad;
};

struct wire_deadline {
	struct frame head;
	char id[WIRE_ID];
	struct wire_then what;
};

struct wire_volume {
	struct frame head;
	char id[WIRE_VOLUME_ID];
	uint64_t bytes; /* MAKE: all that it can ever hold */
};

struct wire_pool_size {
	struct frame head;
	uint32_t depth;
	uint32_t pad;
};

#define WIRE_NO_NODE UINT32_MAX /* of NODE_NUMBER: this machine is in no cluster */
struct wire_node_number {
	struct frame head;
	uint32_t number;
	uint32_t pad;
};

enum wire_box_state { WIRE_BOX_MAKING = 1, WIRE_BOX_POOLED, WIRE_BOX_TAKEN, WIRE_BOX_DYING };

struct wire_box {
	struct frame head;
	char id[WIRE_ID];
	char template[WIRE_ID * 2];
	struct wire_limits limits;
	uint64_t layers;     /* bits of enum jail_feature: the active features */
	uint64_t created_ns; /* CLOCK_REALTIME */
	uint32_t state;      /* enum wire_box_state */
	uint32_t uid_base;   /* first host uid of its range */
	int32_t init_pid;    /* in the keeper's pid namespace; for show only */
	uint32_t make_us;    /* duration of the creation, pooled or not */
	uint16_t warm;       /* 1: the requested interpreter waits in it */
	uint16_t tier;       /* enum wire_tier; 0 in records and answers of older keepers */
	uint16_t frozen;     /* 1: its processes are frozen, or may be: init does not answer */
	uint16_t
		inner; /* bits of enum packet_feature: what the guest stub reports of its engine; 0: no
			 * guest, or an older keeper */
};

struct wire_counters { /* counters of the kernel, read from outside the box; ~0: this host does not report it */
	struct frame head;
	char id[WIRE_ID];
	uint64_t mem_now, mem_peak;
	uint64_t cpu_us;
	uint64_t oom_kills; /* processes the kernel killed for memory */
	uint64_t mem_hits;  /* times the memory limit was met */
	uint64_t pids_now, pids_peak;
	uint64_t pids_hits; /* forks refused */
	uint64_t throttled_us;
	uint16_t over_cpu; /* 1: the keeper ended it for its CPU time */
	uint16_t
		engine_status; /* exit status of mux (mux/packet.h: packet_reason()); 0: a container, or
				 * it ended in another way */
	uint32_t
		by_operator; /* 1: ended by a request that did not come from the client of its program; or: */
};
enum { WIRE_ENDED_BY_DEADLINE = 2 }; /* in by_operator: the keeper, see WIRE_DEADLINE */

enum {                                 /* flags of INFO_REPLY: what this keeper knows */
       WIRE_INFO_CAPTURE = 1 << 0,     /* CAPTURE */
       WIRE_INFO_ROOTS = 1 << 1,       /* CREATE with a root, and the requests for roots */
       WIRE_INFO_TIERS = 1 << 2,       /* CREATE with a tier, and TIERS */
       WIRE_INFO_NODES = 1 << 3,       /* NODE_NUMBER */
       WIRE_INFO_CHECKPOINTS = 1 << 4, /* CREATE with a chain, and the requests for checkpoints */
       WIRE_INFO_ALL = WIRE_INFO_CAPTURE | WIRE_INFO_ROOTS | WIRE_INFO_TIERS | WIRE_INFO_NODES |
		       WIRE_INFO_CHECKPOINTS,
};

struct wire_info {
	struct frame head;
	uint64_t layers; /* the features of a box that is created now */
	uint32_t boxes, pooled, making;
	uint32_t pool_depth;
	uint32_t pid;
	uint32_t cgroup_version; /* 0: none, 1, 2 */
	uint64_t hits, misses;   /* creates served from the pool, or not */
	uint32_t waiting; /* requests whose work is not done: boxes being made, limits, volumes */
	uint32_t waiting_most; /* limit of `waiting`; more requests are refused */
};

enum { WIRE_TIERS_AGAIN = 1 << 0 }; /* flags of TIERS: collect the facts again; answered then */

enum wire_tier_state {
	WIRE_TIER_UNAVAILABLE, /* `reason`: why, and the command that helps */
	WIRE_TIER_UNPREPARED,  /* its engine exists, `atoll tier prepare` has not been run */
	WIRE_TIER_OFFERED,
};

struct wire_tier_facts {            /* strings end with a NUL; unknown ones are empty */
	uint32_t tier;              /* enum wire_tier */
	uint32_t rank;              /* docs/tiers.md; larger is stronger */
	uint32_t state;             /* enum wire_tier_state */
	uint32_t emulated;          /* 1: the engine emulates the processor */
	uint64_t unsupported;       /* bits of enum wire_need */
	uint64_t mem_min_bytes;     /* smallest memory limit of a box; 0: that of every box */
	uint64_t features;          /* bits of enum jail_feature: of the outer box */
	char engine[WIRE_PATH];     /* file of the engine */
	char version[40];           /* of the engine */
	char sha256[WIRE_LAYER_ID]; /* of the file of the engine */
	char platform[24];          /* "kvm", "systrap", "ptrace", "tcg" */
	char reason[240]; /* unless it is offered; of an emulated tier: why it is emulated */
};

struct wire_error {
	struct frame head;
	uint32_t kind; /* enum err_kind */
	int32_t sys;
	char msg[240];
};

struct wire_zygote {
	struct frame head;
	int32_t pid; /* in the box; with a tail: 0 */
	uint32_t pad;
	char program[32]; /* the argv[0] of a START that can use it */
};

/* ---- client <-> init ---- */

enum {
	WIRE_STDIN_CHANNEL = 1 << 0
}; /* flags of STDIN and STDIN_WINDOW: of the channel, not of stdin */

enum {                             /* wire_start.head.flags */
       WIRE_START_PTY = 1 << 0,    /* one terminal instead of pipes; its output is stream 0 */
       WIRE_START_STDIN = 1 << 1,  /* stdin is a pipe that STDIN frames fill; otherwise /dev/null */
       WIRE_START_ROOT = 1 << 2,   /* as the image's root, with its few capabilities */
       WIRE_START_NOTIFY = 1 << 3, /* send STARTED, unless EXIT is the first frame */
       WIRE_START_MEMFD = 1 << 4,  /* the tail is in the one descriptor of the frame */
       WIRE_START_WARM = 1 << 6,   /* run it in the warm interpreter, if there is one */
       WIRE_START_DETACHED =
	       1 << 5, /* no output to the starter, only STARTED (if requested) and EXIT */
       WIRE_START_CHANNEL =
	       1 << 7, /* descriptor 3 is a socket, both ways: stream 2; not with PTY */
       WIRE_START_LEADER_ONLY =
	       1 << 8, /* wall time and signals apply to the leader only. Its streams are read
				   * until every process has closed them. After KILL, TERM or the wall
				   * time they are closed at once, without grace_ms. STARTED is always
				   * sent before EXIT. */
       WIRE_START_ONE_SHOT =
	       1 << 9, /* the box is for this exec only: it ends when all output and EXIT were
				   * sent on this connection, or when it closes. Not with DETACHED. */
       WIRE_START_IDS = 1 << 10, /* as `uid` and `gid`; not with ROOT or WARM */
};

struct wire_start {
	struct frame head;
	uint32_t argc, envc; /* strings in the tail: cwd, argv..., env..., each with its NUL */
	uint32_t tail_bytes;
	uint32_t wall_ms;    /* 0: no limit */
	uint32_t grace_ms;   /* after the leader's exit, for pipes that others hold open */
	uint16_t rows, cols; /* PTY */
	uint64_t
		log_bytes; /* stored per stream; if more is unread by all clients, the writer waits or bytes are dropped */
	uint64_t fsize_bytes;          /* RLIMIT_FSIZE; 0: none */
	uint64_t credit[WIRE_STREAMS]; /* initial, for each stream */
	uint32_t without;              /* test builds: rows of init's step table to leave out */
	uint16_t uid,
		gid; /* START_IDS: ids inside the box, at most WIRE_ID_MAX, not those of init */
};

#define WIRE_ID_MAX 65534 /* the highest id inside a box that a program can have */

struct wire_signal {
	struct frame head;
	int32_t signo; /* to the exec's process group; with LEADER_ONLY: to its leader */
	uint32_t pad;
};

struct wire_resize {
	struct frame head;
	uint16_t rows, cols;
	uint32_t pad;
};

struct wire_output_window {
	struct frame head;
	uint32_t stream; /* below WIRE_STREAMS; ATTACH only: WIRE_NO_STREAM */
	uint32_t pad;
	uint64_t from;  /* ATTACH only: first requested byte */
	uint64_t until; /* absolute offset; credits never shrink */
};

enum { WIRE_NO_STREAM = WIRE_STREAMS }; /* ATTACH: for the EXIT only; ATTACHED has 0 and 0 */
enum { WIRE_ATTACH_MORE = 1 << 0 }; /* an ATTACH for another stream follows: send EXIT after that */

/* When ms have passed without another LEASE, init stops all processes of the box (SIGSTOP); the next LEASE continues them,
 * except those that were stopped before. */
struct wire_lease {
	struct frame head; /* flags: WIRE_LEASE_OFF: no limit any longer; ms has no meaning */
	uint32_t ms;       /* 0: stop them now */
};
enum { WIRE_LEASE_OFF = 1 << 0 };

struct wire_connect {
	struct frame head;
	uint32_t port;
	uint32_t pad;
};

/* ---- server <-> egress ---- */

struct wire_egress_open {
	struct frame head;
	char id[WIRE_ID];           /* of the box */
	uint64_t used_in, used_out; /* of its budget, so far */
	uint64_t used_dns;
};

/* A part of EGRESS_SECRETS: its kind (1 byte), its length (4 bytes), its bytes. */
enum wire_secret_part {
	WIRE_SECRET_CERT = 'c',        /* PEM: the certificate authority of the box ... */
	WIRE_SECRET_KEY = 'k',         /* PEM: ... and its key */
	WIRE_SECRET_PLACEHOLDER = 'p', /* begins a secret: the text that the box has */
	WIRE_SECRET_HEADER = 'n',      /* begins a header that is set in requests: its name */
	WIRE_SECRET_VALUE = 'v',       /* what it is replaced by, or the value of the header */
	WIRE_SECRET_IN = 'i',          /* "header" or "query" */
	WIRE_SECRET_HOST = 'h',        /* a host for which this is done: net_rule.h */
};

struct wire_egress_link {
	struct frame head;
	char id[WIRE_ID]; /* the box that connects */
	uint16_t port, pad[3];
};

enum {
	WIRE_EGRESS_CAPTURED = 1 << 0
}; /* flags of EGRESS_LIST: it serves captured connections, too */

struct wire_egress_list {
	struct frame head;
	char id[WIRE_ID];
	uint64_t bytes_in, bytes_out;
	uint64_t dns_queries;
};

struct wire_egress_report { /* one connection of a box, after it was closed */
	struct frame head;
	char id[WIRE_ID];
	uint64_t began_ns;            /* CLOCK_REALTIME */
	uint64_t bytes_in, bytes_out; /* into the box, out of it */
	uint64_t total_in, total_out; /* of all connections of the box so far */
	uint32_t ms;
	uint32_t port;
};

struct wire_egress_request { /* connections to a destination that wait for an approval; tail: host NUL */
	struct frame head;
	char id[WIRE_ID];
	uint64_t request;    /* unique, also among egress processes */
	uint64_t began_ns;   /* CLOCK_REALTIME */
	uint64_t expires_ns; /* they are refused then */
	uint32_t port;
	uint32_t ended; /* 1: none waits now */
};

struct wire_egress_decide {
	struct frame head;
	char id[WIRE_ID];
	uint64_t request;
	uint32_t allow; /* 1: they continue; 0: they are refused */
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
	uint64_t offset; /* of the first byte of the tail; a jump shows dropped bytes */
};

struct wire_attached {
	struct frame head;
	uint32_t stream;
	uint32_t pad;
	uint64_t from, tip;
};

struct wire_stdin_window {
	struct frame head;
	uint64_t until; /* absolute stdin offset the client may write up to */
};

enum {                  /* wire_exit.why */
       WIRE_WHY_EXIT,   /* status is the exit code */
       WIRE_WHY_SIGNAL, /* status is the signal */
       WIRE_WHY_WALL,   /* its wall time expired; status is the signal that ended it */
       WIRE_WHY_EXEC,   /* never ran: status is errno of the step named in `step` */
};

/* Flags of EXIT. Where the kernel of the box is that of a guest, init reads its counters: how many
 * processes it killed for memory and how many forks it refused while this exec ran. Both stop at their
 * highest value. */
enum { WIRE_EXIT_GUEST = 1 << 0, WIRE_EXIT_KILLS = 127, WIRE_EXIT_REFUSED = 255 };

static inline uint16_t wire_exit_flags(uint64_t kills, uint64_t refused)
{
	kills = kills < WIRE_EXIT_KILLS ? kills : WIRE_EXIT_KILLS;
	refused = refused < WIRE_EXIT_REFUSED ? refused : WIRE_EXIT_REFUSED;
	return (uint16_t)(WIRE_EXIT_GUEST | kills << 1 | refused << 8);
}

static inline uint32_t wire_exit_kills(uint16_t flags)
{
	return flags & WIRE_EXIT_GUEST ? flags >> 1 & WIRE_EXIT_KILLS : 0;
}

static inline uint32_t wire_exit_refused(uint16_t flags)
{
	return flags & WIRE_EXIT_GUEST ? flags >> 8 : 0;
}

struct wire_exit {
	struct frame head; /* flags: see WIRE_EXIT_GUEST */
	uint32_t why;
	int32_t status;
	char step[24]; /* WHY_EXEC: the row of init's table that failed */
	uint64_t wall_us, user_us, system_us;
	uint64_t max_rss_kib;           /* of the largest process */
	uint64_t reads, writes;         /* blocks in and out */
	uint64_t bytes[WIRE_STREAMS];   /* total bytes written to each stream */
	uint64_t dropped[WIRE_STREAMS]; /* of those, no longer kept */
	uint64_t stdin_bytes;           /* consumed by the program */
	uint64_t disk_free, disk_size, files_free, files_size; /* of the box, at the end */
	uint32_t cut;    /* streams that other processes still held open when grace_ms expired */
	uint32_t reaped; /* processes that ended in the box so far */
};

struct wire_exec {
	struct frame head;   /* ref: the exec */
	int32_t pid;         /* 0 once the leader has ended */
	int32_t group;       /* its process group: the pid of STARTED; 0: it never ran */
	uint8_t over;        /* ended and drained: ATTACH is answered by its EXIT */
	uint8_t tty;         /* one terminal, output on stream 0 */
	uint8_t stdin_open;  /* it still accepts STDIN */
	uint8_t channel;     /* has one, and it is open */
	uint16_t rows, cols; /* tty */
	uint64_t tip[WIRE_STREAMS], kept_from[WIRE_STREAMS];
	uint64_t stdin_bytes;   /* accepted so far: the offset of the next STDIN byte */
	uint64_t stdin_room;    /* as in STDIN_WINDOW */
	uint64_t channel_bytes; /* the same, to the channel */
	uint64_t channel_room;
	uint64_t wall_us;
};

enum { WIRE_HOLD_OFF = 1 << 0 }; /* flags of HOLD */
enum {                           /* bits of wire_exec_state.open, in the order of its descriptors */
       WIRE_OPEN_OUT = 1 << 0,   /* stdout, stderr: pipes */
       WIRE_OPEN_ERR = 1 << 1,
       WIRE_OPEN_CHANNEL = 1 << 2, /* a stream socket, for both directions */
       WIRE_OPEN_STDIN = 1 << 3,   /* a pipe */
       WIRE_OPEN_ALL = 15,
};

/* What init knows about an exec that has not ended. The first descriptor is a file with the kept bytes of its
 * streams, one after the other, and then the bytes on their way to stdin and to the channel. To init: the ends of
 * init of what is open follow, or the master of its terminal. */
enum { WIRE_TERMINALS = 64, WIRE_TTY_LOST = 255 /* hung up, or of another number */ };

struct wire_exec_state {
	struct frame head; /* ref: the exec */
	int32_t pid, group;
	uint8_t open;   /* WIRE_OPEN_* */
	uint8_t tty;    /* 0: pipes; 1 + the number of its terminal; WIRE_TTY_LOST */
	uint8_t lone;   /* WIRE_START_LEADER_ONLY */
	uint8_t ending; /* bits 0 and 1: stdin, channel are closed when their bytes are read */
	uint32_t grace_ms;
	uint64_t age_us;  /* since its start */
	uint64_t left_us; /* to its wall limit; 0: none */
	uint64_t from[WIRE_STREAMS], tip[WIRE_STREAMS], limit[WIRE_STREAMS];
	uint64_t accepted[2], consumed[2], room[2]; /* of stdin, of the channel */
	uint32_t buffered[2];
	uint64_t inode[4]; /* of the ends of init, in the order of the bits of `open` */
	char boot[40];     /* the boot id of the box; empty: none was read yet */
};

struct wire_terminal {
	struct frame head;
	uint32_t number; /* below WIRE_TERMINALS */
	uint32_t pad;
};

struct wire_status {
	struct frame head;
	uint32_t execs, running, clients, pid;
	uint64_t reaped;
	uint64_t disk_free, disk_size, files_free, files_size;
};

/* ---- client <-> file worker ---- */

enum {                           /* flags of WIRE_FILES */
       WIRE_FILES_ROOT = 1 << 0, /* as the image's root instead of the user */
       WIRE_FILES_ALONE =
	       1 << 1, /* end every exec of the box first, so that none changes files meanwhile */
       WIRE_FILES_ROOT_IF = 1 << 2, /* as root where the box has one, else as the user */
       WIRE_FILES_UPPER =
	       1 << 3, /* no worker: the folder of the writable layer itself, for the keeper */
};

struct wire_put {
	struct frame head;
	uint32_t mode; /* permission bits */
	uint32_t flags;
	uint64_t if_mtime_ns, if_size; /* PUT_IF; PUT_TIME: the first is its new time */
};
enum {
	WIRE_PUT_NEW = 1 << 0, /* refuse if it exists (EEXIST) */
	WIRE_PUT_IF = 1 << 1,  /* refuse unless it is the file of that time and size (ESTALE) */
	/* For a worker that is root: the file and created parent folders belong to the user. Has no
	 * effect for a worker that is the user. Also for MKDIR. */
	WIRE_PUT_USER = 1 << 2,
	WIRE_PUT_FOLLOW = 1 << 3, /* follow a link; its target must be a file (EISDIR, EINVAL) */
	WIRE_PUT_TIME = 1 << 4,   /* the file gets this time; not with PUT_IF */
};
struct wire_chown {
	struct frame head;
	uint32_t uid, gid; /* ids inside the box; WIRE_CHOWN_KEEP: unchanged */
};
#define WIRE_CHOWN_KEEP UINT32_MAX
#define WIRE_OWNER_MAX                                                                             \
	65532 /* the largest id below init's own; the user namespace of a box maps it */
enum {
	WIRE_PUT_EARLY_MORE = 1 << 0
}; /* flags of PUT_EARLY: append to the file of an earlier one */
enum {
	WIRE_PIPE = 1 << 0
}; /* flags of PUT and GET: the bytes pass through the pipe that the frame carries */
enum { WIRE_REMOVE_ONE = 1 << 0 }; /* flags of REMOVE: a folder must be empty */
enum {                             /* flags of GET */
       WIRE_GET_END = 1 << 1, /* read to the end of file even if its size is 0 (files of /proc) */
};
enum {                          /* flags of MOVE */
       WIRE_MOVE_NEW = 1 << 0,  /* refuse if it exists */
       WIRE_MOVE_USER = 1 << 1, /* created folders belong to the user */
};
/* Flags of ENTRY_OF and LIST. The tail of ENTRY is then: name NUL real NUL owner NUL group NUL, and
 * key NUL value NUL of each attribute that META knows. real: of a link, where it leads in the end, as
 * an absolute path, or "". */
enum { WIRE_ENTRY_FULL = 1 << 0 };
enum { WIRE_COPY_NEW = 1 << 0 }; /* flags of COPY: refuse if it exists */

struct wire_get {
	struct frame head;
	uint64_t from, bytes;
};

struct wire_list {
	struct frame head;
	uint32_t max;   /* entries; 0: all */
	uint32_t depth; /* levels of folders; 0 and 1: this one only; at most 64 */
};

enum {                           /* flags of WATCH */
       WIRE_WATCH_DEEP = 1 << 0, /* and everything below it */
       WIRE_WATCH_PLAIN =
	       1 << 1, /* as the kernel reports it: RENAME has the old path, CREATE the new one;
				    * a file that was PUT: CREATE, CHMOD, WRITE */
       WIRE_WATCH_ENTRY = 1 << 2, /* CREATE, WRITE, CHMOD: a full ENTRY before, if there is one */
       WIRE_WATCH_LOCAL =
	       1 << 3, /* fail with EREMOTE on a file system that other hosts can change */
};

enum wire_event_kind {
	WIRE_EVENT_CREATE = 1,
	WIRE_EVENT_WRITE,  /* equal ones in a row are sent every 20 ms, and the last one always */
	WIRE_EVENT_REMOVE, /* or moved to a place that is not watched */
	WIRE_EVENT_RENAME,
	WIRE_EVENT_CHMOD,
	WIRE_EVENT_OVERFLOW, /* the reader was too slow: some are lost. No path */
	WIRE_EVENT_LIMIT,    /* this new folder is not watched: there are too many */
	WIRE_EVENT_GONE, /* the watched folder itself was removed or moved: the last one. No path */
};

struct wire_event {
	struct frame head; /* ref: of the WATCH */
	uint32_t kind;
	uint32_t is_dir;
};

enum { WIRE_SEARCH_FOLD = 1 << 0 }; /* flags of SEARCH: ignore case (ASCII only) */

struct wire_search { /* name: a glob if it has * ? or [, else part of a name; empty: any. text: literal */
	struct frame head;
	uint32_t max; /* hits; 0: 1000 */
	uint32_t pad;
	uint64_t file_bytes; /* larger files are not searched; 0: 16 MiB */
};

struct wire_hit {
	struct frame head;
	uint32_t mode; /* st_mode */
	uint32_t line; /* from 1; 0: a hit by name alone */
	uint64_t size, mtime_ns;
	uint32_t at;  /* of the text in the bytes that follow, at most 400 of the line */
	uint32_t cut; /* 1: the line is longer than that */
};

enum { WIRE_SOCKETS_BRIEF = 1 << 0 }; /* flags of SOCKETS: without processes */

struct wire_socket {
	struct frame head;
	uint8_t addr[16]; /* in network order; of IPv4 the first four bytes */
	uint32_t family;  /* 4 or 6 */
	uint32_t port;
	int32_t pid; /* in the box; 0: not known */
	uint32_t pad;
};

struct wire_changes {
	struct frame head;
	uint32_t max_entries;
	uint32_t pad;
	uint64_t hash_bytes; /* budget for hashing, all files together */
};

enum {                               /* flags of DONE */
       WIRE_DONE_TRUNCATED = 1 << 0, /* there is more than was sent */
       WIRE_DONE_SKIPPED = 1 << 1,   /* a file could not be read or copied */
       WIRE_DONE_SHARED = 1 << 2,    /* supervisor to server: another server starts; without this
				      * flag: none but this one is left */
       WIRE_DONE_STOPS = 1 << 3,     /* supervisor to server: the daemon stops; SIGTERM follows */
};

struct wire_entry {
	struct frame head;
	uint32_t mode; /* st_mode; 0 for a deleted path (CHANGES) */
	uint32_t hashed;
	uint64_t size;
	uint64_t mtime_ns;
	uint32_t uid, gid;
	uint32_t target_mode; /* of a link: st_mode of its target; 0: it does not exist */
	uint32_t pad;
	uint8_t sha256[32];
};
