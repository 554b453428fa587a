# SPDX-License-Identifier: MIT
"""Man pages, sample configuration, schema and README against the sources."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
BUILD = os.environ.get("NODEPREP_BUILD", os.path.join(ROOT, "build"))
NODEPREP = os.path.join(BUILD, "nodeprep")
MAN = os.path.join(ROOT, "docs", "man")
PAGES = {"nodeprep.8": "man8", "nodeprep.conf.5": "man5", "nodeprep-codes.7": "man7",
         "nodeprep-ranks.1": "man1"}
SIM = os.path.join(ROOT, "tests", "sim")
VERBS = ("apply", "plan", "check", "selftest", "show", "revert", "confirm")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, timeout=120, check=False)


# ---- codes ----

SOURCES = sorted(path for room in ("base", "netlink", "ibmad", "modules", "agent", "selftest")
                 for path in glob.glob(os.path.join(ROOT, room, "*.c")))
# "port.no_sm" and "selftest.%s.memlock", as a whole literal
DOTTED = re.compile(r'"([a-z][a-z0-9_]*(?:\.(?:%s|[a-z0-9_]+))+)"')
NO_CODE = re.compile(r"\.(json|conf|c|h|a|txt|cfg|so(?:\.[0-9]+)*|sh|csh|env|posix_acl|1|2|builtin|dep)$")
ENGINE = "selftest.%s.%s"


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def action_ids():
    body = re.search(r"\*np_action_id\(.*?\n}", read("agent", "action.c"), re.S).group(0)
    return set(DOTTED.findall(body))


def engine_words():
    """The last part of the codes that selftest/ucp_link.c makes for any rung."""
    text = without_comments(read("selftest", "ucp_link.c"))
    words = set(re.findall(r'set_code\(spec, "(\w+)"', text))
    words |= set(re.findall(r'\bwhat = "(\w+)"', text))
    assert "ucx" in words
    return words


def source_codes():
    codes, patterns, engine_rungs = set(), set(), set()
    # file that makes codes for the rung that it is told: how it is told
    told = {"uverbs.c": r'np_uverbs_check\("(\w+)"', "memlock.c": r'np_memlock_error\("(\w+)"',
            "wanted.c": r'(?:np_run_wanted|np_port_is_active)\("(\w+)"'}
    rungs_of = {name: set() for name in told}
    for path in SOURCES:
        with open(path, encoding="utf-8") as file:
            text = without_comments(file.read())
        engine_rungs |= set(re.findall(r'\.rung = "(\w+)"', text))
        for name, call in told.items():
            rungs_of[name] |= set(re.findall(call, text))
        if path.endswith("agent/action.c"):
            continue
        for literal in DOTTED.findall(text):
            if NO_CODE.search(literal):
                continue
            if "%s" in literal:
                patterns.add((literal, os.path.basename(path)))
            else:
                codes.add(literal)
    assert engine_rungs and all(rungs_of.values())
    rungs_of["memlock.c"] |= engine_rungs
    # packets for management go where no data does
    no_codes = {"selftest.umad.port_not_active"}
    for pattern, path in patterns:
        for rung in rungs_of.get(path, engine_rungs):
            if "%s" in pattern and pattern % ((rung,) * pattern.count("%s")) in no_codes:
                continue
            if pattern == ENGINE:
                codes |= {pattern % (rung, word) for word in engine_words()}
            else:
                codes.add(pattern % rung)
    # those of the Ansible module itself
    for name in ("modules/nodeprep.py", "module_utils/document.py"):
        codes |= set(re.findall(r'"(ansible\.[a-z_]+)"', read("packaging", "ansible", "plugins", name)))
    # an error that has no code of its own
    assert '"internal"' in read("agent", "report.c")
    codes.add("internal")
    return codes


def page_codes():
    return re.findall(r"^\.It Ic (\S+)$", read("docs", "man", "nodeprep-codes.7"), re.M)


def test_each_code_of_the_sources_is_in_the_page():
    assert sorted(source_codes() - set(page_codes())) == []


def test_each_code_of_the_page_is_in_the_sources():
    assert sorted(set(page_codes()) - source_codes()) == []


def test_each_code_is_listed_once_with_text():
    codes = page_codes()
    assert sorted(codes) == sorted(set(codes))
    items = re.split(r"^\.It Ic ", read("docs", "man", "nodeprep-codes.7"), flags=re.M)[1:]
    for item in items:
        code, kind, meaning = item.split("\n")[:3]
        assert kind.startswith(".Pq ") and meaning and not meaning.startswith("."), code
        if "fail" in kind or "warn" in kind:
            assert "\n.Em Cause :\n" in item and "\n.Em Fix :\n" in item, code


def test_action_ids_are_in_the_man_page_and_the_schema():
    ids = action_ids()
    assert len(ids) >= 7
    schema = json.loads(read("docs", "nodeprep.schema.json"))
    assert set(schema["definitions"]["action"]["properties"]["id"]["enum"]) == ids
    page = read("docs", "man", "nodeprep.8")
    assert [name for name in sorted(ids) if name not in page] == []


def test_check_ids_are_in_the_schema():
    ids = set()
    for path in SOURCES:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        ids |= set(re.findall(r'np_checks_add\(\s*[^,]+,\s*"(\w+)"', text))
        ids |= set(re.findall(r'json_pack\([^;]*"id", "(\w+)"', text))
    schema = json.loads(read("docs", "nodeprep.schema.json"))
    assert set(schema["definitions"]["check"]["properties"]["id"]["enum"]) == ids


def test_rungs_are_in_the_schema():
    names = set(re.findall(r'\{ "(\w+)", "[^"]*", \d,\s+np_rung_\w+ \}', read("selftest", "rungs.c")))
    schema = json.loads(read("docs", "nodeprep.schema.json"))
    assert set(schema["definitions"]["rung"]["properties"]["rung"]["enum"]) == names


def test_the_help_and_the_page_name_each_rung():
    schema = json.loads(read("docs", "nodeprep.schema.json"))
    rungs = set(schema["definitions"]["rung"]["properties"]["rung"]["enum"])
    helped = re.search(r"^Rungs.*?\.$", run(NODEPREP, "selftest", "--help").stdout, re.M | re.S)
    assert rungs - set(re.findall(r"\w+", helped.group(0))) == set()
    page = read("docs", "man", "nodeprep.8")
    listed = page[page.index(".It Cm selftest"):page.index(".It Cm show")]
    items = " ".join(re.findall(r"^\.It Cm (.*)$", listed, re.M))
    assert rungs - set(re.findall(r"\w+", items)) == set()


# ---- options ----

def help_options(*verb):
    done = run(NODEPREP, *verb, "--help")
    assert done.returncode == 0, done
    return dict(re.findall(r"^  --([a-z-]+)(?: (\S+))? ", done.stdout, re.M))


def all_options():
    found = help_options()
    for verb in VERBS:
        found.update(help_options(verb))
    assert "ip" in found and "json" in found
    return found


def page_options():
    return set(re.findall(r"^\.It Fl -([a-z-]+)", read("docs", "man", "nodeprep.8"), re.M))


def test_options_of_the_help_and_of_the_page_are_the_same():
    assert page_options() == set(all_options())


def test_each_option_stands_in_the_synopsis_or_is_one_of_all_verbs():
    page = read("docs", "man", "nodeprep.8")
    synopsis = set(re.findall(r"Fl -([a-z-]+)", page[page.index(".Sh SYNOPSIS"):
                                                      page.index(".Sh DESCRIPTION")]))
    assert synopsis == set(all_options()) - set(help_options())


def test_options_of_ranks_are_in_its_page():
    shown = run(os.path.join(BUILD, "nodeprep-ranks"), "--help").stdout
    page = read("docs", "man", "nodeprep-ranks.1")
    named = set(re.findall(r"^  (--[a-z-]+)", shown, re.M)) | {"--help"}
    items = re.findall(r"^\.It (Fl .*)$", page, re.M)
    listed = {"-" + word for item in items for word in re.findall(r"Fl (-[a-z-]+)", item)}
    assert named == listed
    synopsis = page[page.index(".Sh SYNOPSIS"):page.index(".Sh DESCRIPTION")]
    assert {"-" + word for word in re.findall(r"Fl (-[a-z-]+)", synopsis)} == named


def test_arguments_of_options_are_the_same():
    page = read("docs", "man", "nodeprep.8")
    for name, argument in all_options().items():
        line = re.search(r"^\.It Fl -%s(.*)$" % name, page, re.M).group(1)
        written = re.sub(r"\b(Oo|Oc|Ns|Ar|No)\b|[\s\[\]]", "", line)
        written = "" if written.startswith(",") else written
        assert written == re.sub(r"[\[\]]", "", argument), name


def test_verbs_of_the_help_and_of_the_page_are_the_same():
    listed = re.findall(r"^  ([a-z]+) ", run(NODEPREP, "--help").stdout, re.M)
    assert tuple(listed) == VERBS
    page = read("docs", "man", "nodeprep.8")
    verbs = page[page.index(".Ss Verbs"):page.index(".Ss Options of apply")]
    assert [v for v in VERBS if "\n.It Cm %s\n" % v not in verbs] == []


# ---- configuration ----

def table_keys():
    keys = re.findall(r'^\t\{ "(\w+)", "([\w.]+)", (?:np_config_)?set_\w+ \},$',
                      read("agent", "config_keys.c"), re.M)
    assert ("netdev", "address") in keys
    return set(keys)


def table_sections():
    text = re.search(r"sections\[\] = \{(.*?)NULL", read("agent", "config_keys.c"), re.S).group(1)
    return set(re.findall(r'"(\w+)"', text))


def test_each_key_is_in_the_page():
    found, section = set(), None
    for line in read("docs", "man", "nodeprep.conf.5").splitlines():
        head = re.match(r"\.Ss Section (\w+)", line)
        if line.startswith((".Ss", ".Sh")):
            section = head.group(1) if head else None
        key = re.match(r"\.It Ic ([\w.]+)$", line)
        if section and key:
            found.add((section, key.group(1)))
    assert found == table_keys()


def test_each_section_is_in_the_page():
    heads = " ".join(re.findall(r"^\.Ss Sections? (.*)$", read("docs", "man", "nodeprep.conf.5"),
                                re.M))
    words = set(re.findall(r"\w+", heads)) - {"NAME", "and"}
    assert words == table_sections()


def test_modules_of_the_page_are_those_that_are_known():
    known = re.findall(r'^\t\{ "(\w+)", "', read("modules", "module.c"), re.M)
    page = read("docs", "man", "nodeprep.conf.5")
    text = re.sub(r"\s+", " ", page[page.index(".Ss Section module"):page.index(".It Ic require")])
    listed = re.search(r"One kernel module: (.*?)\.", text).group(1)
    assert re.split(r", | or ", listed) == known


SAMPLE_LINE = re.compile(r"^#(\[[a-z].*\]|[A-Za-z_.]+ =.*)$")


def sample():
    """The sample with every key in force, as (section, key, value), and as text."""
    rows, lines, section = [], [], None
    for line in read("etc", "nodeprep.conf").splitlines():
        if not SAMPLE_LINE.match(line):
            assert not line or line.startswith("# "), line
            continue
        line = line[1:]
        lines.append(line)
        if line.startswith("["):
            section = line[1:-1].split()[0]
        else:
            key, value = line.split("=", 1)
            rows.append((section, key.strip(), value.strip()))
    return rows, "\n".join(lines) + "\n"


def test_each_key_is_in_the_sample_once():
    rows, _ = sample()
    # one rung stands for all
    keys = [(section, re.sub(r"^(min_.*\.)\w+$", r"\1RUNG", key)) for section, key, _ in rows]
    assert sorted(keys) == sorted(table_keys())


def test_the_sample_changes_nothing_as_it_is():
    plain = run(NODEPREP, "show", "config", "--json", "--config", "/dev/null")
    done = run(NODEPREP, "show", "config", "--json", "--config",
               os.path.join(ROOT, "etc", "nodeprep.conf"))
    assert done.returncode == 0 and done.stderr == "", done
    assert json.loads(done.stdout) == json.loads(plain.stdout)


def test_the_sample_with_every_key_in_force(tmp_path):
    rows, text = sample()
    path = tmp_path / "all.conf"
    path.write_text(text)
    done = run(NODEPREP, "show", "config", "--json", "--config", str(path))
    assert done.returncode == 0, done
    # each key without effect is warned of, and no other
    said = re.findall(r"\[(\w+)\] (\w+) has no effect", done.stderr)
    later = re.findall(r'\{ "(\w+)", "(\w+)", set_later \}', read("agent", "config_keys.c"))
    assert sorted(said) == sorted(later)
    # and what the sample says is what is in force
    show = json.loads(done.stdout)["show"]["config"]
    rows_in_force = {(row["section"].split()[0], row["key"]): row["value"] for row in show}
    for section, key, value in rows:
        if (section, key) in later or (section, key) == ("nccl", "users"):
            continue
        assert rows_in_force[section, key] == value, (section, key)


def test_the_defaults_of_the_sample():
    """What the sample gives as a default is one: the program says the same without it."""
    show = json.loads(run(NODEPREP, "show", "config", "--json", "--config",
                          "/dev/null").stdout)["show"]["config"]
    rows = {(section, key): value for section, key, value in sample()[0]}
    for row in show:
        if row["key"] != "users":
            assert rows[row["section"], row["key"]] == row["value"], row


# ---- man pages ----

@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
@pytest.mark.parametrize("page", sorted(PAGES))
def test_man_page_is_clean(page, tmp_path):
    # mandoc looks up what the pages refer to
    for name, folder in PAGES.items():
        (tmp_path / folder).mkdir()
        shutil.copy(os.path.join(MAN, name), str(tmp_path / folder))
    done = subprocess.run(["mandoc", "-Tlint", "-Wstyle", os.path.join(MAN, page)],
                          env=dict(os.environ, MANPATH=str(tmp_path)), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_pages_are_those_that_are_installed():
    makefile = read("Makefile")
    assert sorted(os.listdir(MAN)) == sorted(PAGES)
    assert [page for page in PAGES if "docs/man/" + page not in makefile] == []


def test_exit_codes_are_the_same_everywhere():
    header = re.findall(r"NP_EXIT_\w+ = (\d+)", read("agent", "result.h"))
    page = read("docs", "man", "nodeprep.8")
    page = page[page.index(".Sh EXIT STATUS"):page.index(".Sh EXAMPLES")]
    assert re.findall(r"^\.It (\d)$", page, re.M) == header
    assert re.findall(r"^\| (\d) \| ", read("README.md"), re.M) == header


# ---- schema ----

def validator():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(read("docs", "nodeprep.schema.json"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def on_node(ini, *argv):
    done = run(os.path.join(SIM, "simnode"), "--quiet", os.path.join(SIM, "nodes", ini), "--",
               NODEPREP, *argv)
    assert done.returncode not in (125, 126, 127), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("ini, argv", [
    ("guide.ini", ("apply", "--ip", "10.0.0.50/24", "--json")),
    ("guide.ini", ("apply", "--ip", "10.0.0.50/24", "--json", "--no-selftest")),
    ("guide.ini", ("apply", "--dry-run", "--json")),
    ("guide.ini", ("plan", "--json")),
    ("guide.ini", ("selftest", "--json")),
    ("guide.ini", ("--json",)),
    ("guide.ini", ("--json", "frobnicate")),
    ("guide.ini", ("apply", "--json", "--ip", "1")),
    ("sick.ini", ("check", "--json", "--ip", "10.0.0.50/24")),
    ("sick.ini", ("show", "--json")),
    ("dgx.ini", ("show", "--json", "gpus", "modules", "topology")),
    ("c13-rate-unreadable.ini", ("show", "--json", "ports")),
    ("c14-counters.ini", ("show", "--json", "ports")),
    ("c15-other-fabrics.ini", ("show", "--json")),
    ("c25-address-elsewhere.ini", ("apply", "--json", "--ip", "10.0.0.50/24")),
])
def test_documents_fit_the_schema(ini, argv):
    document = on_node(ini, *argv)
    assert list(document)[0] == "schema"
    assert [error.message for error in validator().iter_errors(document)] == []


def objects(value):
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else \
            value if isinstance(value, list) else ():
        yield from objects(child)


def test_the_schema_is_closed():
    """No object takes a member more, but for the counters; none a member less, but for show."""
    check = validator()
    documents = [on_node("dgx.ini", "show", "--json"),
                 on_node("guide.ini", "apply", "--json", "--ip", "10.0.0.50/24")]
    for document in documents:
        assert check.is_valid(document)
        for thing in {tuple(thing): thing for thing in objects(document)}.values():  # one of a kind
            if "port_rcv_data" in thing:
                continue
            thing["surplus"] = 1
            assert not check.is_valid(document), thing
            del thing["surplus"]
            if thing is document.get("show"):
                continue
            for name in list(thing):
                value = thing.pop(name)
                assert not check.is_valid(document), (thing, name)
                thing[name] = value


@pytest.mark.parametrize("change", [
    {"schema": 2}, {"verb": "frobnicate"}, {"ready": "yes"}, {"changed": True},
    {"error": {"code": "x", "message": "m", "hint": ""}, "ready": True},
    {"show": {"ports": []}},
    {"checks": [{"id": "port", "target": "mlx5_0:1", "status": "OK", "code": "port.active",
                 "message": "m", "hint": ""}]},
    {"actions": [{"id": "netdev.link", "target": "ib0", "from": "down", "to": "up",
                  "status": "done"}]},
])
def test_wrong_documents_do_not_fit(change):
    good = {"schema": 1, "verb": "check", "version": "0", "changed": False, "ready": False,
            "actions": [], "checks": [], "selftest": []}
    assert validator().is_valid(good)
    assert not validator().is_valid({**good, **change})


# ---- README and the rest ----

def test_make_targets_of_the_readme_exist():
    makefiles = read("Makefile") + read("tests", "vm", "vm.mk")
    phony = " ".join(re.findall(r"^\.PHONY: (.*)$", makefiles, re.M)).split()
    text = read("README.md") + read("CONTRIBUTING.md") + read("ARCHITECTURE.md")
    named = set(re.findall(r"(?:`|^    |&& |sudo )make ([a-z][a-z-]*)", text, re.M))
    assert {"demo", "test"} <= named
    assert sorted(named - set(phony)) == []


def test_make_variables_of_the_readme_exist():
    makefile = read("Makefile")
    table = read("README.md").split("| variable |")[1].split("\n\n")[0]
    named = re.findall(r"`([A-Z_]+)(?:=1)?`[,| ]", table)
    assert len(named) >= 10
    assert [name for name in named if not re.search(r"\b%s\b" % name, makefile)] == []


def test_options_and_files_of_the_readme_exist():
    text = read("README.md")
    options = set(all_options()) | {"help", "map-by", "mpi", "ntasks-per-node"}  # with the launchers'
    assert sorted(set(re.findall(r"--([a-z][a-z-]+)", text)) - options) == []
    for path in re.findall(r"\]\(([^)]+)\)", text) + re.findall(r"(tests/sim/\S+\.ini)", text):
        assert os.path.exists(os.path.join(ROOT, path)), path


def test_the_readme_shows_what_the_program_prints():
    text = read("README.md")
    shown = re.findall(r"^    \$ tests/sim/simnode (\S+) -- build/nodeprep (.*)\n((?:    .*\n)+)",
                       text, re.M)
    assert len(shown) == 2
    for ini, arguments, lines in shown:
        done = run(os.path.join(SIM, "simnode"), "--quiet", os.path.join(ROOT, ini), "--",
                   NODEPREP, *arguments.split())
        printed = done.stdout.splitlines()
        for line in lines.splitlines():
            if line.strip() != "...":
                assert line[4:] in printed, line


def test_decisions_are_numbered_and_complete():
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "decisions", "*"))):
        name = os.path.basename(path)
        match = re.match(r"(\d{4})-[a-z0-9-]+\.md$", name)
        assert match, name
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert "\n# %s: " % match.group(1) in text, name
        for head in ("Context", "Decision", "Consequences"):
            assert "\n## %s\n" % head in text, name


@pytest.mark.parametrize("path", [
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "NEWS", "etc/nodeprep.conf",
    "docs/nodeprep.schema.json"] + ["docs/man/" + page for page in sorted(PAGES)])
def test_license_line(path):
    assert "SPDX-License-Identifier: MIT" in read(*path.split("/"))[:400]
