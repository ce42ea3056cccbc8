/* claims_judge: the session's part of claims.h. What it gets may come from anybody. */
#include "base/buf.h"
#include "base/text.h"
#include "policy/network.h"
#include "runtime/claims.h"
#include "runtime/denial.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { REMEDY_MAX = 512 }; /* a clause, a host and a rule */

/* On one line, or it is no path that a sentence could name. */
static bool is_printable(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	}
	return true;
}

static bool has_remedy(const struct tool_result *result, const char *remedy)
{
	const struct value *list = denial_list(result);

	for (size_t i = 0; i < value_count(list); i++) {
		const char *there = value_text(value_member(value_item(list, i), "remedy"));

		if (there && strcmp(there, remedy) == 0)
			return true;
	}
	return false;
}

static void judge_path(const struct policy *policy, const struct value *claim,
		       struct tool_result *result)
{
	const char *path = value_text(value_member(claim, "path"));
	bool exact = value_is_true(value_member(claim, "exact"));
	bool writes = value_is_true(value_member(claim, "writes"));
	struct verdict verdict;
	struct buf shown;

	if (!is_printable(path))
		return;
	policy_judge_path(policy, path, writes, &verdict);
	if (verdict.answer == VERDICT_ALLOW)
		return;
	/* A file tool came to where the rule stands by a link: as if it had been named. */
	if (exact && result->status == RESULT_FAILED)
		result->status = RESULT_DENIED;
	/* One of many files that the same words would help. */
	if (has_remedy(result, verdict.because))
		return;
	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(path));
	denial_add(result, &(struct denial){.kind = DENIAL_FS,
					    .target = shown.data,
					    .rule = verdict.rule,
					    .remedy = verdict.because,
					    .guessed = !exact});
	buf_fini(&shown);
}

static void judge_host(const struct policy *policy, const char *host,
		       struct tool_result *result)
{
	char rule[VERDICT_RULE_MAX], remedy[REMEDY_MAX];

	(void)snprintf(rule, sizeof(rule), "agents.%.64s.network", policy->name);
	(void)snprintf(remedy, sizeof(remedy), "ask the user to add %s%.*s%s to %s",
		       *host ? "\"" : "the host's name", NETWORK_NAME_MAX, host,
		       *host ? "\"" : "", rule);
	denial_add(result, &(struct denial){.kind = DENIAL_NET,
					    .target = *host ? host : "the network",
					    .rule = rule,
					    .remedy = remedy,
					    .guessed = true});
}

static bool is_host(const char *host)
{
	struct network_host read;

	return network_parse_host(str_of(host), &read, NULL);
}

/* The proxy's own word is better than what programs make of it. */
static bool has_network_denial(const struct tool_result *result)
{
	const struct value *list = denial_list(result);

	for (size_t i = 0; i < value_count(list); i++) {
		if (denial_is(value_item(list, i), DENIAL_NET))
			return true;
	}
	return false;
}

void claims_judge(const struct policy *policy, struct tool_result *result)
{
	auto_value struct value *list = NULL;
	const char *any_host = NULL;
	bool network_told;

	if (!value_member(result->details, CLAIMS_KEY))
		return;
	list = value_ref(value_member(result->details, CLAIMS_KEY));
	value_remove(result->details, CLAIMS_KEY);
	network_told = has_network_denial(result);
	for (size_t i = 0; i < value_count(list) && i < CLAIMS_MAX; i++) {
		const struct value *claim = value_item(list, i);
		const char *host = value_text(value_member(claim, "host"));

		if (value_text(value_member(claim, "path")))
			judge_path(policy, claim, result);
		else if (host && *host && is_host(host) && !network_told)
			judge_host(policy, host, result);
		else if (host && !*host)
			any_host = host;
	}
	/* A program that named its host says so in other words as well. */
	if (any_host && !has_network_denial(result))
		judge_host(policy, any_host, result);
}
