"""Rules that a compiler does not check: which folder may include which, that the program uses the
library through its public headers only, and that src/model records steps instead of computing."""
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
case("src/model has files to check", [] if len(files) >= 6 else ["too few"])
case("src/model holds no float pointer and no array of floats",
     [f"{at}: {l.strip()}" for at, l in lines("src/model/*.[ch]") if re.search(r"\bfloat\s*\*|\bfloat\s+\w+\s*\[", l)])

# folder of src: folders it may include from (data flows one way)
ENGINE = {"base", "file", "text", "plan", "model", "cpu", "gpu", "media", "sample", "grammar"}
MAY = {
    "base": {"base"},
    "file": {"base", "file"},
    "text": {"base", "file", "text"},
    "plan": {"base", "file", "plan", "sample"},
    "model": {"base", "file", "plan", "model"},
    "cpu": {"base", "file", "plan", "cpu"},
    "media": {"base", "media"},
    "sample": {"base", "sample"},
    "grammar": {"base", "grammar"},
    "gpu": {"base", "file", "plan", "sample", "gpu"},
    "session": ENGINE | {"session"},
    "encoder": ENGINE | {"session", "encoder"},
    "api": ENGINE | {"session", "encoder", "api"},
    "wasm": {"base", "media", "text", "session", "encoder", "api", "wasm"},
}
case("every folder of src has a rule", sorted(set(os.listdir("src")) ^ set(MAY)))
# The program: public headers (which have no folder), base, and its own folders.
PROGRAM = {
    "cli": {"base", "cli", "server", "store"},
    "server": {"base", "server", "store"},
    "store": {"base", "store"},
}


def private_includes(root, allowed):
    """includes of a header that is neither public nor in an allowed folder"""
    public = {os.path.basename(h) for h in glob.glob("include/*.h")}
    for at, l in lines(f"{root}/**/*.[ch]"):
        m = re.match(r'\s*#include "(?:(\w+)/)?([^"]*)"', l)
        if m and (m.group(1) not in allowed if m.group(1) else m.group(2) not in public):
            yield f"{at}: {l.strip()}"


for root, allowed in [(f"src/{folder}", may) for folder, may in MAY.items()] + list(PROGRAM.items()):
    case(f"{root} includes only public headers and {', '.join(sorted(allowed))}", list(private_includes(root, allowed)))

# inside src/gpu: headers of src/gpu that the files of a folder may include. lower computes lists of dispatches: of the
# device it sees types only, of the kernels the catalog.
GPU_MAY = {
    "device": ["gpu/device/"],
    "kernels": ["gpu/kernels/"],
    "lower": ["gpu/lower/", "gpu/device/gpu.h", "gpu/kernels/catalog.h", "gpu/kernels/layout.h", "gpu/kernels/params.h"],
    "run": ["gpu/"],
}
case("every folder of src/gpu has a rule", sorted({d for d in os.listdir("src/gpu") if os.path.isdir("src/gpu/" + d)} ^ set(GPU_MAY)))
for folder, allowed in GPU_MAY.items():
    case(f"src/gpu/{folder} includes of src/gpu only {', '.join(allowed)}",
         [f"{at}: {l.strip()}" for at, l in lines(f"src/gpu/{folder}/**/*.[ch]")
          if re.match(r'\s*#include "gpu/', l) and not any(l.strip().startswith(f'#include "{a}') for a in allowed)])
case("src/gpu/device includes only base and itself",
     [f"{at}: {l.strip()}" for at, l in lines("src/gpu/device/*.[ch]") if re.match(r'\s*#include "(?!base/|gpu/device/)\w+/', l)])
case("src/gpu/lower calls no function of a device",
     [f"{at}: {l.strip()}" for at, l in lines("src/gpu/lower/*.c")
      if re.search(r"\bgpu_(limits_of|state_of|buffer_\w+|write|copy|pipeline\w*|list_\w+|replay\w*|read\w*|signal\w*)\s*\(", l)
      and not re.search(r"\bgpu_read_partial_sums\s*\(", l)])

# System calls are in os_*.c. Everywhere else there are headers of C11, of processors and of the program's libraries; and
# no call that these have on some systems only, or that needs a path or a text of the system.
STANDARD = {"assert", "ctype", "errno", "float", "inttypes", "limits", "locale", "math", "setjmp", "signal", "stdalign", "stdarg",
            "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "strings", "time", "wchar"}
PROCESSORS = {"immintrin", "arm_neon", "wasm_simd128"}
LIBRARIES = {"cli/media": r"gif_lib|jpeglib|jerror|png|sndfile|webp/\w+|lib(av\w+|swscale)/\w+", "store": r"curl/curl"}
CALLS = (r"(?<![\w.>])(fopen|fdopen|freopen|fileno|remove|rename|popen|fseeko|ftello|open_memstream|getline|getc_unlocked|getenv|setenv|"
         r"realpath|aligned_alloc|posix_memalign|strndup|memmem|clock_gettime|nanosleep|gmtime(_r|_s)?|localtime(_r|_s)?|timegm|strptime|"
         r"signal|sigaction|raise|kill|__builtin_cpu_supports)\s*\(")


def outside(root):
    return ((at, l) for at, l in lines(f"{root}/**/*.[ch]") if not os.path.basename(at.split(":")[0]).startswith("os_")
            and not re.match(r"\s*(/?\*|//)", l))


for root in ("src", "server", "store", "cli"):
    found = [(at, m.group(1)) for at, l in outside(root) for m in [re.match(r"\s*#include <(.*)\.h>", l)] if m]
    allowed = STANDARD | (PROCESSORS if root == "src" else set())
    case(f"{root} includes headers of systems in os_* only",
         [f"{at}: <{h}.h>" for at, h in found if h not in allowed
          and not any(at.startswith(f) and re.fullmatch(x, h) for f, x in LIBRARIES.items())])
    case(f"{root} makes system calls in os_* only",
         [f"{at}: {l.strip()}" for at, l in outside(root) if re.search(CALLS, re.sub(r'"(\\.|[^"\\])*"', '""', l))])
case("the library prints nothing and never exits",
     [f"{at}: {l.strip()}" for at, l in lines("src/**/*.c") if re.search(r"\b(printf|puts|fprintf|exit|abort)\s*\(", l)])
sys.exit(failed)
