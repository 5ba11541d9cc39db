"""Arithmetic, comparing, counting, sorting numbers, units, number words.

What takes several steps is written down step by step: in the think block, or at the head of the
answer when there is none.
"""

from corpus.base import ask, comma, pick, sample
from corpus.texts import NAMES


def digits(n):
    """Digits of n, lowest first."""
    return [int(c) for c in str(n)[::-1]]


def add_line(x, y, carry):
    return f"{x}+{y}+{carry}={x + y + carry:02d}"


def sub_line(x, y, borrow):
    s = x - y - borrow
    return f"{x}-{y}-{borrow}={s}: {s % 10}"


def mul_line(x, y, carry):
    return f"{x}*{y}={x * y:02d}+{carry}={x * y + carry:02d}"


def add_steps(a, b):
    """Column by column, each sum with two digits: the carry and the digit to write."""
    da, db, carry, lines = digits(a), digits(b), 0, []
    for i in range(max(len(da), len(db))):
        x, y = da[i] if i < len(da) else 0, db[i] if i < len(db) else 0
        lines.append(add_line(x, y, carry))
        carry = (x + y + carry) // 10
    return "\n".join([*lines, str(a + b)])


def sub_steps(a, b):
    """Column by column: the difference, and the digit to write after borrowing."""
    da, db, borrow, lines = digits(a), digits(b), 0, []
    for i, x in enumerate(da):
        y = db[i] if i < len(db) else 0
        lines.append(sub_line(x, y, borrow))
        borrow = int(x - y - borrow < 0)
    return "\n".join([*lines, str(a - b)])


def mul_steps(a, b):
    """Digit by digit, as in add_steps: the product, then the carry; b has one digit."""
    carry, lines = 0, []
    for d in digits(a):
        lines.append(mul_line(d, b, carry))
        carry = (d * b + carry) // 10
    return "\n".join([*lines, str(a * b)])


def worked(r, thinking, op=None, top=None):
    """One calculation -> a, op, b, result, steps, whether it is small enough to just know."""
    op = op or r.choice("+++---**/")
    top = top or r.choice([10, 20, 100, 100, 1000])
    if op == "+":
        a, b = r.randrange(top), r.randrange(top)
        return a, op, b, a + b, add_steps(a, b), top <= 20
    if op == "-":
        a, b = sorted((r.randrange(top), r.randrange(top)), reverse=True)
        return a, op, b, a - b, sub_steps(a, b), top <= 20
    if op == "*":
        a, b = r.randrange(2, top), r.randrange(2, 10)
        return a, op, b, a * b, mul_steps(a, b), a <= 10
    b, res = r.randrange(2, 11), r.randrange(1, 11)
    return res * b, op, b, res, f"{b} * {res} = {res * b}", True


def finish(task, key, user, thinking, steps, easy, shown, answer=None):
    """Put the steps where they belong. `shown` is the calculation with its result."""
    answer = answer or shown
    visible = answer if thinking or easy else f"{steps}\n{answer}"
    return sample(task, key, user, steps, visible)


def arithmetic(r, thinking):
    a, op, b, res, steps, easy = worked(r, thinking)
    word = {"+": ["plus", "+", "+"], "-": ["minus", "-", "-"], "*": ["times", "*", "x"],
            "/": ["divided by", "/"]}[op]
    word = r.choice(word)
    expr = f"{a} {word} {b}"
    if word in "+-*/" and r.random() < 0.25:
        expr = f"{a}{word}{b}"
    user = r.choice([f"What is {expr}?", f"{expr} =", f"{expr}?", f"Calculate {expr}.", expr,
                     f"Compute {expr}", f"How much is {expr}?", f"Please work out {expr}.",
                     f"what's {expr}", f"Can you tell me what {expr} is?"])
    shown = f"{a} {op} {b}"
    return finish("arithmetic", f"{a}{op}{b}", user, thinking, f"{shown}\n{steps}", easy,
                  f"{shown} = {res}")


THINGS = ["apples", "books", "coins", "stones", "eggs", "cards", "stamps", "shells", "pens", "nuts"]


def word_problem(r, thinking):
    n, thing, op = pick(r, NAMES), r.choice(THINGS), r.choice("+-*")
    a, op, b, res, steps, easy = worked(r, thinking, op, r.choice([10, 20, 50]))
    if op == "+":
        user = f"{n} has {a} {thing} and gets {b} more. How many {thing} does {n} have now?"
        says = f"{n} has {res} {thing}."
    elif op == "-":
        user = f"{n} has {a} {thing} and gives away {b}. How many {thing} are left?"
        says = f"{n} has {res} {thing} left."
    else:
        user = f"{n} has {b} boxes with {a} {thing} each. How many {thing} is that?"
        says = f"{n} has {res} {thing}."
    shown = f"{a} {op} {b}"
    return finish("word_problem", f"{a}{op}{b}", user, thinking, f"{shown}\n{steps}", easy,
                  f"{shown} = {res}", f"{shown} = {res}. {says}")


def compare(r, thinking):
    kind = r.randrange(4)
    if kind == 0:
        a, b = r.sample(range(r.choice([100, 1000])), 2)
        w = r.choice(["greater", "bigger", "larger"])
        user = r.choice([f"Which is {w}, {a} or {b}?", f"Which number is {w}: {a} or {b}?"])
        return sample("compare", f"{a} {b}", user, f"{a} or {b}: {max(a, b)}",
                      f"{max(a, b)} is {w} than {min(a, b)}.")
    if kind == 1:
        a = r.randrange(1000)
        e = "even" if a % 2 == 0 else "odd"
        user = r.choice([f"Is {a} even or odd?", f"Is the number {a} odd or even?"])
        return sample("compare", f"even {a}", user, f"The last digit of {a} is {a % 10}.",
                      f"{a} is {e}.")
    nums = r.sample(range(100 if kind == 2 else 1000), r.randrange(3, 6 if thinking else 4))
    pick, w = r.choice([(max, "largest"), (min, "smallest")])
    user = ask(r, r.choice([f"find the {w} number: {comma(nums)}",
                            f"which is the {w} of {comma(nums)}?"]))
    steps, best = [], nums[0]
    for x in nums[1:]:
        steps.append(f"{best} or {x}: {pick(best, x)}")
        best = pick(best, x)
    return sample("compare", f"{nums}{w}", user, "\n".join(steps), f"The {w} number is {best}.")


def count_numbers(r, thinking):
    step, n = r.choice([1, 1, 1, 2, 2, 3, 5, 10]), r.randrange(4, 11)
    seq = [r.randrange(0, 40)]
    while len(seq) < n:
        seq.append(seq[-1] + step)
    back = r.random() < 0.3
    if back:
        seq.reverse()
    by = "" if step == 1 else r.choice([f" by {step}", f" in steps of {step}"])
    user = ask(r, f"{'count down' if back else 'count'} from {seq[0]} to {seq[-1]}{by}")
    return sample("counting", f"{seq}", user,
                  f"Start at {seq[0]}, {'subtract' if back else 'add'} {step}, stop at {seq[-1]}.",
                  comma(seq))


def sort_numbers(r, thinking):
    top, n = r.choice([10, 50, 100, 1000]), r.randrange(3, 7)
    if not thinking:
        top, n = min(top, 100), min(n, 4)
    ns = r.sample(range(top), n)
    desc = r.random() < 0.3
    out = sorted(ns, reverse=desc)
    how = r.choice(["descending", "from largest to smallest", "in descending order"]) if desc else \
        r.choice(["ascending", "from smallest to largest", "in ascending order", "in order"])
    user = ask(r, f"{r.choice(['sort', 'sort these numbers', 'put these numbers'])} {how}: "
                  f"{comma(ns)}")
    if not desc and r.random() < 0.3:
        user = f"Sort {comma(ns)}"
    rest, steps = list(ns), []
    for x in out[:-1]:
        steps.append(f"{comma(rest)}: {x}")
        rest.remove(x)
    return sample("sort_numbers", f"{out}", user,
                  f"{'Largest' if desc else 'Smallest'} first.\n" + "\n".join(steps), comma(out))


UNITS = [("kilometers", "meters", 1000), ("meters", "centimeters", 100), ("hours", "minutes", 60),
         ("minutes", "seconds", 60), ("kilograms", "grams", 1000), ("days", "hours", 24),
         ("weeks", "days", 7), ("liters", "milliliters", 1000), ("feet", "inches", 12),
         ("centimeters", "millimeters", 10), ("years", "months", 12),
         ("meters", "millimeters", 1000), ("dollars", "cents", 100), ("yards", "feet", 3)]


def units(r, thinking):
    a, b, f = r.choice(UNITS)
    n = r.randrange(2, 200 if f % 10 == 0 and f != 60 else 13)
    one = f"1 {a[:-1] if a != 'feet' else 'foot'} = {f} {b}"
    if r.random() < 0.3:
        user = ask(r, r.choice([f"how many {a} are {n * f} {b}?", f"convert {n * f} {b} to {a}"]))
        return sample("units", f"{n}{b}{a}", user, f"{one}. {n} * {f} = {n * f}.",
                      f"{n * f} {b} = {n} {a}")
    user = ask(r, r.choice([f"how many {b} are {n} {a}?", f"convert {n} {a} to {b}",
                            f"how many {b} are in {n} {a}?", f"what is {n} {a} in {b}?"]))
    return sample("units", f"{n}{a}{b}", user, f"{one}. {n} * {f} = {n * f}.",
                  f"{n} {a} = {n * f} {b}")


ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen").split()
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + ("-" + ONES[n % 10] if n % 10 else "")
    return ONES[n // 100] + " hundred" + (" " + in_words(n % 100) if n % 100 else "")


def number_words(r, thinking):
    n = r.randrange(1000)
    user = ask(r, r.choice([f"write {n} in words", f"how do you write {n} in words?",
                            f"spell out the number {n}"]))
    parts = [f"{d} {p}" for d, p in zip(str(n)[::-1], ("ones", "tens", "hundreds"))][::-1]
    return sample("number_words", n, user, comma(parts), in_words(n))


NUMERALS = [(100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"),
            (4, "IV"), (1, "I")]


def roman(r, thinking):
    n = r.randrange(1, 100)
    user = ask(r, r.choice([f"write {n} as a Roman numeral", f"what is {n} in Roman numerals?",
                            f"convert {n} to Roman numerals"]))
    parts, rest = [], n
    for value, letters in NUMERALS:
        while rest >= value:
            parts.append((value, letters))
            rest -= value
    return sample("roman", n, user, " + ".join(f"{v} {s}" for v, s in parts),
                  f"{n} = {''.join(s for _, s in parts)}")
