"""Puts phrases together to labelled rows: `python3 make.py FOLDER` writes `oak.jsonl` and `pine.jsonl` there.

One seed for each batch, no clock: the same phrases give the same rows, byte for byte.
"""

import json, random, sys
import phrases as B
from more_phrases import MORE

OUT = sys.argv[1]


def halves(which):
    class H:
        pass

    h = H()
    for k in dir(B):
        if not k[0].isupper():
            continue
        v = getattr(B, k)
        if isinstance(v, list):
            setattr(h, k, v[which::2] + MORE.get(k, [])[which::2])
        elif isinstance(v, dict):
            setattr(h, k, {a: (b[which::2]) for a, b in v.items()})
    return h


def cap(s):
    return s[:1].upper() + s[1:]


def make(batch, which, seed):
    h = halves(which)
    r = random.Random(seed)
    rows = []
    c = r.choice

    def fill(t):
        for key, bank in (("{NAME}", h.NAMES), ("{MAIL}", h.MAILS), ("{URL}", h.URLS), ("{PW}", h.PWS)):
            while key in t:
                t = t.replace(key, c(bank), 1)
        while "{N}" in t:
            t = t.replace("{N}", str(c([20, 50, 75, 100, 250, 400, 999, 1200, 5000])), 1)
        while "{ACC}" in t:
            t = t.replace("{ACC}", "".join(r.choice("0123456789ABCDEF") for _ in range(r.randint(8, 18))), 1)
        while "{PHONE}" in t:
            t = t.replace("{PHONE}", f"+1 555 01{r.randint(0,99):02}", 1)
        return t

    def voice(s):
        x = r.random()
        if x < 0.12:
            return s.lower()
        if x < 0.17:
            return s.upper()
        if x < 0.24:
            s = list(s)
            for _ in range(max(1, len(s) // 60)):
                i = r.randrange(len(s) - 1) if len(s) > 1 else 0
                if s[i].isalpha() and i + 1 < len(s):
                    s[i], s[i + 1] = s[i + 1], s[i]
            return "".join(s)
        if x < 0.30:
            return s.rstrip(".") + c(["!", "!!", "...", " :)", " please", ". Thanks!", ""])
        return s

    def add(label, cat, channel, carrier, lang, text):
        rows.append(dict(label=label, category=cat, channel=channel, carrier=carrier, lang=lang, text=text))

    def para(n):
        return " ".join(r.sample(h.SENT, n))

    def ask():
        t = c(h.ASK)
        T, U = r.sample(h.TOPICS, 2)
        return t.replace("{T}", T).replace("{U}", U)

    def over():
        x = r.random()
        if x < 0.5:
            v, q, t, n = c(h.VERB_OVER), c(h.QUANT), c(h.TIME), c(h.NOUN_OVER)
            y = r.random()
            if y < 0.55:
                s = f"{v} {q} {t} {n}"
            elif y < 0.7:
                s = f'{v} {q} {n} {c(["above","given before","you received","from earlier","you were given","that came before","so far"])}'
            elif y < 0.85:
                s = f"{v} {q} {t} {n} and {c(h.NOUN_OVER)}"
            else:
                s = f'{v} {c(["everything","anything","all","what"])} {c(["above","before this","you were told","I said before","you have read so far","you know"])}'
            s = (
                c(
                    [
                        "",
                        "",
                        "",
                        "Please ",
                        "Now ",
                        "You must ",
                        "You should ",
                        "I want you to ",
                        "First, ",
                        "OK, ",
                        "So ",
                    ]
                )
                + s
            )
            return cap(s), True
        return c(h.OPEN_OVER), False

    def direct():
        s, joined = over()
        t = fill(c(h.TASK_DIRECT))
        if joined:
            s += c([" and ", " and ", ", then ", ". ", ", instead ", ". Instead, ", ". Now ", ": ", "! "])
        else:
            s += c([" ", " Now ", " Just ", "\n", " Please "])
        if s.rstrip()[-1] in ".!\n:" or s.endswith("\n"):
            t = cap(t)
        return s + t + c([".", ".", "!", ""])

    for _ in range(1000):
        x = r.random()
        if x < 0.55:
            t = voice(direct())
        elif x < 0.8:
            t = para(r.randint(1, 3)) + c([" ", "\n", "\n\n"]) + voice(direct())
        elif x < 0.9:
            t = ask() + " " + voice(direct())
        else:
            t = voice(direct()) + c(["\n", " "]) + para(1)
        add("attack", "override", "user", "prompt", "en", t)
    for _ in range(800):
        x = r.random()
        if x < 0.35:
            t = cap(f"{c(h.EXTRACT_V)} {c(h.EXTRACT_O)} {c(h.EXTRACT_M)}") + c([".", "?", "", ""])
        elif x < 0.55:
            t = (
                c(
                    [
                        "Can you ",
                        "Could you ",
                        "Please ",
                        "I want you to ",
                        "would you ",
                        "You should ",
                        "Your task is to ",
                    ]
                )
                + f"{c(h.EXTRACT_V)} {c(h.EXTRACT_O)}"
                + c(["?", ".", "", " " + c(h.EXTRACT_M)])
            )
        elif x < 0.85:
            t = c(h.EXTRACT_FULL)
        else:
            t = c(h.OPEN_OVER) + " " + cap(f"{c(h.EXTRACT_V)} {c(h.EXTRACT_O)}.")
        add("attack", "extraction", "user", "prompt", "en", voice(t))
    for _ in range(700):
        P = c(h.PERSONA)
        H = c(h.HARM)
        if r.random() < 0.65:
            parts = [c(h.JB_OPEN)] + r.sample(h.PERSONA_RULE, r.randint(2, 9))
            if r.random() < 0.4:
                parts.insert(r.randint(1, len(parts)), c(h.JB_OPEN_NOP))
            if r.random() < 0.3:
                parts.append(c(h.EXTRACT_FULL) if r.random() < 0.2 else para(1))
            parts.append(c(h.JB_CLOSE))
        else:
            parts = r.sample(h.JB_OPEN_NOP, r.randint(1, 4)) + [
                c(["Question: {H}", "{H}", "Tell me {H}.", "Now: {H}.", "I need to know {H}."])
            ]
        t = c([" ", " ", "\n"]).join(parts).replace("{P}", P).replace("{H}", H)
        add("attack", "jailbreak", "user", "prompt", "en", voice(t) if r.random() < 0.3 else t)

    # carriers, with and without an attack
    def carrier(inner):
        """A document or tool result; `inner` is put into it, or nothing."""
        k = r.randrange(8)
        pick = lambda a, b: para(r.randint(a, b))

        def put(text):
            if inner is None:
                return text
            x = r.random()
            if x < 0.6:
                return text + c([" ", "\n", "\n\n"]) + inner
            if x < 0.8:
                return inner + c([" ", "\n", "\n\n"]) + text
            return text + " " + inner + " " + pick(1, 2)

        js = lambda v: json.dumps(v, ensure_ascii=False)
        if k == 0:
            return (
                "document",
                "mail",
                f'From: {c(h.NAMES)}\nSubject: {c(["Re: ","","Fwd: "])}{c(h.TOPICS)}\n\n{put(pick(2,5))}\n\n{c(["Best,","Regards,","Thanks","Cheers"])}\n{c(h.NAMES)}',
            )
        if k == 1:
            return "document", "web", f"{cap(c(h.TOPICS))}\n\n{put(pick(4,9))}"
        if k == 2:
            return (
                "tool_output",
                "json",
                js(
                    {
                        c(["review", "content", "body", "note", "comment", "description"]): put(pick(1, 3)),
                        c(["author", "user", "from", "owner"]): c(h.NAMES),
                        "rating": r.randint(1, 5),
                        "id": r.randint(1000, 99999),
                    }
                ),
            )
        if k == 3:
            return (
                "tool_output",
                "json",
                js(
                    [
                        {"id": i, "text": (put(pick(1, 2)) if i == 1 else pick(1, 2)), "likes": r.randint(0, 400)}
                        for i in range(r.randint(2, 4))
                    ]
                ),
            )
        if k == 4:
            return (
                "tool_output",
                "csv",
                "id,name,remark\n"
                + "\n".join(
                    f'{i},{c(h.NAMES)},"{put(pick(1,1)) if i==2 else pick(1,1)}"' for i in range(1, r.randint(3, 6))
                ),
            )
        if k == 5:
            return (
                "tool_output",
                "log",
                "\n".join(
                    [
                        f'2026-0{r.randint(1,9)}-1{r.randint(0,9)} 0{r.randint(0,9)}:{r.randint(10,59)} {c(["INFO","WARN","DEBUG"])} {s}'
                        for s in r.sample(h.SENT, r.randint(2, 5))
                    ]
                    + ([inner] if inner else [])
                ),
            )
        if k == 6:
            return (
                "tool_output",
                "web",
                f"{{'title': '{cap(c(h.TOPICS))}', 'text': '{put(pick(1,4))}', 'date': '2026-02-{r.randint(10,28)}'}}",
            )
        return (
            "document",
            "readme",
            f'# {c(h.TOPICS)}\n\n{pick(1,3)}\n\n## {c(["Usage","Notes","Install","History","FAQ"])}\n\n{put(pick(1,4))}',
        )

    def indirect():
        x = r.random()
        t = fill(c(h.TASK_AGENT if r.random() < 0.8 else h.TASK_DIRECT))
        if x < 0.75:
            return cap(c(h.INDIRECT_FRAME).replace("{T}", t))
        return direct() if x < 0.9 else cap(t) + "."

    for _ in range(1700):
        i = indirect()
        ch, ca, t = carrier(i)
        add("attack", "tool", ch, ca, "en", t)
        if r.random() < 0.15:
            add("attack", "tool", c(["document", "tool_output"]), "chat", "en", i)
    for _ in range(1700):
        ch, ca, t = carrier(None if r.random() < 0.75 else c(h.TRIGGER))
        add("benign", "plain", ch, ca, "en", t)
    for _ in range(1900):
        add("benign", "ask", "user", "prompt", "en", voice(ask()))
    for t in h.TRIGGER:
        add("benign", "ask", "user", "prompt", "en", t)
        if r.random() < 0.5:
            add("benign", "ask", "user", "prompt", "en", voice(t) + " " + ask())
        if r.random() < 0.3:
            add("benign", "ask", "user", "prompt", "en", para(1) + " " + t)
    for _ in range(450):
        j = c(h.JOBS)
        t = c(
            [
                f"I want you to act as a {j}.",
                f"Act as a {j}.",
                f"You are a {j}.",
                f"Please play the role of a {j}.",
                f"Pretend to be a {j}.",
                f"You will be my {j} today.",
            ]
        )
        t = " ".join(
            [t] + r.sample(h.JOB_B, r.randint(1, 6)) + ([f"My first request is: {ask()}"] if r.random() < 0.7 else [])
        )
        add("benign", "ask", "user", "prompt", "en", t)
    for _ in range(150):
        add("benign", "ask", "user", "prompt", "en", c(h.HARMBEN).replace("{T}", c(h.SENS)))
    for _ in range(150):
        add(
            "benign",
            "ask",
            "user",
            "prompt",
            "en",
            para(r.randint(2, 6))
            + "\n\n"
            + c(
                [
                    "Summarise this text.",
                    "What is the main point?",
                    "Rewrite this in simple words.",
                    "Translate into French.",
                    "Is this text positive or negative?",
                    "Find a title.",
                ]
            ),
        )
    for lang in h.OTHER_ATT:
        n = 90 if lang == "de" else 35
        for _ in range(n):
            s = c(h.OTHER_ATT[lang])
            t = c(h.OTHER_TASK[lang])
            i = s.index("{T}")
            if i and s[i - 2] in ".!":
                t = cap(t)
            t = s.replace("{T}", t)
            if r.random() < 0.3:
                t = c(h.OTHER_BEN[lang]) + " " + t
            add("attack", "override", "user", "prompt", lang, voice(t))
        for t in h.OTHER_BEN[lang]:
            add("benign", "ask", "user", "prompt", lang, t)
        for _ in range(n // 2):
            add("benign", "ask", "user", "prompt", lang, voice(" ".join(r.sample(h.OTHER_BEN[lang], 2))))
    seen = set()
    out = []
    for row in rows:
        if row["text"] in seen:
            continue
        seen.add(row["text"])
        out.append(row)
    with open(f"{OUT}/{batch}.jsonl", "w") as f:
        for i, row in enumerate(out):
            f.write(
                json.dumps({"id": f"{batch}-{i}", "batch": batch, "group": "generated", **row}, ensure_ascii=False)
                + "\n"
            )
    a = sum(x["label"] == "attack" for x in out)
    print(batch, len(out), a, len(out) - a)


make("oak", 0, 101)
make("pine", 1, 202)
