/* generate_patch: what it leaves out. What it hands over is in tests/tools and tests/agent. */
#include "hand.h"

#include "base/memory.h"
#include "tools/tools.h"

#include <string.h>

static void a_file_whose_old_text_was_not_kept_is_left_out(void **state)
{
	struct hand *hand = *state;
	auto_free char *path = hand_path(hand, "large.txt");

	hand_puts(hand, "large.txt", "small now\n");
	value_set_boolean(hand->before, path, false);
	hand_run(hand, &generate_patch_tool,
		 "{\"title\": \"Shrink it\", \"summary\": \"It was too large.\"}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "large.txt: left out of the patch (what it was is too large");
	assert_string_equal(value_text(value_member(hand->result.details, "patch")), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_whose_old_text_was_not_kept_is_left_out,
						hand_set_up, hand_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
