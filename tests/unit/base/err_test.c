/* Tests of base/err. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/text/text.h"

static void always_false_even_without_an_err(void **state)
{
	struct err err;

	(void)state;
	assert_false(err_set(NULL, EIO, "lost"));
	assert_false(err_while(NULL, "losing"));
	assert_false(err_set(&err, EIO, "lost %d", 7));
	assert_int_equal(err.code, EIO);
	assert_string_equal(err.text, "lost 7");
}

static void context_stands_before_the_sentence(void **state)
{
	struct err err;

	(void)state;
	(void)err_set(&err, ENOENT, "x: not there");
	assert_false(err_while(&err, "loading %s", "policy"));
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.text, "loading policy: x: not there");
}

static void its_own_text_may_be_an_argument(void **state)
{
	struct err err;

	(void)state;
	(void)err_set(&err, 1, "first");
	(void)err_set(&err, 2, "second after %s", err.text);
	assert_string_equal(err.text, "second after first");
	(void)err_while(&err, "third beside %s", err.text);
	assert_string_equal(err.text, "third beside second after first: second after first");
}

static void long_sentences_are_cut_between_characters(void **state)
{
	char letters[3 * ERR_TEXT_MAX];
	struct err err;

	(void)state;
	/* Characters of two bytes, at both parities. */
	for (size_t i = 0; i < sizeof(letters); i += 2)
		memcpy(letters + i, "é", 2);
	letters[sizeof(letters) - 2] = '\0';
	(void)err_set(&err, 0, "%s", letters);
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 2);
	assert_true(text_is_utf8(str_of(err.text)));
	(void)err_set(&err, 0, "x%s", letters);
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	assert_true(text_is_utf8(str_of(err.text)));
	(void)err_while(&err, "y");
	assert_true(text_is_utf8(str_of(err.text)));
	(void)err_set(&err, 0, "end");
	(void)err_while(&err, "%s", letters);
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 2);
	assert_true(text_is_utf8(str_of(err.text)));
}

static void a_sentence_of_exactly_the_room_is_whole(void **state)
{
	char letters[ERR_TEXT_MAX];
	struct err err;

	(void)state;
	memset(letters, 'a', sizeof(letters));
	letters[sizeof(letters) - 1] = '\0';
	(void)err_set(&err, 0, "%s", letters);
	assert_string_equal(err.text, letters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(always_false_even_without_an_err),
		cmocka_unit_test(context_stands_before_the_sentence),
		cmocka_unit_test(its_own_text_may_be_an_argument),
		cmocka_unit_test(long_sentences_are_cut_between_characters),
		cmocka_unit_test(a_sentence_of_exactly_the_room_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
