/* environment.h - what the environment says about downloads: the variables of the Hugging Face
 * clients, with their older names. */
#ifndef HUB_ENVIRONMENT_H
#define HUB_ENVIRONMENT_H
#include <stdbool.h>

#include "base/error.h"

enum { ENVIRONMENT_MAX_PATH = 4096, ENVIRONMENT_MAX_TOKEN = 1024 };

/* HF_HUB_CACHE, else "hub" in HF_HOME or the user's cache; E_ARG when nothing says where. */
status environment_cache(char out[ENVIRONMENT_MAX_PATH], error *e);
/* HF_ENDPOINT, without a slash at its end. */
void environment_endpoint(char out[ENVIRONMENT_MAX_PATH]);
/* HF_TOKEN or the stored one; false: none. */
bool environment_token(char out[ENVIRONMENT_MAX_TOKEN]);
bool environment_is_offline(void); /* HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE */
bool environment_has_links(void);  /* unless HF_HUB_DISABLE_SYMLINKS: links in the cache */
#endif
