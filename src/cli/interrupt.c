/* interrupt.c - see interrupt.h. */
#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "cli/command.h"
#include "base/banned.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    if (interrupted) _exit(EXIT_INTERRUPTED);
    interrupted = number;
}

void interrupt_catch(void)
{
    struct sigaction a = { .sa_handler = on_interrupt };
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

void interrupt_release(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

bool interrupt_seen(void)
{
    return interrupted != 0;
}

bool interrupt_forget_ctrl_c(void)
{
    if (interrupted != SIGINT) return false;
    interrupted = 0;
    return true;
}
