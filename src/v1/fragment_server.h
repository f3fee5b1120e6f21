/* fragment_server.h - a fragment's server that was just started: its address is told when it answers.
 * Owns: the attempts to connect, a tap on its output, the deadline, in the call's memory. */
#pragma once
#include "api/api.h"

struct exec;
/* c->body has the port, perhaps timeout_ms. Answers c when a connection to the port was accepted, the program has
 * ended, or the deadline is over. The program runs on in any case. */
void fragment_server_await(struct call *c, const struct exec *r);
