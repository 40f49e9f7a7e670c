"""The house's rules that a compiler does not check: who may include whom, and that the model records
steps instead of touching numbers."""
import glob
import os
import re
import sys

failed = False


def case(name, problems):
    global failed
    for p in problems:
        print("  " + p)
    print(("FAIL " if problems else "ok ") + name)
    failed |= bool(problems)


def lines(pattern):
    for path in sorted(glob.glob(pattern, recursive=True)):
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                yield f"{path}:{number}", line


files = glob.glob("src/model/*.[ch]")
case("src/model has files to look at", [] if len(files) >= 6 else ["too few"])
case("src/model holds no float pointer and no array of floats",
     [f"{at}: {l.strip()}" for at, l in lines("src/model/*.[ch]") if re.search(r"\bfloat\s*\*|\bfloat\s+\w+\s*\[", l)])

# folder: folders it may include from (data flows one way)
ENGINE = {"base", "file", "text", "plan", "model", "cpu", "gpu", "media", "sample"}
MAY = {
    "base": {"base"},
    "file": {"base", "file"},
    "text": {"base", "file", "text"},
    "plan": {"base", "file", "plan", "sample"},
    "model": {"base", "file", "plan", "model"},
    "cpu": {"base", "file", "plan", "cpu"},
    "media": {"base", "media"},
    "sample": {"base", "sample"},
    "gpu": {"base", "file", "plan", "sample", "gpu"},
    "session": ENGINE | {"session"},
    "encoder": ENGINE | {"session", "encoder"},
    "api": ENGINE | {"session", "encoder", "api"},
    "wasm": {"base", "media", "text", "session", "encoder", "api", "wasm"},
}
case("every folder of src has a rule", sorted(set(os.listdir("src")) ^ set(MAY)))
for folder, allowed in MAY.items():
    bad = []
    for at, l in lines(f"src/{folder}/**/*.[ch]"):
        m = re.match(r'\s*#include "(\w+)/', l)
        if m and m.group(1) not in allowed:
            bad.append(f"{at}: {l.strip()}")
    case(f"src/{folder} includes only {', '.join(sorted(allowed))}", bad)

calls = r"\b(mmap|open|fopen|pthread_\w+|syscall|getenv|clock_gettime|sysconf)\s*\("
case("only src/base/os_posix.c makes system calls",
     [f"{at}: {l.strip()}" for at, l in lines("src/**/*.c") if "os_posix.c" not in at and re.search(calls, l)])
case("the library prints nothing and never exits",
     [f"{at}: {l.strip()}" for at, l in lines("src/**/*.c") if re.search(r"\b(printf|puts|fprintf|exit|abort)\s*\(", l)])
more_calls = r"\b(socket|poll|send|recv|sendfile|read|write|close|openat|stat|fstat|signal|time)\s*\("
case("of the server os_posix.c alone makes system calls",
     [f"{at}: {l.strip()}" for at, l in lines("server/*.c") if "os_posix.c" not in at and (re.search(calls, l) or re.search(more_calls, l))])
case("the server includes only base and its own folder",
     [f"{at}: {l.strip()}" for at, l in lines("server/*.[ch]") if re.match(r'\s*#include "(?!base/|server/)\w+/', l)])
sys.exit(failed)
