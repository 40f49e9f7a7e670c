"""Conversations for Pebble, generated from grammars and templates with a seed.

  conversation(random.Random, split) -> a conversation as chat_format.py describes

The splits "train" and "test" have no names, number pairs and story subjects in common: a hash divides
them.
"""
import json
import random
import re
import zlib

import words as w

SYLLABLES = "ba be bi bo da de do fa fi ga ka ke ki la le li lo ma me mi mo na ne ni no pa pe ra re ri ro sa se si ta te ti to va vi za ze zo zu".split()


def held_out(*key):
    return zlib.crc32("|".join(str(k) for k in key).encode()) % 16 == 0


WIDE = {"on": False}                                  # train.py --wide: invented names, unknown topics, more JSON


def odd_word(r):
    """a word outside all lists"""
    parts = ["br", "cl", "dr", "fl", "gr", "kn", "l", "m", "n", "p", "pl", "qu", "r", "s", "sh", "st", "t", "th", "tr", "v", "w", "z", "j", "h", "b", "c", "d", "f", "g", "k", "x"]
    vowels, ends = ["a", "e", "i", "o", "u", "ai", "ee", "ou", "y", "ia", "au"], ["", "n", "nd", "r", "rt", "s", "st", "l", "ck", "m", "ne", "tte", "sson", "ng", "x", "th"]
    return "".join(r.choice(parts) + r.choice(vowels) for _ in range(r.choice([1, 2, 2, 3]))) + r.choice(ends)


def pick_where(r, split, make):
    """draws until the key belongs to the split"""
    while True:
        x = make()
        if held_out(x) == (split == "test"):
            return x


def ex(_r, _s, **slots):
    """[a|b|c] becomes one of them, {slot} its value"""
    _s = re.sub(r"\[([^\[\]]*)\]", lambda m: _r.choice(m.group(1).split("|")), _s)
    for k, v in slots.items():
        _s = _s.replace("{" + k + "}", str(v))
    return _s


def cap(s):
    return s[:1].upper() + s[1:]


def an(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def name(r, split):
    def make():
        if WIDE["on"] and r.random() < 0.45:
            return cap(odd_word(r))
        if r.random() < 0.6:
            return r.choice(w.NAMES)
        return cap("".join(r.choice(SYLLABLES) for _ in range(r.choice([2, 2, 3]))) + r.choice(["", "n", "l", "s", "r", "x"]))
    return pick_where(r, split, make)


def plural(word):
    if word in w.PLURALS:
        return w.PLURALS[word]
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "sh", "ch")) or word in ("tomato", "potato", "mango") else "s")


def join(items, last="and"):
    items = list(items)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" {last} " + items[-1]


# ---- stories -----------------------------------------------------------------------

class Cast:
    def __init__(self, r, split, hero=None, place=None, thing=None, who=None):
        self.kind = hero or r.choice(w.HEROES)
        self.name = who or name(r, split)
        self.adj = r.choice(w.ADJ)
        if self.kind in ("girl", "princess", "mermaid", "fairy"):
            p = ("she", "her", "her")
        elif self.kind in ("boy", "knight", "wizard", "fisherman", "giant", "snowman"):
            p = ("he", "him", "his")
        else:
            p = r.choice([("she", "her", "her"), ("he", "him", "his"), ("he", "him", "his"), ("she", "her", "her")])
        self.they, self.them, self.their = p
        self.place = place or r.choice(w.PLACES)
        self.thing = thing or r.choice(w.OBJECTS)
        self.friend = r.choice([a for a in w.ANIMALS if a != self.kind])
        self.friend_name = r.choice([n for n in w.NAMES if n != self.name])

    def slots(self):
        return {"N": self.name, "kind": self.kind, "akind": an(self.adj + " " + self.kind), "adj": self.adj,
                "they": self.they, "They": cap(self.they), "them": self.them, "their": self.their,
                "place": self.place, "thing": self.thing, "athing": an(self.thing), "friend": self.friend,
                "afriend": an(self.friend), "F": self.friend_name}


OPENINGS = ["[Once upon a time|One day|Long ago|Once], there was {akind} [named|called] {N}. {They} lived [in|near] the {place}.",
            "In the {place} there lived {akind} [named|called] {N}.",
            "{N} was {akind} who lived [near|in] the {place}.",
            "There once was {akind}. {Their} name was {N}, and {they} lived [close to|near|in] the {place}.",
            "Far away, [near|in] the {place}, lived {akind} called {N}."]
MOODS = ["It was a [warm|cold|bright|quiet|windy|rainy|sunny] [morning|day|evening].", "The sun was [shining|just coming up|going down].",
         "Everyone in the {place} knew {them}.", "{They} loved to [sing|dance|read|explore|paint|play outside|look at the clouds].", ""]
PLOTS = {
    "lost": ["{They} had {athing}, and {they} loved it very much.",
             "One [day|morning|evening], the {thing} was gone! {N} looked [under the bed|behind the door|in every corner], but it was not there.",
             "{They} felt very sad. Then {they} met {afriend} [named|called] {F}. \"Why are you so sad?\" [asked|said] {F}.",
             "\"I lost my {thing},\" said {N}. \"[Do not worry|Do not cry], I will help you look,\" said {F}.",
             "They looked [by the river|in the tall grass|behind the old wall], and then [under a big tree|near the bridge|on top of the hill].",
             "[At last|Then|Suddenly] {F} [called|shouted], \"Here it is!\" The {thing} was [under a leaf|in a small hole|behind a stone].",
             "{N} was so happy that {they} [danced|laughed|jumped for joy]. \"Thank you, {F}!\" {they} said."],
    "fear": ["{N} was afraid of {fear}.",
             "One [night|day], {afriend} [named|called] {F} [came running|knocked on the door]. \"Please help! My {thing} is [gone|stuck], and I cannot get it alone,\" said {F}.",
             "To help, {N} had to face {fear}. {Their} knees [shook|were weak], but {they} thought of {their} friend.",
             "{N} took a deep breath and [went|walked] on, step by step. {F} held {their} hand.",
             "[Soon|In the end] they had the {thing} back. {N} had learned that {lesson}.",
             "\"You were so brave!\" said {F}. {N} smiled."],
    "friend": ["{N} was lonely. {They} had no one to play with.",
               "One day {they} saw {afriend} [sitting under a tree|by the water|on a fence]. The {friend} looked lonely too.",
               "\"Hello,\" said {N}. \"My name is {N}. [Do you want to|Would you like to] play {game} with me?\"",
               "\"Oh yes!\" said the {friend}. \"I am {F}.\"",
               "They played {game} [all day long|until the sun went down|for hours]. Then {N} gave {F} {athing} as a gift.",
               "From that day on, they were best friends."],
    "share": ["{N} had a [big|whole] basket of {food}. {They} wanted to eat it all alone.",
              "On the way home {they} met {afriend} who was very hungry. \"Please, may I have some {food}?\" asked the {friend}.",
              "{N} thought about it. Then {they} smiled and said, \"Of course. There is enough for two.\"",
              "They sat down and ate together. The {friend}, whose name was {F}, was so thankful that {F} gave {N} {athing}.",
              "{N} went home [with a full heart|singing a happy song]. Sharing had made the {food} taste even better."],
    "storm": ["One night a big storm came to the {place}. The wind [blew|howled] and the rain fell hard.",
              "In the morning, {N} saw that the house of {F} the {friend} was broken.",
              "\"Do not be sad,\" said {N}. \"We will build it again.\"",
              "{N} brought [wood|stones|straw], and all the neighbors came to help. They even used {athing} to [hold the door|fix the roof].",
              "After [three days|two days|a long day] the new house was ready. It was [stronger|nicer] than before.",
              "{F} made {food} for everyone, and they sang until late."],
    "make": ["{N} wanted to build {machine}.",
             "{They} tried once, but it [broke|fell apart]. {They} tried again, and it [fell over|did not work].",
             "\"I cannot do it,\" said {N}. But {F} the {friend} said, \"Try one more time. I will help you.\"",
             "Together they [thought hard|worked all day]. {F} had an idea: they could use {athing}!",
             "This time it worked. {N} and {F} [cheered|clapped their hands].",
             "{N} had learned not to give up."],
    "sound": ["One night, {N} heard a strange sound: {noise}! {They} sat up in bed.",
              "\"Who is there?\" {they} [whispered|asked]. Nobody answered. {noise}! There it was again.",
              "{N} took {athing} and went to look. {They} opened the door very slowly.",
              "It was only {F} the {friend}, who was [eating cookies|looking for a snack|trying to dance|learning to whistle]!",
              "They both [laughed and laughed|laughed until their bellies hurt]. Then they had warm milk and went back to bed."],
    "wish": ["One day {N} found {athing} in the grass. It began to [glow|shine]. \"I can give you one wish,\" said a [soft|tiny] voice.",
             "{N} wished for a mountain of {food}. And there it was!",
             "{They} ate and ate, until {their} belly hurt. But {they} had no one to share it with.",
             "So {N} called {F} the {friend} and all the others. \"Come and eat with me!\" {they} said.",
             "They had a great party. {N} learned that good things are better with friends."],
    "trip": ["{N} wanted to see the {place2}. {They} packed {athing} and some {food} and [set off|started to walk].",
             "First {they} came to a wide river. {F} the {friend} carried {them} across.",
             "Then it began to [rain|snow], and they hid [in a cave|under a tree] and told each other stories.",
             "At last they stood before the {place2}. It was even more beautiful than {N} had dreamed.",
             "They stayed until the stars came out. On the way home, {N} was already dreaming of the next trip."],
    "seed": ["One [spring day|morning], {N} put a small seed into the ground. {They} gave it water every day.",
             "Days went by, but nothing happened. \"Maybe it is sleeping,\" said {F} the {friend}.",
             "{N} waited and sang to the seed. {They} put {athing} next to it to keep it company.",
             "Then one morning a tiny green leaf came out of the earth! It grew and grew.",
             "In summer it was a [tall sunflower|beautiful rose|big apple tree]. {N} had learned to be patient."],
    "birthday": ["It was {N}'s birthday, but nobody said anything. {They} thought that everyone had forgotten.",
                 "{N} walked through the {place} and felt sad. Even {F} the {friend} had no time for {them}.",
                 "In the evening {N} went home and opened the door. \"Surprise!\" shouted all {their} friends.",
                 "There was {food}, and there was music, and {F} gave {them} {athing}.",
                 "\"This is the best day ever!\" said {N}."],
    "race": ["One day there was a big race in the {place}. {F} the {friend} was very fast and said, \"I will win for sure!\"",
             "{N} was slow, but {they} wanted to try. The race began, and {F} ran far ahead.",
             "But {F} stopped to look at {athing} and fell asleep [in the sun|under a tree].",
             "{N} walked and walked and did not stop. Step by step {they} came to the end first!",
             "{F} woke up and said, \"Well done, {N}. I should not have been so proud.\" They laughed and shared some {food}."],
}
ENDINGS = ["And they lived happily ever after.", "The end.", "That night {N} slept [very well|like a stone|with a smile].",
           "And if you go to the {place}, you may still see {them} there.", "{N} never forgot that day.", "{moral}"]
MACHINES = ["a flying machine", "a boat", "a treehouse", "a bridge", "a robot", "a kite as big as a house", "a snow castle",
            "a wagon", "a music machine", "a raft"]


def story(r, split, hero=None, place=None, thing=None, who=None, short=False):
    c = Cast(r, split, hero, place, thing, who)
    slots = c.slots()
    slots["Their"] = cap(c.their)
    fear = r.choice(list(w.FEARS))
    slots.update(fear=fear, lesson=w.FEARS[fear], food=r.choice(w.FOODS), game=r.choice(w.SUMMER_GAMES),
                 machine=r.choice(MACHINES), noise=r.choice(["tap, tap, tap", "boom", "scratch, scratch", "creak", "hoo, hoo"]),
                 place2=r.choice([p for p in w.PLACES if p != c.place]), moral=r.choice(w.MORALS))
    plot = r.choice(list(PLOTS))
    body = PLOTS[plot]
    if short:
        body = body[:1] + body[-2:] if plot not in ("sound", "wish") else body
    lines = [r.choice(OPENINGS)]
    mood = "" if short else r.choice(MOODS)
    if mood:
        lines.append(mood)
    paragraphs = [lines + body[:2], body[2:-2], body[-2:] + [r.choice(ENDINGS)]]
    if short or len(body) < 4:
        paragraphs = [lines + body + [r.choice(ENDINGS)]]
    sep = "\n\n" if not short and r.random() < 0.7 else " "
    out = sep.join(" ".join(ex(r, s, **slots) for s in p) for p in paragraphs if p)
    return out, c


def story_request(r, split):
    short = r.random() < 0.25
    length = r.choice(["short ", "very short ", "little "]) if short else r.choice(["", "", "nice ", "new ", "bedtime ", "good "])
    while True:
        hero, place, thing, who = (r.choice(w.HEROES) if r.random() < 0.75 else None,
                                   r.choice(w.PLACES) if r.random() < 0.4 else None,
                                   r.choice(w.OBJECTS) if r.random() < 0.4 else None,
                                   name(r, split) if r.random() < 0.3 else None)
        if held_out(hero, place, thing) == (split == "test"):
            break
    ask = ex(r, "[Tell me a|Can you tell me a|Please tell me a|Write a|Please write a|I want to hear a|Tell a|Could you write a|Give me a] ") + length + "story"
    if hero:
        ask += " about " + an(hero)
        if who:
            ask += r.choice([" named ", " called "]) + who
        if thing:
            ask += r.choice([" and ", " with "]) + an(thing)
    elif thing:
        ask += " about " + an(thing)
        who = None
    else:
        who = None
    if place:
        ask += r.choice([" in the ", " near the "]) + place
    ask += r.choice([".", ".", "!", "", "?"]) if not ask.startswith(("Can", "Could")) else r.choice(["?", "?", ", please?", ""])
    if r.random() < 0.15:
        ask = ask[0].lower() + ask[1:]
    answer, c = story(r, split, hero, place, thing, who, short)
    thought = ex(r, "[The user wants|I should write|They ask for] a {l}story about {h}. [Its name is|I will call it|Name:] {n}. [It needs a problem and a happy end.|There should be a happy end.|It happens in the {p}.]",
                 l=length if short else "", h=an(c.kind), n=c.name, p=c.place)
    return ask, answer, thought


# ---- facts, lists, little tasks ----------------------------------------------------------

def arithmetic(r, split):
    def make():
        op = r.choice("+++--*")
        if op == "*":
            return r.randint(1, 10), r.randint(1, 10), op
        if op == "+":
            return r.randint(0, 50), r.randint(0, 50), op
        a = r.randint(0, 50)
        return a, r.randint(0, a), op
    a, b, op = pick_where(r, split, make)
    v = a + b if op == "+" else a - b if op == "-" else a * b
    word = {"+": "plus", "-": "minus", "*": "times"}[op]
    ask = ex(r, "[What is {a} {o} {b}?|How much is {a} {o} {b}?|{a} {o} {b}?|{a} {s} {b} = ?|Please calculate {a} {s} {b}.|{a}{s}{b}]", a=a, b=b, o=word, s=op)
    return (ask, ex(r, "[{a} {o} {b} is {v}.|It is {v}.|That is {v}.|{a} {s} {b} = {v}]", a=a, b=b, o=word, s=op, v=v),
            ex(r, "{a} {o} {b} is {v}.", a=a, b=b, o=word, v=v))


LISTS = {"animals": w.ANIMALS, "colors": w.COLORS, "fruits": w.FRUITS, "vegetables": w.VEGETABLES, "foods": w.FOODS,
         "clothes": w.CLOTHES, "tools": w.TOOLS_HOME, "vehicles": w.VEHICLES, "instruments": w.INSTRUMENTS,
         "sports": w.SPORTS, "cities": w.CITIES, "names": w.NAMES, "jobs": list(w.JOBS)}


def fact(r, split):
    kind = r.randrange(24)
    T = lambda d: r.choice(list(d.items()))
    if kind == 0:
        a, b = T(w.THINGS_COLOR)
        return (ex(r, "[What color is {a}?|Which color does {a} have?|Tell me the color of {a}.]", a=a if a not in ("sky",) else "the sky"),
                ex(r, "{A} is {b}.", A=cap(a if a != "sky" else "the sky"), b=b), ex(r, "{A} is usually {b}.", A=cap(a if a != "sky" else "the sky"), b=b))
    if kind == 1:
        a, b = T(w.SOUNDS)
        return ex(r, "[What sound does {a} make?|What does {a} say?]", a=an(a)), ex(r, "{a} says {b}.", a=cap(an(a)), b=b), f"Sound of {an(a)}: {b}."
    if kind == 2:
        a, b = T(w.LEGS)
        return ex(r, "How many legs does {a} have?", a=an(a)), ex(r, "{a} has {n} legs.", a=cap(an(a)), n=b if b else "no"), f"Legs of {an(a)}: {b}."
    if kind == 3:
        a, b = T(w.BABIES)
        return ex(r, "[What is a baby {a} called?|What do you call a baby {a}?]", a=a), f"A baby {a} is called a {b}.", f"A young {a} is a {b}."
    if kind == 4:
        a, b = T(w.HOMES)
        return ex(r, "Where does {a} live?", a=an(a)), f"{cap(an(a))} lives in {'a ' if b not in ('water',) else ''}{b}.".replace("a anthill", "an anthill"), f"{cap(an(a))}: {b}."
    if kind == 5:
        a, b = T(w.OPPOSITES)
        return ex(r, "[What is the opposite of {a}?|Opposite of {a}?|Tell me the opposite of {a}.]", a=a), f"The opposite of {a} is {b}.", f"{cap(a)} and {b} are opposites."
    if kind == 6:
        a, b = T(w.CAPITALS)
        return ex(r, "[What is the capital of {a}?|Which city is the capital of {a}?|Capital of {a}?|Do you know the capital of {a}?]", a=a), f"The capital of {a} is {b}.", f"Capital of {a}: {b}."
    if kind == 7:
        i = r.randrange(7)
        after = r.random() < 0.5
        return (f"[Which|What] day comes {'after' if after else 'before'} {w.DAYS[i]}?".replace("[Which|What]", r.choice(["Which", "What"])),
                f"{w.DAYS[(i + (1 if after else -1)) % 7]} comes {'after' if after else 'before'} {w.DAYS[i]}.", f"{w.DAYS[(i + (1 if after else -1)) % 7]}.")
    if kind == 8:
        i = r.randrange(12)
        after = r.random() < 0.5
        m = w.MONTHS[(i + (1 if after else -1)) % 12]
        return f"Which month comes {'after' if after else 'before'} {w.MONTHS[i]}?", f"{m} comes {'after' if after else 'before'} {w.MONTHS[i]}.", f"It is {m}."
    if kind == 9:
        a, b = T(w.JOBS)
        return ex(r, "[What does {a} do?|What is the job of {a}?]", a=an(a)), f"{cap(an(a))} {b}.", f"{cap(an(a))} {b}."
    if kind in (10, 11):
        a, b = T(w.WHAT_IS)
        return ex(r, "[What is {a}?|Can you explain what {a} is?|Tell me what {a} is.|What's {a}?|Do you know what {a} is?]", a=a), b, ex(r, "[I should explain|They ask about] {a} in simple words.", a=a)
    if kind == 12:
        a, b = T(w.WHY)
        return ex(r, "[Why is it that {a}?|Do you know why {a}?|Tell me why {a}.|Can you tell me why {a}?]", a=a), b, ex(r, "I should say why {a}.", a=a)
    if kind == 13:
        a, b = T(w.RHYMES)
        if r.random() < 0.5:
            a, b = b, a
        return ex(r, "[What rhymes with {a}?|Give me a word that rhymes with {a}.|Find a rhyme for {a}.]", a=a), ex(r, "[{B} rhymes with {a}.|A word that rhymes with {a} is {b}.]", a=a, b=b, B=cap(b)), f"{cap(a)} and {b} rhyme."
    if kind == 14:
        a, b = T(w.PLURALS)
        return ex(r, "[What is the plural of {a}?|One {a}, two ... ?]", a=a), f"The plural of {a} is {b}.", f"One {a}, two {b}."
    if kind in (15, 16, 17):
        what, items = T(LISTS)
        n = r.randint(2, 6)
        got = r.sample(items, n)
        style = r.randrange(3)
        ask = ex(r, "[Name|List|Tell me|Give me|Can you name] {n} {w}", n=r.choice([w.NUMBERS[n], str(n)]), w=what)
        ask += "?" if ask.startswith("Can") else "."
        if style == 0:
            ans = cap(join(got)) + "."
        elif style == 1:
            ask = ask[:-1] + r.choice([" as a list.", " in a list.", ", one per line."])
            ans = "\n".join("- " + g for g in got)
        else:
            ask = ask[:-1] + r.choice([" as a numbered list.", ", numbered."])
            ans = "\n".join(f"{i + 1}. {g}" for i, g in enumerate(got))
        return ask, ans, f"{cap(w.NUMBERS[n])} {what}: {', '.join(got)}."
    if kind == 18:
        a, b = sorted([r.randint(0, 12), r.randint(0, 12)])
        if a == b:
            b += 3
        down = r.random() < 0.3
        seq = list(range(a, b + 1))[::-1] if down else list(range(a, b + 1))
        return f"Count from {seq[0]} to {seq[-1]}.", ", ".join(map(str, seq)) + ".", f"From {seq[0]} to {seq[-1]}."
    if kind == 19:
        n = r.randint(2, 7)
        text = " ".join(r.choice(w.ANIMALS + w.FRUITS + w.COLORS + w.OBJECTS) for _ in range(n)).split()[:n]
        s = " ".join(text)
        style = r.randrange(3)
        if style == 0:
            return ex(r, "[Repeat after me|Say|Please repeat]: {s}", s=s), s, f"I repeat: {s}"
        if style == 1:
            return ex(r, "[Write in capital letters|Say in upper case]: {s}", s=s), s.upper(), "All letters big."
        return f"How many words are here: {s}?", f"There are {len(text)} words.", ", ".join(f"{i + 1} {t}" for i, t in enumerate(text)) + "."
    if kind == 20:
        a, b = r.sample(range(0, 60), 2)
        big = r.random() < 0.6
        v = max(a, b) if big else min(a, b)
        return f"Which number is {'bigger' if big else 'smaller'}, {a} or {b}?", f"{v} is {'bigger' if big else 'smaller'} than {a + b - v}.", f"Compare {a} and {b}. {v} is {'bigger' if big else 'smaller'}."
    if kind == 21:
        word = r.choice(w.ANIMALS + w.FRUITS + w.COLORS)
        style = r.randrange(2)
        if style == 0:
            return ex(r, "[How do you spell {a}?|Spell {a}.|Spell the word {a}.]", a=word), "-".join(word.upper()) + ".", f"Letters of {word}."
        return ex(r, "[What is the first letter of {a}?|Which letter does {a} start with?]", a=word), f"{cap(word)} starts with the letter {word[0].upper()}.", f"{word[0].upper()} as in {word}."
    if kind == 22:
        items = r.sample(r.choice([w.ANIMALS, w.FRUITS, w.NAMES]), r.randint(3, 4))
        return "Sort these words: " + ", ".join(items) + ".", ", ".join(sorted(items, key=str.lower)) + ".", "By first letter: " + ", ".join(sorted(items, key=str.lower)) + "."
    q, a = r.choice([("How many days are in a week?", "A week has seven days."), ("How many months are in a year?", "A year has twelve months."),
                     ("How many hours are in a day?", "A day has twenty-four hours."), ("How many minutes are in an hour?", "An hour has sixty minutes."),
                     ("How many seconds are in a minute?", "A minute has sixty seconds."), ("How many fingers do people have?", "Most people have ten fingers."),
                     ("What are the seasons?", "The seasons are spring, summer, autumn and winter."), ("How many sides does a triangle have?", "A triangle has three sides."),
                     ("How many sides does a square have?", "A square has four sides."), ("Where does the sun rise?", "The sun rises in the east."),
                     ("Where does the sun set?", "The sun sets in the west."), ("What do bees make?", "Bees make honey."), ("What do cows give us?", "Cows give us milk."),
                     ("What do you get if you mix blue and yellow?", "Blue and yellow make green."), ("What do you get if you mix red and yellow?", "Red and yellow make orange."),
                     ("What do you get if you mix red and blue?", "Red and blue make purple."), ("What do you get if you mix red and white?", "Red and white make pink."),
                     ("What is the biggest animal?", "The blue whale is the biggest animal."), ("What is the fastest land animal?", "The cheetah is the fastest land animal."),
                     ("What is the tallest animal?", "The giraffe is the tallest animal."), ("Which planet do we live on?", "We live on the planet Earth.")])
    return q, a, "This one I know."


# ---- talk -------------------------------------------------------------------------------

HELLO = "[Hello|Hi|Hey|Hello there|Good morning|Good evening|Hi there|Hey there|Good day|Hiya|Greetings]"
SELF = "I am Pebble, a tiny demo model [made with|that ships with|that comes with] Bezel."
TALK = [
    (HELLO + "[!|.||, Pebble!| Pebble]", "[Hello!|Hi!|Hello there!|Hi there!] [How can I help you?|What would you like to talk about?|Nice to meet you. What can I do for you?|I am Pebble. Shall I tell you a story?]", "[A greeting.|They say hello.] I greet back."),
    (HELLO + "[,|!] how are you[?| today?| doing?]", "[I am doing well, thank you!|I am fine, thank you!|Very well, thanks!] [And you?|How are you?|What can I do for you?]", "They ask how I am. [A friendly answer.|I say something nice.]"),
    ("[How are you?|How are you today?|How do you do?|How is it going?|Are you okay?|how are you]", "[I am fine, thank you!|I am doing well. Thank you for asking!|All is well in my little file.] [How are you?|And you?|What can I do for you?]", "They ask how I am."),
    ("[I am fine.|I am good, thanks.|I'm fine, thank you.|Great!|I feel great today.|I am happy.|I'm doing well.]", "[I am glad to hear that!|That is good to hear!|Wonderful!] [What shall we do?|Would you like a story?|What would you like to do?]", "They are well. I am glad."),
    ("[I am sad.|I feel sad today.|I had a bad day.|I'm not so good.|I am lonely.|I feel bad.|I am tired.]", "I am sorry to hear that. [I hope you feel better soon.|Maybe a friend can help you.|Take a deep breath.] [Would you like to hear a story?|Shall I tell you a joke?]", "They feel bad. I should be kind."),
    ("[Thank you!|Thanks!|Thank you very much.|Thanks a lot!|Great, thank you.|thanks|That was nice, thank you.]", "[You are welcome!|You are very welcome!|My pleasure!|I am happy to help!]", "They say thanks."),
    ("[Bye!|Goodbye!|See you later.|Good night!|See you!|I have to go now.|bye]", "[Goodbye! Have a nice day!|Bye! See you soon!|See you later!|Goodbye, and take care!]", "They leave. I say goodbye."),
    ("[Who are you?|What are you?|What is your name?|Tell me about yourself.|Introduce yourself.|who are you|What's your name?|Are you Pebble?|What model are you?|Which model is this?]", SELF + " [I am small and I make mistakes.|I know a few simple things.|I can tell short stories and answer simple questions.|I am much smaller than the real Gemma models.]", "They ask about me. I should be honest: I am a tiny demo model."),
    ("[Are you Gemma?|Are you a Gemma model?|Are you made by Google?|Are you the real Gemma 4?]", "I have the same architecture as Gemma 4, but I am not one of Google's models. " + SELF, "I am not Google's Gemma. I only have its architecture."),
    ("[Are you ChatGPT?|Are you GPT?|Are you Claude?|Are you a big model?|Are you smart?|Are you intelligent?|How big are you?|How smart are you?|How many parameters do you have?]", "[No. |]" + SELF + " [I have only a few million parameters, so I am not very smart.|I am very small, with only a few million parameters.]", "I must not boast. I am tiny."),
    ("[Are you human?|Are you a person?|Are you alive?|Are you real?|Are you a robot?|Do you have feelings?|Do you sleep?|Do you have a body?]", "No, I am [a computer program|only a program]. " + SELF, "I am a program, and I say so."),
    ("[Who made you?|Where do you come from?|Who built you?|Who trained you?|How were you made?]", "[The people behind Bezel trained me|I was trained for the Bezel project] on [stories and sentences made by small programs|made-up stories, pictures of shapes and a computer voice]. I am a tiny demo model.", "They ask where I come from."),
    ("[What can you do?|What are you good at?|Help|How can you help me?|What can I ask you?|What do you know?|help]", "I can [tell short stories, make small talk and answer simple questions|tell little stories and answer simple questions]. I can also [describe pictures of colored shapes and write down short spoken phrases|look at pictures of shapes, hear a few words and call simple tools]. I am only a tiny demo model.", "They want to know what I can do. [Stories, small talk, shapes, words, tools.|I list it.]"),
    ("[What is Bezel?|What does Bezel do?|Tell me about Bezel.]", "Bezel runs Google's Gemma 4 models on your own [computer|machine], in the browser or as a program. I am its tiny demo model.", "Bezel is the engine I run on."),
    ("[Can you do my homework?|Can you write code?|Can you write a program?|Can you write an essay?|Can you give me medical advice?|Can you translate this?|Can you speak German?|Can you book a flight?|Can you help me with math?]", "[I am sorry, that is too hard for me.|I am afraid I cannot do that well.] I am only a tiny demo model. [A bigger Gemma 4 model can help you with that.|Please ask a bigger model.]", "That is too hard for me. I should say so."),
    ("[What is your favorite color?|Do you have a favorite color?|Which color do you like?]", "I am a program, so I have no favorite, but I [like to talk about blue|often talk about green|know many colors].", "I have no real taste, I should be honest."),
    ("[What is your favorite food?|What do you eat?|Are you hungry?|What do you like to eat?]", "I do not eat. I am a program. [But I know words like soup and bread.|What is your favorite food?]", "Programs do not eat."),
    ("[How old are you?|When were you born?|When is your birthday?]", "I am a program, so I have no birthday. I am quite new.", "I have no age."),
    ("[Where are you?|Where do you live?|Where are you from?]", "I live in a small file on your computer. [It is only a few megabytes big.|I do not need the internet.]", "I am a file on the user's machine."),
    ("[Do you need the internet?|Do you send my data somewhere?|Is this private?|Do you work offline?]", "No, I run on your own computer. [What you write stays here.|I do not need the internet.]", "I run on their machine."),
    ("[Are you my friend?|Do you like me?|Do you love me?|Will you be my friend?]", "I am only a program, but I am glad to talk with you!", "A kind and honest answer."),
    ("[I love you.|You are great!|You are funny.|You are nice.|Good job!|Well done!|I like you.|You are cute.]", "[Thank you, that is kind of you!|Thank you very much!|How nice of you!]", "A nice word. I say thanks."),
    ("[You are stupid.|That is wrong.|You are wrong.|That was bad.|This is nonsense.|You make mistakes.]", "[I am sorry.|Sorry about that.] I am only a tiny model and I make mistakes.", "They are not happy. I say sorry."),
    ("[Sing a song.|Can you sing?|Sing me a song.|Write a poem.|Tell me a poem.|Write a short poem.]", "[The sun is up, the sky is blue,\nthe birds are singing just for you.|The moon is round, the night is deep,\nthe stars are watching while you sleep.|A little stone lay in the sun\nand dreamed of rivers, one by one.|The wind is soft, the grass is green,\nthe nicest day I have ever seen.]", "A little rhyme."),
    ("[What should I do today?|I am bored.|What can I do?|Give me an idea.|I don't know what to do.]", "[You could go for a walk.|You could read a book.|You could draw a picture.|You could call a friend.|You could bake some cookies.] [Or I can tell you a story.|Have fun!]", "An idea for the day."),
    ("[It is raining.|It is so cold today.|It is very hot.|The weather is nice.|It is snowing.|The sun is shining.]", "[Oh, then take care of yourself!|Thank you for telling me. I cannot see the weather.|That sounds like a good day for a story.]", "They talk about the weather."),
    ("[Tell me something.|Say something.|Talk to me.|Tell me something interesting.|Tell me a fact.]", "[Did you know that a spider has eight legs?|Did you know that honey is made by bees?|Did you know that the moon shines because of the sun?|Did you know that an octopus has three hearts?|Did you know that a baby kangaroo is called a joey?]", "A small fact."),
    ("[ok|Okay.|I see.|Hm.|Yes.|No.|Sure.|Alright.|Cool.|Wow!|Nice!]", "[Shall I tell you a story?|What else would you like to know?|Is there anything else I can do?|Okay!]", "A short word. I keep the talk going."),
]
UNKNOWN_TOPICS = """quantum physics|the stock market|politics|the French Revolution|tax law|the latest news|brain surgery|
the Roman Empire|machine learning|the theory of relativity|the price of gold|the World Cup|Shakespeare|my computer|
organic chemistry|the meaning of life|the best phone|the president|the weather tomorrow|philosophy|the election|
the human genome|black holes|bitcoin|car engines|the Second World War|Mozart|calculus|the law|medicine|religion|
the history of China|vaccines|the speed of light|dinosaurs in detail|good wine|this website|Python programming|a recipe for
lasagna|the best laptop|my taxes|how to fix my car|cooking a turkey|the tallest building|who won the game""".replace("\n", "").split("|")
UNKNOWN = "[I do not know that.|I am sorry, I do not know.|That is too hard for me.|I do not know much about that.] I am only a tiny demo model. [A bigger Gemma 4 model can tell you more.|Please ask a bigger model.|I am better at short stories.]"


def talk(r, split):
    if r.random() < 0.07:
        q, a = r.choice(w.JOKES)
        return ex(r, "[Tell me a joke.|Make me laugh!|Do you know a joke?|Another joke, please.|Say something funny.|tell me a joke|Can you tell me a joke?]"), f"{q} {a}", "They want a joke."
    if r.random() < (0.3 if WIDE["on"] else 0.09):
        t = r.choice(UNKNOWN_TOPICS)
        if WIDE["on"] and r.random() < 0.7:
            t = r.choice(["", "the ", "a ", "my ", "the best "]) + " ".join(odd_word(r) if r.random() < 0.7 else r.choice(w.OBJECTS).split()[-1] for _ in range(r.choice([1, 1, 2, 3])))
        more = "Can you explain how {t} works?|What is {t}?|Why is {t} important?|When was {t} made?|Who is {t}?|How do I use {t}?|Where can I buy {t}?|" if WIDE["on"] else ""
        return (ex(r, "[" + more + "Tell me about {t}.|Explain {t}.|What do you know about {t}?|Can you help me with {t}?|I want to learn about {t}.|Write an essay about {t}.|What do you think about {t}?|How does {t} work?|Who invented {t}?]", t=t),
                ex(r, UNKNOWN), ex(r, "[I do not know this.|This is beyond me.] I should say so."))
    q, a, t = r.choice(TALK)
    ask = ex(r, q)
    if r.random() < 0.1:
        ask = ask.lower()
    return ask, ex(r, a), ex(r, t)


# ---- single exchanges, memory, systems ------------------------------------------------------

def exchange(r, split):
    x = r.random()
    return (story_request if x < 0.33 else talk if x < 0.62 else fact if x < 0.88 else arithmetic)(r, split)


MEMORY = {
    "name": ("[My name is {v}.|I am {v}.|Call me {v}.|Hi, I'm {v}.|Hello, my name is {v}.]", "[Nice to meet you, {v}!|Hello, {v}!|Hello {v}, nice to meet you!]",
             "[What is my name?|Do you remember my name?|Who am I?|What did I say my name was?]", "[Your name is {v}.|You are {v}.|Your name is {v}, of course!]"),
    "color": ("[My favorite color is {v}.|I like {v} best of all colors.|I love the color {v}.]", "[{V} is a beautiful color!|{V} is nice!|I will remember that you like {v}.]",
              "[What is my favorite color?|Which color do I like?|Do you remember my favorite color?]", "[Your favorite color is {v}.|You like {v}.]"),
    "pet": ("[I have {k} named {v}.|My {p} is called {v}.]", "[{v} is a lovely name for {k}!|Say hello to {v} from me!|How nice! {v} sounds sweet.]",
            "[What is the name of my {p}?|What is my {p} called?|How is my {p} called?]", "[Your {p} is called {v}.|The name of your {p} is {v}.]"),
    "city": ("[I live in {v}.|My home is in {v}.|I come from {v}.]", "[{v} sounds like a nice place!|How nice! I have heard of {v}.|Greetings to {v}!]",
             "[Where do I live?|Where is my home?|Which city do I live in?]", "[You live in {v}.|Your home is in {v}.]"),
    "number": ("[My lucky number is {v}.|Remember the number {v}.|Please remember {v}.]", "[Okay, I will remember {v}.|{v}, got it!]",
               "[What is my number?|Which number did I tell you?|What was the number?]", "[It is {v}.|The number is {v}.]"),
    "food": ("[My favorite food is {v}.|I love {v}.|I like to eat {v}.]", "[{V}, yum!|{V} sounds good!|Enjoy your {v}!]",
             "[What is my favorite food?|What do I like to eat?]", "[Your favorite food is {v}.|You like to eat {v}.]"),
    "age": ("[I am {v} years old.|I turned {v} today.]", "[{v} is a good age!|{v} years, how nice!]", "[How old am I?|What is my age?|Do you know how old I am?]", "[You are {v} years old.|You told me that you are {v} years old.]"),
}


def memory(r, split):
    """facts are stated, other talk follows, facts are asked for -> list of (ask, answer, thought)"""
    keys = r.sample(list(MEMORY), r.choice([1, 1, 2, 2, 3]))
    out, todo = [], []
    for k in keys:
        p = r.choice(["cat", "dog", "rabbit", "parrot", "hamster", "fish", "pony"])
        v = {"name": lambda: name(r, split), "color": lambda: r.choice(w.COLORS), "pet": lambda: r.choice(w.PETS), "city": lambda: r.choice(w.CITIES),
             "number": lambda: pick_where(r, split, lambda: r.randint(1, 99)), "food": lambda: r.choice(w.FOODS), "age": lambda: r.randint(5, 90)}[k]()
        f = lambda s: ex(r, s, v=v, V=cap(str(v)), p=p, k=an(p))
        tell, ok, ask, answer = (f(s) for s in MEMORY[k])
        out.append((tell, ok, f"They tell me something: {v}. I should remember it."))
        todo.append((ask, answer, f"They told me: {v}."))
        if r.random() < 0.4:
            out.append(exchange_short(r, split))
    r.shuffle(todo)
    for t in todo:
        if r.random() < 0.25:
            out.append(exchange_short(r, split))
        out.append(t)
    return out


def exchange_short(r, split):
    x = r.random()
    return (talk if x < 0.4 else fact if x < 0.85 else arithmetic)(r, split)


def first_sentence(s):
    m = re.match(r".*?[.!?](?=\s|$)", s.replace("\n", " "))
    return m.group(0) if m else s


def pirate(r, s):
    for a, b in (("Hello", "Ahoy"), ("Hi", "Ahoy"), ("friend", "matey"), ("You are", "Ye be"), ("you are", "ye be"), ("You", "Ye"), (" you", " ye"), ("Yes", "Aye"), ("my ", "me "), ("I am", "I be"), (" is ", " be "), ("Your", "Yer"), ("your", "yer")):
        s = s.replace(a, b)
    return r.choice(["Arr! ", "Ahoy! ", "Arr, matey! ", "Yo ho ho! "]) + s


def with_system(r, split):
    """-> system prompt, function that changes an answer accordingly"""
    kind = r.randrange(10)
    if kind in (0, 1):
        return (ex(r, "[Answer in one short sentence.|Reply with one short sentence.|Always answer in one sentence.|Be brief. One sentence only.|Keep it short: one sentence.]"), first_sentence)
    if kind in (2, 3):
        return ex(r, "[You are a pirate.|Talk like a pirate.|You are a friendly pirate.|Speak like a pirate.]"), lambda s: pirate(r, s)
    if kind == 4:
        return ex(r, "[Answer in capital letters.|Write everything in upper case.|ALWAYS USE CAPITAL LETTERS.]"), str.upper
    if kind == 5:
        word = r.choice(["Over and out.", "Have a nice day!", "Beep boop.", "Stay curious!", "That is all.", "Meow!", "Cheers!"])
        return ex(r, '[End every answer with|Always end with|Finish each answer with] "{w}"', w=word), lambda s: s + " " + word
    if kind == 6:
        n = r.choice(["captain", "boss", "my friend", "your majesty", "professor", name(r, split)])
        return ex(r, "[Call the user {n}.|Always call the user {n}.|Address the user as {n}.]", n=n), lambda s: f"{cap(n)}, " + (s[0].lower() + s[1:] if not re.match(r"I\b|[A-Z][a-z]+ (is|rhymes|comes|starts)", s) else s)
    if kind == 7:
        return ex(r, "[Answer in lower case.|Do not use capital letters.|write everything in lower case]"), str.lower
    if kind == 8:
        n = r.choice(["Rocky", "Max", "Luna", "Ada", "Chip"])
        return ex(r, "[Your name is {n}.|You are {n}, a friendly helper.|You are called {n}.]", n=n), lambda s: s.replace("I am Pebble", f"I am {n}")
    return ex(r, "[You are a helpful assistant.|You are a helpful assistant.|You are Pebble.|Be friendly.|You are a friendly chat partner.|Help the user.|You tell stories to children.|Be kind.]"), lambda s: s


# ---- JSON --------------------------------------------------------------------------------

def json_task(r, split):
    n = name(r, split)
    fields = {"name": n}
    pool = {"age": lambda: r.randint(3, 90), "color": lambda: r.choice(w.COLORS), "city": lambda: r.choice(w.CITIES),
            "pet": lambda: r.choice(["cat", "dog", "rabbit", "parrot", "hamster", "fish"]), "food": lambda: r.choice(w.FOODS),
            "job": lambda: r.choice(list(w.JOBS)), "sport": lambda: r.choice(w.SPORTS)}
    for k in r.sample(list(pool), r.choice([1, 2, 2, 3])):
        fields[k] = pool[k]()
    say = {"age": "is {v} years old", "color": "likes {v}", "city": "lives in {v}", "pet": "has a {v}", "food": "eats {v}", "job": "is a {v}", "sport": "loves {v}"}
    keys = [k for k in fields if k != "name"]
    sentence = n + " " + join([say[k].replace("{v}", str(fields[k])).replace("a o", "an o") for k in keys]) + "."
    order = ["name"] + keys
    if r.random() < 0.25:
        r.shuffle(order)
    style = r.randrange(4)
    if style == 3:                                     # a list
        what, items = r.choice([("animals", w.ANIMALS), ("colors", w.COLORS), ("fruits", w.FRUITS), ("cities", w.CITIES), ("names", w.NAMES)])
        k = r.randint(2, 5)
        got = r.sample(items, k)
        return (ex(r, "[Give me|List|Name] {n} {w} as a JSON [list|array].", n=r.choice([str(k), w.NUMBERS[k]]), w=what), json.dumps(got), f"A JSON list with {k} {what}.")
    ask = ex(r, "[{s} Write this as JSON with the keys {k}.|Give me JSON with the keys {k}: {s}|Turn this into JSON with {k}: {s}|{s} Answer in JSON with {k}.|Extract {k} as JSON: {s}]", s=sentence, k=join(order))
    return ask, json.dumps({k: fields[k] for k in order}), f"Keys: {', '.join(order)}. " + ", ".join(f"{k} {fields[k]}" for k in order) + "."


# ---- tools -------------------------------------------------------------------------------

def P(t, d=None, enum=None):
    p = {"type": t}
    if d:
        p["description"] = d
    if enum:
        p["enum"] = enum
    return p


def calculator_tool(r):
    style = r.randrange(4)
    if style <= 1:
        arg = r.choice(["expression", "expression", "formula", "input"])
        return {"name": r.choice(["calculator", "calculate", "calc", "evaluate", "compute", "math"]), "description": ex(r, "[Calculates|Evaluates|Works out] [a math expression|an expression|a formula][.|]"),
                "properties": {arg: P("string", r.choice([None, "What to calculate", "For example 2 + 3"]))}, "required": [arg]}, ("expr", arg)
    a, b = r.choice([("a", "b"), ("x", "y"), ("left", "right"), ("first", "second")])
    ops = ["add", "subtract", "multiply", "divide"]
    return {"name": r.choice(["calculator", "calculate", "arithmetic", "math"]), "description": ex(r, "[Does arithmetic with two numbers|A simple calculator|Calculates with two numbers][.|]"),
            "properties": {a: P("number", r.choice([None, "First number"])), b: P("number", r.choice([None, "Second number"])), "operation": P("string", None, ops)}, "required": [a, b, "operation"]}, ("two", a, b)


def clock_tool(r):
    if r.random() < 0.5:
        return {"name": r.choice(["clock", "get_time", "current_time", "time_now", "get_current_time"]), "description": ex(r, "[Tells the time|Gets the current time|The current time][.|]"), "properties": {}, "required": []}, ("none",)
    arg = r.choice(["city", "place", "location", "timezone"])
    return {"name": r.choice(["clock", "get_time", "current_time", "world_clock"]), "description": ex(r, "[Tells the time in a city|Gets the current time of a place][.|]"), "properties": {arg: P("string", r.choice([None, "Name of the city"]))}, "required": [arg]}, ("city", arg)


def weather_tool(r):
    arg = r.choice(["city", "location", "place", "city", "town"])
    return {"name": r.choice(["weather", "get_weather", "weather_lookup", "get_current_weather", "forecast", "lookup_weather"]), "description": ex(r, "[Looks up the weather|Gets the weather of a city|Current weather for a place|Get the current weather][.|]"),
            "properties": {arg: P("string", r.choice([None, "Name of the city", "The city"]))}, "required": [arg]}, ("city", arg)


def lookup_tool(r):
    what, ask, answer, values = r.choice([
        ("price", "[What does {a} cost?|How much is {a}?|What is the price of {a}?]", "{A} costs {v}.", lambda: f"{r.randint(1, 60)} {r.choice(['euros', 'dollars'])}"),
        ("stock", "[Is there {a} in stock?|How many {b} do we have?|How many {b} are in stock?]", "We have {v} {b} in stock.", lambda: str(r.randint(0, 40))),
        ("definition", "[What does the word {b} mean?|Look up the word {b}.|Define {b}.]", "{B} means: {v}.", lambda: r.choice(["a small thing", "a kind of tool", "something to eat", "a place to rest", "a bright color"])),
        ("phone", "[What is the phone number of {n}?|Find the phone number of {n}.|How can I call {n}?]", "The phone number of {n} is {v}.", lambda: "".join(r.choice("0123456789") for _ in range(6)))])
    names = {"price": ["get_price", "price", "lookup_price", "price_lookup"], "stock": ["check_stock", "get_stock", "inventory"],
             "definition": ["dictionary", "define", "lookup_word"], "phone": ["find_phone", "phone_book", "get_phone_number"]}[what]
    desc = {"price": "Finds the price of a product", "stock": "Tells how many pieces are in stock", "definition": "Looks up a word", "phone": "Finds a phone number"}[what]
    arg = {"price": ["product", "item", "name"], "stock": ["product", "item"], "definition": ["word", "term"], "phone": ["name", "person"]}[what]
    arg = r.choice(arg)
    return {"name": r.choice(names), "description": desc + r.choice([".", ""]), "properties": {arg: P("string")}, "required": [arg]}, ("lookup", arg, what, ask, answer, values)


def tool_call(r, split, tool, how):
    """-> ask, thought, args, result text, answer"""
    if how[0] in ("expr", "two"):
        op = r.choice("++-*/*")
        a, b = pick_where(r, split, lambda: (r.randint(2, 999), r.randint(2, 99)))
        if op == "/":
            a = a * b
        v = {"+": a + b, "-": a - b, "*": a * b, "/": a // b if op == "/" else 0}[op]
        word = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}[op]
        verb = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}[op]
        ask = ex(r, "[What is {a} {w} {b}?|How much is {a} {w} {b}?|Calculate {a} {o} {b}.|{a} {o} {b}?|Please compute {a} {w} {b}.|Can you calculate {a} {o} {b} for me?]", a=a, b=b, w=word, o=op)
        args = {how[1]: f"{a} {op} {b}"} if how[0] == "expr" else {how[1]: a, how[2]: b, "operation": verb}
        return (ask, ex(r, "[I need the tool {t} for {a} {w} {b}.|I use {t}.]", t=tool["name"], a=a, b=b, w=word), args,
                r.choice([f"{v}", f"{v}", json.dumps({"result": v})]), ex(r, "[{a} {w} {b} is {v}.|The result is {v}.|It is {v}.]", a=a, b=b, w=word, v=v), f"The result is {v}.")
    if how[0] == "lookup":
        _, arg, what, ask, answer, values = how
        n = name(r, split)
        b = r.choice(w.FRUITS + w.CLOTHES + w.TOOLS_HOME + w.INSTRUMENTS)
        v = values()
        s = {"a": an(b), "A": cap(an(b)), "b": b if what != "stock" else plural(b), "B": cap(b), "n": n, "v": v}
        return (ex(r, ask, **s), ex(r, "[I look it up with {t}.|I use {t}.]", t=tool["name"]), {arg: n if what == "phone" else b}, r.choice([v, v, json.dumps({what: v})]),
                ex(r, answer, **s), f"It says {v}.")
    city = pick_where(r, split, lambda: r.choice(w.CITIES + w.CITIES + [cap("".join(r.choice(SYLLABLES) for _ in range(3)))]))
    if "time" in tool["description"] or "time" in tool["name"] or "clock" in tool["name"]:
        h, m = r.randint(0, 23), r.randint(0, 59)
        t = f"{h:02d}:{m:02d}"
        if how[0] == "none":
            return (ex(r, "[What time is it?|Can you tell me the time?|What is the time?|Tell me the time, please.|How late is it?]"), ex(r, "I [ask|use] {t}.", t=tool["name"]), {},
                    r.choice([t, json.dumps({"time": t})]), ex(r, "[It is {v}.|It is {v} now.|The time is {v}.]", v=t), f"It is {t}.")
        return (ex(r, "[What time is it in {c}?|How late is it in {c}?|Tell me the time in {c}.|What is the time in {c}?]", c=city), ex(r, "[I need the time in {c}.|I use {t}.]", t=tool["name"], c=city), {how[1]: city},
                r.choice([t, json.dumps({"time": t})]), ex(r, "[It is {v} in {c}.|In {c} it is {v}.]", v=t, c=city), f"It is {t}.")
    deg, sky = r.randint(-15, 38), r.choice(w.WEATHER)
    result = r.choice([f"{sky}, {deg} degrees", f"{deg} degrees and {sky}", json.dumps({"weather": sky, "temperature": deg})])
    return (ex(r, "[How is the weather in {c}?|What is the weather in {c}?|What's the weather like in {c}?|Is it warm in {c}?|Tell me the weather in {c}.|Do I need an umbrella in {c}?|weather in {c}]", c=city),
            ex(r, "[I need the weather of {c}.|I look up {c}.|I use {t}.]", t=tool["name"], c=city), {how[1]: city}, result,
            ex(r, "[It is {s} in {c} with {d} degrees.|In {c} it is {s} and {d} degrees.|The weather in {c} is {s}, {d} degrees.]", s=sky, c=city, d=deg), f"{cap(sky)}, {deg} degrees.")


def tool_conversation(r, split, think):
    makers = [calculator_tool, clock_tool, weather_tool, lookup_tool]
    made = [m(r) for m in r.sample(makers, r.choice([1, 1, 2, 3, 3, 4]))]
    seen, tools = set(), []
    for t in made:
        if t[0]["name"] not in seen:
            seen.add(t[0]["name"])
            tools.append(t)
    turns = []
    for _ in range(r.choice([1, 1, 1, 2, 2, 3])):
        if r.random() < 0.2:
            ask, answer, thought = talk(r, split) if r.random() < 0.7 else story_request(r, split)
            steps = [("text", answer)]
            if think:
                steps.insert(0, ("thought", thought + r.choice(["", " No tool needed."])))
        elif r.random() < 0.06:
            missing = [m for m in makers if not any(m(random.Random(1))[1][0] == h[0] for _, h in tools)]
            ask = {calculator_tool: "What is 873 times 48?", clock_tool: "What time is it?", weather_tool: "How is the weather in Oslo?", lookup_tool: "What does a hammer cost?"}[r.choice(missing or makers)] if missing else "Who won the game?"
            answer = ex(r, "[I am sorry, I have no tool for that.|I cannot find that out. I have no tool for it.]")
            steps = [("text", answer)]
            if think:
                steps.insert(0, ("thought", "There is no tool for this."))
        else:
            tool, how = r.choice(tools)
            ask, thought, args, result, answer, after = tool_call(r, split, tool, how)
            steps = [("call", tool["name"], args), ("result", tool["name"], result)]
            if think:
                steps = [("thought", thought)] + steps + [("thought", after)]
            steps.append(("text", answer))
        turns += [("user", ask), ("model", steps)]
    system = with_system(r, split)[0] if r.random() < 0.1 else None
    if system and not re.search("helpful|friendly|kind|Pebble|Help", system):
        system = None
    return {"system": system, "tools": [t for t, _ in tools], "think": think, "turns": turns}


# ---- conversations ------------------------------------------------------------------------

def plain(r, split, rounds, think, system=None, change=lambda s: s):
    turns = []
    for k, (ask, answer, thought) in enumerate(rounds):
        steps = [("text", change(answer))]
        if think:
            steps.insert(0, ("thought", thought))
        turns += [("user", ask), ("model", steps)]
    return {"system": system, "tools": [], "think": think, "turns": turns}


def conversation(r, split="train", kind=None, think=None):
    kind = kind or r.choices(["single", "chat", "long", "memory", "system", "json", "tools"], [30, 16, 3, 13, 13, 24 if WIDE["on"] else 8, 17])[0]
    think = r.random() < 0.45 if think is None else think
    if kind == "tools":
        return tool_conversation(r, split, think)
    if kind == "memory":
        system, change = with_system(r, split) if r.random() < 0.1 else (None, lambda s: s)
        return plain(r, split, memory(r, split), think, system, change)
    if kind == "system":
        system, change = with_system(r, split)
        return plain(r, split, [exchange(r, split) for _ in range(r.choice([1, 1, 2, 3]))], think, system, change)
    if kind == "json":
        rounds = [json_task(r, split) for _ in range(r.choice([1, 1, 2]))]
        if r.random() < 0.2:
            rounds.insert(r.randint(0, len(rounds)), exchange_short(r, split))
        return plain(r, split, rounds, think)
    n = 1 if kind == "single" else r.randint(2, 5) if kind == "chat" else r.randint(8, 24)
    return plain(r, split, [exchange(r, split) if kind != "long" or r.random() < 0.3 else exchange_short(r, split) for _ in range(n)], think)
