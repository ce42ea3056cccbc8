/* init: a function of a test as pid 1 of a pid namespace, as in a worker. */
#pragma once

/* What init_status() returns where user and pid namespaces are forbidden. */
enum { INIT_FORBIDDEN = 77 };

/*
 * The exit status that AS_INIT returned, run in a new user and pid namespace and in those of
 * NAMESPACES (CLONE_NEW…, 0: no more); INIT_FORBIDDEN, or 78 when it did not come to its end.
 */
int init_status(int namespaces, int (*as_init)(void));
