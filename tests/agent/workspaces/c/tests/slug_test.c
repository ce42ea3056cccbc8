#include "slug.h"

#include <stdio.h>
#include <string.h>

static int failed;

static void holds(int number, const char *title, const char *wanted)
{
	char got[64];

	slug(title, got, sizeof(got));
	if (strcmp(got, wanted) != 0) {
		failed = 1;
		printf("not ");
	}
	printf("ok %d - %s is %s\n", number, title, got);
}

int main(void)
{
	printf("1..3\n");
	holds(1, "One Word", "one-word");
	holds(2, "A -- b", "a-b");
	holds(3, "What?!", "what");
	return failed;
}
