/* embedded: finds one of the files in the table. */
#include "front/embedded/embedded.h"

#include <string.h>

struct str embedded_text(const char *name)
{
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++)
		if (strcmp(file->name, name) == 0)
			return (struct str){file->data, file->size};
	return STR("");
}
