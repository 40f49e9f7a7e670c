"""Words of the glossary (docs/GLOSSARY.md) instead of the ones it replaced: those must not come back."""
import re
import subprocess
import sys

# pattern: the word to use
REPLACED = {
    r"\beights\b": "int8",
    r"\bwhat is no number\b": "NaN",
    r"\bheeds\b": "applies, obeys",
    r"\bforetells?\b": "predicts",
    r"\bmislead\w*\b": "test_override",
    r"\bleaves? away\b|\bleft away\b": "omit",
    r"\b(tells?|told) \w+ apart\b|\btells? apart\b": "distinguish",
    r"\bbz_wish\b|\bwishes of\b": "request",
    r"\brow_left\b": "logits_on_device",
    r"\bin_return\b": "recomputing",
    r"\bMUCH\b": "PAIR_BASE",
    r"\bbehind\b": "after, past the end of",
    r"\bstretch(es)?\b": "range, run",
    r"\bunder way\b": "in flight",
    r"\bat hand\b": "current",
    r"\beyes and ears\b": "vision and audio",
    r"\bMOST_\w+": "MAX_",
    r"\bas if nothing had been\b": "with the same result",
    r"(?i)quantis(e|i|a)|initialis(e|i|a)|recognis(e|i|a)|normalis(e|i|a)|tokenis(e|i|a)": "-ize (American spelling)",
}
# Texts for training and vocabularies are data; the glossary lists the words.
DATA = ("models/", "tests/golden/", "tests/fuzz/corpus/", "tools/pebble/", "tools/gemma4_vocab.py", "docs/GLOSSARY.md", "tests/source/test_language.py")
TEXT = (".c", ".h", ".wgsl", ".py", ".sh", ".ts", ".js", ".mjs", ".md", ".mk", "Makefile", ".html", ".css", ".1", ".3")


def main():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    files = [f for f in listed if f.endswith(TEXT) and not f.startswith(DATA)]
    if len(files) < 300:
        return f"only {len(files)} files were found"
    found = 0
    for path in files:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                for pattern, word in REPLACED.items():
                    if re.search(pattern, line):
                        print(f"  {path}:{number}: {re.search(pattern, line).group(0)!r}: write {word}")
                        found += 1
    return f"{found} places" if found else ""


problem = main()
print(f"FAIL the tree uses the glossary's words: {problem}" if problem else "ok the tree uses the glossary's words")
sys.exit(bool(problem))
