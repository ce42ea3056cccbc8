/*
 * Fuzz target of tool/claims: any bytes as a program's messages, and as what a worker
 * that was taken over sends. Whatever is told stays on its line.
 */
#include "tool/denial.h"

#include "base/value.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct policy *policy, struct tool_result *result)
{
	size_t lines = 0, count;

	denial_claims_judge(policy, CLAIMS_HOSTS_LISTABLE, result);
	count = value_count(denial_list(result));
	for (const char *at = result->text.data; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	if (count > CLAIMS_MAX || lines != count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	auto_policy struct policy *policy = policy_new("fuzz", "/w");
	struct tool_result result;
	struct value *claims = NULL;
	struct err err;

	tool_result_init(&result);
	denial_claims_gather(text, "/w", &result);
	judge(policy, &result);
	tool_result_fini(&result);
	if (value_parse(text, 0, &claims, &err)) {
		tool_result_init(&result);
		value_set(tool_details(&result), "claims", claims);
		judge(policy, &result);
		tool_result_fini(&result);
	}
	return 0;
}
