/* main.c - the `ingot` command: finds the subcommand and runs it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/setup.h"
#include "base/banned.h"

#ifndef INGOT_COMMIT
#define INGOT_COMMIT "unknown"
#endif

typedef struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    { "generate", "answer one prompt", cmd_generate },
    { "chat", "hold a conversation", cmd_chat },
#ifdef INGOT_SERVER
    { "serve", "a server with OpenAI's and Anthropic's APIs", cmd_serve },
#endif
#ifdef INGOT_HUB
    { "pull", "fetch a model by its hub id", cmd_pull },
#endif
    { "inspect", "say what a pack is and what it needs", cmd_inspect },
    { "bench", "measure speed, with the memory's own beside it", cmd_bench },
    { "capture", "run token sequences and store logits and hidden states", cmd_capture },
    { "eval", "KL divergence, perplexity; verify: do all ways of generating agree?", cmd_eval },
    { "convert", "a king's pack to its GGUF twin and back", cmd_convert },
    { "quantize", "quantize a drafter or plain pack as MLX does", cmd_quantize },
    { "prepare", "keep the weights on disk as they are computed with", cmd_prepare },
    { "synth", "write a pack of random weights in a real layout", cmd_synth },
    { "tokenize", "print the token ids of a text", cmd_text_tokenize },
    { "detokenize", "print the bytes that token ids stand for", cmd_text_detokenize },
    { "render", "print the prompt that the model would see", cmd_text_render },
    { "split", "split raw model output into reasoning, content and tool calls", cmd_text_split },
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void help(FILE *out)
{
    fputs("ingot - runs Ingot kings and their drafters on a CPU, with the same bits everywhere\n\n"
          "usage: ingot COMMAND [options]\n\n",
          out);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`ingot help COMMAND` lists its options, `ingot --version` the CPU kernels found.\n"
          "Exit codes: 0 done, 1 failed, 2 wrong command line, 3 pack refused, 130 interrupted, "
          "141 closed pipe.\n",
          out);
}

static void version(void)
{
    printf("ingot %s\ncommit   %s\ncompiler %s\nkernels  %s\n", ingot_version(), INGOT_COMMIT,
           __VERSION__, ingot_cpu_tiers());
}

static const command *find(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) names[i] = commands[i].name;
    const char *near = options_nearest(name, names, N_COMMANDS);
    if (near) fprintf(stderr, "ingot: unknown command \"%s\", did you mean %s?\n", name, near);
    else fprintf(stderr, "ingot: unknown command \"%s\" (`ingot help` lists them)\n", name);
    return EXIT_USAGE;
}

/* What was printed must have arrived. */
static int flushed(int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    fprintf(stderr, "ingot: stdout: cannot write: %s\n",
            errno ? strerror(errno) : "an earlier write failed");
    return code ? code : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like a full disk */
    char help_option[] = "--help";
    char *ask_help[] = { argc > 3 ? argv[3] : help_option, help_option }; /* `help eval kl` */
    const char *name = argc > 1 ? argv[1] : "help";
    const bool is_help =
        strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    const bool is_version = strcmp(name, "--version") == 0 || strcmp(name, "version") == 0;
    if (argc == 1) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (is_version || (is_help && argc == 2)) {
        if (is_version) version();
        else help(stdout);
        return flushed(EXIT_DONE);
    }
    const command *c = find(is_help ? argv[2] : name);
    if (!c) return unknown(is_help ? argv[2] : name);
    return flushed(is_help ? c->run(argc > 3 ? 2 : 1, ask_help) : c->run(argc - 2, argv + 2));
}
