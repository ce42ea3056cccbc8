/* Tests of base/memory. */
#include "unit.h"

#include <signal.h>
#include <stdalign.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

static void memory_is_zeroed_and_never_null(void **state)
{
	auto_free char *text = memory_alloc(1000);
	auto_free void *nothing = memory_alloc(0);
	auto_free void *none = memory_array(0, 8);
	auto_free void *grown = memory_grow(NULL, 0, 8);

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(text[i], 0);
	assert_non_null(nothing);
	assert_non_null(none);
	assert_non_null(grown);
}

static void growing_keeps_the_content(void **state)
{
	char *text = memory_copy("kept");

	(void)state;
	text = memory_grow(text, 10000, 1);
	assert_string_equal(text, "kept");
	free(text);
}

static void copies_are_c_strings(void **state)
{
	auto_free char *part = memory_copy_str(str_part(STR("hello"), 1, 3));
	auto_free char *empty = memory_copy_str((struct str){NULL, 0});

	(void)state;
	assert_null(memory_copy(NULL));
	assert_string_equal(part, "ell");
	assert_string_equal(empty, "");
}

static void overflow_in_array(void)
{
	free(memory_array(SIZE_MAX / 2, 3));
}

static void overflow_in_grow(void)
{
	free(memory_grow(NULL, SIZE_MAX / 4, 8));
}

static void overflow_in_arena(void)
{
	struct arena arena;

	arena_init(&arena);
	(void)arena_alloc(&arena, SIZE_MAX - 3);
}

static void exhausted(void)
{
	memory_exhausted(12345);
}

/* Run OVERFLOW in a child; its message comes back in MESSAGE. */
static int how_it_ends(void (*overflow)(void), struct buf *message)
{
	int ends[2], status = 0;
	pid_t child;

	assert_true(fd_pipe(ends, NULL));
	child = fork();
	if (child == 0) {
		(void)dup2(ends[1], STDERR_FILENO);
		overflow();
		_exit(0);
	}
	fd_close(&ends[1]);
	assert_true(fd_read_all(ends[0], message, "child", NULL));
	fd_close(&ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void out_of_memory_ends_the_process_with_a_message(void **state)
{
	void (*const ways[])(void) = {overflow_in_array, overflow_in_grow,
				      overflow_in_arena, exhausted};
	struct buf message;

	(void)state;
	buf_init(&message, 10000);
	for (size_t i = 0; i < UNIT_COUNT(ways); i++) {
		int status = how_it_ends(ways[i], &message);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGABRT);
		assert_non_null(strstr(message.data, "out of memory"));
	}
	assert_non_null(strstr(message.data, "12345"));
	buf_fini(&message);
}

static void arenas_hand_out_aligned_zeroed_memory(void **state)
{
	struct arena arena;
	size_t used = 0;

	(void)state;
	arena_init(&arena);
	for (size_t size = 0; size < 3000; size += 7) {
		char *memory = arena_alloc(&arena, size);

		assert_int_equal((uintptr_t)memory % alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(memory[i], 0);
		memset(memory, 'x', size);
		assert_true(arena.used >= used + size);
		used = arena.used;
	}
	arena_fini(&arena);
	assert_null(arena.blocks);
	arena_fini(&arena);
	arena_fini(NULL);
}

static void something_large_leaves_the_open_block_open(void **state)
{
	struct arena arena;
	char *small, *large, *next;

	(void)state;
	arena_init(&arena);
	small = arena_alloc(&arena, 16);
	large = arena_alloc(&arena, 1 << 20);
	next = arena_alloc(&arena, 16);
	large[(1 << 20) - 1] = 'x';
	assert_ptr_equal(next, small + 16);
	arena_fini(&arena);
}

static void arenas_keep_texts(void **state)
{
	struct arena arena;
	char *copy;

	(void)state;
	arena_init(&arena);
	copy = arena_copy(&arena, STR("kept"));
	assert_string_equal(copy, "kept");
	assert_string_equal(arena_copy(&arena, (struct str){NULL, 0}), "");
	arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_and_never_null),
		cmocka_unit_test(growing_keeps_the_content),
		cmocka_unit_test(copies_are_c_strings),
		cmocka_unit_test(out_of_memory_ends_the_process_with_a_message),
		cmocka_unit_test(arenas_hand_out_aligned_zeroed_memory),
		cmocka_unit_test(something_large_leaves_the_open_block_open),
		cmocka_unit_test(arenas_keep_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
