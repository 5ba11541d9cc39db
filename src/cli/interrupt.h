/* interrupt.h - Ctrl-C: the first one is remembered, a second one ends the process. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H
#include <stdbool.h>

void interrupt_catch(void);
bool interrupt_seen(void);
void interrupt_release(void); /* the first one ends the process again */
void interrupt_clear(void);
#endif
