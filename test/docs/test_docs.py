"""The documents say what the code and the results say. Needs pytest alone, and nc_info where it is
built: $NC_INFO, or the one installed in ${CUDA_NC_LOCAL:-.local}/install, or in a build tree.
"""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCAL = pathlib.Path(os.environ.get("CUDA_NC_LOCAL", ROOT / ".local"))
SETTINGS = ROOT / "docs/manual/settings.md"
RESULTS = ROOT / "bench/results"
README_LINES = 120


def documents():
    """Every Markdown file of the repository, but not of build trees in it."""
    unwanted = {".local", ".git", "node_modules"}
    return sorted(path for path in ROOT.rglob("*.md")
                  if not any(part in unwanted or part.startswith("build")
                             for part in path.relative_to(ROOT).parts[:-1]))


def name_of(path):
    return str(path.relative_to(ROOT))


def without_code(text):
    """Blocks and spans of code hold no links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"^    .*$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """The anchors that GitHub gives the headings of a file."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    found = {}
    result = set()
    for heading in re.findall(r"^#+ +(.*?) *#*$", text, flags=re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = found.get(anchor, 0)
        found[anchor] = number + 1
        result.add(f"{anchor}-{number}" if number else anchor)
    return result


def links(path):
    for target in re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", without_code(path.read_text())):
        if not re.match(r"[a-z]+:", target):
            yield target


def nc_info():
    given = os.environ.get("NC_INFO")
    candidates = [pathlib.Path(given)] if given else [
        LOCAL / "install/bin/nc_info", *sorted(LOCAL.glob("*/nc_info"))]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    return None


@pytest.fixture(scope="module")
def printed_settings():
    program = nc_info()
    if program is None:
        pytest.skip("nc_info is not built; contrib/setup.sh builds it")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
    run = subprocess.run([program, "--settings", "--markdown"], env=environment, text=True,
                         capture_output=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


def setting_names(text):
    return re.findall(r"^\| `([A-Z_]+)` \|", text, flags=re.M)


def test_settings_tables_are_those_of_the_code(printed_settings):
    assert SETTINGS.read_text() == printed_settings, (
        f"make it again: {nc_info()} --settings --markdown > {name_of(SETTINGS)}")


def test_settings_of_the_readme_are_in_the_table():
    of_readme = setting_names((ROOT / "README.md").read_text())
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (.*?) ?\|", SETTINGS.read_text(), flags=re.M))
    assert of_readme
    for name, value in re.findall(r"^\| `([A-Z_]+)` \| (.*?) ?\|", (ROOT / "README.md").read_text(),
                                  flags=re.M):
        assert rows.get(name) == value, f"{name}: default {value}, in the table {rows.get(name)}"


def test_settings_named_in_documents_exist():
    known = set(setting_names(SETTINGS.read_text()))
    for path in documents():
        for name in re.findall(r"UCX_CUDA_NC_([A-Z][A-Z_]*[A-Z])\b", path.read_text()):
            assert name in known, f"{name_of(path)}: no setting UCX_CUDA_NC_{name}"


@pytest.mark.parametrize("path", documents(), ids=name_of)
def test_links_lead_somewhere(path):
    dead = []
    for target in links(path):
        file, _, anchor = target.partition("#")
        leads_to = path if not file else (path.parent / file).resolve()
        if not leads_to.exists():
            dead.append(target)
        elif anchor and leads_to.suffix == ".md" and anchor not in anchors(leads_to):
            dead.append(target)
    assert not dead, f"{name_of(path)}: {dead}"


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_results_and_their_index_agree():
    index = RESULTS / "README.md"
    indexed = {target.partition("#")[0] for target in links(index)}
    files = {path.name for path in RESULTS.glob("*.md")} - {"README.md"}
    assert files - indexed == set(), "not in bench/results/README.md"
    assert {name for name in indexed if "/" not in name} - files == set(), "no such results"


def test_results_named_in_the_code_exist():
    for path in [*ROOT.glob("src/**/*"), *ROOT.glob("test/**/*"), *ROOT.glob("bench/*")]:
        if path.suffix not in {".cc", ".cu", ".cuh", ".h", ".hpp", ".py", ".sh"}:
            continue
        for name in re.findall(r"results/(\d{4}-\d\d-\d\d-[\w-]+\.md)", path.read_text()):
            assert (RESULTS / name).exists(), f"{name_of(path)}: {name}"


@pytest.mark.parametrize("script", sorted((ROOT / "docs/figures").glob("*.py")), ids=name_of)
def test_figures_are_those_of_their_scripts(script):
    drawn = subprocess.run([sys.executable, script, "--print"], text=True, capture_output=True,
                           timeout=60, check=True)
    assert script.with_suffix(".svg").read_text() == drawn.stdout, f"run {name_of(script)}"
