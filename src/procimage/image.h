/* image.h - a process image as data: what is needed to continue one program elsewhere.
 *
 * Tables of fixed-size records and one table of strings. The same bytes are in memory and in a file,
 * so the reader copies nothing and the writer formats nothing. Contents of memory are not in here: the
 * runs name the pages, and a snapshot child or a file of pages has their bytes.
 * An image describes the state of a hostile program: procimage_check() rejects every number, index, order
 * and name outside the format, and all other files of this folder rely on it.
 * Owns: the tables of struct image. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct err;

#define IMAGE_MAGIC UINT64_C(0x3147414d49434f52) /* "ROCIMAG1" */
enum {
	IMAGE_VERSION = 3,
	IMAGE_THREADS_MOST = 512,
	IMAGE_DESCRIPTORS_MOST = 4096,
	IMAGE_AREAS_MOST = 65536,
	IMAGE_RUNS_MOST = 1 << 21,
	IMAGE_STRINGS_MOST = 64 << 20,
	IMAGE_SIGNALS = 64,
	IMAGE_LIMITS = 16,
	IMAGE_AUXV_MOST = 64,
	IMAGE_REGISTERS = 40, /* 64-bit words; the architecture says which */
	IMAGE_VECTOR =
		16384, /* bytes of floating-point and vector registers of a thread, at most */
	IMAGE_NUMBER_MOST = 1 << 20, /* of a descriptor */
	IMAGE_PROCESSES_MOST = 64,   /* of a tree */
	IMAGE_OBJECTS_MOST = 4096,   /* descriptions that processes of a tree share */
	IMAGE_ZOMBIES_MOST = 64,
	IMAGE_TIMERS_MOST = 256,      /* of timer_create(); their numbers are below */
	IMAGE_NOTIFY_MOST = 4096,     /* watches of inotify; their numbers are not above */
	IMAGE_TERMINALS_MOST = 16,    /* of a tree */
	IMAGE_TERMINAL_NUMBER = 64,   /* numbers of terminals are below */
	IMAGE_TERMINAL_SETTINGS = 44, /* bytes of struct termios2 */
};
#define IMAGE_MEMORY_MOST (UINT64_C(8) << 30)

enum image_arch { IMAGE_X86_64 = 1, IMAGE_AARCH64 = 2 };

enum image_area_kind {
	AREA_ANON = 1,    /* private memory */
	AREA_FILE,        /* private mapping of a file */
	AREA_FILE_SHARED, /* shared mapping of a file: belongs to the copy's own file */
	AREA_SHARED,      /* shared memory without a name; its content is in the image */
	AREA_KERNEL,      /* vvar and vDSO: moved, never copied */
	AREA_KINDS
};
enum { /* bits of image_area.flags */
       AREA_GROWS_DOWN = 1,
       AREA_DONT_FORK =
	       2, /* was missing in the snapshot child: copied while the program was stopped */
       AREA_WIPE_ON_FORK = 4, /* content is zero in every copy */
       AREA_LARGE_PAGES = 8,
       AREA_SMALL_PAGES = 16,
       AREA_DONT_DUMP = 32,
       AREA_NO_RESERVE = 64,
       AREA_COPIED = 128,    /* private memory of a deleted file: all pages are in the image */
       AREA_ELSEWHERE = 256, /* shared memory whose content another area of the tree has */
       AREA_FLAGS = 511
};

struct image_area {
	uint64_t start, end;
	uint64_t offset; /* in the file; of shared memory: its inode */
	uint32_t file;   /* index, of kinds with a file */
	uint16_t kind;
	uint16_t prot; /* PROT_* */
	uint32_t flags;
	uint32_t at_page; /* of shared memory: where it begins in its object */
};

struct image_run { /* pages with content, in address order */
	uint64_t start;
	uint64_t pages;
};

enum {
	IMAGE_FILE_SHARED,
	IMAGE_FILE_BOX
}; /* of /usr; of the disk of the box, opened by the copy */

struct image_file {     /* a mapped file, identified by what must not have changed */
	uint32_t path;  /* string */
	uint32_t place; /* IMAGE_FILE_* */
	uint64_t size;
	uint64_t mtime_ns;
	uint64_t dev, ino; /* on this boot */
};

struct image_thread {
	int32_t tid;
	uint32_t vector_bytes;
	uint64_t registers
		[IMAGE_REGISTERS]; /* as NT_PRSTATUS has them; a call that was interrupted starts anew */
	uint64_t tls;              /* arm64; x86 has it in the registers */
	uint64_t signal_mask;
	uint64_t stack_at, stack_bytes; /* alternate stack of signals */
	uint32_t stack_flags;
	uint32_t rseq_bytes;
	uint64_t tid_address, robust_list, robust_bytes;
	uint64_t rseq, rseq_signature;
	uint64_t vector_at; /* offset in the table of vectors */
	uint64_t pending;   /* signals sent to this thread, as bits */
	char name[16];
	uint32_t parent_death_signal;
	int32_t nice;
};

enum image_descriptor_kind {
	DESCRIPTOR_SAME = 1, /* another number of the description `peer` */
	DESCRIPTOR_FILE,     /* path, offset, flags */
	DESCRIPTOR_PIPE,     /* one end; `peer` is the first descriptor of the same pipe */
	DESCRIPTOR_EVENT,
	DESCRIPTOR_TIMER,
	DESCRIPTOR_EPOLL,
	DESCRIPTOR_LISTENER, /* TCP or unix; address in `data` */
	DESCRIPTOR_PAIR,     /* one end of a unix socket pair */
	DESCRIPTOR_SOCKET,   /* neither bound nor connected */
	DESCRIPTOR_SIGNAL,
	DESCRIPTOR_MEMORY,  /* memfd or deleted file; content in `data` */
	DESCRIPTOR_OUTSIDE, /* the other end is held by the caller, which supplies a new one */
	DESCRIPTOR_RESET,   /* a connection to the outside: reset in the copy */
	DESCRIPTOR_OBJECT, /* the description `object`, which another descriptor of the tree describes */
	DESCRIPTOR_TERMINAL, /* the master of terminal `offset`: from outside. Slaves are files */
	DESCRIPTOR_NOTIFY,   /* inotify */
	DESCRIPTOR_KINDS
};

struct image_descriptor {
	int32_t number;
	uint32_t kind;
	uint32_t flags;   /* O_* of the description */
	uint32_t cloexec; /* 0 or 1 */
	uint64_t offset;  /* file; count of an eventfd; events of nothing else */
	uint64_t inode;   /* identifies pipes and sockets inside one image */
	uint32_t path;    /* string */
	int32_t peer;     /* number of another descriptor, or -1 */
	uint32_t data;    /* string with binary content */
	uint32_t data_bytes;
	uint32_t type; /* sockets: domain << 16 | type; timers: clock; memory: seals */
	uint32_t backlog;
	uint32_t object; /* not 0: processes of the tree share it under this number */
	uint32_t reserved;
};

struct image_watch { /* a row of an epoll's interest list */
	int32_t epoll, number;
	uint32_t events;
	uint32_t reserved;
	uint64_t data;
};

struct image_action { /* as rt_sigaction has it */
	uint64_t handler, flags, restorer, mask;
};

struct image_program {
	int32_t pid, parent, group, session;
	uint32_t exe;    /* file */
	uint32_t folder; /* string: working folder */
	uint32_t umask;
	uint32_t dumpable;
	uint64_t code[2], data[2], brk[2], stack, args[2], env[2]; /* PR_SET_MM_MAP */
	uint64_t auxv[IMAGE_AUXV_MOST];
	uint64_t nauxv; /* words */
	struct image_action actions[IMAGE_SIGNALS];
	uint64_t limits[IMAGE_LIMITS][2];
	uint64_t timers[3][4]; /* ITIMER_*: interval and value, seconds and microseconds */
	uint64_t pending;      /* signals sent to the process */
	uint64_t call_at;      /* instruction that makes a system call and returns */
	char name[16];
	uint32_t early;    /* born before its parent made its session */
	uint32_t stopped;  /* by a signal */
	uint32_t terminal; /* 1 + its number; 0: none */
	int32_t foreground; /* group in the foreground of the terminal, of the leader of its session */
};
/* parent: pid of a process of the same tree; 1: init, of a process whose parent has ended; 0: the first
 * process of a tree. */

struct image_zombie { /* a child that has ended and was not waited for */
	int32_t pid, group;
	uint32_t status; /* as wait() has it */
	uint32_t reserved;
	char name[16];
};

struct image_timer {                         /* of timer_create(), in order of numbers */
	int32_t number, signal, notify, tid; /* as struct sigevent has them */
	int32_t clock;
	uint32_t reserved;
	uint64_t value;
	uint64_t interval[2], left[2];
};

struct image_notify { /* a watch of an inotify, in order of numbers for each descriptor */
	int32_t descriptor, number;
	uint32_t mask;
	uint32_t path; /* string */
};

struct image_terminal {
	uint32_t number;
	uint32_t packets; /* TIOCPKT */
	uint16_t rows, cols, width, height;
	unsigned char settings[IMAGE_TERMINAL_SETTINGS];
	uint32_t reserved;
};

enum image_table {
	TABLE_PROGRAM,
	TABLE_AREAS,
	TABLE_RUNS,
	TABLE_FILES,
	TABLE_THREADS,
	TABLE_DESCRIPTORS,
	TABLE_WATCHES,
	TABLE_ZOMBIES,
	TABLE_TIMERS,
	TABLE_NOTIFY,
	TABLE_TERMINALS,
	TABLE_VECTORS,
	TABLE_STRINGS, /* each ends with a NUL; binary content has its length beside it */
	IMAGE_TABLES
};

struct image_header {
	uint64_t magic;
	uint32_t version, arch;
	uint32_t page_bytes, reserved;
	uint64_t count[IMAGE_TABLES]; /* records, or bytes of vectors and strings */
};

struct image_list {
	void *at;
	uint64_t count, room;
};

struct image {
	struct image_header header;
	struct image_list table[IMAGE_TABLES];
	void *mapped; /* set by procimage_decode(): the tables lie in here */
};

#define IMAGE_ROWS(im, which, type) ((type *)(im)->table[which].at)
static inline struct image_program *image_program(const struct image *im)
{
	return im->table[TABLE_PROGRAM].at;
}
static inline struct image_area *image_areas(const struct image *im)
{
	return im->table[TABLE_AREAS].at;
}
static inline struct image_run *image_runs(const struct image *im)
{
	return im->table[TABLE_RUNS].at;
}
static inline struct image_file *image_files(const struct image *im)
{
	return im->table[TABLE_FILES].at;
}
static inline struct image_thread *image_threads(const struct image *im)
{
	return im->table[TABLE_THREADS].at;
}
static inline struct image_descriptor *image_descriptors(const struct image *im)
{
	return im->table[TABLE_DESCRIPTORS].at;
}
static inline struct image_watch *image_watches(const struct image *im)
{
	return im->table[TABLE_WATCHES].at;
}
static inline struct image_zombie *image_zombies(const struct image *im)
{
	return im->table[TABLE_ZOMBIES].at;
}
static inline struct image_timer *image_timers(const struct image *im)
{
	return im->table[TABLE_TIMERS].at;
}
static inline struct image_notify *image_notify(const struct image *im)
{
	return im->table[TABLE_NOTIFY].at;
}
static inline struct image_terminal *image_terminals(const struct image *im)
{
	return im->table[TABLE_TERMINALS].at;
}
static inline const char *image_string(const struct image *im, uint32_t at)
{
	return (const char *)im->table[TABLE_STRINGS].at + at;
}

void procimage_init(struct image *im); /* empty, of this machine's architecture */
void procimage_fini(struct image *im);

/* n zeroed records at the end of a table; out of memory aborts. Earlier pointers into it are invalid. */
void *procimage_add(struct image *im, enum image_table which, uint64_t n);
uint32_t procimage_add_bytes(struct image *im, const void *bytes, size_t n); /* as a string */
uint32_t procimage_add_string(struct image *im, const char *s);

int procimage_check(const struct image *im, struct err *e);
/* Processes of one tree, parents before their children. */
int procimage_check_tree(const struct image *const *v, unsigned n, struct err *e);
int procimage_encode(const struct image *im, int fd, struct err *e);
/* All bytes of an image. The image refers to them, so they must stay. */
int procimage_decode(struct image *im, void *bytes, size_t len, struct err *e);
uint64_t procimage_memory_bytes(const struct image *im); /* of all runs */
