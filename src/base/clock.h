/* clock: time for deadlines (monotonic) and for records (wall). */
#pragma once

#include <stdint.h>
#include <time.h>

/* "No deadline", wherever a deadline in milliseconds is expected. */
#define CLOCK_NEVER     INT64_MAX

#define CLOCK_SECOND_NS INT64_C(1000000000)

int64_t clock_now_ms(void); /* CLOCK_MONOTONIC: the same in every process */
int64_t clock_now_us(void);
int64_t clock_wall_ms(void); /* since 1970, UTC */
int64_t clock_wall_ns(void);
int64_t clock_file_ns(void); /* now, by the clock that stamps files */
/* TIME (of a clock or a file) in nanoseconds */
int64_t clock_ns(const struct timespec *time);

/*
 * WALL_MS as local time: "2026-03-29 14:05:09" in the machine's time zone (or TZ's).
 * Empty when the C library does not know such a date.
 */
enum { CLOCK_TEXT = 32 /* including the NUL */ };
void clock_text_local(int64_t wall_ms, char text[CLOCK_TEXT]);
/* The same, the day only: "2026-03-29". */
enum { CLOCK_DAY = 16 /* including the NUL */ };
void clock_text_day(int64_t wall_ms, char text[CLOCK_DAY]);

/* In MS milliseconds by CLOCK_MONOTONIC, for a condition that waits by it. */
struct timespec clock_after(int64_t ms);

/* Milliseconds from now until DEADLINE_MS, for poll(2): -1 for never, 0 when past. */
int clock_poll_timeout(int64_t deadline_ms);

/* NOW + SECONDS; CLOCK_NEVER when SECONDS is 0 or too large. */
int64_t clock_deadline(double seconds);

/*
 * How many processors this process may use, at least 1. A process that is bound to some
 * processors (taskset, a container) may use only those.
 */
unsigned clock_cores_usable(void);
