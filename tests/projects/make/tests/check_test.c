#include <check.h>
#include <stdlib.h>

START_TEST(small)
{
	ck_assert_int_eq(1 + 2, 3);
}
END_TEST

START_TEST(wrong)
{
	ck_assert_int_eq(1 + 2, 5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sums");
	TCase *cases = tcase_create("of two");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(cases, small);
	tcase_add_test(cases, wrong);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_VERBOSE);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
