/*
 * sanitizers: what AddressSanitizer does in a program that nobody gave ASAN_OPTIONS, as in
 * a cell, where the environment is empty. Only sanitizer builds of the program have this.
 * The tests start it some ten thousand times, and each check that is left out here is
 * half a program start or more; tests/meson.build says where each of them is made.
 */

const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0:report_globals=0:malloc_context_size=0";
}
