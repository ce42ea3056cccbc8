/* clock: time for deadlines (monotonic) and for records (wall). */
#pragma once
#include <stdint.h>

/* "No deadline" wherever a deadline in milliseconds is taken. */
#define CLOCK_NEVER INT64_MAX

int64_t clock_now_ms(void); /* CLOCK_MONOTONIC: the same in every process */
int64_t clock_now_us(void);
int64_t clock_wall_ms(void); /* since 1970, UTC */

/* Milliseconds from now until DEADLINE_MS, for poll(2): -1 for never, 0 when past. */
int clock_poll_timeout(int64_t deadline_ms);

/* NOW + SECONDS; CLOCK_NEVER when SECONDS is 0 or too large. */
int64_t clock_deadline(double seconds);
