/* gbnf.h - a grammar in GBNF, the notation of llama.cpp, becomes an automaton.
 *
 *   root ::= item ("," item)*      # a comment
 *   item ::= "a" | [0-9]{1,3} | [^"\x00-\x1f] | .
 *
 * Names of letters, digits, - and _; literals and classes of characters (code points) with the
 * escapes \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH; groups; * + ? {m} {m,} {m,n} after an item.
 * A rule ends with its line, except inside a group, after ::= and after |. The text of the answer
 * is one `root`.
 *
 * Refused, with line and column: a rule that is used and not defined, defined twice, that begins
 * with itself (left recursion), or of which no text ever ends; a class without a character; more
 * than GBNF_REPEAT repetitions; tokens (<...>), for a grammar describes text. */
#ifndef ENGINE_GBNF_H
#define ENGINE_GBNF_H
#include "engine/grammar.h"

enum { GBNF_REPEAT = 10000, GBNF_RULES = 1024, GBNF_GROUPS = 64, GBNF_BYTES = 1 << 18 };

/* blank_line: an empty line may come first, as it does after a thought. */
status gbnf_compile(grammar **out, str text, bool blank_line, error *e);
#endif
