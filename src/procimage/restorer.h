/* restorer.h - lists of system calls, and the code that executes them without a C library.
 *
 * A checkpoint zygote has unmapped its own program; what still runs in it is the code of restorer.c, a
 * block of position-independent instructions in a hole of the captured program's addresses. It builds
 * the memory, waits for orders, and continues as the copy:
 *
 *   zygote           helper outside       helper in the namespace     copy
 *   recvmsg(order)
 *   clone(VM|VFORK)  setns(PID)
 *                    clone3(VM|VFORK) ->  pipes
 *                                         clone3(set_tid) ---------->  confinement list, plan list
 *                                         sets the next tid  <-------  threads, one by one
 *                                         exits at end of file         report, wait for "go", sigreturn
 *
 * A tree: the copy forks its descendants, and they theirs, before it is confined; each replaces its memory by that of
 * its own image. All of them share one table of descriptors until the first one has made what they have in
 * common, and wait for each other through one shared page:
 *
 *   landlock, once ─► all are born, in their sessions ─► all have entered their groups ─► each is confined ─► the first one makes
 *   shared descriptors ─► each takes its own table, and executes its plan ─► threads, one process at a time ─► "go"
 *
 * Until "go" no instruction of the captured program runs. The lists are data: the zygote executes the
 * build list, which was made from a checked image; everything else that an image decides is in the plan
 * list, which the copy executes after its confinement, with the rights of the copy.
 * Owns: the layout of struct restorer_state, which lies in front of the lists in the same mapping. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define RESTORER_MAGIC                                                                             \
	UINT64_C(0x726f747365726174) /* first word of the block: capture leaves it out */

enum {
	RESTORER_SLOTS = 64, /* results of calls that later calls use */
	RESTORER_TASKS = 8,
	RESTORER_OUTSIDE = 32, /* descriptors of an order: slots 0..31 */
	RESTORER_STACK = 8192, /* bytes for a thread that executes lists */
	RESTORER_TREE_STACK =
		65536, /* descendants are forked from within the frames of their parents */
	RESTORER_PROCESSES = 256, /* those of a tree, its zombies and helpers */
	RESTORER_ENTRY = 16,      /* offset of the first instruction in the block */
};

enum {                     /* numbers that are no system calls */
       RESTORER_MOVE = -1, /* descriptor args[0] becomes number args[1], close-on-exec if args[2] */
       RESTORER_LOAD = -2, /* the int at address args[0] */
       RESTORER_STORE = -3, /* args[1] becomes the int at address args[0] */
};
enum restorer_check { RESTORER_IGNORE, RESTORER_SUCCEED, RESTORER_EQUAL };

struct restorer_call {
	int32_t number;
	uint8_t from_slot; /* bit i: args[i] is the index of a slot */
	uint8_t check;
	uint8_t save; /* slot + 1 that receives the result, or 0 */
	uint8_t step; /* enum restorer_step, for errors */
	uint64_t args[6];
	uint64_t expect;
};

enum restorer_step {
	STEP_NONE,
	STEP_MEMORY,
	STEP_FILL,
	STEP_KERNEL_PAGES,
	STEP_PROGRAM,
	STEP_CGROUP,
	STEP_NAMESPACE,
	STEP_HELPER,
	STEP_PID,
	STEP_CONFINE,
	STEP_DESCRIPTOR,
	STEP_FOLDER,
	STEP_LIMITS,
	STEP_SIGNALS,
	STEP_TIMERS,
	STEP_THREAD,
	STEP_TID,
	STEP_ORDER,
	STEP_TREE,
	STEP_GROUP,
	STEP_TERMINAL,
	RESTORER_STEPS
};

struct restorer_list {
	uint64_t at; /* address of the first call */
	uint64_t count;
};

struct restorer_thread {
	int32_t tid;
	int32_t reserved;
	uint64_t stack;             /* its end */
	uint64_t frame;             /* stack pointer for rt_sigreturn */
	uint64_t tls;               /* arm64 */
	struct restorer_list calls; /* executed by the thread after "go" */
};

enum restorer_role {
	ROLE_PROGRAM,
	ROLE_ZOMBIE, /* ends with a status, and its parent does not wait for it */
	ROLE_HELPER, /* a leader of a session or group, or a parent, that has ended: exists until all groups are complete */
};

struct restorer_process { /* the first one is the copy itself; parents precede their children */
	int32_t pid;      /* negative: above that of the helper in the namespace */
	int32_t group;    /* 0: the group of its parent */
	uint32_t parent;  /* index */
	uint32_t role, status;
	uint32_t early; /* born before its parent makes its session */
	uint32_t leads; /* makes a session */
	uint32_t nthreads;
	uint64_t threads;   /* address of struct restorer_thread */
	uint32_t terminal;  /* of its session: 1 + index of the outside descriptor; 0: none */
	int32_t foreground; /* group in the foreground of it */
	struct restorer_list build, plan;
	char name[16]; /* of a zombie */
};

struct restorer_sync { /* in the shared page of one tree of copies */
	uint32_t phase, born, joined, detached, turn, done;
	int32_t socket, ask, answer;
	int32_t outside[RESTORER_OUTSIDE];
};

struct restorer_order { /* descriptors: pidfd of the namespace's init, the copy's socket, files `tasks`, outside ones */
	uint32_t outside;   /* how many */
	int32_t helper;     /* pid of the helper in the namespace, above all pids of the image */
	int32_t namespaces; /* CLONE_NEW* that the helper enters */
	uint32_t
		tasks; /* how many files `tasks` of cgroups the helper enters; they precede the outside ones */
};

struct restorer_report { /* on the zygote's socket after the build, on the copy's socket when it is ready */
	int32_t error; /* errno, or 0 */
	uint32_t step;
	uint64_t detail; /* index of the call, or the value seen */
	int64_t result;
};

struct restorer_state {
	uint64_t magic;
	uint64_t block, block_bytes; /* the whole mapping: code, state, lists, frames, stacks */
	int32_t control;             /* socket of the zygote */
	int32_t last_pid;            /* descriptor of ns_last_pid, or -1 */
	int32_t first_high;          /* above every descriptor number of the image */
	int32_t pid;
	struct restorer_list build, domain, confine, objects;
	uint64_t processes; /* address of struct restorer_process */
	uint32_t nprocesses;
	uint32_t programs; /* how many of them are ROLE_PROGRAM */
	uint64_t sync;     /* address of its page, which the copy maps */
	uint32_t me;       /* index of this process */
	uint32_t go;       /* futex: threads wait while it is 0 */
	uint64_t main_stack, helper_stack, inner_stack;
	int64_t slots[RESTORER_SLOTS];
	/* of the order in progress */
	struct restorer_order order;
	int32_t fds[2 + RESTORER_TASKS + RESTORER_OUTSIDE];
	int32_t ask[2], answer[2]; /* pipes between the copy and the helper in the namespace */
};

extern const char restorer_image[], restorer_image_end[];
const char *restorer_step_name(unsigned step);
