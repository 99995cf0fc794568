"""The settings limits.example_seconds of a server, and example_switch of programs, which is on by default and has a flag."""
from workshop import Failed

TARGETS = ["base_test", "outboard_shim_cuda"]


def apply(copy):
    fields, rows = "src/base/configuration/config.hh", "src/base/configuration/settings.cc"
    copy.after(fields, "std::uint32_t drain_seconds", "  std::uint32_t example_seconds = 11;\n")
    copy.after(fields, "bool concurrent_managed = true;", "  bool example_switch = true;\n")
    copy.before(rows, 'row({"", "device", "OUTBOARD_DEVICE"', """\
    switch_row({"", "example_switch", "OUTBOARD_EXAMPLE_SWITCH", "--example-switch", of_program},
             "false: makes no example of the program", [](auto& c) -> auto& { return c.example_switch; }),
""")
    copy.before(rows, 'number_row<1, 86400>({"limits", "keepalive_seconds"', """\
    number_row<1, 60>({"limits", "example_seconds", "OUTBOARD_EXAMPLE", "", of_server},
             "how long an example takes", [](auto& c) -> auto& { return c.limits.example_seconds; }),
""")
    copy.replace("src/tool/main.cc", '"trace", "profile", "profile_summary", "log"}', '"trace", "profile", "profile_summary", "log", "example_switch"}')


def check(shop):
    shown = shop.run([shop.program("outboard"), "settings"], OUTBOARD_EXAMPLE="12")
    line = next((line for line in shown.splitlines() if line.startswith("limits.example_seconds ")), "")
    if line.split()[1:] != ["12", "OUTBOARD_EXAMPLE"]:
        raise Failed(f"outboard settings says: {line!r}")
    shop.run([shop.program("outboard"), "settings"], fails=True, OUTBOARD_EXAMPLE="61")
    for value in "false", "0":
        told = shop.run([shop.program("outboard"), "run", "--device", "mock", "--example-switch", value, "--", "env"])
        if "OUTBOARD_EXAMPLE_SWITCH=0" not in told.split():
            raise Failed(f"--example-switch {value} does not reach the program:\n{told}")
    shop.unit_tests("base_test", "*")
    shop.python("tests/tool/settings_test.py")
    shop.python("tests/tool/pages_test.py")
