/* facts.h - which machine the numbers come from. */
#pragma once

struct facts {
	char when[32]; /* UTC */
	char kernel[96], arch[32], cpu[96], distro[96];
	int cpus; /* processors that this process may use; taskset limits them */
	long memory_mib;
	const char *cgroup; /* "v1", "v2", "v1+v2", "none" */
	double load;        /* one-minute average before the first sample: shows other load */
};

struct facts facts_read(void);
