/* claims_judge: the session's part of claims.h. Its input may come from anybody. */
#include "base/buf.h"
#include "base/text/text.h"
#include "policy/network.h"
#include "tool/claims.h"
#include "tool/denial.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

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

/* Words end at blanks: is PATH only how the workspace's own path begins? */
static bool is_cut_off(const struct policy *policy, const char *path)
{
	const size_t size = strlen(path);

	return policy->base.path != NULL && strncmp(policy->base.path, path, size) == 0 &&
	       policy->base.path[size] == ' ';
}

static void judge_path(const struct policy *policy, const struct value *claim,
		       struct tool_result *result)
{
	const char *path = value_text(value_member(claim, "path"));
	bool exact = value_is_true(value_member(claim, "exact"));
	bool writes = value_is_true(value_member(claim, "writes"));
	struct verdict verdict;
	struct buf shown;

	if (!is_printable(path) || (!exact && is_cut_off(policy, path)))
		return;
	policy_judge_path(policy, path, writes, !exact, &verdict);
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

/* HOST (as network_parse_host has it, or "") is told with the PORT that the words name, or 0. */
static void judge_host(const struct policy *policy, const char *host, int64_t port,
		       struct tool_result *result)
{
	char rule[VERDICT_RULE_MAX], remedy[NETWORK_REMEDY_MAX], entry[NETWORK_TEXT_MAX];
	struct network_host read;

	(void)snprintf(rule, sizeof(rule), "agents.%.64s.network", policy->name);
	if (*host && network_parse_host(str_of(host), &read, NULL))
		(void)network_print_remedy(network_print_entry(&read,
							       port > 0 && port <= UINT16_MAX
								       ? (uint16_t)port
								       : NETWORK_PORT_TLS,
							       entry),
					   remedy);
	else
		(void)snprintf(remedy, sizeof(remedy),
			       "add the host that it wanted to network, or --allow-host HOST");
	denial_add(result, &(struct denial){.kind = DENIAL_NET,
					    .target = *host ? host : "the network",
					    .rule = rule,
					    .remedy = remedy,
					    .guessed = true});
}

/* In a cell that has no network a listed host would be refused as a configuration. */
static void judge_closed(const char *host, struct tool_result *result)
{
	denial_add(result,
		   &(struct denial){
			   .kind = DENIAL_NET,
			   .target = *host ? host : "the network",
			   .rule = "level below L3",
			   .remedy = "only a cell of level L3 has a network: `glovebox "
				     "doctor` names what this machine lacks for it",
			   .guessed = true,
		   });
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

bool claims_name_host(const struct tool_result *result)
{
	const struct value *list = value_member(result->details, CLAIMS_KEY);

	for (size_t i = 0; i < value_count(list) && i < CLAIMS_MAX; i++) {
		if (value_text(value_member(value_item(list, i), "host")))
			return true;
	}
	return false;
}

void claims_judge(const struct policy *policy, enum claims_hosts hosts,
		  struct tool_result *result)
{
	auto_value struct value *list = NULL;
	bool any_host = false, network_told;

	if (!value_member(result->details, CLAIMS_KEY))
		return;
	list = value_ref(value_member(result->details, CLAIMS_KEY));
	value_remove(result->details, CLAIMS_KEY);
	network_told = has_network_denial(result) || hosts == CLAIMS_HOSTS_WRONG;
	for (size_t i = 0; i < value_count(list) && i < CLAIMS_MAX; i++) {
		const struct value *claim = value_item(list, i);
		const char *host = value_text(value_member(claim, "host"));
		const int64_t port = value_integer(value_member(claim, "port"));

		if (value_text(value_member(claim, "path")))
			judge_path(policy, claim, result);
		else if (network_told || !host)
			continue;
		else if (!*host)
			any_host = true;
		else if (is_host(host) && hosts == CLAIMS_HOSTS_CLOSED)
			judge_closed(host, result);
		else if (is_host(host))
			judge_host(policy, host, port, result);
	}
	/* A program that named its host says so in other words as well. */
	if (!any_host || has_network_denial(result))
		return;
	if (hosts == CLAIMS_HOSTS_CLOSED)
		judge_closed("", result);
	else
		judge_host(policy, "", 0, result);
}
