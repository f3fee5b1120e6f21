/* filter.h - the system calls of mux after its engine was started. */
#pragma once

int filter_load(void); /* 0, or -errno */
