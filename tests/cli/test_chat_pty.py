#!/usr/bin/env python3
"""The chat as a person at a terminal has it.

    test_chat_pty.py PROGRAM MODELS        BEZEL_SHOW=1 prints the screens

Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed. Without libedit in the program
the cases about editing are left out.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import cases  # noqa: E402
from cases import finish, need, same  # noqa: E402
from progress import Progress  # noqa: E402

import fake_store
import scripted
from terminal import Terminal

BEZEL, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
BASE = os.path.join(MODELS, "nano-e-f32.gguf")
PEBBLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "pebble.gguf")
SHOW = bool(os.environ.get("BEZEL_SHOW"))
top = tempfile.mkdtemp(prefix="bezel-chat-")
UP, DOWN, RIGHT, LEFT, HOME, END, DELETE = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[3~"


def model(name, script, **more):
    return scripted.write(os.path.join(top, name + ".gguf"), BASE, script, **more)


SKY = model("sky", ["The", " sky", " is", " blue", "."], context=4096)
MUSE = model("muse", ["<|channel>", "thought", "\n\n", "Hm", "<channel|>"], context=4096)
THINK = model("think", ["<|channel>", "thought", "\n\n", "Hm", "<channel|>", "The", " sky", " is", " blue", "."], context=4096)
LOOP = model("loop", ["one", " two", " three", " four\n"], loop=0, context=131072)
LINES = model("lines", ["The sky is", " blue be", "cause light", " is scattered", ".\n", "```", "\nlet code", " stay as it is; here\n", "``", "`\n\n",
                        "\u5929\u5730\u7384\u9ec4", "\u5b87\u5b99\u6d2a", "\u8352\u65e5\u6708\u76c8", "\u6603", "."], context=4096)
ESCAPES = model("escapes", ["<0x1B>", "[31mred", "<0x07>", "<0x08>", "end"])


class Chat(Terminal):
    def __init__(self, model=SKY, *args, home=None, env=None, **more):
        self.home = home or tempfile.mkdtemp(dir=top)
        super().__init__([BEZEL, "run", model, "--threads", "1", *args],
                         env={"TERM": "xterm-256color", "HOME": self.home, "XDG_STATE_HOME": self.home, "LANG": "C.UTF-8",
                              "OLLAMA_MODELS": os.path.join(top, "none"), "NO_COLOR": None, "CLICOLOR_FORCE": None, **(env or {})}, **more)
        self.prompt()

    def say(self, text, wait=True):
        """types a line and waits until it is answered; what was shown for it"""
        before = len(self.screen.lines)
        self.type(text + "\r")
        if wait:
            self.until(lambda: not self.screen.paste_mode or len(self.screen.lines) > before, what="echo")
            self.prompt()
        return self.since(before)

    def shows(self, get, want, what):
        """waits until the program has drawn it"""
        progress = Progress(self.pid)
        while get() != want and not progress.problem(self.read(0.05)):
            pass
        self.settle()
        same(get(), want, what)

    def shows_line(self, want, what):
        self.shows(self.screen.last, want, what)

    def resized(self, rows, cols):
        """the program has seen it and drawn its line anew"""
        before = len(self.raw)
        self.size(rows, cols)
        self.until(lambda: b"\x1b[J" in self.raw[before:], what="redrawing")
        self.settle()

    def since(self, line):
        return "\n".join("".join(x).rstrip() for x in self.screen.lines[line:]).strip("\n")

    def history(self):
        with open(os.path.join(self.home, "bezel", "history"), encoding="utf-8") as f:
            return [json.loads(x) for x in f]


def case(name, run):
    chats = []

    def chat(*args, **more):
        chats.append(Chat(*args, **more))
        return chats[-1]

    def whole():
        run(chat)
        for c in chats:
            need(not c.screen.unknown, f"sequences no terminal needs: {c.screen.unknown}")

    cases.case(name, whole)
    for c in chats:
        if SHOW:
            print(f"+--- {name} " + "-" * (c.screen.cols - len(name) - 5))
            print("\n".join("| " + line for line in c.screen.text().split("\n")))
            print("+" + "-" * c.screen.cols)
        c.__exit__()


# ---- talking ----

def talk(chat):
    c = chat()
    need(c.screen.text().startswith("sky.gguf. /help lists the commands"), c.screen.text())
    same(c.say("Why?"), "The sky is blue.\n\n>>>", "the answer")
    same(c.say("Again?"), "The sky is blue.\n\n>>>", "the second answer")
    same(c.say(""), ">>>", "an empty line")
    out = c.say("/show messages")
    need(re.search(r"user +Why\?\n +assistant +The sky is blue\.\n +user +Again\?", out), out)
    c.type("/bye\r")
    same(c.finish(), 0, "the status after /bye")


def thinking(chat):
    c = chat(THINK)
    out = c.say("Why?")
    need("Thinking...\n\nHm\n...done thinking.\n\nThe sky is blue.\n\n>>>" in out, out)
    dim = "".join(c.screen.dim)
    need("Hm" in dim and "sky" not in dim, f"dimmed: {dim}")
    c.say("/set nothink")
    same(c.say("Why?"), "The sky is blue.\n\n>>>", "the answer without thinking")
    c.say("/set think")
    need("Thinking" in c.say("Why?"), "no thinking")
    # What was thought is no part of what the model reads later: two turns differ by what was said only.
    c.say("/set verbose")
    counts = [int(re.search(r"prompt eval count: +(\d+)", c.say("Why?")).group(1)) for _ in range(3)]
    same(counts[2] - counts[1], counts[1] - counts[0], "tokens of a turn")
    plain = chat(THINK, env={"NO_COLOR": "1"})
    plain.say("Why?")
    need(b"\x1b[2m" not in plain.raw and "Thinking..." in plain.screen.text(), "colors with NO_COLOR")
    silent = chat(MUSE, "--hide-thinking")
    same(silent.say("Why?"), "(The answer is empty: the model only thought. /set nothink turns thinking off.)\n\n>>>", "thoughts alone")
    hidden = chat(THINK, "--hide-thinking")
    same(hidden.say("Why?"), "The sky is blue.\n\n>>>", "the answer with --hide-thinking")


def safe(chat):
    c = chat(ESCAPES)
    same(c.say("x"), "\ufffd[31mred\ufffd\ufffdend\n\n>>>", "escapes of the model")


def reuse(chat):
    """a second turn computes what is new, not the conversation"""
    c = chat(SKY, "-v")
    c.say("A first question that has some words in it.")
    out = c.say("And a second.")
    m = re.search(r"prompt eval count: +(\d+) tokens \((\d+) of them reused\)", out)
    need(m and int(m.group(2)) > 30 and int(m.group(1)) - int(m.group(2)) < 40, out)


# ---- editing ----

def editing(chat):
    c = chat()
    c.type("wold")
    c.type(LEFT * 2 + "r")
    c.type(HOME + "Hello ")
    c.type(END + "!")
    c.shows_line(">>> Hello world!", "the line")
    c.type("\x01" + DELETE * 6 + "\x05" + "\x7f?")         # Ctrl-A, delete a word; Ctrl-E, backspace
    c.shows_line(">>> world?", "the line after deleting")
    c.type("\x1b[1;5D" + "brave ")                          # Ctrl-left
    c.shows_line(">>> brave world?", "the line after a jump")
    c.type("\x17" + "\x15")                                 # Ctrl-W, Ctrl-U
    c.shows_line(">>>", "the line after Ctrl-U")
    c.type("\u00e4\u65e5\u672c\x7f\U0001F600")
    c.shows_line(">>> \u00e4\u65e5\U0001F600", "characters of all widths")
    c.type("\r")
    c.prompt()
    need("\u00e4\u65e5\U0001F600" in c.say("/show messages"), "lost on the way")


def other_locale(chat):
    c = chat(env={"LANG": "C", "LC_ALL": "C"})
    c.type("\u00e4\u65e5\x7f\u672c\r")
    c.prompt()
    need("\u00e4\u672c" in c.say("/show messages"), "UTF-8 needs no locale")


def recall(chat):
    c = chat()
    c.say("first")
    c.say('"""two\rlines"""')
    c.say("/show system")
    c.type(UP * 3)
    c.shows_line(">>> first", "three times up")
    c.type(DOWN)
    c.shows(lambda: c.since(len(c.screen.lines) - 2), ">>> two\nlines", "an entry of two lines")
    c.type(DOWN * 5 + "\x15" + "\x12fir")                  # Ctrl-R
    c.until(lambda: "first" in c.screen.last(), what="find of Ctrl-R")
    c.type("\r")
    c.prompt()
    same(c.history(), ["first", "two\nlines", "/show system", "first"], "the history file")
    same(os.stat(os.path.join(c.home, "bezel", "history")).st_mode & 0o777, 0o600, "its mode")
    c.say("/set nohistory")
    c.say("secret")
    c.type("\x04")
    same(c.finish(), 0, "the status after Ctrl-D")
    d = chat(home=c.home)
    d.type(UP)
    d.shows_line(">>> /set nohistory", "the newest entry in the next chat")


def several_lines(chat):
    c = chat()
    c.type('"""one\r')
    c.prompt("...")
    c.type("two\r")
    c.prompt("...")
    c.type('three"""\r')
    c.prompt()
    c.type("four\\\r")
    c.prompt("...")
    c.type("five\r")
    c.prompt()
    c.say('"""in one line"""')
    out = c.say("/show messages")
    for text in r"one\ntwo\nthree", r"four\nfive", "in one line":
        need(re.search("user +" + re.escape(text) + "\n", out), out)
    c.type('"""lost\r')
    c.prompt("...")
    c.type("\x03")
    c.prompt()
    need("lost" not in c.say("/show messages"), "Ctrl-C kept it")


def pasting(chat):
    c = chat()
    c.type("\x1b[200~def f():\n\treturn 1\r\n\x1b[31m# x\x1b[201~")
    c.shows_line("... [31m# x", "the last line of what was pasted")
    c.type(" end\r")
    c.prompt()
    out = c.say("/show messages")
    need(r"user       def f():\n\treturn 1" in out and "[31m# x end" in out, out)
    same(out.count("user"), 1, "messages")


def window(chat):
    c = chat(rows=10, cols=30)
    long = "a line that is much longer than this narrow window is wide"
    c.type(long)
    shown = ">>> " + long
    rows = lambda n: c.since(len(c.screen.lines) - n).split("\n")  # noqa: E731
    c.shows(lambda: rows(3), [shown[:30], shown[30:60], shown[60:]], "the wrapped line")
    c.resized(10, 70)
    c.type("!")
    c.shows(lambda: rows(2)[-1], shown + "!", "the line in a wider window")
    c.resized(10, 20)
    c.type("\x01\x1b[3~A\x05!")                    # at its beginning and at its end
    shown = shown.replace("a", "A", 1) + "!!"
    c.shows(lambda: rows(4), [shown[i:i + 20].rstrip() for i in range(0, 80, 20)], "the line in a small window")
    same(c.screen.text().count(">>>"), 1, "prompts on the screen")
    c.type("\r")
    c.until(lambda: "The sky is blue." in c.screen.text(), what="answer")


# ---- commands ----

def commands(chat):
    c = chat()
    out = c.say("/help")
    for word in "/set", "/show", "/clear", "/save FILE", "/load FILE", "/bye", '"""', "Ctrl-C":
        need(word in out, out)
    same(c.say("/?"), out, "/?")
    need(all(len(line) <= 80 for line in out.split("\n")), out)
    out = c.say("/set")
    for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty",
                 "seed", "num_predict", "num_ctx", "stop", "think", "verbose", "wordwrap"):
        need(re.search(rf"^  {name} ", out, re.M), f"no {name} in {out}")
    for line in ("temperature 0.5", "parameter top_k 20", "seed 7", "num_predict 3", "system Be brief.", 'stop "blue"', "stop xyz", "verbose"):
        out = c.say("/set " + line)
    out = c.say("/show")
    for line in (r"temperature +0\.5", r"top_k +20", r"seed +7", r"num_predict +3", r'stop +"blue" "xyz"', r"verbose +yes", r"messages +0",
                 r"context +\d+ of 4096 tokens", r"model +sky\.gguf"):
        need(re.search(line, out), f"{line}: {out}")
    same(c.say("/show system"), "Be brief.\n>>>", "/show system")
    out = c.say("Why?")
    need("The sky is\n(stopped at num_predict tokens)" in out and "eval rate" in out, out)
    for line in "num_predict default", "seed default", "quiet", "stop default", "system default":
        c.say("/set " + line)
    same(c.say("Why?"), "The sky is blue.\n\n>>>", "the answer after resetting")
    c.say("/set stop blue")
    same(c.say("Why?"), "The sky is\n\n>>>", "the answer with a stop string")
    for line, answer in (("/set temperature hot", "temperature must be a number, not 'hot'."), ("/set top_p 3", "top_p must be a number from 0 to 1."),
                         ("/set volume 11", "There is no setting 'volume'; /set lists them."),
                         ("/set temperature", "Give a value, for example /set temperature 0.5"),
                         ("/set num_ctx 9999999", "This model's largest context is 4096."),
                         ("/frobnicate", "There is no command '/frobnicate'; /help lists them."),
                         ("/save", "Give a file, for example /save chat.json"), ("/load", "Give a file, for example /load chat.json"),
                         ("/show system", "There is no system prompt."), ("/clear", "A new conversation.")):
        same(c.say(line), answer + "\n>>>", line)
    same(c.say("/show messages"), "The conversation is empty.\n>>>", "messages after /clear")
    c.say("/set num_ctx 128")
    need("of 128 tokens" in c.say("/show"), "num_ctx")
    need("\n\n>>>" in c.say("/usr/bin is a path"), "a path is no command")
    c.type("/quit\r")
    same(c.finish(), 0, "the status after /quit")


def saving(chat):
    c = chat(SKY, "--system", "Be brief.")
    path = os.path.join(c.home, "chat.json")
    c.say("Why?")
    same(c.say("/save " + path).split("\n")[-2][:19], "Saved 2 messages to", "/save")
    saved = json.load(open(path))
    same([m["role"] for m in saved["messages"]], ["system", "user", "assistant"], "the roles saved")
    same(saved["messages"][2]["content"], "The sky is blue.", "the answer saved")
    need("Saved" in c.say("/save ~/again.json") and os.path.exists(os.path.join(c.home, "again.json")), "~ is the home folder")
    d = chat(SKY, home=c.home)
    need("Loaded 2 messages" in d.say("/load ~/chat.json"), d.screen.text())
    same(d.say("/show system"), "Be brief.\n>>>", "the system prompt loaded")
    d.say("And?")
    out = d.say("/show messages")
    same(out.count("user"), 2, "messages")
    d.say("/save ~/chat.json")
    same(len(json.load(open(path))["messages"]), 5, "messages after saving again")
    notes = os.path.join(c.home, "notes")
    with open(notes, "w") as f:
        f.write("mine")
    need("not a saved chat" in d.say("/save ~/notes") and open(notes).read() == "mine", "a file was lost")
    need("not a saved chat" in d.say("/load ~/notes"), d.screen.text())
    need("Cannot read" in d.say("/load ~/nothing"), d.screen.text())
    need("Cannot write" in d.say("/save /nowhere/at/all"), d.screen.text())
    same(d.say("/show messages").count("user"), 2, "messages after all that")


# ---- leaving ----

def stopping(chat):
    c = chat(LOOP)
    c.type("Count.\r")
    c.until(lambda: c.screen.text().count("four") > 5, what="some numbers")
    c.type("\x03")
    c.prompt()
    out = c.say("/show messages")
    need(re.search(r"assistant +one two three four", out), "the part that was said is kept: " + out)
    c.type("More.\r")
    c.until(lambda: "More." in c.screen.text() and c.screen.last().startswith("one"), what="an answer")
    c.type("\x03")
    c.prompt()
    c.type("half a line")
    c.shows_line(">>> half a line", "the line")
    c.type("\x03")
    c.shows_line(">>>", "the line after Ctrl-C")
    need("Press Ctrl-C again" not in c.screen.text(), "Ctrl-C on a line only throws it away")
    c.type("\x03")
    c.until(lambda: "Press Ctrl-C again, Ctrl-D or type /bye to end the chat." in c.screen.text(), what="a word of warning")
    c.prompt()
    c.type("\x03")
    same(c.finish(), 130, "the status after the second Ctrl-C")


def ending(chat):
    c = chat()
    c.say("Why?")
    c.type("\x04")
    same(c.finish(), 0, "the status after Ctrl-D")
    need(c.raw.endswith(b"\n"), "the shell's prompt would follow on the same line")
    d = chat()
    os.kill(d.pid, signal.SIGTERM)
    same(d.finish(), 128 + signal.SIGTERM, "the status after SIGTERM")
    need(d.raw.rstrip(b"\r\n").endswith(b"\x1b[?2004l"), "the terminal is left as it was")
    e = chat(LOOP)
    e.type("Count.\r")
    e.until(lambda: "four" in e.screen.text(), what="an answer")
    os.kill(e.pid, signal.SIGTERM)
    same(e.finish(), 128 + signal.SIGTERM, "the status after SIGTERM during an answer")


def suspended(chat):
    c = chat()
    c.type("typed be")
    c.shows_line(">>> typed be", "the line")
    os.kill(c.pid, signal.SIGSTOP)
    os.waitpid(c.pid, os.WUNTRACED)
    import termios
    mode = termios.tcgetattr(c.fd)
    mode[3] |= termios.ICANON | termios.ECHO        # as a shell leaves it
    termios.tcsetattr(c.fd, termios.TCSANOW, mode)
    before = len(c.raw)
    os.kill(c.pid, signal.SIGCONT)
    c.until(lambda: b"\x1b[J" in c.raw[before:], what="redrawing")
    c.settle()
    c.type("fore\x01\x1b[3~T\r")
    c.prompt()
    need("Typed before" in c.say("/show messages"), c.screen.text())


def shifting(chat):
    """a full context: the oldest turns go, whole; the system prompt stays, and so does what is saved"""
    c = chat(SKY, "-c", "512", "--system", "Be brief and always keep this rule in mind.", "-n", "20")
    shown = ""
    for i in range(12):
        out = c.say(f"Question number {i}: why is that so, what do you think?")
        need("The sky is blue." in out, out)
        shown += out
    need(shown.count("the model no longer sees the oldest turns") >= 1, shown)
    need(shown.count("the model no longer sees the oldest turns") <= 4, "it is told too often: " + shown)
    out = c.say("/show")
    left = re.search(r"messages +24, of which the model no longer sees (\d+)", out)
    need(left and int(left.group(1)) % 2 == 0 and 2 <= int(left.group(1)) <= 22, out)
    need(int(re.search(r"context +(\d+) of 512", out).group(1)) <= 512, out)
    c.say("/save ~/long.json")
    with open(os.path.join(c.home, "long.json")) as f:
        same(len(json.load(f)["messages"]), 25, "saved messages")
    d = chat(LOOP, "-c", "128")
    need("The answer ends here, as the context is full." in d.say("Count."), d.screen.text())
    out = d.say("More.")
    need("no longer sees the oldest turns" in out and "one two" in out, out)
    need("the context holds 128" in d.say("word " * 300), d.screen.text())


def wrapping(chat):
    """lines end between words, also after the window has changed; code stays as it is"""
    c = chat(LINES, rows=24, cols=22)
    same(c.say("Why?"), "\n".join(("The sky is blue", "because light is", "scattered.", "```", "let code stay as it is", "; here", "```", "",
                                  "\u5929\u5730\u7384\u9ec4\u5b87\u5b99\u6d2a\u8352\u65e5\u6708\u76c8", "\u6603.", "", ">>>")), "22 columns")
    c.say("/set nowordwrap")
    same(c.say("Why?").split("\n")[1], "e light is scattered.", "without wrapping the terminal breaks the line")
    c.say("/set wordwrap")
    c.resized(24, 60)
    same(c.say("Why?").split("\n")[0], "The sky is blue because light is scattered.", "60 columns")
    d = chat(LINES, "--nowordwrap", rows=24, cols=22)
    same(d.say("Why?").split("\n")[1], "e light is scattered.", "--nowordwrap")


def as_in_ollama(chat):
    """its commands, and the messages of its store"""
    store = os.path.join(top, "store")
    fake_store.add(store, "stone:latest", SKY, system="You are a stone.", params={"temperature": 0.5, "stop": ["zzz"]},
                   messages=[{"role": "user", "content": "Is it day?"}, {"role": "assistant", "content": "It is day."}])
    c = chat("stone", env={"OLLAMA_MODELS": store})
    need(">>> Is it day?\nIt is day.\n\n>>>" in c.screen.text(), "the first messages are shown: " + c.screen.text())
    same(re.findall(r"^  (user|assistant) +(.*)$", c.say("/show messages"), re.M), [("user", "Is it day?"), ("assistant", "It is day.")], "messages")
    out = c.say("/show modelfile")
    for line in ("# Modelfile of stone:latest", "PARAMETER temperature 0.5", 'PARAMETER stop "zzz"', 'SYSTEM """You are a stone."""',
                 'MESSAGE user """Is it day?"""', 'MESSAGE assistant """It is day."""'):
        need(line in out.replace("\n", "\n"), f"{line}: {out}")
    need(re.search(r"^FROM /", out, re.M), out)
    need("The file has no template" in c.say("/show template"), c.screen.text())
    need("The file names no license." in c.say("/show license"), c.screen.text())
    c.say("Why?")
    c.say("/clear")
    same(len(re.findall(r"^  (user|assistant) ", c.say("/show messages"), re.M)), 2, "messages after /clear")
    c.say("/save ~/stone.json")
    same(json.load(open(os.path.join(c.home, "stone.json")))["pinned"], 3, "pinned messages in the file")
    c.say("/load ~/stone.json")
    c.say("/clear")
    same(len(re.findall(r"^  (user|assistant) ", c.say("/show messages"), re.M)), 2, "messages after /load and /clear")
    c.say("/set parameter stop blue is")
    need(re.search(r'stop +"blue" "is"', c.say("/show parameters")), c.screen.text())
    same(c.say("Why?"), "The sky\n\n>>>", "two stop strings")
    rules = os.path.join(top, "rules.gbnf")
    with open(rules, "w", encoding="utf-8") as f:
        f.write('root ::= "yes" | "no"')
    for line, answer in (("/set format json", ""), ("/set parameter volume 3", "There is no setting 'volume'; /set lists them."),
                         ("/set format", "Give json or the file of a JSON schema, for example /set format json")):
        same(c.say(line), answer + ("\n" if answer else "") + ">>>", line)
    need(re.search(r"^  format +json$", c.say("/set"), re.M), c.screen.text())
    need("none.json: No such file" in c.say("/set format none.json") and re.search(r"^  format +json$", c.say("/set"), re.M), c.screen.text())
    c.say("/set nothink")  # thoughts are free of the grammar
    c.say("/set grammar " + rules)
    answer = c.say("Why?")
    need(answer.split("\n")[0] in ("yes", "no"), f"an answer of a grammar: {answer!r}")
    same(c.say("/set noformat"), ">>>", "/set noformat")
    same(c.say("Why?"), "The sky\n\n>>>", "a free answer")
    need("temperature" in c.say("/? set") and "num_ctx" in c.say("/set parameter"), c.screen.text())
    c.type('/set system """You are\ra poet."""\r')
    c.until(lambda: "The system prompt is set." in c.screen.text(), what="a system prompt of two lines")
    c.prompt()
    same(c.say("/show system"), "You are\na poet.\n>>>", "/show system")


def full(chat):
    c = chat(LOOP, "-c", "128", "--context-shift", "off")
    out = c.say("Count.")
    need("The context is full. /clear starts a new conversation" in out, out)
    out = c.say("More.")
    need("the context holds 128" in out and "/clear" in out, out)
    c.say("/clear")
    need("one two" in c.say("Count."), "no answer after /clear")


def apart(chat):
    """answers into a file, the chat on the terminal"""
    path = os.path.join(top, "answers")
    with open(path, "wb") as f:
        c = chat(THINK, stdout=f.fileno())
        c.say("Why?")
        c.say("/help")
        c.type("\x04")
        same(c.finish(), 0, "the status")
    same(open(path).read(), "The sky is blue.\n", "the file")
    need("Hm" not in c.screen.text(), "thinking is shown though nobody watches the answer")


def dumb(chat):
    """no editing, no sequences: the same chat"""
    c = Chat.__new__(Chat)
    Terminal.__init__(c, [BEZEL, "run", SKY], env={"TERM": "dumb", "HOME": top, "XDG_STATE_HOME": top, "OLLAMA_MODELS": top})
    c.home = top
    with c:
        c.until(lambda: c.screen.last() == ">>>", what="prompt")
        c.type("Why?\n")
        c.until(lambda: "The sky is blue.\n\n>>>" in c.screen.text(), what="answer")
        need(b"\x1b" not in c.raw, f"sequences: {c.raw!r}")
        c.type("/set temperature 0.5\n/show\n")
        c.until(lambda: re.search(r"temperature +0\.5\n(.*\n)* +history +yes\n>>>", c.screen.text()), what="/show")
        c.type("\x03")
        c.until(lambda: "Press Ctrl-C again" in c.screen.text(), what="a word of warning")
        c.type("\x04")
        same(c.finish(), 0, "the status")


def progress(chat):
    """a line for what takes more than a second, gone when it is over"""
    c = chat(LOOP, "--threads", "1", "--chunk", "1", "-n", "1")
    with open(os.path.join(c.home, "long.json"), "w") as f:
        json.dump(dict(messages=[dict(role="user", content="x" * 5000), dict(role="assistant", content="y")]), f)
    c.say("/load ~/long.json")
    before = len(c.raw)
    start = time.time()
    out = c.say("x")
    shown = re.findall(rb"reading the prompt: (\d+) of (\d+) tokens, (\d+) %, \d+ s", c.raw[before:])
    seconds = time.time() - start
    need(all(int(percent) == 100 * int(done) // int(total) for done, total, percent in shown), f"percent: {shown}")
    need(seconds < 5 or b" s left" in c.raw[before:], "the time that is left is missing")
    need(seconds < 1.2 or shown, f"no line in {seconds:.1f} s")
    need(len(shown) <= 10 * seconds + 1, f"{len(shown)} times in {seconds:.1f} s")
    same(out, "one\n(stopped at num_predict tokens)\n\n>>>", "what is left of it")


# ---- images and audio ----

def disc(path, color):
    """a round of that color on white, which Pebble knows"""
    rows = (color if (x - 48) ** 2 + (y - 48) ** 2 < 1000 else (255, 255, 255) for y in range(96) for x in range(96))
    with open(path, "wb") as f:
        f.write(b"P6 96 96 255\n" + bytes(v for pixel in rows for v in pixel))
    return path


def is_attached(out):
    """the screen breaks long lines anywhere"""
    return "is attached to the next message" in out.replace("\n", "")


def images(chat):
    """names as they are typed and dropped; the file may go or change, the conversation has seen it"""
    c = chat(PEBBLE, "--no-think", "--temp", "0")
    red, path = (220, 30, 30), os.path.join(c.home, "it's \"my\" (1).ppm")
    disc(path, red)
    escaped = re.sub(r"([ '\"()])", r"\\\1", path)
    for name in ("~/it's \"my\" (1).ppm", path, escaped, "'" + path.replace("'", "'\\''") + "'", "file://" + path.replace(" ", "%20").replace('"', "%22")):
        out = c.say("/image " + name)
        need(is_attached(out), out)
        c.say("/clear")
    out = c.say(escaped + " What is this?")  # as other programs would have it
    need("(The model only sees the name of the file; /image " in out and "attaches it.)" in out.replace("\n", ""), out)
    need("only sees the name" not in c.say("What is a.png, and what is it's \"b.png\"?"), "of files that are none")
    need(is_attached(c.say("/image " + escaped)) and "only sees the name" not in c.say("What is in " + escaped + "?"), "it is attached already")
    c.say("/clear")
    shot = disc(os.path.join(c.home, "a b.ppm"), red)
    need(is_attached(c.say('/image "~/a b.ppm"')), "quotation marks")
    need("dropped" in c.say("/clear") and "attached" not in c.say("/show"), "it is gone")
    need(is_attached(c.say('/image "~/a b.ppm"')), "once more")
    need(re.search(r"attached +.*a b\.ppm", c.say("/show")), "/show tells what waits: " + c.screen.text())
    need("red circle" in c.say("What colour is it?"), c.screen.text())
    disc(shot, (30, 60, 220))
    need("red circle" in c.say("What colour is it?"), "it became another image: " + c.screen.text())
    need(is_attached(c.say("/image " + shot)), "the new one")
    need("blue circle" in c.say("What is this?"), c.screen.text())
    os.unlink(shot)
    need("blue circle" in c.say("What is this?"), "its file is gone: " + c.screen.text())
    need("No such file" in c.say("/image " + shot), "a file that is gone")
    c.say("/clear")
    need(re.search(r"context +0 of", c.say("/show")), "a new conversation is empty: " + c.screen.text())
    need("circle" not in c.say("Hello!"), "seen after /clear")


def images_wait(chat):
    """what goes with a question that fails is not lost, unless it is why"""
    c = chat(PEBBLE, "--no-think", "--temp", "0", "-c", "300")
    shot, other = disc(os.path.join(c.home, "red.ppm"), (220, 30, 30)), disc(os.path.join(c.home, "blue.ppm"), (30, 60, 220))
    c.say("/image " + shot)
    c.say("What is this?")
    c.say("/save ~/chat.json")
    os.unlink(shot)
    c.say("/load ~/chat.json")
    c.say("/image " + other)
    out = c.say("What is this?")
    need("red.ppm: No such file" in out and "stay attached to the next message" in out, out)
    disc(shot, (220, 30, 30))
    need("blue circle" in c.say("What is this?"), c.screen.text())
    for _ in range(5):
        c.say("/image " + other)
    out = c.say("What is this?")
    need("the context holds 300" in out and "dropped" in out, out)
    need("circle" in c.say("What is this?"), "they are still there: " + c.screen.text())


def main():
    edits = subprocess.run([BEZEL, "doctor", "--json"], capture_output=True, env={**os.environ, "BEZEL_WEBGPU_LIB": "/nowhere"}, timeout=60)
    edits = json.loads(edits.stdout)["line_editing"] is not None
    case("a chat without editing", dumb)
    if edits:
        for name, run in (("a conversation", talk), ("thinking", thinking), ("escapes of a model", safe), ("reuse", reuse),
                          ("line editing", editing), ("another locale", other_locale), ("history", recall), ("several lines", several_lines),
                          ("pasted text", pasting), ("the window's size", window), ("commands", commands), ("saving and loading", saving),
                          ("Ctrl-C", stopping), ("quitting", ending), ("Ctrl-Z and back", suspended), ("a full context", full), ("a context that shifts", shifting), ("lines of words", wrapping), ("Ollama's commands and messages", as_in_ollama),
                          ("answers written to a file", apart), ("progress", progress), ("images in a chat", images),
                          ("images of questions that fail", images_wait)):
            case(name, run)
    shutil.rmtree(top)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
