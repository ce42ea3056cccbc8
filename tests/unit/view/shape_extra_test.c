/* Tests of view/shape_extra: of which folders a person is asked, by what the view has there. */
#include "../base/unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "view/shape.h"

static bool may_be_asked(enum view_kind kind, const char *entry, const char *path,
			 bool writable, struct err *err)
{
	struct shape_extra extra = {.path = path, .fd = -1, .writable = writable};
	struct cell_spec spec;
	bool fine;

	spec_init(&spec);
	spec.built = SANDBOX_SEALED;
	(void)spec_add_entry(&spec, kind, entry, "../tmp");
	fine = shape_judge_extra(&spec, &extra, err);
	spec_fini(&spec);
	return fine;
}

static void nothing_is_put_below_a_link_of_the_view(void **state)
{
	struct err err = {0};

	(void)state;
	assert_false(may_be_asked(VIEW_LINK, "/var/tmp", "/var/tmp/notes", false, &err));
	assert_string_equal(err.text,
			    "/var/tmp/notes lies in /var/tmp, which stays as it is");
	assert_false(may_be_asked(VIEW_LINK, "/var/tmp", "/var/tmp/notes", true, &err));
	assert_true(may_be_asked(VIEW_LINK, "/var/tmp", "/var/tmpnotes", true, &err));
	assert_true(may_be_asked(VIEW_FOLDER, "/var", "/var/notes", true, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_put_below_a_link_of_the_view),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
