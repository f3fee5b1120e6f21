/* kernel.c - see kernel.h. */
#include "jupyter/kernel.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "base/hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int new_session(char out[KERNEL_SESSION + 1], struct err *e)
{
	unsigned char raw[KERNEL_SESSION / 2];

	if (id_random(raw, sizeof(raw), e) < 0)
		return -1;
	hex_encode(out, raw, sizeof(raw));
	return 0;
}

int kernel_init(struct kernel *k, struct err *e)
{
	*k = (struct kernel){ 0 };
	return new_session(k->session, e) < 0 || zmq_load(&k->zmq, e) < 0 ? -1 : 0;
}

int kernel_open(struct kernel *k, const struct launch *l, struct err *e)
{
	static const struct {
		int port, type;
	} sockets[] = { { PORT_IOPUB, ZMQ_SUB },
			{ PORT_SHELL, ZMQ_DEALER },
			{ PORT_STDIN, ZMQ_DEALER },
			{ PORT_CONTROL, ZMQ_DEALER } };

	k->key = l->key;
	for (unsigned i = 0; i < ARRAY_LEN(sockets); i++) {
		/* One identity on all sockets: a kernel sends input requests to the sender of the
		 * cell. */
		const char *identity = sockets[i].type == ZMQ_DEALER ? k->session : NULL;
		char path[96];

		launch_socket(l, sockets[i].port, path);
		if (zmq_open(&k->zmq, sockets[i].type, path, identity, &k->socket[sockets[i].port],
			     e) < 0)
			return -1;
	}
	return 0;
}

static int send_frames(struct kernel *k, int port, const struct jupyter_out *l)
{
	void *s = k->socket[port];
	int flags = ZMQ_DONTWAIT | ZMQ_SNDMORE;

	if (k->zmq.send(s, JUPYTER_MSG_DELIMITER, strlen(JUPYTER_MSG_DELIMITER), flags) < 0 ||
	    k->zmq.send(s, l->signature, JUPYTER_MSG_SIGNATURE, flags) < 0)
		return -1;
	for (unsigned i = 0; i < JUPYTER_MSG_PARTS; i++)
		if (k->zmq.send(s, l->part[i].p, l->part[i].len,
				i + 1 < JUPYTER_MSG_PARTS ? flags : ZMQ_DONTWAIT) < 0)
			return -1;
	return 0;
}

int kernel_send(struct kernel *k, int port, const char *type, const json_t *parent,
		json_t *take_content, char out_id[JUPYTER_MSG_ID], struct err *e)
{
	char id[JUPYTER_MSG_ID];
	struct jupyter_out l;
	int rc;

	snprintf(id, sizeof(id), "%s-%" PRIu64, k->session, ++k->sent);
	jupyter_out_write(&l, k->key, type, k->session, id, parent, take_content);
	rc = send_frames(k, port, &l);
	jupyter_out_fini(&l);
	if (rc < 0)
		return err_set(e, ERR_SYS, "send %s to the kernel: %s", type,
			       k->zmq.strerror(k->zmq.last_error()));
	if (out_id)
		memcpy(out_id, id, sizeof(id));
	return 0;
}

int kernel_is_ours(const struct kernel *k, const char *id)
{
	return !strncmp(id, k->session, KERNEL_SESSION) && id[KERNEL_SESSION] == '-';
}

/* Reads all frames of one message, and drops those over the limit; 0: no message. */
static unsigned take_frames(struct kernel *k, void *s, struct zmq_msg *msgs,
			    struct msg_frame *frames)
{
	unsigned n = 0;
	int more = 1;

	while (more) {
		struct zmq_msg spare, *m = n < JUPYTER_MSG_FRAMES ? &msgs[n] : &spare;

		k->zmq.msg_init(m);
		/* The parts of a message arrive together: only the first one is waited for. */
		if (k->zmq.msg_recv(m, s, ZMQ_DONTWAIT) < 0) {
			k->zmq.msg_close(m);
			return n;
		}
		more = k->zmq.msg_more(m);
		if (n < JUPYTER_MSG_FRAMES)
			frames[n] = (struct msg_frame){ k->zmq.msg_data(m), k->zmq.msg_size(m) };
		else
			k->zmq.msg_close(m);
		n++;
	}
	return n;
}

int kernel_take(struct kernel *k, int port, struct jupyter_msg *out, struct err *e)
{
	struct zmq_msg msgs[JUPYTER_MSG_FRAMES];
	struct msg_frame frames[JUPYTER_MSG_FRAMES];
	unsigned n = take_frames(k, k->socket[port], msgs, frames);
	int rc = -1;

	if (!n)
		return 0;
	if (n > JUPYTER_MSG_FRAMES)
		rc = err_set(e, ERR_INVALID, "it has more than %d frames", JUPYTER_MSG_FRAMES);
	else
		rc = jupyter_msg_parse(out, frames, n, k->key, e);
	for (unsigned i = 0; i < n && i < JUPYTER_MSG_FRAMES; i++)
		k->zmq.msg_close(&msgs[i]);
	return rc < 0 ? -1 : 1;
}
