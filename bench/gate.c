/*
 * gate ROUNDS: the command gate by itself, a row of microseconds for each round: 1,000 usual
 * commands read, 1,000 read and judged by all presets, 1,000 that are refused, and texts of
 * 1 MiB: words, and quotes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/value.h"
#include "policy/command.h"
#include "policy/commands.h"
#include "policy/config.h"
#include "policy/policy.h"

enum { TIMES = 1000 };

static const char usual[] =
	"git log --oneline -n 5 -- src/main.c | head -n 3 && cargo test 'a b'";
static const char refused[] = "git log --output=x -n 5 && rm -rf build";

/* Of this process: what others take from it is none of the gate's. */
static int64_t used_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static int64_t read_us(struct str text, int times)
{
	int64_t began = used_us();

	for (int i = 0; i < times; i++) {
		struct command command;

		(void)command_parse(&command, text);
		command_fini(&command);
	}
	return used_us() - began;
}

static int64_t judge_us(const struct policy *policy, const char *text)
{
	const struct policy_request request = {.effects = POLICY_RUNS,
					       .command = str_of(text)};
	int64_t began = used_us();

	for (int i = 0; i < TIMES; i++) {
		struct verdict verdict;

		commands_decide(policy, &request, &verdict);
		value_free(verdict.plan);
	}
	return used_us() - began;
}

static void fill(struct buf *text, const char *piece)
{
	buf_init(text, COMMAND_TEXT_MAX);
	while (buf_adds(text, piece))
		;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	auto_config struct config *config = NULL;
	auto_policy struct policy *policy = NULL;
	struct buf words, quotes;
	struct err err = {0};

	if (!config_parse(STR("{\"agents\": {\"default\": {\"commands\": \"list\"}}}"),
			  "gate", &config, &err) ||
	    !config_policy(config, NULL, NULL, "/", &policy, &err)) {
		(void)fprintf(stderr, "gate: %s\n", err.text);
		return EXIT_FAILURE;
	}
	fill(&words, "word ");
	fill(&quotes, "'a b'\"c\\\"d\" ");
	for (long i = 0; i < rounds; i++)
		(void)printf("%lld %lld %lld %lld %lld\n",
			     (long long)read_us(str_of(usual), TIMES),
			     (long long)judge_us(policy, usual),
			     (long long)judge_us(policy, refused),
			     (long long)read_us(buf_str(&words), 1),
			     (long long)read_us(buf_str(&quotes), 1));
	buf_fini(&words);
	buf_fini(&quotes);
	return EXIT_SUCCESS;
}
