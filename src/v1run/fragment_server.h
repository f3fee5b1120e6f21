/* fragment_server.h - waits for the server of a fragment: returns its address when it has answered
 * a first request.
 * Owns: the attempts to connect, a reader of its output and the deadline, in the memory of the
 *  call. */
#pragma once
#include "api/api.h"

struct exec;
struct box;
/* The program that serves in this box: of a fragment, else the start command of its template. NULL: none. */
struct exec *fragment_server_find(const struct box *b);
/* c->body has the port, perhaps timeout_ms. Answers c when the server has answered a request for /,
 * the program has ended, or the deadline has passed. The program keeps running in all cases. */
void fragment_server_await(struct call *c, const struct exec *r);
