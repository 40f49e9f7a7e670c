"""All C sources are as `make format` leaves them: Debian 12's clang-format 14 with .clang-format."""
import re
import shutil
import subprocess
import sys

VERSION = "14"


def main():
    tool = next(filter(None, (shutil.which(n) for n in (f"clang-format-{VERSION}", "clang-format"))), None)
    if not tool:
        return "clang-format is missing: sh tools/setup.sh test"
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    if not re.search(rf"\bversion {VERSION}\.", version):
        return f"clang-format {VERSION} is needed, other versions format differently: {version.strip()}"
    files = subprocess.run(["git", "ls-files", "*.c", "*.h"], capture_output=True, text=True, check=True).stdout.split()
    if len(files) < 100:
        return f"only {len(files)} files were found"
    p = subprocess.run([tool, "--dry-run", "-Werror", *files], capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+:\d+):\d+: error", p.stderr, re.M)))
    for place in wrong:
        print(f"  {place}: not formatted, run `make format`")
    return f"{len(wrong)} places" if p.returncode else ""


problem = main()
print(f"FAIL C sources are formatted: {problem}" if problem else "ok C sources are formatted")
sys.exit(bool(problem))
