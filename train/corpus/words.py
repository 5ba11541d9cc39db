"""Words: sorting, spelling, letters, joining, repeating."""

import json

from corpus.base import ask, comma, pick, sample
from corpus.texts import ANIMALS, CITIES, COLOURS, FOODS, JOBS, NAMES, WORDS

ALL_WORDS = WORDS + NAMES + CITIES + JOBS + COLOURS + FOODS + ANIMALS


def distinct(r, count, letters):
    """Words that differ in their first `letters` letters."""
    out, seen = [], set()
    while len(out) < count:
        w = pick(r, WORDS, 0.05)
        if w[:letters] not in seen:
            seen.add(w[:letters])
            out.append(w)
    return out


def by_letters(ws, out, letters):
    """Each word after its first letters, then these alone in order."""
    return (f"first: {comma(f'{spell(w[:letters])} {w}' for w in ws)}\n"
            f"sorted: {' '.join(spell(w[:letters]) for w in out)}")


def sort_words(r, thinking):
    letters = 2 if thinking and r.random() < 0.5 else 1
    ws = distinct(r, r.randrange(3, 7 if thinking else 5), letters)
    desc = r.random() < 0.15
    out = sorted(ws, reverse=desc)
    how = "in reverse alphabetical order" if desc else r.choice(
        ["alphabetically", "in alphabetical order", "from a to z", "by alphabet"])
    forms = [f"sort these words {how}: {comma(ws)}", f"put these words {how}: {comma(ws)}",
             f"sort {how}: {comma(ws)}"]
    if not desc:
        forms += [f"sort the words {comma(ws)}", f"sort {comma(ws)}"]
    return sample("sort_words", comma(sorted(ws)), ask(r, r.choice(forms)),
                  by_letters(ws, out, letters), comma(out))


def spell(w, by="-"):
    return by.join(w)


def about_one(r, thinking, w, kind):
    """-> request, steps, answer, whether the answer needs the steps."""
    q = r.choice(['"', "'", "", ""])
    s = f"{q}{w}{q}"
    if kind == "reverse":
        return (r.choice([f"reverse the word {s}", f"reverse {s}", f"write {s} backwards",
                          f"spell {s} backwards", f"reverse the string {s}"]),
                f"{w}: {spell(w)}", f"Backwards: {spell(w[::-1])}", True)
    if kind == "spell":
        return (r.choice([f"spell the word {s}", f"spell {s}", f"how do you spell {s}?"]),
                f"The word is {w}.", spell(w), False)
    if kind in ("first", "last"):
        c = w[0] if kind == "first" else w[-1]
        return (f"what is the {kind} letter of {s}?", f"{w}: {spell(w)}",
                f"The {kind} letter of {w} is {c}.", False)
    if kind == "length":
        return (r.choice([f"how many letters are in {s}?", f"how long is the word {s}?",
                          f"count the letters in {s}", f"how many letters does {s} have?"]),
                comma(f"{c} {i + 1}" for i, c in enumerate(w)),
                f"The word {w} has {len(w)} letters.", True)
    c = r.choice(w) if r.random() < 0.8 else r.choice("aeiorst")
    n, marks = 0, []
    for x in w:
        n += x == c
        marks.append(f"{x} {n}")
    return (r.choice([f"how many times does the letter {c} occur in {s}?",
                      f"how many {c}'s are in {s}?", f"count the letter {c} in {s}"]),
            f"{c}: {comma(marks)}",
            f"The letter {c} occurs {n} time{'' if n == 1 else 's'} in {w}.", True)


def strings(r, thinking):
    w = pick(r, WORDS)
    kind = r.choice(["reverse", "reverse", "spell", "spell", "first", "last", "length", "letter"])
    user, steps, answer, needed = about_one(r, thinking, w, kind)
    if needed and not thinking:
        answer = f"{steps}\n{answer}"
    return sample("strings", f"{kind} {w}", ask(r, user), steps, answer)


def spell_several(r, thinking):
    """Spell some words, or name their first letters."""
    ws = [pick(r, ALL_WORDS, 0.05) for _ in range(r.randrange(2, 7))]
    if r.random() < 0.3:
        user = ask(r, "name the first letters of these words:") + f" {comma(ws)}"
        return sample("strings", f"firsts {comma(ws)}", user, comma(f"{w[0]} {w}" for w in ws),
                      comma(w[0] for w in ws))
    user = ask(r, r.choice(["spell these words:", "spell:"])) + f" {comma(ws)}"
    return sample("strings", f"spell {comma(ws)}", user, "One word a line.",
                  "\n".join(f"{w}: {spell(w)}" for w in ws))


def several(r, thinking):
    """Join, repeat or capitalize words."""
    kind, q = r.choice(["join", "join", "repeat", "upper", "title"]), r.choice(['"', "'", ""])
    ws = r.sample(WORDS, r.randrange(2, 5))
    t = " ".join(ws)
    if kind == "join":
        sep, name = r.choice([("-", "dashes"), ("_", "underscores"), (", ", "commas"),
                              (" and ", "the word and")])
        return sample("strings", "join" + t, ask(r, f"join these words with {name}: {t}"),
                      f"Put {name} between the words.", sep.join(ws))
    if kind == "repeat":
        w, n = ws[0], r.randrange(2, 6)
        user = r.choice([f"repeat the word {w} {n} times", f"say {w} {n} times",
                         f"write {q}{w}{q} {n} times"])
        return sample("strings", f"repeat {n} {w}", ask(r, user), f"{n} copies of {w}.",
                      " ".join([w] * n))
    if kind == "upper":
        t = ws[0]
        user = r.choice([f"write {q}{t}{q} in capital letters", f"uppercase {q}{t}{q}",
                         f"convert {q}{t}{q} to upper case"])
        return sample("strings", f"upper {t}", ask(r, user), spell(t), t.upper())
    user = r.choice([f"capitalize each word: {t}", f"write {q}{t}{q} in title case"])
    return sample("strings", f"title {t}", ask(r, user), "Each first letter becomes a capital.",
                  t.title())


def echo(r, thinking):
    """Repeat given words."""
    ws = [pick(r, ALL_WORDS, 0.05) for _ in range(r.randrange(1, 9))]
    t = r.choice([" ", " ", ", "]).join(ws)
    user = r.choice([f"Repeat after me: {t}", f"Say: {t}", f"Repeat: {t}", f"Write this: {t}",
                     f"Please repeat these words: {t}", f"Echo {t}"])
    return sample("echo", t, user, "I repeat the words.", t)


# ways to write a list of words; some put a space before each word and some do not
LISTS = [", ".join, " ".join, "\n".join, "-".join, json.dumps, lambda ws: "- " + "\n- ".join(ws),
         lambda ws: "\n".join(f"{i + 1}. {w}" for i, w in enumerate(ws)),
         lambda ws: "\n".join(f"word: {w}" for w in ws), lambda ws: "\n".join(map(spell, ws)),
         lambda ws: "\n".join(f"{w} {spell(w)}" for w in ws)]


def lists(r):
    """The same words written as lists of several kinds, one after the other. A word at the head
    of a line has other tokens than one after a space; this teaches which belong together."""
    ws = [pick(r, ALL_WORDS, 0.3) for _ in range(r.randrange(2, 8))]
    return [write(ws) + "\n\n" for write in r.sample(LISTS, r.randrange(2, 5))]
