"""What every family of samples uses: the sample itself, the split, ways to word a request."""

import json
import zlib


def sample(task, key, user, reasoning, answer, **more):
    """One question with its answer.

    task       family name, used for scores
    key        names the question apart from its wording; decides the split
    messages   chat messages up to the turn to be answered (`user` if given as a list)
    tools      tool schemas
    reasoning  text of the think block, used when `thinking` is set
    answer     visible text of the answer
    calls      tool calls of the answer: {"name", "arguments"}
    """
    out = dict(task=task, key=str(key), tools=[], calls=[], reasoning=reasoning, answer=answer)
    out["messages"] = [dict(role="user", content=user)] if isinstance(user, str) else user
    out.update(more)
    return out


def is_test(task, key):
    """True for about 2 % of all questions; these never occur in training, however worded."""
    return zlib.crc32(f"{task}|{key}".encode()) % 50 == 0


def to_json(value, ensure_ascii=False, indent=None, **_):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


LEAD = ["", "", "", "", "", "", "", "Please ", "Can you ", "Could you ", "Hi! ", "Now "]


def ask(r, text):
    """Vary the opening and the ending of a request (`text` starts in lower case)."""
    lead = r.choice(LEAD)
    if text.split()[0] in ("what", "which", "how", "capital", "opposite", "past", "an", "a"):
        lead = lead if lead in ("", "Hi! ") else ""
    if lead in ("", "Hi! "):
        text = lead + text[0].upper() + text[1:]
    else:
        text = lead + text
    if lead.startswith("C") and not text.endswith("?") and ":" not in text:
        return text.rstrip(".") + "?"
    if text[-1] not in ".?!:" and ":" not in text and r.random() < 0.6:
        text += "."
    return text if r.random() < 0.9 else text.lower()


def listed(items):
    """Join words as 'a, b and c'."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def comma(items):
    return ", ".join(map(str, items))


def pick(r, pool, made_up=0.1):
    """A word of the pool, or now and then one that nobody knows, made of the halves of two. Such
    words teach to copy and to spell what was never seen."""
    w = r.choice(pool)
    if r.random() >= made_up:
        return w
    other = r.choice(pool)
    return w[:(len(w) + 1) // 2] + other[len(other) // 2:]


def an(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def turns(*pairs):
    return [dict(role=role, content=text) for role, text in pairs]
