/*
 * free_space: the floor of free space below which a command may not bring the file system of its
 * workspace. While much is free, looking is enough: the looks come the sooner, the nearer the floor
 * is. Near the floor the space itself is reserved by a file without a name, so that the kernel
 * refuses the command's writes at the floor, however many processes write and however late a look
 * comes. The reserve is given back when nothing of the command runs any more.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Of a file system. UINT64_MAX: nobody knows, or it has no number of files. */
struct free_room {
	uint64_t bytes, files;
};

struct free_space {
	const char *path;       /* a folder of the file system; NULL: there is no floor */
	struct free_room floor; /* below the policy's when the command began below that */
	struct free_room left;  /* at the last look, with the reserve */
	uint64_t near;         /* the reserve is made when less is left above the floor */
	uint64_t piece;        /* of the reserve, between two looks */
	uint64_t reserve_most; /* 0: this file system reserves nothing */
	uint64_t reserved;
	int fd;       /* of the reserve; -1: none */
	bool reached; /* the command took all it may have, or more */
	bool refuses; /* from here on the kernel refused writes that did not fit above the floor */
};

/* The free room of the file system of PATH, which may be NULL. */
struct free_room free_space_at(const char *path);

/* Is less LEFT than the FLOOR? */
bool free_space_is_below(const struct free_room *left, const struct free_room *floor);

/*
 * Before a command runs: LIMIT bytes, and as large a part of the files, stay free where PATH lies.
 * A command that begins below the limit may use half of the rest: it may be there to make room.
 */
void free_space_begin(struct free_space *space, const char *path, uint64_t limit);

/* In how many milliseconds the next look is due. */
int64_t free_space_next_ms(const struct free_space *space);

/* Look, and reserve when the floor is near. True: the floor is reached. */
bool free_space_look(struct free_space *space);

/* Nothing of the command runs any more: look once more and give the reserve back. */
void free_space_end(struct free_space *space);
