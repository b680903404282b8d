#!/usr/bin/env python3
"""What the last run of test_foreign.py found, as a table in Markdown. --all: with each test that is
not the same."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import foreign  # noqa: E402

print("| suite | library | tests | same | of these passed | skipped | vary by themselves | different |")
print("|---|---|---|---|---|---|---|---|")
others = []
for file in sorted(foreign.RESULTS.glob("*.json")):
    result = json.loads(file.read_text())
    verdicts = {name: foreign.verdict(words) for name, words in result["words"].items()}
    same = [result["words"][name]["stock"][0] for name in verdicts if verdicts[name] == "same"]
    numbers = [len(verdicts), len(same), sum(word == "PASS" for word in same),
               sum(word.startswith("SKIP") for word in same),
               *(list(verdicts.values()).count(word) for word in ("varies", "different"))]
    print(f"| {result['suite']} | {result['library']} | " + " | ".join(map(str, numbers)) + " |")
    others += [(result, name) for name in verdicts if verdicts[name] != "same"]
if "--all" in sys.argv:
    for result, name in others:
        print(f"- {result['library']}, {name}: {result['words'][name]}")
