"""Small programs: a fixed set of topics in C, C++ and Python, worded in many ways."""

from corpus.base import ask, sample, turns
from corpus.texts import CODE

CODE_ASK = ["write {what} in {lang}", "write me {what} in {lang}", "show me {what} in {lang}",
            "give me {what} in {lang}", "{lang} code for {what}", "I need {what} in {lang}",
            "how do I write {what} in {lang}?", "implement {what} in {lang}",
            "{what} in {lang}", "code {what} in {lang}", "an example of {what} in {lang}",
            "I want {what}, in {lang}", "program {what} using {lang}", "write {what} using {lang}",
            "a short {lang} program with {what}", "help me with {what} in {lang}"]
FENCE = {"C": "c", "C++": "cpp", "Python": "python"}
FUNCTION_NAMES = ["solve", "run_it", "do_work", "my_func", "helper", "compute", "process",
                  "task_one", "calc", "go", "work", "step", "apply", "main_job", "test_fn",
                  "handle"]


def listing(spec, lang, name=None):
    body = spec["code"][lang].replace("NAME", name or spec["name"]).strip("\n")
    return f"{spec['say'].replace('LANG', lang)}\n\n```{FENCE[lang]}\n{body}\n```"


def code(r, thinking):
    spec = CODE[r.choice(sorted(CODE))]
    lang, what, name = r.choice(sorted(spec["code"])), r.choice(spec["ask"]), spec["name"]
    user = r.choice(CODE_ASK).format(what=what, lang=lang)
    why = f"{spec['ask'][0]} in {lang}. {spec['why']}"
    if r.random() < 0.3 and name != "main":
        name = r.choice(FUNCTION_NAMES + [f"{name}{r.randrange(1, 10)}", f"my_{name}"])
        user += r.choice([f" and call the function {name}", f", name it {name}",
                          f". The function is called {name}."])
        why += f" The function is called {name}."
    user = ask(r, user)
    return sample("code", user, user, why, listing(spec, lang, name))


def other_language(r, thinking):
    """A follow-up: the same program in another language."""
    spec = CODE[r.choice([k for k in sorted(CODE) if len(CODE[k]["code"]) > 1])]
    before, lang = r.sample(sorted(spec["code"]), 2)
    first = ask(r, r.choice(CODE_ASK).format(what=r.choice(spec["ask"]), lang=before))
    user = r.choice([f"And in {lang}?", f"Now in {lang}, please.", f"Can you do that in {lang}?",
                     f"Translate it to {lang}.", f"Show it in {lang}."])
    return sample("follow_up", first + user,
                  turns(("user", first), ("assistant", listing(spec, before)), ("user", user)),
                  f"{spec['ask'][0]} in {lang}. {spec['why']}", listing(spec, lang))


NO_LANG = ["Rust", "Java", "Go", "Haskell", "Ruby", "JavaScript", "Perl", "Lisp", "Swift", "Kotlin"]
NO_TOPIC = ["a web server", "a chess engine", "a compiler", "a database", "a game",
            "a neural network", "an operating system", "a text editor", "a calculator app",
            "a ray tracer", "a JSON parser", "a hash map", "a red-black tree", "quicksort",
            "a web page"]


def no_code(r, thinking):
    """Programs that the model does not know."""
    spec = CODE[r.choice(sorted(CODE))]
    what, lang = r.choice([(r.choice(spec["ask"]), r.choice(NO_LANG)),
                           (r.choice(NO_TOPIC), r.choice(NO_LANG + ["C", "C++", "Python"]))])
    user = ask(r, r.choice(CODE_ASK).format(what=what, lang=lang))
    return sample("unknown", user, user, "I do not know this program. I should say so.",
                  "I am a very small model and I do not know that program. I know a few short ones "
                  "in C, C++ and Python.")
