/* interrupt.h - SIGINT (Ctrl-C) and SIGTERM: the first one is remembered, a second one ends the
 * process. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H
#include <stdbool.h>

void interrupt_catch(void);
bool interrupt_seen(void);
void interrupt_release(void); /* the first one ends the process again */
/* Forgets a Ctrl-C, not a SIGTERM; true when there was one. */
bool interrupt_forget_ctrl_c(void);
#endif
