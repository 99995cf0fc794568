// The `outboard` command: reads the command line and hands over to a verb.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/schemes.hh"
#include "base/version.hh"
#include "tool/exit_status.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

/// The form of each scheme's addresses, and the ports that need not be named.
std::string url_help() {
  std::string text = "URLs: " + url_forms();
  for (const scheme_traits& each : schemes()) {
    if (each.default_port == 0) continue;
    text += " (" + std::string(each.name) + ": has port " + std::to_string(each.default_port) +
            " if none is given)";
  }
  return text + ".\n";
}

constexpr const char* footer =
    "Configuration: /etc/outboard/outboard.toml, then ~/.config/outboard/outboard.toml, then the "
    "environment\n"
    "(OUTBOARD_SERVER, OUTBOARD_DEVICE, OUTBOARD_TOKEN_FILE, OUTBOARD_LOG, OUTBOARD_SYNC, OUTBOARD_TRACE), "
    "then flags.\n"
    "Exit status: 0 good, 1 failed, 2 usage, 3 no server, 4 refused, 5 busy, 6 configuration; of run: the "
    "program's\n"
    "own, 128 + signal, 126 not executable, 127 not found.";

void add_config(CLI::App& verb, common_flags& common) {
  verb.add_option("--config", common.config_file, "read this file instead of the system's and the user's")
      ->type_name("FILE");
}

void add_server(CLI::App& verb, common_flags& common) {
  verb.add_option("--server", common.server, "servers, tried in order (OpenCL: the devices of all)")
      ->type_name("URL[,URL]");
  verb.add_option("--token-file", common.token_file, "file (0600) with the token that the server asks for")
      ->type_name("FILE");
  add_config(verb, common);
}

void add_device(CLI::App& verb, common_flags& common, const char* help) {
  verb.add_option("--device", common.device, help)->type_name("auto|vendor|cpu");
}

CLI::App* add_serve(CLI::App& app, common_flags& common, serve_flags& serve) {
  CLI::App* verb = app.add_subcommand("serve", "lend this machine's GPUs to other machines");
  verb->add_option("--listen", serve.listen, "listen here; may be repeated")->type_name("URL")->take_all();
  add_device(*verb, common, "what executes: the GPU, the cpu device, or the GPU if there is one (auto)");
  verb->add_option("--token-file", common.token_file, "file (0600) with the token that clients must know")
      ->type_name("FILE");
  verb->add_flag("--insecure", serve.insecure, "let other hosts in without a token");
  verb->add_option("--log-level", serve.log_level, "default: info")->type_name("off|error|warn|info|debug");
  verb->add_option("--log-format", serve.log_format, "default: console")->type_name("console|json");
  verb->add_option("--drain", serve.drain_seconds, "how long SIGTERM waits for running sessions (30)")
      ->type_name("SECONDS");
  add_config(*verb, common);
  verb->add_option("--private", serve.private_folder)->group("");
  verb->add_option("--ready-fd", serve.ready_descriptor)->group("");
  return verb;
}

CLI::App* add_run(CLI::App& app, common_flags& common) {
  CLI::App* verb = app.add_subcommand(
      "run", "run an unchanged CUDA program on a server's GPU, or on a private back-end where none is named");
  verb->footer("After the options: [--] COMMAND [ARGUMENT...]");
  add_server(*verb, common);
  add_device(*verb, common, "device of the private back-end");
  verb->add_option("--library", common.library, "folder of the front-end libraries")->type_name("FOLDER");
  return verb;
}

CLI::App* add_worker(CLI::App& app, common_flags& common, worker_flags& worker) {
  CLI::App* verb = app.add_subcommand("worker", "")->group("");
  verb->add_option("--parent", worker.parent)->required();
  verb->add_flag("--probe", worker.probe);
  verb->add_flag("--warm", worker.warm);
  verb->add_flag("--opencl", worker.opencl);
  verb->add_option("--confine", worker.confine);
  verb->add_option("--remove-folders", worker.remove_folders);
  verb->add_option("--compilers", worker.compilers);
  verb->add_option("--tidy", worker.tidy.directory);
  verb->add_option("--tidy-size", worker.tidy.size);
  verb->add_option("--tidy-per-identity", worker.tidy.per_identity);
  verb->add_flag("--monitor", worker.monitor);
  verb->add_option("--checkpoint", worker.checkpoint);
  verb->add_option("--visible", worker.visible)->take_all();
  verb->add_flag("--visible-in-order", worker.visible_in_order);
  verb->add_option("--shape-name", worker.shape.name);
  verb->add_option("--shape-memory", worker.shape.memory);
  verb->add_option("--cache-directory", worker.cache.directory);
  verb->add_option("--cache-size", worker.cache.size);
  verb->add_option("--device", common.device)->required();
  verb->add_option("--log-level", worker.log_level);
  verb->add_option("--log-format", worker.log_format);
  verb->add_option("--keepalive", worker.keepalive_seconds);
  verb->add_option("--plugin", worker.plugins)->take_all();
  verb->add_option("--cpu-capability", worker.cpu.capability);
  verb->add_option("--cpu-memory", worker.cpu.memory);
  verb->add_option("--cpu-cores", worker.cpu.cores);
  verb->add_option("--cpu-kernel-timeout", worker.cpu.kernel_timeout_seconds);
  return verb;
}

/// Where the program of `run` begins among the arguments: behind "--", or at the first that is neither a flag
/// of ours nor the value of one. What stands there is not ours to parse. argc if there is none.
int find_program(const CLI::App& run_verb, int argc, char** argv) {
  if (argc < 2 || run_verb.get_name() != argv[1]) return argc;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--" || argument.empty() || argument[0] != '-') return i;
    const CLI::Option* option = run_verb.get_option_no_throw(argument);
    if (option && option->get_items_expected() > 0) ++i;
  }
  return argc;
}

const CLI::App* find_verb(const CLI::App& app, std::string_view name) {
  const auto found = app.get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

/// The first word, where it is no verb: asks for help or the version, or is an error. Nothing: a verb or an
/// option comes first, or nothing at all.
std::optional<int> answer_other_word(const CLI::App& app, int argc, char** argv) {
  const std::string_view word = argc < 2 ? "-" : argv[1];
  if (word.starts_with('-') || find_verb(app, word)) return std::nullopt;
  if (word == "version") return std::printf("%s\n", std::string(product).c_str()), exit_good;
  const bool help = word == "help";
  const CLI::App* about = help && argc > 2 ? find_verb(app, argv[2]) : &app;
  if (help && about)
    return std::printf("%s", about->help(about == &app ? "" : app.get_name()).c_str()), exit_good;
  std::string known;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); }))
    known += verb->get_name() + ", ";
  return complain(exit_usage, "there is no verb \"" + std::string(help ? argv[2] : argv[1]) +
                                  "\"; known: " + known + "help, version");
}

int command(int argc, char** argv) {
  CLI::App app("Outboard: GPUs of other machines for unchanged programs", "outboard");
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", std::string(product));
  app.footer(url_help() + footer);
  common_flags common;
  serve_flags serve;
  worker_flags worker;
  CLI::App* const serve_verb = add_serve(app, common, serve);
  CLI::App* const run_verb = add_run(app, common);
  CLI::App* const devices_verb =
      app.add_subcommand("devices", "list the devices of a server, or of this machine");
  CLI::App* const sessions_verb = app.add_subcommand("sessions", "list the running sessions of a server");
  CLI::App* const doctor_verb =
      app.add_subcommand("doctor", "say what is installed, what answers and what is wrong");
  for (CLI::App* verb : {devices_verb, sessions_verb, doctor_verb}) {
    add_server(*verb, common);
    verb->add_flag("--json", common.json, "print JSON");
  }
  add_device(*devices_verb, common, "without a server: the device of this machine");
  add_device(*doctor_verb, common, "without a server: the device of this machine");
  doctor_verb->add_option("--library", common.library, "folder of the front-end libraries")
      ->type_name("FOLDER");
  CLI::App* const worker_verb = add_worker(app, common, worker);
  if (const auto status = answer_other_word(app, argc, argv)) return *status;
  const int program = find_program(*run_verb, argc, argv);
  try {
    app.parse(std::min(program, argc), argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& e) {
    return complain(exit_usage, std::string(e.what()) + "; see outboard --help");
  }
  if (!common.server.empty() && !common.device.empty()) {
    return complain(
        exit_usage,
        "--device is for where no server is used: a server has chosen its own; leave out one of the two");
  }
  if (serve_verb->parsed()) return verb_serve(common, serve);
  if (run_verb->parsed()) {
    const bool dashes = program < argc && std::string_view(argv[program]) == "--";
    return verb_run(common, {argv + program + (dashes ? 1 : 0), argv + argc});
  }
  if (devices_verb->parsed()) return verb_devices(common);
  if (sessions_verb->parsed()) return verb_sessions(common);
  if (doctor_verb->parsed()) return verb_doctor(common);
  CHECK(worker_verb->parsed());
  return verb_worker(common, worker);
}

}  // namespace

int complain(int status, const std::string& sentence) {
  // A part of it may come from a server.
  std::string line = "outboard: " + sentence;
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  std::fprintf(stderr, "%s\n", line.c_str());
  return status;
}

result<config> load_with_flags(const common_flags& flags) {
  config_sources sources = default_config_sources();
  sources.must_exist = flags.config_file;
  auto c = load_config(sources);
  if (!c.ok()) return c;
  if (!flags.server.empty()) {
    auto servers = parse_endpoints(flags.server);
    if (!servers.ok()) return failure("--server: " + servers.error().message);
    c->servers = std::move(*servers);
  }
  if (!flags.token_file.empty()) c->token_file = flags.token_file;
  if (!flags.device.empty()) {
    const auto device = parse_device(flags.device);
    if (!device) return failure("--device is \"" + flags.device + "\", accepted: auto, vendor, cpu");
    c->device = *device;
  }
  return c;
}

}  // namespace outboard::tool

int main(int argc, char** argv) { return outboard::tool::command(argc, argv); }
