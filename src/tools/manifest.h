/* manifest.h - the manifest that published packs carry: `files.json`, an object of
 *
 *   path: {"sha256": 64 hexadecimal digits, "size": bytes}
 *
 * What the files of a model hold is compared with it. Files that the program does not read (cards,
 * pictures, scripts) may be missing, and may differ: copies of a pack have cards of their own. */
#ifndef TOOLS_MANIFEST_H
#define TOOLS_MANIFEST_H
#include <stdint.h>
#include "base/error.h"

/* Told each fault, without a line end. */
typedef void manifest_fault(void *arg, const char *text);
/* `progress` (may be NULL) is told the bytes compared so far of all. A folder without a manifest
 * has no faults. Fails only for lack of memory. */
status manifest_check(const char *folder, manifest_fault *fault, void *fault_arg,
                      void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                      error *e);
#endif
