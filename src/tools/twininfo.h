/* twininfo.h - what a GGUF file is: architecture, types and sizes of its tensors, and whether it is
 * a king's twin (convert.h). Reads the header only. */
#ifndef TOOLS_TWININFO_H
#define TOOLS_TWININFO_H
#include "base/buf.h"

/* `json`: one object instead of lines of text; `tensors`: list them, too. */
status twininfo_write(const char *path, bool json, bool tensors, buf *out, error *e);
#endif
