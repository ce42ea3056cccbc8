/*
 * filter_tree: from answers to instructions; see filter_tree.h. Jumps lead forward only, so a
 * program is written from its end: what is jumped to is there already.
 */
#include "sandbox/filter_tree.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the system-call filter is not written for this architecture"
#endif

enum {
	X32_BIT = 0x40000000,
	JUMP_MAX = 255,
	/* Behind so many comparisons in a row a branch above them pays. */
	ROW_MAX = 4,
	PROGRAM_MAX = 1024,
};

#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(n) \
	(offsetof(struct seccomp_data, args) + 8 * (n)) /* low half: little-endian */

/* Turned round: the first is the last instruction. A place is an index of it. */
struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned count;
};

/* Numbers from FIRST up to the next range's, all with RULE. */
struct range {
	unsigned first, place;
	const struct filter_rule *rule;
};

struct ranges {
	struct range items[FILTER_CALLS_MAX + 1];
	size_t count;
};

static void fail(const char *why)
{
	(void)fprintf(stderr, "filter_make: %s\n", why);
	exit(1);
}

static unsigned put(struct program *program, struct sock_filter instruction)
{
	if (program->count == PROGRAM_MAX)
		fail("a filter is too long");
	program->code[program->count] = instruction;
	return program->count++;
}

static unsigned put_load(struct program *program, size_t offset)
{
	return put(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							 (unsigned)offset));
}

static unsigned put_jump(struct program *program, unsigned kind, uint32_t value,
			 unsigned yes, unsigned no)
{
	unsigned to_yes = program->count - yes - 1, to_no = program->count - no - 1;

	if (to_yes > JUMP_MAX || to_no > JUMP_MAX)
		fail("a filter is too long for its jumps");
	return put(program,
		   (struct sock_filter)BPF_JUMP((unsigned short)(BPF_JMP | kind | BPF_K),
						value, (unsigned char)to_yes,
						(unsigned char)to_no));
}

static uint32_t kernel_answer(uint32_t answer)
{
	if (answer == FILTER_ALLOW)
		return SECCOMP_RET_ALLOW;
	if (answer == FILTER_EXPLAIN)
		return SECCOMP_RET_USER_NOTIF;
	return SECCOMP_RET_ERRNO | (answer & SECCOMP_RET_DATA);
}

/* The one place where ANSWER is given. */
static unsigned put_answer(struct program *program, uint32_t answer)
{
	const struct sock_filter wanted = BPF_STMT(BPF_RET | BPF_K, kernel_answer(answer));

	for (unsigned i = 0; i < program->count; i++) {
		if (memcmp(&program->code[i], &wanted, sizeof(wanted)) == 0)
			return i;
	}
	return put(program, wanted);
}

/* Test CONDITION on the value that is loaded. */
static unsigned put_comparison(struct program *program, const struct condition *condition,
			       unsigned yes, unsigned no)
{
	unsigned place;

	if (condition->kind == CONDITION_ANY_BIT)
		return put_jump(program, BPF_JSET, condition->mask, yes, no);
	if (condition->kind == CONDITION_EQUALS)
		place = put_jump(program, BPF_JEQ, condition->value, yes, no);
	else
		place = put_jump(program, BPF_JEQ, condition->value, no, yes);
	if (condition->mask == UINT32_MAX)
		return place;
	return put(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
							 condition->mask));
}

/* Where TEST does not hold, the whole of ARGUMENT is what is loaded. */
static bool leaves_loaded(const struct filter_test *test, uint32_t argument)
{
	return test->second.kind == CONDITION_ALWAYS && test->first.argument == argument &&
	       (test->first.kind == CONDITION_ANY_BIT || test->first.mask == UINT32_MAX);
}

static unsigned put_rule(struct program *program, const struct filter_rule *rule)
{
	unsigned next = put_answer(program, rule->answer);

	for (unsigned i = rule->count; i-- > 0;) {
		const struct filter_test *test = &rule->tests[i];
		unsigned yes = put_answer(program, test->answer);
		if (test->second.kind != CONDITION_ALWAYS) {
			(void)put_comparison(program, &test->second, yes, next);
			yes = put_load(program, ARGUMENT(test->second.argument));
		}
		next = put_comparison(program, &test->first, yes, next);
		if (i == 0 || !leaves_loaded(test - 1, test->first.argument))
			next = put_load(program, ARGUMENT(test->first.argument));
	}
	return next;
}

/* Every answer stands at the very end, in reach of all. */
static void put_answers(struct program *program, const struct filter *filter)
{
	(void)put_answer(program, FILTER_ALLOW);
	for (size_t i = 0; i < FILTER_CALLS_MAX; i++) {
		const struct filter_rule *rule = &filter->rules[i];

		(void)put_answer(program, rule->answer);
		for (unsigned at = 0; at < rule->count; at++)
			(void)put_answer(program, rule->tests[at].answer);
	}
}

static bool rules_equal(const struct filter_rule *a, const struct filter_rule *b)
{
	return a->answer == b->answer && a->count == b->count &&
	       memcmp(a->tests, b->tests, a->count * sizeof(a->tests[0])) == 0;
}

/* Several ranges with an equal RULE share one copy of its instructions. */
static unsigned rule_place(struct program *program, const struct ranges *ranges,
			   const struct filter_rule *rule)
{
	for (size_t i = 0; i < ranges->count; i++) {
		if (rules_equal(ranges->items[i].rule, rule))
			return ranges->items[i].place;
	}
	return put_rule(program, rule);
}

static void ranges_find(struct program *program, const struct filter *filter,
			struct ranges *ranges)
{
	static const struct filter_rule allowed;

	for (unsigned i = 0; i <= FILTER_CALLS_MAX; i++) {
		const struct filter_rule *rule =
			i < FILTER_CALLS_MAX ? &filter->rules[i] : &allowed;
		if (ranges->count > 0 &&
		    rules_equal(ranges->items[ranges->count - 1].rule, rule))
			continue;
		unsigned place = rule_place(program, ranges, rule);
		ranges->items[ranges->count++] =
			(struct range){.first = i, .place = place, .rule = rule};
	}
}

/* The number of ranges FROM up to TO whose place is not OTHERS. */
static size_t count_odd(const struct ranges *ranges, size_t from, size_t to, unsigned others)
{
	size_t count = 0;

	for (size_t i = from; i < to; i++)
		count += ranges->items[i].place != others;
	return count;
}

/* One comparison after the other; numbers that meet none go to OTHERS. */
static unsigned put_row(struct program *program, const struct ranges *ranges, size_t from,
			size_t to, unsigned others)
{
	unsigned next = others;

	for (size_t i = to; i-- > from;) {
		const struct range *range = &ranges->items[i];
		if (range->place == others)
			continue;
		/* Not the last of all: behind that everything is allowed. */
		unsigned end = ranges->items[i + 1].first;
		if (end - range->first == 1) {
			next = put_jump(program, BPF_JEQ, range->first, range->place, next);
			continue;
		}
		unsigned above = put_jump(program, BPF_JGE, end, next, range->place);
		next = put_jump(program, BPF_JGE, range->first, above, next);
	}
	return next;
}

/* Decide among the ranges FROM up to TO. */
static unsigned put_tree(struct program *program, const struct ranges *ranges,
			 size_t from, size_t to, unsigned allowed)
{
	size_t odd = count_odd(ranges, from, to, allowed);

	if (to - from == 1)
		return ranges->items[from].place;
	if (odd <= ROW_MAX)
		return put_row(program, ranges, from, to, allowed);
	/* Split so that both halves have as many odd ranges. */
	size_t middle = from + 1;
	while (middle < to - 1 && count_odd(ranges, from, middle, allowed) < odd / 2)
		middle++;
	unsigned above = put_tree(program, ranges, middle, to, allowed);
	unsigned below = put_tree(program, ranges, from, middle, allowed);
	return put_jump(program, BPF_JGE, ranges->items[middle].first, above, below);
}

/* Another architecture's numbers mean other calls; x32 does not exist. */
static void put_head(struct program *program, unsigned tree)
{
	(void)put_jump(program, BPF_JGE, X32_BIT, put_answer(program, ENOSYS), tree);
	unsigned number = put_load(program, NUMBER);
	unsigned other =
		put(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							  SECCOMP_RET_KILL_PROCESS));
	(void)put_jump(program, BPF_JEQ, OUR_ARCHITECTURE, number, other);
	(void)put_load(program, offsetof(struct seccomp_data, arch));
}

void filter_answer(struct filter *filter, int number, uint32_t answer)
{
	if (number < 0 || number >= FILTER_CALLS_MAX)
		fail("a call has too high a number");
	filter->rules[number].answer = answer;
}

void filter_add_test(struct filter *filter, int number, const struct filter_test *test)
{
	if (number < 0 || number >= FILTER_CALLS_MAX)
		fail("a call has too high a number");
	struct filter_rule *rule = &filter->rules[number];
	if (rule->count == FILTER_TESTS_MAX)
		fail("a call has too many tests");
	rule->tests[rule->count++] = *test;
}

void filter_print(const struct filter *filter, const char *name, bool all)
{
	static struct program program;
	static struct ranges ranges;

	program.count = 0;
	ranges.count = 0;
	if (all)
		(void)put_answer(&program, ENOSYS);
	put_answers(&program, filter);
	ranges_find(&program, filter, &ranges);
	unsigned tree = put_tree(&program, &ranges, 0, ranges.count,
				 put_answer(&program, FILTER_ALLOW));
	if (all)
		put_head(&program, tree);
	else
		(void)put_load(&program, NUMBER);
	(void)printf("\nstatic const struct sock_filter %s[] = {\n", name);
	for (unsigned i = program.count; i-- > 0;) {
		const struct sock_filter *at = &program.code[i];
		(void)printf("\t{%u, %u, %u, 0x%xu},\n", at->code, at->jt, at->jf, at->k);
	}
	(void)printf("};\n");
}
