/* descriptor.c - see descriptor.h. */
#include "mux/descriptor.h"
#include "initlib/sys.h"

enum { SO_TYPE_NAME = 3, SO_ACCEPTCONN_NAME = 30, BACKLOG = 64, AUTOBIND = sizeof(uint16_t) };
enum { GET_SEALS = 1034 };

static int descriptor_socket_kind(int fd)
{
	int type = 0, listening = 0;
	unsigned len = sizeof(type);

	if (sys_getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN_NAME, &listening, &len) < 0)
		listening = 0;
	len = sizeof(type);
	if (sys_getsockopt(fd, SOL_SOCKET, SO_TYPE_NAME, &type, &len) < 0)
		return 0;
	if (listening)
		return type == SOCK_STREAM ? PACKET_LISTENER : 0;
	return type == SOCK_STREAM ? PACKET_STREAM : type == SOCK_SEQPACKET ? PACKET_SEQPACKET : 0;
}

int descriptor_kind(int fd)
{
	struct stat st;
	long flags = sys_fcntl(fd, F_GETFL, 0);

	if (flags < 0 || flags & O_PATH || sys_fstat(fd, &st) < 0)
		return 0;
	if ((st.st_mode & S_IFMT) == S_IFSOCK)
		return descriptor_socket_kind(fd);
	if ((st.st_mode & S_IFMT) == S_IFIFO)
		return (flags & O_ACCMODE) == O_RDONLY   ? PACKET_PIPE_READ
		       : (flags & O_ACCMODE) == O_WRONLY ? PACKET_PIPE_WRITE
							 : 0;
	/* Only files that exist in memory alone have seals. */
	if ((st.st_mode & S_IFMT) == S_IFREG && sys_fcntl(fd, GET_SEALS, 0) >= 0)
		return PACKET_MEMFD;
	return 0;
}

int descriptor_pair(unsigned kind, int *ours, int *theirs)
{
	int pair[2], mine = kind == PACKET_PIPE_READ;
	long err;

	if (kind == PACKET_PIPE_READ || kind == PACKET_PIPE_WRITE) {
		err = sys_pipe(pair, O_CLOEXEC);
		if (err >= 0)
			sys_fcntl(pair[mine], F_SETFL, O_NONBLOCK | (mine ? O_WRONLY : O_RDONLY));
	} else {
		err = sys_socketpair((kind == PACKET_STREAM ? SOCK_STREAM : SOCK_SEQPACKET) |
					     SOCK_CLOEXEC,
				     pair);
		mine = 0;
	}
	if (err < 0)
		return (int)err;
	*ours = pair[mine];
	*theirs = pair[!mine];
	return 0;
}

/* The kernel chooses an abstract name that is free in this network namespace. */
int descriptor_listen(struct descriptor_address *out)
{
	int fd = (int)sys_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
	long err = fd;

	*out = (struct descriptor_address){ .family = AF_UNIX,
					    .bytes = AUTOBIND + sizeof(out->name) };
	if (err >= 0)
		err = sys_bind(fd, out, AUTOBIND);
	if (err >= 0)
		err = sys_listen(fd, BACKLOG);
	if (err >= 0)
		err = sys_getsockname(fd, out, &out->bytes);
	if (err >= 0 && out->bytes <= AUTOBIND + sizeof(out->name))
		return fd;
	if (fd >= 0)
		sys_close(fd);
	return err < 0 ? (int)err : -EINVAL;
}

int descriptor_connect(const struct descriptor_address *to)
{
	int fd = (int)sys_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
	long err = fd < 0 ? fd : sys_connect(fd, to, to->bytes);

	if (err >= 0)
		return fd;
	sys_close(fd);
	return (int)err;
}

/* A name can be bound again when the last descriptor of its socket is closed; trying costs nothing, while
 * a connection would be seen by the process that listens. */
int descriptor_abandoned(const struct descriptor_address *a)
{
	int fd = (int)sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
	long err = fd < 0 ? fd : sys_bind(fd, a, a->bytes);

	sys_close(fd);
	return err >= 0;
}
