/* zmq.c - see zmq.h. */
#include "jupyter/zmq.h"
#include "base/cleanup.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum {
	AGAIN_MS = 5,       /* between two tries to reach a kernel that is still starting */
	QUEUE_MOST = 100000 /* queued messages: a kernel drops messages over its limit */
};

static const struct {
	const char *name;
	size_t at; /* in struct zmq */
} names[] = {
	{ "zmq_socket", offsetof(struct zmq, socket) },
	{ "zmq_setsockopt", offsetof(struct zmq, setsockopt) },
	{ "zmq_connect", offsetof(struct zmq, connect) },
	{ "zmq_send", offsetof(struct zmq, send) },
	{ "zmq_poll", offsetof(struct zmq, poll) },
	{ "zmq_msg_init", offsetof(struct zmq, msg_init) },
	{ "zmq_msg_recv", offsetof(struct zmq, msg_recv) },
	{ "zmq_msg_close", offsetof(struct zmq, msg_close) },
	{ "zmq_msg_data", offsetof(struct zmq, msg_data) },
	{ "zmq_msg_size", offsetof(struct zmq, msg_size) },
	{ "zmq_msg_more", offsetof(struct zmq, msg_more) },
	{ "zmq_strerror", offsetof(struct zmq, strerror) },
	{ "zmq_errno", offsetof(struct zmq, last_error) },
};

int zmq_load(struct zmq *out, struct err *e)
{
	void *lib = dlopen("libzmq.so.5", RTLD_NOW | RTLD_LOCAL), *f;
	void *(*context)(void);

	if (!lib)
		return err_set(
			e, ERR_NOT_FOUND,
			"Jupyter kernels need libzmq, which is not installed: sudo apt-get install libzmq5");
	*out = (struct zmq){ 0 };
	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		f = dlsym(lib, names[i].name);
		if (!f)
			return err_set(e, ERR_SYS, "libzmq.so.5 has no %s", names[i].name);
		memcpy((char *)out + names[i].at, &f, sizeof(f));
	}
	f = dlsym(lib, "zmq_ctx_new");
	memcpy(&context, &f, sizeof(f));
	out->context = f ? context() : NULL;
	return out->context ? 0 : err_set(e, ERR_SYS, "libzmq does not start");
}

static int zmq_set(const struct zmq *z, void *s, int option, int value)
{
	return z->setsockopt(s, option, &value, sizeof(value));
}

int zmq_open(const struct zmq *z, int type, const char *path, const char *identity, void **out,
	     struct err *e)
{
	void *s = z->socket(z->context, type);
	char address[160];

	snprintf(address, sizeof(address), "ipc://%s", path);
	if (!s || zmq_set(z, s, ZMQ_LINGER, 0) < 0 ||
	    zmq_set(z, s, ZMQ_RECONNECT_IVL, AGAIN_MS) < 0 ||
	    zmq_set(z, s, ZMQ_RCVHWM, QUEUE_MOST) < 0 ||
	    (identity && z->setsockopt(s, ZMQ_ROUTING_ID, identity, strlen(identity)) < 0) ||
	    (type == ZMQ_SUB && z->setsockopt(s, ZMQ_SUBSCRIBE, "", 0) < 0) ||
	    z->connect(s, address) < 0)
		return err_set(e, ERR_SYS, "connect to %s: %s", address,
			       z->strerror(z->last_error()));
	*out = s;
	return 0;
}
