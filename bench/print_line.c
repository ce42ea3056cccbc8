/* print_line: the least that a program of the C library can do; what a start is held against. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	return puts("print_line") < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
