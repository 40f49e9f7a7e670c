"""Runs the code cells of a notebook in order, in one program, and compares what they print with what the notebook shows.

  run_notebook.py NOTEBOOK.ipynb            compares
  run_notebook.py NOTEBOOK.ipynb --write    writes what they print into it, after a change
"""
import contextlib
import io
import json
import sys


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as f:
        notebook = json.load(f)
    if (notebook["nbformat"], notebook["nbformat_minor"]) != (4, 5):
        sys.exit("FAIL the notebook is not of format 4.5")
    scope = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), scope)  # pylint: disable=exec-used
        text = out.getvalue()
        if "--write" in sys.argv:
            cell["execution_count"] = number
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text.splitlines(True)}] if text else []
        shown = "".join("".join(o["text"]) for o in cell["outputs"])
        if shown != text:
            sys.exit(f"FAIL cell {number} prints {text!r}; the notebook shows {shown!r}")
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as f:
            json.dump(notebook, f, indent=1, ensure_ascii=False)
            f.write("\n")
    print(f"ok {len(cells)} cells")


main()
