"""Synthetic instruction corpus of the nugget pair.

Every sample is made by a small program, so its answer is known to be right. The modules hold the
families, `MIX` says how often each is drawn, `pieces` renders a sample through the chat template.
"""

import functools
import os
import re

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from corpus import extraction, numbers, programs, talk, tools, words
from corpus.base import is_test, to_json, turns

HERE = os.path.dirname(os.path.abspath(__file__))
KING = os.path.join(HERE, "..", "..", "models", "nugget", "king")   # its tokenizer and template
BASE_VOCAB = 4064       # entries of the tokenizer before the added tokens
THINK_SHARE = 0.5

MIX = [(numbers.arithmetic, 12), (numbers.word_problem, 5), (numbers.compare, 6),
       (numbers.count_numbers, 5), (numbers.sort_numbers, 7), (numbers.units, 4),
       (numbers.number_words, 3), (numbers.roman, 2), (words.sort_words, 11), (words.strings, 13),
       (words.spell_several, 4), (words.several, 6), (words.echo, 6), (extraction.extract_json, 4),
       (extraction.reading, 3),
       (programs.code, 7), (programs.other_language, 1), (programs.no_code, 1),
       (tools.tool_use, 10), (talk.greet, 6), (talk.facts, 4), (talk.unknown, 3),
       (talk.knowledge, 6), (talk.translate, 3), (talk.story, 2), (talk.memory, 5),
       (talk.go_on, 2), (talk.and_of, 2), (talk.system_rule, 5)]
FAMILIES, WEIGHTS = zip(*MIX)
BEFORE = [numbers.arithmetic, numbers.compare, words.strings, words.sort_words, words.echo,
          talk.greet, talk.facts, talk.knowledge, talk.unknown]
BEFORE_SHARE = 0.12


def draw(r, test=False):
    """One sample of the training or of the held-out split; r is a random.Random."""
    while True:
        thinking = r.random() < THINK_SHARE
        s = r.choices(FAMILIES, WEIGHTS)[0](r, thinking)
        if is_test(s["task"], s["key"]) == test:
            s["thinking"] = thinking
            if len(s["messages"]) == 1 and not s["tools"] and r.random() < BEFORE_SHARE:
                before = r.choice(BEFORE)(r, thinking)
                s["messages"] = (before["messages"] + turns(("assistant", before["answer"])) +
                                 s["messages"])
            return s


# ------------------------------------------------------------------------- rendering


def _raise(message):
    raise jinja2.exceptions.TemplateError(message)


def load_template(folder=KING):
    """Compile the chat template in the environment that Hugging Face tokenizers use."""
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[loopcontrols])
    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = _raise
    with open(os.path.join(folder, "chat_template.jinja"), encoding="utf-8") as f:
        return env.from_string(f.read())


@functools.cache
def tokenizer(folder=KING):
    return Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))


_TEMPLATE = load_template()


def tool_call_text(call):
    """One call in the XML form of the template."""
    out = f"<tool_call>\n<function={call['name']}>\n"
    for k, v in call["arguments"].items():
        out += f"<parameter={k}>\n{v if isinstance(v, str) else to_json(v)}\n</parameter>\n"
    return out + "</function>\n</tool_call>"


def render(sample):
    """-> (prompt, completion); the completion ends with the end-of-turn token."""
    prompt = _TEMPLATE.render(messages=sample["messages"], tools=sample["tools"] or None,
                              add_generation_prompt=True, enable_thinking=sample["thinking"])
    parts = [sample["answer"], *map(tool_call_text, sample["calls"])]
    body = "\n\n".join(p for p in parts[:2] if p) + "".join("\n" + c for c in parts[2:])
    if sample["thinking"]:
        body = sample["reasoning"].strip() + "\n</think>\n\n" + body
    return prompt, body + "<|im_end|>"


# where the model begins to write; an earlier turn lacks the think block, unless it is a tool call
# that belongs to the last question
HEADS = {True: "<|im_start|>assistant\n<think>\n",
         False: "<|im_start|>assistant\n<think>\n\n</think>\n\n"}


def pieces(sample):
    """-> list of (text, whether the model writes it), in order; joined they are the whole text."""
    prompt, completion = render(sample)
    head, out = HEADS[sample["thinking"]], []
    first, *rest = prompt.split(head)
    out.append((first + head, False))
    for turn in rest[:-1]:
        written, after = re.match(r"(.*?<\|im_end\|>)(.*)", turn, re.S).groups()
        out += [(written, True), (after + head, False)]
    return out + [(completion, True)]
