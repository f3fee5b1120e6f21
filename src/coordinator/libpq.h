/* libpq.h - the functions of libpq that are used, loaded by the cluster process only: a daemon without a
 * database needs no libpq, and the server, which parses untrusted data, never has it in its memory. */
#pragma once
#include "base/err.h"
#include <libpq-fe.h>

#define LIBPQ_CALLS(X)                                                                             \
	X(connectStartParams)                                                                      \
	X(connectPoll)                                                                             \
	X(status)                                                                                  \
	X(socket)                                                                                  \
	X(errorMessage)                                                                            \
	X(finish)                                                                                  \
	X(setnonblocking)                                                                          \
	X(enterPipelineMode)                                                                       \
	X(pipelineSync)                                                                            \
	X(sendQuery)                                                                               \
	X(sendQueryParams)                                                                         \
	X(sendPrepare)                                                                             \
	X(sendQueryPrepared)                                                                       \
	X(flush)                                                                                   \
	X(consumeInput)                                                                            \
	X(isBusy)                                                                                  \
	X(getResult)                                                                               \
	X(resultStatus)                                                                            \
	X(resultErrorField)                                                                        \
	X(clear)                                                                                   \
	X(ntuples)                                                                                 \
	X(nfields)                                                                                 \
	X(getvalue)                                                                                \
	X(setNoticeReceiver)

struct libpq {
#define X(name) __typeof__(PQ##name) *name;
	LIBPQ_CALLS(X)
#undef X
};
extern struct libpq libpq;

must_check int libpq_load(struct err *e); /* a second call does nothing */
