/* latency.h - how long each subject takes, measured in turns. */
#pragma once

/* Opens every wanted subject; one that fails becomes "n/a". */
void latency_open(void);
unsigned latency_measure(unsigned rounds); /* the number of rounds: ^C ends it early */
