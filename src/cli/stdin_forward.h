/* stdin_forward.h - sends stdin to a program of the daemon: every byte once, also when the daemon
 * is killed meanwhile.
 * Owns: the bytes that the program may not have received yet. */
#pragma once

void *stdin_forward_thread(void *follow); /* a struct exec_follow */
