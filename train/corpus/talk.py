"""Small talk, facts about the project, general knowledge, honest refusals, conversations."""

from corpus.base import an, ask, pick, sample, turns
from corpus.extraction import person
from corpus.numbers import add_steps, arithmetic, compare, sub_steps
from corpus.texts import (ANIMALS, CAPITALS, CITIES, COLOURS, COUNTS, FACTS, FOODS, JOBS, NAMES,
                          OPPOSITES, PAST, SMALL_TALK, TRANSLATIONS, UNKNOWN, UNKNOWN_THINGS)
from corpus.words import strings


def greet(r, thinking):
    item = r.choice(SMALL_TALK)
    user = r.choice(item["ask"])
    user = r.choice([user, user, user.lower(), user.rstrip(".?!"), user.rstrip(".?!") + "!"])
    return sample("small_talk", user, user, item["why"], item["answer"])


FACT_LEAD = ["", "", "", "Please tell me: ", "Question: ", "Tell me, ", "Can you explain: ",
             "Hello! ", "I wonder, ", "Short answer please: "]


def facts(r, thinking):
    item = r.choice(FACTS)
    q, lead = r.choice(item["ask"]), r.choice(FACT_LEAD)
    user = lead + (q[0].lower() + q[1:] if lead.endswith((", ", ": ")) else q)
    if r.random() < 0.15:
        user = user.lower()
    return sample("facts", user, user, item["why"], item["answer"])


def unknown(r, thinking):
    """Questions that a model of this size cannot answer."""
    form = r.choice(UNKNOWN)
    user = form.format(name=r.choice(NAMES), city=r.choice(CITIES), year=r.randrange(1500, 2030),
                       job=r.choice(JOBS), animal=r.choice(ANIMALS), n=r.randrange(2, 30),
                       thing=r.choice(UNKNOWN_THINGS))
    if r.random() < 0.15:
        user = user.lower()
    return sample("unknown", user, user, "I do not have this knowledge. I should say so.",
                  "I am a very small model and I do not know that.")


# ------------------------------------------------------------------------- knowledge

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December"]


def capital(r, thinking):
    c = r.choice(sorted(CAPITALS))
    user = ask(r, r.choice([f"what is the capital of {c}?", f"name the capital of {c}",
                            f"which city is the capital of {c}?", f"capital of {c}?"]))
    return sample("knowledge", user, user, f"The capital of {c}.",
                  f"The capital of {c} is {CAPITALS[c]}.")


def neighbour(r, thinking):
    seq, what = r.choice([(DAYS, "day"), (MONTHS, "month")])
    i, (word, by) = r.randrange(len(seq)), r.choice([("after", 1), ("before", -1)])
    user = ask(r, r.choice([f"which {what} comes {word} {seq[i]}?",
                            f"what {what} is {word} {seq[i]}?"]))
    return sample("knowledge", user, user, f"The {what}s go in a circle.",
                  f"{seq[(i + by) % len(seq)]} comes {word} {seq[i]}.")


def opposite(r, thinking):
    a, b = r.choice(OPPOSITES)
    if r.random() < 0.5:
        a, b = b, a
    user = ask(r, r.choice([f"what is the opposite of {a}?", f"name the opposite of {a}",
                            f"opposite of {a}?"]))
    return sample("knowledge", user, user, f"The opposite of {a}.", f"The opposite of {a} is {b}.")


def past(r, thinking):
    a, b = r.choice(PAST)
    user = ask(r, r.choice([f"what is the past tense of {a}?", f"past tense of {a}",
                            f"put {a} into the past tense"]))
    return sample("knowledge", user, user, f"The verb is {a}.", f"The past tense of {a} is {b}.")


def some(r, thinking):
    what, pool = r.choice([("animals", ANIMALS), ("colours", COLOURS), ("foods", FOODS),
                           ("cities", CITIES), ("jobs", JOBS)])
    n = r.randrange(2, 7)
    user = ask(r, r.choice([f"name {n} {what}", f"list {n} {what}", f"give me {n} {what}",
                            f"tell me {n} {what}"]))
    return sample("knowledge", user, user, f"{n} {what}.",
                  "\n".join(f"{i + 1}. {x}" for i, x in enumerate(pool[:n])))


def how_many(r, thinking):
    what, n = r.choice(COUNTS)
    user = ask(r, r.choice([f"how many {what} are there?", f"what is the number of {what}?",
                            f"tell me the number of {what}"]))
    return sample("knowledge", user, user, f"A count: {what}.", f"The number of {what} is {n}.")


def knowledge(r, thinking):
    return r.choice([capital, capital, neighbour, opposite, past, some, how_many])(r, thinking)


def translate(r, thinking):
    lang = r.choice(sorted(TRANSLATIONS))
    w = r.choice(sorted(TRANSLATIONS[lang]))
    user = ask(r, r.choice([f"translate {w} to {lang}", f"what is {w} in {lang}?",
                            f"how do you say {w} in {lang}?"]))
    return sample("translate", user, user, f"{w} in {lang}.",
                  f"{w} in {lang}: {TRANSLATIONS[lang][w]}")


def story(r, thinking):
    n, a = pick(r, NAMES), r.choice(ANIMALS)
    user = ask(r, r.choice([f"tell me a story about {an(a)} named {n}",
                            f"write a short story about {n} the {a}",
                            f"tell a story about {an(a)} called {n}",
                            f"write a story about {n} the {a}"]))
    return sample("story", user, user, f"A short story about {n} the {a}.",
                  f"Once there was {an(a)} named {n}. {n} lived in a quiet forest. One day {n} "
                  f"found an old lamp. {n} was afraid at first, but a wise owl said: \"Be "
                  f"brave.\" So {n} took the lamp home and shared it with everyone. From that "
                  f"day on the whole forest was happy.")


# ------------------------------------------------------------------------- conversations


def memory(r, thinking):
    """A fact told in an earlier turn is asked for later."""
    k = r.choice(["name", "name", "city", "job", "colour", "food", "animal"])
    v = person(r)[k]
    tell = dict(name=[f"My name is {v}.", f"I am {v}.", f"Call me {v}.", f"Hi, I'm {v}.",
                      f"Hello, my name is {v}!"],
                city=[f"I live in {v}.", f"I come from {v}."],
                job=[f"I work as {an(v)}.", f"I am {an(v)}."],
                colour=[f"My favourite colour is {v}.", f"I like {v} most of all colours."],
                food=[f"My favourite food is {v}.", f"I love to eat {v}."],
                animal=[f"I have {an(v)}.", f"My pet is {an(v)}."])[k]
    quest = dict(name=["What is my name?", "Do you remember my name?", "Who am I?"],
                 city=["Where do I live?", "Which city am I from?"],
                 job=["What is my job?", "What do I do for work?"],
                 colour=["What is my favourite colour?", "Which colour do I like?"],
                 food=["What is my favourite food?", "What do I like to eat?"],
                 animal=["Which pet do I have?", "What animal do I have?"])[k]
    answer = dict(name=f"Your name is {v}.", city=f"You live in {v}.", job=f"You are {an(v)}.",
                  colour=f"You like {v}.", food=f"You like {v}.", animal=f"You have {an(v)}.")[k]
    ack = f"Nice to meet you, {v}!" if k == "name" else "Thank you, I will remember that."
    said = r.choice(tell)
    if r.random() < 0.3:
        return sample("memory", f"{k} {v}", said, f"The user tells me the {k}: {v}.", ack)
    messages = turns(("user", said), ("assistant", ack))
    if r.random() < 0.4:
        between = r.choice([arithmetic, strings, knowledge, greet])(r, False)
        messages += between["messages"] + turns(("assistant", between["answer"]))
    return sample("memory", f"{k} {v}", messages + turns(("user", r.choice(quest))),
                  f"{k}: {v}", answer)


def go_on(r, thinking):
    """A follow-up calculation with the result of the turn before."""
    a, b, c = (r.randrange(2, top) for top in (60, 40, 40))
    x = a + b
    plus = r.random() < 0.6 or x < c
    user = r.choice([f"Add {c} to that.", f"Now add {c}.", f"And plus {c}?"]) if plus else \
        r.choice([f"Subtract {c} from that.", f"Now take away {c}.", f"And minus {c}?"])
    op, res, steps = ("+", x + c, add_steps(x, c)) if plus else ("-", x - c, sub_steps(x, c))
    steps, shown = f"{x} {op} {c}\n{steps}", f"{x} {op} {c} = {res}"
    first = r.choice([f"What is {a} + {b}?", f"Calculate {a} + {b}.", f"{a} + {b}"])
    return sample("follow_up", f"{a} {b} {op} {c}",
                  turns(("user", first), ("assistant", f"{a} + {b} = {x}"), ("user", user)),
                  steps, shown if thinking else f"{steps}\n{shown}")


def and_of(r, thinking):
    """A follow-up that asks the same about something else."""
    if r.random() < 0.5:
        a, b = r.sample(sorted(CAPITALS), 2)
        first, said = f"What is the capital of {a}?", f"The capital of {a} is {CAPITALS[a]}."
        why, answer = f"The capital of {b}.", f"The capital of {b} is {CAPITALS[b]}."
        user = r.choice([f"And of {b}?", f"And {b}?", f"What about {b}?"])
    else:
        lang = r.choice(sorted(TRANSLATIONS))
        table = TRANSLATIONS[lang]
        a, b = r.sample(sorted(table), 2)
        first, said = f"Translate {a} to {lang}.", f"{a} in {lang}: {table[a]}"
        why, answer = f"{b} in {lang}.", f"{b} in {lang}: {table[b]}"
        user = r.choice([f"And {b}?", f"What about {b}?", f"Now {b}."])
    return sample("follow_up", f"{a} {b}",
                  turns(("user", first), ("assistant", said), ("user", user)), why, answer)


def system_rule(r, thinking):
    """A system message adds to the answer."""
    s = r.choice([knowledge, arithmetic, greet, compare, facts])(r, thinking)
    kind = r.randrange(3)
    if kind == 0:
        end = r.choice(["Done.", "Over and out.", "Good luck!", "Cheers!", "Have a nice day."])
        rule = r.choice([f"End every answer with: {end}", f"Finish each reply with \"{end}\""])
        answer, why = s["answer"] + " " + end, f"End with: {end}"
    elif kind == 1:
        n = pick(r, NAMES)
        rule = r.choice([f"The user is called {n}. Use the name in every answer.",
                         f"Address the user as {n}."])
        answer, why = f"{n}, here is the answer: {s['answer']}", f"The user is called {n}."
    else:
        rule = r.choice(["You are a helpful assistant.", "You are Nugget, a small assistant.",
                         "Be brief and friendly."])
        answer, why = s["answer"], ""
    return sample("system_rule" if kind < 2 else s["task"], f"{kind}{s['key']}",
                  [dict(role="system", content=rule), *s["messages"]],
                  (s["reasoning"] + "\n" + why).strip(), answer)
