/* capture.c - see capture.h. */
#include "jail/capture.h"
#include "base/cleanup.h"
#include "jail/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	CAPTURE_BACKLOG = 128,
	CAPTURE_DNS_PORT = 53,
	CAPTURE_PORT6 = 3129, /* of ::1; another one if a program of the box has it */
	LO_INDEX = 1,
};
#define CAPTURE_ADDRESS 0xc613ffffu /* 198.19.255.255 */

/* Rows of the map of sockets that the program uses. */
enum { KEY_TCP, KEY_UDP, KEY_TCP6, KEYS };

/* ---- the program ---- */

struct capture_code {
	struct bpf_insn v[48];
	unsigned n;
	unsigned to_end[8], nto_end; /* jumps to the end of the program */
};

static unsigned code_add(struct capture_code *c, uint8_t op, unsigned dst, unsigned src, int off,
			 int32_t imm)
{
	c->v[c->n] = (struct bpf_insn){ .code = op,
					.dst_reg = dst & 15,
					.src_reg = src & 15,
					.off = (int16_t)off,
					.imm = imm };
	return c->n++;
}

static void code_load(struct capture_code *c, unsigned dst, size_t member)
{
	code_add(c, BPF_LDX | BPF_W | BPF_MEM, dst, BPF_REG_6, (int)member, 0);
}

static void code_set(struct capture_code *c, unsigned dst, int32_t value)
{
	code_add(c, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value);
}

static void code_copy(struct capture_code *c, unsigned dst, unsigned src)
{
	code_add(c, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

/* A jump to the row that code_here() is called at. op: BPF_JEQ, BPF_JNE, BPF_JA. */
static unsigned code_jump(struct capture_code *c, uint8_t op, unsigned reg, int32_t value)
{
	return code_add(c, BPF_JMP | op | BPF_K, reg, 0, 0, value);
}

static void code_here(struct capture_code *c, unsigned jump)
{
	c->v[jump].off = (int16_t)(c->n - jump - 1);
}

static void code_end_if(struct capture_code *c, uint8_t op, unsigned reg, int32_t value)
{
	c->to_end[c->nto_end++] = code_jump(c, op, reg, value);
}

static void code_to_host_order(struct capture_code *c, unsigned reg)
{
	code_add(c, BPF_ALU | BPF_END | BPF_TO_BE, reg, 0, 0, 32);
}

/* Assigns the socket of the row in register 7, if there is one. */
static void code_assign(struct capture_code *c, int map)
{
	code_add(c, BPF_STX | BPF_W | BPF_MEM, BPF_REG_10, BPF_REG_7, -4, 0);
	code_add(c, BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map);
	code_add(c, 0, 0, 0, 0, 0); /* the second half of that one */
	code_copy(c, BPF_REG_2, BPF_REG_10);
	code_add(c, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4);
	code_add(c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem);
	code_end_if(c, BPF_JEQ, BPF_REG_0, 0);
	code_copy(c, BPF_REG_7, BPF_REG_0);
	code_copy(c, BPF_REG_1, BPF_REG_6);
	code_copy(c, BPF_REG_2, BPF_REG_7);
	code_set(c, BPF_REG_3, 0);
	code_add(c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_sk_assign);
	code_copy(c, BPF_REG_1, BPF_REG_7);
	code_add(c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_sk_release);
}

/* The kernel calls it for a connection or datagram without a connected socket, before it looks for
 * a listener. At the end of the program, without an assigned socket, it looks for a listener. */
static void capture_program(struct capture_code *c, int map)
{
	unsigned tcp, v4, v6, far_v4, far_v6;

	code_copy(c, BPF_REG_6, BPF_REG_1);
	code_load(c, BPF_REG_1, offsetof(struct bpf_sk_lookup, protocol));
	tcp = code_jump(c, BPF_JNE, BPF_REG_1, IPPROTO_UDP);

	code_set(c, BPF_REG_7, KEY_UDP);
	code_load(c, BPF_REG_1, offsetof(struct bpf_sk_lookup, local_port));
	code_end_if(c, BPF_JNE, BPF_REG_1, CAPTURE_DNS_PORT);
	code_load(c, BPF_REG_1, offsetof(struct bpf_sk_lookup, family));
	code_end_if(c, BPF_JNE, BPF_REG_1, AF_INET);
	v4 = code_jump(c, BPF_JA, 0, 0);

	code_here(c, tcp);
	code_end_if(c, BPF_JNE, BPF_REG_1, IPPROTO_TCP);
	code_set(c, BPF_REG_7, KEY_TCP);
	code_load(c, BPF_REG_1, offsetof(struct bpf_sk_lookup, family));
	v6 = code_jump(c, BPF_JNE, BPF_REG_1, AF_INET);

	code_here(c, v4);
	code_load(c, BPF_REG_1, offsetof(struct bpf_sk_lookup, local_ip4));
	code_to_host_order(c, BPF_REG_1);
	code_add(c, BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_1, 0, 0, 24);
	code_end_if(c, BPF_JEQ, BPF_REG_1, 127); /* 127.0.0.0/8 */
	far_v4 = code_jump(c, BPF_JA, 0, 0);

	code_here(c, v6);
	code_set(c, BPF_REG_7, KEY_TCP6);
	code_load(c, BPF_REG_1, offsetof(struct bpf_sk_lookup, local_ip6[0]));
	for (unsigned i = 1; i < 3; i++) {
		code_load(c, BPF_REG_2,
			  offsetof(struct bpf_sk_lookup, local_ip6) + i * sizeof(uint32_t));
		code_add(c, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	}
	far_v6 = code_jump(c, BPF_JNE, BPF_REG_1, 0);
	code_load(c, BPF_REG_1, offsetof(struct bpf_sk_lookup, local_ip6[3]));
	code_to_host_order(c, BPF_REG_1);
	code_end_if(c, BPF_JEQ, BPF_REG_1, 1); /* ::1 */

	code_here(c, far_v4);
	code_here(c, far_v6);
	code_assign(c, map);

	for (unsigned i = 0; i < c->nto_end; i++)
		code_here(c, c->to_end[i]);
	code_set(c, BPF_REG_0, SK_PASS);
	code_add(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static int capture_bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int capture_map(struct err *e)
{
	union bpf_attr a = { .map_type = BPF_MAP_TYPE_SOCKMAP,
			     .key_size = sizeof(uint32_t),
			     .value_size = sizeof(uint64_t),
			     .max_entries = KEYS };
	int fd = capture_bpf(BPF_MAP_CREATE, &a);

	return fd < 0 ? err_sys(e, "BPF map of sockets") : fd;
}

static int capture_map_set(int map, uint32_t key, int sock, struct err *e)
{
	uint64_t value = (uint64_t)sock;
	union bpf_attr a = { .map_fd = (uint32_t)map,
			     .key = (uintptr_t)&key,
			     .value = (uintptr_t)&value };

	if (sock >= 0 && capture_bpf(BPF_MAP_UPDATE_ELEM, &a) < 0)
		return err_sys(e, "add a socket to a BPF map");
	return 0;
}

static int capture_load(int map, struct err *e)
{
	static const char license[] = "Apache-2.0";
	struct capture_code c = { 0 };
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_SK_LOOKUP,
			     .expected_attach_type = BPF_SK_LOOKUP,
			     .license = (uintptr_t)license };
	int fd;

	capture_program(&c, map);
	a.insns = (uintptr_t)c.v;
	a.insn_cnt = c.n;
	memcpy(a.prog_name, "atoll_capture", sizeof("atoll_capture"));
	fd = capture_bpf(BPF_PROG_LOAD, &a);
	return fd < 0 ? err_sys(e, "load the sk_lookup program") : fd;
}

static int capture_attach(int prog, int ns, struct err *e)
{
	union bpf_attr a = { .link_create = { .prog_fd = (uint32_t)prog,
					      .target_fd = (uint32_t)ns,
					      .attach_type = BPF_SK_LOOKUP } };
	int fd = capture_bpf(BPF_LINK_CREATE, &a);

	return fd < 0 ? err_sys(e, "attach the sk_lookup program to a network namespace") : fd;
}

int capture_check(struct err *e)
{
	auto_fd int map = capture_map(e), prog = -1;

	if (map < 0)
		return -1;
	prog = capture_load(map, e);
	return prog < 0 ? -1 : 0;
}

/* ---- the route ---- */

/* An answer of EEXIST is no error: an earlier call has added it. */
static int capture_netlink(const struct nlmsghdr *ask, const char *what, struct err *e)
{
	auto_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
	} answer;

	if (fd < 0 || send(fd, ask, ask->nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer))
		return err_sys(e, "request the %s of a network namespace", what);
	if (answer.error.error != 0 && answer.error.error != -EEXIST) {
		errno = -answer.error.error;
		return err_sys(e, "add the %s of a network namespace", what);
	}
	return 0;
}

static struct nlmsghdr capture_netlink_head(uint16_t type, size_t n)
{
	return (struct nlmsghdr){ .nlmsg_type = type,
				  .nlmsg_flags =
					  NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
				  .nlmsg_len = (uint32_t)n };
}

struct capture_route {
	struct nlmsghdr head;
	struct rtmsg route;
	struct rtattr oif_head;
	uint32_t oif;
	struct rtattr source_head;
	uint8_t source[16];
};

/* Every address is an address of lo, and the source is the loopback address: with the default
 * source, which is the destination, a program could be connected to itself. */
static int capture_add_route(int family, const void *source, size_t n, struct err *e)
{
	struct capture_route m = {
		.head = capture_netlink_head(RTM_NEWROUTE,
					     offsetof(struct capture_route, source) + n),
		.route = { .rtm_family = (uint8_t)family,
			   .rtm_table = RT_TABLE_LOCAL,
			   .rtm_protocol = RTPROT_STATIC,
			   .rtm_scope = RT_SCOPE_HOST,
			   .rtm_type = RTN_LOCAL },
		.oif_head = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF },
		.oif = LO_INDEX,
		.source_head = { .rta_len = (unsigned short)RTA_LENGTH(n),
				 .rta_type = RTA_PREFSRC },
	};

	memcpy(m.source, source, n);
	return capture_netlink(&m.head, "route", e);
}

/* An IPv4 address that is not a loopback address: without one, glibc finds no address for a name
 * (AI_ADDRCONFIG). No program uses it: a connection to it is captured, too. */
static int capture_add_address(struct err *e)
{
	const struct {
		struct nlmsghdr head;
		struct ifaddrmsg address;
		struct rtattr local_head;
		uint32_t local;
	} m = {
		.head = capture_netlink_head(RTM_NEWADDR, sizeof(m)),
		.address = { .ifa_family = AF_INET,
			     .ifa_prefixlen = 32,
			     .ifa_scope = RT_SCOPE_HOST,
			     .ifa_index = LO_INDEX },
		.local_head = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = IFA_LOCAL },
		.local = htonl(CAPTURE_ADDRESS),
	};

	return capture_netlink(&m.head, "address", e);
}

/* ---- the sockets ---- */

static int capture_socket(int type, const struct sockaddr *at, socklen_t len, struct err *e)
{
	auto_fd int fd = socket(at->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return err_sys(e, "socket for captured connections");
	/* The namespace may have connections of an earlier listener. Not for UDP: a program of the
	 * box could share the socket's address. */
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (at->sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return err_sys(e, "socket for captured connections");
	if (bind(fd, at, len) < 0 || (type == SOCK_STREAM && listen(fd, CAPTURE_BACKLOG) < 0))
		return err_sys(e, "bind the socket for captured connections");
	return steal_fd(&fd);
}

/* On 127.0.0.53:53: name servers of the box at other addresses are not affected. */
static int capture_sockets(struct net_capture *out, struct err *e)
{
	struct sockaddr_in dns = { .sin_family = AF_INET,
				   .sin_port = htons(CAPTURE_DNS_PORT),
				   .sin_addr = { htonl(0x7f000035) } };

	out->fd[CAPTURE_TCP] = capture_socket(SOCK_STREAM, (struct sockaddr *)&dns, sizeof(dns), e);
	if (out->fd[CAPTURE_TCP] < 0)
		return -1;
	out->fd[CAPTURE_UDP] = capture_socket(SOCK_DGRAM, (struct sockaddr *)&dns, sizeof(dns), e);
	return out->fd[CAPTURE_UDP] < 0 ? -1 : 0;
}

/* A host without IPv6 is no error. */
static void capture_sockets6(struct net_capture *out)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6,
				   .sin6_port = htons(CAPTURE_PORT6),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct err ignored;

	if (capture_add_route(AF_INET6, &at.sin6_addr, sizeof(at.sin6_addr), &ignored) < 0)
		return;
	out->fd[CAPTURE_TCP6] =
		capture_socket(SOCK_STREAM, (struct sockaddr *)&at, sizeof(at), &ignored);
	if (out->fd[CAPTURE_TCP6] >= 0)
		return;
	at.sin6_port = 0;
	out->fd[CAPTURE_TCP6] =
		capture_socket(SOCK_STREAM, (struct sockaddr *)&at, sizeof(at), &ignored);
}

static int capture_link(int ns, struct net_capture *out, struct err *e)
{
	auto_fd int map = capture_map(e), prog = -1;

	if (map < 0 || capture_map_set(map, KEY_TCP, out->fd[CAPTURE_TCP], e) < 0 ||
	    capture_map_set(map, KEY_UDP, out->fd[CAPTURE_UDP], e) < 0 ||
	    capture_map_set(map, KEY_TCP6, out->fd[CAPTURE_TCP6], e) < 0)
		return -1;
	prog = capture_load(map, e);
	out->fd[CAPTURE_LINK] = prog < 0 ? -1 : capture_attach(prog, ns, e);
	return out->fd[CAPTURE_LINK] < 0 ? -1 : 0;
}

static int capture_inside(void *ctx, int ns, struct err *e)
{
	const uint32_t source = htonl(INADDR_LOOPBACK);
	struct net_capture *out = ctx;

	if (capture_sockets(out, e) < 0 || capture_add_address(e) < 0 ||
	    capture_add_route(AF_INET, &source, sizeof(source), e) < 0)
		return -1;
	capture_sockets6(out);
	return capture_link(ns, out, e);
}

int capture_open(int proc, int ns, struct net_capture *out, struct err *e)
{
	for (unsigned i = 0; i < CAPTURE_FDS; i++)
		out->fd[i] = -1;
	if (net_run_inside(proc, ns, capture_inside, out, e) == 0)
		return 0;
	capture_close(out);
	return -1;
}

void capture_close(struct net_capture *c)
{
	for (unsigned i = 0; i < CAPTURE_FDS; i++)
		own_close_fd(&c->fd[i]);
}
