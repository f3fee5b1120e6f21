/* keep.h - what a copy of a program keeps, what differs in it, and what cannot be captured.
 *
 * One row per thing. Capture decides by these rows and names them in its errors; the table "What is
 * kept" of docs/checkpoints.md is printed from them. */
#pragma once

struct err;

enum keep_outcome {
	KEEP_KEPT,    /* the copy has the same */
	KEEP_CHANGED, /* the copy has it, with a difference that the text names */
	KEEP_REFUSED  /* the capture fails, the source is not harmed */
};

#define KEEP_ROWS(ROW)                                                                             \
	ROW(MEMORY, KEPT, "private memory, stacks, heap", "shared copy-on-write with all copies")  \
	ROW(THREADS, KEPT, "threads with their tids",                                              \
	    "registers, vector registers, TLS, signal mask, alternate stack, robust list, rseq")   \
	ROW(PIDS, KEPT, "pid, variables, working folder, umask, limits", "the same values")        \
	ROW(TREE, KEPT, "child processes, their pids, sessions and process groups",                \
	    "wait() works; what fork() shared is copied, and is no longer shared")                 \
	ROW(STOPPED, KEPT, "a program stopped by a signal", "is stopped in the copy")              \
	ROW(ZOMBIES, KEPT, "children that have ended", "with their exit status")                   \
	ROW(PROGRAM, KEPT, "the file of the program", "of /usr or of the disk of the box")         \
	ROW(SIGNALS, KEPT, "signal handlers, pending signals",                                     \
	    "values sent with a signal are lost")                                                  \
	ROW(MAPPED, KEPT, "mapped files of /usr",                                                  \
	    "by path; with another size or time: refused, or from the image if that is portable")  \
	ROW(MAPPED_BOX, KEPT, "mapped files of the disk of the box", "as private memory")          \
	ROW(MAPPED_SHARED, CHANGED, "files mapped shared", "mapped from the files of the copy")    \
	ROW(SHARED, KEPT, "shared memory without a name",                                          \
	    "content as at the stop; the processes of an exec share it again")                     \
	ROW(WIPED, CHANGED, "memory marked MADV_WIPEONFORK", "zero")                               \
	ROW(FILE, KEPT, "open files, folders, devices null, zero, full, random",                   \
	    "opened by path, same offset and flags")                                               \
	ROW(DELETED, KEPT, "memfd and deleted files", "content as at the stop")                    \
	ROW(PIPE, KEPT, "pipes between the processes of an exec", "with the bytes in them")        \
	ROW(EVENT, KEPT, "eventfd, timerfd, signalfd, epoll",                                      \
	    "counters, remaining time, interest lists")                                            \
	ROW(PAIR, KEPT, "unix socket pairs between the processes of an exec",                      \
	    "with the bytes in them")                                                              \
	ROW(LISTENER, KEPT, "listening sockets", "bound again; clients must connect again")        \
	ROW(OUTSIDE, CHANGED, "stdin, stdout, stderr of an exec", "new ends at init")              \
	ROW(CONNECTION, CHANGED, "TCP connections", "reset in the copy; the source keeps them")    \
	ROW(SLEEP, CHANGED, "sleeps and timeouts of calls in progress",                            \
	    "relative ones start anew")                                                            \
	ROW(CLOCK, KEPT, "monotonic clock", "does not go back, also after another boot")           \
	ROW(TIMERS, KEPT, "interval timers, timers of timer_create()",                             \
	    "remaining time, numbers; overruns are lost")                                          \
	ROW(NOTIFY, KEPT, "inotify", "its watches; events that were not read are lost")            \
	ROW(TERMINAL, KEPT, "terminals: masters, slaves, sessions, the group in the foreground",   \
	    "number, settings, size; bytes on their way in them are lost")                         \
	ROW(LANDLOCK, CHANGED, "landlock rules of the program's own",                              \
	    "the copy has only those of its box: the kernel does not show others")                 \
	ROW(VISIBLE, CHANGED, "the programs in /proc",                                             \
	    "programs that are started later do not see those of the copy there")                  \
	ROW(RANDOM, CHANGED, "random generators in memory", "identical in all copies")             \
	ROW(INODES, CHANGED, "inode numbers of the files of a box", "other numbers")               \
	ROW(LOCKS, CHANGED, "locks of files", "the copy does not hold them")                       \
	ROW(IO_URING, REFUSED, "io_uring", "its rings belong to the kernel")                       \
	ROW(USERFAULTFD, REFUSED, "userfaultfd", "the program serves page faults itself")          \
	ROW(PERF, REFUSED, "perf events and BPF objects", "they belong to the kernel")             \
	ROW(DEVICE, REFUSED, "device nodes with state",                                            \
	    "a GPU, or a terminal that is none of /dev/pts")                                       \
	ROW(TRACED, REFUSED, "a program under a debugger", "a thread has one tracer")              \
	ROW(RAW_SOCKET, REFUSED, "raw, packet and netlink sockets", "their state cannot be read")  \
	ROW(OTHER_SOCKET, REFUSED, "connected unix and UDP sockets",                               \
	    "the other end is outside the exec")                                                   \
	ROW(IN_FLIGHT, REFUSED, "descriptors, messages or 1 MiB that wait in a socket",            \
	    "only bytes of streams are copied")                                                    \
	ROW(OTHER_PIPE, REFUSED, "pipes whose other end is outside the exec",                      \
	    "unless the caller supplies it")                                                       \
	ROW(FANOTIFY, REFUSED, "fanotify", "its marks cannot be read back")                        \
	ROW(NOT_FOUND, REFUSED, "inotify watches of files without a name",                         \
	    "or not among the first 50,000 names of the box")                                      \
	ROW(OTHER, REFUSED, "other descriptors", "the kind is unknown")                            \
	ROW(CHILDREN, REFUSED, "a process that no running exec has begun",                         \
	    "its exec, or the session that it belongs to, is not captured")                        \
	ROW(FILTERS, REFUSED, "a seccomp filter of the program's own",                             \
	    "only root of the host can read it, and a capture is none")                            \
	ROW(EXECUTABLE, REFUSED, "a program whose file was deleted or replaced",                   \
	    "a copy opens it by name")                                                             \
	ROW(FOLDER, REFUSED, "a working folder that was deleted", "a copy enters it by name")      \
	ROW(LEADER, REFUSED, "a program whose first thread has ended",                             \
	    "that thread has the pid, and cannot run in a copy either")                            \
	ROW(USER, REFUSED, "programs of another user than that of the box",                        \
	    "copies run as the user of the box")                                                   \
	ROW(SYSV, REFUSED, "System V shared memory", "they belong to the namespace")               \
	ROW(REGISTERS, REFUSED, "AMX tiles, 32-bit programs", "not restored")                      \
	ROW(TOO_MANY, REFUSED,                                                                     \
	    "more than 64 processes, 512 threads, 256 timers, 4,096 descriptors, 16,384 "          \
	    "mappings or 8 GiB",                                                                   \
	    "limits")                                                                              \
	ROW(NO_PID, REFUSED, "a box that has as many processes as its limit",                      \
	    "a snapshot is one more process for a moment")                                         \
	ROW(NO_HOLE, REFUSED, "a program that has mapped nearly all addresses",                    \
	    "the code that makes a copy needs a hole")

enum keep {
#define ROW(id, outcome, thing, text) KEEP_##id,
	KEEP_ROWS(ROW)
#undef ROW
		KEEP_COUNT
};

struct keep_row {
	const char *name;
	enum keep_outcome outcome;
	const char *thing, *text;
};
extern const struct keep_row keep_rows[KEEP_COUNT];
const char *keep_outcome_name(enum keep_outcome o);

/* Fails with ERR_CONFLICT and "not_capturable: pid, command, descriptor: thing: reason". descriptor -1:
 * none. */
int keep_refuse(struct err *e, enum keep row, int pid, int descriptor, const char *seen);
