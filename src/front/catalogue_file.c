/* catalogue_file: models/catalogue.json out of the program. */
#include "front/catalogue_file.h"

#include "front/embedded.h"

bool catalogue_file_open(const struct value *additions, struct catalogue **catalogue,
			 struct err *err)
{
	return catalogue_open(embedded_text("models/catalogue.json"), additions,
			      catalogue, err);
}
