/* sysmem.h - what the system says about memory, in bytes; 0 where it says nothing. */
#ifndef BASE_SYSMEM_H
#define BASE_SYSMEM_H
#include <stddef.h>

size_t sysmem_rss(void);      /* of this process, resident now */
size_t sysmem_peak_rss(void); /* the most it was */
/* what this process may still use: physical memory and the limits of its control group */
size_t sysmem_available(void);
#endif
