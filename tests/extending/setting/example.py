"""The settings limits.example_seconds of a server and example_switch of programs."""
from workshop import Failed

TARGETS = ["base_test"]


def apply(copy):
    fields, rows = "src/base/configuration/config.hh", "src/base/configuration/settings.cc"
    copy.after(fields, "std::uint32_t drain_seconds", "  std::uint32_t example_seconds = 11;\n")
    copy.after(fields, "bool concurrent_managed = true;", "  bool example_switch = false;\n")
    copy.before(rows, 'row({"", "device", "OUTBOARD_DEVICE"', """\
    switch_row({"", "example_switch", "OUTBOARD_EXAMPLE_SWITCH", "", of_program},
             "true: makes an example of the program", [](auto& c) -> auto& { return c.example_switch; }),
""")
    copy.before(rows, 'number_row<1, 86400>({"limits", "keepalive_seconds"', """\
    number_row<1, 60>({"limits", "example_seconds", "OUTBOARD_EXAMPLE", "", of_server},
             "how long an example takes", [](auto& c) -> auto& { return c.limits.example_seconds; }),
""")


def check(shop):
    shown = shop.run([shop.program("outboard"), "settings"], OUTBOARD_EXAMPLE="12")
    line = next((line for line in shown.splitlines() if line.startswith("limits.example_seconds ")), "")
    if line.split()[1:] != ["12", "OUTBOARD_EXAMPLE"]:
        raise Failed(f"outboard settings says: {line!r}")
    shop.run([shop.program("outboard"), "settings"], fails=True, OUTBOARD_EXAMPLE="61")
    shop.unit_tests("base_test", "*")
    shop.python("tests/tool/settings_test.py")
