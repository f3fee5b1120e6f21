/* foreground.h - the process group that has the terminal of an exec, in kernels that do not report it to the master. */
#pragma once

/* The newest process group of this session; the leader's own group if it is the only one. */
int foreground_group(int session);
