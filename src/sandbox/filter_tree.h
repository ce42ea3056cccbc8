/*
 * filter_tree: a filter as what is answered to each call, and its instructions as a C table
 * on standard output. For filter_make alone. The kernel translates a filter for every worker
 * and asks it for every number there is, so what counts is its length first and its depth
 * second: numbers that are answered alike are one range, what is judged by arguments alike is
 * written once.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Answers beside errors, which are their errno. */
enum {
	FILTER_ALLOW = 0,
	FILTER_EXPLAIN = 0xeee, /* ask the worker */
};

enum condition_kind {
	CONDITION_ALWAYS,
	CONDITION_ANY_BIT, /* of the mask */
	CONDITION_EQUALS,  /* the bits of the mask are the value */
	CONDITION_DIFFERS,
};

/* Of the low half of an argument: what the kernel looks at of an int and of all flags. */
struct condition {
	enum condition_kind kind;
	uint32_t argument, mask, value;
};

/* Where both hold, this is answered. */
struct filter_test {
	struct condition first, second;
	uint32_t answer;
};

enum {
	FILTER_CALLS_MAX = 512, /* numbers; what lies above is allowed */
	FILTER_TESTS_MAX = 8,   /* of one call */
};

/* All zero: everything is allowed. */
struct filter {
	struct filter_rule {
		uint32_t answer; /* when no test has answered */
		uint32_t count;
		struct filter_test tests[FILTER_TESTS_MAX];
	} rules[FILTER_CALLS_MAX];
};

/* Whatever the arguments; a call that has tests is left to them first. */
void filter_answer(struct filter *filter, int number, uint32_t answer);

/* One more test of NUMBER, after those it has. */
void filter_add_test(struct filter *filter, int number, const struct filter_test *test);

/* ALL: of every process, so that other architectures and x32 are answered too. */
void filter_print(const struct filter *filter, const char *name, bool all);
