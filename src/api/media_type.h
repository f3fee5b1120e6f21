/* media_type.h - which Content-Type and Content-Encoding a route with a JSON body accepts.
 * Owns: nothing; answers 415 itself. */
#pragma once

struct call;
int media_type_check(struct call *c); /* 0: rejected, and 415 was sent */
