// The `outboard` command: reads the command line and hands over to a verb.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.hh"
#include "base/configuration/settings.hh"
#include "base/schemes.hh"
#include "base/version.hh"
#include "tool/description.hh"
#include "tool/exit_status.hh"
#include "tool/text.hh"
#include "tool/verb_details.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

struct settings_flags {
  bool example = false, document = false;
};

struct cdi_flags {
  std::string action, output = "/etc/cdi/outboard.json";
};

/// The form of each scheme's addresses, and the ports that need not be named.
std::string url_help() {
  std::string text = "URLs: " + url_forms();
  for (const scheme_traits& each : schemes()) {
    if (each.default_port == 0) continue;
    text += fmt::format(" ({}: has port {} if none is given)", each.name, each.default_port);
  }
  return text + ".\n";
}

std::string footer() {
  return url_help() +
         "Configuration: /etc/outboard/outboard.toml, then ~/.config/outboard/outboard.toml, then variables\n"
         "(OUTBOARD_...), then flags; the last one counts. `outboard settings` lists them all.\n"
         "Exit status: 0 good, 1 failed, 2 usage, 3 no server, 4 refused, 5 busy, 6 configuration; of run:\n"
         "the program's own, 128 + signal, 125 it was not started, 126 not executable, 127 not found.";
}

void add_config(CLI::App& verb, common_flags& common) {
  verb.add_option("--config", common.config_file, "read this file instead of the system's and the user's")
      ->type_name("FILE");
}

/// What the help shows for the value of a setting.
std::string type_name(const setting& s) {
  if (s.form == value_form::urls) return "URL[,URL]";
  if (s.form == value_form::path) return "FILE";
  if (s.form == value_form::number) return s.name.ends_with("_seconds") ? "SECONDS" : "NUMBER";
  std::string words(s.accepted);
  for (std::size_t at; (at = words.find(", ")) != words.npos;) words.replace(at, 2, "|");
  return words;
}

/// The flag of a setting. One that is repeated gives a list.
void add_setting(CLI::App& verb, common_flags& common, std::string_view key) {
  const setting* s = find_setting(key);
  CHECK(s && !s->flag.empty());
  const auto take = [&common, key = std::string(key)](const std::vector<std::string>& given) {
    std::string& text = common.settings[key];
    for (const std::string& one : given) text.append(text.empty() ? "" : ",").append(one);
  };
  const std::string flag(s->flag);
  // A flag alone says that its switch is true. One that is true by default has a flag with a value.
  constexpr std::string_view on = "true: ";
  const std::string help(s->meaning.starts_with(on) ? s->meaning.substr(on.size()) : s->meaning);
  if (s->form == value_form::flag && s->text(config{}) == "0") {
    verb.add_flag_callback(
        flag, [take] { take({"1"}); }, help);
  } else {
    verb.add_option_function<std::vector<std::string>>(flag, take, help)
        ->type_name(type_name(*s))
        ->take_all()
        ->expected(1);
  }
}

void add_server(CLI::App& verb, common_flags& common) {
  for (const char* key : {"server", "token_file", "tls"}) add_setting(verb, common, key);
  add_config(verb, common);
}

CLI::App* add_serve(CLI::App& app, common_flags& common, serve_flags& serve) {
  CLI::App* verb = app.add_subcommand("serve", "lend this machine's GPUs to other machines");
  for (const char* key : {"listen", "device", "token_file", "tokens_file", "tls", "insecure", "log",
                          "log_format", "audit_file", "limits.drain_seconds"})
    add_setting(*verb, common, key);
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
  for (const char* key : {"device", "wait_seconds", "trace", "profile", "profile_summary", "log"})
    add_setting(*verb, common, key);
  verb->add_option("--library", common.library, "folder of the front-end libraries")->type_name("FOLDER");
  return verb;
}

CLI::App* add_devices(CLI::App& app, common_flags& common, bool& opencl) {
  CLI::App* verb = app.add_subcommand("devices", "list the devices of a server, or of this machine");
  add_server(*verb, common);
  verb->add_flag("--json", common.json, "print JSON");
  add_setting(*verb, common, "device");
  verb->add_flag("--opencl", opencl, "list what OpenCL programs see in the place of what CUDA programs do");
  return verb;
}

CLI::App* add_sessions(CLI::App& app, common_flags& common) {
  CLI::App* verb = app.add_subcommand("sessions", "list the running sessions of a server");
  add_server(*verb, common);
  verb->add_flag("--json", common.json, "print JSON");
  return verb;
}

CLI::App* add_doctor(CLI::App& app, common_flags& common, bool& fix) {
  CLI::App* verb = app.add_subcommand("doctor", "say what is installed, what answers and what is wrong");
  add_server(*verb, common);
  verb->add_flag("--json", common.json, "print JSON");
  add_setting(*verb, common, "device");
  verb->add_option("--library", common.library, "folder of the front-end libraries")->type_name("FOLDER");
  verb->add_flag("--fix", fix, "print only the command that mends the first thing that is wrong");
  return verb;
}

CLI::App* add_reload(CLI::App& app, common_flags& common) {
  CLI::App* verb =
      app.add_subcommand("reload", "have a server read its configuration again; its sessions go on");
  add_server(*verb, common);
  return verb;
}

CLI::App* add_replace(CLI::App& app, common_flags& common, replace_flags& replace) {
  CLI::App* verb = app.add_subcommand(
      "replace", "have another process of the server go on with a session, whose program does not notice");
  verb->add_option("SESSION", replace.session, "its number, as `outboard sessions` shows it")
      ->required()
      ->type_name("ID");
  verb->add_option("--patience", replace.patience,
                   "how long work under way may hold the session up, in seconds (2)")
      ->check(CLI::Range(0.0, 60.0))
      ->type_name("SECONDS");
  add_server(*verb, common);
  return verb;
}

CLI::App* add_settings(CLI::App& app, common_flags& common, settings_flags& settings) {
  CLI::App* verb = app.add_subcommand("settings", "list every setting, its value here, and what set it");
  verb->add_flag("--example", settings.example, "print an outboard.toml that shows all defaults");
  verb->add_flag("--document", settings.document)->group("");
  verb->add_flag("--json", common.json, "print JSON");
  add_config(*verb, common);
  return verb;
}

CLI::App* add_cdi(CLI::App& app, common_flags& common, cdi_flags& cdi) {
  CLI::App* verb =
      app.add_subcommand("cdi", "describe a server's devices for podman, docker and other container engines");
  verb->add_option("ACTION", cdi.action, "generate")->required()->type_name("generate");
  verb->add_option("--output", cdi.output, "where it is written; -: to the standard output")
      ->type_name("FILE");
  verb->add_option("--library", common.library, "folder of the front-end libraries")->type_name("FOLDER");
  add_server(*verb, common);
  return verb;
}

CLI::App* add_completion(CLI::App& app, std::string& shell) {
  CLI::App* verb =
      app.add_subcommand("completion", "print a script that completes verbs and flags in a shell");
  verb->add_option("SHELL", shell, "bash, zsh or fish")->required()->type_name("bash|zsh|fish");
  return verb;
}

CLI::App* add_opencl_list(CLI::App& app, common_flags& common, std::string& library) {
  CLI::App* verb = app.add_subcommand("opencl-list", "")->group("");
  verb->add_option("LIBRARY", library)->required();
  verb->add_flag("--json", common.json);
  return verb;
}

CLI::App* add_token(CLI::App& app, common_flags& common, token_flags& token) {
  CLI::App* verb =
      app.add_subcommand("token", "make, list and revoke the named tokens of this machine's server");
  verb->add_option("ACTION", token.words,
                   "create NAME, list, or revoke NAME: whose token it is, a person's or a group's")
      ->required()
      ->expected(1, 2)
      ->type_name("create|list|revoke");
  verb->add_option("--expires", token.lifetime,
                   "of create: how long it lets in, as 30d or 12h; default: for ever")
      ->type_name("TIME");
  verb->add_flag("--json", common.json, "of list: print JSON");
  add_setting(*verb, common, "tokens_file");
  add_config(*verb, common);
  return verb;
}

CLI::App* add_worker(CLI::App& app, worker_flags& worker) {
  CLI::App* verb = app.add_subcommand("worker", "")->group("");
  verb->add_option("--parent", worker.parent)->required();
  verb->add_flag("--probe", worker.probe);
  verb->add_flag("--warm", worker.warm);
  verb->add_flag("--no-visible-device", worker.no_visible_device);
  verb->add_flag("--opencl", worker.opencl);
  verb->add_option("--confine", worker.confine);
  verb->add_flag("--confine-helper", worker.confine_helper);
  verb->add_option("--remove-folders", worker.remove_folders);
  verb->add_option("--compilers", worker.compilers);
  verb->add_option("--reserve-from", worker.reserve_from);
  verb->add_option("--tidy", worker.tidy.directory);
  verb->add_option("--tidy-size", worker.tidy.size);
  verb->add_option("--tidy-per-identity", worker.tidy.per_identity);
  verb->add_flag("--gate", worker.gate);
  verb->add_flag("--tls", worker.tls);
  verb->add_flag("--monitor", worker.monitor);
  verb->add_option("--checkpoint", worker.checkpoint);
  verb->add_option("--visible", worker.visible)->take_all();
  verb->add_flag("--visible-in-order", worker.visible_in_order);
  verb->add_option("--cache-directory", worker.cache.directory);
  verb->add_option("--cache-size", worker.cache.size);
  verb->add_option("--device", worker.device)->required();
  verb->add_option("--setting", worker.settings)->take_all();
  verb->add_option("--plugin", worker.plugins)->take_all();
  return verb;
}

CLI::App* add_bench(CLI::App& app, common_flags& common, bench_flags& bench) {
  CLI::App* verb = app.add_subcommand(
      "bench",
      "measure what calls cost between this machine and a server, and natively where both can be had");
  add_server(*verb, common);
  add_setting(*verb, common, "device");
  verb->add_option("--seconds", bench.seconds, "how long the whole of it takes, about; default: 20")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0).description(""));
  verb->add_flag("--json", common.json, "print JSON");
  verb->add_flag("--markdown", bench.markdown, "print Markdown");
  verb->add_option("--output", bench.output, "write the page to this file")->type_name("FILE");
  verb->add_flag("--native", bench.native, "measure this machine's own driver alone, without Outboard");
  verb->add_option(
          "--compare", bench.compare,
          "put the native rows of this file beside ours: what --native --json wrote on the server's machine")
      ->type_name("FILE");
  verb->add_option("--library", common.library, "folder of the front-end libraries")->type_name("FOLDER");
  return verb;
}

CLI::App* add_measure(CLI::App& app, measure_flags& measure) {
  CLI::App* verb = app.add_subcommand("measure", "")->group("");
  verb->add_flag("--native", measure.native);
  verb->add_option("--seconds", measure.seconds);
  verb->add_option("--bulk", measure.bulk);
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

/// Hidden ones have no group.
bool is_shown_to_users(const CLI::App* verb) { return !verb->get_group().empty(); }

described_verb describe_verb(const CLI::App& verb) {
  described_verb described{verb.get_name(), verb.get_description(), {}, {}, {}};
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;
    described_flag flag{{}, option->get_type_name(), option->get_description()};
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    if (option->get_items_expected_max() == 0) flag.value.clear();
    if (flag.names.empty()) {
      described.operand = flag.value;
    } else {
      described.flags.push_back(std::move(flag));
    }
  }
  return described;
}

described_command describe(const CLI::App& app) {
  described_command c{describe_verb(app), app.get_footer(), {}};
  for (const CLI::App* verb : app.get_subcommands(is_shown_to_users)) {
    c.verbs.push_back(describe_verb(*verb));
    c.verbs.back().details = details_of(verb->get_name());
  }
  return c;
}

/// Below the flags of each verb's help.
void add_details(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands([](CLI::App* each) { return is_shown_to_users(each); })) {
    const std::string before = verb->get_footer();
    verb->footer(before + (before.empty() ? "" : "\n\n") +
                 wrapped("`" + verb->get_name() + "` " + details_without_links(verb->get_name()) + "."));
  }
}

/// Hidden, for packages and documents: `outboard help --manual [VERB]`, `--document`, `--table`, `--pages
/// FOLDER`.
std::optional<int> print_pages(const CLI::App& app, std::string_view what, const std::string& argument) {
  const described_command c = describe(app);
  if (what == "--pages") {
    const status written = write_pages(c, argument);
    return written.ok() ? exit_good : complain(exit_failed, written.error().message);
  }
  if (what == "--document") return print(verbs_document(c));
  if (what == "--table") return print(verbs_table(c));
  if (what != "--manual") return std::nullopt;
  const auto verb = std::ranges::find(c.verbs, argument, &described_verb::name);
  return print(manual_page(c, verb == c.verbs.end() ? nullptr : &*verb));
}

/// The first word, where it is no verb: asks for help or the version, or is an error. Nothing: a verb or an
/// option comes first, or nothing at all.
std::optional<int> answer_other_word(const CLI::App& app, int argc, char** argv) {
  const std::string_view word = argc < 2 ? "-" : argv[1];
  if (word.starts_with('-') || find_verb(app, word)) return std::nullopt;
  if (word == "version") return std::printf("%s\n", std::string(product).c_str()), exit_good;
  const bool help = word == "help";
  if (help && argc > 2) {
    if (const auto printed = print_pages(app, argv[2], argc > 3 ? argv[3] : "")) return printed;
  }
  const CLI::App* about = help && argc > 2 ? find_verb(app, argv[2]) : &app;
  if (help && about)
    return std::printf("%s", about->help(about == &app ? "" : app.get_name()).c_str()), exit_good;
  std::string known;
  for (const CLI::App* verb : app.get_subcommands(is_shown_to_users)) known += verb->get_name() + ", ";
  return complain(exit_usage, "there is no verb \"" + std::string(help ? argv[2] : argv[1]) +
                                  "\"; known: " + known + "help, version");
}

int print_completion(const CLI::App& app, const std::string& shell) {
  const std::string script = completion_script(describe(app), shell);
  if (script.empty())
    return complain(exit_usage, "there is no completion for \"" + shell + "\"; known: bash, zsh, fish");
  return print(script);
}

/// A wrong flag of `run` is no status of its program.
int usage_status(const CLI::App& run_verb) { return run_verb.parsed() ? exit_run_failed : exit_usage; }

/// What stands before the program of `run`. The exit status where that was all, or wrong.
std::optional<int> parse(CLI::App& app, const CLI::App& run_verb, const common_flags& common, int argc,
                         const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& e) {
    return complain(usage_status(run_verb), std::string(e.what()) + "; see outboard --help");
  }
  if (common.given("server") && common.given("device")) {
    return complain(
        usage_status(run_verb),
        "--device is for where no server is used: a server has chosen its own; leave out one of the two");
  }
  return std::nullopt;
}

int command(int argc, char** argv) {
  CLI::App app("Outboard: GPUs of other machines for unchanged programs", "outboard");
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", std::string(product));
  app.footer(footer());
  common_flags common;
  serve_flags serve;
  worker_flags worker;
  bench_flags bench;
  measure_flags measure;
  settings_flags settings;
  cdi_flags cdi;
  token_flags token;
  replace_flags replace;
  bool opencl = false, fix = false;
  std::string shell, opencl_library;
  CLI::App* const serve_verb = add_serve(app, common, serve);
  CLI::App* const run_verb = add_run(app, common);
  CLI::App* const devices_verb = add_devices(app, common, opencl);
  CLI::App* const sessions_verb = add_sessions(app, common);
  CLI::App* const doctor_verb = add_doctor(app, common, fix);
  CLI::App* const reload_verb = add_reload(app, common);
  CLI::App* const replace_verb = add_replace(app, common, replace);
  CLI::App* const settings_verb = add_settings(app, common, settings);
  CLI::App* const cdi_verb = add_cdi(app, common, cdi);
  CLI::App* const completion_verb = add_completion(app, shell);
  CLI::App* const bench_verb = add_bench(app, common, bench);
  CLI::App* const measure_verb = add_measure(app, measure);
  CLI::App* const opencl_verb = add_opencl_list(app, common, opencl_library);
  CLI::App* const token_verb = add_token(app, common, token);
  CLI::App* const worker_verb = add_worker(app, worker);
  add_details(app);
  if (const auto status = answer_other_word(app, argc, argv)) return *status;
  const int program = find_program(*run_verb, argc, argv);
  if (const auto status = parse(app, *run_verb, common, std::min(program, argc), argv)) return *status;
  if (serve_verb->parsed()) return verb_serve(common, serve);
  if (run_verb->parsed()) {
    const bool dashes = program < argc && std::string_view(argv[program]) == "--";
    return verb_run(common, {argv + program + (dashes ? 1 : 0), argv + argc});
  }
  if (devices_verb->parsed()) return verb_devices(common, opencl);
  if (sessions_verb->parsed()) return verb_sessions(common);
  if (reload_verb->parsed()) return verb_reload(common);
  if (replace_verb->parsed()) return verb_replace(common, replace);
  if (doctor_verb->parsed()) return verb_doctor(common, fix);
  if (settings_verb->parsed()) return verb_settings(common, settings.example, settings.document);
  if (cdi_verb->parsed()) return verb_cdi(common, cdi.action, cdi.output);
  if (completion_verb->parsed()) return print_completion(app, shell);
  if (bench_verb->parsed()) return verb_bench(common, bench);
  if (token_verb->parsed()) return verb_token(common, token);
  if (measure_verb->parsed()) return verb_measure(measure);
  if (opencl_verb->parsed()) return verb_opencl_list(opencl_library, common.json);
  CHECK(worker_verb->parsed());
  return verb_worker(worker);
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

int complain_of_configuration(const outboard::error& problem) {
  return complain(problem.reason != 0 ? problem.reason : exit_configuration, problem.message);
}

result<config> load_with_flags(const common_flags& flags) {
  config_sources sources = default_config_sources();
  sources.must_exist = flags.config_file;
  auto c = load_config(sources);
  if (!c.ok()) return c;
  for (const auto& [key, text] : flags.settings) {
    const setting& s = *find_setting(key);
    const status set = set_by_text(*c, s, s.flag, text);
    if (!set.ok()) return outboard::error{action::fail, set.error().message, exit_usage};
    c->origins[key] = s.flag;
  }
  return c;
}

}  // namespace outboard::tool

int main(int argc, char** argv) { return outboard::tool::command(argc, argv); }
