/* cmd.h - the subcommands. Each gets the words after its name and returns the exit code. */
#ifndef CLI_CMD_H
#define CLI_CMD_H

int cmd_generate(int argc, char **argv);
int cmd_chat(int argc, char **argv);
#ifdef INGOT_SERVER
int cmd_serve(int argc, char **argv);
#endif
#ifdef INGOT_HUB
int cmd_pull(int argc, char **argv);
#endif
int cmd_inspect(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_quantize(int argc, char **argv);
int cmd_prepare(int argc, char **argv);
int cmd_synth(int argc, char **argv);
int cmd_text_tokenize(int argc, char **argv);
int cmd_text_detokenize(int argc, char **argv);
int cmd_text_render(int argc, char **argv);
int cmd_text_split(int argc, char **argv);
#endif
