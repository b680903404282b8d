#!/usr/bin/env python3
"""For check.sh: GoogleTest programs in even parts, and their results as lines.

usage: gtest_lines.py split PROGRAM PARTS PREFIX
           writes PREFIX-0, PREFIX-1, ...: a flag file for each part
       gtest_lines.py read JSON LOG STATUS
           prints "PASS name", "FAIL name", "SKIP name: reason"
"""
import json
import os
import re
import subprocess
import sys


def split(program, parts, prefix):
    # Flag files, not GoogleTest's own shards: those would reach programs that the tests start.
    listing = subprocess.run([program, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True,
                             check=True, timeout=60).stdout
    names, suite = [], ""
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if line.startswith("  "):
            if "DISABLED_" not in suite + name:
                names.append(suite + name.strip())
        elif re.fullmatch(r"\S+\.", name):
            suite = name
    for part in range(parts):
        with open(f"{prefix}-{part}", "w") as file:
            file.write("--gtest_filter=" + ":".join(names[part::parts]) + "\n")


def read(results, log, status):
    if os.path.exists(results):
        with open(results) as file:
            suites = json.load(file)["testsuites"]
        for suite in suites:
            for test in suite["testsuite"]:
                name = f'{suite["name"]}.{test["name"]}'
                if test.get("result") == "SKIPPED":
                    reasons = [s.get("message", "") for s in test.get("skipped", [])]
                    reason = " ".join(" ".join(reasons).split("\n")[1:]).strip()
                    print(f"SKIP {name}: {reason or reason_in(log, name)}")
                elif test.get("result") == "COMPLETED":
                    print(("FAIL " if test.get("failures") else "PASS ") + name)
        return
    # It has crashed or hung: the log says how far it came.
    running = None
    with open(log, errors="replace") as file:
        for line in file:
            match = re.match(r"\[ RUN      \] (\S+)", line)
            if match:
                running = match.group(1)
            match = re.match(r"\[ {7}OK \] (\S+)|\[  (FAILED|SKIPPED)  ?\] (\S+)", line)
            if match and running:
                word = {"FAILED": "FAIL", "SKIPPED": "SKIP"}.get(match.group(2), "PASS")
                print(f"{word} {running}" + (": see the log" if word == "SKIP" else ""))
                running = None
    how = "timeout" if status in (124, 137) else f"ended by status {status}"
    print(f"FAIL {running or os.path.basename(log)} ({how})")


def reason_in(log, name):
    """What the test itself said: GoogleTest before 1.14 writes it to the log alone."""
    with open(log, errors="replace") as file:
        lines = file.read().splitlines()
    running = None
    for before, after in zip(lines, lines[1:]):
        match = re.match(r"\[ RUN      \] (\S+)", before)
        running = match.group(1) if match else running
        if running == name and before.endswith(": Skipped") and after.strip():
            return after.strip()
    return "no reason given"


if len(sys.argv) != 5 or sys.argv[1] not in ("split", "read"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
if sys.argv[1] == "split":
    split(sys.argv[2], int(sys.argv[3]), sys.argv[4])
else:
    read(sys.argv[2], sys.argv[3], int(sys.argv[4]))
