#!/usr/bin/env python3
"""Are the recipes of docs/extending.md true? Each folder here that a recipe names has a small made-up example of it
(example.py). The examples are applied to a copy of the source; what an example touches must be what its recipe names.
Then the copy is built, with made-up headers of CUDA and OpenCL that declare the examples' functions, what the recipes
call printed is printed, and each example is tried.

usage: extend.py SOURCE BUILD [--toolkit FOLDER] [--opencl FOLDER] [--jobs N] [--only RECIPE...]
                                                 BUILD/extending/ has the copy, and keeps it for the next time
       extend.py SOURCE --apply-only             applies and compares: nothing is built
       extend.py --self-test
"""
import argparse
import os
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "house")]

import headers  # noqa: E402
import recipes  # noqa: E402
import workshop  # noqa: E402
from source_copy import Moved, SourceCopy  # noqa: E402


def apply_all(source, known, examples):
    """The copy with all examples in it, and what was wrong: an example that touches what its recipe does not name."""
    copy, wrong = SourceCopy(source), []
    for name, example in examples.items():
        try:
            with copy.touching() as touched:
                example.apply(copy)
            wrong += known[name].misfits(touched)
        except Moved as problem:
            wrong.append(f"{name}: the example leans on what has changed: {problem}")
    return copy, wrong


def build_and_check(options, copy, known, examples):
    shop = workshop.Workshop(options.build / "extending", options)
    shop.lay_out(copy)
    headers.make_toolkit(options.toolkit, shop.headers / "cuda")
    headers.make_opencl(options.opencl, shop.headers / "opencl")
    shop.configure()
    needed = {target for example in examples.values() for target in example.TARGETS}
    shop.make(needed | {"outboard_coverage", "outboard"})
    printed = shop.print_documents()
    named = {path for recipe in known.values() for path in recipe.printed}
    wrong = [f"{path} is printed anew, and no recipe of those that were applied names it" for path in printed - named]
    wrong += [f"{path} is named as printed, and no example changes it" for path in named - printed]
    for name, example in examples.items():
        try:
            example.check(shop)
            print(f"{name}: works")
        except workshop.Failed as problem:
            wrong.append(f"{name}: {problem}")
    return wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        import self_test
        return self_test.run()
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("--apply-only", action="store_true")
    parser.add_argument("--toolkit", type=pathlib.Path, default=pathlib.Path("/usr/local/cuda"))
    parser.add_argument("--opencl", type=pathlib.Path, default=pathlib.Path("/usr/include"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    options.build = options.build and options.build.resolve()
    document = (options.source / "docs/extending.md").read_text()
    known, wrong = recipes.read(document)
    examples = recipes.examples(HERE, known)
    if options.only:
        examples = {name: examples[name] for name in recipes.with_those_below(options.only, examples)}
    wrong += [f"docs/extending.md has a recipe {name}, and tests/extending/{name}/example.py is not there"
              for name in known if not (HERE / name / "example.py").exists()]
    wrong += [f"tests/extending/{path.parent.name}: docs/extending.md has no block of files for this example"
              for path in sorted(HERE.glob("*/example.py")) if path.parent.name not in known]
    copy, misfits = apply_all(options.source, known, examples)
    wrong += misfits
    if not options.apply_only and not wrong:
        try:
            wrong += build_and_check(options, copy, {name: known[name] for name in examples}, examples)
        except workshop.Failed as problem:
            wrong.append(str(problem))
    print("\n".join(wrong) or f"{len(examples)} recipes are true")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
