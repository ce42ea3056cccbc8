/* Tests of process/loop: callbacks may add and remove whatever they like. */
#include "../base/unit.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "process/loop.h"

struct seen {
	int count;
	struct watch *remove;
};

static void note(struct watch *watch, short events)
{
	struct seen *seen = watch->context;
	char byte;

	assert_true((events & POLLIN) != 0);
	(void)!read(watch->fd, &byte, 1);
	seen->count++;
	if (seen->remove != NULL)
		loop_remove(seen->remove);
}

static void note_time(struct timer *timer)
{
	int *count = timer->context;

	(*count)++;
}

static void repeat(struct timer *timer)
{
	note_time(timer);
	timer->due_ms = clock_now_ms() + 1;
}

static void what_is_ready_is_called(void **state)
{
	struct loop *loop = loop_new();
	struct seen seen = {0};
	int ends[2];

	(void)state;
	assert_true(fd_pipe(ends, NULL));
	struct watch watch = {.fd = ends[0], .events = POLLIN, .ready = note, .context = &seen};
	loop_add(loop, &watch);
	loop_turn(loop, clock_now_ms());
	assert_int_equal(seen.count, 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	loop_turn(loop, CLOCK_NEVER);
	assert_int_equal(seen.count, 1);
	loop_remove(&watch);
	loop_remove(&watch);
	assert_int_equal(write(ends[1], "x", 1), 1);
	loop_turn(loop, clock_now_ms());
	assert_int_equal(seen.count, 1);
	loop_free(loop);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void a_watch_removed_by_an_earlier_callback_is_not_called(void **state)
{
	struct loop *loop = loop_new();
	struct seen first_seen = {0}, second_seen = {0};
	int ends[2][2];

	(void)state;
	assert_true(fd_pipe(ends[0], NULL) && fd_pipe(ends[1], NULL));
	struct watch first = {.fd = ends[0][0],
			      .events = POLLIN,
			      .ready = note,
			      .context = &first_seen};
	struct watch second = {.fd = ends[1][0],
			       .events = POLLIN,
			       .ready = note,
			       .context = &second_seen};
	first_seen.remove = &second;
	loop_add(loop, &first);
	loop_add(loop, &second);
	assert_int_equal(write(ends[0][1], "x", 1), 1);
	assert_int_equal(write(ends[1][1], "x", 1), 1);
	loop_turn(loop, CLOCK_NEVER);
	assert_int_equal(first_seen.count, 1);
	assert_int_equal(second_seen.count, 0);
	loop_remove(&first);
	loop_free(loop);
	for (size_t i = 0; i < 2; i++) {
		fd_close(&ends[i][0]);
		fd_close(&ends[i][1]);
	}
}

enum { MANY = 100 };

struct many {
	int ends[MANY][2];
	struct seen seen[MANY];
	struct watch watches[MANY];
};

static void many_begin(struct many *many, struct loop *loop)
{
	for (size_t i = 0; i < MANY; i++) {
		assert_true(fd_pipe(many->ends[i], NULL));
		many->watches[i] = (struct watch){.fd = many->ends[i][0],
						  .events = POLLIN,
						  .ready = note,
						  .context = &many->seen[i],
						  .stays = true};
		loop_add(loop, &many->watches[i]);
		loop_add(loop, &many->watches[i]);
	}
}

static void many_end(struct many *many)
{
	for (size_t i = 0; i < MANY; i++) {
		loop_remove(&many->watches[i]);
		loop_remove(&many->watches[i]);
		fd_close(&many->ends[i][0]);
		fd_close(&many->ends[i][1]);
	}
}

static void hundreds_that_stay_are_called_until_they_are_removed(void **state)
{
	struct loop *loop = loop_new();
	struct many many = {0};

	(void)state;
	many_begin(&many, loop);
	loop_turn(loop, clock_now_ms());
	for (size_t i = 0; i < MANY; i += 2)
		assert_int_equal(write(many.ends[i][1], "x", 1), 1);
	/* So many are asked for in one turn at the least. */
	for (size_t turn = 0; turn < MANY; turn++)
		loop_turn(loop, clock_now_ms());
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(many.seen[i].count, i % 2 == 0);
	/* Early and late ones: neither is called again. */
	loop_remove(&many.watches[0]);
	loop_remove(&many.watches[MANY - 1]);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(write(many.ends[i][1], "x", 1), 1);
	for (size_t turn = 0; turn < MANY; turn++)
		loop_turn(loop, clock_now_ms());
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(many.seen[i].count,
				 (i % 2 == 0) + (i != 0 && i != MANY - 1));
	many_end(&many);
	loop_turn(loop, clock_now_ms());
	loop_free(loop);
}

/* Of two that are ready in one turn the first removes the other. */
static void one_of_hundreds_may_remove_another(void **state)
{
	struct loop *loop = loop_new();
	struct many many = {0};

	(void)state;
	many_begin(&many, loop);
	many.seen[MANY - 2].remove = &many.watches[MANY - 1];
	many.seen[MANY - 1].remove = &many.watches[MANY - 2];
	assert_int_equal(write(many.ends[MANY - 2][1], "x", 1), 1);
	assert_int_equal(write(many.ends[MANY - 1][1], "x", 1), 1);
	for (size_t turn = 0; turn < 3; turn++)
		loop_turn(loop, clock_now_ms());
	assert_int_equal(many.seen[MANY - 2].count + many.seen[MANY - 1].count, 1);
	many_end(&many);
	loop_free(loop);
}

static void hear(struct watch *watch, short events)
{
	short *heard = watch->context;

	*heard = events;
}

static void what_is_wanted_of_a_watch_may_change(void **state)
{
	struct loop *loop = loop_new();
	struct timer timer = {.due_ms = CLOCK_NEVER, .due = note_time};
	short heard = 0;
	int ends[2], late = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	struct watch watch = {.fd = ends[0], .ready = hear, .context = &heard};
	timer.context = &late;
	loop_add_timer(loop, &timer);
	assert_true(loop_want(loop, &watch, POLLIN));
	loop_turn(loop, clock_now_ms());
	assert_int_equal(heard, 0);
	/* It can be written to, and it can be read. */
	assert_true(loop_want(loop, &watch, POLLOUT));
	loop_turn(loop, CLOCK_NEVER);
	assert_int_equal(heard, POLLOUT);
	assert_true(loop_want(loop, &watch, POLLIN));
	assert_true(loop_want(loop, &watch, POLLIN));
	assert_int_equal(write(ends[1], "x", 1), 1);
	loop_turn(loop, CLOCK_NEVER);
	assert_int_equal(heard, POLLIN);
	/* Nothing is wanted: the end of the other side is not told either, the time is. */
	heard = 0;
	assert_true(loop_want(loop, &watch, 0));
	assert_true(loop_want(loop, &watch, 0));
	fd_close(&ends[1]);
	timer.due_ms = clock_now_ms() + 1;
	while (late == 0)
		loop_turn(loop, CLOCK_NEVER);
	assert_int_equal(heard, 0);
	assert_true(loop_want(loop, &watch, POLLOUT));
	loop_turn(loop, CLOCK_NEVER);
	assert_true((heard & POLLHUP) != 0);
	loop_remove(&watch);
	loop_remove_timer(&timer);
	loop_free(loop);
	fd_close(&ends[0]);
}

/* A process that may make few system calls: epoll_wait is the only one that waits. */
static void watches_that_are_wanted_wait_beside_listed_ones_and_without_them(void **state)
{
	struct loop *loop = loop_new();
	struct many many = {0};
	struct seen seen = {0};
	int ends[2];

	(void)state;
	assert_true(fd_pipe(ends, NULL));
	struct watch listed = {.fd = ends[0],
			       .events = POLLIN,
			       .ready = note,
			       .context = &seen};
	for (size_t i = 0; i < MANY; i++) {
		assert_true(fd_pipe(many.ends[i], NULL));
		many.watches[i] = (struct watch){.fd = many.ends[i][0],
						 .ready = note,
						 .context = &many.seen[i]};
		assert_true(loop_want(loop, &many.watches[i], POLLIN));
	}
	many.seen[1].remove = &many.watches[2];
	many.seen[2].remove = &many.watches[1];
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(write(many.ends[i][1], "x", 1), 1);
	for (size_t turn = 0; turn < MANY / 10; turn++)
		loop_turn(loop, clock_now_ms());
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(many.seen[i].count,
				 i == 1 || i == 2 ? 1 - many.seen[3 - i].count : 1);
	loop_add(loop, &listed);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(write(many.ends[5][1], "x", 1), 1);
	loop_turn(loop, CLOCK_NEVER);
	assert_int_equal(seen.count, 1);
	assert_int_equal(many.seen[5].count, 2);
	loop_remove(&listed);
	many_end(&many);
	loop_free(loop);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void timers_run_once_and_may_set_themselves_again(void **state)
{
	struct loop *loop = loop_new();
	int once = 0, often = 0;
	struct timer first = {.due_ms = clock_now_ms(), .due = note_time, .context = &once};
	struct timer second = {.due_ms = clock_now_ms(), .due = repeat, .context = &often};

	(void)state;
	loop_add_timer(loop, &first);
	loop_add_timer(loop, &second);
	while (often < 3)
		loop_turn(loop, CLOCK_NEVER);
	assert_int_equal(once, 1);
	assert_true(first.due_ms == CLOCK_NEVER);
	loop_remove_timer(&first);
	loop_remove_timer(&second);
	loop_remove_timer(&second);
	loop_free(loop);
}

static void who_stays_awake_sees_what_comes_and_sleeps_afterwards(void **state)
{
	struct loop *loop = loop_new();
	struct seen seen = {0};
	int ends[2];

	(void)state;
	assert_true(fd_pipe(ends, NULL));
	struct watch watch = {.fd = ends[0], .events = POLLIN, .ready = note, .context = &seen};
	loop_add(loop, &watch);
	/* Ready already: the wait is over at once, however long it would have stayed. */
	assert_int_equal(write(ends[1], "x", 1), 1);
	loop_stay(loop, INT64_MAX);
	loop_turn(loop, CLOCK_NEVER);
	assert_int_equal(seen.count, 1);
	/* Nothing comes: it stays so long, then waits as it was told to, once only. */
	int64_t until_us = clock_now_us() + 3000;
	loop_stay(loop, until_us);
	loop_turn(loop, clock_now_ms());
	assert_true(clock_now_us() >= until_us);
	assert_int_equal(seen.count, 1);
	loop_turn(loop, clock_now_ms());
	loop_remove(&watch);
	loop_free(loop);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_ready_is_called),
		cmocka_unit_test(a_watch_removed_by_an_earlier_callback_is_not_called),
		cmocka_unit_test(who_stays_awake_sees_what_comes_and_sleeps_afterwards),
		cmocka_unit_test(hundreds_that_stay_are_called_until_they_are_removed),
		cmocka_unit_test(one_of_hundreds_may_remove_another),
		cmocka_unit_test(what_is_wanted_of_a_watch_may_change),
		cmocka_unit_test(
			watches_that_are_wanted_wait_beside_listed_ones_and_without_them),
		cmocka_unit_test(timers_run_once_and_may_set_themselves_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
