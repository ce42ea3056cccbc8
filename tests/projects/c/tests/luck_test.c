#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	char mark[4096];
	const char *folder = getenv("TMPDIR");
	FILE *file;
	int again;

	snprintf(mark, sizeof(mark), "%s/luck", folder ? folder : "/tmp");
	again = access(mark, F_OK) == 0;
	file = fopen(mark, "w");
	if (file)
		fclose(file);
	if (!again)
		fprintf(stderr, "tests/luck_test.c:%d: the first time fails\n", __LINE__);
	return !again;
}
