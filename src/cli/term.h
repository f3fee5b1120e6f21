/* term.h - puts the terminal into raw mode, and restores it in every case.
 * Owns: the terminal's settings from term_raw() to term_restore(). One per process. */
#pragma once
#include "base/err.h"

must_check int term_raw(int fd, struct err *e); /* restores by itself at exit and on a crash */
void term_restore(void);                        /* safe anywhere, any number of times */
