/* tunnel.h - GET /v1/boxes/{box}/ports/{port}/connect with "Upgrade: tcp": after the answer 101 the
 * connection carries the bytes of one TCP connection to that port, both ways. `atoll forward` uses
 * it.
 * Owns: the connection into the box, in the memory of the call. */
#pragma once
#include "api/api.h"

void tunnel_connect(struct call *c);
