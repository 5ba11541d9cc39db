"""Tool calls and answers that use their results."""

import json

from corpus.base import pick, sample, to_json
from corpus.numbers import arithmetic
from corpus.talk import facts, greet
from corpus.texts import CITIES, NAMES, WORDS
from corpus.words import strings


def tool(name, description, **params):
    props = {k: dict(type=t, description=d) if d else dict(type=t)
             for k, (t, d) in params.items()}
    return dict(type="function", function=dict(
        name=name, description=description,
        parameters=dict(type="object", properties=props, required=list(params)[:1])))


# kind: names, descriptions, names of the first parameter, its type
TOOLS = dict(
    weather=(["get_weather", "weather", "current_weather", "get_current_weather"],
             ["Current weather", "Get the weather of a city", "Weather report for a place"],
             ["city", "location", "place"], ("string", "")),
    calc=(["calculator", "calculate", "evaluate", "math_eval"],
          ["Evaluate an expression", "Do exact arithmetic"],
          ["expression", "expr", "formula"], ("string", "")),
    search=(["search", "web_search", "search_web", "lookup"], ["Search the web", "Find pages"],
            ["query", "q", "text"], ("string", "")),
    time=(["get_time", "current_time", "clock"], ["Current time", "Get the local time"],
          ["city", "timezone", "place"], ("string", "")),
    timer=(["set_timer", "start_timer", "timer"], ["Start a timer"],
           ["minutes", "duration"], ("integer", "in minutes")),
    mail=(["send_message", "send_mail", "message"], ["Send a message to a person"],
          ["to"], ("string", "")))
TOPICS = ["green tea", "old maps", "steam engines", "bread recipes", "moon phases", "tall trees",
          "chess openings", "folk songs", "river fish", "stone bridges", "paper planes",
          "wild bees",
          "garden tools", "desert plants", "ice caves", "sea birds", "clock repair", "glass art",
          "train travel", "winter boots", "lake cabins", "corn soup", "piano lessons",
          "solar panels"]
SKY = ["sunny", "cloudy", "rainy", "windy", "foggy", "snowy", "clear", "stormy"]
MESSAGES = ["I am late", "see you soon", "happy birthday", "the train is on time", "call me back",
            "dinner is ready", "good luck", "thank you"]


def made(r, kind):
    """-> schema, name, first parameter of one wording of a tool."""
    names, descriptions, params, (type_, about) = TOOLS[kind]
    name, param = r.choice(names), r.choice(params)
    more = dict(text=("string", "")) if kind == "mail" else {}
    return tool(name, r.choice(descriptions), **{param: (type_, about)}, **more), name, param


def weather(r, name, arg):
    c = pick(r, CITIES)
    places = [c]
    user = r.choice([f"What is the weather in {c}?", f"How is the weather in {c} today?",
                     f"Is it raining in {c}?", f"Weather in {c}, please.",
                     f"Do I need an umbrella in {c}?", f"What's the weather like in {c}?"])
    why = f"I need the weather in {c}. I call {name} with {arg} {c}."
    if r.random() < 0.12:
        d = r.choice([x for x in CITIES if x != c])
        places = [c, d]
        user = r.choice([f"Compare the weather in {c} and {d}.",
                         f"What is the weather in {c} and in {d}?"])
        why = f"I need the weather in {c} and {d}. I call {name} twice."
    results, said = [], []
    for place in places:
        t, sky = r.randrange(-9, 36), r.choice(SKY)
        results.append(r.choice([to_json({"temperature": t, "condition": sky}),
                                 f"{sky}, {t} degrees",
                                 to_json({arg: place, "sky": sky, "degrees": t})]))
        said.append(f"It is {sky} in {place} with {t} degrees.")
    return user, why, [{arg: p} for p in places], results, "I report the weather.", " ".join(said)


def calc(r, name, arg):
    top = r.choice([100, 1000, 10000])
    a, b, op = r.randrange(10, top), r.randrange(10, top), r.choice("+-*")
    expr, res = f"{a} {op} {b}", dict(zip("+-*", (a + b, a - b, a * b)))[op]
    user = r.choice([f"What is {expr}?", f"Use the tool to compute {expr}.", f"{expr} = ?",
                     f"Please calculate {expr} with the tool.", f"How much is {expr}?"])
    return (user, f"I call {name} with {expr}.", [{arg: expr}],
            [r.choice([str(res), to_json({"result": res})])], f"The result is {res}.",
            f"{expr} = {res}")


def search(r, name, arg):
    t = r.choice(TOPICS) if r.random() < 0.6 else " ".join(r.sample(WORDS, 2))
    user = r.choice([f"Search for {t}.", f"Find something about {t}.", f"Look up {t}.",
                     f"Can you search the web for {t}?", f"I want to read about {t}."])
    head = r.choice(["A guide to", "All about", "The history of", "Notes on", "Facts about"])
    page = dict(title=f"{head} {t}", site=f"{r.choice(WORDS)}.example")
    return (user, f"The user wants pages about {t}. I call {name}.", [{arg: t}], [to_json(page)],
            "The search gave one page. I name it.",
            f"I found \"{page['title']}\" on {page['site']}.")


def time(r, name, arg):
    c, t = pick(r, CITIES), f"{r.randrange(24):02d}:{r.randrange(60):02d}"
    user = r.choice([f"What time is it in {c}?", f"Tell me the time in {c}.",
                     f"How late is it in {c} now?"])
    return (user, f"I need the time in {c}. I call {name} with {arg} {c}.", [{arg: c}],
            [r.choice([t, to_json({"time": t})])], "I report the time.", f"It is {t} in {c}.")


def timer(r, name, arg):
    m = r.randrange(1, 91)
    user = r.choice([f"Set a timer for {m} minutes.", f"Start a timer of {m} minutes, please.",
                     f"Remind me in {m} minutes."])
    return (user, f"The user wants a timer of {m} minutes. I call {name}.", [{arg: m}],
            [r.choice(["ok", to_json({"status": "started"})])], "The timer runs. I confirm it.",
            f"The timer is set for {m} minutes.")


def mail(r, name, arg):
    n, text = pick(r, NAMES), r.choice(MESSAGES)
    user = r.choice([f"Send {n} the message: {text}", f"Tell {n}: {text}", f"Write to {n}: {text}"])
    return (user, f"The user wants to write to {n}. I call {name}.", [{arg: n, "text": text}],
            [r.choice(["sent", "ok", to_json({"status": "sent"})])],
            "The message is sent. I confirm it.", f"I sent your message to {n}.")


KINDS = dict(weather=weather, calc=calc, search=search, time=time, timer=timer, mail=mail)


def tool_use(r, thinking):
    """A request with tools at hand; ends with the calls, or with the answer after the results."""
    kind = r.choice(["weather", "weather", "calc", "calc", "search", "time", "timer", "mail",
                     "none"])
    pick = r.sample(sorted(TOOLS), r.choice([1, 1, 2, 2, 3]))
    if kind != "none" and kind not in pick:
        pick[r.randrange(len(pick))] = kind
    tools = {k: made(r, k) for k in pick}
    schemas = [tools[k][0] for k in pick]
    if kind == "none":
        s = r.choice([greet, arithmetic, strings, facts])(r, thinking)
        if s["task"] == "arithmetic" and "calc" in pick:
            s = greet(r, thinking)
        s.update(task="tool_none", tools=schemas, key="none " + s["key"])
        s["reasoning"] = "No tool is needed. " + s["reasoning"]
        return s
    _, name, arg = tools[kind]
    user, why, arguments, results, why_answer, answer = KINDS[kind](r, name, arg)
    calls = [dict(name=name, arguments=a) for a in arguments]
    messages = [dict(role="user", content=user)]
    if r.random() < 0.15:
        messages.insert(0, dict(role="system", content="You are a helpful assistant."))
    key = f"{kind} {json.dumps(calls)}"
    if r.random() < 0.2:        # the call before an answer teaches the same
        return sample("tool_call", key, messages, why, "", tools=schemas, calls=calls)
    messages.append(dict(role="assistant", content="", reasoning_content=why if thinking else "",
                         tool_calls=[dict(type="function", function=c) for c in calls]))
    messages += [dict(role="tool", content=x) for x in results]
    return sample("tool_answer", key, messages, why_answer, answer, tools=schemas)
