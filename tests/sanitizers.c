/*
 * sanitizers: what AddressSanitizer does in a program that nobody gave ASAN_OPTIONS, as in
 * a cell, where the environment is empty. Only sanitizer builds of the program have this.
 * The tests start it some ten thousand times: for `exec -- true` these checks take 64 of
 * 158 ms. tests/meson.build says which tests make them.
 */

const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "strict_string_checks=1:detect_stack_use_after_return=0:detect_leaks=0:"
	       "report_globals=0:malloc_context_size=0";
}
