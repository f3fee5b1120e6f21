/* socket.h - /v1/socket of a gateway: one WebSocket of a client, one to each node whose boxes its channels use.
 * Owns: both kinds of connections, the table of channels.
 *
 *   client == WebSocket ==> gateway --- open of a channel of box B ---> WebSocket to the node of B
 *                                   <-- frames of all nodes, unchanged: the client chose the numbers ---
 *
 * A slow client slows all its nodes down, a slow node slows its client down. */
#pragma once
#include "gateway/gateway_call.h"

void gateway_socket_open(struct gateway_call *x);
