"""Conversations for Pebble Diffusion: stories, and a few sentences about itself.

  conversation(random.Random, split) -> a conversation as chat_format.py describes, its last turn a story most of the time
"""
import text_data as d
import words as w

NAME = "[I am|My name is] Pebble Diffusion, a tiny demo model that comes with Bezel."
ABOUT = [
    (d.HELLO + "[!|.||, Pebble!| Pebble]", "[Hello!|Hi!|Hello there!] [Shall I tell you a story?|Ask me for a story!]"),
    ("[How are you?|How are you today?|how are you]", "I am fine, thank you! [Shall I tell you a story?|Ask me for a story!]"),
    ("[Thank you!|Thanks!|thanks|Great, thank you.|Nice story!|That was nice.]", "[You are welcome!|My pleasure!] [Shall I tell you another story?|Ask me for another story!]"),
    ("[Bye!|Goodbye!|See you later.|Good night!|bye]", "[Goodbye! Have a nice day!|Bye! See you soon!]"),
    ("[Who are you?|What are you?|What is your name?|Tell me about yourself.|who are you|Introduce yourself.|Who made you?|Are you Gemma?|Are you ChatGPT?|What model are you?|Are you human?]",
     NAME + " I write a whole piece of text at once: it condenses out of noise. I only know short stories."),
    ("[What can you do?|What are you good at?|Help|help|How can you help me?|What do you know?|What is Bezel?|How do you work?]",
     "I write short stories. My words come all at once and not one after another. [Ask me for a story about a fox, a dragon or a robot!|Ask me for a story!]"),
]
CANNOT = "[I am sorry, I only know short stories.|That is too hard for me, I only tell stories.] [Ask me for a story about a fox!|Ask me for a story about a dragon!|Ask me for a story about a robot!]"
SYSTEMS = ["You are a helpful assistant.", "You are a friendly chat partner.", "You are Pebble, a tiny demo model.", "Be kind.", "Answer in simple words.", "You are a storyteller."]
THINGS = w.OBJECTS + w.FRUITS + w.VEGETABLES + w.VEHICLES + w.INSTRUMENTS + w.CLOTHES + list(w.JOBS) + w.ANIMALS


def story(r, split):
    """as Pebble's, sometimes about a subject outside its lists"""
    if r.random() > 0.12:
        return d.story_request(r, split)[:2]
    thing = d.pick_where(r, split, lambda: r.choice(THINGS) if r.random() < 0.6 else d.odd_word(r))
    who = d.name(r, split) if r.random() < 0.25 else None
    length = r.choice(["", "", "nice ", "short "])
    ask = d.ex(r, "[Write a|Tell me a|Tell a|Please write a|Can you tell me a] ") + length + "story about " + d.an(thing)
    if who:
        ask += r.choice([" named ", " called "]) + who
    return ask + r.choice([".", ".", "", "!"]), d.story(r, split, hero=thing, who=who, short=length == "short ")[0]


def exchange(r, split):
    x = r.random()
    if x < 0.90:
        return story(r, split)
    if x < 0.96:
        ask, answer = r.choice(ABOUT)
        return d.ex(r, ask), d.ex(r, answer)
    ask = r.choice([d.fact, d.arithmetic])(r, split)[0]
    return ask, d.ex(r, CANNOT)


def conversation(r, split="train", rounds=1):
    turns = []
    for k in range(rounds):
        ask, answer = exchange(r, split)
        turns += [("user", ask), ("model", [("text", answer)])]
    return {"system": r.choice(SYSTEMS) if r.random() < 0.06 else None, "think": r.random() < 0.08, "tools": [], "turns": turns}


def prompt_text(conv, text):
    """the engine's prompt: with thinking off, an empty thought is added (src/text/chat.c)"""
    return text if conv.get("think") else text + "<|channel>thought\n<channel|>"
