/* copy_file.h - a file in memory that is attached to a frame: copied before the frame is sent.
 * mux:   OPEN, DATA..., SHUTDOWN on a stream of its own; then the frame; then CLOSE. Until then nothing
 *        more is read from the connection of the frame.
 * guest: collects the bytes in a file of its own, and seals it. */
#pragma once
#include <stdint.h>

/* mux. 0: the copy has begun; -1: the connection must be closed. Consumes the descriptor. */
int copy_file_start(unsigned number, const char *frame, uint32_t bytes, int take_fd);
void copy_file_continue(unsigned number); /* of the connection; the channel is not blocked */

void copy_file_open(unsigned number); /* guest: OPEN has arrived */
void copy_file_append(unsigned number, const char *bytes, uint32_t n);
int copy_file_take(unsigned number, int *out_fd); /* the frame has arrived; -errno */
