/* flood BYTES: so many bytes of text to standard output, in the largest writes that pay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 256 << 10, LINE = 64 };

int main(int argc, char **argv)
{
	static char piece[PIECE];
	unsigned long long left = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;

	memset(piece, 'x', sizeof(piece));
	for (size_t i = LINE - 1; i < sizeof(piece); i += LINE)
		piece[i] = '\n';
	while (left > 0) {
		size_t size = left < PIECE ? (size_t)left : PIECE;
		ssize_t n = write(STDOUT_FILENO, piece, size);
		if (n <= 0)
			return EXIT_FAILURE;
		left -= (size_t)n;
	}
	return EXIT_SUCCESS;
}
