"""Facts out of a short text: as JSON, or as the answer to one question."""

from corpus.base import an, listed, pick, sample, to_json
from corpus.texts import ANIMALS, CITIES, COLOURS, FOODS, JOBS, NAMES

FIELDS = ["name", "age", "city", "job", "colour", "food", "animal"]


def person(r):
    return dict(name=pick(r, NAMES), age=r.randrange(5, 95), city=pick(r, CITIES),
                job=r.choice(JOBS), colour=r.choice(COLOURS), food=r.choice(FOODS),
                animal=r.choice(ANIMALS))


def describe(r, p, keys):
    """Sentences that state the chosen fields of one person in random order."""
    he = r.choice(["He", "She"])
    say = dict(age=[f"{he} is {p['age']} years old.", f"{he} turned {p['age']}."],
               city=[f"{he} lives in {p['city']}.", f"{he} comes from {p['city']}."],
               job=[f"{he} works as {an(p['job'])}.", f"{he} is {an(p['job'])}."],
               colour=[f"{he} likes the colour {p['colour']}.",
                       f"{he} always wears {p['colour']}."],
               food=[f"{he} likes to eat {p['food']}.", f"{he} loves {p['food']}."],
               animal=[f"{he} has {an(p['animal'])}.", f"{he} owns {an(p['animal'])}."])
    rest = [k for k in keys if k != "name"]
    r.shuffle(rest)
    body = [r.choice(say[k]) for k in rest]
    body[0] = p["name"] + body[0][len(he):]
    return " ".join(body)


def extract_json(r, thinking):
    p = person(r)
    keys = ["name"] + r.sample(FIELDS[1:], r.randrange(1, 4))
    extra = keys + ([r.choice([k for k in FIELDS if k not in keys])] if r.random() < 0.4 else [])
    text = describe(r, p, extra)
    user = r.choice([f"Extract {listed(keys)} as JSON: {text}",
                     f"Return JSON with the keys {listed(keys)}.\n\n{text}",
                     f"{text}\n\nGive me {listed(keys)} as JSON.",
                     f"Turn this into JSON with {listed(keys)}: {text}"])
    out = {k: p[k] for k in keys}
    return sample("extract_json", f"{out}", user,
                  "\n".join(f"{k}: {p[k]}" for k in keys), to_json(out))


def reading(r, thinking):
    p = person(r)
    keys = ["name"] + r.sample(FIELDS[1:], r.randrange(2, 4))
    text, k, n = describe(r, p, keys), r.choice(keys[1:]), p["name"]
    q = dict(age=f"How old is {n}?", city=r.choice([f"Where does {n} live?",
                                                    f"In which city is {n} at home?"]),
             job=f"What is {n}'s job?", colour=f"Which colour does {n} like?",
             food=f"What does {n} like to eat?", animal=f"Which animal does {n} have?")[k]
    a = dict(age=f"{n} is {p['age']} years old.", city=f"{n} lives in {p['city']}.",
             job=f"{n} is {an(p['job'])}.", colour=f"{n} likes {p['colour']}.",
             food=f"{n} likes {p['food']}.", animal=f"{n} has {an(p['animal'])}.")[k]
    user = r.choice([f"{text} {q}", f"{text}\n\n{q}", f"Read this: {text}\n{q}"])
    return sample("reading", f"{p[k]}{text}", user, f"{k}: {p[k]}", a)
