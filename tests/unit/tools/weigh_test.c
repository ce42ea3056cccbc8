/* What is to be done with a path of a layer: each combination of three states. */
#include "tools/review/weigh.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Every kind of state, with two contents and two permissions where it has them. */
enum { STATES = 9 };

static void make_states(struct undo_state states[STATES])
{
	static const struct {
		enum undo_kind kind;
		char content;
		mode_t mode;
	} kinds[STATES] = {
		{UNDO_ABSENT, 0, 0},    {UNDO_FILE, 'a', 0644}, {UNDO_FILE, 'a', 0755},
		{UNDO_FILE, 'b', 0644}, {UNDO_FILE, 'b', 0755}, {UNDO_LINK, 'a', 0777},
		{UNDO_LINK, 'b', 0777}, {UNDO_FOLDER, 0, 0755}, {UNDO_FOLDER, 0, 0700},
	};

	memset(states, 0, STATES * sizeof(*states));
	for (size_t i = 0; i < STATES; i++) {
		states[i].kind = kinds[i].kind;
		states[i].mode = kinds[i].mode;
		states[i].hashed = kinds[i].content != 0;
		states[i].size = kinds[i].content != 0;
		memset(states[i].digest, kinds[i].content, sizeof(states[i].digest));
	}
}

static bool same(const struct undo_state *a, const struct undo_state *b)
{
	return a->kind == b->kind && a->mode == b->mode &&
	       memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

static bool same_thing(const struct undo_state *a, const struct undo_state *b)
{
	return a->kind == b->kind && memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

static void every_combination_is_right(void **state)
{
	struct undo_state states[STATES], target;
	size_t counts[WEIGH_NO_BASE + 1] = {0};

	(void)state;
	make_states(states);
	for (size_t i = 0; i < STATES * STATES * STATES; i++) {
		const struct undo_state *base = &states[i / STATES / STATES];
		const struct undo_state *below = &states[i / STATES % STATES];
		const struct undo_state *layer = &states[i % STATES];
		const enum weigh_class class = weigh(base, below, layer, &target);

		counts[class]++;
		/* Nobody loses a change that only one side has made. */
		if (same(layer, below) || same(layer, base))
			assert_int_equal(class, WEIGH_THERE);
		else if (same(base, below)) {
			assert_int_equal(class, WEIGH_APPLY);
			assert_true(same(&target, layer));
		} else if (!same_thing(layer, below) && !same_thing(base, layer) &&
			   !same_thing(base, below)) {
			assert_true(class == WEIGH_CONFLICT || class == WEIGH_MERGE);
			if (class == WEIGH_MERGE)
				assert_true(base->kind == UNDO_FILE &&
					    below->kind == UNDO_FILE &&
					    layer->kind == UNDO_FILE);
		}
		if (class == WEIGH_APPLY) {
			/* What is put there is of one side, and never what was before. */
			assert_true(same_thing(&target, layer) ||
				    same_thing(&target, below));
			assert_true(target.mode == layer->mode ||
				    target.mode == below->mode);
			assert_false(same(&target, below));
			if (!same_thing(base, below))
				assert_true(same_thing(&target, below));
		}
		assert_int_not_equal(class, WEIGH_NO_BASE);
	}
	for (size_t i = 0; i < WEIGH_NO_BASE; i++) {
		/* Two contents are too few for a merge: three are needed. */
		if (i != WEIGH_MERGE)
			assert_int_not_equal(counts[i], 0);
	}
}

static void without_a_base_only_equal_states_are_fine(void **state)
{
	struct undo_state states[STATES], target;

	(void)state;
	make_states(states);
	for (size_t i = 0; i < STATES * STATES; i++) {
		const struct undo_state *below = &states[i / STATES],
					*layer = &states[i % STATES];

		assert_int_equal(weigh(NULL, below, layer, &target),
				 same(below, layer) ? WEIGH_THERE : WEIGH_NO_BASE);
	}
}

static void one_changes_the_content_and_the_other_the_permissions(void **state)
{
	struct undo_state states[STATES], target;

	(void)state;
	make_states(states);
	/* a 644 before; the user made it 755, the layer wrote b. */
	assert_int_equal(weigh(&states[1], &states[2], &states[3], &target), WEIGH_APPLY);
	assert_true(same(&target, &states[4]));
	/* The other way round. */
	assert_int_equal(weigh(&states[1], &states[3], &states[2], &target), WEIGH_APPLY);
	assert_true(same(&target, &states[4]));
}

static void two_contents_beside_a_third_are_merged(void **state)
{
	struct undo_state states[STATES], target, third;

	(void)state;
	make_states(states);
	third = states[2];
	memset(third.digest, 'c', sizeof(third.digest));
	assert_int_equal(weigh(&states[1], &states[3], &third, &target), WEIGH_MERGE);
	assert_int_equal(target.mode, 0755);
	/* A file that is new on both sides has no base to merge from. */
	assert_int_equal(weigh(&states[0], &states[3], &third, &target), WEIGH_CONFLICT);
	/* A content that nobody could read equals nothing. */
	third.hashed = false;
	assert_int_equal(weigh(&states[1], &third, &third, &target), WEIGH_MERGE);
}

static void a_removed_and_changed_file_is_a_conflict(void **state)
{
	struct undo_state states[STATES], target;

	(void)state;
	make_states(states);
	assert_int_equal(weigh(&states[1], &states[0], &states[3], &target), WEIGH_CONFLICT);
	assert_int_equal(weigh(&states[1], &states[3], &states[0], &target), WEIGH_CONFLICT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_combination_is_right),
		cmocka_unit_test(without_a_base_only_equal_states_are_fine),
		cmocka_unit_test(one_changes_the_content_and_the_other_the_permissions),
		cmocka_unit_test(two_contents_beside_a_third_are_merged),
		cmocka_unit_test(a_removed_and_changed_file_is_a_conflict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
