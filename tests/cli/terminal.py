"""A program in a pseudo terminal: keys in, the screen as a user sees it out.

The emulator implements the xterm sequences that libedit and Bezel send. Any other sequence is collected in
`unknown`, which the tests check to be empty.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from progress import Progress  # noqa: E402


class Screen:
    def __init__(self, rows, cols):
        self.rows, self.cols = rows, cols
        self.lines = [[" "] * cols]       # with the scrollback; the last `rows` are visible
        self.joined = [False]             # lines that continue the one before, which was full
        self.x = self.y = 0               # y counts from the first line of all
        self.dim = []                     # texts that were written dimmed
        self.is_dim = False
        self.paste_mode = False
        self.rest = b""
        self.unknown = []

    def top(self):
        return max(0, len(self.lines) - self.rows)

    def resize(self, rows, cols):
        """wraps lines again, as most terminals do; the cursor stays on its character"""
        whole, at = [], None
        for y, line in enumerate(self.lines):
            if self.joined[y]:
                whole[-1] += line
            else:
                whole.append(list(line))
            if y == self.y:
                at = (len(whole) - 1, len(whole[-1]) - self.cols + self.x)
        self.rows, self.cols = rows, cols
        self.lines, self.joined = [], []
        for i, line in enumerate(whole):
            while line and line[-1] == " " and not (i == at[0] and len(line) <= at[1]):
                line.pop()
            for k in range(0, max(1, len(line)), cols):
                if i == at[0] and k <= at[1]:
                    self.y, self.x = len(self.lines), at[1] - k
                self.lines.append((line[k:k + cols] + [" "] * cols)[:cols])
                self.joined.append(k > 0)

    def down(self, joined=False):
        self.y += 1
        if self.y == len(self.lines):
            self.lines.append([" "] * self.cols)
            self.joined.append(joined)

    def put(self, c):
        width = 2 if unicodedata.east_asian_width(c) in "WF" else 1
        if self.x + width > self.cols:
            self.x = 0
            self.down(joined=True)
            self.joined[self.y] = True
        self.lines[self.y][self.x] = c
        if width == 2:
            self.lines[self.y][self.x + 1] = ""
        self.x += width
        if self.is_dim:
            self.dim.append(c)

    def control(self, params, final):
        n = int(params) if params.isdigit() else 1
        if final == "A":
            self.y = max(self.top(), self.y - n)
        elif final == "B":
            self.y = min(len(self.lines) - 1, self.y + n)
        elif final == "C":
            self.x = min(self.cols - 1, self.x + n)
        elif final == "D":
            self.x = max(0, self.x - n)
        elif final == "G":
            self.x = n - 1
        elif final == "H":
            y, x = ([int(p or 1) for p in (params + ";").split(";")[:2]] if params else (1, 1))
            self.y, self.x = self.top() + y - 1, x - 1
        elif final == "J":
            for y in range(self.y + (params != "2"), len(self.lines)):
                self.lines[y] = [" "] * self.cols
            if params == "2":
                self.lines[self.top():] = [[" "] * self.cols for _ in self.lines[self.top():]]
            else:
                self.lines[self.y][self.x:] = [" "] * (self.cols - self.x)
        elif final == "K":
            self.lines[self.y][self.x:] = [" "] * (self.cols - self.x)
        elif final == "P":
            line = self.lines[self.y]
            del line[self.x:self.x + n]
            line += [" "] * (self.cols - len(line))
        elif final == "@":
            line = self.lines[self.y]
            line[self.x:self.x] = [" "] * n
            del line[self.cols:]
        elif final == "m":
            self.is_dim = params == "2"
        elif params == "?2004":
            self.paste_mode = final == "h"
        else:
            self.unknown.append(params + final)

    def feed(self, data):
        data = self.rest + data
        self.rest = b""
        text = data.decode("utf-8", "surrogateescape")
        tail = re.search(r"[\udc80-\udcff]{1,3}$|\x1b(\[[0-9;?]*)?$", text)
        if tail:
            self.rest = tail.group(0).encode("utf-8", "surrogateescape")
            text = text[:tail.start()]
        for m in re.finditer(r"\x1b\[([0-9;?]*)([@-~])|\x1b(.)|(.)", text, re.S):
            params, final, other, c = m.groups()
            if final:
                self.control(params, final)
            elif other:
                self.unknown.append("ESC " + other)
            elif c == "\r":
                self.x = 0
            elif c == "\n":
                self.down()
            elif c == "\b":
                self.x = max(0, self.x - 1)
            elif c == "\t":
                self.x = min(self.cols - 1, self.x // 8 * 8 + 8)
            elif c == "\a":
                pass
            elif ord(c) < 32:
                self.unknown.append(repr(c))
            else:
                self.put(c)

    def text(self):
        """the scrollback and the screen, without trailing blanks"""
        return "\n".join("".join(line).rstrip() for line in self.lines).rstrip("\n")

    def last(self):
        """the line where the cursor is"""
        return "".join(self.lines[self.y]).rstrip()


class Terminal:
    """with Terminal([...]) as t: t.wait(">>> "); t.type("hello\\r")"""

    def __init__(self, command, rows=24, cols=80, env=None, stdout=None):
        self.screen = Screen(rows, cols)
        self.raw = b""
        self.seen = 0                     # of the text, for wait
        whole = {k: v for k, v in {**os.environ, **(env or {})}.items() if v is not None}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                if stdout is not None:
                    os.dup2(stdout, 1)
                os.execve(command[0], command, whole)
            finally:
                os._exit(127)             # exec failed: the child must not run the test
        self.size(rows, cols)
        self.status = None

    def size(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        self.screen.resize(rows, cols)

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:               # the other side is closed
                data = b""
            if data:
                self.raw += data
                self.screen.feed(data)
                return True
        return False

    def until(self, ready, what):
        """reads until ready(), as long as the program makes progress"""
        progress = Progress(self.pid)
        while not ready():
            printed = self.read(0.05)
            if not printed and self.ended() and not self.read(0):
                if ready():
                    return
                raise AssertionError(f"it exited before {what}; the screen:\n{self.screen.text()}")
            problem = progress.problem(printed)
            if problem:
                raise AssertionError(f"no {what}: {problem}; the screen:\n{self.screen.text()}")

    def prompt(self, prompt=">>>"):
        """waits for the prompt"""
        self.until(lambda: self.screen.paste_mode and self.screen.last().startswith(prompt.strip()), what=f"prompt {prompt}")
        self.settle()

    def settle(self, quiet=0.03):
        while self.read(quiet):
            pass

    def type(self, keys):
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            data = data[os.write(self.fd, data[:512]):]

    def ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def finish(self):
        """waits for the exit; -> the status, as a shell reports it"""
        progress = Progress(self.pid)
        while not self.ended():
            problem = progress.problem(self.read(0.02))
            if problem:
                raise AssertionError(f"it did not exit: {problem}; the screen:\n{self.screen.text()}")
        while self.read(0):
            pass
        return os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else 128 + os.WTERMSIG(self.status)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
