/* deliver.h - bytes and frames that arrived for a stream, on their way to its descriptor.
 * What the descriptor does not take waits in the buffer of the stream, in order. A frame there is its
 * length, the number of its descriptors, the descriptors, its bytes. */
#pragma once
#include <stdint.h>

/* Consumes the descriptors. Both drop what arrives for a stream that is closed here. */
void deliver_frame(unsigned number, const char *frame, uint32_t bytes, const int *take_fds,
		   unsigned nfds);
void deliver_bytes(unsigned number, const char *bytes, uint32_t n);
void deliver_buffer(unsigned number); /* the descriptor takes bytes again */
void deliver_break(unsigned number);  /* its reader has closed it */
void deliver_drop(unsigned number);   /* nothing of it is delivered from now on */
