/* listener.h - listening sockets: inside the guest stub accepts, outside a socket of mux listens, which
 * another process accepts from. */
#pragma once

void listener_accept(unsigned number);           /* guest: a connection waits */
int listener_make(unsigned number, int *out_fd); /* mux: the socket that is passed on; -errno */
int listener_connect(unsigned number);           /* mux: a connection to that socket, or -1 */
int listener_exists(void);                       /* mux: at least one */
int listener_close_abandoned(void);              /* mux: those that no process has open; how many */
