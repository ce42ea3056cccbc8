/* clock: monotonic and wall time, and the number of usable processors. */

#include "base/clock.h"

#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

/* About 31 years. A longer wait is no deadline, and the sum below cannot overflow. */
#define CLOCK_FARTHEST_S 1e9

static int64_t clock_read_us(clockid_t id)
{
	struct timespec now;

	/*
	 * This cannot fail: both clocks exist on every Linux, and the pointer is valid.
	 */
	(void)clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_now_ms(void)
{
	return clock_now_us() / 1000;
}

int64_t clock_now_us(void)
{
	return clock_read_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_ms(void)
{
	return clock_read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_wall_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return clock_ns(&now);
}

int64_t clock_file_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return clock_ns(&now);
}

struct timespec clock_after(int64_t ms)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += ms % 1000 * 1000000;
	if (at.tv_nsec >= CLOCK_SECOND_NS) {
		at.tv_sec++;
		at.tv_nsec -= CLOCK_SECOND_NS;
	}
	return at;
}

int64_t clock_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * CLOCK_SECOND_NS + time->tv_nsec;
}

void clock_text_local(int64_t wall_ms, char text[CLOCK_TEXT])
{
	const time_t seconds = (time_t)(wall_ms / 1000);
	struct tm local;

	if (!localtime_r(&seconds, &local) ||
	    strftime(text, CLOCK_TEXT, "%Y-%m-%d %H:%M:%S", &local) == 0)
		text[0] = '\0';
}

void clock_text_day(int64_t wall_ms, char text[CLOCK_DAY])
{
	char whole[CLOCK_TEXT];
	size_t size = 0;

	clock_text_local(wall_ms, whole);
	for (; whole[size] != '\0' && whole[size] != ' ' && size < CLOCK_DAY - 1; size++)
		text[size] = whole[size];
	text[size] = '\0';
}

int clock_poll_timeout(int64_t deadline_ms)
{
	int64_t now;

	if (deadline_ms == CLOCK_NEVER)
		return -1;
	now = clock_now_ms();
	if (deadline_ms <= now)
		return 0;
	return deadline_ms - now > INT_MAX ? INT_MAX : (int)(deadline_ms - now);
}

int64_t clock_deadline(double seconds)
{
	/* The condition is negated so that a NaN means "never" too. */
	if (seconds == 0 || !(seconds < CLOCK_FARTHEST_S))
		return CLOCK_NEVER;
	if (seconds < 0)
		return clock_now_ms();
	/* Round up, so that the shortest wait is a millisecond, not 0. */
	return clock_now_ms() + (int64_t)(seconds * 1000 + 0.999);
}

unsigned clock_cores_usable(void)
{
	cpu_set_t cores;

	return sched_getaffinity(0, sizeof(cores), &cores) == 0
		       ? (unsigned)CPU_COUNT(&cores)
		       : 1;
}
