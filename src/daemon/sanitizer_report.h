/* sanitizer_report.h - where the sanitizer of a confined process writes, in builds that have one.
 * A confined process cannot open the file that its sanitizer reports to (log_path), so that a test would see only that the
 * process ended. The file is opened before the process is confined.
 * Owns: the path, which the environment has until it is cleared. In other builds both functions do nothing. */
#pragma once

/* Stores the path, the variable ATOLL_SANITIZER_REPORT. Before the environment is cleared. */
void sanitizer_report_store_path(void);

/* Opens the file and makes it that of the reports of this process. Before it is confined. */
void sanitizer_report_open(void);
