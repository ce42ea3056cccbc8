/* based: finds the base of a session. */

#include "front/hands/based.h"

#include "base/err.h"
#include "base/memory.h"
#include "image/base.h"

#include <stdlib.h>

bool based_open(const char *word, const char *images, struct based **based, struct err *err)
{
	struct based *made;
	bool fine;

	*based = NULL;
	if (word == NULL)
		return true;
	made = memory_alloc(sizeof(*made));
	fine = base_open(word, images, &made->base, err);
	if (!fine || made->base.kind == BASE_HOST) {
		based_close(made);
		return fine;
	}
	made->shape = (struct shape_base){
		.word = made->base.word,
		.folders = made->base.folders,
		.folder_count = made->base.folder_count,
		.environment = made->base.environment,
		.named = made->base.kind == BASE_ROOTFS,
	};
	*based = made;
	return true;
}

void based_close(struct based *based)
{
	if (based == NULL)
		return;
	base_close(&based->base);
	free(based);
}
