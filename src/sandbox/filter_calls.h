/*
 * filter_calls: which system calls the filters name, for filter_make alone. Lists of names
 * end with NULL, those of numbers with -1; a name that this architecture has not is skipped.
 */
#pragma once

/*
 * The C library's names end before these; numbers are the same on all our
 * architectures.
 */
enum {
	CALL_CLONE3 = 435,
	CALL_OPENAT2 = 437,
	CALL_PIDFD_GETFD = 438,
	CALL_PROCESS_MADVISE = 440,
	CALL_MOUNT_SETATTR = 442,
	CALL_QUOTACTL_FD = 443,
	CALL_MEMFD_SECRET = 447,
	CALL_FCHMODAT2 = 452,
	CALL_LSM_SET_SELF_ATTR = 460,
	CALL_SETXATTRAT = 463,
	CALL_REMOVEXATTRAT = 466,
	CALL_OPEN_TREE_ATTR = 467,
	CALL_FILE_SETATTR = 469,
};

/* Of every cell. */
extern const char *const calls_explained[];
extern const char *const calls_refused[];
extern const int calls_refused_numbers[];
extern const char *const calls_absent[];

/* Beside them in a cell that shares the host's namespaces (L2, L1). */
extern const char *const calls_refused_outside[];
extern const char *const calls_absent_outside[];
extern const char *const calls_unsupported_outside[];
extern const int calls_unsupported_outside_numbers[];

/* Of programs, between start and exec. */
extern const char *const calls_of_attributes[];
extern const char *const calls_of_signals[];
