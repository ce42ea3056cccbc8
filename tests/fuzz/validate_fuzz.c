/*
 * validate_fuzz: a JSON list of a schema, a value and, if there is a third, documents by address;
 * a fourth makes it draft-07 unless told. The answer must not depend on who asks for a sentence.
 */
#include "tool/validate.h"

#include "base/str.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	auto_value struct value *pair = NULL;
	struct validate_options options = {0};
	struct validate_problem problem = {0};
	struct err err;
	bool fits;

	if (!value_parse(text, 0, &pair, &err))
		return 0;
	options.documents = value_item(pair, 2);
	options.draft_07 = value_count(pair) > 3;
	fits = validate_with(&options, value_item(pair, 0), value_item(pair, 1), &problem);
	assert(fits || (problem.keyword && problem.rule[0]));
	assert(strlen(problem.rule) < sizeof(problem.rule));
	assert(fits ==
	       validate_with(&options, value_item(pair, 0), value_item(pair, 1), NULL));
	return 0;
}
