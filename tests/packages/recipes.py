#!/usr/bin/env python3
"""The recipes of packaging/images that no tool here reads, held to the rules that their tools state: the dev container
feature to the schema of devcontainer-feature.json, Apptainer's definition to its manual. Nothing is run but `sh -n`.

usage: recipes.py ROOT, or recipes.py --self-test"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FEATURE = "packaging/images/devcontainer/outboard"
DEFINITION = "packaging/images/client.def"

# devcontainer-feature.json as containers.dev has it: each property with the types that it may have; others are refused.
TEXTS = (list, str)
PROPERTIES = {
    **dict.fromkeys(("id", "version", "name", "description", "documentationURL", "licenseURL", "entrypoint"), str),
    **dict.fromkeys(("init", "privileged", "deprecated"), bool),
    **dict.fromkeys(("capAdd", "securityOpt", "installsAfter", "legacyIds"), TEXTS),
    **dict.fromkeys(("containerEnv", "customizations", "options"), dict),
    "mounts": list,
    **dict.fromkeys(("onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand",
                     "postAttachCommand"), (str, list, dict)),
}
REQUIRED = ("id", "version", "name")
OPTION = {"boolean": (bool, {"type", "default", "description"}),
          "string": (str, {"type", "default", "description", "enum", "proposals"})}

SCRIPTS = ("pre", "setup", "environment", "post", "runscript", "startscript", "test")
SECTIONS = (*SCRIPTS, "files", "labels", "help", "arguments")
HEADER = {"docker": ("Bootstrap", "From", "Stage", "Registry", "Namespace", "Fingerprints")}


def is_of(value, wanted):
    if wanted is TEXTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, wanted)


def parses(script):
    return subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True).stderr.strip()


def option_problems(name, option, script):
    if option.get("type") not in OPTION:
        yield f"option {name}: type is boolean or string"
        return
    wanted, allowed = OPTION[option["type"]]
    if not is_of(option.get("default"), wanted):
        yield f"option {name}: it needs a default of its type"
    for key in sorted(set(option) - allowed):
        yield f"option {name}: it may not have {key}"
    if {"enum", "proposals"} <= set(option):
        yield f"option {name}: enum and proposals exclude each other"
    for key in ("enum", "proposals"):
        if key in option and not is_of(option[key], TEXTS):
            yield f"option {name}: {key} is a list of texts"
    variable = re.sub(r"[^\w]", "_", name).upper()
    if not re.search(rf"\${{?{variable}\b", script):
        yield f"option {name}: install.sh does not read ${variable}"


def feature_problems(folder, version):
    feature = json.loads((folder / "devcontainer-feature.json").read_text())
    install = folder / "install.sh"
    script = install.read_text()
    for key in REQUIRED:
        if key not in feature:
            yield f"it lacks {key}"
    for key, value in feature.items():
        if key not in PROPERTIES:
            yield f"the schema has no {key}"
        elif not is_of(value, PROPERTIES[key]):
            yield f"{key} is of a wrong type"
    if feature.get("id") != folder.name:
        yield f"id is the name of the folder, {folder.name}"
    if feature.get("version") != version:
        yield f"version is not the project's, {version}"
    for name, option in feature.get("options", {}).items():
        yield from option_problems(name, option, script)
    for mount in feature.get("mounts", []):
        keys = set(mount)
        if not {"type", "target"} <= keys <= {"type", "target", "source"} or mount["type"] not in ("bind", "volume"):
            yield f"mount {mount}: it has type (bind or volume), target and perhaps source"
    if not os.access(install, os.X_OK) or not script.startswith("#!/bin/sh\n"):
        yield "install.sh is executed: it needs the bit, and the one shell that every image has"
    if said := parses(script):
        yield f"install.sh: {said}"


def read_definition(text):
    """Header and sections of an Apptainer definition: two dictionaries, and the sections in their order of names."""
    header, sections, section = {}, {}, None
    for line in text.splitlines():
        if found := re.match(r"%(\w+)", line):
            section = found.group(1)
            sections.setdefault(section, "")
        elif section:
            sections[section] += line + "\n"
        elif line.strip() and not line.startswith("#"):
            key, _, value = line.partition(":")
            header[key.strip()] = value.strip()
    return header, sections


def copies(sections):
    """What %files copies: pairs of a pattern here and a place in the image."""
    pairs = [line.split() for line in sections.get("files", "").splitlines() if line.strip()]
    return [(pair[0], pair[-1]) for pair in pairs]


def definition_problems(text):
    header, sections = read_definition(text)
    agent = header.get("Bootstrap")
    if list(header)[:1] != ["Bootstrap"]:
        yield "the header begins with Bootstrap"
    if agent not in HEADER:
        yield f"Bootstrap: {agent} is not among those that this check knows"
    elif "From" not in header:
        yield f"Bootstrap: {agent} needs From"
    for key in header:
        if key not in HEADER.get(agent, header):
            yield f"the header may not have {key}"
    for name, body in sections.items():
        if name not in SECTIONS:
            yield f"Apptainer has no section %{name}"
        elif name in SCRIPTS and (said := parses(body)):
            yield f"%{name}: {said}"
    for line in sections.get("labels", "").splitlines():
        if line.strip() and len(line.split(None, 1)) != 2:
            yield f"%labels: {line.strip()} has no value"
    for line in sections.get("files", "").splitlines():
        if line.strip() and len(line.split()) > 2:
            yield f"%files: {line.strip()} has more than two words"
    for source, place in copies(sections):
        if not source.startswith("build/release-files/") or not place.startswith("/"):
            yield f"%files: {source} {place}: from what scripts/release made, to a whole path"


def problems(root):
    version = re.search(r"project\(outboard VERSION (\S+)", (root / "CMakeLists.txt").read_text()).group(1)
    yield from (f"{FEATURE}: {problem}" for problem in feature_problems(root / FEATURE, version))
    yield from (f"{DEFINITION}: {problem}" for problem in definition_problems((root / DEFINITION).read_text()))


FEATURE_OPTION = {"a-b": {"type": "string", "default": ""}}
GOOD_FEATURE = {"id": "x", "version": "1.0.0", "name": "X", "options": FEATURE_OPTION}
WRONG_FEATURES = (
    ({"id": "y"}, "name of the folder"),
    ({"version": "2"}, "version is not"),
    ({"keywords": []}, "has no keywords"),
    ({"init": "yes"}, "init is of a wrong type"),
    ({"capAdd": [1]}, "capAdd is of"),
    ({"mounts": [{"type": "tmpfs"}]}, "mount "),
    ({"options": {"c": {"type": "string", "default": ""}}}, "does not read $C"),
    ({"options": {"a-b": {"type": "number", "default": 1}}}, "boolean or string"),
    ({"options": {"a-b": {"type": "string", "default": True}}}, "default of its type"),
    ({"options": {"a-b": {"type": "boolean", "default": True, "enum": []}}}, "may not have enum"),
    ({"options": {"a-b": {"type": "string", "default": "", "enum": [""], "proposals": [""]}}}, "exclude each other"),
)
HEAD = "Bootstrap: docker\nFrom: a\n"
GOOD_DEFINITION = HEAD + "%files\n  build/release-files/*.deb /p/\n%post\n  true\n%labels\n  a b\n"
WRONG_DEFINITIONS = (
    ("From: a\nBootstrap: docker\n", "begins with"),
    ("Bootstrap: docker\n", "needs From"),
    ("Bootstrap: yum\n", "not among"),
    (HEAD + "MirrorURL: x\n", "may not have MirrorURL"),
    (HEAD + "%pots\n", "no section %pots"),
    (HEAD + "%post\n  if\n", "%post: "),
    (HEAD + "%labels\n  a\n", "no value"),
    (HEAD + "%files\n  /etc/passwd /p\n", "from what"),
    (HEAD + "%files\n a b c\n", "two words"),
)


def self_test():
    """Each rule finds what breaks it."""
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top, "x")
        folder.mkdir()
        feature, install = folder / "devcontainer-feature.json", folder / "install.sh"
        install.write_text("#!/bin/sh\necho ${A_B:-}\n")
        install.chmod(0o755)
        feature.write_text(json.dumps(GOOD_FEATURE))
        assert not list(feature_problems(folder, "1.0.0"))
        for change, part in WRONG_FEATURES:
            feature.write_text(json.dumps({**GOOD_FEATURE, **change}))
            found = list(feature_problems(folder, "1.0.0"))
            assert len(found) == 1 and part in found[0], (change, found)
        feature.write_text(json.dumps({key: value for key, value in GOOD_FEATURE.items() if key != "name"}))
        install.write_text("#!/bin/sh\nif $A_B\n")
        install.chmod(0o644)
        assert len(list(feature_problems(folder, "1.0.0"))) == 3
    assert not list(definition_problems(GOOD_DEFINITION))
    for text, part in WRONG_DEFINITIONS:
        found = list(definition_problems(text))
        assert found and part in found[0], (text, found)
    print("recipes: each rule bites")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found = list(problems(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "recipes: the feature and the definition keep to their tools' rules")
    return sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
