/*
 * reading: does a program wait for somebody to type at its terminal? Told from where the
 * kernel has put it to sleep, so a program that only thinks, or waits for something else, is
 * not taken for one. /proc must be this namespace's own, and show what its processes wait for
 * (who may trace them); where it does not, nobody waits as far as this can tell.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The state of a process that waits. Two equal ones: it has not run in between. */
struct reading {
	int pid;          /* 0: nobody waits */
	uint64_t rested;  /* how often it has gone to sleep so far */
	uint64_t at, arg; /* the call it sleeps in, and its first argument */
};

/*
 * A process of the terminal's foreground, MASTER being the terminal's other end, that sleeps in
 * a read of it, or in poll, select or epoll for one.
 */
struct reading reading_find(int master);
bool reading_is_same(const struct reading *a, const struct reading *b);
