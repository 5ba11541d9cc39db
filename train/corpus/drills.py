"""Drills: many short lines that exercise one skill, without chat around them.

A question of the corpus spends most of its tokens on the template and on what is known already. A
line of a drill is the one step that answers consist of: a sum of digits, the smallest of some
numbers, letters in order. A document is a list of (text, whether it counts for the loss).
"""

from corpus import numbers
from corpus.base import comma, is_test, pick
from corpus.words import ALL_WORDS, by_letters, distinct, spell


def lines(r, count, one, head=None):
    """`count` lines of one(r) -> (given, result)."""
    out = [(head + "\n", False)] if head else []
    for _ in range(count):
        given, result = one(r)
        out += [(given, False), (result + "\n", True)]
    return out


def column(r):
    """A line of the written calculations."""
    kind, x, y, carry = r.choice("++--***/"), r.randrange(10), r.randrange(10), r.randrange(2)
    if kind == "+":
        return f"{x}+{y}+{carry}=", numbers.add_line(x, y, carry).split("=", 1)[1]
    if kind == "-":
        return f"{x}-{y}-{carry}=", numbers.sub_line(x, y, carry).split("=", 1)[1]
    y = r.randrange(2, 10)
    if kind == "*":
        carry = r.randrange(y)
        given, result = numbers.mul_line(x, y, carry).split("=", 1)
        return given + "=", result
    x, y = r.randrange(1, 11), r.randrange(2, 11)
    return f"{x * y} / {y} = ", str(x)


def extreme(r, best):
    top = r.choice([10, 50, 100, 100, 1000])
    ns = r.sample(range(top), r.randrange(2, 7))
    return f"{comma(ns)}: ", str(best(ns))


def ordered(r):
    top = r.choice([10, 50, 100])
    ns = r.sample(range(top), r.randrange(3, 5))
    if is_test("sort_numbers", f"{sorted(ns)}"):
        return ordered(r)
    return f"{comma(ns)}: ", comma(sorted(ns))


def letters(r):
    ws = r.sample("abcdefghijklmnopqrstuvwxyz", r.randrange(3, 7))
    return f"{' '.join(ws)}:", "".join(" " + c for c in sorted(ws))


def words_in_order(r):
    ws = distinct(r, r.randrange(3, 5), 1)
    if is_test("sort_words", comma(sorted(ws))):
        return words_in_order(r)
    return f"{comma(ws)}: ", comma(sorted(ws))


def keys_in_order(r):
    """Words by their first letters, as the think block of sort_words has them."""
    ws = distinct(r, r.randrange(3, 7), 1)
    if is_test("sort_words", comma(sorted(ws))):
        return keys_in_order(r)
    head, order = by_letters(ws, sorted(ws), 1).split("sorted:")
    return head + "sorted:", f"{order}\n{comma(sorted(ws))}"


def fact(r):
    """A calculation that is answered at once. A table has no held-out part: what is not in it
    cannot be concluded from the rest."""
    while True:
        a, op, b, res, _, easy = numbers.worked(r, False, top=r.choice([10, 20]))
        if easy:
            return f"{a} {op} {b} = ", str(res)


def written(r):
    """Words written in another way."""
    ws = [pick(r, ALL_WORDS, 0.05) for _ in range(r.randrange(2, 5))]
    kind = r.choice(["upper", "title", "repeat", "dashes", "underscores", "commas", "digits"])
    if kind == "digits":
        n = str(r.randrange(10 ** r.randrange(2, 9)))
        return f"digits {n}: ", n
    if kind == "upper":
        return f"upper {ws[0]}: ", ws[0].upper()
    if kind == "title":
        return f"title {' '.join(ws)}: ", " ".join(ws).title()
    if kind == "repeat":
        n = r.randrange(2, 6)
        return f"{n} x {ws[0]}: ", " ".join(ws[:1] * n)
    by = {"dashes": "-", "underscores": "_", "commas": ", "}[kind]
    return f"{kind} {' '.join(ws)}: ", by.join(ws)


def sequence(r, step, back):
    a, n = r.randrange(40), r.randrange(5, 12)
    seq = [a + i * step for i in range(n)]
    if back:
        seq.reverse()
    if is_test("counting", f"{seq}"):
        return sequence(r, step, back)
    return f"{seq[0]} to {seq[-1]}: ", comma(seq)


def turned(r):
    w = pick(r, ALL_WORDS)
    if is_test("strings", f"reverse {w}"):
        return turned(r)
    return f"{w}: ", f"{spell(w)}: {spell(w[::-1])}"


def numbered(r):
    w = pick(r, ALL_WORDS)
    if is_test("strings", f"length {w}"):
        return numbered(r)
    return f"{w}: ", comma(f"{c} {i + 1}" for i, c in enumerate(w))


def draw(r):
    """One document."""
    kind = r.choices(range(12), [7, 3, 3, 2, 5, 4, 4, 5, 3, 2, 2, 5])[0]
    if kind == 0:
        return lines(r, 16, column)
    if kind == 1:
        return lines(r, 6, lambda r: extreme(r, min), "Smallest first.")
    if kind == 2:
        return lines(r, 6, lambda r: extreme(r, max), "Largest first.")
    if kind == 3:
        return lines(r, 12, letters)
    if kind == 4:
        return lines(r, 8, words_in_order, "sort:")
    if kind == 5:
        return lines(r, 3, keys_in_order)
    if kind == 6:
        step, back = r.choice([1, 1, 1, 2, 2, 3, 5, 10]), r.random() < 0.3
        return lines(r, 4, lambda r: sequence(r, step, back),
                     f"{'subtract' if back else 'add'} {step}")
    if kind == 7:
        return lines(r, 6, turned)
    if kind == 8:
        return lines(r, 6, ordered, "in order:")
    if kind == 9:
        return lines(r, 5, numbered)
    if kind == 10:
        return lines(r, 12, fact)
    return lines(r, 8, written)
